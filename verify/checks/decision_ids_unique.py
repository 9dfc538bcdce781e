"""No two decisions have the same id.

**What it proves.** Each ``D-<second>`` in the log means one decision.

**Why it matters.** References, supersessions and assessments name decisions by id. The original
tool takes the clock's second and looks at nothing: 600 decisions in 1.5 seconds got three ids.
``tripod scribe log`` takes the smallest free second instead.

**What a finding looks like.** ``D-1707753600 stands for 2 decisions``, with the entries and titles.

**What to do.** All of them are kept. Say in a new decision which one is meant. Duplicates that
were there before adoption are named as warnings; of a team without a ledger they are failures.
"""

from __future__ import annotations

from collections.abc import Iterator

from tripod.verify.check import TABLES, Evidence, Finding, Outcome, not_applicable, outcome, shorten

NAME = "decision-ids-unique"
REQUIRED = False
NEEDS = (TABLES,)
FEW = 6  # decisions of one id whose titles are shown
HELP = "all of them are kept; say in a new decision which one is meant"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    decisions = evidence.query("SELECT count(*) FROM pieces WHERE id IS NOT NULL")[0][0]
    if not decisions:
        return not_applicable(NAME, "no decision was logged")
    return outcome(NAME, _twice(evidence), {"decisions": decisions})


def _twice(evidence: Evidence) -> Iterator[Finding]:
    for id_, count, last in evidence.query(
        "SELECT id, count(*), max(seq) FROM pieces WHERE id IS NOT NULL GROUP BY id"
        " HAVING count(*) > 1 ORDER BY max(seq)"
    ):
        sql = "SELECT seq, title FROM pieces WHERE id = ? ORDER BY seq LIMIT ?"
        same = evidence.query(sql, id_, FEW)
        shown = tuple(f"{evidence.where(seq)}: {shorten(title)}" for seq, title in same)
        message = f"{id_} stands for {count} decisions"
        yield evidence.finding(NAME, last, message, HELP, shown=shown)
