"""Compares two ledgers entry by entry: where they part, and what the seals prove of either side.

Roots are computed from the entries; no stored tree and no head row is believed. Whether a side by
itself is whole is what ``tripod verify`` judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from tripod.ledger import (
    MERGED,
    LedgerError,
    RawEntry,
    Tree,
    entry_leaf_hash,
    parse_header,
    tell_over,
)
from tripod.ledger.kinds.merged import read_kept
from tripod.ledger.kinds.peers import peer_entry_id
from tripod.ledger.tlog.note import ED25519, Note, VerifierKey, parse_note
from tripod.ledger.tlog.seal import open_seal, read_seal, rotation_problem
from tripod.verify.rows import RowReader

ERASED = "erased"
_LISTED = 1_000  # differences in content that are named; the others are counted
_LEAST = -(2**63)  # a number of SQLite
_BLOB = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, LedgerError)


class FoundSeal(NamedTuple):
    """A seal that a side holds: over how many entries, with which root, signed by which key.

    ``key`` is '' where no key of the side's entries signed it. ``where`` says where it stands,
    ``note`` is what is signed, with the signatures.
    """

    size: int
    root: bytes
    key: str
    where: str
    note: bytes = b""


@dataclass
class LedgerSide:
    """One of the two ledgers. ``only`` counts its entries that the other holds nowhere.

    ``notes`` are seals beside the entries, each with its place. ``seals`` are those found, and
    ``roots`` what its entries give at each size that a seal of either side has. ``problem`` says
    where its rows end before they should. ``first_only`` are the first of the ``only``.
    """

    ledger: RowReader
    notes: tuple[tuple[str, bytes], ...] = ()
    size: int = 0
    seals: list[FoundSeal] = field(default_factory=list)
    roots: dict[int, bytes] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    only: int = 0
    first_only: list[RawEntry] = field(default_factory=list)
    problem: str = ""

    def fits(self, seal: FoundSeal) -> bool | None:
        """Whether the entries have the root of a seal; None where there are fewer."""
        root = self.roots.get(seal.size)
        return None if root is None else root == seal.root

    def good(self) -> FoundSeal | None:
        """The newest seal that a key of these entries signed, and that they fit."""
        good = [seal for seal in self.seals if seal.key and self.fits(seal)]
        return max(good, key=lambda seal: seal.size, default=None)

    def broken(self) -> FoundSeal | None:
        """The oldest signed seal that the entries do not fit."""
        bad = [seal for seal in self.seals if seal.key and not self.fits(seal)]
        return min(bad, key=lambda seal: seal.size, default=None)


@dataclass
class LedgerDifference:
    """What two ledgers have in common, and where they part.

    The first ``common`` entries have the same headers on both sides. ``first`` is the number of the
    entry at which they part, with the row of each side (None: it has no such entry); ``apart``
    names the columns. Both None: they are the same. ``contents`` are entries of the common part
    whose body, salt, signature record or blob differs on the disk, with what does: no header
    changes by that. ``forked`` is a key that sealed two histories, with both seals.
    """

    sides: tuple[LedgerSide, LedgerSide]
    common: int = 0
    first: int | None = None
    rows: tuple[RawEntry | None, RawEntry | None] = (None, None)
    apart: tuple[str, ...] = ()
    contents: list[tuple[int, str]] = field(default_factory=list)
    contents_count: int = 0
    forked: tuple[FoundSeal, FoundSeal] | None = None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.first is None and not self.contents_count

    @property
    def are_apart(self) -> bool:
        """Whether they are two ledgers from their first entries on, such as two replicas."""
        return self.first == 0 and None not in self.rows and "id" in self.apart

    @property
    def problem(self) -> str:
        """Why it cannot be told whether they differ; '' where it can."""
        problems = [side.problem for side in self.sides if side.problem]
        return problems[0] if self.same and problems else ""


def compare_ledgers(one: LedgerSide, two: LedgerSide, listed: int) -> LedgerDifference:
    """Compare two ledgers; of the entries that only one has, the first ``listed`` are given."""
    found = LedgerDifference((one, two))
    for side in found.sides:
        find_seals(side)
    sizes = {seal.size for side in found.sides for seal in side.seals}
    walks = [walk_entries(side, sizes) for side in found.sides]
    bodies = one.ledger.bodies and two.ledger.bodies
    while True:
        rows = (next(walks[0], None), next(walks[1], None))
        if rows == (None, None):
            break
        if rows[0] is None or rows[1] is None or _header_parts(rows[0], rows[1]):
            if (rows[0] is None and one.problem) or (rows[1] is None and two.problem):
                break  # the rows that would be compared cannot be read
            found.first, found.rows = found.common, rows
            if rows[0] is not None and rows[1] is not None:
                found.apart = _header_parts(rows[0], rows[1])
            _collect_only(found, walks, listed)
            break
        found.common += 1
        what = _content_parts(rows[0], rows[1]) if bodies else ""
        what = what or (_blob_parts(one.ledger, two.ledger, rows[0]) if bodies else "")
        if what:
            found.contents_count += 1
            if len(found.contents) < _LISTED:
                found.contents.append((rows[0].seq, what))
    found.forked = _fork_proof(found)
    return found


def _header_parts(one: RawEntry, two: RawEntry) -> tuple[str, ...]:
    names = ("seq", "header", "id", "kind", "stream")
    return tuple(name for name in names if getattr(one, name) != getattr(two, name))


def _content_parts(one: RawEntry, two: RawEntry) -> str:
    """What differs beside two equal headers; ``erased`` where one side has no body any more."""
    if one.body is None and one.salt is None and two.body is not None:
        return f"{ERASED} in A"
    if two.body is None and two.salt is None and one.body is not None:
        return f"{ERASED} in B"
    names = ("body", "salt", "auth")
    return ", ".join(name for name in names if getattr(one, name) != getattr(two, name))


def _blob_parts(one: RowReader, two: RowReader, row: RawEntry) -> str:
    """What differs in the blobs that a body names, by their digests the same ones on both sides."""
    for name in _BLOB.findall(row.body) if type(row.body) is bytes else ():
        digest = bytes.fromhex(name.decode())
        here, there = one.blob(digest), two.blob(digest)
        if here != there:
            return "blob" if here and there else f"no blob in {'A' if here is None else 'B'}"
    return ""


def walk_entries(side: LedgerSide, sizes: set[int]) -> Iterator[RawEntry]:
    """The rows of a side in order, as its tree is built over them."""
    tree: Tree | None = Tree()
    if 0 in sizes:
        side.roots[0] = Tree().root()
    side.ledger.problem = ""
    for row in tell_over(side.ledger.raw(_LEAST), "comparing entries"):
        if row.seq < 0:
            side.problem = f"it holds an entry of the number {row.seq}"
            continue
        if tree is None or row.seq != tree.size or type(row.header) is not bytes:
            tree = None  # an entry is missing: what follows has no root
        else:
            tree.append(entry_leaf_hash(row.header))
            if tree.size in sizes:
                side.roots[tree.size] = tree.root()
        side.size = row.seq + 1
        yield row
    if side.ledger.problem:
        side.problem = f"entry {side.size} cannot be read: {side.ledger.problem}"


def _collect_only(
    found: LedgerDifference, walks: Sequence[Iterator[RawEntry]], listed: int
) -> None:
    """Read both sides to their ends; an entry that the other side has too is not its own."""
    for at, side in enumerate(found.sides):
        other, row = found.sides[1 - at].ledger, found.rows[at]
        while row is not None:
            if other.seq_of(row.id) is None and not _is_merged(side.ledger, row, other):
                side.only += 1
                if len(side.first_only) < listed:
                    side.first_only.append(row)
            row = next(walks[at], None)


def _is_merged(ledger: RowReader, row: RawEntry, other: RowReader) -> bool:
    """Whether one of two replicas made an entry, and the other merged it."""
    with suppress(*_BROKEN):
        if row.kind == MERGED:
            kept = read_kept(_data(row), ledger.blob)
            return any(one.header == kept.header for one in other.raw_of([kept.seq]))
        line = parse_header(row.header).ledger
        at = other.seq_of(peer_entry_id(line, row.seq))
        there = () if at is None else other.raw_of([at])
        return any(read_kept(_data(one), other.blob).header == row.header for one in there)
    return False


# Seals ------------------------------------------------------------------------------------------


def find_seals(side: LedgerSide) -> None:
    """Find the keys that a side's entries set, and the seals that they and its files hold.

    Of each line the first key counts, and each later one for which the key before it vouches:
    anybody who can write to the database can add an entry that sets another.
    """
    keys: list[VerifierKey] = []
    in_force: dict[str, VerifierKey] = {}
    for row in side.ledger.raw(kinds=("key.set",)):
        with suppress(*_BROKEN):
            said, line = _data(row), parse_header(row.header).ledger
            key = VerifierKey.parse(said["vkey"])
            old = in_force.get(line)
            is_vouched = old is None or rotation_problem(said["note"], line, old, key) is None
            if key.kind == ED25519 and key.name == line and is_vouched:
                in_force[line] = key
                keys.append(key)
                side.keys.setdefault(str(said["vkey"]), row.seq)
    notes = [*side.notes]
    for row in side.ledger.raw(kinds=("seal.made",)):
        with suppress(*_BROKEN):
            notes.append((f"entry {row.seq}", _data(row)["note"].encode()))
    for where, data in notes:
        with suppress(*_BROKEN):
            note, seal = parse_note(data), read_seal(data)
            side.seals.append(FoundSeal(seal.size, seal.root, _signer(note, keys), where, data))


def _data(row: RawEntry) -> dict[str, Any]:
    return dict(orjson.loads(row.body or b""))


def _signer(note: Note, keys: Sequence[VerifierKey]) -> str:
    """Which of the keys, as text, signed a seal; '' for none."""
    try:
        return open_seal(note, keys).signers[0].format()
    except LedgerError:
        return ""


def _fork_proof(found: LedgerDifference) -> tuple[FoundSeal, FoundSeal] | None:
    """Two seals by one key over the entry at which the sides part, each fitting its own side."""
    oldest: list[dict[str, FoundSeal]] = []
    for side in found.sides:
        over = [seal for seal in side.seals if seal.key and seal.size > found.common]
        over.sort(key=lambda seal: -seal.size)
        oldest.append({seal.key: seal for seal in over if side.fits(seal)})
    shared = sorted(oldest[0].keys() & oldest[1].keys())
    return (oldest[0][shared[0]], oldest[1][shared[0]]) if shared else None
