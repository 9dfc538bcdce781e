r"""Seals: the head of a log as a text that keys sign; rotations and forks of that key. Pure.

C2SP calls the format *tlog-checkpoint*; here a checkpoint is something else, see decision 0002.
A seal is the text of a signed note (``tripod.ledger.tlog.note``): origin, size, root.

>>> format_seal(Seal("example.com/ledger", 0, EMPTY_ROOT))
'example.com/ledger\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n'

The log signs it with a key that bears the origin as its name. There is no time in it: time comes
from cosignatures, which others add, each with its own clock. Never sign two seals of one origin
that are not of one growing tree: the caller must remember what was signed.

Other logs may write extension lines after the root. We write none: no monitor audits them. The
first line of a rotation and of a fork holds spaces, and no origin does: neither text is a seal.

Source: spec: tlog-formats 3 and 4; ``docs/formats/seals.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tripod.ledger.errors import LedgerError, MalformedError, NotVerifiedError
from tripod.ledger.merkle import EMPTY_ROOT
from tripod.ledger.tlog.note import (
    COSIGNATURE,
    ED25519,
    MAX_SIZE,
    Note,
    Signature,
    SigningKey,
    VerifierKey,
    cosign_note,
    format_base64,
    format_note,
    name_problem,
    note_cosignature_time,
    note_text_problem,
    parse_base64,
    parse_decimal,
    parse_note,
    sign,
    verify,
)

MAX_ORIGIN = 255  # bytes: cosignatures of type 0x06 give its length in one byte


class Seal(NamedTuple):
    """The head of a log: a ``root`` of 32 bytes; ``extensions`` are lines that others' logs add."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()


class Cosignature(NamedTuple):
    """A cosigner's key, and when it says that it saw the seal (seconds since 1970)."""

    key: VerifierKey
    seconds: int


class OpenedSeal(NamedTuple):
    """A seal that its log signed, with the keys that did and the cosignatures beside them."""

    seal: Seal
    signers: tuple[VerifierKey, ...]
    cosignatures: tuple[Cosignature, ...]


def format_seal(seal: Seal) -> str:
    """Write the text that is signed (MalformedError: a part of the seal is invalid)."""
    _check(seal)
    lines = (seal.origin, str(seal.size), format_base64(seal.root), *seal.extensions)
    return "\n".join(lines) + "\n"


def parse_seal(text: str, *, extensions: bool = False) -> Seal:
    """Read the text of a seal (MalformedError: which line); ``extensions``: they may follow."""
    lines = text.split("\n")
    if len(lines) < 4 or lines[-1]:
        raise MalformedError("seal: not three whole lines: origin, size, root")
    size = parse_decimal(lines[1], "seal: line 2, the size")
    root = parse_base64(lines[2], "seal: line 3, the root")
    seal = Seal(lines[0], size, root, tuple(lines[3:-1]))
    if seal.extensions and not extensions:
        raise MalformedError("seal: line 4 is an extension line, and none is accepted here")
    _check(seal)
    return seal


def read_seal(note: bytes) -> Seal:
    """The seal in a note; no signature is checked (MalformedError: it is not a seal)."""
    return parse_seal(parse_note(note).text)


def sign_seal(seal: Seal, key: SigningKey) -> Signature:
    """Sign the seal as its log. Whether it may be signed (never back, never aside) is not asked.

    A seal that is invalid or has extensions, or another's key, is a MalformedError.
    """
    if seal.extensions:
        raise MalformedError("seal: no extension lines are signed here")
    if key.name != seal.origin:
        raise MalformedError(
            f"seal: the key {key.name!r} does not speak for the log {seal.origin!r}"
        )
    return sign(format_seal(seal), key)


def cosign_seal(seal: Seal, key: SigningKey, seconds: int) -> Signature:
    """Vouch, at ``seconds`` since 1970, for another's seal; the caller checked its consistency."""
    return cosign_note(format_seal(seal), key, seconds)


def open_seal(
    note: Note | bytes,
    logs: Sequence[VerifierKey],
    witnesses: Sequence[VerifierKey] = (),
    *,
    extensions: bool = False,
) -> OpenedSeal:
    """Read the seal in a note, if a log that is trusted here signed it.

    A log's key (of type 0x01) counts only for the origin that bears its name: the signature of one
    log over the seal of another says nothing, and no more do the cosignatures of witnesses (keys of
    type 0x04) alone. How many witnesses are enough is for ``tripod.ledger.tlog.policy`` to say.
    ``extensions``: lines after the root are accepted.

    Raises:
        MalformedError: the text is no seal, or a key is not of the type that its place asks for.
        NotVerifiedError: a signature by one of the keys is bad, or the log's is missing.
    """
    note = parse_note(note) if isinstance(note, bytes) else note
    for keys, kind, role in ((logs, ED25519, "log"), (witnesses, COSIGNATURE, "witness")):
        for key in keys:
            if key.kind != kind:
                raise MalformedError(
                    f"seal: the key of the {role} {key.name} is not of type 0x{kind:02x}"
                )
    seal = parse_seal(note.text, extensions=extensions)
    known = {(key.name, key.key_id): key for key in (*logs, *witnesses)}
    signers, cosignatures = [], []
    for signature in verify(note, (*logs, *witnesses)):
        key = known[signature.name, signature.key_id]
        if key.kind == COSIGNATURE:
            cosignatures.append(Cosignature(key, note_cosignature_time(signature)))
        elif key.name == seal.origin:
            signers.append(key)
    if not signers:
        raise NotVerifiedError(f"seal: no trusted key of the log {seal.origin!r} signed it")
    return OpenedSeal(seal, tuple(signers), tuple(cosignatures))


def _check(seal: Seal) -> None:
    problem = name_problem(seal.origin)
    if problem is not None:
        problem = f"the origin {seal.origin[:100]!r} {problem}"
    elif len(seal.origin.encode()) > MAX_ORIGIN:
        problem = f"the origin takes more than {MAX_ORIGIN} bytes"
    elif not 0 <= seal.size <= MAX_SIZE:
        problem = f"the size {seal.size} is not from 0 to 2^63-1"
    elif len(seal.root) != 32:
        problem = f"the root has {len(seal.root)} bytes, not 32"
    elif seal.size == 0 and seal.root != EMPTY_ROOT:
        problem = "the size is 0, and the root is not that of the empty tree, SHA-256 of nothing"
    for number, line in enumerate(seal.extensions, 4):
        if problem is None and (not line or "\n" in line or note_text_problem(line) is not None):
            problem = f"line {number} is no extension line: empty, or more than a line of text"
    if problem is not None:
        raise MalformedError(f"seal: {problem}")


def seal_rotation_text(origin: str, old: str, new: str) -> str:
    """What both keys sign; ``old`` and ``new`` are vkeys."""
    return f"tripod key rotation\n{origin}\n{old}\n{new}\n"


def sign_rotation(origin: str, old: SigningKey, new: SigningKey) -> str:
    """The note by which ``new`` takes the place of ``old`` for the ledger ``origin``."""
    text = seal_rotation_text(origin, old.verifier().format(), new.verifier().format())
    return format_note(Note(text, (sign(text, old), sign(text, new)))).decode()


def rotation_problem(note: str, origin: str, old: VerifierKey, new: VerifierKey) -> str | None:
    """Whether both keys signed that one follows the other: None, or what is wrong."""
    try:
        parsed = parse_note(note.encode())
        if parsed.text != seal_rotation_text(origin, old.format(), new.format()):
            return "the note is about another rotation"
        signed = len(verify(parsed, (old, new)))
    except (MalformedError, NotVerifiedError, ValueError) as error:
        return str(error)
    return None if signed == 2 else "one of the two keys did not sign"


def seal_fork_text(origin: str, size: int, root: bytes, new: str) -> str:
    """What the key of the line ``origin`` signs: after ``size`` entries it continues as ``new``."""
    return f"tripod fork\n{origin}\n{size}\n{format_base64(root)}\n{new}\n"


def sign_fork(key: SigningKey, size: int, root: bytes, new: str) -> str:
    """The note by which ``key`` says that its ledger is left behind ``size`` entries."""
    text = seal_fork_text(key.name, size, root, new)
    return format_note(Note(text, (sign(text, key),))).decode()


def fork_signers(note: str, text: str, keys: Iterable[VerifierKey]) -> list[VerifierKey]:
    """Which of ``keys`` signed the text of a fork; none where the note is not of that ``text``.

    A note that is malformed, or has a bad signature by one of the keys, was signed by none.
    """
    known = list(keys)
    try:
        parsed = parse_note(note.encode())
        if parsed.text != text:
            return []
        signed = {(one.name, one.key_id) for one in verify(parsed, known)}
    except (LedgerError, ValueError):
        return []
    return [key for key in known if (key.name, key.key_id) in signed]
