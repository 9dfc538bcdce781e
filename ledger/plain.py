"""Reads a file that a stranger may have put there: a regular one, within a limit, without waiting.

A clone of a repository can hold a symbolic link to ``/proc/self/fd/1`` or to somebody's key, and
any program of this user can leave a named pipe. Opening the one reads what was not meant, opening
the other waits for ever. So every input is opened here, or through ``projections.disk``, which
asks here.
"""

from __future__ import annotations

import errno
import os
import stat

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_NO_FILE = "it is no regular file, and nothing else is read"


def open_plain(path: str, *, named: bool = False) -> int:
    """Open a regular file for reading; give its descriptor, which the caller closes.

    Args:
        path: of the file.
        named: a person named this path, on the command line or in their own settings: then it may
            be a symbolic link, as people keep theirs, to a regular file. A link that merely lies
            there is never followed.

    Raises:
        OSError: nothing is there, it is no regular file, or the system refuses. ``strerror`` says
            which of these.
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
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        _refuse(mode, path)
    return fd


def read_plain(path: str, limit: int, *, named: bool = False) -> bytes:
    """At most ``limit`` bytes of a regular file, and one more, so that a larger one shows.

    Raises:
        OSError: as ``open_plain``.
    """
    with open(open_plain(path, named=named), "rb") as file:
        return file.read(limit + 1)


def _refuse(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, _NO_FILE, path)
