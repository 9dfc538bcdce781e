"""Where an interval of decisions was reached, Pythia's review was asked for.

**What it proves.** For each decision whose number in its log is a multiple of ``pythia-interval``,
as the configuration stood when it was logged, there is a ``pythia-checkpoint`` event of its own.
They are matched by the number or the last decision that the event names, else by order: an event
between two such decisions answers the first. One that names decisions which are not in the log asks
for nothing. 0 switches the interval off. A decision that another program logged is given until the
next decision of its log.

Each replica of a team counts its own decisions. Where as many as an interval were merged here or
made here before, and no replica's checkpoint covers them, the pull that merged them asked for one.

**Why it matters.** The seeds: decisions grow and no checkpoint comes, so that nobody ever
challenges them. With the original tools the event has no consumer.

**What a finding looks like.** ``decision 40 (D-1795294658) reached the interval of 20, and no
pythia-checkpoint event followed``. Of several replicas it is a warning: ``30 decisions of 3
replicas are covered by no replica's checkpoint, and the interval is 20``; the next pull asks.

**What to do.** Have the review now: publish the event by hand, with the range in its payload
(``Checkpoint at decision 40. Decisions D-… through D-….``). Log decisions with ``tripod scribe
log``, which publishes it in the same act. Of the past that was taken in at adoption, whose
configuration then nobody recorded, it is told as a warning.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

from tripod.projections.bus.format import Config
from tripod.projections.pythia.checkpoint import uncovered_decisions
from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome
from tripod.verify.isolation.runs import EVENT, Checkpoint, checkpoints_for_runs

NAME = "pythia-fires"
REQUIRED = False
NEEDS = (TABLES,)
HELP = f"publish a `{EVENT}` event with that range; `tripod scribe log` does it by itself"
_END = 2**62


@dataclass
class DueDecision:
    """A decision that reached the interval of its log, and whether a review was asked for."""

    seq: int
    id: str
    number: int
    log: str
    interval: int
    asked: bool = False


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    # Each replica counts its own.
    decisions = evidence.query(
        "SELECT seq, id, number - theirs, log FROM (SELECT *, count(made) OVER"
        " (PARTITION BY log ORDER BY seq) AS theirs FROM pieces)"
        " WHERE id IS NOT NULL AND number IS NOT NULL AND made IS NULL ORDER BY seq"
    )
    intervals = _Intervals(evidence)
    together = _together(evidence, intervals)
    if not decisions and together is None:
        return not_applicable(NAME, "no decision was logged")
    due = []
    for seq, id_, number, log in decisions:
        interval = intervals.at(seq)
        if interval and number % interval == 0:
            due.append(DueDecision(seq, id_, number, log, interval))
    if not due and together is None:
        reason = "no interval of decisions was reached, or it is off"
        return not_applicable(NAME, reason)
    logs = {id_: log for _, id_, _, log in decisions}
    events = checkpoints_for_runs(evidence)
    _match(due, [event for event in events if logs.keys() >= set(event.range or ())], logs)
    missing = [one for one in due if not one.asked]
    # The event of a decision that another program logged is published by hand, a moment later.
    newest = {log: seq for seq, _, _, log in decisions}
    given = {
        one.seq
        for one in missing
        if one.seq == newest[one.log] and "observed" in evidence.body(one.seq)
    }
    found = [
        evidence.finding(
            NAME,
            one.seq,
            f"decision {one.number} ({one.id}) reached the interval of {one.interval}, and no "
            f"{EVENT} event followed",
            HELP,
        )
        for one in missing
        if one.seq not in given
    ]
    seen = {"intervals reached": len(due), "checkpoint events": len(events)}
    if given:
        seen["not yet judged"] = len(given)
    if together is not None:
        found.append(together)
    return outcome(NAME, found, seen)


def _together(evidence: Evidence, intervals: _Intervals) -> Finding | None:
    """What is wrong where the decisions of several replicas reached an interval together."""
    ((merged,),) = evidence.query("SELECT max(merged) FROM peers")
    if merged is None:
        return None
    interval = intervals.at(merged)
    try:
        left = uncovered_decisions(evidence.source, merged) if interval else []
    except evidence.unreadable:
        return None  # `kinds-known` and `bodies-present` name it
    if not interval or len(left) < interval:
        return None
    replicas = len({one.origin for one in left})
    message = (
        f"{len(left)} decisions of {replicas} replicas are covered by no replica's checkpoint, and "
        f"the interval is {interval}"
    )
    help_ = "`tripod pull` asks for the review, once it takes a decision or one was made here"
    return evidence.finding(NAME, left[-1].seq, message, help_, severity="warning")


class _Intervals:
    """What ``pythia-interval`` was at any entry; 0: off, or not readable."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.seqs = [seq for (seq,) in evidence.query("SELECT seq FROM configured ORDER BY seq")]
        settings = (evidence.body(seq).get("settings") for seq in self.seqs)
        values = (one.get("pythia_interval") if isinstance(one, dict) else 0 for one in settings)
        self.values = [value if type(value) is int else 0 for value in values]

    def at(self, seq: int) -> int:
        """The interval when an entry was made; of the past, the one that was taken in with it."""
        if self.evidence.past(seq):
            adopted = self.evidence.adoption
            seq = _END if not self.evidence.has_ledger or adopted is None else adopted
        place = bisect_right(self.seqs, seq)
        return self.values[place - 1] if place else Config().pythia_interval


def _match(due: list[DueDecision], events: list[Checkpoint], logs: dict[str, str]) -> None:
    """Say of each decision whether it was answered; one event answers one decision.

    Of what was observed, nothing but claims tells the order, and an id may be ahead of its second:
    there the name alone counts.
    """
    by_number = {(one.log, one.number): one for one in due}
    by_id = {one.id: one for one in due}
    for event in events:
        first, last = event.range or ("", "")
        log = logs.get(last, "") if logs.get(first) == logs.get(last) else ""
        named = by_number.get((log, event.count or 0)) or by_id.get(last)
        if named is not None and not named.asked and (event.observed or event.seq > named.seq):
            named.asked = event.used = True
    rest = deque(due)
    before: dict[str, DueDecision] = {}  # of each log the last that was due when the event came
    for event in events:
        while rest and rest[0].seq <= event.seq:
            one = rest.popleft()
            before[one.log] = one
        free = [] if event.used else [one for one in before.values() if not one.asked]
        if free:
            max(free, key=lambda one: one.seq).asked = event.used = True
