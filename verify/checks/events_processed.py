"""No event that the team must answer lies in the queue beyond ``ack-timeout``, or leaves it unseen.

**What it proves.** Each pending ``pythia-checkpoint`` event is younger than ``ack-timeout``, or
somebody holds a claim on it that still runs. There is no clock in this: an event's age is the time
from its entry to the newest one. So an event after which nothing happened has no age, and the next
entry gives it one. An ``ack-timeout`` of 0 asks for nothing; then the check tells only, as a
warning, of a checkpoint event that is pending while a later one was published.

A checkpoint event is not acknowledged by deleting its file, as other events are
(``deleted-events`` in ``config.yaml``): the next command writes it again, and that is told here.

Acknowledging a checkpoint event is no review: for each one that left the queue there is an
assessment, bound to it in the ledger (``pythia.assessed``), or posted to a chat after it and about
decisions that it asked for. While somebody holds a claim on it that still runs, and where it asks
for no decision that there is, nothing is missing.

**Why it matters.** The seeds: a checkpoint event that is published and never processed is a review
that everybody believes to have happened. Nothing else of the team notices.

**What a finding looks like.** ``1795294626000000-scribe-pythia-checkpoint-7.event
(pythia-checkpoint) is pending for 900 s, ack-timeout is 120 s``, or ``… was acknowledged, and no
assessment answers it``. Other events of priority
``critical``, for which an agent stands still, are told as warnings; so is what
was pending at adoption, or was acknowledged by then.

**What to do.** ``tripod bus check`` lists them. Have the review given (``tripod pythia run``), or
acknowledge what is settled; and find out why nobody reads the queue. An event that was
acknowledged stays due: ``tripod pythia due`` lists it, ``tripod pythia run`` has it answered. Where
its file was pruned, publish an event that names its range, and have that one answered.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

from tripod.projections.layout import CONFIG
from tripod.projections.pieces import CHECKPOINT_GONE
from tripod.projections.pythia.format import Span, answers_checkpoint, span_of
from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Outcome,
    not_applicable,
    outcome,
)
from tripod.verify.isolation import runs

NAME = "events-processed"
REQUIRED = False
NEEDS = (TABLES,)
HELP = "`tripod pythia run` has a review given; acknowledge what is settled (`tripod bus check`)"
_US = 1_000_000


class Unprocessed(NamedTuple):
    """A pending event: its entry, its file, the time in that name in µs, its type."""

    seq: int
    name: str
    us: int
    type: str


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    rows = evidence.query(
        "SELECT seq, name, us, type FROM events"
        " WHERE acked IS NULL AND (type = ?1 OR priority = 0) AND origin IS NULL"  # of this replica
        " ORDER BY type <> ?1, seq",
        runs.EVENT,
    )
    pending = [Unprocessed(*row) for row in rows]
    timeout = 0  # seconds, as the configuration says now
    for (settings,) in evidence.query("SELECT settings FROM inputs WHERE path = ?", CONFIG.path):
        value = json.loads(settings or "{}").get("ack_timeout")
        timeout = value if type(value) is int else 0
    published = evidence.query("SELECT count(*) FROM asked")[0][0]
    if not published and not pending:
        return not_applicable(NAME, "no event asks for an answer")
    found = chain(_late(evidence, pending, timeout), _unanswered(evidence), _deleted(evidence))
    seen = {"checkpoint events": published, "pending": len(pending), "ack-timeout": timeout}
    return outcome(NAME, found, seen)


def _late(evidence: Evidence, pending: list[Unprocessed], timeout: int) -> Iterator[Finding]:
    """Events that lie there too long: without a time-out, those after which another was published.

    The age is by the host's clock where the event has an entry of its own time.
    """
    newest = evidence.query("SELECT max(seq) FROM asked")[0][0] or 0
    now = _newest(evidence)
    for event in pending:
        begun = event.us if evidence.past(event.seq) else evidence.micros(event.seq)
        age = (now - (begun or now)) // _US
        if timeout and age > timeout and not _claimed(evidence, event, now):
            message = f"is pending for {age} s, ack-timeout is {timeout} s"
            yield _finding(evidence, event, message, warn=event.type != runs.EVENT, fault="late")
        elif not timeout and event.type == runs.EVENT and event.seq < newest:
            message = "is pending while a later one was published"
            yield _finding(evidence, event, message, warn=True)


def _deleted(evidence: Evidence) -> Iterator[Finding]:
    """Checkpoint events whose files others deleted while they were pending."""
    rows = evidence.query("SELECT seq FROM asked")
    names = {str(evidence.body(seq).get("name")): seq for (seq,) in rows}
    for conflict in evidence.found.conflicts:
        name = conflict.path.rpartition("/")[2]
        if conflict.detail == CHECKPOINT_GONE and name in names:
            one = Unprocessed(names[name], name, 0, runs.EVENT)
            message = "is pending and its file is gone; the next command writes it again"
            yield _finding(evidence, one, message, warn=True)
    for (seq,) in evidence.query("SELECT seq FROM displaced ORDER BY seq"):
        body = evidence.body(seq)
        name = str(body.get("path")).rpartition("/")[2]
        if body.get("reason") == CHECKPOINT_GONE and name in names:
            one = Unprocessed(names[name], name, 0, runs.EVENT)
            message = f"was deleted by another program, and written again (entry {seq})"
            yield _finding(evidence, one, message, warn=True)


def _unanswered(evidence: Evidence) -> Iterator[Finding]:
    """Checkpoint events that left the queue without an assessment."""
    rows = evidence.query(
        "SELECT a.seq FROM asked a LEFT JOIN events e ON e.seq = a.seq"
        " WHERE (e.seq IS NULL OR e.acked IS NOT NULL)"  # a pruned one was acknowledged
        " AND NOT EXISTS (SELECT 1 FROM assessments s WHERE s.event = a.seq AND NOT s.merged)"
    )
    left = {seq for (seq,) in rows}
    if not left:
        return
    posted = list(runs.assessments_of_runs(evidence))
    together = partial(runs.in_one_append, evidence)
    of_span: dict[Span | None, list[runs.Posted]] = defaultdict(list)
    for one in posted:
        of_span[span_of(one.said)].append(one)
    now = _newest(evidence)
    before = -1
    for event in runs.checkpoints_for_runs(evidence):
        # Most answers name the very range that was asked for: these are asked first.
        if (
            event.seq in left
            and _asks(evidence, event, before)
            and not any(
                answers_checkpoint(one, one.said, event, event.range, together)
                for some in (of_span.get(event.range, ()), posted)
                for one in some
            )
        ):
            name = str(evidence.body(event.seq).get("name"))
            unprocessed = Unprocessed(event.seq, name, 0, runs.EVENT)
            if not _claimed(evidence, unprocessed, now):
                message = "was acknowledged, and no assessment answers it"
                yield _finding(evidence, unprocessed, message, warn=evidence.past(event.seq))
        before = event.seq


def _asks(evidence: Evidence, event: runs.Checkpoint, before: int) -> bool:
    """Whether it asks for decisions that there are; of no range, for those since the one before."""
    if event.range is None:
        sql = "SELECT 1 FROM pieces WHERE id IS NOT NULL AND seq > ? AND seq < ? LIMIT 1"
        return bool(evidence.query(sql, before, event.seq))
    sql = "SELECT 1 FROM pieces WHERE id = ? LIMIT 1"
    return all(evidence.query(sql, id_) for id_ in event.range)


def _newest(evidence: Evidence) -> int:
    """The time of the newest entry in µs; without a ledger, the newest that the files claim."""
    if evidence.has_ledger:
        return evidence.micros(evidence.size - 1) or 0
    times = evidence.query("SELECT max(us) FROM events") + evidence.query(
        f"SELECT max(time) * {_US} FROM lines"
    )
    return max(time or 0 for (time,) in times)


def _claimed(evidence: Evidence, event: Unprocessed, now: int) -> bool:
    """Whether somebody holds it: a lease that still ran when the newest entry was made."""
    sql = "SELECT 1 FROM claims WHERE event = ? AND until_us > ?"
    return bool(evidence.query(sql, event.seq, now))


def _finding(
    evidence: Evidence, event: Unprocessed, message: str, *, warn: bool, fault: str = ""
) -> Finding:
    said = f"{event.name} ({event.type}) {message}"
    return evidence.finding(
        NAME, event.seq, said, HELP, severity="warning" if warn else None, fault=fault
    )
