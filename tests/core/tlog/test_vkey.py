"""Keys: the vectors, one spelling, and what is refused."""

import doctest
from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed import LOG, VECTORS, WITNESSES

from tripod.ledger.errors import MalformedError
from tripod.ledger.tlog import note as vkey
from tripod.ledger.tlog.note import (
    COSIGNATURE,
    ED25519,
    SigningKey,
    VerifierKey,
    name_problem,
    note_cosignature_message,
    parse_note,
)

NAMES = st.text(min_size=1, max_size=20).filter(lambda name: name_problem(name) is None)
KINDS = st.sampled_from([ED25519, COSIGNATURE])
GO = VECTORS["published"]["Go"]


def test_the_examples_of_the_docstring() -> None:
    assert doctest.testmod(vkey).failed == 0
    assert doctest.testmod(vkey).attempted > 0


@pytest.mark.parametrize(("name", "key"), [("log", LOG), ("witness", WITNESSES[0])])
def test_the_vectors(name: str, key: SigningKey) -> None:
    vector = VECTORS["note"][name]
    public = key.verifier()
    assert public.public.hex() == vector["public"]
    assert public.key_id.hex() == vector["key id"]
    assert public.format() == vector["vkey"]
    assert VerifierKey.parse(vector["vkey"]) == public


def test_the_private_key_as_go_writes_it() -> None:
    assert LOG.format() == VECTORS["note"]["log"]["skey"]
    again = SigningKey.parse(LOG.format())
    assert (again.name, again.seed, again.kind) == (LOG.name, LOG.seed, LOG.kind)
    # The key of Go's own documentation, both halves.
    peter = SigningKey.parse(GO["skey"])
    assert peter.format() == GO["skey"]
    assert peter.verifier().format() == GO["vkey"]


@pytest.mark.parametrize("text", [VECTORS["published"]["C2SP example"], GO["vkey"]])
def test_published_keys_are_read_and_written_again(text: str) -> None:
    key = VerifierKey.parse(text)
    assert key.format() == text
    assert key.key_id.hex() == text.split("+")[1]


def test_the_note_of_go_is_signed_by_its_key() -> None:
    note = parse_note(GO["note"].encode())
    (signature,) = note.signatures
    assert VerifierKey.parse(GO["vkey"]).accepts(note.text, signature.data)
    assert SigningKey.parse(GO["skey"]).sign(note.text.encode()) == signature.data


@given(NAMES, KINDS, st.binary(min_size=32, max_size=32))
def test_keys_come_back(name: str, kind: int, key: bytes) -> None:
    public = VerifierKey(name, kind, key)
    assert VerifierKey.parse(public.format()) == public
    digest = sha256(name.encode() + b"\n" + bytes([kind]) + key).digest()
    assert public.key_id == digest[:4]
    private = SigningKey(name, key, kind)
    assert SigningKey.parse(private.format()).format() == private.format()


@given(st.integers(0, 200), st.characters(codec="ascii"))
def test_a_vkey_with_one_other_character_is_refused(at: int, other: str) -> None:
    text = VECTORS["note"]["log"]["vkey"]
    at %= len(text)
    if text[at] != other:
        with pytest.raises(MalformedError, match="public key"):
            VerifierKey.parse(text[:at] + other + text[at + 1 :])


def written(name: str, payload: bytes) -> str:
    """A vkey with the key ID that fits, whatever is in it."""
    key_id = sha256(name.encode() + b"\n" + payload).hexdigest()[:8]
    return f"{name}+{key_id}+{b64encode(payload).decode()}"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not of the form"),
        ("a+00000000", "not of the form"),
        (written("", b"\x01" + bytes(32)), "the name '' is empty"),
        (written("a b", b"\x01" + bytes(32)), "holds white space"),
        (written("a", b""), "no key stands"),
        (written("a", b"\x01" + bytes(31)), "31 bytes of Ed25519 key, not 32"),
        (written("a", b"\x04" + bytes(33)), "33 bytes of Ed25519 key, not 32"),
        (written("a", b"\x02" + bytes(32)), "type 0x02 is not known here"),
        (written("a", b"\x06" + bytes(1312)), "type 0x06 is not known here"),
        ("a+00000000+AQ", "not base64 in its one spelling"),
        ("a+00000000+AR==", "not base64 in its one spelling"),
        (written("a", b"\x01" + bytes(32)) + "\n", "not base64 in its one spelling"),
        ("a+000000000+AQ==", "not 8 small hex digits"),
        ("a+0000000g+AQ==", "not 8 small hex digits"),
        (VECTORS["note"]["log"]["vkey"].replace("93727de6", "93727DE6"), "8 small hex digits"),
        (VECTORS["note"]["log"]["vkey"].replace("93727de6", "93727de7"), "that of this key"),
        (VECTORS["note"]["log"]["vkey"].replace("ledger+", "other+"), "that of this key"),
    ],
)
def test_what_is_no_public_key(text: str, complaint: str) -> None:
    with pytest.raises(MalformedError, match=complaint):
        VerifierKey.parse(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (VECTORS["note"]["log"]["vkey"], "does not begin with"),
        (LOG.format() + "=", "one spelling"),
        (LOG.format().replace("93727de6", "20324abe"), "that of this key 93727de6"),
    ],
)
def test_what_is_no_private_key_and_no_message_shows_one(text: str, complaint: str) -> None:
    with pytest.raises(MalformedError, match=complaint) as caught:
        SigningKey.parse(text)
    assert text.rsplit("+", maxsplit=1)[-1] not in str(caught.value)


def test_a_key_that_could_not_be_written_is_not_made() -> None:
    with pytest.raises(MalformedError, match=r"holds a '\+'"):
        SigningKey("a+b", bytes(32))
    with pytest.raises(MalformedError, match="type 0xff"):
        SigningKey("a", bytes(32), 0xFF)
    with pytest.raises(MalformedError, match="0 bytes"):
        SigningKey("a", b"")
    with pytest.raises(MalformedError, match="type 0x100"):
        VerifierKey("a", 256, bytes(32)).format()


def test_a_private_key_is_not_shown_by_accident() -> None:
    assert repr(LOG) == "SigningKey('example.com/ledger', kind=1)"


def test_a_signature_is_of_one_text_one_key_and_one_time() -> None:
    text = "a\n"
    plain, witness = LOG.verifier(), WITNESSES[0].verifier()
    data = LOG.sign(text.encode())
    assert plain.accepts(text, data)
    assert not plain.accepts("b\n", data)
    assert not witness.accepts(text, bytes(8) + data)
    timed = bytes(7) + b"\x05" + WITNESSES[0].sign(note_cosignature_message(text, 5))
    assert witness.accepts(text, timed)
    assert not witness.accepts(text, bytes(7) + b"\x06" + timed[8:])
    assert not WITNESSES[1].verifier().accepts(text, timed)
    assert not VerifierKey(witness.name, 0xFF, witness.public).accepts(text, timed)
    for key, good in [(plain, data), (witness, timed)]:
        for other in (b"", good[:7], good[:8], good[:-1], good + b"\0"):
            assert not key.accepts(text, other)
