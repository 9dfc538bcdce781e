"""Others delete files of the queue: gone means gone, where nothing else came over the files."""

import shutil
from collections.abc import Callable, Iterator
from unittest import mock

import pytest
from story import FIRST, HELLO, Story, story_of, tree

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.projections.disk import Disk
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.files import Files
from tripod.team.team import Team
from tripod.verify.check import Finding, Report
from tripod.verify.evidence import collect
from tripod.verify.run import run


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with a chat, a decision, and events that are noted as they stand."""
    with story_of(
        *HELLO,
        FIRST,
        ("publish", "x", "y", "low", "1", 0),
        ("publish", "x", "y", "low", "2", 0),
        ("ack", 0),
        ("sync",),
    ) as story:
        yield story


def names(story: Story, done: str = "") -> list[str]:
    return sorted(path.name for path in (story.root / "events" / done).glob("*.event"))


def clear(story: Story, done: str = "") -> list[str]:
    """Delete every event's file of a folder, as ``rm`` does; give their names."""
    found = names(story, done)
    for name in found:
        (story.root / "events" / done / name).unlink()
    return found


def kinds(story: Story, start: int) -> list[str]:
    with story.team() as team:
        return [entry.kind for entry in team.store.read(start)]


def report(story: Story) -> Report:
    with collect(str(story.root)) as evidence:
        return run(evidence)


def findings(story: Story) -> list[Finding]:
    return [f for o in report(story).outcomes for f in o.findings]


def look(story: Story) -> list[str]:
    """Any command, and what it warns of."""
    with story.team() as team:
        team.refresh()
        return team.warnings


def size(story: Story) -> int:
    with story.team() as team:
        return team.store.head().size


def test_pending_events_that_are_deleted_stay_away_and_are_acknowledged(story: Story) -> None:
    held = size(story)
    gone = clear(story)
    assert gone
    assert [one for one in findings(story) if one.severity == "failure"] == []
    (said,) = look(story)
    assert f"{len(gone)} pending events deleted by another program, so acknowledged: " in said
    assert "deleted-events: restore" in said
    assert names(story) == []
    with story.team() as team:
        assert list(bus.check(team)) == []
        taken = list(team.store.read(held))
        acked = [entry.data for entry in taken if entry.kind == "bus.acked"]
        assert [body["name"] for body in acked] == gone
        assert {body["observed"]["path"] for body in acked} == {f"events/{name}" for name in gone}
        assert [e.data["names"] for e in taken if e.kind == "bus.pruned"] == [gone]
        assert adoption.sync(team).entries == 0
        assert list(file_differences(team.source, team.disk)) == []
        assert recover.rebuild(team).written == []
    assert names(story) == []
    assert findings(story) == []
    drift = next(one for one in report(story).outcomes if one.check == "drift")
    assert drift.coverage["events deleted by others"] == len(gone)


def test_processed_events_that_are_deleted_are_pruned(story: Story) -> None:
    held = size(story)
    gone = clear(story, "processed")
    assert gone
    assert findings(story) == []
    with story.team() as team:
        assert adoption.sync(team).kinds == {"bus.pruned": 1}
    assert kinds(story, held) == ["bus.pruned"]
    assert names(story, "processed") == []
    assert findings(story) == []


def test_acknowledged_by_the_original_and_pruned_between_two_looks(story: Story) -> None:
    name = names(story)[0]
    story.original.ack(name)
    (story.root / "events/processed" / name).unlink()
    held = size(story)
    look(story)
    assert kinds(story, held) == ["bus.acked", "bus.pruned"]
    assert name not in names(story) + names(story, "processed")


def test_the_team_may_ask_for_them_back(story: Story) -> None:
    story.original.put("events/config.yaml", b"deleted-events: restore\n")
    look(story)
    before = tree(story.root)
    gone = clear(story)
    assert [text for text in look(story) if "is written again" in text]
    assert tree(story.root) == before
    assert names(story) == gone
    clear(story, "processed")
    look(story)
    assert names(story, "processed") == [], "what is processed waits for nobody"


def test_a_checkpoint_event_comes_back_and_it_is_said(story: Story) -> None:
    with story.team() as team:
        for _ in range(12):
            bus.publish(team, "x", "y", "low", dedup_window=0)
        name = bus.publish(team, "scribe", "pythia-checkpoint", "high", "c", dedup_window=0)
        adoption.sync(team)
    clear(story)
    told = [one for one in findings(story) if one.check == "events-processed"]
    assert any(name in one.message and "its file is gone" in one.message for one in told)
    assert [text for text in look(story) if name in text and "only an assessment" in text]
    assert names(story) == [name]
    told = [one for one in findings(story) if one.check == "events-processed"]
    assert any(name in one.message and "was deleted" in one.message for one in told)


def replace_queue(story: Story) -> None:
    """Another disk is mounted there, or git made the folder anew."""
    events = story.root / "events"
    events.rename(story.project / "away")
    (events / "processed").mkdir(parents=True)


def check_out(story: Story) -> None:
    """An older commit of all of the team's files."""
    clear(story)
    clear(story, "processed")
    with story.team() as team:
        from tripod.recovery.rebuild import rebuild_past, rebuilt_files

        with rebuild_past(team, 2) as source:
            files = [item for name in ("counts", "chat") for item in rebuilt_files(source, name)]
    for path, file in files:
        (story.root / path).write_bytes(file.data)


def with_it(path: str) -> Callable[[Story], object]:
    """All events and something else are gone."""

    def strike(story: Story) -> None:
        clear(story)
        target = story.root / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    return strike


BLOWS: dict[str, Callable[[Story], object]] = {
    "the whole folder is gone": lambda story: shutil.rmtree(story.root / "events"),
    "processed is gone": with_it("events/processed"),
    "the folder is another one": replace_queue,
    "the log is gone as well": with_it("scribe/log.md"),
    "the chat is gone as well": with_it("chat/live.chat"),
    "the counts are gone as well": with_it("counts.json"),
    "an older commit": check_out,
}


@pytest.mark.parametrize("blow", BLOWS)
def test_what_more_than_events_went_with_is_no_deletion(story: Story, blow: str) -> None:
    before = names(story), names(story, "processed")
    held = size(story)
    BLOWS[blow](story)
    look(story)
    if blow == "an older commit":  # who only reads leaves it
        assert (names(story), names(story, "processed")) == ([], [])
        story.run([("sync",)])
    assert (names(story), names(story, "processed")) == before
    assert not {"bus.acked", "bus.pruned"} & set(kinds(story, held))
    with story.team() as team:
        adoption.sync(team)
        assert [event.name for event in bus.check(team)]


def test_a_rebuild_writes_all_of_it(story: Story) -> None:
    before = tree(story.root)
    clear(story)
    clear(story, "processed")
    with story.team() as team:
        recover.rebuild(team)
    assert tree(story.root) == before
    for path in before:
        (story.root / path).unlink()
    with story.team() as team:
        recover.rebuild(team)
    assert tree(story.root) == before


@pytest.mark.parametrize("done", ["", "processed"])
def test_who_died_while_it_wrote_them_again_is_followed(story: Story, done: str) -> None:
    """The next command sees an intact log and gone events: they are still written again."""

    class Killed(BaseException):
        pass

    before = tree(story.root)
    clear(story, done)
    (story.root / "chat/live.chat").unlink()
    put = Files._put

    def once(files: Files, path: str, want: object) -> None:
        if path.endswith(".event"):
            files.write("chat/live.chat")
            raise Killed
        put(files, path, want)  # type: ignore[arg-type]

    with mock.patch.object(Files, "_put", once), story.team() as team, pytest.raises(Killed):
        team.refresh()
    assert (story.root / "chat/live.chat").exists()
    look(story)
    assert tree(story.root) == before


def test_what_could_not_be_written_again_is_tried_again(story: Story) -> None:
    before = tree(story.root)
    clear(story)
    (story.root / "chat/live.chat").unlink()
    write = Disk.write

    def refuse(disk: Disk, path: str, *given: object, **more: object) -> object:
        if path.endswith(".event"):
            raise PermissionError(13, "no")
        return write(disk, path, *given, **more)  # type: ignore[arg-type]

    with mock.patch.object(Disk, "write", refuse):
        look(story)
    assert names(story) == []
    look(story)
    assert tree(story.root) == before


def test_an_event_whose_writer_died_was_not_deleted(story: Story) -> None:
    with mock.patch.object(Team, "_write_files"), story.team() as team:
        name = bus.publish(team, "a", "b", "low", dedup_window=0)
    clear(story)
    look(story)
    assert names(story) == [name], "the others were deleted, and this one was yet to be written"


def test_what_was_acknowledged_by_who_died_and_pruned_by_others_stays_away(story: Story) -> None:
    name = names(story)[0]
    with mock.patch.object(Team, "_write_files"), story.team() as team:
        bus.ack(team, name, actor="ann")
    (story.root / "events/processed" / name).unlink()
    for _ in range(2):
        with story.team() as team:
            adoption.sync(team)
    assert name not in names(story) + names(story, "processed")
    assert findings(story) == []


def test_a_move_between_our_two_looks_is_no_deletion(story: Story) -> None:
    """The original acknowledges while we list its folders."""
    name = names(story)[0]
    (story.root / "events" / names(story)[-1]).unlink()
    listed = Disk.names
    moved: list[str] = []

    def late(disk: Disk, where: str) -> list[str]:
        found = listed(disk, where)
        if where == "events" and not moved:
            story.original.ack(name)
            moved.append(name)
            found = [one for one in found if one != name]
        return [one for one in found if where != "events/processed" or one != name]

    held = size(story)
    with mock.patch.object(Disk, "names", late):
        look(story)
    with story.team() as team:
        adoption.sync(team)
        taken = [e.data for e in team.store.read(held) if e.kind == "bus.acked"]
    assert [body["observed"]["path"] for body in taken if body["name"] == name] == [
        f"events/processed/{name}"
    ]
    assert name in names(story, "processed")


def test_others_go_on_while_a_chat_is_written(story: Story) -> None:
    """A deletion is one whatever we do at the time."""
    clear(story)
    with story.team() as team:
        chat_send.send(team, "live", "ann", "more")
    assert [name for name in names(story) if "-x-y-" in name] == []
