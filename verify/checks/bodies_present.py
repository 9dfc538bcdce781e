"""Each entry has the body that its header commits to, and each blob is there, whole and named.

**What it proves.** The body and salt beside each header hash to the commitment in it. Each blob
that a body names is there with its size, each blob hashes to its own name, and none lies there
that no body names.

**Why it matters.** The chain covers headers; the words of a decision or a message are in the body.
A body may be absent only where a ``redacted`` entry says who erased it and why; what that entry
keeps in its place is a body of the same kind, with nothing but what the rules need.

**What a finding looks like.** A body that was altered: ``the body is not the one that the header
commits to``. One that vanished: ``body and salt are missing, and no entry says that they were
erased``. A redaction without effect: ``it says that entry 41 was erased, and its body is there``.
``blob 9f86d081… does not hash to its name``. An index that gives one text for another: ``its
indexes do not hold its rows``. What was erased and said so is counted, as
``redacted``.

**What to do.** The header still proves *that* there was an entry, when, of what kind
and who made it. The text can be had back only from a copy whose body fits the commitment. The
fields that a redaction keeps are claims of the person who redacted, except for those in the header
too; an older copy can confirm them.
"""

from __future__ import annotations

from typing import Any

from tripod.ledger import Header, commit_body, redaction_entry_id
from tripod.ledger.kinds.registry import BY_NAME
from tripod.projections.erasure import tombstone
from tripod.verify.check import BODIES, ROWS, Evidence, Outcome

NAME = "bodies-present"
REQUIRED = True
NEEDS = (ROWS, BODIES)
ACCEPTABLE = False
HELP = (
    "look for a copy whose body fits the commitment in the header: `tripod audit` says whether "
    "this replica's record has it; a backup or a clone may, too"
)
REINDEX = (
    "keep a copy, run `sqlite3 LEDGER reindex`, LEDGER being the file that stands behind `judged`, "
    "and find out who wrote to the database"
)


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    erased = evidence.scan is not None and evidence.scan.coverage.get("redacted")
    return evidence.ledger_outcome(NAME, "entries", "blobs", *(["redacted"] if erased else []))


def body_problem(header: Header, salt: object, body: object) -> str | None:
    """Whether body and salt are those of the commitment; for where they were not both erased."""
    if salt is None or body is None:
        gone, there = ("salt", "body") if salt is None else ("body", "salt")
        return f"the {gone} is missing, and the {there} is there: no redaction leaves it so"
    if type(salt) is not bytes or type(body) is not bytes:
        return "body or salt is not stored as bytes"
    if len(salt) != 32:
        return f"the salt takes {len(salt)} bytes, not 32"
    if commit_body(salt, header.kind, body) != header.body:
        return "the body is not the one that the header commits to"
    return None


def body_erasure_problem(
    seq: int, header: Header, said: tuple[int, dict[str, Any]] | None
) -> str | None:
    """Whether a missing body was erased: ``said`` is the entry that says so, and its body."""
    if said is None or said[0] <= seq:
        return "body and salt are missing, and no entry says that they were erased"
    keep = said[1]["keep"]
    if said[1].get("kind") != header.kind:
        return (
            f"entry {said[0]} says that a {said[1].get('kind')} was erased, it is a {header.kind}"
        )
    known = BY_NAME.get(header.kind)
    field = None  # the source of an event that tells of another entry is the tool that published it
    if header.cause is None and known is not None and known.is_speech and known.erasure is not None:
        field = known.actor
    if field is not None and keep.get(field) != header.actor:
        return f"entry {said[0]} keeps another {field} of it than its header names"
    return None


def absent_body_claim_problem(
    seq: int, header: Header, data: dict[str, Any], target: tuple[Any, ...] | None
) -> str | None:
    """Whether a ``redacted`` entry is true: ``target`` is (kind, erased) of the one it names."""
    named = data["seq"]
    if target is None or named >= seq:
        return f"it says that entry {named} was erased, and no such entry stands before it"
    if header.id != redaction_entry_id(named):
        return (
            f"it says that entry {named} was erased, and its id is not {redaction_entry_id(named)}"
        )
    if not target[1]:
        return f"it says that entry {named} was erased, and its body is there"
    keep = data["keep"]
    try:
        least = tombstone(data["kind"], keep)
    except (KeyError, TypeError, ValueError, AttributeError):
        least = None
    return None if keep == least else f"it keeps more of entry {named} than may stay"
