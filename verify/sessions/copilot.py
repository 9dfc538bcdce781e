"""Copilot CLI: ``events.jsonl``, one object a line with a type and its data. Pure.

Versions 1.0.6x to 1.0.1xx. A result has ``content``, which the model got, and ``detailedContent``,
which it did not. Each event names the one before it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from tripod.verify.sessions.items import (
    MAIN,
    Call,
    Channel,
    Gap,
    Item,
    Reader,
    SessionRecord,
    ToolUse,
    fields,
    text_at,
    ways_in,
)

TOOLS = {
    "view": ToolUse("read", ("path",)),
    "read_file": ToolUse("read", ("path",)),
    "bash": ToolUse("shell", command="command"),
    "powershell": ToolUse("shell", command="command"),
    "write_bash": ToolUse("script", command="input"),
    "read_bash": ToolUse("background"),
    "stop_bash": ToolUse("edit"),
    "list_bash": ToolUse("edit"),
    "grep": ToolUse("search", ("path", "paths"), recursive=True, default="."),
    "rg": ToolUse("search", ("path", "paths"), recursive=True, default="."),
    "glob": ToolUse("names", ("path", "pattern")),
    "create": ToolUse("edit", ("path",)),
    "edit": ToolUse("edit", ("path",)),
    "str_replace_editor": ToolUse("edit", ("path",)),
    "apply_patch": ToolUse("edit"),
    "task": ToolUse("subagent"),
    "read_agent": ToolUse("subagent"),
    "list_agents": ToolUse("edit"),
    "skill": ToolUse("skill"),
    "web_fetch": ToolUse("web"),
    "web_search": ToolUse("web"),
    "ask_user": ToolUse("paste"),
    "report_intent": ToolUse("edit"),
    "update_todo": ToolUse("edit"),
    "store_memory": ToolUse("edit"),
    "fetch_copilot_cli_documentation": ToolUse("web"),
}
"""What each tool does. Tools that show no file and run nothing count as ``edit``."""

_EVENT = fields("type data id timestamp parentId agentId ephemeral")
_DATA = {
    "user.message": fields(
        """content transformedContent messageId supportedNativeDocumentMimeTypes delivery
        interactionId turnId parentAgentTaskId attachments source agentMode"""
    ),
    "assistant.message": fields(
        """messageId originatingMessageId model content toolRequests interactionId turnId rte
        apiCallId parentToolCallId reasoningOpaque reasoningText encryptedContent phase
        outputTokens requestId"""
    ),
    "tool.execution_start": fields(
        "toolCallId toolName arguments turnId model toolTitle shellToolInfo parentToolCallId"
        " mcpServerName mcpToolName"
    ),
    "tool.execution_complete": fields(
        """toolCallId model interactionId turnId rte success result toolTelemetry shellExecution
        error parentToolCallId isUserRequested"""
    ),
    "system.message": fields("role content metadata interactionId name"),
    "session.start": fields(
        """sessionId version producer copilotVersion startTime selectedModel contextTier context
        alreadyInUse remoteSteerable reasoningEffort"""
    ),
}
_INNER = {
    "session.start": {
        "context": fields(
            """cwd gitRoot branch headCommit baseCommit repository repositoryHost hostType"""
        )
    },
    "system.message": {"metadata": fields("variables promptVersion")},
}
_SILENT = fields(
    """session.permissions_changed assistant.turn_start assistant.turn_end session.usage_record
    session.shutdown session.model_change session.error session.info session.warning session.idle
    session.title_changed session.mode_changed session.plan_changed session.truncation
    session.workspace_file_changed session.context_changed session.usage_info
    session.compaction_start assistant.reasoning assistant.usage permission.requested
    permission.completed abort hook.start subagent.started subagent.selected
    subagent.completed subagent.failed"""
)
_SEARCHED: dict[str, Channel] = {
    "session.compaction_complete": "summary",
    "session.handoff": "summary",
    "session.resume": "system",
    "system.notification": "background",
    "skill.invoked": "skill",
    "hook.end": "hook",
}
_PLACED = fields("session.start session.resume session.context_changed hook.start")
"""Events that say in which folder the session is from then on: what a hook hears has it, too."""

_MOVE = re.compile(
    r"(?:^|(?<=[;&|({\n]))\s*((?:cd|chdir|sl|pushd|Set-Location|Push-Location)\b[^;&|)}\n]*)"
)
_MOST_MOVES = 8
_GIVEN = ("content", "contents", "structuredContent")
_TEXTS = fields("text terminal")
_NAMES = ("path", "filePath", "uri", "url")
_RESULT = fields("content detailedContent contents structuredContent")


class Copilot(Reader):
    """Reads the events of a session, and of the agents that run within it."""

    program = "copilot"
    tools = TOOLS
    since, until = (1, 0, 60), (1, 0, 110)
    ways = ways_in(
        recorded="""read search names shell script edit subagent web tool background paste
            attachment instructions skill hook summary system""",
        within={
            "tool": "mcp resource",
            "attachment": "mention",
            "background": "notice",
            "instructions": "home",
        },
        no_way_in="queue request",
    )

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()
        self._moves: list[str] = []  # commands by which a shell went elsewhere: it may go on there
        self._moving: dict[str, list[str]] = {}

    def read(self, record: SessionRecord) -> Iterator[Item]:
        """What one record holds."""
        value = record.value
        kind, data = text_at(value, "type"), value.get("data")
        self.records[kind] += 1
        yield from self._order(record)
        yield from self.strange_fields(record, value, _EVENT, "an event")
        if not isinstance(data, dict):
            yield from self.strange_type(record, kind, value)
            return
        known = _DATA.get(kind)
        if known is not None:
            yield from self.strange_fields(record, data, known, "an event", kind)
        for name, inner in _INNER.get(kind, {}).items():
            part = data.get(name)
            if isinstance(part, dict):
                yield from self.strange_fields(record, part, inner, f"the {name} of an event", kind)
        agent = text_at(data, "parentToolCallId") or MAIN
        if kind in _PLACED:
            within = (text_at(data, name, "cwd") for name in ("context", "input"))
            places = (*within, text_at(data, "cwd"))
            self.cwd = next(filter(None, places), self.cwd)
        if kind == "session.start":
            yield from self._start(record, data)
        elif kind == "assistant.message":
            yield from self._requests(record, data, agent)
        elif kind == "tool.execution_start":
            tool, asked = text_at(data, "toolName"), data.get("arguments")
            yield self._call(record, data, tool, asked, agent, ran=True)
        elif kind == "tool.execution_complete":
            yield from self._result(record, data, agent)
        elif kind == "user.message":
            yield from self._user(record, data, agent)
        elif kind == "system.message":
            yield self.given(record, "instructions", data.get("content"))
        elif kind in _SEARCHED:
            sure = kind != "hook.end"
            named = text_at(data, "path") if kind == "skill.invoked" else ""
            yield self.given(
                record, _SEARCHED[kind], data, agent=agent, sure=sure, named=named or None
            )
        elif kind not in _SILENT:
            yield from self.strange_type(record, kind, value)

    def _order(self, record: SessionRecord) -> Iterator[Gap]:
        name, parent = record.value.get("id"), record.value.get("parentId")
        if isinstance(parent, str) and parent not in self._seen:
            yield Gap("order", record.line, f"the event before it, {parent[:40]}, is not there")
        if isinstance(name, str):
            self._seen.add(name)

    def _start(self, record: SessionRecord, data: dict[str, Any]) -> Iterator[Item]:
        name, version = text_at(data, "sessionId"), text_at(data, "copilotVersion")
        yield from self.began(record, name, version)

    def _requests(self, record: SessionRecord, data: dict[str, Any], agent: str) -> Iterator[Item]:
        asked = data.get("toolRequests")
        for one in asked if isinstance(asked, list) else ():
            if isinstance(one, dict):
                yield self._call(record, one, text_at(one, "name"), one.get("arguments"), agent)
            else:
                yield from self.strange_type(record, "toolRequests", one)

    def _call(
        self,
        record: SessionRecord,
        data: dict[str, Any],
        tool: str,
        value: Any,
        agent: str,
        *,
        ran: bool = False,
    ) -> Call:
        name = text_at(data, "toolCallId")
        nested = agent != MAIN
        if data.get("mcpServerName"):  # it may be called like one of the program's own
            tool = f"mcp__{data['mcpServerName']}__{tool}"
        call = self.called(record, name, tool, value, agent=agent, ran=ran, nested=nested)
        if tool == "str_replace_editor" and text_at(value, "command") == "view":
            self.channels[name] = "read"
            return call._replace(channel="read")
        if call.channel != "shell" or call.command is None:
            return call
        moves = _MOVE.findall(call.command)
        if moves:
            self._moving[name] = moves
        if not self._moves:
            return call
        before = [*self._moves, f"cd {shlex.quote(self.cwd)}"] if self.cwd else self._moves
        return call._replace(command="\n".join([*before, call.command]))

    def _result(self, record: SessionRecord, data: dict[str, Any], agent: str) -> Iterator[Item]:
        call, result = text_at(data, "toolCallId"), data.get("result")
        channel = self.channels.get(call, "tool")
        new = (move for move in self._moving.pop(call, ()) if move not in self._moves)
        self._moves = [*self._moves, *new][-_MOST_MOVES:]
        if isinstance(result, dict):
            yield from self.strange_fields(record, result, _RESULT, "a result")
            contents = result.get("contents")
            for one in contents if isinstance(contents, list) else ():
                if text_at(one, "type") not in _TEXTS:
                    yield Gap("opaque", record.line, "a part of a result that is no text", channel)
        if channel == "subagent" and data.get("success") is True:
            what = "what a subagent did"
            yield Gap("missing", record.line, what, "subagent", child=call, call=call)
        given = [result.get(name) for name in _GIVEN] if isinstance(result, dict) else result
        yield self.answered(
            record,
            call,
            [given, data.get("error")],
            agent=agent,
            nested=agent != MAIN,
            failed=data.get("success") is not True,
            denied=text_at(data, "error", "code") in ("denied", "rejected"),
        )

    def _user(self, record: SessionRecord, data: dict[str, Any], agent: str) -> Iterator[Item]:
        texts = [data.get("transformedContent"), data.get("content")]
        yield self.given(record, "paste", texts, agent=agent, nested=agent != MAIN)
        attached = data.get("attachments")
        for one in attached if isinstance(attached, list) else ():
            named = next(filter(None, (text_at(one, name) for name in _NAMES)), None)
            yield self.given(record, "attachment", one, named=named, agent=agent)
            if text_at(one, "data") or text_at(one, "type") in ("blob", "image"):
                yield Gap("opaque", record.line, "an attachment that is no text", "attachment")
