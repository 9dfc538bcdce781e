"""Which team a command works on, for every command alike: the path, the variable, the nearest."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from doors.inside import TRIPOD, run
from git_repo import Git

from tripod.bus import events as bus
from tripod.ledger.locator import (
    LEDGER,
    has_ledger,
    named,
    nearest_team,
    team_around,
    team_of,
    team_to_begin,
)
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

NAME = "1600000000000000-ann-done-7.event"


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two projects; the current folder is in ``near``, and the variable names ``far``."""
    for name in ("near", "far"):
        (tmp_path / name).mkdir()
        adoption.init(str(tmp_path / name), project=name, origin=f"example.org/{name}", key=False)
    with Team(str(tmp_path / "far/.nbs")) as team:
        bus.publish(team, "ann", "done", "low")
    monkeypatch.setenv(LEDGER, str(tmp_path / "far/.nbs"))
    return tmp_path


def spoil(project: Path) -> None:
    """Change a projected file, so that the judge has something to find."""
    for path in (project / ".nbs/events").glob("*.event"):
        path.write_text(path.read_text().replace("ann", "eve"))


def test_the_judge_judges_the_team_that_the_variable_names(two: Path) -> None:
    spoil(two / "far")
    assert run(two / "near", "verify").code == 1
    assert run(two / "near", "verify", ".").code == 0, "a PATH goes before the variable"
    assert run(two / "far", "verify", "../near").code == 0


def test_the_judge_says_that_the_named_team_is_not_there(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LEDGER, str(two / "nowhere"))
    done = run(two / "near", "verify")
    assert done.code == 3
    assert "nowhere" in done.out.decode() + done.err


@pytest.mark.parametrize("words", [(), ("--fix",)])
def test_the_doctor_visits_the_team_that_the_variable_names(
    two: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (two / "far/.nbs/counts.json").unlink()
    assert b"counts.json" in run(two / "near", "doctor", *words).out
    monkeypatch.setenv(LEDGER, str(two / "nowhere"))
    done = run(two / "near", "doctor", *words)
    assert done.code == 3
    assert "nowhere" in done.err, "it looked at the folder that it was started in"


def test_a_backup_is_restored_into_the_team_that_the_variable_names(two: Path) -> None:
    assert run(two / "near", "backup", str(two / "copy.db")).code == 0
    done = run(two / "near", "restore", str(two / "copy.db"))
    assert done.code == 0, done
    assert f"{two}/far/.nbs/ledger.db" in done.out.decode()


def test_init_takes_the_team_that_the_variable_names(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"There is already: {two}/far/.nbs" in run(two / "near", "init").out.decode()
    assert f"There is already: {two}/near/.nbs" in run(two / "near", "init", ".").out.decode()
    (two / "kept").mkdir()
    monkeypatch.setenv(LEDGER, str(two / "kept"))
    assert f"Begun: {two}/kept/ledger.db" in run(two / "near", "init", "--no-key").out.decode()


def test_every_command_of_a_team_finds_the_same(two: Path) -> None:
    for words in (
        ("bus", "check"), ("show", "0"), ("sync", "--json"), ("seal", "--json"),
        ("export", str(two / "out")), ("backup", str(two / "b.db")), ("scribe", "count"),
    ):  # fmt: skip
        before = Path(two / "near/.nbs/ledger.db").stat().st_mtime_ns
        run(two / "near", *words)
        assert Path(two / "near/.nbs/ledger.db").stat().st_mtime_ns == before, words
    assert b"ann-done" in run(two / "near", "bus", "check").out
    assert b"ann-done" not in run(two / "far", "bus", "check", "-C", "../near").out


# The rule ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["", "/", "/.nbs", "/.nbs/", "/.nbs/ledger.db"])
def test_the_variable_names_a_project_its_team_directory_or_the_ledger(
    two: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.setenv(LEDGER, f"{two}/far{file}")
    assert named() == f"{two}/far/.nbs"


def test_what_is_planted_in_a_team_directory_is_not_taken_for_it(two: Path) -> None:
    for place in (".nbs/.nbs", ".nbs/chat/.nbs", ".nbs/events/.nbs"):
        adoption.init_at(str(two / "near" / place), {}, key=False)
        assert nearest_team(str(two / "near" / place)[:-5]) == f"{two}/near/.nbs"
    adoption.init_at(str(two / "near/.nbs/x"), {}, key=False)
    adoption.init_at(str(two / "near/.nbs/x/.nbs"), {}, key=False)
    for start in ("x", "x/.nbs", "x/.nbs/chat", ".nbs/chat"):
        assert nearest_team(str(two / "near/.nbs" / start)) == f"{two}/near/.nbs", start
    for given in (".nbs", "chat", "x", "x/.nbs"):
        assert team_of(str(two / "near/.nbs" / given)) is None, given
        with collect(str(two / "near/.nbs" / given)) as evidence:
            assert judge(evidence).exit_code == 3, given
    assert team_of(str(two / "near/.nbs")) == f"{two}/near/.nbs"
    assert team_of(str(two / "near")) == f"{two}/near/.nbs"


def test_a_database_beside_a_team_directory_does_not_take_its_place(two: Path) -> None:
    (two / "far/.nbs/ledger.db").rename(two / "near/ledger.db")
    assert team_of(str(two / "near")) == f"{two}/near/.nbs"
    assert nearest_team(str(two / "near")) == f"{two}/near/.nbs"
    (two / "near/.nbs/ledger.db").unlink()  # its counts.json tells that there was one
    assert team_of(str(two / "near")) == f"{two}/near/.nbs"


def test_a_ledger_of_earlier_versions_outside_of_a_team_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "shop/deep").mkdir(parents=True)
    adoption.init_at(str(tmp_path / "shop"), {}, key=False)
    for start in ("shop", "shop/deep"):
        assert nearest_team(str(tmp_path / start)) == f"{tmp_path}/shop"
    assert team_of(str(tmp_path / "shop")) == f"{tmp_path}/shop"
    (tmp_path / "shop/.nbs").mkdir()
    assert team_of(str(tmp_path / "shop")) == f"{tmp_path}/shop"


def test_a_database_of_another_program_is_no_team(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"SQLite format 3\0" + bytes(200))
    assert nearest_team(str(tmp_path)) is None
    (tmp_path / "ledger.db").unlink()
    os.mkfifo(tmp_path / "ledger.db")
    assert nearest_team(str(tmp_path)) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_what_a_stranger_put_into_a_folder_for_all_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".nbs").mkdir()
    os.chown(tmp_path / ".nbs", 4242, 4242)
    assert nearest_team(str(tmp_path)) == f"{tmp_path}/.nbs"
    tmp_path.chmod(0o1777)
    assert nearest_team(str(tmp_path)) is None


def test_where_a_ledger_is_begun(tmp_path: Path) -> None:
    here = tmp_path.resolve()
    for folder in ("repo/.git", "repo/talk/deep", "free/talk", "free/chat", "free/team/.nbs/chat"):
        (here / folder).mkdir(parents=True)
    for folder, home in {
        "repo/talk/deep": "repo/.nbs",
        "repo": "repo/.nbs",
        "free/talk": "free/talk/.nbs",
        "free/chat": "free/.nbs",
        "free/team/.nbs/chat": "free/team/.nbs",
    }.items():
        assert team_around(str(here / folder)) == str(here / home), folder
    assert not has_ledger(str(here / "repo/.nbs"))
    assert team_to_begin(str(here / "repo")) == str(here / "repo/.nbs")


def test_a_path_that_is_not_utf_8_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for words in (("init",), ("chat", "create", "live"), ("verify",), ("doctor",), ("log",)):
        done = run(folder, *words)
        assert done.code == 0, (words, done)


def test_a_current_folder_that_was_removed_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    words = f"cd {folder} && rmdir {folder} && exec {TRIPOD} where"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("the current folder was removed")) == (1, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("closed", [".nbs", ".git", ".git/tripod"])
def test_a_team_that_another_user_closed_is_not_said_to_be_missing(closed: str) -> None:
    with TemporaryDirectory() as name:
        git = Git(Path(name) / "shop")
        Path(name).chmod(0o755)
        adoption.init(str(git.root), project="shop", origin="example.org/shop", key=False)
        (git.root / closed).chmod(0o700)
        by_ledger = (("where",), ("log",), ("bus", "check")) if closed != ".nbs" else ()
        for words in (("verify",), ("doctor",), *by_ledger):
            os.seteuid(65534)
            try:
                done = run(git.root, *words)
            finally:
                os.seteuid(0)
            said = done.err + done.out.decode()
            assert f"{git.root}/{closed} may not be read by this user" in said, (words, done)
            assert "tripod init" not in said
