"""Many processes at one team, and processes that die: all that was answered is in one chain."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from doors.inside import TRIPOD, run
from sample_ledger import entry_faults

from tripod.ledger.entry import Entry
from tripod.ledger.sqlite.reader import SQLiteReader, read_only

LOOP = """
import os, signal, sys
from tripod.cli import main
from tripod.team.files import Files

def once(*words):
    try:
        main(words)
    except SystemExit as left:
        assert left.code == 0, left.code

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[1] == "loop":
    for number in range(10**6):
        once("bus", "publish", "ann", f"n{number}", "low", "x" * (number % 50 * 40))
Files.project = die
once("bus", "publish", "ann", "unwritten", "low")
"""


@pytest.fixture
def team(tmp_path: Path) -> Path:
    done = run(tmp_path, "init")
    assert done.code == 0, done.err
    return tmp_path


def together(folder: Path, *commands: tuple[str, ...]) -> list[tuple[int, str]]:
    """Start all commands at once; the code and the output of each."""
    children = [
        subprocess.Popen(
            [TRIPOD, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for arguments in commands
    ]
    return [(child.returncode, out) for child in children for out in (child.communicate()[0],)]


def entries(folder: Path) -> list[Entry]:
    """Every entry, once the chain of them all has been judged."""
    with closing(read_only(str(folder / ".nbs/ledger.db"))) as db:
        found = list(SQLiteReader(db).read())
        origin = db.execute("SELECT origin FROM head").fetchone()[0]
    assert entry_faults(found, origin) == []
    return found


def published(folder: Path) -> list[str]:
    """The names of all published events, in order."""
    return [entry.data["name"] for entry in entries(folder) if entry.kind == "bus.published"]


def pending(folder: Path) -> set[str]:
    """The names of the event files that wait."""
    return {path.name for path in (folder / ".nbs/events").glob("*.event")}


@pytest.mark.slow
def test_fifty_publish_at_once(team: Path) -> None:
    done = together(
        team, *[("bus", "publish", "ann", f"n{number % 5}", "low") for number in range(50)]
    )
    assert Counter(code for code, _ in done) == {0: 50}
    names = [out.strip() for _, out in done]
    assert len(set(names)) == 50
    assert sorted(published(team)) == sorted(names)
    assert pending(team) == set(names)
    assert run(team, "verify").code == 0


@pytest.mark.slow
def test_of_twelve_equal_events_one_gets_in(team: Path) -> None:
    for attempt in range(3):
        command = ("bus", "publish", "ann", f"n{attempt}", "low", "--dedup-window=60")
        done = together(team, *[command] * 12)
        assert Counter(code for code, _ in done) == {0: 1, 5: 11}
        assert [out for code, out in done if code] == [""] * 11
        assert len(published(team)) == attempt + 1


@pytest.mark.slow
def test_of_ten_who_acknowledge_one_does(team: Path) -> None:
    name = run(team, "bus", "publish", "ann", "done", "low").out.decode().strip()
    done = together(team, *[("bus", "ack", name, "--as", f"p{number}") for number in range(10)])
    assert Counter(code for code, _ in done) == {0: 1, 3: 9}
    assert [entry.kind for entry in entries(team)].count("bus.acked") == 1
    assert (team / ".nbs/events/processed" / name).is_file()
    assert pending(team) == set()


@pytest.mark.drawn("long")
@pytest.mark.slow
def test_twenty_kills_lose_nothing(team: Path) -> None:
    said: list[str] = []
    for attempt in range(20):
        with subprocess.Popen(
            [sys.executable, "-c", LOOP, "loop"], cwd=team, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            said += [child.stdout.readline().strip() for _ in range(attempt * attempt % 29)]
            child.kill()
            rest = child.stdout.read()
        # What was cut off in the middle of a line was not answered.
        said += (rest if rest.endswith("\n") else rest.rpartition("\n")[0]).split()
        assert run(team, "bus", "status").code == 0
        names = published(team)
        assert set(said) <= set(names)
        # At most the act that each had under way was not answered.
        assert len(names) - len(said) <= 20
        assert pending(team) == set(names)
    assert len(said) > 100
    assert run(team, "verify").code == 0


@pytest.mark.slow
def test_killed_behind_the_commit(team: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", LOOP, "once"], cwd=team) as child:
        pass
    assert child.returncode == -signal.SIGKILL
    assert len(published(team)) == 1
    assert pending(team) == set()
    done = run(team, "bus", "check")
    assert (done.code, done.out.count(b"-ann-unwritten-")) == (0, 1)
    assert "recovered: wrote 1 entry that was in the ledger but not yet in the files" in done.err
    assert pending(team) == set(published(team))
    assert run(team, "bus", "check").err == ""


STRANGER = shutil.which("sqlite3")
PYTHON = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    db.execute(sys.argv[2])
"""
REST = "kind, stream, header, salt, body, auth"
STATEMENTS = [
    "update entries set kind = 'x'",
    "update entries set body = null where seq = 1",
    "delete from entries",
    "delete from entries where seq = (select max(seq) from entries)",
    "insert or replace into entries select * from entries where seq = 1",
    "replace into entries select * from entries where seq = 0",
    f"insert into entries select seq + 100, id || 'x', {REST} from entries",
    f"insert into entries select (select max(seq) + 1 from entries), id, {REST} from entries",
    f"replace into entries select (select max(seq) + 1 from entries), id, {REST} from entries",
    "update or replace entries set seq = 0 where seq = 1",
    "update head set size = 1",
    "delete from head",
    "insert or replace into head select * from head",
    "update head set last = 'x'",
]


def by_a_stranger(folder: Path, statement: str) -> "subprocess.CompletedProcess[str]":
    """Run SQL with the sqlite3 program, or where there is none with Python's."""
    path = str(folder / ".nbs/ledger.db")
    program = [STRANGER] if STRANGER else [sys.executable, "-c", PYTHON]
    return subprocess.run(
        [*program, path, statement], capture_output=True, check=False, text=True, timeout=60
    )


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_stranger_is_refused(team: Path, statement: str) -> None:
    assert run(team, "bus", "publish", "ann", "done", "low").code == 0
    before = entries(team)
    done = by_a_stranger(team, statement)
    assert done.returncode != 0
    assert "the ledger is append-only" in done.stderr
    assert entries(team) == before
    assert run(team, "verify").code == 0


def test_behind_the_triggers_back_the_entry_is_named(team: Path) -> None:
    for _ in range(3):
        assert run(team, "bus", "publish", "ann", "done", "low").code == 0
    for trigger in ("entries_no_update", "entries_no_delete"):
        assert by_a_stranger(team, f"drop trigger {trigger}").returncode == 0
    assert by_a_stranger(team, "update entries set body = x'7b7d' where seq = 3").returncode == 0
    done = run(team, "verify")
    assert done.code == 1
    assert b"entry 3" in done.out


def test_the_program_is_the_one_of_this_environment() -> None:
    assert os.access(TRIPOD, os.X_OK)
