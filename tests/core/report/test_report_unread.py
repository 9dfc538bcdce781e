"""What a page says where nothing, or not all, was read: never that there is nothing."""

from pathlib import Path

import pytest
from html_pages import SeenPage
from specimens import build, database

from tripod.report import page as pages
from tripod.report import render_report
from tripod.report.facts import TeamFacts
from tripod.report.verdict import sight_gaps, tail_words
from tripod.verify.check import (
    Anchored,
    Outcome,
    Report,
    Since,
    Subject,
    cannot_tell,
    not_applicable,
)
from tripod.verify.isolation.rules import with_sights
from tripod.verify.isolation.sessions import NOTHING, Sight
from tripod.verify.run import all_checks

NAMES = ("pythia-isolation", "never-read")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sound team."""
    return build(str(tmp_path_factory.mktemp("sound")))


def text_of(page: bytes) -> str:
    return " ".join(SeenPage(page).text.split())


def page_of(report: Report) -> str:
    made = pages._render_team(report, [(TeamFacts(report), None)], "r.html", 2**40)
    return text_of(made.pages["r.html"])


def test_a_page_of_a_ledger_that_cannot_be_read_says_of_nothing_that_it_is_not_there(
    tmp_path: Path,
) -> None:
    broken = build(str(tmp_path))
    Path(database(broken)).write_bytes(b"no database " * 900)
    text = text_of(render_report(broken).pages["tripod-report.html"])
    assert "Everything: nothing could be judged." in text
    assert "Nothing could be judged, so nobody can tell who saw what." in text
    assert "No entry could be read." in text
    assert "nothing could be read" in text
    for told in (
        "Each check",
        "No review",
        "No decision is logged",
        "No entry records",
        "There is no ledger",
        "no ledger",
        "files alone",
        "Decisions 0",
        "Findings 0",
        "What cannot be told 0",
    ):
        assert told not in text


def test_a_page_of_one_check_does_not_speak_for_the_others(root: str) -> None:
    text = text_of(render_report(root, select={"chain-links"}).pages["tripod-report.html"])
    for name in NAMES:
        assert f"cannot tell {name.capitalize()} was not run" in text
    assert "No decision is logged" not in text
    assert "No entry records" not in text
    others = len(all_checks()) - 1
    assert f"0 findings, 1 check holds. {others} other checks were not run." in text
    assert "not run" not in text_of(render_report(root).pages["tripod-report.html"])


def test_what_was_there_before_is_counted_in_the_first_sentence() -> None:
    parts = [
        Report("a", (Outcome("drift", "clean"),), since=Since(9, "main", {"drift": number}))
        for number in (0, 1)
    ]
    text = page_of(parts[1])
    assert " Only what is new since main counts: 1 older finding is left out." in text
    whole = pages._render_team(
        Report("both", (), parts=tuple(parts)),
        [(TeamFacts(part), None) for part in parts],
        "r.html",
        2**40,
    )
    assert "since main counts: 1 older finding is left out" in text_of(whole.pages["r.html"])
    assert "since main counts: 0 older findings are left out" in page_of(parts[0])


def test_who_saw_what_repeats_what_its_checks_cannot_tell() -> None:
    nobody = with_sights(
        cannot_tell("never-read", "rule 2 (keys/*) is about no session here"),
        [Sight("worker", "session s", ".env", NOTHING)],
    )
    report = Report("t", (nobody, not_applicable("pythia-isolation", "no Pythia was run")))
    assert list(sight_gaps(report)) == [
        (False, "pythia-isolation had nothing to judge: no Pythia was run"),
        (True, "never-read: rule 2 (keys/*) is about no session here"),
    ]
    text = page_of(report)
    assert "cannot tell Never-read: rule 2 (keys/*) is about no session here." in text


def test_a_check_that_broke_is_no_table_of_readers() -> None:
    broke = Outcome("never-read", "findings")
    told = dict.fromkeys(words for _, words in sight_gaps(Report("t", (broke,))))
    assert "never-read says nothing of any reader, and has findings: read these" in told


def test_what_no_check_judged_has_not_come_to_a_verdict() -> None:
    nothing = Report("t", (not_applicable("drift", "there is nothing"),))
    assert "No check came to a verdict on anything." in page_of(nothing)


def test_a_record_that_cannot_be_judged_is_counted_in_the_first_sentence() -> None:
    whole = Report("one", (Outcome("drift", "clean"),))
    text = page_of(Report("t", (), parts=(whole, Report("two", (), problem="it is damaged"))))
    assert "1 of 2 records could not be judged." in text


def test_a_tail_is_never_nothing_where_entries_are_in_it() -> None:
    anchored = Anchored("PINNED", {"PINNED": (3, "a pin")}, tail=2)
    told = tail_words(Report("t", (), anchored=anchored), None)
    assert told.startswith("2 entries at the end are vouched for by the ledger alone.")
    empty = Report("t", (), anchored=Anchored("SELF", {}))
    assert not tail_words(empty, None).startswith("Nothing")


def test_a_proof_is_no_folder_of_files_that_anybody_could_have_changed() -> None:
    text = page_of(Report("p", (Outcome("proof", "clean"),), subject=Subject("", "p", None, "")))
    assert "files were judged by themselves" not in text
    assert "nothing would show it" not in text
