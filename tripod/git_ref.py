"""Commits the newest seal to a ref of its own, beside the branches that people work on.

The record's seal is remembered by git once it is committed with the work. A ref of its own
remembers each seal at once: a chain of commits that hold nothing but the seal, under the path of
the record's, so whoever walks the repository's history finds it there. No branch, index or work
tree is touched.

1. Blob, trees and commit are written: loose objects that nothing names. Dead here: git drops them.
2. The ref is moved from what it named when we looked; somebody else's move in between is refused.
3. The receipt, the commit's own bytes, is logged. Dead here: the next round finds the seal there.
"""

from __future__ import annotations

import os
import re
import subprocess

from ledger.note import format_note
from ledger.places import RECORD
from tripod.anchoring import Receipt, newest_seal, record
from tripod.errors import BadArgumentError, RefusedError, UnreachableError
from tripod.export import SEAL
from tripod.team import Team

__all__ = ["push", "ref_of", "remember"]

_FOLDER = "refs/tripod/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_GIVEN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
"""What a hook sets for its own repository, which need not be the team's."""


def ref_of(name: str) -> str:
    """The full name of a ref for seals (BadArgumentError: that is no name)."""
    if _NAME.fullmatch(name) is None:
        message = f"--ref: {name[:100]!r} is no name of letters, digits, - and _ (below {_FOLDER})"
        raise BadArgumentError(message)
    return _FOLDER + name


def remember(team: Team, ref: str) -> Receipt | None:
    """Commit the newest seal to ``ref`` and log that; None where it stands there already.

    Raises:
        NotFoundError: nothing was sealed yet.
        RefusedError: there is no repository, git refuses, or the ref was moved meanwhile.
    """
    sealed = newest_seal(team)
    data = format_note(sealed.note)
    folder = os.path.abspath(team.root)
    prefix = _git(folder, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape")
    path = f"{prefix.removesuffix(chr(10))}{RECORD}/{SEAL}"
    tip = _git(folder, "rev-parse", "--verify", "--quiet", ref, given=(0, 1)).decode().strip()
    blob = _git(folder, "hash-object", "-w", "--stdin", data=data).decode().strip()
    if tip and _blob_at(folder, tip, path) == blob:
        return None
    tree = _tree(folder, path, blob)
    message = f"Seal of {sealed.seal.size} entries of {sealed.seal.origin}"
    parents = ("-p", tip) if tip else ()
    commit = _git(folder, "commit-tree", tree, *parents, "-m", message).decode().strip()
    _git(folder, "update-ref", ref, commit, tip or "0" * len(commit))
    written = _git(folder, "cat-file", "commit", commit)
    seconds = int(_git(folder, "show", "--no-patch", "--format=%ct", commit))
    return record(team, Receipt("git", ref, sealed.seal, seconds, written))


def push(team: Team, ref: str, remote: str) -> None:
    """Give the ref to a remote, which is where it binds (UnreachableError: it was not taken)."""
    if remote.startswith("-"):
        message = f"--push: {remote[:100]!r} is no remote"
        raise BadArgumentError(message)
    try:
        _git(os.path.abspath(team.root), "push", "--quiet", remote, f"{ref}:{ref}")
    except RefusedError as error:
        message = f"{error}; the ref stands here, and nobody else has it yet"
        raise UnreachableError(message) from error


# Within ----------------------------------------------------------------------------------------


def _tree(folder: str, path: str, blob: str) -> str:
    """Write the trees that hold one file at a path from the repository's top."""
    *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
    line = b"100644 blob %b\t%b\0" % (blob.encode(), name)
    tree = _git(folder, "mktree", "-z", data=line).decode().strip()
    for part in reversed(folders):
        line = b"040000 tree %b\t%b\0" % (tree.encode(), part)
        tree = _git(folder, "mktree", "-z", data=line).decode().strip()
    return tree


def _blob_at(folder: str, commit: str, path: str) -> str:
    said = _git(folder, "rev-parse", "--verify", "--quiet", f"{commit}:{path}", given=(0, 1))
    return said.decode().strip()


def _git(folder: str, *words: str, data: bytes = b"", given: tuple[int, ...] = (0,)) -> bytes:
    """What git says, as its user has set it up (RefusedError: it ends with another code)."""
    environment = {name: value for name, value in os.environ.items() if name not in _GIVEN}
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            env=environment | {"GIT_TERMINAL_PROMPT": "0"},
            input=data,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        message = f"git cannot be run: {error.strerror or error}"
        raise RefusedError(message) from error
    if done.returncode not in given:
        lines = [
            line for line in done.stderr.decode("utf-8", "replace").split("\n") if line.strip()
        ]
        said = lines[-1] if lines else f"exit {done.returncode}"
        message = f"git {words[0]} in {folder}: {said.strip()}"
        raise RefusedError(message)
    return done.stdout
