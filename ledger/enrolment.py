r"""How an actor's key is put in force, and how it ends: notes that name the ledger. Pure.

The changes of a handle's key are numbered from 1, and the entry of each has an id made of handle
and number (``ledger.ids``), so that none is made twice and all are found without a search.

To enrol, the new key signs these lines, and whoever may put it in force does::

    tripod actor key\n
    example.com/ledger\n              the ledger's name at that entry
    1\n                               the number of the change
    ann\n                             the handle
    ann+<8 hex>+<base64>\n            the key, a vkey that bears the handle as its name

To revoke, the first line is ``tripod actor key revoked``, and a last line says why; the key itself
need not sign.

Who may, at an entry: the key of the handle that is in force, and the key that seals the ledger.
Where there is neither, the last key that the handle had; and if it never had one, nobody is asked:
the first to come has the handle.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.errors import MalformedError, NotVerifiedError
from ledger.note import Note, format_note, parse_note, sign, verify
from ledger.spelling import name_problem
from ledger.vkey import SigningKey, VerifierKey

ENROLLED, REVOKED = "actor.enrolled", "actor.revoked"
CHANGES = (ENROLLED, REVOKED)
"""The kinds."""

NOBODYS = ("tripod", "unknown", "nbs-bus", "nbs-chat", "nbs-chat-terminal")
"""Actors that no one is: our own acts, what was found, and what tools tell by themselves."""

MAX_HANDLE = 63  # bytes, as the chats have it


def handle_problem(handle: str) -> str | None:
    """What keeps a handle from having a key, if anything."""
    problem = name_problem(handle)
    if problem is not None:
        return problem
    if len(handle.encode()) > MAX_HANDLE:
        return f"takes more than {MAX_HANDLE} bytes"
    return "is nobody's: tools act under it" if handle in NOBODYS else None


def change_text(origin: str, number: int, key: VerifierKey, reason: str | None = None) -> str:
    """What is signed: an enrolment, or with a ``reason`` a revocation."""
    first = "tripod actor key" if reason is None else "tripod actor key revoked"
    lines = [first, origin, str(number), key.name, key.format()]
    return "\n".join([*lines, *([] if reason is None else [reason])]) + "\n"


def sign_change(
    origin: str,
    number: int,
    key: VerifierKey,
    signers: Sequence[SigningKey],
    reason: str | None = None,
) -> str:
    """The note by which ``signers`` put a key in force, or revoke it for a ``reason``.

    Raises:
        MalformedError: the handle, the origin or the reason is none that a note can hold.
    """
    text = change_text(origin, number, key, reason)
    return format_note(Note(text, tuple(sign(text, signer) for signer in signers))).decode()


def cosign_note(note: str, signer: SigningKey) -> str:
    """The same note with one signature more (MalformedError: it is none)."""
    parsed = parse_note(note.encode())
    return format_note(Note(parsed.text, (*parsed.signatures, sign(parsed.text, signer)))).decode()


def read_request(note: str, origin: str) -> tuple[int, VerifierKey]:
    """Number and key of an enrolment that the key itself signed, and perhaps nobody else yet.

    Raises:
        MalformedError: it is none, or one for another ledger.
        NotVerifiedError: the key did not sign it.
    """
    parsed = parse_note(note.encode())
    lines = parsed.text.split("\n")
    if len(lines) != 6 or not lines[2].isdecimal():
        raise MalformedError("the note is no request to enrol a key")
    number, key = int(lines[2]), VerifierKey.parse(lines[4])
    if parsed.text != change_text(origin, number, key):
        raise MalformedError(f"the note is no request to enrol a key in the ledger {origin!r}")
    verify(parsed, (key,))
    return number, key


def note_problem(
    note: str, text: str, must: Sequence[VerifierKey], may: Sequence[VerifierKey]
) -> str | None:
    """Whether a note says ``text`` and was signed as it must be: None, or what is wrong.

    Args:
        note: of an enrolment or a revocation.
        text: what it is to say, from ``change_text``.
        must: keys that all have to have signed.
        may: keys of which one has to have, if there are any.
    """
    try:
        parsed = parse_note(note.encode())
        if parsed.text != text:
            return "the note is about another change"
        by = {(one.name, one.key_id) for one in verify(parsed, {*must, *may})}
    except (MalformedError, NotVerifiedError, ValueError) as error:
        return str(error)
    for key in must:
        if (key.name, key.key_id) not in by:
            return "the key itself did not sign that"
    if may and not any((key.name, key.key_id) in by for key in may):
        names = " nor ".join(key.format() for key in may)
        return f"neither {names} signed that" if len(may) > 1 else f"{names} did not sign that"
    return None
