"""What stands where a projected file belongs, is no file, and would be lost if one were written.

A person who puts a symbolic link there (a log that is kept under ``docs/``) means something by it.
Such a place is told and left as it is. A folder is no matter: nothing can be written over it.
"""

from __future__ import annotations

import os

from projections.disk import Disk

__all__ = ["in_the_way"]


def in_the_way(disk: Disk, path: str) -> str | None:
    """Words for what would be replaced at ``path``; None for a file, a folder, and nothing."""
    odd = disk.odd(path)
    if odd is None or odd == "a folder":
        return None
    try:
        return f"{odd} to {os.readlink(disk.full(path))!r}"
    except OSError:  # no link
        return odd
