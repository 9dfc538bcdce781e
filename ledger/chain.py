"""The chain: how one entry is linked to the one before, and how a link is judged. Pure.

``link`` and ``check_link`` are the two sides of one act: the only road to append uses the first,
the verifier the second (each invariant is enforced when writing and judged again when reading).
"""

from __future__ import annotations

from ledger.canonical import format_value
from ledger.entry import (
    GENESIS,
    HEADER_VERSION,
    MAX_BODY,
    Draft,
    Entry,
    Header,
    commit,
    header_bytes,
    leaf_hash,
)
from ledger.errors import MalformedError, TooLargeError
from ledger.merkle import Tree

__all__ = ["Tip", "check_link", "link"]

_NOT_BEFORE = "0000-01-01T00:00:00.000000Z"


class Tip:
    """Where the ledger ends: what the next entry needs to know of all that came before.

    ``last`` is the leaf hash of the newest entry in hex (64 zeros before the first), ``at`` its
    time, ``tree`` the compact range over all leaves.
    """

    __slots__ = ("at", "last", "origin", "tree")

    def __init__(self, origin: str, last: str, at: str, tree: Tree) -> None:
        self.origin = origin
        self.last = last
        self.at = at
        self.tree = tree

    @classmethod
    def start(cls, origin: str) -> Tip:
        """The tip of a ledger that holds nothing yet."""
        return cls(origin, GENESIS, _NOT_BEFORE, Tree())

    def copy(self) -> Tip:
        """A tip of its own: a batch is linked to a copy, so that a refused one moves nothing."""
        return Tip(self.origin, self.last, self.at, Tree(self.tree.size, self.tree.stack))


def link(tip: Tip, draft: Draft, at: str, entry_id: str, salt: bytes) -> Entry:
    """Make the next entry from a draft, and move the tip behind it.

    The time of an entry is never earlier than that of the entry before: where the host's clock
    went back, the earlier entry's time is repeated, so that order and time cannot contradict each
    other (the host's clock is a claim in any case).

    Raises:
        TooLargeError: the body takes more than 64 KiB; long texts belong in blobs.
        MalformedError: the body has no canonical spelling, or the first entry opens no ledger.
    """
    seq = tip.tree.size
    if (seq == 0) != (draft.kind == "ledger.opened"):
        message = "ledger.opened is the first entry of a ledger, and no other is"
        raise MalformedError(message)
    body = format_value(draft.body)
    if len(body) > MAX_BODY:
        message = (
            f"the body of this {draft.kind} takes {len(body)} bytes, at most {MAX_BODY} are "
            "allowed; long texts go into blobs"
        )
        raise TooLargeError(message)
    at = max(at, tip.at)
    value: dict[str, object] = {
        "actor": draft.actor,
        "at": at,
        "body": commit(salt, draft.kind, body),
        "id": entry_id,
        "kind": draft.kind,
        "ledger": tip.origin,
        "prev": tip.last,
        "seq": seq,
        "stream": draft.stream,
        "v": HEADER_VERSION,
    }
    if draft.cause is not None:
        value["cause"] = draft.cause
    header = header_bytes(value)
    leaf = leaf_hash(header)
    tip.last = leaf.hex()
    tip.at = at
    tip.tree.append(leaf)
    return Entry(
        seq, entry_id, draft.kind, draft.stream, draft.actor, at, header, salt, body, draft.body
    )


def check_link(header: Header, seq: int, prev: str, origin: str) -> str | None:
    """Judge how a header stands in the chain: None, or what is wrong with it."""
    if header.seq != seq:
        return f"the header says seq {header.seq} where {seq} follows"
    if header.prev != prev:
        return f"prev is {header.prev[:12]}…, the entry before hashes to {prev[:12]}…"
    if header.ledger != origin:
        return f"the header names another ledger: {header.ledger!r}, here {origin!r}"
    return None
