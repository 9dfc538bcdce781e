"""However many old findings a check has, it names a new one; and old ones alone fail nothing."""

import json
import re
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from crowded import NEW, REWRITTEN, Crowd, crowd
from nbs_team import ARCHIVE, unpack
from specimens import build, database, unguarded

from tripod.team.act import draft_event_for_act
from tripod.team.adoption import init
from tripod.team.team import Team
from tripod.trust import seal
from tripod.verify.anchors.selection import advises
from tripod.verify.check import Outcome, Report
from tripod.verify.checks import CHECKS
from tripod.verify.evidence import collect
from tripod.verify.finding import KEPT
from tripod.verify.reporters import json as json_
from tripod.verify.reporters import text
from tripod.verify.run import run

NO_WARNINGS = {
    "ledger-missing",
    "sequence",
    "canonical-bytes",
    "chain-links",
    "bodies-present",
    "kinds-known",
    "clock-forward",
    "writers-authorised",
    "seals-open",
    "never-read",
    *(check.NAME for check in CHECKS if check.NAME.startswith("nova-")),
    "sessions-whole",
    "witnesses-agree",
}
"""Checks whose findings all fail the run (of a strange schema ``sequence`` gives one warning)."""

APART = {"record-agrees", "peers-agree", "trailers-agree"}
"""Checks that have a test of their own: below, and in ``core/verify/peers/test_peers_agree.py``."""


def judge(team: Crowd) -> dict[str, Outcome]:
    with collect(str(team.project)) as evidence:
        report = run(evidence)
    assert report.problem == ""
    return {one.check: one for one in report.outcomes}


def least(check: str, count: int) -> int:
    """How many old warnings of a check there are at least."""
    return min(count, REWRITTEN) if check == "append-only" else count


def alone(outcome: Outcome) -> Report:
    """The report of a run that selects one check."""
    return Report("x", (outcome,))


def test_every_check_is_asked() -> None:
    names = {check.NAME for check in CHECKS if not advises(check)}
    assert NEW.keys() | NO_WARNINGS | APART == names


@pytest.mark.drawn
@pytest.mark.parametrize("count", [0, 19, 20, 21, 39, 40, 41, 200])
def test_old_warnings_hide_no_failure_and_are_none(tmp_path: Path, count: int) -> None:
    team = crowd(tmp_path / "crowd", count)
    for name, told in judge(team).items():
        messages = [one.message for one in told.findings if one.severity == "failure"]
        assert (name, told.failures, messages) == (name, 0, [])
        assert alone(told).exit_code != 1
        assert name not in NEW or told.warnings >= least(name, count), name
    deeds = []
    for deed, _ in NEW.values():
        if deed not in deeds:
            deed(team)
            deeds.append(deed)
    outcomes = judge(team)
    for name, (_, says) in NEW.items():
        told = outcomes[name]
        messages = [one.message for one in told.findings if one.severity == "failure"]
        assert [says in message for message in messages].count(True), (name, messages)
        assert (name, len(messages), told.findings[0].severity) == (name, told.failures, "failure")
        assert (name, told.warnings >= least(name, count)) == (name, True)
        report = alone(told)
        assert report.exit_code == 1
        assert says in text.render(report)
        assert says in json_.render(report)


@pytest.mark.drawn
@pytest.mark.parametrize("count", [0, 19, 20, 21, 40, 200])
def test_strays_in_a_record_hide_no_failure_and_are_none(tmp_path: Path, count: int) -> None:
    root = Path(build(str(tmp_path / "team")))
    with Team(str(root)) as team:
        seal.new_sealing_key(team)
    for number in range(count):
        (root / f"record/stray-{number}").write_bytes(b"x")

    def told() -> Outcome:
        with collect(str(root)) as evidence:
            report = run(evidence, select=["record-agrees"])
        return report.outcomes[0]

    assert (told().failures, told().warnings) == (0, count)
    (path,) = (root / "record/tile/entries").rglob("*.p/*")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    found = told()
    assert (found.failures, found.warnings, alone(found).exit_code) == (1, count, 1)
    assert found.findings[0].where == path.relative_to(root).as_posix()


def test_more_failures_than_are_kept_are_counted(tmp_path: Path) -> None:
    root = build(str(tmp_path))
    with Team(root) as team, team.act() as act:
        for _ in range(KEPT + 50):
            act.append([draft_event_for_act(act, "ann", "note", "low", "")])
    with unguarded(database(root)) as db:
        db.execute("UPDATE entries SET salt = zeroblob(32) WHERE kind = 'bus.published'")
        count = db.execute("SELECT changes()").fetchone()[0]
    with collect(database(root)) as evidence:
        report = run(evidence, select=["bodies-present"])
        assert evidence.altered_below(1) is False
    told = report.outcomes[0]
    assert told.failures == report.failures == count > KEPT
    assert (len(told.findings), told.left_out) == (KEPT, {("failure", False): count - KEPT})
    said = json.loads(json_.render(report))["checks"][0]
    assert (said["failures"], len(said["findings"])) == (count, KEPT)
    left = {"severity": "failure", "before_adoption": False, "count": count - KEPT}
    assert said["left_out"] == [left]
    assert f"bodies-present: and {count - text.SHOWN} more findings\n" in text.render(report)
    assert f"{count} findings" in text.render(report)


def test_a_large_team_of_the_original_tools_is_adopted_green(tmp_path: Path) -> None:
    """The golden team as it would be after 22 times as many decisions, its events pruned."""
    unpack(ARCHIVE, tmp_path)
    root = tmp_path / ".nbs"
    log = root / "scribe/log.md"
    pieces = log.read_text().partition("\n### D-")[2]
    chat = root / "chat/live.chat"
    lines = chat.read_bytes().splitlines()
    reviews = [line for line in lines[6:] if b"Pythia Checkpoint" in b64decode(line)]
    assert len(reviews) == 2
    for turn in range(1, 22):

        def later(found: re.Match[str], turn: int = turn) -> str:
            return f"D-{int(found[1]) + 1000 * turn}"

        with log.open("a") as file:
            file.write(re.sub(r"D-(1795294\d\d\d)", later, f"\n### D-{pieces}"))
        for line in reviews:
            review = re.sub(r"D-(1795294\d\d\d)", later, b64decode(line).decode())
            lines.append(b64encode(review.encode()))
    chat.write_bytes(b"\n".join(lines) + b"\n")
    init(str(tmp_path))
    with collect(str(tmp_path)) as evidence:
        report = run(evidence)
    told = {one.check: one for one in report.outcomes}
    assert (report.exit_code, report.failures) == (0, 0)
    assert told["pythia-fires"].coverage["intervals reached"] == 50
    assert told["pythia-fires"].warnings == 48
    assert told["checkpoint-preceded"].warnings == 42
    assert "pythia-fires: and 28 more warnings (before adoption)\n" in text.render(report)
    with log.open("a") as file:
        file.write(re.sub(r"D-(1795294\d\d\d)", r"D-9\g<1>", f"\n### D-{pieces}"))
    with collect(str(tmp_path)) as evidence:
        report = run(evidence)
    found = [one for each in report.outcomes for one in each.findings if one.severity == "failure"]
    assert {one.check for one in found} == {"pythia-fires"}
    assert (report.exit_code, report.failures) == (1, 2)
