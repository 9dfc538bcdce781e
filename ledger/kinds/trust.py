"""Kinds of what lets outsiders trust a ledger: keys, seals, anchors, forks, accepted findings."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from tripod.ledger.entry import actor_entry_id
from tripod.ledger.kinds.base import Bytes, Count, Kind, Name, Sha256

SealReason = Literal["asked", "checkpoint", "decision", "policy", "export"]
AnchorMethod = Literal["git", "pin", "witness", "tsa"]


class KeySet(TypedDict):
    """From here on the ledger is sealed by the key ``vkey``, which bears the origin as its name.

    Where another key was in force, ``note`` is a signed note with the signatures of both, over
    the four lines ``tripod key rotation``, origin, old vkey, new vkey.
    """

    vkey: Name
    note: NotRequired[str | None]


class SealMade(TypedDict):
    """The head of the first ``size`` entries was signed: ``note`` is the seal, and why it was made.

    The entry itself is the first after them.
    """

    note: str
    size: Count
    reason: SealReason


class ActorEnrolled(TypedDict):
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


class ActorRevoked(TypedDict):
    """From here on the key ``vkey`` signs nothing any more for ``handle``, which has no key then.

    ``number`` and the id are as with ``actor.enrolled``; ``note`` is over the lines ``tripod actor
    key revoked``, origin, number, handle, vkey, reason, signed by the key or by the ledger's.
    """

    handle: Name
    vkey: Name
    number: Count
    reason: Name
    note: str


class ForkedFrom(TypedDict):
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
    seal: NotRequired[str | None]
    note: NotRequired[str | None]


class AnchorReceived(TypedDict):
    """Something outside this host remembers the head ``size``, ``root``; this is its receipt.

    ``name`` says who or where, in the words of the method.
    """

    method: AnchorMethod
    size: Count
    root: Sha256
    name: Name
    receipt: Bytes


class FindingAccepted(TypedDict):
    """The finding ``fingerprint`` of the check ``check`` was accepted: ``reason`` says why.

    ``tripod.verify.finding`` says how a fingerprint is made, the verifier which acceptances count.
    """

    check: Name
    fingerprint: Sha256
    reason: Name


class AcceptanceRevoked(TypedDict):
    """From here on the finding ``fingerprint`` is not accepted any more: ``reason`` says why."""

    check: Name
    fingerprint: Sha256
    reason: Name


def _change(body: Mapping[str, Any]) -> str:
    return actor_entry_id(body["handle"], body["number"])


KEY_SET = Kind("key.set", KeySet, "ledger", line="{vkey}")
SEAL_MADE = Kind("seal.made", SealMade, "ledger", line="{size} entries ({reason})")
ANCHOR_RECEIVED = Kind("anchor.received", AnchorReceived, "ledger")
ACTOR_ENROLLED = Kind(
    "actor.enrolled", ActorEnrolled, "ledger", id=_change, is_placed=True, line="{vkey}"
)
ACTOR_REVOKED = Kind("actor.revoked", ActorRevoked, "ledger", id=_change, is_placed=True)
FORKED_FROM = Kind("ledger.forked-from", ForkedFrom, "ledger", is_placed=True)
ACCEPTED = Kind("finding.accepted", FindingAccepted, "findings")
REVOKED = Kind("acceptance.revoked", AcceptanceRevoked, "findings")

KINDS = (
    KEY_SET, SEAL_MADE, ANCHOR_RECEIVED, ACTOR_ENROLLED, ACTOR_REVOKED, FORKED_FROM, ACCEPTED,
    REVOKED,
)  # fmt: skip
