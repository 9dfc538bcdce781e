"""Signatures of actors: whose entries are signed with which key, within the act that makes them.

A hot command imports this where an actor of the ledger has a key, and cryptography where it signs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tripod.errors import RefusedError
from tripod.ledger import Draft, LedgerReader
from tripod.ledger.actors import OBSERVED, sign_actor_drafts
from tripod.ledger.ids import fresh_ids

if TYPE_CHECKING:
    from tripod.ledger.tlog.note import SigningKey
    from tripod.trust.keys import Passphrase


class Actor(NamedTuple):
    """A handle's newest key: its vkey, the entry of its newest change, and how many there were."""

    handle: str
    vkey: str
    since: int
    number: int
    revoked: bool


def actor_key_path(vkey: str) -> str:
    """Where the private part of an actor's key lies."""
    from tripod.trust.keys import place_of

    return place_of(vkey, "actors", ".pem")


def read_signing_actors(db: sqlite3.Connection, sql: str, *values: str) -> list[Actor]:
    """The keys that a query of the table ``actors`` gives."""
    rows = db.execute(sql, values)
    return [Actor(handle, vkey, seq, n, bool(gone)) for handle, vkey, seq, n, gone in rows]


def newest_signing_key(db: sqlite3.Connection, handle: str) -> Actor | None:
    """The newest key of a handle, revoked or not."""
    sql = "SELECT handle, vkey, seq, number, revoked FROM actors WHERE handle = ?"
    return next(iter(read_signing_actors(db, f"{sql} ORDER BY number DESC LIMIT 1", handle)), None)


def signing_actor(db: sqlite3.Connection, handle: str) -> Actor | None:
    """The key that a handle signs with; None where it has none, or none any more."""
    held = newest_signing_key(db, handle)
    return None if held is None or held.revoked else held


class Signing:
    """Signs what actors do who have a key, with the private keys that are on this host."""

    def __init__(self, ledger: LedgerReader) -> None:
        self._ledger = ledger
        self._keys: dict[str, SigningKey] = {}

    def fetch(self, handle: str) -> None:
        """Have the key of a handle ready, if it has one (RefusedError: it cannot be used here)."""
        held = signing_actor(self._ledger.tables, handle)
        if held is not None:
            self._key(held)

    def sign(self, acts: Sequence[Draft]) -> list[Draft]:
        """The drafts, those of actors with a key signed (RefusedError: a key cannot be used)."""
        done = list(acts)
        places: dict[str, list[int]] = {}
        for place, draft in enumerate(acts):
            if OBSERVED not in draft.body:  # whose word that is, nobody here can vouch for
                places.setdefault(draft.actor, []).append(place)
        for handle, its in places.items():
            held = signing_actor(self._ledger.tables, handle)
            if held is not None:
                origin, drafts = self._ledger.origin, [done[place] for place in its]
                signed = sign_actor_drafts(origin, drafts, fresh_ids(len(its)), self._key(held))
                for place, draft in zip(its, signed, strict=True):
                    done[place] = draft
        return done

    def _key(self, held: Actor) -> SigningKey:
        if held.vkey not in self._keys:
            from tripod.trust.keys import passphrase_from_file

            self._keys[held.vkey] = signing_key(held, passphrase_from_file)
        return self._keys[held.vkey]


def signing_key(held: Actor, passphrase: Passphrase) -> SigningKey:
    """The private part of a key (RefusedError: it is not on this host, or cannot be used)."""
    from tripod.trust import keys

    path = actor_key_path(held.vkey)
    what = f"entries of {held.handle!r} are signed since entry {held.since}"
    if not os.path.exists(path):
        raise RefusedError(
            f"{what}, and the private key {path} is not there: nothing was recorded. Act under "
            f"another handle, or put the file there; if it is lost, `tripod actor enrol "
            f"{held.handle}` puts another in its place"
        )
    try:
        key = keys.load_key(path, held.handle, passphrase)
    except keys.LockedKeyError as error:
        raise keys.LockedKeyError(
            f"{what}, and {path} is encrypted: name a file that holds its passphrase in "
            f"{keys.PASSPHRASE_FILE}; nothing was recorded"
        ) from error
    if key.verifier().format() != held.vkey:
        raise RefusedError(f"{path} holds another key than {held.vkey}: put the right file there")
    return key
