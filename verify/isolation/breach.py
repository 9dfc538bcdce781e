"""Finds readings of the chat in what a reviewer printed, or was told to do. Pure.

What is judged are the calls in a log, a task or a stream, each by the paths that it opens, as in a
recorded session. A log shows what was printed, not what was done: it can show a breach, and cannot
show that there was none.

A line for people shows a call as ``Tool(words)``, or a command after a prompt, or in prose a
program that nobody takes for a word. A stream holds calls as objects, at any depth. What else
stands there shows nothing. A stranger writes the lines: the time is linear in their length.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from tripod.ledger import CHAT, EVENTS, LOGS
from tripod.verify.isolation.batch import opened_by_call
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions import claude_code, codex, copilot, cursor, gemini, opencode
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Call, SessionRecord, ToolUse, fields, strings_of, text_at
from tripod.verify.sessions.jsonl import DamagedLine, session_records
from tripod.verify.sessions.programs import ShellReading
from tripod.verify.sessions.readers import READERS, program_of, read_session
from tripod.verify.sessions.shell import resolved
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


def messages_in_stream(text: str) -> Iterator[str]:
    """What the model and its tools say in a stream or a transcript, message by message.

    Else the end of a prompt and the beginning of an answer would be words in a row.
    """
    plain: list[str] = []
    for line in text.split("\n"):
        value = stream_value(line)
        if value is None:
            plain.append(line)
        elif said := "\n".join(strings_of(_said_by_agent(value))):
            yield said
    if any(plain):
        yield "\n".join(plain)


def _said_by_agent(value: Any) -> Any:
    """What model and tools say in a line of Claude Code; a line of another program whole.

    What else it writes is the same in each of its runs: settings, its prompt, notes to its model,
    errors.
    """
    kind = text_at(value, "type")
    if not kind or not (text_at(value, "session_id") or text_at(value, "sessionId")):
        return value
    if kind == "result":
        said = [value.get("result"), value.get("structured_output")]
        return None if value.get("is_error") else said
    if kind == "attachment":
        is_own = text_at(value, kind, "type") in claude_code.OF_THE_PROGRAM
        return None if is_own else value[kind]
    message = value.get("message")
    is_own = value.get("isSynthetic") or value.get("ownNote")
    if kind not in ("assistant", "user") or is_own or not isinstance(message, dict):
        return None
    return None if message.get("model") == "<synthetic>" else message.get("content")


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


SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")

_WILD = "\ufffd"
"""What stands for the part of a name that a wildcard stands for."""

_SECRET = (
    "*.chat", "*.chat.*", ".nbs/chat", ".nbs/record", ".nbs/events/**", "events/processed",
    "*chat-message*.event", "*chat-mention*.event", "*chat-query*.event", "*chat-interrupt*.event",
    "*human-input*.event", f"events/{_WILD}", f"events/*{_WILD}*.event", "ledger.db*",
    ".git/tripod", "refs/tripod", "refs/tripod-remotes",
)  # fmt: skip
_ALLOWED = (
    "config.yaml",
    "*pythia-checkpoint*",
    "*-decision-logged-*",
    "processed/*pythia-checkpoint*",
)
"""What Pythia may read in a folder of events; of those that were handled, the checkpoints alone."""

_SIGNS = ("chat", "nbs", "record", "events", "ledger", "tripod", "human-input")
"""What a text has where it may name anything of that; a line without it is not looked at."""

_LONG = 4096  # characters from which on nothing is a path
_MAGIC = re.compile(r"[*?\[\]{}]+")
_PARTED = re.compile(r"[;&|\n]")
_UNTOLD = frozenset(("tool", "mcp", "script", "subagent"))
"""Channels of calls whose texts tell what they do, and not their paths."""


class ChatRule:
    """What counts as a reading of the chat in a team that keeps some folders elsewhere.

    ``places`` are those folders, as paths from the team directory by what they hold. ``never`` has
    the globs of what Pythia may not read.

    >>> rule = ChatRule({"chat": "../talk"})
    >>> rule.is_broken_by("$ head talk/a.md"), rule.is_broken_by("> Read(src/talk.py)")
    (True, False)
    """

    def __init__(self, places: Mapping[str, str] | None = None) -> None:
        elsewhere = {
            place.removeprefix("../").strip("/").casefold(): front.partition("/")[0]
            for front, place in (places or {}).items()
            if not front.startswith(f"{LOGS}/")  # what lies beside a log is nobody's secret
        }
        names = [name for name in elsewhere if name not in (CHAT, EVENTS, ".", "..", "")]
        queues = [".nbs/events", EVENTS, *(name for name in names if elsewhere[name] == EVENTS)]
        but = [f"{queue}/{name}" for queue in queues for name in _ALLOWED]
        self.never = NeverRule([*_SECRET, *(f"{name}/**" for name in names)], but)
        self._sign = re.compile("|".join(map(re.escape, (*_SIGNS, *names))), re.IGNORECASE)

    def readings_in(self, line: str) -> Iterator[str]:
        """Each reading that a line of a log or of a stream shows, as people write it."""
        value = stream_value(without_terminal_codes(line))
        if value is not None:
            yield from self.readings_in_stream(value)
        elif self.is_broken_by(line):
            yield line.strip()

    def readings_in_stream(self, value: Any) -> Iterator[str]:
        """Each call in a JSON value that is a reading."""
        for call in filter(self.is_broken_in, calls_in_stream(value)):
            yield f"{call.tool}({' '.join(strings_of(call.input))})"

    def readings_in_session(self, text: str) -> Iterator[str]:
        """Each file that a recorded session shows was put into the context without a call."""
        records = list(session_records(text.encode("utf-8", "replace").splitlines(keepends=True)))
        first = next((one.value for one in records if isinstance(one, SessionRecord)), {})
        program = program_of(first)
        if program is not None:
            session = SessionExposures(self.never, ProtectedText())
            for item in read_session(READERS[program](), records):
                session.add(item)
            for one in session.found:
                if one.call is None and one.sure:
                    yield f"{one.channel}({one.named})"

    def is_broken_by(self, line: str) -> bool:
        """Whether a line of a log shows a call that reads what Pythia may not see."""
        if self._sign.search(line) is None and "\x1b" not in line:
            return False
        return any(map(self.is_broken_in, calls_in_line(without_terminal_codes(line))))

    def is_broken_in(self, call: Call) -> bool:
        """Whether a call reads what Pythia may not see."""
        if call.channel in ("names", "edit"):
            return False  # it shows no text
        if call.channel in _UNTOLD:
            texts = (part for text in strings_of(call.input) for part in SENTENCES.split(text))
            told = call.channel == "subagent"
            return any(
                self.is_broken_by(one) or (told and tells_to_read_chat(one, self)) for one in texts
            )
        reading = opened_by_call(call)
        if self._is_opened(reading, call.cwd):
            return True
        return bool(reading.opaque) and call.command is not None and self._is_part(call.command)

    def _is_part(self, command: str) -> bool:
        """Whether a part of a command that is not understood as a whole reads what it names."""
        # A script in a text that follows is a part of the command that runs it.
        text = command.replace("\n", " ") if "<<" in command else command
        # A part that stands there again reads the same.
        for part in filter(self._sign.search, dict.fromkeys(_PARTED.split(text))):
            for call in calls_in_line(part):
                reading = opened_by_call(call)
                words = set(words_of_call(call.command or "")) if reading.opaque else ()
                named = (resolved(word, CWD) for word in words if self._sign.search(word))
                if self._is_opened(reading, CWD) or any(map(self._hits, named)):
                    return True
        return False

    def _is_opened(self, reading: ShellReading, cwd: str) -> bool:
        return any(self._hits(one.path, recursive=one.recursive) for one in reading.opened) or any(
            self._hits(resolved(one.named, cwd)) for one in reading.also
        )

    def places_in(self, text: str) -> Iterator[tuple[int, int]]:
        """Where paths that Pythia may not see begin and end in a text."""
        for word in _WORD.finditer(text):
            if self._hits(resolved(word[0].rstrip("."), CWD)):
                yield word.span()

    def _hits(self, path: str, *, recursive: bool = False) -> bool:
        """Whether Pythia may not see a path; a wildcard in it may stand for any name."""
        if len(path) > _LONG or self._sign.search(path) is None:
            return False
        path = _MAGIC.sub(_WILD, path).casefold()
        below = (path, f"{path}/{_WILD}", f"{path}/chat/{_WILD}") if recursive else (path,)
        return any(map(self.never.hits, below))


_USUAL = ChatRule()


def shows_reading_of_chat(line: str) -> bool:
    """Whether a line of a log shows a reading of the chat in a team with the usual folders."""
    return _USUAL.is_broken_by(line)


# Tasks -------------------------------------------------------------------------------------------

_POST = re.compile(r"\b(?:nbs-chat|tripod\s+chat)\s+(?:send|warn|error)\b[^;&|\n]*")
_OURS = re.compile(r"\b(?:nbs-(?:chat|bus)|tripod)\s[^;&|\n]*")
_WORD = re.compile(r"[^\s,:;'\"`()\[\]{}<>|&=]+")
_THE_CHAT = re.compile(r"\bthe\s+(?:whole\s+|entire\s+|raw\s+|live\s+)?chat\b", re.IGNORECASE)
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


def tells_to_read_chat(sentence: str, rule: ChatRule = _USUAL) -> bool:
    """Whether a sentence of a task tells the reviewer to read the chat.

    A very long one is judged in parts that overlap: a "not" in it denies what stands near.
    """
    text = _POST.sub("", sentence)
    starts = range(0, max(len(text), 1), _SENTENCE)
    return any(_told(rule, text[max(0, start - _OVERLAP) : start + _SENTENCE]) for start in starts)


def _told(rule: ChatRule, text: str) -> bool:
    if _NOT.search(text):
        return False
    if any(map(rule.is_broken_by, _OURS.findall(text))):
        return True
    mentions = (match.span() for match in _THE_CHAT.finditer(text))
    places = sorted([*rule.places_in(text), *mentions])
    number, stop, at = 0, -1, 0
    while (verb := _TOLD.search(text, at)) is not None:
        end = verb.end()
        while number < len(places) and places[number][0] < end:
            number += 1
        if number == len(places):
            return False
        stop = stop if stop >= end else _find(text, ";", end)
        begin, after = places[number]
        if begin >= stop:
            at = stop
        elif _OTHER_VERB.search(text[end:begin]):
            at = after
        else:
            return True
    return False


def _find(text: str, what: str, at: int) -> int:
    found = text.find(what, at)
    return len(text) if found < 0 else found


def tool_servers_of_stream(line: str) -> Iterator[str]:
    """Names of the tool servers that a line of a stream shows: of its calls, and of those it has.

    A whole text may be such a line as well.

    >>> list(tool_servers_of_stream('{"content":[{"type":"tool_use","name":"mcp__wiki__search"}]}'))
    ['wiki']
    """
    todo = [stream_value(line)]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        if not isinstance(one, dict):
            continue
        kind, name = one.get("type"), one.get("name")
        if kind == "tool_use" and isinstance(name, str) and name.startswith("mcp__"):
            yield name.split("__")[1]
        elif kind in ("mcp_tool_use", "mcp_tool_call", "mcp_call"):
            given = (one.get(key) for key in ("server_name", "server", "server_label"))
            yield next((text for text in given if isinstance(text, str)), "without a name")
        elif kind == "server_tool_use":
            yield f"of the model ({name})"
        tools, connected = one.get("tools"), one.get("mcp_servers")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, str) and tool.startswith("mcp__"):
                yield tool.split("__")[1]
        for server in connected if isinstance(connected, list) else ():
            named = server.get("name") if isinstance(server, dict) else server
            if isinstance(named, str):
                yield named
        todo += one.values()
