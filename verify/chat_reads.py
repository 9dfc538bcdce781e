"""What in a log, a task or a stream of events is a reading of the chat. Pure.

A line of a log shows a command or a tool call as people and agents write them; a line of a stream
is a JSON object that may hold such calls.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from ledger.places import LOGS

# A pattern here never begins or ends with a repetition that the text may start at every character,
# and two repetitions never stand around something that may be missing: a stranger writes the lines,
# and one of a megabyte must cost what a megabyte of prose costs (tests/core/test_linear.py).
_STYLE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]")
_POST = re.compile(r"\b(?:nbs-chat|tripod\s+chat)\s+(?:send|warn|error)\b[^;&|\n]*")
_COMMAND = re.compile(
    r"\b(?:nbs-chat|tripod\s+chat)\s+(?:read|search|poll|export)\b"
    r"|\btripod\s+show\s+(?:chat|events|entries)\b"
)
_BUS = re.compile(r"\b(?:nbs-bus|tripod\s+bus)\s+read\b")
_QUOTING = re.compile(r"chat-m|chat-q|chat-i|human-input")
_READER = re.compile(
    r"\b(?:Read|Grep|Glob|Search|View|LS|Fetch)\(|\b(?:cat|less|more|head|tail|grep|rg|ag|sed|awk|"
    r"strings|base64|python3?|perl|ruby|node|cp|dd|xxd|od|sqlite3|vim?|nano|bat|cut|sort|tac|nl)\s"
)
_PARTED = re.compile(r"[;&|\n]")
_TOKEN = re.compile(r"\S+")
_PLACE = re.compile(
    r"\.chat\b|\.nbs/(?:chat|record)\b|\bevents/(?P<queue>processed\b|\*)"
    r"|(?P<event>chat-(?:message|mention))|\bledger\.db\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\w.-]*")
_PATH = re.compile(r"[\w./~*-]*")
_THE_CHAT = re.compile(r"\bthe\s+(?:whole\s+|entire\s+|raw\s+|live\s+)?chat\b", re.IGNORECASE)
_ALLOWED = "pythia-checkpoint"  # an event that she may read
_TOLD = re.compile(
    r"\b(?:read|search|scan|grep|cat|open|review|study|look\s+(?:at|through|into)|check|go\s+through)\b",
    re.IGNORECASE,
)
_OTHER_VERB = re.compile(
    r"\b(?:post|send|write|publish|append|put|report|reply|answer)\b|,\s*then\b", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|never|no|without|avoid|forbidden|nor)\b|n't\b", re.IGNORECASE)

_SENTENCE = 4000  # characters that one word of denial may deny
_OVERLAP = 1000
_NESTED = 4  # a call within the input of a call is looked at as one, so deep


def plain(text: str) -> str:
    """A text without the sequences that command a terminal."""
    return _STYLE.sub("", text)


def usually(places: dict[str, str]) -> list[tuple[re.Pattern[str], str]]:
    """How people write of the folders that a team keeps elsewhere, and their usual names."""
    named = [
        (place.removeprefix("../").strip("/"), front)
        for front, place in places.items()
        if not front.startswith(f"{LOGS}/")  # what lies beside a log is nobody's secret
    ]
    return [
        (re.compile(rf"(?<![\w./~-])(?:[\w.~-]*/)*{re.escape(name)}(?=/)"), f".nbs/{front}")
        for name, front in named
        if name not in (front, ".", "..")
    ]


def as_usual(text: str, elsewhere: list[tuple[re.Pattern[str], str]]) -> str:
    """A text as it would stand there if the team's folders were at their usual places."""
    for pattern, usual in elsewhere:
        text = pattern.sub(usual, text)
    return text


def read_of_chat(line: str) -> bool:
    """Whether a line of a log shows a command or tool call that reads what she may not see."""
    text = _POST.sub("", plain(line))
    return _commands(text) or _reads(text)


def told_to_read(sentence: str) -> bool:
    """Whether a sentence of a task tells her to read the chat.

    What looks like a sentence and is very long is judged in parts that overlap: one "not"
    somewhere in it denies what stands near.
    """
    text = _POST.sub("", sentence)
    starts = range(0, max(len(text), 1), _SENTENCE)
    return any(_told(text[max(0, start - _OVERLAP) : start + _SENTENCE]) for start in starts)


def _told(text: str) -> bool:
    if _NOT.search(text):
        return False
    if _commands(text):
        return True
    places = [
        *_places(text),
        *((*match.span(), match.start()) for match in _THE_CHAT.finditer(text)),
    ]
    places.sort(key=lambda place: place[2])
    number, stop, at = 0, -1, 0
    while (verb := _TOLD.search(text, at)) is not None:
        end = verb.end()
        while number < len(places) and places[number][2] < end:
            number += 1
        if number == len(places):
            return False
        stop = stop if stop >= end else _find(text, ";", end)
        begin, after, start = places[number]
        if start >= stop:
            at = stop
        elif _OTHER_VERB.search(text[end : max(end, begin)]):
            at = after
        else:
            return True
    return False


def _commands(text: str) -> bool:
    """Whether one of our commands stands in a text that reads the chat, or events that quote it."""
    if _COMMAND.search(text):
        return True
    stop = -1
    for match in _BUS.finditer(text):
        if match.end() > stop:  # the first of a line sees all of it
            stop = _find(text, "\n", match.end())
            if _QUOTING.search(text, match.end(), stop):
                return True
    return False


def _reads(text: str) -> bool:
    """Whether, in one command, something that reads stands in front of a place of the chat."""
    readers = [match.end() for match in _READER.finditer(text)]
    parted: list[int] | None = None
    for _, _, start in _places(text) if readers else ():
        number = bisect_right(readers, start)
        if number:
            parted = [m.start() for m in _PARTED.finditer(text)] if parted is None else parted
            nearest = readers[number - 1]
            if bisect_left(parted, nearest) == bisect_left(parted, start):
                return True
    return False


def _places(text: str) -> Iterator[tuple[int, int, int]]:
    """Places of the chat: the beginning of the word, the end of the path, and the place itself."""
    for token in _TOKEN.finditer(text):
        begin, end = token.span()
        allowed = path = name = event = -1
        for match in _PLACE.finditer(text, begin, end):
            after = match.end()
            if match["queue"] is not None:
                allowed = allowed if allowed >= 0 else text.rfind(_ALLOWED, begin, end)
                if allowed >= after:
                    continue
            elif match["event"] is not None:
                if after > name:
                    name = _end(_NAME, text, after)
                    event = text.rfind(".event", after, name)
                if event < after:
                    continue
            path = path if path >= after else _end(_PATH, text, after)
            yield begin, path, match.start()


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _find(text: str, what: str, at: int) -> int:
    found = text.find(what, at)
    return len(text) if found < 0 else found


def strings_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, in its order."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            todo += reversed(one.values())
        elif isinstance(one, list):
            todo += reversed(one)


def calls_in(line: str) -> tuple[list[str], list[str]] | None:
    """The texts of a line of a stream, and the tool calls in it, as a log would show them.

    None where it is no such line.

    >>> calls_in('{"content":[{"type":"tool_use","name":"Read","input":{"file_path":"a.chat"}}]}')
    (['tool_use', 'Read', 'a.chat'], ['Read(a.chat)'])
    """
    value = objects_in(line)
    return None if value is None else (list(strings_in(value)), list(_calls(value)))


def objects_in(text: str) -> Any:
    """A JSON object, or a list that holds one, which a text is; None where it is neither.

    >>> objects_in(' [{"a": 1}]'), objects_in("[1]"), objects_in("[a]")
    ([{'a': 1}], None, None)
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = value if isinstance(value, list) else [value]
    return value if any(isinstance(one, dict) for one in listed) else None


def _calls(value: Any) -> Iterator[str]:
    todo = [(value, 0)]
    while todo:
        one, within = todo.pop()
        if isinstance(one, list):
            todo += ((inner, within) for inner in reversed(one))
        elif isinstance(one, dict):
            if one.get("type") == "tool_use" and isinstance(one.get("name"), str):
                if within == _NESTED:
                    continue  # its texts stand in the call around it
                yield f"{one['name']}({' '.join(strings_in(one.get('input')))})"
                within += 1
            todo += ((inner, within) for inner in reversed(one.values()))
