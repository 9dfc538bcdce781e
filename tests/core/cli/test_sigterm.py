"""SIGTERM ends a command, and leaves no scratch folder behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from git_repo import Git

from tripod.output import cleaned_up_on_sigterm
from tripod.team import adoption

RUN = """
import os, signal, sys
import tripod.verify.recorded.database, tripod.verify.anchors.git

def killed(*_):
    assert os.listdir(os.environ["TMPDIR"])
    os.kill(os.getpid(), signal.SIGTERM)

{place} = killed
from tripod.cli import main
main(sys.argv[1:])
"""
PLACES = [
    ("tripod.verify.anchors.git.Repository._begin", ("verify", ".")),
    ("tripod.verify.recorded.database._copy", ("exposure", "opencode.db")),
]


def run(folder: Path, words: tuple[str, ...], program: str) -> tuple[int, list[str]]:
    """Run a program; give its end, and what it left among the temporary files."""
    (folder / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == b""
    return done.returncode, os.listdir(folder / "tmp")


@pytest.mark.parametrize(("place", "words"), PLACES)
def test_a_command_that_is_ended_removes_its_scratch_folder(
    tmp_path: Path, place: str, words: tuple[str, ...]
) -> None:
    git = Git(tmp_path / "shop")
    adoption.init(str(git.root), project="shop", origin="example.org/shop", key=False)
    (git.root / "opencode.db").write_bytes(b"SQLite format 3\0")
    program = RUN.format(place=place)
    assert run(git.root, words, program) == (-signal.SIGTERM, [])


def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    program = """
import os, signal
from tripod.output import cleaned_up_on_sigterm
with cleaned_up_on_sigterm():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        print("not reached")
"""
    assert run(tmp_path, (), program)[0] == -signal.SIGTERM


def test_a_handler_of_the_program_that_calls_us_stays() -> None:
    def theirs(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, theirs)
    try:
        with cleaned_up_on_sigterm():
            assert signal.getsignal(signal.SIGTERM) is theirs
        assert signal.getsignal(signal.SIGTERM) is theirs
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with cleaned_up_on_sigterm():
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
