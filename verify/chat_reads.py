"""What in a log, a task or a stream of events is a reading of the chat. Pure.

A line of a log shows a command or a tool call as people and agents write them; a line of a stream
is a JSON object that may hold such calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["as_usual", "calls_in", "plain", "read_of_chat", "strings_in", "told_to_read", "usually"]

_STYLE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]")
_POST = re.compile(r"\b(?:nbs-chat|tripod\s+chat)\s+(?:send|warn|error)\b[^;&|\n]*")
_COMMAND = re.compile(
    r"\b(?:nbs-chat|tripod\s+chat)\s+(?:read|search|poll|export)\b"
    r"|\btripod\s+show\s+(?:chat|events|entries)\b"
    r"|\b(?:nbs-bus|tripod\s+bus)\s+read\b.*(?:chat-m|chat-q|chat-i|human-input)"
)
_PLACE = (
    r"(?:[\w./~*-]*\.chat\b|(?:\.nbs|[\w./~-]*/\.nbs)/(?:chat|record)\b[\w./*-]*"
    r"|[\w./~-]*\bevents/(?:processed\b|\*)(?!\S*pythia-checkpoint)[\w./*-]*"
    r"|[\w./~-]*chat-(?:message|mention)[\w.-]*\.event|[\w./~-]*\bledger\.db\b)"
)
_READER = (
    r"\b(?:Read|Grep|Glob|Search|View|LS|Fetch)\(|\b(?:cat|less|more|head|tail|grep|rg|ag|sed|awk|"
    r"strings|base64|python3?|perl|ruby|node|cp|dd|xxd|od|sqlite3|vim?|nano|bat|cut|sort|tac|nl)\s"
)
_READS = re.compile(rf"(?:{_READER})[^;&|\n]*?{_PLACE}")
_TOLD = re.compile(
    r"\b(?:read|search|scan|grep|cat|open|review|study|look\s+(?:at|through|into)|check|go\s+through)\b"
    rf"(?P<between>[^;]*?)(?:{_PLACE}|\bthe\s+(?:whole\s+|entire\s+|raw\s+|live\s+)?chat\b)",
    re.IGNORECASE,
)
_OTHER_VERB = re.compile(
    r"\b(?:post|send|write|publish|append|put|report|reply|answer)\b|,\s*then\b", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|never|no|without|avoid|forbidden|nor)\b|n't\b", re.IGNORECASE)


LINE = 4000
"""Characters of a line that are looked at."""


def plain(text: str) -> str:
    """A text without the sequences that command a terminal."""
    return _STYLE.sub("", text)


def usually(places: dict[str, str]) -> list[tuple[re.Pattern[str], str]]:
    """How people write of the folders that a team keeps elsewhere, and their usual names."""
    named = [(place.removeprefix("../").strip("/"), front) for front, place in places.items()]
    return [
        (re.compile(rf"(?<![\w./~-])(?:[\w.~-]*/)*{re.escape(name)}(?=/)"), f".nbs/{front}")
        for name, front in named
        if name != front
    ]


def as_usual(text: str, elsewhere: list[tuple[re.Pattern[str], str]]) -> str:
    """A text as it would stand there if the team's folders were at their usual places."""
    for pattern, usual in elsewhere:
        text = pattern.sub(usual, text[:LINE])
    return text


def read_of_chat(line: str) -> bool:
    """Whether a line of a log shows a command or tool call that reads what she may not see."""
    text = _POST.sub("", plain(line[:LINE]))
    return bool(_COMMAND.search(text) or _READS.search(text))


def told_to_read(sentence: str) -> bool:
    """Whether a sentence of a task tells her to read the chat."""
    text = _POST.sub("", sentence[:LINE])
    if _NOT.search(text):
        return False
    if _COMMAND.search(text):
        return True
    return any(not _OTHER_VERB.search(match["between"]) for match in _TOLD.finditer(text))


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
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return list(strings_in(value)), list(_calls(value))


def _calls(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += reversed(one)
        elif isinstance(one, dict):
            if one.get("type") == "tool_use" and isinstance(one.get("name"), str):
                yield f"{one['name']}({' '.join(strings_in(one.get('input')))})"
            todo += reversed(one.values())
