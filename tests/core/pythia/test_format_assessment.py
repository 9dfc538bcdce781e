"""Pythia's assessments in both layouts, what is none, and the payload that asks for one."""

import doctest

import nbs_team
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.projections.bus import format as bus_format
from tripod.projections.chat import format as chat_format
from tripod.projections.pythia import format as pythia_format
from tripod.projections.pythia.format import Assessment

ARCHITECTURE = """\
## Pythia Checkpoint — 2026-02-12T14:00:00Z

Decisions reviewed: D-1707753600 through D-1707760800 (20 decisions)

### Hidden Assumptions

D-1707753600 assumes one writer, and D-1707753600 again.

### Second-Order Risks

D-1707760800 makes the parser slow.

### Missing Validation

Nothing measured.

### Six-Month Regret Scenario

The input grows.

### Confidence

overall: Medium
A benchmark would change this; high hopes would not.
"""
SKILL = """\
PYTHIA CHECKPOINT — Assessment #3

**Hidden assumption:** D-17 assumes one writer.

**Second-order risk:** D-36 makes the parser slow.
It would show late.

**Missing validation:** Nothing measured.

**Six-month regret:** The river does not ask the stone. The input grows.

**Confidence:** moderate — few decisions, D-36 among them.

---
End of checkpoint. Pythia out.
"""
IDS = st.integers(0, 10**16 - 1).map("D-{}".format)
FRAGMENTS = st.sampled_from([*ARCHITECTURE.splitlines(), *SKILL.splitlines(), "```", "> x", ""])


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(pythia_format).failed == 0


def test_the_layout_of_the_architecture() -> None:
    assert pythia_format.parse_assessment(ARCHITECTURE) == Assessment(
        first="D-1707753600",
        last="D-1707760800",
        count=20,
        sections=pythia_format.SECTIONS,
        confidence="medium",
        cited=("D-1707753600", "D-1707760800"),
    )


def test_the_layout_of_the_skill() -> None:
    assert pythia_format.parse_assessment(SKILL) == Assessment(
        first=None,
        last=None,
        count=None,
        sections=pythia_format.SECTIONS,
        confidence="moderate",
        cited=("D-17", "D-36"),
    )


@pytest.mark.parametrize(
    ("line", "first", "last", "count"),
    [
        ("Decisions reviewed: D-1 through D-2 (1 decision)", "D-1", "D-2", 1),
        ("**Decisions reviewed:** D-1 \u2013 D-2", "D-1", "D-2", None),
        ("Decisions reviewed: D-1 to D-2 (all of them)", "D-1", "D-2", None),
        ("Decisions reviewed: D-1 (1 decisions)", "D-1", "D-1", 1),
        ("Decisions reviewed: all", None, None, None),
    ],
)
def test_the_decisions_reviewed(
    line: str, first: str | None, last: str | None, count: int | None
) -> None:
    reviewed = "Decisions reviewed: D-1707753600 through D-1707760800 (20 decisions)"
    found = pythia_format.parse_assessment(ARCHITECTURE.replace(reviewed, line))
    assert found is not None
    assert (found.first, found.last, found.count) == (first, last, count)


@pytest.mark.parametrize("name", pythia_format.SECTIONS)
@pytest.mark.parametrize("text", [ARCHITECTURE, SKILL])
def test_a_missing_or_an_empty_section_is_not_counted(text: str, name: str) -> None:
    mark = "### " if text is ARCHITECTURE else "**"
    parts = text.split(f"\n{mark}")
    at = 1 + pythia_format.SECTIONS.index(name)
    label = parts[at].split("\n")[0] if text is ARCHITECTURE else parts[at].split(":**")[0] + ":**"
    expected = tuple(section for section in pythia_format.SECTIONS if section != name)
    for kept in ([], [label + "\n\n---\n"]):
        found = pythia_format.parse_assessment(
            f"\n{mark}".join([*parts[:at], *kept, *parts[at + 1 :]])
        )
        assert found is not None
        assert found.sections == expected


@pytest.mark.parametrize(
    "label",
    ["## Hidden assumption", "#### 1. Hidden Assumptions:", "**Hidden Assumptions**:",
     "**1) hidden-assumption:**", "### HIDDEN ASSUMPTIONS"],
)  # fmt: skip
def test_labels_as_agents_vary_them(label: str) -> None:
    found = pythia_format.parse_assessment(f"## Pythia Checkpoint\n\n{label}\nOne writer.\n")
    assert found is not None
    assert found.sections == ("hidden-assumptions",)


def test_a_section_that_stands_twice_keeps_both_texts() -> None:
    found = pythia_format.parse_assessment(ARCHITECTURE + "### Missing Validation\nSee D-99.\n")
    assert found is not None
    assert found.cited == ("D-1707753600", "D-1707760800", "D-99")


@pytest.mark.parametrize(
    "heading",
    ["**PYTHIA CHECKPOINT — Assessment #4**", "# Pythia checkpoint - Assessment 4",
     "PYTHIA CHECKPOINT \u2013 Assessment #4 (early)"],
)  # fmt: skip
def test_headings_of_the_skill_as_agents_vary_them(heading: str) -> None:
    found = pythia_format.parse_assessment(
        f"Here it is.\n\n{heading}\n**Confidence: low** - D-5x, D-6"
    )
    assert found is not None
    assert found.sections == ("confidence",)
    assert found.confidence == "low"
    assert found.cited == ("D-6",)


@pytest.mark.parametrize("text", [ARCHITECTURE, SKILL])
def test_indentation_and_line_ends_change_nothing(text: str) -> None:
    plain = pythia_format.parse_assessment(text)
    assert pythia_format.parse_assessment(text.replace("\n", "\r\n")) == plain
    assert pythia_format.parse_assessment(f"   {text}") == plain
    assert pythia_format.parse_assessment(f"Here:\r\n  {text}") == plain


@pytest.mark.parametrize(
    "text",
    [
        "",
        "    ## Pythia Checkpoint",
        "the Pythia Checkpoint — soon",
        "PYTHIA CHECKPOINT reached",
        "> ## Pythia Checkpoint — 2026-02-12T14:00:00Z",
        f"The template:\n```markdown\n{ARCHITECTURE}```\n",
        f"~~~\n{SKILL}",
        f"````\n```\n{SKILL}",
        f"- ```\n{ARCHITECTURE}".replace("\n", "\n  "),
        f"<!--\n{SKILL.replace('---', '')}-->",
        f"> {SKILL}",
        "Pythia Checkpoint\n---\n",
        "\\## Pythia Checkpoint",
    ],
)
def test_what_is_no_assessment(text: str) -> None:
    assert pythia_format.parse_assessment(text) is None


@pytest.mark.parametrize(
    ("confidence", "word"),
    [
        ("**Confidence:** low\n---\nEnd of checkpoint.", "low"),  # Markdown makes it a heading
        ("__Confidence__ is low", "low"),
        ("**Confidence:** *low*", "low"),
        ("### Confidence ###\n\n- **overall**: low", "low"),
        ("**Confidence:** <low>", ""),  # HTML, which nobody sees
        ("```\n**Confidence:** low\n```", None),
        ("> **Confidence:** low", None),
        ("\\*\\*Confidence:** low", None),
    ],
)
def test_a_section_is_what_a_reader_of_markdown_sees(confidence: str, word: str | None) -> None:
    found = pythia_format.parse_assessment(f"## Pythia Checkpoint\n\n{confidence}\n")
    assert found is not None
    assert found.sections == (("confidence",) if word else ())
    assert found.confidence == (word or "")


def test_a_range_in_a_quotation_or_in_code_is_not_the_range() -> None:
    reviewed = "Decisions reviewed: D-1 through D-2 (2 decisions)"
    head = "## Pythia Checkpoint\n"
    for text in (f"> {reviewed}\n", f"```\n{reviewed}\n```\n", f"    {reviewed}\n"):
        found = pythia_format.parse_assessment(head + text)
        assert found is not None
        assert found.first is None
        found = pythia_format.parse_assessment(f"{head}{text}\n{reviewed.replace('2', '3')}")
        assert found is not None
        assert (found.last, found.count) == ("D-3", 3)


def test_no_more_than_a_limit_is_read() -> None:
    room = pythia_format.LONGEST - len(ARCHITECTURE)
    near = pythia_format.parse_assessment("x\n" * (room // 2) + ARCHITECTURE)
    assert near == pythia_format.parse_assessment(ARCHITECTURE)
    assert pythia_format.parse_assessment("x\n" * (room // 2 + 999) + ARCHITECTURE) != near


@given(st.lists(FRAGMENTS | st.text(max_size=10)).map("\n".join))
def test_nothing_breaks_the_reader(text: str) -> None:
    found = pythia_format.parse_assessment(text)
    if found is not None:
        assert set(found.sections) <= set(pythia_format.SECTIONS)
        assert all(cited in text for cited in found.cited)
        assert (found.first is None) is (found.last is None)


def test_a_long_line_costs_no_more_than_its_length() -> None:
    blanks = " " * 500_000
    for text in (
        f"## Pythia Checkpoint —{blanks}x",
        f"## Pythia Checkpoint\n**Confidence:**{blanks}x",
    ):
        assert pythia_format.parse_assessment(text) is not None


# The payload of the event -----------------------------------------------------------------------


@given(st.integers(0, 10**9 - 1), IDS, IDS)
def test_a_payload_reads_back(count: int, first: str, last: str) -> None:
    text = pythia_format.format_checkpoint_payload(count, first, last)
    assert pythia_format.parse_checkpoint_payload(text) == (count, first, last)
    assert pythia_format.parse_checkpoint_payload(text + "\n") == (count, first, last)


@pytest.mark.parametrize(("count", "first", "last"), [(-1, "D-1", "D-2"), (1, "1", "D-2"),
                                                      (1, "D-1", "D-2.")])  # fmt: skip
def test_a_payload_that_would_not_read_back_is_refused(count: int, first: str, last: str) -> None:
    with pytest.raises(ValueError, match="no checkpoint"):
        pythia_format.format_checkpoint_payload(count, first, last)


@pytest.mark.parametrize("text", ["", "Checkpoint at decision 20.", "20 decisions, D-1 to D-2"])
def test_another_payload(text: str) -> None:
    assert pythia_format.parse_checkpoint_payload(text) is None


def test_the_assessments_of_a_real_team() -> None:
    file = chat_format.split_chat_file(nbs_team.files()["chat/live.chat"])
    assert file is not None
    messages = [message for line in file.lines if (message := chat_format.parse_line(line))]
    found = [(m.handle, a) for m in messages if (a := pythia_format.parse_assessment(m.text))]
    assert [handle for handle, _ in found] == ["pythia", "pythia"]
    ranges = []
    for path, data in nbs_team.matching("events", ".event").items():
        if "pythia-checkpoint" in path:
            parsed = bus_format.parse_event(data)
            assert parsed is not None
            payload = pythia_format.parse_checkpoint_payload(parsed.payload)
            assert payload is not None
            assert pythia_format.format_checkpoint_payload(*payload) == parsed.payload
            ranges.append(payload[1:])
    assert ranges == [(one.first, one.last) for _, one in found]
    for _, one in found:
        assert (one.sections, one.count, one.confidence) == (pythia_format.SECTIONS, 20, "medium")
        assert len(one.cited) == 4
