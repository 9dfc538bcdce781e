"""A key gives way to another by a note that both sign; nothing else passes for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, OTHER_LOG

from tripod.ledger.tlog.note import Note, SigningKey, format_note, parse_note, sign
from tripod.ledger.tlog.seal import rotation_problem, seal_rotation_text, sign_rotation

NEXT = SigningKey(LOG.name, bytes(range(160, 192)))
NOTE = sign_rotation(LOG.name, LOG, NEXT)


def judge(note: str, old: SigningKey = LOG, new: SigningKey = NEXT) -> str | None:
    return rotation_problem(note, LOG.name, old.verifier(), new.verifier())


def test_what_both_signed_is_accepted() -> None:
    assert judge(NOTE) is None
    assert NOTE.startswith(f"tripod key rotation\n{LOG.name}\n{LOG.verifier().format()}\n")


@pytest.mark.parametrize("signers", [(LOG,), (NEXT,), (LOG, LOG)], ids=["old", "new", "twice"])
def test_both_must_sign(signers: tuple[SigningKey, ...]) -> None:
    text = seal_rotation_text(LOG.name, LOG.verifier().format(), NEXT.verifier().format())
    note = Note(text, tuple(sign(text, key) for key in signers))
    assert judge(format_note(note).decode()) == "one of the two keys did not sign"


def test_it_is_about_these_two_keys_in_this_order_and_this_ledger() -> None:
    about_another = "the note is about another rotation"
    assert judge(NOTE, NEXT, LOG) == about_another
    assert judge(NOTE, LOG, OTHER_LOG) == about_another
    assert rotation_problem(NOTE, "x", LOG.verifier(), NEXT.verifier()) == about_another


@given(st.data())
def test_no_other_text_passes(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(NOTE) - 1))
    char = data.draw(st.characters().filter(lambda char: char != NOTE[at]))
    assert judge(NOTE[:at] + char + NOTE[at + 1 :]) is not None


def test_a_rotation_is_no_seal_and_says_what_it_is() -> None:
    assert parse_note(NOTE.encode()).text.count("\n") == 4
