"""The checks: one rule in one file of the same name. Pure: no clock, disk, network, randomness.

``CHECKS`` is what runs, in the order of the report.
"""

from __future__ import annotations

from types import ModuleType

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
    pins_extend,
    pythia_fires,
    pythia_isolation,
    record_agrees,
    seals_open,
    sequence,
    supersession,
    worker_lifecycle,
    writers_authorised,
)

LEDGER_CHECKS: tuple[ModuleType, ...] = (
    sequence,
    canonical_bytes,
    chain_links,
    bodies_present,
    kinds_known,
    clock_forward,
    writers_authorised,
)
"""Those that the entries alone answer, without a fold: one pass over the rows, and one over the
signatures where there are some."""

HEADER_CHECKS: tuple[ModuleType, ...] = (
    ledger_missing,
    record_agrees,
    pins_extend,
    sequence,
    canonical_bytes,
    chain_links,
    clock_forward,
)
"""Those that need no bodies: all that an export of headers alone can be asked."""

CHECKS: tuple[ModuleType, ...] = (
    ledger_missing,
    *LEDGER_CHECKS,
    seals_open,
    record_agrees,
    pins_extend,
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
    worker_lifecycle,
    drift,
    decision_missed,
    decision_noise,
)

ADVICE: tuple[ModuleType, ...] = (decision_missed, decision_noise)
"""Those that only advise: what they say is for a person to judge, and changes no exit code."""

NEW_ONLY: tuple[ModuleType, ...] = (ledger_missing, *LEDGER_CHECKS, pins_extend)
"""Those that can judge what is after a pin without a fold of the whole ledger."""
