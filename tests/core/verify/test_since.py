"""What is new since an entry or a commit: old faults are counted, new ones are never left out."""

import shutil
from pathlib import Path

import pytest
from accepting import (
    GOOD,
    accept_all,
    begin,
    copied,
    decide,
    failures,
    judge,
    report_as_json,
    say,
    write,
)
from git_repo import Git
from specimens import database, forge, read

from tripod.bus import events as bus
from tripod.ledger.tlog.note import parse_note
from tripod.ledger.tlog.seal import parse_seal
from tripod.ledger.tlog.trailer import format_trailer
from tripod.peers.record import write_record_ref
from tripod.peers.replica import name_team
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.acceptance import revoke_acceptances
from tripod.trust.export import update_record
from tripod.verify import finding
from tripod.verify.anchors.git import Repository
from tripod.verify.reporters import text
from tripod.verify.run import verify


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    return begin(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def root(built: str, tmp_path: Path) -> str:
    return copied(built, tmp_path)


def size_of(root: str) -> int:
    with Team(root) as team:
        return team.store.head().size


def test_what_was_there_before_is_counted_and_left_out(root: str) -> None:
    decide(root)
    size = size_of(root)
    say(root)
    report = judge(root, since=size)
    assert (report.exit_code, report.failures) == (0, 0)
    assert report.since is not None
    assert report.since[0::2] == (size, {"chat-refs-resolve": 1})
    said = (
        f"note: only what is new since entry {size} is reported ({size} entries); left out, as it "
        "was there before: chat-refs-resolve 1\n"
    )
    assert said in text.brief_text(report)
    assert said in text.render(report)
    assert report_as_json(report)["since"]["left_out"] == {"chat-refs-resolve": 1}
    decide(root)
    report = judge(root, since=size)
    assert (report.exit_code, report.failures) == (1, 1)
    assert failures(judge(root, since=size - 1)) != failures(report), "one entry earlier"
    assert judge(root, since=0).failures == judge(root).failures == 2


def test_a_fault_of_an_old_entry_that_a_new_one_caused_is_new(root: str) -> None:
    """A checkpoint event of before is acknowledged, and nobody gave the review."""
    with Team(root) as team:
        (id_,) = team.store.db.execute("SELECT id FROM pieces WHERE id IS NOT NULL").fetchone()
        payload = f"Checkpoint at decision 1. Decisions {id_} through {id_}."
        bus.publish(team, "scribe", "pythia-checkpoint", "high", payload)
    size = size_of(root)
    with Team(root) as team:
        bus.ack_all(team)
    (found,) = failures(judge(root, since=size))
    assert found.check == "events-processed"
    assert found.seq is not None
    assert found.seq < size
    assert judge(root, since=size).since == (size, f"entry {size}", {})


def test_a_second_decision_of_an_old_id_is_new(root: str) -> None:
    old = decide(root, GOOD)
    size = size_of(root)
    decide(root, GOOD, id_=old)
    assert {one.check for one in failures(judge(root, since=size))} == {"decision-ids-unique"}


def test_what_is_wrong_with_the_ledger_or_with_files_is_never_left_out(root: str) -> None:
    decide(root)
    log = Path(root, "scribe/log.md")
    write(root, "scribe/log.md", log.read_bytes().replace(b"Agreed.", b"Agreed!"))
    size = size_of(root)
    assert {one.check for one in failures(judge(root, since=size))} == {"append-only"}
    rows = read(database(root))
    rows[9] = rows[9].headed(prev="0" * 64)
    forge(root, rows, link={9})
    assert "chain-links" in {one.check for one in failures(judge(root, since=size))}


def test_what_was_accepted_before_and_is_no_more_is_new(root: str) -> None:
    decide(root)
    (found,) = failures(judge(root))
    accept_all(root)
    size = size_of(root)
    assert judge(root, since=size).accepted == 1
    with Team(root) as team:
        revoke_acceptances(team, [found.fingerprint], reason="no", actor="bob")
    assert failures(judge(root, since=size)) == [found]


def test_many_old_findings_hide_no_new_one(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "KEPT", 2)
    for _ in range(4):
        decide(root)
    size = size_of(root)
    assert judge(root, since=size).failures == 0
    decide(root)
    report = judge(root, since=size)
    assert report.since is not None
    assert (report.failures, report.since.left_out) == (1, {"chat-refs-resolve": 4})
    assert failures(report)[0].seq == size


@pytest.mark.parametrize("beyond", [1, 10_000])
def test_a_number_beyond_the_end_leaves_nothing_out(root: str, beyond: int) -> None:
    decide(root)
    report = judge(root, since=size_of(root) + beyond)
    assert (report.exit_code, report.since) == (1, None)
    assert report.notes[0].startswith("everything is reported: there are ")


# A commit -----------------------------------------------------------------------------------------


@pytest.fixture
def git(built: str, tmp_path: Path) -> Git:
    """A repository whose first commit holds the record with a fault; then there is one more."""
    repository = Git(tmp_path / "shop")
    root = copied(built, repository.root)
    decide(root)
    with Team(root) as team:
        sealing.new_sealing_key(team)
        made = sealing.newest(team.store.db)
        assert made is not None
        update_record(root, team.store.path, made.note)  # as an earlier version did at each seal
    repository(
        "add",
        "--force",
        ".nbs/record",
        ".nbs/scribe",
        ".nbs/chat",
        ".nbs/events",
        ".nbs/counts.json",
    )
    repository("commit", "--quiet", "-m", "begin")
    repository("tag", "begun")
    say(root)
    repository("commit", "--quiet", "--allow-empty", "-m", "go on")
    return repository


@pytest.mark.parametrize(
    "revision", ["HEAD~1", "main", "refs/heads/main", "begun", "HEAD^", "begun~0", "hash"]
)
def test_a_revision_that_holds_a_seal(git: Git, revision: str) -> None:
    root = str(git.root / ".nbs")
    if revision == "hash":
        revision = git("rev-parse", "--short=8", "begun")
    assert judge(root).failures == 1
    report = judge(root, since=revision)
    assert (report.problem, report.exit_code) == ("", 0)
    assert report.since is not None
    assert report.since.left_out == {"chat-refs-resolve": 1}
    assert (
        report.since.why == f"the head in commit {git('rev-parse', 'begun')[:12]} ({revision})"
        or ("HEAD" not in revision)
    )
    decide(root)
    assert judge(root, since=revision).failures == 1


def test_a_clone_is_judged_by_its_record(git: Git, tmp_path: Path) -> None:
    git("clone", "--quiet", ".", str(tmp_path / "clone"))
    clone = str(tmp_path / "clone")
    assert [one.check for one in failures(verify(clone))] == ["chat-refs-resolve"]
    report = verify(clone, since="origin/main")
    assert (report.exit_code, report.failures) == (0, 0)
    assert report.since is not None
    assert report.since.left_out == {"chat-refs-resolve": 1}


@pytest.mark.parametrize(
    "revision", ["no-such", "--help", "-x", "HEAD~99", "main..begun", "main:x", "", "a b", "@{u}"]
)
def test_what_names_no_commit_judges_nothing(git: Git, revision: str) -> None:
    report = judge(str(git.root / ".nbs"), since=revision)
    assert report.exit_code == 3
    assert f"--since {revision}: there is no such commit" in report.problem


def test_a_commit_without_a_seal_judges_nothing(git: Git, built: str) -> None:
    git("rm", "--quiet", "-r", "--cached", ".nbs/record")
    git("commit", "--quiet", "-m", "without")
    report = judge(str(git.root / ".nbs"), since="HEAD")
    assert (report.exit_code, "holds no seal of this team's record" in report.problem) == (3, True)
    for path, how in ((str(git.root / ".nbs"), {"git": False}), (f"{built}/ledger.db", {})):
        report = judge(path, since="HEAD", **how)
        assert "a revision is one of the git repository of a team" in report.problem


def test_a_revision_of_a_records_ref_or_with_a_head_in_its_commits(
    git: Git, built: str, tmp_path: Path
) -> None:
    git("rm", "--quiet", "-r", "--cached", ".nbs/record")
    shutil.rmtree(git.root / ".nbs/record")
    git("commit", "--quiet", "-m", "without")
    root = str(git.root / ".nbs")
    with Team(root) as team:
        name, note = name_team(team)[1], sealing.newest(team.store.db)
        assert note is not None
        with Repository(root) as repository:
            write_record_ref(repository, f"refs/tripod/{name}", team.store.path, note.note)
    report = judge(root, since=f"refs/tripod/{name}")
    assert report.since is not None
    assert report.since.size == note.size
    parsed = parse_note(note.note.encode())
    line = format_trailer(name, parse_seal(parsed.text), parsed.signatures[0]).decode()
    git("commit", "--quiet", "--allow-empty", "-m", f"carry\n\n{line}")
    git("commit", "--quiet", "--allow-empty", "-m", "more")
    commit = git("rev-parse", "HEAD~1")
    report = judge(root, since="HEAD")
    assert report.since is not None
    assert report.since[:2] == (note.size, f"the head that commit {commit[:12]} carries")
    assert (report.exit_code, report.since.left_out) == (0, {"chat-refs-resolve": 1})


def test_the_head_of_another_history_leaves_nothing_out(git: Git, built: str) -> None:
    root = str(git.root / ".nbs")
    rows = read(database(root))
    rows[4] = rows[4].headed(at=rows[3].head["at"])
    forge(root, rows)
    report = judge(root, since="begun")
    assert report.exit_code == 1
    assert report.since is None
    assert any("are not those of the head in commit" in note for note in report.notes)
    assert {"chat-refs-resolve", "pins-extend"} <= {one.check for one in failures(report)}
    shutil.rmtree(root)


def test_it_does_not_go_with_a_pin(root: str) -> None:
    with pytest.raises(ValueError, match="give one of them"):
        verify(root, since=3, pin="x", new_only=True)
