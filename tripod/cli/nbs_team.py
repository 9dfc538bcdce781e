"""Finds the team that a drop-in command works on, and begins its ledger if it has none.

The original tools know no ledger, only folders and files: the events' folder, a chat's file, the
log's. The team directory is the folder around; ``TRIPOD_LEDGER`` names another one, which then
records where events and chats are. What was there before is taken in whole, unchanged.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from sqlite3 import OperationalError

from tripod.cli.commands import CommandCall
from tripod.errors import BadArgumentError, NoTeamError, NotFoundError, RefusedError
from tripod.ledger import ARCHIVE, CHAT, DATABASE, EVENTS, RECORD
from tripod.ledger import LOGS as SCRIBE
from tripod.ledger.files import is_read_only, read_plain_file
from tripod.ledger.locator import (
    FOLDER,
    LEDGER,
    database_of,
    has_ledger,
    has_record,
    is_ledger_folder,
    named,
    team_around,
    work_tree_around,
)
from tripod.output import one_line, remark
from tripod.projections import Disk
from tripod.team.access import access_team, access_team_at, has_open_runs, print_warnings
from tripod.team.files import is_emptied
from tripod.team.team import Team


@contextmanager
def nbs_team_for(call: CommandCall) -> Iterator[Team]:
    """The team that a call works on; ``call.channel`` and ``call.log`` then name its chat or log.

    ``nbs-bus`` is given the folder of the events, ``nbs-chat`` a chat, ``nbs-scribe`` a log. The
    others work on the team around the current folder.
    """
    front, place = call.program.front, call.place
    looks = call.looks
    if front == EVENTS:
        with team_of(EVENTS, place, looks=looks) as team:
            yield team
    elif front == CHAT:
        full = nbs_chat_path(place)  # a link to a chat is the chat
        folder, name = os.path.split(full)
        is_there, is_new = os.path.lexists(full), call.verb.name == "create"
        if not name.endswith(".chat") or name == ".chat":
            raise BadArgumentError(f"{place!r} names no chat: give the path of a file NAME.chat")
        if is_new and not os.path.isdir(folder):
            raise RefusedError(f"Error: no folder {folder}: make it first")
        if not is_new and not is_there and not nbs_team_may_know(folder):
            raise NotFoundError(f"no chat {full}: `nbs-chat create {place}` makes it")
        with team_of(CHAT, folder, meet=is_new or is_there, looks=looks) as team:
            added = known_to_nbs_team(team, CHAT, folder) or ""
            call.channel = added + name.removesuffix(".chat")
            try:
                yield team
            except NotFoundError as error:
                raise NotFoundError(f"{place}: {error}") from error
    elif front == SCRIBE:
        make = call.verb.name == "log"
        events = call.bus_dir if make else None
        with nbs_team_of_log(place, make=make, events=events, looks=looks) as team:
            folder, name = os.path.split(_full(place))
            call.log = (known_to_nbs_team(team, SCRIBE, folder) or "") + name
            yield team
    else:
        call.actor()  # each command refuses an invalid NBS_HANDLE
        with access_team(None, looks=looks) as team:
            _look_after(team)
            yield team


@contextmanager
def team_of(
    front: str, folder: str, events: str | None = None, *, meet: bool = True, looks: bool = False
) -> Iterator[Team]:
    """The team whose ``events``, ``chat`` or ``scribe`` (``front``) are in ``folder``.

    A folder of chats or events that the team does not know yet is added to it if ``meet`` allows
    that, and so is the folder ``events``. Folders of decision logs: see ``nbs_team_of_log``. Raises
    NoTeamError (there is no such folder), NotFoundError (it is not the team's folder, and not to be
    added), RefusedError (no ledger can be begun), LedgerError (it is damaged, or not writable).
    """
    full = nbs_path(folder)
    if not os.path.isdir(full):
        what = "is no folder" if os.path.lexists(folder) else "is not there"
        raise NoTeamError(
            f"{folder} {what}: make the folder first, or give the path of the right one"
        )
    root = _root(front, full)
    given = {front: full} if events is None else {front: full, EVENTS: nbs_path(events)}
    begin = lambda: _begin(root, lambda: _places(root, front, given))  # noqa: E731
    with access_team_at(root, begin, looks=looks) as team:
        _look_after(team)
        meet = meet and not team.is_read_only
        for name, where in given.items():
            if known_to_nbs_team(team, name, where) is not None or (meet and name == SCRIBE):
                continue
            if not meet:
                raise NotFoundError(
                    f"{where} is no folder of the team in {root}: give the right path"
                )
            from tripod.team.adoption import add_place

            add_place(team, name, where)  # an entry says so, once
            beside = f"{os.path.dirname(where)}/{EVENTS}"
            if (
                name == CHAT
                and os.path.isdir(beside)
                and known_to_nbs_team(team, EVENTS, beside) is None
            ):
                with suppress(RefusedError):  # no queue: then the events go to the team's own
                    add_place(team, EVENTS, beside)
        if EVENTS in given:
            team.queue = known_to_nbs_team(team, EVENTS, given[EVENTS]) or ""
        elif front == CHAT:
            # The original looks for the events' folder beside the chats'.
            team.queue = known_to_nbs_team(team, EVENTS, f"{os.path.dirname(full)}/{EVENTS}") or ""
        yield team


def _look_after(team: Team) -> None:
    """Record what became of programs of workers: every command does this for those before it."""
    if has_open_runs(team):
        from tripod.workers.worker import record_ends

        record_ends(team)


def known_to_nbs_team(team: Team, front: str, folder: str) -> str | None:
    """What the names of the events or chats in a folder begin with; None: not the team's folder.

    '' for the team's own folder, ``<name>/`` for one that was added.
    """
    disk = team.disk
    added = [place for place in disk.places.added if place.startswith(f"{front}/")]
    for place in (front, *added):
        of_archives = front == CHAT and os.path.basename(folder) == ARCHIVE
        for kept in (place, f"{place}/{ARCHIVE}") if of_archives else (place,):
            if _is_kept(disk, kept, folder):
                return f"{kept}/"[len(front) + 1 :]
    return None


@contextmanager
def nbs_team_of_project(project: str) -> Iterator[Team]:
    """The team that works in the folder ``project`` (NoTeamError: there is no such folder)."""
    if not os.path.isdir(project):
        raise NoTeamError(f"{project} is no folder: give the project's")
    full = os.path.abspath(project)
    is_shared = named() is not None or work_tree_around(full) is not None
    root = team_around(full) if is_shared else os.path.join(full, FOLDER)
    with access_team_at(root, lambda: _begin(root, dict)) as team:
        _look_after(team)
        yield team


def nbs_path(path: str) -> str:
    """The full path of what is given; in the team directory, where its own ``.nbs`` is not there.

    A linked work tree has none, and works on the team of its repository. Where the files of the
    team are all gone (`git clean`), they are written again first.
    """
    full = os.path.abspath(path)
    top, inner, rest = f"{full}/".partition(f"/{FOLDER}/")
    if named() is not None or not inner or not is_emptied(f"{top}/{FOLDER}"):
        return full
    root = team_around(top)
    if not has_ledger(root):
        return full
    if is_emptied(root) and not is_read_only():
        with access_team_at(root) as team:
            team.refresh()
    return f"{root}/{rest}".rstrip("/")


def nbs_chat_path(file: str) -> str:
    """The full path of a chat that is given; of one that a symbolic link leads to, where it is.

    A link in the place of a team's own chat that leads out of every team is not followed: the
    ledger has the chat, and nothing is read or written through the link.
    """
    full = nbs_path(file)
    if not os.path.islink(full):
        return full
    there = os.path.realpath(full)
    around = (os.path.dirname(os.path.dirname(path)) for path in (full, there))
    own, other = (has_ledger(place) or has_ledger(f"{place}/{FOLDER}") for place in around)
    return full if own and not other else there


def nbs_chat_folder(chat: str) -> str:
    """The folder of a chat (NotFoundError: neither the chat nor a log or ledger of a team)."""
    full = nbs_chat_path(chat)
    folder = os.path.dirname(full)
    around = os.path.dirname(folder)
    is_team = nbs_team_may_know(folder) and (named() is not None or team_around(folder) == around)
    if is_team or not os.path.isdir(folder) or os.path.lexists(full):
        return folder
    logs, names = os.path.join(around, SCRIBE), list[str]()
    with suppress(OSError):
        names = os.listdir(logs)
    if not any(name.endswith("log.md") and os.path.isfile(f"{logs}/{name}") for name in names):
        raise NotFoundError(
            f"no chat {full}, and no decision log of its team: give the path of the right one"
        )
    return folder


def nbs_team_may_know(folder: str) -> bool:
    """Whether there is a ledger that may know what ``folder`` lacks; none is begun to ask it."""
    return named() is not None or has_ledger(team_around(os.path.abspath(folder)))


def _is_kept(disk: Disk, front: str, full: str) -> bool:
    """Whether the team of this disk keeps its ``front`` in this very folder."""
    kept = disk.full(front)
    try:
        return kept == full or os.path.samefile(kept, full)
    except OSError:  # it is not there
        return False


def _root(front: str, full: str) -> str:
    """The team directory of a folder; an older ledger beside the folder stays its ledger."""
    home, around = team_around(full, front), os.path.dirname(full)
    if named() is not None or home == around:
        return home
    if is_ledger_folder(around):
        with Team(around, read_only=is_read_only()) as team:
            if _is_kept(team.disk, front, full):
                return around
    if front != SCRIBE or os.path.basename(full) != front:
        return home
    # A folder of logs lies in its team directory, which may have any name.
    return home if os.path.basename(home) == FOLDER and has_ledger(home) else around


def _begin(root: str, places: Callable[[], dict[str, str]]) -> None:
    """Begin the ledger, and say so in one line; ``places`` says where events and chats are."""
    from tripod.team import adoption

    if os.path.lexists(database_of(root)):
        with adoption.adoption_lock(root):  # another process is just beginning it; or it is empty
            return
    if os.path.lexists(root) and not os.path.isdir(root):
        raise NoTeamError(f"{root} is no folder: name a team directory in {LEDGER}")
    from tripod.output import progress_shown

    # Another process may have begun it since we looked; its record comes after its database.
    if has_record(root) and not os.path.lexists(database_of(root)):
        raise RefusedError(
            f"{root} has no {DATABASE} but a record of one ({RECORD}/): `tripod init` restores "
            "the ledger from it"
        )
    with progress_shown():
        found = adoption.init_at(root, places(), met=True)
    print_warnings(found.warnings)
    if found.begun:
        text = f"began the ledger {database_of(root)}"
        if found.files:
            entries = f"{found.entries} {'entry' if found.entries == 1 else 'entries'}"
            files = f"{found.files} file{'' if found.files == 1 else 's'}"
            text += f", with {entries} from {files} of before"
        if found.key:
            text += f"; it is sealed by the new key {found.key}"
        remark(one_line(text))


def _places(root: str, front: str, given: dict[str, str]) -> dict[str, str]:
    """Where the first entry is to say that events and chats are; ``given`` are folders by name.

    A folder around the team directory is added beside these, as all that are met later.
    """
    from tripod.team import adoption

    full = given[front]
    real = os.path.realpath(root)
    places, folders = {}, {}
    for name, where in given.items():
        if name not in (EVENTS, CHAT) or where == os.path.join(root, name):
            continue
        place, problem = adoption.place_to_add(root, name, where)
        if problem is not None:
            raise RefusedError(f"no ledger can be begun for it: {problem}")
        if f"{real}/".startswith(f"{os.path.realpath(where)}/"):
            places[f"{name}/{adoption.free_place_name(os.path.realpath(where), set())}"] = place
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
        place, problem = adoption.place_to_adopt(real, folder)
        if problem is not None:
            raise RefusedError(f"no ledger can be begun for it: {problem}")
        places[name] = place
    return places


@contextmanager
def nbs_team_of_log(
    path: str, *, make: bool = False, events: str | None = None, looks: bool = False
) -> Iterator[Team]:
    """The team that has the file ``path`` as a decision log.

    A symbolic link to the log is the log. A log in a folder that is not the team's belongs to the
    team from then on, with its archives. ``make`` makes its folder, as the original does. Raises
    BadArgumentError (a log cannot have that name), NotFoundError (no log is there).
    """
    from tripod.projections.decisions.format import decision_log_name_problem

    full = _full(path)
    folder, name = os.path.split(full)
    problem = decision_log_name_problem(name)
    if problem is not None or os.path.isdir(full):
        raise BadArgumentError(
            f"{path}: a decision log is a file whose name ends in .md and begins with no dot, such "
            f"as .nbs/{SCRIBE}/live-log.md"
        )
    if make:
        os.makedirs(folder, exist_ok=True)
    elif (
        os.path.basename(folder) != SCRIBE
        and not os.path.lexists(full)
        and not (os.path.isdir(folder) and nbs_team_may_know(folder))  # begin no ledger to say so
    ):
        raise NotFoundError(f"{path}: no decision log is there; give the path of the right one")
    with team_of(SCRIBE, folder, events, looks=looks) as team:
        add_log_to_nbs_team(team, full, make=make)
        yield team


def add_log_to_nbs_team(team: Team, full: str, *, make: bool = False) -> None:
    """Add the log at a full path to the team, unless its folder is the team's own.

    ``make``: the log is about to be begun. Raises BadArgumentError (what stands there is no log),
    NotFoundError (neither file nor entry is there), RefusedError (the folder cannot hold logs).
    """
    folder, name = os.path.split(full)
    front = known_to_nbs_team(team, SCRIBE, folder)
    if front == "":
        return
    with suppress(OperationalError):  # the tables of another version: they are about to be folded
        sql = "SELECT 1 FROM logs WHERE file = ?"
        if front is not None and team.store.db.execute(sql, (front + name,)).fetchone():
            return
    from tripod.projections import FILE_LIMIT
    from tripod.projections.decisions.format import is_decision_log, parse_decision_archive_name
    from tripod.team.adoption import add_place

    try:
        data = read_plain_file(full, FILE_LIMIT)
    except FileNotFoundError:
        if not make:
            raise NotFoundError(
                f"{full}: no decision log is there; give the path of the right one"
            ) from None
        if parse_decision_archive_name(name) is None:  # else nothing is begun there
            add_place(team, SCRIBE, folder)
        return
    except OSError as error:
        raise BadArgumentError(f"{full} cannot be read: {error.strerror or error}") from error
    if data and not is_decision_log(name, data):
        raise BadArgumentError(f"{full} is there, and is no decision log: give another name")
    split = parse_decision_archive_name(name)
    live = os.path.join(folder, f"{split[0]}.md") if split is not None else full
    if live != full and os.path.isfile(live):
        add_log_to_nbs_team(team, live)
        return
    add_place(team, SCRIBE, folder, name)


def _full(path: str) -> str:
    return os.path.realpath(path) if os.path.islink(path) else nbs_path(path)
