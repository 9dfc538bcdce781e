"""What the check asks of keys, of signatures and of entries without one, beyond its specimens."""

import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from plain_export import files_of, write_files
from sealed import LOG
from specimens import authored, build, copy, database, forge, private, read, resigned, unguarded

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.ledger import actor_entry_id
from tripod.ledger.actors import ENROLLED, REVOKED, sign_actor_change
from tripod.ledger.entry import Header
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.tlog.note import SigningKey, VerifierKey
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import actors, keys
from tripod.verify.check import Finding, Scanned
from tripod.verify.checks import writers_authorised
from tripod.verify.checks.writers_authorised import Demand, Writers
from tripod.verify.evidence import collect
from tripod.verify.run import run
from tripod.verify.scan import signatures
from tripod.verify.scan.database import scan_database
from tripod.verify.scan.signatures import scan_signatures

ORIGIN = LOG.name
ANN, NEXT, BOB = (SigningKey(name, bytes([n]) * 32) for n, name in enumerate(("ann", "ann", "bob")))


def change(
    writers: Writers,
    kind: str,
    number: int,
    key: SigningKey,
    *signers: SigningKey,
    log: SigningKey | None = None,
    **other: Any,
) -> str | None:
    """Tell of a change; give what is wrong with it."""
    reason = None if kind == ENROLLED else "why"
    vkey = key.verifier()
    note = sign_actor_change(ORIGIN, number, vkey, signers, reason)
    data = {"handle": key.name, "vkey": vkey.format(), "number": number, "note": note, "v": 1}
    data |= ({} if reason is None else {"reason": reason}) | other
    header = Header(
        "tripod", "", "", actor_entry_id(key.name, number), kind, ORIGIN, "", number * 10, ""
    )
    return writers.change(header, data, None if log is None else log.verifier())


def in_force(writers: Writers) -> dict[str, VerifierKey]:
    return {handle: held.key for handle, held in writers.force.items()}


# Keys ------------------------------------------------------------------------------------------


def test_a_line_of_keys() -> None:
    writers = Writers()
    assert change(writers, ENROLLED, 1, ANN, ANN) is None
    assert change(writers, ENROLLED, 1, BOB, BOB) is None
    assert change(writers, ENROLLED, 2, NEXT, NEXT, ANN) is None
    assert in_force(writers) == {"ann": NEXT.verifier(), "bob": BOB.verifier()}
    assert change(writers, REVOKED, 3, NEXT, NEXT) is None
    assert in_force(writers) == {"bob": BOB.verifier()}
    assert change(writers, ENROLLED, 4, ANN, ANN, NEXT) is None
    assert [(held.since, held.until, held.how) for held in writers.ended] == [
        (10, 20, "replaced"),
        (20, 30, "revoked"),
    ]


def test_with_a_key_of_the_ledger_that_one_vouches() -> None:
    writers = Writers()
    assert "did not sign that" in (change(writers, ENROLLED, 1, ANN, ANN, log=LOG) or "")
    assert in_force(writers) == {}
    assert change(writers, ENROLLED, 2, ANN, ANN, LOG, log=LOG) is None
    assert change(writers, ENROLLED, 3, NEXT, NEXT, LOG, log=LOG) is None  # ann lost hers
    assert change(writers, REVOKED, 4, NEXT, LOG, log=LOG) is None
    assert "did not sign" in (change(writers, ENROLLED, 5, ANN, ANN, NEXT, log=LOG) or "")
    assert change(writers, ENROLLED, 6, ANN, ANN, LOG, log=LOG) is None


@pytest.mark.parametrize(
    ("act", "signers", "other", "says"),
    [
        ((ENROLLED, 3, ANN), (ANN,), {}, "it is change 3 of the key of 'ann', where 2 follows"),
        ((ENROLLED, 1, ANN), (ANN,), {}, "it is change 1"),
        ((ENROLLED, 2, NEXT), (NEXT,), {}, "did not sign that"),
        ((ENROLLED, 2, NEXT), (ANN,), {}, "the key itself did not sign that"),
        ((ENROLLED, 2, NEXT), (NEXT, ANN), {"note": "x"}, "the key of 'ann' was changed: note"),
        ((ENROLLED, 2, NEXT), (NEXT, ANN), {"vkey": "x"}, "it changes no key"),
        (
            (ENROLLED, 1, BOB),
            (BOB,),
            {"vkey": ANN.verifier().format()},
            "does not speak for 'bob'",
        ),
        ((REVOKED, 2, NEXT), (NEXT,), {}, "is revoked, and was not in force"),
        ((REVOKED, 1, BOB), (BOB,), {}, "is revoked, and was not in force"),
        ((REVOKED, 2, ANN), (BOB,), {}, "the key of 'ann' was changed"),
        ((REVOKED, 2, ANN), (ANN,), {"reason": "else"}, "the note is about another change"),
    ],
)
def test_a_change_that_is_not_sound_changes_nothing(
    act: tuple[str, int, SigningKey], signers: Any, other: Any, says: str
) -> None:
    writers = Writers()
    assert change(writers, ENROLLED, 1, ANN, ANN) is None
    assert says in (change(writers, *act, *signers, **other) or "")
    assert in_force(writers) == {"ann": ANN.verifier()}
    assert writers.ended == []


def test_a_handle_that_is_nobodys_has_no_key() -> None:
    key = SigningKey("tripod", b"t" * 32)
    assert "is nobody's" in (change(Writers(), ENROLLED, 1, key, key) or "")


def test_bodies_of_any_shape_are_no_changes() -> None:
    header = Header("tripod", "", "", "x", ENROLLED, ORIGIN, "", 1, "")
    for data in ({}, {"handle": [], "number": 1, "vkey": "x", "note": "y"}, {"handle": "ann"}):
        assert Writers().change(header, data, None) is not None


# Entries ---------------------------------------------------------------------------------------


@pytest.fixture
def root(sound: str, tmp_path: Path) -> str:
    """A team in which bench and alex sign; their keys are in the home of this test."""
    root = copy(sound, str(tmp_path))
    authored(root)
    return root


def found(root: str, demand: Demand | None = None) -> list[Finding]:
    with closing(read_only(database(root))) as db:
        told = scan_database(db)
        scan_signatures(db, told, Demand() if demand is None else demand)
        assert told.tally.found.keys() <= {writers_authorised.NAME}
        return list(told.tally.of(writers_authorised.NAME))


def test_a_policy_can_demand_that_kinds_are_signed(root: str) -> None:
    assert found(root) == []
    rows = read(database(root))
    decisions = [seq for seq, row in enumerate(rows) if row.head["kind"] == "decision.logged"]
    told = found(root, Demand(("decision.logged",)))
    assert [finding.seq for finding in told] == decisions
    assert "the policy demands that of each decision.logged" in told[0].message
    assert [f.seq for f in found(root, Demand(("decision.logged",), decisions[2]))] == decisions[2:]
    assert found(root, Demand(("actor.revoked",))) == []


def test_a_demand_holds_for_what_was_observed_too(root: str) -> None:
    path = Path(root, "chat/side.chat")
    from tripod.projections.chat.format import format_line

    path.write_bytes(path.read_bytes() + format_line("alex", 1795294999, "by hand") + b"\n")
    with Team(root) as team:
        adoption.sync(team)
        last = max(e.seq for e in team.store.read() if e.kind == "chat.sent")
    assert found(root) == []
    assert [f.seq for f in found(root, Demand(("chat.sent",), last))] == [last]
    without = [row for row in read(database(root)) if row.auth is None]
    assert 0 < summary(root)[1]["unsigned"] < len(without), "only of actors with a key"


def test_without_keys_a_demand_finds_what_it_asks_for(tmp_path: Path) -> None:
    root = build(str(tmp_path))
    assert found(root) == []
    assert len(found(root, Demand(("decision.logged",)))) == 4


def test_nothing_is_judged_twice(root: str) -> None:
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET auth = NULL")
    with collect(database(root)) as evidence:
        first, second = (run(evidence, select={writers_authorised.NAME}) for _ in range(2))
    assert first.outcomes == second.outcomes
    assert first.failures > 3


def test_two_processes_find_what_one_finds(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is damaged, and wherever the ledger is cut in two."""
    rng = random.Random(7)  # noqa: S311 - damage, not keys
    with closing(read_only(database(root))) as db:
        size = db.execute("SELECT count(*) FROM entries").fetchone()[0]
    monkeypatch.setattr(signatures, "child_cores", lambda: 2)
    for trial in range(12):
        if trial:
            with unguarded(database(root)) as db:
                seq = rng.randrange(size)
                how = rng.choice(["NULL", "x'01'", "(SELECT auth FROM entries WHERE seq = 52)"])
                db.execute(f"UPDATE entries SET auth = {how} WHERE seq = ?", (seq,))
        monkeypatch.setattr(signatures, "MANY", 10**9)
        whole = summary(root)
        monkeypatch.setattr(signatures, "MANY", 0)
        assert summary(root) == whole


def summary(root: str) -> tuple[list[Finding], dict[str, Any]]:
    with closing(read_only(database(root))) as db:
        told: Scanned = scan_database(db)
        scan_signatures(db, told)
        return list(told.tally.of(writers_authorised.NAME)), dict(told.coverage)


def test_a_batch_is_whole_across_the_cut(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Team(root) as team:
        size = team.store.head().size
        for _ in range(size + 1):  # the cut falls among these
            chat_send.send(team, "side", "bench", "one of two")
    monkeypatch.setattr(signatures, "MANY", 0)
    monkeypatch.setattr(signatures, "child_cores", lambda: 2)
    for _ in range(2):
        assert found(root) == []
        with Team(root) as team:
            bus.publish(team, "parser", "done", "low")
            bus.publish(team, "parser", "done", "low")


def test_a_message_of_another_is_not_told_by_a_tool(root: str) -> None:
    """An event that a tool tells must follow from what its actor did."""
    with Team(root) as team:
        actors.enrol_actor(team, "scribe", keys.no_passphrase)
        chat_send.send(team, "side", "claude", "so it is")
    rows = read(database(root))
    events = [s for s, r in enumerate(rows) if r.head.get("cause") and not r.auth]
    seq = max(s for s in events if rows[s].data["source"] == "nbs-chat")
    rows[seq] = rows[seq].saying(source="scribe")
    forge(root, rows)
    told = found(root)
    assert [(one.seq, one.message) for one in told] == [
        (seq, f"it shows 'scribe' as who speaks, and {rows[seq].head['actor']!r} did it")
    ]


def test_an_erased_entry_is_judged_by_what_stands_for_it(root: str) -> None:
    from tripod.recovery.redaction import RedactionRequest, redact

    with Team(root) as team:
        seq = chat_send.send(team, "side", "bench", "a secret").seq
        redact(team, RedactionRequest((seq,), None, "r", "alex"))
    assert found(root) == []
    rows = read(database(root))
    head = {name: value for name, value in rows[seq].head.items() if name != "auth"}
    rows[seq] = rows[seq]._replace(head=head, auth=None)
    forge(root, rows)
    assert any(one.seq == seq and "nobody signed it" in one.message for one in found(root))


def test_an_entry_signed_twice_over_is_not_its_own_record(root: str) -> None:
    """A record that covers the entry, by its key, in another place than its header says."""
    rows = read(database(root))
    seq = max(s for s, r in enumerate(rows) if r.head["actor"] == "alex" and r.auth)
    other = resigned(rows[seq].saying(priority="low"), private(root, "alex"))
    rows[seq] = rows[seq]._replace(auth=other.auth)
    forge(root, rows)
    (one,) = found(root)
    assert (one.seq, "is not the one that its header names" in one.message) == (seq, True)


def audited(root: str, folder: Path) -> str:
    """What the auditor of exports says of this ledger, exported the plain way."""
    out = str(folder / "export")
    write_files(out, files_of(database(root)))
    tool = Path(__file__).parents[4] / "tools" / "audit_export.py"
    command = [sys.executable, str(tool), out]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def test_a_malformed_log_is_told_of_by_nobody(root: str, tmp_path: Path) -> None:
    """The Scribe has a key, and whoever finds the malformed entry may not use it."""
    with Team(root) as team:
        actors.enrol_actor(team, "scribe", keys.no_passphrase)
    with (Path(root) / "scribe/log.md").open("a") as log:
        log.write("\n---\n\n### D-x Malformed\n")
    with Team(root) as team:
        team.refresh()
    assert found(root) == []
    assert ": 0 wrong\n" in audited(root, tmp_path)
    rows = read(database(root))
    (seq,) = (s for s, r in enumerate(rows) if r.data.get("type") == "log-error")
    assert (rows[seq].head["actor"], rows[seq].data["source"]) == ("tripod", "scribe")
    rows[seq] = rows[seq].saying(type="decision-logged")
    forge(root, rows)
    assert [(one.seq, one.message) for one in found(root)] == [
        (seq, "it shows 'scribe' as who speaks, and 'tripod' did it")
    ]
