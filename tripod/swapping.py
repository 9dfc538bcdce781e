"""Whole databases: a copy of one as of a moment, and another put in the place of the ledger's.

What stood there is kept under another name. Where it can be read as pages at all, it is written
over in a transaction of its own: whoever has it open sees the new one next, and nobody goes on
writing to a file that has no name. Only for who has the writer's place.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress

from ledger.durable import rename_file, sync_name, sync_path
from ledger.errors import LedgerError
from ledger.reader import read_only
from ledger.writing import explained

RENEWING = "renewing"  # ledger.db.renewing: kept out of git as every ledger.db*
_FILES = ("", "-wal", "-shm", "-journal")


def copy_pages(source: sqlite3.Connection, path: str) -> None:
    """All of a database as of one moment, into a new file of its own, waited for."""
    remove(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        source.backup(target)
        close_log(target)
    sync_path(path)


def close_log(db: sqlite3.Connection) -> None:
    """Bring a database that nobody else has open into its one file, without a log beside it."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA journal_mode=DELETE")


def remove(path: str) -> None:
    """Remove a database and what SQLite and we put beside it."""
    for suffix in (*_FILES, ".lock"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


def put_in_place(database: str, fresh: str, word: str) -> str:
    """Put a prepared copy in the ledger's place; give where the old one is kept, '' if none was.

    It is kept as ``<database>.<word>-<number>``. Dead before the last step: the old one is in its
    place, or (where it could not be read) under that name, and ``fresh`` is whole.

    Raises:
        UnwritableError: the disk refuses, or others hold the database; nothing was replaced.
    """
    sync_path(fresh)
    if not any(os.path.lexists(database + suffix) for suffix in _FILES):
        rename_file(fresh, database)
        return ""
    number = 1
    while any(os.path.lexists(f"{database}.{word}-{number}{suffix}") for suffix in _FILES):
        number += 1
    kept = f"{database}.{word}-{number}"
    try:
        with closing(read_only(database)) as live:
            copy_pages(live, kept)
        _write_over(database, fresh)
    except sqlite3.OperationalError as error:
        remove(kept)
        raise explained(error, database) from error
    except (LedgerError, sqlite3.Error):
        remove(kept)
        for suffix in _FILES:
            with suppress(FileNotFoundError):
                os.rename(database + suffix, kept + suffix)
        os.rename(fresh, database)
    sync_name(database)
    return kept


def _write_over(database: str, fresh: str) -> None:
    with (
        closing(sqlite3.connect(fresh)) as source,
        closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as target,
    ):
        source.backup(target)
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # where others read, a later one does it
