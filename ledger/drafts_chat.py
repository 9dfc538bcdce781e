"""Typed constructors of drafts for what is read and deleted in chats; see ``ledger.drafts``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.entry import Draft


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
