"""A status change refers to a decision that exists, earlier, once."""

from pathlib import Path

import pytest
from team_files import judge, outcome

from tripod.projections.decisions.format import (
    DecisionText,
    format_decision,
    format_decision_log_header,
)
from tripod.team import adoption
from tripod.verify.evidence import collect
from tripod.verify.run import run

Row = tuple[int, str | None, str, str]  # id, supersedes, status, rationale


def write(root: Path, rows: list[Row]) -> None:
    """A decision log of the original tool."""
    text = format_decision_log_header("sample", "2026-11-21T20:56:00Z", "scribe")
    for number, supersedes, status, rationale in rows:
        text += format_decision(
            DecisionText(
                f"D-{number}",
                "A rule",
                supersedes,
                "live.chat:~L7",
                "ann",
                "",
                "",
                status,
                rationale,
            )
        )
    (root / "scribe").mkdir(parents=True)
    (root / "scribe" / "log.md").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([(1, None, "", "a")], ["not applicable"]),
        ([(1, None, "", "a"), (2, "D-1", "superseded", "b")], ["clean"]),
        ([(1, None, "", "a"), (2, "D-1", "", "b"), (3, "D-2", "reversed", "c")], ["clean"]),
        ([(1, None, "", "a"), (2, None, "mitigated", "as D-1 asks")], ["clean"]),
        (
            [(1, None, "", "a"), (2, None, "mitigated", "as D-11 asks")],
            ["warning: D-2 is said to be mitigated, and names no decision"],
        ),
        ([(1, "D-1", "", "a")], ["failure: D-1 supersedes D-1, which is itself"]),
        (
            [(1, "D-2", "reversed", "a"), (2, None, "", "b")],
            ["failure: D-1 reverses D-2, which is a later one"],
        ),
        (
            [(1, "D-2", "", "a"), (2, "D-1", "", "b")],  # a circle has a step that goes forward
            ["failure: D-1 supersedes D-2, which is a later one"],
        ),
        (
            [(1, None, "", "a"), (2, "the old one", "mitigated", "b")],
            ["failure: D-2 mitigates the old one, which is no decision"],
        ),
        (
            [(1, None, "", "a"), (2, "D-1", "", "b"), (3, "D-1", "", "c")],
            ["failure: D-3 supersedes D-1, as D-2 did already"],
        ),
    ],
)
def test_references(tmp_path: Path, rows: list[Row], says: list[str]) -> None:
    write(tmp_path, rows)
    told = outcome(judge(tmp_path), "supersession")
    assert ([f"{f.severity}: {f.message}" for f in told.findings] or [told.verdict]) == says


def test_the_past_is_told_and_fails_nothing(tmp_path: Path) -> None:
    write(tmp_path / ".nbs", [(1, "D-7", "", "a")])
    adoption.init(str(tmp_path))
    with collect(str(tmp_path)) as evidence:
        (found,) = outcome(run(evidence), "supersession").findings
    assert (found.severity, found.before_adoption) == ("warning", True)


@pytest.mark.parametrize("failing", [0, 1])
def test_many_findings_are_counted_and_none_hides_a_failure(tmp_path: Path, failing: int) -> None:
    rows: list[Row] = [(number, None, "reversed", "a") for number in range(1, 51)]
    write(tmp_path, [*rows, *[(90, "D-99", "", "b")] * failing])
    told = outcome(judge(tmp_path), "supersession")
    assert (told.failures, told.warnings) == (failing, 50)
    assert [one.severity for one in told.findings] == ["failure"] * failing + ["warning"] * 50
