"""The counts: ``counts.json``, for scripts that want a number without reading a log.

It holds what changes with a decision or a message, not with every event of the bus: a file that
each publish rewrites would cost each publish a sync (``bus status`` counts those).

``as_of`` names the newest entry that it counts. Only we write this file, and never ahead of the
ledger: a ledger that does not hold that entry was rolled back or swapped, and must not take the
files' later lines in as if they were somebody else's (design section 6, "a file that is ahead").
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from ledger.entry import Entry
from projections.decision_log import LIVE
from projections.projection import File, Op, Source

PATH = "counts.json"
MODE = 0o644


class Counts:
    """See the module. It counts the tables of others, which are folded before."""

    name = "counts"
    version = 1
    tables = ("counted",)
    ddl = """
CREATE TABLE counted (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL
) STRICT;
"""
    kinds = frozenset(
        ("ledger.opened", "decision.logged", "chat.created", "chat.sent", "chat.unreadable")
    )

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep the newest entry that is counted."""
        sql = "INSERT OR REPLACE INTO counted (only, seq, id) VALUES (0, ?, ?)"
        return (("counted", sql, (entry.seq, entry.id), None),)

    def touched(self, entry: Entry) -> Iterable[str]:  # noqa: ARG002 - the protocol's signature
        """The one file."""
        return (PATH,)

    def paths(self, source: Source) -> Iterator[str]:
        """The one file, once the ledger is opened."""
        if source.db.execute("SELECT 1 FROM counted").fetchone():
            yield PATH

    def render(self, source: Source, path: str) -> File | None:
        """Decisions in all, by status, by log where one is not ``log.md``; messages by channel."""
        newest = source.db.execute("SELECT seq, id FROM counted").fetchone()
        if path != PATH or newest is None:
            return None
        statuses: Counter[str] = Counter()
        logs: Counter[str] = Counter()
        for log, status, count in source.db.execute(
            "SELECT log, status, count(*) FROM pieces WHERE id IS NOT NULL GROUP BY log, status"
        ):
            statuses[status] += count
            logs[log] += count
        decisions: dict[str, object] = {"by_status": dict(statuses), "total": logs.total()}
        if logs.keys() - {LIVE}:
            decisions["by_log"] = dict(logs)
        channels = source.db.execute("SELECT channel, lines FROM channels").fetchall()
        value = {
            "as_of": {"id": newest[1], "seq": newest[0]},
            "decisions": decisions,
            "messages": dict(channels),
        }
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
        return File(text.encode() + b"\n", MODE)


def counted_entry(data: bytes) -> tuple[int, str] | None:
    """The entry (seq, id) that a counts file says it counts; None where it says nothing such."""
    try:
        value = json.loads(data)
        seq, entry_id = value["as_of"]["seq"], value["as_of"]["id"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return (seq, entry_id) if type(seq) is int and type(entry_id) is str else None
