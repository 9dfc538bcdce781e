"""Replacing a file that others may be writing: what comes back, where there is no exchange, who
still has it open.
"""  # noqa: D205 - one thought

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from story import Story, folder

from tripod.bus import events
from tripod.chat import reader as chat_read
from tripod.chat import writer as chat_send
from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.projections import swap
from tripod.projections.chat.format import format_line
from tripod.projections.disk import Disk
from tripod.projections.engine import file_differences
from tripod.projections.projection import File
from tripod.team import adoption
from tripod.team.team import Team

NEW = File(b"new", 0o640)


@pytest.fixture
def story() -> Iterator[Story]:
    with folder() as root:
        story = Story(root)
        story.run([("create", "live"), ("say", "live", "ann", "hello"), ("decide", "D", "r", ())])
        yield story


def line(text: str) -> bytes:
    return format_line("eve", 1_600_000_000, text) + b"\n"


def texts(story: Story) -> list[str]:
    with story.team() as team:
        return [message.text for message in chat_read.messages(team, "live")]


def kinds(story: Story, start: int) -> list[str]:
    with story.team() as team:
        return [entry.kind for entry in team.store.read(start)]


def size(story: Story) -> int:
    with story.team() as team:
        return team.store.head().size


def kept(story: Story) -> list[str]:
    return sorted(path.name for path in story.root.rglob(".tripod-*"))


def whole(story: Story) -> None:
    """All files are as the ledger has them, nothing is left, and nothing more is to be found."""
    with story.team() as team:
        assert adoption.sync(team).entries == 0
        assert list(file_differences(team.source, team.disk)) == []
    assert kept(story) == []


def test_what_was_there_comes_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    done = swap.swap_in(Disk(str(tmp_path)), "a", NEW, b"expected", agreed=True)
    assert done is not None
    assert done.sure
    assert (tmp_path / "a").read_bytes() == b"new"
    assert done.stat == Disk(str(tmp_path)).stat("a")
    said = swap.parse(done.kept)
    assert said is not None
    assert (said.of, said.whole, said.size) == (
        swap.swap_mark(b"a"),
        swap.swap_mark(b"expected"),
        8,
    )
    assert said.inode == (tmp_path / "a").stat().st_ino
    assert swap.take_swapped(Disk(str(tmp_path)), done.kept, 100) == (b"old", False)


def test_who_has_it_open_to_write_is_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    disk = Disk(str(tmp_path))
    with (tmp_path / "a").open("ab") as holder, (tmp_path / "a").open("rb"):
        done = swap.swap_in(disk, "a", NEW, b"old", agreed=True)
        assert done is not None
        assert swap.take_swapped(disk, done.kept, 100) == (b"old", True)
        holder.write(b" and more")
    assert swap.take_swapped(disk, done.kept, 100) == (b"old and more", False)


@pytest.mark.parametrize("what", ["nothing", "folder", "pipe", "link"])
def test_what_is_no_file_stays(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("elsewhere")
    before = os.path.lexists(path) and path.lstat().st_ino
    assert swap.swap_in(Disk(str(tmp_path)), "a", NEW, b"old", agreed=True) is None
    assert (os.path.lexists(path) and path.lstat().st_ino) == before
    assert [item.name for item in tmp_path.iterdir()] == ["a"] * (what != "nothing")


@pytest.mark.parametrize("name", ["", ".tripod-swap-", ".tripod-swap-x", ".tripod-new-1", "a"])
def test_another_name_says_nothing(name: str) -> None:
    assert swap.parse(f"chat/{name}") is None


def test_a_refusal_leaves_the_place_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    refused = OSError(errno.EACCES, "Permission denied")
    with (
        mock.patch.object(swap, "swap_files", side_effect=refused),
        pytest.raises(OSError, match="P"),
    ):
        swap.swap_in(Disk(str(tmp_path)), "a", NEW, b"old", agreed=True)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"old"}


# Where there is no exchange --------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_without_an_exchange_the_old_file_is_kept_by_a_link(
    story: Story, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> int:
        import ctypes

        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(swap, "_renameat2", lambda: missing)
    real = Disk.stage

    def staged(disk: Disk, path: str, file: File, **options: Any) -> Any:
        if path == "chat/live.chat" and not texts_added:
            texts_added.append("between")
            story.original.append(path, line("between"))
        return real(disk, path, file, **options)

    texts_added: list[str] = []
    with mock.patch.object(Disk, "stage", staged), story.team() as team:
        chat_send.send(team, "live", "ann", "mine")
        assert team.warnings == []
    assert texts(story) == ["hello", "mine", "between"]
    whole(story)
    with story.team() as team:
        chat_send.send(team, "live", "ann", "more")
        (story.root / "scribe/log.md").unlink()
        (story.root / "counts.json").unlink()
        adoption.sync(team)
        assert any("cannot exchange two files" in text for text in team.warnings)


def test_without_links_either_the_rename_is_all_there_is(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = OSError(errno.EPERM, "Operation not permitted")
    monkeypatch.setattr(swap, "_renameat2", lambda: None)
    with mock.patch.object(os, "link", side_effect=refused), story.team() as team:
        chat_send.send(team, "live", "ann", "mine")
        chat_send.create(team, "other")
    assert texts(story) == ["hello", "mine"]
    assert (story.root / "chat/other.chat").exists()
    whole(story)


def test_where_nobody_tells_who_has_it_open_it_is_kept_for_a_while(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "_lease", lambda _: None)
    for number in range(swap.MOST_KEPT + 3):
        with story.team() as team:
            chat_send.send(team, "live", "ann", f"mine {number}")
    assert len(kept(story)) == swap.MOST_KEPT
    with story.team() as team:
        assert adoption.sync(team).entries == 0
    assert len(kept(story)) == swap.MOST_KEPT
    monkeypatch.setattr(swap, "GRACE_S", -(10**10))
    whole(story)


# Who writes into a replaced file ---------------------------------------------------------------


def test_who_keeps_the_old_file_open_is_listened_to(story: Story) -> None:
    with (story.root / "chat/live.chat").open("ab", buffering=0) as holder:
        with story.team() as team:
            chat_send.send(team, "live", "ann", "mine")
        assert len(kept(story)) == 1
        holder.write(line("one") + line("two")[:-9])
        with story.team() as team:
            events.publish(team, "a", "b", "low")  # whoever comes next
        assert texts(story) == ["hello", "mine", "one"]
        holder.write(line("two")[-9:])
        with story.team() as team:
            assert adoption.sync(team).kinds == {"chat.sent": 1}
            assert any("still has the file open" in text for text in team.warnings)
        assert texts(story) == ["hello", "mine", "one", "two"]
        assert len(kept(story)) == 1
        with story.team() as team:
            events.publish(team, "a", "b", "low")
            assert team.warnings == []
    whole(story)


def test_a_replaced_file_that_was_taken_in_is_not_taken_in_again(story: Story) -> None:
    real = swap.swap_files

    def late(one: str, other: str) -> bool:
        if not came:
            came.append(other)
            story.original.append("chat/live.chat", line("between"))
        return real(one, other)

    came: list[str] = []
    with (
        mock.patch.object(swap, "swap_files", late),
        mock.patch("tripod.team.files.Files.drop"),  # as if each writer died before it
        story.team() as team,
    ):
        chat_send.send(team, "live", "ann", "mine")
    assert kept(story)
    start = size(story)
    assert texts(story) == ["hello", "mine", "between"]
    whole(story)
    assert kinds(story, start) == []


def test_a_change_of_what_was_there_is_kept_once(story: Story) -> None:
    real = swap.swap_files
    path = story.root / "chat/live.chat"

    def late(one: str, other: str) -> bool:
        if not came:
            came.append(path.read_bytes().replace(b"\n---\n", b"\n---\nQUFB\n"))
            story.original.put("chat/live.chat", came[0], 0o600)
        return real(one, other)

    came: list[bytes] = []
    start = size(story)
    with mock.patch.object(swap, "swap_files", late), story.team() as team:
        chat_send.send(team, "live", "ann", "mine")
    assert kinds(story, start).count("file.displaced") == 1
    assert texts(story) == ["hello", "mine"]
    whole(story)


def test_an_edit_is_kept_before_who_comes_next_heals_the_file(story: Story) -> None:
    """A writer died behind its commit; somebody edits; a third acts on something else."""
    with mock.patch.object(Team, "_write_files"), story.team() as team:
        chat_send.send(team, "live", "ann", "unwritten")
    edited = (story.root / "chat/live.chat").read_bytes().replace(b"\n---\n", b"\n---\nQUFB\n")
    story.original.put("chat/live.chat", edited, 0o600)
    start = size(story)
    with story.team() as team:
        events.publish(team, "a", "b", "low")
        seqs = [e.seq for e in team.store.read(start) if e.kind == "file.displaced"]
        assert [team.source.body(seq)["path"] for seq in seqs] == ["chat/live.chat"]
    assert texts(story) == ["hello", "unwritten"]
    whole(story)


def test_what_came_before_a_writer_died_is_not_taken_in_twice(story: Story) -> None:
    """It was taken in by the act that died behind its commit; the file shows it, not the act's."""
    story.original.append("chat/live.chat", line("before"))
    story.original.log("Before")
    with mock.patch.object(Team, "_write_files"), story.team() as team:
        chat_send.send(team, "live", "ann", "unwritten")
        decisions_log.log(team, decisions_log.DecisionRequest("Unwritten", ["ann"], "r"))
    story.original.append("chat/live.chat", line("behind"))
    story.original.log("Behind")
    with story.team() as team:
        team.refresh()
        assert [d.title for d in decisions_read.query(team)] == [
            "D",
            "Before",
            "Unwritten",
            "Behind",
        ]
    assert texts(story) == ["hello", "before", "unwritten", "behind"]
    whole(story)


def test_a_torn_end_of_the_log_is_known_as_ours(story: Story) -> None:
    real = os.write

    def torn(fd: int, data: bytes) -> int:
        if data.startswith(b"\n---\n\n### D-"):
            return real(fd, data[: len(data) // 2])
        return real(fd, data)

    with mock.patch.object(os, "write", torn), story.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest("Torn", ["ann"], "r"))
        assert "No space left" in team.warnings[-1]
    story.original.append("scribe/log.md", b"\n---\n\n### D-7 Theirs\n- **Status:** decided\n")
    with story.team() as team:
        team.refresh()
        assert [d.title for d in decisions_read.query(team)] == ["D", "Torn", "Theirs"]
    log = (story.root / "scribe/log.md").read_bytes()
    assert log.count(b"### D-") == 3
    whole(story)


def test_a_name_whose_size_is_none_is_no_name_of_a_kept_file() -> None:
    """Found by torture: Python reads no number of 5,000 digits."""
    name = f".tripod-swap-{'a' * 16}-{'b' * 16}-%s-{'c' * 16}-3f-{'d' * 12}"
    assert swap.parse(name % "12") is not None
    assert swap.parse(name % ("9" * 5000)) is None
