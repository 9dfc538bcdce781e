"""Pythia's reviews: what answers each checkpoint event, and what failed.

Tables alone: the assessment itself is a message of a chat. ``assessments`` has at most one row a
checkpoint event, which is what makes an answer the only one (seeds: tripod-architecture), and one
beside it that is ``merged``: a peer that left this line later has the event as well, and its answer
takes no place of ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from tripod.ledger import Entry
from tripod.projections.projection import Op, Projection


class PythiaRuns(Projection):
    """Tables of review runs. ``event`` is the seq of the entry that published the checkpoint."""

    name = "pythia"
    version = 4
    tables = ("assessments", "failures")
    ddl = """
CREATE TABLE assessments (
    event INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    spawn TEXT,
    origin TEXT NOT NULL,
    last TEXT NOT NULL,
    message INTEGER NOT NULL,
    merged INTEGER NOT NULL,
    PRIMARY KEY (event, merged)
) STRICT, WITHOUT ROWID;
CREATE TABLE failures (
    seq INTEGER PRIMARY KEY,
    event INTEGER NOT NULL
) STRICT;
"""
    kinds = frozenset(("pythia.assessed", "pythia.failed"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row an entry; the first answer to an event stays."""
        body, seq = entry.data, entry.seq
        event = body["event"]
        if entry.kind == "pythia.failed":
            return (("failures", "INSERT INTO failures VALUES (?, ?)", (seq, event), str(seq)),)
        told = (body.get("spawn"), body["origin"], body["last"], body["message"])
        sql = "INSERT OR IGNORE INTO assessments VALUES (?, ?, ?, ?, ?, ?, ?)"
        merged = int("peer" in body)
        return (("assessments", sql, (event, seq, *told, merged), f"{event} {merged}"),)


PYTHIA = PythiaRuns()
