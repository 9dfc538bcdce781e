"""Acts that are done while one is open join it: one transaction, and each file written once."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from story import Step, Story, entries, folder, tree
from strategies import stories

from tripod.bus import events
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import DuplicateDroppedError, NotFoundError, RefusedError
from tripod.ledger.errors import LedgerDamagedError, LedgerError
from tripod.projections.disk import Disk
from tripod.projections.engine import file_differences
from tripod.team import adoption
from tripod.team.team import Team

LIVE = "chat/live.chat"
SAID: list[Step] = [("create", "live"), ("say", "live", "ann", "x")]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    made = Story(tmp_path)
    made.step(("create", "live"))
    return made


def whole(team: Team) -> None:
    assert list(file_differences(team.source, team.disk)) == []


def test_the_files_follow_at_the_end_and_so_does_all_that_others_see(story: Story) -> None:
    before = tree(story.root)
    with story.team() as team:
        size = team.store.head().size
        with team.act():
            for number in range(5):
                chat_send.send(team, "live", "ann", f"message {number}")
            assert tree(story.root) == before
            with Team(str(story.root)) as other:
                assert other.store.head().size == size
            assert len(list(events.check(team))) == 5
            events.ack(team, next(iter(events.check(team))).name)
        with Team(str(story.root)) as other:
            assert other.store.head().size == size + 11
        assert (team.healed, team.warnings) == (0, [])
        whole(team)
    assert (story.root / LIVE).read_bytes().count(b"\n") == 6 + 5
    assert len(story.original.pending()) == 4
    assert len(story.original.processed()) == 1


def test_each_file_is_written_once(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    stage = Disk.stage

    def noted(disk: Disk, path: str, *args: Any, **more: Any) -> Any:
        written.append(path)
        return stage(disk, path, *args, **more)

    monkeypatch.setattr(Disk, "stage", noted)
    with story.team() as team, team.act():
        for number in range(5):
            chat_send.send(team, "live", "ann", f"message {number}")
    assert written.count(LIVE) == 1


def test_read_positions_are_written_under_the_lock_of_their_chat(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[str] = []
    under: list[bool] = []
    lock, write = Disk.foreign_lock, Disk.write

    @contextmanager
    def noted(disk: Disk, path: str, *, wait: bool = True) -> Iterator[bool]:
        with lock(disk, path, wait=wait) as is_ours:
            held.append(path)
            yield is_ours
            held.remove(path)

    def written(disk: Disk, path: str, *args: Any, **more: Any) -> Any:
        if path.endswith(".cursors"):
            under.append(LIVE in held)
        return write(disk, path, *args, **more)

    monkeypatch.setattr(Disk, "foreign_lock", noted)
    monkeypatch.setattr(Disk, "write", written)
    with story.team() as team:
        with team.act():
            chat_send.send(team, "live", "ann", "one")
            assert under == []
        assert under == [True]
        chat_send.send(team, "live", "ann", "two")
        assert under == [True, True]


def test_what_others_write_meanwhile_is_taken_in_once(story: Story) -> None:
    with story.team() as team:
        with team.act():
            chat_send.send(team, "live", "ann", "one")
            story.clock.move()
            story.original.say("live", "bob", "two")
            story.original.publish("bob", "done")
            story.clock.move()
            chat_send.send(team, "live", "ann", "three")
            chat_send.send(team, "live", "ann", "four")
        said = [message.text for message in chat_read.messages(team, "live")]
        assert sorted(said) == ["four", "one", "three", "two"]
        assert team.warnings == []
        whole(team)
        assert [event.source for event in events.check(team)].count("bob") == 1


@pytest.mark.parametrize("step", [("archive", "live", 0), ("delete", "live", 3)])
def test_who_writes_a_file_that_is_behind_brings_nothing_back(tmp_path: Path, step: Step) -> None:
    story = Busy(tmp_path)
    for before in ("create", "live"), ("say", "live", "ann", "one"), ("say", "live", "ann", "two"):
        story.step(before)
    story.run([step, ("they_say", "live", "bob", "three")])
    with story.team() as team:
        said = [e.data["handle"] for e in team.store.read() if e.kind == "chat.sent"]
        assert said == ["ann", "ann", "bob"]
        assert [message.text for message in chat_read.messages(team, "live")] == ["three"]
        assert team.warnings == []
        whole(team)


def test_a_chat_that_another_program_holds_stops_nobody_who_only_adds(story: Story) -> None:
    program = f"""
import fcntl, sys
file = open({str(story.root / LIVE) + ".lock"!r}, "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
    with (
        story.team() as team,
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder,
    ):
        assert holder.stdout is not None
        assert holder.stdin is not None
        with team.act():
            assert holder.stdout.readline() == b"held\n"
            chat_send.send(team, "live", "ann", "one")
            assert [message.text for message in chat_read.messages(team, "live")] == ["one"]
            holder.stdin.close()
            holder.wait()
        whole(team)


def test_what_was_taken_in_is_added_to_no_file_again_behind_one_that_others_held(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Disk.foreign_lock
    refused: list[str] = []

    @contextmanager
    def held_at_first(disk: Disk, path: str, *, wait: bool = True) -> Iterator[bool]:
        if wait or refused:
            with lock(disk, path, wait=wait) as is_ours:
                yield is_ours
        else:
            refused.append(path)
            yield False

    story.step(("decide", "first", "because", ()))
    with story.team() as team:
        with team.act():
            chat_send.send(team, "live", "ann", "one")
            story.clock.move()
            story.original.log("theirs")
            story.clock.move()
            monkeypatch.setattr(Disk, "foreign_lock", held_at_first)
        assert refused == [LIVE]
        whole(team)


@pytest.mark.parametrize("full", [LIVE, "chat/side.chat"])
def test_what_was_written_is_not_added_again_behind_what_the_disk_refused(
    story: Story, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    story.run([("create", "side"), ("decide", "first", "because", ())])
    stage = Disk.stage

    def refuses(disk: Disk, path: str, *args: Any, **more: Any) -> Any:
        if path == full:
            raise OSError(28, "No space left on device")
        return stage(disk, path, *args, **more)

    with story.team() as team:
        monkeypatch.setattr(Disk, "stage", refuses)
        with team.act():
            for channel in "live", "side":
                chat_send.send(team, channel, "ann", "one")
            decisions_log.log(team, decisions_log.DecisionRequest("second", ["ann"], "because"))
        assert team.warnings != []
        monkeypatch.setattr(Disk, "stage", stage)
        with team.act():
            for channel in "live", "side":
                chat_send.send(team, channel, "ann", "two")
        whole(team)


def test_a_writer_that_dies_within_records_nothing(story: Story) -> None:
    program = f"""
import os
from tripod.chat import writer as chat
from tripod.team.team import Team
with Team({str(story.root)!r}) as team, team.act():
    chat.send(team, "live", "ann", "one")
    chat.send(team, "live", "ann", "two")
    os.kill(os.getpid(), 9)
"""
    with story.team() as team:
        head = team.store.head()
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    with Team(str(story.root)) as team:
        team.refresh()
        assert (team.store.head(), team.healed, team.warnings) == (head, 0, [])
        whole(team)


def test_an_error_that_leaves_the_open_act_takes_all_of_it_back(story: Story) -> None:
    with story.team() as team:
        chat_send.send(team, "live", "ann", "before")
        (name,) = story.original.pending()
        head = team.store.head()

        def three_acts() -> None:
            with team.act():
                chat_send.send(team, "live", "ann", "one")
                events.ack(team, name)
                assert story.original.pending() == []
                chat_send.send(team, "elsewhere", "ann", "two")

        with pytest.raises(NotFoundError):
            three_acts()
        assert team.store.head() == head
        assert story.original.pending() == [name]
        whole(team)


def test_an_act_that_is_refused_before_it_did_anything_harms_no_other(story: Story) -> None:
    with story.team() as team:
        with team.act():
            events.publish(team, "ann", "done", "low")
            with pytest.raises(DuplicateDroppedError):
                events.publish(team, "ann", "done", "low", dedup_window=60)
            with pytest.raises(NotFoundError):
                chat_send.send(team, "elsewhere", "ann", "two")
            chat_send.send(team, "live", "ann", "three")
        assert len(story.original.pending()) == 2
        whole(team)


def test_half_of_an_act_is_never_recorded(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError

    with story.team() as team:
        head = team.store.head()

        def two_messages() -> None:
            with team.act():
                chat_send.send(team, "live", "ann", "one")
                monkeypatch.setattr(chat_send, "show_positions", fails)
                with pytest.raises(KeyError):
                    chat_send.send(team, "live", "ann", "two")

        with pytest.raises(RefusedError, match="half way"):
            two_messages()
        monkeypatch.undo()
        assert team.store.head() == head
        chat_send.send(team, "live", "ann", "three")
        assert [message.text for message in chat_read.messages(team, "live")] == ["three"]
        whole(team)


def test_what_does_more_than_append_cannot_join(story: Story) -> None:
    with story.team() as team:
        with team.act():
            chat_send.send(team, "live", "ann", "one")
            with pytest.raises(RefusedError, match="an act is open"):
                adoption.sync(team)
            with pytest.raises(LedgerError, match="transaction open"):
                team.append_apart(lambda: ())
        whole(team)
        adoption.sync(team)


def test_acts_join_the_outermost_one(story: Story) -> None:
    with story.team() as team:
        with team.act():
            with team.act(joins=True):
                chat_send.send(team, "live", "ann", "one")
            assert story.original.pending() == []
        assert len(story.original.pending()) == 1
        whole(team)


def test_each_event_has_a_name_and_each_message_a_time_of_its_own(story: Story) -> None:
    with story.team() as team:
        with team.act():
            first = chat_send.send(team, "live", "ann", "one")
            story.clock.move(5)
            second = chat_send.send(team, "live", "ann", "two")
        assert second.time == first.time + 5
        assert len(set(story.original.pending())) == 2


ALONE = ("redact", "sync")
"""Steps that cannot join an act."""


class Busy(Story):
    """A story that is one act, without a look at the files in between."""

    opened: Team | None = None

    @contextmanager
    def team(self) -> Iterator[Team]:
        with self.clock.running():
            if self.opened is not None:
                yield self.opened
                return
            with Team(str(self.root)) as team:
                yield team

    def run(self, steps: list[Step]) -> None:
        with self.team() as team, team.act():
            self.opened = team
            super().run([step for step in steps if step[0] not in ALONE])
            self.opened = None


@settings(max_examples=25)
@given(stories(others=False, max_size=10))
@example([*SAID, ("create", "side"), ("ack_all", None), ("prune", 1)])
def test_any_story_ends_the_same(steps: list[Step]) -> None:
    with folder() as one, folder() as two:
        usual, busy = Story(one), Busy(two)
        usual.run([step for step in steps if step[0] not in ALONE])
        busy.run(steps)
        with usual.team() as first, busy.team() as second:
            assert entries(first) == entries(second)
            whole(second)
        assert _without_ids(one) == _without_ids(two)


class Crowded(Busy):
    """The same, with others at work meanwhile."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.theirs: Counter[tuple[str, str]] = Counter()

    def they_say(self, channel: str, handle: str, text: str) -> None:
        if (self.root / f"chat/{channel}.chat").exists():
            self.theirs[handle, text] += 1
        super().they_say(channel, handle, text)


@settings(max_examples=25)
@given(stories())
def test_what_others_say_in_between_is_neither_lost_nor_doubled(steps: list[Step]) -> None:
    with folder() as root:
        story = Crowded(root)
        story.run(steps)
        with story.team() as team:
            team.refresh()
            whole(team)
            taken = Counter(
                (entry.data["handle"], team.source.content(entry.data["text"]).decode())
                for entry in team.store.read()
                if entry.kind == "chat.sent" and "observed" in entry.data
            )
        assert taken == story.theirs


def _without_ids(root: Path) -> dict[str, tuple[bytes, int]]:
    """The counts name an entry by its id, which chance gives."""
    return {path: file for path, file in tree(root).items() if path != ".nbs/counts.json"}


def test_a_blob_that_is_gone_is_no_empty_text(story: Story) -> None:
    with (
        story.team() as team,
        pytest.raises(LedgerDamagedError, match="is missing: see"),
    ):
        team.source.blob("0" * 64)
