"""Step 5 of an act: the files are made to show what the ledger says. Only ``tripod.team`` uses it.

Others may write the same files at any moment. What stands in a file's place is written over only
if we know those bytes: rendered by us before, read by the intake of this very act, or kept in the
ledger as displaced. It is looked at once more right before the rename; anything else stays, is
``late``, and the team takes it in and writes again. Between that look and the rename a write can
still slip in, a matter of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from hashlib import sha256

from ledger.entry import Entry
from ledger.progress import over
from ledger.redaction import REDACTED
from ledger.sqlite import SQLiteStore
from projections import BUS, CHAT, LOG, PROJECTIONS, manifest
from projections.counts import PATH as COUNTS_PATH
from projections.decision_log import LIVE
from projections.disk import RACY_NS, Disk, Stat, UnreadableError
from projections.in_the_way import in_the_way
from projections.projection import File, Source
from projections.rebuild import desired

__all__ = ["Files", "digest_of", "touched_by"]

READ_LIMIT = 2**30
FOLDERS = ("", BUS.folder, f"{BUS.folder}/processed", CHAT.folder, LOG.folder, "workers")
MANY = 100  # files; from there on the disk is waited for once a group
GROUP = 2000
WATCHED = (BUS.folder, f"{BUS.folder}/processed")


def touched_by(entries: Iterable[Entry], source: Source) -> dict[str, None]:
    """Paths that entries may have changed, in order; of acknowledged events both places.

    Of a redaction: those that show what stands for the erased body now.
    """
    paths: dict[str, None] = {}
    for entry in entries:
        if entry.kind == "bus.acked-all":
            for name in BUS.moved_by(source, entry.seq):
                paths[f"{BUS.folder}/{name}"] = paths[f"{BUS.folder}/processed/{name}"] = None
        if entry.kind == REDACTED:
            from projections.withheld import places

            erased = places(source, entry.data["kind"], entry.data["keep"])
            paths.update((path, None) for path in erased if desired(source, path) is not None)
        for projection in PROJECTIONS:
            if entry.kind in projection.kinds:
                paths.update(dict.fromkeys(projection.touched(entry)))
    return paths


def digest_of(disk: Disk, path: str) -> str:
    """SHA-256 of a file's bytes; '' where there is none, and where it cannot be read."""
    try:
        data = disk.read(path, READ_LIMIT)
    except UnreadableError:
        return ""
    return "" if data is None else sha256(data).hexdigest()


class Files:
    """The files of one act: what may be written over, what was written, what could not be."""

    def __init__(self, disk: Disk, store: SQLiteStore, source: Source) -> None:
        self.disk = disk
        self.store = store
        self.source = source
        self.known: manifest.Manifest = {}
        self.agreed: manifest.Manifest = {}
        self.digests: dict[str, set[str]] = {}
        self.held: set[str] = set()
        self.uncounted: set[str] = set()
        self.late: dict[str, None] = {}
        self.failed: dict[str, str] = {}
        self._written: dict[str, tuple[Stat, str]] = {}
        self._folders: set[str] = set()
        self._staged: list[tuple[str, File]] = []

    def begin(self, known: manifest.Manifest, held: Iterable[str]) -> None:
        """A new act: what was known of the files, and whose original locks it holds."""
        self.known = known
        self.agreed = {}
        self.held = set(held)
        self.uncounted.clear()
        self.digests.clear()
        self.late.clear()
        self.failed.clear()
        self._written.clear()
        self._folders.clear()

    def account(self, path: str, digest: str) -> None:
        """These bytes of a file are in the ledger: they may be written over."""
        self.digests.setdefault(path, set()).add(digest)

    def is_ours(self, path: str, digest: str) -> bool:
        """Whether a file's bytes may be written over; '' stands for no file."""
        return not digest or path == COUNTS_PATH or self.is_accounted(path, digest)

    def is_accounted(self, path: str, digest: str) -> bool:
        """Whether we know these bytes of a file: written by us, or taken in."""
        noted = self.known.get(path)
        return (noted is not None and noted.digest == digest) or digest in self.digests.get(
            path, ()
        )

    # Writing -----------------------------------------------------------------------------------

    def project(self, entries: Iterable[Entry], also: Iterable[str] = ()) -> None:
        """Bring every file that ``entries`` may have changed to what the ledger says."""
        paths: dict[str, None] = dict.fromkeys(also)
        for entry in entries:
            if entry.kind == "bus.acked-all":
                self._move(BUS.moved_by(self.source, entry.seq))
            elif entry.kind == "bus.acked":
                self._move([entry.data["name"]])
            else:
                paths.update(touched_by((entry,), self.source))
        many = len(paths) > MANY
        for path in over(paths, "writing files", len(paths)):
            if many and self.disk.stat(path) is None:
                self._stage(path)
            else:
                self._write(path)
        self._publish_staged()
        for folder in sorted(self._folders):
            self._try(folder, lambda: self.disk.sync_folder(folder))  # noqa: B023 - called at once

    def _try(self, path: str, work: Callable[[], None]) -> None:
        """What the disk refuses stays to be done: the entries are safe, so nothing is lost."""
        try:
            work()
        except (OSError, UnreadableError) as error:
            self.failed[path] = str(getattr(error, "strerror", None) or error)

    def _write(self, path: str) -> None:
        want = desired(self.source, path)
        self._try(path, lambda: self._remove(path) if want is None else self._put(path, want))

    def _stage(self, path: str) -> None:
        """One of many files that are to be written where none stands."""
        want = desired(self.source, path)
        if want is not None:
            self._staged.append((path, want))
        if len(self._staged) >= GROUP:
            self._publish_staged()

    def _publish_staged(self) -> None:
        staged, self._staged = self._staged, []
        if staged:
            self._try(staged[0][0], lambda: self._publish_all(staged))

    def _publish_all(self, staged: list[tuple[str, File]]) -> None:
        for (path, want), stat in zip(staged, self.disk.write_missing(staged), strict=True):
            if stat is None:
                self.late[path] = None
            else:
                if not path.endswith(".event"):  # no single event is noted: there may be 50,000
                    self._written[path] = (stat, sha256(want.data).hexdigest())
                self._folders.add(path.rpartition("/")[0])

    def _remove(self, path: str) -> None:
        if self.disk.is_file(path):
            self.disk.remove(path)
            self._folders.add(path.rpartition("/")[0])

    def _put(self, path: str, want: File) -> None:
        digest = sha256(want.data).hexdigest()
        stat = self.disk.stat(path)
        odd = None if stat is not None else in_the_way(self.disk, path)
        if odd is not None:  # it came while we did, or since who recorded this died
            message = f"{odd} stands there, and would be replaced: remove it"
            raise UnreadableError(message)
        like = stat is not None and (stat.mode, stat.size) == (want.mode, len(want.data))
        if stat is not None and like and self.disk.read(path, stat.size) == want.data:
            self._written[path] = (stat, digest)
            return
        with ExitStack() as locks:
            if stat is not None and path not in self.held and _has_foreign_lock(path):
                lock = self.disk.foreign_lock(path, wait=False)
                if not locks.enter_context(lock):
                    self.late[path] = None
                    return
            written = self.disk.write(
                path, want, sync=False, unless=lambda: self._is_foreign(path, digest)
            )
        if written is None:
            self.late[path] = None
        else:
            self._written[path] = (written, digest)
            self._folders.add(path.rpartition("/")[0])

    def _is_foreign(self, path: str, want: str) -> bool:
        """Whether bytes stand there that nobody has taken in yet."""
        have = self.disk.read(path, READ_LIMIT)
        if have is None:
            return False
        digest = sha256(have).hexdigest()
        return digest != want and not self.is_ours(path, digest)

    def _move(self, names: Sequence[str]) -> None:
        """Acknowledged events go to ``processed/`` as they are."""
        queue, done = BUS.folder, f"{BUS.folder}/processed"
        self._try(done, lambda: self.disk.make_folder(done))
        self._folders.update((queue, done))
        for name in names:
            self._try(f"{done}/{name}", lambda: self._moved(name))  # noqa: B023 - called at once

    def _moved(self, name: str) -> None:
        queue, done = f"{BUS.folder}/{name}", f"{BUS.folder}/processed/{name}"
        if not self.disk.is_file(queue):
            self._write(done)
        elif self._is_foreign(done, ""):
            self.late[done] = None
        elif not self.disk.move(queue, done):
            self._write(done)

    def clear(self) -> None:
        """Remove what writers left that died before their rename: we are the sole writer."""
        for folder in FOLDERS:
            self._try(folder, lambda: self.disk.clear(folder))  # noqa: B023 - called at once

    # Noting ------------------------------------------------------------------------------------

    def note(self, seen_ns: int, apart: Iterable[str]) -> manifest.Manifest:
        """What the growing files and watched folders look like, now that they agree.

        All is noted as of ``seen_ns``, when this act began to look: what others changed since
        then is younger, and will be looked at. ``apart`` are files that contradict the ledger.
        """
        noted: manifest.Manifest = {}
        left_out = {*apart, *self.late, *self.failed}
        for path in over(self._watched(), "looking at the files again"):
            stat = self.disk.stat(path)
            if stat is None or path in left_out:
                continue
            known = self.known.get(path)
            if known is not None and known.stat == stat:
                if path in self.uncounted:
                    continue
                if known.noted_ns - stat.mtime_ns <= RACY_NS < seen_ns - stat.mtime_ns:
                    noted[path] = known._replace(noted_ns=seen_ns)
                continue
            stat, digest = self._written.get(path) or (stat, self._agreed(path, stat))
            if path in WATCHED or digest:
                noted[path] = manifest.Known(stat, digest, seen_ns)
        return noted

    def _agreed(self, path: str, stat: Stat) -> str:
        """Digest of a file that is as the ledger has it; '' where it is not."""
        if path in WATCHED:
            return ""
        if path in self.agreed and self.agreed[path].stat == stat:
            return self.agreed[path].digest
        digest = digest_of(self.disk, path)
        row = self.store.db.execute("SELECT sha256 FROM inputs WHERE path = ?", (path,)).fetchone()
        if row is not None:
            return digest if row[0] == digest else ""
        want = desired(self.source, path)
        return digest if want is not None and sha256(want.data).hexdigest() == digest else ""

    def _watched(self) -> list[str]:
        paths = [*WATCHED, COUNTS_PATH]
        chats = self.disk.names(CHAT.folder)
        paths += [f"{CHAT.folder}/{name}" for name in chats if name.endswith(".chat")]
        paths += [f"{LOG.folder}/{n}" for n in self.disk.names(LOG.folder) if n.endswith(".md")]
        for table in ("inputs", "files"):
            rows = self.store.db.execute(f"SELECT path FROM {table}")
            paths += [path for (path,) in rows]
        return paths


def _has_foreign_lock(path: str) -> bool:
    """Whether the original tools lock this file while they rewrite it."""
    return path == f"{LOG.folder}/{LIVE}" or (
        path.startswith(f"{CHAT.folder}/") and path.endswith(".chat")
    )
