"""Several processes, each with several runs in one ledger, and each run with two of them at it."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from children import let_go
from story import folder
from worked import PANEL

from tripod.nova import runner
from tripod.projections.engine import file_differences
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

CHILD = """
import asyncio, sys
from tripod.agents import isolation
from tripod.agents.folder import IsolatedProgram
from tripod.nova import runner
from tripod.team.team import Team

isolation.BWRAP = "no-such-bwrap"
root, panel, *names = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
async def all_of_them(team):
    order = runner.order_persona(
        team, IsolatedProgram(command=(sys.executable, "-I", "-S", panel)), "ann"
    )
    await asyncio.gather(*(runner.advance(team, name, lambda _: order) for name in names))
with Team(root) as team:
    team.refresh()
    asyncio.run(all_of_them(team))
"""
RUNS, PROCESSES, TURNS = 12, 4, 2


@pytest.mark.slow
def test_runs_of_several_processes_do_not_mix() -> None:
    with folder() as project:
        adoption.init(str(project))
        root = str(project / ".nbs")
        limits = runner.NovaLimits(turns=TURNS)
        with Team(root) as team:
            people = runner.load_personas()
            names = [
                runner.open_nova(team, f"Why {number}?", people, limits, "ann")
                for number in range(RUNS)
            ]
        each = RUNS // PROCESSES * 2
        shares = [[*names, *names][at : at + each] for at in range(0, 2 * RUNS, each)]
        children = [
            subprocess.Popen(
                [sys.executable, "-c", CHILD, root, str(PANEL), *share],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"TMPDIR": str(project)},
            )
            for share in shares
        ]
        let_go(children)
        for child in children:
            assert child.communicate(timeout=300)[1] == ""
            assert child.returncode == 0
        with Team(root) as team:
            team.refresh()
            for name in names:
                run = runner.nova_run(team.source, name)
                assert run.state == "awaiting_human"
                assert [turn.number for turn in run.turns] == list(range(1, TURNS + 1))
            rows = team.store.db.execute("SELECT subject, state FROM agents").fetchall()
            assert Counter(state for _, state in rows) == {"ended": RUNS * TURNS}
            assert len({subject for subject, _ in rows}) == RUNS * TURNS
            assert list(file_differences(team.source, team.disk, evidence=True)) == []
            assert sorted(path.name for path in Path(root, "nova").iterdir()) == sorted(names)
        with collect(root) as evidence:
            report = judge(evidence)
        found = [f.message for o in report.outcomes for f in o.findings if f.severity == "failure"]
        assert found == []
