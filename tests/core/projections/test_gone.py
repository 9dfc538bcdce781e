"""A file that vanished and is written again leaves an entry: deletions are not mended unseen."""

import shutil
from collections.abc import Iterator
from typing import Any
from unittest import mock

import drafts
import pytest
from story import FIRST, HELLO, Story, story_of, tree

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.projections.disk import Disk
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Finding
from tripod.verify.evidence import collect
from tripod.verify.run import run


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with a chat, a decision, a worker's file, and an event pending and one processed."""
    with story_of() as story:
        story.original.put("workers/w.md", b"# Task\nState: running\n")
        story.original.ack(story.original.publish("x", "y"))
        story.run([("sync",), *HELLO, FIRST])
        yield story


def gone(story: Story) -> list[dict[str, Any]]:
    """Bodies of the entries that tell of displaced and vanished files."""
    with story.team() as team:
        return [e.data for e in team.store.read() if e.kind == "file.displaced"]


def told(story: Story) -> list[Finding]:
    with collect(str(story.root)) as evidence:
        return [f for o in run(evidence).outcomes for f in o.findings]


@pytest.mark.parametrize("path", ["scribe/log.md", "chat/live.chat", "workers/w.md", "counts.json"])
def test_a_file_that_vanished_leaves_a_trace(story: Story, path: str) -> None:
    before = tree(story.root)
    (story.root / path).unlink()
    with story.team() as team:
        team.refresh()
        assert [text for text in team.warnings if f"{path}: " in text]
    assert tree(story.root) == before
    (body,) = gone(story)
    assert body["path"] == path
    assert "content" not in body
    (found,) = told(story)
    assert found.severity == "warning"
    assert f"{path} was written anew: the " in found.message
    assert found.message.endswith(" is gone")
    with story.team() as team:
        team.refresh()
        adoption.sync(team)
        assert recover.rebuild(team).written == []
    assert len(gone(story)) == 1


def test_events_one_by_one_and_many_as_a_folder(story: Story) -> None:
    story.original.put("events/config.yaml", b"deleted-events: restore\n")
    story.run([("sync",)])
    with story.team() as team:
        names = [bus.publish(team, "a", "b", "low", str(n), dedup_window=0) for n in range(30)]
    before = tree(story.root)
    (story.root / "events" / names[3]).unlink()
    with story.team() as team:
        adoption.sync(team)
    assert [body["path"] for body in gone(story)] == [f"events/{names[3]}"]
    shutil.rmtree(story.root / "events/processed")
    for name in names:
        (story.root / "events" / name).unlink()
    with story.team() as team:
        adoption.sync(team)
    assert tree(story.root) == before
    queue, done = gone(story)[1:]
    assert (done["path"].rpartition("/")[0], queue["path"]) == ("events/processed", "events")
    assert queue["reason"].startswith(f"30 files were gone: {names[0]}, {names[1]}")
    assert queue["reason"].endswith(" and 27 more")


def test_all_files_gone_and_rebuilt_is_told_once(story: Story) -> None:
    before = tree(story.root)
    for path in before:
        (story.root / path).unlink()
    with story.team() as team:
        recover.rebuild(team)
        assert list(file_differences(team.source, team.disk)) == []
    assert tree(story.root) == before
    count = len(gone(story))
    assert {body["path"] for body in gone(story)} >= {"scribe/log.md", "chat/live.chat"}
    with story.team() as team:
        recover.rebuild(team)
    assert len(gone(story)) == count


def test_a_file_that_cannot_be_written_back_is_told_once(story: Story) -> None:
    """Each command tries again; none of them repeats what was said."""
    (story.root / "chat/live.chat").unlink()
    refuse = mock.patch.object(Disk, "write", side_effect=PermissionError(13, "no"))
    with refuse:
        for _ in range(3):
            with story.team() as team:
                team.refresh()
    assert [body["path"] for body in gone(story)] == ["chat/live.chat"]
    with story.team() as team:
        team.refresh()
        assert (story.root / "chat/live.chat").exists()
        assert [message.text for message in chat_read.messages(team, "live")] == ["hello"]


def test_a_writer_that_died_before_its_files_is_no_deletion(story: Story) -> None:
    with mock.patch.object(Team, "_write_files"), story.team() as team, team.act() as act:
        act.append([drafts.channel_created("new", "ann")])
    with story.team() as team:
        team.refresh()
    assert (story.root / "chat/new.chat").exists()
    assert gone(story) == []


def test_a_prune_of_the_original_is_no_deletion(story: Story) -> None:
    story.original.put("events/config.yaml", b"retention-max-bytes: 10\n")
    with story.team() as team:
        adoption.sync(team)
    story.original.prune(1)
    with story.team() as team:
        assert adoption.sync(team).kinds == {"bus.pruned": 1}
    assert gone(story) == []
