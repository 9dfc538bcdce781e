"""Files and names that are on the disk when the call comes back; whole, or as they were.

For few files that hold much (keys, seals, copies). The team's own many files have
``projections.disk``, which waits for the disk once for all of them.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress


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


def name_file(staged: str, path: str) -> bool:
    """Give a file that was staged its name where nothing has that; the disk is not waited for.

    False where something has it: then the staged file is removed. A file system without hard
    links is asked first, and a file that comes between the two is written over.

    Raises:
        OSError: the system refuses.
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


def replace_file(path: str, data: bytes, mode: int) -> None:
    """Put a file in place, whole or not at all; the caller is the only one who writes it.

    Its bytes are never more widely readable than ``mode``. Dead on the way: the file is what it
    was, and ``<path>.tmp`` is left for the next call to take away.

    Raises:
        OSError: the system refuses; nothing was replaced.
    """
    temporary = f"{path}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(fd, mode)
        os.fsync(fd)
    rename_file(temporary, path)
