"""Sessions of a few records, one way into the model in each: what a reader is proved by.

``SPECIMENS`` has for each program the records by which each of its channels gives ``SECRET``, or
names the file that holds it. ``STARTS`` are the records that come before, with nothing in them.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tripod.verify.sessions.items import Channel
from tripod.verify.sessions.readers import READERS

SECRET = "ann: we ship the seventh release on friday, unless bob finds another fault in it"
Record = dict[str, Any]
Specimen = tuple[Channel, list[Record]]

_CLAUDE = {"sessionId": "s", "version": "2.1.209", "cwd": "/w"}
_QWEN = {"sessionId": "s", "version": "0.24.4", "cwd": "/w"}


def claude_user(content: object, **more: Any) -> Record:
    """A message that Claude Code gave to its model."""
    return _CLAUDE | {"type": "user", "message": {"role": "user", "content": content}} | more


def _claude_call(tool: str, asked: object, answer: object) -> list[Record]:
    use = {"type": "tool_use", "id": "c", "name": tool, "input": asked}
    result = {"type": "tool_result", "tool_use_id": "c", "content": answer}
    call = _CLAUDE | {"type": "assistant", "message": {"content": [use]}}
    return [call, claude_user([result])]


def _attached(kind: str, **fields: Any) -> list[Record]:
    return [_CLAUDE | {"type": "attachment", "attachment": {"type": kind, **fields}}]


def _codex(kind: str, **payload: Any) -> Record:
    return {"timestamp": "t", "type": kind, "payload": payload}


def _codex_text(text: str, role: str = "user", origin: object = None) -> list[Record]:
    more = {"content_item_metadata": [{"provenance": origin}]} if origin else {}
    part = {"type": "input_text", "text": text}
    passed = {"internal_chat_message_metadata_passthrough": more} if more else {}
    return [_codex("response_item", type="message", role=role, content=[part], **passed)]


def _codex_call(tool: str, asked: object, answer: str) -> list[Record]:
    arguments = json.dumps(asked)
    return [
        _codex("response_item", type="function_call", name=tool, call_id="c", arguments=arguments),
        _codex("response_item", type="function_call_output", call_id="c", output=answer),
    ]


def _codex_ran(kind: str, **item: Any) -> list[Record]:
    return [_codex("event_msg", type="item_completed", item={"type": kind, "id": "x", **item})]


def _copilot(kind: str, **data: Any) -> Record:
    return {"type": kind, "data": data, "timestamp": "t"}


def _copilot_call(tool: str, asked: object, answer: str) -> list[Record]:
    request = {"toolCallId": "c", "name": tool, "arguments": asked}
    result = {"content": answer}
    return [
        _copilot("assistant.message", content="", toolRequests=[request]),
        _copilot("tool.execution_complete", toolCallId="c", success=True, result=result),
    ]


def _gemini_user(*texts: str) -> list[Record]:
    parts = [{"text": text} for text in texts]
    return [{"id": "m1", "timestamp": "t", "type": "user", "content": parts}]


def _gemini_call(tool: str, asked: object, answer: str) -> list[Record]:
    result = [{"functionResponse": {"id": "c", "name": tool, "response": {"output": answer}}}]
    call = {"id": "c", "name": tool, "args": asked, "status": "success", "result": result}
    return [{"id": "m1", "timestamp": "t", "type": "gemini", "content": "", "toolCalls": [call]}]


def _qwen(kind: str, *parts: Record, **more: Any) -> Record:
    return _QWEN | {"type": kind, "message": {"parts": list(parts)}} | more


def _qwen_call(tool: str, asked: object, answer: str) -> list[Record]:
    response = {"id": "c", "name": tool, "response": {"output": answer}}
    return [
        _qwen("assistant", {"functionCall": {"id": "c", "name": tool, "args": asked}}),
        _qwen("tool_result", {"functionResponse": response}, toolCallResult={"status": "success"}),
    ]


def _qwen_system(kind: str, payload: object) -> list[Record]:
    return [_QWEN | {"type": "system", "subtype": kind, "systemPayload": payload}]


def _opencode(role: str, *parts: Record, **more: Any) -> list[Record]:
    return [{"info": {"id": "m", "role": role, **more}, "parts": list(parts)}]


def _opencode_call(tool: str, asked: object, answer: str) -> list[Record]:
    state = {"status": "completed", "input": asked, "output": answer}
    return _opencode("assistant", {"type": "tool", "id": "c", "tool": tool, "state": state})


def _cursor(role: str, *blocks: Record) -> Record:
    return {"role": role, "message": {"content": list(blocks)}}


def _cursor_call(tool: str, asked: object, answer: str) -> list[Record]:
    return [
        _cursor("assistant", {"type": "tool_use", "name": tool, "input": asked}),
        _cursor("user", {"type": "tool_result", "content": answer}),
    ]


def _atif_call(tool: str, asked: object, answer: str) -> list[Record]:
    call = {"tool_call_id": "c", "function_name": tool, "arguments": asked}
    results = [{"source_call_id": "c", "content": answer}]
    step = {"step_id": 2, "source": "agent", "message": "", "tool_calls": [call]}
    return [step | {"observation": {"results": results}}]


CALLS: dict[str, Callable[[str, object, str], list[Record]]] = {
    "claude-code": _claude_call,
    "codex": _codex_call,
    "copilot": _copilot_call,
    "gemini": _gemini_call,
    "qwen": _qwen_call,
    "opencode": _opencode_call,
    "cursor": _cursor_call,
    "atif": _atif_call,
}
"""A call of a tool with its input and its answer, as each program records it."""

_CONTEXT = "<session_context>\n- **Workspace Directories:**\n  - /w\n{}</session_context>"

STARTS: dict[str, list[Record]] = {
    "claude-code": [claude_user("go")],
    "codex": [_codex("session_meta", id="s", cwd="/w", cli_version="0.169.0")],
    "copilot": [
        _copilot("session.start", sessionId="s", copilotVersion="1.0.102", context={"cwd": "/w"})
    ],
    "gemini": [
        {"sessionId": "s", "projectHash": "x", "kind": "main"},
        {"$set": {"messages": _gemini_user(_CONTEXT.format(""))}},
    ],
    "qwen": [_qwen("user", {"text": "go"})],
    "opencode": [{"info": {"id": "s", "directory": "/w", "version": "1.18.33"}}],
    "cursor": [_cursor("user", {"type": "text", "text": "go"})],
    "atif": [{"schema_version": "ATIF-v1.8", "session_id": "s", "agent": {"name": "x"}}],
}

_CHILD = "01a203db-4326-7903-a705-6226962d1527"
_OTHERS: dict[str, list[Specimen]] = {
    "claude-code": [
        ("paste", [claude_user(SECRET)]),
        ("paste", [claude_user([{"type": "text", "text": SECRET}])]),
        ("mention", _attached("file", filename="/w/a", content=SECRET)),
        ("mention", _attached("file", filename="/w/chat/a.md", content="x")),
        ("instructions", _attached("instructions", files=[{"path": "/w/a", "content": SECRET}])),
        ("instructions", _attached("nested_memory", path="/w/chat/a.md", content="x")),
        ("attachment", _attached("selected_lines_in_ide", filename="/w/a", content=SECRET)),
        ("attachment", [claude_user(f"<bash-stdout>{SECRET}</bash-stdout>")]),
        ("attachment", [claude_user([{"type": "image"}])]),
        ("notice", _attached("edited_text_file", filename="/w/a", snippet=SECRET)),
        ("notice", _attached("edited_text_file", filename="/w/chat/a.md", snippet="x")),
        ("hook", _attached("hook_additional_context", content=[SECRET])),
        ("resource", _attached("mcp_resource", uri="x://a", content=SECRET)),
        ("summary", [claude_user(SECRET, isCompactSummary=True)]),
        ("background", _attached("queued_command", prompt=SECRET)),
        ("skill", [claude_user(SECRET, isMeta=True)]),
        ("skill", [claude_user("Base directory for this skill: /w/chat\nx", isMeta=True)]),
        ("skill", _attached("invoked_skills", skills=[{"content": SECRET}])),
        ("system", _attached("date", date=SECRET)),
        ("system", [_attached("date", date="x")[0] | {"rendered": [{"content": SECRET}]}]),
        ("system", [_CLAUDE | {"type": "system", "subtype": "informational", "content": SECRET}]),
        ("hook", [_CLAUDE | {"type": "system", "subtype": "stop_hook_summary",
                             "hookAdditionalContext": [SECRET]}]),
        ("hook", [_CLAUDE | {"type": "system", "subtype": "stop_hook_summary",
                             "hookErrors": [SECRET]}]),
        ("unknown", [_CLAUDE | {"type": "system", "subtype": "informational", "x": SECRET}]),
        ("queue", [_CLAUDE | {"type": "queue-operation", "operation": "enqueue",
                              "content": SECRET}]),
        ("request", [_CLAUDE | {"type": "api-request-blob", "message": {"content": SECRET}}]),
        ("request", [_CLAUDE | {"type": "api-request-shape", "shape": {"system": SECRET}}]),
        ("subagent", _claude_call("Agent", {"prompt": "x"}, "done")),
        ("read", _claude_call("Read", {"file_path": "/w/a.png"}, [{"type": "image"}])),
        ("unknown", [_CLAUDE | {"type": "brand-new", "deep": [{"text": SECRET}]}]),
        ("unknown", [claude_user("x", brandNew=SECRET)]),
        ("unknown", [claude_user("x") | {"message": {"content": "x", "brandNew": SECRET}}]),
        ("unknown", [claude_user("x") | {"message": SECRET}]),
        ("unknown", [claude_user({"text": SECRET})]),
        ("unknown", [claude_user([{"type": "brand_new", "text": SECRET}])]),
        ("unknown", [claude_user([{"type": "text", "text": "x", "brandNew": SECRET}])]),
        ("unknown", _attached("brand_new", text=SECRET)),
        ("unknown", _attached("date", date="x", brandNew=7)),
        ("unknown", [_CLAUDE | {"type": "progress", "data": {"type": "brand_new", "x": SECRET}}]),
        ("unknown", [_CLAUDE | {"type": "progress", "data": {
            "type": "agent_progress", "message": {"type": "brand_new", "text": SECRET}}}]),
        ("unknown", [_CLAUDE | {"type": "system", "subtype": "brand_new", "content": SECRET}]),
        ("unknown", _claude_call("Edit", {}, {"x": SECRET})),
        ("unknown", _claude_call("Edit", {}, [{"type": "brand_new", "text": SECRET}])),
        ("read", [_CLAUDE | {"type": "progress", "data": {
            "type": "agent_progress", "agentId": "a1", "message": {
                "type": one["type"], "message": one["message"]}}}
            for one in _claude_call("Read", {"file_path": "/w/a"}, SECRET)]),
    ],
    "codex": [
        ("paste", _codex_text(SECRET)),
        ("paste", _codex_text(SECRET, origin={"type": "user"})),
        ("attachment", _codex_text(f"<user_shell_command>{SECRET}")),
        ("attachment", _codex_text(SECRET, origin={"type": "tool"})),
        ("instructions", _codex_text(f"# AGENTS.md instructions for /w\n{SECRET}")),
        ("instructions", _codex_text(SECRET, origin={"type": "agents_md"})),
        ("system", _codex_text(SECRET, "developer", {"type": "developer_instructions"})),
        ("system", [_codex("session_meta", id="s", cwd="/w", cli_version="0.169.0",
                           base_instructions={"text": SECRET})]),
        ("instructions", [_codex("session_meta", id="s", cwd="/w", cli_version="0.169.0",
                                 user_instructions=SECRET)]),
        ("skill", _codex_text(f"<skill><name>x</name>{SECRET}</skill>")),
        ("hook", _codex_text(SECRET, "developer")),
        ("hook", _codex_text(SECRET, "developer", {"type": "harness", "hook": True})),
        ("hook", _codex_text(SECRET, "user", {"type": "brand_new"})),
        ("summary", [_codex("compacted", message=SECRET)]),
        ("summary", [_codex("retained_context", text=SECRET)]),
        ("system", _codex_text(f"<permissions instructions>{SECRET}", "developer")),
        ("system", _codex_text(f"<environment_context>{SECRET}")),
        ("system", _codex_text(SECRET, "developer", {"type": "harness", "hook": False})),
        ("system", [_codex("world_state", state={"x": SECRET})]),
        ("instructions", [_codex("turn_context", cwd="/w", user_instructions=SECRET)]),
        ("instructions", _codex_text("# AGENTS.md instructions for /w/chat\nx")),
        ("edit", [_codex("response_item", type="custom_tool_call", call_id="c", name="apply_patch",
                         input="*** Begin Patch\n*** Update File: chat/a.md\n"),
                  _codex_call("apply_patch", {}, "x")[1]]),
        ("edit", _codex_ran("FileChange", changes={"/w/chat/a.md": {"type": "update"}})),
        ("edit", [_codex("event_msg", type="patch_apply_end", success=True,
                         changes={"/w/chat/a.md": {"type": "update"}})]),
        ("subagent", [_codex("inter_agent_communication", text=SECRET)]),
        ("subagent", [_codex("event_msg", type="exited_review_mode", review_output=SECRET)]),
        ("subagent", [_codex("event_msg", type="entered_review_mode")]),
        ("subagent", _codex_ran("CollabAgentToolCall", child=_CHILD)),
        ("subagent", _codex_call("spawn_agent", {"message": "x"}, _CHILD)),
        ("tool", [_codex("response_item", type="function_call", name="update_plan", call_id="c",
                         arguments="encrypted"), _codex_call("update_plan", {}, "x")[1]]),
        ("attachment", [_codex("response_item", type="message", role="user",
                               content=[{"type": "input_image"}])]),
        ("read", [_codex_call("view_image", {"path": "/w/a.png"}, "x")[0],
                  _codex("response_item", type="function_call_output", call_id="c",
                         output=[{"type": "input_image"}])]),
        ("unknown", [_codex("brand_new", text=SECRET)]),
        ("unknown", [{"timestamp": "t", "type": "compacted", "payload": SECRET}]),
        ("unknown", [_codex("turn_context", cwd="/w") | {"brandNew": SECRET}]),
        ("unknown", [_codex("session_meta", id="s", cwd="/w", cli_version="0.169.0",
                            brand_new=SECRET)]),
        ("unknown", [_codex("response_item", type="brand_new", text=SECRET)]),
        ("unknown", [_codex("response_item", type="reasoning", brand_new=SECRET)]),
        ("unknown", [_codex("response_item", type="message", role="user", content=SECRET)]),
        ("unknown", [_codex("response_item", type="message", role="user",
                            content=[{"type": "brand_new", "text": SECRET}])]),
        ("unknown", [_codex("event_msg", type="brand_new", text=SECRET)]),
        ("unknown", _codex_ran("BrandNew", text=SECRET)),
        ("unknown", [_codex_call("apply_patch", {}, "x")[0],
                     _codex("response_item", type="function_call_output", call_id="c",
                            output=[{"type": "text", "text": "x", "brand_new": SECRET}])]),
        ("unknown", [_codex_call("apply_patch", {}, "x")[0],
                     _codex("response_item", type="function_call_output", call_id="c",
                            output={"content": "x", "brand_new": SECRET})]),
        ("shell", _codex_ran("CommandExecution", command=["cat", "chat/a.md"], cwd="/w")),
        ("shell", [_codex("event_msg", type="exec_command_end", command=["cat", "chat/a.md"],
                          cwd="/w", aggregated_output="x")]),
        ("read", _codex_ran("ImageView", path="/w/chat/a.md")),
        ("read", [_codex("event_msg", type="view_image_tool_call", path="/w/chat/a.md")]),
        ("mcp", _codex_ran("McpToolCall", server="x", tool="y", arguments={"p": "chat/a.md"})),
        ("mcp", [_codex("event_msg", type="mcp_tool_call_end",
                        invocation={"server": "x", "tool": "y"}, result="x")]),
        ("shell", [
            _codex("response_item", type="local_shell_call", call_id="c",
                   action={"command": ["cat", "chat/a.md"]}),
            _codex("response_item", type="function_call_output", call_id="c", output="x")]),
        ("script", [
            _codex("response_item", type="custom_tool_call", call_id="c", name="exec", input="x"),
            _codex("response_item", type="custom_tool_call_output", call_id="c", output=SECRET)]),
        ("edit", [_codex("response_item", type="tool_search_call", call_id="c"),
                  _codex("response_item", type="tool_search_output", call_id="c", tools=[SECRET])]),
        ("web", [_codex("response_item", type="web_search_call", call_id="c", action={"q": SECRET}),
                 _codex("response_item", type="function_call_output", call_id="c", output=SECRET)]),
    ],
    "copilot": [
        ("paste", [_copilot("user.message", content=SECRET)]),
        ("paste", [_copilot("user.message", content="x", transformedContent=SECRET)]),
        ("attachment", [_copilot("user.message", content="x", attachments=[{"text": SECRET}])]),
        ("attachment", [
            _copilot("user.message", content="x", attachments=[{"path": "/w/chat/a.md"}])]),
        ("instructions", [_copilot("system.message", role="system", content=SECRET)]),
        ("skill", [_copilot("skill.invoked", content=SECRET)]),
        ("hook", [_copilot("hook.end", output=SECRET)]),
        ("summary", [_copilot("session.compaction_complete", summaryContent=SECRET)]),
        ("summary", [_copilot("session.handoff", summary=SECRET)]),
        ("system", [_copilot("session.resume", context=SECRET)]),
        ("background", [_copilot("system.notification", content=SECRET)]),
        ("subagent", _copilot_call("task", {"prompt": "x"}, "done")),
        ("unknown", [_copilot("brand.new", text=SECRET)]),
        ("unknown", [_copilot("abort") | {"data": SECRET}]),
        ("unknown", [_copilot("abort") | {"brandNew": SECRET}]),
        ("unknown", [_copilot("user.message", content="x", brandNew=SECRET)]),
        ("unknown", [_copilot("assistant.message", content="", toolRequests=[SECRET])]),
        ("unknown", [_copilot_call("edit", {}, "x")[0],
                     _copilot("tool.execution_complete", toolCallId="c", success=True,
                              result={"content": "x", "brandNew": SECRET})]),
        ("shell", [_copilot("tool.execution_start", toolCallId="c", toolName="bash",
                            arguments={"command": "cat chat/a.md"})]),
    ],
    "gemini": [
        ("paste", _gemini_user(SECRET)),
        ("paste", [_gemini_user()[0] | {"content": SECRET}]),
        ("paste", [{"$set": {"messages": _gemini_user(SECRET)}}]),
        ("paste", [{"sessionId": "s", "projectHash": "x", "messages": _gemini_user(SECRET)}]),
        ("mention", _gemini_user("\nContent from @a:\n", SECRET)),
        ("mention", _gemini_user("\nContent from @chat/a.md:\n", "x")),
        ("mention", [_gemini_user()[0] | {"content": [{"inlineData": {}}]}]),
        ("mention", [*_gemini_call("edit", {}, "x"), _gemini_user()[0] | {"content": [
            {"functionResponse": {"id": "c", "response": {"output": "x"}, "parts": [{}]}}]}]),
        ("attachment", _gemini_user(f"Here is the user's editor context {SECRET}")),
        ("attachment", _gemini_user(f"I ran the following shell command:\n{SECRET}")),
        ("instructions", _gemini_user(
            "--- Context from: chat/a.md ---\nx\n--- End of Context from: chat/a.md ---")),
        ("instructions", _gemini_call("read_file", {"file_path": "/w/b"},
            "<!-- Imported from: chat/a.md -->\nx\n<!-- End of import from: chat/a.md -->")),
        ("hook", _gemini_user(f"<hook_context>{SECRET}</hook_context>")),
        ("summary", _gemini_user(f"<state_snapshot>{SECRET}</state_snapshot>")),
        ("system", _gemini_user(_CONTEXT.format(SECRET))),
        ("subagent", _gemini_call("task", {"prompt": "x"}, "done")),
        ("unknown", [_gemini_user()[0] | {"type": "brand_new", "text": SECRET}]),
        ("unknown", [_gemini_user("x")[0] | {"brandNew": SECRET}]),
        ("unknown", [{"sessionId": "s", "projectHash": "x", "brandNew": SECRET}]),
        ("unknown", [{"$set": {"brandNew": SECRET}}]),
        ("unknown", [{"$set": {"kind": "main"}, "brandNew": SECRET}]),
        ("unknown", [{"$set": {"messages": [SECRET]}}]),
        ("unknown", [_gemini_user()[0] | {"content": 7}]),
        ("unknown", [_gemini_user()[0] | {"content": [{"brandNew": SECRET}]}]),
        ("unknown", [_gemini_call("edit", {}, "x")[0] | {"toolCalls": [SECRET]}]),
        ("unknown", [_gemini_call("edit", {}, "x")[0] | {"toolCalls": [
            {"id": "d", "name": "edit", "status": "success", "brandNew": SECRET}]}]),
    ],
    "qwen": [
        ("paste", [_qwen("user", {"text": SECRET})]),
        ("mention", [_qwen("user", {"text": "\nContent from @a:\n"}, {"text": SECRET})]),
        ("mention", _qwen_system("at_command", {"filesRead": ["/w/chat/a.md"]})),
        ("attachment", [_qwen("user", {"text": f"Here is the user's editor context {SECRET}"})]),
        ("summary", _qwen_system("chat_compression", {"summary": SECRET})),
        ("subagent", _qwen_call("task", {"prompt": "x"}, "done")),
        ("unknown", [_QWEN | {"type": "brand_new", "text": SECRET}]),
        ("unknown", [_qwen("user", {"text": "x"}, brandNew=SECRET)]),
        ("unknown", [_qwen("user", {"brandNew": SECRET})]),
        ("unknown", [_qwen("user") | {"message": {"parts": 7}}]),
        ("unknown", [_qwen("assistant", {"brandNew": SECRET})]),
        ("unknown", _qwen_system("brand_new", {"text": SECRET})),
        ("read", _qwen_system("ui_telemetry", {"uiEvent": {
            "event.name": "qwen-code.tool_call", "call_id": "c", "function_name": "read_file",
            "function_args": {"file_path": "/w/chat/a.md"}}})),
    ],
    "opencode": [
        ("paste", _opencode("user", {"type": "text", "text": SECRET})),
        ("attachment", _opencode("user", {"type": "text", "text": SECRET, "synthetic": True})),
        ("mention", _opencode("user", {"type": "file", "mime": "text/plain",
                                       "url": "file:///w/chat/a.md"})),
        ("mention", _opencode("user", {"type": "file", "mime": "image/png", "url": "data:x"})),
        ("summary", _opencode("assistant", {"type": "text", "text": SECRET}, summary=True)),
        ("subagent", _opencode("user", {"type": "subtask", "prompt": SECRET})),
        ("subagent", _opencode_call("task", {"prompt": "x"}, "done")),
        ("instructions", _opencode("user", system=SECRET)),
        ("read", _opencode("assistant", {"type": "tool", "id": "c", "tool": "read", "state": {
            "status": "completed", "input": {"filePath": "/w/a.png"}, "output": "x",
            "attachments": [{"url": "data:x"}]}})),
        ("unknown", [{"info": SECRET}]),
        ("unknown", [_opencode("user")[0] | {"brandNew": SECRET}]),
        ("unknown", _opencode("brand_new", {"type": "text", "text": SECRET})),
        ("unknown", [_opencode("user")[0] | {"parts": SECRET}]),
        ("unknown", _opencode("user", {"type": "brand_new", "text": SECRET})),
        ("unknown", _opencode("user", {"type": "text", "text": "x", "brandNew": SECRET})),
        ("unknown", _opencode("assistant", {"type": "tool", "tool": "edit", "state": SECRET})),
        ("unknown", _opencode("assistant", {"type": "tool", "tool": "edit", "id": "c",
            "state": {"status": "completed", "output": "x", "brandNew": SECRET}})),
    ],
    "cursor": [
        ("paste", [_cursor("user", {"type": "text", "text": SECRET})]),
        ("unknown", [{"role": "brand_new", "message": {"content": SECRET}}]),
        ("unknown", [{"role": "user", "message": {"content": SECRET}}]),
        ("unknown", [_cursor("user", {"type": "brand_new", "text": SECRET})]),
        ("unknown", [_cursor("user", {"type": "text", "text": "x", "brandNew": SECRET})]),
    ],
    "atif": [
        ("paste", [{"step_id": 1, "source": "user", "message": SECRET}]),
        ("paste", [{"step_id": 1, "source": "user", "message": [{"type": "image"}]}]),
        ("system", [{"step_id": 1, "source": "system", "message": SECRET}]),
        ("paste", [{"step_id": 1, "source": "user",
                    "message": [{"type": "text", "text": SECRET}]}]),
        ("tool", [{"step_id": 1, "source": "agent", "message": "",
                   "observation": {"results": [{"content": SECRET}]}}]),
        ("unknown", [{"step_id": 1, "source": "brand_new", "message": SECRET}]),
        ("unknown", [{"step_id": 1, "source": "user", "message": "x", "brandNew": SECRET}]),
        ("unknown", [{"step_id": 1, "source": "agent", "tool_calls": [SECRET]}]),
        ("unknown", [{"step_id": 1, "source": "agent", "observation": {"results": [SECRET]}}]),
        ("unknown", [{"step_id": 1, "source": "agent", "observation": {"results": [
            {"content": "x", "brandNew": SECRET}]}}]),
        ("unknown", [STARTS["atif"][0] | {"brandNew": SECRET}]),
        ("unknown", [STARTS["atif"][0] | {"subagent_trajectories": [SECRET]}]),
        ("subagent", [STARTS["atif"][0] | {"continued_trajectory_ref": "x"}]),
        ("subagent", [{"step_id": 1, "source": "agent", "observation": {"results": [
            {"content": "x", "subagent_trajectory_ref": "x"}]}}]),
    ],
}  # fmt: skip


_TWICE = _codex("session_meta", id="s", cwd="/w", cli_version="0.169.0", history_mode="paginated")
_NUMBERED = [_TWICE | {"ordinal": 0}]
_ORDERED = _codex("event_msg", type="token_count") | {"ordinal": 1}
_REST: dict[str, list[Specimen]] = {
    "claude-code": [
        ("request", [_CLAUDE | {"type": "content-replacement", "replacements": [SECRET]}]),
        ("request", [_CLAUDE | {"type": "api-request-blob"}]),
        ("unknown", [_CLAUDE | {"type": "assistant",
                                "message": {"role": "user", "content": [SECRET]}}]),
        ("unknown", [_CLAUDE | {"type": "user", "message": {"role": "assistant",
                                                            "content": "x"}}]),
        ("unknown", [claude_user([{"type": "text", "text": 7}])]),
        ("background", _claude_call("TaskOutput", {"task_id": "b9"}, "x")),
        ("attachment", [claude_user(
            "<ide_selection>The user selected the lines 1 to 2 from /w/chat/a.md:\nx")]),
        ("notice", _claude_call("Edit", {}, "<system-reminder>\nNote: /w/chat/a.md was modified")),
        ("mention", _attached("file", filename="/w/a.png", content={"type": "image", "file": {
            "base64": "x"}})),
    ],
    "codex": [
        ("summary", [_codex("compacted", message="x", encrypted_content="x")]),
        ("unknown", [_ORDERED]),
        ("unknown", [*_NUMBERED, _ORDERED | {"ordinal": 7}]),
        ("unknown", [_codex("event_msg", type="token_count") | {"ordinal": 0}]),
        ("unknown", [_codex("event_msg", type="token_count") | {"ordinal": "x"}]),
        ("unknown", [_TWICE]),
        ("unknown", [_codex("turn_context", cwd="/w", brandNew=SECRET)]),
        ("unknown", _codex_ran("UserMessage", content=[], brandNew=SECRET)),
        ("unknown", [_codex("response_item", type="message", role="user", content=[
            {"type": "input_text", "text": "x", "brandNew": SECRET}])]),
    ],
    "copilot": [
        ("unknown", [_copilot("abort") | {"parentId": "gone"}]),
        ("unknown", [_copilot("system.message", role="system", content="x",
                              metadata={"brandNew": SECRET})]),
        ("attachment", [_copilot("user.message", content="x", attachments=[{"data": "x"}])]),
        ("edit", [_copilot_call("edit", {}, "x")[0],
                  _copilot("tool.execution_complete", toolCallId="c", success=True,
                           result={"contents": [{"type": "image"}]})]),
    ],
    "gemini": [
        ("unknown", [{"$rewindTo": [SECRET]}]),
        ("edit", [_gemini_call("edit", {}, "x")[0] | {"toolCalls": [{
            "id": "c", "name": "edit", "args": {}, "status": "success", "result": [
                {"functionResponse": {"id": "c", "response": {}}, "text": SECRET}]}]}]),
        ("unknown", [_gemini_user()[0] | {"content": 7}]),
        ("mention", [_gemini_user()[0] | {"content": [
            {"text": "\nContent from @chat/a.md:\n"}, {"inlineData": {}}]}]),
        ("instructions", _gemini_user("--- Context from: chat/a.md ---\nx")),
    ],
    "qwen": [
        ("unknown", [_QWEN | {"type": "user", "parentUuid": "gone",
                              "message": {"parts": [{"text": "x"}]}}]),
        ("unknown", [_qwen("user") | {"message": {"parts": [], "brandNew": SECRET}}]),
        ("unknown", _qwen_system("at_command", {"brandNew": SECRET})),
        ("unknown", _qwen_system("at_command", {"filesRead": [{"x": SECRET}]})),
        ("system", _qwen_system("slash_command", {"outputHistoryItems": [{"text": SECRET}]})),
    ],
    "opencode": [
        ("unknown", [{"info": {"id": "s", "directory": "/w", "version": "1.18.33",
                               "brandNew": SECRET}}]),
        ("unknown", _opencode("user", brandNew=SECRET)),
        ("instructions", _opencode("assistant", {
            "type": "tool", "id": "c", "tool": "edit", "state": {
                "status": "completed", "input": {}, "output": "x",
                "metadata": {"loaded": ["/w/chat/a.md"]}}})),
        ("mention", _opencode("user", {"type": "file", "mime": "text/plain",
                                       "filename": "/w/chat/a.md"})),
        ("edit", [message for text in ("x", "y") for message in _opencode_call("edit", {}, text)]),
    ],
    "atif": [
        ("unknown", [{"step_id": 1, "source": "agent", "observation": {"brandNew": SECRET}}]),
        ("unknown", [STARTS["atif"][0] | {"subagent_trajectories": [{"brandNew": SECRET}]}]),
        ("paste", [STARTS["atif"][0] | {"subagent_trajectories": [{"steps": [
            {"step_id": 1, "source": "user", "message": SECRET}]}]}]),
        ("paste", [STARTS["atif"][0] | {"subagent_trajectories": [{"steps": [
            {"step_id": 1, "source": "user", "message": [{"type": "image"}]}]}]}]),
    ],
}  # fmt: skip
"""What no channel has to itself: fields and parts of another shape, order, and what is encoded."""


def _of_tools(program: str) -> Iterator[Specimen]:
    """For each tool, and for some that no table has, a call whose answer is the text."""
    tools = READERS[program].tools
    for tool, use in tools.items():
        asked = {} if use.command is None else {use.command: "python x.py"}
        yield use.channel, CALLS[program](tool, asked, SECRET)
        if use.paths and use.channel != "names":
            yield use.channel, CALLS[program](tool, {use.paths[0]: "/w/chat/a.md"}, "x")
        elif use.command is not None and use.channel == "shell":
            yield use.channel, CALLS[program](tool, {use.command: "cat chat/a.md"}, "x")
    yield "tool", CALLS[program]("brand_new", {"x": "y"}, SECRET)
    yield "tool", CALLS[program]("brand_new", {"x": "chat/a.md"}, "x")
    if READERS[program].ways["mcp"].within is None:
        yield "mcp", CALLS[program]("mcp__x__y", {"x": "chat/a.md"}, "x")


SPECIMENS: list[tuple[str, Channel, list[Record]]] = [
    (program, channel, records)
    for program in READERS
    for channel, records in (*_of_tools(program), *_OTHERS[program], *_REST.get(program, ()))
]
"""Program, channel and records; each shows, or may show, a file of ``chat/``."""

_SCRIPT = "text(await tools.mcp__x__y({}))"
_ENDED = "Process exited with code 0\nOutput:\nx"
SESSIONS: list[tuple[str, list[Record]]] = [
    ("claude-code", [claude_user([{"type": "text", "text": "go"}, {"type": "image"}])]),
    ("claude-code", [_CLAUDE | {"type": "ai-title", "version": "9.9.9"}, claude_user("go")]),
    ("codex", [*STARTS["codex"], _codex("event_msg", type="user_message", brandNew="x")]),
    ("codex", [*STARTS["codex"], _codex("event_msg", type="error") | {
        "metadata": {"brandNew": "x"}}]),
    ("codex", [_codex("session_meta", id="s", cwd="/w")]),
    ("codex", [_TWICE, *_codex_ran("CommandExecution", command=["ls"], cwd="/w")]),
    ("codex", [_TWICE, *_codex_call("exec_command", {"cmd": "ls"}, _ENDED)]),
    ("gemini", STARTS["gemini"][:1]),
    ("gemini", [*STARTS["gemini"], *_gemini_call("edit", {}, "x"), {
        **_gemini_user()[0], "id": "m2", "content": [
            {"functionResponse": {"id": "d", "response": {"output": "x"}}}]}]),
    ("qwen", [*_qwen_call("edit", {}, "x"), *_qwen_system("ui_telemetry", {"uiEvent": {}})]),
    ("atif", [STARTS["atif"][0] | {"schema_version": "ATIF-v9"}]),
    ("atif", [*STARTS["atif"], {"step_id": 1, "source": "agent", "tool_calls": [
        {"tool_call_id": "c", "function_name": "x", "brandNew": "x"}]}]),
]  # fmt: skip
"""Whole sessions that lack something, or tell two stories: none of them is clean."""
