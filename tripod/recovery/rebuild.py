"""After a crash, a bad edit or a lost disk: make every table and file what the ledger says.

``rebuild`` goes through the same fold and the same renders as daily work. What stood in a file's
place is kept as a blob first. ``rebuild_past`` shows any projection as of any entry.

``rebuild_database`` writes a database with damaged pages anew from its entries:

1. Under the writer's lock the ledger's own rows are copied beside it and checked in the copy
   (``tripod.ledger.sqlite.repair``), and the tables are folded from them there. Dead here: nothing
   happened; the next time, ``ledger.db.renewing`` is removed.
2. The damaged database is copied as it is to ``ledger.db.damaged-1``. Dead here: nothing happened;
   the next time another number is taken.
3. The copy takes its place, in one transaction. Dead before its COMMIT: nothing happened. Dead
   after it: the ledger is whole, the next command works on it, and the next rebuild removes the
   copy.

The files are another matter: ``rebuild`` follows. A backup takes the ledger's place by the same
step 3 (``put_rebuilt_in_place``): the database that was there is kept under another name, and if
its pages can be read at all, it is written over in a transaction of its own, so that a program that
has it open sees the new one next, and none goes on writing to a file that has no name.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count, islice

from tripod.errors import (
    BadArgumentError,
    LedgerError,
    NotFoundError,
    RefusedError,
    UnwritableError,
)
from tripod.ledger import RECORD, Draft, Head
from tripod.ledger.files import hold_file_lock, rename_file, sync_name, sync_path
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds.team import DISPLACED
from tripod.ledger.kinds.trust import FORKED_FROM
from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.sqlite.repair import copy_ledger_rows, walk
from tripod.ledger.sqlite.store import SQLiteStore, SQLiteTransaction, sqlite_store_error
from tripod.output import remark
from tripod.projections import (
    BUS,
    COUNTS,
    PROJECTIONS,
    UNMERGED,
    Disk,
    File,
    Source,
    UnreadableError,
    create_tables,
    erasure,
    file_differences,
    fold_batches,
    fold_into,
    name_pieces,
    refold,
    source_of,
    text,
)
from tripod.team.act import Act
from tripod.team.files import has_foreign_file_lock
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.seal import last_seal_note

MAX_ORIGIN = 200  # bytes, as `tripod init` has it
MAX_REASON = 500  # characters
MAX_READ = 2**30
RENEWING = "renewing"  # ledger.db.renewing: kept out of git as every ledger.db*
RESTORING = "restoring"  # ledger.db.restoring, and ledger.db-restoring from a record
_FILES = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Rebuilt:
    """Paths that were written, and how many of them had held other bytes (kept in the ledger).

    ``triggers`` are those of the database that were missing or altered, and were put back.
    ``kept`` is where a database with damaged pages is kept, '' where it was whole.
    """

    written: list[str]
    displaced: int
    triggers: list[str] = field(default_factory=list)
    kept: str = ""


def rebuild(
    team: Team, *, evidence: bool = False, discard: str | None = None, take: str | None = None
) -> Rebuilt:
    """Fold all tables anew, put lost triggers back, and write every projected file that differs.

    Args:
        team: the team.
        evidence: also give back kept logs whose files are gone or changed.
        discard: why decisions, messages and events that the files show and no entry holds may go
            from the files; they are kept in the ledger, and ``verify`` goes on to name them.
        take: why they are taken in, as others wrote them, though the ledger was rolled back.

    Raises:
        BadArgumentError: the reason breaks its rule, or both are given.
        RefusedError: a file's bytes cannot be kept, or hold such pieces and no reason is given;
            nothing was written.
        UnwritableError: the disk refuses.
    """
    check_discard_reason(discard)
    check_discard_reason(take, "--take-in")
    if take is not None and discard is not None:
        raise BadArgumentError("--take-in and --discard: give one of them")
    locks: set[str] = set()
    while True:
        with (
            suppress(_UnlockedError),
            team.act(full=True, anew=True, beyond=take or "", locks=locks) as act,
        ):
            # A `rebuild_database` that was killed after its last step leaves this.
            remove_rebuilt_database(f"{team.store.path}.{RENEWING}")
            walk(team.store.db)
            paths, why = _to_write(act, evidence=evidence)
            if take is not None and act.look.ahead:
                _tell_of_rollback(act, take)
                paths.add(COUNTS.path)
            elif act.look.ahead:
                strays = list(unknown_event_files(team.source, team.disk))
                why |= dict.fromkeys(strays, "the ledger holds no such event")
                paths.update(strays)
            kept = _keep(act, why, discard, locks)
            act.rewrite |= paths
            if not act.conflicts:
                team.warnings.clear()
            break
    failed = team.files.failed
    if failed:
        path, problem = next(iter(failed.items()))
        raise UnwritableError(f"{path}: {problem}; {len(failed)} files could not be written")
    return Rebuilt(sorted(paths), kept, act.look.triggers)


class _UnlockedError(Exception):
    """Files are to be written over that other programs may be adding to."""


def _keep(act: Act, why: Mapping[str, str], discard: str | None, locks: set[str]) -> int:
    """Keep the bytes of files that are to be written, for those reasons; how many were kept.

    Raises RefusedError: they hold pieces that no entry holds, and no reason is given.
    _UnlockedError: other programs may add to some of them now, which would be taken for what is
    kept; their locks are added to ``locks``, so that all is done again while nobody adds to them.
    """
    late = set(filter(has_foreign_file_lock, why.keys() - locks))
    if late:
        locks |= late
        raise _UnlockedError
    # Half of a merge is refused in any case, by `displace`.
    lost = unrecorded_pieces(act.source, act.disk, sorted(why.keys() - act.writer.unmerged.keys()))
    if lost and discard is None:
        raise RefusedError(refusal_of_losses(lost, "rebuild"))
    kept = 0
    for path, reason in why.items():
        # Of the pieces only the number: a later redaction of their texts would miss it here.
        count = len(lost.get(path, ()))
        said = f"; with {count} pieces that no entry holds, discarded: {discard}"
        kept += act.displace(path, reason + said if count else reason)
    return kept


def _to_write(act: Act, *, evidence: bool) -> tuple[set[str], dict[str, str]]:
    """Paths to be written, and why the bytes of some of them are to be kept first.

    The caller keeps them once both are whole: appending changes what they are read from.
    """
    files = act.writer
    paths: set[str] = set()
    why: dict[str, str] = {}
    # It only reads, so one look at a folder is enough: who writes looks at the way to each file.
    disk = Disk(act.disk.root, steady=True)
    disk.places = act.disk.places
    for path, want, have, _ in file_differences(
        act.source, disk, evidence=evidence, agreed=files.agreed.keys()
    ):
        paths.add(path)
        if have is None or have == want.data or act.is_older(path):
            continue
        if path in act.conflicts or not files.is_accounted(path, sha256(have).hexdigest()):
            why[path] = "differed from the ledger when it was rebuilt"
    for path, conflict in sorted(act.conflicts.items()):
        if act.is_older(path):
            paths.add(path)
            continue
        # Where only an event of ours may stand, the file goes. What could not even be read,
        # or is half of a merge, was never taken in.
        is_other = conflict.what in ("unreadable", UNMERGED) or not path.endswith(".event")
        if not is_other and act.disk.is_file(path):
            paths.add(path)
        if path in paths:
            why.setdefault(path, conflict.detail)
    return paths, why


def _tell_of_rollback(act: Act, take: str) -> None:
    """Record that a ledger was rolled back and what its files show taken in, for ``verify``."""
    reason = f"the ledger lacked what the files show; that was taken in: {take}"
    if not act.displace(COUNTS.path, reason):
        act.append([DISPLACED.draft({"path": COUNTS.path, "reason": reason})])


def check_discard_reason(reason: str | None, name: str = "--discard") -> None:
    """Raise BadArgumentError where a reason to discard, or to take in, breaks its rule."""
    problem = None if reason is None else text.text_line_problem(reason, name, MAX_REASON)
    if problem is not None:
        raise BadArgumentError(problem)


def unrecorded_pieces(source: Source, disk: Disk, paths: Iterable[str]) -> dict[str, list[str]]:
    """The pieces that no entry holds in those of the files that have any, by path."""
    found = {}
    for path in paths:
        try:
            data = disk.read(path, MAX_READ)
        except UnreadableError:
            continue  # it is not written over: it cannot be kept
        pieces = [] if data is None else erasure.unrecorded_pieces(source, path, data)
        if pieces:
            found[path] = pieces
    return found


def refusal_of_losses(lost: Mapping[str, list[str]], command: str) -> str:
    """Why files are not written that show what no entry holds."""
    count = sum(map(len, lost.values()))
    shown = "; ".join(f"{path}: {name_pieces(pieces)}" for path, pieces in lost.items())
    return (
        f"the files show {count} piece{'' if count == 1 else 's'} that no entry of this ledger "
        f"holds, and `{command}` would remove them: {shown}. Nothing was written. Put back the "
        f"ledger that holds them; or `tripod {command} --take-in REASON` takes them in, as others "
        f"wrote them; or `tripod {command} --discard REASON` removes them from the files, keeps "
        "their bytes in the ledger, and `tripod verify` names them from then on"
    )


def unknown_event_files(source: Source, disk: Disk) -> Iterator[str]:
    """Event files that a rolled-back ledger does not know: they came after it, so they go."""
    known = set(BUS.paths(source))
    for folder in disk.places.queue_folders():
        for name in disk.names(folder):
            path = f"{folder}/{name}"
            if name.endswith(".event") and path not in known:
                yield path


@contextmanager
def rebuild_past(team: Team, seq: int | None) -> Iterator[Source]:
    """Tables as of entry ``seq`` (None: now), for a ``with`` (BadArgumentError: no such entry)."""
    if seq is None:
        yield team.source
        return
    size = team.store.head().size
    if not 0 <= seq < size:
        raise BadArgumentError(f"--at {seq}: the ledger has entries 0 to {size - 1}")
    with closing(sqlite3.connect("", isolation_level=None)) as scratch:
        scratch.execute("BEGIN")
        create_tables(scratch)
        for batch in fold_batches(islice(team.store.read(), seq + 1), 1000):
            fold_into(scratch, batch, team.store.blob)
        yield source_of(team.store)._replace(db=scratch)


def rebuilt_files(source: Source, name: str) -> list[tuple[str, File]]:
    """Every file of one projection, as (path, file); NotFoundError: there is no such projection."""
    chosen = [projection for projection in PROJECTIONS if projection.name == name]
    if chosen:
        files = ((path, one.render(source, path)) for one in chosen for path in one.paths(source))
        return [(path, file) for path, file in files if file is not None]
    names = ", ".join(dict.fromkeys(projection.name for projection in PROJECTIONS))
    raise NotFoundError(f"no projection {name!r}; there are {names}")


# Whole databases -------------------------------------------------------------------------------


def copy_database_pages(source: sqlite3.Connection, path: str) -> None:
    """All of a database as of one moment, into a new file of its own, waited for."""
    remove_rebuilt_database(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        source.backup(target)
        _close_log(target)
    sync_path(path)


def _close_log(db: sqlite3.Connection) -> None:
    """Bring a database that nobody else has open into its one file, without a log beside it."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA journal_mode=DELETE")


def remove_rebuilt_database(path: str) -> None:
    """Remove a database and what SQLite and we put beside it."""
    for suffix in (*_FILES, ".lock"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


@contextmanager
def rebuilt_copy(fresh: str) -> Iterator[tuple[SQLiteStore, SQLiteTransaction]]:
    """A copy of a ledger, its tables folded, in a transaction; then it is one file, closed."""
    with closing(SQLiteStore(fresh, fold=fold_into)) as store:
        with store.transaction() as transaction:
            refold(transaction, store.read())
            yield store, transaction
        _close_log(store.db)


def put_rebuilt_in_place(database: str, fresh: str, word: str) -> str:
    """Put a prepared copy in the ledger's place; give where the old one is kept, '' if none was.

    It is kept as ``<database>.<word>-<number>``. Dead before the last step: the old one is in its
    place, or (where it could not be read) under that name, and ``fresh`` is whole. Raises
    UnwritableError where the disk refuses, or others hold the database; nothing was replaced.
    """
    sync_path(fresh)
    if not any(_may_hold_entries(database + suffix) for suffix in ("", "-wal", "-journal")):
        for suffix in _FILES[1:]:  # what a removed database leaves: nothing can be read of it
            with suppress(FileNotFoundError):
                os.unlink(database + suffix)
        rename_file(fresh, database)
        return ""
    kept = free_database_name(f"{database}.{word}")
    try:
        with closing(read_only(database)) as live:
            copy_database_pages(live, kept)
        _write_over(database, fresh)
    except sqlite3.OperationalError as error:
        remove_rebuilt_database(kept)
        raise sqlite_store_error(error, database) from error
    except (LedgerError, sqlite3.Error):
        remove_rebuilt_database(kept)
        for suffix in _FILES:
            with suppress(FileNotFoundError):
                os.rename(database + suffix, kept + suffix)
        os.rename(fresh, database)
    sync_name(database)
    return kept


def _may_hold_entries(path: str) -> bool:
    """Whether something stands there; an empty file beside a database that is gone is nothing."""
    is_empty = (
        path.endswith(("-wal", "-journal")) and os.path.isfile(path) and not os.path.getsize(path)
    )
    return os.path.lexists(path) and not is_empty


def free_database_name(path: str) -> str:
    """``<path>-1``, or with the first number that no file or database has yet."""
    names = (f"{path}-{number}" for number in count(1))
    return next(name for name in names if not any(os.path.lexists(name + end) for end in _FILES))


def _write_over(database: str, fresh: str) -> None:
    with (
        closing(sqlite3.connect(fresh)) as source,
        closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as target,
    ):
        source.backup(target)
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # where others read, a later one does it


def rebuild_database(root: str) -> str:
    """Write the database of a team directory anew; say and give where the damaged one is kept.

    Raises LedgerDamagedError where not all its entries are sound, UnwritableError where the disk
    refuses; then nothing was replaced.
    """
    database = database_of(root)
    fresh = f"{database}.{RENEWING}"
    try:
        with hold_file_lock(f"{database}.lock"):
            remove_rebuilt_database(fresh)
            mode = os.stat(database).st_mode & 0o7777
            copy_ledger_rows(database, fresh)
            with rebuilt_copy(fresh):
                pass
            os.chmod(fresh, mode)
            kept = put_rebuilt_in_place(database, fresh, "damaged")
            os.chmod(kept, mode)
    except (sqlite3.Error, OSError) as error:
        raise sqlite_store_error(error, database) from error
    finally:
        remove_rebuilt_database(fresh)
    remark(
        f"pages of {database_of(root)} were damaged: it was written anew from its entries, which "
        f"are sound and all there; the damaged file is kept as {kept}"
    )
    return kept


# Ledgers that come back ---------------------------------------------------------------------------


@dataclass(frozen=True)
class RestoredBackup:
    """What a restore did; ``kept`` is where the replaced database is, '' where there was none."""

    root: str
    size: int
    origin: str
    old: str
    forked: bool
    kept: str
    written: int
    displaced: int
    warnings: list[str] = field(default_factory=list)


def put_record_aside(root: str) -> None:
    """Keep the record of a line that was left: it may hold more than the new line's has."""
    record = f"{root}/{RECORD}"
    if os.path.lexists(record):
        rename_file(record, free_database_name(f"{record}.replaced"))


def new_origin(old: str, new: str | None, used: set[str]) -> str:
    """The name under which a line goes on (BadArgumentError: it breaks its rule, or was used)."""
    if new is None:
        new = f"{old.partition('/fork/')[0]}/fork/{fresh_ids(1)[0][0]}"
    problem = text.text_word_problem(new, "--as-origin", MAX_ORIGIN, "+")
    if problem is None and new in used:
        problem = f"--as-origin: {new} was this ledger's name already, and a name is used once"
    if problem is not None:
        raise BadArgumentError(problem)
    return new


def prepare_copy(fresh: str, old: str, new: str, reason: str, *, sign_fork: bool) -> int:
    """Make the copy ready to be the ledger; give how many entries it was restored with."""
    with rebuilt_copy(fresh) as (store, transaction):
        head = store.head()
        if new != old:
            note = sealing.sign_fork(store, head, new) if sign_fork else None
            transaction.fork(new, fork_draft(old, head, reason, note))
    return head.size


def fork_draft(old: str, head: Head, reason: str, note: str | None) -> Draft:
    """The draft by which a line goes on under another name than ``old``."""
    return FORKED_FROM.draft(
        {
            "origin": old,
            "size": head.size,
            "root": head.root.hex(),
            "reason": reason,
            "seal": last_seal_note(old),
            "note": note,
        }
    )


def fold_restored(team: Team) -> None:
    """Make the tables of a ledger that was restored, and give its files their modes.

    Git keeps no such modes: what has the ledger's bytes gets the ledger's mode again.
    """
    with team.store.transaction() as transaction:
        refold(transaction, team.store.read())
    for apart in file_differences(team.source, team.disk):
        if apart.have == apart.want.data:
            team.disk.set_mode(apart.path, apart.want.mode)
