"""Reading the chats: messages, unread ones, search, participants, events that address a handle.

Nothing here changes anything: ``tripod.chat.writer.mark_read`` notes what was shown, after it was
shown. Source: spec nbs-compat C2, C10.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

from tripod.chat.writer import ChatMessage, refuse_argument, span_of_channel
from tripod.projections import CHAT
from tripod.projections.chat.format import valid_chat_handle
from tripod.projections.chat.tables import Span
from tripod.projections.chat.tables import unread as unread_rows
from tripod.team.team import Team

Row = tuple[int, int, int]
"""Number, entry and time of a message."""

_SHOWN = (
    "FROM lines WHERE channel = ? AND number >= ? AND number < ?"
    " AND handle IS NOT NULL AND gone IS NULL"
)


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

    def cut(self, rows: list[Row]) -> list[Row]:
        """The messages that are in the window."""
        first = -inf if self.after is None else self.after
        stop = inf if self.before is None else self.before
        rows = [row for row in rows if first <= row[2] <= stop]
        rows = rows[: max(0, len(rows) - self.offset)]
        return rows if self.last is None else rows[max(0, len(rows) - self.last) :]


class Addressed(NamedTuple):
    """A pending event that addresses a handle: its file, type, priority, payload and entry."""

    event: str
    type: str
    priority: str
    payload: str
    seq: int


def messages(
    team: Team,
    name: str,
    *,
    last: int | None = None,
    since: str | None = None,
    window: Window | None = None,
) -> list[ChatMessage]:
    """Messages of a chat's file (of a channel, or an archive), oldest first.

    ``last`` gives the newest so many, ``window`` chooses more closely and replaces it. ``since``:
    only those after this handle's newest message, also where that stands in an archive by now; all
    of the file, if it never spoke. Raises NotFoundError (no such chat).
    """
    shown = span_of_channel(team, name)
    window = window or Window(last)
    db = team.store.db
    if since is not None:
        newest = db.execute(
            "SELECT max(number) FROM lines WHERE channel = ? AND handle = ? AND number < ?"
            " AND gone IS NULL",
            (shown.channel, since, shown.stop),
        ).fetchone()[0]
        if newest is not None:
            shown = shown._replace(first=newest + 1)
    if window.last is not None and window.after is None and window.before is None:
        sql = f"SELECT number, seq, time {_SHOWN} ORDER BY number DESC LIMIT ? OFFSET ?"
        newest_first = db.execute(sql, (*shown, window.last, window.offset)).fetchall()
        return _messages(team, newest_first[::-1])
    return _messages(team, window.cut(_rows(team, shown)))


def _rows(team: Team, shown: Span) -> list[Row]:
    sql = f"SELECT number, seq, time {_SHOWN} ORDER BY number"
    return team.store.db.execute(sql, shown).fetchall()


def _messages(team: Team, rows: Sequence[Row]) -> list[ChatMessage]:
    bodies = team.source.each_body([row[1] for row in rows])
    return [_message(team, row, body) for row, body in zip(rows, bodies, strict=True)]


def _message(team: Team, row: Row, body: dict[str, Any]) -> ChatMessage:
    text = team.source.content(body["text"]).decode()
    return ChatMessage(row[0], row[1], body["handle"], body["time"], text)


def unread(team: Team, name: str, handle: str, window: Window | None = None) -> list[ChatMessage]:
    """Messages of a channel that ``handle`` has not read, oldest first, archived ones too.

    Its own are left out. They stay unread until ``mark_read`` notes that they were shown. Raises
    BadArgumentError (the handle breaks its rule, or the channel's name does), NotFoundError (there
    is no such channel).
    """
    refuse_argument(valid_chat_handle(handle))
    channel = span_of_channel(team, name).channel
    path = f"{CHAT.folder}/{channel}.chat"
    stat = team.disk.stat(f"{path}.cursors")
    if stat is not None and not team.is_read_only:
        from tripod.projections import load

        known = load(team.store.db).get(f"{path}.cursors")
        if known is None or known.stat != stat:  # the original tool moved a position
            from tripod.team.intake import take_positions

            with team.act(locks=[path], joins=True) as act:
                take_positions(act, channel)
    rows = list(unread_rows(team.source, channel, handle))
    if window is None or window == Window():
        return _messages(team, [(*row, 0) for row in rows])
    wanted = dict(rows)
    every = Span(channel, min(wanted, default=0), max(wanted, default=-1) + 1)
    return _messages(team, window.cut([row for row in _rows(team, every) if row[0] in wanted]))


def search(
    team: Team, name: str, pattern: str, *, handle: str | None = None, archives: bool = False
) -> Iterator[ChatMessage]:
    """Messages that hold ``pattern`` as text, oldest first: ``hits`` without their places.

    Upper and lower case of ASCII letters are alike. ``handle``: only messages of this sender;
    ``archives``: also those that were split off. Raises NotFoundError (no such chat).
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

    ``archives``: also those that were split off. Raises NotFoundError (no such chat).
    """
    shown = span_of_channel(team, name)
    wanted = _lower(pattern)
    files: list[tuple[str | None, Span]] = []
    if archives:
        archived = team.store.db.execute(
            "SELECT archive, channel, first, stop FROM archives WHERE channel = ? AND stop <= ?"
            " ORDER BY first",
            (shown.channel, shown.first),
        )
        files = [(stem, Span(*rest)) for stem, *rest in archived.fetchall()]
    for stem, part in [*files, (None, shown)]:
        rows = _rows(team, part)
        kept = {row[0] for row in (window or Window()).cut(rows)}
        bodies = team.source.each_body([row[1] for row in rows])
        for place, (row, body) in enumerate(zip(rows, bodies, strict=True)):
            if row[0] in kept and handle in (None, body["handle"]):
                message = _message(team, row, body)
                if wanted in _lower(message.text):
                    yield Hit(message, place, stem)


def _lower(text: str) -> bytes:
    # bytes.lower is ASCII alone, as in the original; an argument may hold bytes that are no text.
    return text.encode("utf-8", "surrogatepass").lower()


def count(team: Team, name: str) -> int:
    """How many messages a chat's file shows (NotFoundError: there is no such chat)."""
    shown = span_of_channel(team, name)
    return int(team.store.db.execute(f"SELECT count(*) {_SHOWN}", shown).fetchone()[0])


def participants(team: Team, name: str) -> list[tuple[str, int]]:
    """Handles in the order in which they first spoke, and how many messages of each a file holds.

    A split takes messages to an archive: the counts are those of the file, as the document of
    ``nbs-chat`` has it, and not the ones in its header, which count every message ever sent. Raises
    NotFoundError (there is no such chat).
    """
    return team.store.db.execute(
        "SELECT l.handle, count(*) FROM lines l LEFT JOIN participants p"
        " ON p.channel = l.channel AND p.handle = l.handle WHERE l.channel = ?"
        " AND l.number >= ? AND l.number < ? AND l.handle IS NOT NULL AND l.gone IS NULL"
        " GROUP BY l.handle ORDER BY p.place IS NULL, p.place, min(l.number)",
        span_of_channel(team, name),
    ).fetchall()


def poll(
    team: Team, name: str, handle: str, rest: Callable[[], float], wait: Callable[[float], None]
) -> list[ChatMessage]:
    """Wait for messages that others than ``handle`` send from now on; give all that came, if any.

    ``rest`` gives how many seconds are left. ``wait`` waits until something may have happened, for
    at most so many seconds. Raises BadArgumentError (not a handle), NotFoundError (no channel).
    """
    refuse_argument(valid_chat_handle(handle))
    team.refresh()
    later = span_of_channel(team, name)
    later = Span(later.channel, later.stop, 2**62)
    while (left := rest()) > 0:
        wait(left)
        team.refresh()
        found = [one for one in _messages(team, _rows(team, later)) if one.handle != handle]
        if found:
            return found
    return []


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
    texts = (team.source.content(body["payload"]).decode() for body in bodies)
    return [
        Addressed(name, type_, PRIORITIES[rank], text, seq)
        for (seq, name, type_, rank), text in zip(rows, texts, strict=True)
    ]
