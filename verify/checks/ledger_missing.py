"""There is a ledger, and it holds something.

**What it proves.** The database is there, is a ledger, and holds at least one entry.

**Why it matters.** The plainest way to get rid of a record is to delete it: files alone then look
like those of a team that never had one. An empty ledger proves nothing and must never pass.

**What a finding looks like.** ``the ledger holds no entry``; ``no ledger.db, but there was one:
counts.json stands in the team directory``. Also a pin or a commit that remembers a head of it
tells that there was one. (A clone that has the record, ``.nbs/record``, is judged by that.)

**What to do.** ``tripod restore`` takes this replica's own record from the refs of the repository;
``tripod restore FILE`` a backup. A record of an earlier version, ``.nbs/record``, is taken by
``tripod init``. If the team never had a ledger, say so with
``--no-ledger``, or begin one with ``tripod init``.
"""

from __future__ import annotations

from tripod.ledger import DATABASE
from tripod.verify.check import Evidence, Finding, Outcome, cannot_tell, not_applicable, outcome

NAME = "ledger-missing"
REQUIRED = True
NEEDS = ()
ACCEPTABLE = False
HELP = "`tripod restore` puts this replica's own record, or a backup, in its place"


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    if evidence.has_ledger:
        found = []
        if not evidence.rows:
            found = [Finding(NAME, "the ledger holds no entry", evidence.what, help=HELP)]
        return outcome(NAME, found, {"entries": evidence.rows})
    if evidence.traces:
        message = f"no {DATABASE}, but there was one: {evidence.traces[0]}"
        finding = Finding(NAME, message, evidence.what, evidence.traces[1:], HELP)
        return outcome(NAME, [finding], {"traces": len(evidence.traces)})
    if evidence.no_ledger:
        return not_applicable(NAME, "the team is said to have no ledger")
    reason = (
        "there is no ledger, and nothing shows that there was one; "
        "give --no-ledger if the team has none, or begin one with `tripod init`"
    )
    return cannot_tell(NAME, reason)
