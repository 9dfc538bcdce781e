"""Codex: a rollout, one JSON object a line with a type and a payload. Pure.

Versions 0.14x and 0.16x. In *code mode* the model writes JavaScript; the rollout has the script,
each command as it was run (``CommandExecution``), and what the script gave back to the model. What
was run says which files were opened, the answer to the call what of them was shown.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from tripod.verify.sessions.items import (
    Call,
    Channel,
    Gap,
    Item,
    Reader,
    SessionRecord,
    ToolUse,
    command_line,
    fields,
    strings_of,
    text_at,
    text_of,
    text_of_parts,
    version_of,
    ways_in,
)
from tripod.verify.sessions.shell import WINDOWS, path_of_url

TOOLS = {
    "exec_command": ToolUse("shell", command="cmd"),
    "shell": ToolUse("shell", command="command"),
    "shell_command": ToolUse("shell", command="command"),
    "local_shell": ToolUse("shell", command="command"),
    "container.exec": ToolUse("shell", command="cmd"),
    "write_stdin": ToolUse("script", command="chars"),
    "exec": ToolUse("script"),
    "wait": ToolUse("background"),
    "apply_patch": ToolUse("edit"),
    "update_plan": ToolUse("edit"),
    "view_image": ToolUse("read", ("path",)),
    "read_file": ToolUse("read", ("file_path", "path")),
    "list_dir": ToolUse("names", ("dir_path", "path")),
    "grep_files": ToolUse("names", ("path",), default="."),
    "read_mcp_resource": ToolUse("resource", ("uri",)),
    "list_mcp_resources": ToolUse("names"),
    "list_mcp_resource_templates": ToolUse("names"),
    "web_search": ToolUse("web"),
    "tool_search": ToolUse("edit"),
    "request_user_input": ToolUse("paste"),
    **dict.fromkeys(("spawn_agent", "resume_agent", "send_input"), ToolUse("subagent")),
    **dict.fromkeys(("wait_agent", "close_agent"), ToolUse("subagent")),
}
"""What each tool does. Tools that show no file and run nothing count as ``edit``."""

_LINE = fields("timestamp type payload ordinal metadata")
_LINE_METADATA = fields(
    """history_sequence sampled_through_sequence client_authored mcp_attribution retained_source
    user_input_order fallback_token_limit_override"""
)
_CONTEXT = fields(
    """turn_id root_turn_id trace_id cwd workspace_roots current_date timezone approval_policy
    approvals_reviewer sandbox_policy permission_profile network model personality effort summary
    collaboration_mode multi_agent_version realtime_active disabled_plugin_ids truncation_policy
    final_output_json_schema user_instructions developer_instructions"""
)
_PROMPTED = fields("type id content message images local_images text_elements")
"""What a prompt has where the program says that it came."""

_META = fields(
    """account_scoped session_id id timestamp cwd runtime_workspace_roots originator cli_version
    source thread_source model_provider base_instructions history_mode context_window git
    parent_thread_id forked_from_id agent_nickname agent_role dynamic_tools memory_mode
    instructions user_instructions agent_path"""
)
_PART = fields("type text annotations text_elements")
_PASSED = "id status internal_chat_message_metadata_passthrough"
_ITEMS = {
    "message": fields("type role content phase " + _PASSED),
    "reasoning": fields("type summary content encrypted_content " + _PASSED),
    "function_call": fields("type name namespace arguments call_id " + _PASSED),
    "function_call_output": fields("type call_id output " + _PASSED),
    "custom_tool_call": fields("type call_id name namespace input " + _PASSED),
    "custom_tool_call_output": fields("type call_id name output " + _PASSED),
    "local_shell_call": fields("type call_id action " + _PASSED),
    "web_search_call": fields("type action call_id " + _PASSED),
    "tool_search_call": fields("type call_id execution arguments " + _PASSED),
    "tool_search_output": fields("type call_id execution tools " + _PASSED),
    "ghost_snapshot": fields("type ghost_commit " + _PASSED),
}
"""What the model said and was given."""

_EVENTS = fields(
    """user_message agent_message agent_reasoning agent_reasoning_raw_content token_count
    agent_reasoning_section_break task_started task_complete patch_apply_end patch_apply_begin
    mcp_tool_call_end mcp_tool_call_begin web_search_end web_search_begin context_compacted
    turn_aborted thread_settings_applied item_completed exec_command_end exec_command_begin
    view_image_tool_call error warning stream_error entered_review_mode exited_review_mode
    thread_rolled_back undo_completed thread_name_updated plan_update turn_diff"""
)
_TELLING = fields(
    """item_completed mcp_tool_call_end view_image_tool_call exec_command_end entered_review_mode
    exited_review_mode patch_apply_end"""
)
"""Events that say what no item says."""

_DONE = fields(
    """UserMessage AgentMessage Reasoning Plan CommandExecution FileChange McpToolCall WebSearch
    ImageView ContextCompaction EnteredReviewMode ExitedReviewMode CollabAgentToolCall"""
)
_SILENT = fields("turn_context token_usage_record security_risk_score dynamic_tools_updated")
_SEARCHED: dict[str, Channel] = {
    "world_state": "system",
    "compacted": "summary",
    "retained_context": "summary",
    "inter_agent_communication": "subagent",
}
_OF_SETTINGS: dict[str, Channel] = {
    "base_instructions": "system",
    "developer_instructions": "system",
    "instructions": "instructions",
    "user_instructions": "instructions",
}
"""Where what the settings of a thread hold comes from: the program, or a file of instructions."""

_PROVENANCE: dict[str, Channel] = {
    "agents_md": "instructions",
    "developer_instructions": "system",
    "skills": "system",
    "harness": "system",
    "tool": "attachment",
    "user": "paste",
}
"""Where a part of a message comes from, as newer rollouts say; a ``harness`` may be a hook."""

_AGENTS = re.compile(r"# AGENTS\.md instructions for (.+)")
_MARKED = re.compile(r"<(?:permissions|collaboration_mode|\w+_instructions|model_switch)\b")
_EXIT = re.compile(
    r"(?:.*\n(?:(?!Output:\n).*\n)*?)??(?:Process exited with code|Exit code:) (-?[0-9]+)$",
    re.MULTILINE,
)
"""The code of a command, on a line before those of its output."""

_HEAD = 400  # characters of an answer before the output of the command begins
_SPAWNS = frozenset(("spawn_agent", "resume_agent"))
_TWICE = (0, 169)
"""The first version that says of each command that it was run: recordings show it."""

_RECORDED = {
    **dict.fromkeys(("exec_command", "shell", "shell_command"), "CommandExecution"),
    "view_image": "ImageView",
    "apply_patch": "FileChange",
    **dict.fromkeys(("spawn_agent", "resume_agent"), "CollabAgentToolCall"),
}
"""Which item says that a script called a tool. Tools that show no file need none."""

_NESTED = re.compile(r"\btools\s*(?:\?\.|\.)\s*(\w+)")
_POLL = re.compile(
    r"""write_stdin\(\s*\{(?:(?!chars|\.\.\.)[^{}\[])*
    (?:chars["']?\s*:\s*(["'`])\1(?:(?!chars|\.\.\.)[^{}\[])*)?\}""",
    re.VERBOSE,
)
_DYNAMIC = re.compile(
    r"""(?<![\w./-])tools\b(?:\s*(?:[\[\]),;}=?:]|/[*/]|\?\.\[)(?!\.\s*\w)|[ \t]*(?:\n|\Z))
    |(?:[=(,:?\[{]|\.\.\.|\|\||&&)\s*tools\b(?!\s*[./?])
    |\b(?:globalThis|ALL_TOOLS)\b|\.\s*constructor\b|\bthis\s*[\[.]
    |\b(?:eval|Function|import|require|fetch|readFile\w*)\s*\(|\b(?:process|Deno|Bun|fs)\s*\.
    """,
    re.VERBOSE,
)
"""What of a script may call a tool that it does not name, or read in another way."""

_CALLED = re.compile(r"(?<![\w.])(\w+)\s*\(")
_HARMLESS = fields("text store load exit notify yield_control String Number if for while switch")
_MAX_SCRIPTS = 1_000


@dataclass
class _Script:
    """A script of code mode: what of it cannot be told, and the items that must say what it ran."""

    line: int
    call: str
    why: str
    needs: Counter[str]


def _script_of(record: SessionRecord, call: str, value: object) -> _Script:
    """What a script calls by the names of tools, as far as its text tells."""
    if not isinstance(value, str):
        return _Script(record.line, call, "it is no text", Counter())
    why, needs, polls = "", Counter[str](), 0
    for name in _NESTED.findall(value):
        use = TOOLS.get(name)
        item = "McpToolCall" if name.startswith("mcp__") else _RECORDED.get(name)
        if item is not None:
            needs[item] += 1
        elif name == "write_stdin":
            polls += 1
        elif use is None or use.channel not in ("edit", "names", "paste", "subagent"):
            why = f"it calls {name[:40]}"
    if "write_stdin" in value and polls != len(_POLL.findall(value)):
        why = "it tells a program what to do"
    if _DYNAMIC.search(value):
        why = "which tools it calls its text does not say"
    if not (needs or polls or _HARMLESS.issuperset(_CALLED.findall(value))):
        why = why or "it calls functions that nobody knows"
    return _Script(record.line, call, why, needs)


_SHELL = re.compile(r"(?:.*[/\\])?(?:bash|sh|zsh|dash|ksh)(?:\.exe)?")
_OF_WINDOWS = re.compile(r"(?:.*[/\\])?(?:pwsh|powershell|cmd)(?:\.exe)?")
_ANY_SHELLS = re.compile(r"[\w ./-]*")  # each reads it alike
_RUNS_A_LINE = ("-c", "-lc", "-Command", "/c")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DENIED = "Command blocked by PreToolUse hook:"


class Codex(Reader):
    """Reads a rollout: the file of one thread."""

    program = "codex"
    tools = TOOLS
    since, until = (0, 140), (0, 170)
    ways = ways_in(
        recorded="""read names shell script edit mcp resource subagent web tool background paste
            attachment instructions skill hook summary system""",
        within={"shell": "search", "instructions": "home"},
        no_way_in="mention notice queue request",
    )

    def __init__(self) -> None:
        super().__init__()
        self._spawned: dict[str, str] = {}  # calls of a subagent: which tool they are of
        self._ordinal: int | None = None
        self._is_numbered = False
        self._says_twice = False
        self._has_script = False  # whether a script of the model may run commands
        self._script: _Script | None = None
        self._scripts: list[_Script] = []  # of which it is not told yet what they ran
        self._patched: set[int] = set()
        self._asked: set[int] = set()  # hashes of ids, which are small
        self._ended: dict[str, int] = {}  # commands that ended, by what the model was given
        self._executed: set[int] = set()

    def read(self, record: SessionRecord) -> Iterable[Item]:
        """What one record holds."""
        value = record.value
        kind, payload = value.get("type"), value.get("payload")
        if not isinstance(kind, str):
            kind = ""
        self.records[kind] += 1
        ordinal = value.get("ordinal")
        odd: list[Item] = []
        if type(ordinal) is int and self._ordinal == ordinal - 1:
            self._ordinal = ordinal
        elif ordinal is not None or self._ordinal is not None:
            odd += self._order(record)
        if not _LINE.issuperset(value):
            odd += self.strange_fields(record, value, _LINE, "a line")
        passed = value.get("metadata")
        if isinstance(passed, dict):
            odd += self.strange_fields(record, passed, _LINE_METADATA, "the metadata of a line")
        if not isinstance(payload, dict):
            found: Iterable[Item] = self.strange_type(record, kind, value)
        elif kind == "response_item":
            found = self._item(record, payload)
        elif kind == "event_msg":
            found = self._event(record, payload)
        else:
            found = self._other(record, kind, payload)
        return [*odd, *found] if odd else found

    def _other(self, record: SessionRecord, kind: str, payload: dict[str, Any]) -> Iterator[Item]:
        """What a record holds that is neither an item nor an event."""
        if kind == "session_meta":
            yield from self._meta(record, payload)
        elif kind in _SEARCHED:
            yield self.given(record, _SEARCHED[kind], payload, sure=kind == "compacted")
            if _is_encrypted(payload):
                yield Gap("opaque", record.line, f"what of {kind} is encrypted", _SEARCHED[kind])
            state = payload.get("state") if kind == "world_state" else None
            agents = state.get("agents_md") if isinstance(state, dict) else None
            if text_of(agents):
                yield self.given(record, "instructions", agents)
                place = text_at(agents, "directory")
                yield from self._agents(record, f"# AGENTS.md instructions for {place}")
        elif kind in _SILENT:
            if kind == "turn_context":
                yield from self.strange_fields(record, payload, _CONTEXT, "a", kind)
                self.cwd = text_at(payload, "cwd") or self.cwd
            for name in ("developer_instructions", "user_instructions"):
                text = text_of(payload.get(name))
                if text:
                    yield self.given(record, _OF_SETTINGS[name], text)
        else:
            yield from self.strange_type(record, kind, record.value)

    def _order(self, record: SessionRecord) -> Iterator[Gap]:
        """Newer rollouts number their lines without a gap."""
        ordinal = record.value.get("ordinal")
        self._is_numbered |= ordinal is not None
        if type(ordinal) is int:
            if self._ordinal is not None and ordinal != self._ordinal + 1:
                what = f"ordinal {ordinal} comes after {self._ordinal}"
                yield Gap("order", record.line, what)
            elif self._ordinal is None and ordinal != 0:
                yield Gap("order", record.line, f"the first ordinal is {ordinal}, not 0")
            elif self._ordinal is None and self.records.total() > 1:
                yield Gap("order", record.line, "ordinals begin after the first line")
            self._ordinal = ordinal
        elif ordinal is not None:
            yield Gap("order", record.line, "an ordinal that is no number")
        else:
            yield Gap("order", record.line, f"no ordinal, after {self._ordinal}")

    def _meta(self, record: SessionRecord, payload: dict[str, Any]) -> Iterator[Item]:
        yield from self.strange_fields(record, payload, _META, "session_meta")
        self.cwd = text_at(payload, "cwd")
        spawn = payload.get("source")
        for name in ("subagent", "thread_spawn"):
            spawn = spawn.get(name) if isinstance(spawn, dict) else None
        parent = text_at(payload, "parent_thread_id") or text_at(spawn, "parent_thread_id")
        role = text_at(payload, "agent_role") or text_at(spawn, "agent_role")
        yield from self.began(
            record,
            text_at(payload, "id"),
            text_at(payload, "cli_version"),
            parent=parent or None,
            role=role or ("subagent" if parent else ""),
        )
        # A fork begins with items of another rollout, and without what that says it ran.
        self._says_twice = (
            version_of(text_at(payload, "cli_version")) >= _TWICE
            and payload.get("history_mode") == "paginated"
            and not payload.get("forked_from_id")
        )
        for name in ("base_instructions", "instructions", "user_instructions"):
            text = text_of(payload.get(name))
            if text:
                yield self.given(record, _OF_SETTINGS[name], text)

    def _agents(self, record: SessionRecord, text: str) -> Iterator[Item]:
        """The file of instructions that a text names; others may stand in it as well."""
        named = _AGENTS.match(text)
        if named is not None:
            path = f"{named[1].strip().rstrip('/')}/AGENTS.md"
            yield self.given(record, "instructions", named[0], named=path)

    def _item(self, record: SessionRecord, item: dict[str, Any]) -> Iterable[Item]:
        kind = item.get("type")
        known = _ITEMS.get(kind) if isinstance(kind, str) else None
        if known is None or kind is None:
            return self.strange_type(record, f"response_item.{text_at(item, 'type')}", item)
        found = self._of_item(record, item, kind)
        if known.issuperset(item):
            return found
        return [*self.strange_fields(record, item, known, "an item", kind), *found]

    def _of_item(self, record: SessionRecord, item: dict[str, Any], kind: str) -> Iterable[Item]:
        if kind == "function_call_output":
            return self._result(record, item)
        if kind == "function_call":
            return self._called(record, item, text_at(item, "name"), item.get("arguments"))
        if kind == "message":
            return self._message(record, item)
        if kind == "custom_tool_call":
            return self._custom(record, item)
        if kind in ("local_shell_call", "web_search_call"):
            name = kind.removesuffix("_call")
            return (self._call(record, item, name, item.get("action")),)
        if kind == "tool_search_call":
            return (self._call(record, item, "tool_search", item.get("arguments")),)
        if kind == "tool_search_output":
            call = text_at(item, "call_id")
            return (self.given(record, "edit", item.get("tools"), call=call),)
        return self._result(record, item) if kind.endswith("_output") else ()

    def _custom(self, record: SessionRecord, item: dict[str, Any]) -> Iterator[Item]:
        yield self._call(record, item, text_at(item, "name"), item.get("input"))
        if len(self._scripts) > _MAX_SCRIPTS:
            yield from self._untold(self._scripts.pop(0))

    def _called(
        self, record: SessionRecord, item: dict[str, Any], name: str, arguments: object
    ) -> Iterable[Item]:
        """A call whose input is JSON within a text; where it is not, it may be encrypted."""
        try:
            value = orjson.loads(arguments) if isinstance(arguments, str) else arguments
        except orjson.JSONDecodeError:
            value = arguments
        call = self._call(record, item, name, value)
        if isinstance(value, dict):
            return (call,)
        what = f"the arguments of {name} are no JSON object"
        return Gap("opaque", record.line, what, "tool"), call

    def _call(self, record: SessionRecord, item: dict[str, Any], name: str, value: Any) -> Call:
        call = text_at(item, "call_id") or text_at(item, "id")
        said = value if isinstance(value, dict) else {}
        place = text_at(said, "workdir") or text_at(said, "working_directory")
        if item.get("namespace"):
            name = f"mcp__{item['namespace']}__{name}"
        if name in _SPAWNS:
            self._spawned[call] = name
        self._asked.add(hash(call))
        self._has_script |= name in ("exec", "write_stdin")
        cwd = _joined(self.cwd, place) if place else self.cwd
        if name == "exec":
            self._script = _script_of(record, call, value)
            self._scripts.append(self._script)
            keeps = bool(self._script.why) or "store" in value
            # ``end`` says what of it cannot be told: by then all that it ran is known.
            asked = self.called(record, call, name, value, command="", cwd=cwd)
            return asked._replace(keeps=keeps)
        asked_for, shell = said.get("command"), said.get("shell")
        line = _line_of(asked_for, cwd) if isinstance(asked_for, list) else None
        said_line = text_at(said, "cmd")
        if shell and isinstance(shell, str) and not _is_read(shell, said_line, cwd):
            line = shlex.join([shell, "-c", said_line])
        return self.called(record, call, name, value, command=line, cwd=cwd)

    def _message(self, record: SessionRecord, item: dict[str, Any]) -> Iterator[Item]:
        role, content = item.get("role"), item.get("content")
        if not isinstance(content, list):
            yield from self.strange_type(record, "response_item.message", item)
            return
        passed = item.get("internal_chat_message_metadata_passthrough")
        given = passed.get("content_item_metadata") if isinstance(passed, dict) else None
        origins = given if isinstance(given, list) else []
        for number, part in enumerate(content):
            kind = text_at(part, "type")
            if kind not in ("input_text", "output_text", "text"):
                if kind in ("input_image", "image"):
                    yield Gap("opaque", record.line, "an image in a message", "attachment")
                else:
                    yield from self.strange_type(record, f"message.{kind}", part)
            elif role != "assistant":
                if not _PART.issuperset(part):
                    yield from self.strange_fields(record, part, _PART, "a part of a message")
                said = part.get("text")
                text = said if isinstance(said, str) else text_of(said)
                origin = origins[number] if number < len(origins) else None
                channel = _origin_of(text, role, origin)
                yield self.given(record, channel, text)
                if channel == "instructions":
                    yield from self._agents(record, text)

    def _result(self, record: SessionRecord, item: dict[str, Any]) -> Iterator[Item]:
        call, output = text_at(item, "call_id"), item.get("output")
        channel = self.channels.get(call, "tool")
        if isinstance(output, str):
            text, failed = output, False
        else:
            yield from self._parts(record, output, channel)
            text = text_of_parts(_texts(output))
            failed = isinstance(output, dict) and output.get("success") is False
        # Only the program itself refuses to run something, and then it has not run it.
        denied = text.startswith(_DENIED) and hash(call) not in self._executed
        denied = denied and channel in ("shell", "script", "edit")
        if call in self._spawned and not failed:
            child = _UUID.search(text)
            what = f"the rollout of a subagent, {child[0] if child else 'without an id'}"
            lost = child[0] if child else ""
            begins = call if lost and self._spawned[call] == "spawn_agent" else ""
            yield Gap("missing", record.line, what, "subagent", child=lost, call=begins)
        ended = _EXIT.match(text, 0, _HEAD)
        if ended is not None:
            failed = failed or ended[1] != "0"
            told_twice = self._says_twice and hash(call) not in self._executed
            if channel == "shell" and told_twice:
                self._ended.setdefault(call, record.line)
        if denied:
            failed = True
            self._scripts = [one for one in self._scripts if one.call != call]
        yield self.given(record, channel, text, call=call, failed=failed, denied=denied)

    def _parts(self, record: SessionRecord, output: object, channel: Channel) -> Iterator[Item]:
        """What the parts of an answer hold that is no text."""
        content = output.get("content") if isinstance(output, dict) else output
        for part in content if isinstance(content, list) else ():
            if text_at(part, "type") in ("input_image", "image"):
                yield Gap("opaque", record.line, "an image in the result of a call", channel)
            elif not (isinstance(part, dict) and part.keys() <= {"type", "text"}):
                yield from self.strange_type(record, "output", part)
        if isinstance(output, dict) and not output.keys() <= {"content", "success"}:
            yield from self.strange_type(record, "output", output)

    def _event(self, record: SessionRecord, event: dict[str, Any]) -> Iterable[Item]:
        """What the program says of its work; most of it repeats what an item says."""
        kind = event.get("type")
        if not isinstance(kind, str) or kind not in _EVENTS:
            return self.strange_type(record, f"event_msg.{text_at(event, 'type')}", event)
        if kind == "user_message":
            return self.strange_fields(record, event, _PROMPTED, "an event", kind)
        return self._said(record, event, kind) if kind in _TELLING else ()

    def _said(self, record: SessionRecord, event: dict[str, Any], kind: str) -> Iterator[Item]:
        if kind == "item_completed":
            yield from self._done(record, event.get("item"))
        elif kind == "mcp_tool_call_end":
            asked = event.get("invocation")
            tool = f"mcp__{text_at(asked, 'server')}__{text_at(asked, 'tool')}"
            output = text_of(event.get("result"))
            yield self._ran(record, event, tool, asked, output=output)
        elif kind == "view_image_tool_call":
            yield self._ran(record, event, "view_image", event)
        elif kind == "patch_apply_end":
            yield from self._patches(record, event)
        elif kind == "exec_command_end":
            said = event.get("aggregated_output")
            yield self._ran(record, event, "exec_command", event, output=said)
        elif kind == "entered_review_mode":
            yield Gap("missing", record.line, "the rollout of a review", "subagent")
        elif kind == "exited_review_mode":
            yield self.given(record, "subagent", event.get("review_output"), sure=False)

    def _done(self, record: SessionRecord, item: object) -> Iterator[Item]:
        kind = text_at(item, "type")
        if kind not in _DONE or not isinstance(item, dict):
            yield from self.strange_type(record, f"item_completed.{kind}", item)
            return
        if self._script is not None and hash(text_at(item, "id")) not in self._asked:
            self._script.needs[kind] -= 1
        if kind == "UserMessage":
            yield from self.strange_fields(record, item, _PROMPTED, "an item", kind)
        elif kind == "CommandExecution":
            said = item.get("aggregated_output")
            yield from self._unasked(record, item)
            yield self._ran(record, item, "exec_command", item, output=said)
        elif kind == "McpToolCall":
            tool = f"mcp__{text_at(item, 'server')}__{text_at(item, 'tool')}"
            output = text_of(item.get("result"))
            yield self._ran(record, item, tool, item.get("arguments"), output=output)
        elif kind in ("CollabAgentToolCall", "EnteredReviewMode"):
            text = " ".join(strings_of(item))
            for child in set(_UUID.findall(text)) - self.sessions.keys() or {""}:
                what = f"the rollout of a subagent, {child or 'without an id'}"
                yield Gap("missing", record.line, what, "subagent", child=child)
        elif kind == "ImageView":
            yield self._ran(record, item, "view_image", item)
        elif kind == "FileChange":
            yield from self._patches(record, item)

    def _patches(self, record: SessionRecord, item: dict[str, Any]) -> Iterator[Call]:
        """A patch that was applied, as its text would name the files; it is told more than once."""
        name = text_at(item, "call_id") or text_at(item, "id")
        if item.get("success") is False or text_at(item, "status") in ("failed", "declined"):
            return
        if name and hash(name) in self._patched:
            return
        self._patched.add(hash(name))
        if item.get("type") == "patch_apply_end" and hash(name) not in self._asked and self._script:
            self._script.needs["FileChange"] -= 1
        changes = item.get("changes")
        if isinstance(changes, list):
            changes = {text_at(one, "path"): one for one in changes}
        patch = []
        for path, how in changes.items() if isinstance(changes, dict) else ():
            kind = how.get("kind", how) if isinstance(how, dict) else how
            kind, moved = (text_at(kind, "type") or kind), text_at(kind, "move_path")
            if kind not in ("add", "delete"):
                patch.append(f"*** Update File: {path}")
                patch += [f"*** Move to: {moved}"] if moved else []
        if patch:
            yield self.called(record, name, "apply_patch", "\n".join(patch), ran=True)

    def _unasked(self, record: SessionRecord, item: dict[str, Any]) -> Iterator[Gap]:
        """A command that was run is one that the model, or a script of it, asked for."""
        name = text_at(item, "id")
        self._executed.add(hash(name))
        self._ended.pop(name, None)
        of_user = text_at(item, "source").startswith("user")
        if self._says_twice and not (hash(name) in self._asked or self._has_script or of_user):
            what = f"the command {name[:60]} was run, and no call asked for it"
            yield Gap("witness", record.line, what, "shell")

    def end(self) -> Iterator[Item]:
        """What only the end shows: calls of which the program does not say that it ran them."""
        yield from super().end()
        if self._says_twice and not self._is_numbered:
            yield Gap("order", 1, "no line has an ordinal, as each has of this version")
        for script in self._scripts:
            yield from self._untold(script)
        for name, line in self._ended.items():
            what = f"the call {name[:60]} was answered, and no record says that it was run"
            yield Gap("witness", line, what, "shell")

    def _untold(self, script: _Script) -> Iterator[Gap]:
        why, lacks = script.why, +script.needs
        if lacks:
            why = why or f"no record says what all of it ran ({', '.join(sorted(lacks))})"
        if why:
            yield Gap("opaque", script.line, f"what a script read: {why}", "script")

    def _ran(
        self,
        record: SessionRecord,
        item: dict[str, Any],
        tool: str,
        value: Any,
        *,
        output: object = None,
    ) -> Call:
        """What the program says that it ran: a path that a script built is plain here."""
        command, place = item.get("command"), text_at(item, "cwd")
        if place.startswith("file://"):
            place = path_of_url(place)
        place = place or self.cwd
        if isinstance(command, list):
            command = _line_of(command, place)
        call = text_at(item, "call_id") or text_at(item, "id")
        said = output if isinstance(output, str) else None
        command = command if isinstance(command, str) else None
        return self.called(
            record, call, tool, value, command=command, cwd=place, ran=True, output=said
        )


def _is_read(shell: str, line: str, cwd: str) -> bool:
    """Whether a line in a folder is read as this shell reads it."""
    is_told = WINDOWS.match(cwd) or _ANY_SHELLS.fullmatch(line)
    return bool(_SHELL.fullmatch(shell) or (is_told and _OF_WINDOWS.fullmatch(shell)))


def _line_of(words: list[object], cwd: str) -> str:
    """A command that is recorded as its words: ``bash -lc LINE`` is the line."""
    match words:
        case [str(shell), flag, str(line)] if flag in _RUNS_A_LINE and _is_read(shell, line, cwd):
            return line
    return command_line(words)


def _joined(folder: str, place: str) -> str:
    return place if place.startswith("/") or not folder else f"{folder}/{place}"


def _origin_of(text: str, role: object, said: object) -> Channel:
    """By which channel a text of a user or developer message came; ``said`` is its metadata."""
    if text.startswith("<skill>"):
        return "skill"
    if text.startswith("<user_shell_command>"):
        return "attachment"  # what a command that the user ran has printed
    origin = said.get("provenance") if isinstance(said, dict) else None
    if isinstance(origin, dict):
        return "hook" if origin.get("hook") else _PROVENANCE.get(text_at(origin, "type"), "hook")
    # Older rollouts do not say it: what has none of the program's own marks may be a hook's.
    if text.startswith(("# AGENTS.md instructions", "<user_instructions>")):
        return "instructions"
    if role == "user":
        return "system" if text.startswith("<environment_context>") else "paste"
    return "system" if _MARKED.match(text) else "hook"


def _is_encrypted(payload: dict[str, Any]) -> bool:
    """Whether a summary holds something that only its maker can read."""
    history = payload.get("replacement_history")
    parts = [payload, *(history if isinstance(history, list) else ())]
    return any(
        isinstance(part, dict) and part.get("encrypted_content") and part.get("type") != "reasoning"
        for part in parts
    )


def _texts(output: object) -> object:
    """The texts of an answer that is a list of parts, without the names of their types."""
    if isinstance(output, list):
        return [part.get("text") if isinstance(part, dict) else part for part in output]
    if isinstance(output, dict):
        return output.get("content", output)
    return output
