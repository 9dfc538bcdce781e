"""A host's clock that is wrong: it jumps, runs ahead, repeats a second, differs from another's.

The clock is set in the fork that runs the command: all that tripod knows of the time it asks of the
module ``time``. What must hold whatever the clock says: entries are never dated back and none is
lost, every check is as clean as before, a claim that runs is nobody else's, an event is silenced
for its window and no longer, and no command fails otherwise than in words.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple

from torture.children import Ended, main_of
from torture.scenes import SCENES
from torture.teams import (
    PROGRAM,
    SECONDS,
    Case,
    Known,
    Result,
    Scene,
    begin,
    copy_team,
    entry_ids,
    make_team,
    recovered,
    remove_team,
)
from tripod.ledger.locator import database_of

__all__ = ["APART", "CLOCK", "Clock", "clocks"]

_BY_NAME = {scene.name: scene for scene in SCENES}
CLOCK = _BY_NAME["seal"]._replace(name="clock", acts=())
APART = _BY_NAME["pull"]._replace(name="apart", acts=())
"""Two replicas, each on a machine with a clock of its own."""

SECOND, HOUR, YEAR = 10**6, 3600 * 10**6, 365 * 86_400 * 10**6
ERRORS = (
    0, -SECOND, SECOND, -HOUR, HOUR, -3 * YEAR, 2 * YEAR, -55 * YEAR, 50 * YEAR, 204 * YEAR,
)  # fmt: skip
"""How far a clock is from the true time, in microseconds: from a machine that begins in 1970 to
the last year that Linux lets a clock be set to (2232)."""


class Clock(NamedTuple):
    """A clock that is ``ahead``, and jumps by ``jump`` when it was read ``after`` times (µs)."""

    ahead: int = 0
    jump: int = 0
    after: int = 0

    def set(self, main: Callable[[], object]) -> Callable[[], object]:
        """``main`` under this clock, for a fork: it is never set right again."""

        def run() -> object:
            true, reads = time.time_ns, count()

            def wrong() -> int:
                jumped = self.jump if next(reads) >= self.after else 0
                return true() + 1000 * (self.ahead + jumped)

            time.time_ns, time.time = wrong, lambda: wrong() / 10**9
            return main()

        return run


class Lost(Exception):  # noqa: N818 - what was looked for, and found
    """What must hold does not."""


class Host:
    """A team's project on a machine; its clock is set for each command."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.ids = entry_ids(project)

    def run(self, *words: str, clock: Clock = Clock(), codes: Sequence[int] = (0,)) -> Ended:  # noqa: B008 - never changes
        """Run a command (Lost: it hangs, breaks, ends with another code, or an entry is gone)."""
        child = begin(words, self.project, main=clock.set(main_of(PROGRAM)))
        try:
            ended = child.end(SECONDS)
        except TimeoutError as error:
            raise Lost(f"{words} hangs under {clock}") from error
        err = ended.err.decode("utf-8", "replace")
        if ended.code not in codes or "Traceback" in err or (ended.code and not err):
            out = ended.out.decode("utf-8", "replace")[-1500:]
            raise Lost(f"{words} ended with {ended.code} under {clock}: {err[-1500:]}{out}")
        ids = entry_ids(self.project)
        if ids[: len(self.ids)] != self.ids:
            raise Lost(f"{words} under {clock}: of {len(self.ids)} entries some are gone")
        self.ids = ids
        self._look_at_times(words, clock)
        return ended

    def _look_at_times(self, words: Sequence[str], clock: Clock) -> None:
        db = sqlite3.connect(database_of(str(self.project / ".nbs")))
        rows = db.execute("SELECT header FROM entries ORDER BY seq").fetchall()
        db.close()
        times = [json.loads(header)["at"] for (header,) in rows]
        if any(late < early for early, late in pairwise(times)):
            raise Lost(f"{words} under {clock}: an entry is dated back")

    def pending(self) -> list[str]:
        """The events that nobody acknowledged."""
        out = self.run("bus", "check", "--json").out.decode()
        return [json.loads(line)["name"] for line in out.splitlines()]


def clocks(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Stories without end, each in a copy of its own."""
    folder.mkdir()
    holding = make_team(scene, folder / "team")
    chance = random.Random(seed)
    stories = (apart,) if scene.git else (anything, lease, window, seals)
    while True:
        story, own, copy = chance.choice(stories), random.Random(chance.random()), folder / "run"
        tell = partial(_tell, story, folder / "team", copy, holding, own)
        yield Case(f"clock: {story.__name__}", tell)


Story = Callable[[Path, random.Random], None]


def _tell(story: Story, team: Path, copy: Path, holding: Known, chance: random.Random) -> Result:
    copy_team(team, copy)
    try:
        story(copy, chance)
        return _after(copy, holding, story.__name__)
    except Lost as error:
        return Result(str(error), wrong=True)
    finally:
        remove_team(copy)


def _after(copy: Path, holding: Known, name: str) -> Result:
    now = entry_ids(copy)
    result = recovered(copy, Known(now, len(now), holding.verdict))
    return result if result.wrong else Result(f"as it must be ({name})")


def _some(chance: random.Random) -> Clock:
    """A clock by lot; one in three jumps while the command works, one in nine repeats a second."""
    ahead = chance.choice(ERRORS) + chance.randrange(SECOND)
    jump = chance.choice((0, 0, 0, 0, 0, 0, -SECOND, -HOUR, 2 * YEAR))
    return Clock(ahead, jump, chance.randrange(12))


def anything(project: Path, chance: random.Random) -> None:
    """Acts of all kinds, each under a clock of its own."""
    host = Host(project)
    foreign = count()

    def drop() -> None:
        us = time.time_ns() // 1000 + chance.choice(ERRORS)
        text = "source: bob\ntype: note\npriority: low\ntimestamp: 2026-11-20T10:00:00Z\n"
        if us > 0:
            name = f"{us}-bob-note-{next(foreign)}.event"
            (project / ".nbs/events" / name).write_text(text + "payload: |\n  x\n")

    acts: tuple[tuple[str, ...], ...] = (
        ("bus", "publish", "ann", "note", "low", "text"), ("bus", "status"), ("bus", "ack-all"),
        ("chat", "send", "live", "ann", "text"), ("chat", "read", "live"),
        ("scribe", "log", "Rule", "-p", "ann", "-r", "So.", "--ref=live#last"),
        ("seal",), ("sync",), ("rebuild",), ("verify",), ("log",), ("doctor",),
    )  # fmt: skip
    for _ in range(chance.randint(3, 7)):
        if chance.random() < 0.3:
            drop()
        host.run(*chance.choice(acts), clock=_some(chance))
    for act in acts:
        host.run(*act)


def lease(project: Path, chance: random.Random) -> None:
    """A claim is its holder's until its time is over by the clock, and stops nobody for ever."""
    host = Host(project)
    ahead = chance.choice(ERRORS)
    seconds = chance.choice((1, 60, 300))
    claim = ("bus", "claim", "--as", "ann", "--lease", f"{seconds}")
    name = host.run(*claim, clock=Clock(ahead)).out.decode().split()[0]
    early = chance.randrange(seconds * SECOND * 9 // 10) if seconds > 30 else -SECOND * 5
    for clock in (Clock(ahead + early), Clock(ahead - HOUR)):
        host.run("bus", "claim", name, "--as", "bob", clock=clock, codes=(3,))
    if chance.random() < 0.5:
        late = Clock(ahead + (seconds + 61) * SECOND)
        host.run("bus", "claim", name, "--as", "bob", clock=late)
        host.run("bus", "ack", name, "--as", "ann", clock=late, codes=(1,))
        host.run("bus", "ack", name, "--as", "bob", clock=late)
        host.run("bus", "ack", name, "--as", "bob", codes=(3,))
    else:
        host.run("bus", "ack-all")
    if name in host.pending():
        raise Lost(f"{name} was acknowledged and is pending")


def window(project: Path, chance: random.Random) -> None:
    """An equal event is dropped within its window before and after, and not beyond."""
    host = Host(project)
    ahead = chance.choice(ERRORS)
    publish = ("bus", "publish", "bob", "alarm", "high", "text", "--dedup-window", "600")
    host.run(*publish, clock=Clock(ahead))
    near = chance.choice((-1, 1)) * chance.randrange(500) * SECOND
    host.run(*publish, clock=Clock(ahead + near), codes=(5,))
    far = chance.choice((-1, 1)) * chance.choice((700 * SECOND, HOUR, YEAR))
    host.run(*publish, clock=Clock(ahead + far))


def seals(project: Path, chance: random.Random) -> None:
    """What is sealed under one clock is sealed on under another."""
    host = Host(project)
    for _ in range(3):
        clock = _some(chance)
        host.run("bus", "publish", "ann", "note", "low", "text", clock=clock)
        host.run("seal", clock=clock)
        host.run("verify", clock=_some(chance))


def apart(project: Path, chance: random.Random) -> None:
    """Two replicas whose clocks differ exchange what they recorded: all of it, once."""
    hosts = Host(project), Host(project / "other")
    clocks = [Clock(chance.choice(ERRORS)) for _ in hosts]
    remotes = "./remote.git", "../remote.git"
    said: list[str] = []
    turns = [*(chance.randrange(2) for _ in range(chance.randint(2, 4))), 0, 1, 0]
    for turn in turns:
        host, clock = hosts[turn], clocks[turn]
        text = f"<{len(said)} of {turn}>"
        host.run("pull", remotes[turn], clock=clock)
        host.run("chat", "send", "live", "ann", text, clock=clock)
        host.run("push", remotes[turn], clock=clock)
        said.append(text)
    for host, clock, remote in zip(hosts, clocks, remotes, strict=True):
        host.run("pull", remote, clock=clock)
        size = len(host.ids)
        host.run("pull", remote, clock=clock)
        if len(host.ids) != size:
            raise Lost(f"what was pulled before came again, under {clock}")
        shown = host.run("chat", "read", "live", clock=clock).out.decode()
        wrong = [text for text in said if shown.count(text) != 1]
        if wrong:
            raise Lost(f"{wrong} do not stand once in the chat, under {clocks}")
        host.run("verify", clock=clock)
