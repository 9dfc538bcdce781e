"""Folds the evidence into tables in memory: the entries, then new bytes of files.

The tables of the ledger's own database are compared with these, and are no source of them. Beside
the fold of a large ledger, queue and chats are compared with the ledger's own tables. That counts
only if the tables turn out to equal the fold, over the same head.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache, partial
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

from tripod import projections
from tripod.ledger import Draft, Entry, tell_over
from tripod.ledger.ids import format_at
from tripod.ledger.kinds.trust import ACCEPTED, REVOKED
from tripod.ledger.sqlite.reader import read_only
from tripod.ledger.store import Cursors
from tripod.projections.bus.intake import is_event_deletion
from tripod.projections.intake import take_in
from tripod.projections.layout import CONFIG
from tripod.projections.manifest import Shown
from tripod.projections.pieces import Remnant
from tripod.projections.projection import Source
from tripod.projections.remnants import find_remnants
from tripod.verify.advice import may_need_advice
from tripod.verify.anchors.growth import shared_start
from tripod.verify.check import OLDER, Folded
from tripod.verify.rows import (
    ACTOR_AND_TIME,
    RENDER_ERRORS,
    RowReader,
    Schema,
    head_row,
    index_fault,
    one_row,
    read_row,
    readable_rows,
    schema_rows,
    source_over_rows,
)
from tripod.verify.scan.shortcut import Noted, Ops, Shortcut


class Compared(NamedTuple):
    """What agreed with the ledger's own tables, read beside the head row ``head``.

    ``chats`` are the files of chats that agree, ``queue`` says whether every event file does.
    """

    head: tuple[object, ...]
    chats: projections.Manifest
    queue: bool


def fold_own(path: str, disk: projections.Disk) -> Compared | None:
    """Look at the files of a team; None where its ledger's tables cannot be asked."""
    try:
        db = read_only(path)
        db.execute("PRAGMA cache_size=-256")  # each page is asked for once
        db.execute("BEGIN")
        source = source_over_rows(db, db, {}, {})
        chats = projections.agreed_chats(source, disk, RENDER_ERRORS)
        files = ((at, render()) for at, render in projections.BUS.renders(source))
        queue = all(
            want is not None and projections.compare(disk, at, want) is None for at, want in files
        )
        return Compared((head_row(db) or ())[:2], chats, queue)
    except (*RENDER_ERRORS, OSError):
        return None


BATCH = 1000
SETTLING = (ACCEPTED.name, REVOKED.name)
"""Kinds of entries that say of findings whether they are accepted."""
_NOTED = ("spoken", "decisive", "asked", "configured", "displaced", "deleted", "settling")


@cache
def _empty_tables() -> bytes:
    """The tables of all folds: bytes, which threads and forks may share, as no connection is."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        projections.create_tables(db)
        for table in _NOTED:
            db.execute(f"CREATE TABLE {table} (seq INTEGER PRIMARY KEY) STRICT")
        db.execute("CREATE TABLE handed (seq INTEGER PRIMARY KEY, spawn TEXT) STRICT")
        return db.serialize()


def fold_evidence(
    db: sqlite3.Connection | None,
    disk: projections.Disk | None,
    beside: Callable[[], Compared | None],
    *,
    derived: bool,
) -> Folded:
    """Fold the ledger's entries, compare its tables, and add what the team's files show.

    ``derived``: the database has tables of its own; ``beside`` gives what was compared with them.
    OSError: a file of the team cannot be read.
    """
    scratch = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode=MEMORY", "synchronous=OFF", "cache_size=-8192"):
        scratch.execute(f"PRAGMA {pragma}")
    with closing(sqlite3.connect(":memory:")) as made:
        made.deserialize(_empty_tables())
        made.backup(scratch)
    drafts: dict[int, Draft] = {}
    blobs: dict[str, bytes] = {}
    folded = Folded(
        source_over_rows(scratch, db, drafts, blobs), 0, None, projections.Found(), drafts=drafts
    )
    if db is not None:
        folded.size = RowReader(db).size
        with projections.bulk_fold(scratch):
            _fold_rows(folded, db)
        adopted = one_row(scratch, "SELECT adopted FROM team")
        folded.adopted = adopted[0] if adopted else None
        folded.tables = list(_table_faults(db, scratch)) if derived else []
    if disk is not None:
        for path, render in projections.own_files(folded.source):
            with suppress(*RENDER_ERRORS):
                file = render()
                folded.own |= {} if file is None else {path: file}
        own = derived and not folded.tables and not folded.unfolded
        compared = beside() if own else None
        if compared is not None and db is not None and compared.head != (head_row(db) or ())[:2]:
            compared = None
        _add_files(folded, disk, db, blobs, compared)
    return folded


def _fold_rows(folded: Folded, db: sqlite3.Connection) -> None:
    """Fold the rows of the ledger; the common ones by their bytes."""
    fold, shortcut = _Fold(folded), Shortcut(ACTOR_AND_TIME, note_message)
    rows = tell_over(readable_rows(db), "folding entries", folded.size)
    for batch in projections.fold_batches(rows, BATCH):
        for row in batch:
            if not shortcut.take(row, fold.ops, fold.noted):
                entry = read_row(db, row)
                for op in () if entry is None else fold.operations(entry):
                    shortcut.add(op, fold.ops)
        shortcut.settle(fold.ops)
        fold.write()
    shortcut.finish(fold.ops)
    fold.write()


def _fold_drafts(folded: Folded, entries: Iterable[Entry]) -> None:
    """Fold what was found in files, as entries."""
    fold = _Fold(folded)
    for batch in projections.fold_batches(entries, BATCH):
        for entry in batch:
            for op in fold.operations(entry):
                fold.ops[op[0]].append(op)
        fold.write()


class _Fold:
    """What is to be written of a batch: operations by their tables, and what checks ask for."""

    def __init__(self, folded: Folded) -> None:
        self.folded = folded
        self.ops: Ops = defaultdict(list)
        self.noted: Noted = defaultdict(list)

    def operations(self, entry: Entry) -> Iterator[Any]:
        """The row operations of an entry, which is noted; one that cannot be folded is counted."""
        note_entry(entry, self.noted)
        return projections.fold_entry(entry, self._blob, self._unfoldable)

    def write(self) -> None:
        """Write the batch, and begin another."""
        db = self.folded.source.db
        db.execute("BEGIN")
        projections.run_operations(db, self.ops, self._unfoldable)
        for table, rows in self.noted.items():
            db.executemany(
                f"INSERT OR IGNORE INTO {table} VALUES (?{', ?' * (len(rows[0]) - 1)})", rows
            )
        db.execute("COMMIT")
        self.ops.clear()
        self.noted.clear()

    def _unfoldable(self, _entry: Entry, _error: Exception) -> None:
        self.folded.unfolded += 1

    def _blob(self, digest: bytes) -> bytes | None:
        with suppress(*RENDER_ERRORS):
            return self.folded.source.blob(digest.hex())
        return None


def note_message(seq: int, body: bytes, text: str, noted: Noted) -> None:
    """Note a message, as ``note_entry``."""
    low = body.lower()
    if b"pythia checkpoint" in low or b'"sha256"' in low or not body:
        noted["spoken"].append((seq,))
    if may_need_advice(text):
        noted["decisive"].append((seq,))


def note_entry(entry: Entry, noted: Noted) -> None:
    """Note what is rare among the many, for the checks that ask for it."""
    kind, seq = entry.kind, (entry.seq,)
    if kind == "chat.sent":
        text = entry.data.get("text")
        said = str(text.get("text", "")) if isinstance(text, dict) else ""
        # A damaged row may have a body of any type.
        note_message(entry.seq, entry.body if type(entry.body) is bytes else b"", said, noted)
    elif kind == "bus.published" and entry.data.get("type") == "pythia-checkpoint":
        noted["asked"].append(seq)
    elif kind == "config.changed" and entry.data.get("path") == CONFIG.path:
        noted["configured"].append(seq)
    elif kind == "bus.acked" and is_event_deletion(entry.data):
        noted["deleted"].append(seq)
    elif kind in SETTLING:
        noted["settling"].append(seq)
    elif kind == "file.displaced":
        noted["displaced"].append(seq)
    elif kind == "delivered":
        noted["handed"].append((entry.seq, str(entry.data.get("spawn"))))


def _add_files(
    folded: Folded,
    disk: projections.Disk,
    db: sqlite3.Connection | None,
    blobs: dict[str, bytes],
    compared: Compared | None,
) -> None:
    """Judge unsynced foreign bytes as if they had been taken in; what contradicts is kept apart."""

    def broken(part: str, error: Exception) -> None:
        folded.unread.append((part, f"{type(error).__name__}: {error}"))

    head = None if db is None else head_row(db)
    cursors = Cursors(0, 0, 2**62) if head is None else head.cursors
    folded.remnants = _remnants(folded.source, disk, cursors)
    try:
        noted = {} if db is None else projections.load(db)
    except sqlite3.Error:
        noted = {}
    # What the queues' folders were when they were last noted decides what a deletion is.
    queues = {path: noted[path] for path in disk.places.queue_folders() if path in noted}
    known: projections.Manifest = {} if compared is None else compared.chats
    if db is not None and compared is None:
        known = projections.agreed_chats(folded.source, disk, RENDER_ERRORS)
    look = folded.found = take_in(
        folded.source,
        disk,
        known | queues,
        full=True,
        shown=Shown(cursors.files, folded.size, cursors.noted if cursors.anew else 0),
        restored=_restored(folded, cursors.files),
        remnants=folded.remnants,
        broken=broken,
    )
    # What was added to a chat is compared once it is folded.
    folded.agreed = known.keys() - {projections.CHAT.live(p.draft.stream) for p in look.pieces}
    numbers = count(folded.size)
    # They have no time yet; that of the newest entry is the earliest that they can get.
    at = head.at if head is not None and type(head.at) is str else format_at(0)

    def entries() -> Iterator[Entry]:
        for draft in look.pieces.in_order():
            if db is not None and RowReader(db).seq_of(draft.id or "") is not None:
                continue  # taking in this very piece again would append nothing
            seq = next(numbers)
            folded.drafts[seq] = draft
            blobs.update((sha256(blob).hexdigest(), blob) for blob in draft.blobs)
            yield Entry(
                seq, draft.id or "", draft.kind, draft.stream, draft.actor, at,
                b"", None, None, draft.body,
            )  # fmt: skip

    _fold_drafts(folded, entries())
    moved = any(draft.kind in projections.BUS.kinds for draft in folded.drafts.values())
    folded.queue_agrees = compared is not None and compared.queue and not moved


def _remnants(source: Source, disk: projections.Disk, cursors: Cursors) -> dict[str, Remnant]:
    """What a power cut left of files; of a damaged ledger none is known."""
    with suppress(*RENDER_ERRORS, OSError):
        if cursors.may_be_cut:
            return find_remnants(source, disk, cursors.synced, cursors.noted)
    return {}


def _restored(folded: Folded, files: int) -> frozenset[str]:
    """Files, or folders, that entries which the files do not show say to be written again."""
    found = set()
    sql = "SELECT seq FROM displaced WHERE seq >= ?"
    for (seq,) in folded.source.db.execute(sql, (files,)).fetchall():
        with suppress(*RENDER_ERRORS):
            body = folded.source.body(seq)
            found.update([str(body["path"])] if "content" not in body else [])
    return frozenset(found)


def _table_faults(db: sqlite3.Connection, scratch: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Each table of the ledger's database that differs from the fold, and its first such row."""
    found: list[Any]
    try:
        found = _query(db, "folds", ("versions",), ("versions",)).fetchmany(3)
    except sqlite3.Error as error:
        found = [str(error)]
    if len(found) == 1 and projections.folded_before(found[0][0]):
        yield "folds", OLDER
        return
    if found != [(projections.fold_versions(),)]:
        yield (
            "folds",
            f"they were folded as {found!r}, this version folds {projections.fold_versions()!r}",
        )
    schema = cache(partial(schema_rows, db))
    for table in projections.TABLES:
        info = scratch.execute(f"PRAGMA table_info({table})").fetchall()
        columns = tuple(row[1] for row in info)
        keys = tuple(row[1] for row in sorted(info, key=lambda row: row[5]) if row[5])
        fault = _first_difference(db, scratch, table, columns, keys, schema=schema)
        if fault is not None:
            yield table, fault


def _first_difference(
    db: sqlite3.Connection,
    scratch: sqlite3.Connection,
    table: str,
    columns: tuple[str, ...],
    keys: tuple[str, ...],
    *,
    schema: Callable[[], Schema],
) -> str | None:
    try:
        ours, theirs = (_query(side, table, columns, keys) for side in (scratch, db))
        while True:
            want, have = ours.fetchmany(BATCH), theirs.fetchmany(BATCH)
            if want != have:
                break
            if not want:
                return index_fault(db, table, schema())
    except sqlite3.Error as error:
        return f"it cannot be read: {error}"
    at = shared_start(want, have)
    if at >= len(have):
        return f"the row {_shown(columns, want[at])} is missing"
    if at >= len(want):
        return f"the row {_shown(columns, have[at])} comes from no entry"
    pairs = zip(columns, want[at], have[at], strict=True)
    wrong = ", ".join(f"{name} is {b!r}, folded {a!r}" for name, a, b in pairs if a != b)
    key = ", ".join(f"{name} {value!r}" for name, value in zip(columns, want[at], strict=True)
                    if name in keys)  # fmt: skip
    return f"in the row of {key}: {wrong}"


def _query(
    db: sqlite3.Connection, table: str, columns: tuple[str, ...], keys: tuple[str, ...]
) -> sqlite3.Cursor:
    return db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(keys)}")


def _shown(columns: tuple[str, ...], row: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in zip(columns, row, strict=True))
