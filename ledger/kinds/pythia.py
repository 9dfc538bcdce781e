"""Kinds of Pythia's reviews (seeds: tripod-architecture; design section 8).

The kinds of agents' runs record how Pythia's program ran; these record what it means for the team.

Typed constructors of drafts about Pythia's reviews; see ``tripod.ledger.kinds.team``.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import StringConstraints

from tripod.ledger.entry import Draft
from tripod.ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Sha256
from tripod.ledger.kinds.team import Body, content

DecisionId = Annotated[str, StringConstraints(pattern=r"^D-[0-9]{1,16}$")]


class Maker(Closed):
    """The program that makes a namespace, as it was then."""

    path: Name
    sha256: Sha256


class PythiaIsolated(BodyModel):
    """How far the run ``spawn`` was kept from the chat; in the transaction that orders it.

    ``namespace``: it ran where the files of ``hidden`` (paths from the team directory) do not
    exist. ``folder``: it was told no path, and nothing kept it from looking; ``problem`` says why
    there was no namespace. ``bwrap`` is the program that made it.
    """

    spawn: Name
    level: Literal["namespace", "folder"]
    hidden: list[Name]
    problem: str | None = None
    bwrap: Maker | None = None


class PythiaAssessed(BodyModel):
    """The checkpoint event of the entry ``event`` is answered, by the chat message ``message``.

    ``run``: by the run ``spawn``. ``recorded``: it came from outside, and nothing is known of what
    its author had read. ``first`` to ``last`` are the decisions that it says to have reviewed,
    ``decisions`` how many, ``cited`` those that it names. ``content`` is what was written, whole.
    """

    event: Count
    spawn: Name | None = None
    origin: Literal["run", "recorded"]
    first: DecisionId
    last: DecisionId
    decisions: Count
    confidence: Literal["high", "medium", "low"]
    cited: list[DecisionId]
    content: Content
    sha256: Sha256
    message: Count


class PythiaFailed(BodyModel):
    """No run at the checkpoint event of the entry ``event`` gave an assessment: it stays pending.

    ``spawns`` are the runs, ``problems`` what was wrong with the last of them.
    """

    event: Count
    spawns: list[Name]
    problems: list[str]


# Drafts pythia ----------------------------------------------------------------------------------


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
