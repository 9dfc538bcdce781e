"""Kinds of Pythia's reviews (seeds: tripod-architecture; design section 8).

The kinds of agents' runs record how Pythia's program ran; these record what it means for the team.
"""

from typing import Literal, NotRequired, TypedDict

from tripod.ledger.kinds.base import (
    MARK,
    MARKED,
    Bytes,
    Count,
    DecisionId,
    Erasure,
    Kind,
    Name,
    RunIsolation,
    Sha256,
    digest_of,
)

Confidence = Literal["high", "medium", "low"]


class PythiaIsolated(RunIsolation):
    """How far the run ``spawn`` was kept from the chat; in the transaction that orders it."""


class PythiaAssessed(TypedDict):
    """The checkpoint event of the entry ``event`` is answered, by the chat message ``message``.

    ``run``: by the run ``spawn``. ``recorded``: it came from outside, and nothing is known of what
    its author had read. ``first`` to ``last`` are the decisions that it says to have reviewed,
    ``decisions`` how many, ``cited`` those that it names. ``content`` is what was written, whole.
    """

    event: Count
    spawn: NotRequired[Name | None]
    origin: Literal["run", "recorded"]
    first: DecisionId
    last: DecisionId
    decisions: Count
    confidence: Confidence
    cited: list[DecisionId]
    content: Bytes
    sha256: Sha256
    message: Count


class PythiaFailed(TypedDict):
    """No run at the checkpoint event of the entry ``event`` gave an assessment: it stays pending.

    ``spawns`` are the runs, ``problems`` what was wrong with the last of them.
    """

    event: Count
    spawns: list[Name]
    problems: list[str]


ISOLATED = Kind("pythia.isolated", PythiaIsolated, "pythia")
"""What ``agent.isolated`` is for other roles."""
ASSESSED = Kind(
    "pythia.assessed",
    PythiaAssessed,
    "pythia",
    erasure=Erasure(
        {"content": MARKED, "sha256": digest_of(MARK)},
        place=lambda body: f"agents/{body['spawn']}" if "spawn" in body else "scribe/log.md",
    ),
    line="{first} to {last}: {content}",
    merge="shared",
)
FAILED = Kind(
    "pythia.failed",
    PythiaFailed,
    "pythia",
    erasure=Erasure({"problems": [MARK]}, place=lambda _: "scribe/log.md"),
)

KINDS = (ISOLATED, ASSESSED, FAILED)
