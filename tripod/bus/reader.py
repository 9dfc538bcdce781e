"""Claims, readers and waiting: how consumers share the events of the bus.

A claim gives an event to one consumer for a while, and no other consumer gets or acknowledges it.
It stays pending: where the lease ends without an acknowledgement, the next consumer gets the event
as attempt 2. So every event is worked on at least once, and each further attempt is an entry.
``recover`` is what an agent calls when it restarts (seeds: nbs-bus, "Restart Recovery").

A reader sees every event once, no matter who acknowledged it: the seeds want agents to overhear
each other (nbs-bus, "Integration with nbs-chat"). So a reader has a place in the ledger, the newest
entry that it was shown. It moves after the showing: what could not be shown is shown again.

Waiting uses the kernel's notice of changes in a folder (inotify), and polls where it has none. A
caller first begins to watch, then looks, then waits, so that no change is missed; a wake-up may be
spurious. Every few seconds it looks in any case: a change by another host gives no notice.
"""

import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple, Self, TypeVar

from tripod.bus.events import (
    NOBODY,
    Claim,
    PendingEvent,
    check,
    claim_on_event,
    event_queue,
    find_event_for,
    full_event_name,
)
from tripod.errors import BadArgumentError, NotFoundError
from tripod.ledger.kinds.bus import CLAIMED, RELEASED, SEEN
from tripod.projections import BUS
from tripod.projections.bus.format import PRIORITIES
from tripod.team.act import draft_event_for_act, settings_of_queue
from tripod.team.intake import take_in
from tripod.team.team import Team

# <sys/inotify.h>: IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE; IN_CLOEXEC and IN_NONBLOCK are open's.
_CHANGES = 0x008 | 0x080 | 0x100
_ROOM = 65_536


class QueueWatch:
    """A watch on folders, for the length of a ``with``."""

    def __init__(self, folders: Sequence[str], *, every: float, told: bool = True) -> None:
        """Begin to watch ``folders``; ``wait`` ends after ``every`` seconds in any case.

        ``told``: False looks again and asks the kernel for nothing.
        """
        self._every = every
        self._fd = -1  # the kernel tells nothing, or has no watch left
        if told and sys.platform.startswith("linux"):
            import ctypes

            libc = ctypes.CDLL(None, use_errno=True)
            self._fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
            paths = map(os.fsencode, folders)
            if any(libc.inotify_add_watch(self._fd, path, _CHANGES) < 0 for path in paths):
                self.__exit__()

    @property
    def is_told(self) -> bool:
        """Whether the kernel tells."""
        return self._fd >= 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def wait(self, seconds: float) -> None:
        """Return when something happened, after ``seconds``, or after the time between looks."""
        seconds = max(0.0, min(seconds, self._every))
        if self._fd < 0:
            time.sleep(seconds)
            return
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if poll.poll(seconds * 1000):
            os.read(self._fd, _ROOM)


T = TypeVar("T")


class Unseen(NamedTuple):
    """Events that a reader was not shown, most urgent first, then oldest.

    ``acked`` are the names of those that somebody acknowledged meanwhile. ``pruned`` more came and
    went. ``up_to`` is the entry up to which this shows them.
    """

    events: list[PendingEvent]
    acked: frozenset[str]
    pruned: int
    up_to: int


def unseen(team: Team, reader: str) -> Unseen:
    """The events that a reader was not shown yet; for a new reader all whose files are kept.

    Raises BadArgumentError (not a handle).
    """
    from tripod.projections.chat.format import valid_chat_handle

    problem = valid_chat_handle(reader)
    if problem is not None:
        raise BadArgumentError(f"reader: {problem.removeprefix('handle: ')}")
    db = team.store.db
    key = team.queue + reader  # in each queue a reader has a place of its own
    row = db.execute("SELECT up_to FROM readers WHERE reader = ?", (key,)).fetchone()
    seen = -1 if row is None else int(row[0])
    size = team.store.size
    where, values = event_queue(team)
    rows = db.execute(
        "SELECT priority, name, us, source, type, seq, acked FROM events"
        f" WHERE seq > ? AND seq < ?{where} ORDER BY priority, us, name",
        (seen, size, *values),
    ).fetchall()
    skip = len(team.queue)
    events = [
        PendingEvent(PRIORITIES[priority], name[skip:], *rest) for priority, name, *rest, _ in rows
    ]
    acked = frozenset(name[skip:] for _, name, *_, acked in rows if acked is not None)
    published = len(rows)
    if row is not None and (team.queue or team.disk.places.added):
        entries = team.store.read(seen + 1, size, kinds=("bus.published",))
        fronts = (entry.data["name"].rpartition("/") for entry in entries)
        published = sum(front + slash == team.queue for front, slash, _ in fronts)
    elif row is not None:
        found = team.store.kinds(seen + 1, size).get("bus.published")
        published = 0 if found is None else found.number
    return Unseen(events, acked, published - len(rows), size - 1)


def mark_seen(team: Team, reader: str, found: Unseen) -> None:
    """Note that a reader was shown what ``unseen`` gave; its place never moves back.

    Where the team is only read, it is a warning that nothing is noted.
    """
    if not (found.events or found.pruned):
        return
    if team.is_read_only:
        team.warnings.append(f"not noted as shown to {reader}: the team is only read")
        return

    with team.act(hasty=True, joins=True, by=reader) as act:
        key = team.queue + reader
        row = team.store.db.execute("SELECT up_to FROM readers WHERE reader = ?", (key,)).fetchone()
        if row is None or row[0] < found.up_to:
            act.append([SEEN.draft({"reader": key, "up_to": found.up_to}, reader)])


def wait(
    team: Team,
    look: Callable[[], T | None],
    timeout: float | None,
    *,
    soon: Callable[[], float] = lambda: inf,
) -> T:
    """Look until there is something: at once when it comes, at most ``timeout`` seconds.

    ``look`` gives None where there is nothing yet. It is asked again whenever the queue may have
    changed, after ``poll-interval`` seconds of the configuration in any case, and after the seconds
    that ``soon`` gives. A ``timeout`` of None waits for ever. Raises NotFoundError (the time is
    over).
    """
    config = settings_of_queue(team)
    until = inf if timeout is None else time.monotonic() + timeout
    folder = team.disk.full(f"{BUS.folder}/{team.queue}".rstrip("/"))
    told = config["notify"] != "poll"
    with QueueWatch([folder], every=float(config["poll_interval"]), told=told) as watch:
        while True:
            team.refresh()
            found = look()
            if found is not None:
                return found
            left = until - time.monotonic()
            if left <= 0:
                raise NotFoundError(f"nothing came within {timeout:g} s")
            watch.wait(min(left, soon()))


def wait_pending(team: Team, handle: str | None, timeout: float | None) -> list[PendingEvent]:
    """Wait until an event is pending (of the source ``handle``); give all that are.

    ``timeout`` is in seconds; None waits for ever. Raises NotFoundError (none came in time).
    """
    return wait(team, lambda: list(check(team, handle)) or None, timeout)


def wait_unseen(team: Team, reader: str, timeout: float | None) -> Unseen:
    """Wait until there is an event that the reader was not shown; give all of them.

    ``timeout`` is in seconds; None waits for ever. Raises BadArgumentError (not a handle),
    NotFoundError (none came in time).
    """

    def look() -> Unseen | None:
        found = unseen(team, reader)
        return found if found.events or found.pruned else None

    return wait(team, look, timeout)


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
    """The state of the queue for an agent that starts anew.

    ``last_at`` is the time of the newest entry before this one, ``released`` the events that it had
    claimed before, ``heartbeat`` the event that says that it is back.
    """

    pending: list[PendingEvent]
    last_at: str
    released: list[str]
    heartbeat: str


def claim(team: Team, holder: str, name: str | None = None, *, lease: int = LEASE) -> Claim:
    """Take an event for ``lease`` seconds: the one named, or the most urgent that nobody has.

    The current holder gets a new lease. Raises BadArgumentError (an argument breaks its rule),
    NotFoundError (not pending, or somebody else has it; or no event is pending).
    """
    _check_holder(holder)
    if not 0 < lease <= MAX_LEASE:
        raise BadArgumentError(f"lease: {lease} is no number of seconds from 1 to {MAX_LEASE}")
    with team.act(hasty=True, joins=True, by=holder) as act:
        if name is not None:
            event, found = find_event_for(team, act, name), full_event_name(team, name)
        else:
            where, values = event_queue(team, "e.name")
            sql = _FREE.format(where=where)
            row = team.store.db.execute(sql, (act.now_us, *values)).fetchone()
            if row is None and team.files.uncounted:
                take_in(act)
                row = team.store.db.execute(sql, (act.now_us, *values)).fetchone()
            if row is None:
                raise NotFoundError("no event to take: none is pending that nobody has")
            event, found = row
        last = claim_on_event(team, event)
        again = last is not None and last.holder == holder and last.until_us > act.now_us
        if last is not None and last.until_us > act.now_us and not again:
            raise NotFoundError(f"{name} {last.told}: `claim` without a name takes another one")
        attempt = 1 if last is None else last.attempt + (not again)
        until = act.now_us + lease * 1_000_000
        draft = CLAIMED.draft(
            {"name": found, "event": event, "by": holder, "until": until, "attempt": attempt}
        )
        act.append([draft])
        return Claim(found.removeprefix(team.queue), holder, until, attempt)


def wait_claim(team: Team, holder: str, timeout: float | None, *, lease: int = LEASE) -> Claim:
    """Take the most urgent event that nobody has, or wait until there is one.

    ``lease`` and ``timeout`` are in seconds; a ``timeout`` of None waits for ever. Raises
    BadArgumentError (an argument breaks its rule), NotFoundError (there was none in time).
    """

    def look() -> Claim | None:
        with suppress(NotFoundError):
            return claim(team, holder, lease=lease)
        return None

    def soon() -> float:
        now = time.time_ns() // 1000
        rows = _live_claims(team, now)
        return (rows[0][3] - now) / 1_000_000 if rows else inf

    return wait(team, look, timeout, soon=soon)


def _check_holder(handle: str) -> None:
    from tripod.projections.chat.format import valid_chat_handle

    problem = valid_chat_handle(handle)
    if problem is None and handle == NOBODY:
        problem = f"handle: {NOBODY!r} stands for a caller that gave no name"
    if problem is not None:
        raise BadArgumentError(problem)


def release(team: Team, holder: str, name: str) -> None:
    """Give an event back before the lease ends.

    Raises BadArgumentError (not a name), NotFoundError (not pending, or not held by ``holder``).
    """
    with team.act(hasty=True, joins=True, by=holder) as act:
        event = find_event_for(team, act, name)
        taken = claim_on_event(team, event, act.now_us)
        if taken is None or taken.holder != holder:
            raise NotFoundError(f"{name} is not claimed by {holder}: there is nothing to give back")
        act.append([RELEASED.draft({"name": full_event_name(team, name), "event": event}, holder)])


def held(team: Team, now_us: int) -> dict[str, Claim]:
    """The claims on pending events at ``now_us`` (µs since 1970), by the event's name."""
    return {name: Claim(name, *rest) for _, name, *rest in _live_claims(team, now_us)}


def _live_claims(team: Team, now_us: int) -> list[tuple[Any, ...]]:
    """Entry, name, holder, end and attempt of the claims on events of the queue."""
    where, values = event_queue(team, "e.name")
    rows = team.store.db.execute(_LIVE.format(where=where), (now_us, *values))
    return [(event, name.removeprefix(team.queue), *rest) for event, name, *rest in rows]


def recover(team: Team, handle: str) -> Recovery:
    """Start anew: give what is pending, most urgent first; the handle's old claims are released.

    A ``heartbeat`` event tells the others, and no dedup window drops it. Raises BadArgumentError
    (not a handle).
    """
    _check_holder(handle)
    with team.act(joins=True, by=handle) as act:
        last = team.store.at
        pending = list(check(team))
        rows = _live_claims(team, act.now_us)
        mine = {name: event for event, name, holder, *_ in rows if holder == handle}
        back = [
            RELEASED.draft({"name": team.queue + name, "event": event}, handle)
            for name, event in mine.items()
        ]
        said = f"{handle} is back: {len(pending)} pending, {len(mine)} claims released"
        beat = draft_event_for_act(act, handle, "heartbeat", "low", said)
        act.append([*back, beat])
        return Recovery(pending, last, list(mine), str(beat.body["name"])[len(team.queue) :])
