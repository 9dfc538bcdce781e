"""A program that appends, for the tests that start several of it, or kill it.

``python -m appender PATH NAME COUNT [DEATH]``: opens the ledger at PATH (makes it, where there is
none), says ``ready``, waits for a line, then appends COUNT entries (0: without end) and says the id
of each once it was answered. DEATH is where it kills itself in its last act.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from sample_ledger import opening, said

from tripod.ledger.entry import Entry
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.store import Blobs

__all__ = ["DEATHS", "OPENING"]

OPENING = opening()._replace(id="opening")
"""The same draft from everybody: who comes first opens the ledger."""

DEATHS = ("in the transaction", "in the fold", "after the commit")


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fold(tables: Any, entries: Sequence[Entry], _: Blobs) -> None:
    for entry in entries:
        if entry.data.get("text") == {"text": "in the fold"}:
            tables.execute("CREATE TABLE half_done (x)")
            _die()


def _last_act(store: SQLiteStore, death: str) -> None:
    after: Callable[[], None] | None = _die if death == "after the commit" else None
    with store.transaction(after) as transaction:
        transaction.append([said(death, id="last")])
        if death == "in the transaction":
            _die()


def _main(path: str, name: str, times: str, death: str = "") -> None:
    store = SQLiteStore(path, create=True, fold=_fold)
    store.append([OPENING])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(times)) if int(times) else count():
        draft = said("x" * (number % 7 * 100), id=f"{name}-{number}", blobs=(b"%d" % (number % 3),))
        for entry in store.append([draft]):
            sys.stdout.write(f"{entry.id}\n")
            sys.stdout.flush()
    if death:
        _last_act(store, death)
    store.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
