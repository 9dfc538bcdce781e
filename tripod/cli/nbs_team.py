"""Finds the team that a drop-in command works on, and begins its ledger if it has none.

The original tools know no ledger, only folders and files: the events' folder, a chat's file, the
log's. The team directory is the folder around; ``TRIPOD_LEDGER`` names another one, which then
keeps the ledger, and records where events and chats are. Either way there is one code path: the
ledger is kept, and what was there before is taken in whole, without changing a byte of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from sqlite3 import OperationalError

from tripod.errors import BadArgumentError, NoTeamError, NotFoundError, RefusedError
from tripod.ledger import ARCHIVE, CHAT, DATABASE, EVENTS, RECORD
from tripod.ledger import LOGS as SCRIBE
from tripod.ledger.files import read_plain
from tripod.ledger.locator import FOLDER, LEDGER, has_ledger, home_of, is_apart, named
from tripod.output import one_line, remark
from tripod.projections import Disk
from tripod.team.access import opened_at, tell
from tripod.team.team import Team


@contextmanager
def team_of(
    front: str, folder: str, events: str | None = None, *, meet: bool = True
) -> Iterator[Team]:
    """The team whose ``events``, ``chat``, ``scribe`` or ``workers`` stand in ``folder``, opened.

    A folder of chats or events that the team does not know yet is added to it. One of decision logs
    is where a log is met: see ``team_of_log``.

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
        message = f"{folder} {what}: make the folder first, or give the path of the right one"
        raise NoTeamError(message)
    full = os.path.abspath(folder)
    root = _root(front, full)
    named = {front: full} if events is None else {front: full, EVENTS: os.path.abspath(events)}
    with opened_at(root, lambda: _begin(root, lambda: _places(root, front, named))) as team:
        for name, where in named.items():
            if not meet and known_in(team, name, where) is None:
                message = f"{where} is no folder of the team in {root}: give the right path"
                raise NotFoundError(message)
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
    from tripod.team.adoption import add_place

    if front not in (EVENTS, CHAT):
        message = (
            f"{team.root}/{DATABASE} is the ledger of a team that keeps its {front} in "
            f"{os.path.normpath(team.disk.full(front))}, not in {folder}: give that folder, or "
            f"name another team directory in {LEDGER}"
        )
        raise RefusedError(message)
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
        message = f"{project} is no folder: give the project's"
        raise NoTeamError(message)
    root = named() or os.path.join(os.path.abspath(project), FOLDER)
    with opened_at(root, lambda: _begin(root, dict)) as team:
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


def chat_folder(chat: str) -> str:
    """The folder of a chat, by whose side the team is; a link to the chat is the chat.

    Raises:
        NotFoundError: neither the chat nor a ledger is there: it is nobody's.
    """
    full = chat_path(chat)
    folder = os.path.dirname(full)
    around = os.path.dirname(folder)
    is_team = may_have_ledger(folder) and (named() is not None or home_of(folder) == around)
    strange = os.path.isdir(folder) and not os.path.lexists(full) and not is_team
    if strange and not _has_log(os.path.join(around, SCRIBE)):
        raise NotFoundError(
            f"no chat {full}, and no decision log of its team: give the path of the right one"
        )
    return folder


def _has_log(folder: str) -> bool:
    """Whether a file in the folder has a log's name."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(name.endswith("log.md") and os.path.isfile(f"{folder}/{name}") for name in names)


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
    from tripod.team import adoption

    if os.path.lexists(f"{root}/{DATABASE}"):
        with adoption.alone(root):  # another process is just beginning it; or it lost what it held
            return
    if os.path.lexists(root) and not os.path.isdir(root):
        message = f"{root} is no folder: name a team directory in {LEDGER}"
        raise NoTeamError(message)
    from tripod.cli.progress import shown
    from tripod.trust.export import has_record

    # Another process may have begun it since we looked; its record comes behind its database.
    if has_record(root) and not os.path.lexists(f"{root}/{DATABASE}"):
        message = (
            f"{root} has no {DATABASE} but a record of one ({RECORD}/): `tripod init` restores "
            "the ledger from it"
        )
        raise RefusedError(message)
    with shown():
        found = adoption.init_at(root, places(), met=True)
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
    from tripod.team import adoption

    full = given[front]
    if front not in (EVENTS, CHAT, SCRIBE) and full != os.path.join(root, front):
        message = (
            f"{full} is no folder that a ledger in {root} can keep: the team's {front} are in "
            f"{os.path.join(root, front)}"
        )
        raise RefusedError(message)
    real = os.path.realpath(root)
    places, folders = {}, {}
    for name, where in given.items():
        if name not in (EVENTS, CHAT) or where == os.path.join(root, name):
            continue
        place, problem = adoption.addable(root, name, where)
        if problem is not None:
            raise RefusedError(f"no ledger can be begun for it: {problem}")
        if f"{real}/".startswith(f"{os.path.realpath(where)}/"):
            places[f"{name}/{adoption.free_name(os.path.realpath(where), set())}"] = place
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
        place, problem = adoption.recordable(real, folder)
        if problem is not None:
            raise RefusedError(f"no ledger can be begun for it: {problem}")
        places[name] = place
    return places


# Decision logs ---------------------------------------------------------------------------------


@contextmanager
def team_of_log(path: str, *, make: bool = False, events: str | None = None) -> Iterator[Team]:
    """The team one of whose decision logs is the file ``path``, opened.

    A symbolic link to the log is the log. It may be in any folder: met in one that is not the
    team's, it belongs to the team from then on, with its archives. ``make`` makes its folder, as
    the original does; ``events`` is the folder of the team's events, where it is given.

    Raises:
        BadArgumentError: no team's log is called that.
        NotFoundError: no log is there.
        NoTeamError: there is no such folder.
        LedgerError: the ledger is damaged, or none can be begun.
    """
    from tripod.projections.decisions.format import log_name_problem

    full = _full(path)
    folder, name = os.path.split(full)
    problem = log_name_problem(name)
    if problem is not None or os.path.isdir(full):
        message = (
            f"{path}: a decision log is a file whose name ends in .md and begins with no dot, such "
            f"as .nbs/{SCRIBE}/live-log.md"
        )
        raise BadArgumentError(message)
    if make:
        os.makedirs(folder, exist_ok=True)
    elif os.path.basename(folder) != SCRIBE and not os.path.lexists(full):
        may_be = os.path.isdir(folder) and may_have_ledger(folder)
        if not may_be:  # no ledger is begun to say so
            message = f"{path}: no decision log is there; give the path of the right one"
            raise NotFoundError(message)
    with team_of(SCRIBE, folder, events) as team:
        meet_log(team, full, make=make)
        yield team


def meet_log(team: Team, full: str, *, make: bool = False) -> None:
    """Have the log at a full path belong to the team, where its folder is not the team's own.

    ``make``: the log is about to be begun.

    Raises:
        BadArgumentError: what stands there is no decision log.
        NotFoundError: nothing stands there, and nothing did.
        RefusedError: the folder can hold none.
    """
    folder, name = os.path.split(full)
    front = known_in(team, SCRIBE, folder)
    if front == "" or (front is not None and _is_known(team, front + name)):
        return
    from tripod.projections import FILE_LIMIT
    from tripod.projections.decisions.format import is_log, parse_log_archive_name
    from tripod.team.adoption import add_place

    try:
        data = read_plain(full, FILE_LIMIT)
    except FileNotFoundError:
        if not make:
            message = f"{full}: no decision log is there; give the path of the right one"
            raise NotFoundError(message) from None
        if parse_log_archive_name(name) is None:  # else nothing is begun there
            add_place(team, SCRIBE, folder)
        return
    except OSError as error:
        message = f"{full} cannot be read: {error.strerror or error}"
        raise BadArgumentError(message) from error
    if data and not is_log(name, data):
        message = f"{full} is there, and is no decision log: give another name"
        raise BadArgumentError(message)
    split = parse_log_archive_name(name)
    live = os.path.join(folder, f"{split[0]}.md") if split is not None else full
    if live != full and os.path.isfile(live):
        meet_log(team, live)
        return
    add_place(team, SCRIBE, folder, name)


def _is_known(team: Team, name: str) -> bool:
    """Whether the ledger has the log or archive, as far as the tables tell before they are read."""
    with suppress(OperationalError):  # the tables of another version: they are about to be folded
        row = team.store.db.execute("SELECT 1 FROM logs WHERE file = ?", (name,)).fetchone()
        return row is not None
    return False


def name_of_log(team: Team, path: str) -> str:
    """The team's name for the log at a path; for the file that a symbolic link leads to."""
    folder, name = os.path.split(_full(path))
    return (known_in(team, SCRIBE, folder) or "") + name


def _full(path: str) -> str:
    return os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)
