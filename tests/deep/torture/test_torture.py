"""The torture finds what is wrong: a program that is careless, and one that says what is not so."""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from torture import corruption, faults, power, teams
from torture.corruption import flips
from torture.tracing import Fault, trace, tracer_problem

pytestmark = pytest.mark.skipif(
    bool(tracer_problem()) and not os.environ.get("TRIPOD_NEEDS_STRACE"),
    reason=f"not tortured: {tracer_problem()}",
)
SCENE = teams.SCENES[0]
SEED = 4


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are kept in a folder of the test."""
    monkeypatch.setenv("TRIPOD_HOME", "")
    monkeypatch.setattr(teams, "ENVIRONMENT", dict(teams.ENVIRONMENT))
    teams.use_home_of(tmp_path / "team")


def test_calls_are_told_as_they_were_made(tmp_path: Path) -> None:
    program = (
        "import os; fd = os.open('ä b', os.O_WRONLY | os.O_CREAT); os.write(fd, b'\\0\\xff\"');"
        "os.fsync(fd); os.rename('ä b', 'new'); print('done')"
    )
    done = trace([sys.executable, "-I", "-S", "-c", program], tmp_path)
    here = os.path.realpath(tmp_path)
    told = [call for call in done.calls if here in "".join((*call.files, call.opened))]
    assert (done.code, done.out) == (0, b"done\n")
    written = next(call for call in told if call.name == "write")
    assert (written.files, written.texts, written.result) == ((f"{here}/ä b",), (b'\0\xff"',), 3)
    names = [call.name for call in done.calls]
    order = [names.index(name) for name in ("fsync", "rename")]
    assert order == sorted(order)


def test_a_fault_comes_at_its_call_and_no_earlier(tmp_path: Path) -> None:
    program = "import os; [os.mkdir(name) for name in 'abc']"
    command = [sys.executable, "-I", "-S", "-c", program]
    done = trace(command, tmp_path, faults=[Fault("mkdir", 2, "signal=KILL")], note=False)
    assert done.code == -9
    assert sorted(os.listdir(tmp_path)) == ["a"]
    done = trace(command, tmp_path / "a", faults=[Fault("mkdir", 3, "error=ENOSPC")], note=False)
    assert b"No space left" in done.err
    assert sorted(os.listdir(tmp_path / "a")) == ["a", "b"]


def test_a_sound_team_survives_a_sample_of_each_family(tmp_path: Path) -> None:
    for family in (faults.deaths, faults.refusals, power.cuts, flips):
        cases = family(SCENE, tmp_path / family.__name__, SEED)
        wrong = {case.what: case.run() for case in islice(cases, 4)}
        assert not any(result.wrong for result in wrong.values()), wrong


CARELESS = """
import os, sqlite3, sys
real = sqlite3.connect
class Connection(sqlite3.Connection):
    def execute(self, sql, *more):
        return super().execute(sql.replace("synchronous=FULL", "synchronous=OFF"), *more)
sqlite3.connect = lambda *a, **k: real(*a, factory=Connection, **k)
os.fsync = os.fdatasync = lambda fd: None
from tripod.cli import main
main()
"""
EARLY = """
from tripod.cli import main
print("done", flush=True)
main()
"""


@pytest.mark.parametrize("program", [CARELESS, EARLY])
def test_what_is_answered_and_not_kept_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    script = tmp_path / "tripod"
    script.write_text(f"#!{sys.executable}\n{program}")
    script.chmod(0o755)
    monkeypatch.setattr(power, "PROGRAM", str(script))
    wrong = [case.run() for case in islice(power.cuts(SCENE, tmp_path / "cut", SEED), 60)]
    assert any(one.wrong and one.what.startswith("lost: ") for one in wrong), wrong


def test_a_verifier_that_sees_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = flips(SCENE, tmp_path / "flips", SEED)
    first = next(cases)
    clean = SimpleNamespace(exit_code=0)
    monkeypatch.setattr(corruption, "run", lambda *_, **__: clean)
    monkeypatch.setattr(corruption, "verify", lambda *_, **__: clean)
    results = [case.run() for case in (first, *islice(cases, 11))]
    assert any(result.wrong and "false clean: " in result.what for result in results), results


DENIES = """
import sys
from tripod import cli
cli.leave = lambda *_: None
cli.main()
print("tripod: the disk is full; nothing was recorded", file=sys.stderr)
sys.exit(1)
"""


def test_a_command_that_denies_what_it_recorded_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = faults.refusals(SCENE, tmp_path / "team", SEED)
    first = next(cases)
    script = tmp_path / "tripod"
    script.write_text(f"#!{sys.executable}\n{DENIES}")
    script.chmod(0o755)
    stage = first.run.func.__self__  # type: ignore[attr-defined]
    monkeypatch.setattr(stage, "command", [str(script), *stage.command[1:]])
    result = stage.refuse(size=10**9)
    assert result.wrong
    assert result.what.startswith("it said that nothing was recorded")
