"""What an act costs where the team grew: archived chats, decisions, a full queue."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter, time_ns

from benchmarks.chats import TEXT, begin
from benchmarks.commands import TRIPOD, WARM_UP, command_seconds
from benchmarks.measure import Pair, Row, cost_row, in_turn
from benchmarks.workload import fill_queue
from tripod.bus import events
from tripod.chat import writer as chat
from tripod.ledger.locator import FOLDER
from tripod.projections.bus.format import Event, event_name, format_event, format_time
from tripod.projections.decisions.format import DecisionText, format_decision
from tripod.team import adoption
from tripod.team.team import Team

__all__ = ["rows"]

ARCHIVES = 255
FEW, MANY = 100, 10_000  # decisions
PENDING = 108_000
ONE_BY_ONE = 10  # acts a turn
TURNS = 30  # a timing
ROUNDS = 7  # of acts in a running process
_HEADER = "# Decision Log\n\nProject: bench\nCreated: 2025-10-09T08:53:20Z\nScribe: scribe\n\n---\n"
_DECISION = ("scribe", "log", "Use one ledger", "-p", "ann", "-r", "two disagree", "--no-ref=x")
_PUBLISH = ("bus", "publish", "bench", "task-complete", "normal", "all 41 tests are green")
_numbers = count(1)


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on growth; ``rounds`` pairs each."""
    say(f"{ARCHIVES} archived chats")
    plain, archived = (_chats(os.path.join(folder, f"archives-{n}"), n) for n in (0, ARCHIVES))
    what = f"`bus publish`, {ARCHIVES} archived chats / none"
    pairs = _commands(_PUBLISH, archived, plain, rounds)
    yield cost_row("archives", what, pairs, 1.1)
    with Team(archived) as many, Team(plain) as few:
        pairs = in_turn(partial(_acts, many), partial(_acts, few), ROUNDS, TURNS)
    what = f"`bus.publish` in a running process, {ARCHIVES} archived chats / none"
    yield cost_row("archives-act", what, pairs, 1.1)
    say(f"{MANY:,} decisions")
    short, long = (_decisions(os.path.join(folder, f"decisions-{n}"), n) for n in (FEW, MANY))
    what = f"`scribe log`, {MANY:,} decisions / {FEW}"
    yield cost_row("decisions", what, _commands(_DECISION, long, short, rounds), 1.3)
    say(f"a queue of {PENDING:,} events")
    none, full = (fill_queue(os.path.join(folder, f"pending-{n}"), n) for n in (0, PENDING))
    for root in (full, none) * WARM_UP:
        _after_foreign_event(root)
    pairs = in_turn(
        partial(_after_foreign_event, full), partial(_after_foreign_event, none), rounds
    )
    what = f"`bus publish` after one foreign event, {PENDING:,} pending / none"
    yield cost_row("foreign-event", what, pairs, 2)
    with Team(full) as many, Team(none) as few:
        pairs = in_turn(partial(_acts, many), partial(_acts, few), ROUNDS, TURNS)
    what = f"`bus.publish` in a running process, {PENDING:,} pending / {PENDING:,} less"
    yield cost_row("pending-act", what, pairs, 1.1)


def _commands(words: Sequence[str], large: str, small: str, rounds: int) -> list[Pair]:
    """Seconds of a command in two teams, in turn."""
    run = partial(command_seconds, (TRIPOD, *words))
    large, small = os.path.dirname(large), os.path.dirname(small)
    for folder in (large, small) * WARM_UP:
        run(folder)
    return in_turn(partial(run, large), partial(run, small), rounds)


def _chats(folder: str, archives: int) -> str:
    """A team with a chat that was split so often."""
    root = begin(folder)
    with Team(root) as team, team.act():
        for number in range(archives):
            for part in range(2):
                chat.send(team, "live", "ann", f"{number}.{part}")
            chat.archive(team, "live", 1)
    return root


def _acts(team: Team) -> float:
    start = perf_counter()
    for _ in range(ONE_BY_ONE):
        events.publish(team, "bench", "task-complete", "normal", "all 41 tests are green")
    return perf_counter() - start


def _decisions(folder: str, decisions: int) -> str:
    """A team whose log has so many decisions."""
    os.makedirs(folder)
    root = adoption.init(folder, project="bench", key=False, new=True).root
    Path(root, "scribe").mkdir(exist_ok=True)
    with Path(root, "scribe/log.md").open("w", encoding="utf-8") as file:
        file.write(_HEADER)
        for number in range(decisions):
            decision = DecisionText(
                id=f"D-{1_760_000_000 + 60 * number}",
                title=f"Decision {number} on the migration",
                supersedes=None,
                chat_ref="—",
                participants="ann, ben",
                artefacts="docs/plan.md",
                risk_tags="none",
                status="decided",
                rationale=TEXT,
            )
            file.write(format_decision(decision))
    with Team(root) as team:
        adoption.sync(team)
    return root


def _after_foreign_event(root: str) -> float:
    """Seconds of a command, after another program put an event into the queue."""
    us = time_ns() // 1000
    event = Event("worker", "task-complete", "normal", format_time(us), "worker:task-complete", "")
    path = Path(root, "events", event_name(us, "worker", "task-complete", next(_numbers)))
    Path(f"{path}.tmp").write_bytes(format_event(event))
    Path(f"{path}.tmp").rename(path)
    return command_seconds((TRIPOD, *_PUBLISH), root.removesuffix(f"/{FOLDER}"))
