"""A Nova run has converged exactly where its last syntheses differ by less than epsilon.

**What it proves.** Before each gate the epistemic states of the last syntheses are compared again,
as many as the window asks for: where each step changed both figures by less than the epsilon of the
run's beginning, the entry ``nova.converged`` stands there and names these syntheses; elsewhere it
does not. Not that the panel agrees: two figures stood still.

**Why it matters.** A run that has converged begins no further cycle. A convergence that is claimed
too early cuts the work short, and one that is left out lets a panel turn in circles.

**What a finding looks like.** ``tea: cycle 2 is said to have converged, and its last syntheses
differ by more, or are too few``; ``tea: nova.converged had to come before it, and is missing``;
``tea: cycle 3: its syntheses is [4, 9, 12], and by the record it is [5, 9, 12]``.

**What to do.** Compare the syntheses that the entry names. What the run did after it rests on it.
"""

from __future__ import annotations

from tripod.verify.check import TABLES, Evidence, Outcome
from tripod.verify.nova.runs import CONVERGENCE, judge_walked_runs

NAME = CONVERGENCE
REQUIRED = True
NEEDS = (TABLES,)
HELP = "compare the epistemic states of the last syntheses; `tripod show` has them"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    return judge_walked_runs(evidence, NAME, HELP, {"converged": "nova.converged"})
