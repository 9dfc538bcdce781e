"""``tripod worker``: programs that do a task. Exit codes as documented (spec: nbs-compat C5)."""

from __future__ import annotations

import click

from tripod.cli.door import HANDLE, TEXT, Door, Number, team_option
from tripod.errors import BadArgumentError
from tripod.inputs import text_argument
from tripod.output import emit, emit_done, emit_json, remark
from tripod.team.open import opened
from tripod.worker_lines import CONTEXT, listed, status_lines
from tripod.workers import read as files
from tripod.workers import run as acts

NOBODY = "unknown"
MAX_WAIT = 10**7  # seconds


@click.group(cls=Door)
def worker() -> None:
    """Spawn workers, see what became of them, read what they found.

    Exit codes: 0 ok, 1 general error (no match, time over), 2 no such worker, log or team
    directory, 4 bad arguments.
    """


@worker.command()
@team_option
@click.argument("slug", type=TEXT)
@click.argument("dir_", type=TEXT, metavar="DIR")
@click.argument("task", type=TEXT, required=False)
@click.argument("command", type=TEXT, nargs=-1)
@click.option("--file", metavar="FILE", help="Read the task from FILE, or - for stdin.")
@click.option("--skill", metavar="FILE", help="Put the text of FILE in front of the task.")
@click.option("--name", type=TEXT, help="Its whole name; given again, nothing is done twice.")
@click.option("--profile", type=TEXT, help="The coding agent: claude, or a TOML file.")
@click.option("--model", type=TEXT, help="The model, for a program that takes one.")
@click.option("--effort", type=TEXT, help="How hard it tries, for a program that takes that.")
@click.option("--tool", "tools", type=TEXT, multiple=True, help="A tool it may use; once for each.")
@click.option("--timeout", type=Number(1, MAX_WAIT), metavar="S", help="End it after S seconds.")
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who wants it done.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def spawn(
    *,
    team_path: str | None,
    slug: str,
    dir_: str,
    task: str | None,
    command: tuple[str, ...],
    file: str | None,
    skill: str | None,
    name: str | None,
    profile: str | None,
    model: str | None,
    effort: str | None,
    tools: tuple[str, ...],
    timeout: int | None,
    actor: str | None,
    as_json: bool,
) -> None:
    """Have a worker do TASK in DIR; its name is printed at once.

    COMMAND, behind a --, is the program with its arguments; it reads TASK on standard input. Where
    none is given, the coding agent of --profile is run.
    """
    if file is not None and task is not None:
        command, task = (task, *command), None
    if task is None and file is None:
        raise BadArgumentError("task: none given (as argument, or by --file)")
    text = text_argument(task, file, "task")
    front = "" if skill is None else text_argument(None, skill, "skill")
    with opened(team_path, dir_) as team:
        chosen = acts.spawn(
            team,
            slug,
            dir_,
            text,
            command=command,
            profile=profile,
            name=name,
            skill=front,
            timeout_s=timeout,
            model=model,
            effort=effort,
            tools=tools or None,
            actor=actor or NOBODY,
        )
    emit_done({"name": chosen}, [chosen], as_json=as_json)


@worker.command()
@team_option
@click.argument("name", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(*, team_path: str | None, name: str, as_json: bool) -> None:
    """Print a worker's state, and whether its program runs."""
    with opened(team_path) as team:
        team.refresh()
        found = files.about(team, name)
    if as_json:
        emit_json([found._asdict()])
    else:
        emit(status_lines(found, "process"))


@worker.command("list")
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a worker and line.")
def list_(*, team_path: str | None, as_json: bool) -> None:
    """List all workers, those of other tools too."""
    with opened(team_path) as team:
        team.refresh()
        found = files.every(team)
    if as_json:
        emit_json(one._asdict() for one in found)
    else:
        emit(listed(one, "process") for one in found)


@worker.command()
@team_option
@click.argument("name", type=TEXT)
@click.option("--answer", is_flag=True, help="What its program answered, not its findings.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def results(*, team_path: str | None, name: str, answer: bool, as_json: bool) -> None:
    """Print what a worker wrote into its task file."""
    with opened(team_path) as team:
        team.refresh()
        text = files.answer(team, name) if answer else files.findings(team, name)
    emit_done({"name": name, "text": text}, [text], as_json=as_json)


@worker.command()
@team_option
@click.argument("name", type=TEXT)
@click.argument("regex", type=TEXT)
@click.option(
    "--context", type=Number(), default=CONTEXT, show_default=True, metavar="N",
    help="Lines around each that matches.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def search(*, team_path: str | None, name: str, regex: str, context: int, as_json: bool) -> int:
    """Print lines of a worker's log that match REGEX; without one the exit code is 1."""
    with opened(team_path) as team:
        lines = list(files.search(team, name, regex, context))
    if as_json:
        emit_json({"line": line} for line in lines)
    else:
        emit(lines)
    return 0 if lines else 1


@worker.command("continue")
@team_option
@click.argument("name", type=TEXT)
@click.argument("message", type=TEXT, required=False)
@click.option("--file", metavar="FILE", help="Read the message from FILE, or - for stdin.")
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who wants it to go on.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def continue_(
    *,
    team_path: str | None,
    name: str,
    message: str | None,
    file: str | None,
    actor: str | None,
    as_json: bool,
) -> None:
    """Have a worker that ended go on, with MESSAGE."""
    text = text_argument(message, file, "message")
    with opened(team_path) as team:
        acts.continue_(team, name, text, actor=actor or NOBODY)
    emit_done({"name": name}, [], as_json=as_json)


@worker.command()
@team_option
@click.argument("reason", type=TEXT)
@click.option("--name", type=TEXT, envvar=acts.SELF, help="The worker; its program knows it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def escalate(*, team_path: str | None, reason: str, name: str | None, as_json: bool) -> None:
    """Say that this worker cannot go on, and why; for its program."""
    if not name:
        raise BadArgumentError(f"--name: which worker? (Its program has the variable {acts.SELF}.)")
    with opened(team_path) as team:
        acts.escalate(team, name, reason)
    emit_done({"name": name, "reason": reason}, [], as_json=as_json)


@worker.command()
@team_option
@click.argument("name", type=TEXT)
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who dismisses it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def dismiss(*, team_path: str | None, name: str, actor: str | None, as_json: bool) -> None:
    """Send a worker away for good; its program is ended, its log is kept."""
    with opened(team_path) as team:
        done = acts.dismiss(team, name, actor=actor or NOBODY)
    emit_done({"name": name, "dismissed": done}, [f"Dismissed: {name}"], as_json=as_json)


@worker.command()
@team_option
@click.option("--timeout", type=Number(0, MAX_WAIT), metavar="S", help="Wait at most S seconds.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a worker and line.")
def watch(*, team_path: str | None, timeout: int | None, as_json: bool) -> int:
    """Wait until no worker is at work any more; print each whose program ends.

    Where the time is over first, the exit code is 1.
    """
    with opened(team_path) as team:
        team.refresh()
        for found in files.watch(team, timeout):
            if as_json:
                emit_json([found._asdict()])
            else:
                emit([f"{found.name} {found.state}"])
        left = [one.name for one in files.every(team) if one.running]
    if left:
        remark(f"still at work: {', '.join(left)}")
    return 1 if left else 0
