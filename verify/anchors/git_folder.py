"""Finds the git repository around a path, and reads its small files, without running git.

The nearest ``.git`` above the path's own folder counts, and no other: not a repository that the
path itself holds, not one that is named by ``core.worktree``, a bare repository among the files, or
a variable of the environment. The repository may be a stranger's: each file is read as a regular
file with a limit, and what is not a plain part of a repository is refused in words.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from tripod.ledger import GitError
from tripod.ledger.files import read_plain_file
from tripod.ledger.locator import repository_around, work_tree

_MAX_SMALL = 1024 * 1024
_MAX_REFS = 256 * 1024 * 1024
_MAX_DEPTH = 50
_MAX_STEPS = 5
_NAME = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFLOG = rb"(?m)^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) "
_PLAIN_SECTION = re.compile(r'\[([A-Za-z][A-Za-z0-9-]*)(?: "([A-Za-z0-9_./@+-]+)")?\]')
_PLAIN_SETTING = re.compile(
    r"\t([A-Za-z][A-Za-z0-9-]*) = ([A-Za-z0-9_:/.,@+*~%=^-]+(?: [A-Za-z0-9_:/.,@+*~%=^-]+)*)"
)
_NO_GIT = "--no-git leaves the history alone"


class RepositoryPath(NamedTuple):
    """Where a repository is, and where in its work tree a path lies.

    ``top`` is the work tree's first folder, ``inside`` the path from there ('': it is the top).
    ``git`` is the git directory of this work tree, ``common`` that which all work trees of the
    repository share. ``outer`` is the top of another repository around this one.
    """

    top: str
    inside: str
    git: str
    common: str
    outer: str | None = None


class Refs(NamedTuple):
    """What a repository names: its refs, the commits of all HEADs, and those of all reflogs.

    ``head`` is what HEAD of this work tree stands for, ``branch`` the full name of the branch that
    is checked out. ``logs`` gives each reflog by its ref, the newest first.
    """

    head: str | None
    branch: str | None
    refs: dict[str, str]
    heads: tuple[str, ...]
    logs: dict[str, tuple[str, ...]]


_CURES = (
    (
        ".lock': File exists",
        " Another git is at work there; if none is, one that was killed left the lock: remove it",
    ),
    ("dubious ownership", ": `git config --global --add safe.directory PATH` says you trust it"),
    ("mismatched algorithms", ": git exchanges nothing between sha1 and sha256"),
    ("unexpected capabilities^{}", ": git exchanges nothing between sha1 and sha256"),
)
"""Words of git's own, and what they mean for somebody who never saw them."""


def git_failure(said: str) -> str:
    """Why git failed, of all that it said: the first line that is no advice, and what to do."""
    lines = said.strip().split("\n")
    telling = (one for one in lines if not one.lower().startswith(("hint:", "warning:")))
    reason = next(telling, lines[0])
    return reason + next((cure for word, cure in _CURES if word in reason), "")


def find(path: str) -> RepositoryPath | None:
    """The nearest repository above the folder that ``path`` lies in; None if absent.

    ``path`` need not be there. The top of a repository is in it only where no other is around it.
    GitError: a symbolic link, or a repository inside of the repository, stands on the way.
    """
    full = os.path.abspath(path)
    folder = os.path.dirname(full)
    top, real = repository_around(folder), repository_around(os.path.realpath(folder))
    if top is None and real is None:
        is_top = os.path.lexists(os.path.join(full, ".git"))
        return _place(os.path.realpath(full), "") if is_top else None
    if top is None:  # we came in by a link that lies outside of the repository
        assert real is not None
        parent = os.path.realpath(os.path.dirname(full))
        top, full = real, os.path.join(parent, os.path.basename(full))
    elif real is None or not os.path.samefile(top, real):
        raise GitError(
            f"{path}: a symbolic link leads there, out of the repository {top}, whose history says "
            f"nothing of it; name what it leads to ({os.path.realpath(full)}), or {_NO_GIT}"
        )
    inside, here = os.path.relpath(full, top), top
    for part in inside.split("/"):  # what git does not keep as a folder of this repository
        here = os.path.join(here, part)
        if os.path.islink(here) and os.path.isdir(here):
            what = "a symbolic link: git keeps the link, and no history of what it leads to"
        elif os.path.lexists(os.path.join(here, ".git")):
            what = "a repository (or submodule) of its own, which anybody can begin anew"
        elif all(os.path.lexists(os.path.join(here, name)) for name in ("HEAD", "objects", "refs")):
            what = "a bare git repository among the files"
        else:
            continue
        raise GitError(
            f"{here} is {what}; the history of {top} cannot vouch for it: put a plain folder there"
            f", or {_NO_GIT}"
        )
    return _place(os.path.realpath(top), inside)


def _place(top: str, inside: str) -> RepositoryPath:
    """The repository of the work tree ``top``, and whether another one is around it."""
    tree = work_tree(top)
    if tree is None:
        raise _no_repository(os.path.join(top, ".git"))
    above = os.path.dirname(top)
    outer = None if above == top else repository_around(above)
    return RepositoryPath(top, inside, tree.git, tree.common, outer)


def _no_repository(entry: str) -> GitError:
    return GitError(
        f"{entry} names no git repository: mend or remove it (`git status` there says more)"
    )


def git_owner_differs(place: RepositoryPath) -> str | None:
    """What of the repository belongs to another user, as git itself judges that; None: nothing."""
    entry = os.path.join(place.top, ".git")
    for path in (place.git if place.top == place.common else entry, place.top, place.git):
        try:
            owner = os.lstat(path).st_uid
        except OSError as error:
            raise GitError(f"{path} cannot be looked at: {error.strerror or error}") from error
        mine = os.geteuid()
        if mine == 0 and owner:
            asked = os.environ.get("SUDO_UID", "")  # git lets root read what its caller owns
            mine = int(asked) if re.fullmatch("[0-9]{1,10}", asked) else mine
        if owner != mine:
            return path
    return None


def _read(path: str, limit: int) -> bytes:
    """A regular file of a repository, whole (GitError: it is not a regular file, or too large)."""
    try:
        data = read_plain_file(path, limit)
    except OSError as error:
        raise GitError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > limit:
        raise GitError(f"{path} has more than {limit} bytes: it is not read")
    return data


def _read_present(path: str, limit: int) -> bytes:
    """A regular file of a repository, whole; b'' if nothing has its name."""
    return _read(path, limit) if os.path.lexists(path) else b""


def read_git_config(place: RepositoryPath) -> bytes:
    """The repository's own configuration as it stands there; b'' if absent."""
    return _read_present(os.path.join(place.common, "config"), _MAX_SMALL)


def plain_git_settings(config: bytes) -> dict[str, tuple[str, ...]] | None:
    """The settings of a configuration in the form that git itself writes; None: git must read it.

    A quote, a comment, a line that goes on, a value without its key: all that is left to git. What
    is read here costs no process.
    """
    settings: dict[str, list[str]] = {}
    front = ""
    try:
        lines = config.decode("ascii").split("\n")
    except UnicodeDecodeError:
        return None
    if lines.pop():
        return None
    for line in lines:
        section = _PLAIN_SECTION.fullmatch(line)
        if section is not None:
            front = ".".join(filter(None, (section[1].lower(), section[2]))) + "."
            continue
        setting = _PLAIN_SETTING.fullmatch(line)
        if setting is None or not front:
            return None
        settings.setdefault(front + setting[1].lower(), []).append(setting[2])
    return {key: tuple(values) for key, values in settings.items()}


def listed_git_settings(listed: bytes) -> dict[str, tuple[str, ...]]:
    """The settings in what ``git config --null --list`` prints."""
    settings: dict[str, list[str]] = {}
    for line in os.fsdecode(listed).split("\0")[:-1]:
        key, _, value = line.partition("\n")
        settings.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in settings.items()}


def read_git_shallow(place: RepositoryPath) -> bytes:
    """The commits at which a shallow clone begins, one in a line; b'' where it is whole."""
    path = os.path.join(place.common, "shallow")
    data = _read_present(path, _MAX_REFS)
    if not all(_NAME.fullmatch(line) for line in data.splitlines()):
        raise GitError(f"{path} holds something else than names of commits: `git fsck` says more")
    return data


def read_git_refs(place: RepositoryPath) -> Refs:
    """All refs, HEADs and reflogs (GitError: one of them is not as git writes it)."""
    loose: dict[str, str] = {}
    symbolic: dict[str, str] = {}
    trees = os.path.join(place.common, "worktrees")
    try:
        inside = sorted(os.listdir(trees)) if os.path.isdir(trees) else []
    except OSError as error:
        raise GitError(f"{trees} cannot be read: {error.strerror or error}") from error
    others = [path for name in inside if os.path.isdir(path := os.path.join(trees, name))]
    folders = list(dict.fromkeys((place.common, place.git, *others)))
    for folder in dict.fromkeys((place.common, place.git)):
        for path, name in _walk(folder, "refs"):
            target, named = _value(path)
            (symbolic if named else loose)[name] = target
    refs = _packed(os.path.join(place.common, "packed-refs")) | loose
    followed = {}
    for name in symbolic:
        target = name
        for _ in range(_MAX_STEPS):  # so far git follows refs that name other refs
            target = symbolic.get(target, target)
        if target in symbolic:
            raise GitError(
                f"{name} leads from ref to ref, and to no commit: `git symbolic-ref` sets it"
            )
        if target in refs:
            followed[name] = refs[target]
    refs |= followed
    heads, head, branch = [], None, None
    for folder in folders:
        path = os.path.join(folder, "HEAD")
        if folder != place.git and not os.path.lexists(path):
            continue
        target, named = _value(path)
        found = refs.get(target) if named else target
        heads += [found] if found else []
        if folder == place.git:
            head, branch = found, target if named else None
    logs: dict[str, tuple[str, ...]] = {}
    for folder in folders:
        for path, name in _walk(folder, "logs"):
            names = re.findall(_REFLOG, _read(path, _MAX_REFS))
            tips = [tip.decode() for pair in reversed(names) for tip in reversed(pair)]
            ref = name.removeprefix("logs/")
            logs[ref] = logs.get(ref, ()) + tuple(tip for tip in tips if tip.strip("0"))
    return Refs(head, branch, refs, tuple(heads), logs)


def _walk(folder: str, below: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Path and name of every file in a folder of refs; what git would not take for one is not."""
    here = os.path.join(folder, below)
    if depth > _MAX_DEPTH:
        raise GitError(f"{here} is nested too deep: it is not read")
    try:
        entries = sorted(os.scandir(here), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise GitError(f"{here} cannot be read: {error.strerror or error}") from error
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith(".lock"):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder, f"{below}/{entry.name}", depth + 1)
        else:
            yield entry.path, f"{below}/{entry.name}"


def _value(path: str) -> tuple[str, bool]:
    """What a ref says: an object's name, or the name of another ref (then True)."""
    if os.path.islink(path):
        target = os.readlink(path)  # so git wrote symbolic refs long ago
        if target.startswith("refs/"):
            return target, True
    data = _read(path, _MAX_SMALL).rstrip(b"\n ")
    if data.startswith(b"ref:"):
        return os.fsdecode(data[4:].strip()), True
    first = data.split(b"\n")[0].split(b"\t")[0]
    if not _NAME.fullmatch(first):
        raise GitError(
            f"{path} is no ref that can be read: `git fsck` says more, mend or remove it"
        )
    return first.decode(), False


def _packed(path: str) -> dict[str, str]:
    found = {}
    for line in _read_present(path, _MAX_REFS).split(b"\n"):
        if not line or line.startswith((b"#", b"^")):
            continue
        name, _, ref = line.partition(b" ")
        if not _NAME.fullmatch(name) or not ref.startswith(b"refs/"):
            raise GitError(f"{path} holds a line that is no ref: `git fsck` says more")
        found[os.fsdecode(ref)] = name.decode()
    return found


def git_store_problem(place: RepositoryPath) -> str | None:
    """Why git must not look into the object store: something there would make it wait for ever."""
    stores = [(os.path.join(place.common, "objects"), 0)]
    seen: set[str] = set()
    while stores:
        store, depth = stores.pop()
        if store in seen or depth > 5:  # so deep git follows alternates
            continue
        seen.add(store)
        with os.scandir(store) as entries:
            folders = [store, *(entry.path for entry in entries if entry.is_dir())]
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not (entry.is_file() or entry.is_dir() or entry.is_symlink()):
                        return f"{entry.path} is neither a file nor a folder"
                    if entry.is_symlink() and _special(entry.path):
                        return f"{entry.path} leads to what is neither a file nor a folder"
        path = os.path.join(store, "info", "alternates")
        for line in _read_present(path, _MAX_SMALL).split(b"\n"):
            if line.startswith(b'"'):
                return f"{path} has a quoted line, which is not read here"
            # An empty line names the store itself, and a comment nothing that is there.
            other = os.path.realpath(os.path.join(store, os.fsdecode(line)))
            stores += [(other, depth + 1)] if os.path.isdir(other) else []
    return None


def _special(path: str) -> bool:
    """Whether a link leads to a pipe, a device or a socket."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # nothing is there, so nothing is opened
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
