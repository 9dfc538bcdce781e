"""Finds the events that ask for Pythia's review, and what they ask for. Shared by checks. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from projections.formats.assessment import parse_checkpoint_payload
from projections.projection import content_bytes
from verify.evidence import Evidence

EVENT = "pythia-checkpoint"
SCRIBE = "scribe"  # who publishes the events that follow from a decision


@dataclass
class Asked:
    """A checkpoint event: its time in seconds, its range where its payload gives one.

    ``count`` is how many decisions its payload counts, ``scribe``: the team's Scribe published it.
    """

    seq: int
    time: int
    observed: bool
    range: tuple[str, str] | None
    scribe: bool
    count: int | None = None
    used: bool = False


def asked(evidence: Evidence) -> list[Asked]:
    """All checkpoint events in order; there is one for as many decisions as the interval says."""
    events = []
    named = {SCRIBE, *(name for (name,) in evidence.query("SELECT scribe FROM team"))}
    for (seq,) in evidence.query("SELECT seq FROM asked ORDER BY seq"):
        body = evidence.body(seq)
        parsed = None
        try:
            text = content_bytes(evidence.source, body["payload"]).decode()
            parsed = parse_checkpoint_payload(text)
        except (LookupError, TypeError, ValueError):
            pass  # an event without a payload asks for what is new
        count, *span = parsed or (None,)
        us = body.get("us", 0)
        scribe = body.get("source") in named
        events.append(
            Asked(
                seq,
                us // 1_000_000,
                "observed" in body,
                (span[0], span[1]) if span else None,
                scribe,
                count,
            )
        )
    return events
