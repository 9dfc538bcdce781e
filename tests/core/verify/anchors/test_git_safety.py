"""Judging a repository runs nothing that it names, and no layout of it hides the true history."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from doors.inside import Done, run
from git_repo import Git, track, write_tracked_record
from hostile import Canary, plant
from warm import search_path

from tripod.errors import GitError
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.git_folder import (
    find,
    git_owner_differs,
    git_store_problem,
    listed_git_settings,
    plain_git_settings,
)

LOG = ".nbs/scribe/log.md"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """A repository with the tracked team of an earlier version, which decided and committed."""
    team(tmp_path / "shop", "We open on Monday.")
    git = Git(tmp_path / "shop")
    commit(git, "Begin")
    return git


def team(root: Path, said: str) -> None:
    root.mkdir(exist_ok=True)
    tripod(root, "init", "--origin", "example.com/shop", "--key")
    tripod(root, "chat", "create", "live")
    tripod(root, "chat", "send", "live", "ann", said)
    words = ("--participant", "ann", "--rationale", "Agreed.", "--ref", "live.chat:~L7")
    tripod(root, "scribe", "log", said, *words)
    track(root)


def tripod(root: Path, *words: str, code: int = 0) -> Done:
    done = run(root, *words)
    assert done.code == code, (done.out, done.err)
    return done


def commit(git: Git, message: str) -> None:
    write_tracked_record(git.root)
    git("add", "--all")
    git("commit", "--quiet", "-m", message)


def cloned(git: Git, name: str, *more: str) -> Git:
    path = git.root.parent / name
    git(
        "-c",
        "protocol.file.allow=always",
        "clone",
        "--quiet",
        *more,
        f"file://{git.root}",
        str(path),
    )
    return Git(path, made=False)


def judged(root: Path, *words: str) -> tuple[int, dict[str, str | None]]:
    """The exit code, and what the report says was judged."""
    done = run(root, "verify", "--json", *words)
    return done.code, json.loads(done.out)["judged"]


@pytest.fixture
def forged(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another team's directory that claims to be this one's: nothing in it disagrees."""
    with monkeypatch.context() as patch:
        patch.setenv("TRIPOD_HOME", str(tmp_path / "elsewhere"))
        team(tmp_path / "forged", "We never open.")
    return tmp_path / "forged/.nbs"


# Nothing runs ----------------------------------------------------------------------------------


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "canary")


def test_nothing_that_a_repository_names_is_run(
    git: Git, canary: Canary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare.git"
    git("clone", "--quiet", "--bare", str(git.root), str(bare))
    words = json.loads(tripod(git.root, "verify", "--json").out)
    before = [(check["check"], check["verdict"]) for check in words["checks"]]
    git("config", "core.fsmonitor", str(canary.program))
    git("status")
    assert canary.fired  # so a canary sings
    canary.mark.unlink()
    plant(git, canary, str(bare))
    for name in ("PAGER", "EDITOR", "SSH_COMMAND", "EXTERNAL_DIFF", "PROXY_COMMAND", "ASKPASS"):
        monkeypatch.setenv(f"GIT_{name}", str(canary.program))
    monkeypatch.setenv("GIT_DIR", str(bare))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(bare / "objects"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.chdir(git.root)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    words = json.loads(tripod(git.root, "verify", "--json").out)
    assert [(check["check"], check["verdict"]) for check in words["checks"]] == before
    assert words["judged"]["repository"] == str(git.root)
    tripod(git.root, "verify", "--grow-only", LOG)
    tripod(git.root, "show", "--bounds", "1")
    for command in ("doctor", "seal", "sync", "rebuild", "log"):
        run(git.root, command)
    tripod(git.root, "anchor", "git")
    tripod(git.root, "anchor", "git", "--push", "origin", "--ref", "given")
    assert canary.fired == ""
    assert not (tmp_path / "trace").exists()
    there = Git(bare, made=False)
    monkeypatch.undo()
    assert there("rev-parse", "refs/tripod/given")


def test_a_tag_takes_the_name_of_no_branch_and_of_no_commit(git: Git) -> None:
    """Who may push a tag could choose the base that a pull request is judged from."""
    base = git.commit("README", b"1\n")
    other = git.commit("README", b"2\n")
    git("update-ref", "refs/remotes/origin/main", base)
    with Repository(str(git.root / "README")) as before:
        assert before.resolve("origin/main") == base
    for name in ("origin/main", base):
        git("update-ref", f"refs/tags/{name}", other)
    with Repository(str(git.root / "README")) as after:
        with pytest.raises(GitError, match="several refs have this name: refs/tags/origin/main, "):
            after.resolve("origin/main")
        for name in ("refs/remotes/origin/main", "remotes/origin/main", base):
            assert after.resolve(name) == base
        assert after.resolve("HEAD") == other


def test_a_remote_that_is_a_program_is_given_nothing(git: Git, canary: Canary) -> None:
    git("config", "remote.origin.url", f"ext::{canary.program}")
    git("config", "protocol.ext.allow", "always")
    done = run(git.root, "anchor", "git", "--push", "origin")
    assert (done.code, "names a program" in done.err, canary.fired) == (3, True, "")


@pytest.mark.parametrize("configured", [True, False])
def test_a_bare_repository_among_the_team_s_files_is_never_asked(
    git: Git, canary: Canary, configured: bool
) -> None:
    """It comes with a clone: its script would run, and its history would stand for the true one."""
    inner = Git(git.root.parent / "inner")
    key = inner.commit("scribe/log.md", (git.root / LOG).read_bytes())
    signed = inner("cat-file", "commit", key).replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1
    )
    name = inner("hash-object", "-t", "commit", "-w", "--stdin", given=signed.encode() + b"\n")
    inner("update-ref", "refs/heads/main", name)
    inner("config", "gpg.program", str(canary.program))
    inner("config", "log.showSignature", "true")
    inner("config", "core.bare", "false")
    inner("config", "core.worktree", ".")
    shutil.copytree(inner.root / ".git", git.root / ".nbs", dirs_exist_ok=True)
    if not configured:  # git asks for HEAD, objects and refs alone
        (git.root / ".nbs/config").unlink()
    commit(git, "a bare repository")
    clone = cloned(git, "clone")
    code, subject = judged(clone.root)
    assert (code, canary.fired) == (3, "")
    assert "bare git repository" in (subject["history"] or "")


# No layout hides the history -------------------------------------------------------------------


def _plainly(git: Git, forged: Path) -> None:
    shutil.rmtree(git.root / ".nbs")
    shutil.copytree(forged, git.root / ".nbs")


def _linked(git: Git, forged: Path) -> None:
    shutil.rmtree(git.root / ".nbs")
    shutil.copytree(forged, git.root / ".ledger")
    (git.root / ".nbs").symlink_to(".ledger")


def _linked_record(git: Git, forged: Path) -> None:
    _plainly(git, forged)
    (git.root / ".nbs/record").rename(git.root / ".record")
    (git.root / ".nbs/record").symlink_to("../.record")


def _submodule(git: Git, forged: Path) -> None:
    other = Git(git.root.parent / "other")
    shutil.copytree(forged, other.root, dirs_exist_ok=True)
    commit(other, "a team directory")
    git("rm", "-r", "--quiet", ".nbs")
    shutil.rmtree(git.root / ".nbs", ignore_errors=True)
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.root), ".nbs")


@pytest.mark.parametrize(
    ("how", "want"), [(_plainly, 1), (_linked, 3), (_linked_record, 1), (_submodule, 3)]
)
@pytest.mark.parametrize("words", [(), ("--no-ledger",)])
def test_a_committed_forgery_is_never_clean(
    git: Git, forged: Path, how: Callable[[Git, Path], None], want: int, words: tuple[str, ...]
) -> None:
    how(git, forged)
    commit(git, "nothing to see")
    clone = cloned(git, "clone", "--recurse-submodules")
    for path in ((), (".nbs",)):
        code, subject = judged(clone.root, *path, *words)
        assert code in ((1, 3) if words else (want,))
        assert subject["repository"] == str(clone.root) or "not read" in (subject["history"] or "")


def test_a_record_that_is_a_link_hides_no_seal(git: Git) -> None:
    (git.root / ".nbs/record").rename(git.root / ".record")
    (git.root / ".nbs/record").symlink_to("../.record")
    commit(git, "nothing to see")
    code, subject = judged(git.root, "--select", "pins-extend")
    assert (code, "record is a symbolic link" in (subject["history"] or "")) == (3, True)


def _worktree(clone: Git, _: Path) -> None:
    clone("config", "core.worktree", str(clone.root / ".nbs"))


def _encoding(clone: Git, _: Path) -> None:
    clone("config", "i18n.logOutputEncoding", "UTF-16")


def _begun_inside(clone: Git, _: Path) -> None:
    inner = Git(clone.root / ".nbs")
    commit(inner, "the only history")


def _planted(clone: Git, _: Path) -> None:
    shutil.copytree(clone.root.parent / "shop/.nbs", clone.root / ".nbs/.nbs")


def _replaced(clone: Git, _: Path) -> None:
    """The first commit is given the forged tree."""
    commit(clone, "forged")
    clone("replace", "HEAD~1", "HEAD")


@pytest.mark.parametrize(
    ("how", "want"),
    [(_worktree, 1), (_encoding, 1), (_begun_inside, 3), (_planted, 1), (_replaced, 1)],
)
def test_a_forgery_in_a_clone_is_never_clean(
    git: Git, forged: Path, how: Callable[[Git, Path], None], want: int
) -> None:
    clone = cloned(git, "clone")
    _plainly(clone, forged)
    how(clone, forged)
    for path in ((), (".nbs",)):
        code, subject = judged(clone.root, *path)
        assert code == want
        assert subject["team"] == str(clone.root / ".nbs")


def test_a_repository_of_its_own_is_used_where_no_other_is_around(tmp_path: Path) -> None:
    team(tmp_path / "plain", "We open on Monday.")
    inner = Git(tmp_path / "plain/.nbs")
    commit(inner, "the team's own history")
    code, subject = judged(tmp_path / "plain")
    assert (code, subject["repository"]) == (0, str(inner.root))


def test_a_link_that_leads_into_the_repository_from_outside_is_followed(git: Git) -> None:
    link = git.root.parent / "link"
    link.symlink_to(git.root)
    code, subject = judged(git.root, str(link))
    assert (code, subject["repository"], subject["team"]) == (0, str(git.root), f"{git.root}/.nbs")


@pytest.mark.parametrize("inside", [False, True])
def test_a_link_to_the_team_from_outside_hides_no_history(
    git: Git, forged: Path, inside: bool
) -> None:
    _plainly(git, forged)
    link = git.root.parent / "link"
    if inside:
        link.mkdir()
    (link / ".nbs" if inside else link).symlink_to(git.root / ".nbs")
    code, subject = judged(git.root, str(link))
    assert (code, subject["repository"], subject["team"]) == (1, str(git.root), f"{git.root}/.nbs")


def test_a_link_out_of_the_repository_is_refused(git: Git, forged: Path) -> None:
    (git.root / "team").symlink_to(forged.parent)
    code, subject = judged(git.root, "team")
    assert code == 3
    assert "a symbolic link" in (subject["history"] or "")


# What a repository may look like ---------------------------------------------------------------


def rewritten(git: Git) -> None:
    """Forget by the log what was decided, in a commit of its own."""
    log = git.root / LOG
    log.write_bytes(log.read_bytes().replace(b"Agreed.", b"Refused."))
    commit(git, "reword")


def _sha256(_: Git, folder: Path) -> Git:
    folder.mkdir()
    made = Git(folder, made=False)
    made("init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    team(folder, "We open on Monday.")
    commit(made, "Begin")
    return made


def _work_tree(git: Git, folder: Path) -> Git:
    git("worktree", "add", "--quiet", str(folder), "-b", "other")
    return Git(folder, made=False)


def _packed(git: Git, folder: Path) -> Git:
    shutil.copytree(git.root, folder)
    made = Git(folder, made=False)
    made("gc", "--quiet")
    assert not list((folder / ".git/refs/heads").iterdir())
    return made


def _borrowed(git: Git, folder: Path) -> Git:
    git("clone", "--quiet", "--shared", str(git.root), str(folder))
    return Git(folder, made=False)


def _detached(git: Git, folder: Path) -> Git:
    made = _borrowed(git, folder)
    made("checkout", "--quiet", "--detach")
    return made


def _as_submodule(git: Git, folder: Path) -> Git:
    outer = Git(folder)
    allowed = ("-c", "protocol.file.allow=always")
    outer(*allowed, "submodule", "--quiet", "add", str(git.root), "part")
    return Git(folder / "part", made=False)


@pytest.mark.parametrize("how", [_sha256, _work_tree, _packed, _borrowed, _detached, _as_submodule])
def test_every_usual_repository_is_read(
    git: Git, tmp_path: Path, how: Callable[[Git, Path], Git]
) -> None:
    made = how(git, tmp_path / "made")
    code, subject = judged(made.root)
    # A linked work tree has no team of its own.
    assert (code, subject["repository"]) == (0, str((git if how is _work_tree else made).root))
    outer = "a repository around it, was not looked at" in (subject["history"] or "")
    assert outer == (how is _as_submodule)
    assert run(made.root, "verify", "--grow-only", LOG).code == 0
    rewritten(made)
    assert run(made.root, "verify", "--grow-only", LOG).code == 1


def test_a_branch_that_names_another_is_followed_to_its_commit(git: Git) -> None:
    git("symbolic-ref", "refs/heads/beside", "refs/heads/main")
    git("symbolic-ref", "refs/heads/above", "refs/heads/beside")
    git("symbolic-ref", "HEAD", "refs/heads/above")
    rewritten(git)
    assert run(git.root, "verify", "--grow-only", LOG).code == 1
    with Repository(str(git.root / ".nbs")) as repository:
        tip = git("rev-parse", "HEAD")
        assert [repository.tip(f"refs/heads/{name}") for name in ("above", "beside")] == [tip, tip]


def test_a_commit_on_any_work_tree_or_reflog_binds(git: Git, tmp_path: Path) -> None:
    linked = _work_tree(git, tmp_path / "linked")
    linked("checkout", "--quiet", "--detach")
    tip = linked.commit("else.txt", b"x\n")
    gone = git.commit("else.txt", b"y\n")
    git("reset", "--quiet", "--hard", "HEAD~1")
    with Repository(str(git.root / ".nbs")) as repository:
        assert {tip, gone} <= set(repository.everything())


def test_a_partial_clone_is_not_made_whole_by_looking(git: Git, tmp_path: Path) -> None:
    tripod(git.root, "chat", "send", "live", "ann", "More.")
    tripod(git.root, "seal")
    commit(git, "more")
    git("config", "uploadpack.allowFilter", "true")
    clone = cloned(git, "clone", "--filter=blob:none")
    code, _ = judged(clone.root)
    assert code == 3
    missing = clone("rev-list", "--objects", "--all", "--missing=print")
    assert "\n?" in f"\n{missing}"


def _extension(git: Git) -> None:
    git("config", "core.repositoryFormatVersion", "1")
    git("config", "extensions.refStorage", "reftable")


def _version(git: Git) -> None:
    git("config", "core.repositoryFormatVersion", "2")


def _circle(git: Git) -> None:
    (git.root / ".git").rename(git.root.parent / "away")
    (git.root / ".git").write_text("gitdir: .git\n", encoding="ascii")


def _no_head(git: Git) -> None:
    (git.root / ".git/HEAD").unlink()


def _bad_ref(git: Git) -> None:
    (git.root / ".git/refs/heads/bad").write_text("x\n", encoding="ascii")


def _ref_to_nothing(git: Git) -> None:
    (git.root / ".git/refs/heads/gone").write_text(f"{'1' * 40}\n", encoding="ascii")


def _refs_in_a_circle(git: Git) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        (git.root / f".git/refs/heads/{name}").write_text(
            f"ref: refs/heads/{other}\n", encoding="ascii"
        )


def _bad_config(git: Git) -> None:
    (git.root / ".git/config").write_text("[core\n", encoding="ascii")


def _alternate_of_no_name(git: Git) -> None:
    (git.root / ".git/objects/info").mkdir(exist_ok=True)
    (git.root / ".git/objects/info/alternates").write_bytes(b"a\0b\n")


def _store_in_a_circle(git: Git) -> None:
    (git.root / ".git/objects/loop").symlink_to("loop")


def _pipe(path: str) -> Callable[[Git], None]:
    def do(git: Git) -> None:
        full = git.root / path
        if full.is_dir():
            full.rename(git.root.parent / "away")
        full.unlink(missing_ok=True)
        full.parent.mkdir(exist_ok=True, parents=True)
        os.mkfifo(full)

    do.__name__ = f"_pipe_{path}"
    return do


@pytest.mark.parametrize(
    "how",
    [
        _extension,
        _version,
        _circle,
        _no_head,
        _bad_ref,
        _ref_to_nothing,
        _refs_in_a_circle,
        _bad_config,
        _alternate_of_no_name,
        _store_in_a_circle,
        *map(
            _pipe,
            (".git", ".git/HEAD", ".git/config", ".git/packed-refs", ".git/refs/heads/main",
             ".git/logs/HEAD", ".git/shallow", ".git/commondir", ".git/objects/info/alternates",
             ".git/objects/pack/pack-x.idx", ".git/objects/00/1111",
             ".git/worktrees/x/HEAD"),
        ),
    ],
)  # fmt: skip
def test_what_is_no_plain_repository_is_refused_in_words(
    git: Git, how: Callable[[Git], None]
) -> None:
    how(git)
    words = ["tripod", "verify", "-v", "--select", "pins-extend"]  # a process: it might wait
    path = search_path(TZ="UTC", LC_ALL="C.UTF-8")
    done = subprocess.run(
        words, cwd=git.root, env=os.environ | {"PATH": path}, capture_output=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert (done.returncode, b"--no-git leaves the history alone" in done.stdout) == (3, True)


def test_work_trees_that_cannot_be_listed_are_refused_in_words(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("worktree", "add", "--quiet", "../fix")
    listed = os.listdir

    def refuse(path: str) -> list[str]:
        if path.endswith("/worktrees"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr("tripod.verify.anchors.git_folder.os.listdir", refuse)
    done = run(git.root, "verify", "-v", "--select", "pins-extend")
    assert (done.code, b"worktrees cannot be read: Permission denied" in done.out) == (3, True)


def test_stores_are_looked_into_as_deep_as_git_follows_them(git: Git, tmp_path: Path) -> None:
    place = find(str(git.root / ".nbs"))
    assert place is not None
    store = git.root / ".git/objects"
    stores = [store]
    for number in range(1, 7):
        (tmp_path / f"store-{number}/info").mkdir(parents=True)
        stores.append(tmp_path / f"store-{number}")
        (stores[-2] / "info/alternates").write_text(f"{stores[-1]}\n", encoding="utf-8")
    os.mkfifo(stores[6] / "pipe")
    assert git_store_problem(place) is None  # git stops before it
    os.mkfifo(stores[5] / "pipe")
    assert git_store_problem(place) == f"{stores[5]}/pipe is neither a file nor a folder"


def test_a_store_that_is_named_again_and_again_is_looked_into_once(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = find(str(git.root / ".nbs"))
    assert place is not None
    store = git.root / ".git/objects"
    (store / "info/alternates").write_text(f"# a comment\n\n{store}\n{store}\n{store}\n")
    looked: list[str] = []
    scandir = os.scandir

    def noted(path: str) -> object:
        looked.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noted)
    assert git_store_problem(place) is None
    assert looked.count(str(store)) == 2  # for its folders, and as one of them


def test_another_user_s_repository_is_read_where_git_itself_would(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert judged(git.root)[0] == 0
    git("config", "safe.directory", "*")  # its own word counts for nothing
    owner = git.root.stat().st_uid
    monkeypatch.setattr("tripod.verify.anchors.git_folder.os.geteuid", lambda: owner + 1)
    code, subject = judged(git.root)
    assert code == 3
    assert "belongs to another user" in (subject["history"] or "")
    for value, want in ((str(git.root), 0), ("/elsewhere", 3), ("*", 0), (f"{tmp_path}/*", 0)):
        (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {value}\n", encoding="utf-8")
        assert judged(git.root)[0] == want
    with (home / ".gitconfig").open("a", encoding="utf-8") as file:
        file.write("\tdirectory =\n")  # what stood before is taken back
    assert judged(git.root)[0] == 3


def test_root_reads_what_its_caller_owns(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    place = find(str(git.root / ".nbs"))
    assert place is not None
    for owner, caller, want in (
        (0, "", None),
        (0, "77", None),
        (77, "77", None),
        (77, "78", ".git"),
        (77, "", ".git"),
        (77, "77x", ".git"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv("SUDO_UID", caller)
            patch.setattr(os, "geteuid", lambda: 0)
            patch.setattr(os, "lstat", lambda _, uid=owner: os.stat_result([uid] * 10))
            assert git_owner_differs(place) == (want and str(git.root / want))


def test_a_commit_s_own_encoding_forges_no_history(git: Git) -> None:
    """Converted by git, these names would hold line breaks and NULs: the marks of its answers."""
    log = git.root / LOG
    log.write_bytes(log.read_bytes().replace(b"Agreed.", b"Refused."))
    git("add", "--all")
    tree, parent = git("write-tree"), git("rev-parse", "HEAD")
    person = b"Ann+AAA-+AAE-+AAo-:100644 <a+AAA-@example.com> 1700000000 +0000"
    raw = b"tree %b\nparent %b\nauthor %b\ncommitter %b\nencoding UTF-7\n\nx\n" % (
        tree.encode(), parent.encode(), person, person,
    )  # fmt: skip
    name = git("hash-object", "-t", "commit", "-w", "--stdin", given=raw)
    git("update-ref", "refs/heads/main", name)
    with Repository(str(log)) as repository:
        (change,) = repository.changes((LOG,), [name])[1:]
    assert change.commit.name == name
    assert change.commit.author == "Ann+AAA-+AAE-+AAo-:100644 <a+AAA-@example.com>"
    assert change.commit.seconds == 1_700_000_000


def test_an_altered_commit_is_not_believed(git: Git) -> None:
    name = git("rev-parse", "HEAD")
    other = git("commit-tree", "HEAD^{tree}", "-m", "another")
    folder = git.root / ".git/objects"
    (folder / name[:2] / name[2:]).unlink()
    (folder / other[:2] / other[2:]).rename(folder / name[:2] / name[2:])
    with Repository(str(git.root / LOG)) as repository, pytest.raises(GitError, match="hash"):
        repository.changes((LOG,), [name])


@pytest.mark.parametrize("name", ["a blob", "a blob 5", "a missing", "b tree x"])
def test_no_name_of_a_file_is_taken_for_an_answer_of_git(git: Git, name: str) -> None:
    git.commit(name, b"one\n")
    git.commit(name, None)
    done = run(git.root, "verify", "--grow-only", name)
    assert (done.code, b"it was removed" in done.out) == (1, True)


def test_a_blob_that_is_too_large_answers_no_later_question(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = git("hash-object", "-w", "--stdin", given=b"small\n")
    forged = f"{small} blob 7\nforged\n\n".encode()
    large = git("hash-object", "-w", "--stdin", given=forged * 9)
    monkeypatch.setattr("tripod.verify.anchors.git.MAX_BLOB", 100)
    with Repository(str(git.root / ".nbs")) as repository:
        with pytest.raises(GitError, match="more than 100"):
            repository.blob(large)
        assert repository.blob(small) == b"small\n"


PLAIN = (
    b"",
    b"[core]\n",
    b"[core]\n\tbare = false\n\tBare = TRUE\n",
    b'[remote "Origin"]\n\turl = git@host.example:team/shop.git\n\tfetch = +refs/*:refs/o/*\n',
    b"[User]\n\tname = Ann de Vries\n\temail = ann@example.org\n[user]\n\tname = Bo\n",
    b'[branch "feature/a.b"]\n\tmerge = refs/heads/feature/a.b\n[extensions]\n\tx = a=b\n',
)
LEFT_TO_GIT = (
    b'[core]\n\ta = "b"\n',
    b"[core]\n\ta = b # more\n",
    b"[core]\n\ta = b;c\n",
    b"[core]\n\ta = b \n",
    b"[core]\n\ta = b  c\n",
    b"[core]\n\ta = b\\\n\tc\n",
    b"[core]\n\ta\n",
    b"[core]\n\ta =\n",
    b"[core]\n\ta = b",
    b"[core]\r\n\ta = b\r\n",
    b"[core] a = b\n",
    b"[core.sub]\n\ta = b\n",
    b'[core "a\\"b"]\n\ta = b\n',
    b'[core ""]\n\ta = b\n',
    b"\ta = b\n",
    b"[core]\n\ta_b = c\n",
    b"[core]\n\n\ta = b\n",
    "[user]\n\tname = Zo\u00eb\n".encode(),
    b"\xef\xbb\xbf[core]\n\ta = b\n",
)


@pytest.mark.parametrize("config", PLAIN)
def test_plain_settings_are_read_as_git_reads_them(config: bytes, tmp_path: Path) -> None:
    """What git itself writes needs no process of git to be read."""
    (tmp_path / "config").write_bytes(config)
    asked = ("git", "config", "--file", "config", "--no-includes", "--null", "--list")
    listed = subprocess.run(asked, cwd=tmp_path, check=True, stdout=subprocess.PIPE).stdout
    plain = plain_git_settings(config)
    assert plain is not None
    assert list(plain.items()) == list(listed_git_settings(listed).items())


@pytest.mark.parametrize("config", LEFT_TO_GIT)
def test_settings_of_any_other_form_are_left_to_git(config: bytes) -> None:
    """No second reader of git's language decides what a quote or a comment means."""
    assert plain_git_settings(config) is None


def test_a_key_with_many_values_costs_no_more_than_many_keys() -> None:
    """Found by torture: with each value all that came before were copied, for an hour."""
    many = 400_000
    assert len(listed_git_settings(b"a.b\nc\0" * many)["a.b"]) == many
    assert len((plain_git_settings(b"[a]\n" + b"\tb = c\n" * many) or {})["a.b"]) == many
