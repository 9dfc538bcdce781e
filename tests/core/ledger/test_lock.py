"""The writers' lock: one at a time, within a process too, and nothing stays but the file."""

import fcntl
import os
from pathlib import Path

import pytest

from tripod.ledger.files import FileLock


def is_free(path: Path) -> bool:
    """Whether somebody else could take the lock now."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db.lock"


def test_it_is_held_for_the_length_of_a_with(path: Path) -> None:
    lock = FileLock(str(path))
    assert not path.exists()
    for _ in range(3):
        with lock as taken:
            assert taken is lock
            assert not is_free(path)
        assert is_free(path)
    lock.close()
    assert path.read_bytes() == b""


def test_an_exception_gives_it_back(path: Path) -> None:
    lock = FileLock(str(path))
    with pytest.raises(KeyError), lock:
        raise KeyError
    assert is_free(path)
    lock.close()


def test_another_descriptor_of_the_file_does_not_drop_it(path: Path) -> None:
    lock = FileLock(str(path))
    with lock:
        path.open("rb").close()  # this would drop a POSIX record lock
        assert not is_free(path)
    lock.close()


def test_one_descriptor_is_kept_and_closed_at_the_end(path: Path) -> None:
    lock = FileLock(str(path))
    lock.close()
    with lock:
        first = lock._fd
        assert os.path.samestat(os.fstat(first), path.stat())
        assert not os.get_inheritable(first)
    with lock:
        assert lock._fd == first
    lock.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(first)
    lock.close()
    with lock:
        assert not is_free(path)
    lock.close()


def test_closing_gives_it_back(path: Path) -> None:
    lock = FileLock(str(path))
    lock.__enter__()
    lock.close()
    assert is_free(path)


def test_everybody_may_see_it_and_its_owner_take_it(path: Path) -> None:
    lock = FileLock(str(path))
    mask = os.umask(0)
    try:
        with lock:
            assert path.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)
        lock.close()


def test_where_it_cannot_be_made_the_path_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "lock")
    with pytest.raises(FileNotFoundError) as caught, FileLock(path):
        pass
    assert caught.value.filename == path
