"""What judging and rebuilding cost at N and at N/10 entries, in time and in memory.

Judging alone is measured in a small ledger as well: what it costs to begin counts there.

Each figure comes from a process of its own (``benchmarks.child``), so that memory is that of the
act alone. Processor time is shown as well: other programs on the machine disturb it less.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.measure import Pair, Row, cost_row, growth_row, size_row
from benchmarks.workload import Scale, make_team
from tripod.projections.engine import file_renders
from tripod.team.team import Team
from tripod.verify.child import child_cores

__all__ = ["Cost", "cost_of", "forked", "own_memory", "resident", "rows", "set_aside"]

LOOK_EVERY = 0.1  # seconds


class Cost(NamedTuple):
    """Seconds that an act took, also of processor time, and bytes that its process held at most."""

    seconds: float
    processor: float
    peak: int


def rows(
    folder: str, entries: int, few: int, rounds: int, say: Callable[[str], None]
) -> Iterator[Row]:
    """The rows on verify and rebuild; ``rounds`` runs of each, in turn.

    ``few`` are the entries of the small ledger, which is judged alone.
    """
    say(f"a team of {entries:,} entries")
    large = make_team(os.path.join(folder, "large"), Scale(entries))
    say(f"a team of {entries // 10:,} entries")
    small = make_team(os.path.join(folder, "small"), Scale(entries // 10))
    say(f"a team of {few:,} entries")
    fewer = make_team(os.path.join(folder, "few"), Scale(few))
    costs: dict[str, list[Cost]] = {}
    for number in range(rounds):
        for act in ("floor", "ledger", "all", "new", "rebuild", "restore"):
            for root, where in ((large, ""), (small, "/10"), (fewer, " few")):
                if root == fewer and act not in ("floor", "ledger", "all"):
                    continue
                say(f"round {number + 1} of {rounds}: {act}{where}")
                if act == "restore":
                    set_aside(root, f"{root}-gone-{number}")
                cost = cost_of("rebuild" if act == "restore" else act, root)
                costs.setdefault(act + where, []).append(cost)
    yield from _times(costs, f"{entries:,} entries")
    of_few = {act.removesuffix(" few"): cost for act, cost in costs.items() if " few" in act}
    yield from _times(of_few, f"{few:,} entries", "-few")
    yield from _sizes(costs, f"{entries:,} entries")


def _times(costs: dict[str, list[Cost]], size: str, mark: str = "") -> Iterator[Row]:
    """The rows on the acts that have costs; ``mark`` stands behind their names."""
    read = "read and hash the same rows"
    on_ledger = 1.75 if child_cores() > 1 else 3.0
    for name, act, floor, what, at_most in (
        ("verify-ledger", "ledger", "floor", f"`verify` ledger checks, {size} / {read}", on_ledger),
        ("verify", "all", "floor", f"`verify` all checks, {size} / {read}", 5.0),
        ("verify-new", "new", "all", f"`verify --new-only`, 1,000 of {size} / all checks", 0.03),
        ("rebuild", "rebuild", "all", f"`rebuild`, {size}, files as they are / all checks", 2.0),
        ("restore", "restore", "all", f"`rebuild`, {size}, every file gone / all checks", 2.0),
    ):
        if act not in costs:
            continue
        both = list(zip(costs[act], costs[floor], strict=True))
        by_clock = [Pair(ours.seconds, base.seconds) for ours, base in both]
        yield cost_row(f"{name}{mark}", what, by_clock, at_most)
        if act != "restore":  # what waits for the disk needs little processor
            worked = [Pair(ours.processor, base.processor) for ours, base in both]
            yield cost_row(f"{name}{mark}-processor", "the same in processor time", worked)


def _sizes(costs: dict[str, list[Cost]], size: str) -> Iterator[Row]:
    for act, what in (
        ("all", "`verify`"),
        ("rebuild", "`rebuild`"),
        ("restore", "`rebuild`, files gone"),
    ):
        large = [cost.peak for cost in costs[act]]
        small = [cost.peak for cost in costs[act + "/10"]]
        yield size_row(f"memory-{act}", f"peak memory of {what}, {size}", large, 300)
        yield growth_row(
            f"growth-{act}", f"peak memory of {what}, {size} / a tenth of them", large, small, 1.2
        )


def cost_of(act: str, root: str) -> Cost:
    """Do an act in a process of its own; what its forks hold at the same moment counts as well."""
    command = (sys.executable, "-m", "benchmarks.child", act, root)
    together = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while process.poll() is None:
            beside = sum(own_memory(pid) for pid in forked(process.pid))
            together = max(together, beside + (resident(process.pid) if beside else 0))
            time.sleep(LOOK_EVERY)
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        message = f"{act} ended with {process.returncode}"
        raise RuntimeError(message)
    cost = Cost(**json.loads(said))
    return cost._replace(peak=max(cost.peak, together))


def forked(pid: int) -> list[int]:
    """The processes below a process that still run (Linux; else none)."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    except OSError:
        return found
    return found + [below for child in found for below in forked(child)]


def resident(pid: int) -> int:
    """Bytes that a process holds in memory now, those that it shares included (Linux; else 0)."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def own_memory(pid: int) -> int:
    """Bytes that a process shares with no other: a fork's pages are its parent's until written."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            sizes = [line.split()[1] for line in file if line.startswith("Private_")]
    except OSError:
        return 0
    return sum(map(int, sizes)) * 1024


def set_aside(root: str, away: str) -> None:
    """Move every projected file of a team into the new folder ``away``.

    They are not deleted: for minutes after it, ext4 looks past each place that a deleted file left
    whenever it makes a new one, which took twenty times as long as all that is to be measured.
    """
    with Team(root) as team:
        os.mkdir(away)
        for number, (path, _) in enumerate(list(file_renders(team.source))):
            os.rename(team.disk.full(path), f"{away}/{number}")
    os.sync()
