"""The commands of the bus, for ``tripod bus`` and ``nbs-bus`` (spec: nbs-compat B1 to B8).

The order in which ``nbs-bus`` judges its arguments is the original's: where two are wrong, a script
gets the exit code that it always got.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tripod import bus
from tripod.cli.commands import (
    ChoiceParam,
    CommandCall,
    NbsProgram,
    NumberParam,
    command_group,
    command_usage,
    text_param,
)
from tripod.errors import BadArgumentError
from tripod.ledger.ids import now_us
from tripod.output import each_mark, emit_bytes, one_line, remark
from tripod.projections.bus import format as bus_format
from tripod.team.act import check_event_for_act
from tripod.team.team import Team

MAX_SECONDS = 2**32  # more than a century
LEASE = 300  # seconds


def _event(call: CommandCall) -> Any:
    """The event that is named; the original judges the name before it looks for the folder."""
    named = call.nbs and call.event is not None
    problem = bus_format.valid_event_name(call.event) if named else None
    if problem is not None:
        raise BadArgumentError(problem)
    return call.event


def _publish(call: CommandCall) -> None:
    text = text_param(call.payload, call.file, "payload")
    # The original looks for the folder before it judges the priority, and then the window.
    check_event_for_act(call.source, call.type, "low", text)
    with call.team() as team:
        event = (call.source, call.type, call.priority, text)
        check_event_for_act(*event)
        name = bus.publish(team, *event, dedup_window=call.dedup_window)
    call.answer({"name": name}, [name])


def _check(call: CommandCall) -> None:
    """Do ``check``, and ``wait``, which waits until it would list something."""
    with call.team() as team:
        handle, reader, timeout = call.handle, call.reader, call.get("timeout")
        if handle is not None and reader is not None:
            raise BadArgumentError(
                "--handle and --reader: the other events would count as seen; give one of them"
            )
        waits = call.verb.name == "wait"
        if not waits:
            team.refresh()
        if reader is None:
            events = bus.wait_pending(team, handle, timeout) if waits else bus.check(team, handle)
            claims = bus.held(team, now_us()) if call.json else {}
            call.answers(
                (
                    value
                    | (
                        {"claim": claims[value["name"]]._asdict()}
                        if value["name"] in claims
                        else {}
                    )
                    for value in _values(team, events)
                ),
                _lines(call, team, events),
            )
            return
        found = bus.wait_unseen(team, reader, timeout) if waits else bus.unseen(team, reader)
        lines = zip(_lines(call, team, found.events), found.events, strict=True)
        call.answers(
            (
                value | {"acked": value["name"] in found.acked}
                for value in _values(team, found.events)
            ),
            (f"{line} acknowledged" if one.name in found.acked else line for line, one in lines),
        )
        if found.pruned and not call.json:
            remark(f"{found.pruned} more came and were pruned: `tripod show --stream bus` has them")
        bus.mark_seen(team, reader, found)  # only what was shown


def _values(team: Team, events: Iterable[bus.PendingEvent]) -> Iterator[dict[str, Any]]:
    return (event._asdict() | {"mark": mark} for event, mark in each_mark(team.store, events))


def _lines(call: CommandCall, team: Team, events: Iterable[bus.PendingEvent]) -> Iterator[str]:
    """One line an event: its priority, its file, its age; where it has one, its mark."""
    now = now_us()
    if call.nbs:  # as the original prints it
        return (_line(now, event) for event in events)
    pairs = each_mark(team.store, events)
    return (f"{_line(now, event)} {mark}".rstrip() for event, mark in pairs)


def _line(now: int, event: bus.PendingEvent) -> str:
    age = bus_format.event_age(now, event.us)
    return f"[{event.priority}] {one_line(event.name)} ({age} ago)"


def _read(call: CommandCall) -> None:
    name = _event(call)
    with call.fresh() as team:
        data = bus.read(team, name, processed=call.processed)
    if call.json:
        fields = bus_format.parse_event(data)
        call.objects([{"name": name} | ({} if fields is None else fields._asdict())])
    else:
        emit_bytes(data)


def _ack(call: CommandCall) -> None:
    name = _event(call)
    with call.team() as team:
        bus.ack(team, name, actor=call.actor())
    call.answer({"name": name}, [])


def _ack_all(call: CommandCall) -> None:
    with call.team() as team:
        count = bus.ack_all(team, call.handle, actor=call.actor())
    call.answer({"count": count}, [f"Acknowledged {count} event{'' if count == 1 else 's'}"])


def _prune(call: CommandCall) -> None:
    with call.team() as team:
        done = bus.prune(team, call.max_bytes, actor=call.actor())
    left, limit = f"{done.left / 1024:.1f} KB", f"{done.limit / 1024:.1f} KB"
    if not done.folder:
        line = "Pruned 0 events (no processed directory)"
    elif not done.files:
        line = f"Pruned 0 events ({left} / {limit} limit)"
    else:
        plural = "" if done.files == 1 else "s"
        line = f"Pruned {done.files} event{plural} ({left} remaining, {limit} limit)"
    call.answer(done._asdict(), [line])


def _status(call: CommandCall) -> None:
    with call.fresh() as team:
        found = bus.status(team, now_us())
    counts = ", ".join(f"{name}={count}" for name, count in found.pending.items())
    lines = [f"Pending: {found.total} total" + (f" ({counts})" if found.total else "")]
    if found.oldest_us is not None:
        lines.append(f"Oldest pending: {bus_format.format_time(found.oldest_us)}")
    lines.append(f"Processed: {found.processed} events ({found.processed_bytes / 1024:.1f} KB)")
    if found.stale:
        plural = "" if found.stale == 1 else "s"
        lines.append(f"WARNING: {found.stale} stale event{plural} (unacked > {found.ack_timeout}s)")
    call.answer(found._asdict(), lines)


def _claim(call: CommandCall) -> None:
    name = _event(call)
    with call.team() as team:
        who = call.actor("by" if call.nbs else "as", needed=True)
        lease, timeout = call.lease or LEASE, call.wait
        if name is not None and timeout is not None:
            raise BadArgumentError(
                "--wait waits until there is any event: leave it out where one is named"
            )
        if timeout:
            taken = bus.wait_claim(team, who, timeout, lease=lease)
        else:
            taken = bus.claim(team, who, name, lease=lease)
    call.answer(taken._asdict(), [one_line(taken.name)])
    if taken.attempt > 1 and not call.json:
        remark(f"attempt {taken.attempt}: it was begun before and not acknowledged")


def _release(call: CommandCall) -> None:
    name = _event(call)
    with call.team() as team:
        bus.release(team, call.actor("by" if call.nbs else "as", needed=True), name)
    call.answer({"name": name}, [])


def _recover(call: CommandCall) -> None:
    with call.team() as team:
        found = bus.recover(team, call.actor(needed=True))
        events = list(_values(team, found.pending)) if call.json else []
        call.answer(found._asdict() | {"pending": events}, _lines(call, team, found.pending))
    if not call.json:
        remark(f"last activity {found.last_at}; heartbeat {found.heartbeat}")
        for name in found.released:
            remark(f"given back: {name}")


_BUS = """\
bus
    Exit codes: 0 ok, 1 general error, 2 no team directory, 3 no such event, 4 bad arguments,
    5 dropped as a duplicate.

publish SOURCE TYPE PRIORITY [PAYLOAD]
    Publish an event: its file name is printed.

    PRIORITY is critical, high, normal or low. Put -- before a PAYLOAD that starts with a dash.

    --file FILE       Read the payload from FILE, or - for stdin.
    --dedup-window N  Drop this event if an equal one is pending within N seconds; 0: never.
    nbs: DIR SOURCE TYPE PRIORITY [PAYLOAD] [--file=FILE] [--dedup-window=N]
    says: write an event; its file name is printed

check
    List pending events, most urgent first, then oldest.

    `observed` marks an event that another program published: its source is a claim. `signed`
    marks one that has its actor's signature.

    With --reader each event is shown to that reader once, acknowledged ones too; a new reader
    begins with all events whose files are kept.

    --handle NAME    Only events of this source.
    --reader HANDLE  What this reader was not shown yet, even if acknowledged.
    nbs: DIR [--handle=NAME | --reader=HANDLE]
    says: list pending events, the most urgent first; a reader sees each event once
    looks: always

read EVENT
    Print a pending event's file, or with --json its fields.
    --processed  Also one that is acknowledged already.
    nbs: DIR EVENT [--processed]
    says: print an event's file
    looks: always

ack EVENT
    Acknowledge one event: it moves to processed/. Exactly one caller wins, others get 3.
    --as HANDLE  Who acknowledges it.
    nbs: DIR EVENT [--as=HANDLE]
    says: move an event to processed/

ack-all
    Acknowledge all pending events.
    --handle NAME  Only events of this source.
    --as HANDLE    Who acknowledges them.
    nbs: DIR [--handle=NAME] [--as=HANDLE]
    says: acknowledge all pending events (of one source)

prune
    Delete the oldest processed events' files above the limit; their entries stay.
    --max-bytes N  Keep at most N bytes of processed events.
    --as HANDLE    Who prunes.
    nbs: DIR [--max-bytes=N] [--as=HANDLE]
    says: delete the oldest processed files above the limit

status
    Count pending and processed events, and warn of stale ones.
    nbs: DIR
    says: count pending and processed events, warn of stale ones
    looks: always

claim [EVENT]
    Take an event: its file name is printed, and nobody else gets it while the lease runs.

    Without EVENT it is the most urgent that nobody has. Acknowledge it at the end
    (`ack --as`), or give it back (`release`); after the lease anybody can take it again, as
    attempt 2. If none is pending, or somebody else has it, the exit code is 3.

    --as, --by HANDLE  Who takes it.
    --lease S          Seconds until somebody else can take it; 300 by default.
    --wait S           If none is pending, wait up to S seconds for one.
    nbs: DIR [EVENT] --by=HANDLE [--lease=S] [--wait=S]
    says: take an event, so that nobody else gets it while the lease runs

release EVENT
    Give an event back before its lease ends.
    --as, --by HANDLE  Who has it.
    nbs: DIR EVENT --by=HANDLE
    says: give a claimed event back

wait
    Wait until `check` would list something, and list it.

    It wakes at once where the system tells of new files (inotify), and looks again every
    `poll-interval` seconds of the configuration. Where nothing comes in time the exit code is
    3.

    --handle NAME    Only events of this source.
    --reader HANDLE  What this reader was not shown yet, even if acknowledged.
    --timeout S      Seconds to wait; for ever by default.
    nbs: DIR [--handle=NAME | --reader=HANDLE] [--timeout=S]
    says: wait until check would list something, and list it

recover
    Start anew after a stop: list what is pending, most urgent first.

    What this handle had claimed is given back, and a `heartbeat` event says that it is there.

    --as HANDLE  Who is back.
    nbs: DIR --as=HANDLE
    says: start anew: list what is pending, give old claims back, publish a heartbeat
"""
_KINDS = {
    "PRIORITY": ChoiceParam(*bus_format.PRIORITIES),
    "S": NumberParam(0, MAX_SECONDS),
    "--dedup-window": NumberParam(0, MAX_SECONDS, empty=0),
    "--lease": NumberParam(1, MAX_SECONDS),
    "--max-bytes": NumberParam(1),
}
_WORKS = [
    _publish, _check, _read, _ack, _ack_all, _prune, _status, _claim, _release, _check, _recover,
]  # fmt: skip
COMMANDS = {"bus": command_group(_BUS, _WORKS, _KINDS)}

_VERBS = COMMANDS["bus"].verbs
_USAGE = command_usage(
    "nbs-bus COMMAND DIR ...",
    _VERBS,
    """\
DIR is the events' folder (.nbs/events). PRIORITY is critical, high, normal or low.
A text that looks like an option goes behind a --. Without --as, --by: NBS_HANDLE.
exit codes: 0 ok, 1 error, 2 no such folder, 3 no such event, 4 bad arguments,
  5 dropped as a duplicate""",
)
PROGRAMS = (
    NbsProgram(
        "nbs-bus",
        _VERBS,
        _USAGE,
        front="events",
        asks=("help",),
        lost="usage",
        explains=True,
        by_name=True,
    ),
)
