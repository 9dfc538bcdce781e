"""When a seal is due: after each decision and checkpoint, and every so many entries or seconds.

Each act of a team with a key asks here, and few acts are sealed. So this module imports neither
signed notes nor what a seal is; ``tripod.trust.seal`` is imported where one is due.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tripod.ledger import RECORD, REDACTED, SEAL, Entry, LedgerReader
from tripod.ledger.ids import format_at, now_us
from tripod.projections import TRUST
from tripod.trust.keys import has_key_here, sealing_key

if TYPE_CHECKING:
    from tripod.ledger.kinds.trust import SealReason
    from tripod.team.act import ActContext

EVERY = 256  # entries since the last seal
LATEST_S = 600  # seconds since the last seal


def seal_if_due(team: ActContext, entries: Sequence[Entry]) -> None:
    """Seal after an act (``entries`` are its own) if that is due; trouble becomes a warning."""
    vkey = sealing_key(team.store)
    reason = None if vkey is None else reason_to_seal(team.store, vkey, entries)
    if vkey is not None and reason is None and _is_record_unsealed(team.root):
        reason = "policy" if has_key_here(vkey) else None
    if vkey is not None and reason is not None:
        from tripod.trust.seal import seal_after_act

        seal_after_act(team, vkey, reason, entries)


def reason_to_seal(ledger: LedgerReader, vkey: str, entries: Sequence[Entry]) -> SealReason | None:
    """Why a seal by the key in force is due after an act; None: it is not, or cannot be made."""
    if not has_key_here(vkey):
        return None
    size = ledger.size
    last = ledger.tables.execute(TRUST.newest_seal).fetchone()
    if last is not None and size == last[0] + 1:
        return None
    for entry in entries:
        if entry.kind == "bus.published" and entry.data.get("type") == "pythia-checkpoint":
            return "checkpoint"
        if entry.kind == REDACTED:
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
