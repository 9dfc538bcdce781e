"""Each assessment of Pythia answers a checkpoint event that came before it.

**What it proves.** For every message that has the form of an assessment (either layout) there is
a ``pythia-checkpoint`` event of its own, published earlier. They are matched by the entry that
binds them (``pythia.assessed``), else by the range of decisions that both name, else by order; one
event answers one assessment. Earlier means in the ledger's order: an event file that turns up later
clears nothing, whatever time it claims. Claimed time decides only between two observed entries that
were taken in together, or before adoption. An event without a readable range asks for what is new,
if such an entry binds it, or the team's Scribe published it.

**Why it matters.** The seeds: every assessment has a preceding checkpoint event. An assessment
without one was asked for by a clock or by a person, and covers whatever somebody chose.

**What a finding looks like.** ``the assessment of D-17 through D-36 answers no checkpoint
event``. A range that overlaps the event's without being the same is a warning, and so is an event
that names no range.

**What to do.** Find out what started Pythia. Events that the original tools pruned before adoption
cannot be found any more: the past is told as a warning.
"""

from __future__ import annotations

from functools import partial

from tripod.projections.pythia.format import checkpoint_came_first, review_ranges_overlap, span_of
from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome
from tripod.verify.isolation import runs

NAME = "checkpoint-preceded"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "find out what started Pythia; only a `pythia-checkpoint` event should"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    events = runs.checkpoints_for_runs(evidence)
    every = list(runs.assessments_of_runs(evidence))
    if not every:
        return not_applicable(NAME, "no assessment was posted")
    # Where an entry says which event an assessment answers, that event is taken, unless their
    # ranges differ.
    named = dict(evidence.query("SELECT message, event FROM assessments"))
    by_seq = {event.seq: event for event in events}
    bound = set()
    for posted in every:
        one = by_seq.get(named.get(posted.seq, -1))
        if one is None or one.seq > posted.seq or one.range not in (None, span_of(posted.said)):
            continue
        one.used = True
        bound.add(posted.seq)
    found = (
        finding
        for posted in every
        if posted.seq not in bound
        for finding in _answer(evidence, posted, events)
    )
    seen = {"assessments": len(every), "checkpoint events": len(events)}
    return outcome(NAME, found, seen)


def _answer(
    evidence: Evidence, posted: runs.Posted, events: list[runs.Checkpoint]
) -> list[Finding]:
    """Take the event that this assessment answers; a finding if no event fits."""
    span = span_of(posted.said)
    apart = partial(runs.in_one_append, evidence)
    free = [event for event in events if not event.used]
    same = (event for event in free if event.range and (span is None or event.range == span))
    near = (
        event for event in free if span and event.range and review_ranges_overlap(span, event.range)
    )
    bare = (event for event in free if event.range is None and event.scribe)
    # What is cheap to ask is asked first: of many assessments and events each meets each.
    fits = ((at, e) for at, some in enumerate((same, near, bare)) for e in some)
    for at, event in (pair for pair in fits if checkpoint_came_first(pair[1], posted, apart)):
        event.used = True
        if at == 0:
            return []
        wanted = _words(event.range)
        message = f"the assessment covers {_words(span)}, its checkpoint event asked for {wanted}"
        return [_finding(evidence, posted, message, warn=True)]
    late = [event for event in events if span is not None and event.range == span]
    message = fault = f"the assessment of {_words(span)} answers no checkpoint event"
    if late:
        what = "answered another assessment" if late[0].used else "came after it"
        message += f": the one of its range {what}"
    return [_finding(evidence, posted, message, warn=False, fault=fault)]


def _words(span: tuple[str, str] | None) -> str:
    return "no stated range" if span is None else f"{span[0]} through {span[1]}"


def _finding(
    evidence: Evidence, posted: runs.Posted, message: str, *, warn: bool, fault: str = ""
) -> Finding:
    where = f"chat {posted.channel}, message {posted.number}, {evidence.where(posted.seq)}"
    return evidence.finding(
        NAME,
        posted.seq,
        message,
        HELP,
        where=where,
        severity="warning" if warn else None,
        shown=(f"posted by {posted.handle}",),
        fault=fault,
    )
