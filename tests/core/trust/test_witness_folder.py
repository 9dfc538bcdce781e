"""A witness in its folder: what it remembers, what it refuses to work with."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sealed import LOG, OTHER_LOG, WITNESSES, seal_of
from witnessing import FORKED, LEAVES, NAME, asked, begun, note_of

from tripod.errors import BadArgumentError, NotFoundError, RefusedError, TripodError
from tripod.ledger.tlog.note import (
    SigningKey,
    format_note,
    note_cosignature_time,
    parse_note,
    verify,
)
from tripod.trust.witness import WitnessFolder, log_folder

LATEST = f"logs/{log_folder(LOG.name)}/checkpoint"


def test_grow_refuse_a_fork_refuse_a_rollback(tmp_path: Path) -> None:
    witness = begun(tmp_path / "w")
    statuses = [
        witness.answer(asked(old, leaves)).status
        for old, leaves in (
            (0, LEAVES[:7]),
            (7, LEAVES[:9]),
            (9, FORKED[:20]),
            (9, FORKED[:9]),
            (7, LEAVES[:7]),
            (0, LEAVES[:20]),
            (9, LEAVES[:20]),
        )
    ]
    assert statuses == [200, 200, 422, 422, 409, 409, 200]
    ((log, seal, _),) = witness.seen()
    assert (log, seal) == (LOG.verifier(), seal_of(LEAVES[:20]))


def test_what_monitors_read_is_what_was_answered(tmp_path: Path) -> None:
    witness = begun(tmp_path)
    assert not (tmp_path / LATEST).exists()
    body = witness.answer(asked(0, LEAVES)).body
    latest = (tmp_path / LATEST).read_bytes()
    assert latest == format_note(note_of(LEAVES)) + body
    verify(parse_note(latest), [witness.key().verifier()])


def test_nothing_of_strangers_is_written(tmp_path: Path) -> None:
    witness = WitnessFolder.begin(str(tmp_path), NAME)
    before = sorted(tmp_path.rglob("*"))
    assert witness.answer(asked(0, LEAVES)).status == 404
    assert witness.answer(b"nonsense").status == 400
    assert sorted(tmp_path.rglob("*")) == before


def test_requests_at_one_moment_make_one_line_of_growth(tmp_path: Path) -> None:
    witness = begun(tmp_path)
    witness.answer(asked(0, LEAVES[:5]))
    requests = [asked(5, history[:size]) for size in range(6, 30) for history in (LEAVES, FORKED)]
    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(answer.status for answer in pool.map(witness.answer, requests))
    assert statuses == [200] + [409] * (len(requests) - 1)


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    witness = WitnessFolder.begin(str(tmp_path / "w"), NAME)
    file = tmp_path / "w/key"
    assert (file.stat().st_mode & 0o777, (tmp_path / "w").stat().st_mode & 0o777) == (0o600, 0o700)
    assert SigningKey.parse(file.read_text().strip()).verifier() == witness.key().verifier()
    with pytest.raises(RefusedError, match="another folder"):
        WitnessFolder.begin(str(tmp_path / "w"), NAME)
    with pytest.raises(BadArgumentError, match=r"example\.org/witness"):
        WitnessFolder.begin(str(tmp_path / "v"), "two words")
    assert not (tmp_path / "v").exists()
    file.chmod(0o640)
    with pytest.raises(RefusedError, match="chmod 600"):
        witness.key()


@pytest.mark.parametrize("text", ["", "junk", LOG.format(), "\udcff"])
def test_a_key_that_is_none(tmp_path: Path, text: str) -> None:
    witness = begun(tmp_path)
    (tmp_path / "key").write_text(text, errors="surrogateescape")
    with pytest.raises(RefusedError, match="backup"):
        witness.answer(asked(0, LEAVES))


def test_a_folder_without_a_witness(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="tripod witness new"):
        WitnessFolder(str(tmp_path)).answer(b"")
    with pytest.raises(NotFoundError):
        WitnessFolder(str(tmp_path)).trust(LOG.verifier().format())
    assert list(tmp_path.iterdir()) == []


def test_which_logs_it_knows(tmp_path: Path) -> None:
    witness = begun(tmp_path)
    newer = SigningKey(LOG.name, bytes(range(160, 192)))
    witness.trust(newer.verifier().format())
    witness.trust(OTHER_LOG.verifier().format())
    keys = (LOG.verifier(), newer.verifier(), OTHER_LOG.verifier())
    assert witness.logs() == keys
    assert [(log, seal) for log, seal, _ in witness.seen()] == [(key, None) for key in keys]
    for vkey in (LOG.verifier().format(), WITNESSES[0].verifier().format(), "junk", "a\nlog b"):
        with pytest.raises(BadArgumentError, match="nothing was changed"):
            witness.trust(vkey)
    assert witness.logs() == keys
    # By hand, and without a last newline.
    (tmp_path / "policy.tlog").write_text("quorum none")
    witness.trust(LOG.verifier().format())
    assert witness.logs() == keys[:1]
    (tmp_path / "policy.tlog").write_text("nonsense\n")
    with pytest.raises(RefusedError, match="line 1"):
        witness.answer(asked(0, LEAVES))


@pytest.mark.parametrize("damage", ["empty", "cut", "unsigned", "size", "other log"])
def test_damaged_memory_signs_nothing(tmp_path: Path, damage: str) -> None:
    witness = begun(tmp_path / "w")
    witness.answer(asked(0, LEAVES[:7]))
    file = tmp_path / "w" / LATEST
    data = file.read_bytes()
    other = begun(tmp_path / "other")
    other.answer(asked(0, LEAVES[:3]))
    file.write_bytes(
        {
            "empty": b"",
            "cut": data[:-5],
            "unsigned": format_note(note_of(LEAVES[:7])),
            "size": data.replace(b"\n7\n", b"\n6\n"),
            "other log": (tmp_path / "other" / LATEST).read_bytes(),
        }[damage]
    )
    for old in (0, 3, 6, 7):
        with pytest.raises(RefusedError, match="signs nothing"):
            witness.answer(asked(old, LEAVES[:9]))
    with pytest.raises(TripodError):
        witness.seen()


def test_a_disk_that_refuses_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = begun(tmp_path)
    witness.answer(asked(0, LEAVES[:3]))

    def refuse(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    for name in ("fsync", "rename"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            with pytest.raises(OSError, match="space"):
                witness.answer(asked(3, LEAVES[:4]))
        assert witness.seen()[0][1] == seal_of(LEAVES[:3])
    assert witness.answer(asked(3, LEAVES[:4])).status == 200


def test_the_disk_has_it_before_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = begun(tmp_path)
    witness.answer(asked(0, LEAVES[:3]))
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def synced(fd: int) -> None:
        fsync(fd)
        steps.append("folder" if os.path.isdir(f"/dev/fd/{fd}") else "file")

    def renamed(old: str, new: str) -> None:
        rename(old, new)
        steps.append("name")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    witness.answer(asked(3, LEAVES[:4]))
    assert steps == ["file", "name", "folder"]


def test_a_clock_that_was_set_back_is_not_signed(tmp_path: Path) -> None:
    begun(tmp_path).answer(asked(0, LEAVES[:3]))
    late = WitnessFolder(str(tmp_path), lambda: 5.0)
    late.answer(asked(3, LEAVES[:4]))
    latest = (tmp_path / LATEST).read_bytes()
    assert note_cosignature_time(parse_note(latest).signatures[-1]) > 5
