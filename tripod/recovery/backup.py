"""Backups: a copy of the ledger while others write, and an honest way back from one.

A copy that goes on under the old name would be a second history of one log. So a restored backup
takes a new name in its first entry (``ledger.forked-from``), unless the ledger that it replaces is
there to be read and holds nothing that the backup lacks.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from tripod.errors import LedgerError, NoTeamError, RefusedError, UnwritableError
from tripod.ledger import Head, root_of
from tripod.ledger.files import hold_file_lock, sync_name
from tripod.ledger.locator import (
    FOLDER,
    database_apart,
    database_of,
    named,
    nearest_team,
    repository_around,
    team_of,
    team_to_begin,
)
from tripod.ledger.sqlite.reader import SQLiteReader, read_block_nodes, read_only
from tripod.ledger.sqlite.schema import check_schema, put_triggers_back
from tripod.projections import CHAT, LOG, Disk, files_ahead_of, recorded, source_of, tables_current
from tripod.recovery import rebuild as recover
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.seal import last_seal, seal_contradiction


def backup(team: Team, path: str) -> Head:
    """Write a copy of the ledger as of one moment to ``path``, which must not exist yet.

    Raises:
        RefusedError: something is there.
        UnwritableError: the disk refuses; nothing is left behind.
    """
    if os.path.lexists(path):
        raise RefusedError(
            f"{path} is there already: a backup never replaces another, give a new name"
        )
    temporary = f"{path}.part"
    try:
        with closing(read_only(team.store.path)) as source:
            recover.copy_database_pages(source, temporary)
        with _sound(temporary) as ledger:
            head = ledger.head()
        os.link(temporary, path)  # unlike a rename, it replaces nothing
        sync_name(path)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnwritableError(f"{path}: the backup cannot be written: {reason}") from error
    finally:
        recover.remove_rebuilt_database(temporary)
    return head


@contextmanager
def _sound(path: str) -> Iterator[SQLiteReader]:
    """The ledger of a database, which is shown to be one of ours (else LedgerDamagedError)."""
    with closing(read_only(path)) as db:
        check_schema(db)
        yield SQLiteReader(db)


def restore_root(given: str | None, *, anew: bool = False) -> str:
    """The team directory to restore into, with a ledger or without (NoTeamError: not found).

    ``anew``: it may be gone; then it is where ``init`` would begin it in a repository.
    """
    if given is None:
        found = named() or nearest_team(os.getcwd())
    else:
        found = team_of(os.path.abspath(given)) or os.path.join(os.path.abspath(given), FOLDER)
    where = os.path.abspath(given or named() or os.getcwd())
    if anew and found is None and repository_around(where) is not None:
        found = team_to_begin(where)
    if found is not None and anew and database_apart(found) is not None:
        return found
    if found is None or not os.path.isdir(found):
        raise NoTeamError(f"no folder {FOLDER} in {where}: make it first, the backup is put there")
    return found


def restore(
    root: str,
    path: str,
    as_origin: str | None = None,
    *,
    sign_fork: bool = False,
    discard: str | None = None,
    take: str | None = None,
) -> recover.RestoredBackup:
    """Put the backup at ``path`` in the place of the ledger of the team directory ``root``.

    1. The backup is copied beside the ledger, judged, and forked there. Dead here: nothing
       happened.
    2. In the writer's place the old database is kept under another name, and the new one put in.
       Dead here: one of the two is there; or, where the old one could not be read, neither, and
       it is under the other name. The record of a line that is left is put aside as well, as
       ``record.replaced-1``; the new line's first seal writes its own.
    3. The files are written as ``rebuild`` does it. Dead here: commands ask for that.

    ``sign_fork``: the old line's key signs that the line ends here, so that heads of it which are
    remembered beyond the fork are no failure for ``verify``. Somebody must want that: entries
    which these heads cover are lost.

    ``discard`` is why what the files show and no entry of the backup holds may go from them; see
    ``recover.rebuild``. ``take`` is why it is taken in.

    Raises:
        RefusedError: the backup is no sound ledger or that of another team, this host's last seal
            cannot be read, or the files show such pieces and no reason is given.
        BadArgumentError: the name breaks its rule, or was used before; or the reason does.
    """
    database = database_of(root)
    fresh = f"{database}.{recover.RESTORING}"
    try:
        with hold_file_lock(f"{database}.lock"):
            _take(path, fresh)
            old, new, reason = _choose(root, fresh, as_origin)
            size = recover.prepare_copy(fresh, old, new, reason, sign_fork=sign_fork)
            _refuse_losses(root, fresh, discard, take)
            kept = recover.put_rebuilt_in_place(database, fresh, "replaced")
            if new != old:
                recover.put_record_aside(root)
    finally:
        recover.remove_rebuilt_database(fresh)
    with Team(root) as team:
        done = recover.rebuild(team, discard=discard, take=take)
        if new != old:
            sealing.seal_fork(team, old)
        counts = len(done.written), done.displaced
        return recover.RestoredBackup(
            root, size, new, old, new != old, kept, *counts, team.warnings
        )


def _take(path: str, fresh: str) -> None:
    """Copy a backup beside the ledger, and judge it there (RefusedError: it is not sound)."""
    from tripod.verify.checks import LEDGER_CHECKS
    from tripod.verify.evidence import collect
    from tripod.verify.run import run

    try:
        with _sound(path) as source:
            recover.copy_database_pages(source.db, fresh)
        with closing(sqlite3.connect(fresh, isolation_level=None)) as db:
            put_triggers_back(db)  # the entries are judged below; a copy may lack its triggers
    except (LedgerError, sqlite3.Error) as error:
        raise RefusedError(f"{path} cannot be restored: {error}") from error
    with collect(fresh) as evidence:
        report = run(evidence, {"seals-open", *(check.NAME for check in LEDGER_CHECKS)})
    if report.exit_code or not report.head or not report.head[0]:
        every = (finding for o in report.outcomes for finding in o.findings)
        found = [finding.message for finding in every if finding.severity == "failure"]
        why = report.problem or (found[0] if found else "it holds no entry")
        raise RefusedError(f"{path} is not restored: {why}; `tripod verify {path}` tells all")


def _choose(root: str, fresh: str, as_origin: str | None) -> tuple[str, str, str]:
    """The name that the backup has, the one under which it goes on, and why; see the module."""
    with _sound(fresh) as ledger:
        old = ledger.origin
        reason = _lacking(root, ledger)
        if reason is None and as_origin is None:
            return old, old, ""
        used = {old}
        if tables_current(ledger):
            used |= {row[0] for row in ledger.db.execute("SELECT origin FROM forks")}
    return old, recover.new_origin(old, as_origin, used), reason or "another name was asked for"


def _lacking(root: str, ledger: SQLiteReader) -> str | None:
    """Why a backup may lack entries of its line, or None (RefusedError: it is another team's)."""
    database = database_of(root)
    origin, size, nodes = ledger.origin, ledger.size, read_block_nodes(ledger.db)
    there: tuple[Head, str] | None = None
    first: bytes | None = None
    with suppress(LedgerError, sqlite3.Error), closing(read_only(database)) as db:
        live = SQLiteReader(db)
        first = live.header(0)
        check_schema(db)
        there = live.head(), live.origin
    if there is not None and there[0].size and first != ledger.header(0):
        raise RefusedError(
            f"{database} is the ledger {there[1]}, and the backup is of another one, {origin}: "
            "move the ledger away first if it is to go"
        )
    last = last_seal(origin)
    problem = None if last is None else seal_contradiction(last, size, nodes)
    problem = problem or files_ahead_of(ledger, Disk(root))
    if problem is not None:
        return problem
    if there is None:
        return "no ledger that can be read stood in its place: nobody knows what came after it"
    head, name = there
    if name == origin and head.size <= size and root_of(nodes, 0, head.size) == head.root:
        return None
    return f"the ledger in its place had gone on, to {head.size} entries as {name}"


def _refuse_losses(root: str, fresh: str, discard: str | None, take: str | None) -> None:
    """Refuse where the files show decisions, messages or events that the backup does not hold.

    Where no decision and no message is newer, what is new is taken in, as others' writes are.
    """
    recover.check_discard_reason(discard)
    recover.check_discard_reason(take, "--take-in")
    if take is not None:
        return
    with _sound(fresh) as ledger:
        source = source_of(ledger)
        disk = Disk(root, places=recorded(ledger))
        if discard is not None or files_ahead_of(ledger, disk) is None:
            return
        paths = [path for name in (LOG, CHAT) for path in name.paths(source)]
        paths += recover.unknown_event_files(source, disk)
        lost = recover.unrecorded_pieces(source, disk, paths)
    if lost:
        raise RefusedError(recover.refusal_of_losses(lost, "restore"))
