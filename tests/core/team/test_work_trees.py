"""One team for a whole repository: each work tree, branch and folder, and what git removes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from doors.inside import run, run_as
from git_repo import Git, track
from schedules import KilledError

from tripod.ledger.locator import (
    APART,
    FOLDER,
    LEDGER,
    database_of,
    nearest_team,
    team_of,
    team_to_begin,
)
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.projections import Disk
from tripod.team import adoption
from tripod.team.team import Team


@pytest.fixture
def shop(tmp_path: Path) -> Git:
    """A repository with a team, a linked work tree beside it (``fix``), and a folder in each."""
    git = Git(tmp_path / "shop")
    git.commit("src/main.py", b"print()\n")
    adoption.init(str(git.root), project="shop", origin="example.org/shop", key=False)
    git("worktree", "add", "--quiet", "../fix")
    return git


def said(where: Path, *words: str) -> str:
    done = run(where, *words)
    assert done.code == 0, done
    return done.out.decode()


def test_every_work_tree_and_folder_of_a_repository_has_one_team(shop: Git) -> None:
    said(shop.root, "chat", "create", "live")
    for where in ("shop/src", "fix", "fix/src"):
        said(shop.root.parent / where, "chat", "send", "live", "ann", f"from {where}")
        assert nearest_team(str(shop.root.parent / where)) == f"{shop.root}/.nbs"
    assert "from fix/src" in said(shop.root, "chat", "read", "live")
    assert team_of(str(shop.root.parent / "fix")) == f"{shop.root}/.nbs"
    assert not (shop.root.parent / "fix/.nbs").exists()
    said(shop.root.parent / "fix", "verify")


def test_nothing_of_the_team_shows_in_git(shop: Git) -> None:
    said(shop.root, "chat", "create", "live")
    said(shop.root, "chat", "send", "live", "ann", "Let us keep it.")
    words = ("--rationale", "It works.", "-p", "ann", "--ref", "last")
    said(shop.root, "scribe", "log", "Keep it", *words)
    for where in (shop.root, shop.root.parent / "fix"):
        assert Git(where, made=False)("status", "--porcelain", "--untracked-files=all") == ""


@pytest.mark.parametrize(
    "words", [("clean", "-xfdq"), ("stash", "--all", "--quiet"), ("checkout", "-q", "-b", "other")]
)
def test_git_cannot_remove_the_ledger_by_accident(shop: Git, words: tuple[str, ...]) -> None:
    said(shop.root, "chat", "create", "live")
    said(shop.root, "chat", "send", "live", "ann", "hello")
    before = (shop.root / ".nbs/chat/live.chat").read_bytes()
    shop(*words)
    assert "hello" in said(shop.root.parent / "fix", "chat", "read", "live")
    said(shop.root, "rebuild")
    assert (shop.root / ".nbs/chat/live.chat").read_bytes() == before
    assert shop("status", "--porcelain") == ""
    said(shop.root, "verify")


def test_a_team_whose_files_are_all_gone_is_judged_and_says_so(shop: Git) -> None:
    said(shop.root, "chat", "create", "live")
    shutil.rmtree(shop.root / ".nbs")
    for where in (shop.root, shop.root.parent / "fix"):
        for word in ("verify", "doctor"):
            done = run(where, word)
            assert done.code == 1, done
            assert b"live.chat" in done.out
    said(shop.root, "chat", "send", "live", "ann", "hello")
    done = run(shop.root, "verify")
    assert (done.code, b"warning" in done.out) == (0, False), done
    shutil.rmtree(shop.root / ".nbs")
    assert run(shop.root, "doctor").code == 1
    assert not (shop.root / ".nbs").exists(), "the judge wrote"
    assert run(shop.root, "doctor", "--fix").code == 0
    assert "hello" in said(shop.root, "--read-only", "chat", "read", "live")


def test_the_folder_of_the_ledger_is_no_team_directory(
    shop: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is called there works on the team, and writes nothing beside the ledger."""
    said(shop.root, "chat", "create", "live")
    there = shop.root / ".git" / APART
    before = sorted(there.iterdir())
    for words in (("chat", "send", "live", "ann", "hello"), ("init",), ("verify",), ("doctor",)):
        said(there, *words)
    said(shop.root, "bus", "check", "-C", str(there))
    said(shop.root, "verify", str(there))
    monkeypatch.setenv(LEDGER, str(there / "ledger.db"))
    assert "hello" in said(shop.root.parent, "chat", "read", "live")
    monkeypatch.setenv(LEDGER, str(there))
    assert "hello" in said(shop.root.parent, "chat", "read", "live")
    monkeypatch.delenv(LEDGER)
    assert sorted(one for one in there.iterdir() if "ledger.db-" not in one.name) == [
        one for one in before if "ledger.db-" not in one.name
    ]
    assert b"warning" not in run(shop.root, "verify").out


def test_no_team_is_begun_where_the_repository_of_a_work_tree_cannot_be_found(shop: Git) -> None:
    """Its main work tree was moved: what is recorded here would be in no team."""
    fix = shop.root.parent / "fix"
    shop.root.rename(shop.root.parent / "store")
    for words in (("init",), ("chat", "create", "live"), ("verify",), ("doctor",), ("where",)):
        done = run(fix, *words)
        assert done.code != 0
        assert "git worktree repair" in done.out.decode() + done.err, done
    assert not (fix / FOLDER).exists()
    Git(shop.root.parent / "store", made=False)("worktree", "repair", "../fix")
    said(fix, "chat", "create", "live")


def test_no_git_is_started_where_another_key_of_ours_is_set(shop: Git) -> None:
    shop("config", "tripod.refs", "refs/heads/tripod/")
    with mock.patch("subprocess.run", side_effect=AssertionError("git is started")):
        assert nearest_team(f"{shop.root}/src") == f"{shop.root}/.nbs"
    with (shop.root / ".git/config").open("a") as file:
        file.write("[Tripod] Team=../there/.nbs ; a form that git reads as well\n")
    assert nearest_team(f"{shop.root}/src") == f"{shop.root.parent}/there/.nbs"


@pytest.fixture
def bare(tmp_path: Path) -> Git:
    """A bare repository in a project's folder, with two work trees beside it: one and two."""
    git = Git(tmp_path / "team")
    git.commit("a", b"a\n")
    git("clone", "--quiet", "--bare", str(git.root), str(tmp_path / "shop/.bare"))
    found = Git(tmp_path / "shop/.bare", made=False)
    for name in ("one", "two"):
        found("worktree", "add", "--quiet", "-b", name, f"../{name}", "main")
    return found


@pytest.mark.parametrize("has_file", [False, True])
def test_the_work_trees_of_a_bare_repository_have_one_team(bare: Git, *, has_file: bool) -> None:
    around = bare.root.parent
    home = around if has_file else bare.root / APART
    if has_file:
        (around / ".git").write_text("gitdir: ./.bare\n")
    assert f"Begun: {bare.root}/{APART}/ledger.db" in said(around / "one", "init")
    said(around / "one", "chat", "create", "live")
    for name in ("one", "two"):
        said(around / name, "chat", "send", "live", "ann", f"from {name}")
        assert nearest_team(str(around / name)) == team_of(str(around / name)) == f"{home}/.nbs"
        assert Git(around / name, made=False)("status", "--porcelain") == ""
        assert not (around / name / FOLDER).exists()
    assert said(around / "two", "where").splitlines() == [
        f"team: {home}/.nbs ({bare.root} is bare, and this is the team of all its work trees)",
        f"ledger: {bare.root}/{APART}/ledger.db",
    ]
    words = ("--rationale", "It works.", "-p", "ann", "--ref", "last")
    said(around / "two", "scribe", "log", "Keep it", *words)
    said(around / "one", "push")
    said(around / "one", "hooks", "install")
    two = Git(around / "two", made=False)
    two("commit", "--quiet", "--allow-empty", "-m", "said")
    assert "Tripod-Head: " in two("log", "-1", "--format=%B")
    bare("worktree", "remove", "--force", "../one")
    for where in (around / "two", bare.root):
        assert "from one" in said(where, "chat", "read", "live")
        assert b"not told" not in run(where, "verify").out
    assert two("status", "--porcelain") == ""


def test_a_lost_ledger_of_a_bare_repository_comes_back_and_another_clone_joins(bare: Git) -> None:
    around, other = bare.root.parent, bare.root.parent.parent / "other.git"
    said(around / "one", "init")
    assert "tripod.invalid/shop/" in said(around / "one", "seal"), "named by the folder around"
    said(around / "one", "chat", "create", "live")
    said(around / "one", "chat", "send", "live", "ann", "hello")
    said(around / "one", "push")
    shutil.rmtree(bare.root / APART / FOLDER)
    (bare.root / APART / "ledger.db").unlink()
    assert "`tripod restore` brings it back" in run(around / "two", "chat", "read", "live").err
    assert run(around / "two", "verify").code == 1, "there was a ledger"
    said(around / "two", "restore")
    assert "hello" in said(around / "two", "chat", "read", "live")
    bare("clone", "--quiet", "--bare", str(around.parent / "team"), str(other))
    Git(other, made=False)("worktree", "add", "--quiet", "../cid", "main")
    assert "Joined the team" in said(around.parent / "cid", "init", "--from", "origin")
    said(around.parent / "cid", "chat", "send", "live", "cid", "good day")
    said(around.parent / "cid", "push")
    said(around / "one", "pull")
    assert "good day" in said(around / "one", "chat", "read", "live")
    said(around / "one", "verify")
    assert "Redacted" in said(
        around / "one", "redact", "--match", "hello", "--reason", "x", "--as", "ann"
    )


def test_a_repository_that_others_push_to_is_judged_by_its_refs(bare: Git) -> None:
    one, server = bare.root.parent / "one", bare.root.parent.parent / "server.git"
    bare("init", "--quiet", "--bare", str(server))
    said(one, "init")
    said(one, "push", str(server))
    before = sorted(server.rglob("*"))
    for where, words in ((server, ()), (one, (str(server),))):
        done = run(where, "verify", *words)
        assert (done.code, done.out.count(b"refs/tripod/")) == (0, 1), done
    assert "holds records of a team" in run(server, "chat", "read", "live").err
    assert sorted(server.rglob("*")) == before
    (server / APART).mkdir()
    assert run(server, "verify").code == 1, "a ledger was at work there after all"


def test_the_tracked_policy_of_a_bare_repository_is_that_of_its_head(bare: Git) -> None:
    one = Git(bare.root.parent / "one", made=False)
    said(one.root, "init")
    said(one.root, "verify")
    one.commit("tripod.toml", b'[policy]\nlevel = "PINNED"\n')
    said(one.root, "verify")
    bare("symbolic-ref", "HEAD", "refs/heads/one")
    for where in (one.root, bare.root.parent / "two", bare.root):
        done = run(where, "verify")
        assert done.code != 0, "the policy of HEAD"
        assert b"PINNED" in done.out


def test_a_bare_repository_among_the_folders_of_another_has_no_home_until_it_says_where(
    bare: Git,
) -> None:
    """Anybody may put a bare repository among the files of one: its own `.git` tells them apart."""
    around = bare.root.parent
    Git(around.parent)
    for words in (("init",), ("init", "--from", "origin")):
        done = run(around / "one", *words)
        assert done.code != 0
        assert "lies in the repository" in done.err, done
    assert nearest_team(str(bare.root)) is None
    assert not (around / "one" / FOLDER).exists()
    (around / ".git").write_text("gitdir: ./.bare\n")
    said(around / "one", "init")
    said(around / "two", "verify")


def test_what_was_begun_for_one_work_tree_of_a_bare_repository_stays_its_own(bare: Git) -> None:
    one = bare.root.parent / "one"
    said(one, "init", "--new")
    said(one, "chat", "create", "live")
    assert nearest_team(str(one)) == team_of(str(one)) == f"{one}/.nbs"
    assert "There is already" in said(one, "init")
    assert "There is already" in said(bare.root.parent, "init", "one")
    assert team_to_begin(f"{bare.root.parent}/two") == f"{bare.root}/{APART}/.nbs"


def test_the_ledger_of_an_earlier_version_is_moved_once_by_init(tmp_path: Path) -> None:
    git = Git(tmp_path / "shop")
    (git.root / ".nbs").mkdir()
    (tmp_path / "old").mkdir()
    adoption.init(str(tmp_path / "old"), project="shop", origin="example.org/shop", key=False)
    (git.root / ".nbs").rmdir()
    (tmp_path / "old/.nbs").rename(git.root / ".nbs")
    said(git.root, "chat", "create", "live")
    inside, apart = git.root / ".nbs/ledger.db", git.root / f".git/{APART}/ledger.db"
    assert inside.exists(), "it is used where it is until somebody says otherwise"
    with Team(git.root):
        done = run(git.root, "init")
        assert "End the programs" in done.err
        assert inside.exists()
    done = run(git.root, "init")
    assert f"moved the ledger from {inside} to {apart}" in done.err
    assert not inside.exists()
    said(git.root, "chat", "send", "live", "ann", "hello")
    with read_only(str(apart)) as db:
        assert SQLiteReader(db).size > 3
    said(git.root, "verify")


def test_init_joins_the_team_that_is_there_and_says_so(shop: Git) -> None:
    for where in (shop.root / "src", shop.root.parent / "fix", shop.root.parent / "fix/src"):
        out = said(where, "init")
        assert f"There is already: {shop.root}/.git/{APART}/ledger.db" in out
        assert f"{where} belongs to that team" in out
        assert ("; `tripod init --new` begins another" in out) == (where == shop.root / "src")
    done = run(shop.root.parent / "fix", "init", "--new")
    assert "in a linked work tree" in done.err, "no command would find it"
    assert not (shop.root.parent / "fix/.nbs").exists()
    out = said(shop.root / "src", "init", "--new", "--no-key")
    assert f"Begun: {shop.root}/src/.nbs/ledger.db" in out
    assert nearest_team(f"{shop.root}/src") == f"{shop.root}/src/.nbs"
    assert nearest_team(str(shop.root)) == f"{shop.root}/.nbs"


def test_a_repository_inside_of_a_project_has_a_team_of_its_own(shop: Git) -> None:
    inner = Git(shop.root / "vendor/lib")
    assert team_to_begin(str(inner.root)) == f"{inner.root}/.nbs"
    assert nearest_team(str(inner.root)) == f"{shop.root}/.nbs", "until it has one"
    assert f"no more on {shop.root}/.nbs" in said(inner.root, "init", "--no-key")
    assert nearest_team(str(inner.root)) == f"{inner.root}/.nbs"


def test_init_in_a_linked_work_tree_begins_the_team_of_the_repository(tmp_path: Path) -> None:
    git = Git(tmp_path / "shop")
    git.commit("a", b"a\n")
    git("worktree", "add", "--quiet", "../fix")
    assert f"Begun: {git.root}/.git/{APART}/ledger.db" in said(tmp_path / "fix", "init", "--no-key")
    assert not (tmp_path / "fix/.nbs").exists()


def test_where_says_what_was_found_and_why(shop: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    out = said(shop.root.parent / "fix", "where")
    assert out.splitlines() == [
        f"team: {shop.root}/.nbs (it is at the top of the main work tree of {shop.root}/.git)",
        f"ledger: {shop.root}/.git/{APART}/ledger.db",
    ]
    free = shop.root.parent / "free"
    free.mkdir()
    said(free, "init", "--no-key")
    assert "it is the nearest .nbs" in said(free, "where")
    assert "it was given" in said(free, "where", "-C", str(shop.root))
    for named in (str(free / ".nbs"), str(free), "../free"):  # the team, or the project around it
        shop("config", "tripod.team", named)
        assert f"team: {free}/.nbs (tripod.team in" in said(shop.root / "src", "where")
    monkeypatch.setenv("TRIPOD_LEDGER", str(shop.root))
    assert f"team: {shop.root}/.nbs (TRIPOD_LEDGER names it)" in said(free, "where")


def test_only_the_key_itself_is_taken_from_a_repository_s_configuration(shop: Git) -> None:
    """No include is followed, and nothing that the configuration names is run."""
    there = shop.root.parent / "there"
    there.mkdir()
    adoption.init(str(there), key=False)
    (there / "more").write_text(f"[tripod]\n\tteam = {there}/.nbs\n")
    with (shop.root / ".git/config").open("a") as file:
        file.write(f"[include]\n\tpath = {there}/more\n[alias]\n\ttripod = !touch {there}/run\n")
    assert nearest_team(str(shop.root)) == f"{shop.root}/.nbs"
    assert not (there / "run").exists()


def test_a_bare_repository_s_work_trees_use_the_nearest_team(tmp_path: Path) -> None:
    git = Git(tmp_path / "one")
    git.commit("a", b"a\n")
    git("clone", "--quiet", "--bare", str(git.root), str(tmp_path / "all/.bare"))
    bare = Git(tmp_path / "all/.bare", made=False)
    bare("worktree", "add", "--quiet", "../fix", "main")
    adoption.init(str(tmp_path / "all"), key=False)
    assert nearest_team(str(tmp_path / "all/fix")) == f"{tmp_path}/all/.nbs"
    assert database_of(f"{tmp_path}/all/.nbs") == f"{tmp_path}/all/.nbs/ledger.db"


@pytest.mark.parametrize(
    "words",
    ["gitdir: .git", "gitdir: nowhere", "gitdir: /dev/null", "nothing", "gitdir: a\nb", "gitdir: "],
)
def test_a_git_file_that_names_no_repository_is_passed_over(tmp_path: Path, words: str) -> None:
    (tmp_path / "fix").mkdir()
    (tmp_path / "fix/.git").write_text(f"{words}\n")
    (tmp_path / ".nbs").mkdir()
    assert nearest_team(str(tmp_path / "fix")) == f"{tmp_path}/.nbs"
    assert team_to_begin(str(tmp_path / "fix")) == f"{tmp_path}/.nbs"


def test_two_git_files_that_name_each_other_lead_nowhere(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).mkdir()
        (tmp_path / one / ".git").write_text(f"gitdir: ../{other}/.git\n")
    assert nearest_team(str(tmp_path / "a")) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_repository_that_a_stranger_put_around_is_passed_over(tmp_path: Path) -> None:
    git = Git(tmp_path)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / "mine").mkdir()
    assert nearest_team(str(tmp_path / "mine")) == f"{git.root}/.nbs"
    for name in (".git", FOLDER):
        os.chown(tmp_path / name, 4242, 4242)
    tmp_path.chmod(0o1777)
    assert nearest_team(str(tmp_path / "mine")) is None


def test_a_seal_writes_nothing_into_the_work_tree(shop: Git) -> None:
    said(shop.root, "key", "new")
    said(shop.root, "chat", "create", "live")
    before = sorted((shop.root / ".nbs").rglob("*"))
    said(shop.root, "seal")
    assert sorted((shop.root / ".nbs").rglob("*")) == before
    assert "sealed 6 entries" in said(shop.root, "verify", "-v")


def test_a_record_that_an_earlier_version_tracked_stays_as_it_was_committed(
    tmp_path: Path,
) -> None:
    git = Git(tmp_path / "shop", made=False)
    git.root.mkdir()
    said(git.root, "init", "--origin", "example.org/shop", "--key")
    said(git.root, "chat", "create", "live")
    said(git.root, "chat", "send", "live", "ann", "a secret of ours")
    said(git.root, "seal")
    git("init", "--quiet", "--initial-branch=main")
    track(git.root)
    git("add", "--all")
    git("commit", "--quiet", "-m", "Begin")
    assert "moved the ledger" in run(git.root, "init").err
    words = ("--rationale", "It works.", "-p", "ann", "--ref", "last")
    said(git.root, "scribe", "log", "Keep it", *words)
    assert git("status", "--porcelain", "--", ".nbs/record") == ""
    said(git.root, "verify")
    # But what is erased is erased there too, and a clone is told why.
    said(git.root, "redact", "--match", "secret", "--reason", "a name", "--as", "ann")
    for file in (git.root / ".nbs/record").rglob("*"):
        assert file.is_dir() or b"secret" not in file.read_bytes()
    git("add", "--all", "--force", ".nbs/record")
    git("commit", "--quiet", "-m", "Erase")
    git("clone", "--quiet", str(git.root), "../clone")
    said(tmp_path / "clone", "verify", ".nbs/record")


def test_no_ledger_is_begun_where_a_git_file_leads_in_a_circle(tmp_path: Path) -> None:
    git = Git(tmp_path / "shop")
    adoption.init(str(git.root))
    counts = (git.root / ".nbs/counts.json").rename(tmp_path / "counts.json")
    own = git.root / ".git"
    own.rename(tmp_path / "away")
    for words in ("gitdir: .git\n", None):
        if words is None:
            own.symlink_to(".git")
        else:
            own.write_text(words)
        for command in ("init", "push", "chat read live", "bus check"):
            done = run(git.root, *command.split())
            assert done.code, command
            assert f"mend {own}, which leads to no repository" in done.err, (command, done)
        assert not (git.root / ".nbs/ledger.db").exists()
        own.unlink()
    (tmp_path / "away").rename(own)
    counts.rename(git.root / ".nbs/counts.json")
    assert run(git.root, "verify").code == 0


# Its files are all gone: `git clean` ------------------------------------------------------------


@pytest.fixture
def cleaned(shop: Git) -> Git:
    """The team with a chat and a decision, after `git clean`."""
    said(shop.root, "chat", "create", "live")
    said(shop.root, "chat", "send", "live", "ann", "hello")
    words = ("--rationale", "It works.", "-p", "ann", "--ref", "last")
    said(shop.root, "scribe", "log", "Keep it", *words)
    shop("clean", "-xfdq")
    return shop


def assert_nothing_is_missed(shop: Git) -> None:
    assert "hello" in said(shop.root, "chat", "read", "live")
    done = run(shop.root, "verify")
    assert (done.code, b"warning" in done.out) == (0, False), done
    for where in (shop.root, shop.root.parent / "fix"):
        assert Git(where, made=False)("status", "--porcelain", "--untracked-files=all") == ""


@pytest.mark.parametrize(
    "words",
    [
        ("chat", "create", "live"),
        ("scribe", "log", "x", "-r", "why", "-p", "ann", "--ref", "#99"),
        ("bus", "ack", "none.event"),
    ],
)
def test_a_refused_act_leaves_no_file_that_counts_as_removed(
    cleaned: Git, words: tuple[str, ...]
) -> None:
    assert run(cleaned.root, *words).code != 0
    said(cleaned.root, "bus", "check")
    assert_nothing_is_missed(cleaned)


def test_a_worker_is_spawned_where_the_files_are_gone(cleaned: Git) -> None:
    said(cleaned.root, "worker", "spawn", "lint", ".", "Check it", "--", "true")
    said(cleaned.root, "worker", "watch", "--timeout", "30")
    assert_nothing_is_missed(cleaned)


NBS = [
    ("nbs-chat", "send", ".nbs/chat/live.chat", "ann", "by the old tool"),
    ("nbs-chat", "read", ".nbs/chat/live.chat"),
    ("nbs-bus", "check", ".nbs/events"),
    ("nbs-scribe-query", "--chat=.nbs/chat/live.chat", "--count"),
    ("nbs-scribe", "count", ".nbs/scribe/log.md"),
    (
        *("nbs-scribe-log", ".nbs/scribe/log.md", "Again", "--participants=ann"),
        *("--rationale=why", "--chat-ref=live.chat:~L7"),
    ),
]


@pytest.mark.parametrize("where", ["shop", "fix"])
@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("words", NBS, ids=" ".join)
def test_the_old_tools_work_on_the_team_of_the_work_tree(
    cleaned: Git, words: tuple[str, ...], where: str, *, is_clean: bool
) -> None:
    """They are given paths in ``.nbs``, which a linked work tree does not have."""
    if not is_clean:
        said(cleaned.root, "bus", "check")
    there = cleaned.root.parent / where
    done = run_as(words[0], there, *words[1:])
    assert done.code == 0, done
    assert not (there / ".nbs").exists() or where == "shop"
    assert_nothing_is_missed(cleaned)


def test_an_old_create_begins_no_chat_anew_that_git_removed(cleaned: Git) -> None:
    done = run_as("nbs-chat", cleaned.root, "create", ".nbs/chat/live.chat")
    assert (done.code, "exists already" in done.err) == (1, True), done
    assert_nothing_is_missed(cleaned)


@pytest.mark.parametrize("place", ["fix", "fix/src", "shop/src"])
def test_an_old_spawn_begins_no_second_team(cleaned: Git, place: str) -> None:
    there = cleaned.root.parent / place
    done = run_as("nbs-worker", there, "spawn", "lint", ".", "Check it")
    assert done.code == 0, done
    assert not (there / ".nbs").exists()
    said(cleaned.root, "worker", "watch", "--timeout", "30")
    assert "lint-" in said(cleaned.root, "worker", "list")
    assert_nothing_is_missed(cleaned)


@pytest.mark.parametrize("count", range(1, 6))
def test_files_that_a_killed_command_did_not_write_again_are_not_missed(
    cleaned: Git, count: int
) -> None:
    written, real = 0, Disk.stage

    def stage(self: Disk, *words: Any, **how: Any) -> Any:
        nonlocal written
        written += 1
        if written == count:
            raise KilledError
        return real(self, *words, **how)

    with mock.patch.object(Disk, "stage", stage), pytest.raises(KilledError):
        run(cleaned.root, "bus", "check")
    said(cleaned.root, "chat", "send", "live", "ann", "again")
    assert_nothing_is_missed(cleaned)
    os.unlink(cleaned.root / ".nbs/chat/live.chat")
    assert "is gone; it is written again" in run(cleaned.root, "bus", "check").err


@pytest.mark.parametrize("place", ["repository", "folder"])
@pytest.mark.parametrize("what", ["pipe", "folder", "link", "file"])
def test_nothing_that_lies_beside_the_ledger_excuses_a_removal(
    tmp_path: Path, place: str, what: str
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    if place == "repository":
        Git(folder)
    said(folder, "init")
    said(folder, "chat", "create", "live")
    said(folder, "chat", "send", "live", "ann", "one")
    ledger = folder / (".git/tripod" if place == "repository" else ".nbs") / "ledger.db"
    mark = ledger.with_name("ledger.db.emptied")
    if what == "pipe":
        os.mkfifo(mark)
    elif what == "folder":
        mark.mkdir()
    elif what == "link":
        mark.symlink_to(tmp_path / "elsewhere")
    elif place == "folder":
        mark.touch()
    (folder / ".nbs/chat/live.chat").unlink()
    said(folder, "chat", "send", "live", "ann", "two")
    assert "file.displaced" in said(folder, "log")
    assert not (tmp_path / "elsewhere").exists()
