"""Lines of a file to records, each with its number and its place; what is no record is a gap. Pure.

One record a line. A line that is no JSON (cut off, two records in one, bytes of zero, bytes that
are no UTF-8) is a gap with its number, and what can be read of it is searched as a text.

Of a key that stands twice in an object the last counts, as in the programs that write and read
these files. Looking for such keys costs more than reading, and shows nothing: no program writes
them, and a person who can change a line can also take it away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from tripod.verify.sessions.items import Gap, Given, SessionRecord, made

MAX_LINE = 16 * 1024 * 1024
"""Bytes of a line; a longer one is not read. Spec: the limit of memory is 120 MB."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " "}
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair. orjson refuses one without the other; programs write such lines.

It also refuses a number that is too large to be one."""

_DEEP = 64  # characters of a damaged line that a message shows


class DamagedLine(NamedTuple):
    """A line that is no record: why, and its text as far as it can be read."""

    gap: Gap
    text: Given | None


def session_records(lines: Iterable[bytes]) -> Iterator[SessionRecord | DamagedLine]:
    """The records of a file in its order.

    ``lines`` are its lines with their ends; one over ``MAX_LINE`` may come in parts of any length
    over it, as ``readline(MAX_LINE + 1)`` gives them. An empty line is skipped.
    """
    number = offset = 0
    long = False
    loads = orjson.loads
    for line in lines:
        begin, size = offset, len(line)
        offset += size
        if long or size > MAX_LINE:
            is_rest, long = long, not line.endswith(b"\n")
            if is_rest:
                continue
        number += 1
        value: Any = None
        if size <= MAX_LINE:
            try:
                value = loads(line)
            except orjson.JSONDecodeError:
                value = None  # and the error is gone, and with it a copy of the line
        if type(value) is dict:
            found = made(SessionRecord, (number, begin, value))
            line, value = b"", None  # noqa: PLW2901  nobody holds a long line while it is judged
            yield found
            del found
        else:
            odd = _odd_line(line, number, begin)
            line, value = b"", None  # noqa: PLW2901
            if odd is not None:
                yield odd
            del odd


def _odd_line(line: bytes, number: int, offset: int) -> SessionRecord | DamagedLine | None:
    """What a line holds that is too long, or no object to orjson; None where it is empty."""
    if len(line) > MAX_LINE:
        what = f"line {number} has over {MAX_LINE // 1024 // 1024} MiB and was not read"
        return DamagedLine(Gap("damaged", number, what), None)
    what, is_more = "no JSON object", False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as error:
        what, why = "no JSON", error.msg
        what = "nested too deep" if "depth" in why or "ecursion" in why else what
        is_more = "infinity" in why or bool(_HALF.search(line))
    # The error is gone here, and with it a copy of the line.
    if line.isspace():
        return None
    if what == "no JSON" and is_more:
        try:
            value = json.loads(line.decode(), parse_constant=_no_constant)
            if isinstance(value, dict):
                return SessionRecord(number, offset, whole_text(value))
        except (ValueError, RecursionError):
            pass
    return _damaged(line, number, offset, what)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def json_value(data: bytes) -> Any:
    """The value of one JSON text, with halves of surrogates, too; a ValueError says what it is."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            return whole_text(json.loads(data.decode(), parse_constant=_no_constant))
        except RecursionError:
            raise ValueError("nested too deep") from None
        except ValueError:
            raise ValueError("no JSON") from None


def whole_text(value: Any) -> Any:
    """A JSON value whose texts can be written as UTF-8: half a surrogate becomes U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {whole_text(name): whole_text(one) for name, one in value.items()}
    if isinstance(value, list):
        return [whole_text(one) for one in value]
    return value


def _damaged(line: bytes, number: int, offset: int, what: str) -> DamagedLine:
    text = line.decode("utf-8", "replace").strip("\0 \r\n")
    what = f"line {number} is {what}: {text[:_DEEP]!r}"
    gap = Gap("damaged", number, what)
    if not text:
        return DamagedLine(gap, None)
    return DamagedLine(gap, Given("damaged", number, offset, _unescaped(text), sure=False))


def _unescaped(text: str) -> str:
    r"""A part of JSON as a person reads it: what its texts say, without backslashes.

    >>> _unescaped('{"a":"one\\ntwo \\u0041')
    '{"a":"one\ntwo A'
    """
    parts, begin = [], 0
    while cut := _UNESCAPED.search(text, begin + _PART):  # many small texts take much memory
        parts.append(_plain(text[begin : cut.end()]))
        begin = cut.end()
    return "".join((*parts, _plain(text[begin:])))


_PART = 65_536
_UNESCAPED = re.compile(r"[^\\]{12}")  # longer than two escapes that are one character


def _plain(text: str) -> str:
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _PLAIN.get(m[2], m[2]), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
