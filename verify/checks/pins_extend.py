"""Every head that is remembered outside is the beginning of this ledger.

**What it proves.** For each head that a pin file, a committed seal, a witness or another receipt
remembers: the ledger has at least as many entries, and its first so many have that root. What
such a head covers was not changed, removed or reordered since, whoever holds the disk and the
key. It also holds the ledger against the policy: the least level, the longest tail that no head
covers.

**Why it matters.** A ledger that was made anew from end to end agrees with itself. So does one that
was cut off, and a backup that was put back. Only something outside can tell, if it is asked.

**What a finding looks like.** Each begins with its own word. ``rollback: it remembers 51 entries,
and the ledger has 40``; ``fork: it remembers root 91bc… of the first 51 entries, and here they
have 07aa…``; ``unknown log: it remembers example.com/a, and this ledger is example.com/b``;
``unsealed: this ledger was sealed once, and holds no seal``; ``stale anchor: the tail behind the
newest head is 90000 seconds, and the policy allows 86400``; ``unanchored: the policy asks for
PINNED``. A seal in git is named by its commit. One that only another branch holds may be newer
than the copy that is judged: then a rollback is a warning.

**What to do.** Do not append to this ledger, and keep it as it is. Find the copy that the head
comes from: `git log` names the commit's author, a witness has its own. The oldest head that
disagrees and the newest that agrees bound when it happened.
"""

from __future__ import annotations

from verify.evidence import Evidence
from verify.finding import Coverage, Outcome, cannot_tell, not_applicable, outcome

__all__ = ["NAME", "REQUIRED", "judge"]

NAME = "pins-extend"
REQUIRED = True


def judge(evidence: Evidence) -> Outcome:
    """See the module."""
    compared = evidence.compared
    if compared is None:
        return not_applicable(NAME, "there is no ledger", required=REQUIRED)
    found = compared.findings
    heads = compared.heads
    if not heads and not found:
        reason = "no head is known from outside: keep a pin, or commit the seal"
        return not_applicable(NAME, reason, required=REQUIRED)
    if compared.untold and not found:
        reason = f"{compared.untold} heads cannot be compared: entries before them are missing"
        return cannot_tell(NAME, reason, required=REQUIRED)
    seen: Coverage = {"heads": heads, "agree": len(compared.agreeing)}
    return outcome(NAME, found, seen, required=REQUIRED)
