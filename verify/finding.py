"""What a check says: findings, its verdict, and the report of them all with its exit code. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "CANNOT_TELL",
    "CLEAN",
    "FINDINGS",
    "NOT_APPLICABLE",
    "Anchored",
    "Coverage",
    "FilesJudged",
    "Finding",
    "Outcome",
    "Report",
    "Scanned",
    "Severity",
    "Tally",
    "Verdict",
    "cannot_tell",
    "not_applicable",
    "outcome",
]

Severity = Literal["failure", "warning", "advice"]
Verdict = Literal["clean", "findings", "cannot tell", "not applicable"]
Coverage = dict[str, int | str]
"""What a check saw, what was missing, what was opaque: a word for each number."""

CLEAN: Verdict = "clean"
FINDINGS: Verdict = "findings"
CANNOT_TELL: Verdict = "cannot tell"
NOT_APPLICABLE: Verdict = "not applicable"

EXIT_CLEAN, EXIT_FINDINGS, EXIT_UNTOLD = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule: who says so, what, where, what shows it, and what to do next.

    ``seq`` is the first bad entry, where an entry is what is bad. A ``warning`` is reported and
    fails nothing; ``advice`` is no breach of a rule at all, but something for a person to judge.
    ``before_adoption``: it lies in the past that was taken in as it was.
    """

    check: str
    message: str
    where: str
    evidence: tuple[str, ...] = ()
    help: str = ""
    severity: Severity = "failure"
    before_adoption: bool = False
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check's verdict. ``past`` marks a *cannot tell* that is about the time before adoption.

    ``advice``: the check only advises, so that nothing it says changes the exit code.
    """

    check: str
    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = field(default_factory=dict)
    required: bool = False
    past: bool = False
    advice: bool = False

    @property
    def failures(self) -> int:
        """How many of the findings fail the run."""
        return self._of("failure")

    @property
    def warnings(self) -> int:
        """How many of the findings are reported and fail nothing."""
        return self._of("warning")

    @property
    def advised(self) -> int:
        """How many of the findings are advice."""
        return self._of("advice")

    def _of(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Anchored:
    """How far heads that are remembered outside vouch for the ledger.

    ``sizes`` gives for each level that is reached up to which size, and by whom, in words.
    ``tail`` are the entries behind the largest of them, ``seconds`` how long ago the first of
    those was appended, by the ledger's own clock and that of this run.
    """

    level: str
    sizes: dict[str, tuple[int, str]]
    tail: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes in the order of the checks. ``head`` is size and root in hex, if there is one.

    ``sealed`` is the newest seal that the ledger holds: how many entries it covers, when it was
    made by the host's clock, and how many seconds ago. Where the ledger was read from its record
    it is the record's own, and the time that of the newest entry.
    ``problem`` says why nothing could be judged at all. ``notes`` are said beside the verdict:
    above all, what was not looked at.
    """

    what: str
    outcomes: tuple[Outcome, ...]
    head: tuple[int, str] | None = None
    problem: str = ""
    sealed: tuple[int, str, int] | None = None
    anchored: Anchored | None = None
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        """How many findings fail the run."""
        return sum(outcome.failures for outcome in self.outcomes)

    @property
    def warnings(self) -> int:
        """How many findings are reported and fail nothing."""
        return sum(outcome.warnings for outcome in self.outcomes)

    @property
    def advised(self) -> int:
        """How many findings are advice."""
        return sum(outcome.advised for outcome in self.outcomes)

    @property
    def untold(self) -> tuple[str, ...]:
        """Required checks that cannot tell, about the time that is theirs to judge."""
        return tuple(
            outcome.check
            for outcome in self.outcomes
            if outcome.verdict == CANNOT_TELL and outcome.required and not outcome.past
        )

    @property
    def judged(self) -> int:
        """How many checks came to a verdict on what they saw; advice is none."""
        return sum(
            outcome.verdict in (CLEAN, FINDINGS) and not outcome.advice for outcome in self.outcomes
        )

    @property
    def exit_code(self) -> int:
        """1: a rule is broken. 3: nothing, or not enough, could be judged. 0: clean."""
        if self.failures:
            return EXIT_FINDINGS
        if self.problem or self.untold or not self.judged:
            return EXIT_UNTOLD
        return EXIT_CLEAN


def outcome(check: str, findings: list[Finding], coverage: Coverage, *, required: bool) -> Outcome:
    """The verdict of a check that could look: clean, or its findings."""
    verdict = FINDINGS if findings else CLEAN
    return Outcome(check, verdict, "", tuple(findings), coverage, required)


def not_applicable(check: str, reason: str, *, required: bool) -> Outcome:
    """There is nothing that this check is about."""
    return Outcome(check, NOT_APPLICABLE, reason, required=required)


def cannot_tell(check: str, reason: str, *, required: bool, past: bool = False) -> Outcome:
    """There is something to judge, and not the evidence to do it by."""
    return Outcome(check, CANNOT_TELL, reason, required=required, past=past)


@dataclass
class Tally:
    """Findings by check, the first few of each and how many more there are: flat in memory."""

    limit: int = 20
    found: dict[str, list[Finding]] = field(default_factory=dict)
    more: dict[str, int] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Keep a finding, or count it."""
        listed = self.found.setdefault(finding.check, [])
        if len(listed) < self.limit:
            listed.append(finding)
        else:
            self.more[finding.check] = self.more.get(finding.check, 0) + 1

    def of(self, check: str) -> list[Finding]:
        """What is kept for a check, with a last one that counts the rest."""
        listed = list(self.found.get(check, ()))
        rest = self.more.get(check, 0)
        if rest:
            listed.append(Finding(check, f"and {rest} more of this kind", listed[-1].where))
        return listed


@dataclass
class Scanned:
    """What the pass over the ledger's rows found, and saw; the head as the entries give it.

    ``blocks`` are the roots of the full blocks of 256 entries, from which the roots at all sizes
    follow; ``whole`` is False where rows are missing, so that no tree can be computed. ``since``
    is the entry at which the pass began, where a pin vouches for those before.
    """

    tally: Tally
    rows: int
    head: tuple[int, str]
    coverage: Coverage
    origin: str = ""
    blocks: bytes = b""
    whole: bool = True
    since: int = 0


@dataclass
class FilesJudged:
    """What was found where an export or a record was read. ``signed``: its seal had a key to meet.

    ``origin`` is that of the seal, ``seen`` counts what was looked at.
    """

    tally: Tally
    origin: str
    signed: bool
    seen: Coverage
