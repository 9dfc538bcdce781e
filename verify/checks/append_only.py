"""The decision log only grew: nothing that it ever said was changed or removed.

**What it proves.** What the ledger holds of the log is a prefix of what ``scribe/log.md`` and its
archives show, byte for byte, and the decisions in the ledger are numbered 1, 2, 3, ... in the
order in which they were logged.

**Why it matters.** A decision that can be reworded afterwards is no decision. The seeds: the log is
append-only; a change of status is a new entry that refers to the old one.

**What a finding looks like.** ``it differs from the ledger at line 31, in D-1707753600``, with both
versions; ``the log's file is gone``; ``D-1707753600 has number 7 where 6 follows``.

**What to do.** ``tripod rebuild`` puts the ledger's version back and keeps the edited bytes as an
entry. A log without a ledger has nothing to be held against: then this check sees the numbering
alone.
"""

from __future__ import annotations

from projections import LOG
from verify.evidence import Evidence
from verify.excerpt import difference
from verify.finding import Finding, Outcome, not_applicable, outcome

__all__ = ["NAME", "REQUIRED", "judge"]

NAME = "append-only"
REQUIRED = True
HELP = "`tripod rebuild` puts back what the ledger holds, and keeps these bytes as an entry"


def judge(evidence: Evidence) -> Outcome:
    """See the module."""
    logs = evidence.query("SELECT count(*) FROM logs")[0][0]
    pieces = evidence.query("SELECT count(*) FROM pieces")[0][0]
    if not logs and not pieces:
        return not_applicable(NAME, "there is no decision log", required=REQUIRED)
    found = [*_edited(evidence), *_misnumbered(evidence)]
    return outcome(NAME, found, {"pieces": pieces, "log files": logs}, required=REQUIRED)


def _edited(evidence: Evidence) -> list[Finding]:
    found = []
    for conflict in evidence.team.found.conflicts:
        if conflict.path.startswith(f"{LOG.folder}/"):
            shown = difference(evidence.rendered(conflict.path), evidence.file(conflict.path))
            message = f"{conflict.what}: {conflict.detail}"
            found.append(Finding(NAME, message, conflict.path, shown, HELP))
    return found


def _misnumbered(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    follows = 1
    for seq, id_, number in evidence.source.db.execute(
        "SELECT seq, id, number FROM pieces WHERE id IS NOT NULL ORDER BY seq"
    ):
        if number != follows and len(found) < 20:
            message = f"{id_} has number {number} where {follows} follows"
            help_ = "a decision was left out or slipped in: compare with a copy of the ledger"
            found.append(Finding(NAME, message, evidence.where(seq), (), help_, seq=seq))
        follows = number + 1
    return found
