"""``nbs-worker``: the original's arguments, output and exit codes (spec: nbs-compat C5).

Where it differs from the original, and why: ``docs/reference/nbs-worker.md``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tripod.doors import DOORS
from tripod.dropin.common import actor_of, leave, team_here, team_of_project
from tripod.dropin.words import Words, option_number, take_apart, wants_usage
from tripod.errors import BadArgumentError
from tripod.output import emit
from tripod.team.team import Team
from tripod.worker_lines import CONTEXT, listed, status_lines

USAGE = """\
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
"""
PROCESS = "tmux session"  # the line's name in the original; it says whether the program runs
MAX_CONTEXT = 2**31
GO_ON = "Go on with your task."
"""What a worker is told by ``continue`` without a text."""


class _Verb(NamedTuple):
    usage: str
    texts: tuple[int, int]
    options: tuple[str, ...] = ()


_VERBS = {
    "spawn": _Verb("nbs-worker spawn [--skill=FILE] SLUG DIR TASK", (3, 3), ("skill",)),
    "status": _Verb("nbs-worker status NAME", (1, 1)),
    "search": _Verb("nbs-worker search [--context=N] NAME REGEX", (2, 2), ("context",)),
    "results": _Verb("nbs-worker results NAME", (1, 1)),
    "continue": _Verb("nbs-worker continue [--model=MODEL] NAME [TEXT]", (1, 2), ("model",)),
    "session": _Verb("nbs-worker session NAME", (1, 1)),
    "dismiss": _Verb("nbs-worker dismiss NAME", (1, 1)),
    "list": _Verb("nbs-worker list", (0, 0)),
}
USAGES = {name: verb.usage for name, verb in _VERBS.items()}
"""The line of usage of each command."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    leave(_run, DOORS["worker"])


def _run(words: Sequence[str]) -> int:
    verb = words[0] if words else ""
    if verb in ("help", "--help", "-h"):
        sys.stderr.write(USAGE)
        return 0
    if verb not in _VERBS:
        raise BadArgumentError(f"which command? There are {', '.join(_VERBS)}, help.")
    usage, texts, options = _VERBS[verb]
    if wants_usage(words[1:]):
        sys.stderr.write(f"Usage: {usage}\n")
        return 0
    given = take_apart(words[1:], usage, texts=texts, options=options)
    if verb == "spawn":
        return _spawn(given)
    actor = actor_of(given)
    context = option_number(given, "context", 0, MAX_CONTEXT, usage)
    with team_here() as team:
        team.refresh()
        if verb in ("continue", "dismiss"):
            return _tell(team, verb, given, actor)
        return _about(team, verb, given.texts, CONTEXT if context is None else context)


def _spawn(given: Words) -> int:
    from tripod.inputs import text_argument
    from tripod.workers import run as workers_run

    slug, folder, task = given.texts
    if not os.path.isdir(folder):
        raise BadArgumentError(f"{folder} is no folder: give the one where the worker is to work")
    actor = actor_of(given)
    skill = given.options.get("skill")
    text = "" if skill is None else text_argument(None, skill, "skill")
    with team_of_project(folder) as team:
        name = workers_run.spawn(team, slug, folder, task, skill=text, actor=actor)
    emit([name])
    return 0


def _tell(team: Team, verb: str, given: Words, actor: str) -> int:
    from tripod.workers import read as workers_read
    from tripod.workers import run as workers_run

    name, *text = given.texts
    if verb == "continue":
        name = workers_read.named(team, name)
        message = text[0] if text else GO_ON
        workers_run.continue_(team, name, message, actor=actor, model=given.options.get("model"))
    else:
        workers_run.dismiss(team, name, actor=actor)
        emit([f"Dismissed: {name}"])
    return 0


def _about(team: Team, verb: str, given: list[str], context: int) -> int:
    from tripod.workers import read as workers_read

    if verb == "list":
        emit(listed(one, "tmux") for one in workers_read.every(team))
        return 0
    name = given[0]
    if verb == "status":
        emit(status_lines(workers_read.about(team, name), PROCESS))
    elif verb == "results":
        emit(["## Log", "", workers_read.findings(team, name)])
    elif verb == "session":
        emit([workers_read.session(team, workers_read.named(team, name))])
    else:
        lines = list(workers_read.search(team, name, given[1], context))
        emit(lines)
        return 0 if lines else 1
    return 0
