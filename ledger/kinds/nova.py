"""Kinds of a Nova run: a question, its turns, its gates and how it ended (spec: nova N11).

What a gate, a critique or a run of cycles comes to can be computed from the turns. It is recorded
all the same, so that the verifier can hold the record against what it computes itself. Numbers
from 0 to 1 are texts of decimals: a body holds no floats.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from tripod.ledger.kinds.base import (
    MARK,
    MARKED,
    Bytes,
    Content,
    Count,
    Erasure,
    Kind,
    Limits,
    Name,
    Sha256,
    digest_of,
)

RunId = Annotated[str, Limits(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
ShortName = Annotated[str, Limits(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
Share = Annotated[str, Limits(pattern=r"^(?:0(?:\.[0-9]{1,4})?|1(?:\.0{1,4})?)$")]
Money = Annotated[str, Limits(pattern=r"^[0-9]{1,16}\.[0-9]{4}$")]
TurnRole = Literal["unpack", "expert", "synthesis", "critique", "revision", "final"]
WORK_EFFORT = r"^WE-[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
WorkEffort = Annotated[str, Limits(pattern=WORK_EFFORT)]
Form = Literal["structured", "json", "front-matter", "line"]


class NovaPersona(TypedDict):
    """A persona as it was when the run began: the bytes of its file.

    ``path`` is the file's place in the folder of the personas: ``core/DCE.md`` coordinates,
    ``core/CAE.md`` criticises, the others are experts. ``role`` is its title there.
    """

    short_name: ShortName
    role: Name
    path: Name
    content: Content
    sha256: Sha256


class NovaConfig(TypedDict):
    """The limits of a run, fixed when it begins.

    ``threshold`` of the gate; ``epsilon`` and ``window`` of convergence; ``rounds`` cycles at most;
    ``concurrency`` experts at once; ``turns`` and ``cost`` (US dollars) that may be spent. ``log``
    is the decision log in which the decision is logged as well, ``work_effort`` the work effort to
    whose ``decisions.md`` it is added.
    """

    threshold: Share
    epsilon: Share
    window: Count
    rounds: Count
    concurrency: Count
    turns: NotRequired[Count | None]
    cost: NotRequired[Money | None]
    log: NotRequired[Name | None]
    work_effort: NotRequired[WorkEffort | None]


class NovaOpened(TypedDict):
    """A run begins: the question, the limits, and the personas in the order of their files.

    With ``parent`` it is a fork: it gets the answers of that run's first ``parent_turn`` turns.
    """

    run: RunId
    question: Bytes
    sha256: Sha256
    config: NovaConfig
    personas: list[NovaPersona]
    parent: NotRequired[RunId | None]
    parent_turn: NotRequired[Count | None]


class NovaEpistemic(TypedDict):
    """What a persona says to know, and how uncertain it is.

    ``missing``: it had to say so and did not, so that 0 and 1 count.
    """

    know: Share
    uncertainty: Share
    source: Literal["stated", "missing"]


class NovaTurnRecorded(TypedDict):
    """A persona spoke: turn ``turn`` of the run, counted from 1, in cycle ``cycle`` (0: before it).

    ``spawn`` is the agent's run that it came from, ``content`` the answer, whole. ``parsed_by`` is
    the form that it was read in, ``parsed`` the fields that were read, in canonical JSON.
    ``mislabelled``: it gave itself this other persona or turn. ``cost`` is what all tries cost.
    """

    run: RunId
    turn: Count
    cycle: Count
    role: TurnRole
    persona: ShortName
    spawn: Name
    content: Bytes
    parsed: Bytes
    parsed_by: Form
    epistemic: NotRequired[NovaEpistemic | None]
    mislabelled: NotRequired[str | None]
    cost: NotRequired[Money | None]


class NovaTurnMissed(TypedDict):
    """A persona gave no turn: all of its tries failed, the last by ``problem``.

    Without an expert the others go on; without the coordinator or the critic the run has failed.
    """

    run: RunId
    cycle: Count
    role: TurnRole
    persona: ShortName
    spawns: list[Name]
    problem: str
    cost: NotRequired[Money | None]


class NovaConverged(TypedDict):
    """The last syntheses (entries, oldest first) differ by less than ``epsilon`` each."""

    run: RunId
    cycle: Count
    syntheses: list[Count]
    epsilon: Share


class NovaGateDecided(TypedDict):
    """The gate of a cycle: ``uncertainty`` of the synthesis in the entry ``synthesis``."""

    run: RunId
    cycle: Count
    synthesis: Count
    uncertainty: Share
    threshold: Share
    decision: Literal["investigate", "proceed"]


class NovaCritiqueDecided(TypedDict):
    """The class of the critique in the entry ``critique``; what the critic calls it counts not."""

    run: RunId
    cycle: Count
    critique: Count
    decision: Literal["critical", "minor", "solid"]


class NovaEscalated(TypedDict):
    """A person has to decide: why, and by what (spec: nova N5.5).

    ``synthesis`` and ``critique`` are the entries of the last ones, ``dissenters`` how many the
    synthesis names, ``critical`` how many critical issues are open. ``turns`` and ``cost`` were
    spent so far.
    """

    run: RunId
    cycle: Count
    reason: Literal["max_rounds", "converged_unresolved", "budget"]
    synthesis: NotRequired[Count | None]
    dissenters: Count
    critique: NotRequired[Count | None]
    critical: Count
    turns: Count
    cost: Money


class HumanDecided(TypedDict):
    """A person decided the run that the entry ``escalated`` had left to one."""

    run: RunId
    escalated: Count
    choice: Literal["accept", "redirect", "close"]
    note: Bytes


class NovaFinalized(TypedDict):
    """A run is over. ``final`` is the entry of the final turn, ``decision`` its text.

    ``confidence`` is its ``know``, ``stated_confidence`` what it called so itself. ``reason`` says
    more of any outcome but ``decided``.
    """

    run: RunId
    outcome: Literal["decided", "human_accepted", "closed", "failed", "cancelled"]
    reason: NotRequired[str | None]
    final: NotRequired[Count | None]
    decision: NotRequired[Bytes | None]
    confidence: NotRequired[Share | None]
    stated_confidence: NotRequired[Share | None]
    cycles: Count
    turns: Count
    cost: Money


class CheckpointNamed(TypedDict):
    """``name`` stands for the ledger up to the entry ``position``, where the run ``run`` ended."""

    name: Annotated[str, Limits(pattern=r"^CKPT-[0-9]{6}-[0-9]{4}(?:-[1-9][0-9]{0,5})?$")]
    position: Count
    run: RunId


def _run(body: Mapping[str, Any]) -> str:
    return str(body["run"])


def _folder(body: Mapping[str, Any]) -> str:
    return f"nova/{body['run']}"


_DIGEST = digest_of(MARK)
_STREAM = ("nova/", _run)
OPENED = Kind(
    "nova.opened",
    NovaOpened,
    *_STREAM,
    erasure=Erasure({"question": MARKED, "sha256": _DIGEST, "personas": []}, _folder),
    line="{question}",
)
TURN = Kind(
    "nova.turn.recorded",
    NovaTurnRecorded,
    *_STREAM,
    erasure=Erasure({"content": MARKED, "parsed": MARKED, "mislabelled": None}, _folder),
    line="turn {turn}, {persona}: {content}",
)
MISSED = Kind(
    "nova.turn.missed", NovaTurnMissed, *_STREAM, erasure=Erasure({"problem": MARK}, _folder)
)
CONVERGED = Kind("nova.converged", NovaConverged, *_STREAM)
GATE = Kind(
    "nova.gate.decided",
    NovaGateDecided,
    *_STREAM,
    line="cycle {cycle}: {decision}, uncertainty {uncertainty}",
)
CRITIQUE = Kind(
    "nova.critique.decided", NovaCritiqueDecided, *_STREAM, line="cycle {cycle}: {decision}"
)
ESCALATED = Kind(
    "nova.escalated",
    NovaEscalated,
    *_STREAM,
    line="a person decides: {reason}",
)
HUMAN = Kind(
    "human.decided",
    HumanDecided,
    *_STREAM,
    erasure=Erasure({"note": MARKED}, _folder),
    line="{choice}: {note}",
)
FINALIZED = Kind(
    "nova.finalized",
    NovaFinalized,
    *_STREAM,
    erasure=Erasure({"decision": MARKED, "reason": MARK, "stated_confidence": None}, _folder),
    line="{outcome}: {decision}",
)
CHECKPOINT = Kind("checkpoint.named", CheckpointNamed, *_STREAM, line="{name}")

KINDS = (
    OPENED, TURN, MISSED, CONVERGED, GATE, CRITIQUE, ESCALATED, HUMAN, FINALIZED, CHECKPOINT,
)  # fmt: skip
