"""Every store keeps the one contract; and what each promises beyond it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from core.sqlite.store_contract import (
    Again,
    Make,
    SharedStoreContract,
    StoreContract,
    answers_for,
    several,
)
from memory_store import MemoryStore
from plain_export import files_of, key_of, write_files
from sample_ledger import ORIGIN, faults, opening, said

from tripod.ledger.entry import Entry
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.ledger.sqlite.repair import add_entry_rows
from tripod.ledger.sqlite.schema import migrate_schema
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.ledger.store import Fold, Store
from tripod.verify.export import ExportFiles, load_export
from tripod.verify.rows import RowReader


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


class TestSQLiteStore(SharedStoreContract):
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

    @pytest.fixture
    def again(self) -> Again:
        def again(store: Store) -> Store:
            assert isinstance(store, SQLiteStore)
            return SQLiteStore(store.path)

        return again

    def test_what_is_answered_is_on_disk(self, store: Store) -> None:
        assert store.durability() == "fsync"


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "ledger.db")
    store = SQLiteStore(path, create=True)
    store.append([opening()])
    store.close()
    return path


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


# Readers without a store ------------------------------------------------------------------------


@pytest.fixture
def several_at(path: str) -> list[Entry]:
    """The entries of a ledger at ``path``, of several kinds."""
    with closing(SQLiteStore(path)) as store:
        return several(store)


@pytest.mark.parametrize("reader", [SQLiteReader, RowReader])
def test_a_connection_that_only_reads_gives_the_same_answers(
    path: str, several_at: list[Entry], reader: type[SQLiteReader]
) -> None:
    with closing(read_only(path)) as db:
        answers_for(reader(db), several_at)


def test_an_export_that_was_loaded_gives_the_same_answers(
    path: str, several_at: list[Entry], tmp_path: Path
) -> None:
    write_files(str(tmp_path / "export"), files_of(path))
    scratch = str(tmp_path / "scratch.db")
    loaded = load_export(
        ExportFiles(str(tmp_path / "export")), scratch, [key_of(ORIGIN).verifier()]
    )
    assert loaded.tally.found == {}
    with closing(read_only(scratch)) as db:
        answers_for(SQLiteReader(db), several_at)


def test_the_file_of_an_older_version_is_read_without_its_newest_column(tmp_path: Path) -> None:
    path = str(tmp_path / "older.db")
    with closing(sqlite3.connect(path)) as db:
        migrate_schema(db, 2)
        db.execute("INSERT INTO entries VALUES (0, 'a', 'k', 's', x'7b7d', x'01', x'7b7d')")
        db.commit()
    with closing(read_only(path)) as db:
        (entry,) = SQLiteReader(db).raw()
    assert entry == (0, "a", "k", "s", b"{}", b"\x01", b"{}", None)


def test_an_id_that_stands_before_is_named_and_what_is_before_it_stays(tmp_path: Path) -> None:
    rows = [(seq, id_, "k", "s", b"{}", None, None, None) for seq, id_ in enumerate("abcb")]
    with closing(sqlite3.connect(tmp_path / "new.db")) as db:
        migrate_schema(db)
        with pytest.raises(sqlite3.IntegrityError, match=r"^entry 3 has an id that stands before"):
            add_entry_rows(db, rows)
        kept = db.execute("SELECT seq, id FROM entries ORDER BY seq").fetchall()
    assert kept == [(0, "a"), (1, "b"), (2, "c")]


def test_nothing_but_kinds_texts_and_newest_is_found_by_a_walk(path: str) -> None:
    """Each statement goes by the primary key or by the index of ids, but for three."""
    with closing(SQLiteStore(path)) as store:
        asked: list[str] = []
        store.db.set_trace_callback(asked.append)
        for found in (
            store.read(3, 5, stream="chat/a", kinds=("chat.sent",), newest_first=True, limit=1),
            store.raw_of([1, 2]),
            store.raw_by_id("a", "b"),
        ):
            list(found)
        store.count_by_id("a", "b")
        store.header(1)
        store.seq_of("id")
        store.last_seq(kind="chat.sent", stream="chat/a", stop=9)
        store.kinds(1, 5)
        store.blob(bytes(32))
        store.hashes(1, 0, 1)
        store.db.set_trace_callback(None)
        plans = [
            (sql, row[3]) for sql in asked for row in store.db.execute(f"EXPLAIN QUERY PLAN {sql}")
        ]
    walks = [f"{sql}: {step}" for sql, step in plans if step.startswith("SCAN")]
    assert [walk for walk in walks if "json_each" not in walk] == []
    assert any("USING COVERING INDEX sqlite_autoindex_entries_1" in step for _, step in plans)
