"""The commands of the workers, for ``tripod worker`` and ``nbs-worker`` (spec: nbs-compat C5).

Where ``nbs-worker`` differs from its original and why: ``docs/reference/nbs-worker.md``.
"""

from __future__ import annotations

import os

from tripod import workers
from tripod.cli.commands import (
    CommandCall,
    NbsProgram,
    NumberParam,
    command_group,
    command_verb,
    text_param,
)
from tripod.errors import BadArgumentError
from tripod.output import remark

MAX_WAIT = 10**7  # seconds
MAX_CONTEXT = 2**31
GO_ON = "Go on with your task."  # what `nbs-worker continue` says without a text


def _spawn(call: CommandCall) -> None:
    command, task = call.command, call.task
    if call.file is not None and task is not None:
        command, task = (task, *command), None
    if task is None and call.file is None:
        raise BadArgumentError("task: none given (as argument, or by --file)")
    text = text_param(task, call.file, "task")
    front = "" if call.skill is None else text_param(None, call.skill, "skill")
    with call.team(call.dir) as team:
        name = workers.spawn(
            team,
            call.slug,
            call.dir,
            text,
            command=command,
            profile=call.profile,
            name=call.name,
            skill=front,
            timeout_s=call.timeout,
            model=call.model,
            effort=call.effort,
            tools=call.tool or None,
            actor=call.actor(),
            must_exist=True,
        )
    call.answer({"name": name}, [name])


def _nbs_spawn(call: CommandCall) -> None:
    from tripod.cli.nbs_team import nbs_team_of_project

    if not os.path.isdir(call.dir):
        raise BadArgumentError(f"{call.dir} is no folder: give the one where the worker is to work")
    actor = call.actor()
    front = "" if call.skill is None else text_param(None, call.skill, "skill")
    with nbs_team_of_project(call.dir) as team:
        name = workers.spawn(team, call.slug, call.dir, call.task, skill=front, actor=actor)
    call.answer({"name": name}, [name])


def _status(call: CommandCall) -> None:
    with call.fresh() as team:
        found = workers.about(team, call.name)
    status = found.state
    if found.state == "died":
        status = "died (session exited unexpectedly)"
    elif found.running and found.state == "escalated":
        status = "escalated (session still open)"
    lines = [
        f"Worker: {found.name}",
        f"  {'tmux session' if call.nbs else 'process'}: {'yes' if found.running else 'no'}",
        f"  task state:   {found.state}",
        f"  status:       {status}",
    ]
    call.answer(found._asdict(), lines)


def _list(call: CommandCall) -> None:
    with call.fresh() as team:
        found = workers.every(team)
    process = "tmux" if call.nbs else "process"
    lines = []
    for one in found:
        size = "no-log" if one.log is None else f"{one.log}B"
        alive = "yes" if one.running else "no"
        lines.append(f"  {one.name:<25} {one.state:<12} {process}:{alive:<5} log:{size}")
    call.answers((one._asdict() for one in found), lines)


def _results(call: CommandCall) -> None:
    with call.fresh() as team:
        text = (workers.answer if call.get("answer") else workers.findings)(team, call.name)
    call.answer({"name": call.name, "text": text}, [*(("## Log", "") if call.nbs else ()), text])


def _search(call: CommandCall) -> int:
    context = call.context
    with call.fresh() as team:
        lines = list(workers.search(team, call.name, call.regex, context))
    call.answers(({"line": line} for line in lines), lines)
    return 0 if lines else 1


def _continue(call: CommandCall) -> None:
    if call.nbs:
        text = GO_ON if call.text is None else call.text
    else:
        text = text_param(call.message, call.file, "message")
    actor = call.actor()
    with call.fresh() as team:
        name = workers.named(team, call.name) if call.nbs else call.name
        workers.continue_(team, name, text, actor=actor, model=call.get("model"))
    call.answer({"name": name}, [])


def _session(call: CommandCall) -> None:
    with call.fresh() as team:
        session = workers.session(team, workers.named(team, call.name))
    call.answer({}, [session])


def _escalate(call: CommandCall) -> None:
    from tripod.workers.worker import SELF

    if not call.name:
        raise BadArgumentError(f"--name: which worker? (Its program has the variable {SELF}.)")
    with call.team() as team:
        workers.escalate(team, call.name, call.reason)
    call.answer({"name": call.name, "reason": call.reason}, [])


def _dismiss(call: CommandCall) -> None:
    actor = call.actor()
    with call.fresh() as team:
        done = workers.dismiss(team, call.name, actor=actor)
    call.answer({"name": call.name, "dismissed": done}, [f"Dismissed: {call.name}"])


def _watch(call: CommandCall) -> int:
    with call.fresh() as team:
        for found in workers.watch(team, call.timeout):
            call.answer(found._asdict(), [f"{found.name} {found.state}"])
        left = [one.name for one in workers.every(team) if one.running]
    if left:
        remark(f"still at work: {', '.join(left)}")
    return 1 if left else 0


_WORKER = """\
worker
    Exit codes: 0 ok, 1 general error (no match, time over), 2 no such worker, log or team
    directory, 4 bad arguments.

spawn SLUG DIR [TASK] [COMMAND]...
    Have a worker do TASK in DIR; its name is printed at once.

    COMMAND, after a --, is the program with its arguments; it reads TASK on standard input.
    Where none is given, the coding agent of --profile is run.

    --file FILE     Read the task from FILE, or - for stdin.
    --skill FILE    Put the text of FILE in front of the task.
    --name NAME     Its whole name; given again, nothing is done twice.
    --profile NAME  The coding agent: claude, or a YAML file.
    --model NAME    The model, for a program that takes one.
    --effort LEVEL  How hard it tries, for a program that takes that.
    --tool TOOL...  A tool it may use; once for each.
    --timeout SECONDS  End it after so many seconds.
    --as HANDLE     Who wants it done.

status NAME
    Print a worker's state, and whether its program runs.
    nbs: NAME
    looks: always

list
    List all workers, those of other tools too.
    nbs:
    looks: always

results NAME
    Print what a worker wrote into its task file.
    --answer  What its program answered, not its findings.
    nbs: NAME
    looks: always

search NAME REGEX
    Print lines of a worker's log that match REGEX; without one the exit code is 1.
    --context N  Lines around each that matches. [default: 50]
    nbs: [--context=N] NAME REGEX
    looks: always

continue NAME [MESSAGE]
    Have a worker that ended go on, with MESSAGE.
    --file FILE  Read the message from FILE, or - for stdin.
    --as HANDLE  Who wants it to go on.
    nbs: [--model=MODEL] NAME [TEXT]

session
    nbs: NAME
    looks: always

escalate REASON
    Say that this worker cannot go on, and why; for its program.
    --name NAME  The worker; its program knows it. [env: TRIPOD_WORKER]

dismiss NAME
    Send a worker away for good; its program is ended, its log is kept.
    --as HANDLE  Who dismisses it.
    nbs: NAME

watch
    Wait until no worker is at work any more; print each whose program ends.

    If the time is over first, the exit code is 1.

    --timeout S  Wait at most S seconds.
"""
_KINDS = {
    "S": NumberParam(0, MAX_WAIT),
    "SECONDS": NumberParam(1, MAX_WAIT),
    "--context": NumberParam(0, MAX_CONTEXT),
}
_WORKS = [
    _spawn, _status, _list, _results, _search, _continue, _session, _escalate, _dismiss, _watch,
]  # fmt: skip
COMMANDS = {"worker": command_group(_WORKER, _WORKS, _KINDS)}

_SPAWN = command_verb("spawn\n    nbs: [--skill=FILE] SLUG DIR TASK", _nbs_spawn)
_BY_NAME = {verb.name: verb for verb in COMMANDS["worker"].verbs}
_ORDER = ("status", "search", "results", "continue", "session", "dismiss", "list")

PROGRAMS = (
    NbsProgram(
        "nbs-worker",
        (_SPAWN, *(_BY_NAME[name] for name in _ORDER)),
        """\
nbs-worker: programs that do a task.

  nbs-worker spawn [--skill=FILE] SLUG DIR TASK   begin one; its name is printed at once
  nbs-worker status NAME                          its state
  nbs-worker search [--context=N] NAME REGEX      lines of its log
  nbs-worker results NAME                         what it wrote into its task file
  nbs-worker continue [--model=MODEL] NAME [TEXT] have one that ended go on
  nbs-worker session NAME                         its program's own session
  nbs-worker dismiss NAME                         send it away; its log is kept
  nbs-worker list                                 all of them
  nbs-worker help                                 this

The command is called nbs-workers as well. NAME of continue and session may be the
handle alone (parser for parser-a3f1): it stands for the newest worker of that handle.

Exit codes: 0 ok, 1 general error or no match, 2 not found, 4 bad arguments.
""",
    ),
)
