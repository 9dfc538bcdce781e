"""Every kind that an entry can have, each with its one closed, versioned body model.

The list is the vocabulary of the ledger: the verifier's ``kinds-known`` judges by it, the
reference page is generated from it. Importing it costs pydantic, so the hot commands do not.
"""

from __future__ import annotations

from typing import NamedTuple

from tripod.ledger.kinds.agents import (
    AgentAbandoned,
    AgentEnded,
    AgentRequested,
    AgentStarted,
    Delivered,
)
from tripod.ledger.kinds.base import BodyModel
from tripod.ledger.kinds.bus import Acked, AckedAll, Claimed, Pruned, Published, Released, Seen
from tripod.ledger.kinds.chat import (
    ChannelCreated,
    CursorsSeen,
    Deleted,
    HeaderSeen,
    Read,
    Rotated,
    Sent,
    Unreadable,
)
from tripod.ledger.kinds.decisions import Decided, LogBegun, LogRotated, Noted
from tripod.ledger.kinds.pythia import PythiaAssessed, PythiaFailed, PythiaIsolated
from tripod.ledger.kinds.redaction import Redacted
from tripod.ledger.kinds.team import (
    Adopted,
    ConfigChanged,
    Displaced,
    EvidenceKept,
    FileSeen,
    Opened,
    PlaceAdded,
    WorkerWritten,
)
from tripod.ledger.kinds.trust import (
    ActorEnrolled,
    ActorRevoked,
    AnchorReceived,
    ForkedFrom,
    KeySet,
    SealMade,
)
from tripod.ledger.kinds.workers import (
    WorkerContinued,
    WorkerDismissed,
    WorkerEnded,
    WorkerEscalated,
    WorkerRunning,
    WorkerSpawned,
)


class Kind(NamedTuple):
    """A kind: its name, the model of its body, and the streams it stands in."""

    name: str
    model: type[BodyModel]
    stream: str


KINDS: tuple[Kind, ...] = (
    Kind("ledger.opened", Opened, "ledger"),
    Kind("ledger.adopted", Adopted, "ledger"),
    Kind("place.added", PlaceAdded, "ledger"),
    Kind("bus.published", Published, "bus"),
    Kind("bus.acked", Acked, "bus"),
    Kind("bus.acked-all", AckedAll, "bus"),
    Kind("bus.pruned", Pruned, "bus"),
    Kind("bus.claimed", Claimed, "bus"),
    Kind("bus.released", Released, "bus"),
    Kind("bus.seen", Seen, "bus"),
    Kind("chat.created", ChannelCreated, "chat/"),
    Kind("chat.sent", Sent, "chat/"),
    Kind("chat.unreadable", Unreadable, "chat/"),
    Kind("chat.header-seen", HeaderSeen, "chat/"),
    Kind("chat.rotated", Rotated, "chat/"),
    Kind("chat.deleted", Deleted, "chat/"),
    Kind("chat.read", Read, "chat/"),
    Kind("chat.cursors-seen", CursorsSeen, "chat/"),
    Kind("log.begun", LogBegun, "decisions"),
    Kind("decision.logged", Decided, "decisions"),
    Kind("log.noted", Noted, "decisions"),
    Kind("log.rotated", LogRotated, "decisions"),
    Kind("pythia.isolated", PythiaIsolated, "pythia"),
    Kind("pythia.assessed", PythiaAssessed, "pythia"),
    Kind("pythia.failed", PythiaFailed, "pythia"),
    Kind("config.changed", ConfigChanged, "config"),
    Kind("worker.written", WorkerWritten, "workers/"),
    Kind("worker.spawned", WorkerSpawned, "workers/"),
    Kind("worker.continued", WorkerContinued, "workers/"),
    Kind("worker.running", WorkerRunning, "workers/"),
    Kind("worker.escalated", WorkerEscalated, "workers/"),
    Kind("worker.ended", WorkerEnded, "workers/"),
    Kind("worker.dismissed", WorkerDismissed, "workers/"),
    Kind("evidence.kept", EvidenceKept, "files/"),
    Kind("file.seen", FileSeen, "files/"),
    Kind("file.displaced", Displaced, "files/"),
    Kind("key.set", KeySet, "ledger"),
    Kind("seal.made", SealMade, "ledger"),
    Kind("anchor.received", AnchorReceived, "ledger"),
    Kind("actor.enrolled", ActorEnrolled, "ledger"),
    Kind("actor.revoked", ActorRevoked, "ledger"),
    Kind("ledger.forked-from", ForkedFrom, "ledger"),
    Kind("redacted", Redacted, "ledger"),
    Kind("agent.requested", AgentRequested, "agents/"),
    Kind("agent.started", AgentStarted, "agents/"),
    Kind("agent.ended", AgentEnded, "agents/"),
    Kind("agent.abandoned", AgentAbandoned, "agents/"),
    Kind("delivered", Delivered, "agents/"),
)

BY_NAME = {kind.name: kind for kind in KINDS}
