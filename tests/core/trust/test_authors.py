"""Who has a key signs what they do, wherever it is done; who cannot sign is refused."""

import os
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from plain_export import files_of, read_files
from specimens import authored, copy, database, private

from tripod.bus import events
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.errors import NotFoundError, RefusedError
from tripod.ledger.actors import parse_actor_record
from tripod.ledger.entry import Entry
from tripod.ledger.errors import UnwritableError
from tripod.ledger.sqlite.reader import read_only
from tripod.recovery import backup as copies
from tripod.recovery import rebuild as recover
from tripod.recovery import redaction
from tripod.recovery.record import restore_from_record as restore
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import actors as authors
from tripod.trust import keys, signature
from tripod.trust import seal as sealing
from tripod.trust.export import export
from tripod.trust.proof import prove_entry
from tripod.verify.check import CLEAN, FINDINGS, NOT_APPLICABLE, Outcome
from tripod.verify.checks import writers_authorised
from tripod.verify.evidence import collect
from tripod.verify.export import judge_proof
from tripod.verify.run import open_run, run

PASSPHRASE = b"correct horse"


@pytest.fixture
def root(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


def enrol(root: str, *handles: str) -> list[str]:
    with Team(root) as team:
        return [authors.enrol_actor(team, handle, keys.no_passphrase) for handle in handles]


def judged(path: str) -> Outcome:
    with open_run(path) as evidence:
        (told,) = run(evidence, select={writers_authorised.NAME}).outcomes
    return told


def clean(root: str) -> dict[str, Any]:
    with open_run(root) as evidence:
        report = run(evidence)
    found = [f.message for o in report.outcomes for f in o.findings if f.severity == "failure"]
    assert found == []
    told = next(o for o in report.outcomes if o.check == writers_authorised.NAME)
    assert told.verdict == CLEAN
    return dict(told.coverage)


def newest(root: str, count: int) -> list[Entry]:
    with Team(root) as team:
        size = team.store.head().size
        return list(team.store.read(size - count))


def groups(entries: list[Entry]) -> list[list[str]]:
    """The kinds of entries that have one record, one list a record."""
    found: dict[bytes | None, list[str]] = {}
    for entry in entries:
        found.setdefault(entry.auth, []).append(entry.kind)
    return list(found.values())


# Acting ----------------------------------------------------------------------------------------


def test_without_keys_nothing_is_signed_and_nothing_judged(root: str) -> None:
    with Team(root) as team:
        events.publish(team, "ann", "done", "low")
    (entry,) = newest(root, 1)
    assert entry.auth is None
    assert judged(root).verdict == NOT_APPLICABLE


def test_each_act_is_signed_by_who_does_it(root: str) -> None:
    enrol(root, "alex", "scribe")
    with Team(root) as team:
        size = team.store.head().size
        chat_send.create(team, "third", actor="alex")
        name = events.publish(team, "alex", "done", "low", "text")
        events.ack(team, name, actor="alex")
        events.publish(team, "bob", "done", "low")
        events.ack_all(team, "bob", actor="alex")
        events.prune(team, 1, actor="alex")
        acts = list(team.store.read(size))
    assert {entry.kind for entry in acts} == {
        "chat.created", "bus.published", "bus.acked", "bus.acked-all", "bus.pruned",
    }  # fmt: skip
    for entry in acts:
        assert (entry.auth is not None) == (entry.actor == "alex")
        if entry.auth is not None:
            assert parse_actor_record(entry.auth).digests == ()
    assert clean(root) == {"signed": 5, "unsigned": 0, "keys": 2}


def test_the_entries_of_one_act_are_signed_together(root: str) -> None:
    enrol(root, "alex", "scribe")
    with Team(root) as team:
        chat_send.send(team, "side", "alex", "@bench and @claude, look", human=True)
        request = decisions_log.DecisionRequest("Signed", ("alex",), "why", refs=["live.chat:~L7"])
        decisions_log.log(team, request)
        decisions_log.log(team, request)  # the sixth, so with a checkpoint
    said, decided, due = newest(root, 10)[:5], newest(root, 10)[5:7], newest(root, 10)[7:]
    assert groups(said) == [["chat.sent", *["bus.published"] * 4]]
    assert groups(decided) == [["decision.logged", "bus.published"]]
    assert groups(due) == [["decision.logged", "bus.published", "bus.published"]]
    assert {entry.actor for entry in said} == {"alex"}
    assert clean(root)["signed"] == 10


def test_who_logs_under_another_handle_signs_the_scribes_events_too(root: str) -> None:
    """The event says that the scribe tells it; its actor is who did what it tells of."""
    enrol(root, "alex", "scribe")
    with Team(root) as team:
        request = decisions_log.DecisionRequest("By hand", ("alex",), "why", refs=["live.chat:~L7"])
        decisions_log.log(team, request, actor="alex")
    decided, event = newest(root, 2)
    assert (decided.actor, event.actor, event.data["source"]) == ("alex", "alex", "scribe")
    assert decided.auth == event.auth
    clean(root)


def test_what_others_write_into_files_is_not_signed(root: str) -> None:
    enrol(root, "alex")
    path = Path(root, "chat/live.chat")
    from tripod.projections.chat.format import format_line

    path.write_bytes(path.read_bytes() + format_line("alex", 1795294999, "by the old tool") + b"\n")
    with Team(root) as team:
        adoption.sync(team)
        events.publish(team, "alex", "done", "low")
        entries = list(team.store.read())
    (observed,) = [e for e in entries if e.kind == "chat.sent" and "observed" in e.data]
    assert (observed.actor, observed.auth) == ("alex", None)
    assert entries[-1].auth is not None
    assert clean(root) == {"signed": 1, "unsigned": 1, "keys": 1}


def test_a_redaction_is_signed_and_leaves_the_signature_of_what_it_erases(root: str) -> None:
    enrol(root, "alex")
    with Team(root) as team:
        seq = chat_send.send(team, "side", "alex", "a secret").seq
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "leaked", "alex"))
        said, told = (next(team.store.read(at, at + 1)) for at in (seq, team.store.head().size - 1))
    assert said.body is None
    assert said.auth is not None
    assert (told.kind, told.actor) == ("redacted", "alex")
    assert told.auth is not None
    clean(root)


def test_a_ledger_from_before_keys_is_judged_and_brought_on(root: str) -> None:
    import sqlite3

    from tripod.ledger.sqlite.schema import MIGRATIONS

    with closing(sqlite3.connect(database(root), isolation_level=None)) as db:
        db.execute("DROP TRIGGER entries_no_update")
        start = MIGRATIONS[1].index("CREATE TRIGGER entries_no_update")
        db.executescript(MIGRATIONS[1][start : MIGRATIONS[1].index("END;", start) + 4])
        db.execute("ALTER TABLE entries DROP COLUMN auth")
        db.execute("DROP TABLE actors")
        db.execute("DROP TRIGGER head_forward_only")
        for column in ("synced", "boot"):
            db.execute(f"ALTER TABLE head DROP COLUMN {column}")
        start = MIGRATIONS[0].index("CREATE TRIGGER head_forward_only")
        db.executescript(MIGRATIONS[0][start : MIGRATIONS[0].index("END;", start) + 4])
        db.execute("UPDATE folds SET versions = replace(versions, 'trust:2', 'trust:1')")
        db.execute("PRAGMA user_version = 2")
    with collect(root) as evidence:
        report = run(evidence)
    # The tables that it lacks are folded by the next act, and told until then.
    assert {f.check for o in report.outcomes for f in o.findings} == {"drift"}
    assert judged(root).verdict == NOT_APPLICABLE
    with Team(root) as team:
        events.publish(team, "alex", "done", "low")
    enrol(root, "alex")
    with Team(root) as team:
        events.publish(team, "alex", "done", "low")
    assert clean(root)["signed"] == 1


# Refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda team: events.publish(team, "alex", "done", "low"),
        lambda team: events.ack(team, next(events.check(team)).name, actor="alex"),
        lambda team: chat_send.send(team, "side", "alex", "me?"),
        lambda team: decisions_log.log(
            team, decisions_log.DecisionRequest("T", ("x",), "y"), actor="alex"
        ),
        lambda team: redaction.redact(team, redaction.RedactionRequest((3,), None, "r", "alex")),
    ],
)
def test_who_has_not_the_key_cannot_act_under_the_handle(root: str, act: Any) -> None:
    (vkey,) = enrol(root, "alex")
    os.unlink(signature.actor_key_path(vkey))
    before = files_of(database(root))
    with Team(root) as team, pytest.raises(RefusedError, match="is not there: nothing was record"):
        act(team)
    assert files_of(database(root)) == before
    with Team(root) as team:
        events.publish(team, "bench", "done", "low")  # others act on
    clean(root)


def test_an_encrypted_key_signs_where_its_passphrase_is_known(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Team(root) as team:
        authors.enrol_actor(team, "alex", keys.no_passphrase, PASSPHRASE)
        with pytest.raises(RefusedError, match=r"is encrypted: name a file .* nothing was record"):
            events.publish(team, "alex", "done", "low")
        secret = tmp_path / "secret"
        secret.write_bytes(PASSPHRASE + b"\n")
        monkeypatch.setenv("TRIPOD_PASSPHRASE_FILE", str(secret))
        events.publish(team, "alex", "done", "low")
    assert clean(root)["signed"] == 1


def test_a_key_file_of_another_key_signs_nothing(root: str) -> None:
    one, other = enrol(root, "alex", "bench")
    os.replace(signature.actor_key_path(other), signature.actor_key_path(one))
    with Team(root) as team, pytest.raises(RefusedError, match="holds another key"):
        events.publish(team, "alex", "done", "low")


def test_a_home_in_the_team_directory_is_refused(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIPOD_HOME", f"{root}/home")
    with pytest.raises(RefusedError, match="lies in the team directory"):
        enrol(root, "alex")
    assert not os.path.exists(f"{root}/home")


@pytest.mark.parametrize("handle", ["tripod", "nbs-chat", "a+b"])
def test_some_handles_are_refused(root: str, handle: str) -> None:
    with pytest.raises(RefusedError, match="can have no key"):
        enrol(root, handle)


# Keys ------------------------------------------------------------------------------------------


def test_the_first_to_come_has_the_handle_where_the_ledger_has_no_key(root: str) -> None:
    (vkey,) = enrol(root, "alex")
    path = signature.actor_key_path(vkey)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert keys.load_key(path, "alex").verifier().format() == vkey
    with Team(root) as team:
        assert [one.handle for one in authors.list_actors(team.store.db)] == ["alex"]
    os.rename(path, f"{path}.away")
    with pytest.raises(RefusedError, match="that is not on this host"):
        enrol(root, "alex")
    os.rename(f"{path}.away", path)


def test_a_key_takes_the_place_of_the_one_before_it(root: str) -> None:
    (first,) = enrol(root, "alex")
    (second,) = enrol(root, "alex")
    assert first != second
    assert not os.path.exists(signature.actor_key_path(first))
    with Team(root) as team:
        events.publish(team, "alex", "done", "low")
        (one,) = authors.list_actors(team.store.db)
    assert (one.vkey, one.number, one.revoked) == (second, 2, False)
    assert clean(root) == {"signed": 1, "unsigned": 0, "keys": 2}


def test_a_revoked_key_signs_nothing_and_vouches_for_the_next(root: str) -> None:
    (vkey,) = enrol(root, "alex")
    with Team(root) as team:
        assert authors.revoke_actor(team, "alex", "lost the laptop", keys.no_passphrase) == vkey
        events.publish(team, "alex", "done", "low")
        with pytest.raises(NotFoundError, match="has no key in force"):
            authors.revoke_actor(team, "alex", "again", keys.no_passphrase)
    assert newest(root, 1)[0].auth is None
    clean(root)
    path = signature.actor_key_path(vkey)
    os.rename(path, f"{path}.away")  # without it a stranger cannot take the handle
    with pytest.raises(RefusedError, match="that is not on this host"):
        enrol(root, "alex")
    os.rename(f"{path}.away", path)
    enrol(root, "alex")
    with Team(root) as team:
        events.publish(team, "alex", "done", "low")
    assert newest(root, 1)[0].auth is not None
    clean(root)


def test_the_ledgers_key_vouches_for_first_keys_and_for_lost_ones(root: str) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)
    (vkey,) = enrol(root, "alex")
    os.unlink(signature.actor_key_path(vkey))
    enrol(root, "alex")
    with Team(root) as team:
        authors.revoke_actor(team, "alex", "gone", keys.no_passphrase)
        log = keys.key_path(team.store.origin)
        os.rename(log, f"{log}.away")
        for handle in ("alex", "bench"):
            with pytest.raises(RefusedError, match="the ledger's own key, and that is not on"):
                authors.enrol_actor(team, handle, keys.no_passphrase)
        os.rename(f"{log}.away", log)
        authors.enrol_actor(team, "alex", keys.no_passphrase)
        events.publish(team, "alex", "done", "low")
    assert clean(root) == {"signed": 1, "unsigned": 0, "keys": 3}


def test_a_request_is_admitted_by_who_has_the_ledgers_key(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signers_home: str
) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)
        monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "alexs"))
        note = authors.request_actor_key(team, "alex")
        with pytest.raises(RefusedError, match="that is not on this host"):
            authors.admit_actor(team, note, keys.no_passphrase)
        monkeypatch.setenv("TRIPOD_HOME", signers_home)
        vkey = authors.admit_actor(team, note, keys.no_passphrase)
        with pytest.raises(RefusedError, match="changed meanwhile"):
            authors.admit_actor(team, note, keys.no_passphrase)
        with pytest.raises(RefusedError, match="cannot be admitted"):
            authors.admit_actor(team, "nonsense", keys.no_passphrase)
        assert not os.path.exists(signature.actor_key_path(vkey))
        monkeypatch.setenv("TRIPOD_HOME", str(tmp_path / "alexs"))
        events.publish(team, "alex", "done", "low")
    assert clean(root)["signed"] == 1


def test_a_change_is_sealed_where_the_ledger_is(root: str) -> None:
    with Team(root) as team:
        sealing.new_sealing_key(team)
    enrol(root, "alex")
    assert [entry.kind for entry in newest(root, 2)] == ["actor.enrolled", "seal.made"]
    with Team(root) as team:
        key = keys.key_path(team.store.origin)
        os.chmod(key, 0o644)
        authors.revoke_actor(team, "alex", "gone", keys.no_passphrase)
        assert any("recorded, but not sealed" in text for text in team.warnings)


def test_a_change_that_comes_between_is_not_overwritten(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two who enrol at once: one of them comes first, the other is told."""
    with Team(root) as team, Team(root) as other:
        note = authors.request_actor_key(team, "alex")
        authors.enrol_actor(other, "alex", keys.no_passphrase)
        with pytest.raises(RefusedError, match="changed meanwhile"):
            authors.admit_actor(team, note, keys.no_passphrase)
        original = authors._voucher

        def meanwhile(*given: Any) -> Any:
            found = original(*given)
            with Team(root) as third:
                monkeypatch.setattr(authors, "_voucher", original)
                authors.enrol_actor(third, "alex", keys.no_passphrase)
            return found

        monkeypatch.setattr(authors, "_voucher", meanwhile)
        with pytest.raises(RefusedError, match="changed meanwhile"):
            authors.revoke_actor(team, "alex", "why", keys.no_passphrase)
    clean(root)


def test_a_key_goes_on_under_another_name_of_the_ledger(root: str) -> None:
    enrol(root, "alex")
    with Team(root) as team:
        events.publish(team, "alex", "done", "low")
        copies.backup(team, f"{root}/ledger.db.copy")
    copies.restore(root, f"{root}/ledger.db.copy", "sample.example/2")
    with Team(root) as team:
        events.publish(team, "alex", "done", "low")
    assert clean(root)["signed"] == 2


# As files --------------------------------------------------------------------------------------


@pytest.fixture
def signed(root: str) -> str:
    """A team with a key, a record and signed entries, one of them erased."""
    with Team(root) as team:
        sealing.new_sealing_key(team)
    authored(root)
    with Team(root) as team:
        seq = chat_send.send(team, "side", "bench", "a secret").seq
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "leaked", "alex"))
        sealing.seal(team, "asked")
    return root


def test_the_record_holds_the_signatures_and_gives_them_back(signed: str) -> None:
    sealed = read_files(f"{signed}/record")
    assert any(b'{"auth":"' in data for path, data in sealed.items() if "bodies" in path)
    clean(signed)
    assert judged(f"{signed}/record").verdict == CLEAN
    with Team(signed) as team:
        before = [(e.seq, e.auth) for e in team.store.read(0, team.store.head().size - 1)]
    assert [auth for _, auth in before if auth]
    for name in os.listdir(signed):
        if name.startswith("ledger.db"):
            os.unlink(f"{signed}/{name}")
    clean(signed)
    restore(signed)
    with Team(signed) as team:
        assert [(e.seq, e.auth) for e in team.store.read()] == before
    clean(signed)


def test_an_export_is_written_as_the_format_says(signed: str, tmp_path: Path) -> None:
    note = Path(signed, "record/checkpoint").read_text(encoding="utf-8")
    size = int(note.split("\n")[1])
    export(database(signed), str(tmp_path / "x"), note, bodies=True)
    want = files_of(database(signed), size)
    have = read_files(str(tmp_path / "x"))
    assert {k: v for k, v in have.items() if k != "checkpoint"} == {
        k: v for k, v in want.items() if k != "checkpoint"
    }


@pytest.mark.parametrize("how", [None, b"\x01" + bytes(68)])
def test_a_stripped_record_is_not_exported_and_not_restored(signed: str, how: Any) -> None:
    from specimens import unguarded

    with unguarded(database(signed)) as db:
        db.execute("UPDATE entries SET auth = ? WHERE auth IS NOT NULL AND body IS NULL", (how,))
    with Team(signed) as team:
        copies.backup(team, f"{signed}/copy.db")
        events.publish(team, "parser", "done", "low")
        sealing.seal(team, "asked")  # the record's newest bundle is written again
        assert any("lost its signature record, or has another" in text for text in team.warnings)
    assert judged(signed).verdict == FINDINGS
    with pytest.raises(RefusedError, match="signature record"):
        copies.restore(signed, f"{signed}/copy.db")


def test_a_proof_of_a_body_carries_the_signature(signed: str, tmp_path: Path) -> None:
    with closing(read_only(database(signed))) as db:
        sql = "SELECT min(seq) FROM entries WHERE auth IS NOT NULL AND body IS NOT NULL"
        (seq,) = db.execute(sql).fetchone()
    note = Path(signed, "record/checkpoint").read_text(encoding="utf-8")
    proof = prove_entry(database(signed), seq, note, body=True)
    path = tmp_path / "proof"
    path.write_bytes(proof)
    with Team(signed) as team:
        vkey = keys.sealing_key(team.store) or ""
    from tripod.ledger.tlog.note import VerifierKey

    key = VerifierKey.parse(vkey)
    assert judge_proof(str(path), [key]).exit_code == 0
    from base64 import b64decode, b64encode

    lines = proof.decode().split("\n")
    place = next(at for at, line in enumerate(lines) if line.startswith("extra "))
    extra = b64decode(lines[place].removeprefix("extra "))
    header, _, line = extra.partition(b"\n")
    bare = b'{"body"' + line.split(b'"body"', 1)[1]
    lines[place] = "extra " + b64encode(header + b"\n" + bare).decode()
    path.write_text("\n".join(lines), encoding="utf-8")
    report = judge_proof(str(path), [key])
    assert "signature record is not the one" in report.outcomes[0].findings[0].message


def test_a_rebuild_and_a_look_at_the_past_fold_keys_as_they_were(signed: str) -> None:
    with Team(signed) as team:
        before = authors.list_actors(team.store.db)
        recover.rebuild(team)
        assert authors.list_actors(team.store.db) == before != []
        first = min(one.since for one in before)
        with recover.rebuild_past(team, first - 1) as source:
            assert authors.list_actors(source.db) == []


def test_ids_and_signatures_do_not_depend_on_where_an_entry_stands(signed: str) -> None:
    """What is signed says neither seq, nor prev, nor time: so nobody waits for the head to sign."""
    key = private(signed, "alex")
    with Team(signed) as team:
        signing = signature.Signing(team.store)
        from drafts import acked

        (draft,) = signing.sign([acked("x.event", "alex")])
        events.publish(team, "bench", "done", "low")  # meanwhile others append
        (entry,) = team.store.append([draft])
    header = orjson.loads(entry.header)
    from tripod.ledger.actors import actor_record_problem, actor_statement

    assert entry.auth is not None
    assert (
        actor_record_problem(
            parse_actor_record(entry.auth), actor_statement(header), key.verifier()
        )
        is None
    )
    entries = newest(signed, 3)
    assert all(orjson.loads(b.header)["seq"] == orjson.loads(a.header)["seq"] + 1
               for a, b in pairwise(entries))  # fmt: skip


def test_a_disk_that_refuses_enrols_nothing(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UnwritableError("full")

    with Team(root) as team:
        size = team.store.head().size
        monkeypatch.setattr(team, "append_apart", refuse)
        with pytest.raises(UnwritableError):
            authors.enrol_actor(team, "alex", keys.no_passphrase)
        assert team.store.head().size == size
        assert authors.list_actors(team.store.db) == []
