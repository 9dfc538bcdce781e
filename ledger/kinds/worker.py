"""Kinds of workers' lives (spec: nbs-compat C5; seeds: nbs-bus, "Integration with nbs-worker").

Each change of a worker's state is one entry; where the seeds document an event for it, that is the
entry behind it, of the name ``event``.
"""

from __future__ import annotations

from typing import Literal

from ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Sha256


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
