"""The SQLite store against its twin in memory: whatever is asked of both, they answer alike."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from memory_store import MemoryStore
from queued import append_queued
from sample_ledger import faults, opening, said

from tripod.ledger.entry import MAX_BODY, Draft, Entry
from tripod.ledger.errors import LedgerError
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.store import Blobs, Guard, Store

STREAMS = ["chat/a", "chat/b", "bus"]
BLOBS = [b"", b"one", b"two" * 9]
DIGESTS = [sha256(blob).digest() for blob in BLOBS]

# An id of None is replaced by a new one that both stores are given.
GOOD = st.builds(
    said,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    stream=st.sampled_from(STREAMS),
    id=st.none() | st.sampled_from(["a", "b", "c", "d"]),
    cause=st.none() | st.just("a"),
    blobs=st.lists(st.sampled_from(BLOBS), max_size=2).map(tuple),
    salt=st.just(b"s" * 32),
    auth=st.none() | st.just(b"record"),
)
BAD = {
    "too large": said("x" * MAX_BODY),
    "no Unicode": said("\ud800"),
    "too large a number": said()._replace(body={"n": 2**60}),
    "opened again": opening("again"),
}
REFUSED = st.sampled_from(sorted(BAD)).map(lambda name: BAD[name])
BATCHES = st.lists(GOOD, max_size=4) | st.lists(GOOD | REFUSED, max_size=4)
GUARDS = st.none() | st.tuples(st.sampled_from(STREAMS), st.integers(0, 5))

Batch: TypeAlias = "tuple[list[Draft], tuple[str, int] | None]"
Shape: TypeAlias = "list[tuple[object, ...]]"


def fold(tables: Any, entries: Sequence[Entry], _: Blobs) -> None:
    """Count the entries of each stream; refuse a stream that grows too fast."""
    tables.execute("CREATE TABLE IF NOT EXISTS counts (stream TEXT PRIMARY KEY, count INTEGER)")
    for entry in entries:
        tables.execute(
            "INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
            (entry.stream,),
        )
    if sum(entry.stream == "bus" for entry in entries) > 2:
        raise OverflowError


def shape(entries: Sequence[Entry]) -> Shape:
    """What two stores must agree on: all but the time, the salt, and what is hashed from them."""
    return [
        (
            entry.seq,
            entry.id,
            entry.kind,
            entry.stream,
            entry.actor,
            entry.body,
            entry.data,
            entry.auth,
        )
        for entry in entries
    ]


def outcome(act: Callable[[], Shape]) -> object:
    """What came of an act: its answer, or the kind of its refusal."""
    try:
        return act()
    except (LedgerError, OverflowError) as error:
        return type(error)


class Twins(RuleBasedStateMachine):
    """Both stores, driven by the same acts."""

    @initialize(opened=st.booleans())
    def make(self, *, opened: bool) -> None:
        self.folder = TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "ledger.db")
        self.sqlite = SQLiteStore(self.path, fold=fold, create=True)
        self.memory = MemoryStore(fold=fold)
        self.numbers = count()
        if opened:
            self.open_it()

    def both(self, act: Callable[[Store], Shape]) -> None:
        """Ask both, and expect the same answer."""
        first = outcome(lambda: act(self.memory))
        assert outcome(lambda: act(self.sqlite)) == first

    def named(self, drafts: list[Draft]) -> list[Draft]:
        """The drafts with an id each."""
        return [
            draft if draft.id else draft._replace(id=f"new-{next(self.numbers)}")
            for draft in drafts
        ]

    def guard(self, of: tuple[str, int] | None) -> Guard | None:
        """A guard that looked so many entries ago."""
        return of and Guard(of[0], max(0, self.memory.head().size - of[1]))

    @rule()
    def open_it(self) -> None:
        self.both(lambda store: shape(store.append([opening()._replace(id="opening")])))

    @rule(drafts=BATCHES, of=GUARDS)
    def append(self, drafts: list[Draft], of: tuple[str, int] | None) -> None:
        batch, guard = self.named(drafts), self.guard(of)
        self.both(lambda store: shape(store.append(batch, guard)))

    @rule(batches=st.lists(st.tuples(BATCHES, GUARDS), max_size=3), undone=st.booleans())
    def transaction(self, *, batches: list[Batch], undone: bool) -> None:
        named = [(self.named(drafts), self.guard(of)) for drafts, of in batches]

        def act(store: Store) -> Shape:
            found: Shape = []
            with store.transaction() as transaction:
                for drafts, guard in named:
                    found += shape(transaction.append(drafts, guard))
                    found.append((transaction.size,))
                if undone:
                    raise OverflowError
            return found

        self.both(act)

    @rule(batches=st.lists(st.tuples(BATCHES, GUARDS), max_size=3))
    def forgiving_transaction(self, batches: list[Batch]) -> None:
        """A refused batch within it is passed over, and the others are kept."""
        named = [(self.named(drafts), self.guard(of)) for drafts, of in batches]

        def act(store: Store) -> Shape:
            found: Shape = []
            with store.transaction() as transaction:
                for drafts, guard in named:
                    try:
                        found += shape(transaction.append(drafts, guard))
                    except LedgerError as error:
                        found.append((type(error), transaction.size))
            return found

        self.both(act)

    @rule(batches=st.lists(st.tuples(BATCHES, GUARDS), min_size=2, max_size=4))
    def wait_together(self, batches: list[Batch]) -> None:
        """Threads that share a transaction get what they would have got one after the other."""
        named = [(self.named(drafts), self.guard(of)) for drafts, of in batches]
        found = append_queued(self.sqlite, lambda: SQLiteStore(self.path, fold=fold), named)
        for (drafts, guard), one in zip(named, found, strict=True):
            expected = outcome(partial(lambda *its: shape(self.memory.append(*its)), drafts, guard))
            assert (shape(one) if isinstance(one, list) else type(one)) == expected

    @rule(start=st.integers(0, 20), stop=st.none() | st.integers(0, 20), at=st.integers(-1, 2))
    def read(self, start: int, stop: int | None, at: int) -> None:
        stream = None if at < 0 else STREAMS[at]
        self.both(lambda store: shape(list(store.read(start, stop, stream=stream))))

    @rule()
    def reopen(self) -> None:
        before = self.sqlite.head()
        self.sqlite.close()
        self.sqlite = SQLiteStore(self.path, fold=fold)
        assert self.sqlite.head() == before

    @invariant()
    def they_agree(self) -> None:
        assert self.sqlite.origin == self.memory.origin
        size = self.memory.head().size
        assert self.sqlite.head().size == self.sqlite.wait(0, 0) == size
        for digest in DIGESTS:
            assert self.sqlite.blob(digest) == self.memory.blob(digest)

    def teardown(self) -> None:
        with self.folder, closing(self.sqlite), closing(self.memory):
            self.both(lambda store: shape(list(store.read())))
            assert faults(self.sqlite) == []
            assert faults(self.memory) == []
            if self.memory.origin:
                query = "SELECT stream, count FROM counts ORDER BY stream"
                assert (
                    self.sqlite.db.execute(query).fetchall()
                    == self.memory.db.execute(query).fetchall()
                )


TestTwins = Twins.TestCase
TestTwins.settings = settings(stateful_step_count=20)
