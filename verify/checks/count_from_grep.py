"""``grep -c "^### D-"`` on the decision log gives the number of decisions in the ledger.

**What it proves.** In each decision log and each archive of one, the lines that begin with
``### D-`` are as many as the decisions that the ledger has in that file: nothing in a title, a
rationale or a text put in by hand counts as one.

**Why it matters.** The count decides when Pythia is asked for a review, and people and scripts
take it with grep. The seeds: the count comes from the file, not from anybody's memory.

**What a finding looks like.** ``scribe/live-log.md: grep counts 47 headings in the file, there are
46 decisions``; beside it each heading that is no decision, by its entry.

**What to do.** Look at the named heading. A malformed one that somebody typed stays in the log (it
only grows); log the decision anew with ``tripod scribe log``. One that stood there before adoption
is told as a warning.
"""

from __future__ import annotations

from collections import Counter

from tripod.projections.decisions.format import count_decision_headings
from tripod.projections.decisions.tables import LOG
from tripod.projections.pieces import OLDER_STATE
from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Findings,
    Outcome,
    Severity,
    fault_of_texts,
    not_applicable,
    outcome,
    shorten,
)

NAME = "count-from-grep"
REQUIRED = True
NEEDS = (TABLES,)
HELP = "look at the named headings; log a decision that was meant with `tripod scribe log`"
_DECISIONS = "SELECT file, count(*) FROM pieces WHERE id IS NOT NULL GROUP BY file"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    decisions: dict[str, int] = dict(evidence.query(_DECISIONS))
    files = sorted({*LOG.paths(evidence.source), *(f"{LOG.folder}/{name}" for name in decisions)})
    if not files:
        return not_applicable(NAME, "there is no decision log")
    found = Findings()
    headings = 0
    older = {one.path for one in evidence.found.conflicts if one.what == OLDER_STATE}
    for path in files:
        counts = [("what the ledger renders", count_decision_headings(evidence.rendered(path)))]
        if evidence.root is not None and path not in older:  # `drift` names these
            counts.insert(0, ("the file", count_decision_headings(evidence.file(path) or b"")))
        headings += counts[0][1]
        name = path.removeprefix(f"{LOG.folder}/")
        there = decisions.get(name, 0)
        if all(count == there for _, count in counts):
            continue
        smuggled = Findings()
        past = _smuggled(evidence, name, smuggled)
        # What the past alone explains fails nothing: it stands in the log for good.
        what, count = next((one for one in counts if one[1] != there + past), counts[0])
        message = f"grep counts {count} headings in {what}, there are {there} decisions"
        excused = count == there + past
        severity: Severity = "warning" if excused else "failure"
        fault = _fault(evidence, path)
        found.add(
            Finding(NAME, message, path, (), HELP, severity, before_adoption=excused, fault=fault)
        )
        found.join(smuggled)
    seen = {"decisions": sum(decisions.values()), "files": len(files), "headings": headings}
    return outcome(NAME, found, seen)


def _fault(evidence: Evidence, path: str) -> str | None:
    """Which headings stand in a file, or in what is rendered, that are those of no decision."""
    rows = evidence.query(
        "SELECT id FROM pieces WHERE file = ? AND id IS NOT NULL",
        path.removeprefix(f"{LOG.folder}/"),
    )
    ours = Counter(str(id_).encode() for (id_,) in rows)
    there = evidence.file(path)
    if there is None and evidence.root is not None and evidence.is_there(path):
        return None
    odd = []
    for data in (there or b"", evidence.rendered(path)):
        lines = [line for line in data.split(b"\n") if line.startswith(b"### D-")]
        ids = Counter(line[4:].split(None, 1)[0].rstrip(b":") for line in lines)
        named = {id_ for id_, number in (ids - ours).items() if number}
        odd += [line for line in lines if line[4:].split(None, 1)[0].rstrip(b":") in named]
        odd += [b"no heading of " + id_ for id_ in sorted((ours - ids).elements())]
        odd.append(b"")
    return fault_of_texts(*(line.decode("utf-8", "backslashreplace") for line in odd))


def _smuggled(evidence: Evidence, name: str, found: Findings) -> int:
    """Add pieces of a file that do not hold exactly one heading for one decision.

    Gives how many headings more than decisions the past has.
    """
    past = 0
    sql = "SELECT seq, id FROM pieces WHERE file = ? ORDER BY seq"
    for seq, id_ in evidence.source.db.execute(sql, (name,)):
        observed = evidence.body(seq).get("observed")
        if not isinstance(observed, dict) or "raw" not in observed:
            continue  # a piece of our own rendering has one heading
        try:
            raw = evidence.source.content(observed["raw"])
        except evidence.unreadable:
            continue
        count = count_decision_headings(raw)
        if count == (id_ is not None):
            continue
        adopted = evidence.adopted(seq)
        past += (count - (id_ is not None)) if adopted else 0
        what = f"{id_} holds {count} headings" if id_ else "a heading that is no decision"
        lines = [line for line in raw.split(b"\n") if line.startswith(b"### D-")]
        shown = tuple(shorten(line.decode("utf-8", "replace")) for line in lines[:6])
        found.add(evidence.finding(NAME, seq, what, HELP, shown=shown))
    return past
