"""Roots and names that the ledger had at any of its entries, from rows that nobody vouches for.

The stored subtree roots are used, so that a root costs a few hundred rows at most; the check
``sequence`` holds those against the entries.
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache

from ledger.entry import parse_header
from ledger.errors import LedgerError
from ledger.merkle import root_of
from ledger.reader import block_nodes
from verify.rows import one

_KEPT = 2**16  # hashes


class Heads:
    """See the module."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._nodes = lru_cache(_KEPT)(block_nodes(db))

    def root_at(self, size: int) -> bytes | None:
        """The root of the tree over the first entries; None where they cannot all be read."""
        try:
            return root_of(self._nodes, 0, size)
        except (sqlite3.Error, TypeError, LookupError, OverflowError):
            return None

    def line(self, seq: int) -> str:
        """The name that the ledger has at an entry, '' where it cannot be read.

        A restored copy goes on under another, which each of its headers bears.
        """
        row = one(self._db, "SELECT header FROM entries WHERE seq = ?", (seq,))
        try:
            return "" if row is None else parse_header(row[0]).ledger
        except (LedgerError, TypeError):
            return ""
