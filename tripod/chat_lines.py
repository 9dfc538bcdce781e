"""Messages as commands print them: lines for people, objects for programs, colours for export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tripod.chat.keep import Deletion
from tripod.chat.read import ChatMessage, Hit
from tripod.output import format_utc, hanging, one_line, safe
from tripod.projections.chat.format import mentions

COLOURS = ("36", "33", "35", "32", "34", "31")
ALERTS = {"[SIDECAR-ERROR]": "38;5;167", "[MEDIC-WARNING]": "38;5;173"}
"""The colours that the original's export has for what failed and for what warns."""


def as_lines(messages: Iterable[ChatMessage]) -> Iterator[str]:
    """``[time] handle: text``; what follows a text's first line is indented.

    So no text can pass for another message.
    """
    for message in messages:
        when = f"[{format_utc(message.time)}] " if message.time else ""
        yield f"{when}{one_line(message.handle)}: {hanging(message.text)}"


def as_hits(hits: Iterable[Hit]) -> list[str]:
    """Lines with the place of each message in its file, and the archive in front."""
    lines = []
    for message, place, archive in hits:
        front = f"[{archive}.chat] " if archive is not None else ""
        lines += [f"{front}[{place}] {line}" for line in as_lines([message])]
    return lines


def as_json(messages: Iterable[ChatMessage]) -> Iterator[dict[str, Any]]:
    """Objects; those whom the text addresses stand in a field of their own."""
    for message in messages:
        yield message._asdict() | {"mentions": dict(mentions(message.text))}


def coloured(messages: Sequence[ChatMessage], people: Sequence[str]) -> str:
    """The text of an export for a terminal: each handle has its colour."""
    place = {handle: number for number, handle in enumerate(people)}
    parts = []
    for message in messages:
        usual = COLOURS[place.get(message.handle, 0) % len(COLOURS)]
        colour = ALERTS.get(message.handle, usual)
        when = f"\x1b[2m[{format_utc(message.time)}]\x1b[0m " if message.time else ""
        handle = f"\x1b[1;{colour}m{safe(one_line(message.handle))}\x1b[0m"
        parts.append(f"{when}{handle}: {safe(hanging(message.text))}\n")
    return "".join(parts)


def deletion_line(done: Deletion, after: str, *, dry_run: bool) -> str:
    """What a deletion did, or would do."""
    if not done.deleted:
        return f"No messages to delete (0 messages since {after}, {done.kept} kept)"
    if dry_run:
        return f"Would delete {done.deleted} message(s) (keeping {done.kept})"
    return f"Deleted {done.deleted} message(s) (kept {done.kept})"
