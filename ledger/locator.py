"""Finds the team directory that a command works on: one rule for every command, the judge's too.

In this order: the path that is given (``-C``, ``--team``, a PATH), the one that the variable
``TRIPOD_LEDGER`` names, the one that ``tripod.team`` in the repository's own configuration names,
``.nbs/`` at the repository's home, the nearest ``.nbs/`` above. So every work tree and branch of a
repository has one team.

The *home* of a repository is the top of its main work tree. A bare one has none, and each of its
work trees may be removed: its home is the folder whose ``.git`` leads to it, if it lies right
there (``.git`` says ``gitdir: ./.bare``), else the folder ``tripod`` in it.

The ledger of a team at the home of a repository lies in the repository's common directory, where
``git clean`` and ``git stash --all`` do not reach it; every other one in its team directory. No
git is started: small files of the repository are read as data, with a limit.
"""

import os
import re
import stat
from contextlib import suppress
from typing import NamedTuple

from tripod.ledger.errors import BadArgumentError
from tripod.ledger.files import is_git_directory, read_plain_file
from tripod.ledger.places import CHAT, COUNTS, DATABASE, EVENTS, LOGS, RECORD, SEAL, WORKERS
from tripod.ledger.sqlite.schema import APPLICATION_ID

FOLDER = ".nbs"
APART = "tripod"
"""The folder of a repository's common directory that holds the ledger."""
LEDGER = "TRIPOD_LEDGER"
"""The variable that names a team directory, its project, or the ledger in it."""

_FOLDERS = (CHAT, EVENTS, LOGS)
_TEAM_FOLDERS = (*_FOLDERS, WORKERS)
_TRACES = (DATABASE, RECORD, COUNTS)
_SMALL = 1024 * 1024
_BARE = rb"(?mi)^[ \t]*bare[ \t]*=[ \t]*true[ \t]*$"  # asked for where there is no .git
_REMOTE = (
    rb'(?m)^\[remote "([A-Za-z0-9._/-]+)"\]'  # a text: few commands read a configuration of git
)
_ID_AT = 68  # where a SQLite file has its application's number, in 4 bytes


def user_home() -> str:
    """The folder of a user's own keys, seals and handle, an absolute path outside of any team."""
    given = os.environ.get("TRIPOD_HOME")
    if given:
        return os.path.abspath(given)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(os.path.abspath(base), "tripod")


ACTOR_ENV = ("TRIPOD_AS", "NBS_HANDLE")
"""The variables that say who acts where no option does, in their order."""
_MAX_HANDLE_FILE = 1024  # bytes


def handle_path() -> str:
    """The file of a user's own configuration that holds their handle."""
    return os.path.join(user_home(), "handle")


def stated_handle() -> tuple[str, str] | None:
    """What a variable of the environment, else the user's own file, says who acts; and which.

    None where neither does; a file that cannot be read says nothing. It may be no handle at all.
    """
    for name in ACTOR_ENV:
        if os.environ.get(name):
            return os.environ[name], name
    path = handle_path()
    try:
        said = read_plain_file(path, _MAX_HANDLE_FILE, named=True)
    except OSError:
        return None
    return said.decode(errors="surrogateescape").strip(), path


class WorkTree(NamedTuple):
    """A work tree of a git repository, or a bare repository itself.

    ``top`` is its first folder, ``git`` its own git directory, ``common`` the one that all work
    trees of the repository share. ``home`` is the folder that holds the team directory of them all;
    None: it lies apart from its main work tree, which nothing in it names.
    """

    top: str
    git: str
    common: str
    home: str | None


def database_of(root: str) -> str:
    """Where the ledger of the team directory ``root`` lies, or is to be begun.

    For ``.nbs`` at the home of a repository that is the common directory. One that an earlier
    version began in ``.nbs`` is used there until ``tripod init`` moves it.
    """
    inside, apart = f"{root}/{DATABASE}", database_apart(root)
    if apart is None or (os.path.lexists(inside) and not os.path.lexists(apart)):
        return inside
    return apart


def database_apart(root: str) -> str | None:
    """Where the repository's common directory has room for the ledger of ``root``.

    None where ``root`` is not ``.nbs`` at the home of a repository.
    """
    home, name = os.path.split(os.path.abspath(root))
    around, last = os.path.split(home)
    top = home if last != APART or os.path.lexists(f"{home}/.git") else around
    if name != FOLDER or not (top == around or os.path.lexists(f"{top}/.git")):
        return None
    tree = work_tree(top)
    is_home = tree is not None and tree.home in (home, os.path.realpath(home))
    return f"{tree.common}/{APART}/{DATABASE}" if tree is not None and is_home else None


def has_ledger(path: str) -> bool:
    """Whether a file or folder stands where the ledger of the folder ``path`` lies."""
    return os.path.lexists(database_of(path))


def has_record(root: str) -> bool:
    """Whether a team directory holds a record that a ledger may be restored from."""
    return os.path.isfile(f"{root}/{RECORD}/{SEAL}") and not os.path.islink(f"{root}/{RECORD}")


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
    if os.path.basename(path) != DATABASE:
        return _named_team(path)
    folder = os.path.dirname(path)
    return _team_apart(folder) or folder


def _named_team(path: str) -> str:
    """The team directory that is named by itself, or by the project around it."""
    inner = os.path.join(path, FOLDER)
    return _team_apart(path) or (inner if not has_ledger(path) and has_ledger(inner) else path)


def _team_apart(path: str) -> str | None:
    """The team whose ledger lies in ``path``, the folder of ours in a common directory; else None.

    That folder is no team directory: what is written there would be a second copy of its files.
    """
    common, name = os.path.split(os.path.abspath(path))
    if name != APART or not all(map(os.path.lexists, (f"{common}/HEAD", f"{path}/{DATABASE}"))):
        return None
    tree = work_tree(common if is_bare(common) else os.path.dirname(common))
    is_its = tree is not None and os.path.realpath(tree.common) == os.path.realpath(common)
    return f"{tree.home}/{FOLDER}" if tree is not None and is_its and tree.home else None


def team_of(path: str) -> str | None:
    """The team directory that a folder stands for: itself, or the ``.nbs`` in it; else None.

    A folder called ``.nbs`` always stands for itself. A folder below one stands for no team: a
    stranger may have put a ledger there, for a judge to find it clean.
    """
    if _is_within(path):
        return None
    if (apart := _team_apart(path)) is not None:
        return apart
    inner = os.path.join(path, FOLDER)
    is_inner = os.path.basename(os.path.abspath(path)) == FOLDER
    is_file = os.path.isfile(os.path.join(path, ".git"))
    tree = work_tree(path) if is_file or is_bare(path) else None
    if tree is not None and tree.home is not None and tree.home != path:
        found = team_of(tree.home)  # what lies in .nbs of a linked work tree was checked out
        if found is not None or not _is_inside(tree) or not has_ledger(inner):
            return found  # else it was begun for this work tree of a bare repository alone
    if has_ledger(path if is_inner else inner):  # the folder itself may be gone: `git clean`
        return path if is_inner else inner
    if not is_inner and os.path.isdir(inner):
        traces = any(os.path.lexists(os.path.join(inner, name)) for name in _TRACES)
        return inner if traces or not is_ledger_folder(path) else path
    names = (DATABASE, RECORD) if is_inner else (DATABASE,)
    if any(os.path.lexists(os.path.join(path, name)) for name in names):
        return path
    return path if any(os.path.isdir(os.path.join(path, name)) for name in _FOLDERS) else None


def found_team(given: str | None) -> str | None:
    """The team directory that a command works on, which may have no ledger; None: none is found.

    ``given`` is the project's folder or its team directory.
    """
    if given is not None:
        return team_of(os.path.abspath(given))
    return named() or nearest_team(os.getcwd())


def nearest_team(start: str) -> str | None:
    """The nearest team directory of the folder ``start``, an absolute path, or of one above.

    It may have no ledger yet. One that another user put into a folder in which everybody may
    write, such as ``/tmp``, is passed over.
    """
    near = _nearest_above(start)
    tree = work_tree_around(start)
    if tree is None:
        return near
    if (set_ := configured_team(tree)) is not None:
        return set_
    if tree.home is None:
        return near
    team = os.path.join(tree.home, FOLDER)
    # A team that was begun below on purpose has a database there, which git does not carry.
    is_own = near is not None and tree.top == tree.home and near != team and has_ledger(near)
    is_below = is_own and f"{near}/".startswith(f"{tree.home}/")
    is_there = os.path.isdir(team) or has_ledger(team)  # `git clean` removes the files
    return team if is_there and not is_below else near


def _nearest_above(start: str) -> str | None:
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
            return _team_apart(path) or path
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

    Raises:
        BadArgumentError: ``given`` is empty. Elsewhere that means the current folder, and here a
            variable of a script that is not set.
    """
    if given == "":
        raise BadArgumentError("the path is empty: is a variable that names it not set?")
    return given if given is not None else found_team(None) or os.getcwd()


def explain_team(given: str | None) -> tuple[str | None, str]:
    """The team directory that commands work on, and by which rule it was found."""
    if given is not None:
        return team_of(os.path.abspath(given)), "it was given"
    if (path := named()) is not None:
        return path, f"{LEDGER} names it"
    here = os.getcwd()
    found, tree = nearest_team(here), work_tree_around(here)
    if found is not None and tree is not None and found == configured_team(tree):
        return found, f"tripod.team in {tree.common}/config names it"
    if found is not None and tree is not None and tree.home == os.path.dirname(found):
        if is_bare(tree.common):
            return found, f"{tree.common} is bare, and this is the team of all its work trees"
        return found, f"it is at the top of the main work tree of {tree.common}"
    return found, f"it is the nearest {FOLDER} in {here} or above"


def no_team_problem(path: str) -> str:
    """Why a folder that is no team directory cannot be judged, and what to do next."""
    closed = closed_place_problem(path)
    if closed is not None:
        return closed
    next_ = advice_to_begin(path) or f"begin a ledger in this one: `tripod init {path}`"
    return (
        f"{path} is no team directory: it holds neither {FOLDER} nor chat. Give the project's "
        f"folder, or {next_}"
    )


def closed_place_problem(path: str) -> str | None:
    """That this user may not look into the team directory of ``path``, or into its repository.

    None: they may. Else what is there cannot be told from what is not.
    """
    path = os.path.abspath(path)
    tree = work_tree_around(path)
    git = os.path.join(repository_around(path) or path, ".git")
    apart = git if tree is None else os.path.join(tree.common, APART)
    places = (path, os.path.join(path, FOLDER), git, apart)
    for place in places:
        try:
            os.stat(os.path.join(place, "."))
        except PermissionError:
            return (
                f"{place} may not be read by this user: whether a ledger is there is not known. "
                f"User {os.stat(place).st_uid} has it and can allow that; or work in a clone of "
                "your own"
            )
        except OSError:
            continue
    return None


def advice_to_begin(path: str) -> str | None:
    """What to do in a clone before a ledger is begun: its team may be at work elsewhere.

    None where there is no repository, or one without a remote.
    """
    path = os.path.abspath(path)
    problem = unseen_repository_problem(path)
    tree = None if problem else work_tree_around(path)
    if tree is None:
        return problem
    try:
        config = read_plain_file(os.path.join(tree.common, "config"), _SMALL)
    except OSError:
        return None
    remotes = [os.fsdecode(name) for name in re.findall(_REMOTE, config)]
    if not remotes:
        return None
    remote = "origin" if "origin" in remotes else remotes[0]
    return (
        f"join a team that works in other clones: `tripod init --from {remote}`; to judge its "
        f"records alone, `git fetch {remote} '+refs/tripod/*:refs/tripod-remotes/{remote}/*'`. "
        "Where there is no team yet, `tripod init` begins one"
    )


def unseen_repository_problem(path: str) -> str | None:
    """Why the team of the work tree around ``path`` cannot be found, and what to do; None: it can.

    A team that is begun in such a work tree is one that no other work tree sees.
    """
    top = repository_around(path)
    git = None if top is None else os.path.join(top, ".git")
    if top is None or git is None or os.path.isdir(git):
        return None
    tree = work_tree(top)
    if tree is None:
        return (
            f"mend {git}, which leads to no repository: where the main work tree was moved, `git "
            f"worktree repair {top}` in it does so"
        )
    if tree.home is None and configured_team(tree) is None:
        around, name = os.path.split(tree.common)
        if is_bare(tree.common):
            return (
                f"{tree.common} is bare, and lies in the repository {repository_around(around)}: "
                f"`echo 'gitdir: ./{name}' >{around}/.git` tells the two apart, or `tripod init "
                "--new` begins a team for this work tree alone"
            )
        return (
            f"work in a clone: {tree.common} lies apart from its main work tree, so the work trees "
            "of it have no folder in common for a team; `tripod init --new` begins one for this "
            "work tree alone"
        )
    return None


def team_to_begin(path: str, *, new: bool = False) -> str:
    """The team directory that ``init`` is to begin or join in the folder ``path``, an absolute one.

    It is the folder itself where that is called ``.nbs``, has a ledger, looks like a team
    directory or is the one that the variable names. Else it is the team that commands find there;
    where a repository has none, ``.nbs`` at its home. ``new``: ``.nbs`` in ``path``, though there
    is a team around.
    """
    if (apart := _team_apart(path)) is not None:
        return apart
    inner = os.path.join(path, FOLDER)
    parts = sum(os.path.isdir(os.path.join(path, name)) for name in _TEAM_FOLDERS)
    is_root = os.path.basename(path) == FOLDER or (
        not os.path.isdir(inner) and (parts > 1 or path == named() or is_ledger_folder(path))
    )
    if is_root or new:
        return path if is_root else inner
    near, tree = nearest_team(path), work_tree_around(path)
    if tree is None:
        return near or inner
    if near is not None and near == configured_team(tree):
        return near
    home = tree.home or tree.top
    # One that was begun beside a bare repository, or in this work tree of it alone, stays.
    begun = (f"{os.path.dirname(tree.common)}/{FOLDER}/", f"{tree.top}/")
    fronts = begun if _is_inside(tree) and near is not None and has_ledger(near) else (f"{home}/",)
    return near if near is not None and f"{near}/".startswith(fronts) else f"{home}/{FOLDER}"


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
    if top is not None and (tree := work_tree_around(folder)) is not None:
        top = tree.home or top
    if top is None:
        around, name = os.path.split(folder)
        is_part = holds == EVENTS or name in _TEAM_FOLDERS
        top = around if is_part and around != "/" and not _is_open(around) else folder
    return os.path.join(top, FOLDER)


def work_tree_around(folder: str) -> WorkTree | None:
    """The work tree that holds ``folder``; None also where a stranger may have put it there."""
    top = repository_around(folder)
    if top is None or any(_is_planted(top, f"{top}/{name}") for name in (".git", "config")):
        return None
    return work_tree(top)


def work_tree(top: str) -> WorkTree | None:
    """The work tree whose first folder is ``top``, or the bare repository that it is.

    None where its ``.git`` names no repository.
    """
    if not os.path.lexists(os.path.join(top, ".git")):
        common = os.path.realpath(top)
        return WorkTree(top, common, common, _home_of(common)) if is_bare(top) else None
    try:
        git = _git_directory(top)
        if git is None:
            return None
        common = git
        home: str | None = top
        if os.path.lexists(os.path.join(git, "commondir")):
            words = read_plain_file(os.path.join(git, "commondir"), _SMALL).removesuffix(b"\n")
            if not words or b"\n" in words or b"\0" in words:
                return None
            common = os.path.realpath(os.path.join(git, os.fsdecode(words)))
            around, name = os.path.split(common)
            home = around if name == ".git" else _home_of(common)
    except OSError:
        return None
    if not all(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs")):
        return None
    return WorkTree(top, git, common, home)


def _git_directory(top: str) -> str | None:
    """Where ``.git`` of a folder leads; None: it says nothing (OSError: it cannot be read)."""
    git = os.path.join(top, ".git")
    if not os.path.isdir(git):
        words = read_plain_file(git, _SMALL, named=True).removesuffix(b"\n")
        if not words.startswith(b"gitdir: ") or b"\n" in words or b"\0" in words:
            return None
        git = os.path.join(top, os.fsdecode(words[8:]))
    return os.path.realpath(git)


def _home_of(common: str) -> str | None:
    """The home of a repository whose common directory is not called ``.git``; None: not known."""
    around = os.path.dirname(common)
    with suppress(OSError):
        if _git_directory(around) == common and not _is_planted(around, f"{around}/.git"):
            return around
    if not is_bare(common) or repository_around(around) is not None:
        return None
    return os.path.join(common, APART)


def _is_inside(tree: WorkTree) -> bool:
    """Whether a bare repository's home is the folder of ours in it."""
    return tree.home == os.path.join(tree.common, APART)


def is_bare(common: str) -> bool:
    """Whether a folder is a git directory whose configuration says that it has no work tree."""
    if not is_git_directory(common):
        return False
    for name in ("config", "config.worktree"):
        with suppress(OSError):
            if re.search(_BARE, read_plain_file(os.path.join(common, name), _SMALL)):
                return True
    return False


def configured_team(tree: WorkTree) -> str | None:
    """The team directory that the repository's own configuration names as ``tripod.team``.

    It, or the project around it; absolute, or relative to the folder around the common directory.
    """
    name = repository_setting(tree.common, "tripod.team")
    path = name and os.path.normpath(os.path.join(os.path.dirname(tree.common), name))
    return path and _named_team(path)


def is_only_stored_to(common: str) -> bool:
    """Whether a repository is one that others push to: bare, with no work tree and no team.

    No ledger was ever lost there: the records that it holds are those of others.
    """
    inside = any(os.path.lexists(os.path.join(common, name)) for name in (APART, "worktrees"))
    return is_bare(common) and not inside


def repository_setting(common: str, key: str) -> str | None:
    """What a repository's own configuration says of ``tripod.KEY``; None: nothing.

    Git reads it, with no file that the configuration includes, and only where the words stand in it
    at all: no command in a repository that does not use such a key pays for a process.
    """
    path = os.path.join(common, "config")
    is_set = rb"(?im)(?<![a-z0-9-])%b[ \t]*(=|[\r#;]|$)" % key.rpartition(".")[2].encode()
    try:
        config = read_plain_file(path, _SMALL)
        if b"tripod" not in config.lower() or not re.search(is_set, config):
            return None
    except OSError:
        return None
    import subprocess

    asked = (git_program() or "", "config", "--file", path, "--no-includes", "--null", "--get", key)
    nothing = dict.fromkeys(("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull)
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(asked, capture_output=True, check=False, timeout=30, env=nothing)
        if done.returncode == 0:
            return os.fsdecode(done.stdout.removesuffix(b"\0")) or None
    return None


def git_program() -> str | None:
    """Where git is: on a folder of the PATH that is named from the root, never the current one."""
    folders = filter(os.path.isabs, os.get_exec_path())
    paths = (os.path.join(folder, "git") for folder in folders)
    return next((one for one in paths if os.path.isfile(one) and os.access(one, os.X_OK)), None)


def repository_around(folder: str) -> str | None:
    """The folder itself or the nearest above it that holds a ``.git``, else the nearest bare one.

    A bare repository among the files of another one is a part of that: anybody may have put it
    there. None: there is neither.
    """
    folders = [folder]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    found = (one for one in folders if os.path.lexists(os.path.join(one, ".git")))
    return next(found, None) or next(filter(is_bare, folders), None)
