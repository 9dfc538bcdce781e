"""Rows of OpenCode's database that hold what its program never writes: each is a gap."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from doors.inside import run
from recorded_sessions import recorded

from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.recorded.files import read_copies
from tripod.verify.sessions.exposure import SessionExposures

SECRET = "ann: we ship the seventh release on friday, unless bob finds another fault in it"
FIRST = "WHERE id = (SELECT min(id) FROM {})"


def _deep(depth: int) -> str:
    start, end = '{"a":' * depth, "}" * depth
    return f'{{"type": "text", "text": "{SECRET}", "metadata": {start}1{end}}}'


def _changed(path: Path, table: str, column: str, value: object) -> Path:
    path.write_bytes((recorded() / "sessions-2026-11/opencode-clean/opencode.db").read_bytes())
    with closing(sqlite3.connect(path)) as db:
        if value is None:
            db.execute("PRAGMA writable_schema = 1")
            db.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
            db.commit()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE {table} SET {column} = ? {FIRST.format(table)}", (value,))
        db.commit()
    return path


@pytest.mark.parametrize(
    "value", [_deep(300), _deep(100_000), b"\xff\xfe", None, 5, "", " ", "[1]"]
)
@pytest.mark.parametrize("table", ["part", "message"])
def test_a_row_that_is_no_object_is_a_gap_with_its_id(
    tmp_path: Path, table: str, value: object
) -> None:
    path = _changed(tmp_path / "opencode.db", table, "data", value)
    protected = ProtectedText()
    protected.add("chat/a.md", SECRET)
    found, (copy,) = read_copies(str(path), lambda _: SessionExposures(None, protected))
    assert found.problem == ""
    gaps = [gap.what for gap in copy.judged.gaps if gap.cause == "damaged"]
    assert any(what.startswith(f"{table} {table[0]}") or table in what for what in gaps), gaps
    assert any(each.named == "chat/a.md" for each in copy.judged.found) == (SECRET in str(value))


@pytest.mark.parametrize("column", ["id", "directory", "version", "parent_id"])
def test_a_session_whose_row_has_bytes_for_text_is_a_gap(tmp_path: Path, column: str) -> None:
    path = _changed(tmp_path / "opencode.db", "session", column, b"\xff\xfe")
    _, copies = read_copies(str(path), lambda _: SessionExposures(None, ProtectedText()))
    assert any(gap.cause == "damaged" for copy in copies for gap in copy.judged.gaps)


@pytest.mark.parametrize("value", [_deep(300), b"\xff\xfe", None])
def test_an_import_of_such_a_row_is_no_mistake_of_ours(tmp_path: Path, value: object) -> None:
    path = _changed(tmp_path / "opencode.db", "part", "data", value)
    assert run(tmp_path, "init").code == 0
    (tmp_path / ".nbs/policy.yaml").write_text("never:\n  - paths: .env\n")
    done = run(tmp_path, "import", "--as", "ann", "--keep", str(path))
    assert (done.code, done.err) == (0, "")
    assert b"bytes kept" in done.out


IN_TABLES = {
    "a column of parts": "ALTER TABLE part ADD COLUMN x; UPDATE part SET x = {}",
    "a column of messages": "ALTER TABLE message ADD COLUMN x; UPDATE message SET x = {}",
    "a column of sessions": "ALTER TABLE session ADD COLUMN x; UPDATE session SET x = {}",
    "a column of events": "ALTER TABLE event ADD COLUMN x; UPDATE event SET x = {}",
    "a table of a newer generation": "INSERT INTO session_message"
    " SELECT id, id, 'x', 1, 1, 1, {} FROM session",
    "what waits": "INSERT INTO session_input (id, session_id, prompt, delivery, admitted_seq,"
    " time_created) SELECT id, id, {}, 'x', 1, 1 FROM session",
    "a table that nobody knows": "CREATE TABLE x AS SELECT id AS Session_ID, {} AS y FROM session",
    "an event that nobody knows": "INSERT INTO event"
    " SELECT 'x', id, 99, 'session.next.text.1', {} FROM session",
}


@pytest.mark.parametrize("name", IN_TABLES)
@pytest.mark.parametrize("form", [SECRET, f'{{"a": [{{"b": "x\\n{SECRET}"}}]}}'])
def test_what_a_newer_schema_holds_is_a_gap_and_searched(
    tmp_path: Path, name: str, form: str
) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes((recorded() / "sessions-2026-11/opencode-clean/opencode.db").read_bytes())
    with closing(sqlite3.connect(path)) as db:
        db.executescript(IN_TABLES[name].format(f"'{form}'"))
    protected = ProtectedText()
    protected.add("chat/a.md", SECRET)
    _, (copy,) = read_copies(str(path), lambda _: SessionExposures(None, protected))
    assert any(gap.cause == "unknown" for gap in copy.judged.gaps)
    assert {each.named for each in copy.judged.found if each.channel == "unknown"} == {"chat/a.md"}


def test_half_a_surrogate_in_a_row_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes((recorded() / "sessions-2026-11/opencode-clean/opencode.db").read_bytes())
    with closing(sqlite3.connect(path)) as db:
        for table in ("part", "event"):
            half = "UPDATE {} SET data = replace(data, 'look at', 'look \\ud83d at')"
            db.execute(half.format(table))
        db.commit()
    _, (copy,) = read_copies(str(path), lambda _: SessionExposures(None, ProtectedText()))
    causes = copy.judged.gaps.causes()
    assert not {"damaged", "witness"} & causes.keys(), copy.judged.gaps
