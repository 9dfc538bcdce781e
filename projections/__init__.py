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
    DiskPlaces,
    DiskStat,
    FirstLooks,
    TooBigError,
    UnmergedError,
    UnreadableError,
    in_the_way_on_disk,
    move_on_disk,
    write_missing_to_disk,
)
from tripod.projections.engine import (
    OWN,
    PROJECTIONS,
    TABLES,
    Looked,
    agreed_chats,
    bulk_fold,
    compare,
    create_tables,
    desired_file,
    desired_files,
    file_differences,
    file_renders,
    files_ahead_of,
    files_are_quiet,
    fold_batches,
    fold_entry,
    fold_into,
    fold_versions,
    folded_before,
    own_files,
    recorded,
    refold,
    run_operations,
    seen_entries,
    source_of,
    tables_current,
)
from tripod.projections.manifest import Manifest, load
from tripod.projections.peers.tables import PEERS
from tripod.projections.pieces import (
    BLOCKED,
    CHECKPOINT_GONE,
    FILE_LIMIT,
    OLDER_STATE,
    UNMERGED,
    UNMERGED_CURE,
    Conflict,
    Found,
    merge_marker_in_piece,
    name_pieces,
    pieces_of_names,
)
from tripod.projections.projection import File, Render, Source
from tripod.projections.team.tables import COUNTS, FILES, TRUST
from tripod.projections.workers.tables import WORKERS

__all__ = [
    "BLOCKED", "BUS", "CHAT", "CHECKPOINT_GONE", "COUNTS", "FILES", "FILE_LIMIT", "KEPT", "LOG",
    "OLDER_STATE", "OWN", "PEERS", "PROJECTIONS", "RACY_NS", "TABLES", "TEMPORARY", "TRUST",
    "UNMERGED", "UNMERGED_CURE", "WORKERS", "Conflict", "Disk", "DiskPlaces", "DiskStat", "File",
    "FirstLooks", "Found", "Looked", "Manifest", "Render", "Source", "TooBigError", "UnmergedError",
    "UnreadableError", "agreed_chats", "bulk_fold", "compare", "create_tables", "desired_file",
    "desired_files", "file_differences", "file_renders", "files_ahead_of", "files_are_quiet",
    "fold_batches", "fold_entry", "fold_into", "fold_versions", "folded_before",
    "in_the_way_on_disk", "load",
    "merge_marker_in_piece", "move_on_disk", "name_pieces", "own_files", "pieces_of_names",
    "recorded", "refold", "run_operations", "seen_entries", "source_of",
    "tables_current", "write_missing_to_disk",
]  # fmt: skip
