"""Acts on workers: spawn, continue, escalate, dismiss, and look after those that are at work.

A worker is one program that does one task. Its state is in the ledger, with legal changes alone::

    pending -> running -> completed | failed | died
                       -> escalated            (it says that it cannot go on, and may still run)
    any of these -> dismissed                  (final)
    completed | failed | died | escalated -> pending    (it is continued)

How its program ends decides, not what it writes into its task file. Each change and its event
(seeds: nbs-bus, "Integration with nbs-worker") are one transaction. Nobody has to wait for it:
the next command finds out what became of it (``look_after``).

Source: spec nbs-compat C5, C10; design section 7. What runs the program: ``tripod.agents``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tripod.agents import jobs, profiles
from tripod.agents.jobs import Job, newest, ordered_again, recorded
from tripod.agents.spec import SpawnSpec
from tripod.agents.spool import RUNNING
from tripod.errors import (
    BadArgumentError,
    MalformedError,
    NotFoundError,
    RefusedError,
    TooLargeError,
)
from tripod.ledger.kinds.workers import CONTINUED, DISMISSED, ESCALATED, SPAWNED, WorkerSpawned
from tripod.ledger.locator import LEDGER, nearest
from tripod.projections import content_bytes
from tripod.projections.workers.format import valid_slug, valid_worker_name
from tripod.projections.workers.tables import FOLDER
from tripod.team.act import draft_event
from tripod.team.team import Team
from tripod.workers.life import QUOTED, ROLE, Life, judge_name, logs_of, state_in, step

SELF = "TRIPOD_WORKER"
"""The variable by which a worker's program knows its own name."""

PROFILE = "TRIPOD_WORKER_PROFILE"
"""The variable that names the profile of workers for which none is given; else ``claude``."""

MAX_TASK = 1024 * 1024  # bytes
_WAIT_S = 10.0
_TURN_S = 0.02

_TIPS = """
Your task file is {file}: append what you find at its end, and edit nothing else there.
If you cannot go on, say so: tripod worker escalate "why"
"""


def state_of(team: Team, name: str) -> str | None:
    """The state of a worker that we run; None: we run none of that name."""
    row = team.store.db.execute("SELECT state FROM workers WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


# Spawning --------------------------------------------------------------------------------------


def spawn(
    team: Team,
    slug: str,
    folder: str,
    task: str,
    *,
    command: Sequence[str] = (),
    profile: str | None = None,
    name: str | None = None,
    skill: str = "",
    timeout_s: float | None = None,
    model: str | None = None,
    effort: str | None = None,
    tools: Sequence[str] | None = None,
    actor: str = "unknown",
    must_exist: bool = False,
) -> str:
    """Have a worker begin, and give its name at once.

    Args:
        team: the team that it works for.
        slug: the first part of its name: 1 to 54 of a-z and 0-9.
        folder: where its program works.
        task: what it is to do, at most 1 MiB; its program reads it on standard input.
        command: its program and arguments; where none are given, ``profile`` says them.
        profile: a coding agent's (``claude``, or a file); it is told of its task file as well.
        name: the whole name; one is made up by default. Given again with the same task, nothing is
            done twice: that is how a script that was killed goes on.
        skill: a text that is put in front of the task.
        timeout_s: when it is ended; never by default.
        model, effort, tools: parameters, for a program that takes such.
        actor: who wants it done.
        must_exist: refuse a program that is not there, in place of a worker that fails at once.

    Raises:
        BadArgumentError: an argument breaks its rule.
        NotFoundError: no such profile, or no such program.
        RefusedError: a worker of that name has another task.
    """
    _judge(slug, folder, task, name)
    folder = os.path.abspath(folder)
    known = profiles.chosen(command, profile, PROFILE, "claude")
    words = None if tools is None else tuple(tools)
    order = known.order(b"", model=model, effort=effort, tools=words)
    if must_exist:
        _judge_program(order.argv[0], folder)
    whole = f"{skill.strip()}\n\n{task}" if skill.strip() else task
    chosen = name or _fresh_name(team, slug)

    def spec(_: int) -> SpawnSpec:
        text = whole
        if not command:
            file = os.path.relpath(team.disk.full(f"{FOLDER}/{chosen}.md"), folder)
            text += "\n" + _TIPS.format(file=file)
        env = {SELF: chosen, "NBS_HANDLE": slug, **_way_home(team, folder)}
        given = text.encode()
        return replace(order, stdin=given, cwd=folder, set_env=env, timeout_s=timeout_s)

    body: WorkerSpawned = {"name": chosen, "slug": slug, "folder": folder, "task": whole.encode()}
    job = Job(ROLE, chosen, spec, actor=actor)
    _begin(team, job, Life(SPAWNED.draft(body, actor), (None,)), task=whole, folder=folder)
    return chosen


def _way_home(team: Team, folder: str) -> dict[str, str]:
    """What the commands that its program calls need, to act on this team and on no other."""
    root = os.path.abspath(team.root)
    found = nearest(folder)
    return {} if found is not None and os.path.samefile(found, root) else {LEDGER: root}


def _judge(slug: str, folder: str, task: str, name: str | None) -> None:
    problem = valid_slug(slug) or (None if name is None else valid_worker_name(name))
    if problem is None and name is not None and name.rpartition("-")[0] != slug:
        problem = f"name: {name} does not begin with {slug}-"
    if problem is None and not task.strip():
        problem = "task: it is empty"
    if problem is None and len(task.encode()) > MAX_TASK:
        problem = f"task: more than {MAX_TASK} bytes; put it into a file and name that"
    if problem is None and not os.path.isdir(folder):
        problem = f"folder: {folder} is not a folder"
    if problem is not None:
        raise BadArgumentError(problem)


def _judge_program(program: str, folder: str) -> None:
    import shutil

    path = os.path.join(folder, program) if "/" in program else program
    if shutil.which(path) is None:
        raise NotFoundError(f"no program {program!r}: give its path, or put its folder into PATH")


def _fresh_name(team: Team, slug: str) -> str:
    while True:
        name = f"{slug}-{os.urandom(2).hex()}"
        paths = (f"{FOLDER}/{name}.md", *logs_of(name))
        if state_of(team, name) is None and not any(map(team.disk.stands, paths)):
            return name


def _begin(team: Team, job: Job, life: Life, *, task: str, folder: str) -> None:
    """Have it begin, unless it did before; another command may be at just that."""
    name = job.subject
    while not jobs.attempt(team, job, 1, life):
        row = team.store.db.execute("SELECT seq FROM workers WHERE name = ?", (name,)).fetchone()
        if row is None:
            team.store.wait(team.store.head().size, _TURN_S)
            continue
        body = team.source.body(row[0])
        same = content_bytes(team.source, body["task"]) == task.encode()
        if not same or body["folder"] != folder:
            raise RefusedError(f"{name} is there, and has another task: take another name")
        look_after(team, [name])
        return


# Looking after them ----------------------------------------------------------------------------


def look_after(team: Team, names: Iterable[str] | None = None) -> None:
    """Find out what became of workers at work, and record it: all of them, or those ``names``.

    What hinders it for one hinders it for no other: all are looked after first.

    Raises:
        LedgerError: it cannot be recorded.
        RefusedError: the same.
        OSError: others did something to a run's files.
    """
    rows = team.store.db.execute("SELECT name, state FROM workers WHERE open = 1").fetchall()
    wanted = None if names is None else set(names)
    first: Exception | None = None
    for name, state in rows:
        if wanted is None or name in wanted:
            try:
                _look_after(team, name, dismissed=state == "dismissed")
            except (MalformedError, OSError, RefusedError, TooLargeError) as error:
                first = first or error
    jobs.sweep(team)
    if first is not None:
        raise first


def _look_after(team: Team, name: str, *, dismissed: bool) -> None:
    life = Life()
    run = newest(team.store.db, ROLE, name)
    if run is None:
        return  # no entry of ours is so: `worker-lifecycle` names it
    if run.state in ("requested", "started"):
        if dismissed:
            jobs.spool_of(team, run.spawn).cancel()
        if not jobs.settle(team, run, life):
            return
    run = newest(team.store.db, ROLE, name)
    is_open = "SELECT 1 FROM workers WHERE name = ? AND open = 1"
    if run is not None and team.store.db.execute(is_open, (name,)).fetchone():
        spec = ordered_again(team, run)
        jobs.attempt(team, Job(ROLE, name, lambda _: spec), run.attempt + 1, life)


# What becomes of one ---------------------------------------------------------------------------


def continue_(
    team: Team, name: str, message: str, *, actor: str = "unknown", model: str | None = None
) -> None:
    """Have a worker that ended go on, with a message; with its own session, where it has one.

    ``model`` is what its program is asked to use from now on; None leaves that as it was.

    Raises:
        NotFoundError: we run no such worker.
        RefusedError: it is at work, was dismissed, or a log is not what its program left: more of
            that would hide what was done to it.
        BadArgumentError: the message breaks its rule, or the program's profile takes no model.
    """
    if not message.strip() or len(message.encode()) > MAX_TASK:
        problem = f"message: it is empty, or more than {MAX_TASK} bytes"
        raise BadArgumentError(problem)
    look_after(team, [name])
    row = team.store.db.execute(
        "SELECT seq, open, state FROM workers WHERE name = ?", (name,)
    ).fetchone()
    run = newest(team.store.db, ROLE, name)
    if row is None or run is None:
        raise _missing(team, name)
    if row[1]:
        problem = f"{name} is {row[2]}, and its program is at work: wait for it, or dismiss it"
        raise RefusedError(problem)
    before = ordered_again(team, run)
    session = recorded(team, run).session
    if session is not None and "resume" in before.takes:
        given, more = message, {**before.more, "resume": session}
    else:
        task = content_bytes(team.source, team.source.body(row[0])["task"]).decode()
        given, more = f"{task}\n\n{message}", dict(before.more)
    if model is not None:
        if "model" not in before.takes:
            problem = f"{name}: the profile of its program takes no model; leave --model out"
            raise BadArgumentError(problem)
        more["model"] = model
    spec = replace(before, stdin=given.encode(), more=more)
    legal = ("completed", "failed", "died", "escalated")
    draft = CONTINUED.draft({"name": name, "message": message.encode()}, actor)
    life = Life(draft, legal)
    job = Job(ROLE, name, lambda _: spec, actor=actor)
    if not jobs.attempt(team, job, run.attempt + 1, life):
        problem = f"{name}: another command has it go on"
        raise RefusedError(problem)


def _missing(team: Team, name: str) -> NotFoundError:
    judge_name(name)
    if team.disk.is_file(f"{FOLDER}/{name}.md"):
        return NotFoundError(f"{name} is run by another tool: we know its files alone")
    return NotFoundError(f"no worker {name}: `tripod worker list` shows those that are there")


def escalate(team: Team, name: str, reason: str, *, actor: str | None = None) -> None:
    """Say for a worker that it cannot go on; its program says so itself, as a rule.

    Raises:
        NotFoundError: we run no such worker.
        RefusedError: it is not running.
        BadArgumentError: no reason is given, or a long one.
    """
    if not reason.strip() or len(reason.encode()) > MAX_TASK:
        problem = f"reason: it is empty, or more than {MAX_TASK} bytes"
        raise BadArgumentError(problem)
    with team.act() as act:
        state = state_in(act, name)
        if state is None:
            raise _missing(team, name)
        if state != "running":
            problem = f"{name} is {state}: only one that is running can escalate"
            raise RefusedError(problem)
        event = draft_event(act, name, "task-blocked", "critical", reason[:QUOTED])
        escalated = ESCALATED.draft(
            {"name": name, "reason": reason.encode(), "event": event.body["name"]}, actor or name
        )
        step(act, escalated, event)


def dismiss(team: Team, name: str, *, actor: str = "unknown") -> bool:
    """Send a worker away for good; its program is ended. False: it was dismissed before.

    Raises:
        NotFoundError: we run no such worker.
    """
    with team.act() as act:
        state = state_in(act, name)
        if state is None:
            raise _missing(team, name)
        fresh = state != "dismissed"
        if fresh:
            event = draft_event(act, "nbs-worker", "worker-dismissed", "normal", f"Worker: {name}")
            dismissed = DISMISSED.draft({"name": name, "event": event.body["name"]}, actor)
            step(act, dismissed, event)
    run = newest(team.store.db, ROLE, name)
    if run is not None and run.state in ("requested", "started"):
        spool = jobs.spool_of(team, run.spawn)
        until = time.monotonic() + _WAIT_S
        while not spool.cancel() and spool.look().state == RUNNING and time.monotonic() < until:
            time.sleep(_TURN_S)
        spool.wait()
        look_after(team, [name])
    return fresh
