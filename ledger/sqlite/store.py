"""The SQLite store: the only way by which entries reach a database file, and bodies leave it.

The order of durability, and what it means if we die between two steps:

1. take the writer's file lock. Dead here: nothing happened.
2. BEGIN IMMEDIATE; read the head inside the transaction; decide; link; insert header, body,
   blobs and tree nodes; fold the table projections, with their cursor; COMMIT. Dead before the
   COMMIT returned: nothing happened, or (if the disk already had it) the whole act did; a caller
   who was not answered asks by the entry's id. Dead after it: the entries are the truth.
3. the *file* projections are written (``tripod.team.team`` does it, by the code that ``rebuild``
   uses). Dead here: the next command sees the files' cursor behind the head and does it.
4. the caller is answered. Nothing answered is ever lost.

``SQLiteTransaction`` does steps 1 and 2.

Erasing: body and salt of an entry lie beside its header, so they can be erased while every hash
still holds. A ``redacted`` entry records it, with a reason and a name; its body's ``keep`` replaces
the erased body from then on, also for a fold that begins at the start. Its id is made from the
number of the erased entry: it can be erased once, and its redaction is found without a search.

``secure_delete`` overwrites the bytes in their page, but not everywhere: the write-ahead log holds
older pages, and SQLite promises nothing about copies in pages that were balanced before. So the
sweep writes the whole database anew (``VACUUM``) and empties the log. Until it is done the erased
entries stand in the table ``unswept`` (``written``: the database was written anew, the log is
left); the next command that finds one there finishes the sweep.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tripod.ledger import codec
from tripod.ledger.chain import Tip, link_all
from tripod.ledger.entry import Draft, Entry, entry_blob_mark, entry_blobs
from tripod.ledger.errors import (
    ConflictError,
    LedgerDamagedError,
    LedgerError,
    NoLedgerError,
    PagesDamagedError,
    UnwritableError,
)
from tripod.ledger.files import READ_ONLY, FileLock, ends_at_once, is_read_only, read_boot_id
from tripod.ledger.ids import fresh_ids, now_at
from tripod.ledger.progress import tell_over, tell_progress
from tripod.ledger.sqlite.group import AppendGroup, join_group, leave_group
from tripod.ledger.sqlite.reader import (
    COLUMNS,
    OTHERS_LOG,
    SYNCED,
    SQLiteReader,
    odd_reader_side_file,
    read_block_nodes,
    read_only,
    read_stored_tree,
    reader_keeps_log,
    reader_parses,
)
from tripod.ledger.sqlite.schema import (
    SCHEMA_VERSION,
    check_schema,
    check_schema_guards,
    migrate_schema,
)
from tripod.ledger.store import Guard

if TYPE_CHECKING:
    from tripod.ledger.store import Fold

_INSERT = f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class SQLiteTransaction(SQLiteReader):
    """One open append: see ``tripod.ledger.store.Transaction``."""

    _columns, _synced = COLUMNS, SYNCED  # the store has migrated the file

    def __init__(self, db: sqlite3.Connection, fold: Fold | None) -> None:
        super().__init__(db)
        self._fold = fold
        row = db.execute("SELECT size, origin, last, at, stack, tables FROM head").fetchone()
        self._folded = 0  # how many entries the tables show; behind the head, they are left so
        if row is None:
            self._tip = Tip.start("")
        else:
            size, origin, last, at, stack, self._folded = row
            self._tip = Tip(origin, last, at, read_stored_tree(size, stack))
        self._stored = row is not None
        self._whole = True

    @property
    def is_whole(self) -> bool:
        """Whether it can go on; see ``tripod.ledger.store.Transaction``."""
        return self._whole and self.db.in_transaction

    def check_whole(self) -> None:
        """Refuse to go on after an append that failed half way, or a rollback (LedgerError)."""
        if not self.is_whole:
            raise LedgerError(
                "an append of this transaction failed half way: nothing of it was recorded"
            )

    @property
    def size(self) -> int:
        """How many entries the ledger holds, those of this transaction included."""
        return self._tip.tree.size

    def tables_folded(self) -> None:
        """The caller folded the tables anew; see ``tripod.ledger.store.Transaction``."""
        self.db.execute("UPDATE head SET tables = size")
        self._folded = self.size

    @property
    def at(self) -> str:
        """Time of the newest entry ('' before there is one)."""
        return self._tip.at if self.size else ""

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """Append drafts, all or none; see ``tripod.ledger.store.Transaction.append``."""
        self.check_whole()
        tip = self._tip.copy()

        def known(entry_id: str) -> Entry | None:
            seq = self.seq_of(entry_id)
            return None if seq is None else self.entry(seq)

        def stands(entry_id: str) -> bool:
            return self.seq_of(entry_id) is not None

        minted = tell_over(fresh_ids(len(drafts)), "linking entries", len(drafts))
        entries, fresh, blobs = link_all(tip, drafts, now_at(), minted, known, stands=stands)
        if guard is not None and (fresh or not drafts):  # a retry conflicts with nothing
            grown = self._value(
                "SELECT seq FROM entries WHERE seq >= ? AND stream = ? LIMIT 1",
                (guard.size, guard.stream),
            )
            if grown is not None:
                raise ConflictError(
                    f"{guard.stream} has grown since it was read (entry {grown}, seen up to "
                    f"{guard.size}): read it again and decide again"
                )
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
        trigger = self.db.execute(sql).fetchone()[0]
        self.db.execute("DROP TRIGGER head_forward_only")
        self._tip.origin = origin
        entry = self.append([draft])[0]
        self.db.execute(trigger)
        return entry

    def erase(self, redaction: Draft) -> Entry:
        """Append a redaction and carry it out; see ``tripod.ledger.store.Transaction.erase``."""
        self.check_whole()
        seq = redaction.body["seq"]
        body = body_to_erase(self.db, seq)
        entry = self.append([redaction])[0]
        self._whole = False
        erase(self.db, seq, body)
        self._whole = True
        return entry

    def _insert(self, fresh: list[Entry], blobs: dict[bytes, bytes]) -> None:
        db = self.db
        tip = self._tip
        rows = [(e.seq, e.id, e.kind, e.stream, e.header, e.salt, e.body, e.auth) for e in fresh]
        if len(rows) == 1:
            db.execute(_INSERT, rows[0])
        else:
            tell_progress("storing entries")
            db.executemany(_INSERT, rows)
        if blobs:
            db.executemany(
                "INSERT INTO blobs (sha256, bytes) SELECT ?1, ?2"
                " WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE sha256 = ?1)",
                blobs.items(),
            )
        if tip.tree.full:
            db.executemany(
                "INSERT INTO nodes (level, number, hash) VALUES (?, ?, ?)", tip.tree.full
            )
        if self._fold is not None and self._folded == fresh[0].seq:
            self._fold(db, fresh, lambda digest: blobs.get(digest) or self.blob(digest))
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
        try:
            self._lock.acquire()
            self._db.execute("BEGIN IMMEDIATE")
            if self._check is not None:
                self._check()
            self._transaction = SQLiteTransaction(self._db, self._fold)
        except (sqlite3.Error, OSError) as error:
            self._leave()
            raise sqlite_store_error(error, self._path) from error
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
                try:
                    self._db.execute("COMMIT")
                except sqlite3.Error as problem:
                    raise sqlite_store_error(problem, self._path) from problem
                if self._after is not None:
                    self._after()
            elif isinstance(error, sqlite3.Error):
                raise sqlite_store_error(error, self._path) from error
        finally:
            self._leave()

    def _leave(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        finally:
            self._lock.release()


_CLEAR = ("attempt to write a readonly database", "database or disk is full")


def sqlite_store_error(error: Exception, path: str) -> Exception:
    """The error to raise for one of SQLite or the system; itself where it is not about ``path``."""
    text = str(error)
    if isinstance(error, OSError):
        if error.filename is None or not str(error.filename).startswith(path):
            return error
        return UnwritableError(f"{path}: {error.strerror}; nothing was recorded")
    if isinstance(error, sqlite3.OperationalError):
        if getattr(error, "sqlite_errorname", "") == "SQLITE_IOERR_FSYNC":
            # The commit is in the log, whole, and SQLite takes it back in its memory alone: if the
            # disk goes on refusing, the log stays, and the next process finds a commit in it.
            return UnwritableError(
                f"{path}: the disk did not confirm what was written ({text}): it may be recorded "
                "or not. Look before you do it again (`tripod log`)"
            )
        if any(word in text for word in ("readonly", "disk is full", "disk I/O", "unable to open")):
            why = "" if text in _CLEAR else " (is the disk full, or may it only be read?)"
            return UnwritableError(f"{path}: {text}{why}; nothing was recorded")
        if "locked" in text:
            return UnwritableError(
                f"{path}: another program holds the database for more than 30 s; try again"
            )
    if is_malformed_sqlite(error):
        return damaged_sqlite_error(error, path)
    return LedgerDamagedError(f"{path}: {text}; run `tripod verify {path}`")


def is_malformed_sqlite(error: Exception) -> bool:
    """Whether SQLite found pages of a file that make no sense."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def damaged_sqlite_error(error: Exception, path: str) -> PagesDamagedError:
    """The error to raise when SQLite reports a corrupt page."""
    return PagesDamagedError(
        f"{path}: {error}: pages of the file are damaged. Run `tripod rebuild`: it copies the "
        "entries into a new file, if they are sound, and keeps this one"
    )


_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA secure_delete=ON",
    "PRAGMA trusted_schema=OFF",
    # A checkpoint every 16 MB of write-ahead log: one every 1 MB costs batches a fifth (ADR 0030).
    "PRAGMA wal_autocheckpoint=4000",
)
KEPT_LOG = 2**20
"""How many bytes of write-ahead log may stay beside a database that nobody has open any more."""
_LEFT_OPEN: list[sqlite3.Connection] = []
"""Connections that the end of this process closes (``_close_database``)."""


def _close_database(db: sqlite3.Connection, path: str, most: int) -> None:
    """Close a database that was written, and leave a write-ahead log of ``most`` bytes beside it.

    The last to close a database has SQLite move the log into it and delete it: three waits for the
    disk, more than the act itself took. Python can forbid that from 3.12 on. Before that a command
    leaves the connection to the end of its process: what the system closes is not moved. Its
    statements are done and no transaction is open, so it stands in nobody's way until then.
    """
    with suppress(OSError, sqlite3.Error):
        if os.stat(f"{path}-wal").st_size > most:
            db.execute("PRAGMA busy_timeout=0")  # where others read, a later one does it
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE)
    elif ends_at_once():
        _LEFT_OPEN.append(db)
        return
    db.close()


class SQLiteStore(SQLiteReader):
    """A ledger in one SQLite file; see ``tripod.ledger.store.Store``."""

    _columns, _synced = COLUMNS, SYNCED  # it migrates the file when it opens it

    def __init__(self, path: str, *, fold: Fold | None = None, create: bool = False) -> None:
        """Open the ledger at ``path``; ``fold`` keeps table projections in each append.

        Where there is no file and ``create`` is false, that is a NoLedgerError; one that cannot be
        read as a ledger is a LedgerDamagedError, one that refuses writing an UnwritableError.
        """
        if is_read_only():
            raise UnwritableError(f"{path}: it is not opened to be written ({READ_ONLY} is set)")
        self.path = path
        self._fold = fold
        self.kept_log = KEPT_LOG
        """How many bytes of write-ahead log ``close`` may leave."""
        self.schema = -1
        """SQLite's number of the schema whose triggers were looked at: it changes with the schema.

        That is the schema as the newest transaction began.
        """
        self._pid = os.getpid()
        self._group = AppendGroup()
        self._group_key: Hashable = None
        self._lock = FileLock(path + ".lock")
        if not create and not os.path.exists(path):
            raise NoLedgerError(f"no ledger at {path}: `tripod init` makes one")
        odd = odd_reader_side_file(os.path.realpath(path))
        if odd is not None:
            raise LedgerDamagedError(f"{path}: {odd}")
        with _errors(path):
            if os.path.lexists(f"{path}-wal") and not reader_keeps_log(os.path.realpath(path)):
                raise LedgerDamagedError(f"{path}: {OTHERS_LOG}")
            before = _identity(path)
            db = sqlite3.connect(path, timeout=30, isolation_level=None, cached_statements=256)
            super().__init__(db)
            try:
                with reader_parses():
                    # Before a byte of the file changes, its schema is checked. One process
                    # migrates it; others wait.
                    made = check_schema(db) == SCHEMA_VERSION
                    with nullcontext() if made else self._lock:
                        for pragma in _PRAGMAS:
                            db.execute(pragma)
                        if not made:
                            check_schema_guards(db)
                            migrate_schema(db)
                # Not by the path: another file may have got that name since others opened it.
                if before is not None and before == _identity(path):
                    self._group_key = (*before, fold)
                    self._group = join_group(self._group_key, self)
            except BaseException:
                self.close()
                raise

    def _check_guards(self) -> None:
        """Refuse to fire a trigger that is not ours; looked at again where the schema changed."""
        cookie = self.db.execute("PRAGMA schema_version").fetchone()[0]
        if cookie != self.schema:
            check_schema_guards(self.db)
            self.schema = cookie

    @contextmanager
    def derived(self) -> Iterator[sqlite3.Connection]:
        """A transaction for what can be made anew (cursors, the manifest): no sync of its own.

        The next append's sync carries it; what a power cut takes of it is redone.
        """
        db = self.db
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

        ``after`` runs after the COMMIT, while this writer still has the place: there the files
        are written (step 3 above). ``mends``: the caller begins by removing triggers that are not
        ours; else entering is refused where there are some (LedgerDamagedError).
        """
        self._check_free()
        check = None if mends else self._check_guards
        return Writing(self.path, self.db, self._lock, self._fold, after, check=check)

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """Append in one transaction, which appends of other threads may share.

        See ``tripod.ledger.sqlite.group``; it is answered when that is on the disk.
        """
        self.db.cursor()  # sqlite3.ProgrammingError: in another thread than the store's, or closed
        self._check_free()
        return self._group.append(self, drafts, guard)

    def _check_free(self) -> None:
        if self.db.in_transaction:
            raise LedgerError("this store has a transaction open: append within that one")
        if self._pid != os.getpid():
            raise LedgerError(
                f"{self.path} was opened before this process was forked: open it again here"
            )

    def set_files(self, size: int, *, synced: bool = False) -> None:
        """The files show the first ``size`` entries; in the transaction that is open, if any.

        Where the system does not name its starts, each act waits for the disk.
        """
        boot = read_boot_id()
        sql = "UPDATE head SET files = ?1, boot = ?2, synced = iif(?3, ?1, synced)"
        self.db.execute(sql, (size, boot, synced or not boot))

    def node(self, height: int, index: int) -> bytes:
        """Root of a perfect subtree, from the stored nodes and at most 256 leaves."""
        return read_block_nodes(self.db)(height, index)

    def wait(self, size: int, timeout: float) -> int:
        """Wait for more than ``size`` entries, at most ``timeout`` seconds; give the size."""
        until = time.monotonic() + timeout
        while True:
            now = self.size
            if now > size or time.monotonic() >= until:
                return now
            time.sleep(0.02)

    def unswept(self) -> list[int]:
        """Erased entries whose bytes may still lie in the file or beside it."""
        return unswept_erasures(self.db)

    def sweep(self, wait_ms: int = 10_000) -> bool:
        """Write the file anew without what was erased; False: somebody reads, do it again later."""
        with self._lock, _errors(self.path):
            check_schema_guards(self.db)
            return sweep(self.db, wait_ms)

    def durability(self) -> str:
        """``fsync`` where SQLite syncs each commit, else ``none``."""
        level = self.db.execute("PRAGMA synchronous").fetchone()[0]
        return "fsync" if level >= 2 else "none"  # 2 is FULL

    def close(self) -> None:
        """Close the database; a small write-ahead log may stay beside it."""
        leave_group(self._group_key, self)
        _close_database(self.db, self.path, self.kept_log)
        self._lock.close()


class ReadOnlyStore(SQLiteStore):
    """A ledger in one SQLite file that is read, with no byte of it or beside it changed.

    What would write is an UnwritableError.
    """

    # The file may be of an earlier version.
    _columns, _synced = SQLiteReader._columns, SQLiteReader._synced  # noqa: SLF001

    def __init__(self, path: str) -> None:
        """Open the ledger at ``path``; errors are those of ``read_only``."""
        self.path = path
        self._lock = FileLock(f"{path}.lock")  # never taken
        self._group_key = None
        SQLiteReader.__init__(self, read_only(path))
        try:
            check_schema(self.db)
        except BaseException:
            self.close()
            raise

    def work_on_copy(self, fold: Callable[[SQLiteTransaction], object]) -> None:
        """Go on with a copy of the file in memory, whose tables ``fold`` makes anew."""
        copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        try:
            with closing(self.db):
                self.db.backup(copy)
            migrate_schema(copy)
            copy.execute("BEGIN")
            fold(SQLiteTransaction(copy, None))
            copy.execute("COMMIT")
        except BaseException:
            copy.close()
            raise
        self.db = copy

    @contextmanager
    def derived(self) -> Iterator[sqlite3.Connection]:
        """Refused."""
        raise self._refusal()
        yield self.db

    def transaction(
        self, after: Callable[[], None] | None = None, *, mends: bool = False
    ) -> Writing:
        """Refused."""
        del after, mends
        raise self._refusal()

    def append(self, drafts: Sequence[Draft], guard: Guard | None = None) -> list[Entry]:
        """Refused."""
        del drafts, guard
        raise self._refusal()

    def sweep(self, wait_ms: int = 10_000) -> bool:
        """Refused."""
        del wait_ms
        raise self._refusal()

    def close(self) -> None:
        """Close the database; LedgerDamagedError where it was written while it was read."""
        self.db.close()

    def _refusal(self) -> UnwritableError:
        return UnwritableError(f"{self.path} is only read here; nothing was recorded")


def _identity(path: str) -> tuple[int, int] | None:
    """Which file has this name, if any has."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Raise errors of SQLite and the system in words that a person can act on."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise sqlite_store_error(error, path) from error


# Erasing ---------------------------------------------------------------------------------------


def body_to_erase(db: sqlite3.Connection, seq: int) -> dict[str, Any]:
    """The body of an entry that is about to be erased (LedgerError: there is no such body)."""
    row = db.execute("SELECT body FROM entries WHERE seq = ?", (seq,)).fetchone()
    if row is None or row[0] is None:
        what = "there is no such entry" if row is None else "its body was erased before"
        raise LedgerError(f"entry {seq} cannot be erased: {what}")
    body: dict[str, Any] = codec.loads(row[0])
    return body


def erase(db: sqlite3.Connection, seq: int, body: dict[str, Any]) -> None:
    """Erase body and salt of ``seq``, and the blobs that ``body`` named and nothing else names.

    The newest entry must be the one that says so: the triggers let nothing else pass.
    """
    db.execute("UPDATE entries SET salt = NULL, body = NULL WHERE seq = ?", (seq,))
    named = "SELECT 1 FROM entries WHERE instr(body, ?) LIMIT 1"
    for digest in sorted({digest for digest, _ in entry_blobs(body)}):
        if db.execute(named, (entry_blob_mark(digest),)).fetchone() is None:
            db.execute("DELETE FROM blobs WHERE sha256 = ?", (bytes.fromhex(digest),))
    db.execute("INSERT INTO unswept (entry) VALUES (?)", (seq,))


def unswept_erasures(db: sqlite3.Connection) -> list[int]:
    """Erased entries whose bytes may still lie in pages, in the log or in files."""
    return [seq for (seq,) in db.execute("SELECT entry FROM unswept ORDER BY entry")]


def sweep(db: sqlite3.Connection, wait_ms: int) -> bool:
    """Write the database anew without what was erased; False where somebody else still reads.

    Only for the one who has the writer's place, outside of transactions. Earlier readers hold old
    pages: they are waited for, and if they go on, only the log is left to be emptied later.
    """
    if db.execute("SELECT 1 FROM unswept WHERE written = 0").fetchone():
        db.execute("VACUUM")
        db.execute("UPDATE unswept SET written = 1")
    # Writes the write-ahead log back and cuts it to nothing; 1 where somebody's reading keeps it.
    empty = "PRAGMA wal_checkpoint(TRUNCATE)"
    before = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute(f"PRAGMA busy_timeout = {wait_ms}")
    try:
        if db.execute(empty).fetchone()[0]:
            return False
        db.execute("DELETE FROM unswept")
        return not db.execute(empty).fetchone()[0]
    finally:
        db.execute(f"PRAGMA busy_timeout = {before}")
