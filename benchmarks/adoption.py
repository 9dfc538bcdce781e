"""What taking in the whole past of a team costs: a team of one large size, as its tools leave it.

The floor is what nobody can do without who reads it all: reading every file in Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.measure import Pair, Row, cost_row, growth_row, size_row, time_row
from tripod.ledger.locator import FOLDER
from tripod.projections.bus.format import Event, event_name, format_event, format_time
from tripod.projections.chat import format as chats
from tripod.projections.decisions.format import (
    DecisionText,
    format_decision,
    format_decision_log_header,
)
from tripod.team.team import Team

__all__ = ["lay", "rows"]

MESSAGES, DECISIONS, EVENTS = 13_000, 2_600, 20_000
LINES = 1_900  # of a chat: below the size at which its tool splits it
PENDING = 50  # events that nobody acknowledged yet
AT_MOST_MS = 10_000
TIMES = 7  # the larger team of the rows on memory holds so much more
AT_MOST_MB = 200
BEGIN_S = 1_760_000_000
TEXT = "both tables stay until the migration is done, then we remove the old one"
PEOPLE = ("alex", "claude", "doc-worker", "gatekeeper", "parser-a3f1", "store-b7c2", "test-runner")
INIT = (str(Path(sys.executable).parent / "tripod"), "init", "--no-key", ".")
_READ_ALL = """
import os
for place, _, names in os.walk(".nbs"):
    for name in names:
        with open(os.path.join(place, name), "rb") as file:
            file.read()
"""
READ = (sys.executable, "-c", _READ_ALL)


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on adoption; ``rounds`` times each."""
    say(f"a team of {MESSAGES:,} messages, {DECISIONS:,} decisions, {EVENTS:,} events")
    pairs = []
    for number in range(rounds):
        project = lay(os.path.join(folder, f"adopted-{number}"), MESSAGES, DECISIONS, EVENTS)
        pairs.append(Pair(floor=_seconds(READ, project), ours=_seconds(INIT, project)))
        shutil.rmtree(project)
    what = f"`tripod init` over {MESSAGES:,} messages, {DECISIONS:,} decisions, {EVENTS:,} events"
    yield time_row("adoption", what, [pair.ours for pair in pairs], AT_MOST_MS)
    yield cost_row("adoption-read", "the same / reading all those files in Python", pairs)
    yield from _memory(folder, say)


def _memory(folder: str, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on memory, one run of each size: nothing else on the machine changes it."""
    peaks, entries = [], 0
    for times in (1, TIMES):
        sizes = (MESSAGES * times, DECISIONS * times, EVENTS * times)
        say("memory of `init`, a team of {:,} messages, {:,} decisions, {:,} events".format(*sizes))
        project = lay(os.path.join(folder, f"memory-{times}"), *sizes)
        peaks.append(_peak(INIT, project))
        with Team(project) as team:
            entries = team.head().size
        shutil.rmtree(project)
    small, large = peaks
    what = f"peak memory of `tripod init`, {entries:,} entries"
    yield size_row("memory-init", what, [large], AT_MOST_MB)
    yield growth_row("growth-init", f"{what} / a seventh of them", [large], [small], 1.2)


def lay(project: str, messages: int, decisions: int, events: int) -> str:
    """Make a project whose team directory holds so much, and no ledger; give the project."""
    root = Path(project, FOLDER)
    for name in ("chat", "events/processed", "scribe"):
        (root / name).mkdir(parents=True)
    for number, first in enumerate(range(0, messages, LINES)):
        _chat(root / f"chat/channel-{number}.chat", range(first, min(first + LINES, messages)))
    log = format_decision_log_header("bench", "2025-10-09T08:53:20Z", "scribe")
    log += "".join(_decision(number) for number in range(decisions))
    (root / "scribe/log.md").write_text(log, encoding="utf-8")
    for number in range(events):
        us = (BEGIN_S + number * 7) * 1_000_000 + number
        place = root / "events" / ("processed" if number < events - PENDING else "")
        who = PEOPLE[number % len(PEOPLE)]
        event = Event(who, "task-note", "normal", format_time(us), f"{who}:task-note", TEXT)
        (place / event_name(us, who, "task-note", 4000)).write_bytes(format_event(event))
    return project


def _chat(path: Path, numbers: Sequence[int]) -> None:
    lines = [
        chats.format_line(PEOPLE[n % len(PEOPLE)], BEGIN_S + n * 11, f"{TEXT} {n}") for n in numbers
    ]
    body = b"".join(line + b"\n" for line in lines)
    people = tuple((who, len(numbers[at :: len(PEOPLE)])) for at, who in enumerate(PEOPLE))
    header = chats.ChatHeader(PEOPLE[0], chats.format_time(BEGIN_S + numbers[-1] * 11), people)
    path.write_bytes(chats.format_header(header, len(body)) + body)


def _decision(number: int) -> str:
    at = BEGIN_S + number * 53
    ref = f"channel-{number % 6}.chat:~L{7 + number % LINES}"
    return format_decision(
        DecisionText(
            id=f"D-{at}",
            title=f"Keep table {number}",
            supersedes=None,
            chat_ref=ref,
            participants="alex, claude",
            artefacts="src/store.py",
            risk_tags="reversible",
            status="decided",
            rationale=f"Decision {number}: {TEXT}.",
        )
    )


_PEAK = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(status != 0)
"""


def _peak(command: tuple[str, ...], project: str) -> int:
    """The most bytes that a command held at once.

    A small process starts it: Linux counts what the starting process held.
    """
    words = (sys.executable, "-c", _PEAK, *command)
    done = subprocess.run(words, cwd=project, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout) * 1024


def _seconds(command: Sequence[str], project: str) -> float:
    begin = perf_counter()
    subprocess.run(
        command, cwd=project, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return perf_counter() - begin
