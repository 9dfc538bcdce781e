"""Projections: entries folded into tables and files. May import the ledger, and nothing above.

``PROJECTIONS`` is what every team directory has, in the order in which files are rendered.
"""

from __future__ import annotations

from tripod.projections.bus.tables import BusQueue, Claims
from tripod.projections.chat.tables import ChatFiles, Reading
from tripod.projections.decisions.tables import DecisionLog
from tripod.projections.projection import Projection, TableAlone
from tripod.projections.pythia.tables import PythiaRuns
from tripod.projections.team.tables import Counts, Redactions, TeamFiles, Trust
from tripod.projections.workers.tables import Agents, Workers

FILES = TeamFiles()
BUS = BusQueue()
CHAT = ChatFiles()
LOG = DecisionLog()
COUNTS = Counts()
READING = Reading()
REDACTIONS = Redactions()
TRUST = Trust()
CLAIMS = Claims()
AGENTS = Agents()
WORKERS = Workers()
PYTHIA = PythiaRuns()

# Where an event was acknowledged onto the name of an unreadable file, the event is what stands
# there: so FILES is asked last of those that share folders; after WORKERS for the same reason.
PROJECTIONS: tuple[Projection, ...] = (
    LOG, CHAT, BUS, WORKERS, FILES, COUNTS, READING, REDACTIONS, TRUST, CLAIMS, AGENTS,
    PYTHIA,
)  # fmt: skip

_SHARED: tuple[Projection, ...] = (LOG, CHAT, BUS, WORKERS, FILES)

OWN: tuple[Projection, ...] = tuple(
    one for one in PROJECTIONS if one not in _SHARED and not isinstance(one, TableAlone)
)
"""Those whose files we alone write: the intake reads nothing back from them."""
