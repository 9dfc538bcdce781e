"""Pythia's assessments: how they are recognised in a chat, judged, asked for and matched. Pure.

Two layouts are in use. ``INSTRUCTIONS`` shows the architecture's. In the skill's, each section is
one paragraph after a bold label::

    PYTHIA CHECKPOINT — Assessment #3

    **Hidden assumption:** ...
    **Confidence:** moderate — ...
    ---
    End of checkpoint. Pythia out.

An agent writes these, never we, so they are only read, as the Markdown that readers of the chat
see: ``parse_assessment`` recognises both layouts in what others posted, tolerantly, since what is
missing is for a check to report; ``judge_review`` holds what is to be posted against the first
layout, strictly.

Programs that know no ledger post an assessment as a message and acknowledge the event; nothing
binds the two but what each says of itself and which came first: ``answers_checkpoint`` judges that.

Source: seed tripod-architecture, "Template" and "Checkpoint Template"; spec nbs-compat C6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 64 * 1024
"""Characters of an assessment that are read: the Markdown of a longer one may cost minutes."""

TITLES = (
    "Hidden Assumptions",
    "Second-Order Risks",
    "Missing Validation",
    "Six-Month Regret Scenario",
    "Confidence",
)
"""Titles of the five sections, in their order."""
SECTIONS = tuple(title.lower().replace(" ", "-").removesuffix("-scenario") for title in TITLES)
"""Our names of these sections, which both layouts have: ``six-month-regret``, for one."""

_DASH = "[-\u2013\u2014]"
_NAME = re.compile("pythia checkpoint", re.IGNORECASE)
_ARCHITECTURE = re.compile(rf"Pythia Checkpoint[ \t]*(?:{_DASH}+.*)?", re.IGNORECASE)
_SKILL = re.compile(rf"[#* \t]*PYTHIA CHECKPOINT[* \t]*{_DASH}+[* \t]*Assessment", re.IGNORECASE)
_ASSESSED_RANGE = re.compile(
    r"Decisions reviewed[*: \t]*(D-[0-9]{1,16})(?:[ \t]*(?:through|to|-|\u2013|\u2014)"
    r"[ \t]*(D-[0-9]{1,16}))?(?:[ \t]*\(([0-9]{1,9}) decisions?\))?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:[0-9][.)][ \t]*)?"
    r"(hidden[ -]assumptions?|second[ -]order[ -]risks?|missing[ -]validations?|"
    r"six[ -]month[ -]regret(?:[ -]scenario)?|confidence)"
    r"[ \t]*:?[ \t]*",
    re.IGNORECASE,
)
_END = re.compile(r"End of checkpoint\b", re.IGNORECASE)
_CONFIDENCE_WORD = re.compile(r"\b(high|medium|moderate|low)\b", re.IGNORECASE)
_PAYLOAD = re.compile(
    r"Checkpoint at decision ([0-9]{1,9})\. Decisions (D-[0-9]{1,16}) through (D-[0-9]{1,16})\."
    r"(?: Entries: [^\n]*)?\n?"
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """What an assessment says of itself.

    ``first``, ``last`` and ``count`` are the decisions it claims to have reviewed; ``sections``
    those of :data:`SECTIONS` that have a text; ``cited`` the decision ids in those texts, each
    once, in order; ``confidence`` one of high, medium, moderate, low or ``''``.
    """

    first: str | None
    last: str | None
    count: int | None
    sections: tuple[str, ...]
    confidence: str
    cited: tuple[str, ...]


class Line(NamedTuple):
    """A line of a Markdown text as its reader sees it: without marks, and without HTML.

    ``heading`` is h1 to h6 for a heading at the top level, whose hash signs are ``marks``; ``bold``
    that a line at the top level begins in bold; ``quoted`` that a quotation or a block of code
    holds it.
    """

    text: str
    heading: str = ""
    marks: str = ""
    bold: bool = False
    quoted: bool = False


def _read_lines(text: str) -> list[Line]:
    """The lines of a Markdown text; a block of code is one line. At most ``LONGEST`` are read."""
    lines: list[Line] = []
    heading, quotes = Line(""), 0
    for token in _parser().parse(text[:LONGEST]):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "heading_open" and token.level == 0:
            heading = Line("", token.tag, token.markup)
        elif token.type == "inline":
            for words, bold in _split(token):
                begins = bold and token.level == 1
                lines.append(heading._replace(text=words, bold=begins, quoted=quotes > 0))
            heading = Line("")
        elif token.type in ("fence", "code_block"):
            lines.append(Line(token.content.strip(), quoted=True))
    return lines


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _split(token: Token) -> Iterator[tuple[str, bool]]:
    """The lines of a paragraph, each with whether it begins in bold."""
    words, bold = "", False
    for child in token.children or ():
        if child.type in ("text", "text_special", "code_inline"):
            words += child.content
        elif child.type == "strong_open":
            bold = bold or not words.strip()
        elif child.type in ("softbreak", "hardbreak"):
            yield words.strip(), bold
            words, bold = "", False
    yield words.strip(), bold


def _sections(lines: list[Line]) -> dict[str, str]:
    """The texts of the sections by our names; of one that stands twice, both texts."""
    texts: dict[str, list[str]] = {}
    section: list[str] = []
    for line in lines:
        label = None
        if line.bold or (line.heading in ("h2", "h3", "h4") and line.marks.startswith("#")):
            label = _LABEL.match(line.text)
        if label:
            name = next(name for name in SECTIONS if name[:3] == label[1][:3].lower())
            section = texts.setdefault(name, [])
        if not _END.match(line.text):
            section.append(line.text[label.end() if label else 0 :])
    joined = {name: "\n".join(filter(None, parts)) for name, parts in texts.items()}
    return {name: text for name, text in joined.items() if text}


def parse_assessment(text: str) -> Assessment | None:
    """Recognise an assessment in a chat text, read as Markdown; None if absent.

    The heading may follow other lines, but must begin its line: a quotation, or a template inside
    a block of code, is no assessment.
    """
    if not _NAME.search(text):
        return None
    lines = _read_lines(text)
    heads = (
        at
        for at, one in enumerate(lines)
        if one.marks in ("#", "##", "###", "####") and _ARCHITECTURE.fullmatch(one.text)
    )
    labels = (at for at, one in enumerate(lines) if not one.quoted and _SKILL.match(one.text))
    number = next(chain(heads, labels), None)
    if number is None:
        return None
    body = lines[number + 1 :]
    said = (_ASSESSED_RANGE.match(line.text) for line in body if not line.quoted)
    first, last, count = next((match.groups() for match in said if match), (None, None, None))
    texts = _sections(body)
    confidence = _CONFIDENCE_WORD.search(texts.get("confidence", ""))
    return Assessment(
        first=first,
        last=last or first,
        count=int(count) if count else None,
        sections=tuple(name for name in SECTIONS if name in texts),
        confidence=confidence[1].lower() if confidence else "",
        cited=tuple(dict.fromkeys(_CITED.findall("\n".join(texts.values())))),
    )


def format_checkpoint_payload(count: int, first: str, last: str, entries: str = "") -> str:
    """Give the payload of a ``pythia-checkpoint`` event (ValueError: it would not read back).

    ``entries`` says where decisions of several replicas stand, as their makers number them.
    """
    text = f"Checkpoint at decision {count}. Decisions {first} through {last}."
    text += f" Entries: {entries}." if entries else ""
    if parse_checkpoint_payload(text) != (count, first, last):
        raise ValueError(f"no checkpoint at {count!r} from {first!r} through {last!r}")
    return text


def parse_checkpoint_payload(text: str) -> tuple[int, str, str] | None:
    """Read the payload of a ``pythia-checkpoint`` event; None where it has another form.

    >>> parse_checkpoint_payload("Checkpoint at decision 20. Decisions D-17 through D-36.")
    (20, 'D-17', 'D-36')
    """
    match = _PAYLOAD.fullmatch(text)
    return (int(match[1]), match[2], match[3]) if match else None


# Review -----------------------------------------------------------------------------------------


_SHOWN = 60  # characters of what stands there that a problem repeats
_FEW = 5  # unknown decisions that a problem names
_HEADER = re.compile(
    "Pythia Checkpoint [-\u2013\u2014]{1,2} "
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
)
_REVIEWED = re.compile(
    r"Decisions reviewed: (D-[0-9]{1,16}) through (D-[0-9]{1,16}) \(([0-9]{1,9}) decisions?\)"
)
_CONFIDENCE = re.compile(r"(?:overall:?\s*)?(high|medium|low)\b(?!\s*\|)", re.IGNORECASE)
_CITED = re.compile(r"(?<![A-Za-z0-9-])D-[0-9]{1,16}(?![A-Za-z0-9])")


class DecisionRange(NamedTuple):
    """The decisions that a review is asked for: the first, the last, and how many these are."""

    first: str
    last: str
    decisions: int

    def __str__(self) -> str:
        """The range as the template prints it."""
        return f"{self.first} through {self.last} ({self.decisions} decisions)"


class Judged(NamedTuple):
    """What was found: with ``problems``, the rest is as far as it could be read."""

    problems: list[str]
    confidence: str = ""
    cited: tuple[str, ...] = ()


def judge_review(text: str, asked: DecisionRange, known: Collection[str]) -> Judged:
    """Hold an assessment against the template: it must say to have reviewed ``asked``.

    ``known`` are the ids of all decisions that its author was given: it may cite these alone.
    """
    if len(text) > LONGEST:
        return Judged([f"it has {len(text)} characters; of a review at most {LONGEST} are read"])
    blocks = _blocks(text)
    if not blocks:
        return Judged(["it is empty"])
    first, problems = blocks[0], []
    if first.tag != "h2" or not _HEADER.fullmatch(first.text):
        problems.append(
            "it does not begin with `## Pythia Checkpoint \u2014 ` and a time (ISO 8601, with zone)"
        )
    if any(block.tag in ("h1", "h2") for block in blocks[1:]):
        problems.append("it has a second header (# or ##)")
    match = _REVIEWED.match(first.below)
    if match is None:
        problems.append(f"below the header, `Decisions reviewed: {asked}` is missing")
    elif (match[1], match[2], int(match[3])) != asked:
        found = f"{match[1]} through {match[2]} ({match[3]} decisions)"
        problems.append(f"it says to have reviewed {found}, and was asked for {asked}")
    sections = [block for block in blocks if block.tag == "h3"]
    titles = [block.text for block in sections]
    if titles != list(TITLES):
        has = ", ".join(_short(title) for title in titles) or "none"
        problems.append(f"its sections (###) are not {', '.join(TITLES)}, in this order: {has}")
    problems += [f"{_short(b.text)}: nothing stands there" for b in sections if not b.below]
    said = _CONFIDENCE.match(sections[-1].below) if titles[-1:] == list(TITLES[-1:]) else None
    if said is None:
        problems.append("Confidence: it does not begin with high, medium or low")
    cited = tuple(dict.fromkeys(_CITED.findall("\n".join(b.below for b in sections))))
    foreign = [id_ for id_ in cited if id_ not in known]
    if foreign:
        more = f" and {len(foreign) - _FEW} more" if len(foreign) > _FEW else ""
        problems.append(f"it cites {', '.join(foreign[:_FEW])}{more}: no decision of the log")
    confidence = said[1].lower() if said else ""
    if not problems:
        read = parse_assessment(text)
        if read is None or (read.first, read.last, read.count, read.confidence) != (
            *asked,
            confidence,
        ):
            problems.append("the chat's readers find another range or confidence in it")
    return Judged(problems, confidence, cited)


class _Block(NamedTuple):
    """A heading at the top level (tag '' for what stands before any), and the text below it."""

    tag: str
    text: str
    below: str


def _blocks(text: str) -> list[_Block]:
    parts: list[tuple[str, str, list[str]]] = []
    for line in _read_lines(text):
        if line.heading in ("h1", "h2", "h3"):
            parts.append((line.heading, line.text, []))
        elif line.text:
            if not parts:
                parts.append(("", "", []))
            parts[-1][2].append(line.text)
    return [_Block(tag, title, "\n".join(below)) for tag, title, below in parts]


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# Answers ----------------------------------------------------------------------------------------


Span = tuple[str, str]
"""The ids of the first and the last decision of a range."""

Together = Callable[[int, int], bool]
"""Whether nothing but their times tells which of two entries came first."""


@dataclass
class DatedReviewEntry:
    """An entry, the time that it claims in epoch seconds (0: none), and whether others wrote it."""

    seq: int
    time: int
    observed: bool


def checkpoint_came_first(
    event: DatedReviewEntry, posted: DatedReviewEntry, together: Together
) -> bool:
    """Whether the event came first; times are claims, and anyone who writes a file chooses them."""
    claimed = event.observed and posted.observed and event.time and posted.time
    if claimed and together(event.seq, posted.seq):
        return event.time <= posted.time
    return event.seq < posted.seq


def span_of(said: Assessment) -> Span | None:
    """The decisions that an assessment says to have reviewed."""
    return (said.first, said.last) if said.first and said.last else None


def review_ranges_overlap(one: Span, other: Span) -> bool:
    """Whether two ranges have a decision's id in common.

    >>> review_ranges_overlap(("D-1", "D-20"), ("D-20", "D-40"))
    True
    >>> review_ranges_overlap(("D-1", "D-2"), ("D-3", "D-4"))
    False
    """
    return int(one[0][2:]) <= int(other[1][2:]) and int(other[0][2:]) <= int(one[1][2:])


def answers_checkpoint(
    posted: DatedReviewEntry,
    said: Assessment,
    event: DatedReviewEntry,
    wanted: Span | None,
    together: Together,
) -> bool:
    """Whether a message answers an event: it came later, and is about what that asked for.

    Where either names no range, nothing speaks against it.
    """
    span = span_of(said)
    fits = span is None or wanted is None or review_ranges_overlap(span, wanted)
    return fits and checkpoint_came_first(event, posted, together)


INSTRUCTIONS = """\
You are Pythia, the reviewer of a team. You are given the team's decision log and nothing else: not
its conversations, and you are not to look for them. You name risks, assumptions and gaps; the team
decides. You do not converse, approve or forbid.

Review the decisions {first} through {last} ({count} of them, at the end of the log). Those before
them are context. Base every statement on the log, and cite the decisions that it rests on by their
id. Cite no id that is not in the log.

Answer with exactly this document in markdown, and nothing before or after it. Replace what stands
in angle brackets; each section needs a text of your own.

```
## Pythia Checkpoint — <the time now, such as 2026-02-12T14:00:00Z>

Decisions reviewed: {first} through {last} ({count} decisions)

### Hidden Assumptions

<Assumptions embedded in these decisions that nobody stated or tested.>

### Second-Order Risks

<Consequences that the decisions do not show by themselves; how they interact.>

### Missing Validation

<Claims in the log without evidence; tests that should exist and do not.>

### Six-Month Regret Scenario

<The most likely bad case, not the worst one.>

### Confidence

overall: <one of: high, medium, low>
<What would change this assessment.>
```
"""
"""The prompt in front of the decision log; ``{first}`` to ``{last}`` are the decisions to review.

The check of isolation knows it as this project's own words.
"""
