"""What looking at a ledger costs as a process, at N entries and at few."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.commands import TRIPOD, WARM_UP, command_seconds
from benchmarks.measure import Row, cost_row, in_turn
from benchmarks.workload import Scale, make_team

__all__ = ["rows"]

FEW = 1_000


def rows(folder: str, entries: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The row on ``tripod log``; ``rounds`` pairs."""
    teams = []
    for name, size in (("looked-at", entries), ("looked-at-few", FEW)):
        say(f"a team of {size:,} entries")
        os.mkdir(os.path.join(folder, name))
        teams.append(make_team(os.path.join(folder, name), Scale(size), files=False))
    look = [partial(command_seconds, (TRIPOD, "log", "-n", "20", root)) for root in teams]
    for _ in range(WARM_UP):
        look[0]()
        look[1]()
    pairs = in_turn(look[0], look[1], rounds)
    yield cost_row("log", f"`tripod log -n 20`, {entries:,} entries / {FEW:,}", pairs, 1.5)
