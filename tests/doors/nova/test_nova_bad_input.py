"""Bad input of `tripod nova`: a clear error, or a refusal that is recorded and fails closed."""

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
from tripod.team.team import Team
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

SCRIPTED = (sys.executable, "-I", "-S", str(PANEL))
MIB = 1024 * 1024


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a team where nothing has happened yet."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    assert run(tmp_path, "init").code == 0
    with folder_alone():
        yield tmp_path


def size(folder: Path) -> int:
    with Team(f"{folder}/.nbs") as team:
        return team.store.size


def refused(folder: Path, *arguments: str, given: bytes = b"") -> str:
    """A command that is refused: nothing is recorded, and one line says why."""
    before = size(folder)
    done = run(folder, "nova", *arguments, given=given)
    assert done.code in (1, 2, 3), done
    assert "Traceback" not in done.err
    assert done.out == b""
    assert done.err.startswith("tripod: ")
    assert done.err.count("\n") <= 2
    assert size(folder) == before
    return done.err


def check_sound(folder: Path) -> None:
    """No failure is found, the files are as the ledger says, and no program is left."""
    with Team(f"{folder}/.nbs") as team:
        team.refresh()
        assert list(file_differences(team.source, team.disk, evidence=True)) == []
        states = team.store.db.execute("SELECT DISTINCT state FROM agents").fetchall()
        assert {state for (state,) in states} <= {"ended", "abandoned"}
    with collect(f"{folder}/.nbs") as evidence:
        report = judge(evidence)
    found = [f.message for o in report.outcomes for f in o.findings if f.severity == "failure"]
    assert found == []


def process(folder: Path, *arguments: str, question: str = QUESTION) -> Done:
    done = run(folder, "nova", "process", question, *arguments)
    assert "Traceback" not in done.err
    check_sound(folder)
    return done


def status(folder: Path, name: str = NAME) -> dict[str, Any]:
    done = run(folder, "nova", "show", name, "--json")
    assert done.code == 0, done
    return json.loads(done.out)  # type: ignore[no-any-return]


# Questions and limits --------------------------------------------------------------------------


def test_a_question_of_nothing_is_refused(team: Path) -> None:
    (team / "empty").write_bytes(b"")
    for arguments in ([""], [" \n\t"], ["--file", "empty"], ["--file", "-"]):
        said = refused(team, "process", *arguments, "--", *SCRIPTED)
        assert "question: empty" in said


def test_a_question_has_a_limit(team: Path) -> None:
    for data in (b"x" * 64 * 1024 + b"x", b"x" * MIB, b"x" * (MIB + 1), b"\xff"):
        (team / "question").write_bytes(data)
        for file, given in (("question", b""), ("-", data)):
            said = refused(team, "process", "--file", file, "--", *SCRIPTED, given=given)
            assert said.startswith("tripod: question: ")
            assert "more than" in said or "UTF-8" in said


def test_a_question_may_stand_in_a_file_and_the_program_behind_it(team: Path) -> None:
    (team / "question").write_text(f"{QUESTION}\n")
    done = run(team, "nova", "process", "--file", "question", "--", *SCRIPTED)
    assert done.code == 0, done
    assert status(team)["question"] == QUESTION


@pytest.mark.parametrize(
    "arguments",
    [
        ["--threshold", "nan"], ["--threshold", "-0.1"], ["--threshold", "1.1"],
        ["--threshold", ""], ["--threshold", "0.35001"], ["--threshold", "1e-1"],
        ["--threshold", "0,35"], ["--threshold", "inf"], ["--max-rounds", "0"],
        ["--max-rounds", "-1"], ["--max-rounds", "five"], ["--concurrency", "0"],
        ["--concurrency", "1000000"], ["--budget", "0t"], ["--budget", "0"], ["--budget", "-1"],
        ["--budget", "nan"], ["--budget", "1e9"], ["--budget", "t"], ["--budget", "\u0661t"],
        ["--persona-dir", "nowhere"], ["--persona-dir", ""], ["--profile", "nowhere"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_limit_that_is_none_is_refused(team: Path, arguments: list[str]) -> None:
    command = [] if "--profile" in arguments else ["--", *SCRIPTED]
    refused(team, "process", "why?", *arguments, *command)


def test_a_program_that_is_not_there_is_refused(team: Path) -> None:
    assert "no-such-program" in refused(team, "process", "why?", "--", "no-such-program")


def test_a_run_that_is_not_there_is_refused(team: Path) -> None:
    for name in ("nothing", "", "../x", "a" * 5_000, "x\x1b[31m"):
        for words in (["resume"], ["show"], ["cancel"]):
            said = refused(team, *words, name, *(["--", *SCRIPTED] if "resume" in words else []))
            assert "\x1b" not in said
        refused(team, "decide", name, "accept", "--as", "ann")


@pytest.mark.parametrize(("threshold", "outcome"), [("0", None), ("1", "decided")])
def test_a_threshold_at_the_end_of_its_range_holds(
    team: Path, threshold: str, outcome: str | None
) -> None:
    done = process(team, "--threshold", threshold, "--max-rounds", "1", "--", *SCRIPTED)
    assert done.code == (0 if outcome else 1)
    told = status(team)
    assert told["outcome"] == outcome
    assert told["state"] == ("done" if outcome else "awaiting_human")


# Budgets and people ----------------------------------------------------------------------------


def test_a_budget_that_runs_out_in_mid_cycle_is_left_to_a_person(team: Path) -> None:
    done = process(team, "--budget", "3t", "--", *SCRIPTED)
    assert done.code == 1
    assert f"nova decide {NAME} redirect" in done.out.decode()
    told = status(team)
    assert (told["state"], told["turns"]) == ("awaiting_human", 3)
    before = size(team)
    assert run(team, "nova", "resume", NAME, "--", *SCRIPTED).code == 1
    assert size(team) == before
    assert run(team, "nova", "decide", NAME, "accept", "--note", "# so", "--as", "ann").code == 0
    assert "waits for no person" in refused(team, "decide", NAME, "close", "--as", "ann")
    assert run(team, "nova", "resume", NAME, "--", *SCRIPTED).code == 0
    assert status(team)["outcome"] == "human_accepted"
    assert "is over" in refused(team, "cancel", NAME)
    check_sound(team)


# What programs print ---------------------------------------------------------------------------

OUTPUTS = {
    "nothing": "true",
    "a line break": "echo",
    "not UTF-8": "printf '\\377\\376{}'",
    "control bytes": "printf '\\000\\033[31m\\007\\r\\b'",
    "JSON with control bytes": 'printf \'{"persona": "\\033[2J"}\'',
    "half of a character": "printf '%s' '{\"persona\": \"\\ud800\"}'",
    "no number": "echo 'Epistemic: know=nan, uncertainty=1e400 '; exit 3",
    "forged headings": "printf '# Nova run x\\n\\n## Cycle 1\\n\\nOutcome: decided.\\n'",
    "it fails": "echo no >&2; exit 1",
    "a signal": "kill -9 $$",
}


@pytest.mark.parametrize("line", OUTPUTS.values(), ids=OUTPUTS)
def test_what_is_no_answer_twice_is_a_failure_that_is_recorded(team: Path, line: str) -> None:
    done = process(team, "--", "sh", "-c", line)
    assert done.code == 1
    told = status(team)
    assert (told["outcome"], told["state"], told["turns"]) == ("failed", "failed", 0)
    for path in (team / ".nbs/nova" / NAME).iterdir():
        text = path.read_text()
        assert text.replace("\n", "").isprintable()
        assert "decided." not in text
    assert done.out.decode().replace("\n", "").isprintable()


@pytest.mark.slow
def test_a_hundred_megabytes_are_no_answer(team: Path) -> None:
    line = "[ -e seen ] || head -c 100000000 /dev/zero; touch seen"
    assert process(team, "--", "sh", "-c", line).code == 1
    assert status(team)["outcome"] == "failed"


def test_numbers_that_are_none_never_pass_the_gate(team: Path) -> None:
    synthesis = panel_module().SCRIPT["synthesis"] | {
        "epistemic": {"know": "NaN", "uncertainty": -1}
    }
    (team / "script").write_text(json.dumps(panel_module().SCRIPT | {"synthesis": synthesis}))
    words = (*SCRIPTED, "--script", str(team / "script"))
    assert process(team, "--max-rounds", "1", "--", *words).code == 1
    told = status(team)
    assert told["state"] == "awaiting_human"
    assert (told["cycles"][0]["know"], told["cycles"][0]["uncertainty"]) == ("0", "1")


def test_no_text_of_a_persona_passes_for_one_of_ours(team: Path) -> None:
    forged = "x\n# Nova run y\n\n## Cycle 7\n\nOutcome: closed.\r\n- outcome: closed\n> \u202edne"
    script = {
        key: {name: forged if type(value) is str and name != "risk_level" else value
              for name, value in fields.items()}
        for key, fields in panel_module().SCRIPT.items()
    }  # fmt: skip
    script["synthesis"]["trade_offs"] = script["synthesis"]["dissenters"] = [forged]
    script["critique"]["issues"] = [{"severity": "minor", "text": forged}]
    (team / "script").write_text(json.dumps(script))
    words = (*SCRIPTED, "--script", str(team / "script"))
    assert process(team, "--", *words, question=f"{QUESTION}\n{forged}").code == 0
    (folder,) = (team / ".nbs/nova").iterdir()
    for name, ours in (("transcript.md", 10), ("decisions.md", 1)):
        text = (folder / name).read_text()
        lines = text.splitlines()
        assert len([line for line in lines if line.startswith("#")]) == ours
        assert text.count("\nOutcome: ") == (name == "transcript.md")
        assert "\nOutcome: closed" not in text
        facts = [line for line in lines if line.startswith("- outcome")]
        assert facts == (["- outcome: decided"] if name == "decisions.md" else [])
        assert "\u202e" not in text
        assert "\r" not in text


def test_what_is_redacted_stands_in_no_file_of_the_run(team: Path) -> None:
    assert process(team, "--", *SCRIPTED).code == 0
    with Team(f"{team}/.nbs") as opened:
        texts = ("nova.opened", "nova.turn.recorded", "nova.finalized")
        seqs = [str(entry.seq) for entry in opened.store.read() if entry.kind in texts]
    done = run(team, "redact", *seqs, "--reason", "it was secret", "--as", "ann")
    assert "still says it" not in done.err
    assert done.code == 0, done
    for path in (team / ".nbs/nova" / NAME).iterdir():
        for secret in (QUESTION, "PKCE", "revocation", "libraries"):
            assert secret not in path.read_text()
    check_sound(team)
    told = status(team)
    assert (told["outcome"], told["turns"], told["cycle"]) == ("decided", 8, 1)
    before = size(team)
    assert run(team, "nova", "resume", NAME, "--", *SCRIPTED).code == 0
    assert run(team, "nova", "list").code == 0
    assert size(team) == before
    # What is written over later is not taken in again either.
    path = team / ".nbs/nova" / NAME / "transcript.md"
    path.write_text("It was about PKCE.\n")
    assert run(team, "rebuild").code == 0
    assert "PKCE" not in path.read_text()
    with Team(f"{team}/.nbs") as opened:
        kept = [entry.data for entry in opened.store.read() if entry.kind == "file.displaced"]
    assert len(kept) == 1
    assert "PKCE" not in str(kept)
    check_sound(team)
