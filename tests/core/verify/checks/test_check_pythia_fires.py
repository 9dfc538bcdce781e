"""Where an interval was reached, a review was asked for: by number, by id, or by order."""

from pathlib import Path

import pytest
from team_files import START, Decision, Said, judge, outcome, write_chat, write_event, write_log

from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.evidence import collect
from tripod.verify.run import run

ASKED = "Checkpoint at decision {}. Decisions D-{} through D-{}."


def files(root: Path, decisions: int, interval: int | None) -> None:
    """A team of the original tools: one message, ``decisions`` that refer to it, a second apart."""
    write_chat(root, "live", [Said(0, "alex", "hello")])
    write_log(root, [Decision(at, "live.chat:~L7") for at in range(1, decisions + 1)])
    if interval is not None:
        (root / "events").mkdir(parents=True, exist_ok=True)
        (root / "events" / "config.yaml").write_text(f"pythia-interval: {interval}\n")


def told(root: Path) -> Outcome:
    return outcome(judge(root), "pythia-fires")


def fires(root: Path) -> Outcome:
    with collect(str(root / ".nbs")) as evidence:
        return outcome(run(evidence), "pythia-fires")


def log(team: Team, title: str) -> None:
    decisions_log.log(
        team, decisions_log.DecisionRequest(title, ["ann"], "why", refs=["live.chat:~L7"])
    )


@pytest.fixture
def team(tmp_path: Path) -> Team:
    adoption.init(str(tmp_path))
    (tmp_path / ".nbs" / "events").mkdir(exist_ok=True)
    (tmp_path / ".nbs" / "events" / "config.yaml").write_text("pythia-interval: 2\n")
    team = Team(str(tmp_path / ".nbs"))
    chat_send.create(team, "live", actor="ann")
    chat_send.send(team, "live", "ann", "hello")
    return team


@pytest.mark.parametrize(
    ("decisions", "interval", "events", "verdict"),
    [
        (1, 2, [], "not applicable"),
        (3, 2, [], "findings"),
        (3, 0, [], "not applicable"),
        (21, None, [], "findings"),  # twenty is the documented default
        (19, None, [], "not applicable"),
        (3, 2, [(2, ASKED.format(2, START + 1, START + 2))], "clean"),
        (3, 2, [(2, "")], "clean"),  # behind the decision, and it names nothing
        (5, 2, [(4, ASKED.format(2, START + 1, START + 2))], "findings"),  # it names the first
        (3, 2, [(2, ASKED.format(2, 1, 1))], "findings"),  # decisions that there are not
        (3, 2, [(2, ASKED.format(2, 1, START + 2))], "findings"),
        (5, 2, [(9, ""), (8, ASKED.format(2, START + 1, START + 2))], "clean"),
    ],
)
def test_each_interval_has_its_event(
    tmp_path: Path,
    decisions: int,
    interval: int | None,
    events: list[tuple[int, str]],
    verdict: str,
) -> None:
    files(tmp_path, decisions, interval)
    for at, payload in events:
        write_event(tmp_path, at, "pythia-checkpoint", payload)
    assert told(tmp_path).verdict == verdict


def test_the_finding_names_the_decision(tmp_path: Path) -> None:
    files(tmp_path, 3, 2)
    (found,) = told(tmp_path).findings
    assert found.message == (
        f"decision 2 (D-{START + 2}) reached the interval of 2, and no pythia-checkpoint event"
        " followed"
    )
    assert found.severity == "failure"


def test_what_others_log_has_until_the_next_decision(tmp_path: Path) -> None:
    files(tmp_path, 2, 2)
    said = told(tmp_path)
    assert (said.verdict, said.coverage["not yet judged"]) == ("clean", 1)


def test_one_event_answers_one_interval(tmp_path: Path) -> None:
    files(tmp_path, 5, 2)
    write_event(tmp_path, 3, "pythia-checkpoint", "")
    (found,) = told(tmp_path).findings
    assert "decision 4 " in found.message


def test_many_findings_are_counted(tmp_path: Path) -> None:
    files(tmp_path, 100, 2)
    found = told(tmp_path)
    assert (len(found.findings), found.failures) == (49, 49)  # the newest is not judged yet


def test_the_past_is_told_and_fails_nothing(tmp_path: Path) -> None:
    files(tmp_path / ".nbs", 3, 2)
    adoption.init(str(tmp_path))
    (found,) = fires(tmp_path).findings
    assert (found.severity, found.before_adoption) == ("warning", True)


def test_our_own_decisions_ask_by_themselves(tmp_path: Path, team: Team) -> None:
    with team:
        for number in range(4):
            log(team, f"Rule {number}")
    said = fires(tmp_path)
    assert said.verdict == "clean"
    assert said.coverage == {"intervals reached": 2, "checkpoint events": 2}


def test_the_interval_counts_as_it_was_when_the_decision_was_logged(
    tmp_path: Path, team: Team
) -> None:
    config = tmp_path / ".nbs" / "events" / "config.yaml"
    with team:
        log(team, "One")
        config.write_text("pythia-interval: 0\n")
        log(team, "Two")  # nothing is asked for
        config.write_text("pythia-interval: 3\n")
        log(team, "Three")
    said = fires(tmp_path)
    assert said.verdict == "clean"
    assert said.coverage == {"intervals reached": 1, "checkpoint events": 1}


def test_an_event_by_hand_before_the_decision_answers_nothing(tmp_path: Path, team: Team) -> None:
    with team:
        bus.publish(team, "ann", "pythia-checkpoint", "high", ASKED.format(2, 1, 2))
        (tmp_path / ".nbs" / "events" / "config.yaml").write_text("pythia-interval: 2\n\n")
        log(team, "One")
        log(team, "Two")
    assert fires(tmp_path).verdict == "clean"  # by its own event, the second
