"""A turn that waits for its place among the programs is not ordered once nobody has to take it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from recorded_panel import QUESTION, Agent, said, speak

from tripod.agents.folder import IsolatedProgram
from tripod.nova import runner
from tripod.nova.runner import NovaLimits, advance, load_personas, nova_run, open_nova
from tripod.projections.nova.run import NovaRun
from tripod.team import adoption
from tripod.team.team import Team


def test_no_program_is_ordered_after_the_budget_was_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One program at a time, and the first expert costs all that may be spent."""
    adoption.init(str(tmp_path), project="panels", origin="panels.example/1")
    ordered: list[str] = []

    async def speaks(of: Team, job: Any, *, first: int, **_: Any) -> None:
        ordered.append(job.subject.partition("/")[2])
        run = nova_run(of.source, name)
        turn = next(one for one in run.due_turns() if job.subject.endswith(f"/{one.key}"))
        speak(of, run, turn, first, Agent(said(turn.role, turn.persona), cost="0.6000"))

    monkeypatch.setattr("tripod.agents.jobs.run", speaks)
    limits = NovaLimits(cost="1.00", concurrency=1)
    with Team(str(tmp_path / ".nbs")) as team:
        name = open_nova(team, QUESTION, load_personas(), limits, "alex")
        order = runner.order_persona(team, IsolatedProgram(command=("true",)), "alex")
        run: NovaRun = asyncio.run(advance(team, name, lambda _: order))
    assert run.state == "awaiting_human"
    assert ordered == ["0-unpack-dce", "1-expert-security"]
