"""Every head that is remembered outside is the beginning of this ledger.

**What it proves.** For each head that a pin file, a committed seal, a witness or another receipt
remembers: the ledger has at least as many entries, and its first so many have that root. What
such a head covers was not changed, removed or reordered since, no matter who holds the disk and the
key. It also holds the ledger against the policy: the least level, the longest tail that no head
covers. Receipts in the ledger are opened: a witness counts that the policy names, a timestamp
whose authority stands in ``policy.pem``; what the ledger says of itself counts for nothing. Of
keys that were given (``--key``), one must be the key that is in force.

**Why it matters.** A ledger that was made anew from end to end agrees with itself. So does one that
was cut off, and a backup that was put back. Only something outside can tell, if it is asked.

**What a finding looks like.** Each begins with its own word. ``rollback: it remembers 51 entries,
and the ledger has 40``; ``fork: it remembers root 91bc… of the first 51 entries, and here they
have 07aa…``; ``unknown log: it remembers example.com/a, and this ledger is example.com/b``;
``unsealed: this ledger was sealed once, and holds no seal``; ``stale anchor: the tail after the
newest head is 90000 seconds, and the policy allows 86400``; ``unanchored: the policy asks for
PINNED``; ``forged: it is of 40 entries …, and the entry says 51``. A seal in git is named by its
commit. Where a clone is judged by its record, another branch may hold a newer one: then a rollback
is a warning. *Cannot tell* means that a repository is there whose history cannot be read, or cannot
vouch for this team: it is another user's, or the team directory is a link, a submodule or a
repository of its own there.

**What to do.** Do not append to this ledger, and keep it as it is. Find the copy that the head
comes from: `git log` names the commit's author, a witness has its own. The oldest head that
disagrees and the newest that agrees bound when it happened.
"""

from __future__ import annotations

from tripod.verify.check import HEADS, Evidence, Outcome, cannot_tell, not_applicable, outcome

NAME = "pins-extend"
REQUIRED = True
NEEDS = (HEADS,)
ACCEPTABLE = False


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    held = evidence.held
    if held is None:
        for where, problem in evidence.untold:
            reason = f"what {where} remembers is not known: {problem}"
            return cannot_tell(NAME, reason)
        return not_applicable(NAME, "there is no ledger")
    found = held.findings
    if not held.heads and not held.untold and not found:
        reason = "no head is known from outside: keep a pin, or commit the seal"
        return not_applicable(NAME, reason)
    seen = {"heads": held.heads, "agree": len(held.agreeing)}
    told = outcome(NAME, found, seen)
    if held.untold and not told.failures:
        more = f"; and {len(held.untold) - 1} more" if held.untold[1:] else ""
        reason = f"a head cannot be compared: {held.untold[0]}{more}"
        return told.cannot_tell(reason)
    return told
