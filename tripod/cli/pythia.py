"""``tripod pythia``: reviews of the team's decisions. Exit codes as of all other verbs."""

from __future__ import annotations

import time

import click

from tripod.bus.events import NOBODY
from tripod.cli.door import HANDLE, TEXT, Door, Number, team_option
from tripod.inputs import text_argument
from tripod.output import emit, emit_json, format_utc, remark
from tripod.pythia import reviewer as acts
from tripod.pythia.review import HANDLE as PYTHIA
from tripod.team.open import opened

MAX_TIME = 10**7  # seconds


@click.group(cls=Door)
def pythia() -> None:
    """See which reviews are due, have Pythia give them, show what she found.

    Exit codes: 0 ok (also where nothing is due), 1 no assessment came of it, or refused, 2 usage,
    3 the ledger cannot be read.
    """


@pythia.command()
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object an event and line.")
def due(*, team_path: str | None, as_json: bool) -> None:
    """List the checkpoint events that nobody answered, oldest first.

    Acknowledging one does not answer it: it stays due.
    """
    with opened(team_path) as team:
        team.refresh()
        found = acts.due(team, time.time_ns() // 1000)
    if as_json:
        emit_json(one._asdict() for one in found)
    else:
        emit(_due_line(one) for one in found)


def _due_line(one: acts.PendingReview) -> str:
    at = format_utc(one.us // 1_000_000)
    if one.problem is not None:
        return f"{one.name} {at} cannot be answered: {one.problem}"
    whose = "" if one.claimed is None else f", claimed by {one.claimed}"
    whose += ", though it was acknowledged" if one.acknowledged else ""
    asked = f"{one.first} through {one.last} ({one.decisions} decisions)"
    return f"{one.name} {at} {asked}: {one.state}{whose}"


@pythia.command()
@team_option
@click.argument("command", type=TEXT, nargs=-1)
@click.option("--event", type=TEXT, metavar="EVENT", help="The checkpoint event; else the oldest.")
@click.option("--manual", is_flag=True, help="Review all since the last checkpoint, due or not.")
@click.option("--profile", type=TEXT, help="Her program: pythia, or a TOML file.")
@click.option("--model", type=TEXT, help="The model, for a program that takes one.")
@click.option("--effort", type=TEXT, help="How hard it tries, for a program that takes that.")
@click.option(
    "--show", "shows", type=TEXT, multiple=True, metavar="PATH",
    help="A file or folder that the program consists of, beside those it names.",
)  # fmt: skip
@click.option("--network", is_flag=True, help="Let the program reach the network.")
@click.option("--require-namespace", is_flag=True, help="Run her isolated by the kernel, or not.")
@click.option(
    "--timeout", type=Number(1, MAX_TIME), default=acts.TIMEOUT, show_default=True, metavar="S",
    help="End her program after S seconds.",
)  # fmt: skip
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who wants it done.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def run(
    *,
    team_path: str | None,
    command: tuple[str, ...],
    event: str | None,
    manual: bool,
    profile: str | None,
    model: str | None,
    effort: str | None,
    shows: tuple[str, ...],
    network: bool,
    require_namespace: bool,
    timeout: int,
    actor: str | None,
    as_json: bool,
) -> int:
    """Have Pythia answer a checkpoint event: isolated, judged, posted to the chat.

    COMMAND, behind a --, is her program with its arguments; it reads the decision log on standard
    input and prints its assessment. Where none is given, the coding agent of --profile is run.

    Where another command is at the same event, this one waits for the same answer. Where none came
    of it the exit code is 1, and the event stays due.
    """
    import asyncio

    if event is not None and manual:
        raise click.UsageError(
            "--event and --manual: a manual call publishes an event of its own; give one"
        )
    program = acts.ReviewerProgram(
        command=command,
        profile=profile,
        model=model,
        effort=effort,
        shows=shows,
        network=network,
        timeout_s=timeout,
        require_namespace=require_namespace,
    )
    with opened(team_path) as team:
        team.refresh()
        now = time.time_ns() // 1000
        work = acts.run(team, program, now, event=event, manual=manual, actor=actor or NOBODY)
        found = asyncio.run(work)
        waiting = found is None and bool(acts.due(team, now))
    if waiting:
        remark("no review can be given now: the checkpoint events that are due are told above")
    elif found is None:
        remark("no review is due: no checkpoint event waits for one (--manual asks for one)")
    return _told(found, as_json=as_json)


def _told(found: acts.ReviewOutcome | None, *, as_json: bool) -> int:
    answer = None if found is None else found.answer
    if found is not None and answer is None:
        said = f" (it said: {found.stderr})" if found.stderr else ""
        remark(
            f"{found.event}: no assessment came of it: {'; '.join(found.problems)}{said}; it stays "
            "due, and `tripod show` lists the entries that hold all that her program wrote"
        )
    if as_json:
        event, problems = (None, []) if found is None else (found.event, found.problems)
        told = None if answer is None else answer._asdict()
        emit_json([{"answer": told, "event": event, "problems": problems}])
    elif answer is not None:
        emit(_lines(answer))
    return 1 if found is not None and answer is None else 0


def _lines(answer: acts.PostedAssessment) -> list[str]:
    asked = f"{answer.first} through {answer.last} ({answer.decisions} decisions)"
    how = f"isolation: {answer.level}" if answer.level else "recorded: it came from outside"
    return [
        f"{asked}: confidence {answer.confidence}",
        f"posted to {answer.channel}.chat as message {answer.message}; {how}",
    ]


@pythia.command()
@team_option
@click.argument("text", type=TEXT, required=False)
@click.option("--file", metavar="FILE", help="Read the assessment from FILE, or - for stdin.")
@click.option("--event", type=TEXT, metavar="EVENT", help="The checkpoint event; else the oldest.")
@click.option("--as", "handle", type=HANDLE, default=PYTHIA, show_default=True, help="Its author.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def record(
    *,
    team_path: str | None,
    text: str | None,
    file: str | None,
    event: str | None,
    handle: str,
    as_json: bool,
) -> None:
    """Post an assessment that came from outside; the ledger says that it did."""
    if text is None and file is None:
        raise click.UsageError("assessment: none given (as argument, or by --file)")
    whole = text_argument(text, file, "assessment")
    with opened(team_path) as team:
        team.refresh()
        now = time.time_ns() // 1000
        answer = acts.record(team, whole, now, event=event, handle=handle)
    if as_json:
        emit_json([answer._asdict()])
    else:
        emit(_lines(answer))


@pythia.command()
@team_option
@click.argument("event", type=TEXT, default="last")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(*, team_path: str | None, event: str, as_json: bool) -> None:
    """Print the assessment of a checkpoint event, or the last one."""
    with opened(team_path) as team:
        team.refresh()
        answer = acts.show(team, event)
    if as_json:
        emit_json([answer._asdict()])
    else:
        emit([answer.text])
