"""What a page shows of recorded sessions that no ledger knows: plain values, no markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tripod.ledger.ids import format_at
from tripod.report.markup import plural
from tripod.report.matrix import SightMatrix, sight_matrix
from tripod.verify.isolation.reasons import Exposure
from tripod.verify.isolation.sessions import NOTHING, UNTOLD, Sight, SightGrade
from tripod.verify.recorded.files import SessionFile, session_time
from tripod.verify.sessions.exposure import ExposureVerdict, SessionExposures, judge_exposures

EXPOSURES = 500
"""Exposures of one file that a page lists; the others are counted."""
_CODES = {"findings": 1, "cannot tell": 3}
_FACTS = ("files", "sessions", "calls", "results", "exposures", "unsure", "denied")


@dataclass
class ExposureSample:
    """Takes what one file exposed: the first ``EXPOSURES``, each once, and how many there are."""

    path: str
    first: list[Exposure] = field(default_factory=list)
    total: int = 0

    def add(self, each: Exposure) -> None:
        """Take an exposure; programs write some things twice."""
        if self.first and self.first[-1] == each:
            return
        self.total += 1
        if len(self.first) < EXPOSURES:
            self.first.append(each)

    def end(self) -> None:
        """There are no more."""


class FileFacts(NamedTuple):
    """A file of a session; ``last`` is the time of its last record, by its own words."""

    path: str
    program: str
    sha256: str
    lines: int
    last: str
    sample: ExposureSample


@dataclass(frozen=True)
class SessionFacts:
    """What was judged: the verdict, '' without a rule, its reasons, and the files.

    ``protected`` says what must not have been read.
    """

    verdict: str
    exit_code: int
    protected: str
    reasons: Sequence[str]
    untold: Sequence[str]
    advice: Sequence[str]
    coverage: Sequence[tuple[str, str]]
    matrix: SightMatrix
    files: Sequence[FileFacts]

    @property
    def summary(self) -> str:
        """The verdict in a sentence."""
        count = plural(len(self.files), "file")
        if not self.verdict:
            said = f"{count} of recorded sessions: what each of them showed to its model."
            return f"{said} Not all could be seen." if self.untold else said
        said = {
            "clean": "Nothing was found, and every way in leaves a record, which was read.",
            "findings": "A file that must not be read was opened, or shown to a model.",
        }.get(self.verdict, "Nothing was found, and not all could be seen.")
        return f"{said} {count}."


def gather_sessions(
    read: Sequence[SessionFile],
    judged: Sequence[SessionExposures],
    samples: Sequence[ExposureSample],
    verdict: ExposureVerdict | None,
    protected: str,
    *,
    advice: Sequence[str],
    shown_only: bool,
) -> SessionFacts:
    """What a page shows of sessions; ``protected`` says what must not have been read."""
    by_path = {one.path: one for one in samples}
    files = [
        FileFacts(
            one.path,
            str(one.program or ""),
            one.sha256,
            one.lines,
            "" if (time := session_time(one)) is None else format_at(time)[:19],
            by_path.get(one.path) or ExposureSample(one.path),
        )
        for one in read
    ]
    if verdict is None:
        code = 0 if read else 3
        untold = judge_exposures(judged, Counter()).untold
        return SessionFacts("", code, "", (), untold, (), (), sight_matrix(()), files)
    programs = {one.path: str(one.program) for one in read}
    matrix = sight_matrix(_sights(judged, verdict, programs, protected, shown_only=shown_only))
    coverage = [
        (name, f"{verdict.coverage[name]:,}") for name in _FACTS if name in verdict.coverage
    ]
    gaps = verdict.coverage.get("gaps")
    if isinstance(gaps, dict) and gaps:
        coverage.append(("gaps", ", ".join(f"{cause} {count}" for cause, count in gaps.items())))
    told = verdict.told
    reasons = verdict.reasons if verdict.found else ()
    code = _CODES.get(told, 0)
    return SessionFacts(
        told, code, protected, reasons, verdict.untold, advice, coverage, matrix, files
    )


def _sights(
    judged: Sequence[SessionExposures],
    verdict: ExposureVerdict,
    programs: dict[str, str],
    place: str,
    *,
    shown_only: bool,
) -> Iterator[Sight]:
    """What each file shows that its session saw, a role for each program."""
    unseen: dict[str, list[str]] = {}
    for reason in verdict.unseen:
        unseen.setdefault(reason.file, []).append(reason.text)
    for one in judged:
        sure = [each for each, _ in one.counted() if each.sure]
        sure = [each for each in sure if each.shown or not shown_only]
        why = [
            f"{each.title} was {'shown' if each.shown else 'opened'}"
            + (f", line {each.line}" if each.line else "")
            for each in sure
        ] or unseen.get(one.file, [])
        grade: SightGrade = UNTOLD if why else NOTHING
        if sure:
            grade = "shown" if any(each.shown for each in sure) else "opened"
        role = programs.get(one.file, "not read")
        yield Sight(role, one.file, place, grade, tuple(dict.fromkeys(why)))
