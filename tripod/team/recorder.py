"""Acts of many threads, or of many asyncio tasks, on one team: those that wait share a transaction.

A ``Team`` belongs to one thread. A ``Recorder`` has such a thread of its own, and others hand their
acts to it. What one act costs most is the wait for the disk and the look at the team's files; where
several acts wait, the recorder opens one act around them (``Team.act``), and pays that once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from tripod.errors import RefusedError
from tripod.team.team import Team, open_team

LIMIT = 64
"""At most so many acts share a transaction: other programs wait for its end."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Call:
    """One act, and the future that its caller waits for."""

    def __init__(self, act: Callable[[Team], object]) -> None:
        self.act = act
        self.future: Future[Any] = Future()

    def alone(self, team: Team) -> None:
        """Do it, and answer."""
        try:
            value = self.act(team)
        except StopIteration as error:  # asyncio puts it into no future: its task would hang
            told = RuntimeError("the act raised StopIteration: what it asked for has no more")
            told.__cause__ = error
            self.future.set_exception(told)
        except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
            self.future.set_exception(error)
        else:
            self.future.set_result(value)


class Recorder:
    """Does the acts of many threads or asyncio tasks on one team: ``with Recorder("cafe") as ...``.

    It opens the team in a thread of its own; any thread may call ``do``. An act is answered when it
    is on the disk and the files show it. Acts that wait together are recorded in the order in which
    they were handed over, except that those which were refused, or cannot be a part of another act,
    are tried once more after the others, alone.

    Attributes:
        path: as it was given.
        warnings: what a person should know of the acts so far, one sentence each.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Open a team.

        Args:
            path: the project's folder or its team directory; None: as ``open_team`` finds it.

        Raises:
            NoTeamError: there is no team directory, or no ledger in it.
            LedgerError: the ledger is damaged, or cannot be written.
        """
        self.path = path
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._pid = os.getpid()
        self._closing = threading.Lock()
        self._closed = False
        opened: Future[list[str]] = Future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name="recorder")
        self._thread.daemon = True
        self._thread.start()
        self.warnings = opened.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def do(
        self, act: Callable[Concatenate[Team, _P], _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Have an act done; give a future of what it returns or raises.

        ``recorder.do(bus.publish, "parser", "task-complete", "normal").result()`` waits in a
        thread, ``await asyncio.wrap_future(recorder.do(...))`` in a task.

        Args:
            act: a function of this package that records something, such as ``bus.publish``,
                ``bus.ack``, ``chat.send`` or ``decisions.log``. It may be called twice, where the
                first try left nothing. What it returns must not depend on the team any more.
            args: what it is given after the team.
            kwargs: what it is given by name.

        Raises:
            RefusedError: the recorder is closed, or belongs to the process that forked this one.
        """
        call = _Call(lambda team: act(team, *args, **kwargs))
        with self._closing:
            if self._closed or self._pid != os.getpid():
                why = "is closed" if self._closed else "was made before this process was forked"
                raise RefusedError(f"this recorder {why}: make another one")
            self._calls.put(call)
        return call.future

    def close(self) -> None:
        """Finish what was handed over, and close the team."""
        with self._closing:
            if not self._closed and self._pid == os.getpid():
                self._calls.put(None)
            self._closed = True
        if self._pid == os.getpid():
            self._thread.join()

    def _run(self, opened: Future[list[str]]) -> None:
        try:
            team = open_team(self.path)
        except BaseException as error:  # noqa: BLE001 - the one who opens it is told
            opened.set_exception(error)
            return
        opened.set_result(team.warnings)
        calls: list[_Call | None] = []
        try:
            with team:
                while None not in calls:
                    calls = [self._calls.get()]
                    with suppress(Empty):
                        while len(calls) < LIMIT:
                            calls.append(self._calls.get_nowait())
                    _record(
                        team, [c for c in calls if c and c.future.set_running_or_notify_cancel()]
                    )
        finally:  # such as a callback of a future that left: nobody waits for a thread that ended
            self._abandon(calls)

    def _abandon(self, calls: list[_Call | None]) -> None:
        """Take no more acts, and tell those that wait for these, or for later ones."""
        with self._closing:
            self._closed = True
        while not self._calls.empty():
            calls.append(self._calls.get())
        for call in calls:
            if call is not None and not call.future.done():
                error = RefusedError("the recorder's thread ended: see whether this is recorded")
                with suppress(BaseException):  # its own callbacks may fail, too
                    call.future.set_exception(error)


def _record(team: Team, calls: list[_Call]) -> None:
    """Do acts, several as one; where that is refused because of one, each of them alone."""
    done: list[tuple[_Call, object]] = []
    again = calls
    if len(calls) > 1:
        again = []
        made: str | None = None  # the id of an entry of theirs; '' where they have none
        try:
            with team.act() as act:
                for call in calls:
                    before = act.extent()
                    try:
                        done.append((call, call.act(team)))
                    except BaseException:  # noqa: BLE001 - it is tried again, and raises that then
                        again.append(call)
                        # What it did before that would be there twice.
                        act.is_broken = act.is_broken or act.extent() != before
                    if act.is_broken:
                        break
                made = act.entries.newest_id
        except BaseException as error:  # noqa: BLE001 - all of them are told
            is_refused = isinstance(error, RefusedError) and made is not None
            if not is_refused or team.store.seq_of(made or "") is not None:
                for call in calls:
                    call.future.set_exception(error)
                return
            done, again = [], calls
    for call, value in done:
        call.future.set_result(value)
    for call in again:
        call.alone(team)
