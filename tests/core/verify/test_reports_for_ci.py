"""What CI servers read is valid, bounded, and says of each finding what was found."""

import json
import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator
from junitparser import JUnitXml
from sample_reports import BESIDE, EXITS, GOLDEN, REPORTS, all_forms, manual
from workflow_commands import Command, runner_command

from tripod.verify.check import (
    CANNOT_TELL,
    CLEAN,
    FINDINGS,
    Finding,
    Outcome,
    Report,
    Since,
    escape,
)
from tripod.verify.finding import Acceptance, Severity
from tripod.verify.reporters import github, junit, sarif, summary, text
from tripod.verify.reporters.quotation import (
    WIDTH,
    file_in_repository,
    finding_lines,
    without_commands,
)

SCHEMA = Draft4Validator(
    json.loads((GOLDEN.parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
)


def as_sarif(report: Report, beside: str = BESIDE) -> tuple[Any, str]:
    written, places = sarif.render(report, version="1.2.3", manual=manual, beside=beside)
    assert written.isascii()
    log = json.loads(written)
    SCHEMA.validate(log)
    (run,) = log["runs"]
    return run, places


def annotations(report: Report) -> list[Command]:
    commands = [runner_command(line) for line in github.render(report).splitlines()]
    assert None not in commands
    return [one for one in commands if one is not None]


def texts_of(written: str) -> list[str]:
    """The texts of all elements of a report in JUnit's form."""
    suites = JUnitXml.fromstring(written)
    return [one.text or "" for suite in suites for one in suite._elem.iter()]


def one_check(*findings: Finding, **rest: Any) -> Report:
    return Report("x", (Outcome("drift", FINDINGS, "", findings, **rest),))


# Each form says all that is said ------------------------------------------------------------------

_WEIGHTS: st.SearchStrategy[Severity] = st.sampled_from(["failure", "warning", "advice"])


@st.composite
def told_reports(draw: st.DrawFn, names: Any = None) -> tuple[Report, list[str]]:
    """A report, and a word of each thing that it says, found nowhere else."""
    names = names or map("word{}end".format, count())
    said: list[str] = []

    def new() -> str:
        said.append(next(names))
        return said[-1]

    def checked(check: str) -> Outcome:
        found = tuple(
            Finding(check, new(), "a.md", severity=draw(_WEIGHTS), file=draw(_FILES))
            for _ in range(draw(st.integers(0, 2)))
        )
        verdict = CANNOT_TELL if draw(st.booleans()) else FINDINGS if found else CLEAN
        reason = new() if verdict == CANNOT_TELL else ""
        exceptions = (new(),) if draw(st.booleans()) else ()
        required, past = draw(st.booleans()), draw(st.booleans())
        return Outcome(
            check, verdict, reason, found, required=required, past=past, exceptions=exceptions
        )

    checks = draw(st.lists(st.sampled_from(["drift", "sequence"]), unique=True))
    outcomes = tuple(map(checked, checks))
    notes = (new(),) if draw(st.booleans()) else ()
    since = Since(4, new(), {"drift": 2}) if draw(st.booleans()) else None
    problem = "" if outcomes else new()
    return Report("x", outcomes, problem=problem, notes=notes, since=since), said


_FILES = st.sampled_from(["", "a.md", "/srv/a.md", "\udcff"])


@given(st.data(), st.integers(1, 3))
def test_each_form_says_each_finding_and_all_that_was_not_judged(
    data: st.DataObject, number: int
) -> None:
    names = map("word{}end".format, count())
    told = [data.draw(told_reports(names)) for _ in range(number)]
    parts = tuple(report for report, _ in told)
    report = parts[0] if number == 1 else Report("x", (), parts=parts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(github, "SHOWN", 1_000)
        forms = all_forms(report)
    for ending, form in forms.items():
        for _, said in told:
            assert [word for word in said if word not in form] == [], ending


def test_a_run_of_some_checks_looks_like_no_whole_one_in_any_form() -> None:
    """Annotations said nothing of it, and readers of JUnit look at the cases alone."""
    note = "only these checks were selected, and nothing is said of the others: drift"
    report = replace(REPORTS["clean"], notes=(note,))
    forms = all_forms(report)
    assert [
        ending for ending, form in forms.items() if note not in form.replace("&#58;", ":")
    ] == []
    (suite,) = JUnitXml.fromstring(forms["junit.xml"])
    assert (suite.tests, suite.skipped) == (2, 1)
    assert forms["summary.md"].startswith("## tripod verify: clean, with exceptions\n")


def test_tests_of_several_records_have_names_of_their_own() -> None:
    """GitLab takes two tests of one class and name for one, and shows the last."""
    parts = tuple(replace(REPORTS["findings"], what=f"refs/tripod/{n}") for n in range(2))
    suites = JUnitXml.fromstring(junit.render(Report("x", (), parts=parts)))
    names = [(case.classname, case.name) for suite in suites for case in suite]
    assert len(names) == len(set(names)) == 12


# No form is green where the run is not ------------------------------------------------------------


def is_green(report: Report) -> dict[str, bool]:
    """Whether each form says that all is well."""
    run, _ = as_sarif(report)
    fails = any(one["level"] == "error" for one in run["results"])
    suites = JUnitXml.fromstring(junit.render(report))
    return {
        "sarif": run["invocations"][0]["executionSuccessful"] and not fails,
        "junit": suites.failures + suites.errors == 0 and suites.tests > 0,
        "github": not any(
            one.word == "error" or "(required)" in one.data for one in annotations(report)
        ),
        "summary": summary.render(report).startswith("## tripod verify: clean"),
        "text": ": cannot judge" not in text.brief_text(report) and report.exit_code == 0,
    }


@pytest.mark.parametrize("name", REPORTS)
def test_a_form_is_green_exactly_where_the_exit_code_is_0(name: str) -> None:
    report = REPORTS[name]
    assert report.exit_code == EXITS[name]
    assert set(is_green(report).values()) == {EXITS[name] == 0}
    run, _ = as_sarif(report)
    untold = bool(report.untold or report.problem or not report.judged)
    assert run["invocations"][0]["executionSuccessful"] is not untold
    assert run["invocations"][0]["exitCode"] == EXITS[name]


_FINDINGS = st.builds(
    Finding,
    st.just("drift"),  # the check is that of the outcome, below
    st.just("edited"),
    st.just("a.md"),
    severity=st.sampled_from(["failure", "warning", "advice"]),
    before_adoption=st.booleans(),
)
_LEFT_OUT = st.dictionaries(
    st.tuples(st.sampled_from(["failure", "warning", "advice"]), st.booleans()),
    st.integers(1, 99999),
    max_size=2,
)
_OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(["drift", "sequence", "append-only"]),
    st.sampled_from([CLEAN, FINDINGS, CANNOT_TELL, "not applicable"]),
    st.text(max_size=3),
    st.lists(_FINDINGS, max_size=15).map(tuple),
    required=st.booleans(),
    past=st.booleans(),
    advice=st.booleans(),
    left_out=_LEFT_OUT,
).map(lambda o: replace(o, findings=tuple(replace(f, check=o.check) for f in o.findings)))
_REPORTS = st.builds(
    Report,
    st.text(max_size=3),
    st.lists(_OUTCOMES, max_size=3, unique_by=lambda one: one.check).map(tuple),
    problem=st.sampled_from(["", "", "it cannot be read"]),
)


@settings(max_examples=40)
@given(st.lists(_REPORTS, min_size=1, max_size=12))
def test_one_bad_record_among_good_ones_makes_every_form_red(parts: list[Report]) -> None:
    report = parts[0] if len(parts) == 1 else Report("x", (), parts=tuple(parts))
    greens = is_green(report)
    # A finding that only its count is kept of is no result: the run is told by its exit code.
    counted = any(
        n for one in report.all_outcomes for (s, _), n in one.left_out.items() if s == "failure"
    )
    if counted:
        greens.pop("sarif"), greens.pop("github")
    assert set(greens.values()) == {report.exit_code == 0}


def test_of_an_accepted_finding_no_alert_is_opened_and_its_number_is_said() -> None:
    by = Acceptance(52, "drift", "3f" * 32, "ann", "2026-11-21", "why")
    accepted = (Finding("drift", "is missing", "a.md", fingerprint="3f" * 32), by)
    report = Report("x", (Outcome("drift", CLEAN, accepted=(accepted,), accepted_count=2),))
    run, places = as_sarif(report)
    assert (run["results"], places) == ([], "")
    assert "drift: 2 accepted" in str(run["invocations"])
    assert github.render(report) == "::notice title=drift::2 accepted, not among these\n"
    assert "clean, with exceptions" in summary.render(report)
    assert "accepted by ann in entry 52: why" in junit.render(report)


# Fingerprints -------------------------------------------------------------------------------------


def test_the_same_finding_keeps_its_fingerprint_when_lines_move() -> None:
    def result(line: int) -> Any:
        finding = Finding("drift", "edited", "a.md", file="a.md", line=line, fingerprint="3f" * 32)
        run, places = as_sarif(one_check(finding))
        assert places == ""
        (only,) = run["results"]
        return only

    one, other = result(3), result(30)
    assert one["partialFingerprints"] == {"primaryLocationLineHash": "3f" * 32}
    assert one.pop("locations") != other.pop("locations")
    assert one == other


def test_two_records_with_the_same_fault_are_two_alerts() -> None:
    same = Finding("drift", "edited", "a.md", file="a.md", fingerprint="3f" * 32)
    parts = tuple(replace(one_check(same), what=f"refs/tripod/{n}") for n in range(3))
    run, _ = as_sarif(Report("x", (), parts=parts))
    prints = [one["partialFingerprints"]["primaryLocationLineHash"] for one in run["results"]]
    assert prints[0] == "3f" * 32
    assert len(set(prints)) == 3


@pytest.mark.parametrize("name", REPORTS)
def test_only_a_whole_and_successful_run_has_the_id_that_closes_alerts(name: str) -> None:
    report = REPORTS[name]
    is_untold = bool(report.untold or report.problem or not report.judged)
    for is_part in (False, True):
        written, _ = sarif.render(report, version="1.2.3", manual=manual, is_part=is_part)
        kind = json.loads(written)["runs"][0]["automationDetails"]["id"]
        assert kind == f"tripod/verify{'-part' if is_part or is_untold else ''}/"


# Hostile texts ------------------------------------------------------------------------------------

_BITS = (
    "::ERROR::x", "::error::x", "\n::stop-commands::abc\n", " ::add-mask::x", "##[stop-commands]x",
    "##vso[task.complete result=Succeeded;]x", "##teamcity[buildStatus status='SUCCESS']", "%0A",
    "%25", "%3A", "]]>", "<!--", "\0", "\x1b[2J", "\r\n", "\ud800", "\udcff", "\ufffe", "\uffff",
    "\u202e", "|", "`", "www.example.com", "@all", "&#58;:", '"', "'", "\\", "é", "\U0001f600",
)  # fmt: skip
_LAST = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}  # XML has no way to write these
_TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(_BITS), max_size=5).map("".join))
_NAMES = (
    "", ".", "/etc/a", ".git/HEAD", "../up", "a b,c%.md", "C:\\a", "a:b", "a#b?c", "=a", "a\nb",
    "caf\udce9.md", "\ud800", "::error::x", "##[error]x",
)  # fmt: skip
_PATHS = st.one_of(st.sampled_from(_NAMES), _TEXTS)


@given(st.lists(st.tuples(_TEXTS, _PATHS, _TEXTS), max_size=4), _TEXTS)
def test_hostile_texts_command_nothing_and_are_all_found_again(
    found: list[tuple[str, str, str]], what: str
) -> None:
    findings = tuple(
        Finding("drift", message, where, (shown,), "help", file=where, line=2)
        for message, where, shown in found
    )
    report = Report(
        what,
        (Outcome("drift", FINDINGS, what, findings), Outcome("x", CANNOT_TELL, what)),
        notes=(what,),
    )
    said = ["\n".join(finding_lines(one)) for one in findings]
    run, places = as_sarif(report)
    assert [one["message"]["text"] for one in run["results"]] == said
    listed = places.splitlines()
    for finding, result in zip(findings, run["results"], strict=True):
        (place,) = result["locations"]
        physical = place["physicalLocation"]
        uri = physical["artifactLocation"]["uri"]
        assert not urlsplit(uri).scheme
        if file := file_in_repository(finding):
            assert physical["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
            assert unquote(uri, errors="surrogateescape") in (file, escape(file))
        else:
            assert uri == BESIDE
            line = listed[physical["region"]["startLine"] - 1]
            assert line == escape(f"{finding.file}: {finding.where}" if finding.file else "nowhere")
    read = texts_of(junit.render(report))
    for one in said:
        assert re.sub(
            "[\ufffe\uffff]", lambda c: f"\\u{ord(c[0]):x}", one.split("\n")[0]
        ) in "".join(read)
    commands = annotations(report)
    for command, shown in zip(commands, said, strict=False):
        assert command.data.endswith(without_commands(shown, "\\x23"))
    assert [one.word for one in commands[len(said) :]] == ["warning", "notice"]
    for command, finding in zip(commands, findings, strict=False):
        file = command.properties.get("file", "")
        assert file in ("", file_in_repository(finding))
        assert (
            file
            or finding.is_elsewhere
            or without_commands(escape(finding.file), "") != finding.file
        )
    for name, form in all_forms(report).items():
        for line in form.split("\n"):
            assert escape(line) == line, name
            assert name == "github.txt" or runner_command(line) is None, name
    assert text.render(report).encode()


@given(_TEXTS, _TEXTS)
def test_no_sign_of_markdown_or_html_gets_into_a_summary(message: str, what: str) -> None:
    written = summary.render(replace(one_check(Finding("drift", message, "a")), what=what))
    bare = re.sub(r"&#\d+;", "", written).replace("tripod verify --", "")
    assert not re.search(r"[<>\[\]\\@$]|https?:|www\.", bare)
    assert bare.count("**") == 2
    assert written.count("\n## ") == 0


# Bounds -------------------------------------------------------------------------------------------


def test_a_step_shows_what_fails_first_and_each_check_once_before_one_twice() -> None:
    many = tuple(Finding("drift", f"edited {n}", "a.md", file="a.md") for n in range(1000))
    warned = tuple(replace(one, severity="warning") for one in many[:20])
    report = Report(
        "x",
        (
            Outcome("drift", FINDINGS, "", warned + many, left_out={("failure", False): 9000}),
            Outcome("sequence", FINDINGS, "", (Finding("sequence", "a gap", "entry 3"),)),
            Outcome("seals-open", CANNOT_TELL, "no key", required=True),
            Outcome(
                "decision-noise",
                FINDINGS,
                "",
                tuple(replace(one, severity="advice") for one in many[:30]),
                advice=True,
            ),
        ),
    )
    shown = annotations(report)
    assert [one.word for one in shown] == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    assert any("a gap" in one.data for one in shown)
    assert shown[10].data == "cannot tell (required): no key"
    left_out = 1001 - 10 + 21 - 10 + 30 - 9 + 9000
    assert shown[-1].data.startswith(f"{left_out} more annotations are not shown: `tripod verify")
    assert "the summary lists more" in github.render(report, has_summary=True)


def huge(number: int, width: int) -> Report:
    """A report whose findings have long texts: ``number`` of them in each of many parts."""
    long = "x::" * (width // 3)
    evidence = (long,) * 50
    findings = tuple(
        Finding("drift", f"{n} {long}", f"/{long}", evidence, long, file=f"/{long}")
        for n in range(number)
    )
    return one_check(*findings, left_out={("failure", False): 9000})


def test_a_summary_never_has_more_bytes_than_github_takes() -> None:
    report = huge(1000, 900)
    whole = summary.render(report)
    assert summary.LIMIT - 200_000 < len(whole.encode()) <= summary.LIMIT
    listed = whole.count("\n- **")
    assert whole.endswith(
        f"\nNot all has room here ({10_000 - listed} of 10000 findings are left out): "
        "`tripod verify --json` lists up to 1,000 of each check and sort\n"
    )
    for room in (0, 100, 1000, 5000):
        assert len(summary.render(report, room).encode()) <= room
    assert summary.render(report, 100) == ""
    assert "1 finding" in summary.render(one_check(Finding("drift", "é" * 10_000_000, "a")))


def test_the_summary_of_very_many_records_says_that_not_all_are_there() -> None:
    parts = tuple(replace(REPORTS["clean"], what="x" * 9_000) for _ in range(3_000))
    whole = summary.render(Report("x", (), parts=parts))
    assert len(whole.encode()) <= summary.LIMIT
    assert "Not all has room here" in whole


def test_texts_of_a_mebibyte_stay_bounded_in_each_form() -> None:
    report = huge(2, 1 << 20)
    run, places = as_sarif(report)
    for form in (str(run), places, junit.render(report), summary.render(report)):
        assert 10_000 < len(form) < 500_000
    for command in annotations(report):
        assert len(command.data) <= WIDTH
    assert "10 more lines of evidence" in places


def test_sarif_has_no_more_results_than_hosts_take_and_counts_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warning = Finding("drift", "odd", "a.md", file="a.md", severity="warning")
    many = tuple(Finding("drift", f"edited {n}", "a.md", file="a.md") for n in range(20))
    report = one_check(warning, *many)
    monkeypatch.setattr(sarif, "RESULTS", 20)
    run, _ = as_sarif(report)
    assert [one["level"] for one in run["results"]] == ["error"] * 20
    assert "1 more findings have no room" in str(run["invocations"])
    monkeypatch.setattr(sarif, "ROOM", 2_000)
    assert len(sarif.render(report, version="1", manual=manual)[0]) < 4_000
    assert "findings have no room" in str(as_sarif(report)[0]["invocations"])


def test_notifications_are_bounded_and_those_of_a_failure_come_first() -> None:
    good = replace(REPORTS["clean"], notes=("one",) * 300)
    bad = Report("y", (), problem="it cannot be read")
    run, _ = as_sarif(Report("x", (), parts=(good, bad)))
    (invocation,) = run["invocations"]
    notes = invocation["toolExecutionNotifications"]
    assert [one["level"] for one in notes] == ["error", *["note"] * 199, "warning"]
    assert notes[-1]["message"]["text"] == "101 more are left out"
    assert invocation["executionSuccessful"] is False
    run, _ = as_sarif(REPORTS["except"])
    assert "clean, except: lent /x\\\\x07/a" in str(run["invocations"])


def test_the_text_of_a_failing_test_has_room_in_a_parser() -> None:
    report = huge(300, 3000)
    written = junit.render(report)
    assert JUnitXml.fromstring(written).failures == 1
    assert max(map(len, texts_of(written))) < 1_100_000
    shown = written.count("id: ") + written.count("\n\n/")
    assert int(re.findall(r"and (\d+) more", written)[-1]) + shown + 1 == 9_300


def test_a_finding_without_a_place_has_a_location_all_the_same() -> None:
    report = one_check(Finding("drift", "edited", ""))
    for beside in (BESIDE, ""):
        run, places = as_sarif(report, beside)
        (place,) = run["results"][0]["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == beside or "."
        assert bool(places) is bool(beside)
    (command,) = annotations(report)
    assert "file" not in command.properties


@pytest.mark.parametrize(
    ("file", "where"),
    [
        (".git/HEAD", "commit 471f276da74f by a <a@b>"),
        (".nbs/record/checkpoint", "commit 471f276da74f by a <a@b>, .nbs/record/checkpoint"),
    ],
)
def test_every_form_names_the_commit_in_which_something_is_wrong(file: str, where: str) -> None:
    """All commits with a head that was forged had the one place `.git/HEAD` in a pull request."""
    forms = all_forms(one_check(Finding("drift", "rollback", where, file=file)))
    for name, said in forms.items():
        assert not said or "471f276da74f" in said, name


def test_a_place_elsewhere_without_a_file_beside_is_its_own_path() -> None:
    run, places = as_sarif(one_check(Finding("drift", "edited", "p", file="/srv/a b")), "")
    (place,) = run["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "file:///srv/a%20b"
    assert places == ""


def test_every_rule_has_what_code_hosts_ask_for() -> None:
    run, _ = as_sarif(REPORTS["findings"])
    driver = run["tool"]["driver"]
    assert driver["semanticVersion"] == "1.2.3"
    for rule in driver["rules"]:
        for words in (rule["shortDescription"]["text"], rule["fullDescription"]["text"]):
            assert 0 < len(words) <= 1024
        assert rule["help"]["markdown"] == manual(rule["id"])
    written, _ = sarif.render(REPORTS["findings"], version="1", manual=lambda name: f"{name}\n\n\n")
    assert json.loads(written)["runs"][0]["tool"]["driver"]["rules"][0]["shortDescription"]["text"]


def test_reporters_fit_on_two_pages() -> None:
    folder = Path("verify/reporters")
    for path in folder.glob("*.py"):
        if path.name not in ("text.py", "json.py", "damage.py"):  # those are for people as well
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 120, path
