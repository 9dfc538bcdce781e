r"""What a log's key says of its own end: a rotation that both keys sign, and a fork. Pure.

The text has four lines, and names both keys as vkeys; no seal looks like it::

    tripod key rotation\n
    example.com/ledger\n
    example.com/ledger+93727de6+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4\n
    example.com/ledger+...\n

The old key's signature says who may follow it, the new one's that its holder has it.

A restored copy of a ledger goes on under a new name (``ledger.forked-from``). The old line's key
may sign that the line is left there::

    tripod fork\n
    example.com/ledger\n                              the line that is left
    7\n                                               how many of its entries the new line has
    TL2ONYSUUEANTpxMCuf3HHmtRBD5rSxiRiL/X4YXMT0=\n    the root of these
    example.com/ledger/fork/1\n                       the line that goes on
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger.errors import LedgerError, MalformedError, NotVerifiedError
from ledger.note import Note, format_note, parse_note, sign, verify
from ledger.spelling import format_base64
from ledger.vkey import SigningKey, VerifierKey


def rotation_text(origin: str, old: str, new: str) -> str:
    """What both keys sign; ``old`` and ``new`` are vkeys."""
    return f"tripod key rotation\n{origin}\n{old}\n{new}\n"


def sign_rotation(origin: str, old: SigningKey, new: SigningKey) -> str:
    """The note by which ``new`` takes the place of ``old`` for the ledger ``origin``."""
    text = rotation_text(origin, old.verifier().format(), new.verifier().format())
    return format_note(Note(text, (sign(text, old), sign(text, new)))).decode()


def rotation_problem(note: str, origin: str, old: VerifierKey, new: VerifierKey) -> str | None:
    """Whether both keys signed that one follows the other: None, or what is wrong."""
    try:
        parsed = parse_note(note.encode())
        if parsed.text != rotation_text(origin, old.format(), new.format()):
            return "the note is about another rotation"
        signed = len(verify(parsed, (old, new)))
    except (MalformedError, NotVerifiedError, ValueError) as error:
        return str(error)
    return None if signed == 2 else "one of the two keys did not sign"


def fork_text(origin: str, size: int, root: bytes, new: str) -> str:
    """What the key of the line ``origin`` signs: behind ``size`` entries it goes on as ``new``."""
    return f"tripod fork\n{origin}\n{size}\n{format_base64(root)}\n{new}\n"


def sign_fork(key: SigningKey, size: int, root: bytes, new: str) -> str:
    """The note by which ``key`` says that its ledger is left behind ``size`` entries."""
    text = fork_text(key.name, size, root, new)
    return format_note(Note(text, (sign(text, key),))).decode()


def fork_signers(note: str, text: str, keys: Iterable[VerifierKey]) -> list[VerifierKey]:
    """Which of ``keys`` signed that ``text`` (see ``fork_text``); none where the note is not of it.

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
