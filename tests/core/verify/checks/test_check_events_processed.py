"""What lies in the queue beyond ack-timeout, by the entries' own time; no clock is asked."""

from pathlib import Path

import pytest
from reviewed import event_of, reviewed_team
from specimens import database, forge, read
from team_files import START, Decision, Said, judge, outcome, write_chat, write_event, write_log

from tripod.bus import events as bus
from tripod.bus import reader
from tripod.chat import writer as chat_send
from tripod.projections.bus.format import Event, event_name, format_event, format_time
from tripod.pythia import review as pythia_run
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.evidence import collect
from tripod.verify.run import run

CHECKPOINT = ("scribe", "pythia-checkpoint", "high")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A team whose configuration asks for answers within two minutes."""
    root = tmp_path / ".nbs"
    (root / "events").mkdir(parents=True)
    (root / "events" / "config.yaml").write_text("ack-timeout: 120\n")
    adoption.init(str(tmp_path))
    return root


def after(root: Path, seconds: int) -> None:
    """Say something, as if so long after all that was recorded before."""
    with Team(str(root)) as team:
        chat_send.create(team, "later", actor="ann")
    rows = read(database(str(root)))
    at = rows[-2].head["at"]
    minute = int(at[14:16]) + seconds // 60
    later = f"{at[:11]}{int(at[11:13]) + minute // 60:02}:{minute % 60:02}{at[16:]}"
    rows[-1] = rows[-1].headed(at=later)
    forge(str(root), rows)


def processed(root: Path) -> Outcome:
    with collect(str(root)) as evidence:
        return outcome(run(evidence), "events-processed")


def publish(root: Path, source: str, type_: str, priority: str) -> str:
    with Team(str(root)) as team:
        return bus.publish(team, source, type_, priority, "")


def at_midnight(root: Path) -> None:
    """Move all that is recorded to a midnight, so that hours can be added to it."""
    rows = read(database(str(root)))
    forge(
        str(root),
        [row.headed(at=f"2020-01-01T00:00:00.{seq:06}Z") for seq, row in enumerate(rows)],
    )


def test_without_such_an_event_there_is_nothing_to_judge(root: Path) -> None:
    publish(root, "ann", "task-complete", "high")
    assert processed(root).verdict == "not applicable"


@pytest.mark.parametrize(("seconds", "count"), [(60, 0), (120, 0), (180, 1), (7200, 1)])
def test_a_checkpoint_event_is_processed_in_time(root: Path, seconds: int, count: int) -> None:
    name = publish(root, *CHECKPOINT)
    at_midnight(root)
    after(root, seconds)
    said = processed(root)
    assert len(said.findings) == count
    for found in said.findings:
        message = f"{name} (pythia-checkpoint) is pending for {seconds} s, ack-timeout is 120 s"
        assert (found.message, found.severity) == (message, "failure")


def test_one_that_asks_for_nothing_is_settled_once_acknowledged(root: Path) -> None:
    name = publish(root, *CHECKPOINT)
    with Team(str(root)) as team:
        bus.ack(team, name, actor="ann")
    at_midnight(root)
    after(root, 7200)
    said = processed(root)
    assert said.coverage == {"checkpoint events": 1, "pending": 0, "ack-timeout": 120}
    assert said.verdict == "clean"


def test_a_critical_event_is_a_warning_and_others_are_none(root: Path) -> None:
    publish(root, "parser", "task-blocked", "critical")
    publish(root, "parser", "task-complete", "high")
    at_midnight(root)
    after(root, 600)
    (found,) = processed(root).findings
    assert "(task-blocked) is pending for 600 s" in found.message
    assert found.severity == "warning"


def test_a_claim_that_runs_is_somebody_at_it(root: Path) -> None:
    publish(root, *CHECKPOINT)
    with Team(str(root)) as team:
        assert reader.claim(team, "ann", lease=3600) is not None
    at_midnight(root)
    after(root, 600)
    assert processed(root).verdict == "clean"


def test_failures_are_listed_before_warnings(root: Path) -> None:
    for _ in range(45):
        publish(root, "parser", "task-blocked", "critical")
    publish(root, *CHECKPOINT)
    at_midnight(root)
    after(root, 600)
    found = processed(root).findings
    assert [one.severity for one in found] == ["failure", *["warning"] * 45]


def test_without_a_timeout_only_the_next_checkpoint_tells(tmp_path: Path) -> None:
    root = tmp_path / ".nbs"
    adoption.init(str(tmp_path))
    first = publish(root, *CHECKPOINT)
    assert processed(root).verdict == "clean"
    publish(root, *CHECKPOINT)
    (found,) = processed(root).findings
    assert (
        found.message == f"{first} (pythia-checkpoint) is pending while a later one was published"
    )
    assert found.severity == "warning"


def pending(root: Path, us: int) -> None:
    """A pending checkpoint event of the original tools."""
    (root / "events").mkdir(parents=True, exist_ok=True)
    event = Event(*CHECKPOINT, format_time(us), "scribe:pythia-checkpoint", "")
    (root / "events" / event_name(us, *CHECKPOINT[:2], 7)).write_bytes(format_event(event))
    (root / "events" / "config.yaml").write_text("ack-timeout: 120\n")


def test_without_a_ledger_the_files_say_the_time(tmp_path: Path) -> None:
    write_chat(tmp_path, "live", [Said(900, "ann", "Anybody here?")])
    pending(tmp_path, 1_795_294_600_000_000)
    (found,) = outcome(judge(tmp_path), "events-processed").findings
    assert "is pending for 900 s" in found.message


def test_what_was_pending_at_adoption_is_a_warning(tmp_path: Path) -> None:
    pending(tmp_path / ".nbs", 1_700_000_000_000_000)
    adoption.init(str(tmp_path))
    (found,) = processed(tmp_path / ".nbs").findings
    assert (found.severity, found.before_adoption) == ("warning", True)


def test_what_is_not_taken_in_yet_has_no_age(root: Path) -> None:
    pending(root, 1_700_000_000_000_000)
    assert processed(root).verdict == "clean"


ASSESSED = "## Pythia Checkpoint - today\n\nDecisions reviewed: D-{} through D-{}\n"


@pytest.mark.parametrize("ledger", ["before", "after", "between", "none"])
@pytest.mark.parametrize("reviewed", [True, False])
def test_other_programs_answer_in_a_chat(tmp_path: Path, ledger: str, *, reviewed: bool) -> None:
    root = tmp_path / ".nbs"
    ids = START, START + 3
    if ledger == "before":
        adoption.init(str(tmp_path))
    write_log(root, [Decision(0, "live.chat:~L7"), Decision(3, "live.chat:~L7")])
    payload = "Checkpoint at decision 2. Decisions D-{} through D-{}.".format(*ids)
    write_event(root, 4, "pythia-checkpoint", payload)
    (event,) = (root / "events/processed").iterdir()
    if ledger == "between":
        event.rename(root / "events" / event.name)
        adoption.init(str(tmp_path))
        (root / "events" / event.name).rename(event)
    text = ASSESSED.format(*ids) if reviewed else "Not now."
    write_chat(root, "live", [Said(1, "alex", "So it is."), Said(9, "pythia", text)])
    if ledger == "after":
        adoption.init(str(tmp_path))
    if ledger == "none":
        found = outcome(judge(root), "events-processed").findings
    else:
        with Team(str(root)) as team:
            adoption.sync(team)
            assert len(pythia_run.due(team, 0)) == (ledger != "after" and not reviewed)
        found = processed(root).findings
    message = f"{event.name} (pythia-checkpoint) was acknowledged, and no assessment answers it"
    severity = "failure" if ledger == "before" else "warning"
    assert [(f.message, f.severity) for f in found] == ([] if reviewed else [(message, severity)])


def test_a_review_that_runs_is_waited_for() -> None:
    with reviewed_team() as (_, team):
        name = event_of(team)
        reader.claim(team, "boss", name)
        bus.ack_all(team)
        assert processed(Path(team.root)).verdict == "clean"
        assert pythia_run.due(team, 0)[0].claimed == "boss"
