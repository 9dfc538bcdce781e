"""A turn whose recorded fields have a form that no answer has: the run is folded all the same."""

import json
from typing import Any

import pytest

from tripod.projections.nova.answers import read_answer
from tripod.projections.nova.files import nova_json, nova_status, render_transcript
from tripod.projections.nova.run import NovaRun

PERSONAS = {"core/DCE.md": "dce", "core/CAE.md": "cae", "experts/a.md": "a"}


def content(held: dict[str, Any]) -> bytes:
    return str(held["text"]).encode()


def begun() -> NovaRun:
    config = {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": 2, "concurrency": 1}
    personas = [{"short_name": name, "path": path} for path, name in PERSONAS.items()]
    body = {"run": "r", "question": {"text": "q"}, "config": config, "personas": personas}
    return NovaRun.begun(0, body, content)


def turn(role: str, persona: str, cycle: int, parsed: object) -> dict[str, Any]:
    return {
        "run": "r", "turn": 1, "cycle": cycle, "role": role, "persona": persona, "spawn": "s",
        "content": {"text": "said"}, "parsed": {"text": json.dumps(parsed)}, "parsed_by": "json",
        "epistemic": {"know": "0.9", "uncertainty": "0.1", "source": "stated"},
    }  # fmt: skip


ODD = [5, "x", ["a"], {"a": 1}, [{"severity": "critical"}], [{"severity": 1, "text": "t"}], None]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_fields_count_as_not_there(odd: object) -> None:
    run = begun()
    names = ("experts", "issues", "dissenters", "trade_offs", "proposal", "decision", "confidence")
    fields = dict.fromkeys(names, odd)
    said = [("unpack", "dce", 0), ("expert", "a", 1), ("synthesis", "dce", 1)]
    for seq, (role, persona, cycle) in enumerate(said, 1):
        run.apply(seq, "nova.turn.recorded", turn(role, persona, cycle, fields), content)
    gate = run.due_entry()
    assert gate is not None
    run.apply(4, gate.kind, gate.body, content)
    run.apply(5, "nova.turn.recorded", turn("critique", "cae", 1, fields), content)
    due = run.due_entry()
    assert due is not None
    assert due.body["decision"] == "solid"
    assert run.selected == ("a",)
    assert "said" in render_transcript(run)
    assert nova_json(nova_status(run))


STATED = {"know": 1, "uncertainty": 0}
ANSWERS: dict[str, dict[str, Any]] = {
    "unpack": {"requirements": ["r"], "considerations": ["c"], "experts": ["a"]},
    "expert": {"analysis": "a", "findings": ["f"], "risk_level": "LOW"},
    "synthesis": {
        "proposal": "p", "consensus": ["c"], "trade_offs": ["t"], "dissenters": ["a"],
        "open_questions": ["o"],
    },
    "critique": {"issues": [{"severity": "minor", "text": "t"}], "edge_cases": ["e"]},
    "final": {"decision": "d", "confidence": 0.9},
}  # fmt: skip


@pytest.mark.parametrize("role", ANSWERS)
def test_the_fields_of_an_answer_are_kept(role: str) -> None:
    fields = read_answer(role, json.dumps(ANSWERS[role] | STATED)).fields
    assert set(fields) == set(ANSWERS[role])
    run = begun()
    run.apply(1, "nova.turn.recorded", turn(role, "dce", 1, fields), content)
    assert run.turns[0].fields == fields
