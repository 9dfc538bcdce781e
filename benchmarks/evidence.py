"""What evidence for outsiders costs: the tree, proofs, exports, seals.

An export and a seal are held against a full verify of the same team in the same round; a proof has
no floor, only a bound.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from time import perf_counter
from types import ModuleType
from unittest import mock

from benchmarks.exports import NEW, keep_record, seal_by_hand
from benchmarks.judging import Cost, cost_of
from benchmarks.measure import Pair, Row, cost_row, in_turn, rate_row, time_row
from benchmarks.workload import AFTER_US, Scale, event_draft, make_team
from tripod.ledger import DATABASE, chain
from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.kinds.team import OPENED
from tripod.ledger.merkle import Tree, check_inclusion, inclusion_proof, root_of
from tripod.ledger.sqlite import store as writing
from tripod.ledger.sqlite.reader import read_block_nodes, read_only
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.verify.check import CLEAN
from tripod.verify.checks import CHECKS, record_agrees, seals_open
from tripod.verify.evidence import collect
from tripod.verify.run import run

__all__ = ["NoTree", "rows"]

SINGLE = 200  # appends a timing
BATCH, BATCHES = 1000, 3
PROOFS = 200
_OPENED = OPENED.draft(
    {
        "origin": "tripod.invalid/tree",
        "project": "bench",
        "created": "2026-11-21T20:17:50Z",
        "scribe": "scribe",
        "events": "events",
        "chat": "chat",
    }
)
_OTHERS = tuple(check.NAME for check in CHECKS if check not in (seals_open, record_agrees))


class NoTree(Tree):
    """A tree that counts and hashes nothing: what appending costs without one."""

    __slots__ = ()

    def __init__(self, size: int = 0, _stack: object = ()) -> None:
        """``size`` leaves."""
        super().__init__()
        self.size = size

    def append(self, leaf: bytes) -> None:  # noqa: ARG002 - nothing is done with it
        """Count one more."""
        self.size += 1


def rows(folder: str, entries: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on evidence; ``rounds`` pairs each."""
    yield from _appends(folder, 5 * rounds)
    say(f"a sealed team of {entries:,} entries")
    root = make_team(os.path.join(folder, "sealed"), Scale(entries))
    seal_by_hand(root)
    what = f"one seal in `verify`, {entries:,} entries / all other checks"
    yield cost_row("seal", what, _added(root, seals_open, rounds), 0.01)
    yield from _proofs(f"{root}/{DATABASE}", f"{entries:,} entries")
    costs: dict[str, list[Cost]] = {}
    for number in range(rounds):
        for act in ("all", "export", "more", "export-bodies", "more-bodies"):
            say(f"round {number + 1} of {rounds}: {act}")
            costs.setdefault(act, []).append(cost_of(act, root))
    yield from _exports(costs, f"{entries:,} entries")
    keep_record(root)
    what = f"a record beside the ledger in `verify`, {entries:,} entries / all other checks"
    yield cost_row("record", what, _added(root, record_agrees, rounds))


# Appending --------------------------------------------------------------------------------------


def _appends(folder: str, rounds: int) -> Iterator[Row]:
    """Both ledgers hold entries alone, no tables: so the tree's part is at its largest."""
    kept, plain = Ledger(f"{folder}/tree.db"), Ledger(f"{folder}/no-tree.db", tree=False)
    for name, what, count, batch in (
        ("tree-single", "durable single append", SINGLE, 1),
        ("tree-batch", "batches of 1,000", BATCH * BATCHES, BATCH),
    ):
        ours, floor = (partial(ledger.append, count, batch) for ledger in (kept, plain))
        pairs = in_turn(ours, floor, rounds)
        yield rate_row(name, f"{what}, no tables / the same without the tree", pairs, count, 0.7)
    kept.store.close()
    plain.store.close()


class Ledger:
    """A ledger without tables, and, if so asked, without a tree."""

    def __init__(self, path: str, *, tree: bool = True) -> None:
        """Begin one at ``path``, of some entries."""
        self.tree = tree
        self.store = SQLiteStore(path, create=True)
        self.us = AFTER_US
        with self._hashing():
            self.store.append([_OPENED])
        self.append(10 * BATCH, BATCH)

    @contextmanager
    def _hashing(self) -> Iterator[None]:
        if self.tree:
            yield
            return
        with (
            mock.patch.object(chain, "Tree", NoTree),
            mock.patch.object(writing, "read_stored_tree", NoTree),
        ):
            yield

    def append(self, count: int, batch: int) -> float:
        """Seconds that so many entries take, so many at once; both ledgers get the same."""
        rng = random.Random(self.us)
        events = [event_draft(self.us + number, rng) for number in range(count)]
        self.us += count
        with self._hashing():
            begin = perf_counter()
            for at in range(0, count, batch):
                self.store.append(events[at : at + batch])
            return perf_counter() - begin


# What sealing adds to a verify ------------------------------------------------------------------


def _added(root: str, check: ModuleType, rounds: int) -> list[Pair]:
    """A check by itself, beside all others but those of seals, in the same process.

    A difference of two whole runs would drown in their noise.
    """
    pairs = []
    for _ in range(rounds):
        with collect(root) as evidence:
            begin = perf_counter()
            run(evidence, select=_OTHERS)
            middle = perf_counter()
            report = run(evidence, select=(check.NAME,))
            pairs.append(Pair(perf_counter() - middle, middle - begin))
        assert [outcome.verdict for outcome in report.outcomes] == [CLEAN]
    return pairs


# Proofs -----------------------------------------------------------------------------------------


def _proofs(database: str, size: str) -> Iterator[Row]:
    """That an entry lies in the log: an open database; nothing of the tree kept, and all of it."""
    with closing(read_only(database)) as db:
        count = db.execute("SELECT size FROM head").fetchone()[0]
        nodes = read_block_nodes(db)
        root = root_of(nodes, 0, count)
        rng = random.Random(count)
        cold, kept = [], []
        for _ in range(PROOFS):
            seq = rng.randrange(count)
            begin = perf_counter()
            proof = inclusion_proof(read_block_nodes(db), seq, count)
            cold.append(perf_counter() - begin)
            inclusion_proof(nodes, seq, count)
            begin = perf_counter()
            again = inclusion_proof(nodes, seq, count)
            kept.append(perf_counter() - begin)
            header = db.execute("SELECT header FROM entries WHERE seq = ?", (seq,)).fetchone()[0]
            assert proof == again
            assert check_inclusion(entry_leaf_hash(header), seq, count, proof, root)
    what = f"inclusion proof of any of {size}, in a running process"
    yield time_row("proof", f"{what}, hashes read anew", cold, 2.0)
    yield time_row("proof-kept", f"{what}, tiles kept", kept, 2.0)


# Exports ----------------------------------------------------------------------------------------


def _exports(costs: dict[str, list[Cost]], size: str) -> Iterator[Row]:
    for name, what, at_most in (
        ("export", f"`export`, {size}", 2.0),
        ("export-bodies", f"`export --bodies`, {size}", 2.0),
        ("more", f"`export` of {NEW:,} more on {size}", 0.05),
        ("more-bodies", f"`export --bodies` of {NEW:,} more on {size}", 0.05),
    ):
        both = zip(costs[name], costs["all"], strict=True)
        pairs = [Pair(ours.seconds, base.seconds) for ours, base in both]
        yield cost_row(name, f"{what} / all checks", pairs, at_most)
