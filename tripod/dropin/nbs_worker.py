"""``nbs-worker``: the original's arguments, output and exit codes (spec: nbs-compat C5).

It has its own parsing: options are of the form ``--name=value`` and stand anywhere behind the
command's name; one that is not there is refused. Where it differs from the original,
and why: ``docs/reference/nbs-worker.md``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

from ledger.errors import LedgerError
from tripod.cli.door import DOORS, code_for, opened
from tripod.cli.output import emit, remark
from tripod.cli.worker import CONTEXT, listed, status_lines, team_above
from tripod.errors import BadArgumentError, TripodError
from tripod.team import DATABASE, FOLDER, Team

__all__ = ["USAGE", "main"]

USAGE = """\
nbs-worker: programs that do a task.

  nbs-worker spawn [--skill=FILE] SLUG DIR TASK   begin one; its name is printed at once
  nbs-worker status NAME                          its state
  nbs-worker search [--context=N] NAME REGEX      lines of its log
  nbs-worker results NAME                         what it wrote into its task file
  nbs-worker continue NAME TEXT                   have one that ended go on
  nbs-worker session NAME                         its program's own session
  nbs-worker dismiss NAME                         send it away; its log is kept
  nbs-worker list                                 all of them
  nbs-worker help                                 this

Exit codes: 0 ok, 1 general error or no match, 2 not found, 4 bad arguments.
"""
PROCESS = "tmux session"  # the line's name in the original; it says whether the program runs
_OPTIONS = {"spawn": ("skill",), "search": ("context",)}
_WORDS = {
    "spawn": 3, "status": 1, "search": 2, "results": 1, "continue": 2, "session": 1, "dismiss": 1,
    "list": 0,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    codes = DOORS["worker"]
    try:
        code = _run(words)
    except (TripodError, LedgerError) as error:
        remark(str(error))
        code = code_for(error, codes)
    except OSError as error:
        remark(f"{error.filename or ''}: {error.strerror or error}")
        code = codes.general
    sys.exit(code)


def _run(words: list[str]) -> int:
    verb = words[0] if words else ""
    if verb in ("help", "--help", "-h"):
        sys.stderr.write(USAGE)
        return 0
    if verb not in _WORDS:
        message = f"which command? There are {', '.join(_WORDS)}, help."
        raise BadArgumentError(message)
    options, given = _parsed(verb, words[1:])
    if verb == "spawn":
        return _spawn(options, *given)
    with opened(team_above(os.getcwd())) as team:
        team.refresh()
        return _about(team, verb, options, given)


def _parsed(verb: str, words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options and arguments; behind a ``--`` nothing is an option.

    Raises:
        BadArgumentError: an unknown option, or another number of arguments.
    """
    options: dict[str, str] = {}
    given: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            given += rest
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if name not in _OPTIONS.get(verb, ()) or not equals:
                message = f"{word}: no such option; a text that begins with -- goes behind a --"
                raise BadArgumentError(message)
            options[name] = value
        else:
            given.append(word)
    if len(given) != _WORDS[verb]:
        message = f"{verb} takes {_WORDS[verb]} arguments, not {len(given)}: see nbs-worker help"
        raise BadArgumentError(message)
    for text in (*given, *options.values()):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"an argument is not UTF-8 (character {error.start + 1})"
            raise BadArgumentError(message) from error
    return options, given


def _spawn(options: dict[str, str], slug: str, folder: str, task: str) -> int:
    from tripod import worker
    from tripod.cli.door import text_argument

    if not os.path.isdir(folder):
        message = f"{folder} is no folder"
        raise BadArgumentError(message)
    skill = text_argument(None, options["skill"], "skill") if "skill" in options else ""
    with _team_of(folder) as team:
        name = worker.spawn(team, slug, folder, task, skill=skill)
    emit([name])
    return 0


def _team_of(folder: str) -> AbstractContextManager[Team]:
    """The team of a project; its ledger is begun where there is none, and that is said."""
    root = os.path.join(os.path.abspath(folder), FOLDER)
    if not os.path.lexists(os.path.join(root, DATABASE)):
        from tripod import adopt

        done = adopt.init(folder)
        remark(f"{done.root}/{DATABASE}: begun, {done.entries} entries taken in")
    return opened(folder)


def _about(team: Team, verb: str, options: dict[str, str], given: list[str]) -> int:
    from tripod import worker
    from tripod import worker_files as files

    if verb == "list":
        emit(listed(one, "tmux") for one in files.every(team))
        return 0
    name = given[0]
    if verb == "status":
        emit(status_lines(files.about(team, name), PROCESS))
    elif verb == "results":
        emit(["## Log", "", files.findings(team, name)])
    elif verb == "session":
        emit([files.session(team, name)])
    elif verb == "continue":
        worker.continue_(team, name, given[1])
    elif verb == "dismiss":
        worker.dismiss(team, name)
        emit([f"Dismissed: {name}"])
    else:
        context = options.get("context", str(CONTEXT))
        if not context.isascii() or not context.isdecimal() or len(context) > len(str(2**31)):
            message = f"--context: {context!r} is no number of lines"
            raise BadArgumentError(message)
        lines = list(files.search(team, name, given[1], int(context)))
        emit(lines)
        return 0 if lines else 1
    return 0
