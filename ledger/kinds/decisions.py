"""Kinds of the decision logs (spec: nbs-compat B10; seeds: nbs-scribe, log format)."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from tripod.ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Observed, Sha256

LogName = Annotated[
    str,
    StringConstraints(
        max_length=200,
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,40}/)?[^./\x00-\x1f][^/\x00-\x1f]*\.md$",
    ),
]
"""The file name of a log that is not ``log.md``; after that of the folder, where it was added."""
DecisionId = Annotated[str, StringConstraints(pattern=r"^D-[0-9]{1,16}$")]


class Reference(Closed):
    """A place in a chat; bound to a message (index, seq, leaf hash) if it was made through us."""

    file: str
    line: Count
    channel: Name | None = None
    index: Count | None = None
    seq: Count | None = None
    leaf: Sha256 | None = None


class LogBegun(BodyModel):
    """A decision log began, with these bytes in front of its first entry.

    ``file`` names the log in this kind and the others of the log: absent, it is ``log.md``.
    """

    header: Content
    file: LogName | None = None
    observed: Observed | None = None


class Decided(BodyModel):
    """A decision. ``number`` is its place in its log, from 1; it survives any redaction.

    ``supersedes`` is the earlier decision that it refers to; ``status`` says what became of that.
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
    supersedes: str | None = None
    refs: list[Reference]
    file: LogName | None = None
    observed: Observed | None = None


class Noted(BodyModel):
    """A piece of a log that is no decision (a malformed heading, a text put in by hand)."""

    problem: str
    file: LogName | None = None
    observed: Observed


class LogRotated(BodyModel):
    """The first ``count`` pieces of a log went to the file ``scribe/<archive>``."""

    count: Count
    archive: Name
    archive_header: Content
    header: Content
    file: LogName | None = None
    observed: Observed
