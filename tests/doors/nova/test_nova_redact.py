"""What is redacted of a Nova run is gone from ledger and files, and verify finds no fault."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doors.inside import Done, run
from reviewed import folder_alone
from worked import NAME, PANEL, QUESTION, panel_module

from tripod.projections.engine import file_differences
from tripod.recovery.redaction import texts_to_redact_of
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

DECISION = "Zebra"  # shorter than what is searched everywhere
NOTE = "ask Yves"
PROGRAM = (sys.executable, "-I", "-S", str(PANEL), "--script")


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    assert run(tmp_path, "init").code == 0
    script = panel_module().SCRIPT
    script["final"]["decision"] = DECISION
    script["unpack"]["requirements"] = ["Xerxes"]
    text = json.dumps(script)
    for name in (DECISION, "Xerxes"):  # a file that the program is given is kept: it spells them
        text = text.replace(name, f"\\u{ord(name[0]):04x}{name[1:]}")
    (tmp_path / "script").write_text(text)
    with folder_alone():
        yield tmp_path


def process(team: Path, *options: str, script: str = "script") -> Done:
    words = ("process", QUESTION, *options, "--", *PROGRAM, f"{team}/{script}")
    return run(team, "nova", *words)


def entries(team: Path, kind: str, **fields: Any) -> list[tuple[int, dict[str, Any]]]:
    with Team(f"{team}/.nbs") as opened:
        found = [(e.seq, e.data) for e in opened.store.read() if e.kind == kind and e.body]
    return [one for one in found if fields.items() <= one[1].items()]


def redact(team: Path, *seqs: int) -> Done:
    done = run(team, "redact", *map(str, seqs), "--reason", "it was private", "--as", "ann")
    assert done.code == 0, done
    return done


def holders(team: Path, secret: str) -> list[str]:
    """The entries and the files in which a text stands."""
    with Team(f"{team}/.nbs") as opened:
        found = [
            f"{entry.seq} {entry.kind}"
            for entry in opened.store.read()
            if entry.body is not None
            if any(secret in one for one in texts_to_redact_of(opened.source, entry.data))
        ]
    paths = (path for path in (team / ".nbs").rglob("*") if path.is_file())
    return found + [str(path) for path in paths if secret.encode() in path.read_bytes()]


def check_sound(team: Path) -> None:
    with Team(f"{team}/.nbs") as opened:
        opened.refresh()
        assert list(file_differences(opened.source, opened.disk, evidence=True)) == []
    with collect(f"{team}/.nbs") as evidence:
        assert [f for o in judge(evidence).outcomes for f in o.findings] == []


def test_the_decision_goes_with_the_final_turn(team: Path) -> None:
    assert process(team, "--log", "decisions-log.md").code == 0
    ((seq, _),) = entries(team, "nova.turn.recorded", role="final")
    done = redact(team, seq)
    assert b"nova.finalized" in done.out
    assert holders(team, DECISION) == []
    assert run(team, "rebuild").code == 0
    assert holders(team, DECISION) == []
    check_sound(team)


def test_the_end_of_a_run_names_the_turn_that_still_has_it(team: Path) -> None:
    assert process(team).code == 0
    ((seq, body),) = entries(team, "nova.finalized")
    done = redact(team, seq)
    assert f"`tripod redact {body['final']}` erases that, too" in done.err
    redact(team, body["final"])
    assert holders(team, DECISION) == []
    check_sound(team)
    done = run(team, "redact", str(seq), "--reason", "it was private", "--as", "ann")
    assert "redacted before" in done.err


def test_a_turn_goes_from_the_prompts_of_those_behind_it(team: Path) -> None:
    assert process(team).code == 0
    ((seq, _),) = entries(team, "nova.turn.recorded", role="unpack")
    redact(team, seq)
    assert holders(team, "Xerxes") == []
    check_sound(team)


def test_a_question_and_a_note_go_from_every_prompt(team: Path) -> None:
    assert process(team, "--budget", "2t").code == 1
    words = ("redirect", "--note", NOTE, "--as", "ann")
    assert run(team, "nova", "decide", NAME, *words).code == 0
    run(team, "nova", "resume", NAME, "--", *PROGRAM, f"{team}/script")
    assert len(holders(team, NOTE)) > 2
    ((note, _),) = entries(team, "human.decided")
    redact(team, note)
    assert holders(team, NOTE) == []
    ((opened, _),) = entries(team, "nova.opened")
    redact(team, opened)
    assert holders(team, QUESTION) == []
    says = "cycle 1: 1 expert spoke, and the list of them was erased\n"
    assert says in run(team, "nova", "status", NAME).out.decode()
    check_sound(team)


def test_why_a_turn_was_missed_goes_from_the_end_as_well(team: Path) -> None:
    words = ("nova", "process", QUESTION, "--", "sh", "-c", "echo Walter >&2; exit 3")
    assert run(team, *words).code == 1
    ((seq, _),) = entries(team, "nova.turn.missed")
    # The program's own command line says it too.
    redact(team, seq, *(seq for seq, _ in entries(team, "agent.requested")))
    assert holders(team, "Walter") == []
    check_sound(team)
