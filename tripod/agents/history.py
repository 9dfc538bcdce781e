"""Runs of agents as the ledger holds them: the last at an errand, its order, how it ended."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, NamedTuple

from projections.projection import content_bytes
from tripod.agents.outputs import read_answer
from tripod.agents.spec import SpawnResult, SpawnSpec
from tripod.errors import RefusedError
from tripod.team import Team

LOST_REASON = "nobody runs it any more: who ran it was killed"


class Run(NamedTuple):
    """One attempt at an errand; ``state`` is requested, started, ended or abandoned."""

    spawn: str
    role: str
    subject: str
    attempt: int
    state: str
    seq: int


def newest(db: sqlite3.Connection, role: str, subject: str) -> Run | None:
    """The last attempt at an errand, None where there was none."""
    row = db.execute(
        "SELECT spawn, role, subject, attempt, state, seq FROM agents"
        " WHERE role = ? AND subject = ? ORDER BY attempt DESC LIMIT 1",
        (role, subject),
    ).fetchone()
    return None if row is None else Run(*row)


def order_of(team: Team, ordered: Run) -> dict[str, Any]:
    """What a run was ordered by, as it is recorded (text, where that was redacted)."""
    data = content_bytes(team.source, team.source.body(ordered.seq)["spec"])
    try:
        value: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError):
        return {"output": "text"}
    return value


def ordered_again(team: Team, ordered: Run) -> SpawnSpec:
    """The order of a recorded run, to be given again; of one without secrets alone.

    Raises:
        RefusedError: it had secrets, which nobody kept, or what it said was erased.
    """
    order = order_of(team, ordered)
    if "argv" not in order or order["secrets"] or "mcp_servers" in order:
        raise RefusedError(
            f"run {ordered.spawn} cannot be ordered again: what it needs was not kept"
        )
    timeout, schema, tools = (order.get(name) for name in ("timeout_ms", "schema", "tools"))
    return SpawnSpec(
        argv=tuple(order["argv"]),
        env=tuple(order["env"]),
        cwd=order.get("cwd"),
        output=order["output"],
        model=order.get("model"),
        effort=order.get("effort"),
        tools=None if tools is None else tuple(tools),
        stdin=content_bytes(team.source, team.source.body(ordered.seq + 1)["content"]),
        set_env=order["set_env"],
        timeout_s=None if timeout is None else timeout / 1000,
        takes={name: tuple(form) for name, form in order["takes"].items()},
        schema=None if schema is None else json.loads(schema),
        more=order["more"],
    )


def unsupported(order: dict[str, Any]) -> list[str]:
    """Parameters of a recorded order that its program cannot take."""
    given = ("model", "effort", "schema", "tools", "mcp_servers")
    names = [name for name in given if name in order] + sorted(order.get("more", ()))
    return [name for name in names if name not in order.get("takes", ())]


def recorded(team: Team, ordered: Run) -> SpawnResult:
    """How a run ended, from the ledger alone."""
    sql = "SELECT state, ended FROM agents WHERE spawn = ?"
    state, seq = team.store.db.execute(sql, (ordered.spawn,)).fetchone()
    if seq is None or state == "abandoned":
        problem = LOST_REASON if seq is None else team.source.body(seq)["reason"]
        return SpawnResult(status="killed", problem=problem)
    body = team.source.body(seq)
    stdout, stderr = (
        content_bytes(team.source, body[name]["content"]) if "content" in body[name] else b""
        for name in ("stdout", "stderr")
    )
    order = order_of(team, ordered)
    answer = read_answer(order["output"], stdout, wants_structure="schema" in order)
    return SpawnResult(
        status=body["status"],
        problem=body.get("problem", ""),
        exit_code=body.get("exit_code"),
        signal=body.get("signal"),
        wall_ms=body["wall_ms"],
        text=answer.text,
        structured=answer.structured,
        usage=body.get("usage", {}),
        cost=body.get("cost"),
        session=body.get("session"),
        stdout=stdout,
        stderr=stderr,
        unsupported_params=tuple(body["unsupported"]),
    )


def cassette_of(team: Team, ordered: Run) -> bytes:
    """A recorded run as a cassette; see ``tripod.agents.cassette``."""
    from tripod.agents.cassette import format_cassette

    result = recorded(team, ordered)
    prompt = content_bytes(team.source, team.source.body(ordered.seq + 1)["content"])
    return format_cassette(prompt, result.stdout, result.stderr, result.exit_code, result.signal)
