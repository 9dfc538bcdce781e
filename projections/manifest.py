"""The manifest: what each file looked like when it last agreed with the ledger.

Every command first asks whether anything on disk may have changed, by a few stats and without
parsing. A "no" lets the hot commands skip the intake; a "yes" costs a full look. It errs towards
looking.

The manifest saves reading and proves nothing: an equal stat is trusted only when it was noted well
after the file's own time, else the bytes are hashed (the "racy" rule of git's index). Each row has
a digest over its columns, so that ``drift`` sees an altered one; it is derived data and ``rebuild``
makes it anew.
"""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from tripod.projections import layout
from tripod.projections.bus.tables import in_folder
from tripod.projections.decisions.tables import DecisionLog, archived_log
from tripod.projections.disk import KEPT, RACY_NS, Disk, Stat, UnreadableError

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

    stat: Stat
    digest: str
    noted_ns: int


Manifest = dict[str, ManifestEntry]


def seal_of(row: Sequence[object]) -> str:
    """Checksum of a row's columns but the last: 16 hex digits."""
    return sha256("\x00".join(map(str, row)).encode()).hexdigest()[:16]


def load(db: sqlite3.Connection) -> Manifest:
    """The rows whose seal holds; the others count as unknown."""
    known: Manifest = {}
    for *row, seal in db.execute(
        "SELECT path, size, mtime_ns, inode, mode, digest, noted_ns, seal FROM manifest"
    ):
        if seal == seal_of(row):
            path, size, mtime_ns, inode, mode, digest, noted_ns = row
            known[path] = ManifestEntry(Stat(size, mtime_ns, inode, mode), digest, noted_ns)
    return known


def load_any(db: sqlite3.Connection) -> Manifest:
    """Load the manifest of a database that may lack the table, or has a view in its place."""
    try:
        sql = "SELECT type FROM sqlite_schema WHERE lower(name) = 'manifest'"
        if db.execute(sql).fetchone() != ("table",):
            return {}
        return load(db)
    except sqlite3.OperationalError:
        return {}


def save(db: sqlite3.Connection, known: Manifest, gone: Iterable[str] = ()) -> None:
    """Note files as they are now, and that those at ``gone`` are to be watched no more."""
    rows = [(path, *item.stat, item.digest, item.noted_ns) for path, item in sorted(known.items())]
    db.executemany(
        "INSERT OR REPLACE INTO manifest"
        " (path, size, mtime_ns, inode, mode, digest, noted_ns, seal)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(*row, seal_of(row)) for row in rows],
    )
    db.executemany("DELETE FROM manifest WHERE path = ?", [(path,) for path in gone])


def forget(db: sqlite3.Connection) -> None:
    """Trust no file until it was read again."""
    db.execute("DELETE FROM manifest")


# Quiet ------------------------------------------------------------------------------------------


_SINGLE = (*layout.SUPERVISOR.names, *layout.COUNTS_FILE.names)
_READ_LIMIT = 64 * 1024 * 1024


def is_quiet(
    db: sqlite3.Connection,
    disk: Disk,
    known: Manifest,
    *,
    looked: list[str] | None = None,
    uncounted: list[str] | None = None,
) -> bool:
    """Whether all that is watched looks as it did when it last agreed with the ledger.

    ``looked`` collects the paths whose stat did not settle it and that were looked into: noted
    anew, they will be settled by their stat. ``uncounted``, where it is given, collects the
    queue's folders that nothing but a count would settle: they are left to the next that counts.
    """
    seen: list[str] = [] if looked is None else looked
    for folder in disk.places.queue_folders():
        racy = _folder_racy(disk, known, folder)
        if racy and uncounted is not None:
            uncounted.append(folder)
            continue
        if racy is None or (racy and not _counted(db, disk, folder)):
            return False
        if racy:
            seen.append(folder)
    expected = {path for path in known if path.endswith((".chat", ".md")) and "/" in path}
    paths = [
        f"{folder}/{name}"
        for folder, ends in (
            *((folder, layout.CHAT_FILE.ends) for folder in disk.places.chat_folders()),
            (layout.WORKER.folder, layout.WORKER.ends),
        )
        for name in disk.names(folder)
        if name.endswith(ends)
    ]
    paths += watched_logs(db, disk)
    if expected - set(paths):
        return False
    (name,) = layout.CONFIG.names
    configs = [f"{layout.CONFIG.folder}/{queue}{name}" for queue in disk.places.queues()]
    inputs = [*configs, *_SINGLE, *(name for name in disk.names("") if layout.POLICY.holds(name))]
    # A name among the events that is watched as a file could not be read when it was taken in.
    # A file that was replaced while others had it open may still grow.
    inputs += [
        path
        for path in known
        if path.startswith("policy") or path.endswith(".event") or f"/{KEPT}" in path
    ]
    return all(_file_quiet(disk, known, seen, path) for path in (*paths, *inputs))


def _file_quiet(disk: Disk, known: Manifest, looked: list[str], path: str) -> bool:
    stat = disk.stat(path)
    noted = known.get(path)
    if stat is None or noted is None:
        return stat is None and noted is None
    if noted.stat == stat and noted.noted_ns - stat.mtime_ns > RACY_NS:
        return True
    if stat.size != noted.stat.size or stat.mode != noted.stat.mode or stat.size > _READ_LIMIT:
        return False
    try:
        data = disk.read(path, _READ_LIMIT)
    except UnreadableError:
        return False
    if noted.stat == stat:
        looked.append(path)
    return data is not None and sha256(data).hexdigest() == noted.digest


def _folder_racy(disk: Disk, known: Manifest, folder: str) -> bool | None:
    """None where the folder changed; else whether its equal stat settles nothing yet."""
    stat = disk.stat(folder)
    noted = known.get(folder)
    if stat is None or noted is None:
        return False if stat is None and noted is None else None
    if noted.stat != stat:
        return None
    return noted.noted_ns - stat.mtime_ns <= RACY_NS


def _counted(db: sqlite3.Connection, disk: Disk, folder: str) -> bool:
    """Whether as many event files stand in a folder as the ledger has there.

    A foreign file that came and another that went within one tick of the file clock escape this
    look; the next command that finds the folder changed sees them, and ``sync`` and ``verify`` do.
    """
    where, values = in_folder(folder, alone=not disk.places.added)
    sql = f"SELECT count(*) FROM events WHERE {where}"
    expected: int = db.execute(sql, values).fetchone()[0]
    unread: int = db.execute(
        "SELECT count(*) FROM files WHERE class = 'seen' AND path LIKE ? AND path NOT LIKE ?",
        (f"{folder}/%", f"{folder}/%/%"),
    ).fetchone()[0]
    return disk.count(folder, ".event") == expected + unread


def log_files(disk: Disk, known: Collection[str]) -> list[str]:
    """The names within ``scribe/`` of the markdown files that are a log or an archive, or may be.

    All of the team's own folder; of a folder that was added the ``known`` files, and what by its
    name is an archive of one: what else a person keeps there is nothing of the team's.
    """
    found = []
    for front in disk.places.logs():
        for name in disk.names(f"{DecisionLog.folder}/{front}".rstrip("/")):
            full = front + name
            if name.endswith(".md") and (not front or full in known or archived_log(full) in known):
                found.append(full)
    return found


def watched_logs(db: sqlite3.Connection, disk: Disk) -> list[str]:
    """The paths of these files, as the tables know the logs."""
    known: set[str] = set()
    if len(disk.places.logs()) > 1:
        known = {name for (name,) in db.execute("SELECT file FROM logs")}
    return [f"{DecisionLog.folder}/{name}" for name in log_files(disk, known)]
