"""Finds the team directory that a command is to work on."""

from __future__ import annotations

import os

from tripod.errors import NoTeamError
from tripod.team import DATABASE, FOLDER

__all__ = ["LEDGER", "elsewhere", "find_team", "team_above"]

LEDGER = "TRIPOD_LEDGER"
"""The variable that names a team directory (or the ledger in it), before any that is around."""


def find_team(given: str | None, start: str | None = None) -> str:
    """The team directory: ``given`` (a project or the directory itself).

    Where it is not given, the one that the variable names; else the one found upwards.

    Raises:
        NoTeamError: there is none.
    """
    begin = os.path.abspath(given or start or os.getcwd())
    if given is not None:
        for path in (begin, os.path.join(begin, FOLDER)):
            if _has_ledger(path):
                return path
        message = f"no ledger in {begin}: `tripod init {given}` makes one"
        raise NoTeamError(message)
    found = elsewhere()
    if found is not None:
        if _has_ledger(found):
            return found
        message = f"no ledger in {found}, which {LEDGER} names: name another team directory there"
        raise NoTeamError(message)
    found = team_above(begin)
    if found is None:
        message = f"no {FOLDER}/{DATABASE} here or above {begin}: `tripod init` makes one"
        raise NoTeamError(message)
    return found


def elsewhere() -> str | None:
    """The team directory that the variable names."""
    given = os.environ.get(LEDGER)
    if not given:
        return None
    path = os.path.abspath(given)
    return os.path.dirname(path) if os.path.basename(path) == DATABASE else path


def team_above(start: str) -> str | None:
    """The team directory of the folder ``start``, an absolute path, or of one above."""
    path = start
    while True:
        team = os.path.join(path, FOLDER)
        if _has_ledger(team):
            return team
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent


def _has_ledger(path: str) -> bool:
    return os.path.lexists(os.path.join(path, DATABASE))
