"""The SQLite store beyond the contract: its guards, its settings, strangers' files, a full disk."""

import fcntl
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sample_ledger import faults, opening, said
from sealed import list_nodes as nodes_of

from tripod.ledger.entry import Entry, entry_leaf_hash
from tripod.ledger.errors import (
    IdReusedError,
    LedgerDamagedError,
    LedgerError,
    MalformedError,
    NoLedgerError,
    UnwritableError,
)
from tripod.ledger.merkle import (
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    root_of,
)
from tripod.ledger.sqlite.reader import SQLiteReader, read_block_nodes, read_only
from tripod.ledger.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION
from tripod.ledger.sqlite.store import SQLiteStore, sqlite_store_error
from tripod.ledger.store import Blobs

SQLITE = shutil.which("sqlite3")
SIZE = 600


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger of 600 entries: two full subtrees and three blobs. Copy it."""
    path = tmp_path_factory.mktemp("sample") / "ledger.db"
    with closing(SQLiteStore(str(path), create=True)) as store:
        store.append([opening(), said("first", id="first", blobs=(b"a", b"b", b"c"))])
        store.append([said(str(number)) for number in range(2, SIZE)])
    return path


@pytest.fixture
def path(sample: Path, tmp_path: Path) -> str:
    return str(shutil.copy(sample, tmp_path / "ledger.db"))


@pytest.fixture
def store(path: str) -> Iterator[SQLiteStore]:
    with closing(SQLiteStore(path)) as store:
        yield store


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose permissions are obeyed: root passes every check, so it becomes nobody."""
    with TemporaryDirectory() as name:
        root = os.geteuid() == 0
        if root:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(name, 0o700)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def dump(path: str) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


def edit(path: str, *statements: str) -> None:
    """Change a database by force: its guards are taken away first."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        triggers = db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)


# Guards ----------------------------------------------------------------------------------------

REFUSED = [
    "UPDATE entries SET body = NULL WHERE seq = 1",
    "UPDATE entries SET auth = x'01' WHERE seq = 1",
    "UPDATE entries SET seq = 1000 WHERE seq = 599",
    "UPDATE OR REPLACE entries SET id = 'first' WHERE seq = 2",
    "UPDATE OR IGNORE entries SET kind = 'x'",
    "DELETE FROM entries WHERE seq = 599",
    "DELETE FROM entries",
    "INSERT INTO entries VALUES (601, 'new', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT INTO entries VALUES (599, 'new', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT INTO entries VALUES (-1, 'new', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT INTO entries VALUES (NULL, 'new', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT INTO entries VALUES (600, 'first', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT OR REPLACE INTO entries VALUES (599, 'new', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT OR REPLACE INTO entries VALUES (0, 'new', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT OR REPLACE INTO entries VALUES (600, 'first', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT OR IGNORE INTO entries VALUES (599, 'new', 'k', 's', x'', NULL, NULL, NULL)",
    "REPLACE INTO entries VALUES (1, 'first', 'k', 's', x'', NULL, NULL, NULL)",
    "INSERT INTO entries SELECT * FROM entries WHERE 1 ON CONFLICT (id) DO UPDATE SET body = NULL",
    "UPDATE blobs SET bytes = x'00' WHERE number = 1",
    "DELETE FROM blobs WHERE number = 3",
    "DELETE FROM blobs",
    "INSERT OR REPLACE INTO blobs SELECT number, sha256, x'00' FROM blobs WHERE number = 1",
    "INSERT OR REPLACE INTO blobs SELECT 9, sha256, x'00' FROM blobs WHERE number = 1",
    "INSERT OR REPLACE INTO blobs VALUES (1, x'01', x'00')",
    "INSERT OR IGNORE INTO blobs SELECT * FROM blobs",
    "UPDATE nodes SET hash = x'00'",
    "DELETE FROM nodes WHERE number = 1",
    "DELETE FROM nodes",
    "INSERT OR REPLACE INTO nodes VALUES (1, 0, x'00')",
    "INSERT INTO nodes VALUES (1, 1, x'00')",
    "UPDATE head SET size = size - 1",
    "UPDATE head SET last = 'x'",
    "UPDATE head SET at = '9999-12-31T23:59:59.999999Z'",
    "UPDATE head SET stack = x''",
    "UPDATE head SET size = size + 1, origin = 'another'",
    "UPDATE head SET files = size + 1",
    "UPDATE head SET tables = size + 1",
    "DELETE FROM head",
    "INSERT INTO head (only, size, origin, last, at, stack) VALUES (0, 0, '', '', '', x'')",
    "REPLACE INTO head (only, size, origin, last, at, stack) VALUES (0, 0, '', '', '', x'')",
    "INSERT INTO head (only, size, origin, last, at, stack) VALUES (1, 0, '', '', '', x'')",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_the_database_refuses_to_change_the_past(path: str, statement: str) -> None:
    before = dump(path)
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as db,
        pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"),
    ):
        db.execute(statement)
    assert dump(path) == before


@pytest.mark.skipif(SQLITE is None, reason="the sqlite3 command is not installed here")
def test_the_database_refuses_it_to_the_sqlite3_command(path: str) -> None:
    before = dump(path)
    for statement in REFUSED:
        done = subprocess.run(
            [str(SQLITE), path, statement], capture_output=True, text=True, check=False
        )
        assert (done.returncode != 0, "append-only" in done.stderr) == (True, True), statement
    assert dump(path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO entries VALUES (600, 'new', 'k', 's', 'text', NULL, NULL, NULL)",
        "INSERT INTO entries VALUES (600, x'00', 'k', 's', x'00', NULL, NULL, NULL)",
        "INSERT INTO blobs VALUES (9, 'text', x'00')",
        "INSERT INTO nodes VALUES (1, 'text', x'00')",
        "UPDATE head SET stack = 'text', size = size + 1",
    ],
)
def test_each_column_takes_its_own_type_alone(path: str, statement: str) -> None:
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as db,
        pytest.raises(sqlite3.IntegrityError, match="cannot store"),
    ):
        db.execute(statement)


def append_and_execute(store: SQLiteStore, statement: str) -> None:
    with store.transaction() as transaction:
        transaction.tables.execute(statement)
        transaction.append([said("lost")])


def test_a_store_whose_guards_refused_goes_on(store: SQLiteStore) -> None:
    for statement in REFUSED:
        with pytest.raises(LedgerDamagedError, match="append-only"):
            append_and_execute(store, statement)
    store.append([said("kept")])
    assert store.head().size == SIZE + 1
    assert faults(store) == []


# Settings --------------------------------------------------------------------------------------


def test_the_settings_are_in_force(path: str, store: SQLiteStore) -> None:
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
        "trusted_schema": 0,
        "wal_autocheckpoint": 4000,
        "application_id": APPLICATION_ID,
        "user_version": SCHEMA_VERSION,
    }
    found = {name: store.db.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted}
    assert found == wanted
    header = Path(path).read_bytes()[:100]
    assert header[18:20] == b"\x02\x02"  # write-ahead log, said in the file itself
    assert header[68:72] == b"trip"


def test_durability_follows_the_setting(store: SQLiteStore) -> None:
    assert store.durability() == "fsync"
    store.db.execute("PRAGMA synchronous = NORMAL")
    assert store.durability() == "none"


def test_what_a_table_forgets_is_gone_from_the_file(path: str, store: SQLiteStore) -> None:
    secret = "a secret that was taken back"
    db = store.db
    db.execute("CREATE TABLE notes (text TEXT)")
    db.execute("INSERT INTO notes VALUES (?)", (secret,))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() in Path(path).read_bytes()
    db.execute("DELETE FROM notes")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() not in Path(path).read_bytes()


def test_a_closed_store_holds_nothing_open(path: str) -> None:
    store = SQLiteStore(path)
    store.append([said()])
    assert beside(path) == {"ledger.db", "ledger.db.lock", "ledger.db-wal", "ledger.db-shm"}
    store.close()
    assert beside(path) == {"ledger.db", "ledger.db.lock"}
    assert store._lock._fd == -1
    store.close()


def beside(path: str) -> set[str]:
    """The names in the ledger's folder."""
    return {file.name for file in Path(path).parent.iterdir()}


# Whose file is it? -----------------------------------------------------------------------------


def foreign(*statements: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            for statement in statements:
                db.execute(statement)

    return make


def write_a_diary(path: Path) -> None:
    path.write_text("Dear diary, " * 100, encoding="utf-8")


STRANGERS = {
    "a table": foreign("CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')"),
    "a table and our version number": foreign(
        "CREATE TABLE notes (text)", f"PRAGMA user_version = {SCHEMA_VERSION}"
    ),
    "a version number alone": foreign("PRAGMA user_version = 7", "VACUUM"),
    "tables of our names": foreign("CREATE TABLE entries (seq)", "CREATE TABLE head (size)"),
    "another application": foreign("CREATE TABLE notes (text)", "PRAGMA application_id = 5"),
    "no database": write_a_diary,
}


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("name", STRANGERS)
def test_another_programs_file_is_refused_and_not_touched(
    *, tmp_path: Path, name: str, create: bool
) -> None:
    path = tmp_path / "theirs.db"
    STRANGERS[name](path)
    before = snapshot(tmp_path)
    with pytest.raises(LedgerDamagedError, match=r"another program|not a database"):
        SQLiteStore(str(path), create=create)
    assert snapshot(tmp_path) == before


def test_a_newer_ledger_is_refused_and_not_touched(path: str) -> None:
    edit(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = Path(path).read_bytes()
    with pytest.raises(LedgerDamagedError, match=f"has schema {SCHEMA_VERSION + 1}.*newer tripod"):
        SQLiteStore(path)
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("open_it", [SQLiteStore, read_only])
def test_a_refused_file_is_not_held_open(
    tmp_path: Path, open_it: Callable[[str], SQLiteStore | sqlite3.Connection]
) -> None:
    path = tmp_path / "theirs.db"
    write_a_diary(path)
    with pytest.raises(LedgerDamagedError) as caught:
        open_it(str(path))
    assert caught.tb is not None  # it would keep what the failed call left behind
    assert path.stat().st_ino not in open_files()


def open_files() -> set[int]:
    """The inodes of all that this process has open."""
    found = set()
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # the descriptor of this very listing
            found.add(os.fstat(int(name)).st_ino)
    return found


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    """As a process leaves it that died between making the file and filling it."""
    path = tmp_path / "ledger.db"
    path.touch()
    with closing(SQLiteStore(str(path))) as store:
        store.append([opening()])
        assert faults(store) == []


# Damage ----------------------------------------------------------------------------------------


def test_a_head_that_does_not_fit_is_damage(path: str) -> None:
    edit(path, "UPDATE head SET stack = substr(stack, 33)")
    with closing(SQLiteStore(path)) as store:
        with pytest.raises(LedgerDamagedError, match="head row is damaged"):
            store.append([said()])
        with pytest.raises(LedgerDamagedError, match="head row is damaged"):
            store.head()


def test_a_head_behind_its_entries_cannot_be_appended_to(path: str) -> None:
    """Its next seq stands there already; nothing is overwritten."""
    edit(path, "UPDATE head SET size = 512, stack = substr(stack, 1, 32)")
    with closing(SQLiteStore(path)) as store, pytest.raises(LedgerDamagedError, match="verify"):
        store.append([said()])


def test_a_missing_table_is_damage(path: str) -> None:
    edit(path, "DROP TABLE head")
    with (
        closing(SQLiteStore(path)) as store,
        pytest.raises(LedgerDamagedError, match="no such table: head; run `tripod verify"),
    ):
        store.append([said()])


def test_a_garbled_file_is_damage(path: str) -> None:
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with (
        pytest.raises(LedgerDamagedError, match=r"malformed|not a database"),
        closing(SQLiteStore(path)) as store,
    ):
        store.append([said()])


def test_an_erased_body_reads_as_none_and_its_id_is_still_known(path: str) -> None:
    edit(path, "UPDATE entries SET salt = NULL, body = NULL WHERE id = 'first'")
    with closing(SQLiteStore(path)) as store:
        (erased,) = store.read(1, 2)
        assert (erased.salt, erased.body, erased.data) == (None, None, {})
        assert store.append([said("first", id="first")]) == [erased]
        assert store.append([said("any other", id="first")]) == [erased]
        with pytest.raises(IdReusedError):
            store.append([said("first", id="first", kind="chat.created")])


# Where it cannot be written --------------------------------------------------------------------


def test_no_file_is_no_ledger_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(NoLedgerError, match=r"no ledger at .*tripod init"):
        SQLiteStore(str(tmp_path / "ledger.db"))
    with pytest.raises(NoLedgerError, match="no ledger at"):
        read_only(str(tmp_path / "ledger.db"))
    with pytest.raises(NoLedgerError):
        read_only(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_no_folder_or_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(UnwritableError, match="unable to open database file"):
        SQLiteStore(str(tmp_path / "missing" / "ledger.db"), create=True)
    with pytest.raises(UnwritableError, match="unable to open database file"):
        SQLiteStore(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_permission_takes_no_new_ledger(folder: Path) -> None:
    folder.chmod(0o500)
    with pytest.raises(UnwritableError, match="nothing was recorded"):
        SQLiteStore(str(folder / "ledger.db"), create=True)
    assert list(folder.iterdir()) == []


def test_a_ledger_in_a_read_only_folder_can_be_read_alone(folder: Path) -> None:
    path = str(folder / "ledger.db")
    with closing(SQLiteStore(path, create=True)) as store:
        store.append([opening(), said()])
    before = snapshot(folder)
    folder.chmod(0o500)
    with pytest.raises(UnwritableError, match="nothing was recorded"):
        SQLiteStore(path)
    with closing(read_only(path)) as db:
        assert len(list(SQLiteReader(db).read())) == 2
    assert snapshot(folder) == before
    folder.chmod(0o700)
    with closing(SQLiteStore(path)) as store:
        store.append([said()])
        assert faults(store) == []


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db.lock"])
def test_a_file_without_permission(folder: Path, name: str) -> None:
    path = str(folder / "ledger.db")
    with closing(SQLiteStore(path, create=True)) as store:
        store.append([opening()])
    (folder / name).chmod(0o400)
    with closing(SQLiteStore(path)) as store:
        with pytest.raises(UnwritableError, match="nothing was recorded"):
            store.append([said("lost")])
        assert store.head().size == 1
    for file in folder.iterdir():  # SQLite gives the files beside a database the mode it has
        file.chmod(0o600)
    with closing(SQLiteStore(path)) as store:
        store.append([said("kept")])
        assert faults(store) == []


def test_a_log_left_in_a_read_only_folder_is_not_read_past(folder: Path) -> None:
    """Its entries are in the log alone: the file without it would be a shorter ledger."""
    path = folder / "ledger.db"
    store = SQLiteStore(str(path), create=True)
    store.append([opening(), said()])
    copy = folder / "copy"
    copy.mkdir()
    for name in ("ledger.db", "ledger.db-wal"):
        shutil.copy(folder / name, copy / name)
    store.close()
    for mode in (0o500, 0o700):
        copy.chmod(mode)
        with closing(read_only(str(copy / "ledger.db"))) as db:
            assert len(list(SQLiteReader(db).read())) == 2
        if mode == 0o500:
            assert sorted(os.listdir(copy)) == ["ledger.db", "ledger.db-wal"]


def test_another_program_that_holds_the_database(path: str, store: SQLiteStore) -> None:
    store.db.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnwritableError, match="another program holds the database"):
            store.append([said()])
        other.execute("ROLLBACK")
    store.append([said()])
    assert faults(store) == []


def test_errors_of_the_caller_pass_as_they_are(store: SQLiteStore) -> None:
    missing = FileNotFoundError(2, "No such file or directory", "elsewhere.txt")
    for error in (missing, OSError("no name"), ValueError("x"), MalformedError("x")):
        with pytest.raises(type(error)) as caught, store.transaction():
            raise error
        assert caught.value is error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (sqlite3.OperationalError("disk I/O error"), UnwritableError, "is the disk full, or"),
        (sqlite3.OperationalError("database or disk is full"), UnwritableError, "full; nothing"),
        (sqlite3.OperationalError("unable to open database file"), UnwritableError, "nothing was"),
        (
            sqlite3.OperationalError("attempt to write a readonly database"),
            UnwritableError,
            "reado",
        ),
        (sqlite3.OperationalError("database is locked"), UnwritableError, "another program"),
        (sqlite3.OperationalError("no such table: head"), LedgerDamagedError, "tripod verify a.db"),
        (sqlite3.DatabaseError("file is not a database"), LedgerDamagedError, "tripod verify a.db"),
        (PermissionError(13, "Permission denied", "a.db.lock"), UnwritableError, "denied; nothing"),
    ],
)
def test_errors_are_told_in_words_that_help(
    error: Exception, kind: type[Exception], words: str
) -> None:
    told = sqlite_store_error(error, "a.db")
    assert type(told) is kind
    assert str(told).startswith("a.db: ")
    assert words in str(told)


def test_errors_about_something_else_are_not_ours() -> None:
    for error in (OSError("no name"), PermissionError(13, "Permission denied", "b.db")):
        assert sqlite_store_error(error, "a.db") is error


# After the commit ------------------------------------------------------------------------------


def test_what_runs_after_the_commit_sees_it_and_still_has_the_writers_place(
    path: str, store: SQLiteStore
) -> None:
    seen: list[int] = []

    def after() -> None:
        with closing(SQLiteStore(path)) as other:
            seen.append(other.head().size)
        with open(path + ".lock", "rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with store.transaction(after) as transaction:
        transaction.append([said()])
    assert seen == [SIZE + 1]
    with open(path + ".lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_nothing_runs_after_what_was_undone(store: SQLiteStore) -> None:
    calls: list[int] = []
    with (
        pytest.raises(LedgerDamagedError),
        store.transaction(lambda: calls.append(1)) as transaction,
    ):
        transaction.tables.execute("UPDATE head SET size = 0")
    assert calls == []


def test_what_fails_after_the_commit_undoes_nothing(store: SQLiteStore) -> None:
    error = sqlite3.OperationalError("disk I/O error")

    def after() -> None:
        raise error

    with pytest.raises(sqlite3.OperationalError) as caught, store.transaction(after) as transaction:
        transaction.append([said("kept")])
    assert caught.value is error  # and no word that nothing was recorded
    assert store.head().size == SIZE + 1
    store.append([said()])
    assert faults(store) == []


def derive(store: SQLiteStore, *statements: str) -> None:
    with store.derived() as db:
        for statement in statements:
            db.execute(statement)


def test_what_can_be_made_anew_is_not_synced_and_the_next_append_is(store: SQLiteStore) -> None:
    with store.derived() as db:
        db.execute("UPDATE head SET files = size, tables = size")
        assert store.durability() == "none"
    assert store.durability() == "fsync"
    with pytest.raises(sqlite3.IntegrityError):
        derive(store, "UPDATE head SET files = 0", "DELETE FROM head")
    with pytest.raises(sqlite3.IntegrityError):
        derive(store, "ROLLBACK", "DELETE FROM head")
    assert store.durability() == "fsync"
    assert store.db.execute("SELECT files, tables FROM head").fetchone() == (SIZE, SIZE)
    store.append([said()])
    assert store.db.execute("SELECT files, tables FROM head").fetchone() == (SIZE, SIZE)
    assert faults(store) == []


def test_a_commit_that_fails_undoes_everything(store: SQLiteStore) -> None:
    def deny(action: int, name: str | None, *_: object) -> int:
        commits = action == sqlite3.SQLITE_TRANSACTION and name == "COMMIT"
        return sqlite3.SQLITE_DENY if commits else sqlite3.SQLITE_OK

    store.db.set_authorizer(deny)
    with pytest.raises(LedgerDamagedError, match="not authorized"):
        store.append([said("lost")])
    store.db.set_authorizer(None)
    assert store.head().size == SIZE
    store.append([said("kept")])
    assert faults(store) == []


def append_behind_a_rollback(store: SQLiteStore) -> None:
    with store.transaction() as transaction:
        transaction.append([said("lost")])
        transaction.tables.execute("ROLLBACK")
        with suppress(LedgerError):
            transaction.append([said("lost too")])


def test_behind_a_rollback_nothing_more_is_taken(path: str, store: SQLiteStore) -> None:
    """SQLite itself undoes a transaction on some errors; each statement would then stand alone."""
    with pytest.raises(LedgerError, match="failed half way"):
        append_behind_a_rollback(store)
    assert store.head().size == SIZE
    with closing(SQLiteStore(path)) as other:
        other.append([said("the lock was given back")])
        assert faults(other) == []


def count_texts(tables: sqlite3.Connection, entries: Sequence[Entry], _: Blobs) -> None:
    tables.execute("CREATE TABLE IF NOT EXISTS texts (seq INTEGER PRIMARY KEY)")
    tables.executemany("INSERT INTO texts VALUES (?)", [(entry.seq,) for entry in entries])


def test_tables_that_are_behind_are_left_behind(path: str) -> None:
    """They are folded again from the entries by whoever brings them up, not by an append."""
    with closing(SQLiteStore(path)) as store:
        store.append([said("nobody folds this")])
    with closing(SQLiteStore(path, fold=count_texts)) as store:
        store.append([said("nor this")])
        cursor = "SELECT size, tables FROM head"
        assert store.db.execute(cursor).fetchone() == (SIZE + 2, 0)
        with store.transaction() as transaction:
            count_texts(store.db, list(store.read()), store.blob)
            transaction.tables_folded()
            transaction.append([said("this"), said("and this")])
            transaction.append([said("and this too")])
        assert store.db.execute(cursor).fetchone() == (SIZE + 5, SIZE + 5)
        store.append([said("and so on")])
        assert store.db.execute(cursor).fetchone() == (SIZE + 6, SIZE + 6)
        assert store.db.execute("SELECT count(*) FROM texts").fetchone() == (SIZE + 6,)
        assert faults(store) == []


# A full disk -----------------------------------------------------------------------------------


def fill(store: SQLiteStore) -> list[str]:
    """Append until the disk refuses; give the ids that were answered."""
    answered: list[str] = []
    while True:
        try:
            (entry,) = store.append([said("x" * 60_000)])
        except UnwritableError:
            return answered
        answered.append(entry.id)


def check_nothing_was_lost(path: str, store: SQLiteStore, answered: list[str]) -> None:
    """What was answered is there, nothing else is, and it goes on: here and after reopening."""
    assert answered
    assert [entry.id for entry in store.read(SIZE)] == answered
    assert faults(store) == []
    (entry,) = store.append([said("there is room again")])
    with closing(SQLiteStore(path)) as again:
        assert [entry.id for entry in again.read(SIZE)] == [*answered, entry.id]
        assert faults(again) == []


def test_a_database_that_may_not_grow(path: str, store: SQLiteStore) -> None:
    pages = store.db.execute("PRAGMA page_count").fetchone()[0]
    store.db.execute(f"PRAGMA max_page_count = {pages + 100}")
    answered = fill(store)
    assert fill_again_fails(store)
    store.db.execute("PRAGMA max_page_count = 1000000")
    check_nothing_was_lost(path, store, answered)


def fill_again_fails(store: SQLiteStore) -> bool:
    """Whether a large append is still refused, and the head stays where it was."""
    head = store.head()
    with pytest.raises(UnwritableError):
        store.append([said("x" * 60_000)])
    return store.head() == head


def test_a_disk_that_takes_no_more(path: str, store: SQLiteStore) -> None:
    """A limit on file sizes stands for the disk: the write itself fails, of the log or the file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 300_000, hard))
    try:
        answered = fill(store)
        assert fill_again_fails(store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check_nothing_was_lost(path, store, answered)


# Reading ---------------------------------------------------------------------------------------


def test_nodes_are_those_of_the_leaves(path: str) -> None:
    with closing(SQLiteStore(path)) as store:
        expected = nodes_of([entry_leaf_hash(entry.header) for entry in store.read()])
        for height in range(10):
            for index in range(SIZE >> height):
                assert store.node(height, index) == expected(height, index)
    edit(path, "DELETE FROM nodes")  # they are derived: without them it is slower, not different
    with closing(SQLiteStore(path)) as store:
        for height in range(10):
            assert store.node(height, 0) == expected(height, 0)


@pytest.mark.parametrize("height", [0, 1, 7, 8, 9])
def test_a_node_is_looked_up_or_takes_one_read(store: SQLiteStore, height: int) -> None:
    statements: list[str] = []
    store.db.set_trace_callback(statements.append)
    store.node(height, 0)
    assert len(statements) == 1


def test_nodes_that_were_kept_see_what_was_appended(store: SQLiteStore) -> None:
    nodes = read_block_nodes(store.db)
    for _ in range(3):
        head = store.head()
        assert root_of(nodes, 0, head.size) == head.root
        for index in range(0, head.size, 256):
            proof = inclusion_proof(nodes, index, head.size)
            leaf = nodes(0, index)
            assert check_inclusion(leaf, index, head.size, proof, head.root)
        store.append([said()] * 90)
    with pytest.raises(LedgerDamagedError, match="entry 5000 is missing"):
        nodes(0, 5000)


def test_proofs_out_of_the_store_lead_to_its_head(store: SQLiteStore) -> None:
    leaves = [entry_leaf_hash(entry.header) for entry in store.read()]
    old = store.head()
    store.append([said()] * 200)
    head = store.head()
    for index in (0, 1, 255, 256, 511, 512, 599):
        proof = inclusion_proof(store.node, index, head.size)
        assert check_inclusion(leaves[index], index, head.size, proof, head.root)
    proof = consistency_proof(store.node, old.size, head.size)
    assert check_consistency(old.size, old.root, head.size, head.root, proof)


def test_read_only_reads_only(path: str) -> None:
    before = Path(path).read_bytes()
    with closing(read_only(path)) as db:
        assert len(list(SQLiteReader(db).read(stream="chat/general"))) == SIZE - 1
        assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            db.execute("CREATE TABLE x (y)")
    assert Path(path).read_bytes() == before


def test_read_only_takes_any_name(sample: Path, tmp_path: Path) -> None:
    path = str(shutil.copy(sample, tmp_path / "a b?mode=rw#é%41.db"))
    with closing(read_only(path)) as db:
        assert len(list(SQLiteReader(db).read())) == SIZE


def test_read_only_refuses_what_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "text"
    write_a_diary(path)
    with pytest.raises(LedgerDamagedError, match="not a database"):
        read_only(str(path))


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_a_link_in_the_place_of_a_file_of_sqlites_own_is_not_followed(
    path: str, suffix: str
) -> None:
    os.symlink("elsewhere", path + suffix)
    with pytest.raises(LedgerDamagedError, match=f"{suffix} beside it is no plain file"):
        SQLiteStore(path)
    assert not os.path.exists(path + suffix)


def test_a_commit_that_the_disk_did_not_confirm_is_not_denied() -> None:
    """It stands in the write-ahead log, and the next process may find it there."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
    told = sqlite_store_error(error, "a.db")
    assert isinstance(told, UnwritableError)
    assert "it may be recorded or not" in str(told)
    assert "nothing was recorded" not in str(told)
