"""Kinds of the ledger's beginning, of the team's places and inputs, and of files found on disk."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NotRequired, TypedDict

from tripod.ledger.entry import Draft
from tripod.ledger.kinds.base import (
    ERASED_FILE,
    MARK,
    MARKED,
    Bytes,
    Count,
    Erasure,
    Kind,
    Name,
    Observed,
    Sha256,
)
from tripod.ledger.places import added_place_problem, place_id, places_problem

Holds = Literal["chat", "events", "scribe"]


class Opened(TypedDict):
    """The first entry: whose ledger this is, and where the team keeps its events and chats.

    ``events`` and ``chat`` are paths from the team directory, which may leave it by one ``..``, or
    absolute ones; in entries and messages the folders are called ``events`` and ``chat`` wherever
    they are.
    """

    origin: Name
    project: str
    created: str
    scribe: str
    events: Name
    chat: Name


class PlaceAdded(TypedDict):
    """A further folder of chats or events was met: from here on it belongs to the team.

    With ``scribe`` a decision log was met: the log and its archives belong to the team, under the
    names ``<name>/<file>``, and nothing else of that folder does.

    ``path`` is a path as in the first entry; ``.`` is the team directory, ``..`` the folder around
    it. In entries and messages its chats are called ``<name>/<chat>`` and its events
    ``<name>/<file>``, wherever it is.
    """

    holds: Holds
    name: Name
    path: Name


class Adopted(TypedDict):
    """The past of an existing team directory ends here: entries before were taken in whole."""

    files: Count
    left_alone: list[str]


class ConfigProblem(TypedDict):
    """A line of the configuration that was not taken, and why."""

    line: Count
    key: str
    message: str


class ConfigChanged(TypedDict):
    """An input that people edit changed; without ``content``, and ``sha256`` empty: it went away.

    For ``events/config.yaml``, ``settings`` holds what was read from it, as decimal text or
    words, and ``problems`` what was not.
    """

    path: Name
    sha256: str
    content: NotRequired[Bytes | None]
    settings: NotRequired[dict[str, str | int] | None]
    problems: NotRequired[list[ConfigProblem] | None]


class EvidenceKept(TypedDict):
    """A log or transcript, kept by digest so that a later change of the file shows."""

    path: Name
    sha256: Sha256
    size: Count
    content: Bytes


class FileSeen(TypedDict):
    """A file among ours that could not be read as what its place says; kept as it is."""

    path: Name
    problem: str
    sha256: Sha256
    size: Count
    content: Bytes


class Displaced(TypedDict):
    """Bytes that stood where ours belong, kept before they were written over.

    ``content`` is left out where the file was missing: then it was written anew, and ``reason``
    says what was gone. ``path`` is a folder where many of its files were.
    """

    path: Name
    reason: str
    content: NotRequired[Bytes | None]


def _path(body: Mapping[str, Any]) -> str:
    return str(body["path"])


_STREAM = ("files/", _path)
OPENED = Kind(
    "ledger.opened",
    Opened,
    "ledger",
    rule=lambda body: places_problem(body["events"], body["chat"]),
    is_placed=True,
    line="{project}: {origin}",
)
ADOPTED = Kind("ledger.adopted", Adopted, "ledger", is_placed=True)
PLACE_ADDED = Kind(
    "place.added",
    PlaceAdded,
    "ledger",
    id=lambda body: place_id(body["holds"], body["name"]),
    rule=lambda body: added_place_problem(body["holds"], body["name"], body["path"]),
)
CONFIG_CHANGED = Kind(
    "config.changed",
    ConfigChanged,
    "config",
    observed=True,
    erasure=Erasure({"sha256": None, "content": MARKED, "problems": None}, _path),
    line="{path}",
)
EVIDENCE_KEPT = Kind(
    "evidence.kept",
    EvidenceKept,
    *_STREAM,
    observed=True,
    erasure=Erasure(ERASED_FILE, _path, is_copy=True),
    line="{path}",
)
FILE_SEEN = Kind(
    "file.seen",
    FileSeen,
    *_STREAM,
    observed=True,
    erasure=Erasure(ERASED_FILE | {"problem": MARK}, _path, is_copy=True),
    line="{path}: {problem}",
)
DISPLACED = Kind(
    "file.displaced",
    Displaced,
    *_STREAM,
    erasure=Erasure({"content": ERASED_FILE["content"]}, _path, is_copy=True),
    line="{path}: {reason}",
)


def team_evidence_kept(path: str, data: bytes, mtime_us: int, mode: int | None) -> Draft:
    """Keep a log as its program left it; ``mode`` where it differs from 0644."""
    observed: Observed = {"claim": "mtime", "mtime_us": mtime_us, "path": path}
    if mode is not None:
        observed["mode"] = mode
    digest = sha256(data).hexdigest()
    return EVIDENCE_KEPT.draft(
        {"path": path, "sha256": digest, "size": len(data), "content": data}, observed=observed
    )


KINDS = (OPENED, ADOPTED, PLACE_ADDED, CONFIG_CHANGED, EVIDENCE_KEPT, FILE_SEEN, DISPLACED)
