"""Each gate of a Nova run lets through what its threshold allows, by the recorded uncertainty.

**What it proves.** After each synthesis stands one gate. Its uncertainty is that of the synthesis
which it names, its threshold that of the run's beginning, and its decision is computed again:
``investigate`` strictly above the threshold, else ``proceed``. Not that the uncertainty is honest:
the coordinator states it.

**Why it matters.** The gate is what keeps a panel at a question that it has not understood. A gate
that was talked past, or judged by another threshold, makes the rest a formality.

**What a finding looks like.** ``tea: cycle 1: its decision is proceed, and by the record it is
investigate``; ``tea: cycle 2: its threshold is 0.9, and by the record it is 0.35``; ``tea:
nova.gate.decided had to come before it, and is missing``.

**What to do.** Compare the gate with the synthesis in the entry that it names. Nothing that came
after a gate which should have been shut counts: ask the question again.
"""

from __future__ import annotations

from tripod.verify.check import TABLES, Evidence, Outcome
from tripod.verify.nova.runs import GATE, judge_walked_runs

NAME = GATE
REQUIRED = True
NEEDS = (TABLES,)
HELP = "hold the gate against the synthesis that it names; `tripod show` has both"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    return judge_walked_runs(evidence, NAME, HELP, {"gates": "nova.gate.decided"})
