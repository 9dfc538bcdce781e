"""A team of an earlier version: two clones of one committed record, taken over by today's commands.

Both ledgers bear one name, and both went on: the same decision id stands for two decisions.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from git_repo import Git
from nbs_team import unpack
from replicas import Clone

GOLDEN = Path(__file__).resolve().parents[2] / "golden/clones-852efc6.tar.xz"
KEYLESS = "`tripod restore --as-copy` goes on as a replica of its own"


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    unpack(GOLDEN, tmp_path)
    return Clone(tmp_path, "ann")


@pytest.fixture
def bob(tmp_path: Path, ann: Clone) -> Clone:
    return Clone(tmp_path, "bob")


def third(ann: Clone) -> Clone:
    """Somebody new, with a clone of the repository as it is now."""
    folder = ann.git.root.parent
    Git(folder, made=False)("clone", "--quiet", "shop.git", "cid")
    cid = Clone(folder, "cid")
    shutil.rmtree(cid.root, ignore_errors=True)  # what the first commit tracked
    return cid


def untracked(*clones: Clone) -> None:
    for one in clones:
        one.said("init", "--untrack")
        one.git("commit", "--quiet", "-m", "Track the team no more")


def gone_on(bob: Clone) -> None:
    bob.said("restore", "--as-copy")
    bob.said("push")


def settled(*clones: Clone) -> None:
    """All push and pull, and then everything is everywhere, once, and clean."""
    for one in clones:
        one.said("push")
    for one in clones:
        one.said("pull")
    for one in clones:
        log = (one.root / "scribe/log.md").read_text()
        titles = [
            found[1] for found in re.finditer(r"^### D-\d+ (\w+(?: \w+)?)", log, re.MULTILINE)
        ]
        assert sorted(titles) == ["Anns own", "Bobs own", "Files"], one.name
        read = one.said("chat", "read", "live")
        for text in ("we use files", "I am here", "meanwhile"):
            assert read.count(text) == 1, (one.name, read)
        pending = one.said("bus", "check").splitlines()
        assert len(pending) == len(set(pending)) == 7, pending
        report = json.loads(one.said("verify", "--json"))
        found = [finding for check in report["checks"] for finding in check["findings"]]
        assert found == [], one.name


def test_ann_first(ann: Clone, bob: Clone) -> None:
    """Bob meets her record before his own goes anywhere: he is told what to do at once."""
    untracked(ann, bob)
    ann.said("push")
    for words in (["push"], ["pull"]):
        assert KEYLESS in bob.refused(*words)
    gone_on(bob)
    settled(ann, bob)
    for one in (ann, bob):
        assert one.git("status", "--porcelain", "--untracked-files=all") == ""
    settled(third_joined(ann), ann, bob)


def third_joined(ann: Clone) -> Clone:
    cid = third(ann)
    cid.said("init", "--from", "origin")
    return cid


def test_bob_first(ann: Clone, bob: Clone) -> None:
    """His push said that it was done, and gave what Ann had sealed under a name of his."""
    untracked(ann, bob)
    assert KEYLESS in bob.refused("push")
    assert ann.git("ls-remote", "origin", "refs/tripod/*") == ""
    gone_on(bob)
    cid = third_joined(ann)
    assert cid.said("scribe", "query").count("Bobs own") == 1
    settled(ann, bob, cid)
    assert len(ann.git("ls-remote", "origin", "refs/tripod/*").splitlines()) == 3


def test_nobody_asks_init_first(ann: Clone, bob: Clone) -> None:
    """`tripod push` on a ledger of an earlier version ended with "no such table: peers"."""
    ann.said("push")
    assert KEYLESS in bob.refused("pull")
    gone_on(bob)
    settled(ann, bob)


def test_the_work_was_untracked_and_merged_first(ann: Clone, bob: Clone) -> None:
    """Bob has Ann's newer seals in his history, of entries that his ledger never had."""
    untracked(ann)
    ann.git("push", "--quiet", "origin", "main")
    bob.git("fetch", "--quiet", "origin")
    bob.run("bus", "check")
    told = bob.refused("verify")
    assert "pins-extend: rollback: it remembers 17 entries, and the ledger has 16" in told
    assert "`tripod restore --as-copy`" in told
    bob.said("init", "--untrack")
    out = bob.said("restore", "--as-copy")
    assert "forked from" in out
    assert "1 chat.sent, 1 decision.logged" in out.splitlines()[-1]
    assert "`tripod pull` takes them" in bob.refused("verify")
    settled(ann, bob)


def test_old_seals_stay_pins(ann: Clone, bob: Clone) -> None:
    untracked(ann, bob)
    gone_on(bob)
    settled(ann, bob)
    for one, size in ((ann, 17), (bob, 12)):
        report = one.said("verify", "-v")
        assert re.search(r"pins-extend +heads \d+, agree", report), report
        assert one.git("show", "HEAD~1:.nbs/record/checkpoint").splitlines()[1] == str(size)
    seal = "refs/tripod/seals"
    ann.said("anchor", "git")
    assert ann.git("for-each-ref", "--format=%(refname)", seal) == seal
    settled(ann, bob)


def test_both_go_on_after_it(ann: Clone, bob: Clone) -> None:
    untracked(ann, bob)
    gone_on(bob)
    settled(ann, bob)
    for one in (ann, bob):
        one.said("chat", "send", "live", one.name, f"later {one.name}")
        words = ("-p", one.name, "-r", "So.", "--ref", "last")
        one.said("scribe", "log", f"Later {one.name}", *words)
    for _ in range(2):
        for one in (ann, bob):
            one.said("pull")
            one.said("push")
    for one in (ann, bob):
        query = one.said("scribe", "query")
        assert query.count("Later ann") == query.count("Later bob") == 1
        one.said("verify")


def test_a_log_that_git_tracks_no_more_must_still_go_on(ann: Clone) -> None:
    untracked(ann)
    ann.said("verify")
    log = ann.root / "scribe/log.md"
    log.write_bytes(log.read_bytes().replace(b"They last", b"They do not"))
    told = ann.refused("verify")
    assert "append-only: edited: it differs from the ledger" in told
    assert re.search(r"append-only: .*commit .*: it was removed", told), told
