"""The tree's root at any size, and the ledger's name at any entry, from untrusted rows.

The stored subtree roots are used, so that a root costs a few hundred rows at most; the check
``sequence`` compares those with the entries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import lru_cache

from tripod.ledger import EMPTY_ROOT, LedgerError, Tree, leaf_hash, parse_header, root_of
from tripod.ledger.sqlite.reader import block_nodes
from tripod.verify.check import Scanned
from tripod.verify.rows import one

BLOCK = 256
_HEADERS = "SELECT header FROM entries WHERE seq >= ? AND seq < ? ORDER BY seq"
_BLOCKS = "SELECT hash FROM nodes WHERE level = 1 AND number < ? ORDER BY number"


def roots_at(db: sqlite3.Connection, scan: Scanned, sizes: Iterable[int]) -> dict[int, bytes]:
    """Root of the first so many entries, for each of ``sizes`` that the ledger has.

    One walk over the blocks serves all. Empty where rows are missing: there is no tree then.
    """
    found: dict[int, bytes] = {}
    if not scan.whole:
        return found
    tree, done = Tree(), 0
    for size in sorted({size for size in sizes if 0 <= size <= scan.head[0]}):
        while done < size // BLOCK:
            tree.append(scan.blocks[32 * done : 32 * done + 32])
            done += 1
        tree.full.clear()
        root = grown(db, tree, size)
        if root is not None:
            found[size] = root
    return found


def blocks_before(db: sqlite3.Connection, size: int) -> bytes:
    """The stored roots of the full blocks below ``size``; they are as good as what they give."""
    rows = db.execute(_BLOCKS, (size // BLOCK,)).fetchall()
    return b"".join(row[0] for row in rows if type(row[0]) is bytes and len(row[0]) == 32)


def grown(db: sqlite3.Connection, blocks: Tree, size: int) -> bytes | None:
    """Root at ``size`` from the tree over its full blocks; None where an entry is missing."""
    start = blocks.size * BLOCK
    rows = db.execute(_HEADERS, (start, size)).fetchall()
    if len(rows) != size - start or any(type(header) is not bytes for (header,) in rows):
        return None
    rest = Tree()
    for (header,) in rows:
        rest.append(leaf_hash(header))
    if not blocks.size:
        return rest.root() if size else EMPTY_ROOT
    return Tree(size, [*blocks.stack, *rest.stack]).root()


# Heads ------------------------------------------------------------------------------------------

_KEPT = 2**16  # hashes


class Heads:
    """Roots and origins of the ledger at any of its entries, from unverified rows."""

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
