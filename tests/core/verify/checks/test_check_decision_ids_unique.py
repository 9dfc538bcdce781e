"""No id for two decisions: a failure of files alone and from adoption on, a warning of the past."""

from pathlib import Path

import pytest
from team_files import Decision, Said, judge, outcome, write_chat, write_log

from tripod.team import adoption
from tripod.verify.evidence import collect
from tripod.verify.run import run

REF = "live.chat:~L7"


def write(root: Path, *seconds: int) -> None:
    """Decisions logged at these seconds, all with a reference that resolves."""
    write_chat(root, "live", [Said(0, "alex", "hello")])
    write_log(root, [Decision(at, REF) for at in seconds])


@pytest.mark.parametrize(("seconds", "twice"), [((5, 6), 0), ((5, 5), 1), ((5, 5, 5, 6, 6), 2)])
def test_without_a_ledger_it_is_a_failure(
    tmp_path: Path, seconds: tuple[int, ...], twice: int
) -> None:
    write(tmp_path, *seconds)
    report = judge(tmp_path)
    told = outcome(report, "decision-ids-unique")
    assert (told.failures, told.warnings, report.exit_code) == (twice, 0, int(twice > 0))
    assert not any(one.before_adoption for one in told.findings)


def test_what_was_adopted_is_a_warning_and_what_comes_later_a_failure(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    write(root, 5, 5, 6)
    log = root / "scribe" / "log.md"
    adoption.init(str(tmp_path))
    with collect(str(tmp_path)) as evidence:
        report = run(evidence)
    (found,) = outcome(report, "decision-ids-unique").findings
    assert (found.severity, found.before_adoption, report.exit_code) == ("warning", True, 0)
    again = log.read_text().partition("\n### ")[2].rpartition("\n### ")[2]
    log.write_text(f"{log.read_text()}\n### {again}")  # the last of them once more
    with collect(str(tmp_path)) as evidence:
        report = run(evidence)
    told = outcome(report, "decision-ids-unique")
    assert [one.severity for one in told.findings] == ["failure", "warning"]
    assert report.exit_code == 1
