"""Changes a ledger's file as somebody with the disk could: past the triggers, with plain SQL.

For the demo: the verifier names each such change. Triggers guard a ledger against accident alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import orjson

from tripod.ledger.entry import commit_body, format_canonical
from tripod.ledger.sqlite.reader import SQLiteReader


@contextmanager
def _unguarded(path: str) -> Iterator[sqlite3.Connection]:
    """The database of a ledger, whose triggers are removed for good."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        yield db


def damage_entry(path: str, kind: str, number: int, **fields: object) -> None:
    """Give the ``number``-th entry of a kind, from 0, a body with other fields, and its hash."""
    with _unguarded(path) as db:
        *_, entry = SQLiteReader(db).read(kinds=(kind,), limit=number + 1)
        body = format_canonical(entry.data | fields)
        said = orjson.loads(entry.header) | {"body": commit_body(entry.salt or b"", kind, body)}
        sql = "UPDATE entries SET header = ?, body = ? WHERE seq = ?"
        db.execute(sql, (format_canonical(said), body, entry.seq))


def damage_by_deletion(path: str) -> None:
    """Remove the row of the entry in the middle of the ledger."""
    with _unguarded(path) as db:
        seq = (SQLiteReader(db).last_seq() or 0) // 2
        db.execute("DELETE FROM entries WHERE seq = ?", (seq,))
