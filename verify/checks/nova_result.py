"""The result of each Nova run is that of its final turn, and its end is named.

**What it proves.** A run is said to be over where its steps have led it to an end, with the outcome
that they give; its decision is the text of the final turn, its confidence what that turn knows, the
stated confidence what it states; cycles, turns and cost are those of the record. One checkpoint
names the entry that ended the run, by a name that stands for no other and is of the entry's minute.
A run that was cancelled has no decision. Where a run was to add its decision to a work effort, its
section of ``_work_efforts/<effort>/decisions.md`` is what the ledger gives; that file is the
project's, so a section that is not there is a warning, and what others wrote in it, or a file that
is not there, is not looked at. Not that the decision is right, nor that anybody follows it.

**Why it matters.** The result is what is read and followed. A decision that was reworded after the
panel, or a confidence that was rounded up, would be believed on the strength of the whole run.

**What a finding looks like.** ``tea: its decision is not that of the final turn``; ``tea: its
confidence is 0.99, and by the record it is 0.9``; ``tea: it is said to be over (decided), and it is
critiquing``; ``tea: its section in _work_efforts/WE-7/decisions.md is not what the ledger gives``;
``tea: CKPT-261121-2130 stands for entry 40, and the run ended at entry 52``.

**What to do.** The final turn (``tripod nova show``) has what was decided. Of a work effort's file
take the section out, and ``tripod nova resume RUN`` adds it again as it has to be: it was edited,
or a text in it was redacted since. *Cannot tell*: the decision, or the final turn, was erased.
"""

from __future__ import annotations

from collections.abc import Iterator

from tripod.projections.nova.files import stand_of_section
from tripod.projections.nova.tables import work_effort_section_of
from tripod.verify.check import TABLES, Evidence, Finding, Outcome
from tripod.verify.nova.runs import RESULT, judge_walked_runs

NAME = RESULT
REQUIRED = True
NEEDS = (TABLES,)
HELP = "the final turn has what was decided: `tripod nova show`"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    kinds = {"results": "nova.finalized", "checkpoints": "checkpoint.named"}
    return judge_walked_runs(evidence, NAME, HELP, kinds, also=_efforts(evidence))


def _efforts(evidence: Evidence) -> Iterator[Finding]:
    """Sections in the decisions of work efforts that are not there, or are not as they should."""
    for run, ended in evidence.query("SELECT run, ended FROM nova_runs WHERE ended IS NOT NULL"):
        try:
            found = work_effort_section_of(evidence.source, run)
        except evidence.unreadable:
            continue  # the walk says so
        data = None if found is None else evidence.file(found[0])
        if found is None or (data is None and not evidence.is_there(found[0], odd=True)):
            continue
        stand = "odd" if data is None else stand_of_section(data, found[1])
        again = f"`tripod nova resume {run}` adds it"
        if stand == "odd":
            message = f"{run}: {found[0]} is no plain file, lies behind a link, or is too large"
            yield evidence.finding(NAME, ended, message, f"put a file there; {again}")
        elif stand == "absent":
            message = f"{run}: {found[0]} has no section of it (another branch?)"
            yield evidence.finding(NAME, ended, message, again, severity="warning")
        elif stand != "there":
            message = f"{run}: its section in {found[0]} is not what the ledger gives"
            yield evidence.finding(NAME, ended, message, f"take it out; {again} again")
