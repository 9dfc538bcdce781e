"""The chain: how one entry is linked to the one before, and how a link is judged. Pure.

``link`` and ``check_link`` are the two sides of one act: the only road to append uses the first,
the verifier the second (each invariant is enforced when writing and judged again when reading).
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Self

from tripod.ledger.entry import (
    GENESIS,
    HEADER_VERSION,
    MAX_BODY,
    Draft,
    Entry,
    Header,
    commit_body,
    entry_leaf_hash,
    format_canonical,
    header_auth,
    header_bytes,
)
from tripod.ledger.errors import IdReusedError, MalformedError, TooLargeError, UnknownCauseError
from tripod.ledger.merkle import Tree

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
    def start(cls, origin: str) -> Self:
        """The tip of a ledger that holds nothing yet."""
        return cls(origin, GENESIS, _NOT_BEFORE, Tree())

    def copy(self) -> "Tip":
        """A tip of its own: a batch is linked to a copy, so that a refused one moves nothing."""
        return Tip(self.origin, self.last, self.at, Tree(self.tree.size, self.tree.stack))


def link(tip: Tip, draft: Draft, at: str, entry_id: str, salt: bytes) -> Entry:
    """Make the next entry from a draft, and move the tip to it.

    The time of an entry is never earlier than that of the entry before: where the host's clock
    went back, the earlier entry's time is repeated, so that order and time cannot contradict each
    other (the host's clock is a claim in any case). A fork alone takes the clock's time as it is:
    that is the way back from a clock that ran ahead (ADR 0013).

    Raises:
        TooLargeError: the body takes more than 64 KiB; long texts belong in blobs.
        MalformedError: the body has no canonical spelling, the first entry opens no ledger, or
            the draft is signed and not the one that was signed.
    """
    tree = tip.tree
    seq = tree.size
    kind, stream, actor, data, _, cause, _, _, auth = draft
    if (seq == 0) != (kind == "ledger.opened"):
        raise MalformedError("ledger.opened is the first entry of a ledger, and no other is")
    body = format_canonical(data)
    if len(body) > MAX_BODY:
        raise TooLargeError(
            f"the body of this {kind} takes {len(body)} bytes, at most {MAX_BODY} are "
            "allowed; long texts go into blobs"
        )
    if kind != "ledger.forked-from":  # a new line under a new name: its clock begins anew
        at = max(at, tip.at)
    value: dict[str, object] = {"actor": actor, "at": at}
    if auth is not None:
        if (entry_id, salt) != (draft.id, draft.salt):
            raise MalformedError(
                f"a signed {kind} must come with the id and the salt that were signed"
            )
        value["auth"] = header_auth(auth)
    value["body"] = commit_body(salt, kind, body)
    if cause is not None:
        value["cause"] = cause
    value["id"] = entry_id
    value["kind"] = kind
    value["ledger"] = tip.origin
    value["prev"] = tip.last
    value["seq"] = seq
    value["stream"] = stream
    value["v"] = HEADER_VERSION
    header = header_bytes(value)
    leaf = entry_leaf_hash(header)
    tip.last = leaf.hex()
    tip.at = at
    tree.append(leaf)
    return Entry(seq, entry_id, kind, stream, actor, at, header, salt, body, data, auth)


def link_all(
    tip: Tip,
    drafts: Sequence[Draft],
    at: str,
    minted: Iterable[tuple[str, bytes]],
    known: Callable[[str], Entry | None],
    *,
    stands: Callable[[str], bool],
) -> tuple[list[Entry], list[Entry], dict[bytes, bytes]]:
    """Link a batch and move the tip to it; what stands in the ledger already is not repeated.

    Gives an entry for each draft, those of them that are new, and their blobs.

    Args:
        tip: where the ledger ends; the caller's own copy.
        drafts: what to append, in order, all at the time ``at``.
        minted: a new id and a salt for each draft.
        known: the entry that has a given id, if there is one.
        stands: whether there is one, which is cheaper; asked of causes from outside the batch.

    Raises:
        UnknownCauseError: an entry would follow from one that does not stand before it.
        IdReusedError: an id stands there (or in the batch) with another body.
        TooLargeError: a body is too large.
        MalformedError: a body has no canonical spelling, or the first entry opens no ledger.
    """
    entries: list[Entry] = []
    fresh: list[Entry] = []
    blobs: dict[bytes, bytes] = {}
    given: dict[str, Entry] = {}
    made: set[str] = set()
    if tip.tree.size == 0 and drafts and drafts[0].kind == "ledger.opened":
        tip.origin = str(drafts[0].body.get("origin", ""))
    for draft, (new_id, salt) in zip(drafts, minted, strict=True):
        if draft.id:
            there = given.get(draft.id) or known(draft.id)
            if there is not None:
                erased = there.body is None
                if draft.kind != there.kind or not (
                    erased or format_canonical(draft.body) == there.body
                ):
                    raise IdReusedError(
                        f"id {draft.id} stands at entry {there.seq} with another body"
                    )
                entries.append(there)
                continue
        entry = link(tip, draft, at, draft.id or new_id, draft.salt or salt)
        cause = draft.cause
        if cause is not None and cause not in made and not stands(cause):
            raise UnknownCauseError(
                f"{cause!r} is the id of no entry before this {draft.kind}: give its cause's"
            )
        made.add(entry.id)
        if draft.id:
            given[draft.id] = entry
        for blob in draft.blobs:
            blobs[sha256(blob).digest()] = blob
        entries.append(entry)
        fresh.append(entry)
    return entries, fresh, blobs


def check_link(header: Header, seq: int, prev: str, origin: str) -> str | None:
    """Judge how a header stands in the chain: None, or what is wrong with it."""
    if header.seq != seq:
        return f"the header says seq {header.seq} where {seq} follows"
    if header.prev != prev:
        return f"prev is {header.prev[:12]}…, the entry before hashes to {prev[:12]}…"
    if header.ledger != origin:
        return f"the header names another ledger: {header.ledger!r}, here {origin!r}"
    return None
