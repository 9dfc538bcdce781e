"""Runs the checks over the evidence. One that breaks is a finding of its own and stops no other.

The manual of a check, taken from its docstring: what it proves, why, what to do. Pure.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import ModuleType

from tripod.ledger.ids import parse_at
from tripod.ledger.kinds.registry import KINDS
from tripod.ledger.progress import tell
from tripod.projections import TRUST
from tripod.verify.anchors.compare import hold
from tripod.verify.anchors.policy import Rules
from tripod.verify.checks import (
    ADVICE,
    CHECKS,
    HEADER_CHECKS,
    LEDGER_CHECKS,
    NEW_ONLY,
    ledger_missing,
    pins_extend,
    record_agrees,
    sequence,
    writers_authorised,
)
from tripod.verify.checks.writers_authorised import Demand
from tripod.verify.evidence import Evidence
from tripod.verify.export.files import hold_record
from tripod.verify.finding import (
    CANNOT_TELL,
    FINDINGS,
    NOT_APPLICABLE,
    Finding,
    Outcome,
    Report,
    Weight,
    cannot_tell,
    not_applicable,
)
from tripod.verify.fold import Compared
from tripod.verify.look_alikes import look_alikes
from tripod.verify.scan.database import begin_scan, scan_since
from tripod.verify.scan.signatures import judge_signatures

_UNFOLDED = (*LEDGER_CHECKS, ledger_missing, record_agrees)
"""Those that ask for no tables."""


def run(
    evidence: Evidence,
    select: Collection[str] | None = None,
    checks: tuple[ModuleType, ...] = CHECKS,
) -> Report:
    """Judge; ``select`` names the checks to run (all of them otherwise), in the report's order.

    Where the evidence has a pin to start from, and the ledger grew from it, only those are run
    that can judge the new entries alone; the report says so.
    """
    report = _run(evidence, select, checks)
    return replace(report, subject=evidence.subject)


def _run(
    evidence: Evidence, select: Collection[str] | None, checks: tuple[ModuleType, ...]
) -> Report:
    problem = _misnamed(evidence.outside.rules)
    if problem is not None:
        return Report(evidence.what, (), problem=problem)
    asked = [check for check in checks if select is None or check.NAME in select]
    notes = list(_begin(evidence))
    since = evidence.scan is not None and evidence.scan.since > 0
    if since:
        asked = [check for check in asked if check in NEW_ONLY]
    chosen = [check for check in asked if evidence.bodies or check in HEADER_CHECKS]
    scanned = any(check in (*LEDGER_CHECKS, pins_extend) for check in chosen)
    folded = evidence.bodies and not since and any(check not in _UNFOLDED for check in chosen)
    broken = _look(evidence, scanned=scanned, folded=folded)
    if evidence.problem and evidence.scan is None:
        return Report(evidence.what, (), problem=evidence.problem)
    if record_agrees in chosen and evidence.record is None:
        with _kept(broken, (record_agrees,)):
            hold_record(evidence)
    if writers_authorised in chosen and evidence.db is not None and evidence.scan is not None:
        rules = evidence.outside.rules
        demand = Demand(rules.signed, rules.signed_from or 0)
        with _kept(broken, (writers_authorised,)):
            judge_signatures(evidence.db, evidence.scan, demand)
    with _kept(broken, (writers_authorised,)):
        _remark(evidence)
    outcomes = tuple(
        _demanded(
            evidence,
            _advising(check, _judge(check, evidence, broken))
            if check in chosen
            else _bodiless(check, evidence),
        )
        for check in asked
    )
    head = evidence.scan.head if evidence.scan else None
    anchored = evidence.held.anchored if evidence.held else None
    return Report(
        evidence.what,
        outcomes,
        head,
        sealed=_sealed(evidence),
        anchored=anchored,
        notes=tuple(notes),
    )


def _look(evidence: Evidence, *, scanned: bool, folded: bool) -> dict[str, Exception]:
    """Pass over the rows and fold the tables; by check, what broke where that was not foreseen."""
    broken: dict[str, Exception] = {}
    if scanned and evidence.db is not None and not evidence.problem and evidence.scan is None:
        # The pass over the rows and the fold of the tables look at the same rows, side by side.
        disk = None if evidence.loaded else evidence.disk
        with _kept(broken, (*LEDGER_CHECKS, pins_extend)):
            beside = begin_scan(
                evidence.database, evidence.db, evidence.rows, folding=folded, disk=disk
            )
            if folded:
                _fold(evidence, beside.compared)
            tell("checking entries")
            evidence.scan = beside.scanned()
    elif folded:
        _fold(evidence)
    return broken


def _remark(evidence: Evidence) -> None:
    """What breaks no rule and a person should know: warnings of the ledger's checks."""
    if evidence.scan is None:
        return
    tally = evidence.scan.tally
    if not evidence.loaded and os.path.islink(evidence.database):
        leads = os.path.realpath(evidence.database)
        message = f"the database is a symbolic link, and {leads} was judged"
        help_ = "put the file itself there, or find out who made the link"
        tally.add(Finding(sequence.NAME, message, "database", help=help_, severity="warning"))
    for known, other in look_alikes(evidence.handles()):
        shown = other.encode("ascii", "backslashreplace").decode()
        message = f"the handle {other} looks like {known}: it is {shown}"
        help_ = "find out who uses it: messages of one can be taken for those of the other"
        tally.add(
            Finding(writers_authorised.NAME, message, "handles", help=help_, severity="warning")
        )


@contextmanager
def _kept(broken: dict[str, Exception], checks: Iterable[ModuleType]) -> Iterator[None]:
    """Keep what breaks in one source of evidence for the checks that judge it; the rest goes on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - evidence that nobody foresaw is a finding
        broken.update((check.NAME, error) for check in checks)


def _misnamed(rules: Rules) -> str | None:
    """A name in the policy that nothing bears: such a demand would demand nothing."""
    advising = {check.NAME for check in ADVICE} & set(rules.required)
    if advising:
        return f"the policy requires {min(advising)!r}, and that check only advises"
    for names, known, what in (
        (rules.required, {check.NAME for check in CHECKS}, "check"),
        (rules.signed, {kind.name for kind in KINDS}, "kind of entries"),
    ):
        unknown = set(names) - known
        if unknown:
            return f"the policy names {min(unknown)!r}, and there is no such {what}"
    return None


def _begin(evidence: Evidence) -> Iterator[str]:
    """Start from a pin where one is given; say what that leaves out, or why it cannot be done."""
    pin = evidence.outside.pin
    if pin is None or evidence.db is None or evidence.problem or evidence.scan is not None:
        return
    # A record is read whole in any case, and its tables are not folded.
    scan = None if evidence.loaded else scan_since(evidence.db, pin)
    if scan is None:
        yield (
            "everything was looked at: a record is read whole"
            if evidence.loaded
            else "everything was looked at: the ledger cannot be taken up at the pin (size "
            f"{pin.size})"
        )
        return
    evidence.scan = scan
    left_out = [check.NAME for check in CHECKS if check not in NEW_ONLY]
    yield (
        f"only entries from {scan.since} on were looked at: those before were not looked at again, "
        f"their roots give the pinned one (size {pin.size})"
    )
    yield f"not run, for they need the whole ledger: {', '.join(left_out)}"


def _demanded(evidence: Evidence, told: Outcome) -> Outcome:
    """What the policy requires must have something to judge: protection that is gone fails.

    Where it says so, a verdict with exceptions tells nothing.
    """
    if told.exceptions and evidence.outside.rules.exceptions and not told.failures:
        reasons = [told.reason] if told.reason else []
        reason = "; ".join([*reasons, f"except: {'; '.join(told.exceptions)}"])
        past = told.past and told.verdict == CANNOT_TELL
        told = replace(told, verdict=CANNOT_TELL, reason=reason, exceptions=(), past=past)
    if told.check not in evidence.outside.rules.required:
        return told
    if told.verdict != NOT_APPLICABLE:
        return replace(told, required=True)
    finding = Finding(
        told.check,
        f"the policy requires this check, and it has nothing to judge: {told.reason}",
        "policy",
        help="bring back what it judges, or change the policy where that may be done",
    )
    return Outcome(told.check, FINDINGS, "", (finding,), required=True)


def _advising(check: ModuleType, told: Outcome) -> Outcome:
    """What a check says that only advises is advice, whatever it calls it: no exit code changes."""
    if check not in ADVICE:
        return told
    findings = tuple(replace(finding, severity="advice") for finding in told.findings)
    left_out: dict[Weight, int] = {}
    for (_, past), number in told.left_out.items():
        left_out["advice", past] = left_out.get(("advice", past), 0) + number
    return replace(told, findings=findings, required=False, advice=True, left_out=left_out)


def _sealed(evidence: Evidence) -> tuple[int, str, int] | None:
    """Of the newest seal: how many entries it covers, its time, how many seconds ago that was."""
    if evidence.db is None or evidence.folded is None:
        return None
    newest = [(seq, size) for seq, size, *_ in evidence.query(TRUST.newest_seal)]
    if evidence.loaded:  # its seal covers all of it; when it was made, no entry of it says
        newest = [(evidence.rows - 1, evidence.rows)] if evidence.rows else []
    for seq, size in newest:
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


def _judge(check: ModuleType, evidence: Evidence, broken: Mapping[str, Exception]) -> Outcome:
    tell(f"judging {check.NAME}")
    if check.NAME in broken:
        return _broke(check, evidence, broken[check.NAME])
    if evidence.problem and check not in (*_UNFOLDED, pins_extend):
        return cannot_tell(check.NAME, evidence.problem, required=bool(check.REQUIRED))
    try:
        if check is pins_extend:
            evidence.held = hold(evidence)
        verdict: Outcome = check.judge(evidence)
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, not an end
        return _broke(check, evidence, error)
    return verdict


def _broke(check: ModuleType, evidence: Evidence, error: Exception) -> Outcome:
    name = check.NAME
    broke = Finding(
        name,
        f"the check broke: {type(error).__name__}: {error}",
        evidence.what,
        help="the evidence has a shape that the check does not expect; the others went on",
    )
    return Outcome(name, FINDINGS, "", (broke,), required=bool(check.REQUIRED))


# Explain ----------------------------------------------------------------------------------------


def manual(name: str) -> str:
    """The manual section of a check (LookupError: no such check)."""
    for check in CHECKS:
        if name == check.NAME:
            required = "required" if check.REQUIRED else "not required"
            return f"{name} ({required})\n\n{(check.__doc__ or '').strip()}\n"
    raise LookupError(f"no check {name}; there are: {', '.join(check.NAME for check in CHECKS)}")
