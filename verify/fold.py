"""Folds the evidence into tables in memory: the entries, then new bytes of files.

The tables of the ledger's own database are compared with these, and are no source of them. Beside
the fold of a large ledger, queue and chats are compared with the ledger's own tables. That counts
only if the tables turn out to equal the fold, over the same head.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

from tripod import projections
from tripod.ledger import Draft, Entry, tell_over
from tripod.ledger.ids import format_at
from tripod.ledger.kinds.trust import ACCEPTED, REVOKED
from tripod.ledger.sqlite.reader import read_only
from tripod.projections.bus.intake import is_event_deletion
from tripod.projections.intake import take_in
from tripod.projections.layout import CONFIG
from tripod.verify.advice import may_need_advice
from tripod.verify.anchors.growth import shared_start
from tripod.verify.check import OLDER, Folded
from tripod.verify.rows import (
    RENDER_ERRORS,
    RowReader,
    entries_of_rows,
    head_row,
    index_fault,
    one_row,
    source_over_rows,
)


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
    projections.create_tables(scratch)
    for table in _NOTED:
        scratch.execute(f"CREATE TABLE {table} (seq INTEGER PRIMARY KEY) STRICT")
    scratch.execute("CREATE TABLE handed (seq INTEGER PRIMARY KEY, spawn TEXT) STRICT")
    drafts: dict[int, Draft] = {}
    blobs: dict[str, bytes] = {}
    folded = Folded(
        source_over_rows(scratch, db, drafts, blobs), 0, None, projections.Found(), drafts=drafts
    )
    if db is not None:
        folded.size = RowReader(db).size
        with projections.bulk_fold(scratch):
            _fold(folded, tell_over(entries_of_rows(db), "folding entries", folded.size))
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


def _fold(folded: Folded, entries: Iterable[Entry]) -> None:
    db = folded.source.db

    def unfoldable(_entry: Entry, _error: Exception) -> None:
        folded.unfolded += 1

    def blob(digest: bytes) -> bytes | None:
        with suppress(*RENDER_ERRORS):
            return folded.source.blob(digest.hex())
        return None

    for batch in projections.fold_batches(entries, BATCH):
        db.execute("BEGIN")
        projections.fold_into(db, batch, blob, unfoldable)
        _mark(db, batch)
        db.execute("COMMIT")


def _mark(db: sqlite3.Connection, batch: list[Entry]) -> None:
    """Note what is rare among the many, for the checks that ask for it."""
    noted: dict[str, list[tuple[int]]] = {table: [] for table in _NOTED}
    handed: list[tuple[int, str]] = []
    for entry in batch:
        if entry.kind == "chat.sent":
            body = (entry.body or b"").lower()
            if b"pythia checkpoint" in body or b'"sha256"' in body or not body:
                noted["spoken"].append((entry.seq,))
            text = entry.data.get("text")
            if isinstance(text, dict) and may_need_advice(str(text.get("text", ""))):
                noted["decisive"].append((entry.seq,))
        elif entry.kind == "bus.published" and entry.data.get("type") == "pythia-checkpoint":
            noted["asked"].append((entry.seq,))
        elif entry.kind == "config.changed" and entry.data.get("path") == CONFIG.path:
            noted["configured"].append((entry.seq,))
        elif entry.kind == "bus.acked" and is_event_deletion(entry.data):
            noted["deleted"].append((entry.seq,))
        elif entry.kind in SETTLING:
            noted["settling"].append((entry.seq,))
        elif entry.kind == "file.displaced":
            noted["displaced"].append((entry.seq,))
        elif entry.kind == "delivered":
            handed.append((entry.seq, str(entry.data.get("spawn"))))
    for table, seqs in noted.items():
        db.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?)", seqs)
    db.executemany("INSERT OR IGNORE INTO handed VALUES (?, ?)", handed)


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
    files = head.files if head is not None and type(head.files) is int else 2**62
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
        files=files,
        size=folded.size,
        restored=_restored(folded, files),
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

    _fold(folded, entries())
    moved = any(draft.kind in projections.BUS.kinds for draft in folded.drafts.values())
    folded.queue_agrees = compared is not None and compared.queue and not moved


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
    for table in projections.TABLES:
        info = scratch.execute(f"PRAGMA table_info({table})").fetchall()
        columns = tuple(row[1] for row in info)
        keys = tuple(row[1] for row in sorted(info, key=lambda row: row[5]) if row[5])
        fault = _first_difference(db, scratch, table, columns, keys)
        if fault is not None:
            yield table, fault


def _first_difference(
    db: sqlite3.Connection,
    scratch: sqlite3.Connection,
    table: str,
    columns: tuple[str, ...],
    keys: tuple[str, ...],
) -> str | None:
    try:
        ours, theirs = (_query(side, table, columns, keys) for side in (scratch, db))
        while True:
            want, have = ours.fetchmany(BATCH), theirs.fetchmany(BATCH)
            if want != have:
                break
            if not want:
                return index_fault(db, table)
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
