"""A report as Markdown, for the summary of a step: its verdict, the checks, the findings. Pure.

GitHub shows nothing of a summary that is longer than one MiB: what has no room is counted, those
that fail the run come first.
"""

from __future__ import annotations

import re
from itertools import chain

from tripod.verify.check import Finding, Outcome, Report
from tripod.verify.reporters.quotation import (
    finding_lines,
    finding_place,
    fitting,
    line_of,
    weighed_findings,
)
from tripod.verify.reporters.text import (
    NOTHING,
    REST,
    finding_counts,
    report_notes,
    report_remarks,
)

LIMIT = 1024 * 1024
"""Bytes of all that a step writes into its summary."""

_WIDTH = 500  # characters of a text
_END = 300  # bytes for the sentence that says what was left out


def render(report: Report, room: int = LIMIT) -> str:
    """The report as Markdown in at most ``room`` bytes: the verdict, the checks, the findings.

    It is empty where not even the verdict has room.
    """
    failing = f"{report.failures} finding{'' if report.failures == 1 else 's'}"
    clean = "clean, with exceptions" if any(report_remarks(report)) else "clean"
    words = {0: clean, 1: failing}.get(report.exit_code, "cannot tell")
    counts = finding_counts(report, always=("failure", "warning"))
    head = f"## tripod verify: {words}\n\n{counts}\n"
    parts, found = report.parts or (report,), (one for one, _ in weighed_findings(report))
    blocks = list(fitting(chain((head,), map(_part, parts), map(_item, found)), room - _END))
    total = report.failures + report.warnings + report.advised
    left_out = total - max(0, len(blocks) - 1 - len(parts))
    if blocks and (left_out or len(blocks) <= len(parts)):
        blocks.append(
            f"\nNot all has room here ({left_out} of {total} findings are left out): {REST}\n"
        )
    return "".join(blocks)


def _part(part: Report) -> str:
    head = "" if part.head is None else f": {part.head[0]} entries, root `{part.head[1][:16]}`"
    problem = part.problem or ("" if part.judged else NOTHING)
    text = f"\n{_cell(part.what)}{head}\n"
    text += f"\n**Cannot judge:** {_cell(problem)}\n" if problem else ""
    text += "\n| check | verdict | what it saw |\n|---|---|---|\n" if part.outcomes else ""
    text += "".join(
        _row(outcome, is_untold=outcome.check in part.untold) for outcome in part.outcomes
    )
    return text + "".join(f"\nNote: {_cell(note)}\n" for note in report_notes(part))


def _row(outcome: Outcome, *, is_untold: bool) -> str:
    words = [outcome.reason, *(f"except: {one}" for one in outcome.exceptions)]
    words += [finding_counts(outcome), *(f"{what} {n}" for what, n in outcome.coverage.items())]
    verdict = f"{outcome.said} (required)" if is_untold else outcome.said
    return f"| {_cell(outcome.check)} | {verdict} | {_cell('; '.join(filter(None, words)))} |\n"


def _item(finding: Finding) -> str:
    lines = finding_lines(finding, width=_WIDTH, lines=10)
    place, check = _cell(finding_place(finding)), _cell(finding.check)
    first = f"\n- **{place}**: {check}: {_cell(lines[0])}\n"
    return first + "".join(f"  - {_cell(one)}\n" for one in lines[1:])


def _cell(text: str) -> str:
    """A text within Markdown, where nothing of it is a sign of Markdown or HTML, nor a link."""
    return _SIGNS.sub(lambda sign: f"&#{ord(sign[0])};", line_of(text, _WIDTH))


_SIGNS = re.compile(r"[\\`*_{}\[\]()<>#+|!&~@$:]|(?<=[wW])\.")
