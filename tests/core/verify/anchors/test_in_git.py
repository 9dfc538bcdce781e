"""A team in a git repository: what its history remembers, and what a clone of it can judge."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run
from git_repo import Git, track, write_tracked_record
from specimens import forge, read

from tripod.bus import events
from tripod.cli import main
from tripod.ledger.store import Head
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.verify.anchors.git import Repository


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def git(tmp_path: Path, home: Path) -> Git:
    """A fresh repository with the tracked team of an earlier version, which worked."""
    (tmp_path / "shop").mkdir()
    git = Git(tmp_path / "shop", made=False)
    assert not home.exists()
    tripod(git, "init", "--origin", "example.com/shop", "--key")
    git("init", "--quiet", "--initial-branch=main")
    track(git.root)
    tripod(git, "chat", "create", "live")
    tripod(git, "chat", "send", "live", "ann", "We open on Monday.")
    decide(git, "Open on Monday")
    commit(git, "Begin")
    return git


def tripod(git: Git, *words: str, code: int = 0) -> Done:
    done = run(git.root, *words)
    assert done.code == code, (done.out, done.err)
    return done


def decide(git: Git, title: str) -> None:
    tripod(git, "bus", "publish", "ann", "note", "low", title)
    words = ("--participant", "ann", "--rationale", "Agreed.", "--ref", "live.chat:~L7")
    tripod(git, "scribe", "log", title, *words)


def commit(git: Git, message: str) -> str:
    write_tracked_record(git.root)
    git("add", "--all")
    git("commit", "--quiet", "-m", message)
    return git("rev-parse", "HEAD")


def cloned(git: Git, name: str) -> Git:
    path = git.root.parent / name
    git("clone", "--quiet", str(git.root), str(path))
    return Git(path, made=False)


def head(git: Git) -> Head:
    with Team(f"{git.root}/.nbs") as team:
        return team.store.head()


def verdict(git: Git, *words: str) -> tuple[int, dict[str, list[tuple[str, str, str]]]]:
    """The exit code, and the findings of each check: severity, where, message."""
    done = run(git.root, "verify", "--json", *words)
    found = {
        check["check"]: [(f["severity"], f["where"], f["message"]) for f in check["findings"]]
        for check in json.loads(done.out)["checks"]
        if check["findings"]
    }
    return done.code, found


def tamper(git: Git, home: Path) -> None:
    """Everything anew by somebody who has all of the host, its key too: nothing on it disagrees."""
    root = f"{git.root}/.nbs"
    rows = read(f"{root}/ledger.db")
    seq = next(n for n, row in enumerate(rows) if row.data.get("type") == "note")
    rows[seq] = rows[seq].saying(payload={"text": "We never said so."})
    rows[seq:] = [row for row in rows[seq:] if row.head["kind"] != "seal.made"]
    forge(root, rows)
    shutil.rmtree(f"{root}/record")
    shutil.rmtree(home / "seals")
    with Team(root) as team:
        assert sealing.seal(team, "asked") is not None
    write_tracked_record(git.root)


def test_a_ledger_made_anew_contradicts_the_commits_that_sealed_it(git: Git, home: Path) -> None:
    first = git("rev-parse", "HEAD")
    decide(git, "Open on Tuesday")
    second = commit(git, "Work")
    assert verdict(git) == (0, {})
    tamper(git, home)
    assert verdict(git, "--no-git") == (0, {})
    for committed in (False, True):
        if committed:
            commit(git, "Nothing to see")
        code, found = verdict(git)
        assert (code, list(found)) == (1, ["pins-extend", "peers-agree"])
        assert any(text.startswith("fork: ") for _, _, text in found["peers-agree"])  # by its ref
        forks = [where for _, where, text in found["pins-extend"] if text.startswith("fork: ")]
        assert [where[:19] for where in forks] == [f"commit {c[:12]}" for c in (first, second)]
        assert all("by Ann <ann@example.com>, " in where for where in forks)


def test_a_ledger_that_was_put_back_contradicts_them_too(git: Git, home: Path) -> None:
    shutil.copytree(f"{git.root}/.nbs", f"{git.root}/../backup")
    decide(git, "Open on Tuesday")
    second = commit(git, "Work")
    # Everything is put back: the repository's branch, the team's files, the signer's memory.
    git("reset", "--quiet", "--hard", "HEAD~1")
    shutil.rmtree(f"{git.root}/.nbs")
    shutil.copytree(f"{git.root}/../backup", f"{git.root}/.nbs")
    shutil.rmtree(home / "seals")
    code, found = verdict(git)
    assert code == 1
    ((_, where, text),) = found.pop("pins-extend")
    assert text.startswith("rollback: ")
    # Of the log it is only said that the branch once held more.
    assert [(name, one[0]) for name, (one,) in found.items()] == [("append-only", "warning")]
    assert where.startswith(f"commit {second[:12]} by Ann")


def test_a_ledger_begun_anew_is_another_log_until_somebody_outside_gives_the_old_one_up(
    git: Git, home: Path
) -> None:
    shutil.rmtree(f"{git.root}/.nbs")
    shutil.rmtree(home)
    tripod(git, "init", "--new", "--origin", "example.com/shop-2")
    code, found = verdict(git)
    assert (code, list(found)) == (1, ["pins-extend"])
    assert "unknown log: it remembers example.com/shop with " in found["pins-extend"][0][2]
    git.write(".nbs/policy.yaml", b"given-up: [example.com/shop]\n")
    code, found = verdict(git)
    assert (code, found["pins-extend"][0][2][:11]) == (1, "unknown log")  # the team's own word
    git.write("../given.yaml", b"given-up: [example.com/shop]\n")
    code, found = verdict(git, "--policy", str(git.root.parent / "given.yaml"))
    assert code == 0
    assert all(text.startswith("given up: ") for _, _, text in found["pins-extend"])


# Clones ----------------------------------------------------------------------------------------


def test_a_clone_judges_the_record_and_the_files_and_restores_the_ledger(git: Git) -> None:
    decide(git, "Open on Tuesday")
    with Team(f"{git.root}/.nbs") as team:
        made = sealing.newest(team.store.db)
    commit(git, "Work")
    clone = cloned(git, "clone")
    assert not os.path.exists(f"{clone.root}/.nbs/ledger.db")
    report = json.loads(tripod(clone, "verify", "--json").out)
    assert (report["exit_code"], report["warnings"]) == (0, 0)
    assert report["anchored"]["level"] == "PINNED"
    assert report["anchored"]["tail"]["entries"] == 0
    tripod(clone, "init")
    assert made is not None
    assert head(clone).size == made.size == report["head"]["size"]
    assert head(clone).root.hex() == report["head"]["root"]
    assert verdict(clone) == (0, {})
    # A decision in the clone's log is judged by its files.
    clone = cloned(git, "other")
    log = clone.root / ".nbs/scribe/log.md"
    log.write_bytes(log.read_bytes().replace(b"Agreed.", b"Refused.", 1))
    code, found = verdict(clone)
    assert (code, "append-only" in found) == (1, True)


def test_a_record_that_is_gone_is_a_missing_ledger(git: Git) -> None:
    clone = cloned(git, "clone")
    shutil.rmtree(f"{clone.root}/.nbs/record")
    code, found = verdict(clone)
    assert code == 1
    assert found["ledger-missing"]
    # And if whoever removed it removes every trace in the files as well, git remembers.
    os.unlink(f"{clone.root}/.nbs/counts.json")
    os.unlink(f"{clone.root}/.nbs/.gitignore")
    code, found = verdict(clone)
    ((_, _, text),) = found["ledger-missing"]
    assert f"there was one: commit {git('rev-parse', 'HEAD')[:12]} by Ann" in text
    assert code == 1


def test_a_record_is_read_whole_though_only_new_entries_are_asked_for(git: Git) -> None:
    with Team(f"{git.root}/.nbs") as team:
        for number in range(300):
            events.publish(team, "ann", "note", "low", f"more {number}")
    decide(git, "Open on Tuesday")
    commit(git, "Work")
    clone = cloned(git, "clone")
    pin = str(git.root.parent / "pin")
    tripod(clone, "verify", "--pin", pin, "--update-pin")
    said = tripod(clone, "verify", "--pin", pin, "--new-only").out
    assert b"note: everything was looked at: a record is read whole" in said


def test_a_shallow_clone_says_what_it_does_not_know(git: Git) -> None:
    decide(git, "Open on Tuesday")
    commit(git, "Work")
    path = git.root.parent / "shallow"
    git("clone", "--quiet", "--depth=1", f"file://{git.root}", str(path))
    code, found = verdict(Git(path, made=False), "--select", "pins-extend")
    ((severity, _, text),) = found["pins-extend"]
    assert (code, severity) == (0, "warning")
    assert text.startswith("this clone is shallow")


def test_an_older_commit_is_judged_though_a_branch_has_newer_seals(git: Git) -> None:
    first = git("rev-parse", "HEAD")
    decide(git, "Open on Tuesday")
    commit(git, "Work")
    clone = cloned(git, "clone")
    clone("checkout", "--quiet", first)
    code, found = verdict(clone)
    ((severity, _, text),) = found["pins-extend"]
    assert (code, severity, text[:9]) == (0, "warning", "rollback:")
    # But not an older record where the branch itself holds a newer one.
    clone("checkout", "--quiet", "main")
    clone("rm", "-r", "--quiet", ".nbs/record")
    clone("checkout", first, "--", ".nbs/record")
    code, found = verdict(clone)
    assert code == 1
    assert found["pins-extend"][0][2].startswith("rollback:")


def test_a_history_that_cannot_be_read_is_no_success(git: Git, tmp_path: Path) -> None:
    name = git("rev-parse", "HEAD:.nbs/record/checkpoint")
    loose = git.root / f".git/objects/{name[:2]}/{name[2:]}"
    loose.rename(tmp_path / "gone")
    done = run(git.root, "verify")
    assert (done.code, b"cannot tell     pins-extend" in done.out) == (3, True)
    assert b"git fsck" in done.out
    assert tripod(git, "verify", "--no-git").code == 0
    (git.root / ".git/HEAD").write_text("nonsense\n", encoding="utf-8")
    done = run(git.root, "verify", "--select", "pins-extend")
    assert (done.code, b"--no-git leaves the history alone" in done.out) == (3, True)


def test_warnings_hide_no_failure(git: Git) -> None:
    """Whoever can commit rubbish may commit a lot of it."""
    git.write(".nbs/policy.yaml", b"seals: [SEAL]\n")
    for number in range(25):
        git.commit("SEAL", b"rubbish %d\n" % number)
    text = (git.root / ".nbs/record/checkpoint").read_text(encoding="utf-8")
    origin, size, root = text.split("\n")[:3]
    git.commit("SEAL", f"{origin}\n{int(size) + 50}\n{root}\n".encode())
    code, found = verdict(git)
    assert code == 1
    assert found["pins-extend"][0][2].startswith("rollback:")
    assert [severity for severity, _, _ in found["pins-extend"]] == ["failure"] + ["warning"] * 25


# A ref of its own ------------------------------------------------------------------------------


def test_a_ref_of_its_own_remembers_between_two_commits(git: Git, home: Path) -> None:
    before = git("rev-parse", "HEAD"), git("status", "--porcelain"), git("ls-files", "--stage")
    decide(git, "Open on Tuesday")
    status = git("status", "--porcelain")
    done = tripod(git, "anchor", "git", "--json")
    assert json.loads(done.out)["name"] == "refs/tripod/seals"
    assert (git("rev-parse", "HEAD"), git("ls-files", "--stage")) == (before[0], before[2])
    assert status in git("status", "--porcelain") + status
    tip = git("rev-parse", "refs/tripod/seals")
    note = git("cat-file", "blob", f"{tip}:.nbs/record/checkpoint")
    assert note.startswith("example.com/shop\n")
    tripod(git, "chat", "send", "live", "ann", "More.")
    tripod(git, "anchor", "git")
    assert git("rev-parse", "refs/tripod/seals^") == tip
    assert verdict(git) == (0, {})
    # The receipt is the commit itself.
    seq = tripod(git, "anchor", "list").out.split()[0].decode()
    tripod(git, "anchor", "receipt", seq, str(git.root.parent / "out"))
    raw = (git.root.parent / "out/receipt.note").read_bytes()
    assert git("hash-object", "-t", "commit", "--stdin", given=raw) == tip
    tamper(git, home)
    code, found = verdict(git)
    assert code == 1
    forks = [where for _, where, text in found["pins-extend"] if text.startswith("fork: ")]
    assert any(where.startswith(f"commit {tip[:12]} by ") for where in forks)


def test_a_ref_goes_to_a_remote_and_comes_from_it(git: Git, home: Path) -> None:
    assert home.exists()
    bare = git.root.parent / "bare.git"
    git("clone", "--quiet", "--bare", str(git.root), str(bare))
    git("remote", "add", "origin", str(bare))
    tripod(git, "anchor", "git", "--ref", "heads", "--push", "origin")
    clone = git.root.parent / "clone"
    git("clone", "--quiet", str(bare), str(clone))
    there = Git(clone, made=False)
    there("fetch", "--quiet", "origin", "refs/tripod/*:refs/tripod/*")
    assert there("rev-parse", "refs/tripod/heads") == git("rev-parse", "refs/tripod/heads")
    assert run(clone, "verify").code == 0
    done = run(git.root, "anchor", "git", "--push", "nowhere")
    assert (done.code, "nobody else has it yet" in done.err) == (3, True)


@pytest.mark.parametrize(
    "words", [("--ref", "../heads/main"), ("--ref", ""), ("--push", "--upload-pack=x")]
)
def test_refs_and_remotes_that_are_none(git: Git, words: tuple[str, ...]) -> None:
    assert run(git.root, "anchor", "git", *words).code == 2


def test_without_a_repository_there_is_nothing_to_commit_to(tmp_path: Path, home: Path) -> None:
    assert not home.exists()
    folder = tmp_path / "plain"
    folder.mkdir()
    with pytest.raises(SystemExit) as left:
        main(["init", str(folder), "--key"])
    assert left.value.code == 0
    done = run(folder, "anchor", "git")
    assert (done.code, "there is no git repository around it" in done.err) == (1, True)


def test_a_ref_that_was_moved_meanwhile_is_refused(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Repository.ask

    def moved(self: Repository, *words: str, **more: Any) -> bytes:
        if words[0] == "update-ref":
            git("update-ref", "refs/tripod/seals", "HEAD")
        return ask(self, *words, **more)

    monkeypatch.setattr(Repository, "ask", moved)
    done = run(git.root, "anchor", "git")
    assert (done.code, "git update-ref" in done.err) == (1, True)
    assert tripod(git, "anchor", "list").out == b""
