"""Kinds of the decision logs (spec: nbs-compat B10; seeds: nbs-scribe, log format)."""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from tripod.ledger.kinds.base import (
    MARK,
    MARKED,
    Bytes,
    Count,
    DecisionId,
    Erasure,
    Kind,
    Limits,
    Name,
    Sha256,
    text,
)

LogName = Annotated[
    str,
    Limits(
        high=200, pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,40}/)?[^./\x00-\x1f][^/\x00-\x1f]*\.md$"
    ),
]
"""The file name of a log that is not ``log.md``; after that of the folder, where it was added."""


class Reference(TypedDict):
    """A place in a chat; bound to a message (index, seq, leaf hash) if it was made through us.

    ``origin``: the replica that recorded the message, where that is another one, and ``origin_seq``
    the number of the entry there; ``seq`` and ``leaf`` are of the entry that keeps it here.
    """

    file: str
    line: Count
    origin: NotRequired[Name | None]
    origin_seq: NotRequired[Count | None]
    channel: NotRequired[Name | None]
    index: NotRequired[Count | None]
    seq: NotRequired[Count | None]
    leaf: NotRequired[Sha256 | None]


class LogBegun(TypedDict):
    """A decision log began, with these bytes in front of its first entry.

    ``file`` names the log in this kind and the others of the log: absent, it is ``log.md``.
    """

    header: Bytes
    file: NotRequired[LogName | None]


class Decided(TypedDict):
    """A decision. ``number`` is its place in its log, from 1; it survives any redaction.

    ``supersedes`` is the earlier decision that it refers to; if that is a peer's,
    ``supersedes_made`` is the replica and the id there. ``status`` says what became of it.
    ``no_ref`` is the reason why it refers to no message, where that was given. ``source`` is the
    text as it stood in a file of another form, from which it was taken.
    """

    id: DecisionId
    number: Count
    title: str
    chat_ref: str
    participants: str
    artefacts: str
    risk_tags: str
    status: str
    rationale: str
    supersedes: NotRequired[str | None]
    supersedes_made: NotRequired[Name | None]
    refs: list[Reference]
    no_ref: NotRequired[Name | None]
    source: NotRequired[Bytes | None]
    file: NotRequired[LogName | None]


class Noted(TypedDict):
    """A piece of a log that is no decision (a malformed heading, a text put in by hand)."""

    problem: str
    file: NotRequired[LogName | None]


class LogRotated(TypedDict):
    """The first ``count`` pieces of a log went to the file ``scribe/<archive>``."""

    count: Count
    archive: Name
    archive_header: Bytes
    header: Bytes
    file: NotRequired[LogName | None]


_HEADER = text(f"# Decision Log\n\n{MARK}\n")


def _log(body: Mapping[str, Any]) -> str:
    return f"scribe/{body.get('file', 'log.md')}"


BEGUN = Kind(
    "log.begun",
    LogBegun,
    "decisions",
    observed=False,
    erasure=Erasure({"header": _HEADER}, _log),
    merge="shared",
)
LOGGED = Kind(
    "decision.logged",
    Decided,
    "decisions",
    observed=False,
    erasure=Erasure(
        {
            "title": MARK,
            "chat_ref": None,
            "participants": None,
            "artefacts": None,
            "risk_tags": None,
            "status": None,
            "rationale": MARK,
            "supersedes": None,
            "supersedes_made": None,
            "refs": None,
            "no_ref": MARK,
            "source": MARKED,
        },
        _log,
        texts=("title", "rationale", "no_ref", "source"),
    ),
    line="{id} {title}",
    merge="shared",
)
NOTED = Kind(
    "log.noted",
    Noted,
    "decisions",
    observed=True,
    erasure=Erasure(
        {"problem": MARK, "observed.raw": text(f"\n{MARK}\n")}, _log, texts=(), is_copy=True
    ),
    line="{problem}",
    merge="shared",
)
ROTATED = Kind(
    "log.rotated",
    LogRotated,
    "decisions",
    observed=True,
    erasure=Erasure({"archive_header": _HEADER, "header": _HEADER}, _log),
)

KINDS = (BEGUN, LOGGED, NOTED, ROTATED)
