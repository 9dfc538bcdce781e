"""Power loss: every state that a cut can leave of what a command wrote, and whether it heals.

A command is run under the tracer; ``torture.platter`` gives what a disk may hold then. Each state
is laid out in a folder of its own, with the stat of each file as the manifest remembers it, where
that can be: the worst case is a file that looks untouched and is not.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from torture.platter import Reader, State, read_state, write_state
from torture.teams import (
    ENVIRONMENT,
    PROGRAM,
    SECONDS,
    Case,
    Known,
    Result,
    Scene,
    begin,
    known,
    make_team,
    recovered,
    use_home_of,
)
from torture.tracing import trace
from tripod.team.team import Team

__all__ = ["cuts"]

TEAM = "team"
"""The team's folder on the disk; that of the keys lies beside it."""
SAMPLES = 4
"""Of each moment with many changes that nobody waited for: how many sets of them by lot."""


def cuts(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Each state that a power cut may leave during the acts of a scene, in an order by lot."""
    disk = folder / "disk"
    team = disk / TEAM
    disk.mkdir(parents=True)
    holding = [make_team(scene, team)]
    reader = Reader(disk, read_state(disk), TEAM)
    for command in scene.acts:
        done = trace([PROGRAM, *command], team, env=ENVIRONMENT)
        if done.code:
            raise SystemExit(f"{scene.name}: {command} ended with {done.code}: {done.err!r}")
        reader.read_act(done.calls)
        holding.append(known(team))
    moments = list(reader.history.moments(seed, SAMPLES))
    random.Random(seed).shuffle(moments)
    for number, moment in enumerate(moments):
        state = partial(reader.history.state, moment)
        here = folder / f"state-{number}"
        yield Case(f"cut at {moment.why}", partial(_check, state, holding[moment.answered], here))


def _check(state: Callable[[], State], known: Known, folder: Path) -> Result:
    """Lay a state out in ``folder``, and say what is wrong when the team in it is opened.

    What the host keeps beside the team, its keys and what it sealed last, is on the same disk.
    """
    write_state(state(), folder)
    team = folder / TEAM
    _look_untouched(team)
    use_home_of(team)
    try:
        result = recovered(team, known)
        return result if result.wrong else _sealed(team) or result
    finally:
        shutil.rmtree(folder)


def _sealed(team: Path) -> Result | None:
    """What is wrong when a ledger that has a key is sealed: the key was kept before the entry."""
    with Team(str(team / ".nbs")) as opened:
        if not any(entry.kind == "key.set" for entry in opened.store.read()):
            return None
    done = begin(("seal",), team).end(SECONDS)
    if done.code == 0:
        return None
    return Result(f"its key is recorded, and it cannot be sealed: {done.err.decode()}", wrong=True)


def _look_untouched(folder: Path) -> None:
    """Give each file the time that the manifest remembers, where its size is the remembered one.

    A file system may keep a file's stat and lose its bytes. What the manifest holds is what SQLite
    recovers; that is asked in a copy, so that the state itself is opened by the tool alone.
    """
    copy = folder.with_name(f"{folder.name}-manifest")
    copy.mkdir()
    try:
        for path in (folder / ".nbs").glob("ledger.db*"):
            shutil.copy(path, copy)
        db = sqlite3.connect(copy / "ledger.db")
        rows = list(db.execute("SELECT path, size, mtime_ns FROM manifest"))
        db.close()
    except sqlite3.Error:  # then nothing is remembered
        rows = []
    finally:
        shutil.rmtree(copy)
    for name, size, mtime in rows:
        path = folder / ".nbs" / name
        if path.is_dir() or (path.is_file() and path.stat().st_size == size):
            os.utime(path, ns=(mtime, mtime))
