"""Runs of agents: which were ordered, which run, how they ended. A table alone.

It is what a coordinator starts from, the first one and one that comes after a death alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger.entry import Entry
from projections.projection import Op, TableAlone

_REQUESTED = (
    "INSERT OR IGNORE INTO agents (spawn, role, subject, attempt, seq, state)"
    " VALUES (?, ?, ?, ?, ?, 'requested')"
)
_STARTED = (
    "UPDATE agents SET state = 'started', started = ?2 WHERE spawn = ?1 AND state = 'requested'"
)
_ENDED = (
    "UPDATE agents SET state = ?3, ended = ?2 WHERE spawn = ?1"
    " AND state IN ('requested', 'started')"
)


class Agents(TableAlone):
    """See the module."""

    name = "agents"
    version = 1
    tables = ("agents",)
    ddl = """
CREATE TABLE agents (
    spawn TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    subject TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    started INTEGER,
    ended INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_errand ON agents (role, subject, attempt);
"""
    kinds = frozenset(("agent.requested", "agent.started", "agent.ended", "agent.abandoned"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row a run; ``state`` is requested, started, ended or abandoned, and then stays."""
        body = entry.data
        spawn = body["spawn"]
        if entry.kind == "agent.requested":
            row = (spawn, body["role"], body["subject"], body["attempt"], entry.seq)
            return (("agents", _REQUESTED, row, spawn),)
        if entry.kind == "agent.started":
            return (("agents", _STARTED, (spawn, entry.seq), spawn),)
        return (("agents", _ENDED, (spawn, entry.seq, entry.kind.partition(".")[2]), spawn),)
