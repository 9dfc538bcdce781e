"""Fills a new ledger file: from a file whose pages are damaged, or from elsewhere, as an export.

Damage often hits the folded tables, or an index: the entries are sound and can be read from their
own pages. They are copied unchanged, checked in the copy, and compared with the head row of the old
file, so that a loss is noticed. The old file is not changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from hashlib import sha256
from typing import Any

from tripod.ledger.entry import (
    GENESIS,
    REDACTED,
    Entry,
    entry_blobs,
    entry_leaf_hash,
    parse_header,
)
from tripod.ledger.errors import LedgerDamagedError
from tripod.ledger.merkle import Tree
from tripod.ledger.progress import tell_over
from tripod.ledger.sqlite.reader import COLUMNS, SQLiteReader, read_only, read_sound_entries
from tripod.ledger.sqlite.schema import SCHEMA_VERSION, check_schema, migrate_schema

_NEXT = (
    "nothing was changed. `tripod verify` says what it can; put a backup back with "
    "`tripod restore FILE`"
)
_UNASKED = (
    "entries INDEXED BY sqlite_autoindex_entries_1",
    "blobs INDEXED BY sqlite_autoindex_blobs_1",
    "blobs NOT INDEXED",
    "nodes",
    "unswept",
)
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"


def walk(db: sqlite3.Connection) -> None:
    """Read what a fold of the entries does not (DatabaseError: its pages are damaged)."""
    for what in _UNASKED:
        db.execute(f"SELECT count(*) FROM {what}").fetchone()


def copy_ledger_rows(path: str, fresh: str) -> int:
    """Copy the ledger's own tables from the database at ``path`` into a new one at ``fresh``.

    Tables of projections are not there yet: the head's cursor says so. Gives how many entries.

    Raises:
        LedgerDamagedError: the entries, or what is held against them, cannot be read to their end
            or are not sound. The file at ``fresh`` is the caller's to remove.
        sqlite3.OperationalError: the disk refuses.
    """
    try:
        source = read_only(path)
    except LedgerDamagedError as error:
        raise LedgerDamagedError(f"{error}: {_NEXT}") from error
    with closing(source) as old, closing(sqlite3.connect(fresh, isolation_level=None)) as new:
        if check_schema(old) != SCHEMA_VERSION:
            raise LedgerDamagedError(
                f"{path} has the schema of an older version, and is damaged: {_NEXT}"
            )
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "trusted_schema=OFF"):
            new.execute(f"PRAGMA {pragma}")
        migrate_schema(new)
        old.execute("BEGIN")  # one state for all tables
        new.execute("BEGIN")
        lost = {
            table
            for (table,) in new.execute(_TABLES).fetchall()
            if not _copied(path, old, new, table)
        }
        tree = _judged(path, new)
        # What could not be copied and follows from the entries is made anew; the rest is compared.
        if "nodes" in lost:
            new.executemany("INSERT INTO nodes (level, number, hash) VALUES (?, ?, ?)", tree.full)
        elif sorted(tree.full) != new.execute("SELECT * FROM nodes ORDER BY 1, 2").fetchall():
            raise LedgerDamagedError(
                f"{path}: the stored nodes are not those of the entries: {_NEXT}"
            )
        if "unswept" in lost:  # which of the erased bodies were swept is not known: all once more
            new.execute("INSERT INTO unswept (entry) SELECT seq FROM entries WHERE body IS NULL")
        new.execute("COMMIT")
    return tree.size


def copy_first_entries(path: str, fresh: str, size: int, better: str | None = None) -> None:
    """Copy the first ``size`` entries of a ledger, and their blobs, into a new file.

    ``better`` is another database that has the first of them: those are taken from it, but for the
    bodies that were erased since. Tables of projections are not there yet. Raises
    LedgerDamagedError where an entry is not sound.
    """
    with (
        closing(read_only(path)) as old,
        closing(sqlite3.connect(fresh, isolation_level=None)) as new,
        ExitStack() as held,
    ):
        migrate_schema(new)
        old.execute("BEGIN")
        new.execute("BEGIN")
        ledger, tree, named = SQLiteReader(old), Tree(), set[str]()
        entries, blob = ledger.read(0, size), ledger.blob
        if better is not None:
            first = SQLiteReader(held.enter_context(closing(read_only(better))))
            entries = _joined(first, ledger, size)
            blob = lambda digest: first.blob(digest) or ledger.blob(digest)  # noqa: E731
        newest = b""
        for entry in read_entries_with_blobs(entries, blob):
            tree.append(entry_leaf_hash(entry.header))
            newest = entry.header
            row = (entry.seq, entry.id, entry.kind, entry.stream, entry.header)
            add_entry_rows(new, [(*row, entry.salt, entry.body, entry.auth)])
            if entry.body is None:
                new.execute("INSERT INTO unswept (entry) VALUES (?)", (entry.seq,))
                continue
            for digest, _ in entry_blobs(entry.data):
                data = blob(bytes.fromhex(digest))
                if digest not in named and data is not None:
                    named.add(digest)
                    add_blob_row(new, bytes.fromhex(digest), data)
        header = parse_header(newest)
        add_head_row(new, tree, header.ledger, header.at)
        new.execute("COMMIT")


def read_entries_with_blobs(
    entries: Iterable[Entry], blob: Callable[[bytes], bytes | None]
) -> Iterator[Entry]:
    """Pass on entries that are sound, and whose blobs are their own (LedgerDamagedError)."""
    for entry in read_sound_entries(entries):
        for digest, _ in entry_blobs(entry.data) if entry.body is not None else ():
            data = blob(bytes.fromhex(digest))
            if data is not None and sha256(data).hexdigest() != digest:
                raise LedgerDamagedError(f"entry {entry.seq} has a blob that is not its own")
        yield entry


def _joined(first: SQLiteReader, ledger: SQLiteReader, size: int) -> Iterator[Entry]:
    """The entries of ``first``, and behind them those of ``ledger``, which says what was erased."""
    known = first.size
    erased = {entry.data["seq"] for entry in ledger.read(known, size, kinds=(REDACTED,))}
    for entry in first.read(0, min(known, size)):
        there = ledger.entry(entry.seq) if entry.seq in erased else None
        yield entry if there is None else there
    yield from ledger.read(known, size)


def add_entry_rows(db: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Add the next entries as rows of ``COLUMNS`` (IntegrityError: up to one with a known id)."""
    sql = f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    db.execute("SAVEPOINT bundle")
    try:
        db.executemany(sql, rows)
    except sqlite3.IntegrityError:
        db.execute("ROLLBACK TO bundle")
        for row in rows:
            try:
                db.execute(sql, row)
            except sqlite3.IntegrityError as error:
                raise sqlite3.IntegrityError(
                    f"entry {row[0]} has an id that stands before it"
                ) from error
    finally:
        db.execute("RELEASE bundle")


def add_blob_row(db: sqlite3.Connection, digest: bytes, data: bytes) -> None:
    """Add a blob, which is not there yet, to a new file."""
    db.execute("INSERT INTO blobs (sha256, bytes) VALUES (?, ?)", (digest, data))


def add_head_row(db: sqlite3.Connection, tree: Tree, origin: str, at: str) -> None:
    """Add the stored roots, and the head's row with name and time of the newest entry."""
    db.executemany("INSERT INTO nodes (level, number, hash) VALUES (?, ?, ?)", tree.full)
    newest = SQLiteReader(db).header(tree.size - 1)
    if newest is None:
        return
    last, stack = entry_leaf_hash(newest).hex(), b"".join(tree.stack)
    db.execute(
        "INSERT INTO head (only, size, origin, last, at, stack, tables, files, synced)"
        " VALUES (0, ?1, ?2, ?3, ?4, ?5, ?1, ?1, ?1)",
        (tree.size, origin, last, at, stack),
    )


def _copied(path: str, old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> bool:
    """Copy a table row by row, without its indexes; False for one that can be made anew.

    The cursor of the tables is not copied from the old file: there are no tables yet.
    """
    columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))

    def sound_rows() -> Iterator[tuple[Any, ...]]:
        for row in old.execute(f"SELECT {names} FROM {table} NOT INDEXED"):
            value = dict(zip(columns, row, strict=True))
            if table == "blobs" and sha256(value["bytes"]).digest() != value["sha256"]:
                raise ValueError(f"blob {value['number']} does not hash to its name")
            if table == "head":
                value |= {"tables": 0, "files": min(value["files"], value["size"])}
                if "synced" in value:
                    value["synced"] = min(value["synced"], value["files"])
            yield tuple(value.values())

    new.execute("SAVEPOINT copying")
    try:
        rows = tell_over(sound_rows(), f"copying {table}")
        new.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
    except sqlite3.OperationalError:
        raise
    except (sqlite3.DatabaseError, ValueError) as error:
        new.execute("ROLLBACK TO copying")
        if table in ("nodes", "unswept"):
            return False
        raise LedgerDamagedError(
            f"{path}: the table {table} cannot be copied ({error}): {_NEXT}"
        ) from error
    finally:
        new.execute("RELEASE copying")
    return True


def _judged(path: str, new: sqlite3.Connection) -> Tree:
    """The tree over the copied entries, which are sound and all that the head row counts."""
    tree, last, newest = Tree(), GENESIS, b""
    for entry in read_sound_entries(SQLiteReader(new).read()):
        leaf = entry_leaf_hash(entry.header)
        tree.append(leaf)
        last, newest = leaf.hex(), entry.header
    head = new.execute("SELECT size, origin, last, at, stack FROM head").fetchone()
    if newest:
        header = parse_header(newest)
        if head == (tree.size, header.ledger, last, header.at, b"".join(tree.stack)):
            return tree
    raise LedgerDamagedError(
        f"{path}: its head row and the {tree.size} entries that can be read differ: {_NEXT}"
    )
