"""Reading the chats: channels and archives, messages, unread ones, search, participants, mentions.

Nothing here changes anything: ``tripod.chat.keep.mark_read`` records what was shown, after it was
shown. Source: spec nbs-compat C2, C10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.projections import CHAT, content_bytes
from tripod.projections.chat import format as format_
from tripod.projections.chat.tables import Span, span_of
from tripod.projections.chat.tables import unread as unread_rows
from tripod.team.act import Act
from tripod.team.team import Team

_NAMES = "SELECT channel FROM channels WHERE closed = 0 ORDER BY 1"


def channel_name(name: str, fronts: Sequence[str] = ()) -> str:
    """The channel that an argument names, with or without ``.chat``.

    ``fronts`` are the folders that were added, of which it may be: ``<name>/``.

    Raises:
        BadArgumentError: it cannot be a channel.
    """
    channel = name.removesuffix(".chat")
    front = channel[: channel.rfind("/") + 1]
    problem = format_.valid_channel(channel[len(front) :] if front in fronts else channel)
    if problem is not None:
        raise BadArgumentError(problem)
    return channel


def missing(team: Team, channel: str) -> NotFoundError:
    """There is no such channel; names those that there are."""
    known = [name for (name,) in team.store.db.execute(_NAMES)]
    have = f"there are: {', '.join(known)}" if known else "no chat exists yet"
    return NotFoundError(f"no chat {channel}; {have} (`tripod chat create {channel}` makes it)")


def span(team: Team, name: str) -> Span:
    """What a file shows: the live one of a channel, or an archive.

    Raises:
        BadArgumentError: it can be neither.
        NotFoundError: there is no such file.
    """
    stem = name.removesuffix(".chat")
    found = span_of(team.store.db, stem)
    if found is None:
        if format_.parse_archive_name(stem) is None:
            channel_name(stem, team.disk.places.chats())
        raise missing(team, stem)
    return found


def live_of(act: Act, channel: str) -> Span | None:
    """What a channel's live file shows, in the act; None where there is no such channel."""
    row = act.transaction.tables.execute(
        "SELECT live_from, lines FROM channels WHERE channel = ? AND closed = 0", (channel,)
    ).fetchone()
    return None if row is None else Span(channel, *row)


def _check_folder(team: Team, stem: str) -> None:
    """Refuse to write into an added folder that is not there."""
    front = stem[: stem.rfind("/")] if "/" in stem else ""
    if f"{CHAT.folder}/{front}" in team.disk.places.missing():
        raise RefusedError(
            f"{team.disk.full(f'{CHAT.folder}/{front}')} is no folder that can be read, and {stem} "
            "is kept there: put it back; or, if it is lost, `tripod rebuild` writes it anew"
        )


def writable(team: Team, name: str) -> tuple[str, str]:
    """The channel and its path, for an act on it; leaves nothing behind if it does not exist.

    Raises:
        BadArgumentError: it cannot be a channel.
        NotFoundError: neither the ledger nor the folder has it.
        RefusedError: it is an archive.
    """
    stem = name.removesuffix(".chat")
    _check_folder(team, stem)
    db = team.store.db
    sql = "SELECT 1 FROM channels WHERE channel = ? AND closed = 0"
    if db.execute(sql, (stem,)).fetchone() is None:
        row = db.execute("SELECT channel FROM archives WHERE archive = ?", (stem,)).fetchone()
        if row is not None:
            raise RefusedError(f"{stem} is an archive and never changes; the channel is {row[0]}")
        stem = channel_name(stem, team.disk.places.chats())
        if not team.disk.is_file(f"{CHAT.folder}/{stem}.chat"):
            raise missing(team, stem)
    return stem, f"{CHAT.folder}/{stem}.chat"


# Chat reading -----------------------------------------------------------------------------------


Row = tuple[int, int, int]
"""Number, entry and time of a message."""


class ChatMessage(NamedTuple):
    """A message as read.

    ``number`` counts from 0 since the channel began, ``seq`` is the number of its entry, and
    ``time`` is in seconds since 1970.
    """

    number: int
    seq: int
    handle: str
    time: int
    text: str


class Hit(NamedTuple):
    """A message, its place among those of its file (from 0), and the archive, if it is in one."""

    message: ChatMessage
    place: int
    archive: str | None


class Window(NamedTuple):
    """Which of the messages.

    In this order: those of times from ``after`` to ``before``, without the newest ``offset`` of
    them, and of the rest the newest ``last``.
    """

    last: int | None = None
    after: int | None = None
    before: int | None = None
    offset: int = 0


class Addressed(NamedTuple):
    """A pending event that addresses somebody: its file, its type, and what it says."""

    event: str
    type: str
    priority: str
    payload: str


def messages(
    team: Team,
    name: str,
    *,
    last: int | None = None,
    since: str | None = None,
    window: Window | None = None,
) -> list[ChatMessage]:
    """Messages of a chat's file, oldest first.

    Args:
        team: the team whose chat it is.
        name: the channel, or an archive.
        last: only the newest so many.
        window: which of them, told more closely.
        since: only those after this handle's newest message, also where that stands in an archive
            by now; all of the file, if it never spoke.

    Raises:
        NotFoundError: there is no such chat.
    """
    shown = span(team, name)
    if since is not None:
        newest = team.store.db.execute(
            "SELECT max(number) FROM lines WHERE channel = ? AND handle = ? AND number < ?"
            " AND gone IS NULL",
            (shown.channel, since, shown.stop),
        ).fetchone()[0]
        if newest is not None:
            shown = shown._replace(first=newest + 1)
    return _messages(team, _rows(team, shown, window or Window(last)))


_ROWS = (
    "SELECT number, seq, time FROM lines WHERE channel = ? AND number >= ? AND number < ?"
    " AND handle IS NOT NULL AND gone IS NULL"
)


def _rows(team: Team, shown: Span, window: Window) -> list[Row]:
    db = team.store.db
    if window.last is not None and window.after is None and window.before is None:
        sql = f"{_ROWS} ORDER BY number DESC LIMIT ? OFFSET ?"
        return db.execute(sql, (*shown, window.last, window.offset)).fetchall()[::-1]
    return _cut(db.execute(f"{_ROWS} ORDER BY number", shown).fetchall(), window)


def _cut(rows: list[Row], window: Window) -> list[Row]:
    if window.after is not None:
        rows = [row for row in rows if row[2] >= (window.after or 0)]
    if window.before is not None:
        rows = [row for row in rows if row[2] <= (window.before or 0)]
    rows = rows[: max(0, len(rows) - window.offset)]
    return rows if window.last is None else rows[max(0, len(rows) - window.last) :]


def _messages(team: Team, rows: Sequence[tuple[int, int, Any]]) -> list[ChatMessage]:
    bodies = team.source.each_body([row[1] for row in rows])
    return [_message(team, row, body) for row, body in zip(rows, bodies, strict=True)]


def _message(team: Team, row: tuple[int, int, Any], body: dict[str, Any]) -> ChatMessage:
    text = content_bytes(team.source, body["text"]).decode()
    return ChatMessage(row[0], row[1], body["handle"], body["time"], text)


def _judge_handle(handle: str) -> None:
    problem = format_.valid_handle(handle)
    if problem is not None:
        raise BadArgumentError(problem)


def unread(team: Team, name: str, handle: str, window: Window | None = None) -> list[ChatMessage]:
    """Messages of a channel that ``handle`` has not read, oldest first, archived ones too.

    Its own messages are left out. They stay unread until ``mark_read`` is told of them.

    Raises:
        BadArgumentError: the handle breaks its rule, or the channel's name does.
        NotFoundError: there is no such channel.
    """
    _judge_handle(handle)
    channel = span(team, name).channel
    _look_at_positions(team, channel)
    rows = list(unread_rows(team.source, channel, handle))
    window = window or Window()
    if window == Window():
        return _messages(team, [(*row, 0) for row in rows])
    wanted = dict(rows)
    every = Span(channel, rows[0][0] if rows else 0, rows[-1][0] + 1 if rows else 0)
    listed = [row for row in _rows(team, every, Window()) if row[0] in wanted]
    return _messages(team, _cut(listed, window))


def _look_at_positions(team: Team, channel: str) -> None:
    """Take in what the original tool moved, if its file is there and is not as we left it."""
    from tripod.projections import load

    path = f"{CHAT.folder}/{channel}.chat.cursors"
    stat = team.disk.stat(path)
    if stat is None:
        return
    known = load(team.store.db).get(path)
    if known is None or known.stat != stat:
        from tripod.team.positions import take_positions

        with team.act(locks=[f"{CHAT.folder}/{channel}.chat"], joins=True) as act:
            take_positions(act, channel)


def search(
    team: Team, name: str, pattern: str, *, handle: str | None = None, archives: bool = False
) -> Iterator[ChatMessage]:
    """Messages that hold ``pattern`` as text, oldest first: ``hits`` without their places.

    Args:
        team: the team whose chat it is.
        name: the channel, or an archive.
        pattern: the text; upper and lower case of ASCII letters are alike.
        handle: only messages of this sender.
        archives: also messages that were split off into archives.

    Raises:
        NotFoundError: there is no such chat.
    """
    for hit in hits(team, name, pattern, handle=handle, archives=archives):
        yield hit.message


def hits(
    team: Team,
    name: str,
    pattern: str,
    *,
    handle: str | None = None,
    window: Window | None = None,
    archives: bool = False,
) -> Iterator[Hit]:
    """Messages that hold ``pattern`` as text, upper and lower case alike (ASCII), oldest first.

    ``archives``: also those that were split off.

    Raises:
        NotFoundError: there is no such chat.
    """
    shown = span(team, name)
    wanted = _lower(pattern)
    files: list[tuple[str | None, Span]] = [(None, shown)]
    if archives:
        rows = team.store.db.execute(
            "SELECT archive, channel, first, stop FROM archives WHERE channel = ? AND stop <= ?"
            " ORDER BY first",
            (shown.channel, shown.first),
        ).fetchall()
        files = [*((stem, Span(*rest)) for stem, *rest in rows), *files]
    window = window or Window()
    for stem, part in files:
        rows = _rows(team, part, Window())
        kept = {row[0] for row in _cut(rows, window)}
        bodies = team.source.each_body([row[1] for row in rows])
        for place, (row, body) in enumerate(zip(rows, bodies, strict=True)):
            if row[0] in kept and handle in (None, body["handle"]):
                message = _message(team, row, body)
                if wanted in _lower(message.text):
                    yield Hit(message, place, stem)


def _lower(text: str) -> bytes:
    # bytes.lower is ASCII alone, as in the original; an argument may hold bytes that are no text.
    return text.encode("utf-8", "surrogatepass").lower()


def indexed(
    team: Team,
    name: str,
    window: Window | None = None,
    *,
    first: int = 0,
    stop: int | None = None,
    handles: Sequence[str] | None = None,
    text: str | None = None,
) -> list[ChatMessage]:
    """Messages of a chat's file for an export, oldest first.

    Args:
        team: the team whose chat it is.
        name: the channel, or an archive.
        window: its ``last`` is taken first, of all messages of the file; its times like the others.
        first: the index in the file of the first, from 0.
        stop: the index in the file after the last; None: all.
        handles: only of these.
        text: only those that hold it, upper and lower case alike (ASCII).

    Raises:
        NotFoundError: there is no such chat.
    """
    window = window or Window()
    rows = _rows(team, span(team, name), Window())
    newest = 0 if window.last is None else max(0, len(rows) - window.last)
    rows = rows[max(first, newest) : stop]
    wanted = _lower(text or "")
    return [
        message
        for message in _messages(team, _cut(rows, window._replace(last=None)))
        if (handles is None or message.handle in handles) and wanted in _lower(message.text)
    ]


def count(team: Team, name: str) -> int:
    """How many messages a chat's file shows.

    Raises:
        NotFoundError: there is no such chat.
    """
    shown = span(team, name)
    row = team.store.db.execute(_ROWS.replace("number, seq, time", "count(*)"), shown).fetchone()
    return int(row[0])


def participants(team: Team, name: str) -> list[tuple[str, int]]:
    """Handles in the order in which they first spoke, and how many messages of each a file holds.

    A split takes messages to an archive: the counts are those of the file, as the document of
    ``nbs-chat`` has it, and not the ones in its header, which count every message ever sent.

    Raises:
        NotFoundError: there is no such chat.
    """
    shown = span(team, name)
    return team.store.db.execute(
        "SELECT l.handle, count(*) FROM lines l LEFT JOIN participants p"
        " ON p.channel = l.channel AND p.handle = l.handle WHERE l.channel = ?"
        " AND l.number >= ? AND l.number < ? AND l.handle IS NOT NULL AND l.gone IS NULL"
        " GROUP BY l.handle ORDER BY p.place IS NULL, p.place, min(l.number)",
        shown,
    ).fetchall()


def poll(
    team: Team, name: str, handle: str, rest: Callable[[], float], wait: Callable[[float], None]
) -> list[ChatMessage]:
    """Wait for messages that others send from now on; give all that came, or none in time.

    Args:
        team: the team whose chat it is.
        name: the channel.
        handle: who waits; its own messages are not waited for.
        rest: gives how many seconds are left.
        wait: waits until something may have happened, for at most so many seconds.

    Raises:
        BadArgumentError: the handle breaks its rule.
        NotFoundError: there is no such channel.
    """
    _judge_handle(handle)
    team.refresh()
    channel, _, start = span(team, name)
    while True:
        left = rest()
        if left <= 0:
            return []
        wait(left)
        team.refresh()
        rows = _rows(team, Span(channel, start, 2**62), Window())
        found = [message for message in _messages(team, rows) if message.handle != handle]
        if found:
            return found


def addressed(team: Team, handle: str) -> list[Addressed]:
    """Pending events that address ``handle``, most urgent first, then oldest.

    An event addresses the handles that its entry names, not every handle in its text.
    """
    from tripod.projections.bus.format import PRIORITIES

    rows = team.store.db.execute(
        "SELECT e.seq, e.name, e.type, e.priority FROM addressed a JOIN events e ON e.seq = a.seq"
        " WHERE a.handle = ? AND e.acked IS NULL ORDER BY e.priority, e.us, e.name",
        (handle,),
    ).fetchall()
    bodies = team.source.each_body([row[0] for row in rows])
    return [
        Addressed(
            name, type_, PRIORITIES[rank], content_bytes(team.source, body["payload"]).decode()
        )
        for (_, name, type_, rank), body in zip(rows, bodies, strict=True)
    ]
