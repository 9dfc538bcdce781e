"""The files of an export as a stranger left them: bounded reads, no link followed, every name told.

For the verifier alone; ``tripod.export`` writes the folder, ``docs/formats/record.md`` has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from ledger.bodies import BLOBS, BODIES, MAX_LINES, line_path, parse_line_path
from ledger.errors import MalformedError
from ledger.tiles import ENTRIES, MAX_ENTRY, WIDTH, Tile, format_path, parse_path
from projections.disk import Disk, UnreadableError

SEAL = "checkpoint"
MAX_BLOB = 1024 * 1024 * 1024  # bytes
_TILES = "tile"
_LIMITS = {ENTRIES: WIDTH * (MAX_ENTRY + 2)}
_DEEP = 64  # folders in each other: ours are never nearly so deep


class FileError(Exception):
    """A file of the export that is missing, or cannot be read; the message names it."""


def is_export(path: str) -> bool:
    """Whether a folder looks like an export: a seal, or tiles."""
    return os.path.lexists(f"{path}/{SEAL}") or os.path.isdir(f"{path}/{_TILES}")


class ExportFiles:
    """One export, read-only."""

    def __init__(self, directory: str) -> None:
        """Nothing is read yet."""
        self.directory = directory
        self._disk = Disk(directory, steady=True)

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a regular file.

        Raises:
            FileError: there is none (a link is none), it is larger, or it cannot be read.
        """
        try:
            data = self._disk.read(path, limit)
        except UnreadableError as error:
            raise FileError(str(error)) from error
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}") from error
        if data is None:
            raise FileError(f"{path} is missing")
        return data

    def tile(self, tile: Tile) -> bytes:
        """The bytes of a tile or an entry bundle (FileError: see ``read``)."""
        return self.read(format_path(tile), _LIMITS.get(tile.level, 32 * tile.width))

    def lines(self, tile: Tile) -> bytes:
        """The bytes of the bodies of an entry bundle (FileError: see ``read``)."""
        return self.read(line_path(tile), MAX_LINES)

    def has(self, folder: str) -> bool:
        """Whether something stands at the path of a folder."""
        return os.path.lexists(f"{self.directory}/{folder}")

    def strays(self, size: int, named: Callable[[str], bool]) -> Iterator[str]:
        """What stands there and belongs to no export of ``size`` entries.

        ``named(digest)`` says whether a body names a blob. Folders that are empty do not count.
        """
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            front = f"{folder}/" if folder else ""
            try:
                files, folders, strange = self._disk.sorted_out(folder)
            except OSError:
                yield f"{front} cannot be read"
                continue
            yield from (front + name for name in strange)
            for name in files:
                if not belongs(front + name, size, named):
                    yield front + name
            inner = [front + name for name in folders]
            if front.count("/") < _DEEP:
                waiting += reversed(inner)
            else:
                yield from inner


def belongs(path: str, size: int, named: Callable[[str], bool]) -> bool:
    """Whether the file ``path`` is one of an export of ``size`` entries."""
    top, _, rest = path.partition("/")
    if top == BLOBS:
        return named(rest)
    if top not in (_TILES, BODIES):
        return path == SEAL
    try:
        tile = parse_line_path(path) if top == BODIES else parse_path(path)
    except MalformedError:
        return False
    there = size >> 8 * max(0, tile.level)
    return tile.width == min(WIDTH, there - tile.number * WIDTH)
