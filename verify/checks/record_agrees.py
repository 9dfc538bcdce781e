"""The record, or an export, is whole, is what its seal says, and holds what the ledger holds.

**What it proves.** The entries that lie in the tiles' bundles give the hash tiles beside them, the
root in the seal, and the log that it names; the seal is signed by the log's key; each line of the
bodies is of its form. Where a ledger stands beside its record (``.nbs/record``), every file of it
has exactly the bytes that the ledger gives. What is *in* the entries is judged by the other checks,
on the ledger, or, without a ledger, on what was read from the files.

**Why it matters.** Clones, CI and outsiders have the record and not the database. One file changed
in it, and they judge another history than the one that was sealed.

**What a finding looks like.** ``its hashes are not those of the entries``; ``the entries have the
root 91bc…, the seal says 3f2a…``; ``bodies/000.jsonl is not what the ledger holds``; ``signature 1
says it is by … and it is not``; of a team's record, ``its bodies were taken away``. A file that
belongs to no entry is a warning: nothing reads it. No record at all is *not applicable*; the policy
may require one.

**What to do.** Compare with another clone; git tells who changed the file and when. Where the
ledger verifies, remove the record, and the next seal writes it anew. *Cannot tell* means that no
key is known to hold the seal against: give it with ``--key``.
"""

from __future__ import annotations

from tripod.verify.check import RECORD, Evidence, Outcome, outcome

NAME = "record-agrees"
REQUIRED = True
NEEDS = (RECORD,)
ACCEPTABLE = False
HELP = "compare with another clone or with the ledger; git tells who changed the file"
STRAY = "nobody vouches for it: find out who put it there, and remove it"


def judge(evidence: Evidence) -> Outcome:
    """What was found when the files were read; see the module."""
    record = evidence.record
    assert record is not None
    told = outcome(NAME, record.tally.of(NAME), record.seen)
    if record.signed or told.failures:
        return told
    reason = f"no key is known to hold the seal of {record.origin} against: give it with --key"
    return told.cannot_tell(reason)
