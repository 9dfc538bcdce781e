"""Kinds of agents' runs: one program, run once (spec: kernel A-1 to A-9, and its section 3)."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from tripod.ledger.kinds.base import (
    MARK,
    MARKED,
    Bytes,
    Content,
    Count,
    Erasure,
    Kind,
    Name,
    RunIsolation,
    Sha256,
    digest_of,
)

KEPT_LIMIT = 16 * 1024 * 1024  # bytes of a program's output; of more only the digest is kept


class AgentRequested(TypedDict):
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
    spec: Bytes
    sha256: Sha256
    key: NotRequired[Sha256 | None]


class AgentStarted(TypedDict):
    """The program runs: as ``pid``, which began at ``start_time`` (clock ticks since boot).

    ``argv_sha256`` is the digest of its command line, each word ended by a NUL.
    """

    spawn: Name
    pid: Count
    start_time: Count
    argv_sha256: Sha256


class Kept(TypedDict):
    """What a program wrote: SHA-256 of its ``bytes`` bytes.

    ``content`` is left out where it was too much to keep.
    """

    digest: Sha256
    bytes: Count
    content: NotRequired[Content | None]


class AgentEnded(TypedDict):
    """The program ended, and how: exit code 0 alone is no success, its answer must be there too.

    ``cost`` is in US dollars with four decimals, ``session`` names the program's own session,
    ``unsupported`` are parameters that the program has no way to take.
    """

    spawn: Name
    status: Literal[
        "ok", "nonzero", "timeout", "killed", "empty_output", "bad_output", "not_started"
    ]
    problem: NotRequired[str | None]
    exit_code: NotRequired[Count | None]
    signal: NotRequired[Count | None]
    wall_ms: Count
    stdout: Kept
    stderr: Kept
    session: NotRequired[str | None]
    usage: NotRequired[dict[str, Count] | None]
    cost: NotRequired[str | None]
    unsupported: list[str]


class AgentAbandoned(TypedDict):
    """Nobody runs the program any more, and how it ended is not known; it cannot start later."""

    spawn: Name
    reason: str


class Delivered(TypedDict):
    """Bytes that an agent was given, by which channel.

    ``sources`` are the entries whose text was put in: what isolation is judged by.
    """

    spawn: Name
    channel: Literal["prompt", "tool_result", "file"]
    content: Bytes
    sha256: Sha256
    sources: list[Count]


class AgentIsolated(RunIsolation):
    """How far the run ``spawn`` was kept from the team; in the transaction that orders it."""


_DIGEST = digest_of(MARK)
_OUTPUT = {"bytes": len(MARK), "content": MARKED, "digest": _DIGEST}


def _run(body: Mapping[str, Any]) -> str:
    return str(body["spawn"])


def _folder(body: Mapping[str, Any]) -> str:
    return f"agents/{body['spawn']}"


_STREAM = ("agents/", _run)
REQUESTED = Kind(
    "agent.requested",
    AgentRequested,
    *_STREAM,
    erasure=Erasure(
        {"spec": MARKED, "sha256": _DIGEST, "key": None}, _folder, texts=("spec",), is_copy=True
    ),
    line="{role} {subject}, attempt {attempt}: {spawn}",
)
STARTED = Kind("agent.started", AgentStarted, *_STREAM)
ENDED = Kind(
    "agent.ended",
    AgentEnded,
    *_STREAM,
    erasure=Erasure(
        {"problem": MARK, "stdout": _OUTPUT, "stderr": _OUTPUT, "session": None, "unsupported": []},
        _folder,
        is_copy=True,
    ),
    line="{spawn}: {status}: {problem}",
)
ABANDONED = Kind("agent.abandoned", AgentAbandoned, *_STREAM)
DELIVERED = Kind(
    "delivered",
    Delivered,
    *_STREAM,
    erasure=Erasure({"content": MARKED, "sha256": _DIGEST}, _folder, is_copy=True),
)
ISOLATED = Kind("agent.isolated", AgentIsolated, *_STREAM)

KINDS = (REQUESTED, STARTED, ENDED, ABANDONED, DELIVERED, ISOLATED)
