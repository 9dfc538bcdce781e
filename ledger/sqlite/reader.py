"""Reads a ledger from SQLite: every SELECT on its own tables that trusts what they hold.

Nothing here writes. ``read_only`` opens a database file without changing a byte of it (SQLite may
leave its ``-wal`` and ``-shm`` beside it). It refuses a file that has two readings: one that a
reader sees, and another that the next writer makes of it (``reader_side_problem``).

Where the user wants nothing to be written (``is_read_only``), or nothing can be, the files beside
it are not touched either. SQLite reads a write-ahead log in three ways then:

- with its index beside it (``-shm``), which a live writer needs as well: the index is opened to be
  read (``readonly_shm``), and a snapshot is held against writers as by any other reader;
- without the index, as in a copy of the two files: both are copied to a folder for temporary files,
  since SQLite has to make the index;
- no log, or an empty one: the file is all there is, and is opened as one that does not change
  (``immutable``). SQLite then takes no lock. We hold its shared lock, so that no program that comes
  and goes meanwhile moves its log into the file; what changes it all the same is named at the end.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Unpack

from tripod.ledger import codec
from tripod.ledger.entry import GENESIS, Entry, commit_body, entry_leaf_hash, redaction_entry_id
from tripod.ledger.errors import LedgerDamagedError, NoLedgerError, UnwritableError
from tripod.ledger.files import is_read_only
from tripod.ledger.merkle import Nodes, Tree, node_hash
from tripod.ledger.store import Cursors, Head, Occurrences, RawEntry, Selection

_BLOCK = 256
_TILES = 64  # kept at once
_NO_ROOM = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
)
_HINT = "nothing was written; `tripod verify` says what else is wrong"
_CLOSING_S = 0.5  # a program that opens or closes the file needs far less for its own files
_MAGIC = b"SQLite format 3\x00"
_FRONT = 20  # bytes
_WAL = b"\x02\x02"  # bytes 18 and 19 of the file's header: the log is to be read
_DEFENCES = (
    "PRAGMA trusted_schema=OFF",
    "PRAGMA query_only=ON",
    "PRAGMA cell_size_check=ON",
    "PRAGMA mmap_size=0",
)
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 8),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1_000_000),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
)
"""What no query of ours comes near."""


def read_only(path: str) -> sqlite3.Connection:
    """Open a database for reading alone, even in a folder where nothing can be written.

    Raises:
        NoLedgerError: there is no such file.
        LedgerDamagedError: it cannot be opened as a database, or has two readings.
    """
    if not os.path.isfile(path):
        raise NoLedgerError(f"no ledger at {path}")
    real = os.path.realpath(path)  # SQLite follows links, and looks for the log behind them
    problem = reader_side_problem(real)
    if problem is not None:
        raise LedgerDamagedError(f"{path}: {problem}")
    try:
        if not is_read_only():
            try:
                return _open(real, "mode=ro")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _NO_ROOM:
                    raise
                # SQLite cannot make its shared memory here.
        return _open_untouched(real)
    except sqlite3.DatabaseError as error:
        raise LedgerDamagedError(f"{path}: {error}") from error


class UnchangingDatabase(sqlite3.Connection):
    """A database that SQLite takes for one that nobody writes; ``close`` says if that was wrong."""

    held = -1
    """The descriptor that has the shared lock; -1: none."""
    name, before = "", (0, 0, 0)

    def hold(self, fd: int, name: str) -> None:
        """Keep a descriptor of the file open, and what it says of the file."""
        self.held, self.name, self.before = fd, name, _state(fd)

    def close(self) -> None:
        """Close the database (LedgerDamagedError: it was written while it was read)."""
        super().close()
        fd, self.held = self.held, -1
        if fd < 0:
            return
        try:
            after = _state(fd)
        finally:
            os.close(fd)
        if after != self.before:
            raise LedgerDamagedError(
                f"{self.name}: another program wrote it while it was read, so what was read is not "
                "of one moment: ask again"
            )


def _state(fd: int) -> tuple[int, int, int]:
    now = os.fstat(fd)
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns


_SHARED = (0x40000002, 510)
"""Which bytes a reader of a SQLite file locks: SHARED_FIRST and SHARED_SIZE of its os.h."""


def _open_untouched(path: str) -> sqlite3.Connection:
    """Open a database without a byte changed of it or beside it; see the module."""
    fd = -1
    while True:
        log = -1
        with suppress(FileNotFoundError):
            log = os.stat(f"{path}-wal").st_size
        if log >= 0 and os.path.lexists(f"{path}-shm"):
            return _open(path, "mode=ro&readonly_shm=1")
        if log > 0:
            return _open_copied(path)
        if fd >= 0:  # there is still no log, and nobody moves one into the file any more
            db = _open(path, "mode=ro&immutable=1", UnchangingDatabase)
            assert isinstance(db, UnchangingDatabase)
            db.hold(fd, path)
            return db
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        # A lock of the open file: one of the process would go with any other descriptor of it.
        if hasattr(fcntl, "F_OFD_SETLK"):
            from struct import pack

            lock = pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, *_SHARED, 0)
            with suppress(OSError):  # a file system without locks, or a writer is about to close it
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, lock)


def _open_copied(path: str) -> sqlite3.Connection:
    """Open a copy of a database and its log, which is gone as soon as it is open."""
    from shutil import copyfile  # seldom needed
    from tempfile import TemporaryDirectory

    try:
        with TemporaryDirectory(prefix="tripod-") as folder:
            for end in ("", "-wal"):
                copyfile(path + end, f"{folder}/ledger.db{end}")
            db = _open(f"{folder}/ledger.db", "mode=ro")
            db.execute("BEGIN")  # also its log is open now
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            db.execute("COMMIT")
            return db
    except OSError as error:
        raise UnwritableError(
            f"{path}: its newest entries are in the log beside it (-wal). SQLite needs an index of "
            "it, which cannot be made there, and the copy to make it in failed "
            f"({error.strerror}): copy both files to where you may write, or set TMPDIR"
        ) from error


def odd_reader_side_file(path: str) -> str | None:
    """Which file beside a database, where SQLite keeps its own, is a link or a pipe; or None."""
    for suffix in ("-journal", "-wal", "-shm"):
        with suppress(OSError):  # nothing is there
            if not stat.S_ISREG(os.lstat(path + suffix).st_mode):
                return (
                    f"{suffix} beside it is no plain file: keep it elsewhere, find out whose it is"
                )
    return None


def reader_side_problem(path: str) -> str | None:
    """Why the files beside a database make two readings of it; None where they make one.

    A program with write access plays a rollback journal back, one without ignores it. A write-ahead
    log counts if the header says so, and SQLite reads one also where the header does not.
    """
    until = time.monotonic() + _CLOSING_S
    while True:
        odd = odd_reader_side_file(path)
        if odd is not None:
            return odd
        log = os.path.lexists(f"{path}-wal")
        if os.path.lexists(f"{path}-journal"):
            problem = (
                "a rollback journal stands beside it (-journal), so what it holds cannot be told: "
                "the next program that opens it to write may change it. Keep both files; if a "
                "program works with it now, ask again"
            )
        # The header is read in any case: a file that cannot be read is no damaged ledger.
        elif not reader_keeps_log(path) and log:
            problem = "a write-ahead log stands beside it, and its header says that it has none"
        elif not log and os.path.lexists(f"{path}-shm"):
            problem = (
                "its write-ahead log is gone and the log's index is there (-shm): entries may be "
                "missing. If a program works with it now, ask again"
            )
        else:
            return None
        if time.monotonic() >= until:
            return problem
        time.sleep(0.005)  # it may be momentary


def reader_keeps_log(path: str) -> bool:
    """Whether the header of a database says that it has a write-ahead log, as one in use has."""
    front = _front(path)
    return front[:16] != _MAGIC or front[18:20] == _WAL


def _front(path: str) -> bytes:
    """The beginning of a database's header.

    A process that closes any descriptor of a file gives up all its record locks on that file,
    also those that SQLite holds for another descriptor. Then the next program that closes the
    database takes itself for the last one, and moves the log into the file under our reading.
    So where this process has the file open already, it is read there, and nothing is closed.
    """
    there = os.stat(path)
    with suppress(OSError):  # the system does not tell what is open
        for fd in map(int, os.listdir("/dev/fd")):
            with suppress(OSError):  # it is closed by now, or not for reading
                if os.path.samestat(os.fstat(fd), there):
                    return os.pread(fd, _FRONT, 0)
    with open(path, "rb") as file:
        return file.read(_FRONT)


def _open(
    path: str, how: str, factory: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    from urllib.parse import quote

    db = sqlite3.connect(
        f"file:{quote(os.fsencode(os.path.abspath(path)))}?{how}",
        uri=True,
        isolation_level=None,
        timeout=30,
        check_same_thread=False,
        factory=factory,
    )
    try:
        for limit, most in _LIMITS:
            db.setlimit(limit, most)
        for pragma in _DEFENCES:
            db.execute(pragma)
        with reader_parses():
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def reader_parses() -> Iterator[None]:
    """While SQLite parses the schema: what it says of a damaged one may hold bytes of the file.

    Where they are no text, Python fails to read the message, and raises that instead of the error:
    here it becomes a DatabaseError with the code of a damaged file.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        damaged = sqlite3.DatabaseError("malformed database schema, with bytes that are no text")
        damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damaged from error


def read_stored_tree(size: int, stack: bytes) -> Tree:
    """The tree that the head's row describes (LedgerDamagedError: size and stack do not fit)."""
    try:
        return Tree(size, [stack[at : at + 32] for at in range(0, len(stack), 32)])
    except ValueError as error:
        raise LedgerDamagedError(
            f"the head row is damaged ({error}); run `tripod verify`"
        ) from error


COLUMNS = "seq, id, kind, stream, header, salt, body, auth"
"""Those of a raw entry, in the order of its fields."""
_ALL = 2**62  # more entries than any ledger has


class SQLiteReader:
    """A ledger's entries over a connection; see ``tripod.ledger.store.LedgerReader``.

    Where the file is damaged, the errors of SQLite come through: who opened it explains them.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def _one(self, sql: str, values: Sequence[object] = ()) -> Any:
        """The first row, or None. Together with ``_rows`` the only way to the tables."""
        return self.db.execute(sql, values).fetchone()

    def _value(self, sql: str, values: Sequence[object] = (), *, default: Any = None) -> Any:
        """The first column of the first row."""
        row = self._one(sql, values)
        return row[0] if row else default

    def _rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        return self.db.execute(sql, values)

    @cached_property
    def _columns(self) -> str:
        """Those of a raw entry; the file of an older version, opened to be read, lacks the last."""
        there = {row[1] for row in self._rows("PRAGMA table_info(entries)")}
        return COLUMNS if "auth" in there else COLUMNS.replace("auth", "NULL")

    @property
    def tables(self) -> sqlite3.Connection:
        """Connection to the tables of the projections."""
        return self.db

    @property
    def origin(self) -> str:
        """The ledger's own name ('' before it is opened)."""
        return self._value("SELECT origin FROM head", default="")  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """How many entries the ledger holds."""
        return self._value("SELECT size FROM head", default=0)  # type: ignore[no-any-return]

    @property
    def at(self) -> str:
        """Time of the newest entry ('' before there is one)."""
        return self._value("SELECT at FROM head", default="")  # type: ignore[no-any-return]

    def head(self) -> Head:
        """Size and root as of now."""
        row = self._one("SELECT size, stack FROM head")
        size, stack = row or (0, b"")
        return Head(size, read_stored_tree(size, stack).root())

    def cursors(self) -> Cursors:
        """The size, and how far the projections are."""
        return Cursors(*(self._one("SELECT size, tables, files FROM head") or (0, 0, 0)))

    def read(
        self, start: int = 0, stop: int | None = None, **chosen: Unpack[Selection]
    ) -> Iterator[Entry]:
        """Entries [start, stop) with their decoded bodies, for programs that trust the ledger.

        An erased one comes with what its redaction keeps, also if that follows later: a fold gives
        the same tables before and after it.
        """
        rows = self._chosen(start, stop, **chosen)
        for seq, entry_id, kind, of, header, salt, body, auth in rows:
            head = codec.loads(header)
            data = _kept_body(self.db, seq) if body is None else codec.loads(body)
            actor, at = head["actor"], head["at"]
            yield Entry(seq, entry_id, kind, of, actor, at, header, salt, body, data, auth)

    def raw(
        self, start: int = 0, stop: int | None = None, **chosen: Unpack[Selection]
    ) -> Iterator[RawEntry]:
        """What ``read`` gives, undecoded."""
        return map(RawEntry._make, self._chosen(start, stop, **chosen))

    def _chosen(
        self,
        start: int,
        stop: int | None,
        stream: str | None = None,
        kinds: Collection[str] = (),
        *,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Any]:
        """Rows of a range, by a walk along the primary key: it decodes no row that it passes."""
        sql = f"SELECT {self._columns} FROM entries WHERE seq >= ? AND seq < ?"
        values: list[object] = [start, _ALL if stop is None else stop]
        if stream is not None:
            sql += " AND stream = ?"
            values.append(stream)
        if kinds:
            sql += f" AND kind IN ({', '.join('?' * len(kinds))})"
            values += kinds
        sql += " ORDER BY seq DESC" if newest_first else " ORDER BY seq"
        if limit is not None:
            sql += " LIMIT ?"
            values.append(limit)
        return self._rows(sql, values)

    def entry(self, seq: int) -> Entry | None:
        """The entry with this number, or None."""
        return next(self.read(seq, seq + 1), None)

    def header(self, seq: int) -> bytes | None:
        """The exact bytes of an entry's header, or None."""
        return self._value("SELECT header FROM entries WHERE seq = ?", (seq,))  # type: ignore[no-any-return]

    def raw_of(self, seqs: Sequence[int]) -> Iterator[RawEntry]:
        """The entries with these numbers, undecoded, by one statement."""
        sql = f"SELECT {self._columns} FROM entries WHERE seq IN (SELECT value FROM json_each(?))"
        return map(RawEntry._make, self._rows(sql, (json.dumps(list(seqs)),)))

    def seq_of(self, entry_id: str) -> int | None:
        """The number of the entry with this id, or None."""
        return self._value("SELECT seq FROM entries WHERE id = ?", (entry_id,))  # type: ignore[no-any-return]

    def raw_by_id(self, start: str, stop: str) -> Iterator[RawEntry]:
        """The entries with ids in [start, stop), undecoded, found by the index of ids."""
        sql = f"SELECT {self._columns} FROM entries WHERE id >= ? AND id < ? ORDER BY seq"
        return map(RawEntry._make, self._rows(sql, (start, stop)))

    def count_by_id(self, start: str, stop: str) -> int:
        """How many entries have ids in [start, stop)."""
        sql = "SELECT count(*) FROM entries WHERE id >= ? AND id < ?"
        return self._value(sql, (start, stop), default=0)  # type: ignore[no-any-return]

    def last_seq(
        self, *, kind: str | None = None, stream: str | None = None, stop: int | None = None
    ) -> int | None:
        """The number of the newest entry of a kind, of a stream, below ``stop``, or None."""
        tests = {"kind = ?": kind, "stream = ?": stream, "seq < ?": stop}
        values = {test: value for test, value in tests.items() if value is not None}
        where = f" WHERE {' AND '.join(values)}" if values else ""
        sql = f"SELECT max(seq) FROM entries{where}"
        return self._value(sql, tuple(values.values()))  # type: ignore[no-any-return]

    def kinds(self, start: int = 0, stop: int | None = None) -> dict[str, Occurrences]:
        """The kinds of the entries of a range, each with how many there are."""
        sql = (
            "SELECT kind, count(*), min(seq), max(seq) FROM entries"
            " WHERE seq >= ? AND seq < ? GROUP BY kind"
        )
        rows = self._rows(sql, (start, _ALL if stop is None else stop))
        return {kind: Occurrences(*rest) for kind, *rest in rows}

    def names_in_body(self, kind: str, text: bytes) -> bool:
        """Whether the stored body of an entry of this kind contains these bytes."""
        sql = "SELECT 1 FROM entries WHERE kind = ? AND instr(body, ?) LIMIT 1"
        return self._one(sql, (kind, text)) is not None

    def blob(self, digest: bytes) -> bytes | None:
        """The blob with this SHA-256, or None."""
        return self._value("SELECT bytes FROM blobs WHERE sha256 = ?", (digest,))  # type: ignore[no-any-return]

    def hashes(self, level: int, start: int, stop: int) -> list[bytes]:
        """The stored roots of full subtrees of 256^level entries, numbers [start, stop)."""
        sql = (
            "SELECT hash FROM nodes WHERE level = ? AND number >= ? AND number < ? ORDER BY number"
        )
        return [row[0] for row in self._rows(sql, (level, start, stop))]


def read_sound_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Pass entries on as long as each is linked to the one before and has the body it commits to.

    For callers that write files from them: a false body must not become a false file. The first
    that is not so is a LedgerDamagedError.
    """
    prev = GENESIS
    for entry in entries:
        header = codec.loads(entry.header)
        salt, body, problem = entry.salt, entry.body, ""
        if header["prev"] != prev:
            problem = "is not linked to the one before it"
        elif salt is None and body is None:
            problem = "" if entry.data else "lost its body, and no entry says why"
        elif commit_body(salt or b"", entry.kind, body or b"") != header["body"]:
            problem = "has a body that it did not commit to"
        if problem:
            raise LedgerDamagedError(f"entry {entry.seq} {problem}: {_HINT}")
        prev = entry_leaf_hash(entry.header).hex()
        yield entry


def read_block_nodes(db: sqlite3.Connection) -> Nodes:
    """Serve the tree's nodes from the stored subtree roots, and small ones from the leaves.

    What was read is kept while it is not much: the nodes of a proof lie in two tiles a level.
    Entries never change, so that only a tile that has grown since is read again.
    """
    kept: dict[tuple[int, int], list[list[bytes]]] = {}

    def tile(level: int, number: int, width: int) -> list[list[bytes]] | None:
        """The hashes of a tile, and of the nodes above them height by height; None: too few."""
        layers = kept.get((level, number))
        if layers is None or len(layers[0]) < width:
            if len(kept) >= _TILES:
                kept.clear()
            # Its hashes up to the first that is missing.
            first = number * _BLOCK
            bounds = [first, first + _BLOCK]
            sql = "SELECT seq, header FROM entries WHERE seq >= ? AND seq < ? ORDER BY seq"
            if level:
                bounds.append(level)
                sql = "SELECT number, hash FROM nodes WHERE number >= ? AND number < ?"
                sql += " AND level = ? ORDER BY number"
            rows = db.execute(sql, bounds)
            hashes = [data for at, (place, data) in enumerate(rows, first) if place == at]
            if not level:
                hashes = list(map(entry_leaf_hash, hashes))
            layers = kept[level, number] = [hashes]
            while len(hashes) > 1:
                hashes = [node_hash(*hashes[at : at + 2]) for at in range(0, len(hashes) - 1, 2)]
                layers.append(hashes)
        return layers if len(layers[0]) >= width else None

    def nodes(height: int, index: int) -> bytes:
        level, rest = divmod(height, 8)
        if level and not rest:
            row = db.execute(
                "SELECT hash FROM nodes WHERE level = ? AND number = ?", (level, index)
            ).fetchone()
            if row is not None:
                return row[0]  # type: ignore[no-any-return]
            return node_hash(nodes(height - 1, 2 * index), nodes(height - 1, 2 * index + 1))
        first = index << rest
        layers = tile(level, first // _BLOCK, first % _BLOCK + (1 << rest))
        if layers is not None:
            return layers[rest][first % _BLOCK >> rest]
        if not height:
            raise LedgerDamagedError(
                f"entry {index} is missing: `tripod verify` says what is wrong"
            )
        return node_hash(nodes(height - 1, 2 * index), nodes(height - 1, 2 * index + 1))

    return nodes


def _kept_body(db: sqlite3.Connection, seq: int) -> dict[str, Any]:
    """What stands for the erased body of entry ``seq``; {} where no entry says it was erased."""
    kept = "SELECT body FROM entries WHERE id = ? AND kind = 'redacted'"
    row = db.execute(kept, (redaction_entry_id(seq),)).fetchone()
    if row is None or row[0] is None:
        return {}
    keep: dict[str, Any] = codec.loads(row[0])["keep"]
    return keep
