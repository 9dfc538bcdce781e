"""How a command gets at its team: opened, damage told in words, warnings printed at the end."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from tripod.errors import LedgerDamagedError, NoTeamError, RefusedError, UnwritableError
from tripod.ledger import HOOKS, SPOOL
from tripod.ledger.files import is_read_only
from tripod.ledger.locator import FOLDER, database_of, user_home
from tripod.ledger.sqlite.store import damaged_sqlite_error, is_malformed_sqlite
from tripod.output import remark
from tripod.team.team import Team, find_team

MAX_WARNINGS = 20
_MISREAD = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
"""What code that trusts its rows raises over rows that do not deserve it."""


@contextmanager
def check_access(root: str) -> Iterator[None]:
    """Say so where the database of ``root`` cannot be read; ``verify`` names what is wrong in it.

    A fault of our own looks the same from here, so the message leaves that open. Raises
    LedgerDamagedError, or UnwritableError where another program holds the database.
    """
    try:
        yield
    except LedgerDamagedError as error:
        if root in str(error):
            raise
        raise LedgerDamagedError(f"{root}: {error}") from error
    except (sqlite3.DatabaseError, *_MISREAD) as error:
        busy = isinstance(error, sqlite3.OperationalError)
        if busy and "locked" in str(error):
            raise UnwritableError(
                f"{root}: another program has held the database for 30 s; try again"
            ) from error
        if not busy and is_malformed_sqlite(error):
            raise damaged_sqlite_error(error, database_of(root)) from error
        raise LedgerDamagedError(
            f"{root}: the ledger cannot be read ({type(error).__name__}: {error}); "
            f"`tripod verify {root}` names what is wrong in it. If it finds nothing, this is a "
            "mistake in tripod: please report it"
        ) from error


@contextmanager
def access_team(
    path: str | None, start: str | None = None, *, looks: bool = False
) -> Iterator[Team]:
    """The team at ``path``, or found upwards from ``start``; see ``access_team_at``."""
    if path and not os.path.isdir(path):
        what = "a file, no folder" if os.path.lexists(path) else "not there"
        raise NoTeamError(f"--team: {path!r} is {what}: give the project or its team directory")
    with access_team_at(find_team(path, start), looks=looks) as team:
        yield team


@contextmanager
def access_team_at(
    root: str, begin: Callable[[], None] | None = None, *, looks: bool = False
) -> Iterator[Team]:
    """The team of the directory ``root``; its warnings are printed at the end.

    ``begin`` is called where its ledger holds nothing yet: an empty file is not filled in passing.
    ``looks``: the command only looks, so that a team which cannot be written is opened to be read.
    Raises LedgerDamagedError where it holds nothing, or cannot be read.
    """
    with check_access(root):
        team = _holding(root, looks=looks)
        if team is None and begin is not None and not is_read_only():
            begin()
            team = _holding(root, looks=looks)
        if team is None:
            raise LedgerDamagedError(
                f"{database_of(root)} holds no entry. If a ledger stood here, `tripod restore` "
                "puts this replica's record, or a backup, in its place; if not, `tripod init` "
                "begins one"
            )
        with team:
            try:
                yield team
            finally:
                print_warnings(team.warnings)
                if team.healed:
                    one = team.healed == 1
                    many = "1 entry that was" if one else f"{team.healed} entries that were"
                    remark(
                        f"recovered: wrote {many} in the ledger but not yet in the files "
                        "(an earlier command was interrupted)"
                    )


def _holding(root: str, *, looks: bool) -> Team | None:
    """The team, opened, if its ledger holds an entry."""
    path = database_of(root)
    if not os.path.exists(path) or not os.path.getsize(path):
        return None
    with ExitStack() as closing:
        team = closing.enter_context(_opened(root) if looks else Team(root))
        if not team.store.size:
            return None
        closing.pop_all()
        return team


def _opened(root: str) -> Team:
    """The team for a command that only looks, opened to be read where it cannot be written."""
    if is_read_only():
        return Team(root, read_only=True)
    path = database_of(root)
    needed = (path, os.path.dirname(path), *([root] if os.path.isdir(root) else []))
    closed = next((name for name in needed if not os.access(name, os.W_OK)), None)
    try:
        if closed is None:
            return Team(root)
        problem = f"{closed} cannot be written"
    except UnwritableError as error:
        problem = str(error)
    team = Team(root, read_only=True)
    team.warnings.append(f"{problem}; the team is only read")
    return team


def refuse_copy_within(team: Team, path: str) -> None:
    """Refuse to write a copy into the team's own project where the team is only read."""
    if not team.is_read_only:
        return
    around, name = os.path.split(team.root)
    own = (around if name == FOLDER else team.root, os.path.dirname(team.store.path), user_home())
    if any(f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(at)}/") for at in own):
        raise RefusedError(f"{path} is a part of what is only read here: write the copy elsewhere")


def has_open_runs(team: Team) -> bool:
    """Whether programs of workers were at work, which may have ended since.

    Every command then records what became of them (``tripod.workers.worker.record_ends``). It asks
    here first, for that module is long to import. A team that is only read records nothing.
    """
    if team.is_read_only:
        return False
    try:
        found = team.store.db.execute("SELECT 1 FROM workers WHERE open = 1 LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        return False  # tables of an earlier version: the act makes them anew
    with suppress(OSError):
        return bool(found or set(os.listdir(f"{team.root}/{SPOOL}")) - {HOOKS})
    return bool(found)


def print_warnings(warnings: Sequence[str]) -> None:
    """Print warnings, and of very many how many more there are."""
    for warning in warnings[:MAX_WARNINGS]:
        remark(f"warning: {warning}")
    if len(warnings) > MAX_WARNINGS:
        remark(f"warning: and {len(warnings) - MAX_WARNINGS} more")
