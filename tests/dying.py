"""Dies on the way of an agent's run, where it is told to: for children that are killed there."""

import json
import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tripod.agents import jobs, spool

__all__ = ["RUN", "behind", "die", "die_at"]

RUN = (
    "before the request",
    "behind the request",
    "while it orders",
    "behind the launch",
    "before the start is recorded",
    "behind the start",
    "before the end is recorded",
    "behind the end",
)
"""The steps that every run has."""


def die(*_: object, **__: object) -> None:
    """As if the power went: no handler of ours runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def behind(real: Callable[..., object]) -> Callable[..., None]:
    """The same function, that dies when it is done."""

    def patched(*arguments: object, **options: object) -> None:
        real(*arguments, **options)
        die()

    return patched


def die_at(step: str) -> None:
    """Die at a step of ``RUN``, whoever comes to it first."""
    places: dict[str, tuple[Any, str, Any]] = {
        "before the request": (jobs, "_requested_drafts", die),
        "behind the request": (spool.Spool, "launch", die),
        "while it orders": (spool, "json", SimpleNamespace(dumps=die, loads=json.loads)),
        "behind the launch": (spool.Spool, "launch", behind(spool.Spool.launch)),
        "before the start is recorded": (jobs, "_append_started", die),
        "behind the start": (jobs, "_record_start", behind(jobs._record_start)),
        "before the end is recorded": (jobs, "_ended_draft", die),
        "behind the end": (spool.Spool, "remove", die),
    }
    owner, name, patched = places[step]
    setattr(owner, name, patched)
