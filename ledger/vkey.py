r"""Keys of signed notes: what signs, what checks, and how each is written in one word. Pure.

A public key, a *vkey*, is written ``name+<8 hex digits of the key ID>+base64(type || key)``, a
private one, an *skey*, ``PRIVATE+KEY+name+<hex>+base64(type || seed)``.

- key ID = the first 4 bytes of SHA-256(name || 0x0A || type || public key).
- Two types are known here, both Ed25519: 0x01 signs a text as it stands, 0x04 cosigns it with a
  time (``cosignature_message``).

>>> key = VerifierKey.parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
>>> key.name, key.key_id.hex(), key.kind
('PeterNeumann', 'c74f20a3', 1)

``cryptography`` is imported by what signs and checks, not by this module: hot commands must start
fast. Where keys are kept is not decided here. Source: spec: tlog-formats 2 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from ledger.errors import MalformedError
from ledger.spelling import format_base64, name_problem, parse_base64

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
        """Write the key in one printable word, a vkey.

        Raises:
            MalformedError: the name or the type is none that a note may carry.
        """
        _check_key(self.name, self.kind, self.public, "public key")
        payload = format_base64(bytes([self.kind]) + self.public)
        return f"{self.name}+{self.key_id.hex()}+{payload}"

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read a vkey; only what ``format`` writes is accepted.

        Raises:
            MalformedError: anything else, among it a type of key that is not known here and a
                key ID that is not this key's.
        """
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
        message = cosignature_message(text, int.from_bytes(data[:8], "big"))
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
        """Take a key as it is (MalformedError: the name, the type or the seed is none)."""
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
        """Sign plain bytes: 64 bytes. ``ledger.note`` says which bytes a type of key signs."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)

    def format(self) -> str:
        """Write the key in one printable word, as Go writes an skey: a secret."""
        payload = format_base64(bytes([self.kind]) + self.seed)
        return f"{_PRIVATE}{self.name}+{self.verifier().key_id.hex()}+{payload}"

    @classmethod
    def parse(cls, text: str) -> SigningKey:
        """Read an skey; only what ``format`` writes is accepted. No message shows the text.

        Raises:
            MalformedError: anything else, among it a key ID that is not this key's.
        """
        if not text.startswith(_PRIVATE):
            raise MalformedError(f"private key: does not begin with {_PRIVATE}")
        name, key_id, kind, seed = _parse_key(text.removeprefix(_PRIVATE), "private key")
        key = cls(name, seed, kind)
        _check_key_id(key_id, key.verifier().key_id, "private key")
        return key


def cosignature_message(text: str, seconds: int) -> bytes:
    r"""What an Ed25519 cosignature signs.

    >>> cosignature_message("example.com/ledger\n", 1763757000)
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
    """Take a vkey apart, or what stands behind the mark of an skey; no message shows the key."""
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
            f"{where}: the part behind the key ID is not base64 in its one spelling"
        ) from None
    if not data:
        raise MalformedError(f"{where}: no key stands behind the key ID")
    _check_key(name, data[0], data[1:], where)
    return name, bytes.fromhex(key_id), data[0], data[1:]


def _check_key_id(given: bytes, key_id: bytes, where: str) -> None:
    if given != key_id:
        raise MalformedError(
            f"{where}: the key ID is {given.hex()}, that of this key {key_id.hex()}"
        )
