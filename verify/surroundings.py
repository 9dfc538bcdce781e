"""Where a team directory is, and what in and around it tells that a ledger was there."""

from __future__ import annotations

import os

__all__ = ["DATABASE", "FOLDER", "team_of", "traces"]

FOLDER = ".nbs"
DATABASE = "ledger.db"
_FOLDERS = ("chat", "events", "scribe")


def team_of(path: str) -> str | None:
    """The team directory that a path stands for: it, or the one in it; None where there is none."""
    inner = os.path.join(path, FOLDER)
    if os.path.isdir(inner):
        return inner
    if os.path.lexists(os.path.join(path, DATABASE)):
        return path
    return path if any(os.path.isdir(os.path.join(path, name)) for name in _FOLDERS) else None


def traces(path: str, root: str) -> list[str]:
    """What tells that a ledger was here, in words."""
    found = []
    for name in sorted(os.listdir(root)):
        if name in ("record", "seal", "counts.json") or name.startswith(("policy", "seal.")):
            found.append(f"{name} stands in the team directory")
        elif name.startswith(DATABASE + "-") or name == DATABASE + ".lock":
            found.append(f"{name} was left behind")
    for folder in dict.fromkeys((root, path, os.path.dirname(os.path.abspath(root)))):
        try:
            with open(os.path.join(folder, ".gitignore"), "rb") as file:
                if DATABASE.encode() in file.read(65_536):
                    found.append(f".gitignore names {DATABASE}")
        except OSError:
            continue
    return list(dict.fromkeys(found))
