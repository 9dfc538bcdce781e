"""Replicas as witnesses of each other: what they remember of heads, and keep of entries."""

import re
import shutil
from contextlib import suppress
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import accepting
import orjson
import pytest
from clones import begin, fetch, kept, merge, put_back, record, rewrite, say
from doors.inside import run
from git_repo import Git
from replicas import Snapshot, place_with_home
from specimens import unguarded

from tripod.bus import events as bus
from tripod.errors import TripodError
from tripod.ledger import Draft, commit_body, format_canonical
from tripod.ledger.kinds.merged import KeptEntry, peer_entry_draft, peer_view
from tripod.ledger.kinds.peers import PEER_ACCEPTED, PEER_ADDED, PEER_MERGED, Place, peer_entry_id
from tripod.ledger.kinds.pythia import ASSESSED, PythiaAssessed
from tripod.ledger.kinds.redaction import REDACTED
from tripod.ledger.kinds.trust import ACCEPTED, REVOKED
from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.repair import copy_first_entries
from tripod.ledger.tlog.note import Note, SigningKey, VerifierKey, format_note, parse_note
from tripod.ledger.tlog.seal import Seal, format_seal, parse_seal, read_seal, sign_seal
from tripod.ledger.tlog.trailer import format_trailer
from tripod.peers import merge as merging
from tripod.peers.hooks import install_hooks
from tripod.peers.merge import merge_record
from tripod.peers.places import Places
from tripod.peers.replica import replica_name
from tripod.projections.erasure import tombstone
from tripod.recovery.redaction import erase_within
from tripod.team.team import Team
from tripod.trust import actors, keys
from tripod.trust.seal import rotate_sealing_key, seal_path
from tripod.verify import export_file
from tripod.verify.anchors.git import Repository
from tripod.verify.check import Outcome, Report
from tripod.verify.export_file import RefFiles
from tripod.verify.peers.placing import PlaceJudge
from tripod.verify.run import verify


class Pair(NamedTuple):
    """Ann and Bob, who have a replica each, and the refs of their records as others fetch them."""

    ann: Git
    bob: Git
    ann_name: str
    bob_name: str

    @property
    def ann_ref(self) -> str:
        return f"refs/tripod-remotes/ann/{self.ann_name}"

    @property
    def bob_ref(self) -> str:
        return f"refs/tripod-remotes/bob/{self.bob_name}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, Snapshot]:
    """Bob merged Ann's record, and Ann merged Bob's after that; their keys are beside them."""
    with place_with_home(tmp_path_factory) as folder:
        ann, ann_name, _ = begin(folder / "ann", "example.com/ann")
        bob, bob_name, _ = begin(folder / "bob", "example.com/bob")
        pair = Pair(ann, bob, ann_name, bob_name)
        say(ann, "Tea!")
        record(ann, ann_name)
        fetch(bob, ann)
        merge(bob, pair.ann_ref)
        record(bob, bob_name)
        fetch(ann, bob)
        merge(ann, pair.bob_ref)
    return pair, Snapshot(folder)


@pytest.fixture
def pair(made: tuple[Pair, Snapshot], monkeypatch: pytest.MonkeyPatch) -> Pair:
    """The two as they were made."""
    pair, snapshot = made
    snapshot.put_back(monkeypatch)
    return pair._replace(ann=copy(pair.ann), bob=copy(pair.bob))


def outcome(report: Report, check: str = "peers-agree") -> Outcome:
    return next(one for one in report.all_outcomes if one.check == check)


def messages(report: Report, check: str = "peers-agree") -> list[str]:
    found = [one for one in report.all_outcomes if one.check == check]
    return [finding.message for one in found for finding in one.findings]


def test_replicas_that_merged_each_other_agree(pair: Pair) -> None:
    for git in (pair.ann, pair.bob):
        report = verify(git.root)
        assert (report.exit_code, messages(report)) == (0, []), report
        told = outcome(report)
        assert told.verdict == "clean"
        assert int(told.coverage["agree"]) >= 2
        assert told.coverage["replicas"] == 2
        kept_, held = told.coverage["entries of peers"], told.coverage["held against their trees"]
        assert kept_ == held


def test_a_team_of_one_replica_has_its_own_ref_to_compare(tmp_path: Path) -> None:
    ann, name, _ = begin(tmp_path / "ann")
    record(ann, name)
    report = verify(ann.root)
    assert (outcome(report).verdict, outcome(report).coverage["replicas"]) == ("clean", 1)
    assert outcome(report, "trailers-agree").verdict == "not applicable"
    assert outcome(verify(ann.root, git=False)).verdict == "not applicable"


def test_a_replica_that_was_rewritten_is_found_with_both_seals(pair: Pair, tmp_path: Path) -> None:
    before = kept(pair.ann, tmp_path / "before.db")
    say(pair.ann, "Closed on Sundays.")
    said = record(pair.ann, pair.ann_name)
    fetch(pair.bob, pair.ann)
    merge(pair.bob, pair.ann_ref)
    record(pair.bob, pair.bob_name)
    rewrite(pair.ann, pair.ann_name, before)
    assert verify(pair.ann.root, select=["chain-links", "sequence"]).exit_code == 0
    fetch(pair.bob, pair.ann)
    report = verify(pair.bob.root)
    assert report.exit_code == 1
    found = [one for one in outcome(report).findings if one.message.startswith("fork")]
    assert pair.ann_name in found[0].message
    shown = "\n".join(found[0].evidence)
    assert said.rstrip("\n") in shown
    assert shown.count("example.com/ann\n") == 2
    # Ann's own ledger contradicts what Bob remembers of it, too.
    fetch(pair.ann, pair.bob)
    report = verify(pair.ann.root)
    assert any("in the ledger they have" in text for text in messages(report)), report
    # So does a clone with neither ledger.
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"x\n")
    fetch(clone, pair.ann, pair.bob)
    report = verify(clone.root)
    assert report.exit_code == 1
    assert any(text.startswith("fork") for text in messages(report))


@pytest.mark.parametrize("harm", ["another time", "another number", "another signature"])
def test_an_entry_that_is_kept_otherwise_than_its_maker_has_it(pair: Pair, harm: str) -> None:
    say(pair.ann, "Closed on Sundays.")
    record(pair.ann, pair.ann_name)
    fetch(pair.bob, pair.ann)
    with Team(f"{pair.ann.root}/.nbs") as team:
        entry = [one for one in team.store.read() if one.kind == "chat.sent"][-1]
    seq, header = entry.seq, entry.header
    if harm == "another time":
        header = header.replace(entry.at.encode(), b"2020" + entry.at[4:].encode())
    seq += harm == "another number"
    auth = bytes(69) if harm == "another signature" else entry.auth
    kept_ = KeptEntry("example.com/ann", seq, header, auth, entry.salt, entry.body)
    with Team(f"{pair.bob.root}/.nbs") as team:
        place: Place = {"actor": f"ann@{pair.ann_name}", "index": 1}
        team.append_apart(lambda: [peer_entry_draft(kept_, entry.stream, place=place)])
    report = verify(pair.bob.root)
    found = [one for one in outcome(report).findings if one.severity == "failure"]
    says = {
        "another time": f"it keeps another entry {seq} of {pair.ann_name} than the record on",
        "another number": f"it keeps entry {entry.seq} of example.com/ann as entry {seq}",
        "another signature": f"entry {seq} of example.com/ann is kept with another signature than",
    }
    assert len(found) == 1, report
    assert says[harm] in found[0].message
    assert report.exit_code == 1


def test_a_ledger_that_was_cut_off_is_a_rollback(pair: Pair, tmp_path: Path) -> None:
    before = kept(pair.ann, tmp_path / "before.db")
    for text in ("One", "Two", "Three", "Four", "Five"):
        say(pair.ann, text)
    record(pair.ann, pair.ann_name)
    fetch(pair.bob, pair.ann)
    merge(pair.bob, pair.ann_ref)
    record(pair.bob, pair.bob_name)
    database = Path(database_of(f"{pair.ann.root}/.nbs"))
    put_back(database, before)
    pair.ann("update-ref", "-d", f"refs/tripod/{pair.ann_name}")
    run(pair.ann.root, "show")
    fetch(pair.ann, pair.bob)
    assert any(text.startswith("rollback") for text in messages(verify(pair.ann.root)))


def test_a_record_that_went_back_is_named(pair: Pair, tmp_path: Path) -> None:
    old = pair.bob("rev-parse", pair.ann_ref)
    say(pair.ann, "More")
    record(pair.ann, pair.ann_name)
    fetch(pair.bob, pair.ann)
    merge(pair.bob, pair.ann_ref)
    pair.bob("update-ref", pair.ann_ref, old)
    report = verify(pair.bob.root)
    assert report.exit_code == 0
    assert [text.partition(":")[0] for text in messages(report)] == ["behind"]


def test_own_refs_are_held_against_the_ledger(pair: Pair, tmp_path: Path) -> None:
    before = kept(pair.bob, tmp_path / "before.db")
    for text in ("One", "Two", "Three"):
        say(pair.bob, text)
    record(pair.bob, pair.bob_name)
    database = Path(database_of(f"{pair.bob.root}/.nbs"))
    put_back(database, before)
    run(pair.bob.root, "show")
    report = verify(pair.bob.root)
    assert any(text.startswith("rollback") for text in messages(report)), report
    where = [one.where for one in outcome(report).findings]
    assert where == [f"refs/tripod/{pair.bob_name}"]


def test_a_level_counts_only_peers_that_a_person_accepted(pair: Pair, tmp_path: Path) -> None:
    report = verify(pair.ann.root)
    assert report.anchored is not None
    assert report.anchored.level == "SELF"
    done = run(pair.ann.root, "peer", "accept", "bob", "--reason", "We met", "--as", "ann")
    assert done.code == 0, done
    report = verify(pair.ann.root)
    assert report.anchored is not None
    size, by = report.anchored.sizes["PEERED"]
    assert (report.anchored.level, by) == ("PEERED", pair.bob_name)
    assert 0 < size <= 11
    assert report.anchored.tail > 0
    text = run(pair.ann.root, "verify", "-v").out.decode()
    assert f"PEERED by {pair.bob_name} up to entry {size - 1}; unanchored tail:" in text
    # Without Bob's record nothing shows that he holds the head.
    pair.ann("update-ref", "-d", pair.bob_ref)
    report = verify(pair.ann.root)
    assert report.anchored is not None
    assert report.anchored.level == "SELF"


def test_a_record_that_is_judged_vouches_for_nothing_in_itself(pair: Pair, tmp_path: Path) -> None:
    """The ref of another clone's record vouches for a ledger; that record itself is none."""
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"x\n")
    fetch(clone, pair.ann)
    (sizes,) = [one.anchored.sizes for one in verify(clone.root).parts if one.anchored]
    assert "PINNED" not in sizes
    fetch(pair.ann, pair.ann)
    report = verify(pair.ann.root)
    assert report.anchored is not None
    assert report.anchored.sizes["PINNED"][1].startswith("refs/tripod-remotes/ann/")


def test_who_was_accepted_with_another_key_vouches_for_nothing(pair: Pair) -> None:
    key = SigningKey("example.com/bob", bytes(32)).verifier().format()
    said = PEER_ACCEPTED.draft({"origin": "example.com/bob", "key": key, "reason": "We met"})
    with Team(f"{pair.ann.root}/.nbs") as team:
        team.append_apart(lambda: [said])
    report = verify(pair.ann.root)
    assert report.anchored is not None
    assert report.anchored.level == "SELF"


def test_a_policy_can_ask_for_peers(pair: Pair) -> None:
    (pair.ann.root / ".nbs/policy.yaml").write_text("level: PEERED\n")
    run(pair.ann.root, "sync")
    found = messages(verify(pair.ann.root), "pins-extend")
    assert any("the policy asks for PEERED" in text for text in found)


def test_refs_that_hold_something_else_are_named(pair: Pair) -> None:
    pair.ann("update-ref", "refs/tripod-remotes/x/README", "HEAD")
    pair.ann("update-ref", f"refs/tripod-remotes/x/{pair.bob_name}", "HEAD")
    report = verify(pair.ann.root)
    assert report.exit_code == 0
    assert sorted(one.where for one in outcome(report).findings) == [
        "refs/tripod-remotes/x/README", f"refs/tripod-remotes/x/{pair.bob_name}"
    ]  # fmt: skip


def test_a_tree_of_more_files_than_a_record_has_is_not_listed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level names the one below ten times: a few hundred bytes, and 10^7 paths."""
    tree = pair.ann("rev-parse", f"{pair.bob_ref}^{{tree}}").strip()
    note = pair.ann("rev-parse", f"{pair.bob_ref}:checkpoint").strip()
    for _ in range(6):
        lines = "".join(f"040000 tree {tree}\td{number}\n" for number in range(10))
        lines += f"100644 blob {note}\tcheckpoint\n"
        tree = pair.ann("mktree", given=lines.encode()).strip()
    commit = pair.ann("commit-tree", tree, "-m", "many").strip()
    pair.ann("update-ref", f"refs/tripod-remotes/x/{pair.bob_name}", commit)
    monkeypatch.setattr(export_file, "MAX_LISTED", 100_000)
    report = verify(pair.ann.root)
    (message,) = messages(report)
    assert "git ls-tree says more than 100000 bytes: not read" in message


def test_heads_in_commits_are_pins(pair: Pair, tmp_path: Path) -> None:
    install_hooks(str(pair.ann.root))
    # It goes on behind the commit, and would have the ledger open that is replaced below.
    (pair.ann.root / ".git/hooks/post-commit").unlink()
    before = kept(pair.ann, tmp_path / "before.db")
    say(pair.ann, "Closed on Sundays.")
    commit = pair.ann.commit("hours", b"nine\n", "Open at nine")
    report = verify(pair.ann.root)
    assert outcome(report, "trailers-agree").verdict == "clean"
    assert report.anchored is not None
    assert report.anchored.level == "PINNED"
    assert f"commit {commit[:12]}" in report.anchored.sizes["PINNED"][1]
    rewrite(pair.ann, pair.ann_name, before)
    report = verify(pair.ann.root)
    (finding,) = outcome(report, "trailers-agree").findings
    assert finding.message.startswith("fork: it remembers root")
    assert finding.where.startswith(f"commit {commit[:12]}")
    # Bob has the commit, and the record that was rewritten.
    fetch(pair.bob, pair.ann)
    pair.bob("fetch", "--quiet", str(pair.ann.root), "main:ann")
    assert outcome(verify(pair.bob.root), "trailers-agree").failures == 1


def test_a_shorter_ledger_than_a_commit_says_is_a_rollback(pair: Pair, tmp_path: Path) -> None:
    install_hooks(str(pair.ann.root))
    before = kept(pair.ann, tmp_path / "before.db")
    for text in ("One", "Two", "Three", "Four"):
        say(pair.ann, text)
    pair.ann.commit("hours", b"nine\n", "Open at nine")
    database = Path(database_of(f"{pair.ann.root}/.nbs"))
    put_back(database, before)
    run(pair.ann.root, "show")
    (message,) = messages(verify(pair.ann.root), "trailers-agree")
    assert message.startswith("rollback: it remembers")


def test_a_hole_in_the_ledger_leaves_heads_uncompared_and_breaks_no_check(pair: Pair) -> None:
    install_hooks(str(pair.ann.root))
    say(pair.ann, "Closed on Sundays.")
    pair.ann.commit("hours", b"nine\n", "Open at nine")
    with unguarded(database_of(f"{pair.ann.root}/.nbs")) as db:
        db.execute("DELETE FROM entries WHERE seq = 3")
    report = verify(pair.ann.root)
    told = outcome(report, "trailers-agree")
    assert (report.exit_code, told.verdict, told.findings) == (1, "cannot tell", ())
    assert "entries before it are missing here" in told.reason
    assert messages(report, "sequence")[0] == "entry 3 is missing"


def test_a_strangers_trailer_is_a_remark(pair: Pair) -> None:
    line = f"Tripod-Head: eve-0123456789abcdef 7 {'A' * 43}= {'A' * 91}="
    pair.ann.commit("x", b"x\n", f"Say\n\n{line}")
    report = verify(pair.ann.root)
    assert report.exit_code == 0
    (message,) = messages(report, "trailers-agree")
    assert "no known key opens" in message
    forged = line.replace("eve-0123456789abcdef", pair.ann_name)
    pair.ann.commit("x", b"y\n", f"Say\n\n{forged}")
    assert len(messages(verify(pair.ann.root), "trailers-agree")) == 2


@pytest.mark.parametrize("signed", ["another key", "its key ID", "another head", "named here"])
@pytest.mark.parametrize("is_true", [True, False])
def test_a_trailer_that_its_replica_did_not_sign_is_no_pin(
    pair: Pair, signed: str, is_true: bool
) -> None:
    """It neither vouches for the head that is there, nor contradicts it."""
    replica, origin, git = pair.ann_name, "example.com/ann", pair.ann
    if signed == "named here":
        replica, origin, git = pair.bob_name, "example.com/bob", pair.bob
    seal = read_seal(git("show", f"refs/tripod/{replica}:checkpoint").encode() + b"\n")
    key = SigningKey(origin, bytes(32))
    made = sign_seal(seal, key)
    if signed == "named here":
        vkey = key.verifier().format()
        said = PEER_ACCEPTED.draft({"origin": origin, "key": vkey, "reason": "We met"})
        with Team(f"{pair.ann.root}/.nbs") as team:
            team.append_apart(lambda: [said])
    elif signed != "another key":
        note = parse_note(git("show", f"refs/tripod/{replica}:checkpoint").encode() + b"\n")
        own = note.signatures[0]
        made = own if signed == "another head" else made._replace(key_id=own.key_id)
    if signed == "another head" or not is_true:
        seal = seal._replace(size=seal.size - 1, root=seal.root if is_true else bytes(32))
    line = format_trailer(replica, seal, made).decode()
    pair.ann.commit("x", b"x\n", f"Say\n\n{line}")
    report = verify(pair.ann.root)
    told = outcome(report, "trailers-agree")
    assert messages(report, "trailers-agree") == [
        f"a head of {replica} that no known key opens: it binds nothing"
    ]
    assert (report.exit_code, told.coverage["trailers"], told.coverage["agree"]) == (0, 1, 0)
    assert report.anchored is not None
    assert report.anchored.level == "SELF"


def test_a_trailer_by_a_key_that_came_later_is_a_pin(pair: Pair) -> None:
    """The replica's name ends in the digits of its first key."""
    with Team(f"{pair.ann.root}/.nbs") as team:
        rotate_sealing_key(team, keys.no_passphrase, None)
    record(pair.ann, pair.ann_name)
    note = parse_note(pair.ann("show", f"refs/tripod/{pair.ann_name}:checkpoint").encode() + b"\n")
    seal = parse_seal(note.text)
    line = format_trailer(pair.ann_name, seal, note.signatures[0]).decode()
    pair.ann.commit("x", b"x\n", f"Say\n\n{line}")
    report = verify(pair.ann.root)
    assert messages(report, "trailers-agree") == []
    assert outcome(report, "trailers-agree").coverage["agree"] == 1
    assert report.anchored is not None
    assert report.anchored.sizes["PINNED"][0] == seal.size


@pytest.mark.parametrize("count", [19, 21, 60])
def test_many_remarks_hide_no_failure(pair: Pair, tmp_path: Path, count: int) -> None:
    replicas = [f"eve-{number:016x}" for number in range(count)]
    lines = (f"Tripod-Head: {eve} 7 {'A' * 43}= {'A' * 91}=" for eve in replicas)
    pair.ann.commit("x", b"x\n", "Say\n\n" + "\n".join(lines))
    install_hooks(str(pair.ann.root))  # they take such lines out
    before = kept(pair.ann, tmp_path / "before.db")
    say(pair.ann, "Closed on Sundays.")
    commit = pair.ann.commit("hours", b"nine\n", "Open at nine")
    for eve in replicas:
        pair.ann("update-ref", f"refs/tripod-remotes/x/{eve}", "HEAD")
    report = verify(pair.ann.root)
    assert report.exit_code == 0
    for check in ("peers-agree", "trailers-agree"):
        told = outcome(report, check)
        assert (check, told.failures, told.warnings) == (check, 0, count)
    # Bob remembers what Ann then rewrites, and so does her own commit.
    record(pair.ann, pair.ann_name)
    fetch(pair.bob, pair.ann)
    merge(pair.bob, pair.ann_ref)
    record(pair.bob, pair.bob_name)
    rewrite(pair.ann, pair.ann_name, before)
    fetch(pair.ann, pair.bob)
    report = verify(pair.ann.root)
    assert report.exit_code == 1
    for check in ("peers-agree", "trailers-agree"):
        told = outcome(report, check)
        assert (told.failures >= 1, told.warnings >= count) == (True, True), check
        assert told.findings[0].severity == "failure"
    assert outcome(report, "trailers-agree").findings[0].where.startswith(f"commit {commit[:12]}")


def test_a_peers_newer_head_in_a_commit_is_only_not_here_yet(pair: Pair) -> None:
    install_hooks(str(pair.ann.root))
    say(pair.ann, "One")
    pair.ann.commit("hours", b"nine\n", "Open at nine")
    pair.bob("fetch", "--quiet", str(pair.ann.root), "main:ann")
    told = outcome(verify(pair.bob.root), "trailers-agree")
    assert (told.verdict, told.coverage["not here yet"]) == ("clean", 1)


# A ledger whose owner puts into it what its peers did not say -------------------------------------


class Forged(NamedTuple):
    """Ann's clone, who has fetched Bob's record and merged nothing, and what she puts in."""

    ann: Git
    bob: Git
    name: str  # of Bob's replica
    ref: str
    note: bytes
    key: VerifierKey

    def put(self, *drafts: Draft) -> None:
        with Team(f"{self.ann.root}/.nbs") as team:
            team.append_apart(lambda: drafts)

    def added(self, key: VerifierKey | None = None, name: str = "") -> Draft:
        vkey = (key or self.key).format()
        return PEER_ADDED.draft(
            {
                "origin": "example.com/bob",
                "replica": name or self.name,
                "key": vkey,
                "how": "first-use",
            }
        )

    def merged(self, note: bytes = b"") -> Draft:
        seal = read_seal(note or self.note)
        return PEER_MERGED.draft(
            {
                "origin": seal.origin,
                "size": seal.size,
                "root": seal.root.hex(),
                "seal": note or self.note,
            }
        )

    def found(self) -> list[str]:
        report = verify(f"{self.ann.root}/.nbs")
        failures = [one for one in outcome(report).findings if one.severity == "failure"]
        assert bool(failures) == bool(report.exit_code), report
        return [finding.message for finding in failures]


@pytest.fixture(scope="module")
def forgeries(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Forged, Snapshot]]:
    """The two as they are before she puts anything in, and after Bob answered."""
    found = []
    for is_answered in (False, True):
        with place_with_home(tmp_path_factory) as folder:
            forged = forge(folder)
            if is_answered:
                answer(forged)
        found.append((forged, Snapshot(folder)))
    return found


def forge(folder: Path) -> Forged:
    ann, ann_name, _ = begin(folder / "ann", "example.com/ann")
    bob, bob_name, key = begin(folder / "bob", "example.com/bob")
    say(ann, "Tea!")
    record(ann, ann_name)
    fetch(bob, ann)
    merge(bob, f"refs/tripod-remotes/ann/{ann_name}")
    say(bob, "Milk!")
    note = record(bob, bob_name).encode()
    fetch(ann, bob)
    return Forged(ann, bob, bob_name, f"refs/tripod-remotes/bob/{bob_name}", note, key)


def put_back_forged(made: tuple[Forged, Snapshot], monkeypatch: pytest.MonkeyPatch) -> Forged:
    forged, snapshot = made
    snapshot.put_back(monkeypatch)
    return forged._replace(ann=copy(forged.ann), bob=copy(forged.bob))


@pytest.fixture
def forged(forgeries: list[tuple[Forged, Snapshot]], monkeypatch: pytest.MonkeyPatch) -> Forged:
    return put_back_forged(forgeries[0], monkeypatch)


@pytest.fixture
def answered(forgeries: list[tuple[Forged, Snapshot]], monkeypatch: pytest.MonkeyPatch) -> Forged:
    """Bob decided, and answered to Ann; his record was fetched, and nothing of it merged."""
    return put_back_forged(forgeries[1], monkeypatch)


def made_up(seq: int, handle: str = "bob") -> Draft:
    """A message of Bob's that he did not send."""
    text = {"channel": "live", "index": 0, "handle": handle, "time": 7, "text": {"text": "Rum!"}}
    return made_up_entry(seq, "chat.sent", text, "chat/live")


def made_up_entry(seq: int, kind: str, said: dict[str, Any], stream: str) -> Draft:
    body, salt = format_canonical({**said, "v": 1}), bytes(32)
    header = {
        "actor": "bob", "at": "2026-01-01T00:00:00.000000Z", "id": f"made-{seq}", "v": 1,
        "body": commit_body(salt, kind, body), "kind": kind,
        "ledger": "example.com/bob", "prev": "00" * 32, "seq": seq, "stream": stream,
    }  # fmt: skip
    kept_ = KeptEntry("example.com/bob", seq, format_canonical(header), None, salt, body)
    return peer_entry_draft(kept_, stream)


@pytest.mark.parametrize("is_ref_there", [True, False])
def test_an_entry_behind_all_that_its_maker_sealed(forged: Forged, is_ref_there: bool) -> None:
    merge(forged.ann, forged.ref)
    if not is_ref_there:
        forged.ann("update-ref", "-d", forged.ref)
    assert forged.found() == []
    draft = made_up(18)  # his seal covers 18 entries
    draft.body["place"] = {"actor": f"bob@{forged.name}", "index": 2}
    forged.put(draft)
    assert forged.found() == [f"no seal of {forged.name} that is known here covers its entry 18"]


def test_a_pin_of_a_ledger_that_another_one_calls_its_peer(forged: Forged, tmp_path: Path) -> None:
    """Who puts a ledger of their own in the place of another one can name that one a peer."""
    pin = tmp_path / "bob.pin"
    pin.write_bytes(forged.note)
    forged.ann("update-ref", "-d", forged.ref)
    before = verify(forged.ann.root, pin=pin)
    forged.put(forged.added())
    report = verify(forged.ann.root, pin=pin)
    assert (before.exit_code, report.exit_code) == (1, 1)
    assert messages(report, "pins-extend") == messages(before, "pins-extend") != []
    assert messages(report) == [f"{forged.name} had 18 entries, and no ref here holds its record"]


@pytest.mark.parametrize("origin", ["example.com/bob", "example.com/ann"])
@pytest.mark.parametrize("git", [True, False])
def test_an_entry_of_a_replica_that_nobody_added(tmp_path: Path, origin: str, *, git: bool) -> None:
    """A ledger that names no peer was not looked through for entries of peers."""
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    record(ann, name)
    draft = made_up(500)
    draft.body["place"] = {"actor": "bob@bob-0123456789abcdef", "index": 0}
    draft.body["origin"] = origin
    with Team(f"{ann.root}/.nbs") as team:
        team.append_apart(lambda: [draft._replace(id=peer_entry_id(origin, 500))])
    report = verify(ann.root, git=git)
    (message,) = messages(report)
    assert message.endswith("that is known here covers its entry 500")
    assert report.exit_code == 1


def test_a_record_that_is_on_no_ref_any_more(pair: Pair, tmp_path: Path) -> None:
    """Of one that was cut off its own report says so; one that was removed has none."""
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"x\n")
    record(pair.ann, pair.ann_name)
    fetch(clone, pair.ann, pair.bob)
    assert verify(clone.root).exit_code == 0
    clone("update-ref", "-d", pair.bob_ref)
    said = f"{pair.bob_name} had 16 entries, and no ref here holds its record"
    report = verify(clone.root)
    assert (report.exit_code, messages(report)) == (1, [said])
    # So does a commit that carries its head, where nobody merged as much.
    install_hooks(str(pair.bob.root))
    size = say(pair.bob, "One")
    pair.bob.commit("hours", b"nine\n", "Open at nine")
    clone("fetch", "--quiet", str(pair.bob.root), "main:bob")
    assert messages(verify(clone.root)) == [said.replace("had 16", f"had {size}")]
    # Ann has all that she merged, and knows why the rest is not fetched any more.
    pair.ann("update-ref", "-d", pair.bob_ref)
    report = verify(pair.ann.root)
    assert (report.exit_code, messages(report)) == (0, [said])
    assert run(pair.ann.root, "peer", "close", pair.bob_name, "--reason", "Left").code == 0
    assert messages(verify(pair.ann.root)) == []
    assert run(pair.ann.root, "peer", "accept", pair.bob_name, "--reason", "Back").code == 0
    assert messages(verify(pair.ann.root)) == [said]


def test_entries_that_are_said_to_be_merged_and_are_not_here(forged: Forged) -> None:
    forged.put(forged.added(), forged.merged())
    (message,) = forged.found()
    assert message.startswith(f"entry 0 of {forged.name}, and ")
    assert message.endswith("says that all of its first 18 entries are")


def test_a_head_that_is_another_than_the_one_in_its_seal(forged: Forged) -> None:
    merge(forged.ann, forged.ref)
    for part, other in (("size", 17), ("root", "00" * 32), ("origin", "example.com/cid")):
        draft = forged.merged()
        draft.body[part] = other
        forged.put(draft)
    found = [message for message in forged.found() if message.startswith("it says that ")]
    assert len(found) == 3
    assert "it says that 17 entries of example.com/bob were merged, and the seal" in found[0]


def test_an_older_record_beside_the_newest_is_no_news(forged: Forged) -> None:
    old = forged.ann("rev-parse", forged.ref).strip()
    say(forged.bob, "Cocoa!")
    record(forged.bob, forged.name)
    fetch(forged.ann, forged.bob)
    merge(forged.ann, forged.ref)
    forged.ann("update-ref", f"refs/tripod-remotes/zoe/{forged.name}", old)
    assert outcome(verify(f"{forged.ann.root}/.nbs")).findings == ()


def test_a_rewritten_ledger_does_not_say_away_what_a_peer_remembers(
    forged: Forged, tmp_path: Path
) -> None:
    """It says that all of the peer was merged, so that only newer memories would be looked for."""
    database = Path(database_of(f"{forged.ann.root}/.nbs"))
    with Team(f"{forged.ann.root}/.nbs") as team:
        size = next(entry.seq for entry in team.store.read(kinds=("chat.sent",)))
        Path(seal_path(team.store.origin)).unlink()
    copy_first_entries(str(database), str(tmp_path / "cut.db"), size)
    put_back(database, tmp_path / "cut.db")
    shutil.rmtree(forged.ann.root / ".nbs")
    (forged.ann.root / ".nbs").mkdir()
    assert run(forged.ann.root, "rebuild").code == 0
    forged.put(forged.added(), forged.merged())
    for text in ("Wine!", "More wine!"):
        say(forged.ann, text)
    for name in forged.ann("for-each-ref", "--format=%(refname)", "refs/tripod").split():
        forged.ann("update-ref", "-d", name)
        record(forged.ann, name.rpartition("/")[2])
    assert any(message.startswith("fork: it remembers root") for message in forged.found())


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"actor": "ann"},
        {"actor": "ann@x-0123456789abcdef"},
        {"actor": "anna@BOB"},
        {"handle": "ann"},
        {"source": "ann@BOB"},
    ],
)
def test_an_entry_that_is_shown_as_one_by_somebody_else(
    forged: Forged, shown: dict[str, str]
) -> None:
    """Ann has a key here; another Ann, in Bob's replica, wrote without it."""
    with Team(f"{forged.ann.root}/.nbs") as team:
        actors.enrol_actor(team, "ann", keys.passphrase_from_file)
    with Team(f"{forged.bob.root}/.nbs") as team:
        one = [entry for entry in team.store.read() if entry.kind == "chat.sent"][-1]
    kept_ = KeptEntry("example.com/bob", one.seq, one.header, one.auth, one.salt, one.body)
    place: Place = {"index": 9}
    said: Any = {part: one.replace("BOB", forged.name) for part, one in shown.items()}
    if shown and "actor" not in shown:
        place["actor"] = f"ann@{forged.name}"
    place |= said
    forged.put(forged.added(), peer_entry_draft(kept_, "chat/live", place=place))
    message, absent = forged.found()
    assert message.startswith(f"it shows an entry of {forged.name} as one by 'ann")
    assert absent.startswith(f"entry 0 of {forged.name}, and ")


def test_who_speaks_in_a_peers_message_bears_its_mark(forged: Forged) -> None:
    merge(forged.ann, forged.ref)
    draft = made_up(18, "ann")
    draft.body["place"] = {"actor": f"bob@{forged.name}", "index": 2}
    forged.put(draft)
    said = f"it shows 'ann' as who speaks, and 'bob' of {forged.name} did it"
    assert said in forged.found()


def answer(forged: Forged) -> None:
    """Have Bob decide, and answer to Ann, and his record fetched; nothing of it is merged."""
    for words in (("done", "low"), ("idle", "low")):
        assert run(forged.ann.root, "bus", "publish", "ann", *words).code == 0
    wrote = ("scribe", "log", "-p", "ann", "-r", "It is good.")
    assert run(forged.ann.root, *wrote, "Milk", "--ref", "live#0").code == 0
    name = forged.ann("for-each-ref", "--format=%(refname)", "refs/tripod").rpartition("/")[2]
    record(forged.ann, name.strip())
    fetch(forged.bob, forged.ann)
    merge(forged.bob, f"refs/tripod-remotes/ann/{name.strip()}")
    with Team(f"{forged.bob.root}/.nbs") as team:
        (done,) = team.store.tables.execute("SELECT name FROM events WHERE type = 'done'")
        (first,) = team.store.tables.execute("SELECT id FROM pieces")
        bus.ack(team, done[0])
        bus.publish(team, "bob", "milk", "low", "white")
        bus.ack_all(team)
    said = run(forged.bob.root, *wrote, "Rum", "--ref", "live#1", "--supersedes", first[0])
    assert said.code == 0, said
    record(forged.bob, forged.name)
    fetch(forged.ann, forged.bob)


PLACES: list[tuple[str, Any, str]] = [
    ("chat.sent", {"index": 0}, "as line 0 of live, which is not the next one"),
    ("chat.sent", {"index": 9}, "as line 9 of live, which is not the next one"),
    ("chat.sent", {"channel": "quiet", "index": 0}, "as line 0 of quiet, which is not the next"),
    ("chat.created", {"channel": "quiet"}, "in 'quiet', and it is of 'live'"),
    ("chat.sent", {"size": 3}, "with 'size', which its kind has not"),
    ("decision.logged", {"number": 9}, "as decision 9 of log.md, which is not the next one"),
    ("decision.logged", {"number": 1}, "as decision 1 of log.md, which is not the next one"),
    ("decision.logged", {"made": "cid-0123456789abcdef/D-7"}, "as made as 'cid-"),
    ("decision.logged", {"id": "D-7"}, "as D-7, which is not the first free id from D-"),
    ("decision.logged", {"id": "7"}, "as 7, which is not the first free id from D-"),
    ("decision.logged", {"supersedes": "D-1"}, "as one that supersedes D-1"),
    ("decision.logged", {"refs": [], "chat_ref": "none yet"}, "without its reference to entry"),
    ("decision.logged", {"chat_ref": "live.chat:~L1"}, "with other references than 'live.chat:~L"),
    ("decision.logged", {"refs": 7}, "in a way that cannot be judged: TypeError"),
    ("decision.logged", {"same": 3}, "and that is another"),
    ("decision.logged", {"same": 999}, "and that is not before it"),
    ("decision.logged", {"file": "quiet.md"}, "as decision 2 of quiet.md, which is not the next"),
    ("bus.published", {"name": "7-quiet.event"}, "as 7-quiet.event, and it is "),
    ("bus.published", {"size": 7}, "with 7 bytes"),
    ("bus.acked", {"event": 3}, "as one of "),
    ("bus.acked", {"event": None}, "as one of "),
    ("bus.acked-all", {"known": [{"origin": "x", "size": 999}]}, "as if 999 entries of example"),
    ("bus.acked-all", {"known": [{}, {"origin": "x", "size": 1}]}, "cannot be judged: KeyError"),
    ("bus.acked-all", {"source": "ann"}, "as one of the events of 'ann'"),
    ("seal.made", {"index": 9}, "with 'index', which its kind has not"),
    (
        "decision.logged",
        lambda body, _: {"id": f"D-{int(body['id'][2:]) + 1}"},
        "which is not the first free id from D-",
    ),
    (
        "decision.logged",
        lambda _, place: {"refs": [*place["refs"], place["refs"][0]]},
        "with other references than 'live.chat:~L",
    ),
    (
        "decision.logged",
        lambda _, place: {"refs": [place["refs"][0] | {"line": 1}], "chat_ref": "live.chat:~L1"},
        "with a reference that ",
    ),
    ("bus.published", lambda body, _: {"name": f"quiet/{body['name']}"}, "as quiet/"),
]


def test_each_member_of_a_place_is_found_again(
    answered: Forged, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge(answered.ann, answered.ref)
    real = PlaceJudge.problem
    found: dict[int, str | None] = {}

    def problem(self: PlaceJudge, at: int, *said: Any) -> str | None:
        kept, head, data, name = said
        for number, (kind, change, _) in enumerate(PLACES):
            if head.kind == kind:
                place = data.get("place") or {}
                more = change(orjson.loads(kept.body), place) if callable(change) else change
                place = {**place, **more}
                found[number] = real(self, at, kept, head, {**data, "place": place}, name)
        return real(self, at, kept, head, data, name)

    monkeypatch.setattr(PlaceJudge, "problem", problem)
    assert answered.found() == []
    for number, (kind, change, message) in enumerate(PLACES):
        assert message in (found[number] or ""), (kind, change)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("chat.sent", {"index": 0}, "line 0 of live"),
        ("chat.sent", {"index": 9}, "line 9 of live"),
        ("decision.logged", {"number": 9}, "decision 9 of log.md"),
    ],
)
def test_what_was_placed_behind_another_or_apart(
    answered: Forged, monkeypatch: pytest.MonkeyPatch, kind: str, change: Place, said: str
) -> None:
    """No file would show it, or one with a gap."""
    real = Places.place

    def place(self: Places, origin: str, header: Any, *rest: Any, **more: Any) -> Any:
        found = real(self, origin, header, *rest, **more)
        return {**(found or {}), **change} if header.kind == kind else found

    monkeypatch.setattr(Places, "place", place)
    merge(answered.ann, answered.ref)
    message = answered.found()[0]
    assert message.startswith("it shows entry ")
    assert message.endswith(f"of {answered.name} as {said}, which is not the next one")


def test_an_event_that_got_the_name_of_another(
    answered: Forged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of one would take the place of the other's."""
    with Team(f"{answered.bob.root}/.nbs") as team:
        (name,) = team.store.tables.execute(
            "SELECT name FROM events WHERE type = 'milk'"
        ).fetchone()
    file = answered.ann.root / ".nbs/events" / name
    file.write_text("source: x\ntype: y\npriority: low\npayload: |\n  z\n", encoding="utf-8")
    assert run(answered.ann.root, "sync").code == 0
    monkeypatch.setattr(Places, "_event_name", lambda *said: said[2])
    merge(answered.ann, answered.ref)
    assert any("and another event had that name" in one for one in answered.found())


@pytest.mark.parametrize("by", ["another kind", "one of its id", "itself"])
def test_an_entry_that_another_is_shown_for(forged: Forged, by: str) -> None:
    """It would be hidden: by another kind, by one to which Ann gave its id, or by itself."""
    with Team(f"{forged.bob.root}/.nbs") as team:
        one = [entry for entry in team.store.read() if entry.kind == "chat.sent"][-1]
    at = 3
    if by == "one of its id":
        body = {"channel": "live", "handle": "ann", "index": 1, "time": 7, "text": {"text": "Rum!"}}
        with Team(f"{forged.ann.root}/.nbs") as team:
            at = team.store.size
        forged.put(Draft("chat.sent", "chat/live", "ann", {**body, "v": 1}, id=one.id))
    with Team(f"{forged.ann.root}/.nbs") as team:
        at = team.store.size + 1 if by == "itself" else at
    kept_ = KeptEntry("example.com/bob", one.seq, one.header, one.auth, one.salt, one.body)
    forged.put(forged.added(), peer_entry_draft(kept_, "chat/live", place={"same": at}))
    found = forged.found()
    shown = f"it shows entry {at} in the place of entry {one.seq} of {forged.name}"
    assert any(message.startswith(shown) for message in found), found


def test_an_entry_that_is_erased_here_and_not_by_its_maker(forged: Forged) -> None:
    merge(forged.ann, forged.ref)
    with Team(f"{forged.bob.root}/.nbs") as team:
        one = [entry for entry in team.store.read() if entry.kind == "chat.sent"][-1]
    with Team(f"{forged.ann.root}/.nbs") as team, team.act() as act:
        seq = team.store.seq_of(peer_entry_id("example.com/bob", one.seq))
        assert seq is not None
        entry = team.store.entry(seq)
        assert entry is not None
        keep = tombstone(entry.kind, entry.data | {"keep": tombstone(one.kind, one.data)})
        said: Any = {"seq": seq, "kind": entry.kind, "reason": "so", "by": "tripod", "keep": keep}
        erase_within(act, [REDACTED.draft(said, cause=entry.id)])
    (message,) = forged.found()
    assert message.startswith(f"it keeps entry {one.seq} of {forged.name} as erased otherwise")


def test_an_acknowledgement_of_all_events_of_a_handle_here_is_shown_as_that(
    forged: Forged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bob calls her what his files call her, and she is called Ann here."""
    merge(forged.ann, forged.ref)
    (ref,) = forged.ann("for-each-ref", "--format=%(refname)", "refs/tripod").split()
    name = ref.rpartition("/")[2]
    done = run(forged.ann.root, "bus", "publish", "ann", "done", "low")
    assert done.code == 0, done
    record(forged.ann, name)
    fetch(forged.bob, forged.ann)
    merge(forged.bob, f"refs/tripod-remotes/ann/{name}")
    with Team(f"{forged.bob.root}/.nbs") as team:
        assert bus.ack_all(team, f"ann@{name}") == 1
    record(forged.bob, forged.name)
    fetch(forged.ann, forged.bob)
    merge(forged.ann, forged.ref)
    with Team(f"{forged.ann.root}/.nbs") as team:
        places = [entry.data.get("place") or {} for entry in team.store.read(kinds=("peer.entry",))]
    assert "ann" in [place.get("source") for place in places]
    assert forged.found() == []
    real = PlaceJudge.problem
    shown: dict[str, str] = {}

    def problem(self: PlaceJudge, at: int, *said: Any) -> str | None:
        kept_, head, data, replica = said
        if head.kind == "bus.acked-all":
            place = {part: one for part, one in data["place"].items() if part != "source"}
            data = {**data, "place": place | shown}
        return real(self, at, kept_, head, data, replica)

    monkeypatch.setattr(PlaceJudge, "problem", problem)
    (found,) = forged.found()
    assert found.endswith(f" as one of the events of 'ann@{name}'")
    shown["source"] = "bob"
    (found,) = forged.found()
    assert found.endswith(" as one of the events of 'bob'")


def test_an_assessment_that_is_shown_as_one_of_another_event(forged: Forged) -> None:
    merge(forged.ann, forged.ref)
    said: dict[str, Any] = {
        "event": 500, "message": 501, "origin": "recorded", "first": "D-1", "last": "D-1",
        "decisions": 1, "confidence": "high", "cited": [], "content": {"text": "Good."},
        "sha256": sha256(b"Good.").hexdigest(),
    }  # fmt: skip
    draft = made_up_entry(18, "pythia.assessed", said, "pythia")
    draft.body["place"] = {"actor": f"bob@{forged.name}", "event": 3}
    forged.put(draft)
    assert any(
        message.endswith(" as about entry 3, and its event is entry None")
        for message in forged.found()
    )


def test_a_body_that_its_maker_did_not_erase(forged: Forged) -> None:
    with Team(f"{forged.bob.root}/.nbs") as team:
        entry = [one for one in team.store.read() if one.kind == "chat.sent"][-1]
    keep: dict[str, object] = {**entry.data, "text": {"text": "Rum!"}}
    kept_ = KeptEntry("example.com/bob", entry.seq, entry.header, None, None, None)
    place: Place = {"index": 1, "actor": f"ann@{forged.name}"}
    forged.put(forged.added(), peer_entry_draft(kept_, "chat/live", place=place, keep=keep))
    absent, message = forged.found()
    assert message.startswith(f"it keeps entry {entry.seq} of {forged.name} as erased otherwise")
    assert absent.endswith(f" more is not here, and its entry {entry.seq} is")


def test_a_second_key_for_one_replica(forged: Forged) -> None:
    """Ann knows Bob by a key that she made, and what he says by it."""
    key = SigningKey("example.com/bob", sha256(b"ann").digest())
    seal = Seal("example.com/bob", 9, bytes(32))
    note = format_note(Note(format_seal(seal), (sign_seal(seal, key),)))
    name = replica_name("bob", key.verifier().format())
    draft = made_up(5)
    draft.body["place"] = {"actor": f"bob@{name}", "index": 1}
    forged.put(forged.added(key.verifier(), name), draft, forged.merged(note))
    (message,) = forged.found()
    assert "two replicas have that name, or one was made up" in message


def test_a_key_that_was_rotated_opens_what_was_merged_before(forged: Forged) -> None:
    merge(forged.ann, forged.ref)
    with Team(f"{forged.bob.root}/.nbs") as team:
        rotate_sealing_key(team, keys.passphrase_from_file, None)
    say(forged.bob, "Cocoa!")
    record(forged.bob, forged.name)
    fetch(forged.ann, forged.bob)
    merge(forged.ann, forged.ref)
    assert outcome(verify(f"{forged.ann.root}/.nbs")).findings == ()


@pytest.mark.parametrize("is_ref_there", [True, False])
def test_a_key_for_which_its_replica_does_not_vouch(forged: Forged, is_ref_there: bool) -> None:
    """Ann says that Bob has another key, and by that he says what she likes."""
    merge(forged.ann, forged.ref)
    if not is_ref_there:
        forged.ann("update-ref", "-d", forged.ref)
    key = SigningKey("example.com/bob", sha256(b"ann").digest())
    seal = Seal("example.com/bob", 501, bytes(32))
    note = format_note(Note(format_seal(seal), (sign_seal(seal, key),)))
    draft = made_up(500)
    draft.body["place"] = {"actor": f"bob@{forged.name}", "index": 2}
    said = PEER_ACCEPTED.draft(
        {"origin": seal.origin, "key": key.verifier().format(), "reason": "so"}
    )
    forged.put(forged.added(key.verifier()), said, draft)
    forged.put(forged.merged(note))
    said_, loose = forged.found()
    assert said_.startswith("a head of example.com/bob that no known key opens: ")
    assert loose == f"no seal of {forged.name} that is known here covers its entry 500"


def test_a_made_up_change_of_a_peers_key_vouches_for_nothing(forged: Forged) -> None:
    merge(forged.ann, forged.ref)
    forged.ann("update-ref", "-d", forged.ref)
    key = SigningKey("example.com/bob", sha256(b"ann").digest())
    seal = Seal("example.com/bob", 501, bytes(32))
    note = format_note(Note(format_seal(seal), (sign_seal(seal, key),)))
    said = {"vkey": key.verifier().format(), "note": "a note"}
    forged.put(made_up_entry(500, "key.set", said, "ledger"), forged.merged(note))
    assert f"no seal of {forged.name} that is known here covers its entry 500" in forged.found()


def test_a_record_on_the_ref_of_another_is_named(forged: Forged) -> None:
    merge(forged.ann, forged.ref)
    name = forged.ann("for-each-ref", "--format=%(refname)", "refs/tripod").split()[0]
    other = f"refs/tripod-remotes/bob/{name.rpartition('/')[2]}"
    forged.ann("update-ref", other, forged.ref)
    (found,) = outcome(verify(f"{forged.ann.root}/.nbs")).findings
    assert found.where == other
    assert "sealed under another key" in found.message


def without(git: Git, ref: str, *fronts: str) -> None:
    """Make the ref a record in which files are missing."""
    files = (line.split() for line in git("ls-tree", "-r", ref).split("\n") if line)
    kept_ = "".join(
        f"M 100644 {blob} {path}\n" for _, _, blob, path in files if not path.startswith(fronts)
    )
    front = f"commit {ref}\ncommitter A <a@b> 0 +0000\ndata 1\nx\n"
    git("fast-import", "--quiet", "--force", given=f"{front}{kept_}".encode())


@pytest.mark.parametrize("harm", ["its entries are missing", "another's name", "another front"])
def test_a_seal_binds_its_maker_whatever_record_it_stands_on(
    pair: Pair, tmp_path: Path, harm: str
) -> None:
    """Two seals of one size by Ann's key; the record of one is damaged, or bears another name."""
    before = kept(pair.ann, tmp_path / "before.db")
    say(pair.ann, "Closed on Sundays.")
    record(pair.ann, pair.ann_name)
    digits = pair.ann_name[-16:]
    name = {"another's name": "zed-0123456789abcdef", "another front": f"boss-{digits}"}.get(harm)
    ref = f"refs/tripod-remotes/far/{name or pair.ann_name}"
    pair.ann("update-ref", ref, f"refs/tripod/{pair.ann_name}")
    if name is None:
        without(pair.ann, ref, "tile/")
    rewrite(pair.ann, pair.ann_name, before)
    report = verify(pair.ann.root)
    assert report.exit_code == 1
    found = [one for one in outcome(report).findings if one.where == ref]
    assert sorted(one.severity for one in found) == ["failure", "warning"]
    assert any("in the ledger they have" in one.message for one in found)
    # Beside the longer record of the same name in a clone that has neither ledger.
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"x\n")
    fetch(clone, pair.ann, pair.bob)
    clone("fetch", "--quiet", str(pair.ann.root), f"{ref}:{ref}")
    report = verify(clone.root)
    (own,) = [part for part in report.parts if part.what == pair.ann_ref]
    assert any("in the ledger they have" in text for text in messages(own)), messages(own)


@pytest.mark.parametrize("is_long", [False, True])
def test_a_long_seal_is_remembered_as_well(pair: Pair, tmp_path: Path, is_long: bool) -> None:
    """One of more than 16 KiB is a blob in the record of who remembers it, and nowhere else."""
    before = kept(pair.ann, tmp_path / "before.db")
    say(pair.ann, "Closed on Sundays.")
    said = record(pair.ann, pair.ann_name)
    more = "".join(f"\u2014 example.com/{'w' * 200}{n} {'A' * 88}\n" for n in range(90))
    seal = read_seal(said.encode())
    body = {"origin": seal.origin, "size": seal.size, "root": seal.root.hex()}
    note = (said + more * is_long).encode()
    with Team(f"{pair.bob.root}/.nbs") as team:
        team.append_apart(lambda: [PEER_MERGED.draft({**body, "seal": note})])  # type: ignore[typeddict-item]
    record(pair.bob, pair.bob_name)
    rewrite(pair.ann, pair.ann_name, before)
    fetch(pair.ann, pair.bob)
    assert verify(pair.ann.root).exit_code == 1
    assert any(text.startswith("fork: ") for text in messages(verify(pair.ann.root)))


@pytest.mark.parametrize("left", ["its headers", "its bundle", "its memory"])
def test_a_record_whose_memory_cannot_be_read_is_named(pair: Pair, left: str) -> None:
    """A remote can take the bodies away: no seal shows that, and no head in them is compared."""
    say(pair.ann, "Closed on Sundays.")
    record(pair.ann, pair.ann_name)
    fetch(pair.bob, pair.ann)
    merge(pair.bob, pair.ann_ref)
    record(pair.bob, pair.bob_name)
    fetch(pair.ann, pair.bob)
    if left == "its memory":
        (path,) = (
            one
            for one in pair.ann("ls-tree", "-r", "--name-only", pair.bob_ref).split("\n")
            if one.startswith("bodies/")
        )
        lines = pair.ann("show", f"{pair.bob_ref}:{path}").split("\n")
        lines = [
            f'{{"seq":{seq}}}' if '"root":' in line and '"seal":' in line else line
            for seq, line in enumerate(lines)
        ]
        without(pair.ann, pair.bob_ref, path)
        files = pair.ann("ls-tree", "-r", pair.bob_ref).split("\n")
        data = ("\n".join(lines) + "\n").encode()
        kept_ = "".join(
            f"M 100644 {blob} {name}\n" for _, _, blob, name in map(str.split, filter(None, files))
        )
        front = f"commit {pair.bob_ref}\ncommitter A <a@b> 0 +0000\ndata 1\nx\n{kept_}"
        given = front.encode() + b"M 100644 inline %b\ndata %d\n%b\n" % (
            path.encode(), len(data), data
        )  # fmt: skip
        pair.ann("fast-import", "--quiet", "--force", given=given)
    else:
        without(pair.ann, pair.bob_ref, "bodies/0" if left == "its bundle" else "bodies/", "blobs")
    (found,) = outcome(verify(pair.ann.root)).findings
    assert (found.where, found.severity) == (pair.bob_ref, "warning")
    what = "it holds headers alone: " if left != "its memory" else "not all that it remembers is "
    assert found.message.startswith(what)


def test_a_copy_of_its_beginning_hides_no_record_that_is_gone(tmp_path: Path) -> None:
    """Somebody goes on with an early copy of Ann's ledger, and removes her ref from the remote."""
    ann, ann_name, _ = begin(tmp_path / "ann", "example.com/ann")
    record(ann, ann_name)
    shutil.copytree(tmp_path / "ann", tmp_path / "copy")
    copy = Git(tmp_path / "copy", made=False)
    say(ann, "Tea!")
    record(ann, ann_name)
    bob, bob_name, _ = begin(tmp_path / "bob", "example.com/bob")
    fetch(bob, ann)
    merge(bob, f"refs/tripod-remotes/ann/{ann_name}")
    record(bob, bob_name)
    for is_early in (False, True):
        if not is_early:  # all that Bob remembers is in a later copy
            shutil.copytree(tmp_path / "ann", tmp_path / "late")
        made = copy if is_early else Git(tmp_path / "late", made=False)
        assert run(made.root, "restore", "--as-copy").code == 0
        assert run(made.root, "seal").code == 0
        made("update-ref", "-d", f"refs/tripod/{ann_name}")
        clone = Git(tmp_path / f"clone{is_early}")
        clone.commit("README", b"x\n")
        fetch(clone, made, bob)
        said = [f"{ann_name} had 9 entries, and no ref here holds its record"]
        report = verify(clone.root)
        assert (report.exit_code, messages(report)) == ((1, said) if is_early else (0, []))


@pytest.mark.parametrize("name", ["boss-0123456789abcdef", "boss-BOB"])
def test_a_replica_that_is_known_by_another_name_than_it_has(forged: Forged, name: str) -> None:
    name = name.replace("BOB", forged.name[-16:])
    forged.put(forged.added(name=name))
    assert forged.found() == [f"this ledger calls it {name}, which is not the name that it has"]


def test_an_entry_that_is_left_out_before_others(
    answered: Forged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No head says that all is here, and what came later is."""
    real = merging._Taking._take

    def take(self: Any, judge: Any, entry: Any) -> None:
        real(self, judge, entry)
        if self.batch and self.batch[-1].header.kind == "decision.logged":
            self.batch.pop()

    monkeypatch.setattr(merging._Taking, "_take", take)
    monkeypatch.setattr(merging._Taking, "_proven", lambda _: None)
    monkeypatch.setattr(merging, "_merged", lambda *_: answered.added())
    merge(answered.ann, answered.ref)
    (message,) = answered.found()
    assert re.fullmatch(rf"entry \d+ of {answered.name} is not here, and its entry \d+ is", message)


def test_what_a_peer_said_stands_in_the_file_of_its_name(
    answered: Forged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision of Bob's is not in the log that is read, a message not in the chat."""

    def local(self: Any, holds: str, name: str, origin: str, _: Any) -> str:
        end = ".md" if holds == "scribe" else ""
        return str(self._flat(origin, *name.removesuffix(end).split("/"))) + end

    monkeypatch.setattr(Places, "_local", local)
    merge(answered.ann, answered.ref)
    found = answered.found()
    for name, end in (("live", ""), ("log.md", "")):
        shown = f"in '{answered.name}.{name}{end}', and it is of '{name}'"
        assert any(message.endswith(shown) for message in found), found


@pytest.mark.parametrize("harm", ["left out", "another"])
def test_the_long_text_of_a_peer_is_kept_with_its_entry(forged: Forged, harm: str) -> None:
    say(forged.bob, "long " * 4000)
    record(forged.bob, forged.name)
    fetch(forged.ann, forged.bob)
    with Repository(f"{forged.ann.root}/.nbs") as git, Team(f"{forged.ann.root}/.nbs") as team:
        tip = git.tip(forged.ref)
        assert tip is not None
        other = {sha256(b"x").digest(): b"x"} if harm == "another" else None
        with pytest.MonkeyPatch.context() as patch, suppress(TripodError):
            patch.setattr(
                merging,
                "peer_entry_draft",
                lambda *said, **more: peer_entry_draft(*said, **more | {"blobs": other}),
            )
            merge_record(team, RefFiles(git, tip))
    said = messages(verify(f"{forged.ann.root}/.nbs"), "kinds-known")
    assert said == ["peer.entry: its blobs are not those that the body which it keeps names"] * len(
        said
    )
    assert said


def test_the_review_of_a_copy_answers_no_checkpoint_here(tmp_path: Path) -> None:
    """A copied disk has the checkpoint as well: its answer neither is ours, nor takes its place."""
    ann, name, _ = begin(tmp_path / "ann", "example.com/ann")
    wrote = ("scribe", "log", "Milk", "-p", "ann", "-r", "Good.", "--no-ref", "so")
    assert run(ann.root, *wrote).code == 0
    assert run(ann.root, "bus", "publish", "scribe", "pythia-checkpoint", "high").code == 0
    record(ann, name)
    shutil.copytree(ann.root, tmp_path / "copy")
    copy = Git(tmp_path / "copy", made=False)
    assert run(copy.root, "restore", "--as-copy").code == 0
    say(copy, "It is good.")
    with Team(f"{copy.root}/.nbs") as team:
        entries = list(team.store.read())
        (decided,) = (one.data["id"] for one in entries if one.kind == "decision.logged")
        (asked,) = (one for one in entries if one.data.get("type") == "pythia-checkpoint")
        said = [one for one in entries if one.kind == "chat.sent"][-1]
        body: PythiaAssessed = {
            "event": asked.seq,
            "origin": "recorded",
            "first": decided,
            "last": decided,
            "decisions": 1,
            "confidence": "high",
            "cited": [],
            "content": b"It is good.",
            "sha256": sha256(b"It is good.").hexdigest(),
            "message": said.seq,
        }
        team.append_apart(lambda: [ASSESSED.draft(body)])
    assert run(copy.root, "seal").code == 0
    fetch(ann, copy)
    for ref in ann("for-each-ref", "--format=%(refname)", "refs/tripod-remotes").split():
        merge(ann, ref)
    rows = "SELECT event, merged FROM assessments ORDER BY merged"
    with Team(f"{ann.root}/.nbs") as team:
        assert team.store.tables.execute(rows).fetchall() == [(asked.seq, 1)]
        bus.ack(team, asked.data["name"])
    (found,) = messages(verify(ann.root), "events-processed")
    assert found.endswith("was acknowledged, and no assessment answers it")
    with Team(f"{ann.root}/.nbs") as team:
        team.append_apart(lambda: [ASSESSED.draft({**body, "first": "D-7"})])
        assert team.store.tables.execute(rows).fetchall() == [(asked.seq, 0), (asked.seq, 1)]
    report = verify(ann.root)
    assert messages(report, "events-processed") == []
    assert any(
        "it reviewed D-7 through" in text for text in messages(report, "assessment-complete")
    )


def test_what_a_peer_accepts_is_not_accepted_here(pair: Pair) -> None:
    """Neither does a peer take back what was accepted here."""
    root = f"{pair.ann.root}/.nbs"
    wrote = ("scribe", "log", "Milk", "-p", "ann", "-r", "Good.", "--no-ref", "so")
    assert run(pair.ann.root, *wrote).code == 0
    accepting.decide(root)
    (found,) = accepting.failures(verify(root))
    said: dict[str, Any] = {"check": found.check, "fingerprint": found.fingerprint, "reason": "so"}

    def exchange(kind: Any) -> Report:
        with Team(f"{pair.bob.root}/.nbs") as team:
            team.append_apart(lambda: [kind.draft(said, "ann")])
        record(pair.bob, pair.bob_name)
        fetch(pair.ann, pair.bob)
        merge(pair.ann, pair.bob_ref)
        with Team(root) as team:
            kept_ = list(team.store.read(kinds=("peer.entry",)))
            assert kind.name in [peer_view(one, team.store.blob).kind for one in kept_]
        return verify(root)

    report = exchange(ACCEPTED)
    assert (accepting.failures(report), report.accepted, report.exit_code) == ([found], 0, 1)
    assert accepting.accept_all(root) == 1
    report = exchange(REVOKED)
    assert (accepting.failures(report), report.accepted, report.exit_code) == ([], 1, 0)
