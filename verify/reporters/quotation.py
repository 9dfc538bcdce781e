"""What a report quotes of a finding: bounded, and no command for a program that reads it. Pure.

Build servers take commands out of what a step prints: GitHub's runner reads a line that begins with
``::``, or that holds ``##[`` anywhere; ``##vso[`` is for Azure's agent, ``##teamcity[`` for
TeamCity. A message in a chat could so end a step's annotations, or set a variable of the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from tripod.verify.check import Finding, Report, escape, shorten
from tripod.verify.finding import WEIGHTS

WIDTH = 4_000
"""Characters of a line that a report for programs quotes."""
LINES = 40
"""Lines of a finding's evidence that it quotes."""
PATH = 4_096
"""Characters of a path: no file of a repository has a longer one."""

_COMMAND = re.compile(r"##(?=\w*\[)|^(\s*)::", re.MULTILINE)


def without_commands(text: str, hash_sign: str, colon: str = ":") -> str:
    r"""A text of which no line is a command: ``hash_sign`` and ``colon`` stand for these signs.

    >>> without_commands("a ##vso[x]", "\\x23")
    'a \\x23#vso[x]'
    >>> without_commands("  ::error::x", "\\x23", "\\x3a")
    '  \\x3a:error::x'
    """
    return _COMMAND.sub(lambda m: f"{hash_sign}#" if m[0] == "##" else f"{m[1]}{colon}:", text)


def line_of(text: str, width: int = WIDTH) -> str:
    """A text as a line of at most ``width`` characters, escaped."""
    return shorten(escape(text[: width + 1]), width)  # what is cut off is not looked at


def finding_lines(finding: Finding, *, width: int = WIDTH, lines: int = LINES) -> list[str]:
    """A finding's message, what shows it, what to do: a line each, escaped and bounded."""
    past = " (before adoption)" if finding.before_adoption else ""
    shown = list(finding.evidence[:lines])
    if more := len(finding.evidence[lines:]):
        shown.append(f"… {more} more lines of evidence")
    message = f"{line_of(finding.message or finding.check, width)}{past}"
    return [message, *(line_of(one, width) for one in (*shown, finding.help) if one)]


def finding_place(finding: Finding) -> str:
    """The file and the line of a finding, and in words where it is, unless they say so; unescaped.

    Of a file of git itself the words alone say which commit is meant.
    """
    if not finding.file:
        return finding.where
    place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
    path = finding.where.partition(":")[0]
    said = path in ("policy", ".") or path in finding.file
    said = said or finding.message.startswith(finding.where)
    ends = finding.where.startswith("the pin ") or finding.where.endswith(f" {finding.file}")
    if ends or path.endswith(f" {finding.file}"):
        return finding.where
    if not said and not path.endswith(f"/{finding.file}"):
        return f"{place}: {finding.where}"
    return place


def placed_lines(finding: Finding) -> list[str]:
    """The lines of a finding where its file and line stand beside: in front what they leave out."""
    lines, file = finding_lines(finding), file_in_repository(finding)
    if not file:
        return lines
    more = finding_place(finding).removeprefix(file).removeprefix(f":{finding.line}")
    # As the commit that holds this version of the file.
    return [f"{line_of(more.removeprefix(': '))}:", *lines] if more else lines


def weighed_findings(report: Report) -> list[tuple[Finding, str]]:
    """The findings of all parts, each with what the part is of: those that fail come first."""
    found = [
        (finding, part.what)
        for part in report.parts or (report,)
        for outcome in part.outcomes
        for finding in outcome.findings
    ]
    return sorted(found, key=lambda one: WEIGHTS.index(one[0].weight))


def file_in_repository(finding: Finding) -> str:
    """The path of a finding's file from the repository's top; '' if no commit can hold it."""
    return "" if finding.is_elsewhere or len(finding.file) > PATH else finding.file


def path_as_uri(path: str) -> str:
    """A path as a reference (RFC 3986), of a bounded length: ``file:`` where it is whole.

    Bytes that are no UTF-8 are told as they are. A name that holds halves of pairs, as JSON can
    spell them, is no file's: it is told escaped.
    """
    path = path[:PATH]
    try:
        data = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = escape(path).encode()
    return f"{'file://' if path.startswith('/') else ''}{quote(data)}"


def fitting(texts: Iterable[str], room: int) -> Iterator[str]:
    """The first of the texts, as many as have at most ``room`` bytes together."""
    for text in texts:
        room -= len(text.encode())
        if room < 0:
            return
        yield text
