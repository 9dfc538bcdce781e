"""Waits until something happens in a folder: told by the kernel (inotify), else by looking again.

What happened is for the caller to find out; a wake-up may be for nothing. So whoever waits begins
to watch first, then looks, then waits, and loses nothing. Also where the kernel tells, it is looked
again every few seconds: a folder on another host's disk changes without a word.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Sequence
from typing import Self

# <sys/inotify.h>: IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE; IN_CLOEXEC and IN_NONBLOCK are open's.
_CHANGES = 0x008 | 0x080 | 0x100
_ROOM = 65_536


class Watch:
    """A watch on folders, for the length of a ``with``."""

    def __init__(self, folders: Sequence[str], *, every: float, told: bool = True) -> None:
        """Begin to watch.

        Args:
            folders: paths for the system.
            every: seconds after which ``wait`` ends in any case.
            told: False looks again and asks the kernel for nothing.
        """
        self._every = every
        self._fd = _inotify(folders) if told else -1

    @property
    def is_told(self) -> bool:
        """Whether the kernel tells."""
        return self._fd >= 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def wait(self, seconds: float) -> None:
        """Return when something happened, after ``seconds``, or after the time between looks."""
        seconds = max(0.0, min(seconds, self._every))
        if self._fd < 0:
            time.sleep(seconds)
            return
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if poll.poll(seconds * 1000):
            os.read(self._fd, _ROOM)


def _inotify(folders: Sequence[str]) -> int:
    """A descriptor that can be read once something happened; -1 where the kernel has none."""
    if not sys.platform.startswith("linux"):
        return -1
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if fd >= 0 and any(
        libc.inotify_add_watch(fd, os.fsencode(folder), _CHANGES) < 0 for folder in folders
    ):
        os.close(fd)
        return -1
    return fd
