"""Judges only what was appended behind a pin: the cost is that of the new entries.

The stored roots of full blocks are read, one for 256 entries; together with the entries of the last
block they must give the pinned root. Then they are the roots of what was pinned, and the tree goes
on from them. The rows before are not read again: whoever altered one since stays unseen until the
next whole run, which names it.
"""

from __future__ import annotations

import sqlite3

from ledger.entry import Header, leaf_hash
from ledger.merkle import Tree
from ledger.seal import Seal
from verify.checks import canonical_bytes
from verify.finding import Scanned
from verify.roots import BLOCK, blocks_before, grown
from verify.rows import one
from verify.storage import new_pass, settle

_HEADER = "SELECT header FROM entries WHERE seq = ?"


def scan_since(db: sqlite3.Connection, pin: Seal) -> Scanned | None:
    """Look at the entries behind the pin; None where the stored tree does not give its root.

    The block that the pin ends in is looked at again: its rows are what ties the new ones to it.
    """
    start = max(0, pin.size - 1) // BLOCK * BLOCK
    if not start:
        return None  # so few entries are pinned that all are looked at
    try:
        blocks = blocks_before(db, pin.size)
        root = None if len(blocks) != pin.size // BLOCK * 32 else grown(db, _tree(blocks), pin.size)
        before = one(db, _HEADER, (start - 1,))
    except sqlite3.Error:
        return None
    header = None if before is None else canonical_bytes.read_header(before[0])
    if root != pin.root or before is None or not isinstance(header, Header):
        return None
    passed = new_pass(db, start)
    passed.expected, passed.prev = start, leaf_hash(before[0]).hex()
    passed.at, passed.origin = header.at, header.ledger
    passed.run()
    passed.blocks[:0] = blocks[: start // BLOCK * 32]
    passed.leaves += start
    return settle(passed)


def _tree(blocks: bytes) -> Tree:
    tree = Tree()
    for at in range(0, len(blocks), 32):
        tree.append(blocks[at : at + 32])
    return tree
