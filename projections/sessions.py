"""The tables of recorded sessions: what was found of each, and what their records say they read.

Tables alone. A file is known by its session and its subagent, wherever it lies; the newest of its
rows has it as it was imported last.
"""

from __future__ import annotations

from collections.abc import Iterable

from tripod.ledger import Entry
from tripod.projections.projection import Op, Projection

_IMPORTED = f"INSERT INTO sessions VALUES ({', '.join('?' * 14)})"
_READ = "INSERT INTO sessions_read VALUES (?, ?, ?, ?)"


class Sessions(Projection):
    """Files of sessions; ``agent`` is '' of a session's own thread, '' stands for what is unknown.

    ``before`` is the digest of its first bytes, as many as the state before it had. ``kept``: its
    bytes were kept as well.
    """

    name = "sessions"
    version = 1
    tables = ("sessions", "sessions_read")
    ddl = """
CREATE TABLE sessions (
    seq INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    parent TEXT NOT NULL,
    program TEXT NOT NULL,
    role TEXT NOT NULL,
    cwd TEXT NOT NULL,
    file TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    before TEXT NOT NULL,
    custody TEXT NOT NULL,
    kept INTEGER NOT NULL,
    form TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_file ON sessions (session, agent);
CREATE TABLE sessions_read (
    seq INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT;
"""
    kinds = frozenset(("session.imported", "session.read"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row an entry."""
        body, seq = entry.data, entry.seq
        session, agent = body["session"], body.get("agent", "")
        if entry.kind == "session.read":
            row = (seq, session, agent, body["sha256"])
            return (("sessions_read", _READ, row, str(seq)),)
        told = (body.get(name, "") for name in ("parent", "program", "role", "cwd", "file"))
        digests = (body["sha256"], body["bytes"], body.get("before", ""), body["custody"])
        row = (seq, session, agent, *told, *digests, int("parts" in body), body["form"])
        return (("sessions", _IMPORTED, row, str(seq)),)


SESSIONS = Sessions()
