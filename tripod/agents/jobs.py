"""Jobs: runs of agents in the ledger; intent first, exactly one record, whichever process dies.

A job is a role and the subject of its work. Each attempt at it is one run of one program. In order,
each step a transaction or a fact on the disk:

1. the lock of the run directory is taken; ``agent.requested`` and ``delivered`` are committed, if
   no other coordinator was faster. Dead before the commit: nothing happened.
2. the program is launched, with the lock. Dead before: nobody holds the lock, and the program never
   runs; the next command commits ``agent.abandoned`` and makes the next attempt.
3. ``agent.started`` is committed.
4. the program ends; ``agent.ended`` is committed with all that it wrote.
5. the run directory is removed.

Dead before 3, 4 or 5: the next command does that step by the same code. So a program may run more
than once (each time a run is lost), and its result is recorded once. Source: spec kernel A-8, K-6,
and section 3.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.agents.spec import (
    Parameters,
    SpawnResult,
    SpawnSpec,
    described_spec,
    is_spec_spawn_id,
    spec_spawn_id,
)
from tripod.agents.spool import LOST, RUNNING, Look, Spool, spool_result
from tripod.agents.wrapper import public_of
from tripod.errors import RefusedError
from tripod.ledger import SPOOL, Draft
from tripod.ledger.kinds import agents as kinds
from tripod.ledger.kinds.base import content
from tripod.projections.workers.answers import read_spec_answer
from tripod.team.act import Act
from tripod.team.team import Team

LOST_REASON = "nobody runs it any more: who ran it was killed"


class Attempt(NamedTuple):
    """One attempt at a job; ``state`` is requested, started, ended or abandoned."""

    spawn: str
    role: str
    subject: str
    attempt: int
    state: str
    seq: int


def job_attempts(db: sqlite3.Connection, role: str, subject: str) -> list[Attempt]:
    """All attempts at a job, the first of them first."""
    rows = db.execute(
        "SELECT spawn, role, subject, attempt, state, seq FROM agents"
        " WHERE role = ? AND subject = ? ORDER BY attempt",
        (role, subject),
    )
    return [Attempt(*row) for row in rows]


def newest(db: sqlite3.Connection, role: str, subject: str) -> Attempt | None:
    """The last attempt at a job, None if there was no attempt."""
    return next(reversed(job_attempts(db, role, subject)), None)


def order_of(team: Team, ordered: Attempt) -> dict[str, Any]:
    """The recorded order of a run; only its form of output, ``text``, if it was redacted."""
    data = team.source.content(team.source.body(ordered.seq)["spec"])
    try:
        value: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError):
        return {"output": "text"}
    return value


def job_order_again(team: Team, ordered: Attempt) -> SpawnSpec:
    """The order of a recorded run, to be given again (RefusedError: its secrets were not kept)."""
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
        stdin=team.source.content(team.source.body(ordered.seq + 1)["content"]),
        set_env=order["set_env"],
        timeout_s=None if timeout is None else timeout / 1000,
        takes={name: tuple(form) for name, form in order["takes"].items()},
        parameters=Parameters(
            model=order.get("model"),
            effort=order.get("effort"),
            schema=None if schema is None else json.loads(schema),
            tools=None if tools is None else tuple(tools),
            more=order["more"],
        ),
    )


def recorded(team: Team, ordered: Attempt) -> SpawnResult:
    """How a run ended, from the ledger alone."""
    sql = "SELECT state, ended FROM agents WHERE spawn = ?"
    state, seq = team.store.db.execute(sql, (ordered.spawn,)).fetchone()
    if seq is None or state == "abandoned":
        problem = LOST_REASON if seq is None else team.source.body(seq)["reason"]
        return SpawnResult(status="killed", problem=problem)
    body = team.source.body(seq)
    stdout, stderr = (
        team.source.content(body[name]["content"]) if "content" in body[name] else b""
        for name in ("stdout", "stderr")
    )
    order = order_of(team, ordered)
    answer = read_spec_answer(order["output"], stdout, wants_structure="schema" in order)
    return SpawnResult(
        status=body["status"],
        problem=body.get("problem", ""),
        exit_code=body.get("exit_code"),
        signal=body.get("signal"),
        wall_ms=body["wall_ms"],
        answer=replace(
            answer, usage=body.get("usage", {}), cost=body.get("cost"), session=body.get("session")
        ),
        stdout=stdout,
        stderr=stderr,
        unsupported_params=tuple(body["unsupported"]),
    )


class JobHooks:
    """Further entries to append in the transactions of a run; this one appends nothing."""

    def files(self, team: Team, subject: str) -> tuple[str | None, str | None]:  # noqa: ARG002
        """Paths of standard output and error, where they are not in the run's own folder."""
        return None, None

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:  # noqa: ARG002
        """In front of ``agent.requested`` (``run.seq`` is -1): further sources of the prompt."""
        return ()

    def started(self, act: Act, run: Attempt) -> None:
        """With ``agent.started``."""

    def ended(self, act: Act, run: Attempt, result: SpawnResult) -> None:
        """With ``agent.ended``."""

    def abandoned(self, act: Act, run: Attempt) -> None:
        """With ``agent.abandoned``."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program to run for a role. ``spec`` gives the order of an attempt, with its own secrets.

    ``sources`` are the entries whose text stands in the prompt; ``actor`` is who wants it done.
    """

    role: str
    subject: str
    spec: Callable[[int], SpawnSpec]
    sources: tuple[int, ...] = ()
    actor: str = "tripod"


def spool_of_job(
    team: Team, spawn: str, files: tuple[str | None, str | None] = (None, None)
) -> Spool:
    """The folder of a run, with its order's key; ``files`` are where its output goes instead."""
    row = team.store.db.execute("SELECT seq FROM agents WHERE spawn = ?", (spawn,)).fetchone()
    key = "" if row is None else str(team.source.body(row[0]).get("key", ""))
    return Spool(f"{team.root}/{SPOOL}/{spawn}", stdout=files[0], stderr=files[1], key=key)


# Steps -----------------------------------------------------------------------------------------


def attempt_job(team: Team, job: Job, number: int, hooks: JobHooks) -> bool:
    """Steps 1 to 3: have attempt ``number`` begin. False: another coordinator is at it."""
    team.refresh()  # where all its files are gone, they are written again before the spool is made
    spec = job.spec(number)
    order = described_spec(spec)
    spawn = spec_spawn_id(job.role, job.subject, number, order)
    spool = spool_of_job(team, spawn, hooks.files(team, job.subject))
    secret = os.urandom(32)
    with spool.held() as lock:
        if lock is None:
            return False
        key = public_of(secret)
        try:
            with team.act() as act:
                last = newest(act.transaction.tables, job.role, job.subject)
                if last is not None and last.attempt >= number:
                    return False
                ordered = Attempt(spawn, job.role, job.subject, number, "requested", -1)
                sources = (*job.sources, *hooks.requested(act, ordered))
                entries = act.append(
                    _requested_drafts(job, ordered, order, spec.stdin, sources, key=key)
                )
                ordered = ordered._replace(seq=entries[0].seq)
        except BaseException:
            spool.remove()
            raise
        spool.clear()
        spool.key = key
        spool.launch(spec, lock, secret)
    _record_start(team, ordered, spool.look(), hooks)
    return True


def _requested_drafts(
    job: Job, ordered: Attempt, order: bytes, prompt: bytes, sources: tuple[int, ...], *, key: str
) -> list[Draft]:
    requested: kinds.AgentRequested = {
        "spawn": ordered.spawn,
        "role": ordered.role,
        "subject": ordered.subject,
        "attempt": ordered.attempt,
        "spec": order,
        "sha256": sha256(order).hexdigest(),
        "key": key,
    }
    delivered: kinds.Delivered = {
        "spawn": ordered.spawn,
        "channel": "prompt",
        "content": prompt,
        "sha256": sha256(prompt).hexdigest(),
        "sources": list(sources),
    }
    return [kinds.REQUESTED.draft(requested, job.actor), kinds.DELIVERED.draft(delivered)]


def _record_start(team: Team, ordered: Attempt, look: Look, hooks: JobHooks) -> None:
    """Step 3, if nobody did it: also of a run that has ended meanwhile."""
    if look.started is not None:
        with team.act() as act:
            _append_started(act, ordered, look, hooks)


def _append_started(act: Act, ordered: Attempt, look: Look, hooks: JobHooks) -> None:
    found = look.started
    failed = look.end is not None and look.end.outcome == "not_started"
    if found is not None and not failed and _run_state(act, ordered) == "requested":
        body: kinds.AgentStarted = {
            "spawn": ordered.spawn,
            "pid": found.child,
            "start_time": found.child_start,
            "argv_sha256": found.argv_sha256,
        }
        act.append([kinds.STARTED.draft(body)])
        hooks.started(act, ordered)


def _run_state(act: Act, ordered: Attempt) -> str:
    """The state of a run as this transaction sees it."""
    sql = "SELECT state FROM agents WHERE spawn = ?"
    return str(act.transaction.tables.execute(sql, (ordered.spawn,)).fetchone()[0])


def settle_job(team: Team, ordered: Attempt, hooks: JobHooks) -> bool:
    """Steps 3 to 5, as far as things are; whether the run is over, as far as we can see."""
    spool = spool_of_job(team, ordered.spawn, hooks.files(team, ordered.subject))
    look = spool.look()
    if look.state == LOST:
        try:
            look = spool.give_up(LOST_REASON)
        except FileNotFoundError:  # somebody else settled it meanwhile, and removed its folder
            return False
    if look.state == RUNNING:
        if ordered.state == "requested":
            _record_start(team, ordered, look, hooks)
        return False
    assert look.end is not None
    order = order_of(team, ordered)
    result = spool_result(spool, look, order["output"], wants_structure="schema" in order)
    with team.act() as act:
        if _run_state(act, ordered) in ("requested", "started"):
            _append_started(act, ordered, look, hooks)
            if look.end.outcome == "abandoned":
                act.append(
                    [kinds.ABANDONED.draft({"spawn": ordered.spawn, "reason": look.end.reason})]
                )
                hooks.abandoned(act, ordered)
            else:
                act.append([_ended_draft(ordered, result, order)])
                hooks.ended(act, ordered, result)
    spool.remove()
    return True


def _ended_draft(ordered: Attempt, result: SpawnResult, order: dict[str, Any]) -> Draft:
    blobs: list[bytes] = []
    known = ("model", "effort", "schema", "tools", "mcp_servers")
    given = [*(name for name in known if name in order), *sorted(order.get("more", ()))]
    return kinds.ENDED.draft(
        {
            "spawn": ordered.spawn,
            "status": result.status,
            "wall_ms": result.wall_ms,
            "stderr": _stored_output(result, "stderr", result.stderr, blobs),
            "stdout": _stored_output(result, "stdout", result.stdout, blobs),
            "unsupported": [name for name in given if name not in order.get("takes", ())],
            "problem": result.problem or None,
            "exit_code": result.exit_code,
            "signal": result.signal,
            "session": result.answer.session,
            "usage": dict(result.answer.usage) or None,
            "cost": result.answer.cost,
        },
        blobs=blobs,
    )


def _stored_output(result: SpawnResult, name: str, data: bytes, blobs: list[bytes]) -> kinds.Kept:
    """The record of an output: whole, or as digest and size where it is too much or was altered."""
    if name in result.altered:
        digest, size = result.altered[name]
        return {"digest": digest, "bytes": size}
    kept: kinds.Kept = {"digest": sha256(data).hexdigest(), "bytes": len(data)}
    if len(data) <= kinds.KEPT_LIMIT:
        kept["content"] = content(data, blobs)
    return kept


async def run(
    team: Team, job: Job, *, first: int = 1, max_attempts: int = 2, hooks: JobHooks | None = None
) -> tuple[Attempt, SpawnResult]:
    """Do a job, or go on with it: adopt what runs, take what has ended, try what is lost again.

    ``first`` is the number of the first attempt that counts: earlier ones failed in another way. It
    is begun at most ``max_attempts`` times, as long as it is lost each time. ``hooks`` append
    further entries with each step. Being cancelled ends the program, and records that.
    """
    hooks = hooks or JobHooks()
    while True:
        last = newest(team.store.db, job.role, job.subject)
        if last is None or last.attempt < first:
            number = first
        elif last.state == "abandoned" and last.attempt < first + max_attempts - 1:
            number = last.attempt + 1
        elif last.state in ("ended", "abandoned"):
            return last, recorded(team, last)
        else:
            await _wait_for_end(team, last, hooks)
            continue
        if not attempt_job(team, job, number, hooks):
            # A faster coordinator is at it: wait until it is done, or dead.
            spawn = spec_spawn_id(job.role, job.subject, number, described_spec(job.spec(number)))
            await asyncio.to_thread(spool_of_job(team, spawn, hooks.files(team, job.subject)).wait)


async def _wait_for_end(team: Team, ordered: Attempt, hooks: JobHooks) -> None:
    spool = spool_of_job(team, ordered.spawn, hooks.files(team, ordered.subject))
    settle_job(team, ordered, hooks)
    waiting = asyncio.ensure_future(asyncio.to_thread(spool.wait))
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        spool.cancel()
        await asyncio.wait([waiting])
        raise
    finally:
        settle_job(team, ordered, hooks)


def sweep(team: Team) -> None:
    """Remove the folders of runs that are over, and of those that never came to be recorded.

    What has another name than a run's is somebody else's, and stays; so does what a link shows.
    """
    folder = f"{team.root}/{SPOOL}"
    try:
        names = [one.name for one in os.scandir(folder) if one.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return
    for name in filter(is_spec_spawn_id, names):
        sql = "SELECT state FROM agents WHERE spawn = ?"
        row = team.store.db.execute(sql, (name,)).fetchone()
        if row is None or row[0] in ("ended", "abandoned"):
            spool = spool_of_job(team, name)
            with spool.held() as lock:
                if lock is not None:
                    spool.remove()
