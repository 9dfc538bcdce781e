"""Ids and the clock's spelling."""

import doctest
import re
import time
import uuid
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tripod.ledger import ids, observed_entry_id
from tripod.ledger.ids import format_at, fresh_ids, now_at, now_us, uuid7

MICROSECONDS = st.integers(0, 253_402_300_799_999_999)  # to the end of the year 9999
NANOSECONDS = st.integers(0, 2**48 * 1_000_000 - 1)
DIGITS = st.text("0123456789abcdef", min_size=15, max_size=15)


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(ids).failed == 0


@given(MICROSECONDS)
def test_times_are_written_as_everybody_writes_them(us: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    assert format_at(us) == moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@given(MICROSECONDS, MICROSECONDS)
def test_times_are_ordered_as_their_texts(one: int, other: int) -> None:
    assert (one < other) == (format_at(one) < format_at(other))


def test_now_lies_between_two_looks_at_the_clock() -> None:
    before, us, at, after = time.time_ns(), now_us(), now_at(), time.time_ns()
    assert before // 1000 <= us <= after // 1000
    assert format_at(before // 1000) <= at <= format_at(after // 1000)


@given(NANOSECONDS, DIGITS)
def test_an_id_is_a_uuid_of_version_7_and_tells_its_time(ns: int, entropy: str) -> None:
    text = uuid7(ns, entropy)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == ns // 1_000_000
    assert parsed.int >> 64 & 0xFFF == ns % 1_000_000 * 4096 // 1_000_000
    assert text.replace("-", "").endswith(entropy)


@given(NANOSECONDS, NANOSECONDS, DIGITS)
def test_ids_rise_with_the_clock(one: int, other: int, entropy: str) -> None:
    if one <= other:
        assert uuid7(one, "0" * 15) <= uuid7(other, entropy)


def test_fresh_ids_are_new_each_time() -> None:
    pairs = fresh_ids(1000) + fresh_ids(1000)
    assert fresh_ids(0) == []
    assert len({entry_id for entry_id, _ in pairs}) == 2000
    assert len({salt for _, salt in pairs}) == 2000
    for entry_id, salt in pairs:
        assert len(salt) == 32
        assert uuid.UUID(entry_id).version == 7
        assert str(uuid.UUID(entry_id)) == entry_id


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 9), st.binary())
def test_the_same_piece_has_the_same_id(path: str, ordinal: int, data: bytes) -> None:
    piece = observed_entry_id(path, ordinal, data)
    assert piece == observed_entry_id(path, ordinal, data)
    assert re.fullmatch("obs-[0-9a-f]{40}", piece)
    assert piece not in {
        observed_entry_id(path + "x", ordinal, data),
        observed_entry_id(path, ordinal + 1, data),
        observed_entry_id(path, ordinal, data + b"x"),
    }
