"""What a run of its program means for a worker: a step of its life, the event, its logs kept.

How the program ends decides the state, not what it wrote into its task file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from typing import cast

from tripod.agents.jobs import LOST_REASON, Attempt, RunHooks
from tripod.agents.spec import SpawnResult
from tripod.errors import NotFoundError, RefusedError
from tripod.ledger import Draft
from tripod.ledger.files import open_plain
from tripod.ledger.kinds.team import evidence_kept
from tripod.ledger.kinds.workers import ENDED, RUNNING, End
from tripod.projections import WORKER_LOG, TooBigError, UnreadableError, content_bytes
from tripod.team.act import Act, draft_event
from tripod.team.team import Team

ROLE = "worker"
MAX_LOG = WORKER_LOG.limit  # bytes; of a longer log only digest and size are kept
MAX_LOST = 2  # how often a program is ordered that was never seen to start
MAX_NAME = 247  # bytes; with `.err.log` it is the longest name that a file may have
QUOTED = 2000  # characters of a task or reason in an event

_ENDS = {"ok": "completed", "killed": "died"}
_EVENTS = {
    "completed": ("task-complete", "high"),
    "failed": ("task-failed", "high"),
    "died": ("worker-died", "high"),
}


def logs_of(name: str) -> tuple[str, str]:
    """Paths of what a worker's program prints, and of what it says beside that."""
    front = f"{WORKER_LOG.folder}/{name}"
    return f"{front}.log", f"{front}.err.log"


def judge_name(name: str) -> None:
    """Refuse a name that no file of a worker can have, before a path is made of it.

    Raises:
        NotFoundError: no worker is called so.
    """
    if "/" in name or "\0" in name or len(name.encode()) > MAX_NAME:
        raise NotFoundError(
            f"no worker {name:.80}: `tripod worker list` shows those that are there"
        )


class Life(RunHooks):
    """Appends a worker's steps with those of its run; ``ordered`` is the first of them."""

    def __init__(self, ordered: Draft | None = None, legal: Sequence[str | None] = ()) -> None:
        self.ordered = ordered
        self.legal = legal

    def files(self, team: Team, subject: str) -> tuple[str | None, str | None]:
        """Its logs stand beside its task file."""
        team.disk.make_folder(WORKER_LOG.folder)
        out, err = logs_of(subject)
        return team.disk.full(out), team.disk.full(err)

    def requested(self, act: Act, run: Attempt) -> tuple[int, ...]:
        """It is pending (again); its prompt holds its task, and what it is to go on with."""
        if self.ordered is not None:
            state = state_in(act, run.subject)
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
        """It is running, if nobody dismissed it meanwhile."""
        name = run.subject
        if state_in(act, name) == "pending":
            task = f"Task: {_task(act, name)[:QUOTED]}\nWorker: {name}"
            event = draft_event(act, "nbs-worker", "worker-spawned", "normal", task)
            running = RUNNING.draft({"name": name, "spawn": run.spawn, "event": event.body["name"]})
            step(act, running, event)

    def ended(self, act: Act, run: Attempt, result: SpawnResult) -> None:
        """Its program ended."""
        _end(act, run, _ENDS.get(result.status, "failed"), result.problem)

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
        if not again or state_in(act, run.subject) != "pending":
            _end(act, run, "died", LOST_REASON)


def state_in(act: Act, name: str) -> str | None:
    """The state of a worker that we run; None: we run none of that name."""
    row = act.transaction.tables.execute(
        "SELECT state FROM workers WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else str(row[0])


def _task(act: Act, name: str) -> str:
    row = act.transaction.tables.execute(
        "SELECT seq FROM workers WHERE name = ?", (name,)
    ).fetchone()
    return content_bytes(act.source, act.source.body(row[0])["task"]).decode()


def step(act: Act, draft: Draft, event: Draft | None) -> None:
    """A step and the event that tells of it."""
    entry = act.append([draft])[0]
    if event is not None:
        act.append([event._replace(cause=entry.id)])


def _end(act: Act, run: Attempt, state: str, problem: str) -> None:
    name = run.subject
    event = None
    before = state_in(act, name)
    if before in ("escalated", "dismissed"):
        state = before
    else:
        words = {
            "completed": f"Task {name} completed successfully.",
            "failed": f"Task {name} failed: {problem}",
            "died": f"Worker {name} died: {problem}",
        }
        type_, priority = _EVENTS[state]
        source = "nbs-worker" if state == "died" else name
        event = draft_event(act, source, type_, priority, words[state])
    logs = [log for path in logs_of(name) if (log := _keep_log(act, path)) is not None]
    ended = ENDED.draft(
        {
            "name": name,
            "spawn": run.spawn,
            "state": cast("End", state),
            "logs": [
                {"bytes": size, "digest": digest, "path": path} for path, digest, size in logs
            ],
            "problem": problem or None,
            "event": None if event is None else event.body["name"],
        }
    )
    step(act, ended, event)


def _refuse_altered(act: Act, name: str) -> None:
    """A log that is not what its program left stays as it is: more of it would hide that.

    What was erased since then stands there as the ledger gives it now.

    Raises:
        RefusedError: a log is gone, was edited or added to; nothing was recorded.
    """
    tables = act.transaction.tables
    ended = "SELECT max(seq) FROM worker_steps WHERE name = ? AND kind = 'worker.ended'"
    seq = tables.execute(ended, (name,)).fetchone()[0]
    erased = (
        "SELECT f.sha256 FROM redactions AS r JOIN files AS f ON f.path = r.place"
        " WHERE r.place = ? AND r.kind = 'evidence.kept' AND r.entry > ?"
    )
    for log in () if seq is None else act.source.body(seq)["logs"]:
        path, wanted = log["path"], log["digest"]
        row = tables.execute(erased, (path, seq)).fetchone()
        found = _digest_of(act, path) if act.disk.is_file(path) else None
        if found is None or found[1] not in (wanted, row and row[0]):
            what = "is gone" if found is None else "is not what its program left there"
            raise RefusedError(
                f"{path} {what}: going on would hide that, so nothing was recorded. "
                "`tripod verify` tells what is wrong, and `tripod rebuild --evidence` gives a "
                "kept log back; else have a new worker do the rest"
            )


def _keep_log(act: Act, path: str) -> tuple[str, str, int] | None:
    """Keep a log as it is now; its path, digest and size, None if absent."""
    try:
        found = act.disk.look(path, MAX_LOG)
    except TooBigError:
        return _digest_of(act, path)
    except UnreadableError:
        return None
    if found is None:
        return None
    data, stat = found
    digest = sha256(data).hexdigest()
    row = act.transaction.tables.execute(
        "SELECT sha256 FROM files WHERE path = ?", (path,)
    ).fetchone()
    if row is None or row[0] != digest:
        mode = None if stat.mode == WORKER_LOG.mode else stat.mode
        act.append([evidence_kept(path, data, stat.mtime_us, mode)])
    act.writer.account(path, digest)
    return path, digest, len(data)


def _digest_of(act: Act, path: str) -> tuple[str, str, int]:
    hashed, size = sha256(), 0
    with open(open_plain(act.disk.full(path)), "rb") as file:
        left = os.fstat(file.fileno()).st_size  # it may grow faster than it is read
        while part := file.read(min(left - size, 1 << 20)):
            hashed.update(part)
            size += len(part)
    return path, hashed.hexdigest(), size
