"""Runs the projections: folds entries into tables, compares files with them, and writes files.

``fold_into`` is what the store calls with each append; ``rebuild`` and the verifier call it with
all entries into empty tables: recovery is the same fold as daily work. ``file_differences`` is
drift, which the verifier reports; ``restore`` writes these files anew. Both go through the same
render, so that rebuilding twice writes nothing.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tripod.ledger import CHAT as CHATS
from tripod.ledger import (
    EVENTS,
    MERGED,
    PLACE_IDS,
    REDACTED,
    Entry,
    LedgerDamagedError,
    LedgerError,
    LedgerReader,
    RawEntry,
    Transaction,
    added_place_problem,
    codec,
    commit_body,
    places_problem,
    tell_over,
)
from tripod.ledger.store import Blobs
from tripod.projections import layout, manifest
from tripod.projections.bus.tables import BUS, CLAIMS, in_folder
from tripod.projections.chat.tables import CHAT, READING
from tripod.projections.decisions.tables import LOG
from tripod.projections.disk import RACY_NS, Disk, UnreadableError
from tripod.projections.manifest import Manifest, ManifestEntry, NotedFiles
from tripod.projections.nova.tables import NOVA
from tripod.projections.peers.tables import PEERS
from tripod.projections.projection import TOGETHER, File, Op, Projection, Render, Source
from tripod.projections.pythia.tables import PYTHIA
from tripod.projections.sessions import SESSIONS
from tripod.projections.team.tables import COUNTS, FILES, REDACTIONS, TRUST
from tripod.projections.workers.tables import AGENTS, WORKERS

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

# Where an event was acknowledged onto the name of an unreadable file, the event is what stands
# there: so FILES is asked last of those that share folders; after WORKERS for the same reason.
PROJECTIONS: tuple[Projection, ...] = (
    LOG, CHAT, BUS, WORKERS, FILES, COUNTS, READING, REDACTIONS, TRUST, CLAIMS, AGENTS,
    PYTHIA, PEERS, SESSIONS, NOVA,
)  # fmt: skip

_SHARED: tuple[Projection, ...] = (LOG, CHAT, BUS, WORKERS, FILES)

OWN: tuple[Projection, ...] = tuple(
    one for one in PROJECTIONS if one not in _SHARED and type(one).paths is not Projection.paths
)
"""Those whose files we alone write: the intake reads nothing back from them."""

_SHOWN = tuple(one for one in PROJECTIONS if type(one).render is not Projection.render)
"""Those that have files."""
_NO_EVENTS = tuple(one for one in _SHOWN if one is not BUS)

TABLES: tuple[str, ...] = tuple(table for p in PROJECTIONS for table in p.tables)
BATCH = 1000

# Tables whose rows no fold ever deletes. An emptied one would make the next act decide wrongly.
_GUARDED = (
    *((table, "") for table in TABLES if table not in ("events", "files", "participants")),
    ("events", "WHEN OLD.acked IS NULL"),
)

_FOLDS = {
    kind: tuple(p.fold for p in PROJECTIONS if kind in p.kinds)
    for projection in PROJECTIONS
    for kind in projection.kinds
}

_TOUCHED = {kind: tuple(p.touched for p in PROJECTIONS if kind in p.kinds) for kind in _FOLDS}

_NAMES = ", ".join(f"'{table}'" for table in (*TABLES, "manifest", "folds"))
_VERSIONS = (
    "SELECT CASE WHEN (SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
    f" AND name IN ({_NAMES})) = {len(TABLES) + 2} THEN (SELECT versions FROM folds) END"
)
"""A view in the place of a table may never end: it is not asked."""

_NOT_FOLDED = (KeyError, TypeError, ValueError, AttributeError, RecursionError)

T = TypeVar("T")

Unfoldable = Callable[[Entry, Exception], None]
"""Told of an entry whose body has another shape than its kind says."""


def fold_versions() -> str:
    """Names and versions of all table projections; another text means: fold anew."""
    return " ".join(f"{p.name}:{p.version}" for p in PROJECTIONS)


def folded_before(text: object) -> bool:
    """Whether ``text`` is what ``fold_versions`` gave in an older version of this program.

    It names projections of ours in our order, none of a newer version. The next act folds such
    tables anew, and nothing of them is read until then.
    """
    if not isinstance(text, str) or text == fold_versions():
        return False
    ours = iter(PROJECTIONS)
    for word in text.split(" "):
        name, _, version = word.partition(":")
        newest = next((one.version for one in ours if one.name == name), 0)
        if version not in map(str, range(1, newest + 1)):
            return False
    return True


def create_tables(db: sqlite3.Connection) -> None:
    """Make the tables of all projections, empty."""
    for projection in PROJECTIONS:
        for statement in projection.ddl.split(";"):
            if statement.strip():
                db.execute(statement)
    for table, when in _GUARDED:
        db.execute(
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {when}"
            " BEGIN SELECT RAISE(ABORT, 'this table is folded from the entries: `tripod rebuild`"
            " folds it anew'); END"
        )
    db.execute(manifest.DDL)
    db.execute("CREATE TABLE IF NOT EXISTS folds (versions TEXT NOT NULL) STRICT")
    db.execute("DELETE FROM folds")
    db.execute("INSERT INTO folds VALUES (?)", (fold_versions(),))


def drop_tables(db: sqlite3.Connection) -> None:
    """Remove the tables of all projections, of any version, and views in their places."""
    for (view,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
        if view.lower() in {*TABLES, "manifest", "folds"}:
            quoted = view.replace('"', '""')
            db.execute(f'DROP VIEW "{quoted}"')
    for table in TABLES:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    for projection in PROJECTIONS:  # those of a table that another program renamed are still there
        for index in re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", projection.ddl):
            db.execute(f"DROP INDEX IF EXISTS {index}")


def tables_current(ledger: LedgerReader) -> bool:
    """Whether the tables are there, of this version, and folded up to the head."""
    db = ledger.tables
    try:
        if db.execute(_VERSIONS).fetchone()[0] != fold_versions():
            return False
        cursors = ledger.cursors()
    except sqlite3.OperationalError:
        return False
    return cursors.tables == cursors.size


def fold_into(
    db: sqlite3.Connection,
    entries: Sequence[Entry],
    blob: Blobs,
    unfoldable: Unfoldable | None = None,
) -> None:
    """Apply the row operations of ``entries``, in their order within each table.

    An entry of a peer is folded as what it keeps; ``blob`` gives that. With ``unfoldable`` an entry
    that cannot be folded is handed to it and skipped; without, the error is raised (nothing that we
    append ourselves can cause it).
    """
    ops: dict[str, list[Op]] = defaultdict(list)
    for each in entries:
        for op in fold_entry(each, blob, unfoldable):
            ops[op[0]].append(op)
    run_operations(db, ops, unfoldable)


def fold_entry(each: Entry, blob: Blobs, unfoldable: Unfoldable | None) -> Iterator[Op]:
    """The row operations of an entry; the rest as ``fold_into``."""
    # Of one of a peer the tables of peers are told, and the others see the inner entry.
    is_plain = each.kind != MERGED and not (each.kind == REDACTED and _erases_merged(each))
    for entry in (each,) if is_plain else _peer_entries(each, blob, unfoldable):
        for fold in _FOLDS.get(entry.kind, ()):
            try:
                for op in fold(entry):
                    hash(op[3])  # no list: rows are looked up by their names (TypeError)
                    yield op
            except _NOT_FOLDED as error:
                if unfoldable is None:
                    raise
                unfoldable(entry, error)


def run_operations(
    db: sqlite3.Connection, ops: Mapping[str, list[Op]], unfoldable: Unfoldable | None
) -> None:
    """Apply operations, listed by their tables, in the order within each; as ``fold_into``."""
    for listed in filter(None, ops.values()):
        sql = listed[0][1]
        if len(listed) == 1 and unfoldable is None:
            db.execute(sql, listed[0][2])
        elif all(op[1] is sql for op in listed):
            _run(db, sql, [op[2] for op in listed], unfoldable)
        else:
            for lane, rows in group_operations(listed):
                _run(db, lane, rows, unfoldable)


def _erases_merged(entry: Entry) -> bool:
    return entry.data.get("kind") == MERGED


def _peer_entries(entry: Entry, blob: Blobs, unfoldable: Unfoldable | None) -> Iterator[Entry]:
    """What is folded of an entry of a peer: it itself, and the inner one where that is shared.

    What erased one names the inner one.
    """
    from tripod.ledger.kinds.merged import erased_view, inner_entry  # only where peers are

    if entry.kind == MERGED:
        yield entry
    try:
        inner = inner_entry(entry, blob)
        if entry.kind == REDACTED:
            kind, keep = erased_view(entry.data["keep"])
            yield entry._replace(data=entry.data | {"kind": kind, "keep": keep}) if kind else entry
    except (*_NOT_FOLDED, LedgerError) as error:
        if unfoldable is None:
            raise
        unfoldable(entry, error)
        return
    if inner is not entry:
        yield inner


def group_operations(ops: Iterable[Op]) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """Put equal statements of one table together, as far as that changes no row.

    An operation may move in front of others that concern other rows. Without this, a batch in which
    events come and go is as many statements as events.
    """
    lanes: list[tuple[str, list[tuple[Any, ...]]]] = []
    newest: dict[str, int] = {}  # of each statement
    touched: dict[str, int] = {}  # the last lane that concerns a row
    first = 0  # nothing may move in front of this lane
    for _, sql, values, row in ops:
        number = newest.get(sql, -1)
        last = len(lanes) - 1 if row is None else touched.get(row, 0)
        if number < max(first, last):
            number = newest[sql] = len(lanes)
            lanes.append((sql, []))
        lanes[number][1].append(values)
        if row is None:
            first = number
        else:
            touched[row] = number
    return lanes


def _run(
    db: sqlite3.Connection, sql: str, rows: list[tuple[Any, ...]], unfoldable: Unfoldable | None
) -> None:
    """One statement for many rows. Judging damaged evidence, a refused row spares the others."""
    if unfoldable is None:
        db.executemany(sql, rows)
        return
    db.execute("SAVEPOINT run")
    try:
        db.executemany(sql, rows)
    except (sqlite3.Error, OverflowError):
        db.execute("ROLLBACK TO run")
        for row in rows:
            try:
                db.execute(sql, row)
            except (sqlite3.Error, OverflowError):
                continue  # its entry has a body of another shape: `kinds-known` names it
    db.execute("RELEASE run")


@contextmanager
def bulk_fold(db: sqlite3.Connection) -> Iterator[None]:
    """For as long as a whole ledger is folded, do without the indexes that only commands need."""
    indexes = db.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'events'"
        " AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    db.execute(BUS.bulk_index)
    yield
    db.execute("DROP INDEX events_bulk")
    for _, sql in indexes:
        db.execute(sql)


def refold(transaction: Transaction, entries: Iterable[Entry]) -> None:
    """Fold all entries of the ledger into fresh tables, inside the caller's transaction.

    What was known of the files is forgotten: it was noted when they agreed with other tables.
    """
    db = transaction.tables
    drop_tables(db)
    create_tables(db)
    db.execute("DELETE FROM manifest")
    entries = tell_over(entries, "folding entries", transaction.size)
    with bulk_fold(db):
        for batch in fold_batches(entries, BATCH):
            fold_into(db, batch, transaction.blob)
    transaction.tables_folded()


def fold_batches(entries: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut entries into lists of at most ``size``."""
    rest = iter(entries)
    while batch := list(islice(rest, size)):
        yield batch


def source_of(ledger: LedgerReader) -> Source:
    """Serve renders from a ledger and its own tables."""

    def body(seq: int) -> dict[str, Any]:
        found = next(ledger.raw(seq, seq + 1), None)
        if found is None:
            raise LedgerDamagedError(f"entry {seq} is missing: see `tripod verify`")
        if (newest := _newest(found)) is not None:
            return newest
        if found.salt is None and found.body is None:
            erased = ledger.entry(seq)
            if erased is None or not erased.data:
                wrong = f"entry {seq} lost its body, and no entry says why"
                raise LedgerDamagedError(f"{wrong}: see `tripod verify`")
            return _inner_data(found, erased.data)
        # What goes into a file must be what was committed to: a false body is not spread.
        if not _is_committed(found):
            wrong = f"entry {seq} has a body that it did not commit to"
            raise LedgerDamagedError(f"{wrong}: see `tripod verify`")
        return _inner_data(found, codec.loads(found.body or b""))

    def _inner_data(found: RawEntry, data: dict[str, Any]) -> dict[str, Any]:
        return data if found.kind != MERGED else inner_data(found, data, ledger.blob)

    def bodies(seqs: Sequence[int]) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        for one in ledger.raw_of(seqs):
            if (newest := _newest(one)) is not None:
                found[one.seq] = newest
            elif one.body is not None and _is_committed(one):
                found[one.seq] = _inner_data(one, codec.loads(one.body))
        return found

    def blob(digest: str) -> bytes:
        found = ledger.blob(bytes.fromhex(digest))
        if found is None:
            raise LedgerDamagedError(f"blob {digest[:12]}… is missing: see `tripod verify`")
        return found

    return Source(ledger.tables, body, blob, bodies, ledger)


def _newest(found: RawEntry) -> dict[str, Any] | None:
    """What an entry of a peer keeps, where a merge appended it just now and holds it still."""
    if found.kind != MERGED:
        return None
    from tripod.ledger.kinds.merged import newest_inner

    newest = newest_inner(found.seq, found.header, found.body)
    return None if newest is None else newest.data


def inner_data(found: RawEntry, data: dict[str, Any], blob: Blobs) -> dict[str, Any]:
    """The data of an entry of a peer as tables and files see them (LedgerDamagedError)."""
    entry = Entry(*found[:4], "", "", *found[4:7], data, found.auth)
    return next(seen_entries((entry,), blob)).data


def seen_entries(entries: Iterable[Entry], blob: Blobs) -> Iterator[Entry]:
    """Entries as tables and files see them: of those of peers the inner ones.

    Raises LedgerDamagedError where one that is kept cannot be read.
    """
    for entry in entries:
        if entry.kind != MERGED:
            yield entry
            continue
        from tripod.ledger.kinds.merged import inner_entry

        try:
            yield inner_entry(entry, blob)
        except (*_NOT_FOLDED, LedgerError) as error:
            wrong = f"entry {entry.seq} keeps an entry of a peer that cannot be read: {error}"
            raise LedgerDamagedError(f"{wrong}; see `tripod verify`") from error


def _is_committed(found: RawEntry) -> bool:
    """Whether a body is the one that the entry's header commits to."""
    said = commit_body(found.salt or b"", found.kind, found.body or b"")
    return bool(said == codec.loads(found.header)["body"])


def recorded(ledger: LedgerReader) -> dict[str, str]:
    """Where the entries say that events and chats are (ValueError: not in words of ours)."""
    first = next(ledger.raw(0, 1), None)
    if first is None:
        return {}
    body = _body(first.body)
    events, chat = body.get(EVENTS), body.get(CHATS)
    if not isinstance(events, str) or not isinstance(chat, str):
        raise ValueError("entry 0 does not say where the events and the chats are")  # noqa: TRY004 - it is the value in the ledger that is wrong
    problem = places_problem(events, chat)
    if problem is not None:
        raise ValueError(f"entry 0: {problem}")
    places = {EVENTS: events, CHATS: chat}
    # By their ids: what is read here costs nothing in a ledger of a million entries.
    for added in ledger.raw_by_id(*PLACE_IDS):
        if added.kind != "place.added":
            continue
        seq, body = added.seq, _body(added.body)
        holds, name, path = (body.get(key) for key in ("holds", "name", "path"))
        if not (isinstance(holds, str) and isinstance(name, str) and isinstance(path, str)):
            raise ValueError(f"entry {seq} does not say which folder was added")  # noqa: TRY004 - as above
        problem = added_place_problem(holds, name, path)
        if problem is not None:
            raise ValueError(f"entry {seq}: {problem}")
        places[f"{holds}/{name}"] = path
    return places


def _body(data: bytes | None) -> dict[str, object]:
    """A decoded body; empty if it is not one, or erased."""
    try:
        body = codec.loads(data or b"")
    except (ValueError, TypeError):
        return {}
    return body if isinstance(body, dict) else {}


READ_LIMIT = 256 * 1024 * 1024


class Difference(NamedTuple):
    """A projected file that is not as the ledger has it; ``have`` is None where it is missing."""

    path: str
    want: File
    have: bytes | None
    mode: int | None


def desired_file(source: Source, path: str, among: Sequence[Projection] = _SHOWN) -> File | None:
    """What stands at ``path`` according to the ledger, None where nothing of ours does."""
    for projection in among:
        file = projection.render(source, path)
        if file is not None:
            return file
    return None


def desired_files(source: Source, paths: Sequence[str]) -> Iterator[tuple[str, File]]:
    """What stands at those of these paths at which something of ours does."""
    for start in range(0, len(paths), TOGETHER):
        part = paths[start : start + TOGETHER]
        events = BUS.render_many(source, part)
        for path in part:
            file = events.get(path) or desired_file(source, path, _NO_EVENTS)
            if file is not None:
                yield path, file


def past_file(source: Source, stream: str, before: int, path: str) -> File | None:
    """What stood at ``path`` as of the entry ``before``, where one stream decides that."""
    with closing(sqlite3.connect("", isolation_level=None)) as db:
        db.execute("BEGIN")
        create_tables(db)
        entries = source.ledger.read(0, min(before, source.ledger.size), stream=stream)
        for batch in fold_batches(entries, BATCH):
            fold_into(db, batch, source.ledger.blob)
        return desired_file(source._replace(db=db), path)


def file_renders(source: Source, *, queue: bool = True) -> Iterator[tuple[str, Render]]:
    """Every projected path with what renders it now; without the event files if not ``queue``.

    The queue is tens of thousands of small files: it fetches what it needs for many at once.
    """
    for projection in PROJECTIONS:
        if projection is BUS and queue:
            yield from BUS.renders(source)
        for path in () if projection is BUS else projection.paths(source):
            # An event's file goes before a kept one.
            yield path, partial(desired_file, source, path)


def touched_files(entries: Iterable[Entry], source: Source) -> dict[str, None]:
    """Paths that entries may have changed, in order: of an acknowledged event both places."""
    paths: dict[str, None] = {}
    for entry in seen_entries(entries, source.ledger.blob):
        if entry.kind == "bus.acked-all":
            for name in BUS.moved_by(source, entry.seq):
                paths[f"{BUS.folder}/{name}"] = paths[f"{BUS.folder}/processed/{name}"] = None
        if entry.kind == REDACTED:
            from tripod.projections.erasure import erasure_places

            erased = erasure_places(source, entry.data["kind"], entry.data["keep"])
            paths.update((path, None) for path in erased if desired_file(source, path) is not None)
        for touched in _TOUCHED.get(entry.kind, ()):
            paths.update(dict.fromkeys(touched(entry)))
    return paths


def own_files(source: Source) -> Iterator[tuple[str, Render]]:
    """Every path that we alone write, with what renders it."""
    for projection in OWN:
        for path in projection.paths(source):
            yield path, partial(projection.render, source, path)


def compare(disk: Disk, path: str, want: File) -> Difference | None:
    """Hold one file against what it should be."""
    try:
        found = disk.look(path, max(READ_LIMIT, len(want.data)))
    except UnreadableError:
        stat = disk.stat(path)
        return Difference(path, want, b"", None if stat is None else stat.mode)
    if found is None:
        return Difference(path, want, None, None)
    have, mode = found[0], found[1].mode
    return None if (have, mode) == want else Difference(path, want, have, mode)


def agreed_chats(source: Source, disk: Disk, spared: tuple[type[Exception], ...] = ()) -> Manifest:
    """Chat files that are as the ledger renders them: nothing was added, nothing is to be found.

    They are most of what a team wrote; looked at here, they are not rendered again by the intake or
    by a comparison. One that cannot be rendered for an error of ``spared`` is left out.
    """
    known: Manifest = {}
    errors: tuple[type[Exception], ...] = (*spared, UnreadableError)
    for path in CHAT.paths(source):
        try:
            want = CHAT.render(source, path)
            found = None if want is None else disk.look(path, len(want.data))
        except errors:
            continue
        if found is not None and (found[0], found[1].mode) == want:
            have, stat = found
            known[path] = ManifestEntry(stat, sha256(have).hexdigest(), stat.mtime_ns + RACY_NS + 1)
    return known


def file_differences(
    source: Source, disk: Disk, *, evidence: bool = False, agreed: Collection[str] = ()
) -> Iterator[Difference]:
    """Every projected file that differs, but for the ``agreed``; kept evidence too, if asked."""
    kept = FILES.evidence(source) if evidence else ()
    others: Iterable[tuple[str, Render]] = (
        (path, partial(desired_file, source, path)) for path in kept
    )
    for path, render in tell_over(chain(file_renders(source), others), "comparing files"):
        want = None if path in agreed else render()
        difference = None if want is None else compare(disk, path, want)
        if difference is not None:
            yield difference


def restore(disk: Disk, found: Iterable[Difference]) -> int:
    """Write what differs; give the number of files written."""
    count = 0
    for path, want, have, _ in found:
        if have == want.data:
            disk.set_mode(path, want.mode)
        else:
            disk.write(path, want)
        count += 1
    return count


def files_ahead_of(ledger: LedgerReader | None, disk: Disk) -> str | None:
    """Say which entry the files show that the ledger (None: no ledger) does not hold."""
    counted = manifest.counted_entry(disk)
    if counted is None:
        return None
    seq, entry_id = counted
    if ledger is not None and ledger.seq_of(entry_id) == seq:
        return None
    where = "there is no ledger here" if ledger is None else "this ledger does not hold it"
    return f"{COUNTS.path} counts entry {seq} ({entry_id}), and {where}"


# Quiet ------------------------------------------------------------------------------------------


_QUIET_LIMIT = 64 * layout.MIB


class Looked:
    """What a quick look read, beside the stats that settled the rest.

    ``agreed``: files and folders whose stat did not settle it, and that are as they were: noted
    anew, it will. ``hashes``: of such files, the hash of all their bytes, to be continued.
    ``uncounted``: the queue's folders that nothing but a count would settle; a ``hasty`` look
    leaves them to the next that counts.
    """

    def __init__(self, *, hasty: bool = False) -> None:
        self.hasty = hasty
        self.agreed: Manifest = {}
        self.hashes: dict[str, Hash] = {}
        self.uncounted: list[str] = []


def files_are_quiet(
    db: sqlite3.Connection, disk: Disk, known: NotedFiles, looked: Looked | None = None
) -> bool:
    """Whether all that is watched looks as it did when it last agreed with the ledger.

    A few stats answer it, without parsing; it errs towards looking, which is the intake's work.
    An archive never changes: that one came or went is noticed here, and what stands in it is
    looked at by the intake. ``looked`` collects what was read besides.
    """
    looked = looked or Looked()
    queues = disk.places.queue_folders()
    for folder in queues:
        stat, noted = disk.stat(folder), known.get(folder)
        if stat is None and noted is None:
            continue
        if stat is None or noted is None or noted.stat != stat:
            return False
        if noted.settles(stat):
            continue
        if looked.hasty:
            looked.uncounted.append(folder)
        elif _counted(db, disk, folder):
            looked.agreed[folder] = noted
        else:
            return False
    listed = manifest.listed_folders(disk)
    for folder in listed:
        stat, noted = disk.stat(folder), known.get(folder)
        if stat is not None and noted is not None and noted.settles(stat):
            continue
        if known.in_folder(folder) != set(manifest.listed_paths(db, disk, folder)):
            return False
        if stat is not None:
            looked.agreed[folder] = ManifestEntry(stat, "", 0)
    folders = {*queues, *listed}
    return all(
        path in folders or _file_quiet(disk, known.get(path), looked, path)
        for path in known.watched()
    )


def _file_quiet(disk: Disk, noted: ManifestEntry | None, looked: Looked, path: str) -> bool:
    stat = disk.stat(path)
    if stat is None or noted is None:
        # Every team has counts. An event whose file contradicts the ledger is not noted.
        is_free = path != COUNTS.path and stat is None
        return noted is None and (is_free or path.endswith(".event"))
    if noted.settles(stat):
        return True
    if stat.size != noted.stat.size or stat.mode != noted.stat.mode or stat.size > _QUIET_LIMIT:
        return False
    try:
        data = disk.read(path, _QUIET_LIMIT)
    except UnreadableError:
        return False
    hashed = sha256(data or b"")
    looked.agreed[path], looked.hashes[path] = noted._replace(stat=stat), hashed
    return data is not None and hashed.hexdigest() == noted.digest


def _counted(db: sqlite3.Connection, disk: Disk, folder: str) -> bool:
    """Whether as many event files stand in a folder as the ledger has there.

    A foreign file that came and another that went within one tick of the file clock escape this
    look; the next command that finds the folder changed sees them, and ``sync`` and ``verify`` do.
    """
    where, values = in_folder(folder, alone=not disk.places.added)
    (expected,) = db.execute(f"SELECT count(*) FROM events WHERE {where}", values).fetchone()
    sql = "SELECT count(*) FROM files WHERE class = 'seen' AND path LIKE ? AND path NOT LIKE ?"
    (unread,) = db.execute(sql, (f"{folder}/%", f"{folder}/%/%")).fetchone()
    return bool(disk.count(folder, ".event") == expected + unread)
