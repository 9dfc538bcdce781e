"""The merge, as teams live it: what each recorded is in every replica, once."""

from pathlib import Path

import pytest
from peering import Replica, copied, peers_of

from tripod.errors import RefusedError
from tripod.peers.merge import merge_record
from tripod.peers.roster import read_roster
from tripod.team import adoption
from tripod.team.team import Team


@pytest.fixture
def ann(tmp_path: Path) -> Replica:
    return Replica(tmp_path / "ann", "ann")


@pytest.fixture
def bob(tmp_path: Path, ann: Replica) -> Replica:
    return Replica(tmp_path / "bob", "bob", ann.team_id)


def test_what_a_peer_recorded_is_here_once(ann: Replica, bob: Replica) -> None:
    bob.say("Tea is ready.")
    bob.decide("Serve tea")
    bob.publish("tea-served", "hot")
    taken = ann.merge(bob)
    assert (taken.problem, taken.added, taken.replica) == ("", True, bob.name)
    assert taken.size == taken.sealed == taken.taken > 5
    assert ann.kept().items() >= bob.own(taken.sealed).items()
    size = ann.size()
    again = ann.merge(bob)
    assert (again.taken, again.added, again.problem) == (0, False, "")
    assert ann.size() == size + (again.size > taken.size), "merging again adds nothing"
    with ann.team() as team:
        peer = read_roster(team.store)[bob.origin]
    assert (peer.replica, peer.how, peer.size) == (bob.name, "first-use", again.size)


def test_only_what_is_new_is_read_and_taken(ann: Replica, bob: Replica) -> None:
    bob.say("One.")
    ann.merge(bob)
    bob.say("Two.")
    taken = ann.merge(bob)
    assert 0 < taken.taken < 10
    assert ann.kept().items() >= bob.own(taken.sealed).items()


def test_three_replicas_end_with_the_same_entries(tmp_path: Path) -> None:
    team = peers_of(tmp_path, "ann", "bob", "cid")
    for number, one in enumerate(team):
        one.say(f"I am number {number}.")
    for _ in range(2):
        for one in team:
            for other in team:
                if one is not other:
                    assert one.merge(other).problem == ""
    records = {one.name: one.record() for one in team}
    for one in team:
        for other in team:
            if one is not other:
                one.merge(records[other.name])
    said = [{key for key in one.kept() if key[1] < 12} for one in team]
    assert said[0] == said[1] == said[2]


def test_what_others_made_is_taken_from_their_own_records(tmp_path: Path) -> None:
    ann, bob, cid = peers_of(tmp_path, "ann", "bob", "cid")
    cid.say("Only Bob heard this.")
    bob.merge(cid)
    ann.merge(bob)
    assert not any(origin == cid.origin for origin, _ in ann.kept())
    taken = ann.merge(cid)
    assert ann.kept().items() >= cid.own(taken.sealed).items()


def test_a_record_of_ones_own_is_never_merged(ann: Replica) -> None:
    ann.say("Hello.")
    record = ann.record()
    ann.say("More.")
    size = ann.size()
    done = ann.merge(record)
    assert (done.is_own, done.taken, done.problem) == (True, 0, "")
    assert ann.size() == size


def test_a_dry_run_says_the_same_and_records_nothing(ann: Replica, bob: Replica) -> None:
    bob.say("Tea.")
    record, size = bob.record(), ann.size()
    would = ann.merge(record, dry_run=True)
    assert ann.size() == size
    assert would.taken == ann.merge(record).taken > 0


def test_long_texts_come_along(ann: Replica, bob: Replica) -> None:
    text = "Long. " * 5000
    bob.say(text)
    ann.merge(bob)
    with ann.team() as team:
        blobs = [
            team.store.blob(bytes.fromhex(blob["sha256"]))
            for entry in team.store.read(kinds=("peer.entry",))
            for blob in entry.data.get("blobs", ())
        ]
    assert text.encode() in blobs


def test_a_ledger_without_a_replica_name_merges_nothing(tmp_path: Path, bob: Replica) -> None:
    (tmp_path / "new").mkdir()
    made = adoption.init(str(tmp_path / "new"), project="shop", origin="example.org/new", key=False)
    with Team(made.root) as team, pytest.raises(RefusedError, match="tripod push"):
        merge_record(team, bob.record())


def test_a_replica_of_another_team_is_named(tmp_path: Path, ann: Replica) -> None:
    other = Replica(tmp_path / "eve", "eve")
    done = ann.merge(other)
    assert "it is a replica of the team 'example.org/eve'" in done.problem
    assert (done.taken, done.added) == (0, False)


def test_an_older_state_of_a_record_is_no_fork(tmp_path: Path, ann: Replica, bob: Replica) -> None:
    bob.say("One.")
    old = copied(bob.record(), tmp_path / "old")
    bob.say("Two.")
    ann.merge(bob)
    size = ann.size()
    done = ann.merge(old)
    assert done.is_older
    assert "an older state of it" in done.problem
    assert ann.size() == size


def test_what_a_peer_erased_of_its_own_is_erased_here(ann: Replica, bob: Replica) -> None:
    bob.say("A secret of Bob's that he regrets.")
    bob.say("Tea.")
    ann.merge(bob)
    bob.redact("secret")
    done = ann.merge(bob)
    assert (done.problem, done.erased) == ("", 2), "the message, and the event that told of it"
    assert ann.says("secret") == []
    assert len(ann.says("Tea.")) == 1
    assert b"secret" not in b"".join(path.read_bytes() for path in ann.files())
    for entry in ann.entries("redacted"):
        assert entry.data["kind"] == "peer.entry"
        assert entry.data["reason"].startswith(f"{bob.name} erased its entry ")
    size = ann.size()
    assert ann.merge(bob).erased == 0
    assert ann.size() <= size + 8
    assert ann.findings() == []


def test_what_a_peer_erased_before_comes_with_what_it_keeps(ann: Replica, bob: Replica) -> None:
    bob.say("A secret of Bob's that he regrets.")
    bob.redact("secret")
    assert ann.merge(bob).problem == ""
    assert ann.says("secret") == []
    assert len(ann.says("[redacted]")) == 1
    assert ann.findings() == []


def test_nobody_here_erases_what_a_peer_recorded(ann: Replica, bob: Replica) -> None:
    bob.say("A word of Bob's.")
    ann.merge(bob)
    size = ann.size()
    ann.redact("A word of Bob")
    assert ann.size() == size
    assert len(ann.says("A word of Bob")) == 1
