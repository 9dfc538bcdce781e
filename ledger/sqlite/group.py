"""Group commit: the appends of one process that wait for one database share a transaction.

A COMMIT waits for the disk, and that is most of what an append costs. So the threads that want to
append, each with a store of its own, stand in one queue. The first of them leads: it takes the
writer's place, appends for all that stand in the queue by then, commits, and gives each its entries
or its error. Once all of these have woken, the next one in the queue leads. By then those of them
that append again at once stand in the queue, too, and a thread that was answered does not fight the
next leader for the interpreter's lock. Each is served in the order in which it came, and by the
second transaction at the latest, unless more than ``LIMIT`` drafts are before it.

- Nobody is answered before the COMMIT that holds their entries returned. Where that fails, each
  of them is told so.
- An append that is refused (its guard, its id, its cause) harms only itself. One that fails half
  way takes the transaction with it; then each append of the group gets a transaction of its own.
- A leader that cannot take the writer's place is told so, and the next one tries. Only that the
  database is locked or the disk refuses is told to all that wait, so that a hundred threads do not
  wait for another program one after the other.
- A leader that is interrupted (KeyboardInterrupt, SystemExit) leaves nobody behind. The others
  of its group ask the database for their entries, and queue again if these are not there.

Processes do not share a queue: between them the writer's file lock decides (``ledger.files``). A
child that was forked begins with none.
"""

from __future__ import annotations

import os
import sqlite3
from _thread import allocate_lock
from collections import deque
from collections.abc import Hashable, Sequence
from contextlib import suppress
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from tripod.ledger.errors import UnwritableError

if TYPE_CHECKING:
    from tripod.ledger.entry import Draft, Entry
    from tripod.ledger.store import Guard, Store, Transaction

LIMIT = 1000
"""A transaction takes no further append once it has so many drafts: it stays short."""

_PATIENCE = 1.0  # seconds; a wake-up is lost only with a leader that was interrupted giving it


class _HalfWayError(Exception):
    """An append of a group failed after it had begun to write."""


class _Append:
    """One append that waits; ``done`` once its ``entries``, or its ``error``, are final."""

    __slots__ = ("done", "drafts", "entries", "error", "guard", "unread", "wake")

    def __init__(self, drafts: Sequence[Draft], guard: Guard | None) -> None:
        self.drafts = tuple(drafts)
        self.guard = guard
        self.entries: list[Entry] = []
        self.error: Exception | None = None
        self.done = False
        self.unread: list[_Append] = []  # of its group, as many as do not know yet
        self.wake = allocate_lock()
        self.wake.acquire()

    def run(self, transaction: Transaction) -> None:
        """Append; what refuses it is kept for the one who asked."""
        try:
            self.entries = transaction.append(self.drafts, self.guard)
        except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
            _raise_if_half_way(transaction, error)
            self.error = error

    def end(self, error: Exception | None = None) -> None:
        """What came of it is final, and its thread may know."""
        self.error = error
        self.done = True

    def rouse(self) -> None:
        """Wake its thread: it is done, or the next to lead."""
        with suppress(RuntimeError):  # it was woken before, and has not noticed yet
            self.wake.release()

    def result(self) -> list[Entry]:
        """The entries; raises what refused them."""
        error, self.error = self.error, None  # no circle by way of its traceback
        if error is not None:
            raise error
        return self.entries


def _raise_if_half_way(transaction: Transaction, error: Exception) -> None:
    if isinstance(error, sqlite3.Error) or not transaction.is_whole:
        raise _HalfWayError from error


class AppendGroup:
    """The appends that wait for one database; ``stores`` opened it, with the same fold."""

    __slots__ = ("_place", "_unread", "_waiting", "stores")

    def __init__(self) -> None:
        self.stores: set[int] = set()
        self._place = allocate_lock()  # who holds it leads
        self._unread: list[_Append] = []  # of the group before, as many as do not know yet
        self._waiting: deque[_Append] = deque()

    def append(self, store: Store, drafts: Sequence[Draft], guard: Guard | None) -> list[Entry]:
        """Append in a transaction that others may share; see ``Transaction.append``."""
        mine = _Append(drafts, guard)
        self._waiting.append(mine)
        try:
            while not mine.done:
                must_wait = self._place.locked() or self._unread
                if must_wait and not mine.wake.acquire(timeout=_PATIENCE) and self._place.locked():
                    continue  # the disk is slow
                with self._place:
                    if not mine.done:
                        self._lead(store, mine)
        finally:
            self._leave(mine)
        return mine.result()

    def _leave(self, mine: _Append) -> None:
        """Know what came of it, or wait no longer; the last one of a group rouses the next."""
        if not mine.done:
            with suppress(ValueError):  # somebody has taken it
                self._waiting.remove(mine)
        with suppress(IndexError):
            mine.unread.pop()
        if self._waiting and not mine.unread:
            with suppress(IndexError):  # it does not wait any more
                self._waiting[0].rouse()

    def _lead(self, store: Store, mine: _Append) -> None:
        """Append for all that wait, as far as one transaction takes them."""
        if mine not in self._waiting:  # the leader that had taken it was interrupted
            if mine.entries and all(store.seq_of(entry.id) is not None for entry in mine.entries):
                mine.end()
                return
            self._waiting.appendleft(mine)
        taken: list[_Append] = []
        self._unread = []
        try:
            self._commit(store, taken)
        except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
            if not taken:
                taken.extend(self._withdrawn(mine, error))
            for number, append in enumerate(taken):
                # To raise an exception writes into it: each thread gets one of its own.
                append.end(type(error)(*error.args) if number else error)
        finally:
            for append in taken:
                if append is not mine:
                    append.rouse()

    def _withdrawn(self, mine: _Append, error: Exception) -> list[_Append]:
        """Those that are told that the writer's place could not be taken."""
        if isinstance(error, UnwritableError) and isinstance(error.__cause__, sqlite3.Error):
            told = list(self._waiting)
            self._waiting.clear()
            return told
        self._waiting.remove(mine)
        return [mine]

    def _commit(self, store: Store, taken: list[_Append]) -> None:
        """Append for those that wait by one transaction, and list them in ``taken``."""
        try:
            with store.transaction() as transaction:
                self._take(taken)
                _append_all(transaction, taken)
        except _HalfWayError:
            for append in taken:
                try:
                    with store.transaction() as transaction:
                        append.entries = transaction.append(append.drafts, append.guard)
                except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
                    append.end(error)
                else:
                    append.end()
        else:
            for append in taken:
                append.end(append.error)

    def _take(self, taken: list[_Append]) -> None:
        """Take those that came first out of the queue."""
        drafts = 0
        with suppress(IndexError):  # the last one does not wait any more
            while self._waiting and drafts < LIMIT:
                taken.append(self._waiting.popleft())
                drafts += len(taken[-1].drafts)
        self._unread = taken.copy()
        for append in taken:
            append.unread = self._unread


def _append_all(transaction: Transaction, appends: list[_Append]) -> None:
    """Append for several, in order; those without a guard that stand together as one batch."""
    if len(appends) == 1:
        appends[0].entries = transaction.append(appends[0].drafts, appends[0].guard)
        return
    for is_guarded, part in groupby(appends, lambda append: append.guard is not None):
        alike = list(part)
        if is_guarded or not _append_together(transaction, alike):
            for append in alike:
                append.run(transaction)


def _append_together(transaction: Transaction, appends: list[_Append]) -> bool:
    """Append for several as one batch; False: one of them is refused, and nothing was appended."""
    drafts = list(chain.from_iterable(append.drafts for append in appends))
    try:
        entries = iter(transaction.append(drafts))
    except Exception as error:  # noqa: BLE001 - one by one, each raises its own
        _raise_if_half_way(transaction, error)
        return False
    for append in appends:
        append.entries = list(islice(entries, len(append.drafts)))
    return True


# Which queue ------------------------------------------------------------------------------------

_groups: dict[Hashable, AppendGroup] = {}

os.register_at_fork(after_in_child=_groups.clear)  # no thread of a queue is in the child


def join_group(key: Hashable, store: Store) -> AppendGroup:
    """The queue of all stores of this process that were opened with an equal ``key``."""
    group = _groups.setdefault(key, AppendGroup())
    group.stores.add(id(store))
    return group


def leave_group(key: Hashable, store: Store) -> None:
    """A store was closed; the last one of a queue takes it along."""
    group = _groups.get(key)
    if group is not None:
        group.stores.discard(id(store))
        if not group.stores:  # who joins it meanwhile has a queue that nobody else joins: no harm
            _groups.pop(key, None)
