"""A report as SARIF 2.1.0 (OASIS), which code hosts show on the lines of a pull request. Pure.

A check is a rule, a finding a result with its fingerprint. Hosts show no result without a file: one
whose place is no file of the repository points into a text beside the report. A check that cannot
tell is a notification, which makes the run unsuccessful where the check is required.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from tripod.verify.check import Finding, Report
from tripod.verify.reporters import quotation as quoted
from tripod.verify.reporters.text import report_remarks

_URL = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RESULTS, ROOM, NOTES = 25_000, 9_000_000, 200
"""Results, their bytes, notifications: GitHub takes 25,000 results and 10 MB of compressed text."""
_ASIDE = "tripod verify: findings whose place is no file of the repository"
_LEVELS = {"failure": "error", "warning": "warning", "advice": "note"}
_Object = dict[str, Any]
_Manual = Callable[[str], str]


def render(
    report: Report, *, version: str, manual: _Manual, beside: str = "", is_part: bool = False
) -> tuple[str, str]:
    """The report as one line of JSON, and the text of the file ``beside`` it, '' if it needs none.

    ``manual`` gives the section of a check, ``beside`` is a path from the top of the repository;
    without one, a place elsewhere is told by its own path. A run that looked at a part alone, or
    was not successful, has an id of its own: hosts take alerts that a whole one lacks for mended.
    """
    names = list(dict.fromkeys(one.check for one in report.all_outcomes))
    made, told, left_out = _results(report, names, beside)
    noted = _notifications(report, names, left_out)
    notes = sorted(noted, key=lambda one: ("error", "warning", "note").index(one["level"]))
    is_whole = all(one["level"] != "error" for one in notes)
    if more := len(notes[NOTES:]):
        notes[NOTES:] = [{"level": "warning", "message": {"text": f"{more} more are left out"}}]
    invocation = {"executionSuccessful": is_whole, "exitCode": report.exit_code}
    rules = [_rule(name, manual(name)) for name in names]
    run = {
        "tool": {"driver": {"name": "tripod", "semanticVersion": version, "rules": rules}},
        "automationDetails": {"id": f"tripod/verify{'-part' if is_part or not is_whole else ''}/"},
        "invocations": [invocation | {"toolExecutionNotifications": notes}],
    }
    log = json.dumps({"$schema": _URL, "version": "2.1.0", "runs": [run]})
    # The results are written already, to know their length: they go in front of the last "}]}".
    written = quoted.without_commands(f'{log[:-3]}, "results": [{", ".join(made)}]', "\\u0023")
    places = quoted.without_commands("".join(f"{line}\n" for line in told), "\\x23", "\\x3a")
    return f"{written}}}]}}\n", places


def _results(report: Report, names: list[str], beside: str) -> tuple[list[str], list[str], int]:
    """The results in JSON, the lines of the file beside, and how many findings have no room."""
    made, told, room, seen = list[str](), [_ASIDE], ROOM, set[str]()
    for finding, what in (found := quoted.weighed_findings(report)):
        lines, print_ = quoted.placed_lines(finding), finding.fingerprint
        while print_ and print_ in seen:  # two records hold the same fault
            print_ = sha256(f"{print_} {quoted.line_of(what)}".encode()).hexdigest()
        place, aside = _place(finding, beside, len(told) + 1)
        rule = {"ruleId": finding.check, "ruleIndex": names.index(finding.check)}
        said = {"level": _LEVELS[finding.severity], "message": {"text": "\n".join(lines)}}
        prints = {"partialFingerprints": {"primaryLocationLineHash": print_}} if print_ else {}
        text = json.dumps({**rule, **said, "locations": [place], **prints})
        if (room := room - len(text) - 2) < 0 or len(made) == RESULTS:
            break
        seen.add(print_)
        made.append(text)
        told += [aside, *(f"    {one}" for one in lines)] if aside else []
    return made, told if len(told) > 1 else [], len(found) - len(made)


def _place(finding: Finding, beside: str, line: int) -> tuple[_Object, str]:
    """Where a result is; where that is the file beside, at ``line``, what stands in that line."""
    if path := quoted.file_in_repository(finding):
        file = {"uri": quoted.path_as_uri(path), "uriBaseId": "%SRCROOT%"}
        region = {} if finding.line is None else {"region": {"startLine": finding.line}}
        return {"physicalLocation": {"artifactLocation": file, **region}}, ""
    said = quoted.line_of(": ".join(filter(None, (finding.file, finding.where))) or "nowhere")
    region = {"region": {"startLine": line}} if beside else {}
    file = {"uri": quoted.path_as_uri(beside or finding.file or ".")}
    place = {"physicalLocation": {"artifactLocation": file, **region}}
    return place | {"logicalLocations": [{"fullyQualifiedName": said}]}, said if beside else ""


def _rule(name: str, manual: str) -> _Object:
    summary = {"text": quoted.line_of(" ".join(manual.split("\n\n")[1].split()) or name, 1_000)}
    helps = {"text": manual, "markdown": manual}
    return {"id": name, "shortDescription": summary, "fullDescription": summary, "help": helps}


def _notifications(report: Report, names: list[str], left_out: int) -> Iterator[_Object]:
    """Why a check, or all of them, cannot tell; what was not looked at, and what is not listed."""
    more = [(one.check, sum(one.left_out.values())) for one in report.all_outcomes]
    said: list[tuple[str, str, str]] = [
        ("warning", check, f"{number} more findings") for check, number in more if number
    ]
    if left_out:
        said.append(("warning", "", f"{left_out} more findings have no room in this report"))
    # Accepted findings are told here: as results, GitHub would show them as open.
    for severity, check, words in (*report_remarks(report), *said):
        text = quoted.line_of(f"{check}: {words}" if check else words)
        rule = {"associatedRule": {"index": names.index(check)}} if check else {}
        yield {"level": _LEVELS[severity], "message": {"text": text}, **rule}
