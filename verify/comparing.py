"""Brings the ledger and what is remembered outside together: roots, receipts, tail, level."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import orjson

from ledger.errors import LedgerError
from ledger.ids import parse_at
from ledger.seal import Seal, format_seal
from ledger.vkey import VerifierKey
from projections.projection import Source, content_bytes
from projections.tables import source_of
from verify.evidence import Evidence
from verify.extends import Compared, Fork, Ledger, compare, demanded
from verify.finding import Anchored, Scanned
from verify.known import Known, anchored, parse_head
from verify.roots import roots_at
from verify.rules import LEVELS, PINNED

__all__ = ["agreeing", "hold", "pin_of"]

_KEPT_BY = "('seal.made', 'anchor.received')"
"""Kinds of entries that only say what became of entries before them: no tail needs an anchor."""


def hold(evidence: Evidence) -> Compared | None:
    """Hold the ledger against every head that is known; None where nothing was scanned."""
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or not scan.head[0]:
        return None
    outside = evidence.outside
    outside.known += tuple(receipts(evidence, db))
    roots = roots_at(db, scan, (known.seal.size for known in outside.known))
    ledger = Ledger(
        scan.origin,
        scan.head[0],
        roots,
        [Fork(*row) for row in _rows(evidence, db, "SELECT seq, origin, size FROM forks")],
        list(_keys(evidence, db)),
        len(_rows(evidence, db, "SELECT seq FROM seals LIMIT 1")),
    )
    told = compare(outside, ledger)
    told.anchored = _level(evidence, db, scan, told)
    wanted = outside.rules.level or PINNED
    size = max(
        (told.anchored.sizes[name][0] for name in LEVELS[1:] if name in told.anchored.sizes
         and LEVELS.index(name) >= LEVELS.index(wanted)),
        default=0,
    )  # fmt: skip
    told.findings += demanded(outside, told.anchored.level, _tail(evidence, db, size, scan))
    return told


def agreeing(evidence: Evidence) -> list[Known]:
    """Every head that is known and is this ledger's, by its stored tree: no row is read for it."""
    db = evidence.db
    if db is None:
        return []
    known = (*evidence.outside.known, *receipts(evidence, db))
    return [one for one in known if evidence.heads.root_at(one.seal.size) == one.seal.root]


def pin_of(evidence: Evidence) -> bytes | None:
    """What a pin should hold: all that this run has seen; None where there is nothing.

    It is the newest seal where nothing of substance stands behind it, so that others can check who
    signed it; else the plain head, which covers more.
    """
    db, scan = evidence.db, evidence.scan
    if db is None or scan is None or not scan.head[0]:
        return None
    size, root = scan.head
    for seq, sealed, note in _rows(
        evidence, db, "SELECT seq, size, note FROM seals ORDER BY seq DESC LIMIT 1"
    ):
        tail, _ = _tail(evidence, db, sealed, scan)
        if not tail and sealed <= seq and isinstance(note, str):
            return note.encode()
    return format_seal(Seal(scan.origin, size, bytes.fromhex(root))).encode()


def _level(evidence: Evidence, db: sqlite3.Connection, scan: Scanned, told: Compared) -> Anchored:
    reached = anchored(told.agreeing, evidence.outside.policy)
    size = max((size for size, _ in reached.sizes.values()), default=0)
    tail, seconds = _tail(evidence, db, size, scan)
    return Anchored(reached.level, reached.sizes, tail, seconds)


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


def _rows(evidence: Evidence, db: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    """From the folded tables; where only new entries are looked at, from the ledger's own."""
    if evidence.folded is not None:
        return evidence.query(sql)
    try:
        return db.execute(sql).fetchall()
    except sqlite3.Error:
        return []


def _keys(evidence: Evidence, db: sqlite3.Connection) -> Iterator[VerifierKey]:
    for (vkey,) in _rows(evidence, db, "SELECT vkey FROM keys"):
        try:
            yield VerifierKey.parse(vkey)
        except (LedgerError, AttributeError):
            continue  # `seals-open` names it


def receipts(evidence: Evidence, db: sqlite3.Connection) -> Iterator[Known]:
    """Receipts that the ledger holds: what they say of it, and the notes that others signed."""
    source = source_of(db) if evidence.folded is None else evidence.source
    for seq, method, name, size, root in _rows(
        evidence, db, "SELECT seq, method, name, size, root FROM anchors"
    ):
        where = f"the receipt of {method} {name} in entry {seq}"
        origin = _origin(db, seq)
        try:
            seal, note = parse_head(_receipt(source, seq))
        except (LedgerError, LookupError, ValueError, TypeError):
            seal, note = Seal(origin, size, bytes.fromhex(root)), None
        if (seal.size, seal.root.hex()) != (size, root):
            seal, note = Seal(origin, size, bytes.fromhex(root)), None
        # What the ledger says of itself vouches for nothing: only a signature in it can.
        yield Known("receipt", where, seal, None, note, seq=seq)


def _receipt(source: Source, seq: int) -> bytes:
    return content_bytes(source, source.body(seq)["receipt"])


def _origin(db: sqlite3.Connection, seq: int) -> str:
    """The line that an entry belongs to."""
    row = db.execute("SELECT header FROM entries WHERE seq = ?", (seq,)).fetchone()
    try:
        return str(orjson.loads(row[0])["ledger"])
    except (TypeError, ValueError, LookupError):
        return ""
