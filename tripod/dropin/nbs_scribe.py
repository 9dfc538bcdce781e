"""``nbs-scribe``: the four operations of the Scribe's document (seeds: nbs-scribe).

The original has no program of that name: ``log``, ``query``, ``count`` and ``summary`` were said
to an agent. The exit codes are the document's. See ``docs/reference/nbs-scribe.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tripod.decisions import read as decisions_read
from tripod.doors import DOORS
from tripod.dropin.common import leave
from tripod.dropin.decisions import OPTIONS, log, name_of_log, team_of_log
from tripod.dropin.words import Words, option_number, take_apart, wants_usage
from tripod.errors import BadArgumentError
from tripod.output import emit, remark
from tripod.scribe_lines import decision_lines

MAX_LAST = 2**31 - 1
USAGES = {
    "log": "LOG SUMMARY --participants=HANDLES --rationale=TEXT [--chat-ref=FILE:~Ln]"
    " [--artefacts=LIST] [--risk-tags=LIST] [--status=STATUS]"
    " [--supersedes=D-N | --reverses=D-N | --mitigates=D-N] [--bus-dir=DIR] [--as=HANDLE]",
    "query": "LOG [TEXT] [--tag=TAG] [--status=STATUS] [--by=HANDLE] [--artefact=TEXT]"
    " [--since=T] [--until=T]",
    "count": "LOG",
    "summary": "LOG [--last=N]",
}
USAGE = """\
Usage: nbs-scribe COMMAND LOG ...
  log LOG SUMMARY --participants=HANDLES --rationale=TEXT [--chat-ref=FILE:~Ln]
      [--artefacts=LIST] [--risk-tags=LIST] [--status=STATUS]
      [--supersedes=D-N | --reverses=D-N | --mitigates=D-N] [--bus-dir=DIR] [--as=HANDLE]
      log a decision; its id is printed
  query LOG [TEXT] [--tag=TAG] [--status=STATUS] [--by=HANDLE] [--artefact=TEXT]
      [--since=T] [--until=T]
      print the decisions that hold every word of TEXT and fit the filters
  count LOG
      print how many decisions there are
  summary LOG [--last=N]
      print the newest decisions, ten unless it is said otherwise
  help
      print this
LOG is a decision log in any folder (.nbs/scribe/live-log.md). Lists have commas between their
items.
exit codes: 0 ok, 1 error or no match, 2 no such log, 3 what was given makes no entry"""


def main() -> None:
    """Run the command, and leave with its exit code."""
    leave(_run, DOORS["scribe"])


def _run(arguments: Sequence[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    if name in ("help", "--help", "-h"):
        sys.stderr.write(f"{USAGE}\n")
        return 0
    if name not in USAGES:
        raise BadArgumentError(f"which command? There are {', '.join(USAGES)}, help.")
    usage = f"nbs-scribe {name} {USAGES[name]}"
    if wants_usage(rest):
        sys.stderr.write(f"Usage: {usage}\n")
        return 0
    if name == "log":
        emit([log(take_apart(rest, usage, texts=(2, 2), options=OPTIONS))])
        return 0
    if name == "query":
        return _query(rest, usage)
    options = ("last",) if name == "summary" else ()
    words = take_apart(rest, usage, texts=(1, 1), options=options)
    last = option_number(words, "last", 1, MAX_LAST, usage) or 10
    with team_of_log(words.texts[0]) as team:
        team.refresh()
        log_name = name_of_log(team, words.texts[0])
        if name == "count":
            emit([str(decisions_read.count(team, log_name))])
        else:
            _show(decisions_read.summary(team, last, log_name))
    return 0


def _query(arguments: Sequence[str], usage: str) -> int:
    options = ("tag", "status", "by", "artefact", "since", "until")
    words = take_apart(arguments, usage, texts=(1, 2), options=options)
    given = words.options
    filters = decisions_read.Filters(
        given.get("tag"),
        given.get("status"),
        given.get("by"),
        given.get("artefact"),
        _time(words, "since"),
        _time(words, "until"),
    )
    path, *text = words.texts
    with team_of_log(path) as team:
        team.refresh()
        count = _show(
            decisions_read.query(team, text[0] if text else "", filters, name_of_log(team, path))
        )
    if not count:
        remark("no decision fits")
    return 0 if count else 1


def _time(words: Words, option: str) -> int | None:
    if option not in words.options:
        return None
    from tripod.when import moment

    return moment(words.options[option], f"--{option}")


def _show(decisions: Iterable[decisions_read.Decision]) -> int:
    found = list(decisions)
    emit(line for decision in found for line in decision_lines(decision))
    return len(found)
