"""Teams whose decisions are to be reviewed, programs that review them, and what then must hold."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from story import folder

from tripod.agents.folder import IsolatedProgram
from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.decisions.writer import DecisionRequest
from tripod.projections.engine import file_differences
from tripod.pythia import review as pythia_run
from tripod.pythia.checkpoints import TYPE
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

__all__ = [
    "EXAMPLE",
    "NOW",
    "PROGRAM",
    "SCRIPTED",
    "begin",
    "check_once",
    "decide",
    "event_of",
    "folder_alone",
    "kinds",
    "reviewed_team",
]

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "pythia.py"
SCRIPTED = (sys.executable, str(EXAMPLE))
"""The command line of the scripted reviewer."""

PROGRAM = IsolatedProgram(command=SCRIPTED)
NOW = 2**50
"""A time behind every lease."""

SPOKEN = "whoever argues longest wins, and so we all agreed at last that one thread will do for now"
"""What was said in the chat, and no decision says."""


def begin(project: Path, decisions: int = 3, *, interval: int | None = None) -> str:
    """A team in ``project`` with decisions; give the name of the checkpoint event, '' for none."""
    adoption.init(str(project))
    (project / ".nbs/events").mkdir(exist_ok=True)
    (project / ".nbs/events/config.yaml").write_text(
        f"pythia-interval: {decisions if interval is None else interval}\n"
    )
    with Team(str(project / ".nbs")) as team:
        team.refresh()
        chat_send.create(team, "live")
        chat_send.send(team, "live", "ann", SPOKEN)
        decide(team, decisions)
        return event_of(team)


def decide(team: Team, count: int) -> list[str]:
    """Log decisions; give their ids."""
    tags = ("untested", "perf-risk")
    return [
        decisions_log.log(
            team,
            DecisionRequest(
                f"Number {n}", ["ann"], "fast enough", ["live.chat:~L7"], [], tags[n % 2 :]
            ),
        ).id
        for n in range(count)
    ]


def event_of(team: Team) -> str:
    """The name of the oldest checkpoint event that is pending, '' for none."""
    return next((event.name for event in bus.check(team) if event.type == TYPE), "")


@contextmanager
def reviewed_team(decisions: int = 3) -> Iterator[tuple[Path, Team]]:
    """A team whose checkpoint is reached, opened; temporary files are beside it."""
    with folder() as top, mock.patch("tempfile.tempdir", str(top / "tmp")):
        (top / "tmp").mkdir()
        project = top / "project"
        project.mkdir()
        begin(project, decisions)
        with Team(str(project / ".nbs")) as team:
            team.refresh()
            yield project, team


@contextmanager
def folder_alone() -> Iterator[None]:
    """As if bubblewrap were not installed."""
    with mock.patch("tripod.agents.isolation.BWRAP", "no-such-bwrap"):
        yield


def kinds(team: Team) -> list[str]:
    """The kind of each entry."""
    return [entry.kind for entry in team.store.read()]


def check_once(team: Team, name: str) -> None:
    """The event was answered once: one assessment, one message, one event, one ack; all fits."""
    (event,) = [
        e.seq for e in team.store.read() if e.kind == "bus.published" and e.data["name"] == name
    ]
    entries = list(team.store.read())
    (assessed,) = [e.data for e in entries if e.kind == "pythia.assessed"]
    assert assessed["event"] == event
    said = [e.seq for e in entries if e.kind == "chat.sent" and e.actor == "pythia"]
    assert said == [assessed["message"]]
    published = [e.data["type"] for e in entries if e.kind == "bus.published"]
    assert published.count("assessment-posted") == 1
    assert [e.data["name"] for e in entries if e.kind == "bus.acked"] == [name]
    assert team.store.db.execute(
        "SELECT count(*) FROM agents WHERE state IN ('requested', 'started')"
    ).fetchone() == (0,)
    assert pythia_run.due(team, NOW) == []
    assert list(file_differences(team.source, team.disk, evidence=True)) == []
    assert team.warnings == []
    spool = Path(team.root) / "spool"
    assert not spool.exists() or list(spool.iterdir()) == []
    with collect(team.root) as evidence:
        report = judge(evidence)
    assert [f.message for one in report.outcomes for f in one.findings] == []
