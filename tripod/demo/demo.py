"""The demo's story, and its first half: a real team's files adopted, tampered with, recovered."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from typing import NamedTuple

from tripod.decisions import writer as decisions_log
from tripod.demo.review import Tell, data_file, play_review
from tripod.ledger.locator import FOLDER
from tripod.ledger.sqlite.damage import damage_by_deletion, damage_entry
from tripod.projections import PROJECTIONS
from tripod.projections.chat.format import format_line
from tripod.projections.decisions.format import DecisionText, format_decision
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify import Report, verify

WIDTH = 150
ARCHIVE = "nbs-team.tar.gz"

# A writer that dies between the commit of its entry and the writing of its file.
_DYING = """
import os, sys
from tripod import bus
from tripod.team.team import Team
Team._write_files = lambda *_, **__: os.kill(os.getpid(), 9)
with Team(sys.argv[1]) as team:
    bus.publish(team, "parser-worker", "task-complete", "high", "killed while writing this")
"""


def extract_demo(target: str) -> None:
    """Lay the team directory out in ``target``."""
    with tarfile.open(data_file(ARCHIVE)) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, filter="data")
        else:  # Python 3.11.0 to 3.11.3; the archive is our own
            tar.extractall(target)  # noqa: S202


def play(folder: str, tell: Tell) -> int:
    """Tell the whole story in ``folder``; give the number of things that went otherwise."""
    project = f"{folder}/team"
    root = f"{project}/{FOLDER}"
    extract_demo(project)
    wrong = _adopt(project, root, tell)
    wrong += _rebuild(root, tell)
    wrong += _decide(root, tell)
    tell("step", "Five tamperings, each on its own copy")
    for number, tampering in enumerate(TAMPERINGS, 1):
        wrong += _tamper(project, f"{folder}/copy-{number}", number, tampering, tell)
    wrong += _crash(project, root, tell)
    return wrong + play_review(folder, tell)


def _verdict(project: str, tell: Tell) -> int:
    """Say what verify says of a team that is to be clean."""
    report = verify(project)
    for outcome in report.outcomes:
        if outcome.verdict == "cannot tell":
            tell("plain", f"  {outcome.check}: cannot tell: {outcome.reason}")
    if report.exit_code:
        _show(report, "", tell)
        tell("bad", f"  verify: exit {report.exit_code}")
        return 1
    clean = sum(outcome.verdict == "clean" for outcome in report.outcomes)
    head = f"{report.head[0]} entries, root {report.head[1][:16]}…" if report.head else ""
    tell("good", f"  verify: {clean} checks clean, exit 0 ({head})")
    return 0


def _show(report: Report, check: str, tell: Tell) -> bool:
    """Print findings, those of ``check`` first; whether there is one of it."""

    def line(style: str, text: str) -> None:
        tell(style, text if len(text) <= WIDTH else text[: WIDTH - 1] + "…")

    findings = [f for outcome in report.outcomes for f in outcome.findings]
    failures = [f for f in findings if f.severity == "failure"]
    failures.sort(key=lambda finding: finding.check != check)
    for finding in failures[:3]:
        line("bad", f"    {finding.check}: {finding.where}: {finding.message}")
        for text in finding.evidence[:6] if finding.check == check else ():
            line("plain", f"        {text}")
    rest = report.failures - len(failures[:3])
    if rest > 0:
        tell("plain", f"    and {rest} more finding{'' if rest == 1 else 's'}")
    return any(finding.check == check for finding in failures)


def _adopt(project: str, root: str, tell: Tell) -> int:
    tell("step", "Adopt a team's past: 668 messages, 46 decisions, 762 events, no ledger yet")
    tell("do", f"tripod init {os.path.basename(project)}")
    before = _tree(root)
    found = adoption.init(project, project="sqlite-utils-team")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.kinds.items()))
    tell("plain", f"  {found.entries} entries taken in: {kinds}")
    after = _tree(root)
    same = all(after.get(path) == data for path, data in before.items())
    added = ", ".join(sorted(after.keys() - before.keys()))
    style = "good" if same else "bad"
    tell(style, f"  no byte of the team's files changed; added: {added}")
    return (not same) + _verdict(project, tell)


def _tree(root: str) -> dict[str, bytes]:
    tree = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(("-wal", "-shm", ".lock")):
                with open(path, "rb") as file:
                    tree[os.path.relpath(path, root)] = file.read()
    return tree


def _rebuild(root: str, tell: Tell) -> int:
    tell("step", "Lose every readable file, and rebuild them from the ledger")
    before = _tree(root)
    with Team(root) as team:
        paths = [path for p in PROJECTIONS for path in p.paths(team.source)]
        for path in paths:
            os.unlink(f"{root}/{path}")
        tell("do", f"rm (all {len(paths)} projected files); tripod rebuild")
        done = recover.rebuild(team)
    after = _tree(root)
    same = before | {"ledger.db": b""} == after | {"ledger.db": b""}
    yes = "yes" if same else "NO"
    text = f"  {len(done.written)} files written; byte for byte as before: {yes}"
    tell("good" if same else "bad", text)
    return not same


def _decide(root: str, tell: Tell) -> int:
    tell("step", "The team goes on: decisions until Pythia's review is due (every 20th)")
    with Team(root) as team:
        logged = decisions_log.LoggedDecision("", 0)
        number = 0
        while number < 20 and not logged.checkpoint:
            number += 1
            request = decisions_log.DecisionRequest(
                f"Keep option {number} of the import command",
                participants=["alex", "claude"],
                rationale="Callers use it, and its cost was measured.",
                refs=[f"live.chat:~L{480 + number}"],
            )
            logged = decisions_log.log(team, request)
    tell("do", f"tripod scribe log … ({number} times, the last is {logged.id})")
    tell("good", f"  decision {logged.number}: checkpoint event {logged.checkpoint}")
    return (logged.checkpoint is None) + _verdict(os.path.dirname(root), tell)


def _tamper(project: str, copy: str, number: int, tampering: Tampering, tell: Tell) -> int:
    shutil.copytree(project, copy)
    tampering.do(f"{copy}/{FOLDER}")
    tell("do", f"{number}. {tampering.title}")
    report = verify(copy)
    named = _show(report, tampering.check, tell) and report.exit_code == 1
    if not named:
        tell("bad", f"    NOT named by {tampering.check} (exit {report.exit_code})")
    shutil.rmtree(copy)
    return not named


def _crash(project: str, root: str, tell: Tell) -> int:
    tell("step", "Kill a writer in mid-append: its entry is committed, its file is not written")
    dead = subprocess.run([sys.executable, "-c", _DYING, root], check=False, capture_output=True)
    tell("do", f"kill -9 (the writer ended with {dead.returncode})")
    with Team(root) as team:
        before = len(os.listdir(f"{root}/events"))
        recover.rebuild(team)
        healed, after = team.healed, len(os.listdir(f"{root}/events"))
    good = dead.returncode == -signal.SIGKILL and healed == 1 and after == before + 1
    text = f"  tripod rebuild: {healed} recorded entry had no file yet; written now, nothing lost"
    tell("good" if good else "bad", text)
    return (not good) + _verdict(project, tell)


class Tampering(NamedTuple):
    """What is done, in words; the check that must name it; and the deed on a team directory."""

    title: str
    check: str
    do: Callable[[str], None]


def _edit_log(root: str) -> None:
    path = f"{root}/scribe/log.md"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("- **Risk tags:** tech-debt", "- **Risk tags:** none", 1))


def _post_assessment(root: str) -> None:
    """An assessment that no checkpoint event asked for, written as the original tool would."""
    text = (
        "## Pythia Checkpoint — 2026-11-21T21:30:00Z\n\n"
        "Decisions reviewed: D-1795294646 through D-1795294650 (5 decisions)\n\n"
        "### Hidden Assumptions\n\nAll is well.\n\n### Second-Order Risks\n\nAll is well.\n\n"
        "### Missing Validation\n\nAll is well.\n\n"
        "### Six-Month Regret Scenario\n\nAll is well.\n\n"
        "### Confidence\n\noverall: high\nNothing would change this assessment."
    )
    with open(f"{root}/chat/live.chat", "ab") as file:
        file.write(format_line("pythia", 1795294680, text) + b"\n")


def _forge_ref(root: str) -> None:
    """A decision appended by hand whose chat reference points beyond the chat."""
    piece = format_decision(
        DecisionText(
            id="D-1795294690",
            title="Skip the review of the migration",
            supersedes=None,
            chat_ref="live.chat:~L4711",
            participants="alex, claude",
            artefacts="—",
            risk_tags="none",
            status="decided",
            rationale="Agreed in the chat.",
        )
    )
    with open(f"{root}/scribe/log.md", "ab") as file:
        file.write(piece.encode())


TAMPERINGS: tuple[Tampering, ...] = (
    Tampering("a risk tag of a decision in log.md is edited", "append-only", _edit_log),
    Tampering(
        "an entry in the database is rewritten, and its hash with it",
        "chain-links",
        lambda root: damage_entry(
            f"{root}/ledger.db", "decision.logged", 6, rationale="Everybody agreed."
        ),
    ),
    Tampering(
        "an entry is deleted from the middle of the ledger",
        "sequence",
        lambda root: damage_by_deletion(f"{root}/ledger.db"),
    ),
    Tampering(
        "an assessment is posted that no checkpoint event asked for",
        "checkpoint-preceded",
        _post_assessment,
    ),
    Tampering(
        "a decision is logged by hand with a chat ref that leads nowhere",
        "chat-refs-resolve",
        _forge_ref,
    ),
)
