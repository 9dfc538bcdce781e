"""Runs of Nova that are forked and played again: what is played, what is not, what is compared."""

import json
import random
import shutil
import string
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from unittest import mock
from unittest.mock import ANY

import pytest
import recorded_panel
from docs.pages import ROOT
from doors.inside import Done, begin, run
from reviewed import folder_alone
from worked import panel_module

from tripod.nova.replay import PLAYER
from tripod.nova.runner import NovaLimits, load_personas, nova_run, open_nova, settle_nova
from tripod.projections.nova.files import render_nova_decision
from tripod.projections.nova.run import DueTurn, NovaRun
from tripod.projections.nova.turns import format_tape
from tripod.team.team import Team
from tripod.verify.checks import nova_independence
from tripod.verify.evidence import collect
from tripod.verify.run import run as judge

PROGRAM = ("--", sys.executable, str(ROOT / "examples/nova_panel.py"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = panel_module().SCRIPT
    (tmp_path / "silent.json").write_text(
        json.dumps({key: said for key, said in script.items() if key != "security"})
    )
    return begin(tmp_path)


def nova(folder: Path, *words: str) -> Done:
    with folder_alone():
        return run(folder, "nova", *words)


def run_of(folder: Path, name: str) -> NovaRun:
    with Team(f"{folder}/.nbs") as team:
        return nova_run(team.source, name)


def stopped(folder: Path) -> None:
    """A run that a person has to decide after its fifth turn."""
    nova(folder, "process", "Tea?", "--threshold", "0.3", "--max-rounds", "1", *PROGRAM)


def test_where_a_person_decides_otherwise_the_program_of_a_fork_answers(folder: Path) -> None:
    stopped(folder)
    nova(folder, "decide", "tea", "accept", "--as", "ann")
    assert nova(folder, "resume", "tea", *PROGRAM).code == 0
    nova(folder, "fork", "tea", "--at", "6", *PROGRAM)
    nova(folder, "decide", "tea-2", "redirect", "--as", "ann")
    nova(folder, "resume", "tea-2", *PROGRAM)
    forked = run_of(folder, "tea-2")
    assert (forked.state, forked.number, len(forked.turns)) == ("awaiting_human", 2, 9)


def test_a_fork_counts_turns_as_they_were_recorded(folder: Path) -> None:
    """Where an expert was silent, those behind it are told a number that is not that of a turn."""
    script = str(folder / "silent.json")
    nova(folder, "process", "Tea?", *PROGRAM, "--script", script)
    parent = run_of(folder, "tea")
    assert list(parent.cycles[0].missed) == ["security"]
    live = (*PROGRAM[:2], "-c", "raise SystemExit(1)")
    nova(folder, "fork", "tea", "--at", "3", *live)
    forked = run_of(folder, "tea-2")
    assert [turn.text for turn in forked.turns] == [turn.text for turn in parent.turns[:3]]
    assert list(forked.cycles[0].missed) == ["security"]


FLAKY = """
role=$(sed -n 's/^This is cycle [0-9]*, role \\([a-z]*\\).$/\\1/p' | tee {at}/role)
[ "$role" = expert ] && ! [ -e {at}/failed ] && {{ touch {at}/failed; {how}; }}
case $role in
  unpack) echo '{{"experts":["security"],"epistemic":{{"know":0.4,"uncertainty":0.7}}}}';;
  expert) echo '{{"analysis":"Tea keeps you awake."}}';;
  synthesis) echo '{{"proposal":"Tea","epistemic":{{"know":0.8,"uncertainty":0.2}}}}';;
  critique) echo '{{"issues":[]}}';;
  final) echo '{{"decision":"Tea","epistemic":{{"know":0.9,"uncertainty":0.1}}}}';;
esac
"""
GIN = '{"analysis":"Gin puts you to sleep."}'


@pytest.mark.drawn("long")
@pytest.mark.parametrize(
    "how", ["echo no memory >&2; exit 7", "kill -9 $$", f"echo '{GIN}'; kill -9 $$"]
)
def test_a_turn_whose_program_failed_first_is_played_as_it_was_answered_then(
    folder: Path, how: str
) -> None:
    """How it failed stands in the prompt of the next try, and cannot be done again."""
    (folder / "flaky").write_text(FLAKY.format(at=folder, how=how))
    live = ("--", "sh", str(folder / "flaky"))
    assert nova(folder, "process", "Tea?", *live).code == 0
    parent = run_of(folder, "tea")
    assert parent.turns[1].fields["analysis"] == "Tea keeps you awake."
    assert nova(folder, "replay", "tea").code == 0
    assert nova(folder, "fork", "tea", "--at", "4", *live).code == 0
    assert [turn.text for turn in run_of(folder, "tea-2").turns] == [t.text for t in parent.turns]
    assert untold_orders(folder, 3) == []


# Tapes -----------------------------------------------------------------------------------------


Played = tuple[int, bytes, bool]
"""The exit code, the output, and whether there were words on standard error."""


def digest(prompt: bytes) -> str:
    return sha256(prompt).hexdigest()


def played(tape: Path, prompt: bytes, *shell: str, path: str | None = None) -> Played:
    done = subprocess.run(
        [*shell, "-c", PLAYER, "sh", str(tape)],
        input=prompt,
        capture_output=True,
        check=False,
        env=None if path is None else {"PATH": path},
    )
    return done.returncode, done.stdout, bool(done.stderr)


@pytest.mark.parametrize("shell", ["/bin/sh", "bash"])
def test_any_answer_is_played_byte_for_byte(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here: NOT TESTED")
    draw = random.Random(3)  # noqa: S311 - which texts are tried, no key
    control = [chr(number) for number in range(32)]
    odd = ['\\"', '"],', '": [0, "', "\\c", "\\0101", "\\u001b", "%b", "é", "\u2028", "\U0001f600"]
    letters = [*control, *odd * 3, *string.printable, "\x7f", "\x85"]
    texts = ["".join(draw.choices(letters, k=draw.randrange(80))) for _ in range(24)]
    texts += ["", "\n\n", "-n", "".join(control), "a" * 300_000]
    answers = {
        f"prompt {n}\n".encode(): (draw.randrange(256), text) for n, text in enumerate(texts)
    }
    tape = tmp_path / "tape"
    written = format_tape({digest(prompt): answer for prompt, answer in answers.items()})
    assert json.loads(written) == {digest(prompt): [*one] for prompt, one in answers.items()}
    tape.write_text(written, encoding="utf-8")
    for prompt, (code, text) in answers.items():
        assert played(tape, prompt, shell) == (code, text.encode(), False)
    assert played(tape, b"prompt 0", shell) == (3, b"", True)
    tape.write_text(format_tape({}))
    assert played(tape, b"prompt 0\n", shell) == (3, b"", True)


def test_a_tape_is_played_where_another_program_makes_the_digests(tmp_path: Path) -> None:
    """As on macOS, which had no sha256sum for long."""
    (tmp_path / "tape").write_text(format_tape({digest(b"prompt"): (0, "Tea.\n")}))
    for name in ("sed", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    assert played(tmp_path / "tape", b"prompt", "/bin/sh", path=str(tmp_path)) == (4, b"", True)
    shasum = tmp_path / "shasum"
    shasum.write_text(f'#!/bin/sh\ntest "$(cat)" = prompt && echo "{digest(b"prompt")}  -"\n')
    shasum.chmod(0o755)
    found = played(tmp_path / "tape", b"prompt", "/bin/sh", path=str(tmp_path))
    assert found == (0, b"Tea.\n", False)


def test_nothing_is_lent_to_play_a_tape(folder: Path) -> None:
    """The experts of a fork are judged as those of its parent: clean, with no exception."""
    nova(folder, "process", "Tea?", *PROGRAM)
    done = run(folder, "nova", "fork", "tea", "--at", "8", *PROGRAM)
    assert done.code == 0, done.err
    with Team(f"{folder}/.nbs") as team:
        isolations = [one.data for one in team.store.read() if one.kind == "agent.isolated"][-8:]
        orders = [one.data["spec"] for one in team.store.read() if one.kind == "agent.requested"]
        lent = [json.loads(team.source.content(order))["argv"] for order in orders[-8:]]
    if {one["level"] for one in isolations} != {"namespace"}:
        pytest.skip(f"no namespace can be had here: {isolations[0]['problem']}: NOT TESTED")
    usual = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/")
    for argv in lent:
        bound = [argv[at + 1] for at, word in enumerate(argv) if word == "--ro-bind"]
        assert [path for path in bound if not path.startswith(usual)] == []


def untold_orders(folder: Path, runs: int = 6) -> list[str]:
    """What nobody can tell of the orders of experts, in the words of the check."""
    with collect(f"{folder}/.nbs") as evidence:
        (told,) = judge(evidence, checks=(nova_independence,)).outcomes
    assert (told.failures, told.coverage["runs of experts"]) == (0, runs)
    return [one for one in told.reason.split("; ") if "its order" in one or "entry" in one]


@pytest.mark.drawn("long")
@pytest.mark.parametrize(("at", "concurrency"), [("2", "1"), ("3", "4")])
def test_a_fork_amid_a_cycle_is_judged_as_its_parent_is(
    folder: Path, at: str, concurrency: str
) -> None:
    """Its program is ordered when the played experts had answered long ago."""
    nova(folder, "process", "Tea?", "--concurrency", concurrency, *PROGRAM)
    nova(folder, "fork", "tea", "--at", at, *PROGRAM)
    assert len(run_of(folder, "tea-2").turns) == 8
    assert untold_orders(folder) == []


def test_another_program_amid_a_cycle_may_hold_what_was_played(folder: Path) -> None:
    nova(folder, "process", "Tea?", *PROGRAM)
    nova(folder, "fork", "tea", "--at", "3", *PROGRAM, "--script", str(folder / "silent.json"))
    whose, what = untold_orders(folder)
    assert whose.startswith("tea-2, cycle 1, integration (")
    assert " differs in words 3 to 4 of its command line, a file with the digest '" in what


# Replays ---------------------------------------------------------------------------------------


def replayed(folder: Path, name: str = "tea") -> dict[str, object]:
    done = nova(folder, "replay", name, "--json")
    assert done.out, done.err
    value: dict[str, object] = json.loads(done.out)
    assert done.code == (0 if value["same"] else 1)
    return value


def test_the_replay_of_an_open_or_cancelled_run_stops_where_the_record_does(folder: Path) -> None:
    with Team(f"{folder}/.nbs") as team:
        name = open_nova(team, "Tea?", load_personas(), NovaLimits(), "alex")
        recorded_panel.play(team, name, most=2)
        assert 2 <= len(settle_nova(team, name).turns) <= 4
    same = {"version": 1, "run": "tea", "same": True, "difference": [], "stops": True}
    assert replayed(folder) == same
    assert nova(folder, "cancel", "tea", "--as", "ann").code == 0
    assert replayed(folder) == same
    assert b"up to where the record stops" in nova(folder, "replay", "tea").out


def test_the_replay_of_a_run_that_a_person_redirected_stops_there(folder: Path) -> None:
    stopped(folder)
    nova(folder, "decide", "tea", "redirect", "--note", "Mint?", "--as", "ann")
    assert (replayed(folder)["same"], replayed(folder)["stops"]) == (True, True)


def test_the_files_say_who_decided_and_a_replay_decides_as_that_one(folder: Path) -> None:
    stopped(folder)
    nova(folder, "decide", "tea", "accept", "--as", "ann")
    assert nova(folder, "resume", "tea", *PROGRAM).code == 0
    assert "A person, ann, decided: accept." in nova(folder, "show", "tea").out.decode()
    decision = (folder / ".nbs/nova/tea/decisions.md").read_text()
    assert "- a person decided: accept (ann)\n" in decision
    assert (replayed(folder)["same"], replayed(folder)["stops"]) == (True, False)


def test_an_answer_whose_agent_was_told_to_end_is_played_as_well(folder: Path) -> None:
    def script(turn: DueTurn, _: int) -> recorded_panel.Agent:
        status = "cancelled" if turn.role == "unpack" else "ok"
        return recorded_panel.Agent(recorded_panel.said(turn.role, turn.persona), status=status)

    with Team(f"{folder}/.nbs") as team:
        name = open_nova(team, "Tea?", load_personas(), NovaLimits(), "alex")
        assert recorded_panel.play(team, name, script).state == "done"
    assert (replayed(folder)["same"], replayed(folder)["stops"]) == (True, False)


def test_a_replay_compares_the_decision_as_well(folder: Path) -> None:
    nova(folder, "process", "Tea?", *PROGRAM)
    assert (replayed(folder)["same"], replayed(folder)["stops"]) == (True, False)

    def other(run: NovaRun, decision: str, last: int) -> str:
        return render_nova_decision(run, decision, last) + f"{next(drawn)}\n"

    drawn = iter(range(2))
    with mock.patch("tripod.nova.replay.render_nova_decision", other):
        found = replayed(folder)
    assert found["difference"] == [
        "--- recorded decisions.md", "+++ replayed decisions.md", ANY, "-0", "+1",
    ]  # fmt: skip


def test_what_was_erased_is_not_played(folder: Path) -> None:
    nova(folder, "process", "Tea?", *PROGRAM)
    with Team(f"{folder}/.nbs") as team:
        ended = [one.seq for one in team.store.read() if one.kind == "agent.ended"]
    redact = ("redact", str(ended[2]), "--reason", "x", "--as", "ann")
    assert b"agent.ended" in run(folder, *redact).out
    for words in (("replay", "tea"), ("fork", "tea", "--at", "8", *PROGRAM)):
        done = nova(folder, *words)
        assert (done.code, "an output of its runs was erased" in done.err) == (1, True), done.err
    assert nova(folder, "status", "tea-2").code == 1
