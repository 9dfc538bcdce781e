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

from tripod.bus.reader import QueueWatch
from tripod.errors import TripodError
from tripod.team.act import settings_of_queue
from tripod.team.adoption import sync
from tripod.team.team import Team


class _StoppedError(Exception):
    """A signal came while we waited."""


class WatchStop:
    """Ends a watch between two looks, never in one: by signals, or when ``asked`` is set."""

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

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

    def wait(self, watch: QueueWatch, seconds: float) -> None:
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
    report: Callable[[dict[str, int], int], None],
    *,
    warn: Callable[[str], None],
    ready: Callable[[bool], None],
    stop: WatchStop,
    timeout: float | None = None,
) -> None:
    """Take in all that is there, then what comes, until ``stop`` or for ``timeout`` seconds.

    ``report`` gets each take-in, also where another command was faster than we: how many entries of
    each kind it became, and the ledger's size with them; ``warn`` what a command would warn of,
    each thing once. ``ready`` is called once, when all that was there is taken in, with whether the
    system wakes us.
    """
    until = inf if timeout is None else time.monotonic() + timeout
    shown = team.store.size
    said: set[str] = set()

    def look(work: Callable[[], object]) -> None:
        """Take in, and report what is new; a team that cannot be written now may be later."""
        nonlocal shown
        try:
            work()
            size = team.store.size
            kinds = Counter(e.kind for e in team.store.read(shown, size) if "observed" in e.data)
            shown = size
            if kinds:
                report(dict(sorted(kinds.items())), size)
        except TripodError as error:
            team.warnings.append(str(error))
        for warning in team.warnings:
            if warning not in said:
                said.add(warning)
                warn(warning)
        team.warnings.clear()

    look(lambda: sync(team))
    is_ready = False
    while not stop.asked:
        there = _there(team)
        config = settings_of_queue(team)
        told = config["notify"] != "poll"
        with QueueWatch(
            [path for path, _ in there], every=config["poll_interval"], told=told
        ) as watch:
            look(team.refresh)
            if not is_ready:
                ready(watch.is_told)
                is_ready = True
            while _there(team) == there:
                left = until - time.monotonic()
                if left <= 0 or stop.asked:
                    return
                stop.wait(watch, left)
                look(team.refresh)


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
