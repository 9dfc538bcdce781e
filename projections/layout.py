"""The layout of a team directory: which files it holds. Pure.

``LAYOUT`` is the one table of the classes of files: every folder, ending, mode and limit of theirs
is taken from it. Paths are those of a team whose folders stand at their usual places: events in
``events/``, chats in ``chat/``, and those of folders that were added in ``events/<name>/``,
``events/processed/<name>/``, ``chat/<name>/`` and ``scribe/<name>/``. Where a folder really is,
only ``tripod.projections.disk`` knows.
"""

from typing import NamedTuple

from tripod.ledger.places import (
    CHAT,
    COUNTS,
    DATABASE,
    EVENTS,
    EVIDENCE,
    LOGS,
    NOVA,
    PROCESSED,
    RECORD,
    SEARCH,
    SPOOL,
    WORKERS,
)

MIB = 1024 * 1024
LIVE = "log.md"  # the log that a team begins with


class FileClass(NamedTuple):
    """One class of files in a team directory."""

    folder: str
    """'' is the team directory itself."""
    names: tuple[str, ...] = ()
    """Names of files of the class, beside those that end in one of ``ends`` or begin with
    ``front``."""
    ends: tuple[str, ...] = ()
    front: str | None = None
    mode: int = 0o644
    """Of a file that we make."""
    limit: int = 64 * MIB
    """How many bytes are read when one is taken in."""
    locked: bool = False
    """The original tools lock ``<path>.lock`` while they rewrite it."""

    def holds(self, name: str) -> bool:
        """Whether a file of this name, in the folder of the class, is of the class."""
        is_front = self.front is not None and name.startswith(self.front)
        return is_front or name in self.names or name.endswith(self.ends)

    @property
    def path(self) -> str:
        """The path of the one file of the class that has a fixed name."""
        return f"{self.folder}/{self.names[0]}".lstrip("/")


EVENT = FileClass(EVENTS, ends=(".event",))
CONFIG = FileClass(EVENTS, names=("config.yaml",), limit=MIB)
DONE = FileClass(f"{EVENTS}/{PROCESSED}", ends=(".event",))
CHAT_FILE = FileClass(CHAT, ends=(".chat",), mode=0o600, locked=True)
CURSORS = FileClass(CHAT, ends=(".chat.cursors",), mode=0o600, limit=MIB)
LOG_FILE = FileClass(LOGS, ends=(".md",), locked=True)
WORKER = FileClass(WORKERS, ends=(".md",), limit=MIB)
WORKER_LOG = FileClass(WORKERS, ends=(".log",), limit=16 * MIB)
COUNTS_FILE = FileClass("", names=(COUNTS,), limit=16 * MIB)
SUPERVISOR = FileClass("", names=("supervisor.md",), limit=MIB)
POLICY = FileClass("", front="policy", limit=MIB)
IGNORED = FileClass("", names=(".gitignore",), limit=MIB)
LEDGER = FileClass(
    "", names=(DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", SEARCH, f"{SEARCH}-journal")
)

LAYOUT = (
    *(EVENT, CONFIG, DONE, CHAT_FILE, CURSORS, LOG_FILE, WORKER, WORKER_LOG),
    *(COUNTS_FILE, SUPERVISOR, POLICY, IGNORED, LEDGER),
)
FOLDERS = tuple(dict.fromkeys(one.folder for one in LAYOUT if one.folder))
"""The folders of a new team directory, each behind the one that holds it."""

HIDDEN = (CHAT, EVENTS, DATABASE, RECORD, WORKERS)
"""What a reviewer must not see, by its name in the team directory: all but the decision logs."""
HIDDEN_BESIDE = ("..", *sorted((*HIDDEN, EVIDENCE, LOGS, NOVA, SPOOL)))
"""What must not stand beside the prompt of an isolated run, which holds all that it may see."""


def config_of(queue: str) -> str:
    """The path of the configuration of a queue: '' the team's own, else ``<name>/``."""
    return f"{CONFIG.folder}/{queue}{CONFIG.names[0]}"


def in_folder(folder: str) -> list[FileClass]:
    """The classes of the files in one of the team's own folders."""
    return [one for one in LAYOUT if one.folder == folder]


_BY_FOLDER = {folder: in_folder(folder) for folder in ("", *FOLDERS)}


def layout_class_of(path: str) -> FileClass | None:
    """The class of the file at a path of the team, in folders that were added, too.

    >>> layout_class_of("chat/talk/live.chat") is CHAT_FILE
    True
    >>> layout_class_of("events/processed/1-a-b-2.event") is DONE
    True
    >>> layout_class_of("record/checkpoint") is None
    True
    """
    folder, _, name = path.rpartition("/")
    top, *rest = folder.split("/")
    if top == EVENTS and rest[:1] == [PROCESSED]:
        top = DONE.folder
    return next((one for one in _BY_FOLDER.get(top, ()) if one.holds(name)), None)


REPLACED = r"ledger\.db\.(?:replaced|damaged)-[0-9]+|record\.replaced-[0-9]+/"
"""Pattern of what ``tripod restore`` and ``rebuild`` put aside, by path; a folder ends in /."""
