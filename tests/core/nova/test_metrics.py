"""Figures over Nova runs: each by an example that is computed by hand, and none of nothing."""

import json
from decimal import Decimal
from typing import Any

import pytest

from tripod.projections.nova.metrics import (
    METRICS,
    MetricValue,
    TimedRun,
    metric_text,
    nova_metrics,
    worked_time,
)
from tripod.projections.nova.run import NovaRun

SECOND = 1_000_000
DECIDED = ("nova.finalized", {"outcome": "decided"})
MINOR = {"severity": "minor", "text": "mobile?"}
CRITICAL = {"severity": "critical", "text": "a hole"}


def content(value: dict[str, Any]) -> bytes:
    return str(value["text"]).encode()


def run_of(*entries: tuple[str, dict[str, Any]]) -> NovaRun:
    personas = [
        {"short_name": name, "path": path}
        for name, path in (
            ("dce", "core/DCE.md"),
            ("cae", "core/CAE.md"),
            *((name, f"experts/{name}.md") for name in ("one", "two", "three")),
        )
    ]
    config = {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": 5}
    opened = {"run": "r", "question": {"text": "?"}, "config": config, "personas": personas}
    run = NovaRun.begun(0, opened, content)
    for seq, (kind, body) in enumerate(entries, 1):
        run.apply(seq, kind, {"run": "r", **body}, content)
    return run


def turn(
    role: str, cycle: int = 1, persona: str = "dce", *, state: str = "", **fields: Any
) -> tuple[str, Any]:
    body: dict[str, Any] = {
        "turn": 1,
        "cycle": cycle,
        "role": role,
        "persona": persona,
        "spawn": "s",
        "content": {"text": ""},
        "parsed": {"text": json.dumps(fields)},
    }
    if state:
        know, uncertainty = state.split("/")
        body["epistemic"] = {"know": know, "uncertainty": uncertainty, "source": "stated"}
    return "nova.turn.recorded", body


def missed(persona: str, cycle: int = 1) -> tuple[str, Any]:
    body = {"cycle": cycle, "role": "expert", "persona": persona, "spawns": [], "problem": "silent"}
    return "nova.turn.missed", body


def gate(decision: str, cycle: int = 1) -> tuple[str, Any]:
    return "nova.gate.decided", {"cycle": cycle, "decision": decision}


def flaws(decision: str, cycle: int = 1) -> tuple[str, Any]:
    return "nova.critique.decided", {"cycle": cycle, "decision": decision}


def analyses(cycle: int = 1) -> list[tuple[str, Any]]:
    return [
        turn("expert", cycle, "one", findings=["No revocation.", "Slow"]),
        turn("expert", cycle, "two", findings=["no  revocation"]),
        turn("expert", cycle, "three", findings=["three libraries"]),
    ]


def worked_example() -> NovaRun:
    return run_of(
        turn("unpack", 0, state="0.40/0.70", experts=["one", "two", "three"]),
        *analyses(),
        turn("synthesis", state="0.75/0.35", proposal="p", dissenters=[]),
        gate("proceed"),
        turn("critique", persona="cae", issues=[MINOR]),
        flaws("minor"),
        turn("revision", proposal="q"),
        turn("final", state="0.90/0.15", decision="d"),
        DECIDED,
    )


def two_cycles() -> NovaRun:
    """One expert of two speaks in each cycle; a critical flaw, then none; somebody dissents."""
    return run_of(
        turn("unpack", 0, state="0.50/0.60", experts=["one", "two"]),
        turn("expert", 1, "one", findings=["a"]),
        missed("two"),
        turn("synthesis", 1, state="0.6/0.3", proposal="p", dissenters=["two"]),
        gate("proceed"),
        turn("critique", persona="cae", issues=[CRITICAL]),
        flaws("critical"),
        turn("expert", 2, "one", findings=["A!"]),
        missed("two", 2),
        turn("synthesis", 2, state="0.7/0.2", proposal="p", dissenters=["two"]),
        gate("proceed", 2),
        turn("critique", 2, persona="cae", issues=[]),
        flaws("solid", 2),
        turn("final", 2, state="0.70/0.50", decision="d"),
        DECIDED,
    )


def failed() -> NovaRun:
    return run_of(
        turn("unpack", 0, state="0.1/0.9", experts=["one"]),
        missed("one"),
        ("nova.finalized", {"outcome": "failed"}),
    )


def figures(*runs: TimedRun) -> dict[str, MetricValue]:
    return {one.name: one for one in nova_metrics(runs)}


def test_each_figure_of_the_worked_example() -> None:
    found = figures(TimedRun(worked_example(), 12 * SECOND))
    assert {name: (one.value, one.counted, one.meets) for name, one in found.items()} == {
        "consensus rate": (Decimal(1), 1, True),
        "critique rate": (Decimal(1), 1, True),
        "revision rate": (Decimal(1), 1, None),
        "confidence": (Decimal("0.9"), 1, True),
        "time to decision": (Decimal(12), 1, True),
        "turns per decision": (Decimal(8), 1, True),
        "expert utilization": (Decimal(1), 3, True),
        "learning delta": (Decimal("0.5"), 1, True),
        "uncertainty reduction": (Decimal("-0.55"), 1, True),
        "finding yield": (Decimal(3), 1, True),
    }


def test_each_figure_of_three_runs() -> None:
    runs = [
        TimedRun(worked_example(), 100 * SECOND),
        TimedRun(two_cycles(), 600 * SECOND),
        TimedRun(failed(), 5 * SECOND),
    ]
    found = figures(*runs)
    assert {name: (one.value, one.counted, one.meets) for name, one in found.items()} == {
        "consensus rate": (Decimal("0.3333"), 3, False),  # one dissents, one has no synthesis
        "critique rate": (Decimal(1), 2, True),  # the first critique of the second run counts
        "revision rate": (Decimal(1), 2, None),  # revised, and gone into another cycle
        "confidence": (Decimal("0.8"), 2, False),
        "time to decision": (Decimal(350), 2, False),
        "turns per decision": (Decimal("8.0"), 2, True),  # 8 and 8
        "expert utilization": (Decimal("0.625"), 8, False),  # 3 of 3, 1 of 2 twice, 0 of 1
        "learning delta": (Decimal("0.35"), 2, True),
        "uncertainty reduction": (Decimal("-0.325"), 2, True),
        "finding yield": (Decimal("2.0"), 2, False),  # 3, and `a` twice; one expert, one cycle: no
    }


def test_nothing_gives_no_figure() -> None:
    for runs in ([], [TimedRun(run_of(turn("unpack", 0, state="0.4/0.7")), None)]):
        found = figures(*runs)
        assert list(found) == [metric.name for metric in METRICS]
        assert {(one.value, one.counted, one.meets) for one in found.values()} == {(None, 0, None)}
        assert all("no figure" in metric_text(one) for one in found.values())


def test_a_run_that_no_critic_saw_counts_in_no_rate_of_critiques() -> None:
    found = figures(TimedRun(failed(), SECOND))
    assert (found["critique rate"].value, found["revision rate"].value) == (None, None)
    assert (found["consensus rate"].value, found["confidence"].value) == (Decimal(0), None)


@pytest.mark.parametrize(
    ("name", "reached", "missed"),
    [
        ("consensus rate", "0.8", "0.7999"),
        ("critique rate", "0.6", "0.5999"),
        ("confidence", "0.9", "0.8999"),
        ("time to decision", "299.9", "300"),
        ("turns per decision", "9.9", "10"),
        ("expert utilization", "0.7001", "0.7"),
        ("learning delta", "0.2", "0.1999"),
        ("uncertainty reduction", "-0.3", "-0.2999"),
        ("finding yield", "3", "2.9"),
    ],
)
def test_the_border_of_each_target(name: str, reached: str, missed: str) -> None:
    (metric,) = (one for one in METRICS if one.name == name)
    assert metric.meets is not None
    assert (metric.meets(Decimal(reached)), metric.meets(Decimal(missed))) == (True, False)


def test_time_in_which_a_person_had_to_decide_does_not_count() -> None:
    waited = [
        ("nova.opened", 0),
        ("nova.turn.recorded", 3),
        ("nova.escalated", 5),
        ("human.decided", 1_000),
        ("nova.escalated", 1_010),
        ("nova.finalized", 2_000),  # cancelled while a person had to decide
        ("checkpoint.named", 2_001),
    ]
    assert worked_time(waited) == 15
    assert worked_time(waited[:3]) is None
    assert worked_time([]) is None


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    assert worked_time([("nova.opened", 50), ("nova.finalized", 20)]) == 0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        ("0.6667", "share", "66.7 %, of 3 runs"),
        ("8.5", "number", "8.5, of 3 runs"),
        ("12.25", "seconds", "12.2 s, of 3 runs"),
        ("-0.555", "change", "-0.56, of 3 runs"),
    ],
)
def test_a_figure_as_people_read_it(value: str, unit: Any, text: str) -> None:
    assert metric_text(MetricValue("n", Decimal(value), unit, 3, "runs", None, "", "")) == text
