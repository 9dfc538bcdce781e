"""Acts on the chats: begin a channel, and send messages with the events that tell of them.

Source: spec nbs-compat C1 to C3; design section 7. A message and its events are one transaction.
All that is done with chats has its name here: ``tripod.chat.reader`` only reads, and
``tripod.chat.keep`` has archives, deletions and read positions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from tripod.chat.keep import rotate
from tripod.chat.reader import ChatMessage, channel_name, live_of, missing, writable
from tripod.errors import BadArgumentError, RefusedError
from tripod.ledger import Draft
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds.chat import CREATED, SENT
from tripod.projections import CHAT
from tripod.projections.chat import format as format_
from tripod.projections.chat.format import EVENTS, MAX_MENTIONS, TEAM, How, ParsedMention, mentions
from tripod.team.act import Act, draft_event
from tripod.team.positions import show_positions, take_positions
from tripod.team.team import Team

MAX_SIGNAL = 2_047  # bytes of a payload that tells of a message, as in the original
WARNING = "[MEDIC-WARNING]"
"""Who says what ``nbs-chat warn`` posts."""
ERROR = "[SIDECAR-ERROR]"
"""Who says what ``nbs-chat error`` posts."""


def create(team: Team, name: str, *, actor: str = "unknown") -> str:
    """Begin a channel; give the path of its file.

    One whose file was moved away or removed begins anew under its name: what was said before stays
    in the ledger, and in the file that was moved.

    Raises:
        BadArgumentError: not a channel's name.
        RefusedError: it is there already.
    """
    channel = channel_name(name, team.disk.places.chats())
    path = f"{CHAT.folder}/{channel}.chat"
    with team.act(locks=[path], joins=True, by=actor) as act:
        live = live_of(act, channel)
        is_there = os.path.lexists(team.disk.full(path)) or _is_unwritten(act, channel)
        if live is not None and is_there:
            raise RefusedError(f"chat {channel} exists already")
        if os.path.lexists(team.disk.full(path)):
            raise RefusedError(f"{path} is there, and is no chat file: move it away first")
        first = None if live is None else live.first
        if live is None:
            sql = "SELECT lines FROM channels WHERE channel = ?"
            row = act.transaction.tables.execute(sql, (channel,)).fetchone()
            first = None if row is None else row[0]
        else:
            act.forget_warnings(path)
        act.append([CREATED.draft({"channel": channel, "first": first}, actor)])
        if first is not None:
            show_positions(act, channel)
    return team.disk.full(path)


def _is_unwritten(act: Act, channel: str) -> bool:
    """Whether a channel has no file only because its file is still to be written."""
    tables = act.transaction.tables
    row = tables.execute("SELECT seq FROM channels WHERE channel = ?", (channel,)).fetchone()
    return row is not None and bool(row[0] >= act.transaction.cursors().files)


# Sending ---------------------------------------------------------------------------------------


def send(team: Team, name: str, handle: str, text: str, *, human: bool = False) -> ChatMessage:
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
    problem = format_.valid_handle(handle)
    if problem is not None:
        raise BadArgumentError(problem)
    return _say(team, name, handle, text, tell=True, human=human)


def post(team: Team, name: str, text: str, *, as_: str = WARNING) -> ChatMessage:
    """Post what a tool has to say, as ``WARNING`` or ``ERROR``; no event tells of it.

    Raises:
        BadArgumentError: the text breaks its rule.
        NotFoundError: there is no such channel.
    """
    return _say(team, name, as_, text, tell=False, human=False)


def _say(team: Team, name: str, handle: str, text: str, *, tell: bool, human: bool) -> ChatMessage:
    problem = format_.valid_text(text)
    if problem is not None:
        raise BadArgumentError(problem)
    channel, path = writable(team, name)
    with team.act(locks=[path], hasty=True, joins=True, by=handle) as act:
        if live_of(act, channel) is None:
            raise missing(team, channel)
        return say_in(act, channel, handle, text, tell=tell, human=human)


def say_in(
    act: Act, channel: str, handle: str, text: str, *, tell: bool = True, human: bool = False
) -> ChatMessage:
    """Say ``text`` within an act, which holds the lock of the chat's file.

    Args:
        act: the act; what it appends besides stands or falls with the message.
        channel: a channel that is there.
        handle: who says it.
        text: the message.
        tell: publish the events that tell of it.
        human: as for ``send``.
    """
    live = live_of(act, channel)
    assert live is not None
    said = mentions(text)[:MAX_MENTIONS] if tell else ()
    take_positions(act, channel)
    time = act.now_us // 1_000_000
    draft = SENT.draft(
        {
            "channel": channel,
            "index": live.stop,
            "handle": handle,
            "time": time,
            "text": text.encode(),
            "mentions": [{"handle": name, "how": how} for name, how in said] or None,
        }
    )
    draft = draft._replace(id=fresh_ids(1)[0][0])
    events: Iterable[Draft] = ()
    if text and tell:
        events = _announced(act, draft, text, _meant(act, channel, handle, said), human=human)
    seq = act.append([draft, *events])[0].seq
    if rotate(act, channel, time):
        show_positions(act, channel)
    elif tell:
        show_positions(act, channel, [handle])
    return ChatMessage(live.stop, seq, handle, time, text)


def _meant(
    act: Act, channel: str, sender: str, said: Sequence[ParsedMention]
) -> list[ParsedMention]:
    """Those who are addressed, ``@team`` as everybody who spoke or read in the channel.

    A handle that nobody here was ever heard of under is told: the message will not be noticed.
    """
    found: dict[str, How] = {}
    strength = tuple(EVENTS)
    db = act.transaction.tables
    for handle, how in said:
        names = [handle]
        if handle == TEAM:
            names = [name for name in _people(act, channel) if name != sender]
        elif db.execute(_UNHEARD_OF, {"handle": handle, "sender": sender}).fetchone():
            act.warn(f"@{handle}: nobody of that name has spoken or read in a chat of this team")
        for name in names:
            found[name] = max(found.get(name, how), how, key=strength.index)
    return [ParsedMention(handle, how) for handle, how in found.items()]


# Who speaks first in a team addresses people that nobody has heard of yet.
_UNHEARD_OF = (
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM participants WHERE handle = :handle)"
    " AND NOT EXISTS (SELECT 1 FROM cursors WHERE handle = :handle)"
    " AND NOT EXISTS (SELECT 1 FROM team WHERE scribe = :handle)"
    " AND EXISTS (SELECT 1 FROM participants WHERE handle <> :sender)"
)


def _people(act: Act, channel: str) -> list[str]:
    """Everybody who spoke or read in a channel, but for the tools that post there."""
    rows = act.transaction.tables.execute(
        "SELECT handle FROM (SELECT handle, place FROM participants WHERE channel = ?1"
        " UNION ALL SELECT handle, 2147483647 FROM cursors WHERE channel = ?1)"
        " GROUP BY handle ORDER BY min(place), handle",
        (channel,),
    ).fetchall()
    return [name for (name,) in rows if name != "sidecar" and not name.startswith("[")]


def _announced(
    act: Act, message: Draft, text: str, to: Iterable[ParsedMention], *, human: bool
) -> Iterator[Draft]:
    """The events of a message. Ours are never dropped by a dedup window."""
    handle = message.actor
    said: list[tuple[str, str, str, str, str | None]] = [
        ("nbs-chat", "chat-message", "normal", f"{handle}: {text}", None)
    ]
    if human:
        said.append(("nbs-chat-terminal", "human-input", "high", f"{handle}: {text}", None))
    for name, how in to:
        payload = f"@{name} from {handle}: {text}"
        said.append(("nbs-chat", *EVENTS[how], payload, name))
    for source, type_, priority, payload, addressee in said:
        yield draft_event(act, source, type_, priority, _cut(payload), cause=message, to=addressee)


def _cut(payload: str) -> str:
    """A signal, not a report: what does not fit is in the chat (no character is split)."""
    data = payload.encode()
    return payload if len(data) <= MAX_SIGNAL else data[:MAX_SIGNAL].decode(errors="ignore")
