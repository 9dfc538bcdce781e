"""What recording costs in a running process, beside bare inserts of the same bytes.

The bare side is one table with the entry's number, header, salt and body: no index, no chain, no
tree, no projection. Both databases hold the same entries before the first timing.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from time import perf_counter

from benchmarks.measure import Row, in_turn, rate_row
from benchmarks.workload import AFTER_US, PEOPLE, WORK, Scale, event_draft, fill_queue, make_team
from tripod.bus import events
from tripod.ledger import DATABASE
from tripod.ledger.entry import Draft, Entry
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections.engine import fold_into
from tripod.team.team import Team

__all__ = ["Bare", "rows"]

BEFORE = 10_000  # entries that are there already
ONE_BY_ONE = 200  # acts a timing
BATCH = 1000
BATCHES = 3  # a timing

_INSERT = "INSERT INTO entries (seq, header, salt, body) VALUES (?, ?, ?, ?)"


class Bare:
    """The floor: SQLite in WAL mode, synced at each commit, one table.

    Its log grows as long as ours before it is moved into the database: that is a setting, no cost.
    """

    def __init__(self, path: str, like: sqlite3.Connection) -> None:
        """Make the database, with the log of ``like``."""
        self.db = sqlite3.connect(path, isolation_level=None)
        pages = like.execute("PRAGMA wal_autocheckpoint").fetchone()[0]
        self.db.execute(f"PRAGMA wal_autocheckpoint={pages}")
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute(
            "CREATE TABLE entries (seq INTEGER PRIMARY KEY, header BLOB, salt BLOB, body BLOB)"
        )

    def insert(self, values: list[tuple[int, bytes, bytes | None, bytes | None]]) -> None:
        """One durable transaction."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(_INSERT, values)
        self.db.execute("COMMIT")

    def one_by_one(self, entries: list[Entry]) -> float:
        """Seconds for one durable insert each."""
        values = _values(entries)
        begin = perf_counter()
        for row in values:
            self.db.execute(_INSERT, row)
        return perf_counter() - begin

    def together(self, batches: list[list[Entry]]) -> float:
        """Seconds for one durable transaction a batch."""
        values = [_values(entries) for entries in batches]
        begin = perf_counter()
        for part in values:
            self.insert(part)
        return perf_counter() - begin


def _values(entries: list[Entry]) -> list[tuple[int, bytes, bytes | None, bytes | None]]:
    return [(e.seq, e.header, e.salt, e.body) for e in entries]


def rows(folder: str, rounds: int) -> Iterator[Row]:
    """The rows on appending; ``rounds`` pairs each."""
    root = make_team(os.path.join(folder, "appends"), Scale(BEFORE), files=False)
    store = SQLiteStore(f"{root}/{DATABASE}", fold=fold_into)
    bare = Bare(os.path.join(folder, "bare.db"), store.db)
    bare.together([list(store.read())])
    yield _single(store, bare, rounds)
    yield _batches(store, bare, rounds)
    store.close()
    yield _published(os.path.join(folder, "published"), rounds)


def _events(rng: random.Random) -> Callable[[int], list[Draft]]:
    at = AFTER_US

    def more(count: int) -> list[Draft]:
        nonlocal at
        at += count
        return [event_draft(at - count + number, rng) for number in range(count)]

    return more


def _single(store: SQLiteStore, bare: Bare, rounds: int) -> Row:
    more = _events(random.Random(1))
    made: list[Entry] = []

    def ours() -> float:
        drafts = more(ONE_BY_ONE)
        begin = perf_counter()
        made[:] = [store.append([draft])[0] for draft in drafts]
        return perf_counter() - begin

    pairs = in_turn(ours, lambda: bare.one_by_one(made), rounds)
    what = "durable single append, all tables / bare insert of the same bytes"
    return rate_row("append", what, pairs, ONE_BY_ONE, 0.5)


def _batches(store: SQLiteStore, bare: Bare, rounds: int) -> Row:
    more = _events(random.Random(2))
    made: list[list[Entry]] = []

    def ours() -> float:
        drafts = [more(BATCH) for _ in range(BATCHES)]
        begin = perf_counter()
        made[:] = [store.append(part) for part in drafts]
        return perf_counter() - begin

    pairs = in_turn(ours, lambda: bare.together(made), rounds)
    what = "batches of 1,000, all tables / bare batches of the same bytes"
    return rate_row("batch", what, pairs, BATCH * BATCHES, 0.25)


def _published(folder: str, rounds: int) -> Row:
    rng = random.Random(3)
    with Team(fill_queue(folder, 100)) as team:
        bare = Bare(folder + ".db", team.store.db)
        bare.together([list(team.store.read())])
        made: list[Entry] = []

        def ours() -> float:
            size = team.store.head().size
            begin = perf_counter()
            for _ in range(ONE_BY_ONE):
                events.publish(team, rng.choice(PEOPLE), rng.choice(WORK), "normal", "it is " * 25)
            seconds = perf_counter() - begin
            made[:] = team.store.read(size)
            return seconds

        pairs = in_turn(ours, lambda: bare.one_by_one(made), rounds)
    what = "`bus.publish` in a running process, event file included / the same bare insert"
    return rate_row("publish", what, pairs, ONE_BY_ONE)
