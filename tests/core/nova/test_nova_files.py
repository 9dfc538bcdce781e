"""The files of a Nova run, and what is printed of one: whole, quoted, and without disguise."""

import json
from pathlib import Path
from typing import Any

import recorded_panel
from doors.inside import begin

from tripod.cli.nova import _lines, _progress
from tripod.nova.reader import NovaStanding
from tripod.projections.nova.files import (
    nova_event,
    nova_json,
    nova_status,
    nova_turns,
    render_nova_decision,
    render_transcript,
)
from tripod.projections.nova.rules import UNTOLD
from tripod.projections.nova.run import NovaRun
from tripod.team.team import Team

CONFIG = {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": 1, "concurrency": 1}


def ended(decision: str, **end: Any) -> NovaRun:
    """A run that a person sent on to its only turn, the final one."""
    body = {"run": "r", "question": "why?\u061c", "config": CONFIG, "personas": []}
    run = NovaRun.begun(0, body, lambda value: str(value).encode())
    run.state, run.escalated = "awaiting_human", 1
    rows: list[tuple[str, dict[str, Any]]] = [
        ("human.decided", {"choice": "accept", "note": "# so"}),
        ("nova.turn.recorded", {
            "turn": 1, "cycle": 1, "role": "final", "persona": "dce", "spawn": "s",
            "content": "so  \n\nbe it", "parsed": json.dumps({"decision": decision}),
        }),
        ("nova.finalized", {"outcome": "human_accepted", "decision": decision} | end),
    ]  # fmt: skip
    for seq, (kind, row) in enumerate(rows, 2):
        run.apply(seq, kind, row, lambda value: str(value).encode(), "ann\u061c")
    return run


def test_the_transcript_has_what_a_person_decided_and_each_blank() -> None:
    text = render_transcript(ended("so be it"))
    assert "A person, ann\\u061c, decided: accept.\n\n> # so\n\n## Cycle 1" in text
    assert "> so  \n>\n> be it" in text
    assert "\u061c" not in text + nova_json(nova_status(ended("x")))
    assert json.loads(nova_json(nova_status(ended("x"))))["question"] == "why?\u061c"


def test_a_state_that_nobody_stated_is_said_to_be_none() -> None:
    run = ended("so be it", confidence="0")
    run.turns[-1] = run.turns[-1]._replace(epistemic=UNTOLD, is_missing=True)
    why = "know 0, uncertainty 1 (these count, as it stated none that can be read)"
    assert f"\n\n{why}\n\n" in render_transcript(run)
    fact = "\n- confidence: 0, as the final turn does not say what it knows\n"
    assert fact in render_nova_decision(run, "so be it", 4)


def test_the_decision_says_which_person_decided() -> None:
    text = render_nova_decision(ended("so be it"), "so be it", 4)
    assert "\n- a person decided: accept (ann\\u061c)\n" in text


def test_the_status_has_the_decision_and_the_turns_are_whole() -> None:
    run = ended("so be it")
    assert nova_status(run)["decision"] == "so be it"
    assert [(one["role"], one["text"]) for one in nova_turns(run)] == [("final", "so  \n\nbe it")]


def test_no_line_of_a_decision_passes_for_one_of_ours() -> None:
    run = ended("yes\nnext: `rm -r .`", confidence="0.9")
    status = nova_status(run) | {"reason": None}
    printed = "\n".join(_lines(NovaStanding(run, status, (), "", ""))).splitlines()
    assert printed[1:3] == ["yes", "    next: `rm -r .`"]


def test_files_that_an_act_wrote_beside_a_look_at_all_are_known_to_the_next(tmp_path: Path) -> None:
    """A folder among the logs has each command look at all files anew."""
    folder = begin(tmp_path)
    (folder / ".nbs/scribe/dir.md").mkdir()
    recorded_panel.panel(f"{folder}/.nbs")
    with Team(f"{folder}/.nbs") as team:
        assert [one.data["path"] for one in team.store.read() if one.kind == "file.displaced"] == []


def test_a_cost_that_nobody_stated_is_not_zero() -> None:
    assert "no cost stated" in list(_progress(ended("yes")))[-1]


def test_events_hold_no_texts_of_people_and_personas() -> None:
    texts = {"reason": "x", "problem": "x", "mislabelled": "x", "note": "x", "decision": "x"}
    assert json.loads(nova_event(1, "nova.finalized", texts)) == {
        "kind": "nova.finalized",
        "seq": 1,
    }
    assert json.loads(nova_event(1, "nova.escalated", {"reason": "budget"}))["reason"] == "budget"
