"""Redaction as every store does it: what stands for an erased body, and what goes with it. Pure.

Body and salt of an entry lie beside its header, so they can be erased while every hash still
holds. A ``redacted`` entry says that it was done, by whom and why; its body's ``keep`` is what
stands for the erased body from then on, also for a fold that begins at the start.

Its id is made from the number of the erased entry: ids are unique for ever, so an entry can be
erased once, and what stands for it is found without a search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REDACTED = "redacted"
"""The kind."""


def redaction_id(seq: int) -> str:
    """The id of the entry that says that ``seq`` was erased.

    >>> redaction_id(41)
    'redacted-41'
    """
    return f"{REDACTED}-{seq}"


def named_blobs(value: Any) -> Iterator[tuple[str, int]]:
    """Digest in hex and size of every blob that a decoded body names, at any depth.

    Without recursion: a stranger's body may be nested as deep as its parser lets it.
    """
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if type(one) is dict:
            if one.keys() == {"sha256", "size"}:
                digest, size = one["sha256"], one["size"]
                if type(digest) is str and type(size) is int:
                    yield digest, size
                continue
            waiting += reversed(one.values())
        elif type(one) is list:
            waiting += reversed(one)


def naming(digest: str) -> bytes:
    """What stands in the canonical bytes of a body that names the blob, and in no other.

    Within a text the quotes would be escaped.
    """
    return b'{"sha256":"' + digest.encode() + b'","size":'
