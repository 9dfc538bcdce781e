"""Kinds by which replicas of one team know each other, and keep what the others recorded.

A *replica* is the ledger of one clone, with an origin and a key of its own; a *peer* is another
replica of the same team; the *team id* is the origin of the first replica.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from tripod.ledger.entry import MERGED
from tripod.ledger.kinds.base import Bytes, Content, Count, Erasure, Kind, Limits, Name, Sha256

ReplicaName = Annotated[str, Limits(18, 128, r"^[A-Za-z0-9_-]{1,111}-[0-9a-f]{16}$")]
"""The handle of who began the replica, and 16 hex digits of the SHA-256 of its verifier key.

It is a part of the names of refs, and stands behind handles.
"""


class TeamNamed(TypedDict):
    """This ledger is the replica ``replica`` of the team ``team`` (the first replica's origin)."""

    team: Name
    replica: ReplicaName


class PeerAdded(TypedDict):
    """From here on the replica with this origin and key is a peer; ``how`` it came to be one.

    ``first-use``: it was met in a pull, and nobody was asked; ``person``: somebody accepted it
    before its first entry was taken.
    """

    origin: Name
    replica: ReplicaName
    key: Name
    how: Literal["first-use", "person"]


class Known(TypedDict):
    """The first ``size`` entries of the replica ``origin``."""

    origin: Name
    size: Count


class Place(TypedDict, total=False):
    """What an entry of a peer is called here, where that is not what its maker calls it.

    ``actor``: who it is shown as; ``handle``: who is shown as speaking in a message of somebody
    else's. ``channel`` and ``index`` of a message, ``file``, ``number``,
    ``id``, ``supersedes``, ``chat_ref`` and ``refs`` of a decision, ``name``, ``source`` and
    ``size`` of an event are ours; so are ``event`` and ``message``, numbers of entries that the
    inner body names. ``made``: the replica and the id by which the maker of a decision knows it.
    ``known``: what the maker of a ``bus.acked-all`` knew, of this ledger first. ``unseen``: such
    entries here that came before an event, and whose makers did not have it. ``same``: the entry
    here that holds the same observed piece, or this very entry as another replica has it, so that
    this one is not folded.
    """

    actor: Name
    handle: Name
    channel: Name
    index: Count
    file: Name
    number: Count
    id: Name
    made: Name
    supersedes: Name
    chat_ref: str
    refs: list[dict[str, object]]
    name: Name
    source: Name
    size: Count
    event: Count
    message: Count
    known: list[Known]
    unseen: list[Count]
    same: Count


class PeerEntry(TypedDict):
    """Entry ``seq`` of the peer ``origin``, kept so that the peer's leaf hash follows from it.

    ``header`` and ``auth`` are the exact bytes; ``content`` is a blob: the salt (32 bytes) and the
    inner body behind it. ``blobs`` are those that the inner body names. Where the peer erased the
    body before it came here, ``keep`` is what its ``redacted`` entry keeps of it, and there is no
    ``content``. ``place`` says what it is called here. The stream is that of the inner entry.
    """

    origin: Name
    seq: Count
    header: Bytes
    auth: NotRequired[Bytes | None]
    content: NotRequired[Content | None]
    blobs: NotRequired[list[Content] | None]
    keep: NotRequired[dict[str, object] | None]
    place: NotRequired[Place | None]


class PeerMerged(TypedDict):
    """Everything that the peer ``origin`` itself recorded among its first ``size`` entries is here.

    ``root`` is its root then, ``seal`` the note by its key that says so.
    """

    origin: Name
    size: Count
    root: Sha256
    seal: Bytes


class PeerForked(TypedDict):
    """The peer ``origin`` contradicts what it sealed before: nothing more of it is taken.

    ``ours`` is the seal that was merged (its note), ``theirs`` the one that contradicts it.
    """

    origin: Name
    ours: Bytes
    theirs: Bytes
    problem: Name


class PeerAccepted(TypedDict):
    """A person says that the peer ``origin`` with this key belongs to the team: ``reason`` why."""

    origin: Name
    key: Name
    reason: Name


class PeerClosed(TypedDict):
    """From here on nothing of the peer ``origin`` is taken any more: ``reason`` says why."""

    origin: Name
    reason: Name


def peer_entry_id(origin: str, seq: int) -> str:
    """The id of the entry that keeps entry ``seq`` of a peer: it can be here only once."""
    return "peer-" + sha256(b"%s\x00%d" % (origin.encode(), seq)).hexdigest()[:40]


NAME_IDS = ("replica-", "replica.")
"""Between these two are the ids of the entries that name a replica, and no others."""


def _name_id(body: Mapping[str, Any]) -> str:
    return NAME_IDS[0] + str(body["replica"])


def _id(body: Mapping[str, Any]) -> str:
    return peer_entry_id(body["origin"], body["seq"])


TEAM_NAMED = Kind("team.named", TeamNamed, "ledger", id=_name_id, line="{replica}")
PEER_ADDED = Kind("peer.added", PeerAdded, "peers", line="{replica} ({how})")
# Its stream is that of the inner entry: who appends it says which.
# Erased where its maker erased the inner body: then ``keep`` is what that keeps of it.
PEER_ENTRY = Kind(
    MERGED,
    PeerEntry,
    "peers",
    id=_id,
    erasure=Erasure({"content": None, "blobs": None}, lambda _: "", texts=("content",)),
    is_placed=True,
)
PEER_MERGED = Kind("peer.merged", PeerMerged, "peers", line="{origin}: {size} entries")
PEER_FORKED = Kind("peer.forked", PeerForked, "peers", line="{origin}: {problem}")
PEER_ACCEPTED = Kind("peer.accepted", PeerAccepted, "peers", line="{origin}: {reason}")
PEER_CLOSED = Kind("peer.closed", PeerClosed, "peers", line="{origin}: {reason}")

KINDS = (
    TEAM_NAMED, PEER_ADDED, PEER_ENTRY, PEER_MERGED, PEER_FORKED, PEER_ACCEPTED, PEER_CLOSED,
)  # fmt: skip
