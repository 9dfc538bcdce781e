"""Sessions in the ledger: what an import adds, keeps, erases and never changes."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from doors.inside import run
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_sessions import recorded, transcripts

from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.sessions import IMPORTED, READ, session_stream
from tripod.sessions.evidence import PART
from tripod.sessions.imports import ImportedSession, import_session_file
from tripod.team.team import Team
from tripod.verify.checks import sessions_whole
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.sessions import parts_of
from tripod.verify.recorded.evidence import RecordedSessions
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Session

BASE = {"sessionId": "s1", "version": "2.1.209", "cwd": "/w", "timestamp": "2026-11-20T10:00:00Z"}


def record(kind: str, *content: dict[str, Any] | str, **more: Any) -> str:
    """A line of a session of Claude Code."""
    said = content[0] if content and isinstance(content[0], str) else list(content)
    return (
        json.dumps({"type": kind, **BASE, **more, "message": {"role": kind, "content": said}})
        + "\n"
    )


def call(path: str, name: str = "c1") -> str:
    """A call of the tool that reads a file."""
    use = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": path}}
    return record("assistant", use)


def answer(text: str, name: str = "c1") -> str:
    """What came of such a call."""
    return record("user", {"type": "tool_result", "tool_use_id": name, "content": text})


def everything(_: Session) -> SessionExposures:
    """Judges a session by no rule."""
    return SessionExposures(None, ProtectedText())


SESSION = record("user", "go") + call("/w/.env") + answer("KEY=1")


@pytest.fixture
def team(tmp_path: Path) -> Path:
    assert run(tmp_path, "init").code == 0
    return tmp_path


def taken(team: Path, *names: str, keep: bool = False) -> list[ImportedSession]:
    """What an import of files in the team's project says."""
    with Team(team) as opened:
        return [
            one
            for name in names
            for one in import_session_file(opened, str(team / name), actor="ann", keep=keep)[1]
        ]


def entries(team: Path) -> list[tuple[str, dict[str, Any]]]:
    """Kind and body of each entry about a session."""
    with Team(team, read_only=True) as opened:
        return [
            (one.kind, one.data)
            for one in opened.store.read()
            if one.stream.startswith("sessions/")
        ]


def kept(team: Path) -> list[Path]:
    """The files of the parts that were kept."""
    return sorted(path for path in (team / ".nbs/evidence").rglob("*") if path.is_file())


def test_an_import_says_what_was_found_and_what_was_read(team: Path) -> None:
    (team / "s.jsonl").write_text(SESSION)
    (one,) = taken(team, "s.jsonl")
    assert (one.session, one.agent, one.is_new, one.exposures) == ("s1", "", True, 1)
    (_, found), (_, read) = entries(team)
    assert [kind for kind, _ in entries(team)] == ["session.imported", "session.read"]
    assert (found["program"], found["version"], found["cwd"]) == ("claude-code", "2.1.209", "/w")
    assert (found["bytes"], found["lines"], found["form"]) == (len(SESSION), 3, "lines")
    assert found["ended_us"] == 1_795_168_800_000_000
    assert found["custody"] == "disk"
    assert "before" not in found
    assert "parts" not in found
    (row,) = map(json.loads, read["exposures"]["text"].splitlines())
    assert (row["line"], row["path"], row["shown"]) == (2, "/w/.env", True)
    assert "KEY=1" not in json.dumps([found, read])
    assert not (team / ".nbs/evidence").exists()


def test_the_same_file_adds_nothing_and_a_longer_one_only_what_is_new(team: Path) -> None:
    file = team / "s.jsonl"
    file.write_text(SESSION)
    taken(team, "s.jsonl")
    before = entries(team)
    (again,) = taken(team, "s.jsonl")
    assert (again.is_new, entries(team)) == (False, before)
    copyfile(file, team / "copy.jsonl")
    assert not taken(team, "copy.jsonl")[0].is_new
    file.write_text(SESSION + call("/w/a", "c2") + answer("x", "c2"))
    (longer,) = taken(team, "s.jsonl")
    assert (longer.is_new, longer.is_changed) == (True, False)
    (_, found), (_, read) = entries(team)[2:]
    assert found["before"] == before[0][1]["sha256"]
    assert [json.loads(line)["path"] for line in read["exposures"]["text"].splitlines()] == ["/w/a"]
    (old,) = taken(team, "copy.jsonl")
    assert (old.is_new, old.seq) == (False, again.seq)
    assert run(team, "verify").code == 0


@pytest.mark.parametrize(
    "changed", [SESSION.replace("KEY=1", "KEY=2"), SESSION[: -len(answer("KEY=1"))]]
)
def test_a_changed_or_shorter_copy_is_taken_and_is_a_finding(team: Path, changed: str) -> None:
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl")
    (team / "s.jsonl").write_text(changed)
    done = run(team, "import", "s.jsonl", "--as", "ann")
    assert done.code == 0
    assert b"not what the entry before had" in done.out
    done = run(team, "verify")
    assert done.code == 1
    assert b"sessions-whole" in done.out


def test_what_is_kept_is_private_shared_between_states_and_erased(team: Path) -> None:
    file = team / "s.jsonl"
    file.write_text(record("user", "x" * PART) + SESSION)
    (one,) = taken(team, "s.jsonl", keep=True)
    assert one.is_kept
    assert (team / ".nbs/evidence").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in kept(team)} == {0o600}
    parts = sorted((path.read_bytes() for path in kept(team)), key=lambda part: -len(part))
    assert b"".join(parts) == file.read_bytes()
    with file.open("a") as grown:
        grown.write(answer("y", "c9"))
    (two,) = taken(team, "s.jsonl", keep=True)
    assert len(kept(team)) == 3  # the first part is one file
    file.unlink()
    done = run(team, "verify")
    assert done.code == 0
    assert b"cannot tell" not in done.out
    for seq in (one.seq, two.seq):
        done = run(team, "redact", str(seq), "--reason", "secrets", "--as", "ann")
        assert done.code == 0, done.err
    assert kept(team) == []
    for kind, body in entries(team):
        model = {"session.imported": IMPORTED, "session.read": READ}[kind]
        model_of(model).model_validate(body)
    assert run(team, "verify").code == 0


def test_a_damaged_part_is_kept_anew_and_a_stray_file_stays(team: Path) -> None:
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl", keep=True)
    (part,) = kept(team)
    part.write_bytes(b"?")
    (part.parent / "stray").write_bytes(b"!")
    (team / "t.jsonl").write_text(SESSION.replace("s1", "s2"))
    assert len(taken(team, "t.jsonl", keep=True)) == 1
    assert len(kept(team)) == 3  # what nobody named is somebody else's
    assert part.read_bytes() == b"?"  # of a session that nobody imported again
    assert not taken(team, "s.jsonl", keep=True)[0].is_new
    assert part.read_text() == SESSION


def test_a_folder_that_is_a_link_is_not_written_into(team: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (team / ".nbs/evidence").symlink_to(elsewhere)
    (team / "s.jsonl").write_text(SESSION)
    done = run(team, "import", "--keep", "s.jsonl", "--as", "ann")
    assert done.code == 1
    assert "evidence" in done.err
    assert not list(elsewhere.iterdir())
    assert entries(team) == []


def test_each_session_of_a_database_is_an_import_of_its_own(team: Path) -> None:
    source = next(path for path in recorded().rglob("*.db") if "opencode" in str(path))
    with closing(sqlite3.connect(source)) as db:
        ids = {name for (name,) in db.execute("SELECT id FROM session")}
    copyfile(source, team / "opencode.db")
    found = taken(team, "opencode.db", keep=True)
    assert {one.session for one in found} == ids
    assert {body["form"] for kind, body in entries(team) if kind == IMPORTED.name} == {"database"}
    assert not any(one.is_new for one in taken(team, "opencode.db"))
    (team / "opencode.db").unlink()
    done = run(team, "verify")
    assert b"cannot tell     sessions-whole" not in done.out, done.out


def test_every_recorded_session_can_be_imported_once_and_again(team: Path) -> None:
    files = [*map(str, transcripts()), str(recorded())]
    first = run(team, "import", *files, "--as", "ann", "--json")
    assert first.code == 0
    told = [json.loads(line) for line in first.out.splitlines()]
    assert all(one["is_new"] for one in told)
    again = run(team, "import", *files, "--as", "ann", "--json")
    assert not any(json.loads(line)["is_new"] for line in again.out.splitlines())
    assert len(again.out.splitlines()) == len(told)
    for kind, body in entries(team):
        model = {"session.imported": IMPORTED, "session.read": READ}[kind]
        model_of(model).model_validate(body)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_id_makes_a_stream_of_its_own(name: str) -> None:
    stream = session_stream(name)
    assert stream.isascii()
    assert "/" not in stream
    assert len(stream) <= 128
    assert (stream == name) or stream.startswith("sha256-")


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00", "x", -7, None, {}])
def test_a_time_that_is_none_is_left_out(team: Path, time: object) -> None:
    (team / "s.jsonl").write_text(record("user", "go", timestamp=time))
    assert taken(team, "s.jsonl")[0].is_new
    assert "ended_us" not in entries(team)[0][1]


# What an outsider found ----------------------------------------------------------------------


def test_an_import_removes_nothing(team: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "x").write_text("mine")
    (team / ".nbs/evidence").symlink_to(precious)
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl")
    assert (precious / "x").read_text() == "mine"


def test_a_folder_of_parts_that_is_a_link_is_left_alone(team: Path, tmp_path: Path) -> None:
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl", keep=True)
    (part,) = kept(team)
    out = tmp_path / "out"
    part.parent.rename(out)
    part.parent.symlink_to(out)
    assert run(team, "import", "--keep", "s.jsonl", "--as", "ann").code == 1
    assert run(team, "redact", "2", "--reason", "secrets", "--as", "ann").code == 0
    assert [path.name for path in out.iterdir()] == [part.name]


def test_a_file_that_was_moved_is_imported_where_it_is_now(team: Path) -> None:
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl")
    (team / "s.jsonl").rename(team / "t.jsonl")
    assert taken(team, "t.jsonl")[0].is_new
    assert not taken(team, "t.jsonl")[0].is_new
    assert run(team, "verify").code == 0


def test_an_older_copy_of_what_the_ledger_has_is_no_change(team: Path) -> None:
    (team / "old.jsonl").write_text(SESSION)
    (team / "s.jsonl").write_text(SESSION + call("/w/a", "c2"))
    taken(team, "s.jsonl")
    assert not taken(team, "old.jsonl")[0].is_new
    assert run(team, "verify").code == 0


def test_the_kept_rows_of_a_database_are_judged_like_the_database(team: Path) -> None:
    source = recorded() / "sessions-2026-11/opencode-read-grep/opencode.db"
    copyfile(source, team / "opencode.db")
    taken(team, "opencode.db", keep=True)
    (team / ".nbs/policy.yaml").write_text("never:\n  - paths: ['chat/**']\n")
    there = run(team, "verify", "--select", "never-read")
    (team / "opencode.db").unlink()
    gone = run(team, "verify", "--select", "never-read")
    assert there.code == gone.code == 1
    assert there.out.count(b"was shown") == gone.out.count(b"was shown") > 0


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ("DELETE FROM event WHERE seq = 3", "order"),
        ("CREATE TABLE newer AS SELECT 1 AS id", "unknown"),
        ("UPDATE message SET data = 'x' WHERE id = (SELECT max(id) FROM message)", "damaged"),
        ('DELETE FROM part WHERE data LIKE \'%"type":"tool"%\'', "witness"),
        ("UPDATE message SET session_id = 'x' WHERE id = (SELECT max(id) FROM message)", "missing"),
    ],
)
def test_what_a_database_lacked_stays_untold_when_only_its_rows_are_left(
    team: Path, change: str, cause: str
) -> None:
    (source,) = recorded().glob("sessions-2026-11/opencode-read-grep/opencode.db")
    copyfile(source, team / "opencode.db")
    with closing(sqlite3.connect(team / "opencode.db")) as db:
        db.execute(change)
        db.commit()
    taken(team, "opencode.db", keep=True)
    (team / ".nbs/policy.yaml").write_text("never:\n  - paths: ['*.key']\n")
    (team / "opencode.db").unlink()
    report = json.loads(run(team, "verify", "--select", "never-read", "--json").out)
    (one,) = report["checks"]
    assert one["verdict"] == "cannot tell"
    with Team(team, read_only=True) as opened:
        sessions = RecordedSessions(opened.root, (), ())
        bodies = [entry.data for entry in opened.store.read() if entry.kind == IMPORTED.name]
        gaps = [
            gap
            for body in bodies
            for gap in sessions.again(body, parts_of(opened.source, body), everything).gaps
        ]
    assert (cause, 0) in {(gap.cause, gap.line) for gap in gaps}


def test_the_kept_rows_of_a_whole_database_have_no_gap_of_their_own(team: Path) -> None:
    for source in recorded().glob("sessions-2026-11/opencode-*/opencode.db"):
        copyfile(source, team / "opencode.db")
        taken(team, "opencode.db", keep=True)
        (team / "opencode.db").unlink()
    (team / ".nbs/policy.yaml").write_text("never:\n  - paths: ['*.key']\n")
    assert b"gaps of the database" not in run(team, "verify", "--json").out


def test_a_kept_part_that_no_entry_names_is_a_warning(team: Path) -> None:
    (team / ".nbs/evidence/ab").mkdir(parents=True)
    (team / ".nbs/evidence/ab/cd").write_text("x")
    done = run(team, "verify", "--select", "sessions-whole", "--json")
    (one,) = json.loads(done.out)["checks"]
    assert [(found["severity"], found["message"]) for found in one["findings"]] == [
        ("warning", "no entry names this part")
    ]
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl", keep=True)
    (one,) = json.loads(run(team, "verify", "--select", "sessions-whole", "--json").out)["checks"]
    assert [found["where"] for found in one["findings"]] == ["evidence/ab/cd"]
    (team / ".nbs/evidence/ab/cd").unlink()
    (one,) = json.loads(run(team, "verify", "--select", "sessions-whole", "--json").out)["checks"]
    assert one["verdict"] == "clean"


@pytest.mark.parametrize("keep", [True, False])
def test_an_original_that_was_changed_did_not_go_on(team: Path, keep: bool) -> None:
    (team / ".nbs/policy.yaml").write_text("never:\n  - paths: [.netrc]\n")
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl", keep=keep)
    select = ("verify", "--json", "--select", "sessions-whole", "--select", "never-read")

    def told() -> dict[str, Any]:
        checks = json.loads(run(team, *select).out)["checks"]
        return {one["check"]: one for one in checks}

    (team / "s.jsonl").write_text(SESSION + call("/w/a", "c2"))
    checks = told()
    assert checks["sessions-whole"]["verdict"] == "clean"
    said = " ".join(checks["never-read"]["exceptions"])
    assert "1 session went on after the import" in said
    other = SESSION.replace("KEY=1", "KEY=2")
    for longer in (other + call("/w/a", "c2"), other):
        (team / "s.jsonl").write_text(longer)
        checks = told()
        (found,) = checks["sessions-whole"]["findings"]
        first = f"its first {len(SESSION)} bytes are not what entry "
        assert found["message"].startswith(f"session s1: {team / 's.jsonl'} was changed: {first}")
        said = " ".join(checks["never-read"].get("exceptions", ()))
        assert "the file of 1 session was changed after the import" in said
        assert "went on" not in said
    for shorter in (SESSION[:-9], ""):
        (team / "s.jsonl").write_text(shorter)
        assert len(told()["sessions-whole"]["findings"]) == 1
        assert run(team, "verify").code == 1
    # What was kept of a file that is gone stays whole: programs delete their transcripts.
    (team / "s.jsonl").unlink()
    assert told()["sessions-whole"]["verdict"] == ("clean" if keep else "cannot tell")
    # Another session that was imported from the same place is no change of this one.
    (team / "s.jsonl").write_text(SESSION.replace("s1", "s2"))
    taken(team, "s.jsonl", keep=keep)
    assert told()["sessions-whole"]["findings"] == []


def test_the_page_of_the_check_shows_what_it_says(team: Path) -> None:
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl")
    (team / "s.jsonl").write_text(SESSION.replace("go", "no") + call("/w/a", "c2"))
    taken(team, "s.jsonl")
    (team / "s.jsonl").write_text(record("user", "anew"))
    taken(team, "s.jsonl")
    (one,) = json.loads(run(team, "verify", "--select", "sessions-whole", "--json").out)["checks"]
    page = re.sub("[0-9]+", "N", " ".join((sessions_whole.__doc__ or "").split()))
    assert len(one["findings"]) == 2
    for found in one["findings"]:
        assert re.sub("[0-9]+", "N", found["message"].partition(": ")[2]) in page


def test_a_kept_session_is_read_without_a_file_that_a_kill_would_leave(
    team: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (team / "s.jsonl").write_text(SESSION)
    taken(team, "s.jsonl", keep=True)
    (team / "s.jsonl").unlink()
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    there = []

    def start(_: Session) -> SessionExposures:
        there.append(list(folder.iterdir()))
        return everything(_)

    with Team(team, read_only=True) as opened:
        body = next(one.data for one in opened.store.read() if one.kind == IMPORTED.name)
        parts = parts_of(opened.source, body)
        judged = RecordedSessions(opened.root, (), ()).again(body, parts, start)
    assert [each.path for each in judged.found] == ["/w/.env"]
    assert there == [[]]


def exported(team: Path, *words: str) -> Path:
    """Seal the ledger, and export it with what was said."""
    assert run(team, "key", "new").code == run(team, "seal").code == 0
    assert run(team, "export", "--bodies", *words, "../out").code == 0
    return team.parent / "out"


def sessions_whole_of(export: Path) -> dict[str, Any]:
    """What the check says of an export."""
    checks = json.loads(run(export, "verify", "--json", ".").out)["checks"]
    return next(one for one in checks if one["check"] == "sessions-whole")


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    """A team in a folder of its own, with a kept session of two parts whose file is gone."""
    team = tmp_path / "team"
    team.mkdir()
    assert run(team, "init").code == 0
    (team / "s.jsonl").write_text(SESSION + record("user", "x" * PART))
    taken(team, "s.jsonl", keep=True)
    (team / "s.jsonl").unlink()
    return team


def test_an_export_has_what_was_kept_only_when_asked(inner: Path) -> None:
    assert run(inner, "export", "--evidence", "../out").code == 2
    out = exported(inner)
    assert not (out / "evidence").exists()
    assert "no files of the team are at hand" in sessions_whole_of(out)["reason"]
    done = run(inner, "export", "--bodies", "--evidence", "../out", "--json")
    assert json.loads(done.out) | {"size": 0} == {
        "removed": 0, "size": 0, "version": 1, "written": 0, "parts": 2, "parts_missing": 0,
    }  # fmt: skip
    parts = sorted(path.relative_to(out / "evidence") for path in (out / "evidence").rglob("??*/*"))
    assert parts == [path.relative_to(inner / ".nbs/evidence") for path in kept(inner)]
    assert (out / "evidence").stat().st_mode & 0o777 == 0o700
    assert run(inner, "export", "--bodies", "../out").code == 0  # and it stays
    assert sessions_whole_of(out)["verdict"] == "clean"
    checks = json.loads(run(out, "verify", "--json", ".").out)["checks"]
    assert not [found for one in checks for found in one["findings"]]
    audit = Path(__file__).parents[3] / "tools/audit_export.py"
    assert subprocess.run((sys.executable, audit, out), check=False).returncode == 0


def test_a_part_of_an_export_that_was_changed_or_added_is_named(inner: Path) -> None:
    out = exported(inner, "--evidence")
    part = kept(inner)[0].name
    (out / "evidence" / part[:2] / part).write_text("x")
    one = sessions_whole_of(out)
    (found,) = one["findings"]
    assert found["message"] == "this kept part was changed: it has another digest"
    assert part in found["where"]
    stray = "ab" + "0" * 62
    (out / "evidence/ab").mkdir(exist_ok=True)
    (out / "evidence/ab" / stray).write_text("x")
    (out / "evidence/notes").write_text("x")
    checks = json.loads(run(out, "verify", "--json", ".").out)["checks"]
    named = {found["where"] for one in checks for found in one["findings"]}
    assert any(stray in where for where in named)
    assert any("evidence/notes" in where for where in named)


def test_a_part_that_is_gone_is_counted_as_missing(inner: Path) -> None:
    first, second = kept(inner)
    first.unlink()
    second.write_text("x")
    out = exported(inner)
    done = run(inner, "export", "--bodies", "--evidence", "../out")
    assert b"Parts of kept sessions: 0 in it, 2 missing here" in done.out
    assert not (out / "evidence").exists()


def test_a_redaction_takes_the_parts_out_of_an_export_too(inner: Path) -> None:
    out = exported(inner, "--evidence")
    with Team(inner, read_only=True) as opened:
        (seq,) = [one.seq for one in opened.store.read() if one.kind == IMPORTED.name]
    words = ("--reason", "secret", "--as", "ann", "--export", "../out")
    assert run(inner, "redact", str(seq), *words).code == 0
    assert kept(inner) == []
    assert [path for path in (out / "evidence").rglob("*") if path.is_file()] == []


def test_an_export_that_is_made_again_has_no_parts_that_were_erased_since(inner: Path) -> None:
    out = exported(inner, "--evidence")
    with Team(inner, read_only=True) as opened:
        (seq,) = [one.seq for one in opened.store.read() if one.kind == IMPORTED.name]
    assert run(inner, "redact", str(seq), "--reason", "secret", "--as", "ann").code == 0
    assert [path for path in (out / "evidence").rglob("*") if path.is_file()]
    assert run(inner, "export", "--bodies", "../out").code == 0
    assert [path for path in (out / "evidence").rglob("*") if path.is_file()] == []


def test_words_given_to_an_unknown_tool_are_not_recorded(team: Path) -> None:
    url = "postgres://admin:hunter2@db/prod"
    use = {"type": "tool_use", "id": "c1", "name": "mcp__db__connect", "input": {"url": url}}
    (team / "s.jsonl").write_text(record("user", "go") + record("assistant", use) + answer("ok"))
    taken(team, "s.jsonl")
    assert "hunter2" not in json.dumps(entries(team))


def test_files_without_an_id_are_told_apart_by_their_place(team: Path) -> None:
    for folder in ("a", "b"):
        (team / folder).mkdir()
        line = {"role": "user", "message": {"content": [{"type": "text", "text": folder}]}}
        (team / folder / "t.jsonl").write_text(json.dumps(line) + "\n")
    found = taken(team, "a/t.jsonl", "b/t.jsonl")
    assert len({one.session for one in found}) == 2


@pytest.mark.parametrize(
    ("path", "text", "is_said"),
    [
        ("x", "", True),
        (".nbs/policy.yaml", "level: PINNED\n", True),
        (".nbs/policy.yaml", "never:\n  - paths: .env\n", False),
        ("tripod.toml", '[[policy.never]]\npaths = [".env"]\n', False),
    ],
)
def test_an_import_says_that_no_rule_judges_it(
    tmp_path: Path, path: str, text: str, *, is_said: bool
) -> None:
    """``verify`` says only how many checks had nothing to judge: that is no *clean*."""
    assert run(tmp_path, "init").code == 0
    (tmp_path / "s.jsonl").write_text(record("user", "hi"))
    (tmp_path / path).write_text(text)
    done = run(tmp_path, "import", "s.jsonl", "--as", "ann")
    assert done.code == 0
    assert ("no rule says what these must not have read" in done.err) == is_said
