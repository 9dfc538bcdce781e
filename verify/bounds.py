"""Between which two moments an entry was appended, as far as others than this host say so. Pure.

- *not before*: the newest receipt that stands in the ledger before the entry and names a time. A
  signature that nobody could know in advance stands under it, so what follows was written later.
- *not after*: the oldest head outside that covers the entry and names a time. What it covers was
  there by then.

The host's own ``at`` lies between them, or it is false. What each time is worth, its source says: a
witness whose key the policy knows, or a commit, whose date is its author's own word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from verify.known import Known


class Bound(NamedTuple):
    """A moment (seconds since 1970), who names it, and whether a key that is trusted signed it."""

    seconds: int
    by: str
    signed: bool


class Bounds(NamedTuple):
    """The best of each side, of signed times and of claims; None where there is none."""

    not_before: Bound | None
    not_before_signed: Bound | None
    not_after: Bound | None
    not_after_signed: Bound | None


def times(known: Known) -> list[Bound]:
    """Every moment that a head names: its own date, and the cosignatures that count."""
    found = []
    if known.seconds is not None:
        found.append(Bound(known.seconds, known.where, known.stamped))
    for cosigned in known.cosigned:
        by = f"the witness {cosigned.key.name} ({known.where})"
        found.append(Bound(cosigned.seconds, by, signed=True))
    return found


def bounds(seq: int, agreeing: Iterable[Known]) -> Bounds:
    """The bounds of the entry ``seq``; ``agreeing`` are heads that are those of this ledger.

    What a source's clock may be off by, as it says itself, widens them.
    """
    before: list[Bound] = []
    after: list[Bound] = []
    for known in agreeing:
        if known.seq is not None and known.seq < seq:
            before += [one._replace(seconds=one.seconds - known.give) for one in times(known)]
        if known.seal.size > seq:
            after += [one._replace(seconds=one.seconds + known.give) for one in times(known)]
    return Bounds(
        max(before, default=None),
        max((bound for bound in before if bound.signed), default=None),
        min(after, default=None),
        min((bound for bound in after if bound.signed), default=None),
    )
