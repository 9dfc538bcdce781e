"""``tripod bus``: the event queue. Exit codes as documented for it (spec: nbs-compat B1)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from tripod.bus import events as acts
from tripod.bus_lines import (
    acked_line,
    pending_lines,
    pruned_line,
    show_claim,
    show_recovery,
    show_unseen,
    status_lines,
)
from tripod.cli.door import HANDLE, TEXT, Door, Number, team_option
from tripod.errors import BadArgumentError
from tripod.inputs import text_argument
from tripod.output import emit, emit_bytes, emit_json
from tripod.team.open import opened
from tripod.team.team import Team

if TYPE_CHECKING:
    from tripod.bus.waiting import Unseen

MAX_WINDOW = 2**32  # seconds: more than a century


@click.group(cls=Door)
def bus() -> None:
    """Publish events, list and acknowledge them.

    Exit codes: 0 ok, 1 general error, 2 no team directory, 3 no such event, 4 bad arguments,
    5 dropped as a duplicate.
    """


@bus.command()
@team_option
@click.argument("source", type=TEXT)
@click.argument("type_", type=TEXT, metavar="TYPE")
@click.argument("priority", type=TEXT)
@click.argument("payload", type=TEXT, required=False)
@click.option("--file", metavar="FILE", help="Read the payload from FILE, or - for stdin.")
@click.option(
    "--dedup-window",
    type=Number(0, MAX_WINDOW),
    metavar="N",
    help="Drop this event if an equal one is pending within N seconds; 0 never does.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def publish(
    *,
    team_path: str | None,
    source: str,
    type_: str,
    priority: str,
    payload: str | None,
    file: str | None,
    dedup_window: int | None,
    as_json: bool,
) -> None:
    """Publish an event: its file name is printed.

    PRIORITY is critical, high, normal or low. A PAYLOAD that begins with -- goes behind a --.
    """
    text = text_argument(payload, file, "payload")
    with opened(team_path) as team:
        name = acts.publish(team, source, type_, priority, text, dedup_window=dedup_window)
    if as_json:
        emit_json([{"name": name}])
    else:
        emit([name])


def _now_us() -> int:
    return time.time_ns() // 1000


def _emit_pending(team: Team, events: Iterable[acts.PendingEvent], *, as_json: bool) -> None:
    now = _now_us()
    if not as_json:
        emit(pending_lines(events, now))
        return
    from tripod.bus.waiting import held

    claims = held(team, now)
    emit_json(
        event._asdict() | ({"claim": claims[event.name]._asdict()} if event.name in claims else {})
        for event in events
    )


def _emit_unseen(team: Team, reader: str, found: Unseen, *, as_json: bool) -> None:
    """Show a reader what it was not shown; only then its place moves."""
    from tripod.bus.waiting import mark_seen

    if as_json:
        emit_json(e._asdict() | {"acked": e.name in found.acked} for e in found.events)
        mark_seen(team, reader, found)
    else:
        show_unseen(team, reader, found, _now_us())


def _one_of(handle: str | None, reader: str | None) -> None:
    if handle is not None and reader is not None:
        raise BadArgumentError(
            "--handle and --reader: the other events would count as seen; give one of them"
        )


_READER = click.option(
    "--reader",
    type=HANDLE,
    metavar="HANDLE",
    help="What this reader was not shown yet, whoever acknowledged it.",
)


@bus.command()
@team_option
@click.option("--handle", type=TEXT, metavar="NAME", help="Only events of this source.")
@_READER
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def check(*, team_path: str | None, handle: str | None, reader: str | None, as_json: bool) -> None:
    """List pending events, most urgent first, then oldest.

    With --reader each event is shown to that reader once, acknowledged ones too; a new reader
    begins with all whose files are kept.
    """
    _one_of(handle, reader)
    with opened(team_path) as team:
        team.refresh()
        if reader is None:
            _emit_pending(team, acts.check(team, handle), as_json=as_json)
        else:
            from tripod.bus.waiting import unseen

            _emit_unseen(team, reader, unseen(team, reader), as_json=as_json)


@bus.command()
@team_option
@click.option("--handle", type=TEXT, metavar="NAME", help="Only events of this source.")
@_READER
@click.option(
    "--timeout",
    type=Number(0, MAX_WINDOW),
    metavar="S",
    help="Seconds to wait; for ever by default.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def wait(
    *,
    team_path: str | None,
    handle: str | None,
    reader: str | None,
    timeout: int | None,
    as_json: bool,
) -> None:
    """Wait until `check` would list something, and list it.

    It wakes at once where the system tells of new files (inotify), and looks again every
    `poll-interval` seconds of the configuration. Where nothing comes in time the exit code is 3.
    """
    from tripod.bus import waiting

    _one_of(handle, reader)
    with opened(team_path) as team:
        if reader is None:
            found = waiting.wait_pending(team, handle, timeout)
            _emit_pending(team, found, as_json=as_json)
        else:
            unseen = waiting.wait_unseen(team, reader, timeout)
            _emit_unseen(team, reader, unseen, as_json=as_json)


@bus.command()
@team_option
@click.argument("event", type=TEXT)
@click.option("--processed", is_flag=True, help="Also one that is acknowledged already.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def read(*, team_path: str | None, event: str, processed: bool, as_json: bool) -> None:
    """Print a pending event's file, or with --json its fields."""
    with opened(team_path) as team:
        team.refresh()
        data = acts.read(team, event, processed=processed)
    if not as_json:
        emit_bytes(data)
        return
    from tripod.projections.bus.format import parse_event

    fields = parse_event(data)
    emit_json([{"name": event} | ({} if fields is None else fields._asdict())])


@bus.command()
@team_option
@click.argument("event", type=TEXT)
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who acknowledges it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def ack(*, team_path: str | None, event: str, actor: str, as_json: bool) -> None:
    """Acknowledge one event: it moves to processed/. Exactly one caller wins, others get 3."""
    with opened(team_path) as team:
        acts.ack(team, event, actor=actor or acts.NOBODY)
    if as_json:
        emit_json([{"name": event}])


@bus.command("ack-all")
@team_option
@click.option("--handle", type=TEXT, metavar="NAME", help="Only events of this source.")
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who acknowledges them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def ack_all(*, team_path: str | None, handle: str | None, actor: str, as_json: bool) -> None:
    """Acknowledge all pending events."""
    with opened(team_path) as team:
        count = acts.ack_all(team, handle, actor=actor or acts.NOBODY)
    if as_json:
        emit_json([{"count": count}])
    else:
        emit([acked_line(count)])


@bus.command()
@team_option
@click.option(
    "--max-bytes", type=Number(1), metavar="N", help="Keep at most N bytes of processed events."
)
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who prunes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def prune(*, team_path: str | None, max_bytes: int | None, actor: str, as_json: bool) -> None:
    """Delete the oldest processed events' files above the limit; their entries stay."""
    with opened(team_path) as team:
        done = acts.prune(team, max_bytes, actor=actor or acts.NOBODY)
    if as_json:
        emit_json([done._asdict()])
    else:
        emit([pruned_line(done)])


@bus.command()
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(*, team_path: str | None, as_json: bool) -> None:
    """Count pending and processed events, and warn of stale ones."""
    with opened(team_path) as team:
        team.refresh()
        found = acts.status(team, _now_us())
    if as_json:
        emit_json([found._asdict()])
    else:
        emit(status_lines(found))


# Taking events ---------------------------------------------------------------------------------

_BY = click.option("--by", type=HANDLE, metavar="HANDLE", required=True, help="Who takes it.")


@bus.command()
@team_option
@click.argument("event", type=TEXT, required=False)
@_BY
@click.option(
    "--lease",
    type=Number(1, MAX_WINDOW),
    metavar="S",
    help="Seconds until somebody else can take it; 300 by default.",
)
@click.option(
    "--wait",
    "timeout",
    type=Number(0, MAX_WINDOW),
    metavar="S",
    help="Where there is none to take, wait so many seconds for one.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def claim(
    *,
    team_path: str | None,
    event: str | None,
    by: str,
    lease: int | None,
    timeout: int | None,
    as_json: bool,
) -> None:
    """Take an event: its file name is printed, and nobody else gets it while the lease runs.

    Without EVENT it is the most urgent that nobody has. Who works on it acknowledges it at the end
    (`ack --as`), or gives it back (`release`); a lease that ends makes it anybody's again, as
    attempt 2. Where there is none to take, or somebody else has it, the exit code is 3.
    """
    from tripod.bus import waiting

    seconds = waiting.LEASE if lease is None else lease
    with opened(team_path) as team:
        taken = waiting.take(team, by, event, lease=seconds, timeout=timeout)
    if as_json:
        emit_json([taken._asdict()])
        return
    show_claim(taken)


@bus.command()
@team_option
@click.argument("event", type=TEXT)
@click.option("--by", type=HANDLE, metavar="HANDLE", required=True, help="Who has it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def release(*, team_path: str | None, event: str, by: str, as_json: bool) -> None:
    """Give an event back before its lease ends."""
    from tripod.bus import waiting

    with opened(team_path) as team:
        waiting.release(team, by, event)
    if as_json:
        emit_json([{"name": event}])


@bus.command()
@team_option
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", required=True, help="Who is back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def recover(*, team_path: str | None, actor: str, as_json: bool) -> None:
    """Start anew after a stop: list what is pending, most urgent first.

    What this handle had claimed is given back, and a `heartbeat` event says that it is there.
    """
    from tripod.bus import waiting

    with opened(team_path) as team:
        found = waiting.recover(team, actor)
        if as_json:
            events = [event._asdict() for event in found.pending]
            emit_json([found._asdict() | {"pending": events}])
            return
    show_recovery(found, _now_us())
