"""Kinds of the event queue (spec: nbs-compat B)."""

from typing import Annotated, Literal, NotRequired, TypedDict

from tripod.ledger.kinds.base import MARKED, Bytes, Count, Erasure, Kind, Limits, Name

Priority = Literal["critical", "high", "normal", "low"]


class Published(TypedDict):
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
    priority: Priority
    size: Count
    payload: NotRequired[Bytes | None]
    to: NotRequired[Name | None]


class Acked(TypedDict):
    """An event was acknowledged: its file moved to ``processed/``. The actor did it.

    Observed with a path in the queue: another program deleted the file there.
    """

    name: Name


class AckedAll(TypedDict):
    """All events that were pending (of ``source``, where given) were acknowledged at once.

    Those of the team's own queue; of the one that was added as ``queue``, where given.
    """

    count: Count
    source: NotRequired[str | None]
    queue: NotRequired[Name | None]


class Pruned(TypedDict):
    """Files of processed events were deleted, ``bytes`` in all; the entries remain."""

    names: list[Name]
    bytes: Count


class Claimed(TypedDict):
    """``by`` took the pending event ``name``, which the entry ``event`` published.

    Until the time ``until`` (µs since 1970) nobody else can take it. ``attempt`` counts from 1:
    a larger number says that an earlier holder did not finish.
    """

    name: Name
    event: Count
    by: Name
    until: Count
    attempt: Annotated[int, Limits(1, 2**53 - 1)]


class Released(TypedDict):
    """A claim on the event ``name`` ended before its time: any reader can take it."""

    name: Name
    event: Count


class Seen(TypedDict):
    """A reader was shown every event that was published up to the entry ``up_to``."""

    reader: Name
    up_to: Count


PUBLISHED = Kind(
    "bus.published",
    Published,
    "bus",
    actor="source",
    is_speech=True,
    observed=False,
    erasure=Erasure(
        {"payload": MARKED, "size": None}, place=lambda body: f"events/{body['name']}", is_copy=True
    ),
    line="{priority} {type}: {payload}",
    merge="shared",
)
ACKED = Kind("bus.acked", Acked, "bus", observed=False, line="{name}", merge="shared")
ACKED_ALL = Kind("bus.acked-all", AckedAll, "bus", merge="shared")
PRUNED = Kind("bus.pruned", Pruned, "bus", observed=False)
CLAIMED = Kind("bus.claimed", Claimed, "bus", actor="by")
RELEASED = Kind("bus.released", Released, "bus")
SEEN = Kind("bus.seen", Seen, "bus", actor="reader")

KINDS = (PUBLISHED, ACKED, ACKED_ALL, PRUNED, CLAIMED, RELEASED, SEEN)
