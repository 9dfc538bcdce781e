"""Each entry names the hash of the entry before it, and the ledger that it belongs to.

**What it proves.** From entry 0 to the head one unbroken chain: ``prev`` of each header is the
leaf hash of the one before, and each names the same origin. That one changes in one place alone:
where ``ledger.forked-from`` says that a restored copy of all entries before it goes on.

**Why it matters.** A change of one entry changes its hash; then the entry after it points to
something that is no longer there. To hide that, all entries after it must be made again, and then
the head differs from every head that was ever kept elsewhere.

**What a finding looks like.** ``entry 41 is not the one that entry 42 was linked to: it was altered
after it was appended``; ``prev is 3f2a…, the entry before hashes to 91bc…``; ``the header names
another ledger``.

**What to do.** Compare the named entry with a backup or a clone. What stands before it is proved
by the chain, what stands after it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tripod.ledger import Header
from tripod.verify.check import ROWS, Evidence, Outcome

NAME = "chain-links"
REQUIRED = True
NEEDS = (ROWS,)
ACCEPTABLE = False
HELP = "compare this entry with a backup or another copy; what stands before it is proved"


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    return evidence.ledger_outcome(NAME, "entries")


def chain_fork_problem(header: Header, data: Mapping[str, Any], left: str) -> str | None:
    """Whether a fork leaves the line ``left``, and with all the entries that stand before it."""
    if header.ledger == left:
        return f"it forks, and goes on under the name that the ledger had: {left!r}"
    if data["origin"] != left:
        return f"it forks from {data['origin']!r}, the entries before it are of {left!r}"
    if data["size"] != header.seq:
        return f"it forks after {data['size']} entries, and {header.seq} stand before it"
    return None
