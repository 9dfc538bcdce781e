"""Where a team keeps its events, chats and logs: the paths that entries record. Pure.

The first entry records the folders that all other entries and messages call ``events`` and
``chat``. An entry of its own (``place.added``) adds each further folder under a name of one word:
its files are called ``chat/<name>/...`` or ``events/<name>/...``, wherever it lies, those of a
folder with a decision log ``scribe/<name>/...``.

A recorded path is relative to the team directory (``events``), or leaves it by a single ``..`` and
stays in the project (``../bus``), or is absolute. It has forward slashes and its shortest spelling.
"""

from __future__ import annotations

import re

DATABASE = "ledger.db"  # the file of the team directory that is the ledger
RECORD = "record"  # the folder of the team directory that holds the ledger as plain files
SEAL = "checkpoint"  # the name that its format gives the seal, in a record and in an export
SPOOL = "spool"  # its folder for the files of programs that are being run
HOOKS = "hooks"  # the folder in it for what hooks of agents leave
EVIDENCE = "evidence"  # its folder for the bytes of sessions
COUNTS = "counts.json"  # the file of the team directory that says how much the other files show
SEARCH = "ledger.db-search"  # its file with an index over decisions; it can be made again
EVENTS = "events"
CHAT = "chat"
LOGS = "scribe"
WORKERS = "workers"
NOVA = "nova"  # its folder for the files of Nova runs
WORK_EFFORTS = "_work_efforts"
"""The folder beside the team directory with what people keep of each work effort."""
PROCESSED = "processed"  # the folder of a queue that holds its acknowledged events
ARCHIVE = "archive"
"""The folder beside chats into which the original tools move one that is begun anew."""
PLACE_IDS = ("place-", "place.")
"""Between these two are the ids of the entries that add folders, and no others."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}"
_HOLDING = (".", "..")  # the team directory, and the folder around it
# Folders of the team directory that hold something else.
_TAKEN = (LOGS, WORKERS, RECORD, SPOOL, NOVA)
_LONGEST = 4096


def place_problem(place: str, holds: str = CHAT) -> str | None:
    """What is wrong with a recorded path; None where nothing is. ``holds``: what stands there.

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
    below = holds == LOGS and len(parts) > 1 and parts[0] == LOGS
    if parts[0] in _TAKEN and not (outside or below or place.startswith("/")):
        return f"{place!r}: {parts[0]}/ holds something else of the team"
    return None


def place_id(holds: str, name: str) -> str:
    """The id of the entry that adds a folder: a name is given once.

    >>> place_id("chat", "talk")
    'place-chat/talk'
    """
    return f"{PLACE_IDS[0]}{holds}/{name}"


def added_place_problem(holds: str, name: str, path: str) -> str | None:
    """What is wrong with a folder that is added; None where nothing is.

    It may also be the team directory itself (``.``) or the folder around it (``..``).

    >>> added_place_problem("chat", "talk", "../talk"), added_place_problem("chat", "shop", "..")
    (None, None)
    >>> added_place_problem("events", "processed", "../bus")
    "'processed' cannot be the name of a folder that is added"
    """
    if holds not in (CHAT, EVENTS, LOGS):
        return f"{holds!r}: a folder holds {CHAT}, {EVENTS} or {LOGS}"
    if not re.fullmatch(_NAME, name) or name in (PROCESSED, ARCHIVE):
        return f"{name[:100]!r} cannot be the name of a folder that is added"
    return None if path in _HOLDING else place_problem(path, holds)


def places_problem(events: str, chat: str) -> str | None:
    """What is wrong with the two recorded paths, each and together; None where nothing is.

    >>> places_problem("../talk", "../talk/chat")
    "events in '../talk' and chats in '../talk/chat': neither may hold the other"
    """
    first, second = f"{events}/", f"{chat}/"
    if first.startswith(second) or second.startswith(first):
        return f"events in {events!r} and chats in {chat!r}: neither may hold the other"
    return place_problem(events) or place_problem(chat)
