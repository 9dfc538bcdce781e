"""``tripod bus``: the event queue. Exit codes as documented for it (spec: nbs-compat B1)."""

from __future__ import annotations

import time

import click

from tripod import bus as acts
from tripod.cli.door import HANDLE, TEXT, Door, Number, opened, team_option, text_argument
from tripod.cli.output import emit, emit_bytes, emit_json
from tripod.errors import BadArgumentError
from tripod.team import Team

__all__ = ["bus"]

NOBODY = "unknown"
MAX_WINDOW = 2**32  # seconds: more than a century


@click.group(cls=Door)
def bus() -> None:
    """Publish events, list and acknowledge them.

    Exit codes: 0 ok, 1 general error, 2 no team directory, 3 no such event, 4 bad arguments,
    5 dropped as a duplicate.
    """


def _handle(handle: str | None) -> str | None:
    if handle is not None and (not handle.strip() or "/" in handle):
        message = "--handle: a source is not empty and holds no /; leave it out to mean all"
        raise BadArgumentError(message)
    return handle


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


def _refreshed(team: Team) -> Team:
    team.refresh()
    return team


@bus.command()
@team_option
@click.option("--handle", type=TEXT, metavar="NAME", help="Only events of this source.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def check(*, team_path: str | None, handle: str | None, as_json: bool) -> None:
    """List pending events, most urgent first, then oldest."""
    handle = _handle(handle)
    with opened(team_path) as team:
        now = time.time_ns() // 1000
        pending = acts.check(_refreshed(team), handle)
        if as_json:
            emit_json(event._asdict() for event in pending)
        else:
            from projections.formats.event import age

            emit(f"[{e.priority}] {e.name} ({age(now, e.us)} ago)" for e in pending)


@bus.command()
@team_option
@click.argument("event", type=TEXT)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def read(*, team_path: str | None, event: str, as_json: bool) -> None:
    """Print a pending event's file, or with --json its fields."""
    with opened(team_path) as team:
        data = acts.read(_refreshed(team), event)
    if not as_json:
        emit_bytes(data)
        return
    from projections.formats.event import parse_event

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
        acts.ack(team, event, actor=actor or NOBODY)
    if as_json:
        emit_json([{"name": event}])


@bus.command("ack-all")
@team_option
@click.option("--handle", type=TEXT, metavar="NAME", help="Only events of this source.")
@click.option("--as", "actor", type=HANDLE, metavar="HANDLE", help="Who acknowledges them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def ack_all(*, team_path: str | None, handle: str | None, actor: str, as_json: bool) -> None:
    """Acknowledge all pending events."""
    handle = _handle(handle)
    with opened(team_path) as team:
        count = acts.ack_all(team, handle, actor=actor or NOBODY)
    if as_json:
        emit_json([{"count": count}])
    else:
        emit([f"Acknowledged {count} event{'' if count == 1 else 's'}"])


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
        done = acts.prune(team, max_bytes, actor=actor or NOBODY)
    if as_json:
        emit_json([done._asdict()])
        return
    if not done.folder:
        emit(["Pruned 0 events (no processed directory)"])
        return
    left, limit = f"{done.left / 1024:.1f} KB", f"{done.limit / 1024:.1f} KB"
    if done.files:
        plural = "" if done.files == 1 else "s"
        emit([f"Pruned {done.files} event{plural} ({left} remaining, {limit} limit)"])
    else:
        emit([f"Pruned 0 events ({left} / {limit} limit)"])


@bus.command()
@team_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(*, team_path: str | None, as_json: bool) -> None:
    """Count pending and processed events, and warn of stale ones."""
    with opened(team_path) as team:
        found = acts.status(_refreshed(team), time.time_ns() // 1000)
    if as_json:
        emit_json([found._asdict()])
        return
    counts = ", ".join(f"{name}={count}" for name, count in found.pending.items())
    lines = [f"Pending: {found.total} total" + (f" ({counts})" if found.total else "")]
    if found.oldest_us is not None:
        from projections.formats.event import format_time

        lines.append(f"Oldest pending: {format_time(found.oldest_us)}")
    lines.append(f"Processed: {found.processed} events ({found.processed_bytes / 1024:.1f} KB)")
    if found.stale:
        plural = "" if found.stale == 1 else "s"
        lines.append(f"WARNING: {found.stale} stale event{plural} (unacked > {found.ack_timeout}s)")
    emit(lines)
