"""Durable writes, safe reads and locks of single files: what needs ``fsync`` or ``flock``.

Writing: files and names are on the disk when the call returns, whole, or as they were. This is for
a few important files (keys, seals, copies); ``tripod.projections.disk`` waits for the disk once for
all of the team's files.

Reading: a clone of a repository can hold a symbolic link to ``/proc/self/fd/1`` or to a private
key, and any program of this user can leave a named pipe, on which an open waits for ever. So a file
from a stranger is opened only if it is a regular one, and read within a limit: here, or through
``tripod.projections.disk``.

Locks: every file lock of the project is taken here. SQLite's own busy handler lets writers starve
(p99 3 s against 17 ms with 8 processes; spec: tamper-evidence 8), so writers queue on an flock
first. It is flock and not a POSIX record lock because it belongs to the open file: two stores in
one process exclude each other, and closing another descriptor of the same file does not drop it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from typing import IO, Self


def sync_path(path: str) -> None:
    """Wait until the disk has a file's bytes, or the names in a folder (OSError: it refuses)."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_name(path: str) -> None:
    """Wait until the disk has the name of a file, or that it is gone (OSError: it refuses)."""
    sync_path(os.path.dirname(os.path.abspath(path)))


def rename_file(old: str, new: str) -> None:
    """Give a file another name within its folder, and wait for the disk (OSError: it refuses)."""
    os.rename(old, new)
    sync_name(new)


def make_folder(path: str, mode: int) -> None:
    """Make a folder, and those above it that are missing, and wait for their names on the disk.

    Without that a power cut can take the folder, and a file in it that was waited for (OSError: the
    disk refuses).
    """
    missing = []
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder, mode)
        sync_name(folder)


def name_file(staged: str, path: str) -> bool:
    """Give a file that was staged its name where nothing has that; the disk is not waited for.

    False where something has it: then the staged file is removed. A file system without hard
    links is asked first, and a file that comes between the two is written over.
    """
    free = True
    try:
        os.link(staged, path)
    except FileExistsError:
        free = False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        free = not os.path.lexists(path)
        if free:
            os.rename(staged, path)
            return True
    os.unlink(staged)
    return free


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""The file in which the kernel names the time since this host was started last."""


def read_boot_id() -> str:
    """A name that no other start of this host has; '' where the system gives none.

    While it stays the same, all that was written is to be read, synced or not.
    """
    return _boot_id(BOOT_ID)


def read_boot_time() -> int:
    """When this host was started, in nanoseconds since 1970 by its clock as it is now.

    0 where the system does not tell.
    """
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def is_of_this_start(ns: int) -> bool:
    """Whether a time is since the host was started; one to come tells nothing."""
    return read_boot_time() <= ns <= time.time_ns()


@cache
def _boot_id(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""


def sync_disks(folders: Iterable[str]) -> None:
    """Wait until the disks have all that was written to the file systems of these folders.

    A folder that is not there is passed over (OSError: a disk refuses, or lost something).
    """
    done = set()
    for folder in folders:
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            device = os.fstat(fd).st_dev
            if device not in done:
                done.add(device)
                _sync_disk(fd)
        finally:
            os.close(fd)


def _sync_disk(fd: int) -> None:
    """Sync one file system; all of them where the C library cannot: a slow one is waited for."""
    import ctypes  # seldom needed, and dear

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        os.sync()
    elif call(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def replace_file(path: str, data: bytes, mode: int, *, foreign_folder: bool = False) -> None:
    """Put a file in place, whole or not at all (OSError: nothing was replaced).

    The caller is the only one who writes it. Its bytes are never more widely readable than
    ``mode``, its permission bits. A process that dies on the way leaves the file as it was, and
    ``<path>.tmp`` for the next call to remove. In a ``foreign_folder`` a file of that name may be
    the user's: there the temporary file gets a name of its own, which stays if the process dies,
    and what the user's umask and the file that is replaced forbid to others stays forbidden.
    After an error no temporary file is left.
    """
    temporary = f"{path}.tmp"
    if foreign_folder:
        with suppress(OSError):
            mode &= os.stat(path).st_mode
        # A short name: one that is longer than the file's could be too long for the file system.
        temporary = f"{os.path.dirname(path) or '.'}/.{os.urandom(8).hex()}"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, mode if foreign_folder else 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if not foreign_folder:
                os.fchmod(fd, mode)
            os.fsync(fd)
        rename_file(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):  # it has the file's name already
            os.unlink(temporary)
        raise


def make_scratch_folder(front: str) -> str:
    """Make a folder for temporary files that only this user can enter; ``front`` begins its name.

    It is what ``tempfile`` makes, at the places that ``tempfile`` knows, without the fifteen
    modules that this imports. ``remove_folder`` removes it (OSError: there is no place for it).
    """
    given = filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP")))
    name = f"{front}{os.urandom(8).hex()}"
    for place in (*given, "/tmp", "/var/tmp"):  # noqa: S108 - mkdir follows and reuses nothing
        path = os.path.join(os.path.abspath(place), name)
        with suppress(OSError):
            os.mkdir(path, 0o700)
            return path
    raise OSError(errno.ENOENT, "no folder for temporary files: let TMPDIR name one", name)


def open_nameless_file(folder: str) -> IO[bytes]:
    """Open an empty file in a scratch folder, to write and read; it goes when it is closed."""
    path = os.path.join(folder, os.urandom(8).hex())
    file = open(path, "x+b")  # noqa: SIM115 - who calls closes it
    os.unlink(path)
    return file


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it, and nothing that links in it lead to."""
    for top, folders, files in os.walk(path, topdown=False):
        for name in files:
            os.unlink(os.path.join(top, name))
        for name in folders:
            inner = os.path.join(top, name)
            (os.unlink if os.path.islink(inner) else os.rmdir)(inner)
    os.rmdir(path)


_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_NO_FILE = "it is no regular file, and nothing else is read"


def open_plain_file(path: str, *, named: bool = False) -> int:
    """The descriptor of ``open_plain_stat`` alone."""
    return open_plain_stat(path, named=named)[0]


def open_plain_stat(path: str, *, named: bool = False) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; give its descriptor, which the caller closes, and its stat.

    A symbolic link that merely lies there is never followed. ``named``: a person named this path,
    on the command line or in their own settings, so it may be one to a regular file. The
    ``strerror`` of an OSError says what else is there.
    """
    if named and not stat.S_ISREG(os.stat(path).st_mode):
        _refuse(os.stat(path).st_mode, path)  # to open a device may do something
    try:
        fd = os.open(path, _FLAGS if named else _FLAGS | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP and not named:
            raise OSError(error.errno, "it is a symbolic link, and is not followed", path) from None
        if error.errno == errno.ENXIO:  # a socket
            raise OSError(error.errno, _NO_FILE, path) from None
        raise
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        _refuse(found.st_mode, path)
    return fd, found


def read_plain_file(path: str, limit: int, *, named: bool = False) -> bytes:
    """At most ``limit`` bytes of a plain file, and one more where it is longer."""
    with open(open_plain_file(path, named=named), "rb") as file:
        return file.read(limit + 1)


def _refuse(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, _NO_FILE, path)


READ_ONLY = "TRIPOD_READ_ONLY"
"""The variable by which commands change nothing; ``tripod --read-only`` sets it."""


def is_read_only() -> bool:
    """Whether nothing is to be written: no file of a team, of a repository or of the user."""
    return os.environ.get(READ_ONLY, "") not in ("", "0")


_at_once: list[bool] = []


def end_at_once() -> None:
    """Say that this process is a command, which ends without taking itself apart."""
    _at_once.append(True)


def ends_at_once() -> bool:
    """Whether it is: what it leaves open is closed by the system."""
    return bool(_at_once)


class FileLock:
    """A lock on ``path`` for the length of a ``with``; the file stays, empty or with its holder.

    The descriptor is kept open between uses (opening costs more than locking).
    """

    __slots__ = ("_fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1

    def acquire(self) -> None:
        """Wait for the lock (OSError if the file cannot be opened)."""
        if self._fd < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self.path, flags, 0o644)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def name_holder(self) -> None:
        """Write the number of this process into the file, for those who wait (OSError)."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)

    def __enter__(self) -> Self:
        """Wait for the lock (OSError if the file cannot be opened)."""
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lock back."""
        self.release()

    def close(self) -> None:
        """Close the descriptor, which also releases the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@contextmanager
def hold_file_lock(path: str) -> Iterator[FileLock]:
    """Hold the lock of a lock file, made if missing, also against threads of this process."""
    with closing(FileLock(path)) as lock, lock:
        yield lock


@contextmanager
def hold_folder_lock(path: str) -> Iterator[int]:
    """Hold a lock on a folder itself, without a lock file; give its descriptor."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def lock_open_file(fd: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file; False where another holds it. Closing the descriptor gives it back.

    A process that inherits it holds the lock, too. ``shared``: several may hold it at once, while
    nobody holds it alone. ``wait``: until nobody else has it.
    """
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(fd, how | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def writers_kept_out(path: str, wait_s: float) -> Iterator[str | None]:
    """Wait until nobody holds a lock file, and keep others away; who it is where somebody does.

    It waits ``wait_s`` seconds at most. The lock is a lock of the system and cannot be left behind:
    if it is held, a process lives that holds it. Where others stand in the system's queue for it,
    it is free for a moment only, so it is asked often.
    """
    try:
        fd = open_plain_file(path)
    except OSError:
        yield None  # nobody ever wrote, or not here
        return
    try:
        until = time.monotonic() + wait_s
        while True:
            if lock_open_file(fd, shared=True):
                yield None
            elif time.monotonic() < until:
                time.sleep(0.001)
                continue
            else:
                yield _holder(os.fstat(fd).st_ino)
            return
    finally:
        os.close(fd)


def _holder(inode: int) -> str:
    """Which process holds a lock, as far as the system tells."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        lines = []
    for words in lines:
        if "FLOCK" in words and len(words) > 5 and words[5].endswith(f":{inode}"):
            return f"process {words[4]}"
    return "another process"


@contextmanager
def hold_posix_file_lock(path: str, *, wait: bool) -> Iterator[bool]:
    """Hold a POSIX record lock on a lock file, as the original tools do; give whether it is held.

    With ``wait`` it always is. Closing any other descriptor of this file in this process drops it.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except (BlockingIOError, PermissionError):  # POSIX allows either for "held by another"
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def is_git_directory(path: str) -> bool:
    """Whether a folder has what each git directory has."""
    return all(os.path.lexists(f"{path}/{name}") for name in ("HEAD", "objects", "refs"))


def place_to_write_problem(path: str, team: str | None = None) -> str | None:
    """That a file to be handed on would lie in the team directory or in git's; None: it would not.

    Git deletes, packs and copies there as it likes, and people look for nothing of theirs in it.
    """
    at = os.path.realpath(path)
    if team is not None and f"{at}/".startswith(f"{os.path.realpath(team)}/"):
        return f"{path} is in the team directory, which the ledger projects: write it elsewhere"
    while at != (above := os.path.dirname(at)):
        if os.path.basename(at).lower() == ".git" or is_git_directory(at):
            return f"{path} lies in {at}, which is git's own: write it elsewhere"
        at = above
    return None
