"""A team whose past holds ``count`` faults of every kind, and one new fault for each check.

The past is written as the original tools write it and then adopted, so each of its faults is a
warning. Every deed of ``NEW`` adds one fault that came after adoption.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import drafts
from drafts import displaced
from git_repo import Git

from tripod.projections.bus.format import Event, event_name, format_event
from tripod.projections.bus.format import format_time as event_time
from tripod.projections.chat.format import ChatHeader, format_header, format_line, format_time
from tripod.projections.decisions.format import (
    DecisionText,
    format_decision,
    format_decision_log_header,
)
from tripod.projections.workers.format import parse_worker
from tripod.team import adoption
from tripod.team.act import Act, draft_event_for_act
from tripod.team.team import Team
from tripod.workers.worker import worker_step

__all__ = ["NEW", "REWRITTEN", "Crowd", "crowd"]

START = 1_600_000_000
REWRITTEN = 100  # versions of the log at most: each is held against those before it
NOBODY = "nosuch.chat:~L7"
READING = "> Read(.nbs/chat/live.chat)\n"
NOTE = "1600000000000000-ann-note-7.event"
LOG = ".nbs/scribe/log.md"
SEALS = "SEAL"
ASSESSMENT = (
    "## Pythia Checkpoint \u2014 2020-02-12T14:00:00Z\n\n"
    "Decisions reviewed: D-{0} through D-{0} (1 decisions)\n\n### Hidden Assumptions\n\nNone.\n"
)


@dataclass
class Crowd:
    """The project, its git repository, and how many faults of each kind its past holds."""

    project: Path
    count: int
    git: Git = field(init=False)

    @property
    def root(self) -> Path:
        """The team directory."""
        return self.project / ".nbs"

    def add(self, path: str, text: str) -> None:
        """Append to a file of the team, as another program does."""
        with (self.root / path).open("a", encoding="utf-8") as file:
            file.write(text)


def _decision(number: int, *, supersedes: str | None = None) -> str:
    return format_decision(
        DecisionText(
            f"D-{number}", f"Rule {number}", supersedes, NOBODY, "ann", "", "", "", "Because."
        )
    )


def _event(us: int, first: int) -> tuple[str, bytes]:
    """A checkpoint event about one decision."""
    payload = f"Checkpoint at decision 0. Decisions D-{first} through D-{first}."
    event = Event("scribe", "pythia-checkpoint", "high", event_time(us), f"scribe:{us}", payload)
    return event_name(us, "scribe", "pythia-checkpoint", 7), format_event(event)


def _assessment(number: int) -> bytes:
    """A message with one section, about decisions of which no event speaks."""
    return format_line("pythia", START + number, ASSESSMENT.format(number)) + b"\n"


def _logs(count: int) -> list[str]:
    """The log at the beginning, and as it is adopted."""
    header = format_decision_log_header("crowd", "2020-01-01T00:00:00Z", "scribe")
    rows = [_decision(START, supersedes=None)]
    for number in range(1, count + 1):
        rows.append(_decision(START + number, supersedes="D-1"))
        rows.append(_decision(START + number))
        rows.append(f"\n### D-{number}x Nobody decided this\n\nIndeed.\n\n---\n")
    return [header, header + "".join(rows)]


def crowd(project: Path, count: int) -> Crowd:
    """Write the past, adopt it, and add what only teams of ours have."""
    team = Crowd(project, count)
    for name in ("chat", "events/processed", "scribe", "workers"):
        (team.root / name).mkdir(parents=True)
    lines = b"".join(_assessment(10_000_000 + number) for number in range(count))
    lines += format_line("ann", START + 20_000_000, "hello") + b"\n"
    header = format_header(ChatHeader("ann", format_time(START + 20_000_000), ()), len(lines))
    (team.root / "chat/live.chat").write_bytes(header + lines)
    config = "pythia-interval: 1\nack-timeout: 120\n"
    (team.root / "events/config.yaml").write_text(config, encoding="utf-8")
    (team.root / "policy.yaml").write_text(f"seals: [{SEALS}]\n", encoding="utf-8")
    note = Event("ann", "note", "low", event_time(START * 1_000_000), "ann:note", "hello")
    (team.root / "events" / NOTE).write_bytes(format_event(note))
    for number in range(count):
        name, data = _event((START + number) * 1_000_000, 1)
        (team.root / "events" / name).write_bytes(data)
    task = "# Worker: pythia\n\n## Task\n\nJudge.\n\n## Status\n\nState: completed\n\n## Log\n"
    (team.root / "workers/pythia-a0d7.md").write_text(task, encoding="utf-8")
    (team.root / "workers/pythia-a0d7.log").write_text(READING * count, encoding="utf-8")
    _commit(team)
    adoption.init(str(project), project="crowd", origin="crowd.example/1")
    _workers(team)
    return team


def _commit(team: Crowd) -> None:
    """A log that was rewritten again and again, and seals that are none; all before adoption."""
    begun, adopted = (text.encode() for text in _logs(team.count))
    versions = [begun + b"%d\n" % number for number in range(min(team.count, REWRITTEN))]
    team.git = Git(team.project)
    ahead = [(SEALS, b"rubbish %d\n" % number) for number in range(team.count)]
    lines = []
    for at, (path, data) in enumerate([*((LOG, one) for one in [*versions, adopted]), *ahead]):
        lines.append(b"commit refs/heads/main\ncommitter Ann <ann@example.com> ")
        lines.append(b"%d +0000\ndata 1\nx\n" % (START + at))
        lines.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data))
    team.git("fast-import", "--quiet", "--force", given=b"".join(lines))
    team.git("reset", "--quiet", "--hard", "main")


def _workers(team: Crowd) -> None:
    """Workers of ours that failed, and whose files claim that they did their task."""
    names = [f"mole-{number:04}" for number in range(team.count)]
    with Team(str(team.root)) as opened, opened.act() as act:
        act.append([displaced(f"workers/{name}.txt", "not ours", b"x") for name in names])
        for name in names:
            _run(act, name, "failed", "task-failed")
    for name in names:
        path = team.root / f"workers/{name}.md"
        path.write_text(path.read_text().replace("State: failed", "State: completed"))
        assert parse_worker(path.read_bytes()).state == "completed"
    with Team(str(team.root)) as opened:
        adoption.sync(opened)


def _run(act: Act, name: str, state: str, told: str) -> None:
    """A worker of ours that ended before its program began."""
    run = sha256(name.encode()).hexdigest()[:32]
    act.append(
        [
            drafts.worker_spawned(
                name=name, slug="mole", folder="/srv/crowd", task="Dig.", actor="ann"
            ),
            drafts.agent_requested(
                spawn=run, role="worker", subject=name, attempt=1, spec=b"{}", actor="ann"
            ),
        ]
    )
    event = draft_event_for_act(act, name, told, "high", "")
    worker_step(
        act,
        drafts.worker_ended(name=name, spawn=run, state=state, logs=(), event=event.body["name"]),
        event,
    )
    ended = drafts.agent_ended(spawn=run, status="ok", wall_ms=1, stdout=b"x", stderr=b"")
    act.append([ended])


# What came after adoption -------------------------------------------------------------------------


def _log_on(team: Crowd, text: str) -> None:
    """More in the log than the first decision, so that it is not the newest any more."""
    team.add("scribe/log.md", text + _decision(START + 30_000_000))


def _assessed(team: Crowd) -> None:
    line = _assessment(40_000_000)
    path = team.root / "chat/live.chat"
    path.write_bytes(path.read_bytes() + line)


def _waved_through(team: Crowd) -> None:
    name, data = _event((START + 40_000_000) * 1_000_000, START)
    (team.root / "events/processed" / name).write_bytes(data)


def _misled(team: Crowd) -> None:
    with Team(str(team.root)) as opened, opened.act() as act:
        _run(act, "newcomer-0001", "completed", "task-complete")


def _edited(team: Crowd) -> None:
    path = team.root / "events" / NOTE
    path.write_bytes(path.read_bytes() + b"more\n")


def _commit_on(team: Crowd, path: str, data: bytes) -> None:
    """Commit one file long after adoption; the index and the work tree stay as they are."""
    lines = b"commit refs/heads/main\ncommitter Ann <ann@example.com> 4000000000 +0000\n"
    lines += b"data 1\nx\nfrom refs/heads/main^0\n"
    lines += b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data)
    team.git("fast-import", "--quiet", given=lines)


def _rewritten(team: Crowd) -> None:
    _commit_on(team, LOG, _logs(0)[0].encode())


def _ahead(team: Crowd) -> None:
    _commit_on(team, SEALS, f"crowd.example/1\n999999\n{'A' * 43}=\n".encode())


NEW: dict[str, tuple[Callable[[Crowd], None], str]] = {
    "append-only": (_rewritten, "2096-10-02 07:06:40Z: line"),
    "count-from-grep": (
        lambda team: team.add("scribe/log.md", "\n### D-0x Nobody decided this\n\nNo.\n\n---\n"),
        "a heading that is no decision",
    ),
    "decision-ids-unique": (lambda team: _log_on(team, _decision(START)), f"D-{START} stands for "),
    "supersession": (
        lambda team: _log_on(team, _decision(START + 29_000_000, supersedes="D-2")),
        f"D-{START + 29_000_000} supersedes D-2, which is no decision",
    ),
    "pythia-fires": (
        lambda team: _log_on(team, _decision(START + 28_000_000)),
        f"(D-{START + 28_000_000}) reached the interval of 1",
    ),
    "checkpoint-preceded": (_assessed, "of D-40000000 through "),
    "assessment-complete": (_assessed, "the assessment has no text on "),
    "events-processed": (_waved_through, "was acknowledged, and no assessment answers it"),
    "chat-refs-resolve": (
        lambda team: _log_on(team, _decision(START + 27_000_000)),
        f"D-{START + 27_000_000}: {NOBODY} names no chat",
    ),
    "pythia-isolation": (
        lambda team: team.add("workers/pythia-a0d7.log", READING),
        "pythia-a0d7 read the chat",
    ),
    "worker-lifecycle": (_misled, "newcomer-0001: completed after pending"),
    "drift": (_edited, "differs"),
    "pins-extend": (_ahead, "rollback: it remembers 999999 entries"),
}
"""For each check a deed, and a part of what the check says of it."""
