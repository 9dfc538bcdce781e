"""A report as JUnit XML, which most CI servers show as tests. Pure.

A check is a test. It fails with its findings, and is skipped where it cannot tell or has nothing
to judge; one that is required and cannot tell fails in a second test, as a skipped one fails
nothing anywhere. Warnings, advice and coverage are the output of a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tripod.verify.check import CANNOT_TELL, NOT_APPLICABLE, Finding, Outcome, Report, escape


def render(report: Report) -> str:
    """The whole report, ending in a line break."""
    suites = Element("testsuites", name="tripod verify")
    for part in report.parts or (report,):
        suite = SubElement(suites, "testsuite", name=_plain(part.what))
        if part.head is not None:
            properties = SubElement(suite, "properties")
            for name, value in zip(("size", "root"), part.head, strict=True):
                SubElement(properties, "property", name=f"head.{name}", value=str(value))
        if part.problem or not part.judged:
            case = SubElement(suite, "testcase", classname="tripod", name="verify")
            why = part.problem or "nothing was judged"
            SubElement(case, "error", type="cannot judge", message=_plain(why))
        for outcome in part.outcomes:
            _add_outcome(suite, outcome, is_untold=outcome.check in part.untold)
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"),
                          ("skipped", "skipped")):  # fmt: skip
            suite.set(name, str(len(list(suite.iter(tag)))))
    indent(suites)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(suites, encoding='unicode')}\n"


def _add_outcome(suite: Element, outcome: Outcome, *, is_untold: bool) -> None:
    case = SubElement(suite, "testcase", classname="tripod.verify", name=_plain(outcome.check))
    failing = [one for one in outcome.findings if one.severity == "failure"]
    if outcome.failures:
        first = failing[0].message if failing else outcome.check
        text = "\n\n".join(map(_told, failing))
        more = outcome.failures - len(failing)
        text += f"\n\nand {more} more" if more else ""
        SubElement(case, "failure", type="findings", message=_plain(first)).text = text
    elif outcome.verdict in (CANNOT_TELL, NOT_APPLICABLE):
        why = f"{outcome.verdict}: {outcome.reason}"
        SubElement(case, "skipped", message=_plain(why))
    output = SubElement(case, "system-out")
    output.text = "\n".join(_output(outcome))
    if is_untold:
        name = f"{outcome.check} (required)"
        case = SubElement(suite, "testcase", classname="tripod.verify", name=_plain(name))
        why = _plain(outcome.reason)
        SubElement(case, "failure", type=CANNOT_TELL, message=why).text = why


def _output(outcome: Outcome) -> Iterator[str]:
    yield _plain(f"{outcome.said}; {', '.join(f'{k} {v}' for k, v in outcome.coverage.items())}")
    yield from (_plain(f"except: {one}") for one in outcome.exceptions)
    yield from (_told(one) for one in outcome.findings if one.severity != "failure")
    for finding, by in outcome.accepted:
        yield _plain(f"accepted by {by.actor} in entry {by.seq}: {by.reason}: {finding.message}")


def _told(finding: Finding) -> str:
    """A finding in lines: its place, what is wrong, what shows it, what to do, its id."""
    line = "" if finding.line is None else f":{finding.line}"
    sort = "" if finding.severity == "failure" else f"{finding.severity}: "
    lines = [f"{finding.file or finding.where}{line}: {sort}{finding.message}"]
    lines += [f"    {one}" for one in finding.evidence]
    lines += [f"  help: {finding.help}"] if finding.help else []
    lines += [f"  id: {finding.fingerprint}"] if finding.fingerprint else []
    return "\n".join(map(_plain, lines))


def _plain(text: str) -> str:
    """A text as XML may hold it: without controls, and without the two ends of a plane."""
    return escape(text).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
