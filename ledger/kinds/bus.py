"""Kinds of the event queue (spec: nbs-compat B).

Typed constructors of the drafts of claims and readers; ``tripod.ledger.kinds.team`` says what they
are.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tripod.ledger.entry import Draft
from tripod.ledger.kinds.base import BodyModel, Content, Count, Name, Observed


class Published(BodyModel):
    """An event was put into the queue, as the file ``name`` of ``size`` bytes.

    ``us`` is the time in that name (0 where none stands there).
    The timestamp and the dedup key of the file follow from these; where an observed file has
    others, they stand in its raw bytes. ``to`` is the handle that it addresses, where it does: the
    file says that in words alone.
    """

    name: Name
    us: Count
    source: str
    type: str
    priority: Literal["critical", "high", "normal", "low"]
    size: Count
    payload: Content | None = None
    to: Name | None = None
    observed: Observed | None = None


class Acked(BodyModel):
    """An event was acknowledged: its file moved to ``processed/``. The actor did it.

    Observed with a path in the queue: another program deleted the file there.
    """

    name: Name
    observed: Observed | None = None


class AckedAll(BodyModel):
    """All events that were pending (of ``source``, where given) were acknowledged at once.

    Those of the team's own queue; of the one that was added as ``queue``, where given.
    """

    count: Count
    source: str | None = None
    queue: Name | None = None


class Pruned(BodyModel):
    """Files of processed events were deleted, ``bytes`` in all; the entries remain."""

    names: list[Name]
    bytes: Count
    observed: Observed | None = None


class Claimed(BodyModel):
    """``by`` took the pending event ``name``, which the entry ``event`` published.

    Until the time ``until`` (µs since 1970) nobody else can take it. ``attempt`` counts who began
    on it: from 2 on somebody before did not end.
    """

    name: Name
    event: Count
    by: Name
    until: Count
    attempt: Annotated[int, Field(ge=1, le=2**53 - 1)]


class Released(BodyModel):
    """A claim on the event ``name`` ended before its time: any reader can take it."""

    name: Name
    event: Count


class Seen(BodyModel):
    """A reader was shown every event that was published up to the entry ``up_to``."""

    reader: Name
    up_to: Count


# Drafts bus -------------------------------------------------------------------------------------


def claimed(*, name: str, event: int, by: str, until: int, attempt: int) -> Draft:
    """Take the event that the entry ``event`` published, until ``until`` (µs since 1970)."""
    body = {
        "attempt": attempt,
        "by": by,
        "event": event,
        "name": name,
        "until": until,
        "v": 1,
    }
    return Draft("bus.claimed", "bus", by, body)


def released(*, name: str, event: int, actor: str) -> Draft:
    """Give an event back."""
    return Draft("bus.released", "bus", actor, {"event": event, "name": name, "v": 1})


def seen(reader: str, up_to: int) -> Draft:
    """Note that a reader was shown all events up to the entry ``up_to``."""
    return Draft("bus.seen", "bus", reader, {"reader": reader, "up_to": up_to, "v": 1})
