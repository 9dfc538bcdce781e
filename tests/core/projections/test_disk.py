"""Many files at once: whole or not at all, never over somebody else's, nothing left behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EMFILE
from itertools import count
from pathlib import Path

import pytest
from story import Story

from tripod.agents.wrapper import write_json
from tripod.ledger import files as ledger_files
from tripod.ledger.files import replace_file
from tripod.projections.disk import Disk, FirstLooks, TooBigError, write_missing_to_disk
from tripod.projections.projection import File

PUT: dict[str, Callable[[str], object]] = {
    "a file of the team": lambda path: Disk(os.path.dirname(path)).write(
        os.path.basename(path), File(b"new", 0o600)
    ),
    "a file of the team, anew": lambda path: Disk(os.path.dirname(path)).write(
        f"{os.path.basename(path)}.2", File(b"new", 0o600), anew=True
    ),
    "a key or a seal": lambda path: replace_file(path, b"new", 0o600),
    "a step of a run": lambda path: write_json(path, {}),
}


@pytest.mark.parametrize("how", PUT)
def test_the_disk_has_the_bytes_before_the_name_and_the_name_before_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    steps: list[str] = []
    fsync = os.fsync

    def synced(fd: int) -> None:
        fsync(fd)
        steps.append("folder" if os.path.isdir(f"/dev/fd/{fd}") else "file")

    def named(name: str) -> None:
        real = getattr(os, name)

        def call(*paths: str) -> None:
            real(*paths)
            steps.append("name")

        monkeypatch.setattr(os, name, call)

    (tmp_path / "x").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", synced)
    named("rename")
    named("link")
    PUT[how](str(tmp_path / "x"))
    assert steps == ["file", "name", "folder"]


def test_the_end_of_the_log_is_on_the_disk_before_it_is_answered(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ledger_files, "BOOT_ID", "/nonexistent"
    )  # the system does not name its starts
    story.run([("decide", "One", "because", ())])
    steps: list[int] = []
    fdatasync = os.fdatasync

    def synced(fd: int) -> None:
        fdatasync(fd)
        steps.append(os.fstat(fd).st_size)

    monkeypatch.setattr(os, "fdatasync", synced)
    story.run([("decide", "Two", "because", ())])
    assert steps == [(story.root / "scribe/log.md").stat().st_size]


def names(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


def test_many_files_are_written_where_none_stand(tmp_path: Path) -> None:
    disk = Disk(str(tmp_path))
    (tmp_path / "a").mkdir()
    (tmp_path / "a/2").write_bytes(b"theirs")
    files = [(f"a/{n}", File(b"%d" % n, 0o640)) for n in range(4)] + [("b/c", File(b"", 0o600))]
    stats = write_missing_to_disk(disk, files)
    assert [stat is None for stat in stats] == [False, False, True, False, False]
    assert (tmp_path / "a/2").read_bytes() == b"theirs"
    assert (tmp_path / "a/3").read_bytes() == b"3"
    assert names(tmp_path) == ["a/0", "a/1", "a/2", "a/3", "b/c"]
    assert stats[4] == disk.stat("b/c")
    assert stats[0] is not None
    assert stats[0].mode == 0o640


def test_what_the_system_refuses_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(str(tmp_path))
    real, calls = os.link, iter(range(9))

    def refuse(old: str, new: str) -> None:
        if next(calls) == 2:
            raise OSError(28, "No space left on device", new)
        real(old, new)

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_missing_to_disk(disk, [(f"a/{n}", File(b"x", 0o600)) for n in range(5)])
    assert names(tmp_path) == ["a/0", "a/1"]


@pytest.mark.parametrize("foreign", [False, True])
def test_a_full_disk_leaves_a_file_as_it_was_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, foreign: bool
) -> None:
    def refuse(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "pin").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        replace_file(str(tmp_path / "pin"), b"new", 0o600, foreign_folder=foreign)
    assert names(tmp_path) == ["pin"]
    assert (tmp_path / "pin").read_bytes() == b"old"


def test_a_full_disk_leaves_no_torn_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fchmod, iter(range(9))

    def refuse(fd: int, mode: int) -> None:
        if next(calls) == 2:
            raise OSError(28, "No space left on device")
        real(fd, mode)

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_missing_to_disk(
            Disk(str(tmp_path)), [(f"a/{n}", File(b"x", 0o600)) for n in range(5)]
        )
    assert names(tmp_path) == []


def test_a_file_that_grows_while_it_is_read_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"12345")
    real, calls = os.fstat, count()

    def grow(fd: int) -> os.stat_result:
        found = real(fd)
        if next(calls) == 0:  # the one look judges what stands there, and asks for its size
            path.write_bytes(b"x" * (3 << 20))
        return found

    monkeypatch.setattr(os, "fstat", grow)
    with pytest.raises(TooBigError, match="grew while it was read"):
        Disk(str(tmp_path)).read("log", 100)


def test_a_folder_that_leads_away_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "team/a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        write_missing_to_disk(Disk(str(tmp_path / "team")), [("a/x", File(b"x", 0o600))])
    assert names(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("steady", [False, True])
def test_what_stands_behind_a_folder_that_leads_away_is_not_there_however_it_is_refused(
    tmp_path: Path, steady: bool
) -> None:
    (tmp_path / "a").symlink_to("x" * 300)  # whatever is asked behind it is refused
    assert Disk(str(tmp_path), steady=steady).read("a/x", 100) is None


@pytest.mark.parametrize("steady", [False, True])
def test_only_what_ends_so_is_counted(tmp_path: Path, steady: bool) -> None:
    for name in ("a.event", "b.event", ".tmp-1-2.event", "c.eventful", "event", "config.yaml"):
        (tmp_path / name).touch()
    assert Disk(str(tmp_path), steady=steady).count("", ".event") == 2
    assert Disk(str(tmp_path), steady=steady).count("nowhere", ".event") == 0


def test_a_first_look_gives_what_was_read_then_whatever_came_since(tmp_path: Path) -> None:
    first, file = FirstLooks(), tmp_path / "log.md"
    disk = Disk(str(tmp_path), first=first)
    file.write_bytes(b"one\n")
    assert disk.read("log.md", 100) == b"one\n"
    with file.open("ab") as added:
        added.write(b"two\n")
    assert disk.read("log.md", 100) == b"one\n"
    assert disk.read("log.md", 5) == b"one\n"
    file.unlink()
    assert disk.read("log.md", 100) == b"one\n"
    first.close()
    assert disk.read("log.md", 100) is None


def test_first_looks_leave_most_of_the_files_that_may_be_open_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `verify` of a team with many chats cannot open what it is to judge."""
    monkeypatch.setattr(os, "sysconf", {"SC_OPEN_MAX": 40}.__getitem__)
    first, before = FirstLooks(), len(os.listdir("/dev/fd"))
    for number in range(30):
        (tmp_path / f"{number}.md").write_bytes(b"x")
        assert Disk(str(tmp_path), first=first).read(f"{number}.md", 1) == b"x"
    assert len(os.listdir("/dev/fd")) == before + 10
    first.close()
    assert len(os.listdir("/dev/fd")) == before


def test_a_file_is_read_where_no_more_may_be_open_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int) -> int:
        raise OSError(EMFILE, os.strerror(EMFILE))

    monkeypatch.setattr(os, "dup", refuse)
    (tmp_path / "a.md").write_bytes(b"x")
    assert Disk(str(tmp_path), first=FirstLooks()).read("a.md", 1) == b"x"


def test_few_bytes_of_chats_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FirstLooks, "MOST_BYTES", 5)
    disk = Disk(str(tmp_path), first=FirstLooks())
    for path, later in ("a.chat", b"one"), ("b.chat", b"two"):
        (tmp_path / path).write_bytes(b"one")
        assert disk.read(path, 100) == b"one"
        (tmp_path / path).write_bytes(b"two")
        assert disk.read(path, 100) == later
