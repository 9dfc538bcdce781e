"""Brings the ledger and what is remembered outside together: roots, receipts, tail, level."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ledger.errors import LedgerError
from ledger.ids import parse_at
from ledger.rotation import fork_signers, fork_text
from ledger.seal import Seal, format_seal
from ledger.vkey import VerifierKey
from verify.evidence import Evidence
from verify.extends import Fork, Held, Ledger, compare, demanded, trusted, wanted_size
from verify.finding import Anchored, Scanned
from verify.known import Known, anchored, opened, parse_head
from verify.receipts import read_receipts
from verify.roots import roots_at
from verify.rows import one
from verify.trust import Trust, entry_at, trust_of

# Seals and receipts only say what became of entries before them: no tail of these needs an anchor.
_KEPT = (
    "SELECT seq FROM seals WHERE seq >= ? UNION ALL SELECT seq FROM anchors WHERE seq >= ?"
    " ORDER BY 1"
)
_BEHIND = (
    "SELECT count(*), min(seq) FROM entries"
    " WHERE seq >= ? AND kind NOT IN ('seal.made', 'anchor.received')"
)


def hold(evidence: Evidence) -> Held | None:
    """Hold the ledger against every head that is known; None where nothing was scanned."""
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or not scan.head[0]:
        return None
    outside, trust = replace(evidence.outside), trust_of(evidence, db)
    read_receipts(evidence, db, trust, outside)
    roots = roots_at(db, scan, (known.seal.size for known in outside.known))
    keys = list(dict.fromkeys(_keys(evidence, trust)))
    ledger = Ledger(
        scan.origin,
        scan.head[0],
        roots,
        [_fork(evidence, db, row, trusted(outside, keys, row[1])) for row in trust.forks],
        keys,
        len(trust.seals) or int(evidence.loaded),  # what was read from files has the seal there
        evidence.bodies,
        evidence.keys,
    )
    told = compare(outside, ledger)
    reached = anchored(told.agreeing, outside.policy)
    size = max((size for size, _ in reached.sizes.values()), default=0)
    tail = _tail(evidence, db, size, scan)
    told.anchored = Anchored(reached.level, reached.sizes, *tail)
    wanted = wanted_size(outside.rules, reached)
    if wanted != size:
        tail = _tail(evidence, db, wanted, scan)
    demanded(told, outside.rules, reached, tail)
    return told


def _fork(
    evidence: Evidence, db: sqlite3.Connection, row: Sequence[Any], keys: Sequence[VerifierKey]
) -> Fork:
    """A row of the forks, with those of ``keys`` that signed that the old line ends there."""
    seq, origin, size, root = row[:4]
    signers: list[VerifierKey] = []
    entry = entry_at(db, seq)
    if entry is not None and keys:
        try:
            text = fork_text(origin, size, bytes.fromhex(root), evidence.heads.line(seq))
        except (LedgerError, ValueError):
            return Fork(seq, origin, size)
        signers = fork_signers(str(entry.data.get("note", "")), text, keys)
    return Fork(seq, origin, size, signers)


def agreeing(evidence: Evidence) -> list[Known]:
    """Every head that is known and is this ledger's, by its stored tree: no row is read for it."""
    db, outside = evidence.db, replace(evidence.outside)
    if db is None:
        return []
    trust = trust_of(evidence, db)
    read_receipts(evidence, db, trust, outside)
    ours = list(_keys(evidence, trust))
    found = []
    for known in outside.known:
        if evidence.heads.root_at(known.seal.size) == known.seal.root:
            keys = trusted(outside, ours, known.seal.origin)
            one, problem = opened(known, keys, outside.policy)
            if not problem:
                found.append(one)
    return found


def pin_of(evidence: Evidence) -> bytes | None:
    """What a pin should hold: all that this run has seen; None where there is nothing.

    It is the newest seal where nothing of substance stands behind it, so that others can check who
    signed it; else the plain head, which covers more.
    """
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or not scan.head[0]:
        return None
    size, root = scan.head
    trust = trust_of(evidence, db)
    before = max(
        (known.seal.size for known in evidence.outside.known if known.method == "pin"), default=0
    )
    for _, sealed, _, note in trust.seals:
        roots = roots_at(db, scan, [sealed]) if before <= sealed <= size else {}
        want = Seal(scan.origin, sealed, roots.get(sealed, b""))
        if _signed(evidence, trust, note, want) and not _tail(evidence, db, sealed, scan)[0]:
            return str(note).encode()
    return format_seal(Seal(scan.origin, size, bytes.fromhex(root))).encode()


def agrees(evidence: Evidence, seal: Seal) -> bool:
    """Whether a head is one of the ledger's own line, which was judged."""
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or seal.origin != scan.origin:
        return False
    return roots_at(db, scan, [seal.size]).get(seal.size) == seal.root


def _signed(evidence: Evidence, trust: Trust, note: object, want: Seal) -> bool:
    """Whether a note is the seal of this head, by a key that may have sealed it."""
    try:
        seal, signed = parse_head(str(note).encode())
    except (LedgerError, ValueError):
        return False
    keys = trusted(evidence.outside, _keys(evidence, trust), want.origin)
    return seal == want and not opened(Known("pin", "", seal, note=signed), keys, None)[1]


def _tail(evidence: Evidence, db: sqlite3.Connection, size: int, scan: Scanned) -> tuple[int, int]:
    """How many entries stand behind ``size``, and for how many seconds the first of them has."""
    if evidence.folded is not None:
        kept = [seq for (seq,) in evidence.query(_KEPT, size, size)]
        count, first = scan.head[0] - size - len(kept), size
        for seq in kept:
            if seq != first:
                break
            first += 1
    else:
        row = one(db, _BEHIND, (size,))
        count, first = (scan.head[0] - size, size) if row is None else row
    if count <= 0:
        return 0, 0
    try:
        at = parse_at(evidence.at(first))
    except ValueError:
        return count, 0
    return count, max(0, evidence.now_us - at) // 1_000_000


def _keys(evidence: Evidence, trust: Trust) -> Iterator[VerifierKey]:
    """Keys that were given, and those that the ledger says were in force."""
    yield from evidence.keys
    for _, vkey in trust.keys:
        try:
            yield VerifierKey.parse(vkey)
        except (LedgerError, AttributeError):
            continue  # `seals-open` names it
