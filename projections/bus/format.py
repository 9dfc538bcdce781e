r"""An event file of the bus: a small YAML document, one a file, and its name. Pure.

The name is ``<microseconds>-<source>-<type>-<pid>.event``. Source and type may hold ``-``, so only
the time can be read back from it. The content::

    source: parser-worker
    type: task-complete
    priority: high
    timestamp: 2026-02-12T14:00:00Z
    dedup-key: parser-worker:task-complete
    payload: |
      Task parser-a3f1 completed successfully.

- Without a payload its line is left out. ``x`` and ``x\n`` give the same bytes; a blank line within
  is two spaces. The file ends in exactly one line break.
- A value that YAML would read as something else than this text (``yes``, ``12:30``, ``[a]``) stands
  in double quotes, as does a payload with characters that YAML refuses. A payload whose first
  line begins with a space stands under ``|2``. The original writes all these bare, and is then read
  wrongly (spec: nbs-compat B12.6).
- We read what we write and what the original writes: no tags, anchors, flow or nesting.

Source: spec nbs-compat B1 to B3; seed nbs-bus.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from tripod.projections import text as moments

PRIORITIES = ("critical", "high", "normal", "low")
"""From the most urgent down; an event with any other text counts as normal."""
MAX_WORD = 127
MAX_FILE = 6 * 1_048_576 + 8_192
"""Bytes of the largest file that is read as an event: what we write ourselves is always read.

A payload of 1 MiB takes six times that where each of its bytes is escaped; the rest is the fields.
"""

# Patterns are texts: re compiles each on its first use and keeps it. Compiled here, they would
# cost every command that imports this module.
_KEYS = ("source", "type", "priority", "timestamp", "dedup-key")

# Characters that YAML cannot hold, or takes for the end of a line or of the file's beginning.
_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
# A plain scalar: no white space, no indicator in front, no colon at the end ...
_PLAIN = r"[^\W](?:[^\s\"'\\#]*[^\s\"'\\#:])?"
# ... and nothing that a YAML 1.1 or 1.2 reader takes for a number, a date, a truth or nothing.
_NUMBER_LIKE = r"[0-9][0-9a-fA-FxXoOTtZz_.:+-]*"
_RESERVED = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_TIMESTAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:Z|[+-][0-9]{4})"

# As we write it ourselves, on a day that every month of every year has.
_USUAL_MOMENT = (
    r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)

_ESCAPE = r"(?s)\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))"
_SHORT = {'"': '"', "\\": "\\", "\n": "n", "\t": "t", "\r": "r"}
_LONG = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
    "r": "\r", "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip


class Event(NamedTuple):
    """The fields as texts; ``''`` for a timestamp, dedup key or payload that is not there."""

    source: str
    type: str
    priority: str
    timestamp: str
    dedup_key: str
    payload: str


def event_name(us: int, source: str, type_: str, pid: int) -> str:
    """Give the file name of an event published at ``us`` microseconds by process ``pid``."""
    return f"{us}-{source}-{type_}-{pid}.event"


def valid_event_name(name: str) -> str | None:
    """Judge a name to read or acknowledge; an unfinished ``.tmp-`` file is no event (B12.7)."""
    if not name:
        return "event: the name is empty"
    if "/" in name or "\0" in name:
        return "event: the name holds a / or a NUL; give the file name alone"
    if name.startswith((".tmp-", "..")) or not name.endswith(".event") or name == ".event":
        return "event: not the name of an event; `check` lists them"
    return None


def name_problem(name: str) -> str | None:
    """Judge the whole name of a new event file, which file systems limit to 255 bytes."""
    if moments.text_size(name) > 255:
        return "event: source and type together make a file name over 255 bytes"
    return None


def valid_event_word(value: str, what: str) -> str | None:
    """Judge a source or type of a new event (``what`` names which): None, or the broken rule.

    Only what cannot stand in one line or one file name is refused: the bus does not judge names.
    """
    problem = moments.text_line_problem(value, what, MAX_WORD)
    return f"{what}: holds '/'" if problem is None and "/" in value else problem


def _quoted(text: str) -> str:
    unsafe = re.findall(rf'["\\\n\t]|{_UNSAFE}', "".join(set(text)))
    escapes = {ord(one): f"\\{_SHORT.get(one) or f'u{ord(one):04x}'}" for one in unsafe}
    return f'"{text.translate(escapes)}"'


@lru_cache(maxsize=1024)  # handles and types: a team has few, and says each many thousand times
def _scalar(text: str) -> str:
    """Give a value in place: bare where every YAML reader gives the same text back, else quoted."""
    # Most are a handle, a type, or two of them around a colon, and need no closer look.
    bare = text.replace("-", "").replace("_", "").replace(":", "")
    reserved = text.lower() in _RESERVED
    if bare.isascii() and bare.isalnum() and text[0].isalpha() and text[-1] != ":" and not reserved:
        return text
    plain = (
        re.fullmatch(_PLAIN, text)
        and not re.search(_UNSAFE, text)
        and not re.fullmatch(_NUMBER_LIKE, text)
        and not reserved
    )
    return text if plain else _quoted(text)


def _is_moment(text: str) -> bool:
    if re.fullmatch(_USUAL_MOMENT, text):  # nearly all; the rest is six times as slow
        return True
    return re.fullmatch(_TIMESTAMP, text) is not None and moments.parse(text) is not None


def _payload(text: str) -> str:
    plain = text.replace("\n", "").replace("\t", "").isprintable()  # nothing unsafe is printable
    if not plain and re.search(_UNSAFE, text):
        return f"payload: {_quoted(text)}\n"
    # YAML takes the indentation from the first line that is not blank: name it where that misleads.
    start = text.lstrip("\n")[:1]
    indicator = "2" if start in ("", " ") else ""
    lines = text.removesuffix("\n").split("\n")
    return f"payload: |{indicator}\n" + "".join(f"  {line}\n" for line in lines)


def format_event(event: Event) -> bytes:
    """Give the bytes of an event file (ValueError: no source, type or priority; no Unicode)."""
    source, type_, priority, time, key, payload = event
    if not (source and type_ and priority):
        raise ValueError("an event needs a source, a type and a priority")
    text = f"source: {_scalar(source)}\ntype: {_scalar(type_)}\npriority: {_scalar(priority)}\n"
    if time:  # a real moment stands bare where one is meant; YAML readers may give it as one
        text += f"timestamp: {time if _is_moment(time) else _scalar(time)}\n"
    if key:
        text += f"dedup-key: {_scalar(key)}\n"
    return (text + (_payload(payload) if payload else "")).encode()


def _unescape(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    return chr(int(digits, 16)) if digits else _LONG[match[4]]


def _unquoted(raw: str) -> str:
    """Read a scalar in place; what is no well-formed quotation is the text as it stands."""
    text = raw.strip(" \t\r")
    double = re.fullmatch(r'"((?:[^"\\]|\\.)*)"', text)
    if double:
        try:
            # Other writers give a character beyond U+FFFF as two halves: put them together.
            halves = re.sub(_ESCAPE, _unescape, double[1])
            return halves.encode("utf-16", "surrogatepass").decode("utf-16")
        except (KeyError, ValueError, OverflowError):
            return text
    single = re.fullmatch(r"'((?:[^']|'')*)'", text)
    return single[1].replace("''", "'") if single else text


def _fields(text: str) -> dict[str, str] | None:
    """Read the top-level fields; None where one stands twice, since readers would differ."""
    fields: dict[str, str] = {}
    lines = text.removesuffix("\n").split("\n")
    at = 0
    while at < len(lines):
        match = re.fullmatch(r"(?s)([a-z][a-z-]*):(?:[ \t]+(.*))?", lines[at])
        at += 1
        if match is None:
            continue  # a comment, a blank line, or the inside of something that is not ours
        start = at
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" ")):
            at += 1
        key, raw = match[1], match[2] or ""
        if key in fields:
            return None
        block = re.fullmatch(r"[|>](?:([1-9])[+-]?|[+-]([1-9])?)?", raw.strip(" \t\r"))
        if block:  # its lines less their indentation; a last blank line ends in a break
            indent = int(block[1] or block[2] or "2")
            margin = " " * indent
            shown = lines[start:at]
            cut = [one[indent:] if one.startswith(margin) else one.lstrip(" ") for one in shown]
            fields[key] = "\n".join(cut) + ("\n" if cut and not cut[-1] else "")
        else:
            fields[key] = _unquoted(raw)
    return fields


def parse_event(data: bytes) -> Event | None:
    """Read an event file; None where it is not UTF-8, too large, or lacks a required field.

    Required are source, type and priority. Comments, unknown fields, another order and quotes of
    either sort are allowed; a block is taken line by line whether it stands under ``|`` or ``>``,
    with the two spaces of the layout taken off unless an indicator says otherwise.
    """
    if len(data) > MAX_FILE:
        return None
    try:
        fields = _fields(data.decode()) or {}
    except UnicodeDecodeError:
        return None
    event = Event(*(fields.get(key, "") for key in (*_KEYS, "payload")))
    return event if event.source and event.type and event.priority else None


def format_time(us: int) -> str:
    """Give the timestamp of an event: ``2026-02-12T14:00:00Z``, whole seconds, UTC."""
    return moments.format_iso_time_text(us // 1_000_000, "Z")


def event_age(now_us: int, then_us: int) -> str:
    """Give the age as ``check`` shows it: whole units, rounded down; the future is ``0s``.

    >>> event_age(90_000_000, 0), event_age(7_200_000_000, 0)
    ('1m', '2h')
    """
    seconds = max(0, now_us - then_us) // 1_000_000
    for limit, unit, letter in ((60, 1, "s"), (3_600, 60, "m"), (86_400, 3_600, "h")):
        if seconds < limit:
            return f"{seconds // unit}{letter}"
    return f"{seconds // 86_400}d"


class Config(NamedTuple):
    """The settings with their documented defaults; windows and timeouts in seconds, 0 is off."""

    dedup_window: int = 0
    retention_max_bytes: int = 16_777_216
    ack_timeout: int = 0
    pythia_interval: int = 20
    pythia_channel: str = "live.chat"
    notify: str = "inotifywait"
    poll_interval: int = 5
    deleted_events: str = "acked"


class ConfigWarning(NamedTuple):
    """A line that was not taken: its number from 1 (0: the whole file), its key if any, and why."""

    line: int
    key: str
    message: str


def event_name_us(name: str) -> int:
    """The time in an event's file name in µs, 0 where none stands there.

    Before the name may stand the queue that it is of (``bus/1600000000000000-ann-done-7.event``).
    """
    digits, dash, _ = name.rpartition("/")[2].partition("-")
    if dash and digits.isdecimal() and digits.isascii() and len(digits) <= 16:
        return int(digits) if int(digits) < 2**53 else 0
    return 0
