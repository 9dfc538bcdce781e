"""Who has taken an event, and how far each reader has come. Tables alone: no file shows it.

``claims`` has one row an event that was ever taken: who holds it, until when (0: given back), and
which attempt that is. ``readers`` has one row a reader: the newest entry that it was shown.
The original tools know neither (spec: nbs-compat B9, B12.9).
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger.entry import Entry
from projections.projection import Op, TableAlone

_CLAIM = (
    "INSERT INTO claims (event, seq, name, holder, until_us, attempt) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (event) DO UPDATE SET seq = excluded.seq, holder = excluded.holder,"
    " until_us = excluded.until_us, attempt = excluded.attempt"
)
_RELEASE = "UPDATE claims SET seq = ?, until_us = 0 WHERE event = ?"
_SEEN = (
    "INSERT INTO readers (reader, seq, up_to) VALUES (?, ?, ?)"
    " ON CONFLICT (reader) DO UPDATE SET seq = excluded.seq, up_to = excluded.up_to"
)


class Claims(TableAlone):
    """See the module. ``event`` is the seq of the entry that published; ``until_us`` epoch µs."""

    name = "claims"
    version = 1
    tables = ("claims", "readers")
    ddl = """
CREATE TABLE claims (
    event INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    attempt INTEGER NOT NULL
) STRICT;
CREATE TABLE readers (
    reader TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    up_to INTEGER NOT NULL
) STRICT;
"""
    kinds = frozenset(("bus.claimed", "bus.released", "bus.seen"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep the newest word on each event and each reader."""
        seq, body = entry.seq, entry.data
        if entry.kind == "bus.seen":
            return (("readers", _SEEN, (body["reader"], seq, body["up_to"]), body["reader"]),)
        event = body["event"]
        if entry.kind == "bus.released":
            return (("claims", _RELEASE, (seq, event), str(event)),)
        row = (event, seq, body["name"], body["by"], body["until"], body["attempt"])
        return (("claims", _CLAIM, row, str(event)),)
