"""Every check has a specimen that it alone names; without the check that specimen passes."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from specimens import ADVISED, SPECIMENS, Specimen, copy, database, read, unguarded

from tripod.chat import writer as chat_send
from tripod.team.team import Team
from tripod.verify.anchors.selection import advises
from tripod.verify.check import CANNOT_TELL, Finding, Report
from tripod.verify.check import outcome as outcome_of
from tripod.verify.checks import CHECKS
from tripod.verify.evidence import collect
from tripod.verify.finding import finding_fingerprint
from tripod.verify.run import run


def judge(root: str, without: str = "") -> Report:
    """The report on a team directory, with all checks or all but one."""
    with collect(root) as evidence:
        return run(evidence, checks=tuple(c for c in CHECKS if without != c.NAME))


def blaming(report: Report) -> set[str]:
    """The checks that found something, warnings about the schema's triggers apart."""
    return {outcome.check for outcome in report.outcomes if outcome.failures}


def misplaced(report: Report, root: str) -> list[tuple[str, str]]:
    """Findings whose file is not written as a path of the team, or whose line is not in it."""
    top, manual = Path(root).parent, Path("docs/reference/checks.md").read_text(encoding="utf-8")
    found = []
    for finding in (one for outcome in report.outcomes for one in outcome.findings):
        path, line = top / finding.file, finding.line or 1
        ours = finding.file == Path(root).name or finding.file.startswith(f"{Path(root).name}/")
        lines = path.read_bytes().count(b"\n") + 1 if path.is_file() else line
        explained = f"\n## {finding.check}\n" in manual
        if not (ours or path.is_file()) or line > lines or not explained:
            found.append((finding.check, f"{finding.file}:{finding.line}"))
    return found


_LINE = re.compile(r"(?<=:)\d+$|(?<=@@ line )\d+(?= @@)|(?<=\bline )\d+")


def moved(finding: Finding) -> Finding:
    """The finding as it would be told if seven lines stood above it in the file."""

    def down(text: str) -> str:
        return _LINE.sub(lambda line: str(int(line[0]) + 7), text)

    line = finding.line and finding.line + 7
    shown = tuple(map(down, finding.evidence))
    return replace(
        finding, line=line, where=down(finding.where), message=down(finding.message), evidence=shown
    )


def named_by_lines(report: Report) -> list[tuple[str, str, tuple[str, ...]]]:
    """Findings whose fingerprint would change if lines moved, or that share one with another."""
    found = [finding for outcome in report.outcomes for finding in outcome.findings]
    prints = Counter(finding.fingerprint for finding in found)
    return [
        (finding.check, finding.message, finding.evidence)
        for finding in found
        if finding_fingerprint(finding, "") != finding_fingerprint(moved(finding), "")
        or not finding.fingerprint
        or prints[finding.fingerprint] > 1
    ]


def test_a_sound_team_is_clean(sound: str) -> None:
    report = judge(sound)
    assert [finding for outcome in report.outcomes for finding in outcome.findings] == []
    assert report.exit_code == 0
    assert report.head is not None
    assert report.head[0] > 45


def test_every_check_has_a_specimen() -> None:
    shown = {specimen.check for specimen in (*SPECIMENS, *ADVISED)}
    assert {check.NAME for check in CHECKS} == shown
    assert {check.NAME for check in CHECKS if advises(check)} == {
        specimen.check for specimen in ADVISED
    }


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda s: f"{s.check}: {s.says}")
def test_a_specimen_is_named_by_its_check_alone(
    specimen: Specimen, sound: str, tmp_path: Path
) -> None:
    root = copy(sound, str(tmp_path))
    specimen.do(root)
    report = judge(root)
    assert report.exit_code == 1
    assert blaming(report) == {specimen.check}
    messages = [finding.message for outcome in report.outcomes for finding in outcome.findings]
    assert any(specimen.says in message for message in messages)
    assert misplaced(report, root) == []
    assert named_by_lines(report) == []
    assert blaming(judge(root, without=specimen.check)) == set()


@pytest.mark.parametrize("specimen", ADVISED, ids=lambda s: s.check)
def test_advice_is_told_by_its_check_alone_and_fails_nothing(
    specimen: Specimen, sound: str, tmp_path: Path
) -> None:
    root = copy(sound, str(tmp_path))
    specimen.do(root)
    report = judge(root)
    assert (report.exit_code, report.failures, report.warnings, report.advised) == (0, 0, 0, 1)
    ((found,),) = [outcome.findings for outcome in report.outcomes if outcome.findings]
    assert (found.check, found.severity) == (specimen.check, "advice")
    assert misplaced(report, root) == []
    assert named_by_lines(report) == []
    assert specimen.says in found.message


def test_the_check_that_breaks_is_a_finding_and_stops_no_other(
    sound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_evidence: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(CHECKS[3], "judge", broken)
    report = judge(sound)
    assert len(report.outcomes) == len(CHECKS)
    assert blaming(report) == {CHECKS[3].NAME}
    assert report.outcomes[3].findings[0].message == "the check broke: RuntimeError: no such thing"
    assert all(o.verdict != CANNOT_TELL for o in report.outcomes)


@pytest.mark.parametrize("where", ["../beside", "workers/\0.md"])
def test_a_place_that_no_path_of_the_team_can_have_is_told_as_it_is(
    sound: str, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    name = CHECKS[3].NAME
    told = outcome_of(name, [Finding(name, "a worker of a strange name", where)], {})
    monkeypatch.setattr(CHECKS[3], "judge", lambda _evidence: told)
    assert [found.file for found in judge(sound).outcomes[3].findings] == [where]


@pytest.mark.parametrize(
    ("odd", "check"),
    [
        (("chat.rotated", {"header": {"text": 5}}), "chat-refs-resolve"),
        (("decision.logged", {"observed": {"raw": {"text": 5}}}), "count-from-grep"),
        (("bus.published", {"payload": {"text": 5}}), "pythia-fires"),
    ],
)
def test_bytes_of_another_shape_break_no_check(
    odd: tuple[str, dict[str, object]],
    check: str,
    sound: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ledger's own checks name them."""
    monkeypatch.setattr(chat_send, "ROTATE_ABOVE", 6)
    monkeypatch.setattr(chat_send, "ROTATE_COUNT", 4)
    root = copy(sound, str(tmp_path))
    with Team(root) as team:
        chat_send.send(team, "live", "bench", "one more")
    types = (None, "pythia-checkpoint")  # of an event
    seq, row = next(
        (seq, row)
        for seq, row in enumerate(read(database(root)))
        if row.head["kind"] == odd[0] and row.data.get("type") in types
    )
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET body = ? WHERE seq = ?", (row.saying(**odd[1]).body, seq))
    report = judge(root)
    assert "bodies-present" in blaming(report)
    (told,) = [outcome for outcome in report.outcomes if outcome.check == check]
    assert not [one.message for one in told.findings if "the check broke" in one.message]
