"""Acts on what a channel shows and who has read it: split off, archive, delete, mark as read.

Source: spec nbs-compat C2; design section 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tripod.chat.reader import count, live_of, missing, span, writable
from tripod.errors import BadArgumentError
from tripod.ledger.kinds.chat import DELETED, READ, ROTATED
from tripod.projections import CHAT
from tripod.projections.chat import format as format_
from tripod.projections.chat.tables import ReadPosition, Span, count_lines, position
from tripod.team.act import Act
from tripod.team.positions import show_positions, take_positions
from tripod.team.team import Team

ROTATE_ABOVE = 2_000  # lines in the live file, as the original tool does it
ROTATE_COUNT = 1_000
MAX_BEYOND = 500  # ranges; of a reader who leaves more gaps, the oldest count as unread again
MAX_REMOVED = 300  # handles in one entry on a deletion


class Deletion(NamedTuple):
    """What a deletion takes out of a file, and how many messages it leaves there."""

    deleted: int
    kept: int


# Splitting off ---------------------------------------------------------------------------------


def rotate(act: Act, channel: str, time: int) -> bool:
    """Split the oldest lines off when the live file holds more than the original tools bear."""
    live = live_of(act, channel)
    if live is None or live.stop - live.first <= ROTATE_ABOVE:
        return False
    if count_lines(act.transaction.tables, live) <= ROTATE_ABOVE:
        return False
    _split_off(act, live, ROTATE_COUNT, time)
    return True


def _split_off(act: Act, live: Span, number: int, time: int) -> str:
    """Move the first ``number`` lines of a live file into an archive; give its name."""
    db = act.transaction.tables
    stop, size = db.execute(
        "SELECT max(number) + 1, sum(size) FROM (SELECT number, size FROM lines"
        " WHERE channel = ? AND number >= ? AND gone IS NULL ORDER BY number LIMIT ?)",
        (live.channel, live.first, number),
    ).fetchone()
    stamp = time
    while True:
        name = format_.archive_name(live.channel, stamp)
        if not db.execute("SELECT 1 FROM archives WHERE archive = ?", (name,)).fetchone():
            break
        stamp += 1
    act.append(
        [
            ROTATED.draft(
                {
                    "channel": live.channel,
                    "count": number,
                    "size": size,
                    "archive": name,
                    "header": format_.archive_header(format_.format_time(time), size),
                    "stop": None if stop == live.first + number else stop,
                }
            )
        ]
    )
    return name


def archive(team: Team, name: str, keep: int = ROTATE_COUNT) -> tuple[int, str]:
    """Split all but the newest ``keep`` lines off now; give how many, and the archive's path.

    Raises:
        BadArgumentError: it cannot be a channel.
        NotFoundError: there is no such channel.
    """
    channel, path = writable(team, name)
    with team.act(locks=[path], joins=True) as act:
        live = live_of(act, channel)
        if live is None:
            raise missing(team, channel)
        take_positions(act, channel)
        number = count_lines(act.transaction.tables, live) - keep
        if number <= 0:
            return 0, ""
        stem = _split_off(act, live, number, act.now_us // 1_000_000)
        show_positions(act, channel)
    return number, team.disk.full(f"{CHAT.folder}/{stem}.chat")


# Deleting --------------------------------------------------------------------------------------


def delete(
    team: Team, name: str, after: int, *, actor: str = "unknown", dry_run: bool = False
) -> Deletion:
    """Have the file forget all from its first message of the second ``after`` or later on.

    ``after`` is in seconds since 1970.

    The ledger forgets nothing, and says who asked for it. ``dry_run`` only counts.

    Raises:
        BadArgumentError: it cannot be a channel.
        NotFoundError: there is no such channel.
    """
    channel, path = writable(team, name)
    if dry_run:
        team.refresh()
        return _deletion(team, span(team, channel), after)
    with team.act(locks=[path], joins=True, by=actor) as act:
        live = live_of(act, channel)
        if live is None:
            raise missing(team, channel)
        take_positions(act, channel)
        outcome = _deletion(team, live, after)
        if outcome.deleted:
            _forget(act, live, after, actor)
            show_positions(act, channel)
    return outcome


_FIRST = (
    "SELECT min(number) FROM lines WHERE channel = ? AND number >= ? AND number < ?"
    " AND gone IS NULL AND handle IS NOT NULL AND time >= ?"
)


def _deletion(team: Team, live: Span, after: int) -> Deletion:
    db = team.store.db
    first = db.execute(_FIRST, (*live, after)).fetchone()[0]
    whole = count(team, live.channel)
    if first is None:
        return Deletion(0, whole)
    kept: int = db.execute(
        "SELECT count(*) FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND gone IS NULL AND handle IS NOT NULL",
        (live.channel, live.first, first),
    ).fetchone()[0]
    return Deletion(whole - kept, kept)


def _forget(act: Act, live: Span, after: int, actor: str) -> None:
    """The entries of a deletion: the newest lines first, so many as one entry can tell of."""
    db = act.transaction.tables
    start = db.execute(_FIRST, (*live, after)).fetchone()[0]
    rows = db.execute(
        "SELECT number, handle, size FROM lines WHERE channel = ? AND number >= ?"
        " AND gone IS NULL ORDER BY number DESC",
        (live.channel, start),
    ).fetchall()
    while rows:
        removed: dict[str, int] = {}
        taken = size = 0
        first = start
        for number, handle, length in rows:
            if handle is not None:
                if len(removed) == MAX_REMOVED and handle not in removed:
                    break
                removed[handle] = removed.get(handle, 0) + 1
            first, taken, size = number, taken + 1, size + length
        rows = rows[taken:]
        last = db.execute(
            "SELECT handle, time FROM lines WHERE channel = ? AND number < ? AND gone IS NULL"
            " AND handle IS NOT NULL ORDER BY number DESC LIMIT 1",
            (live.channel, first),
        ).fetchone()
        writer, time = last or ("system", 0)
        draft = DELETED.draft(
            {
                "channel": live.channel,
                "first": first,
                "count": taken,
                "size": size,
                "after": after,
                "last_writer": writer,
                "last_time": time,
                "removed": [{"handle": one, "count": number} for one, number in removed.items()],
            },
            actor,
        )
        act.append([draft])


# Reading positions -----------------------------------------------------------------------------


def mark_read(team: Team, name: str, handle: str, shown: Iterable[int]) -> None:
    """Note that ``handle`` was shown the messages of these numbers, and no others.

    ``name`` may be that of an archive: it means the channel that it was split off.

    Raises:
        BadArgumentError: the handle breaks its rule.
        NotFoundError: there is no such channel.
    """
    numbers = sorted(set(shown))
    if numbers:
        _move(team, span(team, name).channel, handle, numbers)


def set_position(team: Team, name: str, handle: str, index: int | None) -> None:
    """Say that ``handle`` has read the live file up to the message of that index, and no more.

    An index after the last message means all of them.

    Raises:
        BadArgumentError: the handle breaks its rule.
        NotFoundError: there is no such channel.
    """
    _move(team, name, handle, index)


def _move(team: Team, name: str, handle: str, to: list[int] | int | None) -> None:
    problem = format_.valid_handle(handle)
    if problem is not None:
        raise BadArgumentError(problem)
    channel, path = writable(team, name)
    with team.act(locks=[path], joins=True, by=handle) as act:
        live = live_of(act, channel)
        if live is None:
            raise missing(team, channel)
        take_positions(act, channel)
        at = _read_more(act, live, handle, to) if isinstance(to, list) else _read_to(act, live, to)
        act.append(
            [
                READ.draft(
                    {
                        "channel": channel,
                        "handle": handle,
                        "upto": at.upto,
                        "beyond": [{"first": first, "stop": stop} for first, stop in at.beyond],
                        "lines": at.lines,
                    }
                )
            ]
        )
        show_positions(act, channel, [handle])


def _read_to(act: Act, live: Span, index: int | None) -> ReadPosition:
    upto = live.first
    if index is not None:
        row = act.transaction.tables.execute(
            "SELECT number FROM lines WHERE channel = ? AND number >= ? AND number < ?"
            " AND gone IS NULL AND handle IS NOT NULL ORDER BY number LIMIT 1 OFFSET ?",
            (*live, index),
        ).fetchone()
        upto = live.stop if row is None else row[0] + 1
    return ReadPosition(upto, (), live.stop)


def _read_more(act: Act, live: Span, handle: str, shown: list[int]) -> ReadPosition:
    """What was read, and these: as one number where nothing unread lies below, and ranges."""
    was = position(act.source, live.channel, handle) or ReadPosition()
    ranges = [tuple(part) for part in was.beyond] + [(number, number + 1) for number in shown]
    rows = act.transaction.tables.execute(
        "SELECT number FROM lines WHERE channel = ? AND number >= ?"
        " AND (handle IS NULL OR gone IS NOT NULL OR (handle = ? AND number >= ?))",
        (live.channel, was.upto, handle, was.lines),
    )
    ranges += [(number, number + 1) for (number,) in rows.fetchall()]
    upto = was.upto
    beyond: list[tuple[int, int]] = []
    for first, stop in sorted(ranges):
        if first <= upto:
            upto = max(upto, stop)
        elif beyond and first <= beyond[-1][1]:
            beyond[-1] = (beyond[-1][0], max(stop, beyond[-1][1]))
        else:
            beyond.append((first, stop))
    return ReadPosition(upto, beyond[-MAX_BEYOND:], live.stop)
