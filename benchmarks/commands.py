"""What a command costs as a process: how it starts, and whether a full queue slows it down."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter

from benchmarks.measure import Pair, Row, cost_row, in_turn
from benchmarks.workload import fill_queue
from tripod.ledger.locator import FOLDER, database_of
from tripod.projections.bus.tables import BUS

__all__ = ["TRIPOD", "WARM_UP", "command_seconds", "rows"]

FEW, MANY = 100, 50_000
ALL_ROUNDS = 3  # at most, of what needs a full queue of its own each time
WARM_UP = 2
FLOOR = (sys.executable, "-c", "import click, sqlite3, hashlib, json")
START = 1.1
STARTS: dict[str, tuple[str, ...]] = {
    "publish": ("bus", "publish", "bench", "task-complete", "normal", "all 41 tests are green"),
    "check": ("bus", "check"),
    "read": ("chat", "read", "live", "--last=10"),
    "send": ("chat", "send", "live", "bench", "hello"),
    "log": ("scribe", "log", "Title", "-p", "bench", "-r", "why", "--ref", "live#0", "--json"),
}
"""The commands that are called most."""
TRIPOD, NBS_BUS = (str(Path(sys.executable).parent / name) for name in ("tripod", "nbs-bus"))


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on commands; ``rounds`` pairs each."""
    few = Queue(fill_queue(os.path.join(folder, "few"), FEW))
    yield from _starts(few, rounds)
    yield from _work_trees(folder, rounds)
    say(f"a queue of {MANY:,} events")
    many = Queue(fill_queue(os.path.join(folder, "many"), MANY))
    none = Queue(fill_queue(os.path.join(folder, "none"), 0))
    for _ in range(WARM_UP):
        many.publish_once()
        none.publish_once()
    pairs = in_turn(many.publish_once, none.publish_once, rounds)
    what = f"`bus publish --dedup-window=300`, {MANY:,} pending / none pending"
    yield cost_row("queue-publish", what, pairs, 1.5)
    for name, what, act in (
        ("queue-ack", "`bus ack`", Queue.ack),
        ("queue-check", "`bus check` to its first line", Queue.check),
    ):
        for _ in range(WARM_UP):
            act(many)
            act(few)
        pairs = in_turn(partial(act, many), partial(act, few), rounds)
        yield cost_row(name, f"{what}, {MANY:,} pending / {FEW} pending", pairs, 1.5)
    yield from _whole_queue(folder, many, rounds)


def _starts(few: Queue, rounds: int) -> Iterator[Row]:
    """What the commands that are called most cost as whole processes, disk waits included."""
    command_seconds((TRIPOD, "chat", "create", "live"), few.project)
    command_seconds((TRIPOD, *STARTS["send"]), few.project)
    for name, words in STARTS.items():
        command = (TRIPOD, *words)
        spent: dict[tuple[str, ...], list[float]] = {command: [], FLOOR: []}
        calls = {one: partial(_timed, one, few.project, spent[one]) for one in spent}
        for _ in range(WARM_UP):
            for call in calls.values():
                call()
        for seconds in spent.values():
            seconds.clear()
        pairs = in_turn(calls[command], calls[FLOOR], rounds)
        what = f'`tripod {" ".join(words[:2])}` / `python -c "{FLOOR[-1]}"`'
        yield cost_row(f"start-{name}", what, pairs, START)
        cpu = [Pair(*pair) for pair in zip(spent[command], spent[FLOOR], strict=True)]
        yield cost_row(f"start-{name}-processor", "the same in processor time", cpu)


def _timed(command: tuple[str, ...], folder: str, spent: list[float]) -> float:
    """Run a command in a folder; the seconds that it took. Its processor time goes to ``spent``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = command_seconds(command, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return seconds


def _work_trees(folder: str, rounds: int) -> Iterator[Row]:
    """What finding the team of the repository costs from a linked work tree."""
    top = os.path.join(folder, "trees")
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    for words in (
        ("init", "--quiet", top),
        ("-C", top, *who, "commit", "--quiet", "--allow-empty", "--message=begin"),
        ("-C", top, "worktree", "add", "--quiet", f"{folder}/linked"),
    ):
        subprocess.run(("git", *words), check=True, stdout=subprocess.DEVNULL)
    root = fill_queue(top, FEW)
    main, linked = Queue(root), Queue(root)
    linked.project = f"{folder}/linked"
    for _ in range(WARM_UP):
        main.publish()
        linked.publish()
    pairs = in_turn(linked.publish, main.publish, rounds)
    yield cost_row("work-tree", "`bus publish`, a linked work tree / the main one", pairs, 1.05)


def _whole_queue(folder: str, many: Queue, rounds: int) -> Iterator[Row]:
    """What looks at every pending event, beside what every file costs at least."""
    pairs = in_turn(many.list_all, many.read_all, rounds)
    what = f"`nbs-bus check`, {MANY:,} pending / reading so many files in Python"
    yield cost_row("whole-check", what, pairs, 0.5)
    pairs = []
    for number in range(min(rounds, ALL_ROUNDS)):
        full = Queue(fill_queue(os.path.join(folder, f"full-{number}"), MANY))
        pairs += in_turn(full.ack_all, full.rename_all, 1)
    what = f"`nbs-bus ack-all`, {MANY:,} pending / renaming so many files in Python"
    yield cost_row("whole-ack", what, pairs, 2)


class Queue:
    """A team whose queue commands are timed on."""

    def __init__(self, root: str) -> None:
        """``root`` is its team directory; commands run in the project's folder around it."""
        self.project = os.path.dirname(root)
        self.numbers = count()
        db = sqlite3.connect(f"file:{database_of(root)}?mode=ro", uri=True)
        names = [row[0] for row in db.execute("SELECT name FROM events WHERE acked IS NULL")]
        db.close()
        random.Random(1).shuffle(names)
        self.names = iter(names)

    def _run(self, *words: str) -> float:
        return command_seconds((TRIPOD, "bus", *words), self.project)

    def publish(self) -> float:
        """Publish an event."""
        return self._run("publish", "bench", "task-complete", "normal", "all 41 tests are green")

    def publish_once(self) -> float:
        """Publish an event of a type that nobody used, where equal ones would be dropped."""
        type_ = f"type-{next(self.numbers)}"
        return self._run("publish", "bench", type_, "normal", "once", "--dedup-window=300")

    def ack(self) -> float:
        """Acknowledge an event somewhere in the queue."""
        return self._run("ack", next(self.names), "--as", "bench")

    def check(self) -> float:
        """Seconds until the first pending event is printed."""
        begin = perf_counter()
        with subprocess.Popen(
            (TRIPOD, "bus", "check"),
            cwd=self.project,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            return perf_counter() - begin

    def list_all(self) -> float:
        """List all that is pending."""
        return command_seconds((NBS_BUS, "check", f"{FOLDER}/{BUS.folder}"), self.project)

    def read_all(self) -> float:
        """The floor of a queue without an index: open and read each file."""
        return command_seconds((*_PYTHON, _READ_ALL, f"{FOLDER}/{BUS.folder}"), self.project)

    def ack_all(self) -> float:
        """Acknowledge all."""
        return command_seconds((NBS_BUS, "ack-all", f"{FOLDER}/{BUS.folder}"), self.project)

    def rename_all(self) -> float:
        """The floor of acknowledging all: rename each file, which are the acknowledged now."""
        done = f"{FOLDER}/{BUS.folder}/processed"
        return command_seconds((*_PYTHON, _RENAME_ALL, done), self.project)


_PYTHON = (sys.executable, "-c")
_READ_ALL = """
import os, sys
for item in os.scandir(sys.argv[1]):
    if item.name.endswith(".event"):
        with open(item.path, "rb") as file:
            file.read()
"""
_RENAME_ALL = """
import os, sys
folder = sys.argv[1]
os.mkdir(f"{folder}/again")
for name in os.listdir(folder):
    if name.endswith(".event"):
        os.rename(f"{folder}/{name}", f"{folder}/again/{name}")
"""


def _environment() -> dict[str, str]:
    """The user's own, but let Python keep what it compiled, as it does for most users."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def command_seconds(command: tuple[str, ...], folder: str = ".") -> float:
    """Run a command in a folder; the seconds that it took."""
    begin = perf_counter()
    subprocess.run(command, cwd=folder, env=_environment(), stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - begin
