"""The second verifier judges the records of a team's replicas, exported as folders."""

import subprocess
import sys
from pathlib import Path

import pytest
from clones import begin, fetch, kept, merge, record, rewrite, say
from git_repo import Git

TOOL = Path(__file__).resolve().parents[4] / "tools/audit_export.py"


@pytest.fixture
def clone(tmp_path: Path) -> Git:
    """A clone with the records of Ann and Bob, who merged each other."""
    ann, ann_name, _ = begin(tmp_path / "ann", "example.com/ann")
    bob, bob_name, _ = begin(tmp_path / "bob", "example.com/bob")
    kept(ann, tmp_path / "before.db")
    say(ann, "Tea!")
    say(ann, "x" * 20_000)
    record(ann, ann_name)
    fetch(bob, ann)
    merge(bob, f"refs/tripod-remotes/ann/{ann_name}")
    record(bob, bob_name)
    fetch(ann, bob)
    merge(ann, f"refs/tripod-remotes/bob/{bob_name}")
    record(ann, ann_name)
    clone = Git(tmp_path / "clone")
    clone.commit("README", b"cafe\n")
    fetch(clone, ann, bob)
    return clone


def folders(git: Git, to: Path) -> list[str]:
    """The record of each ref as a folder, made by git alone."""
    made = []
    for ref in git("for-each-ref", "--format=%(refname)", "refs/tripod-remotes").split():
        folder = to / ref.rpartition("/")[2]
        folder.mkdir(parents=True)
        archive = to / "record.tar"
        git("archive", "--output", str(archive), ref)
        subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True)
        made.append(str(folder))
    return made


def audit(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(TOOL), *words], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_records_of_replicas_agree(clone: Git, tmp_path: Path) -> None:
    made = folders(clone, tmp_path / "records")
    assert len(made) == 2
    for words in (made, made[:1], made[1:]):
        code, said = audit(*words)
        assert (code, said.count(": 0 wrong")) == (0, len(words)), said


def test_a_replica_that_was_rewritten_contradicts_what_its_peer_keeps(
    clone: Git, tmp_path: Path
) -> None:
    ann = Git(tmp_path / "ann", made=False)
    name = next((ann.root / ".git/refs/tripod").iterdir()).name
    rewrite(ann, name, tmp_path / "before.db")
    fetch(clone, ann)
    made = folders(clone, tmp_path / "records")
    for words in ([made[0]], [made[1]]):
        assert audit(*words)[0] == 0
    code, said = audit(*made)
    assert code == 1
    assert "example.com/ann itself has it" in said
    assert "example.com/ann has another root: a fork" in said
