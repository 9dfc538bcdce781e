"""A report as text: the findings, a line for each check, a sum. Plain unless colour is asked for.

::

    entry 41: chain-links: entry 41 is not the one that entry 42 was linked to: ...
      help: compare this entry with a backup or another copy; ...
      id: 3f0c2a81b2d4

    clean           sequence             entries 51, nodes 0
    findings        chain-links          1 finding; entries 51
    cannot tell     pythia-isolation     2 assessments, no transcript ... (before adoption)
    clean, except   pythia-isolation     lent /srv/notes (not looked at): run 3f0c2a81; ...

    judged: /home/ann/shop/.nbs (ledger.db); history of /home/ann/shop: refs/heads/main, ...
    PINNED by commit 5a742098bf87 ... up to entry 39; unanchored tail: 11 entries, 212 s
    1 finding, 0 warnings; head 51 entries, root 91bc04d2…

Of many findings of one check the first are printed, and how many more there are: apart for those
that fail, those that do not, and those before adoption. No number in the lines below is cut.

All text that comes from evidence passes ``tripod.verify.check``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from tripod.verify.anchors.policy import PINNED, WITNESSED
from tripod.verify.check import (
    CANNOT_TELL,
    CLEAN,
    FINDINGS,
    NOT_APPLICABLE,
    Anchored,
    Finding,
    Outcome,
    Report,
    Subject,
    Weight,
    escape,
)
from tripod.verify.finding import KEPT, SHORT, Severity
from tripod.verify.reporters.quotation import finding_place, without_commands

MANUAL = "tripod verify --explain"
"""The command that prints what a check proves and what to do, for checks of packages too."""
EXCEPTIONS = 3
"""Exceptions of one verdict that are printed; the others are counted."""
REST = f"`tripod verify --json` lists up to {KEPT:,} of each check and sort"
"""Where a report that leaves findings out says that they are."""
NOTHING = "nothing was judged"
"""Why a report is not clean that has neither a problem nor a verdict."""
SHOWN = 20
"""Findings of one check and one weight that are printed; the others are counted."""

_SORTS = {
    "failure": ("finding", "findings"),
    "warning": ("warning", "warnings"),
    "advice": ("piece of advice", "pieces of advice"),
}
_Paint: TypeAlias = Callable[[str, str], str]
_BOLD, _RED, _YELLOW, _GREEN, _DIM, _PLAIN = (
    f"\x1b[{code}m" for code in ("1", "31", "33", "32", "2", "0")
)


def render(
    report: Report,
    *,
    color: bool = False,
    only: Sequence[Outcome] | None = None,
    accepted: bool = False,
) -> str:
    """The whole report, ending in a line break; ``only``: with the lines of these checks alone.

    ``accepted``: also the findings that the team accepted, with who did it, and why.
    """
    said = _whole(report, _paint if color else _plain, only, accepted=accepted)
    return without_commands(said, "\\x23", "\\x3a")


def _whole(
    report: Report, paint: _Paint, only: Sequence[Outcome] | None = None, *, accepted: bool
) -> str:
    if report.parts:
        return _parts(report, paint, lambda part: _whole(part, paint, accepted=accepted))
    if report.problem:
        problem = f"{paint(_RED, 'cannot judge')}: {escape(report.problem)}\n"
        return problem + _notes(report) + _judged(report.subject, "what was asked for")
    blocks = [block for outcome in report.outcomes for block in _blocks(outcome, paint)]
    blocks += _accepted(report, paint) if accepted else ()
    table = [_outcome(outcome, paint) for outcome in (report.outcomes if only is None else only)]
    table += [
        f"manual: {MANUAL} {outcome.check}" for outcome in report.outcomes if outcome.findings
    ]
    parts = ["\n".join(lines) + "\n\n" for lines in (blocks, table) if lines]
    parts += [_judged(report.subject), _notes(report)]
    if report.anchored is not None:
        parts.append(f"{_anchored(report.anchored)}\n")
    return "".join(parts) + f"{_sum(report, paint)}\n"


def brief_text(report: Report, *, color: bool = False, accepted: bool = False) -> str:
    """The report for a person in a hurry: one line where all is well.

    Otherwise it is ``render`` without the checks that are clean or had nothing to judge. What was
    not looked at is said in any case.
    """
    said = _brief(report, _paint if color else _plain, accepted=accepted)
    return without_commands(said, "\\x23", "\\x3a")


def _brief(report: Report, paint: _Paint, *, accepted: bool) -> str:
    if report.parts:
        return _parts(report, paint, lambda part: _brief(part, paint, accepted=accepted))
    untold = [one for one in report.outcomes if one.verdict == CANNOT_TELL]
    seen = [one for one in report.outcomes if one.findings or one.left_out or one.exceptions]
    if report.problem or report.exit_code or seen:
        hurried = [one for one in report.outcomes if one in (*seen, *untold)]
        return _whole(report, paint, hurried, accepted=accepted)
    hold = sum(outcome.verdict == CLEAN for outcome in report.outcomes)
    words = _count(hold, "check holds", "checks hold")
    if report.head is not None and report.head[0]:
        words += f" over {_entries(report.head[0], ',')}"
    nothing = sum(outcome.verdict == NOT_APPLICABLE for outcome in report.outcomes)
    if nothing:
        words += f"; {nothing} had nothing to judge"
    if untold:
        names = ", ".join(f"{one.check} ({escape(one.reason)})" for one in untold)
        words += f"; {len(untold)} could not be judged: {names}"
    if report.accepted:
        is_one = report.accepted == 1
        words += f"; {report.accepted} finding{' is' if is_one else 's are'} accepted"
    shown = "".join(f"{block}\n" for block in _accepted(report, paint)) if accepted else ""
    return (f"{shown}\n" if shown else "") + _notes(report) + paint(_GREEN, words) + "\n"


def _parts(report: Report, paint: _Paint, render_part: Callable[[Report], str]) -> str:
    """The report of each record under its name."""
    shown = [f"{paint(_BOLD, escape(part.what))}\n{render_part(part)}" for part in report.parts]
    return "\n".join(shown)


def _notes(report: Report) -> str:
    return "".join(f"note: {escape(note)}\n" for note in report_notes(report))


def report_notes(report: Report) -> list[str]:
    """What was not looked at, and what was left out of the report."""
    notes = list(report.notes)
    if report.since is not None:
        size, why, left_out = report.since
        names = ", ".join(f"{check} {number}" for check, number in left_out.items())
        what = f"left out, as it was there before: {names}" if names else "nothing was left out"
        notes.append(f"only what is new since {why} is reported ({_entries(size)}); {what}")
    return notes


def report_remarks(report: Report) -> Iterator[tuple[Severity, str, str]]:
    """What a report says besides its findings: the weight of it, the check or '', the words.

    It is why something could not be judged (``failure``: that changes the exit code), what was left
    out of a verdict, what was accepted, and what was not looked at.
    """
    for part in report.parts or (report,):
        of = f"{part.what}: " if report.parts else ""
        if part.problem or not part.judged:
            yield "failure", "", f"{part.what}: cannot judge: {part.problem or NOTHING}"
        for one in part.outcomes:
            if one.verdict == CANNOT_TELL:
                is_untold = one.check in part.untold
                words = f"{of}cannot tell{' (required)' if is_untold else ''}: {one.reason}"
                yield "failure" if is_untold else "warning", one.check, words
            for exception in one.exceptions:
                yield "advice", one.check, f"{of}{one.verdict}, except: {exception}"
            if one.accepted_count:
                yield "advice", one.check, f"{of}{one.accepted_count} accepted, not among these"
        for note in report_notes(part):
            yield "advice", "", f"{of}{note}"


def _accepted(report: Report, paint: _Paint) -> Iterator[str]:
    """The findings that were accepted: each with who did it, and why."""
    for outcome in report.outcomes:
        for finding, by in outcome.accepted:
            said = f"  accepted by {by.actor} in entry {by.seq}: {by.reason}"
            yield f"{_finding(replace(finding, help=''), paint)}\n{paint(_DIM, escape(said))}"
        more = outcome.accepted_count - len(outcome.accepted)
        if more:
            yield f"{escape(outcome.check)}: and {_count(more, 'more', 'more')} accepted"


def _judged(subject: Subject | None, word: str = "judged") -> str:
    """What was judged: the team directory, where its ledger was read from, and which history."""
    if subject is None:
        return ""
    parts = []
    if subject.team:
        inside = subject.ledger.removeprefix(f"{subject.team}/")
        parts.append(f"{subject.team} ({inside or 'no ledger'})")
    elif subject.ledger:
        parts.append(subject.ledger)
    if subject.history:
        of = f" of {subject.repository}" if subject.repository else ""
        parts.append(f"history{of}: {subject.history}")
    if subject.settings:
        parts.append(f"settings: {', '.join(subject.settings)}")
    return f"{word}: {escape('; '.join(parts))}\n" if parts else ""


def _blocks(outcome: Outcome, paint: _Paint) -> Iterator[str]:
    """The first ``SHOWN`` findings of each weight, and how many more there are of it."""
    listed: dict[Weight, list[Finding]] = {}
    for finding in outcome.findings:
        listed.setdefault(finding.weight, []).append(finding)
    for weight, findings in listed.items():
        for finding in findings[:SHOWN]:
            yield _finding(finding, paint)
        more = len(findings[SHOWN:]) + outcome.left_out.get(weight, 0)
        if more:
            severity, before = weight
            words = _count(more, *(f"more {word}" for word in _SORTS[severity]))
            past = " (before adoption)" if before else ""
            check = outcome.check
            help_ = (
                f"  help: `tripod verify --select {check} --json` lists up to {KEPT} of each sort"
            )
            yield f"{paint(_RED, escape(check))}: and {words}{past}\n{paint(_DIM, help_)}"


def _finding(finding: Finding, paint: _Paint) -> str:
    kind = "" if finding.severity == "failure" else paint(_YELLOW, f"{finding.severity}: ")
    past = " (before adoption)" if finding.before_adoption else ""
    head = (
        f"{paint(_BOLD, escape(finding_place(finding)))}: {paint(_RED, escape(finding.check))}: "
        f"{kind}{escape(finding.message)}{past}"
    )
    lines = [head, *(f"    {escape(line)}" for line in finding.evidence)]
    if finding.help:
        lines.append(paint(_DIM, f"  help: {escape(finding.help)}"))
    if finding.fingerprint:
        lines.append(paint(_DIM, f"  id: {finding.fingerprint[:SHORT]}"))
    return "\n".join(lines)


def _outcome(outcome: Outcome, paint: _Paint) -> str:
    clean = _YELLOW if outcome.exceptions or outcome.accepted_count else _GREEN
    colors = {CLEAN: clean, FINDINGS: _RED, CANNOT_TELL: _YELLOW}
    shade = colors.get(outcome.verdict, _DIM)
    if outcome.verdict == FINDINGS and not outcome.failures:
        shade = _YELLOW
    words = [outcome.reason] if outcome.reason else []
    if outcome.exceptions:
        shown = "; ".join(outcome.exceptions[:EXCEPTIONS])
        more = len(outcome.exceptions) - EXCEPTIONS
        front = "" if outcome.said != outcome.verdict else "except: "
        words.append(f"{front}{shown}" + (f"; and {more} more" if more > 0 else ""))
    if outcome.findings or outcome.accepted_count:
        words.append(finding_counts(outcome))
    if outcome.coverage:
        words.append(", ".join(f"{word} {number}" for word, number in outcome.coverage.items()))
    if outcome.past and outcome.verdict == CANNOT_TELL:
        words.append("before adoption: the exit code stays")
    text = f"{paint(shade, f'{outcome.said:<15}')} {outcome.check:<20} {escape('; '.join(words))}"
    return text.rstrip()


def _anchored(anchored: Anchored) -> str:
    """Who vouches for how much, and how much nobody does."""
    parts = [
        f"{name} by {escape(by)} up to entry {size - 1}"
        for name, (size, by) in reversed(anchored.sizes.items())
        if name != PINNED
        or (size, by) != anchored.sizes.get(WITNESSED)  # anyone who saw it remembers
    ]
    if not parts:
        return f"{anchored.level}: no head of this ledger is known from outside"
    tail = "no unanchored tail"
    if anchored.tail:
        tail = f"unanchored tail: {_entries(anchored.tail)}, {anchored.seconds} s"
    return "; ".join([*parts, tail])


def _sum(report: Report, paint: _Paint) -> str:
    words = finding_counts(report, always=("failure", "warning"))
    if report.untold:
        words += f"; not told: {', '.join(report.untold)}"
    elif not report.judged:
        words += f"; {NOTHING}"
    excepting = [one.check for one in report.outcomes if one.exceptions]
    if excepting:
        words += f"; with exceptions: {', '.join(excepting)}"
    if report.head is not None and report.head[0]:
        size, root = report.head
        words += f"; head {_entries(size)}, root {root[:16]}…"
    if report.sealed is not None:
        size, _, age = report.sealed
        words += f"; sealed {_entries(size)}, {_age(age)} ago"
    shade = _RED if report.failures else _YELLOW if report.exit_code else _GREEN
    return paint(shade, words)


def finding_counts(told: Outcome | Report, always: Collection[str] = ()) -> str:
    """How many findings there are of each sort; sorts without any only where in ``always``."""
    numbers = zip(_SORTS, (told.failures, told.warnings, told.advised), strict=True)
    words = [_count(n, *_SORTS[sort]) for sort, n in numbers if n or sort in always]
    count = told.accepted if isinstance(told, Report) else told.accepted_count
    return ", ".join([*words, f"{count} accepted"] if count else words)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _entries(number: int, form: str = "") -> str:
    return f"{number:{form}} {'entry' if number == 1 else 'entries'}"


def _age(seconds: int) -> str:
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 2 * unit:
            return f"{seconds // unit} {name}s"
    return _count(seconds, "second", "seconds")


def _paint(code: str, text: str) -> str:
    return f"{code}{text}{_PLAIN}"


def _plain(_code: str, text: str) -> str:
    return text
