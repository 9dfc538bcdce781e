"""The ledger's core: entries, their bytes, chain and tree, and what a store promises.

Other packages take these names from here. Everything in this face is pure. What touches a disk or a
clock stands in modules of its own: ``files``, ``ids``, ``locator`` and the package ``sqlite``.
"""

from __future__ import annotations

from tripod.ledger.chain import check_link
from tripod.ledger.entry import (
    CHANGE_IDS,
    GENESIS,
    MAX_BODY,
    MAX_HEADER,
    MERGED,
    REDACTED,
    Draft,
    Entry,
    Header,
    actor_entry_id,
    commit_body,
    entry_leaf_hash,
    entry_mark,
    format_canonical,
    header_auth,
    observed_entry_id,
    parse_canonical,
    parse_entry_time,
    parse_header,
    redaction_entry_id,
)
from tripod.ledger.errors import (
    GitError,
    LedgerDamagedError,
    LedgerError,
    MalformedError,
    MissingExtraError,
    NotVerifiedError,
    PlaceError,
    TripodError,
)
from tripod.ledger.merkle import (
    EMPTY_ROOT,
    Nodes,
    Tree,
    check_consistency,
    consistency_proof,
    inclusion_proof,
    root_of,
)
from tripod.ledger.places import (
    ARCHIVE,
    CHAT,
    COUNTS,
    DATABASE,
    EVENTS,
    EVIDENCE,
    HOOKS,
    LOGS,
    PLACE_IDS,
    PROCESSED,
    RECORD,
    SEAL,
    SEARCH,
    SPOOL,
    WORK_EFFORTS,
    WORKERS,
    added_place_problem,
    place_problem,
    places_problem,
)
from tripod.ledger.progress import tell_over, tell_progress
from tripod.ledger.store import Head, LedgerReader, RawEntry, Transaction

__all__ = [
    "ARCHIVE", "CHANGE_IDS", "CHAT", "COUNTS", "DATABASE", "EMPTY_ROOT", "EVENTS", "EVIDENCE",
    "GENESIS", "HOOKS", "LOGS", "MAX_BODY", "MAX_HEADER", "MERGED", "PLACE_IDS", "PROCESSED",
    "RECORD", "REDACTED", "SEAL", "SEARCH", "SPOOL", "WORKERS", "WORK_EFFORTS", "Draft", "Entry",
    "GitError", "Head", "Header", "LedgerDamagedError", "LedgerError", "LedgerReader",
    "MalformedError", "MissingExtraError", "Nodes", "NotVerifiedError", "PlaceError", "RawEntry",
    "Transaction", "Tree", "TripodError", "actor_entry_id", "added_place_problem",
    "check_consistency", "check_link", "commit_body", "consistency_proof", "entry_leaf_hash",
    "entry_mark", "format_canonical", "header_auth", "inclusion_proof", "observed_entry_id",
    "parse_canonical", "parse_entry_time", "parse_header", "place_problem", "places_problem",
    "redaction_entry_id", "root_of", "tell_over", "tell_progress",
]  # fmt: skip
