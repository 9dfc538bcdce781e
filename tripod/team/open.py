"""Opens the team that a command works on, and says at its end what there is to be warned of."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tripod.errors import (
    LedgerDamagedError,
    MalformedError,
    NoTeamError,
    RefusedError,
    TooLargeError,
    UnwritableError,
)
from tripod.ledger import DATABASE, SPOOL
from tripod.ledger.locator import FOLDER, LEDGER, has_ledger, named, nearest
from tripod.ledger.sqlite.store import is_malformed, pages_damaged
from tripod.output import remark
from tripod.team.team import Team, find_root

MAX_WARNINGS = 20


def find_team(given: str | None, start: str | None = None) -> str:
    """The team directory to work on, which has a ledger (see ``tripod.ledger.locator``).

    Args:
        given: a project, or the team directory itself.
        start: where to look from where none is given; the current folder by default.

    Raises:
        NoTeamError: there is no team directory.
    """
    if given is not None:
        return find_root(given)
    found = named()
    if found is not None:
        if has_ledger(found):
            return found
        raise NoTeamError(
            f"no ledger in {found}, which {LEDGER} names: name another team directory there"
        )
    begin = os.path.abspath(start or os.getcwd())
    found = nearest(begin)
    if found is None:
        raise NoTeamError(f"no {FOLDER}/{DATABASE} here or above {begin}: `tripod init` makes one")
    if not has_ledger(found):
        raise NoTeamError(f"no ledger in {found}: `tripod init {os.path.dirname(found)}` makes one")
    return found


def open_team(path: str | os.PathLike[str] | None = None) -> Team:
    """Open a team as every command finds it; close it, or use it in a ``with``.

    Args:
        path: the project's folder or its team directory. None: the one that the variable
            ``TRIPOD_LEDGER`` names, else the nearest ``.nbs`` in the current folder or above.

    Raises:
        NoTeamError: there is no team directory, or no ledger in it.
        LedgerError: the ledger is damaged, or cannot be written.
    """
    return Team(find_team(None if path is None else os.fspath(path)))


@contextmanager
def readable(root: str) -> Iterator[None]:
    """Where the database holds what nobody can read, say so; what is wrong is for ``verify``.

    A fault of our own looks the same from here, so the message leaves that open.

    Raises:
        LedgerDamagedError: reading the ledger in ``root`` ran into something unreadable.
    """
    try:
        yield
    except LedgerDamagedError as error:
        if root in str(error):
            raise
        raise LedgerDamagedError(f"{root}: {error}") from error
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise LedgerDamagedError(_unreadable(root, error)) from error
        raise UnwritableError(
            f"{root}: another program has held the database for 30 s; try again"
        ) from error
    except (sqlite3.DatabaseError, *_MISREAD) as error:
        if is_malformed(error):
            raise pages_damaged(error, f"{root}/{DATABASE}") from error
        raise LedgerDamagedError(_unreadable(root, error)) from error


_MISREAD = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
"""What code that trusts its rows raises over rows that do not deserve it."""


def _unreadable(root: str, error: Exception) -> str:
    return (
        f"{root}: the ledger cannot be read ({type(error).__name__}: {error}); "
        f"`tripod verify {root}` names what is wrong in it. If it finds nothing, this is a "
        "mistake in tripod: please report it"
    )


@contextmanager
def opened(path: str | None, start: str | None = None) -> Iterator[Team]:
    """The team at ``path``, or found upwards from ``start``; its warnings are said at the end."""
    if path and not os.path.isdir(path):
        what = "a file, no folder" if os.path.lexists(path) else "not there"
        raise NoTeamError(f"--team: {path!r} is {what}: give the project or its team directory")
    with opened_at(find_team(path, start)) as team:
        yield team


@contextmanager
def opened_at(root: str, begin: Callable[[], None] | None = None) -> Iterator[Team]:
    """The team of the directory ``root``; its warnings are said at the end.

    ``begin`` is called where its ledger holds nothing yet: an empty file is not filled in passing.

    Raises:
        LedgerDamagedError: it holds nothing; or what nobody can read.
    """
    with readable(root), _begun(root, begin) as team:
        try:
            _look_after_workers(team)
            yield team
        finally:
            tell(team.warnings)
            if team.healed:
                one = team.healed == 1
                many = "1 entry that was" if one else f"{team.healed} entries that were"
                remark(
                    f"recovered: wrote {many} in the ledger but not yet in the files "
                    "(an earlier command was interrupted)"
                )


def _look_after_workers(team: Team) -> None:
    """Record what became of running programs: every command does this for its predecessors."""
    left: list[str] = []
    try:
        found = team.store.db.execute("SELECT 1 FROM workers WHERE open = 1 LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        return  # tables of an earlier version: the act makes them anew
    with suppress(OSError):
        left = os.listdir(f"{team.root}/{SPOOL}")
    if found or left:
        from tripod.workers.writer import look_after

        try:
            look_after(team)
        except (MalformedError, OSError, RefusedError, TooLargeError, UnwritableError) as error:
            team.warnings.append(f"what became of the workers was not recorded: {error}")


def tell(warnings: Sequence[str]) -> None:
    """Say warnings, and of very many how many more there are."""
    for warning in warnings[:MAX_WARNINGS]:
        remark(f"warning: {warning}")
    if len(warnings) > MAX_WARNINGS:
        remark(f"warning: and {len(warnings) - MAX_WARNINGS} more")


def _begun(root: str, begin: Callable[[], None] | None) -> Team:
    team = _holding(root)
    if team is None and begin is not None:
        begin()
        team = _holding(root)
    if team is None:
        raise LedgerDamagedError(
            f"{root}/{DATABASE} holds no entry. If a ledger stood here, put its backup back; "
            "if not, `tripod init` begins one"
        )
    return team


def _holding(root: str) -> Team | None:
    """A team whose ledger holds something."""
    path = f"{root}/{DATABASE}"
    if os.path.exists(path) and os.path.getsize(path):
        team = Team(root)
        try:
            if team.store.size:
                return team
        except BaseException:
            team.close()
            raise
        team.close()
    return None
