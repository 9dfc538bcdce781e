"""No Nova run goes on beyond its cycles or its budget without a person.

**What it proves.** No cycle begins beyond the rounds of the run and those that people granted; no
turn was ordered when the budget was used up and no person had allowed more; a person is asked where
the rules ask for one, for the reason that they give, and told the figures that the record gives
(the last synthesis, the dissenters, the open critical issues, what was spent); a person decides
only where one is asked, and neither the protocol nor a persona by its name. Not which person it
was: the actor of the entry is a claim unless it is signed.

**Why it matters.** A panel that does not agree must not go on until it does by itself, and what it
may spend was somebody's decision.

**What a finding looks like.** ``tea: security (expert, cycle 6), and a person had to decide
before``; ``tea: dce (synthesis, cycle 1) was ordered after the budget was used up at entry 31, and
no person allowed more``; ``tea: cycle 2: its critical is 0, and by the record it is 1``; ``tea: a
person decided (accept), and was not asked``.

**What to do.** Ask the person who is said to have decided. What a run did without one is for a
person to judge now. *Cannot tell*: the synthesis or the critique that is counted was erased.
"""

from __future__ import annotations

from tripod.verify.check import TABLES, Evidence, Outcome
from tripod.verify.nova.runs import ROUNDS, judge_walked_runs

NAME = ROUNDS
REQUIRED = True
NEEDS = (TABLES,)
HELP = "ask the person who is said to have decided; `tripod show` has the entries"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    kinds = {"escalations": "nova.escalated", "decisions of people": "human.decided"}
    return judge_walked_runs(evidence, NAME, HELP, kinds)
