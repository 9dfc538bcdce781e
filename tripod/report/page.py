"""Renders what was judged as HTML: one file, or, of a long log, an index and a page a day.

The bytes depend on what was judged alone: no clock, no locale, no order of a set. A page has no
origin but itself: its policy (``Content-Security-Policy``) names one style and one script by their
digests, and forbids all else.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from tripod.ledger.tlog.note import VerifierKey
from tripod.report.facts import LogEntry, TeamFacts, gather_facts
from tripod.report.lanes import LaneChart, lane_chart
from tripod.report.markup import manual_markup, template_environment
from tripod.verify.anchors.anchors import USUAL, AnchorOptions
from tripod.verify.check import EXCEPT, Report
from tripod.verify.evidence import NEARBY, OpenEvidence, evidence_changed, judge_until_still
from tripod.verify.export import is_proof, judge_proof
from tripod.verify.finding import SHORT
from tripod.verify.run import HowToOpen, check_manual, judge_refs, open_run, run

if TYPE_CHECKING:
    from jinja2 import Environment

    from tripod.report.sessions import SessionFacts

NAME = "tripod-report.html"
"""The name of the page where none is given."""
MARK = b"<!DOCTYPE html>\n<!-- tripod report"
"""How each page begins, so that one is known before another is put in its place."""
WHOLE = 6_000_000
"""Bytes up to which all is one page; above it, each day has its own."""
FINDINGS = 300
"""Findings of one check that a page lists; the others are counted."""
_FOLDER = os.path.join(os.path.dirname(__file__), "templates")


@dataclass(frozen=True)
class RenderedReport:
    """Pages by their names, the main one first; ``exit_code`` is that of ``tripod verify``."""

    pages: dict[str, bytes]
    exit_code: int
    verdict: str


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
        return _render_team(report, [TeamFacts(report)], name, whole, live=live)
    how: HowToOpen = {"nearby": nearby, "keys": keys, "asked": asked}

    def judge(left: int) -> tuple[Report, list[TeamFacts]] | None:
        found: list[TeamFacts] = []

        def look(evidence: OpenEvidence, report: Report) -> None:
            found.append(gather_facts(evidence, report))

        if not no_ledger:
            by_refs = judge_refs(path, select, **how, look=look)
            if by_refs is not None:
                return by_refs, found or [TeamFacts(by_refs)]
        with open_run(path, no_ledger=no_ledger, **how) as evidence:
            report = run(evidence, select)
            if left and report.exit_code and evidence_changed(evidence):
                return None
            look(evidence, report)
        return report, found

    return _render_team(*judge_until_still(path, judge), name, whole, live=live)


def render_sessions(facts: SessionFacts, *, name: str = NAME) -> RenderedReport:
    """Render what recorded sessions exposed, of which no ledger knows."""
    page = _rendered("sessions.html", facts=facts)
    return RenderedReport({name: page}, facts.exit_code, facts.verdict)


# A team -----------------------------------------------------------------------------------------


class DayLog(NamedTuple):
    """Entries that follow each other on one day; ``page`` is the file they stand in, '' here."""

    day: str
    entries: Sequence[LogEntry]
    page: str = ""


@dataclass
class TeamView:
    """A ledger on a page: its facts, its log by days, its lanes; ``front`` begins its anchors."""

    facts: TeamFacts
    front: str
    days: list[DayLog]
    chart: LaneChart
    marked: set[int] = field(default_factory=set)
    pages: dict[int, str] = field(default_factory=dict)

    def link(self, seq: int) -> str:
        """The address of an entry, from the main page."""
        return f"{self.pages.get(seq, '')}#{self.front}e{seq}"


def _render_team(
    report: Report, facts: Sequence[TeamFacts], name: str, whole: int, *, live: bool
) -> RenderedReport:
    views = [_view(one, f"r{n}-" if len(facts) > 1 else "") for n, one in enumerate(facts, 1)]
    words = verdict_words(report)
    size = report.head[0] if report.head else 0
    told = {
        "live": size if live else None,
        "report": report,
        "verdict": words,
        "views": views,
        "main": os.path.basename(name),
    }
    page = _rendered("team.html", **told)
    pages = {name: page}
    if len(page) > whole:
        pages = {}
        for view in views:
            _split(view, name, whole, told, pages)
        pages = {name: _rendered("team.html", **told), **pages}
    return RenderedReport(pages, report.exit_code, words)


def _view(facts: TeamFacts, front: str) -> TeamView:
    days = [DayLog(day, list(of)) for day, of in groupby(facts.entries, key=lambda one: one.day)]
    marked = {
        finding.seq
        for outcome in facts.report.outcomes
        for finding in outcome.findings
        if finding.seq is not None and finding.severity != "advice"
    }
    return TeamView(facts, front, days, lane_chart(facts.entries, marked), marked)


def _split(
    view: TeamView, name: str, whole: int, told: dict[str, Any], pages: dict[str, bytes]
) -> None:
    """Give each day of a log a page of its own, and a long one several."""
    stem = name.removesuffix(".html")
    days: list[DayLog] = []
    for day in view.days:
        waiting = [day.entries]
        while waiting:
            entries = waiting.pop(0)
            day_name = day.day.replace(" ", "-")
            file = f"{stem}-{view.front}{day_name}.html"
            number = 1
            while file in pages:
                number += 1
                file = f"{stem}-{view.front}{day_name}-{number}.html"
            one = DayLog(day.day, entries, os.path.basename(file))
            page = _rendered("day.html", view=view, day=one, **told)
            if len(page) > whole and len(entries) > 1:
                half = len(entries) // 2
                waiting[:0] = [entries[:half], entries[half:]]
                continue
            pages[file] = page
            days.append(one)
            view.pages |= dict.fromkeys((entry.seq for entry in entries), one.page)
    view.days = days


def verdict_words(report: Report) -> str:
    """The verdict of a report: clean, clean with exceptions, findings or cannot tell."""
    if report.exit_code:
        return {1: "findings"}.get(report.exit_code, "cannot tell")
    excepting = any(outcome.said == EXCEPT for outcome in report.all_outcomes)
    return EXCEPT if excepting else "clean"


# Templates --------------------------------------------------------------------------------------


def _rendered(template: str, **values: object) -> bytes:
    live = values.setdefault("live", None) is not None
    text = _environment().get_template(template).render(**values, assets=_assets(live=live))
    return text.encode()


def _tone(verdict: str) -> str:
    """The class that gives a verdict its colour."""
    return {"clean": "good", EXCEPT: "warn", "cannot tell": "warn", "findings": "bad"}.get(
        verdict, ""
    )


@cache
def _environment() -> Environment:
    environment = template_environment(_FOLDER)
    environment.globals["tone"] = _tone
    environment.filters["manual"] = lambda name: manual_markup(check_manual(name))
    environment.globals.update(SHORT=SHORT, FINDINGS=FINDINGS)
    return environment


class Assets(NamedTuple):
    """The style and the script of each page, and the policy that allows these two alone."""

    style: str
    script: str
    policy: str


@cache
def _assets(*, live: bool) -> Assets:
    texts = []
    for names in (("page.css",), ("page.js", *["live.js"] * live)):
        text = ""
        for name in names:
            with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
                text += f"\n{file.read()}"
        texts.append(text)
    style, script = (
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts
    )
    policy = (
        f"default-src 'none'; style-src {style}; script-src {script}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Assets(texts[0], texts[1], policy + "; connect-src 'self'" * live)
