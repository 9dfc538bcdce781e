"""Gemini CLI, and Qwen Code, which has its tools and its parts of messages. Pure.

Gemini 0.5x and 0.6x write one object a line: a header, messages, ``$set`` and ``$rewindTo``. A
message is written again with the same id when it grows. What ``$rewindTo`` cuts off was seen all
the same. Before that a session was one document.

``GEMINI.md`` of the project and its imports stand in the first message. That of the user's home
goes into the system instruction, of which there is no record.
"""

from __future__ import annotations

import marshal
import posixpath
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from tripod.verify.sessions.items import (
    Channel,
    Gap,
    Given,
    Item,
    Reader,
    SessionRecord,
    ToolUse,
    fields,
    strange_text,
    text_at,
    text_of,
    version_of,
    ways_in,
)

TOOLS = {
    "read_file": ToolUse("read", ("file_path", "absolute_path", "path")),
    "read_many_files": ToolUse("read", ("paths", "include"), recursive=True),
    "grep_search": ToolUse("search", ("path", "dir_path"), recursive=True, default="."),
    "search_file_content": ToolUse("search", ("path", "dir_path"), recursive=True, default="."),
    "glob": ToolUse("names", ("path", "dir_path", "pattern")),
    "list_directory": ToolUse("names", ("path", "dir_path")),
    "run_shell_command": ToolUse("shell", command="command", folders=("dir_path", "directory")),
    "write_file": ToolUse("edit", ("file_path",)),
    "replace": ToolUse("edit", ("file_path",)),
    "edit": ToolUse("edit", ("file_path",)),
    "save_memory": ToolUse("edit"),
    "write_todos": ToolUse("edit"),
    "todo_write": ToolUse("edit"),
    **dict.fromkeys(("web_fetch", "google_web_search", "web_search"), ToolUse("web")),
    "activate_skill": ToolUse("skill"),
    "skill": ToolUse("skill"),
    "ask_user": ToolUse("paste"),
    "task": ToolUse("subagent"),
    "agent": ToolUse("subagent"),
}
"""What each tool does. Tools that show no file and run nothing count as ``edit``."""

_HEADER = fields("sessionId projectHash startTime lastUpdated kind summary directories messages")
_MESSAGE = fields("id timestamp type content displayContent thoughts tokens model toolCalls hidden")
_SET = fields("messages lastUpdated summary directories kind")
_TYPES = fields("user gemini info error warning")
_CALL = fields(
    """id name args result status timestamp resultDisplay description displayName
    renderOutputAsMarkdown agentId parentCallId"""
)
_PART = fields("text functionCall functionResponse thought thoughtSignature inlineData fileData")
_MENTION = re.compile(r"\s*Content from @?([^\n]+?):[ \t\r]*$", re.MULTILINE)
_BLOCK = re.compile(
    r"^--- (?P<end>End of )?(?:Context from|File): (?P<file>[^\n]+?) ---[ \t\r]*$"
    r"|<!-- (?:(?P<over>End of import)|Imported) from: (?P<import>[^\n<>]+?) -->",
    re.MULTILINE,
)
"""Where the text of an instruction file, or of one that it imports, begins and ends in another.

No name goes on behind the next mark: else hostile text would be read once for each.
"""
_MARKS: dict[str, Channel] = {
    "<session_context>": "system",
    "<hook_context>": "hook",
    "<state_snapshot>": "summary",
    "Here is the user's editor context": "attachment",
    "Here is a summary of changes in the user's editor context": "attachment",
    "I ran the following shell command": "attachment",
}
"""How a text of a user's message begins that the user did not write."""

_ROOT = re.compile(r"Workspace Directories:\**\s*\n\s*- (.+)")


class Gemini(Reader):
    """Reads a session of Gemini CLI: its JSON lines, or each message of the older document."""

    program = "gemini"
    tools = TOOLS
    ways = ways_in(
        recorded="""read search names shell edit subagent web tool skill paste mention attachment
            instructions hook summary system""",
        within={"tool": "mcp background", "mention": "resource"},
        never="home",
        no_way_in="script notice queue request",
    )

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[tuple[str, bytes]] = set()
        self._ended: dict[str, int] = {}  # calls that ended, by the record of the call
        self._responded: dict[str, int] = {}  # and those with a message that has the result

    def read(self, record: SessionRecord) -> Iterator[Item]:
        """What one record holds."""
        value = record.value
        if "$set" in value or "$rewindTo" in value:
            yield from self._update(record, value)
        elif "sessionId" in value and "type" not in value:
            self.records["header"] += 1
            yield from self.strange_fields(record, value, _HEADER, "the header")
            name, role = text_at(value, "sessionId"), text_at(value, "kind")
            role = "" if role == "main" else role
            yield from self.began(record, name, role=role)
            yield from self._messages(record, value.get("messages"))
        else:
            yield from self._message(record, value)

    def end(self) -> Iterator[Item]:
        """Without its first message, which older versions did not write, nothing of it is told."""
        yield from super().end()
        if not self.cwd:
            what = "the first message, which names the folder and has the instructions"
            yield Gap("missing", 1, what, "instructions")
        # What ended last may not have been sent any more; older versions write no such message.
        last = max(self._responded.values(), default=0)
        for name, line in self._ended.items():
            if line < last and name not in self._responded:
                what = f"the result of the call {name[:60]} is in no message to the model"
                yield Gap("witness", line, what, self.channels.get(name, "tool"))

    def _update(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        kind = "$set" if "$set" in value else "$rewindTo"
        self.records[kind] += 1
        yield from self.strange_fields(record, value, frozenset({kind}), kind)
        changed = yield from self.object_of(record, value.get("$set"), "$set")
        yield from self.strange_fields(record, changed, _SET, "$set")
        yield from self._messages(record, changed.get("messages"))
        if not isinstance(value.get("$rewindTo", ""), str):
            yield from self.strange_type(record, "$rewindTo", value["$rewindTo"])

    def _messages(self, record: SessionRecord, messages: object) -> Iterator[Item]:
        for message in (yield from self.list_of(record, messages, "messages")):
            if isinstance(message, dict):
                yield from self._message(record, message)
            else:
                yield from self.strange_type(record, "message", message)

    def _message(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        kind = text_at(value, "type")
        self.records[kind] += 1
        if kind not in _TYPES:
            yield from self.strange_type(record, kind, value)
            return
        yield from self.strange_fields(record, value, _MESSAGE, "a message", kind)
        for call in (yield from self.list_of(record, value.get("toolCalls"), "toolCalls")):
            if isinstance(call, dict):
                yield from self._tool(record, call)
            else:
                yield from self.strange_type(record, "toolCalls", call)
        if kind == "user":
            content = value.get("content")
            parts = [{"text": content}] if isinstance(content, str) else content
            yield from self.parts(record, parts, text_at(value, "id"))

    def _tool(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        """A call, and its answer, each the first time: the message is written again and again."""
        name, tool = text_at(value, "id"), text_at(value, "name")
        yield from self.strange_fields(record, value, _CALL, "a call")
        if self._is_new(name, marshal.dumps((tool, value.get("args")), 2)):
            yield self.called(record, name, tool, value.get("args"))
        status, result = text_at(value, "status"), value.get("result")
        if result or status in ("success", "error", "cancelled"):
            failed = status in ("error", "cancelled")
            if status in ("success", "error"):
                self._ended.setdefault(name, record.line)
            denied = status == "cancelled" and self.channels.get(name) != "shell"
            text = text_of(_responses(result))
            if _is_encoded(result):
                what = "an image or a file in an answer"
                yield Gap("opaque", record.line, what, self.channels.get(name, "tool"))
            yield from self.answer(record, name, text, failed=failed, denied=denied)

    def answer(
        self,
        record: SessionRecord,
        name: str,
        text: str,
        *,
        failed: bool = False,
        denied: bool = False,
    ) -> Iterator[Item]:
        """The answer of a call, once for each text: it stands in the record twice."""
        if self._is_new(name, text):
            if self.channels.get(name) == "subagent":
                yield Gap("missing", record.line, "the session of a subagent", "subagent")
            yield self.answered(record, name, text, failed=failed, denied=denied)
            yield from self._included(record, text)

    def _is_new(self, name: str, text: str | bytes) -> bool:
        """Whether a message or a call with this id had another text, or none, until now."""
        data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        key = name, sha256(data).digest()
        new = key not in self._seen
        self._seen.add(key)
        return new

    def parts(self, record: SessionRecord, parts: object, name: str) -> Iterator[Item]:
        """The parts of a message that is not the model's: text, files named in it, answers."""
        named = None
        if not isinstance(parts, list | dict):
            yield Gap("unknown", record.line, "a message whose parts are no list")
            yield from strange_text(record, parts)
        for one in parts if isinstance(parts, list) else [parts] if isinstance(parts, dict) else ():
            part = {"text": one} if isinstance(one, str) else one
            if not isinstance(part, dict) or not part.keys() <= _PART:
                yield from self.strange_type(record, "part", part)
                continue
            if "functionResponse" in part:
                answer = part["functionResponse"]
                text = text_of(_responses([part | {"text": None}]))
                if isinstance(answer, dict) and answer.get("parts"):
                    yield Gap("opaque", record.line, "an image or a file in an answer", "mention")
                self._responded[text_at(answer, "id")] = record.line
                yield from self.answer(record, text_at(answer, "id"), text)
            if "inlineData" in part or "fileData" in part:
                yield Gap("opaque", record.line, "an image or a file in a message", "mention")
                if named:
                    yield self.given(record, "mention", "", named=named)
            text = text_of(part.get("text"))
            begins = _MENTION.match(text)
            if begins is not None:
                named = begins[1]
            # Two files may have the same text: each is named.
            if not text or (name and not self._is_new(f"{name}\n{named or ''}", text)):
                continue
            root = _ROOT.search(text)
            if root is not None and not self.cwd:
                self.cwd = root[1].strip()
            is_alone = begins is not None and not text[begins.end() :].strip()
            channel: Channel = "mention" if named and not is_alone else _marked(text)
            yield self.given(record, channel, text, named=None if is_alone else named)
            yield from self._included(record, text)

    def _included(self, record: SessionRecord, text: str) -> Iterator[Item]:
        """Instruction files, and what they import, that stand within a text, each by its name.

        Each has the text that stands in no other within it. An import is named from the folder of
        the file that has it. One without an end may be words about such a file.
        """
        if "--- " not in text and "<!-- " not in text:
            return
        opened: list[tuple[str, str, list[str]]] = []
        at = 0
        for mark in _BLOCK.finditer(text):
            if opened:
                opened[-1][2].append(text[at : mark.start()])
            at = mark.end()
            if not (mark["end"] or mark["over"]):
                around = opened[-1] if opened and mark["import"] else None
                folder = self.cwd if around is None else _folder_of(around[0], around[1])
                opened.append((mark["file"] or mark["import"], folder, []))
            elif opened:
                yield self._block(record, *opened.pop())
        if opened:
            opened[-1][2].append(text[at:])
        while opened:
            yield self._block(record, *opened.pop())._replace(sure=False)

    def _block(self, record: SessionRecord, named: str, cwd: str, texts: list[str]) -> Given:
        given = self.given(record, "instructions", "".join(texts), named=named)
        return given._replace(cwd=cwd)


class Qwen(Gemini):
    """Reads a session of Qwen Code 0.2x, which has the envelope of Claude Code.

    Each call is also in its telemetry, a second witness. ``QWEN.md`` and its imports go into the
    context without a record, those of the project and those of the user's home.
    """

    program = "qwen"
    since, until = (0, 20), (0, 25)
    ways = ways_in(
        recorded="""read search names shell edit mcp subagent web tool skill paste mention
            attachment summary""",
        within={"mention": "resource", "instructions": "system"},
        never="instructions home",
        not_known="hook background",
        no_way_in="script notice queue request",
    )

    def __init__(self) -> None:
        super().__init__()
        self._asked_for: dict[str, int] = {}
        self._counted: dict[str, int] = {}  # calls in the telemetry
        self._counts = False

    def end(self) -> Iterator[Item]:
        """What only the end shows: calls that the messages have, or the telemetry, alone."""
        yield from Reader.end(self)
        if not self._counts:
            return
        for name in self._responded:
            if name in self._asked_for and name not in self._counted:
                what = f"the call {name[:60]} is not in the telemetry"
                yield Gap("witness", self._asked_for[name], what, self.channels[name])
        if "subagent" in self.channels.values():
            return  # the telemetry may have calls of a subagent
        for name, line in self._counted.items():
            if name not in self._asked_for:
                what = f"the telemetry has the call {name[:60]}, and no message has it"
                yield Gap("witness", line, what, self.channels.get(name, "tool"))

    def read(self, record: SessionRecord) -> Iterator[Item]:
        """What one record holds."""
        value = record.value
        kind = text_at(value, "type")
        self.records[kind] += 1
        self.links(record)
        if isinstance(value.get("cwd"), str):
            self.cwd = value["cwd"]
        name, version = text_at(value, "sessionId"), text_at(value, "version")
        if name:
            yield from self.began(record, name, version)
        known = _QWEN.get(kind)
        if known is None:
            yield from self.strange_type(record, kind, value)
            return
        yield from self.strange_fields(record, value, known, "a record", kind)
        message = yield from self.object_of(record, value.get("message"), "message")
        parts = message.get("parts")
        yield from self.strange_fields(record, message, _QWEN_MESSAGE, "a message")
        if kind == "system":
            yield from self._system(record, value)
        elif kind == "assistant":
            yield from self._asked(record, parts)
        else:
            failed = text_at(value, "toolCallResult", "status") in ("error", "cancelled")
            yield from self._answers(record, parts, failed=failed)

    def _asked(self, record: SessionRecord, parts: object) -> Iterator[Item]:
        for part in (yield from self.list_of(record, parts, "assistant.parts")):
            if not isinstance(part, dict) or not part.keys() <= _PART:
                yield from self.strange_type(record, "assistant.part", part)
            elif "functionCall" in part:
                asked = part["functionCall"]
                name, tool = text_at(asked, "id"), text_at(asked, "name")
                self._asked_for.setdefault(name, record.line)
                value = asked.get("args") if isinstance(asked, dict) else None
                yield self.called(record, name, tool, value)

    def _answers(self, record: SessionRecord, parts: object, *, failed: bool) -> Iterator[Item]:
        for item in self.parts(record, parts, ""):
            if isinstance(item, Given) and item.call is not None:
                yield item._replace(failed=failed)
            else:
                yield item

    def _system(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        kind = text_at(value, "subtype")
        if kind not in _QWEN_SYSTEM:
            yield from self.strange_type(record, f"system.{kind}", value)
            return
        payload = yield from self.object_of(record, value.get("systemPayload"), f"system.{kind}")
        known = _QWEN_SYSTEM[kind] or frozenset(payload)
        yield from self.strange_fields(record, payload, known, "a payload", kind)
        if kind == "at_command":
            for named in (yield from self.list_of(record, payload.get("filesRead"), "filesRead")):
                if isinstance(named, str):
                    yield self.given(record, "mention", "", named=named)
                else:
                    yield from self.strange_type(record, "filesRead", named)
        elif kind == "ui_telemetry":
            event = payload.get("uiEvent")
            self._counts |= version_of(text_at(value, "version")) >= _TWICE
            if text_at(event, "event.name") == _CALLED:
                self._counted.setdefault(text_at(event, "call_id"), record.line)
            if not isinstance(event, dict) or event.get("decision") == "reject":
                return
            if event.get("event.name") == _CALLED:
                name, tool = text_at(event, "call_id"), text_at(event, "function_name")
                yield self.called(record, name, tool, event.get("function_args"), ran=True)
        elif kind == "chat_compression":
            yield self.given(record, "summary", payload)
        elif kind == "slash_command" and text_of(payload):
            yield self.given(record, "system", payload, sure=False)  # as `/memory show` prints it


_TWICE = (0, 24, 4)
"""The first version whose telemetry is known to have each call: recordings show it."""

_CALLED = "qwen-code.tool_call"
_QWEN_ENVELOPE = (
    "uuid parentUuid sessionId timestamp type provenance cwd version gitBranch subtype "
)
_QWEN = {
    "user": fields(_QWEN_ENVELOPE + "message"),
    "assistant": fields(_QWEN_ENVELOPE + "model message usageMetadata contextWindowSize"),
    "tool_result": fields(_QWEN_ENVELOPE + "message toolCallResult"),
    "system": fields(_QWEN_ENVELOPE + "systemPayload"),
}
_QWEN_MESSAGE = fields("role parts")
_QWEN_SYSTEM = {
    "at_command": fields("filesRead status message userText"),
    "ui_telemetry": fields("uiEvent"),
    "attribution_snapshot": fields("snapshot"),
    "chat_compression": frozenset(),
    "slash_command": frozenset(),
    "session_title": frozenset(),
}
"""What the program says of a session, by its fields; none where all of it is searched, or none."""


def _folder_of(named: str, cwd: str) -> str:
    """The folder of a file that is named from the folder ``cwd``."""
    folder = posixpath.dirname(named.replace("\\", "/"))
    return posixpath.join(cwd, folder)[:_MAX_FOLDER]


_MAX_FOLDER = 4096  # characters: an import of an import ... may add to it without end


def _marked(text: str) -> Channel:
    start = text.lstrip()
    return next((channel for mark, channel in _MARKS.items() if start.startswith(mark)), "paste")


def _responses(result: object) -> object:
    """What the model got of the answers to a call, without the names and ids around it."""
    found = []
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(response, dict):
            found += [one for name, one in response.items() if name not in ("id", "name")]
            found += [one for name, one in part.items() if name == "text" or name not in _PART]
        else:
            found.append(part)
    return found


def _is_encoded(result: object) -> bool:
    """Whether an answer has a part that is no text."""
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(response, dict) and response.get("parts"):
            return True
        if isinstance(part, dict) and ("inlineData" in part or "fileData" in part):
            return True
    return False
