"""What was decided since a moment, in Markdown for a pull request: a comment or a step summary.

Everything in it that people and agents wrote is escaped: no title makes a link, an image, a heading
or HTML, mentions nobody and refers to no issue. Its size has a bound, and what is left out is
counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tripod.decisions.entries import EntryAssessment, EntryDecision, LedgerDecisions
from tripod.output import one_line

MAX_SIZE = 512 * 1024
"""Bytes of Markdown; GitHub takes 1 MiB from a step, and other programs write there as well."""

_TITLE, _REASONS, _LIST = 200, 400, 200  # characters of a text that are shown
_MOST_TAGS = 20
_MOST_PROBLEMS = 10
# GitHub and GitLab look for these after the signs were read: @name, #1, GH-1, !1, &1, $1, ~1, %1,
# http://a.
_AFTERWARDS = re.compile(
    r"&#64;|(?:&#(?:33|35|36|38|126);|%)(?=\w|&#95;)|\bGH-(?=[0-9])|&#58;(?=//)", re.IGNORECASE
)
_SIGNS = frozenset("\\`*_{}[]()<>#+|!&~@$:")


@dataclass(frozen=True)
class BriefPart:
    """What one ledger shows. Entries from ``start`` on are new, since ``why`` in words.

    ``why`` is '' where everything is asked for. ``found`` is None where nothing can be read;
    ``problem`` says why, or why it cannot be told what is new. ``apart`` are the leaf hashes of
    what each part made itself: what this one merged of that is not repeated. What the part of its
    maker does not have, or has otherwise, stands here: its ref was set back or written anew.
    """

    name: str
    found: LedgerDecisions | None
    start: int = 0
    why: str = ""
    problem: str = ""
    apart: frozenset[bytes] = frozenset()

    @property
    def is_told(self) -> bool:
        """Whether all that is new could be read, and told from what is old."""
        return self.found is not None and not self.problem and not self.found.problems

    @property
    def decisions(self) -> list[EntryDecision]:
        """The new decisions."""
        every = () if self.found is None else self.found.decisions
        return [one for one in every if self._is_new(one)]

    @property
    def assessments(self) -> list[EntryAssessment]:
        """The new assessments."""
        every = () if self.found is None else self.found.assessments
        return [one for one in every if self._is_new(one)]

    def _is_new(self, one: EntryDecision | EntryAssessment) -> bool:
        return one.listed.seq >= self.start and not (one.is_merged and one.leaf in self.apart)


def render_brief(parts: Sequence[BriefPart], limit: int) -> str:
    """The summary; of new decisions, and of new assessments, it lists the newest ``limit``."""
    new = [(one, part) for part in parts for one in part.decisions]
    assessed = [one for part in parts for one in part.assessments]
    lines = ["## Decisions", ""]
    since = [markdown_text(part.why) for part in parts if part.why]
    told = all(part.is_told for part in parts) and bool(parts)
    kind = "new " if since else ""
    what = f"{_count(len(new), f'{kind}decision')}, {_count(len(assessed), f'{kind}assessment')}"
    what += f" since {'; '.join(dict.fromkeys(since))}" if since else ""
    what = what[0].upper() + what[1:]
    lines += [f"{what if new or assessed or told else 'Could not tell what was decided'}.", ""]
    lines += _problems(parts)
    tags = Counter(tag for one, _ in new for tag in _tags(one))
    if tags:
        named = [f"{markdown_text(tag, _LIST)} ({n})" for tag, n in _frequent(tags)]
        more = len(tags) - len(named)
        named += [f"and {more} more"] if more > 0 else []
        lines += [f"**Risk tags:** {', '.join(named)}", ""]
    size = 0
    for title, items in (
        ("", [list(_decision_lines(one, part)) for one, part in new]),
        ("### Assessments", [list(_assessment_lines(one)) for one in assessed]),
    ):
        shown: list[list[str]] = []
        for item in items[: -limit - 1 : -1]:
            size += sum(len(line.encode()) + 1 for line in item)
            if size > MAX_SIZE:
                break
            shown.insert(0, item)
        lines += [title, ""] if title and items else []
        lines += [line for item in shown for line in item]
        if len(items) > len(shown):
            how = "tripod log --kind pythia.assessed" if title else "tripod scribe query"
            lines += ["", f"and {len(items) - len(shown)} earlier ones: `{how}` lists them"]
        lines += [""] if items else []
    return "".join(f"{line}\n" for line in lines).rstrip("\n") + "\n"


def _problems(parts: Sequence[BriefPart]) -> Iterator[str]:
    if not parts:
        yield from ("**Could not tell:** there is no ledger, and no record of one.", "")
    for part in parts:
        damaged = () if part.found is None else part.found.problems
        reasons = [*filter(None, (part.problem,)), *damaged]
        for reason in reasons[:_MOST_PROBLEMS]:
            yield f"- **Could not tell:** {markdown_text(f'{part.name}: {reason}')}"
        if len(reasons) > _MOST_PROBLEMS:
            yield f"- and {len(reasons) - _MOST_PROBLEMS} more: `tripod verify` names them"
        if reasons:
            yield ""


def _frequent(tags: Counter[str]) -> list[tuple[str, int]]:
    return sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:_MOST_TAGS]


def _tags(one: EntryDecision) -> list[str]:
    found = [tag.strip() for tag in one.text.risk_tags.split(",")]
    return [tag for tag in found if tag and tag != "none"]


def _decision_lines(one: EntryDecision, part: BriefPart) -> Iterator[str]:
    text, found = one.text, part.found
    tags = ", ".join(_tags(one))
    rest = [text.status, text.participants, *([f"risk: {tags}"] if tags else [])]
    rest += ["observed"] if "observed" in one.listed.mark else []
    name = markdown_text(one.made or text.id)
    yield f"- **{name}: {markdown_text(text.title, _TITLE)}** ({_listed(rest)})"
    if text.supersedes is not None and found is not None:
        verb = {"reversed": "Reverses", "mitigated": "Mitigates"}.get(text.status, "Supersedes")
        older = (each.text.title for each in found.decisions if each.text.id == text.supersedes)
        title = next((f": {markdown_text(title, _TITLE)}" for title in older), "")
        yield f"  - {verb} {markdown_text(text.supersedes, _LIST)}{title}"
    change = None if found is None else found.changes.get(text.id)
    if change is not None and change.seq != one.listed.seq:
        yield f"  - By now {markdown_text(change.status)} by {markdown_text(change.id)}"
    yield f"  - {markdown_text(text.rationale, _REASONS) or 'no rationale'}"


def _assessment_lines(one: EntryAssessment) -> Iterator[str]:
    what = f"{markdown_text(one.first)} to {markdown_text(one.last)}"
    count = _count(one.decisions, "decision")
    yield f"- **{what}** ({count}): confidence {markdown_text(one.confidence, _LIST)}"
    if one.cited:
        yield f"  - Names {markdown_text(', '.join(one.cited), _LIST)}"


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(markdown_text(text, _LIST) for text in texts if text)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


def markdown_text(text: str, limit: int | None = None) -> str:
    r"""A text within Markdown, on one line, in which nothing is a sign of Markdown or HTML.

    A renderer looks for mentions and numbers of issues after the signs were read: a character that
    is not seen stands behind these, as bots that quote others do it. ``limit`` counts characters.

    >>> markdown_text("@team <b> #12\nwww.example.org", 20)
    '&#64;&#8203;team &#60;b&#62; &#35;&#8203;12&#92;x0awww&#46;ex…'
    """
    shown = one_line(text if limit is None or len(text) <= limit else f"{text[:limit]}…").strip()
    shown = "".join(f"&#{ord(sign)};" if sign in _SIGNS else sign for sign in shown)
    shown = re.sub("^-", "&#45;", shown)
    shown = re.sub(r"^([0-9]+)\.", r"\1&#46;", shown)
    shown = re.sub(r"(?i)(www)\.", r"\1&#46;", shown)
    return _AFTERWARDS.sub(r"\g<0>&#8203;", shown)
