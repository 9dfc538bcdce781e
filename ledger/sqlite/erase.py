"""Erasing bodies in SQLite: the two statements that the triggers permit, and the sweep after them.

A ``redacted`` entry records it, with a reason and a name; its body's ``keep`` replaces the erased
body from then on, also for a fold that begins at the start. Its id is made from the number of the
erased entry: an entry can be erased once, and its redaction is found without a search.

``secure_delete`` overwrites the bytes in their page, but not everywhere: the write-ahead log holds
older pages, and SQLite promises nothing about copies in pages that were balanced before. So the
sweep writes the whole database anew (``VACUUM``) and empties the log. Until it is done the erased
entries stand in the table ``unswept`` (``written``: the database was written anew, the log is
left); the next command that finds one there finishes the sweep.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from tripod.ledger.entry import entry_blob_mark, entry_blobs
from tripod.ledger.errors import LedgerError


def body_to_erase(db: sqlite3.Connection, seq: int) -> dict[str, Any]:
    """The body of an entry that is about to be erased (LedgerError: there is no such body)."""
    row = db.execute("SELECT body FROM entries WHERE seq = ?", (seq,)).fetchone()
    if row is None or row[0] is None:
        what = "there is no such entry" if row is None else "its body was erased before"
        raise LedgerError(f"entry {seq} cannot be erased: {what}")
    body: dict[str, Any] = orjson.loads(row[0])
    return body


def erase(db: sqlite3.Connection, seq: int, body: dict[str, Any]) -> None:
    """Erase body and salt of ``seq``, and the blobs that ``body`` named and nothing else names.

    The newest entry must be the one that says so: the triggers let nothing else pass.
    """
    db.execute("UPDATE entries SET salt = NULL, body = NULL WHERE seq = ?", (seq,))
    named = "SELECT 1 FROM entries WHERE instr(body, ?) LIMIT 1"
    for digest in sorted({digest for digest, _ in entry_blobs(body)}):
        if db.execute(named, (entry_blob_mark(digest),)).fetchone() is None:
            db.execute("DELETE FROM blobs WHERE sha256 = ?", (bytes.fromhex(digest),))
    db.execute("INSERT INTO unswept (entry) VALUES (?)", (seq,))


def unswept_erasures(db: sqlite3.Connection) -> list[int]:
    """Erased entries whose bytes may still lie in pages, in the log or in files."""
    return [seq for (seq,) in db.execute("SELECT entry FROM unswept ORDER BY entry")]


def sweep(db: sqlite3.Connection, wait_ms: int) -> bool:
    """Write the database anew without what was erased; False where somebody else still reads.

    Outside of transactions, by who has the writer's place. Readers who began before hold the old
    pages: they are waited for, and if they go on, only the log is left to be emptied later.
    """
    if db.execute("SELECT 1 FROM unswept WHERE written = 0").fetchone():
        db.execute("VACUUM")
        db.execute("UPDATE unswept SET written = 1")
    # Writes the write-ahead log back and cuts it to nothing; 1 where somebody's reading keeps it.
    empty = "PRAGMA wal_checkpoint(TRUNCATE)"
    before = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute(f"PRAGMA busy_timeout = {wait_ms}")
    try:
        if db.execute(empty).fetchone()[0]:
            return False
        db.execute("DELETE FROM unswept")
        return not db.execute(empty).fetchone()[0]
    finally:
        db.execute(f"PRAGMA busy_timeout = {before}")
