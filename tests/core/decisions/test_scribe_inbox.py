"""The Scribe's inbox: what it subscribes to, until it says that it handled it."""

from collections.abc import Iterator

import pytest
from story import Clock, Original, Story, folder

from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.decisions.reader import SUBSCRIBED, inbox
from tripod.decisions.writer import handled
from tripod.errors import BadArgumentError
from tripod.team import adoption
from tripod.team.team import Team


@pytest.fixture
def story() -> Iterator[Story]:
    with folder() as root:
        story = Story(root)
        story.run([("create", "live")])
        yield story


def listed(team: Team, who: str | None = None) -> list[tuple[str, str]]:
    return [(item.priority, item.type) for item in inbox(team, who)]


def test_it_holds_what_the_seeds_name_and_nothing_else(story: Story) -> None:
    with story.team() as team:
        assert inbox(team) == []
        for type_ in (*SUBSCRIBED, "heartbeat", "decision-logged", "pythia-checkpoint"):
            events.publish(team, "ann", type_, "normal")
        assert sorted(item.type for item in inbox(team)) == sorted(SUBSCRIBED)


def test_what_is_urgent_comes_first_and_of_that_what_addresses_the_scribe(story: Story) -> None:
    with story.team() as team:
        events.publish(team, "ann", "task-complete", "low", "done")
        chat_send.send(team, "live", "ann", "look @bob")
        chat_send.send(team, "live", "ann", "look @scribe")
        found = inbox(team)
        assert [(item.type, item.to) for item in found] == [
            ("chat-mention", "scribe"),
            ("chat-mention", "bob"),
            ("chat-message", None),
            ("chat-message", None),
            ("task-complete", None),
        ]
        assert found[0].payload.endswith("look @scribe")
        assert inbox(team, "bob")[0].to == "bob"


def test_looking_handles_nothing_and_saying_so_does(story: Story) -> None:
    with story.team() as team:
        events.publish(team, "ann", "task-complete", "low")
        first = inbox(team)
        assert inbox(team) == first
        events.publish(team, "ann", "chat-message", "low")
        handled(team, first[-1].seq)
        assert listed(team) == [("low", "chat-message")]
        size = team.store.head().size
        handled(team, first[-1].seq)  # again, and back: nothing is recorded
        handled(team, 0)
        assert team.store.head().size == size
        assert len(inbox(team, "other")) == 2
        with pytest.raises(BadArgumentError, match=f"entries 0 to {size - 1}"):
            handled(team, size)
        assert [name.type for name in events.check(team)].count("task-complete") == 1


def test_what_others_acknowledged_is_still_to_handle(story: Story) -> None:
    with story.team() as team:
        theirs = events.publish(team, "ann", "task-complete", "low")
        own = events.publish(team, "ann", "chat-message", "low")
        events.ack(team, theirs, actor="bob")
        events.ack(team, own, actor="scribe")
        (item,) = inbox(team)
        assert (item.type, item.acked) == ("task-complete", True)


def test_what_was_processed_before_the_ledger_is_handled() -> None:
    with folder() as root:
        clock = Clock()
        original = Original(root / ".nbs", clock)
        original.ack(original.publish("ann", "task-complete"))
        original.publish("ann", "chat-message")
        with clock.running():
            adoption.init(str(root), scribe="scribe")
            with Team(str(root / ".nbs")) as team:
                assert listed(team) == [("normal", "chat-message")]
        clock.move()
        original.ack(original.pending()[0])
        with clock.running(), Team(str(root / ".nbs")) as team:
            team.refresh()
            assert [(item.type, item.acked) for item in inbox(team)] == [("chat-message", True)]


def test_a_reader_of_the_bus_does_not_empty_it(story: Story) -> None:
    from tripod.bus.reader import mark_seen, unseen

    with story.team() as team:
        events.publish(team, "ann", "task-complete", "low")
        mark_seen(team, "scribe", unseen(team, "scribe"))
        assert len(inbox(team)) == 1
