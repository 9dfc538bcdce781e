"""Kinds of agents' runs: one program, run once (spec: kernel A-1 to A-9, and its section 3)."""

from __future__ import annotations

from typing import Literal

from ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Sha256


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
