"""OpenCode: a session of its database or of its export, a message with its parts at a time. Pure.

Versions 1.0x to 1.18. ``callID`` is the provider's and may come twice: a part's own id names a
call. The export lacks the children of a session. No record says which files ``instructions`` of the
settings, or an ``AGENTS.md``, put into the context, nor what a plugin adds.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from typing import Any

from tripod.verify.sessions.items import (
    Channel,
    Gap,
    Item,
    Reader,
    SessionRecord,
    ToolUse,
    fields,
    strings_of,
    text_at,
    text_of,
    ways_in,
)

TOOLS = {
    "read": ToolUse("read", ("filePath", "path")),
    "grep": ToolUse("search", ("path",), recursive=True, default="."),
    "glob": ToolUse("names", ("path", "pattern")),
    "list": ToolUse("names", ("path",)),
    "bash": ToolUse("shell", command="command", folders=("workdir",)),
    "edit": ToolUse("edit", ("filePath",)),
    "multiedit": ToolUse("edit", ("filePath",)),
    "write": ToolUse("edit", ("filePath",)),
    "patch": ToolUse("edit"),
    "apply_patch": ToolUse("edit"),
    "lsp": ToolUse("search", ("filePath",), recursive=True, default="."),
    "task": ToolUse("subagent"),
    "skill": ToolUse("skill"),
    "webfetch": ToolUse("web"),
    "websearch": ToolUse("web"),
    "codesearch": ToolUse("web"),
    "todowrite": ToolUse("edit"),
    "todoread": ToolUse("edit"),
    "question": ToolUse("paste"),
    "invalid": ToolUse("edit"),
}
"""What each tool does. Tools that show no file and run nothing count as ``edit``."""

_PART = "type id sessionID messageID time metadata synthetic ignored "
_PARTS = {
    "text": fields(_PART + "text"),
    "reasoning": fields(_PART + "text"),
    "step-start": fields(_PART + "snapshot"),
    "step-finish": fields(_PART + "reason snapshot cost tokens"),
    "tool": fields(_PART + "callID tool state"),
    "file": fields(_PART + "mime filename url source"),
    "patch": fields(_PART + "hash files"),
    "snapshot": fields(_PART + "snapshot"),
    "compaction": fields(_PART + "auto overflow tail_start_id"),
    "subtask": fields(_PART + "prompt description agent model command"),
    "agent": fields(_PART + "name source"),
    "retry": fields(_PART + "attempt error"),
}
_RECORD = fields("info parts")
_SESSION = fields(
    """id slug projectID workspaceID parentID parent_id directory path title agent model version
    summary cost tokens permission time share revert metadata"""
)
_MESSAGE = fields(
    """id sessionID role time format summary agent model system tools variant error parentID modelID
    providerID mode path cost tokens structured finish metadata"""
)
_STATE = fields("status input output title metadata time raw error attachments")


class OpenCode(Reader):
    """Reads one session: first what it is, then its messages, each with its parts."""

    program = "opencode"
    tools = TOOLS
    since, until = (1, 0), (1, 19)
    has_many = True
    ways = ways_in(
        recorded="read search names shell edit subagent web tool skill paste mention attachment"
        " summary",
        within={
            "tool": "mcp background",
            "mention": "resource",
            "attachment": "notice",
            "instructions": "hook system",
        },
        never="instructions home",
        no_way_in="script queue request",
    )

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[int, int] = {}  # hashes of calls, and of what each got

    def read(self, record: SessionRecord) -> Iterator[Item]:
        """A session's row, or a message."""
        info, parts = record.value.get("info"), record.value.get("parts")
        self.time = info or self.time
        yield from self.strange_fields(record, record.value, _RECORD, "a session or a message")
        if not isinstance(info, dict):
            yield from self.strange_type(record, "", record.value)
        elif "role" in info:
            yield from self._message(record, info, parts)
        else:
            self.records["session"] += 1
            yield from self.strange_fields(record, info, _SESSION, "a session")
            self.cwd = text_at(info, "directory")
            name, version = text_at(info, "id"), text_at(info, "version")
            parent = text_at(info, "parentID") or text_at(info, "parent_id")
            role = text_at(info, "agent") if parent else ""
            yield from self.began(record, name, version, parent=parent or None, role=role)

    def _message(
        self, record: SessionRecord, info: dict[str, Any], parts: object
    ) -> Iterator[Item]:
        role = text_at(info, "role")
        self.records[role] += 1
        if role not in ("user", "assistant"):
            yield from self.strange_type(record, role, record.value)
            return
        yield from self.strange_fields(record, info, _MESSAGE, "a message", role)
        self.cwd = text_at(info, "path", "cwd") or self.cwd
        if info.get("system"):
            yield self.given(record, "instructions", info["system"])
        if not isinstance(parts, list):
            yield from self.strange_type(record, "parts", parts)
        for part in parts if isinstance(parts, list) else ():
            kind = text_at(part, "type")
            known = _PARTS.get(kind)
            if known is None:
                yield from self.strange_type(record, f"part.{kind}", part)
                continue
            yield from self.strange_fields(record, part, known, "a part", kind)
            if kind == "tool":
                yield from self._tool(record, part)
            elif kind == "file":
                yield from self._file(record, part)
            elif kind == "subtask":
                yield self.given(record, "subagent", text_at(part, "prompt"))
            elif kind == "text" and role == "user":
                # A synthetic text is the program's own: a file that was named, a notice.
                channel: Channel = "attachment" if part.get("synthetic") else "paste"
                yield self.given(record, channel, part.get("text"))
            elif kind == "text" and info.get("summary"):
                yield self.given(record, "summary", text_at(part, "text"))

    def _tool(self, record: SessionRecord, part: dict[str, Any]) -> Iterator[Item]:
        state, tool = part.get("state"), text_at(part, "tool")
        if not isinstance(state, dict):
            yield from self.strange_type(record, "tool.state", part)
            return
        yield from self.strange_fields(record, state, _STATE, "the state of a call")
        metadata = yield from self.object_of(record, state.get("metadata"), "state.metadata")
        call = self.called(record, text_at(part, "id"), tool, state.get("input"))
        yield call
        status = text_at(state, "status")
        if status in ("completed", "error"):
            failed = status == "error"
            text = text_of(state.get("error" if failed else "output"))
            denied = failed and "rejected permission" in text
            part_of_it = text_at(state, "metadata", "output")
            if failed and part_of_it and metadata.get("interrupted"):  # what came until then
                text, failed, denied = part_of_it, False, False
            yield self.answered(record, call.id, text, failed=failed, denied=denied)
            # Ids may be one word: the same call has the same input, and began at the same time.
            time, provided = state.get("time"), text_at(part, "callID")
            start = time.get("start") if isinstance(time, dict) else None
            same = hash(marshal.dumps((call.id, provided, tool, state.get("input"), start), 2))
            if self._answers.setdefault(same, hash(text)) != hash(text):
                what = f"whose text a second answer to the call {call.id[:40]!r} was"
                yield Gap("unknown", record.line, what, call.channel)
            for named in (yield from self.list_of(record, metadata.get("loaded"), "loaded")):
                yield self.given(record, "instructions", text, named=str(named))
        child = text_at(state, "metadata", "sessionId")
        if call.channel == "subagent":
            what = f"the session of a subagent, {child[:40] or 'without an id'}"
            begins = call.id if child not in strings_of(state.get("input")) else ""
            yield Gap("missing", record.line, what, "subagent", child=child, call=begins)
        if state.get("attachments"):
            yield Gap("opaque", record.line, "an attachment of an answer", call.channel)

    def _file(self, record: SessionRecord, part: dict[str, Any]) -> Iterator[Item]:
        """A file that the user attached; its text comes as a synthetic part of its own."""
        url, text = text_at(part, "url"), text_at(part, "source", "text", "value")
        paths = [text_at(part, "source", "path"), url if url.startswith("file:") else ""]
        for named in dict.fromkeys(filter(None, paths)):
            yield self.given(record, "mention", text, named=named)
        if not any(paths):
            yield self.given(record, "mention", text, named=text_at(part, "filename") or None)
        if url.startswith("data:"):
            yield Gap("opaque", record.line, "a file whose text is encoded in a message", "mention")
        if not text_at(part, "mime").startswith("text/"):
            yield Gap("opaque", record.line, "a file that is no text in a message", "mention")
