"""Acts on the event queue: what they decide, refuse and leave behind."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import BEGIN, Story, folder
from strategies import FEWER

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError, DuplicateDroppedError, NotFoundError
from tripod.projections.bus.format import PRIORITIES, Event, parse_event
from tripod.team.act import settings_of_queue
from tripod.team.team import Team


def publish(
    story: Story, source: str = "a", type_: str = "b", *, dedup_window: int | None = None
) -> str:
    with story.team() as team:
        return bus.publish(team, source, type_, "low", dedup_window=dedup_window)


# publish, dedup --------------------------------------------------------------------------------


def test_a_published_event_is_its_file(story: Story) -> None:
    with story.team() as team:
        name = bus.publish(team, "ann", "task-done", "high", "two\nlines\n")
        assert bus.read(team, name) == (story.root / "events" / name).read_bytes()
    assert name == f"{BEGIN * 1_000_000}-ann-task-done-{os.getpid()}.event"
    assert parse_event((story.root / "events" / name).read_bytes()) == Event(
        "ann", "task-done", "high", "2020-09-13T12:26:40Z", "ann:task-done", "two\nlines"
    )


def test_names_are_unique_within_a_microsecond(story: Story) -> None:
    names = [publish(story) for _ in range(5)]
    assert len(set(names)) == 5
    assert sorted(names) == names


@pytest.mark.parametrize(
    ("window", "later", "dropped"),
    [
        (0, 0, False),
        (1, 0, True),
        (10, 9.999_999, True),
        (10, 10, True),
        (10, 10.000_001, False),
        (10**15, 60, True),
    ],
)
def test_the_dedup_window_has_an_edge(
    story: Story, window: int, later: float, *, dropped: bool
) -> None:
    first = publish(story)
    story.clock.move(later)
    if dropped:
        with pytest.raises(DuplicateDroppedError, match=first):
            publish(story, dedup_window=window)
        assert len(story.original.pending()) == 1
    else:
        assert publish(story, dedup_window=window) != first


@pytest.mark.parametrize("priority", PRIORITIES)
def test_an_equal_event_of_any_priority_is_a_duplicate(story: Story, priority: str) -> None:
    with story.team() as team:
        bus.publish(team, "a", "b", priority)
    with pytest.raises(DuplicateDroppedError):
        publish(story, dedup_window=60)


def test_dedup_looks_at_pending_events_alone(story: Story) -> None:
    name = publish(story)
    with story.team() as team:
        bus.ack(team, name)
    publish(story, dedup_window=60)


def test_the_configured_window_holds_unless_another_is_given(story: Story) -> None:
    story.original.put("events/config.yaml", b"dedup-window: 60\n")
    publish(story)
    publish(story, dedup_window=0)
    with pytest.raises(DuplicateDroppedError):
        publish(story)


@pytest.mark.parametrize("type_", ["decision-logged", "pythia-checkpoint"])
def test_the_configured_window_drops_no_decision_of_the_scribe(story: Story, type_: str) -> None:
    story.original.put("events/config.yaml", b"dedup-window: 3600\n")
    with story.team() as team:
        team.refresh()
        assert team.scribe is not None
        for source in ("scribe", team.scribe):
            names = {bus.publish(team, source, type_, "low") for _ in range(3)}
            assert len(names) == 3
            with pytest.raises(DuplicateDroppedError):
                bus.publish(team, source, type_, "low", dedup_window=3600)
        bus.publish(team, "ann", type_, "low")
        with pytest.raises(DuplicateDroppedError):
            bus.publish(team, "ann", type_, "low")


def test_foreign_events_count_as_duplicates(story: Story) -> None:
    story.original.publish("x", "y")
    with pytest.raises(DuplicateDroppedError):
        publish(story, "x", "y", dedup_window=1)


def test_events_of_decisions_and_messages_are_never_dropped(story: Story) -> None:
    story.original.put("events/config.yaml", b"dedup-window: 3600\n")
    with story.team() as team:
        chat_send.create(team, "live")
        for number in range(3):
            chat_send.send(team, "live", "ann", "hi @bob")
            decisions_log.log(team, decisions_log.DecisionRequest(f"T{number}", ["ann"], "r"))
        types = [event.type for event in bus.check(team)]
    assert types.count("chat-message") == types.count("chat-mention") == 3
    assert types.count("decision-logged") == 3


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", "b", "low"), "source"),
        ((" \t", "b", "low"), "source"),
        (("a", "b/c", "low"), "type"),
        (("a", "b\n", "low"), "type"),
        (("a" * 128, "b", "low"), "source"),
        (("a" * 127, "b" * 127, "low"), "event"),
        (("a", "b", "urgent"), "priority"),
        (("a", "b", "low", "x" * (1024 * 1024 + 1)), "payload"),
        (("a", "b", "low", "\ud800"), "payload"),
    ],
)
def test_what_cannot_stand_in_a_file_is_refused(
    story: Story, arguments: tuple[str, str, str], field: str
) -> None:
    with story.team() as team:
        size = team.store.head().size
        with pytest.raises(BadArgumentError, match=rf"^{field}"):
            bus.publish(team, *arguments)
        assert team.store.head().size == size


def test_a_payload_of_a_mebibyte_is_taken(story: Story) -> None:
    text = "ü\n" * (1024 * 1024 // 3)
    with story.team() as team:
        name = bus.publish(team, "a", "b", "low", text)
        event = parse_event(bus.read(team, name))
        assert event is None or event.payload == text.removesuffix("\n")


# check, read, ack ------------------------------------------------------------------------------


def test_check_gives_the_most_urgent_first_then_the_oldest(story: Story) -> None:
    with story.team() as team:
        for priority in ("low", "critical", "normal", "high", "critical"):
            bus.publish(team, "a", priority, priority)
            story.clock.move()
        found = [(event.priority, event.us) for event in bus.check(team)]
    times = [BEGIN * 1_000_000 + second * 1_000_000 for second in (1, 4, 3, 2, 0)]
    assert found == list(zip(["critical", "critical", "high", "normal", "low"], times, strict=True))


def test_an_event_is_acknowledged_once(story: Story) -> None:
    name = publish(story)
    data = (story.root / "events" / name).read_bytes()
    with story.team() as team:
        bus.ack(team, name, actor="ann")
        for act in (bus.ack, bus.read):
            with pytest.raises(NotFoundError):
                act(team, name)
    assert (story.root / "events/processed" / name).read_bytes() == data
    assert story.original.pending() == []


def test_ack_all_fits_the_source_exactly(story: Story) -> None:
    for source in ("a", "a", "ab", "A"):
        publish(story, source)
    with story.team() as team:
        assert bus.ack_all(team, "a") == 2
        assert bus.ack_all(team, "a") == 0
        assert bus.ack_all(team, "b") == 0
        assert [event.source for event in bus.check(team, "ab")] == ["ab"]
        assert bus.ack_all(team) == 2
    assert len(story.original.processed()) == 4
    assert story.original.pending() == []


# prune, status ---------------------------------------------------------------------------------


def test_a_prune_of_long_names_takes_as_many_entries_as_it_needs(story: Story) -> None:
    hidden = "\x01" * 220  # as JSON six bytes each
    for number in range(300):
        name = f"{BEGIN * 1_000_000 + number}-{hidden}-{number:04}-1.event"
        story.original.put(f"events/processed/{name}", b"source: a\ntype: b\npriority: low\n")
    with story.team() as team:
        assert bus.prune(team, 1).files == 300
        kinds = [entry.kind for entry in team.store.read()]
    assert kinds.count("bus.pruned") > 1
    assert story.original.processed() == []


def test_status_counts_without_a_cap(story: Story) -> None:
    story.original.put("events/config.yaml", b"ack-timeout: 100\n")
    for number in range(300):
        story.original.publish(f"s{number}", "y")
    oldest = story.clock.ns // 1000
    story.clock.move(100)
    for priority in ("critical", "high"):
        with story.team() as team:
            bus.publish(team, "a", priority, priority)
    with story.team() as team:
        bus.ack(team, story.original.pending()[0])
        now = story.clock.ns // 1000
        status = bus.status(team, now)
        assert status.total == 301 + 1  # the change of the configuration is an event
        assert status.pending == {"critical": 1, "high": 1, "normal": 300, "low": 0}
        assert (status.oldest_us, status.processed, status.stale) == (oldest, 1, 0)
        assert bus.status(team, now + 1).stale == 299
        assert bus.status(team, now + 1).ack_timeout == 100


@FEWER
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=12))
def test_the_table_and_the_folders_tell_the_same(acts: list[tuple[int, str]]) -> None:
    with folder() as root:
        story = Story(root)
        for what, source in acts:
            step = [
                ("publish", source, "t", "low", "", 0),
                ("ack", 1),
                ("ack_all", source),
                ("prune", 150),
            ][what]
            story.step(step)
        with Team(str(story.root)) as team:
            assert {e.name for e in bus.check(team)} == set(story.original.pending())
            status = bus.status(team, 0)
            done = [story.root / "events/processed" / n for n in story.original.processed()]
            assert status.processed == len(done)
            assert status.processed_bytes == sum(path.stat().st_size for path in done)


def test_settings_are_those_last_taken_in(story: Story) -> None:
    with story.team() as team:
        assert settings_of_queue(team)["pythia_interval"] == 20
    story.original.put("events/config.yaml", b"pythia-interval: 3\n")
    with story.team() as team:
        team.refresh()
        assert settings_of_queue(team)["pythia_interval"] == 3
        rows = team.store.db.execute("SELECT settings FROM inputs").fetchall()
        assert json.loads(rows[0][0])["pythia_interval"] == 3
