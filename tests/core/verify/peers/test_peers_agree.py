"""Replicas as witnesses of each other: what they remember of heads, and keep of entries."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from clones import begin, fetch, kept, merge, record, rewrite, say
from doors.inside import run
from git_repo import Git

from tripod.ledger.kinds.merged import KeptEntry, peer_entry_draft
from tripod.ledger.locator import database_of
from tripod.peers.hooks import install_hooks
from tripod.team.team import Team
from tripod.verify.check import Outcome, Report
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


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Bob merged Ann's record, and Ann merged Bob's after that."""
    ann, ann_name, _ = begin(tmp_path / "ann", "example.com/ann")
    bob, bob_name, _ = begin(tmp_path / "bob", "example.com/bob")
    pair = Pair(ann, bob, ann_name, bob_name)
    say(ann, "Tea!")
    record(ann, ann_name)
    fetch(bob, ann)
    merge(bob, pair.ann_ref)
    record(bob, bob_name)
    fetch(ann, bob)
    merge(ann, pair.bob_ref)
    return pair


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


@pytest.mark.parametrize("harm", ["another time", "another number"])
def test_an_entry_that_is_kept_otherwise_than_its_maker_has_it(pair: Pair, harm: str) -> None:
    say(pair.ann, "Closed on Sundays.")
    record(pair.ann, pair.ann_name)
    fetch(pair.bob, pair.ann)
    with Team(f"{pair.ann.root}/.nbs") as team:
        entry = [one for one in team.store.read() if one.kind == "chat.sent"][-1]
    seq, header = entry.seq, entry.header
    if harm == "another time":
        header = header.replace(entry.at.encode(), b"2020" + entry.at[4:].encode())
    else:
        seq += 1
    kept_ = KeptEntry("example.com/ann", seq, header, entry.auth, entry.salt, entry.body)
    with Team(f"{pair.bob.root}/.nbs") as team:
        team.append_apart(lambda: [peer_entry_draft(kept_, entry.stream)])
    report = verify(pair.bob.root)
    found = [one for one in outcome(report).findings if one.severity == "failure"]
    says = {
        "another time": f"it keeps another entry {seq} of {pair.ann_name} than the record on",
        "another number": f"it keeps entry {entry.seq} of example.com/ann as entry {seq}",
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
    for path in database.parent.glob("ledger.db*"):
        path.unlink()
    shutil.copy(before, database)
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
    for path in database.parent.glob("ledger.db*"):
        path.unlink()
    shutil.copy(before, database)
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


def test_heads_in_commits_are_pins(pair: Pair, tmp_path: Path) -> None:
    install_hooks(str(pair.ann.root))
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
    for path in database.parent.glob("ledger.db*"):
        path.unlink()
    shutil.copy(before, database)
    run(pair.ann.root, "show")
    (message,) = messages(verify(pair.ann.root), "trailers-agree")
    assert message.startswith("rollback: it remembers")


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
