"""Typed constructors of drafts about agents' runs; see ``tripod.ledger.kinds.team``.

Kinds of agents' runs: one program, run once (spec: kernel A-1 to A-9, and its section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

from tripod.ledger.entry import Draft
from tripod.ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Sha256
from tripod.ledger.kinds.team import Body, content

KEPT_LIMIT = 16 * 1024 * 1024  # bytes of a program's output; of more only the digest is kept


def agent_requested(
    *,
    spawn: str,
    role: str,
    subject: str,
    attempt: int,
    spec: bytes,
    actor: str,
    key: str | None = None,
) -> Draft:
    """Order a run; ``key`` is the public half of the key that signs how it ended."""
    blobs: list[bytes] = []
    body: Body = {
        "attempt": attempt,
        "role": role,
        "sha256": sha256(spec).hexdigest(),
        "spawn": spawn,
        "spec": content(spec, blobs),
        "subject": subject,
        "v": 1,
    }
    if key is not None:
        body["key"] = key
    return Draft("agent.requested", f"agents/{spawn}", actor, body, blobs=tuple(blobs))


def agent_started(spawn: str, pid: int, start_time: int, argv_sha256: str) -> Draft:
    """Say that the program runs."""
    body: Body = {
        "argv_sha256": argv_sha256,
        "pid": pid,
        "spawn": spawn,
        "start_time": start_time,
        "v": 1,
    }
    return Draft("agent.started", f"agents/{spawn}", "tripod", body)


def agent_ended(
    *,
    spawn: str,
    status: str,
    wall_ms: int,
    stdout: bytes | tuple[str, int],
    stderr: bytes | tuple[str, int],
    unsupported: Sequence[str] = (),
    **more: Any,
) -> Draft:
    """Say how the program ended; of ``more`` the fields that are None are left out.

    What it wrote is given as bytes, or as digest in hex and size where it is too much to keep.
    """
    blobs: list[bytes] = []
    body: Body = {
        "spawn": spawn,
        "status": status,
        "stderr": _kept(stderr, blobs),
        "stdout": _kept(stdout, blobs),
        "unsupported": list(unsupported),
        "v": 1,
        "wall_ms": wall_ms,
    }
    body |= {name: value for name, value in more.items() if value is not None}
    return Draft("agent.ended", f"agents/{spawn}", "tripod", body, blobs=tuple(blobs))


def _kept(data: bytes | tuple[str, int], blobs: list[bytes]) -> Body:
    if isinstance(data, tuple):
        digest, size = data
        return {"bytes": size, "digest": digest}
    digest = sha256(data).hexdigest()
    return {"bytes": len(data), "content": content(data, blobs), "digest": digest}


def agent_abandoned(spawn: str, reason: str) -> Draft:
    """Give a run up whose end nobody can know."""
    body: Body = {"reason": reason, "spawn": spawn, "v": 1}
    return Draft("agent.abandoned", f"agents/{spawn}", "tripod", body)


def delivered(spawn: str, channel: str, data: bytes, sources: Sequence[int]) -> Draft:
    """Say what an agent is given, and which entries' text stands in it."""
    blobs: list[bytes] = []
    body: Body = {
        "channel": channel,
        "content": content(data, blobs),
        "sha256": sha256(data).hexdigest(),
        "sources": list(sources),
        "spawn": spawn,
        "v": 1,
    }
    return Draft("delivered", f"agents/{spawn}", "tripod", body, blobs=tuple(blobs))


# Agent ------------------------------------------------------------------------------------------


class AgentRequested(BodyModel):
    """A program is to be run: committed before it is, so that no run goes unrecorded.

    ``spawn`` names the run; it is derived from what is done (role, subject, attempt, spec).
    ``subject`` is what the run is for: a worker's name, an event's. ``spec`` is the order in
    canonical JSON: command line, names of the environment, limits; of secrets only their digests.
    ``key`` is the public half of the one-time key with which the wrapper signs how the run ended.
    """

    spawn: Name
    role: Name
    subject: Name
    attempt: Count
    spec: Content
    sha256: Sha256
    key: Sha256 | None = None


class AgentStarted(BodyModel):
    """The program runs: as ``pid``, which began at ``start_time`` (clock ticks since boot).

    ``argv_sha256`` is the digest of its command line, each word ended by a NUL.
    """

    spawn: Name
    pid: Count
    start_time: Count
    argv_sha256: Sha256


class Kept(Closed):
    """What a program wrote: SHA-256 of its ``bytes`` bytes.

    ``content`` is left out where it was too much to keep.
    """

    digest: Sha256
    bytes: Count
    content: Content | None = None


class AgentEnded(BodyModel):
    """The program ended, and how: exit code 0 alone is no success, its answer must be there too.

    ``cost`` is in US dollars with four decimals, ``session`` names the program's own session,
    ``unsupported`` are parameters that the program has no way to take.
    """

    spawn: Name
    status: Literal[
        "ok", "nonzero", "timeout", "killed", "empty_output", "bad_output", "not_started"
    ]
    problem: str | None = None
    exit_code: Count | None = None
    signal: Count | None = None
    wall_ms: Count
    stdout: Kept
    stderr: Kept
    session: str | None = None
    usage: dict[str, Count] | None = None
    cost: str | None = None
    unsupported: list[str]


class AgentAbandoned(BodyModel):
    """Nobody runs the program any more, and how it ended is not known; it cannot start later."""

    spawn: Name
    reason: str


class Delivered(BodyModel):
    """Bytes that an agent was given, by which channel.

    ``sources`` are the entries whose text was put in: what isolation is judged by.
    """

    spawn: Name
    channel: Literal["prompt", "tool_result", "file"]
    content: Content
    sha256: Sha256
    sources: list[Count]
