"""Finds, by their names, files that hold what a team says, wherever somebody has put them.

For whoever may not see the chat (design, section 8): chats, events, ledgers, exports and records
with bodies, and sessions of coding agents. A file of another name may hold all of that as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

_TEAM = ".nbs"
_SUFFIXES = (".chat", ".event")
_LEDGER = "ledger.db"
_LINES = ".jsonl"
_OF_LINES = ("bodies", ".claude", ".codex")
"""Folders that hold the bodies of an export, or the sessions of a coding agent, as JSON lines."""

_PASSED = ("node_modules", "site-packages", "__pycache__")
"""Folders of installed programs, too large to be looked through each time."""


def chat_in(path: str) -> str | None:
    """The first file or folder of that kind which a path shows; None where none is.

    Args:
        path: a file, or a folder with all below it; links are not followed any further.
    """
    real = os.path.realpath(path)
    if _TEAM in real.split("/") or not os.path.isdir(real):
        return path if _is_chat(real) else None
    return next(_below(real), None)


def is_repository(folders: Iterable[str], names: Iterable[str]) -> bool:
    """Whether a folder that holds these is a git repository itself, as a bare clone is."""
    return "HEAD" in names and {"objects", "refs"} <= set(folders)


def repository_in(path: str) -> str | None:
    """The first git repository in a folder, bare or not: its history may hold any file's text."""
    for folder, folders, names in os.walk(os.path.realpath(path)):
        if ".git" in folders or ".git" in names:
            return f"{folder}/.git"
        if is_repository(folders, names):
            return folder
        folders.sort()
    return None


def _below(top: str) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if name not in _PASSED)
        every = (f"{folder}/{name}" for name in (*folders, *sorted(names)))
        yield from filter(_is_chat, every)


def _is_chat(path: str) -> bool:
    parts = path.split("/")
    if _TEAM in parts:
        return True
    name = parts[-1]
    lines = name.endswith(_LINES) and not set(_OF_LINES).isdisjoint(parts)
    return lines or name.endswith(_SUFFIXES) or name == _LEDGER
