"""Long work says at a terminal how far it is, on one line that is gone at the end."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from doors.cli.screen import drained
from doors.inside import begin, run

from tripod.ledger import progress as told
from tripod.output import progress_shown

AT_ONCE = """
import sys
from tripod import output
from tripod.cli import main
output.DELAY = 0
main(sys.argv[1:])
"""
COMMANDS = (("init",), ("sync",), ("rebuild",), ("verify",))
STAGE = re.compile(
    r"(?:reading|folding|linking|storing|writing|comparing|checking|judging) [\w ,%'-]+"
)


def sized(columns: int) -> tuple[int, int]:
    """Both sides of a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    return master, slave


def on_a_terminal(
    folder: Path, *arguments: str, columns: int = 80, program: str = AT_ONCE, term: str = "xterm"
) -> tuple[str, bytes]:
    """What stderr, a terminal, and stdout, a pipe, are sent by a command."""
    master, slave = sized(columns)
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "TERM": term},
        stdout=subprocess.PIPE,
        stderr=slave,
    ) as child:
        os.close(slave)
        err = drained(master).decode()
        assert child.stdout is not None
        out = child.stdout.read()
    assert child.returncode == 0, err
    return err, out


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return begin(tmp_path)


@pytest.mark.parametrize("arguments", COMMANDS, ids=str)
def test_it_is_shown_in_place_and_cleared(team: Path, arguments: tuple[str, ...]) -> None:
    quiet = run(team, *arguments)
    err, out = on_a_terminal(team, *arguments)
    assert quiet.code == 0
    assert "\n" not in err
    first, *drawn, blank, end = err.split("\r")
    assert (first, end) == ("", "")
    assert drawn
    assert all(STAGE.fullmatch(text.rstrip()) for text in drawn), drawn
    assert blank.strip() == ""
    assert len(blank) >= len(drawn[-1].rstrip())
    assert len(out) == len(quiet.out)  # what is printed is the same


@pytest.mark.parametrize("arguments", COMMANDS, ids=str)
def test_it_is_silent_in_a_pipe(team: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, *arguments], cwd=team, capture_output=True, check=True
    )
    assert done.stderr == b""
    assert b"\r" not in done.stdout


@pytest.mark.parametrize("arguments", COMMANDS, ids=str)
def test_machine_output_comes_alone(team: Path, arguments: tuple[str, ...]) -> None:
    assert on_a_terminal(team, *arguments, "--json")[0] == ""


def test_a_terminal_that_cannot_rewrite_a_line_is_spared(team: Path) -> None:
    assert on_a_terminal(team, "verify", term="dumb")[0] == ""


def test_short_work_says_nothing(team: Path) -> None:
    patient = AT_ONCE.replace("DELAY = 0", "DELAY = 600")
    assert on_a_terminal(team, "verify", program=patient)[0] == ""


def test_a_narrow_terminal_gets_no_second_line(team: Path) -> None:
    err, _ = on_a_terminal(team, "sync", columns=9)
    assert max(map(len, err.split("\r"))) == 8


def drawn_by(monkeypatch: pytest.MonkeyPatch, columns: int, *tells: tuple[str, int, int]) -> str:
    """What a terminal is sent for some tells, each of which is due."""
    master, slave = sized(columns)
    monkeypatch.setattr("tripod.output._EVERY", 0)
    monkeypatch.setattr("tripod.output.DELAY", 0)
    with os.fdopen(slave, "w") as out:
        monkeypatch.setattr(sys, "stderr", out)
        with progress_shown():
            for tell in tells:
                told.tell_progress(*tell)
        told.tell_progress("to nobody")
    return drained(master).decode()


def test_a_shorter_text_covers_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    tells = (("folding", 1_234_000, 0), ("folding", 500, 2000), ("so", 0, 0))
    assert drawn_by(monkeypatch, 40, *tells) == (
        "\rfolding 1,234,000\rfolding 25 %     \rso          \r  \r"
    )


def test_the_line_is_cleared_where_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = sized(40)

    monkeypatch.setattr("tripod.output.DELAY", 0)

    def stopped() -> None:
        with progress_shown():
            told.tell_progress("folding")
            raise KeyboardInterrupt

    with os.fdopen(slave, "w") as out:
        monkeypatch.setattr(sys, "stderr", out)
        with pytest.raises(KeyboardInterrupt):
            stopped()
    assert drained(master).decode() == "\rfolding\r       \r"


def test_a_terminal_that_went_away_stops_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = sized(40)
    out = os.fdopen(slave, "w")
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr("tripod.output.DELAY", 0)
    with progress_shown():
        os.close(master)
        told.tell_progress("folding")
    with pytest.raises(OSError, match="Input/output"):
        out.close()


def test_nobody_listens_unless_asked() -> None:
    items = [1, 2]
    assert told.tell_over(items, "counting") is items


def test_each_thousand_is_told_and_nothing_is_changed() -> None:
    heard: list[tuple[str, int, int]] = []
    with told.progress_to(lambda *tell: heard.append(tell)):
        assert list(told.tell_over(range(2500), "counting", 2500)) == list(range(2500))
    assert heard == [("counting", n, 2500) for n in (0, 1000, 2000)]


def test_a_child_process_is_silent() -> None:
    from tripod.verify.child import start_child

    heard: list[str] = []

    def work() -> int:
        told.tell_progress("working")
        return len(heard)

    with told.progress_to(lambda what, _done, _of: heard.append(what)):
        assert start_child(work)() == 0
        told.tell_progress("waiting")
    assert heard == ["waiting"]
