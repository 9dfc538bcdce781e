"""Each form of each ``nbs-*`` command that a stored transcript holds: its code, stdout and stderr.

The rows of the other tests take a usage text from the code that prints it, and the beginning of a
message is often enough for them. Here each byte is stored, so that another parser can be tried.
``golden/nbs-commands.README.md`` says how the transcript came about.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run_as
from nbs_team import unpack
from story import Clock

GOLDEN = Path(__file__).parents[1] / "golden"
LINES = (GOLDEN / "nbs-commands.jsonl").read_text("utf-8").splitlines()
STORED: list[dict[str, Any]] = [json.loads(line) for line in LINES]
PROGRAMS = sorted({one["command"][0] for one in STORED})
BEGIN = 1795400000
"""The time of each first command, some hours behind the team's newest entry; each later one comes
a second later."""
PROCESS = (r"\b([0-9]{16}-[^\n]*?)-[0-9]+\.event", r"\1-<process>.event")
"""What depends on the process: the end of an event's name."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The team of ``team-852efc6.tar.xz``, unpacked."""
    folder = tmp_path_factory.mktemp("golden")
    unpack(GOLDEN / "team-852efc6.tar.xz", folder)
    return folder


@pytest.fixture
def team(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it for one program, with no variable of this machine."""
    copy = shutil.copytree(archive, tmp_path / "golden", copy_function=shutil.copy2)
    for name in ("TRIPOD_LEDGER", "TRIPOD_AS", "NBS_HANDLE", "TRIPOD_WORKER_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIPOD_HOME", str(copy / "home"))
    monkeypatch.setenv("TZ", "UTC")
    return Path(copy) / "team"


def plain(text: str, team: Path) -> str:
    """Put words in the place of what changes from run to run."""
    return re.sub(*PROCESS, text.replace(str(team), "<team>"))


def results(program: str, team: Path, commands: list[list[str]]) -> list[dict[str, Any]]:
    """Run a program's commands one after another, so that the acts at their end see each other."""
    clock = Clock(BEGIN)
    found = []
    with clock.running():
        for command in commands:
            found.append(told(run_as(program, team, *command[1:]), team, command))
            clock.move(1)
    return found


def told(done: Done, team: Path, command: list[str]) -> dict[str, Any]:
    """A line of the transcript."""
    out, err = plain(done.out.decode(), team), plain(done.err, team)
    return {"command": command, "exit": done.code, "out": out, "err": err}


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_command_says_what_it_said(team: Path, program: str) -> None:
    stored = [one for one in STORED if one["command"][0] == program]
    assert results(program, team, [one["command"] for one in stored]) == stored


@pytest.mark.parametrize("program", [*PROGRAMS, "nbs-workers"])
def test_each_program_is_installed_and_says_the_same(team: Path, program: str) -> None:
    """``nbs-workers`` is another name of ``nbs-worker``."""
    name = "nbs-worker" if program == "nbs-workers" else program
    stored = next(one for one in STORED if one["command"] == [name])
    path = Path(sys.executable).with_name(program)
    ended = subprocess.run([path], cwd=team, capture_output=True, timeout=60, check=False)
    done = Done(ended.returncode, ended.stdout, ended.stderr.decode())
    assert told(done, team, [name]) == stored


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_word_of_a_help_text_has_its_command(program: str) -> None:
    ours = [one for one in STORED if one["command"][0] == program]
    asked = [one for one in ours if one["command"][1:] in (["help"], ["--help"])]
    text = "".join(one["out"] + one["err"] for one in asked if one["exit"] == 0)
    used = {word.partition("=")[0] for one in ours for word in one["command"][1:]}
    verbs = re.findall(rf"^  (?:{program} )?([a-z]+(?:-[a-z]+)?)(?= |$)", text, re.MULTILINE)
    assert {*verbs, *re.findall(r"(?<![a-z-])--[a-z]+[a-z-]*", text)} <= used
