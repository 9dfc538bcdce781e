"""Older states of the files: what a checkout, a stash or a backup puts back is no edit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from doors.inside import run
from git_repo import Git

from tripod.chat import writer
from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.projections import engine, intake
from tripod.team import adoption

WARNED = "an older state, as of entry "


def said(where: Path, *words: str) -> str:
    done = run(where, *words)
    assert done.code == 0, done
    return done.out.decode()


def decide(where: Path, title: str) -> None:
    words = ("--rationale", "It works.", "-p", "ann", "--ref", "live#last")
    said(where, "scribe", "log", title, *words)


def publish(where: Path, text: str) -> str:
    return said(where, "bus", "publish", "ann", "note", "low", text).strip()


def size_of(git: Git) -> int:
    with read_only(database_of(f"{git.root}/.nbs")) as db:
        return SQLiteReader(db).size


def findings(git: Git) -> list[dict[str, Any]]:
    """What verify finds, but for the modes that git gives files: it knows none of ours."""
    value = json.loads(run(git.root, "verify", "--json").out)
    return [
        finding | {"check": check["check"]}
        for check in value["checks"]
        for finding in check["findings"]
        if not finding["message"].startswith("has mode ")
    ]


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted((root / ".nbs").rglob("*"))
        if path.is_file()
        and not path.name.startswith("ledger.db")
        and path.suffix != ".lock"
        and path.name not in (".gitignore", "side.chat.cursors")
    }


def commit(git: Git, message: str) -> None:
    git("add", "--all", "--force", ".nbs")
    git("commit", "--quiet", "-m", message)


@pytest.fixture
def shop(tmp_path: Path) -> Git:
    """A team whose files are tracked, as those of an earlier version: more on ``work``."""
    git = Git(tmp_path / "shop")
    git.commit("src/main.py", b"print()\n")
    adoption.init(str(git.root), project="shop", origin="example.org/shop", key=False)
    (git.root / ".nbs/.gitignore").write_text("ledger.db*\n*.lock\n")
    said(git.root, "chat", "create", "live")
    said(git.root, "chat", "send", "live", "ann", "one")
    decide(git.root, "First")
    first = publish(git.root, "one")
    publish(git.root, "two")
    commit(git, "one")
    git("checkout", "--quiet", "-b", "work")
    said(git.root, "chat", "send", "live", "bob", "two")
    decide(git.root, "Second")
    said(git.root, "chat", "create", "side")
    said(git.root, "chat", "send", "side", "bob", "aside")
    publish(git.root, "three")
    said(git.root, "bus", "ack", first)
    said(git.root, "chat", "read", "live", "--unread", "ann")
    commit(git, "two")
    said(git.root, "verify")
    return git


READING = (
    ("chat", "read", "live"),
    ("bus", "check"),
    ("scribe", "summary"),
    ("chat", "read", "live", "--unread", "ann"),
    ("show",),
    ("verify",),
)


def test_a_switch_of_branch_there_and_back_is_one_warning(shop: Git) -> None:
    newest, size = files(shop.root), size_of(shop)
    shop("checkout", "--quiet", "main")
    older = files(shop.root)
    assert older != newest
    (found,) = findings(shop)
    assert (found["check"], found["severity"]) == ("drift", "warning")
    assert WARNED in found["message"]
    for words in READING:
        done = run(shop.root, *words)
        assert done.code == 0, done
        assert (done.err + done.out.decode()).count(WARNED) == 1, done
        assert files(shop.root) == older, words
    assert shop("status", "--porcelain") == ""
    shop("checkout", "--quiet", "work")
    assert files(shop.root) == newest
    assert WARNED not in run(shop.root, "bus", "check").err
    assert findings(shop) == []
    assert size_of(shop) == size, "nothing was taken in"


def test_a_checkout_that_takes_the_files_away_leaves_git_nothing_to_see(tmp_path: Path) -> None:
    git = Git(tmp_path / "shop")
    git.commit("a", b"a\n")
    adoption.init(str(git.root), project="shop", origin="example.org/shop", key=False)
    said(git.root, "chat", "create", "live")
    git("checkout", "--quiet", "-b", "old")
    commit(git, "as an earlier version did")
    git("checkout", "--quiet", "main")
    said(git.root, "chat", "send", "live", "ann", "after the switch")
    assert git("status", "--porcelain") == ""
    git("checkout", "--quiet", "old")


def test_the_next_act_writes_the_newest_state(shop: Git) -> None:
    newest = files(shop.root)
    shop("checkout", "--quiet", "main")
    done = run(shop.root, "bus", "publish", "ann", "note", "low", "four")
    assert done.code == 0, done
    assert f"{WARNED}" in done.err
    after = files(shop.root)
    assert {path: after.get(path) for path in newest} == newest
    assert len(after) == len(newest) + 1
    assert findings(shop) == []


@pytest.mark.parametrize("command", ["sync", "rebuild", "doctor"])
def test_who_asks_for_it_gets_the_newest_state(shop: Git, command: str) -> None:
    newest, size = files(shop.root), size_of(shop)
    shop("checkout", "--quiet", "main")
    said(shop.root, command, *(["--fix"] if command == "doctor" else []))
    assert files(shop.root) == newest
    assert size_of(shop) == size
    assert findings(shop) == []


def test_events_alone_that_a_checkout_removed_were_not_deleted(shop: Git) -> None:
    for text in ("five", "six"):
        publish(shop.root, text)
    commit(shop, "events alone")
    newest, size = files(shop.root), size_of(shop)
    shop("checkout", "--quiet", "HEAD~1")
    for _ in range(2):
        assert WARNED in run(shop.root, "bus", "check").err
        assert WARNED in said(shop.root, "verify")
    assert size_of(shop) == size
    shop("checkout", "--quiet", "work")
    assert files(shop.root) == newest
    said(shop.root, "bus", "check")
    (shop.root / ".nbs/events" / max((shop.root / ".nbs/events").glob("*.event")).name).unlink()
    assert "deleted by another program" in run(shop.root, "bus", "check").err, "a person did that"


def test_a_stash_is_an_older_state_too(shop: Git) -> None:
    said(shop.root, "chat", "send", "live", "ann", "three")
    decide(shop.root, "Third")
    newest = files(shop.root)
    shop("stash", "--quiet")
    assert WARNED in run(shop.root, "chat", "read", "live").err
    shop("stash", "pop", "--quiet")
    assert files(shop.root) == newest
    assert findings(shop) == []


def test_a_copy_of_the_folder_that_is_put_back_is_one(shop: Git, tmp_path: Path) -> None:
    shutil.copytree(shop.root / ".nbs", tmp_path / "copy")
    said(shop.root, "chat", "send", "live", "ann", "three")
    (shop.root / ".nbs/workers").mkdir(exist_ok=True)
    decide(shop.root, "Third")
    publish(shop.root, "seven")
    newest, size = files(shop.root), size_of(shop)
    shutil.rmtree(shop.root / ".nbs")
    shutil.copytree(tmp_path / "copy", shop.root / ".nbs")
    assert WARNED in said(shop.root, "verify")
    said(shop.root, "sync")
    assert files(shop.root) == newest
    assert size_of(shop) == size


def test_an_edited_chat_is_not_folded_again_for_each_archive(shop: Git) -> None:
    """Lines of one size fit the part of every archive: only those with the same bytes are tried."""
    with (
        mock.patch.object(writer, "ROTATE_ABOVE", 4),
        mock.patch.object(writer, "ROTATE_COUNT", 2),
    ):
        for number in range(12):
            said(shop.root, "chat", "send", "live", "ann", f"{number:03}")
    assert len([*(shop.root / ".nbs/chat").glob("live*.chat")]) > 4
    path = shop.root / ".nbs/chat/live.chat"
    data = path.read_bytes()
    path.write_bytes(data[:-5] + b"AAA=\n")
    with mock.patch.object(intake, "past_file", wraps=engine.past_file) as folded:
        assert "edited outside the ledger" in run(shop.root, "chat", "read", "live").err
    assert folded.call_count == 0
    path.write_bytes(data)


def test_a_chat_that_a_checkout_hides_is_not_begun_anew(shop: Git) -> None:
    said(shop.root, "chat", "create", "plan")
    said(shop.root, "chat", "send", "plan", "ann", "Tea first.")
    commit(shop, "two chats")
    shop("checkout", "--quiet", "HEAD~1")
    done = run(shop.root, "chat", "create", "plan")
    assert (done.code, "chat plan exists already" in done.err) == (1, True), done
    said(shop.root, "sync")
    assert "Tea first." in said(shop.root, "chat", "read", "plan")
    assert findings(shop) == []
