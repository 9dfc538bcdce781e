"""Holds queue and chats against the ledger's *own* tables, beside the fold of a large ledger.

Those tables are evidence, not truth. What is found here counts only once they turned out to equal
the fold, over the same head; else the files are compared with what was folded, like all others.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ledger.reader import read_only
from projections import BUS
from projections.disk import Disk
from projections.manifest import Manifest
from projections.projection import File
from projections.rebuild import agreed_chats, compare
from verify.rows import one
from verify.sources import RENDER_ERRORS, source_over


class Compared(NamedTuple):
    """What agreed with the ledger's own tables.

    ``head`` is the head row that they were read beside, ``chats`` are the files of chats that
    agree, ``queue`` says whether every event file does.
    """

    head: tuple[object, ...] | None
    chats: Manifest
    queue: bool


def compare_own(path: str, disk: Disk) -> Compared | None:
    """Look at the files of a team; None where its ledger's tables cannot be asked."""
    try:
        db = read_only(path)
        db.execute("PRAGMA cache_size=-256")  # each page is asked for once
        db.execute("BEGIN")
        source = source_over(db, db, {}, {})
        chats = agreed_chats(source, disk, RENDER_ERRORS)
        queue = all(_agrees(disk, at, render()) for at, render in BUS.renders(source))
        return Compared(head_of(db), chats, queue)
    except (*RENDER_ERRORS, OSError):
        return None


def _agrees(disk: Disk, path: str, want: File | None) -> bool:
    return want is not None and compare(disk, path, want) is None


def head_of(db: sqlite3.Connection) -> tuple[object, ...] | None:
    """What the head row says of size and newest entry."""
    return one(db, "SELECT size, last FROM head")
