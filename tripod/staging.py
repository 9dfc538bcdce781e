"""Files that never change, put in their places many at a time: one wait for the disk for them all.

Each is whole under its own name or not there: temporary name, on the disk, rename.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from projections.disk import Disk
from projections.moving import write_missing
from projections.projection import File

PUBLIC = 0o644
PRIVATE = 0o600  # what people wrote: as the chat files
_BATCH = 16 * 1024 * 1024  # bytes kept in memory
_FEW = 32  # files: below, each is waited for by itself


class Staging:
    """What waits to be written to ``disk``; ``present`` are the paths that are there already."""

    def __init__(self, disk: Disk, present: set[str]) -> None:
        """Nothing waits yet."""
        self.disk = disk
        self.present = present
        self.written = 0
        self._files: dict[str, File] = {}
        self._bytes = 0

    def put(self, path: str, data: bytes, mode: int) -> None:
        """Have a file written, unless it is there with these bytes.

        Raises:
            OSError: the disk refuses.
        """
        if path in self._files or (path in self.present and self._same(path, data)):
            return
        self._files[path] = File(data, mode)
        self._bytes += len(data)
        if self._bytes > _BATCH:
            self.flush()

    def _same(self, path: str, data: bytes) -> bool:
        found = self.disk.stat(path)
        return (
            found is not None
            and found.size == len(data)
            and self.disk.read(path, len(data)) == data
        )

    def flush(self) -> None:
        """Write what waits, and wait until the disk has it, names included.

        Raises:
            OSError: the disk refuses.
        """
        fresh = [(path, file) for path, file in self._files.items() if path not in self.present]
        if len(fresh) < _FEW:
            fresh = []
        placed = write_missing(self.disk, fresh) if fresh else []
        # A place that somebody filled meanwhile is written over as one whose bytes differ.
        done = {path for (path, _), stat in zip(fresh, placed, strict=True) if stat is not None}
        for path, file in self._files.items():
            if path not in done:
                self.disk.write(path, file, sync=False)
        folders = {path.rpartition("/")[0] for path in self._files}
        for folder in sorted(folders | {up for path in folders for up in _above(path)}):
            self.disk.sync_folder(folder)
        self.written += len(self._files)
        self.present.update(self._files)
        self._files, self._bytes = {}, 0


@contextmanager
def alone(directory: str) -> Iterator[None]:
    """Be the only one who writes or erases in the folder of an export (OSError: there is none)."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _above(folder: str) -> list[str]:
    """The folders that hold a folder, the outermost ('') too: their names may be new."""
    parts = folder.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts))]
