"""The kind that says that a body was erased (design, section 4), and which kinds may be."""

from __future__ import annotations

from pydantic import model_validator

from tripod.ledger.kinds.agents import AgentEnded, AgentRequested, Delivered
from tripod.ledger.kinds.base import BodyModel, Count, Name
from tripod.ledger.kinds.bus import Published
from tripod.ledger.kinds.chat import HeaderSeen, Rotated, Sent, Unreadable
from tripod.ledger.kinds.decisions import Decided, LogBegun, LogRotated, Noted
from tripod.ledger.kinds.pythia import PythiaAssessed, PythiaFailed
from tripod.ledger.kinds.team import ConfigChanged, Displaced, EvidenceKept, FileSeen, WorkerWritten
from tripod.ledger.kinds.workers import WorkerContinued, WorkerEnded, WorkerEscalated, WorkerSpawned

ERASABLE: dict[str, type[BodyModel]] = {
    "bus.published": Published,
    "chat.sent": Sent,
    "chat.unreadable": Unreadable,
    "chat.header-seen": HeaderSeen,
    "chat.rotated": Rotated,
    "log.begun": LogBegun,
    "decision.logged": Decided,
    "log.noted": Noted,
    "log.rotated": LogRotated,
    "config.changed": ConfigChanged,
    "worker.written": WorkerWritten,
    "evidence.kept": EvidenceKept,
    "file.seen": FileSeen,
    "file.displaced": Displaced,
    "agent.requested": AgentRequested,
    "agent.ended": AgentEnded,
    "delivered": Delivered,
    "pythia.assessed": PythiaAssessed,
    "pythia.failed": PythiaFailed,
    "worker.spawned": WorkerSpawned,
    "worker.continued": WorkerContinued,
    "worker.escalated": WorkerEscalated,
    "worker.ended": WorkerEnded,
}
"""Kinds that hold texts. The bodies of the others are names and numbers, which the rules need."""


class Redacted(BodyModel):
    """Body, salt and blobs of entry ``seq``, of the kind ``kind``, were erased: by whom and why.

    ``keep`` stands for the erased body from then on: a body of the same kind, with what the rules
    need, and ``[redacted]`` where its texts were. The entry's id is ``redacted-<seq>``, so none is
    erased twice.
    """

    seq: Count
    kind: Name
    reason: Name
    by: Name
    keep: dict[str, object]

    @model_validator(mode="after")
    def _of_its_kind(self) -> Redacted:
        if self.kind not in ERASABLE:
            raise ValueError(f"an entry of the kind {self.kind} cannot be erased")
        ERASABLE[self.kind].model_validate(self.keep)
        return self
