r"""Recognises by its bytes a body that is canonical and fits the model of its kind (fast path).

``pattern`` reads a model once and writes a regular expression over canonical JSON: sorted keys, no
spaces, strings in their one spelling, whole numbers. A body that matches, and is UTF-8, has exactly
one value, and that value fits the model; so nothing has to be decoded (a million bodies: pydantic
4.8 s, decoding and writing them again 1.5 s, matching 0.8 s). It only ever says yes: what does not
match is decoded and judged by the rules themselves, so a new sort of field costs time, not truth.
A property test holds it against ``parse_value`` and pydantic.

>>> from tripod.ledger.kinds.bus import ACKED_ALL
>>> from tripod.ledger.kinds.models import model_of
>>> pattern(model_of(ACKED_ALL))[:60]
b'\\{"count":(?:0|[1-9][0-9]{0,14}|[1-8][0-9]{15})(?:,"source":'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import orjson
from pydantic import BaseModel, StringConstraints

from tripod.ledger.kinds.base import Content
from tripod.ledger.kinds.models import model_of, part_model
from tripod.ledger.kinds.registry import BY_NAME, KINDS

_PLAIN = rb'[^"\\\x00-\x1f]'
_ESCAPE = rb'\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))'
TEXT = rb'"' + _PLAIN + rb"*+(?:" + _ESCAPE + _PLAIN + rb'*+)*+"'
"""A string as canonical JSON writes it: each character in the one way that it has."""

_COUNT = 2**53 - 1
_COUNT_DIGITS = rb"(?:0|[1-9][0-9]{0,14}|[1-8][0-9]{15})"  # all below 9e15, and so below 2^53
_SIMPLE = re.compile(r"\^([A-Za-z0-9\[\]{},-]+)\$")


def pattern(model: type[BaseModel]) -> bytes | None:
    """The expression for a model's canonical bytes; None where it cannot be written."""
    if model is part_model(Content):
        return _content()
    decorators = model.__pydantic_decorators__
    if decorators.model_validators or decorators.field_validators:
        return None
    parts: list[tuple[bytes, bool]] = []
    for name, field in sorted(model.model_fields.items()):
        inner = _field(field.annotation, list(field.metadata))
        if inner is not None:
            parts.append((b'"%b":%b' % (name.encode(), inner), field.is_required()))
        elif field.is_required():
            return None
    first = next((at for at, (_, required) in enumerate(parts) if required), None)
    if first is None:
        return None
    # Commas stand after what comes before the first required field, in front of what comes after.
    before = b"".join(b"(?:%b,)?" % part for part, _ in parts[:first])
    after = b"".join(
        b",%b" % part if required else b"(?:,%b)?" % part for part, required in parts[first + 1 :]
    )
    return rb"\{" + before + parts[first][0] + after + rb"\}"


def _content() -> bytes:
    """Bytes as text, as base64, or as a blob: exactly one of the three."""
    blob = rb'\{"sha256":"[0-9a-f]{64}","size":' + _COUNT_DIGITS + rb"\}"
    return rb'(?:\{"(?:text|base64)":' + TEXT + rb"\}|" + blob + rb")"


def _field(annotation: Any, metadata: list[Any]) -> bytes | None:
    """The expression for one field's value."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        forms = [form for form in get_args(annotation) if form is not NoneType]
        return _field(forms[0], metadata) if len(forms) == 1 else None
    if hasattr(annotation, "__metadata__"):
        return _field(annotation.__origin__, [*metadata, *annotation.__metadata__])
    if annotation is str:
        return _text(metadata)
    if annotation is int:
        return _integer(metadata)
    if metadata:
        return None
    if origin is Literal:
        return _literal(get_args(annotation))
    if origin is list:
        item = _field(get_args(annotation)[0], [])
        return None if item is None else rb"\[(?:%b(?:,%b)*+)?\]" % (item, item)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pattern(annotation)
    return None


def _text(metadata: list[Any]) -> bytes | None:
    if not metadata:
        return TEXT
    (rule, *others) = metadata
    if others or not isinstance(rule, StringConstraints):
        return None
    if rule.strip_whitespace or rule.to_lower or rule.to_upper:
        return None
    if rule.pattern is not None:
        simple = _SIMPLE.fullmatch(str(rule.pattern))
        bounded = rule.min_length or rule.max_length
        return b'"%b"' % simple[1].encode() if simple and not bounded else None
    # Counted in bytes and without escapes: never more characters than the model allows.
    low, high = rule.min_length or 0, rule.max_length
    if low > 1:
        return None  # a character may take several bytes
    bound = b"" if high is None else b"%d" % high
    return b'"' + _PLAIN + b"{%d,%b}" % (low, bound) + b'"'


def _integer(metadata: list[Any]) -> bytes | None:
    rules = [one for rule in metadata for one in getattr(rule, "metadata", [rule])]
    limits = {type(rule).__name__: rule for rule in rules}
    low = getattr(limits.pop("Ge", None), "ge", None)
    high = getattr(limits.pop("Le", None), "le", None)
    if limits or type(low) is not int or type(high) is not int:
        return None
    if low == high >= 0:
        return b"%d" % high
    if low != 0:
        return None
    if high == _COUNT:
        return _COUNT_DIGITS
    # Numbers with fewer digits than the limit has.
    return rb"(?:0|[1-9][0-9]{0,%d})" % (len(str(high)) - 2) if high > 9 else rb"0"


def _literal(values: tuple[Any, ...]) -> bytes | None:
    if not all(type(value) in (str, int) for value in values):
        return None
    written = [f'"{v}"' if isinstance(v, str) else str(v) for v in values]
    return b"(?:%b)" % b"|".join(re.escape(text).encode() for text in written)


# Usual ------------------------------------------------------------------------------------------

FRONT = re.compile(
    rb'\{"actor":"[^"\\\x00-\x1f]*+","at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)",'
    rb'(?:"auth":"([0-9a-f]{64})",)?+"body":"([0-9a-f]{64})",(?:"cause":"([^"\\\x00-\x1f]*+)",)?'
).match
"""A header in front of its id, with nothing to escape: time, auth, body, cause."""


class FastPath(NamedTuple):
    """A kind as the fast path needs it."""

    fits: Callable[[bytes], object]
    name: bytes  # with the NUL that stands after it in a commitment
    place: str
    below: bool


def stands(kind: str, stream: str, place: str, body: bytes) -> bool:
    """Whether an entry whose body fits its model stands in the stream that the body names."""
    if place == "chat/":
        # Within a text the quotes would be escaped, and no other field has this name.
        return stream[:5] == place and b'"channel":' + orjson.dumps(stream[5:]) in body
    return stream == BY_NAME[kind].stream_of(orjson.loads(body))


def _usual() -> dict[object, FastPath]:
    usual: dict[object, FastPath] = {}
    for kind in KINDS:
        expression = pattern(model_of(kind))
        if expression is not None and not kind.is_placed:
            fits = re.compile(expression).fullmatch
            name = kind.name.encode() + b"\x00"
            usual[kind.name] = FastPath(fits, name, kind.stream, kind.stream.endswith("/"))
    return usual


USUAL = _usual()
"""By the kind's name; a kind that is not here is judged by its rules alone."""
