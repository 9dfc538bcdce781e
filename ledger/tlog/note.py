r"""Signed notes (C2SP signed-note): a text, its signatures, their keys and spelling. Pure.

::

    <text, ends in \n>
    \n                                  the last blank line ends the text
    — <key name> <base64(key ID || signature)>\n       one line a signature

- The signature covers the text with its last newline, without the blank line.
- A public key, a *vkey*, is written ``name+<8 hex digits of the key ID>+base64(type || key)``, a
  private one, an *skey*, ``PRIVATE+KEY+name+<hex>+base64(type || seed)``.
- key ID = the first 4 bytes of SHA-256(name || 0x0A || type || public key).
- Two types are known here, both Ed25519: 0x01 signs a text as it stands, 0x04 cosigns it with a
  time (``note_cosignature_message``).

>>> key = VerifierKey.parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
>>> key.name, key.key_id.hex(), key.kind
('PeterNeumann', 'c74f20a3', 1)

Signing and checking import ``cryptography``, this module does not: hot commands must start fast.
Source: spec: tlog-formats 2, 3 (errors 2a) and 4; ``docs/formats/seals.md``.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from tripod.ledger.errors import MalformedError, NotVerifiedError

MAX_SIZE = 2**63 - 1  # largest size or index: what a signed 64-bit number of another tool holds
MAX_HASHES = 63  # of a proof: a tree of 2^63 leaves is that high
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")


def format_base64(data: bytes) -> str:
    """Write bytes in standard base64 with padding."""
    return b2a_base64(data, newline=False).decode("ascii")


def parse_base64(text: str, where: str) -> bytes:
    """Read base64 with padding, in its one spelling (MalformedError: begins with ``where``)."""
    try:
        data = a2b_base64(text, strict_mode=True)
    except ValueError as error:  # binascii.Error, or text that is not ASCII
        raise MalformedError(f"{where}: not base64: {text[:100]!r}") from error
    # Bits that padding leaves over may be set, and the decoder lets them pass.
    if format_base64(data) != text:
        raise MalformedError(
            f"{where}: base64 in another spelling than {format_base64(data)[:100]!r}"
        )
    return data


def parse_decimal(text: str, where: str) -> int:
    """Read a count up to ``MAX_SIZE`` (MalformedError: begins with ``where``)."""
    if not _DECIMAL.fullmatch(text) or int(text) > MAX_SIZE:
        raise MalformedError(
            f"{where}: not a decimal from 0 to 2^63-1 without leading zeros: {text[:100]!r}"
        )
    return int(text)


def parse_note_text(data: bytes, limit: int, where: str) -> str:
    r"""Read at most ``limit`` bytes of UTF-8: no control character but ``\n`` (MalformedError)."""
    if len(data) > limit:
        raise MalformedError(f"{where}: {len(data)} bytes, at most {limit} are read")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"{where}: not UTF-8 at byte {error.start}") from error
    problem = note_text_problem(text)
    if problem is not None:
        raise MalformedError(f"{where}: {problem}")
    return text


def note_text_problem(text: str) -> str | None:
    r"""What keeps ``text`` out of a note: a control character below 0x20 that is no ``\n``.

    Half of a surrogate pair does too, which a Python string can hold and UTF-8 cannot. Lines end
    in ``\n`` alone: what Unicode calls a line separator is text as any other.
    """
    found = _CONTROL.search(text)
    at = -1 if found is None else found.start()
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = error.start if found is None else min(at, error.start)
    if at < 0:
        return None
    line = text.count("\n", 0, at) + 1
    return f"line {line} holds {text[at]!r}, a control character or half a character"


def name_problem(name: str) -> str | None:
    """What keeps ``name`` from being the name of a key or the origin of a log, if anything."""
    if not name:
        return "is empty"
    if "+" in name:
        return "holds a '+'"
    if any(character.isspace() for character in name):
        return "holds white space"
    if note_text_problem(name) is not None:
        return "holds a control character or half a character"
    return None


# Vkey -------------------------------------------------------------------------------------------


ED25519 = 0x01  # key type: signs the text
COSIGNATURE = 0x04  # key type: signs a time and the text

_KINDS = (ED25519, COSIGNATURE)
_PRIVATE = "PRIVATE+KEY+"
_KEY_ID = re.compile(r"[0-9a-f]{8}")


class VerifierKey(NamedTuple):
    """A public key: its name, its type (0x01 or 0x04) and 32 bytes of Ed25519."""

    name: str
    kind: int
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that, with the name, say which key made a signature."""
        return _key_id(self.name, self.kind, self.public)

    def format(self) -> str:
        """Write the key in one printable word, a vkey (MalformedError: a note may not carry it)."""
        _check_key(self.name, self.kind, self.public, "public key")
        payload = format_base64(bytes([self.kind]) + self.public)
        return f"{self.name}+{self.key_id.hex()}+{payload}"

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read a vkey; only what ``format`` writes is accepted, so no false key ID."""
        name, key_id, kind, public = _parse_key(text, "public key")
        key = cls(name, kind, public)
        _check_key_id(key_id, key.key_id, "public key")
        return key

    def accepts(self, text: str, data: bytes) -> bool:
        """Whether ``data`` of a signature line is a signature of ``text`` by this key."""
        # The width of what is left needs no check: cryptography accepts 64 bytes alone.
        if self.kind == ED25519:
            return _ed25519_accepts(self.public, data, text.encode())
        if self.kind != COSIGNATURE or len(data) < 8:
            return False
        message = note_cosignature_message(text, int.from_bytes(data[:8], "big"))
        return _ed25519_accepts(self.public, data[8:], message)

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Whether the key made ``signature`` over plain bytes, as ``SigningKey.sign`` does."""
        return self.kind == ED25519 and _ed25519_accepts(self.public, signature, message)


class SigningKey:
    """A private key: its name, its type (0x01 or 0x04) and the 32-byte seed of Ed25519.

    It is no tuple, so that nothing prints the seed by accident. Never give two keys one seed: a
    cosignature does not say whose it is, and a text can look like what a cosignature signs.
    """

    __slots__ = ("kind", "name", "seed")

    def __init__(self, name: str, seed: bytes, kind: int = ED25519) -> None:
        """Take a key as it is (MalformedError: the name, the type or the seed is invalid)."""
        _check_key(name, kind, seed, "private key")
        self.name = name
        self.kind = kind
        self.seed = seed

    def __repr__(self) -> str:
        return f"SigningKey({self.name!r}, kind={self.kind})"

    def verifier(self) -> VerifierKey:
        """The public key of this one."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        public = Ed25519PrivateKey.from_private_bytes(self.seed).public_key()
        return VerifierKey(self.name, self.kind, public.public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Sign plain bytes: 64 bytes. The module says which bytes a type of key signs."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)

    def format(self) -> str:
        """Write the key in one printable word, as Go writes an skey: a secret."""
        payload = format_base64(bytes([self.kind]) + self.seed)
        return f"{_PRIVATE}{self.name}+{self.verifier().key_id.hex()}+{payload}"

    @classmethod
    def parse(cls, text: str) -> SigningKey:
        """Read an skey; only what ``format`` writes is accepted. No message shows the text."""
        if not text.startswith(_PRIVATE):
            raise MalformedError(f"private key: does not begin with {_PRIVATE}")
        name, key_id, kind, seed = _parse_key(text.removeprefix(_PRIVATE), "private key")
        key = cls(name, seed, kind)
        _check_key_id(key_id, key.verifier().key_id, "private key")
        return key


def note_cosignature_message(text: str, seconds: int) -> bytes:
    r"""What an Ed25519 cosignature signs.

    >>> note_cosignature_message("example.com/ledger\n", 1763757000)
    b'cosignature/v1\ntime 1763757000\nexample.com/ledger\n'
    """
    return f"cosignature/v1\ntime {seconds}\n{text}".encode()


def _ed25519_accepts(public: bytes, signature: bytes, message: bytes) -> bool:
    verify, invalid = _loaded(public)
    try:
        verify(signature, message)
    except invalid:
        return False
    return True


# Who writes many entries is checked many times: what is asked of a key is kept.


@lru_cache(256)
def _loaded(public: bytes) -> tuple[Callable[[bytes, bytes], None], type[Exception]]:
    """What checks signatures of a key, and what it raises where one is bad."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(public).verify, InvalidSignature


@lru_cache(256)
def _key_id(name: str, kind: int, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]


def _check_key(name: str, kind: int, key: bytes, where: str) -> None:
    problem = name_problem(name)
    if problem is not None:
        raise MalformedError(f"{where}: the name {name[:100]!r} {problem}")
    if kind not in _KINDS:
        raise MalformedError(
            f"{where}: type 0x{kind:02x} is not known here, only 0x01 and 0x04 (Ed25519)"
        )
    if len(key) != 32:
        raise MalformedError(f"{where}: {len(key)} bytes of Ed25519 key, not 32")


def _parse_key(text: str, where: str) -> tuple[str, bytes, int, bytes]:
    """Take a vkey apart, or what stands after the mark of an skey; no message shows the key."""
    parts = text.split("+", 2)  # base64 may hold a '+' as well
    if len(parts) != 3:
        raise MalformedError(f"{where}: not of the form name+id+base64")
    name, key_id, payload = parts
    if not _KEY_ID.fullmatch(key_id):
        raise MalformedError(f"{where}: the key ID is not 8 small hex digits")
    try:
        data = parse_base64(payload, where)
    except MalformedError:
        raise MalformedError(
            f"{where}: the part after the key ID is not base64 in its one spelling"
        ) from None
    if not data:
        raise MalformedError(f"{where}: no key stands after the key ID")
    _check_key(name, data[0], data[1:], where)
    return name, bytes.fromhex(key_id), data[0], data[1:]


def _check_key_id(given: bytes, key_id: bytes, where: str) -> None:
    if given != key_id:
        raise MalformedError(
            f"{where}: the key ID is {given.hex()}, that of this key {key_id.hex()}"
        )


# Note -------------------------------------------------------------------------------------------


MAX_SIGNATURES = 100  # as golang.org/x/mod; the format demands that 16 be accepted
MAX_NOTE = 1024 * 1024  # bytes; a hundred post-quantum signatures take 350,000

_DASH = "\u2014 "
_MAX_SECONDS = 2**64 - 1


class Signature(NamedTuple):
    """One signature line: ``key_id`` has 4 bytes, ``data`` what the key's type says."""

    name: str
    key_id: bytes
    data: bytes


class Note(NamedTuple):
    """A text, ending in a newline, and its signatures, in their order."""

    text: str
    signatures: tuple[Signature, ...]


def format_note(note: Note) -> bytes:
    """Write a note (MalformedError: its text, a name or a signature is invalid, or too long)."""
    _check_text(note.text)
    lines = []
    for number, signature in enumerate(note.signatures, 1):
        _check_signature(signature, f"note: signature {number}")
        payload = format_base64(signature.key_id + signature.data)
        lines.append(f"{_DASH}{signature.name} {payload}\n")
    _check_count(len(lines))
    data = f"{note.text}\n{''.join(lines)}".encode()
    if len(data) > MAX_NOTE:
        raise MalformedError(f"note: {len(data)} bytes, at most {MAX_NOTE} are written")
    return data


def parse_note(data: bytes) -> Note:
    """Read a note, unjudged; only what ``format_note`` writes is accepted (MalformedError)."""
    whole = parse_note_text(data, MAX_NOTE, "note")
    end = whole.rfind("\n\n") + 1
    if end == 0:
        raise MalformedError("note: no blank line between text and signatures")
    if not whole.endswith("\n"):
        raise MalformedError("note: the last line does not end in a newline")
    text, lines = whole[:end], whole[end + 1 :].split("\n")[:-1]
    _check_count(len(lines))
    signatures = []
    for number, line in enumerate(lines, text.count("\n") + 2):
        where = f"note: line {number}"
        name, _, payload = line.removeprefix(_DASH).partition(" ")
        if not line.startswith(_DASH):
            raise MalformedError(f"{where}: a signature line begins with an em dash and a space")
        data = parse_base64(payload, where)
        signatures.append(Signature(name, data[:4], data[4:]))
        _check_signature(signatures[-1], where)
    return Note(text, tuple(signatures))


def verify(note: Note, keys: Iterable[VerifierKey]) -> list[Signature]:
    """The signatures of ``note`` that ``keys`` made: at least one, and one for each key.

    Signatures by other keys are ignored. Where a key signed more than once,
    each of its signatures must be good, and the first is given.

    Raises:
        NotVerifiedError: a signature that names one of ``keys`` is not that key's: the whole note
            is refused, however many others are good. Or none of ``keys`` signed.
        MalformedError: two of ``keys`` have one name and key ID.
    """
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for one in keys:
        if known.setdefault((one.name, one.key_id), one) != one:
            raise MalformedError(
                f"two trusted keys are both {one.name} ({one.key_id.hex()}): keep one"
            )
    good: dict[tuple[str, bytes], Signature] = {}
    for number, signature in enumerate(note.signatures, 1):
        identity = (signature.name, signature.key_id)
        key = known.get(identity)
        if key is None:
            continue
        if not key.accepts(note.text, signature.data):
            raise NotVerifiedError(
                f"note: signature {number} says it is by {signature.name} "
                f"({signature.key_id.hex()}), and it is not: refuse all of this note"
            )
        good.setdefault(identity, signature)
    if not good:
        trusted = ", ".join(f"{name} ({key_id.hex()})" for name, key_id in known) or "none"
        raise NotVerifiedError(f"note: signed by no key that is trusted here ({trusted})")
    return list(good.values())


# Signing ---------------------------------------------------------------------------------------


def sign(text: str, key: SigningKey) -> Signature:
    """Sign ``text`` as it stands (MalformedError: no note holds it, or a key for cosignatures)."""
    if key.kind != ED25519:
        raise MalformedError(
            f"{key.name} is a key for cosignatures: it signs with a time or not at all"
        )
    _check_text(text)
    return Signature(key.name, key.verifier().key_id, key.sign(text.encode()))


def cosign_note(text: str, key: SigningKey, seconds: int) -> Signature:
    """Sign ``text`` with a time in seconds since 1970 (MalformedError: text, key or time)."""
    if key.kind != COSIGNATURE:
        raise MalformedError(f"{key.name} is not a key for cosignatures")
    _check_text(text)
    if not 0 <= seconds <= _MAX_SECONDS:
        raise MalformedError(f"a cosignature has no room for the time {seconds}")
    data = seconds.to_bytes(8, "big") + key.sign(note_cosignature_message(text, seconds))
    return Signature(key.name, key.verifier().key_id, data)


def note_cosignature_time(signature: Signature) -> int:
    """When a cosignature says that it was made, in seconds since 1970: true once verified."""
    if len(signature.data) != 8 + 64:
        raise MalformedError(f"the signature of {signature.name} is no Ed25519 cosignature")
    return int.from_bytes(signature.data[:8], "big")


def _check_text(text: str) -> None:
    problem = note_text_problem(text)
    if problem is None and not text.endswith("\n"):
        problem = "the text does not end in a newline"
    if problem is not None:
        raise MalformedError(f"note: {problem}")


def _check_signature(signature: Signature, where: str) -> None:
    problem = name_problem(signature.name)
    if problem is not None:
        raise MalformedError(f"{where}: the key name {signature.name[:100]!r} {problem}")
    if len(signature.key_id) != 4 or not signature.data:
        raise MalformedError(f"{where}: a signature takes 4 bytes of key ID and at least one more")


def format_lines_and_note(lines: Iterable[str], note: Note) -> bytes:
    """Write lines and a note after them: the frame of proofs, and of requests to a witness."""
    return ("\n".join(lines) + "\n\n").encode() + format_note(note)


def parse_lines_and_note(data: bytes, limit: int, where: str) -> tuple[list[str], bytes]:
    """Part what ``format_lines_and_note`` writes; lines and note are for the caller to judge.

    Lines first: where the frame is cut at the note's own blank line, they say so.
    """
    head, blank, note = parse_note_text(data, limit, where).partition("\n\n")
    if not blank:
        raise MalformedError(f"{where}: no blank line between the hashes and the seal")
    return head.split("\n"), note.encode()


def hashes_problem(hashes: Sequence[bytes]) -> str | None:
    """What keeps hashes out of the lines of a proof or of a request to a witness."""
    if len(hashes) > MAX_HASHES:
        return f"{len(hashes)} hashes, at most {MAX_HASHES} are possible"
    return "a hash has not 32 bytes" if any(len(digest) != 32 for digest in hashes) else None


def _check_count(count: int) -> None:
    if not 1 <= count <= MAX_SIGNATURES:
        raise MalformedError(f"note: {count} signatures, from 1 to {MAX_SIGNATURES} are allowed")
