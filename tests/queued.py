"""Appends of several threads that wait for the writer's place, in an order that is known."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TypeAlias

from tripod.ledger.entry import Draft, Entry
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.store import Guard

__all__ = ["Outcome", "append_queued"]

Outcome: TypeAlias = "list[Entry] | BaseException"


def append_queued(
    holder: SQLiteStore,
    again: Callable[[], SQLiteStore],
    batches: Sequence[tuple[Sequence[Draft], Guard | None]],
    before: Callable[[], object] = lambda: None,
) -> list[Outcome]:
    """Have each batch appended by a thread with a store of its own; give what came of each.

    ``holder`` has the writer's place until all of them stand in the queue, in their order; the
    first one leads. ``again`` opens a thread's store, and ``before`` is called when all wait.
    """
    outcomes: list[Outcome] = [[] for _ in batches]

    def append(number: int) -> None:
        try:
            with closing(again()) as store:
                outcomes[number] = store.append(*batches[number])
        except BaseException as error:  # noqa: BLE001 - an interrupted thread is looked at, too
            outcomes[number] = error

    with closing(again()) as watcher:
        waiting = watcher._group._waiting
        threads = []
        with holder.transaction():
            for number in range(len(batches)):
                before_it = len(waiting)
                threads.append(threading.Thread(target=append, args=(number,), daemon=True))
                threads[-1].start()
                # One may give up waiting at once: then it is its thread that ends.
                while threads[-1].is_alive() and len(waiting) == before_it:
                    time.sleep(0.0002)
            before()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "it waits for ever"
    return outcomes
