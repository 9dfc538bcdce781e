"""One append's transaction in SQLite: the writer's place, the head, the entries, the fold.

The order of durability is told in ``ledger.sqlite``; steps 1 and 2 of it are here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ledger.chain import Tip, link_all
from ledger.entry import Draft, Entry
from ledger.erasing import erasable, erase
from ledger.errors import (
    ConflictError,
    LedgerDamagedError,
    LedgerError,
    PagesDamagedError,
    UnwritableError,
)
from ledger.head import Guard
from ledger.ids import fresh_ids, now_at
from ledger.lock import FileLock
from ledger.merkle import Tree
from ledger.progress import over, tell
from ledger.reader import read_entries

if TYPE_CHECKING:
    from ledger.store import Fold

_INSERT = (
    "INSERT INTO entries (seq, id, kind, stream, header, salt, body, auth)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def split_stack(stack: bytes) -> list[bytes]:
    """Cut the head's stored stack into its 32-byte hashes."""
    return [stack[at : at + 32] for at in range(0, len(stack), 32)]


def stored_tree(size: int, stack: bytes) -> Tree:
    """The tree that the head's row describes.

    Raises:
        LedgerDamagedError: its size and its stack do not fit each other.
    """
    try:
        return Tree(size, split_stack(stack))
    except ValueError as error:
        raise LedgerDamagedError(
            f"the head row is damaged ({error}); run `tripod verify`"
        ) from error


class SQLiteTransaction:
    """One open append: see ``ledger.store.Transaction``."""

    def __init__(self, db: sqlite3.Connection, fold: Fold | None) -> None:
        """Read the head inside the transaction that the store has begun."""
        self.tables = db
        self._fold = fold
        row = db.execute("SELECT size, origin, last, at, stack, tables FROM head").fetchone()
        self._folded = 0  # how many entries the tables show; behind the head, they are left so
        if row is None:
            self._tip = Tip.start("")
        else:
            size, origin, last, at, stack, self._folded = row
            self._tip = Tip(origin, last, at, stored_tree(size, stack))
        self._stored = row is not None
        self._whole = True

    def check_whole(self) -> None:
        """Refuse to go on behind an append that failed half way, or behind a rollback.

        Raises:
            LedgerError: nothing of this transaction can be recorded any more.
        """
        if not (self._whole and self.tables.in_transaction):
            raise LedgerError(
                "an append of this transaction failed half way: nothing of it was recorded"
            )

    @property
    def size(self) -> int:
        """How many entries the ledger holds, those of this transaction included."""
        return self._tip.tree.size

    def tables_changed(self) -> None:
        """The caller folded the tables itself: read again how many entries they show."""
        self._folded = self.tables.execute("SELECT tables FROM head").fetchone()[0]

    @property
    def at(self) -> str:
        """Time of the newest entry."""
        return self._tip.at

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """Append drafts, all or none; see ``ledger.store.Transaction.append``."""
        self.check_whole()
        tip = self._tip.copy()
        minted = over(fresh_ids(len(drafts)), "linking entries", len(drafts))
        entries, fresh, blobs = link_all(
            tip, drafts, now_at(), minted, self._known, stands=self._stands
        )
        if guard is not None and (fresh or not drafts):  # a retry conflicts with nothing
            self._check_guard(guard)
        if fresh:
            self._tip = tip
            self._whole = False
            self._insert(fresh, blobs)
            self._whole = True
        return entries

    def fork(self, origin: str, draft: Draft) -> Entry:
        """Append ``draft`` as the first entry under another name: a restored copy goes on so.

        The trigger that holds the head's origin fast is away for the length of this append.
        """
        sql = "SELECT sql FROM sqlite_schema WHERE name = 'head_forward_only'"
        trigger = self.tables.execute(sql).fetchone()[0]
        self.tables.execute("DROP TRIGGER head_forward_only")
        self._tip.origin = origin
        entry = self.append([draft])[0]
        self.tables.execute(trigger)
        return entry

    def erase(self, redaction: Draft) -> Entry:
        """Append a redaction and carry it out; see ``ledger.store.Transaction.erase``."""
        self.check_whole()
        seq = redaction.body["seq"]
        body = erasable(self.tables, seq)
        entry = self.append([redaction])[0]
        self._whole = False
        erase(self.tables, seq, body)
        self._whole = True
        return entry

    def _insert(self, fresh: list[Entry], blobs: dict[bytes, bytes]) -> None:
        db = self.tables
        tip = self._tip
        rows = [(e.seq, e.id, e.kind, e.stream, e.header, e.salt, e.body, e.auth) for e in fresh]
        if len(rows) == 1:
            db.execute(_INSERT, rows[0])
        else:
            tell("storing entries")
            db.executemany(_INSERT, rows)
        for digest, blob in blobs.items():
            db.execute(
                "INSERT INTO blobs (sha256, bytes) SELECT ?1, ?2"
                " WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE sha256 = ?1)",
                (digest, blob),
            )
        if tip.tree.full:
            db.executemany(
                "INSERT INTO nodes (level, number, hash) VALUES (?, ?, ?)", tip.tree.full
            )
        if self._fold is not None and self._folded == fresh[0].seq:
            self._fold(db, fresh)
            self._folded = tip.tree.size
        stack = b"".join(tip.tree.stack)
        head = (tip.tree.size, tip.origin, tip.last, tip.at, stack, self._folded)
        if self._stored:
            db.execute(
                "UPDATE head SET size = ?, origin = ?, last = ?, at = ?, stack = ?, tables = ?",
                head,
            )
        else:
            db.execute(
                "INSERT INTO head (only, size, origin, last, at, stack, tables)"
                " VALUES (0, ?, ?, ?, ?, ?, ?)",
                head,
            )
            self._stored = True

    def _known(self, entry_id: str) -> Entry | None:
        row = self.tables.execute("SELECT seq FROM entries WHERE id = ?", (entry_id,)).fetchone()
        if row is None:
            return None
        return next(read_entries(self.tables, row[0], row[0] + 1))

    def _stands(self, entry_id: str) -> bool:
        row = self.tables.execute("SELECT 1 FROM entries WHERE id = ?", (entry_id,)).fetchone()
        return row is not None

    def _check_guard(self, guard: Guard) -> None:
        row = self.tables.execute(
            "SELECT seq FROM entries WHERE seq >= ? AND stream = ? LIMIT 1",
            (guard.size, guard.stream),
        ).fetchone()
        if row is not None:
            raise ConflictError(
                f"{guard.stream} has grown since it was read (entry {row[0]}, seen up to "
                f"{guard.size}): read it again and decide again"
            )


class Writing:
    """The writer's place for the length of a ``with``: lock, BEGIN IMMEDIATE, ..., COMMIT.

    A class and not a generator: a single append spends a tenth of its time on the latter.
    """

    __slots__ = ("_after", "_check", "_db", "_fold", "_lock", "_path", "_transaction")

    def __init__(
        self,
        path: str,
        db: sqlite3.Connection,
        lock: FileLock,
        fold: Fold | None,
        after: Callable[[], None] | None,
        *,
        check: Callable[[], None] | None,
    ) -> None:
        self._path = path
        self._db = db
        self._lock = lock
        self._fold = fold
        self._after = after
        self._check = check

    def __enter__(self) -> SQLiteTransaction:
        if self._db.in_transaction:
            raise LedgerError("this store has a transaction open: append within that one")
        try:
            self._lock.acquire()
            self._db.execute("BEGIN IMMEDIATE")
            if self._check is not None:
                self._check()
            self._transaction = SQLiteTransaction(self._db, self._fold)
        except (sqlite3.Error, OSError) as error:
            self._leave()
            raise explained(error, self._path) from error
        except BaseException:
            self._leave()
            raise
        return self._transaction

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._transaction.check_whole()
                self._commit()
                if self._after is not None:
                    self._after()
            elif isinstance(error, sqlite3.Error):
                raise explained(error, self._path) from error
        finally:
            self._leave()

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise explained(error, self._path) from error

    def _leave(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        finally:
            self._lock.release()


_CLEAR = ("attempt to write a readonly database", "database or disk is full")


def explained(error: Exception, path: str) -> Exception:
    """The error to raise for one of SQLite or the system; itself where it is not about ``path``."""
    text = str(error)
    if isinstance(error, OSError):
        if error.filename is None or not str(error.filename).startswith(path):
            return error
        return UnwritableError(f"{path}: {error.strerror}; nothing was recorded")
    if isinstance(error, sqlite3.OperationalError):
        if any(word in text for word in ("readonly", "disk is full", "disk I/O", "unable to open")):
            why = "" if text in _CLEAR else " (is the disk full, or may it only be read?)"
            return UnwritableError(f"{path}: {text}{why}; nothing was recorded")
        if "locked" in text:
            return UnwritableError(
                f"{path}: another program holds the database for more than 30 s; try again"
            )
    if is_malformed(error):
        return pages_damaged(error, path)
    return LedgerDamagedError(f"{path}: {text}; run `tripod verify {path}`")


def is_malformed(error: Exception) -> bool:
    """Whether SQLite found pages of a file that make no sense."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def pages_damaged(error: Exception, path: str) -> PagesDamagedError:
    """What is said then, of whatever act."""
    return PagesDamagedError(
        f"{path}: {error}: pages of the file are damaged. Run `tripod rebuild`: it copies the "
        "entries into a new file, if they are sound, and keeps this one"
    )
