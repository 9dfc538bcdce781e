"""Readers: every event once, whoever acknowledged it; and waiting that wakes at once."""

import time
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import Story, folder
from strategies import FEWER

from tripod.bus import events as bus
from tripod.bus import reader as claims
from tripod.bus.reader import QueueWatch
from tripod.errors import BadArgumentError, NotFoundError
from tripod.team.team import Team
from tripod.trust import actors, keys


def publish(story: Story, type_: str = "work", priority: str = "normal") -> str:
    with story.team() as team:
        return bus.publish(team, "ann", type_, priority)


def show(story: Story, reader: str) -> list[str]:
    """What a reader is shown, as its command does it."""
    with story.team() as team:
        team.refresh()
        found = claims.unseen(team, reader)
        claims.mark_seen(team, reader, found)
        return [event.name for event in found.events]


def test_each_reader_sees_each_event_once(story: Story) -> None:
    low, high = publish(story, priority="low"), publish(story, priority="high")
    assert show(story, "bob") == [high, low]
    assert show(story, "bob") == []
    third = publish(story)
    assert show(story, "bob") == [third]
    assert show(story, "cy") == [high, third, low]


def test_acknowledged_events_are_overheard(story: Story) -> None:
    name = publish(story)
    with story.team() as team:
        bus.ack(team, name)
        found = claims.unseen(team, "bob")
        assert [event.name for event in found.events] == [name]
        assert found.acked == {name}
        assert bus.read(team, name, processed=True).startswith(b"source: ann\n")
        with pytest.raises(NotFoundError):
            bus.read(team, name)
        with pytest.raises(NotFoundError):
            bus.read(team, name.replace("ann", "bob"), processed=True)


def test_what_was_not_shown_is_shown_again(story: Story) -> None:
    name = publish(story)
    with story.team() as team:
        claims.unseen(team, "bob")  # and then its output is lost
    assert show(story, "bob") == [name]


def test_who_sees_nothing_new_appends_nothing(story: Story) -> None:
    publish(story)
    show(story, "bob")
    with story.team() as team:
        size = team.store.head().size
    assert show(story, "bob") == []
    with story.team() as team:
        assert team.store.head().size == size


def test_a_place_never_moves_back(story: Story) -> None:
    publish(story)
    with story.team() as team:
        old = claims.unseen(team, "bob")
    publish(story)
    show(story, "bob")
    with story.team() as team:
        claims.mark_seen(team, "bob", old)
    assert show(story, "bob") == []


def test_pruned_events_are_counted(story: Story) -> None:
    publish(story)
    show(story, "bob")
    for _ in range(3):
        publish(story)
    with story.team() as team:
        bus.ack_all(team)
        bus.prune(team, 1)
    publish(story)
    with story.team() as team:
        found = claims.unseen(team, "bob")
        assert (len(found.events), found.pruned) == (1, 3)
        claims.mark_seen(team, "bob", found)
        assert claims.unseen(team, "bob").pruned == 0


def test_a_reader_has_a_handle(story: Story) -> None:
    with story.team() as team, pytest.raises(BadArgumentError, match=r"^reader: "):
        claims.unseen(team, "two words")


def test_who_has_a_key_signs_its_place_and_its_claims(story: Story) -> None:
    publish(story)
    with story.team() as team:
        actors.enrol_actor(team, "bob", keys.no_passphrase)
    show(story, "bob")
    with story.team() as team:
        claims.claim(team, "bob")
        newest = list(team.store.read())[-2:]
    assert [entry.kind for entry in newest] == ["bus.seen", "bus.claimed"]
    assert all(b'"auth":"' in entry.header for entry in newest)


@FEWER
@given(st.lists(st.sampled_from(["publish", "they_publish", "ack_all", "bob", "cy"]), max_size=14))
def test_nobody_misses_or_repeats_an_event(steps: list[str]) -> None:
    with folder() as root:
        story = Story(root)
        seen: dict[str, list[str]] = {"bob": [], "cy": []}
        for step in [*steps, "bob", "cy"]:
            if step == "publish":
                publish(story)
            elif step == "they_publish":
                story.original.publish("x", "y")
            elif step == "ack_all":
                story.ack_all(None)
            else:
                seen[step] += show(story, step)
            story.clock.move()
        every = sorted(story.original.pending() + story.original.processed())
        assert sorted(seen["bob"]) == sorted(seen["cy"]) == every


# Waiting ---------------------------------------------------------------------------------------


def test_what_is_there_is_given_at_once(story: Story) -> None:
    name = publish(story)
    with story.team() as team:
        assert [event.name for event in claims.wait_pending(team, None, None)] == [name]
        assert [event.name for event in claims.wait_unseen(team, "bob", None).events] == [name]
        with pytest.raises(NotFoundError):
            claims.wait_pending(team, "nobody", 0)


def test_a_reader_waits_for_what_it_was_not_shown(story: Story) -> None:
    publish(story)
    show(story, "bob")
    with story.team() as team, pytest.raises(NotFoundError, match=r"nothing came within 0\.01 s"):
        claims.wait_unseen(team, "bob", 0.01)


@pytest.mark.parametrize("foreign", [False, True])
def test_an_event_wakes_who_waits(tmp_path: Path, *, foreign: bool) -> None:
    """Told by the system: the next look of its own accord would come after an hour."""
    story = Story(tmp_path)
    story.original.put("events/config.yaml", b"poll-interval: 3600\n")
    with Team(str(story.root)) as team:
        team.refresh()
        bus.ack_all(team)
        with QueueWatch([team.disk.full("events")], every=1) as watch:
            if not watch.is_told:
                pytest.fail("this system is expected to tell of new files")
        found: list[bus.PendingEvent] = []

        def wait() -> None:
            with Team(str(story.root)) as mine:
                found.extend(claims.wait_pending(mine, None, 60))

        waiting = Thread(target=wait)
        waiting.start()
        if foreign:
            story.clock.ns = time.time_ns()
            name = story.original.publish("x", "y")
        else:
            name = bus.publish(team, "ann", "work", "low")
        waiting.join(30)
        assert not waiting.is_alive()
    assert [event.name for event in found] == [name]


def test_where_nothing_is_told_it_is_looked_again(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.original.put("events/config.yaml", b"notify: poll\npoll-interval: 1\n")
    with Team(str(story.root)) as team:
        team.refresh()
        bus.ack_all(team)
        looks = iter([None, None, "there"])
        begin = time.monotonic()
        assert claims.wait(team, lambda: next(looks), 60) == "there"
        assert time.monotonic() - begin >= 2


def test_a_folder_that_cannot_be_watched_is_looked_at(tmp_path: Path) -> None:
    with QueueWatch([str(tmp_path / "none")], every=0.001) as watch:
        assert not watch.is_told
        watch.wait(60)
    with QueueWatch([str(tmp_path)], every=60, told=False) as watch:
        assert not watch.is_told
        watch.wait(0.001)


def test_a_change_ends_a_wait_and_is_forgotten(tmp_path: Path) -> None:
    with QueueWatch([str(tmp_path)], every=3600) as watch:
        (tmp_path / "a").write_text("a")
        watch.wait(3600)
        begin = time.monotonic()
        watch.wait(0.05)
        assert time.monotonic() - begin >= 0.04
