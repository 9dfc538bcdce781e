"""A turn of a Nova run from the tries at it: what can be recorded, or that a try is due. Pure.

A persona has two answers a turn: the second is told what was wrong with the first. Agents that were
lost with their coordinator are tried again, twice at most. The runner records what
``stand_of_tries`` gives for the tries at a turn, and the verifier holds the record against it.

Source: spec nova N2, N3.7; kernel A-8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from tripod.ledger import MalformedError, format_canonical
from tripod.projections.nova.answers import NEEDS_EPISTEMIC, NovaAnswer, read_answer
from tripod.projections.nova.rules import UNTOLD
from tripod.projections.nova.run import DueEntry, DueTurn, NovaRun, share_text
from tripod.projections.workers.answers import Answer

ROLE = "nova"
"""The role of the agents that personas are."""

TRIES = 2  # answers at one turn
MAX_LOST = 2  # how often a program is ordered that was killed with who ran it
MAX_PROBLEM = 500  # characters of a problem that are kept
_SHOWN = 200  # characters of a program's last words


class TurnTry(NamedTuple):
    """A run of an agent for a turn; ``state`` is requested, started, ended or abandoned.

    Of one that ended: ``status``, what is wrong with any but ``ok``, the answer, what it cost, and
    whether it was ended because it was told to: that is no try.
    """

    spawn: str
    attempt: int
    state: str
    status: str = ""
    problem: str = ""
    answer: Answer = Answer()
    cost: str | None = None
    is_cancelled: bool = False


class TurnStand(NamedTuple):
    """How a due turn stands: ``first`` is the attempt that would be next.

    ``problem`` is of the newest answer. ``entry`` is what can be recorded: the turn, or that it was
    missed.
    """

    first: int
    problem: str
    entry: DueEntry | None


def told_problem(problem: str, stderr: bytes) -> str:
    """What is wrong with a run of a program, with its last words on standard error."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    said = f" (it said: {lines[-1][:_SHOWN]})" if lines else ""
    return f"{problem[:MAX_PROBLEM]}{said}"


class PlayedTry(NamedTuple):
    """A try at a turn as a tape needs it: the SHA-256 of its prompt, its exit code, its output."""

    one: TurnTry
    prompt: str
    exit_code: int | None
    output: str


def tape_of_tries(role: str, tries: Iterable[PlayedTry]) -> dict[str, tuple[int, str]]:
    """What is played of a turn: for the SHA-256 of a prompt the exit code and the output.

    Answers are played, those that were refused as well. That a program failed (its exit code, a
    signal, its time) cannot be done again, and the prompt of the next try says how it failed: so
    the answer that came at last is played for the first prompt. Without one the program fails.
    """
    answered = [
        one
        for one in tries
        if one.one.state == "ended" and (not one.one.is_cancelled or _is_whole(role, one.one))
    ]
    played = [one for one in answered if one.one.status == "ok" or one.one.is_cancelled]
    if played and len(played) < len(answered):
        return {answered[0].prompt: (0, played[-1].output)}
    return {
        one.prompt: (0 if one in played else one.exit_code or 1, one.output) for one in answered
    }


def format_tape(answers: Mapping[str, tuple[int, str]]) -> str:
    r"""A tape: what was answered to each prompt of one turn (exit code, text), by its SHA-256.

    It is JSON, and the player of ``tripod.nova.replay`` reads it by lines: each answer has one, and
    only what JSON must escape is escaped.

    >>> format_tape({"e3b0c442": (0, "Tea")})
    '{\n"e3b0c442": [0, "Tea"]\n}\n'
    """
    rows = (
        f"{json.dumps(digest)}: {json.dumps(answer, ensure_ascii=False)}"
        for digest, answer in answers.items()
    )
    return "{\n" + ",\n".join(rows) + "\n}\n"


def subject_of_turn(run: NovaRun, turn: DueTurn) -> str:
    """What the runs of agents for a turn have as their subject."""
    return f"{run.opening.run}/{turn.key}"


def stand_of_tries(run: NovaRun, turn: DueTurn, tries: Iterable[TurnTry]) -> TurnStand:
    """How a due turn stands by the tries at it, the first of them first."""
    every = list(tries)
    ended = [one for one in every if one.state == "ended"]
    first = 1 + max((one.attempt for one in ended), default=0)
    lost = sum(one.state == "abandoned" for one in every if one.attempt >= first)
    answered = [one for one in ended if not one.is_cancelled or _is_whole(turn.role, one)]
    problem = ""
    usable: tuple[TurnTry, NovaAnswer] | None = None
    for one in answered:
        answer, problem = _answer_of(turn.role, one)
        if answer is not None:
            usable = one, answer
            if not problem:
                break
    over = len(answered) >= TRIES or lost >= MAX_LOST
    cost = f"{sum((Decimal(one.cost or 0) for one in ended), Decimal('0.0000')):f}"
    if usable is not None and (over or not problem):
        body = _turn_body(run, turn, *usable, cost)
        return TurnStand(first, problem, DueEntry("nova.turn.recorded", body))
    if not over:
        return TurnStand(first, problem, None)
    problem = problem or "its program was killed together with its caller, each time"
    missed = {
        "run": run.opening.run,
        "cycle": turn.cycle,
        "role": turn.role,
        "persona": turn.persona,
        "spawns": [one.spawn for one in every],
        "problem": problem,
        "cost": cost,
    }
    return TurnStand(first, problem, DueEntry("nova.turn.missed", missed))


def _is_whole(role: str, one: TurnTry) -> bool:
    """Whether an agent that was told to end had answered: else any answer could be thrown away."""
    try:
        read_answer(role, one.answer.text)
    except MalformedError:
        return False
    return one.answer.status == "ok"


def _answer_of(role: str, one: TurnTry) -> tuple[NovaAnswer | None, str]:
    """What a run of a program answered, and what is wrong with that."""
    if one.status != "ok" and not one.is_cancelled:
        return None, one.problem
    try:
        answer = read_answer(role, one.answer.text)
    except MalformedError as error:
        return None, str(error)[:MAX_PROBLEM]
    return answer, answer.problem[:MAX_PROBLEM]


def _turn_body(
    run: NovaRun, turn: DueTurn, one: TurnTry, answer: NovaAnswer, cost: str
) -> dict[str, Any]:
    epistemic = answer.epistemic
    is_missing = epistemic is None and (turn.role in NEEDS_EPISTEMIC or bool(answer.problem))
    if is_missing:
        epistemic = UNTOLD
    structured = one.answer.structured is not None and answer.form == "json"
    return {
        "run": run.opening.run,
        "turn": len(run.turns) + 1,
        "cycle": turn.cycle,
        "role": turn.role,
        "persona": turn.persona,
        "spawn": one.spawn,
        "content": one.answer.text.encode("utf-8", "replace"),
        "parsed": format_canonical(dict(answer.fields)),
        "parsed_by": "structured" if structured else answer.form,
        "epistemic": epistemic
        and {
            "know": share_text(epistemic.know),
            "uncertainty": share_text(epistemic.uncertainty),
            "source": "missing" if is_missing else "stated",
        },
        "mislabelled": _mislabelled(run, turn, answer),
        "cost": cost,
    }


def _mislabelled(run: NovaRun, turn: DueTurn, answer: NovaAnswer) -> str | None:
    """How an answer names itself, where that is another persona or turn than it was asked for."""
    persona, number = answer.labels
    known = next((p for p in run.opening.personas if p["short_name"] == turn.persona), None)
    role = "" if known is None else str(known["role"])
    names = {turn.persona.casefold(), role.casefold()}
    wrong = [f"persona {persona}"] if persona and persona.casefold() not in names else []
    wrong += [f"turn {number}"] if number and number != str(turn.number) else []
    return ", ".join(wrong) or None


def is_of_panel(run: NovaRun, actor: str) -> bool:
    """Whether this is a name of the protocol or of one of the run's personas: no person decides so.

    Case does not count.
    """
    names = {str(one[name]) for one in run.opening.personas for name in ("short_name", "role")}
    return actor.casefold() in {one.casefold() for one in (ROLE, *names)}
