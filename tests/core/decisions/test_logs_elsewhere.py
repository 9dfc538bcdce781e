"""Decision logs outside of ``scribe/``: a log that is met is the team's, and nothing beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from doors.inside import TRIPOD, Done, run, run_as
from git_repo import Git
from team_files import START, Said, outcome, write_chat

from tripod.decisions import reader as decisions_read
from tripod.decisions import writer as decisions_log
from tripod.errors import BadArgumentError
from tripod.ledger.locator import LEDGER
from tripod.projections.decisions.format import count_decision_headings
from tripod.recovery import rebuild as recover
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Report
from tripod.verify.evidence import collect
from tripod.verify.run import run as verify

HEADER = "# Decision Log\n\nProject: x\nCreated: 2020-01-01T00:00:00Z\nScribe: scribe\n"
SAID = ("--participants=ann", "--rationale=because", "--chat-ref=live.chat:~L7")
DOC = "# Handbook\n\nSee D-1.\n"


def entry(second: int, title: str) -> str:
    """A decision of so many seconds after the chat's first message."""
    return (
        f"\n---\n\n### D-{START + second} {title}\n- **Chat ref:** live.chat:~L7\n"
        "- **Participants:** ann\n- **Artefacts:** —\n- **Risk tags:** none\n"
        "- **Status:** decided\n"
        "- **Rationale:** because\n"
    )


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a folder of documents, two of them decision logs."""
    made = tmp_path / "shop"
    (made / "docs").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    write_chat(made / ".nbs", "live", [Said(0, "ann", "hi")])
    (made / ".gitignore").write_text("target/\n")
    (made / "docs/handbook.md").write_text(DOC)
    (made / "docs/other.md").write_text(HEADER + entry(17, "Not ours"))
    (made / "docs/decisions.md").write_text(HEADER + entry(1000, "One") + entry(1001, "Two"))
    return made


def log(where: Path, path: str, title: str, *words: str) -> Done:
    done = run_as("nbs-scribe-log", where, path, title, *SAID, *words)
    assert done.code == 0, done
    return done


def by_name(where: Path, title: str, name: str) -> Done:
    said = ("-p", "ann", "--rationale", "because", "--ref", "live.chat:~L7")
    return run(where, "scribe", "log", title, *said, "--log", name)


def judge(root: Path) -> Report:
    with collect(str(root)) as evidence:
        return verify(evidence)


def judged(where: Path) -> list[str]:
    """What the judge finds; nothing where all is clean."""
    done = run(where, "verify", "--no-git")
    return done.out.decode().splitlines() if done.code else []


def not_understood(where: Path) -> object:
    return outcome(judge(where), "drift").coverage["not understood"]


def kinds(where: Path) -> list[str]:
    with Team(str(where / ".nbs")) as team:
        return [one.kind for one in team.store.read()]


def headings(path: Path) -> int:
    return count_decision_headings(path.read_bytes())


def failures(report: Report, check: str) -> list[tuple[str, str]]:
    found = outcome(report, check).findings
    return [(one.where, one.message) for one in found if one.severity == "failure"]


# What is met ------------------------------------------------------------------------------------


def test_a_log_of_any_folder_is_taken_in_when_it_is_met(shop: Path) -> None:
    before = (shop / "docs/decisions.md").read_bytes()
    assert run_as("nbs-scribe", shop, "count", "docs/decisions.md").out == b"2\n"
    assert (shop / "docs/decisions.md").read_bytes() == before
    log(shop, "docs/decisions.md", "Three")
    after = (shop / "docs/decisions.md").read_bytes()
    assert after.startswith(before)
    assert headings(shop / "docs/decisions.md") == 3
    assert run_as("nbs-scribe", shop, "summary", "docs/decisions.md").out.count(b"D-") == 3
    assert run_as("nbs-scribe", shop, "query", "docs/decisions.md", "two").code == 0
    assert kinds(shop).count("place.added") == 1
    assert [path.name for path in shop.rglob("ledger.db")] == ["ledger.db"]
    assert (shop / ".gitignore").read_text() == "target/\n"
    assert judged(shop) == []


def test_nothing_else_of_that_folder_is_the_teams(shop: Path) -> None:
    shutil.copy(shop / "docs/other.md", shop / "docs/other-20200913-130000-archive.md")
    names = sorted({*os.listdir(shop / "docs"), "decisions.md.lock"})
    others = {name: (shop / "docs" / name).read_bytes() for name in os.listdir(shop / "docs")}
    others.pop("decisions.md")
    log(shop, "docs/decisions.md", "Three")
    (shop / "docs/handbook.md").write_text("rewritten\n")
    others["handbook.md"] = b"rewritten\n"
    assert not_understood(shop) == "0 files"
    assert judged(shop) == []
    run(shop, "sync")
    run(shop, "rebuild")
    assert {name: (shop / "docs" / name).read_bytes() for name in others} == others
    assert sorted(os.listdir(shop / "docs")) == names
    assert run(shop, "scribe", "count").out == b"3\n"
    with Team(str(shop / ".nbs")) as team:
        assert decisions_read.query(team, "Not ours") is not None
        assert [one.title for one in decisions_read.query(team, "ours")] == []


@pytest.mark.parametrize(
    "place", [".", "docs/deep", ".nbs", ".nbs/scribe/sub", ".nbs/scribe/a/b", ".nbs/chat", ".nbs/x"]
)
def test_a_new_log_is_begun_in_any_folder(shop: Path, place: str) -> None:
    adoption.init(str(shop), key=False)
    path = f"{place}/DECISIONS.md"
    log(shop, path, "One")
    log(shop, path, "Two")
    assert headings(shop / path) == 2
    assert run_as("nbs-scribe", shop, "count", path).out == b"2\n"
    assert not_understood(shop) == "0 files"
    assert judged(shop) == []
    (shop / path).unlink()
    assert judged(shop)
    assert run(shop, "rebuild").code == 0
    assert headings(shop / path) == 2
    assert judged(shop) == []


@pytest.mark.parametrize("place", [".nbs/workers", ".nbs/record"])
def test_folders_of_the_team_that_hold_something_else_are_refused(shop: Path, place: str) -> None:
    adoption.init(str(shop), key=False)
    done = run_as("nbs-scribe-log", shop, f"{place}/decisions.md", "One", *SAID)
    assert done.code == 1
    assert "holds something else of the team" in done.err
    assert "place.added" not in kinds(shop)


def test_a_mistyped_path_adds_nothing(shop: Path) -> None:
    for words in (("count", "docs/none.md"), ("query", "docs/none.md"), ("count", "x/none.md")):
        assert run_as("nbs-scribe", shop, *words).code == 2
    assert not (shop / ".nbs/ledger.db").exists()
    adoption.init(str(shop), key=False)
    for words in (("count", "docs/none.md"), ("summary", "docs/none.md")):
        assert run_as("nbs-scribe", shop, *words).code == 2
    done = run_as("nbs-scribe-log", shop, "docs/handbook.md", "One", *SAID)
    assert done.code == 4
    assert "no decision log" in done.err
    assert (shop / "docs/handbook.md").read_text() == DOC
    assert "place.added" not in kinds(shop)


def test_a_folder_is_one_however_it_is_named(shop: Path) -> None:
    (shop / "link").symlink_to("docs")
    (shop / "d.md").symlink_to("docs/decisions.md")
    names = ("link/decisions.md", "./docs/../docs/decisions.md", str(shop / "docs/decisions.md"))
    for name in (*names, "d.md"):
        log(shop, name, "T")
    assert run_as("nbs-scribe", shop, "count", "d.md").out == b"6\n"
    assert kinds(shop).count("place.added") == 1
    assert judged(shop) == []


def test_several_logs_of_one_folder_and_of_one_name(shop: Path) -> None:
    (shop / "ops/docs").mkdir(parents=True)
    log(shop, "docs/decisions.md", "Three")
    log(shop, "docs/other.md", "Another")
    log(shop, "ops/docs/decisions.md", "Elsewhere")
    log(shop, ".nbs/scribe/log.md", "Own")
    counts = {
        path: run_as("nbs-scribe", shop, "count", path).out
        for path in ("docs/decisions.md", "docs/other.md", "ops/docs/decisions.md")
    }
    assert list(counts.values()) == [b"3\n", b"2\n", b"1\n"]
    assert kinds(shop).count("place.added") == 2
    assert run(shop, "scribe", "count").out == b"7\n"
    assert run(shop, "scribe", "count", "--log", "docs-2/decisions.md").out == b"1\n"
    assert by_name(shop, "By name", "docs/decisions.md").code == 0
    assert headings(shop / "docs/decisions.md") == 4
    assert judged(shop) == []
    with (
        Team(str(shop / ".nbs")) as team,
        pytest.raises(BadArgumentError, match="no folder nowhere"),
    ):
        decisions_log.log(
            team, decisions_log.DecisionRequest("T", ["ann"], "because"), into="nowhere/x.md"
        )


def test_the_log_of_a_chat_elsewhere_is_beside_its_folder(shop: Path) -> None:
    for place in ("talk/chat", "talk/scribe"):
        (shop / place).mkdir(parents=True)
    adoption.init(str(shop), key=False)
    assert run_as("nbs-chat", shop, "create", "talk/chat/x.chat").code == 0
    (shop / "talk/scribe/x-log.md").write_text(HEADER + entry(1000, "One"))
    ask = ("nbs-scribe-query", shop, "--chat=talk/chat/x.chat")
    assert run_as(*ask, "--count").out == b"1\n"
    log(shop, "talk/scribe/x-log.md", "Two")
    assert run_as(*ask, "--count").out == b"2\n"
    assert judged(shop) == []


def test_a_named_ledger_takes_logs_from_everywhere(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adoption.init(str(shop), key=False)
    monkeypatch.setenv(LEDGER, str(shop))
    (tmp_path / "away").mkdir()
    log(tmp_path, "away/decisions.md", "One")
    assert not list((tmp_path / "away").rglob("ledger.db"))
    assert judged(shop) == []


# What others do there -----------------------------------------------------------------------------


def test_what_others_append_is_taken_in(shop: Path) -> None:
    log(shop, "docs/decisions.md", "Three")
    with (shop / "docs/decisions.md").open("a") as file:
        file.write(entry(1002, "By hand"))
    told = judge(shop)
    assert outcome(told, "drift").coverage["not taken in yet"] == 1, "verify reads unsynced bytes"
    assert told.failures == 0
    assert run(shop, "scribe", "count").out == b"4\n"
    assert judged(shop) == []


def test_an_id_used_in_another_folder_as_well_is_a_finding(shop: Path) -> None:
    (shop / "docs/other.md").write_text(HEADER + entry(1000, "Again"))
    log(shop, "docs/decisions.md", "Three")
    log(shop, "docs/other.md", "Four")
    found = outcome(judge(shop), "decision-ids-unique").findings
    assert any(f"D-{START + 1000}" in one.message for one in found)


@pytest.mark.parametrize("change", ["edit", "remove", "cut"])
def test_an_edit_is_a_failure_and_rebuild_puts_it_back(shop: Path, change: str) -> None:
    log(shop, "docs/decisions.md", "Three")
    path = shop / "docs/decisions.md"
    before = path.read_bytes()
    if change == "edit":
        path.write_bytes(before.replace(b"because", b"no reason"))
    elif change == "cut":
        path.write_bytes(before[: before.rindex(b"\n---\n")])
    else:
        path.unlink()
    if change == "cut":
        ((_, message),) = failures(judge(shop), "drift")
        assert "an older state, as of entry" in message
    else:
        assert [where for where, _ in failures(judge(shop), "append-only")] == [
            "scribe/docs/decisions.md"
        ]
    with Team(str(shop / ".nbs")) as team:
        assert "scribe/docs/decisions.md" in recover.rebuild(team).written
    assert path.read_bytes() == before
    assert judge(shop).failures == 0


def test_headings_are_counted_in_the_file(shop: Path) -> None:
    log(shop, "docs/decisions.md", "Three")
    path = shop / "docs/decisions.md"
    path.write_bytes(
        path.read_bytes().replace(b"### D-%d" % (START + 1001), b"## D-%d" % (START + 1001))
    )
    wheres = [where for where, _ in failures(judge(shop), "count-from-grep")]
    assert wheres == ["scribe/docs/decisions.md"]


def test_a_decision_behind_an_edit_is_taken_in(shop: Path) -> None:
    log(shop, "docs/decisions.md", "Three")
    path = shop / "docs/decisions.md"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"One", b"Won") + entry(1005, "Of a clone").encode())
    done = run(shop, "rebuild")
    assert done.code == 0, done
    assert path.read_bytes().startswith(whole)
    assert path.read_bytes().count(b"### D-%d" % (START + 1005)) == 1
    assert judge(shop).failures == 0


def test_an_archive_that_the_original_split_off_is_taken_in(shop: Path) -> None:
    log(shop, "docs/decisions.md", "Three")
    path = shop / "docs/decisions.md"
    path.rename(shop / "docs/decisions-20200913-130000-archive.md")
    path.write_text(HEADER, "utf-8")
    log(shop, "docs/decisions.md", "Four")
    assert "log.rotated" in kinds(shop)
    assert headings(path) == 1
    assert run_as("nbs-scribe", shop, "count", "docs/decisions.md").out == b"4\n"
    assert not_understood(shop) == "0 files"
    assert judged(shop) == []
    archive = shop / "docs/decisions-20200913-130000-archive.md"
    archive.write_bytes(archive.read_bytes().replace(b"One", b"Won"))
    assert failures(judge(shop), "append-only")


def test_a_log_that_is_met_with_its_archives(shop: Path) -> None:
    path = shop / "docs/decisions.md"
    archive = shop / "docs/decisions-archive-20200913-130000.md"
    path.rename(archive)
    path.write_text(HEADER + entry(1002, "Three"), "utf-8")
    name = "docs/decisions-archive-20200913-130000.md"
    assert run_as("nbs-scribe", shop, "count", name).code in (0, 2)
    assert run_as("nbs-scribe", shop, "count", "docs/decisions.md").out == b"3\n"
    assert judged(shop) == []


def test_the_originals_lock_is_taken_beside_the_log(shop: Path) -> None:
    log(shop, "docs/decisions.md", "Three")
    fd = os.open(shop / "docs/decisions.md.lock", os.O_RDWR)
    code = (
        "import fcntl,sys;f=open(sys.argv[1],'r+');fcntl.lockf(f,fcntl.LOCK_EX);"
        "print('held',flush=True);sys.stdin.read()"
    )
    holder = subprocess.Popen(
        ["python3", "-c", code, str(shop / "docs/decisions.md.lock")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        words = ["nbs-scribe-log", "docs/decisions.md", "Four", *SAID]
        waiting = subprocess.Popen(
            [str(Path(TRIPOD).with_name(words[0])), *words[1:]], cwd=shop, stdout=subprocess.PIPE
        )
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
        holder.communicate()
        waiting.communicate(timeout=60)
        assert waiting.returncode == 0
    finally:
        os.close(fd)
        holder.kill()
    assert headings(shop / "docs/decisions.md") == 4


def test_conflict_markers_are_named_and_nothing_is_taken_in(shop: Path) -> None:
    path = shop / "docs/decisions.md"
    text = HEADER + "<<<<<<< HEAD\n" + entry(1, "A") + "=======\n" + entry(2, "B") + ">>>>>>> x\n"
    path.write_text(text)
    done = run_as("nbs-scribe-log", shop, "docs/decisions.md", "Three", *SAID)
    assert done.code != 0
    assert "conflict marker" in done.err
    assert path.read_text() == text


@pytest.mark.parametrize("how", ["gone", "link"])
def test_a_folder_that_vanished_stops_no_work_in_the_others(shop: Path, how: str) -> None:
    log(shop, "docs/decisions.md", "Three")
    before = (shop / "docs/decisions.md").read_bytes()
    (shop / "docs").rename(shop / "gone")
    if how == "link":
        (shop / "docs").symlink_to("gone")
    done = run_as("nbs-scribe-log", shop, ".nbs/scribe/log.md", "Still here", *SAID)
    assert done.code == 0, done
    assert "no folder is there" in done.err
    assert "docs" in str(judged(shop))
    refused = by_name(shop, "Lost?", "docs/decisions.md")
    assert refused.code == 1
    assert "put it back" in refused.err
    if how == "link":
        (shop / "docs").unlink()
    (shop / "gone").rename(shop / "docs")
    assert (shop / "docs/decisions.md").read_bytes() == before
    assert judged(shop) == []
    shutil.rmtree(shop / "docs")
    assert run(shop, "rebuild").code == 0
    assert (shop / "docs/decisions.md").read_bytes() == before
    assert judged(shop) == []


def test_what_is_erased_stays_in_no_file(shop: Path) -> None:
    log(shop, "docs/decisions.md", "Secret plan")
    path = shop / "docs/decisions.md"
    old = path.read_bytes()
    (shop / "docs/handbook.md").write_text("Secret handbook\n")
    with Team(str(shop / ".nbs")) as team:
        done = redaction.redact(
            team, redaction.RedactionRequest(match="Secret", reason="a name", by="ann")
        )
        assert {one.kind for one in done.erased} >= {"decision.logged"}
        assert "handbook" not in str(done)
    assert b"Secret" not in path.read_bytes()
    assert (shop / "docs/handbook.md").read_text() == "Secret handbook\n"
    path.write_bytes(old)
    with Team(str(shop / ".nbs")) as team:
        team.refresh()
        recover.rebuild(team)
        kept = [e.data for e in team.store.read()]
        assert "Secret" not in str(kept)
    assert b"Secret" not in path.read_bytes()


# Git, other ledgers -------------------------------------------------------------------------------


def test_the_history_in_git_is_judged(tmp_path: Path) -> None:
    git = Git(tmp_path / "team")
    write_chat(git.root / ".nbs", "live", [Said(0, "ann", "hi")])
    (git.root / "docs").mkdir(parents=True, exist_ok=True)
    git.commit("docs/handbook.md", b"# Handbook\n\nold\n")
    git.commit("docs/handbook.md", b"# Handbook\n\nnew\n")
    path = "docs/decisions.md"
    git.commit(path, (HEADER + entry(1000, "One")).encode())
    git.commit(path, (HEADER + entry(1000, "One before it was met")).encode())
    log(git.root, path, "Two")
    data = (git.root / path).read_bytes()
    git.seconds = int(time.time()) + 100
    git.commit(path, data)
    told = outcome(judge(git.root), "append-only")
    assert not [one for one in told.findings if one.severity == "failure"]
    assert told.coverage["versions in git"] == 3
    assert "before adoption" in str(told.findings)
    git.commit(path, data.replace(b"because", b"nobody asked"))
    git.commit(path, data)
    told = outcome(judge(git.root), "append-only")
    assert told.coverage["restored"] == 1
    git.commit(path, data.replace(b"because", b"somebody asked"))
    told = outcome(judge(git.root), "append-only")
    assert path in {one.where for one in told.findings if one.severity == "failure"}


def test_a_team_without_logs_elsewhere_says_nothing_of_folders(shop: Path) -> None:
    log(shop, ".nbs/scribe/log.md", "One")
    assert "place.added" not in kinds(shop)
    assert run(shop, "scribe", "count").out == b"1\n"
