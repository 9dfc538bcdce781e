"""Backups: a copy of the ledger while others write, and an honest way back from one.

A ledger that is gone comes back from its record, too: the same entries, byte for byte.

A copy that goes on under the old name would be a second history of one log. So a restored backup
takes a new name in its first entry (``ledger.forked-from``), unless the ledger that it replaces is
there to be read and holds nothing that the backup lacks.

A lost ledger also comes back from this replica's own record, the longest that git knows of: on its
ref, on the refs of the remotes that it was pushed to, or, of an earlier version, in
``.nbs/record``. Its private key must be on this host: else a clone could go on as somebody else,
and it joins the team instead. What peers remember of this replica (``peer.merged``) and what this
host sealed last must be contained in the record; where it is not, entries are lost that others saw,
and the ledger goes on under a new name that says so. What the files show beyond the record is taken
in as observed: nobody else holds it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tripod.errors import (
    BadArgumentError,
    LedgerDamagedError,
    LedgerError,
    MalformedError,
    NoTeamError,
    RefusedError,
    TripodError,
    UnwritableError,
)
from tripod.ledger import RECORD, Draft, Head, LedgerReader, root_of
from tripod.ledger.files import hold_file_lock, rename_file, sync_name, sync_path
from tripod.ledger.ids import fresh_ids
from tripod.ledger.kinds.peers import PEER_MERGED
from tripod.ledger.kinds.trust import FORKED_FROM
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
from tripod.ledger.tlog.note import MAX_NOTE, VerifierKey
from tripod.ledger.tlog.seal import Seal, read_seal
from tripod.ledger.tlog.tiles import SEAL
from tripod.projections import (
    CHAT,
    COUNTS,
    LOG,
    Disk,
    desired_file,
    file_differences,
    files_ahead_of,
    recorded,
    refold,
    source_of,
    tables_current,
    text,
)
from tripod.recovery import rebuild as recover
from tripod.team.files import ignore_files
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.keys import key_path
from tripod.trust.seal import last_seal, last_seal_note, seal_contradiction
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.git_folder import GitError
from tripod.verify.export import ExportFiles, FileError, load_export
from tripod.verify.peers.record import RefFiles
from tripod.verify.peers.refs import replica_refs

MAX_ORIGIN = 200  # bytes, as `tripod init` has it
_RESTORING = "restoring"  # ledger.db.restoring, and ledger.db-restoring from a record


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
) -> RestoredBackup:
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
    ``recover.rebuild``.

    Raises:
        RefusedError: the backup is no sound ledger or that of another team, this host's last seal
            cannot be read, or the files show such pieces and no reason is given.
        BadArgumentError: the name breaks its rule, or was used before; or the reason does.
    """
    database = database_of(root)
    fresh = f"{database}.{_RESTORING}"
    try:
        with hold_file_lock(f"{database}.lock"):
            _take(path, fresh)
            old, new, reason = _choose(root, fresh, as_origin)
            size = _prepare(fresh, old, new, reason, sign_fork=sign_fork)
            _refuse_losses(root, fresh, discard)
            kept = recover.put_rebuilt_in_place(database, fresh, "replaced")
            if new != old:
                _put_record_aside(root)
    finally:
        recover.remove_rebuilt_database(fresh)
    with Team(root) as team:
        done = recover.rebuild(team, discard=discard)
        if new != old:
            sealing.seal_fork(team, old)
        counts = len(done.written), done.displaced
        return RestoredBackup(root, size, new, old, new != old, kept, *counts, team.warnings)


def _put_record_aside(root: str) -> None:
    """Keep the record of a line that was left: it may hold more than the new line's has."""
    record = f"{root}/{RECORD}"
    if os.path.lexists(record):
        rename_file(record, recover.free_database_name(f"{record}.replaced"))


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
    return old, _new_origin(old, as_origin, used), reason or "another name was asked for"


def _new_origin(old: str, new: str | None, used: set[str]) -> str:
    """The name under which a line goes on (BadArgumentError: it breaks its rule, or was used)."""
    if new is None:
        new = f"{old.partition('/fork/')[0]}/fork/{fresh_ids(1)[0][0]}"
    problem = text.text_word_problem(new, "--as-origin", MAX_ORIGIN, "+")
    if problem is None and new in used:
        problem = f"--as-origin: {new} was this ledger's name already, and a name is used once"
    if problem is not None:
        raise BadArgumentError(problem)
    return new


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


def _prepare(fresh: str, old: str, new: str, reason: str, *, sign_fork: bool) -> int:
    """Make the copy ready to be the ledger; give how many entries it was restored with."""
    with recover.rebuilt_copy(fresh) as (store, transaction):
        head = store.head()
        if new != old:
            note = sealing.sign_fork(store, head, new) if sign_fork else None
            transaction.fork(new, _fork(old, head, reason, note))
    return head.size


def _fork(old: str, head: Head, reason: str, note: str | None) -> Draft:
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


def _refuse_losses(root: str, fresh: str, discard: str | None) -> None:
    """Refuse where the files show decisions, messages or events that the backup does not hold.

    Where no decision and no message is newer, what is new is taken in, as others' writes are.
    """
    recover.check_discard_reason(discard)
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


def restore_from_record(root: str, keys: Sequence[VerifierKey] = ()) -> tuple[int, str, str | None]:
    """Make the ledger of a team directory from its record.

    Gives how many entries came back, under which name, and what the files show beyond them. No
    entry is added, and of the files only modes are set. Nobody but the log's own key vouches for
    the seal unless ``keys`` are given. Raises RefusedError where the record does not verify, or
    holds no bodies; nothing was made.
    """
    record, scratch = f"{root}/{RECORD}", f"{database_of(root)}-{_RESTORING}"
    os.makedirs(os.path.dirname(scratch), exist_ok=True)
    try:
        _load_record(ExportFiles(record), record, scratch, root=root, keys=keys)
        sync_path(scratch)
        rename_file(scratch, database_of(root))
    finally:
        recover.remove_rebuilt_database(scratch)
    with Team(root) as team:
        _fold_restored(team)
        ahead = files_ahead_of(team.store, team.disk)
        return team.store.head().size, team.store.origin, ahead


def _load_record(
    files: ExportFiles,
    name: str,
    scratch: str,
    *,
    root: str | None = None,
    keys: Sequence[VerifierKey] = (),
) -> None:
    """Make a database of a record, and judge it (RefusedError: it does not verify)."""
    from tripod.verify.checks import LEDGER_CHECKS
    from tripod.verify.evidence import DatabaseEvidence, OpenEvidence
    from tripod.verify.run import run

    recover.remove_rebuilt_database(scratch)
    loaded = load_export(files, scratch, keys)
    if loaded.seal is not None and not loaded.bodies:
        raise RefusedError(f"{name} holds headers alone: no ledger can be restored from it")
    database = DatabaseEvidence(scratch, source=name)
    with OpenEvidence(root or name, database=database, record=loaded.judged()) as evidence:
        evidence.problem = database.open()
        report = run(evidence, select={"record-agrees", *(check.NAME for check in LEDGER_CHECKS)})
    found = [f for o in report.outcomes for f in o.findings if f.severity == "failure"]
    if found or not loaded.entries:
        first = f"{found[0].where}: {found[0].message}" if found else "it holds no entry"
        raise RefusedError(
            f"{name} does not verify ({first}): nothing was restored; `tripod verify` tells all"
        )
    if report.problem:
        raise LedgerDamagedError(report.problem)


def _fold_restored(team: Team) -> None:
    """Make the tables of a ledger that was restored, and give its files their modes.

    Git keeps no such modes: what has the ledger's bytes gets the ledger's mode again.
    """
    with team.store.transaction() as transaction:
        refold(transaction, team.store.read())
    for apart in file_differences(team.source, team.disk):
        if apart.have == apart.want.data:
            team.disk.set_mode(apart.path, apart.want.mode)


def restore_as_copy(root: str, as_origin: str | None = None) -> RestoredBackup:
    """Have a ledger go on as a replica of its own: under a new name, and with a new key.

    For one of two copies of a ledger (a copied disk, two clones of one committed record), and for
    a ledger whose private key is lost. Nothing of it changes; its next entry says where the lines
    part, and peers take its entries from there on. The old key signs that, where it is here.

    1. ``ledger.forked-from`` is appended. Dead here: the line has no key yet: `tripod key new`.
    2. The new key is made, and seals.

    Raises BadArgumentError where the name breaks its rule, or was used before.
    """
    with Team(root) as team:
        with team.act():
            pass  # what other programs wrote is taken in under the old name
        old = team.store.origin
        used = {old} | {row[0] for row in team.store.db.execute("SELECT origin FROM forks")}
        new = _new_origin(old, as_origin, used)
        with team.store.transaction() as transaction:
            head = transaction.head()
            note = _signed_end(team, head, new)
            transaction.fork(new, _fork(old, head, "it is a copy, or its key is lost", note))
            if transaction.cursors().files == head.size:
                team.store.set_files(transaction.size)
        if database_apart(root) is None:  # else a ref has the record, and a folder is an old one
            _put_record_aside(root)
        sealing.seal_fork(team, old)
        return RestoredBackup(
            root, head.size, new, old, forked=True, kept="", written=0, displaced=0,
            warnings=team.warnings,
        )  # fmt: skip


def _signed_end(team: Team, head: Head, new: str) -> str | None:
    """The old key's word that its line ends here in this ledger, where that key can be used."""
    with suppress(TripodError, LedgerError, OSError):
        return sealing.sign_fork(team.store, head, new)
    return None


# This replica's own record ---------------------------------------------------------------------


class FoundRecord(NamedTuple):
    """A record: where it stands, its replica's name ('' in a folder), its files, its seal.

    ``is_own_ref``: it stands on a ref that this repository wrote, and was not fetched.
    """

    where: str
    replica: str
    files: ExportFiles
    seal: Seal
    is_own_ref: bool = False

    @property
    def has_key(self) -> bool:
        """Whether the private key of its log is on this host."""
        return os.path.exists(key_path(self.seal.origin))


class RestoredRecord(NamedTuple):
    """What came back: the restored ledger, from where, and the kinds that the files added."""

    done: RestoredBackup
    where: str
    kinds: dict[str, int]


def find_records(root: str, repository: Repository | None) -> list[FoundRecord]:
    """Every record that git or the team directory holds, longest first; odd ones are left out."""
    found: list[FoundRecord] = []
    if os.path.isfile(f"{root}/{RECORD}/{SEAL}") and not os.path.islink(f"{root}/{RECORD}"):
        found += _record(f"{root}/{RECORD}", "", ExportFiles(f"{root}/{RECORD}"))
    for ref in replica_refs(repository) if repository is not None else ():
        with suppress(GitError):  # it leads to no commit, or that is missing
            assert repository is not None
            files = RefFiles(repository, ref.commit)
            found += _record(ref.ref, ref.replica, files, is_own_ref=ref.remote is None)
    return sorted(found, key=lambda one: -one.seal.size)


def _record(
    where: str, replica: str, files: ExportFiles, *, is_own_ref: bool = False
) -> Iterator[FoundRecord]:
    with suppress(FileError, MalformedError):
        seal = read_seal(files.read(SEAL, MAX_NOTE))
        yield FoundRecord(where, replica, files, seal, is_own_ref)


def open_repository(root: str) -> Repository | None:
    """The repository around a team directory; None where it is not read."""
    try:
        return Repository(root)
    except GitError:
        return None


def restore_own_record(root: str, replica: str | None = None) -> RestoredRecord:
    """Put this replica's own record in the place of its ledger; see the module.

    ``replica`` names the one to restore: needed where its record was only fetched, since the clone
    that it is from may still be at work.

    1. The longest record is made a database beside the ledger, and judged. Dead here: nothing
       happened.
    2. It takes the ledger's place, which is kept. Dead here: the ledger is restored, and commands
       ask for what is next.
    3. The files are taken in and written. Dead here: the next `tripod sync` does it.

    Raises RefusedError where no such record verifies, two contradict each other, or the ledger
    that is there holds more.
    """
    database = database_of(root)
    fresh = f"{database}.{_RESTORING}"
    os.makedirs(os.path.dirname(fresh), exist_ok=True)
    with ExitStack() as held:
        repository = open_repository(root)
        if repository is not None:
            held.enter_context(repository)
        records = find_records(root, repository)
        own = _own(records, replica)
        held.callback(recover.remove_rebuilt_database, fresh)
        held.enter_context(hold_file_lock(f"{database}.lock"))
        chosen = _longest(own, fresh)
        old = chosen.seal.origin
        _refuse_longer(database, chosen)
        with closing(read_only(fresh)) as db:
            reason = _lost(SQLiteReader(db), old, records)
        new = old if reason is None else _new_origin(old, None, {old})
        size = _prepare(fresh, old, new, reason or "", sign_fork=reason is not None)
        kept = recover.put_rebuilt_in_place(database, fresh, "replaced")
    os.makedirs(root, exist_ok=True)  # `git clean` may have removed it
    with Team(root) as team:
        _fold_restored(team)
        ignore_files(team)
        counts = desired_file(team.source, COUNTS.path)
        if counts is not None:  # it may count what was lost: then nothing would be taken in
            team.disk.write(COUNTS.path, counts)
        with team.act(full=True) as act:
            pass
        kinds = Counter(entry.kind for entry in act.entries if "observed" in entry.data)
        if new != old:
            sealing.seal_fork(team, old)
        done = RestoredBackup(root, size, new, old, new != old, kept, 0, 0, team.warnings)
        return RestoredRecord(done, chosen.where, dict(kinds))


def _own(records: list[FoundRecord], replica: str | None) -> list[FoundRecord]:
    """The records of the replica to restore (RefusedError: it is not clear which)."""
    here = [one for one in records if one.has_key]
    if replica is not None:
        named = [one for one in here if replica in (one.replica, one.seal.origin)]
        origins = {one.seal.origin for one in named}
    else:
        origins = {one.seal.origin for one in here if one.is_own_ref or not one.replica}
        named = [one for one in here if one.seal.origin in origins]
    if len(origins) == 1:
        return named
    if origins:
        names = ", ".join(sorted({one.replica or one.seal.origin for one in named}))
        raise RefusedError(f"which replica? `tripod restore --replica NAME`; there are {names}")
    fetched = sorted({one.replica for one in here})
    others = sorted({one.replica or one.seal.origin for one in records})
    if fetched and replica is None:
        raise RefusedError(
            f"the record of {', '.join(fetched)} was fetched, and its key is on this host. If that "
            f"clone is lost, `tripod restore --replica {fetched[0]}`; if it is still at work, this "
            "one joins it: `tripod init`"
        )
    what = "no record of a replica is here"
    if others:
        what = f"the private key of none of the records here ({', '.join(others)}) is on this host"
    raise RefusedError(
        f"{what}: nothing was restored. `tripod restore FILE` takes a backup; `tripod init` joins "
        "the team as a new replica, and the old one stays as a peer that has ended"
    )


def _longest(own: list[FoundRecord], fresh: str) -> FoundRecord:
    """Make ``fresh`` the longest record that verifies (RefusedError: two contradict each other)."""
    problems = []
    for chosen in own:
        try:
            _load_record(chosen.files, chosen.where, fresh)
        except (TripodError, LedgerError, sqlite3.Error) as error:
            problems.append(str(error))
            continue
        with closing(read_only(fresh)) as db:
            nodes = read_block_nodes(db)
            for other in own:
                if other.seal.size <= chosen.seal.size and (
                    root_of(nodes, 0, other.seal.size) != other.seal.root
                ):
                    raise RefusedError(
                        f"{chosen.where} and {other.where} contradict each other at "
                        f"{other.seal.size} entries: one replica went on twice (a copied disk?). "
                        "Nothing was restored; `tripod diff` shows where they part, `tripod init` "
                        "joins as a new replica"
                    )
        return chosen
    raise RefusedError("; ".join(problems))


def _refuse_longer(database: str, chosen: FoundRecord) -> None:
    """Refuse where the ledger in the place is the same one, and holds more than the record."""
    with suppress(LedgerError, sqlite3.Error), closing(read_only(database)) as db:
        there = SQLiteReader(db)
        size, root = there.size, chosen.seal.size
        if there.origin == chosen.seal.origin and size >= root:
            same = root_of(read_block_nodes(db), 0, root) == chosen.seal.root
            if same:
                raise RefusedError(
                    f"{database} holds all {root} entries of {chosen.where}, and {size - root} "
                    "more: there is nothing to restore. `tripod doctor` says what else is wrong"
                )


def _lost(ledger: LedgerReader, origin: str, records: list[FoundRecord]) -> str | None:
    """Why the record may lack entries that others saw; None: nobody remembers more."""
    nodes = read_block_nodes(ledger.tables)
    last = last_seal(origin)
    problem = None if last is None else seal_contradiction(last, ledger.size, nodes)
    if problem is not None:
        return problem
    for record in records:
        if record.seal.origin != origin:
            for seal in _remembered(record, origin):
                if seal.size > ledger.size or root_of(nodes, 0, seal.size) != seal.root:
                    return f"the peer {record.replica} merged {seal.size} entries of it"
    return None


def _remembered(record: FoundRecord, origin: str) -> Iterator[Seal]:
    """The newest head of ``origin`` that a peer's record remembers, if it can be read at all."""
    with TemporaryDirectory(prefix="tripod-peer-") as folder:
        load_export(record.files, f"{folder}/ledger.db")
        with closing(read_only(f"{folder}/ledger.db")) as db:
            found = SQLiteReader(db).read(kinds=(PEER_MERGED.name,), newest_first=True)
            with suppress(LedgerError, LookupError, TypeError, ValueError):
                for entry in found:
                    if entry.data["origin"] == origin:
                        size, root = entry.data["size"], bytes.fromhex(entry.data["root"])
                        yield Seal(origin, size, root)
                        return
