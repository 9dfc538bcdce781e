"""Base64, decimals and text: one spelling for each value, and only that one is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.ledger.errors import MalformedError
from tripod.ledger.tlog.note import (
    MAX_SIZE,
    format_base64,
    name_problem,
    note_text_problem,
    parse_base64,
    parse_decimal,
    parse_note_text,
)


@given(st.binary(max_size=100))
def test_base64_comes_back(data: bytes) -> None:
    assert parse_base64(format_base64(data), "here") == data


@given(st.text("AQgw+/=-_ \n\u0661", max_size=12))
def test_base64_that_is_read_is_written_so(text: str) -> None:
    try:
        data = parse_base64(text, "here")
    except MalformedError:
        return
    assert format_base64(data) == text


@pytest.mark.parametrize(
    "text", ["AA", "AA=", "AA==\n", " AA==", "AAA", "A===", "AB==", "AA-_", "AA==AA==", "ÄA==", "="]
)
def test_other_base64_is_refused(text: str) -> None:
    with pytest.raises(MalformedError, match=r"^line 7: .*base64"):
        parse_base64(text, "line 7")


@given(st.integers(0, MAX_SIZE))
def test_a_decimal_comes_back(number: int) -> None:
    assert parse_decimal(str(number), "here") == number


@pytest.mark.parametrize(
    "text",
    [
        *("", "07", "00", "+7", "-7", "-0", "7 ", " 7", "7\n", "0x7", "7.0", "1e3", "1_000"),
        *("\u0667", "\u00b2", str(MAX_SIZE + 1), "9" * 20, "9" * 5_000),
    ],
)
def test_other_decimals_are_refused(text: str) -> None:
    with pytest.raises(MalformedError, match="line 2: not a decimal"):
        parse_decimal(text, "line 2")


def test_text_is_utf8_of_limited_size_without_control_characters() -> None:
    assert parse_note_text("é\u2028\x7f\x85\n".encode(), 9, "here") == "é\u2028\x7f\x85\n"
    with pytest.raises(MalformedError, match="here: 10 bytes, at most 9 are read"):
        parse_note_text(b"0123456789", 9, "here")
    with pytest.raises(MalformedError, match="here: not UTF-8 at byte 2"):
        parse_note_text(b"ab\xff", 9, "here")
    with pytest.raises(MalformedError, match=r"here: line 3 holds '\\r', a control character"):
        parse_note_text(b"a\nb\nc\r\n", 9, "here")


@pytest.mark.parametrize("code", [*range(10), *range(11, 32), 0xD800, 0xDFFF])
def test_each_control_character_is_named(code: int) -> None:
    assert note_text_problem(f"a{chr(code)}") is not None
    assert name_problem(f"a{chr(code)}") is not None


@pytest.mark.parametrize(
    "name", ["", "a+b", "a b", "a\n", "\ta", "a\u00a0", "a\u2003b", "\u2028", "a\u2029b", "\u3000"]
)
def test_what_is_no_name(name: str) -> None:
    assert name_problem(name) is not None


@pytest.mark.parametrize("name", ["a", "example.com/ledger", "ö", "—", "a\u200bb", "a=b", "😀"])
def test_what_is_a_name(name: str) -> None:
    assert name_problem(name) is None
