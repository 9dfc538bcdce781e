"""A ledger whose file has damaged pages, written anew from its entries (``tripod rebuild``).

1. In the writer's place the ledger's own rows are copied beside it and judged in the copy
   (``ledger.renewing``), and the tables are folded from them there. Dead here: nothing happened;
   the next time, ``ledger.db.renewing`` is removed.
2. The damaged database is copied as it is to ``ledger.db.damaged-1``. Dead here: nothing happened;
   the next time another number is taken.
3. The copy takes its place, in one transaction (``tripod.swapping``). Dead before its COMMIT:
   nothing happened. Dead after it: the ledger is whole, the next command works on it, and the
   next rebuild removes the copy.

What the files show is another matter: ``recover.rebuild`` follows.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from ledger.locating import DATABASE
from ledger.lock import FileLock
from ledger.renewing import copy_rows
from ledger.sqlite import SQLiteStore
from ledger.writing import explained
from projections.tables import fold_into, refold
from tripod.output import remark
from tripod.swapping import RENEWING, close_log, put_in_place, remove


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
    lock = FileLock(f"{database}.lock")
    try:
        with lock:
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
        lock.close()


def _fold(fresh: str) -> None:
    with closing(SQLiteStore(fresh, fold=fold_into)) as store:
        with store.transaction() as transaction:
            refold(transaction.tables, store.read())
        close_log(store.db)
