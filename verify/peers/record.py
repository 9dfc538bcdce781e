"""Reads the record that a replica keeps on a git ref: the files of one commit's tree.

A tree is a stranger's: no path of it is used as one of the disk, links and submodules are named and
not followed, and a file is read up to a limit. Git says what the tree holds; that the bytes are the
replica's is shown by its seal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tripod.ledger.tlog.tiles import BODIES, is_tile_or_bundle_of
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.git_folder import GitError
from tripod.verify.export_file import ExportFiles, FileError

_LINE = re.compile(rb"([0-7]{6}) [a-z]+ ([0-9a-f]{40,64}) +([0-9]+|-)\t(.+)", re.DOTALL)
_PLAIN = b"100644"


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
        listed = repository.ask("ls-tree", "-r", "-z", "--long", "--full-tree", commit)
        for line in listed.split(b"\0")[:-1]:
            found = _LINE.fullmatch(line)
            if found is None:
                raise GitError(f"git lists {line[:100]!r} in {commit}: it cannot be read")
            mode, blob, size, name = found.groups()
            path = name.decode("utf-8", "surrogateescape")
            if mode == _PLAIN and size != b"-":
                self.files[path] = TreeFile(blob.decode(), int(size))
            else:
                self._strange.append(path)
        self.bodies = any(path.startswith(f"{BODIES}/") for path in self.files)

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
        yield from (path for path in self.files if not is_tile_or_bundle_of(path, size, named))
