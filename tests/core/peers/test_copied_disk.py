"""A copied disk: clone, keys and home twice, so that one replica goes on in two places."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from git_repo import Git
from replicas import Clone

AS_COPY = "`tripod restore --as-copy`"


def copied(one: Clone, folder: Path) -> Clone:
    """The whole disk again: clone, ledger, keys and the memory of the last seal."""
    twin = Clone.__new__(Clone)
    vars(twin).update(vars(one), git=Git(folder / "twin", made=False), home=folder / "home-twin")
    shutil.copytree(one.git.root, twin.git.root)
    shutil.copytree(one.home, twin.home)
    return twin


def joined(folder: Path, name: str) -> Clone:
    made = Clone(folder, name)
    made.said("init", "--from", "origin")
    return made


def decides(one: Clone, title: str) -> None:
    one.said("chat", "send", "live", one.name, f"shall we: {title}")
    one.said("scribe", "log", title, "-p", one.name, "-r", "So.", "--ref", "last")


def told(one: Clone, *words: str, code: int = 1) -> str:
    done = one.run(*words)
    assert done.code == code, done
    return done.err + done.out.decode()


def everything(one: Clone, *titles: str) -> None:
    """Every decision, with its message, is there once, and nothing is wrong."""
    log = (one.root / "scribe/log.md").read_text()
    found = [found[1] for found in re.finditer(r"^### D-\d+ (.*?)(?: \[.*\])?$", log, re.MULTILINE)]
    assert sorted(found) == sorted(titles), (one.git.root.name, log)
    read = one.said("chat", "read", "live")
    assert [read.count(f"shall we: {title}\n") for title in titles] == [1] * len(titles), read
    assert one.git("status", "--porcelain", "--untracked-files=all") == ""
    clean(one)


def clean(one: Clone) -> None:
    report = json.loads(one.run("verify", "--json").out)
    found = [finding["message"] for check in report["checks"] for finding in check["findings"]]
    assert found == [], one.git.root.name


def met(*clones: Clone) -> None:
    for words in ("push", "pull", "push", "pull"):
        for one in clones:
            one.said(words)


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    ann = Clone(tmp_path, "ann")
    ann.said("init", "--project", "shop")
    ann.said("chat", "create", "live")
    decides(ann, "Before")
    return ann


def test_both_push(ann: Clone, tmp_path: Path) -> None:
    """The second to push is told, and so is the one that pulls, verifies or asks the doctor."""
    ann.said("push")
    bob = joined(tmp_path, "bob")
    twin = copied(ann, tmp_path)
    decides(ann, "On the one")
    decides(twin, "On the other")
    ann.said("push")
    for words in (["push"], ["pull"], ["verify"], ["doctor"]):
        assert AS_COPY in told(twin, *words), words
    bob.said("pull")
    everything(bob, "Before", "On the one")
    assert "1 chat.sent, 1 decision.logged" in twin.said("restore", "--as-copy").splitlines()[-1]
    met(twin, ann, bob)
    for one in (ann, twin, bob):
        everything(one, "Before", "On the one", "On the other")


def test_it_was_copied_before_the_first_push(ann: Clone, tmp_path: Path) -> None:
    twin = copied(ann, tmp_path)
    decides(ann, "On the one")
    decides(twin, "On the other")
    twin.said("push")
    assert AS_COPY in told(ann, "push")
    bob = joined(tmp_path, "bob")
    everything(bob, "Before", "On the other")
    ann.said("restore", "--as-copy")
    met(ann, twin, bob)
    for one in (ann, twin, bob):
        everything(one, "Before", "On the one", "On the other")


def test_the_copy_takes_a_name_before_anybody_pushed(ann: Clone, tmp_path: Path) -> None:
    """Who merged only the copy blamed the original, and the copy's work was lost to the others."""
    ann.said("push")
    twin = copied(ann, tmp_path)
    decides(twin, "On the other")
    twin.said("restore", "--as-copy")
    decides(twin, "On the other, by its name")
    twin.said("push")
    bob = joined(tmp_path, "bob")
    everything(bob, "Before", "On the other", "On the other, by its name")
    decides(ann, "On the one")
    decides(ann, "On the one, still")
    for one in (ann, bob, ann, twin, bob):
        one.said("push")
        one.said("pull")
    titles = ("Before", "On the one", "On the one, still", "On the other")
    for one in (ann, bob, twin):
        everything(one, *titles, "On the other, by its name")


def test_the_copy_pulls_and_never_takes_a_name(ann: Clone, tmp_path: Path) -> None:
    """It takes in what others recorded, is told each time, and what it recorded stays here."""
    ann.said("push")
    bob = joined(tmp_path, "bob")
    bob.said("push")
    twin = copied(ann, tmp_path)
    decides(ann, "On the one")
    decides(bob, "By Bob")
    decides(twin, "On the other")
    ann.said("push")
    bob.said("push")
    for number in range(2):
        assert AS_COPY in told(twin, "pull")
        decides(twin, f"More {number}")
    log = (twin.root / "scribe/log.md").read_text()
    for title in ("Before", "By Bob", "On the other", "More 0", "More 1"):
        assert log.count(f" {title}") == 1
    twin.said("restore", "--as-copy")
    met(twin, ann, bob)
    for one in (ann, twin, bob):
        everything(one, "Before", "On the one", "By Bob", "On the other", "More 0", "More 1")
        pending = one.said("bus", "check").splitlines()
        assert len(pending) == 12, pending  # a message and a decision have an event each


def test_somebody_merged_both(ann: Clone, tmp_path: Path) -> None:
    """Two remotes, a copy at each: the second one is a fork, with both seals, and nothing of it."""
    ann.said("push")
    bob = joined(tmp_path, "bob")
    twin = copied(ann, tmp_path)
    other = tmp_path / "other.git"
    ann.git("clone", "--quiet", "--bare", str(ann.remote), str(other))
    for one in (twin, bob):
        one.git("remote", "add", "other", str(other))
    decides(ann, "On the one")
    decides(twin, "On the other")
    ann.said("push")
    twin.said("push", "other")
    bob.said("pull")
    assert "both seals are kept" in told(bob, "pull", "other")
    assert "peers-agree: fork" in told(bob, "verify")
    shown = bob.said("peer", "show", "ann")
    assert "the seal that contradicts it:" in shown
    log = (bob.root / "scribe/log.md").read_text()
    assert "On the one" in log
    assert "On the other" not in log
    decides(bob, "By Bob")
    bob.said("push")
    ann.said("pull")
    assert "By Bob" in ann.said("scribe", "query")
