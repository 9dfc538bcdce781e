"""Any column of any table, changed in one row behind the triggers' back, is found.

Some rows of each table are drawn for each column, by a fresh seed each run, which is printed where
one is missed; TRIPOD_SEED repeats it. TRIPOD_TRIALS says how many rows are drawn (``make soak``:
all), and tries each value in each row of a table of few rows.
"""

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from specimens import build, copy, database, unguarded

from tripod.verify.evidence import collect
from tripod.verify.run import run


class Mutation(NamedTuple):
    """A field and what it becomes."""

    table: str
    key: tuple[object, ...]
    column: str
    value: object


DERIVED = {("head", "files")}
"""A cursor: one that stays behind is what a command that died leaves, and so a warning."""
UNKNOWN = {("head", "boot")}
"""In which start of the host the files were written: nothing else remembers that."""


FEW = 11
"""Rows of a table in which every value is tried in every field."""
EVERY = "TRIPOD_TRIALS" in os.environ
DRAWN = int(os.environ.get("TRIPOD_TRIALS", "2"))
SEED = int(os.environ.get("TRIPOD_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)


def rows_of(db: sqlite3.Connection, table: str) -> int:
    """How many rows a table has."""
    count: int = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return count


def tables(db: sqlite3.Connection) -> list[str]:
    """All tables of the database."""
    return [
        n for (n,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
    ]


def others(value: object) -> Iterator[object]:
    """Values of the same type that are not this one."""
    if isinstance(value, int):
        yield value + 1
        yield -value - 1
    elif isinstance(value, bytes):
        yield value[:-1] + bytes([(value[-1] if value else 0) ^ 1])
        yield value + b"\x00"
    elif isinstance(value, str):
        yield value + "x"
        yield ("y" if value[:1] != "y" else "z") + value[1:]
    else:
        yield 7
        yield "seven"
        yield b"7"


def keys_of(db: sqlite3.Connection, table: str) -> str:
    """The columns that tell a table's rows apart."""
    info = db.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
    return ", ".join(keys or ["rowid"])


def mutations(path: str) -> Iterator[list[Mutation]]:
    """For each field of each row what it may become by one UPDATE.

    Where one value is enough in each row that is drawn, the first is drawn as well.
    """
    with closing(sqlite3.connect(path)) as db:
        for table in tables(db):
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            keys = keys_of(db, table)
            for column in columns:
                # Of its own, so that the same is drawn where others have each row tried.
                rng = random.Random(f"{SEED} {table} {column}")  # noqa: S311 - damages, not keys
                rows = db.execute(f"SELECT {column}, {keys} FROM {table}").fetchall()
                if len(rows) > (max(FEW, DRAWN) if EVERY else DRAWN):
                    rows = rng.sample(rows, DRAWN)
                for value, *key in rows:
                    new = [Mutation(table, tuple(key), column, other) for other in others(value)]
                    first = rng.randrange(len(new))
                    yield new[first:] + new[:first]


def update(path: str, mutation: Mutation) -> bool:
    """Change one field; False where the table's own rules refuse this value."""
    with unguarded(path) as db:
        keys = keys_of(db, mutation.table)
        marks = ", ".join("?" * (keys.count(",") + 1))
        sql = f"UPDATE {mutation.table} SET {mutation.column} = ? WHERE ({keys}) IS ({marks})"
        try:
            changed = db.execute(sql, (mutation.value, *mutation.key)).rowcount
        except sqlite3.IntegrityError:
            return False
    assert changed == 1
    return True


@pytest.mark.drawn("long")
@pytest.mark.slow
def test_any_column_of_any_row_is_found(tmp_path: Path) -> None:
    root = build(str(tmp_path / "sound"))
    with closing(sqlite3.connect(database(root))) as db:
        sound = db.serialize()
        seen = set(tables(db))
        few = {name for name in seen if rows_of(db, name) <= FEW}
    assert {"entries", "blobs", "head", "folds", "manifest", "events", "pieces"} <= seen
    path = database(copy(root, str(tmp_path)))
    missed, refused, done = [], [], 0
    for field in mutations(database(root)):
        before = done
        for mutation in field:
            Path(path).write_bytes(sound)
            if not update(path, mutation):
                continue
            done += 1
            with collect(path) as evidence:
                report = run(evidence)
            derived = (mutation.table, mutation.column) in DERIVED
            unknown = (mutation.table, mutation.column) in UNKNOWN
            if not (report.failures or unknown or (derived and report.warnings)):
                missed.append(mutation)
            if mutation.table not in few or not EVERY:
                break
        if done == before:
            refused.append(field)
    again = f"TRIPOD_SEED={SEED} TRIPOD_TRIALS={DRAWN}"
    assert missed == [], again
    assert refused == [], again
    assert done > (400 if EVERY else 150)
