"""Kinds of the chat channels (spec: nbs-compat C1 to C3).

Typed constructors of drafts for what is read and deleted in chats; see
``tripod.ledger.kinds.team``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tripod.ledger.entry import Draft
from tripod.ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Observed, Sha256


class ChannelCreated(BodyModel):
    """A channel began: the file ``chat/<channel>.chat``.

    With ``first`` it began anew: the file that it had was moved away or removed, and the lines from
    that index on, which it showed, are no part of the new one. Their entries stay.
    """

    channel: Name
    first: Count | None = None
    observed: Observed | None = None


class Mention(Closed):
    """A handle that a message addresses, and how: ``@h`` mention, ``@h!`` interrupt, ``@h?`` query.

    Where the text says ``@team``, each who is meant by that stands here.
    """

    handle: str
    how: Literal["mention", "interrupt", "query"]


class Sent(BodyModel):
    """A message: line ``index`` of its channel, counted from 0 since the channel began.

    ``time`` is the epoch second that the line carries (0: it carries none). ``mentions`` is left
    out where nobody is addressed, and of what others wrote.
    """

    channel: Name
    index: Count
    handle: str
    time: Count
    text: Content
    mentions: list[Mention] | None = None
    observed: Observed | None = None


class Unreadable(BodyModel):
    """A line of a chat file that holds no message; its bytes are in ``observed.raw``."""

    channel: Name
    index: Count
    observed: Observed


class Participant(Closed):
    """A handle of a chat's header, and how many messages it counts for it."""

    handle: str
    count: Count


class HeaderSeen(BodyModel):
    """The header that another program left on a chat file, where ours would differ."""

    channel: Name
    last_writer: str
    last_write: str
    participants: list[Participant]
    raw: Content
    observed: Observed


class Rotated(BodyModel):
    """The first ``count`` lines of the live file went to the file ``chat/<archive>.chat``.

    ``size`` is how many bytes they take, ``header`` what stands in front of them there. ``stop``
    is the index of the line after them, given where deleted ones lie between. With ``moved`` the
    live file itself went there, with all its lines: there is none until the channel begins anew.
    """

    channel: Name
    count: Count
    size: Count
    archive: Name
    header: Content
    stop: Count | None = None
    moved: Literal[True] | None = None
    observed: Observed | None = None


class Deleted(BodyModel):
    """The file forgets ``count`` lines, all that it showed from index ``first`` on: ``size`` bytes.

    The actor asked for it, by the time ``after`` (epoch seconds). The entries stay. ``removed``
    counts the messages by who sent them; last writer and time are the header's from then on.
    """

    channel: Name
    first: Count
    count: Count
    size: Count
    after: Count
    last_writer: str
    last_time: Count
    removed: list[Participant]


class Range(Closed):
    """Messages from index ``first`` up to ``stop``, which is none of them."""

    first: Count
    stop: Count


class Read(BodyModel):
    """What ``handle`` has read of a channel, from this entry on.

    That is every message below the index ``upto``, those of ``beyond``, and its own ones from
    index ``lines`` on, which was the channel's next when this was written.
    """

    channel: Name
    handle: Name
    upto: Count
    beyond: list[Range]
    lines: Count


class Position(Closed):
    """Where a handle's read position was found: it has read the messages below ``upto``."""

    handle: Name
    upto: Count


class CursorsSeen(BodyModel):
    """Read positions of a chat, as the original tool keeps them (``<channel>.chat.cursors``).

    ``moved`` are those that others moved since we last looked, as indexes of messages; ``lines``
    was the channel's next index then.
    """

    channel: Name
    lines: Count
    moved: list[Position]
    sha256: Sha256
    content: Content
    observed: Observed


# Drafts chat ------------------------------------------------------------------------------------


def read(
    *, channel: str, handle: str, upto: int, beyond: Sequence[tuple[int, int]], lines: int
) -> Draft:
    """Say what ``handle`` has read: below ``upto``, and the ranges [first, stop) of ``beyond``.

    ``lines`` is the channel's next index: its own messages from there on count as read.
    """
    body: dict[str, Any] = {
        "beyond": [{"first": first, "stop": stop} for first, stop in beyond],
        "channel": channel,
        "handle": handle,
        "lines": lines,
        "upto": upto,
        "v": 1,
    }
    return Draft("chat.read", f"chat/{channel}", handle, body)


def deleted(
    *,
    channel: str,
    first: int,
    count: int,
    size: int,
    after: int,
    last_writer: str,
    last_time: int,
    removed: Sequence[tuple[str, int]],
    actor: str,
) -> Draft:
    """Have the file forget its ``count`` lines (``size`` bytes) from index ``first`` on.

    ``after`` is the time that was asked for, ``removed`` says whose messages they are and how many;
    the last writer and time are what the header says from then on.
    """
    body: dict[str, Any] = {
        "after": after,
        "channel": channel,
        "count": count,
        "first": first,
        "last_time": last_time,
        "last_writer": last_writer,
        "removed": [{"count": number, "handle": handle} for handle, number in removed],
        "size": size,
        "v": 1,
    }
    return Draft("chat.deleted", f"chat/{channel}", actor, body)
