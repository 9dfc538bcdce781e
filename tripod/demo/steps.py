"""The demo's story, step by step; each function does one thing and tells it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable

from tripod.decisions import writer as decisions_log
from tripod.demo import review
from tripod.demo.damage import TAMPERINGS, Tampering
from tripod.demo.review import data_file
from tripod.ledger.locator import FOLDER
from tripod.projections import PROJECTIONS
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.evidence import collect
from tripod.verify.run import run

Tell = Callable[[str, str], None]
"""``tell(style, text)``; styles are step, do, good, bad and plain."""

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


def extract(target: str) -> None:
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
    extract(project)
    wrong = _adopt(project, root, tell)
    wrong += _rebuild(root, tell)
    wrong += _decide(root, tell)
    tell("step", "Five tamperings, each on its own copy")
    for number, tampering in enumerate(TAMPERINGS, 1):
        wrong += _tamper(project, f"{folder}/copy-{number}", number, tampering, tell)
    wrong += _crash(project, root, tell)
    return wrong + review.play(folder, tell)


def _judge(project: str) -> Report:
    with collect(project) as evidence:
        return run(evidence)


def _verdict(project: str, tell: Tell) -> int:
    """Say what verify says of a team that is to be clean."""
    report = _judge(project)
    told = [o for o in report.outcomes if o.verdict == "cannot tell"]
    for outcome in told:
        tell("plain", f"  {outcome.check}: cannot tell: {outcome.reason}")
    clean = sum(outcome.verdict == "clean" for outcome in report.outcomes)
    head = f"{report.head[0]} entries, root {report.head[1][:16]}…" if report.head else ""
    if report.exit_code:
        _show(report, "", tell)
        tell("bad", f"  verify: exit {report.exit_code}")
        return 1
    tell("good", f"  verify: {clean} checks clean, exit 0 ({head})")
    return 0


def _show(report: Report, check: str, tell: Tell) -> bool:
    """Print findings, those of ``check`` first; whether there is one of it."""
    findings = [f for outcome in report.outcomes for f in outcome.findings]
    failures = [f for f in findings if f.severity == "failure"]
    failures.sort(key=lambda finding: finding.check != check)
    for finding in failures[:3]:
        tell("bad", _short(f"    {finding.check}: {finding.where}: {finding.message}"))
        for line in finding.evidence[:6] if finding.check == check else ():
            tell("plain", _short(f"        {line}"))
    rest = report.failures - len(failures[:3])
    if rest > 0:
        tell("plain", f"    and {rest} more finding{'' if rest == 1 else 's'}")
    return any(finding.check == check for finding in failures)


def _short(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _adopt(project: str, root: str, tell: Tell) -> int:
    tell("step", "Adopt a team's past: 668 messages, 46 decisions, 762 events, no ledger yet")
    tell("do", f"tripod init {os.path.basename(project)}")
    before = _tree(root)
    found = adoption.init(project, project="sqlite-utils-team")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.kinds.items()))
    tell("plain", f"  {found.entries} entries taken in: {kinds}")
    after = _tree(root)
    same = all(after.get(path) == data for path, data in before.items())
    added = sorted(after.keys() - before.keys())
    tell(
        "good" if same else "bad",
        f"  no byte of the team's files changed; added: {', '.join(added)}",
    )
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
    same = {p: d for p, d in after.items() if p != "ledger.db"} == {
        p: d for p, d in before.items() if p != "ledger.db"
    }
    tell(
        "good" if same else "bad",
        f"  {len(done.written)} files written; byte for byte as before: {'yes' if same else 'NO'}",
    )
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
    report = _judge(copy)
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
    tell(
        "good" if good else "bad",
        f"  tripod rebuild: {healed} recorded entry had no file yet; written now, nothing lost",
    )
    return (not good) + _verdict(project, tell)
