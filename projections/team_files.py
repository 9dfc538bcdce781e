"""What the team's folder holds besides bus, chat and log: workers' files, inputs, evidence.

``workers/*.md`` and files that could not be read as what their place says are projections (their
bytes come back with ``rebuild``). Inputs that people edit are never written. Logs are evidence:
kept by digest, given back only when asked (design, section 6, "which file is what").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ledger.entry import Entry
from projections.disk import Disk
from projections.projection import File, Op, Source, content_bytes
from projections.workers import FOLDER

MODE = 0o644

_REPLACED = "DELETE FROM files WHERE class = 'seen' AND path = ?"
_FILE = (
    "INSERT OR REPLACE INTO files (path, class, seq, sha256, size, mode) VALUES (?, ?, ?, ?, ?, ?)"
)


def odd_config(disk: Disk, path: str) -> str | None:
    """Why the configuration at ``path`` is not read though something stands there; None: it is."""
    odd = disk.odd(path)
    return None if odd is None else f"is {odd}; the defaults hold until it is a regular file"


class TeamFiles:
    """See the module."""

    name = "workers"
    version = 1
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
        (
            "ledger.opened",
            "ledger.adopted",
            "worker.written",
            "evidence.kept",
            "file.seen",
            "config.changed",
            "chat.cursors-seen",
            "bus.published",
            "bus.acked",
            "bus.pruned",
            "chat.created",
        )
    )

    def __init__(self, processed: str = "events/processed") -> None:
        """``processed`` is the folder of acknowledged events within the team directory."""
        self.processed = processed

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep the newest state of each file, by its path."""
        body = entry.data
        if entry.kind in ("bus.published", "bus.acked", "bus.pruned", "chat.created"):
            return self._replaced(entry)
        if entry.kind == "ledger.opened":
            words = (body["project"], body["scribe"], body["created"], body["events"], body["chat"])
            sql = "INSERT OR IGNORE INTO team VALUES (0, ?, ?, ?, ?, ?, NULL)"
            return (("team", sql, words, None),)
        if entry.kind == "ledger.adopted":
            return (("team", "UPDATE team SET adopted = coalesce(adopted, ?)", (entry.seq,), None),)
        if entry.kind == "config.changed":
            settings = body.get("settings")
            digest = body["sha256"]
            text = None if settings is None else json.dumps(settings, sort_keys=True)
            found = body.get("problems")
            problems = json.dumps(found, sort_keys=True) if found else None
            sql = "INSERT OR REPLACE INTO inputs VALUES (?, ?, ?, ?, ?)"
            return (("inputs", sql, (body["path"], entry.seq, digest, text, problems), None),)
        if entry.kind == "chat.cursors-seen":
            sql = "INSERT OR REPLACE INTO read_positions (channel, seq, sha256) VALUES (?, ?, ?)"
            return (("read_positions", sql, (body["channel"], entry.seq, body["sha256"]), None),)
        classes = {"worker.written": "worker", "evidence.kept": "evidence", "file.seen": "seen"}
        path = body["path"]
        mode = body["observed"].get("mode", MODE)
        row = (path, classes[entry.kind], entry.seq, body["sha256"], body["size"], mode)
        return (("files", _FILE, row, None),)

    def _replaced(self, entry: Entry) -> Iterable[Op]:
        """Where an event or a chat now stands, an unreadable file was kept before: no more."""
        body = entry.data
        if entry.kind == "bus.acked":
            return (("files", _REPLACED, (f"{self.processed}/{body['name']}",), None),)
        if entry.kind == "bus.pruned":
            return [("files", _REPLACED, (f"{self.processed}/{n}",), None) for n in body["names"]]
        path = body["observed"].get("path") if "observed" in body else None
        return () if path is None else (("files", _REPLACED, (path,), None),)

    def touched(self, entry: Entry) -> Iterable[str]:
        """The file itself, where it is a projection."""
        if entry.kind in ("worker.written", "file.seen"):
            return (entry.data["path"],)
        return ()

    def paths(self, source: Source) -> Iterator[str]:
        """Unreadable files, and those of workers that others run, by path."""
        rows = source.db.execute(
            "SELECT path FROM files WHERE class <> 'evidence' AND path NOT IN"
            f" (SELECT '{FOLDER}/' || name || '.md' FROM workers) ORDER BY path"
        )
        for (path,) in rows:
            yield path

    def evidence(self, source: Source) -> Iterator[str]:
        """Paths of evidence, which only ``rebuild --evidence`` writes."""
        rows = source.db.execute("SELECT path FROM files WHERE class = 'evidence' ORDER BY path")
        for (path,) in rows:
            yield path

    def render(self, source: Source, path: str) -> File | None:
        """The bytes as they were taken in."""
        row = source.db.execute("SELECT seq, mode FROM files WHERE path = ?", (path,)).fetchone()
        if row is None:
            return None
        return File(content_bytes(source, source.body(row[0])["content"]), row[1])
