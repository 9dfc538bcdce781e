"""Runs a program in a mount namespace (bubblewrap), where files that it may not see do not exist.

The namespace has the system's folders, the program's own files, an empty folder to work in and a
private home; no other process, and no network unless the order allows it. The program's files are
there by content, read before anything runs and passed on in memory: changing the file on the disk,
or writing into a home of the host, changes nothing for the program. A file that is too large for
that, or no text, and a folder with such files, is *lent* as it lies on the disk.

Before each run it is tried out that the namespace can be made, and that nothing secret is visible
in it: ``bwrap`` may exist where the kernel refuses it, as in many containers. Without a namespace
the program runs in an otherwise empty *folder*: it is told no path, but it can look. The result
says which of the two it was, with the reason.

Secret are the files with the team's words, found by their names: chats, events, ledgers, exports,
records with bodies, and sessions of coding agents (design, section 8). A file of another name may
hold such words as well.

A file on the disk can be changed by any program of the same user until it is read. So the program's
files are sealed files in memory without a path (memfd_create(2), fcntl(2) F_ADD_SEALS), which not
even their creator can write.

Source: design section 8; spec evidence-and-reports 1.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import pairwise
from typing import Literal, NamedTuple

from tripod.errors import BadArgumentError, NotFoundError, RefusedError
from tripod.ledger.files import open_plain_file, read_plain_file

_TEAM = ".nbs"
_SUFFIXES = (".chat", ".event")
_LEDGER = "ledger.db"
_APART = (".git", "tripod")
"""The folder of a repository that holds the ledger of its team."""
_LINES = ".jsonl"
_OF_LINES = ("bodies", ".claude", ".codex")
"""Folders that hold the bodies of an export, or the sessions of a coding agent, as JSON lines."""

_PASSED = ("node_modules", "site-packages", "__pycache__")
"""Folders of installed programs, too large to be looked through each time."""


def _chat_in(path: str) -> str | None:
    """The first file or folder that a path shows and that, by its name, holds a team's words.

    ``path`` is a file, or a folder with all below it; links are not followed any further.
    """
    real = os.path.realpath(path)
    if _TEAM in real.split("/") or not os.path.isdir(real):
        return path if _is_chat(real) else None
    for folder, folders, names in os.walk(real):
        folders[:] = sorted(name for name in folders if name not in _PASSED)
        for found in (f"{folder}/{name}" for name in (*folders, *sorted(names))):
            if _is_chat(found):
                return found
    return None


def _is_chat(path: str) -> bool:
    *folders, name = path.split("/")
    if _TEAM in (*folders, name) or _APART in pairwise((*folders, name)):
        return True
    lines = name.endswith(_LINES) and not set(_OF_LINES).isdisjoint(folders)
    return lines or name.endswith(_SUFFIXES) or name.startswith(_LEDGER)


def _is_repository(folders: Iterable[str], names: Iterable[str]) -> bool:
    """Whether a folder that holds these is a git repository itself, as a bare clone is."""
    return "HEAD" in names and {"objects", "refs"} <= set(folders)


# Sealed -----------------------------------------------------------------------------------------


_ABOVE = 20  # lower numbers are the program's own: its input, its outputs
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_PART = 1024 * 1024


@contextmanager
def isolated_files(texts: Sequence[bytes]) -> Iterator[list[int]]:
    """Descriptors of sealed files with these bytes (OSError: another program changed one)."""
    made: list[int] = []
    try:
        made.extend(map(_sealed, texts))  # those before one that fails are in it
        yield made
    finally:
        for fd in made:
            with suppress(OSError):
                os.close(fd)


def _sealed(text: bytes) -> int:
    fd = os.memfd_create("sealed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        at = 0
        while at < len(text):
            at += os.pwrite(fd, text[at : at + _PART], at)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        # Until now who may look into this process could open and write it.
        found = b"".join(iter(lambda: os.read(fd, _PART), b""))
        if found != text:
            raise OSError("a file in memory was changed by another program before it was sealed")
        os.lseek(fd, 0, os.SEEK_SET)
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    finally:
        os.close(fd)


def with_isolated_files(argv: Sequence[str], files: Mapping[int, int]) -> list[str]:
    """A command line with the numbers of descriptors in the places of the words ``files``."""
    return [str(files[at]) if at in files else word for at, word in enumerate(argv)]


# Isolated ---------------------------------------------------------------------------------------


BWRAP = "bwrap"
HOME, WORK = "/run/tripod/home", "/run/tripod/work"
"""Where its private home and its empty folder are, in the namespace: nobody keeps programs there,
so that these cover none."""

_TRUSTED = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Where ``bwrap`` is looked for first: folders that the system's owner alone writes."""

MAX_FILES = 256  # of one folder that is given so
MAX_FOLDER = 4 * 1024 * 1024  # bytes of them all
MAX_LOOKED = 20_000  # names of a folder that are looked at

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


class ResolvedProgram(NamedTuple):
    """A command line in absolute words, and the files and folders that are its own."""

    argv: tuple[str, ...]
    files: tuple[str, ...]


class GivenFiles(NamedTuple):
    """Files by path that a program gets by content (bytes and mode), and whole folders of such.

    ``lent`` are paths that it sees as they lie on the disk, each with why.
    """

    files: dict[str, tuple[bytes, int]]
    folders: tuple[str, ...] = ()
    lent: tuple[tuple[str, str], ...] = ()


class Home(NamedTuple):
    """Its private home: files by their path in it, and a folder whose files are to come back."""

    files: Mapping[str, bytes] = {}
    folder: str = ""
    returns: str = ""


class Isolated(NamedTuple):
    """How a program is run: its command line, folder and variables, and how far it is isolated.

    ``problem`` says why it is no namespace; ``sealed`` and ``leaves`` are as in ``SpawnSpec``: what
    is to come back of its home comes as a tar archive on descriptor 9. ``bwrap`` is the path and
    the digest of what makes the namespace.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    level: Literal["namespace", "folder"]
    problem: str | None = None
    sealed: Mapping[int, bytes] = {}
    leaves: bool = False
    bwrap: tuple[str, str] | None = None


def resolve_isolated(
    argv: Sequence[str], shows: Iterable[str], secret: Iterable[str]
) -> ResolvedProgram:
    """Find a program and the files that its command line names.

    A word of ``argv`` that holds a / or a dot and names a file is one of them; ``shows`` are
    further files and folders that it needs, ``secret`` is what it may not see.

    Raises:
        NotFoundError: there is no such program, or nothing at a path of ``shows``.
        RefusedError: a file of its own is secret, or holds that: see ``refuse_to_show``.
        BadArgumentError: the command line is empty.
    """
    if not argv:
        raise BadArgumentError("command: no program is given")
    found = shutil.which(argv[0])
    if found is None:
        raise NotFoundError(f"no program {argv[0]!r}: give its path, or put its folder into PATH")
    words, files = [os.path.abspath(found)], []
    for word in argv[1:]:
        own = ("/" in word or "." in word) and os.path.isfile(word)
        words.append(os.path.abspath(word) if own else word)
        if own:
            files.append(words[-1])
    for path in shows:
        full = os.path.abspath(os.path.expanduser(path))
        if not os.path.exists(full):
            raise NotFoundError(f"--show {path}: nothing is there")
        files.append(full)
    places = list(secret)
    for path in (words[0], *files):
        refuse_to_show(path, places)
    return ResolvedProgram(tuple(words), tuple(files))


def refuse_to_show(path: str, secret: Iterable[str]) -> None:
    """Refuse a program a path that shows ``secret``, or some team's words (RefusedError)."""
    real = os.path.realpath(path)
    hidden = [os.path.realpath(place) for place in secret]
    if any(_within(real, place) or _within(place, real) for place in hidden):
        raise RefusedError(
            f"{path} lies in what the program may not see, or holds it: put it elsewhere"
        )
    found = _chat_in(path)
    if found is not None:
        what = "is, by its name," if found == path else f"holds {found}, by its name"
        raise RefusedError(
            f"{path} {what} a place of what a team says, which the program may not see: leave it "
            "out, or rename it if it is something else"
        )


def files_for_isolated(program: ResolvedProgram, limit: int) -> GivenFiles:
    """A program's own files, those that its command line names and its script, by content.

    ``limit`` is in bytes: a longer file is lent, and so is a folder with a longer one, or a binary.
    One that cannot be read is a RefusedError.
    """
    given = GivenFiles({})
    start, folders, lent = program.argv[0], [], []
    for path in dict.fromkeys((start, *program.files)):
        try:
            if os.path.isdir(path):
                problem = _read_folder(path, limit, given.files)
                if problem:
                    lent.append((path, problem))
                else:
                    folders.append(path)
            elif path in program.files or (
                not any(_within(start, top) for top in _SYSTEM)
                and read_plain_file(start, 2, named=True).startswith(b"#!")
            ):
                data, mode = _read_file(path, limit)
                given.files[path] = data, mode
                if len(data) > limit:
                    lent.append((path, f"it holds more than {limit} bytes"))
        except OSError as error:
            raise RefusedError(
                f"{path}: {error.strerror}: what the program is given is kept, so it must be "
                "readable"
            ) from error
    return given._replace(folders=tuple(folders), lent=tuple(lent))


def _read_file(path: str, limit: int) -> tuple[bytes, int]:
    """The bytes of a file, of a longer one one byte more than is given; and its mode."""
    with open(open_plain_file(path, named=True), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        return file.read(limit + 1), 0o555 if mode & 0o111 else 0o444


def _read_folder(top: str, limit: int, files: dict[str, tuple[bytes, int]]) -> str:
    """Read a folder's files into ``files``; why it cannot be given by content, '' where it can.

    What is no text, a link, a repository, or beyond the limits, is left out.
    """
    names, count, size, unseen = 0, 0, 0, []
    for folder, folders, found in os.walk(top):
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
        inner = [name for name in folders if name == ".git" or name in links]
        unseen += [f"{folder}/{name}" for name in inner]
        folders[:] = sorted(set(folders) - set(inner))
        if _is_repository(folders, found):
            unseen.append(folder)
            folders.clear()
            continue
        names += len(found) + len(folders)
        if names > MAX_LOOKED:
            return f"it holds more than {MAX_LOOKED} files"
        for name in sorted(found):
            path = f"{folder}/{name}"
            data, mode = b"\0", 0
            if count < MAX_FILES and stat.S_ISREG(os.lstat(path).st_mode):
                data, mode = _read_file(path, limit)
            is_text = b"\0" not in data
            try:
                data.decode()
            except UnicodeDecodeError:
                is_text = False
            if len(data) > limit or size + len(data) > MAX_FOLDER or not is_text:
                unseen.append(path)
                continue
            files[path] = data, mode
            count, size = count + 1, size + len(data)
    if not unseen:
        return ""
    named = ", ".join(os.path.relpath(path, top) for path in unseen[:3])
    more = f" and {len(unseen) - 3} more" if len(unseen) > 3 else ""
    return f"{named}{more} cannot be looked at: no text, links, a repository, or too much"


class _Words(list[str]):
    """A command line of ``bwrap`` as it grows, with the files in memory that it names."""

    def __init__(self, *words: str) -> None:
        super().__init__(words)
        self.sealed: dict[int, bytes] = {}

    def file(self, option: str, data: bytes, path: str, mode: int) -> None:
        """A file by its content; the descriptor's number takes the place of the word ``memory``."""
        self.extend(["--perms", f"{mode:04o}", option])
        self.sealed[len(self)] = data
        self.extend(["memory", path])


_RETURNS = """
trap : TERM INT HUP
folder=$1; shift
"$@"; code=$?
[ -d "$folder" ] && tar -cf - -C "$folder" . >&9
exit $code
"""
"""Runs a program and has the files of a folder come back, however it ends."""


def isolate(
    program: ResolvedProgram,
    folder: str,
    hidden: Sequence[str],
    around: str,
    *,
    network: bool = False,
    given: GivenFiles | None = None,
    home: Home | None = None,
) -> Isolated:
    """Say how a program is run, isolated as far as this system can; nothing is left behind.

    Args:
        program: its command line and files.
        folder: a folder of its own, which holds ``work`` and ``home`` when it runs.
        hidden: folders of which nothing must exist for it.
        around: a folder of which its own files alone may exist.
        network: whether it may reach the network.
        given: its files by content; all that its command line names is lent where that is None.
        home: what its private home holds.
    """
    home = home or Home()
    bwrap, problem = _bwrap()
    for proc in (("--proc", "/proc"), ()):
        if bwrap is None:
            break
        start = _program_path(program.argv[0])
        visible = [path for path in _SYSTEM if os.path.isdir(path)]
        if not any(_within(start, path) for path in visible):
            visible.append(_interpreter_prefix(start, [around, *hidden]))
        visible = list(dict.fromkeys([*visible, *program.files]))
        words = _Words(bwrap)
        _namespace(words, visible, [around, *hidden], given or GivenFiles({}))
        words += proc
        if network:
            words += ["--share-net"]
        problem = _probe_namespace(words, hidden, words.sealed)
        if problem is None:
            words += ["--tmpfs", HOME]
            if home.folder:
                words += ["--dir", f"{HOME}/{home.folder}"]
            for name, data in home.files.items():
                words.file("--file", data, f"{HOME}/{name}", 0o600)
            words += ["--tmpfs", WORK, "--chdir", WORK, "--"]
            if home.returns:
                words += ["/bin/sh", "-c", _RETURNS, "sh", f"{HOME}/{home.returns}"]
            argv = (*words, start, *program.argv[1:])
            places = os.environ.get("PATH", os.defpath).split(os.pathsep)
            seen = [one for one in places if any(_within(one, path) for path in visible)]
            search = os.pathsep.join(seen or ["/usr/bin", "/bin"])
            env = {"HOME": HOME, "PATH": search, "TMPDIR": "/tmp"}  # noqa: S108 - its own
            with open(bwrap, "rb") as file:
                made = (bwrap, sha256(file.read()).hexdigest())
            leaves = bool(home.returns)
            return Isolated(argv, folder, env, "namespace", None, words.sealed, leaves, made)
    env = {"HOME": f"{folder}/home"}
    return Isolated(program.argv, f"{folder}/work", env, "folder", problem)


def _bwrap() -> tuple[str | None, str | None]:
    """The path of ``bwrap``, or why no copy of it can be trusted."""
    for place in _TRUSTED:
        path = f"{place}/{BWRAP}"
        if os.access(path, os.X_OK) and not _written_by_others(path, root=True):
            return path, None
    found = shutil.which(BWRAP)
    if found is None:
        return None, f"{BWRAP} is not installed"
    path = os.path.realpath(found)
    if _written_by_others(path):
        return None, f"{path} can be changed by others than you: install the system's {BWRAP}"
    return path, None


def _written_by_others(path: str, *, root: bool = False) -> bool:
    """Whether others than root (and, unless ``root``, than us) can write a file or its folder."""
    owners = {0} if root else {0, os.getuid()}
    real = os.path.realpath(path)
    found = [os.stat(real), os.stat(os.path.dirname(real))]
    return any(one.st_uid not in owners or one.st_mode & 0o022 for one in found)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _program_path(path: str) -> str:
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


def _interpreter_prefix(path: str, hidden: Sequence[str]) -> str:
    """An interpreter that somebody installed for themselves needs what stands beside its bin."""
    above, name = os.path.split(os.path.dirname(path))
    home = os.path.expanduser("~")
    private = [home, f"{home}/.local", *map(os.path.realpath, hidden)]
    if name != "bin" or any(_within(place, above) for place in private) or _chat_in(above):
        return path
    for _, folders, names in os.walk(os.path.realpath(above)):
        # The history of a repository, bare or not, may hold any file's text.
        if ".git" in (*folders, *names) or _is_repository(folders, names):
            return path
    return above


def _namespace(
    words: _Words, visible: Sequence[str], absent: Sequence[str], given: GivenFiles
) -> None:
    """The options that make it: first the system's folders, then covers, then what it has."""
    words += ["--unshare-all", "--die-with-parent", "--tmpfs", "/tmp", "--dev", "/dev"]  # noqa: S108
    # Run by root it would keep every right over the namespace, and could take a cover off again.
    words += ["--cap-drop", "ALL"]
    for path in visible:
        if path in _SYSTEM and os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif path in _SYSTEM:
            words += ["--ro-bind", path, path]
    for name in _ETC:
        if os.path.exists(f"/etc/{name}"):
            words += ["--ro-bind", os.path.realpath(f"/etc/{name}"), f"/etc/{name}"]
    shown = [path for path in visible if path not in _SYSTEM]
    covered: list[str] = []
    for place in sorted(os.path.realpath(path) for path in absent):
        # What lies below a cover is gone with it: one of its own would show its name.
        if place == "/" or any(_within(place, cover) for cover in covered):
            continue
        if any(_within(place, path) for path in (*_SYSTEM, *shown)):
            words += ["--tmpfs", place]
            covered.append(place)
    lent = {path for path, _ in given.lent}
    for path in shown:
        if path in given.folders:
            words += ["--tmpfs", path]
            for name, (data, mode) in given.files.items():
                if name != path and _within(name, path):
                    words.file("--file", data, name, mode)
        elif path in given.files and path not in lent:
            data, mode = given.files[path]
            words.file("--ro-bind-data", data, path, mode)
        else:
            words += ["--ro-bind", path, path]


def _probe_namespace(
    words: Sequence[str], hidden: Sequence[str], sealed: Mapping[int, bytes]
) -> str | None:
    """Make the namespace for a trial; why it cannot be used, if it cannot, or shows a secret."""
    places = [os.path.realpath(path) for path in hidden]
    try:
        with isolated_files(list(sealed.values())) as made:
            numbered = with_isolated_files(words, dict(zip(sealed, made, strict=True)))
            done = subprocess.run(
                [*numbered, "--", "/bin/sh", "-c", _LOOK, "sh", *places],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_S,
                pass_fds=made,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{BWRAP}: {error}"
    if done.returncode == 0:
        return None
    if done.returncode == 3:
        return f"{done.stdout.decode('utf-8', 'replace').strip()} is seen in the namespace"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1][:200] if said else f"{BWRAP} ended with {done.returncode}"
