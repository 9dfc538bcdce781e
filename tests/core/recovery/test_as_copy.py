"""One of two copies of a ledger goes on as a replica of its own: ``tripod restore --as-copy``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from doors.inside import run
from git_repo import Git
from replicas import Clone, pushed_replica

from tripod.peers.merge import merge_record
from tripod.peers.replica import replica_of
from tripod.trust.keys import sealing_key
from tripod.verify.anchors.git import Repository
from tripod.verify.export_file import RefFiles
from tripod.verify.peers.refs import replica_refs


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    """A clone with a replica that said something, and pushed its record."""
    return pushed_replica(tmp_path, "ann")


def joined(folder: Path) -> Clone:
    """A third replica of the team."""
    bob = Clone(folder, "bob")
    bob.fetch()
    bob.said("init")
    return bob


def test_a_copied_disk_goes_on_with_a_name_and_a_key_of_its_own(ann: Clone, tmp_path: Path) -> None:
    copy = ann.copied(tmp_path)
    with ann.team() as team:
        before = team.store.origin, sealing_key(team.store), replica_of(team.store)
    out = copy.said("restore", "--as-copy")
    assert f"It goes on as {before[0]}/fork/" in out
    with copy.team() as team:
        after = team.store.origin, sealing_key(team.store), replica_of(team.store)
        (fork,) = team.store.read(kinds=("ledger.forked-from",))
    assert None not in (before[2], after[1])
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert (fork.data["origin"], fork.data["size"]) == (before[0], fork.seq)
    assert fork.data["note"], "the old key is here, and signs where the lines part"
    copy.said("chat", "send", "live", "ann", "on the copy")
    name = copy.push()
    with copy.team() as team:
        assert replica_of(team.store) == (before[0], name)
    copy.said("verify")
    ann.said("chat", "send", "live", "ann", "on the original")
    ann.push()
    ann.said("verify")
    ann.fetch()
    assert len(ann.git("for-each-ref", "refs/tripod-remotes").splitlines()) == 2


def test_copies_that_both_went_on_part_where_they_did_and_nothing_is_lost(
    ann: Clone, tmp_path: Path
) -> None:
    copy = ann.copied(tmp_path)
    copy.said("chat", "send", "live", "ann", "on the copy")
    copy.said("scribe", "log", "Copy it", "--rationale", "So.", "-p", "ann", "--ref", "last")
    with copy.team() as team:
        common = team.store.size
    ann.said("chat", "send", "live", "ann", "on the original")
    ann.said("chat", "send", "live", "ann", "and more there")
    ann.push()
    bob = joined(tmp_path)
    copy.fetch()
    done = copy.run("verify")
    assert (done.code, b"peers-agree: " in done.out) == (1, True)
    out = copy.said("restore", "--as-copy")
    assert "The database that stood there is kept as" in out
    assert "1 chat.sent, 1 decision.logged" in out.splitlines()[-1]
    with copy.team() as team:
        (fork,) = team.store.read(kinds=("ledger.forked-from",))
        assert fork.seq < common
        (observed,) = (e for e in team.store.read() if e.kind == "decision.logged")
        assert "observed" in observed.data
    copy.said("verify")
    copy.push()
    bob.fetch()
    with bob.team() as team, Repository(str(bob.root)) as repository:
        for ref in replica_refs(repository):
            assert merge_record(team, RefFiles(repository, ref.commit)).problem == ""
    read = bob.said("chat", "read", "live")
    for text in ("hello", "on the copy", "on the original", "and more there"):
        assert read.count(text) == 1, text
    assert bob.said("scribe", "query").count("Copy it") == 1
    bob.said("verify", "--no-git")


def test_a_copy_that_left_before_it_saw_the_other_is_green_once_a_person_says_so(
    ann: Clone, tmp_path: Path
) -> None:
    """The first disk sealed less under the name than the copy had when it left it."""
    copy = ann.copied(tmp_path)
    for number in range(3):
        copy.said("chat", "send", "live", "ann", f"on the copy {number}")
    ann.said("chat", "send", "live", "ann", "on the original")
    name = ann.push()
    copy.said("restore", "--as-copy")
    copy.fetch()
    done = copy.run("verify")
    assert done.code == 1
    assert b"`tripod pull`, then `tripod peer accept REPLICA --reason TEXT`" in done.out
    copy.said("pull")
    assert copy.run("verify").code == 1
    copy.said("peer", "accept", name, "--reason", "It is the first disk.")
    copy.said("verify")
    for number in range(9):
        ann.said("chat", "send", "live", "ann", f"and more there {number}")
    ann.push()
    copy.said("pull")
    copy.said("verify")
    copy.push()
    bob = joined(tmp_path)
    bob.said("pull")
    bob.said("verify")
    for one in (copy, bob):
        read = one.said("chat", "read", "live")
        for text in ("hello", "on the copy 2", "on the original", "and more there 8"):
            assert read.count(text) == 1, text


def test_a_key_that_is_lost_is_mended_by_the_same_command(ann: Clone) -> None:
    shutil.rmtree(ann.home / "keys")
    done = ann.run("seal")
    assert done.code == 1
    assert "`tripod restore --as-copy`" in done.err
    ann.said("restore", "--as-copy")
    ann.said("seal")
    ann.said("verify")
    (fork,) = ann.said("log", "--json", "--kind", "ledger.forked-from").splitlines()
    assert json.loads(fork)["kind"] == "ledger.forked-from"


def test_two_clones_of_one_committed_record_part(tmp_path: Path) -> None:
    """What an earlier version left: a record that is tracked, from which each clone restores."""
    first = tmp_path / "first"
    git = Git(first)
    git.commit("a", b"a\n")
    assert run(tmp_path / "first", "init", "--key").code == 0
    assert run(first, "chat", "create", "live").code == 0
    export = run(first, "export", ".nbs/record", "--bodies")
    assert export.code == 0, export
    git("add", "--force", ".nbs/record", ".nbs/chat", ".nbs/counts.json")
    git("commit", "--quiet", "-m", "the record")
    origins = set()
    for name in ("ann", "bob"):
        clone = Git(tmp_path / name, made=False)
        git("clone", "--quiet", str(first), str(clone.root))
        shutil.rmtree(tmp_path / "none", ignore_errors=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRIPOD_HOME", str(tmp_path / f"home-{name}"))
            done = run(clone.root, "init")
            assert done.code == 0, done
            assert "`tripod restore --as-copy`" in done.err
            assert run(clone.root, "restore", "--as-copy").code == 0
            assert run(clone.root, "seal").code == 0
            listed = run(clone.root, "log", "--json", "--kind", "key.set", "-n", "1")
            origins.add(json.loads(listed.out)["text"].partition("+")[0])
            assert run(clone.root, "verify").code == 0
    assert len(origins) == 2


@pytest.mark.parametrize("late", [False, True], ids=["at once", "after both went on"])
def test_clones_of_one_committed_record_merge_and_nothing_is_lost(
    tmp_path: Path, *, late: bool
) -> None:
    """Each goes on by a fork; where both recorded under the old name, the second parts there."""
    ann = Clone(tmp_path, "ann")
    ann.said("init", "--project", "shop")
    ann.said("chat", "create", "live")
    ann.said("chat", "send", "live", "ann", "hello")
    ann.said("export", ".nbs/record", "--bodies")
    ann.git("add", "--force", ".nbs/record", ".nbs/chat", ".nbs/counts.json")
    ann.git("commit", "--quiet", "-m", "the record")
    ann.git("push", "--quiet", "origin", "main")
    clones = [Clone(tmp_path, name) for name in ("bob", "cid")]
    for clone in clones:
        assert "Restored: " in clone.said("init")
        if late:
            clone.said("chat", "send", "live", clone.name, f"early {clone.name}")
    for clone in clones:
        clone.fetch()
        clone.said("restore", "--as-copy")
        clone.said("chat", "send", "live", clone.name, f"late {clone.name}")
        clone.push()
    with clones[0].team() as one, clones[1].team() as two:
        names = [replica_of(team.store) for team in (one, two)]
    assert names[0] is not None
    assert names[1] is not None
    assert names[0][0] == names[1][0], "one team id"
    dan = Clone(tmp_path, "dan")
    shutil.rmtree(dan.root)
    dan.fetch()
    dan.said("init")
    for clone in clones:
        clone.fetch()
        with clone.team() as team, Repository(str(clone.root)) as repository:
            for ref in replica_refs(repository):
                assert merge_record(team, RefFiles(repository, ref.commit)).problem == ""
    for clone in (*clones, dan):
        read = clone.said("chat", "read", "live")
        texts = ["hello", *(f"late {one.name}" for one in clones)]
        texts += [f"early {one.name}" for one in clones if late]
        assert [read.count(text) for text in texts] == [1] * len(texts), read
        clone.said("verify", "--no-git")


def test_the_name_may_be_given_and_is_used_once(ann: Clone) -> None:
    ann.said("restore", "--as-copy", "--as-origin", "example.org/second")
    with ann.team() as team:
        assert team.store.origin == "example.org/second"
    for name in ("example.org/second", "a b"):
        assert ann.run("restore", "--as-copy", "--as-origin", name).code == 2


def test_a_ledger_without_a_key_goes_on_without_one(tmp_path: Path) -> None:
    assert run(tmp_path, "init", "--no-key").code == 0
    assert run(tmp_path, "restore", "--as-copy").code == 0
    assert run(tmp_path, "verify").code == 0
