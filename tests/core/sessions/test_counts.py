"""What readers count is what an independent reading of the same bytes counts."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from doors.inside import run
from recorded_sessions import items_of, recorded, transcripts
from session_specimens import CALLS, STARTS

from tripod.verify.sessions.items import Call, Given
from tripod.verify.sessions.readers import READERS


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Said(NamedTuple):
    """What the records of a file say: each call with its id, tool and input; ids of answers."""

    calls: list[tuple[str, str, Any]]
    answered: list[str]
    failed: int


def _claude(values: list[dict[str, Any]]) -> Said:
    calls, answered, failed = [], [], 0
    for value in values:
        content = value.get("message", {}).get("content")
        for block in content if isinstance(content, list) else ():
            if block["type"] == "tool_use" and value["type"] == "assistant":
                calls.append((block["id"], block["name"], block["input"]))
            if block["type"] == "tool_result" and value["type"] == "user":
                answered.append(block["tool_use_id"])
                failed += bool(block.get("is_error"))
    return Said(calls, answered, failed)


def _codex(values: list[dict[str, Any]]) -> Said:
    items = [value["payload"] for value in values if value["type"] == "response_item"]
    calls = [(item["call_id"], item["name"], item.get("arguments", item.get("input")))
             for item in items if item["type"].endswith(("tion_call", "tool_call"))]  # fmt: skip
    done = [item for item in items if item["type"].endswith("_output")]
    ended = re.compile("Command blocked|.*exited with code [^0]|.*Exit code: [^0]", re.DOTALL)
    failed = sum(ended.match(str(one["output"])[:400]) is not None for one in done)
    return Said(calls, [one["call_id"] for one in done], failed)


def _copilot(values: list[dict[str, Any]]) -> Said:
    asked = [value["data"].get("toolRequests", []) for value in values]
    calls = [(one["toolCallId"], one["name"], one["arguments"])
             for requests in asked for one in requests]  # fmt: skip
    done = [value["data"] for value in values if value["type"] == "tool.execution_complete"]
    return Said(calls, [one["toolCallId"] for one in done], sum(not one["success"] for one in done))


def _gemini(values: list[dict[str, Any]]) -> Said:
    last = {call["id"]: call for value in values for call in value.get("toolCalls", [])}
    calls = [(name, call["name"], call["args"]) for name, call in last.items()]
    return Said(calls, [*last], sum(call["status"] != "success" for call in last.values()))


def _qwen(values: list[dict[str, Any]]) -> Said:
    parts = [part for value in values for part in value.get("message", {}).get("parts", [])]
    asked = [part["functionCall"] for part in parts if "functionCall" in part]
    calls = [(one["id"], one["name"], one["args"]) for one in asked]
    answered = [one["functionResponse"]["id"] for one in parts if "functionResponse" in one]
    done = [value for value in values if value["type"] == "tool_result"]
    failed = sum(one["toolCallResult"]["status"] != "success" for one in done)
    return Said(calls, answered, failed)


def _opencode(values: list[dict[str, Any]]) -> Said:
    parts = [part for value in values for part in value.get("parts", [])]
    calls = [part for part in parts if part["type"] == "tool"]
    said = [(part["id"], part["tool"], part["state"].get("input")) for part in calls]
    done = [part for part in calls if part["state"]["status"] in ("completed", "error")]
    failed = sum(part["state"]["status"] == "error" for part in done)
    return Said(said, [part["id"] for part in done], failed)


def _database(path: Path) -> list[dict[str, Any]]:
    """The messages of OpenCode's database with their parts, by three plain queries."""
    with closing(sqlite3.connect(path)) as db:
        count = db.execute("SELECT count(*) FROM session").fetchone()[0]
        messages = db.execute("SELECT id, data FROM message").fetchall()
        parts = db.execute("SELECT id, message_id, data FROM part").fetchall()
    return [{}] * count + [
        {"info": json.loads(data), "parts": [
            json.loads(text) | {"id": part} for part, of, text in parts if of == name]}
        for name, data in messages
    ]  # fmt: skip


COUNTS = {
    "claude-code": _claude,
    "codex": _codex,
    "copilot": _copilot,
    "gemini": _gemini,
    "qwen": _qwen,
}
READS = {"Read": "file_path", "view": "path", "read_file": "file_path"}
"""Tools that read one file, and the field of their input that names it."""


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.parent.name[:20])
def test_calls_and_answers_are_those_of_an_independent_count(path: Path) -> None:
    found, items = items_of(path)
    values = _lines(path)
    assert found.program is not None
    said = COUNTS[found.program](values)
    assert found.counts.calls == Counter(tool for _, tool, _ in said.calls)
    assert (found.counts.results, found.counts.failed) == (len(said.answered), said.failed)
    open_ids = Counter(name for name, _, _ in said.calls) - Counter(said.answered)
    assert Counter(found.counts.unanswered) == open_ids
    asked = [item for item in items if isinstance(item, Call) and not item.ran]
    reads = [item.paths for item in asked if item.channel == "read"]
    assert reads == [(value[READS[tool]],) for _, tool, value in said.calls if tool in READS]
    assert found.lines == len(values)
    assert not found.counts.unparsed
    assert not found.reader.unknown if found.reader else False
    assert len(asked) == len(said.calls)
    assert not found.counts.nested


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.parent.name[:20])
def test_every_record_is_counted_and_every_text_has_its_place(path: Path) -> None:
    found, items = items_of(path)
    assert found.reader is not None
    values = _lines(path)
    first = "header" if "projectHash" in values[0] else values[0].get("type")
    kinds = [first, *("$set" if "$set" in value else value["type"] for value in values[1:])]
    inner = [one["type"] for value in values for one in value.get("$set", {}).get("messages", [])]
    assert found.reader.records == Counter([*kinds, *inner])
    data = path.read_bytes()
    for item in items:
        if isinstance(item, Given):
            assert data[: item.offset].count(b"\n") == item.line - 1
            assert data[item.offset : item.offset + 1] == b"{"


OPENCODE = [path for end in ("export-*.json", "opencode.db")
            for path in sorted(recorded().glob(f"sessions-2026-11/opencode-*/{end}"))]  # fmt: skip


@pytest.mark.parametrize("path", OPENCODE, ids=lambda path: f"{path.parent.name}-{path.name[:8]}")
def test_the_calls_of_opencode_are_those_of_an_independent_count(path: Path) -> None:
    is_database = path.suffix == ".db"
    values = _database(path) if is_database else json.loads(path.read_bytes())["messages"]
    said = _opencode(values)
    found, items = items_of(path)
    assert found.counts.calls == Counter(tool for _, tool, _ in said.calls)
    assert (found.counts.results, found.counts.failed) == (len(said.answered), said.failed)
    assert len(found.counts.unanswered) == len(said.calls) - len(said.answered)
    roles = Counter(value["info"]["role"] for value in values if value)
    sessions = values.count({}) if is_database else 1
    assert found.reader is not None
    assert found.reader.records == roles + Counter(session=sessions)
    reads = Counter(item.paths for item in items if isinstance(item, Call) and item.tool == "read")
    assert reads == Counter((value["filePath"],) for _, tool, value in said.calls if tool == "read")


@pytest.mark.parametrize("program", ["cursor", "atif"])
def test_the_calls_of_made_sessions_are_those_of_an_independent_count(
    tmp_path: Path, program: str
) -> None:
    """Of these no recording is there: sessions of their documented form, with a call left open."""
    tools = ["Read", "Grep", "Read", "Shell"]
    records = [*STARTS[program]]
    for number, tool in enumerate(tools):
        made = json.dumps(CALLS[program](tool, {"path": f"/w/{number}"}, f"text {number}"))
        records += json.loads(made.replace('"c"', f'"c{number}"'))
    if program == "cursor":
        path, text = tmp_path / "a.jsonl", "".join(json.dumps(one) + "\n" for one in records[:-1])
        asked = text.count('"type": "tool_use"'), text.count('"type": "tool_result"')
    else:
        for number, step in enumerate(records[1:], 1):
            step["step_id"] = number
        del records[-1]["observation"]
        path, text = tmp_path / "a.json", json.dumps({**records[0], "steps": records[1:]})
        asked = text.count('"function_name"'), text.count('"source_call_id"')
    path.write_text(text)
    found, _ = items_of(path)
    assert found.program == program
    assert asked == (4, 3)
    assert found.counts.calls == Counter(tools)
    assert (found.counts.results, len(found.counts.unanswered)) == (3, 1)
    assert found.reader is not None
    assert found.reader.records.total() == len(records) - (program == "cursor")


def test_the_database_and_the_export_of_opencode_say_the_same() -> None:
    for export in sorted(recorded().glob("sessions-2026-11/opencode-*/export-*.json")):
        one, said = items_of(export)
        other, read = items_of(export.parent / "opencode.db")
        assert (one.counts.calls, one.counts.results) == (other.counts.calls, other.counts.results)
        texts = [[item.text for item in found if isinstance(item, Given)] for found in (said, read)]
        assert texts[0] == texts[1]


def test_import_says_all_of_it_as_json_and_needs_no_team(tmp_path: Path) -> None:
    done = run(tmp_path, "import", "--dry-run", "--json", str(recorded()))
    found = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert {one["importer"] for one in found} == READERS.keys() - {"cursor", "atif"}
    assert len(found) == len(transcripts()) + 6  # three databases, three exports
    assert done.err.count("\n") == 1
    assert "no program is known that wrote it" in done.err
    assert "labels.json" in done.err
    assert ".meta.json" not in done.err
    fields = (
        "importer file sha256 bytes lines unparsed records unknown sessions calls nested_calls"
        " results unanswered failed version"
    )
    assert all(one.keys() == {*fields.split()} for one in found)
    assert not any(one["unparsed"] or one["unknown"] for one in found)
    assert not any(tmp_path.iterdir())


def test_import_that_reads_nothing_says_so_and_exits_with_3(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"hello": 1}\n')
    done = run(tmp_path, "import", "--dry-run", "a.jsonl")
    assert (done.code, done.out) == (3, b"")
    assert "no program is known" in done.err
    done = run(tmp_path, "import", "a.jsonl")
    assert (done.code, done.out) == (1, b"")
    assert "tripod init" in done.err
