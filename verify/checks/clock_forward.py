"""No entry is dated before the entry in front of it.

**What it proves.** The times ``at``, which this host's clock gave, never go back along the ledger.
The writer repeats the earlier time where its clock went back, so a ledger of ours never does. Where
a restored copy goes on under another name (``ledger.forked-from``) its clock begins anew.

**Why it matters.** An entry that was slipped in, or dated back, betrays itself by its neighbours.
The host's clock remains a claim: this proves an order, not a time.

**What a finding looks like.** ``dated 2026-11-21T20:17:50.123456Z, before the entry in front of
it``.

**What to do.** Look at both entries: one of the two was not written by this project's writer.
"""

from __future__ import annotations

from tripod.verify.check import ROWS, Evidence, Outcome

NAME = "clock-forward"
REQUIRED = True
NEEDS = (ROWS,)
ACCEPTABLE = False
HELP = "look at both entries: one of them was not written by this project's writer"


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    return evidence.ledger_outcome(NAME, "entries")


def clock_problem(at: str, before: str) -> str | None:
    """Whether ``at`` is not before the time of the entry in front."""
    if at >= before:
        return None
    return f"dated {at}, before the entry in front of it ({before})"
