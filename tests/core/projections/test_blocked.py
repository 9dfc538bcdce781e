"""A symbolic link where a projected file belongs is not replaced: who made it may need it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from story import FIRST, HELLO, Story, story_of, tree

from tripod.bus import events as bus
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import RefusedError
from tripod.projections.bus.format import MAX_FILE
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.checks.drift import IN_THE_WAY, UNREAD
from tripod.verify.evidence import collect
from tripod.verify.run import run

LINKED = ("scribe/log.md", "chat/live.chat", "workers/w.md", "counts.json")


@pytest.fixture
def story() -> Iterator[Story]:
    """A team with a chat, a decision and a worker's file."""
    with story_of() as story:
        story.original.put("workers/w.md", b"# Task\nState: running\n")
        story.run([("sync",), *HELLO, FIRST])
        yield story


def link(story: Story, path: str) -> tuple[Path, bytes]:
    """Move a file away and link to it; give where it is now, and its bytes."""
    file, away = story.root / path, story.root.parent / "docs.md"
    data = file.read_bytes()
    file.rename(away)
    file.symlink_to(os.path.relpath(away, file.parent))
    return away, data


def decide(team: Team) -> None:
    decisions_log.log(
        team, decisions_log.DecisionRequest("Second", ["ann"], "r", ["live.chat:~L7"])
    )


def held(story: Story) -> int:
    with story.team() as team:
        return team.store.head().size


@pytest.mark.parametrize("path", LINKED)
def test_what_would_write_there_is_refused_and_says_what_to_do(story: Story, path: str) -> None:
    away, data = link(story, path)
    size = held(story)
    acts: dict[str, Callable[[Team], object]] = {
        "scribe/log.md": decide,
        "chat/live.chat": lambda team: chat_send.send(team, "live", "ann", "more"),
        "workers/w.md": recover.rebuild,
        "counts.json": lambda team: chat_send.send(team, "live", "ann", "more"),
    }
    for act in (acts[path], recover.rebuild):
        with story.team() as team, pytest.raises(RefusedError, match="nothing was recorded") as no:
            act(team)
        text = str(no.value)
        assert f"{story.root}/{path} is a symbolic link to '../" in text or path == "counts.json"
        assert "move the file itself there" in text
    assert (story.root / path).is_symlink()
    assert away.read_bytes() == data
    assert held(story) == size


@pytest.mark.parametrize("path", LINKED)
def test_other_acts_go_on_and_say_so(story: Story, path: str) -> None:
    away, data = link(story, path)
    with story.team() as team:
        bus.publish(team, "a", "b", "low", "")
        (said,) = team.warnings
        assert said.startswith(f"{path}: it is a symbolic link to '")
        assert "is left as it is" in said
    with story.team() as team:
        team.refresh()
        assert adoption.sync(team).warnings
    assert away.read_bytes() == data
    with collect(str(story.root)) as evidence:
        report = run(evidence)
    findings = [f for o in report.outcomes for f in o.findings if f.where == path]
    found = [f for f in findings if f.check != "count-from-grep"]  # the file has no heading now
    assert [f.severity for f in found] == ["failure"]
    assert "symbolic link" in found[0].message
    file = story.root / path
    file.unlink()
    away.rename(file)
    with story.team() as team:
        decide(team)
        chat_send.send(team, "live", "ann", "more")
        assert recover.rebuild(team).written == []


def test_the_judge_promises_no_rebuild_of_what_stands_in_the_way(story: Story) -> None:
    link(story, "chat/live.chat")
    (story.root / "events/1-a-b-1.event").write_bytes(b"#" * (MAX_FILE + 1))
    with collect(str(story.root)) as evidence:
        (drift,) = (one for one in run(evidence).outcomes if one.check == "drift")
    assert {found.where: found.help for found in drift.findings} == {
        "chat/live.chat": IN_THE_WAY,
        "events/1-a-b-1.event": UNREAD,
    }


def test_a_dangling_link_and_a_pipe_are_not_replaced_either(story: Story) -> None:
    log = story.root / "scribe/log.md"
    log.unlink()
    log.symlink_to("nowhere")
    with story.team() as team, pytest.raises(RefusedError, match="symbolic link to 'nowhere'"):
        decide(team)
    log.unlink()
    os.mkfifo(log)
    with story.team() as team, pytest.raises(RefusedError, match="is a named pipe"):
        decide(team)
    log.unlink()
    with story.team() as team:
        decide(team)
    assert b"Second" in log.read_bytes()


def test_a_log_is_not_begun_through_a_link(tmp_path: Path) -> None:
    """Neither adopted nor replaced: its past would be lost to the ledger."""
    (tmp_path / ".nbs/scribe").mkdir(parents=True)
    (tmp_path / "log.md").write_text("# Decision Log\n\n### D-1 First\n")
    log = tmp_path / ".nbs/scribe/log.md"
    log.symlink_to("../../log.md")
    before = tree(tmp_path)
    with pytest.raises(RefusedError, match=r"symbolic link to '\.\./\.\./log\.md'.*no ledger was"):
        adoption.init(str(tmp_path))
    assert not (tmp_path / ".nbs/ledger.db").exists()
    assert tree(tmp_path) == before
    log.unlink()
    adoption.init(str(tmp_path))
    log.symlink_to("../../log.md")
    with Team(str(tmp_path / ".nbs")) as team, pytest.raises(RefusedError, match="symbolic link"):
        decisions_log.log(team, decisions_log.DecisionRequest("Second", ["ann"], "r"))
    assert log.is_symlink()


def test_a_writer_that_died_does_not_replace_a_link(story: Story) -> None:
    """The entry stands already; its file waits until the link is gone."""
    import drafts

    with story.team() as team:
        text = {"channel": "live", "index": 1, "handle": "bob", "time": 1, "text": "Tea"}
        team.store.append([drafts.sent(**text)])  # type: ignore[arg-type]
    away, data = link(story, "chat/live.chat")
    with story.team() as team:
        team.refresh()
        assert any("symbolic link" in text for text in team.warnings)
    assert away.read_bytes() == data
    (story.root / "chat/live.chat").unlink()
    with story.team() as team:
        team.refresh()
        assert [message.text for message in chat_read.messages(team, "live")] == ["hello", "Tea"]
    assert len((story.root / "chat/live.chat").read_bytes().splitlines()) == 8
