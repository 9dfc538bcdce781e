"""The table of peers: who they are, and how much of each was merged. Pure.

A row is there once anything was recorded of an origin. ``forked``, ``accepted`` and ``closed`` are
the numbers of the newest entries that say so; ``merged`` is the one that holds the seal of ``size``
and ``root``.
"""

from __future__ import annotations

from collections.abc import Iterable

from tripod.ledger import Entry
from tripod.projections.projection import Op, Projection

_NEW = "INSERT INTO peers (origin, {0}) VALUES ({1}) ON CONFLICT (origin) DO UPDATE SET {2}"


def _put(*columns: str) -> str:
    """The statement that sets these columns of a peer's row, made where it is not there."""
    values = ", ".join("?" * (len(columns) + 1))
    return _NEW.format(
        ", ".join(columns), values, ", ".join(f"{c} = excluded.{c}" for c in columns)
    )


_PUT = {
    "peer.added": _put("added", "replica", "key", "how"),
    "peer.merged": _put("merged", "size", "root"),
    "peer.forked": _put("forked"),
    "peer.accepted": _put("accepted", "accepted_key"),
    "peer.closed": _put("closed"),
}
_FIELDS = {
    "peer.added": ("replica", "key", "how"),
    "peer.merged": ("size", "root"),
    "peer.forked": (),
    "peer.accepted": ("key",),
    "peer.closed": (),
}


class Peers(Projection):
    """The other replicas of the team, by origin; numbers are those of entries here."""

    name = "peers"
    version = 1
    tables = ("peers",)
    ddl = """
CREATE TABLE peers (
    origin TEXT PRIMARY KEY,
    added INTEGER,
    replica TEXT,
    key TEXT,
    how TEXT,
    merged INTEGER,
    size INTEGER NOT NULL DEFAULT 0,
    root TEXT,
    forked INTEGER,
    accepted INTEGER,
    accepted_key TEXT,
    closed INTEGER
) STRICT, WITHOUT ROWID;
"""
    kinds = frozenset(_PUT)

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One statement an entry."""
        body = entry.data
        origin: str = body["origin"]
        values = (origin, entry.seq, *(body[name] for name in _FIELDS[entry.kind]))
        return (("peers", _PUT[entry.kind], values, origin),)


PEERS = Peers()
