"""Claims: one consumer at a time, leases that end, and an agent that starts anew."""

import pytest
from story import BEGIN, Story, folder

from tripod.bus import events as bus
from tripod.bus import reader
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run


def publish(story: Story, type_: str = "work", priority: str = "normal") -> str:
    with story.team() as team:
        return bus.publish(team, "ann", type_, priority)


def claim(story: Story, by: str, name: str | None = None, lease: int = 60) -> bus.Claim:
    with story.team() as team:
        return reader.claim(team, by, name, lease=lease)


def test_the_most_urgent_that_nobody_has_is_taken(story: Story) -> None:
    low, high = publish(story, priority="low"), publish(story, priority="high")
    until = (BEGIN + 60) * 1_000_000
    assert claim(story, "bob") == bus.Claim(high, "bob", until, 1)
    assert claim(story, "cy").name == low
    with pytest.raises(NotFoundError, match="no event to take"):
        claim(story, "dee")


def test_a_claimed_event_stays_pending_and_in_its_place(story: Story) -> None:
    name = publish(story)
    claim(story, "bob")
    with story.team() as team:
        assert [event.name for event in bus.check(team)] == [name]
        assert reader.held(team, story.clock.ns // 1000)[name].holder == "bob"
    assert story.original.pending() == [name]


def test_somebody_elses_event_is_refused_by_name(story: Story) -> None:
    name = publish(story)
    claim(story, "bob", name)
    with pytest.raises(NotFoundError, match=r"is claimed by bob until 2020-09-13T12:27:40Z"):
        claim(story, "cy", name)


def test_a_lease_that_ends_makes_it_attempt_two(story: Story) -> None:
    name = publish(story)
    claim(story, "bob", lease=60)
    story.clock.move(59.999_999)
    with pytest.raises(NotFoundError):
        claim(story, "cy")
    story.clock.move(0.000_001)
    taken = claim(story, "cy")
    assert (taken.name, taken.holder, taken.attempt) == (name, "cy", 2)
    with story.team() as team, pytest.raises(RefusedError, match="is claimed by cy"):
        bus.ack(team, name, actor="bob")
    with story.team() as team:
        bus.ack(team, name, actor="cy")
    with story.team() as team, pytest.raises(NotFoundError):
        bus.ack(team, name, actor="bob")


def test_once_a_lease_has_ended_another_takes_it_by_name(story: Story) -> None:
    name = publish(story)
    claim(story, "bob", name, lease=60)
    story.clock.move(59.999_999)
    with pytest.raises(NotFoundError, match="is claimed by bob"):
        claim(story, "cy", name)
    story.clock.move(0.000_001)
    until = (BEGIN + 120) * 1_000_000
    assert claim(story, "cy", name) == bus.Claim(name, "cy", until, 2)
    with pytest.raises(NotFoundError, match="is claimed by cy"):
        claim(story, "bob", name)


def test_who_has_it_may_take_it_for_longer(story: Story) -> None:
    name = publish(story)
    claim(story, "bob", lease=60)
    story.clock.move(30)
    assert claim(story, "bob", name, lease=60) == bus.Claim(
        name, "bob", (BEGIN + 90) * 1_000_000, 1
    )
    story.clock.move(61)
    assert claim(story, "bob", name).attempt == 2


def test_one_that_is_back_after_its_lease_may_still_acknowledge(story: Story) -> None:
    name = publish(story)
    claim(story, "bob", lease=1)
    story.clock.move(2)
    with story.team() as team:
        bus.ack(team, name, actor="bob")


@pytest.mark.parametrize("actor", ["bob", bus.NOBODY])
def test_the_holder_acknowledges_with_or_without_a_name(story: Story, actor: str) -> None:
    name = publish(story)
    claim(story, "bob")
    with story.team() as team:
        bus.ack(team, name, actor=actor)


def test_all_at_once_takes_claimed_ones_too(story: Story) -> None:
    publish(story)
    claim(story, "bob")
    with story.team() as team:
        assert bus.ack_all(team, actor="cy") == 1
        assert reader.held(team, story.clock.ns // 1000) == {}


def test_a_released_event_is_anybodys(story: Story) -> None:
    name = publish(story)
    claim(story, "bob")
    with story.team() as team, pytest.raises(NotFoundError, match="not claimed by cy"):
        reader.release(team, "cy", name)
    with story.team() as team:
        reader.release(team, "bob", name)
    with story.team() as team, pytest.raises(NotFoundError, match="nothing to give back"):
        reader.release(team, "bob", name)
    assert claim(story, "cy").attempt == 2


def test_what_is_not_pending_cannot_be_taken(story: Story) -> None:
    name = publish(story)
    with story.team() as team:
        bus.ack(team, name)
    for act in (reader.claim, reader.release):
        with story.team() as team, pytest.raises(NotFoundError, match="no pending event"):
            act(team, "bob", name)


@pytest.mark.parametrize("lease", [0, -1, 2**32 + 1])
def test_a_lease_takes_some_time(story: Story, lease: int) -> None:
    publish(story)
    with pytest.raises(BadArgumentError, match=r"^lease: "):
        claim(story, "bob", lease=lease)


@pytest.mark.parametrize("holder", ["", "two words", "unknown", "a/b"])
def test_a_holder_has_a_handle(story: Story, holder: str) -> None:
    publish(story)
    with pytest.raises(BadArgumentError, match=r"^handle: "):
        claim(story, holder)


def test_events_of_others_are_taken_as_they_come(story: Story) -> None:
    publish(story)
    claim(story, "bob")
    name = story.original.publish("x", "y")
    assert claim(story, "cy").name == name
    story.original.ack(name)
    with story.team() as team, pytest.raises(NotFoundError):
        reader.release(team, "cy", name)


def test_claims_are_entries_that_verify(story: Story) -> None:
    name = publish(story)
    claim(story, "bob", lease=1)
    story.clock.move(2)
    claim(story, "cy")
    with story.team() as team:
        reader.release(team, "cy", name)
        kinds = [(entry.kind, entry.actor) for entry in team.store.read()][-3:]
    assert kinds == [("bus.claimed", "bob"), ("bus.claimed", "cy"), ("bus.released", "cy")]
    with collect(str(story.root)) as evidence:
        report = run(evidence)
    assert [outcome for outcome in report.outcomes if outcome.findings] == []


# Waiting ---------------------------------------------------------------------------------------


def test_there_may_be_one_at_once(story: Story) -> None:
    name = publish(story)
    with story.team() as team:
        assert reader.wait_claim(team, "bob", None).name == name


def test_a_lease_that_ends_wakes_who_waits() -> None:
    """By the clock of the host: nothing happens on the disk when a lease ends."""
    with folder() as root:
        told = Story(root)
        told.original.put("events/config.yaml", b"poll-interval: 3600\n")
        told.ack_all(None)  # the change of the configuration is an event as well
        name = publish(told)
        with Team(str(told.root)) as team:
            reader.claim(team, "bob", lease=1)
            taken = reader.wait_claim(team, "cy", 60)
        assert (taken.name, taken.attempt) == (name, 2)


def test_waiting_ends(story: Story) -> None:
    with story.team() as team, pytest.raises(NotFoundError, match="nothing came within 0 s"):
        reader.wait_claim(team, "bob", 0)


# Recovery --------------------------------------------------------------------------------------


def test_an_agent_starts_anew(story: Story) -> None:
    low, high = publish(story, priority="low"), publish(story, priority="high")
    claim(story, "bob")
    claim(story, "cy")
    story.clock.move(5)
    with story.team() as team:
        found = reader.recover(team, "bob")
        assert [event.name for event in found.pending] == [high, low]
        assert found.released == [high]
        assert found.last_at == "2020-09-13T12:26:40.000000Z"
        assert b"bob is back: 2 pending, 1 claims released" in bus.read(team, found.heartbeat)
    assert claim(story, "dee").name == high
    with pytest.raises(NotFoundError):
        claim(story, "dee", low)


def test_a_heartbeat_is_dropped_by_no_window(story: Story) -> None:
    story.original.put("events/config.yaml", b"dedup-window: 3600\n")
    for _ in range(2):
        with story.team() as team:
            reader.recover(team, "bob")
    with story.team() as team:
        assert [event.type for event in bus.check(team)].count("heartbeat") == 2
