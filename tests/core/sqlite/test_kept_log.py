"""The write-ahead log that stays beside a ledger which nobody has open any more (ADR 0030)."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tripod.bus.events import publish
from tripod.ledger import LedgerDamagedError
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.store import KEPT_LOG, SQLiteStore
from tripod.recovery.backup import backup
from tripod.team.adoption import init, sync
from tripod.team.team import Team


def _log(root: Path) -> int:
    """How many bytes of log stand beside the ledger."""
    return (root / "ledger.db-wal").stat().st_size


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A new team directory."""
    init(str(tmp_path))
    return tmp_path / ".nbs"


def _published(root: Path) -> None:
    """Publish as a command does."""
    program = Path(sys.executable).with_name("tripod")
    words = [str(program), "bus", "publish", "ann", "note", "low", "text"]
    subprocess.run(words, cwd=root.parent, check=True, capture_output=True)


def _size(path: Path) -> int:
    with closing(read_only(str(path))) as db:
        return int(db.execute("SELECT size FROM head").fetchone()[0])


def test_a_command_leaves_its_entries_in_the_log(root: Path, tmp_path: Path) -> None:
    size = _size(root / "ledger.db")
    before = (root / "ledger.db").stat().st_mtime_ns
    _published(root)
    assert _log(root)
    assert (root / "ledger.db").stat().st_mtime_ns == before  # nothing was moved into it
    assert _size(root / "ledger.db") == size + 1
    copy = tmp_path / "bare.db"
    copy.write_bytes((root / "ledger.db").read_bytes())
    assert _size(copy) == size  # a bare copy is an older, shorter ledger
    with Team(root) as team:
        backup(team, str(tmp_path / "whole.db"))
        assert team.head().size == size + 1
    assert _size(tmp_path / "whole.db") == size + 1


def test_a_large_log_is_moved_into_the_database(root: Path) -> None:
    with Team(root) as team, team.act():
        for number in range(KEPT_LOG // 50_000):
            publish(team, "ann", "note", "low", f"{number}" + "x" * 60_000)
    assert not (root / "ledger.db-wal").exists() or _log(root) == 0


def test_a_sync_leaves_no_log_that_a_copy_would_lack(root: Path) -> None:
    _published(root)
    program = Path(sys.executable).with_name("tripod")
    subprocess.run([program, "sync"], cwd=root.parent, check=True, capture_output=True)
    assert _log(root) == 0


def test_a_reader_does_not_keep_the_log_from_being_left(root: Path) -> None:
    with Team(root) as team:
        team.store.kept_log = 0
        publish(team, "ann", "note", "low", "text")
        with closing(sqlite3.connect(root / "ledger.db", isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM entries").fetchone()
            publish(team, "ann", "note", "low", "text")
            team.close()  # it does not wait for the reader
    with Team(root) as team:
        sync(team)
        assert team.head().size >= 3


def test_a_backup_beside_the_log_of_another_ledger_is_not_written(
    root: Path, tmp_path: Path
) -> None:
    with Team(root) as team:
        backup(team, str(tmp_path / "monday.db"))
    _published(root)
    os.replace(tmp_path / "monday.db", root / "ledger.db")
    before = (root / "ledger.db").read_bytes()
    with pytest.raises(LedgerDamagedError, match="its header says that it has none"):
        SQLiteStore(str(root / "ledger.db"))
    assert (root / "ledger.db").read_bytes() == before
