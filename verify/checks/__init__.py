"""The built-in checks: one rule in one file of the same name, and the list of them. Pure.

The order is that of the report. What a check needs, it says itself (``tripod.verify.check``).
"""

from __future__ import annotations

from tripod.verify.check import ROWS, Check, needs
from tripod.verify.checks import (
    append_only,
    assessment_complete,
    bodies_present,
    canonical_bytes,
    chain_links,
    chat_refs_resolve,
    checkpoint_preceded,
    clock_forward,
    count_from_grep,
    decision_ids_unique,
    decision_missed,
    decision_noise,
    drift,
    events_processed,
    kinds_known,
    ledger_missing,
    never_read,
    peers_agree,
    pins_extend,
    pythia_fires,
    pythia_isolation,
    record_agrees,
    seals_open,
    sequence,
    sessions_whole,
    supersession,
    trailers_agree,
    witnesses_agree,
    worker_lifecycle,
    writers_authorised,
)

CHECKS: tuple[Check, ...] = (
    ledger_missing,
    sequence,
    canonical_bytes,
    chain_links,
    bodies_present,
    kinds_known,
    clock_forward,
    writers_authorised,
    seals_open,
    record_agrees,
    pins_extend,
    peers_agree,
    trailers_agree,
    append_only,
    count_from_grep,
    decision_ids_unique,
    supersession,
    pythia_fires,
    checkpoint_preceded,
    assessment_complete,
    events_processed,
    chat_refs_resolve,
    pythia_isolation,
    never_read,
    sessions_whole,
    witnesses_agree,
    worker_lifecycle,
    drift,
    decision_missed,
    decision_noise,
)

LEDGER_CHECKS: tuple[Check, ...] = tuple(check for check in CHECKS if needs(check, ROWS))
"""Those that one pass over the entries answers, without a fold."""
