"""Files of the team besides bus, chats and logs; counts; tables of trust and of redactions.

``workers/*.md`` of other tools, and files that cannot be read as their place demands, are
projections (``rebuild`` writes their bytes). Inputs that people edit are never written. Logs are
evidence: stored by digest, written only on request (design, section 6, "which file is what").

``counts.json`` is for scripts that want a number without reading a log. It changes with a decision
or a message, not with every event of the bus: rewriting it would cost each publish a sync.
``as_of`` names the newest entry that it counts. Only tripod writes this file, and never ahead of
the ledger: a ledger without that entry was rolled back or swapped, and must not take in the files'
later lines as foreign ones, which would launder history. Acts on the bus alone do not move the
mark, and removing the file removes it: outside witnesses are for anchors.

The tables of trust judge no note: checks do that. So every entry that fits its model gets its row,
and ``root`` is '' where a note holds none. By the table of redactions the intake refuses old bytes
at the places of erased texts, from a backup or an editor (``tripod.projections.erasure``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tripod.ledger import EVENTS, PROCESSED, REDACTED, Entry
from tripod.projections.layout import COUNTS_FILE, LIVE, WORKER
from tripod.projections.projection import File, Op, Projection, Source

MODE = COUNTS_FILE.mode

_KEPT = {"worker.written": "worker", "evidence.kept": "evidence", "file.seen": "seen"}
"""The class of the file that an entry of a kind keeps."""
_FREED = ("bus.published", "bus.acked", "bus.pruned", "chat.created")
"""Kinds that put an event or a chat in a place: the row of an unreadable file there is deleted."""
REPLACED = "DELETE FROM files WHERE class = 'seen' AND path = ?"


class TeamFiles(Projection):
    """Other tools' worker files, inputs, read positions and evidence."""

    name = "workers"
    version = 1
    processed = "events/processed"
    tables = ("team", "files", "inputs", "read_positions")
    ddl = """
CREATE TABLE team (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    project TEXT NOT NULL,
    scribe TEXT NOT NULL,
    created TEXT NOT NULL,
    events TEXT NOT NULL,
    chat TEXT NOT NULL,
    adopted INTEGER
) STRICT;
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    class TEXT NOT NULL,
    seq INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    mode INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE inputs (
    path TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    settings TEXT,
    problems TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE read_positions (
    channel TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    sha256 TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
    kinds = frozenset(
        (*_KEPT, *_FREED, "ledger.opened", "ledger.adopted", "config.changed", "chat.cursors-seen")
    )

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep the newest state of each file, by its path."""
        body = entry.data
        if entry.kind in _FREED:
            if entry.kind in ("bus.published", "chat.created"):
                path = body["observed"].get("path") if "observed" in body else None
                paths = [] if path is None else [path]
            else:
                names = body["names"] if entry.kind == "bus.pruned" else [body["name"]]
                paths = [f"{self.processed}/{name}" for name in names]
            return [("files", REPLACED, (path,), None) for path in paths]
        if entry.kind == "ledger.opened":
            words = (body["project"], body["scribe"], body["created"], body["events"], body["chat"])
            sql = "INSERT OR IGNORE INTO team VALUES (0, ?, ?, ?, ?, ?, NULL)"
            return (("team", sql, words, None),)
        if entry.kind == "ledger.adopted":
            return (("team", "UPDATE team SET adopted = coalesce(adopted, ?)", (entry.seq,), None),)
        if entry.kind == "config.changed":
            settings, problems = body.get("settings"), body.get("problems")
            said = None if settings is None else json.dumps(settings, sort_keys=True)
            wrong = json.dumps(problems, sort_keys=True) if problems else None
            sql = "INSERT OR REPLACE INTO inputs VALUES (?, ?, ?, ?, ?)"
            return (("inputs", sql, (body["path"], entry.seq, body["sha256"], said, wrong), None),)
        if entry.kind == "chat.cursors-seen":
            sql = "INSERT OR REPLACE INTO read_positions VALUES (?, ?, ?)"
            return (("read_positions", sql, (body["channel"], entry.seq, body["sha256"]), None),)
        path, mode = body["path"], body["observed"].get("mode", MODE)
        row = (path, _KEPT[entry.kind], entry.seq, body["sha256"], body["size"], mode)
        return (("files", "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", row, None),)

    def touched(self, entry: Entry) -> Iterable[str]:
        """The file itself, where it is a projection."""
        return (entry.data["path"],) if entry.kind in ("worker.written", "file.seen") else ()

    def paths(self, source: Source) -> Iterator[str]:
        """Unreadable files, and those of workers that others run, by path."""
        ours = f"SELECT '{WORKER.folder}/' || name || '.md' FROM workers"
        sql = (
            f"SELECT path FROM files WHERE class <> 'evidence' AND path NOT IN ({ours}) ORDER BY 1"
        )
        return (path for (path,) in source.db.execute(sql))

    def evidence(self, source: Source) -> Iterator[str]:
        """Paths of evidence, which only ``rebuild --evidence`` writes."""
        sql = "SELECT path FROM files WHERE class = 'evidence' ORDER BY path"
        return (path for (path,) in source.db.execute(sql))

    def render(self, source: Source, path: str) -> File | None:
        """The bytes as they were taken in."""
        row = source.db.execute("SELECT seq, mode FROM files WHERE path = ?", (path,)).fetchone()
        if row is None:
            return None
        return File(source.content(source.body(row[0])["content"]), row[1])


FILES = TeamFiles()


COUNTED = "INSERT OR REPLACE INTO counted VALUES (0, ?, ?)"
_CHANNELS = (
    "SELECT channel, coalesce((SELECT number + 1 FROM lines l WHERE l.channel = c.channel"
    " AND l.seq <= ?1 ORDER BY number DESC LIMIT 1), 0) FROM channels c WHERE seq <= ?1"
)


class Counts(Projection):
    """``counts.json``. It counts the tables of other projections, which are folded before it."""

    name = "counts"
    path = COUNTS_FILE.path
    version = 1
    tables = ("counted",)
    ddl = """
CREATE TABLE counted (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL
) STRICT;
"""
    kinds = frozenset(
        ("ledger.opened", "decision.logged", "chat.created", "chat.sent", "chat.unreadable")
    )

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep the newest entry that is counted."""
        return (("counted", COUNTED, (entry.seq, entry.id), None),)

    def touched(self, entry: Entry) -> Iterable[str]:  # noqa: ARG002 - the protocol's signature
        """The one file."""
        return (self.path,)

    def paths(self, source: Source) -> Iterator[str]:
        """The one file, once the ledger is opened."""
        if source.db.execute("SELECT 1 FROM counted").fetchone():
            yield self.path

    def render(self, source: Source, path: str) -> File | None:
        """Decisions in all, by status, by log where one is not ``log.md``; messages by channel."""
        if path != self.path:
            return None
        newest = source.db.execute("SELECT seq, id FROM counted").fetchone()
        return None if newest is None else self.as_of(source, *newest)

    def as_of(self, source: Source, newest: int, entry_id: str) -> File:
        """What the file counted while ``newest`` was the newest of the entries that it counts."""
        statuses: Counter[str] = Counter()
        logs: Counter[str] = Counter()
        for log, status, count in source.db.execute(
            "SELECT log, status, count(*) FROM pieces WHERE id IS NOT NULL AND seq <= ?"
            " GROUP BY log, status",
            (newest,),
        ):
            statuses[status] += count
            logs[log] += count
        decisions: dict[str, object] = {"by_status": dict(statuses), "total": logs.total()}
        if logs.keys() - {LIVE}:
            decisions["by_log"] = dict(logs)
        channels = source.db.execute(_CHANNELS, (newest,)).fetchall()
        as_of = {"id": entry_id, "seq": newest}
        value = {"as_of": as_of, "decisions": decisions, "messages": dict(channels)}
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
        return File(text.encode() + b"\n", MODE)

    def older(self, source: Source, data: bytes, files: int) -> int | None:
        """How many entries the file showed if these are its bytes as of an earlier one, else None.

        A writer may have died before it wrote it: the files are known to show ``files`` entries.
        """
        try:
            value = json.loads(data)["as_of"]
            seq, entry_id = value["seq"], value["id"]
        except (ValueError, TypeError, LookupError, RecursionError):
            return None
        newest = source.db.execute("SELECT seq FROM counted").fetchone()
        if type(seq) is not int or newest is None or seq >= min(newest[0], files):
            return None
        kinds = (*self.kinds, "peer.entry")  # what a peer made may be counted, too
        newer = source.ledger.raw(seq + 1, files, kinds=kinds, limit=1)
        if next(newer, None) is None or source.ledger.seq_of(str(entry_id)) != seq:
            return None
        return seq + 1 if self.as_of(source, seq, str(entry_id)).data == data else None


COUNTS = Counts()


_ACTORS = ("actor.enrolled", "actor.revoked")


class Trust(Projection):
    """Keys, seals, anchors, forks, actors. Roots are 64 hex digits; ``forks.origin`` was left."""

    name = "trust"
    version = 2
    tables = ("keys", "seals", "anchors", "forks", "actors")
    newest_seal = "SELECT seq, size, root, note FROM seals ORDER BY seq DESC LIMIT 1"
    ddl = """
CREATE TABLE keys (
    seq INTEGER PRIMARY KEY,
    vkey TEXT NOT NULL
) STRICT;
CREATE TABLE seals (
    seq INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    root TEXT NOT NULL,
    note TEXT NOT NULL
) STRICT;
CREATE TABLE anchors (
    seq INTEGER PRIMARY KEY,
    method TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    root TEXT NOT NULL
) STRICT;
CREATE TABLE forks (
    seq INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    size INTEGER NOT NULL,
    root TEXT NOT NULL
) STRICT;
CREATE TABLE actors (
    seq INTEGER PRIMARY KEY,
    handle TEXT NOT NULL,
    number INTEGER NOT NULL,
    vkey TEXT NOT NULL,
    revoked INTEGER NOT NULL
) STRICT;
"""
    kinds = frozenset(("key.set", "seal.made", "anchor.received", "ledger.forked-from", *_ACTORS))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row an entry."""
        seq, body = entry.seq, entry.data
        if entry.kind == "seal.made":
            seal = (seq, body["size"], _root(body["note"]), body["note"])
            return (("seals", "INSERT INTO seals VALUES (?, ?, ?, ?)", seal, None),)
        if entry.kind == "key.set":
            return (("keys", "INSERT INTO keys VALUES (?, ?)", (seq, body["vkey"]), None),)
        if entry.kind == "anchor.received":
            anchor = (seq, body["method"], body["name"], body["size"], body["root"])
            return (("anchors", "INSERT INTO anchors VALUES (?, ?, ?, ?, ?)", anchor, None),)
        if entry.kind in _ACTORS:
            gone = entry.kind == "actor.revoked"
            change = (seq, body["handle"], body["number"], body["vkey"], gone)
            return (("actors", "INSERT INTO actors VALUES (?, ?, ?, ?, ?)", change, None),)
        fork = (seq, body["origin"], body["size"], body["root"])
        return (("forks", "INSERT INTO forks VALUES (?, ?, ?, ?)", fork, None),)


TRUST = Trust()


def _root(note: str) -> str:
    """The root that a seal's third line names, in hex."""
    from binascii import Error, a2b_base64

    try:
        root = a2b_base64(note.split("\n", 3)[2])
    except (Error, IndexError, ValueError):
        return ""
    return root.hex() if len(root) == 32 else ""


class Redactions(Projection):
    """The table of erased entries, and of the places of their text."""

    name = "redactions"
    version = 1
    tables = ("redactions",)
    ddl = """
CREATE TABLE redactions (
    seq INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    kind TEXT NOT NULL,
    place TEXT NOT NULL
) STRICT;
CREATE INDEX redactions_place ON redactions (place);
"""
    kinds = frozenset((REDACTED,))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep one row an erased entry; ``entry`` is the one that says so."""
        body = entry.data
        row = (body["seq"], entry.seq, body["kind"], place_of(body["kind"], body["keep"]))
        return (("redactions", "INSERT INTO redactions VALUES (?, ?, ?, ?)", row, None),)


REDACTIONS = Redactions()


def place_of(kind: str, body: dict[str, Any]) -> str:
    """Where a body's text stands: a path, folder/event, a run, a log (LookupError: it stays)."""
    from tripod.ledger.kinds.registry import BY_NAME  # for a redaction alone: it imports all kinds

    erasure = BY_NAME[kind].erasure
    if erasure is None:
        raise LookupError(kind)
    return erasure.place(body)


def redacted_rows_at(source: Source, path: str) -> list[tuple[int, str]]:
    """Number and kind of each erased entry whose text a file of this path showed.

    The place that an entry names does not change when its event is processed.
    """
    done = f"{EVENTS}/{PROCESSED}/"
    place = f"{EVENTS}/{path.removeprefix(done)}" if path.startswith(done) else path
    sql = "SELECT seq, kind FROM redactions WHERE place = ? AND kind <> 'file.displaced'"
    return list(source.db.execute(sql, (place,)))
