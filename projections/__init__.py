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
    Difference,
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
from tripod.projections.layout import (
    CHAT_FILE,
    CONFIG,
    CURSORS,
    EVENT,
    FOLDERS,
    HIDDEN,
    HIDDEN_BESIDE,
    IGNORED,
    LOG_FILE,
    WORKER,
    WORKER_LOG,
    class_of,
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
from tripod.projections.projection import TOGETHER, File, Render, Source, content_bytes
from tripod.projections.team.tables import COUNTS, FILES, TRUST
from tripod.projections.workers.tables import WORKERS

__all__ = [
    "BLOCKED", "BUS", "CHAT", "CHAT_FILE", "CHECKPOINT_GONE", "CONFIG", "COUNTS", "CURSORS",
    "EVENT", "FILES", "FILE_LIMIT", "FOLDERS", "HIDDEN", "HIDDEN_BESIDE", "IGNORED", "KEPT", "LOG",
    "LOG_FILE", "OWN", "PROJECTIONS", "RACY_NS", "TABLES", "TEMPORARY", "TOGETHER", "TRUST",
    "UNMERGED", "UNMERGED_CURE", "WORKER", "WORKERS", "WORKER_LOG", "Conflict", "Difference",
    "Disk", "File", "Found", "Manifest", "Places", "Render", "Source", "Stat", "TooBigError",
    "UnmergedError", "UnreadableError", "agreed_chats", "ahead_of", "batches", "bulk", "class_of",
    "compare", "content_bytes", "create_tables", "desired", "differences", "fold_into",
    "folded_before", "in_the_way", "is_quiet", "load", "merge_marker", "move_all",
    "names_in_bodies", "own_files", "recorded", "refold", "renders", "sort_pieces", "source_of",
    "tables_current", "versions", "write_missing",
]  # fmt: skip
