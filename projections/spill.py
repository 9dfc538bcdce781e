"""Lists that may outgrow memory: what is too much waits in a temporary database of SQLite.

That database has no name on the disk, nobody else can open it, and it goes when its process ends.
The usual look at a team's files finds little, and makes none.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, TypeAlias

from tripod.ledger.errors import UnwritableError

HELD = 1000
"""How many values are held in memory at most."""

Key: TypeAlias = "tuple[int | str, int]"


def _temporary_database(ddl: str) -> sqlite3.Connection:
    # Whichever thread collects garbage closes it.
    db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode=OFF")
    db.execute("PRAGMA cache_size=-1000")  # KiB; beyond it pages go to the unnamed file
    db.execute(ddl)
    db.execute("BEGIN")  # it is never committed: nobody reads it afterwards
    return db


@contextmanager
def _told_where() -> Iterator[None]:
    """Say which disk refuses: also to read in order takes room among the temporary files."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise UnwritableError(
            f"what was read needs a temporary file, and that cannot be written: {error}; nothing "
            "was recorded. Make room in the folder for temporary files, or name another one in "
            "SQLITE_TMPDIR"
        ) from error


class Spill:
    """Values in the order in which they came, or in that of their keys.

    A value is what ``marshal`` can write: texts, bytes, integers, None, and tuples, lists and
    dictionaries of them.

    >>> spill = Spill()
    >>> for key, value in (((2, 0), "c"), ((1, 1), "b"), ((1, 0), "a")):
    ...     spill.append(key, value)
    >>> len(spill), list(spill), list(spill.in_order())
    (3, ['c', 'b', 'a'], ['a', 'b', 'c'])
    """

    def __init__(self) -> None:
        self._held: list[tuple[Key, Any]] = []
        self._db: sqlite3.Connection | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, key: Key, value: object) -> None:
        """Add a value; of equal keys the one that came first stands first."""
        self._held.append((key, value))
        self._size += 1
        if len(self._held) >= HELD:
            self._spill()

    def __iter__(self) -> Iterator[Any]:
        if self._db is not None:
            for (value,) in self._db.execute("SELECT value FROM waiting ORDER BY number"):
                yield marshal.loads(value)  # noqa: S302 - this process alone wrote it
        yield from (value for _, value in self._held)

    def in_order(self) -> Iterator[Any]:
        """The values in the order of their keys; nothing is appended meanwhile."""
        if self._db is None:
            yield from (value for _, value in sorted(self._held, key=itemgetter(0)))
            return
        self._spill()
        with _told_where():
            rows = self._db.execute("SELECT value FROM waiting ORDER BY first, second, number")
            for (value,) in rows:
                yield marshal.loads(value)  # noqa: S302 - this process alone wrote it

    def _spill(self) -> None:
        if self._db is None:
            self._db = _temporary_database(
                "CREATE TABLE waiting (number INTEGER PRIMARY KEY, first ANY, second INTEGER,"
                " value BLOB) STRICT"
            )
        rows = [(*key, marshal.dumps(value)) for key, value in self._held]
        with _told_where():
            sql = "INSERT INTO waiting (first, second, value) VALUES (?, ?, ?)"
            self._db.executemany(sql, rows)
        self._held.clear()

    def __del__(self) -> None:
        if self._db is not None:
            self._db.close()


class SpilledDigests:
    """The newest SHA-256 (64 hex digits) of each path.

    >>> digests = SpilledDigests()
    >>> digests["a"] = "00" * 32
    >>> digests.get("a") == "00" * 32, digests.get("b")
    (True, None)
    """

    def __init__(self) -> None:
        self._held: dict[str, str] = {}
        self._db: sqlite3.Connection | None = None

    def __setitem__(self, path: str, digest: str) -> None:
        self._held[path] = digest
        if len(self._held) >= HELD:
            if self._db is None:
                self._db = _temporary_database(
                    "CREATE TABLE digests (path TEXT PRIMARY KEY, digest BLOB) STRICT,"
                    " WITHOUT ROWID"
                )
            rows = [(path, bytes.fromhex(digest)) for path, digest in sorted(self._held.items())]
            with _told_where():
                self._db.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?)", rows)
            self._held.clear()

    def get(self, path: str) -> str | None:
        """The digest of a path, None where it has none."""
        found = self._held.get(path)
        if found is None and self._db is not None:
            sql = "SELECT hex(digest) FROM digests WHERE path = ?"
            row = self._db.execute(sql, (path,)).fetchone()
            found = None if row is None else row[0].lower()
        return found

    def __del__(self) -> None:
        if self._db is not None:
            self._db.close()
