"""Files may fall behind for who does very much at once: nothing else may come out differently."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from story import Step, Story, entries, folder, tree
from strategies import stories

from tripod.bus import events
from tripod.chat import read as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import NotFoundError
from tripod.ledger.errors import UnwritableError
from tripod.projections.disk import Disk
from tripod.projections.engine import differences
from tripod.projections.projection import content_bytes
from tripod.team.team import Team

LIVE = "chat/live.chat"
SAID: list[Step] = [("create", "live"), ("say", "live", "ann", "x")]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    made = Story(tmp_path)
    made.step(("create", "live"))
    return made


def whole(team: Team) -> None:
    assert list(differences(team.source, team.disk)) == []


@pytest.fixture(autouse=True)
def _no_time_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)


def test_the_files_follow_at_the_end_and_others_know_at_once(story: Story) -> None:
    before = tree(story.root)
    with story.team() as team:
        with team.files_later():
            for number in range(5):
                chat_send.send(team, "live", "ann", f"message {number}")
            assert tree(story.root) == before
            with Team(str(story.root)) as other:
                assert other.store.head() == team.store.head()
                assert len(list(events.check(other))) == 5
            events.ack(team, next(iter(events.check(team))).name)
        assert (team.healed, team.warnings) == (0, [])
        whole(team)
    assert (story.root / LIVE).read_bytes().count(b"\n") == 6 + 5
    assert len(story.original.pending()) == 4
    assert len(story.original.processed()) == 1


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
        with team.files_later():
            chat_send.send(team, "live", "ann", "one")
            assert under == []
        assert under == [True]
        chat_send.send(team, "live", "ann", "two")
        assert under == [True, True]


def test_they_follow_after_a_moment(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    with story.team() as team, team.files_later():
        chat_send.send(team, "live", "ann", "one")
        assert story.original.pending() == []
        monkeypatch.setattr(time, "monotonic", lambda: 1000.3)
        chat_send.send(team, "live", "ann", "two")
        assert len(story.original.pending()) == 2
        chat_send.send(team, "live", "ann", "three")
        assert len(story.original.pending()) == 2


def test_what_others_write_meanwhile_is_taken_in_once(story: Story) -> None:
    with story.team() as team:
        with team.files_later():
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


def test_who_only_adds_looks_at_no_file_before_they_are_written(story: Story) -> None:
    with story.team() as team:
        with team.files_later():
            story.original.say("live", "bob", "from elsewhere")
            with mock.patch.object(Disk, "foreign_lock", side_effect=AssertionError):
                chat_send.send(team, "live", "ann", "one")
                chat_send.send(team, "live", "ann", "two")
            events.ack(team, next(iter(events.check(team))).name)  # this one decides: it looks
            chat_send.send(team, "live", "ann", "three")
        said = [message.text for message in chat_read.messages(team, "live")]
        assert said == ["one", "two", "from elsewhere", "three"]
        whole(team)


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
        with team.files_later():
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
        with team.files_later():
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
        with team.files_later():
            for channel in "live", "side":
                chat_send.send(team, channel, "ann", "one")
            monkeypatch.setattr(Disk, "stage", refuses)
            monkeypatch.setattr(time, "monotonic", lambda: 1000.3)
            decisions_log.log(team, decisions_log.DecisionRequest("second", ["ann"], "because"))
            assert team.warnings != []
            monkeypatch.setattr(Disk, "stage", stage)
            for channel in "live", "side":
                chat_send.send(team, channel, "ann", "two")
        whole(team)


def test_who_dies_meanwhile_leaves_what_the_next_command_writes(story: Story) -> None:
    program = f"""
import os, time
from tripod.chat import writer as chat
from tripod.team.team import Team
time.monotonic = lambda: 1000.0
with Team({str(story.root)!r}) as team, team.files_later():
    chat.send(team, "live", "ann", "one")
    chat.send(team, "live", "ann", "two")
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert story.original.pending() == []
    with Team(str(story.root)) as team:
        team.refresh()
        assert (team.healed, team.warnings) == (4, [])
        whole(team)


def test_an_error_within_lets_the_files_follow(story: Story) -> None:
    with story.team() as team:
        with suppress(NotFoundError), team.files_later():
            chat_send.send(team, "live", "ann", "one")
            chat_send.send(team, "elsewhere", "ann", "two")
        assert len(story.original.pending()) == 1
        whole(team)


def test_a_disk_that_refuses_at_the_end_ends_it_all_the_same(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    with story.team() as team:
        real = team.act
        with suppress(UnwritableError), team.files_later():
            chat_send.send(team, "live", "ann", "one")
            monkeypatch.setattr(team, "act", mock.Mock(side_effect=UnwritableError))
        monkeypatch.setattr(team, "act", real)
        assert story.original.pending() == []
        chat_send.send(team, "live", "ann", "two")
        assert len(story.original.pending()) == 2
        whole(team)


def test_within_itself_it_changes_nothing(story: Story) -> None:
    with story.team() as team:
        with team.files_later():
            with team.files_later():
                chat_send.send(team, "live", "ann", "one")
            assert story.original.pending() == []
        whole(team)


class Busy(Story):
    """A story of which one process tells everything, without a look at the files in between."""

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
        with self.team() as team, team.files_later():
            self.opened = team
            super().run(steps)
            self.opened = None


@settings(max_examples=25)
@given(stories(others=False, max_size=10))
@example([*SAID, ("create", "side"), ("ack_all", None), ("prune", 1)])
def test_any_story_ends_the_same(steps: list[Step]) -> None:
    with folder() as one, folder() as two:
        usual, busy = Story(one), Busy(two)
        usual.run(steps)
        busy.run(steps)
        with usual.team() as first, busy.team() as second:
            assert entries(first) == entries(second)
            whole(second)
        assert _without_ids(one) == _without_ids(two)


class Crowded(Busy):
    """The same, with others at work meanwhile, and a clock by which the files fall due."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.theirs: Counter[tuple[str, str]] = Counter()
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def step(self, step: Step) -> None:
        self.seconds += 0.1
        super().step(step)

    def they_say(self, channel: str, handle: str, text: str) -> None:
        if (self.root / f"chat/{channel}.chat").exists():
            self.theirs[handle, text] += 1
        super().they_say(channel, handle, text)


@settings(max_examples=25)
@given(stories())
def test_what_others_say_in_between_is_neither_lost_nor_doubled(steps: list[Step]) -> None:
    with folder() as root:
        story = Crowded(root)
        with mock.patch.object(time, "monotonic", story.now):
            story.run([step for step in steps if step[0] != "redact"])
        with story.team() as team:
            team.refresh()
            whole(team)
            taken = Counter(
                (entry.data["handle"], content_bytes(team.source, entry.data["text"]).decode())
                for entry in team.store.read()
                if entry.kind == "chat.sent" and "observed" in entry.data
            )
        assert taken == story.theirs


def _without_ids(root: Path) -> dict[str, tuple[bytes, int]]:
    """The counts name an entry by its id, which chance gives."""
    return {path: file for path, file in tree(root).items() if path != ".nbs/counts.json"}
