"""Each turn of a Nova run was due, has its number, and is what its agent answered.

**What it proves.** The turns of each run follow the table of steps: the coordinator unpacks, the
experts that it named speak in its order, the coordinator synthesises, the critic criticises, the
coordinator revises and decides. No persona speaks twice in a cycle, the numbers are 1 to n without
a gap, and nothing stands before the beginning. Each turn is the answer of an agent's run with the
role ``nova`` that was ordered for this very turn and had ended before: its content, the fields that
were read from it, the form that it was read in, its epistemic state and its cost are computed again
from the recorded output. A turn that was missed is one of which all tries had failed; the tries are
numbered without a gap, and one whose agent was told to end counts if it had answered. How an agent
is said to have ended (its status, the words of its problem, its cost) is what follows from its exit
code, its signal, its time and its output; an output that was not kept was too much to keep. No
agent was ordered for a turn that was never due. A fork goes on from a run that exists, and answers
as that did where it was asked the same. Not that the agent was the model that its order names, that
one which is said to be lost was lost, nor that the answer is good.

**Why it matters.** A turn that nobody gave, one that was reworded after the answer, or an expert
that was left out is how a panel comes to a decision that its members did not reach.

**What a finding looks like.** ``tea: performance (expert, cycle 1), and security (expert, cycle 1)
was due``; ``tea: dce (synthesis, cycle 1): content, parsed not as its agents' answers give it``;
``tea: cae (critique, cycle 1): no run 3f0c2a81 of an agent with the role nova was for this turn``;
``tea: security (expert, cycle 1) has the number 5, where 3 follows``; ``tea: dce (final, cycle 1):
run 3f0c2a81 is said to have ended as bad_output, and by its output that is ok``; ``tea: run
3f0c2a81 was ordered for 1-expert-cost, a turn that was never due``; ``tea-2: it goes on from turn
9 of tea, which had 8 turns``.

**What to do.** ``tripod show`` has the entry, and the entry ``agent.ended`` of its run has what was
answered. Take the run's decision as nobody's, and have the question answered by a new run. *Cannot
tell*: a text was erased or not kept, so that it cannot be compared, or the words of a problem are
those of another version or of a system that is not known here.
"""

from __future__ import annotations

from tripod.verify.check import TABLES, Evidence, Outcome
from tripod.verify.nova.runs import ORDER, judge_walked_runs

NAME = ORDER
REQUIRED = True
NEEDS = (TABLES,)
HELP = "`tripod show` has the entry, and `agent.ended` of its run what was answered"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    kinds = {"turns": "nova.turn.recorded", "missed": "nova.turn.missed"}
    return judge_walked_runs(evidence, NAME, HELP, kinds)
