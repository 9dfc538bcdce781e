"""Runs of Nova that are forked and played again: what is played, what is not, what is compared."""

import json
import sys
from pathlib import Path

import pytest
from docs.pages import ROOT
from doors.inside import Done, begin, run
from reviewed import folder_alone
from worked import panel_module

from tripod.nova.runner import nova_run
from tripod.projections.nova.run import NovaRun
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
