r"""How one key takes the place of another: a note that both sign. Pure.

The text has four lines, and names both keys as vkeys; no seal looks like it::

    tripod key rotation\n
    example.com/ledger\n
    example.com/ledger+93727de6+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4\n
    example.com/ledger+...\n

The old key's signature says who may follow it, the new one's that its holder has it.
"""

from __future__ import annotations

from ledger.errors import MalformedError, NotVerifiedError
from ledger.note import Note, format_note, parse_note, sign, verify
from ledger.vkey import SigningKey, VerifierKey

__all__ = ["rotation_problem", "rotation_text", "sign_rotation"]


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
