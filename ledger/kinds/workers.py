"""Kinds of workers' lives (spec: nbs-compat C5; seeds: nbs-bus, "Integration with nbs-worker").

Each change of a worker's state is one entry; where the seeds document an event for it, that is the
entry after it, of the name ``event``.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from tripod.ledger.kinds.base import (
    ERASED_FILE,
    MARK,
    MARKED,
    Bytes,
    Count,
    Erasure,
    Kind,
    Name,
    Sha256,
)

End = Literal["completed", "failed", "died", "escalated", "dismissed"]


class WorkerWritten(TypedDict):
    """A worker's task file, whole, as its worker left it."""

    path: Name
    sha256: Sha256
    size: Count
    content: Bytes


class WorkerSpawned(TypedDict):
    """A worker is to do ``task`` in the folder ``folder``: it is *pending*."""

    name: Name
    slug: Name
    folder: Name
    task: Bytes


class WorkerContinued(TypedDict):
    """A worker that had ended is to go on: it is *pending* again."""

    name: Name
    message: Bytes


class WorkerRunning(TypedDict):
    """Its program runs, as the run ``spawn``: it is *running*. Event: ``worker-spawned``."""

    name: Name
    spawn: Name
    event: Name


class WorkerEscalated(TypedDict):
    """It says that it cannot go on: it is *escalated*. Event: ``task-blocked``."""

    name: Name
    reason: Bytes
    event: Name


class WorkerLog(TypedDict):
    """A log as it was when the program ended."""

    path: Name
    digest: Sha256
    bytes: Count


class WorkerEnded(TypedDict):
    """Its program ended: it is *completed*, *failed* or *died*.

    One that was escalated or dismissed before stays that, and has no further event. Events:
    ``task-complete``, ``task-failed``, ``worker-died``.
    """

    name: Name
    spawn: Name
    state: End
    problem: NotRequired[str | None]
    logs: list[WorkerLog]
    event: NotRequired[Name | None]


class WorkerDismissed(TypedDict):
    """Somebody sent it away, for good: it is *dismissed*. Event: ``worker-dismissed``."""

    name: Name
    event: Name


def _worker(body: Mapping[str, Any]) -> str:
    return str(body["name"]).rpartition("/")[2].removesuffix(".md")


def _file(body: Mapping[str, Any]) -> str:
    return f"workers/{body['name']}.md"


_STREAM = ("workers/", _worker)
WRITTEN = Kind(
    "worker.written",
    WorkerWritten,
    "workers/",
    within=lambda body: body["path"].rpartition("/")[2].removesuffix(".md"),
    observed=True,
    erasure=Erasure(ERASED_FILE, place=lambda body: body["path"], is_copy=True),
    line="{path}",
)
SPAWNED = Kind(
    "worker.spawned",
    WorkerSpawned,
    *_STREAM,
    erasure=Erasure({"task": MARKED}, _file),
    line="{name}: {task}",
)
CONTINUED = Kind(
    "worker.continued", WorkerContinued, *_STREAM, erasure=Erasure({"message": MARKED}, _file)
)
RUNNING = Kind("worker.running", WorkerRunning, *_STREAM)
ESCALATED = Kind(
    "worker.escalated", WorkerEscalated, *_STREAM, erasure=Erasure({"reason": MARKED}, _file)
)
ENDED = Kind(
    "worker.ended",
    WorkerEnded,
    *_STREAM,
    erasure=Erasure({"problem": MARK}, _file, is_copy=True),
    line="{name}: {state}: {problem}",
)
DISMISSED = Kind("worker.dismissed", WorkerDismissed, *_STREAM)

KINDS = (WRITTEN, SPAWNED, CONTINUED, RUNNING, ESCALATED, ENDED, DISMISSED)
