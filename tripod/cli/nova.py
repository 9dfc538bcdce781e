"""``tripod nova``: a question is taken through a panel of personas, to a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tripod.cli.commands import (
    NOBODY,
    TEXT,
    ChoiceParam,
    CommandCall,
    NumberParam,
    command_group,
    text_param,
)
from tripod.errors import BadArgumentError
from tripod.nova.replay import carry_on, compare_nova, fork_nova, replay_nova
from tripod.nova.runner import (
    NovaLimits,
    cancel_nova,
    decide_nova,
    list_nova,
    load_personas,
    nova_run,
    open_nova,
    order_persona,
    state_in_words,
    write_personas,
)
from tripod.output import emit, remark

if TYPE_CHECKING:
    from tripod.projections.nova.run import NovaRun
    from tripod.team.team import Team

MAX_TIME = 10**7  # seconds


def _process(call: CommandCall) -> int:
    question = text_param(call.question, call.file, "question")
    personas = load_personas(call.persona_dir) if call.persona_dir else load_personas()
    turns, cost = _budget(call.budget)
    limits = NovaLimits(
        threshold=call.threshold,
        rounds=call.max_rounds,
        concurrency=call.concurrency,
        turns=turns,
        cost=cost,
        log=call.log,
    )
    with call.fresh() as team:
        actor = call.known_actor() or NOBODY
        order = _order(call, team)
        name = open_nova(team, question, personas, limits, actor)
        remark(f"run {name} begins; `tripod nova resume {name}` goes on with it if this one ends")
        return _carry_on(call, team, name, order)


def _budget(words: Any) -> tuple[int | None, str | None]:
    """What may be spent: turns, as in ``12t``, and US dollars."""
    turns: int | None = None
    cost: str | None = None
    for word in words or ():
        if word.endswith("t") and word[:-1].isdecimal() and word.isascii():
            turns = int(word[:-1][:15])
        else:
            cost = word
    return turns, cost


def _order(call: CommandCall, team: Team) -> Any:
    from tripod.agents.folder import IsolatedProgram

    program = IsolatedProgram(
        command=call.command,
        profile=call.profile,
        model=call.model,
        effort=call.effort,
        shows=call.show,
        network=call.network,
        timeout_s=call.timeout,
        require_namespace=call.require_namespace,
    )
    return order_persona(team, program, call.known_actor() or "tripod")


def _carry_on(call: CommandCall, team: Team, name: str, order: Any) -> int:
    import asyncio

    told = [""]

    def tell(run: NovaRun) -> None:

        line = f"{name}: {state_in_words(run)}, {len(run.turns)} turns, {run.spent:f} USD"
        if line != told[0]:
            told[0] = line
            remark(line)

    run = asyncio.run(carry_on(team, name, order, tell))
    return _answer(call, run)


def _answer(call: CommandCall, run: NovaRun) -> int:
    """Print how a run stands; 0 where it came to a decision, or was closed by a person."""
    from tripod.projections.nova.files import nova_status

    status = nova_status(run)
    call.answer(status, _lines(run, status))
    return 0 if status["outcome"] in ("decided", "human_accepted", "closed") else 1


def _lines(run: NovaRun, status: dict[str, Any]) -> list[str]:

    name = run.opening.run
    lines = [f"{name}: {state_in_words(run)}, {len(run.turns)} turns, {status['cycle']} cycles"]
    if run.finalized is not None and "decision" in run.finalized:
        final = run.turns[-1]
        lines.append(str(final.fields.get("decision", "")))
        stated = status["stated_confidence"]
        more = f" (it states {stated})" if stated else ""
        lines.append(f"confidence {status['confidence']}{more}")
    elif run.finalized is not None and run.finalized.get("reason"):
        lines.append(str(run.finalized["reason"]))
    elif run.state == "awaiting_human":
        lines.append(
            f"a person has to decide: `tripod nova decide {name} accept` (or redirect, close)"
        )
    return lines


def _resume(call: CommandCall) -> int:
    with call.fresh() as team:
        nova_run(team.source, call.run_)
        return _carry_on(call, team, call.run_, _order(call, team))


def _list(call: CommandCall) -> None:
    with call.fresh() as team:
        found = list_nova(team)
    lines = [
        f"{one['run']} {one['outcome'] or one['state']}: {one['turns']} turns, cycle {one['cycle']}"
        for one in found
    ]
    call.answers(found, lines)


def _show(call: CommandCall) -> None:
    from tripod.projections.nova.files import nova_status, render_transcript

    with call.fresh() as team:
        run = nova_run(team.source, call.run_)
    if call.html:
        from tripod.report.page import render_nova

        emit(render_nova(run).decode().splitlines())
    else:
        call.answer(nova_status(run), render_transcript(run).splitlines())


def _replay(call: CommandCall) -> int:
    with call.fresh() as team, call.progress():
        found = replay_nova(team, call.run_)
    same = not found.difference
    lines = [f"{call.run_}: the replay ends with the same bytes"] if same else found.difference
    call.answer({"run": call.run_, "same": same, "difference": list(found.difference)}, lines)
    return 0 if same else 1


def _fork(call: CommandCall) -> int:
    with call.fresh() as team:
        order = _order(call, team)
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
        run = decide_nova(team, call.run_, call.choice, call.note or "", actor)
        _answer(call, run)
        if run.finalized is None:
            remark(f"`tripod nova resume {call.run_}` goes on with it")


def _cancel(call: CommandCall) -> None:
    with call.fresh() as team:
        run = cancel_nova(team, call.run_, call.note or "it was cancelled", call.actor())
    _answer(call, run)


def _personas(call: CommandCall) -> None:
    if call.action == "init":
        if call.folder is None:
            raise BadArgumentError("personas init FOLDER: where are they to be written?")
        written = write_personas(call.folder)
        call.answer({"written": written}, written or ["nothing was written: all are there"])
        return
    found = load_personas(call.folder) if call.folder else load_personas()
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

    --file FILE          Read the question from FILE, or - for stdin.
    --persona-dir FOLDER  The personas; else those that ship with tripod.
    --max-rounds N       Cycles at most. [default: 5]
    --threshold X        The gate: a synthesis more uncertain is sent back. [default: 0.35]
    --concurrency N      Experts at once. [default: 4]
    --budget B...        What may be spent: 12t for turns, 2.50 for US dollars.
    --log FILE           Log the decision in this decision log as well, such as log.md.
{_PROGRAM}
resume RUN [COMMAND]...
    Go on with a run where it stopped.

{_PROGRAM}
list
    List all runs, oldest first.
    looks: always

show RUN
    Print the transcript of a run.

    --html         Print a page for a browser: gates, turns, critique and its answer.
    looks: always

replay RUN
    Play a run again from its recorded answers, and compare: it has to end with the same bytes.

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
    _process, _resume, _list, _show, _replay, _fork, _compare, _decide, _cancel, _personas,
]  # fmt: skip
COMMANDS = {"nova": command_group(_NOVA, _WORKS, _KINDS)}
