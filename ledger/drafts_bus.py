"""Typed constructors of the drafts of claims and readers; ``ledger.drafts`` says what they are."""

from __future__ import annotations

from ledger.entry import Draft


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
