"""Assessments and the events that ask for them: matched one to one, by range and by order."""

import asyncio
from pathlib import Path

import pytest
from reviewed import NOW, PROGRAM, decide, folder_alone, reviewed_team
from team_files import Said, judge, outcome, write_chat, write_event

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.pythia import review as pythia_run
from tripod.team import adoption
from tripod.team.adoption import init
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run

ARCHITECTURE = """## Pythia Checkpoint — 2026-11-21T20:57:25Z

Decisions reviewed: D-{} through D-{} (20 decisions)

### Hidden Assumptions

None.
"""
SKILL = "PYTHIA CHECKPOINT — Assessment #1\n\n**Hidden assumption:** none.\n"
ASKED = "Checkpoint at decision 20. Decisions D-{} through D-{}."


def said(at: int, first: int = 0, last: int = 0) -> Said:
    """An assessment; without a range in the layout that has none."""
    text = ARCHITECTURE.format(first, last) if last else SKILL
    return Said(at, "pythia", text)


def verdict(root: Path, events: list[tuple[int, str]], posted: list[Said]) -> list[str]:
    """What the check says of these events and messages."""
    write_chat(root, "live", posted)
    for at, payload in events:
        write_event(root, at, "pythia-checkpoint", payload)
    found = outcome(judge(root), "checkpoint-preceded")
    return [f"{f.severity}: {f.message}" for f in found.findings] or [found.verdict]


@pytest.mark.parametrize("posted", [said(9, 1, 20), said(9)])
def test_an_assessment_with_its_event_is_clean(tmp_path: Path, posted: Said) -> None:
    assert verdict(tmp_path, [(5, ASKED.format(1, 20))], [posted]) == ["clean"]


def test_without_an_assessment_there_is_nothing_to_judge(tmp_path: Path) -> None:
    assert verdict(tmp_path, [], [Said(1, "alex", "hello")]) == ["not applicable"]


def test_an_event_of_the_scribe_without_a_range_is_a_warning(tmp_path: Path) -> None:
    (found,) = verdict(tmp_path, [(5, "")], [said(9, 1, 20)])
    assert found.startswith("warning: the assessment covers D-1 through D-20, ")
    assert found.endswith("asked for no stated range")


def test_an_event_of_somebody_else_without_a_range_answers_nothing(tmp_path: Path) -> None:
    write_event(tmp_path, 5, "pythia-checkpoint", "", source="mallory")
    (found,) = verdict(tmp_path, [], [said(9, 1, 20)])
    assert found == "failure: the assessment of D-1 through D-20 answers no checkpoint event"


@pytest.mark.parametrize("synced", [False, True])
def test_a_backdated_event_that_turns_up_later_clears_nothing(tmp_path: Path, synced: bool) -> None:
    root = tmp_path / ".nbs"
    init(str(tmp_path))
    with Team(str(root)) as team:
        chat_send.create(team, "live", actor="alex")
        chat_send.send(team, "live", "pythia", said(9, 1, 20).text)
    write_event(root, 5, "pythia-checkpoint", ASKED.format(1, 20))
    if synced:
        with Team(str(root)) as team:
            adoption.sync(team)
    with collect(str(root)) as evidence:
        (found,) = outcome(run(evidence), "checkpoint-preceded").findings
    assert found.severity == "failure"
    assert found.message.endswith("the one of its range came after it")


@pytest.mark.parametrize("synced", [False, True])
def test_what_is_taken_in_together_is_told_apart_by_its_times(tmp_path: Path, synced: bool) -> None:
    root = tmp_path / ".nbs"
    init(str(tmp_path))
    write_chat(root, "live", [said(9, 1, 20)])
    write_event(root, 5, "pythia-checkpoint", ASKED.format(1, 20))
    if synced:
        with Team(str(root)) as team:
            adoption.sync(team)
    with collect(str(root)) as evidence:
        assert outcome(run(evidence), "checkpoint-preceded").verdict == "clean"


def test_an_assessment_without_an_event_is_named(tmp_path: Path) -> None:
    says = "failure: the assessment of D-1 through D-20 answers no checkpoint event"
    assert verdict(tmp_path, [], [said(9, 1, 20)]) == [says]


def test_the_event_must_come_first(tmp_path: Path) -> None:
    (found,) = verdict(tmp_path, [(10, ASKED.format(1, 20))], [said(9, 1, 20)])
    assert found.endswith("answers no checkpoint event: the one of its range came after it")


def test_one_event_answers_one_assessment(tmp_path: Path) -> None:
    (found,) = verdict(tmp_path, [(5, ASKED.format(1, 20))], [said(9, 1, 20), said(11, 1, 20)])
    assert found.endswith("the one of its range answered another assessment")


def test_the_range_matters_before_the_order(tmp_path: Path) -> None:
    events = [(5, ASKED.format(1, 20)), (6, ASKED.format(21, 40))]
    assert verdict(tmp_path, events, [said(9, 21, 40), said(11, 1, 20)]) == ["clean"]


def test_another_range_is_no_answer(tmp_path: Path) -> None:
    says = "failure: the assessment of D-21 through D-40 answers no checkpoint event"
    assert verdict(tmp_path, [(5, ASKED.format(1, 20))], [said(9, 21, 40)]) == [says]


def test_a_range_that_overlaps_is_a_warning(tmp_path: Path) -> None:
    (found,) = verdict(tmp_path, [(5, ASKED.format(1, 20))], [said(9, 1, 22)])
    assert found.startswith("warning: the assessment covers D-1 through D-22, ")
    assert found.endswith("its checkpoint event asked for D-1 through D-20")


def of_ours(team: Team) -> list[tuple[str, str]]:
    """Where the check finds something once the oldest event is answered by a run of ours."""
    with folder_alone():
        asyncio.run(pythia_run.run(team, PROGRAM, NOW))
    with collect(team.root) as evidence:
        found = outcome(run(evidence), "checkpoint-preceded").findings
    return [(finding.where.rpartition(",")[0], finding.message) for finding in found]


def test_an_event_without_a_range_that_a_run_answered_asked_for_it() -> None:
    with reviewed_team(decisions=2) as (_, team):
        assert of_ours(team) == []
        decide(team, 1)
        bus.publish(team, "sidecar", "pythia-checkpoint", "high", "it is time")
        assert of_ours(team) == []


def test_who_came_first_is_named_and_not_the_answer_that_an_entry_binds() -> None:
    with reviewed_team(decisions=2) as (_, team):
        (due,) = pythia_run.due(team, NOW)
        assert due.first is not None
        assert due.last is not None
        text = said(9, 1, 20).text.replace("D-1 ", f"{due.first} ").replace("D-20 ", f"{due.last} ")
        chat_send.send(team, "live", "pythia", text)
        ((where, message),) = of_ours(team)
        assert where == "chat live, message 1"
        assert message.endswith("the one of its range answered another assessment")
