"""The triggers that keep a ledger's file append-only, put back where they are gone or were altered.

They cannot vanish by accident, so ``verify`` names it; nothing of the entries is changed here.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from ledger.schema import check_ours, foreign_triggers, migrate

_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"


def put_back(db: sqlite3.Connection) -> list[str]:
    """Make the triggers of the database's own schema version anew where they differ; their names.

    Those that are none of ours are removed first: nothing may run them. What ours would have
    refused to the cursors is mended as well. Inside the caller's transaction, if one is open.
    Those of projections are made with their tables.

    Raises:
        LedgerDamagedError: the file belongs to another program or to a newer version.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        migrate(ours, check_ours(db))
        wanted = dict(ours.execute(_TRIGGERS).fetchall())
    foreign = foreign_triggers(db)
    for name in foreign:
        quoted = name.replace('"', '""')
        db.execute(f'DROP TRIGGER IF EXISTS "{quoted}"')
    have = dict(db.execute(_TRIGGERS).fetchall())
    wrong = [name for name, sql in wanted.items() if have.get(name) != sql]
    for name in {*wrong, *_set_back(db)}:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
        db.execute(wanted[name])
    return sorted({*wrong, *foreign})


def _set_back(db: sqlite3.Connection) -> list[str]:
    """Bring cursors that are ahead of the head back to it; what guards them has to go for that."""
    row = db.execute("SELECT size, tables, files FROM head").fetchone()
    if row is None or max(row[1:]) <= row[0]:
        return []
    db.execute("DROP TRIGGER IF EXISTS head_forward_only")
    db.execute("UPDATE head SET tables = min(tables, size), files = min(files, size)")
    return ["head_forward_only"]
