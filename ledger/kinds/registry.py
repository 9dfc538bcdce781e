"""Lists every kind: the vocabulary of the ledger.

The check ``kinds-known`` judges by this list, and the reference page is written from it. A kind
that is declared in the module of its word, and named in the module's own list, is known everywhere.
"""

from __future__ import annotations

from typing import Any

from tripod.ledger.kinds import (
    agents,
    bus,
    chat,
    decisions,
    nova,
    peers,
    pythia,
    redaction,
    sessions,
    team,
    trust,
    workers,
)
from tripod.ledger.kinds.base import Kind

KINDS: tuple[Kind[Any], ...] = (
    *team.KINDS,
    *bus.KINDS,
    *chat.KINDS,
    *decisions.KINDS,
    *pythia.KINDS,
    *workers.KINDS,
    *trust.KINDS,
    *redaction.KINDS,
    *peers.KINDS,
    *agents.KINDS,
    *sessions.KINDS,
    *nova.KINDS,
)

BY_NAME = {kind.name: kind for kind in KINDS}
