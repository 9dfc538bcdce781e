"""Experts whose programs answer in a stream: what in it is an expert's, and what the program's."""

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_panel import ANALYSES, Agent, panel, said

from tripod.projections.nova.run import DueTurn
from tripod.team import adoption
from tripod.verify.check import CANNOT_TELL, Outcome
from tripod.verify.checks import nova_independence
from tripod.verify.evidence import collect
from tripod.verify.run import run

TOLD = "Here is what a colleague said: " + ANALYSES["security"]
FRAME = " ".join(f"setting{number}" for number in range(20))
"""What a program says of itself in every run."""

FRAMES: dict[str, dict[str, Any]] = {
    "of the program": {"type": "system", "tools": FRAME.split()},
    "a prompt of the program": {
        "type": "attachment",
        "attachment": {"type": "prompt_snapshot", "system": [FRAME]},
    },
    "a note to its model": {"type": "user", "isSynthetic": True, "message": {"content": FRAME}},
    "an error of the program": {
        "type": "assistant",
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": FRAME}]},
    },
    "a failure": {"type": "result", "is_error": True, "result": FRAME},
}
SAYINGS: dict[str, dict[str, Any]] = {
    "the model": {
        "type": "assistant",
        "message": {"model": "m", "content": [{"type": "text", "text": TOLD}]},
    },
    "a tool": {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "content": TOLD}]},
    },
    "a file that is attached": {
        "type": "attachment",
        "attachment": {"type": "file", "filename": "a", "content": TOLD},
    },
    "another program": {"type": "item", "text": TOLD, "session_id": None},
    "no JSON": {"": TOLD},
}


@pytest.fixture
def root(tmp_path: Path) -> str:
    adoption.init(str(tmp_path))
    return str(tmp_path / ".nbs")


def judge(root: str) -> Outcome:
    with collect(root) as evidence:
        (told,) = run(evidence, checks=(nova_independence,)).outcomes
    return told


def _in_stream(turn: DueTurn, *lines: dict[str, Any]) -> Agent:
    """An agent that answers in a stream of Claude Code, with further lines before the result."""
    answer = json.dumps(said(turn.role, turn.persona))
    last = {"type": "result", "result": answer}
    known = ({"session_id": turn.persona} | line for line in (*lines, last))
    plain = (line[""] if "" in line else json.dumps(line) for line in known)
    return Agent("\n".join(plain), order={"output": "claude-stream-json"}, level="folder")


@pytest.mark.parametrize("frame", FRAMES)
def test_words_of_the_program_itself_are_no_experts(frame: str, root: str) -> None:
    """Each expert's stream holds them; in a stream of another program they would be a finding."""
    panel(root, lambda turn, _: _in_stream(turn, FRAMES[frame]))
    told = judge(root)
    assert (told.failures, told.warnings, told.verdict) == (0, 0, CANNOT_TELL)


def test_the_end_of_a_prompt_and_the_beginning_of_an_answer_are_no_words_of_one(root: str) -> None:
    """Neither has twelve in a row of its own, and all experts have both."""
    lines = [
        {"type": kind, "message": {"content": "We all were asked to say this"}}
        for kind in ("user", "assistant")
    ]
    panel(root, lambda turn, _: _in_stream(turn, *lines))
    assert judge(root).failures == 0


@pytest.mark.parametrize("who", SAYINGS)
def test_words_of_another_expert_are_found_in_a_stream(who: str, root: str) -> None:
    """Once for the stream, though the result says them as well."""

    def script(turn: DueTurn, _: int) -> Agent:
        is_odd = turn.persona == "performance"
        return _in_stream(turn, *[line for line in (SAYINGS[who],) * 2 if is_odd])

    panel(root, script)
    told = judge(root)
    (found,) = [one.message for one in told.findings]
    assert "its output (run " in found
    assert found.endswith(", performance) repeats 12 words in a row of security")
