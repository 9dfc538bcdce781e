"""A coordinator killed at each step of ``pythia run``: the next run finishes the work, once."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest
from children import run_forked
from dying import RUN
from reviewed import EXAMPLE, NOW, SCRIPTED, begin, check_once, event_of, folder_alone, kinds
from story import folder

from tripod.agents.folder import IsolatedProgram
from tripod.pythia import review as pythia
from tripod.team.team import Team

HERE = Path(__file__).resolve().parents[2]

# The child gives the command and is killed in it: no handler of its own runs.
CHILD = """
import asyncio, sys
sys.path[:0] = sys.argv[3:5]
from dying import RUN, behind, die, die_at
from types import SimpleNamespace
from tripod.agents.folder import IsolatedProgram
from tripod.pythia import review
from tripod.agents import isolation, jobs, spool
from tripod.team.files import Files
from tripod.team.team import Team

root, step, manual = sys.argv[1], sys.argv[2], sys.argv[5] == "manual"
if sys.argv[5] != "namespace":
    isolation.BWRAP = "no-such-bwrap"
if step in RUN:
    die_at(step)
elif step == "behind the event":
    review.summon = behind(review.summon)
elif step == "before the files of the request":
    jobs.Spool.clear = die
elif step == "before the answer is judged":
    review.judge = die
elif step == "before the answer is posted":
    review.post = die
elif step == "behind the message, before the answer":
    review._assessed = die
elif step == "behind the answer, before the ack":
    review.ACKED = SimpleNamespace(draft=die)
elif step == "before the files of the answer":
    real = review._assessed
    def then_die(*fields):
        Files.project = die
        return real(*fields)
    review._assessed = then_die
elif step == "behind the answer":
    review.post = behind(review.post)
elif step == "before the second request":
    real_attempt = jobs.attempt_job
    def second(team, errand, number, told):
        return die() if number == 2 else real_attempt(team, errand, number, told)
    jobs.attempt_job = second
elif step == "behind the second launch":
    real_launch = spool.Spool.launch
    count = []
    def twice(*arguments):
        real_launch(*arguments)
        count.append(1)
        if len(count) == 2:
            die()
    spool.Spool.launch = twice
elif step == "before the failure":
    review.FAILED = SimpleNamespace(draft=die)
elif step == "behind the failure":
    review._give_up = behind(review._give_up)

program = IsolatedProgram(command=sys.argv[6:])
with Team(root) as team:
    team.refresh()
    asyncio.run(review.run(team, program, 2**50, manual=manual))
"""
STEPS = (
    *RUN,
    "before the files of the request",
    "before the answer is judged",
    "before the answer is posted",
    "behind the message, before the answer",
    "behind the answer, before the ack",
    "before the files of the answer",
    "behind the answer",
)
FAILING = (
    "before the second request",
    "behind the second launch",
    "before the failure",
    "behind the failure",
)


def review_by(project: Path, *, fail: str = "") -> tuple[str, ...]:
    """Her program: it notes that it ran, and answers; first it fails as often as it is told."""
    program = (
        f"cat > {project}/given; echo ran >> {project}/ran; {fail} "
        f"exec {sys.executable} {EXAMPLE} < {project}/given"
    )
    return ("sh", "-c", program)


def give(project: Path, step: str, command: tuple[str, ...], how: str, seconds: float = 60) -> int:
    """Give the command in a child that is killed at that step, or after so many seconds."""
    words = (str(project / ".nbs"), step, str(HERE), str(HERE.parent), how, *command)
    child = run_forked(CHILD, *words, env={"TMPDIR": str(project)}, seconds=seconds)
    assert child.returncode in (0, -signal.SIGKILL, -signal.SIGALRM), child.stderr
    return child.returncode


def die_in(project: Path, step: str, command: tuple[str, ...], how: str = "") -> None:
    """Give the command in a child that is killed at that step."""
    assert give(project, step, command, how) == -signal.SIGKILL


def again(
    project: Path,
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    *,
    manual: bool = False,
) -> None:
    """The same command once more."""
    monkeypatch.setattr("tempfile.tempdir", str(project))
    program = IsolatedProgram(command=command)
    with folder_alone(), Team(str(project / ".nbs")) as team:
        team.refresh()
        asyncio.run(pythia.run(team, program, NOW, manual=manual))


def ended(project: Path, name: str, runs: int, *, most: int) -> None:
    """Her program ran so often (and is known to have ended so), and the event is answered once."""
    with Team(str(project / ".nbs")) as team:
        team.refresh()
        check_once(team, name)
        found = kinds(team)
        assert found.count("agent.ended") == runs
        assert runs <= found.count("agent.requested") <= most
        assert found.count("pythia.isolated") == found.count("agent.requested")
    assert (project / "ran").read_text() == runs * "ran\n"
    assert [path for path in project.glob("tripod-*/*") if path.name != "lock"] == []


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_the_next_run_finishes_the_work_once(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with folder() as project:
        name = begin(project)
        command = review_by(project)
        die_in(project, step, command)
        again(project, command, monkeypatch)
        ended(project, name, 1, most=2)


@pytest.mark.slow
@pytest.mark.parametrize("manual", [True, False])
def test_a_manual_call_that_was_killed_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, manual: bool
) -> None:
    with folder() as project:
        assert begin(project, interval=0) == ""
        command = review_by(project)
        die_in(project, "behind the event", command, "manual")
        with Team(str(project / ".nbs")) as team:
            name = event_of(team)
        again(project, command, monkeypatch, manual=manual)
        ended(project, name, 1, most=1)


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize("step", FAILING)
def test_a_second_try_is_gone_on_with(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with folder() as project:
        name = begin(project)
        fails = 2 if "failure" in step else 1
        fail = f'[ "$(wc -l < {project}/ran)" -gt {fails} ] || exit 3;'
        command = review_by(project, fail=fail)
        die_in(project, step, command)
        again(project, command, monkeypatch)
        if "failure" in step:
            with Team(str(project / ".nbs")) as team:
                team.refresh()
                assert kinds(team).count("pythia.failed") == 1
                assert (project / "ran").read_text() == 2 * "ran\n" + (
                    "ran\n" if step == "behind the failure" else ""
                )
            if step == "before the failure":
                again(project, command, monkeypatch)
        ended(project, name, fails + 1, most=fails + 1)


@pytest.mark.slow
def test_two_runs_that_were_lost_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with folder() as project:
        begin(project)
        command = review_by(project)
        for _ in range(2):
            die_in(project, "behind the request", command)
        again(project, command, monkeypatch)
        with Team(str(project / ".nbs")) as team:
            team.refresh()
            found = kinds(team)
        assert (found.count("agent.requested"), found.count("pythia.failed")) == (2, 1)
        assert not (project / "ran").exists()


@pytest.mark.drawn
@pytest.mark.slow
@pytest.mark.parametrize("step", ["behind the request", "behind the launch", "behind the end"])
def test_in_the_namespace_it_is_the_same(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be made: in the empty folder once more."""
    with folder() as project:
        name = begin(project)
        die_in(project, step, SCRIPTED, "namespace")
        again(project, SCRIPTED, monkeypatch)
        with Team(str(project / ".nbs")) as team:
            team.refresh()
            check_once(team, name)
            assert kinds(team).count("agent.ended") == 1
        assert list(project.glob("tripod-*/*")) == []


@pytest.mark.slow
def test_killed_at_any_moment_it_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten kills, each a little later than the one before."""
    ends = []
    for moment in range(10):
        with folder() as project:
            name = begin(project)
            command = review_by(project)
            ends.append(give(project, "never", command, "", 0.005 + moment * 0.02))
            again(project, command, monkeypatch)
            ended(project, name, 1, most=2)
    assert ends.count(-signal.SIGALRM) > 2
