"""A made-up team sealed, and the acts of a child that export it (``benchmarks.child``)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial

from tripod.ledger import DATABASE
from tripod.ledger.kinds.trust import KEY_SET, SEAL_MADE
from tripod.ledger.merkle import root_of
from tripod.ledger.sqlite.reader import read_block_nodes, read_only
from tripod.ledger.tlog.note import Note, SigningKey, format_note
from tripod.ledger.tlog.seal import Seal, format_seal, sign_seal
from tripod.team.team import Team
from tripod.trust.export import export, update_record

__all__ = ["EXPORTS", "NEW", "keep_record", "seal_by_hand"]

NEW = 1_000  # entries


def seal_by_hand(root: str) -> None:
    """Put a key in force and seal once, as ``tripod key new`` does; no record is written."""
    with Team(root) as team:
        key = _key(team.store.origin).verifier().format()
        team.append_apart(lambda: (KEY_SET.draft({"vkey": key}),))
        size = team.store.head().size
        note = _note_at(team.store.db, size)
        team.append_apart(
            lambda: (SEAL_MADE.draft({"note": note, "size": size, "reason": "asked"}),)
        )


def keep_record(root: str) -> None:
    """Write the record of a team that was sealed."""
    with closing(read_only(f"{root}/{DATABASE}")) as db:
        note = db.execute("SELECT note FROM seals ORDER BY seq DESC LIMIT 1").fetchone()[0]
    update_record(root, f"{root}/{DATABASE}", note)


def _key(origin: str) -> SigningKey:
    return SigningKey(origin, bytes(32))


def _note_at(db: sqlite3.Connection, size: int) -> str:
    """The seal of the first entries."""
    origin = db.execute("SELECT origin FROM head").fetchone()[0]
    seal = Seal(origin, size, root_of(read_block_nodes(db), 0, size))
    return format_note(Note(format_seal(seal), (sign_seal(seal, _key(origin)),))).decode()


def _most(root: str, *, bodies: bool) -> None:
    """Export all but the newest entries into a new folder."""
    _export(root, _exports(root, bodies=bodies), NEW, bodies=bodies)


def _rest(root: str, *, bodies: bool) -> None:
    """Bring the folder that was exported last to the newest entries."""
    _export(root, _exports(root, bodies=bodies) - 1, 0, bodies=bodies)


def _exports(root: str, *, bodies: bool) -> int:
    """How many exports lie beside the team."""
    number = 0
    while os.path.exists(_place(root, number, bodies=bodies)):
        number += 1
    return number


def _place(root: str, number: int, *, bodies: bool) -> str:
    return f"{root}-{'bodies' if bodies else 'headers'}-{number}"


def _export(root: str, number: int, without: int, *, bodies: bool) -> None:
    database = f"{root}/{DATABASE}"
    with closing(read_only(database)) as db:
        size = db.execute("SELECT size FROM head").fetchone()[0] - without
        note = _note_at(db, size)
    export(database, _place(root, number, bodies=bodies), note, bodies=bodies)


EXPORTS: dict[str, Callable[[str], None]] = {
    "export": partial(_most, bodies=False),
    "more": partial(_rest, bodies=False),
    "export-bodies": partial(_most, bodies=True),
    "more-bodies": partial(_rest, bodies=True),
}
