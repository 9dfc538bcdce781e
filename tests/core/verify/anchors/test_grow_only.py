"""A file that must only grow, judged by git alone: breaks, merges, lost and shallow history."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from git_repo import Git
from hypothesis import given, settings
from hypothesis import strategies as st

from tripod.cli import main
from tripod.errors import GitError
from tripod.verify.anchors import git as git_module
from tripod.verify.anchors.file_growth import judge_growth
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.growth import is_growth, is_growth_in_between
from tripod.verify.check import CANNOT_TELL, CLEAN, FINDINGS, Report

LOG = "notes/DECISIONS.md"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(tmp_path / "repo")


def judge(git: Git, path: str = LOG) -> Report:
    return judge_growth(str(git.root / path))


def messages(report: Report) -> list[str]:
    return [finding.message for outcome in report.outcomes for finding in outcome.findings]


def test_a_file_that_grew_is_clean(git: Git) -> None:
    for number in range(1, 4):
        git.commit(LOG, b"".join(b"%d\n" % n for n in range(number)))
    report = judge(git)
    assert report.exit_code == 0
    assert report.outcomes[0].verdict == CLEAN
    assert report.outcomes[0].coverage == {"versions in git": 3}


def test_the_first_break_has_commit_author_and_lines(git: Git) -> None:
    git.commit(LOG, b"one\ntwo\nthree\n")
    broke = git.commit(LOG, b"one\n2\nthree\nfour\n")
    git.commit(LOG, b"one\n2\nthree\nfour\nfive\n")
    git.commit(LOG, None)
    report = judge(git)
    assert report.exit_code == 1
    first, second = report.outcomes[0].findings
    assert first.message == (
        f"commit {broke[:12]} by Ann <ann@example.com>, 2020-09-13 12:32:40Z: "
        "lines 2 to 3 of the version before it are not as they were"
    )
    assert first.evidence[:3] == ("@@ line 2 @@", "-two", "-three")
    assert second.message.endswith("it was removed")


def test_a_removal_is_a_break_until_it_came_back(git: Git) -> None:
    git.commit(LOG, b"one\n")
    git.commit(LOG, None)
    git.commit(LOG, b"two\n")
    assert [text.rpartition(": ")[2] for text in messages(judge(git))] == ["it was removed"]
    back = git.commit(LOG, b"one\ntwo\n")
    report = judge(git)
    assert (report.exit_code, report.warnings) == (0, 1)
    (text,) = messages(report)
    assert f": it was removed; restored by commit {back[:12]} by Ann" in text


def test_a_rewording_and_its_revert_are_one_remark(git: Git) -> None:
    git.commit(LOG, b"one\ntwo\nthree\n")
    broke = git.commit(LOG, b"one\n2\nthree\n")
    git.commit(LOG, b"one\n2\nthree\nfour\n")
    assert judge(git).failures == 1
    back = git.commit(LOG, b"one\ntwo\nthree\nfour\nfive\n")
    git.commit(LOG, b"one\ntwo\nthree\nfour\nfive\nsix\n")
    report = judge(git)
    assert (report.exit_code, report.warnings) == (0, 1)
    (found,) = report.outcomes[0].findings
    assert found.message.startswith(f"commit {broke[:12]} by Ann")
    assert f"; restored by commit {back[:12]} by Ann" in found.message
    assert found.evidence[:3] == ("@@ line 2 @@", "-two", "+2")
    assert report.outcomes[0].coverage["restored"] == 1


@pytest.mark.parametrize(
    "after",
    [
        b"one\ntwo\nfive\n",  # what was appended meanwhile is gone
        b"one\ntwo\nslipped\nfour\n",  # something was slipped in before it
        b"one\n2\nfour\n",  # the words are back and not the beginning
        b"one\ntwo\n",
    ],
)
def test_a_revert_that_does_more_is_a_break_of_its_own(git: Git, after: bytes) -> None:
    for data in (b"one\ntwo\n", b"one\n2!\n", b"one\n2!\nfour\n", after):
        git.commit(LOG, data)
    assert judge(git).failures == 2


@pytest.mark.parametrize(("after", "failures"), [(b"a\nb\nc\nd\n", 0), (b"a\nb\nc\n", 1)])
def test_a_revert_of_several_commits_settles_them_all(
    git: Git, after: bytes, failures: int
) -> None:
    """The last of them appended `d` as well: that must stay."""
    git.commit(LOG, b"a\nb\n")
    for data in (b"A\nb\n", b"A\nb\nc\n", b"A\nB\nc\n", b"A\nB\nC\nd\n"):
        git.commit(LOG, data)
    assert judge(git).failures == 3
    back = git.commit(LOG, after)
    report = judge(git)
    assert (report.failures, report.warnings) == (failures, 3 - failures)
    assert all(f"; restored by commit {back[:12]}" in text for text in messages(report))


def test_what_a_rewording_had_added_needs_a_ledger_to_be_gone(git: Git) -> None:
    """Nobody but a ledger knows whether a line that a commit slipped in was ever said."""
    for data in (b"one\ntwo\n", b"one\n2\nthree\n", b"one\ntwo\n"):
        git.commit(LOG, data)
    report = judge(git)
    assert report.exit_code == 1
    (text,) = messages(report)
    assert text.endswith(", which took away 1 line that had been added as well")


def test_what_stands_on_another_branch_restores_nothing(git: Git) -> None:
    """The other branch never had the rewording; the merge takes it."""
    git.commit(LOG, b"base\n")
    git("checkout", "--quiet", "-b", "side")
    git.commit(LOG, b"other\n")
    git("checkout", "--quiet", "main")
    git.commit(LOG, b"base\nours\n")
    git.merge("side", LOG, b"other\n")
    report = judge(git)
    assert report.failures == 2
    assert not any("restored" in text for text in messages(report))


def _reworded_aside(git: Git, merged: bytes) -> str:
    """Our side appends, the other rewords; then they are merged."""
    git.commit(LOG, b"one\ntwo\n")
    git("checkout", "--quiet", "-b", "side")
    broke = git.commit(LOG, b"one\n2\n")
    git("checkout", "--quiet", "main")
    git.commit(LOG, b"one\ntwo\nours\n")
    git.merge("side", LOG, merged)
    return broke


def test_a_rewording_that_was_merged_and_its_revert_are_one_remark(git: Git) -> None:
    broke = _reworded_aside(git, b"one\n2\nours\n")
    (text,) = messages(judge(git))
    assert broke[:12] in text
    back = git.commit(LOG, b"one\ntwo\nours\n")
    report = judge(git)
    assert (report.exit_code, report.warnings) == (0, 1)
    assert f"restored by commit {back[:12]}" in messages(report)[0]


@pytest.mark.parametrize("merged", [b"one\n2\n", b"one\nslipped\n2\nours\n", b"one\n2\nOurs\n"])
def test_a_merge_of_a_rewording_that_does_more_is_a_break_of_its_own(
    git: Git, merged: bytes
) -> None:
    _reworded_aside(git, merged)
    git.commit(LOG, merged.replace(b"2", b"two"))
    report = judge(git)
    assert report.failures >= 1
    assert any("(a merge)" in text for text in messages(report))


@pytest.mark.parametrize(
    ("merged", "failures"), [(b"one\ntwo\nours\n", 0), (b"one\ntwo\n", 1), (b"one\n2\nours\n", 1)]
)
def test_a_revert_on_a_branch_settles_it_once_it_is_merged(
    git: Git, merged: bytes, failures: int
) -> None:
    git.commit(LOG, b"one\ntwo\n")
    git.commit(LOG, b"one\n2\n")
    git("checkout", "--quiet", "-b", "side")
    back = git.commit(LOG, b"one\ntwo\n")
    git("checkout", "--quiet", "main")
    git.commit(LOG, b"one\n2\nours\n")
    git.merge("side", LOG, merged)
    report = judge(git)
    assert report.failures == failures
    assert any(f"restored by commit {back[:12]}" in text for text in messages(report))


def test_both_branches_may_revert_the_same(git: Git) -> None:
    """The rewording appended a line, and no merge may take away what a revert kept of it."""
    git.commit(LOG, b"one\ntwo\n")
    git.commit(LOG, b"one\n2\nmore\n")
    git("checkout", "--quiet", "-b", "side")
    git.commit(LOG, b"one\ntwo\nmore\n")
    git("checkout", "--quiet", "main")
    git.commit(LOG, b"one\ntwo\nmore\n")
    git("merge", "--quiet", "--no-edit", "side")
    assert judge(git).failures == 0
    git("checkout", "--quiet", "-b", "third", "HEAD~2")
    git.commit("else.txt", b"x\n")
    git.commit(LOG, b"one\ntwo\n")
    git("checkout", "--quiet", "main")
    git.merge("third", LOG, b"one\ntwo\nmore\n")
    assert judge(git).failures == 1


def test_the_work_tree_follows_what_is_committed(git: Git) -> None:
    path = Path(git.write(LOG, b""))
    git.commit(LOG, b"one\ntwo\n")
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")  # as a checkout on another system writes it
    assert judge(git).exit_code == 0
    path.write_bytes(b"one\n")
    assert messages(judge(git)) == [
        "the work tree (not committed): line 2 of the version before it is not as it was"
    ]
    path.unlink()
    assert messages(judge(git)) == [
        "the work tree (not committed): it is not there, or is no plain file"
    ]


def test_a_finding_stands_on_a_line_that_the_file_has(git: Git) -> None:
    """Hosts show no annotation behind the end of a file, which a cut tail would get."""
    git.commit(LOG, b"one\ntwo\nthree\nfour\n")
    for data, line in ((b"one\ntwo\n", 2), (b"one\ntw", 2), (b"", 1)):
        git.commit(LOG, data)
        found = [one for outcome in judge(git).outcomes for one in outcome.findings]
        assert [one.line for one in found][-1:] == [line]
        assert all(one.line is not None and one.line <= line for one in found)


def test_a_link_is_no_plain_file(git: Git) -> None:
    git.commit(LOG, b"one\n")
    path = git.root / LOG
    path.unlink()
    path.symlink_to("elsewhere")
    git("add", "--", LOG)
    git("commit", "--quiet", "-m", "link")
    report = judge(git)
    assert any("no plain file any more" in text for text in messages(report))
    found = {one.file for outcome in report.outcomes for one in outcome.findings}
    assert found == {LOG}, "the finding stands at the link, not at what it leads to"


def _branches(git: Git) -> None:
    git.commit(LOG, b"base\n")
    git("checkout", "--quiet", "-b", "side")
    git.commit(LOG, b"base\ntheirs\n")
    git("checkout", "--quiet", "main")
    git.commit(LOG, b"base\nours\n")


def test_a_folder_that_became_a_repository_of_its_own_begins_no_file_anew(git: Git) -> None:
    """A submodule in its place, which CI checks out, was judged by its own history alone."""
    git.commit(LOG, b"one\n")
    git("rm", "--quiet", LOG)
    inner = Git(git.root / "notes")
    inner.commit("DECISIONS.md", b"another\n")
    inner.commit("own.md", b"one\n")
    git("add", "notes")
    git("commit", "--quiet", "-m", "Tidy up")
    for staged in (False, True):
        report = judge_growth(str(git.root / LOG), staged=staged)
        assert report.exit_code == 3
        assert "around it holds versions of this file" in report.problem
    assert judge(git, "notes/own.md").exit_code == 0


def test_a_merge_that_keeps_both_sides_is_no_break(git: Git) -> None:
    _branches(git)
    git.merge("side", LOG, b"base\nours\ntheirs\n")
    report = judge(git)
    assert report.exit_code == 0
    assert report.outcomes[0].coverage["merges of two appends"] == 1


@pytest.mark.parametrize("merged", [b"base\nours\n", b"base\nx\nours\ntheirs\n", b"base\ntheirs\n"])
def test_a_merge_that_drops_a_side_or_slips_in_is_one(git: Git, merged: bytes) -> None:
    _branches(git)
    merge = git.merge("side", LOG, merged)
    found = messages(judge(git))
    assert found
    assert all(merge[:12] in text and "(a merge)" in text for text in found)


def test_what_only_a_side_branch_broke_is_found(git: Git) -> None:
    """The merge takes our side whole: simplified history would not walk the other at all."""
    git.commit(LOG, b"base\n")
    git("checkout", "--quiet", "-b", "side")
    broke = git.commit(LOG, b"other\n")
    back = git.commit(LOG, b"base\n")
    git("checkout", "--quiet", "main")
    git.commit("else.txt", b"x\n")
    git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    (found,) = messages(judge(git))
    assert [broke[:12] in found, f"restored by commit {back[:12]}" in found] == [True, True]


def test_an_amended_commit_is_said_and_fails_nothing(git: Git) -> None:
    git.commit(LOG, b"one\n")
    gone = git.commit(LOG, b"one\ntwo\n")
    git.write(LOG, b"one\n2\n")
    git("commit", "--quiet", "--all", "--amend", "-m", "other words")
    report = judge(git)
    assert report.exit_code == 0
    assert report.warnings == 1
    (text,) = messages(report)
    assert text.startswith(f"history was rewritten: refs/heads/main once named commit {gone[:12]}")
    assert "not the beginning of what it is now" in text


def test_published_history_that_was_forced_over_fails(git: Git, tmp_path: Path) -> None:
    git.commit(LOG, b"one\n")
    there = tmp_path / "there.git"
    git("clone", "--quiet", "--bare", ".", str(there))
    clone = Git(tmp_path / "clone", made=False)
    git("clone", "--quiet", str(there), str(clone.root))
    git.commit(LOG, b"one\ntwo\n")
    git("push", "--quiet", str(there), "main")
    clone("pull", "--quiet", "--ff-only")
    git.write(LOG, b"one\n2\n")
    git("commit", "--quiet", "--all", "--amend", "-m", "other words")
    git("push", "--quiet", "--force", str(there), "main")
    clone("fetch", "--quiet")
    clone("reset", "--quiet", "--hard", "origin/main")
    report = judge(clone)
    assert report.exit_code == 1
    assert any("refs/remotes/origin/main once named" in text for text in messages(report))


def test_a_shallow_clone_cannot_tell_unless_it_shows_a_break(git: Git, tmp_path: Path) -> None:
    for data in (b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n"):
        git.commit(LOG, data)
    clone = Git(tmp_path / "clone", made=False)
    git("clone", "--quiet", "--depth=2", f"file://{git.root}", str(clone.root))
    report = judge(clone)
    assert (report.exit_code, report.outcomes[0].verdict) == (3, CANNOT_TELL)
    assert "--unshallow" in report.outcomes[0].reason
    clone.commit(LOG, b"none\n")
    assert judge(clone).outcomes[0].verdict == FINDINGS


def test_settings_of_the_repository_change_nothing(git: Git, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    git.commit(LOG, b"one\n")
    git.commit(LOG, b"2\n")
    git.commit(".gitattributes", b"*.md diff=x filter=x\n")
    for setting in ("core.pager", "diff.external", "diff.x.textconv", "diff.x.command",
                    "filter.x.clean", "filter.x.smudge", "core.fsmonitor"):  # fmt: skip
        git("config", setting, str(program))
    for setting, value in (("log.showRoot", "false"), ("diff.renames", "copies")):
        git("config", setting, value)
    marker.unlink(missing_ok=True)
    assert judge(git).exit_code == 1
    assert not marker.exists()


def test_replaced_commits_and_foreign_variables_hide_nothing(
    git: Git, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    git.commit(LOG, b"one\n")
    bad = git.commit(LOG, b"2\n")
    git("replace", "--graft", bad)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert judge(git).exit_code == 1


def test_an_object_that_was_exchanged_is_not_believed(git: Git) -> None:
    git.commit(LOG, b"one\n")
    blob = git("rev-parse", f"HEAD:{LOG}")
    other = git("hash-object", "-w", "--stdin", given=b"two\n")
    folder = git.root / ".git/objects"
    (folder / blob[:2] / blob[2:]).unlink()
    (folder / other[:2] / other[2:]).rename(folder / blob[:2] / blob[2:])
    git.commit(LOG, b"two\nthree\n")
    report = judge(git)
    assert report.exit_code == 3
    assert "git fsck" in report.problem


def test_what_cannot_be_judged_says_why(git: Git, tmp_path: Path) -> None:
    assert "nothing is committed yet" in judge(git).problem
    git.commit("else.txt", b"x\n")
    assert "holds no version of it" in judge(git).problem
    git.commit(LOG, b"x\n")
    assert "is a folder" in judge(git, "notes").problem
    assert judge(git, "../outside.md").exit_code == 3
    assert judge_growth(str(tmp_path / "nowhere.md")).exit_code == 3


def test_without_git_it_says_so(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "git cannot be run" in judge(git).problem


def test_a_version_that_is_too_large_is_not_read(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    git.commit(LOG, b"x" * 100)
    monkeypatch.setattr(git_module, "MAX_BLOB", 99)
    with Repository(str(git.root)) as repository, pytest.raises(GitError, match="100 bytes"):
        repository.file_at("HEAD", LOG)


def test_every_break_is_judged(git: Git) -> None:
    git.history("log", [b"%d\n" % n for n in range(26)])
    report = judge(git, "log")
    assert (len(messages(report)), report.failures) == (25, 25)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4)),
        min_size=1,
        max_size=8,
    )
)
def test_any_line_of_versions_is_judged_as_it_reads(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[list[str] | None]
) -> None:
    versions = [None if lines is None else "".join(lines).encode() for lines in drawn]
    git = Git(tmp_path_factory.mktemp("repo"))
    git.history("log", versions)
    pairs = pairwise(versions)
    sound = all(old is None or (new is not None and new.startswith(old)) for old, new in pairs)
    report = judge(git, "log")
    if not any(v is not None for v in versions):
        assert report.exit_code == 3
    elif sound:
        assert (report.exit_code, report.warnings) == (0, 0)
    elif report.exit_code == 0:  # each break was put right, so the first version still stands
        assert report.warnings
        first = next(v for v in versions if v is not None)
        assert versions[-1] is not None
        assert versions[-1].startswith(first)
    else:
        assert report.exit_code == 1


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=6),
    st.lists(st.sampled_from(["a", "d", ""]), max_size=3),
    st.data(),
)
def test_any_rewording_that_is_put_back_fails_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], more: list[str], data: st.DataObject
) -> None:
    git = Git(tmp_path_factory.mktemp("repo"))
    at = data.draw(st.integers(0, len(lines) - 1))
    broken = [*lines[:at], "x", *lines[at + 1 :]]
    versions = [lines, broken, *([*broken, *more[:n]] for n in range(1, len(more) + 1))]
    versions.append([*lines, *more, "end"])
    git.history("log", ["".join(f"{line}\n" for line in v).encode() for v in versions])
    report = judge(git, "log")
    assert (report.exit_code, report.warnings) == (0, 1)


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_what_follows_also_keeps(old: bytes, more: bytes) -> None:
    whole = old + b"\n" + more if old else more
    assert is_growth(old, whole)
    assert is_growth_in_between(old, whole)


def test_the_command_prints_the_verdict_of_any_repository(
    git: Git, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    git.commit(LOG, b"one\n")
    git.commit(LOG, b"2\n")
    with pytest.raises(SystemExit) as left:
        main(["verify", "--grow-only", str(git.root / LOG)])
    assert left.value.code == 1
    assert b"append-only: commit" in capsysbinary.readouterr().out
    with pytest.raises(SystemExit) as left:
        main(["verify", "--grow-only", "x", "--select", "append-only"])
    assert left.value.code == 2


def test_a_finding_names_the_file_and_the_line_from_the_top_of_the_repository(git: Git) -> None:
    git.commit(LOG, b"one\ntwo\n")
    git.commit(LOG, b"one\n2\n")
    (outcome,) = judge_growth(str(git.root / LOG)).outcomes
    assert [(finding.file, finding.line) for finding in outcome.findings] == [(LOG, 2)]


def test_it_runs_in_a_folder_below_and_in_a_linked_work_tree(git: Git, tmp_path: Path) -> None:
    git.commit(LOG, b"one\n")
    linked = tmp_path / "linked"
    git("worktree", "add", "--quiet", str(linked), "-b", "other")
    assert judge_growth(str(linked / LOG)).exit_code == 0
    done = subprocess.run(
        ["tripod", "verify", "--grow-only", "DECISIONS.md"],
        cwd=git.root / "notes",
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
