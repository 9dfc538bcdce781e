r"""Signed notes (C2SP signed-note): a text, and who vouches for it with which key. Pure.

::

    <text, ends in \n>
    \n                                  the last blank line ends the text
    — <key name> <base64(key ID || signature)>\n       one line a signature

- Signed is the text with its last newline, without the blank line.
- Keys, their names and types are in ``ledger.vkey``. Source: spec: tlog-formats 2 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ledger.errors import MalformedError, NotVerifiedError
from ledger.spelling import format_base64, name_problem, parse_base64, parse_text, text_problem
from ledger.vkey import COSIGNATURE, ED25519, SigningKey, VerifierKey, cosignature_message

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


# Notes -----------------------------------------------------------------------------------------


def format_note(note: Note) -> bytes:
    """Write a note.

    Raises:
        MalformedError: the text does not end in a newline or holds a control character; a name
            or a signature is none; no signature, or more than 100; more than 1 MiB.
    """
    _check_text(note.text)
    lines = []
    for number, signature in enumerate(note.signatures, 1):
        problem = _signature_problem(signature)
        if problem is not None:
            raise MalformedError(f"note: signature {number}: {problem}")
        payload = format_base64(signature.key_id + signature.data)
        lines.append(f"{_DASH}{signature.name} {payload}\n")
    _check_count(len(lines))
    data = f"{note.text}\n{''.join(lines)}".encode()
    if len(data) > MAX_NOTE:
        raise MalformedError(f"note: {len(data)} bytes, at most {MAX_NOTE} are written")
    return data


def parse_note(data: bytes) -> Note:
    """Read a note without judging its signatures; only what ``format_note`` writes is accepted.

    Raises:
        MalformedError: anything else, saying which line.
    """
    whole = parse_text(data, MAX_NOTE, "note")
    end = whole.rfind("\n\n") + 1
    if end == 0:
        raise MalformedError("note: no blank line between text and signatures")
    if not whole.endswith("\n"):
        raise MalformedError("note: the last line does not end in a newline")
    text, lines = whole[:end], whole[end + 1 :].split("\n")[:-1]
    _check_count(len(lines))
    first = text.count("\n") + 2
    signatures = [_parse_signature(line, first + n) for n, line in enumerate(lines)]
    return Note(text, tuple(signatures))


def verify(note: Note, keys: Iterable[VerifierKey]) -> list[Signature]:
    """The signatures of ``note`` that ``keys`` made: at least one, and one for each key.

    Signatures by other keys are ignored, whatever they say. Where a key signed more than once,
    each of its signatures must be good, and the first is given.

    Raises:
        NotVerifiedError: a signature that names one of ``keys`` is not that key's: the whole note
            is refused, however many others are good. Or none of ``keys`` signed.
        MalformedError: two of ``keys`` have one name and key ID.
    """
    known = _by_name(keys)
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
    """Sign ``text`` as it stands: without the blank line that a note puts behind it.

    The same text and key give the same bytes.

    Raises:
        MalformedError: the text is none that a note may hold, or the key is for cosignatures.
    """
    if key.kind != ED25519:
        raise MalformedError(
            f"{key.name} is a key for cosignatures: it signs with a time or not at all"
        )
    _check_text(text)
    return Signature(key.name, key.verifier().key_id, key.sign(text.encode()))


def cosign(text: str, key: SigningKey, seconds: int) -> Signature:
    """Sign ``text`` together with a time, in seconds since 1970.

    Raises:
        MalformedError: the text is none that a note may hold, the key is not one for
            cosignatures, or the time does not fit 64 bits.
    """
    if key.kind != COSIGNATURE:
        raise MalformedError(f"{key.name} is not a key for cosignatures")
    _check_text(text)
    if not 0 <= seconds <= _MAX_SECONDS:
        raise MalformedError(f"a cosignature has no room for the time {seconds}")
    data = seconds.to_bytes(8, "big") + key.sign(cosignature_message(text, seconds))
    return Signature(key.name, key.verifier().key_id, data)


def cosignature_time(signature: Signature) -> int:
    """When a cosignature says that it was made, in seconds since 1970: true once verified.

    Raises:
        MalformedError: the signature has no room for a time.
    """
    if len(signature.data) != 8 + 64:
        raise MalformedError(f"the signature of {signature.name} is no Ed25519 cosignature")
    return int.from_bytes(signature.data[:8], "big")


# Within ----------------------------------------------------------------------------------------


def _check_text(text: str) -> None:
    problem = text_problem(text)
    if problem is None and not text.endswith("\n"):
        problem = "the text does not end in a newline"
    if problem is not None:
        raise MalformedError(f"note: {problem}")


def _by_name(keys: Iterable[VerifierKey]) -> dict[tuple[str, bytes], VerifierKey]:
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for key in keys:
        other = known.setdefault((key.name, key.key_id), key)
        if other != key:
            raise MalformedError(
                f"two trusted keys are both {key.name} ({key.key_id.hex()}): keep one"
            )
    return known


def _parse_signature(line: str, number: int) -> Signature:
    where = f"note: line {number}"
    name, _, payload = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH):
        raise MalformedError(f"{where}: a signature line begins with an em dash and a space")
    data = parse_base64(payload, where)
    signature = Signature(name, data[:4], data[4:])
    problem = _signature_problem(signature)
    if problem is not None:
        raise MalformedError(f"{where}: {problem}")
    return signature


def _signature_problem(signature: Signature) -> str | None:
    problem = name_problem(signature.name)
    if problem is not None:
        return f"the key name {signature.name[:100]!r} {problem}"
    if len(signature.key_id) != 4 or not signature.data:
        return "a signature takes 4 bytes of key ID and at least one more"
    return None


def format_carried(lines: Iterable[str], note: Note) -> bytes:
    """Write lines and a note behind them: the frame of proofs, and of requests to a witness.

    Raises:
        MalformedError: the note is none.
    """
    return ("\n".join(lines) + "\n\n").encode() + format_note(note)


def parse_carried(data: bytes, limit: int, where: str) -> tuple[list[str], bytes]:
    """Part what ``format_carried`` writes; lines and note are for the caller to judge.

    Lines first: where the frame is cut at the note's own blank line, they say so.

    Raises:
        MalformedError: there is no such frame, or it takes over ``limit`` bytes.
    """
    head, blank, note = parse_text(data, limit, where).partition("\n\n")
    if not blank:
        raise MalformedError(f"{where}: no blank line between the hashes and the seal")
    return head.split("\n"), note.encode()


def _check_count(count: int) -> None:
    if not 1 <= count <= MAX_SIGNATURES:
        raise MalformedError(f"note: {count} signatures, from 1 to {MAX_SIGNATURES} are allowed")
