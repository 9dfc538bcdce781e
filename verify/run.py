"""Runs the checks over the evidence. One that breaks is a finding of its own and stops no other.

The runner knows no check by its name: it makes the evidence that the chosen checks need
(``tripod.verify.check.Need``), and gives the outcome itself where a source is not there.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

from tripod.ledger import parse_at
from tripod.ledger.kinds.registry import KINDS
from tripod.ledger.progress import tell
from tripod.ledger.tlog.note import VerifierKey
from tripod.projections import TRUST
from tripod.verify.anchors.anchors import AnchorOptions
from tripod.verify.anchors.comparison import hold
from tripod.verify.anchors.policy import Rules
from tripod.verify.check import (
    BODIES,
    HEADS,
    LEDGER,
    RECORD,
    ROWS,
    SIGNATURES,
    TABLES,
    Check,
    Need,
    advises,
    needs,
)
from tripod.verify.checks import CHECKS
from tripod.verify.checks.writers_authorised import Demand
from tripod.verify.evidence import NEARBY, OpenEvidence
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
from tripod.verify.load import open_evidence
from tripod.verify.scan.database import begin_scan, scan_since
from tripod.verify.scan.signatures import judge_signatures

Broken = dict[Need, Exception]
"""What broke where that was not foreseen, by the source of evidence that it broke in."""


def verify(
    path: str | os.PathLike[str] = ".",
    *,
    select: Collection[str] | None = None,
    keys: Sequence[str] = (),
    policies: Sequence[str | os.PathLike[str]] = (),
    pin: str | os.PathLike[str] | None = None,
    new_only: bool = False,
    git: bool = True,
    no_ledger: bool = False,
    nearby: int = NEARBY,
) -> Report:
    """Judge what stands at a path, and return the report. Nothing is written or printed.

    What cannot be judged is said in the report (``problem``), and so is a check that breaks.
    ``Report.exit_code`` is what ``tripod verify`` would exit with: 0, 1 or 3.

    Args:
        path: a project, a team directory, a database, or an export. A clone without a database is
            judged by its record.
        select: names of the checks to run; None: all, with those of installed packages.
        keys: public keys (vkeys) that may have signed the seal of an export or a record.
        policies: policy files (``.tlog``, ``.yaml``, ``.pem``) in place of the team's own.
        pin: a file with a head to hold the ledger against.
        new_only: judge only the entries after the pin.
        git: whether to read the history of the git repository around the team.
        no_ledger: the team is known to have none: judge the files alone.
        nearby: how many lines an approximate chat reference may be off.

    Raises:
        ValueError: ``select`` names a check that is not there, or ``new_only`` comes without a pin.
        MalformedError: one of ``keys`` is no public key.
    """
    checks = all_checks()
    unknown = set(select or ()) - {check.NAME for check in checks}
    if unknown:
        raise ValueError(f"there is no check {min(unknown)!r}")
    if new_only and pin is None:
        raise ValueError("new_only needs a pin to start from")
    asked = AnchorOptions(
        None if pin is None else os.fspath(pin),
        new_only=new_only,
        policies=tuple(os.fspath(policy) for policy in policies),
        git=git,
    )
    with open_evidence(
        os.fspath(path),
        no_ledger=no_ledger,
        nearby=nearby,
        keys=[VerifierKey.parse(key) for key in keys],
        asked=asked,
    ) as evidence:
        return run(evidence, select, checks)


def run(
    evidence: OpenEvidence,
    select: Collection[str] | None = None,
    checks: Sequence[Check] | None = None,
) -> Report:
    """Judge; ``select`` names the checks to run (all of them otherwise), in the report's order.

    ``checks`` are those that there are: the built-in ones and those of installed packages, where
    nothing is given. Where the evidence has a pin to start from, and the ledger grew from it, only
    those are run that can judge the new entries alone; the report says so.
    """
    report = _run(evidence, select, all_checks() if checks is None else checks)
    return replace(report, subject=evidence.subject)


def _run(evidence: OpenEvidence, select: Collection[str] | None, checks: Sequence[Check]) -> Report:
    problem = _misnamed(evidence.outside.rules, checks)
    if problem is not None:
        return Report(evidence.what, (), problem=problem)
    asked = [check for check in checks if select is None or check.NAME in select]
    notes = list(_begin(evidence, checks))
    since = evidence.scan is not None and evidence.scan.since > 0
    if since:
        asked = [check for check in asked if not _needs_all(check)]
    chosen = [check for check in asked if evidence.bodies or not needs(check, BODIES, TABLES)]
    broken = _look(evidence, chosen, since=since)
    if evidence.problem and evidence.scan is None:
        return Report(evidence.what, (), problem=evidence.problem)
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


# Evidence ---------------------------------------------------------------------------------------


def _look(evidence: OpenEvidence, chosen: Sequence[Check], *, since: bool) -> Broken:
    """Make the evidence that the chosen checks need; what breaks on the way, by its source."""
    broken: Broken = {}
    wanted = {need for check in chosen for need in check.NEEDS}
    folded = evidence.bodies and not since and not wanted.isdisjoint((TABLES, HEADS))
    unscanned = evidence.db is not None and not evidence.problem and evidence.scan is None
    if unscanned and not wanted.isdisjoint((ROWS, HEADS)):
        # The pass over the rows and the fold of the tables look at the same rows, side by side.
        with _kept(broken, ROWS, HEADS):
            _scan(evidence, folded=folded)
    elif folded:
        _fold(evidence)
    if evidence.problem and evidence.scan is None:
        return broken
    if RECORD in wanted and evidence.record is None:
        with _kept(broken, RECORD):
            hold_record(evidence)
    if SIGNATURES in wanted and evidence.db is not None and evidence.scan is not None:
        rules = evidence.outside.rules
        with _kept(broken, SIGNATURES):
            judge_signatures(
                evidence.db, evidence.scan, Demand(rules.signed, rules.signed_from or 0)
            )
    if HEADS in wanted and HEADS not in broken:
        with _kept(broken, HEADS):
            evidence.held = hold(evidence)
    return broken


def _scan(evidence: OpenEvidence, *, folded: bool) -> None:
    db, disk = evidence.db, None if evidence.loaded else evidence.disk
    assert db is not None
    beside = begin_scan(evidence.database, db, evidence.rows, folding=folded, disk=disk)
    if folded:
        _fold(evidence, beside.compared)
    tell("checking entries")
    evidence.scan = beside.scanned()


@contextmanager
def _kept(broken: Broken, *sources: Need) -> Iterator[None]:
    """Keep what breaks in a source of evidence for the checks that need it; the rest goes on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - evidence that nobody foresaw is a finding
        broken.update(dict.fromkeys(sources, error))


def _misnamed(rules: Rules, checks: Sequence[Check]) -> str | None:
    """A name in the policy that nothing bears: such a demand would demand nothing."""
    known_checks = all_checks() if set(rules.required) - {one.NAME for one in checks} else checks
    advising = {check.NAME for check in known_checks if advises(check)} & set(rules.required)
    if advising:
        return f"the policy requires {min(advising)!r}, and that check only advises"
    for names, known, what in (
        (rules.required, {check.NAME for check in known_checks}, "check"),
        (rules.signed, {kind.name for kind in KINDS}, "kind of entries"),
    ):
        unknown = set(names) - known
        if unknown:
            return f"the policy names {min(unknown)!r}, and there is no such {what}"
    return None


def _needs_all(check: Check) -> bool:
    """Whether a check needs the whole ledger: what is behind a pin is not enough for it."""
    return needs(check, TABLES, RECORD)


def _begin(evidence: OpenEvidence, checks: Sequence[Check]) -> Iterator[str]:
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
    left_out = [check.NAME for check in checks if _needs_all(check)]
    yield (
        f"only entries from {scan.since} on were looked at: those before were not looked at again, "
        f"their roots give the pinned one (size {pin.size})"
    )
    yield f"not run, for they need the whole ledger: {', '.join(left_out)}"


def _demanded(evidence: OpenEvidence, told: Outcome) -> Outcome:
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


def _advising(check: Check, told: Outcome) -> Outcome:
    """What a check says that only advises is advice, whatever it calls it: no exit code changes."""
    if not advises(check):
        return told
    findings = tuple(replace(finding, severity="advice") for finding in told.findings)
    left_out: dict[Weight, int] = {}
    for (_, past), number in told.left_out.items():
        left_out["advice", past] = left_out.get(("advice", past), 0) + number
    return replace(told, findings=findings, required=False, advice=True, left_out=left_out)


def _sealed(evidence: OpenEvidence) -> tuple[int, str, int] | None:
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


def _bodiless(check: Check, evidence: OpenEvidence) -> Outcome:
    """A team's rules cannot be told from headers; an export of them alone has none to tell."""
    name, required, reason = check.NAME, bool(check.REQUIRED), "only headers are there, no bodies"
    if evidence.root is None:
        return not_applicable(name, reason, required=required)
    return cannot_tell(name, reason, required=required)


def _fold(evidence: OpenEvidence, compared: Callable[[], Compared | None] = lambda: None) -> None:
    """Fold without the collector of cycles: none are made, and it would look at every object."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        evidence.fold(compared)
    finally:
        if enabled:
            gc.enable()


def _judge(check: Check, evidence: OpenEvidence, broken: Mapping[Need, Exception]) -> Outcome:
    tell(f"judging {check.NAME}")
    required = bool(check.REQUIRED)
    for need in check.NEEDS:
        if need in broken:
            return _broke(check, evidence, broken[need])
    if evidence.problem and needs(check, TABLES):
        return cannot_tell(check.NAME, evidence.problem, required=required)
    missing = _missing(check, evidence)
    if missing:
        return not_applicable(check.NAME, missing, required=required)
    try:
        return check.judge(evidence)
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, not an end
        return _broke(check, evidence, error)


def _missing(check: Check, evidence: OpenEvidence) -> str:
    """What a check needs and is not there, in words; '' where all of it is."""
    if (needs(check, LEDGER) and evidence.db is None) or (
        needs(check, ROWS) and evidence.scan is None
    ):
        return "there is no ledger"
    return "there is no record" if needs(check, RECORD) and evidence.record is None else ""


def _broke(check: Check, evidence: OpenEvidence, error: Exception) -> Outcome:
    name = check.NAME
    broke = Finding(
        name,
        f"the check broke: {type(error).__name__}: {error}",
        evidence.what,
        help="the evidence has a shape that the check does not expect; the others went on",
    )
    return Outcome(name, FINDINGS, "", (broke,), required=bool(check.REQUIRED))


# Checks of installed packages --------------------------------------------------------------------
#
# Each entry point names a check (``tripod.verify.check.Check``) by its own NAME. One that cannot be
# loaded, or that raises, cannot tell. One that takes a name which is there replaces nothing.

GROUP = "tripod.checks"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LONGEST = 60


class Installed:
    """A check of an installed package, as the runner sees it; it raises nothing."""

    def __init__(self, name: str, package: str, check: object) -> None:
        self.NAME, self.PACKAGE, self.__doc__ = name, package, str(check.__doc__ or "")
        self.REQUIRED = getattr(check, "REQUIRED", False) is True
        self.ADVICE = getattr(check, "ADVICE", False) is True
        self.NEEDS: frozenset[Need] = frozenset(getattr(check, "NEEDS", (TABLES,)))
        self._check = check

    def judge(self, evidence: object) -> Outcome:
        """What the check says of the evidence; *cannot tell* where it breaks."""
        try:
            told: object = self._check.judge(evidence)  # type: ignore[attr-defined] # `_read` looked
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is another package's
            reason = f"the check broke: {type(error).__name__}: {error}"
        else:
            if isinstance(told, Outcome):
                names = {told.check, *(finding.check for finding in told.findings)}
                if names == {self.NAME}:
                    return told
            reason = f"the check gave no outcome of the name {self.NAME}"
        reason = f"{reason} (package {self.PACKAGE})"
        return cannot_tell(self.NAME, reason, required=self.REQUIRED)


class _Unloaded(NamedTuple):
    """Stands for a check that cannot be loaded, and says why."""

    name: str
    reason: str
    NEEDS: tuple[Need, ...] = ()

    def judge(self, _evidence: object) -> Outcome:
        return cannot_tell(self.name, self.reason, required=False)


def installed_checks() -> tuple[Installed, ...]:
    """The checks of installed packages, in the order of their names; see the module."""
    found: dict[str, Installed] = {}
    taken = {check.NAME for check in CHECKS}
    points = entry_points(group=GROUP)
    for point in sorted(points, key=lambda one: (one.name, _package(one))):
        check = _load(point, taken)
        found.setdefault(check.NAME, check)
        taken.add(check.NAME)
    return tuple(found.values())


def all_checks() -> tuple[Check, ...]:
    """The built-in checks in the order of the report, then those of installed packages."""
    return (*CHECKS, *installed_checks())


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "of no name"


def _load(point: EntryPoint, taken: Collection[str]) -> Installed:
    """The check that an entry point names, or one in its place that says what is wrong."""
    package, name = _package(point), point.name
    problem = _name_problem(name, taken)
    if problem:
        name = f"{package}:{name}"
    else:
        try:
            return _read(point, package)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is another package's
            problem = f"the check cannot be loaded: {type(error).__name__}: {error}"
    return Installed(name, package, _Unloaded(name, f"{problem} (package {package})"))


def _name_problem(name: str, taken: Collection[str]) -> str:
    """Why no check may have this name; '' where one may."""
    if name in taken:
        return "there is a check of that name already, and no package replaces one"
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        return (
            f"a check's name has lower-case letters, digits and hyphens, at most {_LONGEST}, and "
            "begins with a letter"
        )
    return ""


def _read(point: EntryPoint, package: str) -> Installed:
    """The members of a check, each of its type.

    Raises:
        TypeError: a member is missing, or of another type; besides, all that the package raises.
    """
    check = point.load()
    if getattr(check, "NAME", None) != point.name:
        raise TypeError(f"its NAME is {getattr(check, 'NAME', None)!r}, not {point.name!r}")
    wanted = getattr(check, "NEEDS", ())
    if not isinstance(wanted, Collection) or not all(isinstance(one, Need) for one in wanted):
        raise TypeError(f"its NEEDS are {wanted!r}, not members of tripod.verify.check.Need")
    if not callable(getattr(check, "judge", None)):
        raise TypeError("it has no function judge(evidence)")
    return Installed(point.name, package, check)


def manual(name: str) -> str:
    """The manual section of a check (LookupError: no such check)."""
    checks = {check.NAME: check for check in all_checks()}
    if name not in checks:
        raise LookupError(f"no check {name}; there are: {', '.join(checks)}")
    check = checks[name]
    required = "required" if check.REQUIRED else "not required"
    package = getattr(check, "PACKAGE", "")
    front = f"{name} ({required}{f', from the package {package}' if package else ''})"
    return f"{front}\n\n{(check.__doc__ or '').strip()}\n"
