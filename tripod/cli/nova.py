"""``tripod nova``: a question is taken through a panel of personas, to a decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tripod.cli.commands import (
    NOBODY,
    TEXT,
    ChoiceParam,
    CommandCall,
    NumberParam,
    command_group,
    moment_param,
    text_param,
    whole_number_param,
)
from tripod.errors import BadArgumentError, NotFoundError
from tripod.nova.reader import NovaStanding, list_nova, metrics_of_nova, standing_of_nova
from tripod.nova.replay import carry_on, compare_nova, fork_nova, replay_nova
from tripod.nova.runner import (
    NovaLimits,
    cancel_nova,
    decide_nova,
    end_programs,
    load_personas,
    nova_run,
    open_nova,
    order_persona,
    state_in_words,
    write_personas,
)
from tripod.output import emit, hanging, one_line, remark

if TYPE_CHECKING:
    from tripod.projections.nova.run import NovaRun
    from tripod.team.team import Team

MAX_TIME = 10**7  # seconds
MAX_TURNS = 10**6
MAX_NOTE = 4_096  # bytes of why a run is cancelled
REASONS = {
    "max_rounds": "no further cycle is allowed, and the question is not settled",
    "converged_unresolved": "the syntheses hardly change any more, and the question is not settled",
    "budget": "the budget is spent",
    "no_expert_spoke": "no expert gave an answer that could be used",
}
"""The reasons that entries give in one word, for people."""


def _process(call: CommandCall) -> int:
    # The words behind `--` follow QUESTION: with --file the first of them takes its place.
    is_in_file = call.file is not None
    question = text_param(None if is_in_file else call.question, call.file, "question")
    command = [call.question, *call.command] if is_in_file and call.question else call.command
    words = len(call.command) + (call.question is not None)
    if not is_in_file and call.behind is not None and words <= call.behind:
        raise BadArgumentError(
            "question: none given before the `--` (as argument, or by --file); what stands behind "
            "it is the program"
        )
    if not is_in_file and call.question is None:
        raise BadArgumentError("question: none given (as argument, or by --file)")
    if not question.strip():  # said before a program is looked for
        raise BadArgumentError("question: empty; ask something")
    personas = load_personas(call.persona_dir)
    turns, cost = _budget(call.budget)
    limits = NovaLimits(
        threshold=call.threshold,
        rounds=call.max_rounds,
        concurrency=call.concurrency,
        turns=turns,
        cost=cost,
        log=call.log,
        work_effort=call.work_effort,
    )
    with call.fresh() as team:
        actor = call.known_actor() or NOBODY
        order = _order(call, team, command)
        name = open_nova(team, question, personas, limits, actor)
        remark(f"run {name} begins; `tripod nova resume {name}` goes on with it if this one ends")
        return _carry_on(call, team, name, order)


def _budget(words: Any) -> tuple[int | None, str | None]:
    """What may be spent: turns, as in ``12t``, and US dollars."""
    turns = [word for word in words or () if word.endswith("t")]
    cost = [word for word in words or () if not word.endswith("t")]
    if max(len(turns), len(cost)) > 1:
        raise BadArgumentError(
            f"budget: {' and '.join(turns if len(turns) > 1 else cost):.80}: give one number of "
            "turns (12t) and one amount of US dollars (2.50) at most"
        )
    number = whole_number_param(turns[0][:-1], 1, MAX_TURNS) if turns else None
    if turns and number is None:
        raise BadArgumentError(
            f"budget: {turns[0]:.40} is no number of turns from 1t to {MAX_TURNS}t"
        )
    return number, cost[0] if cost else None


def _order(call: CommandCall, team: Team, command: Sequence[str]) -> Any:
    from tripod.agents.folder import IsolatedProgram

    program = IsolatedProgram(
        command=command,
        profile=call.profile,
        model=call.model,
        effort=call.effort,
        shows=call.show,
        network=call.network,
        timeout_s=call.timeout,
        require_namespace=call.require_namespace,
    )
    try:
        return order_persona(team, program, call.known_actor() or "tripod")
    except NotFoundError as error:
        hint = (
            "Or say what answers for the personas: `-- PROGRAM` behind all other arguments, or "
            "--profile FILE"
        )
        if command:
            hint = "With --file all words behind the options are the program"
            if call.get("file") is None:
                raise
        raise NotFoundError(f"{error}. {hint}") from error


def _carry_on(call: CommandCall, team: Team, name: str, order: Any) -> int:
    import asyncio

    told: set[str] = set()

    def tell(run: NovaRun) -> None:
        for line in _progress(run):
            if line not in told:
                told.add(line)
                remark(f"{name}: {line}")

    asyncio.run(carry_on(team, name, order, tell))
    return _answer(call, team, name)


def _progress(run: NovaRun) -> Iterator[str]:
    """How far a run is: what each cycle came to, who has to speak, what was spent."""
    for cycle in run.cycles:
        if cycle.verdict is not None and cycle.synthesis is not None:
            state = cycle.synthesis.epistemic
            shown = "" if state is None else f" at uncertainty {state.uncertainty:f}"
            shown += " (the synthesis states none)" if cycle.synthesis.is_missing else ""
            yield f"gate of cycle {cycle.number}: {cycle.verdict}{shown}"
        if cycle.flaws is not None:
            yield f"critique of cycle {cycle.number}: {cycle.flaws}"
    names = ", ".join(turn.persona for turn in run.due_turns())
    speak = f", to speak: {names}" if names else ""
    spent = f"{_many(len(run.turns), 'turn')}, {_spent(run)}"
    yield f"{state_in_words(run)}; {spent}{speak}"


def _answer(call: CommandCall, team: Team, name: str) -> int:
    """Print how a run stands; 0 where it came to a decision, or was closed by a person."""
    found = standing_of_nova(team, name)
    call.answer(found.status, _lines(found))
    return 0 if found.status["outcome"] in ("decided", "human_accepted", "closed") else 1


def _lines(found: NovaStanding) -> list[str]:
    """What became of a run: the decision, or why it has no decision; what to do next."""
    run, status = found.run, found.status
    spent = f"{_many(len(run.turns), 'turn')}, {_many(run.number, 'cycle')}"
    lines = [f"{run.opening.run}: {state_in_words(run)}, {spent}"]
    if run.finalized is not None and "decision" in run.finalized:
        lines.append(hanging(str(run.turns[-1].fields.get("decision", "(its text was redacted)"))))
        stated = status["stated_confidence"]
        more = f" (it states {stated})" if stated else ""
        lacks = ", as the final turn does not say what it knows" if run.turns[-1].is_missing else ""
        lines.append(f"confidence {status['confidence']}{more}{lacks}")
    elif status["reason"]:
        lines.append(f"reason: {REASONS.get(status['reason'], one_line(status['reason']))}")
    return [*lines, f"next: {found.next}"] if found.next else lines


def _spent(run: NovaRun) -> str:
    """What the programs of a run said that they cost."""
    return f"{run.spent:f} USD" if run.spent else "no cost stated"


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _resume(call: CommandCall) -> int:
    with call.fresh() as team:
        if nova_run(team.source, call.run_).finalized is not None:
            ended = end_programs(team, call.run_)
            left = f", and what still ran for it was ended ({_many(ended, 'program')})"
            remark(f"{call.run_} is over: nothing was run{left if ended else ''}")
            return _answer(call, team, call.run_)
        return _carry_on(call, team, call.run_, _order(call, team, call.command))


def _list(call: CommandCall) -> None:
    with call.fresh() as team:
        found = list_nova(team)
    lines = [
        f"{one['run']}: {one['outcome'] or one['state']}, {_many(one['turns'], 'turn')}, "
        f"{_many(one['cycle'], 'cycle')}"
        for one in found
    ]
    call.answers(found, lines)


def _status(call: CommandCall) -> None:
    with call.fresh() as team:
        found = standing_of_nova(team, call.run_)
    call.answer(found.status, _standing_lines(found))


def _standing_lines(found: NovaStanding) -> list[str]:
    from tripod.projections.nova.files import format_epistemic

    run, status = found.run, found.status
    lines = [f"{run.opening.run}: {state_in_words(run)}"]
    why = status["reason"]
    lines += [f"reason: {REASONS.get(why, one_line(why))}"] if why else []
    lines.append(f"question: {one_line(run.opening.question)}")
    spent = (
        f"{_many(len(run.turns), 'turn')}, {run.number} of {_many(run.limit, 'cycle')}, "
        f"{_spent(run)}"
    )
    if status["budget_turns"] or status["budget_cost"]:
        allowed = [_many(status["budget_turns"], "turn")] if status["budget_turns"] else []
        allowed += [f"{status['budget_cost']} USD"] if status["budget_cost"] else []
        spent += f" (budget: {', '.join(allowed)}, once more for each decision of a person)"
    lines.append(f"spent: {spent}")
    for cycle in run.cycles:
        spoke = f"{len(cycle.spoken)} of {len(run.selected)} experts spoke"
        if not run.selected:
            spoke = f"{_many(len(cycle.spoken), 'expert')} spoke, and the list of them was erased"
        parts = [spoke]
        parts += [f"{who} did not: {one_line(why)}" for who, why in cycle.missed.items()]
        if cycle.synthesis is not None:
            parts.append(f"{format_epistemic(cycle.synthesis)} (threshold {status['threshold']})")
        parts += ["converged"] if cycle.converged else []
        parts += [f"gate: {cycle.verdict}"] if cycle.verdict else []
        parts += [f"critique: {cycle.flaws}"] if cycle.flaws else []
        lines.append(f"cycle {cycle.number}: {'; '.join(parts)}")
    for one in found.agents:
        words = {"running": "runs", "ended": "has answered, and nothing is recorded of it yet"}
        state = words.get(one.state, "is lost: it was killed with the command that ran it")
        lines.append(f"{one.persona} ({one.role}, attempt {one.attempt}) {state}: {one.spawn}")
    if found.next:
        lines.append(f"next: {found.next}")
    return lines


def _metrics(call: CommandCall) -> None:
    from tripod.projections.nova.metrics import metric_text

    since = moment_param(call.since, "since")
    with call.fresh() as team:
        over, found = metrics_of_nova(team, 1_000_000 * (since or 0))
    values = [
        one._asdict() | {"value": None if one.value is None else f"{one.value:f}"} for one in found
    ]
    lines = [f"{over} {'run is' if over == 1 else 'runs are'} over"]
    for one in found:
        missed = ", missed" if one.meets is False else ""
        target = f" (target: {one.target}{missed})" if one.target else ""
        lines += [f"{one.name}: {metric_text(one)}{target}", f"    {one.definition}"]
    call.answers(values, lines)


def _show(call: CommandCall) -> None:
    if call.html and call.json:
        raise BadArgumentError("--html and --json: give one of them; a page is no JSON")
    with call.fresh() as team:
        found = standing_of_nova(team, call.run_)
    if call.html:
        from tripod.report.page import render_nova

        emit(render_nova(found.run).decode().splitlines())
    else:
        from tripod.projections.nova.files import nova_turns, render_transcript

        turns = nova_turns(found.run)
        call.answer(found.status | {"record": turns}, render_transcript(found.run).splitlines())


def _replay(call: CommandCall) -> int:
    with call.fresh() as team, call.progress():
        found = replay_nova(team, call.run_)
    same = not found.difference
    ends = (
        "has the same bytes up to where the record stops"
        if found.stops
        else "ends with the same bytes"
    )
    lines = [f"{call.run_}: the replay {ends}"] if same else found.difference
    value = {"run": call.run_, "same": same, "difference": list(found.difference)}
    call.answer(value | {"stops": found.stops}, lines)
    return 0 if same else 1


def _fork(call: CommandCall) -> int:
    with call.fresh() as team:
        order = _order(call, team, call.command)
        name = fork_nova(team, call.run_, call.at, call.known_actor() or NOBODY)
        remark(f"run {name} begins with the turns 1 to {call.at} of {call.run_}")
        return _carry_on(call, team, name, order)


def _compare(call: CommandCall) -> int:
    with call.fresh() as team:
        pair = [nova_run(team.source, name) for name in (call.run_, call.other)]
    rows = list(compare_nova(*pair))
    lines = []
    for row in rows:
        lines.append(f"turn {row.turn}: {row.how}")
        if row.how != "same":
            lines += [f"  - {line}" for line in row.first.splitlines()]
            lines += [f"  + {line}" for line in row.second.splitlines()]
    call.answers((row._asdict() for row in rows), lines)
    return 0 if all(row.how == "same" for row in rows) else 1


def _decide(call: CommandCall) -> None:
    with call.fresh() as team:
        actor = call.actor(needed=True)
        decide_nova(team, call.run_, call.choice, call.note or "", actor)
        _answer(call, team, call.run_)


def _cancel(call: CommandCall) -> None:
    note = call.note or "it was cancelled"
    if len(note.encode()) > MAX_NOTE:
        raise BadArgumentError(f"note: more than {MAX_NOTE} bytes")
    with call.fresh() as team:
        cancel_nova(team, call.run_, note, call.actor())
        _answer(call, team, call.run_)


def _personas(call: CommandCall) -> None:
    if call.action == "init":
        if call.folder is None:
            raise BadArgumentError(
                "personas init: no folder given; `tripod nova personas init FOLDER` writes a set "
                "into it, and leaves each file that is there"
            )
        written = write_personas(call.folder)
        call.answer({"written": written}, written or ["nothing was written: all are there"])
        return
    found = load_personas(call.folder)
    values = [
        {
            "short_name": one.short_name,
            "role": one.role,
            "pattern": one.pattern,
            "path": one.path,
            "responsibility": one.responsibility,
        }
        for one in found
    ]
    lines = [f"{one.short_name} ({one.pattern}): {one.responsibility}" for one in found]
    call.answers(values, lines)


_PROGRAM = """\
    --profile NAME       The personas' program: pythia, or a YAML file.
    --model NAME         The model, for a program that takes one.
    --effort LEVEL       How hard it tries, for a program that takes that.
    --show PATH...       A file or folder that the program consists of, beside those it names.
    --network            Let the program reach the network.
    --require-namespace  Refuse to run unless kernel isolation (a mount namespace) is available.
    --timeout S          End a program after S seconds. [default: 1800]
    --as HANDLE          Who wants it done.
"""
_NOVA = f"""\
nova
    Exit codes: 0 ok, 1 no decision resulted, or refused, 2 usage, 3 the ledger cannot be read.

process [QUESTION] [COMMAND]...
    Have a panel of personas answer a question: the decision and its turns are recorded.

    COMMAND, after a --, is the program of every persona, with its arguments; it reads its
    prompt on standard input and prints its answer. Where none is given, the coding agent of
    --profile is run.

    --file FILE          Read the question from FILE, or - for stdin; QUESTION is left out then.
    --persona-dir FOLDER  The personas; else those that ship with tripod.
    --max-rounds N       Cycles at most. [default: 5]
    --threshold X        The gate: a synthesis more uncertain is sent back. [default: 0.35]
    --concurrency N      Experts at once. [default: 4]
    --budget B...        What may be spent: 12t for turns, 2.50 for US dollars.
    --log FILE           Log the decision in this decision log as well, such as log.md.
    --work-effort WE     Add the decision to _work_efforts/WE/decisions.md beside the team as well.
{_PROGRAM}
resume RUN [COMMAND]...
    Go on with a run where it stopped; of one that is over, end programs that were left running.

{_PROGRAM}
list
    List all runs, oldest first.
    looks: always

status RUN
    Print how a run stands: its state, cycles and gates, what it spent, what runs, what to do next.
    looks: always

metrics
    Print figures over the runs that are over, each with its definition and the design's target.

    --since WHEN   Runs that began since WHEN: 2h or 7d ago, or 2026-02-12T14:00:00.
    looks: always

show RUN
    Print the transcript of a run.

    --html         Print a page for a browser: gates, turns, critique and its answer.
    looks: always

replay RUN
    Play a run again from its recorded answers, and compare: it has to end with the same bytes.

    Compared are the transcript and the run's section of decisions.md, but for numbers of entries
    and for the words in which a program failed. A run that is open or was cancelled is compared up
    to where its record stops.

    The replay has a ledger of its own, which is thrown away. Exit code 1: they differ.

fork RUN [COMMAND]...
    Begin a new run that has the first turns of another one, and go on from there.

    --at TURN            The last turn that it has from RUN. [required]
{_PROGRAM}
compare RUN OTHER
    Show turn by turn what differs between two runs. Exit code 1: something does.
    looks: always

decide RUN CHOICE
    Decide a run that waits for a person: accept, redirect (one more cycle) or close.

    --note TEXT    Why; with redirect, what the panel is to look at.
    --as HANDLE    Who decides.

cancel RUN
    End a run, and the programs that run for it.

    --note TEXT    Why.
    --as HANDLE    Who cancels it.

personas ACTION [FOLDER]
    Write the personas that ship with tripod into FOLDER (init), list or check those of FOLDER.
    without: --team
"""
_KINDS = {
    "--show": TEXT,
    "--timeout": NumberParam(1, MAX_TIME),
    "--at": NumberParam(1, 10**6),
    "--max-rounds": NumberParam(1, 1000),
    "--concurrency": NumberParam(1, 64),
    "CHOICE": ChoiceParam("accept", "redirect", "close"),
    "ACTION": ChoiceParam("init", "list", "check"),
}
_WORKS = [
    _process, _resume, _list, _status, _metrics, _show, _replay, _fork, _compare, _decide,
    _cancel, _personas,
]  # fmt: skip
COMMANDS = {"nova": command_group(_NOVA, _WORKS, _KINDS)}
