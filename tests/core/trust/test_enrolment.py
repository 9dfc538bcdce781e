"""How a key is put in force and how it ends: the notes, who must have signed them, and handles."""

from collections.abc import Sequence

import pytest
from sealed import LOG, OTHER_LOG

from tripod.ledger import CHANGE_IDS, actor_entry_id
from tripod.ledger.actors import (
    actor_change_problem,
    actor_change_text,
    actor_handle_problem,
    cosign_actor_change,
    read_actor_request,
    sign_actor_change,
)
from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.tlog.note import SigningKey

ANN = SigningKey("ann", b"a" * 32)
NEXT = SigningKey("ann", b"n" * 32)
KEY = ANN.verifier()
ORIGIN = LOG.name


def test_what_is_signed() -> None:
    lines = ["tripod actor key", ORIGIN, "1", "ann", KEY.format(), ""]
    assert actor_change_text(ORIGIN, 1, KEY) == "\n".join(lines)
    lines = ["tripod actor key revoked", ORIGIN, "2", "ann", KEY.format(), "stolen", ""]
    assert actor_change_text(ORIGIN, 2, KEY, "stolen") == "\n".join(lines)


@pytest.mark.parametrize(
    ("signers", "may", "problem"),
    [
        ([ANN], [], None),
        ([ANN, LOG], [LOG], None),
        ([ANN, NEXT], [NEXT, LOG], None),
        ([ANN, LOG], [], None),  # more than is asked for
        ([LOG], [LOG], "the key itself did not sign that"),
        ([ANN], [LOG], "example.com/ledger+93727de6+"),
        ([ANN], [NEXT, LOG], " nor example.com/ledger+93727de6+"),
        ([ANN, OTHER_LOG], [LOG], "did not sign that"),
        ([LOG], [], "signed by no key that is trusted here"),
    ],
)
def test_who_must_sign_an_enrolment(
    signers: Sequence[SigningKey], may: Sequence[SigningKey], problem: str | None
) -> None:
    note = sign_actor_change(ORIGIN, 3, KEY, signers)
    text = actor_change_text(ORIGIN, 3, KEY)
    found = actor_change_problem(note, text, (KEY,), [key.verifier() for key in may])
    assert (found is None) == (problem is None)
    assert problem is None or problem in (found or "")


@pytest.mark.parametrize(
    "text",
    [
        actor_change_text("example.com/other", 3, KEY),
        actor_change_text(ORIGIN, 4, KEY),
        actor_change_text(ORIGIN, 3, NEXT.verifier()),
        actor_change_text(ORIGIN, 3, KEY, "stolen"),
    ],
)
def test_a_note_is_about_one_change_alone(text: str) -> None:
    note = sign_actor_change(ORIGIN, 3, KEY, (ANN,))
    assert actor_change_problem(note, text, (KEY,), ()) == "the note is about another change"


def test_a_bad_signature_spoils_the_others() -> None:
    note = sign_actor_change(ORIGIN, 1, KEY, (ANN, LOG))
    first, second, third = note.rpartition("\u2014 ")
    broken = f"{first}{second}{third[:40]}{'A' if third[40] != 'A' else 'B'}{third[41:]}"
    problem = actor_change_problem(
        broken, actor_change_text(ORIGIN, 1, KEY), (KEY,), (LOG.verifier(),)
    )
    assert problem is not None
    assert "and it is not: refuse all of this note" in problem
    assert actor_change_problem("x", "x", (KEY,), ()) is not None
    assert actor_change_problem("\ud800", "x", (KEY,), ()) is not None


def test_a_request_is_signed_by_its_key_and_cosigned_by_who_may() -> None:
    request = sign_actor_change(ORIGIN, 2, KEY, (ANN,))
    assert read_actor_request(request, ORIGIN) == (2, KEY)
    note = cosign_actor_change(request, LOG)
    assert note == sign_actor_change(ORIGIN, 2, KEY, (ANN, LOG))


@pytest.mark.parametrize(
    ("note", "error", "says"),
    [
        ("no note", MalformedError, "note"),
        (sign_actor_change("example.com/other", 1, KEY, (ANN,)), MalformedError, "in the ledger"),
        (sign_actor_change(ORIGIN, 1, KEY, (ANN,), "why"), MalformedError, "no request"),
        (
            sign_actor_change(ORIGIN, 1, KEY, (ANN,)).replace("\n1\n", f"\n{'9' * 5000}\n", 1),
            MalformedError,
            "its number",
        ),  # Python reads no number of so many digits
        (sign_actor_change(ORIGIN, 1, KEY, (LOG,)), NotVerifiedError, "no key that is trusted"),
    ],
)
def test_what_is_no_request(note: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        read_actor_request(note, ORIGIN)


@pytest.mark.parametrize(
    ("handle", "problem"),
    [
        ("ann", None),
        ("scribe", None),
        ("söl-7", None),
        ("", "is empty"),
        ("a+b", "holds a '+'"),
        ("the parser", "holds white space"),
        ("x" * 64, "takes more than 63 bytes"),
        ("tripod", "is nobody's"),
        ("unknown", "is nobody's"),
        ("nbs-chat", "is nobody's"),
    ],
)
def test_which_handles_can_have_a_key(handle: str, problem: str | None) -> None:
    found = actor_handle_problem(handle)
    assert (found is None) == (problem is None)
    assert problem is None or (found or "").startswith(problem)


@pytest.mark.parametrize("handle", ["ann", "~", "é", "😀", "0", "Z", "-"])
def test_ids_of_changes_lie_together(handle: str) -> None:
    first, behind = CHANGE_IDS
    assert first <= actor_entry_id(handle, 12) < behind
    assert not first <= "0192f0c1-5a7e-7000-8000-000000000000" < behind
    assert not first <= "obs-1" < behind
