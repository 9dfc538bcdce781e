"""Seals: the vector, one spelling, and whose signature speaks for a log."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, OTHER_LOG, TIME, VECTORS, WITNESSES, leaves_of, seal_of, sealed

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.merkle import EMPTY_ROOT
from tripod.ledger.tlog import seal as seal_module
from tripod.ledger.tlog.note import (
    MAX_SIZE,
    Note,
    format_note,
    name_problem,
    note_text_problem,
    parse_note,
)
from tripod.ledger.tlog.seal import (
    Cosignature,
    OpenedSeal,
    Seal,
    cosign_seal,
    format_seal,
    open_seal,
    parse_seal,
    sign_seal,
)

SEAL = seal_of(leaves_of([b"e%d" % number for number in range(7)]))
BODY: str = VECTORS["note"]["body"]
ROOT = "TL2ONYSUUEANTpxMCuf3HHmtRBD5rSxiRiL/X4YXMT0="
KEY = LOG.verifier()

LINES = st.text(min_size=1, max_size=20).filter(
    lambda line: note_text_problem(line) is None and "\n" not in line
)
SEALS = st.builds(
    Seal,
    st.text(min_size=1, max_size=60).filter(lambda name: name_problem(name) is None),
    st.integers(1, MAX_SIZE),
    st.binary(min_size=32, max_size=32),
    st.lists(LINES, max_size=3).map(tuple),
)


def test_the_examples_of_the_docstring() -> None:
    assert doctest.testmod(seal_module).failed == 0
    assert doctest.testmod(seal_module).attempted > 0


def test_the_vector() -> None:
    assert format_seal(SEAL) == BODY
    assert parse_seal(BODY) == SEAL
    assert format_note(sealed(SEAL)) == VECTORS["note"]["note"].encode()


@given(SEALS)
def test_a_seal_comes_back(seal: Seal) -> None:
    text = format_seal(seal)
    assert parse_seal(text, extensions=True) == seal
    if seal.extensions:
        with pytest.raises(MalformedError, match="line 4 is an extension line"):
            parse_seal(text)
    else:
        assert parse_seal(text) == seal


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not three whole lines"),
        (f"a\n7\n{ROOT}", "not three whole lines"),
        (f"a\n7\n{ROOT}\nb", "not three whole lines"),
        ("a\n7\n", "not three whole lines"),
        (f"\n7\n{ROOT}\n", "the origin '' is empty"),
        (f"a b\n7\n{ROOT}\n", "holds white space"),
        (f"a+b\n7\n{ROOT}\n", r"holds a '\+'"),
        (f"a\u2028b\n7\n{ROOT}\n", "holds white space"),
        (f"{'a' * 256}\n7\n{ROOT}\n", "the origin takes more than 255 bytes"),
        (f"a\n07\n{ROOT}\n", "line 2, the size: not a decimal"),
        (f"a\n+7\n{ROOT}\n", "line 2, the size: not a decimal"),
        (f"a\n-7\n{ROOT}\n", "line 2, the size: not a decimal"),
        (f"a\n7 \n{ROOT}\n", "line 2, the size: not a decimal"),
        (f"a\n\u0667\n{ROOT}\n", "line 2, the size: not a decimal"),
        (f"a\n\n{ROOT}\n", "line 2, the size: not a decimal"),
        (f"a\n{2**63}\n{ROOT}\n", "line 2, the size: not a decimal"),
        (f"a\r\n7\r\n{ROOT}\r\n", "line 2, the size: not a decimal"),
        (f"a\r\n7\n{ROOT}\n", "holds white space"),
        (f"a\n7\n{ROOT.rstrip('=')}\n", "line 3, the root: not base64"),
        (f"a\n7\n{ROOT[:-2]}1=\n", "line 3, the root: base64 in another spelling"),
        (f"a\n7\n{ROOT} \n", "line 3, the root: not base64"),
        (f"a\n7\n{'A' * 44}\n", "the root has 33 bytes, not 32"),
        ("a\n7\n\n", "the root has 0 bytes, not 32"),
        (f"a\n0\n{ROOT}\n", "not that of the empty tree"),
        (f"a\n0\n{'A' * 43}=\n", "not that of the empty tree"),
        (f"a\n7\n{ROOT}\n\n", "line 4 is no extension line"),
        (f"a\n7\n{ROOT}\nb\n\nc\n", "line 5 is no extension line"),
        (f"a\n7\n{ROOT}\nb\r\n", "line 4 is no extension line"),
    ],
)
def test_what_is_no_seal(text: str, complaint: str) -> None:
    with pytest.raises(MalformedError, match=f"seal: .*{complaint}"):
        parse_seal(text, extensions=True)


@pytest.mark.parametrize(
    "seal",
    [
        Seal("", 7, bytes(32)),
        Seal("a", -1, bytes(32)),
        Seal("a", MAX_SIZE + 1, bytes(32)),
        Seal("a", 7, bytes(31)),
        Seal("a", 0, bytes(32)),
        Seal("a", 7, bytes(32), ("",)),
        Seal("a", 7, bytes(32), ("b\nc",)),
        Seal("a", 7, bytes(32), ("b\rc",)),
    ],
)
def test_what_is_not_written(seal: Seal) -> None:
    with pytest.raises(MalformedError, match="seal: "):
        format_seal(seal)
    with pytest.raises(MalformedError):
        cosign_seal(seal, WITNESSES[0], TIME)


def test_the_empty_log_has_one_seal() -> None:
    empty = Seal("a", 0, EMPTY_ROOT)
    assert parse_seal(format_seal(empty)) == empty


def test_we_sign_for_the_log_that_the_key_is_named_after_and_without_extensions() -> None:
    with pytest.raises(MalformedError, match=r"does not speak for the log 'example.com/ledger'"):
        sign_seal(SEAL, OTHER_LOG)
    with pytest.raises(MalformedError, match="no extension lines are signed"):
        sign_seal(SEAL._replace(extensions=("b",)), LOG)


# Opening ---------------------------------------------------------------------------------------


def test_a_seal_is_opened_with_who_signed_and_when() -> None:
    keys = [key.verifier() for key in WITNESSES]
    note = sealed(SEAL, witnesses=2)
    assert open_seal(note, [OTHER_LOG.verifier(), KEY], keys) == OpenedSeal(
        SEAL, (KEY,), (Cosignature(keys[0], TIME), Cosignature(keys[1], TIME))
    )
    assert open_seal(note, [KEY]) == OpenedSeal(SEAL, (KEY,), ())


def test_witnesses_alone_make_no_seal() -> None:
    note = sealed(SEAL)
    without = Note(note.text, note.signatures[1:])
    with pytest.raises(NotVerifiedError, match=r"no trusted key of the log 'example.com/ledger'"):
        open_seal(without, [KEY], [WITNESSES[0].verifier()])


def test_one_log_does_not_speak_for_another() -> None:
    foreign = SEAL._replace(origin=OTHER_LOG.name)
    signature = sign_seal(SEAL, LOG)._replace(data=LOG.sign(format_seal(foreign).encode()))
    with pytest.raises(NotVerifiedError, match=r"no trusted key of the log 'example.com/other'"):
        open_seal(Note(format_seal(foreign), (signature,)), [KEY, OTHER_LOG.verifier()])


def test_a_cosignature_of_another_seal_refuses_all() -> None:
    note = sealed(SEAL)
    other = cosign_seal(SEAL._replace(size=8), WITNESSES[0], TIME)
    with pytest.raises(NotVerifiedError, match="refuse all of this note"):
        open_seal(
            note._replace(signatures=(note.signatures[0], other)), [KEY], [WITNESSES[0].verifier()]
        )


def test_keys_stand_in_their_places() -> None:
    with pytest.raises(MalformedError, match=r"the log witness.example/w1 is not of type 0x01"):
        open_seal(sealed(SEAL), [WITNESSES[0].verifier()])
    with pytest.raises(MalformedError, match=r"the witness example.com/ledger is not of type 0x04"):
        open_seal(sealed(SEAL), [KEY], [KEY])


def test_extensions_of_another_log_are_opened_if_asked_for() -> None:
    text = BODY + "extension\n"
    signature = sign_seal(SEAL, LOG)._replace(data=LOG.sign(text.encode()))
    note = parse_note(format_note(Note(text, (signature,))))
    with pytest.raises(MalformedError, match="line 4 is an extension line"):
        open_seal(note, [KEY])
    assert open_seal(note, [KEY], extensions=True).seal.extensions == ("extension",)
