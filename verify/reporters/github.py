"""A report as GitHub Actions reads it: annotations on standard output, and a step summary. Pure.

Of annotations a step may have ten errors and ten warnings; the summary has the others, as far as
its megabyte reaches. A check that cannot tell is a warning.
"""

from __future__ import annotations

from tripod.verify.check import CANNOT_TELL, Finding, Outcome, Report, escape

SHOWN = 10
"""Annotations of one level that a step shows."""
LISTED = 200
"""Findings that a summary lists; each has at most a few KiB."""

_LEVELS = {"failure": "error", "warning": "warning", "advice": "notice"}


def render(report: Report) -> str:
    """A line for each finding, and for each check that cannot tell."""
    lines: dict[str, list[str]] = {level: [] for level in _LEVELS.values()}
    for part in report.parts or (report,):
        if part.problem or not part.judged:
            why = part.problem or "nothing was judged"
            lines["error"].append(_command("error", "tripod verify", f"{part.what}: {why}"))
        for outcome in part.outcomes:
            for finding in outcome.findings:
                level = _LEVELS[finding.severity]
                lines[level].append(_annotation(level, finding))
            if outcome.verdict == CANNOT_TELL:
                why = f"cannot tell: {outcome.reason}"
                lines["warning"].append(_command("warning", outcome.check, why))
    shown = [line for some in lines.values() for line in some[:SHOWN]]
    more = _left_out(report) + sum(len(some[SHOWN:]) for some in lines.values())
    if more:
        shown.append(_command("notice", "tripod verify", f"and {more} more: see the summary"))
    return "".join(f"{line}\n" for line in shown)


def summary(report: Report) -> str:
    """The report as Markdown: the verdict, a row for each check, the first findings."""
    found = f"{report.failures} finding{'' if report.failures == 1 else 's'}"
    words = {0: "clean", 1: found}.get(report.exit_code, "cannot tell")
    parts = [f"## tripod verify: {words}\n"]
    for part in report.parts or (report,):
        parts.append(f"\n{_cell(part.what)}{_head(part)}\n")
        parts += [f"\n**Cannot judge:** {_cell(part.problem)}\n"] if part.problem else []
        parts += ["\n| check | verdict | what it saw |\n|---|---|---|\n"] if part.outcomes else []
        parts += [f"| {_cell(one.check)} | {one.said} | {_seen(one)} |\n" for one in part.outcomes]
        parts += [f"\nNote: {_cell(note)}\n" for note in part.notes]
    listed = [one for outcome in report.all_outcomes for one in outcome.findings]
    parts += [_item(finding) for finding in listed[:LISTED]]
    if more := len(listed[LISTED:]) + _left_out(report):
        parts.append(f"\nand {more} more\n")
    return "".join(parts)


def _left_out(report: Report) -> int:
    return sum(sum(outcome.left_out.values()) for outcome in report.all_outcomes)


def _annotation(level: str, finding: Finding) -> str:
    lines = [*filter(None, (finding.message, *finding.evidence, finding.help))]
    if finding.is_elsewhere:
        lines.insert(0, f"{finding.file or finding.where}:")
        return _command(level, finding.check, *lines)
    return _command(level, finding.check, *lines, file=finding.file, line=finding.line)


def _command(level: str, title: str, *lines: str, file: str = "", line: int | None = None) -> str:
    """A workflow command; the runner takes its signs out of texts as they are put in here."""
    fields = {"file": file, "line": "" if line is None else str(line), "title": title}
    named = ",".join(f"{name}={_field(value)}" for name, value in fields.items() if value)
    return f"::{level} {named}::{'%0A'.join(map(_data, lines))}"


def _data(text: str) -> str:
    return escape(text).replace("%", "%25")


def _field(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _head(part: Report) -> str:
    return "" if part.head is None else f": {part.head[0]} entries, root `{part.head[1][:16]}`"


def _seen(outcome: Outcome) -> str:
    words = [outcome.reason, *(f"{word} {number}" for word, number in outcome.coverage.items())]
    words += [f"except: {one}" for one in outcome.exceptions]
    return _cell("; ".join(filter(None, words)))


def _item(finding: Finding) -> str:
    line = "" if finding.line is None else f":{finding.line}"
    place = f"{finding.file or finding.where}{line}"
    lines = [f"\n- **{_cell(place)}**: {_cell(finding.check)}: {_cell(finding.message)}\n"]
    lines += [f"  - {_cell(one)}\n" for one in finding.evidence]
    return "".join(lines)


def _cell(text: str) -> str:
    """A text within Markdown, where nothing of it is a sign of Markdown or HTML."""
    return "".join(f"&#{ord(sign)};" if sign in _SIGNS else sign for sign in escape(text))


_SIGNS = frozenset("\\`*_{}[]()<>#+|!&~@$:")
