"""Messages in JSON lines: one object a line, whose fields are named by the caller. Pure.

A field may lie within another object: ``author.name``. A time is in epoch seconds, milliseconds or
microseconds, or an ISO 8601 text with a zone (without one it is UTC).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from tripod.projections.chat.format import format_line, valid_chat_handle, valid_chat_text
from tripod.projections.text import parse as parse_time

FIELDS = ("text", "handle", "time")
"""What a message has; a mapping gives for each the field of the object."""
MAX_LINE = 8 * 1024 * 1024  # bytes
_LATEST = 253_402_300_799  # the last second of the year 9999
_FRACTION = r"(?<=:[0-9]{2})[.,][0-9]{1,9}(?=$|Z|[+-])"


class FoundMessage(NamedTuple):
    """A message of another program: its line, and its bytes, which are the ``ordinal``-th of these.

    ``time`` is in epoch seconds; 0 where no field is mapped to it.
    """

    line: int
    handle: str
    time: int
    text: str
    data: bytes
    ordinal: int


class FoundMessages(NamedTuple):
    """What a file of JSON lines holds.

    ``problems`` gives a line and what is wrong with it. ``unmapped`` are fields that no message of
    ours has. ``is_torn``: the last line is not at its end yet, and is left.
    """

    messages: list[FoundMessage]
    problems: list[tuple[int, str]]
    unmapped: set[str]
    is_torn: bool


def parse_jsonl_messages(data: bytes, fields: Mapping[str, str]) -> FoundMessages:
    """Read every line; ``fields`` maps those of ``FIELDS`` to the object's, '' stands for none."""
    import orjson

    found = FoundMessages([], [], set(), is_torn=False)
    seen: Counter[bytes] = Counter()
    lines = data.split(b"\n")
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix(b"\r")
        if not line.strip():
            continue
        if len(line) > MAX_LINE:
            found.problems.append((number, f"longer than {MAX_LINE} bytes"))
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if number == len(lines):
                return found._replace(is_torn=True)
            found.problems.append((number, f"no JSON: {error}"))
            continue
        message = _twice(line) or _message(value, fields)
        if isinstance(message, str):
            found.problems.append((number, message))
            continue
        found.unmapped.update(value.keys() - {path.split(".")[0] for path in fields.values()})
        found.messages.append(FoundMessage(number, *message, line, seen[line]))
        seen[line] += 1
    return found


def _twice(line: bytes) -> str:
    """What is wrong where an object names a field twice: readers differ in which of them counts."""
    found = ""

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal found
        names = Counter(name for name, _ in pairs).most_common(1)
        if names and names[0][1] > 1:
            found = f"the field {names[0][0][:40]!r} stands there twice"

    try:
        json.loads(line, object_pairs_hook=look)
    except RecursionError:
        found = "too many objects stand in each other"
    return found


def _message(value: object, fields: Mapping[str, str]) -> tuple[str, int, str] | str:
    """Handle, time and text of an object; a text says what is wrong with it."""
    if not isinstance(value, dict):
        return "no JSON object"
    got: dict[str, Any] = {}
    for name, path in fields.items():
        at: Any = value
        for word in path.split(".") if path else ():
            if not isinstance(at, dict) or word not in at:
                return f"no field {path!r} for the {name}"
            at = at[word]
        got[name] = at if path else None
    handle, text = got["handle"], got["text"]
    if not isinstance(handle, str) or not isinstance(text, str):
        return f"the {'text' if isinstance(handle, str) else 'handle'} is no text"
    time = 0 if got["time"] is None and not fields["time"] else _seconds(got["time"])
    if time is None:
        return f"the time {str(got['time'])[:40]!r} is no moment"
    problem = valid_chat_handle(handle) or valid_chat_text(text)
    if problem is None:
        try:
            format_line(handle, time, text)
        except (ValueError, UnicodeEncodeError) as error:
            problem = str(error)
    return problem or (handle, time, text)


def _seconds(value: object) -> int | None:
    """Epoch seconds of a number or an ISO text; None where it names no moment."""
    if isinstance(value, str):
        found = parse_time(re.sub(_FRACTION, "", value))
        if found is None and re.fullmatch(r"[0-9]{1,16}(?:\.[0-9]{1,9})?", value):
            return _seconds(float(value))
        return found if found is None or 0 <= found <= _LATEST else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    for scale in (1, 1_000, 1_000_000):  # seconds, or a finer count of them
        if 0 <= value / scale <= 10**11:
            return int(value // scale)
    return None
