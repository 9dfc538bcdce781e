"""The demo's panel: a Nova run that is killed and goes on, and an expert that is handed a leak.

The leak works behind the tool's back: the coordinator is changed so that an expert's prompt holds
what another expert said in the same cycle.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tripod.team import adoption
from tripod.verify.run import verify

Tell = Callable[[str, str], None]
QUESTION = "OAuth2 or custom JWT?"
CHECK = "nova-independence"
KILLED_AT = 5  # turns

_TRIPOD = "import sys\nfrom tripod.cli import main\nsys.exit(main())\n"
# A coordinator that dies when the synthesis is recorded and nothing followed from it yet.
_DYING = f"""
import os
from tripod.nova import runner
real = runner.settle_nova
def settle(team, name):
    run = real(team, name)
    if len(run.turns) >= {KILLED_AT}:
        os.kill(os.getpid(), 9)
    return run
runner.settle_nova = settle
{_TRIPOD}"""
_LEAKING = f"""
from tripod.nova import runner
real = runner.prompt_for_turn
def leaking(run, due, persona, problem=""):
    prompt = real(run, due, persona, problem)
    if due.role == "expert" and SAID:
        prompt = prompt._replace(data=prompt.data + SAID[-1])
    return prompt
SAID = []
answered = runner.stand_of_turn
def stand(team, run, turn):
    found = answered(team, run, turn)
    if found.entry is not None and turn.role == "expert":
        SAID.append(found.entry[1]["content"])
    return found
runner.prompt_for_turn, runner.stand_of_turn = leaking, stand
{_TRIPOD}"""


def play_panel(folder: str, program: str, tell: Tell) -> int:
    """Tell it in ``folder``; ``program`` is the scripted panel. Gives what went otherwise."""
    tell("step", "Nova: a question becomes a decision, and each step of it is an entry")
    project = f"{folder}/panel"
    wrong = _tripod(project, _DYING, "process", QUESTION, "--", sys.executable, program)
    ended = wrong.returncode == -signal.SIGKILL
    tell("do", f"tripod nova process {QUESTION!r}: killed (kill -9) after turn {KILLED_AT}")
    (name,) = os.listdir(f"{project}/.nbs/nova")
    done = _tripod(project, _TRIPOD, "resume", name, "--", sys.executable, program)
    tell("do", f"tripod nova resume {name}")
    good = _decided(json.loads(done.stdout or "{}"), tell)
    report = verify(project)
    failed = [outcome.check for outcome in report.outcomes if outcome.failures]
    tell("bad" if failed else "good", f"  verify: {', '.join(failed) or 'no rule is broken'}")
    return (not ended) + (not good) + bool(failed) + _leaked(f"{folder}/leak", program, tell)


def _tripod(project: str, script: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command of ``tripod nova`` by a script, in a project that is begun if it is new."""
    if not os.path.isdir(project):
        os.makedirs(project)
        adoption.init(project, project="panel", new=True)
    command = (sys.executable, "-c", script, "nova", words[0], "--json", "--as", "alex", *words[1:])
    return subprocess.run(command, cwd=project, check=False, capture_output=True)


def _decided(status: dict[str, Any], tell: Tell) -> bool:
    """Say what the run came to; whether that is what its answers lead to."""
    cycles = status.get("cycles") or [{}]
    gate, changes = cycles[0], status.get("changes") or {}
    tell(
        "plain",
        f"  gate at 0.35, uncertainty {gate.get('uncertainty')}: {gate.get('gate')} (the border); "
        f"critique: {gate.get('critique')}, so it was revised",
    )
    good = (status.get("outcome"), status.get("turns"), gate.get("gate"), gate.get("critique")) == (
        "decided", 8, "proceed", "minor",
    )  # fmt: skip
    tell(
        "good" if good else "bad",
        f"  {status.get('outcome')} after {status.get('turns')} turns: know {changes.get('know')}, "
        f"uncertainty {changes.get('uncertainty')}, confidence {status.get('confidence')}",
    )
    return good


def _leaked(project: str, program: str, tell: Tell) -> int:
    """An expert that is handed what another one said."""
    words = ("process", QUESTION, "--concurrency", "1", "--", sys.executable, program)
    _tripod(project, _LEAKING, *words, "--digest")
    report = verify(project)
    tell("do", "a coordinator that hands each expert what the one before it said")
    found = [one for outcome in report.outcomes for one in outcome.findings if one.check == CHECK]
    for finding in found[:1]:
        tell("bad", f"    caught; {CHECK}: {finding.where}: {finding.message}")
    if not found:
        tell("bad", f"    NOT caught by {CHECK}")
    return not found
