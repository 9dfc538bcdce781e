"""The layout of a team directory: which files it holds. Pure.

``LAYOUT`` is the one table of the classes of files. Whatever needs a folder, an ending, a mode or a
limit of theirs takes it from there.

A person may keep some folders elsewhere; ``tripod.projections.disk`` alone knows where such a path
really is. Everywhere in the program events still stand in ``events/`` and chats in ``chat/``; those
of folders that were added stand in ``events/<name>/``, ``events/processed/<name>/`` and
``chat/<name>/``, and decision logs of other folders than ``scribe/`` in ``scribe/<name>/``.
"""

from typing import Literal, NamedTuple

from tripod.ledger import (
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

    @property
    def path(self) -> str:
        """The path of the one file of the class that has a fixed name."""
        return f"{self.folder}/{self.names[0]}".lstrip("/")


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


REPLACED = r"ledger\.db\.(?:replaced|damaged)-[0-9]+|record\.replaced-[0-9]+/"
"""Pattern of what ``tripod restore`` and ``rebuild`` put aside, by path; a folder ends in /."""
