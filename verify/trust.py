"""What the ledger says of its keys, seals, receipts and forks: from the fold, or without one.

Where only new entries are looked at nothing is folded. Then the ledger's own tables say where to
look, and no more: each row is made anew from the entry that it names, if its body is the one that
it committed to. A row that was left out lowers what the ledger can claim; one that was made up has
no such entry.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from ledger.entry import Entry
from projections import TRUST
from verify.checks import bodies_present, canonical_bytes
from verify.evidence import Evidence
from verify.rows import all_rows, entry_of

_NEWEST = "SELECT seq, size, root, note FROM seals ORDER BY seq DESC LIMIT 1"


class Trust(NamedTuple):
    """Rows of the tables of ``projections.trust``; of the seals the newest alone."""

    keys: list[tuple[Any, ...]]
    anchors: list[tuple[Any, ...]]
    forks: list[tuple[Any, ...]]
    seals: list[tuple[Any, ...]]


def trust_of(evidence: Evidence, db: sqlite3.Connection) -> Trust:
    """See the module; empty where an export holds headers alone."""
    tables = {
        "keys": "SELECT seq, vkey FROM keys ORDER BY seq",
        "anchors": "SELECT seq, method, name, size, root FROM anchors ORDER BY seq",
        "forks": "SELECT seq, origin, size, root FROM forks ORDER BY seq",
        "seals": _NEWEST,
    }
    if evidence.folded is not None:
        return Trust(**{name: evidence.query(sql) for name, sql in tables.items()})
    return Trust(**{name: _anew(db, name, sql) for name, sql in tables.items()})


def _anew(db: sqlite3.Connection, table: str, sql: str) -> list[tuple[Any, ...]]:
    try:
        named = db.execute(sql).fetchall()
        return [row for seq, *_ in named for row in _folded(db, table, seq)]
    except sqlite3.Error:
        return []


def _folded(db: sqlite3.Connection, table: str, seq: object) -> list[tuple[Any, ...]]:
    """What the entry ``seq`` gives for a table; nothing where it is none of them."""
    entry = entry_at(db, seq)
    try:
        if entry is not None and entry.kind in TRUST.kinds:
            return [tuple(op[2]) for op in TRUST.fold(entry) if op[0] == table]
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return []


def entry_at(db: sqlite3.Connection, seq: object) -> Entry | None:
    """The entry ``seq`` with the body that it committed to; None where that is not there.

    Raises:
        sqlite3.Error: the database cannot be read there.
    """
    if type(seq) is not int:
        return None
    for row in all_rows(db, seq, seq + 1):
        header = canonical_bytes.read_header(row[4])
        if isinstance(header, str) or header.seq != seq:
            continue
        if bodies_present.body_problem(header, *row[5:7]) is None:
            return entry_of(db, row)
    return None
