"""The manifest: what each file looked like when it last agreed with the ledger; its reader.

The manifest saves reading and proves nothing: an equal stat is trusted only when it was noted well
after the file's own time, else the bytes are hashed (the "racy" rule of git's index). Each row has
a digest over its columns, so that ``drift`` sees an altered one; it is derived data and ``rebuild``
makes it anew.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from tripod.ledger import CHAT, LOGS, WORKERS, Draft
from tripod.ledger.kinds.base import Kind
from tripod.ledger.progress import EACH, tell_progress
from tripod.projections import pieces
from tripod.projections.decisions.format import archived_decision_log
from tripod.projections.disk import KEPT, RACY_NS, Disk, DiskStat, UnmergedError, UnreadableError
from tripod.projections.layout import (
    CHAT_FILE,
    COUNTS_FILE,
    LOG_FILE,
    POLICY,
    SUPERVISOR,
    WORKER,
    FileClass,
    config_of,
)
from tripod.projections.projection import File, Source
from tripod.projections.spill import Spill, SpilledDigests

DDL = """
CREATE TABLE IF NOT EXISTS manifest (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    digest TEXT NOT NULL,
    noted_ns INTEGER NOT NULL,
    seal TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""


class ManifestEntry(NamedTuple):
    """A file as it was when it last agreed with the ledger; a folder has no digest."""

    stat: DiskStat
    digest: str
    noted_ns: int

    def settles(self, stat: DiskStat) -> bool:
        """Whether a stat alone shows that nothing changed (it never does when it is racy)."""
        return self.stat == stat and self.noted_ns - stat.mtime_ns > RACY_NS


Manifest = dict[str, ManifestEntry]


def manifest_row_seal(row: Sequence[object]) -> str:
    """Checksum of a row's columns but the last: 16 hex digits."""
    return sha256("\x00".join(map(str, row)).encode()).hexdigest()[:16]


_COLUMNS = "path, size, mtime_ns, inode, mode, digest, noted_ns, seal"


def load(db: sqlite3.Connection, where: str = "", *values: object) -> Manifest:
    """The rows whose seal holds; the others count as unknown."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM manifest{where}", values)
    return {row[0]: noted for row in rows if (noted := _noted(row)) is not None}


@lru_cache(256)
def _noted(row: tuple[Any, ...]) -> ManifestEntry | None:
    """What a row says, its path first and its seal last; None where the seal does not hold."""
    *rest, seal = row
    if seal != manifest_row_seal(rest):
        return None
    _, size, mtime_ns, inode, mode, digest, noted_ns = rest
    return ManifestEntry(DiskStat(size, mtime_ns, inode, mode), digest, noted_ns)


# The folders that are watched, then the files that may grow or be edited. No archive is among
# them, so this costs the same however many there are.
_WATCHED = f"""
WITH folders (path) AS (SELECT value FROM json_each(?1)), watched (path) AS (
    SELECT path FROM folders
    UNION ALL SELECT value FROM json_each(?2)
    UNION ALL SELECT '{CHAT}/' || channel || '.chat' FROM channels WHERE closed = 0
    UNION ALL SELECT '{LOGS}/' || file FROM logs WHERE file = log
    UNION ALL SELECT '{WORKERS}/' || name || '.md' FROM workers
    UNION ALL SELECT path FROM files WHERE class <> 'evidence'
    UNION ALL SELECT path FROM inputs
    UNION ALL SELECT m.path FROM folders AS f JOIN manifest AS m
        ON m.path > f.path || '/{KEPT}' AND m.path < f.path || '/{KEPT[:-1]}.')
SELECT w.path, m.size, m.mtime_ns, m.inode, m.mode, m.digest, m.noted_ns, m.seal
FROM watched AS w LEFT JOIN manifest AS m ON m.path = w.path"""


class NotedFiles:
    """The manifest of a database. A row is read, and its seal checked, when it is asked for."""

    def __init__(self, db: sqlite3.Connection, disk: Disk) -> None:
        """Nothing is read yet. ``disk`` is the team directory, whose folders are watched."""
        self._db = db
        self._disk = disk
        self._rows: dict[str, ManifestEntry | None] = {}
        self._watched: tuple[str, ...] = ()

    def watched(self) -> tuple[str, ...]:
        """The paths that a daily act looks at: folders, and files that may grow or be edited."""
        if not self._watched:
            places = self._disk.places
            folders = json.dumps([*places.queue_folders(), *listed_folders(self._disk)])
            inputs = (*map(config_of, places.queues()), SUPERVISOR.path, COUNTS_FILE.path)
            rows = self._db.execute(_WATCHED, (folders, json.dumps(inputs)))
            self._rows |= {row[0]: _noted(row) for row in rows}
            self._watched = tuple(self._rows)
        return self._watched

    def get(self, path: str) -> ManifestEntry | None:
        """What is noted of one path; None where nothing is."""
        if path not in self._rows:
            self.watched()
        if path not in self._rows:
            self._rows[path] = load(self._db, " WHERE path = ?", path).get(path)
        return self._rows[path]

    def whole(self) -> Manifest:
        """All that is noted."""
        return load(self._db)

    def in_folder(self, folder: str) -> set[str]:
        """The paths in a listed folder that are noted and of a class that is watched there."""
        front = f"{folder}/" if folder else POLICY.front
        sql = "SELECT path FROM manifest WHERE path >= ?1 AND path < ?1 || ?2"
        rows = self._db.execute(sql, (front, "\U0010ffff"))
        return {path for (path,) in rows if _is_listed(folder, path)}


def listed_folders(disk: Disk) -> list[str]:
    """The folders in which a name that comes or goes is noticed; '' is the team directory."""
    return [*disk.places.chat_folders(), *disk.places.log_folders(), WORKERS, ""]


def _class_in(folder: str) -> FileClass:
    """The class of the files that are watched in a listed folder."""
    classes = {CHAT: CHAT_FILE, LOGS: LOG_FILE, WORKERS: WORKER, "": POLICY}
    return classes[folder.partition("/")[0]]


def _is_listed(folder: str, path: str) -> bool:
    above, _, name = path.rpartition("/")
    return above == folder and _class_in(folder).holds(name)


def listed_paths(db: sqlite3.Connection, disk: Disk, folder: str) -> list[str]:
    """The paths of the files in a listed folder whose coming and going is noticed, in order."""
    if _class_in(folder) is LOG_FILE:
        return [path for path in manifest_watched_logs(db, disk) if _is_listed(folder, path)]
    front = f"{folder}/" if folder else ""
    return [path for name in disk.names(folder) if _is_listed(folder, path := front + name)]


def settle(looked: Manifest, now_ns: int) -> Manifest:
    """Of what a look found to be as it was, all that its stat alone settles from now on."""
    return {
        path: noted._replace(noted_ns=now_ns)
        for path, noted in looked.items()
        if now_ns - noted.stat.mtime_ns > RACY_NS
    }


def load_any_manifest(db: sqlite3.Connection) -> Manifest:
    """Load the manifest of a database that may lack the table, or has a view in its place."""
    try:
        sql = "SELECT type FROM sqlite_schema WHERE lower(name) = 'manifest'"
        return load(db) if db.execute(sql).fetchone() == ("table",) else {}
    except sqlite3.OperationalError:
        return {}


def forget_stats(known: Manifest) -> Manifest:
    """What was known of files, with none of their stats trusted: a disk may keep one and no bytes.

    That is so after a power cut.
    """
    return {path: item._replace(noted_ns=-(2**63)) for path, item in known.items()}


def save_manifest(db: sqlite3.Connection, known: Manifest, gone: Iterable[str] = ()) -> None:
    """Note files as they are now, and that those at ``gone`` are to be watched no more."""
    rows = [(path, *item.stat, item.digest, item.noted_ns) for path, item in sorted(known.items())]
    # By name: this table is not folded, so a rebuild would not mend one with a further column.
    sql = f"INSERT OR REPLACE INTO manifest ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    db.executemany(sql, [(*row, manifest_row_seal(row)) for row in rows])
    db.executemany("DELETE FROM manifest WHERE path = ?", [(path,) for path in gone])


def counted_entry(disk: Disk) -> tuple[int, str] | None:
    """The entry (seq, id) that the counts file says it counts; None where it says nothing such."""
    try:
        value = json.loads(disk.read(COUNTS_FILE.path, COUNTS_FILE.limit) or b"")
        seq, entry_id = value["as_of"]["seq"], value["as_of"]["id"]
    except (UnreadableError, ValueError, TypeError, LookupError, RecursionError):
        return None
    return (seq, entry_id) if type(seq) is int and type(entry_id) is str else None


def manifest_log_files(disk: Disk, known: Collection[str]) -> list[str]:
    """The names within ``scribe/`` of the markdown files that are a log or an archive, or may be.

    All of the team's own folder; of a folder that was added the ``known`` files, and what by its
    name is an archive of one: what else a person keeps there is nothing of the team's.
    """
    found = []
    for front in disk.places.logs():
        for name in disk.names(f"{LOGS}/{front}".rstrip("/")):
            full = front + name
            if name.endswith(".md") and (
                not front or full in known or archived_decision_log(full) in known
            ):
                found.append(full)
    return found


def manifest_watched_logs(db: sqlite3.Connection, disk: Disk) -> list[str]:
    """The paths of these files, as the tables know the logs."""
    known: set[str] = set()
    if len(disk.places.logs()) > 1:
        known = {name for (name,) in db.execute("SELECT file FROM logs")}
    return [f"{LOGS}/{name}" for name in manifest_log_files(disk, known)]


_RANKS = {"chat": 1, "decision": 2, "log": 2, "bus": 3}
"""By the first word of a kind: of pieces of one time, which comes first."""
_LATEST = 2**63 - 1  # µs; a later time is no time of anything


class Pieces:
    """The pieces that one look found, in the order in which they were found; memory stays flat."""

    def __init__(self) -> None:
        self._spill = Spill()
        self._newest: pieces.Piece | None = None  # it may still get another id
        self._latest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._spill) + (self._newest is not None)

    def __iter__(self) -> Iterator[pieces.Piece]:
        for when, *draft in self._spill:
            yield pieces.Piece(when, Draft(*draft))
        if self._newest is not None:
            yield self._newest

    def append(self, piece: pieces.Piece) -> None:
        """Add a piece behind the others."""
        self._settle()
        self._newest = piece

    @property
    def newest(self) -> pieces.Piece:
        """The piece that was added last (LookupError: nothing was added)."""
        if self._newest is None:
            raise LookupError("no piece was found")
        return self._newest

    def identify(self, entry_id: str) -> None:
        """Give the newest piece its id (LookupError: nothing was added)."""
        newest = self.newest
        self._newest = newest._replace(draft=newest.draft._replace(id=entry_id))

    def in_order(self) -> Iterator[Draft]:
        """The drafts in time order, each file's own order kept (its clock may have gone back).

        All decision logs are one stream: there, each log keeps its own order. Nothing is appended
        meanwhile.
        """
        self._settle()
        return (Draft(*draft) for _, *draft in self._spill.in_order())

    def _settle(self) -> None:
        if self._newest is None:
            return
        (claimed, draft), self._newest = self._newest, None
        stream = draft.stream
        if stream == "decisions":
            stream += f"/{draft.body.get('file', '')}"
        when = claimed if stream == "bus" else max(claimed, self._latest.get(stream, 0))
        self._latest[stream] = when
        # An event is published before it is acknowledged or pruned.
        late = draft.kind in ("bus.acked", "bus.pruned")
        rank = _RANKS.get(draft.kind.partition(".")[0], 0) + late
        self._spill.append((min(when, _LATEST), rank), (claimed, *draft))


class FoundPieces(pieces.Found):
    """The outcome of one look at the team directory."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = Pieces()
        self.digests = SpilledDigests()
        """Of the files that were read, by path: a later write of the act may replace these bytes,
        and no others."""


class Shown(NamedTuple):
    """How much of the ledger its files are known to show.

    ``files`` counts the entries that they show. Where that is less than ``size``, a writer died
    between its commit and its files: what they lack is not missing. ``noted`` is up to where that
    was known before the host was started anew, else 0: a power cut took the rest, and no writer
    died. Such a file shows an earlier state, and others may have added to that.
    """

    files: int = 2**62
    size: int = 0
    noted: int = 0

    @property
    def is_behind(self) -> bool:
        """Whether there are entries that the files are not known to show."""
        return self.files < self.size


class ManifestReader(NamedTuple):
    """What every part of the intake looks at, and where it puts what it finds."""

    source: Source
    disk: Disk
    found: FoundPieces
    rendered: Callable[[Source, str], File | None]
    """The file that the ledger has at a path, or None."""
    manifest: Manifest
    full: bool = True
    """Look at evidence and unknown files, too, which daily commands pass over."""
    shown: Shown = Shown()
    pruned: frozenset[str] = frozenset()
    """The processed events whose files that writer should have deleted."""
    restored: frozenset[str] = frozenset()
    """The files and folders that it should have written again."""
    remnants: Mapping[str, pieces.Remnant] = MappingProxyType({})
    """The files of which a power cut took a part: they are read as if it had not."""
    own: frozenset[str] = frozenset()
    """The files that we alone write: nothing is read back from them."""
    past: Callable[[Source, str, int, str], File | None] = lambda *_: None
    """The file that entries of one stream before a number gave for a path, or None."""

    def load(
        self, path: str, limit: int = pieces.FILE_LIMIT, *, fresh: bool = False
    ) -> bytes | None:
        """The bytes of a file, None if absent; ``fresh``: also None if they are as the ledger has.

        Raises UnreadableError, TooBigError (``limit``), or UnmergedError: its conflict markers are
        a conflict already, and its digest is not kept, since nobody may write over these bytes.
        """
        known = self.manifest.get(path)
        if fresh and ((stat := self.disk.stat(path)) is None or self.unchanged(path, stat)):
            return None
        data = self.disk.read(path, limit)
        if data is None:
            return None
        if pieces.merge_marker_in_piece(path, data) is not None:
            want = self.rendered(self.source, path)
            line = pieces.merge_marker_in_piece(path, data, b"" if want is None else want.data)
            if line is not None:
                detail = f"line {line} is a conflict marker of a merge that is not finished"
                self.conflict(path, pieces.UNMERGED, detail)
                raise UnmergedError(f"{path}: {detail}")
        digest = self.found.digests[path] = sha256(data).hexdigest()
        remnant = self.remnants.get(path)
        if remnant is not None and remnant.digest == digest:
            return remnant.whole
        return None if fresh and known is not None and known.digest == digest else data

    def read(
        self, path: str, limit: int = pieces.FILE_LIMIT, *, fresh: bool = False
    ) -> bytes | None:
        """What ``load`` gives; None and a conflict where it raises."""
        try:
            return self.load(path, limit, fresh=fresh)
        except UnreadableError as error:
            self.conflict(path, "unreadable", str(error))
            return None

    def check(self, path: str, problem: str) -> None:
        """Report a file that never changes, where it is not as the ledger has it."""
        data = self.read(path, fresh=True)
        want = None if data is None else self.rendered(self.source, path)
        if data is not None and (want is None or want.data != data):
            self.conflict(path, "edited", problem)

    def unwritten(self, seq: int) -> bool:
        """Whether the files are not known to show the entry ``seq`` yet."""
        return self.shown.is_behind and seq >= self.shown.files

    def unchanged(self, path: str, stat: DiskStat) -> bool:
        """Whether the stat alone settles that nothing changed."""
        known = self.manifest.get(path)
        return known is not None and known.settles(stat)

    def conflict(self, path: str, what: str, detail: str) -> None:
        """Report what is not taken in."""
        self.found.conflicts.append(pieces.Conflict(path, what, detail))

    def older(self, path: str, size: int) -> None:
        """Report a file that is as it was after the first ``size`` entries."""
        self.found.shown = max(size, self.found.shown or 0)
        self.conflict(path, pieces.OLDER_STATE, f"it is as it was as of entry {size - 1}")

    def missing(self, path: str, seq: int, detail: str) -> None:
        """Report a file that is not there, and that the entry ``seq`` made.

        Where other files show a state in which it was not there yet, nobody removed it.
        """
        shown = self.found.shown
        if shown is not None and seq >= shown:
            self.conflict(path, pieces.OLDER_STATE, f"it was not there yet as of entry {shown - 1}")
        else:
            self.conflict(path, "missing", detail)

    def is_kept(self, path: str) -> bool:
        """Whether the bytes that were read at a path are kept already, as no file of the team."""
        sql = "SELECT sha256 FROM files WHERE path = ?"
        held = self.source.db.execute(sql, (path,)).fetchone()
        return held is not None and held[0] == self.found.digests.get(path)

    def add(
        self, kind: Kind[Any], body: dict[str, Any], path: str, data: bytes, when: int, **more: Any
    ) -> None:
        """Add a piece to what was found; ``more`` as ``pieces.piece_draft`` takes it."""
        self.found.pieces.append(
            pieces.Piece(when, pieces.piece_draft(kind, body, path, data, **more))
        )
        if not len(self.found.pieces) % EACH:
            tell_progress("reading the team's files", len(self.found.pieces))

    def keep(self, kind: Kind[Any], path: str, data: bytes, problem: str | None = None) -> None:
        """Keep a state of a file whole."""
        stat = self.disk.stat(path)
        if stat is None:
            return
        self.found.files += 1
        digest = sha256(data).hexdigest()
        body: dict[str, Any] = {"content": data, "path": path, "sha256": digest}
        body |= {"size": len(data), "problem": problem}
        sql = "SELECT seq FROM files WHERE path = ?"
        last = self.source.db.execute(sql, (path,)).fetchone()
        when = stat.mtime_us
        more = {"ordinal": last[0] if last else 0, "mtime_us": when, "mode": stat.mode}
        self.add(kind, body, path, data, when, claim="mtime", **more)

    def erased_since(self, place: str, kinds: Sequence[str]) -> list[int]:
        """Entries that were erased, and of which the file at ``place`` may still show the text."""
        if not self.shown.is_behind:
            return []
        sql = "SELECT seq, kind FROM redactions WHERE place = ? AND entry >= ?"
        rows = self.source.db.execute(sql, (place, self.shown.files))
        return [seq for seq, kind in rows if kind in kinds]
