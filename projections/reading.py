"""Who has read what: each handle's read position in each channel, and events that address one.

Tables alone. A position is absolute: the newest entry on it says all. ``chat/*.chat.cursors``
tells the original tool as much of it as that file can hold (``tripod.positions`` writes it).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ledger.entry import Entry
from projections.projection import Op, Source, TableAlone

_POSITION = (
    "INSERT OR REPLACE INTO cursors (channel, handle, upto, beyond, lines, seq)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_ADDRESSED = "INSERT INTO addressed (seq, handle) VALUES (?, ?)"


class Position(NamedTuple):
    """What a handle has read: numbers below ``upto``, and the ranges [first, stop) of ``beyond``.

    Its own messages from the number ``lines`` on count as read as well.
    """

    upto: int = 0
    beyond: Sequence[tuple[int, int]] = ()
    lines: int = 0


class Reading(TableAlone):
    """See the module."""

    name = "reading"
    version = 1
    tables = ("cursors", "addressed")
    ddl = """
CREATE TABLE cursors (
    channel TEXT NOT NULL,
    handle TEXT NOT NULL,
    upto INTEGER NOT NULL,
    beyond TEXT NOT NULL,
    lines INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (channel, handle)
) STRICT, WITHOUT ROWID;
CREATE TABLE addressed (
    seq INTEGER PRIMARY KEY,
    handle TEXT NOT NULL
) STRICT;
CREATE INDEX addressed_handle ON addressed (handle);
"""
    kinds = frozenset(("chat.read", "chat.cursors-seen", "bus.published"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep the newest position of each handle, and to whom an event is addressed."""
        body = entry.data
        if entry.kind == "bus.published":
            to = body.get("to")
            return () if to is None else (("addressed", _ADDRESSED, (entry.seq, to), None),)
        channel = body["channel"]
        if entry.kind == "chat.read":
            beyond = json.dumps([[part["first"], part["stop"]] for part in body["beyond"]])
            row = (channel, body["handle"], body["upto"], beyond, body["lines"], entry.seq)
            return (("cursors", _POSITION, row, None),)
        lines = body["lines"]
        rows = ((channel, at["handle"], at["upto"], "[]", lines, entry.seq) for at in body["moved"])
        return [("cursors", _POSITION, row, None) for row in rows]


def position(source: Source, channel: str, handle: str) -> Position | None:
    """What a handle has read of a channel; None where nothing says so yet."""
    row = source.db.execute(
        "SELECT upto, beyond, lines FROM cursors WHERE channel = ? AND handle = ?",
        (channel, handle),
    ).fetchone()
    return None if row is None else Position(row[0], json.loads(row[1]), row[2])


def unread(source: Source, channel: str, handle: str) -> Iterator[tuple[int, int]]:
    """Number and entry of every message that a handle has not read, oldest first.

    Also those that were split off into archives since; not what the files were told to forget,
    and not its own.
    """
    at = position(source, channel, handle) or Position()
    rows = source.db.execute(
        "SELECT number, seq FROM lines WHERE channel = ?1 AND number >= ?2 AND handle IS NOT NULL"
        " AND gone IS NULL AND NOT (handle = ?3 AND number >= ?4) ORDER BY number",
        (channel, at.upto, handle, at.lines),
    )
    ranges = iter(sorted(map(tuple, at.beyond)))
    first, stop = next(ranges, (2**62, 2**62))
    for number, seq in rows:
        while number >= stop:
            first, stop = next(ranges, (2**62, 2**62))
        if number < first:
            yield number, seq


def index_of(source: Source, channel: str, handle: str) -> int | None:
    """The read position of a handle as the original tool counts it: the last message it has read.

    The index of the last message in the live file before the first that is unread, so that
    nothing is passed over; None where that is the first one there, or none is there at all.
    """
    db = source.db
    start = db.execute("SELECT live_from FROM channels WHERE channel = ?", (channel,)).fetchone()
    if start is None:
        return None
    somebody = db.execute(
        "SELECT 1 FROM participants WHERE channel = ?1 AND handle <> ?2"
        " UNION ALL SELECT 1 FROM cursors WHERE channel = ?1 AND handle = ?2 LIMIT 1",
        (channel, handle),
    ).fetchone()
    stop = 2**62
    if somebody is not None:  # who talks alone has read it all
        rows = unread(source, channel, handle)
        stop = next((number for number, _ in rows), stop)
    count: int = db.execute(
        "SELECT count(*) FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND handle IS NOT NULL AND gone IS NULL",
        (channel, start[0], stop),
    ).fetchone()[0]
    return count - 1 if count else None
