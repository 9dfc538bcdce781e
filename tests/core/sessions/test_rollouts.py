"""Codex and Copilot: what their records say of instructions, scripts, patches and folders."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from recorded_sessions import recorded
from session_specimens import CALLS, STARTS, Record, claude_user

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.exposure import (
    ExposureVerdict,
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Gap, SessionRecord
from tripod.verify.sessions.readers import READERS, read_session

SECRET = "ann: we ship the seventh release on friday, unless bob finds another fault in it"


def _verdict(
    program: str,
    records: Iterable[Record],
    never: str = "chat/**",
    *,
    protect: str = "",
    shown: bool = False,
    start: bool = True,
) -> ExposureVerdict:
    protected = ProtectedText()
    if protect:
        protected.add("chat/a.md", protect)
    one = SessionExposures(NeverRule([never]), protected)
    whole = [*(STARTS[program] if start else ()), *records]
    numbered = (SessionRecord(number, 0, each) for number, each in enumerate(whole, 1))
    for item in read_session(READERS[program](), numbered):
        one.add(item)
    one.end()
    return judge_exposures([one], Counter(), shown_only=shown)


def _told(program: str, records: Iterable[Record], never: str = "chat/**", **more: Any) -> str:
    return _verdict(program, records, never, **more).told


def _item(kind: str, **more: Any) -> Record:
    return {"timestamp": "t", "type": "response_item", "payload": {"type": kind, **more}}


def _event(kind: str, **item: Any) -> Record:
    done = {"type": "item_completed", "item": {"type": kind, "id": "exec-1", **item}}
    return {"timestamp": "t", "type": "event_msg", "payload": done}


def _user(*texts: str, origin: str | None = None) -> Record:
    parts = [{"type": "input_text", "text": text} for text in texts]
    said = {"content_item_metadata": [{"provenance": {"type": origin}} for _ in texts]}
    passed = {"internal_chat_message_metadata_passthrough": said} if origin else {}
    return _item("message", role="user", content=parts, **passed)


def _exec(script: object, *answer: str, call: str = "c") -> list[Record]:
    parts = [{"type": "input_text", "text": text} for text in answer]
    return [
        _item("custom_tool_call", call_id=call, name="exec", input=script),
        _item("custom_tool_call_output", call_id=call, output=parts),
    ]


def _ran(command: str, output: str | None = "x", name: str = "exec-1", **more: Any) -> Record:
    argv = ["/bin/bash", "-lc", command]
    return _event(
        "CommandExecution", id=name, command=argv, cwd="file:///w", aggregated_output=output, **more
    )


def _copilot(kind: str, **data: Any) -> Record:
    return {"type": kind, "data": data, "timestamp": "t"}


# Instructions -----------------------------------------------------------------------------------

AGENTS = "# AGENTS.md instructions for /w/src\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>"
STATE = {"agents_md": {"directory": "/w/src", "text": "be kind"}, "model": "x"}
WORLD = {"timestamp": "t", "type": "world_state", "payload": {"full": True, "state": STATE}}
OF_CODEX = [[_user(AGENTS)], [_user(AGENTS, origin="agents_md")], [WORLD]]
UNNAMED = "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nbe kind"


@pytest.mark.parametrize("records", OF_CODEX, ids=["old", "provenance", "state"])
@pytest.mark.parametrize(
    ("never", "told"),
    [
        ("AGENTS.md", "findings"),
        ("src/*", "findings"),
        ("/w/AGENTS.md", "cannot tell"),
        ("AGENTS.override.md", "cannot tell"),
        ("~/.codex/**", "cannot tell"),
        (".env*", "clean"),
        ("chat/**", "clean"),
        ("docs/*.md", "clean"),
        ("/w/src/chat/AGENTS.md", "clean"),
    ],
)
def test_files_of_instructions_that_codex_gave_are_named(
    records: list[Record], never: str, told: str
) -> None:
    assert _told("codex", [{**STARTS["codex"][0]}], never, start=False) == "clean"
    if never == "/w/AGENTS.md" or told != "cannot tell":
        start = json.loads(json.dumps(STARTS["codex"]).replace('"/w"', '"/w/src"'))
        assert _told("codex", [*start, *records], never, start=False) == told
    assert _told("codex", records, never) == told


@pytest.mark.parametrize(
    ("never", "told"),
    [
        ("AGENTS.md", "cannot tell"),
        (".github/**", "cannot tell"),
        ("*.md", "cannot tell"),
        ("/AGENTS.md", "cannot tell"),
        (".env*", "clean"),
        ("chat/**", "clean"),
        ("/w/docs/AGENTS.md", "clean"),
    ],
)
def test_files_of_instructions_that_copilot_does_not_name_cannot_be_told(
    never: str, told: str
) -> None:
    text = "x\n<custom_instruction>\nbe kind\n</custom_instruction>\n"
    system = [_copilot("system.message", role="system", content=text)]
    assert _told("copilot", system, never) == told
    searched = _verdict("copilot", system, never, protect=SECRET)
    assert searched.told == "clean"


@pytest.mark.parametrize("text", [UNNAMED, "<user_instructions>\nbe kind"])
def test_instructions_that_codex_does_not_name_cannot_be_told(text: str) -> None:
    assert _told("codex", [_user(text)], "AGENTS.md") == "cannot tell"
    assert _told("codex", [_user(text)], ".env*") == "clean"


def test_recorded_sessions_of_codex_and_copilot_name_their_instructions() -> None:
    for program, told in (("codex", "findings"), ("copilot", "cannot tell")):
        folder = recorded() / f"sessions-2026-11/{program}-clean"
        (path,) = (one for one in folder.rglob("*.jsonl") if "team" not in one.parts)
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        assert _told(program, records, "AGENTS.md", start=False) == told
        assert _told(program, records, ".env*", start=False) == "clean"


# Scripts ----------------------------------------------------------------------------------------

ONE = "const r = await tools.exec_command({cmd: 'ls'}); text(r.output);"
DONE = "Script completed\nWall time 0.1 seconds\nOutput:\n"


def _script(script: object, *ran: Record, answer: str = "x") -> list[Record]:
    asked, answered = _exec(script, DONE, answer)
    return [asked, *ran, answered]


@pytest.mark.parametrize(
    ("script", "runs", "told"),
    [
        (ONE, 1, "clean"),
        (ONE, 0, "cannot tell"),
        (ONE * 2, 1, "cannot tell"),
        (ONE * 2, 2, "clean"),
        ("for (const f of ['a', 'b']) text((await tools.exec_command({cmd: `cat ${f}`})).output)",
         2, "clean"),
        (f"{ONE} await tools.update_plan({{plan: []}})", 1, "clean"),
        (f"{ONE} await tools.write_stdin({{session_id: 5, chars: ''}})", 1, "clean"),
        (f"{ONE} await tools.write_stdin({{session_id: 5, yield_time_ms: 100}})", 1, "clean"),
        (f"{ONE} await tools.write_stdin({{session_id: 5, chars: 'x\\n'}})", 1, "cannot tell"),
        ("text(await tools.exec_command({cmd: 'cat tools/build.py; ls tools'}))", 1, "clean"),
        (f"{ONE} await tools.view_image({{path: p}})", 1, "cannot tell"),
        (f"{ONE} text(await tools.read_mcp_resource({{uri: u}}))", 1, "cannot tell"),
        (f"{ONE} text(await tools.mcp__x__y({{}}))", 1, "cannot tell"),
        (f"{ONE} text(await tools['view_' + 'image']({{path: p}}))", 1, "cannot tell"),
        (f"{ONE} const t = tools; t.view_image({{path: p}})", 1, "cannot tell"),
        (f"{ONE} f(tools)", 1, "cannot tell"),
        (f"{ONE} const {{view_image}} = tools\nview_image({{path: p}})", 1, "cannot tell"),
        (f"{ONE} ALL_TOOLS.map(f)", 1, "cannot tell"),
        (f"{ONE} eval(x)", 1, "cannot tell"),
        (f"{ONE} this['to' + 'ols'].x()", 1, "cannot tell"),
        (f"{ONE} await tools.write_stdin({{...x}})", 1, "cannot tell"),
        (f"{ONE} await tools.write_stdin({{['ch' + 'ars']: 'x'}})", 1, "cannot tell"),
        (f"{ONE} await tools.write_stdin(x)", 1, "cannot tell"),
        ("text(load('a'))", 0, "clean"),
        ("text(frobnicate('a'))", 0, "cannot tell"),
        ({"x": "y"}, 0, "cannot tell"),
    ],
)  # fmt: skip
def test_a_script_is_told_where_records_say_all_that_it_may_have_run(
    script: object, runs: int, told: str
) -> None:
    assert _told("codex", _script(script, *[_ran("ls")] * runs)) == told


def test_what_was_run_explains_no_other_call() -> None:
    """A run without a call of its own is of a script, and of no call that came last."""
    server, answer = CALLS["codex"]("mcp__x__read", {"id": "7"}, "one line")
    assert _told("codex", [server, answer]) == "cannot tell"
    assert _told("codex", [server, _ran("ls"), answer]) == "cannot tell"
    asked, answered = _exec(ONE, DONE, "x", call="s")
    whole = [asked, server, _ran("ls"), answer, answered]
    assert _told("codex", whole) == "cannot tell"


def test_a_script_that_was_denied_read_nothing() -> None:
    asked, _ = _exec(ONE)
    denied = "Command blocked by PreToolUse hook: no. Command: ls"
    answer = _item("custom_tool_call_output", call_id="c", output=denied)
    assert _told("codex", [asked, answer]) == "clean"


CAT = "cat chat/a.md"
HIDDEN = "const r = await tools.exec_command({cmd: 'cat chat/a.md'}); text(r.output.length);"


@pytest.mark.parametrize(
    ("records", "told"),
    [
        (_script(HIDDEN, _ran(CAT, SECRET), answer="82"), "clean"),
        (_script(HIDDEN, _ran(CAT, SECRET), answer=SECRET), "findings"),
        (_script(f"{HIDDEN} store('k', r)", _ran(CAT, SECRET), answer="82"), "cannot tell"),
        ([*_script(f"{HIDDEN} store('k', r)", _ran(CAT, SECRET), answer="82"),
          *_exec("text(load('k').output.split('').reverse().join(''))", DONE, "x", call="d")],
         "cannot tell"),
        ([_exec(HIDDEN)[0], _ran(CAT, SECRET), _exec("", "Script running with cell ID 1")[1],
          *CALLS["codex"]("wait", {"cell_id": "1"}, "x")], "cannot tell"),
        ([*_exec(HIDDEN, "Script running with cell ID 1"), _ran(CAT, SECRET)], "cannot tell"),
    ],
)  # fmt: skip
def test_what_a_script_keeps_may_be_shown_by_a_later_call(records: list[Record], told: str) -> None:
    assert _told("codex", records, shown=True) == told
    assert _told("codex", records) == "findings"


# Calls ------------------------------------------------------------------------------------------


def _exec_command(asked: str, ran: Record | None, answer: str = "x") -> list[Record]:
    call, done = CALLS["codex"]("exec_command", {"cmd": asked}, answer)
    return [call, *([ran] if ran else []), done]


@pytest.mark.parametrize(
    ("asked", "ran", "told"),
    [
        ("ls", "ls", "clean"),
        ("cat chat/a.md", "ls", "findings"),
        ("ls", "cat chat/a.md", "findings"),
        ("ls src", "ls", "cannot tell"),
        ("cd /w && ls", "ls", "clean"),
    ],
)
def test_what_was_asked_for_and_what_was_run_count_both(asked: str, ran: str, told: str) -> None:
    verdict = _verdict("codex", _exec_command(asked, _ran(ran, name="c")))
    assert verdict.told == told
    assert any("ran something else" in why for why in verdict.untold) is (told != "clean")


def test_a_command_in_words_is_what_was_run() -> None:
    call, done = CALLS["codex"]("shell", {"command": ["bash", "-lc", "ls src"]}, "x")
    assert _told("codex", [call, _ran("ls src", name="c"), done]) == "clean"


@pytest.mark.parametrize(
    "asked",
    [
        ("shell", {"command": ["python3", "-c", "true"]}),
        ("exec_command", {"cmd": "true", "shell": "/usr/bin/python3"}),
    ],
)
def test_what_is_no_shell_does_not_read_its_words_as_one(asked: tuple[str, object]) -> None:
    assert _told("codex", CALLS["codex"](*asked, "x")) == "cannot tell"
    for shell in ("bash", "/bin/zsh", "C:\\x\\pwsh.exe"):
        command = {"cmd": "true", "shell": shell}
        assert _told("codex", CALLS["codex"]("exec_command", command, "x")) == "clean"


def test_a_read_that_failed_showed_an_error_although_it_began() -> None:
    call, _ = CALLS["copilot"]("view", {"path": "/w/chat/a.md"}, "x")
    arguments = {"path": "/w/chat/a.md"}
    began = _copilot("tool.execution_start", toolCallId="c", toolName="view", arguments=arguments)
    for error, told in (("Path does not exist", "clean"), ("KEY=1", "cannot tell")):
        failed = _copilot("tool.execution_complete", toolCallId="c", success=False,
                          error={"message": error})  # fmt: skip
        assert _told("copilot", [call, began, failed]) == told


def test_a_view_by_an_editor_is_a_read() -> None:
    for command, told in (("view", "findings"), ("str_replace", "clean")):
        asked = {"command": command, "path": "/w/chat/a.md"}
        call = CALLS["copilot"]("str_replace_editor", asked, "KEY=1")
        assert _told("copilot", call, shown=True) == told
        assert _told("copilot", call) == "findings"


def test_a_denial_is_one_of_a_call_that_was_not_run() -> None:
    text = "Command blocked by PreToolUse hook: KEY=1"
    call, done = CALLS["codex"]("exec_command", {"cmd": CAT}, text)
    assert _told("codex", [call, done]) == "clean"
    assert _told("codex", [call, _ran(CAT, name="c"), done]) == "findings"
    server = CALLS["codex"]("mcp__x__read", {"path": "chat/a.md"}, text)
    assert _told("codex", server) == "cannot tell"


def test_a_tool_of_a_server_is_none_of_the_programs_own() -> None:
    call, done = CALLS["copilot"]("glob", {"pattern": "x"}, "one line")
    began = {"toolCallId": "c", "toolName": "glob", "arguments": {"pattern": "x"}}
    for server, told in (({}, "clean"), ({"mcpServerName": "y"}, "cannot tell")):
        start = _copilot("tool.execution_start", **began, **server)
        assert _told("copilot", [call, start, done]) == told


def test_a_shell_for_windows_stays_where_it_went() -> None:
    went = CALLS["copilot"]("powershell", {"command": "Set-Location chat"}, "x")
    then = json.dumps(CALLS["copilot"]("powershell", {"command": "Get-Content a.md"}, "x"))
    assert _told("copilot", json.loads(then)) == "clean"
    assert _told("copilot", [*went, *json.loads(then.replace('"c"', '"d"'))]) == "cannot tell"


def test_copilot_that_began_something_else_leaves_a_gap() -> None:
    request, done = CALLS["copilot"]("view", {"path": "/w/a"}, "x")
    for path, told in (("/w/a", "clean"), ("/w/b", "cannot tell"), ("/w/chat/a", "findings")):
        began = _copilot("tool.execution_start", toolCallId="c", toolName="view",
                         arguments={"path": path})  # fmt: skip
        assert _told("copilot", [request, began, done]) == told
        began["data"]["arguments"], other = {"path": "/w/a"}, json.dumps(request)
        asked = json.loads(other.replace('"/w/a"', json.dumps(path)))
        assert _told("copilot", [asked, began, done]) == told


@pytest.mark.parametrize(("chars", "told"), [("", "clean"), ("cat x\n", "cannot tell")])
def test_a_poll_of_a_program_tells_it_nothing(chars: str, told: str) -> None:
    poll = CALLS["codex"]("write_stdin", {"session_id": 5, "chars": chars}, "x")
    assert _told("codex", poll) == told
    assert _told("codex", CALLS["codex"]("write_stdin", {"chars": chars}, SECRET),
                 protect=SECRET) == "findings"  # fmt: skip
    assert _told("codex", CALLS["codex"]("write_stdin", {"session_id": 5}, "x")) == "cannot tell"


def _patch(text: str, answer: str, **more: Any) -> list[Record]:
    return [
        _item("custom_tool_call", call_id="p", name="apply_patch", input=text),
        *([_event("FileChange", id="p", **more)] if more else []),
        _item("custom_tool_call_output", call_id="p", output=answer),
    ]


PATCHED = (
    "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM {}\n"
)


@pytest.mark.parametrize(
    ("patch", "told", "shown"),
    [
        ("*** Update File: chat/a.md\n@@\n-a\n+b", "findings", "clean"),
        ("*** Update File: chat/a.md\n*** Move to: b.md\n@@\n-a\n+b", "findings", "cannot tell"),
        ("*** Update File: src/a.md\n@@\n-*** Update File: chat/a.md\n+b", "clean", "clean"),
        ("*** Add File: chat/a.md\n+b", "clean", "clean"),
        ("*** Delete File: chat/a.md", "clean", "clean"),
    ],
)
def test_a_patch_opens_the_files_that_it_changes(patch: str, told: str, shown: str) -> None:
    patch = f"*** Begin Patch\n{patch}\n*** End Patch"
    records = _patch(patch, PATCHED.format("a.md"))
    assert _told("codex", records) == told
    assert _told("codex", records, shown=True) == shown
    asked = CALLS["copilot"]("apply_patch", patch, "Success. Updated the following files:\nM a.md")
    assert _told("copilot", asked) == told
    failed = _patch(patch, "Exit code: 1\nOutput:\nFailed to find expected lines in chat/a.md")
    assert _told("codex", failed) == "clean"


@pytest.mark.parametrize(
    "changes",
    [
        {"/w/chat/a.md": {"type": "update", "unified_diff": "@@"}},
        {"/w/chat/a.md": {"type": "update", "move_path": "/w/b.md"}},
        [{"path": "/w/chat/a.md", "kind": {"type": "update", "move_path": None}}],
    ],
)
def test_a_patch_that_a_script_applied_opens_the_files_that_it_changed(changes: object) -> None:
    script = "await tools.apply_patch(p); text('done')"
    change = _event("FileChange", changes=changes, status="completed")
    assert _told("codex", _script(script, change)) == "findings"
    assert _told("codex", _script(script, change), shown=True) == "cannot tell"
    assert _told("codex", _script(script)) == "cannot tell"
    failed = _event("FileChange", changes=changes, status="failed")
    assert _told("codex", _script(script, failed)) == "clean"


@pytest.mark.parametrize("kind", ["session.context_changed", "session.resume"])
@pytest.mark.parametrize("data", [{"cwd": "/w/chat"}, {"context": {"cwd": "/w/chat"}}])
def test_copilot_says_that_it_went_elsewhere(kind: str, data: Record) -> None:
    view = CALLS["copilot"]("view", {"path": "a.md"}, "x")
    assert _told("copilot", view) == "clean"
    assert _told("copilot", [_copilot(kind, **data), *view]) == "findings"
    heard = _copilot("hook.start", hookType="preToolUse", input={"cwd": "/w/chat"})
    assert _told("copilot", [heard, *view]) == "findings"
    back = _copilot("session.context_changed", cwd="/w/src")
    assert _told("copilot", [_copilot(kind, **data), back, *view]) == "clean"


@pytest.mark.parametrize(
    ("attached", "told"),
    [
        ({"type": "blob", "data": "iVBORw0K", "mimeType": "image/png"}, "cannot tell"),
        ({"type": "file", "uri": "file:///w/chat/a.md"}, "findings"),
        ({"type": "file", "path": "/w/src/a.md"}, "clean"),
    ],
)
def test_what_is_attached_is_named_or_cannot_be_told(attached: Record, told: str) -> None:
    message = _copilot("user.message", content="x", attachments=[attached])
    assert _told("copilot", [message], protect=SECRET) == told


def test_a_picture_in_a_result_cannot_be_told() -> None:
    call, _ = CALLS["copilot"]("view", {"path": "/w/a.png"}, "x")
    for kind, told in (("text", "clean"), ("image", "cannot tell")):
        result = {"content": "x", "contents": [{"type": kind, "data": "x"}]}
        done = _copilot("tool.execution_complete", toolCallId="c", success=True, result=result)
        assert _told("copilot", [call, done], protect=SECRET) == told


def test_a_skill_that_copilot_invoked_is_named() -> None:
    skill = _copilot("skill.invoked", name="x", path="/w/chat/SKILL.md", content="x")
    assert _told("copilot", [skill], protect=SECRET) == "findings"


# Records ----------------------------------------------------------------------------------------

HALVES = [(SECRET[:31], SECRET[31:]), (SECRET[:34], SECRET[34:]), (SECRET[:33], SECRET[33:])]


@pytest.mark.parametrize(
    "parts", [*HALVES, tuple(SECRET.partition("unless")), tuple(SECRET.split())]
)
def test_a_text_that_is_cut_between_the_parts_of_a_message_is_found(parts: tuple[str, ...]) -> None:
    blocks = [{"type": "text", "text": part} for part in parts]
    for secret in (SECRET, SECRET[5:42]):
        assert _told("codex", [_user(*parts)], protect=secret) == "findings"
        assert _told("claude-code", [claude_user(blocks)], protect=secret) == "findings"
    assert _told("codex", [_exec(ONE)[0], _ran("ls"), _exec("", *parts)[1]], protect=SECRET) == (
        "findings"
    )
    verdict = _verdict("codex", [_user(*parts)], protect=SECRET)
    assert len(verdict.reasons) == 1


HISTORY = [{"type": "compaction", "encrypted_content": "gAAAA"}]


@pytest.mark.parametrize(
    "record",
    [
        {"timestamp": "t", "type": "compacted", "payload": {"replacement_history": HISTORY}},
        _item("message", role="user", content=[{"type": "input_text", "text": "x", "new": "y"}]),
        _item("function_call_output", call_id="c", output={"content": [{"type": "input_image"}]}),
    ],
    ids=["encrypted", "field", "image"],
)
def test_what_of_codex_cannot_be_searched_is_named(record: Record) -> None:
    call, done = CALLS["codex"]("view_image", {"path": "/w/a.png"}, "x")
    assert _told("codex", [call, done], protect=SECRET) == "clean"
    records = [call, record] if "output" in record["payload"] else [call, done, record]
    assert _told("codex", records, protect=SECRET) == "cannot tell"


@pytest.mark.parametrize("ordinals", [(0, "1"), (0, 1.0), ("0", "1"), (0.0, 1.0), (0, None),
                                      (None, 1), (True, 1), (None, None)], ids=str)  # fmt: skip
def test_a_number_of_a_line_that_is_none_leaves_a_gap(ordinals: tuple[object, ...]) -> None:
    meta = json.loads(json.dumps(STARTS["codex"][0]))
    meta["payload"]["history_mode"] = "paginated"
    records = [meta, _user("go")]
    for record, ordinal in zip(records, ordinals, strict=True):
        record.update({} if ordinal is None else {"ordinal": ordinal})
    items = read_session(READERS["codex"](), [SessionRecord(1, 0, r) for r in records])
    assert "order" in {item.cause for item in items if isinstance(item, Gap)}
    assert _told("codex", records, start=False) == "cannot tell"
    for record, number in zip(records, (0, 1), strict=True):
        record["ordinal"] = number
    assert _told("codex", records, start=False) == "clean"


def test_an_answer_to_one_of_two_calls_with_one_id_clears_none() -> None:
    def called(path: str) -> Record:
        use = {"type": "tool_use", "id": "REDACTED", "name": "Read", "input": {"file_path": path}}
        return claude_user("x") | {"type": "assistant", "message": {"content": [use]}}

    def answered(text: str, *, failed: bool, **more: Any) -> Record:
        result = {"type": "tool_result", "tool_use_id": "REDACTED", "content": text}
        return claude_user([result | {"is_error": failed}]) | more

    first, second = called("/w/chat/a.md"), called("/w/a")
    missing = answered("File does not exist.", failed=True)
    denied = answered("Permission to read x has been denied.", failed=True, toolDenialKind="x")
    text = answered("one line", failed=False)
    for error in (missing, denied):
        assert _told("claude-code", [first, error, second, text]) == "clean"
        assert _told("claude-code", [first, second, error, text]) == "cannot tell"
        assert _told("claude-code", [second, first, text, error]) == "cannot tell"
