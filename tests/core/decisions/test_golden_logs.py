"""The log examples of the documents: taken in, written again, and gone on with, byte for byte."""

import shutil
from pathlib import Path

import pytest
from doors.inside import run, run_as

from tripod.decisions import reader as decisions_read
from tripod.ledger.locator import LEDGER
from tripod.projections.decisions.format import count_decision_headings
from tripod.projections.engine import file_differences
from tripod.recovery import rebuild as recover
from tripod.team import adoption
from tripod.team.team import Team

LOGS = Path(__file__).parents[2] / "golden/documents"
NAMES = ("nbs-scribe", "tripod-architecture")
TITLES = {
    "nbs-scribe": [
        ("D-1707753600", "Coordination bus replaces polling", "decided", "none"),
        ("D-1707840000", "MVP-first for bus implementation", "decided", "scope-creep"),
    ],
    "tripod-architecture": [
        ("D-1707753600", "Use recursive descent for the parser", "decided", "perf-risk"),
        ("D-1707760800", "Accept O(n^2) parser cost", "accepted-risk", "perf-risk, reversible"),
    ],
}
LAST = {
    "nbs-scribe": "Build publish/subscribe/acknowledge/list/prune first. Dedup and inotifywait "
    "deferred to post-review phase. Adversarial tests required.",
    "tripod-architecture": "Benchmark shows 0.3ms at 4KB input. If input size grows, revisit. "
    "bench-claude confirmed measurement.",
}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def team(tmp_path: Path, name: str) -> Path:
    """A project with the log, and no ledger yet."""
    (tmp_path / ".nbs/scribe").mkdir(parents=True)
    shutil.copy(LOGS / name / "scribe/log.md", tmp_path / ".nbs/scribe/log.md")
    return tmp_path


def test_it_is_read_and_not_changed(team: Path, name: str) -> None:
    golden = (LOGS / name / "scribe/log.md").read_bytes()
    adoption.init(str(team), scribe="scribe")
    with Team(str(team / ".nbs")) as opened:
        found = decisions_read.summary(opened, 9)
    assert [(d.id, d.title, d.status, d.risk_tags) for d in found] == TITLES[name]
    assert found[-1].rationale == LAST[name]
    assert (team / ".nbs/scribe/log.md").read_bytes() == golden


def test_it_is_written_again_byte_for_byte(team: Path, name: str) -> None:
    log = team / ".nbs/scribe/log.md"
    adoption.init(str(team), scribe="scribe")
    log.unlink()
    with Team(str(team / ".nbs")) as opened:
        recover.rebuild(opened)
        assert log.read_bytes() == (LOGS / name / "scribe/log.md").read_bytes()
        assert list(file_differences(opened.source, opened.disk)) == []


def test_what_is_logged_next_stands_behind_it(
    team: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LEDGER, raising=False)
    log = team / ".nbs/scribe/log.md"
    golden = log.read_bytes()
    who = ("--participants=alex", "--rationale=The input grew.", "--supersedes=D-1707753600")
    done = run_as("nbs-scribe-log", team, str(log), "Go on", *who)
    assert done.code == 0, done.err
    data = log.read_bytes()
    assert data.startswith(golden)
    assert data[len(golden) :].startswith(b"\n---\n\n### " + done.out.strip())
    assert count_decision_headings(data) == 3
    assert run_as("nbs-scribe", team, "count", str(log)).out == b"3\n"
    shown = run(team, "scribe", "show", "D-1707753600").out.decode()
    assert "superseded by D-" in shown
    assert "live.chat:~L" in shown
    log.unlink()
    assert run(team, "rebuild").code == 0
    assert log.read_bytes() == data


def test_an_entry_by_hand_in_the_layout_of_the_document_is_taken_in(team: Path, name: str) -> None:
    log = team / ".nbs/scribe/log.md"
    adoption.init(str(team), scribe="scribe")
    piece = (LOGS / name / "scribe/log.md").read_bytes().rpartition(b"\n---\n\n### ")[2]
    data = log.read_bytes() + b"\n---\n\n### " + piece.replace(b"D-1707", b"D-1708")
    log.write_bytes(data)
    with Team(str(team / ".nbs")) as opened:
        opened.refresh()
        assert decisions_read.count(opened) == 3
        recover.rebuild(opened)
    assert log.read_bytes() == data
    assert list((team / ".nbs/events").glob("*log-error*")) == []
