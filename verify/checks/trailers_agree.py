"""Every head that a commit's message carries is the beginning of the replica that signed it.

**What it proves.** `tripod hooks install` puts the ledger's head into each commit: a trailer
``Tripod-Head`` with the replica, its size, its root, and the signature of its key. In all commits
that a branch, a tag or HEAD reaches, each trailer that opens with a key of this ledger or of a peer
is a pin: the replica has at least as many entries, and its first so many have that root.

**Why it matters.** Commits are fetched by everybody, and rewriting them is seen by everybody. A
ledger that was made anew contradicts every commit made before.

**What a finding looks like.** ``commit 5a742098bf87 by Ann <ann@example.org>, ...: rollback: it
remembers 60 entries, and the ledger has 51``; ``fork: it remembers root 91bc… of the first 51
entries, and in the ledger they have 07aa…``. A trailer that no known key opens binds nothing,
and is a warning. Of a peer, more entries than its record here has are counted as ``not here yet``.
In a clone that is judged by its refs, a record that is shorter than a commit says is a rollback
as well: push the newest record (`tripod push`), or fetch it.

**What to do.** As with ``pins-extend``: do not append, keep the ledger as it is, and find the copy
that the commit's author had.
"""

from __future__ import annotations

from tripod.verify.check import HEADS, Evidence, Outcome, not_applicable, outcome

NAME = "trailers-agree"
REQUIRED = True
NEEDS = (HEADS,)
ACCEPTABLE = False


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    told = evidence.held.trailers if evidence.held is not None else None
    if told is None:
        return not_applicable(NAME, "no commit carries a head: `tripod hooks install`")
    seen = {"trailers": told.heads, "agree": len(told.agreeing), **told.seen}
    found = outcome(NAME, told.findings, seen)
    if told.untold and not found.failures:
        return found.cannot_tell(f"a head cannot be compared: {told.untold[0]}")
    return found
