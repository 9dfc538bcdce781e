r"""Actors' keys and signatures: statements, signature records, changes of keys. Pure.

The *statement* of an entry is its header without ``at``, ``auth``, ``prev`` and ``seq``: what the
actor knows before the append. One key signs one statement, or those of one act together::

    record = 0x01 || key ID (4) || signature (64)
    record = 0x02 || key ID (4) || signature (64) || SHA-256 of each statement (2 to 64 of them)

A change of a handle's key is a note over ``actor_change_text``. The changes are numbered from 1,
and the entry of each has an id made of handle and number (``tripod.ledger.entry``), so that each is
unique and all are found without a search. A statement begins with ``{``, a list of digests with
``[``, and neither holds a line break: no seal and no other note is either of them.

Source: design, section 4; ``docs/formats/signatures.md``, also for which key may change which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from tripod.ledger.entry import (
    HEADER_VERSION,
    Draft,
    canonical_object,
    commit_body,
    format_canonical,
)
from tripod.ledger.errors import MalformedError, NotVerifiedError
from tripod.ledger.tlog.note import (
    Note,
    SigningKey,
    VerifierKey,
    format_note,
    name_problem,
    parse_decimal,
    parse_note,
    sign,
    verify,
)

MAX_BATCH = 64  # statements under one signature
_HEAD = 1 + 4 + 64
MAX_RECORD = _HEAD + 32 * MAX_BATCH  # bytes
OBSERVED = "observed"
"""The member of a body that says that another program wrote it: its actor is a claim."""

_ONE, _MANY = 1, 2
_UNSIGNED = ("at", "auth", "prev", "seq")


class Record(NamedTuple):
    """A signature record taken apart; ``digests`` are () where one statement was signed."""

    key_id: bytes
    signature: bytes
    digests: tuple[bytes, ...] = ()


def actor_statement(header: Mapping[str, object]) -> bytes:
    """What is signed of a header, which is given as the object that its bytes hold.

    >>> actor_statement({"actor": "ann", "at": "...", "id": "x", "seq": 7})
    b'{"actor":"ann","id":"x"}'
    """
    stated = dict(header)
    for name in _UNSIGNED:
        stated.pop(name, None)
    return canonical_object(stated)


def format_actor_record(record: Record) -> bytes:
    """Write a record (MalformedError: a part has another width, or a list of 1 or over 64)."""
    count = len(record.digests)
    widths = (len(record.key_id), len(record.signature), *map(len, record.digests))
    if widths != (4, 64, *[32] * count) or count == 1 or count > MAX_BATCH:
        raise MalformedError(f"no signature record: of {count} digests, or a part of another width")
    kind = bytes([_MANY if count else _ONE])
    return kind + record.key_id + record.signature + b"".join(record.digests)


def parse_actor_record(data: bytes) -> Record:
    """Read a record; only what ``format_actor_record`` writes is accepted (else MalformedError)."""
    if len(data) == _HEAD and data[0] == _ONE:
        return Record(data[1:5], data[5:])
    digests = tuple(data[at : at + 32] for at in range(_HEAD, len(data), 32))
    record = Record(data[1:5], data[5:_HEAD], digests)
    try:
        if format_actor_record(record) == data and len(set(digests)) == len(digests):
            return record
    except MalformedError:
        pass
    raise MalformedError(f"its {len(data)} bytes are no signature record")


def message_of(record: Record, stated: bytes) -> bytes | None:
    """What the record's signature is over, if it covers the statement ``stated``; else None."""
    if not record.digests:
        return stated
    return _listed(record.digests) if sha256(stated).digest() in record.digests else None


def actor_record_problem(record: Record, stated: bytes, key: VerifierKey) -> str | None:
    """Whether ``key`` signed the statement ``stated`` by this record: None, or what is wrong."""
    message = message_of(record, stated)
    if message is None:
        return "the list that was signed does not name it"
    if record.key_id != key.key_id or not key.verifies(message, record.signature):
        return f"the signature is not by the key {key.format()}"
    return None


def sign_actor_statements(stated: Sequence[bytes], key: SigningKey) -> bytes:
    """The record by which ``key`` signs 1 to 64 statements of one act (MalformedError: more)."""
    digests = tuple(sha256(one).digest() for one in stated) if len(stated) > 1 else ()
    message = _listed(digests) if digests else b"".join(stated)
    return format_actor_record(Record(key.verifier().key_id, key.sign(message), digests))


def sign_actor_drafts(
    origin: str, drafts: Sequence[Draft], minted: Iterable[tuple[str, bytes]], key: SigningKey
) -> list[Draft]:
    """The drafts of one act as ``key`` signs them; ``minted``: a new id and a salt for each."""
    ready = [
        draft._replace(id=draft.id or new_id, salt=draft.salt or salt)
        for draft, (new_id, salt) in zip(drafts, minted, strict=True)
    ]
    signed: list[Draft] = []
    for first in range(0, len(ready), MAX_BATCH):
        part = ready[first : first + MAX_BATCH]
        stated = []
        for draft in part:
            body = commit_body(draft.salt or b"", draft.kind, format_canonical(draft.body))
            header: dict[str, object] = {"actor": draft.actor, "body": body}
            if draft.cause is not None:
                header["cause"] = draft.cause
            header |= {"id": draft.id, "kind": draft.kind, "ledger": origin}
            stated.append(canonical_object(header | {"stream": draft.stream, "v": HEADER_VERSION}))
        record = sign_actor_statements(stated, key)
        signed += [draft._replace(auth=record) for draft in part]
    return signed


def _listed(digests: Iterable[bytes]) -> bytes:
    return format_canonical([digest.hex() for digest in digests])


# Enrolment --------------------------------------------------------------------------------------


ENROLLED, REVOKED = "actor.enrolled", "actor.revoked"
CHANGES = (ENROLLED, REVOKED)  # the kinds
NOBODYS = ("tripod", "unknown", "nbs-bus", "nbs-chat", "nbs-chat-terminal")
"""Actors that no one is: our own acts, what was found, and what tools tell by themselves."""

MAX_HANDLE = 63  # bytes, as the chats have it


def actor_handle_problem(handle: str) -> str | None:
    """What keeps a handle from having a key, if anything."""
    problem = name_problem(handle)
    if problem is not None:
        return problem
    if len(handle.encode()) > MAX_HANDLE:
        return f"takes more than {MAX_HANDLE} bytes"
    return "is nobody's: tools act under it" if handle in NOBODYS else None


def actor_change_text(origin: str, number: int, key: VerifierKey, reason: str | None = None) -> str:
    """What is signed: an enrolment, or with a ``reason`` a revocation."""
    lines = ["tripod actor key", origin, str(number), key.name, key.format()]
    if reason is not None:
        lines = [f"{lines[0]} revoked", *lines[1:], reason]
    return "\n".join(lines) + "\n"


def sign_actor_change(
    origin: str,
    number: int,
    key: VerifierKey,
    signers: Sequence[SigningKey],
    reason: str | None = None,
) -> str:
    """The note by which ``signers`` put a key in force, or revoke it (or MalformedError)."""
    text = actor_change_text(origin, number, key, reason)
    return format_note(Note(text, tuple(sign(text, signer) for signer in signers))).decode()


def cosign_actor_change(note: str, signer: SigningKey) -> str:
    """A copy of ``note`` with one more signature (MalformedError: not a note)."""
    parsed = parse_note(note.encode())
    return format_note(Note(parsed.text, (*parsed.signatures, sign(parsed.text, signer)))).decode()


def read_actor_request(note: str, origin: str) -> tuple[int, VerifierKey]:
    """Number and key of an enrolment that the key itself signed, and perhaps nobody else yet.

    Raises:
        MalformedError: it is invalid, or one for another ledger.
        NotVerifiedError: the key did not sign it.
    """
    parsed = parse_note(note.encode())
    lines = parsed.text.split("\n")
    if len(lines) != 6:
        raise MalformedError("the note is no request to enrol a key")
    number = parse_decimal(lines[2], "request to enrol a key: its number")
    key = VerifierKey.parse(lines[4])
    if parsed.text != actor_change_text(origin, number, key):
        raise MalformedError(f"the note is no request to enrol a key in the ledger {origin!r}")
    verify(parsed, (key,))
    return number, key


def actor_change_problem(
    note: str, text: str, must: Sequence[VerifierKey], may: Sequence[VerifierKey]
) -> str | None:
    """Whether a note says ``text`` and was signed as it must be: None, or what is wrong.

    All keys of ``must`` have to have signed, and one of ``may``, if there are any.
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
