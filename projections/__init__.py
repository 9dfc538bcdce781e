"""Projections: entries folded into tables and files. May import the ledger, and nothing above.

``PROJECTIONS`` is what every team directory has, in the order in which files are rendered.
"""

from __future__ import annotations

from projections.agents import Agents
from projections.bus_queue import BusQueue
from projections.chat_file import ChatFiles
from projections.claims import Claims
from projections.counts import Counts
from projections.decision_log import DecisionLog
from projections.projection import Projection, TableAlone
from projections.pythia import Pythia
from projections.reading import Reading
from projections.redactions import Redactions
from projections.team_files import TeamFiles
from projections.trust import Trust
from projections.workers import Workers

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
PYTHIA = Pythia()

# Where an event was acknowledged onto the name of an unreadable file, the event is what stands
# there: so FILES is asked last of those that share folders; behind WORKERS for the same reason.
PROJECTIONS: tuple[Projection, ...] = (
    LOG, CHAT, BUS, WORKERS, FILES, COUNTS, READING, REDACTIONS, TRUST, CLAIMS, AGENTS,
    PYTHIA,
)  # fmt: skip

_SHARED: tuple[Projection, ...] = (LOG, CHAT, BUS, WORKERS, FILES)

OWN: tuple[Projection, ...] = tuple(
    one for one in PROJECTIONS if one not in _SHARED and not isinstance(one, TableAlone)
)
"""Those whose files we alone write: the intake reads nothing back from them."""
