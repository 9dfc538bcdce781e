"""What the commands of the bus print, whoever is asked (spec: nbs-compat B1 to B8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tripod.bus.events import Claim, PendingEvent, PruneResult, Status
from tripod.output import emit, one_line, remark, unbroken
from tripod.projections.bus.format import age, format_time
from tripod.team.team import Team

if TYPE_CHECKING:
    from tripod.bus.waiting import Recovery, Unseen


def pending_lines(events: Iterable[PendingEvent], now_us: int) -> Iterator[str]:
    """One line an event: its priority, its file, its age."""
    for priority, name, us, *_ in events:
        yield f"[{priority}] {unbroken(name)} ({age(now_us, us)} ago)"


def show_unseen(team: Team, reader: str, found: Unseen, now_us: int) -> None:
    """Show a reader what it was not shown; only then its place moves."""
    from tripod.bus.waiting import mark_seen

    emit(unseen_lines(found, now_us))
    if found.pruned:
        remark(f"{found.pruned} more came and were pruned: `tripod show --stream bus` has them")
    mark_seen(team, reader, found)


def show_claim(taken: Claim) -> None:
    """The event's name, to go on with; and a word where somebody began on it before."""
    emit([one_line(taken.name)])
    if taken.attempt > 1:
        remark(f"attempt {taken.attempt}: it was begun before and not acknowledged")


def show_recovery(found: Recovery, now_us: int) -> None:
    """What is pending, to go on with; and a word on the life before."""
    emit(pending_lines(found.pending, now_us))
    remark(f"last activity {found.last_at}; heartbeat {found.heartbeat}")
    for name in found.released:
        remark(f"given back: {name}")


def unseen_lines(found: Unseen, now_us: int) -> Iterator[str]:
    """The same for a reader, who is told which of them are acknowledged already."""
    for line, event in zip(pending_lines(found.events, now_us), found.events, strict=True):
        yield f"{line} acknowledged" if event.name in found.acked else line


def acked_line(count: int) -> str:
    """How many were acknowledged at once."""
    return f"Acknowledged {count} event{'' if count == 1 else 's'}"


def pruned_line(done: PruneResult) -> str:
    """What a prune did."""
    if not done.folder:
        return "Pruned 0 events (no processed directory)"
    left, limit = f"{done.left / 1024:.1f} KB", f"{done.limit / 1024:.1f} KB"
    if not done.files:
        return f"Pruned 0 events ({left} / {limit} limit)"
    plural = "" if done.files == 1 else "s"
    return f"Pruned {done.files} event{plural} ({left} remaining, {limit} limit)"


def status_lines(found: Status) -> list[str]:
    """The queue in numbers, and a warning where events wait for too long."""
    counts = ", ".join(f"{name}={count}" for name, count in found.pending.items())
    lines = [f"Pending: {found.total} total" + (f" ({counts})" if found.total else "")]
    if found.oldest_us is not None:
        lines.append(f"Oldest pending: {format_time(found.oldest_us)}")
    lines.append(f"Processed: {found.processed} events ({found.processed_bytes / 1024:.1f} KB)")
    if found.stale:
        plural = "" if found.stale == 1 else "s"
        lines.append(f"WARNING: {found.stale} stale event{plural} (unacked > {found.ack_timeout}s)")
    return lines
