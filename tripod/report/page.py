"""Renders what was judged as HTML: one file, or, of a long log, an index and a page a day.

The bytes depend on what was judged alone: no clock, no locale, no order of a set. A page has no
origin but itself: its policy (``Content-Security-Policy``) names one style and one script by their
digests, and forbids all else.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from itertools import chain, count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote

from tripod.ledger.tlog.note import VerifierKey
from tripod.output import one_line
from tripod.projections.nova.files import nova_status
from tripod.projections.nova.run import NovaRun, NovaTurn
from tripod.report.facts import LogEntry, TeamFacts, gather_facts
from tripod.report.lanes import LaneChart, lane_chart
from tripod.report.markup import (
    clip,
    help_markup,
    manual_markup,
    template_environment,
    trusted_markup,
    visible_html,
)
from tripod.report.matrix import SightMatrix, sight_matrix
from tripod.report.verdict import (
    ceiling_of,
    coverage_lines,
    custody_lines,
    judged_facts,
    outcome_tally,
    outcome_tone,
    sight_gaps,
    tail_words,
    verdict_sentence,
    verdict_words,
)
from tripod.verify.anchors.anchors import USUAL, AnchorOptions
from tripod.verify.check import CANNOT_TELL, CLEAN, EXCEPT, FINDINGS, Outcome, Report
from tripod.verify.damage import Damage, damage_of
from tripod.verify.evidence import NEARBY, OpenEvidence, evidence_changed, judge_until_still
from tripod.verify.export import is_proof, judge_proof
from tripod.verify.finding import SHORT
from tripod.verify.isolation.rules import sights_of
from tripod.verify.run import HowToOpen, all_checks, check_manual, judge_refs, open_run, run

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from tripod.report.sessions import SessionFacts

NAME = "tripod-report.html"
"""The name of the page where none is given."""
MARK = b"<!DOCTYPE html>\n<!-- tripod report"
"""How each page begins, so that one is known before another is put in its place (``day_mark``)."""
WHOLE = 6_000_000
"""Bytes up to which all is one page; above it, each day has its own."""
_AROUND = 40_000  # bytes of a page of a day besides its rows
LISTED = 300
"""Findings of one check that a page lists; the others are counted."""
_FOLDER = os.path.join(os.path.dirname(__file__), "templates")


Gathered: TypeAlias = tuple[TeamFacts, Damage | None]
"""What a page shows of one ledger; no damage where nothing was read that could have some."""


@dataclass(frozen=True)
class RenderedReport:
    """Pages by their names, the main one first; ``exit_code`` is that of ``tripod verify``.

    ``problem`` says why nothing could be judged.
    """

    pages: dict[str, bytes]
    exit_code: int
    verdict: str
    problem: str = ""


def render_report(
    path: str = ".",
    *,
    name: str = NAME,
    select: Collection[str] | None = None,
    keys: Sequence[VerifierKey] = (),
    no_ledger: bool = False,
    nearby: int = NEARBY,
    asked: AnchorOptions = USUAL,
    whole: int = WHOLE,
    live: bool = False,
) -> RenderedReport:
    """Judge what stands at ``path`` as ``tripod verify`` does, and render it. Nothing is written.

    ``name`` is the file name of the main page; those of days begin with it. ``whole`` is the size
    in bytes above which each day has its own page. ``live``: it is for a server that tells of new
    entries (``tripod.report.server``).
    """
    if is_proof(path):
        report = judge_proof(path, tuple(keys), None)
        return _render_team(report, [(TeamFacts(report), None)], name, whole, live=live)
    how: HowToOpen = {"nearby": nearby, "keys": keys, "asked": asked}

    def judge(left: int) -> tuple[Report, list[Gathered]] | None:
        found: list[Gathered] = []

        def look(evidence: OpenEvidence, report: Report, _: str = "") -> None:
            found.append((gather_facts(evidence, report), damage_of(evidence, report)))

        if not no_ledger:
            by_refs = judge_refs(path, select, **how, each=look)
            if by_refs is not None:  # a replica whose record is gone has no evidence
                seen = {id(one.report): (one, damage) for one, damage in found}
                parts = by_refs.parts or (by_refs,)
                return by_refs, [seen.get(id(one)) or (TeamFacts(one), None) for one in parts]
        with open_run(path, no_ledger=no_ledger, **how) as evidence:
            report = run(evidence, select)
            if left and report.exit_code and evidence_changed(evidence):
                return None
            look(evidence, report)
        return report, found

    return _render_team(*judge_until_still(path, judge), name, whole, live=live)


def day_mark(name: str) -> bytes:
    """How each page of a day begins that belongs to the main page of that name."""
    return MARK + f": a day of {_address(os.path.basename(name))} -->".encode()


def render_sessions(facts: SessionFacts, *, name: str = NAME) -> RenderedReport:
    """Render what recorded sessions exposed, of which no ledger knows."""
    page = _rendered("sessions.html", {"facts": facts, "live": None, "verdict": facts.verdict})
    return RenderedReport({name: page}, facts.exit_code, facts.verdict)


class GateBar(NamedTuple):
    """The bar of a cycle in the chart of gates: its place and its width, and its figures."""

    number: int
    left: float
    width: float
    uncertainty: float
    said: str


class PersonaLane(NamedTuple):
    """The turns of a persona."""

    persona: str
    turns: tuple[NovaTurn, ...]


def render_nova(run: NovaRun) -> bytes:
    """Render a Nova run: its decision, gates, turns and critiques."""
    status = nova_status(run)
    end = run.finalized or {}
    words = str(end.get("outcome") or run.state).replace("_", " ")
    good = words in ("decided", "human accepted")
    width = 960 / max(len(run.cycles), 1)
    told = [(one.number, one.synthesis.epistemic) for one in run.cycles if one.synthesis]
    gates = [
        GateBar(
            number,
            width * (number - 1),
            min(width * 0.6, 120),
            float(state.uncertainty),
            f"uncertainty {state.uncertainty}",
        )
        for number, state in told
        if state is not None
    ]
    names = dict.fromkeys(turn.persona for turn in run.turns)
    final = run.turns[-1] if run.turns else None
    is_decided = final is not None and final.role == "final"
    return _rendered(
        "nova.html",
        {
            "live": None,
            "verdict": CLEAN if good else FINDINGS if words == "failed" else CANNOT_TELL,
            "words": words,
            "run": run,
            "status": status,
            "gates": gates,
            "threshold": float(run.opening.config["threshold"]),
            "lanes": [
                PersonaLane(name, tuple(turn for turn in run.turns if turn.persona == name))
                for name in names
            ],
            "decision": str(final.fields.get("decision", "")) if final and is_decided else "",
            "reason": str(end.get("reason") or ""),
        },
    )


# A team -----------------------------------------------------------------------------------------


class DayLog(NamedTuple):
    """Entries that follow each other on one day, each with its row as markup.

    ``page`` is the file they stand in, '' for the main page.
    """

    day: str
    entries: Sequence[LogEntry]
    lines: Sequence[str]
    page: str = ""

    @property
    def markup(self) -> Markup:
        """All rows."""
        return trusted_markup(self.lines)


class PagePart(NamedTuple):
    """A section of a page: its anchor, its title, and how much it holds, if that is counted."""

    id: str
    title: str
    size: int | None = None


@dataclass
class TeamView:
    """A ledger on a page; ``front`` begins its anchors.

    ``days`` are its log, ``marked`` the entries that a finding names, ``named`` the entry of each
    decision that has the anchor of its id, ``pages`` the file of each entry that does not stand on
    the main page.
    """

    facts: TeamFacts
    damage: Damage | None
    front: str
    days: list[DayLog]
    chart: LaneChart
    marked: set[int]
    matrix: SightMatrix
    named: dict[str, int]
    pages: dict[int, str] = field(default_factory=dict)

    def link(self, seq: int) -> str:
        """The address of an entry, from the main page."""
        return f"{_address(self.pages.get(seq, ''))}#{self.front}e{seq}"

    @property
    def found(self) -> list[Outcome]:
        """The checks that have findings."""
        return [one for one in self.facts.report.outcomes if one.findings or one.left_out]

    @property
    def untold(self) -> list[Outcome]:
        """The checks that cannot tell, and those whose verdict has exceptions."""
        outcomes = self.facts.report.outcomes
        return [one for one in outcomes if one.verdict == CANNOT_TELL or one.exceptions]

    @property
    def parts(self) -> list[PagePart]:
        """The sections."""
        facts, told = self.facts, self.facts.report
        is_known = not told.problem  # a 0 would stand for an empty ledger
        found = told.failures + told.warnings + told.advised
        is_folded = facts.decision_count is not None
        return [
            PagePart("findings", "Findings", found if is_known else None),
            PagePart("untold", "What cannot be told", len(self.untold) if is_known else None),
            PagePart("saw", "Who saw what"),
            PagePart("provable", "What is provable"),
            PagePart("decisions", "Decisions", facts.decision_count),
            PagePart("assessments", "Assessments", len(facts.assessments) if is_folded else None),
            PagePart("tail", "Unanchored tail"),
            PagePart("judged", "What was judged"),
            PagePart("timeline", "Timeline", len(facts.entries) if is_known else None),
        ]


def _render_team(
    report: Report, gathered: Sequence[Gathered], name: str, whole: int, *, live: bool = False
) -> RenderedReport:
    several = len(gathered) > 1
    views = [_view(*one, f"r{n}-" if several else "") for n, one in enumerate(gathered, 1)]
    facts = [one for one, _ in gathered]
    words = verdict_words(report)
    reports = report.parts or (report,)
    told = {
        "live": (report.head[0] if report.head else 0) if live else None,
        "report": report,
        "verdict": words,
        "summary": verdict_sentence(report, len(all_checks())),
        "coverage": list(coverage_lines(reports, facts)),
        "ceiling": ceiling_of(reports),
        "custody": list(custody_lines(reports, facts)),
        "views": views,
        "main": os.path.basename(name),
    }
    pages: dict[str, bytes] = {}
    size = sum(len(line) for view in views for day in view.days for line in day.lines)
    page = b"" if size > whole else _rendered("team.html", told)
    if max(size, len(page)) > whole:
        for view in views:
            _split(view, name, whole, told, pages)
        page = _rendered("team.html", told)
    return RenderedReport({name: page, **pages}, report.exit_code, words, report.problem)


def _view(facts: TeamFacts, damage: Damage | None, front: str) -> TeamView:
    outcomes = facts.report.outcomes
    marked = {
        finding.seq
        for outcome in outcomes
        for finding in outcome.findings
        if type(finding.seq) is int and finding.severity != "advice"  # of a package it may be odd
    }
    matrix = sight_matrix(sight for outcome in outcomes for sight in sights_of(outcome))
    named = {one.id: one.seq for one in facts.decisions}  # of two with one id, the older
    chart = lane_chart(facts.entries, marked)
    view = TeamView(facts, damage, front, [], chart, marked, matrix, named)
    for day, of in groupby(facts.entries, key=lambda one: one.day):
        entries = list(of)
        view.days.append(DayLog(day, entries, [_row(view, one) for one in entries]))
    return view


def _row(view: TeamView, one: LogEntry) -> str:
    """The row of an entry. Written by hand: of 50,000 entries, templates would take seconds."""
    front, seq = view.front, one.seq
    problem = f"<strong>{visible_html(one.problem)}</strong> " if one.problem else ""
    if one.last is not None:
        to = f" to {one.last}" if one.last != seq else ""
        cells = f"{seq}{to}<td><td><td><td>{problem}"
        return f'<tr id="{front}e{seq}" data-l="99" class="bad"><td>{cells}</tr>\n'
    is_tail = view.facts.tail is not None and seq >= view.facts.tail
    tone = "bad" if one.problem or seq in view.marked else "tail" if is_tail else ""
    tone = f' class="{tone}"' if tone else ""
    mark = f" <i>{visible_html(one.mark)}</i>" if one.mark else ""
    left = ""
    if one.text.left:
        more = f"… {one.text.left:,} more characters are left out"
        left = f' <span class="left">{more}: <code>tripod show {seq}</code></span>'
    return (
        f'<tr id="{front}e{seq}" data-l="{view.chart.places.get(one.actor, 99)}"{tone}>'
        f'<td><a href="#{front}e{seq}">{seq}</a><td>{visible_html(one.time)}'
        f"<td>{visible_html(one.actor)}{mark}<td>{visible_html(one.kind)}"
        f"<td>{problem}{visible_html(one.text.text)}{left}</tr>\n"
    )


def _split(
    view: TeamView, name: str, whole: int, told: dict[str, Any], pages: dict[str, bytes]
) -> None:
    """Give each day of a log a page of its own, and a long one several."""
    days: list[DayLog] = []
    for day in chain.from_iterable(_parts(day, whole - _AROUND) for day in view.days):
        front = f"{name.removesuffix('.html')}-{view.front}{day.day.replace(' ', '-')}"
        names = (f"{front}{f'-{n}' if n > 1 else ''}.html" for n in count(1))
        file = next(one for one in names if one not in pages)
        one = day._replace(page=os.path.basename(file))
        pages[file] = _rendered("day.html", {**told, "view": view, "day": one})
        days.append(one)
        view.pages |= dict.fromkeys((entry.seq for entry in day.entries), one.page)
    view.days = days


def _parts(day: DayLog, most: int) -> Iterator[DayLog]:
    """A day in parts whose rows have at most so many bytes; a row is never divided."""
    begin = size = 0
    for number, line in enumerate(day.lines):
        length = len(line.encode())
        if number > begin and size + length > most:
            yield DayLog(day.day, day.entries[begin:number], day.lines[begin:number])
            begin, size = number, 0
        size += length
    yield DayLog(day.day, day.entries[begin:], day.lines[begin:])


# Templates --------------------------------------------------------------------------------------


def _rendered(template: str, values: Mapping[str, object]) -> bytes:
    assets = _assets(live=values["live"] is not None)
    text = _environment().get_template(template).render(values, assets=assets)
    return text.encode()


@cache
def _environment() -> Environment:
    environment = template_environment(_FOLDER)
    environment.filters |= {
        "address": _address,
        "clip": clip,
        "decision_anchor": _decision_anchor,
        "help": help_markup,
        "manual": _manual,
        "plain": one_line,
        "sentence": _sentence,
        "slug": _slug,
    }
    environment.globals |= {
        "LISTED": LISTED,
        "SHORT": SHORT,
        "grade": outcome_tone,
        "sides": _SIDES,
        "tally": outcome_tally,
        "judged_facts": judged_facts,
        "sight_gaps": sight_gaps,
        "tail_words": tail_words,
        "tone": _TONES.get,
        "version": version("tripod-ledger"),
    }
    return environment


_TONES = {CLEAN: "good", EXCEPT: "warn", CANNOT_TELL: "warn", FINDINGS: "bad", "": "none"}


_SIDES = {
    "sealed": "covered by a head that fits",
    "unsealed": "held by their links alone, and covered by no head that fits",
    "bad": "not what they were",
    "after": "after the bad place",
    "missing": "not there",
}


def _sentence(text: str) -> str:
    """Words as a sentence."""
    return f"{text[:1].upper()}{text[1:]}" + "." * (not text.endswith((".", "!", "?")))


def _address(name: str) -> str:
    """The address of a page beside this one: nothing of its name is a sign of an address."""
    return quote(os.fsencode(name))


def _decision_anchor(text: str) -> str:
    """The anchor of a decision; one whose id is that of an entry or a section has another."""
    return _slug(text if text.startswith("D-") else f"decision {text}")


def _slug(text: str) -> str:
    """A text as an anchor: of other signs than letters, digits and hyphens, their digest."""
    is_plain = re.fullmatch("[A-Za-z0-9-]{1,80}", text)
    return text if is_plain else f"x{sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _manual(name: str) -> Markup:
    try:
        return manual_markup(check_manual(name))
    except LookupError:
        return manual_markup("No check of this name is installed here.")


class Assets(NamedTuple):
    """The style and the script of each page, and the policy that allows these two alone."""

    style: str
    script: str
    policy: str


@cache
def _assets(*, live: bool) -> Assets:
    texts = []
    for names in (("page.css",), ("page.js", *["live.js"] * live)):
        texts.append("")
        for name in names:
            with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
                texts[-1] += f"\n{file.read()}"
    style, script = (
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts
    )
    policy = (
        f"default-src 'none'; style-src {style}; script-src {script}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Assets(texts[0], texts[1], policy + "; connect-src 'self'" * live)
