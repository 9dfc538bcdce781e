"""What the original chat tool does wrong (spec nbs-compat C1 to C3, C10), and this one does not.

Each test is named by what was seen there.
"""

import base64
import json
import threading
import time
from collections.abc import Iterator
from unittest import mock

import pytest
from doors.chat.dropped_in import FILE, Chat, chat
from story import BEGIN

from tripod.bus import events
from tripod.bus.reader import QueueWatch
from tripod.chat import reader as chat_read
from tripod.chat import writer as acts
from tripod.errors import RefusedError
from tripod.projections.chat import format as format_
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run


@pytest.fixture
def talk() -> Iterator[Chat]:
    with chat() as made:
        yield made


def told(talk: Chat) -> list[tuple[str, str, str | None, str]]:
    """Type, priority, addressee and text of each event that the ledger holds."""
    with talk.team() as team:
        return [
            (e.data["type"], e.data["priority"], e.data.get("to"), e.data["payload"]["text"])
            for e in team.store.read()
            if e.kind == "bus.published"
        ]


# Unread messages are lost ----------------------------------------------------------------------


def test_last_swallows_what_it_did_not_show(talk: Chat) -> None:
    talk.say("ann", *"abcde")
    assert talk.texts("read", FILE, "--unread=bob", "--last=2") == ["d", "e"]
    assert talk.texts("read", FILE, "--unread=bob") == ["a", "b", "c"]
    assert talk.texts("read", FILE, "--unread=bob") == []


def test_after_swallows_what_it_did_not_show(talk: Chat) -> None:
    talk.say("ann", *"abc")
    assert talk.texts("read", FILE, "--unread=bob", f"--after={BEGIN + 60}") == ["b", "c"]
    talk.say("ann", "d")
    assert talk.texts("read", FILE, "--unread=bob") == ["a", "d"]


def test_sending_swallows_what_others_said_before(talk: Chat) -> None:
    talk.say("ann", "a", "b")
    talk.say("bob", "c")
    assert "bob" not in talk.cursors()
    assert talk.texts("read", FILE, "--unread=bob") == ["a", "b"]
    talk.say("bob", "d")
    assert talk.cursors()["bob"] == 3


def test_an_archive_swallows_what_was_unread_in_it(talk: Chat) -> None:
    talk.say("ann", *"abcdef")
    assert talk.texts("read", FILE, "--unread=bob", "--offset=5") == ["a"]
    assert talk.cursors()["bob"] == 0
    talk.lines("archive", FILE, "--keep=2")
    assert talk.cursors() == {"ann": 1}
    assert talk.texts("read", FILE, "--unread=bob") == ["b", "c", "d", "e", "f"]
    assert talk.cursors() == {"ann": 1, "bob": 1}


def test_a_rotation_swallows_what_was_unread_in_it(talk: Chat) -> None:
    with mock.patch.multiple(acts, ROTATE_ABOVE=6, ROTATE_COUNT=3):
        talk.say("ann", *"abc")
        assert talk.texts("read", FILE, "--unread=bob", "--offset=2") == ["a"]
        talk.say("ann", *"defgh")
    assert talk.texts("read", FILE) == list("defgh")
    assert talk.texts("read", FILE, "--since=bob") == list("defgh")
    assert talk.texts("read", FILE, "--unread=bob") == list("bcdefgh")


def test_a_rotation_hides_what_came_since_ones_own_message(talk: Chat) -> None:
    talk.say("bob", "mine")
    talk.say("ann", *"abcd")
    talk.lines("archive", FILE, "--keep=1")
    assert talk.texts("read", FILE, "--since=bob") == ["a", "b", "c", "d"]


def test_the_originals_own_rotation_clamps_a_reader_onto_its_first_message(talk: Chat) -> None:
    talk.say("ann", *"abcd")
    assert talk.texts("read", FILE, "--unread=bob", "--offset=3") == ["a"]
    # Two lines go; the original takes two off each position, and leaves none below 0.
    file = format_.split_chat_file(talk.file.read_bytes())
    assert file is not None
    old = b"".join(line + b"\n" for line in file.lines[:2])
    stem = format_.chat_archive_name("live", talk.clock.seconds)
    head = format_.chat_archive_header(format_.format_time(talk.clock.seconds), len(old))
    talk.original.put(f"chat/{stem}.chat", head + old, 0o600)
    rest = b"".join(line + b"\n" for line in file.lines[2:])
    assert file.header is not None
    talk.original.put(FILE[5:], format_.format_header(file.header, len(rest)) + rest, 0o600)
    talk.original.put(f"{FILE[5:]}.cursors", b"# c\nann=1\nbob=0\n", 0o600)
    assert talk.texts("read", FILE, "--unread=bob") == ["b", "c", "d"]


def test_a_reader_that_cannot_be_written_to_has_read_it_all_the_same(talk: Chat) -> None:
    """What was printed into a closed pipe was not shown."""
    talk.say("ann", "a")
    with mock.patch("tripod.cli.commands.emit", side_effect=SystemExit(141)):
        assert talk("read", FILE, "--unread=bob").code == 141
    assert talk.texts("read", FILE, "--unread=bob") == ["a"]


def test_what_the_original_read_is_read_for_us_too(talk: Chat) -> None:
    talk.say("ann", *"abc")
    talk.original.put(f"{FILE[5:]}.cursors", b"# c\nann=2\nbob=1\n", 0o600)
    assert talk.texts("read", FILE, "--unread=bob") == ["c"]
    with talk.team() as team:
        seen = [e for e in team.store.read() if e.kind == "chat.cursors-seen"]
        assert [e.data["moved"] for e in seen] == [[{"handle": "bob", "upto": 2}]]


def test_a_deletion_leaves_readers_behind_the_end(talk: Chat) -> None:
    talk.say("ann", *"abcd")
    assert talk.texts("read", FILE, "--unread=bob") == list("abcd")
    assert talk("delete", FILE, f"--after={BEGIN + 120}").code == 0
    assert talk.cursors() == {"ann": 1, "bob": 1}
    talk.say("ann", "e")
    assert talk.texts("read", FILE, "--unread=bob") == ["e"]


def test_times_out_of_order_hide_what_is_in_range(talk: Chat) -> None:
    lines = [format_.format_line("bob", BEGIN + n, f"m{n}") for n in (10, 5, 20, 0, 15)]
    body = b"".join(line + b"\n" for line in lines)
    head = format_.ChatHeader("bob", format_.format_time(BEGIN), (("bob", 5),))
    talk.original.put(FILE[5:], format_.format_header(head, len(body)) + body, 0o600)
    assert talk.texts("read", FILE, f"--after={BEGIN + 10}") == ["m10", "m20", "m15"]
    assert talk.texts("read", FILE, f"--before={BEGIN + 10}") == ["m10", "m5", "m0"]
    assert talk.texts("read", FILE, "--unread=eve", f"--after={BEGIN + 11}") == ["m20", "m15"]
    assert talk.texts("read", FILE, "--unread=eve") == ["m10", "m5", "m0"]


def test_above_256_readers_the_positions_of_some_are_lost(talk: Chat) -> None:
    talk.say("ann", "a")
    readers = [f"reader-{number}" for number in range(300)]
    for reader in readers:
        assert talk.texts("read", FILE, f"--unread={reader}") == ["a"]
    assert talk.cursors() == dict.fromkeys(("ann", *readers), 0)
    talk.say("ann", "b")
    assert talk.texts("read", FILE, "--unread=reader-299") == ["b"]


@pytest.mark.parametrize("position", ["99", "2147483646", "-1", "often", ""])
def test_a_position_that_is_none_hides_what_comes(talk: Chat, position: str) -> None:
    talk.say("ann", "a")
    talk.original.put(f"{FILE[5:]}.cursors", f"# c\nbob={position}\n".encode(), 0o600)
    shown = talk.texts("read", FILE, "--unread=bob")
    assert shown == ([] if position.isdecimal() else ["a"])
    talk.say("ann", "b")
    assert talk.texts("read", FILE, "--unread=bob") == ["b"]


# Limits and aborts -----------------------------------------------------------------------------


def test_a_wrong_handle_aborts_and_a_missing_chat_leaves_a_lock(talk: Chat) -> None:
    assert talk("send", FILE, "", "x").code == 4
    assert talk("send", ".nbs/chat/gone.chat", "ann", "x").code == 2
    assert sorted(path.name for path in talk.file.parent.iterdir()) == [
        "live.chat", "live.chat.lock"
    ]  # fmt: skip


def test_the_fifty_third_participant_aborts_the_sender(talk: Chat) -> None:
    people = [f"agent-with-a-long-handle-of-the-team-{n:03}" for n in range(130)]
    for person in people:
        talk.say(person, "here")
    assert [line.split()[0] for line in talk.lines("participants", FILE)] == people


def test_above_ten_thousand_lines_the_newest_vanish(talk: Chat) -> None:
    lines = [format_.format_line("bob", BEGIN + n, f"m{n}") for n in range(10_050)]
    body = b"".join(line + b"\n" for line in lines)
    head = format_.ChatHeader("bob", format_.format_time(BEGIN + 10_049), (("bob", 10_050),))
    talk.original.put(FILE[5:], format_.format_header(head, len(body)) + body, 0o600)
    assert talk.lines("count", FILE) == ["10050"]
    assert talk.texts("read", FILE)[-1] == "m10049"
    talk.say("ann", "on")
    assert talk.texts("read", FILE, "--last=1") == ["on"]
    assert len(talk.texts("read", FILE, "--unread=eve")) == 10_051


def test_a_long_line_is_destroyed_by_the_next_sender(talk: Chat) -> None:
    text = "ü" * 524_288
    assert talk("send", FILE, "ann", "--file=-", given=text.encode()).code == 0
    talk.original.say("live", "bob", "next")
    talk.say("eve", "and on")
    assert talk.texts("read", FILE) == [text, "next", "and on"]
    for line in talk.file.read_bytes().splitlines()[6:]:
        assert len(line) <= 1_048_574, "the original reads more as two lines"
        assert format_.parse_line(line) is not None
    with talk.team() as team:
        assert list(file_differences(team.source, team.disk)) == []


def test_a_nul_or_a_broken_line_aborts_or_shifts_the_reader(talk: Chat) -> None:
    talk.say("ann", "a")
    bad = [base64.b64encode(b"eve|1: a\0b"), b"no base64!", base64.b64encode(b"no colon"), b"YQ="]
    with talk.file.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in bad))
    talk.say("bob", "b")
    assert talk.texts("read", FILE) == ["a", "b"]
    assert talk.lines("count", FILE) == ["2"]
    assert talk.lines("search", FILE, "b")[0].startswith("[1] ")
    assert talk("cursor-set", FILE, "eve", "0").code == 0
    assert talk.texts("read", FILE, "--unread=eve") == ["b"]


def test_two_creators_both_win(talk: Chat) -> None:
    codes: list[int] = []

    def make() -> None:
        with Team(str(talk.root)) as team:
            try:
                acts.create(team, "side")
            except RefusedError:
                codes.append(1)
            else:
                codes.append(0)

    racers = [threading.Thread(target=make) for _ in range(6)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(codes) == [0, 1, 1, 1, 1, 1]


# Integrity -------------------------------------------------------------------------------------


def test_nothing_checks_the_file_when_it_is_read(talk: Chat) -> None:
    talk.say("ann", "we agreed", "and shook hands")
    data = talk.file.read_bytes()
    forged = format_.format_line("ann", BEGIN, "we denied")
    talk.file.write_bytes(data.replace(data.splitlines()[6], forged))
    done = talk("read", FILE)
    assert "we agreed" in done.out.decode()
    assert "live.chat: edited outside the ledger" in done.err
    with collect(str(talk.root)) as evidence:
        outcomes = run(evidence).outcomes
        assert [o.check for o in outcomes if o.findings] == ["drift"]
    with talk.team() as team:
        assert recover.rebuild(team).displaced == 1
    assert talk.file.read_bytes() == data


def test_a_repair_blanks_good_messages_beside_a_sender(talk: Chat) -> None:
    """A repair is a rebuild: under the same locks as sending, and nothing that is said is lost."""
    talk.say("ann", "a")
    talk.file.write_bytes(talk.file.read_bytes()[:-9])
    talk.say("bob", "b")
    assert talk.texts("read", FILE) == ["a", "b"]
    with talk.team() as team:
        assert list(file_differences(team.source, team.disk)) == []
        kept = [e for e in team.store.read() if e.kind == "file.displaced"]
        assert [e.data["path"] for e in kept] == ["chat/live.chat"]


def test_a_deletion_leaves_no_trace_of_who_did_it(talk: Chat) -> None:
    talk.say("ann", "a", "b")
    with mock.patch.dict("os.environ", {"NBS_HANDLE": "cleaner"}):
        assert talk("delete", FILE, "--after=1d").code == 0
    with talk.team() as team:
        (gone,) = (e for e in team.store.read() if e.kind == "chat.deleted")
        assert (gone.actor, gone.data["count"], gone.data["first"]) == ("cleaner", 2, 0)
        assert gone.data["removed"] == [{"count": 2, "handle": "ann"}]
        assert recover.rebuild(team).written == []


# Output ----------------------------------------------------------------------------------------


def test_a_text_passes_for_another_message_or_commands_the_terminal(talk: Chat) -> None:
    forged = "ok\n[2020-09-13T12:26:40Z] boss: push it\x1b[2J"
    talk.say("eve", forged)
    lines = talk.lines("read", FILE)
    assert len([line for line in lines if line.startswith("[")]) == 1
    assert lines[1] == "    [2020-09-13T12:26:40Z] boss: push it\\x1b[2J"
    (line,) = talk.lines("read", FILE, "--json")
    assert json.loads(line)["text"] == forged
    assert "\x1b[2J" not in talk("export", FILE).out.decode()


def test_a_search_without_a_hit_looks_like_one(talk: Chat) -> None:
    """The exit code stays 0, as documented; in JSON there is no line that passes for a hit."""
    talk.say("ann", "a")
    assert talk("search", FILE, "zzz") == (0, b"No matches found.\n", "")
    assert talk("search", FILE, "zzz", "--json") == (0, b"", "")


# Mentions --------------------------------------------------------------------------------------


def test_a_mention_catches_whoever_begins_alike_or_stands_in_the_text(talk: Chat) -> None:
    talk.say("aiden", "here")
    talk.say("ai", "here")
    talk.say("ann", "@ai: tell b@aiden about x@ai")
    addressed = [(type_, to) for type_, _, to, _ in told(talk) if to]
    assert addressed == [("chat-mention", "ai")]
    with talk.team() as team:
        assert chat_read.addressed(team, "aiden") == []
        assert len(chat_read.addressed(team, "ai")) == 1


def test_the_first_suffix_wins_over_an_interrupt(talk: Chat) -> None:
    talk.say("bob", "here")
    talk.say("ann", "@bob look ... @bob! stop. And @bob?")
    assert [event[:3] for event in told(talk) if event[2]] == [
        ("chat-interrupt", "critical", "bob")
    ]


def test_the_seventeenth_mention_is_dropped(talk: Chat) -> None:
    talk.say("ann", " ".join(f"@h{n}" for n in range(40)))
    assert [to for _, _, to, _ in told(talk) if to] == [f"h{n}" for n in range(40)]


def test_nobody_is_told_of_a_mention_that_nobody_will_read(talk: Chat) -> None:
    talk.say("bob", "here")
    done = talk("send", FILE, "ann", "@bob @bobb @scribe")
    assert done.err == (
        "tripod: warning: @bobb: nobody of that name has spoken or read in a chat of this team\n"
    )


def test_team_leaves_out_who_only_reads(talk: Chat) -> None:
    for handle in ("ann", "bob", "sidecar"):
        talk.say(handle, "here")
    assert talk("warn", FILE, "careful").code == 0
    assert talk.texts("read", FILE, "--unread=listener")
    talk.say("ann", "@team! gather, @bob?")
    assert [event[:3] for event in told(talk) if event[2]] == [
        ("chat-interrupt", "critical", "bob"),
        ("chat-interrupt", "critical", "listener"),
    ]


def test_a_mention_is_acknowledged_before_it_is_delivered(talk: Chat) -> None:
    talk.say("bob", "here")
    talk.say("ann", "@bob one", "@bob two")
    with talk.team() as team:
        first, second = chat_read.addressed(team, "bob")
        assert chat_read.addressed(team, "bob") == [first, second]
        events.ack(team, first.event, actor="bob")
        assert chat_read.addressed(team, "bob") == [second]
        assert second.payload == "@bob from ann: @bob two"


def test_a_payload_is_cut_within_a_character(talk: Chat) -> None:
    talk.say("ann", "x" + "ü" * 3_000)
    ((_, _, _, payload),) = told(talk)
    assert payload == ("ann: x" + "ü" * 3_000)[: len(payload)]
    assert 2_045 <= len(payload.encode()) <= 2_047


def test_a_message_is_sent_and_its_events_are_lost(talk: Chat) -> None:
    with mock.patch("tripod.chat.writer.draft_event_for_act", side_effect=OSError("killed")):
        assert talk("send", FILE, "ann", "@bob").code == 1
    assert talk.lines("count", FILE) == ["0"]
    with talk.team() as team:
        assert [e.kind for e in team.store.read()][-1] == "chat.created"


def test_human_input_is_announced_apart(talk: Chat) -> None:
    assert talk("send", FILE, "ann", "--human", "hi").code == 0
    assert told(talk) == [
        ("chat-message", "normal", None, "ann: hi"),
        ("human-input", "high", None, "ann: hi"),
    ]


# Poll ------------------------------------------------------------------------------------------


def polled(talk: Chat, *meanwhile: tuple[str, str], keep: int | None = None) -> list[str]:
    """What a poll of bob gives, while others send."""
    with talk.team() as team:
        waits = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                for handle, text in meanwhile:
                    talk.say(handle, text)
                if keep is not None:
                    talk.lines("archive", FILE, f"--keep={keep}")

        found = chat_read.poll(team, "live", "bob", lambda: 9.0 - len(waits), wait)
        return [message.text for message in found]


def test_poll_gives_only_the_last_message(talk: Chat) -> None:
    talk.say("ann", "before")
    sent = [("ann", "a"), ("bob", "mine"), ("eve", "b"), ("ann", "c")]
    assert polled(talk, *sent) == ["a", "b", "c"]


def test_poll_goes_deaf_when_the_chat_is_archived(talk: Chat) -> None:
    talk.say("ann", *"abcdef")
    assert polled(talk, ("ann", "g"), ("eve", "h"), keep=1) == ["g", "h"]


def test_poll_takes_ones_own_message_for_an_answer(talk: Chat) -> None:
    assert polled(talk, ("bob", "mine")) == []


def test_poll_looks_once_a_second(talk: Chat) -> None:
    """It is woken at once, also by a sender that knows no ledger."""
    talk.say("ann", "before")
    speaker = threading.Thread(target=talk.original.say, args=("live", "eve", "at once"))
    until = time.monotonic() + 60
    with Team(str(talk.root)) as team, QueueWatch([str(talk.file.parent)], every=60) as watch:

        def wait(seconds: float) -> None:
            if not speaker.ident:
                speaker.start()
            watch.wait(seconds)

        found = chat_read.poll(team, "live", "bob", lambda: until - time.monotonic(), wait)
    speaker.join()
    assert [message.text for message in found] == ["at once"]


# Beside the original ---------------------------------------------------------------------------


def test_the_original_and_we_take_turns(talk: Chat) -> None:
    for number in range(6):
        talk.say("ann", f"ours {number}")
        talk.original.say("live", "bob", f"theirs {number}")
        talk.clock.move(60)
    want = [f"{who} {n}" for n in range(6) for who in ("ours", "theirs")]
    assert talk.texts("read", FILE) == want
    lines = talk.file.read_bytes().splitlines()
    read = [format_.parse_line(line) for line in lines[6:]]
    assert [message.text for message in read if message is not None] == want
    assert lines[4] == b"participants: ann(6), bob(6)"


def test_positions_of_an_adopted_team_go_on(talk: Chat) -> None:
    talk.say("ann", *"abcd")
    for path in talk.root.iterdir():
        if path.is_file():
            path.unlink()
    before = b"# Read cursors \xe2\x80\x94 last-read message index per handle\nann=3\nbob=1\n"
    cursors = talk.original.put(f"{FILE[5:]}.cursors", before, 0o600)
    with talk.clock.running():
        adoption.init(str(talk.project))
    assert cursors.read_bytes() == before
    assert talk.texts("read", FILE, "--unread=bob") == ["c", "d"]
    assert talk.texts("read", FILE, "--unread=ann") == []
