"""``tripod query``: readable columns over the entries, and not a byte changed by any statement."""

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from doors.inside import run
from specimens import build, copy, database, unguarded
from story import Story

from tripod.cli import look
from tripod.ledger.kinds.registry import KINDS
from tripod.ledger.sqlite import views
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.ledger.sqlite.schema import migrate_schema
from tripod.ledger.sqlite.views import view_queries, view_statements
from tripod.output import safe
from tripod.projections.engine import TABLES

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/look-at-what-happened.md"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(build(str(tmp_path_factory.mktemp("sound"))))


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    return Path(copy(str(sound), str(tmp_path)))


def asked(root: Path, *arguments: str) -> list[dict[str, Any]]:
    done = run(root, "query", *arguments, "--json")
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


# Views ------------------------------------------------------------------------------------------


def test_each_kind_has_a_view_with_what_its_entries_say(sound: Path) -> None:
    with closing(read_only(database(str(sound)))) as db:
        ledger = SQLiteReader(db)
        entries = list(ledger.read())
        for kind in KINDS:
            name = kind.name.replace(".", "_").replace("-", "_")
            rows = asked(sound, f"SELECT * FROM {name} ORDER BY seq")
            wanted = [entry for entry in entries if entry.kind == kind.name]
            assert [(row["seq"], row["at"], row["actor"]) for row in rows] == [
                (entry.seq, entry.at, entry.actor) for entry in wanted
            ]
            for row, entry in zip(rows, wanted, strict=True):
                for field, value in entry.data.items():
                    shown = row.get(f"body_{field}", row.get(field))
                    assert field == "v" or shown == _shown(ledger, value), (name, field)


def _shown(ledger: SQLiteReader, value: Any) -> Any:
    if isinstance(value, dict) and "sha256" in value:
        return (ledger.blob(bytes.fromhex(value["sha256"])) or b"").decode()
    if isinstance(value, dict) and value.keys() <= {"text", "base64"}:
        return value.get("text", value.get("base64"))
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value


def test_the_log_has_every_entry_with_its_mark(sound: Path) -> None:
    listed = [json.loads(line) for line in run(sound, "log", "--json").out.splitlines()]
    rows = asked(sound, "SELECT * FROM log ORDER BY seq DESC")
    names = ("seq", "at", "actor", "kind", "stream", "id", "mark")
    assert [[row[name] for name in names] for row in rows] == [
        [one[name] for name in names] for one in listed
    ]
    assert {row["mark"] for row in rows} >= {"", "observed"}


def test_no_view_stands_before_a_table() -> None:
    assert not view_queries().keys() & {*TABLES, "entries", "blobs", "nodes", "head", "unswept"}


def test_what_was_erased_shows_what_stands_for_it(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.create("live")
    story.say("live", "ann", "the secret")
    story.redact(2)
    (sent,) = asked(story.root, "SELECT * FROM chat_sent")
    assert (sent["channel"], sent["text"]) == ("live", "[redacted]")
    (row,) = asked(story.root, "SELECT * FROM redacted WHERE kind = 'chat.sent'")
    assert (row["body_seq"], row["reason"]) == (sent["seq"], "asked to")


def test_damaged_entries_stop_no_query(root: Path) -> None:
    count = asked(root, "SELECT count(*) AS n FROM log")[0]["n"]
    with unguarded(database(str(root))) as db:
        for number, junk in enumerate((b"", b"{", b"\xff\x00", b"[1]", b"{}")):
            db.execute("UPDATE entries SET body = ? WHERE seq = ?", (junk, 9 + number))
            db.execute("UPDATE entries SET header = ? WHERE seq = ?", (junk, 19 + number))
    assert len(asked(root, "SELECT * FROM log")) == count
    for name in view_queries():
        asked(root, f"SELECT * FROM {name}")


def test_a_ledger_of_a_version_without_signatures_is_asked_as_well() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_schema(db, 2)
        for statement in view_statements(signed=False):
            db.execute(statement)
        for name in view_queries():
            assert db.execute(f"SELECT * FROM {name}").fetchall() == []


# Read-only --------------------------------------------------------------------------------------


def _files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root.parent)): path.read_bytes()
        for path in root.parent.rglob("*")
        if path.is_file() and path.name != "ledger.db-shm"
    }


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM entries",
        "DELETE FROM events RETURNING *",
        "UPDATE head SET size = 0",
        "INSERT INTO blobs (sha256, bytes) VALUES (x'00', x'00') RETURNING 1",
        "WITH x AS (SELECT 1) DELETE FROM entries",
        "DROP TABLE entries",
        "DROP TRIGGER entries_no_update",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "CREATE TABLE t AS SELECT * FROM log",
        "ALTER TABLE entries ADD COLUMN x",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
        "VACUUM INTO 'other.db'",
        "ATTACH 'other.db' AS other",
        "DETACH main",
        "BEGIN IMMEDIATE",
        "SAVEPOINT a",
        "COMMIT",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 9",
        "PRAGMA user_version",
        "PRAGMA wal_checkpoint",
        "/* x */ PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_journal_mode('delete')",
        "SELECT load_extension('x')",
        "SELECT writefile('other.db', 'x')",
        "SELECT readfile('ledger.db')",
        "EXPLAIN",
        "SELECT 1; DELETE FROM entries",
        "SELECT 1; SELECT 2",
        "SELECT * FROM nothing_of_this_name",
        "SELECT",
        "/* nothing */",
        ";",
        "\0",
        "SELECT zeroblob(1000000000)",
        "SELECT abs(-9223372036854775808)",
    ],
)
def test_whatever_is_no_query_is_refused_and_nothing_is_written(root: Path, sql: str) -> None:
    run(root, "query", "SELECT 1")
    before = _files(root)
    done = run(root, "query", sql)
    assert done.code == 2, done
    assert done.err.startswith("tripod: SQL: ")
    assert _files(root) == before


def test_a_query_that_never_ends_is_given_up(sound: Path) -> None:
    sql = "WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t"
    done = run(sound, "query", sql, "--timeout", "0")
    assert done.code == 1
    assert "it took longer than 0 s" in done.err


def test_a_query_whose_steps_are_slow_is_given_up_in_time(sound: Path) -> None:
    blob = "SELECT hex(randomblob(1000000)) AS b FROM entries, entries AS e, entries AS f"
    begun = time.monotonic()
    done = run(sound, "query", f"SELECT count(*) FROM ({blob} ORDER BY b)", "--timeout", "1")
    assert (done.code, "it took longer than 1 s" in done.err) == (1, True)
    assert time.monotonic() - begun < 10


def test_a_function_that_never_ends_is_given_up(sound: Path) -> None:
    """It looks at no clock, and no signal stops it: so the process ends."""
    hurried = "from tripod.cli import look, main; look._GRACE_S = 0.2; main()"
    sql = "SELECT instr(hex(zeroblob(30000000)), hex(zeroblob(10000000)) || '1')"
    done = subprocess.run(
        [sys.executable, "-c", hurried, "query", sql, "--timeout", "1"],
        cwd=sound,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tripod: SQL: it took longer than 1 s; ask for less, or raise --timeout\n"


# SQLite may be asking how late it is as the signal comes: Python tells that aside, and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_query_that_is_stopped_is_not_said_to_be_too_long(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    def begun(query: Callable[[], Iterable[Any]], seconds: int) -> Iterator[Any]:
        signal.setitimer(signal.ITIMER_REAL, 0.3)  # however long the command took to come here
        return watched(query, seconds)

    watched = look._watched
    monkeypatch.setattr(look, "_watched", begun)
    sql = "WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t"
    before = signal.signal(signal.SIGALRM, stop)
    try:
        done = run(sound, "query", sql)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (done.code, done.err.strip()) == (130, "tripod: stopped")


def test_what_only_reads_is_answered(sound: Path) -> None:
    assert asked(sound, "SELECT value AS n FROM json_each('[1, 2]')") == [
        {"n": 1, "version": 1},
        {"n": 2, "version": 1},
    ]
    assert asked(sound, "SELECT -9e999 AS n") == [{"n": "-inf", "version": 1}]  # no JSON has it
    assert asked(sound, "SELECT count(*) AS n FROM lines")[0]["n"]  # a table of a projection
    assert asked(sound, "PRAGMA table_info(entries)")[0]["name"] == "seq"
    assert asked(sound, "EXPLAIN QUERY PLAN SELECT * FROM entries WHERE id = 'x'")
    assert asked(sound, "SELECT x'41' AS a, x'ff' AS b, NULL AS c, 1.5 AS d, 1 AS a") == [
        {"a": "A", "b": "ff", "c": None, "d": 1.5, "a_2": 1, "version": 1}
    ]


# Forms ------------------------------------------------------------------------------------------


def test_the_forms_say_the_same(sound: Path) -> None:
    sql = "SELECT seq, handle, text FROM chat_sent ORDER BY seq"
    rows = asked(sound, sql)
    comma = run(sound, "query", sql, "--csv").out.decode()
    assert [list(row) for row in csv.reader(io.StringIO(comma))] == [
        ["seq", "handle", "text"],
        *([str(row["seq"]), row["handle"], row["text"]] for row in rows),
    ]
    lines = run(sound, "query", sql).out.decode().splitlines()
    assert lines[0].split() == ["seq", "handle", "text"]
    assert run(sound, "query", sql, "--table").out.decode().splitlines() == lines
    assert len(lines) == len(rows) + 2
    assert max(map(len, lines)) < 100  # a text of many KiB is cut


def test_rows_are_limited_and_that_is_said(sound: Path) -> None:
    done = run(sound, "query", "SELECT seq FROM log ORDER BY seq", "--limit", "3", "--csv")
    assert done.out.split() == [b"seq", b"0", b"1", b"2"]
    assert done.err == "tripod: there are more rows than 3: --limit 0 prints all\n"
    done = run(sound, "query", "SELECT seq FROM log", "--limit", "0", "--csv")
    assert done.err == ""
    assert run(sound, "query", "SELECT 1 WHERE 0").out == b""


def test_a_table_keeps_a_strange_text_on_its_line(sound: Path) -> None:
    out = run(sound, "query", "SELECT char(27) || '[2J' || char(10) || 'x' AS a").out.decode()
    assert safe(out) == out
    assert out.splitlines()[2:] == ["\\x1b[2J\\x0ax"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("SELECT 1", "--views"),
        ("SELECT 1", "--save", "x.db"),
        ("--views", "--save", "x.db"),
        ("SELECT 1", "--csv", "--json"),
        ("SELECT 1", "--file", "-"),
    ],
)
def test_what_does_not_go_together_is_refused(root: Path, arguments: tuple[str, ...]) -> None:
    assert run(root, "query", *arguments).code == 2


def test_sql_comes_from_a_file_as_well(sound: Path) -> None:
    done = run(sound, "query", "--file", "-", "--csv", given=b"SELECT 1 AS a")
    assert done.out.split() == [b"a", b"1"]


# For other programs -----------------------------------------------------------------------------


@pytest.fixture
def saved(root: Path) -> Iterator[sqlite3.Connection]:
    """What a program without us, such as Datasette, opens: by a plain URI, to read alone."""
    assert run(root, "query", "--save", "seen.db").code == 0
    uri = f"file:{root}/seen.db?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        yield db


def test_the_views_open_read_only_by_a_plain_uri(root: Path) -> None:
    statements = run(root, "query", "--views").out.decode()
    uri = f"file:{root}/ledger.db?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        db.executescript(statements)
        for name in view_queries():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            rows = [
                dict(zip(columns, row, strict=True)) for row in db.execute(f"SELECT * FROM {name}")
            ]
            assert [{**row, "version": 1} for row in rows] == asked(
                root, f"SELECT * FROM {name}", "--limit", "0"
            )


def test_saved_views_are_tables_that_any_program_reads(
    root: Path, saved: sqlite3.Connection
) -> None:
    names = {name for (name,) in saved.execute("SELECT name FROM sqlite_schema")}
    assert names <= view_queries().keys()
    for name in view_queries():
        rows = asked(root, f"SELECT * FROM {name}", "--limit", "0")
        assert bool(rows) == (name in names)
        if rows:
            assert len(saved.execute(f"SELECT * FROM {name}").fetchall()) == len(rows)
    assert saved.execute("SELECT text FROM chat_sent ORDER BY seq LIMIT 1").fetchone()
    assert os.stat(root / "seen.db").st_mode & 0o777 == 0o600
    again = run(root, "query", "--save", "seen.db")
    assert (again.code, again.err) == (1, "tripod: seen.db is there already: give a new name\n")


def test_a_save_that_fails_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_STEPS", 10)
    assert run(root, "query", "--save", "late.db", "--timeout", "0").code == 1
    assert not list(root.glob("late.db*"))


def test_the_recipe_for_datasette_serves_what_it_says(root: Path) -> None:
    """Datasette itself runs as the page says; ``test_datasette`` asks it for more, in a process."""
    page = PAGE.read_text(encoding="utf-8")
    (serve,) = re.findall(r"^datasette (.*)$", page, re.MULTILINE)
    ((save, more),) = re.findall(r"tripod query --save (\S+) --datasette (\S+)", page)
    words = ("--save", Path(save).name, "--datasette", Path(more).name)
    assert run(root, "query", *words).code == 0
    rows = asked(root, "SELECT handle, text FROM chat_sent", "--limit", "0")
    assert rows
    addresses = re.findall(r"<http://127\.0\.0\.1:8001(/[^>]+)>", page)
    assert addresses[0] == "/seen/chat_sent"
    program = str(Path(sys.executable).with_name("datasette"))
    done = subprocess.run(
        (program, *serve.split(), "--get", addresses[1]),
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert all(row["handle"] in done.stdout for row in rows)
