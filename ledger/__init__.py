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
    REDACTED,
    Draft,
    Entry,
    Header,
    auth_of,
    change_id,
    commit,
    format_value,
    leaf_hash,
    observed_id,
    parse_at,
    parse_header,
    parse_value,
    redaction_id,
)
from tripod.ledger.errors import (
    LedgerDamagedError,
    LedgerError,
    MalformedError,
    MissingExtraError,
    NotVerifiedError,
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
    LOGS,
    PLACE_IDS,
    PROCESSED,
    RECORD,
    SEARCH,
    SPOOL,
    WORKERS,
    added_problem,
    place_problem,
    places_problem,
)
from tripod.ledger.progress import over, tell
from tripod.ledger.store import Head, LedgerReader, RawEntry, Transaction

__all__ = [
    "ARCHIVE", "CHANGE_IDS", "CHAT", "COUNTS", "DATABASE", "EMPTY_ROOT", "EVENTS", "GENESIS",
    "LOGS", "MAX_BODY", "MAX_HEADER", "PLACE_IDS", "PROCESSED", "RECORD", "REDACTED", "SEARCH",
    "SPOOL", "WORKERS", "Draft", "Entry", "Head", "Header", "LedgerDamagedError", "LedgerError",
    "LedgerReader", "MalformedError", "MissingExtraError", "Nodes", "NotVerifiedError", "RawEntry",
    "Transaction", "Tree", "TripodError", "added_problem", "auth_of", "change_id",
    "check_consistency", "check_link", "commit", "consistency_proof", "format_value",
    "inclusion_proof", "leaf_hash", "observed_id", "over", "parse_at", "parse_header",
    "parse_value", "place_problem", "places_problem", "redaction_id", "root_of", "tell",
]  # fmt: skip
