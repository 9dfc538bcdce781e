"""``tripod init`` in a clone of a repository with records of replicas: it begins one more."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from doors.inside import TRIPOD, run, run_as
from git_repo import Git
from replicas import Clone

from tripod.errors import RefusedError
from tripod.peers import join
from tripod.peers.replica import replica_of
from tripod.peers.roster import read_roster
from tripod.team import adoption


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    """The first replica of a team; its record is on the remote."""
    ann = Clone(tmp_path, "ann")
    ann.said("init", "--project", "The shop", "--scribe", "sam")
    ann.said("chat", "create", "live")
    ann.said("chat", "send", "live", "ann", "hello")
    ann.said("scribe", "log", "Keep it", "--rationale", "It works.", "-p", "ann", "--ref", "last")
    ann.push()
    return ann


def joined(folder: Path, name: str = "bob") -> Clone:
    clone = Clone(folder, name)
    clone.fetch()
    clone.said("init")
    return clone


def named(clone: Clone) -> tuple[str, str] | None:
    with clone.team() as team:
        return replica_of(team.store)


def test_a_clone_begins_a_replica_of_its_own_in_the_same_team(ann: Clone, tmp_path: Path) -> None:
    bob = Clone(tmp_path, "bob")
    bob.fetch()
    out = bob.said("init")
    theirs, ours = named(ann), named(bob)
    assert theirs is not None
    assert ours is not None
    assert f"Joined the team {theirs[0]}: {bob.database}" in out
    assert f"entries of {theirs[1]}" in out
    assert ours[0] == theirs[0]
    assert ours[1].startswith("bob-")
    with ann.team() as first, bob.team() as second:
        assert first.store.origin != second.store.origin
        (peer,) = read_roster(second.store).values()
        opened = second.store.entry(0)
    assert (peer.origin, peer.replica, peer.state) == (theirs[0], theirs[1], "first-use")
    assert opened is not None
    assert (opened.data["project"], opened.data["scribe"]) == ("The shop", "sam")
    assert "hello" in bob.said("chat", "read", "live")
    assert "Keep it" in bob.said("scribe", "query")
    assert bob.git("status", "--porcelain", "--untracked-files=all") == ""


def test_the_option_says_who_joins(ann: Clone, tmp_path: Path) -> None:
    joining, alone = Clone(tmp_path, "shared"), ann.elsewhere(Git(tmp_path / "other").root)
    joining.said("init", "--from", "origin", "--as", "mia")
    alone.said("init", "--as", "mia")
    for one in (joining, alone):
        one.said("seal")
        assert (named(one) or ("", ""))[1].startswith("mia-")


def test_a_clone_that_has_nothing_yet_is_told_how_to_join_and_how_to_judge(
    ann: Clone, tmp_path: Path
) -> None:
    bob = Clone(tmp_path, "bob")
    for words in (("verify",), ("doctor",), ("where",), ("log",), ("pull",), ("bus", "check")):
        done = bob.run(*words)
        assert done.code not in (0, None), done
        assert "`tripod init --from origin`" in done.out.decode() + done.err
    asked = "git fetch origin '+refs/tripod/*:refs/tripod-remotes/origin/*'"
    assert f"`{asked}`" in bob.run("verify").out.decode()
    bob.fetch()
    for word in ("verify", "doctor"):
        assert bob.run(word).code == 0, "the records on the refs are judged"


def test_a_ledger_that_was_begun_before_the_fetch_is_taken_into_the_team(
    ann: Clone, tmp_path: Path
) -> None:
    bob = Clone(tmp_path, "bob")
    bob.said("init")
    bob.said("chat", "create", "tea")
    bob.said("chat", "send", "tea", "bob", "at four")
    bob.said("scribe", "log", "Tea", "--rationale", "Dry.", "-p", "bob", "--ref", "last")
    bob.push()
    for clone in (ann, bob):
        assert "`tripod init --from REMOTE`" in clone.run("pull").out.decode()
    before = named(bob)
    out = bob.said("init", "--from", "origin")
    ours, theirs = named(bob), named(ann)
    assert ours is not None
    assert theirs is not None
    assert before is not None
    assert (ours[0], ours[1]) == (theirs[0], before[1])
    assert f"Joined the team {theirs[0]}" in out
    assert "hello" in bob.said("chat", "read", "live")
    bob.said("push")
    ann.said("pull")
    assert "at four" in ann.said("chat", "read", "tea")
    assert ann.said("scribe", "query").count("Tea") == 1
    cid = joined(tmp_path, "cid")
    assert "at four" in cid.said("chat", "read", "tea")
    for clone in (ann, bob, cid):
        assert "nothing new" in clone.said("pull")
        assert clone.run("verify").code == 0
        assert clone.run("doctor").code == 0
    again = bob.run("init", "--from", "origin")
    assert (again.code, "`tripod pull` merges" in again.err) == (2, True)


def test_a_ledger_with_peers_of_its_own_stays_in_its_team(ann: Clone, tmp_path: Path) -> None:
    bob = Clone(tmp_path, "bob")
    bob.said("init")
    bob.push()
    other = ann.git("rev-parse", f"refs/tripod/{(named(ann) or ('', ''))[1]}")
    ann.git("push", "--quiet", "origin", f":refs/tripod/{(named(ann) or ('', ''))[1]}")
    cid = joined(tmp_path, "cid")
    cid.push()
    bob.said("pull")
    ann.git("push", "--quiet", "origin", f"{other}:refs/tripod/{(named(ann) or ('', ''))[1]}")
    done = ann.run("pull")
    assert done.code == 1
    for clone in (bob, cid):
        before = named(clone)
        assert clone.run("init", "--from", "origin").code != 0
        assert named(clone) == before


def test_what_each_records_is_in_both(ann: Clone, tmp_path: Path) -> None:
    bob = joined(tmp_path)
    bob.said("chat", "send", "live", "bob", "hello ann")
    bob.push()
    cid = joined(tmp_path, "cid")
    assert cid.said("chat", "read", "live").count("hello ann") == 1
    assert cid.said("chat", "read", "live").count("hello") == 2
    with cid.team() as team:
        assert len(read_roster(team.store)) == 2


def test_a_replica_of_which_copies_alone_are_left_is_named(ann: Clone, tmp_path: Path) -> None:
    bob = joined(tmp_path)
    bob.said("push")
    (lost,) = (one for one in bob.git("ls-remote", "origin").split() if "tripod/ann-" in one)
    bob.git("push", "--quiet", "origin", f":{lost}")
    cid = Clone(tmp_path, "cid")
    done = cid.run("init", "--from", "origin")
    who = f"{lost.rpartition('/')[2]} is a peer of bob-"
    assert (done.code, done.err.count(who)) == (0, 1), done
    assert cid.said("peer", "list").count(who) == 1
    ended = [json.loads(line) for line in cid.said("peer", "list", "--json").splitlines()]
    assert [one["state"] for one in ended] == ["first-use", "missing"]
    bob.said("chat", "create", "cake")
    bob.push()
    assert who not in cid.said("pull"), "it was told"
    bob.said("push")
    cid.said("pull")
    assert "missing" not in cid.said("peer", "list")
    assert "Keep it" in cid.said("scribe", "query")


def test_files_that_a_peer_s_record_explains_are_not_taken_in(ann: Clone, tmp_path: Path) -> None:
    """An earlier version committed the files, and the clone has an older state of them."""
    ann.git("add", "--force", ".nbs/chat/live.chat", ".nbs/scribe/log.md", ".nbs/counts.json")
    ann.git("commit", "--quiet", "-m", "files of the team")
    ann.git("push", "--quiet", "origin", "main")
    ann.said("chat", "send", "live", "ann", "later")
    ann.push()
    bob = Clone(tmp_path, "bob")
    assert (bob.root / "chat/live.chat").exists()
    bob.fetch()
    assert "git tracks 3 files" in bob.run("init").err
    for text in ("hello", "later"):
        assert bob.said("chat", "read", "live").count(text) == 1
    assert bob.said("scribe", "query").count("Keep it") == 1
    with bob.team() as team:
        observed = [one.kind for one in team.store.read() if "observed" in one.data]
    assert observed == []
    assert not (bob.database.parent / "joining").exists()


def test_what_no_record_explains_is_taken_in_as_observed_and_nothing_twice(
    ann: Clone, tmp_path: Path
) -> None:
    """A lost laptop without its key: the files show more than was pushed."""
    ann.said("chat", "send", "live", "ann", "after the push")
    ann.said("scribe", "log", "Drop it", "--rationale", "No.", "-p", "ann", "--ref", "last")
    bob = Clone(tmp_path, "bob")
    shutil.copytree(ann.root, bob.root)
    bob.fetch()
    bob.said("init")
    read, log = bob.said("chat", "read", "live"), bob.said("scribe", "query")
    assert [read.count(text) for text in ("hello", "after the push")] == [1, 1]
    assert [log.count(text) for text in ("Keep it", "Drop it")] == [1, 1]
    with bob.team() as team:
        observed = [one.kind for one in team.store.read() if "observed" in one.data]
    assert observed.count("decision.logged") == 1
    assert observed.count("chat.sent") == 1


def test_a_replica_whose_key_is_gone_stays_as_a_peer_that_has_ended(ann: Clone) -> None:
    old = named(ann)
    shutil.rmtree(ann.home)
    shutil.rmtree(ann.database.parent)
    assert ann.run("restore").code == 1
    out = ann.said("init")
    assert old is not None
    assert f"Joined the team {old[0]}" in out
    with ann.team() as team:
        (peer,) = read_roster(team.store).values()
    assert peer.replica == old[1]
    assert "hello" in ann.said("chat", "read", "live")


def test_a_repository_s_own_replica_with_its_key_is_to_be_restored(ann: Clone) -> None:
    shutil.rmtree(ann.database.parent)
    done = ann.run("init")
    assert done.code == 1
    assert "`tripod restore` brings the ledger back" in done.err
    assert not ann.database.exists()


def test_records_of_two_teams_are_refused_with_both_names(ann: Clone, tmp_path: Path) -> None:
    other = Clone(tmp_path, "eve")
    other.said("init", "--new", "--project", "Another")
    other.push()
    bob = Clone(tmp_path, "bob")
    bob.fetch()
    done = bob.run("init")
    assert done.code == 1
    for one in (ann, other):
        found = named(one)
        assert found is not None
        assert found[0] in done.err
        assert found[1] in done.err
    assert not bob.database.exists()
    bob.said("init", "--new")


def test_no_other_way_begins_a_second_team_beside_records(ann: Clone, tmp_path: Path) -> None:
    """A script of the original tools, or of Python, that finds no ledger."""
    bob = Clone(tmp_path, "bob")
    bob.fetch()
    with bob.at_home():
        with pytest.raises(RefusedError, match="`tripod init` joins it"):
            adoption.init(str(bob.git.root))
        done = run_as("nbs-chat", bob.git.root, "create", ".nbs/chat/live.chat")
        assert done.code != 0
    assert not bob.database.exists()


def test_a_record_that_is_damaged_is_named_and_the_others_are_merged(
    ann: Clone, tmp_path: Path
) -> None:
    bob = joined(tmp_path)
    bob.push()
    ref = f"refs/tripod/{(named(bob) or ('', ''))[1]}"
    cid = Clone(tmp_path, "cid")
    cid.fetch()
    fetched = ref.replace("refs/tripod/", "refs/tripod-remotes/origin/")
    cid.git("update-ref", fetched, cid.git("rev-parse", "HEAD"))
    done = cid.run("init")
    assert done.code == 0, done
    assert "hello" in cid.said("chat", "read", "live")


def test_a_closed_team_waits_for_a_person(ann: Clone, tmp_path: Path) -> None:
    bob = Clone(tmp_path, "bob")
    shutil.copytree(ann.root, bob.root)
    (bob.root / "policy.yaml").write_text("peers: closed\n")
    bob.fetch()
    done = bob.run("init")
    assert done.code == 0, done
    assert "`tripod peer accept ann-" in done.err
    assert "explain, and not all is merged: `tripod pull`" in done.err
    aside = bob.database.parent / "joining"
    assert (aside / "chat/live.chat").exists(), "what no entry here holds is kept"
    assert bob.run("chat", "read", "live").code != 0
    assert json.loads(bob.said("peer", "list", "--json"))["state"] == "waiting"
    bob.said("peer", "accept", "ann", "--reason", "We sit at one desk")
    assert json.loads(bob.said("peer", "list", "--json"))["state"] == "accepted"
    bob.said("pull")
    bob.said("init")
    assert bob.said("chat", "read", "live").count("hello") == 1
    assert not aside.exists()


def test_a_join_that_is_stopped_at_any_step_is_gone_on_with(
    ann: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("begin_replica", "merge_record", "settle_aside")):
        bob = Clone(tmp_path, f"bob{number}")
        shutil.copytree(ann.root, bob.root)
        bob.fetch()
        place = adoption if name == "begin_replica" else join
        with monkeypatch.context() as patch:
            patch.setattr(place, name, _dies)
            assert bob.run("init").code != 0
        bob.said("init")
        assert not (bob.database.parent / "joining").exists()
        assert bob.said("chat", "read", "live").count("hello") == 1
        assert bob.said("scribe", "query").count("Keep it") == 1


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_the_odd_names_of_a_peer_are_not_taken(ann: Clone, tmp_path: Path) -> None:
    assert join._plain_names("a\x1b[31m", "two words") == {}
    assert join._plain_names("The shop", "sam") == {"project": "The shop", "scribe": "sam"}


@pytest.mark.parametrize("limit", [64, 100_000])
def test_a_full_disk_is_said_and_nothing_is_begun(ann: Clone, tmp_path: Path, limit: int) -> None:
    bob = Clone(tmp_path, "bob")
    bob.fetch()
    done = subprocess.run(
        [TRIPOD, "init"],
        cwd=bob.git.root,
        env=os.environ | {"TRIPOD_HOME": str(bob.home), "TRIPOD_AS": "bob"},
        capture_output=True,
        check=False,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1
    assert "make room" in done.stderr
    assert "then `tripod init`" in done.stderr
    assert not bob.database.exists()
    bob.said("init")
    assert "hello" in bob.said("chat", "read", "live")


def test_the_records_are_fetched_first_where_a_remote_is_named(ann: Clone, tmp_path: Path) -> None:
    bob = Clone(tmp_path, "bob")
    ann.git("--git-dir", str(ann.remote), "update-ref", "refs/tripod/seals", "HEAD")
    hook = bob.git.root / ".git/hooks/reference-transaction"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    assert "Joined the team" in bob.said("init", "--from", "origin")
    assert not (tmp_path / "ran").exists()
    assert "hello" in bob.said("chat", "read", "live")
    assert bob.run("init", "--from", "origin").code == 2
    cid = Clone(tmp_path, "cid")
    for remote, code in (("nowhere", 3), ("--upload-pack=x", 2), ("ext::sh", 2)):
        done = cid.run("init", f"--from={remote}")
        assert done.code == code, done
    assert cid.run("init", "--from", "origin", "--new").code == 2
    cid.git("--git-dir", str(cid.remote), "update-ref", "-d", f"refs/tripod/{named(ann)[1]}")  # type: ignore[index]
    assert "holds no record of a team" in cid.run("init", "--from", "origin").err
    assert "no git repository around it" in run(tmp_path, "init", "--from", "x").err
    assert not cid.database.exists()


def test_a_key_is_needed(ann: Clone, tmp_path: Path) -> None:
    bob = Clone(tmp_path, "bob")
    bob.fetch()
    assert bob.run("init", "--no-key").code == 2


def test_a_record_on_the_ref_of_another_waits_under_its_own_name(
    ann: Clone, tmp_path: Path
) -> None:
    """A person who accepts Ann must not accept the key of whoever stands on her ref."""
    mallory = joined(tmp_path, "mallory")
    theirs, hers = mallory.push(), ann.push()
    specs = f"+refs/tripod/{theirs}:refs/tripod/{hers}", f":refs/tripod/{theirs}"
    mallory.git("push", "--quiet", "origin", *specs)
    bob = Clone(tmp_path, "bob")
    bob.fetch()
    names = {peer.replica for peer in join.waiting_peers(str(bob.git.root), set()).values()}
    assert names == {theirs}
