"""Step 5 of an act: write the files so that they show what the ledger says.

Only ``tripod.team.team`` uses this module.

Others may write the same files at any moment. What stands in a file's place is replaced only if we
know those bytes: rendered by us before, read by the intake of this very act, or kept in the ledger
as displaced. Anything else stays, is ``late``, and the team takes it in and writes again. What
others wrote between that look and the exchange comes back with the old file
(``tripod.projections.swap``), is late as well, and waits beside the new one until it is in the
ledger. The log only grows: it is appended to, and whether others did so in between is seen by where
our bytes went.

Which files an entry may have changed.

What is to be said of files behind an act: what could not be written, or not surely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from errno import EISDIR
from hashlib import sha256

from tripod.ledger import REDACTED, Entry
from tripod.ledger.progress import over
from tripod.ledger.sqlite.store import SQLiteStore
from tripod.projections import (
    BUS,
    CHAT,
    COUNTS,
    LOG,
    LOG_FILE,
    PROJECTIONS,
    RACY_NS,
    Disk,
    File,
    Source,
    Stat,
    UnmergedError,
    UnreadableError,
    class_of,
    desired,
    in_the_way,
    manifest,
)
from tripod.projections.bus.tables import name_us
from tripod.projections.decisions.format import parse_log_archive_name
from tripod.projections.decisions.tables import watched_logs


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
            from tripod.projections.erasure import places

            erased = places(source, entry.data["kind"], entry.data["keep"])
            paths.update((path, None) for path in erased if desired(source, path) is not None)
        for projection in PROJECTIONS:
            if entry.kind in projection.kinds:
                paths.update(dict.fromkeys(projection.touched(entry)))
    return paths


# Files ------------------------------------------------------------------------------------------


READ_LIMIT = 2**30
SOME = 16  # files; from there on the disk is waited for once for all that are new
MANY = 100  # events; from there on they are moved with one look at the folders
GROUP = 2000
NEVER = -(2**31)
_GROWING = ("chat.sent", "decision.logged")


def _by_queue(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of events by what they begin with: '' those of the team's own queue."""
    queues: dict[str, list[str]] = {}
    for name in names:
        queues.setdefault(name[: name.rfind("/") + 1], []).append(name)
    return queues


def _queue_folders(front: str) -> tuple[str, str]:
    """The folder of a queue, and that of its processed events."""
    front = front.rstrip("/")
    return f"{BUS.folder}/{front}".rstrip("/"), f"{BUS.folder}/processed/{front}".rstrip("/")


def digest_of(disk: Disk, path: str) -> str:
    """SHA-256 of a file's bytes; '' if absent, and where it cannot be read."""
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
        self.unmerged: dict[str, str] = {}
        self.displaced: set[str] = set()
        self.settled: set[str] = set()
        self.taken: set[str] = set()
        self.is_weak = False
        self._open: dict[str, tuple[Stat, str]] = {}
        self._written: dict[str, tuple[Stat, str]] = {}
        self._folders: set[str] = set()
        self._staged: list[tuple[str, File]] = []
        self._bases: dict[str, bytes] = {}

    def begin(self, known: manifest.Manifest, held: Iterable[str]) -> None:
        """A new act: what was known of the files, and whose original locks it holds."""
        self.known = known
        self.agreed = {}
        self.held = set(held)
        self.uncounted.clear()
        self.digests.clear()
        self.late.clear()
        self.failed.clear()
        self.unmerged.clear()
        self.displaced.clear()
        self.settled.clear()
        self.taken.clear()
        self._open.clear()
        self._written.clear()
        self._folders.clear()
        self._bases.clear()

    def account(self, path: str, digest: str) -> None:
        """These bytes of a file are in the ledger: they may be written over."""
        self.digests.setdefault(path, set()).add(digest)

    def keep_open(self, path: str, data: bytes) -> None:
        """A replaced file that others may still write into: it is looked at by later commands."""
        stat = self.disk.stat(path)
        if stat is not None:
            self._open[path] = (stat, sha256(data).hexdigest())

    def drop(self, path: str) -> None:
        """A replaced file whose bytes are all in the ledger goes."""
        self.disk.remove(path)
        self.settled.add(path)

    def wrote(self, path: str, stat: Stat, digest: str) -> None:
        """A file that no projection renders was written, and looks so."""
        self._written[path] = (stat, digest)

    def is_ours(self, path: str, digest: str) -> bool:
        """Whether a file's bytes may be written over; '' stands for no file."""
        return not digest or path == COUNTS.path or self.is_accounted(path, digest)

    def is_accounted(self, path: str, digest: str) -> bool:
        """Whether we know these bytes of a file: written by us, or taken in."""
        noted = self.known.get(path)
        return (noted is not None and noted.digest == digest) or digest in self.digests.get(
            path, ()
        )

    # Events that are acknowledged --------------------------------------------------------------

    def take_events(self, names: Sequence[str]) -> list[str]:
        """Move events to ``processed/`` before their acknowledgement is final; give the others.

        Of all who try, whatever program they run, one can: the rename decides. Dead before the
        COMMIT: the next command finds the files moved, as another program moves them. ``give_back``
        undoes it where nothing is recorded. The others are those whose file is not in the queue;
        one whose place is taken by another file is moved after the COMMIT.
        """
        left: list[str] = []
        for front, its in _by_queue(names).items():
            left += self._take_from(front, its)
        return [name for name in left if not self.disk.is_file(f"{BUS.folder}/{name}")]

    def _take_from(self, front: str, names: list[str]) -> list[str]:
        queue, done = _queue_folders(front)
        try:
            self.disk.make_folder(done)
            if len(names) <= MANY:
                return [name for name in names if not self._take(name)]
            from tripod.projections import move_all

            files = [name[len(front) :] for name in names]
            left = [front + file for file in move_all(self.disk, queue, done, files)]
            self.taken.update(set(names) - set(left))
        except OSError:  # what could not be moved here is tried, and told, after the COMMIT
            return names
        return left

    def _take(self, name: str) -> bool:
        queue, done = f"{BUS.folder}/{name}", f"{BUS.folder}/processed/{name}"
        if self.disk.stands(done) or not self.disk.move(queue, done):
            return False
        self.taken.add(name)
        return True

    def give_back(self) -> None:
        """Put the events back that were taken for acknowledgements that are not recorded."""
        queue, done = BUS.folder, f"{BUS.folder}/processed"
        for name in self.taken:
            with suppress(OSError):  # then it stays, as one that another program moved
                if not self.disk.stands(f"{queue}/{name}"):
                    self.disk.move(f"{done}/{name}", f"{queue}/{name}")
        self.taken.clear()

    # Writing -----------------------------------------------------------------------------------

    def project(
        self, entries: Iterable[Entry], also: Iterable[str], *, grows: bool, behind: bool
    ) -> None:
        """Bring every file that ``entries`` may have changed to what the ledger says.

        ``grows``: all older entries are in the files, so a chat that only got messages need not
        be rendered whole. ``behind``: these entries are of more than one act.
        """
        paths: dict[str, None] = dict.fromkeys(also)
        said: dict[str, int] = dict.fromkeys(paths, NEVER)
        for entry in entries:
            if entry.kind == "bus.acked-all":
                self._move(BUS.moved_by(self.source, entry.seq))
            elif entry.kind == "bus.acked":
                self._move([entry.data["name"]])
            else:
                touched = touched_by((entry,), self.source)
                paths |= touched | dict.fromkeys(BUS.left_by(entry) if behind else ())
                new = grows and entry.kind in _GROWING and "observed" not in entry.data
                said.update((path, said.get(path, 0) + (1 if new else NEVER)) for path in touched)
        many = len(paths) > SOME
        for path in over(paths, "writing files", len(paths)):
            if many and self.disk.stat(path) is None:
                self._stage(path)
            else:
                self._write(path, said.get(path, 0))
        self._publish_staged()
        for folder in sorted(self._folders):
            self._try(folder, lambda: self.disk.sync_folder(folder))  # noqa: B023 - called at once

    def _try(self, path: str, work: Callable[[], None]) -> None:
        """What the disk refuses stays to be done: the entries are safe, so nothing is lost."""
        try:
            work()
        except (OSError, UnreadableError) as error:
            self.failed[path] = str(getattr(error, "strerror", None) or error)

    def _write(self, path: str, said: int = 0) -> None:
        """``said``: how many messages, or decisions, are all that changed a file."""
        if said > 0 and is_live_log(path) and self._append(path, said):
            return
        want = self._grown(path, said) or desired(self.source, path)
        self._try(path, lambda: self._remove(path) if want is None else self._put(path, want))

    def _grown(self, path: str, said: int) -> File | None:
        """A live chat, made of the very bytes that were noted as agreeing with the ledger."""
        known = self.known.get(path)
        if said <= 0 or known is None or not path.startswith(f"{CHAT.folder}/"):
            return None
        try:
            have = self.disk.read(path, READ_LIMIT)
        except UnreadableError:
            return None
        if have is None or sha256(have).hexdigest() != known.digest:
            return None
        self._bases[path] = have
        return CHAT.grown(self.source, path, have, said)

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
        from tripod.projections import write_missing

        for (path, want), stat in zip(staged, write_missing(self.disk, staged), strict=True):
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
            raise UnreadableError(f"{odd} stands there, and would be replaced: remove it")
        if path in self.unmerged:  # the entries are of a writer that died, or came before the merge
            raise UnmergedError(self.unmerged[path])
        like = stat is not None and (stat.mode, stat.size) == (want.mode, len(want.data))
        if stat is not None and like and self.disk.read(path, stat.size) == want.data:
            self._written[path] = (stat, digest)
            return
        with ExitStack() as locks:
            if stat is not None and not self._lock(locks, path):
                return
            if stat is None or path == COUNTS.path:
                written = self.disk.write(
                    path,
                    want,
                    sync=False,
                    durable=path != COUNTS.path,
                    anew=not path.endswith((".event", COUNTS.path)),  # names that are ours alone
                    unless=lambda: self._is_foreign(path, digest),
                )
            else:
                written = self._swap(path, want, digest)
        if written is None:
            self.late[path] = None
            return
        self._written[path] = (written, digest)
        if path != COUNTS.path:  # made anew by any command: nobody waits until the disk has it
            self._folders.add(path.rpartition("/")[0])

    def _lock(self, locks: ExitStack, path: str) -> bool:
        """Take the original tools' lock on a file; one whose lock another holds is late."""
        if path in self.held or not has_foreign_lock(path):
            return True
        if locks.enter_context(self.disk.foreign_lock(path, wait=False)):
            return True
        self.late[path] = None
        return False

    def _swap(self, path: str, want: File, digest: str) -> Stat | None:
        """Exchange a file, and look at what came back; None where that is to be taken in."""
        from tripod.projections import swap

        self.disk.check_way(path.rpartition("/")[0])
        base = self.disk.read(path, READ_LIMIT)
        if base is None:
            if self.disk.stands(path) and not self.disk.is_file(path):
                raise OSError(EISDIR, "no file stands there", path)
            return None
        have = sha256(base).hexdigest()
        if base != self._bases.get(path) and have != digest and not self.is_ours(path, have):
            return None
        agreed = have not in self.displaced
        done = swap.replace(self.disk, path, want, base, agreed=agreed)
        if done is None:
            return None
        self.is_weak = self.is_weak or not done.sure
        if not done.kept:
            return done.stat
        patient = len(self.disk.kept(path.rpartition("/")[0])) <= swap.MOST_KEPT
        back = swap.take(self.disk, done.kept, READ_LIMIT, patient=patient)
        if back is None:
            return done.stat
        if back[0] != base:
            return None
        if back[1]:
            self.keep_open(done.kept, base)
        else:
            self.drop(done.kept)
        return done.stat

    def _append(self, path: str, count: int) -> bool:
        """Add a log's ``count`` newest pieces at its end; False where it is to be written."""
        from tripod.projections import swap

        known = self.known.get(path)
        if known is None:
            return False
        with ExitStack() as locks:
            if not self._lock(locks, path):
                return True
            new = LOG.newest(self.source, path.removeprefix(f"{LOG.folder}/"), count)
            try:
                done = swap.append(self.disk, path, known, new, READ_LIMIT)
            except (OSError, UnreadableError) as error:
                self.failed[path] = str(getattr(error, "strerror", None) or error)
                return True
        if done == swap.OTHERS_CAME:
            self.late[path] = None
        elif done != swap.NOT_AS_KNOWN:
            self._written[path] = done
        return done != swap.NOT_AS_KNOWN

    def _is_foreign(self, path: str, want: str) -> bool:
        """Whether bytes stand there that nobody has taken in yet."""
        have = self.disk.read(path, READ_LIMIT)
        if have is None or have == self._bases.get(path):
            return False
        digest = sha256(have).hexdigest()
        return digest != want and not self.is_ours(path, digest)

    def _move(self, names: Sequence[str]) -> None:
        """Acknowledged events go to ``processed/`` as they are, where they have not gone yet."""
        for front, its in _by_queue(names).items():
            self._move_in(front, its)

    def _move_in(self, front: str, names: Sequence[str]) -> None:
        queue, done = _queue_folders(front)
        self._folders.update((queue, done))
        rest = names = [name for name in names if name not in self.taken]
        if not names:
            return
        self._try(done, lambda: self.disk.make_folder(done))
        if len(names) > MANY:
            from tripod.projections import move_all

            try:
                moved = move_all(self.disk, queue, done, [name[len(front) :] for name in names])
                rest = [front + name for name in moved]
            except OSError as error:
                self.failed[done] = str(error.strerror or error)
                return
        for name in rest:
            self._try(f"{BUS.folder}/processed/{name}", lambda: self._moved(name))  # noqa: B023 - called at once

    def _moved(self, name: str) -> None:
        queue, done = f"{BUS.folder}/{name}", f"{BUS.folder}/processed/{name}"
        if not self.disk.is_file(queue):
            if self.disk.stands(done) or not self._was_written(name):
                self._write(done)  # else others moved it, and pruned it: the next look says so
        elif self._is_foreign(done, ""):
            self.late[done] = None
        elif not self.disk.move(queue, done):
            self._write(done)

    def _was_written(self, name: str) -> bool:
        """Whether the file of an event stood in the queue once."""
        sql = "SELECT seq FROM events WHERE acked IS NOT NULL AND us = ? AND name = ?"
        row = self.store.db.execute(sql, (name_us(name), name)).fetchone()
        return row is not None and bool(row[0] < self.store.cursors().files)

    def clear(self) -> None:
        """Remove what writers left that died before their rename: we are the sole writer."""
        for folder in self.disk.places.folders():
            self._try(folder, lambda: self.disk.clear(folder))  # noqa: B023 - called at once

    # Noting ------------------------------------------------------------------------------------

    def note(self, seen_ns: int, apart: Iterable[str]) -> manifest.Manifest:
        """What the growing files and watched folders look like, now that they agree.

        All is noted as of ``seen_ns``, when this act began to look: what others changed since
        then is younger, and will be looked at. ``apart`` are files that contradict the ledger.
        """
        noted: manifest.Manifest = {}
        left_out = {*apart, *self.late, *self.failed}
        # An event that is half of a merge is told by each command: no look at its folder is saved.
        left_out |= {path.rpartition("/")[0] for path in self.unmerged}
        for path in self._open.keys() - self.settled:
            noted[path] = manifest.ManifestEntry(*self._open[path], seen_ns)
        watched = set(self.disk.places.queue_folders())
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
            is_queue = path in watched
            wrote = self._written.get(path)
            if wrote is not None:
                stat, digest = wrote
            else:  # a look at the whole file: only where it is not our own writing
                digest = "" if is_queue else self._agreed(path, stat)
            if is_queue or digest:
                noted[path] = manifest.ManifestEntry(stat, digest, seen_ns)
        return noted

    def _agreed(self, path: str, stat: Stat) -> str:
        """Digest of a file that is as the ledger has it; '' where it is not."""
        if path in self.agreed and self.agreed[path].stat == stat:
            return self.agreed[path].digest
        digest = digest_of(self.disk, path)
        row = self.store.db.execute("SELECT sha256 FROM inputs WHERE path = ?", (path,)).fetchone()
        if row is not None:
            return digest if row[0] == digest else ""
        want = desired(self.source, path)
        return digest if want is not None and sha256(want.data).hexdigest() == digest else ""

    def _watched(self) -> list[str]:
        places = self.disk.places
        paths = [*places.queue_folders(), COUNTS.path]
        for folder in places.chat_folders():
            chats = self.disk.names(folder)
            paths += [f"{folder}/{name}" for name in chats if name.endswith(".chat")]
        paths += [path for path in self._written if path.endswith(".cursors")]
        paths += watched_logs(self.store.db, self.disk)
        for table in ("inputs", "files"):
            rows = self.store.db.execute(f"SELECT path FROM {table}")
            paths += [path for (path,) in rows]
        return paths


def is_live_log(path: str) -> bool:
    """Whether a path is that of a decision log which may grow: of no archive, which never does."""
    return class_of(path) is LOG_FILE and parse_log_archive_name(path) is None


def has_foreign_lock(path: str) -> bool:
    """Whether the original tools lock this file while they rewrite it."""
    kind = class_of(path)
    return kind is not None and kind.locked and (kind is not LOG_FILE or is_live_log(path))


# Unwritten --------------------------------------------------------------------------------------


_WEAK = (
    "this file system cannot exchange two files: what an editor saves in the moment in which we "
    "write the same file can be lost (docs/formats/files.md says what cannot)"
)


def unwritten(files: Files, *, full: bool) -> Iterator[str]:
    """What could not be written; it is recorded, and the next command tries again.

    In a ``full`` look also what is true of the file system at all times.
    """
    for path, reason in files.failed.items():
        yield f"{path}: recorded, but the file is not written yet: {reason}"
    if files.is_weak and full:
        yield _WEAK
    for path in files.late:
        yield f"{path}: recorded, but others keep writing the file; try again later"
