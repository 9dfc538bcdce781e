"""Moves many files of one folder into another, for a fraction of what each by itself would cost."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ledger.progress import over
from projections.disk import Disk

__all__ = ["move_all"]


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
