"""Reads a file that somebody else may have put there: bounded, and never one that waits."""

from __future__ import annotations

import os
import stat

__all__ = ["read_plain"]


def read_plain(path: str, limit: int) -> bytes:
    """At most ``limit`` bytes and one more of a plain file, so that a larger one shows.

    A symbolic link is followed; a pipe or a device is not opened for reading.

    Raises:
        OSError: it is not there, cannot be read, or is no plain file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        message = "it is no plain file"
        raise OSError(0, message)
    with open(handle, "rb") as file:
        return file.read(limit + 1)
