"""Finds Pythia's assessments among the messages of the chats. Pure; shared by two checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from projections.formats.assessment import Assessment, parse_assessment
from projections.projection import content_bytes
from verify.evidence import Evidence
from verify.sources import RENDER_ERRORS


class Posted(NamedTuple):
    """An assessment as it was posted; ``time`` in epoch seconds, 0 where the line carries none."""

    seq: int
    channel: str
    number: int
    handle: str
    time: int
    observed: bool
    said: Assessment


def assessments(evidence: Evidence) -> Iterator[Posted]:
    """Every message that has the form of an assessment, in the order of the entries."""
    for (seq,) in evidence.source.db.execute("SELECT seq FROM spoken ORDER BY seq"):
        body = evidence.body(seq)
        try:
            text = content_bytes(evidence.source, body["text"]).decode()
            said = parse_assessment(text)
            if said is not None:
                yield Posted(
                    seq, body["channel"], body["index"], body["handle"], body["time"],
                    "observed" in body, said,
                )  # fmt: skip
        except RENDER_ERRORS:
            continue  # a body that is no message: `kinds-known` and `bodies-present` name it


def together(evidence: Evidence, one: int, other: int) -> bool:
    """Whether nothing but their times tells which came first: they were taken in by one append."""
    if evidence.past(one) and evidence.past(other):
        return True
    return evidence.at(one) == evidence.at(other)
