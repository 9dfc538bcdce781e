"""An assessment held against the template: what is missing is named, what is there is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.pythia.format import (
    TITLES,
    DecisionRange,
    Judged,
    judge_review,
    parse_assessment,
)

ASKED = DecisionRange("D-17", "D-36", 20)
KNOWN = frozenset(f"D-{number}" for number in range(1, 37))
WHOLE = """## Pythia Checkpoint — 2026-02-12T14:00:00Z

Decisions reviewed: D-17 through D-36 (20 decisions)

### Hidden Assumptions

- D-20 takes *nothing* for granted (`D-21` neither).

### Second-Order Risks

> Quoted, and still a text.

### Missing Validation

1. D-20 again.

### Six-Month Regret Scenario

```
a block of code
```

### Confidence

**overall:** Medium
A test would change it.
"""


def problems(old: str, new: str) -> list[str]:
    """What is wrong with the whole one after a change."""
    assert old in WHOLE
    return judge_review(WHOLE.replace(old, new), ASKED, KNOWN).problems


def test_a_whole_one_has_no_problem() -> None:
    assert judge_review(WHOLE, ASKED, KNOWN) == Judged([], "medium", ("D-20", "D-21"))
    windows = WHOLE.replace("\n", "\r\n")
    assert judge_review(windows, ASKED, KNOWN).problems == []


@pytest.mark.parametrize("time", ["2026-02-12T14:00Z", "2026-02-12 14:00:00.5+05:45"])
@pytest.mark.parametrize("dash", ["-", "\u2013", "—", "--"])
@pytest.mark.parametrize("confidence", ["high", "LOW\n", "overall: medium — because"])
def test_spellings_that_are_taken(time: str, dash: str, confidence: str) -> None:
    text = WHOLE.replace("— 2026-02-12T14:00:00Z", f"{dash} {time}")
    text = text.replace("**overall:** Medium", confidence)
    assert judge_review(text, ASKED, KNOWN).problems == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("## Pythia Checkpoint — 2026-02-12T14:00:00Z\n", "", "it does not begin with"),
        ("## Pythia", "# Pythia", "it does not begin with"),
        ("## Pythia", "Here it is.\n\n## Pythia", "it does not begin with"),
        ("2026-02-12T14:00:00Z", "today", "it does not begin with"),
        ("14:00:00Z", "14:00:00", "it does not begin with"),
        ("### Confidence", "## Confidence", "it has a second header"),
        ("Decisions reviewed: ", "Reviewed: ", "`Decisions reviewed: D-17 through D-36 (20"),
        ("D-17 through", "D-16 through", "it says to have reviewed D-16 through D-36"),
        ("(20 decisions)", "(19 decisions)", "and was asked for D-17 through D-36 (20"),
        ("### Missing Validation", "### Missing", "its sections (###) are not"),
        ("### Missing Validation", "**Missing Validation**", "its sections (###) are not"),
        ("### Confidence", "### Confidence\n\nhigh\n\n### More", "its sections (###) are not"),
        ("> Quoted, and still a text.", "", "Second-Order Risks: nothing stands there"),
        ("> Quoted, and still a text.", "***", "Second-Order Risks: nothing stands there"),
        ("> Quoted, and still a text.", "<Consequences of it.>", "Second-Order Risks: nothing"),
        ("1. D-20 again.", "<!-- later -->", "Missing Validation: nothing stands there"),
        ("```\na block of code\n```", "```\n```", "Six-Month Regret Scenario: nothing"),
        ("Medium", "moderate", "it does not begin with high, medium or low"),
        ("Medium", "high | medium | low", "it does not begin with high, medium or low"),
        ("**overall:** Medium", "<one of: high>", "Confidence: nothing stands there"),
        ("D-20 again", "D-37 again", "it cites D-37: no decision of the log"),
        ("D-20 again", "D-1, D-020 again", "it cites D-020: no decision of the log"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, problem: str) -> None:
    assert problem in "; ".join(problems(old, new))


def test_sections_in_another_order_are_named() -> None:
    one, other = TITLES[:2]
    text = WHOLE.replace(one, "?").replace(other, one).replace("?", other)
    (problem,) = judge_review(text, ASKED, KNOWN).problems
    assert problem.endswith("in this order: Second-Order Risks, Hidden Assumptions, Missing "
                            "Validation, Six-Month Regret Scenario, Confidence")  # fmt: skip


def test_many_unknown_decisions_are_counted() -> None:
    cited = " ".join(f"D-{number}" for number in range(100, 109))
    (problem,) = problems("D-20 again", cited)
    assert problem == (
        "it cites D-100, D-101, D-102, D-103, D-104 and 4 more: no decision of the log"
    )


def test_a_template_in_a_block_of_code_is_no_assessment() -> None:
    assert judge_review(f"```\n{WHOLE}\n```\n", ASKED, KNOWN).problems
    assert judge_review("", ASKED, KNOWN).problems == ["it is empty"]
    assert judge_review(" \n\n", ASKED, KNOWN).problems == ["it is empty"]


def test_two_ranges_are_one_too_many_for_who_reads_lines() -> None:
    twice = "> Decisions reviewed: D-1 through D-2 (2 decisions)\n\nDecisions reviewed: D-17"
    assert problems("Decisions reviewed: D-17", twice)


@given(
    st.lists(
        st.sampled_from([*WHOLE.splitlines(keepends=True), "# x\n", "<b>", "```\n", "D-99\n"]),
        max_size=30,
    ).map("".join)
    | st.text(max_size=200)
)
def test_whatever_it_is_given_it_answers_and_agrees_with_who_reads_lines(text: str) -> None:
    judged = judge_review(text, ASKED, KNOWN)
    if not judged.problems:
        said = parse_assessment(text)
        assert said is not None
        assert (said.first, said.last, said.count) == ASKED
        assert said.confidence == judged.confidence
        assert set(judged.cited) <= KNOWN
