"""Proofs out of a ledger (inclusion, consistency), their seal, and the pin of a verifier.

A proof goes under a given seal, or under the newest of the ledger.

``tripod verify --update-pin`` writes the pin: a few lines for CI or for a person to keep. It moves
forward only, and stays with one ledger: it is written after a clean run that compared the ledger
with the old pin. The old pin is read again under a lock, since another run may have moved it
meanwhile. If we die here, the old pin or the new one stands there, whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing

from tripod.errors import BadArgumentError, MalformedError, NotFoundError, RefusedError
from tripod.ledger import consistency_proof, inclusion_proof
from tripod.ledger.files import hold_folder_lock, read_plain_file, replace_file
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.ledger.tlog.note import MAX_NOTE, parse_note
from tripod.ledger.tlog.proof import Proof, format_proof
from tripod.ledger.tlog.receipt import CosignRequest, format_witness_request
from tripod.ledger.tlog.seal import Seal, read_seal
from tripod.ledger.tlog.tiles import SEAL, LeafContent, format_line
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.export import nodes_to_export
from tripod.verify.anchors.anchors import read_pin
from tripod.verify.anchors.heads import parse_head

_NOT_OURS = "this ledger was rolled back or rewritten, or the seal is another's"


def prove_entry(database: str, seq: int, note: str, *, body: bool = False) -> bytes:
    """A ``.tlog-proof`` that entry ``seq`` lies under the seal in ``note``.

    Its extra bytes are the entry's header, so that the file stands for itself, and after a line
    break the line of its body (``tripod.ledger.tlog.tiles``) where ``body`` asks for it. Raises
    NotFoundError where the seal does not cover such an entry, or its body was erased, and
    RefusedError where the seal is not this ledger's.
    """
    seal = read_seal(note.encode())
    with closing(read_only(database)) as db:
        ledger = SQLiteReader(db)
        nodes = nodes_to_export(ledger, seal, _NOT_OURS)
        if seq >= seal.size:
            raise NotFoundError(
                f"entry {seq} is not under the newest seal, of {seal.size} entries: seal first"
            )
        (entry,) = ledger.raw(seq, seq + 1)
        header, said = entry.header, LeafContent(entry.salt, entry.body, entry.auth)
        if body and said.body is None:
            raise NotFoundError(f"the body of entry {seq} was erased: leave --body out")
        extra = header + b"\n" + format_line(seq, said) if body else header
        hashes = inclusion_proof(nodes, seq, seal.size)
    return format_proof(Proof(seq, tuple(hashes), parse_note(note.encode()), extra))


def prove_growth(database: str, old: Seal, note: str) -> bytes:
    """A proof that the ledger under ``note`` begins with that under ``old`` (or RefusedError)."""
    seal = read_seal(note.encode())
    with closing(read_only(database)) as db:
        ledger = SQLiteReader(db)
        nodes_to_export(ledger, old, _NOT_OURS)
        nodes = nodes_to_export(ledger, seal, _NOT_OURS)
        if old.size > seal.size:
            raise RefusedError(
                f"the older seal is of {old.size} entries, the newest of {seal.size}"
            )
        hashes = consistency_proof(nodes, old.size, seal.size)
    return format_witness_request(CosignRequest(old.size, tuple(hashes), parse_note(note.encode())))


def write_proved_pin(path: str, data: bytes, agrees: Callable[[Seal], bool]) -> bool:
    """Let the pin at ``path`` remember ``data``; False where it remembers as much or more already.

    ``agrees`` says whether a head is one of the ledger's own, which was judged. Raises RefusedError
    where the pin is of another ledger or another history, OutsideError where it cannot be read, and
    OSError where the disk refuses: then it is what it was.
    """
    path = os.path.realpath(path)
    with hold_folder_lock(os.path.dirname(path)):
        there = read_pin(path)
        if there is not None:
            old, new = there.seal, parse_head(data)[0]
            if old.origin != new.origin:
                raise RefusedError(
                    f"the pin {path} remembers {old.origin}, and this ledger is {new.origin}: a "
                    "pin never moves to another ledger. If you believe this one, remove the pin "
                    "and make a new one"
                )
            if old.size <= new.size and not agrees(old):
                raise RefusedError(
                    f"the pin {path} remembers another history of {old.origin} since this run "
                    "began: nothing was written, judge the ledger again"
                )
            if old.size > new.size or read_plain_file(path, len(data), named=True) == data:
                return False
        replace_file(path, data, 0o644, foreign_folder=True)
    return True


def seal_to_prove(team: Team) -> str:
    """A seal over all of the ledger; without its key, the newest one (RefusedError: no seal).

    It is the newest one as well where the team is only read.
    """
    note = None if team.is_read_only else sealing.seal(team, "export")
    last = sealing.newest(team.store.db)
    if note is not None:
        return note
    if last is None:
        raise RefusedError(
            "this ledger was never sealed, and a file that others can check needs a seal: make a "
            "key with `tripod key new`, or give a seal of it with --seal FILE"
        )
    return last.note


def seal_of_proof(path: str) -> tuple[str, Seal]:
    """The seal in a file: the whole note, and what it says (BadArgumentError: it holds no seal)."""
    try:
        if os.path.isdir(path):
            path = os.path.join(path, SEAL)
        data = read_plain_file(path, MAX_NOTE, named=True)
        return data.decode(), read_seal(data)
    except OSError as error:
        raise BadArgumentError(f"{path} cannot be read: {error.strerror}") from error
    except (MalformedError, UnicodeDecodeError) as error:
        raise BadArgumentError(f"{path} holds no seal: {error}") from error
