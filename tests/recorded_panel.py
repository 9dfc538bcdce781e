"""Runs of Nova put into a ledger by real acts, with agents that only say what a script has."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import drafts

from tripod.agents.jobs import job_attempts
from tripod.agents.spec import SpawnSpec, described_spec, spec_spawn_id
from tripod.ledger.kinds.agents import ABANDONED, ISOLATED
from tripod.nova.runner import (
    NovaLimits,
    load_personas,
    nova_run,
    open_nova,
    settle_nova,
    stand_of_turn,
)
from tripod.projections.layout import HIDDEN_BESIDE
from tripod.projections.nova.answers import persona_prompt
from tripod.projections.nova.prompt import prompt_for_turn
from tripod.projections.nova.run import DueTurn, NovaRun
from tripod.projections.nova.turns import ROLE
from tripod.projections.workers.answers import CANCELLED, FAILED, read_spec_answer
from tripod.team.team import Team

__all__ = [
    "ANALYSES", "QUESTION", "Agent", "Script", "panel", "play", "said", "speak", "usual_agent",
]  # fmt: skip

QUESTION = "Shall the queue live in one file or in many?"
ANALYSES = {
    "security": "One file is one thing to guard, and a program that may write it may forge each "
    "event in it; with many files each has a writer of its own, which the system checks for us.",
    "performance": "Appending to one file costs a seek and a sync; many files cost a directory "
    "entry each, and listing ten thousand of them takes as long as reading the one file does.",
    "integration": "Every tool that people already have can watch a folder and rename a file, and "
    "hardly one of them can follow the end of a file that others truncate now and then.",
}

_SAID: dict[str, dict[str, Any]] = {
    "unpack": {
        "requirements": ["no event is lost"],
        "experts": list(ANALYSES),
        "epistemic": {"know": 0.4, "uncertainty": 0.7},
    },
    "synthesis": {
        "proposal": "Many files",
        "trade_offs": ["a directory entry for each event"],
        "dissenters": ["performance"],
        "epistemic": {"know": 0.75, "uncertainty": 0.35},
    },
    "critique": {"issues": [{"severity": "minor", "text": "Who removes them?"}]},
    "revision": {"proposal": "Many files, and a prune by size"},
    "final": {
        "decision": "Many files, pruned by size",
        "confidence": 0.92,
        "epistemic": {"know": 0.9, "uncertainty": 0.15},
    },
}


class Agent(NamedTuple):
    """What an agent's run is to be: what it says (None: it is lost), and what is odd about it.

    ``extra`` is put behind its prompt, ``sources`` are added to those of the prompt, ``files`` are
    given beside it; ``order`` are further fields of its order; ``ends``: it is over. With the
    ``status`` ``cancelled`` it was told to end. What it costs it says in a stream. ``end`` are
    fields of its end that are said to be others; ``begins``: an entry says that it began.
    """

    says: Mapping[str, Any] | str | None
    extra: str = ""
    sources: Sequence[int] = ()
    files: Sequence[bytes] = ()
    level: str | None = "namespace"
    hidden: Sequence[str] = HIDDEN_BESIDE
    status: str = "ok"
    cost: str | None = None
    order: Mapping[str, Any] = {}
    prompt: str = ""
    ends: bool = True
    stderr: bytes = b""
    end: Mapping[str, Any] = {}
    begins: bool = True


Script = Callable[[DueTurn, int], Agent]
"""What the agent of a turn is to be, by the turn and the number of the try."""


def said(role: str, persona: str = "", **other: Any) -> dict[str, Any]:
    """What a role says in the usual run, with other fields."""
    usual = _SAID.get(role) or {
        "analysis": ANALYSES.get(persona, f"{persona} has nothing to add"),
        "findings": [f"{persona} matters"],
    }
    return {**usual, **other}


def usual_agent(turn: DueTurn, _: int) -> Agent:
    """The agent of a turn in the usual run."""
    return Agent(said(turn.role, turn.persona))


def speak(team: Team, run: NovaRun, turn: DueTurn, attempt: int, agent: Agent) -> str:
    """Record an agent's run for a turn; give its name."""
    persona = next(p for p in run.opening.personas if p["short_name"] == turn.persona)
    own = persona_prompt(team.source.content(persona["content"]))
    stand = stand_of_turn(team, run, turn)
    given = prompt_for_turn(run, turn, agent.prompt or own, stand.problem)
    prompt = given.data + agent.extra.encode()
    argv = ("/usr/bin/bwrap", "--unshare-all", "--", "panel")
    form = "text" if agent.cost is None else "claude-stream-json"
    spec = SpawnSpec(stdin=prompt, **{"argv": argv, "env": (), "output": form, **agent.order})
    order = described_spec(spec)
    subject = f"{run.opening.run}/{turn.key}"
    spawn = spec_spawn_id(ROLE, subject, attempt, order)
    says = agent.says
    text = says if isinstance(says, str) else json.dumps(says, ensure_ascii=False)
    text = text if agent.cost is None else _in_stream(text, agent.cost)
    with team.act() as act:
        if agent.level is not None:
            hidden = list(agent.hidden) if agent.level == "namespace" else []
            problem = None if agent.level == "namespace" else "bwrap is not installed"
            body: Any = {"spawn": spawn, "level": agent.level, "hidden": hidden, "problem": problem}
            act.append([ISOLATED.draft(body)])
        act.append([drafts.delivered(spawn, "file", data, ()) for data in agent.files])
        requested = drafts.agent_requested(
            spawn=spawn, role=ROLE, subject=subject, attempt=attempt, spec=order, actor="alex"
        )
        sources = (*given.sources, *agent.sources)
        act.append([requested, drafts.delivered(spawn, "prompt", prompt, sources)])
        if not agent.ends:
            return spawn
        if says is None:
            act.append([ABANDONED.draft({"spawn": spawn, "reason": "nobody runs it any more"})])
            return spawn
        ended = drafts.agent_ended(spawn=spawn, **_end_of(agent, f"{text}\n".encode(), order))
        started = drafts.agent_started(spawn, 7, 7, sha256(b"").hexdigest())
        act.append([started, ended] if agent.begins else [ended])
    return spawn


def _end_of(agent: Agent, stdout: bytes, order: bytes) -> dict[str, Any]:
    """How an agent's run ended that printed this, as the act says that records an end."""
    wanted = json.loads(order)
    answer = read_spec_answer(wanted["output"], stdout, wants_structure="schema" in wanted)
    said: dict[str, Any] = {"status": answer.status, "problem": answer.problem, "exit_code": 0}
    if agent.status == "cancelled":
        said = {"status": "killed", "problem": CANCELLED, "signal": 15}
    elif agent.status == "nonzero":
        told = f"; {answer.problem}" if answer.problem.startswith(FAILED) else ""
        said = {"status": "nonzero", "problem": f"it ended with exit code 1{told}", "exit_code": 1}
    elif agent.status != "ok":
        said["status"] = agent.status
    said |= {"stdout": stdout, "stderr": agent.stderr, "cost": answer.cost, "wall_ms": 1}
    return {**said, "problem": said["problem"] or None, **agent.end}


def _in_stream(text: str, cost: str) -> str:
    """An answer in the stream of a coding agent, which says what it cost."""
    return json.dumps(
        {"type": "result", "total_cost_usd": float(cost), "session_id": "s", "result": text},
        ensure_ascii=False,
    )


def play(team: Team, name: str, script: Script = usual_agent, most: int = 100) -> NovaRun:
    """Carry a run on with the agents of a script, until it ends, waits, or ``most`` have run."""
    for _ in range(most):
        run = settle_nova(team, name)
        turns = list(run.due_turns())[: run.turns_left()]
        if not turns:
            return run
        for turn in turns:
            number = len(job_attempts(team.store.db, ROLE, f"{name}/{turn.key}")) + 1
            if stand_of_turn(team, run, turn).entry is None:
                speak(team, run, turn, number, script(turn, number))
    return nova_run(team.source, name)


def panel(root: str, script: Script = usual_agent, **limits: Any) -> str:
    """A run from its question to wherever it comes; give its name."""
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(**limits), "alex")
        play(team, name, script)
    return name
