"""Proofs (C2SP tlog-proof@v1): one file that shows that an entry lies in a sealed log. Pure.

The file gives no size: that of the seal counts, which is signed. To check it one needs the entry,
or its leaf hash, and a policy with the trusted keys.

Source: spec: tlog-formats 7; ``docs/formats/proofs.md``.
"""

from __future__ import annotations

from typing import NamedTuple

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.merkle import check_inclusion
from tripod.ledger.tlog.note import (
    MAX_NOTE,
    MAX_SIZE,
    Note,
    format_base64,
    format_lines_and_note,
    hashes_problem,
    parse_base64,
    parse_decimal,
    parse_lines_and_note,
    parse_note,
)
from tripod.ledger.tlog.policy import Policy, open_under_policy
from tripod.ledger.tlog.seal import OpenedSeal

MAX_PROOF = MAX_NOTE + 256 * 1024  # bytes

_FIRST = "c2sp.org/tlog-proof@v1"
_EXTRA = "extra "
_INDEX = "index "


class Proof(NamedTuple):
    """That leaf ``seq`` (from 0) lies under the seal in ``note``.

    ``hashes`` have 32 bytes each. ``extra`` is for applications: not empty, vouched for by nobody.
    """

    seq: int
    hashes: tuple[bytes, ...]
    note: Note
    extra: bytes | None = None


def format_proof(proof: Proof) -> bytes:
    """Write a proof (MalformedError: a part of it is invalid, or it is too long)."""
    _check(proof)
    lines = [_FIRST]
    if proof.extra is not None:
        lines.append(_EXTRA + format_base64(proof.extra))
    lines.append(f"{_INDEX}{proof.seq}")
    lines += [format_base64(digest) for digest in proof.hashes]
    data = format_lines_and_note(lines, proof.note)
    if len(data) > MAX_PROOF:
        raise MalformedError(f"proof: {len(data)} bytes, at most {MAX_PROOF} are written")
    return data


def parse_proof(data: bytes) -> Proof:
    """Read a proof, unjudged; only what ``format_proof`` writes is accepted (MalformedError)."""
    lines, note = parse_lines_and_note(data, MAX_PROOF, "proof")
    if lines.pop(0) != _FIRST:
        raise MalformedError(f"proof: the first line is not {_FIRST}: another version?")
    number, extra = 2, None
    if lines and lines[0].startswith(_EXTRA):
        extra = parse_base64(lines.pop(0).removeprefix(_EXTRA), "proof: line 2, the extra bytes")
        number = 3
    if not lines or not lines[0].startswith(_INDEX):
        raise MalformedError(f"proof: line {number} does not say `index` and a number")
    index = parse_decimal(lines.pop(0).removeprefix(_INDEX), f"proof: line {number}, the index")
    hashes = [parse_base64(line, f"proof: line {n}") for n, line in enumerate(lines, number + 1)]
    proof = Proof(index, tuple(hashes), parse_note(note), extra)
    _check(proof)
    return proof


def verify_proof(proof: Proof, leaf: bytes, policy: Policy) -> OpenedSeal:
    """Check that the entry with this leaf hash lies in a log that the policy believes.

    ``leaf`` are 32 bytes, made by the caller (``tripod.ledger.entry.entry_leaf_hash``).
    Which log it was is in the result, for the caller to compare. ``proof.extra`` stays unproven.

    Raises:
        MalformedError: the proof or the seal in it is invalid.
        NotVerifiedError: the policy does not believe the seal, or the hashes do not lead from the
            leaf to its root.
        ValueError: the leaf hash has not 32 bytes.
    """
    if len(leaf) != 32:
        raise ValueError(f"a leaf hash has 32 bytes, not {len(leaf)}")
    _check(proof)
    opened = open_under_policy(policy, proof.note)
    origin, size, root, _ = opened.seal
    if not check_inclusion(leaf, proof.seq, size, proof.hashes, root):
        raise NotVerifiedError(
            f"proof: this entry is not number {proof.seq} of {origin} at size {size}"
        )
    return opened


def _check(proof: Proof) -> None:
    problem = hashes_problem(proof.hashes)
    if not 0 <= proof.seq <= MAX_SIZE:
        problem = f"the index {proof.seq} is not from 0 to 2^63-1"
    elif problem is None and proof.extra == b"":
        problem = "the extra bytes are empty: the line is left out instead"
    if problem is not None:
        raise MalformedError(f"proof: {problem}")
