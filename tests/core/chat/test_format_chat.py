"""Chat files: lines, headers and whole files, there and back, and what may stand in them."""

import base64
import datetime as dt
import doctest
import re
from contextlib import suppress

import nbs_team
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections import text as moments
from tripod.projections.chat import format as chat_format
from tripod.projections.chat.format import ChatHeader, ChatLine

TIMES = st.integers(0, moments.MAX_EPOCH)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
HANDLES = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters="[|:,()=/"),
    min_size=1,
    max_size=15,
)
HEADERS = st.builds(
    ChatHeader,
    HANDLES,
    TIMES.map(chat_format.format_time),
    st.lists(st.tuples(HANDLES, st.integers(0, 10**14))).map(tuple),
)


def encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(chat_format).failed == 0


def test_the_example_of_the_format() -> None:
    example = nbs_team.example(chat_format.__doc__)
    file = chat_format.split_chat_file(example)
    assert file is not None
    assert file.header is not None
    assert file.header_raw == chat_format.format_header(
        file.header, len(example) - len(file.header_raw)
    )
    assert list(map(chat_format.parse_line, file.lines)) == [ChatLine("alex", 1770904800, "hello")]


# Lines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decoded", "message"),
    [
        ("alex|1770904800|c2ln: hello", ChatLine("alex", 1770904800, "hello")),
        ("alex|1770904800: hello", ChatLine("alex", 1770904800, "hello")),
        ("alex: hello", ChatLine("alex", 0, "hello")),
        ("alex|1770904800: a: b | c\nd", ChatLine("alex", 1770904800, "a: b | c\nd")),
        ("alex|0: x", ChatLine("alex", 0, "x")),
        ("alex|-5: x", ChatLine("alex", 0, "x")),
        ("alex|soon: x", ChatLine("alex", 0, "x")),
        ("alex|9999999999999999999: x", ChatLine("alex", 0, "x")),
        ("alex|12345678901234567890: x", ChatLine("alex", 0, "x")),
        ("alex|5: ", ChatLine("alex", 5, "")),
        ("h" * 63 + ": x", ChatLine("h" * 63, 0, "x")),
    ],
)
def test_the_three_forms_of_a_line(decoded: str, message: ChatLine) -> None:
    assert chat_format.parse_line(encoded(decoded)) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        encoded("alex|5 hello"),
        encoded(": hello"),
        encoded("|5: hello"),
        encoded("h" * 64 + ": x"),
        encoded("é" * 32 + ": x"),
        encoded("alex|5: a\0b"),
        base64.b64encode(b"alex|5: \xff"),
        encoded("alex|5: hello!")[:-1],
        encoded("alex|5: hello") + b"\r",
        encoded("alex|5: hello") + b"AAAA",
        b"====",
        b"YW=xlHg6",
        "ü".encode(),
    ],
)
def test_what_the_original_skips_is_no_message(line: bytes) -> None:
    assert chat_format.parse_line(line) is None


@given(HANDLES, TIMES, TEXTS)
def test_a_line_reads_back(handle: str, time: int, text: str) -> None:
    assert chat_format.valid_chat_handle(handle) is None
    assert chat_format.parse_line(chat_format.format_line(handle, time, text)) == ChatLine(
        handle, time, text
    )


@given(st.text(), st.integers(), st.text())
def test_what_is_written_reads_back_or_is_refused(handle: str, time: int, text: str) -> None:
    with suppress(ValueError):
        line = chat_format.format_line(handle, time, text)
        assert b"\n" not in line
        assert chat_format.parse_line(line) == ChatLine(handle, time, text)


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "replace")))
def test_any_line_that_is_read_can_be_written(decoded: bytes) -> None:
    message = chat_format.parse_line(base64.b64encode(decoded))
    if message is not None:
        line = chat_format.format_line(message.handle, message.time, message.text)
        assert chat_format.parse_line(line) == message


@pytest.mark.parametrize(
    ("handle", "time", "text"),
    [("", 1, "x"), ("a|b", 1, "x"), ("a: b", 1, "x"), ("a", -1, "x"), ("a", 2**53, "x"),
     ("a", 1, "\0"), ("a", 1, "\ud800")],
)  # fmt: skip
def test_a_line_that_would_not_read_back_is_refused(handle: str, time: int, text: str) -> None:
    with pytest.raises(ValueError, match="a"):
        chat_format.format_line(handle, time, text)


# Headers and files ------------------------------------------------------------------------------


def test_a_new_file_has_the_header_of_the_original() -> None:
    header = chat_format.format_header(ChatHeader("system", "2026-02-12T14:00:00+0000", ()), 0)
    assert header == (
        b"=== nbs-chat ===\nlast-writer: system\nlast-write: 2026-02-12T14:00:00+0000\n"
        b"file-length: 110\nparticipants: \n---\n"
    )
    assert len(header) == 110
    assert header.count(b"\n") == chat_format.HEADER_LINES


@given(HEADERS, st.integers(0, 10**9))
def test_a_header_reads_back_and_knows_its_length(header: ChatHeader, body_size: int) -> None:
    raw = chat_format.format_header(header, body_size)
    assert chat_format.parse_header(raw) == header
    length = int(raw.split(b"file-length: ")[1].split(b"\n")[0])
    assert length == len(raw) + body_size


@given(st.integers(0, 2_000))
def test_the_length_is_right_at_every_size(body_size: int) -> None:
    raw = chat_format.format_header(ChatHeader("a", "", ()), body_size)
    assert int(raw.split(b"\n")[3].removeprefix(b"file-length: ")) == len(raw) + body_size


def test_an_archive_says_so_and_has_nobody_in_it() -> None:
    raw = chat_format.chat_archive_header("2026-02-12T14:00:00+0000", 10)
    assert b"\nlast-writer: system\n" in raw
    assert b"\nparticipants: (archived)\n" in raw
    header = chat_format.parse_header(raw)
    assert header == ChatHeader("system", "2026-02-12T14:00:00+0000", ())


def test_a_header_is_read_as_tolerantly_as_by_the_original() -> None:
    raw = (
        b"=== nbs-chat ===\nparticipants: a(2), b, c(3), d(x)\nfile-length: many\ncolour: red\n"
        b"last-writer: a\n---\n"
    )
    assert chat_format.parse_header(raw) == ChatHeader("a", "", (("a", 2), ("c", 3)))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"---\n",
        b"=== nbs-chat ===\n---",
        b"=== other ===\n---\n",
        b"=== nbs-chat ===\nx: \xff\n---\n",
    ],
)
def test_what_is_no_header(raw: bytes) -> None:
    assert chat_format.parse_header(raw) is None


def test_a_line_break_in_a_header_is_refused() -> None:
    for header in (
        ChatHeader("a\nb", "", ()),
        ChatHeader("a", "\n", ()),
        ChatHeader("a", "", (("b\n", 1),)),
    ):
        with pytest.raises(ValueError, match="line break"):
            chat_format.format_header(header, 0)


HEAD = chat_format.format_header(ChatHeader("a", "2026-02-12T14:00:00+0000", (("a", 1),)), 0)


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line)), st.booleans())
def test_a_file_is_joined_as_it_was_split(lines: list[bytes], torn: bool) -> None:
    data = HEAD + b"".join(line + b"\n" for line in lines) + (b"YWx" if torn else b"")
    file = chat_format.split_chat_file(data)
    assert file is not None
    assert chat_format.join_chat_file(file) == data
    assert file.lines == (*lines, *([b"YWx"] if torn else []))
    assert file.complete is not torn
    assert file.header == chat_format.parse_header(HEAD)


@given(st.binary())
def test_any_bytes_after_a_header_are_kept(body: bytes) -> None:
    file = chat_format.split_chat_file(HEAD + body)
    assert file is not None
    assert chat_format.join_chat_file(file) == HEAD + body


@pytest.mark.parametrize("data", [b"", HEAD[:-1], HEAD[1:], b"=== nbs-chat ===\n", b"# log\n"])
def test_what_is_no_chat_file(data: bytes) -> None:
    assert chat_format.split_chat_file(data) is None


# Times and names --------------------------------------------------------------------------------


HANDLE_PARTS = st.sampled_from(("ann", "", "#ann", "ann#", "a b", "\0", "ann\n"))
INDEX_PARTS = st.sampled_from(
    (
        "7",
        "0000000007",
        "00000000007",
        "2147483647",
        "2147483648",
        "²",
        "٣",
        "+7",
        "7_0",
        "7=7",
        "7\r",
    )
)
POSITION_LINES = st.tuples(HANDLE_PARTS, st.sampled_from(("=", "")), INDEX_PARTS).map("".join)


@given(st.lists(POSITION_LINES).map(lambda lines: "\n".join(lines).encode()))
def test_a_read_position_is_a_handle_an_equals_sign_and_an_index(data: bytes) -> None:
    told: dict[str, int] = {}
    for line in data.decode().split("\n"):
        position = re.fullmatch(r"([^=#][^=]*)=([0-9]{1,10})", line)
        if position and int(position[2]) < 2**31:
            told[position[1]] = int(position[2])
    assert list(chat_format.parse_chat_cursors(data).items()) == list(told.items())


@given(st.integers(0, 253_402_300_799))
def test_times_are_those_of_the_calendar(epoch: int) -> None:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=epoch)
    assert chat_format.format_time(epoch) == moment.strftime("%Y-%m-%dT%H:%M:%S+0000")
    assert chat_format.parse_chat_time(chat_format.format_time(epoch)) == epoch
    assert chat_format.chat_archive_name("live", epoch) == moment.strftime(
        "live-%Y%m%d-%H%M%S-archive"
    )


@given(st.datetimes(), st.integers(-1439, 1439))
def test_a_numeric_offset_is_taken_off(moment: dt.datetime, minutes: int) -> None:
    sign, size = "-" if minutes < 0 else "+", abs(minutes)
    text = f"{moment.isoformat(timespec='seconds')}{sign}{size // 60:02}{size % 60:02}"
    zone = dt.timezone(dt.timedelta(minutes=minutes))
    expected = moment.replace(microsecond=0, tzinfo=zone).timestamp()
    assert chat_format.parse_chat_time(text) == expected


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("2026-02-12 14:00:00", 1770904800),
        ("2026-02-12T14:00:00Z", 1770904800),
        ("2026-02-12T15:00:00+01:00", 1770904800),
        ("2024-02-29T00:00:00+0000", 1709164800),
        ("2026-02-29T00:00:00+0000", None),
        ("1900-02-29T00:00:00+0000", None),
        ("0000-01-01T00:00:00+0000", None),
        ("2026-13-01T00:00:00+0000", None),
        ("2026-00-01T00:00:00+0000", None),
        ("2026-01-00T00:00:00+0000", None),
        ("2026-01-01T24:00:00+0000", None),
        ("2026-01-01T00:60:00+0000", None),
        ("2026-01-01T00:00:60+0000", None),
        ("2026-01-01T00:00:00+2400", None),
        ("2026-01-01T00:00:00+0060", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_as_people_and_older_tools_write_them(text: str, epoch: int | None) -> None:
    assert chat_format.parse_chat_time(text) == epoch


def test_names_of_archives() -> None:
    assert chat_format.parse_chat_archive_name(chat_format.chat_archive_name("live", 0)) == (
        "live",
        "19700101-000000",
    )
    nested = "live-20260101-000000-archive-20260102-000000-archive"
    assert chat_format.parse_chat_archive_name(nested) == (
        "live-20260101-000000-archive",
        "20260102-000000",
    )
    assert chat_format.parse_chat_archive_name("live") is None
    assert chat_format.parse_chat_archive_name("-20260101-000000-archive") is None


@pytest.mark.parametrize("handle", ["alex", "bench-claude", "Zoë", "a.b_c", "x" * 63, "a]b", "@x"])
def test_good_handles(handle: str) -> None:
    assert chat_format.valid_chat_handle(handle) is None


@pytest.mark.parametrize(
    ("handle", "rule"),
    [
        ("", "empty"),
        ("x" * 64, "63 bytes"),
        ("é" * 32, "63 bytes"),
        *((f"a{bad}b", "holds") for bad in "[|:,()=/ \t\n\r\0\x7f\x85\u2028\u200b\u202e\ud800\xa0"),
    ],
)
def test_bad_handles(handle: str, rule: str) -> None:
    assert rule in str(chat_format.valid_chat_handle(handle))


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("live", True),
        ("a.b-c_9", True),
        ("x" * 100, True),
        ("x" * 101, False),
        ("", False),
        (".hidden", False),
        ("-x", False),
        ("a/b", False),
        ("a b", False),
        ("é", False),
        ("live\n", False),
        ("live-20260101-000000-archive", False),
    ],
)
def test_names_of_channels(name: str, good: bool) -> None:
    assert (chat_format.valid_chat_name(name) is None) is good


def test_texts_of_messages() -> None:
    assert chat_format.valid_chat_text("") is None
    assert chat_format.valid_chat_text("x" * chat_format.MAX_TEXT) is None
    assert "longer" in str(chat_format.valid_chat_text("é" * (chat_format.MAX_TEXT // 2) + "x"))
    assert "NUL" in str(chat_format.valid_chat_text("a\0b"))
    assert "Unicode" in str(chat_format.valid_chat_text("\ud800"))


# The real file ----------------------------------------------------------------------------------


def test_a_real_chat_reads_and_is_written_byte_for_byte() -> None:
    data = nbs_team.files()["chat/live.chat"]
    file = chat_format.split_chat_file(data)
    assert file is not None
    assert file.complete
    assert file.header is not None
    assert len(file.lines) == 668 == sum(count for _, count in file.header.participants)
    body_size = len(data) - len(file.header_raw)
    assert chat_format.format_header(file.header, body_size) == file.header_raw
    for line in file.lines:
        message = chat_format.parse_line(line)
        assert message is not None
        assert chat_format.format_line(message.handle, message.time, message.text) == line
        assert chat_format.valid_chat_handle(message.handle) is None
    assert chat_format.join_chat_file(file) == data
