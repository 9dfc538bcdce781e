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
    Case,
    Known,
    Result,
    Scene,
    copy_home,
    known,
    make_team,
    recovered,
    remove_team,
)
from torture.tracing import trace

__all__ = ["cuts"]

SAMPLES = 4
"""Of each moment with many changes that nobody waited for: how many sets of them by lot."""


def cuts(scene: Scene, folder: Path, seed: int) -> Iterator[Case]:
    """Each state that a power cut may leave during the acts of a scene, in an order by lot."""
    team = folder / "team"
    folder.mkdir()
    holding = [make_team(scene, team)]
    reader = Reader(team, read_state(team))
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
        yield Case(
            f"cut at {moment.why}", partial(_check, team, state, holding[moment.answered], here)
        )


def _check(team: Path, state: Callable[[], State], known: Known, folder: Path) -> Result:
    """Lay a state out in ``folder``, and say what is wrong when the team is opened there.

    The host remembers what was sealed until the end: more than a cut would have left.
    """
    write_state(state(), folder)
    _look_untouched(folder)
    copy_home(team, folder)
    try:
        return recovered(folder, known)
    finally:
        remove_team(folder)


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
