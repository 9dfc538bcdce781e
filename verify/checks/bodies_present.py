"""Each entry has the body that its header commits to, and each blob is there, whole and named.

**What it proves.** The body and salt beside each header hash to the commitment in it. Each blob
that a body names is there with its size, each blob hashes to its own name, and none lies there
that no body names.

**Why it matters.** The chain covers headers; the words of a decision or a message are in the body.
A body may be absent only where an entry says who erased it and why (no version writes those yet).

**What a finding looks like.** ``the body is not the one that the header commits to``, ``body and
salt are missing``, ``blob 9f86d081… does not hash to its name``.

**What to do.** The header still proves *that* there was an entry, when, of what kind and by whom.
The text can be had back only from a copy whose body fits the commitment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.entry import Header, commit
from verify.evidence import Evidence
from verify.finding import Outcome

__all__ = ["HELP", "NAME", "REQUIRED", "body_problem", "judge", "named_blobs"]

NAME = "bodies-present"
REQUIRED = True
HELP = "look for a copy of the database whose body fits the commitment in the header"


def judge(evidence: Evidence) -> Outcome:
    """What the pass over the rows found; see the module."""
    return evidence.ledger_outcome(NAME, "entries", "blobs")


def body_problem(header: Header, salt: object, body: object) -> str | None:
    """Whether body and salt are there and are those of the commitment."""
    if salt is None and body is None:
        return "body and salt are missing, and no entry says that they were erased"
    if type(salt) is not bytes or type(body) is not bytes:
        return "body or salt is not stored as bytes"
    if len(salt) != 32:
        return f"the salt takes {len(salt)} bytes, not 32"
    if commit(salt, header.kind, body) != header.body:
        return "the body is not the one that the header commits to"
    return None


def named_blobs(value: Any) -> Iterator[tuple[str, int]]:
    """Digest in hex and size of every blob that a decoded body names, at any depth."""
    if type(value) is dict:
        if value.keys() == {"sha256", "size"}:
            digest, size = value["sha256"], value["size"]
            if type(digest) is str and type(size) is int:
                yield digest, size
            return
        for inner in value.values():
            yield from named_blobs(inner)
    elif type(value) is list:
        for inner in value:
            yield from named_blobs(inner)
