"""Acts on workers (spawn, continue, escalate, dismiss), and reading their states, logs, findings.

A worker is one program that does one task. Its state is in the ledger, with legal changes alone::

    pending -> running -> completed | failed | died
                       -> escalated            (it says that it cannot go on, and may still run)
    any of these -> dismissed                  (final)
    completed | failed | died | escalated -> pending    (it is continued)

How its program ends decides, not what it writes into its task file. Each change and its event
(seeds: nbs-bus, "Integration with nbs-worker") are one transaction, and so are the end of a program
and the logs that are kept of it. Nobody has to wait for a worker: the next command finds out what
became of it (``look_after``).

What we know of a worker of another tool is its files, and what stands in them is its own word.

Source: spec nbs-compat C5, C10; design section 7. What runs the program: ``tripod.agents``.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from math import inf
from typing import NamedTuple, cast

from tripod.agents import jobs, profiles
from tripod.agents.jobs import LOST_REASON, Attempt, Job, JobHooks, newest, recorded, spool_of_job
from tripod.agents.spec import Parameters, SpawnResult, SpawnSpec
from tripod.agents.spool import RUNNING, Spool
from tripod.errors import (
    BadArgumentError,
    MalformedError,
    NotFoundError,
    RefusedError,
    TooLargeError,
    UnwritableError,
)
from tripod.ledger import Draft
from tripod.ledger.files import open_plain_file
from tripod.ledger.kinds import workers as kinds
from tripod.ledger.kinds.team import team_evidence_kept
from tripod.ledger.locator import LEDGER, nearest_team
from tripod.projections import FILES, WORKERS, TooBigError, UnreadableError, layout
from tripod.projections.workers.format import parse_worker, valid_worker_name, valid_worker_slug
from tripod.projections.workers.tables import FOLDER, worker_of_path
from tripod.team.act import Act, draft_event_for_act
from tripod.team.team import Team

ROLE = "worker"
SELF = "TRIPOD_WORKER"  # the variable by which a worker's program knows its own name
PROFILE = "TRIPOD_WORKER_PROFILE"  # names the profile where none is given; else `claude`
MAX_TASK = 1024 * 1024  # bytes
MAX_LOG = layout.WORKER_LOG.limit  # bytes; of a longer log only digest and size are kept
MAX_LOST = 2  # how often a program is ordered that was never seen to start
MAX_NAME = 247  # bytes; with `.err.log` it is the longest name that a file may have
QUOTED = 2000  # characters of a task or reason in an event
_WAIT_S = 10.0
_TURN_S = 0.02

_ENDS = {"ok": "completed", "killed": "died"}
_TIPS = """
Your task file is {file}: append what you find at its end, and edit nothing else there.
If you cannot go on, say so: tripod worker escalate "why"
"""


def logs_of(name: str) -> tuple[str, str]:
    """Paths of the logs of a worker's program: its standard output, its standard error."""
    front = f"{layout.WORKER_LOG.folder}/{name}"
    return f"{front}.log", f"{front}.err.log"


def judge_worker_name(name: str) -> None:
    """Refuse a name that no file of a worker can have, before a path is made of it."""
    if "/" in name or "\0" in name or len(name.encode()) > MAX_NAME:
        raise NotFoundError(
            f"no worker {name:.80}: `tripod worker list` shows those that are there"
        )


def worker_state(team: Team | Act, name: str) -> str | None:
    """The state of a worker that we run; None: we run no worker of that name."""
    row = team.store.db.execute("SELECT state FROM workers WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def _task_of(team: Team | Act, name: str) -> tuple[str, str]:
    """The task of a worker that we run, and the folder that its program works in."""
    (seq,) = team.store.db.execute("SELECT seq FROM workers WHERE name = ?", (name,)).fetchone()
    body = team.source.body(seq)
    return team.source.content(body["task"]).decode(), body["folder"]


def _no_worker(team: Team, name: str) -> NotFoundError:
    judge_worker_name(name)
    if team.disk.is_file(f"{FOLDER}/{name}.md"):
        return NotFoundError(f"{name} is run by another tool: we know its files alone")
    return NotFoundError(f"no worker {name}: `tripod worker list` shows those that are there")


def _judge_text(name: str, text: str) -> bytes:
    data = text.encode()
    if not text.strip() or len(data) > MAX_TASK:
        raise BadArgumentError(f"{name}: it is empty, or more than {MAX_TASK} bytes")
    return data


def worker_step(act: Act, draft: Draft, event: Draft | None) -> None:
    """Append a step of a worker's life, and the event that tells of it."""
    entry = act.append([draft])[0]
    if event is not None:
        act.append([event._replace(cause=entry.id)])


# What a run means for its worker ----------------------------------------------------------------


class WorkerLife(JobHooks):
    """Appends a worker's steps with those of its run; ``ordered`` is the first of them.

    ``legal`` are the states in which it may be ordered; None stands for no worker yet.
    """

    def __init__(self, ordered: Draft | None = None, legal: Sequence[str | None] = ()) -> None:
        self.ordered = ordered
        self.legal = legal

    def files(self, team: Team, subject: str) -> tuple[str | None, str | None]:
        """Its logs stand beside its task file."""
        team.disk.make_folder(layout.WORKER_LOG.folder)
        out, err = logs_of(subject)
        return team.disk.full(out), team.disk.full(err)

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:
        """It is pending (again); its prompt holds its task, and what it is to go on with."""
        if self.ordered is not None:
            state = worker_state(act, run.subject)
            if state not in self.legal:
                raise RefusedError(f"{run.subject} is {state}: only one that ended can go on")
            _refuse_altered(act, run.subject)
            act.append([self.ordered])
        rows = act.transaction.tables.execute(
            "SELECT seq FROM worker_steps WHERE name = ? AND state = 'pending' ORDER BY seq",
            (run.subject,),
        )
        return tuple(seq for (seq,) in rows)

    def started(self, act: Act, run: Attempt) -> None:
        """It is running, unless it was dismissed meanwhile."""
        name = run.subject
        if worker_state(act, name) == "pending":
            task = f"Task: {_task_of(act, name)[0][:QUOTED]}\nWorker: {name}"
            event = draft_event_for_act(act, "nbs-worker", "worker-spawned", "normal", task)
            body: kinds.WorkerRunning = {
                "name": name,
                "spawn": run.spawn,
                "event": event.body["name"],
            }
            worker_step(act, kinds.RUNNING.draft(body), event)

    def ended(self, act: Act, run: Attempt, result: SpawnResult) -> None:
        """Its program ended."""
        _record_end(act, run, _ENDS.get(result.status, "failed"), result.problem)

    def abandoned(self, act: Act, run: Attempt) -> None:
        """Nobody knows how it ended; if it never began, it is ordered once more."""
        tables = act.transaction.tables
        began = tables.execute("SELECT started FROM agents WHERE spawn = ?", (run.spawn,))
        lost = tables.execute(
            "SELECT count(*) FROM agents WHERE role = ?1 AND subject = ?2 AND state = 'abandoned'"
            " AND seq > (SELECT max(seq) FROM worker_steps WHERE name = ?2 AND state = 'pending')",
            (ROLE, run.subject),
        ).fetchone()[0]
        again = began.fetchone()[0] is None and lost < MAX_LOST
        if not again or worker_state(act, run.subject) != "pending":
            _record_end(act, run, "died", LOST_REASON)


def _record_end(act: Act, run: Attempt, state: str, problem: str) -> None:
    name = run.subject
    event = None
    before = worker_state(act, name)
    if before in ("escalated", "dismissed"):
        state = before
    else:
        source, type_, text = {
            "completed": (name, "task-complete", f"Task {name} completed successfully."),
            "failed": (name, "task-failed", f"Task {name} failed: {problem}"),
            "died": ("nbs-worker", "worker-died", f"Worker {name} died: {problem}"),
        }[state]
        event = draft_event_for_act(act, source, type_, "high", text)
    logs = [log for path in logs_of(name) if (log := _keep_log(act, path)) is not None]
    body: kinds.WorkerEnded = {
        "name": name,
        "spawn": run.spawn,
        "state": cast("kinds.End", state),
        "logs": logs,
        "problem": problem or None,
        "event": None if event is None else event.body["name"],
    }
    worker_step(act, kinds.ENDED.draft(body), event)


def _refuse_altered(act: Act, name: str) -> None:
    """Refuse to go on with a log that is gone, was edited or added to: more would hide that.

    A text of it that was erased since then must stand there as the ledger gives it now.
    """
    tables = act.transaction.tables
    ended = "SELECT max(seq) FROM worker_steps WHERE name = ? AND kind = 'worker.ended'"
    seq = tables.execute(ended, (name,)).fetchone()[0]
    erased = (
        "SELECT f.sha256 FROM redactions AS r JOIN files AS f ON f.path = r.place"
        " WHERE r.place = ? AND r.kind = 'evidence.kept' AND r.entry > ?"
    )
    for log in () if seq is None else act.source.body(seq)["logs"]:
        path = log["path"]
        row = tables.execute(erased, (path, seq)).fetchone()
        found = _log_digest(act, path) if act.disk.is_file(path) else None
        if found is None or found["digest"] not in (log["digest"], row and row[0]):
            what = "is gone" if found is None else "is not what its program left there"
            raise RefusedError(
                f"{path} {what}: going on would hide that, so nothing was recorded. "
                "`tripod verify` tells what is wrong, and `tripod rebuild --evidence` gives a "
                "kept log back; else have a new worker do the rest"
            )


def _keep_log(act: Act, path: str) -> kinds.WorkerLog | None:
    """Keep a log as it is now, as evidence; None if there is no log."""
    try:
        found = act.disk.look(path, MAX_LOG)
    except TooBigError:
        return _log_digest(act, path)
    except UnreadableError:
        return None
    if found is None:
        return None
    data, stat = found
    digest = sha256(data).hexdigest()
    sql = "SELECT sha256 FROM files WHERE path = ?"
    row = act.transaction.tables.execute(sql, (path,)).fetchone()
    if row is None or row[0] != digest:
        mode = None if stat.mode == layout.WORKER_LOG.mode else stat.mode
        act.append([team_evidence_kept(path, data, stat.mtime_us, mode)])
    act.writer.account(path, digest)
    return {"bytes": len(data), "digest": digest, "path": path}


def _log_digest(act: Act, path: str) -> kinds.WorkerLog:
    """Size and digest of a log, read in parts."""
    hashed, size = sha256(), 0
    with open(open_plain_file(act.disk.full(path)), "rb") as file:
        left = os.fstat(file.fileno()).st_size  # it may grow faster than it is read
        while part := file.read(min(left - size, 1 << 20)):
            hashed.update(part)
            size += len(part)
    return {"bytes": size, "digest": hashed.hexdigest(), "path": path}


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

    ``slug`` is the first part of its name (1 to 54 of a-z and 0-9), ``name`` the whole, made up by
    default: with the same task again, nothing is done twice. Its program works in ``folder`` and
    reads ``task``, at most 1 MiB, with ``skill`` in front, on standard input. It is ``command``, or
    else that of ``profile`` (a coding agent's: ``claude``, or a file), which is told of its task
    file as well and takes ``model``, ``effort`` and ``tools``. It is ended after ``timeout_s``, by
    default never. ``actor`` wants it done. ``must_exist``: refuse a program that is not there; else
    the worker fails at once.

    Raises:
        BadArgumentError: an argument breaks its rule.
        NotFoundError: no such profile or program.
        RefusedError: a worker of that name has another task.
    """
    _judge_spawn(slug, folder, task, name)
    folder = os.path.abspath(folder)
    known = profiles.chosen_profile(command, profile, PROFILE, "claude")
    program = known.argv[0]
    path = os.path.join(folder, program) if "/" in program else program
    if must_exist and shutil.which(path) is None:
        raise NotFoundError(f"no program {program!r}: give its path, or put its folder into PATH")
    chosen = name or _fresh_name(team, slug)
    whole = f"{skill.strip()}\n\n{task}" if skill.strip() else task
    file = os.path.relpath(team.disk.full(f"{FOLDER}/{chosen}.md"), folder)
    set_env = {SELF: chosen, "NBS_HANDLE": slug}
    found, root = nearest_team(folder), os.path.abspath(team.root)
    if found is None or os.path.realpath(found) != os.path.realpath(root):  # it may be gone
        set_env[LEDGER] = root  # so that commands of its program find this team and no other
    order = known.order(
        (whole if command else f"{whole}\n{_TIPS.format(file=file)}").encode(),
        cwd=folder,
        set_env=set_env,
        timeout_s=timeout_s,
        parameters=Parameters(
            model=model, effort=effort, tools=None if tools is None else tuple(tools)
        ),
    )
    data = whole.encode()
    body: kinds.WorkerSpawned = {"name": chosen, "slug": slug, "folder": folder, "task": data}
    life = WorkerLife(kinds.SPAWNED.draft(body, actor), (None,))
    _begin_once(team, Job(ROLE, chosen, lambda _: order, actor=actor), life, whole, folder)
    return chosen


def _begin_once(team: Team, job: Job, life: WorkerLife, task: str, folder: str) -> None:
    """Have it begin, unless it did before; another command may be at just that."""
    name = job.subject
    while not jobs.attempt_job(team, job, 1, life):
        if worker_state(team, name) is not None:
            if _task_of(team, name) != (task, folder):
                raise RefusedError(f"{name} is there, and has another task: take another name")
            look_after(team, [name])
            return
        team.store.wait(team.store.head().size, _TURN_S)


def _judge_spawn(slug: str, folder: str, task: str, name: str | None) -> None:
    problem = valid_worker_slug(slug) or (None if name is None else valid_worker_name(name))
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


def _fresh_name(team: Team, slug: str) -> str:
    while True:
        name = f"{slug}-{os.urandom(2).hex()}"
        paths = (f"{FOLDER}/{name}.md", *logs_of(name))
        if worker_state(team, name) is None and not any(map(team.disk.stands, paths)):
            return name


# Looking after them ----------------------------------------------------------------------------


def look_after(team: Team, names: Iterable[str] | None = None) -> None:
    """Find out what became of workers at work, and record it: all of them, or those ``names``.

    An error with one (it cannot be recorded, or other programs did something to a run's files)
    keeps no other from being looked after: the first is raised in the end.
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


def record_ends(team: Team) -> None:
    """Look after all workers for a command that is about another thing: a failure is a warning."""
    try:
        look_after(team)
    except (MalformedError, OSError, RefusedError, TooLargeError, UnwritableError) as error:
        team.warnings.append(f"what became of the workers was not recorded: {error}")


def _look_after(team: Team, name: str, *, dismissed: bool) -> None:
    life = WorkerLife()
    run = newest(team.store.db, ROLE, name)
    if run is None:
        return  # no entry of ours is so: `worker-lifecycle` names it
    if run.state in ("requested", "started"):
        if dismissed:
            jobs.spool_of_job(team, run.spawn).cancel()
        if not jobs.settle_job(team, run, life):
            return
    run = newest(team.store.db, ROLE, name)
    is_open = "SELECT 1 FROM workers WHERE name = ? AND open = 1"
    if run is not None and team.store.db.execute(is_open, (name,)).fetchone():
        spec = jobs.job_order_again(team, run)
        jobs.attempt_job(team, Job(ROLE, name, lambda _: spec), run.attempt + 1, life)


# What becomes of one ---------------------------------------------------------------------------


def continue_(
    team: Team, name: str, message: str, *, actor: str = "unknown", model: str | None = None
) -> None:
    """Have a worker that ended go on, with a message; with its own session, where it has one.

    ``model`` is what its program is asked to use from now on; None leaves that as it was.

    Raises:
        NotFoundError: we run no such worker.
        RefusedError: it is at work, was dismissed, or a log is not what its program left.
        BadArgumentError: the message breaks its rule, or the program's profile takes no model.
    """
    data = _judge_text("message", message)
    look_after(team, [name])
    row = team.store.db.execute("SELECT open FROM workers WHERE name = ?", (name,)).fetchone()
    run = newest(team.store.db, ROLE, name)
    if row is None or run is None:
        raise _no_worker(team, name)
    if row[0]:
        raise RefusedError(
            f"{name} is {worker_state(team, name)}, and its program is at work: wait for it, or "
            "dismiss it"
        )
    before = jobs.job_order_again(team, run)
    asked = before.parameters
    session = jobs.recorded(team, run).answer.session
    if session is not None and "resume" in before.takes:
        given, more = message, {**asked.more, "resume": session}
    else:
        given, more = f"{_task_of(team, name)[0]}\n\n{message}", dict(asked.more)
    if model is not None:
        if "model" not in before.takes:
            raise BadArgumentError(
                f"{name}: the profile of its program takes no model; leave --model out"
            )
        more["model"] = model
    spec: SpawnSpec = replace(before, stdin=given.encode(), parameters=replace(asked, more=more))
    draft = kinds.CONTINUED.draft({"name": name, "message": data}, actor)
    life = WorkerLife(draft, ("completed", "failed", "died", "escalated"))
    job = Job(ROLE, name, lambda _: spec, actor=actor)
    if not jobs.attempt_job(team, job, run.attempt + 1, life):
        raise RefusedError(f"{name}: another command has it go on")


def escalate(team: Team, name: str, reason: str, *, actor: str | None = None) -> None:
    """Say for a worker that it cannot go on; its program says so itself, as a rule.

    Raises:
        NotFoundError: we run no such worker.
        RefusedError: it is not running.
        BadArgumentError: no reason is given, or a long one.
    """
    data = _judge_text("reason", reason)
    with team.act() as act:
        state = worker_state(act, name)
        if state is None:
            raise _no_worker(team, name)
        if state != "running":
            raise RefusedError(f"{name} is {state}: only one that is running can escalate")
        event = draft_event_for_act(act, name, "task-blocked", "critical", reason[:QUOTED])
        body: kinds.WorkerEscalated = {"name": name, "reason": data, "event": event.body["name"]}
        worker_step(act, kinds.ESCALATED.draft(body, actor or name), event)


def dismiss(team: Team, name: str, *, actor: str = "unknown") -> bool:
    """Send a worker away for good; its program is ended. False: it was dismissed before.

    Raises:
        NotFoundError: we run no such worker.
    """
    with team.act() as act:
        state = worker_state(act, name)
        if state is None:
            raise _no_worker(team, name)
        fresh = state != "dismissed"
        if fresh:
            event = draft_event_for_act(
                act, "nbs-worker", "worker-dismissed", "normal", f"Worker: {name}"
            )
            body: kinds.WorkerDismissed = {"name": name, "event": event.body["name"]}
            worker_step(act, kinds.DISMISSED.draft(body, actor), event)
    run = newest(team.store.db, ROLE, name)
    if run is not None and run.state in ("requested", "started"):
        spool = jobs.spool_of_job(team, run.spawn)
        until = time.monotonic() + _WAIT_S
        while not spool.cancel() and spool.look().state == RUNNING and time.monotonic() < until:
            time.sleep(_TURN_S)
        spool.wait()
        look_after(team, [name])
    return fresh


# Reading about workers -------------------------------------------------------------------------


MAX_READ = 256 * 1024 * 1024
_STYLE = re.compile(
    rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]"
)
_LOOK_S = 1.0  # how often a watch asks for workers that began meanwhile


class About(NamedTuple):
    """A worker: its state, whether its program runs, size of its log (None: it has no log).

    ``ours`` says that we run it; of others the state is what its file says.
    """

    name: str
    state: str
    running: bool
    log: int | None
    ours: bool


def every(team: Team) -> list[About]:
    """All workers, by name."""
    ours = {name for (name,) in team.store.db.execute("SELECT name FROM workers")}
    paths = team.store.db.execute("SELECT path FROM files WHERE class = 'worker'")
    names = ours | {worker_of_path(path) for (path,) in paths}
    return [about(team, name) for name in sorted(names)]


def about(team: Team, name: str) -> About:
    """The state of one worker (NotFoundError: no such name)."""
    judge_worker_name(name)
    stat = team.disk.stat(logs_of(name)[0])
    size = None if stat is None else stat.size
    row = team.store.db.execute("SELECT state, open FROM workers WHERE name = ?", (name,))
    found = row.fetchone()
    if found is None:
        claimed = parse_worker(_task_file(team, name)[1]).state
        return About(name, claimed or "unknown", running=False, log=size, ours=False)
    run = newest(team.store.db, ROLE, name) if found[1] else None
    running = run is not None and spool_of_job(team, run.spawn).look().state == RUNNING
    return About(name, found[0], running, size, ours=True)


def _task_file(team: Team, name: str) -> tuple[str, bytes]:
    judge_worker_name(name)
    path = f"{FOLDER}/{name}.md"
    file = WORKERS.render(team.source, path) or FILES.render(team.source, path)
    if file is None:
        raise NotFoundError(f"no worker {name}: `tripod worker list` shows those that are there")
    return path, file.data


def findings(team: Team, name: str) -> str:
    """The findings that a worker wrote into its task file (NotFoundError: no such name)."""
    return WORKERS.log(team.source, *_task_file(team, name))


def answer(team: Team, name: str) -> str:
    """The answer of a worker's program when it last ended (NotFoundError: it has not)."""
    run = newest(team.store.db, ROLE, name)
    if run is None or run.state != "ended":
        raise NotFoundError(f"{name}: no program of a worker of this name has ended")
    return recorded(team, run).answer.text


def session(team: Team, name: str) -> str:
    """The program's own session (NotFoundError: we run no such worker, or it named no session)."""
    run = newest(team.store.db, ROLE, name)
    found = None if run is None or run.state != "ended" else recorded(team, run).answer.session
    if found is None:
        raise NotFoundError(f"{name}: its program named no session")
    return found


def named(team: Team, handle: str) -> str:
    """The name of a worker from its name or its handle (``parser`` for ``parser-a3f1``).

    A handle stands for the newest worker that has it. What is neither is returned as it is, for
    the caller to refuse.
    """
    row = team.store.db.execute(
        "SELECT name FROM workers WHERE name = ?1"
        " OR (length(name) = length(?1) + 5 AND substr(name, 1, length(?1) + 1) = ?1 || '-')"
        " ORDER BY name = ?1 DESC, seq DESC LIMIT 1",
        (handle,),
    ).fetchone()
    return handle if row is None else str(row[0])


def search(team: Team, name: str, pattern: str, context: int) -> Iterator[str]:
    """Lines of a worker's logs that match, with ``context`` lines around; ``--`` between groups.

    Raises:
        BadArgumentError: the pattern is no regular expression.
        NotFoundError: there is no log.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise BadArgumentError(f"{pattern!r} is no regular expression: {error}") from error
    judge_worker_name(name)
    logs = []
    for path in logs_of(name):
        try:
            log = team.disk.read(path, MAX_READ)
        except UnreadableError as error:
            raise NotFoundError(str(error)) from error
        kept = team.store.db.execute("SELECT seq FROM files WHERE path = ?", (path,)).fetchone()
        if log is None and kept is not None:  # one that is gone is read as it was kept
            log = team.source.content(team.source.body(kept[0])["content"])
        if log is not None:
            logs.append(log)
    if not logs:
        raise NotFoundError(f"{name} has no log: `tripod worker list` shows who has")
    printed = False
    for data in logs:
        text = _STYLE.sub(b"", data).decode("utf-8", "replace")
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
        last = -1
        hits = [number for number, line in enumerate(lines) if wanted.search(line)]
        for hit in hits:
            first = max(last + 1, hit - context)
            if (printed and first > last + 1) or (printed and last < 0):
                yield "--"
            stop = min(len(lines), hit + context + 1)
            yield from lines[max(first, last + 1) : stop]
            printed, last = True, max(last, stop - 1)


def watch(team: Team, timeout_s: float | None = None) -> Iterator[About]:
    """Each worker whose program ends, as soon as it does, until none is at work any more.

    Ends early, with workers still at work, when the time is over.
    """
    until = inf if timeout_s is None else time.monotonic() + timeout_s
    over = threading.Semaphore(0)
    watched: set[str] = set()

    def wait(spool: Spool) -> None:
        spool.wait()
        over.release()

    while at_work := _at_work(team):
        for name in at_work:
            run = newest(team.store.db, ROLE, name)
            if run is not None and run.spawn not in watched:
                watched.add(run.spawn)
                # A thread for each: a lock can be waited for, or polled, but not several at once.
                spool = spool_of_job(team, run.spawn)
                threading.Thread(target=wait, args=(spool,), daemon=True).start()
        left = until - time.monotonic()
        if left <= 0:
            return
        if over.acquire(timeout=min(left, _LOOK_S)):
            look_after(team)
            still = _at_work(team)
            yield from (about(team, name) for name in at_work if name not in still)


def _at_work(team: Team) -> list[str]:
    rows = team.store.db.execute("SELECT name FROM workers WHERE open = 1 ORDER BY name")
    return [name for (name,) in rows]
