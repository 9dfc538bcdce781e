"""Power loss: every state that a cut can leave of what a command wrote, and whether it heals.

A command is run under the tracer; ``torture.platter`` gives what a disk may hold then. Each state
is laid out in a folder of its own, with the stat of each file as the manifest remembers it, where
that can be: the worst case is a file that looks untouched and is not. The team is then opened as
after a start of the host, and where all is there also as in the same one: a process was killed.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
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
    entry_ids,
    known,
    make_team,
    recovered,
    use_home_of,
)
from torture.tracing import trace
from tripod.ledger import files
from tripod.ledger.locator import database_of
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

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
        alone = scene.foreign is None
        check = partial(_check, state, holding[moment.answered], here, alone=alone)
        yield Case(f"cut at {moment.why}", partial(check, anew=True))
        if moment.is_whole:
            yield Case(f"killed at {moment.why}", partial(check, anew=False))


def _check(
    state: Callable[[], State], known: Known, folder: Path, *, anew: bool, alone: bool
) -> Result:
    """Lay a state out in ``folder``, and say what is wrong when the team in it is opened.

    What the host keeps beside the team, its keys and what it sealed last, is on the same disk.
    ``anew``: the host was started anew since. Then nothing is an edit, for a verifier who comes
    before any act and for the acts after it. ``alone``: no other program writes to the team, so
    nothing is taken in.
    """
    write_state(state(), folder)
    team = folder / TEAM
    _look_untouched(team)
    use_home_of(team)
    boot, read_boot_time = files.BOOT_ID, files.read_boot_time
    if anew:
        started = folder / "boot"
        started.write_text(f"{os.urandom(16).hex()}\n")
        files.BOOT_ID = str(started)
        now = time.time_ns()
        files.read_boot_time = lambda: now
    try:
        held = entry_ids(team)
        judged = _judged(team, known) if anew and known.size else ""
        came = recovered(team, known)
        if came.wrong:
            return came
        if judged:
            return Result(f"verify said {judged} before any act", wrong=True)
        invented = _invented(team, len(held)) if alone and anew else []
        if invented:
            return Result(f"invented: {invented}", wrong=True)
        return _sealed(team) or came
    finally:
        files.BOOT_ID, files.read_boot_time = boot, read_boot_time
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


def _judged(folder: Path, known: Known) -> str:
    """The failures that a verifier tells who comes first; '' where it told them before.

    That a team's first record has no seal yet is true: the next act writes it again.
    """
    with collect(str(folder)) as evidence:
        report = run(evidence)
    every = (finding for one in report.outcomes for finding in one.findings)
    found = [one for one in every if one.severity == "failure" and one.check != "record-agrees"]
    if known.verdict:
        found = [one for one in found if one.check in ("drift", "append-only")]
    return "; ".join(f"{one.check}: {one.message}" for one in found)


def _invented(folder: Path, size: int) -> list[str]:
    """What the entries from ``size`` on tell that nobody did."""
    db = sqlite3.connect(database_of(str(folder / ".nbs")))
    try:
        sql = (
            "SELECT kind, substr(CAST(body AS TEXT), 1, 200) FROM entries WHERE seq >= ? AND"
            " kind <> 'bus.acked' AND (kind = 'file.displaced' OR instr(body, '\"observed\"'))"
        )
        return [f"{kind} {body}" for kind, body in db.execute(sql, (size,))]
    finally:
        db.close()


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
