"""Reads the history of a git repository by its plumbing, as one reads a stranger's disk.

Git runs with a fixed environment: no configuration of the user or the system, no hooks, pager,
filters, external diffs, network or replaced objects, and none of the repository's own settings
that would change an answer. Answers are bounded, paths are literal and stand behind ``--``.
``GitError`` says what could not be read; nothing is ever written.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha1, sha256
from typing import IO, NamedTuple, Self

__all__ = ["MAX_BLOB", "Change", "Commit", "GitError", "Repository"]

MAX_BLOB = 256 * 1024 * 1024
_MAX_ANSWER = 256 * 1024 * 1024
_MAX_LINE = 64 * 1024
_ZEROS = re.compile("0+")
_SETTINGS = (
    # Who owns the folder does not matter: nothing that its configuration names is ever run.
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    # The commit-graph is a cache that nothing binds to the commits: it could name other parents.
    "core.commitGraph=false",
    "core.quotePath=false",
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_COMMIT = "--pretty=format:%x01%H%x00%P%x00%an <%ae>%x00%ct"


class GitError(Exception):
    """The repository cannot be asked; the text says why, and where it can be, what to do."""


class Commit(NamedTuple):
    """A commit's full name, its parents', its author, and its own time (seconds since 1970)."""

    name: str
    parents: tuple[str, ...]
    author: str
    seconds: int


class Change(NamedTuple):
    """How a commit's file differs from that of one of its parents.

    ``old`` and ``new`` name the bytes; '' where there is no such file. ``regular`` is whether the
    new one is a plain file.
    """

    commit: Commit
    path: str
    old: str
    new: str
    regular: bool


class Repository:
    """The git repository that a path lies in; a context, since it keeps a reader of blobs open."""

    def __init__(self, path: str) -> None:
        """Find it upwards from ``path``, which need not be there (any more).

        Raises:
            GitError: git is not installed, or there is no repository with a work tree.
        """
        full = os.path.abspath(path)
        folder = full
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        self._folder = folder
        self._reader: subprocess.Popen[bytes] | None = None
        said = self._ask("rev-parse", "--show-toplevel", "--is-shallow-repository", "--git-dir")
        lines = said.decode("utf-8", "surrogateescape").split("\n")
        if len(lines) < 3 or not lines[0]:
            message = f"{path}: the repository has no work tree"
            raise GitError(message)
        self.top = lines[0]
        self.shallow = lines[1] == "true"
        self._folder = self.top

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the reader of blobs."""
        if self._reader is not None:
            self._reader.kill()
            self._reader.communicate()
            self._reader = None

    def name_of(self, path: str) -> str:
        """A path as the repository calls it: from its top, with forward slashes.

        Raises:
            GitError: it lies outside, or holds a line break.
        """
        real = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), "")
        top = os.path.join(os.path.realpath(self.top), "")
        if not real.startswith(top) or "\n" in path:
            message = f"{path} is no path inside the repository {self.top}"
            raise GitError(message)
        return real[len(top) :] + os.path.basename(os.path.abspath(path))

    def tip(self, revision: str) -> str | None:
        """The commit that a revision stands for; None where there is none."""
        try:
            said = self._ask(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
            )
        except GitError:
            return None
        return said.decode("ascii", "replace").strip() or None

    def branch(self) -> str | None:
        """The full name of the branch that is checked out; None where HEAD names a commit."""
        try:
            return self._ask("symbolic-ref", "--quiet", "HEAD").decode("utf-8", "replace").strip()
        except GitError:
            return None

    def upstream(self) -> str | None:
        """The full name of the remote branch that this one follows; None where there is none."""
        try:
            said = self._ask("rev-parse", "--symbolic-full-name", "@{upstream}")
        except GitError:
            return None
        return said.decode("utf-8", "replace").strip() or None

    def changes(self, paths: Iterable[str], *revisions: str) -> list[Change]:
        """Every change of the files in the history of ``revisions``, parents before children.

        Nothing is simplified: both sides of each merge are walked, and a merge is compared with
        each of its parents.
        """
        names = tuple(paths)
        walk = ("rev-list", "--topo-order", "--reverse", "--full-history", *revisions)
        listed = self._ask(*walk, "--", *names)
        if not listed:
            return []
        said = self._ask(
            "diff-tree", "--stdin", "-m", "-r", "--root", "--raw", "-z", "--no-abbrev",
            "--no-renames", "--no-ext-diff", "--no-textconv", _COMMIT, "--", *names,
            given=listed,
        )  # fmt: skip
        return list(_changes(said))

    def abandoned(self, ref: str) -> list[Commit]:
        """Commits that the ref once named, as its reflog says, and that are not in its history.

        The newest first. A clone has no reflog of what was before it.
        """
        try:
            said = self._ask("log", "-g", "-n", "2000", "--format=%H", ref, "--")
        except GitError:  # no reflog
            return []
        tips = list(dict.fromkeys(said.decode("ascii", "replace").split()))
        if not tips:
            return []
        given = "\n".join([*tips, f"^{ref}"]) + "\n"
        gone = set(self._ask("rev-list", "--stdin", given=given.encode()).decode().split())
        lost = [tip for tip in tips if tip in gone]
        if not lost:
            return []
        said = self._ask("diff-tree", "--stdin", "-s", "--root", "-z", _COMMIT,
                         given="\n".join(lost).encode() + b"\n")  # fmt: skip
        return list(_commits(said))

    def blob(self, name: str) -> bytes | None:
        """The bytes of a blob by its name, or of ``<commit>:<path>``; None where there is none.

        Raises:
            GitError: it is larger than ``MAX_BLOB``, or does not hash to its name.
        """
        if not name or "\n" in name:
            return None
        reader = self._reader or self._start("cat-file", "--batch")
        self._reader = reader
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
        reader.stdin.flush()
        words = reader.stdout.readline(_MAX_LINE).split()
        if len(words) != 3 or words[1] not in (b"blob", b"commit", b"tree", b"tag"):
            if words[-1:] in ([b"missing"], [b"ambiguous"]):
                return None
            message = f"git cannot give {name}: the repository is damaged (`git fsck` says more)"
            raise GitError(message)
        size = int(words[2])
        if size > MAX_BLOB:
            message = f"{name} has {size} bytes, more than {MAX_BLOB}: it is not read"
            raise GitError(message)
        data = reader.stdout.read(size + 1)[:-1]
        if words[1] != b"blob":
            return None
        if len(data) != size or _name(data, len(words[0])) != words[0].decode():
            message = f"the object {words[0].decode()} does not hash to its name: run `git fsck`"
            raise GitError(message)
        return data

    # Within ------------------------------------------------------------------------------------

    def _start(
        self,
        *arguments: str,
        stdin: IO[bytes] | int = subprocess.PIPE,
        errors: IO[bytes] | int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT}
        try:
            return subprocess.Popen(
                ("git", "--no-pager", "-C", self._folder, *settings, *arguments),
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            message = f"git cannot be run: {error.strerror or error}; install it, or mend the PATH"
            raise GitError(message) from error

    def _ask(self, *arguments: str, given: bytes = b"") -> bytes:
        """What git says on its standard output (GitError: it fails, or says far too much)."""
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
            source.write(given)
            source.seek(0)
            with self._start(*arguments, stdin=source, errors=errors) as process:
                assert process.stdout is not None
                said = process.stdout.read(_MAX_ANSWER + 1)
                if len(said) > _MAX_ANSWER:
                    process.kill()
                    message = f"git {arguments[0]} says more than {_MAX_ANSWER} bytes: not read"
                    raise GitError(message)
                status = process.wait()
            if status:
                errors.seek(0)
                reason = errors.read(2000).decode("utf-8", "replace").strip().split("\n")[0]
                message = f"{self._folder}: git {arguments[0]}: {reason or f'exit {status}'}"
                raise GitError(message)
        return said


def _commits(said: bytes) -> Iterator[Commit]:
    """Read an answer of commits alone: four fields each, the first begins with the byte 1."""
    fields = said.split(b"\x00")
    at = 0
    while at + 3 < len(fields):
        if fields[at].lstrip(b"\n").startswith(b"\x01"):
            yield _commit(fields[at : at + 4])
            at += 3
        at += 1


def _commit(fields: list[bytes]) -> Commit:
    first, parents, author, rest = fields
    name = first.lstrip(b"\n")[1:]
    seconds = re.match(rb"-?\d+", rest)
    return Commit(
        name.decode("ascii"),
        tuple(parents.decode("ascii").split()),
        author.decode("utf-8", "replace"),
        int(seconds[0]) if seconds else 0,
    )


def _changes(said: bytes) -> Iterator[Change]:
    """Read the answer of ``diff-tree``: fields end in NUL, a commit begins with the byte 1."""
    fields = said.split(b"\x00")
    commit: Commit | None = None
    at = 0
    while at < len(fields) - 1:
        field = fields[at].lstrip(b"\n")
        if field.startswith(b"\x01"):
            commit = _commit(fields[at : at + 4])
            field = fields[at + 3].partition(b"\n")[2]
            at += 3
        if field.startswith(b":") and commit is not None:
            _, mode, old, new, _ = field[1:].decode("ascii").split(" ")
            path = fields[at + 1].decode("utf-8", "surrogateescape")
            gone, born = _ZEROS.fullmatch(new), _ZEROS.fullmatch(old)
            yield Change(
                commit, path, "" if born else old, "" if gone else new, mode.startswith("100")
            )
            at += 1
        at += 1


def _name(data: bytes, length: int) -> str:
    """The name that git gives to these bytes, in a repository of SHA-1 or of SHA-256."""
    kind = sha1 if length == 40 else sha256
    return kind(b"blob %d\x00" % len(data) + data).hexdigest()
