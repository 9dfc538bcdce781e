"""Which heads outside bind, who may leave a line of the ledger, and where a pin never goes."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from core.verify.anchors.test_in_git import commit, decide, git, home, tripod, verdict
from doors.inside import run
from git_repo import Git
from specimens import database, forge, read

from tripod.errors import RefusedError
from tripod.ledger.tlog.note import Note, SigningKey, format_base64, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.trust import proof as prove
from tripod.trust.keys import key_path, load_key
from tripod.verify import verify

__all__ = ["git", "home"]

RECORD = ".nbs/record/checkpoint"
SHOP = "example.com/shop"
THREE_LINES = f"{SHOP}\n999999\n{format_base64(b'r' * 32)}\n".encode()


def planted(git: Git, data: bytes, path: str = RECORD) -> None:
    """Commit a head, and take it back in the next commit: its bytes stay in the history."""
    before = (git.root / path).read_bytes() if (git.root / path).exists() else None
    git.commit(path, data, "plant")
    git.commit(path, before, "revert")


def heads(git: Git, *words: str) -> tuple[int, list[tuple[str, str]]]:
    code, found = verdict(git, *words)
    return code, [(severity, text) for severity, _, text in found.get("pins-extend", [])]


def key_line(git: Git) -> str:
    return tripod(git, "key", "show").out.decode().split("\n")[0]


def back_to_the_backup(git: Git, *words: str) -> None:
    """A copy, a decision that is sealed and committed, and back to the copy, files and all."""
    copy, team = str(git.root.parent / "copy.db"), git.root / ".nbs"
    tripod(git, "backup", copy)
    files = shutil.copytree(team, git.root.parent / "files")
    decide(git, "Open on Tuesday")
    commit(git, "Work")
    tripod(git, "verify", "--pin", str(git.root.parent / "pin"), "--update-pin")
    for name in ("chat", "events", "scribe"):
        shutil.rmtree(team / name)
        shutil.copytree(files / name, team / name)
    shutil.copy(files / "counts.json", team)
    tripod(git, "restore", copy, "--as-origin", f"{SHOP}-2", *words)
    tripod(git, "rebuild")
    commit(git, "Restore")


# A line that is left ----------------------------------------------------------------------------


def test_a_rollback_is_not_laundered_by_a_restore(git: Git) -> None:
    back_to_the_backup(git)
    path = git.root.parent / "pin"
    before = path.read_bytes()
    code, found = heads(git, "--pin", str(path), "--update-pin")
    assert code == 1
    left = [severity for severity, text in found if text.startswith("left behind")]
    assert len(left) == 2, "the commit and the pin"
    assert set(left) == {"failure"}
    assert path.read_bytes() == before


def test_the_old_key_may_leave_its_line_and_the_pin_stays_all_the_same(git: Git) -> None:
    back_to_the_backup(git, "--sign-fork")
    code, found = heads(git)
    assert code == 0
    assert [(severity, text[:11]) for severity, text in found] == [("warning", "left behind")]
    path = git.root.parent / "pin"
    before = path.read_bytes()
    assert before.startswith(b"example.com/shop\n")
    code, found = heads(git, "--pin", str(path), "--update-pin", "--key", key_line(git))
    assert path.read_bytes() == before
    assert code == 1


def test_a_fork_that_another_key_signed_leaves_nothing(git: Git, home: Path) -> None:
    """Whoever makes a ledger anew signs the fork with the key that they put in force there."""
    back_to_the_backup(git, "--sign-fork")
    from tripod.verify.anchors.anchors import USUAL
    from tripod.verify.anchors.heads import Fork, Ledger, compare
    from tripod.verify.check import HeadsJudged
    from tripod.verify.evidence import collect

    assert home.exists()
    with collect(f"{git.root}/.nbs", asked=USUAL) as evidence:
        known = [one for one in evidence.outside.known if one.seal.origin == SHOP]
        evidence.outside.known = (max(known, key=lambda one: one.seal.size),)
        real = load_key(key_path(SHOP), SHOP).verifier()
        other = SigningKey(SHOP, b"k" * 32).verifier()
        said: dict[str, HeadsJudged] = {}
        for name, key in (("real", real), ("other", other)):
            ledger = Ledger("x", 9, {}, [Fork(5, SHOP, 5, [key])], [key], 1)
            said[name] = compare(evidence.outside, ledger)
    texts = {name: [f.severity for f in held.findings] for name, held in said.items()}
    assert texts["real"] == ["warning"]
    assert "failure" in texts["other"]


@pytest.mark.parametrize(
    ("change", "fits"), [({"root": "no root"}, True), ({"reason": "another"}, False)]
)
def test_a_fork_that_cannot_be_read_leaves_nothing(
    git: Git, change: dict[str, str], fits: bool
) -> None:
    back_to_the_backup(git, "--sign-fork")
    root = f"{git.root}/.nbs"
    rows = read(database(root))
    (seq,) = (at for at, row in enumerate(rows) if row.head["kind"] == "ledger.forked-from")
    assert heads(git)[0] == 0
    rows[seq] = rows[seq].saying(**change)
    forge(root, rows, commitment=set() if fits else {seq})
    assert ("failure", "left behind") in [(level, text[:11]) for level, text in heads(git)[1]]


def test_a_person_accepts_by_name_from_outside_alone(git: Git) -> None:
    back_to_the_backup(git)
    git.write(".nbs/policy.yaml", f"given-up: [{SHOP}]\n".encode())
    assert heads(git)[0] == 1
    assert heads(git, "--policy", f"{git.root}/.nbs/policy.yaml")[0] == 1
    outside = git.root.parent / "ci.yaml"
    outside.write_text(f"given-up: [{SHOP}]\n", encoding="utf-8")
    code, found = heads(git, "--policy", str(outside))
    assert code == 0
    assert {text[:8] for _, text in found} == {"given up"}


def test_a_finding_about_a_demand_names_the_policy_that_was_given(git: Git) -> None:
    demanding = git.root.parent / "ci.yaml"
    demanding.write_text("level: WITNESSED\n", encoding="utf-8")
    git.write(".nbs/policy.yaml", b"level: WITNESSED\n")
    for words, file in (((), ".nbs/policy.yaml"), (("--policy", str(demanding)), str(demanding))):
        done = tripod(git, "verify", "--json", *words, code=1)
        checks = {check["check"]: check for check in json.loads(done.out)["checks"]}
        places = {finding["file"] for finding in checks["pins-extend"]["findings"]}
        assert places == {file}


def test_a_finding_about_a_seal_in_git_prints_its_path_once(git: Git) -> None:
    back_to_the_backup(git)
    printed = tripod(git, "verify", code=1).out.decode()
    lines = [line for line in printed.split("\n") if ": pins-extend: left behind" in line]
    assert lines
    assert [line.partition(": pins-extend")[0].count(RECORD) for line in lines] == [1] * len(lines)


def test_a_fork_is_signed_only_by_a_key_that_is_here(git: Git, home: Path) -> None:
    copy = str(git.root.parent / "copy.db")
    tripod(git, "backup", copy)
    os.rename(key_path(SHOP), f"{home}/elsewhere")
    before = read(f"{git.root}/.nbs/ledger.db")
    done = tripod(git, "restore", copy, "--as-origin", f"{SHOP}-2", "--sign-fork", code=1)
    assert "is not there" in done.err
    assert read(f"{git.root}/.nbs/ledger.db") == before


# Heads in git that nobody vouches for -----------------------------------------------------------


def test_three_unsigned_lines_in_the_records_place_are_a_remark(git: Git) -> None:
    planted(git, THREE_LINES)
    planted(git, b"example.com/other\n5\n" + THREE_LINES.split(b"\n")[2] + b"\n")
    code, found = heads(git)
    assert code == 0
    assert [(severity, text[:12]) for severity, text in found] == [("warning", "not believed")] * 2


def test_with_a_key_from_outside_no_other_head_in_git_binds(git: Git, tmp_path: Path) -> None:
    seal = Seal(SHOP, 999999, b"r" * 32)
    stranger = SigningKey(SHOP, b"k" * 32)
    real = load_key(key_path(SHOP), SHOP)
    good = sign_seal(seal, real)
    bad = good._replace(data=good.data[:-1] + bytes([good.data[-1] ^ 1]))
    for signature in (sign_seal(seal, stranger), bad):
        planted(git, format_note(Note(format_seal(seal), (signature,))))
    git.write(".nbs/policy.yaml", b"seals: [SEAL]\n")
    planted(git, THREE_LINES, "SEAL")
    policy = tmp_path / "ci.tlog"
    policy.write_text(f"log {key_line(git)}\nquorum none\n", encoding="utf-8")
    for words in (("--key", key_line(git)), ("--policy", str(policy))):
        code, found = heads(git, *words)
        assert (code, {severity for severity, _ in found}) == (0, {"warning"}), found
        assert len(found) == 3
    # What the ledger says of its own key decides nothing: one made anew says what it likes.
    assert heads(git)[0] == 1
    (git.root / ".nbs/policy.tlog").write_bytes(policy.read_bytes())
    assert heads(git)[0] == 1
    # And a head that the key did sign binds, whatever else was committed.
    planted(git, format_note(Note(format_seal(seal), (good,))))
    code, found = heads(git, "--key", key_line(git))
    assert (code, found[0][1][:8]) == (1, "rollback")


def test_a_rotated_key_must_be_given_as_well(git: Git) -> None:
    old = key_line(git)
    tripod(git, "key", "rotate")
    commit(git, "Rotate")
    assert heads(git) == (0, [])
    code, found = heads(git, "--key", old)
    assert code == 1
    assert any("the key in force is" in text for _, text in found)


def test_the_key_that_is_given_must_be_the_ledger_s_own(git: Git, tmp_path: Path) -> None:
    """It was passed over unless a head outside had its name: a ledger of another key was clean."""
    real, other = key_line(git), SigningKey("example.com/other", b"k" * 32).verifier().format()
    copy = str(tmp_path / "copy.db")
    tripod(git, "backup", copy)
    for words in ((), (copy,)):
        assert heads(git, *words, "--key", real, "--key", other) == (0, [])
        code, found = heads(git, *words, "--key", other)
        assert code == 1
        assert [text for _, text in found] == [
            f"unsealed: no key was given of this ledger, whose name is {SHOP}"
        ]


def test_a_ledger_that_nothing_sealed_is_not_clean_by_a_key(tmp_path: Path) -> None:
    key = SigningKey(SHOP, b"k" * 32).verifier().format()
    assert run(tmp_path, "init", "--origin", SHOP, "--no-key").code == 0
    report = verify(tmp_path, keys=[key])
    assert report.exit_code == 1
    (found,) = [one for each in report.outcomes for one in each.findings]
    assert found.message == "unsealed: a key was given, and this ledger holds no seal"


# Pins -------------------------------------------------------------------------------------------


def seal_text(size: int, origin: str = SHOP) -> bytes:
    return format_seal(Seal(origin, size, bytes([size]) * 32)).encode()


def yes(_seal: Seal) -> bool:
    return True


def test_a_pin_never_shrinks_and_never_changes_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "pin"
    assert prove.write_proved_pin(str(path), seal_text(5), yes)
    assert not prove.write_proved_pin(str(path), seal_text(5), yes)
    assert not prove.write_proved_pin(str(path), seal_text(4), yes)
    assert path.read_bytes() == seal_text(5)
    with pytest.raises(RefusedError, match="never moves to another ledger"):
        prove.write_proved_pin(str(path), seal_text(9, "example.com/other"), yes)
    with pytest.raises(RefusedError, match="another history"):
        prove.write_proved_pin(str(path), seal_text(9), lambda _seal: False)
    other = format_seal(Seal(SHOP, 5, b"o" * 32)).encode()  # as long, and another history
    with pytest.raises(RefusedError, match="another history"):
        prove.write_proved_pin(str(path), other, lambda _seal: False)
    assert path.read_bytes() == seal_text(5)
    assert os.listdir(tmp_path) == ["pin"]


def test_a_pin_leaves_the_files_beside_it_alone(tmp_path: Path) -> None:
    (tmp_path / "pin.tmp").write_text("of the user")
    assert prove.write_proved_pin(str(tmp_path / "pin"), seal_text(5), yes)
    assert prove.write_proved_pin(str(tmp_path / "pin"), seal_text(6), yes)
    assert (tmp_path / "pin.tmp").read_text() == "of the user"
    assert sorted(os.listdir(tmp_path)) == ["pin", "pin.tmp"]


def test_of_many_runs_at_once_the_largest_pin_stays(tmp_path: Path) -> None:
    path = tmp_path / "pin"
    runs = [
        threading.Thread(target=prove.write_proved_pin, args=(str(path), seal_text(size), yes))
        for size in (*range(1, 30), *range(60, 30, -1))
    ]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert path.read_bytes() == seal_text(60)
    assert os.listdir(tmp_path) == ["pin"]


def test_a_pin_behind_a_link_is_written_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "pin").symlink_to("kept/pin")
    assert prove.write_proved_pin(str(tmp_path / "pin"), seal_text(5), yes)
    assert (tmp_path / "pin").is_symlink()
    assert (tmp_path / "kept/pin").read_bytes() == seal_text(5)
