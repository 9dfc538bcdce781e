"""Typed constructors of drafts about workers; see ``tripod.ledger.kinds.team``.

Kinds of workers' lives (spec: nbs-compat C5; seeds: nbs-bus, "Integration with nbs-worker").

Each change of a worker's state is one entry; where the seeds document an event for it, that is the
entry after it, of the name ``event``.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from tripod.ledger.entry import Draft
from tripod.ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Sha256
from tripod.ledger.kinds.team import Body, content


def _draft(kind: str, actor: str, body: Body, blobs: Sequence[bytes] = ()) -> Draft:
    return Draft(kind, f"workers/{body['name']}", actor, body | {"v": 1}, blobs=tuple(blobs))


def worker_spawned(*, name: str, slug: str, folder: str, task: str, actor: str) -> Draft:
    """Have a worker do ``task`` in ``folder``."""
    blobs: list[bytes] = []
    task_ = content(task.encode(), blobs)
    body: Body = {"folder": folder, "name": name, "slug": slug, "task": task_}
    return _draft("worker.spawned", actor, body, blobs)


def worker_continued(name: str, message: str, actor: str) -> Draft:
    """Have a worker that ended go on."""
    blobs: list[bytes] = []
    body: Body = {"message": content(message.encode(), blobs), "name": name}
    return _draft("worker.continued", actor, body, blobs)


def worker_running(name: str, spawn: str, event: str) -> Draft:
    """Say that its program runs."""
    return _draft("worker.running", "tripod", {"event": event, "name": name, "spawn": spawn})


def worker_escalated(name: str, reason: str, event: str, actor: str) -> Draft:
    """Say that it cannot go on, and why."""
    blobs: list[bytes] = []
    body: Body = {"event": event, "name": name, "reason": content(reason.encode(), blobs)}
    return _draft("worker.escalated", actor, body, blobs)


def worker_ended(
    *,
    name: str,
    spawn: str,
    state: str,
    logs: Sequence[tuple[str, str, int]],
    problem: str | None = None,
    event: str | None = None,
) -> Draft:
    """Say that its program ended; ``logs`` are path, SHA-256 in hex and size of each."""
    listed = [{"bytes": size, "digest": digest, "path": path} for path, digest, size in logs]
    body: Body = {"logs": listed, "name": name, "spawn": spawn, "state": state}
    given = {"event": event, "problem": problem}
    body |= {field: value for field, value in given.items() if value is not None}
    return _draft("worker.ended", "tripod", body)


def worker_dismissed(name: str, event: str, actor: str) -> Draft:
    """Send it away."""
    return _draft("worker.dismissed", actor, {"event": event, "name": name})


def evidence_kept(path: str, data: bytes, mtime_us: int, mode: int | None) -> Draft:
    """Keep a log as its program left it; ``mode`` where it differs from 0644."""
    blobs: list[bytes] = []
    observed: Body = {"claim": "mtime", "mtime_us": mtime_us, "path": path}
    if mode is not None:
        observed["mode"] = mode
    body: Body = {
        "content": content(data, blobs),
        "observed": observed,
        "path": path,
        "sha256": sha256(data).hexdigest(),
        "size": len(data),
        "v": 1,
    }
    return Draft("evidence.kept", f"files/{path}", "tripod", body, blobs=tuple(blobs))


# Worker -----------------------------------------------------------------------------------------


class WorkerSpawned(BodyModel):
    """A worker is to do ``task`` in the folder ``folder``: it is *pending*."""

    name: Name
    slug: Name
    folder: Name
    task: Content


class WorkerContinued(BodyModel):
    """A worker that had ended is to go on: it is *pending* again."""

    name: Name
    message: Content


class WorkerRunning(BodyModel):
    """Its program runs, as the run ``spawn``: it is *running*. Event: ``worker-spawned``."""

    name: Name
    spawn: Name
    event: Name


class WorkerEscalated(BodyModel):
    """It says that it cannot go on: it is *escalated*. Event: ``task-blocked``."""

    name: Name
    reason: Content
    event: Name


class WorkerLog(Closed):
    """A log as it was when the program ended."""

    path: Name
    digest: Sha256
    bytes: Count


class WorkerEnded(BodyModel):
    """Its program ended: it is *completed*, *failed* or *died*.

    One that was escalated or dismissed before stays that, and has no further event. Events:
    ``task-complete``, ``task-failed``, ``worker-died``.
    """

    name: Name
    spawn: Name
    state: Literal["completed", "failed", "died", "escalated", "dismissed"]
    problem: str | None = None
    logs: list[WorkerLog]
    event: Name | None = None


class WorkerDismissed(BodyModel):
    """Somebody sent it away, for good: it is *dismissed*. Event: ``worker-dismissed``."""

    name: Name
    event: Name
