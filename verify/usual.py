"""What the pass over the rows asks of an entry of the usual shape, as expressions over bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import orjson

from ledger.enrolment import CHANGES
from ledger.kinds import KINDS
from verify.checks import kinds_known
from verify.shapes import pattern

FRONT = re.compile(
    rb'\{"actor":"[^"\\\x00-\x1f]*+","at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)",'
    rb'(?:"auth":"([0-9a-f]{64})",)?+"body":"([0-9a-f]{64})",(?:"cause":"([^"\\\x00-\x1f]*+)",)?'
).match
"""A header in front of its id, with nothing to escape: time, auth, body, cause."""


class Usual(NamedTuple):
    """A kind as the fast path needs it."""

    fits: Callable[[bytes], object]
    name: bytes  # with the NUL that stands behind it in a commitment
    place: str
    below: bool


_PLACED = ("ledger.opened", "ledger.adopted", "ledger.forked-from", *CHANGES)
"""Kinds that are judged by their place or their id: never on the fast path."""


def stands(kind: str, stream: str, place: str, body: bytes) -> bool:
    """Whether an entry whose body fits its model stands in the stream that the body names."""
    if place == "chat/":
        # Within a text the quotes would be escaped, and no other field has this name.
        return stream[:5] == place and b'"channel":' + orjson.dumps(stream[5:]) in body
    return stream == kinds_known.stream_of(kind, orjson.loads(body))


def _usual() -> dict[object, Usual]:
    usual: dict[object, Usual] = {}
    for kind in KINDS:
        expression = pattern(kind.model)
        if expression is not None and kind.name not in _PLACED:
            fits = re.compile(expression).fullmatch
            name = kind.name.encode() + b"\x00"
            usual[kind.name] = Usual(fits, name, kind.stream, kind.stream.endswith("/"))
    return usual


USUAL = _usual()
"""By the kind's name; a kind that is not here is judged by its rules alone."""
