"""The demo's panel: a Nova run that is killed and goes on, and an expert that is handed a leak.

The leak works behind the tool's back: the coordinator is changed so that an expert's prompt holds
what another expert said in the same cycle.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from unittest.mock import patch

from tripod import nova
from tripod.agents.folder import IsolatedProgram
from tripod.nova import runner
from tripod.nova.prompt import NovaPrompt, prompt_for_turn
from tripod.projections.nova.files import nova_changes
from tripod.projections.nova.run import DueTurn, NovaRun
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.run import verify

Tell = Callable[[str, str], None]
QUESTION = "OAuth2 or custom JWT?"
CHECK = "nova-independence"
_KILLED_AT = 5  # turns

# A coordinator that dies when the synthesis is recorded, before the gate is acted on.
_DYING = f"""
import asyncio, os, sys
from tripod import nova
from tripod.agents.folder import IsolatedProgram
from tripod.team.team import Team
def tell(run):
    if len(run.turns) >= {_KILLED_AT}:
        os.kill(os.getpid(), 9)
with Team(sys.argv[1]) as team:
    name = nova.open_nova(
        team, {QUESTION!r}, nova.load_personas(), nova.NovaLimits(), "alex"
    )
    order = nova.order_persona(team, IsolatedProgram(command=sys.argv[2:]), "alex")
    asyncio.run(nova.carry_on(team, name, order, tell))
"""


def play_panel(folder: str, program: str, tell: Tell) -> int:
    """Tell it in ``folder``; ``program`` is the scripted panel. Gives what went otherwise."""
    tell("step", "Nova: a question becomes a decision, and each step of it is an entry")
    project = f"{folder}/panel"
    os.makedirs(project)
    adoption.init(project, project="panel", new=True)
    command = (sys.executable, program)
    dead = subprocess.run(
        [sys.executable, "-c", _DYING, project, *command], check=False, capture_output=True
    )
    tell("do", f"tripod nova process {QUESTION!r}: killed after turn {_KILLED_AT} (kill -9)")
    with Team(project) as team:
        team.refresh()
        name = str(nova.list_nova(team)[0]["run"])
        order = nova.order_persona(team, IsolatedProgram(command=command), "alex")
        run = asyncio.run(nova.carry_on(team, name, order))
    wrong = int(dead.returncode != -signal.SIGKILL)
    tell("do", f"tripod nova resume {name}")
    wrong += _decided(run, tell)
    report = verify(project)
    failed = [outcome.check for outcome in report.outcomes if outcome.failures]
    tell("bad" if failed else "good", f"  verify: {', '.join(failed) or 'no rule is broken'}")
    return wrong + bool(failed) + _leaked(f"{folder}/leak", command, tell)


def _decided(run: NovaRun, tell: Tell) -> int:
    """Say what the run came to."""
    gates = [f"cycle {one.number}: {one.verdict}" for one in run.cycles]
    synthesis = run.syntheses[0].epistemic
    uncertainty = "" if synthesis is None else f"{synthesis.uncertainty}"
    tell("plain", f"  gate at 0.35, uncertainty {uncertainty}: {', '.join(gates)}")
    revised = any(turn.role == "revision" for turn in run.turns)
    decision = "" if run.finalized is None else str(run.turns[-1].fields.get("decision", ""))
    changes = nova_changes(run) or {}
    good = run.state == "done" and len(run.turns) == 8 and revised and bool(decision)
    tell(
        "good" if good else "bad",
        f"  {len(run.turns)} turns, revised after the critique: {decision} "
        f"(know {changes.get('know')}, uncertainty {changes.get('uncertainty')})",
    )
    return not good


def _leaked(project: str, command: tuple[str, ...], tell: Tell) -> int:
    """An expert that is handed what another one said."""
    os.makedirs(project)
    adoption.init(project, project="leak", new=True)

    with Team(project) as team:

        def leaking(run: NovaRun, due: DueTurn, persona: str, problem: str = "") -> NovaPrompt:
            prompt = prompt_for_turn(run, due, persona, problem)
            now = runner.nova_run(team.source, name)
            said = "".join(turn.text for turn in now.turns if turn.role == "expert")
            return prompt._replace(data=prompt.data + said.encode())

        limits = nova.NovaLimits(concurrency=1)
        name = nova.open_nova(team, QUESTION, nova.load_personas(), limits, "alex")
        order = nova.order_persona(team, IsolatedProgram(command=command), "alex")
        with patch.object(runner, "prompt_for_turn", leaking):
            asyncio.run(nova.carry_on(team, name, order))
    report = verify(project)
    tell("do", "a coordinator that hands each expert what the others said")
    found = [one for outcome in report.outcomes for one in outcome.findings if one.check == CHECK]
    for finding in found[:1]:
        tell("bad", f"    caught; {CHECK}: {finding.where}: {finding.message}")
    if not found:
        tell("bad", f"    NOT caught by {CHECK}")
    return not found
