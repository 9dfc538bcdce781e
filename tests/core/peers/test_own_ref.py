"""A replica's record on its ref: written when a seal is due, by compare-and-swap."""

import os
import shutil
import time
from pathlib import Path
from unittest import mock

import pytest
from git_repo import Git

from tripod.bus import events as bus
from tripod.chat import writer as chat
from tripod.decisions import writer as decisions
from tripod.errors import RefusedError
from tripod.ledger.tlog.seal import read_seal
from tripod.peers import record
from tripod.peers.replica import name_team, replica_of
from tripod.recovery import redaction
from tripod.recovery.redaction import RedactionRequest
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.verify.anchors.git import Repository
from tripod.verify.export_file import RefFiles
from tripod.verify.peers.refs import OWN


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository with a team of anna's."""
    monkeypatch.setenv("TRIPOD_AS", "anna")
    git = Git(tmp_path / "shop")
    git.commit("main.py", b"print()\n")
    adoption.init(str(git.root), project="shop", origin="example.org/shop")
    return git


def ref(git: Git) -> str:
    with Team(git.root) as team:
        found = replica_of(team.store)
    assert found is not None
    return OWN + found[1]


def sealed_size(git: Git, name: str = "") -> int:
    """How many entries the ref's record holds."""
    with Repository(f"{git.root}/x") as repository:
        tip = repository.tip(name or ref(git))
        assert tip is not None
        return read_seal(RefFiles(repository, tip).seal_note()).size


def decide(team: Team, title: str) -> None:
    decisions.log(team, decisions.DecisionRequest(title, ["anna"], "It works."), actor="anna")


def test_a_new_team_in_a_repository_is_named_and_on_its_ref(git: Git) -> None:
    name = ref(git)
    assert name.startswith("refs/tripod/anna-")
    with Team(git.root) as team:
        assert replica_of(team.store) == ("example.org/shop", name.removeprefix("refs/tripod/"))
        assert [e.kind for e in team.store.read()][-1] == "seal.made"
        assert sealed_size(git) == team.store.size - 1
    assert not (git.root / ".nbs/record").exists()
    assert git("status", "--porcelain", "--untracked-files=all") == ""
    assert git("for-each-ref", "--format=%(refname)") == f"refs/heads/main\n{name}"


def test_seals_shortly_after_one_another_wait_for_the_ref(git: Git) -> None:
    before = sealed_size(git)
    with Team(git.root) as team:
        decide(team, "Keep it")
        assert sealing.newest(team.store.db).size > before  # type: ignore[union-attr]
        assert sealed_size(git) == before, "an act waited for git"
        later = time.time_ns() + 601 * 10**9
        with (
            mock.patch.object(time, "time_ns", return_value=later),
            mock.patch.object(time, "time", return_value=later / 1e9),
        ):
            bus.publish(team, "anna", "note", "low", "hello")
        assert sealed_size(git) == team.store.size - 1 > before
        with mock.patch.object(sealing, "WRITTEN_EVERY", 3):
            decide(team, "Keep it longer")
        assert sealed_size(git) == team.store.size - 1
        sealing.seal(team, "asked")
        assert [text for text in team.warnings if "future" not in text] == []
    assert git("rev-list", "--count", ref(git)) == "3"


def test_what_is_asked_for_is_written_at_once(git: Git) -> None:
    with Team(git.root) as team:
        chat.create(team, "live")
        chat.send(team, "live", "anna", "hello")
        sealing.seal(team, "asked")
        assert sealed_size(git) == team.store.size - 1


def test_outside_of_a_repository_the_record_stays_a_folder(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    root = adoption.init(str(tmp_path / "shop"), key=True).root
    assert os.path.isfile(f"{root}/record/checkpoint")
    with Team(root) as team:
        assert replica_of(team.store) is None


def test_a_git_that_is_missing_refuses_or_hangs_stops_no_act(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = os.environ["PATH"], sealed_size(git)
    slow = tmp_path / "slow/git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\n/bin/sleep 600 & wait\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setattr(record, "GIT_S", 0.3)
    for folder, why in ((tmp_path, "cannot be run"), (slow.parent, "did not end within 0.3 s")):
        monkeypatch.setenv("PATH", f"{folder}" if folder == tmp_path else f"{folder}:{path}")
        with Team(git.root) as team:
            chat.create(team, f"live-{folder.name[:4]}")
            assert sealing.seal(team, "asked") is not None
            assert why in " ".join(team.warnings)
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr(record, "GIT_S", 30)
    assert sealed_size(git) == before
    with Team(git.root) as team:
        sealing.seal(team, "asked")
        assert sealed_size(git) == team.store.size - 1
        assert not team.warnings


def test_a_redaction_begins_the_chain_anew(git: Git) -> None:
    with Team(git.root) as team:
        chat.create(team, "live")
        chat.send(team, "live", "anna", "my password is hunter2")
        chat.send(team, "live", "anna", "hunter2 " * 4000)
        sealing.seal(team, "asked")
        old = git("rev-parse", ref(git))
        assert "hunter2" in git("grep", "hunter2", old)
        seqs = [e.seq for e in team.store.read(kinds=("chat.sent",))]
        redaction.redact(team, RedactionRequest(seqs, reason="a secret", by="anna"))
        assert sealed_size(git) == team.store.size - 1, "it was not written at once"
        assert not team.warnings
    assert git("rev-list", "--count", ref(git)) == "1"
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "--quiet", "--prune=now")
    listed = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    blobs = [line.split()[0] for line in listed.split("\n") if line.endswith("blob")]
    with Repository(f"{git.root}/x") as repository:
        assert all(b"hunter2" not in (repository.blob(blob) or b"") for blob in blobs)


def test_a_ref_that_holds_something_else_or_more_is_left(git: Git) -> None:
    name = ref(git)
    copy = shutil.copy2(f"{git.root}/.git/tripod/ledger.db", f"{git.root}/../old.db")
    with Team(git.root) as team:
        chat.create(team, "live")
        sealing.seal(team, "asked")
    more = git("rev-parse", name)
    shutil.copy2(copy, f"{git.root}/.git/tripod/ledger.db")
    with Team(git.root) as team, pytest.raises(RefusedError, match="an older ledger was put back"):
        record.keep_record(team.root, name.rpartition("/")[2], sealing.newest(team.store.db).note)  # type: ignore[union-attr]
    assert git("rev-parse", name) == more
    git("update-ref", name, "HEAD")
    with Team(git.root) as team, pytest.raises(RefusedError, match="holds no record of ours"):
        record.keep_record(team.root, name.rpartition("/")[2], sealing.newest(team.store.db).note)  # type: ignore[union-attr]
    assert git("rev-parse", name) == git("rev-parse", "HEAD")


def test_a_ref_that_moved_meanwhile_is_not_moved_back(git: Git) -> None:
    name = ref(git)
    with Team(git.root) as team:
        chat.create(team, "live")
        usual = Repository.ask

        def ask(self: Repository, *words: str, **more: object) -> bytes:
            if words[0] == "fast-import":
                git("update-ref", name, "HEAD")
            return usual(self, *words, **more)  # type: ignore[arg-type]

        with mock.patch.object(Repository, "ask", ask):
            sealing.seal(team, "asked")
        assert "the record is not up to date" in team.warnings[-1]
    assert git("rev-parse", name) == git("rev-parse", "HEAD")


def test_nothing_that_the_repository_names_is_run(git: Git, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    program = f"touch {canary}; true"
    for key in ("core.fsmonitor", "core.sshCommand", "gpg.program", "core.alternateRefsCommand"):
        git("config", key, program)
    git("config", "core.hooksPath", "hooks")
    for hook in ("reference-transaction", "post-update", "pre-auto-gc"):
        path = git.root / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {canary}\n", encoding="utf-8")
        path.chmod(0o755)
    with Team(git.root) as team:
        chat.create(team, "live")
        sealing.seal(team, "asked")
        assert sealed_size(git) == team.store.size - 1
        name_team(team)
    assert not canary.exists()
