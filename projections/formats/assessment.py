"""A Pythia assessment in the text of a chat message, and the event that asks for one. Pure.

Two layouts are in use. The architecture's::

    ## Pythia Checkpoint — 2026-02-12T14:00:00Z

    Decisions reviewed: D-1707753600 through D-1707760800 (20 decisions)

    ### Hidden Assumptions
    ...
    ### Confidence

    overall: medium

with ``Second-Order Risks``, ``Missing Validation`` and ``Six-Month Regret Scenario`` between; and
the skill's, where each section is one paragraph after a bold label::

    PYTHIA CHECKPOINT — Assessment #3

    **Hidden assumption:** ...
    **Confidence:** moderate — ...
    ---
    End of checkpoint. Pythia out.

An agent writes these, never we, so they are only read; tolerantly, since what is missing is for a
check to say. The payload of the event has both directions::

    Checkpoint at decision 20. Decisions D-1707753600 through D-1707760800.

Source: seed tripod-architecture, "Checkpoint Template"; spec nbs-compat C6. It imports nothing of
ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SECTIONS = (
    "hidden-assumptions",
    "second-order-risks",
    "missing-validation",
    "six-month-regret",
    "confidence",
)
"""Our names of the five sections that both layouts have, in their order."""

_DASH = "[-\u2013\u2014]"
_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_ARCHITECTURE = re.compile(
    rf"^ {{0,3}}#{{1,4}}[ \t]+Pythia Checkpoint[ \t]*(?:$|{_DASH}+([^\n]*)$)",
    re.MULTILINE | re.IGNORECASE,
)
_SKILL = re.compile(
    rf"^[#* \t]*PYTHIA CHECKPOINT[* \t]*{_DASH}+[* \t]*Assessment[ \t]*#?([0-9]{{1,9}})?[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_REVIEWED = re.compile(
    r"^[* \t]*Decisions reviewed[*: \t]*(D-[0-9]{1,16})(?:[ \t]*(?:through|to|-|\u2013|\u2014)"
    r"[ \t]*(D-[0-9]{1,16}))?(?:[ \t]*\(([0-9]{1,9}) decisions?\))?[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_LABEL = re.compile(
    r"^ {0,3}(?:#{2,4}[ \t]+|\*\*[ \t]*)(?:[0-9][.)][ \t]*)?"
    r"(hidden[ -]assumptions?|second[ -]order[ -]risks?|missing[ -]validations?|"
    r"six[ -]month[ -]regret(?:[ -]scenario)?|confidence)"
    r"[ \t]*:?[ \t]*(?:\*\*)?[ \t]*:?",
    re.MULTILINE | re.IGNORECASE,
)
_FRAME = re.compile(r"^[ \t]*(?:-{3,}|End of checkpoint\b[^\n]*)[ \t]*$", re.MULTILINE)
_CONFIDENCE = re.compile(r"\b(high|medium|moderate|low)\b", re.IGNORECASE)
_CITED = re.compile(r"(?<![A-Za-z0-9-])D-[0-9]{1,16}(?![A-Za-z0-9])")
_PAYLOAD = re.compile(
    r"Checkpoint at decision ([0-9]{1,9})\. Decisions (D-[0-9]{1,16}) through (D-[0-9]{1,16})\.\n?"
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """What an assessment says of itself.

    ``first``, ``last`` and ``count`` are the decisions it claims to have reviewed; ``sections``
    those of :data:`SECTIONS` that have a text; ``cited`` the decision ids in those texts, each
    once, in order; ``confidence`` one of high, medium, moderate, low or ``''``; ``time`` and
    ``number`` come from the heading of the one layout and the other.
    """

    first: str | None
    last: str | None
    count: int | None
    sections: tuple[str, ...]
    confidence: str
    cited: tuple[str, ...]
    number: int | None
    time: str


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _sections(body: str) -> dict[str, str]:
    """Cut the text into sections by our names; of one that stands twice, both texts."""
    labels = list(_LABEL.finditer(body))
    ends = [*(label.start() for label in labels), len(body)][1:]
    texts: dict[str, list[str]] = {}
    for label, end in zip(labels, ends, strict=True):
        name = next(name for name in SECTIONS if name[:3] == label[1][:3].lower())
        text = _FRAME.sub("", body[label.end() : end]).strip()
        if text:
            texts.setdefault(name, []).append(text)
    return {name: "\n".join(parts) for name, parts in texts.items()}


def parse_assessment(text: str) -> Assessment | None:
    """Recognise an assessment in a chat text; None where there is none.

    The heading may follow other lines, but must begin its line (up to three spaces may stand before
    it), and lines may end as on Windows: a quotation, or a template inside
    a fenced code block, is no assessment.
    """
    text = text.replace("\r\n", "\n")
    shown = _FENCE.sub(_blank, text)
    heading = _ARCHITECTURE.search(shown)
    skill = None if heading else _SKILL.search(shown)
    found = heading or skill
    if found is None:
        return None
    body = text[found.end() :]
    reviewed = _REVIEWED.search(body)
    texts = _sections(body)
    confidence = _CONFIDENCE.search(texts.get("confidence", ""))
    return Assessment(
        first=reviewed[1] if reviewed else None,
        last=(reviewed[2] or reviewed[1]) if reviewed else None,
        count=int(reviewed[3]) if reviewed and reviewed[3] else None,
        sections=tuple(name for name in SECTIONS if name in texts),
        confidence=confidence[1].lower() if confidence else "",
        cited=tuple(dict.fromkeys(_CITED.findall("\n".join(texts.values())))),
        number=int(skill[1]) if skill and skill[1] else None,
        time=(heading[1] or "").strip() if heading else "",
    )


def format_checkpoint_payload(count: int, first: str, last: str) -> str:
    """Give the payload of a ``pythia-checkpoint`` event: decisions so far, and the range asked for.

    Raises ValueError where the ids or the count would not read back.
    """
    text = f"Checkpoint at decision {count}. Decisions {first} through {last}."
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
