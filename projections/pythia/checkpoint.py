"""Which decisions of a team's replicas no checkpoint covers. Pure.

Each replica counts its own decisions for an interval, and reviews them itself; what several of them
decided together is known only where it was merged.
"""

from __future__ import annotations

from typing import NamedTuple

from tripod.ledger.kinds.merged import peer_view
from tripod.ledger.kinds.peers import PEER_MERGED
from tripod.projections.bus.tables import CHECKPOINT
from tripod.projections.peers.tables import made_as
from tripod.projections.projection import Source
from tripod.projections.pythia.format import parse_checkpoint_payload


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
