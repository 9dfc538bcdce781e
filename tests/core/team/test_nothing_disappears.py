"""Nothing that somebody recorded disappears, whatever clone, branch or backup it comes from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run
from git_repo import Git, track

from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.reader import SQLiteReader, read_only

LOG = ".nbs/scribe/log.md"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Each developer has a home of their own."""
    monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "home-ann"))
    return monkeypatch


def tripod(git: Git, *words: str) -> Done:
    done = run(git.root, *words)
    assert done.code == 0, done
    return done


def decide(git: Git, title: str) -> None:
    words = ("--rationale", "It works.", "-p", "ann", "--ref", "live#last")
    tripod(git, "scribe", "log", title, *words)


def titles(git: Git) -> list[str]:
    """The decisions that the ledger holds."""
    with read_only(database_of(f"{git.root}/.nbs")) as db:
        kinds = ("decision.logged",)
        return [entry.data["title"] for entry in SQLiteReader(db).read(kinds=kinds)]


def findings(git: Git) -> list[dict[str, Any]]:
    value = json.loads(run(git.root, "verify", "--json").out)
    return [finding for check in value["checks"] for finding in check["findings"]]


def failing(git: Git) -> list[str]:
    return [one["message"] for one in findings(git) if one["severity"] == "failure"]


def committed(git: Git, message: str) -> None:
    git("add", "--all", "--force", ".nbs")
    git("reset", "--quiet", "--", *[f":(glob).nbs/**/{name}" for name in ("ledger.db*", "*.lock")])
    git("commit", "--quiet", "-m", message)


@pytest.fixture
def clones(tmp_path: Path, home: pytest.MonkeyPatch) -> Git:
    """The third developer's clone, as an earlier version made it: all of ``.nbs`` is tracked.

    The second one logged a decision in a clone, and committed the files that show it. The record
    does not hold it: the key of the ledger is the first developer's.
    """
    (tmp_path / "ann").mkdir()
    ann = Git(tmp_path / "ann", made=False)
    tripod(ann, "init", "--origin", "example.org/shop", "--key")
    tripod(ann, "chat", "create", "live")
    tripod(ann, "chat", "send", "live", "ann", "one")
    decide(ann, "First")
    tripod(ann, "seal")
    ann("init", "--quiet", "--initial-branch=main")
    track(ann.root)
    committed(ann, "ann")
    home.setenv("TRIPOD_HOME", str(tmp_path / "home-bob"))
    ann("clone", "--quiet", str(ann.root), str(tmp_path / "bob"))
    bob = Git(tmp_path / "bob", made=False)
    run(bob.root, "init")
    tripod(bob, "chat", "send", "live", "bob", "two")
    decide(bob, "Second, by bob")
    committed(bob, "bob")
    home.setenv("TRIPOD_HOME", str(tmp_path / "home-cy"))
    bob("clone", "--quiet", str(bob.root), str(tmp_path / "cy"))
    return Git(tmp_path / "cy", made=False)


ADVISED = (("sync",), ("rebuild",), ("doctor", "--fix"), ("bus", "check"), ("init",))


@pytest.mark.drawn("long")
@pytest.mark.parametrize("first", ADVISED, ids=" ".join)
def test_a_decision_of_another_clone_survives_what_is_advised(
    clones: Git, first: tuple[str, ...]
) -> None:
    """It was removed from ``log.md`` by the ``rebuild`` that was advised, and verify said nothing.

    That which was tried at 852efc6: clone, restore, rebuild.
    """
    run(clones.root, "init")
    for words in (first, *(one for one in ADVISED if one != first)):
        done = run(clones.root, *words)
        assert b"Second, by bob" in (clones.root / LOG).read_bytes(), (words, done)
        assert "Second, by bob" in titles(clones) or failing(clones), (words, done)
    if "Second, by bob" not in titles(clones):
        assert "--take-in REASON" in run(clones.root, "sync").err
        tripod(clones, "rebuild", "--take-in", "bob's clone is gone")
    assert titles(clones) == ["First", "Second, by bob"]
    assert b"Second, by bob" in (clones.root / LOG).read_bytes()
    assert failing(clones) == []
    decide(clones, "Third")
    assert titles(clones) == ["First", "Second, by bob", "Third"]


def test_what_was_discarded_is_named_until_a_person_accepts_it(clones: Git) -> None:
    run(clones.root, "init")
    assert titles(clones) == ["First"]
    tripod(clones, "rebuild", "--discard", "not ours")
    lost = [one for one in findings(clones) if "no entry holds" in one["message"]]
    assert any("scribe/log.md" in one["message"] for one in lost), lost
    for _ in range(2):
        tripod(clones, "rebuild")
        assert [one for one in findings(clones) if "no entry holds" in one["message"]] == lost
    for one in lost:
        assert one["acceptable"]
        tripod(clones, "accept", one["fingerprint"], "--reason", "bob said so", "--as", "cy")
    assert [one for one in findings(clones) if "no entry holds" in one["message"]] == []


@pytest.mark.parametrize("memory", ["seal", "ref"])
def test_what_a_ledger_lost_is_not_taken_for_what_others_wrote(
    tmp_path: Path, home: pytest.MonkeyPatch, memory: str
) -> None:
    """An older copy, and no ``counts.json``: the last seal tells, or this replica's own ref."""
    git = Git(tmp_path / "shop")
    git.commit("src/main.py", b"print()\n")
    tripod(git, "init", "--origin", "example.org/shop", "--key")
    tripod(git, "chat", "create", "live")
    tripod(git, "chat", "send", "live", "ann", "one")
    decide(git, "First")
    tripod(git, "seal")
    tripod(git, "backup", str(tmp_path / "old.db"))
    decide(git, "Second")
    tripod(git, "seal")
    assert git("for-each-ref", "refs/tripod") != ""
    database = Path(database_of(f"{git.root}/.nbs"))
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        database.with_name(name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "old.db", database)
    (git.root / ".nbs/counts.json").unlink()
    if memory == "ref":
        shutil.rmtree(tmp_path / "home-ann/seals")
    before = (git.root / LOG).read_bytes()
    for words in (("sync",), ("rebuild",), ("init",)):
        done = run(git.root, *words)
        assert done.code != 0, done
        where = "the ref refs/tripod/" if memory == "ref" else "the last seal of this host"
        assert where in done.err
        assert "--take-in REASON" in done.err
        assert titles(git) == ["First"]
        assert (git.root / LOG).read_bytes() == before
    tripod(git, "rebuild", "--take-in", "the disk broke")
    assert titles(git) == ["First", "Second"]
    assert (git.root / LOG).read_bytes() == before
    assert any("that was taken in: the disk broke" in one["message"] for one in findings(git))
