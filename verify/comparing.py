"""Brings the ledger and what is remembered outside together: roots, receipts, tail, level."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace

from ledger.errors import LedgerError
from ledger.ids import parse_at
from ledger.seal import Seal, format_seal
from ledger.vkey import VerifierKey
from verify.evidence import Evidence
from verify.extends import Fork, Held, Ledger, compare, demanded, trusted, wanted_size
from verify.finding import Anchored, Scanned
from verify.known import Known, anchored, opened
from verify.receipts import read_receipts, rows
from verify.roots import roots_at

__all__ = ["agreeing", "hold", "pin_of"]

_KEPT_BY = "('seal.made', 'anchor.received')"
"""Kinds of entries that only say what became of entries before them: no tail needs an anchor."""


def hold(evidence: Evidence) -> Held | None:
    """Hold the ledger against every head that is known; None where nothing was scanned."""
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or not scan.head[0]:
        return None
    outside = replace(evidence.outside)
    read_receipts(evidence, db, outside)
    roots = roots_at(db, scan, (known.seal.size for known in outside.known))
    seals = len(rows(evidence, db, "SELECT seq FROM seals LIMIT 1"))
    ledger = Ledger(
        scan.origin,
        scan.head[0],
        roots,
        [Fork(*row) for row in rows(evidence, db, "SELECT seq, origin, size FROM forks")],
        list(_keys(evidence, db)),
        seals or int(evidence.loaded),  # what was read from files was read by its seal
        evidence.bodies,
    )
    told = compare(outside, ledger)
    reached = anchored(told.agreeing, outside.policy)
    size = max((size for size, _ in reached.sizes.values()), default=0)
    tail, seconds = _tail(evidence, db, size, scan)
    told.anchored = Anchored(reached.level, reached.sizes, tail, seconds)
    wanted = wanted_size(outside.rules, reached)
    demanded(told, outside.rules, reached, _tail(evidence, db, wanted, scan))
    return told


def agreeing(evidence: Evidence) -> list[Known]:
    """Every head that is known and is this ledger's, by its stored tree: no row is read for it."""
    db, outside = evidence.db, replace(evidence.outside)
    if db is None:
        return []
    read_receipts(evidence, db, outside)
    ours = list(_keys(evidence, db))
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
    for seq, sealed, note in rows(
        evidence, db, "SELECT seq, size, note FROM seals ORDER BY seq DESC LIMIT 1"
    ):
        tail, _ = _tail(evidence, db, sealed, scan)
        if not tail and sealed <= seq and isinstance(note, str):
            return note.encode()
    return format_seal(Seal(scan.origin, size, bytes.fromhex(root))).encode()


def _tail(evidence: Evidence, db: sqlite3.Connection, size: int, scan: Scanned) -> tuple[int, int]:
    """How many entries stand behind ``size``, and for how many seconds the first of them has."""
    try:
        count, first = db.execute(
            f"SELECT count(*), min(seq) FROM entries WHERE seq >= ? AND kind NOT IN {_KEPT_BY}",
            (size,),
        ).fetchone()
    except sqlite3.Error:
        return scan.head[0] - size, 0
    if not count:
        return 0, 0
    try:
        at = parse_at(evidence.at(first))
    except ValueError:
        return count, 0
    return count, max(0, evidence.now_us - at) // 1_000_000


def _keys(evidence: Evidence, db: sqlite3.Connection) -> Iterator[VerifierKey]:
    """Keys that were given, and those that the ledger says were in force."""
    yield from evidence.keys
    for (vkey,) in rows(evidence, db, "SELECT vkey FROM keys"):
        try:
            yield VerifierKey.parse(vkey)
        except (LedgerError, AttributeError):
            continue  # `seals-open` names it
