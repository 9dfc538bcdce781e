"""Proofs out of a ledger: that an entry lies under a seal, and that it only grew since another."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from ledger.bodies import Said, format_line
from ledger.merkle import Nodes, consistency_proof, inclusion_proof, root_of
from ledger.note import parse_note
from ledger.proof import Proof, format_proof
from ledger.reader import block_nodes, read_only
from ledger.seal import Seal
from ledger.witness import Request, format_request
from tripod.errors import NotFoundError, RefusedError
from tripod.export import read_seal


def prove_entry(database: str, seq: int, note: str, *, body: bool = False) -> bytes:
    """A ``.tlog-proof`` that entry ``seq`` lies under the seal in ``note``.

    Its extra bytes are the entry's header, so that the file stands for itself, and behind a line
    break the line of its body (``ledger.bodies``) where ``body`` asks for it.

    Raises:
        NotFoundError: the seal does not cover such an entry, or its body was erased.
        RefusedError: the seal is not this ledger's.
    """
    seal = read_seal(note.encode())
    with closing(read_only(database)) as db:
        nodes = _checked(db, seal)
        if seq >= seal.size:
            raise NotFoundError(
                f"entry {seq} is not under the newest seal, of {seal.size} entries: seal first"
            )
        sql = "SELECT header, salt, body, auth FROM entries WHERE seq = ?"
        header, *rest = db.execute(sql, (seq,)).fetchone()
        said = Said(*rest)
        if body and said.body is None:
            raise NotFoundError(f"the body of entry {seq} was erased: leave --body out")
        extra = header + b"\n" + format_line(seq, said) if body else header
        hashes = inclusion_proof(nodes, seq, seal.size)
    return format_proof(Proof(seq, tuple(hashes), parse_note(note.encode()), extra))


def prove_growth(database: str, old: Seal, note: str) -> bytes:
    """A growth: that the ledger under the seal in ``note`` begins with the one under ``old``.

    Raises:
        RefusedError: a seal is not this ledger's, or the older one covers more.
    """
    seal = read_seal(note.encode())
    with closing(read_only(database)) as db:
        _checked(db, old)
        nodes = _checked(db, seal)
        if old.size > seal.size:
            raise RefusedError(
                f"the older seal is of {old.size} entries, the newest of {seal.size}"
            )
        hashes = consistency_proof(nodes, old.size, seal.size)
    return format_request(Request(old.size, tuple(hashes), parse_note(note.encode())))


def _checked(db: sqlite3.Connection, seal: Seal) -> Nodes:
    """The nodes of the ledger, which is shown to be the one that was sealed."""
    row = db.execute("SELECT size, origin FROM head").fetchone()
    size, origin = row or (0, "")
    nodes = block_nodes(db)
    if seal.origin != origin:
        what = f"the seal is of {seal.origin!r}, the ledger is {origin!r}"
    elif seal.size > size:
        what = f"the seal is of {seal.size} entries, the ledger holds {size}"
    elif root_of(nodes, 0, seal.size) != seal.root:
        what = f"the ledger has another root at {seal.size} entries than the seal"
    else:
        return nodes
    raise RefusedError(
        f"{what}: this ledger was rolled back or rewritten, or the seal is another's"
    )
