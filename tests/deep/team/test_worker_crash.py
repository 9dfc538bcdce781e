"""A coordinator killed at each step of ``worker spawn``: the next run finishes the work, once."""

import signal
from pathlib import Path

import pytest
from children import run_forked
from dying import RUN
from story import folder

from tripod.projections.engine import file_differences
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge
from tripod.workers import worker as workers_run

HERE = Path(__file__).resolve().parents[2]
NAME = "w-0001"
PROGRAM = "echo ran >> ran; until [ -e go ]; do sleep 0.01; done; echo done"

# The child gives the command and is killed in it: no handler of its own runs.
CHILD = """
import sys
sys.path[:0] = sys.argv[3:5]
from dying import RUN, die, die_at
from tripod.workers import worker
from tripod.agents import jobs
from tripod.team.files import Files
from tripod.team.team import Team

root, step, project = sys.argv[1], sys.argv[2], sys.argv[5]
if step in RUN:
    die_at(step)
elif step == "before the files":
    Files.project = die

with Team(root) as team:
    worker.spawn(team, "w", project, "Do it.", command=["sh", "-c", sys.argv[6]], name="w-0001")
    if step == "behind the answer":
        die()
    open(f"{project}/go", "w").close()
    run = jobs.newest(team.store.db, "worker", "w-0001")
    jobs.spool_of_job(team, run.spawn).wait()
    worker.look_after(team)
"""
STEPS = (*RUN, "before the files", "behind the answer")


def give(project: Path, step: str, seconds: float = 60) -> int:
    """Give the command in a child that is killed at that step, or after so many seconds."""
    words = (str(project / ".nbs"), step, str(HERE), str(HERE.parent), str(project), PROGRAM)
    child = run_forked(CHILD, *words, seconds=seconds)
    assert child.returncode in (0, -signal.SIGKILL, -signal.SIGALRM), child.stderr
    return child.returncode


def again(team: Team, project: Path) -> None:
    """The same command once more."""
    command = ["sh", "-c", PROGRAM]
    assert workers_run.spawn(team, "w", str(project), "Do it.", command=command, name=NAME) == NAME


def check_once(project: Path) -> None:
    """It ran once, and each step of its life is recorded once."""
    with Team(str(project / ".nbs")) as team:
        team.refresh()
        assert workers_run.worker_state(team, NAME) == "completed"
        assert (project / "ran").read_text() == "ran\n"
        kinds = [entry.kind for entry in team.store.read()]
        for kind in ("worker.spawned", "worker.running", "worker.ended", "agent.ended"):
            assert kinds.count(kind) == 1, kind
        events = [e.data["type"] for e in team.store.read() if e.kind == "bus.published"]
        assert events == ["worker-spawned", "task-complete"]
        assert workers_run.answer(team, NAME) == "done"
        assert list(file_differences(team.source, team.disk, evidence=True)) == []
        assert team.warnings == []
        assert list((project / ".nbs/spool").iterdir()) == []
    with collect(str(project)) as evidence:
        assert [f.message for o in judge(evidence).outcomes for f in o.findings] == []


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize("follow", ["the same command", "any command"])
@pytest.mark.parametrize("step", STEPS)
def test_the_next_run_finishes_the_work_once(step: str, follow: str) -> None:
    with folder() as project:
        adoption.init(str(project))
        assert give(project, step) == -signal.SIGKILL
        with Team(str(project / ".nbs")) as team:
            team.refresh()
            if step == "before the request":
                assert (
                    workers_run.worker_state(team, NAME) is None
                )  # nothing happened, and nothing is left
                assert not (project / "ran").exists()
            if follow == "the same command" or step == "before the request":
                again(team, project)
            else:
                workers_run.look_after(team)
            (project / "go").touch()
            list(workers_run.watch(team))
        check_once(project)


@pytest.mark.slow
def test_killed_at_any_moment_it_is_done_once() -> None:
    """Twelve kills, each a little later than the one before."""
    ends = []
    for moment in range(12):
        with folder() as project:
            adoption.init(str(project))
            (project / "go").touch()
            ends.append(give(project, "never", 0.003 + moment * 0.01))
            with Team(str(project / ".nbs")) as team:
                team.refresh()
                again(team, project)
                list(workers_run.watch(team))
            check_once(project)
    assert ends.count(-signal.SIGALRM) > 2
