"""Takes the team's files out of git's index, and leaves them on the disk.

Earlier versions had them committed with the work. Tracked, a switch of branch puts an older state
of them in the place of the live one, and git refuses to switch once a command wrote to them.

Git does it in a directory of ours, as ``tripod.verify.anchors.git`` says: no hook, filter or
attribute of the repository is run, and git's own lock on the index is taken.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from tripod.errors import GitError, RefusedError
from tripod.ledger.locator import FOLDER, work_tree_around
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.git_folder import find


class TrackedFiles(NamedTuple):
    """The files of a team that the index of a work tree holds: the folder, and their paths."""

    folder: str
    paths: tuple[str, ...]


def tracked_files(root: str, here: str) -> list[TrackedFiles]:
    """What of the team directory ``root`` is tracked, in its work tree and in that around ``here``.

    A linked work tree has an index of its own, in which ``.nbs/`` at its top is tracked. An index
    that cannot be read tells nothing.
    """
    found = []
    for folder in _folders(root, here):
        try:
            with Repository(folder) as repository:
                paths = _listed(repository, folder)
        except GitError:
            continue
        if paths:
            found.append(TrackedFiles(folder, tuple(paths)))
    return found


def untrack_files(root: str, here: str) -> list[TrackedFiles]:
    """Take what ``tracked_files`` finds out of the index; the next commit says so to others.

    Raises RefusedError where git refuses: another program has the index locked, or its form is not
    read here. What was untracked in another work tree before stays so.
    """
    done = []
    for folder in _folders(root, here):
        try:
            with Repository(folder) as repository:
                paths = _listed(repository, folder)
                if not paths:
                    continue
                nothing = "0" * len(repository.tip("HEAD") or "0" * 40)
                lines = "".join(f"0 {nothing}\t{path}\0" for path in paths)
                given = lines.encode("utf-8", "surrogateescape")
                repository.ask(
                    "update-index", "-z", "--index-info",
                    given=given, environment=_environment(repository),
                )  # fmt: skip
        except GitError as error:
            raise RefusedError(
                f"{error}; nothing was untracked there: `git rm -r --cached {folder}` does it"
            ) from error
        done.append(TrackedFiles(folder, tuple(paths)))
    return done


def _folders(root: str, here: str) -> list[str]:
    """The team directory, and the folder of its name in the work tree around ``here``."""
    tree = work_tree_around(os.path.abspath(here))
    linked = [] if tree is None or tree.home in (None, tree.top) else [f"{tree.top}/{FOLDER}"]
    return [folder for folder in (root, *linked) if _is_in_repository(folder)]


def _is_in_repository(folder: str) -> bool:
    try:
        return find(folder) is not None
    except GitError:
        return False


def _environment(repository: Repository) -> dict[str, str]:
    return {"GIT_INDEX_FILE": f"{repository.place.git}/index"}


def _listed(repository: Repository, folder: str) -> list[str]:
    name = repository.name_of(folder, link=True)
    said = repository.ask(
        "ls-files", "-z", "--cached", "--full-name", "--", name,
        environment=_environment(repository),
    )  # fmt: skip
    return list(dict.fromkeys(os.fsdecode(said).split("\0")[:-1]))
