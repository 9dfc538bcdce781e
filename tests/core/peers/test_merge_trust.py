"""Whose word counts in a merge: keys of peers and of actors, copies of one replica, the policy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from peering import Forger, Replica

from tripod.bus import events as bus
from tripod.ledger import redaction_entry_id
from tripod.ledger.kinds.merged import peer_view
from tripod.ledger.kinds.peers import PEER_ACCEPTED, PEER_CLOSED
from tripod.ledger.tlog.note import Note, SigningKey, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, read_seal, sign_seal
from tripod.peers import merge as merging
from tripod.peers.replica import name_team
from tripod.peers.roster import read_roster
from tripod.projections.erasure import tombstone
from tripod.recovery.record import restore_as_copy
from tripod.trust import actors, keys
from tripod.trust.seal import rotate_sealing_key
from tripod.trust.signature import actor_key_path
from tripod.verify.run import verify


@pytest.fixture
def ann(tmp_path: Path) -> Replica:
    return Replica(tmp_path / "ann", "ann")


@pytest.fixture
def bob(tmp_path: Path, ann: Replica) -> Replica:
    return Replica(tmp_path / "bob", "bob", ann.team_id)


def enrol(replica: Replica, handle: str) -> str:
    with replica.team() as team:
        return actors.enrol_actor(team, handle, keys.passphrase_from_file)


# Keys of replicas -------------------------------------------------------------------------------


def test_a_peer_whose_key_was_rotated_goes_on(ann: Replica, bob: Replica) -> None:
    bob.say("One.")
    ann.merge(bob)
    with bob.team() as team:
        vkey = rotate_sealing_key(team, keys.passphrase_from_file, None)
    bob.say("Two.")
    done = ann.merge(bob)
    assert (done.problem, done.replica, done.added) == ("", bob.name, False)
    with ann.team() as team:
        peer = read_roster(team.store)[bob.origin]
    assert (peer.key, peer.replica) == (vkey, bob.name)
    bob.say("Three.")
    assert ann.merge(bob).problem == ""
    assert len(ann.entries("peer.added")) == 2
    assert ann.findings() == []


def test_a_peer_that_rotated_before_it_was_met_is_known_by_its_first_name(
    ann: Replica, bob: Replica
) -> None:
    with bob.team() as team:
        rotate_sealing_key(team, keys.passphrase_from_file, None)
    done = ann.merge(bob)
    assert (done.problem, done.replica) == ("", bob.name)


def test_nothing_is_taken_of_a_closed_peer_until_it_is_accepted(ann: Replica, bob: Replica) -> None:
    assert ann.merge(bob).added
    ann.append(PEER_CLOSED.draft({"origin": bob.origin, "reason": "Laptop lost"}, "ann"))
    bob.say("Later.")
    assert "was closed in entry" in ann.merge(bob).problem
    with ann.team() as team:
        key = read_roster(team.store)[bob.origin].key
    ann.append(PEER_ACCEPTED.draft({"origin": bob.origin, "key": key, "reason": "Found"}, "ann"))
    assert ann.merge(bob).problem == ""
    assert len(ann.says("Later.")) == 1
    ann.append(PEER_CLOSED.draft({"origin": bob.origin, "reason": "Lost again"}, "ann"))
    bob.say("Much later.")
    assert "was closed in entry" in ann.merge(bob).problem


def test_a_policy_that_is_closed_waits_for_a_person(ann: Replica, bob: Replica) -> None:
    Path(ann.root, "policy.yaml").write_text("peers: closed\n", encoding="utf-8")
    size = ann.size()
    assert "nobody accepted it" in ann.merge(bob).problem
    assert ann.size() == size
    with bob.team() as team:
        key = keys.sealing_key(team.store) or ""
    ann.append(PEER_ACCEPTED.draft({"origin": bob.origin, "key": key, "reason": "Met"}, "ann"))
    done = ann.merge(bob)
    assert (done.problem, done.added) == ("", True)
    (added,) = ann.entries("peer.added")
    assert added.data["how"] == "person"


def test_who_was_accepted_with_another_key_is_taken_at_first_use(
    ann: Replica, bob: Replica
) -> None:
    other = SigningKey(bob.origin, bytes(32)).verifier().format()
    ann.append(PEER_ACCEPTED.draft({"origin": bob.origin, "key": other, "reason": "Met"}, "ann"))
    assert ann.merge(bob).problem == ""
    (added,) = ann.entries("peer.added")
    assert added.data["how"] == "first-use"
    with ann.team() as team:
        assert read_roster(team.store)[bob.origin].state == "first-use"


def test_a_peer_that_a_person_accepted_stays_so_when_its_key_is_rotated(
    ann: Replica, bob: Replica
) -> None:
    ann.merge(bob)
    with ann.team() as team:
        key = read_roster(team.store)[bob.origin].key
    ann.append(PEER_ACCEPTED.draft({"origin": bob.origin, "key": key, "reason": "Met"}, "ann"))
    with bob.team() as team:
        rotate_sealing_key(team, keys.passphrase_from_file, None)
    Path(ann.root, "policy.yaml").write_text("peers: closed\n", encoding="utf-8")
    assert ann.merge(bob).problem == ""
    with ann.team() as team:
        assert read_roster(team.store)[bob.origin].state == "accepted"


# Copies -----------------------------------------------------------------------------------------


def test_a_copy_that_took_a_name_of_its_own_is_taken_from_where_it_parts(
    tmp_path: Path, ann: Replica, bob: Replica
) -> None:
    bob.say("Before the copy.")
    ann.merge(bob)
    restore_as_copy(bob.root)
    with bob.team() as team:
        name_team(team, "bob")
        new = team.store.origin
    bob.say("Behind the copy.")
    done = ann.merge(bob)
    assert (done.problem, done.origin, done.added) == ("", new, True)
    assert len(ann.says("Before the copy.")) == 1
    assert len(ann.says("Behind the copy.")) == 1
    assert {origin for origin, _ in ann.kept()} == {ann.origin, bob.origin, new}
    assert ann.findings() == []


def test_a_copy_whose_first_line_nobody_has_brings_it_along(ann: Replica, bob: Replica) -> None:
    bob.say("Before the copy.")
    first = Forger(bob)
    restore_as_copy(bob.root)
    with bob.team() as team:
        name_team(team, "bob")
    assert ann.merge(bob).problem == ""
    assert len(ann.says("Before the copy.")) == 1
    first.say("on the other disk")
    assert ann.merge(first.record()).problem == ""
    assert len(ann.says("Before the copy.")) == len(ann.says("on the other disk")) == 1
    assert ann.findings() == []


def test_our_own_other_copy_is_a_peer_from_where_we_parted(ann: Replica, bob: Replica) -> None:
    ann.say("We both have this.")
    twin = Forger(ann)
    restore_as_copy(ann.root)
    with ann.team() as team:
        name_team(team, "ann")
    twin.say("on the other disk")
    done = ann.merge(twin.record())
    assert (done.problem, done.taken) == ("", 1)
    assert len(ann.says("We both have this.")) == 1
    assert len(ann.says("on the other disk")) == 1
    assert ann.merge(twin.record(len(twin.rows) - 1)).is_own
    twin.say("and more")
    assert ann.merge(twin.record()).taken == 1
    assert ann.findings() == []


def test_a_copy_that_went_on_under_the_old_name_is_taken_from_where_it_parted(
    ann: Replica, bob: Replica
) -> None:
    bob.say("We both have this.")
    twin = Forger(bob)
    bob.say("on the first disk")
    assert ann.merge(bob).problem == ""
    for number in range(9):
        twin.say(f"on the other disk, as the first {number}")
    twin.part("example.org/bob/fork/1", ann.team_id, "bob")
    twin.say("on the other disk, by its own name")
    for here in (ann, bob):
        assert here.merge(twin.record()).problem == ""
        assert here.entries("peer.forked") == []
        assert len(here.says("by its own name")) == len(here.says("on the first disk")) == 1
        shown = [f"eve@{twin.name}: on the other disk, as the first {n}" for n in range(9)]
        assert here.says("as the first") == shown
        twin.say("and more")
        assert here.merge(twin.record()).taken == 1
    bob.say("still the first")
    assert ann.merge(bob).problem == ""
    assert len(ann.says("still the first")) == 1
    assert ann.findings() == bob.findings() == []


@pytest.mark.parametrize("first", ["the copy", "the original"])
def test_who_meets_a_copy_first_takes_all_of_both(ann: Replica, bob: Replica, first: str) -> None:
    """The original was blamed for a fork where the copy's work under the old name came first."""
    bob.say("We both have this.")
    twin = Forger(bob)
    twin.say("on the other disk, as the first")
    twin.part("example.org/bob/fork/1", ann.team_id, "bob")
    twin.say("on the other disk, by its own name")
    bob.say("on the first disk")
    for number in range(3):
        for record in (twin.record(), bob.record())[:: 1 if first == "the copy" else -1]:
            assert ann.merge(record).problem == ""
        twin.say(f"and more there {number}")
        bob.say(f"and more here {number}")
    assert len(ann.says("We both have this.")) == 1
    assert len(ann.says("on the other disk")) == 2
    assert len(ann.says("on the first disk")) == 1
    assert ann.entries("peer.forked") == []
    assert ann.findings() == []


def test_two_copies_bring_what_they_share_once(ann: Replica, bob: Replica) -> None:
    """Both took names of their own, and the line that they left has no record."""
    bob.say("They both have this.")
    copies = [Forger(bob), Forger(bob)]
    for number, one in enumerate(copies):
        one.say(f"as the first {number}")
        one.part(f"example.org/bob/fork/{number}", ann.team_id, "bob")
        one.say(f"by its own name {number}")
        assert ann.merge(one.record()).problem == ""
    for text, times in (("They both have this.", 1), ("as the first", 2), ("by its own name", 2)):
        assert len(ann.says(text)) == times
    assert ann.findings() == []


def test_what_the_original_erases_is_erased_of_its_copy_too(ann: Replica, bob: Replica) -> None:
    bob.say("The password is hunter2.")
    twin = Forger(bob)
    twin.part("example.org/bob/fork/1", ann.team_id, "bob")
    assert ann.merge(twin.record()).problem == ""
    assert len(ann.says("hunter2")) == 1
    bob.redact("hunter2")
    assert ann.merge(bob).erased == 2, "the message, and the event that told of it"
    assert ann.says("hunter2") == []
    assert not any(b"hunter2" in path.read_bytes() for path in ann.files())
    assert ann.findings() == []


def test_what_the_copy_recorded_at_the_same_number_is_not_erased(
    ann: Replica, bob: Replica
) -> None:
    bob.say("They both have this.")
    first, twin = Forger(bob), Forger(bob)
    seq = first.say("The password is hunter2.")
    assert twin.say("Something else.") == seq
    twin.part("example.org/bob/fork/1", ann.team_id, "bob")
    for one in (first, twin):
        assert ann.merge(one.record()).problem == ""
    keep = tombstone("chat.sent", orjson.loads(first.rows[seq].body or b""))
    said = {"seq": seq, "kind": "chat.sent", "reason": "asked", "by": "bob", "keep": keep}
    first.add("redacted", said, id=redaction_entry_id(seq))
    done = ann.merge(first.record())
    assert (done.problem, done.erased) == ("", 1)
    assert (ann.says("hunter2"), len(ann.says("Something else."))) == ([], 1)
    assert ann.findings() == []


def test_a_copy_that_erased_a_body_does_not_stand_for_one_that_is_whole(
    ann: Replica, bob: Replica
) -> None:
    bob.say("The password is hunter2.")
    whole = bob.record(bob.folder / "whole")
    restore_as_copy(bob.root)
    with bob.team() as team:
        name_team(team, "bob")
    bob.redact("hunter2")
    assert ann.merge(bob).problem == ""
    assert ann.says("hunter2") == []
    assert ann.merge(whole).problem == ""
    assert len(ann.says("hunter2")) == 1
    assert ann.findings() == []


def test_what_a_copy_erases_of_the_line_that_it_left_stays_as_the_originals(
    ann: Replica, bob: Replica
) -> None:
    """The copy came first, so that its entry is shown for the original's."""
    bob.say("Tea at four.")
    whole = bob.record(bob.folder / "whole")
    restore_as_copy(bob.root)
    with bob.team() as team:
        name_team(team, "bob")
    assert ann.merge(bob).problem == ann.merge(whole).problem == ""
    bob.redact("Tea at four")
    done = ann.merge(bob)
    assert (done.problem, done.erased) == ("", 0)
    assert len(ann.says("Tea at four.")) == 1
    assert ann.findings() == []


@pytest.mark.parametrize("order", [(0, 1), (0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_what_several_adopted_is_shown_until_all_erased_it(
    ann: Replica, bob: Replica, order: tuple[int, ...]
) -> None:
    names = ("cid", "dan")[: len(order) - 1]
    peers = [bob, *(Replica(ann.folder.parent / one, one, ann.team_id) for one in names)]
    name = "events/1600000009000000-x-y-7.event"
    for one in peers:
        data = b"source: x\ntype: y\npriority: high\npayload: |\n  the word is hunter2\n"
        Path(one.root, name).write_bytes(data)
        with one.team() as team, team.act():
            pass
        one.say("There is soup.")
        one.redact("soup")  # of something else
        assert ann.merge(one).problem == ""
    shown = Path(ann.root, name)
    for number in order:
        assert b"hunter2" in shown.read_bytes(), "somebody said it, too"
        assert ann.findings() == []
        peers[number].redact("hunter2")
        assert ann.merge(peers[number]).problem == ""
    assert not any(b"hunter2" in path.read_bytes() for path in ann.files())
    assert ann.findings() == []


def test_what_a_copy_says_of_entries_before_it_is_found_here(ann: Replica, bob: Replica) -> None:
    bob.say("Shall we?")
    assert ann.merge(bob).problem == ""
    bob.say("Only the copy has this.")
    restore_as_copy(bob.root)
    with bob.team() as team:
        name_team(team, "bob")
    bob.decide("We shall", refs=["live.chat:~L7", "live.chat:~L8"])
    assert ann.merge(bob).problem == ""
    with ann.team() as team:
        (kept,) = [
            peer_view(one, team.store.blob)
            for one in team.store.read(kinds=("peer.entry",))
            if peer_view(one, team.store.blob).kind == "decision.logged"
        ]
        assert [ref["channel"] for ref in kept.data["refs"]] == ["live", "live"]
    assert ann.findings() == []


def forged_copy(bob: Replica, act: Callable[[Forger], object]) -> Forger:
    """Eve's record: Bob's own, something that she says he recorded, and a fork to her name."""
    eve = Forger(bob)
    act(eve)
    eve.part("example.org/eve", "example.org/ann", "eve")
    eve.say("I am Eve.")
    return eve


def test_what_a_copy_says_under_the_old_name_is_the_copys(ann: Replica, bob: Replica) -> None:
    """She has his record, as all have, and not his key."""
    bob.say("First.")
    assert ann.merge(bob).problem == ""
    eve = forged_copy(bob, lambda eve: eve.say("Bob says so.", handle="bob", actor="bob"))
    assert ann.merge(eve.record()).problem == ""
    assert ann.says("Bob says so.") == [f"bob@{eve.name}: Bob says so."]
    bob.say("Second.")
    assert ann.merge(bob).problem == ""
    assert ann.says("Second.") == [f"bob@{bob.name}: Second."]
    assert ann.findings() == []


def test_a_copy_erases_nothing_of_others_under_the_old_name(ann: Replica, bob: Replica) -> None:
    """Carl's copy stands for Bob's message; Eve says that Bob erased it."""
    bob.say("First.")
    first = bob.entries("chat.sent")[0]
    carl = Forger(bob)
    carl.part("example.org/carl", "example.org/ann", "carl")
    assert ann.merge(carl.record()).problem == ""

    def erase(eve: Forger) -> None:
        keep = tombstone(first.kind, first.data)
        said = {"seq": first.seq, "kind": first.kind, "reason": "asked", "by": "bob", "keep": keep}
        eve.add("redacted", said, id=redaction_entry_id(first.seq))

    assert ann.merge(bob).problem == ""
    done = ann.merge(forged_copy(bob, erase).record())
    assert (done.problem, done.erased) == ("", 0)
    assert len(ann.says("First.")) == 1
    assert ann.findings() == []


# Keys of actors ---------------------------------------------------------------------------------


def test_a_handle_that_is_enrolled_here_counts_with_its_signature(
    ann: Replica, bob: Replica
) -> None:
    vkey = enrol(ann, "zoe")
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    eve = Forger(bob)
    eve.say("I am Zoe.", handle="zoe", actor="zoe", signer=zoe)
    eve.say("I am Zoe, too.", handle="zoe", actor="zoe")
    assert ann.merge(eve.record()).problem == ""
    assert ann.says("I am Zoe") == ["zoe: I am Zoe.", f"zoe@{bob.name}: I am Zoe, too."]


def test_a_forged_signature_of_an_actor_that_is_known_here_is_named(
    ann: Replica, bob: Replica
) -> None:
    vkey = enrol(ann, "zoe")
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    eve = Forger(bob)
    seq = eve.say("I am Zoe.", handle="zoe", actor="zoe", signer=zoe, cause="forged-later")
    done = ann.merge(eve.record())
    assert f"entry {seq}: it says that 'zoe' signed it" in done.problem


def test_a_signature_by_a_key_that_was_revoked_here_vouches_for_nobody(
    ann: Replica, bob: Replica
) -> None:
    vkey = enrol(ann, "zoe")
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    with ann.team() as team:
        actors.revoke_actor(team, "zoe", "Lost", keys.passphrase_from_file)
    eve = Forger(bob)
    eve.say("I am Zoe.", handle="zoe", actor="zoe", signer=zoe)
    assert ann.merge(eve.record()).problem == ""
    assert ann.says("I am Zoe") == [f"zoe@{bob.name}: I am Zoe."]


@pytest.mark.parametrize("is_revoked_before", [True, False])
def test_a_key_vouches_for_what_was_merged_before_it_was_revoked(
    ann: Replica, bob: Replica, monkeypatch: pytest.MonkeyPatch, *, is_revoked_before: bool
) -> None:
    """A ledger whose owner shows what a revoked key signed as said by who had the key is wrong."""
    vkey = enrol(ann, "zoe")
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    eve = Forger(bob)
    eve.say("I am Zoe.", handle="zoe", actor="zoe", signer=zoe)

    def revoke() -> None:
        with ann.team() as team:
            actors.revoke_actor(team, "zoe", "Lost", keys.passphrase_from_file)

    if is_revoked_before:
        revoke()
    with monkeypatch.context() as patched:
        patched.setattr("tripod.peers.merge._Taking._keys_of", lambda *_: [zoe.verifier()])
        assert ann.merge(eve.record()).problem == ""
    if not is_revoked_before:
        revoke()
    assert ann.says("I am Zoe") == ["zoe: I am Zoe."]
    found = [one for one in ann.findings() if "by 'zoe', whose key did not sign it" in one]
    assert len(found) == is_revoked_before


def test_a_key_that_is_revoked_during_a_merge_vouches_for_nothing(
    ann: Replica, bob: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signatures are judged before the writer's lock is taken."""
    vkey = enrol(ann, "zoe")
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    eve = Forger(bob)
    eve.say("I am Zoe.", handle="zoe", actor="zoe", signer=zoe)
    flush = merging._Taking._flush

    def revoke_and_flush(*what: Any) -> None:
        with ann.team() as team:
            actors.revoke_actor(team, "zoe", "Lost", keys.passphrase_from_file)
        monkeypatch.undo()
        flush(*what)

    monkeypatch.setattr(merging._Taking, "_flush", revoke_and_flush)
    assert (
        "a key of an actor was changed in this ledger meanwhile" in ann.merge(eve.record()).problem
    )
    assert ann.merge(eve.record()).problem == ""
    assert ann.says("I am Zoe") == [f"zoe@{bob.name}: I am Zoe."]
    assert ann.findings() == []


def test_a_handle_that_is_enrolled_after_a_merge_changes_nothing_of_it(
    ann: Replica, bob: Replica
) -> None:
    """Zoe published in the name of Yan, of whom nobody had a key then."""
    vkey = enrol(ann, "zoe")
    zoe = keys.load_key(actor_key_path(vkey), "zoe", keys.passphrase_from_file)
    eve = Forger(bob)
    said: dict[str, Any] = {
        "name": "1700000000000000-yan-idle-7.event",
        "source": "yan",
        "type": "idle",
    }
    said |= {"priority": "low", "us": 1_700_000_000_000_000, "size": 90}
    eve.add("bus.published", said, "bus", actor="zoe", signer=zoe)
    assert ann.merge(eve.record()).problem == ""
    before = ann.findings()
    enrol(ann, "yan")
    assert ann.findings() == before == []


def test_what_a_peer_signs_with_a_key_of_its_own_is_taken(ann: Replica, bob: Replica) -> None:
    enrol(bob, "bob")
    bob.say("Signed by Bob.")
    assert ann.merge(bob).problem == ""
    assert ann.says("Signed by Bob.") == [f"bob@{bob.name}: Signed by Bob."]
    assert ann.findings() == []


# Kinds that count in their own replica alone ----------------------------------------------------


def test_what_counts_in_its_own_replica_alone_changes_nothing_here(
    ann: Replica, bob: Replica
) -> None:
    """Bob accepts a finding of Ann's, has a key for her handle, and erases what she said."""
    ann.say("Tea!")
    ann.decide("Open at nine")
    told = [one for outcome in verify(ann.root).outcomes for one in outcome.findings]
    (finding,) = [one for one in told if one.check == "chat-refs-resolve"]
    enrol(bob, "ann")
    for number in range(10):
        bob.say(f"{number}")
    (tea,) = ann.entries("chat.sent")
    eve = Forger(bob)
    accepted = {"check": finding.check, "fingerprint": finding.fingerprint, "reason": "So."}
    eve.add("finding.accepted", accepted, "findings")
    keep = tombstone(tea.kind, tea.data)
    said = {"seq": tea.seq, "kind": tea.kind, "reason": "asked", "by": "bob", "keep": keep}
    eve.add("redacted", said, id=redaction_entry_id(tea.seq))
    done = ann.merge(eve.record())
    assert (done.problem, done.erased) == ("", 0)
    ann.say("Coffee!")
    assert ann.says("Tea!") + ann.says("Coffee!") == ["ann: Tea!", "ann: Coffee!"]
    report = verify(ann.root)
    left = [one.fingerprint for outcome in report.outcomes for one in outcome.findings]
    assert (finding.fingerprint in left, report.accepted) == (True, 0)
    assert ann.findings() == []


@pytest.mark.parametrize("first", [0, 1])
def test_an_acknowledgement_is_of_the_event_of_who_is_marked_in_its_name(
    ann: Replica, bob: Replica, first: int
) -> None:
    """Bob has an event of that name himself, and calls Cid's by another one."""
    cid = Replica(ann.folder.parent / "cid", "cid", ann.team_id)
    for one in (bob, cid):
        data = f"source: x\ntype: y\npriority: high\npayload: |\n  {one.handle}\n"
        Path(one.root, "events/1600000009000000-x-y-7.event").write_text(data, encoding="utf-8")
        with one.team() as team, team.act():
            pass
    assert bob.merge(cid).problem == ""
    with bob.team() as team:
        bus.ack(team, f"1600000009000000-x-y-7-{cid.name[-16:]}.event")
    for one in (bob, cid) if first == 0 else (cid, bob):
        assert ann.merge(one).problem == ""
    (left,) = Path(ann.root, "events").glob("*.event")
    assert "  bob\n" in left.read_text(encoding="utf-8")
    assert ann.findings() == bob.findings() == []


# What a peer says that it had ---------------------------------------------------------------------


def acknowledges_all(forger: Forger, origin: str, size: int = 10**6) -> None:
    """It says that it merged so much of a replica, by a made-up seal, and acknowledged all."""
    key = SigningKey(origin, bytes(32))
    seal = Seal(origin, size, bytes(32))
    note = format_note(Note(format_seal(seal), (sign_seal(seal, key),))).decode()
    said = {"origin": origin, "size": size, "root": "00" * 32, "seal": {"text": note}}
    forger.add("peer.merged", said, "peers")
    forger.add("bus.acked-all", {"count": 1}, "bus")


def pending(replica: Replica) -> list[str]:
    return sorted(path.name.split("-")[2] for path in Path(replica.root, "events").glob("*.event"))


def test_an_acknowledgement_of_all_closes_no_event_that_its_maker_did_not_have(
    ann: Replica, bob: Replica
) -> None:
    bob.publish("known")
    assert ann.merge(bob).problem == ""
    ann.publish("here")
    eve = Forger(Replica(ann.folder.parent / "eve", "eve", ann.team_id))
    for origin in (ann.origin, bob.origin):
        acknowledges_all(eve, origin)
    assert ann.merge(eve.record()).problem == ""
    bob.publish("later")
    assert ann.merge(bob).problem == ""
    assert pending(ann) == ["here", "known", "later"]
    (found,) = ann.findings()
    assert f"a head of {ann.origin} that no known key opens" in found


def test_an_acknowledgement_of_all_is_of_what_its_maker_had_before_it(
    ann: Replica, bob: Replica
) -> None:
    bob.publish("later")
    note = bob.record().seal_note()
    eve = Forger(Replica(ann.folder.parent / "eve", "eve", ann.team_id))
    acknowledges_all(eve, bob.origin)
    seal = read_seal(note)
    said = {"origin": seal.origin, "size": seal.size, "root": seal.root.hex()}
    eve.add("peer.merged", said | {"seal": {"text": note.decode()}}, "peers")
    assert ann.merge(eve.record()).problem == ann.merge(bob).problem == ""
    assert pending(ann) == ["later"]


def test_a_seal_proves_no_larger_head_than_its_own(ann: Replica, bob: Replica) -> None:
    """Eve shows Bob's own seal, and says that it is of all that he recorded later, too."""
    note = bob.record().seal_note().decode()
    bob.publish("later")
    assert ann.merge(bob).problem == ""
    eve = Forger(Replica(ann.folder.parent / "eve", "eve", ann.team_id))
    said = {"origin": bob.origin, "size": 10**6, "root": "00" * 32, "seal": {"text": note}}
    eve.add("peer.merged", said, "peers")
    eve.add("bus.acked-all", {"count": 1}, "bus")
    assert ann.merge(eve.record()).problem == ""
    assert pending(ann) == ["later"]


def test_an_acknowledgement_of_all_of_a_handle_is_of_its_replica_alone(
    ann: Replica, bob: Replica
) -> None:
    with ann.team() as team:
        bus.publish(team, "bob", "kept", "normal", "")
    bob.publish("done")
    cid = Replica(ann.folder.parent / "cid", "cid", ann.team_id)
    for one in (ann, bob):
        assert cid.merge(one).problem == ""
    with cid.team() as team:
        assert bus.ack_all(team, f"bob@{bob.name}") == 1
    for one in (bob, cid):
        assert ann.merge(one).problem == ""
    assert pending(ann) == ["kept"]
    assert ann.findings() == []


def test_events_of_a_replica_that_comes_later_are_pending_where_nobody_had_them(
    ann: Replica, bob: Replica
) -> None:
    bob.publish("seen")
    cid = Replica(ann.folder.parent / "cid", "cid", ann.team_id)
    assert cid.merge(bob).problem == ""
    with cid.team() as team:
        assert bus.ack_all(team) == 1
    eve = Forger(Replica(ann.folder.parent / "eve", "eve", ann.team_id))
    acknowledges_all(eve, bob.origin)
    assert ann.merge(cid).problem == ann.merge(eve.record()).problem == ""
    bob.publish("later")
    assert ann.merge(bob).problem == ""
    assert pending(ann) == ["later"]
    with ann.team() as team:
        places = [one.data.get("place") or {} for one in team.store.read(kinds=("peer.entry",))]
    assert [len(place.get("unseen", ())) for place in places if "unseen" in place] == [1, 1]
