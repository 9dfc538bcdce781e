r"""The trailer of a commit that remembers a replica's head: its newest seal in one line. Pure.

::

    Tripod-Head: <replica> <size> <root> <signature>

- ``<replica>``: the replica's name, which ends in 16 hex digits of the SHA-256 of its public key;
- ``<size>`` and ``<root>`` (base64): lines 2 and 3 of the seal;
- ``<signature>``: what stands behind the name in the seal's line of the signature, base64 of key
  ID and signature.

What is signed is the text of the seal: origin (the name of the key), size and root, a line each.
So the public key gives the whole seal again (``trailer_seal``), and a trailer says nothing that the
seal does not say. A message may hold several, of squashed commits for example;
each counts where it stands at the beginning of a line.

Source: spec: replicas 3; ``docs/formats/record.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from tripod.ledger.errors import MalformedError
from tripod.ledger.tlog.note import (
    Note,
    Signature,
    VerifierKey,
    format_base64,
    parse_base64,
    parse_decimal,
)
from tripod.ledger.tlog.seal import Seal, format_seal

TRAILER = "Tripod-Head"

_LINE = re.compile(
    rb"^Tripod-Head: (?P<replica>[A-Za-z0-9_-]{1,111}-[0-9a-f]{16}) (?P<size>[0-9]{1,19})"
    rb" (?P<root>[A-Za-z0-9+/]{43}=) (?P<signature>[A-Za-z0-9+/=]{92})[ \t\r]*$",
    re.MULTILINE,
)
_ANY = re.compile(rb"^Tripod-Head:[^\n]*\n?", re.MULTILINE)
_ID = 4  # bytes of a key ID
KEY_DIGITS = 16  # at the end of a replica's name


class Trailer(NamedTuple):
    """What a trailer says: size and root, and the signature with its key ID before it."""

    replica: str
    size: int
    root: bytes
    signature: bytes


def key_digits(vkey: str) -> str:
    """The digits of a public key at the end of the names of its replica."""
    return sha256(vkey.encode()).hexdigest()[:KEY_DIGITS]


def format_trailer(replica: str, seal: Seal, signature: Signature) -> bytes:
    """Write the trailer of a seal, without a line break."""
    signed = format_base64(signature.key_id + signature.data)
    return f"{TRAILER}: {replica} {seal.size} {format_base64(seal.root)} {signed}".encode()


def parse_trailers(message: bytes) -> Iterator[Trailer]:
    """Every trailer in the message of a commit; what is not of the form is passed over."""
    for found in _LINE.finditer(message):
        try:
            replica, size, root, signature = (part.decode() for part in found.groups())
            yield Trailer(
                replica,
                parse_decimal(size, TRAILER),
                parse_base64(root, TRAILER),
                parse_base64(signature, TRAILER),
            )
        except (MalformedError, UnicodeDecodeError):
            continue


def drop_trailers(message: bytes) -> bytes:
    """A message without the lines of any trailer of ours."""
    return _ANY.sub(b"", message)


def trailer_seal(trailer: Trailer, key: VerifierKey) -> tuple[Seal, Note]:
    """The seal that a trailer is of, if ``key`` made it (MalformedError: it cannot be one).

    Who signed it is for ``open_seal`` to check.
    """
    seal = Seal(key.name, trailer.size, trailer.root)
    signed = Signature(key.name, trailer.signature[:_ID], trailer.signature[_ID:])
    return seal, Note(format_seal(seal), (signed,))
