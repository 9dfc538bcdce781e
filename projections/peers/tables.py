"""The tables of peers: who they are, how much of each was merged, and what is kept here. Pure.

A row is there once anything was recorded of an origin. ``forked``, ``accepted`` and ``closed`` are
the numbers of the newest entries that say so; ``merged`` is the one that holds the seal of ``size``
and ``root``.

What an entry of a peer says is folded by the projections of its own kind; ``merged`` says which
entry here keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tripod.ledger import MERGED, Entry, codec
from tripod.projections.projection import Op, Projection, Source, Tables

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
_KEPT = "INSERT INTO merged VALUES (?, ?, ?, ?, ?, ?, ?)"
_FIELDS = {
    "peer.added": ("replica", "key", "how"),
    "peer.merged": ("size", "root"),
    "peer.forked": (),
    "peer.accepted": ("key",),
    "peer.closed": (),
}


class Peers(Projection):
    """The other replicas of the team, by origin; numbers are those of entries here.

    Of an entry that was merged, ``peer_seq`` is its number in its maker's ledger, ``kind`` its kind
    there ('' where its header is too long to stand in the body), ``line`` the ledger that its
    header names where the maker had another name then, ``observed`` its id there if it was read
    from a file; ``same`` is the entry here that holds the same, and is shown instead.
    """

    name = "peers"
    version = 2
    tables = ("peers", "merged")
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
CREATE TABLE merged (
    seq INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    peer_seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    line TEXT,
    observed TEXT,
    same INTEGER
) STRICT;
CREATE UNIQUE INDEX merged_made ON merged (origin, peer_seq);
CREATE INDEX merged_line ON merged (line, peer_seq) WHERE line IS NOT NULL;
CREATE INDEX merged_observed ON merged (observed) WHERE observed IS NOT NULL;
"""
    kinds = frozenset((*_PUT, MERGED))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One statement an entry."""
        body = entry.data
        origin: str = body["origin"]
        if entry.kind == MERGED:
            kind, line, observed = _told(body["header"])
            same = (body.get("place") or {}).get("same")
            former = None if line == origin else line
            row = (entry.seq, origin, body["seq"], kind, former, observed, same)
            return (("merged", _KEPT, row, str(entry.seq)),)
        values = (origin, entry.seq, *(body[name] for name in _FIELDS[entry.kind]))
        return (("peers", _PUT[entry.kind], values, origin),)


PEERS = Peers()


def _told(header: dict[str, Any]) -> tuple[str, str | None, str | None]:
    """Kind and ledger that a header's content names, and its id if it is of an observed piece."""
    said = codec.loads(header["text"]) if "text" in header else {}
    kind, id_ = said.get("kind", ""), said.get("id", "")
    return kind, said.get("ledger"), id_ if id_.startswith("obs-") else None


def kept_elsewhere(db: Tables, line: str, seq: int) -> list[int]:
    """The entries here that keep what other replicas have as entry ``seq`` of the ``line``.

    They have it from before they left that line.
    """
    sql = "SELECT seq FROM merged WHERE line = ? AND peer_seq = ? ORDER BY seq"
    return [int(row[0]) for row in db.execute(sql, (line, seq))]


def made_as(db: Tables, seq: int) -> tuple[str, int] | None:
    """Origin and number, in its maker's ledger, of an entry that was merged; None: it is ours."""
    sql = "SELECT origin, peer_seq FROM merged WHERE seq = ?"
    row = db.execute(sql, (seq,)).fetchone()
    return None if row is None else (str(row[0]), int(row[1]))


def is_observed_here(source: Source, entry_id: str | None) -> bool:
    """Whether the observed piece with this id was read here, or by a peer that was merged."""
    if entry_id is None or source.ledger.seq_of(entry_id) is not None:
        return entry_id is not None
    sql = "SELECT 1 FROM merged WHERE observed = ?"
    return source.db.execute(sql, (entry_id,)).fetchone() is not None
