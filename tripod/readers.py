"""Readers of the bus: each sees every event once, whoever acknowledged it; and waiting for events.

The seeds want agents to overhear each other (nbs-bus, "Integration with nbs-chat"), but one
acknowledgement removes an event for everybody. A reader has a place in the ledger instead: the
newest entry that it was shown. The place is moved behind the showing, so an event whose showing
failed is shown again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeVar

from ledger import drafts_bus
from projections import BUS
from projections.formats.event import PRIORITIES
from tripod.bus import Pending, check, queue_of, settings
from tripod.errors import BadArgumentError, NotFoundError
from tripod.team import Team
from tripod.waking import Watch

T = TypeVar("T")


class Unseen(NamedTuple):
    """Events that a reader was not shown, most urgent first, then oldest.

    ``acked`` are the names of those that somebody acknowledged meanwhile. ``pruned`` more came and
    went. ``up_to`` is the entry up to which this shows them.
    """

    events: list[Pending]
    acked: frozenset[str]
    pruned: int
    up_to: int


def unseen(team: Team, reader: str) -> Unseen:
    """What a reader was not shown yet; a new one: all events whose files are kept.

    Raises:
        BadArgumentError: not the handle of a reader.
    """
    _check_reader(reader)
    db = team.store.db
    key = team.queue + reader  # in each queue a reader has a place of its own
    row = db.execute("SELECT up_to FROM readers WHERE reader = ?", (key,)).fetchone()
    seen = -1 if row is None else int(row[0])
    size = db.execute("SELECT size FROM head").fetchone()[0]
    where, values = queue_of(team)
    rows = db.execute(
        "SELECT priority, name, us, source, type, acked FROM events"
        f" WHERE seq > ? AND seq < ?{where} ORDER BY priority, us, name",
        (seen, size, *values),
    ).fetchall()
    skip = len(team.queue)
    events = [
        Pending(PRIORITIES[priority], name[skip:], *rest) for priority, name, *rest, _ in rows
    ]
    acked = frozenset(name[skip:] for _, name, *_, acked in rows if acked is not None)
    pruned = 0
    if row is not None:
        where, values = queue_of(team, "json_extract(CAST(body AS TEXT), '$.name')")
        came = db.execute(
            "SELECT count(*) FROM entries WHERE seq > ? AND seq < ? AND kind = 'bus.published'"
            + where,
            (seen, size, *values),
        ).fetchone()[0]
        pruned = came - len(rows)
    return Unseen(events, acked, pruned, size - 1)


def _check_reader(reader: str) -> None:
    from projections.formats.chat import valid_handle

    problem = valid_handle(reader)
    if problem is not None:
        raise BadArgumentError(f"reader: {problem.removeprefix('handle: ')}")


def mark_seen(team: Team, reader: str, found: Unseen) -> None:
    """Note that a reader was shown what ``unseen`` gave; its place never moves back."""
    if not (found.events or found.pruned):
        return

    with team.act(hasty=True, by=reader) as act:
        key = team.queue + reader
        row = team.store.db.execute("SELECT up_to FROM readers WHERE reader = ?", (key,)).fetchone()
        if row is None or row[0] < found.up_to:
            act.append([drafts_bus.seen(key, found.up_to)._replace(actor=reader)])


def wait(
    team: Team,
    look: Callable[[], T | None],
    timeout: float | None,
    *,
    soon: Callable[[], float] = lambda: inf,
) -> T:
    """Look until there is something: at once when it comes, at most ``timeout`` seconds.

    Args:
        team: whose queue is watched.
        look: gives None where there is nothing yet. It is asked again whenever the queue may have
            changed, and after ``poll-interval`` seconds of the configuration in any case.
        timeout: seconds; None waits for ever.
        soon: seconds after which it is worth a look though nothing happened.

    Raises:
        NotFoundError: the time is over.
    """
    config = settings(team)
    until = inf if timeout is None else time.monotonic() + timeout
    folder = team.disk.full(f"{BUS.folder}/{team.queue}".rstrip("/"))
    told = config["notify"] != "poll"
    with Watch([folder], every=float(config["poll_interval"]), told=told) as watch:
        while True:
            team.refresh()
            found = look()
            if found is not None:
                return found
            left = until - time.monotonic()
            if left <= 0:
                raise NotFoundError(f"nothing came within {timeout:g} s")
            watch.wait(min(left, soon()))


def wait_pending(team: Team, handle: str | None, timeout: float | None) -> list[Pending]:
    """Wait until an event is pending (of the source ``handle``); give all that are.

    Raises:
        NotFoundError: none came in time.
    """
    return wait(team, lambda: list(check(team, handle)) or None, timeout)


def wait_unseen(team: Team, reader: str, timeout: float | None) -> Unseen:
    """Wait until there is an event that the reader was not shown; give all of them.

    Raises:
        BadArgumentError: not the handle of a reader.
        NotFoundError: none came in time.
    """

    def look() -> Unseen | None:
        found = unseen(team, reader)
        return found if found.events or found.pruned else None

    return wait(team, look, timeout)
