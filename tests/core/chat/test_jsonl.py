"""Messages in JSON lines: each is read whole or named with its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.chat.jsonl import MAX_LINE, parse_jsonl_messages

FIELDS = {"text": "body", "handle": "author.name", "time": "ts"}
TIMES = st.integers(0, 4_000_000_000)
MESSAGES = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True),
    TIMES,
)


def line(text: object, handle: object, time: object) -> bytes:
    return json.dumps({"body": text, "author": {"name": handle}, "ts": time}).encode() + b"\n"


@given(st.lists(MESSAGES, max_size=8))
def test_what_is_written_is_read(messages: list[tuple[str, str, int]]) -> None:
    found = parse_jsonl_messages(b"".join(line(*one) for one in messages), FIELDS)
    assert not found.problems
    assert [(one.text, one.handle, one.time) for one in found.messages] == messages
    assert len({(one.data, one.ordinal) for one in found.messages}) == len(messages)


@given(st.lists(MESSAGES, min_size=1, max_size=4), st.data())
def test_a_file_that_grows_shows_the_same_messages_first(
    messages: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    whole = b"".join(line(*one) for one in messages)
    end = data.draw(st.integers(0, len(whole)))
    before, after = (parse_jsonl_messages(part, FIELDS) for part in (whole[:end], whole))
    assert not before.problems, "a line that is not whole yet is none that is wrong"
    assert after.messages[: len(before.messages)] == before.messages


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_named(data: bytes) -> None:
    found = parse_jsonl_messages(data, FIELDS)
    lines = [at for at, one in enumerate(data.split(b"\n"), 1) if one.removesuffix(b"\r").strip()]
    named = [one.line for one in found.messages] + [at for at, _ in found.problems]
    assert sorted(named) == lines[: len(lines) - found.is_torn]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"body": "a", "body": "b", "author": {"name": "ann"}, "ts": 1}', "body"),
        (b'{"body": "a", "\\u0062ody": "b", "author": {"name": "ann"}, "ts": 1}', "body"),
        (b'{"body": "a", "author": {"name": "ann", "name": "bob"}, "ts": 1}', "name"),
        (b'{"body": "a", "author": {"name": "ann"}, "ts": 1, "x": [{"y": 1, "y": 2}]}', "y"),
    ],
)
def test_a_field_that_stands_there_twice_is_named(text: bytes, name: str) -> None:
    found = parse_jsonl_messages(line("fine", "ann", 1) + text + b"\n", FIELDS)
    assert found.problems == [(2, f"the field {name!r} stands there twice")]
    assert [one.text for one in found.messages] == ["fine"]


def test_objects_in_each_other_are_no_error() -> None:
    for depth in (900, 1_000, 1_020, 2_000):
        deep = b'{"x":' * depth + b"1" + b"}" * depth
        assert [at for at, _ in parse_jsonl_messages(deep + b"\n\n", FIELDS).problems] == [1]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (1_700_000_000, 1_700_000_000),
        (1_700_000_000.9, 1_700_000_000),
        (1_700_000_000_123, 1_700_000_000),
        (1_700_000_000_123_456, 1_700_000_000),
        ("1700000000.5", 1_700_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        ("2023-11-14T22:13:20.123456Z", 1_700_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000),
    ],
)
def test_times(time: object, seconds: int) -> None:
    (found,) = parse_jsonl_messages(line("hi", "ann", time), FIELDS).messages
    assert found.time == seconds


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{\n", "no JSON"),
        (b"[]\n", "no JSON object"),
        (b'{"body": "x"}\n', "no field 'author.name' for the handle"),
        (b'{"body": "x", "author": "ann"}\n', "no field 'author.name' for the handle"),
        (line(7, "ann", 1), "the text is no text"),
        (line("x", None, 1), "the handle is no text"),
        (line("x", "two words", 1), "handle"),
        (line("x", "", 1), "handle"),
        (line("a\0b", "ann", 1), "NUL"),
        (line("x", "ann", "yesterday"), "the time 'yesterday' is no moment"),
        (line("x", "ann", -1), "the time '-1' is no moment"),
        (line("x", "ann", [1]), "the time '[1]' is no moment"),
        (line("x", "ann", None), "the time 'None' is no moment"),
        (b'"' + b"x" * MAX_LINE + b'"\n', "longer than"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(data: bytes, problem: str) -> None:
    good = line("hi", "ann", 1)
    found = parse_jsonl_messages(good + data + good, FIELDS)
    ((at, said),) = found.problems
    assert at == 2
    assert problem in said
    assert [one.line for one in found.messages] == [1, 3]


def test_a_message_without_a_time() -> None:
    found = parse_jsonl_messages(
        b'{"text": "x", "handle": "ann", "id": 7}',
        {
            "text": "text",
            "handle": "handle",
            "time": "",
        },
    )
    assert [one.time for one in found.messages] == [0]
    assert found.unmapped == {"id"}
