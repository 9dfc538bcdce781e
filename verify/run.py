"""Runs the checks over the evidence. One that breaks is a finding of its own and stops no other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection
from contextlib import suppress
from types import ModuleType

from ledger.ids import parse_at
from ledger.progress import tell
from verify.checks import (
    CHECKS,
    HEADER_CHECKS,
    LEDGER_CHECKS,
    record_agrees,
    writers_authorised,
)
from verify.compared import Compared
from verify.evidence import Evidence
from verify.finding import FINDINGS, Finding, Outcome, Report, cannot_tell, not_applicable
from verify.recorded import hold_record
from verify.signatures import judge_signatures
from verify.storage import begin_scan

__all__ = ["run"]


def run(
    evidence: Evidence,
    select: Collection[str] | None = None,
    checks: tuple[ModuleType, ...] = CHECKS,
) -> Report:
    """Judge; ``select`` names the checks to run (all of them otherwise), in the report's order."""
    asked = [check for check in checks if select is None or check.NAME in select]
    chosen = [check for check in asked if evidence.bodies or check in HEADER_CHECKS]
    ledger = [check for check in chosen if check in LEDGER_CHECKS]
    folded = any(check not in (*LEDGER_CHECKS, *HEADER_CHECKS) for check in chosen)
    if ledger and evidence.db is not None and not evidence.problem and evidence.scan is None:
        # The pass over the rows and the fold of the tables look at the same rows, side by side.
        disk = None if evidence.loaded else evidence.disk
        beside = begin_scan(
            evidence.database, evidence.db, evidence.rows, folding=folded, disk=disk
        )
        if folded:
            _fold(evidence, beside.compared)
        tell("checking entries")
        evidence.scan = beside.scanned()
    elif folded:
        _fold(evidence)
    if evidence.problem:
        return Report(evidence.what, (), problem=evidence.problem)
    if record_agrees in chosen and evidence.record is None:
        hold_record(evidence)
    if writers_authorised in chosen and evidence.db is not None and evidence.scan is not None:
        judge_signatures(evidence.db, evidence.scan)
    outcomes = tuple(
        _judge(check, evidence) if check in chosen else _bodiless(check, evidence)
        for check in asked
    )
    head = evidence.scan.head if evidence.scan else None
    return Report(evidence.what, outcomes, head, sealed=_sealed(evidence))


def _sealed(evidence: Evidence) -> tuple[int, str, int] | None:
    """Of the newest seal: how many entries it covers, its time, how many seconds ago that was."""
    if evidence.db is None or evidence.folded is None:
        return None
    for seq, size in evidence.query("SELECT seq, size FROM seals ORDER BY seq DESC LIMIT 1"):
        at = evidence.at(seq)
        with suppress(ValueError):
            return size, at, max(0, evidence.now_us - parse_at(at)) // 1_000_000
    return None


def _bodiless(check: ModuleType, evidence: Evidence) -> Outcome:
    """A team's rules cannot be told from headers; an export of them alone has none to tell."""
    name, required, reason = check.NAME, bool(check.REQUIRED), "only headers are there, no bodies"
    if evidence.root is None:
        return not_applicable(name, reason, required=required)
    return cannot_tell(name, reason, required=required)


def _fold(evidence: Evidence, compared: Callable[[], Compared | None] = lambda: None) -> None:
    """Fold without the collector of cycles: none are made, and it would look at every object."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        evidence.fold(compared)
    finally:
        if enabled:
            gc.enable()


def _judge(check: ModuleType, evidence: Evidence) -> Outcome:
    tell(f"judging {check.NAME}")
    try:
        verdict: Outcome = check.judge(evidence)
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, not an end
        name = check.NAME
        broke = Finding(
            name,
            f"the check broke: {type(error).__name__}: {error}",
            evidence.what,
            help="the evidence has a shape that the check does not expect; the others went on",
        )
        return Outcome(name, FINDINGS, "", (broke,), required=bool(check.REQUIRED))
    return verdict
