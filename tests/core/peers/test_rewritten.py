"""A replica rewritten end to end, with its key, its ref and its database; and one that is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from git_repo import Git
from replicas import Clone, begun_replica, joined_replica


def agreeing(one: Clone, *words: str) -> list[dict[str, object]]:
    """The findings of ``peers-agree``."""
    report = json.loads(one.run("verify", "--json", *words).out)
    reports = report.get("reports", [report])
    checks = [check for each in reports for check in each["checks"]]
    return [f for check in checks if check["check"] == "peers-agree" for f in check["findings"]]


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    ann = begun_replica(tmp_path, "ann")
    ann.decides("Begin")
    ann.said("push")
    return ann


def rewritten(ann: Clone, folder: Path, *titles: str) -> None:
    """Make another history of Ann's ledger with her key, and replace all that showed the first."""
    early = folder / "early"
    name = ann.git("for-each-ref", "--format=%(refname)", "refs/tripod")
    shutil.copytree(ann.database.parent, early / "tripod")
    shutil.copytree(ann.home, early / "home")
    shutil.copytree(ann.root, early / "nbs")
    ann.decides("Pay the invoice")
    ann.said("push")
    yield_to_others(folder)
    for now, then in (
        (ann.database.parent, early / "tripod"),
        (ann.home, early / "home"),
        (ann.root, early / "nbs"),
    ):
        shutil.rmtree(now)
        shutil.copytree(then, now)
    for ref in ann.git("for-each-ref", "--format=%(refname)", "refs/tripod-remotes").split():
        ann.git("update-ref", "-d", ref)
    ann.git("update-ref", "-d", name)
    Git(ann.remote, made=False)("update-ref", "-d", name)
    for title in titles:
        ann.decides(title)
    ann.said("push")


def yield_to_others(folder: Path) -> None:
    """Bob merges what Ann recorded, and pushes what he remembers of it."""
    bob = Clone(folder, "bob")
    bob.said("pull")
    bob.said("push")


@pytest.mark.parametrize("titles", [["Nothing"], ["Do not pay", "Nor this", "Nor that"]])
def test_a_rewrite_is_found_by_whoever_merged_it(
    ann: Clone, tmp_path: Path, titles: list[str]
) -> None:
    """Shorter, longer: the key is right, the ref and the database agree, and it is found."""
    bob = joined_replica(tmp_path, "bob")
    rewritten(ann, tmp_path, *titles)
    ann.said("verify", "--no-git")  # by itself nothing is wrong with it
    out = bob.refused("pull")
    assert "it contradicts itself" in out
    assert "`tripod peer show ann-" in out
    shown = bob.said("peer", "show", "ann")
    assert "state: forked" in shown
    for what in ("the seal up to which it was merged:", "the seal that contradicts it:"):
        note = shown.partition(what)[2].splitlines()
        assert note[5].startswith("  — tripod.invalid/shop/"), "it is signed"
    found = agreeing(bob)
    assert any("fork: " in str(one["message"]) for one in found), found
    assert any(str(one).count("— ") >= 2 for one in found), "both seals are the proof"
    log = (bob.root / "scribe/log.md").read_text()
    assert "Pay the invoice" in log
    assert not any(title in log for title in titles)
    # Others go on, and the forger hears of it from what they remember.
    bob.decides("By Bob")
    bob.said("push")
    ann.run("pull")
    assert agreeing(ann)
    # A clone without a ledger, such as CI, judges the refs alone.
    ci = Clone(tmp_path, "ci")
    ci.fetch()
    judged = ci.run("verify")
    assert judged.code == 1, judged
    assert b"peers-agree" in judged.out
    assert b"fork: it remembers root" in judged.out or b"rollback: it remembers" in judged.out
    # Who comes new meets the rewritten one, takes it, and is told by what Bob remembers.
    cid = joined_replica(tmp_path, "cid")
    assert "By Bob" in (cid.root / "scribe/log.md").read_text()
    assert cid.run("verify").code == 1


def test_a_lost_laptop_whose_key_is_lost_too(ann: Clone, tmp_path: Path) -> None:
    """Its record stays, everybody keeps its decisions, and who comes back is a new replica."""
    bob = joined_replica(tmp_path, "bob")
    bob.said("push")
    ann.decides("Before the loss")
    ann.said("push")
    for path in (ann.git.root, ann.home):
        shutil.rmtree(path)
    again = joined_replica(tmp_path, "ann")
    again.decides("On the new laptop")
    again.said("push")
    bob.said("pull")
    for one in (again, bob):
        log = (one.root / "scribe/log.md").read_text()
        for title in ("Begin", "Before the loss", "On the new laptop"):
            assert log.count(f" {title}") == 1, (one.name, log)
        one.said("verify")
    assert len(bob.said("peer", "list").splitlines()) == 2
    name = again.said("peer", "list", "--json").splitlines()
    old = next(json.loads(line) for line in name if json.loads(line)["replica"].startswith("ann-"))
    bob.said("peer", "close", old["replica"], "--reason", "The laptop is lost")
    assert "nothing of it is taken any more" in bob.said("pull"), "and a job that pulls goes on"
    assert "Before the loss" in (bob.root / "scribe/log.md").read_text()
    bob.said("verify")


def test_a_lost_laptop_whose_key_was_saved(ann: Clone, tmp_path: Path) -> None:
    bob = joined_replica(tmp_path, "bob")
    bob.decides("By Bob")
    bob.said("push")
    ann.said("pull")
    ann.decides("Before the loss")
    ann.said("push")
    ann.decides("Never pushed")
    name = ann.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/tripod")
    shutil.rmtree(ann.git.root)
    again = Clone(tmp_path, "ann", home=ann.home)
    again.fetch()
    assert "`tripod restore --replica" in again.refused("restore")
    out = again.said("restore", "--replica", name)
    # What was sealed and never pushed is lost, and the new line says so.
    assert "forked from" in out
    again.decides("On the new laptop")
    for one in (again, bob, again, bob):
        one.said("push")
        one.said("pull")
    for one in (again, bob):
        log = (one.root / "scribe/log.md").read_text()
        for title in ("Begin", "By Bob", "Before the loss", "On the new laptop"):
            assert log.count(f" {title}") == 1, (one.name, log)
    bob.said("verify")
