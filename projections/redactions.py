"""Which entries were erased, and where in the team directory what they said stood.

A table alone. Which files show such a text is told by ``projections.withheld``; it and the intake
know by this table the places where old bytes, of a backup or an editor, are not taken in again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ledger.entry import Entry
from ledger.redaction import REDACTED
from projections.projection import Op, TableAlone

_ROW = "INSERT INTO redactions (seq, entry, kind, place) VALUES (?, ?, ?, ?)"


class Redactions(TableAlone):
    """See the module."""

    name = "redactions"
    version = 1
    tables = ("redactions",)
    ddl = """
CREATE TABLE redactions (
    seq INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    kind TEXT NOT NULL,
    place TEXT NOT NULL
) STRICT;
CREATE INDEX redactions_place ON redactions (place);
"""
    kinds = frozenset((REDACTED,))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep one row an erased entry; ``entry`` is the one that says so."""
        body = entry.data
        row = (body["seq"], entry.seq, body["kind"], place_of(body["kind"], body["keep"]))
        return (("redactions", _ROW, row, None),)


def place_of(kind: str, body: dict[str, Any]) -> str:
    """Where a body's text stands: a path, a folder's name with the event's, a run, or a log."""
    if kind == "bus.published":
        return f"events/{body['name']}"
    if kind.startswith("chat."):
        return f"chat/{body['channel']}.chat"
    if "name" in body:
        return f"workers/{body['name']}.md"
    if "spawn" in body:
        return f"agents/{body['spawn']}"
    return f"scribe/{body.get('file', 'log.md')}" if "path" not in body else str(body["path"])
