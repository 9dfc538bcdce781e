"""Others write the same files: what they may do is taken in, what they may not is kept apart."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import EDEADLK
from threading import Event
from typing import Any
from unittest import mock

import pytest
from story import FIRST, HELLO, Story, story_of, tree

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.errors import NotFoundError, RefusedError
from tripod.ledger.files import FileLock, hold_file_lock
from tripod.projections.chat import format as chat_format
from tripod.projections.disk import Disk
from tripod.projections.engine import file_differences
from tripod.projections.projection import File
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with a chat, a message, a decision and two pending events."""
    with story_of(*HELLO, FIRST) as story:
        yield story


def kinds(story: Story, start: int) -> list[str]:
    """Kinds of the entries from ``start`` on."""
    with story.team() as team:
        return [entry.kind for entry in team.store.read(start)]


def size(story: Story) -> int:
    with story.team() as team:
        return team.store.head().size


def sync(story: Story) -> adoption.Adoption:
    """Take in, and hold that afterwards nothing differs and nothing is new."""
    with story.team() as team:
        found = adoption.sync(team)
        assert adoption.sync(team).entries == 0
    return found


def whole(story: Story) -> None:
    """Nothing on disk differs from the ledger."""
    with story.team() as team:
        assert list(file_differences(team.source, team.disk)) == []


def body(story: Story, seq: int) -> dict[str, Any]:
    with story.team() as team:
        return team.source.body(seq)


# What they may do ------------------------------------------------------------------------------


def test_a_new_event_and_its_move_are_taken_in(story: Story) -> None:
    start = size(story)
    name = story.original.publish("x", "y", "high", "p")
    assert sync(story).kinds == {"bus.published": 1}
    story.original.ack(name)
    assert sync(story).kinds == {"bus.acked": 1}
    assert kinds(story, start) == ["bus.published", "bus.acked"]
    assert body(story, start + 1)["observed"]["claim"] == "unknown"
    whole(story)


def test_any_command_takes_in_first(story: Story) -> None:
    name = story.original.publish("x", "y")
    with story.team() as team:
        bus.ack(team, name, actor="ann")
    whole(story)
    name = story.original.publish("x", "z")
    story.original.ack(name)
    with story.team() as team, pytest.raises(NotFoundError):
        bus.ack(team, name, actor="ann")
    assert sync(story).kinds == {"bus.published": 1, "bus.acked": 1}, "a refused act leaves nothing"
    whole(story)


@pytest.mark.parametrize("limit", [2_500, 16_777_216])
@pytest.mark.parametrize("newest", [False, True])
def test_their_prune_is_taken_in_whatever_its_limit(
    story: Story, limit: int, *, newest: bool
) -> None:
    """It has a limit of its own on the command line, and people delete what they like."""
    for _ in range(4):
        story.clock.move()
        story.original.ack(story.original.publish("x", "y", payload="z" * 1_000))
    story.original.put("events/config.yaml", f"retention-max-bytes: {limit}\n".encode())
    sync(story)
    start = size(story)
    if newest:
        (story.root / "events/processed" / story.original.processed()[-1]).unlink()
    else:
        story.original.prune(2)
    before = tree(story.root)
    assert sync(story).kinds == {"bus.pruned": 1}
    assert tree(story.root) == before
    assert kinds(story, start) == ["bus.pruned"]
    whole(story)


@pytest.mark.parametrize(("zone", "headers"), [("+0000", 0), ("-0500", 1)])
def test_their_message_is_taken_in_with_its_header_where_ours_would_differ(
    story: Story, zone: str, headers: int
) -> None:
    story.original.zone = zone
    start = size(story)
    story.original.say("live", "bob", "hi @ann")
    before = tree(story.root)["chat/live.chat"]
    sync(story)
    assert kinds(story, start) == ["chat.sent"] + ["chat.header-seen"] * headers
    assert tree(story.root)["chat/live.chat"] == before
    with story.team() as team:
        assert chat_read.participants(team, "live") == [("ann", 1), ("bob", 1)]
        assert chat_send.send(team, "live", "ann", "on").number == 2
        assert chat_read.participants(team, "live") == [("ann", 2), ("bob", 1)]
    data = (story.root / "chat/live.chat").read_bytes()
    assert b"participants: ann(2), bob(1)\n" in data
    assert b"file-length: %d\n" % len(data) in data
    whole(story)


@pytest.mark.parametrize("at", [1, 8, 11, 24, -4, -1])
def test_a_line_that_is_read_while_it_is_written_is_a_message_when_it_is_whole(
    story: Story, at: int
) -> None:
    text = "a text that comes in two parts"
    line = chat_format.format_line("eve", 1600000000, text) + b"\n"
    path = story.root / "chat/live.chat"
    for part in (line[:at], line[at:]):
        with path.open("ab") as file:
            file.write(part)
        sync(story)
    with story.team() as team:
        found = [(one.handle, one.text) for one in chat_read.messages(team, "live")]
        chat_send.send(team, "live", "ann", "and on")
    assert found[0] == ("ann", "hello")
    assert found.count(("eve", text)) == 1
    assert {handle for handle, _ in found} == {"ann", "eve"}
    assert line in path.read_bytes()
    whole(story)


def test_two_messages_that_no_line_break_parts_are_two(story: Story) -> None:
    path = story.root / "chat/live.chat"
    for handle in ("eve", "bob"):
        with path.open("ab") as file:
            file.write(chat_format.format_line(handle, 1600000000, "hi"))
        sync(story)
    with story.team() as team:
        assert [one.handle for one in chat_read.messages(team, "live")] == ["ann", "eve", "bob"]
    whole(story)


@pytest.mark.parametrize("unsynced", [False, True])
def test_their_rotation_is_taken_in(story: Story, *, unsynced: bool) -> None:
    path = "chat/live.chat"
    file = chat_format.split_chat_file((story.root / path).read_bytes())
    assert file is not None
    lines = [chat_format.format_line("bob", story.clock.seconds, f"m{n}") for n in range(1_999)]
    text = b"".join(line + b"\n" for line in [*file.lines, *lines])
    header = chat_format.ChatHeader("bob", story.original._time(), (("ann", 1), ("bob", 1_999)))
    story.original.put(path, chat_format.format_header(header, len(text)) + text, 0o600)
    if not unsynced:
        sync(story)
    story.clock.move()
    story.original.say("live", "eve", "the last")
    story.original.say("live", "eve", "and one more")
    before = tree(story.root)
    found = sync(story)
    assert found.kinds["chat.rotated"] == 1
    assert found.kinds["chat.sent"] == (2_001 if unsynced else 2)
    assert {p: f for p, f in tree(story.root).items() if p != "counts.json"} == {
        p: f for p, f in before.items() if p != "counts.json"
    }
    with story.team() as team:
        live = chat_read.messages(team, "live")
        assert (live[0].number, live[-1].number, len(live)) == (1_000, 2_001, 1_002)
        assert next(m.number for m in chat_read.search(team, "live", "m5", archives=True)) == 6
    whole(story)


def test_their_log_entries_and_their_split_are_taken_in(story: Story) -> None:
    story.original.log("Theirs", number=1)
    assert sync(story).kinds == {"decision.logged": 1}
    for number in range(2, 502):
        story.original.log(f"Theirs {number}", number=number)
        if number == 300:
            sync(story)
    found = sync(story)
    assert found.kinds == {"decision.logged": 201, "log.rotated": 1}
    with story.team() as team:
        assert decisions_read.count(team) == 502
        logged = decisions_log.log(team, decisions_log.DecisionRequest("Ours", ["ann"], "because"))
        assert logged.number == 503
        log = (story.root / "scribe/log.md").read_bytes()
        assert log.count(b"\n### D-") == 253
    whole(story)


def test_prose_by_hand_behind_the_log_is_kept(story: Story) -> None:
    story.original.append("scribe/log.md", b"\nA word by hand.\n")
    assert sync(story).kinds == {"log.noted": 1}
    with story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Next", ["ann"], "because"))
        assert decisions_read.count(team) == 2
    assert b"\nA word by hand.\n\n---\n\n### D-" in (story.root / "scribe/log.md").read_bytes()
    whole(story)


def test_a_worker_writes_on_in_its_own_file(story: Story) -> None:
    start = b"# Task\n\nState: running\nStarted: now\n\n## Log\n"
    story.original.put("workers/w.md", start)
    sync(story)
    story.original.put("workers/w.md", start.replace(b"running", b"completed") + b"done\n")
    assert sync(story).kinds == {"worker.written": 1}
    whole(story)
    story.original.put("workers/w.md", b"# Other task\n")
    with story.team() as team:
        found = adoption.sync(team)
        assert found.entries == 0
        assert "workers/w.md: edited outside" in found.warnings[0]


def test_logs_and_read_positions_are_kept_by_digest(story: Story) -> None:
    for text in "abc":
        story.original.say("live", "bob", text)
    sync(story)
    story.original.put("workers/w.log", b"one\n")
    story.original.put("chat/live.chat.cursors", b"ann=1\n")
    assert sync(story).kinds == {"evidence.kept": 1, "chat.cursors-seen": 1}
    story.original.append("workers/w.log", b"two\n")
    story.original.put("chat/live.chat.cursors", b"ann=2\n")
    assert sync(story).kinds == {"evidence.kept": 1, "chat.cursors-seen": 1}
    story.original.put("workers/w.log", b"gone\n")
    with story.team() as team:
        assert "a log only grows" in adoption.sync(team).warnings[0]
        assert recover.rebuild(team, evidence=True).displaced == 1
    assert (story.root / "workers/w.log").read_bytes() == b"one\ntwo\n"


def test_a_changed_configuration_is_an_entry_and_an_event(story: Story) -> None:
    start = size(story)
    story.original.put("events/config.yaml", b"pythia-interval: 1\n")
    story.step(("sync",))
    assert kinds(story, start) == ["config.changed", "bus.published"]
    assert body(story, start + 1)["type"] == "config-change"
    with story.team() as team:
        assert (
            decisions_log.log(team, decisions_log.DecisionRequest("T", ["ann"], "r")).checkpoint
            is not None
        )
    (story.root / "events/config.yaml").unlink()
    story.step(("sync",))
    story.original.put("events/config.yaml", b"pythia-interval: 1\n")
    story.step(("sync",))
    assert kinds(story, start).count("config.changed") == 3
    whole(story)


def test_an_event_half_written_is_taken_in_when_it_is_whole(story: Story) -> None:
    path = story.root / "events/1600000000000000-x-y-1.event"
    path.write_bytes(b"")
    assert sync(story).kinds == {"file.seen": 1}
    with path.open("ab") as file:
        file.write(b"source: x\ntype: ")
    with story.team() as team:
        bus.publish(team, "a", "b", "low")
    with path.open("ab") as file:
        file.write(b"y\npriority: high\n")
    with story.team() as team:
        team.refresh()
        assert "y" in [event.type for event in bus.check(team)]
        bus.ack(team, path.name)
    whole(story)


def test_a_chat_that_becomes_one_is_taken_in(story: Story) -> None:
    path = story.root / "chat/new.chat"
    path.write_bytes(b"=== nbs-chat ===\nlast-writer: ")
    assert sync(story).kinds == {"file.seen": 1}
    with story.team() as team, pytest.raises(RefusedError):
        chat_send.create(team, "new")
    path.unlink()
    story.original.create("new")
    assert sync(story).kinds["chat.created"] == 1
    with story.team() as team:
        chat_send.send(team, "new", "ann", "hi")
    whole(story)


# What they may not do --------------------------------------------------------------------------


EDITS = {
    "chat/live.chat": lambda data: data[:-9] + b"XXXX" + data[-5:],
    "scribe/log.md": lambda data: data.replace(b"First", b"Other"),
}


@pytest.mark.parametrize("path", list(EDITS))
def test_an_edit_is_never_taken_in_and_kept_before_it_is_written_over(
    story: Story, path: str
) -> None:
    good = tree(story.root)[path]
    edited = EDITS[path](good[0])
    assert edited != good[0]
    story.original.put(path, edited, good[1])
    start = size(story)
    with story.team() as team:
        found = adoption.sync(team)
        assert found.entries == 0
        assert [text for text in found.warnings if text.startswith(f"{path}: edited outside")]
        bus.publish(team, "a", "b", "low")
    assert (story.root / path).read_bytes() == edited, "an act that is elsewhere leaves it"
    with story.team() as team:
        if path.startswith("chat"):
            chat_send.send(team, "live", "ann", "on")
        else:
            decisions_log.log(team, decisions_log.DecisionRequest("On", ["ann"], "because"))
    kept = [e for e in _entries(story, start) if e.kind == "file.displaced"]
    assert [entry.data["path"] for entry in kept] == [path]
    with story.team() as team:
        assert _content(team, kept[0].data) == edited
    assert (story.root / path).read_bytes().startswith(good[0][:14])
    whole(story)


def _entries(story: Story, start: int) -> list[Any]:
    with story.team() as team:
        return list(team.store.read(start))


def _content(team: Team, data: dict[str, Any]) -> bytes:
    return team.source.content(data["content"])


def test_an_archive_never_changes(story: Story) -> None:
    """Those of chats and of the log, edited or removed."""
    story.original.create("old")
    archive = b"=== nbs-chat ===\nlast-writer: system\n---\n"
    archive += chat_format.format_line("ann", 5, "early") + b"\n"
    story.original.put("chat/old-20200913-122640-archive.chat", archive, 0o600)
    for number in range(501):
        story.original.log("T", number=number)
    sync(story)
    paths = [path for path in tree(story.root) if "-archive" in path]
    assert len(paths) == 2
    before = tree(story.root)
    for path in paths:
        data, mode = before[path]
        story.original.put(path, data.replace(b"system", b"nobody").replace(b" T\n", b" U\n"), mode)
    with story.team() as team:
        found = adoption.sync(team)
        assert found.entries == 0
        assert len([text for text in found.warnings if "an archive never changes" in text]) == 2
        assert recover.rebuild(team).displaced == 2
    assert tree(story.root) == before
    for path in paths:
        (story.root / path).unlink()
    with story.team() as team:
        team.refresh()
        assert len([text for text in team.warnings if "is written again" in text]) == 2
    assert tree(story.root) == before


@pytest.mark.parametrize("cut", ["chat/live.chat", "scribe/log.md"])
def test_a_shortened_file_is_no_deletion_that_is_taken_in(story: Story, cut: str) -> None:
    data = (story.root / cut).read_bytes()
    story.original.put(cut, data[:-20])
    with story.team() as team:
        found = adoption.sync(team)
        assert found.entries == 0
        assert f"{cut}: edited" in found.warnings[0]
        assert recover.rebuild(team).displaced == 1
        assert team.warnings == []
    assert (story.root / cut).read_bytes() == data


def test_an_acknowledged_event_that_is_put_back_is_told_and_rebuilt_away(story: Story) -> None:
    name = story.original.pending()[0]
    with story.team() as team:
        bus.ack(team, name)
    story.original.put(f"events/{name}", (story.root / "events/processed" / name).read_bytes())
    with story.team() as team:
        assert "moved back" in adoption.sync(team).warnings[0]
        assert recover.rebuild(team).displaced == 1
    assert name not in story.original.pending()
    whole(story)


def test_an_event_that_comes_back_after_the_prune_is_told_and_goes(story: Story) -> None:
    name = story.original.publish("x", "y")
    data = (story.root / "events" / name).read_bytes()
    story.run([("ack_all", None), ("prune", 1)])
    for _ in range(2):
        story.clock.move()
        story.original.put(f"events/{name}", data)
        with story.team() as team:
            found = adoption.sync(team)
            assert found.entries == 0
            assert "an older state" in found.warnings[0]
            bus.publish(team, "a", "b", "low")
        assert not (story.root / "events" / name).exists()


def test_what_cannot_be_kept_is_not_written_over(story: Story) -> None:
    path = story.root / "scribe/log.md"
    path.write_bytes(b"x" * (17 * 1024 * 1024))
    start = size(story)
    with story.team() as team, pytest.raises(RefusedError, match="move it away first"):
        decisions_log.log(team, decisions_log.DecisionRequest("On", ["ann"], "because"))
    assert size(story) == start
    assert path.stat().st_size == 17 * 1024 * 1024


def test_an_edited_event_is_kept_when_it_is_pruned(story: Story) -> None:
    story.run([("ack_all", None)])
    name = story.original.processed()[0]
    story.original.put(f"events/processed/{name}", b"rewritten\n")
    start = size(story)
    story.run([("prune", 1)])
    assert kinds(story, start) == ["file.displaced", "bus.pruned"]
    assert story.original.processed() == []


@pytest.mark.parametrize("everything", [False, True])
def test_an_acknowledgement_onto_a_foreign_file_keeps_that_file(
    story: Story, *, everything: bool
) -> None:
    name = story.original.pending()[0]
    story.original.put(f"events/processed/{name}", b"a stranger\n")
    start = size(story)
    story.run([("ack_all", None) if everything else ("ack", 0)])
    held = [e for e in _entries(story, start) if e.kind in ("file.seen", "file.displaced")]
    assert held
    with story.team() as team:
        assert _content(team, held[0].data) == b"a stranger\n"
    assert (story.root / "events/processed" / name).read_bytes() != b"a stranger\n"
    whole(story)
    story.run([("prune", 1)])
    whole(story)
    assert story.original.processed() == []


# At the very moment ----------------------------------------------------------------------------


@contextmanager
def racing(path: str, write: Any, times: int = 1) -> Iterator[None]:
    """Others write ``path`` when our bytes of it are ready and not yet in their place."""
    left = [times]
    real, real_open = Disk.stage, os.open

    def come(to: str) -> None:
        if to.endswith(path) and left[0]:
            left[0] -= 1
            write()

    def stage(disk: Disk, to: str, file: File, **options: Any) -> Any:
        staged = real(disk, to, file, **options)
        come(to)
        return staged

    def opened(to: str, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_APPEND and flags & os.O_NOFOLLOW:  # as we do, and they do not
            come(to)
        return real_open(to, flags, *more, **options)

    with mock.patch.object(Disk, "stage", stage), mock.patch.object(os, "open", opened):
        yield
    assert left[0] < times


def test_a_message_that_slips_in_is_not_lost(story: Story) -> None:
    def write() -> None:
        story.original.say("live", "bob", "in between")

    start = size(story)
    with racing("chat/live.chat", write), story.team() as team:
        sent = chat_send.send(team, "live", "ann", "mine")
        assert [m.text for m in chat_read.messages(team, "live")] == [
            "hello",
            "mine",
            "in between",
        ]
        assert (sent.number, team.healed) == (1, 0)
        assert team.warnings == []
    data = (story.root / "chat/live.chat").read_bytes()
    texts = [m.text for m in map(chat_format.parse_line, data.splitlines()[6:]) if m is not None]
    assert texts == ["hello", "mine", "in between"]
    assert "file.displaced" not in kinds(story, start)
    whole(story)


def test_a_decision_that_slips_in_is_not_lost(story: Story) -> None:
    with racing("scribe/log.md", lambda: story.original.log("In between")), story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Mine", ["ann"], "because"))
        assert [d.title for d in decisions_read.query(team)] == ["First", "Mine", "In between"]
    whole(story)


def test_an_edit_that_slips_in_is_kept_apart(story: Story) -> None:
    path = "scribe/log.md"
    edited = EDITS[path]((story.root / path).read_bytes())
    start = size(story)
    with racing(path, lambda: story.original.put(path, edited)), story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Mine", ["ann"], "because"))
    kept = [e for e in _entries(story, start) if e.kind == "file.displaced"]
    with story.team() as team:
        assert [_content(team, entry.data) for entry in kept] == [edited]
    whole(story)


def test_a_stranger_on_the_name_of_a_new_event_is_kept(story: Story) -> None:
    name = f"{story.clock.ns // 1000}-a-b-{os.getpid()}.event"
    path = f"events/{name}"
    start = size(story)
    with racing(path, lambda: story.original.put(path, b"odd")), story.team() as team:
        assert bus.publish(team, "a", "b", "low") == name
    kept = [e for e in _entries(story, start) if e.kind == "file.displaced"]
    with story.team() as team:
        assert [_content(team, entry.data) for entry in kept] == [b"odd"]
    whole(story)


def test_who_never_stops_writing_is_told_of(story: Story) -> None:
    def write() -> None:
        story.original.say("live", "bob", "again")

    with racing("chat/live.chat", write, times=100), story.team() as team:
        chat_send.send(team, "live", "ann", "mine")
        assert "others keep writing the file" in team.warnings[-1]
    with story.team() as team:
        team.refresh()
        assert "mine" in [m.text for m in chat_read.messages(team, "live")]
    whole(story)


def test_who_holds_the_original_lock_is_waited_for_without_a_deadlock(story: Story) -> None:
    """The healing writer holds the ledger's lock: it must not wait for theirs."""
    import subprocess
    import sys

    lock = story.root / "chat/live.chat.lock"
    with mock.patch.object(Team, "_write_files"), story.team() as team:
        chat_send.send(team, "live", "ann", "unwritten")
    program = (
        "import fcntl, sys, time\n"
        "file = open(sys.argv[1], 'w')\nfcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(lock)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdin is not None
    with holder:
        assert holder.stdout.readline() == "held\n"
        real = Disk.foreign_lock

        def release(disk: Disk, path: str, *, wait: bool = True) -> Any:
            if wait:  # we hold nothing of ours: only now may they take their time
                holder.stdin.write("go\n")  # type: ignore[union-attr]
                holder.stdin.flush()  # type: ignore[union-attr]
            return real(disk, path, wait=wait)

        with mock.patch.object(Disk, "foreign_lock", release), story.team() as team:
            bus.publish(team, "a", "b", "low")
    whole(story)


def test_a_foreign_event_between_our_look_and_our_note_is_seen_next(story: Story) -> None:
    """The folder is noted as it was when we looked, not as it is when we are done."""
    real = Team._write_files
    names = []

    def late(team: Team, *arguments: Any, **options: Any) -> None:
        names.append(story.original.publish("x", "y"))
        real(team, *arguments, **options)

    with mock.patch.object(Team, "_write_files", late), story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Mine", ["ann"], "because"))
    with story.team() as team:
        team.refresh()
        assert names[0] in [event.name for event in bus.check(team)]
    whole(story)


def test_a_config_edited_while_we_write_is_seen_next(story: Story) -> None:
    story.original.put("events/config.yaml", b"pythia-interval: 5\n")
    real = Team._write_files

    def late(team: Team, *arguments: Any, **options: Any) -> None:
        story.original.put("events/config.yaml", b"pythia-interval: 1\n")
        real(team, *arguments, **options)

    with mock.patch.object(Team, "_write_files", late), story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Mine", ["ann"], "because"))
    with story.team() as team:
        assert (
            decisions_log.log(team, decisions_log.DecisionRequest("More", ["ann"], "r")).checkpoint
            is not None
        )


def test_a_symbolic_link_in_place_of_a_folder_is_not_followed(story: Story) -> None:
    outside = story.project / "outside"
    (story.root / "chat").rename(outside)
    (story.root / "chat").symlink_to(outside)
    before = tree(outside)
    with story.team() as team:
        bus.publish(team, "a", "b", "low")
        assert [text for text in team.warnings if "symbolic link" in text]
    assert tree(outside) == before


# In the tick of our own last write -------------------------------------------------------------


def slip_in(story: Story, name: str) -> None:
    """Drop an event so soon after our last write that the folder's time does not tell."""
    queue = f"{story.root}/events"
    before = os.stat(queue)
    with open(f"{queue}/{name}", "wb") as file:
        file.write(b"source: bob\ntype: ready\npriority: high\n")
    os.utime(queue, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_came_in_the_tick_of_our_write_is_seen_by_whoever_reads(story: Story) -> None:
    with story.team() as team:
        bus.publish(team, "ann", "one", "low")
    slip_in(story, "1700000000000000-bob-ready-1.event")
    with story.team() as team:
        bus.publish(team, "ann", "two", "low")  # it does not count, and must not forget to
        bus.ack(team, bus.publish(team, "ann", "three", "low"))
    with story.team() as team:
        team.refresh()
        assert "1700000000000000-bob-ready-1.event" in [item.name for item in bus.check(team)]
    whole(story)


def test_an_event_that_came_in_the_tick_of_our_write_can_be_acknowledged(story: Story) -> None:
    with story.team() as team:
        bus.publish(team, "ann", "one", "low")
    slip_in(story, "1700000000000000-bob-ready-1.event")
    with story.team() as team:
        bus.ack(team, "1700000000000000-bob-ready-1.event")
        with pytest.raises(NotFoundError):
            bus.ack(team, "1700000000000000-bob-ready-1.event")
    whole(story)


def test_an_act_takes_in_what_only_the_file_holds_and_names_it(story: Story) -> None:
    path = story.root / "scribe" / "log.md"
    head, rule, last = path.read_text("utf-8").rpartition("\n---\n")
    theirs = last.replace("First", "Theirs").replace("### D-", "### D-1")
    path.write_text(f"{head}{rule}{theirs}{rule}{last}", "utf-8")
    with story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Second", ["ann"], "because"))
        said = "\n".join(team.warnings)
    assert "(Theirs)" in said
    assert path.read_text("utf-8").count(" Theirs\n") == 1
    assert path.read_text("utf-8").index("First") < path.read_text("utf-8").index("Theirs")


@pytest.fixture
def other_program(story: Story) -> Iterator[Callable[[str], bool]]:
    """Another process that locks files as the original tools do, until the test ends."""
    program = (
        "import fcntl, sys\n"
        "kept = {}\n"
        "for path in sys.stdin:\n"
        "    file = open(path.strip(), 'w')\n"
        "    if path.strip() in kept:\n        kept.pop(path.strip()).close()\n        got = True\n"
        "    else:\n"
        "        try:\n            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "            kept[path.strip()] = file\n            got = True\n"
        "        except OSError:\n            got = False\n"
        "    print(got, flush=True)\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def lock_or_unlock(path: str) -> bool:
            other.stdin.write(f"{story.root / path}.lock\n")  # type: ignore[union-attr]
            other.stdin.flush()  # type: ignore[union-attr]
            return other.stdout.readline() == "True\n"  # type: ignore[union-attr]

        yield lock_or_unlock
        other.stdin.close()


def test_who_waits_for_other_writers_keeps_no_program_from_a_chat(
    story: Story, other_program: Callable[[str], bool]
) -> None:
    asked, real = Event(), FileLock.acquire

    def tell(lock: FileLock) -> None:
        asked.set()
        real(lock)

    with story.team() as team:
        database = team.store.path
    with mock.patch.object(FileLock, "acquire", tell), ThreadPoolExecutor(1) as pool:
        with hold_file_lock(f"{database}.lock"):
            asked.clear()
            sent = pool.submit(_say, story, "mine")
            assert asked.wait(30)  # it stands in the queue, and must have no other lock
            assert other_program("chat/live.chat")
            assert other_program("chat/live.chat")  # it gives the lock back
        sent.result(30)
    whole(story)


def test_who_has_the_place_waits_for_no_program_that_keeps_its_lock(
    story: Story, other_program: Callable[[str], bool]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert other_program("chat/live.chat")
        sent = pool.submit(_say, story, "mine")
        with story.team() as team:
            for _ in range(3):  # others go on
                bus.publish(team, "a", "b", "low")
        assert not sent.done()
        assert other_program("chat/live.chat")
        sent.result(30)
    with story.team() as team:
        assert "mine" in [m.text for m in chat_read.messages(team, "live")]
    whole(story)


def test_a_file_that_others_lock_all_the_time_is_written_after_all(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits in the system's queue for the lock gets it; who asks for it finds it taken."""
    waits, real = 0, Disk.foreign_lock
    mine = 0  # locks that were waited for, and that we still have

    @contextmanager
    def busy(disk: Disk, path: str, *, wait: bool = True) -> Iterator[bool]:
        nonlocal waits, mine
        if not wait:
            yield bool(mine)
            return
        waits += 1
        assert waits < 20, "it would go on for ever"
        with real(disk, path, wait=True):
            mine += 1
            yield True
            mine -= 1

    monkeypatch.setattr(Disk, "foreign_lock", busy)
    _say(story, "mine")
    assert mine == 0
    with story.team() as team:
        assert "mine" in [m.text for m in chat_read.messages(team, "live")]


def test_two_who_wait_for_each_others_locks_begin_again(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses to let two processes wait for each other; that is nobody's mistake."""
    answers: list[bool | int] = [*[False] * 4, EDEADLK]
    real = Disk.foreign_lock

    @contextmanager
    def crossed(disk: Disk, path: str, *, wait: bool = True) -> Iterator[bool]:
        answer = answers.pop(0) if answers else True
        if answer is EDEADLK:
            raise OSError(EDEADLK, os.strerror(EDEADLK))
        with real(disk, path, wait=wait) as got:
            yield got and bool(answer)

    monkeypatch.setattr(Disk, "foreign_lock", crossed)
    _say(story, "mine")
    assert not answers
    whole(story)


def test_what_others_add_while_a_rebuild_keeps_a_file_is_no_part_of_it(
    story: Story, monkeypatch: pytest.MonkeyPatch, other_program: Callable[[str], bool]
) -> None:
    """They lock the file; the rebuild has the lock from before it looks at what it keeps."""
    real, free = recover.unrecorded_pieces, []

    def late(source: Any, disk: Disk, paths: list[str]) -> Any:
        found = real(source, disk, paths)
        free.append(other_program("scribe/log.md"))
        if free[-1]:
            story.original.log("Theirs")
            other_program("scribe/log.md")
        return found

    monkeypatch.setattr(recover, "unrecorded_pieces", late)
    log = story.root / "scribe/log.md"
    log.write_bytes(log.read_bytes().replace(b"# Decision Log", b"# Decisions", 1))
    with story.team() as team:
        recover.rebuild(team)
    assert free == [False]
    whole(story)


def _say(story: Story, text: str) -> None:
    with story.team() as team:
        chat_send.send(team, "live", "ann", text)


@pytest.mark.parametrize("discard", [None, "an older slip"])
def test_what_others_add_while_a_rebuild_folds_is_taken_in(
    story: Story, monkeypatch: pytest.MonkeyPatch, discard: str | None
) -> None:
    real = recover._to_write
    held: list[list[str]] = []

    def late(act: Any, **options: Any) -> Any:
        held.append(sorted(act.writer.held))
        if len(held) == 1:
            story.original.log("Theirs")
        return real(act, **options)

    monkeypatch.setattr(recover, "_to_write", late)
    with story.team() as team:
        recover.rebuild(team, discard=discard)
        assert "Theirs" in [d.title for d in decisions_read.query(team)]
    assert held == [[], ["scribe/log.md"]]
    whole(story)
