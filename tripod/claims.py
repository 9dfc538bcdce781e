"""Claims: a consumer takes an event for a while, so that no two work on it at once.

A claim is no acknowledgement. The event stays pending; while the lease runs, nobody else gets it,
and nobody else's acknowledgement is taken. Where the consumer ends before it acknowledged, its
lease ends and the next one gets the event as attempt 2: every event is worked on at least once,
and each time that it was begun again is an entry.

``recover`` is what an agent does when it starts anew (seeds: nbs-bus, "Restart Recovery").
"""

from __future__ import annotations

import time
from math import inf
from typing import Any, NamedTuple

from ledger import drafts_bus
from tripod.act import Act
from tripod.bus import NOBODY, Claim, Pending, check, claim_on, find_for, full_name, queue_of
from tripod.drafting import draft_event
from tripod.errors import BadArgumentError, NotFoundError
from tripod.readers import wait
from tripod.team import Team

LEASE = 300  # seconds
MAX_LEASE = 2**32

_FREE = (
    "SELECT e.seq, e.name FROM events AS e INDEXED BY events_pending"
    " LEFT JOIN claims AS c ON c.event = e.seq"
    " WHERE e.acked IS NULL AND (c.event IS NULL OR c.until_us <= ?){where}"
    " ORDER BY e.priority, e.us, e.name LIMIT 1"
)
_LIVE = (
    "SELECT e.seq, e.name, c.holder, c.until_us, c.attempt FROM claims AS c"
    " JOIN events AS e ON e.seq = c.event WHERE e.acked IS NULL AND c.until_us > ?{where}"
    " ORDER BY c.until_us"
)


class Recovery(NamedTuple):
    """What an agent finds when it starts anew.

    ``last_at`` is the time of the newest entry before this one, ``released`` the events that its
    former life had taken, ``heartbeat`` the event that says that it is back.
    """

    pending: list[Pending]
    last_at: str
    released: list[str]
    heartbeat: str


def claim(team: Team, holder: str, name: str | None = None, *, lease: int = LEASE) -> Claim:
    """Take an event for ``lease`` seconds: the one named, or the most urgent that nobody has.

    Whoever has it already gets the lease anew.

    Raises:
        BadArgumentError: an argument breaks its rule.
        NotFoundError: it is not pending, or somebody else has it; or there is none to take.
    """
    _check_holder(holder)
    if not 0 < lease <= MAX_LEASE:
        raise BadArgumentError(f"lease: {lease} is no number of seconds from 1 to {MAX_LEASE}")
    with team.act(hasty=True, by=holder) as act:
        event, found = _free(team, act, holder, name)
        last = claim_on(team, event)
        again = last is not None and last.holder == holder and last.until_us > act.now_us
        attempt = 1 if last is None else last.attempt + (not again)
        until = act.now_us + lease * 1_000_000
        draft = drafts_bus.claimed(name=found, event=event, by=holder, until=until, attempt=attempt)
        act.append([draft])
        return Claim(found.removeprefix(team.queue), holder, until, attempt)


def take(team: Team, holder: str, name: str | None, *, lease: int, timeout: int | None) -> Claim:
    """Claim as the commands word it: a named event now, or any, for which ``timeout`` s are waited.

    Raises:
        BadArgumentError: an event is named, and is to be waited for.
        NotFoundError: there is none to take, or somebody else has it.
    """
    if name is not None and timeout is not None:
        raise BadArgumentError(
            "--wait waits until there is any event: leave it out where one is named"
        )
    if timeout:
        return wait_claim(team, holder, timeout, lease=lease)
    return claim(team, holder, name, lease=lease)


def wait_claim(team: Team, holder: str, timeout: float | None, *, lease: int = LEASE) -> Claim:
    """Take the most urgent event that nobody has; where there is none, wait for one.

    Raises:
        BadArgumentError: an argument breaks its rule.
        NotFoundError: there was none in time.
    """

    def look() -> Claim | None:
        try:
            return claim(team, holder, lease=lease)
        except NotFoundError:
            return None

    def soon() -> float:
        now = time.time_ns() // 1000
        rows = _live(team, now)
        return (rows[0][3] - now) / 1_000_000 if rows else inf

    return wait(team, look, timeout, soon=soon)


def _check_holder(holder: str) -> None:
    from projections.formats.chat import valid_handle

    problem = valid_handle(holder)
    if problem is None and holder == NOBODY:
        problem = f"handle: {NOBODY!r} stands for whoever did not say who it is"
    if problem is not None:
        raise BadArgumentError(problem)


def _free(team: Team, act: Act, holder: str, name: str | None) -> tuple[int, str]:
    if name is not None:
        event = find_for(team, act, name)
        taken = claim_on(team, event)
        if taken is not None and taken.until_us > act.now_us and taken.holder != holder:
            raise NotFoundError(f"{name} {taken.told}: `claim` without a name takes another one")
        return event, full_name(team, name)
    where, values = queue_of(team, "e.name")
    sql = _FREE.format(where=where)
    row = team.store.db.execute(sql, (act.now_us, *values)).fetchone()
    if row is None and team.files.uncounted:
        act.take_in()
        row = team.store.db.execute(sql, (act.now_us, *values)).fetchone()
    if row is None:
        raise NotFoundError("no event to take: none is pending that nobody has")
    return row[0], row[1]


def release(team: Team, holder: str, name: str) -> None:
    """Give an event back before the lease ends.

    Raises:
        BadArgumentError: not the name of an event.
        NotFoundError: it is not pending, or not in these hands.
    """
    with team.act(hasty=True, by=holder) as act:
        event = find_for(team, act, name)
        taken = claim_on(team, event)
        if taken is None or taken.holder != holder or taken.until_us <= act.now_us:
            raise NotFoundError(f"{name} is not claimed by {holder}: there is nothing to give back")
        draft = drafts_bus.released(name=full_name(team, name), event=event, actor=holder)
        act.append([draft])


def held(team: Team, now_us: int) -> dict[str, Claim]:
    """The pending events that somebody has, by name."""
    return {name: Claim(name, *rest) for _, name, *rest in _live(team, now_us)}


def _live(team: Team, now_us: int) -> list[tuple[Any, ...]]:
    """Entry, name, holder, end and attempt of the claims on events of the queue."""
    where, values = queue_of(team, "e.name")
    rows = team.store.db.execute(_LIVE.format(where=where), (now_us, *values))
    return [(event, name.removeprefix(team.queue), *rest) for event, name, *rest in rows]


def recover(team: Team, handle: str) -> Recovery:
    """Start anew: what is pending, most urgent first; the claims of the life before are released.

    A ``heartbeat`` event tells the others, and no dedup window drops it.

    Raises:
        BadArgumentError: no handle.
    """
    _check_holder(handle)
    with team.act(by=handle) as act:
        last = team.store.db.execute("SELECT at FROM head").fetchone()[0]
        pending = list(check(team))
        rows = _live(team, act.now_us)
        mine = [(event, name) for event, name, holder, *_ in rows if holder == handle]
        back = [
            drafts_bus.released(name=team.queue + name, event=event, actor=handle)
            for event, name in mine
        ]
        said = f"{handle} is back: {len(pending)} pending, {len(mine)} claims released"
        beat = draft_event(act, handle, "heartbeat", "low", said)
        act.append([*back, beat])
        return Recovery(
            pending, last, [name for _, name in mine], str(beat.body["name"])[len(team.queue) :]
        )
