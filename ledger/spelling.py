"""Base64, decimals and text as the C2SP formats spell them, each value in one way only. Pure.

The notes, seals, tiles, proofs and policies of this package read and write through these pairs;
nothing else has a use for them.

Source: spec: tlog-formats 2, 3 and its errors 2a.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

from ledger.errors import MalformedError

MAX_SIZE = 2**63 - 1
"""Largest size or index: what a signed 64-bit number of another tool holds."""

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
_REFUSED = re.compile("[\x00-\x09\x0b-\x1f\ud800-\udfff]")


def format_base64(data: bytes) -> str:
    """Write bytes in standard base64 with padding."""
    return b64encode(data).decode("ascii")


def parse_base64(text: str, where: str) -> bytes:
    """Read standard base64 with padding, in its one spelling.

    Raises:
        MalformedError: anything else; ``where`` begins the message.
    """
    try:
        data = b64decode(text, validate=True)
    except ValueError as error:  # binascii.Error, or text that is not ASCII
        raise MalformedError(f"{where}: not base64: {text[:100]!r}") from error
    # Bits that padding leaves over may be set, and the decoder lets them pass.
    if format_base64(data) != text:
        raise MalformedError(
            f"{where}: base64 in another spelling than {format_base64(data)[:100]!r}"
        )
    return data


def parse_decimal(text: str, where: str) -> int:
    """Read a count from 0 to ``MAX_SIZE``: ASCII digits, no sign, no leading zero.

    Raises:
        MalformedError: anything else; ``where`` begins the message.
    """
    if not _DECIMAL.fullmatch(text) or int(text) > MAX_SIZE:
        raise MalformedError(
            f"{where}: not a decimal from 0 to 2^63-1 without leading zeros: {text[:100]!r}"
        )
    return int(text)


def parse_text(data: bytes, limit: int, where: str) -> str:
    r"""Read UTF-8 of at most ``limit`` bytes whose only control character is ``\n``.

    Raises:
        MalformedError: anything else; ``where`` begins the message.
    """
    if len(data) > limit:
        raise MalformedError(f"{where}: {len(data)} bytes, at most {limit} are read")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"{where}: not UTF-8 at byte {error.start}") from error
    problem = text_problem(text)
    if problem is not None:
        raise MalformedError(f"{where}: {problem}")
    return text


def text_problem(text: str) -> str | None:
    r"""What keeps ``text`` out of a note: a control character below 0x20 that is no ``\n``.

    Half of a surrogate pair does too, which a Python string can hold and UTF-8 cannot. Lines end
    in ``\n`` alone: what Unicode calls a line separator is text as any other.
    """
    found = _REFUSED.search(text)
    if found is None:
        return None
    line = text.count("\n", 0, found.start()) + 1
    return f"line {line} holds {found[0]!r}, a control character or half a character"


def name_problem(name: str) -> str | None:
    """What keeps ``name`` from being the name of a key or the origin of a log, if anything."""
    if not name:
        return "is empty"
    if "+" in name:
        return "holds a '+'"
    if any(character.isspace() for character in name):
        return "holds white space"
    if text_problem(name) is not None:
        return "holds a control character or half a character"
    return None
