"""Reads the files of an export or a record from a folder: with limits, and no link followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from tripod.ledger import TripodError
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import MAX_NOTE
from tripod.ledger.tlog.tiles import WIDTH, Tile
from tripod.projections.disk import Disk, UnreadableError

_DEEP = 64  # folders in each other: ours are never nearly so deep


class FileError(TripodError):
    """A file of the export that is missing, or cannot be read; the message names it."""


class ExportFiles:
    """One export, read-only. Reading raises ``FileError``."""

    replica = ""
    """The replica that the files are said to be of, '' where nothing says it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.bodies = os.path.lexists(f"{directory}/{tiles.BODIES}")
        self._disk = Disk(directory, steady=True)

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a regular file of at most ``limit`` bytes; a link does not count."""
        try:
            data = self._disk.read(path, limit)
        except UnreadableError as error:
            raise FileError(str(error)) from error
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}") from error
        if data is None:
            raise FileError(f"{path} is missing")
        return data

    def seal_note(self) -> bytes:
        """The note of the seal, which is not judged here."""
        return self.read(tiles.SEAL, MAX_NOTE)

    def tile(self, tile: Tile) -> bytes:
        """The bytes of a tile or an entry bundle."""
        limit = 32 * tile.width if tile.level >= 0 else WIDTH * (tiles.MAX_ENTRY + 2)
        return self.read(tiles.format_tile_path(tile), limit)

    def strays(self, size: int, named: Callable[[str], bool]) -> Iterator[str]:
        """What stands there and belongs to no export of ``size`` entries; not empty folders.

        ``named(digest)`` says whether a body names a blob.
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
            yield from (
                front + name
                for name in files
                if not tiles.is_tile_or_bundle_of(front + name, size, named)
            )
            inner = [front + name for name in folders]
            if front.count("/") < _DEEP:
                waiting += reversed(inner)
            else:
                yield from inner
