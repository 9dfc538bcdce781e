"""Projections: entries folded into tables and files. May import the ledger, and nothing above.

Other packages take from here what is not about one domain; each domain has a package of its own.
Every command loads this face, so ``erasure``, which imports all kinds, is not in it.
"""

from __future__ import annotations

from tripod.projections.bus.tables import BUS
from tripod.projections.chat.tables import CHAT
from tripod.projections.decisions.tables import LOG
from tripod.projections.disk import (
    KEPT,
    RACY_NS,
    TEMPORARY,
    Disk,
    Places,
    Stat,
    TooBigError,
    UnmergedError,
    UnreadableError,
    in_the_way,
    move_all,
    write_missing,
)
from tripod.projections.engine import (
    OWN,
    PROJECTIONS,
    TABLES,
    agreed_chats,
    ahead_of,
    batches,
    bulk,
    compare,
    create_tables,
    desired,
    differences,
    fold_into,
    folded_before,
    is_quiet,
    own_files,
    recorded,
    refold,
    renders,
    source_of,
    tables_current,
    versions,
)
from tripod.projections.manifest import Manifest, load
from tripod.projections.pieces import (
    BLOCKED,
    CHECKPOINT_GONE,
    FILE_LIMIT,
    UNMERGED,
    UNMERGED_CURE,
    Conflict,
    Found,
    merge_marker,
    names_in_bodies,
    sort_pieces,
)
from tripod.projections.projection import File, Render, Source, content_bytes
from tripod.projections.team.tables import COUNTS, FILES, TRUST
from tripod.projections.workers.tables import WORKERS

__all__ = [
    "BLOCKED", "BUS", "CHAT", "CHECKPOINT_GONE", "COUNTS", "FILES", "FILE_LIMIT", "KEPT", "LOG",
    "OWN", "PROJECTIONS", "RACY_NS", "TABLES", "TEMPORARY", "TRUST", "UNMERGED", "UNMERGED_CURE",
    "WORKERS", "Conflict", "Disk", "File", "Found", "Manifest", "Places", "Render", "Source",
    "Stat", "TooBigError", "UnmergedError", "UnreadableError", "agreed_chats", "ahead_of",
    "batches", "bulk", "compare", "content_bytes", "create_tables", "desired", "differences",
    "fold_into", "folded_before", "in_the_way", "is_quiet", "load", "merge_marker", "move_all",
    "names_in_bodies", "own_files", "recorded", "refold", "renders", "sort_pieces", "source_of",
    "tables_current", "versions", "write_missing",
]  # fmt: skip
