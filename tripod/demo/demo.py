"""The demo's story: a real team's files adopted, tampered with, recovered, and reviewers at work.

The tamperings work behind the tool's back, as somebody with the disk would do it. In the second
half a whole team works, and its reviewers look for the chat.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import orjson
from sqlite_utils import Database

from tripod.agents.folder import IsolatedProgram, Order, RunFolder
from tripod.agents.isolation import Isolated
from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.demo import reviewer
from tripod.demo.panel import play_panel
from tripod.demo.replicas import play_week
from tripod.errors import RefusedError
from tripod.ledger.entry import commit_body, format_canonical
from tripod.ledger.sqlite.reader import SQLiteReader
from tripod.projections import PROJECTIONS
from tripod.projections.chat.format import format_line
from tripod.projections.decisions.format import DecisionText, format_decision
from tripod.pythia import review as pythia
from tripod.pythia.checkpoints import TYPE, checkpoint_named, checkpoint_snapshot
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Outcome, Report
from tripod.verify.run import verify

Tell = Callable[[str, str], None]  # `tell(style, text)`; styles are step, do, good, bad and plain
CHECK = "pythia-isolation"
SAID = (
    ("alex", "Do we write the cache before we answer, or after? I want this settled today."),
    (
        "claude",
        "After. Trust me on this one: nobody has ever lost a write here in all these years.",
    ),
    ("alex", "You argued that so well that I stopped counting what a lost write would cost us."),
    ("bench", "I have no figures for a crash between the two, and nobody asked me for any."),
)
DECISIONS = (
    ("Answer before the cache is written", "accepted-risk", ("perf-risk", "untested")),
    ("Keep one cache for all tenants", "decided", ("reversible",)),
    ("Expire entries after an hour", "decided", ("none",)),
    ("Drop the second replica", "accepted-risk", ("irreversible",)),
)
WANTED = 20  # decisions between two reviews

_CHECKOUT = ("tests/golden", "examples")


class DemoReview(NamedTuple):
    """The result of a review: the check's verdict, and what the program wrote to stderr."""

    outcome: Outcome
    exit_code: int
    stderr: str

    @property
    def refused(self) -> bool:
        """Whether the reviewer looked, and found nothing."""
        return "0 messages found" in self.stderr and not self.outcome.failures

    @property
    def caught(self) -> bool:
        """Whether `verify` names what the reviewer found."""
        return self.exit_code == 1 and self.outcome.failures > 0


def begin_demo_review(project: str) -> str:
    """A team that talks, and decides until a review is due; give the checkpoint event's name."""
    os.makedirs(project)
    adoption.init(project, project="council", new=True)
    with Team(project) as team:
        chat_send.create(team, "live", actor="alex")
        for handle, text in SAID:
            chat_send.send(team, "live", handle, text)
        for number in range(WANTED):
            title, status, tags = DECISIONS[number % len(DECISIONS)]
            request = decisions_log.DecisionRequest(
                f"{title} (part {number // len(DECISIONS) + 1})",
                ["alex", "claude"],
                "It is simple, and it was agreed.",
                refs=[f"live.chat:~L{7 + number % len(SAID)}"],
                risk_tags=list(tags),
                status=status,
            )
            decisions_log.log(team, request)
        return next(event.name for event in events.check(team) if event.type == TYPE)


def order_of(team: Team, command: Sequence[str], *, folder: bool) -> Order:
    """How a program is run as Pythia; ``folder``: as where there is no namespace."""
    order = pythia.order_reviewer(team, IsolatedProgram(command=command), "alex")
    if not folder:
        return order
    home, work = f"{RunFolder.ANY}/home", f"{RunFolder.ANY}/work"
    place = Isolated(tuple(command), work, {"HOME": home}, "folder", "the demo asks for none")
    env = {**order.spec.set_env, **place.env}
    spec = replace(order.spec, argv=place.argv, set_env=env, sealed={}, leaves=False)
    return replace(order, spec=spec, place=place, hidden=())


def ask(project: str, event: str, order: Callable[[Team], Order], extra: str = "") -> DemoReview:
    """Have a checkpoint event answered; ``extra`` follows the instructions."""
    with Team(project) as team:
        team.refresh()
        point = checkpoint_named(team, event)
        log = checkpoint_snapshot(team, point)
        prompt = pythia.review_instructions(point) + extra
        asyncio.run(pythia.review(team, point, log, replace(order(team), prompt=prompt)))
        seqs = [entry.seq for entry in team.store.read() if entry.kind == "agent.ended"]
        kept = team.source.body(seqs[-1])["stderr"]["content"]
        stderr = team.source.content(kept).decode("utf-8", "replace")
    report = verify(project)
    return DemoReview(demo_review_isolation(report), report.exit_code, stderr)


def demo_review_isolation(report: Report) -> Outcome:
    """What a report says of Pythia's isolation."""
    return next(outcome for outcome in report.outcomes if outcome.check == CHECK)


def play_review(folder: str, tell: Tell) -> int:
    """Tell it in ``folder``; give the number of things that went otherwise."""
    project = f"{folder}/council"
    tell("step", f"The whole Tripod: {WANTED} decisions, and the event that calls Pythia")
    event = begin_demo_review(project)
    tell("do", f"tripod scribe log … ({WANTED} times); tripod bus check")
    tell("plain", f"  {event}")
    shutil.copytree(project, f"{folder}/unreviewed")
    wrong = _reviewed(project, tell)
    tell("step", "Four Pythias that look for the chat, each on its own copy of that team")
    for way in reviewer.WAYS:
        wrong += _nosy(f"{folder}/unreviewed", f"{folder}/nosy", event, way, tell)
    return wrong + _quoted(f"{folder}/unreviewed", f"{folder}/quoted", event, tell)


def _reviewed(project: str, tell: Tell) -> int:
    """The review, what the team makes of it, and the verdict of `verify`."""
    command = [sys.executable, data_file("pythia.py")]
    with Team(project) as team:
        team.refresh()
        work = pythia.run(team, IsolatedProgram(command=command), time.time_ns() // 1000)
        found = asyncio.run(work)
    tell("do", "tripod pythia run -- python3 examples/pythia.py")
    answer = None if found is None else found.answer
    if answer is None:
        tell("bad", f"  no assessment came of it: {[] if found is None else found.problems}")
        return 1
    tell(
        "good",
        f"  {answer.decisions} decisions, confidence {answer.confidence}; posted to "
        f"{answer.channel}.chat as message {answer.message}; isolation: {answer.level}",
    )
    with Team(project) as team:
        request = decisions_log.DecisionRequest(
            "Measure a crash between answer and cache",
            ["alex", "bench"],
            "Pythia: a risk was accepted, and nothing shows its size.",
            refs=[f"live.chat:~L{7 + answer.message}"],
            status="mitigated",
            supersedes=answer.first,
        )
        logged = decisions_log.log(team, request)
    tell("do", f"tripod scribe log … --supersedes {answer.first} (the outcome: {logged.id})")
    report = verify(project)
    return _review_verdict(report, tell, apart=answer.level == "namespace")


def _review_verdict(report: Report, tell: Tell, *, apart: bool) -> int:
    """Say what the judge says: clean, or without a namespace that nobody can tell."""
    found = demo_review_isolation(report)
    seen = ", ".join(f"{word} {number}" for word, number in found.coverage.items())
    others = [o.check for o in report.outcomes if o.failures or o.check in report.untold]
    if apart:
        good = found.verdict == "clean" and report.exit_code == 0
        tell("good" if good else "bad", f"  {CHECK}: {found.said} ({seen})")
        for exception in found.exceptions:
            tell("plain", f"    {exception}")
    else:
        good = found.verdict == "cannot tell" and others == [CHECK]
        tell("plain", f"  {CHECK}: cannot tell: {found.reason}")
        tell("plain", "  install bubblewrap (bwrap) and allow it namespaces to have it told")
    tell("good" if good else "bad", f"  verify: exit {report.exit_code}")
    return not good


def _nosy(project: str, copy: str, event: str, way: str, tell: Tell) -> int:
    """A Pythia that reads the chat's files, inside a namespace and without one."""
    command = [
        sys.executable, reviewer.__file__, way, f"{copy}/.nbs/chat", data_file("pythia.py")
    ]  # fmt: skip
    wrong = 0
    for folder in (False, True):
        shutil.copytree(project, copy)
        told = ask(copy, event, partial(order_of, command=command, folder=folder))
        shutil.rmtree(copy)
        apart = told.outcome.coverage.get("in a namespace") == 1
        if not folder and not apart:
            tell("plain", f"  by {way}: no namespace is available here, so nothing refuses it")
        where = "in a namespace" if apart else "in a folder"
        wrong += _told(
            f"by {way}, {where}", told, tell, good=told.refused if apart else told.caught
        )
    return wrong


def _quoted(project: str, copy: str, event: str, tell: Tell) -> int:
    """A Pythia whose instructions quote the chat."""
    shutil.copytree(project, copy)
    command = [sys.executable, data_file("pythia.py")]
    extra = f"\nBear in mind: {SAID[2][1]}\n"
    told = ask(copy, event, partial(order_of, command=command, folder=False), extra)
    return _told("by a quoted line in the prompt", told, tell, good=told.caught)


def _told(what: str, told: DemoReview, tell: Tell, *, good: bool) -> int:
    """Say what became of one of them."""
    tell("do", f"{what}: {'it found nothing' if told.refused else 'it had the chat'}")
    if told.refused:
        tell("good", f"    refused; {CHECK}: {told.outcome.said}")
    for finding in told.outcome.findings[:1]:
        tell("bad", f"    caught; {CHECK}: {finding.where}: {finding.message}")
        tell("plain", f"        {finding.evidence[0]}")
    if not good:
        tell("bad", f"    NEITHER refused nor caught: {told.outcome.reason}")
    return not good


def data_file(name: str) -> str:
    """The path of a file that the demo needs (RefusedError: it is in neither place)."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [f"{here}/demo_data", *(f"{os.path.dirname(here)}/{place}" for place in _CHECKOUT)]
    for place in places:
        if os.path.isfile(f"{place}/{name}"):
            return f"{place}/{name}"
    raise RefusedError(
        f"the demo's data ({name}) is neither in the package nor in {' or '.join(_CHECKOUT)}"
    )


WIDTH = 150
ARCHIVE = "nbs-team.tar.gz"
CLONES = "clones-852efc6.tar.xz"

# A writer that dies between the commit of its entry and the writing of its file.
_DYING = """
import os, sys
from tripod import bus
from tripod.team.team import Team
Team._write_files = lambda *_, **__: os.kill(os.getpid(), 9)
with Team(sys.argv[1]) as team:
    bus.publish(team, "parser-worker", "task-complete", "high", "killed while writing this")
"""


def extract_demo(target: str, archive: str = ARCHIVE) -> None:
    """Lay the team directory, or another archive of the demo's, out in ``target``."""
    with tarfile.open(data_file(archive)) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        tar.extractall(target)  # noqa: S202 - the archive is our own


def play(folder: str, tell: Tell) -> int:
    """Tell the whole story in ``folder``; give the number of things that went otherwise."""
    project = f"{folder}/team"
    root = f"{project}/.nbs"
    extract_demo(project)
    wrong = _adopt(project, root, tell)
    wrong += _rebuild(root, tell)
    wrong += _decide(root, tell)
    tell("step", "Five tamperings, each on its own copy")
    for number, tampering in enumerate(TAMPERINGS, 1):
        wrong += _tamper(project, f"{folder}/copy-{number}", number, tampering, tell)
    wrong += _crash(project, root, tell)
    wrong += play_review(folder, tell)
    extract_demo(f"{folder}/week", CLONES)
    wrong += play_week(f"{folder}/week", tell)
    return wrong + play_panel(folder, data_file("nova_panel.py"), tell)


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
    found = adoption.init(project, project="sqlite-utils-team", new=True)
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
    tampering.do(f"{copy}/.nbs")
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


# Tampering with a ledger -----------------------------------------------------------------------


@contextmanager
def _unguarded(path: str) -> Iterator[sqlite3.Connection]:
    """The database of a ledger, whose triggers are removed for good."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        yield db


def damage_entry(path: str, kind: str, number: int, **fields: object) -> None:
    """Give the ``number``-th entry of a kind, from 0, a body with other fields, and its hash."""
    with _unguarded(path) as db:
        *_, entry = SQLiteReader(db).read(kinds=(kind,), limit=number + 1)
        body = format_canonical(entry.data | fields)
        said = orjson.loads(entry.header) | {"body": commit_body(entry.salt or b"", kind, body)}
        values = {"header": format_canonical(said), "body": body}
        Database(db).table("entries").update(entry.seq, values)


def damage_by_deletion(path: str) -> None:
    """Remove the row of the entry in the middle of the ledger."""
    with _unguarded(path) as db:
        seq = (SQLiteReader(db).last_seq() or 0) // 2
        Database(db).table("entries").delete(seq)
