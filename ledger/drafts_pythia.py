"""Typed constructors of drafts about Pythia's reviews; see ``ledger.drafts``."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from ledger.drafts import Body, content
from ledger.entry import Draft

_STREAM = "pythia"


def pythia_isolated(
    spawn: str,
    level: str,
    hidden: Sequence[str],
    problem: str | None,
    *,
    bwrap: tuple[str, str] | None = None,
) -> Draft:
    """Say how far a run is kept from the chat; ``problem``: why not further.

    ``bwrap`` is the path and the SHA-256 in hex of the program that makes the namespace.
    """
    body: Body = {"hidden": list(hidden), "level": level, "spawn": spawn, "v": 1}
    if bwrap is not None:
        body["bwrap"] = {"path": bwrap[0], "sha256": bwrap[1]}
    if problem is not None:
        body["problem"] = problem
    return Draft("pythia.isolated", _STREAM, "tripod", body)


def pythia_assessed(
    *,
    event: int,
    spawn: str | None,
    first: str,
    last: str,
    decisions: int,
    confidence: str,
    cited: Sequence[str],
    text: str,
    message: int,
    actor: str,
) -> Draft:
    """Answer a checkpoint event; ``spawn`` None: the assessment came from outside."""
    blobs: list[bytes] = []
    data = text.encode()
    body: Body = {
        "cited": list(cited),
        "confidence": confidence,
        "content": content(data, blobs),
        "decisions": decisions,
        "event": event,
        "first": first,
        "last": last,
        "message": message,
        "origin": "recorded" if spawn is None else "run",
        "sha256": sha256(data).hexdigest(),
        "v": 1,
    }
    if spawn is not None:
        body["spawn"] = spawn
    return Draft("pythia.assessed", _STREAM, actor, body, blobs=tuple(blobs))


def pythia_failed(event: int, spawns: Sequence[str], problems: Sequence[str]) -> Draft:
    """Give a checkpoint event up for now; it stays pending."""
    body: Body = {"event": event, "problems": list(problems), "spawns": list(spawns), "v": 1}
    return Draft("pythia.failed", _STREAM, "tripod", body)
