"""Runs the checks over the evidence. One that breaks is a finding of its own and stops no other.

The runner knows no check by its name: it makes the evidence that the chosen checks need
(``tripod.verify.check.Need``), and gives the outcome itself where a source is not there.
"""

from __future__ import annotations

import gc
import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from tripod import ledger
from tripod.ledger import GitError, tell_progress
from tripod.ledger.ids import now_us
from tripod.ledger.locator import database_of, has_ledger, has_record, is_only_stored_to, team_of
from tripod.ledger.sqlite.reader import SQLiteReader, read_only
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import read_seal
from tripod.projections import TRUST
from tripod.verify.acceptance import (
    Acceptances,
    Before,
    acceptances_in_force,
    found_before,
    read_acceptances,
)
from tripod.verify.anchors.anchors import USUAL, AnchorOptions, OutsideError
from tripod.verify.anchors.comparison import compare_heads
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.heads import KnownHead
from tripod.verify.anchors.pins import ReplicaPins
from tripod.verify.anchors.policy import forbidden_files
from tripod.verify.anchors.selection import (
    advises,
    checks_left_out,
    misnamed_problem,
    selection_notes,
    with_broken_files,
)
from tripod.verify.check import (
    CANNOT_TELL,
    CLEAN,
    FINDINGS,
    NOT_APPLICABLE,
    Check,
    Finding,
    Need,
    Outcome,
    Report,
    Since,
    Weight,
    cannot_tell,
    lets_accept,
    needs,
    not_applicable,
    outcome,
)
from tripod.verify.checks import CHECKS, ledger_missing
from tripod.verify.checks.writers_authorised import Demand
from tripod.verify.evidence import (
    NEARBY,
    OpenEvidence,
    collect,
    collect_outside_evidence,
    collect_since,
    evidence_changed,
    judge_until_still,
)
from tripod.verify.export import ExportFiles, compare_record_files, is_export, load_export
from tripod.verify.export_file import FileError, RefFiles
from tripod.verify.finding import Acceptance, FindingNames, naming_findings
from tripod.verify.finding_place import locate_findings
from tripod.verify.fold import Compared
from tripod.verify.peers.refs import (
    ReplicaRef,
    longest_records,
    named_replicas,
    replica_refs,
    team_judged_by_refs,
)
from tripod.verify.scan.database import begin_database_scan, scan_database_since
from tripod.verify.scan.signatures import scan_signatures

_WHOLE = (Need.TABLES, Need.RECORD)
"""What only the whole ledger gives: a run from a pin leaves out the checks that need it."""

_OF_ONE = (
    "--since {}: the number of an entry is of one ledger, and {} replicas are judged by their refs "
    "here: give a git revision"
)

LookAtJudged = Callable[[OpenEvidence, Report, str], object]
"""Gets evidence with the report on it before it is closed, and the replica whose it is, or ''."""

Broken = dict[Need, Exception]
"""Unforeseen errors, by the source of evidence that could not be made."""


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
    since: str | int | None = None,
    policy_from: str | None = None,
    never: Sequence[str] = (),
) -> Report:
    """Judge what stands at a path, and return the report. Nothing is written or printed.

    What cannot be judged is said in the report (``problem``), and so is a check that breaks.
    ``Report.exit_code`` is what ``tripod verify`` would exit with: 0, 1 or 3.

    Args:
        path: a project, team directory, database or export; of a clone its records are judged.
        select: names of the checks to run; None: all, with those of installed packages.
        keys: public keys (vkeys) that may have signed the seal of an export or a record.
        policies: policy files (``.tlog``, ``.yaml``, ``.pem``) in place of the team's own.
        pin: a file with a head to hold the ledger against, or a folder with one for each replica.
        new_only: judge only the entries after the pin.
        git: whether to read the history of the git repository around the team.
        no_ledger: the team is known to have none: judge the files alone.
        nearby: how many lines an approximate chat reference may be off.
        since: an entry's number, or a git revision with a seal: only what is new is reported.
        policy_from: a git revision whose ``tripod.toml`` and ``pyproject.toml`` count.
        never: globs of files that no agent may have read: a rule besides those of the policy.

    Raises:
        ValueError: ``select`` names a check that is not there, ``new_only`` comes without a pin, or
            with ``since``; a glob of ``never`` cannot be used.
        MalformedError: one of ``keys`` is no public key.
    """
    checks = all_checks()
    if unknown := set(select or ()) - {check.NAME for check in checks}:
        raise ValueError(f"there is no check {min(unknown)!r}")
    if new_only and (pin is None or since is not None):
        raise ValueError("new_only needs a pin; of new_only and since give one of them")
    asked = AnchorOptions(
        None if pin is None else os.fspath(pin), new_only=new_only, git=git,
        policies=tuple(os.fspath(policy) for policy in policies),
        since=None if since is None else str(since), policy_from=policy_from,
        never=forbidden_files(never) if never else None,
    )  # fmt: skip
    how: HowToOpen = {"nearby": nearby, "keys": [*map(VerifierKey.parse, keys)], "asked": asked}
    if not no_ledger and (by_refs := judge_refs(os.fspath(path), select, **how)) is not None:
        return by_refs

    def judge(left: int) -> Report | None:
        with open_run(os.fspath(path), no_ledger=no_ledger, **how) as evidence:
            report = run(evidence, select, checks)
            return None if left and evidence_changed(evidence) else report

    return judge_until_still(os.fspath(path), judge)


class HowToOpen(TypedDict, total=False):
    """How evidence is opened: see ``verify``."""

    nearby: int
    keys: Sequence[VerifierKey]
    asked: AnchorOptions


def run(
    evidence: OpenEvidence,
    select: Collection[str] | None = None,
    checks: Sequence[Check] | None = None,
) -> Report:
    """Judge; ``select`` names the checks to run (all of them otherwise), in the report's order.

    ``checks`` are those that there are. Where the evidence has a pin to start from, and the ledger
    grew from it, only those are run that can judge the new entries alone; the report says so.
    """
    if checks is None:  # to look for installed ones takes 2 ms: not where none of them is asked for
        own = {check.NAME for check in CHECKS}
        checks = CHECKS if select is not None and own.issuperset(select) else all_checks()
    problem = misnamed_problem(evidence.outside, checks, all_checks)
    if problem is not None:
        return Report(evidence.what, (), problem=problem, subject=evidence.subject)
    left_out = checks_left_out(evidence.outside, checks) if select is None else []
    asked = [
        check
        for check in checks
        if (check.NAME not in left_out if select is None else check.NAME in select)
    ]
    selection = tuple(selection_notes(evidence.outside.settings, asked, left_out, select))
    notes = tuple(_begin(evidence, checks))
    since = evidence.scan is not None and evidence.scan.since > 0
    if since:
        asked = [check for check in asked if not needs(check, *_WHOLE)]
    chosen = [
        check
        for check in asked
        if evidence.database.bodies or not needs(check, Need.BODIES, Need.TABLES)
    ]
    broken = _look(evidence, chosen, since=since)
    if evidence.problem and evidence.scan is None:
        return Report(evidence.what, (), problem=evidence.problem, subject=evidence.subject)
    found = Acceptances({}) if evidence.folded is None else read_acceptances(evidence, checks)
    before = None if since else found_before(evidence, chosen)
    judged = _Judged(evidence, broken, found, before)
    outcomes = judged.outcomes(asked)
    report = Report(
        evidence.what,
        outcomes,
        evidence.scan.head if evidence.scan else None,
        sealed=_sealed(evidence),
        anchored=evidence.held.anchored if evidence.held else None,
        notes=(*notes, *judged.notes, *selection),
        subject=evidence.subject,
        since=judged.since,
    )
    is_compared = evidence.held is not None and evidence.db is not None
    return report if is_compared else with_broken_files(evidence.outside, report)


# Evidence ---------------------------------------------------------------------------------------


def open_run(
    path: str,
    *,
    no_ledger: bool = False,
    nearby: int = NEARBY,
    keys: Sequence[VerifierKey] = (),
    asked: AnchorOptions = USUAL,
) -> OpenEvidence:
    """Open what stands at ``path``; what cannot be opened is said in ``OpenEvidence.problem``.

    A team directory without its database, as in a clone, is judged by its record, if it has one.
    ``keys`` may have signed a seal; the rest is as with ``evidence.collect``.
    """
    evidence = collect(path, no_ledger=no_ledger, nearby=nearby, asked=asked)
    evidence.database.keys = tuple(keys)
    if evidence.root is None:
        if os.path.isdir(path) and is_export(path):
            evidence.problem = ""
            collect_outside_evidence(evidence, asked)
            _load(evidence, ExportFiles(path), path)
    elif not evidence.has_ledger and not evidence.problem and not no_ledger:
        record = f"{evidence.root}/{ledger.RECORD}"
        if has_record(evidence.root):
            _load(evidence, ExportFiles(record), record)
    collect_since(evidence, asked)
    return evidence


def judge_refs(
    path: str,
    select: Collection[str] | None = None,
    *,
    nearby: int = NEARBY,
    keys: Sequence[VerifierKey] = (),
    asked: AnchorOptions = USUAL,
    each: LookAtJudged = lambda _evidence, _report, _replica: None,
) -> Report | None:
    """Judge the record of every replica that a ref of the repository around ``path`` has.

    That is how a clone without a ledger is judged: the report has a part for each replica, and one
    for a ledger or another's record in the work tree. None where the repository has a ledger of its
    own, or wrote one of these refs. A replica that has a pin and no ref is a part as well
    (``ReplicaPins``). ``each`` sees the evidence of each part while it is open.
    """
    parts: list[Report] = []
    is_apart = is_export(path) and not os.path.lexists(f"{path}/.git")
    root = None if is_apart or not os.path.isdir(path) else team_judged_by_refs(path)
    if root is None or not asked.git:
        return None
    try:
        with Repository(root) as repository:
            records = longest_records(repository, replica_refs(repository))
            own = [(ref, seal) for ref, seal in records if ref.remote is None and seal is not None]
            beside = team_of(path)
            if beside and not _names_inside(beside).isdisjoint(seal.origin for _, seal in own):
                return None
            if len(records) > 1 and re.fullmatch("[0-9]{1,15}", asked.since or ""):
                return Report(path, (), problem=_OF_ONE.format(asked.since, len(records)))
            origins = frozenset(seal.origin for _, seal in records if seal is not None)
            pins = ReplicaPins(asked)
            for ref, _ in records:
                evidence = OpenEvidence(ref.ref, nearby=nearby, now_us=now_us())
                evidence.database.keys = tuple(keys)
                evidence.database.peers = origins - pins.origins(ref.replica)
                with open_ref(evidence, repository, ref, root, pins.asked_of(ref.replica)):
                    parts.append(pins.noted(run(evidence, select), ref.replica))
                    each(evidence, parts[-1], ref.replica)
            for one in pins.lost({ref.replica for ref, _ in records}):
                parts.append(one)
                with OpenEvidence(one.what, problem=one.problem, outside=pins.known(one)) as lost:
                    each(lost, one, "")
        if own and not is_only_stored_to(repository.place.common):  # a ledger here wrote them
            with OpenEvidence(root) as evidence:
                evidence.outside.known = tuple(KnownHead("git", one.ref, seal) for one, seal in own)
                parts.append(replace(run(evidence, {ledger_missing.NAME}), notes=()))
                each(evidence, parts[-1], "")
        if parts and beside and (has_ledger(beside) or _has_other_record(beside, origins)):
            with open_run(path, nearby=nearby, keys=keys, asked=pins.asked_of_others) as evidence:
                parts.append(run(evidence, select))
                each(evidence, parts[-1], "")
    except (OutsideError, GitError) as error:
        return _unread(path, root, error)
    return Report(path, (), parts=tuple(parts)) if parts else None


def _unread(path: str, root: str, error: OutsideError | GitError) -> Report | None:
    """What is said where git or a pin cannot be read; None: the files of a team are judged.

    What lies in the work tree takes no place of records on refs.
    """
    is_kept = isinstance(error, OutsideError) or team_of(path) is None
    is_kept = is_kept or bool(named_replicas(f"{os.path.dirname(root)}/README"))
    return Report(path, (), problem=str(error)) if is_kept else None


def open_ref(
    evidence: OpenEvidence, repository: Repository, ref: ReplicaRef, root: str, asked: AnchorOptions
) -> OpenEvidence:
    """Open the record on a ref; ``root`` is the team directory of its repository."""
    collect_outside_evidence(evidence, asked, root)
    if not ref.commit:
        evidence.problem = f"{ref.ref} leads to no commit, so to no record"
    try:
        if not evidence.problem:
            files = RefFiles(repository, ref.commit, ref.replica)
            _load(evidence, files, f"{repository.place.common}/{ref.ref}")
    except GitError as error:
        evidence.problem = f"{ref.ref}: {error}"
    collect_since(evidence, asked, root)
    return evidence


def _names_inside(root: str) -> set[str]:
    """The names that the ledger of a team directory has and had; none where it cannot be read."""
    begun = "ledger.opened", "ledger.forked-from"
    with (
        suppress(ledger.LedgerError, sqlite3.Error, OSError),
        closing(read_only(database_of(root))) as db,
    ):
        return {ledger.parse_header(row.header).ledger for row in SQLiteReader(db).raw(kinds=begun)}
    return set()


def _has_other_record(root: str, origins: Collection[str]) -> bool:
    """Whether a record is committed in a team directory that is of none of these replicas."""
    with suppress(FileError, ledger.LedgerError):
        return read_seal(ExportFiles(f"{root}/{ledger.RECORD}").seal_note()).origin not in origins
    return has_record(root)


def _load(evidence: OpenEvidence, files: ExportFiles, source: str) -> None:
    """Make a database of the files of an export or a record, and open that."""
    database = evidence.database
    database.scratch = TemporaryDirectory(prefix="tripod-")
    database.path, database.source = f"{database.scratch.name}/{ledger.DATABASE}", source
    try:
        loaded = load_export(files, database.path, database.keys)
        database.bodies = loaded.bodies
        evidence.record = loaded.judged()
        evidence.problem = database.open() or evidence.problem
    except (ledger.LedgerError, sqlite3.Error, OSError) as error:
        evidence.problem = f"{source} cannot be read: {error}"


def _look(evidence: OpenEvidence, chosen: Sequence[Check], *, since: bool) -> Broken:
    """Make the evidence that the chosen checks need; what breaks on the way, by its source."""
    broken: Broken = {}
    wanted = {need for check in chosen for need in check.NEEDS}
    folded = (
        evidence.database.bodies and not since and not wanted.isdisjoint((Need.TABLES, Need.HEADS))
    )
    unscanned = evidence.db is not None and not evidence.problem and evidence.scan is None
    if unscanned and not wanted.isdisjoint((Need.ROWS, Need.HEADS)):
        # The pass over the rows and the fold of the tables look at the same rows, side by side.
        with _kept(broken, Need.ROWS, Need.HEADS):
            db, disk = evidence.db, None if evidence.loaded else evidence.disk
            assert db is not None
            path = evidence.database.path
            beside = begin_database_scan(path, db, evidence.rows, folding=folded, disk=disk)
            if folded:
                _fold(evidence, beside.compared)
            tell_progress("checking entries")
            evidence.scan = beside.scanned()
    elif folded:
        _fold(evidence)
    if evidence.problem and evidence.scan is None:
        return broken
    if evidence.folded is not None and evidence.query("SELECT 1 FROM settling LIMIT 1"):
        # Entries settle findings: so they are looked at, whichever checks were chosen.
        wanted |= {Need.ROWS, Need.SIGNATURES}
        if evidence.scan is None and evidence.db is not None and Need.ROWS not in broken:
            with _kept(broken, Need.ROWS):
                path = evidence.database.path
                beside = begin_database_scan(path, evidence.db, evidence.rows, folding=False)
                evidence.scan = beside.scanned()
    if Need.RECORD in wanted and evidence.record is None:
        with _kept(broken, Need.RECORD):
            compare_record_files(evidence)
    if Need.SIGNATURES in wanted and evidence.db is not None and evidence.scan is not None:
        rules = evidence.outside.rules
        with _kept(broken, Need.SIGNATURES):
            scan_signatures(
                evidence.db, evidence.scan, Demand(rules.signed, rules.signed_from or 0)
            )
    if Need.HEADS in wanted and Need.HEADS not in broken:
        with _kept(broken, Need.HEADS):
            evidence.held = compare_heads(evidence)
    return broken


@contextmanager
def _kept(broken: Broken, *sources: Need) -> Iterator[None]:
    """Keep what breaks in a source of evidence for the checks that need it; the rest goes on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - evidence that nobody foresaw is a finding
        broken.update(dict.fromkeys(sources, error))


def _begin(evidence: OpenEvidence, checks: Sequence[Check]) -> Iterator[str]:
    """Start from a pin where one is given; say what that leaves out, or why it cannot be done."""
    pin = evidence.outside.pin
    if pin is None or evidence.db is None or evidence.problem or evidence.scan is not None:
        return
    # A record is read whole in any case, and its tables are not folded.
    scan = None if evidence.loaded else scan_database_since(evidence.db, pin)
    if scan is None:
        yield (
            "everything was looked at: a record is read whole"
            if evidence.loaded
            else "everything was looked at: the ledger cannot be taken up at the pin (size "
            f"{pin.size})"
        )
        return
    evidence.scan = scan
    left_out = [check.NAME for check in checks if needs(check, *_WHOLE)]
    yield (
        f"only entries from {scan.since} on were looked at: those before were not looked at again, "
        f"their roots give the pinned one (size {pin.size})"
    )
    yield f"not run, for they need the whole ledger: {', '.join(left_out)}"


def _fold(evidence: OpenEvidence, compared: Callable[[], Compared | None] = lambda: None) -> None:
    """Fold without the collector of cycles: none are made, and it would look at every object."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        evidence.fold(compared)
    finally:
        if enabled:
            gc.enable()


# Outcomes ---------------------------------------------------------------------------------------


class _Judged:
    """The outcomes of a run, and what it says of acceptances and of what was there before."""

    def __init__(
        self,
        evidence: OpenEvidence,
        broken: Broken,
        found: Acceptances,
        before: Before | str | None,
    ) -> None:
        self.evidence, self.broken, self.found = evidence, broken, found
        self.before = before if isinstance(before, Before) else None
        self.notes = [before] if isinstance(before, str) else []
        self.older: dict[str, int] = {}

    def outcomes(self, asked: Sequence[Check]) -> tuple[Outcome, ...]:
        """Judge; first by the checks of the ledger itself, for acceptances are its entries."""
        of_ledger = [check for check in asked if not lets_accept(check)]
        told = {check.NAME: self.outcome(check, {}) for check in of_ledger}
        accepted = acceptances_in_force(self.evidence, self.found, told.values())
        self.notes += accepted.notes
        for check in asked:
            if check.NAME not in told:
                told[check.NAME] = self.outcome(check, accepted.counting.get(check.NAME, {}))
        return tuple(told[check.NAME] for check in asked)

    def outcome(self, check: Check, accepted: Mapping[str, Acceptance]) -> Outcome:
        """The outcome of a check, with what it is and what the policy demands taken in."""
        acceptable = lets_accept(check)
        older = self.before.found.get(check.NAME) if self.before and acceptable else None
        names = FindingNames(self.evidence.entry_name, accepted, older, is_acceptable=acceptable)
        with naming_findings(names):
            told = _judge(check, self.evidence, self.broken)
        told = replace(told, required=bool(check.REQUIRED))
        if advises(check):  # then all its findings are advice, of any severity that it gives
            findings = tuple(replace(finding, severity="advice") for finding in told.findings)
            left_out: dict[Weight, int] = {}
            for (_, past), number in told.left_out.items():
                left_out["advice", past] = left_out.get(("advice", past), 0) + number
            told = replace(told, findings=findings, required=False, advice=True, left_out=left_out)
        told = _demanded(self.evidence, told)
        findings = tuple(filter(None, map(names.sort, told.findings)))
        if told.verdict == FINDINGS and not findings and not told.left_out:
            told = replace(told, verdict=CLEAN)
        if names.left_out:
            self.older[check.NAME] = names.left_out
        taken = tuple(names.taken)
        told = replace(told, findings=findings, accepted=taken, accepted_count=names.accepted)
        return locate_findings(self.evidence, told, rows=needs(check, Need.ROWS))

    @property
    def since(self) -> Since | None:
        """From where on something was new, and what was left out for that."""
        before = self.before
        return None if before is None else Since(before.size, before.why, self.older)


def _judge(check: Check, evidence: OpenEvidence, broken: Broken) -> Outcome:
    name = check.NAME
    tell_progress(f"judging {name}")
    if not evidence.database.bodies and needs(check, Need.BODIES, Need.TABLES):
        reason = "only headers are there, no bodies"
        if evidence.root is None:  # an export of headers alone has no rules of a team
            return not_applicable(name, reason)
        return cannot_tell(name, reason)
    error = next((broken[need] for need in check.NEEDS if need in broken), None)
    if error is None:
        if evidence.problem and needs(check, Need.TABLES):
            return cannot_tell(name, evidence.problem)
        no_ledger = (needs(check, Need.LEDGER) and evidence.db is None) or (
            needs(check, Need.ROWS) and evidence.scan is None
        )
        if no_ledger or (needs(check, Need.RECORD) and evidence.record is None):
            return not_applicable(name, f"there is no {'ledger' if no_ledger else 'record'}")
        try:
            return check.judge(evidence)
        except Exception as unforeseen:  # noqa: BLE001 - a check that breaks is a finding
            error = unforeseen
    message = f"the check broke: {type(error).__name__}: {error}"
    help_ = "the evidence has a shape that the check does not expect; the others went on"
    broke = Finding(name, message, evidence.what, help=help_, fault=None)
    return outcome(name, [broke], {})


def _demanded(evidence: OpenEvidence, told: Outcome) -> Outcome:
    """What the policy requires must have something to judge: protection that is gone fails."""
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
        fault=None,
    )
    return outcome(told.check, [finding], {}, required=True)


def _sealed(evidence: OpenEvidence) -> tuple[int, str, int] | None:
    """Of the newest seal: how many entries it covers, its time, how many seconds ago that was."""
    if evidence.db is None or evidence.folded is None:
        return None
    newest = [(seq, size) for seq, size, *_ in evidence.query(TRUST.newest_seal)]
    if evidence.loaded:  # its seal covers all of it; when it was made, no entry of it says
        newest = [(evidence.rows - 1, evidence.rows)] if evidence.rows else []
    for seq, size in newest:
        at = evidence.micros(seq)
        if at is not None:
            return size, evidence.at(seq), max(0, evidence.now_us - at) // 1_000_000
    return None


# Checks of installed packages --------------------------------------------------------------------
#
# Each entry point names a check (``tripod.verify.check.Check``) by its own NAME. One that cannot be
# loaded, or that raises, cannot tell. One that takes the name of another check replaces nothing.

GROUP = "tripod.checks"
_NAME = re.compile(r"[a-z](?=.{,59}$)[a-z0-9]*(?:-[a-z0-9]+)*")


class Installed:
    """A check of an installed package, as the runner sees it; it raises nothing.

    ``problem`` says why it cannot be loaded, '' where ``check`` is what was loaded.
    """

    def __init__(self, name: str, package: str, check: Any = None, problem: str = "") -> None:
        self.NAME, self.PACKAGE = name, package
        self.__doc__ = "" if problem else str(check.__doc__ or "")
        self.REQUIRED = getattr(check, "REQUIRED", False) is True
        self.ADVICE = getattr(check, "ADVICE", False) is True
        self.ACCEPTABLE = getattr(check, "ACCEPTABLE", True) is True
        needs_of = () if problem else getattr(check, "NEEDS", (Need.TABLES,))
        self.NEEDS: frozenset[Need] = frozenset(needs_of)
        self._check, self._problem = check, problem

    def judge(self, evidence: object) -> Outcome:
        """What the check says of the evidence; *cannot tell* where it breaks."""
        reason = self._problem or f"the check gave no outcome of the name {self.NAME}"
        try:
            told = None if self._problem else self._check.judge(evidence)
            if isinstance(told, Outcome) and {
                told.check,
                *(finding.check for finding in told.findings),
            } == {self.NAME}:
                return told
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is another package's
            reason = f"the check broke: {type(error).__name__}: {error}"
        return cannot_tell(self.NAME, f"{reason} (package {self.PACKAGE})")


def installed_checks() -> tuple[Installed, ...]:
    """The checks of installed packages, in the order of their names."""
    found: dict[str, Installed] = {}
    taken = {check.NAME for check in CHECKS}
    points = [
        (point.name, point.dist.name if point.dist is not None else "of no name", point)
        for point in entry_points(group=GROUP)
    ]
    for name, package, point in sorted(points, key=lambda one: one[:2]):
        check = _installed(point, name, package, taken)
        found.setdefault(check.NAME, check)
        taken.add(check.NAME)
    return tuple(found.values())


def all_checks() -> tuple[Check, ...]:
    """The built-in checks in the order of the report, then those of installed packages."""
    return (*CHECKS, *installed_checks())


def _installed(point: EntryPoint, name: str, package: str, taken: Collection[str]) -> Installed:
    """The check that an entry point names, or one in its place that says what is wrong."""
    if name in taken:
        problem = "there is a check of that name already, and no package replaces one"
        return Installed(f"{package}:{name}", package, problem=problem)
    if not _NAME.fullmatch(name):
        problem = (
            "a check's name has lower-case letters, digits and hyphens, at most 60, and begins "
            "with a letter"
        )
        return Installed(f"{package}:{name}", package, problem=problem)
    try:
        check = point.load()
        wanted = getattr(check, "NEEDS", ())
        if getattr(check, "NAME", None) != point.name:
            problem = f"its NAME is {getattr(check, 'NAME', None)!r}, not {point.name!r}"
        elif not isinstance(wanted, Collection) or not all(isinstance(n, Need) for n in wanted):
            problem = f"its NEEDS are {wanted!r}, not members of tripod.verify.check.Need"
        elif not callable(getattr(check, "judge", None)):
            problem = "it has no function judge(evidence)"
        else:
            return Installed(name, package, check)
        problem = f"TypeError: {problem}"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the code is another package's
        problem = f"{type(error).__name__}: {error}"
    return Installed(name, package, problem=f"the check cannot be loaded: {problem}")


def check_manual(name: str) -> str:
    """The manual section of a check (LookupError: no such check)."""
    sections = manuals()
    if name not in sections:
        raise LookupError(f"no check {name}; there are: {', '.join(sections)}")
    return sections[name]


def manuals() -> dict[str, str]:
    """The manual section of each check, by its name."""
    return {check.NAME: _manual(check) for check in all_checks()}


def _manual(check: Check) -> str:
    name = check.NAME
    required = "required" if check.REQUIRED else "not required"
    required += "" if lets_accept(check) else ", and nobody can accept what it finds"
    package = getattr(check, "PACKAGE", "")
    front = f"{name} ({required}{f', from the package {package}' if package else ''})"
    return f"{front}\n\n{(check.__doc__ or '').strip()}\n"
