"""The result of each Nova run is that of its final turn, and its end is named.

**What it proves.** A run is said to be over where its steps have led it to an end, with the outcome
that they give; its decision is the text of the final turn, its confidence what that turn knows, the
stated confidence what it states; cycles, turns and cost are those of the record. One checkpoint
names the entry that ended the run, by a name that stands for no other and is of the entry's minute.
A run that was cancelled has no decision. Not that the decision is right, nor that anybody follows
it.

**Why it matters.** The result is what is read and followed. A decision that was reworded after the
panel, or a confidence that was rounded up, would be believed on the strength of the whole run.

**What a finding looks like.** ``tea: its decision is not that of the final turn``; ``tea: its
confidence is 0.99, and by the record it is 0.9``; ``tea: it is said to be over (decided), and it is
critiquing``; ``tea: CKPT-261121-2130 stands for entry 40, and the run ended at entry 52``.

**What to do.** The final turn (``tripod nova show``) has what was decided. *Cannot tell*: the
decision, or the final turn, was erased.
"""

from __future__ import annotations

from tripod.verify.check import TABLES, Evidence, Outcome
from tripod.verify.nova.runs import RESULT, judge_walked_runs

NAME = RESULT
REQUIRED = True
NEEDS = (TABLES,)
HELP = "the final turn has what was decided: `tripod nova show`"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    kinds = {"results": "nova.finalized", "checkpoints": "checkpoint.named"}
    return judge_walked_runs(evidence, NAME, HELP, kinds)
