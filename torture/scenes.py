"""The teams that are tortured: what prepares each, and what it is told to do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from torture.children import reap_orphans
from torture.teams import SECONDS, Scene, act, begin, run_git
from tripod.ledger import SPOOL
from tripod.team.team import Team

__all__ = ["SCENES", "TALK"]


def _told(root: Path) -> None:
    """Events, a message and a decision as the original tools write them."""
    text = (
        "source: bob\ntype: note\npriority: low\ntimestamp: 2026-11-20T10:00:00Z\npayload: |\n  x\n"
    )
    (root / "events/1795000000000000-bob-note-41.event").write_text(text)
    with (root / "scribe/log.md").open("a", encoding="utf-8") as log:
        log.write(
            "\n---\n\n### D-1900000000 By hand\n- **Chat ref:** live.chat:~L7\n"
            "- **Participants:** bob\n- **Artefacts:** —\n- **Risk tags:** none\n"
            "- **Status:** decided\n- **Rationale:** It was said.\n"
        )


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
    run_git("clone", "-q", "remote.git", "other", at=team)
    act(("init", "--from", "../remote.git"), other)
    act(("chat", "send", "live", "eve", "from elsewhere"), other)
    act(("push", "../remote.git"), other)


WORKER = "w-0001"
_SPAWN = (
    "worker", "spawn", "w", ".", "Do it.", "--name", WORKER,
    "--", "sh", "-c", "echo ran >> ran; echo done",
)  # fmt: skip
ASSESSMENT = """\
asked=$(grep -m 1 'Decisions reviewed: ')
cat <<END
## Pythia Checkpoint — 2026-11-27T12:00:00Z

${asked#"${asked%%[! ]*}"}

### Hidden Assumptions
- Nobody measured it.

### Second-Order Risks
- Two tables are two truths.

### Missing Validation
- No test reads both.

### Six-Month Regret Scenario
In six months nobody knows why there are two.

### Confidence
medium
END
"""
"""A reviewer's program: it reads which decisions it is asked about, and answers in the form."""
_REVIEW = ("pythia", "run", "--", "sh", "-c", ASSESSMENT)


def _due(root: Path) -> None:
    """A decision after which a review is due."""
    (root / "events").mkdir(exist_ok=True)
    (root / "events/config.yaml").write_text("pythia-interval: 1\n")
    act(("scribe", "log", "Drop one", "-p", "ann", "-r", "So.", "--ref=live#last"), root.parent)


def _worked(team: Path, *, alone: bool) -> str:
    """Have the worker's work finished as its coordinator would, who does not know what came of it.

    Its program ran once, or once for each attempt where the programs were killed, too.
    """
    act(_SPAWN, team)
    act(("worker", "watch", "--timeout", "30"), team)
    kinds = _kinds(team)
    once = ("worker.spawned", "worker.ended", *(("agent.ended", "worker.running") if alone else ()))
    ran = len((team / "ran").read_text().splitlines()) if (team / "ran").exists() else 0
    most = 1 if alone else kinds["agent.requested"]
    if not alone <= ran <= most:
        return f"the program ran {ran} times, and was asked for {kinds['agent.requested']} times"
    return _finished(team, kinds, once)


def _reviewed(team: Path, *, alone: bool) -> str:
    """Have the review finished as the next command would."""
    again = act if alone else _tolerant
    again(_REVIEW, team)
    if not alone:  # each loss of a program is an attempt, and two that are lost are a failure
        again(_REVIEW, team)
    kinds = _kinds(team)
    once = ("pythia.assessed", *(("agent.ended",) if alone else ()))
    with Team(str(team / ".nbs")) as opened:
        said = [e for e in opened.store.read() if e.kind == "chat.sent" and e.actor == "pythia"]
    if len(said) != 1:
        return f"the assessment stands {len(said)} times in the chat"
    return _finished(team, kinds, once)


def _tolerant(command: tuple[str, ...], team: Path) -> None:
    """Run a command that may say that it got no result."""
    begin(command, team).end(SECONDS)


def _kinds(team: Path) -> Counter[str]:
    with Team(str(team / ".nbs")) as opened:
        return Counter(entry.kind for entry in opened.store.read())


def _finished(team: Path, kinds: Counter[str], once: tuple[str, ...]) -> str:
    """What of an agent's work is not there once, or is left over; '' where all is well."""
    wrong = [f"{kinds[kind]} entries {kind}" for kind in once if kinds[kind] != 1]
    left = reap_orphans(10)
    wrong += [f"still running: {command}" for command in left]
    spool = team / ".nbs" / SPOOL
    wrong += [f"left over: {path.name}" for path in (spool.iterdir() if spool.exists() else ())]
    return "; ".join(wrong)


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
    Scene("init", (), [("init",), _PUBLISH[0]], fresh=True),
    Scene("publish", TALK, _PUBLISH[:2]),
    Scene("send", TALK, _SEND),
    Scene("log", TALK, _LOG),
    Scene("ack", [*TALK, *_PUBLISH], [("bus", "ack-all")]),
    Scene("archive", [*TALK, *_SEND], [("chat", "archive", "live", "--keep", "1")]),
    Scene("sync", TALK, [("sync",)], foreign=_told),
    Scene("rebuild", [*TALK, *_PUBLISH], [("rebuild",)]),
    Scene("seal", [*TALK, ("key", "new")], [("seal",), _PUBLISH[0], ("seal",)]),
    Scene("key", TALK, [("key", "new"), ("seal",), ("key", "rotate")]),
    Scene("redact", [*TALK, *_PUBLISH], [("redact", "9", "--reason", "a secret")]),
    Scene("import", TALK, [("import", "session.jsonl")], foreign=_session),
    Scene("export", [*TALK, ("key", "new"), ("seal",)], [("export", "--bodies", "out")]),
    Scene("push", TALK, [("push", "./remote.git")], git=True),
    Scene("pull", TALK, [("pull", "./remote.git")], foreign=_peer, git=True),
    Scene("spawn", TALK, [_SPAWN], settle=_worked),
    Scene("review", TALK, [_REVIEW], foreign=_due, settle=_reviewed),
)
