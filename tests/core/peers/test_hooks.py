"""Git hooks that put the ledger's head into commits: what they add, keep, and undo."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clones import begin, say
from git_repo import Git

from tripod.ledger.files import READ_ONLY
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import open_seal
from tripod.ledger.tlog.tiles import SEAL
from tripod.ledger.tlog.trailer import Trailer, parse_trailers, trailer_seal
from tripod.peers.commit import message_with_trailer
from tripod.peers.hooks import install_hooks, remove_hooks
from tripod.team.team import Team
from tripod.trust.seal import last_seal
from tripod.verify.anchors.git import Repository
from tripod.verify.export_file import RefFiles

LINE = b"Tripod-Head: ann-0123456789abcdef 7 " + b"A" * 43 + b"= " + b"B" * 91 + b"="


def trailers(git: Git, commit: str = "HEAD") -> list[Trailer]:
    return list(parse_trailers(git("log", "-1", "--format=%B", commit).encode()))


def written(git: Git, replica: str, size: int) -> str:
    """The ref, once the hook that nobody waits for has written it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with Repository(f"{git.root}/.nbs") as repository:
            tip = repository.tip(f"refs/tripod/{replica}")
            if tip is not None:
                seal = RefFiles(repository, tip).read(SEAL, 10_000)
                if seal.split(b"\n")[1] == b"%d" % size:
                    return tip
        time.sleep(0.05)
    pytest.fail("the ref was not written")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of the repository's configuration and hooks."""
    paths = [folder / "config", *(folder / "hooks").glob("*")]
    return {str(path): (path.lstat().st_mode, path.read_bytes()) for path in paths}


def test_a_commit_gets_a_signed_head_and_the_ref_its_record(tmp_path: Path) -> None:
    git, replica, key = begin(tmp_path / "cafe")
    install_hooks(str(git.root))
    size = say(git, "Tea!")
    git.commit("menu", b"tea\n", "Serve tea\n\nNobody asked for coffee.")
    (trailer,) = trailers(git)
    assert (trailer.replica, trailer.size) == (replica, size)
    seal, note = trailer_seal(trailer, key)
    assert open_seal(note, [key]).seal == seal == last_seal(key.name)
    assert git("log", "-1", "--format=%(trailers:key=Tripod-Head,valueonly)").split()[0] == replica
    written(git, replica, size)
    assert git("status", "--porcelain") == ""


def test_the_ledger_is_not_written_and_the_same_head_is_not_signed_again(tmp_path: Path) -> None:
    git, replica, _ = begin(tmp_path / "cafe")
    install_hooks(str(git.root))
    size = say(git, "Tea!")
    git.commit("menu", b"tea\n")
    git.commit("menu", b"more tea\n")
    assert trailers(git) == trailers(git, "HEAD~1")
    with Team(f"{git.root}/.nbs") as team:
        assert team.store.size == size
    written(git, replica, size)


def test_nothing_is_written_where_nothing_is_to_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git, _, key = begin(tmp_path / "cafe")
    install_hooks(str(git.root))
    say(git, "Tea!")
    refs = git("for-each-ref", "refs/tripod")
    before = last_seal(key.name)
    monkeypatch.setenv(READ_ONLY, "1")
    git.commit("menu", b"tea\n")
    hook = [sys.executable, "-P", "-m", "tripod.peers.commit", "post-commit"]  # waited for
    subprocess.run(hook, cwd=git.root, check=True)
    assert (trailers(git), last_seal(key.name)) == ([], before)
    assert git("for-each-ref", "refs/tripod") == refs


def test_amend_rebase_merge_cherry_pick_and_squash_keep_one_trailer(tmp_path: Path) -> None:
    git, replica, _ = begin(tmp_path / "cafe")
    install_hooks(str(git.root))
    git("checkout", "--quiet", "-b", "side")
    say(git, "Tea!")
    git.commit("menu", b"tea\n", "Serve tea")
    say(git, "More tea!")
    git.commit("menu", b"tea, tea\n", "Serve more tea")
    git("commit", "--quiet", "--amend", "-m", "Serve more tea, again")
    assert len(trailers(git)) == 1
    size = say(git, "Amend!")
    git("commit", "--quiet", "--amend", "--no-edit")
    assert [one.size for one in trailers(git)] == [size]
    git("checkout", "--quiet", "main")
    git.commit("other", b"x\n", "Other")
    git("cherry-pick", "side~1")
    assert len(trailers(git)) == 1
    git("reset", "--quiet", "--hard", "HEAD~1")
    git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    assert len(trailers(git)) == 1
    git("reset", "--quiet", "--hard", "HEAD~1")
    git("merge", "--quiet", "--squash", "side")
    git("commit", "--quiet", "--no-edit")
    assert len(trailers(git)) == 1
    git("reset", "--quiet", "--hard", "HEAD~1")
    git("checkout", "--quiet", "side")
    git("rebase", "--quiet", "main")
    assert len(trailers(git)) == len(trailers(git, "HEAD~1")) == 1
    written(git, replica, size)


def test_hooks_that_are_there_are_called_and_come_back_as_they_were(tmp_path: Path) -> None:
    git, replica, _ = begin(tmp_path / "cafe")
    folder = git.root / ".git"
    for name in ("commit-msg", "post-commit"):
        hook = folder / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f'#!/bin/sh\necho "{name} $#" >> "{tmp_path}/called"\n')
        hook.chmod(0o755)
    before = snapshot(folder)
    install_hooks(str(git.root))
    install_hooks(str(git.root))
    size = say(git, "Tea!")
    git.commit("menu", b"tea\n")
    assert (tmp_path / "called").read_text().split("\n") == ["commit-msg 1", "post-commit 0", ""]
    assert len(trailers(git)) == 1
    written(git, replica, size)
    assert len(remove_hooks(str(git.root))) == 2
    assert snapshot(folder) == before
    assert remove_hooks(str(git.root)) == []


def test_a_hook_of_the_team_may_still_refuse_a_commit(tmp_path: Path) -> None:
    git, _, _ = begin(tmp_path / "cafe")
    hook = git.root / ".git/hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 7\n")
    hook.chmod(0o755)
    install_hooks(str(git.root))
    with pytest.raises(AssertionError):
        git.commit("menu", b"tea\n")


@pytest.mark.parametrize("place", ["githooks", "/elsewhere/hooks"])
def test_a_configured_folder_of_hooks_is_left_alone_and_called(tmp_path: Path, place: str) -> None:
    git, replica, _ = begin(tmp_path / "cafe")
    place = f"{tmp_path}{place}" if place.startswith("/") else place
    theirs = git.root / place
    theirs.mkdir(parents=True)
    for name in ("commit-msg", "pre-commit"):
        (theirs / name).write_text(f'#!/bin/sh\necho "$0" >> "{tmp_path}/called"\n')
        (theirs / name).chmod(0o755)
    git("config", "core.hooksPath", place)
    before = snapshot(git.root / ".git"), {p.name: p.read_bytes() for p in theirs.glob("*")}
    install_hooks(str(git.root))
    install_hooks(str(git.root))
    size = say(git, "Tea!")
    git.commit("menu", b"tea\n")
    called = (tmp_path / "called").read_text().split()
    assert [os.path.basename(name) for name in called] == ["pre-commit", "commit-msg"]
    assert len(trailers(git)) == 1
    written(git, replica, size)
    remove_hooks(str(git.root))
    assert before == (
        snapshot(git.root / ".git"),
        {p.name: p.read_bytes() for p in theirs.glob("*")},
    )
    assert not (git.root / ".git/tripod/hooks").exists()


def test_a_folder_that_the_user_configured_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git, _, _ = begin(tmp_path / "cafe")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "gitconfig").write_text(f"[core]\n\thooksPath = {tmp_path}/theirs\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    before = snapshot(git.root / ".git")
    install_hooks(str(git.root))
    assert snapshot(git.root / ".git") != before
    remove_hooks(str(git.root))
    assert snapshot(git.root / ".git") == before


def test_a_linked_work_tree_has_the_hooks_too(tmp_path: Path) -> None:
    git, replica, _ = begin(tmp_path / "cafe")
    git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = Git(tmp_path / "side", made=False)
    install_hooks(str(side.root))
    size = say(git, "Tea!")
    side.commit("menu", b"tea\n")
    assert [one.size for one in trailers(side)] == [size]
    written(git, replica, size)


@pytest.mark.parametrize("harm", ["no key here", "no ledger", "no python", "locked"])
def test_nothing_is_said_where_no_head_can_be_signed(tmp_path: Path, harm: str) -> None:
    git, _, key = begin(tmp_path / "cafe")
    install_hooks(str(git.root))
    keys = Path(os.environ["TRIPOD_HOME"], "keys")
    if harm == "no key here":
        keys.rename(tmp_path / "keys")
    elif harm == "no ledger":
        (git.root / ".git/tripod/ledger.db").rename(tmp_path / "ledger.db")
    elif harm == "no python":
        for hook in (git.root / ".git/hooks").glob("*"):
            hook.write_text(hook.read_text().replace(sys.executable, "/nowhere/python"))
    else:
        lock(keys, key)
    say_ = committed(git, "menu", b"tea\n")
    assert say_ == ""
    assert trailers(git) == []


def lock(folder: Path, key: VerifierKey) -> None:
    """Encrypt the private key."""
    from tripod.trust import keys

    path = keys.key_path(key.name)
    keys.store_key(path, keys.load_key(path, key.name), b"secret")
    assert folder.is_dir()


def committed(git: Git, path: str, data: bytes) -> str:
    """What a commit prints on standard error; the commit is made."""
    git.write(path, data)
    git("add", path)
    done = subprocess.run(
        ["git", "-C", str(git.root), "-c", "user.name=Ann", "-c", "user.email=a@b", "commit",
         "--quiet", "-m", "x"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stderr


def test_a_ledger_that_was_put_back_is_not_signed_and_the_commit_is_made(tmp_path: Path) -> None:
    git, replica, _ = begin(tmp_path / "cafe")
    install_hooks(str(git.root))
    database = git.root / ".git/tripod/ledger.db"
    older = sorted(database.parent.glob("ledger.db*"))
    kept = {path: path.read_bytes() for path in older}
    size = say(git, "Tea!")
    git.commit("menu", b"tea\n")
    written(git, replica, size)
    for path, data in kept.items():
        path.write_bytes(data)
    assert "a backup was restored" in committed(git, "menu", b"more\n")
    assert trailers(git) == []


@pytest.mark.parametrize(
    ("message", "want"),
    [
        (b"Say\n", b"Say\n\nLINE\n"),
        (b"Say", b"Say\n\nLINE\n"),
        (b"Say\n\nWhy.\n", b"Say\n\nWhy.\n\nLINE\n"),
        (b"Say\n\nSigned-off-by: A\n", b"Say\n\nSigned-off-by: A\nLINE\n"),
        (b"Say\n\nA: b\nwhy\n\n(cherry picked from commit 1)\n",
         b"Say\n\nA: b\nwhy\n\n(cherry picked from commit 1)\nLINE\n"),
        (b"Fix: it\n", b"Fix: it\n\nLINE\n"),
        (b"Say\n\n" + LINE + b"\n", b"Say\n\nLINE\n"),
        (b"Say\n\n" + LINE + b"\n\nmore\n\n" + LINE + b"\n", b"Say\n\n\nmore\n\nLINE\n"),
        (b"Say\n\n# Please enter\n#\n# On x\n", b"Say\n\nLINE\n\n# Please enter\n#\n# On x\n"),
        (b"Say\n; c\n", b"Say\n\nLINE\n\n; c\n"),
        (b"Say\n# ------------------------ >8 ------------------------\n# x\ndiff\n",
         b"Say\n\nLINE\n# ------------------------ >8 ------------------------\n# x\ndiff\n"),
        (b"", b""),
        (b"\n# Please enter\n#\n", b"\n# Please enter\n#\n"),
        (b"\n\n", b"\n\n"),
        (b"caf\xe9\n", b"caf\xe9\n\nLINE\n"),
    ],
)  # fmt: skip
def test_where_a_trailer_stands(message: bytes, want: bytes) -> None:
    told = message_with_trailer(message, LINE)
    assert told == want.replace(b"LINE", LINE)
    assert message_with_trailer(told, LINE) == told
