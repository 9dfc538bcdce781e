"""Replaces whole databases: a copy as of one moment, another in the ledger's place, a renewed one.

The replaced database is kept under another name. If its pages can be read at all, it is written
over in a transaction of its own: a program that has it open sees the new one next; none goes on
writing to a file that has no name. The caller holds the writer's lock.

A ledger whose file has damaged pages is written anew from its entries (``tripod rebuild``):

1. Under the writer's lock the ledger's own rows are copied beside it and checked in the copy
   (``tripod.ledger.sqlite.repair``), and the tables are folded from them there. Dead here: nothing
   happened; the next time, ``ledger.db.renewing`` is removed.
2. The damaged database is copied as it is to ``ledger.db.damaged-1``. Dead here: nothing happened;
   the next time another number is taken.
3. The copy takes its place, in one transaction. Dead before its COMMIT: nothing happened. Dead
   after it: the ledger is whole, the next command works on it, and the next rebuild removes the
   copy.

The files are another matter: ``tripod.recovery.rebuild`` follows.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress

from tripod.errors import LedgerError
from tripod.ledger import DATABASE
from tripod.ledger.files import hold_file, rename_file, sync_name, sync_path
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.repair import copy_rows
from tripod.ledger.sqlite.store import SQLiteStore, explained
from tripod.output import remark
from tripod.projections import fold_into, refold

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


# Renew ------------------------------------------------------------------------------------------


def renew_aloud(root: str) -> str:
    """``renew``, and say where the damaged database is kept."""
    kept = renew(root)
    remark(
        f"pages of {root}/{DATABASE} were damaged: it was written anew from its entries, which "
        f"are sound and all there; the damaged file is kept as {kept}"
    )
    return kept


def renew(root: str) -> str:
    """Write the database of the team directory ``root`` anew; give where the damaged one is kept.

    Raises:
        LedgerDamagedError: its entries are not sound, or not all of them can be read.
        UnwritableError: the disk refuses. In both cases nothing was replaced.
    """
    database = f"{root}/{DATABASE}"
    fresh = f"{database}.{RENEWING}"
    try:
        with hold_file(f"{database}.lock"):
            remove(fresh)
            mode = os.stat(database).st_mode & 0o7777
            copy_rows(database, fresh)
            _fold(fresh)
            os.chmod(fresh, mode)
            kept = put_in_place(database, fresh, "damaged")
            os.chmod(kept, mode)
            return kept
    except (sqlite3.Error, OSError) as error:
        raise explained(error, database) from error
    finally:
        remove(fresh)


def _fold(fresh: str) -> None:
    with closing(SQLiteStore(fresh, fold=fold_into)) as store:
        with store.transaction() as transaction:
            refold(transaction, store.read())
        close_log(store.db)
