"""What verify takes for a team, a ledger or neither, and the exit code of each."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from drafts import opened, sent
from nbs_team import files
from specimens import copy, database, unguarded
from team_files import Decision, Said, outcome, write_chat, write_log

from tripod.ledger.entry import Draft
from tripod.ledger.sqlite.schema import migrate_schema
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections import intake as projections_intake
from tripod.projections.chat.format import format_line
from tripod.recovery import rebuild as recover
from tripod.team.adoption import init
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.checks import CHECKS, LEDGER_CHECKS
from tripod.verify.evidence import collect
from tripod.verify.run import run
from tripod.verify.scan import database as storage

LEDGER = [check.NAME for check in LEDGER_CHECKS]


def judge(path: str | Path, *, no_ledger: bool = False) -> Report:
    """The report on a path."""
    with collect(str(path), no_ledger=no_ledger) as evidence:
        return run(evidence)


@pytest.fixture
def team(sound: str, tmp_path: Path) -> str:
    """A copy of it, to be damaged."""
    return copy(sound, str(tmp_path))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a real team, in a project directory."""
    project = tmp_path_factory.mktemp("real")
    for path, data in files().items():
        target = project / ".nbs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return project


# The input -------------------------------------------------------------------------------------


def test_a_project_its_team_directory_and_its_database_give_one_head(sound: str) -> None:
    heads = {judge(path).head for path in (sound, os.path.dirname(sound), database(sound))}
    assert len(heads) == 1
    assert judge(database(sound)).exit_code == 0


def test_what_cannot_be_opened_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database, but long enough to be looked at\n" * 99)
    (tmp_path / "empty").mkdir()
    for name, says in (
        ("gone", "there is no such file"),
        ("notes.txt", "not a database"),
        ("empty", "no team directory"),
    ):
        report = judge(tmp_path / name)
        assert says in report.problem
        assert report.exit_code == 3
    assert ".recover" in judge(tmp_path / "notes.txt").problem


def test_a_folder_in_the_place_of_the_database_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / ".nbs" / "ledger.db").mkdir(parents=True)
    report = judge(tmp_path)
    assert report.exit_code == 3
    assert "is a folder, not a database: keep it" in report.problem


def test_a_newer_schema_is_no_verdict(team: str) -> None:
    with closing(sqlite3.connect(database(team))) as db:
        db.execute("PRAGMA user_version = 99")
    report = judge(team)
    assert "use a newer tripod" in report.problem
    assert report.exit_code == 3


@pytest.mark.parametrize("make", ["nothing", "tables", "other"])
def test_an_empty_or_strange_database_is_a_finding(tmp_path: Path, make: str) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        if make == "tables":
            migrate_schema(db)
        elif make == "other":
            db.execute("CREATE TABLE mine (x)")
    for path in (tmp_path / "ledger.db", tmp_path):
        report = judge(path)
        assert report.exit_code == 1
        assert outcome(report, "ledger-missing").failures == 1


def test_a_damaged_page_is_a_finding_and_no_traceback(team: str) -> None:
    with closing(sqlite3.connect(database(team))) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'").fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(Path(database(team)).read_bytes())
    data[(page - 1) * size : page * size] = b"\x05" * size
    Path(database(team)).write_bytes(data)
    report = judge(team)
    assert report.exit_code == 1
    assert "cannot be read" in outcome(report, "sequence").findings[0].message


def test_text_that_is_not_utf8_is_evidence(team: str) -> None:
    with unguarded(database(team)) as db:
        db.execute("UPDATE entries SET stream = CAST(x'ff41' AS TEXT) WHERE seq = 9")
    report = judge(database(team))
    (found,) = outcome(report, "sequence").findings
    assert (found.seq, report.exit_code) == (9, 1)
    assert "b'\\xffA'" in found.message


@pytest.mark.parametrize("pragma", ["user_version", "application_id"])
def test_a_mark_of_the_file_that_was_changed_is_a_failure(team: str, pragma: str) -> None:
    with closing(sqlite3.connect(database(team))) as db:
        (ours,) = db.execute(f"PRAGMA {pragma}").fetchone()
        db.execute(f"PRAGMA {pragma} = 0")
    report = judge(team)
    (found,) = outcome(report, "sequence").findings
    assert (found.severity, report.exit_code) == ("failure", 1)
    assert f"`sqlite3 LEDGER 'pragma {pragma}={ours}'`" in found.help


# With and without a ledger ---------------------------------------------------------------------


def test_the_real_team_without_a_ledger(real: Path) -> None:
    report = judge(real, no_ledger=True)
    assert report.exit_code == 0
    assert outcome(report, "chat-refs-resolve").coverage["refs"] == 46
    assert outcome(report, "chat-refs-resolve").verdict == "clean"
    assert outcome(report, "checkpoint-preceded").coverage["assessments"] == 2
    assert outcome(report, "checkpoint-preceded").verdict == "clean"
    told = outcome(report, "pythia-isolation")
    assert (told.verdict, told.past) == ("cannot tell", True)


def test_the_real_team_adopted(real: Path, tmp_path: Path) -> None:
    shutil.copytree(real, tmp_path / "project", copy_function=shutil.copy2)
    init(str(tmp_path / "project"))
    report = judge(tmp_path / "project")
    assert (report.exit_code, report.failures, report.warnings) == (0, 0, 0)
    assert outcome(report, "pythia-isolation").past
    assert outcome(report, "drift").verdict == "clean"


def test_without_a_ledger_and_without_the_word_the_exit_is_never_0(tmp_path: Path) -> None:
    write_chat(tmp_path, "live", [Said(1, "alex", "hello")])
    write_log(tmp_path, [Decision(9, "live.chat:~L7")])
    assert judge(tmp_path, no_ledger=True).exit_code == 0
    report = judge(tmp_path)
    assert report.exit_code == 3
    assert report.untold == ("ledger-missing",)


def test_nothing_judged_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "chat").mkdir()
    report = judge(tmp_path, no_ledger=True)
    assert (report.judged, report.exit_code) == (0, 3)


@pytest.mark.parametrize(
    "trace", ["counts.json", "policy.yaml", "seal.txt", "ledger.db.lock", "ledger.db-wal", "record"]
)
def test_traces_of_a_ledger_make_its_absence_a_finding(tmp_path: Path, trace: str) -> None:
    write_chat(tmp_path, "live", [])
    (tmp_path / trace).write_text("x")
    report = judge(tmp_path, no_ledger=True)
    assert report.exit_code == 1
    assert trace in outcome(report, "ledger-missing").findings[0].message


@pytest.mark.parametrize("seq", [-1, 2**63, 2**70, "0", 0.0, True, None])
def test_what_is_no_number_of_an_entry_names_none(team: str, seq: object) -> None:
    """A check of a package, or a damaged row, gives it: the fingerprint is made without it."""
    with collect(team) as evidence:
        assert evidence.entry_name(seq) is None  # type: ignore[arg-type]
        assert evidence.entry_name(0) is not None


def test_a_gitignore_is_a_trace(tmp_path: Path) -> None:
    write_chat(tmp_path / ".nbs", "live", [])
    (tmp_path / ".gitignore").write_text("*.pyc\n.nbs/ledger.db*\n")
    report = judge(tmp_path, no_ledger=True)
    assert outcome(report, "ledger-missing").failures == 1


# Files beside the ledger -----------------------------------------------------------------------


def snapshot(root: str) -> Iterator[tuple[str, bytes]]:
    """Every file of a team directory but SQLite's own."""
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.startswith("ledger.db-"):
                path = os.path.join(folder, name)
                yield path, Path(path).read_bytes()


def test_verify_writes_nothing(team: str) -> None:
    before = dict(snapshot(team))
    judge(team)
    assert dict(snapshot(team)) == before


def test_a_legitimate_append_is_not_drift(team: str) -> None:
    """What the original tools append is judged as if it had been taken in."""
    path = Path(team, "chat", "live.chat")
    path.write_bytes(path.read_bytes() + format_line("alex", 1795294999, "and one more") + b"\n")
    Path(team, "events", "1795294999000000-alex-note-7.event").write_bytes(
        b"source: alex\ntype: note\npriority: low\n"
    )
    report = judge(team)
    assert (report.exit_code, report.warnings) == (0, 0)
    assert outcome(report, "drift").coverage["not taken in yet"] == 3


@pytest.mark.parametrize(
    ("path", "check", "says"),
    [
        ("chat/live.chat", "drift", "message line 1 differs from the ledger"),
        ("scribe/log.md", "append-only", "it differs from the ledger at line"),
        ("workers/parser-a3f1.md", "drift", "more than its State lines changed"),
        ("counts.json", "drift", "differs from the ledger"),
    ],
)
def test_an_edit_shows_both_versions(team: str, path: str, check: str, says: str) -> None:
    file = Path(team, path)
    data = file.read_bytes()
    at = data.index(b"\n---\n") + 9 if path.startswith("chat") else len(data) // 2
    letter = b"B" if data[at : at + 1] != b"B" else b"C"
    file.write_bytes(data[:at] + letter + data[at + 1 :])
    report = judge(team)
    (found,) = [f for f in outcome(report, check).findings if f.where == path]
    assert says in found.message
    assert any(line.startswith("-") for line in found.evidence)
    assert any(line.startswith("+") for line in found.evidence)


@pytest.mark.parametrize(
    ("path", "check"),
    [("chat/side.chat", "drift"), ("scribe/log.md", "append-only"), ("counts.json", "drift")],
)
def test_a_missing_file_is_named(team: str, path: str, check: str) -> None:
    Path(team, path).unlink()
    report = judge(team)
    assert report.exit_code == 1
    assert path in {finding.where for finding in outcome(report, check).findings}


def test_a_wrong_mode_is_drift(team: str) -> None:
    Path(team, "chat", "live.chat").chmod(0o644)
    report = judge(team)
    (found,) = outcome(report, "drift").findings
    assert (found.message, found.severity) == ("has mode 644, not 600", "warning")
    assert report.exit_code == 0, "a checkout does so, and git cannot know the mode"


def test_a_file_that_cannot_be_rendered_is_a_failure(team: str) -> None:
    with unguarded(database(team)) as db:
        db.execute("UPDATE blobs SET bytes = x'00'")
    found = outcome(judge(team), "drift").findings
    unrendered = [f.severity for f in found if f.message.startswith("cannot be rendered")]
    assert set(unrendered) == {"failure"}


def test_a_bad_line_of_the_configuration_is_a_warning(team: str) -> None:
    with Path(team, "events", "config.yaml").open("a") as file:
        file.write("pythia-interval: often\ncolour: blue\n")
    report = judge(team)
    found = outcome(report, "drift").findings
    assert [f.where for f in found] == ["events/config.yaml:2"] * 2 + ["events/config.yaml:3"]
    assert {f.severity for f in found} == {"warning"}
    assert report.exit_code == 0


def test_a_cursor_of_the_files_that_stays_behind_is_a_warning(team: str) -> None:
    with unguarded(database(team)) as db:
        db.execute("UPDATE head SET files = files - 1, synced = files - 1")
    report = judge(team)
    (found,) = outcome(report, "drift").findings
    assert "a command died, or is at work" in found.message
    assert (found.severity, report.exit_code) == ("warning", 0)


def test_a_cursor_of_the_tables_that_stays_behind_is_a_failure(team: str) -> None:
    """It moves with the entries, in one transaction: no crash leaves it so."""
    with unguarded(database(team)) as db:
        db.execute("UPDATE head SET tables = tables - 1")
    report = judge(team)
    (found,) = outcome(report, "drift").findings
    assert "each append moves both at once" in found.message
    assert (found.severity, report.exit_code) == ("failure", 1)
    with Team(team) as opened:
        recover.rebuild(opened)
    assert judge(team).exit_code == 0


@pytest.mark.parametrize("cursor", ["tables", "files"])
def test_a_cursor_that_is_ahead_is_a_failure(team: str, cursor: str) -> None:
    with unguarded(database(team)) as db:
        db.execute(f"UPDATE head SET {cursor} = {cursor} + 1")
    report = judge(team)
    (found,) = outcome(report, "sequence").findings
    assert f"the cursor {cursor} of the head row is" in found.message
    assert report.exit_code == 1
    with Team(team) as opened:
        recover.rebuild(opened)
    assert judge(team).exit_code == 0


def test_a_part_of_the_intake_that_breaks_stops_no_other(
    team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_reader: object) -> None:
        raise ValueError("such a body")

    parts = tuple((n, broken if n == "chats" else part) for n, part in projections_intake.PARTS)
    monkeypatch.setattr(projections_intake, "PARTS", parts)
    project = Path(team).parent
    monkeypatch.chdir(project)
    for path in (team, ".", f"../{project.name}"):
        (found,) = outcome(judge(path), "drift").findings
        assert found.message == "chats could not be compared: ValueError: such a body"
        assert found.file == ".nbs", "a part of the intake is no file"


# Two processes ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger of 1,500 entries."""
    path = str(tmp_path_factory.mktemp("many") / "ledger.db")
    with closing(SQLiteStore(path, create=True)) as store:
        opening = opened(
            project="p", origin="o", created="c", scribe="s", events="events", chat="chat"
        )
        store.append([opening])
        for number in range(1, 1500):
            if number % 100 == 1:
                drafts = [_said(n) for n in range(number, min(number + 100, 1500))]
                store.append(drafts)
    return path


def _said(number: int) -> Draft:
    return sent(channel="live", index=number, handle="alex", time=number, text="x" * 17 * number)


@pytest.mark.drawn
@pytest.mark.parametrize("damage", [None, 0, 200, 767, 768, 1023, 1024, 1499])
@pytest.mark.parametrize("folding", [True, False])
def test_two_processes_find_what_one_finds(
    many: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: int | None, folding: bool
) -> None:
    path = str(shutil.copy(many, tmp_path))
    if damage is not None:
        with unguarded(path) as db:
            db.execute("UPDATE entries SET salt = zeroblob(32) WHERE seq = ?", (damage,))
    with collect(path) as evidence:
        assert evidence.db is not None
        one = storage.scan_database(evidence.db)
        monkeypatch.setattr(storage, "LARGE", 1)
        monkeypatch.setattr(storage, "child_cores", lambda: 2)
        two = storage.begin_database_scan(
            path, evidence.db, evidence.rows, folding=folding
        ).scanned()
    assert two == one
    assert one.coverage["nodes"] == 5
    assert [f.seq for f in one.tally.of("bodies-present")] == ([] if damage is None else [damage])


def test_the_manual_of_each_check_has_its_four_parts() -> None:
    from tripod.verify.run import check_manual

    for check in CHECKS:
        text = check_manual(check.NAME)
        for part in (
            "What it proves.",
            "Why it matters.",
            "What a finding looks like.",
            "What to do.",
        ):
            assert f"**{part}**" in text
    with pytest.raises(LookupError, match="no check drfit"):
        check_manual("drfit")
