"""How costs grow with the ledger: judging, rebuilding, acting and space, from size to size.

One row a figure and size, so that a plot is a line through them. Each size is ten times the one
before it. A team is made up once and judged in turn; acts are measured in a running process, each
by itself, so that their percentiles are those of single acts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from statistics import quantiles
from time import perf_counter

from benchmarks.appends import publish_row
from benchmarks.judging import Cost, cost_of
from benchmarks.measure import MB, Row
from benchmarks.workload import Scale, make_team
from tripod.bus import events
from tripod.chat import writer
from tripod.decisions import writer as scribe
from tripod.ledger.locator import database_of
from tripod.team.team import Team

__all__ = ["SMALLEST", "rows"]

SMALLEST = 10_000  # entries
ACTS = 300  # of each kind, at each size
TEXT = "it is " * 25
DECISION = scribe.DecisionRequest("Keep both tables", ["alex"], TEXT, no_ref="a benchmark")


def rows(folder: str, largest: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows at each size up to ``largest`` entries; ``rounds`` runs of what has a process."""
    size = SMALLEST
    while size <= largest:
        say(f"a team of {size:,} entries")
        begin = perf_counter()
        root = make_team(os.path.join(folder, f"scale-{size}"), Scale(size))
        yield _row("made", size, "making it up, files included", [perf_counter() - begin], "s")
        yield from _judged(root, size, rounds, say)
        yield from _acts(root, size)
        what = f"`bus.publish` in a running process / the same bare insert, {size:,} entries"
        yield publish_row(f"scale-publish-{size}", what, root, rounds)
        yield from _space(root, size)
        size *= 10


def _row(name: str, size: int, what: str, samples: list[float], unit: str) -> Row:
    middle = sorted(samples)[len(samples) // 2]
    ours = f"{middle:,.{0 if unit in ('MB', 'files') else 2}f} {unit}"
    return Row(
        f"scale-{name}-{size}", f"{what}, {size:,} entries", ours, "", tuple(samples), unit=unit
    )


def _judged(root: str, size: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    costs: dict[str, list[Cost]] = {}
    for number in range(rounds):
        for act in ("floor", "ledger", "all", "rebuild"):
            say(f"round {number + 1} of {rounds}: {act}")
            costs.setdefault(act, []).append(cost_of(act, root))
    for act, what in (
        ("floor", "reading and hashing each row"),
        ("ledger", "`verify`, ledger checks"),
        ("all", "`verify`, all checks"),
        ("rebuild", "`rebuild`, files as they are"),
    ):
        yield _row(act, size, what, [cost.seconds for cost in costs[act]], "s")
        held = [cost.peak / MB for cost in costs[act]]
        yield _row(f"{act}-memory", size, f"peak memory of {what}", held, "MB")
        if act != "floor":
            ratios = [
                one.seconds / base.seconds
                for one, base in zip(costs[act], costs["floor"], strict=True)
            ]
            yield _row(f"{act}-ratio", size, f"{what} / reading and hashing each row", ratios, "x")


def _acts(root: str, size: int) -> Iterator[Row]:
    """Latencies of single acts in a running process: the median, the 99th in 100, the longest."""
    with Team(root) as team:
        for name, act in (
            ("publish", lambda: events.publish(team, "alex", "handoff", "normal", TEXT)),
            ("send", lambda: writer.send(team, "live", "alex", TEXT)),
            ("log", lambda: scribe.log(team, DECISION)),
        ):
            taken = []
            for _ in range(ACTS):
                begin = perf_counter()
                act()
                taken.append(1000 * (perf_counter() - begin))
            parts = quantiles(taken, n=100)
            for part, value in (("p50", parts[49]), ("p99", parts[98]), ("most", max(taken))):
                yield _row(
                    f"{name}-{part}",
                    size,
                    f"one {name} in a running process, {part}",
                    [value],
                    "ms",
                )


def _space(root: str, size: int) -> Iterator[Row]:
    found = [os.path.join(at, name) for at, _, names in os.walk(root) for name in names]
    yield _row("files", size, "files of the team", [float(len(found))], "files")
    yield _row("database", size, "the database", [os.path.getsize(database_of(root)) / MB], "MB")
