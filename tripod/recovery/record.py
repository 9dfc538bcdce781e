"""A ledger that is lost comes back from this replica's own record; a copy goes on as another one.

The record is the longest that git knows of: on this replica's ref, on the refs of the remotes that
it was pushed to, or, of an earlier version, in ``.nbs/record``. Its private key must be on this
host: else a clone could go on as somebody else, and it joins the team instead. What peers remember
of this replica (``peer.merged``) and what this host sealed last must be contained in the record;
where it is not, entries are lost that others saw, and the ledger goes on under a new name that says
so. What the files show beyond the record is taken in as observed: nobody else holds it.

Two copies of one ledger (a copied disk, two clones of one committed record) contradict each other
as soon as both go on. One of them leaves the line at the last entry that both have, as far as git
knows, or that its key sealed, and what it recorded since is taken in from its files, as observed.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tripod.errors import (
    GitError,
    LedgerDamagedError,
    LedgerError,
    MalformedError,
    RefusedError,
    TripodError,
)
from tripod.ledger import CHAT, EVENTS, LOGS, RECORD, SEAL, Head, LedgerReader, root_of
from tripod.ledger.files import hold_file_lock, make_folder, rename_file, sync_path
from tripod.ledger.kinds.peers import PEER_ADDED, PEER_MERGED
from tripod.ledger.kinds.trust import FORKED_FROM
from tripod.ledger.locator import database_apart, database_of, has_record
from tripod.ledger.sqlite.reader import (
    SQLiteReader,
    read_block_nodes,
    read_only,
)
from tripod.ledger.sqlite.repair import copy_first_entries, read_entries_with_blobs
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.seal import Seal, read_seal
from tripod.peers.replica import tree_of_team
from tripod.projections import COUNTS, Disk, File, desired_file, files_ahead_of
from tripod.projections.chat.format import join_chat_file, split_chat_file
from tripod.projections.decisions.format import split_decision_log
from tripod.recovery import rebuild as recover
from tripod.team.files import ignore_files
from tripod.team.team import Team
from tripod.trust import seal as sealing
from tripod.trust.keys import key_path
from tripod.trust.seal import last_seal, seal_contradiction
from tripod.verify.anchors.git import Repository
from tripod.verify.export import ExportFiles, FileError, load_export
from tripod.verify.export_file import RefFiles
from tripod.verify.peers.refs import replica_refs
from tripod.verify.peers.seals import RecordProblemError, SealedRecord

_LIVE_LINES = (
    "SELECT lines.seq FROM lines JOIN channels USING (channel) WHERE channel = ?"
    " AND number >= live_from AND gone IS NULL ORDER BY number"
)
_GARBAGE = (ValueError, LookupError, TypeError)
"""What reading an entry raises whose body was changed into something that is no body."""
_MAX_FILE = 2**28  # bytes of a file that is looked at
_MOST_TRACKED = 200  # commits with a record that are looked at, the newest


def restore_as_copy(root: str, as_origin: str | None = None) -> RestoredRecord:
    """Have a ledger go on as a replica of its own: under a new name, and with a new key.

    For one of two copies of a ledger, and for one whose private key is lost. Its next entry says
    where the lines part, and peers take its entries from there on. The old key signs that, where it
    is here.

    Where git holds a record in which the old line went on otherwise, or the private key was never
    on this host, what this ledger recorded since they parted cannot stand under the old name:

    1. What its files show of peers from there on is taken out of them: it comes by the next pull.
       Dead here: the next command writes it again.
    2. Its entries up to there are copied beside it, and forked. Dead here: nothing happened.
    3. The copy takes its place, which is kept. Dead here: commands ask for what is next.
    4. What the files show beyond is taken in as observed.

    Else only the fork is appended. Then a new key seals. Dead before that: `tripod key new`.
    Raises BadArgumentError where the name breaks its rule, or was used before.
    """
    with Team(root) as team:
        # What other programs wrote is taken in under the old name, also what a newer one recorded:
        # that the line ends here is said next.
        with team.act(beyond="it goes on as a copy"):
            pass
        old = team.store.origin
        used = {old} | {row[0] for row in team.store.db.execute("SELECT origin FROM forks")}
        new = recover.new_origin(old, as_origin, used)
        parted = _parted(root, team.store)
        if parted is None:
            with team.store.transaction() as transaction:
                head = transaction.head()
                note = _signed_end(team, head, new)
                draft = recover.fork_draft(old, head, "it is a copy, or its key is lost", note)
                transaction.fork(new, draft)
                if transaction.cursors().files == head.size:
                    team.store.set_files(transaction.size)
            if database_apart(root) is None:  # else a ref has it, and a folder is an old one
                recover.put_record_aside(root)
            sealing.seal_fork(team, old)
            done = recover.RestoredBackup(
                root, head.size, new, old, forked=True, kept="", written=0, displaced=0,
                warnings=team.warnings,
            )  # fmt: skip
            return RestoredRecord(done, "", {})
        is_signed = _signed_end(team, team.store.head(), new) is not None
        _leave_out_merged(team, parted.size)
    database = database_of(root)
    fresh = f"{database}.{recover.RESTORING}"
    try:
        with hold_file_lock(f"{database}.lock"):
            recover.remove_rebuilt_database(fresh)
            copy_first_entries(database, fresh, parted.size)
            recover.prepare_copy(fresh, old, new, parted.reason, sign_fork=is_signed)
            kept = recover.put_rebuilt_in_place(database, fresh, "replaced")
    finally:
        recover.remove_rebuilt_database(fresh)
    for ref in parted.left:
        _remove_ref(root, ref)
    return RestoredRecord(*_taken_in(root, (parted.size, new, old), kept, ""))


def _leave_out_merged(team: Team, size: int) -> None:
    """Take what the files show of peers' entries from ``size`` on out of them.

    Each stands in its maker's record. As an observed piece it would be here, and then everywhere, a
    second time.
    """
    db, disk = team.store.db, team.disk
    merged = {seq for (seq,) in db.execute("SELECT seq FROM merged WHERE seq >= ?", (size,))}
    if not merged:
        return
    for (log,) in db.execute("SELECT file FROM logs").fetchall():
        rows = db.execute("SELECT seq FROM pieces WHERE file = ? ORDER BY seq", (log,))
        header, pieces = split_decision_log(disk.read(f"{LOGS}/{log}", _MAX_FILE) or b"")
        own = _without_peers(pieces, [seq in merged for (seq,) in rows])
        _write_less(disk, f"{LOGS}/{log}", header + b"".join(own))
    for (channel,) in db.execute("SELECT channel FROM channels WHERE closed = 0").fetchall():
        rows = db.execute(_LIVE_LINES, (channel,))
        chat = split_chat_file(disk.read(f"{CHAT}/{channel}.chat", _MAX_FILE) or b"")
        if chat is not None:
            lines = _without_peers(chat.lines, [seq in merged for (seq,) in rows])
            less = join_chat_file(chat._replace(lines=tuple(lines)))
            _write_less(disk, f"{CHAT}/{channel}.chat", less)
    for name, seq in db.execute("SELECT name, seq FROM events").fetchall():
        for folder in (EVENTS, f"{EVENTS}/processed") if seq in merged else ():
            disk.remove(f"{folder}/{name}")


def _without_peers(pieces: Sequence[bytes], of_peers: Sequence[bool]) -> Sequence[bytes]:
    """The pieces of a file that are not of peers; all, if the file has others than it should."""
    if len(pieces) != len(of_peers):
        return pieces
    return [piece for piece, is_peers in zip(pieces, of_peers, strict=True) if not is_peers]


def _write_less(disk: Disk, path: str, data: bytes) -> None:
    found = disk.look(path, _MAX_FILE)
    if found is not None and found[0] != data:
        disk.write(path, File(data, found[1].mode))


class _Parted(NamedTuple):
    """How many entries of a ledger stay under its name where it goes on as a copy, and why.

    ``left`` are refs of this repository that carry what is left: they contradict the other copy.
    """

    size: int
    reason: str
    left: tuple[str, ...] = ()


def _parted(root: str, ledger: LedgerReader) -> _Parted | None:
    """Where the line of a ledger and that of another copy part; None: at its head.

    That is where the record of another copy has another entry. What was recorded where the private
    key never was is nobody's line yet, since nothing seals it: the other copy may record under the
    same numbers, and seal that later. Another copy that took a name of its own contradicts nothing,
    whatever it recorded before.
    """
    repository = open_repository(root)
    if repository is None:
        return None
    found: _Parted | None = None
    ours: list[FoundRecord] = []
    nodes = read_block_nodes(ledger.tables)
    with repository:
        for record in (*find_records(root, repository), *_tracked_records(root, repository)):
            if record.seal.origin != ledger.origin:
                continue
            with suppress(RecordProblemError, FileError, MalformedError, GitError):
                seal = record.seal
                if seal.size <= ledger.size and root_of(nodes, 0, seal.size) == seal.root:
                    ours.append(record)
                    continue
                size = _common(ledger, record)
                if size < ledger.size and (found is None or size < found.size):
                    reason = f"a copy of it went on otherwise: {record.where} has another entry"
                    found = _Parted(size, f"{reason} {size}")
    if found is None:
        sealed = max((one.seal.size for one in ours), default=0)
        is_signer = os.path.exists(key_path(ledger.origin)) or last_seal(ledger.origin) is not None
        if is_signer or not 0 < sealed < ledger.size:
            return None
        found = _Parted(sealed, f"its key, which sealed {sealed} entries of it, was never here")
    left = tuple(one.where for one in ours if one.is_own_ref and one.seal.size > found.size)
    return found._replace(left=left)


def _tracked_records(root: str, repository: Repository) -> Iterator[FoundRecord]:
    """The records that an earlier version committed with the work, the newest first."""
    tree = tree_of_team(root)
    if tree is None:
        return
    folder = f"{os.path.relpath(os.path.realpath(root), tree.top)}/{RECORD}"
    changes = repository.changes((f"{folder}/{SEAL}",), repository.everything())
    newest = dict.fromkeys(one.commit.name for one in reversed(changes) if one.new)
    for commit in list(newest)[:_MOST_TRACKED]:
        where = f"{commit}:{folder}"
        yield from _record(where, "", RefFiles(repository, where))


def _common(ledger: LedgerReader, record: FoundRecord) -> int:
    """How many first entries a record has in common with a ledger."""
    common = 0
    for header, raw in SealedRecord(record.files, record.seal).headers():
        if header.seq != common or ledger.header(common) != raw:
            break
        common += 1
    return common


def _remove_ref(root: str, ref: str) -> None:
    """Remove a ref of ours whose record is left: the replaced database holds all of it."""
    with suppress(GitError), Repository(root) as repository:
        repository.lend_refs()
        repository.ask("update-ref", "--no-deref", "-d", ref)


def _signed_end(team: Team, head: Head, new: str) -> str | None:
    """The old key's word that its line ends here in this ledger, where that key can be used."""
    with suppress(TripodError, LedgerError, OSError):
        return sealing.sign_fork(team.store, head, new)
    return None


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

    done: recover.RestoredBackup
    where: str
    kinds: dict[str, int]


def find_records(root: str, repository: Repository | None) -> list[FoundRecord]:
    """Every record that git or the team directory holds, longest first; odd ones are left out."""
    found: list[FoundRecord] = []
    if has_record(root):
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
        seal = read_seal(files.seal_note())
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

    1. The longest record is made a database beside the ledger, and judged. Where the ledger has all
       of it and more, but bodies that are not theirs, what is newer is added to it from there. Dead
       here: nothing happened.
    2. It takes the ledger's place, which is kept. Dead here: the ledger is restored, and commands
       ask for what is next.
    3. The files are taken in and written. Dead here: the next `tripod sync` does it.

    Raises RefusedError where no such record verifies, two contradict each other, or the ledger
    that is there holds more.
    """
    database = database_of(root)
    fresh = f"{database}.{recover.RESTORING}"
    make_folder(os.path.dirname(fresh), 0o777)
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
        where = chosen.where
        damaged = _damaged_size(database, chosen)
        if damaged:
            where += ", what is newer from the database that stood there"
            record = f"{fresh}-record"
            recover.remove_rebuilt_database(record)
            rename_file(fresh, record)
            try:
                copy_first_entries(database, fresh, damaged, record)
            except (LedgerDamagedError, *_GARBAGE) as error:
                raise RefusedError(
                    f"{error}. {chosen.where} has the first {chosen.seal.size} of {damaged} "
                    "entries, and not that one: `tripod restore FILE` puts a backup back"
                ) from error
            finally:  # it may have what was erased since
                recover.remove_rebuilt_database(record)
        with closing(read_only(fresh)) as db:
            reason = _lost(SQLiteReader(db), old, records)
        new = old if reason is None else recover.new_origin(old, None, {old})
        size = recover.prepare_copy(fresh, old, new, reason or "", sign_fork=reason is not None)
        kept = recover.put_rebuilt_in_place(database, fresh, "replaced")
    return RestoredRecord(*_taken_in(root, (size, new, old), kept, where))


def _taken_in(
    root: str, line: tuple[int, str, str], kept: str, where: str
) -> tuple[recover.RestoredBackup, str, dict[str, int]]:
    """Fold a ledger that was put in place, and take in what the files show beyond it."""
    size, new, old = line
    is_there = os.path.isdir(root)  # `git clean` may have removed it: the act begins it then
    with Team(root) as team:
        recover.fold_restored(team)
        counts = None
        if is_there:
            ignore_files(team)
            counts = desired_file(team.source, COUNTS.path)
        if counts is not None:  # it may count what was lost: then nothing would be taken in
            team.disk.write(COUNTS.path, counts)
        with team.act(full=True) as act:
            pass
        kinds = Counter(entry.kind for entry in act.entries if "observed" in entry.data)
        if new != old:
            sealing.seal_fork(team, old)
        done = recover.RestoredBackup(root, size, new, old, new != old, kept, 0, 0, team.warnings)
        return done, where, dict(kinds)


def _own(records: list[FoundRecord], replica: str | None) -> list[FoundRecord]:
    """The records of the replica to restore (RefusedError: it is not clear which)."""
    here = [one for one in records if one.has_key]
    if replica is not None:
        named = [one for one in here if replica in (one.replica, one.seal.origin)] or [
            one for one in here if one.replica.startswith(replica)
        ]
        origins = {one.seal.origin for one in named}
    else:
        origins = {one.seal.origin for one in here if one.is_own_ref or not one.replica}
        if len(origins) > 1:  # a line that this replica left goes on under its newer name
            origins -= {left for one in here if one.seal.origin in origins for left in _left(one)}
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
    what = (
        "no record of a replica is here, which `git fetch REMOTE '+refs/tripod/*:refs/"
        "tripod-remotes/REMOTE/*'` brings"
    )
    if others:
        what = f"the private key of none of the records here ({', '.join(others)}) is on this host"
    if fetched:
        what = f"no record here is of a replica {replica!r}; there are {', '.join(fetched)}"
    raise RefusedError(
        f"{what}: nothing was restored. `tripod restore FILE` takes a backup; `tripod init` joins "
        "the team as a new replica, and the old one stays as a peer that has ended"
    )


def _left(record: FoundRecord) -> set[str]:
    """The names under which a record's replica went before, as far as the record can be read."""
    with TemporaryDirectory(prefix="tripod-line-") as folder:
        left: set[str] = set()
        with suppress(FileError, MalformedError, LedgerError, LookupError, TypeError):
            load_export(record.files, f"{folder}/ledger.db")
            with closing(read_only(f"{folder}/ledger.db")) as db:
                left.update(
                    e.data["origin"] for e in SQLiteReader(db).read(kinds=(FORKED_FROM.name,))
                )
        return left - {record.seal.origin}


def _longest(own: list[FoundRecord], fresh: str) -> FoundRecord:
    """Make ``fresh`` the longest record that verifies (RefusedError: two contradict each other)."""
    problems = []
    for chosen in own:
        try:
            load_record(chosen.files, chosen.where, fresh)
        except (TripodError, LedgerError, sqlite3.Error) as error:
            problems.append(f"{chosen.where}: {error}")
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


def _damaged_size(database: str, chosen: FoundRecord) -> int:
    """How many entries the ledger in the place has, if that is all of the record, and damaged.

    0: it is no such ledger. Raises RefusedError where it holds all of the record and is sound, or
    holds it as a peer's.
    """
    with suppress(LedgerError, sqlite3.Error), closing(read_only(database)) as db:
        there = SQLiteReader(db)
        try:
            peers = {entry.data["origin"] for entry in there.read(kinds=(PEER_ADDED.name,))}
        except _GARBAGE as error:
            raise RefusedError(
                f"{database}: an entry about a peer cannot be read ({error}), so it is not known "
                "whose ledger it is. Nothing was restored; `tripod restore FILE` puts a backup back"
            ) from error
        if chosen.seal.origin in peers:
            raise RefusedError(
                f"{database} is the ledger of another replica, which joined the team and merged "
                f"{chosen.replica}: what that one recorded is here, or comes by `tripod pull`. "
                f"Nothing was restored. To go on as {chosen.replica} all the same, `tripod push`, "
                "then restore it in a new clone"
            )
        size, root = there.size, chosen.seal.size
        # Perhaps under a newer name: its line was forked.
        if size >= root and root_of(read_block_nodes(db), 0, root) == chosen.seal.root:
            try:
                for _ in read_entries_with_blobs(there.read(), there.blob):
                    pass
            except (LedgerDamagedError, *_GARBAGE):
                return size
            raise RefusedError(
                f"{database} holds all {root} entries of {chosen.where}, and {size - root} "
                "more: there is nothing to restore. `tripod doctor` says what else is wrong"
            )
    return 0


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


def restore_from_record(root: str, keys: Sequence[VerifierKey] = ()) -> tuple[int, str, str | None]:
    """Make the ledger of a team directory from its record.

    Gives how many entries came back, under which name, and what the files show beyond them. No
    entry is added, and of the files only modes are set. Nobody but the log's own key vouches for
    the seal unless ``keys`` are given. Raises RefusedError where the record does not verify, or
    holds no bodies; nothing was made.
    """
    record, scratch = f"{root}/{RECORD}", f"{database_of(root)}-{recover.RESTORING}"
    os.makedirs(os.path.dirname(scratch), exist_ok=True)
    try:
        load_record(ExportFiles(record), record, scratch, root=root, keys=keys)
        sync_path(scratch)
        rename_file(scratch, database_of(root))
    finally:
        recover.remove_rebuilt_database(scratch)
    with Team(root) as team:
        recover.fold_restored(team)
        ahead = files_ahead_of(team.store, team.disk)
        return team.store.head().size, team.store.origin, ahead


def load_record(
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
