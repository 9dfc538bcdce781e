"""When a seal is due: after each decision and checkpoint, and every so many entries or seconds.

Each act of a team with a key asks here, and few acts are sealed. So this module imports neither
signed notes nor what a seal is; ``tripod.trust.seal`` is imported where one is due.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tripod.ledger import RECORD, REDACTED, SEAL, LedgerReader
from tripod.ledger.ids import format_at, now_us
from tripod.projections import TRUST
from tripod.trust.keys import has_key_here, sealing_key

if TYPE_CHECKING:
    from tripod.ledger.kinds.trust import SealReason
    from tripod.team.act import ActContext, ActEntries

EVERY = 256  # entries since the last seal
LATEST_S = 600  # seconds since the last seal


def seal_due(team: ActContext, entries: ActEntries) -> tuple[str, SealReason] | None:
    """The key by which an act (``entries`` are its own) is to be sealed, and why; None: it is not.

    It is not, either, where that key is not on this host.
    """
    vkey = sealing_key(team.store)
    if vkey is None or not has_key_here(vkey):
        return None
    reason = _reason(team.store, entries)
    if reason is None and _is_record_unsealed(team.root):
        reason = "policy"
    return None if reason is None else (vkey, reason)


def _reason(ledger: LedgerReader, entries: ActEntries) -> SealReason | None:
    size = ledger.size
    last = ledger.tables.execute(TRUST.newest_seal).fetchone()
    if last is not None and size == last[0] + 1:
        return None
    if entries.is_checkpoint:
        return "checkpoint"
    if REDACTED in entries.kinds:
        return "policy"  # a clone must see why a body is gone from the record
    sealed = 0 if last is None else last[1]
    # Also one of an act before, whose writer was stopped before it sealed.
    decided = ledger.tables.execute("SELECT max(seq) FROM pieces").fetchone()[0]
    if decided is not None and decided >= sealed:
        return "decision"
    if last is None or size - sealed >= EVERY:
        return "policy"
    sealed_by = ledger.entry(last[0])
    old = sealed_by is None or sealed_by.at <= format_at(now_us() - LATEST_S * 1_000_000)
    return "policy" if old else None


def _is_record_unsealed(root: str) -> bool:
    """Whether a command died while it wrote a team's first record: its seal comes last."""
    folder = f"{root}/{RECORD}"
    return os.path.isdir(folder) and not os.path.lexists(f"{folder}/{SEAL}")
