"""The layout of a team directory: which files it holds, and where its folders really are.

``LAYOUT`` is the one table of the classes of files. Whatever needs a folder, an ending, a mode or a
limit of theirs takes it from there.

A person may keep some folders elsewhere; ``Places`` says where what is recorded of them leads.
Everywhere else in the program events stand in ``events/`` and chats in ``chat/``; those of folders
that were added stand in ``events/<name>/``, ``events/processed/<name>/`` and ``chat/<name>/``, and
decision logs of other folders than ``scribe/`` in ``scribe/<name>/``.
``Disk`` alone asks a ``Places`` where such a path really is.
"""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from tripod.ledger import (
    ARCHIVE,
    CHAT,
    COUNTS,
    DATABASE,
    EVENTS,
    LOGS,
    PROCESSED,
    RECORD,
    SEARCH,
    SPOOL,
    WORKERS,
)

MIB = 1024 * 1024


class FileClass(NamedTuple):
    """One class of files in a team directory.

    ``folder``: '' is the team directory itself. A file is of the class if it has one of ``names``,
    begins with ``front``, or has one of the endings ``ends``. ``mode``: of a file that we make.
    ``limit``: how many bytes are read when one is taken in. ``grows``: it is only ever added to.
    ``locked``: the original tools lock ``<path>.lock`` while they rewrite it. ``writer``: ``team``,
    our commands and the original tools; ``ledger``, we alone; ``program``, a worker's program;
    ``person``, with an editor; ``host``, we alone, and git leaves it out.
    """

    name: str
    folder: str
    writer: Literal["team", "ledger", "program", "person", "host"]
    names: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    front: str | None = None
    mode: int = 0o644
    limit: int = 64 * MIB
    grows: bool = False
    locked: bool = False

    def holds(self, name: str) -> bool:
        """Whether a file of this name, in the folder of the class, is of the class."""
        is_front = self.front is not None and name.startswith(self.front)
        return is_front or name in self.names or name.endswith(self.ends)


EVENT = FileClass("event", EVENTS, "team", ends=(".event",))
CONFIG = FileClass("configuration", EVENTS, "person", names=("config.yaml",), limit=MIB)
DONE = FileClass("processed event", f"{EVENTS}/{PROCESSED}", "team", ends=(".event",))
CHAT_FILE = FileClass("chat", CHAT, "team", ends=(".chat",), mode=0o600, locked=True)
CURSORS = FileClass("read positions", CHAT, "team", ends=(".chat.cursors",), mode=0o600, limit=MIB)
LOG_FILE = FileClass("decision log", LOGS, "team", ends=(".md",), grows=True, locked=True)
WORKER = FileClass("worker", WORKERS, "team", ends=(".md",), limit=MIB)
WORKER_LOG = FileClass(
    "worker's output", WORKERS, "program", ends=(".log",), limit=16 * MIB, grows=True
)
COUNTS_FILE = FileClass("counts", "", "ledger", names=(COUNTS,), limit=16 * MIB)
SUPERVISOR = FileClass("supervisor's notes", "", "person", names=("supervisor.md",), limit=MIB)
POLICY = FileClass("policy", "", "person", front="policy", limit=MIB)
IGNORED = FileClass("git's list of ignored files", "", "person", names=(".gitignore",), limit=MIB)
LEDGER = FileClass(
    "ledger",
    "",
    "host",
    names=(DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", SEARCH, f"{SEARCH}-journal"),
)

LAYOUT = (
    *(EVENT, CONFIG, DONE, CHAT_FILE, CURSORS, LOG_FILE, WORKER, WORKER_LOG),
    *(COUNTS_FILE, SUPERVISOR, POLICY, IGNORED, LEDGER),
)
FOLDERS = tuple(dict.fromkeys(one.folder for one in LAYOUT if one.folder))
"""The folders of a new team directory, each behind the one that holds it."""

HIDDEN = (CHAT, EVENTS, DATABASE, RECORD, WORKERS)
"""What a reviewer must not see, by its name in the team directory: all but the decision logs."""
HIDDEN_BESIDE = ("..", *sorted((*HIDDEN, LOGS, SPOOL)))
"""What must not stand beside a reviewer's prompt, in which the decision logs are."""


def in_folder(folder: str) -> list[FileClass]:
    """The classes of the files in one of the team's own folders."""
    return [one for one in LAYOUT if one.folder == folder]


_BY_FOLDER = {folder: in_folder(folder) for folder in ("", *FOLDERS)}


def class_of(path: str) -> FileClass | None:
    """The class of the file at a path of the team, in folders that were added, too.

    >>> class_of("chat/talk/live.chat").name, class_of("events/processed/1-a-b-2.event").name
    ('chat', 'processed event')
    >>> class_of("record/checkpoint") is None
    True
    """
    folder, _, name = path.rpartition("/")
    top, *rest = folder.split("/")
    if top == EVENTS and rest[:1] == [PROCESSED]:
        top = DONE.folder
    return next((one for one in _BY_FOLDER.get(top, ()) if one.holds(name)), None)


class Places:
    """Maps the first parts of paths: ``{"events": "../bus"}``, from ``root`` or absolute.

    A key of two parts, ``chat/talk`` or ``events/bus``, is a folder that was added.
    """

    def __init__(self, root: str, places: Mapping[str, str]) -> None:
        """Nothing is looked at yet; what stands at its usual place needs no mention."""
        self._root = root
        away = {front: place for front, place in places.items() if front != place or "/" in front}
        self._full = {front: _joined(root, place) for front, place in away.items()}
        inside = {front: place for front, place in away.items() if not place.startswith("/")}
        self._ways = {
            front: [
                f"{root}/{place[:at]}"
                for at, character in enumerate(place)
                if character == "/" and place[:at] != ".."
            ]
            for front, place in inside.items()
        }
        self._own = {
            place.partition("/")[0]
            for front, place in inside.items()
            if not ("/" in front and place.partition("/")[0] in (EVENTS, CHAT, LOGS, ".", ".."))
        }
        self.hidden = {front for front in away if "/" not in front} | self._own
        """Names in the directory itself that are no files of the team there."""
        self.added = [front for front in away if "/" in front]
        """The folders that were added, as paths: ``chat/<name>``, and so on."""
        self.met: set[str] = set()
        """Files within ``scribe/`` that a command was told to take for logs, by their names."""
        for front in self.added:
            holds, _, name = front.partition("/")
            if holds == EVENTS:
                self._full[f"{EVENTS}/{PROCESSED}/{name}"] = f"{self._full[front]}/{PROCESSED}"

    def _front(self, path: str) -> str:
        """The first parts of a path about which something is said; '' where nothing is."""
        if self.added:
            one, *rest = path.split("/", 3)[:3]
            for count in (2, 1):
                front = "/".join((one, *rest[:count]))
                if len(rest) >= count and front in self._full:
                    return front
        front = path.partition("/")[0]
        return front if front in self._full else ""

    def full(self, path: str) -> str | None:
        """The path for the system; None where nothing is said about its first parts."""
        if not self._full:
            return None
        front = self._front(path)
        return self._full[front] + path[len(front) :] if front else None

    def links(self, folder: str) -> list[str]:
        """The folders that lead to one of the team's: a link may stand in none of their places."""
        parts = folder.split("/") if folder else []
        front = self._front(folder) if parts and self._full else ""
        skipped = front.count("/") + 1 if "/" in front else 1
        ways = ["/".join(parts[: n + 1]) for n in range(len(parts)) if n + 1 >= skipped]
        base = front.replace(f"/{PROCESSED}/", "/")
        above = [self._full[base]] if base != front else []
        own = (self.full(way) or f"{self._root}/{way}" for way in ways)
        return [*self._ways.get(base, []), *above, *own]

    def absent(self) -> dict[str, str]:
        """First parts and paths of the folders that are not there, or have become links."""
        return {
            front: os.path.normpath(full)
            for front, full in self._full.items()
            if not front.startswith(f"{EVENTS}/{PROCESSED}/")
            and (
                not os.path.isdir(full)
                or any(os.path.islink(way) for way in (full, *self._ways.get(front, [])))
            )
        }

    def unused(self) -> list[str]:
        """What stands in the team directory under the name of a folder that is elsewhere."""
        fronts = [front for front in self._full if "/" not in front]
        there = [front for front in fronts if os.path.lexists(f"{self._root}/{front}")]
        return sorted(front for front in there if front not in self._own)

    # What is looked through -------------------------------------------------------------------

    def missing(self) -> set[str]:
        """The added folders that cannot be looked at now: nothing in them is taken for lost."""
        gone = self.absent() if self.added else {}
        return {
            front
            for front in self.added
            if front in gone or not os.access(self._full[front], os.R_OK | os.X_OK)
        }

    def queues(self) -> list[str]:
        """What the names of events begin with, of each queue that is there: '', ``<name>/``."""
        return self._names(EVENTS)

    def chats(self) -> list[str]:
        """What the names of chats begin with, of each folder that is there: '', ``<name>/``."""
        return self._names(CHAT)

    def archives(self) -> list[str]:
        """Prefixes of the folders into which restarted chats are moved."""
        return [f"{name}{ARCHIVE}/" for name in self.chats()]

    def logs(self) -> list[str]:
        """What the names of decision logs begin with, of each folder that is there."""
        return self._names(LOGS)

    def _names(self, holds: str) -> list[str]:
        if not self.added:
            return [""]
        gone = self.missing()
        fronts = [f for f in self.added if f.startswith(f"{holds}/") and f not in gone]
        return ["", *(f"{front.removeprefix(f'{holds}/')}/" for front in sorted(fronts))]

    def queue_folders(self) -> list[str]:
        """Each queue's folder and that of its processed events, as paths of the team."""
        return [
            f"{front}{name}".rstrip("/")
            for name in self.queues()
            for front in (f"{EVENTS}/", f"{EVENTS}/{PROCESSED}/")
        ]

    def chat_folders(self) -> list[str]:
        """Each folder of chats, as a path of the team."""
        return [f"{CHAT}/{name}".rstrip("/") for name in self.chats()]

    def log_folders(self) -> list[str]:
        """Each folder with decision logs, as a path of the team."""
        return [f"{LOGS}/{name}".rstrip("/") for name in self.logs()]

    def folders(self) -> list[str]:
        """Each folder of the team, those that were added too; '' is the team directory itself."""
        shared = (*self.queue_folders(), *self.chat_folders(), *self.log_folders())
        return ["", *shared, WORKERS]


def _joined(root: str, place: str) -> str:
    """The path of a recorded one for the system."""
    if place.startswith("/"):
        return place
    return os.path.normpath(f"{root}/{place}") if place in (".", "..") else f"{root}/{place}"
