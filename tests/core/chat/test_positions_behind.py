"""Read positions where the files are behind the ledger: nobody is taken to have read too much."""

from pathlib import Path
from unittest import mock

import pytest
from story import Story

from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.projections.chat.format import parse_chat_cursors
from tripod.team import adoption
from tripod.team.team import Team

LIVE = "chat/live.chat"


class Killed(BaseException):
    """The power went."""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Six messages of ann's; eve has read four of them."""
    made = Story(tmp_path)
    made.run([("create", "live"), *[("say", "live", "ann", str(n)) for n in range(6)]])
    made.step(("seek", "live", "eve", 3))
    return made


def unread(team: Team, handle: str) -> list[str]:
    return [message.text for message in chat_read.unread(team, "live", handle)]


def shown(story: Story) -> dict[str, int]:
    return parse_chat_cursors((story.root / f"{LIVE}.cursors").read_bytes())


def die_in(story: Story, name: str, *arguments: object) -> None:
    with mock.patch.object(Team, "_write_files", side_effect=Killed), pytest.raises(Killed):
        getattr(story, name)(*arguments)
    story.clock.move()


@pytest.mark.parametrize(
    ("act", "left", "there"), [(("archive", "live", 4), 4, 1), (("delete", "live", 3), 4, 3)]
)
def test_who_writes_what_a_dead_writer_split_off_tells_where_everybody_is(
    story: Story, act: tuple[str, object], left: int, there: int
) -> None:
    die_in(story, *act)
    with story.team() as team:
        team.refresh()
        assert chat_read.count(team, "live") == left
    assert shown(story)["eve"] == there


def test_what_stood_there_before_a_split_is_no_news_behind_it(story: Story) -> None:
    die_in(story, "archive", "live", 4)
    story.they_read("live", "bob", 1)
    with story.team() as team:
        adoption.sync(team)
        assert unread(team, "eve") == ["4", "5"]
        assert unread(team, "bob") == ["2", "3", "4", "5"]
    assert shown(story) == {"ann": 3, "eve": 1}


def test_whoever_speaks_behind_an_unwritten_message_has_not_read_it(story: Story) -> None:
    die_in(story, "say", "live", "ann", "6")
    story.original.say("live", "eve", "mine")
    story.they_read("live", "eve", 6)
    with story.team() as team:
        adoption.sync(team)
        assert unread(team, "eve") == ["4", "5", "6"]


def test_what_others_read_while_an_act_is_open_is_taken_in(story: Story) -> None:
    with story.team() as team:
        with team.act():
            chat_send.send(team, "live", "ann", "6")
            story.clock.move()
            story.they_read("live", "eve", 4)
            story.clock.move()
        assert unread(team, "eve") == ["5", "6"]
        assert shown(story)["eve"] == 4
