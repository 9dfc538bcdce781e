"""Acts on the chats: messages, their events, the file that the original tools read."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import BEGIN, Story, folder
from strategies import FEWER, texts

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.projections.bus.format import parse_event
from tripod.projections.chat import format as chat_format
from tripod.projections.engine import file_differences
from tripod.team.act import MAX_PAYLOAD


@pytest.fixture
def story() -> Iterator[Story]:
    with folder() as root:
        story = Story(root)
        story.run([("create", "live")])
        story.clock.ns = BEGIN * 1_000_000_000
        yield story


def events(story: Story) -> list[tuple[str, str, str, str]]:
    """Source, type, priority and payload of each pending event."""
    found = []
    with story.team() as team:
        for event in bus.check(team):
            body = parse_event(bus.read(team, event.name))
            assert body is not None
            found.append((body.source, body.type, body.priority, body.payload))
    return found


def test_a_channel_is_created_once(story: Story) -> None:
    path = story.root / "chat/side.chat"
    with story.team() as team:
        assert chat_send.create(team, "side.chat") == str(path)
        with pytest.raises(RefusedError, match="exists already"):
            chat_send.create(team, "side")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == (
        b"=== nbs-chat ===\nlast-writer: system\nlast-write: 2020-09-13T12:26:40+0000\n"
        b"file-length: 110\nparticipants: \n---\n"
    )
    assert len(path.read_bytes()) == 110


@pytest.mark.parametrize("name", ["", ".chat", "a/b", "..", "a b", "x" * 101, "a-archive", "ä"])
def test_a_channel_has_a_safe_name(story: Story, name: str) -> None:
    with story.team() as team, pytest.raises(BadArgumentError, match=r"^channel"):
        chat_send.create(team, name)


@pytest.mark.parametrize("path", ["chat/odd.chat"])
def test_what_stands_in_the_place_of_a_channel_is_not_written_over(story: Story, path: str) -> None:
    (story.root / path).mkdir()
    with story.team() as team, pytest.raises(RefusedError, match="move it away"):
        chat_send.create(team, "odd")


def test_a_message_and_its_events_are_one(story: Story) -> None:
    with story.team() as team:
        sent = chat_send.send(team, "live", "ann", "Hi @bob, @bob and @eve_2!", human=True)
    assert sent == chat_send.ChatMessage(0, sent.seq, "ann", BEGIN, "Hi @bob, @bob and @eve_2!")
    text = "Hi @bob, @bob and @eve_2!"
    assert sorted(events(story)) == sorted(
        [
            ("nbs-chat", "chat-message", "normal", f"ann: {text}"),
            ("nbs-chat-terminal", "human-input", "high", f"ann: {text}"),
            ("nbs-chat", "chat-mention", "high", f"@bob from ann: {text}"),
            ("nbs-chat", "chat-interrupt", "critical", f"@eve_2 from ann: {text}"),
        ]
    )
    line = (story.root / "chat/live.chat").read_bytes().splitlines()[-1]
    assert chat_format.parse_line(line) == chat_format.ChatLine("ann", BEGIN, text)


def test_an_empty_text_is_sent_without_events(story: Story) -> None:
    with story.team() as team:
        assert chat_send.send(team, "live", "ann", "").text == ""
        assert [m.text for m in chat_read.messages(team, "live")] == [""]
    assert events(story) == []


def test_a_text_of_a_mebibyte_is_sent_whole_and_announced_in_part(story: Story) -> None:
    text = "ü" * (chat_format.MAX_TEXT // 2)
    with story.team() as team:
        chat_send.send(team, "live", "ann", text)
        assert chat_read.messages(team, "live")[0].text == text
        assert list(file_differences(team.source, team.disk)) == []
        chat_send.send(team, "live", "ann", "next")
        assert team.warnings == []
    payloads = {payload for *_, payload in events(story)}
    assert f"ann: {text}"[:1_000] in {payload[:1_000] for payload in payloads}
    assert max(len(payload.encode()) for payload in payloads) <= MAX_PAYLOAD


def test_a_missing_channel_is_named_with_those_that_are(story: Story) -> None:
    with story.team() as team:
        for act in (
            lambda: chat_send.send(team, "nope", "ann", "x"),
            lambda: chat_read.messages(team, "nope"),
            lambda: chat_read.participants(team, "nope"),
            lambda: list(chat_read.search(team, "nope", "x")),
        ):
            with pytest.raises(NotFoundError, match="there are: live"):
                act()


def test_searching_knows_upper_and_lower_case_of_ascii_alone(story: Story) -> None:
    story.run([("say", "live", "ann", text) for text in ("Alpha", "ALPHABET", "Äpfel", "%_")])
    with story.team() as team:
        assert [m.text for m in chat_read.search(team, "live", "alpha")] == ["Alpha", "ALPHABET"]
        assert list(chat_read.search(team, "live", "äPFEL")) == []
        assert [m.text for m in chat_read.search(team, "live", "%")] == ["%_"]
        assert list(chat_read.search(team, "live", "alpha", handle="bob")) == []
        assert len(list(chat_read.search(team, "live", ""))) == 4
        assert list(chat_read.search(team, "live", "\udcff")) == []


def test_above_two_thousand_lines_the_oldest_thousand_are_split_off(story: Story) -> None:
    lines = [chat_format.format_line("bob", BEGIN + n, f"m{n}") for n in range(1_999)]
    body = b"".join(line + b"\n" for line in lines)
    header = chat_format.ChatHeader("bob", "2020-09-13T13:00:00+0000", (("bob", 1_999),))
    story.original.put("chat/live.chat", chat_format.format_header(header, len(body)) + body, 0o600)
    story.clock.move(2_000)
    with story.team() as team:
        assert chat_send.send(team, "live", "ann", "2000").number == 1_999
        assert len(chat_read.messages(team, "live")) == 2_000
        assert chat_send.send(team, "live", "ann", "2001").number == 2_000
        live = chat_read.messages(team, "live")
        assert [m.number for m in live] == list(range(1_000, 2_001))
        # The document counts the messages of the file anew at a split.
        assert chat_read.participants(team, "live") == [("bob", 999), ("ann", 2)]
        found = list(chat_read.search(team, "live", "m77", archives=True))
        assert [m.number for m in found][:2] == [77, 770]
        assert list(chat_read.search(team, "live", "m77")) == []
        assert chat_send.send(team, "live", "ann", "on").number == 2_001
    archive = story.root / "chat/live-20200913-130000-archive.chat"
    split = b"".join(line + b"\n" for line in lines[:1_000])
    assert (
        archive.read_bytes()
        == chat_format.chat_archive_header("2020-09-13T13:00:00+0000", len(split)) + split
    )
    assert archive.stat().st_mode & 0o777 == 0o600
    data = (story.root / "chat/live.chat").read_bytes()
    assert len(data.splitlines()) == 6 + 1_002
    assert b"file-length: %d\n" % len(data) in data
    assert b"participants: bob(1999), ann(3)\n" in data


@FEWER
@given(st.lists(texts(), min_size=1, max_size=5))
def test_any_text_reads_back_from_the_file_and_from_us(said: list[str]) -> None:
    with folder() as root:
        story = Story(root)
        story.step(("create", "live"))
        with story.team() as team:
            for text in said:
                chat_send.send(team, "live", "ann", text)
            assert [m.text for m in chat_read.messages(team, "live")] == said
        lines = (story.root / "chat/live.chat").read_bytes().splitlines()[6:]
        read = [chat_format.parse_line(line) for line in lines]
        assert [message.text for message in read if message is not None] == said


@pytest.mark.parametrize("name", ["odd", "live-20260212-140000-archive"])
def test_what_is_no_chat_file_is_kept_once_in_each_state(story: Story, name: str) -> None:
    kept = []
    for data in (b"first\n", b"first\n", b"second\n", b"first\n"):
        story.clock.move()
        story.original.put(f"chat/{name}.chat", data)
        story.run([("sync",)])
        with story.team() as team:
            kept.append(sum(entry.kind == "file.seen" for entry in team.store.read()))
    assert kept == [1, 1, 2, 3]
