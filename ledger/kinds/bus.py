"""Kinds of the event queue (spec: nbs-compat B)."""

from __future__ import annotations

from typing import Literal

from ledger.kinds.base import BodyModel, Content, Count, Name, Observed

__all__ = ["Acked", "AckedAll", "Pruned", "Published"]


class Published(BodyModel):
    """An event was put into the queue, as the file ``name`` of ``size`` bytes.

    ``us`` is the time in that name (0 where none stands there).
    The timestamp and the dedup key of the file follow from these; where an observed file has
    others, they stand in its raw bytes.
    """

    name: Name
    us: Count
    source: str
    type: str
    priority: Literal["critical", "high", "normal", "low"]
    size: Count
    payload: Content | None = None
    observed: Observed | None = None


class Acked(BodyModel):
    """An event was acknowledged: its file moved to ``processed/``. The actor did it."""

    name: Name
    observed: Observed | None = None


class AckedAll(BodyModel):
    """All events that were pending (of ``source``, where given) were acknowledged at once."""

    count: Count
    source: str | None = None


class Pruned(BodyModel):
    """Files of processed events were deleted, ``bytes`` in all; the entries remain."""

    names: list[Name]
    bytes: Count
    observed: Observed | None = None
