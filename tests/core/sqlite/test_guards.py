"""Triggers that were dropped or altered: named by verify, and put back by a rebuild."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from specimens import copy, database

from tripod.bus import events as bus
from tripod.errors import TripodError
from tripod.recovery import backup as copies
from tripod.recovery import rebuild as recover
from tripod.team.team import Team
from tripod.verify.check import Finding
from tripod.verify.evidence import collect
from tripod.verify.run import run


@pytest.fixture
def team(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


def change(root: str, *statements: str) -> None:
    with closing(sqlite3.connect(database(root), isolation_level=None)) as db:
        for sql in statements:
            db.execute(sql)


def schema(root: str) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(database(root))) as db:
        return set(db.execute("SELECT name, sql FROM sqlite_schema").fetchall())


def found(root: str) -> tuple[list[Finding], int]:
    with collect(root) as evidence:
        report = run(evidence)
    return [f for o in report.outcomes for f in o.findings], report.exit_code


ALTERED = (
    "DROP TRIGGER nodes_no_update",
    "CREATE TRIGGER nodes_no_update BEFORE UPDATE ON nodes BEGIN SELECT 1; END",
)


def test_missing_and_altered_ones_are_a_finding_and_come_back(team: str) -> None:
    before = schema(team)
    change(team, "DROP TRIGGER entries_no_update", *ALTERED)
    (finding,), code = found(team)
    assert (finding.check, finding.severity, finding.where, code) == (
        "sequence", "failure", "schema", 1,
    )  # fmt: skip
    assert finding.message == (
        "2 triggers that keep the database append-only are missing or altered: "
        "entries_no_update, nodes_no_update"
    )
    assert "`tripod rebuild` puts them back" in finding.help
    with Team(team) as opened:
        assert recover.rebuild(opened).triggers == ["entries_no_update", "nodes_no_update"]
    assert schema(team) == before
    assert found(team) == ([], 0)
    with Team(team) as opened:
        assert recover.rebuild(opened).triggers == []
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            opened.store.db.execute("UPDATE entries SET body = NULL, salt = NULL WHERE seq = 3")


def test_all_of_them_are_told_in_a_line(team: str) -> None:
    with closing(sqlite3.connect(database(team))) as db:
        names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    change(team, *(f"DROP TRIGGER {name}" for (name,) in names))
    (finding,), code = found(team)
    assert code == 1
    assert finding.message.startswith(f"{len(names)} triggers that keep")
    assert finding.message.endswith(f" and {len(names) - 3} more")
    assert len(finding.message) < 200
    with Team(team) as opened:
        assert recover.rebuild(opened).triggers
    assert found(team) == ([], 0)


def test_a_trigger_of_others_is_a_finding_and_a_table_of_theirs_a_warning(team: str) -> None:
    change(team, "CREATE TABLE mine (x)")
    (finding,), code = found(team)
    assert (finding.severity, code) == ("warning", 0)
    assert "the table mine is not ours" in finding.message
    change(team, "CREATE TRIGGER theirs AFTER INSERT ON entries BEGIN DELETE FROM logs; END")
    findings, code = found(team)
    assert [f.severity for f in findings] == ["failure", "warning"]
    assert "the trigger theirs is not ours" in findings[0].message
    assert code == 1


TAMPERED = """
PRAGMA writable_schema = ON; UPDATE sqlite_schema SET {set} WHERE name = '{name}';
PRAGMA schema_version = 9999; PRAGMA writable_schema = OFF
"""


@pytest.mark.parametrize("column", ["type", "name", "tbl_name", "sql"])
@pytest.mark.parametrize("name", ["entries", "head", "entries_no_delete", "events", "pieces_id"])
def test_a_schema_of_bytes_in_the_place_of_text_is_found(team: str, name: str, column: str) -> None:
    set_ = f"{column} = CAST({column} AS BLOB)"
    change(team, *TAMPERED.format(set=set_, name=name).split(";"))
    assert found(team)[1] in (1, 3)


def test_no_act_runs_a_trigger_of_others_whose_type_is_bytes(team: str) -> None:
    change(team, "CREATE TRIGGER theirs AFTER INSERT ON entries BEGIN DELETE FROM head; END")
    change(team, *TAMPERED.format(set="type = CAST(type AS BLOB)", name="theirs").split(";"))
    assert found(team)[1] in (1, 3)
    with (
        pytest.raises(TripodError, match="not ours, theirs"),
        closing(Team(team)) as opened,
    ):
        bus.publish(opened, "a", "b", "low", "c")


def test_a_table_that_is_not_as_we_make_it_is_a_finding(team: str) -> None:
    change(team, "DROP INDEX pieces_id")
    (finding,), code = found(team)
    assert (finding.severity, code) == ("failure", 1)
    assert "the index pieces_id is missing" in finding.message
    with Team(team) as opened:
        recover.rebuild(opened)
    assert found(team) == ([], 0)


def test_a_backup_without_triggers_is_restored_with_them(team: str, tmp_path: Path) -> None:
    """Its entries are sound, and whoever restores it needs it."""
    change(team, "DROP TRIGGER entries_no_delete")
    with Team(team) as opened:
        copies.backup(opened, str(tmp_path / "copy.db"))
    copies.restore(team, str(tmp_path / "copy.db"))
    assert found(team) == ([], 0)
