"""An acknowledgement takes the event's file before it is final: the rename has one winner."""

import os
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from story import Story

from tripod.bus import events as bus
from tripod.errors import NotFoundError
from tripod.ledger.errors import UnwritableError
from tripod.ledger.sqlite.store import Writing
from tripod.projections.engine import file_differences
from tripod.team import adoption
from tripod.team.act import Act
from tripod.team.files import MANY, EventFileMoves
from tripod.team.team import Team


def publish(story: Story, count: int = 1) -> list[str]:
    with story.team() as team:
        return [bus.publish(team, "a", "b", "low", str(n), dedup_window=0) for n in range(count)]


def acked(story: Story) -> list[tuple[str, bool]]:
    """Who acknowledged what, and whether that was observed."""
    with story.team() as team:
        adoption.sync(team)
        assert list(file_differences(team.source, team.disk)) == []
        kinds = [e for e in team.store.read(stream="bus") if e.kind.startswith("bus.acked")]
        return [(entry.actor, "observed" in entry.data) for entry in kinds]


def in_between(do: Callable[[], object]) -> Any:
    """Have others act behind our look at the files, in front of our acknowledgement."""

    def claim_on(*_: object) -> None:
        do()

    return mock.patch.object(bus, "claim_on_event", side_effect=claim_on)


def test_who_comes_second_is_told_so_and_records_nothing(story: Story) -> None:
    (name,) = publish(story)
    with in_between(lambda: story.original.ack(name)), story.team() as team:
        size = team.store.head().size
        with pytest.raises(NotFoundError, match="another program acknowledged it"):
            bus.ack(team, name, actor="ann")
        assert team.store.head().size == size
    assert acked(story) == [("unknown", True)]


def test_the_original_comes_second(story: Story) -> None:
    """Between our rename and our COMMIT it finds the file gone."""
    (name,) = publish(story)
    append = Act.append

    def late(act: Act, new: list[Any]) -> Any:
        if new and new[0].kind == "bus.acked":
            with pytest.raises(FileNotFoundError):
                story.original.ack(name)
        return append(act, new)

    with mock.patch.object(Act, "append", late), story.team() as team:
        bus.ack(team, name, actor="ann")
    assert acked(story) == [("ann", False)]
    assert story.original.processed() == [name]


@pytest.mark.parametrize("count", [5, MANY + 5])
def test_all_at_once_counts_what_it_took_itself(story: Story, count: int) -> None:
    names = publish(story, count)
    takes = EventFileMoves.take

    def late(moves: EventFileMoves, wanted: list[str]) -> list[str]:
        for name in names[:2]:
            story.original.ack(name)
        (story.root / "events/processed" / names[1]).unlink()
        return takes(moves, wanted)

    with mock.patch.object(EventFileMoves, "take", late), story.team() as team:
        assert bus.ack_all(team, actor="ann") == count - 2
    told = acked(story)
    assert sorted(told) == [("ann", False), ("unknown", True), ("unknown", True)]


def test_dead_behind_the_rename_it_is_one_that_another_program_moved(story: Story) -> None:
    class Killed(BaseException):
        pass

    (name,) = publish(story)
    with (
        mock.patch.object(Act, "append", side_effect=Killed),
        mock.patch.object(EventFileMoves, "give_back"),
        story.team() as team,
        pytest.raises(Killed),
    ):
        bus.ack(team, name, actor="ann")
    assert story.original.processed() == [name]
    assert acked(story) == [("unknown", True)]
    with story.team() as team, pytest.raises(NotFoundError):
        bus.ack(team, name, actor="bob")


@pytest.mark.parametrize("count", [1, MANY + 1])
def test_what_is_not_recorded_is_pending_again(story: Story, count: int) -> None:
    names = publish(story, count)
    refuse = mock.patch.object(Act, "append", side_effect=UnwritableError("no space"))
    with refuse, story.team() as team, pytest.raises(UnwritableError):
        bus.ack_all(team, actor="ann")
    assert story.original.pending() == sorted(names)
    assert acked(story) == []


def test_a_commit_that_fails_leaves_the_event_pending(story: Story) -> None:
    (name,) = publish(story)

    leave = Writing.__exit__

    def refused(writing: Writing, *_: object) -> None:
        error = UnwritableError("no space")
        leave(writing, type(error), error, None)
        raise error

    with (
        mock.patch.object(Writing, "__exit__", refused),
        story.team() as team,
        pytest.raises(UnwritableError),
    ):
        bus.ack(team, name, actor="ann")
    assert story.original.pending() == [name]
    assert acked(story) == []


def test_an_event_whose_file_is_not_written_yet_is_acknowledged(story: Story) -> None:
    """Its publisher died between its COMMIT and the file; nobody else can have taken it."""
    with mock.patch.object(Team, "_write_files"):
        (name,) = publish(story)
    assert not os.path.exists(story.root / "events" / name)
    with story.team() as team:
        bus.ack(team, name, actor="ann")
    assert story.original.processed() == [name]
    with story.team() as team, team.act():
        (name,) = [bus.publish(team, "a", "b", "low")]
        bus.ack(team, name, actor="ann")
    assert acked(story) == [("ann", False)] * 2


def test_a_stranger_of_the_same_name_is_kept(story: Story) -> None:
    (name,) = publish(story)
    (story.root / "events/processed").mkdir(exist_ok=True)
    story.original.put(f"events/processed/{name}", b"not an event\n")
    with story.team() as team:
        bus.ack(team, name, actor="ann")
        kept = [e.data for e in team.store.read() if e.kind in ("file.seen", "file.displaced")]
    assert kept
    assert story.original.pending() == []
