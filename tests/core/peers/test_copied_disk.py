"""A copied disk: clone, keys and home twice, so that one replica goes on in two places."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from replicas import Clone, begun_replica, joined_replica

AS_COPY = "`tripod restore --as-copy`"


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
    ann = begun_replica(tmp_path, "ann")
    ann.decides("Before")
    return ann


def test_both_push(ann: Clone, tmp_path: Path) -> None:
    """The second to push is told, and so is the one that pulls, verifies or asks the doctor."""
    ann.said("push")
    bob = joined_replica(tmp_path, "bob")
    twin = ann.copied(tmp_path)
    ann.decides("On the one")
    twin.decides("On the other")
    ann.said("push")
    for words in (["push"], ["pull"], ["verify"], ["doctor"]):
        assert AS_COPY in twin.refused(*words), words
    bob.said("pull")
    everything(bob, "Before", "On the one")
    assert "1 chat.sent, 1 decision.logged" in twin.said("restore", "--as-copy").splitlines()[-1]
    met(twin, ann, bob)
    for one in (ann, twin, bob):
        everything(one, "Before", "On the one", "On the other")


def test_it_was_copied_before_the_first_push(ann: Clone, tmp_path: Path) -> None:
    twin = ann.copied(tmp_path)
    ann.decides("On the one")
    twin.decides("On the other")
    twin.said("push")
    assert AS_COPY in ann.refused("push")
    bob = joined_replica(tmp_path, "bob")
    everything(bob, "Before", "On the other")
    ann.said("restore", "--as-copy")
    met(ann, twin, bob)
    for one in (ann, twin, bob):
        everything(one, "Before", "On the one", "On the other")


def test_the_copy_takes_a_name_before_anybody_pushed(ann: Clone, tmp_path: Path) -> None:
    """Who merged only the copy blamed the original, and the copy's work was lost to the others."""
    ann.said("push")
    twin = ann.copied(tmp_path)
    twin.decides("On the other")
    twin.said("restore", "--as-copy")
    twin.decides("On the other, by its name")
    twin.said("push")
    bob = joined_replica(tmp_path, "bob")
    everything(bob, "Before", "On the other", "On the other, by its name")
    ann.decides("On the one")
    ann.decides("On the one, still")
    for one in (ann, bob, ann, twin, bob):
        one.said("push")
        one.said("pull")
    titles = ("Before", "On the one", "On the one, still", "On the other")
    for one in (ann, bob, twin):
        everything(one, *titles, "On the other, by its name")


def test_the_copy_pulls_and_never_takes_a_name(ann: Clone, tmp_path: Path) -> None:
    """It takes in what others recorded, is told each time, and what it recorded stays here."""
    ann.said("push")
    bob = joined_replica(tmp_path, "bob")
    bob.said("push")
    twin = ann.copied(tmp_path)
    ann.decides("On the one")
    bob.decides("By Bob")
    twin.decides("On the other")
    ann.said("push")
    bob.said("push")
    for number in range(2):
        assert AS_COPY in twin.refused("pull")
        twin.decides(f"More {number}")
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
    bob = joined_replica(tmp_path, "bob")
    twin = ann.copied(tmp_path)
    other = tmp_path / "other.git"
    ann.git("clone", "--quiet", "--bare", str(ann.remote), str(other))
    for one in (twin, bob):
        one.git("remote", "add", "other", str(other))
    ann.decides("On the one")
    twin.decides("On the other")
    ann.said("push")
    twin.said("push", "other")
    bob.said("pull")
    assert "both seals are kept" in bob.refused("pull", "other")
    assert "peers-agree: fork" in bob.refused("verify")
    shown = bob.said("peer", "show", "ann")
    assert "the seal that contradicts it:" in shown
    log = (bob.root / "scribe/log.md").read_text()
    assert "On the one" in log
    assert "On the other" not in log
    bob.decides("By Bob")
    bob.said("push")
    ann.said("pull")
    assert "By Bob" in ann.said("scribe", "query")
