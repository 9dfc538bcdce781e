"""The event queue: its tables, and the files ``events/*.event`` and ``events/processed/``.

Ordering and age use the time in the file name. No file shows the tables ``claims`` and ``readers``:
the original tools know neither.

Source: spec nbs-compat B2 to B9, B12.9; seeds: nbs-bus.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from tripod.ledger import Entry
from tripod.projections.bus.format import (
    PRIORITIES,
    Event,
    event_name_us,
    format_event,
    format_time,
)
from tripod.projections.layout import EVENT
from tripod.projections.projection import TOGETHER, File, Op, Projection, Render, Source

MODE = EVENT.mode
RANKS = {priority: rank for rank, priority in enumerate(PRIORITIES)}
IS_PENDING = "acked IS NULL AND priority IN (0, 1, 2, 3)"
# By the four priorities the index events_pending finds them: an index of its own, by name or by
# source and type, would cost every publish a page. This one takes new rows at its end.
IS_DONE = "acked IS NOT NULL"

PUBLISH = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL)"
STORE = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)"
"""An event with its acknowledgement, for a fold that knows both."""
_MERGE = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)"
CHECKPOINT = "pythia-checkpoint"
IS_OURS = f"(origin IS NULL OR type <> '{CHECKPOINT}')"
"""A checkpoint of a peer is closed by that peer alone."""
ACK = f"UPDATE events SET acked = ? WHERE {IS_PENDING} AND us = ? AND name = ? AND {IS_OURS}"
# An event of a queue that was added is named ``<queue>/<file>``; '0' comes after '/'.
_ACK_ALL = f"UPDATE events SET acked = ? WHERE acked IS NULL AND instr(name, '/') = 0 AND {IS_OURS}"
_ACK_QUEUE = (
    "UPDATE events SET acked = ? WHERE acked IS NULL AND name > ? || '/' AND name < ? || '0'"
    f" AND {IS_OURS}"
)
_BY_PEER = f"(type <> '{CHECKPOINT}' OR origin = ?2)"
_PEER_ACK = f"UPDATE events SET acked = ?1 WHERE acked IS NULL AND {_BY_PEER} AND seq = ?3"
# ?3 is what its maker knew, of each replica so many entries, of this one first; ?4 is the queue, by
# the name that it has there.
_PEER_ACK_ALL = f"""\
UPDATE events SET acked = ?1 WHERE acked IS NULL AND {_BY_PEER}
    AND EXISTS (SELECT 1 FROM json_each(?3)
        WHERE CASE WHEN events.origin IS NULL THEN key = 0
                AND events.seq < json_extract(value, '$.size')
            ELSE key > 0 AND events.origin = json_extract(value, '$.origin')
                AND events.peer_seq < json_extract(value, '$.size') END)
    AND rtrim(substr(coalesce(made, name), 1, instr(coalesce(made, name), '/')), '/') = ?4
    AND (?5 = '' OR source IN (?5, ?6))"""
_AHEAD = "INSERT OR IGNORE INTO acks_ahead VALUES (?, ?, ?, ?, ?, ?, ?)"
_SETTLE = f"""\
UPDATE events SET acked = (SELECT min(seq) FROM (
    SELECT seq, maker FROM acks_ahead WHERE origin = '' AND name = ?2
    UNION ALL SELECT seq, maker FROM acks_ahead WHERE origin = ?3 AND name = ''
        AND below > ?4 AND queue = ?5 AND source IN ('', ?6, ?7)
        AND seq NOT IN (SELECT value FROM json_each(?9)))
    WHERE ?8 <> '{CHECKPOINT}' OR maker = ?3) WHERE seq = ?1 AND acked IS NULL"""
_EACH = (  # of two events of one name, the later one's file stands there
    "SELECT max(seq), mode, name, acked IS NOT NULL FROM events"
    " GROUP BY acked IS NOT NULL, us, name"
)
PRUNE = "DELETE FROM events WHERE acked IS NOT NULL AND us = ? AND name = ?"


class BusQueue(Projection):
    """The table ``events`` and the files of the event queue."""

    name = "events"
    version = 3
    folder = "events"
    tables = ("events", "acks_ahead")
    ddl = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    us INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    source TEXT NOT NULL,
    type TEXT NOT NULL,
    size INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    acked INTEGER,
    origin TEXT,
    peer_seq INTEGER,
    made TEXT
) STRICT;
CREATE INDEX events_pending ON events (priority, us, source, type) WHERE acked IS NULL;
CREATE INDEX events_done ON events (us, name) WHERE acked IS NOT NULL;
CREATE TABLE acks_ahead (
    origin TEXT NOT NULL,
    name TEXT NOT NULL,
    below INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    maker TEXT NOT NULL,
    queue TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (origin, name, below, seq)
) STRICT, WITHOUT ROWID;
"""
    # What a fold of the whole ledger looks rows up by: no acknowledgement changes a row's place
    # in it, so that it costs a fraction of the three above.
    bulk_index = "CREATE INDEX events_bulk ON events (us, name)"
    kinds = frozenset(("bus.published", "bus.acked", "bus.acked-all", "bus.pruned"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep one row an event; ``acked`` is the seq of the entry that acknowledged it."""
        body = entry.data
        if "peer" in body:
            return _merged(entry)
        if entry.kind == "bus.published":
            mode = body.get("observed", {}).get("mode", MODE)
            name, rank = body["name"], PRIORITIES.index(body["priority"])
            said = (body["source"], body["type"], body["size"])
            row = (entry.seq, name, body["us"], rank, *said, mode)
            return (("events", PUBLISH, row, name),)
        if entry.kind == "bus.acked":
            name = body["name"]
            return (("events", ACK, (entry.seq, event_name_us(name), name), name),)
        if entry.kind == "bus.acked-all":
            sql, values = _ACK_ALL, [entry.seq]
            if "queue" in body:
                sql, values = _ACK_QUEUE, [entry.seq, body["queue"], body["queue"]]
            if "source" in body:
                sql += " AND priority IN (0, 1, 2, 3) AND source = ?"
                return (("events", sql, (*values, body["source"]), None),)
            return (("events", sql, tuple(values), None),)
        return [("events", PRUNE, (event_name_us(name), name), name) for name in body["names"]]

    def touched(self, entry: Entry) -> Iterable[str]:
        """The file of the event, in the queue and among the processed."""
        body = entry.data
        if entry.kind == "bus.published" and "peer" not in body:
            return (self._path(body["name"], done=False),)
        if entry.kind == "bus.published":  # it may have been acknowledged before it came here
            return (self._path(body["name"], done=False), self._path(body["name"], done=True))
        if entry.kind == "bus.acked":
            return (self._path(body["name"], done=False), self._path(body["name"], done=True))
        if entry.kind == "bus.pruned":
            return [self._path(name, done=True) for name in body["names"]]
        return ()  # acked-all: `moved_by` tells which, from the table

    def left_by(self, entry: Entry) -> list[str]:
        """Where pruned events still stand if the files did not follow when they were moved."""
        names = entry.data["names"] if entry.kind == "bus.pruned" else ()
        return [self._path(name, done=False) for name in names]

    def moved_by(self, source: Source, seq: int) -> list[str]:
        """Names of the events that the entry ``seq`` moved to ``processed/``."""
        sql = "SELECT name FROM events WHERE acked = ? ORDER BY us, name"
        return [name for (name,) in source.db.execute(sql, (seq,))]

    def paths(self, source: Source) -> Iterator[str]:
        """Pending events, then the processed, in the order of their names' times."""
        for _, _, name, done in source.db.execute(_EACH):
            yield self._path(name, done=done)

    def renders(self, source: Source) -> Iterator[tuple[str, Render]]:
        """Every path with what renders its file now; many bodies are fetched at once."""
        rows = source.db.execute(_EACH)
        while part := rows.fetchmany(TOGETHER):
            bodies = source.bodies([seq for seq, *_ in part])
            for seq, mode, name, done in part:
                path = self._path(name, done=done)
                yield path, partial(_file, source, seq, mode, bodies.get(seq))

    def _path(self, name: str, *, done: bool) -> str:
        return f"{self.folder}/processed/{name}" if done else f"{self.folder}/{name}"

    def render(self, source: Source, path: str) -> File | None:
        """One event's file, in the place where it belongs now."""
        row = self._row(source, path)
        return None if row is None else _file(source, *row)

    def render_many(self, source: Source, paths: Iterable[str]) -> dict[str, File]:
        """The files of events at these paths, where they belong now; bodies are fetched at once."""
        rows = {path: row for path in paths if (row := self._row(source, path)) is not None}
        bodies = source.bodies([seq for seq, _ in rows.values()])
        return {
            path: _file(source, seq, mode, bodies.get(seq)) for path, (seq, mode) in rows.items()
        }

    def _row(self, source: Source, path: str) -> tuple[int, int] | None:
        if not path.startswith(f"{self.folder}/"):
            return None
        inside = path.removeprefix(f"{self.folder}/")
        name = inside.removeprefix("processed/")
        where = f"{IS_PENDING if name == inside else IS_DONE} AND us = ? AND name = ?"
        sql = f"SELECT seq, mode FROM events WHERE {where} ORDER BY seq DESC"
        found: tuple[int, int] | None = source.db.execute(
            sql, (event_name_us(name), name)
        ).fetchone()
        return found


BUS = BusQueue()


def _merged(entry: Entry) -> Iterable[Op]:
    """The row operations of an entry of a peer.

    What it acknowledges may come here later, from another peer: then it is acknowledged at once.
    """
    body, seq, whose = entry.data, entry.seq, entry.data["peer"]
    maker, name = whose["origin"], body.get("name", "")
    if entry.kind == "bus.published":
        made, source, type_ = whose["said"].get("name", name), body["source"], body["type"]
        said = (source, type_, body["size"], body.get("observed", {}).get("mode", MODE))
        rank = PRIORITIES.index(body["priority"])
        row = (seq, name, body["us"], rank, *said, maker, whose["seq"], made)
        queue = made.rpartition("/")[0]
        unseen = json.dumps(body.get("unseen", ()))
        settled = (seq, made, maker, whose["seq"], queue, source, _plain(source), type_, unseen)
        return (("events", _MERGE, row, name), ("events", _SETTLE, settled, name))
    if entry.kind == "bus.acked":
        if "event" in body:
            return (("events", _PEER_ACK, (seq, maker, body["event"]), name),)
        return (("events", _AHEAD, ("", name, 0, seq, maker, "", ""), None),)
    queue, source, known = body.get("queue", ""), body.get("source", ""), body["known"]
    every = (seq, maker, json.dumps(known), queue, source, _plain(source))
    later = (
        (one["origin"], "", one["size"], seq, maker, queue, source)
        for one in known[1:]
        if one["origin"] != maker
    )
    return [
        ("events", _PEER_ACK_ALL, every, None),
        *(("events", _AHEAD, row, None) for row in later),
    ]


def _plain(source: str) -> str:
    """A source without the replica that it is shown with."""
    return source.partition("@")[0]


def events_in_queue(
    queue: str, *, alone: bool, column: str = "name"
) -> tuple[str, tuple[str, ...]]:
    """The condition that an event is of a queue: '' the team's own, else ``<name>/``.

    ``alone``: the team has no other queue, so nothing need be asked. Gives SQL after an AND, and
    the values in it.
    """
    if queue:
        return f" AND {column} > ? AND {column} < ?", (queue, f"{queue[:-1]}0")
    return ("" if alone else f" AND instr({column}, '/') = 0"), ()


def in_folder(folder: str, *, alone: bool) -> tuple[str, tuple[str, ...]]:
    """The condition that the ledger has an event in a folder of the team: SQL, and its values."""
    _, *rest = folder.split("/")
    done = rest[:1] == ["processed"]
    queue = "".join(f"{name}/" for name in rest[done:])
    where, values = events_in_queue(queue, alone=alone)
    return f"acked IS {'NOT ' if done else ''}NULL{where}", values


def _file(source: Source, seq: int, mode: int, body: dict[str, Any] | None = None) -> File:
    return File(render_event(source, source.body(seq) if body is None else body), mode)


def render_event(source: Source, body: dict[str, Any]) -> bytes:
    """Render an event from the body of its entry (``raw`` where another program wrote it so)."""
    if "raw" in (observed := body.get("observed", {})):
        return source.content(observed["raw"])
    who, what, text = body["source"], body["type"], ""
    if "payload" in body:
        payload = body["payload"]  # a text need not become bytes and text again
        text = payload["text"] + "" if "text" in payload else source.content(payload).decode()
    time = format_time(body["us"])
    return format_event(Event(who, what, body["priority"], time, f"{who}:{what}", text))


_CLAIM = (
    "INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (event) DO UPDATE SET seq = excluded.seq, holder = excluded.holder,"
    " until_us = excluded.until_us, attempt = excluded.attempt"
)
_RELEASE = "UPDATE claims SET seq = ?, until_us = 0 WHERE event = ?"
_SEEN = (
    "INSERT INTO readers VALUES (?, ?, ?)"
    " ON CONFLICT (reader) DO UPDATE SET seq = excluded.seq, up_to = excluded.up_to"
)


class Claims(Projection):
    """Claims on events, and the newest entry that each reader was shown.

    ``event`` is the seq of the publishing entry; the lease ends at ``until_us`` (epoch µs; 0: the
    event was given back).
    """

    name = "claims"
    version = 1
    tables = ("claims", "readers")
    ddl = """
CREATE TABLE claims (
    event INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    attempt INTEGER NOT NULL
) STRICT;
CREATE TABLE readers (
    reader TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    up_to INTEGER NOT NULL
) STRICT;
"""
    kinds = frozenset(("bus.claimed", "bus.released", "bus.seen"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep the newest word on each event and each reader."""
        seq, body = entry.seq, entry.data
        if entry.kind == "bus.seen":
            return (("readers", _SEEN, (body["reader"], seq, body["up_to"]), body["reader"]),)
        event = body["event"]
        if entry.kind == "bus.released":
            return (("claims", _RELEASE, (seq, event), str(event)),)
        row = (event, seq, body["name"], body["by"], body["until"], body["attempt"])
        return (("claims", _CLAIM, row, str(event)),)


CLAIMS = Claims()
