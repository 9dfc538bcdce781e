"""Typed constructors of drafts about agents' runs; see ``ledger.drafts``."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from ledger.drafts import Body, content
from ledger.entry import Draft

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
