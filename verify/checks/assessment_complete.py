"""Each assessment has what the template asks for, and reviews what it was asked to.

**What it proves.** An assessment has a text in each of the five sections and says how confident it
is, and every decision that it cites is in the log. One that answers a checkpoint event of ours is
held against the whole template, as markdown, with the range of decisions that the event names; and
the chat shows what its entry holds. Not that what it says is any good.

**Why it matters.** The seeds: Pythia fires, and its assessment is empty. Sections that are missing
are risks that nobody looked for, and a cited decision that does not exist was not read.

**What a finding looks like.** ``the assessment has no text on missing-validation``; ``it cites
D-17, which is no decision of the log``; ``it reviewed D-17 through D-20, and was asked for D-17
through D-36``; ``no run of Pythia gave an assessment: it is empty``, until the event is answered.

**What to do.** Have the review made again: ``tripod pythia run`` for an event that waits, ``tripod
pythia run --manual`` for a new one. What is wrong with what stood there before adoption is told as
a warning. An event that nobody answered at all is named by ``events-processed``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tripod.projections.pythia.format import (
    SECTIONS,
    DecisionRange,
    judge_review,
    parse_checkpoint_payload,
)
from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome
from tripod.verify.isolation import runs

NAME = "assessment-complete"
REQUIRED = False
NEEDS = (TABLES,)
HELP = "have the review made again: `tripod pythia run`, with --manual where no event waits"
FEW = 5  # unknown decisions that are named


class DecisionPlace(NamedTuple):
    """A decision's place among all, its log, and its number in that."""

    place: int
    log: str
    number: int

    def up_to(self, last: DecisionPlace) -> int:
        """How many decisions there are from this one to another: of their log, or of all logs."""
        same = self.log == last.log
        return 1 + (last.number - self.number if same else last.place - self.place)


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    rows = evidence.query(
        "SELECT seq, event, message FROM assessments WHERE NOT merged ORDER BY seq"
    )
    ours = {message: (seq, event, message) for seq, event, message in rows}
    failures = evidence.query("SELECT seq, event FROM failures ORDER BY seq")
    posted = {one.seq: one for one in runs.assessments_of_runs(evidence)}
    outside = [one for one in posted.values() if one.seq not in ours]
    if not ours and not outside and not failures:
        return not_applicable(NAME, "no assessment was posted")
    rows = evidence.query("SELECT id, log FROM pieces WHERE id IS NOT NULL ORDER BY seq")
    numbers: Counter[str] = Counter()
    known = {}
    for place, (id_, log) in enumerate(rows):
        numbers[log] += 1
        known[id_] = DecisionPlace(place, log, numbers[log])
    answered = {event for _, event, _ in ours.values()}
    found = chain(
        (finding for one in ours.values() for finding in _ours(evidence, one, known)),
        (finding for one in outside for finding in _outside(evidence, one, known)),
        # Reviews that came to nothing, of events that nobody answered since.
        (_failed(evidence, seq) for seq, event in failures if event not in answered),
    )
    seen = {"assessments": len(ours) + len(outside), "of ours": len(ours), "failed": len(failures)}
    return outcome(NAME, found, seen)


def _ours(
    evidence: Evidence, answer: tuple[int, int, int], known: dict[str, DecisionPlace]
) -> Iterator[Finding]:
    """What is wrong with an answer to a checkpoint event; ``known`` numbers the decisions.

    ``answer`` is the entry of the assessment, of the event, and of the message.
    """
    seq, event, message = answer
    text = runs.assessed_run_text(evidence, seq)
    if text is None:
        return  # it was erased: `bodies-present` says who did it
    body, where = evidence.body(seq), f"entry {seq}"
    asked = parse_checkpoint_payload(evidence.text(event, "payload") or "")
    first, last = said = (str(body.get("first")), str(body.get("last")))
    if asked is not None and said != asked[1:]:
        problem = (
            f"it reviewed {first} through {last}, and was asked for {asked[1]} through {asked[2]}"
        )
        yield _finding(evidence, problem, where, seq)
    count = known[first].up_to(known[last]) if known.keys() >= set(said) else 0
    if count < 1:
        problem = f"it reviewed {first} through {last}: no such decisions are in the log"
        yield _finding(evidence, problem, where, seq)
        return
    for problem in judge_review(text, DecisionRange(*said, count), known).problems:
        yield _finding(evidence, problem, where, seq)
    shown = None if runs.erased_in_run(evidence, message) else evidence.text(message, "text")
    if shown is not None and shown.strip() != text.strip():
        problem = f"the chat shows another assessment (entry {message}) than the one judged"
        yield _finding(evidence, problem, where, seq)


def _outside(
    evidence: Evidence, posted: runs.Posted, known: dict[str, DecisionPlace]
) -> Iterator[Finding]:
    """What is wrong with an assessment that nobody of us judged: in whichever layout."""
    said = posted.said
    where = f"chat {posted.channel}, message {posted.number}, {evidence.where(posted.seq)}"
    missing = [name for name in SECTIONS if name not in said.sections]
    if missing:
        message = f"the assessment has no text on {', '.join(missing)}"
        yield _finding(evidence, message, where, posted.seq)
    if not said.confidence and "confidence" not in missing:
        message = "the assessment does not say whether its confidence is high, medium or low"
        yield _finding(evidence, message, where, posted.seq)
    foreign = [id_ for id_ in said.cited if id_ not in known]
    if foreign:
        more = f" and {len(foreign) - FEW} more" if len(foreign) > FEW else ""
        what = "is no decision" if len(foreign) == 1 else "are no decisions"
        message = f"it cites {', '.join(foreign[:FEW])}{more}, which {what} of the log"
        yield _finding(evidence, message, where, posted.seq)


def _failed(evidence: Evidence, seq: int) -> Finding:
    given = evidence.body(seq).get("problems")
    problems = "; ".join(str(one) for one in given) if isinstance(given, list) else ""
    message = f"no run of Pythia gave an assessment: {problems or 'nothing says why'}"
    return _finding(evidence, message, f"entry {seq}", seq)


def _finding(evidence: Evidence, message: str, where: str, seq: int) -> Finding:
    return evidence.finding(NAME, seq, message, HELP, where=where)
