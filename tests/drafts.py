"""Short ways to the drafts that many tests append; each is one call of ``Kind.draft``."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias, cast

from tripod.ledger.entry import Draft
from tripod.ledger.kinds import (
    agents,
    bus,
    chat,
    decisions,
    pythia,
    redaction,
    team,
    trust,
    workers,
)
from tripod.ledger.kinds.base import content

Output: TypeAlias = bytes | tuple[str, int]


def opened(
    *, project: str, origin: str, created: str, scribe: str, events: str, chat: str
) -> Draft:
    """The first entry of a ledger."""
    return team.OPENED.draft(
        {
            "origin": origin,
            "project": project,
            "created": created,
            "scribe": scribe,
            "events": events,
            "chat": chat,
        }
    )


def displaced(path: str, reason: str, data: bytes | None) -> Draft:
    """Bytes that stood where ours belong."""
    return team.DISPLACED.draft({"path": path, "reason": reason, "content": data})


def published(
    *,
    name: str,
    us: int,
    source: str,
    type_: str,
    priority: bus.Priority,
    payload: str,
    size: int,
) -> Draft:
    """An event."""
    return bus.PUBLISHED.draft(
        {
            "name": name,
            "us": us,
            "source": source,
            "type": type_,
            "priority": priority,
            "size": size,
            "payload": payload.encode() or None,
        }
    )


def acked(name: str, actor: str) -> Draft:
    """An acknowledgement."""
    return bus.ACKED.draft({"name": name}, actor)


def pruned(names: Sequence[str], size: int, actor: str) -> Draft:
    """Processed events whose files are deleted."""
    return bus.PRUNED.draft({"names": list(names), "bytes": size}, actor)


def channel_created(channel: str, actor: str) -> Draft:
    """A chat that begins."""
    return chat.CREATED.draft({"channel": channel}, actor)


def sent(*, channel: str, index: int, handle: str, time: int, text: str) -> Draft:
    """A message."""
    return chat.SENT.draft(
        {"channel": channel, "index": index, "handle": handle, "time": time, "text": text.encode()}
    )


def rotated(*, channel: str, count: int, size: int, archive: str, header: bytes) -> Draft:
    """Lines of a chat that go into an archive."""
    return chat.ROTATED.draft(
        {"channel": channel, "count": count, "size": size, "archive": archive, "header": header}
    )


def decided(body: Mapping[str, Any], actor: str) -> Draft:
    """A decision."""
    return decisions.LOGGED.draft(cast("decisions.Decided", body), actor)


def seal_made(note: str, size: int, reason: trust.SealReason) -> Draft:
    """A seal."""
    return trust.SEAL_MADE.draft({"note": note, "size": size, "reason": reason})


def anchor_received(
    method: trust.AnchorMethod, size: int, root: bytes, name: str, receipt: bytes
) -> Draft:
    """The receipt of an anchor."""
    return trust.ANCHOR_RECEIVED.draft(
        {"method": method, "size": size, "root": root.hex(), "name": name, "receipt": receipt}
    )


def enrolled(handle: str, number: int, vkey: str, note: str) -> Draft:
    """An actor's key that comes into force."""
    return trust.ACTOR_ENROLLED.draft(
        {"handle": handle, "vkey": vkey, "number": number, "note": note}
    )


def redacted(
    *, seq: int, kind: str, cause: str, reason: str, by: str, keep: dict[str, Any]
) -> Draft:
    """The erasure of an entry's body."""
    return redaction.REDACTED.draft(
        {"seq": seq, "kind": kind, "reason": reason, "by": by, "keep": keep}, cause=cause
    )


def agent_requested(
    *, spawn: str, role: str, subject: str, attempt: int, spec: bytes, actor: str
) -> Draft:
    """The order of a run."""
    return agents.REQUESTED.draft(
        {
            "spawn": spawn,
            "role": role,
            "subject": subject,
            "attempt": attempt,
            "spec": spec,
            "sha256": sha256(spec).hexdigest(),
        },
        actor,
    )


def agent_started(spawn: str, pid: int, start_time: int, argv_sha256: str) -> Draft:
    """A program that runs."""
    return agents.STARTED.draft(
        {"spawn": spawn, "pid": pid, "start_time": start_time, "argv_sha256": argv_sha256}
    )


def agent_ended(
    *, spawn: str, status: str, wall_ms: int, stdout: Output, stderr: Output, **more: Any
) -> Draft:
    """A program that ended."""
    blobs: list[bytes] = []
    body = {
        "spawn": spawn,
        "status": status,
        "wall_ms": wall_ms,
        "stderr": kept(stderr, blobs),
        "stdout": kept(stdout, blobs),
        "unsupported": [],
    }
    return agents.ENDED.draft(cast("agents.AgentEnded", body | more), blobs=blobs)


def kept(data: Output, blobs: list[bytes]) -> agents.Kept:
    """What a program wrote: bytes, or digest in hex and size of what was too much to keep."""
    if isinstance(data, tuple):
        return {"bytes": data[1], "digest": data[0]}
    digest = sha256(data).hexdigest()
    return {"bytes": len(data), "content": content(data, blobs), "digest": digest}


def delivered(spawn: str, channel: str, data: bytes, sources: Sequence[int]) -> Draft:
    """Bytes that an agent was given."""
    body = {
        "spawn": spawn,
        "channel": channel,
        "content": data,
        "sha256": sha256(data).hexdigest(),
        "sources": list(sources),
    }
    return agents.DELIVERED.draft(cast("agents.Delivered", body))


def pythia_isolated(
    spawn: str,
    level: str,
    hidden: Sequence[str],
    problem: str | None,
    *,
    bwrap: tuple[str, str] | None = None,
) -> Draft:
    """How far a run is kept from the chat."""
    maker = bwrap and {"path": bwrap[0], "sha256": bwrap[1]}
    body = {
        "spawn": spawn,
        "level": level,
        "hidden": list(hidden),
        "problem": problem,
        "bwrap": maker,
    }
    return pythia.ISOLATED.draft(cast("pythia.PythiaIsolated", body))


def pythia_assessed(*, spawn: str | None, text: str, actor: str, **more: Any) -> Draft:
    """An assessment; ``spawn`` None: it came from outside."""
    data = text.encode()
    body = {
        "spawn": spawn,
        "origin": "recorded" if spawn is None else "run",
        "content": data,
        "sha256": sha256(data).hexdigest(),
    }
    return pythia.ASSESSED.draft(cast("pythia.PythiaAssessed", body | more), actor)


def pythia_failed(event: int, spawns: Sequence[str], problems: Sequence[str]) -> Draft:
    """A checkpoint that got no assessment."""
    return pythia.FAILED.draft({"event": event, "spawns": list(spawns), "problems": list(problems)})


def worker_spawned(*, name: str, slug: str, folder: str, task: str, actor: str) -> Draft:
    """A worker."""
    return workers.SPAWNED.draft(
        {"name": name, "slug": slug, "folder": folder, "task": task.encode()}, actor
    )


def worker_continued(name: str, message: str, actor: str) -> Draft:
    """A worker that goes on."""
    return workers.CONTINUED.draft({"name": name, "message": message.encode()}, actor)


def worker_running(name: str, spawn: str, event: str) -> Draft:
    """A worker that runs."""
    return workers.RUNNING.draft({"name": name, "spawn": spawn, "event": event})


def worker_ended(
    *,
    name: str,
    spawn: str,
    state: str,
    logs: Sequence[tuple[str, str, int]],
    problem: str | None = None,
    event: str | None = None,
) -> Draft:
    """A worker whose program ended; ``logs`` are path, SHA-256 in hex and size of each."""
    return workers.ENDED.draft(
        {
            "name": name,
            "spawn": spawn,
            "state": cast("workers.End", state),
            "logs": [
                {"path": path, "digest": digest, "bytes": size} for path, digest, size in logs
            ],
            "problem": problem,
            "event": event,
        }
    )


def worker_dismissed(name: str, event: str, actor: str) -> Draft:
    """A worker that is sent away."""
    return workers.DISMISSED.draft({"name": name, "event": event}, actor)
