"""Files of the team that git tracks: `init` says so, and takes them out of the index when asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from doors.inside import run
from git_repo import Git

TRACKED = [".nbs/chat/live.chat", ".nbs/chat/live.chat.lock", ".nbs/counts.json"]


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def shop(tmp_path: Path) -> Git:
    """A repository whose team an earlier version committed with the work."""
    git = Git(tmp_path / "shop")
    git.commit("src/main.py", b"print()\n")
    for words in (("init", "--no-key"), ("chat", "create", "live")):
        assert run(git.root, *words).code == 0
    (git.root / ".nbs/.gitignore").unlink()
    git("add", "--force", ".nbs")
    git("commit", "--quiet", "-m", "the team's files")
    return git


def test_init_says_what_is_tracked_and_untracks_it_when_asked(shop: Git) -> None:
    before = files(shop.root / ".nbs")
    done = run(shop.root, "init")
    assert done.code == 0
    assert f"git tracks 3 files of {shop.root}/.nbs" in done.err
    assert "`tripod init --untrack`" in done.err
    assert shop("ls-files", ".nbs").split() == TRACKED

    done = run(shop.root, "init", "--untrack")
    assert done.code == 0, done
    assert "Untracked: 3 files" in done.out.decode()
    assert shop("ls-files").split() == ["src/main.py"]
    after = files(shop.root / ".nbs")
    assert {path: after[path] for path in before} == before, "a file of the disk was touched"
    assert shop("status", "--porcelain").split("\n") == [
        *(f"D  {path}" for path in TRACKED),
    ]
    shop("commit", "--quiet", "-m", "untrack")
    assert shop("status", "--porcelain", "--untracked-files=all") == ""
    done = run(shop.root, "init", "--untrack")
    assert (done.code, "git tracks" in done.err, b"Untracked" in done.out) == (0, False, False)


def test_the_index_of_a_linked_work_tree_is_its_own(shop: Git) -> None:
    shop("worktree", "add", "--quiet", "../fix")
    fix = Git(shop.root.parent / "fix", made=False)
    done = run(fix.root, "init", "--untrack")
    assert done.code == 0, done
    assert fix("ls-files").split() == ["src/main.py"]
    assert shop("ls-files").split() == ["src/main.py"]
    assert (fix.root / ".nbs/counts.json").exists()


def test_no_hook_of_the_repository_is_run_to_untrack(shop: Git, tmp_path: Path) -> None:
    hook = shop.root / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    shop("config", "core.fsmonitor", f"touch {tmp_path}/ran")
    assert run(shop.root, "init", "--untrack").code == 0
    assert not (tmp_path / "ran").exists()


def test_an_index_that_is_locked_is_left_as_it_is(shop: Git) -> None:
    (shop.root / ".git/index.lock").touch()
    done = run(shop.root, "init", "--untrack")
    assert done.code == 1
    assert "index.lock" in done.err
    assert "nothing was untracked" in done.err
    assert len(shop("ls-files", ".nbs").split()) == 3


def test_an_index_that_cannot_be_read_tells_nothing(shop: Git) -> None:
    (shop.root / ".git/index").write_bytes(b"no index")
    done = run(shop.root, "init")
    assert (done.code, "git tracks" in done.err) == (0, False)
    assert run(shop.root, "init", "--untrack").code == 1


def test_outside_of_a_repository_nothing_is_tracked(tmp_path: Path) -> None:
    assert run(tmp_path, "init", "--untrack").code == 0
