"""A past that others left is taken in whole, changes no byte, and comes back from the ledger."""

import os
import socket
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from adoption import check_adoption, check_going_on
from nbs_team import ARCHIVE, unpack
from story import BEGIN, Clock, Original, folder

from tripod.projections.chat import format as chat_format

Maker = Callable[[Original], None]


def test_a_real_team_is_taken_in_and_given_back(tmp_path: Path) -> None:
    unpack(ARCHIVE, tmp_path)
    adoption = check_adoption(tmp_path)
    assert adoption.left_alone == []
    assert adoption.warnings == []
    assert adoption.kinds["decision.logged"] > 30
    assert (tmp_path / ".nbs/.gitignore").read_text() == "*\n"
    check_going_on(tmp_path)


# Teams that are made up -----------------------------------------------------------------------


def archives(team: Original) -> None:
    """Two rotations by the original, the writer's clock five hours behind."""
    team.zone = "-0500"
    team.create("live")
    body = b""
    for number in range(1_999):
        body += chat_format.format_line("ann", BEGIN + number, f"message {number}") + b"\n"
    header = chat_format.ChatHeader("ann", team._time(), (("ann", 1_999),))
    team.put("chat/live.chat", chat_format.format_header(header, len(body)) + body, 0o600)
    for number in range(1_005):
        team.clock.move()
        team.say("live", "bob", f"on {number}")
    assert len(list((team.root / "chat").glob("*-archive.chat"))) == 2


def legacy_messages(team: Original) -> None:
    """The three forms of a message, and lines that are none."""
    lines = [
        b64encode(text)
        for text in (
            *(b"ann: oldest", b"ann|1600000000: today", b"ann|1600000000|SIG: signed"),
            *(b"ann|-5: bad time", b"ann|99999999999999999999: far", b"no colon", b": no handle"),
            *(b"x" * 64 + b": long handle", b"a\nb: broken handle", b"nul: a\0b", b"bad: \xff\xfe"),
            *(b"a(1), b|5: handle like a header", "söl|7: grüße".encode()),
        )
    ]
    odd = [b"", b"not base64!", b"YWJj", b"YWI", b"=", b"   ", b"YW5uOiBoaQ==\r", b"\xff\x00"]
    body = b"".join(line + b"\n" for line in [*lines, *odd, lines[0]])
    header = chat_format.ChatHeader("ann", "2020-09-13 12:26:40", (("ann", 3), ("söl", 1)))
    team.put("chat/live.chat", chat_format.format_header(header, len(body)) + body, 0o640)


def torn_lines(team: Original) -> None:
    """The last line of each file was cut off."""
    team.create("live")
    team.say("live", "ann", "whole")
    team.append("chat/live.chat", b"YW5uOiB0b3")
    team.create("side")
    team.append("chat/side.chat", chat_format.format_line("ann", BEGIN, "no break"))
    team.log("First")
    team.append("scribe/log.md", b"\n---\n\n### D-1600000001 torn\n- **Chat ref:** li")


def odd_headers(team: Original) -> None:
    """Headers that ours would differ from, and files without one."""
    line = chat_format.format_line("ann", BEGIN, "hi") + b"\n"
    head = b"=== nbs-chat ===\n"
    crowd = ", ".join(f"handle{n}({n})" for n in range(9_000)).encode()
    bodies = {
        "people": head + b"last-writer: x\nlast-write: never\nfile-length: 1\n"
        b"participants: a(b), (3), c(1), c(2)\n---\n" + line,
        "fields": head + b"participants: ann(1)\nodd: 1\nlast-writer: ann\n---\n" + line,
        "short": head + b"---\n" + line,
        "latin": head + b"last-writer: s\xf6l\n---\n" + line,
        "crowd": head + b"last-writer: a\nparticipants: " + crowd + b"\n---\n" + line,
        "crlf": (head + b"last-writer: a\n---\n" + line).replace(b"\n", b"\r\n"),
        "cut": head + b"last-writer: a\n",
        "empty": b"",
        "text": b"Dear diary\n",
        "lone-20200913-122640-archive": head + b"last-writer: a\n---\n" + line,
    }  # fmt: skip
    for name, data in bodies.items():
        team.put(f"chat/{name}.chat", data, 0o600)
    team.create("base")
    team.put("chat/base-20200913-122640-archive.chat", b"no header\n", 0o600)


def odd_logs(team: Original) -> None:
    """Prose, wrapped fields, malformed headings, duplicate and future ids, both layouts."""
    team.put(
        "scribe/log.md",
        b"# Decision Log\n\nProject: p\nCreated: 2020-09-13T12:26:40Z\nScribe: s\n\n---\n\n"
        b"### D-1600000000 With a blank line\n\n- **Chat ref:** live.chat:~L7, live.chat:~L8\n"
        b"- **Participants:** ann\n- **Rationale:** wraps\n  over lines\n- **Status:** decided\n\n"
        b"Some prose between entries.\n\n---\n\n### D-1600000000 Same id again\n- **Status:** odd\n"
        b"### D-99999999999999 In the future\r\n- **Participants:** ann\r\n"
        b"### D- no digits\n\n### D-12x bad\n```\n### D-1600000005 in a fence\n```\n"
        b"### D-1600000006 [SUPERSEDES D-1] title \xff\n- **Rationale:** " + b"r" * 70_000 + b"\n"
        b"\n---\n\n### D-1600000007 many refs\n- **Chat ref:** " + b"a:~L1, " * 9_000 + b"\n\x00\n",
        0o600,
    )


def split_log(team: Original) -> None:
    """The original split the log at 500."""
    for number in range(760):
        team.clock.move(0.3)
        team.log(f"Decision {number}")
    assert len(list((team.root / "scribe").glob("*-archive.md"))) == 2


def lone_log_archive(team: Original) -> None:
    """Archives whose live log is gone, and logs under other names."""
    team.put("scribe/log-20200913-122640-archive.md", b"# Decision Log\n\n### D-1 x\n")
    team.put("scribe/live-log.md", b"# Decision Log\n\n### D-2 y\n")


def odd_events(team: Original) -> None:
    """Names and contents that the original stumbles over."""
    text = b"source: ann\ntype: note\npriority: high\n"
    team.publish("ann", "note", payload="plain\n\n  lines\n")
    contents = {
        "unquoted": b"source: [MEDIC-WARNING]\ntype: *t\npriority: yes\ntimestamp: 12:30\n"
        b"dedup-key: yes\npayload: |\n    lead\n  x\n",
        "quoted": b"source: \"a\\u00e4\\nb\"\ntype: 'it''s'\npriority: low\npayload: \"x\\ty\"\n",
        "extra": b"# c\nfoo: bar\n" + text + b"\n\npayload: >\n  a\n  b",
        "crlf": text.replace(b"\n", b"\r\n"),
        "long": b"source: " + b"s" * 100_000 + b"\ntype: t\npriority: low\n",
        "quotes": text + b"payload: |\n  " + b'"' * 16_200 + b"\n",
        "big": text + b"payload: |\n  " + b"x" * 900_000 + b"\n",
        "huge": text + b"x" * 2_000_000,
        "latin": text + b"payload: \xe4\n",
        "twice": text + b"source: bob\n",
        "empty": b"",
        "nul": b"\0" * 500,
    }  # fmt: skip
    for number, (name, data) in enumerate(contents.items()):
        folder_ = "events/processed" if number % 2 else "events"
        team.put(f"{folder_}/160000000000000{number:02}-{name}-t-1.event", data, 0o600)
    poison = ["0-a-b-1", "x", "-", "999999999999999999999-a-b-1", "1600000000000000", "ä-ö", " "]
    poison += ["a\nb", "q'\"`", "n" * 249]
    for name in poison:
        team.put(f"events/{name}.event", text)
    team.put("events/.tmp-1600000000000000-1.event", text[:10])
    team.put("events/processed/.tmp-1-1.event", text)
    team.put("events/same-1.event", text)
    team.put("events/processed/same-1.event", text)
    team.put("events/same-2.event", text)
    team.put("events/processed/same-2.event", text + b"payload: other\n", 0o604)
    team.put("events/notes.txt", b"x")


def odd_places(team: Original) -> None:
    """Directories, links, pipes and sockets where files are expected; names that are no text."""
    root = team.root
    team.create("live")
    team.say("live", "ann", "hi")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.event").write_text("source: a\ntype: b\npriority: low\n")
    (outside / "secret.chat").write_bytes((root / "chat/live.chat").read_bytes())
    for place, suffix in (("events", ".event"), ("chat", ".chat"), ("scribe", ".md")):
        (root / place).mkdir(exist_ok=True)
        (root / place / f"folder{suffix}").mkdir()
        (root / place / f"folder{suffix}" / "inner.txt").write_text("x")
        (root / place / f"link{suffix}").symlink_to(outside / "secret.event")
        (root / place / f"dangling{suffix}").symlink_to("nowhere")
        os.mkfifo(root / place / f"pipe{suffix}")
        with socket.socket(socket.AF_UNIX) as plug:
            plug.bind(os.path.relpath(root / place / f"socket{suffix}"))
        (root / place / os.fsdecode(b"caf\xe9" + suffix.encode())).write_text("x")
    (root / "events/processed").symlink_to(outside)
    (root / "workers").symlink_to(outside)
    (root / "other/deep").mkdir(parents=True)
    (root / "other/deep/file").write_text("x")
    (root / "notes.md").write_text("x")
    (root / "events/config.yaml").mkdir()


def workers(team: Original) -> None:
    """Task files, logs, inputs, read positions."""
    team.put("workers/parser-1.md", b"# Task\n\nState: running\n")
    team.put("workers/big.md", b"x" * 40_000, 0o600)
    team.put("workers/huge.md", b"x" * 2_000_000)
    team.put("workers/odd.md", b"\xff\x00\r\n")
    team.put("workers/parser-1.log", b"log\n" * 9_000)
    team.put("workers/other.txt", b"x")
    team.put("supervisor.md", b"Goal\n")
    team.put("policy.toml", b"x = 1\n")
    team.put(
        "events/config.yaml", b"dedup-window: 3\nnonsense\npythia-interval: x\n" + b"x\n" * 30_000
    )
    team.create("live")
    team.put("chat/live.chat.cursors", b"# c\nann=3\n", 0o600)
    team.put("chat/live.chat.lock", b"", 0o600)
    team.put("chat/live.chat.tmp", b"", 0o600)
    old = team.put("workers/ancient.md", b"x")
    os.utime(old, ns=(-5_000_000_000, -5_000_000_000))
    late = team.put("workers/late.md", b"x")
    os.utime(late, ns=(2**62, 2**62))


def huge_config(team: Original) -> None:
    """A configuration that is larger than is read."""
    team.put("events/config.yaml", b"#" * 2_000_000)


def many_strangers(team: Original) -> None:
    """More files that are none of ours than an entry can name."""
    for number in range(1_000):
        team.put(f"strangers-{number:04}-{'x' * 150}", b"")


MADE_UP: list[Maker] = [
    archives, legacy_messages, torn_lines, odd_headers, odd_logs, split_log, lone_log_archive,
    odd_events, odd_places, workers, huge_config, many_strangers,
]  # fmt: skip


@pytest.mark.drawn
@pytest.mark.parametrize("make", MADE_UP, ids=lambda make: make.__name__)
def test_a_made_up_past_is_taken_in_and_given_back(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder() as project:
        monkeypatch.chdir(project)
        (project / ".nbs").mkdir()
        make(Original(project / ".nbs", Clock()))
        check_adoption(project)
        if make is not odd_places:
            check_going_on(project)
