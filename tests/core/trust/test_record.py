"""The record: kept up, judged beside its ledger and in a clone, and read back into a ledger."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plain_export import files_of, key_of, read_files, rows_of, write_files
from sealed import format_policy
from specimens import build, database

from tripod.chat import writer as chat_send
from tripod.errors import RefusedError
from tripod.ledger.locator import has_record
from tripod.ledger.tlog.policy import Policy, TrustedLog
from tripod.recovery import backup as copies
from tripod.recovery import redaction
from tripod.recovery.rebuild import rebuild
from tripod.recovery.record import restore_from_record as restore
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.export import update_record
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.check import Report
from tripod.verify.run import open_run, run, verify

KEYS = [key_of("sample.example/1").verifier()]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = build(str(tmp_path_factory.mktemp("sample")))
    with Team(root) as team:
        update_record(root, team.store.path, files_of(database(root))["checkpoint"].decode())
    return root


@pytest.fixture
def root(tmp_path: Path, sound: str) -> str:
    return str(shutil.copytree(sound, tmp_path / ".nbs", copy_function=shutil.copy2))


def judge(root: str, *, key: bool = True) -> Report:
    with open_run(root, keys=KEYS if key else []) as evidence:
        return run(evidence)


def told(report: Report) -> list[str]:
    return [f"{f.where}: {f.message}" for o in report.outcomes for f in o.findings]


def clone(root: str) -> str:
    """What git would give: no database, no locks, and modes of its own."""
    for name in os.listdir(root):
        if name.startswith("ledger.db"):
            os.unlink(f"{root}/{name}")
    for folder, _, names in os.walk(root):
        for name in names:
            os.chmod(f"{folder}/{name}", 0o644)
    return root


def test_the_record_is_an_export_with_bodies(root: str) -> None:
    assert read_files(f"{root}/record") == files_of(database(root))
    assert judge(root).exit_code == 0
    assert judge(root, key=False).untold == ("record-agrees",)


def test_an_export_is_not_judged_without_the_pin_that_was_given(root: str, tmp_path: Path) -> None:
    export = shutil.copytree(f"{root}/record", tmp_path / "export")
    keys = [key.format() for key in KEYS]
    assert verify(export, keys=keys, git=False).exit_code == 0
    report = verify(export, keys=keys, git=False, pin=tmp_path / "gone.pin")
    assert (report.exit_code, report.problem.partition(":")[0]) == (
        3,
        f"no pin at {tmp_path}/gone.pin",
    )


def test_a_clone_is_judged_by_its_record(root: str) -> None:
    report = judge(clone(root))
    assert (report.exit_code, told(report)) == (0, [])
    path = f"{root}/scribe/log.md"
    text = Path(path).read_text()
    Path(path).write_text(text.replace("Agreed in the chat.", "Nobody asked us.", 1))
    assert "scribe/log.md" in " ".join(told(judge(root)))


def test_the_seal_of_a_record_is_the_one_that_a_policy_asks_for(root: str, tmp_path: Path) -> None:
    """The ledger of a clone ends where its seal does, before the entry that would tell of it."""
    policy = Policy((TrustedLog(KEYS[0]),), (), (), None)
    (tmp_path / "ci.tlog").write_bytes(format_policy(policy))
    asked = AnchorOptions(policies=(str(tmp_path / "ci.tlog"),), git=False)
    found = []
    for path in (root, clone(str(shutil.copytree(root, tmp_path / "clone/.nbs")))):
        with open_run(path, keys=KEYS, asked=asked) as evidence:
            found.append(told(run(evidence)))
    says = "ledger: unsealed: the policy names the key of this ledger, which holds no seal"
    assert found == [[says], []]


def test_what_came_after_the_seal_is_judged_by_the_files(root: str) -> None:
    with Team(root) as team:
        chat_send.send(team, "live", "alex", "One more thing.")
    report = judge(clone(root))
    assert report.exit_code == 0
    assert all("counts.json: the files are ahead of the ledger" in text for text in told(report))
    assert "counts.json counts entry" in str(restore(root, KEYS)[2])
    with Team(root) as team:
        with pytest.raises(RefusedError, match="message of alex at"):
            rebuild(team)
        rebuild(team, discard="it was said before the seal")
    report = judge(root)
    assert report.exit_code == 1
    found = [f for o in report.outcomes for f in o.findings if f.severity == "failure"]
    assert {f.check for f in found} == {"drift"}
    assert all("no entry holds them" in f.message for f in found)


def test_a_ledger_comes_back_byte_for_byte(root: str) -> None:
    before = rows_of(database(root))
    clone(root)
    assert has_record(root)
    assert restore(root, KEYS)[::2] == (len(before), None)
    assert rows_of(database(root)) == before
    with Team(root) as team:
        assert team.store.head().size == len(before)
    report = judge(root)
    assert (report.exit_code, told(report)) == (0, [])
    assert not [name for name in os.listdir(root) if "restoring" in name]


def test_no_ledger_comes_back_from_a_false_record(root: str) -> None:
    clone(root)
    files = read_files(f"{root}/record")
    path = next(path for path in files if path.startswith("bodies/"))
    write_files(f"{root}/record", {path: files[path].replace(b"Good.", b"Bad..")})
    with pytest.raises(RefusedError, match=r"does not verify \(entry .*: the body is not the one"):
        restore(root, KEYS)
    assert not os.path.exists(database(root))
    assert judge(root).exit_code == 1
    shutil.rmtree(f"{root}/record/bodies")
    shutil.rmtree(f"{root}/record/blobs")
    with pytest.raises(RefusedError, match="headers alone"):
        restore(root, KEYS)
    assert "chat-refs-resolve" in judge(root).untold


def test_a_record_that_is_another_history_is_found(root: str) -> None:
    with Team(root) as team:
        chat_send.send(team, "live", "alex", "One more thing.")
        size = team.store.head().size
        update_record(root, team.store.path, files_of(database(root))["checkpoint"].decode())
    assert judge(root).exit_code == 0
    newer = read_files(f"{root}/record")
    write_files(f"{root}/record", {"checkpoint": files_of(database(root), 9)["checkpoint"]})
    assert any("is missing" in text for text in told(judge(root)))
    shutil.rmtree(f"{root}/record")
    write_files(f"{root}/record", newer | {"README": b"hello"})
    report = judge(root)
    assert report.exit_code == 0
    assert told(report)[0].startswith("record/README: it belongs to no entry")
    assert size == len(rows_of(database(root)))


def test_a_record_whose_bodies_were_taken_away_is_found(
    root: str, capfd: pytest.CaptureFixture[str]
) -> None:
    audit(root)
    assert "headers alone" not in capfd.readouterr().out
    shutil.rmtree(f"{root}/record/bodies")
    shutil.rmtree(f"{root}/record/blobs")
    assert told(judge(root)) == [
        "record: its bodies were taken away: no ledger can be restored from it"
    ]
    audit(root)
    assert "bodies and signatures were not judged" in capfd.readouterr().out


def test_a_linked_record_is_none(tmp_path: Path, root: str) -> None:
    os.rename(f"{root}/record", tmp_path / "away")
    os.symlink(tmp_path / "away", f"{root}/record")
    assert "is no folder" in " ".join(told(judge(root)))
    assert not has_record(root)
    with Team(root) as team, pytest.raises(RefusedError, match="symbolic link"):
        update_record(root, team.store.path, files_of(database(root))["checkpoint"].decode())


# Kept up by seals -------------------------------------------------------------------------------


def audit(root: str) -> int:
    tool = Path(__file__).parents[3] / "tools" / "audit_export.py"
    return subprocess.run([sys.executable, tool, f"{root}/record"], check=False).returncode


@pytest.fixture
def sealed(tmp_path: Path) -> str:
    root = build(str(tmp_path))
    with Team(root) as team:
        sealing.new_sealing_key(team)
    return root


def sound_for_all(root: str) -> None:
    assert told(judge(root, key=False)) == []
    with open_run(f"{root}/record") as evidence:
        assert told(run(evidence)) == []
    assert audit(root) == 0


def test_each_seal_brings_the_record_to_it(sealed: str) -> None:
    sound_for_all(sealed)
    with Team(sealed) as team:
        chat_send.send(team, "live", "alex", "One more thing.")
        note = sealing.seal(team, "asked")
    assert note is not None
    assert Path(f"{sealed}/record/checkpoint").read_text() == note
    sound_for_all(sealed)


def test_a_record_that_cannot_be_written_does_not_undo_the_seal(sealed: str) -> None:
    shutil.rmtree(f"{sealed}/record")
    Path(f"{sealed}/record").write_text("in the way")
    with Team(sealed) as team:
        chat_send.send(team, "live", "alex", "One more thing.")
        assert sealing.seal(team, "asked") is not None
        assert len(team.warnings) == 1
        assert "is not up to date" in team.warnings[0]
        os.unlink(f"{sealed}/record")
        sealing.seal(team, "asked")  # nothing new to seal: the record is made whole
        assert len(team.warnings) == 1
    sound_for_all(sealed)


def test_what_is_redacted_is_gone_from_the_record_and_said_there(sealed: str) -> None:
    with Team(sealed) as team:
        sealing.seal(team, "asked")
        said = next(e for e in team.store.read() if e.kind == "chat.sent")
        redaction.redact(team, redaction.RedactionRequest((said.seq,), None, "r", "alex"))
    lines = b"".join(p.read_bytes() for p in Path(f"{sealed}/record/bodies").rglob("*.jsonl"))
    assert b'\n{"seq":%d}\n' % said.seq in lines
    sound_for_all(sealed)
    before = rows_of(database(sealed))[:-1]  # the seal's own entry is behind it
    restore(clone(sealed))
    assert rows_of(database(sealed)) == before


def test_an_erased_body_that_no_entry_tells_of_is_found_by_both(sealed: str) -> None:
    path = next(Path(f"{sealed}/record/bodies").rglob("*.jsonl"))
    lines = path.read_bytes().split(b"\n")
    lines[7] = b'{"seq":7}'
    path.write_bytes(b"\n".join(lines))
    with open_run(f"{sealed}/record") as evidence:
        assert any("no entry says that they were erased" in text for text in told(run(evidence)))
    assert audit(sealed) == 1


def test_a_ledger_under_another_name_goes_on_in_its_record(sealed: str) -> None:
    with Team(sealed) as team:
        copies.backup(team, f"{sealed}.copy")
    copies.restore(sealed, f"{sealed}.copy", "sample.example/2")
    assert Path(f"{sealed}/record/checkpoint").read_text().startswith("sample.example/2\n")
    sound_for_all(sealed)
