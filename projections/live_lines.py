"""Where the messages of a channel stand in its files: by line, and by the index of a message.

Lines count as ``chat-refs`` do, from the top of the file; indexes count messages from 0, as the
original tool does. What the file was told to forget has no place in it.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from projections.formats.chat import HEADER_LINES


class Span(NamedTuple):
    """The lines of a channel that one file shows: numbers [first, stop) without those gone."""

    channel: str
    first: int
    stop: int


def span_of(db: sqlite3.Connection, stem: str) -> Span | None:
    """What the file of that name shows, a live one or an archive; None where there is none."""
    sql = "SELECT live_from, lines FROM channels WHERE channel = ? AND closed = 0"
    row = db.execute(sql, (stem,)).fetchone()
    if row is not None:
        return Span(stem, *row)
    row = db.execute(
        "SELECT channel, first, stop FROM archives WHERE archive = ?", (stem,)
    ).fetchone()
    return None if row is None else Span(*row)


def count_lines(db: sqlite3.Connection, span: Span) -> int:
    """How many lines a file shows, readable or not."""
    count: int = db.execute(
        "SELECT count(*) FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND gone IS NULL",
        span,
    ).fetchone()[0]
    return count


def last_line(db: sqlite3.Connection, span: Span) -> int:
    """The number of a file's last line, counted from its top as references to chats are."""
    return HEADER_LINES + count_lines(db, span)


def line_at(db: sqlite3.Connection, span: Span, line: int) -> tuple[int, int] | None:
    """Number and entry of the message in that line of a file; None where none stands there."""
    at = line - HEADER_LINES - 1
    if at < 0:
        return None
    row: tuple[int, int, str | None] | None = db.execute(
        "SELECT number, seq, handle FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND gone IS NULL ORDER BY number LIMIT 1 OFFSET ?",
        (*span, at),
    ).fetchone()
    return None if row is None or row[2] is None else row[:2]


def ref_to(db: sqlite3.Connection, channel: str, number: int) -> str | None:
    """A reference to a message, ``live.chat:~L12``; None where no file shows it any more."""
    row = db.execute(
        "SELECT 1 FROM lines WHERE channel = ? AND number = ? AND gone IS NULL", (channel, number)
    ).fetchone()
    rows = db.execute(
        "SELECT archive, first, stop FROM archives WHERE channel = ?1 UNION ALL"
        " SELECT channel, live_from, lines FROM channels WHERE channel = ?1 AND closed = 0",
        (channel,),
    ).fetchall()
    for stem, first, stop in rows:
        if row is not None and first <= number < stop:
            line = last_line(db, Span(channel, first, number + 1))
            return f"{stem}.chat:~L{line}"
    return None
