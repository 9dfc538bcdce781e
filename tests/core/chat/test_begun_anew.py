"""A chat that was moved away, or removed, and begun anew under its name is a new chat."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from doors.chat.dropped_in import FILE, Chat, chat
from doors.inside import run

from tripod.chat import reader as chat_read
from tripod.decisions import writer as decisions_log

MOVED = "live-20260212_140000.chat"


@pytest.fixture
def talk() -> Iterator[Chat]:
    with chat() as made:
        made.say("ann", "one", "two")
        made.say("bob", "three")
        yield made


def move_away(talk: Chat, name: str = MOVED) -> Path:
    """What the original's ``nbs-chat-init --force`` does before it creates the chat again."""
    folder = talk.file.parent / "archive"
    folder.mkdir(exist_ok=True)
    talk.file.rename(folder / name)
    cursors = talk.file.with_name(f"{talk.file.name}.cursors")
    if cursors.exists():
        cursors.rename(folder / f"{name}.cursors")
    talk.file.with_name(f"{talk.file.name}.lock").unlink(missing_ok=True)
    return folder / name


def judged(talk: Chat) -> list[str]:
    with talk.clock.running():
        done = run(talk.project, "verify", "--no-git")
    return done.out.decode().splitlines() if done.code else []


def by_us(talk: Chat, *words: str) -> int:
    with talk.clock.running():
        return run(talk.project, *words).code


def rebuilt_the_same(talk: Chat) -> bool:
    """Whether a rebuild of removed files gives them back byte by byte, and no other."""
    folder = talk.file.parent
    before = {path: path.read_bytes() for path in folder.rglob("*.chat")}
    for path in before:
        path.unlink()
    assert by_us(talk, "rebuild") == 0
    return before == {path: path.read_bytes() for path in folder.rglob("*.chat")}


@pytest.mark.parametrize("between", [False, True])
def test_a_chat_that_was_moved_away_is_begun_anew(talk: Chat, *, between: bool) -> None:
    old = talk.file.read_bytes()
    moved = move_away(talk)
    if between:  # any command in between does not write it again
        assert by_us(talk, "bus", "check") == 0
        assert not talk.file.exists()
        assert talk("read", FILE).code == 2
        assert talk("send", FILE, "ann", "hello").code == 2
        assert judged(talk) == []
    done = talk("create", FILE)
    assert (done.code, done.err) == (0, "")
    assert talk.lines("count", FILE) == ["0"]
    talk.say("cid", "four")
    assert talk.texts("read", FILE) == ["four"]
    assert talk.lines("participants", FILE)[0].split() == ["cid", "1", "messages"]
    assert talk.file.read_bytes().splitlines()[4] == b"participants: cid(1)"
    assert moved.read_bytes() == old
    assert judged(talk) == []
    assert talk.texts("read", f".nbs/chat/archive/{MOVED}") == ["one", "two", "three"]
    assert rebuilt_the_same(talk)
    assert judged(talk) == []


def test_a_chat_that_was_removed_is_begun_anew(talk: Chat) -> None:
    talk.file.unlink()
    done = talk("create", FILE)
    assert (done.code, done.out.decode()) == (0, f"Created: {talk.file}\n")
    talk.say("cid", "four")
    assert talk.texts("read", FILE) == ["four"]
    assert judged(talk) == []
    assert rebuilt_the_same(talk)
    with talk.team() as team:
        said = [e.data["text"]["text"] for e in team.store.read() if e.kind == "chat.sent"]
    assert said == ["one", "two", "three", "four"], "what was said stays in the ledger"


def test_a_chat_that_is_there_exists_already(talk: Chat) -> None:
    before = talk.file.read_bytes()
    assert talk("create", FILE).code == 1
    assert by_us(talk, "chat", "create", "live") == 1
    assert talk.file.read_bytes() == before


def test_it_can_be_begun_anew_again_and_again(talk: Chat) -> None:
    for number in range(3):
        move_away(talk, f"live-{number}.chat")
        assert talk("create", FILE).code == 0
        talk.say("cid", f"in {number}")
    talk.file.unlink()
    assert talk("create", FILE).code == 0
    talk.say("dee", "last")
    assert talk.texts("read", FILE) == ["last"]
    assert talk.texts("read", ".nbs/chat/archive/live-2.chat") == ["in 1"]
    assert judged(talk) == []
    assert rebuilt_the_same(talk)


@pytest.mark.parametrize("empty", [False, True])
def test_the_originals_own_create_begins_it_anew(talk: Chat, *, empty: bool) -> None:
    talk.original.say("live", "bob", "not taken in yet")
    move_away(talk)
    talk.original.create("live")
    if not empty:
        talk.original.say("live", "eve", "hello")
    assert judged(talk) == []
    assert talk.texts("read", FILE) == ([] if empty else ["hello"])
    shown = talk.texts("read", f".nbs/chat/archive/{MOVED}")
    assert shown == ["one", "two", "three", "not taken in yet"]
    talk.say("cid", "four")
    assert judged(talk) == []
    assert rebuilt_the_same(talk)


def test_references_to_the_old_messages_resolve(talk: Chat) -> None:
    with talk.team() as team:
        decisions_log.log(
            team, decisions_log.DecisionRequest("Old", ["ann"], "because", ["live.chat:~L8"])
        )
    move_away(talk)
    assert talk("create", FILE).code == 0
    talk.say("ann", "new", "newer")
    with talk.team() as team:
        decisions_log.log(
            team, decisions_log.DecisionRequest("New", ["ann"], "because", ["live.chat:~L8"])
        )
        ref = f"archive/{MOVED}:~L7"
        decisions_log.log(
            team, decisions_log.DecisionRequest("Of before", ["ann"], "because", [ref])
        )
        bound = [
            chat_read.messages(team, "live")[1].seq == entry.data["refs"][0]["seq"]
            for entry in team.store.read()
            if entry.kind == "decision.logged"
        ]
    assert bound == [False, True, False]
    assert judged(talk) == []


def test_what_is_unread_stays_so(talk: Chat) -> None:
    talk("read", FILE, "--unread=bob")
    talk.say("ann", "unread")
    move_away(talk)
    assert talk("create", FILE).code == 0
    talk.say("ann", "new")
    assert talk.texts("read", FILE, "--unread=bob") == ["unread", "new"]
    assert talk.texts("read", FILE, "--unread=bob") == []


# What stays a finding ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cut", "emptied", "edited", "cut and moved", "another name"])
def test_a_chat_that_was_cut_is_a_finding(talk: Chat, how: str) -> None:
    data = talk.file.read_bytes()
    head = data[: data.index(b"---\n") + 4]
    lines = data[len(head) :].splitlines(keepends=True)
    if how == "another name":
        move_away(talk, "notes.chat")
        talk.original.create("live")
    elif how == "cut and moved":
        moved = move_away(talk)
        moved.write_bytes(head + b"".join(lines[:2]))
        talk.original.create("live")
    else:
        left = {"cut": lines[:2], "emptied": [], "edited": [lines[1], lines[0], lines[2]]}[how]
        talk.file.write_bytes(head + b"".join(left))
    assert any("drift" in line for line in judged(talk))


def test_an_archive_that_was_changed_is_a_finding(talk: Chat) -> None:
    moved = move_away(talk)
    assert talk("create", FILE).code == 0
    data = moved.read_bytes()
    moved.write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])
    assert any("archive" in line for line in judged(talk))
    moved.unlink()
    assert any("archive" in line for line in judged(talk))


def test_a_removed_chat_is_a_finding_until_somebody_says_what_follows(talk: Chat) -> None:
    os.unlink(talk.file)
    assert any("live.chat" in line for line in judged(talk))
    assert by_us(talk, "bus", "check") == 0
    assert talk.texts("read", FILE) == ["one", "two", "three"]


def test_a_chat_that_was_moved_away_costs_later_commands_no_look(talk: Chat) -> None:
    move_away(talk)
    assert by_us(talk, "bus", "check") == 0
    with talk.team() as team:
        names = [path for (path,) in team.store.db.execute("SELECT path FROM manifest")]
    assert "chat/live.chat" not in names
