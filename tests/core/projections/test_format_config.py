"""The team's configuration: what is taken, what is warned of, and that nothing is executed."""

import doctest
import inspect

import nbs_team
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.bus.format import Config, ConfigWarning
from tripod.projections.settings import MAX_SIZE
from tripod.projections.team import intake

BUS_SAMPLE = b"""\
# Deduplication window in seconds (default: 0 = disabled without config)
dedup-window: 300

# Maximum size of processed events directory in bytes (default: 16777216 = 16MB)
# Oldest processed events are pruned when this limit is exceeded
retention-max-bytes: 16777216

# Notification mechanism: "inotifywait" or "poll" (planned)
notify: inotifywait

# Poll interval in seconds (planned)
poll-interval: 5

# Stale event threshold in seconds (default: 0 = disabled)
ack-timeout: 120
"""
TRIPOD_SAMPLE = b"""\
# Number of decisions between Pythia checkpoints (default: 20)
pythia-interval: 20

# Chat channel for Pythia assessments (default: live.chat)
pythia-channel: live.chat
"""
KEYS = ["dedup-window", "retention-max-bytes", "ack-timeout", "pythia-interval", "pythia-channel",
        "notify", "poll-interval"]  # fmt: skip


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(intake).failed == 0
    assert intake.parse_team_config(nbs_team.example(inspect.getdoc(intake.parse_team_config))) == (
        Config(dedup_window=300),
        (),
    )


def test_the_documented_samples_give_no_warning() -> None:
    assert intake.parse_team_config(BUS_SAMPLE) == (Config(dedup_window=300, ack_timeout=120), ())
    assert intake.parse_team_config(TRIPOD_SAMPLE) == (Config(), ())
    assert intake.parse_team_config(nbs_team.files()["events/config.yaml"]) == (Config(), ())


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only\n  # comments\n", b"\xef\xbb\xbf"])
def test_nothing_said_is_the_defaults(data: bytes) -> None:
    assert intake.parse_team_config(data) == (Config(), ())


@pytest.mark.parametrize(
    "line",
    [
        "dedup-window: 30",
        "dedup-window:30",
        "dedup-window : 30",
        "dedup-window:\t30  ",
        "dedup-window: 30\r",
        "dedup-window: 30 # half a minute",
        "dedup-window: '30'",
        'dedup-window: "30"   # half a minute',
        "\ufeffdedup-window: 30",
    ],
)
def test_ways_to_write_a_value(line: str) -> None:
    assert intake.parse_team_config(line.encode()) == (Config(dedup_window=30), ())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dedup-window: 0", Config()),
        ("pythia-interval: 0", Config(pythia_interval=0)),
        ("retention-max-bytes: 1", Config(retention_max_bytes=1)),
        ("ack-timeout: 9007199254740991", Config(ack_timeout=2**53 - 1)),
        ("poll-interval: 1", Config(poll_interval=1)),
        ("deleted-events: restore", Config(deleted_events="restore")),
        ("deleted-events: acked", Config()),
        ("notify: poll", Config(notify="poll")),
        ("pythia-channel: 'review.chat'", Config(pythia_channel="review.chat")),
    ],
)
def test_each_key(line: str, expected: Config) -> None:
    assert intake.parse_team_config(line.encode()) == (expected, ())


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("dedup-window: -1", "dedup-window", "a whole number from 0 up"),
        ("dedup-window: 007", "dedup-window", "a whole number"),
        ("dedup-window: 1e3", "dedup-window", "a whole number"),
        ("dedup-window: 1_000", "dedup-window", "a whole number"),
        ("dedup-window: 30s", "dedup-window", "a whole number"),
        ("dedup-window: \u0663", "dedup-window", "a whole number"),
        ("dedup-window:", "dedup-window", "a whole number"),
        ("dedup-window: # none", "dedup-window", "a whole number"),
        ("ack-timeout: 9007199254740992", "ack-timeout", "a whole number"),
        ("ack-timeout: " + "9" * 5_000, "ack-timeout", "a whole number"),
        ("retention-max-bytes: 0", "retention-max-bytes", "from 1 up"),
        ("poll-interval: 0", "poll-interval", "from 1 up"),
        ("deleted-events: maybe", "deleted-events", "acked or restore"),
        ("notify: telepathy", "notify", "inotifywait or poll"),
        ("pythia-channel: ../live.chat", "pythia-channel", "file name of a chat"),
        ("pythia-channel: $(whoami)", "pythia-channel", "file name of a chat"),
        ("pythia-channel: &a live.chat", "pythia-channel", "file name of a chat"),
        ("pythia-channel: *a", "pythia-channel", "file name of a chat"),
        ("pythia-channel: !!str x", "pythia-channel", "file name of a chat"),
        ("pythia-channel: [x]", "pythia-channel", "file name of a chat"),
        ("pythia-channel: {a: x}", "pythia-channel", "file name of a chat"),
        ("pythia-channel: |", "pythia-channel", "file name of a chat"),
        ('pythia-channel: "x', "pythia-channel", "file name of a chat"),
        ("pythia-chanel: x.chat", "pythia-chanel", "unknown key"),
        ("Dedup-window: 5", "Dedup-window", "unknown key"),
        ("\tdedup-window: 5", "", "`key: value`"),
        ("- dedup-window: 5", "", "`key: value`"),
        ("<<: *base", "", "`key: value`"),
        ("dedup-window 5", "", "`key: value`"),
    ],
)
def test_what_is_not_taken_is_warned_of(line: str, key: str, message: str) -> None:
    settings, warnings = intake.parse_team_config(f"# first\n{line}\n".encode())
    assert settings == Config()
    assert [(warning.line, warning.key) for warning in warnings] == [(2, key)]
    assert message in warnings[0].message


@pytest.mark.parametrize(
    "text",
    [
        "---\ndedup-window: 30\n...\n",
        "  dedup-window: 30\n",
        "{dedup-window: 30}\n",
        "{\n  dedup-window:\n    30,\n}\n",
        "? dedup-window\n: 30\n",
    ],
)
def test_whatever_yaml_allows_is_taken(text: str) -> None:
    assert intake.parse_team_config(text.encode()) == (Config(dedup_window=30), ())


@pytest.mark.parametrize("slip", ["nonsense", "'open", "a: [", "*a", "\x00", "  poll-interval: 9"])
def test_a_slip_in_one_line_changes_no_other(slip: str) -> None:
    text = f"dedup-window: '30'\n{slip}\nnotify: poll # for now\nack-timeout:5\n"
    settings, warnings = intake.parse_team_config(text.encode())
    assert settings == Config(dedup_window=30, notify="poll", ack_timeout=5)
    assert [warning.line for warning in warnings] == [2]


def test_the_last_valid_value_holds() -> None:
    settings, warnings = intake.parse_team_config(
        b"ack-timeout: 5\nack-timeout: 6\nack-timeout: x\n"
    )
    assert settings.ack_timeout == 6
    assert [(warning.line, warning.message.split(";")[0]) for warning in warnings] == [
        (2, "stands on line 1 already"),
        (3, "stands on line 1 already"),
        (3, "the value is not a whole number from 0 up"),
    ]


def test_a_long_line_is_one_line() -> None:
    line = b"# " + b"x" * 509 + b"dedup-window: 300\n"
    assert intake.parse_team_config(line) == (Config(), ())


def test_a_file_that_is_too_large_is_one_warning() -> None:
    full = b"dedup-window: 5\n#" + b"x" * (MAX_SIZE - 17)
    assert intake.parse_team_config(full) == (Config(dedup_window=5), ())
    settings, warnings = intake.parse_team_config(full + b"x")
    assert settings == Config()
    assert warnings == (
        ConfigWarning(0, "", "the file is larger than 65536 bytes; the defaults hold"),
    )


def test_bytes_that_are_no_text() -> None:
    assert intake.parse_team_config(b"# \xff\nack-timeout: 5\n") == (Config(ack_timeout=5), ())
    assert [w.key for w in intake.parse_team_config(b"pythia-channel: \xff\n")[1]] == [
        "pythia-channel"
    ]


VALUES = st.sampled_from(["5", "live.chat", "poll", "'5'", "#", "-1", "*a"]) | st.text(max_size=8)
FILES = st.lists(st.builds("{}:{}".format, st.sampled_from(KEYS), VALUES) | st.text(max_size=20))


@given(st.binary() | FILES.map(lambda lines: "\n".join(lines).encode("utf-8", "replace")))
def test_any_file_gives_settings_in_their_ranges(data: bytes) -> None:
    settings, warnings = intake.parse_team_config(data)
    assert settings.dedup_window >= 0
    assert settings.retention_max_bytes > 0
    assert settings.poll_interval > 0
    assert settings.notify in ("inotifywait", "poll")
    assert "/" not in settings.pythia_channel
    assert all(warning.message for warning in warnings)


SPELLINGS = ["{}", "'{}'", '"{}"', "{}  # for now", "'{}' # ' and more"]
WORDS = st.sampled_from(
    ["0", "5", "010", "-1", "live.chat", "poll", "acked", "true", "no", "", "a b"]
)
LINES = st.builds(
    lambda key, spelling, word: f"{key}: {spelling.format(word)}",
    st.sampled_from([*KEYS, "unknown-key"]),
    st.sampled_from(SPELLINGS),
    WORDS,
)


@given(st.lists(LINES | st.sampled_from(["", "# a comment", "   # another"]), max_size=8))
def test_yaml_and_line_by_line_read_plain_lines_alike(lines: list[str]) -> None:
    as_yaml = intake.parse_team_config("\n".join(lines).encode())
    by_line, warnings = intake.parse_team_config("\n".join([*lines, "}"]).encode())
    assert by_line == as_yaml[0]
    *others, last = warnings
    assert tuple(others) == as_yaml[1]
    assert (last.line, last.key) == (len(lines) + 1, "")


def test_a_line_break_of_yaml_alone_is_none_of_a_file_that_is_no_yaml() -> None:
    """Found by torture: two entries in one line were a traceback of every command."""
    data = "pythia-interval: 7\n]\ndedup-window: 5\u2028poll-interval: 9\n".encode()
    settings, warnings = intake.parse_team_config(data)
    assert (settings.pythia_interval, settings.dedup_window) == (7, 0)
    assert [warning.line for warning in warnings] == [2, 3]
