"""A database that cannot be read, or not any more: a code and a message, never a traceback."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from doors.inside import begin, door_of, run

READING = [
    ("bus", "check"),
    ("bus", "status"),
    ("bus", "ack-all"),
    ("bus", "publish", "ann", "done", "low"),
    ("chat", "read", "live"),
    ("chat", "search", "live", "e"),
    ("chat", "send", "live", "ann", "hello"),
    ("scribe", "count"),
    ("scribe", "query"),
    ("scribe", "log", "Title", "-p", "ann", "-r", "why", "--no-ref", "it is a test"),
    ("show",),
    ("show", "3"),
    ("show", "decisions"),
    ("show", "--at", "3", "chat"),
    ("sync",),
    ("rebuild",),
    ("init",),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("sound"))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def cut_short(path: Path) -> None:
    os.truncate(path, 5000)


def scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def write_text(path: Path) -> None:
    path.write_text("this is no database, though it is long enough to be taken for one\n" * 99)


def be_foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photographs (name TEXT)")


def be_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def be_empty(path: Path) -> None:
    path.write_bytes(b"")


def be_wiped(path: Path) -> None:
    """A ledger's schema with nothing in it."""
    with closing(sqlite3.connect(path)) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f"DROP TRIGGER {name}")
        for table in ("entries", "head", "nodes", "blobs"):
            db.execute(f"DELETE FROM {table}")
        db.commit()


UNREADABLE: dict[Callable[[Path], None], str] = {
    truncate: "ledger.db",
    cut_short: "ledger.db",
    scribble: "ledger.db",
    write_text: "not a database",
    be_foreign: "belongs to another program",
    be_newer: "use a newer tripod",
    be_empty: "holds no entry",
    be_wiped: "holds no entry",
}


def spoil(sound: Path, copy: Path, damage: Callable[[Path], None]) -> Path:
    """A copy of the team, its database damaged."""
    shutil.copytree(sound, copy)
    with closing(sqlite3.connect(copy / ".nbs/ledger.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(copy / ".nbs/ledger.db")
    return copy


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file but those that SQLite and our lock leave beside the database."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm", ".lock"))
    }


@pytest.mark.parametrize("damage", UNREADABLE, ids=lambda damage: damage.__name__)
def test_an_unreadable_database(
    sound: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = spoil(sound, tmp_path / "team", damage)
    before = snapshot(folder)
    for arguments in READING:
        if damage in (be_empty, be_wiped) and arguments == ("init",):
            continue  # what an interrupted init left: it begins anew
        done = run(folder, *arguments)
        assert snapshot(folder) == before, arguments
        if damage is truncate and done.code == 0:
            # What this command reads lies in the half that is left.
            assert arguments[0] not in ("sync", "rebuild", "init")
            continue
        assert done.code == (1 if door_of(arguments) else 3), done
        assert done.out == b""
        assert UNREADABLE[damage] in done.err
        assert str(folder) in done.err
        assert "please report" not in done.err or damage is truncate


@pytest.mark.parametrize("damage", UNREADABLE, ids=lambda damage: damage.__name__)
def test_verify_never_calls_it_clean(
    sound: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = spoil(sound, tmp_path / "team", damage)
    before = snapshot(folder)
    for arguments in (("verify",), ("verify", "--json"), ("verify", ".nbs/ledger.db")):
        done = run(folder, *arguments)
        assert done.code in (1, 3), done
        assert done.out
        assert "Traceback" not in done.out.decode() + done.err
    assert snapshot(folder) == before


def test_a_folder_in_its_place(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    shutil.copytree(sound, folder, ignore=shutil.ignore_patterns("ledger.db*"))
    (folder / ".nbs/ledger.db").mkdir()
    before = snapshot(folder)
    for arguments in (*READING, ("verify",)):
        done = run(folder, *arguments)
        assert done.code in (1, 2, 3), done
        assert done.err or arguments == ("verify",)
    assert snapshot(folder) == before
    assert list((folder / ".nbs/ledger.db").iterdir()) == []


ALTERED = (
    "UPDATE entries SET body = x'00'",
    "UPDATE entries SET body = NULL, salt = NULL",
    "UPDATE entries SET body = CAST('{}' AS BLOB)",
    "UPDATE entries SET body = CAST('[1]' AS BLOB)",
    "UPDATE entries SET header = x'ff' WHERE seq > 1",
    "UPDATE entries SET header = CAST('{}' AS BLOB)",
    "UPDATE entries SET kind = 'no.such'",
    "UPDATE entries SET seq = seq + 100 WHERE seq > 3",
    "DELETE FROM entries WHERE seq = 3",
    "DELETE FROM entries",
    "UPDATE head SET stack = x'00'",
    "UPDATE head SET size = 4000",
    "UPDATE head SET size = -1",
    "UPDATE head SET tables = 0",
    "UPDATE events SET name = '../../x'",
    "UPDATE events SET priority = 9",
    "UPDATE inputs SET settings = '{'",
    "DROP TABLE events",
    "DROP TABLE manifest",
    "DROP TABLE team",
    "DELETE FROM team",
)


@pytest.mark.parametrize("change", ALTERED)
def test_rows_altered_behind_the_triggers(sound: Path, tmp_path: Path, change: str) -> None:
    """Whatever a command makes of such rows, it ends with a code of its door and a message."""

    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            triggers = db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
            ).fetchall()
            for (name,) in triggers:
                db.execute(f"DROP TRIGGER {name}")
            db.execute(change)
            db.commit()

    folder = spoil(sound, tmp_path / "team", damage)
    for arguments in (*READING, ("verify",)):
        done = run(folder, *arguments)
        assert done.code in (0, 1, 2, 3), done
        assert done.code == 0 or done.err or arguments[0] == "verify"
        assert done.err.count("\n") <= 6, done.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("doctor", "--team", "nowhere"), 2, "--team: 'nowhere' is no folder"),
        (
            ("verify", "--pin", "p", "--update-pin", "--select", "sequence"), 2,
            "--update-pin remembers what was judged whole: give no --select with it",
        ),
        (("verify", "--new-only"), 2, "--update-pin and --new-only go with --pin FILE"),
        (
            ("verify", "--grow-only", "x", "--no-ledger"), 2,
            "--grow-only judges files by git alone: give no other option, or a PATH as well",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_in_words(
    sound: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    done = run(sound, *words)
    assert (done.code, done.out) == (code, b"")
    assert says in done.err
