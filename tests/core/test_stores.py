"""Every store keeps the one contract; and what each promises beyond it."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from core.store_contract import Make, StoreContract
from sample_ledger import faults, opening, said

from tripod.ledger.errors import ConflictError
from tripod.ledger.memory import MemoryStore
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.store import Fold, Guard, Store


class TestMemoryStore(StoreContract):
    """The twin in memory."""

    @pytest.fixture
    def make(self) -> Iterator[Make]:
        made: list[Store] = []

        def make(fold: Fold | None) -> Store:
            made.append(MemoryStore(fold=fold))
            return made[-1]

        yield make
        for store in made:
            store.close()

    def test_nothing_outlives_the_process(self, store: Store) -> None:
        assert store.durability() == "none"
        with store.transaction() as transaction:
            tables = transaction.tables
        store.close()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            tables.execute("SELECT 1")


class TestSQLiteStore(StoreContract):
    """The store in a database file."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Make]:
        made: list[Store] = []

        def make(fold: Fold | None) -> Store:
            path = tmp_path / f"{len(made)}.db"
            made.append(SQLiteStore(str(path), fold=fold, create=True))
            return made[-1]

        yield make
        for store in made:
            store.close()

    def test_what_is_answered_is_on_disk(self, store: Store) -> None:
        assert store.durability() == "fsync"


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "ledger.db")
    store = SQLiteStore(path, create=True)
    store.append([opening()])
    store.close()
    return path


@pytest.fixture
def two(path: str) -> Iterator[tuple[SQLiteStore, SQLiteStore]]:
    """Two stores on one file, as two programs have them."""
    one, other = SQLiteStore(path), SQLiteStore(path, create=True)
    yield one, other
    one.close()
    other.close()


def test_a_reopened_store_holds_the_same_and_goes_on(path: str) -> None:
    store = SQLiteStore(path)
    store.append([said("one", blobs=(b"blob",), id="id")] + [said()] * 300)
    before = (store.origin, store.head(), list(store.read()))
    store.close()
    again = SQLiteStore(path)
    assert (again.origin, again.head(), list(again.read())) == before
    assert again.append([said("one", id="id")]) == [before[2][1]]
    again.append([said()])
    assert again.head().size == 303
    assert faults(again) == []
    again.close()


def test_two_stores_take_turns(two: tuple[SQLiteStore, SQLiteStore]) -> None:
    for number in range(10):
        two[number % 2].append([said(str(number), id=str(number))])
    assert two[0].head() == two[1].head()
    assert list(two[0].read()) == list(two[1].read())
    assert two[0].append([said("7", id="7")]) == two[1].append([said("7", id="7")])
    assert faults(two[0]) == []


def test_a_guard_sees_what_the_other_appended(two: tuple[SQLiteStore, SQLiteStore]) -> None:
    one, other = two
    size = one.head().size
    other.append([said(channel="a")])
    with pytest.raises(ConflictError):
        one.append([said(channel="a")], Guard("chat/a", size))
    one.append([said(channel="b")], Guard("chat/b", size))
    assert faults(other) == []


def test_a_reader_is_not_kept_waiting_and_sees_nothing_half_done(
    two: tuple[SQLiteStore, SQLiteStore],
) -> None:
    one, other = two
    with one.transaction() as transaction:
        transaction.append([said()])
        assert other.head().size == 1
        assert len(list(other.read())) == 1
    assert other.head().size == 2


def test_waiting_ends_when_the_other_appends(path: str) -> None:
    def wait() -> int:
        reader = SQLiteStore(path)
        try:
            return reader.wait(1, 60)
        finally:
            reader.close()

    writer = SQLiteStore(path)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        writer.append([said()])
        assert waiting.result(timeout=60) == 2
    writer.close()
