"""Walks the versions of one file that git holds, and says where it did not only grow.

Reading is here, judging in ``verify.growth``. A history is walked parents first, so that the first
break is the oldest. At most three versions are in memory at once.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby

from ledger.plain import read_plain
from ledger.progress import over
from verify.excerpt import difference
from verify.git import MAX_BLOB, Change, Commit, GitError, Repository
from verify.growth import Break, History, Lost, departs, follows, keeps, unconverted

__all__ = ["read_history", "versions", "words"]

_KEPT = 3  # versions in memory


def read_history(path: str) -> History:
    """The history of the file at ``path``, which must be in a git repository's work tree."""
    try:
        with Repository(path) as repository:
            return _Walk(repository, path).history()
    except GitError as error:
        return History(problem=str(error))


@contextmanager
def versions(path: str) -> Iterator[Callable[[Break], tuple[bytes, bytes] | None]]:
    """Reads the two versions of a break again, while the context is open.

    None where one of them is no plain file, or cannot be read any more.
    """
    opened: list[Repository] = []

    def read(one: Break) -> tuple[bytes, bytes] | None:
        if not one.old or not (one.new or not one.where):
            return None
        try:
            if not opened:
                opened.append(Repository(path))
            old = opened[0].blob(one.old)
            new = opened[0].blob(one.new) if one.where else read_plain(path, MAX_BLOB)
        except (GitError, OSError):
            return None
        return None if old is None or new is None else (old, new)

    try:
        yield read
    finally:
        for repository in opened:
            repository.close()


def words(commit: Commit) -> str:
    """A commit for people: its short name, author and day."""
    return f"commit {commit.name[:12]} by {commit.author}, {_day(commit.seconds)}"


def _day(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"time {seconds}"


class _Walk:
    """One walk; ``bytes_of`` remembers the few versions that are compared next."""

    def __init__(self, repository: Repository, path: str) -> None:
        self.repository = repository
        self.path = path
        self.name = repository.name_of(path)
        self.recent: OrderedDict[str, bytes] = OrderedDict()
        self.breaks: list[Break] = []
        self.merged = 0

    def history(self) -> History:
        """All of it: the commits, the work tree, and what refs once held."""
        repository = self.repository
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            message = f"{self.path} is a folder: name the files in it that must only grow"
            raise GitError(message)
        if repository.tip("HEAD") is None:
            message = f"{repository.top}: nothing is committed yet"
            raise GitError(message)
        changes = repository.changes((self.name,), "HEAD")
        if not changes:
            message = f"{self.name}: the history of HEAD holds no version of it; commit it first"
            raise GitError(message)
        for _, group in groupby(over(changes, "reading history"), key=lambda c: c.commit.name):
            self._judge(list(group))
        self._work_tree()
        versions = {change.new for change in changes if change.new}
        return History(
            self.name,
            len(versions),
            self.merged,
            tuple(self.breaks),
            tuple(self._lost()),
            repository.shallow,
        )

    def _judge(self, changes: list[Change]) -> None:
        """One commit against those of its parents whose file is another."""
        commit, new = changes[0].commit, changes[0].new
        if new and not changes[0].regular:
            self._add(changes[0], "it is no plain file any more")
            return
        appended = [c for c in changes if c.old and not follows(self._bytes(c.old), self._at(new))]
        if not appended:
            return
        others = len(commit.parents) - len(appended)
        if new and others and all(keeps(self._bytes(c.old), self._bytes(new)) for c in appended):
            self.merged += 1
            return
        for change in appended:
            self._add(change, "" if new else "it was removed")

    def _add(self, change: Change, what: str) -> None:
        merge = " (a merge)" if len(change.commit.parents) > 1 else ""
        name = change.new if change.regular else ""
        old, new = self._bytes(change.old), self._at(name)
        self.breaks.append(
            Break(
                words(change.commit) + merge,
                what or departs(old, new),
                difference(old, new),
                change.old,
                name,
                change.commit.seconds,
            )
        )

    def _work_tree(self) -> None:
        """What stands on disk follows what is committed; git's own conversion apart."""
        committed = self.repository.blob(f"HEAD:{self.name}")
        if committed is None:
            return  # its removal is a break of the history
        try:
            have: bytes | None = read_plain(self.path, MAX_BLOB)
        except OSError:
            have = None
        if have is None:
            self.breaks.append(Break("", "it is not there, or is no plain file", (), "", ""))
        elif not follows(committed, have) and not follows(committed, unconverted(have, committed)):
            shown = difference(committed, have)
            old = f"HEAD:{self.name}"
            self.breaks.append(Break("", departs(committed, have), shown, old, ""))

    def _lost(self) -> Iterator[Lost]:
        """What the branch, and the remote one that it follows, held before they were rewritten."""
        repository = self.repository
        for ref, shared in ((repository.branch(), False), (repository.upstream(), True)):
            if ref is None:
                continue
            new = repository.blob(f"{ref}:{self.name}")
            for commit in repository.abandoned(ref):
                old = repository.blob(f"{commit.name}:{self.name}")
                broke = old is not None and not follows(old, new)
                shown = difference(old or b"", new) if broke else ()
                yield Lost(ref, words(commit), broke, shown, shared)

    def _at(self, name: str) -> bytes | None:
        return self._bytes(name) if name else None

    def _bytes(self, name: str) -> bytes:
        data = self.recent.get(name)
        if data is None:
            data = self.repository.blob(name)
            if data is None:
                message = f"{self.name}: the version {name} is missing from the repository"
                raise GitError(message)
            self.recent[name] = data
        self.recent.move_to_end(name)
        while len(self.recent) > _KEPT:
            self.recent.popitem(last=False)
        return data
