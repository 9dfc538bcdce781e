"""The class of each critique of a Nova run follows from the issues that the critic named.

**What it proves.** After each critique stands one class, of that critique: ``critical`` if one of
its issues is critical, else ``minor`` if there is an issue, else ``solid``. What the critic calls
the whole does not count. Not that the critic saw all that is wrong.

**Why it matters.** The class decides whether the experts are asked again, the proposal is revised,
or the decision is made. A critical flaw that is called minor is a critique that nobody answered.

**What a finding looks like.** ``tea: cycle 1: its decision is minor, and by the record it is
critical``; ``tea: nova.critique.decided had to come before it, and is missing``.

**What to do.** Read the critique in the entry that is named. A decision that was made in spite of a
critical flaw is for a person. *Cannot tell*: the critique was erased.
"""

from __future__ import annotations

from tripod.verify.check import TABLES, Evidence, Outcome
from tripod.verify.nova.runs import CRITIQUE, judge_walked_runs

NAME = CRITIQUE
REQUIRED = True
NEEDS = (TABLES,)
HELP = "read the critique that it names; `tripod show` has it"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    return judge_walked_runs(evidence, NAME, HELP, {"critiques": "nova.critique.decided"})
