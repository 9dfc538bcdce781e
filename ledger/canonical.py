r"""Canonical JSON: one spelling for every value (RFC 8785 in a restricted profile). Pure.

The profile: objects with ASCII keys, arrays, strings of valid Unicode, booleans, and integers
within ±(2^53-1). No floats and no null: a field without a value is left out. In this profile a
plain sorted, compact encoder writes exactly the bytes of RFC 8785.

>>> format_value({"b": 1, "a": ["é", True]})
b'{"a":["\xc3\xa9",true],"b":1}'
>>> parse_value(b'{"a": 1}')
Traceback (most recent call last):
    ...
tripod.ledger.errors.MalformedError: not canonical JSON: the same value is written {"a":1}
"""

from __future__ import annotations

from typing import TypeAlias

import orjson

from tripod.ledger.errors import MalformedError

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value]"

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


def format_value(value: object) -> bytes:
    """Write ``value`` in its one canonical spelling.

    It does not look for floats or null (``check_value`` does): the callers on the hot path build
    their values from typed constructors that cannot hold any.

    Raises:
        MalformedError: the value cannot be written (an integer too large, a lone surrogate).
    """
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise MalformedError(f"this value has no canonical JSON: {error}") from error


def format_ordered(value: dict[str, object]) -> bytes:
    """Canonical bytes of a flat object whose keys are sorted already: half the price.

    Raises:
        MalformedError: as ``format_value``.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise MalformedError(f"this value has no canonical JSON: {error}") from error


def parse_value(data: bytes) -> Value:
    """Read canonical JSON, and nothing else: ``format_value(parse_value(b)) == b``.

    Raises:
        MalformedError: not JSON, not canonical, or outside the profile.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedError(f"not JSON: {error}") from error
    check_value(value)
    again = format_value(value)
    if again != data:
        shown = again[:200].decode("utf-8", "replace")
        raise MalformedError(f"not canonical JSON: the same value is written {shown}")
    return value  # type: ignore[no-any-return]


def check_value(value: object, depth: int = 0) -> None:
    """Check that ``value`` lies in the profile.

    Raises:
        MalformedError: a float, null, a key that is not ASCII, an integer out of range, or
            more than 32 objects and arrays in each other.
    """
    kind = type(value)
    if kind is str or kind is bool:
        return
    if kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]
            raise MalformedError(f"integer out of ±(2^53-1): {value}")
    elif depth >= MAX_DEPTH and kind in (dict, list):
        raise MalformedError(f"nested deeper than {MAX_DEPTH}")
    elif kind is dict:
        for key, inner in value.items():  # type: ignore[attr-defined]
            if type(key) is not str or not key.isascii():
                raise MalformedError(f"object key is not ASCII text: {key!r}")
            check_value(inner, depth + 1)
    elif kind is list:
        for inner in value:  # type: ignore[attr-defined]
            check_value(inner, depth + 1)
    else:
        raise MalformedError(
            f"{kind.__name__} has no place in canonical JSON here (no floats, no null)"
        )
