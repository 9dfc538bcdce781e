"""Gathers what a page shows of a team, while its evidence is open: plain values, no markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tripod.report.markup import Clipped, clip
from tripod.verify.check import Report
from tripod.verify.evidence import OpenEvidence
from tripod.verify.listing import ListedEntry, ListingFilter, listed_entries

TEXT = 2_000
"""Characters of a message that the log of a page has."""
RATIONALE, LONG = 1_000, 8_000
"""Characters of a rationale, and of an assessment."""
DECISIONS = 5_000
"""The newest decisions that a page lists."""
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NO_DAY = "without a date"


class LogEntry(NamedTuple):
    """An entry as the log of a page shows it: ``day`` and ``time`` are of ``at``, in UTC.

    ``last``: it stands for all entries up to that one, which cannot be read.
    """

    seq: int
    at: str
    day: str
    time: str
    actor: str
    kind: str
    mark: str
    text: Clipped
    problem: str
    last: int | None


class DecisionFacts(NamedTuple):
    """A decision; ``after`` has the ids of decisions that refer to it as superseded."""

    seq: int
    id: str
    day: str
    title: str
    status: str
    tags: tuple[str, ...]
    participants: str
    chat_ref: str
    rationale: Clipped
    supersedes: str
    after: tuple[str, ...]


class AssessmentFacts(NamedTuple):
    """An assessment of Pythia; ``level`` says how far its run was kept from the chat."""

    seq: int
    day: str
    first: str
    last: str
    confidence: str
    origin: str
    level: str
    text: Clipped


@dataclass
class TeamFacts:
    """What a page shows of one ledger.

    ``tail`` is the first entry that no head from outside vouches for; None where all are, or where
    nothing is known of it. ``decision_count`` counts those that are not listed, too; None: the
    entries were not folded, so that neither decisions nor assessments are known.
    """

    report: Report
    entries: list[LogEntry] = field(default_factory=list)
    decisions: list[DecisionFacts] = field(default_factory=list)
    decision_count: int | None = None
    assessments: list[AssessmentFacts] = field(default_factory=list)
    tail: int | None = None
    has_ledger: bool = False
    has_bodies: bool = True


def gather_facts(evidence: OpenEvidence, report: Report) -> TeamFacts:
    """What a page shows of evidence that was judged; what cannot be read is left out."""
    facts = TeamFacts(report, has_ledger=evidence.has_ledger, has_bodies=evidence.database.bodies)
    ledger = evidence.ledger
    if ledger is not None and not (evidence.problem and evidence.scan is None):
        ledger.bodies = evidence.database.bodies
        found = listed_entries(ledger, ListingFilter(), newest_first=False)
        facts.entries = list(map(_log_entry, found))
    if report.anchored is not None and report.anchored.tail:
        facts.tail = max((size for size, _ in report.anchored.sizes.values()), default=0)
    if evidence.folded is not None:
        facts.decisions, facts.decision_count = _decisions(evidence)
        facts.assessments = list(_assessments(evidence))
    return facts


def _log_entry(one: ListedEntry) -> LogEntry:
    day = one.at[:10]
    return LogEntry(
        one.seq,
        one.at,
        day if _DAY.fullmatch(day) else _NO_DAY,
        one.at[11:19],
        one.actor,
        one.kind,
        one.mark,
        clip(one.text, TEXT),
        one.problem,
        one.last,
    )


def _decisions(evidence: OpenEvidence) -> tuple[list[DecisionFacts], int]:
    """The newest decisions, the newest first, and how many there are."""
    count = evidence.query("SELECT count(*) FROM pieces WHERE id IS NOT NULL")[0][0]
    sql = "SELECT supersedes, id FROM pieces WHERE supersedes IS NOT NULL ORDER BY seq"
    after: dict[str, list[str]] = {}
    for old, new in evidence.query(sql):
        after.setdefault(str(old), []).append(str(new))
    sql = "SELECT seq, id, title, status, supersedes FROM pieces WHERE id IS NOT NULL"
    rows = evidence.query(f"{sql} ORDER BY seq DESC LIMIT ?", DECISIONS)
    found = []
    for seq, id_, title, status, supersedes in rows:
        body = evidence.body(seq)
        tags = tuple(filter(None, (tag.strip() for tag in _words(body, "risk_tags").split(","))))
        found.append(
            DecisionFacts(
                seq,
                str(id_),
                evidence.at(seq)[:10],
                str(title or ""),
                str(status or ""),
                () if tags == ("none",) else tags,
                _words(body, "participants"),
                _words(body, "chat_ref"),
                clip(_words(body, "rationale"), RATIONALE),
                str(supersedes or ""),
                tuple(after.get(str(id_), ())),
            )
        )
    return found, count


def _assessments(evidence: OpenEvidence) -> Iterator[AssessmentFacts]:
    """The assessments, the newest first."""
    sql = (
        "SELECT a.seq, a.origin, i.level FROM assessments a"
        " LEFT JOIN isolations i ON i.spawn = a.spawn ORDER BY a.seq DESC"
    )
    for seq, origin, level in evidence.query(sql):
        body = evidence.body(seq)
        yield AssessmentFacts(
            seq,
            evidence.at(seq)[:10],
            _words(body, "first"),
            _words(body, "last"),
            _words(body, "confidence"),
            str(origin),
            str(level or ""),
            clip(evidence.text(seq, "content") or "", LONG),
        )


def _words(body: dict[str, Any], name: str) -> str:
    """A field of a body as text; '' where it is not there, or something else."""
    value = body.get(name)
    return value if type(value) is str else ""
