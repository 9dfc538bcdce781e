"""Begins a ledger: for a new team, or for one that has a past (``tripod init``).

Adoption takes the whole past in, in time order, and changes no byte of it: it adds to the directory
the database, ``counts.json`` and lines of ``.gitignore``, which keep out of git what is no part of
the record (design, "Foreign writes").
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, count
from types import MappingProxyType
from typing import cast

from tripod.errors import BadArgumentError, LedgerError, RefusedError, TripodError
from tripod.ledger import (
    ARCHIVE,
    DATABASE,
    PROCESSED,
    Draft,
    added_place_problem,
    place_problem,
    places_problem,
)
from tripod.ledger.files import hold_file_lock, hold_folder_lock, make_folder, rename_file
from tripod.ledger.ids import fresh_ids, now_at
from tripod.ledger.kinds.team import ADOPTED, OPENED, PLACE_ADDED, Holds
from tripod.ledger.locator import (
    APART,
    FOLDER,
    database_apart,
    database_of,
    has_ledger,
    is_bare,
    named,
    repository_around,
    team_to_begin,
    unseen_repository_problem,
    work_tree_around,
)
from tripod.projections import (
    BUS,
    CHAT,
    COUNTS,
    LOG,
    Disk,
    DiskPlaces,
    UnreadableError,
    files_ahead_of,
    in_the_way_on_disk,
    layout,
    merge_marker_in_piece,
    pieces_of_names,
    recorded,
    text,
)
from tripod.team.act import Act, settings_of_queue
from tripod.team.files import ignore_files
from tripod.team.intake import take_in
from tripod.team.team import Team

_EMPTY = {".gitkeep", ".gitignore", FOLDER}
"""What stands in a folder that git is to keep though it is empty; and a ledger begun there."""
_OURS: dict[str, tuple[tuple[str, ...], str]] = {
    BUS.folder: (layout.EVENT.ends, "no *.event, no processed/ and no config.yaml"),
    CHAT.folder: ((*layout.CHAT_FILE.ends, *layout.CURSORS.ends, ".chat.lock"), "no *.chat"),
}
"""The endings of names that tell a folder of ours, and the words for a name without any."""


@dataclass(frozen=True)
class Adoption:
    """What an ``init`` or ``sync`` took in: entries by kind, and what it left where it was.

    ``key`` is the vkey that seals the ledger, where one was made.
    """

    root: str
    begun: bool
    files: int
    kinds: dict[str, int]
    left_alone: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    key: str = ""

    @property
    def entries(self) -> int:
        """Entries that were appended."""
        return sum(self.kinds.values())


def team_to_adopt(path: str, *, new: bool = False) -> str:
    """The team directory of a project, or ``path`` if it is one.

    ``new``: another team, though ``path`` belongs to one. Raises RefusedError where there is no
    folder, where the repository of a work tree that has no ledger cannot be found, or where no
    command would find the new team: in a linked work tree all work on that of the main one.
    """
    full = os.path.abspath(path)
    if not os.path.isdir(full):
        raise RefusedError(f"{path} is no folder: make the project's folder first")
    root = team_to_begin(full, new=new)
    problem = None if new or has_ledger(root) else unseen_repository_problem(full)
    tree = work_tree_around(full) if new and not has_ledger(root) else None
    team = None if tree is None or tree.git == tree.common else f"{tree.home}/{FOLDER}"
    if team is not None and has_ledger(team) and root != named():
        problem = (
            f"it lies in a linked work tree, where each command works on {team}, the team of the "
            "repository; begin another in a clone"
        )
    if problem is not None:
        raise RefusedError(f"no ledger was begun in {full}: {problem}")
    return root


def init(
    path: str,
    *,
    project: str | None = None,
    origin: str | None = None,
    scribe: str | None = None,
    events: str | None = None,
    chat: str | None = None,
    key: bool | None = None,
    new: bool = False,
) -> Adoption:
    """Begin a ledger in the project folder ``path``; where there is one, take in what is new.

    Args:
        path: the project's folder, or its team directory.
        project: its name; the folder's by default.
        origin: the ledger's own name, unique for ever; made up by default.
        scribe: the handle that logs decisions; ``scribe`` by default.
        events: the folder of the events, where it is not ``events`` of the team directory.
        chat: the folder of the chats, in the same way.
        key: whether a new ledger gets a key; by default in a git repository, and not elsewhere.
        new: begin another team in ``path``, though that belongs to one.

    Raises:
        BadArgumentError: a name breaks its rule, or a folder cannot be taken.
        RefusedError: ``path`` is no folder, lost its ledger, or has one that records otherwise.
    """
    names = {"project": project, "origin": origin, "scribe": scribe}
    folders = {BUS.folder: events, CHAT.folder: chat}
    return begin_replica(path, names, folders, key=key, new=new)


def begin_replica(
    path: str,
    names: Mapping[str, str | None],
    folders: Mapping[str, str | None],
    *,
    key: bool | None = None,
    new: bool = False,
    named: Callable[[str], Sequence[Draft]] | None = None,
) -> Adoption:
    """Do what ``init`` does, with its words by name; ``folders`` are those of events and chats.

    ``named`` gives drafts that follow the new key (its vkey), and name the ledger as a replica.
    """
    root = team_to_adopt(path, new=new)
    given = {front: at for front, at in folders.items() if at is not None}
    places: dict[str, str] = {}
    for front, folder in given.items():
        places[front], problem = place_to_adopt(os.path.realpath(root), folder)
        if problem is not None:
            raise BadArgumentError(f"--{front}: {problem}")
    whole = {BUS.folder: BUS.folder, CHAT.folder: CHAT.folder} | places
    problem = places_problem(whole[BUS.folder], whole[CHAT.folder])
    if problem is not None:
        raise BadArgumentError(f"{' and '.join(f'--{front}' for front in places)}: {problem}")
    for front, folder in given.items():
        if not os.path.exists(database_of(root)):
            problem = foreign_content_to_adopt(front, folder)
            if problem is not None:
                raise BadArgumentError(f"--{front}: {problem}")
    return init_at(root, places, names, key=key, new=new, named=named)


def init_at(
    root: str,
    places: dict[str, str],
    names: Mapping[str, str | None] = MappingProxyType({}),
    *,
    key: bool | None = None,
    met: bool = False,
    new: bool = False,
    named: Callable[[str], Sequence[Draft]] | None = None,
) -> Adoption:
    """Begin a ledger in the team directory ``root``, or take in what is new; else as ``init``.

    ``places`` are the folders of events and chats as they are recorded, where they are not in
    ``root``; ``names`` gives ``project``, ``origin`` and ``scribe``. ``met``: the places were met,
    not given, and nothing is made in them.

    Raises BadArgumentError where a name breaks its rule, RefusedError where the directory lost its
    ledger, or has one that records otherwise.
    """
    with adoption_lock(root):
        moved = _move_database(root)
        if os.path.exists(database_of(root)):
            with Team(root) as team:
                if team.store.size:
                    if not met:  # else another command met its own folder first, and began
                        _same_as_recorded(team, names, places)
                    ignore_files(team)
                    team.warnings += moved
                    return sync(team)
        if named is None and not new:
            _refuse_to_part(root)
        ahead = files_ahead_of(None, Disk(root))
        if ahead is not None:
            raise RefusedError(
                f"{root} had a ledger: {ahead}. Put its ledger.db back; or, to begin anew with the "
                f"files as somebody else's, move {root}/{COUNTS.path} away first"
            )
        _check_files(root, places)
        opened = _opening(root, names, places)
        if key is None:  # in a git repository seals are committed with the work
            key = repository_around(os.path.dirname(os.path.realpath(root))) is not None
        return _begin(root, opened, places, key=key, met=met, named=named)


def _refuse_to_part(root: str) -> None:
    """Refuse to begin another team where git refs hold records of one that is to be joined."""
    from tripod.verify.peers.refs import named_replicas

    if database_apart(root) is not None and (found := named_replicas(root)):
        raise RefusedError(
            f"{root} has no ledger, and the repository holds records of a team ({found[0]}): "
            "`tripod init` joins it, `tripod restore` brings a lost ledger back"
        )


@contextmanager
def adoption_lock(root: str) -> Iterator[None]:
    """Of several who begin a ledger in ``root`` at once one does, and the others find it begun.

    The lock is on the folder around, so that no file of it stays.
    """
    with ExitStack() as locks:
        around = os.path.dirname(root)
        with suppress(OSError):  # it can be entered but not listed, or is to be made: do not wait
            if database_apart(root) is not None:
                make_folder(around, 0o777)  # in a bare repository
            locks.enter_context(hold_folder_lock(around))
        yield


def _move_database(root: str) -> list[str]:
    """Move a ledger that an earlier version began in ``.nbs`` into the repository; say so.

    It is one rename under the writer's lock, while nobody else has the database open. Where
    somebody has, or the disk refuses, it stays where it is, and that is said.
    """
    old, new = f"{root}/{DATABASE}", database_apart(root)
    if new is None or os.path.lexists(new) or not os.path.isfile(old) or os.path.islink(old):
        return []
    try:
        make_folder(os.path.dirname(new), 0o777)
        with hold_file_lock(f"{old}.lock"):
            # SQLite leaves the write-ahead log only where no other connection is open.
            with closing(sqlite3.connect(old, timeout=5, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode=DELETE")
            rename_file(old, new)
    except (sqlite3.Error, OSError) as error:
        problem = f"{old} is to be moved to {new}, where git does not reach it: {error}. "
        cure = "End the programs that have it open, then `tripod init`; it is used where it is"
        return [problem + cure]
    return [f"moved the ledger from {old} to {new}, where git does not reach it"]


def _begin(
    root: str,
    opened: list[Draft],
    places: dict[str, str],
    *,
    key: bool,
    met: bool,
    named: Callable[[str], Sequence[Draft]] | None,
) -> Adoption:
    """Make the ledger, and what is missing of the team directory."""
    is_new = not os.path.isdir(root)
    if is_new:
        make_folder(root, 0o777)
    make_folder(os.path.dirname(database_of(root)), 0o777)
    with Team(root, create=True) as team:
        team.disk.places = DiskPlaces(root, places)
        if is_new:
            for folder in layout.FOLDERS:
                if not met or team.disk.places.full(folder) is None:
                    team.disk.make_folder(folder)
        ignore_files(team)  # before there is anything that must not be committed
        # In one transaction: a ledger that is begun has its whole past, or it does not exist yet.
        with team.act(full=True, opened=opened) as act:
            act.displace(COUNTS.path, "it stood where the counts of the ledger belong")
            paths = act.look.left_alone
            left = next(pieces_of_names(paths), [])  # as many as fit in an entry
            if len(left) < len(paths):
                left = [*left, f"({len(paths) - len(left)} more)"]
            act.append([ADOPTED.draft({"files": act.look.files, "left_alone": left})])
            act.rewrite.add(COUNTS.path)
        done = _taken_in(team, act, begun=True)
        if not key:
            return done
        from tripod.trust.seal import new_sealing_key

        try:
            return replace(done, key=new_sealing_key(team, also=named))
        except (TripodError, LedgerError, OSError) as error:
            # Without a key the ledger is no worse than it was, so that is told.
            team.warnings.append(
                f"no key was made, so nothing is sealed: {error}; `tripod key new`"
            )
            return done


def sync(team: Team) -> Adoption:
    """Take in all that other programs wrote, evidence included.

    Raises:
        NoTeamError: a folder of the team is not there.
        UnwritableError: the disk refuses; nothing was recorded.
    """
    with team.act(full=True) as act:
        pass
    return _taken_in(team, act, begun=False)


def _taken_in(team: Team, act: Act, *, begun: bool) -> Adoption:
    settings_of_queue(team)  # says what it could not take of the configuration
    look = act.look
    kinds = dict(act.entries.observed)
    return Adoption(team.root, begun, look.files, kinds, look.left_alone, team.warnings)


def _check_files(root: str, places: Mapping[str, str]) -> None:
    """Refuse to begin where some of the past would be lost: an odd log, half of a merge."""
    disk = Disk(root)
    links = [name for name, what in disk.walk(LOG.folder) if what == "other"]
    for name in sorted(name for name in links if name.endswith(layout.LIVE)):
        path = f"{LOG.folder}/{name}"
        odd = in_the_way_on_disk(disk, path)
        if odd is None or disk.is_file(f"{LOG.folder}/{disk.alias(path)}"):
            continue  # another name of a log that is there
        raise RefusedError(
            f"{root}/{path} is {odd}: no decision can be taken in through it, and no ledger was "
            "begun. Move the file itself there, and link to it from where you want to have it"
        )
    disk = Disk(root, places=places)
    for folder in ("", CHAT.folder, LOG.folder, layout.WORKER.folder, BUS.folder):
        names = (name for name, what in disk.walk(folder) if what != "no text")
        for name in sorted(name for name in names if name.endswith((".chat", ".md", ".yaml"))):
            path = f"{folder}/{name}".lstrip("/")
            try:
                line = merge_marker_in_piece(path, disk.read(path, layout.LOG_FILE.limit) or b"")
            except UnreadableError:
                continue  # the intake says so
            if line is not None:
                raise RefusedError(
                    f"{disk.full(path)}: line {line} is a conflict marker of a merge that is not "
                    "finished, so no ledger was begun: keep the lines of both sides, remove the "
                    "marker lines, then `tripod init`"
                )


def place_to_adopt(root: str, given: str, holds: str = CHAT.folder) -> tuple[str, str | None]:
    """How a folder is recorded (below the project from the team directory), and what is wrong."""
    if not given or "\0" in given or not os.path.isdir(given):
        return "", f"{given!r} is no folder: make it first"
    full = os.path.realpath(given)
    if f"{root}/".startswith(f"{full.rstrip('/')}/"):
        return full, f"{given!r} holds the team directory itself: give a folder apart from it"
    place = full
    for outer, front in ((os.path.dirname(root), "../"), (root, "")):
        if full.startswith(f"{outer.rstrip('/')}/"):
            place = front + os.path.relpath(full, outer)
    return place, place_problem(place, holds)


def add_place(team: Team, front: str, folder: str, log: str | None = None) -> None:
    """Have a folder of chats or events belong to the team, and take in what it holds.

    Of several that add it at once one does. ``log`` is the file name of a decision log in a folder
    of such: it is taken in with its archives, and nothing else there. Raises RefusedError where it
    cannot be such a folder; nothing was recorded.
    """
    full = os.path.realpath(folder)
    place, problem = place_to_add(team.root, front, folder)
    if problem is not None:
        raise RefusedError(f"no folder of the team in {team.root}: {problem}")
    with team.act(full=True) as act:
        kept = [front, *(one for one in team.disk.places.added if one.startswith(f"{front}/"))]
        same = next((one for one in kept if _is_same(team.disk.full(one), full)), None)
        if same is None:
            name = free_place_name(full, {one.rpartition("/")[2] for one in kept})
            problem = added_place_problem(front, name, place)
            if problem is not None:
                raise RefusedError(f"no folder of the team in {team.root}: {problem}")
            same = f"{front}/{name}"
            act.append([_added(same, place)])
            team.settle_places()
        elif log is None:
            return
        if log is not None:
            team.disk.places.met.add(f"{same}/{log}".removeprefix(f"{LOG.folder}/"))
        take_in(act)


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def place_to_add(root: str, front: str, folder: str) -> tuple[str, str | None]:
    """How a folder of chats or events is recorded that is added, and what is wrong with it."""
    root, full = os.path.realpath(root), os.path.realpath(folder)
    problem = None
    place = {root: ".", os.path.dirname(root): ".."}.get(full, full)
    if not f"{root}/".startswith(f"{full.rstrip('/')}/"):
        place, problem = place_to_adopt(root, folder, front)
    if problem is None and front == BUS.folder:
        problem = foreign_content_to_adopt(front, folder)
        if os.path.basename(full) == PROCESSED:
            problem = f"{folder!r} is where a queue keeps what was acknowledged: give the queue"
    return place, problem


def free_place_name(folder: str, taken: set[str]) -> str:
    """A name for a folder that is added: its own, as far as that is one word."""
    own = os.path.basename(folder)
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", own).strip("-_")[:32] or "place"
    names = chain((word,), (f"{word}-{number}" for number in count(2)))
    return next(name for name in names if name not in {*taken, PROCESSED, ARCHIVE})


def _same_as_recorded(team: Team, names: Mapping[str, str | None], places: dict[str, str]) -> None:
    """Refuse to be told of other names and folders than those recorded once and for all."""
    body, folders = team.source.body(0), recorded(team.store)
    for option, value in (*names.items(), *places.items()):
        have = (folders if option in places else body).get(option)
        if value is not None and have != value:
            more = ", and put the folder where it was" if option in places else ""
            raise RefusedError(
                f"--{option}: this ledger records {have!r}, which cannot change: leave the option "
                f"out{more}"
            )


def foreign_content_to_adopt(front: str, folder: str) -> str | None:
    """What tells that a folder was named by mistake, since we would fill it with ours.

    Gives None for one that is empty, or holds something of what belongs into ``front``.
    """
    try:
        names = sorted(set(os.listdir(folder)) - _EMPTY)
    except OSError as error:
        return f"{folder!r} cannot be read: {error.strerror}"
    ends, what = _OURS[front]
    if not names or any(name.endswith(ends) for name in names):
        return None
    if front == BUS.folder and (
        layout.CONFIG.names[0] in names or os.path.isdir(os.path.join(folder, PROCESSED))
    ):
        return None
    return (
        f"{folder!r} holds {len(names)} files or folders ({names[0]!r} is the "
        f"first) and {what}: give an empty folder, or the path of the right one"
    )


def _opening(root: str, names: Mapping[str, str | None], places: dict[str, str]) -> list[Draft]:
    project, origin, scribe = (names.get(name) for name in ("project", "origin", "scribe"))
    around = os.fsencode(_project_name(root)).decode("utf-8", "replace")  # it becomes a text
    name = project if project is not None else around
    if origin is None:  # a name that no other ledger has: also a restored copy must get its own
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "team"
        origin = f"tripod.invalid/{slug}/{fresh_ids(1)[0][0]}"
    scribe = scribe if scribe is not None else "scribe"
    problem = (
        text.text_line_problem(name, "project", 200)
        or text.text_word_problem(scribe, "scribe", 63, "[|:,()=/")
        or text.text_word_problem(origin, "origin", 200, "+")
    )
    if problem is not None:
        raise BadArgumentError(problem)
    first = OPENED.draft(
        {
            "origin": origin,
            "project": name,
            "created": now_at()[:19] + "Z",
            "scribe": scribe,
            "events": places.get(BUS.folder, BUS.folder),
            "chat": places.get(CHAT.folder, CHAT.folder),
        }
    )
    return [first, *(_added(front, path) for front, path in places.items() if "/" in front)]


def _project_name(root: str) -> str:
    """The name of the folder around a team directory, or that of the bare repository it is in."""
    home = os.path.dirname(root)
    around, name = os.path.split(os.path.dirname(home))
    if os.path.basename(home) == APART and is_bare(f"{around}/{name}"):
        return os.path.basename(around) if name.startswith(".") else name.removesuffix(".git")
    return os.path.basename(home) or "team"


def _added(front: str, path: str) -> Draft:
    """The draft that adds a folder as ``events/<name>``, ``chat/<name>`` or ``scribe/<name>``."""
    holds, _, name = front.partition("/")
    return PLACE_ADDED.draft({"holds": cast("Holds", holds), "name": name, "path": path})
