"""Other packages at the same work, side by side with ours and with a bare insert, in one run.

Each is installed into an environment of its own, below ``.venv``, at the version that is named
here, and runs as a process that does what it is told (``benchmarks.contestant``). Where one cannot
be installed its rows are left out, and that is said. Each is measured as it comes, and where that
does not wait for the disk, also in its durable setting, if it has one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.appends import Bare
from benchmarks.child import LEDGER_NAMES
from benchmarks.measure import Pair, Row, cost_row, rate_row
from benchmarks.workload import AFTER_US, Scale, event_draft, make_team
from tripod.ledger import DATABASE
from tripod.ledger.entry import Draft, Entry
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections.engine import fold_into
from tripod.verify.evidence import collect
from tripod.verify.run import run

__all__ = ["PEERS", "Peer", "rows"]

BEFORE = 20_000  # entries that each holds before the first timing, and that are verified
ONE_BY_ONE, COMMITS = 100, 20  # acts a timing; a commit of git is two processes
BATCH = 1000
TEXT = "it is " * 25


class Peer(NamedTuple):
    """What is measured beside ours, and how: ``name`` is that in ``contestant``.

    ``package`` is what is installed, with its version ('' nothing). ``setting`` says in which of
    its settings. ``at_least`` is the rate of ours to its own that single appends are held to.
    """

    name: str
    package: str
    setting: str
    at_least: float | None = None

    @property
    def title(self) -> str:
        """What a row calls it."""
        return f"{(self.package or self.name.partition('-')[0]).replace('==', ' ')}, {self.setting}"


PEERS = (
    Peer("eventsourcing", "eventsourcing==9.5.6", "SQLite, as it comes (synced)", 1.0),
    Peer("auditchain", "auditchain==0.3.0", "SQLite, as it comes (synced)"),
    Peer("waxseal", "waxseal==0.1.6", "JSONL, as it comes (not synced)"),
    Peer("waxseal-sqlite", "waxseal==0.1.6", "SQLite (synced)"),
    Peer("argus-ledger", "argus-ledger==0.1.0a5", "as it comes (synced)"),
    Peer("git", "", "two processes a commit, as it comes"),
    Peer("git-synced", "", "two processes a commit, core.fsync=all"),
)


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on other packages; ``rounds`` of each, in turn."""
    with ExitStack() as stack:
        ours = _Ours(os.path.join(folder, "beside"))
        stack.callback(ours.store.close)
        running: list[tuple[Peer, _Running]] = []
        for peer in PEERS:
            python = _python_of(peer, say)
            if python is None:
                continue
            say(f"{peer.title}: {BEFORE:,} entries")
            where = os.path.join(folder, peer.name)
            os.mkdir(where)
            other = stack.enter_context(_Running(python, peer.name, where))
            other.fill(BEFORE)
            running.append((peer, other))
        singles: dict[str, list[Pair]] = {}
        batches: dict[str, list[Pair]] = {}
        verified: dict[str, list[Pair]] = {}
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            base = ours.append(ONE_BY_ONE), ours.batch(BATCH), ours.verify()
            for peer, other in running:
                _note(singles, peer, base[0], other.append(), ONE_BY_ONE / other.at_once)
                _note(batches, peer, base[1], other.act("batch", [TEXT] * BATCH))
                _note(verified, peer, base[2], other.act("verify", [str(other.held)]))
            _note(singles, None, base[0], ours.bare.one_by_one(ours.made))
        yield from _rows([None, *(peer for peer, _ in running)], singles, batches, verified)


def _note(
    found: dict[str, list[Pair]],
    peer: Peer | None,
    ours: float,
    other: float | None,
    times: float = 1,
) -> None:
    if other is not None:
        found.setdefault(peer.name if peer else "", []).append(Pair(ours, other * times))


def _rows(
    peers: Sequence[Peer | None],
    singles: dict[str, list[Pair]],
    batches: dict[str, list[Pair]],
    verified: dict[str, list[Pair]],
) -> Iterator[Row]:
    for peer in peers:
        name, title = (peer.name, peer.title) if peer else ("", "a bare insert of the same bytes")
        at_least = peer.at_least if peer else None
        what = f"durable single append, all tables / {title}"
        yield rate_row(f"beside-append-{name or 'bare'}", what, singles[name], ONE_BY_ONE, at_least)
        if name in batches:
            what = f"a batch of {BATCH:,}, all tables / {title}"
            yield rate_row(f"beside-batch-{name}", what, batches[name], BATCH)
        if name in verified:
            what = f"`verify` ledger checks, {BEFORE:,} entries and more / {title}"
            yield cost_row(f"beside-verify-{name}", what, verified[name])


class _Ours:
    """Our store with all its tables, and the floor with the same entries."""

    def __init__(self, folder: str) -> None:
        self.root = make_team(folder, Scale(BEFORE), files=False)
        self.store = SQLiteStore(f"{self.root}/{DATABASE}", fold=fold_into)
        self.bare = Bare(f"{folder}.db", self.store.db)
        self.bare.together(list(self.store.read()))
        self.made: list[Entry] = []
        self.at = AFTER_US
        self.rng = random.Random(4)

    def _drafts(self, count: int) -> list[Draft]:
        self.at += count
        return [event_draft(self.at - number, self.rng) for number in range(count)]

    def append(self, count: int) -> float:
        """Seconds for so many appends, one after another."""
        drafts = self._drafts(count)
        begin = perf_counter()
        made = [self.store.append([draft])[0] for draft in drafts]
        seconds = perf_counter() - begin
        self.made = made
        return seconds

    def batch(self, count: int) -> float:
        """Seconds for so many in one transaction."""
        drafts = self._drafts(count)
        begin = perf_counter()
        self.store.append(drafts)
        return perf_counter() - begin

    def verify(self) -> float:
        """Seconds for the checks of the ledger."""
        begin = perf_counter()
        with collect(self.root) as evidence:
            code = run(evidence, select=LEDGER_NAMES).exit_code
        if code:
            message = f"the checks of the ledger ended with {code}"
            raise RuntimeError(message)
        return perf_counter() - begin


class _Running:
    """A package at work in a process of its own; ``held`` counts what it was given."""

    def __init__(self, python: str, name: str, folder: str) -> None:
        self.command = (python, str(Path(__file__).with_name("contestant.py")), name, folder)
        self.at_once = COMMITS if name.startswith("git") else ONE_BY_ONE
        self.held = 0

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.communicate()

    def fill(self, count: int) -> None:
        """Give it so many entries: in one batch, or one by one where it takes no batch."""
        if self.act("batch", [TEXT] * count) is None:
            self.act("append", [TEXT] * count)

    def append(self) -> float | None:
        """Seconds for appends one after another."""
        return self.act("append", [TEXT] * self.at_once)

    def act(self, what: str, texts: Sequence[str]) -> float | None:
        """Seconds for one act; None where it cannot do that."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([what, texts]) + "\n")
        self.process.stdin.flush()
        seconds: float | None = json.loads(self.process.stdout.readline())
        if what != "verify" and seconds is not None:
            self.held += len(texts)
        return seconds


def _python_of(peer: Peer, say: Callable[[str], None]) -> str | None:
    """The interpreter of an environment in which the package is; None: it cannot be installed."""
    if not peer.package:
        return sys.executable
    folder = Path(sys.prefix, "peers", peer.package)
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        say(f"installing {peer.package}")
        venv.create(folder, with_pip=True, clear=True)
        words = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", peer.package)
        done = subprocess.run((python, *words), check=False, capture_output=True, text=True)
        if done.returncode:
            say(f"{peer.package} cannot be installed, so it is left out: {done.stderr.strip()}")
            return None
        (folder / "ready").touch()
    return str(python)
