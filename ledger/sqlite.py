"""The SQLite store: the only road by which entries reach a database file.

The order of durability, and what it means if we die between two steps:

1. take the writer's file lock. Dead here: nothing happened.
2. BEGIN IMMEDIATE; read the head inside the transaction; decide; link; insert header, body,
   blobs and tree nodes; fold the table projections, with their cursor; COMMIT. Dead before the
   COMMIT returned: nothing happened, or (if the disk already had it) the whole act did; a caller
   who was not answered asks by the entry's id. Dead after it: the entries are the truth.
3. the *file* projections are written (``tripod.team`` does it, by the code that ``rebuild``
   uses). Dead here: the next command sees the files' cursor behind the head and does it.
4. the caller is answered. Nothing answered is ever lost.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ledger.entry import Draft, Entry
from ledger.erasing import sweep, unswept
from ledger.errors import LedgerDamagedError, NoLedgerError
from ledger.head import Guard, Head
from ledger.lock import FileLock
from ledger.merkle import Tree
from ledger.reader import block_nodes, odd_beside, parsed, read_entries
from ledger.schema import SCHEMA_VERSION, check_guards, check_ours, migrate
from ledger.writing import Writing, explained, stored_tree

if TYPE_CHECKING:
    from ledger.store import Fold

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA secure_delete=ON",
    "PRAGMA trusted_schema=OFF",
    # A checkpoint every 16 MB of write-ahead log: one every 4 MB costs single appends a tenth.
    "PRAGMA wal_autocheckpoint=4000",
)


class SQLiteStore:
    """A ledger in one SQLite file; see ``ledger.store.Store``."""

    def __init__(self, path: str, *, fold: Fold | None = None, create: bool = False) -> None:
        """Open the ledger at ``path``; ``fold`` keeps table projections in each append.

        Raises:
            NoLedgerError: there is no file and ``create`` is false.
            LedgerDamagedError: the file cannot be read as a ledger.
            UnwritableError: the folder or the file refuses writing.
        """
        self.path = path
        self._fold = fold
        self._guarded = -1  # the schema's cookie when its triggers were looked at
        self._lock = FileLock(path + ".lock")
        if not create and not os.path.exists(path):
            raise NoLedgerError(f"no ledger at {path}: `tripod init` makes one")
        odd = odd_beside(os.path.realpath(path))
        if odd is not None:
            raise LedgerDamagedError(f"{path}: {odd}")
        with _errors(path):
            self._db = sqlite3.connect(
                path, timeout=30, isolation_level=None, cached_statements=256
            )
            try:
                with parsed():
                    self._begin()
            except BaseException:
                self.close()
                raise

    def _begin(self) -> None:
        """Look whose file it is before a byte of it changes; one process makes it, others wait."""
        if check_ours(self._db) == SCHEMA_VERSION:
            self._set_pragmas()
            return
        with self._lock:
            self._set_pragmas()
            check_guards(self._db)
            migrate(self._db)

    def _check_guards(self) -> None:
        """Refuse to fire a trigger that is not ours; looked at again where the schema changed."""
        cookie = self._db.execute("PRAGMA schema_version").fetchone()[0]
        if cookie != self._guarded:
            check_guards(self._db)
            self._guarded = cookie

    def _set_pragmas(self) -> None:
        for pragma in _PRAGMAS:
            self._db.execute(pragma)

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, for reading table projections outside a transaction."""
        return self._db

    @property
    def origin(self) -> str:
        """The ledger's own name ('' before it is opened)."""
        row = self._db.execute("SELECT origin FROM head").fetchone()
        return row[0] if row else ""

    @contextmanager
    def derived(self) -> Iterator[sqlite3.Connection]:
        """A transaction for what can be made anew (cursors, the manifest): no sync of its own.

        The next append's sync carries it; what a power cut takes of it is redone.
        """
        db = self._db
        try:
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("BEGIN IMMEDIATE")
            try:
                self._check_guards()
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        finally:
            db.execute("PRAGMA synchronous=FULL")

    def transaction(
        self, after: Callable[[], None] | None = None, *, mends: bool = False
    ) -> Writing:
        """Take the writer's place; leave with an exception and nothing has happened.

        ``after`` runs behind the COMMIT, while this writer still has the place: there the files
        are written (step 3 above). ``mends``: the caller begins by removing triggers that are not
        ours (``ledger.guards``); else the transaction is refused where there are some.

        Raises:
            LedgerDamagedError: on entering, where a trigger is not ours.
        """
        check = None if mends else self._check_guards
        return Writing(self.path, self._db, self._lock, self._fold, after, check=check)

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """One transaction that appends ``drafts``."""
        with self.transaction() as transaction:
            return transaction.append(drafts, guard)

    def head(self) -> Head:
        """Size and root as of now."""
        row = self._db.execute("SELECT size, stack FROM head").fetchone()
        if row is None:
            return Head(0, Tree().root())
        return Head(row[0], stored_tree(row[0], row[1]).root())

    def read(
        self, start: int = 0, stop: int | None = None, stream: str | None = None
    ) -> Iterator[Entry]:
        """Entries [start, stop) in order, with their exact bytes."""
        return read_entries(self._db, start, stop, stream)

    def blob(self, digest: bytes) -> bytes | None:
        """The blob with this SHA-256, or None."""
        row = self._db.execute("SELECT bytes FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
        return row[0] if row else None

    def node(self, height: int, index: int) -> bytes:
        """Root of a perfect subtree, from the stored nodes and at most 256 leaves."""
        return block_nodes(self._db)(height, index)

    def wait(self, size: int, timeout: float) -> int:
        """Wait for more than ``size`` entries, at most ``timeout`` seconds; give the size."""
        until = time.monotonic() + timeout
        while True:
            row = self._db.execute("SELECT size FROM head").fetchone()
            now = row[0] if row else 0
            if now > size or time.monotonic() >= until:
                return now
            time.sleep(0.02)

    def unswept(self) -> list[int]:
        """Erased entries whose bytes may still lie in the file or beside it."""
        return unswept(self._db)

    def sweep(self, wait_ms: int = 10_000) -> bool:
        """Write the file anew without what was erased; False: somebody reads, do it again later.

        Args:
            wait_ms: how long to wait for who reads older pages.

        Raises:
            UnwritableError: the disk has no room for a copy, or refuses.
        """
        with self._lock, _errors(self.path):
            check_guards(self._db)
            return sweep(self._db, wait_ms)

    def durability(self) -> str:
        """``fsync`` where SQLite syncs each commit, else ``none``."""
        level = self._db.execute("PRAGMA synchronous").fetchone()[0]
        return "fsync" if level >= 2 else "none"  # 2 is FULL

    def close(self) -> None:
        """Close the database."""
        self._db.close()
        self._lock.close()


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """What SQLite and the system say, in words that a person can act on."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explained(error, path) from error
