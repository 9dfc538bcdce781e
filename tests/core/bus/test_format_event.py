"""Event files: any text there and back, read alike by us and by a YAML reader; and their names."""

import datetime as dt
import doctest
import re

import nbs_team
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tripod.projections.bus import format as bus_format
from tripod.projections.bus.format import Event, event_name_us
from tripod.team.act import MAX_PAYLOAD

TIME = "2026-02-12T14:00:00Z"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LINES = st.text(st.sampled_from(" \n\txé#:'\"|-\\\r\x85\u2028\x1b\ufeff"))
ODD_WORDS = st.sampled_from(
    ["yes", "No", "null", "~", "123", "1_0", "0x1F", "1e5", "1:30", "1.5", ".5", "-1", "2026-02-12",
     "2026-02-30T00:00:00Z", "2026-02-12T14:00:00Z", "[MEDIC-WARNING]", "*t", "&a", "!x", "a: b",
     "a #b", "a:", "- a", "---", "...", "<<", "=", "'a'", '"a"', '"a', "a\\", "{}", "%", "@a", "`",
     "|", ">", "0o17", "1d", "9z9", "é", "٣", "a\u00a0b", "C:\\x", "true", "OFF", "n", ".inf"]
)  # fmt: skip
WORDS = (ODD_WORDS | TEXTS | LINES).filter(bool)
PAYLOADS = ODD_WORDS | TEXTS | LINES
EVENTS = st.builds(Event, WORDS, WORDS, WORDS, ODD_WORDS | TEXTS, ODD_WORDS | TEXTS, PAYLOADS)

SAMPLE = Event(
    source="parser-worker",
    type="task-complete",
    priority="high",
    timestamp="2026-02-12T14:00:00Z",
    dedup_key="parser-worker:task-complete",
    payload="Task parser-a3f1 completed successfully.\n467/467 tests pass.",
)


def with_payload(payload: str) -> bytes:
    return bus_format.format_event(Event("a", "b", "low", "", "", payload)).split(
        b"priority: low\n"
    )[1]


def read(text: str) -> Event | None:
    return bus_format.parse_event(text.encode())


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(bus_format).failed == 0
    shown = nbs_team.example(bus_format.__doc__)
    parsed = bus_format.parse_event(shown)
    assert parsed is not None
    assert bus_format.format_event(parsed) == shown


def test_the_example_of_the_original_documents() -> None:
    data = bus_format.format_event(SAMPLE)
    assert data == (
        b"source: parser-worker\n"
        b"type: task-complete\n"
        b"priority: high\n"
        b"timestamp: 2026-02-12T14:00:00Z\n"
        b"dedup-key: parser-worker:task-complete\n"
        b"payload: |\n"
        b"  Task parser-a3f1 completed successfully.\n"
        b"  467/467 tests pass.\n"
    )
    assert bus_format.parse_event(data) == SAMPLE


@pytest.mark.parametrize(
    ("payload", "written"),
    [
        ("", b""),
        ("x", b"payload: |\n  x\n"),
        ("x\n", b"payload: |\n  x\n"),
        ("x\n\n", b"payload: |\n  x\n  \n"),
        ("a\n\nb", b"payload: |\n  a\n  \n  b\n"),
        ("-- note", b"payload: |\n  -- note\n"),
        ("\ta", b"payload: |\n  \ta\n"),
        ("  a\nb", b"payload: |2\n    a\n  b\n"),
        ("\n a", b"payload: |2\n  \n   a\n"),
        ("\na", b"payload: |\n  \n  a\n"),
        ("\n", b"payload: |2\n  \n"),
        (" ", b"payload: |2\n   \n"),
        ("a\rb", b'payload: "a\\rb"\n'),
        ('\x1b[31m"red\\', b'payload: "\\u001b[31m\\"red\\\\"\n'),
        ("a\x85\u2028\ufeff\n\tb", b'payload: "a\\u0085\\u2028\\ufeff\\n\\tb"\n'),
    ],
)
def test_the_layout_of_a_payload(payload: str, written: bytes) -> None:
    assert with_payload(payload) == written


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("parser-worker", "parser-worker"),
        ("a:b", "a:b"),
        ("Zoë", "Zoë"),
        ("9lives", "9lives"),
        ("yes", '"yes"'),
        ("123", '"123"'),
        ("12:30", '"12:30"'),
        ("2026-02-12", '"2026-02-12"'),
        ("[MEDIC-WARNING]", '"[MEDIC-WARNING]"'),
        ("*t", '"*t"'),
        ("a:", '"a:"'),
        ("a b", '"a b"'),
        ("a\nb", '"a\\nb"'),
    ],
)
def test_a_word_is_bare_where_that_is_safe(word: str, written: str) -> None:
    data = bus_format.format_event(Event(word, "b", "low", "", "", ""))
    assert data.decode() == f"source: {written}\ntype: b\npriority: low\n"


@given(EVENTS)
@example(Event("1:2", "a", "x", "2026-02-12T14:00:00+0000", "1:2:a", "   \n\t\n  x\n \n"))
def test_a_yaml_reader_reads_what_we_meant(given_event: Event) -> None:
    document = yaml.safe_load(bus_format.format_event(given_event))
    stamp = document.get("timestamp", "")
    if isinstance(stamp, dt.datetime):
        stamp = stamp.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    assert document["source"] == given_event.source
    assert document["type"] == given_event.type
    assert document["priority"] == given_event.priority
    assert stamp == given_event.timestamp
    assert document.get("dedup-key", "") == given_event.dedup_key
    assert document.get("payload", "").rstrip("\n") == given_event.payload.rstrip("\n")


@given(EVENTS)
def test_we_read_what_we_wrote(given_event: Event) -> None:
    data = bus_format.format_event(given_event)
    parsed = bus_format.parse_event(data)
    assert parsed is not None
    assert bus_format.format_event(parsed) == data
    for field in ("source", "type", "priority", "timestamp", "dedup_key"):
        assert getattr(parsed, field) == getattr(given_event, field)
    assert parsed.payload.removesuffix("\n") == given_event.payload.removesuffix("\n")
    assert data.endswith(b"\n")
    assert b"\n\n" not in data


KEYS = ["source", "type", "priority", "timestamp", "dedup-key", "payload", "note"]
FILES = st.lists(
    st.builds("{}: {}".format, st.sampled_from(KEYS), PAYLOADS | st.sampled_from(["|", ">-", "|3"]))
    | PAYLOADS
    | PAYLOADS.map("  {}".format)
).map("\n".join)


@given(st.binary() | FILES.map(str.encode))
def test_nothing_that_is_read_breaks_the_reader(data: bytes) -> None:
    parsed = bus_format.parse_event(data)
    if parsed is not None:
        assert bus_format.parse_event(bus_format.format_event(parsed)) is not None


@pytest.mark.parametrize("missing", ["source", "type", "priority"])
def test_a_required_field_is_required(missing: str) -> None:
    lines = bus_format.format_event(SAMPLE).decode().splitlines(keepends=True)
    assert read("".join(line for line in lines if not line.startswith(missing))) is None
    with pytest.raises(ValueError, match="needs"):
        bus_format.format_event(Event(**{**fields_of(SAMPLE), missing: ""}))


def fields_of(given_event: Event) -> dict[str, str]:
    return {name: getattr(given_event, name) for name in Event._fields}


def test_a_surrogate_is_refused() -> None:
    for field in ("source", "payload"):
        with pytest.raises(ValueError, match="surrogates"):
            bus_format.format_event(Event(**{**fields_of(SAMPLE), field: "a\ud800"}))


HEAD = "source: a\ntype: b\npriority: low\n"


@pytest.mark.parametrize(
    ("rest", "payload"),
    [
        ("", ""),
        ("payload: one line", "one line"),
        ("payload:", ""),
        ("payload: 'it''s'", "it's"),
        ('payload: "a\\tb\\x41\\u00e9\\U0001f600\\/"', "a\tbAé\U0001f600/"),
        ('payload: "\\ud83d\\ude00"', "\U0001f600"),
        ('payload: "\\ud83d"', '"\\ud83d"'),
        ('payload: "\\q"', '"\\q"'),
        ('payload: "\\U00110000"', '"\\U00110000"'),
        ('payload: "open', '"open'),
        ("payload: |-\n  a\n  b\n", "a\nb"),
        ("payload: |+2\n  a\n", "a"),
        ("payload: |4-\n     a\n    b\n", " a\nb"),
        ("payload: >\n  a\n\n  b\n", "a\n\nb"),
        ("payload: |\n    a\n  b\n", "  a\nb"),
        ("payload: |\n a\n", "a"),
        ("payload: |\n  a\n\n# done\nnote: x\n", "a\n\n"),
        ("# comment\n\nnested:\n  source: x\npayload: p", "p"),
    ],
)
def test_payloads_by_other_hands(rest: str, payload: str) -> None:
    assert read(HEAD + rest) == Event("a", "b", "low", "", "", payload)


def test_another_order_and_line_breaks_of_another_system() -> None:
    assert read("priority: low\r\ntype: b\r\nsource: 'a'\r\n") == Event("a", "b", "low", "", "", "")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEAD.encode() + b"source: c\n",
        HEAD.encode() + b"payload: |\n  \xff\n",
        b"source: \ntype: b\npriority: low\n",
        b"- source: a\n",
        HEAD.encode() + b"#" * bus_format.MAX_FILE,
    ],
)
def test_what_is_no_event(data: bytes) -> None:
    assert bus_format.parse_event(data) is None


@pytest.mark.parametrize("letter", ["x", "\x01", "\n", "\x85", "\u2028", "ü", "\U0001f600"])
def test_the_largest_event_that_we_write_is_read(letter: str) -> None:
    text = letter * (MAX_PAYLOAD // len(letter.encode()))
    word = '"' * bus_format.MAX_WORD  # each is escaped
    data = bus_format.format_event(Event(word, word, "critical", TIME, f"{word}:{word}", text))
    assert len(data) <= bus_format.MAX_FILE
    got = bus_format.parse_event(data)
    assert got is not None
    assert got.payload in (text, text.removesuffix("\n"))


# Names and times --------------------------------------------------------------------------------


def test_the_name_of_an_event() -> None:
    name = bus_format.event_name(1707753600123456, "parser-worker", "task-complete", 48291)
    assert name == "1707753600123456-parser-worker-task-complete-48291.event"
    assert event_name_us(name) == 1707753600123456
    assert bus_format.valid_event_name(name) is None


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("0-a-b-1.event", 0),
        ("12", None),
        ("-a.event", None),
        ("x1-a.event", None),
        ("12x-a.event", None),
        ("9007199254740991-a.event", 2**53 - 1),
        ("9007199254740992-a.event", None),
        ("12345678901234567890-a.event", None),
        ("\u0661-a.event", None),
    ],
)
def test_the_time_in_a_name(name: str, time: int | None) -> None:
    assert event_name_us(name) == (time or 0)


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("1-a-b-2.event", True),
        ("x.event", True),
        ("", False),
        (".", False),
        (".event", False),
        ("x.event\0", False),
        ("..x.event", False),
        ("a/b.event", False),
        ("x.events", False),
        (".tmp-1-2.event", False),
    ],
)
def test_names_that_a_command_takes(name: str, good: bool) -> None:
    assert (bus_format.valid_event_name(name) is None) is good


def test_a_name_must_fit_the_file_system() -> None:
    assert bus_format.name_problem(bus_format.event_name(1, "a", "b", 2)) is None
    assert "255" in str(
        bus_format.name_problem(bus_format.event_name(1, "é" * 63, "b" * 127, 12345))
    )


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("parser-worker", "None"),
        ("[MEDIC-WARNING]", "None"),
        ("x" * 127, "None"),
        ("x" * 128, "source: longer than 127 bytes"),
        ("", "source: empty"),
        (" ", "source: empty"),
        ("a b", "None"),
        ("a\u202eb", "None"),
        ("a\x0bb", "control"),
        ("a\x01", "control"),
        ("a/b", "source: holds '/'"),
    ],
)
def test_words_of_an_event(word: str, rule: str) -> None:
    assert rule in str(bus_format.valid_event_word(word, "source"))


@given(st.integers(0, 253_402_300_799_999_999))
def test_timestamps_are_whole_seconds_of_utc(us: int) -> None:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=us)
    assert bus_format.format_time(us) == moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("seconds", "age"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h"),
     (86_399, "23h"), (86_400, "1d"), (864_000, "10d")],
)  # fmt: skip
def test_ages(seconds: int, age: str) -> None:
    now = 1_770_904_800_999_999
    assert bus_format.event_age(now, now - seconds * 1_000_000) == age


# The real files ---------------------------------------------------------------------------------


def test_real_events_read_and_are_written_byte_for_byte() -> None:
    files = nbs_team.matching("events", ".event")
    assert len(files) == 762
    for path, data in files.items():
        name = path.split("/")[-1]
        parsed = bus_format.parse_event(data)
        assert parsed is not None
        assert bus_format.format_event(parsed) == data
        assert bus_format.valid_event_name(name) is None
        time = event_name_us(name)
        assert time
        pid = int(re.split(r"[-.]", name)[-2])
        assert name == bus_format.event_name(time, parsed.source, parsed.type, pid)
        assert parsed.priority in bus_format.PRIORITIES
