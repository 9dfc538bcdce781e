"""A coordinator killed at each point of the worked example: the next command ends with its files.

The points, by the number of times that the run came there: each transaction (behind its commit,
before its files are written), and what lies between an intent and its effect: the order of a
program before it is launched, while it is handed over, behind the launch, before and behind the
record of its end, behind each settling of turns. ``POINTS`` is the table; the ids of the cases show
it, and each run of the tests draws a fifth of them.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from children import let_go, run_forked
from reviewed import folder_alone
from story import folder
from worked import GOLDEN, NAME, PANEL, QUESTION, without_numbers

from tripod.agents.folder import IsolatedProgram
from tripod.nova import runner
from tripod.projections.engine import file_differences
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

HERE = Path(__file__).resolve().parents[2]
TURNS = 8
CHILD = """
import asyncio, json, os, signal, sys
sys.path[:0] = sys.argv[4:6]
from types import SimpleNamespace
from dying import die
from tripod.agents import isolation, jobs, spool
from tripod.agents.folder import IsolatedProgram
from tripod.nova import runner
from tripod.team.files import Files
from tripod.team.team import Team

root, point, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
isolation.BWRAP = "no-such-bwrap"

def dies(owner, name, is_behind=False):
    real, count = getattr(owner, name), [0]
    def patched(*arguments, **options):
        count[0] += 1
        if count[0] == times and not is_behind:
            die()
        found = real(*arguments, **options)
        if count[0] == times:
            die()
        return found
    setattr(owner, name, patched)

if point == "transaction":
    dies(Files, "project")
elif point == "ordered":
    dies(spool.Spool, "launch")
elif point == "handed over":
    shown = SimpleNamespace(dumps=json.dumps, loads=json.loads)
    dies(shown, "dumps")
    spool.json = shown
elif point == "launched":
    dies(spool.Spool, "launch", True)
elif point == "ended":
    dies(jobs, "_ended_draft")
elif point == "end recorded":
    dies(spool.Spool, "remove")
elif point == "settled":
    dies(runner, "settle_nova", True)
elif point == "over":
    real_name = runner._name_checkpoint
    def named(*arguments):
        real_name(*arguments)
        Files.project = die
    runner._name_checkpoint = named
elif point == "swept":
    dies(runner, "sweep_run_folders")

if point == "waits":
    print("ready", flush=True)
    sys.stdin.readline()
with Team(root) as team:
    team.refresh()
    order = runner.order_persona(team, IsolatedProgram(command=sys.argv[7:]), "ann")
    asyncio.run(runner.advance(team, sys.argv[6], lambda _: order))
"""
TRANSACTIONS = 28  # at least: ends of experts that fall together are one
POINTS = [
    *(("transaction", times) for times in range(1, TRANSACTIONS + 1)),
    *(
        (point, times)
        for point in ("ordered", "handed over", "launched", "ended", "end recorded")
        for times in range(1, TURNS + 1)
    ),
    *(("settled", times) for times in range(1, 8)),
    ("over", 1),
    ("swept", 2),
]


def begin(project: Path) -> tuple[str, ...]:
    """A team whose run has begun, and the panel's command, which notes that it ran."""
    adoption.init(str(project))
    (project / "_work_efforts/WE-1").mkdir(parents=True)
    limits = runner.NovaLimits(work_effort="WE-1")
    with Team(str(project / ".nbs")) as team:
        name = runner.open_nova(team, QUESTION, runner.load_personas(), limits, "ann")
    assert name == NAME
    line = f"echo ran >> {project}/ran; exec {sys.executable} -I -S {PANEL}"
    return ("sh", "-c", line)


def give(
    project: Path, point: str, times: int, command: tuple[str, ...], seconds: float = 60
) -> int:
    """Go on with the run in a child that is killed at that point, or after so many seconds."""
    words = (str(project / ".nbs"), point, str(times), str(HERE), str(HERE.parent), NAME, *command)
    child = run_forked(CHILD, *words, env={"TMPDIR": str(project)}, seconds=seconds)
    assert child.returncode in (0, -signal.SIGKILL, -signal.SIGALRM), child.stderr
    return child.returncode


def resume(project: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(project))
    with folder_alone(), Team(str(project / ".nbs")) as team:
        team.refresh()
        order = runner.order_persona(team, IsolatedProgram(command=command), "ann")
        asyncio.run(runner.advance(team, NAME, lambda _: order))


def check_done(project: Path, *, lost: int = 1) -> None:
    """The files are the golden ones; each turn was taken once, and no run of a program is open."""
    for name, golden in GOLDEN.items():
        shown = (project / ".nbs/nova" / NAME / name).read_text()
        assert without_numbers(shown) == golden
    section = (project / "_work_efforts/WE-1/decisions.md").read_text().splitlines(keepends=True)
    assert without_numbers("".join(section[1:-1])) == GOLDEN["decisions.md"]
    with Team(str(project / ".nbs")) as team:
        team.refresh()
        rows = team.store.db.execute("SELECT subject, state, spawn FROM agents").fetchall()
        states = Counter(state for _, state, _ in rows)
        assert states["ended"] == TURNS
        assert len({subject for subject, state, _ in rows if state == "ended"}) == TURNS
        assert states["abandoned"] == len(rows) - TURNS <= lost
        run = runner.nova_run(team.source, NAME)
        assert [turn.number for turn in run.turns] == list(range(1, TURNS + 1))
        assert {turn.spawn for turn in run.turns} == {s for _, state, s in rows if state == "ended"}
        assert list(file_differences(team.source, team.disk, evidence=True)) == []
        kinds = Counter(entry.kind for entry in team.store.read())
        assert kinds["nova.finalized"] == kinds["checkpoint.named"] == 1
        spool = Path(team.root) / "spool"
    assert not spool.exists() or list(spool.iterdir()) == []
    assert [path for path in project.glob("tripod-*/*") if path.name != "lock"] == []
    assert TURNS <= (project / "ran").read_text().count("ran\n") <= TURNS + lost
    with collect(str(project / ".nbs")) as evidence:
        report = judge(evidence)
    assert [
        f.message for one in report.outcomes for f in one.findings if f.severity == "failure"
    ] == []


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize(("point", "times"), POINTS, ids=str)
def test_killed_at_any_point_the_run_ends_with_the_same_files(
    point: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder() as project:
        command = begin(project)
        assert give(project, point, times, command) == -signal.SIGKILL
        resume(project, command, monkeypatch)
        check_done(project)


@pytest.mark.slow
def test_the_points_are_told_and_there_are_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Behind the last of each sort the run is through."""
    last = dict(POINTS)
    with folder() as project:
        command = begin(project)
        assert give(project, "launched", last["launched"] + 1, command) == 0
        check_done(project, lost=0)
    with capsys.disabled():
        told = ", ".join(f"{point} {times}" for point, times in last.items())
        sys.stdout.write(f"\nNova is killed at {len(POINTS)} points: {told}\n")


@pytest.mark.slow
def test_killed_at_any_moment_the_run_ends_with_the_same_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five kills of one run, each command going on a little longer than the one before."""
    with folder() as project:
        command = begin(project)
        ends = [give(project, "never", 0, command, 0.1 + moment * 0.07) for moment in range(5)]
        resume(project, command, monkeypatch)
        check_done(project, lost=5)
    assert -signal.SIGALRM in ends


# Several at one run ----------------------------------------------------------------------------


def start(project: Path, command: tuple[str, ...]) -> "subprocess.Popen[str]":
    """A command at the run that begins when it is told to."""
    words = (str(project / ".nbs"), "waits", "0", str(HERE), str(HERE.parent), NAME, *command)
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(project)},
    )


def wait_for(project: Path, runs: int) -> None:
    """Until the program ran so often."""
    until = time.monotonic() + 60
    path = project / "ran"
    while not path.exists() or path.read_text().count("\n") < runs:
        assert time.monotonic() < until
        time.sleep(0.01)


def slow(project: Path, runs: int) -> tuple[str, ...]:
    """The panel's command, whose first runs take a minute."""
    line = (
        f"echo ran >> {project}/ran; [ $(wc -l < {project}/ran) -gt {runs} ] || exec sleep 60;"
        f" exec {sys.executable} -I -S {PANEL}"
    )
    return ("sh", "-c", line)


@pytest.mark.slow
def test_several_commands_at_one_run_have_each_turn_taken_once() -> None:
    with folder() as project:
        command = begin(project)
        children = [start(project, command) for _ in range(3)]
        let_go(children)
        for child in children:
            assert child.communicate(timeout=120)[1] == ""
        assert [child.returncode for child in children] == [0, 0, 0]
        check_done(project, lost=0)


@pytest.mark.slow
def test_interrupting_costs_no_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, three times at the first turn: one more than a turn has tries."""
    with folder() as project:
        begin(project)
        command = slow(project, 3)
        for times in range(1, 4):
            child = start(project, command)
            let_go([child])
            wait_for(project, times)
            child.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in child.communicate(timeout=60)[1]
        resume(project, command, monkeypatch)
        with Team(str(project / ".nbs")) as team:
            run = runner.nova_run(team.source, NAME)
            rows = team.store.db.execute(
                "SELECT attempt, state FROM agents ORDER BY seq"
            ).fetchall()
        assert run.finalized is not None
        assert run.finalized["outcome"] == "decided"
        assert rows[:4] == [(number, "ended") for number in range(1, 5)]
        shown = (project / ".nbs/nova" / NAME / "transcript.md").read_text()
        assert shown == GOLDEN["transcript.md"]


@pytest.mark.slow
@pytest.mark.parametrize("who", ["lives", "is dead"])
def test_cancelling_ends_what_runs(who: str) -> None:
    """Whether or not its coordinator lives, each end is recorded, and no program begins."""
    with folder() as project:
        begin(project)
        child = start(project, slow(project, 99))
        let_go([child])
        wait_for(project, 1)
        if who == "is dead":
            child.kill()
            child.wait()
        began = time.monotonic()
        with Team(str(project / ".nbs")) as team:
            runner.cancel_nova(team, NAME, "enough", "ann")
            assert child.communicate(timeout=60)[1] == ""
            assert time.monotonic() - began < 30
            team.refresh()
            run = runner.nova_run(team.source, NAME)
            assert (run.state, len(run.turns)) == ("cancelled", 0)
            rows = team.store.db.execute("SELECT state FROM agents").fetchall()
            assert rows == [("ended",)]
        assert (project / "ran").read_text() == "ran\n"
        spool = project / ".nbs/spool"
        assert not spool.exists() or list(spool.iterdir()) == []
