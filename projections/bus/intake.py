"""Intake of the event queue: new files, files moved to ``processed/``, pruned files.

The original tools, and people with a shell, delete files to tidy a queue: such a file does not come
back (ADR 0012). If more than events may be gone, the events were not deleted on purpose, and they
are written again. The time of an observed acknowledgement is unknown and stays so.

Source: spec nbs-compat B2, B4, B7; design, "Foreign writes".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from tripod.ledger import Draft
from tripod.ledger.kinds.base import content
from tripod.projections.bus.format import (
    MAX_FILE,
    PRIORITIES,
    Event,
    format_event,
    format_time,
    parse_event,
)
from tripod.projections.bus.tables import BUS, MODE, in_queue, name_us
from tripod.projections.disk import Disk, UnreadableError
from tripod.projections.erasure import holds_erased
from tripod.projections.layout import COUNTS_FILE
from tripod.projections.pieces import CHECKPOINT_GONE, Found, fits, names_in_bodies
from tripod.projections.projection import TOGETHER, Source
from tripod.projections.reader import Reader, make_piece
from tripod.projections.team.tables import counted_entry

RANK = 3
ACK_RANK = 4
PENDING = "acked IS NULL AND priority IN (0, 1, 2, 3)"  # as the table's indexes have them
DONE = "acked IS NOT NULL"
LONGEST_WORDS = 4096  # the original's limit is 127 bytes each; they also stand in the header


_CHECKPOINT = "pythia-checkpoint"


def take_events(reader: Reader, restores: Callable[[str], bool]) -> None:
    """Compare the two folders of each queue with the table of events.

    ``restores`` says whether the files of a queue's pending events, where others deleted them, are
    to be written again.
    """
    unmoved = _unwritten(reader)
    for queue in reader.disk.places.queues():
        _take_queue(reader, queue, {name for name in unmoved if is_of(name, queue)}, restores)


def is_of(name: str, queue: str) -> bool:
    """Whether an event is of a queue: '' the team's own, else ``<name>/``."""
    return name.startswith(queue) and "/" not in name[len(queue) :]


def _folders(queue: str) -> tuple[str, str]:
    """The two folders of a queue, as paths of the team."""
    queue = queue.rstrip("/")
    return f"{BUS.folder}/{queue}".rstrip("/"), f"{BUS.folder}/processed/{queue}".rstrip("/")


def _take_queue(
    reader: Reader, which: str, unmoved: set[str], restores: Callable[[str], bool]
) -> None:
    queue, done = _folders(which)
    new, whole = _strangers(reader, queue, which, PENDING)
    for name in new:
        if name in unmoved or name in reader.pruned:
            continue
        if _when(reader, name, DONE) is not None:
            reader.conflict(f"{BUS.folder}/{name}", "moved back", "it was acknowledged before")
        else:
            _publish(reader, BUS.folder, name)
    new, all_there = _strangers(reader, done, which, DONE)
    for name in new:
        if name not in reader.pruned:
            _take_done(reader, name)
    told = {p.draft.body["name"] for p in reader.found.pieces if p.draft.kind == "bus.acked"}
    pending = {} if whole else _gone(reader, which, PENDING, unmoved | told)
    processed = {} if all_there else _gone(reader, which, DONE, unmoved)
    if pending or processed:
        is_meant = _is_meant(reader, which)
        acked = _deleted(reader, pending, is_meant=is_meant and not restores(which))
        _note_pruned(reader, which, acked | _pruned(reader, processed, is_meant=is_meant))


def moved(source: Source, disk: Disk, names: Sequence[str]) -> list[Draft]:
    """The acknowledgements of events that another program moved, or deleted, since we looked."""
    reader = Reader(source, disk, {}, full=False, found=Found())
    for name in names:
        _ack(reader, f"{BUS.folder}/processed", name, name_us(name))
    return [piece.draft for piece in reader.found.pieces]


def _strangers(reader: Reader, folder: str, queue: str, where: str) -> tuple[list[str], bool]:
    """Event files of a folder that no event ``where`` is, and whether each such event has its file.

    Names go by the hundred past the table: a queue of 50,000 is never held as a whole.
    """
    sql = (
        "SELECT json_extract(value, '$[1]') FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM"
        f" events WHERE {where} AND us = json_extract(value, '$[0]')"
        " AND name = json_extract(value, '$[1]'))"
    )
    new: list[str] = []
    there = 0
    found = reader.disk.walk(folder)
    names = (queue + name for name, what in found if _is_event(name) and what != "no text")
    while part := [(name_us(name), name) for name in islice(names, TOGETHER)]:
        there += len(part)
        new += [name for (name,) in reader.source.db.execute(sql, (json.dumps(part),))]
    more, values = _of(reader, queue)
    sql = f"SELECT count(*) FROM events WHERE {where}{more}"
    count = reader.source.db.execute(sql, values).fetchone()[0]
    return sorted(new), there - len(new) == count


def _of(reader: Reader, queue: str) -> tuple[str, tuple[str, ...]]:
    return in_queue(queue, alone=not reader.disk.places.added)


def _take_done(reader: Reader, name: str) -> None:
    """A file among the processed that no acknowledged event is."""
    queue, done = BUS.folder, f"{BUS.folder}/processed"
    pending = _when(reader, name, PENDING)
    if reader.disk.stands(f"{queue}/{name}"):
        # One name, two files: the queue's is the event, and this one is kept as it is.
        _keep(reader, f"{done}/{name}", "an event of this name stands in the queue as well")
    elif pending is not None:
        _ack(reader, done, name, pending)
    else:
        when = _publish(reader, done, name)
        if when is not None:
            _ack(reader, done, name, when)


def _gone(reader: Reader, which: str, where: str, unmoved: set[str]) -> dict[str, int]:
    """Events ``where`` whose files are gone, from the queue and from among the processed.

    The queue is looked at first: who acknowledges moves a file from there to the other. A folder
    that is changed while it is listed may leave names out, so each name is asked for again.
    """
    queue, done = _folders(which)
    there = _event_names(reader, queue, which) | _event_names(reader, done, which)
    there -= reader.pruned
    known = _known(reader, which, where)
    fronts = BUS.folder, f"{BUS.folder}/processed"
    return {
        name: known[name]
        for name in sorted(known.keys() - there - unmoved)
        if not any(reader.disk.stands(f"{front}/{name}") for front in fronts)
        or name in reader.pruned
    }


def _deleted(reader: Reader, gone: dict[str, int], *, is_meant: bool) -> dict[str, int]:
    """Take in that pending events were deleted; gives those that are acknowledged by it."""
    queue = BUS.folder
    sql = f"SELECT name FROM events WHERE {PENDING} AND type = ?"
    rows = reader.source.db.execute(sql, (_CHECKPOINT,)) if gone else ()
    checkpoints = {name for (name,) in rows}
    acked = {}
    for name, us in gone.items():
        if name in checkpoints:
            reader.conflict(f"{queue}/{name}", "missing", CHECKPOINT_GONE)
        elif not is_meant or _is_restored(reader, f"{queue}/{name}"):
            reader.conflict(f"{queue}/{name}", "missing", "a pending event's file is gone")
        else:
            _ack(reader, queue, name, us)
            acked[name] = us
    return acked


def is_deletion(body: dict[str, Any]) -> bool:
    """Whether an acknowledgement was observed by its event's file being gone from the queue."""
    observed = body.get("observed")
    path = observed.get("path") if isinstance(observed, dict) else None
    return path is not None and path == f"{BUS.folder}/{body.get('name')}"


def _pruned(reader: Reader, gone: dict[str, int], *, is_meant: bool) -> dict[str, int]:
    """The processed events whose files others deleted; the others that are gone are missing."""
    done = f"{BUS.folder}/processed"
    pruned = {}
    for name, us in gone.items():
        if is_meant and not _is_restored(reader, f"{done}/{name}"):
            pruned[name] = us
        else:
            reader.conflict(f"{done}/{name}", "missing", "a processed event's file is gone")
    return pruned


def _is_restored(reader: Reader, path: str) -> bool:
    """Whether an entry says that the file is written again, and a writer died before it was."""
    return path in reader.restored or path.rpartition("/")[0] in reader.restored


def _is_meant(reader: Reader, which: str) -> bool:
    """Whether somebody deleted events, and nothing else came over the team's files.

    The two folders are those of our last look: not gone, not another disk's, not made anew. All
    else of ours stands as it should: a checkout, a stash or an old copy changes more than events.
    """
    for front in _folders(which):
        known, stat = reader.manifest.get(front), reader.disk.stat(front)
        if known is None or stat is None or known.stat.inode != stat.inode:
            return False
    others = (c for c in reader.found.conflicts if not c.path.startswith(f"{BUS.folder}/"))
    if any(one.what in ("missing", "edited") for one in others):
        return False
    return _counts_stand(reader)


def _counts_stand(reader: Reader) -> bool:
    """Whether ``counts.json`` counts what it should: each decision and message moves it."""
    try:
        data = reader.disk.read(COUNTS_FILE.names[0], COUNTS_FILE.limit)
    except UnreadableError:
        return False
    shown = None if data is None else counted_entry(data)
    newest = reader.source.db.execute("SELECT seq, id FROM counted").fetchone()
    if shown is None or newest is None:
        return False
    return shown == tuple(newest) or bool(newest[0] >= min(reader.files, reader.size))


def _fresh(reader: Reader, path: str) -> bytes | None:
    """The bytes of a file that no event of ours is, unless they are kept already as they are."""
    try:
        data = reader.fresh(path, MAX_FILE)
    except UnreadableError as error:
        reader.conflict(path, "unreadable", str(error))
        return None
    held = reader.source.db.execute("SELECT sha256 FROM files WHERE path = ?", (path,)).fetchone()
    if data is None or (held is not None and held[0] == reader.found.digests[path]):
        return None
    return data


def _keep(reader: Reader, path: str, problem: str, data: bytes | None = None) -> None:
    data = _fresh(reader, path) if data is None else data
    if data is not None and not _erased(reader, path):
        from tripod.projections.team.intake import take_unreadable

        take_unreadable(reader, path, data, problem)


def _erased(reader: Reader, path: str) -> bool:
    """Whether an event of this name was redacted: then its bytes are not taken in again."""
    erased = holds_erased(reader.source, path)
    if erased:
        reader.conflict(path, "edited", "an event of this name was redacted")
    return erased


def _unwritten(reader: Reader) -> set[str]:
    """Events whose entries the files do not show yet (a writer died before it wrote them)."""
    rows = reader.source.db.execute(
        "SELECT name FROM events WHERE seq >= ?1 OR acked >= ?1", (reader.files,)
    )
    return {name for (name,) in rows} if reader.files < reader.size else set()


def _event_names(reader: Reader, folder: str, queue: str) -> set[str]:
    return {queue + name for name in reader.disk.names(folder) if _is_event(name)}


def _is_event(name: str) -> bool:
    """Whether an event's file may have this name; a publisher's unfinished one has not (B12.7)."""
    return name.endswith(".event") and not name.startswith(".")


def _when(reader: Reader, name: str, where: str) -> int | None:
    """The time in µs of an event ``where`` of this name, None if absent."""
    row = reader.source.db.execute(
        f"SELECT us FROM events WHERE {where} AND us = ? AND name = ?", (name_us(name), name)
    ).fetchone()
    return None if row is None else int(row[0])


def _known(reader: Reader, queue: str, where: str) -> dict[str, int]:
    more, values = _of(reader, queue)
    rows = reader.source.db.execute(f"SELECT name, us FROM events WHERE {where}{more}", values)
    return dict(rows.fetchall())


def _publish(reader: Reader, folder: str, name: str) -> int | None:
    """Take in a new event, or one that could not be read when it was half written.

    Gives when that was, in µs as it claims; None where it is no event.
    """
    path = f"{folder}/{name}"
    data = _fresh(reader, path)
    stat = reader.disk.stat(path)
    if data is None or stat is None or _erased(reader, path):
        return None
    event = parse_event(data)
    us = name_us(name)
    mode = None if stat.mode == MODE else stat.mode
    mtime_us = stat.mtime_us
    blobs: list[bytes] = []
    if event is None:
        _keep(reader, path, "no event: source, type or priority is missing", data)
        return None
    if not fits([event.source, event.type], LONGEST_WORDS):
        _keep(reader, path, f"no event: source and type take over {LONGEST_WORDS} bytes", data)
        return None
    reader.found.files += 1
    priority = event.priority if event.priority in PRIORITIES else "normal"
    plain = Event(
        event.source,
        event.type,
        priority,
        format_time(us),
        f"{event.source}:{event.type}",
        event.payload,
    )
    body = {
        "name": name,
        "priority": priority,
        "size": len(data),
        "source": event.source,
        "type": event.type,
        "us": us,
    }
    if event.payload:
        body["payload"] = content(event.payload.encode(), blobs)
    make_piece(
        reader,
        kind="bus.published",
        stream="bus",
        actor=event.source,
        body=body,
        path=path,
        identity=f"{BUS.folder}/{name}",
        data=data,
        when=us or mtime_us,
        rank=RANK,
        ordinal=0,
        raw=format_event(plain) != data,
        blobs=blobs,
        claim="file-name" if us else "mtime",
        mtime_us=mtime_us,
        mode=mode,
    )
    return us or mtime_us


def _ack(reader: Reader, folder: str, name: str, when: int) -> None:
    """An acknowledgement that we did not see: who did it is not known, nor when.

    ``folder`` is where the file is now; that of the queue, where it was deleted.
    """
    make_piece(
        reader,
        kind="bus.acked",
        stream="bus",
        actor="unknown",
        body={"name": name},
        path=f"{folder}/{name}",
        data=b"",
        when=when,
        rank=ACK_RANK,
        ordinal=0,
        claim="unknown",
    )


def _note_pruned(reader: Reader, which: str, gone: dict[str, int]) -> None:
    """Files gone from ``processed/``, or from the queue on the way there: the original's prune."""
    names = sorted(gone, key=lambda name: (gone[name], name))
    for part in names_in_bodies(names):
        marks = ",".join("?" * len(part))
        sql = f"SELECT sum(size) FROM events WHERE name IN ({marks})"
        size = reader.source.db.execute(sql, part).fetchone()[0]
        make_piece(
            reader,
            kind="bus.pruned",
            stream="bus",
            actor="unknown",
            body={"bytes": size, "names": part},
            path=_folders(which)[1],
            data="\n".join(part).encode(),
            when=max(gone.values()),
            rank=ACK_RANK,
            ordinal=0,
            claim="unknown",
        )
