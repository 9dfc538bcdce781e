"""An assessment held against Pythia's template, part by part. Pure.

``projections.formats.assessment`` recognises what others posted, tolerantly; this judges what is to
be posted, strictly, as markdown and not as lines that look like it. The template::

    ## Pythia Checkpoint — 2026-02-12T14:00:00Z

    Decisions reviewed: D-1707753600 through D-1707760800 (20 decisions)

    ### Hidden Assumptions
    ### Second-Order Risks
    ### Missing Validation
    ### Six-Month Regret Scenario
    ### Confidence

with a text in each of the five sections, and ``high``, ``medium`` or ``low`` at the beginning of
the last (``overall:`` may stand before it). Source: seed tripod-architecture, "Template".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from projections.formats.assessment import parse_assessment

if TYPE_CHECKING:
    from markdown_it.token import Token

TITLES = (
    "Hidden Assumptions",
    "Second-Order Risks",
    "Missing Validation",
    "Six-Month Regret Scenario",
    "Confidence",
)
"""Titles of the five sections, in their order."""

_LONGEST = 64 * 1024
"""Characters of a review that are read: the markdown of a longer one may cost minutes."""
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


class Range(NamedTuple):
    """The decisions that a review is asked for: the first, the last, and how many these are."""

    first: str
    last: str
    decisions: int

    def __str__(self) -> str:
        """As the template has it."""
        return f"{self.first} through {self.last} ({self.decisions} decisions)"


class Judged(NamedTuple):
    """What was found: with ``problems``, the rest is as far as it could be read."""

    problems: list[str]
    confidence: str = ""
    cited: tuple[str, ...] = ()


def judge_review(text: str, asked: Range, known: Collection[str]) -> Judged:
    """Hold an assessment against the template.

    Args:
        text: the assessment, whole.
        asked: the decisions that it must say to have reviewed.
        known: the ids of all decisions that its author was given: it may cite these alone.
    """
    from markdown_it import MarkdownIt

    if len(text) > _LONGEST:
        return Judged([f"it has {len(text)} characters; of a review at most {_LONGEST} are read"])
    blocks = _blocks(MarkdownIt("commonmark").parse(text))
    if not blocks:
        return Judged(["it is empty"])
    problems = _front(blocks, asked)
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
    if not problems and not _recognised(text, asked, confidence):
        problems.append("read line by line, it says something else than as markdown")
    return Judged(problems, confidence, cited)


def _front(blocks: list[_Block], asked: Range) -> list[str]:
    """What is wrong with the header and the line below it."""
    problems = []
    first = blocks[0]
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
    return problems


class _Block(NamedTuple):
    """A heading at the top level (tag '' for what stands before any), and the text below it."""

    tag: str
    text: str
    below: str


def _blocks(tokens: list[Token]) -> list[_Block]:
    found: list[_Block] = []
    texts: list[str] = []
    heading = ""
    for token in tokens:
        if token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2", "h3"):
            _close(found, texts)
            texts = []
            heading = token.tag
        elif heading and token.type == "inline":
            found.append(_Block(heading, _words(token), ""))
            heading = ""
        elif token.type in ("inline", "fence", "code_block"):
            texts.append(_words(token) if token.type == "inline" else token.content.strip())
    _close(found, texts)
    return found


def _close(found: list[_Block], texts: list[str]) -> None:
    """Put the text that was gathered below the last heading."""
    below = "\n".join(text for text in texts if text)
    if found:
        found[-1] = found[-1]._replace(below=below)
    elif below:
        found.append(_Block("", "", below))


def _words(token: Token) -> str:
    """The words of a paragraph as they are read: no marks, and no HTML (nobody sees that)."""
    parts = [
        "\n" if child.type.endswith("break") else child.content
        for child in token.children or ()
        if child.type in ("text", "text_special", "code_inline", "softbreak", "hardbreak")
    ]
    return "".join(parts).strip()


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _recognised(text: str, asked: Range, confidence: str) -> bool:
    """Whether who reads the chat's lines alone finds the same."""
    said = parse_assessment(text)
    return said is not None and (said.first, said.last, said.count, said.confidence) == (
        *asked,
        confidence,
    )
