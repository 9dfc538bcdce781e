"""Pins of replicas in a folder, as CI keeps them: what was seen once can be taken back no more."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from git_repo import Git
from replicas import Clone, joined_replica, name_of, pushed_replica

from tripod.verify.peers.refs import OWN


class Witness:
    """A clone without a ledger, as CI has it anew for each run, and the folder that outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.pins, self.runs = folder, folder / "pins", 0

    def run(self, *words: str, command: str = "verify") -> tuple[int, str]:
        """Clone, fetch the records, and judge: the exit code, and what was printed."""
        self.runs += 1
        clone = Clone(self.folder, f"ci-{self.runs}")
        clone.fetch()
        done = clone.run(command, "--pin", f"{self.pins}/", *words)
        return done.code, done.err + done.out.decode()

    def sizes(self) -> dict[str, int]:
        """How many entries each pin remembers."""
        return {one.name: int(one.read_text().split("\n")[1]) for one in self.pins.iterdir()}


@pytest.fixture
def ann(tmp_path: Path) -> Clone:
    return pushed_replica(tmp_path, "ann")


@pytest.fixture
def ci(tmp_path: Path, ann: Clone) -> Witness:
    """A witness that saw Ann's record once."""
    ci = Witness(tmp_path)
    code, said = ci.run("--update-pin")
    assert (code, "remember the record, 1 for the first time" in said) == (0, True), said
    assert set(ci.sizes()) == {name_of(ann)}
    return ci


def test_the_pins_follow_records_that_grow_and_replicas_that_come(
    tmp_path: Path, ann: Clone, ci: Witness
) -> None:
    before = ci.sizes()
    ann.decides("Keep it")
    ann.push()
    ben = joined_replica(tmp_path, "ben")
    ben.push()
    code, said = ci.run()  # as for a pull request: nothing is written
    assert code == 0, said
    assert f"no pin remembers {name_of(ben)} yet" in said
    assert ci.sizes() == before
    assert ci.run("--update-pin")[0] == 0
    after = ci.sizes()
    assert set(after) == {name_of(ann), name_of(ben)}
    assert after[name_of(ann)] > before[name_of(ann)]
    # Runs that overtake each other: what an older one saw takes nothing back.
    code, said = ci.run("--update-pin")
    assert (code, ci.sizes()) == (0, after), said
    assert "the records of 2 replicas\n" in said


@pytest.mark.parametrize("other", [True, False], ids=["another replica stays", "alone"])
def test_a_record_that_is_deleted_is_missed(
    tmp_path: Path, ann: Clone, ci: Witness, *, other: bool
) -> None:
    if other:
        joined_replica(tmp_path, "ben").push()
    Git(ann.remote, made=False)("update-ref", "-d", f"{OWN}{name_of(ann)}")
    for words in ((), ("--update-pin",), ("--new-only",)):
        before = ci.sizes()
        code, said = ci.run(*words)
        assert code == 1, said
        assert "ledger-missing: no ref holds this record" in said
        assert f"remembers {before[name_of(ann)]} entries of " in said
        assert ci.sizes() == before


def test_a_record_that_is_cut_off_or_rewritten_is_found(
    tmp_path: Path, ann: Clone, ci: Witness
) -> None:
    early = tmp_path / "early"
    places = {ann.database.parent: early / "tripod", ann.home: early / "home",
              ann.root: early / "nbs"}  # fmt: skip
    for now, then in places.items():
        shutil.copytree(now, then)
    ann.decides("Pay the invoice")
    ann.push()
    assert ci.run("--update-pin")[0] == 0
    for now, then in places.items():  # Ann has her key, and makes her history anew
        shutil.rmtree(now)
        shutil.copytree(then, now)
    ann.git("update-ref", "-d", f"{OWN}{name_of(ann)}")
    ann.push()
    seen = ci.sizes()
    code, said = ci.run("--update-pin")
    assert code == 1, said
    assert "pins-extend" in said
    for title in ("Do not pay", "Never pay", "Pay later"):
        ann.decides(title)
    ann.push()
    code, said = ci.run("--update-pin")
    assert code == 1, said
    assert "pins-extend" in said
    assert ci.sizes() == seen
    assert "were left as they are" in said


def test_a_pin_of_another_replica_under_a_replica_s_name_is_no_pin(
    tmp_path: Path, ann: Clone, ci: Witness
) -> None:
    ben = joined_replica(tmp_path, "ben")
    ben.push()
    assert ci.run("--update-pin")[0] == 0
    (ci.pins / name_of(ben)).write_bytes((ci.pins / name_of(ann)).read_bytes())
    code, said = ci.run("--update-pin")
    assert code == 1, said
    assert "pins-extend" in said


def test_what_the_folder_must_not_be(ann: Clone, ci: Witness) -> None:
    (ci.pins / "notes.txt").write_text("x")
    code, said = ci.run("--update-pin")
    assert (code, "'notes.txt', which is no name of a replica" in said) == (3, True), said
    (ci.pins / "notes.txt").unlink()
    (ci.pins / name_of(ann)).write_text("not a head\n")
    code, said = ci.run("--update-pin")
    assert (code, "neither a seal nor a head" in said) == (3, True), said
    (ci.pins / name_of(ann)).unlink()
    for _ in ("an empty folder", "no folder"):
        code, said = ci.run()
        assert (code, "--update-pin makes the first ones" in said) == (3, True), said
        shutil.rmtree(ci.pins, ignore_errors=True)


def test_a_pin_that_cannot_be_made_is_no_success(tmp_path: Path, ann: Clone) -> None:
    """A job that wrote no pin, and said so in passing, was green for ever and compared nothing."""
    assert ann.name
    clone = Clone(tmp_path, "ci")
    clone.fetch()
    pin = tmp_path / "team.pin"
    done = clone.run("verify", "--pin", str(pin), "--update-pin", "--json")
    assert (done.code, pin.exists()) == (1, False)
    assert json.loads(done.out)["exit_code"] == 1
    assert "no pin was made at " in done.err


def test_a_folder_of_pins_is_for_records_on_refs(tmp_path: Path, ann: Clone, ci: Witness) -> None:
    code, said = ci.run("--select", "pins-extend", "--update-pin")
    assert code == 2, said
    done = ann.run("verify", "--pin", f"{ci.pins}/")  # Ann has her ledger itself
    assert (done.code, b"is a folder, of a pin for each replica" in done.out) == (3, True), done
    bare = Clone(tmp_path, "bare")  # and here nothing was fetched
    done = bare.run("verify", "--pin", f"{tmp_path}/none/", "--update-pin")
    assert done.code == 3, done
    assert not (tmp_path / "none").exists()
    done = bare.run("verify", "--pin", f"{ci.pins}/")
    assert (done.code, b"ledger-missing" in done.out) == (1, True), done


@pytest.mark.parametrize("other", [True, False], ids=["another replica stays", "alone"])
def test_an_audit_tells_of_a_record_that_is_deleted(
    tmp_path: Path, ann: Clone, ci: Witness, *, other: bool
) -> None:
    if other:
        joined_replica(tmp_path, "ben").push()
    size = ci.sizes()[name_of(ann)]
    Git(ann.remote, made=False)("update-ref", "-d", f"{OWN}{name_of(ann)}")
    bundle = tmp_path / "bundle"
    code, said = ci.run("--bundle", str(bundle), command="audit")
    assert code == 1, said
    assert f"{OWN}{name_of(ann)}: the ledger is gone: no ref holds this record" in said
    assert f"entries 0 to {size - 1}: missing" in said
    done = subprocess.run(
        [sys.executable, "-I", "-S", bundle / "verify.py"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert "the audit says: the ledger is gone: no ref holds this record" in done.stdout
    assert done.stdout.count("the audit says: ") == 1 + other


def test_an_audit_says_why_the_pins_of_replicas_cannot_be_read(ann: Clone, ci: Witness) -> None:
    (ci.pins / "notes.txt").write_text("x")
    code, said = ci.run(command="audit")
    assert (code, "'notes.txt', which is no name of a replica" in said) == (3, True), said
