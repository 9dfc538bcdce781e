"""Kinds of the chat channels (spec: nbs-compat C1 to C3)."""

from __future__ import annotations

from ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Observed, Sha256

__all__ = ["ChannelCreated", "CursorsSeen", "HeaderSeen", "Rotated", "Sent", "Unreadable"]


class ChannelCreated(BodyModel):
    """A channel began: the file ``chat/<channel>.chat``."""

    channel: Name
    observed: Observed | None = None


class Sent(BodyModel):
    """A message: line ``index`` of its channel, counted from 0 since the channel began.

    ``time`` is the epoch second that the line carries (0: it carries none).
    """

    channel: Name
    index: Count
    handle: str
    time: Count
    text: Content
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

    ``size`` is how many bytes they take, ``header`` what stands in front of them there.
    """

    channel: Name
    count: Count
    size: Count
    archive: Name
    header: Content
    observed: Observed | None = None


class CursorsSeen(BodyModel):
    """Read positions of a chat, as the original tool keeps them (``<channel>.chat.cursors``)."""

    channel: Name
    sha256: Sha256
    content: Content
    observed: Observed
