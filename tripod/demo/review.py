"""The demo's second half: a whole Tripod at work, and Pythias that look for the chat."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tripod.agents.isolation import Isolated
from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.demo import reviewer
from tripod.errors import RefusedError
from tripod.ledger.ids import now_us
from tripod.ledger.locator import FOLDER
from tripod.projections import projected_content
from tripod.pythia import review as pythia
from tripod.pythia.checkpoints import TYPE, checkpoint_named, checkpoint_snapshot
from tripod.pythia.reviewer import Order, ReviewerFolder, ReviewerProgram, reviewer_order
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify import Outcome, Report, verify

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
    adoption.init(project, project="council")
    with Team(f"{project}/{FOLDER}") as team:
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
    order = reviewer_order(team, ReviewerProgram(command=command), "alex")
    if not folder:
        return order
    home, work = f"{ReviewerFolder.ANY}/home", f"{ReviewerFolder.ANY}/work"
    place = Isolated(tuple(command), work, {"HOME": home}, "folder", "the demo asks for none")
    env = {**order.spec.set_env, **place.env}
    spec = replace(order.spec, argv=place.argv, set_env=env, sealed={}, leaves=False)
    return replace(order, spec=spec, place=place, hidden=())


def ask(project: str, event: str, order: Callable[[Team], Order], extra: str = "") -> DemoReview:
    """Have a checkpoint event answered; ``extra`` follows the instructions."""
    with Team(f"{project}/{FOLDER}") as team:
        team.refresh()
        point = checkpoint_named(team, event)
        log = checkpoint_snapshot(team, point)
        prompt = pythia.review_instructions(point) + extra
        asyncio.run(pythia.review(team, point, log, replace(order(team), prompt=prompt)))
        seqs = [entry.seq for entry in team.store.read() if entry.kind == "agent.ended"]
        kept = team.source.body(seqs[-1])["stderr"]["content"]
        stderr = projected_content(team.source, kept).decode("utf-8", "replace")
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
    with Team(f"{project}/{FOLDER}") as team:
        team.refresh()
        work = pythia.run(team, ReviewerProgram(command=command), now_us())
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
    with Team(f"{project}/{FOLDER}") as team:
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
    return _count_failures(report, tell, apart=answer.level == "namespace")


def _count_failures(report: Report, tell: Tell, *, apart: bool) -> int:
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
        sys.executable, reviewer.__file__, way, f"{copy}/{FOLDER}/chat", data_file("pythia.py")
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
