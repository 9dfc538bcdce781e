"""Finds the team that a drop-in command is to work on, and begins its ledger where there is none.

The original tools know no ledger, only folders and files: the events' folder, a chat's file, the
log's. The team directory is the folder around; ``TRIPOD_LEDGER`` names another one, which then
keeps the ledger, and records where events and chats are. Either way there is one code path: the
ledger is kept, and what was there before is taken in whole, without changing a byte of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from ledger.locating import DATABASE, FOLDER, LEDGER, named
from ledger.places import CHAT, EVENTS, RECORD
from projections.disk import Disk
from tripod.bus import NOBODY
from tripod.doors import FAILURES, Codes, end_at_once, report
from tripod.dropin.words import Words
from tripod.errors import BadArgumentError, NoTeamError, RefusedError
from tripod.opening import opened, opened_at, tell
from tripod.output import one_line, remark
from tripod.team import Team

__all__ = [
    "actor_of",
    "chat_path",
    "leave",
    "may_have_ledger",
    "team_here",
    "team_of",
    "team_of_project",
]


def leave(work: Callable[[Sequence[str]], int | None], codes: Codes) -> NoReturn:
    """Do a command's work on the words that it was started with, and leave with its exit code."""
    end_at_once()
    try:
        code = work(sys.argv[1:]) or 0
    except FAILURES as error:
        code = report(error, codes)
    except KeyboardInterrupt:
        remark("stopped")
        code = 130
    sys.exit(code)


def actor_of(words: Words, option: str = "as") -> str:
    """Who acts: as the option says, or the handle that the team's tools give to a worker.

    Raises:
        BadArgumentError: that is no handle.
    """
    given = words.options.get(option)
    who = os.environ.get("NBS_HANDLE", "") if given is None else given
    if not who and given is None:
        return NOBODY
    from projections.formats.chat import valid_handle

    problem = valid_handle(who)
    if problem is not None:
        place = "NBS_HANDLE" if given is None else f"--{option}"
        raise BadArgumentError(f"{place}: {problem.removeprefix('handle: ')}")
    return who


@contextmanager
def team_of(front: str, folder: str, events: str | None = None) -> Iterator[Team]:
    """The team whose ``events``, ``chat``, ``scribe`` or ``workers`` stand in ``folder``, opened.

    ``events`` is the folder in which its events are said to be as well.

    Raises:
        NoTeamError: there is no such folder.
        RefusedError: the ledger there is one of other folders, or none can be begun.
        LedgerError: it is damaged, or cannot be written.
    """
    if not os.path.isdir(folder):
        what = "is no folder" if os.path.lexists(folder) else "is not there"
        message = f"{folder} {what}: make the folder first, or give the path of the right one"
        raise NoTeamError(message)
    full = os.path.abspath(folder)
    root = _root(front, full)
    named = {front: full} if events is None else {front: full, EVENTS: os.path.abspath(events)}
    with opened_at(root, lambda: _begin(root, lambda: _places(root, front, named))) as team:
        for name, where in named.items():
            if not _is_kept(team.disk, name, where):
                message = (
                    f"{root}/{DATABASE} is the ledger of a team that keeps its {name} in "
                    f"{os.path.normpath(team.disk.full(name))}, not in {where}: give that "
                    f"folder, or name another team directory in {LEDGER}"
                )
                raise RefusedError(message)
        yield team


@contextmanager
def team_of_project(project: str) -> Iterator[Team]:
    """The team that works in the folder ``project``, opened.

    Raises:
        NoTeamError: there is no such folder.
        LedgerError: its ledger is damaged, or none can be begun.
    """
    if not os.path.isdir(project):
        message = f"{project} is no folder: give the project's"
        raise NoTeamError(message)
    root = named() or os.path.join(os.path.abspath(project), FOLDER)
    with opened_at(root, lambda: _begin(root, dict)) as team:
        yield team


@contextmanager
def team_here() -> Iterator[Team]:
    """The team of the folder in which the command was called, or above; or that of the variable.

    Raises:
        NoTeamError: there is none.
        LedgerError: its ledger is damaged.
    """
    with opened(None) as team:
        yield team


def chat_path(file: str) -> str:
    """The full path of a chat that is given; of one that a symbolic link leads to, where it is.

    A link in the place of a team's own chat that leads out of every team is not followed: the
    ledger has the chat, and nothing is read or written through the link.
    """
    full = os.path.abspath(file)
    if not os.path.islink(full):
        return full
    there = os.path.realpath(full)
    own, other = (_has_ledger(os.path.dirname(path)) for path in (full, there))
    return full if own and not other else there


def may_have_ledger(folder: str) -> bool:
    """Whether what is not in ``folder`` may be in a ledger: none is begun to ask for it."""
    return named() is not None or _has_ledger(folder)


def _has_ledger(folder: str) -> bool:
    around = os.path.dirname(folder)
    places = (around, os.path.join(around, FOLDER))
    return any(os.path.lexists(os.path.join(place, DATABASE)) for place in places)


def _is_kept(disk: Disk, front: str, full: str) -> bool:
    """Whether the team of this disk keeps its ``front`` in this very folder."""
    kept = disk.full(front)
    try:
        return kept == full or os.path.samefile(kept, full)
    except OSError:  # it is not there
        return False


def _root(front: str, full: str) -> str:
    """The team directory of a folder: the one around it, or that of the project around."""
    given = named()
    if given is not None:
        return given
    around = os.path.dirname(full)
    project = os.path.join(around, FOLDER)
    if not os.path.lexists(f"{around}/{DATABASE}") and os.path.lexists(f"{project}/{DATABASE}"):
        with Team(project) as team:
            if _is_kept(team.disk, front, full):
                return project
    return around


# Beginning -------------------------------------------------------------------------------------


def _begin(root: str, places: Callable[[], dict[str, str]]) -> None:
    """Begin the ledger, and say so in one line; ``places`` says where events and chats are."""
    from tripod import adopt

    if os.path.lexists(f"{root}/{DATABASE}"):
        with adopt.alone(root):  # another process is just beginning it; or it lost what it held
            return
    if os.path.lexists(root) and not os.path.isdir(root):
        message = f"{root} is no folder: name a team directory in {LEDGER}"
        raise NoTeamError(message)
    from tripod.cli.progress import shown
    from tripod.record import has_record

    if has_record(root):
        message = (
            f"{root} has no {DATABASE} but a record of one ({RECORD}/): `tripod init` restores "
            "the ledger from it"
        )
        raise RefusedError(message)
    with shown():
        found = adopt.init_at(root, places())
    tell(found.warnings)
    if found.begun:
        text = f"began the ledger {root}/{DATABASE}"
        if found.files:
            entries = f"{found.entries} {'entry' if found.entries == 1 else 'entries'}"
            text += f", with {entries} from {found.files} file{'' if found.files == 1 else 's'}"
            text += " of before"
        if found.key:
            text += f"; it is sealed by the new key {found.key}"
        remark(one_line(text))


def _places(root: str, front: str, named: dict[str, str]) -> dict[str, str]:
    """Where the first entry is to say that events and chats are; ``named`` are folders by name."""
    from tripod import adopt

    full = named[front]
    if front not in (EVENTS, CHAT) and full != os.path.join(root, front):
        message = (
            f"{full} is no folder that a ledger in {root} can keep: the team's {front} are in "
            f"{os.path.join(root, front)}"
        )
        raise RefusedError(message)
    folders = {
        name: where
        for name, where in named.items()
        if name in (EVENTS, CHAT) and (name == front or where != os.path.join(root, name))
    }
    if front in folders and os.path.dirname(full) != root and os.path.basename(full) == front:
        # A whole team whose ledger is elsewhere: its other folder stands beside this one.
        other = CHAT if front == EVENTS else EVENTS
        folders[other] = os.path.join(os.path.dirname(full), other)
        os.makedirs(folders[other], exist_ok=True)
    places = {}
    for name, folder in folders.items():
        place, problem = adopt.recordable(os.path.realpath(root), folder)
        if problem is None and place != name:
            problem = adopt.strange(name, folder)
        if problem is not None:
            raise RefusedError(f"no ledger can be begun for it: {problem}")
        places[name] = place
    return places
