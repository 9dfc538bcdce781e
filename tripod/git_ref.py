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

from ledger.note import format_note
from ledger.places import RECORD
from tripod.anchoring import Receipt, newest_seal, record
from tripod.errors import BadArgumentError, RefusedError, UnreachableError
from tripod.export import SEAL
from tripod.team import Team
from verify.git import Repository
from verify.git_folder import GitError

_FOLDER = "refs/tripod/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PERSONS = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "EMAIL")  # fmt: skip
_WHO = re.compile(r"(user|author|committer)\.(name|email)")
_SHARED = re.compile(r"core\.sharedrepository")
_WITH_WHOM = re.compile(
    r"group|all|world|everybody|umask|true|false|0[0-7]{3}|[012]", re.IGNORECASE
)
_HEADER = re.compile(r"http\..*\.extraheader")
"""Of the repository's settings: no more than these are in force when git writes or gives away."""
_HELPED = re.compile(r"[A-Za-z0-9+.-]*::")
_TRANSPORTS = "file:git:http:https:ssh"
_REMOTE = re.compile(r"[A-Za-z0-9+.-]+://|[^/]+:")


def ref_of(name: str) -> str:
    """The full name of a ref for seals (BadArgumentError: that is no name)."""
    if _NAME.fullmatch(name) is None:
        raise BadArgumentError(
            f"--ref: {name[:100]!r} is no name of letters, digits, - and _ (below {_FOLDER})"
        )
    return _FOLDER + name


def remember(team: Team, ref: str) -> Receipt | None:
    """Commit the newest seal to ``ref`` and log that; None where it stands there already.

    Raises:
        NotFoundError: nothing was sealed yet.
        RefusedError: there is no repository, git refuses, or the ref was moved meanwhile.
    """
    sealed = newest_seal(team)
    data = format_note(sealed.note)
    try:
        with Repository(team.root) as repository:
            path = repository.name_of(f"{team.root}/{RECORD}/{SEAL}")
            tip = repository.tip(ref)
            blob = repository.ask("hash-object", "-w", "--stdin", given=data).decode().strip()
            if tip and repository.file_at(tip, path) == data:
                return None
            repository.apply(_WHO)
            repository.apply(_SHARED, _WITH_WHOM)
            tree = _tree(repository, path, blob)
            message = f"Seal of {sealed.seal.size} entries of {sealed.seal.origin}"
            commit = _commit(repository, tree, message, tip)
            _move(repository, ref, commit, tip)
            written = repository.ask("cat-file", "commit", commit)
            seconds = repository.commit(commit).seconds
    except GitError as error:
        raise RefusedError(str(error)) from error
    return record(team, Receipt("git", ref, sealed.seal, seconds, written))


def push(team: Team, ref: str, remote: str) -> None:
    """Give the ref to a remote, which is where it binds (UnreachableError: it was not taken).

    Git reaches it as its user has set it up. Of the repository's own settings the remote's address
    counts, and headers for it: no program that the repository names is run.
    """
    if remote.startswith("-"):
        raise BadArgumentError(f"--push: {remote[:100]!r} is no remote")
    try:
        with Repository(team.root) as repository:
            address, named = _address(repository, remote)
            repository.apply(_HEADER)
            _lend(repository)
            words = ("push", "--quiet", "--no-verify", "--no-signed", address, f"{ref}:{ref}")
            repository.ask(*words, environment=_outward(named=named), configured=True)
    except GitError as error:
        raise UnreachableError(
            f"{error}; the ref stands here, and nobody else has it yet"
        ) from error


# Within ----------------------------------------------------------------------------------------


def _tree(repository: Repository, path: str, blob: str) -> str:
    """Write the trees that hold one file at a path from the repository's top."""
    *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
    line = b"100644 blob %b\t%b\0" % (blob.encode(), name)
    tree = repository.ask("mktree", "-z", given=line).decode().strip()
    for part in reversed(folders):
        line = b"040000 tree %b\t%b\0" % (tree.encode(), part)
        tree = repository.ask("mktree", "-z", given=line).decode().strip()
    return tree


def _commit(repository: Repository, tree: str, message: str, tip: str | None) -> str:
    """Write the commit, by whom the user's configuration and variables say."""
    parents = ("-p", tip) if tip else ()
    persons = {name: os.environ[name] for name in _PERSONS if name in os.environ}
    said = repository.ask(
        "commit-tree", "--no-gpg-sign", tree, *parents, "-m", message,
        environment=persons, configured=True,
    )  # fmt: skip
    return said.decode().strip()


def _lend(repository: Repository) -> None:
    """Let git in our directory see the repository's refs, and move them with its own locks."""
    common, folder = repository.place.common, repository.folder
    os.rmdir(f"{folder}/refs")
    for name in ("refs", "packed-refs", "logs"):
        if os.path.lexists(f"{common}/{name}"):
            os.symlink(f"{common}/{name}", f"{folder}/{name}")


def _move(repository: Repository, ref: str, commit: str, tip: str | None) -> None:
    _lend(repository)
    repository.ask("update-ref", ref, commit, tip or "0" * len(commit))


def _address(repository: Repository, remote: str) -> tuple[str, bool]:
    """Where a remote is, and whether the repository says so and not the user."""
    settings = repository.settings
    named = settings.get(f"remote.{remote}.pushurl") or settings.get(f"remote.{remote}.url")
    address, base = (named[-1], repository.top) if named else (remote, os.getcwd())
    if named and (_HELPED.match(address) or address.startswith("-")):
        raise GitError(
            f"the remote {remote} names a program ({address[:100]!r}): nothing is given to it"
        )
    if not _REMOTE.match(address) and (named or os.path.exists(address)):
        address = os.path.join(base, address)
    return address, bool(named)


def _outward(*, named: bool) -> dict[str, str]:
    """The user's environment without what names another repository."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(("GIT_SSH", "GIT_CONFIG_", "GIT_ASKPASS"))
    }
    ways = {"GIT_ALLOW_PROTOCOL": _TRANSPORTS} if named else {}
    theirs = os.environ.get("GIT_ALLOW_PROTOCOL")
    ways |= {} if theirs is None else {"GIT_ALLOW_PROTOCOL": theirs}
    folders = [name for name in os.get_exec_path() if os.path.isabs(name)]
    return {**kept, **ways, "GIT_TERMINAL_PROMPT": "0", "PATH": os.pathsep.join(folders)}
