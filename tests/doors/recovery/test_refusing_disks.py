"""A disk that is full or may not be written: nothing is lost, and it is said."""

import ctypes
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from doors.inside import TRIPOD, begin, run, state

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def _bow_to_modes() -> None:
    """Let the next program obey the permission bits even where root runs the tests."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def _write_little() -> None:
    """Let the next program write no file beyond 64 bytes, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def command(
    folder: Path, before: Callable[[], None], *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command as a process that was held back first."""
    return subprocess.run(
        [TRIPOD, *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
        preexec_fn=before,
    )


ACTS = [
    ("bus", "publish", "ann", "done", "low"),
    ("bus", "ack-all"),
    ("chat", "send", "live", "ann", "hello"),
    ("scribe", "log", "Title", "-p", "ann", "-r", "why", "--ref", "live.chat:~L7"),
    ("rebuild",),
]


@pytest.mark.parametrize("arguments", ACTS, ids=" ".join)
def test_a_full_disk(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    begin(tmp_path)
    before = state(tmp_path)
    done = command(tmp_path, _write_little, *arguments)
    if arguments == ("rebuild",) and done.returncode == 0:
        assert "0 files written" in done.stdout  # there was nothing to write
    else:
        assert done.returncode == 1, done
        assert done.stdout == ""
        assert "nothing was recorded" in done.stderr
        assert "Traceback" not in done.stderr
    assert state(tmp_path) == before
    assert run(tmp_path, *arguments).code == 0
    assert run(tmp_path, "verify").code == 0


def test_a_full_disk_is_judged(tmp_path: Path) -> None:
    begin(tmp_path)
    before = state(tmp_path)
    for _ in range(2):  # the second finds what SQLite left at the first
        done = command(tmp_path, _write_little, "verify")
        assert done.returncode == 0, done
    assert state(tmp_path) == before


@pytest.mark.parametrize("arguments", ACTS, ids=" ".join)
def test_a_read_only_team(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    begin(tmp_path)
    before = state(tmp_path)
    team = tmp_path / ".nbs"
    closed = [path for path in team.rglob("*") if path.is_dir() or "ledger.db" in path.name]
    for path in (*closed, team):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        done = command(tmp_path, _bow_to_modes, *arguments)
        verified = command(tmp_path, _bow_to_modes, "verify")
    finally:
        for path in (team, *closed):
            path.chmod(path.stat().st_mode | 0o200)
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "nothing was recorded" in done.stderr
    assert verified.returncode == 0, verified
    assert state(tmp_path)[0] == before[0]


def test_init_where_nothing_can_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        done = command(tmp_path, _bow_to_modes, "init")
    finally:
        tmp_path.chmod(0o755)
    assert done.returncode == 1
    assert "Permission denied" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_written_are_written_later(tmp_path: Path) -> None:
    """The entry is the truth from the COMMIT on; the files follow as soon as they can."""
    begin(tmp_path)
    events = tmp_path / ".nbs/events"
    shutil.copytree(events, tmp_path / "kept")
    events.chmod(0o555)
    try:
        done = command(tmp_path, _bow_to_modes, "bus", "publish", "ann", "later", "low")
    finally:
        events.chmod(0o755)
    assert done.returncode in (0, 1)
    assert "Permission denied" in done.stderr
    checked = run(tmp_path, "bus", "check")
    assert checked.code == 0
    assert b"-ann-later-" in checked.out
    assert "recovered: wrote 1 entry" in checked.err
    assert list(events.glob("*-ann-later-*"))
    assert run(tmp_path, "verify").code == 0
