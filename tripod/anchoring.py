"""Anchoring: something outside this host's reach remembers the newest seal, and that is logged.

Every anchor is asked about the same few lines, the text of a seal. A receipt counts once it has
been checked against a key or certificate that came from elsewhere; only then it is logged. What
was asked for and not logged does no harm: the next round begins where the other side stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson

from ledger import drafts
from ledger.errors import LedgerError, MalformedError, NotVerifiedError
from ledger.merkle import consistency_proof, root_of
from ledger.note import Note, Signature, cosignature_time, format_note, parse_note, verify
from ledger.plain import read_plain
from ledger.policy import MAX_POLICY, Policy, parse_policy
from ledger.reader import block_nodes
from ledger.seal import Seal, format_seal, parse_seal
from ledger.spelling import parse_decimal
from ledger.vkey import VerifierKey
from ledger.witness import SIZE_TYPE, TEXT_TYPE, Answer, Request, format_request, parse_signatures
from projections.projection import content_bytes
from tripod.errors import NotFoundError, RefusedError, UnreachableError
from tripod.sealing import in_force
from tripod.team import Team

POLICY = "policy.tlog"
ROUNDS = 4  # how often we begin again because others of this team are witnessed meanwhile
MAX_ANSWER = 64 * 1024  # bytes; a cosignature takes under 4,000
APART = 300  # seconds by which two clocks may differ before it is told

# What stands before a fork is about another line, under another origin.
_OURS = "seq > (SELECT coalesce(max(seq), -1) FROM forks)"
_SEALS = f"SELECT note FROM seals WHERE {_OURS} ORDER BY seq DESC"


class Sealed(NamedTuple):
    """A seal of this ledger: the signed note, and what it says."""

    note: Note
    seal: Seal


class Receipt(NamedTuple):
    """What an anchor gave: for which head, when (seconds since 1970), its bytes, its entry."""

    method: str
    name: str
    seal: Seal
    seconds: int
    data: bytes


Ask = Callable[[bytes], Answer]
"""Brings a request to a witness, and its answer back."""


# The seal --------------------------------------------------------------------------------------


def newest_seal(team: Team) -> Sealed:
    """The newest seal, over what the ledger really holds.

    Raises:
        NotFoundError: nothing was sealed yet.
        RefusedError: the seal contradicts the ledger.
    """
    row = team.store.db.execute(f"{_SEALS} LIMIT 1").fetchone()
    if row is None:
        raise NotFoundError("nothing is sealed yet: `tripod key new`, then `tripod seal`")
    return _opened(team, row[0])


def _opened(team: Team, text: str) -> Sealed:
    try:
        note = parse_note(text.encode())
        seal = parse_seal(note.text)
    except MalformedError as error:
        raise RefusedError(f"the newest seal is none ({error}): see `tripod verify`") from error
    db = team.store.db
    if seal.size > team.store.head().size or seal.root != root_of(block_nodes(db), 0, seal.size):
        raise RefusedError(
            f"the newest seal, over {seal.size} entries, is not over what the ledger holds: "
            "nothing is anchored; see `tripod verify`"
        )
    return Sealed(note, seal)


# Witnesses -------------------------------------------------------------------------------------


def known_witnesses(team: Team) -> Policy:
    """The team's policy, which names its witnesses (RefusedError: the file is none)."""
    try:
        return parse_policy(read_plain(f"{team.root}/{POLICY}", MAX_POLICY))
    except FileNotFoundError:
        return Policy(())
    except (MalformedError, OSError) as error:
        raise RefusedError(
            f"{team.root}/{POLICY}: {getattr(error, 'strerror', None) or error}"
        ) from error


def ask_url(url: str, timeout: float) -> Ask:
    """Ask a witness over HTTP at ``url`` + ``/add-checkpoint``.

    Raises:
        BadArgumentError: that is no URL; the asking itself raises UnreachableError.
    """
    from tripod import web

    web.check_url(url, "the witness")
    full = f"{url.rstrip('/')}/add-checkpoint"

    def ask(data: bytes) -> Answer:
        reply = web.post(
            full,
            data,
            content_type=TEXT_TYPE,
            limit=MAX_ANSWER,
            timeout=timeout,
            what="the witness",
        )
        return Answer(reply.status, reply.content_type, reply.body)

    return ask


def last_size(team: Team, name: str) -> int:
    """How many entries the witness of this name has cosigned, as far as the ledger knows."""
    row = team.store.db.execute(
        f"SELECT max(size) FROM anchors WHERE method = 'witness' AND name = ? AND {_OURS}",
        (name,),
    ).fetchone()
    return row[0] or 0


def request_for(team: Team, sealed: Sealed, old: int) -> bytes:
    """What a witness is asked that has seen ``old`` entries.

    Raises:
        RefusedError: it has seen more than the seal covers.
    """
    if old > sealed.seal.size:
        raise _ahead(team, sealed.seal, old)
    nodes = block_nodes(team.store.db)
    hashes = consistency_proof(nodes, old, sealed.seal.size)
    return format_request(Request(old, tuple(hashes), sealed.note))


def witness(team: Team, ask: Ask, keys: Sequence[VerifierKey], where: str) -> Receipt:
    """Have the newest seal cosigned, and log the receipt.

    Args:
        team: whose seal it is.
        ask: the road to the witness.
        keys: one of them must have made the cosignature.
        where: the witness is, for messages.

    Raises:
        UnreachableError: no usable answer came.
        RefusedError: the witness refuses, or its answer is not signed by one of ``keys``.
    """
    sealed = newest_seal(team)
    old = min(max(last_size(team, key.name) for key in keys), sealed.seal.size)
    answer = ask(request_for(team, sealed, old))
    for _ in range(ROUNDS):
        if answer.status != 409 or answer.content_type != SIZE_TYPE:
            break
        try:
            old = parse_decimal(answer.body.decode("ascii", "replace").rstrip("\n"), where)
        except MalformedError as error:
            raise UnreachableError(f"{error}; nothing was recorded") from error
        answer = ask(request_for(team, sealed, old))
    if answer.status != 200:
        raise _refused(team, sealed.seal, answer, where)
    return _take(team, sealed, answer.body, keys, where)


def _take(
    team: Team, sealed: Sealed, body: bytes, keys: Sequence[VerifierKey], where: str
) -> Receipt:
    """Check the signature lines of a witness, and log them with the seal as its receipt."""
    names = ", ".join(f"{key.name} ({key.key_id.hex()})" for key in keys)
    try:
        good = _cosignatures(sealed, body, keys)
    except LedgerError as error:
        raise RefusedError(
            f"{where}: the answer is no cosignature by {names}: {error}. Nothing was recorded; "
            "compare the key with the one that `tripod witness show` prints there"
        ) from error
    seconds = cosignature_time(good[0])
    apart = abs(seconds - int(time.time()))
    if apart > APART:
        team.warnings.append(f"the clock of {good[0].name} and ours differ by {apart} s")
    data = format_note(Note(sealed.note.text, (*sealed.note.signatures, *good)))
    return record(team, Receipt("witness", good[0].name, sealed.seal, seconds, data))


def _cosignatures(sealed: Sealed, body: bytes, keys: Sequence[VerifierKey]) -> list[Signature]:
    note = Note(sealed.note.text, parse_signatures(body))
    return verify(note, keys)


def take_late(team: Team, body: bytes, keys: Sequence[VerifierKey], where: str) -> Receipt:
    """Take an answer in that came by another road, for whichever seal of ours it is about.

    Raises:
        RefusedError: it is about none of them, or not by one of ``keys``.
    """
    for (text,) in team.store.db.execute(_SEALS).fetchall():
        try:
            note = parse_note(text.encode())
            _cosignatures(Sealed(note, parse_seal(note.text)), body, keys)
        except (MalformedError, NotVerifiedError):
            continue
        return _take(team, _opened(team, text), body, keys, where)
    return _take(team, newest_seal(team), body, keys, where)  # says why it is none


# Recording -------------------------------------------------------------------------------------


def record(team: Team, receipt: Receipt) -> Receipt:
    """Log a receipt that was checked."""
    size, root = receipt.seal.size, receipt.seal.root
    draft = drafts.anchor_received(receipt.method, size, root, receipt.name, receipt.data)
    with team.act() as act:
        act.append([draft])
    return receipt


def receipt_files(team: Team, seq: int) -> dict[str, bytes]:
    """What other tools check the receipt of entry ``seq`` with, by file name.

    Raises:
        NotFoundError: the entry is no receipt, or its bytes were erased.
    """
    size = team.store.head().size
    entry = next(team.store.read(seq, seq + 1)) if seq < size else None
    if entry is None or entry.kind != "anchor.received" or entry.body is None:
        raise NotFoundError(
            f"entry {seq} holds no receipt: `tripod anchor list` names those that do"
        )
    body = entry.data
    data = content_bytes(team.source, body["receipt"])
    if body["method"] != "tsa":
        return {"receipt.note": data}
    origin = orjson.loads(entry.header)["ledger"]
    text = format_seal(Seal(origin, body["size"], bytes.fromhex(body["root"])))
    return {"receipt.tsr": data, "seal.txt": text.encode()}


# Refusals --------------------------------------------------------------------------------------


def _ahead(team: Team, seal: Seal, seen: int) -> RefusedError:
    size = team.store.head().size
    if seen <= size:
        return RefusedError(
            f"the witness has cosigned {seen} entries of {seal.origin}, and the newest seal here "
            f"covers {seal.size} of {size}: `tripod seal`, then try again"
        )
    return RefusedError(
        f"ROLLBACK: the witness has cosigned {seen} entries of {seal.origin}, and this ledger "
        f"holds {size}. A backup was put back, entries were cut off, or a copy goes on elsewhere. "
        "Do not go on with this one: find the newer ledger.db; if it is lost, "
        "`tripod restore --as-origin` goes on honestly"
    )


def _refused(team: Team, seal: Seal, answer: Answer, where: str) -> RefusedError | UnreachableError:
    said = answer.body[:300].decode("utf-8", "replace").strip()
    told = f"{where} answered {answer.status}" + (f" ({said})" if said else "")
    if answer.status == 422:
        return RefusedError(
            f"FORK: {told}. It has cosigned another history of {seal.origin} than the one that "
            "is here: this ledger was rewritten, or two copies go on under one origin. Keep "
            "both; `tripod verify` with the seal that the witness serves says from where"
        )
    if answer.status in {403, 404}:
        vkey = in_force(team.store.db) or "VKEY"
        return RefusedError(
            f"{told}. If that is the right address, whoever runs it must get to know this "
            f"ledger: `tripod witness trust DIR {vkey}`"
        )
    if answer.status == 400:
        return RefusedError(f"{told}; nothing was recorded. Does it speak tlog-witness?")
    return UnreachableError(f"{told}; nothing was recorded. Try again")
