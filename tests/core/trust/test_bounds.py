"""Earliest and latest time of an entry: which evidence counts, and for which side."""

import json
from pathlib import Path

import pytest
from drafts import anchor_received
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, POLICY, TIME, WITNESSES, format_policy

from tripod.chat import writer as chat_send
from tripod.cli import main
from tripod.ledger.tlog.note import Note, SigningKey, format_note
from tripod.ledger.tlog.policy import Policy
from tripod.ledger.tlog.seal import Seal, cosign_seal, format_seal, sign_seal
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.anchors.heads import Bound, KnownHead, bounds_by_heads, open_head, times_of_head

ROOT = b"r" * 32


def cosigned(size: int, seconds: int, witness: int = 0) -> Note:
    seal = Seal(LOG.name, size, ROOT)
    signature = cosign_seal(seal, WITNESSES[witness], seconds)
    return Note(format_seal(seal), (sign_seal(seal, LOG), signature))


def known(size: int, seconds: int | None = None, **fields: object) -> KnownHead:
    return KnownHead("git", "somewhere", Seal(LOG.name, size, ROOT), seconds, **fields)  # type: ignore[arg-type]


def looked(one: KnownHead, policy: Policy | None) -> KnownHead:
    """A head with the cosignatures that the policy lets count."""
    opening, problem = open_head(one, [LOG.verifier()], policy)
    assert problem == ""
    return opening


def test_a_date_is_a_claim_and_a_cosignature_is_none() -> None:
    assert times_of_head(known(5)) == []
    assert times_of_head(known(5, 100)) == [Bound(100, "somewhere", signed=False)]
    assert times_of_head(known(5, 100, stamped=True)) == [Bound(100, "somewhere", signed=True)]
    (bound,) = times_of_head(looked(known(5, note=cosigned(5, TIME)), POLICY))
    assert (bound.seconds, bound.signed) == (TIME, True)
    assert bound.by == "the witness witness.example/w1 (somewhere)"


@pytest.mark.parametrize("policy", [None, POLICY._replace(witnesses=()), POLICY])
def test_a_witness_that_nobody_knows_says_nothing(policy: Policy | None) -> None:
    assert times_of_head(looked(known(5, note=cosigned(5, TIME, witness=1)), policy)) == []


def test_a_clock_that_may_be_off_widens_both_sides() -> None:
    heads = [known(3, 100, seq=3, stamped=True, give=2), known(9, 200, stamped=True, give=2)]
    found = bounds_by_heads(5, heads)
    assert (found.not_before, found.not_after) == (
        Bound(98, "somewhere", signed=True),
        Bound(202, "somewhere", signed=True),
    )


def test_what_covers_it_bounds_it_above_and_receipts_before_it_below() -> None:
    heads = [
        known(5, 100),  # covers entries 0 to 4
        known(9, 200, stamped=True),
        known(9, 150),
        known(3, 50, seq=3),
        known(3, 40, seq=4, stamped=True),
        known(3, 300, seq=7),  # received behind the entry: no lower bound for it
    ]
    found = bounds_by_heads(6, heads)
    assert found.not_before == Bound(50, "somewhere", signed=False)
    assert found.not_before_signed == Bound(40, "somewhere", signed=True)
    assert found.not_after == Bound(150, "somewhere", signed=False)
    assert found.not_after_signed == Bound(200, "somewhere", signed=True)
    assert bounds_by_heads(9, heads)[2:] == (None, None)
    assert bounds_by_heads(3, heads)[:2] == (None, None)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 99), st.none() | st.integers(0, 9))),
    st.integers(0, 9),
)
def test_more_heads_never_widen_the_bounds(
    drawn: list[tuple[int, int, int | None]], seq: int
) -> None:
    heads = [known(size, seconds, seq=at) for size, seconds, at in drawn]
    before = bounds_by_heads(seq, heads[:-1])
    after = bounds_by_heads(seq, heads)
    if before.not_before is not None:
        assert after.not_before is not None
        assert after.not_before.seconds >= before.not_before.seconds
    if before.not_after is not None:
        assert after.not_after is not None
        assert after.not_after.seconds <= before.not_after.seconds


def test_the_command_tells_both_sides(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    root = adoption.init(str(tmp_path), project="x", origin=LOG.name, key=False).root
    (tmp_path / ".nbs/policy.tlog").write_bytes(format_policy(POLICY))
    with Team(root) as team:
        chat_send.create(team, "live", actor="ann")
        head = team.store.head()
        seal = Seal(LOG.name, head.size, head.root)
        signatures = (sign_seal(seal, LOG), cosign_seal(seal, WITNESSES[0], TIME))
        note = format_note(Note(format_seal(seal), signatures))
        team.append_apart(lambda: (anchor_received("witness", *head, "w1", note),))
        chat_send.create(team, "side", actor="ann")
        last = team.store.head().size - 1
    for seq, side in ((0, "not_after_signed"), (last, "not_before_signed")):
        with pytest.raises(SystemExit) as left:
            main(["show", str(seq), "--bounds", "--json", "-C", root])
        assert left.value.code == 0
        said = json.loads(capsysbinary.readouterr().out)
        assert said[side]["seconds"] == TIME
        others = {"not_after_signed", "not_before_signed"} - {side}
        assert [said[other] for other in others] == [None]


@pytest.mark.parametrize(
    ("own", "key", "bounds"),
    [
        (True, LOG, True),
        (False, LOG, False),
        (True, SigningKey(LOG.name, b"x" * 32), False),
    ],
)
def test_a_head_bounds_an_entry_that_is_this_ledgers_and_signed_by_its_key(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    own: bool,
    key: SigningKey,
    bounds: bool,
) -> None:
    root = adoption.init(str(tmp_path), project="x", origin=LOG.name, key=False).root
    (tmp_path / ".nbs/policy.tlog").write_bytes(format_policy(POLICY))
    with Team(root) as team:
        head = team.store.head()
    seal = Seal(LOG.name, head.size, head.root if own else ROOT)
    pin = tmp_path / "pin"
    pin.write_bytes(format_note(Note(format_seal(seal), (sign_seal(seal, key),))))
    with pytest.raises(SystemExit) as left:
        main(["show", "0", "--bounds", "--pin", str(pin), "--json", "-C", root])
    assert left.value.code == 0
    assert (json.loads(capsysbinary.readouterr().out)["not_after"] is not None) == bounds


@pytest.mark.parametrize(
    "words",
    [("x-1", "--bounds"), ("--bounds",), ("0", "--pin", "x"), ("0", "--bounds", "--pin", "x")],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = adoption.init(str(tmp_path), project="x", origin=LOG.name, key=False).root
    with pytest.raises(SystemExit) as left:
        main(["show", *words, "-C", root])
    assert left.value.code == 2


def test_an_entry_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    root = adoption.init(str(tmp_path), project="x", origin=LOG.name, key=False).root
    with pytest.raises(SystemExit) as left:
        main(["show", "99", "--bounds", "-C", root])
    assert left.value.code == 1
