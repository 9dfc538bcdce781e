"""Seals: made when they are due, never back or aside, and again after a crash between."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from sealed import list_nodes
from specimens import SAID

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import RefusedError, UnwritableError
from tripod.ledger.entry import entry_leaf_hash
from tripod.ledger.kinds.models import model_of
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.merkle import root_of
from tripod.ledger.tlog.note import SigningKey, VerifierKey, parse_note
from tripod.ledger.tlog.seal import Seal, format_seal, open_seal, parse_seal
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import keys, schedule
from tripod.trust import seal as sealing
from tripod.verify.evidence import collect
from tripod.verify.run import run

PLAIN = decisions_log.DecisionRequest("Title", ("ann",), "why")
REQUEST = decisions_log.DecisionRequest("Title", ("ann",), "why", refs=("live.chat:~L7",))


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A team with a key, sealed as it is."""
    adoption.init(str(tmp_path), project="p", origin="sample.example/1")
    with Team(str(tmp_path / ".nbs")) as team:
        chat_send.create(team, "live", actor="ann")
        chat_send.send(team, "live", *SAID[0])
        sealing.new_sealing_key(team)
        yield team


def seals(team: Team) -> list[tuple[int, int, str]]:
    """(seq, size, reason) of every seal."""
    return [
        (entry.seq, entry.data["size"], entry.data["reason"])
        for entry in team.store.read()
        if entry.kind == "seal.made"
    ]


def clean(team: Team) -> None:
    """Verify the ledger, and each seal by hand."""
    with collect(team.root) as evidence:
        report = run(evidence)
    assert [f.message for o in report.outcomes for f in o.findings] == []
    entries = list(team.store.read())
    leaves = [entry_leaf_hash(entry.header) for entry in entries]
    key = None
    for entry in entries:
        if entry.kind == "key.set":
            key = VerifierKey.parse(entry.data["vkey"])
        if entry.kind == "seal.made":
            assert key is not None
            opened = open_seal(parse_note(entry.data["note"].encode()), [key])
            root = root_of(list_nodes(leaves), 0, entry.data["size"])
            assert opened.seal == Seal("sample.example/1", entry.data["size"], root)
            assert entry.data["size"] == entry.seq


# When ------------------------------------------------------------------------------------------


def test_a_new_key_seals_what_is_there(team: Team) -> None:
    assert [entry.kind for entry in team.store.read()][-2:] == ["key.set", "seal.made"]
    assert seals(team) == [(6, 6, "asked")]
    clean(team)
    with pytest.raises(RefusedError, match="a key is in force"):
        sealing.new_sealing_key(team)


def test_a_decision_and_a_checkpoint_are_sealed_and_a_message_is_not(team: Team) -> None:
    chat_send.send(team, "live", *SAID[1])
    bus.publish(team, "ann", "task-complete", "low", "x")
    assert len(seals(team)) == 1
    Path(f"{team.root}/events/config.yaml").write_text("pythia-interval: 2\n")
    decisions_log.log(team, REQUEST)
    assert [reason for *_, reason in seals(team)] == ["asked", "decision"]
    decisions_log.log(team, REQUEST)
    assert [reason for *_, reason in seals(team)] == ["asked", "decision", "checkpoint"]
    clean(team)


def test_many_entries_are_sealed_with_the_next_act(team: Team) -> None:
    for number in range(schedule.EVERY - 2):
        bus.publish(team, "ann", "task-complete", "low", f"{number}")
    assert len(seals(team)) == 1
    bus.publish(team, "ann", "task-complete", "low", "one more")
    assert seals(team)[1:] == [(6 + schedule.EVERY, 6 + schedule.EVERY, "policy")]
    clean(team)


def test_an_old_seal_is_followed_with_the_next_act_if_anything_is_new(team: Team) -> None:
    now = time.time_ns()
    with mock.patch.object(time, "time_ns", return_value=now + schedule.LATEST_S * 10**9 - 10**9):
        chat_send.send(team, "live", "ann", "soon")
    assert len(seals(team)) == 1
    with mock.patch.object(time, "time_ns", return_value=now + (schedule.LATEST_S + 9) * 10**9):
        with team.act():
            pass  # also one that appends nothing: something was new before
        assert [reason for *_, reason in seals(team)] == ["asked", "policy"]
        with team.act():
            pass
    with (
        mock.patch.object(time, "time_ns", return_value=now + 3 * schedule.LATEST_S * 10**9),
        team.act(),
    ):
        pass
    assert len(seals(team)) == 2


def test_asked_again_the_newest_seal_is_given_until_something_is_new(team: Team) -> None:
    first = sealing.seal(team, "asked")
    assert first == seal_of(team)
    assert sealing.seal_now(team, keys.no_passphrase) == first
    assert len(seals(team)) == 1
    chat_send.send(team, "live", "ann", "new")
    assert sealing.seal(team, "export") != first
    assert seals(team)[-1][2] == "export"
    clean(team)


def seal_of(team: Team) -> str | None:
    made = sealing.newest(team.store.db)
    return None if made is None else made.note


def test_the_reasons_are_those_of_the_model(team: Team) -> None:
    for entry in team.store.read():
        if entry.kind in ("seal.made", "key.set"):
            model_of(BY_NAME[entry.kind]).model_validate(entry.data)


# Without a key ---------------------------------------------------------------------------------


def test_without_a_key_nothing_is_sealed_and_nothing_is_said(tmp_path: Path) -> None:
    adoption.init(str(tmp_path), project="p")
    with Team(str(tmp_path / ".nbs")) as team:
        decisions_log.log(team, PLAIN)
        assert team.warnings == []
        assert seals(team) == []
        assert sealing.seal(team, "asked") is None
        with pytest.raises(RefusedError, match="this ledger has no key: `tripod key new`"):
            sealing.seal_now(team, keys.no_passphrase)
        with pytest.raises(RefusedError, match="no key is in force"):
            sealing.rotate_sealing_key(team, keys.no_passphrase, None)


def test_where_the_private_key_is_elsewhere_acts_go_on_in_silence(team: Team) -> None:
    os.unlink(keys.key_path("sample.example/1"))
    decisions_log.log(team, REQUEST)
    assert team.warnings == []
    assert len(seals(team)) == 1
    assert sealing.seal(team, "asked") is None
    with pytest.raises(RefusedError, match="is not there; in force is"):
        sealing.seal_now(team, keys.no_passphrase)


def test_a_locked_key_is_told_of_at_a_decision_alone(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRIPOD_PASSPHRASE_FILE", raising=False)
    sealing.rotate_sealing_key(team, keys.no_passphrase, b"secret")
    made = len(seals(team))
    decisions_log.log(team, REQUEST)
    assert len(seals(team)) == made
    assert ["recorded, but not sealed" in text for text in team.warnings] == [True]
    (tmp_path / "pass").write_text("secret\n")
    monkeypatch.setenv("TRIPOD_PASSPHRASE_FILE", str(tmp_path / "pass"))
    chat_send.send(team, "live", "ann", "the next act seals it")
    assert seals(team)[made:][0][2] == "decision"
    clean(team)


# Rotation --------------------------------------------------------------------------------------


def test_a_rotated_key_seals_on(team: Team) -> None:
    first = keys.sealing_key(team.store)
    second = sealing.rotate_sealing_key(team, keys.no_passphrase, None)
    assert keys.sealing_key(team.store) == second != first
    decisions_log.log(team, REQUEST)
    assert len(seals(team)) == 3
    clean(team)


@pytest.mark.parametrize("step", ["store_key", "append_apart", "load_key_in_force"])
def test_a_rotation_that_was_stopped_leaves_one_key_in_force(team: Team, step: str) -> None:
    class StopError(Exception):
        pass

    first = keys.sealing_key(team.store)
    calls = {"n": 0}
    places = {"store_key": keys, "append_apart": team, "load_key_in_force": keys}
    real = getattr(places[step], step)

    def stop(*given: object, **named: object) -> object:
        calls["n"] += 1
        if step != "load_key_in_force" or calls["n"] == 2:
            raise StopError
        return real(*given, **named)

    with mock.patch.object(places[step], step, stop), pytest.raises(StopError):
        sealing.rotate_sealing_key(team, keys.no_passphrase, None)
    assert (keys.sealing_key(team.store) == first) == (step != "load_key_in_force")
    decisions_log.log(team, REQUEST)
    assert seals(team)[-1][2] == "decision"
    second = sealing.rotate_sealing_key(team, keys.no_passphrase, None)
    assert keys.sealing_key(team.store) == second
    clean(team)


def test_a_key_that_was_made_and_not_recorded_is_used(team: Team, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    adoption.init(str(tmp_path / "other"), project="o", origin="o.example/2", new=True)
    key = SigningKey("o.example/2", bytes(32))
    keys.store_key(keys.key_path("o.example/2"), key, None)
    with Team(str(tmp_path / "other/.nbs")) as other:
        assert sealing.new_sealing_key(other) == key.verifier().format()


# Never back, never aside -----------------------------------------------------------------------


def rolled_back(team: Team, tmp_path: Path) -> Team:
    """The ledger as it was before the newest seal, put back by hand."""
    copy = tmp_path / "copy.db"
    team.store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy.write_bytes(Path(team.store.path).read_bytes())
    before = set(Path(f"{team.root}/events").glob("*.event"))
    for number in range(4):
        bus.publish(team, "ann", "task-complete", "low", f"behind the backup {number}")
    sealing.seal(team, "asked")
    team.close()
    for suffix in ("", "-wal", "-shm"):
        Path(team.store.path + suffix).unlink(missing_ok=True)
    Path(team.store.path).write_bytes(copy.read_bytes())
    for path in set(Path(f"{team.root}/events").glob("*.event")) - before:
        path.unlink()
    return Team(team.root)


def test_a_ledger_behind_its_last_seal_is_not_sealed(team: Team, tmp_path: Path) -> None:
    with rolled_back(team, tmp_path) as back:
        before = sealing.last_seal_note("sample.example/1")
        bus.publish(back, "ann", "task-complete", "low", "short")
        with pytest.raises(RefusedError, match=r"is of 11 entries, and the ledger holds 8: a"):
            sealing.seal(back, "asked")
        assert sealing.last_seal_note("sample.example/1") == before


def test_another_history_of_the_same_length_is_not_sealed(team: Team, tmp_path: Path) -> None:
    with rolled_back(team, tmp_path) as back:
        before = sealing.last_seal_note("sample.example/1")
        for number in range(5):
            bus.publish(back, "ann", "task-complete", "low", f"other {number}")
        with pytest.raises(RefusedError, match="is of 11 other entries than the first 11"):
            sealing.seal(back, "asked")
        back.warnings.clear()
        decisions_log.log(back, PLAIN)  # what is recorded stays recorded, and is told
        assert any("Nothing is sealed" in text for text in back.warnings)
        assert any("tripod restore --as-copy" in text for text in back.warnings)
        assert sealing.last_seal_note("sample.example/1") == before


def test_dead_between_signature_and_entry_the_next_act_seals(team: Team) -> None:
    class StopError(BaseException):
        pass

    def signed(*given: object, **named: object) -> str:
        real(*given, **named)  # type: ignore[arg-type]
        raise StopError

    real = sealing.seal_head
    with mock.patch.object(sealing, "seal_head", signed), pytest.raises(StopError):
        decisions_log.log(team, REQUEST)
    assert len(seals(team)) == 1
    last = sealing.last_seal("sample.example/1")
    assert last is not None
    assert last.size == team.store.head().size
    bus.publish(team, "ann", "task-complete", "low", "the next act")
    assert seals(team)[-1][2] == "decision"
    assert team.healed == 0
    clean(team)


def test_what_is_not_committed_is_not_sealed(team: Team) -> None:
    """Files that others wrote are taken in by acts; the seal's own transaction looks at none."""
    Path(f"{team.root}/workers/a-1.md").write_text("# Worker: a\n\n## Task\n\nx\n")
    chat_send.send(team, "live", "ann", "x")
    sealing.seal(team, "asked")
    clean(team)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "cannot be read"),
        (b"x\n0\n\n", "cannot be read"),
        (None, "is the last seal of 'o', not of 'sample.example/1'"),
    ],
)
def test_a_memory_that_cannot_be_read_stops_sealing(
    team: Team, data: bytes | None, says: str
) -> None:
    path = sealing.seal_path("sample.example/1")
    if data is None:
        note = Path(path).read_text()
        seal = parse_seal(parse_note(note.encode()).text)
        data = (format_seal(seal._replace(origin="o")) + note[len(format_seal(seal)) :]).encode()
    Path(path).write_bytes(data)
    chat_send.send(team, "live", "ann", "x")
    with pytest.raises(RefusedError, match=says):
        sealing.seal(team, "asked")


def test_a_first_record_whose_writer_died_is_written_by_the_next_act(team: Team) -> None:
    """Its seal comes last. Until it is there, ``verify`` has nothing to judge the files by."""
    (Path(team.root) / "record/checkpoint").unlink()
    with collect(team.root) as evidence:
        assert run(evidence).exit_code == 1
    bus.publish(team, "bob", "note", "low")
    assert seals(team)[-1][-1] == "policy"
    clean(team)


def test_the_names_of_new_folders_are_on_the_disk_before_the_key_counts(tmp_path: Path) -> None:
    """A power cut keeps a file that was waited for, and loses the folder that nobody waited for."""
    synced: list[str] = []
    with mock.patch("tripod.ledger.files.sync_path", synced.append):
        keys.write_private_key(str(tmp_path / "home/keys/one.pem"), b"x")
    assert {str(tmp_path), str(tmp_path / "home")} < set(synced)


def test_a_key_that_is_in_force_is_not_denied_where_the_first_seal_fails(tmp_path: Path) -> None:
    adoption.init(str(tmp_path), project="p", origin="sample.example/2")
    with Team(str(tmp_path / ".nbs")) as team:
        full = UnwritableError("ledger.db: the disk is full; nothing was recorded")
        with mock.patch.object(sealing, "seal", side_effect=full):
            vkey = sealing.new_sealing_key(team)
            assert keys.sealing_key(team.store) == vkey
            assert team.warnings.pop().startswith("the key is in force, and nothing is sealed")
            after = sealing.rotate_sealing_key(team, keys.no_passphrase, None)
            assert keys.sealing_key(team.store) == after
            assert team.warnings.pop().startswith("the key is in force, and nothing is sealed")
        clean(team)
