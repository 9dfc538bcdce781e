"""The reporters write exactly what is kept under ``tests/golden/reports``, and nothing hostile."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator
from junitparser import JUnitXml

from tripod.verify.check import (
    CANNOT_TELL,
    CLEAN,
    FINDINGS,
    Anchored,
    Finding,
    Outcome,
    Report,
    Since,
    Subject,
    escape,
    not_applicable,
    shorten,
    shown_difference,
)
from tripod.verify.finding import Acceptance
from tripod.verify.reporters import github, junit, sarif, text
from tripod.verify.reporters import json as json_

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"

HOSTILE = "D-17: \x1b[2Jtitle\n\u202egnp.exe\u200b"

REPORT = Report(
    "sample/.nbs",
    (
        Outcome("sequence", CLEAN, coverage={"entries": 51, "nodes": 0}, required=True),
        Outcome(
            "chain-links",
            FINDINGS,
            "",
            (
                Finding(
                    "chain-links",
                    "entry 41 is not the one that entry 42 was linked to",
                    "entry 41",
                    ("-old", "+new"),
                    "compare this entry with a backup",
                    seq=41,
                ),
                Finding("chain-links", HOSTILE, "entry 9", (), "", "warning", before_adoption=True),
            ),
            {"entries": 51},
            required=True,
        ),
        Outcome("pythia-isolation", CANNOT_TELL, "no transcript", required=True, past=True),
        Outcome("append-only", CANNOT_TELL, "no log", required=True),
        not_applicable("drift", "there is no ledger", required=False),
    ),
    (51, "91bc04d2" * 8),
)
REPORTS = {
    "findings": REPORT,
    "anchored": Report(
        "x",
        (Outcome("pins-extend", CLEAN, coverage={"heads": 2, "agree": 2}),),
        (51, "ab" * 32),
        anchored=Anchored(
            "WITNESSED", {"PINNED": (50, "the pin \x1b[2J"), "WITNESSED": (40, "w1")}, 1, 212
        ),
        notes=("only entries from 40 on were looked at",),
    ),
    "alone": Report("x", (Outcome("drift", CLEAN),), anchored=Anchored("SELF", {}, 3, 9)),
    "clean": Report("x", (Outcome("drift", CLEAN),), (1, "ab" * 32)),
    "advised": Report(
        "x",
        (
            Outcome("drift", CLEAN),
            Outcome(
                "decision-noise",
                FINDINGS,
                "",
                (
                    Finding(
                        "decision-noise",
                        'D-17 "Hello" reads like a greeting',
                        "entry 9",
                        (),
                        "leave it",
                        "advice",
                        seq=9,
                    ),
                ),
                {"decisions": 2},
                advice=True,
            ),
        ),
    ),
    "untold": Report("x", REPORT.outcomes[3:]),
    "nothing": Report("x", REPORT.outcomes[4:]),
    "except": Report(
        "x",
        (
            Outcome(
                "pythia-isolation", CLEAN, exceptions=tuple(f"lent /x\x07/{n}" for n in "abcde")
            ),
            Outcome("drift", CANNOT_TELL, "it is gone", exceptions=("one",)),
        ),
    ),
    "judged": Report(
        "x",
        (Outcome("drift", CLEAN),),
        subject=Subject(
            "/home/ann/\x1b[2J/.nbs",
            "/home/ann/\x1b[2J/.nbs/ledger.db",
            "/home/ann",
            "refs/heads/main, commit 5a742098bf87; 2 tips of refs and reflogs",
        ),
    ),
    "problem": Report("x\x07", (), problem="x\x07: there is no such file"),
    "accepted": Report(
        "x",
        (
            Outcome(
                "drift",
                CLEAN,
                coverage={"files": 3},
                accepted=(
                    (
                        Finding("drift", "is missing", "a\x1b.md", seq=4, fingerprint="3f" * 32),
                        Acceptance(52, "drift", "3f" * 32, "ann", "2026-11-21", "\x1b[2J why"),
                    ),
                ),
                accepted_count=2,
            ),
            Outcome(
                "supersession",
                FINDINGS,
                "",
                (
                    Finding("supersession", "D-1", "entry 1", seq=1, fingerprint="ab" * 32),
                    Finding("supersession", "D-2", "x", seq=1, fault=None, fingerprint="cd" * 32),
                ),
            ),
        ),
        since=Since(40, "the head in commit 5a742098bf87 (\x1bmain)", {"drift": 2}),
    ),
}
EXITS = {
    "findings": 1,
    "clean": 0,
    "judged": 0,
    "anchored": 0,
    "alone": 0,
    "advised": 0,
    "untold": 3,
    "nothing": 3,
    "except": 0,
    "problem": 3,
    "accepted": 1,
}


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


# For CI ------------------------------------------------------------------------------------------

SCHEMA = Draft4Validator(
    json.loads((GOLDEN.parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
)


def as_sarif(report: Report, beside: str = "out.places.txt") -> tuple[Any, str]:
    written, places = sarif.render(report, version="1.2.3", manual=manual, beside=beside)
    assert written.isascii()
    log = json.loads(written)
    SCHEMA.validate(log)
    (run,) = log["runs"]
    return run, places


def manual(check: str) -> str:
    return f"{check} (required)\n\nWhat `{check}` proves.\n\nMore.\n"


@pytest.mark.parametrize("name", REPORTS)
def test_what_ci_reads_is_as_kept(name: str) -> None:
    report = REPORTS[name]
    written, places = sarif.render(report, version="1.2.3", manual=manual, beside="out.places.txt")
    for ending, data in {
        "sarif": json.dumps(json.loads(written), indent=1) + f"\n{places}",
        "junit.xml": junit.render(report),
        "github.txt": github.render(report),
        "summary.md": github.summary(report),
    }.items():
        assert data == (GOLDEN / f"{name}.{ending}").read_text(encoding="utf-8"), ending
        assert not set(data) & set("\x1b\x07\u202e\u200b")


@pytest.mark.parametrize("name", REPORTS)
def test_a_run_that_could_not_tell_was_not_successful(name: str) -> None:
    report = REPORTS[name]
    run, _ = as_sarif(report)
    (invocation,) = run["invocations"]
    untold = bool(report.untold or report.problem or not report.judged)
    assert invocation["executionSuccessful"] is not untold
    assert invocation["exitCode"] == EXITS[name]
    suites = JUnitXml.fromstring(junit.render(report))
    assert (suites.failures + suites.errors > 0) is (EXITS[name] != 0)
    assert ("::error" in github.render(report)) is (
        EXITS[name] == 1 or bool(report.problem) or not report.judged
    )


def test_the_same_finding_keeps_its_fingerprint_when_lines_move() -> None:
    def result(line: int) -> Any:
        finding = Finding("drift", "edited", "a.md", file="a.md", line=line, fingerprint="3f" * 32)
        run, places = as_sarif(Report("x", (Outcome("drift", FINDINGS, "", (finding,)),)))
        assert places == ""
        (only,) = run["results"]
        return only

    one, other = result(3), result(30)
    assert one["partialFingerprints"] == {"primaryLocationLineHash": "3f" * 32}
    assert one.pop("locations") != other.pop("locations")
    assert one == other


_PATHS = st.one_of(st.sampled_from(["", ".", "/etc/a", ".git/HEAD", "a b,c%.md"]), st.text())


@given(st.lists(st.tuples(st.text(), _PATHS, st.text(), st.text()), max_size=4), st.text())
def test_hostile_texts_reach_no_reader_as_they_are(
    found: list[tuple[str, str, str, str]], what: str
) -> None:
    findings = tuple(
        Finding("drift", message, where, (shown,), "help", file=where, line=2)
        for message, where, shown, _ in found
    )
    report = Report(
        what, (Outcome("drift", FINDINGS, what, findings), Outcome("x", CANNOT_TELL, what))
    )
    run, places = as_sarif(report)
    listed = places.splitlines()
    for finding, result in zip(findings, run["results"], strict=True):
        ((place,),) = (result["locations"],)
        physical = place["physicalLocation"]
        uri = unquote(physical["artifactLocation"]["uri"], errors="surrogateescape")
        if finding.is_elsewhere:
            assert uri == "out.places.txt"
            assert listed[physical["region"]["startLine"] - 1] == escape(
                f"{finding.file}: {finding.where}"
            )
        else:
            assert uri == finding.file
    suites = JUnitXml.fromstring(junit.render(report))
    assert suites.tests == 2
    annotations = github.render(report).splitlines()
    assert len(annotations) == len(findings) + 1
    for line in [*annotations, *github.summary(report).splitlines(), *listed]:
        assert escape(line) == line
    told = [line.partition("::")[2].partition("::")[2] for line in annotations]
    for finding, line in zip(findings, told, strict=False):
        read = line.replace("%0A", "\n").replace("%25", "%")
        lines = map(escape, filter(None, (finding.message, *finding.evidence, finding.help)))
        assert read.endswith("\n".join(lines))


def test_of_very_many_findings_a_step_shows_a_few_and_the_summary_more() -> None:
    many = tuple(
        Finding("drift", f"edited {n}", "a.md", file="a.md", line=n + 1) for n in range(1000)
    )
    report = Report(
        "x", (Outcome("drift", FINDINGS, "", many, left_out={("failure", False): 9000}),)
    )
    lines = github.render(report).splitlines()
    assert len(lines) == 11
    assert lines[-1].endswith("::and 9990 more: see the summary")
    assert github.summary(report).endswith("and 9800 more\n")
    assert JUnitXml.fromstring(junit.render(report)).tests == 1
    assert "and 9000 more" in junit.render(report)
    run, _ = as_sarif(report)
    assert len(run["results"]) == 1000
    assert "9000 more findings" in str(run["invocations"])
