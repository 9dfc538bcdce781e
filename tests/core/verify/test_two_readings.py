"""A database that says one thing to a reader and another to the next writer is not judged clean."""

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from doors.inside import run
from specimens import build, copy, database

from tripod.bus import events
from tripod.ledger.errors import LedgerDamagedError
from tripod.ledger.sqlite.reader import read_only, reader_keeps_log, reader_side_problem
from tripod.recovery import rebuild as recover
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sound team of more than 300 entries, so that its tables have several pages."""
    root = build(str(tmp_path_factory.mktemp("sound")))
    with Team(root) as team:
        for number in range(300):
            events.publish(team, "ann", "note", "low", f"note {number} " + "x" * 200)
    return root


@pytest.fixture
def root(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


@contextmanager
def raw(root: str) -> Iterator[sqlite3.Connection]:
    """The database with a schema that can be written."""
    with closing(sqlite3.connect(database(root), isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema=ON")
        yield db


def judged(root: str, *words: str) -> tuple[int, str]:
    began = time.monotonic()
    done = run(Path(root).parent, "verify", "--no-git", *words)
    assert time.monotonic() - began < 120
    said = done.out.decode() + done.err
    assert "Traceback" not in said
    return done.code, said


def test_a_sound_team_is_clean(root: str) -> None:
    assert judged(root)[0] == 0


# While others work ------------------------------------------------------------------------------


def _publish(root: str, times: int = 1) -> None:
    """Another process opens the ledger, appends and closes it, so that its log is moved into it."""
    code = (
        "import sys\nfrom tripod.bus import events as bus\nfrom tripod.team.team import Team\n"
        f"for _ in range({times}):\n    with Team(sys.argv[1]) as team:\n"
        "        bus.publish(team, 'bob', 'note', 'low', 'meanwhile')\n"
    )
    subprocess.run([sys.executable, "-c", code, root], check=True)


@pytest.mark.parametrize(
    "also",
    [
        lambda _path: None,
        reader_keeps_log,
        reader_side_problem,
        lambda path: read_only(path).close(),
    ],
    ids=["nothing", "its header read", "its neighbours looked at", "opened once more"],
)
def test_a_reading_lasts_while_others_append(root: str, also: Callable[[str], object]) -> None:
    _publish(root)
    with closing(read_only(database(root))) as db:
        db.execute("BEGIN")
        sizes = [db.execute("SELECT size FROM head").fetchone()[0]]
        also(database(root))
        _publish(root, 2)
        sizes.append(db.execute("SELECT count(*) FROM entries").fetchone()[0])
        sizes.append(db.execute("SELECT count(id) FROM entries").fetchone()[0])
    assert len(set(sizes)) == 1


def test_a_team_that_others_work_in_is_judged_as_of_one_moment(root: str) -> None:
    with collect(root) as evidence:
        _publish(root, 2)
        report = judge(evidence)
    names = ("sequence", "chain-links", "bodies-present")
    assert [o.findings for o in report.outcomes if o.check in names] == [(), (), ()]


# Files beside it --------------------------------------------------------------------------------


def out_of_use(path: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")


def test_a_hot_journal_is_not_passed_over(root: str, tmp_path: Path) -> None:
    """What stands in the file is half of a transaction; a writer takes it back, a reader cannot."""
    path = database(root)
    out_of_use(path)
    hot = tmp_path / "hot"
    hot.mkdir()
    with raw(root) as db:
        for name in ("entries_no_update", "blobs_no_update"):
            db.execute(f"DROP TRIGGER {name}")
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN")
        db.execute("UPDATE entries SET body = CAST(upper(body) AS BLOB)")
        for suffix in ("", "-journal"):
            shutil.copy(path + suffix, hot / f"ledger.db{suffix}")
        db.execute("ROLLBACK")
    os.unlink(path)
    for suffix in ("", "-journal"):
        shutil.move(hot / f"ledger.db{suffix}", path + suffix)
    before = Path(path).read_bytes()
    for words in ((), (path,)):
        code, said = judged(root, *words)
        assert code == 3
        assert "a rollback journal stands beside it" in said
    assert Path(path).read_bytes() == before
    # As a bare file in a folder where nothing can be written it was read past the journal.
    bare = tmp_path / "bare"
    bare.mkdir()
    for suffix in ("", "-journal"):
        shutil.copy(path + suffix, bare / f"ledger.db{suffix}")
    with pytest.raises(LedgerDamagedError, match="rollback journal"):
        read_only(str(bare / "ledger.db"))


def a_linked_log(path: str) -> str:
    os.symlink("/dev/null", f"{path}-wal")
    return "-wal beside it is no plain file"


def a_piped_log(path: str) -> str:
    os.mkfifo(f"{path}-wal")
    return "-wal beside it is no plain file"


def a_linked_journal(path: str) -> str:
    os.symlink("nowhere", f"{path}-journal")
    return "-journal beside it is no plain file"


def an_empty_journal(path: str) -> str:
    Path(f"{path}-journal").touch()
    return "a rollback journal stands beside it"


def an_index_of_a_log_that_is_gone(path: str) -> str:
    Path(f"{path}-shm").write_bytes(b"\0" * 32768)
    return "its write-ahead log is gone"


def a_log_that_the_header_denies(path: str) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE head SET at = at")
        log = Path(f"{path}-wal").read_bytes()
    out_of_use(path)
    Path(f"{path}-wal").write_bytes(log)
    return "its header says that it has none"


def another_mode(path: str) -> str:
    out_of_use(path)
    return "has no write-ahead log"


@pytest.mark.parametrize(
    "damage",
    [
        a_linked_log, a_piped_log, a_linked_journal, an_empty_journal,
        an_index_of_a_log_that_is_gone, a_log_that_the_header_denies, another_mode,
    ],
)  # fmt: skip
def test_what_stands_beside_it_makes_no_second_reading(
    root: str, damage: Callable[[str], str]
) -> None:
    words = damage(database(root))
    code, said = judged(root)
    assert (code, words in said) == (3, True), said


@pytest.mark.parametrize("damage", [a_linked_log, a_piped_log, a_linked_journal])
def test_no_command_writes_through_what_is_no_file(root: str, damage: Callable[[str], str]) -> None:
    words = damage(database(root))
    done = run(Path(root).parent, "show")
    assert (done.code, words in done.err) == (3, True), done


def test_a_backup_by_itself_needs_no_log(root: str, tmp_path: Path) -> None:
    assert run(Path(root).parent, "backup", str(tmp_path / "copy.db")).code == 0
    assert judged(root, str(tmp_path / "copy.db"))[0] == 0


# The schema -------------------------------------------------------------------------------------


def plant(db: sqlite3.Connection, name: str, sql: str, table: str, type_: str = "trigger") -> None:
    db.execute(
        "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, 0, ?)",
        (type_, name, table, sql),
    )
    cookie = db.execute("PRAGMA schema_version").fetchone()[0]
    db.execute(f"PRAGMA schema_version={cookie + 1}")


LOOPING = (
    f"CREATE TRIGGER lines_no_delete BEFORE DELETE ON lines WHEN ({ENDLESS} SELECT 1 FROM n) "
    "BEGIN SELECT RAISE(ABORT, 'no'); END"
)
HIDDEN = (
    "CREATE TRIGGER sqlite_quiet AFTER INSERT ON entries BEGIN DELETE FROM manifest; END",
    "CREATE TRIGGER theirs AFTER UPDATE ON head BEGIN DELETE FROM manifest; END",
    LOOPING,
)


@pytest.mark.parametrize("sql", HIDDEN)
def test_a_trigger_by_a_hidden_name_is_found_and_never_run(root: str, sql: str) -> None:
    words = sql.split(" ")
    name, table = words[2], words[words.index("ON") + 1]
    with raw(root) as db:
        db.execute("DELETE FROM sqlite_schema WHERE name = ?", (name,))
        plant(db, name, sql, table)
    code, said = judged(root)
    assert code == 1
    assert name in said
    done = run(Path(root).parent, "bus", "publish", "ann", "note", "low", "x")
    assert (done.code, name in done.err) == (1, True), done
    with closing(read_only(database(root))) as db:
        assert db.execute("SELECT count(*) FROM manifest").fetchone()[0] > 0
    with Team(root) as team:
        assert name in recover.rebuild(team).triggers
    assert judged(root)[0] == 0
    assert run(Path(root).parent, "bus", "publish", "ann", "note", "low", "x").code == 0


def test_a_trigger_that_is_planted_while_a_program_runs_is_not_run(root: str) -> None:
    with Team(root) as team:
        events.publish(team, "ann", "note", "low", "one")
        with raw(root) as db:
            plant(db, "sqlite_quiet", HIDDEN[0], "entries")
        with pytest.raises(LedgerDamagedError, match="sqlite_quiet"):
            events.publish(team, "ann", "note", "low", "two")


VIEWS = {
    "entries": f"CREATE VIEW entries AS {ENDLESS} SELECT i AS seq, i AS id, 'x' AS kind, 'x' AS "
    "stream, x'00' AS header, x'00' AS salt, x'00' AS body, NULL AS auth FROM n",
    "head": f"CREATE VIEW HEAD AS {ENDLESS} SELECT * FROM n",
    "lines": f"CREATE VIEW lines AS {ENDLESS} SELECT * FROM n",
    "manifest": f"CREATE VIEW manifest AS {ENDLESS} SELECT * FROM n",
    "folds": f"CREATE VIEW folds AS {ENDLESS} SELECT i AS versions FROM n",
}


@pytest.mark.parametrize("table", VIEWS)
def test_a_view_in_the_place_of_a_table_is_not_asked(root: str, table: str) -> None:
    sql = VIEWS[table]
    with raw(root) as db:
        db.execute("DELETE FROM sqlite_schema WHERE tbl_name = ? AND type <> 'table'", (table,))
        db.execute(
            "UPDATE sqlite_schema SET type = 'view', rootpage = 0, sql = ?, name = ?, tbl_name = ?"
            " WHERE name = ? AND type = 'table'",
            (sql, sql.split(" ")[2], sql.split(" ")[2], table),
        )
        cookie = db.execute("PRAGMA schema_version").fetchone()[0]
        db.execute(f"PRAGMA schema_version={cookie + 1}")
    code, said = judged(root)
    assert (code, f"the view {sql.split(' ')[2]} of the database is not the table" in said) == (
        3,
        True,
    ), said
    done = run(Path(root).parent, "bus", "publish", "ann", "note", "low", "x")
    if table in ("entries", "head"):
        assert (done.code, "is not the table" in done.err) == (1, True)
    else:  # what is folded is folded anew
        assert done.code == 0, done.err
        run(Path(root).parent, "rebuild")
        assert judged(root)[0] == 0


def computed(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE manifest ADD COLUMN more TEXT AS (path || path)")


def virtual(db: sqlite3.Connection) -> None:
    db.execute("DROP TABLE lines")
    db.execute("CREATE VIRTUAL TABLE lines USING fts5(handle)")


@pytest.mark.parametrize("change", [computed, virtual])
def test_a_table_that_computes_is_not_asked(
    root: str, change: Callable[[sqlite3.Connection], None]
) -> None:
    with raw(root) as db:
        change(db)
    code, said = judged(root)
    assert (code, "is not the table that a ledger has there" in said) == (3, True), said


def test_a_column_that_compares_otherwise_is_a_failure(root: str) -> None:
    with raw(root) as db:
        db.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'id TEXT NOT NULL UNIQUE', "
            "'id TEXT COLLATE NOCASE NOT NULL UNIQUE') WHERE name = 'entries'"
        )
    code, said = judged(root)
    assert (code, "the table entries is not as we make it" in said) == (1, True), said
    done = run(Path(root).parent, "show")
    assert (done.code, "entries in this database is not the table" in done.err) == (3, True), done


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX wide ON entries (seq, id, kind, stream, header, salt, body, auth)",
        "CREATE INDEX partial ON entries (seq) WHERE kind = 'chat.sent'",
        "CREATE INDEX expressed ON lines (length(handle))",
    ],
)
def test_an_index_on_a_table_of_ours_is_a_failure(root: str, sql: str) -> None:
    with raw(root) as db:
        db.execute(sql)
    code, said = judged(root)
    assert (code, f"the index {sql.split(' ')[2]} is not ours" in said) == (1, True), said


def test_a_database_of_another_encoding_is_a_failure(root: str) -> None:
    path = database(root)
    other = f"{path}.other"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(other)) as new:
        new.execute("PRAGMA encoding='UTF-16le'")
        for line in old.iterdump():
            new.execute(line)
        for name in ("user_version", "application_id"):
            new.execute(f"PRAGMA {name}={old.execute(f'PRAGMA {name}').fetchone()[0]}")
        new.commit()
        new.execute("PRAGMA journal_mode=WAL")
    os.replace(other, path)
    code, said = judged(root)
    assert (code, "in UTF-16le" in said) == (1, True), said


# Pages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["entries", "sqlite_autoindex_entries_1"])
def test_pages_that_are_walked_again_and_again_end(root: str, table: str) -> None:
    """Every child of the root page is its first one: a few such levels take for ever to walk."""
    path = database(root)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = db.execute("PRAGMA page_size").fetchone()[0]
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        at = (db.execute(sql, (table,)).fetchone()[0] - 1) * size
    data = bytearray(Path(path).read_bytes())
    assert data[at] in (2, 5), "an interior page"
    (cells,) = struct.unpack_from(">H", data, at + 3)
    assert cells > 1
    offsets = [struct.unpack_from(">H", data, at + 12 + 2 * n)[0] for n in range(cells)]
    (first,) = struct.unpack_from(">I", data, at + offsets[0])
    for place in (8, *offsets[1:]):
        struct.pack_into(">I", data, at + place, first)
    Path(path).write_bytes(bytes(data))
    code, said = judged(root)
    assert code == 1, said


@pytest.mark.parametrize("words", [b"CREATE TABLE entries", b"CREATE TRIGGER"])
def test_a_schema_with_a_flipped_bit_is_a_verdict_and_can_be_replaced(
    root: str, tmp_path: Path, words: bytes
) -> None:
    """SQLite repeats the damaged word in its message, which is no text then."""
    copy = str(tmp_path / "copy.db")
    assert run(tmp_path, "backup", "-C", root, copy).code == 0
    path = Path(f"{root}/ledger.db")
    out_of_use(str(path))
    data = bytearray(path.read_bytes())
    data[data.index(words) + 3] ^= 0x80
    path.write_bytes(data)
    code, said = judged(root)
    assert (code, "no text" in said) == (3, True)
    for command in (("show",), ("doctor",), ("rebuild",)):
        done = run(tmp_path, *command, "-C", root)
        assert (done.code, "UnicodeDecodeError" in done.err) == (3, False)
    assert run(tmp_path, "restore", "-C", root, copy).code == 0
    assert judged(root)[0] == 0
