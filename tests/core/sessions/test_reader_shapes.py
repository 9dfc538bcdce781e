"""What readers make of values in a place where no program puts them, and of agents without a file.

A missing value is no gap. One of another JSON type is, and its text is searched.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from session_specimens import CALLS, SECRET, SPECIMENS, STARTS, Record, claude_user

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.exposure import (
    ExposureVerdict,
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Call, Gap, Given, Item, Session, SessionRecord
from tripod.verify.sessions.readers import READERS, read_session

FILE = "chat/a.md"
CLAUDE = {"sessionId": "s", "version": "2.1.209", "cwd": "/w"}


def _items(program: str, *records: Record) -> list[Item]:
    numbered = [SessionRecord(number, 0, one) for number, one in enumerate(records, 1)]
    return list(read_session(READERS[program](), numbered))


def _judged(
    *files: list[Item], shown_only: bool = False, rule: bool = True, text: str = SECRET
) -> tuple[ExposureVerdict, list[SessionExposures]]:
    read = []
    protected = ProtectedText()
    if text:
        protected.add(FILE, text)
    for items in files:
        never = NeverRule(["chat/**"]) if rule else None
        one = SessionExposures(never, protected, "", frozenset(("instructions", "home")))
        for item in items:
            one.add(item)
        one.end()
        read.append(one)
    return judge_exposures(read, Counter(), shown_only=shown_only), read


def _told(*files: list[Item], **more: Any) -> str:
    return _judged(*files, **more)[0].told


# Containers of another type ---------------------------------------------------------------------

_CURSOR = {"role": "user", "message": {"content": []}}
_GEMINI = {"id": "m9", "timestamp": "t", "type": "gemini", "content": ""}
_OPENCODE = {"info": {"id": "m", "role": "assistant"}, "parts": []}
_ATIF = {"step_id": 2, "source": "agent", "message": ""}
_QWEN = {"sessionId": "s", "version": "0.24.4", "cwd": "/w"}

_PLACES: list[tuple[str, Record, str]] = [
    ("claude-code", claude_user([{"type": "tool_result", "tool_use_id": "c"}]),
     "message.content.0.content"),
    ("claude-code", claude_user([{"type": "text", "text": "x"}]), "message.content.0.text"),
    ("claude-code", claude_user("x"), "message.content"),
    ("claude-code", claude_user("x"), "message"),
    ("claude-code", CLAUDE | {"type": "attachment", "attachment": {"type": "instructions"}},
     "attachment.files"),
    ("claude-code", CLAUDE | {"type": "attachment", "attachment": {}}, "attachment"),
    ("claude-code", CLAUDE | {"type": "progress", "data": {}}, "data"),
    ("gemini", _GEMINI, "toolCalls"),
    ("gemini", {"id": "m9", "timestamp": "t", "type": "user", "content": ""}, "content"),
    ("gemini", {"$set": {}}, "$set.messages"),
    ("gemini", {"$set": {}}, "$set"),
    ("gemini", {"$rewindTo": "m1"}, "$rewindTo"),
    ("gemini", {"sessionId": "s", "projectHash": "x"}, "messages"),
    ("qwen", _QWEN | {"type": "user", "message": {"parts": []}}, "message.parts"),
    ("qwen", _QWEN | {"type": "assistant", "message": {"parts": []}}, "message.parts"),
    ("qwen", _QWEN | {"type": "assistant", "message": {"parts": []}}, "message"),
    ("qwen", _QWEN | {"type": "system", "subtype": "at_command", "systemPayload": {}},
     "systemPayload.filesRead"),
    ("qwen", _QWEN | {"type": "system", "subtype": "at_command", "systemPayload": {}},
     "systemPayload"),
    ("opencode", _OPENCODE, "parts"),
    ("opencode", _OPENCODE, "info"),
    ("opencode", _OPENCODE | {"parts": [{"type": "tool", "id": "c", "tool": "read"}]},
     "parts.0.state"),
    ("cursor", _CURSOR, "message.content"),
    ("cursor", _CURSOR, "message"),
    ("atif", _ATIF, "tool_calls"),
    ("atif", _ATIF, "observation"),
    ("atif", _ATIF | {"observation": {}}, "observation.results"),
    ("atif", {"schema_version": "ATIF-v1.8", "agent": {"name": "x"}}, "subagent_trajectories"),
]  # fmt: skip
"""For each container that a reader looks into: its program, a record that has it, and its place."""


def _with(record: Record, place: Sequence[str], value: object) -> Record:
    record = json.loads(json.dumps(record))
    *above, name = place
    inner: Any = record
    for one in above:
        inner = inner[int(one) if one.isdigit() else one]
    inner[int(name) if name.isdigit() else name] = value
    return record


@pytest.mark.parametrize("value", [{"x": SECRET}, [[SECRET]], 7, True], ids=repr)
@pytest.mark.parametrize(
    ("program", "record", "place"), _PLACES, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_value_of_another_type_is_a_gap_and_its_text_is_searched(
    program: str, record: Record, place: str, value: object
) -> None:
    whole = _items(program, *STARTS[program])
    items = _items(program, *STARTS[program], _with(record, place.split("."), value))
    gaps = [item for item in items if isinstance(item, Gap) and item not in whole]
    assert gaps, "nothing is said"
    if SECRET in json.dumps(value):
        assert any(isinstance(item, Given) and SECRET in item.text for item in items)


@pytest.mark.parametrize("value", [None, "absent"])
@pytest.mark.parametrize("place", ["toolCalls", "tool_calls", "observation"])
def test_a_value_that_is_missing_is_no_gap(place: str, value: object) -> None:
    program, record = ("gemini", _GEMINI) if place == "toolCalls" else ("atif", _ATIF)
    record = dict(record) if value == "absent" else record | {place: value}
    before = _items(program, *STARTS[program])
    after = _items(program, *STARTS[program], record)
    assert [one for one in after if one not in before] == []


# Agents without a file --------------------------------------------------------------------------


def _spawn(call: str = "c", tool: str = "Agent", **asked: Any) -> Record:
    use = {"type": "tool_use", "id": call, "name": tool, "input": {"prompt": "x", **asked}}
    return CLAUDE | {"type": "assistant", "message": {"content": [use]}}


def _answer(text: str = "done", name: str = "c", result: object = None, **block: Any) -> Record:
    one = {"type": "tool_result", "tool_use_id": name, "content": text, **block}
    return claude_user([one], **({} if result is None else {"toolUseResult": result}))


def _file_of(agent: str, *calls: Record) -> list[Item]:
    return _items(
        "claude-code",
        claude_user("x", agentId=agent, isSidechain=True),
        CLAUDE | {"type": "assistant", "agentId": agent, "message": {"content": []}},
        *(one | {"agentId": agent, "isSidechain": True} for one in calls),
    )


def _nested(agent: str, *records: Record) -> list[Record]:
    return [
        CLAUDE
        | {
            "type": "progress",
            "parentToolUseID": "c",
            "data": {"type": "agent_progress", "agentId": agent, "message": one},
        }
        for one in ({k: r[k] for k in ("type", "message")} for r in records)
    ]


def _read(name: str) -> list[Record]:
    records: list[Record] = [
        json.loads(json.dumps(one).replace('"c"', '"r"'))
        for one in CALLS["claude-code"]("Read", {"file_path": f"/w/{name}"}, "x")
    ]
    return records


def test_a_subagent_that_failed_may_have_read_before() -> None:
    broken = _items(
        "claude-code", claude_user("x"), _spawn(), _answer("API Error: 500", is_error=True)
    )
    assert _told(broken) == "cannot tell"


@pytest.mark.parametrize(
    "answer",
    [
        _answer("<tool_use_error>InputValidationError: x</tool_use_error>", is_error=True),
        _answer("<tool_use_error>Agent type 'x' not found</tool_use_error>", is_error=True),
        _answer("The user doesn't want to proceed with this tool use. The tool use was rejected",
                is_error=True),
        _answer("no", is_error=True) | {"toolDenialKind": "permission-rule"},
    ],
)  # fmt: skip
def test_a_subagent_that_was_refused_did_not_run(answer: Record) -> None:
    assert _told(_items("claude-code", claude_user("x"), _spawn(), answer)) == "clean"


def test_only_a_file_of_the_agent_fills_its_place() -> None:
    begun = [claude_user("x"), _spawn(), _answer(result={"agentId": "a1"})]
    assert _told(_items("claude-code", *begun)) == "cannot tell"
    assert _told(_items("claude-code", *begun), _file_of("a1")) == "clean"
    assert _told(_items("claude-code", *begun), _file_of("a2")) == "cannot tell"
    mere = claude_user("y", agentId="a1")
    assert _told(_items("claude-code", *begun, mere)) == "cannot tell"
    other = _items("claude-code", claude_user("x", agentId="a2"), mere)
    assert _told(_items("claude-code", *begun), other) == "cannot tell"


@pytest.mark.parametrize(
    ("count", "told"), [(1, "clean"), (2, "cannot tell"), (None, "cannot tell")]
)
def test_nested_records_fill_it_if_they_have_each_call(count: int | None, told: str) -> None:
    result = {"agentId": "a1", "totalToolUseCount": count}
    records = [claude_user("x"), _spawn(), *_nested("a1", *_read("b.md")), _answer(result=result)]
    assert _told(_items("claude-code", *records)) == told
    whole = [one for number in range(count or 0) for one in _read(f"{number}.md")]
    assert _told(_items("claude-code", *records), _file_of("a1", *whole)) == "clean"


def test_the_file_of_a_subagent_has_each_call_that_its_parent_was_told_of() -> None:
    result = {"agentId": "a1", "totalToolUseCount": 2}
    parent = _items("claude-code", claude_user("x"), _spawn(), _answer(result=result))
    one, other = _read("b.md"), _read("c.md")
    assert _told(parent, _file_of("a1", *one, *other)) == "clean"
    for cut in ((), one, (*one, *other[1:])):
        assert _told(parent, _file_of("a1", *cut)) == "cannot tell"
    again = [each._replace(ran=True) for each in _file_of("a1", *one) if isinstance(each, Call)]
    assert _told(parent, [*_file_of("a1", *one), *again]) == "cannot tell", "one call, told twice"
    (reason,) = _judged(parent, _file_of("a1", *one))[0].reasons
    assert "its records have 1 of the 2 calls that it made" in reason


def test_so_has_that_of_one_of_which_a_report_tells_how_many_calls_it_made() -> None:
    report = """<task-notification>
<task-id>a1</task-id>
<result>It said <tool_uses>0</tool_uses> there.</result>
<usage><tool_uses>2</tool_uses></usage>
</task-notification>"""
    spawned = (claude_user("x"), _spawn(), _answer(result={"agentId": "a1"}))
    parent = _items("claude-code", *spawned, claude_user(report))
    one, other = _read("b.md"), _read("c.md")
    assert _told(parent, _file_of("a1", *one, *other)) == "clean"
    assert _told(parent, _file_of("a1", *one)) == "cannot tell"


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("SendMessage", {"to": "a1", "message": "x"}),
        ("SendMessage", {"type": "message", "recipient": "a1", "content": "x"}),
        ("TeammateTool", {"operation": "write", "target_agent_id": "a1", "value": "x"}),
    ],
)
def test_an_agent_that_gets_a_message_is_looked_for(tool: str, asked: Record) -> None:
    sent = _items("claude-code", claude_user("x"), _spawn(tool=tool, **asked), _answer())
    assert _told(sent) == "cannot tell"
    assert _told(sent, _file_of("a1")) == "clean"


def test_an_agent_is_found_by_the_name_that_it_was_given() -> None:
    records = [
        claude_user("x"),
        _spawn("c", name="reader"),
        _answer(name="c", result={"agentId": "a1"}),
        _spawn("d", "SendMessage", to="reader"),
        _answer(name="d"),
    ]
    assert _told(_items("claude-code", *records), _file_of("a1")) == "clean"
    records[3] = _spawn("d", "SendMessage", to="another")
    assert _told(_items("claude-code", *records), _file_of("a1")) == "cannot tell"


def test_sessions_that_began_each_other_have_no_beginning() -> None:
    def began(name: str, parent: str | None) -> list[Item]:
        return [Session(name, "opencode", "1.18.33", 1, parent=parent)]

    assert _told(began("a", None), began("b", "a"), began("c", "b")) == "clean"
    assert _told(began("a", "b"), began("b", "a")) == "cannot tell"
    assert _told(began("a", "a")) == "cannot tell"
    assert (
        _told(began("r", None), began("a", "b"), began("b", "c"), began("c", "a")) == "cannot tell"
    )
    assert _told(began("b", "a")) == "cannot tell"


# What a verdict counts --------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["Glob", "Edit", "WebFetch", "Read"])
def test_a_call_without_an_answer_cannot_be_told(tool: str) -> None:
    asked = {"file_path": "/w/b.md", "pattern": "*.py", "url": "https://example.org"}
    first, answer = CALLS["claude-code"](tool, asked, "x")
    last = json.loads(json.dumps(first).replace('"c"', '"d"'))
    assert _told(_items("claude-code", claude_user("x"), first, answer)) == "clean"
    assert _told(_items("claude-code", claude_user("x"), first)) == "clean", "it may be broken off"
    assert _told(_items("claude-code", claude_user("x"), first, last)) == "cannot tell"


@pytest.mark.parametrize("tool", ["Glob", "Edit", "WebFetch", "Read"])
def test_a_second_answer_or_a_part_that_is_no_text_cannot_be_told(tool: str) -> None:
    asked = {"file_path": "/w/b.md", "pattern": "*.py", "url": "https://example.org"}
    call, answer = CALLS["claude-code"](tool, asked, "x")
    again = CALLS["claude-code"](tool, asked, "y")[1]
    image = CALLS["claude-code"](tool, asked, [{"type": "image"}])[1]  # type: ignore[arg-type]
    assert _told(_items("claude-code", claude_user("x"), call, answer, again)) == "cannot tell"
    assert _told(_items("claude-code", claude_user("x"), call, image)) == "cannot tell"


@pytest.mark.parametrize("kind", ["file", "already_read_file", "edited_text_file", "pdf_reference"])
@pytest.mark.parametrize("rule", [True, False])
def test_a_file_that_is_named_without_its_text_is_found_by_its_path(kind: str, rule: bool) -> None:
    def attached(**more: object) -> list[Item]:
        record = CLAUDE | {"type": "attachment", "attachment": {"type": kind, **more}}
        return _items("claude-code", claude_user("x"), record)

    assert _told(attached(filename=f"/w/{FILE}"), rule=rule) != "clean"
    assert _told(attached(filename=f"/w/{FILE}"), rule=rule, shown_only=True) == "cannot tell"
    assert _told(attached(filename="/w/src/b.py"), rule=rule) == "clean"


# Included files of Gemini -----------------------------------------------------------------------


def _gemini(text: str) -> list[Item]:
    message = {"id": "m9", "timestamp": "t", "type": "user", "content": [{"text": text}]}
    return _items("gemini", *STARTS["gemini"], message)


def _included(text: str) -> list[tuple[str, str, bool]]:
    return [
        (item.named or "", item.text.strip(), item.sure)
        for item in _gemini(text)
        if isinstance(item, Given) and item.channel == "instructions"
    ]


def test_files_that_are_included_in_one_another_are_each_named() -> None:
    text = """--- Context from: sub/GEMINI.md ---
one
- rules: <!-- Imported from: ./a.md -->
two
<!-- Imported from: b/c.md -->
three
<!-- End of import from: b/c.md -->
<!-- End of import from: ./a.md --> and so on
four
--- End of Context from: sub/GEMINI.md ---
five
--- File: /x/d.md ---
six
--- End of File: /x/d.md ---
"""
    found = {named: text for named, text, _ in _included(text)}
    assert found.keys() == {"sub/GEMINI.md", "./a.md", "b/c.md", "/x/d.md"}
    assert {named: "five" in text for named, text in found.items()} == dict.fromkeys(found, False)
    assert found["b/c.md"] == "three"
    assert "two" in found["./a.md"]
    assert {"one" in found["sub/GEMINI.md"], "four" in found["sub/GEMINI.md"]} == {True}


@pytest.mark.parametrize("named", ["a.md", "./a.md", "../chat/a.md"])
def test_an_import_is_named_from_the_folder_of_the_file_that_imports(named: str) -> None:
    text = f"""--- Context from: chat/GEMINI.md ---
<!-- Imported from: {named} -->
x
<!-- End of import from: {named} -->
--- End of Context from: chat/GEMINI.md ---"""
    never = NeverRule(["/w/chat/a.md"])
    one = SessionExposures(never, ProtectedText())
    for item in _gemini(text):
        one.add(item)
    assert [each.path for each in one.found] == ["/w/chat/a.md"]


def test_a_file_whose_end_is_missing_is_named_as_one_that_may_be_there() -> None:
    text = "--- Context from: chat/a.md ---\r\none\r\n<!-- Imported from: b.md -->\r\ntwo"
    assert _included(text) == [("b.md", "two", False), ("chat/a.md", "one", False)]
    assert _told(_gemini(text), text="") == "cannot tell"


def test_hostile_text_is_read_in_one_pass() -> None:
    """Text of all blocks together is no longer than the text that they stand in."""
    for mark in ("--- Context from: ", "<!-- Imported from: "):
        assert _included(mark * 100_000) == []
    count = 2_000
    begins, ends = "--- Context from: a ---\n", "--- End of Context from: a ---\n"
    for text in (
        begins * count,
        begins * count + ends * count,
        ends * count,
        begins + "x\n" * count,
    ):
        found = _included(text)
        assert sum(len(inner) for _, inner, _ in found) <= len(text)
        assert len(found) == text.count(begins)


@pytest.mark.parametrize("program", READERS)
def test_a_value_that_is_nested_deep_raises_nowhere(program: str) -> None:
    deep = orjson.loads(b"[" * 1_000 + b"]" * 1_000)
    records = [record for one, _, records in SPECIMENS if one == program for record in records]
    for record in records:
        for place in _places(record):
            _judged(_items(program, *STARTS[program], _with(record, place, deep)))


def _places(value: object, *front: str) -> Iterator[tuple[str, ...]]:
    inner = enumerate(value) if isinstance(value, list) else value.items()  # type: ignore[attr-defined]
    for name, one in inner:
        yield *front, str(name)
        if isinstance(one, dict | list):
            yield from _places(one, *front, str(name))


# What a model was given in an unusual place -----------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": f"\nContent from @{FILE}:\nx"}],
        [{"text": f"\nContent from @{FILE}:\r\n"}, {"text": "x"}],
        [{"text": f"Content from @{FILE}:"}, {"inlineData": {"data": "eA=="}}],
    ],
)
def test_a_file_in_a_message_of_gemini_is_named(parts: list[Record]) -> None:
    whole = {"id": "m9", "timestamp": "t", "type": "user", "content": parts}
    grows = whole | {"content": parts[:1]}
    for messages in ([whole], [grows, whole]):
        items = _items("gemini", *STARTS["gemini"], *messages)
        assert _told(items, text="") == "findings"


def test_a_session_whose_header_is_lost_cannot_be_told() -> None:
    assert _told(_items("gemini", *STARTS["gemini"])) == "clean"
    assert _told(_items("gemini", *STARTS["gemini"][1:])) == "cannot tell"


@pytest.mark.parametrize(
    "result",
    [
        [{"functionResponse": {"id": "c", "response": {"output": "x"}}, "text": SECRET}],
        [{"functionResponse": {"id": "c", "response": {"output": "x"}, "more": SECRET}}],
        [{"functionResponse": {"id": "c", "response": {"output": "x"}, "parts": [{}]}}],
        [{"functionResponse": {"id": "c", "response": {"output": "x"}}, "inlineData": {}}],
        [{"inlineData": {}}],
    ],
)
def test_what_stands_beside_an_answer_of_gemini_counts(result: list[Record]) -> None:
    (record,) = CALLS["gemini"]("write_todos", {}, "x")
    assert _told(_items("gemini", *STARTS["gemini"], record)) == "clean"
    record["toolCalls"][0]["result"] = result
    items = _items("gemini", *STARTS["gemini"], record)
    assert _told(items) == ("findings" if SECRET in json.dumps(result) else "cannot tell")


def test_what_an_interrupted_call_of_opencode_printed_is_searched() -> None:
    (record,) = CALLS["opencode"]("bash", {"command": "make"}, "x")
    record["parts"][0]["state"] = {
        "status": "error",
        "error": "Tool execution aborted",
        "input": {"command": "true"},
        "metadata": {"output": SECRET, "interrupted": True},
    }
    assert _told(_items("opencode", *STARTS["opencode"], record)) == "findings"


def test_instructions_that_opencode_adds_to_an_answer_are_named() -> None:
    (record,) = CALLS["opencode"]("read", {"filePath": "/w/b.py"}, "x")
    assert _told(_items("opencode", *STARTS["opencode"], record)) == "clean"
    record["parts"][0]["state"]["metadata"] = {"loaded": ["/w/chat/AGENTS.md"]}
    assert _told(_items("opencode", *STARTS["opencode"], record)) == "findings"


def test_a_message_in_the_role_of_another_is_searched() -> None:
    record = claude_user(SECRET) | {"type": "assistant"}
    assert _told(_items("claude-code", claude_user("x"), record)) == "findings"


def test_what_stands_for_the_output_of_a_call_is_searched() -> None:
    record = CLAUDE | {"type": "content-replacement", "replacements": [{"replacement": SECRET}]}
    assert _told(_items("claude-code", claude_user("x"), record)) == "cannot tell"


def test_what_an_embedded_subagent_of_atif_read_is_found_by_its_path() -> None:
    call = {"tool_call_id": "c", "function_name": "read", "arguments": {"path": f"/w/{FILE}"}}
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": [call]}
    step["observation"] = {"results": [{"source_call_id": "c", "content": SECRET}]}
    child: Record = {"schema_version": "ATIF-v1.8", "trajectory_id": "a1", "steps": [step]}
    for _ in range(300):
        child = {"trajectory_id": "a1", "subagent_trajectories": [child]}
    items = _items("atif", STARTS["atif"][0] | {"subagent_trajectories": [child]})
    (asked,) = [item for item in items if isinstance(item, Call)]
    assert (asked.agent, asked.nested, asked.paths) == ("a1", True, (f"/w/{FILE}",))
    verdict, (read,) = _judged(items)
    assert verdict.told == "findings"
    assert {(each.agent, each.named) for each in read.found} >= {("a1", FILE)}


@pytest.mark.parametrize(
    "attached",
    [
        {"type": "file", "filename": "/w/link", "content": {"file": {"filePath": f"/w/{FILE}"}}},
        {"type": "invoked_skills", "skills": [{"name": "x", "path": f"/w/{FILE}", "content": "x"}]},
        {
            "type": "nested_memory",
            "path": "/w/x",
            "content": {"path": f"/w/{FILE}", "content": "x"},
        },
    ],
)
def test_each_file_that_an_attachment_names_is_found(attached: Record) -> None:
    record = CLAUDE | {"type": "attachment", "attachment": attached}
    assert _told(_items("claude-code", claude_user("x"), record)) == "findings"


def test_what_a_server_calls_a_resource_may_be_any_file() -> None:
    held = {"contents": [{"uri": "mem://x", "text": "x = 1"}]}
    attached = {"type": "mcp_resource", "server": "s", "uri": "mem://x", "content": held}
    items = _items(
        "claude-code", claude_user("x"), CLAUDE | {"type": "attachment", "attachment": attached}
    )
    assert (_told(items, text=""), _told(items)) == ("cannot tell", "clean")


@pytest.mark.parametrize("content", [{"type": "image"}, {"contents": [{"blob": "eA=="}]}])
def test_an_attachment_that_is_no_text_cannot_be_told(content: Record) -> None:
    attached = {"type": "file", "filename": "/w/b", "content": content}
    record = CLAUDE | {"type": "attachment", "attachment": attached}
    assert _told(_items("claude-code", claude_user("x"), record)) == "cannot tell"


def test_what_is_put_into_a_turn_beside_an_attachment_is_searched() -> None:
    attached = {"type": "date", "date": "x"}
    record: Record = CLAUDE | {"type": "attachment", "attachment": attached}
    record["renderedInHumanTurn"] = [{"content": SECRET}]
    assert _told(_items("claude-code", claude_user("x"), record)) == "findings"


_MENTIONED = {"type": "file", "filename": "/w/a.md", "content": {"file": {"content": "x = 1\n"}}}
_LISTED = {"type": "directory", "path": "/w/a", "content": "b.md"}
_READ = 'Called the Read tool with the following input: {"file_path":"/w/a.md"}'
_LS = (
    'Called the Bash tool with the following input: {"command":"ls /w/a",'
    '"description":"Lists files in /w/a"}'
)
_REFERRED = {"type": "compact_file_reference", "filename": "/w/a.md", "displayPath": "a.md"}


@pytest.mark.parametrize(
    ("attached", "sent", "told"),
    [
        (_MENTIONED, f"{_READ}\nResult of calling the Read tool:\n1\tx = 1\n2\t", "clean"),
        (_MENTIONED, f"{_READ}\nResult of calling the Read tool:\n1\ty = 1\n2\t", "cannot tell"),
        (_MENTIONED, f"{_READ.replace('a.md', 'b.md')}\n1\tx = 1", "cannot tell"),
        (_LISTED, f"{_LS}\nResult of calling the Bash tool:\nb.md", "clean"),
        (_LISTED, f"{_LS}\nResult of calling the Bash tool:\nb.md: x = 1", "cannot tell"),
        (_LISTED, f"{_LS.replace('ls', 'cat')}\nb.md", "cannot tell"),
        (_REFERRED, "", "clean"),
        (_REFERRED, "x = 1", "cannot tell"),
    ],
)
def test_what_was_sent_of_a_mention_is_of_its_file_where_it_holds_nothing_else(
    attached: Record, sent: str, told: str
) -> None:
    record: Record = CLAUDE | {"type": "attachment", "attachment": attached}
    record["rendered"] = [{"content": f"<system-reminder>\n{sent}\n</system-reminder>"}] * bool(
        sent
    )
    assert _told(_items("claude-code", claude_user("x"), record), text="") == told


_NEAR = """http://localhost:8000/a.md http://a.localhost/a.md http://127.1/a.md http://0/a.md
    http://0x7f.1/a.md http://2130706433/a.md http://box:8000/a.md http://[::1]/a.md
    http://192.168.1.2/a.md http://10.0.0.1/ http://x@127.0.0.1/ http://nas.local/a.md"""
_FAR = """https://example.org/a.md https://1.1.1.1/x https://local.example.org/localhost
    https://100.com/10.0.0.1 https://en.wikipedia.org/wiki/Localhost"""


@pytest.mark.parametrize("url", [*_NEAR.split(), *_FAR.split()])
def test_a_page_of_this_machine_or_of_one_near_it_may_be_a_file(url: str) -> None:
    page = CALLS["claude-code"]("WebFetch", {"url": url, "prompt": "what is it?"}, "x")
    told = "cannot tell" if url in _NEAR else "clean"
    assert _told(_items("claude-code", claude_user("x"), *page)) == told


@pytest.mark.parametrize(
    "unit", [">Note: x", "\n", " (", ">Contents of x", "\nCalled the Read tool"]
)
def test_hostile_text_within_a_reminder_is_read_in_one_pass(unit: str) -> None:
    """If each mark were followed to the end of the text, this would take minutes."""
    text = "<system-reminder>\nContents of " + unit * 200_000
    assert _told(_items("claude-code", claude_user(text)), rule=False) == "clean"


# Fields of a newer version ----------------------------------------------------------------------

_PROMPT = {"type": "user_message", "message": "go"}
_DONE = {"type": "item_completed", "item": {"type": "UserMessage", "id": "u", "content": []}}


def _beside(one: Record, *path: str) -> Record:
    """A record with a field that no reader knows, at the end of a path."""
    value: Record = json.loads(json.dumps(one))
    inner = value
    for name in path:
        inner = inner[name]
    inner["brandNew"] = SECRET
    return value


@pytest.mark.parametrize(
    ("program", "one", "path"),
    [
        ("codex", {"type": "response_item", "payload": {}, "metadata": {}}, ("metadata",)),
        ("codex", {"type": "turn_context", "payload": {"cwd": "/w"}}, ("payload",)),
        ("codex", {"type": "event_msg", "payload": _PROMPT}, ("payload",)),
        ("codex", {"type": "event_msg", "payload": _DONE}, ("payload", "item")),
        ("copilot", STARTS["copilot"][0], ("data",)),
        ("copilot", STARTS["copilot"][0], ("data", "context")),
        (
            "copilot",
            {"type": "system.message", "data": {"content": "x", "metadata": {}}},
            ("data", "metadata"),
        ),
    ],
)
def test_a_field_that_no_reader_knows_is_a_gap_and_is_searched(
    program: str, one: Record, path: tuple[str, ...]
) -> None:
    other = _beside(one, *path)
    items = _items(program, *STARTS[program], other)
    known = _items(program, *STARTS[program], one)
    assert not any(isinstance(item, Gap) and "brandNew" in item.what for item in known)
    assert any(isinstance(item, Gap) and "brandNew" in item.what for item in items)
    assert any(isinstance(item, Given) and item.text == SECRET for item in items)
    assert _told(items) == "cannot tell"


@pytest.mark.parametrize("at", [0, 1, 2])
def test_each_text_that_waits_with_others_is_searched(at: int) -> None:
    texts = ["nothing here", "nor here", "nor there"]
    texts[at] = SECRET
    items: list[Item] = [Given("paste", line, 0, text) for line, text in enumerate(texts, 1)]
    _, (one,) = _judged(items)
    assert [each.line for each in one.found] == [at + 1]
