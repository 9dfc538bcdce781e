"""What recording costs in a running process, beside bare inserts of the same bytes.

The bare side is one table with the entry's number, header, salt and body: no index, no chain, no
tree, no projection. Both databases hold the same entries before the first timing.

Several threads, and several processes, append one by one to one database, with a store each; their
floor is one of them that appends as much. How long a caller waits (half of all appends, and 99 in
100) stands beside the rate, and the longest of a hundred waits has a row of its own.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from statistics import median
from time import perf_counter, sleep

from benchmarks.measure import Row, in_turn, rate_row, time_row
from benchmarks.workload import AFTER_US, PEOPLE, WORK, Scale, event_draft, fill_queue, make_team
from tripod.bus import events
from tripod.ledger import DATABASE
from tripod.ledger.entry import Draft, Entry
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections.engine import fold_into
from tripod.team.team import Team

__all__ = ["Bare", "publish_row", "rows"]

BEFORE = 10_000  # entries that are there already
ONE_BY_ONE = 50  # acts a turn
BATCH = 1000  # a turn
TURNS = 40  # a timing: both logs are moved into their databases in each, ours more often
CROWD = 1280  # appends a timing, by all threads or processes together

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

    def together(self, entries: list[Entry]) -> float:
        """Seconds for one durable transaction with all of them."""
        values = _values(entries)
        begin = perf_counter()
        self.insert(values)
        return perf_counter() - begin


def _values(entries: list[Entry]) -> list[tuple[int, bytes, bytes | None, bytes | None]]:
    return [(e.seq, e.header, e.salt, e.body) for e in entries]


def rows(folder: str, rounds: int) -> Iterator[Row]:
    """The rows on appending; ``rounds`` pairs each."""
    root = make_team(os.path.join(folder, "appends"), Scale(BEFORE), files=False)
    store = SQLiteStore(f"{root}/{DATABASE}", fold=fold_into)
    bare = Bare(os.path.join(folder, "bare.db"), store.db)
    bare.together(list(store.read()))
    yield _single(store, bare, rounds)
    yield _batches(store, bare, rounds)
    store.close()
    for count, at_least in ((8, 1.5), (64, 3.0)):
        yield from _crowd(store.path, count, rounds, ThreadPoolExecutor, at_least)
    for count in (4, 8):
        pool = partial(ProcessPoolExecutor, mp_context=get_context("fork"))
        yield from _crowd(store.path, count, rounds, pool, None)
    what = "`bus.publish` in a running process, event file included / the same bare insert"
    yield publish_row("publish", what, fill_queue(os.path.join(folder, "published"), 100), rounds)


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

    pairs = in_turn(ours, lambda: bare.one_by_one(made), rounds, TURNS)
    what = "durable single append, all tables / bare insert of the same bytes"
    return rate_row("append", what, pairs, ONE_BY_ONE * TURNS, 0.6)


def _batches(store: SQLiteStore, bare: Bare, rounds: int) -> Row:
    more = _events(random.Random(2))
    made: list[Entry] = []

    def ours() -> float:
        drafts = more(BATCH)
        begin = perf_counter()
        made[:] = store.append(drafts)
        return perf_counter() - begin

    pairs = in_turn(ours, lambda: bare.together(made), rounds, TURNS)
    what = "batches of 1,000, all tables / bare batches of the same bytes"
    return rate_row("batch", what, pairs, BATCH * TURNS, 0.28)


def _append_in_crowd(path: str, part: tuple[int, int], begin: float) -> tuple[float, list[float]]:
    """Append one by one from the time ``begin`` on; give when it ended, and how long each took."""
    seed, count = part
    more = _events(random.Random(seed))
    waits = []
    store = SQLiteStore(path, fold=fold_into)
    drafts = more(count)
    sleep(max(0.0, begin - perf_counter()))
    for draft in drafts:
        asked = perf_counter()
        store.append([draft])
        waits.append(perf_counter() - asked)
    end = perf_counter()
    store.close()
    return end, waits


def _crowd(
    path: str, count: int, rounds: int, pool: Callable[[int], Executor], at_least: float | None
) -> Iterator[Row]:
    """So many threads or processes, beside one that appends as much: the rate, and the waits."""
    seed = 0
    waits: dict[int, list[float]] = {1: [], count: []}
    longest = []

    def run(size: int) -> float:
        nonlocal seed
        seed += size
        begin = perf_counter() + 0.3 + size / 100  # all have opened the database by then
        parts = [(seed + number, CROWD // size) for number in range(size)]
        with pool(size) as executor:
            append = partial(_append_in_crowd, path, begin=begin)
            ended, waited = zip(*executor.map(append, parts), strict=True)
        waits[size] = sorted(wait for each in waited for wait in each)
        return float(max(ended) - begin)

    def crowd() -> float:
        seconds = run(count)
        longest.append(_part(waits[count], 0.99))
        return seconds

    pairs = in_turn(crowd, lambda: run(1), rounds)
    word = "threads" if pool is ThreadPoolExecutor else "processes"
    what = f"durable single appends of {count} {word}, a store each / of one"
    yield replace(
        rate_row(f"{word} {count}", what, pairs, CROWD, at_least),
        ours=_told([pair.ours for pair in pairs], waits[count]),
        floor=_told([pair.floor for pair in pairs], waits[1]),
    )
    yield time_row(f"{word} {count} p99", f"99 in 100 appends of {count} {word}", longest, 15)


def _told(seconds: list[float], waits: list[float]) -> str:
    """The rate, and what an append of the last round took."""
    half, most = (1000 * _part(waits, part) for part in (0.5, 0.99))
    return f"{CROWD / median(seconds):,.0f}/s; p50 {half:.1f}, p99 {most:.1f} ms"


def _part(waits: list[float], part: float) -> float:
    return waits[int(part * (len(waits) - 1))]


def publish_row(name: str, what: str, root: str, rounds: int, turns: int = TURNS) -> Row:
    """Publishing in a running process of the team at ``root``, beside a bare insert of the same."""
    rng = random.Random(3)
    with Team(root) as team:
        bare = Bare(f"{root}-{name}.db", team.store.db)
        bare.together(list(team.store.read()))
        made: list[Entry] = []

        def ours() -> float:
            size = team.store.size
            begin = perf_counter()
            for _ in range(ONE_BY_ONE):
                events.publish(team, rng.choice(PEOPLE), rng.choice(WORK), "normal", "it is " * 25)
            seconds = perf_counter() - begin
            made[:] = team.store.read(size)
            return seconds

        pairs = in_turn(ours, lambda: bare.one_by_one(made), rounds, turns)
    return rate_row(name, what, pairs, ONE_BY_ONE * turns, 0.3)
