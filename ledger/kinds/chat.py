"""Kinds of the chat channels (spec: nbs-compat C1 to C3)."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from tripod.ledger.kinds.base import MARK, MARKED, Bytes, Count, Erasure, Kind, Name, Sha256, text


class ChannelCreated(TypedDict):
    """A channel began: the file ``chat/<channel>.chat``.

    With ``first`` it began anew: the file that it had was moved away or removed, and the lines from
    that index on, which it showed, are no part of the new one. Their entries stay.
    """

    channel: Name
    first: NotRequired[Count | None]


class Mention(TypedDict):
    """A handle that a message addresses, and how: ``@h`` mention, ``@h!`` interrupt, ``@h?`` query.

    For ``@team`` in the text, this list has each handle that it stands for.
    """

    handle: str
    how: Literal["mention", "interrupt", "query"]


class Sent(TypedDict):
    """A message: line ``index`` of its channel, counted from 0 since the channel began.

    ``time`` is the epoch second that the line carries (0: it carries none). ``mentions`` is left
    out where nobody is addressed, and of what others wrote.
    """

    channel: Name
    index: Count
    handle: str
    time: Count
    text: Bytes
    mentions: NotRequired[list[Mention] | None]


class Unreadable(TypedDict):
    """A line of a chat file that holds no message; its bytes are in ``observed.raw``."""

    channel: Name
    index: Count


class Participant(TypedDict):
    """A handle of a chat's header, and how many messages it counts for it."""

    handle: str
    count: Count


class HeaderSeen(TypedDict):
    """The header that another program left on a chat file, where ours would differ."""

    channel: Name
    last_writer: str
    last_write: str
    participants: list[Participant]
    raw: Bytes


class Rotated(TypedDict):
    """The first ``count`` lines of the live file went to the file ``chat/<archive>.chat``.

    ``size`` is how many bytes they take, ``header`` what stands in front of them there. ``stop``
    is the index of the line after them, given where deleted ones lie between. With ``moved`` the
    live file itself went there, with all its lines: the channel then has no live file.
    """

    channel: Name
    count: Count
    size: Count
    archive: Name
    header: Bytes
    stop: NotRequired[Count | None]
    moved: NotRequired[Literal[True] | None]


class Deleted(TypedDict):
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


class Range(TypedDict):
    """Messages from index ``first`` up to ``stop``, which is not one of them."""

    first: Count
    stop: Count


class Read(TypedDict):
    """What ``handle`` has read of a channel, from this entry on.

    That is every message below the index ``upto``, those of ``beyond``, and its own ones from
    index ``lines`` on, which was the channel's next when this was written.
    """

    channel: Name
    handle: Name
    upto: Count
    beyond: list[Range]
    lines: Count


class Position(TypedDict):
    """Where a handle's read position was found: it has read the messages below ``upto``."""

    handle: Name
    upto: Count


class CursorsSeen(TypedDict):
    """Read positions of a chat, as the original tool keeps them (``<channel>.chat.cursors``).

    ``moved`` are those that others moved since we last looked, as indexes of messages; ``lines``
    was the channel's next index then.
    """

    channel: Name
    lines: Count
    moved: list[Position]
    sha256: Sha256
    content: Bytes


def _channel(body: Mapping[str, Any]) -> str:
    return str(body["channel"])


def _file(body: Mapping[str, Any]) -> str:
    return f"chat/{body['channel']}.chat"


_STREAM = ("chat/", _channel)
CREATED = Kind(
    "chat.created", ChannelCreated, *_STREAM, observed=False, line="{channel}", merge="shared"
)
SENT = Kind(
    "chat.sent",
    Sent,
    *_STREAM,
    actor="handle",
    is_speech=True,
    observed=False,
    erasure=Erasure({"text": MARKED, "mentions": None}, _file),
    line="{channel}: {text}",
    merge="shared",
)
UNREADABLE = Kind(
    "chat.unreadable",
    Unreadable,
    *_STREAM,
    observed=True,
    erasure=Erasure({"observed.raw": text(f"{MARK}\n")}, _file, texts=(), is_copy=True),
    merge="shared",
)
HEADER_SEEN = Kind(
    "chat.header-seen",
    HeaderSeen,
    *_STREAM,
    observed=True,
    erasure=Erasure({"raw": None}, _file, texts=("raw",), is_copy=True),
)
ROTATED = Kind(
    "chat.rotated",
    Rotated,
    *_STREAM,
    observed=False,
    erasure=Erasure({"header": None, "stop": None, "moved": None}, _file, texts=("header",)),
)
DELETED = Kind("chat.deleted", Deleted, *_STREAM)
READ = Kind("chat.read", Read, *_STREAM, actor="handle")
CURSORS_SEEN = Kind("chat.cursors-seen", CursorsSeen, *_STREAM, observed=True)

KINDS = (CREATED, SENT, UNREADABLE, HEADER_SEEN, ROTATED, DELETED, READ, CURSORS_SEEN)
