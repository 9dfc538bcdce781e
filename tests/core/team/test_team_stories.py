"""A team's day with git, each story as it went wrong before a team belonged to its repository."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from replicas import Clone, begun_replica, joined_replica

from tripod.decisions import writer as decisions_log


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    ann = begun_replica(tmp_path, "ann")
    ann.decides("Begin")
    return ann


def decisions(one: Clone) -> dict[str, str]:
    """The titles in the log of the clone, by id."""
    log = (one.root / "scribe/log.md").read_text()
    found = re.findall(r"^### (D-\d+) (.*?)(?: \[.*\])?$", log, re.MULTILINE)
    assert len(dict(found)) == len(found), "an id stands for two"
    return dict(found)


def test_a_switch_of_branch_leaves_the_record_alone(ann: Clone) -> None:
    """Six findings, and git refused to switch back once a command had run."""
    ann.git("switch", "--quiet", "--create", "work")
    ann.git.commit("src/work.py", b"work\n", "work")
    ann.decides("On the branch")
    before = decisions(ann)
    for branch in ("main", "work", "main"):
        ann.git("switch", "--quiet", branch)
        ann.said("bus", "check")
        ann.said("verify")
        ann.decides(f"After switching to {branch}, {len(before)}")
        assert before.items() <= decisions(ann).items()
        before = decisions(ann)
    assert ann.git("status", "--porcelain", "--untracked-files=all") == ""


def test_a_linked_work_tree_has_the_same_ledger(ann: Clone, tmp_path: Path) -> None:
    """Every command there advised `init`, which began a second ledger; both used the same ids."""
    ann.git("worktree", "add", "--quiet", "-b", "fix", str(tmp_path / "fix"))
    there = ann.elsewhere(tmp_path / "fix")
    assert there.said("chat", "read", "live").count("shall we: Begin") == 1
    assert f"There is already: {ann.database}" in there.said("init")
    for number in range(3):
        ann.decides(f"Here {number}")
        there.decides(f"There {number}")
    assert not (tmp_path / "fix/.nbs").exists()
    assert len(decisions(ann)) == 7
    for one in (ann, there):
        assert one.said("scribe", "query").count("decided; ") == 7
        one.said("verify")
        assert one.git("status", "--porcelain", "--untracked-files=all") == ""


def test_a_third_clone_keeps_the_decision_of_a_second(ann: Clone, tmp_path: Path) -> None:
    """`rebuild` removed it from log.md as was advised, and verify said 0 findings."""
    ann.said("push")
    cid = Clone(tmp_path, "cid")
    bob = joined_replica(tmp_path, "bob")
    bob.decides("By Bob")
    bob.said("push")
    cid.said("init", "--from", "origin")
    before = (cid.root / "scribe/log.md").read_bytes()
    for words in (["sync"], ["rebuild"], ["doctor", "--fix"], ["bus", "check"], ["init"]):
        cid.said(*words)
        assert (cid.root / "scribe/log.md").read_bytes() == before
    cid.decides("By Cid")
    cid.said("push")
    for one in (ann, bob):
        one.said("pull")
    for one in (ann, bob, cid):
        assert sorted(decisions(one).values()) == ["Begin", "By Bob", "By Cid"]
        one.said("verify")
    # Somebody takes it out of the file by hand: it is named, and comes back.
    log = cid.root / "scribe/log.md"
    log.write_bytes(log.read_bytes().replace(b"By Bob", b"By nobody"))
    assert b"append-only: edited" in cid.run("verify").out
    cid.said("rebuild")
    assert sorted(decisions(cid).values()) == ["Begin", "By Bob", "By Cid"]


def logged_as_before(one: Clone, title: str) -> None:
    """A decision without a reference, as `nbs-scribe-log` still takes one."""
    with one.team() as team:
        decisions_log.log(team, decisions_log.DecisionRequest(title, [one.name], "So."))


def test_a_team_that_is_red_is_green_again(ann: Clone, tmp_path: Path) -> None:
    """One decision without a reference, and verify failed for ever after."""
    logged_as_before(ann, "Without a reference")
    report = json.loads(ann.run("verify", "--json").out)
    found = [one for check in report["checks"] for one in check["findings"]]
    red = [check["check"] for check in report["checks"] if check["findings"]]
    assert red == ["chat-refs-resolve"]
    assert ann.run("verify").code == 1
    for one in found:
        ann.said("accept", one["fingerprint"], "--reason", "It was said on the phone")
    ann.said("verify")
    # It stays accepted, clones that join are green, and the next such decision is a new finding.
    ann.said("push")
    bob = joined_replica(tmp_path, "bob")
    bob.said("verify")
    logged_as_before(ann, "Another without one")
    assert ann.run("verify").code == 1
