"""``tripod pythia``: reviews of the team's decisions by the reviewer, Pythia."""

from tripod import pythia
from tripod.cli.commands import NOBODY, TEXT, CommandCall, NumberParam, command_group, text_param
from tripod.errors import BadArgumentError
from tripod.ledger.ids import now_us
from tripod.output import format_utc, remark

MAX_TIME = 10**7  # seconds


def _due(call: CommandCall) -> None:
    with call.fresh() as team:
        found = pythia.due(team, now_us())
    lines = []
    for one in found:
        at = format_utc(one.us // 1_000_000)
        if one.problem is not None:
            lines.append(f"{one.name} {at} cannot be answered: {one.problem}")
            continue
        whose = "" if one.claimed is None else f", claimed by {one.claimed}"
        whose += ", though it was acknowledged" if one.acknowledged else ""
        asked = f"{one.first} through {one.last} ({one.decisions} decisions)"
        lines.append(f"{one.name} {at} {asked}: {one.state}{whose}")
    call.answers((one._asdict() for one in found), lines)


def _run(call: CommandCall) -> int:
    import asyncio

    if call.event is not None and call.manual:
        raise BadArgumentError(
            "--event and --manual: a manual call publishes an event of its own; give one"
        )
    program = pythia.ReviewerProgram(
        command=call.command,
        profile=call.profile,
        model=call.model,
        effort=call.effort,
        shows=call.show,
        network=call.network,
        timeout_s=call.timeout,
        require_namespace=call.require_namespace,
    )
    with call.fresh() as team:
        now, actor = now_us(), call.known_actor() or NOBODY  # then the reviewer acts by itself
        work = pythia.run(team, program, now, event=call.event, manual=call.manual, actor=actor)
        found = asyncio.run(work)
        waiting = found is None and bool(pythia.due(team, now))
    if found is None:
        why = "no review is due: no checkpoint event waits for one (--manual asks for one)"
        if waiting:
            why = "no review can be given now: the checkpoint events that are due are told above"
        remark(why)
        call.answer({"answer": None, "event": None, "problems": []}, [])
        return 0
    value = {"answer": None, "event": found.event, "problems": found.problems}
    if found.answer is None:
        said = f" (it said: {found.stderr})" if found.stderr else ""
        remark(
            f"{found.event}: no assessment came of it: {'; '.join(found.problems)}{said}; it stays "
            "due, and `tripod show` lists the entries that hold all that its program wrote"
        )
        call.answer(value, [])
        return 1
    call.answer(value | {"answer": found.answer._asdict()}, _answer_lines(found.answer))
    return 0


def _answer_lines(answer: pythia.PostedAssessment) -> list[str]:
    asked = f"{answer.first} through {answer.last} ({answer.decisions} decisions)"
    how = f"isolation: {answer.level}" if answer.level else "recorded: it came from outside"
    return [
        f"{asked}: confidence {answer.confidence}",
        f"posted to {answer.channel}.chat as message {answer.message}; {how}",
    ]


def _record(call: CommandCall) -> None:
    if call.text is None and call.file is None:
        raise BadArgumentError("assessment: none given (as argument, or by --file)")
    whole = text_param(call.text, call.file, "assessment")
    with call.fresh() as team:
        now = now_us()
        answer = pythia.record(team, whole, now, event=call.event, handle=call.as_)
    call.answer(answer._asdict(), _answer_lines(answer))


def _show(call: CommandCall) -> None:
    with call.fresh() as team:
        answer = pythia.show(team, call.event or "last")
    call.answer(answer._asdict(), [answer.text])


_PYTHIA = """\
pythia
    Exit codes: 0 ok (also where nothing is due), 1 no assessment resulted, or refused, 2 usage,
    3 the ledger cannot be read.

due
    List the checkpoint events that nobody answered, oldest first.

    Acknowledging one does not answer it: it stays due.
    looks: always

run [COMMAND]...
    Have Pythia answer a checkpoint event: isolated, judged, posted to the chat.

    COMMAND, after a --, is the reviewer's program with its arguments; it reads the decision
    log on standard input and prints its assessment. Where none is given, the coding agent of
    --profile is run.

    If another command is at the same event, this one waits for the same answer. Without an
    assessment the exit code is 1, and the event stays due.

    --event EVENT        The checkpoint event; else the oldest.
    --manual             Review all since the last checkpoint, due or not.
    --profile NAME       The reviewer's program: pythia, or a YAML file.
    --model NAME         The model, for a program that takes one.
    --effort LEVEL       How hard it tries, for a program that takes that.
    --show PATH...       A file or folder that the program consists of, beside those it names.
    --network            Let the program reach the network.
    --require-namespace  Refuse to run unless kernel isolation (a mount namespace) is available.
    --timeout S          End the program after S seconds. [default: 1800]
    --as HANDLE          Who wants it done.

record [TEXT]
    Post an assessment that came from outside; the ledger says that it did.
    --file FILE    Read the assessment from FILE, or - for stdin.
    --event EVENT  The checkpoint event; else the oldest.
    --as HANDLE    Its author. [default: pythia]

show [EVENT]
    Print the assessment of a checkpoint event, or the last one.
    looks: always
"""
_KINDS = {"--show": TEXT, "--timeout": NumberParam(1, MAX_TIME)}
COMMANDS = {"pythia": command_group(_PYTHIA, [_due, _run, _record, _show], _KINDS)}
