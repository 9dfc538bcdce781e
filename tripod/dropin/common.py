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
from contextlib import contextmanager, suppress
from typing import NoReturn

from tripod.bus.events import NOBODY
from tripod.doors import FAILURES, Codes, end_at_once, report
from tripod.dropin.words import Words
from tripod.errors import BadArgumentError, NoTeamError, NotFoundError, RefusedError
from tripod.ledger.locator import DATABASE, FOLDER, LEDGER, has_ledger, home_of, is_apart, named
from tripod.ledger.places import ARCHIVE, CHAT, EVENTS, RECORD
from tripod.ledger.places import LOGS as SCRIBE
from tripod.output import one_line, remark
from tripod.projections.disk import Disk
from tripod.team.open import opened, opened_at, tell
from tripod.team.team import Team


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
    from tripod.projections.chat.format import valid_handle

    problem = valid_handle(who)
    if problem is not None:
        place = "NBS_HANDLE" if given is None else f"--{option}"
        raise BadArgumentError(f"{place}: {problem.removeprefix('handle: ')}")
    return who


@contextmanager
def team_of(
    front: str, folder: str, events: str | None = None, *, meet: bool = True
) -> Iterator[Team]:
    """The team whose ``events``, ``chat``, ``scribe`` or ``workers`` stand in ``folder``, opened.

    A folder of chats or events that the team does not know yet is added to it. One of decision logs
    is where a log is met: see ``tripod.dropin.decisions``.

    Args:
        front: what stands in the folder.
        folder: its path.
        events: the folder in which its events are said to be as well.
        meet: whether the folder may be added; what is not there is no reason to.

    Raises:
        NoTeamError: there is no such folder.
        NotFoundError: it is no folder of the team, and not to be added.
        RefusedError: the ledger is one of other folders, or none can be begun.
        LedgerError: it is damaged, or cannot be written.
    """
    if not os.path.isdir(folder):
        what = "is no folder" if os.path.lexists(folder) else "is not there"
        raise NoTeamError(
            f"{folder} {what}: make the folder first, or give the path of the right one"
        )
    full = os.path.abspath(folder)
    root = _root(front, full)
    named = {front: full} if events is None else {front: full, EVENTS: os.path.abspath(events)}
    with opened_at(root, lambda: _begin(root, lambda: _places(root, front, named))) as team:
        for name, where in named.items():
            if not meet and known_in(team, name, where) is None:
                raise NotFoundError(
                    f"{where} is no folder of the team in {root}: give the right path"
                )
            _meet(team, name, where)
        if EVENTS in named:
            team.queue = known_in(team, EVENTS, named[EVENTS]) or ""
        elif front == CHAT:
            # The original looks for the events' folder beside the chats'.
            team.queue = known_in(team, EVENTS, _beside(full)) or ""
        yield team


def known_in(team: Team, front: str, folder: str) -> str | None:
    """What the names of the events or chats in a folder begin with; None: it is no team's folder.

    '' for the team's own folder, ``<name>/`` for one that was added.
    """
    disk = team.disk
    for kept in (front, *(added for added in disk.places.added if added.startswith(f"{front}/"))):
        if _is_kept(disk, kept, folder):
            return f"{kept}/"[len(front) + 1 :]
        archive = f"{kept}/{ARCHIVE}"
        if (
            front == CHAT
            and os.path.basename(folder) == ARCHIVE
            and _is_kept(disk, archive, folder)
        ):
            return f"{archive}/"[len(front) + 1 :]
    return None


def _beside(folder: str) -> str:
    """The events' folder that the original takes for a chat's."""
    return os.path.join(os.path.dirname(folder), EVENTS)


def _meet(team: Team, front: str, folder: str) -> None:
    """Have the folder belong to the team, if it does not yet: an entry says so, once.

    Raises:
        RefusedError: it is no folder of chats or events, or logs and workers are elsewhere.
    """
    if front == SCRIBE or known_in(team, front, folder) is not None:
        return
    from tripod.team.adopt import add_place

    if front not in (EVENTS, CHAT):
        raise RefusedError(
            f"{team.root}/{DATABASE} is the ledger of a team that keeps its {front} in "
            f"{os.path.normpath(team.disk.full(front))}, not in {folder}: give that folder, or "
            f"name another team directory in {LEDGER}"
        )
    add_place(team, front, folder)
    beside = _beside(folder)
    if front == CHAT and os.path.isdir(beside) and known_in(team, EVENTS, beside) is None:
        with suppress(RefusedError):  # no queue: then the events go to the team's own
            add_place(team, EVENTS, beside)


@contextmanager
def team_of_project(project: str) -> Iterator[Team]:
    """The team that works in the folder ``project``, opened.

    Raises:
        NoTeamError: there is no such folder.
        LedgerError: its ledger is damaged, or none can be begun.
    """
    if not os.path.isdir(project):
        raise NoTeamError(f"{project} is no folder: give the project's")
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
    own, other = (_is_beside_ledger(os.path.dirname(path)) for path in (full, there))
    return full if own and not other else there


def _is_beside_ledger(folder: str) -> bool:
    around = os.path.dirname(folder)
    return any(has_ledger(place) for place in (around, os.path.join(around, FOLDER)))


def may_have_ledger(folder: str) -> bool:
    """Whether what is not in ``folder`` may be in a ledger: none is begun to ask for it."""
    return named() is not None or has_ledger(home_of(os.path.abspath(folder)))


def _is_kept(disk: Disk, front: str, full: str) -> bool:
    """Whether the team of this disk keeps its ``front`` in this very folder."""
    kept = disk.full(front)
    try:
        return kept == full or os.path.samefile(kept, full)
    except OSError:  # it is not there
        return False


def _root(front: str, full: str) -> str:
    """The team directory of a folder.

    A ledger of earlier versions, in the very folder around this one, stays the one of this folder
    also where a ``.nbs`` was begun beside it.
    """
    home = home_of(full, front)
    around = os.path.dirname(full)
    if named() is None and home != around and is_apart(around):
        with Team(around) as team:
            if _is_kept(team.disk, front, full):
                return around
    is_part = named() is None and os.path.basename(full) == front and home != around
    if front not in (EVENTS, CHAT) and is_part:
        # Logs and workers are where a team directory is, whatever that is called.
        return home if os.path.basename(home) == FOLDER and has_ledger(home) else around
    return home


# Beginning -------------------------------------------------------------------------------------


def _begin(root: str, places: Callable[[], dict[str, str]]) -> None:
    """Begin the ledger, and say so in one line; ``places`` says where events and chats are."""
    from tripod.team import adopt

    if os.path.lexists(f"{root}/{DATABASE}"):
        with adopt.alone(root):  # another process is just beginning it; or it lost what it held
            return
    if os.path.lexists(root) and not os.path.isdir(root):
        raise NoTeamError(f"{root} is no folder: name a team directory in {LEDGER}")
    from tripod.cli.progress import shown
    from tripod.trust.record import has_record

    # Another process may have begun it since we looked; its record comes behind its database.
    if has_record(root) and not os.path.lexists(f"{root}/{DATABASE}"):
        raise RefusedError(
            f"{root} has no {DATABASE} but a record of one ({RECORD}/): `tripod init` restores "
            "the ledger from it"
        )
    with shown():
        found = adopt.init_at(root, places(), met=True)
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


def _places(root: str, front: str, given: dict[str, str]) -> dict[str, str]:
    """Where the first entry is to say that events and chats are; ``given`` are folders by name.

    A folder around the team directory is added beside these, as all that are met later.
    """
    from tripod.team import adopt

    full = given[front]
    if front not in (EVENTS, CHAT, SCRIBE) and full != os.path.join(root, front):
        raise RefusedError(
            f"{full} is no folder that a ledger in {root} can keep: the team's {front} are in "
            f"{os.path.join(root, front)}"
        )
    real = os.path.realpath(root)
    places, folders = {}, {}
    for name, where in given.items():
        if name not in (EVENTS, CHAT) or where == os.path.join(root, name):
            continue
        place, problem = adopt.addable(root, name, where)
        if problem is not None:
            raise RefusedError(f"no ledger can be begun for it: {problem}")
        if f"{real}/".startswith(f"{os.path.realpath(where)}/"):
            places[f"{name}/{adopt.free_name(os.path.realpath(where), set())}"] = place
        else:
            folders[name] = where
    around = os.path.dirname(full)
    is_team = os.path.basename(full) == front and around != root
    if front in folders and named() is not None and is_team:
        # A whole team whose ledger is elsewhere: its other folder stands beside this one.
        other = CHAT if front == EVENTS else EVENTS
        folders[other] = os.path.join(around, other)
        os.makedirs(folders[other], exist_ok=True)
    for name, folder in folders.items():
        place, problem = adopt.recordable(real, folder)
        if problem is not None:
            raise RefusedError(f"no ledger can be begun for it: {problem}")
        places[name] = place
    return places
