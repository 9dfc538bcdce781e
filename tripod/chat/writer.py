"""Acts on the chats: begin a channel, send messages, split off, delete, and note what was read.

Source: spec nbs-compat C1 to C3; design section 7. A message and the events that tell of it are one
transaction. ``tripod.chat.reader`` only reads.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.ledger import Draft
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds import chat as kinds
from tripod.projections import CHAT
from tripod.projections.chat import format as format_
from tripod.projections.chat.tables import (
    ReadPosition,
    Span,
    chat_position,
    count_chat_lines,
    span_of,
)
from tripod.projections.peers.tables import is_observed_here
from tripod.projections.pieces import piece_draft
from tripod.team.act import Act, draft_event_for_act
from tripod.team.intake import show_positions, take_positions
from tripod.team.team import Team

if TYPE_CHECKING:
    from tripod.projections.chat.jsonl import FoundMessage

MAX_SIGNAL = 2_047  # bytes of a payload that tells of a message, as in the original
ROTATE_ABOVE = 2_000  # lines in the live file, as the original tool does it
ROTATE_COUNT = 1_000
MAX_BEYOND = 500  # ranges; of a reader who leaves more gaps, the oldest count as unread again
MAX_REMOVED = 300  # handles in one entry on a deletion
WARNING = "[MEDIC-WARNING]"
"""The handle of what ``nbs-chat warn`` posts."""
ERROR = "[SIDECAR-ERROR]"
"""The handle of what ``nbs-chat error`` posts."""


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


class Deletion(NamedTuple):
    """How many messages a deletion takes out of a file, and how many it leaves there."""

    deleted: int
    kept: int


def channel_name(name: str, fronts: Sequence[str] = ()) -> str:
    """The channel that an argument names, with or without ``.chat``.

    ``fronts`` are the added folders in which it may lie: ``<name>/``. Raises BadArgumentError (no
    channel's name).
    """
    channel = name.removesuffix(".chat")
    front = channel[: channel.rfind("/") + 1]
    refuse_argument(format_.valid_chat_name(channel[len(front) :] if front in fronts else channel))
    return channel


def _no_channel(team: Team, channel: str) -> NotFoundError:
    """The error to raise where there is no such channel; it names those that there are."""
    rows = team.store.db.execute("SELECT channel FROM channels WHERE closed = 0 ORDER BY 1")
    known = ", ".join(name for (name,) in rows)
    have = f"there are: {known}" if known else "no chat exists yet"
    return NotFoundError(f"no chat {channel}; {have} (`tripod chat create {channel}` makes it)")


def span_of_channel(team: Team, name: str) -> Span:
    """The messages of a live file or an archive (BadArgumentError, NotFoundError: neither)."""
    stem = name.removesuffix(".chat")
    found = span_of(team.store.db, stem)
    if found is None:
        if format_.parse_chat_archive_name(stem) is None:
            channel_name(stem, team.disk.places.chats())
        raise _no_channel(team, stem)
    return found


def live_span(act: Act, channel: str) -> Span | None:
    """The messages that a channel's live file shows; None where there is no such channel."""
    row = act.transaction.tables.execute(
        "SELECT live_from, lines FROM channels WHERE channel = ? AND closed = 0", (channel,)
    ).fetchone()
    return None if row is None else Span(channel, *row)


def _writable(team: Team, name: str) -> tuple[str, str]:
    """The channel and its path, for an act on it; nothing is left on the disk if it is refused.

    Raises BadArgumentError (not a channel's name), NotFoundError (neither the ledger nor the folder
    has it), RefusedError (it is an archive, or in an added folder that is gone).
    """
    stem = name.removesuffix(".chat")
    folder = f"{CHAT.folder}/{stem.rpartition('/')[0]}"
    if folder in team.disk.places.missing():
        raise RefusedError(
            f"{team.disk.full(folder)} is no folder that can be read, and {stem} is kept there: "
            "put it back; or, if it is lost, `tripod rebuild` writes it anew"
        )
    db = team.store.db
    sql = "SELECT 1 FROM channels WHERE channel = ? AND closed = 0"
    if db.execute(sql, (stem,)).fetchone() is None:
        row = db.execute("SELECT channel FROM archives WHERE archive = ?", (stem,)).fetchone()
        if row is not None:
            raise RefusedError(f"{stem} is an archive and never changes; the channel is {row[0]}")
        stem = channel_name(stem, team.disk.places.chats())
        if not team.disk.is_file(f"{CHAT.folder}/{stem}.chat"):
            raise _no_channel(team, stem)
    return stem, f"{CHAT.folder}/{stem}.chat"


@contextmanager
def _act_on(
    team: Team, name: str, by: str | None = None, *, hasty: bool = False
) -> Iterator[tuple[Act, Span]]:
    """An act on a channel, with its live file's lock, the tool's positions taken in."""
    channel, path = _writable(team, name)
    with team.act(locks=[path], hasty=hasty, joins=True, by=by) as act:
        live = live_span(act, channel)
        if live is None:
            raise _no_channel(team, channel)
        take_positions(act, channel)
        yield act, live


def create(team: Team, name: str, *, actor: str = "unknown") -> str:
    """Begin a channel; give the path of its file.

    One whose file was moved away or removed begins anew under its name: its messages stay in the
    ledger, and in the file that was moved. One whose file went with the others (`git clean`, the
    checkout of an older commit) is there: the file is only to be written again.
    Raises BadArgumentError (not a channel's name), RefusedError (already there).
    """
    channel = channel_name(name, team.disk.places.chats())
    path = f"{CHAT.folder}/{channel}.chat"
    full = team.disk.full(path)
    with team.act(locks=[path], joins=True, by=actor) as act:
        live = live_span(act, channel)
        row = act.transaction.tables.execute(
            "SELECT seq, lines FROM channels WHERE channel = ?", (channel,)
        ).fetchone()
        is_unwritten = row is not None and row[0] >= act.transaction.cursors().files
        is_to_return = is_unwritten or act.look.emptied or act.is_older(path)
        if live is not None and (os.path.lexists(full) or is_to_return):
            raise RefusedError(f"chat {channel} exists already")
        if os.path.lexists(full):
            raise RefusedError(f"{path} is there, and is no chat file: move it away first")
        first = None if row is None else row[1]
        if live is not None:
            first = live.first
            act.forget_warnings(path)
        act.append([kinds.CREATED.draft({"channel": channel, "first": first}, actor)])
        if first is not None:
            show_positions(act, channel)
    return full


def send(team: Team, name: str, handle: str, text: str, *, human: bool = False) -> ChatMessage:
    """Say ``text`` as ``handle`` in a channel, with the events that tell the others.

    A handle is one word of 1 to 63 bytes; a text has at most 1 MiB, and an empty one is sent
    without events. ``human``: it comes from a person's terminal, and ``human-input`` is published
    as well. Raises BadArgumentError (an argument breaks its rule), NotFoundError (no such channel).
    """
    refuse_argument(format_.valid_chat_handle(handle) or format_.valid_chat_text(text))
    with _act_on(team, name, handle, hasty=True) as (act, live):
        return _say(act, live, handle, text, human=human)


def adopt_messages(
    team: Team, name: str, path: str, messages: "Sequence[FoundMessage]", *, dry_run: bool = False
) -> "tuple[list[FoundMessage], int]":
    """Take in messages of another form as observed ones, behind those of a channel.

    ``path`` is the file that they were read from, as the entries are to name it. Gives those that
    are new, and how many are here already. No event tells of them. ``dry_run``: change nothing.

    Raises BadArgumentError (not a channel's name), NotFoundError (no such channel), RefusedError
    (its last line is torn).
    """
    if dry_run:
        fresh = _new_drafts(team, span_of_channel(team, name), path, messages)
        return [one for one, _ in fresh], len(messages) - len(fresh)
    with _act_on(team, name) as (act, live):
        fresh = _new_drafts(act, live, path, messages)
        if fresh and CHAT.lines(act.source, live.channel, live.stop - 1, live.stop)[-1:] not in (
            b"",
            b"\n",
        ):
            raise RefusedError(
                f"{live.channel}: its last line is not at its end: send a message there first"
            )
        for start in range(0, len(fresh), ROTATE_COUNT):
            drafts = [draft for _, draft in fresh[start : start + ROTATE_COUNT]]
            act.append(drafts)
            shown = live_span(act, live.channel)
            if shown and count_chat_lines(act.transaction.tables, shown) > ROTATE_ABOVE:
                _split_off(act, shown, ROTATE_COUNT, act.now_us // 1_000_000)
        if fresh:
            act.rewrite.add(f"{CHAT.folder}/{live.channel}.chat")
            show_positions(act, live.channel)
    return [one for one, _ in fresh], len(messages) - len(fresh)


def _new_drafts(
    act: Act | Team, live: Span, path: str, messages: "Sequence[FoundMessage]"
) -> "list[tuple[FoundMessage, Draft]]":
    """The messages that are not here yet, each with its entry."""
    fresh: list[tuple[FoundMessage, Draft]] = []
    for one in messages:
        body = {
            "channel": live.channel,
            "index": live.stop + len(fresh),
            "handle": one.handle,
            "time": one.time,
            "text": one.text.encode(),
        }
        claim = "content" if one.time else "unknown"
        # In each channel for itself: the same file may be taken into two.
        own = f"{path}#{live.channel}"
        draft = piece_draft(
            kinds.SENT, body, path, one.data, ordinal=one.ordinal, identity=own, claim=claim
        )
        if not is_observed_here(act.source, draft.id):
            fresh.append((one, draft))
    return fresh


def post(team: Team, name: str, text: str, *, as_: str = WARNING) -> ChatMessage:
    """Post a tool's message, as ``WARNING`` or ``ERROR``; no event tells of it.

    Raises BadArgumentError (the text breaks its rule), NotFoundError (no such channel).
    """
    refuse_argument(format_.valid_chat_text(text))
    with _act_on(team, name, as_, hasty=True) as (act, live):
        return _say(act, live, as_, text, tell=False)


def refuse_argument(problem: str | None) -> None:
    """Raise BadArgumentError with the rule that an argument breaks, unless that is None."""
    if problem is not None:
        raise BadArgumentError(problem)


def say_in(act: Act, channel: str, handle: str, text: str) -> ChatMessage:
    """Say ``text`` in a channel that is there, within an act that holds the lock of its file."""
    live = live_span(act, channel)
    assert live is not None
    take_positions(act, channel)
    return _say(act, live, handle, text)


def _say(
    act: Act, live: Span, handle: str, text: str, *, tell: bool = True, human: bool = False
) -> ChatMessage:
    channel = live.channel
    said = format_.chat_mentions(text)[: format_.MAX_MENTIONS] if tell else ()
    time = act.now_us // 1_000_000
    draft = kinds.SENT.draft(
        {
            "channel": channel,
            "index": live.stop,
            "handle": handle,
            "time": time,
            "text": text.encode(),
            "mentions": [{"handle": name, "how": how} for name, how in said] or None,
        }
    )._replace(id=fresh_ids(1)[0][0])
    events = _announced(act, draft, text, said, human=human) if text and tell else ()
    seq = act.append([draft, *events])[0].seq
    longer = live._replace(stop=live.stop + 1)
    # The lines are counted only if there may be more than the original tools can read.
    if (
        longer.stop - longer.first > ROTATE_ABOVE
        and count_chat_lines(act.transaction.tables, longer) > ROTATE_ABOVE
    ):
        _split_off(act, longer, ROTATE_COUNT, time)
        show_positions(act, channel)
    elif tell:
        show_positions(act, channel, [handle])
    return ChatMessage(live.stop, seq, handle, time, text)


# The first messages of a team may address anyone: there is no warning before somebody else spoke.
_UNHEARD_OF = (
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM participants WHERE handle = :handle)"
    " AND NOT EXISTS (SELECT 1 FROM cursors WHERE handle = :handle)"
    " AND NOT EXISTS (SELECT 1 FROM team WHERE scribe = :handle)"
    " AND EXISTS (SELECT 1 FROM participants WHERE handle <> :sender)"
)


_PEOPLE = (
    "SELECT handle FROM (SELECT handle, place FROM participants WHERE channel = ?1"
    " UNION ALL SELECT handle, 2147483647 FROM cursors WHERE channel = ?1)"
    " WHERE handle <> ?2 GROUP BY handle ORDER BY min(place), handle"
)


def _announced(
    act: Act, message: Draft, text: str, addressed: Sequence[format_.ParsedMention], *, human: bool
) -> Iterator[Draft]:
    """The events of a message. No dedup window drops them.

    ``@team`` addresses all who spoke or read in the channel, but for the tools that post there. An
    unknown handle gives a warning: nobody may ever notice the message.
    """
    sender, found = message.actor, dict[str, format_.How]()
    db, strength = act.transaction.tables, tuple(format_.EVENTS)
    for handle, how in addressed:
        names = [handle]
        if handle == format_.TEAM:
            rows = db.execute(_PEOPLE, (message.body["channel"], sender)).fetchall()
            names = [name for (name,) in rows if name != "sidecar" and not name.startswith("[")]
        elif db.execute(_UNHEARD_OF, {"handle": handle, "sender": sender}).fetchone():
            act.warn(f"@{handle}: nobody of that name has spoken or read in a chat of this team")
        for name in names:
            found[name] = max(found.get(name, how), how, key=strength.index)
    said: list[tuple[str, str, str, str, str | None]] = [
        ("nbs-chat", "chat-message", "normal", f"{sender}: {text}", None)
    ]
    if human:
        said.append(("nbs-chat-terminal", "human-input", "high", f"{sender}: {text}", None))
    for name, how in found.items():
        payload = f"@{name} from {sender}: {text}"
        said.append(("nbs-chat", *format_.EVENTS[how], payload, name))
    for source, type_, priority, payload, addressee in said:
        # A signal, not a report: what does not fit is in the chat (no character is split).
        cut = payload.encode()[:MAX_SIGNAL].decode(errors="ignore")
        yield draft_event_for_act(act, source, type_, priority, cut, cause=message, to=addressee)


def _split_off(act: Act, live: Span, number: int, time: int) -> str:
    """Move the first ``number`` lines of a live file into an archive; give its name."""
    db = act.transaction.tables
    stop, size = db.execute(
        "SELECT max(number) + 1, sum(size) FROM (SELECT number, size FROM lines"
        " WHERE channel = ? AND number >= ? AND gone IS NULL ORDER BY number LIMIT ?)",
        (live.channel, live.first, number),
    ).fetchone()
    stamp = time
    while db.execute(
        "SELECT 1 FROM archives WHERE archive = ?",
        (format_.chat_archive_name(live.channel, stamp),),
    ).fetchone():
        stamp += 1
    name = format_.chat_archive_name(live.channel, stamp)
    body: kinds.Rotated = {
        "channel": live.channel,
        "count": number,
        "size": size,
        "archive": name,
        "header": format_.chat_archive_header(format_.format_time(time), size),
        "stop": None if stop == live.first + number else stop,
    }
    act.append([kinds.ROTATED.draft(body)])
    return name


def archive(team: Team, name: str, keep: int = ROTATE_COUNT) -> tuple[int, str]:
    """Split all but the newest ``keep`` lines off now; give how many, and the archive's path.

    Raises BadArgumentError (not a channel's name), NotFoundError (no such channel).
    """
    with _act_on(team, name) as (act, live):
        number = count_chat_lines(act.transaction.tables, live) - keep
        if number <= 0:
            return 0, ""
        stem = _split_off(act, live, number, act.now_us // 1_000_000)
        show_positions(act, live.channel)
    return number, team.disk.full(f"{CHAT.folder}/{stem}.chat")


def delete(
    team: Team, name: str, after: int, *, actor: str = "unknown", dry_run: bool = False
) -> Deletion:
    """Have the file forget all from its first message of the second ``after`` or later on.

    ``after`` is in seconds since 1970. The ledger forgets nothing, and says who asked for it.
    ``dry_run`` only counts. Raises BadArgumentError (not a channel's name), NotFoundError (no such
    channel).
    """
    if dry_run:
        channel, _ = _writable(team, name)
        team.refresh()
        return _deletion(team, span_of_channel(team, channel), after)[0]
    with _act_on(team, name, actor) as (act, live):
        outcome, first = _deletion(team, live, after)
        if outcome.deleted:
            _forget(act, live, first, after, actor)
            show_positions(act, live.channel)
    return outcome


def _deletion(team: Team, live: Span, after: int) -> tuple[Deletion, int]:
    """The counts of a deletion, and the number of the first message that it deletes."""
    db = team.store.db
    rows = db.execute(
        "SELECT number, time FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND gone IS NULL AND handle IS NOT NULL ORDER BY number",
        live,
    ).fetchall()
    kept = next((place for place, (_, time) in enumerate(rows) if time >= after), len(rows))
    first = rows[kept][0] if kept < len(rows) else live.stop
    return Deletion(len(rows) - kept, kept), first


def _forget(act: Act, live: Span, start: int, after: int, actor: str) -> None:
    """Append the entries of a deletion: the newest lines first, as many as one entry can name."""
    db = act.transaction.tables
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
        body: kinds.Deleted = {
            "channel": live.channel,
            "first": first,
            "count": taken,
            "size": size,
            "after": after,
            "last_writer": writer,
            "last_time": time,
            "removed": [{"handle": one, "count": number} for one, number in removed.items()],
        }
        act.append([kinds.DELETED.draft(body, actor)])


def mark_read(team: Team, name: str, handle: str, shown: Iterable[int]) -> None:
    """Note that ``handle`` was shown the messages of these numbers, and no others.

    ``name`` may be that of an archive: it means the channel that it was split off. Where the team
    is only read, it is a warning that nothing is noted. Raises BadArgumentError (the handle breaks
    its rule), NotFoundError (there is no such channel).
    """
    ranges = [(number, number + 1) for number in set(shown)]
    if not ranges:
        return
    if team.is_read_only:
        team.warnings.append(f"not noted as read by {handle}: the team is only read")
        return

    def find(act: Act, live: Span) -> ReadPosition:
        was = chat_position(act.source, live.channel, handle) or ReadPosition()
        rows = act.transaction.tables.execute(
            "SELECT number FROM lines WHERE channel = ? AND number >= ?"
            " AND (handle IS NULL OR gone IS NOT NULL OR (handle = ? AND number >= ?))",
            (live.channel, was.upto, handle, was.lines),
        ).fetchall()
        own = [(number, number + 1) for (number,) in rows]
        # All below the number is read, and above it these ranges.
        upto, beyond = was.upto, list[tuple[int, int]]()
        for first, stop in sorted([*map(tuple, was.beyond), *ranges, *own]):
            if first <= upto:
                upto = max(upto, stop)
            elif beyond and first <= beyond[-1][1]:
                beyond[-1] = (beyond[-1][0], max(stop, beyond[-1][1]))
            else:
                beyond.append((first, stop))
        return ReadPosition(upto, beyond[-MAX_BEYOND:], live.stop)

    _note_position(team, span_of_channel(team, name).channel, handle, find)


def set_position(team: Team, name: str, handle: str, index: int | None) -> None:
    """Say that ``handle`` has read the live file up to the message of that index, and no more.

    An index after the last message means all of them. Raises BadArgumentError (not a handle),
    NotFoundError (no such channel).
    """

    def find(act: Act, live: Span) -> ReadPosition:
        if index is None:
            return ReadPosition(live.first, (), live.stop)
        row = act.transaction.tables.execute(
            "SELECT number FROM lines WHERE channel = ? AND number >= ? AND number < ?"
            " AND gone IS NULL AND handle IS NOT NULL ORDER BY number LIMIT 1 OFFSET ?",
            (*live, index),
        ).fetchone()
        return ReadPosition(live.stop if row is None else row[0] + 1, (), live.stop)

    _note_position(team, name, handle, find)


def _note_position(
    team: Team, name: str, handle: str, find: Callable[[Act, Span], ReadPosition]
) -> None:
    refuse_argument(format_.valid_chat_handle(handle))
    with _act_on(team, name, handle) as (act, live):
        at = find(act, live)
        body: kinds.Read = {
            "channel": live.channel,
            "handle": handle,
            "upto": at.upto,
            "beyond": [{"first": first, "stop": stop} for first, stop in at.beyond],
            "lines": at.lines,
        }
        act.append([kinds.READ.draft(body)])
        show_positions(act, live.channel, [handle])
