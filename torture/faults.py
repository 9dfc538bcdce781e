"""Deaths and refusals: each act killed, or refused by the disk, at every system call it makes.

Killed: at the n-th call of each name that changes or syncs a file, and at instants by lot; the
next act of the same team may be killed, too. Refused: the disk is full, fails, or may only be read,
once or from then on; and no file may grow above a limit, by bytes. Then the disk is well again.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from torture.teams import (
    ENVIRONMENT,
    PROGRAM,
    Case,
    Known,
    Result,
    Scene,
    copy_team,
    known,
    make_team,
    recovered,
    remove_team,
)
from torture.tracing import CHANGING, SYNCING, Call, Fault, trace

__all__ = ["deaths", "refusals"]

ERRORS = ("ENOSPC", "EIO", "EROFS", "EDQUOT", "EACCES")
SECONDS = 60
"""A command that takes longer hangs: the slowest of them takes three."""


def deaths(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """A death before each call that changes or syncs a file, then deaths by lot without end."""
    stage = _Stage(scene, folder)
    chance = random.Random(seed)
    points = stage.points()
    for point in points:
        yield _killed(stage, [point])
    while True:
        if chance.random() < 0.5:
            seconds = chance.random() * 1.5 * stage.seconds
            yield Case(f"killed after {seconds:.4f} s", partial(stage.die_at, seconds))
        else:
            yield _killed(stage, [chance.choice(points) for _ in range(chance.randint(2, 3))])


def _killed(stage: _Stage, points: list[tuple[str, int]]) -> Case:
    what = " then ".join(f"{name} {number}" for name, number in points)
    return Case(f"killed before {what}", partial(stage.die, points))


def refusals(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Each call refused, once and from then on, for a reason by lot; then files of limited size."""
    stage = _Stage(scene, folder)
    chance = random.Random(seed)
    for name, number in stage.points():
        for stays in (False,) if name == "openat" else (False, True):  # Python opens its modules
            fault = Fault(name, number, f"error={chance.choice(ERRORS)}", stays=stays)
            yield Case(f"refused: {fault}", partial(stage.refuse, fault=fault))
    largest = max(path.stat().st_size for path in stage.team.rglob("*"))
    while True:
        size = chance.randint(0, chance.choice((1000, 60_000, largest)))
        yield Case(f"no file above {size} bytes", partial(stage.refuse, size=size))


class _Stage:
    """A scene that is set once: its team, what must hold before and after, and its calls."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        """Set it in ``folder``, which does not exist yet."""
        folder.mkdir()
        self.folder = folder
        self.team = folder / "team"
        self.before = make_team(scene, self.team)
        self.command = [PROGRAM, *scene.acts[0]]
        self.is_one = not scene.git  # a push seals, a pull merges peer by peer
        self.made = 0
        rehearsal = self._copy()
        begun = time.monotonic()
        done = trace(self.command, rehearsal, env=ENVIRONMENT)
        self.seconds = time.monotonic() - begun
        if done.code:
            raise SystemExit(f"{scene.name}: ended with {done.code}: {done.err!r}")
        self.calls: list[Call] = done.calls
        self.said = len(done.out.splitlines()), len(done.err.splitlines())
        self.after = known(rehearsal)
        remove_team(rehearsal)

    def _copy(self) -> Path:
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
        team = self._copy()
        answered = False
        for name, number in points:
            fault = Fault(name, number, "signal=KILL")
            done = trace(
                self.command, team, env=ENVIRONMENT, faults=[fault], note=False, seconds=SECONDS
            )
            answered = answered or self._is_answer(done.out) or done.code == 0
        return self._judge(team, answered=answered and len(points) == 1)

    def die_at(self, seconds: float) -> Result:
        """Kill the act after some time."""
        team = self._copy()
        with subprocess.Popen(
            self.command, cwd=team, env=ENVIRONMENT, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        ) as child:  # fmt: skip
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
            assert child.stdout is not None
            answered = self._is_answer(child.stdout.read()) or child.wait() == 0
        return self._judge(team, answered=answered)

    def _is_answer(self, out: bytes) -> bool:
        """Whether a command that was killed had said all: some tell first what they are doing."""
        return 0 < self.said[0] <= len(out.splitlines())

    def _judge(self, team: Path, *, answered: bool) -> Result:
        try:
            return recovered(team, self._holding(answered=answered))
        finally:
            remove_team(team)

    def _holding(self, *, answered: bool) -> Known:
        """What must hold after the act, or after an accident before its answer."""
        return self.before.answered(self.after) if answered else self.before

    def refuse(self, *, fault: Fault | None = None, size: int | None = None) -> Result:
        """Have the system refuse a call, or files above a size; what was said must be true."""
        team = self._copy()
        limited = [] if size is None else ["prlimit", f"--fsize={size}"]
        faults = [] if fault is None else [fault]
        try:
            done = trace(
                [*limited, *self.command], team, env=ENVIRONMENT, faults=faults, note=False,
                seconds=SECONDS,
            )  # fmt: skip
            err = done.err.decode("utf-8", "replace")
            if "Traceback" in err:
                return Result(f"traceback: {err}", wrong=True)
            if done.code < 0:
                return Result(f"died of signal {-done.code}", wrong=True)
            silent = done.code and not err.strip()
            if silent and (fault is None or fault.name != "write"):  # else its words were refused
                return Result(f"it ended with {done.code} and said nothing", wrong=True)
            is_untrue = "nothing was recorded" in err and known(team).ids != self.before.ids
            if is_untrue and self.is_one:  # else it is said of one act among others
                return Result(f"it said that nothing was recorded, and more is: {err}", wrong=True)
            warned = len(err.splitlines()) > self.said[1]  # then it did less, and said so
            return recovered(team, self._holding(answered=done.code == 0 and not warned))
        except subprocess.TimeoutExpired:
            return Result("it hangs", wrong=True)
        finally:
            remove_team(team)
