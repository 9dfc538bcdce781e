"""The write-ahead log beside OpenCode's database: what it lacks is a gap, what it has is read."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from recorded_sessions import judged, recorded

from tripod.verify.recorded import database
from tripod.verify.recorded.files import read_session_file
from tripod.verify.sessions.items import Gap, Item

FOLDER = "sessions-2026-11/opencode-clean"
STATE = {
    "status": "completed",
    "input": {"filePath": "/home/dev/team/chat/lobby.md"},
    "output": "we ship",
}


def told(path: Path) -> str:
    folder = recorded() / FOLDER / "team"
    return judged(path, project=folder, home=folder)[0].told


def gaps(path: Path) -> list[str]:
    found: list[Item] = []
    read_session_file(str(path), found.append)
    return [item.what for item in found if isinstance(item, Gap)]


@contextmanager
def _writer(path: Path) -> Iterator[sqlite3.Connection]:
    """A database that a program writes into its log, and has open."""
    path.write_bytes((recorded() / FOLDER / "opencode.db").read_bytes())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        yield db


def _read_chat(db: sqlite3.Connection) -> None:
    """Add a call that reads chat, as OpenCode does: a part, its event, and the number of that."""
    message, session = db.execute("SELECT id, session_id FROM message LIMIT 1 OFFSET 1").fetchone()
    (top,) = db.execute("SELECT max(seq) FROM event").fetchone()
    part = {"type": "tool", "tool": "read", "callID": "x", "state": STATE}
    event = {"part": {**part, "id": "prt_zzz", "messageID": message, "sessionID": session}}
    row = "INSERT INTO event VALUES ('evt_zzz', ?, ?, 'message.part.updated.1', ?)"
    db.execute("BEGIN")
    db.execute(
        "INSERT INTO part VALUES ('prt_zzz', ?, ?, 1, 1, ?)", (message, session, json.dumps(part))
    )
    db.execute(row, (session, top + 1, json.dumps(event)))
    db.execute("UPDATE event_sequence SET seq = ?", (top + 1,))
    db.execute("COMMIT")


def _copied(source: Path, folder: Path, *ends: str) -> Path:
    folder.mkdir()
    for end in ("", *ends):
        (folder / f"a.db{end}").write_bytes(Path(f"{source}{end}").read_bytes())
    return folder / "a.db"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """What a program left that was killed: the read of chat stands in the log alone."""
    with _writer(tmp_path / "b.db") as db:
        _read_chat(db)
        return _copied(tmp_path / "b.db", tmp_path / "killed", "-wal", "-shm")


def _log(path: Path) -> Path:
    return path.with_name("a.db-wal")


def test_what_stands_only_in_the_log_is_found(killed: Path) -> None:
    assert told(killed) == "findings"
    killed.with_name("a.db-shm").unlink()
    assert told(killed) == "findings"
    assert not any("log" in what for what in gaps(killed))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut by a byte": lambda data: data[:-1],
    "cut in half": lambda data: data[: len(data) // 2],
    "cut after a page": lambda data: data[: 32 + 4120],
    "empty": lambda _: b"",
    "a bit of a page": lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
    "a bit of the last page": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "its first bytes": lambda data: b"\0" + data[1:],
    "its mark": lambda data: data[:16] + bytes([data[16] ^ 1]) + data[17:],
    "its sum": lambda data: data[:24] + bytes([data[24] ^ 1]) + data[25:],
    "the size of its pages": lambda data: data[:8] + b"\0\0\0\0" + data[12:],
    "the marks of all pages": lambda data: (
        data[:32]
        + b"".join(
            data[at : at + 8] + b"12345678" + data[at + 16 : at + 4120]
            for at in range(32, len(data), 4120)
        )
    ),
    "the mark of the last page": lambda data: data[:-4112] + b"12345678" + data[-4104:],
    "zeros": lambda data: bytes(len(data)),
    "zeros in the last page": lambda data: data[:-4120] + bytes(600) + data[-3520:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_log_is_not_clean(killed: Path, damage: str) -> None:
    _log(killed).write_bytes(DAMAGE[damage](_log(killed).read_bytes()))
    killed.with_name("a.db-shm").unlink()
    assert told(killed) == "cannot tell"
    assert any("a.db-wal" in what for what in gaps(killed)), gaps(killed)


@pytest.mark.parametrize("damage", ["gone", "only its header", "of another time"])
def test_the_index_of_a_log_says_what_it_lacks(killed: Path, damage: str) -> None:
    log = _log(killed)
    if damage == "gone":
        log.unlink()
    elif damage == "only its header":
        log.write_bytes(log.read_bytes()[:32])
    else:
        with _writer(killed.with_name("c.db")) as db:
            db.execute("UPDATE session SET title = 'x'")
            log.write_bytes(killed.with_name("c.db-wal").read_bytes())
    assert told(killed) == "cannot tell"
    assert any("counts" in what for what in gaps(killed)), gaps(killed)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make",
    [
        _fifo,
        Path.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("x"),
    ],
)
@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_log_that_is_no_file_is_not_read(
    tmp_path: Path, end: str, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "a.db"
    path.write_bytes((recorded() / FOLDER / "opencode.db").read_bytes())
    assert told(path) == "clean"
    make(tmp_path / f"a.db{end}")
    assert told(path) == "cannot tell"


def test_a_journal_is_not_played_back(tmp_path: Path) -> None:
    """It holds pages from before a change, and the name of a file that SQLite would remove."""
    path, source = tmp_path / "a.db", tmp_path / "b.db"
    source.write_bytes((recorded() / FOLDER / "opencode.db").read_bytes())
    with closing(sqlite3.connect(source, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.execute("UPDATE part SET time_updated = 1")
        db.execute("UPDATE event SET type = type || ''")
        path.write_bytes(source.read_bytes())
        journal = Path(f"{source}-journal").read_bytes()
    assert journal[:8].strip(b"\0")
    (tmp_path / "a.db-journal").write_bytes(journal)
    assert told(path) == "cannot tell"
    assert any("was broken off" in what for what in gaps(path))
    (tmp_path / "a.db-journal").write_bytes(bytes(512) + journal[512:])  # as one that was kept
    path.write_bytes((recorded() / FOLDER / "opencode.db").read_bytes())
    assert told(path) == "clean"


def test_the_log_of_a_database_that_a_link_names_is_read(killed: Path) -> None:
    link = killed.parent.parent / "link.db"
    link.symlink_to(killed)
    found = read_session_file(str(link), is_named=True)
    assert found.counts.calls == {"read": 2}


def test_a_log_that_grows_while_it_is_read_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _writer(tmp_path / "a.db") as db:
        db.execute("UPDATE session SET title = title")
        assert told(tmp_path / "a.db") == "clean"
        copy = database._copy

        def grown(source: object, target: str) -> None:
            copy(source, target)  # type: ignore[arg-type]
            if target.endswith("-wal"):
                _read_chat(db)

        monkeypatch.setattr(database, "_copy", grown)
        assert "the database was changed while it was read" in gaps(tmp_path / "a.db")


def test_a_log_as_programs_leave_it_is_whole(tmp_path: Path) -> None:
    """Behind the pages of a log that begins anew stand those of the run before."""
    with _writer(tmp_path / "b.db") as db:
        db.execute("SELECT count(*) FROM session").fetchone()
        copies = [_copied(tmp_path / "b.db", tmp_path / "idle", "-wal", "-shm")]
        for number, rows in enumerate((9, 5, 1, 7, 1, 0)):
            for _ in range(rows):
                db.execute("UPDATE session SET title = title || 'x'")
                db.execute("UPDATE part SET time_updated = time_updated + 1")
            copies.append(_copied(tmp_path / "b.db", tmp_path / f"{number}", "-wal", "-shm"))
            copies.append(_copied(tmp_path / "b.db", tmp_path / f"no index {number}", "-wal"))
            db.execute("PRAGMA wal_checkpoint(RESTART)")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        copies.append(_copied(tmp_path / "b.db", tmp_path / "emptied", "-wal", "-shm"))
    copies.append(_copied(tmp_path / "b.db", tmp_path / "closed"))
    assert [told(path) for path in copies] == ["clean"] * len(copies)
