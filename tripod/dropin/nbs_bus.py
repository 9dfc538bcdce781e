"""``nbs-bus``: the event queue, with the arguments, output and exit codes of its document.

The order in which arguments are judged is the original's (spec: nbs-compat B1): where two are
wrong, a script gets the exit code that it always got.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from tripod.bus import events as bus
from tripod.bus_lines import (
    acked_line,
    pending_lines,
    pruned_line,
    show_claim,
    show_recovery,
    show_unseen,
    status_lines,
)
from tripod.doors import DOORS
from tripod.drafting import MAX_PAYLOAD, judge_event
from tripod.dropin.common import actor_of, leave, team_of
from tripod.dropin.words import Words, option_number, take_apart, wants_usage
from tripod.errors import BadArgumentError
from tripod.inputs import text_argument
from tripod.output import emit, emit_bytes, remark
from tripod.projections import text as rules
from tripod.projections.bus.format import valid_event_name, valid_word

MAX_SECONDS = 2**32
MAX_BYTES = 2**53 - 1

USAGES = {
    "publish": "DIR SOURCE TYPE PRIORITY [PAYLOAD] [--file=FILE] [--dedup-window=N]",
    "check": "DIR [--handle=NAME | --reader=HANDLE]",
    "read": "DIR EVENT [--processed]",
    "ack": "DIR EVENT [--as=HANDLE]",
    "ack-all": "DIR [--handle=NAME] [--as=HANDLE]",
    "prune": "DIR [--max-bytes=N] [--as=HANDLE]",
    "status": "DIR",
    "claim": "DIR [EVENT] --by=HANDLE [--lease=S] [--wait=S]",
    "release": "DIR EVENT --by=HANDLE",
    "wait": "DIR [--handle=NAME | --reader=HANDLE] [--timeout=S]",
    "recover": "DIR --as=HANDLE",
}
_SAYS = {
    "publish": "write an event; its file name is printed",
    "check": "list pending events, the most urgent first; a reader sees each event once",
    "read": "print an event's file",
    "ack": "move an event to processed/",
    "ack-all": "acknowledge all pending events (of one source)",
    "prune": "delete the oldest processed files above the limit",
    "status": "count pending and processed events, warn of stale ones",
    "claim": "take an event, so that nobody else gets it while the lease runs",
    "release": "give a claimed event back",
    "wait": "wait until check would list something, and list it",
    "recover": "start anew: list what is pending, give old claims back, publish a heartbeat",
}
USAGE = "\n".join(
    [
        "Usage: nbs-bus COMMAND DIR ...",
        *(f"  {name} {words}\n      {_SAYS[name]}" for name, words in USAGES.items()),
        "  help",
        "      print this",
        "DIR is the events' folder (.nbs/events). PRIORITY is critical, high, normal or low.",
        "A text that looks like an option goes behind a --. Without --as, --by: NBS_HANDLE.",
        "exit codes: 0 ok, 1 error, 2 no such folder, 3 no such event, 4 bad arguments,",
        "  5 dropped as a duplicate",
    ]
)


def main() -> None:
    """Run the command, and leave with its exit code."""
    leave(_run, DOORS["bus"])


def _run(arguments: Sequence[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    work = _COMMANDS.get(name)
    if work is None:
        if name and name != "help":
            remark(f"no command {name!r}")
        if sys.stderr is not None:
            sys.stderr.write(f"{USAGE}\n")
        return 0 if name == "help" else DOORS["bus"].usage
    usage = f"nbs-bus {name} {USAGES[name]}"
    if wants_usage(rest):
        sys.stderr.write(f"Usage: {usage}\n    {_SAYS[name]}\n")
        return 0
    work(rest, usage)
    return 0


def _now_us() -> int:
    return time.time_ns() // 1000


def _needed(words: Words, option: str, usage: str) -> str:
    if option not in words.options and not os.environ.get("NBS_HANDLE"):
        raise BadArgumentError(f"--{option}=HANDLE is missing: say who it is\n  Usage: {usage}")
    return actor_of(words, option)


def _check_name(name: str) -> str:
    problem = valid_event_name(name)
    if problem is not None:
        raise BadArgumentError(problem)
    return name


# The documented commands -----------------------------------------------------------------------


def _publish(arguments: Sequence[str], usage: str) -> None:
    words = take_apart(arguments, usage, texts=(4, 5), options=("dedup-window", "file"))
    folder, source, type_, priority, *payload = words.texts
    problem = valid_word(source, "source") or valid_word(type_, "type")
    text = text_argument(payload[0] if payload else None, words.options.get("file"), "payload")
    if problem is None and rules.size(text) > MAX_PAYLOAD:
        problem = f"payload: more than {MAX_PAYLOAD} bytes; put it into a file and send its path"
    if problem is not None:
        raise BadArgumentError(problem)
    with team_of("events", folder) as team:
        judge_event(source, type_, priority, text)
        if words.options.get("dedup-window") == "":
            window: int | None = 0  # as the original has it
        else:
            window = option_number(words, "dedup-window", 0, MAX_SECONDS, usage)
        name = bus.publish(team, source, type_, priority, text, dedup_window=window)
    emit([name])


def _check(arguments: Sequence[str], usage: str) -> None:
    words = take_apart(arguments, usage, texts=(1, 1), options=("handle", "reader"))
    with team_of("events", words.texts[0]) as team:
        source, reader = words.options.get("handle"), _reader(words)
        team.refresh()
        if reader is None:
            emit(pending_lines(bus.check(team, source), _now_us()))
        else:
            from tripod.bus import waiting

            show_unseen(team, reader, waiting.unseen(team, reader), _now_us())


def _reader(words: Words) -> str | None:
    if "reader" not in words.options:
        return None
    if "handle" in words.options:
        raise BadArgumentError(
            "--handle and --reader: the other events would count as seen; give one of them"
        )
    return actor_of(words, "reader")


def _read(arguments: Sequence[str], usage: str) -> None:
    words = take_apart(arguments, usage, texts=(2, 2), flags=("processed",))
    name = _check_name(words.texts[1])
    with team_of("events", words.texts[0]) as team:
        team.refresh()
        emit_bytes(bus.read(team, name, processed="processed" in words.flags))


def _ack(arguments: Sequence[str], usage: str) -> None:
    words = take_apart(arguments, usage, texts=(2, 2), options=("as",))
    name = _check_name(words.texts[1])
    with team_of("events", words.texts[0]) as team:
        bus.ack(team, name, actor=actor_of(words))


def _ack_all(arguments: Sequence[str], usage: str) -> None:
    words = take_apart(arguments, usage, texts=(1, 1), options=("as", "handle"))
    with team_of("events", words.texts[0]) as team:
        count = bus.ack_all(team, words.options.get("handle"), actor=actor_of(words))
    emit([acked_line(count)])


def _prune(arguments: Sequence[str], usage: str) -> None:
    words = take_apart(arguments, usage, texts=(1, 1), options=("as", "max-bytes"))
    with team_of("events", words.texts[0]) as team:
        limit = option_number(words, "max-bytes", 1, MAX_BYTES, usage)
        done = bus.prune(team, limit, actor=actor_of(words))
    emit([pruned_line(done)])


def _status(arguments: Sequence[str], usage: str) -> None:
    words = take_apart(arguments, usage, texts=(1, 1))
    with team_of("events", words.texts[0]) as team:
        team.refresh()
        found = bus.status(team, _now_us())
    emit(status_lines(found))


# What the original has not ---------------------------------------------------------------------


def _claim(arguments: Sequence[str], usage: str) -> None:
    from tripod.bus import waiting

    words = take_apart(arguments, usage, texts=(1, 2), options=("by", "lease", "wait"))
    folder, *names = words.texts
    name = _check_name(names[0]) if names else None
    with team_of("events", folder) as team:
        by = _needed(words, "by", usage)
        lease = option_number(words, "lease", 1, MAX_SECONDS, usage) or waiting.LEASE
        timeout = option_number(words, "wait", 0, MAX_SECONDS, usage)
        taken = waiting.take(team, by, name, lease=lease, timeout=timeout)
    show_claim(taken)


def _release(arguments: Sequence[str], usage: str) -> None:
    from tripod.bus import waiting

    words = take_apart(arguments, usage, texts=(2, 2), options=("by",))
    name = _check_name(words.texts[1])
    with team_of("events", words.texts[0]) as team:
        waiting.release(team, _needed(words, "by", usage), name)


def _wait(arguments: Sequence[str], usage: str) -> None:
    from tripod.bus import waiting

    words = take_apart(arguments, usage, texts=(1, 1), options=("handle", "reader", "timeout"))
    with team_of("events", words.texts[0]) as team:
        source, reader = words.options.get("handle"), _reader(words)
        timeout = option_number(words, "timeout", 0, MAX_SECONDS, usage)
        if reader is None:
            emit(pending_lines(waiting.wait_pending(team, source, timeout), _now_us()))
        else:
            show_unseen(team, reader, waiting.wait_unseen(team, reader, timeout), _now_us())


def _recover(arguments: Sequence[str], usage: str) -> None:
    from tripod.bus import waiting

    words = take_apart(arguments, usage, texts=(1, 1), options=("as",))
    with team_of("events", words.texts[0]) as team:
        found = waiting.recover(team, _needed(words, "as", usage))
    show_recovery(found, _now_us())


_COMMANDS: dict[str, Callable[[Sequence[str], str], None]] = {
    "publish": _publish,
    "check": _check,
    "read": _read,
    "ack": _ack,
    "ack-all": _ack_all,
    "prune": _prune,
    "status": _status,
    "claim": _claim,
    "release": _release,
    "wait": _wait,
    "recover": _recover,
}
