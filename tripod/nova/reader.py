"""Nova runs looked at: how one stands, what runs for it, what to do next; figures over all of them.

Nothing here appends. Whether a program still runs is seen at its spool, for a command that was
killed leaves runs that the ledger calls started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tripod.agents.jobs import spool_of_job
from tripod.ledger.entry import parse_entry_time, parse_header
from tripod.nova.runner import nova_run
from tripod.projections.nova.files import nova_status
from tripod.projections.nova.metrics import MetricValue, TimedRun, nova_metrics, worked_time
from tripod.projections.nova.run import NovaRun
from tripod.projections.nova.tables import fold_nova_run, nova_entries_of
from tripod.projections.nova.turns import ROLE
from tripod.team.team import Team


class NovaAgent(NamedTuple):
    """A program that the ledger has no end of: whose turn it is to take, and how it stands.

    ``state`` is ``running``, ``ended`` (its answer is not recorded yet) or ``lost`` (it was killed
    together with the command that ran it, or had not begun).
    """

    spawn: str
    persona: str
    role: str
    cycle: int
    attempt: int
    state: str


class NovaStanding(NamedTuple):
    """How a run stands: its fold, its status as JSON, its programs, why a person must decide.

    ``next`` says what to do in words: a command, or nothing ('').
    """

    run: NovaRun
    status: dict[str, Any]
    agents: tuple[NovaAgent, ...]
    reason: str
    next: str


def standing_of_nova(team: Team, name: str) -> NovaStanding:
    """How a run stands now (NotFoundError: there is no such run)."""
    run = nova_run(team.source, name)
    agents = tuple(_open_agents(team, name))
    reason = ""
    if run.finalized is None and run.escalated is not None:
        reason = str(team.source.body(run.escalated)["reason"])
    config = run.opening.config
    status = nova_status(run) | {
        "agents": [one._asdict() for one in agents],
        "limit": run.limit,
        "reason": reason or (run.finalized or {}).get("reason"),
        "threshold": config["threshold"],
        "budget_turns": config.get("turns"),
        "budget_cost": config.get("cost"),
        "turns_left": run.turns_left(),
    }
    status["next"] = next_act(run, agents, reason)
    return NovaStanding(run, status, agents, reason, status["next"])


def _open_agents(team: Team, name: str) -> Iterator[NovaAgent]:
    """The programs of a run that the ledger has no end of, in the order of their requests."""
    sql = (
        "SELECT spawn, subject, attempt FROM agents WHERE role = ? AND subject > ? AND subject < ?"
        " AND state IN ('requested', 'started') ORDER BY seq"
    )
    for spawn, subject, attempt in team.store.db.execute(sql, (ROLE, f"{name}/", f"{name}0")):
        cycle, role, persona = subject.removeprefix(f"{name}/").split("-", 2)
        state = spool_of_job(team, spawn).look().state
        yield NovaAgent(spawn, persona, role, int(cycle), attempt, state)


def next_act(run: NovaRun, agents: Sequence[NovaAgent], reason: str) -> str:
    """What a person can do with a run now, in words; '' where it is over."""
    name = run.opening.run
    if run.finalized is not None:
        if agents:
            return f"`tripod nova resume {name}` ends what was left running for it"
        if run.finalized["outcome"] not in ("failed", "cancelled"):
            return ""
        again = "`tripod nova process` asks again"
        if run.turns:
            last = len(run.turns)
            kept = "turn 1" if last == 1 else f"turns 1 to {last}"
            again += f"; `tripod nova fork {name} --at {last}` keeps {kept}"
        if run.finalized["outcome"] == "cancelled":
            return again
        return f"`tripod show agents` has what each program was given and printed; {again}"
    if run.state == "awaiting_human" and reason:
        if reason == "budget":
            return (
                f"`tripod nova decide {name} redirect` allows the budget once more, for another "
                "cycle with all experts; accept has the coordinator decide on what there is; close "
                "ends it"
            )
        return f"`tripod nova decide {name} accept` (or redirect, close)"
    if any(one.state == "running" for one in agents):
        return f"wait: programs run; `tripod nova resume {name}` waits for them and goes on"
    due = ", ".join(f"{turn.persona} ({turn.role})" for turn in run.due_turns())
    missing = f": {due} must speak" if due else ""
    return f"if no command is at it, `tripod nova resume {name}` goes on{missing}"


def list_nova(team: Team) -> list[dict[str, Any]]:
    """The state of each run, in the order of their beginning."""
    rows = team.store.db.execute("SELECT run FROM nova_runs ORDER BY seq").fetchall()
    return [nova_status(nova_run(team.source, name)) for (name,) in rows]


def metrics_of_nova(team: Team, since_us: int = 0) -> tuple[int, list[MetricValue]]:
    """The metrics of the runs that began since a time, and how many of these are over."""
    rows = team.store.db.execute("SELECT run FROM nova_runs ORDER BY seq").fetchall()
    found = []
    for (name,) in rows:
        one = _timed(team, name, since_us)
        if one is not None and one.run.finalized is not None:
            found.append(one)
    return len(found), nova_metrics(found)


def _timed(team: Team, name: str, since_us: int) -> TimedRun | None:
    """A run with its time; None where it began earlier."""
    rows = nova_entries_of(team.source, name)
    raw = team.source.ledger.raw_of([row.seq for row in rows])
    at = {one.seq: parse_entry_time(parse_header(one.header).at) for one in raw}
    if min(at.values()) < since_us:
        return None
    run = fold_nova_run(team.source, rows)
    return (
        None if run is None else TimedRun(run, worked_time((row.kind, at[row.seq]) for row in rows))
    )
