"""Intake of the event queue: new files, files moved to ``processed/``, pruned files.

The original tools, and people with a shell, delete files to tidy a queue: such a file does not come
back (ADR 0012). If more than events may be gone, the events were not deleted on purpose, and they
are written again. The time of an observed acknowledgement is unknown and stays so.

Source: spec nbs-compat B2, B4, B7; design, "Foreign writes".
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tripod.ledger import EVENTS, PROCESSED, Draft, parse_entry_time
from tripod.ledger.kinds.bus import ACKED, PRUNED, PUBLISHED
from tripod.ledger.kinds.team import FILE_SEEN
from tripod.projections import pieces
from tripod.projections.bus import format as bus_format
from tripod.projections.bus.format import Event, event_name_us
from tripod.projections.bus.tables import (
    IS_DONE,
    IS_OURS,
    IS_PENDING,
    events_in_queue,
    render_event,
)
from tripod.projections.disk import is_text
from tripod.projections.layout import config_of
from tripod.projections.manifest import ManifestReader, counted_entry
from tripod.projections.spill import Spill
from tripod.projections.state import is_checked_out
from tripod.projections.team.tables import redacted_rows_at

LONGEST_WORDS = 4096  # the original's limit is 127 bytes each; they also stand in the header
DONE = f"{EVENTS}/{PROCESSED}"


def take_events(reader: ManifestReader) -> None:
    """Compare the two folders of each queue with the table of events."""
    unmoved = set()  # their entries' writer died before it wrote their files
    if reader.shown.is_behind:
        sql = "SELECT name FROM events WHERE seq >= ?1 OR acked >= ?1"
        unmoved = {name for (name,) in reader.source.db.execute(sql, (reader.shown.files,))}
    for queue in reader.disk.places.queues():
        _take_queue(reader, queue, {n for n in unmoved if n[: n.rfind("/") + 1] == queue})


def _folders(queue: str) -> tuple[str, str]:
    """The two folders of a queue ('' the team's own, else ``<name>/``), as paths of the team."""
    return f"{EVENTS}/{queue}".rstrip("/"), f"{DONE}/{queue}".rstrip("/")


def _take_queue(reader: ManifestReader, queue: str, unmoved: set[str]) -> None:
    pending_folder, done_folder = _folders(queue)
    new, whole = _new_files(reader, pending_folder, queue, IS_PENDING)
    for name in new.in_order():
        if name in unmoved or name in reader.pruned:
            continue
        if _time_of(reader, name, IS_DONE) is not None:
            _came_back(reader, name)
        elif not _is_pruned(reader, EVENTS, name):
            _publish(reader, EVENTS, name)
    new, all_there = _new_files(reader, done_folder, queue, IS_DONE)
    moved = {
        name
        for name in new.in_order()
        if name not in reader.pruned
        and not _is_pruned(reader, DONE, name)
        and _take_done(reader, name)
    }
    pending = {} if whole else _gone(reader, queue, IS_PENDING, unmoved | moved)
    processed = {} if all_there else _gone(reader, queue, IS_DONE, unmoved)
    pending, processed = _not_there_yet(reader, queue, pending, processed)
    if not pending and not processed:
        return
    is_meant = _is_meant(reader, queue)
    pruned = _deleted(reader, pending, is_meant=is_meant and not _restores(reader, queue))
    for name, us in processed.items():
        if is_meant and not _is_restored(reader, f"{DONE}/{name}"):
            pruned[name] = us
        else:
            reader.conflict(f"{DONE}/{name}", "missing", "a processed event's file is gone")
    # Gone from ``processed/``, or from the queue on the way there: the original's prune.
    names = sorted(pruned, key=lambda name: (pruned[name], name))
    for part in pieces.pieces_of_names(names):
        marks = ",".join("?" * len(part))
        sql = f"SELECT sum(size) FROM events WHERE name IN ({marks})"
        size = reader.source.db.execute(sql, part).fetchone()[0]
        body, data = {"bytes": size, "names": part}, "\n".join(part).encode()
        reader.add(PRUNED, body, done_folder, data, max(pruned.values()), claim="unknown")


def _came_back(reader: ManifestReader, name: str) -> None:
    """An event that was acknowledged stands in the queue: as it did before, or moved there."""
    path, done = f"{EVENTS}/{name}", f"{DONE}/{name}"
    want = reader.rendered(reader.source, done)
    is_whole = want is not None and reader.read(path, bus_format.MAX_FILE) == want.data
    if not is_whole or reader.disk.stands(done):
        reader.conflict(path, "moved back", "it was acknowledged before")
        return
    sql = f"SELECT seq FROM events WHERE {IS_DONE} AND us = ? AND name = ? ORDER BY seq DESC"
    (seq,) = reader.source.db.execute(sql, (event_name_us(name), name)).fetchone()
    reader.older(path, seq + 1)
    reader.older(done, seq + 1)  # it is not there, as it was not then


def _is_pruned(reader: ManifestReader, folder: str, name: str) -> bool:
    """Whether an event that was pruned came back as it was, from before that."""
    ledger, us = reader.source.ledger, event_name_us(name)
    last = ledger.entry(ledger.size - 1)
    if last is None or us > parse_entry_time(last.at):
        return False  # it is younger than all entries; to find the newest prune walks them
    newest = ledger.last_seq(kind=PRUNED.name)
    at = None if newest is None else ledger.entry(newest)
    if at is None or us > parse_entry_time(at.at):
        return False
    if any(_time_of(reader, name, where) is not None for where in (IS_PENDING, IS_DONE)):
        return False
    wanted = f'"name":{json.dumps(name, ensure_ascii=False)}'.encode()
    if not ledger.names_in_body(PUBLISHED.name, wanted):
        return False
    path = f"{folder}/{name}"
    data = reader.read(path, bus_format.MAX_FILE)
    for row in ledger.raw(kinds=(PUBLISHED.name,)):
        if wanted in (row.body or b"") and data is not None:
            body = reader.source.body(row.seq)
            if body["name"] == name and render_event(reader.source, body) == data:
                reader.older(path, row.seq + 1)
                return True
    return False


def _not_there_yet(
    reader: ManifestReader, queue: str, pending: dict[str, int], processed: dict[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Take out the events that were not there yet in the older state that the files show.

    Where git keeps these files, and checked something out since our last look, the events that are
    gone may be all that differs: then they are the newest ones.
    """
    if not pending and not processed:
        return pending, processed
    seqs = dict(_known(reader, queue, "1", "name, max(seq)", " GROUP BY name"))
    gone = pending.keys() | processed.keys()
    known = reader.manifest.get(_folders(queue)[0])
    shown = reader.found.shown
    if shown is None and known is not None:
        first = min(seqs[name] for name in gone)
        newest = {name for name, seq in seqs.items() if seq >= first}
        if newest == gone and is_checked_out(reader.disk.root, known.noted_ns):
            shown = first
    if shown is None:
        return pending, processed
    for front, names in ((EVENTS, pending), (DONE, processed)):
        for name in sorted(name for name in names if seqs[name] >= shown):
            reader.older(f"{front}/{name}", shown)
    return (
        {name: us for name, us in pending.items() if seqs[name] < shown},
        {name: us for name, us in processed.items() if seqs[name] < shown},
    )


def _restores(reader: ManifestReader, queue: str) -> bool:
    """Whether a queue's configuration has the files of deleted events written again."""
    sql = "SELECT settings FROM inputs WHERE path = ?"
    row = reader.source.db.execute(sql, (config_of(queue),)).fetchone()
    settings = {} if row is None or row[0] is None else json.loads(row[0])
    return bool(settings.get("deleted_events") == "restore")


def moved_events(names: Sequence[str]) -> list[Draft]:
    """The acknowledgements of events that another program moved, or deleted, since we looked."""
    return [_acknowledged(DONE, name) for name in names]


def _acknowledged(folder: str, name: str) -> Draft:
    """An acknowledgement that we did not see: who did it is not known, nor when.

    ``folder`` is where the file is now; that of the queue, where it was deleted.
    """
    return pieces.piece_draft(ACKED, {"name": name}, f"{folder}/{name}", b"", claim="unknown")


def _new_files(reader: ManifestReader, folder: str, queue: str, where: str) -> tuple[Spill, bool]:
    """Event files of a folder that no event ``where`` is, and whether each such event has its file.

    The folder is listed once, and the known names are struck from that list: a query for each name
    of 100,000 takes ten times as long. A daily command lists none that is as it was.
    Where none is known (a past is taken in) nothing is held. Those that are given have an order
    (``Spill.in_order``).
    """
    new = Spill()
    stat = None if reader.full or reader.shown.is_behind else reader.disk.stat(folder)
    if stat is not None and reader.unchanged(folder, stat):
        return new, True
    if next(_known(reader, queue, where, "1", " LIMIT 1"), None) is None:
        for name, what in reader.disk.walk(folder):
            if _is_event(name) and what != "no text":
                new.append((queue + name, 0), queue + name)
        return new, True
    there = set(reader.disk.listed(folder))
    known = _known_names(reader, queue, where)
    fresh = there - known
    for name in fresh:
        if _is_event(name) and is_text(name):
            new.append((queue + name, 0), queue + name)
    return new, len(there) - len(fresh) == len(known)


def _known_names(reader: ManifestReader, queue: str, where: str) -> set[str]:
    """The names of the event files ``where`` that the ledger has in a queue's folder.

    SQLite gives them in one text: 100,000 rows take three times as long. No name of a file holds a
    slash; where a row of an altered table does, the parts are more than the rows.
    """
    column = f"substr(name, {len(queue) + 1})" if queue else "name"
    with suppress(sqlite3.DataError):  # above 10^9 bytes
        columns = f"count({column}), group_concat({column}, '/')"
        count, text = next(_known(reader, queue, where, columns))
        names = text.split("/") if count else []
        if len(names) == count:
            return set(names)
    return {name for (name,) in _known(reader, queue, where, column)}


def _known(
    reader: ManifestReader, queue: str, where: str, columns: str, rest: str = ""
) -> Iterator[Any]:
    """The events ``where`` of a queue."""
    more, values = events_in_queue(queue, alone=not reader.disk.places.added)
    sql = f"SELECT {columns} FROM events WHERE {where}{more}{rest}"
    return iter(reader.source.db.execute(sql, values))


def _take_done(reader: ManifestReader, name: str) -> bool:
    """A file among the processed that no acknowledged event is; whether a known one moved there."""
    when = _time_of(reader, name, IS_PENDING)
    if when is not None and _time_of(reader, name, f"{IS_PENDING} AND {IS_OURS}") is None:
        reader.conflict(f"{EVENTS}/{name}", "missing", pieces.CHECKPOINT_GONE)
        return False
    if reader.disk.stands(f"{EVENTS}/{name}"):
        # One name, two files: the queue's is the event, and this one is kept as it is.
        path = f"{DONE}/{name}"
        data = _fresh(reader, path)
        if data is not None:
            _keep(reader, path, "an event of this name stands in the queue as well", data)
        return False
    is_known = when is not None
    if when is None:
        when = _publish(reader, DONE, name)
    if when is not None:
        reader.found.pieces.append(pieces.Piece(when, _acknowledged(DONE, name)))
    return is_known


def _gone(reader: ManifestReader, queue: str, where: str, unmoved: set[str]) -> dict[str, int]:
    """Events ``where`` whose files are gone, from the queue and from among the processed.

    The queue is listed first: an acknowledgement moves a file from it to the other folder. A folder
    that is changed while it is listed may leave names out, so each name is asked for again.
    """
    there = set()
    for folder in _folders(queue):
        there |= {queue + name for name in reader.disk.names(folder) if _is_event(name)}
    there -= reader.pruned
    known = dict(_known(reader, queue, where, "name, us"))
    return {
        name: known[name]
        for name in sorted(known.keys() - there - unmoved)
        if not any(reader.disk.stands(f"{front}/{name}") for front in (EVENTS, DONE))
        or name in reader.pruned
    }


def _deleted(reader: ManifestReader, gone: dict[str, int], *, is_meant: bool) -> dict[str, int]:
    """Take in that pending events were deleted; gives those that are acknowledged by it."""
    sql = f"SELECT name FROM events WHERE {IS_PENDING} AND type = 'pythia-checkpoint'"
    checkpoints = {name for (name,) in reader.source.db.execute(sql)} if gone else ()
    acked = {}
    for name, us in gone.items():
        path = f"{EVENTS}/{name}"
        if name in checkpoints:
            reader.conflict(path, "missing", pieces.CHECKPOINT_GONE)
        elif not is_meant or _is_restored(reader, path):
            reader.conflict(path, "missing", "a pending event's file is gone")
        else:
            reader.found.pieces.append(pieces.Piece(us, _acknowledged(EVENTS, name)))
            acked[name] = us
    return acked


def is_event_deletion(body: dict[str, Any]) -> bool:
    """Whether an acknowledgement was observed by its event's file being gone from the queue."""
    observed = body.get("observed")
    path = observed.get("path") if isinstance(observed, dict) else None
    return path is not None and path == f"{EVENTS}/{body.get('name')}"


def _is_restored(reader: ManifestReader, path: str) -> bool:
    """Whether an entry says that the file is written again, and a writer died before it was."""
    return not reader.restored.isdisjoint((path, path.rpartition("/")[0]))


def _is_meant(reader: ManifestReader, queue: str) -> bool:
    """Whether somebody deleted events, and nothing else came over the team's files.

    The two folders are those of our last look: not gone, not another disk's, not made anew. All
    else of ours stands as it should: a checkout, a stash or an old copy changes more than events.
    """
    if reader.found.shown is not None:
        return False
    for front in _folders(queue):
        known, stat = reader.manifest.get(front), reader.disk.stat(front)
        if known is None or stat is None or known.stat.inode != stat.inode:
            return False
    others = (c for c in reader.found.conflicts if not c.path.startswith(f"{EVENTS}/"))
    if any(one.what in ("missing", "edited") for one in others):
        return False
    shown = counted_entry(reader.disk)  # each decision and message moves it
    newest = reader.source.db.execute("SELECT seq, id FROM counted").fetchone()
    if shown is None or newest is None:
        return False
    return shown == newest or bool(newest[0] >= min(reader.shown.files, reader.shown.size))


def _fresh(reader: ManifestReader, path: str) -> bytes | None:
    """The bytes of a file that no event of ours is, unless they are kept already as they are."""
    data = reader.read(path, bus_format.MAX_FILE, fresh=True)
    return None if data is None or reader.is_kept(path) else data


def _keep(reader: ManifestReader, path: str, problem: str, data: bytes) -> None:
    """Keep a file that is no event as it is, unless an event of this name was redacted."""
    if not _is_erased(reader, path):
        reader.keep(FILE_SEEN, path, data, problem)


def _is_erased(reader: ManifestReader, path: str) -> bool:
    """Whether an event of this name was redacted: then its bytes are not taken in again."""
    erased = redacted_rows_at(reader.source, path)
    if erased:
        reader.conflict(path, "edited", "an event of this name was redacted")
    return bool(erased)


def _is_event(name: str) -> bool:
    """Whether an event's file may have this name; a publisher's unfinished one has not (B12.7)."""
    return name.endswith(".event") and not name.startswith(".")


def _time_of(reader: ManifestReader, name: str, where: str) -> int | None:
    """The time in µs of an event ``where`` of this name, None if absent."""
    row = reader.source.db.execute(
        f"SELECT us FROM events WHERE {where} AND us = ? AND name = ?", (event_name_us(name), name)
    ).fetchone()
    return None if row is None else int(row[0])


def _publish(reader: ManifestReader, folder: str, name: str) -> int | None:
    """Take in a new event, or one that could not be read when it was half written.

    Gives when that was, in µs as it claims; None where it is no event.
    """
    path = f"{folder}/{name}"
    data = _fresh(reader, path)
    stat = reader.disk.stat(path)
    if data is None or stat is None or _is_erased(reader, path):
        return None
    event = bus_format.parse_event(data)
    if event is None:
        _keep(reader, path, "no event: source, type or priority is missing", data)
        return None
    if not pieces.piece_fits([event.source, event.type], LONGEST_WORDS):
        _keep(reader, path, f"no event: source and type take over {LONGEST_WORDS} bytes", data)
        return None
    reader.found.files += 1
    us = event_name_us(name)
    when = us or stat.mtime_us
    source, type_, priority, _, _, payload = event
    priority = priority if priority in bus_format.PRIORITIES else "normal"
    words = source, type_, priority, bus_format.format_time(us), f"{source}:{type_}", payload
    body = {"name": name, "us": us, "size": len(data), "payload": payload.encode() or None}
    body |= {"source": source, "type": type_, "priority": priority}
    more = {"claim": "file-name" if us else "mtime", "mtime_us": stat.mtime_us, "mode": stat.mode}
    raw = bus_format.format_event(Event(*words)) != data
    reader.add(PUBLISHED, body, path, data, when, identity=f"{EVENTS}/{name}", raw=raw, **more)
    return when
