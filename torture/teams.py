"""The teams that are tortured: how each is made, what it is told to do, and what must hold after.

What was answered is the measure. A command that printed its answer, or ended well, has recorded
what it did: whatever comes after, the ledger holds those entries, in that order, for ever.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from torture.children import Child, main_of, within
from tripod.bus.events import publish
from tripod.ledger import RECORD, TripodError
from tripod.ledger.locator import database_of
from tripod.projections.disk import TEMPORARY
from tripod.team.adoption import sync
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

__all__ = [
    "ENVIRONMENT",
    "PROGRAM",
    "Case",
    "Known",
    "Result",
    "Scene",
    "act",
    "begin",
    "copy_team",
    "entry_ids",
    "known",
    "make_team",
    "recovered",
    "remove_team",
    "run_git",
    "use_home_of",
]

PROGRAM = os.path.join(os.path.dirname(sys.executable), "tripod")
SECONDS = 60
"""A command that takes longer hangs: the slowest of them takes three."""
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "TRIPOD_AS": "ann",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": "ann@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}
"""What commands run with: nothing of the user's."""


def use_home_of(team: Path) -> None:
    """Have keys kept beside ``team``, by the commands and by this process.

    A host remembers what it sealed last: two copies of one team must not share that.
    """
    home = team.with_name(f"{team.name}-home")
    ENVIRONMENT["TRIPOD_HOME"] = os.environ["TRIPOD_HOME"] = str(home)


def copy_team(team: Path, to: Path) -> None:
    """Copy a team with its keys, times and permissions, and use those keys from now on."""
    shutil.copytree(team, to, symlinks=True)
    home = team.with_name(f"{team.name}-home")
    if home.exists():
        shutil.copytree(home, to.with_name(f"{to.name}-home"))
    use_home_of(to)


def remove_team(team: Path) -> None:
    """Remove a team and its keys."""
    shutil.rmtree(team)
    shutil.rmtree(team.with_name(f"{team.name}-home"), ignore_errors=True)


class Result(NamedTuple):
    """What came of a case, in a word where all is well; else in words, and ``wrong``.

    ``told``: lines that a reader wants to see in any case.
    """

    what: str
    wrong: bool = False
    told: str = ""


class Case(NamedTuple):
    """``what`` happens, in words; ``run`` has it happen, and says what came of it."""

    what: str
    run: Callable[[], Result]


class Settle(Protocol):
    """Finishes the work of programs; ``alone``: only the command was killed, once."""

    def __call__(self, team: Path, *, alone: bool) -> str:
        """What is wrong then; '' where all is well."""


class Scene(NamedTuple):
    """A team and what it does: ``before`` prepares it once, ``acts`` are tortured.

    Each is a list of commands of ``tripod``. ``foreign``: what other programs write to its files
    before the acts. ``settle``: of acts whose programs go on when the command ends: the commands
    that finish the work. ``fresh``: its first act begins the team.
    """

    name: str
    before: Sequence[Sequence[str]]
    acts: Sequence[Sequence[str]]
    foreign: Callable[[Path], None] | None = None
    git: bool = False
    settle: Settle | None = None
    fresh: bool = False


class Known(NamedTuple):
    """What must hold: the entries that were answered for, and how the team was judged.

    ``ids`` are those of the first of them; ``size`` counts all. Who runs an act again gives its
    entries other ids, and an act that finds an event moved already records that besides.
    """

    ids: tuple[str, ...]
    size: int
    verdict: int

    def answered(self, after: Known) -> Known:
        """What must hold where the entries are these, and an act like another's was answered."""
        return Known(self.ids, after.size, after.verdict)


def make_team(scene: Scene, folder: Path) -> Known:
    """Make the team of a scene in ``folder``; what holds of it."""
    folder.mkdir()
    use_home_of(folder)
    if scene.git:
        run_git("init", "-q", "-b", "main", at=folder)
        run_git("init", "-q", "--bare", "remote.git", at=folder)
    for command in [*(() if scene.fresh else [("init",)]), *scene.before]:
        act(command, folder)
    if scene.foreign is not None:
        scene.foreign(folder / ".nbs")
    return known(folder)


def run_git(*words: str, at: Path) -> None:
    """Run git (CalledProcessError: it failed)."""
    subprocess.run(["git", *words], cwd=at, check=True, env=ENVIRONMENT, capture_output=True)


def begin(
    command: Sequence[str],
    folder: Path,
    *,
    main: Callable[[], object] | None = None,
    stopped: bool = False,
    largest: int | None = None,
) -> Child:
    """Begin one command, in a fork of this process; ``main`` is what it calls instead."""
    return Child(
        [PROGRAM, *command], folder, ENVIRONMENT, main or main_of(PROGRAM),
        stopped=stopped, largest=largest,
    )  # fmt: skip


def act(command: Sequence[str], folder: Path) -> bytes:
    """Run one command; what it answered (SystemExit: it did not end well)."""
    done = begin(command, folder).end(SECONDS)
    if done.code:
        raise SystemExit(f"tripod {' '.join(command)} ended with {done.code}: {done.err.decode()}")
    return done.out


def known(folder: Path) -> Known:
    """What holds of a team now. It is looked at in a copy: opening a database changes files."""
    copy = folder.with_name(f"{folder.name}-looked-at")
    copy_team(folder, copy)
    try:
        ids = entry_ids(copy)
        if not ids:
            return Known((), 0, 0)
        with Team(str(copy / ".nbs")) as team:
            sync(team)
        with collect(str(copy)) as evidence:
            return Known(ids, len(ids), run(evidence).exit_code)
    finally:
        remove_team(copy)
        use_home_of(folder)


def entry_ids(folder: Path) -> tuple[str, ...]:
    """The ids of a ledger's entries, in order; none where there is no ledger."""
    path = database_of(str(folder / ".nbs"))
    if not os.path.exists(path):
        return ()
    db = sqlite3.connect(path)
    try:
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'entries'").fetchall():
            return ()  # who began it came no further
        return tuple(one for (one,) in db.execute("SELECT id FROM entries ORDER BY seq"))
    finally:
        db.close()


def recovered(folder: Path, known: Known) -> Result:
    """Open a team after an accident, as its next command would, and say what came of it.

    Nothing answered may be lost, every check must give the verdict it gave before, nothing may be
    left over, and work goes on: an event that is published now stands in the queue.
    """
    try:
        with within(SECONDS):
            return _recovered(folder, known)
    except (TripodError, OSError, sqlite3.Error) as error:  # a TimeoutError is an OSError
        return Result(f"refused: {type(error).__name__}: {error}", wrong=True)
    except Exception:  # noqa: BLE001 - whatever a tool raises here is what is looked for
        return Result(f"traceback: {traceback.format_exc()}", wrong=True)


def _recovered(folder: Path, known: Known) -> Result:
    root = folder / ".nbs"
    if not known.size:  # nothing was answered yet: who began the team does it again
        act(("init",), folder)
    with Team(str(root)) as team:
        sync(team)
        name = publish(team, "torture", "still-here", "low")
    ids = entry_ids(folder)
    if ids[: len(known.ids)] != known.ids or len(ids) <= known.size:  # one is the newest event
        return Result(f"lost: of {known.size} entries {len(ids) - 1} are held", wrong=True)
    if not (root / "events" / name).is_file():
        return Result(f"stuck: {name} was published, and no file shows it", wrong=True)
    # What is left in the record goes with the next seal: no other act looks into it.
    left = [str(path.relative_to(root)) for path in root.rglob(f"{TEMPORARY}*")]
    left = [path for path in left if not path.startswith(f"{RECORD}/")]
    if left:
        return Result(f"left over: {left}", wrong=True)
    with collect(str(folder)) as evidence:
        report = run(evidence)
    if report.exit_code != known.verdict:
        told = [f"{o.check}: {f}" for o in report.outcomes for f in o.findings][:5]
        return Result(f"verify says {report.exit_code}, not {known.verdict}: {told}", wrong=True)
    return Result("recovered")
