"""Deaths and refusals: each act killed, or refused by the disk, at every system call it makes.

Killed: at the n-th call of each name that changes or syncs a file, and at instants by lot; the
next act of the same team may be killed, too. Refused: the disk is full, fails, or may only be read,
once or from then on; and no file may grow above a limit, by bytes. Then the disk is well again.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from torture.children import reap_orphans
from torture.teams import (
    SECONDS,
    Case,
    Known,
    Result,
    Scene,
    begin,
    copy_team,
    known,
    make_team,
    recovered,
    remove_team,
)
from torture.tracing import CHANGING, SYNCING, Call, Fault, Traced, trace_child

__all__ = ["Stage", "deaths", "refusals"]

ERRORS = ("ENOSPC", "EIO", "EROFS", "EDQUOT", "EACCES")
LEAVING_S = 10
"""What a command began and left running is over by then, or it is an orphan."""


def deaths(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """A death before each call that changes or syncs a file, then deaths by lot without end."""
    stage = Stage(scene, folder)
    chance = random.Random(seed)
    points = stage.points()
    for point in points:
        yield _killed(stage, [point])
    while True:
        if chance.random() < 0.5:
            seconds, alone = chance.random() * 1.5 * stage.seconds, chance.random() < 0.7
            who = "killed" if alone else "killed with its programs"
            death = partial(stage.die_at, seconds, alone=alone)
            yield Case(f"{who} after {seconds:.4f} s", death)
        else:
            yield _killed(stage, [chance.choice(points) for _ in range(chance.randint(2, 3))])


def _killed(stage: Stage, points: list[tuple[str, int]]) -> Case:
    what = " then ".join(f"{name} {number}" for name, number in points)
    return Case(f"killed before {what}", partial(stage.die, points))


def refusals(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Each call refused, once and from then on, for a reason by lot; then files of limited size."""
    stage = Stage(scene, folder)
    chance = random.Random(seed)
    for name, number in stage.points():
        for stays in (False,) if name == "openat" else (False, True):  # Python opens its modules
            fault = Fault(name, number, f"error={chance.choice(ERRORS)}", stays=stays)
            yield Case(f"refused: {fault}", partial(stage.refuse, fault=fault))
    largest = max(path.stat().st_size for path in stage.team.rglob("*"))
    while True:
        size = chance.randint(0, chance.choice((1000, 60_000, largest)))
        yield Case(f"no file above {size} bytes", partial(stage.refuse, size=size))


WARNING = "tripod: warning: "
"""How a line begins that does not say how the command ended."""


class Stage:
    """A scene that is set once: its team, what must hold before and after, and its calls."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        """Set it in ``folder``, which does not exist yet."""
        folder.mkdir()
        self.folder = folder
        self.team = folder / "team"
        self.before = make_team(scene, self.team)
        self.command = scene.acts[0]
        self.main: Callable[[], object] | None = None
        self.settle = scene.settle
        self.is_one = not scene.git  # a push seals, a pull merges peer by peer
        self.made = 0
        done, self.seconds = self._rehearse()
        self.calls: list[Call] = done.calls
        self.said = len(done.out.splitlines()), len(done.err.splitlines())

    def _rehearse(self) -> tuple[Traced, float]:
        """Run the act twice, to note its calls and its time; what must hold after it."""
        rehearsal = self.copy()
        begun = time.monotonic()
        begin(self.command, rehearsal).end(SECONDS)
        seconds = time.monotonic() - begun
        reap_orphans(LEAVING_S)
        remove_team(rehearsal)
        rehearsal = self.copy()
        done = self._traced(rehearsal, note=True)
        if done.code:
            raise SystemExit(f"{self.command}: ended with {done.code}: {done.err!r}")
        if self.settle is not None:
            wrong = self.settle(rehearsal, alone=True)
            if wrong:
                raise SystemExit(f"{self.command}: {wrong}, and nothing had gone wrong")
        self.after = known(rehearsal)
        remove_team(rehearsal)
        return done, seconds

    def _traced(
        self,
        team: Path,
        *,
        faults: list[Fault] | None = None,
        note: bool = False,
        largest: int | None = None,
    ) -> Traced:
        """Run the act under the tracer. Where its programs go on, they are not traced."""
        child = begin(self.command, team, main=self.main, stopped=True, largest=largest)
        return trace_child(
            child, faults=faults or (), note=note, follows=self.settle is None, seconds=SECONDS
        )

    def copy(self) -> Path:
        """A team of this scene in a folder of its own; times and permissions are kept."""
        self.made += 1
        path = self.folder / f"run-{self.made}"
        copy_team(self.team, path)
        return path

    def points(self) -> list[tuple[str, int]]:
        """Each call that changes or syncs a file, with its number among those of its name.

        Not those by which Python opens its own modules, and not what goes to the terminal: whoever
        cannot be told a thing is told nothing.
        """
        found, counts = [], Counter[str]()
        for call in self.calls:
            counts[call.name] += 1
            if call.name in (*CHANGING, *SYNCING) and (
                call.name == "sync" or self._is_about_team(call)
            ):
                found.append((call.name, counts[call.name]))
        return found

    def _is_about_team(self, call: Call) -> bool:
        if call.files and call.name != "openat":  # `openat` is given the folder that it starts from
            return call.files[0].startswith(f"{self.folder}/")
        return any(text.startswith(f"{self.folder}/".encode()) for text in call.texts)

    def die(self, points: list[tuple[str, int]]) -> Result:
        """Kill the act before a call; if there are several, the next act before the next.

        What an act finds that another began differs from what it finds alone: then its answer is
        held against nothing but what was there before.
        """
        team = self.copy()
        answered = False
        for name, number in points:
            done = self._traced(team, faults=[Fault(name, number, "signal=KILL")])
            answered = answered or self._is_answer(done.out) or done.code == 0
        try:
            once = len(points) == 1  # an agent that was asked for twice in vain is asked no more
            return self._judge(team, answered=answered and once, alone=once)
        finally:
            remove_team(team)

    def die_at(self, seconds: float, *, alone: bool) -> Result:
        """Kill the act after some time; all that it began as well, unless ``alone``."""
        team = self.copy()
        child = begin(self.command, team, main=self.main)
        if not child.is_over(seconds):
            child.signal(signal.SIGKILL)
            if not alone:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
        done = child.end(SECONDS)
        if not alone:
            reap_orphans(0)
        answered = self._is_answer(done.out) or done.code == 0
        try:
            return self._judge(team, answered=answered, alone=alone)
        finally:
            remove_team(team)

    def _is_answer(self, out: bytes) -> bool:
        """Whether a command that was killed had said all: some tell first what they are doing."""
        return 0 < self.said[0] <= len(out.splitlines())

    def _judge(self, team: Path, *, answered: bool, alone: bool = True) -> Result:
        if self.settle is not None:
            wrong = self.settle(team, alone=alone)
            if wrong:
                return Result(wrong, wrong=True)
            return recovered(team, Known(self.before.ids, self.before.size, self.after.verdict))
        left = reap_orphans(LEAVING_S)
        if left:
            return Result(f"still running: {left}", wrong=True)
        return recovered(team, self.holding(answered=answered))

    def holding(self, *, answered: bool) -> Known:
        """What must hold after the act, or after an accident before its answer."""
        return self.before.answered(self.after) if answered else self.before

    def refuse(self, *, fault: Fault | None = None, size: int | None = None) -> Result:
        """Have the system refuse a call, or files above a size; what was said must be true."""
        team = self.copy()
        try:
            done = self._traced(team, faults=[] if fault is None else [fault], largest=size)
            err = done.err.decode("utf-8", "replace")
            if "Traceback" in err:
                return Result(f"traceback: {err}", wrong=True)
            if done.code < 0:
                return Result(f"died of signal {-done.code}", wrong=True)
            silent = done.code and not err.strip()
            if silent and (fault is None or fault.name != "write"):  # else its words were refused
                return Result(f"it ended with {done.code} and said nothing", wrong=True)
            denied = any(
                "nothing was recorded" in line
                for line in err.splitlines()
                if not line.startswith(WARNING)  # it is about another act, which came before
            )
            is_untrue = denied and known(team).ids != self.before.ids
            if is_untrue and self.is_one:  # else it is said of one act among others
                return Result(f"it said that nothing was recorded, and more is: {err}", wrong=True)
            warned = len(err.splitlines()) > self.said[1]  # then it did less, and said so
            # A folder of refs that git cannot read is empty to it, and a pull finds nothing.
            did = done.code == 0 and not done.out.startswith(b"nothing ")
            return self._judge(team, answered=did and not warned, alone=False)
        except TimeoutError:
            return Result("it hangs", wrong=True)
        finally:
            remove_team(team)
