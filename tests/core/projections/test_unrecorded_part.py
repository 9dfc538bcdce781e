"""What is left of a file once the pieces that a ledger holds are taken out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tripod.bus import events
from tripod.chat import writer
from tripod.decisions.writer import DecisionRequest, log
from tripod.projections.chat.format import format_line, split_chat_file
from tripod.projections.engine import desired_file
from tripod.projections.erasure import unrecorded_part, unrecorded_pieces
from tripod.team import adoption
from tripod.team.team import Team

CHAT, LOG = "chat/live.chat", "scribe/log.md"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    adoption.init(str(tmp_path), key=False)
    with Team(tmp_path) as team:
        writer.create(team, "live")
        for text in ("one", "two", "two"):
            writer.send(team, "live", "ann", text)
        for title in ("First", "Second"):
            log(team, DecisionRequest(title, ("ann",), "Why not.", refs=("live.chat:~L7",)))
        yield team


def shown(team: Team, path: str) -> bytes:
    file = desired_file(team.source, path)
    assert file is not None
    return file.data


def part(team: Team, path: str, data: bytes) -> bytes | None:
    return unrecorded_part(team.source, path, data, shown(team, path))


@pytest.mark.parametrize("path", [CHAT, LOG, "counts.json"])
def test_nothing_is_left_of_what_the_ledger_shows(team: Team, path: str) -> None:
    assert part(team, path, shown(team, path)) is None


def test_nothing_is_left_of_an_older_state(team: Team) -> None:
    before = {path: shown(team, path) for path in (CHAT, LOG)}
    writer.send(team, "live", "bob", "three")
    log(team, DecisionRequest("Third", ("bob",), "So.", refs=("live.chat:~L7",)))
    for path, data in before.items():
        assert part(team, path, data) is None


def test_messages_that_no_entry_holds_are_left_each_as_often_as_it_is_new(team: Team) -> None:
    new = format_line("bob", 1_770_904_800, "new") + b"\n"
    data = shown(team, CHAT) + new + new + b"no line at all\n"
    left = part(team, CHAT, data)
    assert left is not None
    file = split_chat_file(left)
    assert file is not None
    assert [line + b"\n" for line in file.lines] == [new, new, b"no line at all\n"]
    assert file.header is not None
    assert file.header.participants == (("bob", 2),)
    assert unrecorded_pieces(team.source, CHAT, left) == unrecorded_pieces(team.source, CHAT, data)
    assert part(team, CHAT, left) == left, "once more takes nothing more away"


def test_decisions_and_prose_that_no_entry_holds_are_left(team: Team) -> None:
    data = shown(team, LOG)
    other = data[data.index(b"### D-") :].replace(b"### D-", b"### D-1").replace(b"First", b"Other")
    left = part(team, LOG, data + b"\n" + other.partition(b"\n### ")[0] + b"\n\n## Some prose\n")
    assert left is not None
    assert b"Other" in left
    assert b"Some prose" in left
    assert b"First" not in left
    assert b"Second" not in left
    assert left.startswith(b"# Decision Log")


def test_an_event_is_left_whole_or_not_at_all(team: Team) -> None:
    name = events.publish(team, "ann", "done", "low", "x")
    path = f"events/{name}"
    data = (Path(team.root) / path).read_bytes()
    for at in (path, f"events/processed/{name}"):
        assert unrecorded_part(team.source, at, data, b"") is None
    assert unrecorded_part(team.source, "events/1-ann-done-2.event", data, b"") == data


def test_a_file_without_pieces_is_left_unless_it_is_the_same(team: Team) -> None:
    assert unrecorded_part(team.source, "workers/x.md", b"text", b"text") is None
    assert unrecorded_part(team.source, "workers/x.md", b"text", b"other") == b"text"
