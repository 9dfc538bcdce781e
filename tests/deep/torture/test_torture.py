"""The torture finds what is wrong: a program that is careless, and one that says what is not so."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from torture import children, clock, corruption, crowd, faults, power, teams, vanishing
from torture.__main__ import Cases
from torture.children import Child, adopt_orphans, import_all, main_of, reap_orphans
from torture.clock import CLOCK, clocks
from torture.corruption import flips
from torture.faults import deaths, refusals
from torture.power import cuts
from torture.scenes import SCENES
from torture.tracing import Fault, trace, trace_child, tracer_problem
from torture.vanishing import vanishings
from tripod.bus import reader as consumer
from tripod.ledger import chain

pytestmark = pytest.mark.skipif(
    bool(tracer_problem()) and not os.environ.get("TRIPOD_NEEDS_STRACE"),
    reason=f"not tortured: {tracer_problem()}",
)
SCENE = next(scene for scene in SCENES if scene.name == "publish")
SEED = 4


@pytest.fixture(autouse=True, scope="module")
def imported() -> None:
    """No fork imports anything."""
    import_all()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are kept in a folder of the test."""
    monkeypatch.setenv("TRIPOD_HOME", "")
    monkeypatch.setitem(teams.ENVIRONMENT, "TRIPOD_HOME", "")
    teams.use_home_of(tmp_path / "team")
    # The servers of other tests are children of this process, and stay.
    monkeypatch.setattr(children, "SPARED", children.running_children())


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


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("family", "scene", "count"),
    [
        (deaths, "log", 1), (refusals, "publish", 2), (cuts, "key", 3), (flips, "publish", 4),
        (vanishings, "publish", 2), (clocks, "clock", 1),
    ],
)  # fmt: skip
def test_a_sound_team_survives_a_sample(
    tmp_path: Path, family: Cases, scene: str, count: int
) -> None:
    team = next(one for one in (*SCENES, CLOCK) if one.name == scene)
    cases = family(team, tmp_path / "work", SEED)
    wrong = {case.what: case.run() for case in islice(cases, count)}
    assert not any(result.wrong for result in wrong.values()), wrong


def make_folders() -> None:
    """Make three folders."""
    for name in "abc":
        os.mkdir(name)


def test_a_fork_dies_at_its_call_and_no_earlier(tmp_path: Path) -> None:
    fault = Fault("mkdir", 2, "signal=KILL")
    child = Child(["tripod"], tmp_path, {}, make_folders, stopped=True)
    assert trace_child(child, faults=[fault], note=False).code == -9
    assert os.listdir(tmp_path) == ["a"]
    child = Child(["tripod"], tmp_path / "a", {}, make_folders, stopped=True)
    done = trace_child(child)
    assert (done.code, done.out) == (0, b"")
    assert [call.name for call in done.calls].count("mkdir") == 3


def test_a_folder_goes_in_the_middle_of_an_act(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    child = Child(["tripod"], tmp_path / "team", {}, make_folders, stopped=True)
    away = tmp_path / "away"
    ended = vanishing.stopped_at(child, ("mkdir", 2), tmp_path / "team", away, stays=True)
    assert ended.code == 0
    assert sorted(os.listdir(away)) == ["a", "b", "c"]
    child = Child(["tripod"], away, {}, make_folders, stopped=True)
    ended = vanishing.stopped_at(child, ("mkdir", 1), away, away, stays=False)
    assert vanishing.unclear(ended).startswith("traceback: ")


def answer_early() -> None:
    """Answer, and then do it."""
    os.write(1, b"done\n")
    main_of(teams.PROGRAM)()


def answer_alone() -> int:
    """Answer, and do nothing."""
    os.write(1, b"done\n")
    return 0


@pytest.mark.parametrize(("main", "family"), [(answer_early, deaths), (answer_alone, vanishings)])
def test_what_is_answered_and_not_recorded_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: Callable[[], object], family: Cases
) -> None:
    cases = family(SCENE, tmp_path / "work", SEED)
    first = next(cases)
    stage = next(one for one in stage_of(first) if isinstance(one, faults.Stage))
    monkeypatch.setattr(stage, "main", main)
    found = (case.run() for case in (first, *islice(cases, 3)))
    assert any(result.what.startswith("lost: ") for result in found)


def stage_of(case: teams.Case) -> tuple[object, ...]:
    """What the work of a case is bound to."""
    run = case.run
    assert isinstance(run, partial)
    return (*run.args, getattr(run.func, "__self__", None))


def run_again(team: Path) -> None:
    """A program that ran twice, though nothing was lost."""
    with (team / "ran").open("a") as ran:
        ran.write("ran\n")


def test_a_program_that_ran_twice_and_one_that_is_left_are_found(tmp_path: Path) -> None:
    scene = next(one for one in SCENES if one.name == "spawn")
    team = tmp_path / "team"
    teams.make_team(scene, team)
    teams.act(scene.acts[0], team)
    assert scene.settle is not None
    assert scene.settle(team, alone=True) == ""
    run_again(team)
    assert scene.settle(team, alone=True).startswith("the program ran 2 times")

    def leave_one() -> int:
        adopt_orphans()
        began = subprocess.run(["sh", "-c", "sleep 60 & echo"], check=True, capture_output=False)
        assert began.returncode == 0
        return 0 if reap_orphans(0.05) == ["sleep 60"] and reap_orphans(0) == [] else 1

    done = Child(["tripod"], tmp_path, dict(os.environ), leave_one).end(30)
    assert done.code == 0, done.err


def test_a_child_that_was_there_before_is_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        monkeypatch.setattr(children, "SPARED", children.running_children())
        assert reap_orphans(0) == []
        assert stranger.poll() is None
        stranger.kill()


def play(
    tmp_path: Path, kinds: dict[str, int], monkeypatch: pytest.MonkeyPatch, seconds: float = 0.6
) -> teams.Result:
    monkeypatch.setattr(crowd, "KINDS", kinds)
    scene = SCENE._replace(foreign=crowd.without_checkpoints)
    teams.make_team(scene, tmp_path / "team")
    return crowd.play(tmp_path / "team", tmp_path / "round", 1, seconds)


def test_a_crowd_of_few_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"publish": 2, "consume": 2, "send": 1, "log": 1, "drop": 1, "say": 1, "note": 1}
    result = play(tmp_path, kinds, monkeypatch, 2.0)  # time for each on a busy machine
    assert not result.wrong, result
    assert [line.split()[0] for line in result.told.splitlines()] == list(kinds)


def answer_publish(_project: Path, name: str, number: int) -> str:
    """Answer, and publish nothing."""
    return f"{name}-{number}.event"


def consume_unclaimed(project: Path, _name: str, _number: int) -> str:
    """Do the work of the first event, and tell nobody."""
    time.sleep(0.05)
    return min(os.listdir(project / ".nbs/events/processed"))


def pull_nothing(_project: Path, _name: str, _number: int) -> str | None:
    """Never get a turn."""
    time.sleep(0.1)
    return None


@pytest.mark.drawn("long")
@pytest.mark.parametrize(
    ("kind", "work", "says"),
    [
        ("publish", answer_publish, "stands 0 times"),
        ("consume", consume_unclaimed, "was consumed"),
        ("send", pull_nothing, "starves: nothing in"),
    ],
)
def test_a_crowd_that_is_lied_to_or_starves_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, work: crowd.Work, says: str
) -> None:
    monkeypatch.setitem(crowd.WORKS, kind, work)
    monkeypatch.setattr(teams, "SECONDS", 30)
    scene = SCENE._replace(before=[*SCENE.before, ("bus", "ack-all")])
    monkeypatch.setattr(sys.modules[__name__], "SCENE", scene)
    result = play(tmp_path, {kind: 2}, monkeypatch)
    assert result.wrong
    assert says in result.what


def test_an_actor_that_comes_seldom_starves() -> None:
    often = [crowd.Note(n / 100, n / 100 + 0.01, "x") for n in range(100)]
    notes = {"send-0": often, "send-1": often[-2:], "send-2": often[::10], "send-3": often}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "KINDS", {"send": 4})
        assert crowd.starved(notes, 0, 1) == ["send-1 starves: 2 times, another 100 times"]
        assert crowd.starved(notes, -40, 1)[0] == "send-0 starves: nothing for 40.0 s"


def test_entries_that_are_dated_back_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = chain.link_all

    def undated(tip: chain.Tip, *rest: Any, **more: Any) -> object:
        tip.at = ""
        return real(tip, *rest, **more)

    monkeypatch.setattr("tripod.ledger.sqlite.store.link_all", undated)
    teams.make_team(SCENE, tmp_path / "team")
    host = clock.Host(tmp_path / "team")
    publish = ("bus", "publish", "ann", "note", "low")
    host.run(*publish)
    with pytest.raises(clock.Lost, match="is dated back"):
        host.run(*publish, clock=clock.Clock(-clock.HOUR))


def test_a_claim_that_another_gets_as_well_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "claim_on_event", lambda *_: None)
    teams.make_team(SCENE, tmp_path / "team")
    with pytest.raises(clock.Lost, match=r"'--as', 'bob'.* ended with 0"):
        clock.lease(tmp_path / "team", random.Random(SEED))  # noqa: S311 - by lot


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
    found = (case.run() for case in islice(power.cuts(SCENE, tmp_path / "cut", SEED), 60))
    assert any(one.wrong and one.what.startswith("lost: ") for one in found)


def test_a_verifier_that_sees_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = flips(SCENE, tmp_path / "flips", SEED)
    first = next(cases)
    clean = SimpleNamespace(exit_code=0)
    monkeypatch.setattr(corruption, "run", lambda *_, **__: clean)
    monkeypatch.setattr(corruption, "verify", lambda *_, **__: clean)
    found = (case.run() for case in (first, *islice(cases, 11)))
    assert any(result.wrong and "false clean: " in result.what for result in found)


def deny() -> int:
    """Record it, and say that nothing was."""
    with suppress(SystemExit), mock.patch("tripod.cli.leave"):
        main_of(teams.PROGRAM)()
    os.write(2, b"tripod: the disk is full; nothing was recorded\n")
    return 1


def test_a_command_that_denies_what_it_recorded_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = refusals(SCENE, tmp_path / "team", SEED)
    first = next(cases)
    stage = first.run.func.__self__  # type: ignore[attr-defined]
    monkeypatch.setattr(stage, "main", deny)
    result = stage.refuse(size=10**9)
    assert result.wrong
    assert result.what.startswith("it said that nothing was recorded")
