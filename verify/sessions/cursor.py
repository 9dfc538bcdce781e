"""Cursor: ``agent-transcripts``, one object a line with a role and a message. Pure.

There are no ids, no times, no version and no directory, and nothing says what else reached the
model: what is found counts, and no session of it can be called clean.
"""

from __future__ import annotations

from collections.abc import Iterator

from tripod.verify.sessions.items import (
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
    "Read": ToolUse("read", ("path", "target_file")),
    "read_file": ToolUse("read", ("path", "target_file")),
    "Grep": ToolUse("search", ("path",), recursive=True, default="."),
    "Glob": ToolUse("names", ("target_directory", "glob_pattern")),
    "LS": ToolUse("names", ("target_directory",)),
    "Shell": ToolUse("shell", command="command"),
    "run_terminal_cmd": ToolUse("shell", command="command"),
    "Write": ToolUse("edit", ("path",)),
    "StrReplace": ToolUse("edit", ("path",)),
    "Delete": ToolUse("edit", ("path",)),
    "Task": ToolUse("subagent"),
    "WebSearch": ToolUse("web"),
    "WebFetch": ToolUse("web"),
    "TodoWrite": ToolUse("edit"),
}
"""What each tool does. Tools that show no file and run nothing count as ``edit``."""

_BLOCKS = {
    "text": fields("type text"),
    "tool_use": fields("type name input id"),
    "tool_result": fields("type name content tool_use_id is_error result"),
}


class Cursor(Reader):
    """Reads a transcript; a result belongs to the oldest call that has none."""

    program = "cursor"
    tools = TOOLS
    ways = ways_in(
        recorded="read search names shell edit subagent web tool paste",
        within={"tool": "mcp resource"},
        not_known="""mention attachment instructions notice hook summary background skill system
            home""",
        no_way_in="script queue request",
    )

    def __init__(self) -> None:
        super().__init__()
        self._open: list[str] = []

    def read(self, record: SessionRecord) -> Iterator[Item]:
        """What one record holds."""
        value = record.value
        if not self.sessions:
            yield from self.began(record, "")
            yield Gap("missing", record.line, "no version, id, time or directory is recorded")
        role = text_at(value, "role") or text_at(value, "type")
        self.records[role] += 1
        if role == "turn_ended":
            return
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if role not in ("user", "assistant") or not isinstance(content, list):
            yield from self.strange_type(record, role, value)
            return
        for block in content:
            kind = text_at(block, "type")
            known = _BLOCKS.get(kind)
            if known is None:
                yield from self.strange_type(record, f"{role}.{kind}", block)
                continue
            yield from self.strange_fields(record, block, known, "a block", kind)
            if kind == "tool_use":
                name = f"call {len(self.channels) + 1}"
                self._open.append(name)
                yield self.called(record, name, text_at(block, "name"), block.get("input"))
            elif kind == "tool_result":
                name = self._open.pop(0) if self._open else ""
                said = block.get("content", block.get("result"))
                yield self.answered(record, name, said, failed=block.get("is_error") is True)
            elif role == "user":
                yield self.given(record, "paste", text_at(block, "text"))
