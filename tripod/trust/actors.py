"""Actors' keys: enrolled on the chain, held outside every team directory, used by each act.

A private key is a file of its own (``tripod.trust.keys`` has the place and the form), named by the
vkey, so that it is found under whatever name the ledger goes on. An actor's entries are signed
within the act that makes them: what is signed does not say where an entry comes to stand, but what
most acts say is decided in the writer's place.

Hot commands import this where an actor of the ledger has a key, and cryptography where they sign.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tripod.errors import LedgerError, NotFoundError, RefusedError, TripodError
from tripod.ledger import Draft, LedgerReader
from tripod.ledger.actors import OBSERVED, sign_drafts
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds.trust import ACTOR_ENROLLED, ACTOR_REVOKED
from tripod.team.act import Context

if TYPE_CHECKING:
    from tripod.ledger.tlog.note import SigningKey
    from tripod.trust.keys import Passphrase

MAX_REASON = 1000  # bytes


class Actor(NamedTuple):
    """A handle's newest key: its vkey, the entry of its newest change, and how many there were."""

    handle: str
    vkey: str
    since: int
    number: int
    revoked: bool


def list_actors(db: sqlite3.Connection) -> list[Actor]:
    """Every handle that ever had a key, in their order."""
    return _read(db, "SELECT handle, vkey, seq, max(number), revoked FROM actors GROUP BY handle"
                     " ORDER BY 1")  # fmt: skip


def _read(db: sqlite3.Connection, sql: str, *values: str) -> list[Actor]:
    rows = db.execute(sql, values)
    return [Actor(handle, vkey, seq, n, bool(gone)) for handle, vkey, seq, n, gone in rows]


def key_path(vkey: str) -> str:
    """Where the private part of an actor's key lies."""
    from tripod.trust.keys import place_of

    return place_of(vkey, "actors", ".pem")


def _newest(db: sqlite3.Connection, handle: str) -> Actor | None:
    sql = "SELECT handle, vkey, seq, number, revoked FROM actors WHERE handle = ?"
    return next(iter(_read(db, f"{sql} ORDER BY number DESC LIMIT 1", handle)), None)


def _in_force(db: sqlite3.Connection, handle: str) -> Actor | None:
    """The key that a handle signs with; None where it has none, or none any more."""
    held = _newest(db, handle)
    return None if held is None or held.revoked else held


# Signing ---------------------------------------------------------------------------------------


class Signing:
    """Signs what actors do who have a key, with the private keys that are on this host."""

    def __init__(self, ledger: LedgerReader) -> None:
        self._ledger = ledger
        self._keys: dict[str, SigningKey] = {}

    def fetch(self, handle: str) -> None:
        """Have the key of a handle ready, if it has one (RefusedError: it cannot be used here)."""
        held = _in_force(self._ledger.tables, handle)
        if held is not None:
            self._key(held)

    def sign(self, acts: Sequence[Draft]) -> list[Draft]:
        """The drafts, those of actors with a key signed; each actor's together.

        Raises:
            RefusedError: a key is not on this host, or cannot be used.
        """
        done = list(acts)
        places: dict[str, list[int]] = {}
        for place, draft in enumerate(acts):
            if OBSERVED not in draft.body:  # whose word that is, nobody here can vouch for
                places.setdefault(draft.actor, []).append(place)
        for handle, its in places.items():
            held = _in_force(self._ledger.tables, handle)
            if held is not None:
                origin, drafts = self._ledger.origin, [done[place] for place in its]
                signed = sign_drafts(origin, drafts, fresh_ids(len(its)), self._key(held))
                for place, draft in zip(its, signed, strict=True):
                    done[place] = draft
        return done

    def _key(self, held: Actor) -> SigningKey:
        if held.vkey not in self._keys:
            from tripod.trust.keys import passphrase_from_file

            self._keys[held.vkey] = _private(held, passphrase_from_file)
        return self._keys[held.vkey]


def _private(held: Actor, passphrase: Passphrase) -> SigningKey:
    """The private part of a key (RefusedError: it is not on this host, or cannot be used)."""
    from tripod.trust import keys

    path = key_path(held.vkey)
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


# Changing keys ---------------------------------------------------------------------------------


def enrol(team: Context, handle: str, ask: Passphrase, passphrase: bytes | None = None) -> str:
    """Make a key for a handle and put it in force, in the place of an older one; give its vkey.

    1. The private key is stored. Dead here: nothing names it, and it is never used.
    2. The enrolment is appended, signed by the key and by a key that may put it in force.
    3. The private key that it replaces is removed. Dead here: it lies there, and signs nothing.

    Args:
        team: the team whose ledger it is.
        handle: whose key it is to be.
        ask: for the passphrase of a key that has to sign this.
        passphrase: to encrypt the new key with.

    Raises:
        RefusedError: nobody who may put it in force has a key here, or it changed meanwhile.
    """
    _voucher(team, handle, ask)  # before a key is made that nobody can put in force
    return admit(team, request_key(team, handle, passphrase), ask)


def request_key(team: Context, handle: str, passphrase: bytes | None = None) -> str:
    """Make a key for a handle, and give the note that asks to put it in force; nothing is recorded.

    Raises:
        RefusedError: the handle can have no key, or the folder of keys lies in the team directory.
    """
    from tripod.ledger.actors import sign_change
    from tripod.trust import keys

    _check_handle(handle)
    keys.check_outside(team.root)
    key = keys.make_key(handle)
    keys.store_key(key_path(key.verifier().format()), key, passphrase)
    number = _next_number(team, handle)
    return sign_change(team.store.origin, number, key.verifier(), (key,))


def admit(team: Context, note: str, ask: Passphrase) -> str:
    """Put the key in force that ``request_key`` made, here or elsewhere; give its vkey.

    Raises:
        RefusedError: the note is no such request, nobody who may put the key in force has one
            here, or the handle's key changed meanwhile.
    """
    from tripod.ledger.actors import cosign_note, read_request

    try:
        number, key = read_request(note, team.store.origin)
    except (LedgerError, ValueError) as error:
        raise RefusedError(f"the request cannot be admitted: {error}") from error
    _check_handle(key.name)
    before = _in_force(team.store.db, key.name)
    voucher = _voucher(team, key.name, ask)
    if voucher is not None:
        note = cosign_note(note, voucher)

    def change() -> Sequence[Draft]:
        _check_next(team, key.name, number)
        return (
            ACTOR_ENROLLED.draft(
                {"handle": key.name, "vkey": key.format(), "number": number, "note": note}
            ),
        )

    team.append_apart(change)
    if before is not None and os.path.exists(key_path(before.vkey)):
        os.unlink(key_path(before.vkey))
    _seal(team)
    return key.format()


def revoke(team: Context, handle: str, reason: str, ask: Passphrase) -> str:
    """End the key of a handle; give its vkey. Its private part, if it is here, stays.

    Raises:
        NotFoundError: the handle has no key in force.
        RefusedError: neither that key nor the one that seals the ledger can be used here.
    """
    from tripod.ledger.actors import sign_change
    from tripod.ledger.tlog.note import VerifierKey
    from tripod.projections.text import line_problem

    problem = line_problem(reason, "--reason", MAX_REASON)
    if problem is not None:
        raise RefusedError(problem)
    held = _in_force(team.store.db, handle)
    if held is None:
        raise NotFoundError(f"{handle!r} has no key in force: `tripod actor list` shows who has")
    voucher = _voucher(team, handle, ask)
    assert voucher is not None  # the key in force may always vouch, so somebody must
    number, key = held.number + 1, VerifierKey.parse(held.vkey)
    note = sign_change(team.store.origin, number, key, (voucher,), reason)

    def change() -> Sequence[Draft]:
        _check_next(team, handle, number)
        return (ACTOR_REVOKED.draft({
            "handle": handle, "vkey": held.vkey, "number": number, "reason": reason, "note": note,
        }),)  # fmt: skip

    team.append_apart(change)
    _seal(team)
    return held.vkey


def _check_handle(handle: str) -> None:
    from tripod.ledger.actors import handle_problem

    problem = handle_problem(handle)
    if problem is not None:
        raise RefusedError(f"the handle {handle!r} can have no key: it {problem}")


def _next_number(team: Context, handle: str) -> int:
    held = _newest(team.store.db, handle)
    return 1 if held is None else held.number + 1


def _check_next(team: Context, handle: str, number: int) -> None:
    """Within the append: refuse where the key of the handle changed since it was looked at."""
    if number != _next_number(team, handle):
        raise RefusedError(f"the key of {handle!r} changed meanwhile: look at `tripod actor list`")


def _voucher(team: Context, handle: str, ask: Passphrase) -> SigningKey | None:
    """A key on this host that may change the key of a handle; None where nobody is asked.

    Raises:
        RefusedError: somebody has to be, and none of those keys can be used here.
    """
    from tripod.trust import keys
    from tripod.trust import seal as sealing

    db = team.store.db
    held, log = _newest(db, handle), sealing.in_force(team.store)
    own = held is not None and (not held.revoked or log is None)
    if held is not None and own and os.path.exists(key_path(held.vkey)):
        return _private(held, ask)
    if log is not None:
        try:
            return keys.key_in_force(log, ask)
        except keys.LockedKeyError:
            raise
        except RefusedError:
            pass  # said below, with all the ways that there are
    if log is None and held is None:
        return None
    ways = [f"the key {held.vkey}" if held is not None and own else "", "the ledger's own key"]
    who = " or ".join(way for way in ways[: 2 if log else 1] if way)
    raise RefusedError(
        f"the key of {handle!r} is changed by {who}, and that is not on this host. Who has it "
        "runs `tripod actor admit FILE` with what `tripod actor enrol --request` prints"
    )


def _seal(team: Context) -> None:
    """Seal after a change, if the ledger is sealed here: before that it could be made undone."""
    from tripod.trust import seal as sealing

    try:
        sealing.seal(team, "asked")
    except (TripodError, LedgerError, OSError) as error:
        team.warnings.append(f"recorded, but not sealed: {error}")
