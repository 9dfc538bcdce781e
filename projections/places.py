"""Folders of the team that a person keeps elsewhere: what is recorded, and where that leads.

Everywhere else in the program events stand in ``events/`` and chats in ``chat/``; ``Disk`` alone
asks a ``Places`` where such a path really is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping

import orjson

from ledger.places import CHAT, EVENTS, places_problem

__all__ = ["Places", "recorded"]


class Places:
    """Maps the first parts of paths: ``{"events": "../bus"}``, from ``root`` or absolute."""

    def __init__(self, root: str, places: Mapping[str, str]) -> None:
        """Nothing is looked at yet; what stands at its usual place needs no mention."""
        self._root = root
        away = {front: place for front, place in places.items() if front != place}
        self._full = {
            front: place if place.startswith("/") else f"{root}/{place}"
            for front, place in away.items()
        }
        inside = {front: place for front, place in away.items() if not place.startswith("/")}
        self._ways = {
            front: [
                f"{root}/{place[:at]}"
                for at, character in enumerate(place)
                if character == "/" and place[:at] != ".."
            ]
            for front, place in inside.items()
        }
        self._own = {place.partition("/")[0] for place in inside.values()}
        self.hidden = away.keys() | self._own
        """Names in the directory itself that are no files of the team there."""

    def full(self, path: str) -> str | None:
        """The path for the system; None where nothing is said about its first part."""
        if not self._full:
            return None
        front, slash, rest = path.partition("/")
        place = self._full.get(front)
        return None if place is None else f"{place}{slash}{rest}"

    def ways(self, front: str) -> list[str]:
        """Folders between the team directory and one elsewhere: no link may stand there either."""
        return self._ways.get(front, [])

    def absent(self) -> dict[str, str]:
        """First parts and paths of the folders that are not there, or have become links."""
        return {
            front: os.path.normpath(full)
            for front, full in self._full.items()
            if not os.path.isdir(full)
            or any(os.path.islink(way) for way in (full, *self.ways(front)))
        }

    def unused(self) -> list[str]:
        """What stands in the team directory under the name of a folder that is elsewhere."""
        there = [front for front in self._full if os.path.lexists(f"{self._root}/{front}")]
        return sorted(front for front in there if front not in self._own)


def recorded(db: sqlite3.Connection) -> dict[str, str]:
    """Where the first entry says that events and chats are; {} in a ledger without entries.

    Raises:
        ValueError: it does not say so in a way that we would have written.
    """
    row = db.execute("SELECT body FROM entries WHERE seq = 0").fetchone()
    if row is None:
        return {}
    try:
        body = orjson.loads(row[0])
    except (ValueError, TypeError):  # no JSON; or erased
        body = None
    events, chat = (body.get(front) if isinstance(body, dict) else None for front in (EVENTS, CHAT))
    if not isinstance(events, str) or not isinstance(chat, str):
        message = "entry 0 does not say where the events and the chats are"
        raise ValueError(message)  # noqa: TRY004 - it is the value in the ledger that is wrong
    problem = places_problem(events, chat)
    if problem is not None:
        message = f"entry 0: {problem}"
        raise ValueError(message)
    return {EVENTS: events, CHAT: chat}
