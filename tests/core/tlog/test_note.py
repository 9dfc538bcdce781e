"""Signed notes: the vector, one spelling, and who is believed."""

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, OTHER_LOG, TIME, VECTORS, WITNESSES

from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.tlog.note import (
    COSIGNATURE,
    MAX_NOTE,
    MAX_SIGNATURES,
    Note,
    Signature,
    SigningKey,
    VerifierKey,
    cosign_note,
    format_note,
    name_problem,
    note_cosignature_message,
    note_cosignature_time,
    note_text_problem,
    parse_note,
    sign,
    verify,
)

VECTOR = VECTORS["note"]
DATA: bytes = VECTOR["note"].encode()
BODY: str = VECTOR["body"]
KEYS = [LOG.verifier(), WITNESSES[0].verifier()]

SIGNATURES = st.builds(
    Signature,
    st.text(min_size=1, max_size=9).filter(lambda name: name_problem(name) is None),
    st.binary(min_size=4, max_size=4),
    st.binary(min_size=1, max_size=80),
)
TEXTS = st.text(max_size=40).filter(lambda text: note_text_problem(text) is None)
NOTES = st.builds(
    Note,
    TEXTS.map(lambda text: text + "\n"),
    st.lists(SIGNATURES, min_size=1, max_size=20).map(tuple),
)


def stranger(number: int = 0) -> Signature:
    return Signature(f"stranger{number}", bytes(4), bytes(64))


def by(key: SigningKey, text: str = BODY) -> Signature:
    return sign(text, key) if key.kind != COSIGNATURE else cosign_note(text, key, TIME)


# Vectors ---------------------------------------------------------------------------------------


def test_the_vector_is_what_we_write() -> None:
    note = Note(BODY, (sign(BODY, LOG), cosign_note(BODY, WITNESSES[0], TIME)))
    assert sha256(BODY.encode()).hexdigest() == VECTOR["body sha256"]
    assert format_note(note) == DATA
    assert sha256(DATA).hexdigest() == VECTOR["note sha256"]


def test_the_vector_is_read_and_believed() -> None:
    note = parse_note(DATA)
    assert note.text == BODY
    assert verify(note, KEYS) == list(note.signatures)
    assert note_cosignature_message(BODY, TIME).decode() == VECTOR["cosignature message"]
    assert note_cosignature_time(note.signatures[1]) == TIME


def test_the_published_note_of_go() -> None:
    published = VECTORS["published"]["Go"]
    note = parse_note(published["note"].encode())
    assert verify(note, [VerifierKey.parse(published["vkey"])]) == list(note.signatures)
    signature = sign(note.text, SigningKey.parse(published["skey"]))
    assert format_note(Note(note.text, (signature,))).decode() == published["note"]


# One spelling ----------------------------------------------------------------------------------


@given(NOTES)
def test_a_note_comes_back(note: Note) -> None:
    assert parse_note(format_note(note)) == note


@given(st.text("a\n \u2014+=\u2028\r", max_size=60).map(lambda text: text.encode()))
def test_a_note_that_is_read_is_written_so(data: bytes) -> None:
    try:
        note = parse_note(data + "\n\n— a AAAAAAA=\n".encode())
    except MalformedError:
        return
    assert format_note(note).startswith(data)


def test_the_last_blank_line_ends_the_text() -> None:
    inner = Note(DATA.decode() + "\n\n", (stranger(),))
    assert parse_note(format_note(inner)) == inner
    shortest = Note("\n", (stranger(),))
    assert format_note(shortest).startswith("\n\n— ".encode())
    assert parse_note(format_note(shortest)) == shortest


def test_a_unicode_line_separator_ends_no_line() -> None:
    for separator in "\u2028\u2029\x85":
        note = Note(f"a{separator}— b AAAAAAA=\n", (stranger(),))
        assert parse_note(format_note(note)) == note


SIGNATURE = b64encode(bytes(68)).decode()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("", "no blank line"),
        ("a\n", "no blank line"),
        (f"\n— a {SIGNATURE}\n", "no blank line"),
        ("a\n\n", "0 signatures"),
        (f"a\n\n— a {SIGNATURE}", "does not end in a newline"),
        (f"a\n\n— a {SIGNATURE}\n\n", "0 signatures"),
        (f"a\n\n— a {SIGNATURE}\nb\n", "line 4: a signature line begins with an em dash"),
        (f"a\n\n- a {SIGNATURE}\n", "line 3: a signature line begins with an em dash"),
        (f"a\n\n—a {SIGNATURE}\n", "line 3: a signature line begins with an em dash"),
        (f"a\n\n— a  {SIGNATURE}\n", "line 3: not base64"),
        (f"a\n\n— a {SIGNATURE} \n", "line 3: not base64"),
        (f"a\n\n— a\u00a0{SIGNATURE}\n", "line 3: "),
        (f"a\n\n—  {SIGNATURE}\n", "the key name '' is empty"),
        (f"a\n\n— a+b {SIGNATURE}\n", r"the key name 'a\+b' holds a '\+'"),
        (f"a\n\n— a\u2028b {SIGNATURE}\n", "holds white space"),
        (f"a\n\n— a\u3000b {SIGNATURE}\n", "holds white space"),
        ("a\n\n— a\n", "line 3: a signature takes 4 bytes of key ID and at least one more"),
        ("a\n\n— a AAAAAA==\n", "at least one more"),
        (f"a\n\n— a {SIGNATURE.rstrip('=')}\n", "line 3: not base64"),
        ("a\n\n— a AAAAAAB=\n", "line 3: base64 in another spelling"),
        (f"a\r\n\r\n— a {SIGNATURE}\r\n", r"line 1 holds '\\r'"),
        (f"a\tb\n\n— a {SIGNATURE}\n", r"line 1 holds '\\t'"),
        (f"a\n\n— a {SIGNATURE}\n\0", r"line 4 holds '\\x00'"),
    ],
)
def test_what_is_no_note(data: str, complaint: str) -> None:
    with pytest.raises(MalformedError, match=complaint):
        parse_note(data.encode())


@pytest.mark.parametrize(
    ("note", "complaint"),
    [
        (Note("", (stranger(),)), "does not end in a newline"),
        (Note("a", (stranger(),)), "does not end in a newline"),
        (Note("a\r\n", (stranger(),)), "control character"),
        (Note("\ud800\n", (stranger(),)), "half a character"),
        (Note("a\n", ()), "0 signatures"),
        (Note("a\n", (stranger(), stranger()._replace(name="a b"))), "signature 2: the key name"),
        (Note("a\n", (stranger()._replace(key_id=bytes(3)),)), "signature 1: "),
        (Note("a\n", (stranger()._replace(data=b""),)), "signature 1: "),
        (Note("a" * MAX_NOTE + "\n", (stranger(),)), "at most 1048576 are written"),
    ],
)
def test_what_is_not_written(note: Note, complaint: str) -> None:
    with pytest.raises(MalformedError, match=complaint):
        format_note(note)


def test_the_caps() -> None:
    many = Note("a\n", tuple(stranger(number) for number in range(MAX_SIGNATURES)))
    assert parse_note(format_note(many)) == many
    with pytest.raises(MalformedError, match="101 signatures"):
        format_note(Note("a\n", (*many.signatures, stranger())))
    with pytest.raises(MalformedError, match="101 signatures"):
        parse_note(format_note(many) + f"— a {SIGNATURE}\n".encode())
    with pytest.raises(MalformedError, match="at most 1048576 are read"):
        parse_note(bytes(MAX_NOTE + 1))


# Who is believed -------------------------------------------------------------------------------


def test_unknown_keys_are_ignored_and_known_ones_given_in_order() -> None:
    signatures = (stranger(), by(WITNESSES[0]), by(OTHER_LOG), stranger(), by(LOG))
    assert verify(Note(BODY, signatures), KEYS) == [by(WITNESSES[0]), by(LOG)]


def test_a_known_key_is_name_and_id_together() -> None:
    signature = by(LOG)
    for other in (
        signature._replace(name=OTHER_LOG.name),
        signature._replace(key_id=OTHER_LOG.verifier().key_id),
        signature._replace(name=OTHER_LOG.name, data=bytes(64)),
    ):
        with pytest.raises(NotVerifiedError, match="signed by no key that is trusted here"):
            verify(Note(BODY, (other,)), KEYS)


def test_a_failed_signature_of_a_known_key_refuses_the_note() -> None:
    bad = by(LOG)._replace(data=bytes(64))
    for signatures in [(bad,), (bad, by(WITNESSES[0])), (by(WITNESSES[0]), bad), (by(LOG), bad)]:
        with pytest.raises(NotVerifiedError, match=r"example.com/ledger \(93727de6\), and it is"):
            verify(Note(BODY, signatures), KEYS)
    assert verify(Note(BODY, (bad, by(WITNESSES[0]))), KEYS[1:]) == [by(WITNESSES[0])]


def test_a_key_counts_once_however_often_it_signed() -> None:
    later = cosign_note(BODY, WITNESSES[0], TIME + 1)
    note = Note(BODY, (by(LOG), by(LOG), by(WITNESSES[0]), later))
    assert verify(note, [*KEYS, *KEYS]) == [by(LOG), by(WITNESSES[0])]


def test_nobody_signed_who_is_trusted() -> None:
    with pytest.raises(NotVerifiedError, match=r"signed by no key that is trusted here \(none\)"):
        verify(parse_note(DATA), [])
    with pytest.raises(NotVerifiedError, match=r"trusted here .example.com/other"):
        verify(parse_note(DATA), [OTHER_LOG.verifier()])


def test_two_trusted_keys_must_differ_in_name_or_id() -> None:
    class Twin(VerifierKey):
        """Another key whose ID is the same: 4 bytes can be met by trying."""

        key_id = KEYS[0].key_id

    twin = Twin(LOG.name, LOG.kind, bytes(32))
    with pytest.raises(MalformedError, match=r"two trusted keys are both example.com/ledger"):
        verify(parse_note(DATA), [KEYS[0], twin])


def test_sixteen_signatures_and_more_are_accepted() -> None:
    keys = [SigningKey(f"key{number}", bytes([number]) * 32) for number in range(MAX_SIGNATURES)]
    note = parse_note(format_note(Note(BODY, tuple(by(key) for key in keys))))
    assert len(verify(note, [key.verifier() for key in keys])) == MAX_SIGNATURES


@given(TEXTS.map(lambda text: text + "\n"), st.integers(0, 2**64 - 1))
def test_what_is_signed_verifies_and_nothing_else(text: str, seconds: int) -> None:
    plain, timed = sign(text, LOG), cosign_note(text, WITNESSES[0], seconds)
    assert verify(Note(text, (plain, timed)), KEYS) == [plain, timed]
    assert note_cosignature_time(timed) == seconds
    assert sign(text, LOG) == plain  # the same bytes each time
    for signature, key in [(plain, KEYS[0]), (timed, KEYS[1])]:
        # Signed without the last newline, or with the blank line, it is the signature of
        # another text.
        for other in (text + "\n", "\n" + text, "a" + text):
            with pytest.raises(NotVerifiedError):
                verify(Note(other, (signature,)), [key])


def test_no_bit_of_a_note_can_change() -> None:
    note = parse_note(DATA)
    for at in range(len(DATA)):
        for bit in range(8):
            other = bytearray(DATA)
            other[at] ^= 1 << bit
            try:
                changed = parse_note(bytes(other))
                believed = verify(changed, KEYS)
            except (MalformedError, NotVerifiedError):
                continue
            # One signature was made a stranger's, the other stands, and so does the text.
            assert changed.text == note.text
            assert len(believed) == 1
            assert believed[0] in note.signatures


# What is not signed ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "a", "a\r\n", "a\tb\n", "\ud800\n"])
def test_a_text_that_no_note_may_hold_is_not_signed(text: str) -> None:
    with pytest.raises(MalformedError, match="note: "):
        sign(text, LOG)
    with pytest.raises(MalformedError, match="note: "):
        cosign_note(text, WITNESSES[0], TIME)


def test_each_type_of_key_signs_in_its_own_way() -> None:
    with pytest.raises(MalformedError, match=r"witness.example/w1 is a key for cosignatures"):
        sign(BODY, WITNESSES[0])
    with pytest.raises(MalformedError, match=r"example.com/ledger is not a key for cosignatures"):
        cosign_note(BODY, LOG, TIME)
    for seconds in (-1, 2**64):
        with pytest.raises(MalformedError, match="no room for the time"):
            cosign_note(BODY, WITNESSES[0], seconds)
    with pytest.raises(MalformedError, match="is no Ed25519 cosignature"):
        note_cosignature_time(by(LOG))
