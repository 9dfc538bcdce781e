"""Decisions and messages of other forms, taken in: intervals, long chats, a death on the way."""

import json
import os
from pathlib import Path
from unittest import mock

import pytest
from doors.inside import run
from git_repo import Git

from tripod.chat.writer import ROTATE_ABOVE, adopt_messages
from tripod.cli import adoption
from tripod.errors import RefusedError
from tripod.projections.chat.jsonl import FIELDS, FoundMessage, parse_jsonl_messages
from tripod.team.files import Files
from tripod.team.team import Team


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for words in (("init",), ("chat", "create", "live"), ("chat", "send", "live", "ann", "hi")):
        assert run(tmp_path, *words).code == 0
    return tmp_path


def sound(shop: Path) -> None:
    """Verify finds nothing, and there is nothing to rebuild."""
    done = run(shop, "verify")
    assert done.code == 0, done.out.decode()
    assert b"Rebuilt: 0 files written" in run(shop, "rebuild").out


def madr(shop: Path, number: int, date: str) -> None:
    folder = shop / "docs/decisions"
    folder.mkdir(parents=True, exist_ok=True)
    text = f"# Number {number}\n\n* Date: {date}\n\n## Decision\n\nBecause of {number}.\n"
    (folder / f"{number:04}-number.md").write_text(text)


def lines(count: int) -> bytes:
    made = ({"text": f"text {n}", "handle": "bob", "time": 1_600_000_000 + n} for n in range(count))
    return b"".join(json.dumps(one).encode() + b"\n" for one in made)


def messages(count: int) -> list[FoundMessage]:
    return parse_jsonl_messages(lines(count), dict.fromkeys(FIELDS, "") | _SAME).messages


_SAME = {name: name for name in FIELDS}


def test_each_interval_that_is_reached_asks_for_a_review(shop: Path) -> None:
    for number in range(1, 46):
        madr(shop, number, f"2021-{1 + number // 28:02}-{1 + number % 28:02}")
    assert run(shop, "adopt-log", "docs/decisions").code == 0
    due = run(shop, "pythia", "due").out.decode().splitlines()
    assert [line.rpartition("(")[2] for line in due] == ["20 decisions): waiting"] * 2
    sound(shop)


def test_days_that_are_shared_get_seconds_of_their_own(shop: Path) -> None:
    for number in range(1, 4):
        madr(shop, number, "2021-03-04")
    madr(shop, 4, "2021-03-03")
    done = run(shop, "adopt-log", "docs/decisions", "--json")
    found = [one["id"] for one in json.loads(done.out)["decisions"]]
    assert found == ["D-1614816000", "D-1614816001", "D-1614816002", "D-1614729600"]
    sound(shop)


def test_a_long_chat_is_split_as_usual(shop: Path) -> None:
    count = 2 * ROTATE_ABOVE + 10
    (shop / "chat.jsonl").write_bytes(lines(count))
    for new in (count, 0):
        done = run(shop, "adopt-log", "chat.jsonl", "--channel", "live", "--json")
        assert list(json.loads(done.out)["messages"].values()) == [new]
    assert int(run(shop, "chat", "count", "live").out) <= ROTATE_ABOVE
    hits = run(shop, "chat", "search", "live", "text", "--include-archives", "--json").out
    assert [json.loads(line)["text"] for line in hits.splitlines()] == [
        f"text {n}" for n in range(count)
    ]
    sound(shop)


@pytest.mark.parametrize("what", ["decisions", "messages"])
def test_who_dies_before_the_files_are_written_left_all_of_it(shop: Path, what: str) -> None:
    madr(shop, 1, "2021-03-04")
    (shop / "chat.jsonl").write_bytes(lines(3))
    words = ["docs/decisions"] if what == "decisions" else ["chat.jsonl", "--channel", "live"]
    with mock.patch.object(Files, "project", side_effect=KeyboardInterrupt):
        assert run(shop, "adopt-log", *words).code == 130
    again = run(shop, "adopt-log", *words)
    assert again.code == 0
    assert b"already" in again.out
    if what == "decisions":
        assert b"Number 1" in (shop / ".nbs/scribe/log.md").read_bytes()
    assert run(shop, "chat", "count", "live").out == (b"1\n" if what == "decisions" else b"4\n")
    sound(shop)


def test_behind_a_torn_line_nothing_is_put(shop: Path) -> None:
    with (shop / ".nbs/chat/live.chat").open("ab") as file:
        file.write(b"Ym9iOiBo")
    with Team(shop) as team:
        team.refresh()
        size = team.head().size
        with pytest.raises(RefusedError, match="its last line is not at its end"):
            adopt_messages(team, "live", "../chat.jsonl", messages(2))
        assert team.head().size == size
    assert run(shop, "chat", "send", "live", "ann", "now").code == 0
    with Team(shop) as team:
        assert len(adopt_messages(team, "live", "../chat.jsonl", messages(2))[0]) == 2
    sound(shop)


def test_the_same_messages_may_go_into_two_channels(shop: Path) -> None:
    assert run(shop, "chat", "create", "other").code == 0
    (shop / "chat.jsonl").write_bytes(lines(2) * 2)
    for channel in ("live", "other"):
        done = run(shop, "adopt-log", "chat.jsonl", "--channel", channel)
        assert b"Taken in: 4 messages" in done.out, "equal lines are messages of their own"
    sound(shop)


def test_what_cannot_stand_in_the_log_is_refused_before_anything_is_recorded(shop: Path) -> None:
    madr(shop, 1, "2021-03-04")
    (shop / "docs/decisions/0002-odd.md").write_text("# A\x1bB\n\n## Decision\n\nYes.\n")
    (shop / "chat.jsonl").write_bytes(lines(2))
    before = run(shop, "log").out
    done = run(shop, "adopt-log", "docs/decisions", "chat.jsonl", "--channel", "live")
    assert done.code != 0
    assert "docs/decisions/0002-odd.md: line 1: title" in done.err
    assert "\x1b" not in done.err
    assert run(shop, "log").out == before


def test_files_that_are_not_taken_say_why(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with bytes that are no text ended in the words of a damaged ledger."""
    name = os.fsdecode(b"bad\xff.jsonl")
    (shop / name).write_bytes(lines(2))
    done = run(shop, "adopt-log", name, "--channel", "live")
    assert (done.code, "its name is not UTF-8" in done.err) == (1, True), done
    (shop / "docs").mkdir()
    assert "docs: no file in it is named as" in run(shop, "adopt-log", "docs").err
    madr(shop, 1, "2021-03-04")
    madr(shop, 2, "2021-03-05")
    monkeypatch.setattr(adoption, "_MOST_FILES", 1)
    assert "2 decisions; name at most 1 files" in run(shop, "adopt-log", "docs/decisions").err


def test_a_link_that_lies_in_a_folder_is_not_followed(shop: Path) -> None:
    """A clone can hold one that leads to a private file: what is taken in is pushed to others."""
    madr(shop, 1, "2021-03-04")
    (shop.parent / "private.md").write_text("# My own\n\n## Decision\n\nNobody's business.\n")
    (shop / "docs/decisions/0002-link.md").symlink_to(shop.parent / "private.md")
    done = run(shop, "adopt-log", "docs/decisions")
    assert done.code == 1
    assert b"Taken in: 1 decision into" in done.out
    assert "0002-link.md: it is a symbolic link, and is not followed" in done.err
    assert b"private" not in run(shop, "log", "--json").out
    named = run(shop, "adopt-log", "docs/decisions/0002-link.md")
    assert named.code == 0, "a person named it"


def test_a_long_decision_is_cut_in_the_log_and_kept_in_its_entry(shop: Path) -> None:
    text = "# Long\n\n## Decision\n\n" + "ä " * 20_000 + "\n"
    (shop / "docs").mkdir()
    (shop / "docs/0001-long.md").write_text(text)
    assert run(shop, "adopt-log", "docs").code == 0
    with Team(shop) as team:
        (entry,) = team.store.read(kinds=("decision.logged",))
        assert team.source.content(entry.data["source"]) == text.encode()
        assert entry.data["rationale"].endswith("…")
        assert entry.data["observed"] == {"path": "../docs/0001-long.md", "claim": "unknown"}
    sound(shop)


def test_what_a_peer_adopted_is_not_adopted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clones hold the same files: the second one has the entries of the first already."""
    remote = Git(tmp_path / "remote")
    remote("init", "--quiet", "--bare", "store.git")
    words = ("adopt-log", "docs/decisions", "chat.jsonl", "--channel", "live")

    def clone(name: str) -> Git:
        remote("clone", "--quiet", "store.git", str(tmp_path / name))
        monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / f"home-{name}"))
        return Git(tmp_path / name, made=False)

    one = clone("one")
    madr(one.root, 1, "2021-03-04")
    (one.root / "chat.jsonl").write_bytes(lines(2))
    one("add", "--all")
    one("commit", "--quiet", "--message", "files")
    for step in (("init",), ("chat", "create", "live"), words, ("seal",)):
        assert run(one.root, *step).code == 0
    one("push", "--quiet", "origin", "HEAD", "refs/tripod/*:refs/tripod/*")
    two = clone("two")
    joined = run(two.root, "init", "--from", "origin")
    assert b"Merged" in joined.out, joined.err
    done = json.loads(run(two.root, *words, "--json").out)
    assert done["decisions"] == []
    assert list(done["messages"].values()) == [0]
    assert run(two.root, "scribe", "count").out == b"1\n"
    sound(two.root)
