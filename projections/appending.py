"""Grows a file that is only ever added to: its new bytes go behind whatever stands there.

Where they went tells whether others wrote in between. The end is found by the system in the same
step (``O_APPEND``), so nothing of anybody's is written over. Source: spec store-and-projections,
3.3.
"""

from __future__ import annotations

import errno
import os
from hashlib import sha256
from typing import Final, Literal

from projections.disk import Disk, Stat, stat_of
from projections.manifest import Known

NOT_AS_KNOWN: Final = "not as known"
OTHERS_CAME: Final = "others came"
Outcome = tuple[Stat, str] | Literal["not as known", "others came"]


def append(disk: Disk, path: str, known: Known, new: bytes, limit: int) -> Outcome:
    """Add ``new`` at the end of a file, and wait until the disk has it.

    Gives its stat and digest then. ``NOT_AS_KNOWN``: its length or digest is not the one that is
    known, and nothing was written. ``OTHERS_CAME``: something of others stands in front of the new
    bytes, or another file stands in the place by now.

    Raises:
        OSError: the system refuses, or wrote a part of it: a torn end, which the next command that
            writes the file knows as such (``projections.intake.logs``).
        UnreadableError: the file cannot be read.
    """
    found = disk.look(path, limit)
    if found is None or len(found[0]) != known.stat.size:
        return NOT_AS_KNOWN
    have, before = found
    if sha256(have).hexdigest() != known.digest or before.mode != known.stat.mode:
        return NOT_AS_KNOWN
    full = disk.full(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(full, flags)
    except FileNotFoundError:
        return NOT_AS_KNOWN
    try:
        if os.fstat(fd).st_ino != before.inode:
            return NOT_AS_KNOWN
        if os.write(fd, new) != len(new):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), full)
        end = os.lseek(fd, 0, os.SEEK_CUR)
        os.fdatasync(fd)
        after = stat_of(os.fstat(fd))
    finally:
        os.close(fd)
    there = disk.stat(path)
    alone = end - len(new) == len(have) and after.size == end
    if not alone or there is None or there.inode != after.inode:
        return OTHERS_CAME
    return after, sha256(have + new).hexdigest()
