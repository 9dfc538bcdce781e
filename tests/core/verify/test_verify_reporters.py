"""The reporters write exactly what is kept under ``tests/golden/reports``, and nothing hostile."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_reports import EXITS, GOLDEN, REPORTS, all_forms

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
def test_each_form_is_as_kept(name: str) -> None:
    for ending, data in all_forms(REPORTS[name]).items():
        if ending == "sarif":  # indented, so that people can read the differences
            written, _, places = data.partition("\n")
            data = json.dumps(json.loads(written), indent=1) + f"\n{places}"  # noqa: PLW2901
        assert data == (GOLDEN / f"{name}.{ending}").read_text(encoding="utf-8"), ending
        assert not set(data) & set("\x1b\x07\u202e\u200b"), ending


@pytest.mark.parametrize("name", REPORTS)
def test_the_brief_report_says_nothing_else_than_the_whole_one(name: str) -> None:
    written = text.brief_text(REPORTS[name])
    whole = text.render(REPORTS[name]).splitlines()
    said = [line for line in written.splitlines() if "hold" not in line]
    assert [line for line in said if line not in whole] == []


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
def test_the_json_says_the_exit_code_in_ascii(name: str) -> None:
    written = json_.render(REPORTS[name])
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
