"""Stays with a team's files and takes in what other programs write, as it comes.

The system wakes us where it tells of changes (inotify), else we look again every ``poll-interval``
seconds, and in any case then. Folders that go and come back are watched anew.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import NamedTuple

from tripod.bus.events import settings
from tripod.bus.reader import Watch
from tripod.errors import LedgerError, TripodError
from tripod.team.adoption import sync
from tripod.team.team import Team


class TakenIn(NamedTuple):
    """Entries that others' writes became since the last one: how many of each kind.

    ``size`` is that of the ledger with them.
    """

    kinds: dict[str, int]
    size: int

    @property
    def entries(self) -> int:
        """How many they are."""
        return sum(self.kinds.values())


class _StoppedError(Exception):
    """A signal came while we waited."""


class Stop:
    """Ends a watch between two looks, never in one: by signals, or when ``asked`` is set."""

    def __init__(self) -> None:
        """Nobody asked yet."""
        self.asked = False
        self._waiting = False

    def is_asked(self) -> bool:
        """Whether the watch is to end."""
        return self.asked

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM ask for it, for the length of a ``with``; only in the main thread."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._ask) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _ask(self, *_: object) -> None:
        self.asked = True
        if self._waiting:
            raise _StoppedError

    def wait(self, watch: Watch, seconds: float) -> None:
        """Wait until something happens, unless it was asked to end."""
        try:
            self._waiting = True  # from here a signal ends the wait: first this, then the look
            if not self.asked:
                watch.wait(seconds)
        except _StoppedError:
            return
        finally:
            self._waiting = False


def watch(
    team: Team,
    report: Callable[[TakenIn], None],
    *,
    warn: Callable[[str], None],
    ready: Callable[[bool], None],
    stop: Stop,
    timeout: float | None = None,
) -> None:
    """Take in all that is there, then what comes, until ``stop`` or for ``timeout`` seconds.

    Args:
        team: whose files are watched.
        report: is told of each take-in, also where another command was faster than we.
        warn: is told what a command would warn of, each thing once.
        ready: is told once that all that was there is taken in, and whether the system wakes us.
        stop: ends the watch.
        timeout: seconds; None is for ever.
    """
    until = inf if timeout is None else time.monotonic() + timeout
    state = _State(team, report, warn)
    state.look(lambda: sync(team))
    first = True
    while not stop.is_asked():
        there = _there(team)
        config = settings(team)
        told = config["notify"] != "poll"
        with Watch([path for path, _ in there], every=config["poll_interval"], told=told) as watch:
            state.look(team.refresh)
            if first:
                ready(watch.is_told)
                first = False
            while _there(team) == there:
                left = until - time.monotonic()
                if left <= 0 or stop.is_asked():
                    return
                stop.wait(watch, left)
                state.look(team.refresh)


def _there(team: Team) -> list[tuple[str, int]]:
    """The folders that are there, with what tells one from another that took its name."""
    found = []
    for folder in team.disk.places.folders():
        path = team.disk.full(folder) if folder else team.root
        try:
            found.append((path, os.stat(path).st_ino))
        except OSError:
            continue
    return found


class _State:
    """What was told already."""

    def __init__(
        self, team: Team, report: Callable[[TakenIn], None], warn: Callable[[str], None]
    ) -> None:
        self.team = team
        self.report = report
        self.warn = warn
        self.size = team.store.head().size
        self.said: set[str] = set()

    def look(self, work: Callable[[], object]) -> None:
        """Take in, and tell of what is new; a team that cannot be written now may be later."""
        try:
            work()
            size = self.team.store.head().size
            new = self.team.store.read(self.size, size)
            kinds = Counter(e.kind for e in new if "observed" in e.data)
            self.size = size
            if kinds:
                self.report(TakenIn(dict(sorted(kinds.items())), size))
        except (TripodError, LedgerError) as error:
            self.team.warnings.append(str(error))
        for warning in self.team.warnings:
            if warning not in self.said:
                self.said.add(warning)
                self.warn(warning)
        self.team.warnings.clear()
