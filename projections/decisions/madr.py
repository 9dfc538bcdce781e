"""Decisions in Markdown of other forms: one a file (MADR), or one below each heading. Pure.

A file of a decision has its title as ``# ...`` and its reasons below ``Decision Outcome`` (MADR 2
to 4) or ``Decision`` (Nygard's form). Status, date and people stand in YAML in front (MADR 3 and
4), in bullets below the title (MADR 2), or below headings of their own::

    ---
    status: accepted
    date: 2023-05-04
    ---
    # Use Markdown
    ## Decision Outcome
    Chosen option: "Markdown", because everybody can read it.

On a page with many decisions (``DECISIONS.md``) each stands below a ``##``; or below a ``###``,
where a ``##`` has nothing but those below it (a year, a topic). ``Status: ...`` and ``Date: ...``
may stand below it, the date also in the heading, or in that of its group.

A file whose front matter names a ``decision`` (``D-1770900000``) is one that ``tripod decisions
export`` wrote, perhaps changed since: its fields come back word for word
(``tripod.projections.decisions.madr_file``).

What is not of these forms is a MalformedError that names the line; nothing of that file is read.
Source: https://adr.github.io/madr
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from tripod.ledger import MalformedError
from tripod.projections.decisions.format import (
    MAX_FIELD,
    MAX_TITLE,
    NONE_YET,
    STATUSES,
    DecisionText,
    is_decision_log,
    valid_decision_id,
)
from tripod.projections.decisions.madr_file import read_page_line
from tripod.projections.pieces import BODY_ROOM, piece_fits
from tripod.projections.text import parse as parse_time

MAX_PAGE = 1024 * 1024  # bytes of a file
_NUMBERED = r"([0-9]{1,8})[-_. ]"
_FIELD = (
    r"(?i)\s*(?:[*-]\s+)?(?:\*\*)?(status|date|deciders|decision[- ]makers)(?:\*\*)?:(?:\*\*)?(.*)"
)
_LINK = r"\[([^\]]*)\]\([^)]*\)"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PEOPLE = ("decision-makers", "decision makers", "deciders")
_OWN = ("decision", "made", "logged-status", "supersedes", "risk-tags", "artefacts", "chat-refs")
"""Keys of the front matter that only files of an export have."""
_REASONS = ("decision outcome", "decision", "context and problem statement", "context")
_ASIDE = ("contents", "table of contents", "toc", "index")
"""Headings of a page that are no decision's."""
_STANDS = ("accepted", "adopted", "agreed", "approved", "decided", "done", "implemented")
_ENDED = ("deprecated", "rejected", "superseded")
_WAITING = ("proposed", "draft", "pending", "open", "wip")


class FoundDecision(NamedTuple):
    """A decision in another program's file: ``data`` are its bytes, which begin at ``line``.

    ``heading`` tells it from others of its page; '' where it has the file to itself. ``number`` is
    the one in its file's name, ``successor`` that of the decision that superseded it. ``status`` is
    as it stands there, '' where it says no more than accepted. ``time`` is the second at which its
    day begins. What is not there is None, of people ''.

    ``whole`` are the fields as the log had them, where an export wrote the file; else None. Then
    ``time`` is the second in the decision's id, and ``made`` is the replica and the id by which its
    maker knows it, '' where the exporting ledger made it.
    """

    line: int
    heading: str
    number: int | None
    title: str
    status: str
    time: int | None
    people: str
    reasons: str
    successor: int | None
    data: bytes
    whole: DecisionText | None = None
    made: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether it was proposed and nothing was decided yet."""
        return self.status.lower().startswith(_WAITING)


class _Heading(NamedTuple):
    """A heading: its level, its text, its line and the one behind it, from 0."""

    level: int
    text: str
    line: int
    behind: int


class _Page(NamedTuple):
    """The lines of a file of an export that stand for its title and its rationale."""

    title: str
    reasons: Sequence[str]


class _Said(NamedTuple):
    """What a field says, and in which line, from 0."""

    text: str
    line: int


def is_madr(name: str, data: bytes) -> bool:
    r"""Whether a file holds one decision: its name has a number, or it the heading of one outcome.

    >>> is_madr("0001-use-it.md", b""), is_madr("DECISIONS.md", b"# All\n\n## Use it\n\nYes.\n")
    (True, False)
    """
    outcomes = re.findall(rb"(?mi)^##[ \t]+decision(?: outcome)?[ \t]*\r?$", data)
    return re.match(_NUMBERED, name) is not None or len(outcomes) == 1


def parse_madr(name: str, data: bytes) -> FoundDecision:
    """The decision of a file (MalformedError: it holds none of a known form)."""
    lines = _lines_of(data)
    fields, start = _front_matter(lines)
    headings = _headings([*[""] * start, *lines[start:]])
    title = next((one for one in headings if one.level == 1 and one.text), None)
    if title is None:
        raise _malformed(start, "no title (`# ...`)")
    parts = {one.text.lower(): _own(lines, headings, one) for one in reversed(headings)}
    below = _fields(lines, title.behind, _end(lines, headings, title))
    for name_of, part in parts.items():
        if name_of in ("status", "date") and _words(part):
            line = next(one.behind for one in headings if one.text.lower() == name_of)
            below.setdefault(name_of, _Said(_words(part), line))
    reasons = next(filter(None, (_words(parts.get(one, ())) for one in _REASONS)), "")
    match = re.match(_NUMBERED, name)
    number = None if match is None else int(match[1])
    if "decision" in fields:
        own = _Page(lines[title.line].removeprefix("# "), parts.get("decision outcome", ()))
        return _of_export(title, fields, own, data)._replace(number=number)
    if not reasons:
        raise _malformed(title.line, "nothing stands below `## Decision Outcome` or `## Decision`")
    found = _found(title, {**below, **fields}, title.text, reasons, data)
    return found._replace(number=number)


def parse_decision_page(name: str, data: bytes) -> list[FoundDecision]:
    """The decisions of a page, one below each heading (MalformedError: one has none below it)."""
    if is_decision_log(name, data):
        raise _malformed(
            0, "it is a log of the form that the team's own have: `nbs-scribe` takes it where it is"
        )
    lines = _lines_of(data)
    headings = _headings(lines)
    found = []
    for one, group in _decision_headings(lines, headings):
        stop = next((h.line for h in headings if h.line > one.line and h.level <= one.level), None)
        stop = len(lines) if stop is None else stop
        fields = _fields(lines, one.behind, stop)
        date = re.search(_DATE, one.text) or re.search(_DATE, group)
        if date is not None:
            fields.setdefault("date", _Said(date[0], one.line))
        title = re.sub(rf"[\s(\[]*{_DATE}[\s)\]]*", " ", one.text).strip(" \t:-\u2013\u2014")
        if not title:
            raise _malformed(one.line, "the heading names a day and no decision")
        inner = [h for h in headings if one.line < h.line < stop]
        parts = {h.text.lower(): _own(lines, headings, h) for h in reversed(inner)}
        reasons = next(filter(None, (_words(parts.get(word, ())) for word in _REASONS)), "")
        for part in (_own(lines, headings, one), lines[one.behind : stop]):
            reasons = reasons or _words(line for line in part if not re.match(_FIELD, line))
        if not reasons:
            raise _malformed(one.line, f"nothing stands below {one.text[:80]!r}")
        whole = "\n".join(lines[one.line : stop]).rstrip() + "\n"
        found.append(_found(one, fields, title, reasons, whole.encode(), one.text))
    if not found:
        raise _malformed(0, "no heading (`## ...`) names a decision")
    return found


def _malformed(line: int, problem: str) -> MalformedError:
    return MalformedError(f"line {line + 1}: {problem}")


def _lines_of(data: bytes) -> list[str]:
    if len(data) > MAX_PAGE:
        raise _malformed(0, f"the file has more than {MAX_PAGE} bytes")
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        raise _malformed(line, f"not UTF-8 (byte {error.start + 1})") from None
    if "\0" in text:
        raise _malformed(text.count("\n", 0, text.index("\0")), "it holds a NUL byte")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # as Markdown has it


def _front_matter(lines: Sequence[str]) -> tuple[dict[str, _Said], int]:
    """The fields in front, and how many lines they take."""
    if lines[0].rstrip() != "---":
        return {}, 0
    from tripod.projections.settings import read_setting_entries

    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        raise _malformed(0, "the front matter (`---`) has no end")
    try:
        entries = read_setting_entries("\n".join(lines[1:end]).encode())
    except MalformedError as error:
        number = re.match(r"line ([0-9]+): (.*)", str(error), re.DOTALL)
        line, problem = (0, str(error)) if number is None else (int(number[1]), number[2])
        raise _malformed(line, problem) from error
    fields: dict[str, _Said] = {}
    strange: dict[str, int] = {}
    for key, line, value in entries:
        name = key.lower()
        if name in fields:
            raise _malformed(line, f"{key[:80]} stands above already")
        parts = value if isinstance(value, list) else [value]
        if name in ("status", "date", *_PEOPLE, *_OWN):
            if all(isinstance(part, str) for part in parts):
                fields[name] = _Said(", ".join(filter(None, parts)), line)
            else:
                strange[name] = line
    is_own = "decision" in fields and valid_decision_id(fields["decision"].text) is None
    for name, line in strange.items():
        if is_own or name not in _OWN:
            raise _malformed(line, f"{name} is no text")
    if not is_own:  # keys of another program
        fields = {name: said for name, said in fields.items() if name not in _OWN}
    return fields, end + 1


def _of_export(
    title: _Heading, fields: dict[str, _Said], page: _Page, data: bytes
) -> FoundDecision:
    """The decision of a file that an export wrote (MalformedError: its status or date is strange).

    What a person made of it counts: reasons on several lines are joined by blanks.
    """
    said = {name: field.text for name, field in fields.items()}
    rows = [line for line in page.reasons if line.strip()]
    reasons = read_page_line(rows[0] if len(rows) == 1 else _words(rows))
    people = next((said[one] for one in _PEOPLE if one in said), "")
    whole = DecisionText(
        said["decision"],
        read_page_line(page.title),
        said.get("supersedes"),
        said.get("chat-refs", NONE_YET),
        people,
        said.get("artefacts", NONE_YET),
        said.get("risk-tags", "none"),
        said.get("logged-status", "decided"),
        reasons,
    )
    found = _found(title, fields, whole.title, reasons, data)
    time, made = int(whole.id[2:]), said.get("made", "")
    return found._replace(time=time, people=people, whole=whole, made=made)


def _headings(lines: Sequence[str]) -> list[_Heading]:
    """The headings of a page, outside of code."""
    from markdown_it import MarkdownIt

    rules = ["fence", "code", "heading", "lheading", "html_block"]
    tokens = MarkdownIt("zero").enable(rules).parse("\n".join(lines))
    found = []
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.map is not None:
            text = re.sub(_LINK, r"\1", tokens[at + 1].content)
            found.append(_Heading(int(token.tag[1:]), " ".join(text.split()), *token.map))
    return found


def _decision_headings(
    lines: Sequence[str], headings: Sequence[_Heading]
) -> Iterator[tuple[_Heading, str]]:
    """The headings of a page that name decisions, each with that of its group, or ''."""
    group: str | None = ""
    for one, after in zip_longest(headings, headings[1:]):
        if one.level == 2:
            is_group = (
                after is not None and after.level == 3 and not _words(_own(lines, headings, one))
            )
            group = one.text if is_group else None
        if one.text.lower() in _ASIDE:
            continue
        if one.level == 2 and group is None:
            yield one, ""
        elif one.level == 3 and group is not None:
            yield one, group


def _end(lines: Sequence[str], headings: Sequence[_Heading], one: _Heading) -> int:
    return next((other.line for other in headings if other.line > one.line), len(lines))


def _own(lines: Sequence[str], headings: Sequence[_Heading], one: _Heading) -> Sequence[str]:
    """The lines between a heading and the next one."""
    return lines[one.behind : _end(lines, headings, one)]


def _words(lines: Iterable[str]) -> str:
    """The text of lines in one line, without comments."""
    return " ".join(re.sub(r"(?s)<!--.*?(?:-->|\Z)", " ", "\n".join(lines)).split())


def _fields(lines: Sequence[str], start: int, stop: int) -> dict[str, _Said]:
    """Status, date and people that lines of their own name; the first of each counts."""
    fields: dict[str, _Said] = {}
    for at in range(start, stop):
        match = re.fullmatch(_FIELD, lines[at])
        if match is not None and _words([match[2]]):
            fields.setdefault(match[1].lower(), _Said(_words([match[2]]), at))
    return fields


def _found(  # noqa: PLR0917 - each is a part of one decision
    heading: _Heading,
    fields: dict[str, _Said],
    title: str,
    reasons: str,
    data: bytes,
    own: str = "",
) -> FoundDecision:
    """A decision, its status and its date judged (MalformedError)."""
    status, line = fields.get("status", _Said("", heading.line))
    status = re.sub(_LINK, r"\1", status)
    word = re.search(r"[a-z]+", status.lower())
    is_known = word is not None and word[0] in (*_STANDS, *_ENDED, *_WAITING)
    if status and (not is_known or "|" in status):  # a choice that nobody made
        known = ", ".join((*_STANDS, *_ENDED, *_WAITING))
        raise _malformed(line, f"status {status[:80]!r} is not one of {known}")
    after = re.search(r"(?i)superseded by[^0-9]*([0-9]{1,8})", status)
    date, line = fields.get("date", _Said("", heading.line))
    match = re.match(_DATE, date)
    time = None if match is None else parse_time(f"{match[0]}T00:00:00Z")
    if date and (time is None or time < 0):
        raise _malformed(line, f"date {date[:80]!r} is no day such as 2023-05-04")
    people = next((fields[one].text for one in _PEOPLE if one in fields), "")
    return FoundDecision(
        heading.line + 1,
        own,
        None,
        title,
        "" if word is None or word[0] in _STANDS else status,
        time,
        people,
        reasons,
        None if after is None else int(after[1]),
        data,
    )


# As the log has it ------------------------------------------------------------------------------


def found_decision_title(one: FoundDecision) -> str:
    """The title in the log of a decision of another form, with its number and its status."""
    front = "" if one.number is None else f"ADR-{one.number:04} "
    return _cut(front + one.title, MAX_TITLE - 200) + (
        f" ({_cut(one.status, 150)})" if one.status else ""
    )


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    return text if len(data) <= limit else data[: limit - 3].decode(errors="ignore") + "…"


def found_decision_fields(one: FoundDecision) -> dict[str, Any]:
    """The fields in the log of a decision of another form, those of an export as they were there.

    The log has no empty field, no status but its own, and no text that fills an entry alone.
    """
    if one.whole is None:
        title, status, limit = found_decision_title(one), "decided", MAX_FIELD
        people, reasons = one.people, one.reasons
        more = {"artefacts": "", "risk_tags": "none"}
    else:
        whole = one.whole
        limit = BODY_ROOM if piece_fits(whole._asdict()) else MAX_FIELD
        is_known = whole.status in STATUSES
        status = whole.status if is_known else "decided"
        title = whole.title if is_known or not whole.status else f"{whole.title} ({whole.status})"
        people, reasons = whole.participants, whole.rationale
        more = {"artefacts": whole.artefacts, "risk_tags": whole.risk_tags}
        more |= {} if whole.supersedes is None else {"supersedes": whole.supersedes}
    return {
        "title": _cut(title, MAX_TITLE if one.whole is None else limit),
        "participants": _cut(people, limit) or "unknown",
        "rationale": _cut(reasons, limit) or NONE_YET,
        "status": status,
        **more,
    }


def is_found_decision(one: FoundDecision, body: Mapping[str, Any]) -> bool:
    """Whether an entry's body is the decision of a file that an export wrote."""
    shown = found_decision_fields(one)
    return all(body.get(name) == shown[name] for name in ("title", "rationale", "participants"))
