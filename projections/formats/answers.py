"""Whether an assessment that stands in a chat answers an event that asked for one. Pure.

Programs that know no ledger post an assessment as a message and acknowledge the event; nothing
binds the two but what each says of itself and which came first. Source: seed tripod-architecture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from projections.formats.assessment import Assessment

Span = tuple[str, str]
"""The ids of the first and the last decision of a range."""

Together = Callable[[int, int], bool]
"""Whether nothing but their times tells which of two entries came first."""


class Dated(Protocol):
    """An entry: ``time`` is what it claims in epoch seconds, 0 for nothing."""

    @property
    def seq(self) -> int:
        """Its place in the ledger."""

    @property
    def time(self) -> int:
        """See the class."""

    @property
    def observed(self) -> bool:
        """Whether another program wrote it, and we took it in."""


def came_first(event: Dated, posted: Dated, together: Together) -> bool:
    """Whether the event came first; times are claims, and whoever writes a file chooses them."""
    claimed = event.observed and posted.observed and event.time and posted.time
    if claimed and together(event.seq, posted.seq):
        return event.time <= posted.time
    return event.seq < posted.seq


def span_of(said: Assessment) -> Span | None:
    """The decisions that an assessment says to have reviewed."""
    return (said.first, said.last) if said.first and said.last else None


def overlap(one: Span, other: Span) -> bool:
    """Whether two ranges have a decision's id in common.

    >>> overlap(("D-1", "D-20"), ("D-20", "D-40")), overlap(("D-1", "D-2"), ("D-3", "D-4"))
    (True, False)
    """
    return int(one[0][2:]) <= int(other[1][2:]) and int(other[0][2:]) <= int(one[1][2:])


def answers(
    posted: Dated, said: Assessment, event: Dated, wanted: Span | None, together: Together
) -> bool:
    """Whether a message answers an event: it came later, and is about what that asked for.

    Where either names no range, nothing speaks against it.
    """
    span = span_of(said)
    fits = span is None or wanted is None or overlap(span, wanted)
    return fits and came_first(event, posted, together)
