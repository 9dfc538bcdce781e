"""Acts on the chats: create, send with its events, read, search.

Source: spec nbs-compat C1 to C3; design section 7. A message and its events are one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ledger import drafts
from ledger.entry import Draft
from ledger.ids import fresh_ids
from projections import CHAT
from projections.formats import chat as format_
from projections.projection import content_bytes
from tripod.act import Act
from tripod.drafting import MAX_PAYLOAD, draft_event
from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.team import Team

__all__ = ["Message", "channel_name", "create", "messages", "participants", "search", "send"]

ROTATE_ABOVE = 2_000  # lines in the live file, as the original tool does it
ROTATE_COUNT = 1_000


class Message(NamedTuple):
    """A message as read: ``number`` counts from 0 since the channel began, ``seq`` is its entry."""

    number: int
    seq: int
    handle: str
    time: int
    text: str


def channel_name(name: str) -> str:
    """The channel that an argument names, with or without ``.chat``.

    Raises:
        BadArgumentError: it cannot be a channel.
    """
    channel = name.removesuffix(".chat")
    problem = format_.valid_channel(channel)
    if problem is not None:
        raise BadArgumentError(problem)
    return channel


def create(team: Team, name: str, *, actor: str = "unknown") -> str:
    """Begin a channel; give the path of its file.

    Raises:
        BadArgumentError: not a channel's name.
        RefusedError: it is there already.
    """
    channel = channel_name(name)
    path = f"{CHAT.folder}/{channel}.chat"
    with team.act(locks=[path], by=actor) as act:
        if _exists(act, channel):
            message = f"chat {channel} exists already"
            raise RefusedError(message)
        if os.path.lexists(team.disk.full(path)):
            message = f"{path} is there, and is no chat file: move it away first"
            raise RefusedError(message)
        act.append([drafts.channel_created(channel, actor)])
    return team.disk.full(path)


def _exists(act: Act, channel: str) -> bool:
    row = act.transaction.tables.execute(
        "SELECT 1 FROM channels WHERE channel = ?", (channel,)
    ).fetchone()
    return row is not None


def _missing(team: Team, channel: str) -> NotFoundError:
    known = [name for (name,) in team.store.db.execute("SELECT channel FROM channels ORDER BY 1")]
    have = f"there are: {', '.join(known)}" if known else "there is none yet"
    return NotFoundError(f"no chat {channel}; {have} (`tripod chat create {channel}` makes it)")


def send(team: Team, name: str, handle: str, text: str, *, human: bool = False) -> Message:
    """Say ``text`` as ``handle``, with the events that tell the others.

    Args:
        team: the team whose chat it is.
        name: the channel, with or without ``.chat``.
        handle: who says it, 1 to 63 bytes, one word.
        text: at most 1 MiB; an empty one is sent without events.
        human: from a person's terminal: ``human-input`` is published as well.

    Raises:
        BadArgumentError: an argument breaks its rule.
        NotFoundError: there is no such channel.
    """
    channel = channel_name(name)
    problem = format_.valid_handle(handle) or format_.valid_text(text)
    if problem is not None:
        raise BadArgumentError(problem)
    with team.act(locks=[f"{CHAT.folder}/{channel}.chat"], by=handle) as act:
        row = act.transaction.tables.execute(
            "SELECT lines FROM channels WHERE channel = ?", (channel,)
        ).fetchone()
        if row is None:
            raise _missing(team, channel)
        time = act.now_us // 1_000_000
        draft = drafts.sent(channel=channel, index=row[0], handle=handle, time=time, text=text)
        draft = draft._replace(id=fresh_ids(1)[0][0])
        events = _announced(act, draft, text, human=human) if text else ()
        seq = act.append([draft, *events])[0].seq
        _rotate(act, channel, time)
        return Message(row[0], seq, handle, time, text)


def _announced(act: Act, message: Draft, text: str, *, human: bool) -> Iterator[Draft]:
    """The events of a message. Ours are never dropped by a dedup window."""
    handle = message.actor
    said = [("nbs-chat", "chat-message", "normal", f"{handle}: {text}")]
    if human:
        said.append(("nbs-chat-terminal", "human-input", "high", f"{handle}: {text}"))
    said += [
        ("nbs-chat", "chat-mention", "high", f"@{name} from {handle}: {text}")
        for name in format_.mentions(text)
    ]
    for source, type_, priority, payload in said:
        yield draft_event(act, source, type_, priority, _cut(payload), cause=message)


def _cut(payload: str) -> str:
    """A signal, not a report: what does not fit is in the chat (no character is split)."""
    data = payload.encode()
    return payload if len(data) <= MAX_PAYLOAD else data[:MAX_PAYLOAD].decode(errors="ignore")


def _rotate(act: Act, channel: str, time: int) -> None:
    """Split the oldest lines off when the live file holds more than the original tools bear."""
    db = act.transaction.tables
    first, stop = db.execute(
        "SELECT live_from, lines FROM channels WHERE channel = ?", (channel,)
    ).fetchone()
    if stop - first <= ROTATE_ABOVE:
        return
    size = db.execute(
        "SELECT sum(size) FROM lines WHERE channel = ? AND number >= ? AND number < ?",
        (channel, first, first + ROTATE_COUNT),
    ).fetchone()[0]
    stamp = time
    while True:
        archive = format_.archive_name(channel, stamp)
        if not db.execute("SELECT 1 FROM archives WHERE archive = ?", (archive,)).fetchone():
            break
        stamp += 1
    header = format_.archive_header(format_.format_time(time), size)
    act.append(
        [
            drafts.rotated(
                channel=channel, count=ROTATE_COUNT, size=size, archive=archive, header=header
            )
        ]
    )


def messages(
    team: Team, name: str, *, last: int | None = None, since: str | None = None
) -> list[Message]:
    """Messages of a channel's live file, oldest first.

    Args:
        team: the team whose chat it is.
        name: the channel.
        last: only the newest so many.
        since: only those after this handle's newest message (all, if it never spoke).

    Raises:
        NotFoundError: there is no such channel.
    """
    channel = channel_name(name)
    db = team.store.db
    row = db.execute(
        "SELECT live_from, lines FROM channels WHERE channel = ?", (channel,)
    ).fetchone()
    if row is None:
        raise _missing(team, channel)
    first, stop = row
    if since is not None:
        found = db.execute(
            "SELECT max(number) FROM lines WHERE channel = ? AND number >= ? AND handle = ?",
            (channel, first, since),
        ).fetchone()[0]
        first = first if found is None else found + 1
    if last is not None:
        rows = db.execute(
            "SELECT number, seq FROM lines WHERE channel = ? AND number >= ? AND number < ?"
            " AND handle IS NOT NULL ORDER BY number DESC LIMIT ?",
            (channel, first, stop, last),
        ).fetchall()[::-1]
    else:
        rows = db.execute(
            "SELECT number, seq FROM lines WHERE channel = ? AND number >= ? AND number < ?"
            " AND handle IS NOT NULL ORDER BY number",
            (channel, first, stop),
        ).fetchall()
    return [_message(team, number, seq) for number, seq in rows]


def _message(team: Team, number: int, seq: int) -> Message:
    body = team.source.body(seq)
    text = content_bytes(team.source, body["text"]).decode()
    return Message(number, seq, body["handle"], body["time"], text)


def search(
    team: Team, name: str, pattern: str, *, handle: str | None = None, archives: bool = False
) -> Iterator[Message]:
    """Messages that hold ``pattern`` as text, upper and lower case alike (ASCII).

    Raises:
        NotFoundError: there is no such channel.
    """
    channel = channel_name(name)
    row = team.store.db.execute(
        "SELECT live_from FROM channels WHERE channel = ?", (channel,)
    ).fetchone()
    if row is None:
        raise _missing(team, channel)
    wanted = _lower(pattern)
    rows = team.store.db.execute(
        "SELECT number, seq FROM lines WHERE channel = ? AND number >= ? AND handle IS NOT NULL"
        " AND (?3 IS NULL OR handle = ?3) ORDER BY number",
        (channel, 0 if archives else row[0], handle),
    )
    for number, seq in rows.fetchall():
        message = _message(team, number, seq)
        if wanted in _lower(message.text):
            yield message


def _lower(text: str) -> bytes:
    # bytes.lower is ASCII alone, as in the original; an argument may hold bytes that are no text.
    return text.encode("utf-8", "surrogatepass").lower()


def participants(team: Team, name: str) -> list[tuple[str, int]]:
    """Handles in the order in which they first spoke, and how many messages each sent.

    Raises:
        NotFoundError: there is no such channel.
    """
    channel = channel_name(name)
    db = team.store.db
    if not db.execute("SELECT 1 FROM channels WHERE channel = ?", (channel,)).fetchone():
        raise _missing(team, channel)
    return db.execute(
        "SELECT handle, count FROM participants WHERE channel = ? ORDER BY place", (channel,)
    ).fetchall()
