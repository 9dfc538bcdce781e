"""What replicas of a team remember of each other agrees, and what is kept of a peer is unaltered.

**What it proves.** Each replica that merges another one records the sealed head of the other: it is
a witness of it. The check collects all heads that any replica remembers: in this ledger, in the
entries that are kept of its peers, and in the records on all refs, fetched ones included. A head
counts if the key of its replica signed it. For each head, the replica has at least as many entries,
and its first so many entries have that root. Each entry that is kept of a peer is the one in the
tree that the peer's key sealed, with the content and the signature that its header names. A seal of
the peer covers it. Below the newest head that was merged, and before an entry that is kept, no
entry of the peer is left out. An entry is kept without its body only if the peer says that it
erased the body. It is shown under a handle of this replica only if a key of that handle signed it.
What it is called here (file, line, number, id, the decision that it supersedes, the messages and
events that it means) is found again. A new key of a peer counts if the key before it signed it, in
an entry of that peer.

**Why it matters.** Somebody with a replica's key, its database and its ref can make its history
anew from end to end, and the new history agrees with itself. The replicas that merged it before
still hold the older seal. To rewrite one replica unseen, all that merged it must be rewritten too.

**What a finding looks like.** ``fork: it remembers root 91bc… of the first 51 entries of
ann-0123456789abcdef, and in the record on refs/tripod-remotes/origin/ann-0123456789abcdef they have
07aa…``, with both seals: two seals by one key are proof against their maker. ``rollback: it
remembers 60 entries, and the ledger has 51`` (of this ledger). ``it keeps another entry 7 of bob-…
than the record on … has``. ``no seal of bob-… that is known here covers its entry 500``. ``entry 7
of bob-… is not here, and this ledger says that all of its first 60 entries are``. ``its seal is by
no key that is known of …: two replicas have that name, or one was made up``. ``this ledger calls it
boss-…, which is not the name that it has``. ``bob-… had 60 entries, and no ref here holds its
record``: a failure in a clone without a ledger, a warning beside a ledger, nothing once that peer
is closed. A ref that holds no record, one that cannot be compared, a head that no known key opens,
and a peer whose record is shorter than what was merged of it (``behind``) are warnings. Of a record
that cannot be compared the seal counts all the same. A head that this ledger says it merged, and
that no key of the peer opens, is a failure.

**What to do.** Keep both records as they are: `tripod diff` shows where they part. Find out which
one is true. A copy can go on under a name of its own: `tripod restore --as-copy`.
"""

from __future__ import annotations

from tripod.verify.check import HEADS, Evidence, Outcome, not_applicable, outcome

NAME = "peers-agree"
REQUIRED = True
NEEDS = (HEADS,)
ACCEPTABLE = False

FORK = (
    "two seals by one key that no ledger can have both: one history of that replica was rewritten, "
    "or two copies of it went on. Keep both records, find out which is the true one, and let the "
    "other go on under a name of its own (`tripod restore --as-copy`)"
)
COPY = (
    "this ledger left that name and goes on as a copy, and under the name another history is "
    "sealed. If it is that of the first disk, which went on meanwhile, say so: `tripod pull`, then "
    "`tripod peer accept REPLICA --reason TEXT`. Else one of them was rewritten: keep both records"
)
ROLLBACK = (
    "this ledger was rolled back or cut off, or it is an old copy: find the newest one "
    "(`tripod restore` takes the longest record of it that is known)"
)
BEHIND = (
    "its newer record was not pushed, or not fetched here: `tripod push` there, `tripod pull` "
    "here. Where it has none, it was rolled back"
)
NOT_HERE = (
    "fetch the newest record (`git fetch REMOTE '+refs/tripod/*:refs/tripod-remotes/REMOTE/*'`); "
    "if that is not longer, it was not pushed there (`tripod push`), or it was cut off"
)
GONE = (
    "fetch it, as `tripod pull` does. If a remote lost it, push it again: `tripod push` there, or "
    "`git push` its ref from a clone that has it. Close one that was given up (`tripod peer close`)"
)
ALTERED = (
    "compare the entry with the peer's own record and with other replicas: here or there it was "
    "changed after it was merged"
)
TWO = (
    "ask the owner of that replica for the first line of `tripod key`, and compare it with that of "
    "the peer (`tripod peer show`): one of them is nobody's. Remove the ref that is, or close the "
    "peer (`tripod peer close`) and keep both"
)
LOST = (
    "it was left out when that peer was merged, or taken out since: find out how, and compare "
    "this ledger with other replicas (`tripod diff`)"
)
UNSEALED = (
    "pull again: a merge may have been stopped. If it stays, the peer did not make it: it was put "
    "into this ledger; compare it with the peer's own record and with other replicas"
)
REF = "nobody vouches for it: find out who put it there, and remove it (`git update-ref -d REF`)"
STRANGER = (
    "find out whose it is: a replica whose key is not known here yet (`tripod pull`), or nobody's"
)


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    told = evidence.held.peers if evidence.held is not None else None
    if told is None:
        return not_applicable(NAME, "no other replica of the team is known")
    seen = {"heads": told.heads, "agree": len(told.agreeing), **told.seen}
    found = outcome(NAME, told.findings, seen)
    if told.untold and not found.failures:
        return found.cannot_tell(f"a head cannot be compared: {told.untold[0]}")
    return found
