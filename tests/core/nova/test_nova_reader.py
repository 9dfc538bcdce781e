"""What a person is told of a Nova run: how it stands, what to do next, what was wrong."""

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import recorded_panel
import specimens
from docs.pages import ROOT
from doors.inside import begin, run

from tripod.ledger.entry import format_canonical
from tripod.nova.reader import NovaAgent, next_act
from tripod.nova.runner import NovaLimits, cancel_nova, load_personas, nova_run, open_nova
from tripod.projections.nova.run import NovaRun
from tripod.team.team import Team

PROGRAM = ("--", sys.executable, str(ROOT / "examples/nova_panel.py"))
RUNNING = NovaAgent("s", "dce", "unpack", 0, 1, "running")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return begin(tmp_path)


def opened(**config: Any) -> NovaRun:
    limits = {"threshold": "0.35", "epsilon": "0.05", "window": 2, "rounds": 5} | config
    personas = [{"short_name": "dce", "path": "core/DCE.md"}]
    body = {"run": "r", "question": {"text": "?"}, "config": limits, "personas": personas}
    return NovaRun.begun(0, body, lambda value: str(value["text"]).encode())


def applied(found: NovaRun, kind: str, **body: Any) -> NovaRun:
    found.apply(1, kind, {"run": "r", **body}, lambda value: str(value["text"]).encode())
    return found


def test_the_next_act_of_each_stand() -> None:
    assert next_act(opened(), (), "") == (
        "if no command is at it, `tripod nova resume r` goes on: dce (unpack) must speak"
    )
    assert next_act(opened(), (RUNNING,), "") == (
        "wait: programs run; `tripod nova resume r` waits for them and goes on"
    )
    lost = RUNNING._replace(state="lost")
    assert next_act(opened(), (lost,), "").startswith("if no command is at it")
    stopped = applied(opened(), "nova.escalated")
    assert "redirect` allows the budget once more" in next_act(stopped, (), "budget")
    assert "accept` (or redirect, close)" in next_act(stopped, (), "max_rounds")
    closed = applied(opened(), "nova.finalized", outcome="closed")
    assert next_act(closed, (), "") == ""
    failed = applied(opened(), "nova.finalized", outcome="failed")
    assert next_act(failed, (), "").endswith("`tripod nova process` asks again")
    for over in (closed, failed):
        assert "resume r` ends what was left running" in next_act(over, (RUNNING,), "")


def test_a_record_that_skips_its_cycles_is_followed() -> None:
    for kind, body in (
        ("nova.converged", {}),
        ("nova.gate.decided", {"decision": "proceed"}),
        ("nova.critique.decided", {"decision": "minor"}),
        ("nova.turn.missed", {"role": "expert", "cycle": 2**53, "persona": "x", "problem": "p"}),
        ("nova.escalated", {}),
    ):
        found = applied(opened(), kind, **body)
        assert found.number <= 1
        assert found.due_entry() is None or found.state == "failed"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("process",), 2, "question: none given"),
        (("process", *PROGRAM), 2, "question: none given before the `--`"),
        (("process", "--budget", "1t", *PROGRAM), 2, "question: none given before the `--`"),
        (("process", "--file", "q", "--", "no-such-program"), 1, "no program 'no-such-program'"),
        (("show", "nope", "--html", "--json"), 2, "--html and --json"),
        (("cancel", "nope", "--note", "x" * 4_097, "--as", "ann"), 2, "more than 4096 bytes"),
        (
            ("decide", "nope", "close", "--note", "x" * 65_537, "--as", "ann"),
            2,
            "note: 65537 bytes",
        ),
        (("decide", "nope", "close", "--note", "x" * 65_536, "--as", "ann"), 1, "no run 'nope'"),
        (("process", " "), 2, "question: empty"),
        (("process", "?", "--budget", "0t"), 2, "no number of turns from 1t"),
        (("process", "?", "--budget", "5", "--budget", "6"), 2, "5 and 6: give one number"),
        (("process", "?", "--budget", "0.00", *PROGRAM), 2, "with 0 US dollars"),
        (("process", "?", "--threshold", "nan", *PROGRAM), 2, "no number from 0 to 1"),
        (("process", "?", "--", "no-such-program"), 1, "no program 'no-such-program'"),
        (("process", "?", "--file", "q", "--", "true"), 1, "With --file all words"),
        (("status", "nope"), 1, "`tripod nova list` shows them"),
        (("fork", "nope", "--at", "1", *PROGRAM), 1, "`tripod nova list` shows them"),
        (("personas", "init"), 2, "no folder given"),
        (("personas", "check", "nowhere"), 1, "personas init FOLDER` writes a set"),
        (("metrics", "--since", "soon"), 2, "since: soon is no time"),
    ],
)
def test_what_is_wrong_is_said_and_what_to_do(
    folder: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    (folder / "q").write_text("Which?")
    done = run(folder, "nova", *words)
    assert (done.code, said in done.err) == (code, True), done.err


def test_a_question_in_a_file_leaves_all_words_to_the_program(folder: Path) -> None:
    (folder / "q").write_text("Tea or coffee?")
    done = run(folder, "nova", "process", "--file", "q", "--budget", "1t", *PROGRAM)
    assert (done.code, done.out.splitlines()[0]) == (
        1,
        b"tea-or-coffee: a person has to decide, 1 turn, 1 cycle",
    )
    done = run(folder, "nova", "status", "tea-or-coffee")
    assert b"budget: 1 turn, once more for each decision" in done.out
    assert b"next: `tripod nova decide tea-or-coffee redirect`" in done.out


def test_a_run_that_failed_says_why_and_is_not_run_again(folder: Path) -> None:
    done = run(folder, "nova", "process", "?!", "--", "false")
    assert (done.code, done.out.splitlines()[1]) == (1, b"reason: dce: it ended with exit code 1")
    again = run(folder, "nova", "resume", "run", *PROGRAM)
    assert (again.code, "run is over: nothing was run" in again.err) == (1, True)
    assert run(folder, "nova", "fork", "run", "--at", "1", *PROGRAM).code == 1


def test_resume_ends_what_a_killed_cancel_left_running(folder: Path) -> None:
    with Team(f"{folder}/.nbs") as team:
        name = open_nova(team, "Tea?", load_personas(), NovaLimits(), "alex")
        (turn,) = nova_run(team.source, name).due_turns()
        left = recorded_panel.Agent("", ends=False)
        recorded_panel.speak(team, nova_run(team.source, name), turn, 1, left)
        with mock.patch("tripod.nova.runner.end_programs"):
            cancel_nova(team, name, "enough", "ann")
    says = b"next: `tripod nova resume tea` ends what was left running for it"
    assert says in run(folder, "nova", "status", "tea").out.splitlines()
    done = run(folder, "nova", "resume", "tea")
    assert "what still ran for it was ended (1 program)" in done.err
    assert (done.code, b"ends what was left" in done.out) == (1, False)
    assert run(folder, "nova", "resume", "tea").err.endswith("over: nothing was run\n")


@pytest.mark.parametrize("name", ["../..", "../../../x"])
def test_a_run_whose_name_leaves_the_team_directory_is_refused(folder: Path, name: str) -> None:
    """As a stranger may have it, who wrote the ledger anew; nothing is written anywhere."""
    root = f"{folder}/.nbs"
    with Team(root) as team:
        open_nova(team, "Tea?", load_personas(), NovaLimits(), "alex")
    rows = specimens.read(specimens.database(root))
    last = rows[-1]
    body = format_canonical(json.loads(last.body or b"") | {"run": name})
    head = dict(last.head) | {"stream": f"nova/{name}"}
    specimens.forge(root, [*rows[:-1], last._replace(head=head, body=body)])
    before = sorted(folder.parent.rglob("*.md"))
    for words in (["nova", "list"], ["nova", "status", name], ["nova", "show", "tea"], ["rebuild"]):
        done = run(folder, *words)
        assert (done.code, "leaves the team directory; which entry" in done.err) == (3, True)
        assert "report it" not in done.err
    assert b"kinds-known: nova.opened: run: " in run(folder, "verify").out
    assert sorted(folder.parent.rglob("*.md")) == before


def test_a_bad_persona_is_named_by_its_line_in_the_file(folder: Path) -> None:
    assert run(folder, "nova", "personas", "init", "panel").code == 0
    file = folder / "panel/experts/security.md"
    text = file.read_text("utf-8")
    line = 1 + text.splitlines().index("short_name: security")
    file.write_text(text.replace("short_name: security", "short_name: Sec Urity"))
    done = run(folder, "nova", "personas", "check", "panel")
    assert (done.code, f"security.md: front matter: line {line}: short_name" in done.err) == (
        2,
        True,
    )
    file.write_bytes(bytes(10**6))
    done = run(folder, "nova", "personas", "check", "panel")
    assert (done.code, "security.md: it has more than 65536 bytes" in done.err) == (2, True)
