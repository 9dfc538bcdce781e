"""Walks the versions of a file that git holds, and finds where it did not only grow.

A history is walked parents first, so that the first break is the oldest. At most three versions are
in memory at once. ``--grow-only`` judges one file this way, without a ledger or a team directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import groupby, pairwise

from tripod.ledger import GitError, tell_over
from tripod.ledger.files import read_plain_file
from tripod.verify.anchors.git import MAX_BLOB, Commit, FileChange, Repository
from tripod.verify.anchors.git_folder import find
from tripod.verify.anchors.growth import (
    STAGED,
    Break,
    FileHistory,
    Lost,
    ReadVersions,
    growth_break,
    is_growth,
    is_growth_in_between,
    unconverted_growth,
)
from tripod.verify.check import shown_difference

_MAX_HEADS = 64 * 1024
_KEPT = 3  # versions in memory
_OPEN = 64  # breaks, the newest, that a later commit is held against
_PART = re.compile("sharedindex[.](?:[0-9a-f]{40}|[0-9a-f]{64})").fullmatch
_MARK = 64  # bytes of what a break took away, by which most commits are seen to leave it so


def read_growth(path: str, *, staged: bool = False) -> FileHistory:
    """The history of the file at ``path``, which must be in a git repository's work tree.

    ``staged``: what the next commit would hold is its last version, and the only one that is held
    against those before.
    """
    try:
        with Repository(path) as repository:
            _refuse_beginning(repository, path)
            if staged:
                return _Walk(repository, path).staged(_next_commit(repository))
            return _Walk(repository, path).history()
    except GitError as error:
        top = ""
        with suppress(GitError):
            place = find(path)
            top = "" if place is None else place.top
        return FileHistory(problem=str(error), top=top)


def _refuse_beginning(repository: Repository, path: str) -> None:
    """Refuse a repository that was put where another one around it has versions of the file.

    So a folder that became a submodule would begin each file in it anew (GitError).
    """
    outer = repository.place.outer
    if outer is not None and _has_versions(outer, path, repository.place.common):
        raise GitError(
            f"{path}: {repository.top} is a repository (or submodule) of its own, and the history "
            f"of {outer} around it holds versions of this file: one that began anew cannot vouch "
            "for them; put a plain folder there"
        )


def _has_versions(top: str, path: str, common: str) -> bool:
    """Whether the history of another repository than that of ``common`` has a file.

    A repository that is not read by us says nothing of it.
    """
    within, full = os.path.join(top, "README"), os.path.abspath(path)
    folder = os.path.realpath(os.path.dirname(full))
    name = os.path.relpath(f"{folder}/{os.path.basename(full)}", os.path.realpath(top))
    with suppress(GitError):
        place = find(within)
        if place is not None and place.common != common:
            with Repository(within) as around:
                head = around.tip("HEAD")
                return head is not None and any(around.changes((name,), (head,)))
    return False


def last_line(path: str) -> int:
    """The number of a file's last line, at least 1: where a tail is gone, the finding is there."""
    try:
        data = read_plain_file(path, MAX_BLOB)
    except OSError:
        return 1
    return max(1, data.count(b"\n") + (not data.endswith(b"\n")))


@contextmanager
def open_growth_versions(path: str) -> Iterator[ReadVersions]:
    """Reads the two versions of a break again, while the context is open.

    None where one of them is no plain file, or cannot be read any more.
    """
    opened: list[Repository] = []
    with ExitStack() as stack:

        def read(one: Break) -> tuple[bytes, bytes] | None:
            if not one.old or not (one.new or not one.where):
                return None
            try:
                if not opened:
                    opened.append(stack.enter_context(Repository(path)))
                revision, _, name = one.old.partition(":")
                old = opened[0].file_at(revision, name) if name else opened[0].blob(one.old)
                new = opened[0].blob(one.new) if one.where else read_plain_file(path, MAX_BLOB)
            except (GitError, OSError):
                return None
            return None if old is None or new is None else (old, new)

        yield read


def _next_commit(repository: Repository) -> str:
    """The commit that ``git commit`` would make of the index now, in a place of our own.

    git names the index of a commit that is being made in GIT_INDEX_FILE, from the work tree's top.
    """
    place = repository.place
    named = os.environ.get("GIT_INDEX_FILE") or f"{place.git}/index"
    head, parents = repository.tip("HEAD"), []
    try:
        with suppress(FileNotFoundError):  # nothing was ever staged
            files = {"index": os.path.join(place.top, named)}  # of a split one the rest lies beside
            files |= {one: f"{place.git}/{one}" for one in os.listdir(place.git) if _PART(one)}
            for name, path in files.items():
                data = read_plain_file(path, MAX_BLOB)
                with open(f"{repository.folder}/{name}", "wb") as file:
                    file.write(data)
        with suppress(FileNotFoundError):
            merging = read_plain_file(f"{place.git}/MERGE_HEAD", _MAX_HEADS)
            parents = re.findall(r"(?m)^(?:[0-9a-f]{40}|[0-9a-f]{64})$", merging.decode("latin-1"))
    except OSError as error:
        raise GitError(f"what is staged cannot be read: {error.strerror or error}") from error
    repository.stand_apart("refs/none/")
    tree = repository.ask("write-tree", "--missing-ok").decode("ascii").strip()
    words = [word for one in (*([head] if head else []), *parents) for word in ("-p", one)]
    who = {
        f"GIT_{one}_{what}": "-" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return repository.ask("commit-tree", tree, *words, environment=who).decode("ascii").strip()


def describe_growth_commit(commit: Commit) -> str:
    """A commit for people: its short name, author and day."""
    try:
        day = datetime.fromtimestamp(commit.seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        day = f"time {commit.seconds}"
    return f"commit {commit.name[:12]} by {commit.author}, {day}"


@dataclass
class _Noted:
    """A break as the walk notes it.

    ``at`` is where the two versions part, ``mark`` what stood there (see ``_MARK``), ``added`` how
    many more lines the new one has. ``restored`` names the commit that put it right.
    """

    change: FileChange
    one: Break
    at: int
    mark: bytes
    added: int
    restored: str = ""


class _Walk:
    """One walk over the history of a file."""

    def __init__(self, repository: Repository, path: str) -> None:
        self.repository = repository
        self.path = path
        self.name = repository.name_of(path, link=True)
        # No method of ours: a circle of references would hold the versions after the walk.
        self._bytes = lru_cache(maxsize=_KEPT)(partial(_version, repository, self.name))
        self.below: dict[str, frozenset[str]] = {}
        self.noted: list[_Noted] = []
        self.changed: frozenset[str] = frozenset()
        self.head = ""
        self.merged = self.versions = 0

    def history(self) -> FileHistory:
        """All of it: the commits, the work tree, and what refs once held."""
        repository = self.repository
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            raise GitError(f"{self.path} is a folder: name the files in it that must only grow")
        head = repository.tip("HEAD")
        if head is None:
            raise GitError(f"{repository.top}: nothing is committed yet")
        if not self._walked(head):
            raise GitError(
                f"{self.name}: the history of HEAD holds no version of it; commit it first"
            )
        return self._told((*self._breaks(), *self._work_tree()), tuple(self._lost()))

    def staged(self, commit: str) -> FileHistory:
        """Only what ``commit`` breaks, which stands for what is staged."""
        if not self._walked(commit):
            raise GitError(
                f"{self.name}: no commit of HEAD's history holds it, and it is not staged: is that "
                "its name, from the folder where this runs?"
            )
        self.noted = [noted for noted in self.noted if noted.change.commit.name == commit]
        told = self._told(tuple(one._replace(where=STAGED) for one in self._breaks()))
        return told._replace(unstaged=commit not in self.changed)

    def _walked(self, head: str) -> bool:
        """Judge all versions up to a commit; whether there are any."""
        changes = self.repository.changes((self.name,), (head,))
        self.head, self.changed = head, frozenset(change.commit.name for change in changes)
        for _, group in groupby(tell_over(changes, "reading history"), key=lambda c: c.commit.name):
            self._judge(list(group))
        self.versions = len({change.new for change in changes if change.new})
        return bool(changes)

    def _breaks(self) -> Iterator[Break]:
        for noted in self.noted:
            yield noted.one._replace(restored=noted.restored, added=max(0, noted.added))

    def _told(self, breaks: tuple[Break, ...], lost: tuple[Lost, ...] = ()) -> FileHistory:
        repository = self.repository
        return FileHistory(
            self.name,
            self.versions,
            self.merged,
            breaks,
            lost,
            repository.shallow,
            top=repository.top,
            seen=repository.at,
        )

    def _judge(self, changes: list[FileChange]) -> None:
        """One commit against those of its parents whose file is another."""
        commit, new = changes[0].commit, changes[0].new
        if new and not changes[0].regular:
            self._add(changes[0], "it is no plain file any more")
            return
        if new:
            settled = [change for change in changes if self._settled(change)]
            changes = [change for change in changes if change not in settled]
        now = self._at(new) if new else self._untracked()
        appended = [c for c in changes if c.old and not is_growth(self._bytes(c.old), now)]
        begins = len(commit.parents) > len(appended)
        appended = [change for change in appended if not self._handed_on(change, begins=begins)]
        if not appended:
            return
        others = len(commit.parents) - len(appended)
        if (
            new
            and others
            and all(is_growth_in_between(self._bytes(c.old), self._bytes(new)) for c in appended)
        ):
            self.merged += 1
            return
        for change in appended:
            self._add(change, "" if new else "it was removed")

    def _untracked(self) -> bytes | None:
        """What stands on disk, if git tracks the file no more: then it goes on there."""
        with suppress(OSError):
            if self.repository.file_at("HEAD", self.name) is None:
                return read_plain_file(self.path, MAX_BLOB)
        return None

    def _add(self, change: FileChange, what: str) -> None:
        merge = " (a merge)" if len(change.commit.parents) > 1 else ""
        name = change.new if change.regular else ""
        old, new = self._bytes(change.old), self._at(name)
        one = Break(
            describe_growth_commit(change.commit) + merge,
            what or growth_break(old, new),
            shown_difference(old, new),
            change.old,
            name,
            change.commit.seconds,
        )
        there = new or b""
        at, high = 0, min(len(old), len(there))
        while at < high:  # the longest common beginning, by halves: comparing slices is fast
            middle = (at + high + 1) // 2
            if old[at:middle] == there[at:middle]:
                at = middle
            else:
                high = middle - 1
        added = there.count(b"\n") - old.count(b"\n")
        self.noted.append(_Noted(change, one, at, old[at : at + _MARK], added))

    def _settled(self, change: FileChange) -> bool:
        """Whether a change puts right one break or more that stand before it; they are marked.

        It does if the file is, from its beginning, what it would be without them: the version
        before the first of them, and all that was appended since. Another branch may have done so.
        """
        line = self._undone(change, self._newest(restored=False))
        if line:
            for noted in line:
                noted.restored = describe_growth_commit(change.commit)
            return True
        return bool(self._undone(change, self._newest(restored=True)))

    def _newest(self, *, restored: bool) -> list[_Noted]:
        return [noted for noted in self.noted if bool(noted.restored) is restored][-_OPEN:]

    def _undone(self, change: FileChange, broken: list[_Noted]) -> list[_Noted]:
        """Those of ``broken`` that a change undoes, and nothing besides; [] where it does not."""
        new = self._bytes(change.new) if broken else b""
        for number, first in enumerate(broken):
            if not first.mark or not new.startswith(first.mark, first.at):
                continue
            line = self._line(change, broken[number:])
            want = self._without([noted.change for noted in line], change) if line else None
            if want is not None and is_growth(want, new):
                last = line[-1]
                kept = self._kept(last, new[len(want) :])
                if last.restored and not kept and not last.added:
                    continue  # it takes away what the one that restored it has kept
                last.added = 0 if kept and not last.restored else last.added
                return line
        return []

    def _line(self, change: FileChange, broken: list[_Noted]) -> list[_Noted]:
        """The first of ``broken`` and those that lie between it and a change; [] if it does not."""
        name, after = change.commit.name, self._after(broken[0])
        if name not in after:
            return []
        return [broken[0]] + [
            noted
            for noted in broken[1:]
            if noted.change.commit.name in after and name in self._after(noted)
        ]

    def _handed_on(self, change: FileChange, *, begins: bool) -> bool:
        """Whether a merge keeps what this parent had, but for a break of its other parents.

        That one stands already. ``begins``: the merge begins as another parent has the file, so
        that this one's lines may stand after those.
        """
        if len(change.commit.parents) < 2 or not change.new:
            return False
        old = self._bytes(change.old)
        standing = self._newest(restored=False)
        for number in range(len(standing)):
            line = self._line(change, standing[number:])
            merged = change._replace(old=change.new)
            want = self._without([noted.change for noted in line], merged) if line else None
            if want is not None and (
                is_growth(old, want) or (begins and is_growth_in_between(old, want))
            ):
                return True
        return False

    def _kept(self, broke: _Noted, rest: bytes) -> bool:
        """Whether what a break appended as well, after what it changed, was kept."""
        lines = self._bytes(broke.change.old).count(b"\n")
        appended = (self._at(broke.change.new) or b"").split(b"\n")[lines:]
        return is_growth(b"\n".join(appended), rest)

    def _without(self, broken: list[FileChange], last: FileChange) -> bytes | None:
        """The version before ``last`` without what ``broken`` did; None where that is not told."""
        want = self._bytes(broken[0].old)
        for one, then in pairwise([*broken, last]):
            left, found = self._at(one.new) or b"", self._at(then.old) or b""
            if not is_growth(left, found):
                return None
            want += found[len(left) :]
        return want

    def _after(self, noted: _Noted) -> frozenset[str]:
        """The commits that changed the file and have this break in their history."""
        name = noted.change.commit.name
        if name not in self.below:
            found = self.repository.descendants(name, self.head)
            self.below[name] = self.changed.intersection(found)
        return self.below[name]

    def _work_tree(self) -> Iterator[Break]:
        """What stands on disk follows what is committed; git's own conversion apart."""
        committed = self.repository.file_at("HEAD", self.name)
        if committed is None:
            return  # its removal is a break of the history
        try:
            have: bytes | None = read_plain_file(self.path, MAX_BLOB)
        except OSError:
            have = None
        if have is None:
            yield Break("", "it is not there, or is no plain file", (), "", "")
        elif not is_growth(committed, have) and not is_growth(
            committed, unconverted_growth(have, committed)
        ):
            shown = shown_difference(committed, have)
            yield Break("", growth_break(committed, have), shown, f"HEAD:{self.name}", "")

    def _lost(self) -> Iterator[Lost]:
        """What the branch, and the remote one that it follows, held before they were rewritten."""
        repository = self.repository
        for ref, shared in ((repository.refs.branch, False), (repository.upstream(), True)):
            if ref is None:
                continue
            new = repository.file_at(ref, self.name)
            for commit in repository.abandoned(ref):
                old = repository.file_at(commit.name, self.name)
                broke = old is not None and not is_growth(old, new)
                shown = shown_difference(old or b"", new) if broke else ()
                yield Lost(ref, describe_growth_commit(commit), broke, shown, shared)

    def _at(self, name: str) -> bytes | None:
        return self._bytes(name) if name else None


def _version(repository: Repository, path: str, name: str) -> bytes:
    data = repository.blob(name)
    if data is None:
        raise GitError(
            f"{path}: the version {name} is missing from the repository; `git fetch --refetch "
            "--no-filter` brings it into a clone that was made with --filter"
        )
    return data
