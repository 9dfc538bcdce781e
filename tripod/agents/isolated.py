"""Runs a program where what it may not see does not exist: a mount namespace made by bubblewrap.

In it there are the system's folders, the program's own files, an empty folder to work in and a
private home; no other process, and no network unless the order says so. That the namespace can be
made, and that nothing secret is seen in it, is tried out each time before anything runs: the file
of ``bwrap`` may be there where the kernel refuses it, as in many containers.

Where it cannot be made the program is run in an otherwise empty *folder*: it is told no path, and
nothing keeps it from looking. Which of the two it was is in the result, with the reason.

Source: design section 8; spec evidence-and-reports 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from tripod.errors import BadArgumentError, NotFoundError, RefusedError

__all__ = ["BWRAP", "HOME", "WORK", "Isolated", "Program", "isolate", "resolve"]

BWRAP = "bwrap"
HOME, WORK = "/run/tripod/home", "/run/tripod/work"
"""Where its private home and its empty folder are, in the namespace: nobody keeps programs there,
so that these cover none."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd", "pki", "resolv.conf", "ssl",
)  # fmt: skip
_PYTHON = re.compile(r"python(?:3(?:\.[0-9]+)?)?")
_PROBE_S = 30
_LOOK = """
[ -n "$(ls -A /)" ] || exit 4
for p; do if [ -e "$p" ] && [ -n "$(ls -A "$p")" ]; then echo "$p"; exit 3; fi; done
"""


class Program(NamedTuple):
    """A command line in absolute words, and the files and folders that are its own."""

    argv: tuple[str, ...]
    files: tuple[str, ...]


class Isolated(NamedTuple):
    """How a program is run: its command line, folder and variables, and what that keeps from it.

    ``problem`` says why it is no namespace.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    level: Literal["namespace", "folder"]
    problem: str | None = None


def resolve(argv: Sequence[str], shows: Iterable[str], secret: Iterable[str]) -> Program:
    """Find a program and the files that its command line names.

    Args:
        argv: the command line; a word that holds a / or a dot and names a file is one of its files.
        shows: further files and folders that it needs.
        secret: what it may not see.

    Raises:
        NotFoundError: there is no such program, or nothing at a path of ``shows``.
        RefusedError: a file of its own lies in what it may not see, or holds that.
        BadArgumentError: the command line is empty.
    """
    if not argv:
        message = "command: no program is given"
        raise BadArgumentError(message)
    found = shutil.which(argv[0])
    if found is None:
        message = f"no program {argv[0]!r}: give its path, or put its folder into PATH"
        raise NotFoundError(message)
    words, files = [os.path.abspath(found)], []
    for word in argv[1:]:
        own = ("/" in word or "." in word) and os.path.isfile(word)
        words.append(os.path.abspath(word) if own else word)
        if own:
            files.append(words[-1])
    for path in shows:
        full = os.path.abspath(os.path.expanduser(path))
        if not os.path.exists(full):
            message = f"--show {path}: nothing is there"
            raise NotFoundError(message)
        files.append(full)
    hidden = [os.path.realpath(path) for path in secret]
    for path in (words[0], *files):
        real = os.path.realpath(path)
        if any(_within(real, place) or _within(place, real) for place in hidden):
            message = f"{path} lies in what the program may not see, or holds it: put it elsewhere"
            raise RefusedError(message)
    return Program(tuple(words), tuple(files))


def isolate(
    program: Program, folder: str, hidden: Sequence[str], around: str, *, network: bool = False
) -> Isolated:
    """Say how a program is run, isolated as far as this system can; nothing is left behind.

    Args:
        program: its command line and files.
        folder: a folder of its own, which holds ``work`` and ``home`` when it runs.
        hidden: folders of which nothing must exist for it.
        around: a folder of which its own files alone may exist.
        network: whether it may reach the network.
    """
    bwrap = shutil.which(BWRAP)
    problem = f"{BWRAP} is not installed" if bwrap is None else None
    for proc in (("--proc", "/proc"), ()):
        if bwrap is None:
            break
        start = _start(program.argv[0])
        visible = _visible(program, start, [around, *hidden])
        words = [bwrap, *_namespace(visible, [around, *hidden]), *proc]
        if network:
            words.append("--share-net")
        problem = _tried(words, hidden)
        if problem is None:
            words += ["--bind", f"{folder}/home", HOME, "--tmpfs", WORK, "--chdir", WORK, "--"]
            argv = (start, *program.argv[1:])
            env = {"HOME": HOME, "PATH": _search(visible), "TMPDIR": "/tmp"}  # noqa: S108 - its own
            return Isolated((*words, *argv), folder, env, "namespace")
    env = {"HOME": f"{folder}/home"}
    return Isolated(program.argv, f"{folder}/work", env, "folder", problem)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _start(path: str) -> str:
    """The path by which a program is started in the namespace, where links may lead nowhere.

    What is called Python and is not the system's may be anything (a shim of a tool that manages
    versions): it is the interpreter that runs us.
    """
    for found in (path, os.path.realpath(path)):
        if any(_within(found, place) for place in _SYSTEM):
            return found
    if _PYTHON.fullmatch(os.path.basename(path)):
        return os.path.realpath(sys.executable)
    return os.path.realpath(path)


def _visible(program: Program, start: str, hidden: Sequence[str]) -> list[str]:
    """Paths, each to be seen with all that it holds: the system's, and the program's own."""
    paths = [path for path in _SYSTEM if os.path.isdir(path)]
    if not any(_within(start, path) for path in paths):
        paths.append(_prefix(start, hidden))
    return list(dict.fromkeys([*paths, *program.files]))


def _prefix(path: str, hidden: Sequence[str]) -> str:
    """An interpreter that somebody installed for themselves needs what stands beside its bin."""
    above, name = os.path.split(os.path.dirname(path))
    home = os.path.expanduser("~")
    private = [home, f"{home}/.local", *map(os.path.realpath, hidden)]
    whole = name == "bin" and not any(_within(place, above) for place in private)
    return above if whole else path


def _namespace(visible: Sequence[str], absent: Sequence[str]) -> list[str]:
    words = ["--unshare-all", "--die-with-parent", "--tmpfs", "/tmp", "--dev", "/dev"]  # noqa: S108
    for path in visible:
        if path in _SYSTEM and os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif path in _SYSTEM:
            words += ["--ro-bind", path, path]
    for name in _ETC:
        if os.path.exists(f"/etc/{name}"):
            words += ["--ro-bind", os.path.realpath(f"/etc/{name}"), f"/etc/{name}"]
    shown = [path for path in visible if path not in _SYSTEM]
    for place in sorted(os.path.realpath(path) for path in absent):
        if place != "/" and any(_within(place, path) for path in (*_SYSTEM, *shown)):
            words += ["--tmpfs", place]
    for path in shown:
        words += ["--ro-bind", path, path]
    return words


def _tried(words: Sequence[str], hidden: Sequence[str]) -> str | None:
    """Whether the namespace can be made, and nothing that is to be hidden is seen in it."""
    places = [os.path.realpath(path) for path in hidden]
    command = [*words, "--", "/bin/sh", "-c", _LOOK, "sh", *places]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{BWRAP}: {error}"
    if done.returncode == 0:
        return None
    if done.returncode == 3:
        return f"{done.stdout.decode('utf-8', 'replace').strip()} is seen in the namespace"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1][:200] if said else f"{BWRAP} ended with {done.returncode}"


def _search(visible: Sequence[str]) -> str:
    given = os.environ.get("PATH", os.defpath).split(os.pathsep)
    seen = [path for path in given if any(_within(path, place) for place in visible)]
    return os.pathsep.join(seen or ["/usr/bin", "/bin"])
