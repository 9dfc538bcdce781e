"""Acts on the event queue. Everything is decided inside the act's transaction.

Source: spec nbs-compat B; seeds: nbs-bus; design section 7.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from tripod.errors import BadArgumentError, DuplicateDroppedError, NotFoundError, RefusedError
from tripod.ledger.kinds.bus import ACKED, ACKED_ALL, PRUNED
from tripod.projections import BUS
from tripod.projections.bus.format import PRIORITIES, event_name_us, format_time, valid_event_name
from tripod.projections.bus.tables import IS_OURS, IS_PENDING, events_in_queue, render_event
from tripod.team.act import (
    Act,
    check_event_for_act,
    digest_of,
    draft_event_for_act,
    settings_of_queue,
)
from tripod.team.intake import take_in
from tripod.team.team import Team

NOBODY = "unknown"
"""The actor of an act whose author is not known."""


_SCRIBE = "scribe"  # source of the events of a decision; the handle that logs it may be another
_NO_DUPLICATES = ("decision-logged", "pythia-checkpoint")


class PendingEvent(NamedTuple):
    """A pending event: its priority's name, its file's name, that name's time in µs, its entry."""

    priority: str
    name: str
    us: int
    source: str
    type: str
    seq: int


class Claim(NamedTuple):
    """An event in somebody's hands (``tripod.bus.reader``), until ``until_us`` (µs since 1970).

    ``attempt`` counts who began on it, from 1.
    """

    name: str
    holder: str
    until_us: int
    attempt: int

    @property
    def told(self) -> str:
        """The holder and the end of the lease, in words."""
        return f"is claimed by {self.holder} until {format_time(self.until_us)}"


class Status(NamedTuple):
    """Counts of the queue; ``stale`` are pending longer than ``ack_timeout`` seconds (0: off)."""

    pending: dict[str, int]
    oldest_us: int | None
    processed: int
    processed_bytes: int
    ack_timeout: int
    stale: int

    @property
    def total(self) -> int:
        """Pending events in all."""
        return sum(self.pending.values())


class PruneResult(NamedTuple):
    """Files deleted, bytes left, the limit, and whether there is a folder of processed events."""

    files: int
    left: int
    limit: int
    folder: bool


def publish(
    team: Team,
    source: str,
    type_: str,
    priority: str,
    payload: str = "",
    *,
    dedup_window: int | None = None,
) -> str:
    """Publish an event of the priority critical, high, normal or low; give its file name.

    ``source`` and ``type_`` are one line without a slash each, of at most 127 bytes; ``payload``
    has at most 1 MiB. Within ``dedup_window`` seconds an equal pending (source, type) drops this
    one; 0 is off, None takes the configuration's, which counts for no decision of the team's
    Scribe. Raises BadArgumentError (an argument breaks its rule), DuplicateDroppedError (an equal
    event is pending within the window).
    """
    check_event_for_act(source, type_, priority, payload)
    with team.act(hasty=True, joins=True, by=source) as act:
        window = settings_of_queue(team)["dedup_window"] if dedup_window is None else dedup_window
        if dedup_window is None and type_ in _NO_DUPLICATES and source in (_SCRIBE, team.scribe):
            window = 0  # two decisions within the configured window are two; so are checkpoints
        if window:
            # An event dated ahead of us is no nearer for that: it blocks its key for no longer.
            span = window * 1_000_000
            within = max(0, act.now_us - span), min(act.now_us + span, 2**63 - 1)
            where, values = event_queue(team)
            row = act.transaction.tables.execute(
                f"SELECT name FROM events WHERE {IS_PENDING} AND source = ? AND type = ?"
                f" AND us BETWEEN ? AND ?{where} ORDER BY us DESC LIMIT 1",
                (source, type_, *within, *values),
            ).fetchone()
            if row is not None:
                raise DuplicateDroppedError(
                    f"{source}:{type_} dropped: {row[0]} is pending within {window} s "
                    "(--dedup-window=0 publishes all the same)"
                )
        draft = draft_event_for_act(act, source, type_, priority, payload)
        act.append([draft])
        return str(draft.body["name"])[len(team.queue) :]


def event_queue(team: Team, column: str = "name") -> tuple[str, tuple[str, ...]]:
    """The condition that an event is of the queue that is worked on: SQL, and its values."""
    return events_in_queue(team.queue, alone=not team.disk.places.added, column=column)


def check(team: Team, handle: str | None = None) -> Iterator[PendingEvent]:
    """Pending events, most urgent first, then oldest; ``handle``: of this source only.

    Raises BadArgumentError (no source can have this name).
    """
    _check_source(handle)
    where, values = event_queue(team)
    rows = team.store.db.execute(
        "SELECT priority, name, us, source, type, seq FROM events INDEXED BY events_pending"
        f" WHERE acked IS NULL{where} AND source = coalesce(?, source)"
        " ORDER BY priority, us, name",
        (*values, handle),
    )
    skip = len(team.queue)
    for priority, name, *rest in rows:
        yield PendingEvent(PRIORITIES[priority], name[skip:], *rest)


def _check_source(handle: str | None) -> None:
    if handle is not None and (not handle.strip() or "/" in handle):
        raise BadArgumentError(
            "--handle: a source is not empty and holds no /; leave it out to mean all"
        )


def full_event_name(team: Team, name: str) -> str:
    """An event's name in the ledger, after an added queue's (BadArgumentError: not a name)."""
    front = name[: name.rfind("/") + 1]
    if not front or front not in team.disk.places.queues():
        front = ""
    problem = valid_event_name(name[len(front) :])
    if problem is not None:
        raise BadArgumentError(problem)
    return name if front else team.queue + name


def find_pending_event(team: Team, name: str) -> int:
    """The entry that published a pending event (BadArgumentError, NotFoundError: not there)."""
    name = full_event_name(team, name)
    row = team.store.db.execute(
        "SELECT seq FROM events WHERE acked IS NULL AND priority IN (0, 1, 2, 3)"
        " AND us = ? AND name = ?",
        (event_name_us(name), name),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"no pending event {name}: `check` lists those that are")
    return int(row[0])


def read(team: Team, name: str, *, processed: bool = False) -> bytes:
    """The bytes of a pending event's file; with ``processed`` also of an acknowledged one's.

    Raises BadArgumentError (not a name), NotFoundError (not pending, or its file is pruned).
    """
    try:
        return render_event(team.source, team.source.body(find_pending_event(team, name)))
    except NotFoundError:
        path = f"{BUS.folder}/processed/{full_event_name(team, name)}"
        done = BUS.render(team.source, path) if processed else None
        if done is None:
            raise
        return done.data


def ack(team: Team, name: str, *, actor: str = NOBODY) -> None:
    """Acknowledge a pending event; of several who try, exactly one does.

    Raises BadArgumentError (not a name), NotFoundError (not pending), RefusedError (another actor
    has claimed it; it is a checkpoint of a peer). A caller that names no ``actor`` may be the one
    who claimed it, and is not refused.
    """
    with team.act(hasty=True, joins=True, by=actor) as act:
        event = find_event_for(team, act, name)
        _refuse_of_peer(act, event, name)
        claim = None if actor == NOBODY else claim_on_event(team, event, act.now_us)
        if claim is not None and claim.holder != actor:
            raise RefusedError(f"{name} {claim.told}: it is theirs to acknowledge, or to release")
        whole = full_event_name(team, name)
        if take_event(team, act, event, whole):
            act.append([ACKED.draft({"name": whole}, actor)])
            return
        raise NotFoundError(
            f"no pending event {name}: another program acknowledged it at this moment"
        )


def _refuse_of_peer(act: Act, event: int, name: str) -> None:
    """Refuse to acknowledge a checkpoint of a peer: nothing but its review closes it."""
    sql = f"SELECT origin FROM events WHERE seq = ? AND NOT {IS_OURS}"
    row = act.transaction.tables.execute(sql, (event,)).fetchone()
    if row is not None:
        raise RefusedError(
            f"{name} is a checkpoint of the replica {row[0]}: it is closed there, by its review, "
            "and here by the next `tripod pull`"
        )


def take_event(team: Team, act: Act, event: int, name: str) -> bool:
    """Take a pending event by its ``full_event_name``; False: another program took it before us."""
    return not _taken_by_others(team, act, team.files.moves.take([name]), {name: event})


def _taken_by_others(
    team: Team, act: Act, names: list[str], events: Mapping[str, int]
) -> list[str]:
    """Of events that are not in the queue, those that were taken from it.

    The others are yet to be written: by a writer that died, or by this act.
    """
    if not names:
        return []
    shown = act.transaction.cursors().files
    queue, done = BUS.folder, f"{BUS.folder}/processed"
    return [
        name
        for name in names
        if team.disk.stands(f"{done}/{name}")
        or (events[name] < shown and f"{queue}/{name}" not in act.rewrite)
    ]


def find_event_for(team: Team, act: Act, name: str) -> int:
    """The entry of a pending event, within an act that did not look at the whole queue."""
    try:
        return find_pending_event(team, name)
    except NotFoundError:
        if not team.files.uncounted:
            raise
        take_in(act)  # another program may have put it there in the tick of our last write
        return find_pending_event(team, name)


def claim_on_event(team: Team, event: int, now_us: int = -1) -> Claim | None:
    """The newest claim on the event of an entry; None if its time is over at ``now_us``."""
    row = team.store.db.execute(
        "SELECT name, holder, until_us, attempt FROM claims WHERE event = ? AND until_us > ?",
        (event, now_us),
    ).fetchone()
    return None if row is None else Claim(*row)


def ack_all(team: Team, handle: str | None = None, *, actor: str = NOBODY) -> int:
    """Acknowledge all pending events (of the source ``handle``), claimed or not; give how many.

    Raises BadArgumentError (no source can have this name; it would not mean all).
    """
    _check_source(handle)
    with team.act(joins=True, by=actor) as act:
        where, values = event_queue(team)
        rows = act.transaction.tables.execute(
            f"SELECT name, seq, {IS_OURS} FROM events"
            f" WHERE acked IS NULL{where} AND source = coalesce(?, source)",
            (*values, handle),
        ).fetchall()
        events: dict[str, int] = {name: seq for name, seq, is_ours in rows if is_ours}
        if len(events) < len(rows):
            act.warn(
                f"{len(rows) - len(events)} checkpoint events of peers stay pending: each is closed"
                " in its own replica, by its review"
            )
        lost = _taken_by_others(team, act, team.files.moves.take(list(events)), events)
        if lost:  # in the moment since we looked: these are another program's
            from tripod.projections.bus.intake import moved_events

            act.append(moved_events(lost))
        count = len(events) - len(lost)
        if count:
            queue = team.queue.rstrip("/") or None
            act.append([ACKED_ALL.draft({"count": count, "source": handle, "queue": queue}, actor)])
        return count


def prune(team: Team, max_bytes: int | None = None, *, actor: str = NOBODY) -> PruneResult:
    """Delete the oldest processed events' files until at most ``max_bytes`` are left.

    The entries stay: what is pruned is the file. None takes the configuration's limit. Raises
    BadArgumentError (the limit is not a positive number).
    """
    if max_bytes is not None and max_bytes <= 0:
        raise BadArgumentError(f"max-bytes: {max_bytes} is no positive number of bytes")
    with team.act(joins=True, by=actor) as act:
        limit = settings_of_queue(team)["retention_max_bytes"] if max_bytes is None else max_bytes
        db = act.transaction.tables
        folder = f"{BUS.folder}/processed/{team.queue}".rstrip("/")
        done = team.disk.stat(folder) is not None
        where, values = event_queue(team)
        left: int = db.execute(
            f"SELECT coalesce(sum(size), 0) FROM events WHERE acked IS NOT NULL{where}", values
        ).fetchone()[0]
        sizes: dict[str, int] = {}
        sql = f"SELECT name, size FROM events WHERE acked IS NOT NULL{where} ORDER BY us, name"
        rows = db.execute(sql, values)
        while left > limit:
            name, size = rows.fetchone()
            sizes[name] = size
            left -= size
        rows.close()
        for name in sizes:  # an edited file is not a copy of ours: its bytes are kept first
            path = f"{BUS.folder}/processed/{name}"
            want = BUS.render(act.source, path)
            have = digest_of(act.disk, path)
            if not have:  # who acknowledged it died before it was moved
                path = f"{BUS.folder}/{name}"
                have = digest_of(act.disk, path)
            if want is not None and have not in ("", sha256(want.data).hexdigest()):
                act.displace(path, "it differed from the ledger when it was pruned")
        from tripod.projections import pieces_of_names

        for names in pieces_of_names(list(sizes)):
            size = sum(sizes[name] for name in names)
            act.append([PRUNED.draft({"names": names, "bytes": size}, actor)])
        return PruneResult(len(sizes), left, limit, done)


def status(team: Team, now_us: int) -> Status:
    """Count the queue; an event is stale by the clock ``now_us`` (µs since 1970)."""
    db = team.store.db
    where, values = event_queue(team)
    rows = db.execute(
        f"SELECT priority, count(*), min(us) FROM events WHERE acked IS NULL{where} GROUP BY 1",
        values,
    )
    pending = dict.fromkeys(PRIORITIES, 0)
    oldest: int | None = None
    for priority, count, us in rows:
        pending[PRIORITIES[priority]] = count
        oldest = us if oldest is None else min(oldest, us)
    processed, size = db.execute(
        f"SELECT count(*), coalesce(sum(size), 0) FROM events WHERE acked IS NOT NULL{where}",
        values,
    ).fetchone()
    timeout = settings_of_queue(team)["ack_timeout"]
    stale = 0
    if timeout:
        stale = db.execute(
            f"SELECT count(*) FROM events WHERE acked IS NULL AND us < ?{where}",
            (max(0, now_us - timeout * 1_000_000), *values),
        ).fetchone()[0]
    return Status(pending, oldest, processed, size, timeout, stale)
