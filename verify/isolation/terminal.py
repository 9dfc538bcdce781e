"""Finds the calls in what an agent's program printed: lines for people, and streams of JSON. Pure.

A line for people shows a call as ``Tool(words)``, or a command after a prompt, or in prose a
program that nobody takes for a word. A stream holds calls as objects, at any depth. What else
stands there shows nothing. A stranger writes the lines: the time is linear in their length.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from tripod.verify.sessions import claude_code, codex, copilot, cursor, gemini, opencode
from tripod.verify.sessions.items import Call, ToolUse, fields, strings_of, text_at
from tripod.verify.sessions.jsonl import DamagedLine, session_records
from tripod.verify.sessions.syntax import AFTER_ONE, FILES, INTERPRETERS, OURS, SHELLS

CWD = "/project"
"""The folder of a call whose record names none: it stands for the project."""

_TABLES = (gemini, copilot, opencode, codex, cursor, claude_code)
TOOLS: dict[str, ToolUse] = {name: use for one in _TABLES for name, use in one.TOOLS.items()}
"""What the tools of all programs do; where two have one name, as in the later table."""

_TITLES = {"Search": "Grep", "View": "Read", "Fetch": "Read"}
"""Tools whose title on a terminal is another than their name."""

_WORDS = fields(
    """bc column comm diff ed emacs expand file fmt fold install join look most mv open paste pr
    shuf split sum unexpand view"""
)
"""Programs that are words of a language, or as short: they count after a prompt alone."""

_ALONE = (FILES | AFTER_ONE | SHELLS | INTERPRETERS | OURS | fields("git xargs")) - _WORDS
_PATHS = frozenset(
    name for name, use in claude_code.TOOLS.items() if use.channel in ("read", "search")
)
_STYLE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]")


def _any_of(names: frozenset[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))


_CALL = re.compile(
    rf"\b(?P<tool>{_any_of(_PATHS | _TITLES.keys())})\("
    r"|(?P<prompt>(?:[$#%>+\u276f] )+(?=\S)|\b(?:Bash|PowerShell|Shell|Monitor)(?P<call>\())"
    rf"|(?<![\w.-])(?P<program>(?:{_any_of(_ALONE)})(?:[\d.]+)?(?=[ \t<])(?!\s+-\w*c\s+[^\s'\"]))"
)
_FIRST = re.compile(r"\s*(?:for|while|until|if|find|ls|cd|pushd) ")
_PARENTHESIS = re.compile(r"[()]")
_BETWEEN = re.compile(r"[\s,:;'\"`()\[\]{}<>|&=]+")


def without_terminal_codes(text: str) -> str:
    """A text without the sequences that command a terminal."""
    return _STYLE.sub("", text)


def words_of_call(text: str) -> tuple[str, ...]:
    """The words of a call's text, each of which may be a path.

    >>> words_of_call('pattern: "x", path: ".nbs/chat"')
    ('pattern', 'x', 'path', '.nbs/chat')
    """
    return tuple(filter(None, _BETWEEN.split(text)))


def calls_in_line(line: str) -> Iterator[Call]:
    """The calls that a line for people shows, without terminal codes.

    >>> [(call.tool, call.paths or call.command) for call in calls_in_line("> Read(a.md)")]
    [('Read', ('a.md',))]
    >>> [call.command for call in calls_in_line("me@host:~$ cd x && cat y; echo `head z`")]
    ['cd x && cat y; echo `head z`']
    >>> [call.command for call in calls_in_line("I ran `cat x`, and read y, then nbs-chat read z")]
    ['cat x', 'nbs-chat read z']
    """
    if _FIRST.match(line):
        yield Call("", "Bash", line, 1, "shell", command=line, cwd=CWD)
    at = 0
    while (found := _CALL.search(line, at)) is not None:
        begin = found.start("program") if found["program"] else found.end()
        before = line[begin - 1 : begin] if begin else ""
        if before == "(":
            at = _closing(line, begin)
        else:
            at = _end(line, before if before in "'\"`" and before else "\n", begin)
        text = line[begin:at]
        if found["tool"]:
            tool = _TITLES.get(found["tool"], found["tool"])
            use = TOOLS[tool]
            yield Call(
                "",
                tool,
                text,
                1,
                use.channel,
                words_of_call(text),
                recursive=use.recursive,
                cwd=CWD,
            )
        elif found["program"] or found["call"] or not _CALL.match(line, begin):
            yield Call("", "Bash", text, 1, "shell", command=text, cwd=CWD)
        else:
            at = begin  # a prompt in front of a call


def _end(text: str, sign: str, at: int) -> int:
    found = text.find(sign, at)
    return len(text) if found < 0 else found


def _closing(text: str, at: int) -> int:
    """Where the parenthesis closes that is open at a place, on this line."""
    depth, end = 1, _end(text, "\n", at)
    for one in _PARENTHESIS.finditer(text, at, end):
        depth += 1 if one[0] == "(" else -1
        if not depth:
            return one.start()
    return end


# Streams -----------------------------------------------------------------------------------------


def stream_value(line: str) -> Any:
    """A JSON object, or a list that holds one, which a text is; None where it is neither.

    >>> stream_value(' [{"a": 1}]'), stream_value("[1]"), stream_value("[a]")
    ([{'a': 1}], None, None)
    """
    text = line.strip()
    if not text.startswith(("{", "[")):
        return None
    data = f'{{"":{text}}}'.encode("utf-8", "surrogatepass")
    for record in session_records([data]):
        value = None if isinstance(record, DamagedLine) else record.value[""]
        listed = value if isinstance(value, list) else [value]
        return value if any(isinstance(one, dict) for one in listed) else None
    return None


_NAMES = ("name", "tool_name", "tool")
_INPUTS = ("input", "parameters", "arguments", "args", "state")
_KINDS = fields("tool_use server_tool_use function_call custom_tool_call tool_call tool")
_RAN = fields("command_execution local_shell_call CommandExecution exec_command_begin")


def calls_in_stream(value: Any, depth: int = 4) -> Iterator[Call]:
    """The calls in a JSON value, wherever they stand; one within another counts ``depth`` deep.

    >>> call = {"type": "tool_use", "name": "Read", "input": {"file_path": "a.chat"}}
    >>> [(call.tool, call.paths) for call in calls_in_stream([{"content": [call]}])]
    [('Read', ('a.chat',))]
    """
    todo = [(value, 0)]
    while todo:
        one, within = todo.pop()
        if isinstance(one, list):
            todo += ((inner, within) for inner in reversed(one))
        elif isinstance(one, dict):
            kind = one.get("type")
            if isinstance(kind, str) and kind in _KINDS | _RAN:
                if within == depth:
                    continue  # its texts stand in the call around it
                yield _call(one)
                within += 1
            todo += ((inner, within) for inner in reversed(one.values()))


def _call(one: dict[str, Any]) -> Call:
    if one["type"] in _RAN:
        text = _command(one.get("command", one.get("action")))
        return Call("", "Bash", text, 1, "shell", command=text, cwd=CWD)
    tool = next((text_at(one, name) for name in _NAMES if text_at(one, name)), "")
    value = next((one[name] for name in _INPUTS if name in one), None)
    if isinstance(value, str) and (parsed := stream_value(value)) is not None:
        value = parsed  # arguments that are JSON in a text
    use = TOOLS.get(tool, ToolUse("tool"))
    named = value
    if use.channel == "search" and isinstance(value, dict):
        named = {name: text for name, text in value.items() if name != "pattern"}
    paths = tuple(strings_of(named)) if use.channel in ("read", "search", "resource") else ()
    command = None
    if use.channel == "shell":
        named = value.get(use.command or "") if isinstance(value, dict) else None
        command = _command(value if named is None else named)
    return Call("", tool, value, 1, use.channel, paths, command, use.recursive, CWD)


def _command(value: Any) -> str:
    """A command line: a text, or its words."""
    return value if isinstance(value, str) else shlex.join(strings_of(value))
