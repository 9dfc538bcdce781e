"""Installs the git hooks that put heads into commits, and takes them out again.

Where ``core.hooksPath`` is not set, the hooks go into the repository's own folder of hooks; one
that stands there already is kept beside ours and called first. Where it is set, that folder may be
tracked, or shared by all of a user's repositories: it is left alone. Then ours is a folder in the
repository's common directory, whose hooks call those of the other folder, and ``core.hooksPath``
of this repository names it. What was there before is written down, for ``remove_hooks``.

All work trees of a repository share its hooks.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.ledger.files import read_plain_file, replace_file
from tripod.ledger.locator import APART, WorkTree, git_program, work_tree_around

HOOKS = ("commit-msg", "post-commit")
_OTHERS = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit",
    "prepare-commit-msg", "pre-rebase", "post-checkout", "post-merge", "pre-push", "post-rewrite",
    "pre-auto-gc", "sendemail-validate",
)  # fmt: skip
"""Hooks that are passed on where a folder of ours stands in place of another."""
_KEPT = ".before-tripod"
_SETTING = "core.hooksPath"
_MARK = "# Made by `tripod hooks install`; `tripod hooks install --remove` undoes it.\n"
_BEFORE = "hooks-before"
_MAX_HOOK = 1024 * 1024

_RUN = {
    "commit-msg": '{python} -P -m tripod.peers.commit commit-msg "$1" <{null} || :\n',
    # Nobody waits for the ref: to write it takes longer than a commit.
    "post-commit": "({python} -P -m tripod.peers.commit post-commit <{null} >{null} 2>&1 &)\n",
}


class HookPlaces(NamedTuple):
    """Where the hooks are: the folder that git looks into, and that of ours.

    ``configured`` is the value of ``core.hooksPath``, None where nothing sets it; ``scope`` says
    which configuration does.
    """

    tree: WorkTree
    configured: str | None
    scope: str

    @property
    def own(self) -> str:
        """The folder that stands in the place of a configured one."""
        return f"{self.tree.common}/{APART}/hooks"

    @property
    def folder(self) -> str:
        """Where our hooks go."""
        return f"{self.tree.common}/hooks" if self.configured is None else self.own


def _git(tree: WorkTree, *words: str) -> tuple[int, str]:
    """Ask git for a setting, or change one: nothing of the repository is run by that."""
    git = git_program()
    if git is None:
        raise RefusedError("git cannot be run: it is on no folder of the PATH")
    asked = (git, "-C", tree.top, "config", *words)
    done = subprocess.run(asked, capture_output=True, check=False, timeout=60)
    if done.returncode not in (0, 1, 5):
        raise RefusedError(os.fsdecode(done.stderr).strip() or f"git config: {done.returncode}")
    return done.returncode, os.fsdecode(done.stdout)


def hook_places(start: str) -> HookPlaces:
    """Where the hooks of the repository around ``start`` are.

    Raises BadArgumentError where ``start`` is not a folder, NotFoundError without a repository.
    """
    if not os.path.isdir(start):  # else the hooks of a repository above it would be changed
        raise BadArgumentError(f"{start} is not a folder: name one that lies in the repository")
    tree = work_tree_around(os.path.abspath(start))
    if tree is None:
        raise NotFoundError(f"{start}: there is no git repository around it, so there are no hooks")
    code, said = _git(tree, "--show-scope", "--null", "--get", _SETTING)
    if code:
        return HookPlaces(tree, None, "")
    scope, value = said.split("\0")[:2]
    return HookPlaces(tree, value, scope)


def _script(name: str, before: str) -> bytes:
    """A hook that calls the one that was there before, then does its own work."""
    lines = f'#!/bin/sh\n{_MARK}if [ -x {before} ]; then {before} "$@" || exit; fi\n'
    if name in HOOKS:
        python = shlex.quote(sys.executable)
        lines += f"if [ -x {python} ]; then {_RUN[name].format(python=python, null=os.devnull)}fi\n"
    return os.fsencode(f"{lines}exit 0\n")


def _is_ours(path: str) -> bool:
    try:
        return _MARK.encode() in read_plain_file(path, _MAX_HOOK)[:_MAX_HOOK]
    except OSError:
        return False


def install_hooks(start: str) -> list[str]:
    """Put the hooks in place, again if they are there; give their paths.

    Raises NotFoundError where there is no repository, RefusedError where the hooks of the
    repository cannot be replaced.
    """
    places = hook_places(start)
    if places.configured == places.own:  # installed before: anew, over the same folder
        scope, _, value = _before(places.own)
        return _install_apart(places, scope, value)
    if places.configured is not None:
        return _install_apart(places, places.scope, places.configured)
    os.makedirs(places.folder, exist_ok=True)
    made = []
    for name in HOOKS:
        path = f"{places.folder}/{name}"
        if os.path.lexists(path) and not _is_ours(path):
            if os.path.lexists(path + _KEPT):
                raise RefusedError(
                    f"{path} is no hook of ours, and {path + _KEPT} stands beside it from before: "
                    "decide which of the two you want, and remove the other"
                )
            os.rename(path, path + _KEPT)
        replace_file(path, _script(name, f'"$0{_KEPT}"'), 0o755)
        made.append(path)
    return made


def _install_apart(places: HookPlaces, scope: str, value: str) -> list[str]:
    """Put a folder of ours in the place of a configured one."""
    old = os.path.expanduser(value)  # as git reads it; a relative one is from the work tree's top
    os.makedirs(places.own, exist_ok=True)
    kept = f"{scope}\0{value}\0".encode("utf-8", "surrogateescape")
    replace_file(f"{os.path.dirname(places.own)}/{_BEFORE}", kept, 0o644)
    made = []
    for name in (*HOOKS, *_OTHERS):
        before = shlex.quote(f"{old or '.'}/{name}")
        replace_file(f"{places.own}/{name}", _script(name, before), 0o755)
        made.append(f"{places.own}/{name}")
    _git(places.tree, "--local", _SETTING, places.own)
    if hook_places(places.tree.top).configured != places.own:
        _restore_setting(places, scope, value)
        raise RefusedError(
            f"{_SETTING} is set to {value} for this work tree alone, so that hooks of ours would "
            "never be called: unset it (`git config --worktree --unset core.hooksPath`)"
        )
    return made[: len(HOOKS)]


def _before(own: str) -> tuple[str, str, str]:
    """Which configuration set the folder before ours, where that is written down, and which."""
    path = f"{os.path.dirname(own)}/{_BEFORE}"
    try:
        scope, value, _ = os.fsdecode(read_plain_file(path, _MAX_HOOK)).split("\0")
    except (OSError, ValueError) as error:
        raise RefusedError(
            f"{path} should say where the hooks were before, and does not: set {_SETTING} yourself"
        ) from error
    return scope, path, value


def _restore_setting(places: HookPlaces, scope: str, value: str) -> None:
    words: Sequence[str] = (_SETTING, value) if scope == "local" else ("--unset", _SETTING)
    _git(places.tree, "--local", *words)
    shutil.rmtree(places.own, ignore_errors=True)
    os.unlink(f"{os.path.dirname(places.own)}/{_BEFORE}")


def remove_hooks(start: str) -> list[str]:
    """Take the hooks out again, and put back what was there before; give the paths of ours."""
    places = hook_places(start)
    removed = []
    if places.configured == places.own:
        scope, _, value = _before(places.own)
        removed = [f"{places.own}/{name}" for name in HOOKS]
        _restore_setting(places, scope, value)
    for name in HOOKS:
        path = f"{places.tree.common}/hooks/{name}"
        if _is_ours(path):
            os.unlink(path)
            removed.append(path)
            if os.path.lexists(path + _KEPT):
                os.rename(path + _KEPT, path)
    return removed
