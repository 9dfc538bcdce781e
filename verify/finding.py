"""A finding, its id, and the findings of one check, less those that the team accepted. Pure.

A finding's id, its *fingerprint*, is the SHA-256 of what it is about and of what is wrong there::

    sha256 of the JSON list ["tripod finding v1", check, severity, entry, place, fault]

- ``entry`` is ``<origin> <seq> <leaf hash>`` of the entry that the finding names by ``seq``, else
  ''. It does not change when lines move, and no other entry has it;
- ``place`` is ``where`` without the line of a file, or '' where that only repeats the entry;
- ``fault`` is the finding's ``fault``, and where it has none its message and evidence.

The same fault at the same place has the same fingerprint in each run; another fault has another. Of
several that are alike in one run, the second and the later ones also count which they are. People
see the first ``SHORT`` digits; an acceptance names all of them, as short digests can be forged.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias, get_args

Severity = Literal["failure", "warning", "advice"]

Weight: TypeAlias = tuple[Severity, bool]
"""The severity of a finding, and whether it lies before adoption."""

WEIGHTS: tuple[Weight, ...] = tuple(
    (severity, past) for severity in get_args(Severity) for past in (False, True)
)
"""The order in which findings are reported: what fails the run comes first."""

KEPT = 1000
"""Findings of one check and one weight that are kept whole. All are counted."""
NAMED = 100_000
"""Findings of one check and one weight that get a fingerprint; the others cannot be accepted."""
SHORT = 12
"""Digits of a fingerprint that people are shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule: the check that found it, what, where, what shows it, what to do next.

    ``seq`` is the first bad entry, if one is bad. A ``warning`` fails nothing; ``advice`` is for a
    person to judge. ``before_adoption``: it lies in the past that was taken in as it was. The
    runner adds ``file`` and ``line`` to ``where``, from the top of the repository.

    ``fault`` says what is wrong where message and evidence do not say it by themselves: they hold a
    number that grows with the ledger, or show only a part of what differs. None: nobody can accept
    the finding, for something could not be compared, or it is the ledger itself that is wrong.
    """

    check: str
    message: str
    where: str
    evidence: tuple[str, ...] = ()
    help: str = ""
    severity: Severity = "failure"
    before_adoption: bool = False
    seq: int | None = None
    file: str = ""
    line: int | None = None
    fault: str | None = ""
    fingerprint: str = ""

    @property
    def weight(self) -> Weight:
        """What the finding counts for."""
        return self.severity, self.before_adoption

    @property
    def is_acceptable(self) -> bool:
        """Whether the team can accept it."""
        return self.fault is not None and bool(self.fingerprint)

    @property
    def is_elsewhere(self) -> bool:
        """Whether its file is in no commit: outside of the repository, or among git's own."""
        return self.file in ("", ".") or self.file.startswith(("/", "../", ".git/"))


class Acceptance(NamedTuple):
    """An entry that accepts a finding: which, who, when, why."""

    seq: int
    check: str
    fingerprint: str
    actor: str
    at: str
    reason: str


Accepted: TypeAlias = tuple[Finding, Acceptance]


@dataclass
class Findings:
    """The findings of one check: the first ``KEPT`` of each weight, and how many there are.

    Iteration gives those kept by weight, each in the order of adding.
    """

    kept: dict[Weight, list[Finding]] = field(default_factory=dict)
    counts: dict[Weight, int] = field(default_factory=dict)
    lowest: int | None = None

    def add(self, finding: Finding) -> None:
        """Count a finding, and keep it while there is room for its weight.

        Where a check runs, the finding gets its fingerprint, and one that was accepted is left out.
        """
        weight, names = finding.weight, _NAMES.get()
        count = self.counts.get(weight, 0)
        if names is not None and (count < KEPT or names.is_exact):
            named = names.sort(finding)
            if named is None:
                return
            finding = named
        if count < KEPT:
            self.kept.setdefault(weight, []).append(finding)
        self.counts[weight] = count + 1
        if finding.seq is not None and (self.lowest is None or finding.seq < self.lowest):
            self.lowest = finding.seq

    def extend(self, findings: Iterable[Finding]) -> None:
        """Add findings, in their order."""
        for finding in findings:
            self.add(finding)

    def join(self, later: Findings) -> None:
        """Add what was found in a later part of the same evidence."""
        for weight, count in later.counts.items():
            listed = self.kept.setdefault(weight, [])
            listed += later.kept[weight][: KEPT - len(listed)]
            self.counts[weight] = self.counts.get(weight, 0) + count
        if later.lowest is not None and (self.lowest is None or later.lowest < self.lowest):
            self.lowest = later.lowest

    def of(self, severity: Severity) -> int:
        """How many findings have a severity."""
        return sum(count for weight, count in self.counts.items() if weight[0] == severity)

    def left_out(self) -> dict[Weight, int]:
        """How many findings of each weight were counted and not kept."""
        rest = {weight: n - len(self.kept[weight]) for weight, n in self.counts.items()}
        return {weight: rest[weight] for weight in WEIGHTS if rest.get(weight)}

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __iter__(self) -> Iterator[Finding]:
        for weight in WEIGHTS:
            yield from self.kept.get(weight, ())


# Fingerprints ------------------------------------------------------------------------------------

_LINE = re.compile(r":\d+$")


def finding_fingerprint(finding: Finding, entry: str) -> str:
    """The fingerprint of a finding; ``entry`` names the entry that it is about, '' for none."""
    place = "" if finding.where == f"entry {finding.seq}" else _LINE.sub("", finding.where)
    fault = finding.fault or "\n".join((finding.message, *finding.evidence))
    parts = ["tripod finding v1", finding.check, finding.severity, entry, place, fault]
    return sha256(json.dumps(parts).encode()).hexdigest()


class FindingNames:
    """Gives the findings of one check their fingerprints, and takes out those that do not count.

    ``entry`` names an entry of the ledger, and gives None where there is no such entry (yet).
    ``accepted`` are the acceptances that count, by fingerprint. ``older`` says how many findings of
    a fingerprint were there before, where only new ones are judged; None: all are judged.
    ``failing`` counts by fingerprint what was not taken out. ``is_exact``: every finding is to be
    sorted, not those alone that are kept.
    """

    def __init__(
        self,
        entry: Callable[[int], str | None],
        accepted: Mapping[str, Acceptance],
        older: Mapping[str, int] | None = None,
        *,
        is_acceptable: bool = True,
        is_exact: bool = False,
    ) -> None:
        self._entry, self._accepted, self._older = entry, accepted, older
        self._is_acceptable = is_acceptable
        self.is_exact = is_exact or bool(accepted) or older is not None
        self._given: Counter[Weight] = Counter()
        self._seen: dict[str, int] = {}
        self.failing: Counter[str] = Counter()
        self.taken: list[Accepted] = []
        self.accepted = self.left_out = 0

    def sort(self, finding: Finding) -> Finding | None:
        """The finding with its fingerprint; None where it was accepted, or was there before."""
        if finding.fingerprint:
            return finding
        if self._given[finding.weight] >= NAMED:
            return replace(finding, fault=None)
        self._given[finding.weight] += 1
        entry = "" if finding.seq is None else self._entry(finding.seq)
        base = finding_fingerprint(finding, entry or "")
        number = self._seen.get(base, 0) + 1
        fault = finding.fault if self._is_acceptable and entry is not None else None
        self._seen[base] = number
        digest = base if number == 1 else sha256(f"{base} {number}".encode()).hexdigest()
        named = replace(finding, fault=fault, fingerprint=digest)
        if fault is None:
            return named
        by = self._accepted.get(digest)
        # Nobody accepts what was not there yet.
        if by is not None and (finding.seq is None or finding.seq < by.seq):
            self.accepted += 1
            if len(self.taken) < KEPT:
                self.taken.append((named, by))
            return None
        if self._older is not None and number <= self._older.get(base, 0):
            self.left_out += 1
            return None
        self.failing[base] += 1
        return named


_NAMES: ContextVar[FindingNames | None] = ContextVar("names of findings", default=None)


@contextmanager
def naming_findings(names: FindingNames) -> Iterator[None]:
    """While this holds, each finding that is added to ``Findings`` is sorted by ``names``."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)
