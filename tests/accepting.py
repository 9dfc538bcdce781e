"""A small team whose faults are accepted, and the ways to bring more faults in behind its back."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.ledger.kinds.trust import ACCEPTED
from tripod.projections.decisions.format import DecisionText, format_decision
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust.acceptance import AcceptanceRequest, accept_findings
from tripod.verify.check import Finding, Report
from tripod.verify.run import verify

__all__ = [
    "accept_all",
    "begin",
    "copied",
    "decide",
    "failures",
    "forge_acceptance",
    "judge",
    "say",
    "write",
]

BAD = "live.chat:~L120"
"""A reference that leads nowhere."""
GOOD = "live.chat:~L8"


def begin(folder: Path) -> str:
    """A sound team with a chat, a decision and a queue, of which no review is due."""
    root = folder / ".nbs"
    (root / "events").mkdir(parents=True)
    (root / "events/config.yaml").write_text("pythia-interval: 0\n", encoding="utf-8")
    adoption.init(str(folder), project="sample", origin="sample.example/1")
    with Team(str(root)) as team:
        chat_send.create(team, "live", actor="ann")
        for number in range(8):
            chat_send.send(team, "live", "ann", f"message {number}")
        request = decisions_log.DecisionRequest("Tea", ("ann",), "Agreed.", refs=[GOOD])
        decisions_log.log(team, request)
    assert judge(str(root)).exit_code == 0
    return str(root)


def copied(root: str, folder: Path) -> str:
    """A copy of a team directory, times included."""
    return str(shutil.copytree(root, folder / ".nbs", copy_function=shutil.copy2))


def judge(root: str, **how: Any) -> Report:
    """The report of `verify`."""
    return verify(root, **how)


def failures(report: Report) -> list[Finding]:
    """The findings that fail a run."""
    every = (one for outcome in report.outcomes for one in outcome.findings)
    return [one for one in every if one.severity == "failure"]


def accept_all(root: str, actor: str = "ann") -> int:
    """Accept every finding that is there, warnings too, and give how many; then all is green."""
    before = judge(root)
    found = [one for outcome in before.outcomes for one in outcome.findings]
    with Team(root) as team:
        request = AcceptanceRequest(tuple(one.fingerprint for one in found))
        done = accept_findings(team, request, reason="known", actor=actor)
    report = judge(root)
    assert (report.exit_code, report.failures) == (0, 0)
    assert report.accepted == before.accepted + len(found)
    return len(done)


def decide(
    root: str,
    ref: str | None = BAD,
    *,
    id_: str | None = None,
    title: str = "More tea",
    supersedes: str | None = None,
    status: str = "decided",
) -> str:
    """Log a decision as another program does, with a reference to a line; give its id.

    ``id_`` may be one that is there already.
    """
    with Team(root) as team:
        (newest,) = team.store.db.execute("SELECT max(id) FROM pieces").fetchone()
    name = id_ or f"D-{int(newest[2:]) + 1}"
    piece = format_decision(
        DecisionText(name, title, supersedes, ref or "—", "ann", "—", "none", status, "Because.")
    )
    with open(f"{root}/scribe/log.md", "a", encoding="utf-8") as file:
        file.write(piece)
    with Team(root) as team:
        adoption.sync(team)
    return name


def say(root: str, count: int = 1) -> None:
    """Say something: the chat and the ledger grow."""
    with Team(root) as team:
        for number in range(count):
            chat_send.send(team, "live", "bob", f"and more {number}")


def write(root: str, path: str, data: bytes) -> None:
    """Write a file of the team as an editor does."""
    with open(f"{root}/{path}", "wb") as file:
        file.write(data)


def forge_acceptance(root: str, finding: Finding, actor: str = "ann", **other: str) -> int:
    """Append an acceptance by other means than the command; give its number."""
    body: Any = {"check": finding.check, "fingerprint": finding.fingerprint, "reason": "fine"}
    with Team(root) as team, team.act() as act:
        act.sign = None
        (entry,) = act.append([ACCEPTED.draft(body | other, actor)])
    return entry.seq


def lines_of(root: str, path: str) -> list[bytes]:
    """The lines of a file of the team."""
    with open(os.path.join(root, path), "rb") as file:
        return file.read().split(b"\n")


def report_as_json(report: Report) -> dict[str, Any]:
    """What `verify --json` prints."""
    from tripod.verify.reporters import json as json_

    value: dict[str, Any] = json.loads(json_.render(report))
    return value
