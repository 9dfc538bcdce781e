"""Keeps what is no part of the record out of git: lines of ``.nbs/.gitignore``."""

from __future__ import annotations

import os

from ledger.locating import FOLDER
from projections.disk import Disk, UnreadableError
from projections.projection import File
from tripod.team import Team

PATH = ".gitignore"
LINES = ("ledger.db*", "*.lock", "spool/", "record.replaced-*/")
_LIMIT = 1024 * 1024


def lacking(disk: Disk) -> list[str] | None:
    """Our lines that the file does not have; None where it cannot be read as a file.

    Only ``.nbs/.gitignore`` is ours: of a team directory by another name none are asked for.
    """
    if os.path.basename(os.path.realpath(disk.root)) != FOLDER:
        return []
    old = _read(disk)
    if old is None:
        return None
    have = old.decode("utf-8", "replace").splitlines()
    return [line for line in LINES if line not in have]


def ignore(team: Team) -> None:
    """Add what is lacking; lines that are there already stay as they are."""
    missing = lacking(team.disk)
    old = None if missing is None else _read(team.disk)
    if old is None or missing is None:
        lines = " and ".join(LINES)
        team.warnings.append(f"{PATH}: cannot be read as a file; put the lines {lines} into it")
    elif missing:
        start = old if not old or old.endswith(b"\n") else old + b"\n"
        new = start + "".join(f"{line}\n" for line in missing).encode()
        stat = team.disk.stat(PATH)
        team.disk.write(PATH, File(new, 0o644 if stat is None else stat.mode))


def _read(disk: Disk) -> bytes | None:
    """The file's bytes, none where nothing has its name; None where something else has."""
    try:
        old = disk.read(PATH, _LIMIT)
    except UnreadableError:
        return None
    return b"" if old is None and not os.path.lexists(disk.full(PATH)) else old
