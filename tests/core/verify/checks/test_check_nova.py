"""Runs of Nova judged: honest ones are clean, and each forgery is named by its own check."""

import json
import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import drafts
import pytest
from recorded_panel import ANALYSES, QUESTION, Agent, panel, play, said, speak, usual_agent
from specimens import Row, database, forge, read

from tripod.agents.spec import McpServer, Parameters
from tripod.errors import BadArgumentError
from tripod.ledger.entry import format_canonical
from tripod.ledger.kinds import nova as kinds
from tripod.nova import replay, runner
from tripod.nova.replay import fork_nova, opening_again
from tripod.nova.runner import (
    NovaLimits,
    begin_nova,
    cancel_nova,
    decide_nova,
    load_personas,
    open_nova,
)
from tripod.projections.nova import run as nova_run
from tripod.projections.nova import turns as nova_turns
from tripod.projections.nova.prompt import prompt_for_turn
from tripod.projections.nova.run import DueTurn, NovaRun
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import CANNOT_TELL, CLEAN, Outcome
from tripod.verify.checks import CHECKS
from tripod.verify.evidence import collect
from tripod.verify.run import run

NOVA = tuple(check for check in CHECKS if check.NAME.startswith("nova-"))


def judge(root: str) -> dict[str, Outcome]:
    """The outcomes of Nova's checks."""
    with collect(root) as evidence:
        return {one.check: one for one in run(evidence, checks=NOVA).outcomes}


def blamed(root: str) -> dict[str, list[str]]:
    """What each check names, and of the others why they cannot tell."""
    found = {}
    for name, one in judge(root).items():
        words = [finding.message for finding in one.findings]
        words += [one.reason] if one.verdict == CANNOT_TELL else []
        assert words or one.verdict == CLEAN, (name, one.verdict, one.reason)
        if words:
            found[name.removeprefix("nova-")] = words
    return found


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A team without a run."""
    folder = tmp_path_factory.mktemp("fresh")
    adoption.init(str(folder), project="panels", origin="panels.example/1")
    return str(folder / ".nbs")


@pytest.fixture
def root(fresh: str, tmp_path: Path) -> str:
    shutil.copytree(fresh, tmp_path / ".nbs", copy_function=shutil.copy2)
    return str(tmp_path / ".nbs")


@pytest.fixture(scope="module")
def decided(fresh: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A team with one run, from its question to its decision."""
    folder = tmp_path_factory.mktemp("decided")
    shutil.copytree(fresh, folder / ".nbs", copy_function=shutil.copy2)
    panel(str(folder / ".nbs"))
    return str(folder / ".nbs")


def states(*figures: tuple[float, float], **other: dict[str, Any]) -> Any:
    """A script: what the synthesis of each cycle knows, and what roles say otherwise."""

    def script(turn: DueTurn, _: int) -> Agent:
        more = dict(other.get(turn.role, {}))
        if turn.role == "synthesis":
            know, uncertainty = figures[min(turn.cycle, len(figures)) - 1]
            more["epistemic"] = {"know": know, "uncertainty": uncertainty}
        return Agent(said(turn.role, turn.persona, **more))

    return script


CRITICAL = {"issues": [{"severity": "critical", "text": "Events are lost."}]}


# Honest runs -----------------------------------------------------------------------------------


def test_without_a_run_nothing_is_applicable(root: str) -> None:
    assert {one.verdict for one in judge(root).values()} == {"not applicable"}


def _garbled(turn: DueTurn, attempt: int) -> Agent:
    """Answers that need a repair, agents that are lost, an expert that stays silent."""
    if turn.persona == "security":
        return Agent("No form at all.")
    if turn.role == "synthesis":
        return Agent(said("synthesis", epistemic={"know": 2, "uncertainty": "nan"}))
    if turn.role == "unpack" and attempt == 1:
        return Agent(None)
    if turn.persona == "performance" and attempt == 1:
        return Agent("", status="nonzero", cost="0.0100")
    if turn.persona == "integration" and attempt == 1:
        return Agent(None)
    return Agent(said(turn.role, turn.persona), cost="0.2500")


def _labelled(turn: DueTurn, _: int) -> Agent:
    text = f"---\npersona: not {turn.persona}\nturn: 99\n---\n{turn.persona} thinks so.\n"
    stated = "Epistemic: know=0.9, uncertainty=0.1"
    return Agent(text + stated if turn.role == "expert" else said(turn.role, turn.persona))


def _mute(turn: DueTurn, _: int) -> Agent:
    return Agent("?" if turn.role == "expert" else said(turn.role, turn.persona))


def _no_critic(turn: DueTurn, _: int) -> Agent:
    return Agent(None if turn.role == "critique" else said(turn.role, turn.persona))


def _dear(turn: DueTurn, _: int) -> Agent:
    return Agent(said(turn.role, turn.persona), cost="0.3000")


def test_honest_runs_are_clean(root: str) -> None:
    flat = states((0.6, 0.5))
    asked = [
        panel(root),
        panel(root, states((0.5, 0.5), (0.7, 0.3))),
        panel(root, flat),
        panel(root, states((0.8, 0.3), critique=CRITICAL), rounds=2),
        panel(root, _garbled, rounds=1),
        panel(root, _labelled),
        panel(root, _mute),
        panel(root, _no_critic),
        panel(root, turns=3),
        panel(root, _dear, cost="0.50"),
        panel(root, states((0.1, 0.9)), rounds=1),
    ]
    with Team(root) as team:
        waiting = {name: runner.nova_run(team.source, name) for name in asked}
        found = {name: (one.state, one.finalized and one.finalized["outcome"])
                 for name, one in waiting.items()}  # fmt: skip
        assert [found[name] for name in asked] == [
            ("done", "decided"), ("done", "decided"), ("awaiting_human", None),
            ("awaiting_human", None), ("awaiting_human", None), ("done", "decided"),
            ("failed", "failed"), ("failed", "failed"), ("awaiting_human", None),
            ("awaiting_human", None), ("awaiting_human", None),
        ]  # fmt: skip
        for name, choice in (
            (asked[2], "redirect"), (asked[3], "accept"), (asked[4], "close"),
            (asked[8], "accept"), (asked[9], "redirect"), (asked[10], "redirect"),
        ):  # fmt: skip
            decide_nova(
                team, name, choice, f"Please {choice} it, as each of us said before.", "ann"
            )
            play(team, name, flat if name == asked[2] else _dear)
        stopped = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
        play(team, stopped, most=2)
        cancel_nova(team, stopped, "no time", "ann")
    assert blamed(root) == {}


def test_a_run_that_stopped_anywhere_is_clean(root: str) -> None:
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
    for _ in range(7):
        with Team(root) as team:
            play(team, name, most=1)
        assert blamed(root) == {}


def test_a_decision_of_a_person_may_wait_for_the_next_command(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = panel(root, states((0.1, 0.9)), rounds=1)
    monkeypatch.setattr(runner, "settle_nova", lambda *_: None)
    with Team(root) as team:
        decide_nova(team, name, "close", "", "ann")
    assert blamed(root) == {}


def test_what_was_begun_within_the_budget_is_waited_for(root: str) -> None:
    """Two experts were begun; the first used the budget up, and another is before the second."""
    with Team(root) as team:
        limits = NovaLimits(cost="0.50")
        name = open_nova(team, QUESTION, load_personas(), limits, "alex")
        play(team, name, _dear, most=1)
        run = runner.settle_nova(team, name)
        first, second, third = run.due_turns()
        speak(team, run, third, 1, Agent(said("expert", "integration"), ends=False))
        speak(team, run, first, 1, _dear(first, 1))
        assert runner.settle_nova(team, name).state == "analyzing"
        assert blamed(root) == {}
        late = runner.nova_run(team.source, name)
        speak(team, late, second, 1, _dear(second, 1))
        assert runner.settle_nova(team, name).state == "analyzing"
    assert blamed(root) == {}


def test_in_a_folder_nobody_can_tell_of_independence_alone(root: str) -> None:
    panel(root, lambda turn, _: Agent(said(turn.role, turn.persona), level="folder"))
    found = blamed(root)
    assert found.keys() == {"independence"}
    assert (
        "ran in a folder, not in a namespace (bwrap is not installed)" in found["independence"][0]
    )


# What was erased -------------------------------------------------------------------------------

ERASED = {
    "nova.opened": {"order", "personas"},
    "nova.turn.recorded 0": {"order"},
    "nova.turn.recorded 1": {"order"},
    "nova.turn.recorded 5": {"order", "critique"},
    "nova.turn.recorded 7": {"order", "result"},
    "nova.finalized": {"result"},
    "agent.requested 1": {"order", "independence", "no-tools"},
    "agent.ended 1": {"order", "independence"},
    "delivered 1": {"personas", "independence"},
}


@pytest.mark.parametrize("kind", ERASED)
def test_what_was_erased_cannot_be_told_and_is_no_finding(
    kind: str, decided: str, tmp_path: Path
) -> None:
    shutil.copytree(decided, tmp_path / ".nbs", copy_function=shutil.copy2)
    root = str(tmp_path / ".nbs")
    name, _, nth = kind.partition(" ")
    rows = read(database(root))
    seq = [seq for seq, row in enumerate(rows) if row.head["kind"] == name][int(nth or 0)]
    with Team(root) as team:
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "r", "alex"))
    told = judge(root)
    assert [one.findings for one in told.values() if one.findings] == []
    untold = {check[5:] for check, one in told.items() if one.verdict == CANNOT_TELL}
    assert untold >= ERASED[kind]
    assert not untold & {"gate", "rounds", "convergence"}


@pytest.mark.parametrize("kind", ["agent.requested", "agent.ended"])
def test_where_orders_cannot_be_compared_it_is_told_what_was_erased(kind: str, root: str) -> None:
    """First what of a run is gone, then whose orders that concerns: a tape, or all before."""
    name = panel(root)
    if kind == "agent.ended":
        _forked(root, name, 2, _played(root, name, 2))
    assert blamed(root) == {}
    rows = [row.head["kind"] for row in read(database(root))]
    first, second = [seq for seq, one in enumerate(rows) if one == kind][:2]
    erased = (first, second) if kind == "agent.requested" else (second,)
    with Team(root) as team:
        redaction.redact(team, redaction.RedactionRequest(erased, None, "r", "alex"))
    told = judge(root)["nova-independence"].reason
    assert told.startswith(f"{name}, cycle 1, security (")
    if kind == "agent.requested":
        assert "its order cannot be read; " in told
        assert f"no earlier one can be compared with it (entry {first} was erased)" in told
    else:
        assert f"what it wrote (entry {second}) was erased; {name}-2, cycle 1, security (" in told
        assert f"is like none before that (entry {second} was erased); from entry" in told


# Forgeries: of what follows from the turns -------------------------------------------------------


def test_a_gate_that_was_talked_past(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nova_run, "gate", lambda *_: "proceed")
        panel(root, states((0.2, 0.9)))
    found = blamed(root)
    assert found.keys() == {"gate"}
    assert "its decision is proceed, and by the record it is investigate" in found["gate"][0]


def test_a_convergence_that_came_too_early(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nova_run, "converged", lambda states, *_: len(states) == 2)
        panel(root, states((0.2, 0.9), (0.5, 0.5)))
    found = blamed(root)
    assert found.keys() == {"convergence"}
    assert "cycle 2 is said to have converged" in found["convergence"][0]


def test_a_convergence_that_was_left_out(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nova_run, "converged", lambda *_: False)
        panel(root, states((0.6, 0.5)), rounds=4)
    found = blamed(root)
    assert found.keys() == {"convergence"}
    assert "nova.converged had to come before it, and is missing" in found["convergence"][0]


def test_a_critical_flaw_that_was_called_minor(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nova_run, "critique_class", lambda _: "minor")
        panel(root, states((0.8, 0.3), critique=CRITICAL))
    found = blamed(root)
    assert found.keys() == {"critique"}
    assert "its decision is minor, and by the record it is critical" in found["critique"][0]


def test_cycles_beyond_the_rounds(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(NovaRun, "limit", property(lambda _: 3))
        panel(root, states((0.2, 0.9), (0.5, 0.5), (0.8, 0.2)), rounds=1)
    found = blamed(root)
    assert found.keys() == {"rounds"}
    assert "nova.escalated had to come before it, and is missing" in found["rounds"][0]


def test_a_budget_that_was_passed_over(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(NovaRun, "turns_left", lambda _: None)
        panel(root, turns=5)
    found = blamed(root)
    assert found.keys() == {"rounds"}
    assert "was ordered after the budget was used up at entry" in found["rounds"][0]


def test_a_person_who_was_not_asked(root: str) -> None:
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
        play(team, name, most=3)
        assert runner.settle_nova(team, name).state == "critiquing"
        body: Any = {"run": name, "escalated": 0, "choice": "accept", "note": b"go"}
        with team.act() as act:
            act.append([kinds.HUMAN.draft(body, "ann")])
        assert play(team, name).state == "done"
    found = blamed(root)
    assert found.keys() == {"rounds"}
    assert "a person decided (accept), and was not asked" in found["rounds"][0]


# Forgeries: of turns -----------------------------------------------------------------------------


def test_experts_in_another_order(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    due = NovaRun.due_turns

    def backwards(one: NovaRun) -> Iterator[DueTurn]:
        yield from reversed(list(due(one)))

    with monkeypatch.context() as patch:
        patch.setattr(NovaRun, "due_turns", backwards)
        panel(root)
    found = blamed(root)
    assert found.keys() == {"order"}
    assert (
        "integration (expert, cycle 1), and security (expert, cycle 1) was due" in found["order"][0]
    )


def test_an_expert_that_was_left_out(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    speak = NovaRun._speak

    def heard(one: NovaRun, turn: Any) -> None:
        speak(one, turn)
        one.selected = one.selected[:2]

    with monkeypatch.context() as patch:
        patch.setattr(NovaRun, "_speak", heard)
        panel(root)
    found = blamed(root)
    assert found.keys() == {"order"}
    assert (
        "dce (synthesis, cycle 1), and integration (expert, cycle 1) was due" in found["order"][0]
    )


def test_a_turn_that_was_given_up_while_a_try_was_left(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nova_turns, "TRIES", 1)
        panel(root, _garbled, rounds=1)
    found = blamed(root)
    assert found.keys() == {"order"}
    assert "none of its agents had answered so, and a try was left" in found["order"][0]


def test_a_turn_that_no_agent_gave(root: str) -> None:
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
        play(team, name, most=1)
        body: Any = {
            "run": name, "turn": 1, "cycle": 0, "role": "unpack", "persona": "dce",
            "spawn": "f" * 32, "content": b"x", "parsed": b"{}", "parsed_by": "json",
        }  # fmt: skip
        run = runner.nova_run(team.source, name)
        if run.turns:
            body |= {"turn": 2, "cycle": 1, "role": "expert", "persona": "security"}
        with team.act() as act:
            act.append([kinds.TURN.draft(body)])
        play(team, name)
    found = blamed(root)
    assert found.keys() == {"order"}
    assert "no run ffffffff of an agent with the role nova was for this turn" in found["order"][0]


# Forgeries: of single entries --------------------------------------------------------------------

Change = Callable[[Row], Row]


def _says(**changes: Any) -> Change:
    return lambda row: row.saying(**changes)


def _text(text: str) -> dict[str, str]:
    return {"text": text}


def _nothing(row: Row) -> Row:
    """An entry that says nothing of the run, in the place of one that did."""
    body = {"spawn": "0", "channel": "file", "content": _text(""), "sources": [], "v": 1}
    data = format_canonical(body | {"sha256": sha256(b"").hexdigest()})
    return row.headed(kind="delivered", stream="agents/0")._replace(body=data)


def _agreeing_critic(row: Row) -> Row:
    """The critic has the prompt of an expert."""
    critic, expert = (
        next(one for one in row.data["personas"] if one["short_name"] == name)
        for name in ("cae", "security")
    )
    others = [one for one in row.data["personas"] if one is not critic]
    given = {name: expert[name] for name in ("content", "sha256")}
    return row.saying(personas=[*others, critic | given])


LOWER = {"know": "0.8", "uncertainty": "0.3", "source": "stated"}
CLAIMED = {"know": "0.75", "uncertainty": "0.35", "source": "missing"}
FORGED: dict[str, tuple[str, str, int, Change]] = {
    "its uncertainty is 0.3": ("gate", "nova.gate.decided", 0, _says(uncertainty="0.3")),
    "its threshold is 0.9": ("gate", "nova.gate.decided", 0, _says(threshold="0.9")),
    "its synthesis is 1": ("gate", "nova.gate.decided", 0, _says(synthesis=1)),
    "nova.gate.decided had to come": ("gate", "nova.gate.decided", 0, _nothing),
    "its critique is 1": ("critique", "nova.critique.decided", 0, _says(critique=1)),
    "nova.critique.decided had to": ("critique", "nova.critique.decided", 0, _nothing),
    "content not as its agents'": (
        "order", "nova.turn.recorded", 7, _says(content=_text('{"analysis": "All is well."}')),
    ),
    "parsed not as its agents'": (
        "order", "nova.turn.recorded", 4, _says(parsed=_text('{"proposal":"One file"}')),
    ),
    "parsed_by not as": ("order", "nova.turn.recorded", 1, _says(parsed_by="structured")),
    "(synthesis, cycle 1): epistemic": ("order", "nova.turn.recorded", 4, _says(epistemic=CLAIMED)),
    "mislabelled not as": ("order", "nova.turn.recorded", 1, _says(mislabelled="turn 9")),
    "has the number 3, where 2": ("order", "nova.turn.recorded", 1, _says(turn=3)),
    "its decision is not that": ("result", "nova.finalized", 0, _says(decision=_text("One file"))),
    "its confidence is 0.99": ("result", "nova.finalized", 0, _says(confidence="0.99")),
    "its stated_confidence is 1": ("result", "nova.finalized", 0, _says(stated_confidence="1")),
    "its outcome is human_accepted": (
        "result", "nova.finalized", 0, _says(outcome="human_accepted"),
    ),
    "its turns is 3": ("result", "nova.finalized", 0, _says(turns=3)),
    "its cost is 0.5000": ("result", "nova.finalized", 0, _says(cost="0.5000")),
    "its final is 1": ("result", "nova.finalized", 0, _says(final=1)),
    "stands for entry 4, and the run": ("result", "checkpoint.named", 0, _says(position=4)),
    "is not named after the minute": (
        "result", "checkpoint.named", 0, _says(name="CKPT-200101-0000"),
    ),
    "no checkpoint names": ("result", "checkpoint.named", 0, _nothing),
    "does not begin with that of its persona": ("personas", "nova.opened", 0, _agreeing_critic),
}  # fmt: skip


@pytest.mark.parametrize("says", FORGED)
def test_a_forged_entry_is_named_by_its_check(says: str, decided: str, tmp_path: Path) -> None:
    shutil.copytree(decided, tmp_path / ".nbs", copy_function=shutil.copy2)
    root = str(tmp_path / ".nbs")
    check, kind, nth, change = FORGED[says]
    rows = read(database(root))
    seq = [seq for seq, row in enumerate(rows) if row.head["kind"] == kind][nth]
    rows[seq] = change(rows[seq])
    forge(root, rows)
    found = blamed(root)
    assert found.keys() == {check}
    assert any(says in message for message in found[check])


def test_the_words_why_a_turn_was_missed(root: str) -> None:
    """People read them, and of a coordinator they are why the run failed."""
    panel(root, lambda turn, n: _no_form(turn, n, "final"))
    rows = read(database(root))
    why = "All agree: one file, and nobody dissents."
    for seq, row in enumerate(rows):
        if row.head["kind"] == "nova.turn.missed":
            rows[seq] = row.saying(problem=why)
        elif row.head["kind"] == "nova.finalized":
            rows[seq] = row.saying(reason=f"dce: {why}")
    forge(root, rows)
    found = blamed(root)
    assert found.keys() == {"order"}
    assert found["order"][0].endswith("problem not as its agents' answers give it")


def _no_form(turn: DueTurn, _: int, role: str) -> Agent:
    return Agent("No form at all." if turn.role == role else said(turn.role, turn.persona))


def test_a_synthesis_that_claims_to_know_more(decided: str, tmp_path: Path) -> None:
    shutil.copytree(decided, tmp_path / ".nbs", copy_function=shutil.copy2)
    root = str(tmp_path / ".nbs")
    rows = read(database(root))
    for seq, row in enumerate(rows):
        if row.data.get("role") == "synthesis" and "turn" in row.data:
            rows[seq] = row.saying(epistemic=LOWER)
        elif row.head["kind"] == "nova.gate.decided":
            rows[seq] = row.saying(uncertainty="0.3")
    forge(root, rows)
    assert blamed(root).keys() == {"order"}


def _opened(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.data.items() if name != "v"}


def test_a_run_that_begins_twice_or_is_over_twice(decided: str, tmp_path: Path) -> None:
    shutil.copytree(decided, tmp_path / ".nbs", copy_function=shutil.copy2)
    root = str(tmp_path / ".nbs")
    rows = {row.head["kind"]: row for row in read(database(root))}
    with Team(root) as team, team.act() as act:
        act.append([kinds.OPENED.draft(_opened(rows["nova.opened"]), "x")])
        act.append([kinds.FINALIZED.draft(_opened(rows["nova.finalized"]), "x")])
        orphan: Any = _opened(rows["nova.gate.decided"]) | {"run": "orphan"}
        act.append([kinds.GATE.draft(orphan)])
    found = blamed(root)
    assert found.keys() == {"order", "result", "gate"}
    assert "it begins a second time" in found["order"][0]
    assert "nova.finalized, and the run was over at entry" in found["result"][0]
    assert "orphan: nova.gate.decided, and no entry before it begins the run" in found["gate"][0]


# Forgeries: of what agents were given, and did ---------------------------------------------------

TOLD = "Here is what a colleague said: " + ANALYSES["security"]


def _odd(persona: str, **odd: Any) -> Any:
    """A script in which one persona's agent is odd."""

    def script(turn: DueTurn, _: int) -> Agent:
        usual = Agent(said(turn.role, turn.persona))
        return usual._replace(**odd) if turn.persona == persona else usual

    return script


def test_personas_that_were_told_something_else(root: str) -> None:
    panel(root, _odd("cae", prompt="You agree with everything."))
    found = blamed(root)
    assert found.keys() == {"personas"}
    assert "(1-critique-cae) does not begin with that of its persona" in found["personas"][0]


def test_a_coordinator_that_was_shown_another_record(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doctored(run: NovaRun, turn: DueTurn, *rest: Any) -> Any:
        given = prompt_for_turn(run, turn, *rest)
        if turn.role != "synthesis":
            return given
        return given._replace(data=given.data.replace(b"costs a seek", b"costs nothing"))

    monkeypatch.setattr("recorded_panel.prompt_for_turn", doctored)
    panel(root)
    found = blamed(root)
    assert found.keys() == {"personas"}
    assert "(1-synthesis-dce) lacks turn 3 (entry" in found["personas"][0]


@pytest.mark.parametrize(
    ("role", "part"), [("unpack", "Shall the queue"), ("expert", "no event is lost")]
)
def test_what_an_agent_was_not_told(
    role: str, part: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shortened(run: NovaRun, turn: DueTurn, *rest: Any) -> Any:
        given = prompt_for_turn(run, turn, *rest)
        if turn.role != role:
            return given
        return given._replace(data=given.data.replace(part.encode(), b""))

    monkeypatch.setattr("recorded_panel.prompt_for_turn", shortened)
    panel(root)
    found = blamed(root)
    assert found.keys() == {"personas"}
    says = "does not hold the question" if role == "unpack" else "lacks turn 1 (entry"
    assert says in found["personas"][0]


LEAKS: dict[str, dict[str, Any]] = {
    "its prompt": {"extra": TOLD},
    "a file that it was given": {"files": (TOLD.upper().encode(),)},
    "its order": {"order": {"set_env": {"HINT": TOLD}}},
}


HINT = "(was it resumed or forked with another program, or in another shell?)"
_BASE64 = b64encode(ANALYSES["security"].encode()).decode()
_IN_ARGV = ("/usr/bin/bwrap", "--unshare-all", "--", "panel", _BASE64)
HIDDEN: dict[str, dict[str, Any]] = {
    "the variable 'HINT'": {"order": {"set_env": {"HINT": _BASE64}}},
    "word 5 of its command line": {"order": {"argv": _IN_ARGV}},
    f"a file with the digest '{sha256(_BASE64.encode()).hexdigest()[:12]}'": {
        "files": (_BASE64.encode(),)
    },
    "the variable 'SAID'": {"order": {"set_env": {"SAID": "a writer of its own"}}},
    r"the variable '\x1b[31mX\u202e'": {"order": {"set_env": {"\x1b[31mX\u202e": "many"}}},
    "its 'model'": {"order": {"parameters": Parameters(model="many files")}},
}


@pytest.mark.parametrize("what", HIDDEN)
@pytest.mark.parametrize("persona", ["performance", "integration"])
def test_what_may_hold_another_expert_in_another_spelling(
    what: str, persona: str, root: str
) -> None:
    """In base64, or in a few words: nobody can tell that nothing of another expert is in it."""
    panel(root, _odd(persona, **HIDDEN[what]))
    found = blamed(root)
    assert found.keys() == {"independence"}
    (message,) = found["independence"]
    assert f"cycle 1, {persona} (" in message
    assert message.endswith(f" it differs in {what} {HINT}")
    assert message.isprintable()


def test_an_order_like_those_before_another_expert_was_asked(root: str) -> None:
    """A run may be resumed by another program before a cycle, and experts are asked again."""

    def script(turn: DueTurn, attempt: int) -> Agent:
        other = {"set_env": {"PATH": "/opt/bin"}} if turn.cycle > 1 or turn.role == "unpack" else {}
        epistemic = {"know": 0.5, "uncertainty": 0.7 - 0.4 * (turn.cycle > 1)}
        says = {"epistemic": epistemic} if turn.role == "synthesis" else {}
        lost = turn.persona == "security" and attempt == 1
        return Agent(None if lost else said(turn.role, turn.persona, **says), order=other)

    name = panel(root, script)
    with Team(root) as team:
        assert runner.nova_run(team.source, name).number == 2
    assert blamed(root) == {}


def test_a_second_try_of_the_first_expert_is_after_the_others(root: str) -> None:
    def script(turn: DueTurn, attempt: int) -> Agent:
        is_again = turn.persona == "security" and attempt == 2
        order = {"set_env": {"HINT": "YQ=="}} if is_again else {}
        lost = turn.persona == "security" and attempt == 1
        return Agent(None if lost else said(turn.role, turn.persona), order=order)

    panel(root, script)
    (message,) = blamed(root)["independence"]
    assert "cycle 1, security (" in message
    assert message.endswith(f"it differs in the variable 'HINT' {HINT}")


def test_the_first_expert_may_be_asked_again_in_another_way(root: str) -> None:
    """As long as no other was asked: there was nothing to be said by any."""
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
        play(team, name, most=1)
        run = runner.settle_nova(team, name)
        turn = next(run.due_turns())
        speak(team, run, turn, 1, Agent(None))
        other = {"set_env": {"PATH": "/opt/bin"}}
        speak(team, run, turn, 2, Agent(said(turn.role, turn.persona), order=other))
        play(team, name)
    assert blamed(root) == {}


def test_a_file_that_an_earlier_agent_is_said_later_to_have_had(root: str) -> None:
    """The coordinator's own run is said to have had the file too, when the answer was known."""

    def script(turn: DueTurn, _: int) -> Agent:
        if turn.persona != "integration":
            return Agent(said(turn.role, turn.persona))
        with Team(root) as team, team.act() as act:
            sql = "SELECT spawn FROM agents WHERE subject LIKE '%-unpack-%'"
            (spawn,) = act.transaction.tables.execute(sql).fetchone()
            act.append([drafts.delivered(spawn, "file", _BASE64.encode(), ())])
        return Agent(said(turn.role, turn.persona), files=(_BASE64.encode(),))

    panel(root, script)
    (message,) = blamed(root)["independence"]
    assert "cycle 1, integration (" in message


class _Misnamed(DueTurn):
    """A turn whose agents have another subject than the record looks for."""

    @property
    def key(self) -> str:
        return f"0{super().key}"


def test_an_agent_for_a_turn_that_nobody_looks_for(root: str) -> None:
    """Its subject is written in another way, and it is given what another expert said."""
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
        stand = play(team, name, most=2)
        turn = next(one for one in stand.due_turns() if one.persona == "performance")
        leak = f"\n{_BASE64}"
        speak(team, stand, _Misnamed(*turn), 1, Agent(said("expert"), extra=leak))
        play(team, name)
    found = blamed(root)
    assert found.keys() == {"personas"}
    assert f"is for no turn of a Nova run: '{name}/01-expert-performance'" in found["personas"][0]


def _begun_experts(team: Team) -> tuple[str, NovaRun, dict[str, DueTurn]]:
    """A run whose question was unpacked, and the turns of its experts."""
    name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
    play(team, name, most=1)
    stand = runner.settle_nova(team, name)
    return name, stand, {one.persona: one for one in stand.due_turns()}


@pytest.mark.parametrize("leak", ["", f"\n{_BASE64}"])
def test_an_agent_that_is_asked_after_its_turn_was_recorded(leak: str, root: str) -> None:
    with Team(root) as team:
        name, stand, turns = _begun_experts(team)
        play(team, name, most=2)
        again = Agent(said("expert", "performance"), extra=leak)
        speak(team, stand, turns["performance"], 2, again)
        play(team, name)
    found = blamed(root)
    assert found.keys() == ({"independence"} if leak else set())
    assert not leak or "performance (expert, cycle 1) was given more" in found["independence"][0]


def test_an_agent_for_a_turn_that_was_never_due(root: str) -> None:
    """An expert that the coordinator did not ask for, and a turn of a cycle that never began."""
    with Team(root) as team:
        name, stand, turns = _begun_experts(team)
        other = turns["performance"]._replace(persona="architecture")
        speak(team, stand, other, 1, Agent(said("expert"), extra=f"\n{_BASE64}"))
        speak(team, stand, other._replace(cycle=7), 1, Agent(said("expert")))
        play(team, name)
    found = blamed(root)
    assert found.keys() == {"order"}
    says = [one.partition("was ordered for ")[2] for one in found["order"]]
    never = "expert-architecture, a turn that was never due"
    assert says == [f"1-{never}", f"7-{never}"]


@pytest.mark.parametrize("leak", ["", f"\n{_BASE64}"])
@pytest.mark.parametrize("end", ["cancel", "budget"])
def test_the_agents_of_turns_that_were_never_recorded(leak: str, end: str, root: str) -> None:
    """Of a run that ended, or waits for a person: their prompts are compared all the same."""
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(cost="0.50"), "alex")
        play(team, name, _dear, most=1)
        stand = runner.settle_nova(team, name)
        turns = {one.persona: one for one in stand.due_turns()}
        speak(team, stand, turns["security"], 1, _dear(turns["security"], 1))
        late = _dear(turns["performance"], 1)._replace(extra=leak)
        if end == "budget":  # a second command orders it just when the first asks a person
            assert runner.settle_nova(team, name).state == "awaiting_human"
        speak(team, stand, turns["performance"], 1, late)
        if end == "budget":
            decide_nova(team, name, "close", "", "ann")
        else:
            cancel_nova(team, name, "no more", "alex")
    found = blamed(root)
    assert found.keys() == ({"independence"} if leak else set())
    assert not leak or "performance (expert, cycle 1) was given more" in found["independence"][0]


def test_a_second_prompt(root: str) -> None:
    def script(turn: DueTurn, _: int) -> Agent:
        return Agent(said(turn.role, turn.persona))

    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")
        play(team, name, script)
        sql = "SELECT spawn FROM agents WHERE subject LIKE '%-expert-integration'"
        (spawn,) = team.store.db.execute(sql).fetchone()
        with team.act() as act:
            act.append([drafts.delivered(spawn, "prompt", _BASE64.encode(), ())])
    (message,) = blamed(root)["independence"]
    assert "it differs in a 'prompt' with the digest" in message


_MEMORY = ("/usr/bin/bwrap", "--unshare-all", "--file", "memory", "/home/login", "--", "panel")


@pytest.mark.parametrize("is_told", [True, False])
def test_a_login_that_is_renewed_is_an_exception_alone(root: str, *, is_told: bool) -> None:
    """It is said not to have been looked at; what was looked at is compared."""

    def script(turn: DueTurn, _: int) -> Agent:
        data = turn.key.encode()
        order = {"argv": _MEMORY, "sealed": {3: data}}
        return Agent(said(turn.role, turn.persona), order=order, files=(data,) if is_told else ())

    panel(root, script)
    told = judge(root)["nova-independence"]
    if is_told:
        assert told.reason.count("differs in the file '/home/login'") == 2
    else:
        assert (told.findings, told.reason) == ((), "")
        assert told.exceptions == ("lent /home/login (not looked at): 3 runs",)


def test_what_an_order_lacks_is_said(root: str) -> None:
    def script(turn: DueTurn, _: int) -> Agent:
        order: dict[str, Any] = {"argv": _MEMORY, "sealed": {3: b"x"}}
        if turn.persona == "integration":
            order = {"argv": (*_MEMORY[:2], *_MEMORY[5:])}
        files = () if turn.persona in ("performance", "integration") else (b"x",)
        return Agent(said(turn.role, turn.persona), order=order, files=files)

    panel(root, script)
    (message,) = blamed(root)["independence"]
    assert re.search(r"; from entry [0-9]+ it differs in the file '/home/login' \(was ", message)
    assert message.endswith(
        "it differs in its command line, which lacks words behind word 2, the file '/home/login', "
        f"which it lacks {HINT}"
    )


FOLDERS = "/usr/bin/bwrap", "--unshare-all", "--chdir", "/work", "--", "panel"


@pytest.mark.parametrize("is_inside", [True, False])
def test_the_private_folder_of_each_attempt_is_its_own(root: str, *, is_inside: bool) -> None:
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")

    def script(turn: DueTurn, attempt: int) -> Agent:
        at = f"/run/tripod-0/{'01234567' * 2}-nova-{name}+{turn.key}-{attempt}"
        env = {} if is_inside else {"HOME": f"{at}/home"}
        argv = FOLDERS if is_inside else ("panel",)
        order = {"argv": argv, "cwd": at if is_inside else f"{at}/work", "set_env": env}
        level = "namespace" if is_inside else "folder"
        return Agent(said(turn.role, turn.persona), order=order, level=level)

    with Team(root) as team:
        play(team, name, script)
    found = blamed(root)
    assert found.keys() == (set() if is_inside else {"independence"})
    assert "its order" not in str(found)


@pytest.mark.parametrize("where", ["argv", "set_env"])
def test_other_folders_that_are_called_as_the_private_one(where: str, root: str) -> None:
    """Their names hold any text as digits: a namespace has no private folder, so each counts."""
    with Team(root) as team:
        name = open_nova(team, QUESTION, load_personas(), NovaLimits(), "alex")

    def script(turn: DueTurn, attempt: int) -> Agent:
        data = (ANALYSES["security"] if turn.persona == "performance" else turn.key * 30)[:160]
        said_so = [data[at : at + 8].encode().hex() for at in range(0, 160, 8)]
        text = "".join(f"/{one}-nova-{name}+{turn.key}-{attempt}" for one in said_so)
        usual = (*FOLDERS[:2], "--", "panel")
        order = {"argv": (*usual, text)} if where == "argv" else {"set_env": {"HOME": text}}
        return Agent(said(turn.role, turn.persona), order={"argv": usual, **order})

    with Team(root) as team:
        play(team, name, script)
    what = {"argv": "word 5 of its command line", "set_env": "the variable 'HOME'"}[where]
    assert blamed(root)["independence"][0].count(f"it differs in {what}") == 2


@pytest.mark.parametrize("argv", [(*FOLDERS[:2], *FOLDERS[4:], "--chdir", "/x"), ("--chdir", "/x")])
def test_a_folder_counts_unless_the_namespace_has_another(argv: tuple[str, ...], root: str) -> None:
    """What a program is told behind the options of the namespace is no option of that."""

    def script(turn: DueTurn, _: int) -> Agent:
        text = _BASE64 if turn.persona == "performance" else turn.key
        order = {"argv": argv, "cwd": f"/srv/{text}"}
        level = "namespace" if "bwrap" in argv[0] else "folder"
        return Agent(said(turn.role, turn.persona), order=order, level=level)

    panel(root, script)
    assert blamed(root)["independence"][0].count("it differs in its 'cwd'") == 2


@pytest.mark.parametrize("what", LEAKS)
def test_the_words_of_another_expert(what: str, root: str) -> None:
    panel(root, _odd("performance", **LEAKS[what]))
    found = blamed(root)
    assert found.keys() == {"independence"}
    (message,) = found["independence"]
    assert f"cycle 1: {what} (run " in message
    assert ", performance) holds 12 words in a row of security" in message


def test_the_words_of_an_answer_that_was_refused(root: str) -> None:
    def script(turn: DueTurn, attempt: int) -> Agent:
        if turn.persona == "security" and attempt == 1:
            return Agent(f"No form: {QUOTED}")
        told = turn.persona == "performance"
        return Agent(said(turn.role, turn.persona), extra=QUOTED if told else "")

    panel(root, script)
    assert blamed(root).keys() == {"independence"}


QUOTED = "I would rather read one file with a lock than ask a folder what it holds now"


def test_words_that_all_may_see_are_no_leak(root: str) -> None:
    """The coordinator quotes the experts of a cycle, and an expert says the same again."""
    quoting = said("synthesis", proposal=TOLD, epistemic={"know": 0.5, "uncertainty": 0.6})
    known = load_personas()[0].prompt

    def script(turn: DueTurn, _: int) -> Agent:
        if turn.role == "synthesis" and turn.cycle == 1:
            return Agent(quoting)
        again = {"analysis": known} if turn.role == "expert" else {}
        return Agent(said(turn.role, turn.persona, **again))

    panel(root, script)
    assert blamed(root) == {}


def test_a_prompt_that_is_not_that_of_the_record(root: str) -> None:
    """Ten words, in pieces or in another spelling: what is given is what the record gives."""
    panel(root, lambda turn, _: Agent(said(turn.role, turn.persona), extra="b2F1dGgy"))
    found = blamed(root)
    assert found.keys() == {"independence", "personas"}
    assert all("was given more in its prompt than" in one for one in found["independence"])
    assert len(found["independence"]) >= 3
    assert all("was given another prompt" in one or "more" in one for one in found["personas"])


def test_two_experts_whose_program_fails_alike(root: str) -> None:
    """An error is no word of an expert; what an expert said counts in another's errors, too."""
    failed = b"error: the endpoint of the model did not answer within the time that it was given\n"
    panel(root, lambda turn, _: Agent(said(turn.role, turn.persona), stderr=failed))
    assert blamed(root) == {}
    panel(root, _odd("performance", stderr=ANALYSES["security"].encode(), level="folder"))
    assert "its error output (run " in blamed(root)["independence"][0]


def test_a_turn_among_the_sources(root: str) -> None:
    def script(turn: DueTurn, _: int) -> Agent:
        with Team(root) as team:
            rows = team.store.db.execute(
                "SELECT max(seq) FROM nova_entries WHERE kind = 'nova.turn.recorded'"
            )
            seen = [seq for (seq,) in rows if seq is not None]
            ended = team.store.db.execute("SELECT max(ended) FROM agents").fetchone()[0]
        sources = {"performance": [ended], "integration": [ended]}.get(turn.persona, [])
        return Agent(said(turn.role, turn.persona), sources=sources if turn.cycle == 1 else seen)

    panel(root, script)
    found = blamed(root)
    assert found.keys() == {"independence"}
    assert any("performance was given the text of entry" in one for one in found["independence"])
    assert all("a run of " in one for one in found["independence"])


def test_an_output_that_repeats_another_expert(root: str) -> None:
    copied = said("expert", "performance", analysis=TOLD)
    panel(root, _odd("performance", says=copied, level="folder"))
    found = blamed(root)
    assert found.keys() == {"independence"}
    assert "its output (run " in found["independence"][0]
    assert "repeats 12 words in a row of security" in found["independence"][0]
    assert judge(root)["nova-independence"].failures == 1


def test_in_a_namespace_the_same_words_are_a_warning(root: str) -> None:
    panel(root, _odd("performance", says=said("expert", "performance", analysis=TOLD)))
    told = judge(root)["nova-independence"]
    assert (told.failures, told.warnings) == (0, 1)


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        ({"level": None}, "no entry says how it was kept apart"),
        (
            {"hidden": ["chat"]},
            "nothing says that events, ledger.db, record, workers did not exist",
        ),
        (
            {"hidden": ["chat", "events", "ledger.db", "record", "workers"]},
            "nothing says that nova did not exist",
        ),
    ],
)
def test_how_an_expert_was_kept_apart_must_be_said(
    odd: dict[str, Any], why: str, root: str
) -> None:
    panel(root, _odd("security", **odd))
    found = blamed(root)
    assert found.keys() == {"independence"}
    assert why in found["independence"][0]


_WIKI = McpServer(command="wiki")
CALL = {"type": "assistant", "message": {"content": [
    {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}}]}}  # fmt: skip


def _streamed(persona: str, *lines: dict[str, Any], **order: Any) -> Agent:
    answer = said("expert", persona)
    result = {"type": "result", "structured_output": answer | {"example": CALL["message"]}}
    text = "\n".join(json.dumps(one) for one in (*lines, result))
    return Agent(text, order={"output": "claude-stream-json", **order})


TOOLS: dict[str, Callable[[str], Agent]] = {
    "was granted the tools Read": lambda who: Agent(
        said("expert", who), order={"parameters": Parameters(tools=("Read",))}
    ),
    "used the tool Bash": lambda who: _streamed(who, CALL),
}


@pytest.mark.parametrize("says", TOOLS)
def test_a_tool_that_a_persona_had_or_used(says: str, root: str) -> None:
    usual = _odd("nobody")
    panel(root, lambda t, n: TOOLS[says](t.persona) if t.role == "expert" else usual(t, n))
    found = blamed(root)
    assert found.keys() == {"no-tools"}
    assert len(found["no-tools"]) == 3
    assert says in found["no-tools"][0]


def test_a_tool_server_is_no_tool_less(root: str) -> None:
    order = {"parameters": Parameters(mcp_servers={"wiki": _WIKI})}
    panel(root, _odd("dce", order=order))
    found = blamed(root)
    assert found.keys() == {"no-tools"}
    assert "had the tool servers wiki" in found["no-tools"][0]


def test_an_answer_in_a_shape_that_was_asked_for_uses_no_tool(root: str) -> None:
    shape = json.loads(json.dumps(CALL).replace("Bash", "StructuredOutput"))
    order = {"parameters": Parameters(schema={"type": "object"})}
    usual = _odd("nobody")
    panel(
        root,
        lambda t, n: _streamed(t.persona, shape, **order) if t.role == "expert" else usual(t, n),
    )
    assert blamed(root) == {}


# Ways round the rules ---------------------------------------------------------------------------


def test_an_answer_cannot_be_thrown_away_by_ending_its_agent(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A synthesis that its coordinator did not like counts, though its agent was told to end."""
    unsure = said("synthesis", epistemic={"know": 0.1, "uncertainty": 0.9})

    def script(turn: DueTurn, attempt: int) -> Agent:
        if turn.role == "synthesis" and attempt < 4:
            return Agent(unsure, status="cancelled")
        return Agent(said(turn.role, turn.persona))

    with monkeypatch.context() as patched:
        patched.setattr(nova_turns, "_is_whole", lambda *_: False)
        panel(root, script)
    found = blamed(root)
    assert found.keys() == {"order"}
    assert "dce (synthesis, cycle 1)" in found["order"][0]


def test_an_agent_that_was_told_to_end_may_have_answered_before(root: str) -> None:
    def script(turn: DueTurn, _: int) -> Agent:
        is_late = turn.role == "unpack"
        return Agent(said(turn.role, turn.persona), status="cancelled" if is_late else "ok")

    panel(root, script)
    assert blamed(root) == {}


@pytest.mark.parametrize("who", ["nova", "NOVA", "security", "Cae", "security expert"])
def test_a_protocol_is_no_person(who: str, root: str) -> None:
    unsure = said("synthesis", epistemic={"know": 0.1, "uncertainty": 0.9})

    def script(turn: DueTurn, _: int) -> Agent:
        return Agent(unsure if turn.role == "synthesis" else said(turn.role, turn.persona))

    name = panel(root, script, rounds=1)
    with Team(root) as team:
        with pytest.raises(BadArgumentError, match="no person"):
            decide_nova(team, name, "accept", "", who)
        with team.act() as act:
            asked = runner.nova_run(team.source, name).escalated
            body = {"run": name, "escalated": asked, "choice": "close", "note": b""}
            act.append([kinds.HUMAN.draft(body, who)])
        runner.settle_nova(team, name)
    assert blamed(root) == {
        "rounds": [f"{name}: {who} decided (close), which is no person"],
    }


@pytest.mark.parametrize("quoted", ["expert", "synthesis", "few words"])
def test_a_question_that_quotes_an_expert_of_an_earlier_run_is_named(
    root: str, quoted: str
) -> None:
    panel(root)
    public = "so many words of a proposal that everybody may see and quote at length in a question"

    def script(turn: DueTurn, attempt: int) -> Agent:
        text = "I say that " + public
        return (
            Agent(said("synthesis", proposal=text))
            if turn.role == "synthesis"
            else usual_agent(turn, attempt)
        )

    panel(root, script)
    words = {
        "expert": ANALYSES["security"],
        "synthesis": public,
        "few words": ANALYSES["security"][:40],
    }
    with Team(root) as team:
        name = open_nova(
            team, f"Is this so: {words[quoted]}", load_personas(), NovaLimits(), "alex"
        )
        play(team, name)
        earlier = "shall-the-queue-live-in-one-file-or-in-m"
        fork_nova(team, earlier, 4, "alex")
    if quoted == "expert":
        message = f"{name}: its question holds 12 words in a row of security in {earlier}"
        assert blamed(root) == {"independence": [message]}
    else:
        assert blamed(root) == {}


def test_a_question_that_is_not_that_of_its_digest(root: str) -> None:
    name = panel(root)
    with Team(root) as team:
        seq = runner.nova_run(team.source, name).opening.seq
        body, blobs = opening_again(team, team.source.body(seq))
        body["sha256"] = "0" * 64
        play(team, begin_nova(team, body, blobs, "alex"))
    found = blamed(root)
    assert found == {"personas": [f"{name}-2: its question is not that of its digest"]}


def test_a_fork_that_answers_otherwise_than_its_parent(root: str) -> None:
    name = panel(root)
    with Team(root) as team:
        fork = fork_nova(team, name, 4, "alex")
        play(team, fork)
    assert blamed(root) == {}
    other = said("expert", "security", analysis="Nobody asked me that before.")
    with Team(root) as team:
        again = fork_nova(team, name, 4, "alex")
        play(team, again, _odd("security", says=other))
    found = blamed(root)
    assert found.keys() == {"order"}
    assert f"answers as in no turn of {name}, and was asked the same" in found["order"][0]


def test_a_fork_of_no_run(root: str) -> None:
    name = panel(root)
    with Team(root) as team:
        body, blobs = opening_again(
            team, team.source.body(runner.nova_run(team.source, name).opening.seq)
        )
        body["parent"], body["parent_turn"] = "no-such-run", 3
        begin_nova(team, body, blobs, "alex")
    found = blamed(root)
    assert found.keys() == {"order"}
    assert "which had 0 turns" in found["order"][0]


PLAYER = b"#!/bin/sh\necho what stands on the tape\n"


def _played(root: str, parent: str, most: int, **live: Any) -> Any:
    """A script in which the first turns are played as a fork's are, the others by a program."""
    count = iter(range(1, 100))

    def script(turn: DueTurn, _: int) -> Agent:
        number = next(count)
        if number > most:
            return Agent(said(turn.role, turn.persona), **live)
        return _player(root, parent, turn, number)

    return script


def _player(root: str, parent: str, turn: DueTurn, number: int) -> Agent:
    """An agent that plays a turn of the parent, which said what it usually says."""
    with Team(root) as team:
        tape = replay._tape_of(team, parent, turn.key)[1]
    path = f"/run/tripod-fork-{number:08}/{turn.key}.json"
    order = {"argv": ("/usr/bin/bwrap", "--unshare-all", "--", "player", path)}
    files = (PLAYER, tape.encode())
    return Agent(said(turn.role, turn.persona), order=order, files=files)


def _forked(root: str, name: str, most: int, script: Any) -> None:
    with Team(root) as team:
        play(team, fork_nova(team, name, most, "alex"), script)


@pytest.mark.parametrize("most", range(1, 9))
def test_a_fork_that_is_played_from_tapes(most: int, root: str) -> None:
    """Cut anywhere, also amid a cycle: its program is given what the parent's was."""
    name = panel(root)
    _forked(root, name, most, _played(root, name, most))
    _forked(root, f"{name}-2", most, _played(root, f"{name}-2", most))
    assert blamed(root) == {}


@pytest.mark.parametrize("most", [2, 3])
def test_a_fork_amid_a_cycle_whose_program_is_another(most: int, root: str) -> None:
    """What the played experts say was known before the fork began."""
    name = panel(root)
    _forked(root, name, most, _played(root, name, most, order={"set_env": {"HINT": _BASE64}}))
    (message,) = blamed(root)["independence"]
    assert message.count("differs in the variable 'HINT'") == 4 - most
    assert f"{name}-2, cycle 1, integration (" in message


@pytest.mark.parametrize("how", ["it is played", "it says so again", "it is missed"])
def test_a_fork_that_knows_more_of_its_parent_than_its_first_turns(how: str, root: str) -> None:
    """The first expert is ordered before the others, and is told what they said in the parent."""

    def usual(turn: DueTurn, _: int) -> Agent:
        is_missed = how == "it is missed" and turn.persona == "performance"
        return Agent(ANALYSES["performance"] if is_missed else said(turn.role, turn.persona))

    name = panel(root, usual)

    def script(turn: DueTurn, attempt: int) -> Agent:
        agent = usual(turn, attempt)
        if turn.persona == "security":
            return Agent(said(turn.role, analysis="Me, too."), order={"set_env": {"HINT": _BASE64}})
        if turn.persona == "integration":
            return Agent(said(turn.role, analysis="That is for others to say."))
        if turn.persona != "performance" or how == "it says so again":
            return agent
        return _player(root, name, turn, attempt)._replace(says=agent.says)

    _forked(root, name, 1, script)
    message = blamed(root)["independence"][0]
    assert f"{name}-2, cycle 1, security (" in message
    assert f"differs in the variable 'HINT' {HINT}" in message
    is_beyond = f"it is played from {name}, beyond turn 1 that forks it" in message
    assert is_beyond == (how != "it says so again")


def test_a_turn_that_was_missed_among_the_first_is_played_as_well(root: str) -> None:
    def usual(turn: DueTurn, _: int) -> Agent:
        return Agent("?" if turn.persona == "security" else said(turn.role, turn.persona))

    def script(turn: DueTurn, attempt: int) -> Agent:
        agent = usual(turn, attempt)
        if turn.role != "unpack" and turn.persona not in ("security", "performance"):
            return agent
        return _player(root, name, turn, attempt)._replace(says=agent.says)

    name = panel(root, usual)
    with Team(root) as team:
        assert list(runner.nova_run(team.source, name).cycles[0].missed) == ["security"]
    _forked(root, name, 2, script)
    assert blamed(root) == {}


def test_a_fork_may_say_again_what_its_parent_said(root: str) -> None:
    """A program that always answers alike is ordered as it was in the parent."""
    name = panel(root)
    _forked(root, name, 1, _played(root, name, 1))
    assert blamed(root) == {}


def _doctored(persona: str, change: Callable[[Agent], Agent], script: Any) -> Any:
    def other(turn: DueTurn, attempt: int) -> Agent:
        agent: Agent = script(turn, attempt)
        return change(agent) if turn.persona == persona else agent

    return other


def _taped(agent: Agent) -> Agent:
    tape = json.loads(agent.files[1]) | {"0" * 64: [0, "a writer of its own"]}
    return agent._replace(files=(PLAYER, json.dumps(tape).encode()))


DOCTORED: dict[str, Callable[[Agent], Agent]] = {
    "a file with the digest": _taped,
    f"a file with the digest '{sha256(_BASE64.encode()).hexdigest()[:12]}'": lambda one: (
        one._replace(files=(_BASE64.encode(), *one.files[1:]))
    ),
    "the variable 'HINT'": lambda one: one._replace(
        order={**one.order, "set_env": {"HINT": _BASE64}}
    ),
    "word 5 of its command line": lambda one: one._replace(
        order={"argv": (*one.order["argv"][:-1], f"/run/{_BASE64[:8]}/1-expert-integration.json")}
    ),
}


@pytest.mark.parametrize("what", DOCTORED)
def test_a_tape_that_holds_more_than_the_record_gives(what: str, root: str) -> None:
    name = panel(root)
    _forked(root, name, 4, _doctored("integration", DOCTORED[what], _played(root, name, 4)))
    found = blamed(root)
    assert found.keys() == {"independence"}
    assert f"{name}-2, cycle 1, integration (" in found["independence"][0]
    assert what in found["independence"][0]


def test_other_paths_that_are_called_as_that_of_the_tape(root: str) -> None:
    """Each holds eight characters: only the one that the player reads is left out."""
    name = panel(root)
    usual = _played(root, name, 4)

    def script(turn: DueTurn, attempt: int) -> Agent:
        agent: Agent = usual(turn, attempt)
        data = b"a writer of its own" if turn.persona == "integration" else turn.key.encode()
        text = data.hex().ljust(40, "0")
        more = [f"/tripod-fork-{text[at : at + 8]}/{turn.key}.json" for at in range(0, 40, 8)]
        *words, tape = agent.order.get("argv", ("/usr/bin/bwrap", "--unshare-all", "--", "x"))
        return agent._replace(order={"argv": (*words, *more, tape)})

    _forked(root, name, 4, script)
    (message,) = blamed(root)["independence"]
    assert message.count(" of its command line") == 2


def test_a_program_with_the_tape_beside_it(root: str) -> None:
    """It was given what all of its fork were, and that may be what the parent's experts said."""
    name = panel(root)
    usual = _played(root, name, 3)

    def script(turn: DueTurn, attempt: int) -> Agent:
        agent: Agent = usual(turn, attempt)
        agent = agent._replace(files=(_BASE64.encode(), *agent.files[1:]))
        other = said(turn.role, turn.persona, analysis="Nobody asked me that before.")
        return agent._replace(says=other) if turn.persona == "performance" else agent

    _forked(root, name, 3, script)
    found = blamed(root)
    assert "order" in found
    assert f"{name}-2, cycle 1, performance (" in found["independence"][0]
    assert f"{name}-2, cycle 1, security (" not in found["independence"][0]
