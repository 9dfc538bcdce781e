"""A report as JUnit XML, which most CI servers show as tests. Pure.

A check is a test. It fails with its findings, and is skipped where it cannot tell or has nothing
to judge; one that is required and cannot tell fails in a second test, as a skipped one fails
nothing anywhere. Warnings, advice and coverage are the output of a test. What was not looked at is
a skipped test as well: all else would look like a run of everything. Of several records each test
has the name of its record, for servers take two tests of one name for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tripod.verify.check import CANNOT_TELL, NOT_APPLICABLE, Finding, Outcome, Report
from tripod.verify.reporters.quotation import (
    finding_lines,
    finding_place,
    fitting,
    line_of,
    without_commands,
)
from tripod.verify.reporters.text import NOTHING, finding_counts, report_notes

ROOM = 1_000_000
"""Bytes of the text of one element: parsers refuse ten million."""

_COUNTS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def render(report: Report) -> str:
    """The whole report, ending in a line break."""
    suites = Element("testsuites", name="tripod verify")
    for part in report.parts or (report,):
        suite = SubElement(suites, "testsuite", name=_plain(part.what))
        of = _plain(f" {part.what}") if report.parts else ""
        if part.head is not None:
            properties = SubElement(suite, "properties")
            for name, value in zip(("size", "root"), part.head, strict=True):
                SubElement(properties, "property", name=f"head.{name}", value=str(value))
        if part.problem or not part.judged:
            case = SubElement(suite, "testcase", classname=f"tripod{of}", name="verify")
            why = part.problem or NOTHING
            SubElement(case, "error", type="cannot judge", message=_plain(why))
        for outcome in part.outcomes:
            _add_outcome(suite, outcome, of, is_untold=outcome.check in part.untold)
        for number, note in enumerate(report_notes(part), start=1):
            case = SubElement(suite, "testcase", classname=f"tripod{of}", name=f"note {number}")
            SubElement(case, "skipped", message=_plain(f"note: {note}"))
        counts = finding_counts(part, always=("failure", "warning"))
        SubElement(suite, "system-out").text = _plain(counts)
    for counted in (suites, *suites):
        for name, tag in _COUNTS.items():
            counted.set(name, str(len(list(counted.iter(tag)))))
    indent(suites)
    written = without_commands(tostring(suites, encoding="unicode"), "&#35;", "&#58;")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{written}\n"


def _add_outcome(suite: Element, outcome: Outcome, of: str, *, is_untold: bool) -> None:
    place = {"classname": f"tripod.verify{of}"}
    case = SubElement(suite, "testcase", place, name=_plain(outcome.check))
    if outcome.failures:
        failing = [one for one in outcome.findings if one.severity == "failure"]
        first = failing[0].message if failing else outcome.check
        text = _joined(map(_told, failing), "\n\n", outcome.failures - len(failing))
        SubElement(case, "failure", type="findings", message=_plain(first)).text = text
    elif outcome.verdict in (CANNOT_TELL, NOT_APPLICABLE):
        why = f"{outcome.verdict}: {outcome.reason}"
        SubElement(case, "skipped", message=_plain(why))
    rest = outcome.warnings + outcome.advised
    left_out = rest - sum(one.severity != "failure" for one in outcome.findings)
    SubElement(case, "system-out").text = _joined(_output(outcome), "\n", left_out)
    if is_untold:
        name = f"{outcome.check} (required)"
        case = SubElement(suite, "testcase", place, name=_plain(name))
        why = _plain(outcome.reason)
        SubElement(case, "failure", type=CANNOT_TELL, message=why).text = why


def _joined(texts: Iterable[str], between: str, more: int = 0) -> str:
    """The texts, as many as have room, and how many there are besides with ``more`` others."""
    every = list(texts)
    shown = list(fitting(every, ROOM))
    more += len(every) - len(shown)
    return between.join([*shown, *([f"and {more} more"] if more else [])])


def _output(outcome: Outcome) -> Iterator[str]:
    reason = f": {outcome.reason}" if outcome.reason else ""
    coverage = ", ".join(f"{what} {number}" for what, number in outcome.coverage.items())
    yield _plain("; ".join(filter(None, (f"{outcome.said}{reason}", coverage))))
    yield from (_plain(f"except: {one}") for one in outcome.exceptions)
    yield from (_told(one) for one in outcome.findings if one.severity != "failure")
    for finding, by in outcome.accepted:
        yield _plain(f"accepted by {by.actor} in entry {by.seq}: {by.reason}: {finding.message}")


def _told(finding: Finding) -> str:
    """A finding in lines: its place, what is wrong, what shows it, what to do, its id."""
    sort = "" if finding.severity == "failure" else f"{finding.severity}: "
    message, *lines = finding_lines(finding)
    named = [f"  id: {finding.fingerprint}"] if finding.fingerprint else []
    return "\n".join(
        [
            _plain(f"{finding_place(finding)}: {sort}{message}"),
            *(_plain(f"    {one}") for one in lines),
            *named,
        ]
    )


def _plain(text: str) -> str:
    """A bounded text as XML may hold it: without controls, and the two last signs of a plane."""
    return re.sub("[\ufffe\uffff]", lambda sign: f"\\u{ord(sign[0]):x}", line_of(text))
