"""Pages of a ledger's database overwritten, as a bad disk leaves them."""

import sqlite3
from contextlib import closing
from pathlib import Path

__all__ = ["ENTRIES", "damage", "derived", "pages_of", "scribble"]

ENTRIES = ("entries", "blobs", "head")
"""Tables that nothing else has the contents of."""


def derived(database: str) -> list[str]:
    """Names of all tables and indexes that can be made from the entries, or anew."""
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute("SELECT name FROM sqlite_schema WHERE rootpage > 0 ORDER BY name")
        return [name for (name,) in rows if name not in ENTRIES]


def pages_of(database: str, name: str) -> list[int]:
    """The pages of a table or index: its root, which has it all where it is small."""
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        return [page for (page,) in db.execute(sql, (name,))]


def damage(database: str, *names: str) -> None:
    """Overwrite the pages of tables and indexes with what is no page."""
    scribble(database, *(page for name in names for page in pages_of(database, name)))


def scribble(database: str, *pages: int) -> None:
    """Overwrite pages, numbered from 1."""
    with closing(sqlite3.connect(database)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(Path(database).read_bytes())
    for page in pages:
        data[(page - 1) * size : page * size] = b"\x05" * size
    Path(database).write_bytes(data)
