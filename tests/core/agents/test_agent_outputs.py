"""What a program printed, read as the answer that it was asked for."""

import inspect
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.workers.answers import MAX_NESTED, Answer, read_spec_answer

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": " Done. ",
    "session_id": "34b9",
    "total_cost_usd": 0.12345,
    "usage": {"input_tokens": 7, "service_tier": "standard", "Output": 1, "odd": True},
}


def stream(**changes: Any) -> bytes:
    lines = [
        {"type": "system", "subtype": "init"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": '"result"'}]}},
        RESULT | {"result": "an earlier one"},
        RESULT | changes,
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def read(data: bytes, *, wants_structure: bool = False) -> Answer:
    return read_spec_answer("claude-stream-json", data, wants_structure=wants_structure)


def test_the_last_result_of_a_stream_counts() -> None:
    assert read(stream()) == Answer(
        "ok", text="Done.", usage={"input_tokens": 7}, cost="0.1235", session="34b9"
    )
    assert read(b"warning: x\n" + stream() + b"{broken").status == "ok"


def test_an_answer_in_shape_goes_before_words() -> None:
    done = read(stream(structured_output={"b": 1, "a": "é"}), wants_structure=True)
    assert (done.status, done.structured) == ("ok", {"b": 1, "a": "é"})
    assert done.text == '{"a": "é", "b": 1}'


@pytest.mark.parametrize(
    ("changes", "wants", "status", "problem"),
    [
        ({"result": ""}, False, "empty_output", "its result is empty"),
        ({"result": None}, False, "empty_output", "its result is empty"),
        ({}, True, "bad_output", "it gave no answer in the shape that was asked for"),
        ({"is_error": True}, False, "bad_output", "it says that it failed: Done."),
        (
            {"subtype": "error_max_turns", "result": None},
            False,
            "bad_output",
            "it says that it failed: error_max_turns",
        ),
    ],
)
def test_a_result_that_is_no_answer(
    changes: dict[str, Any], wants: bool, status: str, problem: str
) -> None:
    done = read(stream(**changes), wants_structure=wants)
    assert (done.status, done.problem, done.session) == (status, problem, "34b9")


def test_a_stream_without_result_was_cut_off() -> None:
    assert read(b'{"type":"system"}\n').problem == "its stream has no result: it was cut off"
    assert read(b'["result"]\n"result"\n').status == "bad_output"


@pytest.mark.parametrize(
    "odd",
    [
        {"total_cost_usd": "free"},
        {"total_cost_usd": float("nan")},
        {"total_cost_usd": -1},
        {"total_cost_usd": 10**400},
    ],
)
def test_a_price_that_is_none_is_left_out(odd: dict[str, Any]) -> None:
    assert read(stream(**odd)).cost is None


def test_figures_of_another_shape_are_left_out() -> None:
    done = read(stream(usage=[1], session_id="a\nb"))
    assert (done.usage, done.session) == ({}, None)
    assert read(stream(usage={"n": 2**60, "m": -1, "k": 2})).usage == {"k": 2}


def at_depth(depth: int, act: Callable[[], Any]) -> Any:
    """What an act gives where so many calls stand in each other."""
    return act() if not depth else at_depth(depth - 1, act)


@pytest.mark.parametrize("output", ["json", "claude-stream-json"])
def test_how_deep_an_answer_is_read_does_not_depend_on_its_reader(output: Any) -> None:
    here = len(inspect.stack(0))
    for depth in (1, 61, 62, 63, 64, 65, 500, 900, 950, 990, 5_000):
        value = b"[" * depth + b"]" * depth
        data = value
        if output == "claude-stream-json":
            data = b'{"type": "result", "result": "x", "structured_output": %b}' % value
            depth += 1  # noqa: PLW2901 - it stands in the line's object
        read = partial(read_spec_answer, output, data, wants_structure=True)
        found = [at_depth(n, read) for n in (0, 300, sys.getrecursionlimit() - here - 150)]
        assert found[0] == found[1] == found[2]
        assert found[0].status == ("ok" if depth <= MAX_NESTED else "bad_output")


def test_brackets_in_texts_count_for_nothing() -> None:
    for text in ("[" * 999, '\\"[[' * 99, "\\\\", '{"\\\\' * 99):
        data = json.dumps({"a": [text, {text: text}], "b": text}).encode()
        assert read_spec_answer("json", data).structured == json.loads(data)
    beside = json.dumps([[[{}, []]]] * 500)
    assert read_spec_answer("json", beside.encode()).status == "ok"
    for torn in ("[" * 65, '"\n" ' + "{" * 65, '"' + "[" * 65, '"\\'):
        assert read_spec_answer("json", torn.encode()).status == "bad_output"


def test_json_and_text() -> None:
    assert read_spec_answer("json", b' {"a": 1} \n').structured == {"a": 1}
    assert read_spec_answer("json", b"{").status == "bad_output"
    assert read_spec_answer("json", b"[" * 100_000).status == "bad_output"
    assert read_spec_answer("json", b" \n").status == "empty_output"
    assert read_spec_answer("text", b" \xff a \n") == Answer("ok", text="\ufffd a")


@pytest.mark.parametrize(
    "changes",
    [
        {"result": "a \ud800 b"},
        {"result": "a \ud800 b", "is_error": True},
        {"result": "x", "structured_output": {"\udc00": ["\ud83d"]}},
        {"result": "", "subtype": "\udfff"},
        {"session_id": "\ud800"},
    ],
)
def test_half_a_character_is_none(changes: dict[str, Any]) -> None:
    done = read(stream(**changes))
    for said in (done.text, done.problem, json.dumps(done.structured, ensure_ascii=False)):
        said.encode()  # what cannot be is no part of an entry
    assert "?" in done.text or "?" in done.problem or done.session in (None, "?")


def test_half_a_character_in_an_answer_of_one_value() -> None:
    done = read_spec_answer("json", b'{"a": "\\uD800", "b": "\\ud83d\\ude00"}')
    assert done.structured == {"a": "?", "b": "\U0001f600"}


def test_of_very_many_figures_so_many_are_kept_as_an_entry_holds() -> None:
    usage = {f"n{number:062}": number for number in range(2000)}
    assert len(read(stream(usage=usage)).usage) == 64


@given(st.binary(), st.sampled_from(["text", "json", "claude-stream-json"]), st.booleans())
def test_whatever_is_printed_is_read(data: bytes, output: Any, wants: bool) -> None:
    done = read_spec_answer(output, data, wants_structure=wants)
    assert done.status == "ok" or done.problem
