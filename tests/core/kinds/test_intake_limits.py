"""What strangers leave may be of any size and shape: it fits an entry, or is kept beside one."""

import errno
import os
from base64 import b64encode
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import BEGIN, Story, folder
from strategies import FEWER

from tripod.ledger.entry import format_canonical
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME
from tripod.projections.chat import format as chat_format
from tripod.projections.disk import Disk, TooBigError, UnreadableError
from tripod.projections.engine import file_differences
from tripod.projections.pieces import BODY_ROOM, piece_fits, pieces_of_names
from tripod.projections.projection import File
from tripod.team import adoption


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=255), max_size=40))
def test_names_are_cut_into_bodies_in_order(names: list[str]) -> None:
    names = [name * 40 for name in names]
    parts = list(pieces_of_names(names))
    assert [name for part in parts for name in part] == names
    assert all(parts)
    assert all(piece_fits(part, BODY_ROOM + 1) or len(part) == 1 for part in parts)


def check(story: Story) -> list[str]:
    """Take in; every body is what its kind says, and all comes back. Gives the kinds."""
    with story.team() as team:
        adoption.sync(team)
        found = list(team.store.read())
        for entry in found:
            model_of(BY_NAME[entry.kind]).model_validate(entry.data)
        assert list(file_differences(team.source, team.disk)) == []
    return [entry.kind for entry in found]


ODD = st.binary(max_size=60) | st.sampled_from(
    [b'"' * 16_100, b"\x01" * 5_400, b"x" * 40_000, b"\\" * 16_380, "ü".encode() * 9_000, b"\0" * 9]
)


@FEWER
@given(ODD, ODD)
def test_any_bytes_in_any_place_are_kept(one: bytes, two: bytes) -> None:
    with folder() as root:
        story = Story(root)
        put = story.original.put
        put("events/1-a-b-1.event", b"source: " + one + b"\ntype: t\npriority: low\n" + two)
        put("events/2-a-b-1.event", b"source: a\ntype: t\npriority: low\npayload: |\n  " + two)
        put("events/processed/3-a-b-1.event", one)
        line = b64encode(one)
        put(
            "chat/one.chat",
            b"=== nbs-chat ===\nlast-writer: " + one + b"\n---\n" + line + b"\n" + two,
        )
        put("chat/two.chat", one)
        put(
            "scribe/log.md",
            one + b"\n### D-1 " + two + b"\n- **Rationale:** " + one + b"\n### D-" + two,
        )
        put("workers/w.md", one)
        put("workers/w.log", two)
        put("events/config.yaml", two)
        check(story)


def test_a_configuration_of_nonsense_does_not_stop_the_bus(story: Story) -> None:
    story.original.put("events/config.yaml", (b"x" * 300 + b": 1\n") * 200)
    assert "config.changed" in check(story)
    with story.team() as team:
        row = team.store.db.execute("SELECT problems FROM inputs").fetchone()
        assert "more lines were not taken" in row[0]
        assert len(format_canonical(row[0])) < BODY_ROOM


def test_a_decision_too_long_for_an_entry_is_cut_there_and_whole_in_the_file(story: Story) -> None:
    text = (
        b"# Log\n### D-5 Long\n- **Participants:** ann\n- **Rationale:** " + b"r " * 50_000 + b"\n"
    )
    story.original.put("scribe/log.md", text)
    assert "decision.logged" in check(story)
    with story.team() as team:
        body = next(e.data for e in team.store.read() if e.kind == "decision.logged")
    assert body["rationale"].endswith("…")
    assert (body["participants"], body["title"]) == ("ann", "Long")


@pytest.mark.parametrize(
    "path",
    ["chat/live.chat", "scribe/log.md", "workers/w.md", "events/1-a-b-1.event", "supervisor.md"],
)
def test_a_file_that_the_system_refuses_is_told_and_stops_nothing(story: Story, path: str) -> None:
    story.run([("create", "live"), ("say", "live", "ann", "x"), ("decide", "D", "r", ())])
    full = str(story.original.put(path, b"source: a\ntype: b\npriority: low\n"))
    real = os.open

    def refuse(name: str, *arguments: Any, **options: Any) -> int:
        if name == full:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return real(name, *arguments, **options)

    with mock.patch.object(os, "open", refuse), story.team() as team:
        found = adoption.sync(team)
        assert [text for text in found.warnings if text.startswith(f"{path}: unreadable")]
        assert team.store.head().size > 5


def test_reading_is_bounded(story: Story) -> None:
    disk = Disk(str(story.root))
    story.original.put("notes", b"12345")
    assert disk.read("notes", 5) == b"12345"
    with pytest.raises(TooBigError, match="holds 5 bytes; at most 4 are read"):
        disk.read("notes", 4)
    assert disk.read("nothing", 5) is None
    assert disk.read("notes/deeper", 5) is None
    assert disk.read("events", 5) is None
    with pytest.raises(ValueError, match="leaves the team directory"):
        disk.read("../x", 5)
    assert issubclass(TooBigError, UnreadableError)


def test_a_refused_write_leaves_the_place_and_no_litter(story: Story) -> None:
    disk = Disk(str(story.root))
    disk.write("notes", File(b"old", 0o600))
    assert disk.write("notes", File(b"new", 0o644), unless=lambda: True) is None
    assert disk.read("notes", 9) == b"old"
    with pytest.raises(IsADirectoryError):
        disk.write("events", File(b"x", 0o644))
    assert [path.name for path in story.root.iterdir() if "tripod-new" in path.name] == []


def test_lines_of_one_chat_keep_their_order_whatever_their_clocks_say(story: Story) -> None:
    story.original.create("live")
    times = [BEGIN + 50, BEGIN, 0, 2**53 - 1, BEGIN + 1]
    body = b"".join(
        chat_format.format_line("ann", time, f"m{number}") + b"\n"
        for number, time in enumerate(times)
    )
    header = chat_format.ChatHeader("ann", "x", (("ann", 5),))
    story.original.put("chat/live.chat", chat_format.format_header(header, len(body)) + body)
    story.original.publish("x", "y")
    check(story)
    with story.team() as team:
        sent = [e.data["index"] for e in team.store.read() if e.kind == "chat.sent"]
    assert sent == [0, 1, 2, 3, 4]
