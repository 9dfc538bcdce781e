"""Kinds of what lets outsiders trust a ledger: keys of log and actors, seals, anchors, forks."""

from __future__ import annotations

from typing import Literal

from tripod.ledger.kinds.base import BodyModel, Content, Count, Name, Sha256


class KeySet(BodyModel):
    """From here on the ledger is sealed by the key ``vkey``, which bears the origin as its name.

    Where another key was in force, ``note`` is a signed note with the signatures of both, over
    the four lines ``tripod key rotation``, origin, old vkey, new vkey.
    """

    vkey: Name
    note: str | None = None


class SealMade(BodyModel):
    """The head of the first ``size`` entries was signed: ``note`` is the seal, and why it was made.

    The entry itself is the first after them.
    """

    note: str
    size: Count
    reason: Literal["asked", "checkpoint", "decision", "policy", "export"]


class ActorEnrolled(BodyModel):
    """From here on ``handle`` signs what it does with the key ``vkey``, which bears its name.

    ``number`` counts the changes of the handle's key from 1; the entry's id is
    ``actor-<number>-<handle>``. ``note`` is a signed note over the lines ``tripod actor key``,
    origin, number, handle, vkey. The key itself signed it, and one of those that may put it in
    force: the handle's key before it, or the one that seals the ledger.
    """

    handle: Name
    vkey: Name
    number: Count
    note: str


class ActorRevoked(BodyModel):
    """From here on the key ``vkey`` signs nothing any more for ``handle``, which has no key then.

    ``number`` and the id are as with ``actor.enrolled``; ``note`` is over the lines ``tripod actor
    key revoked``, origin, number, handle, vkey, reason, signed by the key or by the ledger's.
    """

    handle: Name
    vkey: Name
    number: Count
    reason: Name
    note: str


class ForkedFrom(BodyModel):
    """A restored copy goes on here, under the origin that the header names from this entry on.

    ``origin`` is the line that it was a copy of, ``size`` and ``root`` the head at which they
    part: all entries before this one. ``seal`` is the newest seal of the old line that was known,
    which may cover entries that are lost here. ``note`` is the old key's signature of the fork
    (``tripod.ledger.tlog.seal``); without it nobody but this ledger says that the old line ends
    here.
    """

    origin: Name
    size: Count
    root: Sha256
    reason: str
    seal: str | None = None
    note: str | None = None


class AnchorReceived(BodyModel):
    """Something outside this host remembers the head ``size``, ``root``; this is its receipt.

    ``name`` says who or where, in the words of the method.
    """

    method: Literal["git", "pin", "witness", "tsa"]
    size: Count
    root: Sha256
    name: Name
    receipt: Content
