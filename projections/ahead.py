"""Whether the files are ahead of the ledger: then it was rolled back or swapped.

A restored backup must not take its own later acts in as if they were somebody else's: that would
launder history. ``counts.json``, which only we write, names the newest entry that it counts; a
ledger that does not hold that entry is not the one that wrote it. Acts on the bus alone do not
move that mark, and whoever removes the file removes it: outside witnesses are for anchors.
"""

from __future__ import annotations

import sqlite3

from projections.counts import PATH, counted_entry
from projections.disk import Disk, UnreadableError

_LIMIT = 16 * 1024 * 1024


def ahead_of(db: sqlite3.Connection | None, disk: Disk) -> str | None:
    """Say which entry the files show that the ledger ``db`` (None: there is none) does not hold."""
    try:
        data = disk.read(PATH, _LIMIT)
    except UnreadableError:
        return None
    counted = None if data is None else counted_entry(data)
    if counted is None:
        return None
    seq, entry_id = counted
    row = None
    if db is not None and 0 <= seq < 2**62:
        row = db.execute("SELECT id FROM entries WHERE seq = ?", (seq,)).fetchone()
    if row is not None and row[0] == entry_id:
        return None
    where = "there is no ledger here" if db is None else "this ledger does not hold it"
    return f"{PATH} counts entry {seq} ({entry_id}), and {where}"
