"""The heads of a ledger that are known, each held against its entries.

A head in the ledger, in its record or on this replica's own ref is kept by who has the ledger. One
in a pin, in a commit, on a fetched ref or with a peer is kept outside. Roots are computed from the
headers as they are stored: no stored tree is believed. A signature counts by a key that the ledger
or the caller knows; who made a head is told, and decides nothing of whether it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from tripod.ledger import RECORD, LedgerError
from tripod.ledger.files import read_plain_file
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import MAX_NOTE, VerifierKey, format_note
from tripod.ledger.tlog.seal import format_seal, open_seal
from tripod.verify.difference import FoundSeal, LedgerSide, find_seals, walk_entries
from tripod.verify.evidence import OpenEvidence
from tripod.verify.peers.refs import OWN
from tripod.verify.rows import RowReader, head_row

HeadSource: TypeAlias = Literal["seal", "record", "pin", "git", "receipt", "peer", "head row"]
"""Who remembers a head; the ``head row`` is the ledger's own count, which nobody signed."""

_METHODS: dict[str, HeadSource] = {"pin": "pin", "git": "git", "receipt": "receipt"}

_NO_KEY = "no key that is known here"
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, LedgerError)


@dataclass(frozen=True, slots=True)
class LedgerHead:
    """A head of this ledger: over how many entries, the root in hex, where it stands, who made it.

    ``by`` names the key or the person, '' where nobody signed it. ``fits``: whether the entries
    have this root; None where there are fewer entries, or one of them cannot be read.
    ``is_outside``: who can write to this replica, and has its key, cannot make it anew. A receipt
    is such a head only if a witness or an authority that the policy names signed it.
    ``note`` is the head with its signatures, or its three lines alone; empty for a head row.
    """

    size: int
    root: str
    source: HeadSource
    where: str
    by: str
    fits: bool | None
    is_outside: bool
    note: bytes = b""


def newest_good_head(heads: Sequence[LedgerHead]) -> LedgerHead | None:
    """The newest head that fits and was not made over other entries than an older one."""
    broken = oldest_broken_head(heads)
    good = (one for one in heads if one.fits and not is_made_later(one, broken))
    return max(good, key=_trust, default=None)


def is_made_later(head: LedgerHead, broken: LedgerHead | None) -> bool:
    """Whether a head that fits covers what a smaller one denies: it was made over other entries."""
    return broken is not None and head.size >= broken.size


def oldest_broken_head(heads: Iterable[LedgerHead]) -> LedgerHead | None:
    """The head of the fewest entries that does not fit."""
    return min((one for one in heads if one.fits is False), key=_size, default=None)


def _size(head: LedgerHead) -> int:
    return head.size


def _trust(head: LedgerHead) -> tuple[int, bool]:
    return head.size, head.is_outside


# Heads ------------------------------------------------------------------------------------------


def walked_side(evidence: OpenEvidence, reader: RowReader) -> LedgerSide:
    """The ledger with its seals, and with its roots at the sizes of all heads that are known."""
    note = _record_note(evidence)
    side = LedgerSide(reader, () if note is None else ((f"{RECORD}/{tiles.SEAL}", note),))
    find_seals(side)
    sizes = {one.size for one in side.seals} | {one.size for one in _outside(evidence)}
    for _ in walk_entries(side, sizes):
        pass
    return side


def known_heads(evidence: OpenEvidence, side: LedgerSide) -> Iterator[LedgerHead]:
    """Every head of this ledger that is known, held against the entries; the largest first."""
    found = [
        LedgerHead(
            one.size,
            one.root.hex(),
            _of_seal(one, evidence),
            one.where,
            f"the key {one.key.split('+')[1]}",
            side.fits(one),
            is_outside=False,
            note=one.note,
        )
        for one in side.seals
        if one.key
    ]
    keys = [*evidence.database.keys, *map(VerifierKey.parse, side.keys)]
    for one in _outside(evidence, keys):
        root = side.roots.get(one.size)
        found.append(replace(one, fits=None if root is None else root.hex() == one.root))
    row = head_row(side.ledger.db)
    if row is not None and type(row.size) is int and row.size > max(0, side.ledger.size):
        where = "the database"
        found.append(LedgerHead(row.size, "", "head row", where, "", None, is_outside=False))
    yield from sorted(dict.fromkeys(found), key=lambda each: -each.size)


def unheld_heads(evidence: OpenEvidence) -> Iterator[LedgerHead]:
    """The heads that are remembered outside, where there is no ledger to hold them against."""
    for known in sorted(evidence.outside.known, key=lambda each: -each.seal.size):
        yield _outside_head(_METHODS[known.method], known)


def _of_seal(seal: FoundSeal, evidence: OpenEvidence) -> HeadSource:
    return "record" if evidence.loaded or seal.where.startswith(RECORD) else "seal"


def _outside(evidence: OpenEvidence, keys: Sequence[VerifierKey] = ()) -> Iterator[LedgerHead]:
    """The heads that pins, commits, receipts and peers remember, of this ledger alone."""
    held = evidence.held
    if held is None:
        return
    found: list[tuple[HeadSource, Any]] = [
        (_METHODS[known.method], known)
        for known in (*held.agreeing, *held.disagreeing, *held.uncompared)
    ]
    names = {evidence.line(seq) for seq in (0, max(0, evidence.rows - 1))}
    for told in filter(None, (held.peers, held.trailers)):
        found += [
            ("git" if one.is_trailer else "peer", one)
            for one in (*told.agreeing, *told.disagreeing, *told.uncompared)
            if one.seal.origin in names and one.by not in names
        ]
    for source, known in found:
        # An entry here that keeps one of a peer counts if the peer's key sealed that one.
        is_own = source == "peer" and (
            known.where.startswith(OWN)
            or known.where == evidence.what
            or (known.seq is not None and not known.proven)
        )
        signer = _signer(known, [*keys, *evidence.outside.keys_of(known.seal.origin)])
        by_key = is_own and known.seq is None and _NO_KEY not in signer
        yield _outside_head("record" if by_key else source, known, signer, is_own=is_own)


def _outside_head(
    source: HeadSource, known: Any, signer: str | None = None, *, is_own: bool = False
) -> LedgerHead:
    """A head that is remembered outside; ``is_own``: this replica itself keeps it on its ref."""
    seal = known.seal
    is_receipt = source == "receipt"
    is_vouched = not is_receipt or known.stamped or bool(known.cosigned)
    note = format_seal(seal).encode() if known.note is None else format_note(known.note)
    return LedgerHead(
        seal.size,
        seal.root.hex(),
        source,
        known.where,
        _signer(known) if signer is None else signer,
        fits=None,
        is_outside=is_vouched and not is_own,
        note=note,
    )


def _signer(known: Any, keys: Sequence[VerifierKey] = ()) -> str:
    """Who signed a head that is remembered outside, by the keys that are known; '' for nobody."""
    cosigned = [f"the witness {one.key.name}" for one in getattr(known, "cosigned", ())]
    own: list[str] = []
    if known.note is not None:
        own = [_NO_KEY]
        with suppress(LedgerError):
            mine = [key for key in keys if key.name == known.seal.origin]
            open_seal(known.note, mine, extensions=True)
            own = [f"the key of {known.seal.origin}"]
    return ", ".join((*own, *cosigned))


def _record_note(evidence: OpenEvidence) -> bytes | None:
    """The seal of the files that the ledger was read from, or of the team's record."""
    root = evidence.database.source or (evidence.root and f"{evidence.root}/{RECORD}")
    with suppress(OSError):
        return read_plain_file(f"{root}/{tiles.SEAL}", MAX_NOTE) if root else None
    return None


def name_head(head: LedgerHead) -> str:
    """A head in words: what it is, and where it stands."""
    if head.source == "head row":
        return "the head row of the database"
    if head.source in ("seal", "record"):
        return f"the seal in {head.where}"
    if head.source == "receipt":
        return head.where
    return {"pin": "the pin ", "git": "the head in ", "peer": "the head that is in "}.get(
        head.source, ""
    ) + head.where.removeprefix("the pin ")
