"""The one table of a Nova run, its gate, its convergence and the classes of critiques."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.nova.rules import (
    CLOSED,
    SPEAKING,
    STEPS,
    Choice,
    Epistemic,
    Facts,
    Flaws,
    State,
    Verdict,
    converged,
    critique_class,
    gate,
    next_step,
)

STATES: tuple[State, ...] = get_args(State)
EVENTS = sorted({row.event for row in STEPS})
ROUND = Facts(cycle=1, limit=2)
LAST = Facts(cycle=2, limit=2)
N3: tuple[tuple[State, str, Facts, State, bool], ...] = (
    ("opened", "question", ROUND, "unpacking", False),
    ("unpacking", "unpack", ROUND, "analyzing", True),
    ("analyzing", "experts", ROUND, "synthesizing", False),
    ("analyzing", "experts", ROUND._replace(spoken=0), "failed", False),
    ("synthesizing", "synthesis", ROUND, "gating", False),
    ("gating", "gate", ROUND._replace(verdict="investigate"), "analyzing", True),
    ("gating", "gate", LAST._replace(verdict="investigate"), "awaiting_human", False),
    (
        "gating", "gate", ROUND._replace(verdict="investigate", converged=True),
        "awaiting_human", False,
    ),
    ("gating", "gate", LAST, "critiquing", False),
    ("gating", "gate", ROUND._replace(converged=True), "critiquing", False),
    ("critiquing", "critique", ROUND, "deciding", False),
    ("deciding", "class", ROUND._replace(flaws="critical"), "analyzing", True),
    ("deciding", "class", LAST._replace(flaws="critical"), "awaiting_human", False),
    (
        "deciding", "class", ROUND._replace(flaws="critical", converged=True),
        "awaiting_human", False,
    ),
    ("deciding", "class", LAST._replace(flaws="minor"), "revising", False),
    ("deciding", "class", LAST, "finalizing", False),
    ("revising", "revision", ROUND, "finalizing", False),
    ("finalizing", "final", ROUND, "done", False),
    ("awaiting_human", "human", LAST, "finalizing", False),
    ("awaiting_human", "human", LAST._replace(choice="redirect"), "analyzing", True),
    ("awaiting_human", "human", LAST._replace(choice="close"), "done", False),
)  # fmt: skip
"""The rows of the specification's table, each with facts of which it speaks."""


def all_facts() -> Iterator[Facts]:
    for cycle, limit, spoken, verdict, flat, flaws, choice in product(
        (1, 2, 3), (1, 2), (0, 1, 3), get_args(Verdict), (False, True),
        get_args(Flaws), get_args(Choice),
    ):  # fmt: skip
        yield Facts(cycle, limit, spoken, verdict, flat, flaws, choice)


@pytest.mark.parametrize(("source", "event", "facts", "target", "again"), N3)
def test_each_row_of_the_specification_is_one_of_the_table(
    source: State, event: str, facts: Facts, target: State, *, again: bool
) -> None:
    step = next_step(source, event, facts)
    assert step is not None
    assert (step.target, step.again) == (target, again)


def test_the_table_has_no_row_that_the_specification_has_not() -> None:
    told = {(source, event, target) for source, event, _, target, _ in N3}
    extra = {(row.source, row.event, row.target) for row in STEPS} - told
    assert {event for _, event, _ in extra} == {"cancel", "budget", "attempts used up"}
    assert {s for s, event, to in extra if event == "budget" and to == "awaiting_human"} == set(
        SPEAKING
    )
    used_up = {s for s, event, to in extra if event == "attempts used up" and to == "failed"}
    assert used_up == set(SPEAKING) - {"analyzing"}


def test_for_every_state_event_and_facts_at_most_one_row_holds() -> None:
    facts = list(all_facts())
    for source, event in product(STATES, EVENTS):
        rows = [row for row in STEPS if (row.source, row.event) == (source, event)]
        for one in facts:
            holding = [row for row in rows if row.holds(one)]
            # What an event of a state leads to is known for all facts, or the event cannot be.
            assert len(holding) == bool(rows), (source, event, one)
            assert next_step(source, event, one) == (holding[0] if rows else None)


def test_every_open_state_can_be_cancelled_and_none_leaves_a_closed_one() -> None:
    for state in STATES:
        step = next_step(state, "cancel", Facts())
        assert (step is None) == (state in CLOSED)
        assert step is None or step.target == "cancelled"
    assert not [row for row in STEPS if row.source in CLOSED]


def test_every_state_is_reached_and_every_open_one_is_left_by_more_than_cancelling() -> None:
    reached = {"opened"}
    for _ in STATES:
        reached |= {row.target for row in STEPS if row.source in reached}
    assert reached == set(STATES)
    left = {row.source for row in STEPS if row.event != "cancel"}
    assert left == set(STATES) - set(CLOSED)


def test_a_new_cycle_begins_just_where_experts_are_asked() -> None:
    assert {row.again for row in STEPS if row.target == "analyzing"} == {True}
    assert {row.target for row in STEPS if row.again} == {"analyzing"}


# The gate --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uncertainty", "verdict"),
    [("0.35", "proceed"), ("0.3500", "proceed"), ("0.3501", "investigate"), ("0", "proceed"),
     ("1", "investigate"), ("0.3499", "proceed")],
)  # fmt: skip
def test_the_gate_is_strict(uncertainty: str, verdict: str) -> None:
    assert gate(Decimal(uncertainty), Decimal("0.35")) == verdict


SHARE = st.integers(0, 10_000).map(lambda n: Decimal(n) / 10_000)


@given(SHARE, SHARE)
def test_the_gate_compares_decimals(uncertainty: Decimal, threshold: Decimal) -> None:
    above = round(uncertainty * 10_000) > round(threshold * 10_000)
    assert (gate(uncertainty, threshold) == "investigate") is above


# Convergence -----------------------------------------------------------------------------------


def states(*figures: tuple[str, str]) -> list[Epistemic]:
    return [Epistemic(Decimal(know), Decimal(uncertainty)) for know, uncertainty in figures]


FLAT = ("0.5", "0.5")


@pytest.mark.parametrize(
    ("figures", "flat"),
    [
        ([], False),
        ([FLAT], False),
        ([FLAT, FLAT], False),
        ([FLAT, FLAT, FLAT], True),
        ([FLAT, ("0.5499", "0.5"), FLAT], True),
        ([FLAT, ("0.55", "0.5"), FLAT], False),
        ([FLAT, ("0.5", "0.45"), FLAT], False),
        ([FLAT, ("0.5", "0.4501"), FLAT], True),
        ([("0.1", "0.9"), FLAT, FLAT], False),
        ([("0.1", "0.9"), FLAT, FLAT, FLAT], True),
        # Small steps go far: each one counts by itself.
        ([("0.5", "0.5"), ("0.54", "0.46"), ("0.58", "0.42")], True),
    ],
)
def test_two_steps_below_epsilon_take_three_syntheses(
    figures: list[tuple[str, str]], *, flat: bool
) -> None:
    assert converged(states(*figures), Decimal("0.05"), 2) is flat


@given(st.lists(st.tuples(SHARE, SHARE), max_size=6), st.integers(1, 4), SHARE)
def test_convergence_is_what_its_definition_says(
    figures: list[tuple[Decimal, Decimal]], window: int, epsilon: Decimal
) -> None:
    told = [Epistemic(*one) for one in figures]
    steps = [
        max(
            abs(told[n].know - told[n - 1].know), abs(told[n].uncertainty - told[n - 1].uncertainty)
        )
        for n in range(1, len(told))
    ]
    expected = len(steps) >= window and max(steps[-window:]) < epsilon
    assert converged(told, epsilon, window) is expected


# Critiques -------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["critical", "minor"])))
def test_the_class_of_a_critique_is_that_of_its_worst_issue(severities: list[str]) -> None:
    worst = {True: "critical", False: "minor"}["critical" in severities] if severities else "solid"
    assert critique_class(iter(severities)) == worst
