"""What a Nova run costs beside its agents: the worked example, and the fold of a long run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

from benchmarks.measure import Row, cost_row, in_turn, time_row
from tripod import nova
from tripod.agents import isolation
from tripod.agents.folder import IsolatedProgram
from tripod.projections.nova.run import NovaRun
from tripod.team import adoption
from tripod.team.team import Team

__all__ = ["rows"]

PANEL = Path(__file__).parent.parent / "examples" / "nova_panel.py"
COMMAND = (sys.executable, str(PANEL))
ROLES = (
    ("unpack", "dce"), ("expert", "security"), ("expert", "performance"), ("expert", "integration"),
    ("synthesis", "dce"), ("critique", "cae"), ("revision", "dce"), ("final", "dce"),
)  # fmt: skip
"""The turns of the worked example."""
LONG = 10_000  # turns
EXPERTS = 3


def rows(folder: str, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on the worked example, isolated by a folder alone, and on a run of many turns."""
    project = os.path.join(folder, "panels")
    os.mkdir(project)
    # Without a key nothing is sealed, and no record goes to a ref of the repository around it.
    adoption.init(project, project="bench", key=False, new=True)
    say(f"a panel of {len(ROLES)} turns")
    # The namespace is no cost of the tool: a folder is what any system has.
    with patch.object(isolation, "BWRAP", "no-such-program"), Team(project) as team:
        order = nova.order_persona(team, IsolatedProgram(command=COMMAND), "bench")

        def ours() -> float:
            name = nova.open_nova(team, "Which?", nova.load_personas(), nova.NovaLimits(), "bench")
            begin = perf_counter()
            run = asyncio.run(nova.carry_on(team, name, order))
            assert run.state == "done"
            assert len(run.turns) == len(ROLES)
            return perf_counter() - begin

        pairs = in_turn(ours, _bare, rounds)
    yield cost_row("panel", "a Nova run of 8 turns / its 8 processes bare", pairs, 3)
    over = [(pair.ours - pair.floor) / len(ROLES) for pair in pairs]
    yield time_row("panel-turn", "a turn of it, without the process", over, 150)
    entries = list(_entries())
    times = []
    for _ in range(rounds):
        begin = perf_counter()
        run = _fold(entries)
        times.append(perf_counter() - begin)
        assert len(run.turns) == LONG
    yield time_row("panel-fold", f"the fold of a run of {LONG:,} turns", times, 1000)


def _bare() -> float:
    begin = perf_counter()
    for role, persona in ROLES:
        asked = f"This is cycle 1, role {role}.\npersona: {persona}\nturn: 1\n"
        subprocess.run(COMMAND, input=asked.encode(), check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - begin


def _fold(entries: list[tuple[str, dict[str, Any]]]) -> NovaRun:
    (_, opened), *others = entries
    run = NovaRun.begun(0, opened, _content)
    for seq, (kind, body) in enumerate(others, 1):
        run.apply(seq, kind, body, _content)
    return run


def _content(content: dict[str, Any]) -> bytes:
    return str(content["text"]).encode()


def _entries() -> Iterator[tuple[str, dict[str, Any]]]:
    """A run whose syntheses stay uncertain: so many cycles that it has so many turns."""
    personas = [{"short_name": "dce", "path": "core/DCE.md"}]
    personas += [{"short_name": f"e{n}", "path": f"experts/e{n}.md"} for n in range(EXPERTS)]
    config = {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": LONG}
    yield (
        "nova.opened",
        {"run": "r", "question": {"text": "?"}, "config": config, "personas": personas},
    )

    def turn(number: int, cycle: int, role: str, persona: str) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"run": "r", "turn": number, "cycle": cycle, "role": role}
        body |= {"persona": persona, "spawn": f"s{number}", "content": {"text": "said " * 50}}
        body |= {"parsed": {"text": '{"analysis":"said"}'}, "cost": "0.0100"}
        know = "0.1" if cycle % 2 else "0.9"
        body["epistemic"] = {"know": know, "uncertainty": "0.7", "source": "stated"}
        return "nova.turn.recorded", body

    yield turn(1, 0, "unpack", "dce")
    number, cycle = 1, 0
    while number < LONG:
        cycle += 1
        for n in range(EXPERTS):
            number += 1
            yield turn(number, cycle, "expert", f"e{n}")
            if number == LONG:
                return
        number += 1
        yield turn(number, cycle, "synthesis", "dce")
        yield "nova.gate.decided", {"run": "r", "cycle": cycle, "decision": "investigate"}
