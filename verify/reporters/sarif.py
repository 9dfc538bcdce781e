"""A report as SARIF 2.1.0 (OASIS), which code hosts show on the lines of a pull request. Pure.

A check is a rule, and a finding a result with its fingerprint, which no line changes. Hosts drop a
result without a file of the repository: what lies elsewhere is told in a text beside the report,
and its result points there. A check that cannot tell is a notification; one that is required makes
the run unsuccessful. What the team accepted is a suppressed result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from tripod.verify.check import CANNOT_TELL, Finding, Outcome, Report, escape

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"failure": "error", "warning": "warning", "advice": "note"}
_Object = dict[str, Any]


def render(
    report: Report, *, version: str, manual: Callable[[str], str], beside: str = ""
) -> tuple[str, str]:
    """The report as one line of JSON, and the text of the file ``beside`` it, '' if it needs none.

    ``version`` is the program's, ``manual`` gives the section of a check, ``beside`` is a path from
    the top of the repository; without one, what lies elsewhere has no file.
    """
    names = list(dict.fromkeys(outcome.check for outcome in report.all_outcomes))
    results = _Results(names, beside)
    for outcome in report.all_outcomes:
        for finding in outcome.findings:
            results.add(finding)
        for finding, by in outcome.accepted:
            said = escape(f"accepted by {by.actor} in entry {by.seq}: {by.reason}")
            results.add(finding, {"kind": "external", "status": "accepted", "justification": said})
    notifications = list(_notifications(report, names))
    rules = [_rule(name, manual(name)) for name in names]
    driver = {"name": "tripod", "semanticVersion": version, "rules": rules}
    invocation = {
        "executionSuccessful": all(one["level"] != "error" for one in notifications),
        "exitCode": report.exit_code,
        "toolExecutionNotifications": notifications,
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "tripod/verify/"},
        "invocations": [invocation],
        "results": results.made,
    }
    written = json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
    return f"{written}\n", "".join(f"{line}\n" for line in results.told)


class _Results:
    """Findings as results, and the lines of the file beside the report that tell of some."""

    def __init__(self, names: list[str], beside: str) -> None:
        self._names, self._beside = names, beside
        self.made: list[_Object] = []
        self.told: list[str] = []

    def add(self, finding: Finding, *suppressions: _Object) -> None:
        past = " (before adoption)" if finding.before_adoption else ""
        every = f"{finding.message}{past}", *finding.evidence, finding.help
        lines = [escape(one) for one in every if one]
        prints = {"primaryLocationLineHash": finding.fingerprint} if finding.fingerprint else {}
        result = {
            "ruleId": finding.check,
            "ruleIndex": self._names.index(finding.check),
            "level": _LEVELS[finding.severity],
            "message": {"text": "\n".join(lines)},
            "locations": [self._place(finding, lines)],
            "partialFingerprints": prints,
        }
        self.made.append(result | ({"suppressions": list(suppressions)} if suppressions else {}))

    def _place(self, finding: Finding, lines: list[str]) -> _Object:
        path, line = finding.file, finding.line
        if finding.is_elsewhere:
            if not self._beside:
                return {"logicalLocations": [{"fullyQualifiedName": escape(finding.where)}]}
            path, line = self._beside, len(self.told) + 1
            self.told.append(escape(f"{finding.file}: {finding.where}"))
            self.told.extend(f"    {one}" for one in lines)
        # Bytes of a path that are no UTF-8 are told as they are.
        place = {"artifactLocation": {"uri": quote(path.encode("utf-8", "surrogateescape"))}}
        region = {} if line is None else {"region": {"startLine": line}}
        return {"physicalLocation": place | region}


def _rule(name: str, manual: str) -> _Object:
    summary = " ".join(manual.split("\n\n")[1].split())  # below its title
    helps = {"text": manual, "markdown": manual}
    return {"id": name, "shortDescription": {"text": summary}, "help": helps}


def _notifications(report: Report, names: list[str]) -> Iterator[_Object]:
    """Why a check, or all of them, cannot tell; what was not looked at, and what is not listed."""

    def note(level: str, text: str, outcome: Outcome | None = None) -> _Object:
        rule = {} if outcome is None else {"associatedRule": {"index": names.index(outcome.check)}}
        return {"level": level, "message": {"text": escape(text)}, **rule}

    for part in report.parts or (report,):
        if part.problem or not part.judged:
            why = part.problem or "nothing was judged"
            yield note("error", f"{part.what}: cannot judge: {why}")
        for outcome in part.outcomes:
            if outcome.verdict == CANNOT_TELL:
                level = "error" if outcome.check in part.untold and not outcome.past else "warning"
                yield note(level, f"{outcome.check} cannot tell: {outcome.reason}", outcome)
            more = sum(outcome.left_out.values())
            if more:
                yield note("warning", f"{outcome.check}: {more} more findings", outcome)
        yield from (note("note", one) for one in part.notes)
