"""Ten consumers at one checkpoint event, one of them killed: it is answered exactly once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from children import let_go
from doors.inside import TRIPOD
from reviewed import EXAMPLE, SCRIPTED, begin, check_once, kinds
from story import folder

from tripod.team.team import Team

HERE = Path(__file__).resolve().parents[2]
MANY = 10

CHILD = """
import asyncio, os, signal, sys
sys.path[:0] = sys.argv[2:4]
from tripod.pythia import review as pythia
from tripod.agents import isolation, spool
from tripod.agents.folder import IsolatedProgram
from tripod.team.team import Team

root, who = sys.argv[1], sys.argv[4]
isolation.BWRAP = "no-such-bwrap"
if who == "dies when she is at work":
    real = spool.Spool.launch
    def patched(*arguments):
        real(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    spool.Spool.launch = patched

program = IsolatedProgram(command=sys.argv[5:])
print("ready", flush=True)
sys.stdin.readline()
with Team(root) as team:
    team.refresh()
    found = asyncio.run(pythia.run(team, program, 2**50))
    print("none due" if found is None else found.answer.message)
"""


def start(project: Path, who: str) -> "subprocess.Popen[str]":
    program = (
        f"cat > {project}/given; echo ran >> {project}/ran; until [ -e {project}/go ];"
        f" do sleep 0.01; done; exec {sys.executable} {EXAMPLE} < {project}/given"
    )
    words = (str(project / ".nbs"), str(HERE), str(HERE.parent), who, "sh", "-c", program)
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(project)},
    )


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["dies when she is at work", "waits"])
def test_of_ten_who_race_one_has_it_answered(who: str) -> None:
    with folder() as project:
        name = begin(project)
        children = [start(project, who) for _ in range(MANY)]
        let_go(children)
        wait_for(project / "ran")
        if who == "waits":
            children[MANY // 2].send_signal(signal.SIGKILL)
        (project / "go").touch()
        said = [child.communicate(timeout=120)[0].strip() for child in children]
        codes = sorted(child.returncode for child in children)
        assert codes == [-signal.SIGKILL, *[0] * (MANY - 1)]
        # Who came when it was answered already had nothing to do.
        assert {one for one in said if one} <= {"1", "none due"}
        assert (project / "ran").read_text() == "ran\n"
        with Team(str(project / ".nbs")) as team:
            team.refresh()
            check_once(team, name)
            assert kinds(team).count("agent.requested") == 1
        assert list(project.glob("tripod-*/*")) == []


@pytest.mark.slow
def test_of_ten_manual_calls_one_asks_and_one_answers() -> None:
    with folder() as project:
        begin(project, interval=0)
        command = [TRIPOD, "pythia", "run", "--manual", "--", *SCRIPTED]
        env = os.environ | {"TMPDIR": str(project)}
        children = [
            subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, env=env)
            for _ in range(MANY)
        ]
        for child in children:
            child.communicate(timeout=120)
        assert [child.returncode for child in children] == [0] * MANY
        with Team(str(project / ".nbs")) as team:
            team.refresh()
            found = kinds(team)
            asked = [
                e.data["name"]
                for e in team.store.read()
                if e.kind == "bus.published" and e.data["type"] == "pythia-checkpoint"
            ]
            assert len(asked) == 1
            check_once(team, asked[0])
            assert found.count("agent.requested") == 1
