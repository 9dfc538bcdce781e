"""Where a team keeps its events and its chats: the two paths that the first entry records.

A path from the team directory (``events``), one that leaves it by a single ``..`` and so stays in
the project (``../bus``), or an absolute one; with forward slashes, and in its shortest spelling:
what is spelled otherwise was not recorded by us. The disk is not looked at.
"""

from __future__ import annotations

__all__ = ["CHAT", "EVENTS", "RECORD", "SEARCH", "SPOOL", "place_problem", "places_problem"]

RECORD = "record"
"""The folder of the team directory that holds the ledger as plain files."""

SPOOL = "spool"
"""The folder of the team directory that holds the files of programs that are being run."""

SEARCH = "ledger.db-search"
"""The file of the team directory that holds an index over decisions; it can be made again."""

EVENTS = "events"
CHAT = "chat"
# Folders of the team directory that hold something else.
_TAKEN = ("scribe", "workers", RECORD, SPOOL)
_LONGEST = 4096


def place_problem(place: str) -> str | None:
    """What is wrong with a recorded path; None where nothing is.

    >>> place_problem("../bus"), place_problem("/srv/team/bus")
    (None, None)
    >>> place_problem("../../bus")
    "'../../bus' leaves the project, or is not in its shortest spelling"
    """
    if not place or len(place) > _LONGEST:
        return f"a path takes 1 to {_LONGEST} characters"
    if any(ord(character) < 32 or ord(character) == 127 for character in place):
        return f"{place!r} holds control characters"
    if any("\ud800" <= character <= "\udfff" for character in place):
        return f"{place!r} is not UTF-8"
    outside = place.startswith("../")
    parts = place.removeprefix("/").removeprefix("../" if outside else "").split("/")
    if any(part in ("", ".", "..") for part in parts):
        return f"{place!r} leaves the project, or is not in its shortest spelling"
    if parts[0] in _TAKEN and not outside and not place.startswith("/"):
        return f"{place!r}: {parts[0]}/ holds something else of the team"
    return None


def places_problem(events: str, chat: str) -> str | None:
    """What is wrong with the two recorded paths, each and together; None where nothing is.

    >>> places_problem("../talk", "../talk/chat")
    "events in '../talk' and chats in '../talk/chat': neither may hold the other"
    """
    first, second = f"{events}/", f"{chat}/"
    if first.startswith(second) or second.startswith(first):
        return f"events in {events!r} and chats in {chat!r}: neither may hold the other"
    return place_problem(events) or place_problem(chat)
