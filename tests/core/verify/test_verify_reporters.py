"""The reporters write exactly what is kept under ``tests/golden/reports``, and nothing hostile."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_reports import EXITS, GOLDEN, REPORTS

from tripod.verify.check import (
    CANNOT_TELL,
    CLEAN,
    Outcome,
    Report,
    escape,
    not_applicable,
    shorten,
    shown_difference,
)
from tripod.verify.reporters import json as json_
from tripod.verify.reporters import text


@pytest.mark.parametrize("name", REPORTS)
def test_the_text_is_as_kept(name: str) -> None:
    plain = text.render(REPORTS[name])
    assert plain == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert "\x1b" not in plain


@pytest.mark.parametrize("name", REPORTS)
def test_the_brief_report_is_as_kept_and_says_nothing_else(name: str) -> None:
    written = text.brief_text(REPORTS[name])
    assert written == (GOLDEN / f"{name}.brief.txt").read_text(encoding="utf-8")
    whole = text.render(REPORTS[name]).splitlines()
    said = [line for line in written.splitlines() if "hold" not in line]
    assert [line for line in said if line not in whole] == []
    assert all(outcome.check in written for outcome in REPORTS[name].outcomes if outcome.findings)


def test_all_is_well_in_one_line() -> None:
    outcomes = [Outcome(f"check-{number}", CLEAN) for number in range(25)]
    past = Outcome("worker-lifecycle", CANNOT_TELL, "no transcript", past=True)
    report = Report("x", (*outcomes, past, not_applicable("drift", "", required=False)), (2224, ""))
    assert report.exit_code == 0
    assert text.brief_text(report) == (
        "25 checks hold over 2,224 entries; 1 had nothing to judge; 1 could not be judged: "
        "worker-lifecycle (no transcript)\n"
    )


@pytest.mark.parametrize("name", REPORTS)
def test_the_json_is_as_kept(name: str) -> None:
    written = json_.render(REPORTS[name])
    assert written == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(written)["exit_code"] == EXITS[name] == REPORTS[name].exit_code
    assert written.isascii()


@pytest.mark.parametrize(
    ("seconds", "age"),
    [(0, "0 seconds"), (1, "1 second"), (119, "119 seconds"), (120, "2 minutes"),
     (7199, "119 minutes"), (7200, "2 hours"), (172_799, "47 hours"), (172_800, "2 days")],
)  # fmt: skip
def test_the_newest_seal_is_told_with_its_age(seconds: int, age: str) -> None:
    at = "2026-11-21T20:57:55.123456Z"
    report = Report("x", (Outcome("drift", CLEAN),), (9, "ab" * 32), sealed=(1, at, seconds))
    assert text.render(report).endswith(f"root {'ab' * 8}…; sealed 1 entry, {age} ago\n")
    assert json.loads(json_.render(report))["sealed"] == {"size": 1, "at": at}


def test_colour_changes_nothing_but_colour() -> None:
    for report in REPORTS.values():
        colored = text.render(report, color=True)
        assert "\x1b[" in colored
        assert re.sub(r"\x1b\[\d+m", "", colored) == text.render(report)


@given(st.text())
def test_escaped_text_is_one_line_of_visible_characters(hostile: str) -> None:
    shown = escape(hostile)
    assert shown.isascii() or shown.encode()
    assert shown.splitlines() in ([], [shown])
    assert not {c for c in shown if ord(c) < 32 or 0x7F <= ord(c) < 0xA0}
    assert not set(shown) & set("\u202a\u202e\u2066\u200b\ufeff")


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_difference_shows_what_differs(want: bytes, have: bytes) -> None:
    shown = shown_difference(want, have)
    assert shown[0].startswith("@@ line ")
    if want != have:
        assert any(line[0] in "+-" for line in shown[1:])


def test_long_things_are_cut() -> None:
    lines = b"\n".join(b"%d" % n for n in range(50))
    shown = shown_difference(lines, b"")
    assert shown[-2:] == ("-… 44 more lines", "+")
    assert shown_difference(lines, None) == ()
    assert shorten("x" * 200) == "x" * 159 + "…"
