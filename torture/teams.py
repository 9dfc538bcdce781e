"""The teams that are tortured: how each is made, what it is told to do, and what must hold after.

What was answered is the measure. A command that printed its answer, or ended well, has recorded
what it did: whatever comes after, the ledger holds those entries, in that order, for ever.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

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
    "SCENES",
    "Known",
    "Scene",
    "act",
    "copy_home",
    "copy_team",
    "known",
    "make_team",
    "recovered",
    "remove_team",
    "use_home_of",
]

PROGRAM = os.path.join(os.path.dirname(sys.executable), "tripod")
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
    copy_home(team, to)


def copy_home(team: Path, to: Path) -> None:
    """Copy the keys beside a team, and what the host remembers, and use them from now on."""
    home = team.with_name(f"{team.name}-home")
    if home.exists():
        shutil.copytree(home, to.with_name(f"{to.name}-home"))
    use_home_of(to)


def remove_team(team: Path) -> None:
    """Remove a team and its keys."""
    shutil.rmtree(team)
    shutil.rmtree(team.with_name(f"{team.name}-home"), ignore_errors=True)


class Result(NamedTuple):
    """What came of a case, in a word where all is well; else in words, and ``wrong``."""

    what: str
    wrong: bool = False


class Case(NamedTuple):
    """``what`` happens, in words; ``run`` has it happen, and says what came of it."""

    what: str
    run: Callable[[], Result]


class Scene(NamedTuple):
    """A team and what it does: ``before`` prepares it once, ``acts`` are tortured.

    Each is a list of commands of ``tripod``. ``foreign``: what other programs write to its files
    before the acts.
    """

    name: str
    before: Sequence[Sequence[str]]
    acts: Sequence[Sequence[str]]
    foreign: Callable[[Path], None] | None = None
    git: bool = False


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


def _told(root: Path) -> None:
    """Events, a message and a decision as the original tools write them."""
    text = (
        "source: bob\ntype: note\npriority: low\ntimestamp: 2026-11-20T10:00:00Z\npayload: |\n  x\n"
    )
    (root / "events/1795000000000000-bob-note-41.event").write_text(text)
    with (root / "scribe/log.md").open("a", encoding="utf-8") as log:
        log.write("\n### D-1795000000 By hand\n\n- Participants: bob\n\nIt was said.\n\n---\n")


def _session(root: Path) -> None:
    """A recorded session that read a file, beside the team."""
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/srv/.env"}}
    said = {"role": "assistant", "content": [call], "model": "m", "id": "a", "usage": {}}
    line = {
        "type": "assistant", "sessionId": "s1", "uuid": "u1", "parentUuid": None,
        "version": "2.1.0", "timestamp": "2026-11-20T10:00:00.000Z", "cwd": "/srv",
        "message": said, "isSidechain": False,
    }  # fmt: skip
    (root.parent / "session.jsonl").write_text(json.dumps(line) + "\n")


def _peer(root: Path) -> None:
    """A remote with the record of another replica that said something."""
    team = root.parent
    act(("push", "./remote.git"), team)
    other = team / "other"
    _git("clone", "-q", "remote.git", "other", at=team)
    act(("init", "--from", "../remote.git"), other)
    act(("chat", "send", "live", "eve", "from elsewhere"), other)
    act(("push", "../remote.git"), other)


TALK = (
    ("chat", "create", "live"),
    ("chat", "send", "live", "ann", "we keep both tables until the migration is done"),
    ("scribe", "log", "Keep both tables", "-p", "ann", "-r", "Nothing is lost.", "--ref=live#last"),
    ("bus", "publish", "ann", "task-complete", "normal", "green"),
)
_PUBLISH = [("bus", "publish", f"bot-{n}", "note", "low", f"text {n}") for n in range(3)]
_SEND = [("chat", "send", "live", who, f"{who} agrees") for who in ("ann", "bob")]
_LOG = [
    ("scribe", "log", f"Rule {n}", "-p", "ann", "-r", "So.", "--ref=live#last") for n in range(2)
]
SCENES = (
    Scene("publish", TALK, _PUBLISH[:2]),
    Scene("send", TALK, _SEND),
    Scene("log", TALK, _LOG),
    Scene("ack", [*TALK, *_PUBLISH], [("bus", "ack-all")]),
    Scene("archive", [*TALK, *_SEND], [("chat", "archive", "live", "--keep", "1")]),
    Scene("sync", TALK, [("sync",)], foreign=_told),
    Scene("rebuild", [*TALK, *_PUBLISH], [("rebuild",)]),
    Scene("seal", [*TALK, ("key", "new")], [("seal",), _PUBLISH[0], ("seal",)]),
    Scene("redact", [*TALK, *_PUBLISH], [("redact", "9", "--reason", "a secret")]),
    Scene("import", TALK, [("import", "session.jsonl")], foreign=_session),
    Scene("export", [*TALK, ("key", "new"), ("seal",)], [("export", "--bodies", "out")]),
    Scene("push", TALK, [("push", "./remote.git")], git=True),
    Scene("pull", TALK, [("pull", "./remote.git")], foreign=_peer, git=True),
)


def make_team(scene: Scene, folder: Path) -> Known:
    """Make the team of a scene in ``folder``; what holds of it."""
    folder.mkdir()
    use_home_of(folder)
    if scene.git:
        _git("init", "-q", "-b", "main", at=folder)
        _git("init", "-q", "--bare", "remote.git", at=folder)
    for command in [("init",), *scene.before]:
        act(command, folder)
    if scene.foreign is not None:
        scene.foreign(folder / ".nbs")
    return known(folder)


def _git(*words: str, at: Path) -> None:
    subprocess.run(["git", *words], cwd=at, check=True, env=ENVIRONMENT, capture_output=True)


def act(command: Sequence[str], folder: Path) -> bytes:
    """Run one command; what it answered (CalledProcessError: it did not end well)."""
    done = subprocess.run(
        [PROGRAM, *command], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"tripod {' '.join(command)} ended with {done.returncode}: {done.stderr.decode()}"
        )
    return done.stdout


def known(folder: Path) -> Known:
    """What holds of a team now. It is looked at in a copy: opening a database changes files."""
    copy = folder.with_name(f"{folder.name}-looked-at")
    copy_team(folder, copy)
    try:
        ids = entry_ids(copy)
        with Team(str(copy / ".nbs")) as team:
            sync(team)
        with collect(str(copy)) as evidence:
            return Known(ids, len(ids), run(evidence).exit_code)
    finally:
        remove_team(copy)
        use_home_of(folder)


def entry_ids(folder: Path) -> tuple[str, ...]:
    """The ids of a ledger's entries, in order."""
    db = sqlite3.connect(database_of(str(folder / ".nbs")))
    try:
        return tuple(one for (one,) in db.execute("SELECT id FROM entries ORDER BY seq"))
    finally:
        db.close()


def recovered(folder: Path, known: Known) -> Result:
    """Open a team after an accident, as its next command would, and say what came of it.

    Nothing answered may be lost, every check must give the verdict it gave before, nothing may be
    left over, and work goes on: an event that is published now stands in the queue.
    """
    root = folder / ".nbs"
    try:
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
            return Result(
                f"verify says {report.exit_code}, not {known.verdict}: {told}", wrong=True
            )
    except (TripodError, OSError, sqlite3.Error) as error:
        return Result(f"refused: {type(error).__name__}: {error}", wrong=True)
    except Exception:  # noqa: BLE001 - whatever a tool raises here is what is looked for
        return Result(f"traceback: {traceback.format_exc()}", wrong=True)
    return Result("recovered")
