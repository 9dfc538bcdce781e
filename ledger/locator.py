"""Finds the team directory that a command works on: one rule for every command, the judge's too.

In this order: the path that is given (``-C``, ``--team``, a PATH), the one that the variable
``TRIPOD_LEDGER`` names, the nearest ``.nbs/`` above. Only names are looked at, no file is opened
but the first bytes of a database that stands outside of a ``.nbs/``.
"""

from __future__ import annotations

import os
import stat

from tripod.ledger.files import read_plain_file
from tripod.ledger.places import CHAT, COUNTS, DATABASE, EVENTS, LOGS, RECORD, WORKERS
from tripod.ledger.sqlite.schema import APPLICATION_ID

FOLDER = ".nbs"
LEDGER = "TRIPOD_LEDGER"
"""The variable that names a team directory, its project, or the ledger in it."""

_FOLDERS = (CHAT, EVENTS, LOGS)
_TEAM_FOLDERS = (*_FOLDERS, WORKERS)
_TRACES = (DATABASE, RECORD, COUNTS)
_ID_AT = 68  # where a SQLite file has its application's number, in 4 bytes


def user_home() -> str:
    """The folder of a user's own keys, seals and handle, an absolute path outside of any team."""
    given = os.environ.get("TRIPOD_HOME")
    if given:
        return os.path.abspath(given)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(os.path.abspath(base), "tripod")


def has_ledger(path: str) -> bool:
    """Whether a file or folder ``ledger.db`` stands in the folder ``path``."""
    return os.path.lexists(os.path.join(path, DATABASE))


def is_ledger_folder(path: str) -> bool:
    """Whether ``path`` is a folder with a ledger of ours in it and not in a ``.nbs/``.

    Earlier versions began a ledger so, in the folder around a queue or a chat.
    """
    try:
        front = read_plain_file(os.path.join(path, DATABASE), _ID_AT + 3)
    except OSError:
        return False
    return front[_ID_AT:] == APPLICATION_ID.to_bytes(4, "big")


def named() -> str | None:
    """The team directory that the variable names, whether it is there or not; None: it is unset."""
    given = os.environ.get(LEDGER)
    if not given:
        return None
    path = os.path.abspath(given)
    if os.path.basename(path) == DATABASE:
        return os.path.dirname(path)
    inner = os.path.join(path, FOLDER)
    return inner if not has_ledger(path) and has_ledger(inner) else path


def team_of(path: str) -> str | None:
    """The team directory that a folder stands for: itself, or the ``.nbs`` in it; else None.

    A folder called ``.nbs`` always stands for itself. A folder below one stands for no team: a
    stranger may have put a ledger there, for a judge to find it clean.
    """
    if _is_within(path):
        return None
    inner = os.path.join(path, FOLDER)
    is_inner = os.path.basename(os.path.abspath(path)) == FOLDER
    if not is_inner and os.path.isdir(inner):
        traces = any(os.path.lexists(os.path.join(inner, name)) for name in _TRACES)
        return inner if traces or not is_ledger_folder(path) else path
    names = (DATABASE, RECORD) if is_inner else (DATABASE,)
    if any(os.path.lexists(os.path.join(path, name)) for name in names):
        return path
    return path if any(os.path.isdir(os.path.join(path, name)) for name in _FOLDERS) else None


def nearest_team(start: str) -> str | None:
    """The nearest team directory of the folder ``start``, an absolute path, or of one above.

    It may have no ledger yet. One that another user put into a folder in which everybody may
    write, such as ``/tmp``, is passed over.
    """
    path = start
    while True:
        parent, name = os.path.split(path)
        is_part = _is_within(path)
        if name == FOLDER and os.path.isdir(path) and not is_part:
            return path
        # A folder inside a team directory is never another team.
        team = os.path.join(path, FOLDER)
        is_part = is_part or name == FOLDER
        if not is_part and os.path.isdir(team) and not _is_planted(path, team):
            return team_of(path) or team
        if not is_part and is_ledger_folder(path) and not _is_planted(path, f"{path}/{DATABASE}"):
            return path
        if parent == path:
            return None
        path = parent


def _is_within(path: str) -> bool:
    """Whether ``path`` lies in a ``.nbs/``, by its name; that directory itself does not."""
    return FOLDER in os.path.dirname(os.path.abspath(path)).split(os.sep)


def _is_planted(around: str, path: str) -> bool:
    """Whether a stranger may have put ``path`` into the folder ``around``."""
    try:
        return _is_open(around) and os.stat(path).st_uid not in (0, os.geteuid())
    except OSError:
        return False


def _is_open(folder: str) -> bool:
    """Whether everybody may make files in a folder, as in ``/tmp``."""
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH)
    except FileNotFoundError:
        return False


def team_to_judge(given: str | None) -> str:
    """What a command that only looks is to look at: a path that need not be there.

    ``given`` as it is; else the directory that the variable names, the nearest one above, or the
    current folder.
    """
    if given is not None:
        return given
    here = os.getcwd()
    return named() or nearest_team(here) or here


def no_team_problem(path: str) -> str:
    """Why a folder that is no team directory cannot be judged, and what to do next."""
    return (
        f"{path} is no team directory: it holds neither {FOLDER} nor chat. Give the project's "
        f"folder, or begin a ledger in this one: `tripod init {path}`"
    )


def team_to_begin(path: str) -> str:
    """The team directory that is to be begun in the folder ``path``, an absolute path.

    It is the folder itself where that is called ``.nbs``, has a ledger, looks like a team
    directory or is the one that the variable names.
    """
    inner = os.path.join(path, FOLDER)
    parts = sum(os.path.isdir(os.path.join(path, name)) for name in _TEAM_FOLDERS)
    is_root = os.path.basename(path) == FOLDER or (
        not os.path.isdir(inner) and (parts > 1 or path == named() or is_ledger_folder(path))
    )
    return path if is_root else inner


def team_around(folder: str, holds: str = CHAT) -> str:
    """The team directory that a folder of chats or events belongs to; it may have to be made.

    The variable's; else the nearest above; else ``.nbs`` at the top of the repository around.
    Outside of one it is beside the queue, or the chat's file; beside its folder where that is
    called as a team's own is. ``folder`` is an absolute path.
    """
    found = named() or nearest_team(folder)
    if found is not None:
        return found
    top = repository_around(folder)
    if top is None:
        around, name = os.path.split(folder)
        is_part = holds == EVENTS or name in _TEAM_FOLDERS
        top = around if is_part and around != "/" and not _is_open(around) else folder
    return os.path.join(top, FOLDER)


def repository_around(folder: str) -> str | None:
    """The folder itself or the nearest above it that holds a ``.git``; None if no folder does."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder
