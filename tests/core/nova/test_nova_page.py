"""The page of a Nova run: what it shows, and that no text of a stranger is more than text."""

import json
from typing import Any

from tripod.projections.nova.run import NovaRun
from tripod.report.page import render_nova

HOSTILE = "<script>alert(1)</script> {{ run }} \x1b[31m"


def content(value: dict[str, Any]) -> bytes:
    return str(value["text"]).encode()


def run_of(question: str, *entries: tuple[str, dict[str, Any]]) -> NovaRun:
    personas = [
        {"short_name": "dce", "path": "core/DCE.md"},
        {"short_name": "cae", "path": "core/CAE.md"},
        {"short_name": "security", "path": "experts/security.md"},
    ]
    config = {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": 2}
    opened = {"run": "r", "question": {"text": question}, "config": config, "personas": personas}
    run = NovaRun.begun(0, opened, content)
    for seq, (kind, body) in enumerate(entries, 1):
        run.apply(seq, kind, {"run": "r", **body}, content)
    return run


def turn(number: int, cycle: int, role: str, persona: str, **fields: Any) -> tuple[str, Any]:
    state = {"know": "0.6", "uncertainty": "0.35", "source": "stated"}
    body = {"turn": number, "cycle": cycle, "role": role, "persona": persona, "spawn": "s"}
    said = {
        "content": {"text": f"turn {number}: {HOSTILE}"},
        "parsed": {"text": json.dumps(fields)},
    }
    return "nova.turn.recorded", body | said | {"epistemic": state}


def whole() -> NovaRun:
    return run_of(
        f"Which? {HOSTILE}",
        turn(1, 0, "unpack", "dce", experts=["security"]),
        turn(2, 1, "expert", "security"),
        turn(3, 1, "synthesis", "dce", proposal="this"),
        ("nova.gate.decided", {"cycle": 1, "decision": "proceed"}),
        turn(4, 1, "critique", "cae", issues=[{"severity": "minor", "text": HOSTILE}]),
        ("nova.critique.decided", {"cycle": 1, "decision": "minor"}),
        turn(5, 1, "revision", "dce", proposal=f"that {HOSTILE}"),
        turn(6, 1, "final", "dce", decision=f"that {HOSTILE}"),
        ("nova.finalized", {"outcome": "decided", "confidence": "0.6"}),
    )


def test_a_page_shows_the_decision_the_gate_and_each_turn() -> None:
    page = render_nova(whole()).decode()
    assert "<h1>decided</h1>" in page
    assert "gate 0.35" in page
    assert "<title>cycle 1: uncertainty 0.35</title>" in page
    assert page.count('<h3 id="turn-') == 6
    assert page.count("<title>turn ") == 6  # the marks in the lanes
    assert "<td>proceed<td><td>minor</tr>" in page
    assert page == render_nova(whole()).decode()


def test_texts_of_strangers_are_text() -> None:
    page = render_nova(whole()).decode()
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt; {{ run }}") == 11


def test_a_run_that_only_began_has_a_page() -> None:
    page = render_nova(run_of("Which?")).decode()
    assert "No cycle came to a synthesis." in page
    assert "No synthesis reached the critic." in page
