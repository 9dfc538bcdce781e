"""Runs of Nova that are forked and played again: what is played, what is not, what is compared."""

import json
import sys
from pathlib import Path
from unittest import mock
from unittest.mock import ANY

import pytest
import recorded_panel
from docs.pages import ROOT
from doors.inside import Done, begin, run
from reviewed import folder_alone
from worked import panel_module

from tripod.nova.runner import NovaLimits, load_personas, nova_run, open_nova, settle_nova
from tripod.projections.nova.files import render_nova_decision
from tripod.projections.nova.run import DueTurn, NovaRun
from tripod.team.team import Team

PROGRAM = ("--", sys.executable, str(ROOT / "examples/nova_panel.py"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = panel_module().SCRIPT
    (tmp_path / "silent.json").write_text(
        json.dumps({key: said for key, said in script.items() if key != "security"})
    )
    return begin(tmp_path)


def nova(folder: Path, *words: str) -> Done:
    with folder_alone():
        return run(folder, "nova", *words)


def run_of(folder: Path, name: str) -> NovaRun:
    with Team(f"{folder}/.nbs") as team:
        return nova_run(team.source, name)


def stopped(folder: Path) -> None:
    """A run that a person has to decide after its fifth turn."""
    nova(folder, "process", "Tea?", "--threshold", "0.3", "--max-rounds", "1", *PROGRAM)


def test_where_a_person_decides_otherwise_the_program_of_a_fork_answers(folder: Path) -> None:
    stopped(folder)
    nova(folder, "decide", "tea", "accept", "--as", "ann")
    assert nova(folder, "resume", "tea", *PROGRAM).code == 0
    nova(folder, "fork", "tea", "--at", "6", *PROGRAM)
    nova(folder, "decide", "tea-2", "redirect", "--as", "ann")
    nova(folder, "resume", "tea-2", *PROGRAM)
    forked = run_of(folder, "tea-2")
    assert (forked.state, forked.number, len(forked.turns)) == ("awaiting_human", 2, 9)


def test_a_fork_counts_turns_as_they_were_recorded(folder: Path) -> None:
    """Where an expert was silent, those behind it are told a number that is not that of a turn."""
    script = str(folder / "silent.json")
    nova(folder, "process", "Tea?", *PROGRAM, "--script", script)
    parent = run_of(folder, "tea")
    assert list(parent.cycles[0].missed) == ["security"]
    live = (*PROGRAM[:2], "-c", "raise SystemExit(1)")
    nova(folder, "fork", "tea", "--at", "3", *live)
    forked = run_of(folder, "tea-2")
    assert [turn.text for turn in forked.turns] == [turn.text for turn in parent.turns[:3]]
    assert list(forked.cycles[0].missed) == ["security"]


# Replays ---------------------------------------------------------------------------------------


def replayed(folder: Path, name: str = "tea") -> dict[str, object]:
    done = nova(folder, "replay", name, "--json")
    assert done.out, done.err
    value: dict[str, object] = json.loads(done.out)
    assert done.code == (0 if value["same"] else 1)
    return value


def test_the_replay_of_an_open_or_cancelled_run_stops_where_the_record_does(folder: Path) -> None:
    with Team(f"{folder}/.nbs") as team:
        name = open_nova(team, "Tea?", load_personas(), NovaLimits(), "alex")
        recorded_panel.play(team, name, most=2)
        assert 2 <= len(settle_nova(team, name).turns) <= 4
    same = {"version": 1, "run": "tea", "same": True, "difference": [], "stops": True}
    assert replayed(folder) == same
    assert nova(folder, "cancel", "tea", "--as", "ann").code == 0
    assert replayed(folder) == same
    assert b"up to where the record stops" in nova(folder, "replay", "tea").out


def test_the_replay_of_a_run_that_a_person_redirected_stops_there(folder: Path) -> None:
    stopped(folder)
    nova(folder, "decide", "tea", "redirect", "--note", "Mint?", "--as", "ann")
    assert (replayed(folder)["same"], replayed(folder)["stops"]) == (True, True)


def test_an_answer_whose_agent_was_told_to_end_is_played_as_well(folder: Path) -> None:
    def script(turn: DueTurn, _: int) -> recorded_panel.Agent:
        status = "cancelled" if turn.role == "unpack" else "ok"
        return recorded_panel.Agent(recorded_panel.said(turn.role, turn.persona), status=status)

    with Team(f"{folder}/.nbs") as team:
        name = open_nova(team, "Tea?", load_personas(), NovaLimits(), "alex")
        assert recorded_panel.play(team, name, script).state == "done"
    assert (replayed(folder)["same"], replayed(folder)["stops"]) == (True, False)


def test_a_replay_compares_the_decision_as_well(folder: Path) -> None:
    nova(folder, "process", "Tea?", *PROGRAM)
    assert (replayed(folder)["same"], replayed(folder)["stops"]) == (True, False)

    def other(run: NovaRun, decision: str, last: int) -> str:
        return render_nova_decision(run, decision, last) + f"{next(drawn)}\n"

    drawn = iter(range(2))
    with mock.patch("tripod.nova.replay.render_nova_decision", other):
        found = replayed(folder)
    assert found["difference"] == [
        "--- recorded decisions.md", "+++ replayed decisions.md", ANY, "-0", "+1",
    ]  # fmt: skip


def test_what_was_erased_is_not_played(folder: Path) -> None:
    nova(folder, "process", "Tea?", *PROGRAM)
    with Team(f"{folder}/.nbs") as team:
        ended = [one.seq for one in team.store.read() if one.kind == "agent.ended"]
    redact = ("redact", str(ended[2]), "--reason", "x", "--as", "ann")
    assert b"agent.ended" in run(folder, *redact).out
    for words in (("replay", "tea"), ("fork", "tea", "--at", "8", *PROGRAM)):
        done = nova(folder, *words)
        assert (done.code, "an output of its runs was erased" in done.err) == (1, True), done.err
    assert nova(folder, "status", "tea-2").code == 1
