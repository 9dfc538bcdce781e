"""Reads the files of an export or a record, from a folder or from the tree of a commit.

They are a stranger's: no link and no submodule is followed, no path of a tree is used as one of the
disk, and a file is read up to a limit. Git says what a tree holds; that the bytes are the replica's
is shown by its seal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tripod.ledger import EVIDENCE, GitError, TripodError
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import MAX_NOTE
from tripod.ledger.tlog.tiles import WIDTH, Tile
from tripod.projections.disk import Disk, UnreadableError

if TYPE_CHECKING:
    from tripod.verify.anchors.git import Repository

MAX_LISTED = 32 * 1024 * 1024
"""Bytes of the list of a record's files: 200,000 of them. A few trees can name any number."""
_LINE = re.compile(rb"([0-7]{6}) [a-z]+ ([0-9a-f]{40,64}) +([0-9]+|-|BAD)\t(.+)", re.DOTALL)
_PLAIN = b"100644"
_PART = re.compile(rf"{EVIDENCE}/([0-9a-f]{{2}})/\1[0-9a-f]{{62}}")
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
                and not _PART.fullmatch(front + name)  # `sessions-whole` judges these
            )
            inner = [front + name for name in folders]
            if front.count("/") < _DEEP:
                waiting += reversed(inner)
            else:
                yield from inner


# The record on a ref ---------------------------------------------------------------------------


class TreeFile(NamedTuple):
    """A plain file of a tree: the name of its blob, and its size in bytes."""

    blob: str
    size: int


class RefFiles(ExportFiles):
    """The record in the tree of one commit, read-only. Reading raises ``FileError``."""

    def __init__(self, repository: Repository, commit: str, replica: str = "") -> None:
        """List the tree (GitError: the commit or a tree of it is missing, or there are too many).

        The repository stays open as long as files are read. ``replica`` is the name of the ref,
        whose digits are those of a key: the record of another key is not that replica's.
        """
        self._repository = repository
        self.directory, self.replica = commit, replica
        self.files: dict[str, TreeFile] = {}
        self._strange: list[str] = []
        asked = "ls-tree", "-r", "-z", "--long", "--full-tree", commit
        listed = repository.ask(*asked, most=MAX_LISTED)
        seen: set[str] = set()
        for line in listed.split(b"\0")[:-1]:
            found = _LINE.fullmatch(line)
            if found is None:
                raise GitError(f"git lists {line[:100]!r} in {commit}: it cannot be read")
            mode, blob, size, name = found.groups()
            path = name.decode("utf-8", "surrogateescape")
            if path in seen:
                raise GitError(f"the tree of {commit} has {path} twice: no git of ours made it")
            seen.add(path)
            if size == b"BAD":
                raise GitError(
                    f"git has not all of the record in {commit}: {path} is missing, as in a clone "
                    "that was made with --filter. `git fetch --refetch --no-filter REMOTE "
                    "'+refs/tripod/*:refs/tripod-remotes/REMOTE/*'` brings the whole"
                )
            if mode == _PLAIN and size != b"-":
                self.files[path] = TreeFile(blob.decode(), int(size))
            else:
                self._strange.append(path)
        self.bodies = any(path.startswith(f"{tiles.BODIES}/") for path in self.files)

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a plain file of at most ``limit`` bytes."""
        file = self.files.get(path)
        if file is None:
            raise FileError(f"{path} is missing")
        if file.size > limit:
            raise FileError(f"{path} has {file.size} bytes, more than {limit}: it is not read")
        try:
            data = self._repository.blob(file.blob)
        except GitError as error:
            raise FileError(f"{path}: {error}") from error
        if data is None:
            raise FileError(f"{path} is missing: git has no blob {file.blob}")
        return data

    def strays(self, size: int, named: Callable[[str], bool]) -> Iterator[str]:
        """What stands there and belongs to no record of ``size`` entries."""
        yield from self._strange
        yield from (
            path for path in self.files if not tiles.is_tile_or_bundle_of(path, size, named)
        )
