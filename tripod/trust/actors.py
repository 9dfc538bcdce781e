"""Actors' keys: enrolled on the chain, held outside every team directory.

A private key is a file of its own (``tripod.trust.keys`` has the place and the form), named by the
vkey, so that it is found under whatever name the ledger goes on. An actor's entries are signed
within the act that makes them: what is signed does not say where an entry comes to stand, but what
most acts say is decided in the writer's place (``tripod.trust.signature``).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from tripod.errors import LedgerError, NotFoundError, RefusedError, TripodError
from tripod.ledger import Draft
from tripod.ledger.actors import (
    actor_handle_problem,
    cosign_actor_change,
    read_actor_request,
    sign_actor_change,
)
from tripod.ledger.kinds.trust import ACTOR_ENROLLED, ACTOR_REVOKED
from tripod.ledger.tlog.note import SigningKey, VerifierKey
from tripod.projections.text import text_line_problem
from tripod.team.act import ActContext
from tripod.trust import keys
from tripod.trust import seal as sealing
from tripod.trust.keys import Passphrase
from tripod.trust.signature import (
    Actor,
    actor_key_path,
    newest_signing_key,
    read_signing_actors,
    signing_actor,
    signing_key,
)

MAX_REASON = 1000  # bytes


def list_actors(db: sqlite3.Connection) -> list[Actor]:
    """Every handle that ever had a key, in their order."""
    columns = "handle, vkey, seq, max(number), revoked"
    return read_signing_actors(db, f"SELECT {columns} FROM actors GROUP BY handle ORDER BY 1")


def enrol_actor(
    team: ActContext, handle: str, ask: Passphrase, passphrase: bytes | None = None
) -> str:
    """Make a key for a handle and put it in force, in the place of an older one; give its vkey.

    1. The private key is stored. Dead here: nothing names it, and it is never used.
    2. The enrolment is appended, signed by the key and by a key that may put it in force.
    3. The private key that it replaces is removed. Dead here: it lies there, and signs nothing.

    ``ask`` gives the passphrase of a key that has to sign this; ``passphrase`` encrypts the new
    key. Raises RefusedError where nobody who may put it in force has a key here, or it changed
    meanwhile.
    """
    _voucher(team, handle, ask)  # before a key is made that nobody can put in force
    return admit_actor(team, request_actor_key(team, handle, passphrase), ask)


def request_actor_key(team: ActContext, handle: str, passphrase: bytes | None = None) -> str:
    """Make a key for a handle, and give the note that asks to put it in force; nothing is recorded.

    Raises:
        RefusedError: the handle can have no key, or the folder of keys lies in the team directory.
    """
    _check_handle(handle)
    keys.check_keys_outside(team.root)
    key = SigningKey(handle, os.urandom(32))
    keys.store_key(actor_key_path(key.verifier().format()), key, passphrase)
    number = _next_number(team, handle)
    return sign_actor_change(team.store.origin, number, key.verifier(), (key,))


def admit_actor(team: ActContext, note: str, ask: Passphrase) -> str:
    """Put the key in force that ``request_actor_key`` made, here or elsewhere; give its vkey.

    Raises RefusedError where the note is no such request, nobody who may put the key in force has
    one here, or the handle's key changed meanwhile.
    """
    try:
        number, key = read_actor_request(note, team.store.origin)
    except (LedgerError, ValueError) as error:
        raise RefusedError(f"the request cannot be admitted: {error}") from error
    _check_handle(key.name)
    before = signing_actor(team.store.db, key.name)
    voucher = _voucher(team, key.name, ask)
    if voucher is not None:
        note = cosign_actor_change(note, voucher)
    draft = ACTOR_ENROLLED.draft(
        {"handle": key.name, "vkey": key.format(), "number": number, "note": note}
    )
    _append(team, key.name, number, draft)
    if before is not None and os.path.exists(actor_key_path(before.vkey)):
        os.unlink(actor_key_path(before.vkey))
    _seal(team)
    return key.format()


def revoke_actor(team: ActContext, handle: str, reason: str, ask: Passphrase) -> str:
    """End the key of a handle; give its vkey. Its private part, if it is here, stays.

    Raises NotFoundError where the handle has no key in force, RefusedError where neither that key
    nor the one that seals the ledger can be used here.
    """
    problem = text_line_problem(reason, "--reason", MAX_REASON)
    if problem is not None:
        raise RefusedError(problem)
    held = signing_actor(team.store.db, handle)
    if held is None:
        raise NotFoundError(f"{handle!r} has no key in force: `tripod actor list` shows who has")
    voucher = _voucher(team, handle, ask)
    assert voucher is not None  # the key in force may always vouch, so somebody must
    number, key = held.number + 1, VerifierKey.parse(held.vkey)
    note = sign_actor_change(team.store.origin, number, key, (voucher,), reason)
    draft = ACTOR_REVOKED.draft({
        "handle": handle, "vkey": held.vkey, "number": number, "reason": reason, "note": note,
    })  # fmt: skip
    _append(team, handle, number, draft)
    _seal(team)
    return held.vkey


def _check_handle(handle: str) -> None:
    problem = actor_handle_problem(handle)
    if problem is not None:
        raise RefusedError(f"the handle {handle!r} can have no key: it {problem}")


def _next_number(team: ActContext, handle: str) -> int:
    held = newest_signing_key(team.store.db, handle)
    return 1 if held is None else held.number + 1


def _append(team: ActContext, handle: str, number: int, change: Draft) -> None:
    """Append a change, or refuse where the key of the handle changed since it was looked at."""

    def checked() -> Sequence[Draft]:
        if number != _next_number(team, handle):
            raise RefusedError(
                f"the key of {handle!r} changed meanwhile: look at `tripod actor list`"
            )
        return (change,)

    team.append_apart(checked)


def _voucher(team: ActContext, handle: str, ask: Passphrase) -> SigningKey | None:
    """The key on this host that may change a handle's key (RefusedError: it is elsewhere).

    None for the first key of a handle in a ledger without a key: nothing vouches for that one.
    """
    db = team.store.db
    held, log = newest_signing_key(db, handle), keys.sealing_key(team.store)
    own = held is not None and (not held.revoked or log is None)
    if held is not None and own and os.path.exists(actor_key_path(held.vkey)):
        return signing_key(held, ask)
    if log is not None:
        try:
            return keys.load_key_in_force(log, ask)
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


def _seal(team: ActContext) -> None:
    """Seal after a change, if the ledger is sealed here: before that it could be made undone."""
    try:
        sealing.seal(team, "asked")
    except (TripodError, LedgerError, OSError) as error:
        team.warnings.append(f"recorded, but not sealed: {error}")
