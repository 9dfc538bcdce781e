"""``tripod log`` on a terminal, in a pipe, and as somebody who may only read."""

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest
from doors.cli.screen import drained
from doors.inside import TRIPOD, begin, run

from tripod.chat import writer as chat_send
from tripod.team.team import Team

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\rb"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = begin(tmp_path_factory.mktemp("team"))
    sent = run(folder, "chat", "send", "live", "eve", "--file", "-", given=HOSTILE.encode())
    assert sent.code == 0
    return folder


def on_a_terminal(folder: Path, *arguments: str, **environment: str) -> bytes:
    master, slave = pty.openpty()
    names = {"TERM": "xterm", "TRIPOD_PAGER": "", **environment}
    with subprocess.Popen(
        [TRIPOD, *arguments],
        cwd=folder,
        env={**os.environ, **names},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as child:
        os.close(slave)
        shown = drained(master).replace(b"\r\n", b"\n")
    assert child.returncode == 0, shown
    return shown


def plain(folder: Path, *arguments: str) -> bytes:
    done = run(folder, *arguments)
    assert done.code == 0, done.err
    return done.out


def test_colours_are_for_a_terminal_alone_and_can_be_switched_off(team: Path) -> None:
    quiet = plain(team, "log")
    assert b"\x1b" not in quiet
    assert on_a_terminal(team, "log", NO_COLOR="1") == quiet
    painted = on_a_terminal(team, "log")
    assert b"\x1b[33m" in painted
    for code in (b"33", b"36", b"2", b"0"):
        painted = painted.replace(b"\x1b[%sm" % code, b"")
    assert painted == quiet


def test_no_byte_of_a_stranger_commands_the_terminal(team: Path) -> None:
    shown = on_a_terminal(team, "log", "--actor", "eve", "--kind", "chat.sent", NO_COLOR="1")
    assert shown.endswith(rb"live: a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\x0db" + b"\n")
    assert b"\\u001b]0;owned" in plain(team, "log", "--json", "-n", "3")


def test_the_pager_is_the_one_that_was_chosen(team: Path) -> None:
    assert on_a_terminal(team, "log", NO_COLOR="1", TRIPOD_PAGER="sed s/.*//") == b"\n" * len(
        plain(team, "log").splitlines()
    )
    shown = on_a_terminal(team, "log", NO_COLOR="1", TRIPOD_PAGER="printenv LESS")
    assert shown == b"FRSX\n"  # it read nothing: that is no error
    for pager in ("cat", "", "no-such-pager", "'"):
        assert on_a_terminal(team, "log", NO_COLOR="1", TRIPOD_PAGER=pager) == plain(team, "log")
    shown = on_a_terminal(team, "log", NO_COLOR="1", TRIPOD_PAGER="true", TERM="dumb")
    assert shown == plain(team, "log")
    assert b'"seq"' in on_a_terminal(team, "log", "--json", TRIPOD_PAGER="true")


def test_who_leaves_the_pager_has_seen_enough(tmp_path: Path) -> None:
    begin(tmp_path)
    with Team(f"{tmp_path}/.nbs") as team, team.act():
        for _ in range(100):  # more than a pipe holds
            chat_send.send(team, "live", "ann", "words " * 200)
    pager = "sh -c 'read line; echo read one'"
    assert on_a_terminal(tmp_path, "log", NO_COLOR="1", TRIPOD_PAGER=pager) == b"read one\n"


def test_it_follows_what_comes_until_it_is_stopped(team: Path) -> None:
    with subprocess.Popen(
        [TRIPOD, "log", "--follow", "--timeout", "60", "-n", "2", "--kind", "chat.sent"],
        cwd=team,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        first = [child.stdout.readline().split(maxsplit=4)[-1] for _ in range(2)]
        assert first[0] == b"live: let us use files\n"
        plain(team, "chat", "send", "live", "ann", "one")
        plain(team, "chat", "send", "live", "bob", "two")
        assert [child.stdout.readline().split()[-1] for _ in range(2)] == [b"one", b"two"]
        # The ledger is replaced under our reading.
        database = team / ".nbs/ledger.db"
        plain(team, "backup", "copy.db")
        for end in ("-wal", "-shm"):  # of the ledger that stood there
            Path(f"{database}{end}").unlink(missing_ok=True)
        (team / "copy.db").replace(database)
        plain(team, "chat", "send", "live", "ann", "three")
        assert child.stdout.readline().split()[-1] == b"three"
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == b""
    assert child.returncode == 0


def test_a_reader_that_has_seen_enough_ends_it(team: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{TRIPOD} log --reverse | head -1"],
        cwd=team,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "ledger.opened" in done.stdout.splitlines()[0]


def _state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "ledger.db-shm"  # SQLite's own, shared by readers
    }


@pytest.mark.parametrize("arguments", [("log",), ("log", "--decision", "ID"), ("log", "--json")])
def test_nothing_is_changed_and_nothing_is_taken_in(
    team: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Not even what lies in the files and not in the ledger, nor a file that is gone."""
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(team), str(folder)], check=True)
    (folder / ".nbs/scribe/log.md").unlink()
    (folder / ".nbs/events/1-eve-x-1.event").write_text("STATUS: x\n")
    # A writer that ended left the log of the database folded in; a reader needs its own files.
    plain(folder, "log")
    before = _state(folder)
    which = plain(folder, "log", "--kind", "decision.logged").split()[4].decode()
    plain(folder, *(which if word == "ID" else word for word in arguments))
    assert _state(folder) == before
