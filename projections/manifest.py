"""What the files that only grow looked like when they last agreed with the ledger.

A cache that saves reading, never proof: an equal stat is trusted only when it was noted well
after the file's own time, else the bytes are hashed (the "racy" rule of git's index). Each row
carries a seal over its columns, so that a slip in it is seen by ``drift``; it is derived data and
``rebuild`` makes it anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from projections.disk import Stat

DDL = """
CREATE TABLE IF NOT EXISTS manifest (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    digest TEXT NOT NULL,
    noted_ns INTEGER NOT NULL,
    seal TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""


class Known(NamedTuple):
    """A file as it was when it last agreed with the ledger; a folder has no digest."""

    stat: Stat
    digest: str
    noted_ns: int


Manifest = dict[str, Known]


def seal_of(row: Sequence[object]) -> str:
    """Checksum of a row's columns but the last: 16 hex digits."""
    return sha256("\x00".join(map(str, row)).encode()).hexdigest()[:16]


def load(db: sqlite3.Connection) -> Manifest:
    """The rows whose seal holds; the others count as unknown."""
    known: Manifest = {}
    for *row, seal in db.execute(
        "SELECT path, size, mtime_ns, inode, mode, digest, noted_ns, seal FROM manifest"
    ):
        if seal == seal_of(row):
            path, size, mtime_ns, inode, mode, digest, noted_ns = row
            known[path] = Known(Stat(size, mtime_ns, inode, mode), digest, noted_ns)
    return known


def load_any(db: sqlite3.Connection) -> Manifest:
    """The same, of a database that may have lost the table, or has a view in its place."""
    try:
        sql = "SELECT type FROM sqlite_schema WHERE lower(name) = 'manifest'"
        if db.execute(sql).fetchone() != ("table",):
            return {}
        return load(db)
    except sqlite3.OperationalError:
        return {}


def save(db: sqlite3.Connection, known: Manifest, gone: Iterable[str] = ()) -> None:
    """Note files as they are now, and that those at ``gone`` are to be watched no more."""
    rows = [(path, *item.stat, item.digest, item.noted_ns) for path, item in sorted(known.items())]
    db.executemany(
        "INSERT OR REPLACE INTO manifest"
        " (path, size, mtime_ns, inode, mode, digest, noted_ns, seal)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(*row, seal_of(row)) for row in rows],
    )
    db.executemany("DELETE FROM manifest WHERE path = ?", [(path,) for path in gone])


def forget(db: sqlite3.Connection) -> None:
    """Trust no file until it was read again."""
    db.execute("DELETE FROM manifest")
