"""What is staged of a file that must only grow, judged before the commit that would change it."""

import subprocess
import sys
from pathlib import Path

import pytest
from doors.inside import run
from git_repo import Git
from hypothesis import given, settings
from hypothesis import strategies as st

from tripod.verify.anchors.file_growth import judge_growth
from tripod.verify.check import Report

LOG = "notes/DECISIONS.md"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    git = Git(tmp_path / "repo")
    git.commit(LOG, b"one\ntwo\nthree\n")
    return git


def stage(git: Git, data: bytes | None, path: str = LOG) -> Report:
    """Stage a version (None: the removal), and judge it."""
    if data is None:
        git("rm", "--quiet", "--cached", "--", path)
    else:
        git.write(path, data)
        git("add", "--", path)
    return judge(git, path)


def judge(git: Git, path: str = LOG) -> Report:
    return judge_growth(str(git.root / path), staged=True)


def said(report: Report) -> list[tuple[str, int | None]]:
    found = [finding for outcome in report.outcomes for finding in outcome.findings]
    assert all(one.file == LOG for one in found)
    return [(one.message, one.line) for one in found]


def test_an_index_that_is_split_into_two_files_is_read_whole(git: Git) -> None:
    git("update-index", "--split-index")
    assert list((git.root / ".git").glob("sharedindex.*"))
    assert stage(git, b"one\ntwo\nthree\nfour\n").exit_code == 0
    assert stage(git, b"one\n").exit_code == 1


def test_what_is_staged_counts_and_not_what_stands_in_the_work_tree(git: Git) -> None:
    assert judge(git).exit_code == 0, "nothing is staged"
    assert stage(git, b"one\ntwo\nthree\nfour\n").exit_code == 0
    report = stage(git, b"one\n2\nthree\nfour\n")
    assert report.exit_code == 1
    (found,) = said(report)
    assert found == (
        "what is staged: lines 2 to 3 of the version before it are not as they were", 2,
    )  # fmt: skip
    git.write(LOG, b"one\ntwo\nthree\n")
    assert said(judge(git)) == [found], "put back on the disk, and still staged"
    assert stage(git, b"one\ntwo\nthree\n").exit_code == 0
    git.write(LOG, b"0\n")
    assert judge(git).exit_code == 0, "what is not staged is not committed"


def test_a_removal_and_a_rename_are_refused(git: Git) -> None:
    assert said(stage(git, None)) == [("what is staged: it was removed", None)]
    git("reset", "--quiet")
    git("mv", LOG, "notes/OLD.md")
    assert said(judge(git)) == [("what is staged: it was removed", None)]
    assert judge(git, "notes/OLD.md").exit_code == 0, "a history is that of a path"


def test_a_break_that_is_committed_stops_no_later_commit(git: Git) -> None:
    git.commit(LOG, b"one\n2\nthree\n")
    assert stage(git, b"one\n2\nthree\nfour\n").exit_code == 0
    assert stage(git, b"one\ntwo\nthree\nfour\n").exit_code == 0, "it may be put right"
    assert stage(git, b"1\n2\nthree\n").exit_code == 1


def test_where_nothing_is_staged_the_report_says_what_was_not_judged(git: Git) -> None:
    """`pre-commit run --all-files` in CI stages nothing, and was as green as a whole history."""
    git.commit(LOG, b"one\n2\nthree\n")
    report = judge(git)
    assert report.exit_code == 0
    assert report.notes == (
        f"nothing that is staged changes {LOG}: what is committed was not judged",
    )
    assert stage(git, b"one\n2\nthree\nfour\n").notes == ()
    assert judge_growth(str(git.root / LOG)).notes == ()


def test_a_merge_keeps_the_lines_of_both_sides(git: Git) -> None:
    git("checkout", "--quiet", "-b", "side")
    git.commit(LOG, b"one\ntwo\nthree\nside\n")
    git("checkout", "--quiet", "main")
    git.commit(LOG, b"one\ntwo\nthree\nmain\n")
    git("merge", "--quiet", "--strategy=ours", "--no-commit", "side")
    assert stage(git, b"one\ntwo\nthree\nmain\n").exit_code == 1
    assert stage(git, b"one\ntwo\nthree\nmain\nside\n").exit_code == 0
    assert stage(git, b"one\ntwo\nthree\nside\n").exit_code == 1


def test_a_first_commit_and_a_new_file_have_nothing_to_keep(tmp_path: Path) -> None:
    git = Git(tmp_path / "new")
    assert judge(git).exit_code == 3
    assert "not staged" in judge(git).problem
    assert stage(git, b"one\n").exit_code == 0


def test_an_index_that_git_names_is_the_one_that_is_committed(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``git commit FILE`` and ``git commit --all`` make one of their own, and say so to hooks."""
    git.write(LOG, b"1\n")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/other")
    git("read-tree", "HEAD")
    git("add", LOG)
    assert judge(git).exit_code == 1
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert judge(git).exit_code == 0
    hook = git.root / ".git/hooks/pre-commit"
    hook.parent.mkdir()
    hook.write_text(f'#!/bin/sh\nenv | grep ^GIT_INDEX >"{git.root}/named"\n')
    hook.chmod(0o755)
    git("commit", "--quiet", "--all", "-m", "x")
    assert (git.root / "named").read_text().startswith("GIT_INDEX_FILE="), "git does say so"


def test_what_cannot_be_read_is_no_yes(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    (git.root / ".git/index").write_bytes(b"DIRC and nothing more")
    assert judge(git).exit_code == 3
    (git.root / ".git/index").unlink()
    (git.root / ".git/index").mkdir()
    assert "what is staged cannot be read" in judge(git).problem


def test_looking_writes_nothing_into_the_repository(git: Git) -> None:
    stage(git, b"one\n2\n")

    def listed() -> set[tuple[str, int]]:
        files = (path for path in git.root.rglob("*") if path.is_file())
        return {(str(path), path.stat().st_mtime_ns) for path in files}

    before = listed()
    assert judge(git).exit_code == 1
    assert listed() == before


def test_the_command_judges_each_file_and_names_the_line(git: Git) -> None:
    git.commit("log.txt", b"a\nb\n")
    words = ["verify", "--staged", "--grow-only", LOG, "--grow-only", "log.txt"]
    assert run(git.root, *words).code == 0
    stage(git, b"a\nB\n", "log.txt")
    done = run(git.root, *words)
    assert done.code == 1
    assert b"log.txt:2: append-only: what is staged: line 2 of the" in done.out
    assert run(git.root, *words, "--grow-only", "typo.txt").code == 1
    assert run(git.root, "verify", "--staged", "--grow-only", "typo.txt").code == 3
    for wrong in (["--staged"], ["--staged", "--grow-only", LOG, "."]):
        done = run(git.root, "verify", *wrong)
        assert (done.code, "--staged goes with --grow-only" in done.err) == (2, True)


def test_files_are_judged_beside_a_team(git: Git) -> None:
    assert run(git.root, "verify", ".", "--grow-only", LOG).code == 3, "there is no team"
    assert run(git.root, "init").code == 0
    assert run(git.root, "verify", ".", "--grow-only", LOG).code == 0
    git.commit(LOG, b"one\nTWO\nthree\n")
    done = run(git.root, "verify", ".", "--grow-only", LOG, "--format", "github")
    assert done.code == 1
    assert f"::error file={LOG},line=2,title=append-only::".encode() in done.out


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n"]), max_size=4).map(b"".join)


@settings(max_examples=10)
@given(old=LINES, new=LINES)
def test_it_refuses_exactly_what_is_no_growth(
    old: bytes, new: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    git = Git(tmp_path_factory.mktemp("any") / "repo")
    git.commit(LOG, old)
    assert (stage(git, new).exit_code == 0) is new.startswith(old)


def test_a_relative_path_from_a_folder_below_is_found(git: Git) -> None:
    git.write(LOG, b"1\n")
    git("add", LOG)
    done = subprocess.run(
        [Path(sys.executable).parent / "tripod", "verify", "--staged", "--grow-only",
         "DECISIONS.md"],
        cwd=git.root / "notes", capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done
