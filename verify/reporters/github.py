"""A report as annotations, which GitHub's runner takes from standard output. Pure.

A step shows ten of a level: each check has its first before another has its second, and what
cannot be judged comes first of all. A check that cannot tell is a warning; what was left out, or
not looked at, is a notice. Where a finding's place is no file of the repository, its annotation has
none, and begins with the place.
"""

from __future__ import annotations

from collections.abc import Iterator

from tripod.verify.check import Finding, Report, escape, shorten
from tripod.verify.reporters.quotation import (
    file_in_repository,
    finding_lines,
    finding_place,
    placed_lines,
    without_commands,
)
from tripod.verify.reporters.text import REST, report_remarks

SHOWN = 10
"""Annotations of one level that a step shows."""
_ROOM = 4_000  # characters of an annotation
_LEVELS = {"failure": "error", "warning": "warning", "advice": "notice"}


def render(report: Report, *, has_summary: bool = False) -> str:
    """The annotations that a step shows: of each check its first finding, then its second, ...

    ``has_summary``: the step has a summary, which lists more.
    """
    shown, more = list[str](), sum(sum(one.left_out.values()) for one in report.all_outcomes)
    found = sorted(_annotations(report), key=lambda one: one[1])
    for level in _LEVELS.values():
        lines = [line for of, _, line in found if of == level]
        room = SHOWN if level != "notice" else SHOWN - 1  # the last is about the others
        shown, more = shown + lines[:room], more + len(lines[room:])
    if more:
        where = "the summary lists more, and " if has_summary else ""
        text = f"{more} more annotations are not shown: {where}{REST}"
        shown.append(_command("notice", "tripod verify", text))
    return without_commands("".join(f"{line}\n" for line in shown), "\\x23")


def _annotations(report: Report) -> Iterator[tuple[str, int, str]]:
    """The level of each annotation, its rank within the level, and its line."""
    for severity, check, words in report_remarks(report):
        # Of a check that cannot tell nothing is known to be wrong: that is a warning.
        level = _LEVELS["warning" if check and severity == "failure" else severity]
        rank = 0 if severity == "failure" or not check else 2
        yield level, rank, _command(level, check or "tripod verify", words)
    for outcome in report.all_outcomes:
        for number, finding in enumerate(outcome.findings, start=1):
            level = _LEVELS[finding.severity]
            yield level, number, _annotation(level, finding)


def _annotation(level: str, finding: Finding) -> str:
    file = file_in_repository(finding)
    if not file or without_commands(escape(file), "\\x23") != file:
        lines = finding_lines(finding)
        return _command(level, finding.check, f"{finding_place(finding)}:", *lines)
    lines = placed_lines(finding)
    return _command(level, finding.check, *lines, file=file, line=str(finding.line or ""))


def _command(level: str, title: str, *lines: str, **fields: str) -> str:
    """A workflow command; the runner takes its signs out of texts as they are put in here."""
    named = {**fields, "title": title}.items()
    signs = ",".join(
        f"{name}={_data(value).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in named
        if value
    )
    return f"::{level} {signs}::{_data(shorten(chr(10).join(map(escape, lines)), _ROOM))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
