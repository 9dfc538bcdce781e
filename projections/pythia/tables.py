"""Pythia's reviews: how far each run was isolated, what answers each checkpoint event, what failed.

Tables alone: the assessment itself is a message of a chat. ``assessments`` has at most one row a
checkpoint event, which is what makes an answer the only one (seeds: tripod-architecture);
``merged``: it is a peer's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tripod.ledger import Entry
from tripod.ledger.kinds.merged import peer_view
from tripod.ledger.kinds.peers import PEER_MERGED
from tripod.projections.bus.tables import CHECKPOINT
from tripod.projections.peers.tables import made_as
from tripod.projections.projection import Op, Projection, Source
from tripod.projections.pythia.format import parse_checkpoint_payload


class PythiaRuns(Projection):
    """Tables of review runs. ``event`` is the seq of the entry that published the checkpoint."""

    name = "pythia"
    version = 2
    tables = ("isolations", "assessments", "failures")
    ddl = """
CREATE TABLE isolations (
    spawn TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    level TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE assessments (
    event INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    spawn TEXT,
    origin TEXT NOT NULL,
    last TEXT NOT NULL,
    message INTEGER NOT NULL,
    merged INTEGER NOT NULL
) STRICT;
CREATE TABLE failures (
    seq INTEGER PRIMARY KEY,
    event INTEGER NOT NULL
) STRICT;
"""
    kinds = frozenset(("pythia.isolated", "pythia.assessed", "pythia.failed"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row an entry; the first answer to an event stays."""
        body, seq = entry.data, entry.seq
        if entry.kind == "pythia.isolated":
            row = (body["spawn"], seq, body["level"])
            sql = "INSERT OR IGNORE INTO isolations VALUES (?, ?, ?)"
            return (("isolations", sql, row, body["spawn"]),)
        event = body["event"]
        if entry.kind == "pythia.failed":
            return (("failures", "INSERT INTO failures VALUES (?, ?)", (seq, event), str(seq)),)
        told = (body.get("spawn"), body["origin"], body["last"], body["message"])
        sql = "INSERT OR IGNORE INTO assessments VALUES (?, ?, ?, ?, ?, ?, ?)"
        return (("assessments", sql, (event, seq, *told, "peer" in body), str(event)),)


PYTHIA = PythiaRuns()


class UncoveredDecision(NamedTuple):
    """A decision that no replica's checkpoint covers: its entry here, and its maker's number."""

    seq: int
    id: str
    origin: str
    made: int


def uncovered_decisions(source: Source, stop: int) -> list[UncoveredDecision]:
    """The decisions among the first ``stop`` entries that no replica's checkpoint covers, in order.

    A checkpoint covers what its maker had when it recorded the last decision that the checkpoint
    names: of itself, and of each peer as much as it had merged by then.
    """
    db, reach, mine = source.db, {"": 0}, source.ledger.origin
    sql = "SELECT seq, origin, peer_seq FROM events WHERE type = ?"
    for seq, maker, number in db.execute(sql, (CHECKPOINT,)).fetchall():
        payload = source.body(seq).get("payload", {"text": ""})
        asked = parse_checkpoint_payload(source.content(payload).decode("utf-8", "replace"))
        if asked is not None:
            _cover(source, reach, maker or "", number, asked[2])
    # The file of an event that was answered may be gone.
    for (seq,) in db.execute("SELECT seq FROM assessments").fetchall():
        maker, number = made_as(db, seq) or ("", 0)
        _cover(source, reach, maker, number, str(source.body(seq)["last"]))
    sql = (
        "SELECT p.seq, p.id, coalesce(m.origin, ?), coalesce(m.peer_seq, p.seq) FROM pieces AS p"
        " LEFT JOIN merged AS m ON m.seq = p.seq"
        " WHERE p.id IS NOT NULL AND p.seq >= ? AND p.seq < ? ORDER BY p.seq"
    )
    rows = map(UncoveredDecision._make, db.execute(sql, (mine, reach[""], stop)))
    return [one for one in rows if one.made >= reach.get(one.origin, 0)]


def _cover(
    source: Source, reach: dict[str, int], maker: str, number: int | None, last: str
) -> None:
    """Widen how much of each replica is covered; ``reach['']``: so much of this whole ledger.

    ``maker`` named ``last`` in its entry ``number``; they are '' and None where it is this replica.
    """
    db = source.db
    if not maker:
        row = db.execute("SELECT max(seq) FROM pieces WHERE id = ?", (last,)).fetchone()
        reach[""] = max(reach[""], 0 if row[0] is None else row[0] + 1)
        return
    sql = (
        "SELECT max(m.peer_seq) FROM pieces AS p JOIN merged AS m ON m.seq = p.seq"
        " JOIN peers ON peers.origin = m.origin"
        " WHERE m.origin = ?1 AND p.made = peers.replica || '/' || ?2"
    )
    row = db.execute(sql, (maker, last)).fetchone()
    stop = (number or 0) if row[0] is None else row[0] + 1
    reach[maker] = max(reach.get(maker, 0), stop)
    ours = {source.ledger.origin, *(of for (of,) in db.execute("SELECT origin FROM forks"))}
    sql = "SELECT seq FROM merged WHERE origin = ? AND kind = ? AND peer_seq < ?"
    for (seq,) in db.execute(sql, (maker, PEER_MERGED.name, stop)).fetchall():
        entry = source.ledger.entry(seq)
        if entry is not None and entry.body is not None:
            told = peer_view(entry, source.ledger.blob).data
            whose = source.ledger.origin if told["origin"] in ours else told["origin"]
            reach[whose] = max(reach.get(whose, 0), told["size"])
