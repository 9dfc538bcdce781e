"""Canonical JSON: each value has one spelling, and only that spelling is read."""

import doctest
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tripod.ledger import entry as canonical
from tripod.ledger.entry import MAX_INTEGER, check_canonical, format_canonical, parse_canonical
from tripod.ledger.errors import MalformedError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
INTEGERS = st.integers(-MAX_INTEGER, MAX_INTEGER)
KEYS = st.text(st.characters(max_codepoint=0x7F))
VALUES = st.recursive(
    st.booleans() | INTEGERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)

# What is no value of the profile but could reach us from Python or from foreign JSON.
STRANGE = st.recursive(
    st.none() | st.floats() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


def in_brackets(levels: int, core: bytes = b"") -> bytes:
    return b"[" * levels + core + b"]" * levels


def test_the_examples_of_the_docstring() -> None:
    assert doctest.testmod(canonical).failed == 0
    assert doctest.testmod(canonical).attempted > 0


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({}, b"{}"),
        ([], b"[]"),
        ("", b'""'),
        (0, b"0"),
        (-1, b"-1"),
        (MAX_INTEGER, b"9007199254740991"),
        (-MAX_INTEGER, b"-9007199254740991"),
        ({"b": 1, "a": 2, "": 3, "B": 4}, b'{"":3,"B":4,"a":2,"b":1}'),
        ({"a": {"z": [], "y": {}}}, b'{"a":{"y":{},"z":[]}}'),
        ([True, False], b"[true,false]"),
        ('"\\/', b'"\\"\\\\/"'),
        ("\b\t\n\f\r\x00\x1f\x7f", b'"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f"'),
        ("é\u2028😀", '"é\u2028😀"'.encode()),
    ],
)
def test_the_one_spelling(value: object, data: bytes) -> None:
    assert format_canonical(value) == data
    assert parse_canonical(data) == value


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    check_canonical(value)
    assert parse_canonical(format_canonical(value)) == value


@given(VALUES)
def test_a_plain_sorted_compact_encoder_writes_the_same(value: Any) -> None:
    plain = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert format_canonical(value) == plain.encode()


@given(
    value=STRANGE,
    ordered=st.booleans(),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
@example(value={"b": 1, "a": 2}, ordered=False, ascii_only=False, indent=None)
@example(value=["é"], ordered=True, ascii_only=True, indent=None)
@example(value=[1.0], ordered=True, ascii_only=False, indent=None)
def test_what_is_accepted_is_what_we_would_have_written(
    *,
    value: Any,
    ordered: bool,
    ascii_only: bool,
    indent: int | None,
) -> None:
    data = json.dumps(
        value, sort_keys=ordered, ensure_ascii=ascii_only, indent=indent, separators=(",", ":")
    ).encode()
    try:
        read = parse_canonical(data)
    except MalformedError:
        return
    assert format_canonical(read) == data


@given(st.binary())
def test_any_bytes_are_read_exactly_or_refused(data: bytes) -> None:
    with suppress(MalformedError):
        assert format_canonical(parse_canonical(data)) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"nonsense", "not JSON"),
        (b"{", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"[01]", "not JSON"),
        (b"[+1]", "not JSON"),
        (b"NaN", "not JSON"),
        (b"[Infinity]", "not JSON"),
        (b'"\\ud800"', "not JSON"),
        (b'"\xed\xa0\x80"', "not JSON"),
        (b'"\xff"', "not JSON"),
        (b'"\xc1\x81"', "not JSON"),
        (b'"\n"', "not JSON"),
        (b"\xef\xbb\xbf[]", "not JSON"),
        (b"[1.5]", "float has no place"),
        (b"1.0", "float has no place"),
        (b"[1e2]", "float has no place"),
        (b"-0.0", "float has no place"),
        (b"null", "NoneType has no place"),
        (b'{"a":null}', "NoneType has no place"),
        (b"9007199254740992", "integer out of"),
        (b"[-9007199254740992]", "integer out of"),
        (b"99999999999999999999", "float has no place"),
        ('{"é":1}'.encode(), "key is not ASCII"),
        (b'{"a":1,"a":2}', "not canonical"),
        (b'{"a":1,"a":1}', "not canonical"),
        (b'{"b":1,"a":2}', "not canonical"),
        (b'{"a": 1}', "not canonical"),
        (b" []", "not canonical"),
        (b"[]\n", "not canonical"),
        (b"[1, 2]", "not canonical"),
        (b"-0", "not canonical"),
        (b'"\\u0041"', "not canonical"),
        (b'"\\u00e9"', "not canonical"),
        (b'"\\/"', "not canonical"),
        (b'"\\u001F"', "not canonical"),
        (b'"\\u000a"', "not canonical"),
        (b'"\\ud83d\\ude00"', "not canonical"),
        (in_brackets(33), "nested deeper than 32"),
        (in_brackets(33, b"1"), "nested deeper"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "nested deeper"),
        (in_brackets(100_000), "not JSON"),
    ],
)
def test_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        parse_canonical(data)


@pytest.mark.parametrize(
    "data",
    [
        in_brackets(32),
        in_brackets(32, b'"text"'),
        b'{"a":' * 32 + b"1" + b"}" * 32,
        b'[{"a":' * 16 + b"1" + b"}]" * 16,
    ],
)
def test_the_deepest_nesting_that_is_read(data: bytes) -> None:
    assert format_canonical(parse_canonical(data)) == data


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), 2**64, "\ud800", ["\udfff"], {"\ud800": 1}, {1: 2}, {b"a": 1}, b"a"]
)
def test_what_has_no_spelling(value: object) -> None:
    with pytest.raises(MalformedError, match="no canonical JSON"):
        format_canonical(value)


@pytest.mark.parametrize(
    "value",
    [
        1.0, 0.5, float("nan"), float("inf"), None, {"a": None}, [1.0], 2**53, -(2**53), 2**70,
        {"é": 1}, {1: 2}, (1, 2), b"a", {1}, type("Text", (str,), {})("a"),
    ],
)  # fmt: skip
def test_what_lies_outside_the_profile(value: object) -> None:
    with pytest.raises(MalformedError):
        check_canonical(value)


def test_a_refusal_shows_only_the_beginning_of_a_long_value() -> None:
    with pytest.raises(MalformedError) as caught:
        parse_canonical(b'["' + b"x" * 100_000 + b'" ]')
    assert len(str(caught.value)) < 300
