"""Many files at once, for a fraction of what each by itself would cost: moved, and put in place."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from ledger.durable import name_file
from ledger.progress import over
from projections.disk import ANEW, TEMPORARY, Disk, Stat, stat_of
from projections.projection import File


def move_all(disk: Disk, old: str, new: str, names: Sequence[str]) -> list[str]:
    """Move files, each by one rename; give the names that were not moved.

    These are the ones for which no regular file is there, or whose place in ``new`` is taken: it is
    looked at right before each rename, so that nothing is written over.

    Raises:
        OSError: the system refuses; a symbolic link stands where a folder belongs.
    """
    here = {name for name, what in disk.walk(old) if what == "file"}
    disk.make_folder(new)
    before, behind = f"{disk.full(old)}/", f"{disk.full(new)}/"
    left = []
    for name in over(names, "moving files", len(names)):
        if name not in here or os.path.lexists(behind + name):
            left.append(name)
            continue
        try:
            os.rename(before + name, behind + name)
        except FileNotFoundError:  # another program took it meanwhile
            left.append(name)
    return left


def write_missing(disk: Disk, files: Sequence[tuple[str, File]]) -> list[Stat | None]:
    """Put many files where none stand, and wait for the disk once for all of them.

    The bytes are on the disk before any file has its name, as with ``Disk.write``. None for a
    place that somebody else filled meanwhile. The folders' own fsync is left to the caller.

    Raises:
        OSError: the system refuses; none of the files whose turn had not come is written.
    """
    staged: deque[tuple[str, str, Stat]] = deque()
    temporary = ""
    try:
        for folder in {path.rpartition("/")[0] for path, _ in files}:
            disk.check_way(folder)
            disk.make_folder(folder)
        for number, (path, file) in enumerate(files):
            folder = path.rpartition("/")[0]
            temporary = f"{disk.full(folder)}/{TEMPORARY}{os.getpid()}-{number}"
            fd = os.open(temporary, ANEW, 0o600)
            try:
                _write_all(fd, file.data)
                os.fchmod(fd, file.mode)
                staged.append((temporary, disk.full(path), stat_of(os.fstat(fd))))
            finally:
                os.close(fd)
        os.sync()
        written: list[Stat | None] = []
        while staged:
            temporary, full, stat = staged[0]
            written.append(stat if name_file(temporary, full) else None)
            staged.popleft()
    except BaseException:
        for left in (temporary, *(name for name, _, _ in staged)):
            with suppress(FileNotFoundError):
                os.unlink(left)
        raise
    return written


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
