"""What may be opened as an input: a regular file, and nothing that waits or never ends.

And the folder for temporary files: private, and removed without what its links lead to.
"""

import os
import socket
from pathlib import Path
from unittest import mock

import pytest

from tripod.ledger.errors import LedgerDamagedError
from tripod.ledger.files import (
    FileLock,
    make_scratch_folder,
    open_plain_file,
    read_plain_file,
    remove_folder,
)
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.store import SQLiteStore


def test_a_regular_file_is_read_up_to_its_limit_and_one_byte(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_plain_file(str(file), 5) == b"12345"
    assert read_plain_file(str(file), 3) == b"1234"


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("what", ["pipe", "folder", "socket", "endless"])
def test_nothing_else_is_opened(tmp_path: Path, what: str, *, named: bool) -> None:
    place = str(tmp_path / "place")
    if what == "pipe":
        os.mkfifo(place)
    elif what == "folder":
        os.mkdir(place)
    elif what == "endless":
        os.symlink("/dev/zero", place)
    else:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(place)
    with pytest.raises(OSError, match=r"regular file|Is a directory|symbolic link"):
        open_plain_file(place, named=named)


def test_a_link_is_followed_where_a_person_named_it_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert read_plain_file(str(link), 9, named=True) == b"1"
    with pytest.raises(OSError, match="it is a symbolic link, and is not followed"):
        read_plain_file(str(link), 9)
    link.unlink()
    link.symlink_to("pipe")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        read_plain_file(str(link), 9, named=True)


def test_what_is_not_there_is_not_there(tmp_path: Path) -> None:
    for named in (False, True):
        with pytest.raises(FileNotFoundError):
            read_plain_file(str(tmp_path / "none"), 9, named=named)


def test_a_lock_makes_no_file_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        FileLock(str(tmp_path / "lock")).acquire()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_a_pipe_beside_the_database_is_damage(tmp_path: Path, suffix: str) -> None:
    """SQLite opens what has that name, and would wait for somebody to write into it."""
    database = str(tmp_path / "ledger.db")
    SQLiteStore(database, create=True).close()
    with pytest.raises(FileNotFoundError):
        os.stat(database + suffix)
    os.mkfifo(database + suffix)
    for opens in (read_only, SQLiteStore):
        with pytest.raises(LedgerDamagedError, match="no plain file"):
            opens(database)


def test_a_scratch_folder_is_private_and_goes_without_what_its_links_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_bytes(b"1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    one, other = (Path(make_scratch_folder("front-")) for _ in range(2))
    assert one != other
    assert (one.parent, one.stat().st_mode & 0o777) == (tmp_path, 0o700)
    assert one.name.startswith("front-")
    (one / "in/deep").mkdir(parents=True)
    (one / "in/file").write_bytes(b"2")
    (one / "in/link").symlink_to(kept)
    (one / "link").symlink_to(kept / "file")
    remove_folder(str(one))
    remove_folder(str(other))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").read_bytes() == b"1"


def test_a_scratch_folder_is_elsewhere_where_the_first_place_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    monkeypatch.setenv("TEMP", str(tmp_path / "good"))
    assert os.path.dirname(make_scratch_folder("front-")) == str(tmp_path / "good")
    monkeypatch.setattr("os.mkdir", mock.Mock(side_effect=PermissionError))
    with pytest.raises(OSError, match="let TMPDIR name one"):
        make_scratch_folder("front-")
