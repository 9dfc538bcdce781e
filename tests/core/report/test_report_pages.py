"""The pages of a report: their structure, what is cut, and what strangers wrote."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

import pytest
from core.report.test_report_markup import HOSTILE
from html_pages import SeenPage
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FEWER

from tripod.output import safe
from tripod.report import page as pages
from tripod.report.facts import LONG, TEXT, DecisionFacts, LogEntry, TeamFacts
from tripod.report.lanes import LANES, lane_chart
from tripod.report.markup import clip
from tripod.report.page import MARK, day_mark
from tripod.verify.check import Finding, Outcome, Report, Subject
from tripod.verify.finding import Acceptance
from tripod.verify.isolation.rules import with_sights
from tripod.verify.isolation.sessions import Sight


def entry(seq: int, text: str = "hello", actor: str = "ann", **more: Any) -> LogEntry:
    at = f"2026-11-{1 + seq // 50 % 28:02}T10:{seq % 60:02}:00.000000Z"
    fields: dict[str, Any] = {
        "at": at,
        "day": at[:10],
        "time": at[11:19],
        "kind": "chat.sent",
        "mark": "",
    }
    fields |= {"problem": "", "last": None, **more}
    return LogEntry(seq=seq, actor=actor, text=clip(text, TEXT), **fields)


def report(*outcomes: Outcome, **more: Any) -> Report:
    return Report("team", outcomes or (Outcome("sequence", "clean"),), (3, "ab" * 32), **more)


def rendered(facts: TeamFacts, whole: int = 2**40, name: str = "r.html") -> dict[str, bytes]:
    made = pages._render_team(facts.report, [(facts, None)], name, whole)
    assert made.exit_code == facts.report.exit_code
    return made.pages


def seen(facts: TeamFacts) -> SeenPage:
    return SeenPage(rendered(facts)["r.html"])


@FEWER
@given(st.lists(HOSTILE, min_size=14, max_size=14))
def test_no_text_of_strangers_leaves_its_place(words: Sequence[str]) -> None:
    it = iter(words)
    bad = Finding(next(it), next(it), next(it), (next(it),), next(it), seq=1, file=next(it), line=3)
    sight = Sight(next(it), "who", next(it), "shown", (next(it),), 1)
    accepted = (bad, Acceptance(2, "drift", "ab", "ann", "now", next(it)))
    told = Outcome("drift", "findings", next(it), (bad,), {next(it): 1}, exceptions=(words[0],))
    found = report(
        told,
        with_sights(Outcome("never-read", "cannot tell", next(it)), [sight]),
        Outcome("kinds-known", "clean", accepted=(accepted,), accepted_count=1),
        notes=(words[1],),
        subject=Subject(words[2], words[3], words[4], words[5]),
    )
    decision = DecisionFacts(
        1, words[0], "", words[1], words[2], (words[3],), "", "", clip(words[4], LONG), words[5], ()
    )
    facts = TeamFacts(found, [entry(1, next(it), words[0], kind=words[1], problem=words[2])])
    facts.decisions, facts.has_ledger = [decision], True
    page = seen(facts)
    shown = page.text.replace("\n", "")
    assert all(safe(word).replace("\n", "") in shown for word in words[:5])


def test_a_page_has_landmarks_headings_and_captions() -> None:
    facts = TeamFacts(report(), [entry(n) for n in range(3)], has_ledger=True)
    page = seen(facts)
    assert {"header", "nav", "main", "footer"} <= set(page.tags)
    assert page.tags.count("table") == page.tags.count("caption")
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert page.headings[0] == ("h1", "clean")
    assert [said for tag, said in page.headings if tag == "h2"] == [
        "Coverage: what was looked at",
        "Ceiling: what can be proved at most",
        "Custody: who could have changed the evidence",
        "Findings",
        "What cannot be told",
        "Who saw what",
        "What is provable",
        "Decisions",
        "Assessments",
        "The unanchored tail",
        "What was judged",
        "Timeline",
    ]


def test_a_long_message_says_how_much_is_left_out_and_where_it_is() -> None:
    facts = TeamFacts(report(), [entry(7, "x" * 1024 * 1024)], has_ledger=True)
    page = rendered(facts)["r.html"]
    assert len(page) < 60_000
    left = 1024 * 1024 - TEXT
    assert f"{left:,} more characters are left out: tripod show 7" in SeenPage(page).text


def test_ten_thousand_findings_are_counted_and_some_are_listed() -> None:
    kept = tuple(
        Finding("drift", f"number {n}", "", fingerprint=f"{n:08x}" * 8) for n in range(1000)
    )
    told = Outcome("drift", "findings", findings=kept, left_out={("failure", False): 9000})
    page = seen(TeamFacts(report(told)))
    assert "10,000 findings" in page.text
    assert "9,700 more are not listed here" in page.text
    assert page.tags.count("article") == pages.LISTED
    assert "without a place" in page.text


def test_a_finding_has_the_anchor_of_its_id_and_leads_to_its_entry() -> None:
    bad = Finding("drift", "edited", "entry 1", seq=1, fingerprint="ab" * 32)
    facts = TeamFacts(report(Outcome("drift", "findings", findings=(bad,))), [entry(1)])
    page = seen(facts)
    assert "f-" + "ab" * 6 in page.ids
    assert "#e1" in page.links
    assert "e1" in page.ids


@settings(max_examples=12)
@given(st.integers(1, 400), st.integers(60_000, 200_000), st.sampled_from(["r", "a:b?#%41\udcff<"]))
def test_a_long_log_becomes_a_page_a_day_with_every_entry_once(
    count: int, whole: int, stem: str
) -> None:
    bad = Finding("drift", "edited", "entry 0", seq=0, fingerprint="ab" * 32)
    told = report(Outcome("drift", "findings", findings=(bad,)))
    facts = TeamFacts(told, [entry(n, "x" * 900) for n in range(count)], has_ledger=True)
    main = f"out/{stem}.html"
    found = rendered(facts, whole, main)
    ids: list[str] = []
    listed = SeenPage(found[main]).links
    for name, page in found.items():
        parsed = SeenPage(page)
        ids += (one for one in parsed.ids if one[0] == "e" and one[1:].isdigit())
        assert page.startswith(MARK if name == main else day_mark(main))
        if name != main:
            assert len(page) <= whole
            assert quote(os.fsencode(name[4:])) in listed
        for link in parsed.links:
            file, _, anchor = link.partition("#")
            if file.endswith(".html"):
                target = SeenPage(found[f"out/{unquote(file, errors='surrogateescape')}"])
                assert not anchor or anchor in target.ids
    assert sorted(ids) == sorted(f"e{n}" for n in range(count))
    assert (len(found) > 1) == (len(found[main]) > whole or f"out/{stem}-2026-11-01.html" in found)


def test_each_of_several_replicas_has_anchors_of_its_own() -> None:
    bad = Finding("drift", "edited", "entry 1", seq=1, fingerprint="ab" * 32)
    part = report(Outcome("drift", "findings", findings=(bad,)))
    whole = Report("team", (), parts=(part, part))
    gathered = [(TeamFacts(part, [entry(1)], has_ledger=True), None) for _ in range(2)]
    for size in (2**40, 60_000):
        found = pages._render_team(whole, gathered, "r.html", size).pages
        seen_pages = [SeenPage(page) for page in found.values()]
        assert {"r1-f-" + "ab" * 6, "r2-f-" + "ab" * 6} <= set(seen_pages[0].ids)
        assert {"r1-e1", "r2-e1"} <= {one for each in seen_pages for one in each.ids}
        assert "2 findings" in seen_pages[0].text


def test_lanes_are_those_of_the_busiest_and_one_of_all_others() -> None:
    entries = [entry(n, actor=f"agent-{n % 30:02}") for n in range(300)]
    chart = lane_chart(entries, {7})
    assert len(chart.lanes) == LANES
    assert chart.lanes[-1].name == ""
    assert sum(lane.acts for lane in chart.lanes) == 300
    assert sum(bar.acts for lane in chart.lanes for bar in lane.bars) == 300
    assert [bar.seq for lane in chart.lanes for bar in lane.bars if bar.bad] != []


@pytest.mark.parametrize("at", ["", "never", "2026-11-01", "9999-99-99T00:00:00Z", "\x1b[31m"])
def test_an_entry_without_a_time_is_listed_all_the_same(at: str) -> None:
    facts = TeamFacts(report(), [entry(1, at=at, day="without a date", time=at[11:19])])
    assert "e1" in seen(facts).ids


def test_who_saw_what_has_the_worst_grade_first_and_each_reason() -> None:
    sights = (
        Sight("reviewer", "session a", "the chat", "nothing found", (), 1),
        Sight("reviewer", "session b", "the chat", "shown", ("line 8",), 2),
        Sight("", "session c", ".env*", "cannot tell", ("gone",), 3),
    )
    text = seen(TeamFacts(report(with_sights(Outcome("never-read", "findings"), sights)))).text
    row = " ".join(text.split())
    assert "reviewer shown (1) nothing found (1)" in row
    assert "session b: shown line 8" in row
    assert "no role no rule cannot tell 1 reader session c: cannot tell gone" in row


def test_a_decision_takes_the_anchor_of_no_entry_and_no_section() -> None:
    facts = TeamFacts(report(), [entry(n) for n in range(6)], has_ledger=True)
    names = ("e5", "timeline", "main", "D-17", "D-17 <b>")
    none = clip("", LONG)
    facts.decisions = [
        DecisionFacts(n, name, "", "title", "", (), "", "", none, names[n - 1], ())
        for n, name in enumerate(names)
    ]
    page = seen(facts)
    assert len(set(page.ids)) == len(page.ids)
    assert "D-17" in page.ids
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
