"""Step 5 of an act: write the files so that they show the ledger.

Other programs may write the same files at any moment. Bytes are replaced only if they are known:
rendered by us before, read by the intake of this very act, or kept in the ledger as displaced.
Any other file stays as it is and is *late*: the team takes it in and writes again. Bytes that
another program wrote between that look and the exchange come back with the old file
(``tripod.projections.swap``); the file is late as well, and the old one waits beside the new one
until it is in the ledger. A log only grows: it is appended to, and the position of our bytes shows
whether another program appended at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from errno import EISDIR
from hashlib import sha256

from tripod.ledger import Entry, tell_over
from tripod.ledger.files import read_boot_id
from tripod.ledger.locator import FOLDER
from tripod.projections import (
    BUS,
    CHAT,
    COUNTS,
    KEPT,
    LOG,
    RACY_NS,
    Disk,
    DiskStat,
    File,
    Source,
    UnmergedError,
    UnreadableError,
    desired_file,
    desired_files,
    in_the_way_on_disk,
    layout,
    manifest,
    seen_entries,
)
from tripod.projections.bus.format import event_name_us
from tripod.projections.decisions.format import parse_decision_archive_name
from tripod.projections.engine import touched_files
from tripod.team.act import READ_LIMIT, ActContext, ActFileState, digest_of

SOME = 16  # files; from there on the disk is waited for once for all that are new
MANY = 100  # events; from there on they are moved with one look at the folders
GROUP = 2000
NEVER = -(2**31)
_GROWING = ("chat.sent", "decision.logged")
_WEAK = (
    "this file system cannot exchange two files: what an editor saves in the moment in which we "
    "write the same file can be lost (docs/formats/files.md says what cannot)"
)


def is_live_log_file(path: str) -> bool:
    """Whether a path is that of a decision log which may grow; an archive never does."""
    return (
        layout.layout_class_of(path) is layout.LOG_FILE
        and parse_decision_archive_name(path) is None
    )


def has_foreign_file_lock(path: str) -> bool:
    """Whether the original tools lock this file while they rewrite it."""
    kind = layout.layout_class_of(path)
    return (
        kind is not None and kind.locked and (kind is not layout.LOG_FILE or is_live_log_file(path))
    )


class Files(ActFileState):
    """Writes the files of one act.

    ``failed``: why the disk refused a path. ``is_weak``: a file was replaced without an exchange.
    ``folders`` are those whose names the disk is still to be waited for, ``changed`` those in which
    this act gave or took a name. ``waits``: the disk is waited for at each file. Else that is left
    to ``tripod.team.team``, for all but the files in ``apart``: they are written for another reason
    than the entries since it was waited for last.
    """

    def __init__(self, disk: Disk, source: Source, held: Iterable[str] = ()) -> None:
        super().__init__(disk, manifest.NotedFiles(source.db, disk), held)
        self.source = source
        self.moves = EventFileMoves(self)
        self.failed: dict[str, str] = {}
        self.is_weak = False
        self.folders: set[str] = set()
        self.waits = not read_boot_id()
        self.apart: set[str] = set()
        self.changed: set[str] = set()

    def remarks(self, *, full: bool) -> Iterator[str]:
        """What could not be written; it is recorded, and the next command tries again.

        In a ``full`` look also what is true of the file system at all times.
        """
        for path, reason in self.failed.items():
            yield f"{path}: recorded, but the file is not written yet: {reason}"
        if self.is_weak and full:
            yield _WEAK
        for path in self.late:
            yield f"{path}: recorded, but others keep writing the file; try again later"

    def project(
        self, entries: Iterable[Entry], also: Iterable[str], *, grows: bool, behind: bool
    ) -> None:
        """Bring every file that ``entries`` may have changed to what the ledger says.

        ``grows``: all older entries are in the files, so a chat that only got messages need not
        be rendered whole. ``behind``: these entries are of more than one act.
        """
        paths: dict[str, None] = dict.fromkeys(also)
        said: dict[str, int] = dict.fromkeys(paths, NEVER)
        for entry in seen_entries(entries, self.source.ledger.blob):
            if entry.kind == "bus.acked-all":
                self.moves.finish(BUS.moved_by(self.source, entry.seq))
            elif entry.kind == "bus.acked" and "peer" not in entry.data:
                self.moves.finish([entry.data["name"]])
            else:
                touched = touched_files((entry,), self.source)
                paths |= touched | dict.fromkeys(BUS.left_by(entry) if behind else ())
                new = grows and entry.kind in _GROWING and "observed" not in entry.data
                said.update((path, said.get(path, 0) + (1 if new else NEVER)) for path in touched)
        many = len(paths) > SOME
        absent: list[str] = []
        for path in tell_over(paths, "writing files", len(paths)):
            if not many or self.disk.stat(path) is not None:
                self.write(path, said.get(path, 0))
            else:
                absent.append(path)
                if len(absent) >= GROUP:
                    self._publish(absent)
                    absent = []
        self._publish(absent)
        for folder in sorted(self.folders):
            with self.attempt(folder):
                self.disk.sync_folder(folder)

    @contextmanager
    def attempt(self, path: str) -> Iterator[None]:
        """What the disk refuses stays to be done: the entries are safe, so nothing is lost."""
        try:
            yield
        except (OSError, UnreadableError) as error:
            self.failed[path] = str(getattr(error, "strerror", None) or error)

    def write(self, path: str, said: int = 0) -> None:
        """``said``: how many messages, or decisions, are all that changed a file."""
        if said > 0 and is_live_log_file(path) and self._append(path, said):
            return
        want = self._grown(path, said) or desired_file(self.source, path)
        with self.attempt(path):
            if want is None:
                self._remove(path)
            else:
                self._put(path, want)

    def _grown(self, path: str, said: int) -> File | None:
        """A live chat, made of the very bytes that were noted as agreeing with the ledger."""
        if said <= 0 or not path.startswith(f"{CHAT.folder}/"):
            return None
        known = self.known.get(path)
        if known is None:
            return None
        try:
            have = self.disk.read(path, READ_LIMIT)
        except UnreadableError:
            return None
        if have is None or sha256(have).hexdigest() != known.digest:
            return None
        return CHAT.grown(self.source, path, have, said)

    def _publish(self, paths: Sequence[str]) -> None:
        """Write many files at once, each where none stands."""
        staged = list(desired_files(self.source, paths))
        if not staged:
            return
        from tripod.projections import write_missing_to_disk

        durable = any(map(self._is_durable, paths))
        with self.attempt(staged[0][0]):
            for (path, want), stat in zip(
                staged, write_missing_to_disk(self.disk, staged, durable=durable), strict=True
            ):
                if stat is None:
                    self.late[path] = None
                    continue
                if not path.endswith(".event"):  # no single event is noted: there may be 50,000
                    self.written[path] = (stat, sha256(want.data).hexdigest())
                self._note_name(path)

    def _is_durable(self, path: str) -> bool:
        """Whether the disk is waited for. Counts are made anew by any command."""
        return path != COUNTS.path and (self.waits or path in self.apart)

    def _note_name(self, path: str) -> None:
        """A name came or went: where the disk is waited for, it is at the end."""
        folder = path.rpartition("/")[0]
        self.changed.add(folder)
        if self._is_durable(path):
            self.folders.add(folder)

    def _remove(self, path: str) -> None:
        if self.disk.is_file(path):
            self.disk.remove(path)
            self._note_name(path)

    def _put(self, path: str, want: File) -> None:
        digest = sha256(want.data).hexdigest()
        stat = self.disk.stat(path)
        odd = None if stat is not None else in_the_way_on_disk(self.disk, path)
        if odd is not None:  # it came while we did, or since who recorded this died
            raise UnreadableError(f"{odd} stands there, and would be replaced: remove it")
        if path in self.unmerged:  # the entries are of a writer that died, or came before the merge
            raise UnmergedError(self.unmerged[path])
        like = stat is not None and (stat.mode, stat.size) == (want.mode, len(want.data))
        if stat is not None and like and self.disk.read(path, stat.size) == want.data:
            self.written[path] = (stat, digest)
            return
        with ExitStack() as locks:
            if stat is not None and not self._lock(locks, path):
                return
            if stat is None or path == COUNTS.path:
                written = self.disk.write(
                    path,
                    want,
                    sync=False,
                    durable=self._is_durable(path),
                    anew=not path.endswith((".event", COUNTS.path)),  # names that are ours alone
                    unless=lambda: self.is_foreign(path, digest),
                )
            else:
                written = self._swap(path, want, digest)
        if written is None:
            self.late[path] = None
            return
        self.written[path] = (written, digest)
        self._note_name(path)

    def _lock(self, locks: ExitStack, path: str) -> bool:
        """Take the original tools' lock on a file; one whose lock another holds is late."""
        if path in self.held or not has_foreign_file_lock(path):
            return True
        if locks.enter_context(self.disk.foreign_lock(path, wait=False)):
            return True
        self.late[path] = None
        return False

    def _swap(self, path: str, want: File, digest: str) -> DiskStat | None:
        """Exchange a file, and look at what came back; None where that is to be taken in."""
        from tripod.projections import swap

        self.disk.check_way(path.rpartition("/")[0])
        base = self.disk.read(path, READ_LIMIT)
        if base is None:
            if self.disk.stands(path) and not self.disk.is_file(path):
                raise OSError(EISDIR, "no file stands there", path)
            return None
        have = sha256(base).hexdigest()
        if have != digest and not self.is_ours(path, have):
            return None
        agreed, durable = have not in self.displaced, self._is_durable(path)
        done = swap.swap_in(self.disk, path, want, base, agreed=agreed, durable=durable)
        if done is None:
            return None
        self.is_weak = self.is_weak or not done.sure
        if not done.kept:
            return done.stat
        patient = len(self.disk.kept(path.rpartition("/")[0])) <= swap.MOST_KEPT
        back = swap.take_swapped(self.disk, done.kept, READ_LIMIT, patient=patient)
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
            with self.attempt(path):
                hashed, durable = None, self._is_durable(path)
                if self.looked is not None and path in self.looked.hashes:
                    hashed = self.looked.agreed[path].stat, self.looked.hashes[path]
                done = swap.append_or_swap(
                    self.disk, path, known, new, READ_LIMIT, hashed=hashed, durable=durable
                )
                if done == swap.NOT_AS_KNOWN:
                    return False
                if done == swap.OTHERS_CAME:
                    self.late[path] = None
                else:
                    self.written[path] = done
        return True

    def is_foreign(self, path: str, want: str) -> bool:
        """Whether bytes stand there that are neither ours nor those of the digest ``want``."""
        have = self.disk.read(path, READ_LIMIT)
        digest = "" if have is None else sha256(have).hexdigest()
        return digest != want and not self.is_ours(path, digest)

    def clear(self) -> None:
        """Remove what writers left that died before their rename: we are the sole writer."""
        for folder in self.disk.places.folders():
            with self.attempt(folder):
                self.disk.clear(folder)

    def note(self, seen_ns: int, apart: Iterable[str]) -> manifest.Manifest:
        """What the watched files and folders look like, now that they agree.

        All is noted as of ``seen_ns``, when this act began to look: what others changed since
        then is younger, and will be looked at. ``apart`` are files that contradict the ledger.
        """
        left_out = {*apart, *self.late, *self.failed}
        # An event that is half of a merge is told by each command: no look at its folder is saved.
        left_out |= {path.rpartition("/")[0] for path in self.unmerged}
        note = self._note_all if self.looked is None else self._note_written
        noted = note(seen_ns, left_out)
        for path, wrote in self.written.items():  # those that `keep_open` noted
            if f"/{KEPT}" in path and path not in self.settled:
                noted[path] = manifest.ManifestEntry(*wrote, seen_ns)
        return noted

    def _note_written(self, seen_ns: int, left_out: Collection[str]) -> manifest.Manifest:
        """After a quick look that found all as it was: what it looked at, and what we wrote."""
        noted = {} if self.looked is None else manifest.settle(self.looked.agreed, seen_ns)
        for path, wrote in self.written.items():
            if _is_noted(path):
                noted[path] = manifest.ManifestEntry(*wrote, seen_ns)
        changed = {path.rpartition("/")[0] for path in (*self.written, *self.settled)}
        for folder in (changed | self.changed).intersection(self.known.watched()):
            stat, known = self.disk.stat(folder), self.known.get(folder)
            if stat is not None and (known is None or known.stat != stat):
                noted[folder] = manifest.ManifestEntry(stat, "", seen_ns)
        for path in left_out:
            noted.pop(path, None)
            noted.pop(path.rpartition("/")[0], None)
        return noted

    def _note_all(self, seen_ns: int, left_out: Collection[str]) -> manifest.Manifest:
        """After the intake looked at all files: each one that agrees with the ledger.

        A listed folder is noted where all that is watched in it is. If something in it is not, each
        command lists it, and looks again.
        """
        noted, known, db = manifest.Manifest(), self.known.whole(), self.source.db
        queues = self.disk.places.queue_folders()
        folders = {
            folder: (self.disk.stat(folder), manifest.listed_paths(db, self.disk, folder))
            for folder in manifest.listed_folders(self.disk)
        }
        watched = [*queues, COUNTS.path, *(path for _, paths in folders.values() for path in paths)]
        watched += filter(_is_noted, self.written)
        for table in ("inputs", "files"):
            watched += [path for (path,) in db.execute(f"SELECT path FROM {table}")]
        agreeing = set()
        for path in tell_over(dict.fromkeys(watched), "looking at the files again"):
            stat = self.disk.stat(path)
            if stat is None or path in left_out:
                continue
            before = known.get(path)
            if before is not None and before.stat == stat:
                agreeing.add(path)
                if before.noted_ns - stat.mtime_ns <= RACY_NS < seen_ns - stat.mtime_ns:
                    noted[path] = before._replace(noted_ns=seen_ns)
                continue
            if path in self.written:
                stat, digest = self.written[path]
            else:  # a look at the whole file: only where it is not our own writing
                digest = "" if path in queues else self._agreed(path, stat)
            if path in queues or digest:
                noted[path] = manifest.ManifestEntry(stat, digest, seen_ns)
        agreeing |= noted.keys()
        for folder, (stat, paths) in folders.items():
            apart = set(paths) - agreeing
            if stat is not None and not apart:
                noted[folder] = manifest.ManifestEntry(stat, "", seen_ns)
            elif apart:  # an archive is looked at where its folder is
                self.settled |= known.keys() & {folder, *apart - {*self.known.watched()}}
        return noted

    def _agreed(self, path: str, stat: DiskStat) -> str:
        """Digest of a file that is as the ledger has it; '' where it is not."""
        if path in self.agreed and self.agreed[path].stat == stat:
            return self.agreed[path].digest
        digest = digest_of(self.disk, path)
        row = self.source.db.execute("SELECT sha256 FROM inputs WHERE path = ?", (path,)).fetchone()
        if row is not None:
            return digest if row[0] == digest else ""
        want = desired_file(self.source, path)
        return digest if want is not None and sha256(want.data).hexdigest() == digest else ""


def _is_noted(path: str) -> bool:
    """Whether what an act wrote is noted: the next one may write over it. Events are not."""
    return not path.endswith(".event") and f"/{KEPT}" not in path


class EventFileMoves:
    """Moves acknowledged events to ``processed/``, by a rename before the COMMIT where it can.

    Of all who try to acknowledge an event, whatever program they run, one can move its file: the
    rename decides.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.disk = files.disk
        self.taken = files.taken

    def take(self, names: Sequence[str]) -> list[str]:
        """Move events before their acknowledgement is final; give those not in the queue.

        Dead before the COMMIT: the next command finds the files moved, as another program moves
        them. ``give_back`` undoes it where nothing is recorded. An event whose place is taken by
        another file is moved after the COMMIT.
        """
        left: list[str] = []
        for front, its in _by_queue(names).items():
            try:
                self.disk.make_folder(_queue_folders(front)[1])
                if len(its) > MANY:
                    rest = self._move_all(front, its)
                    self.taken.update(set(its) - set(rest))
                else:
                    rest = [name for name in its if not self._take(name)]
            except OSError:  # what could not be moved here is tried, and told, after the COMMIT
                rest = its
            left += rest
        return [name for name in left if not self.disk.is_file(f"{BUS.folder}/{name}")]

    def _take(self, name: str) -> bool:
        queue, done = f"{BUS.folder}/{name}", f"{BUS.folder}/processed/{name}"
        if self.disk.stands(done) or not self.disk.move(queue, done):
            return False
        self.taken.add(name)
        return True

    def _move_all(self, front: str, names: Sequence[str]) -> list[str]:
        """Move many events of one queue; give those that could not be moved."""
        from tripod.projections import move_on_disk

        files = [name[len(front) :] for name in names]
        return [front + file for file in move_on_disk(self.disk, *_queue_folders(front), files)]

    def give_back(self) -> None:
        """Put the events back that were taken for acknowledgements that are not recorded."""
        queue, done = BUS.folder, f"{BUS.folder}/processed"
        for name in self.taken:
            with suppress(OSError):  # then it stays, as one that another program moved
                if not self.disk.stands(f"{queue}/{name}"):
                    self.disk.move(f"{done}/{name}", f"{queue}/{name}")
        self.taken.clear()

    def finish(self, names: Sequence[str]) -> None:
        """After the COMMIT: acknowledged events are moved as they are, where they were not yet."""
        files = self.files
        for front, its in _by_queue(names).items():
            queue, done = _queue_folders(front)
            if files.waits:
                files.folders.update((queue, done))
            files.changed.update((queue, done))
            rest = [name for name in its if name not in self.taken]
            if not rest:
                continue
            with files.attempt(done):
                self.disk.make_folder(done)
            if len(rest) > MANY:
                many, rest = rest, []
                with files.attempt(done):
                    rest = self._move_all(front, many)
            for name in rest:
                with files.attempt(f"{BUS.folder}/processed/{name}"):
                    self._finish_one(name)

    def _finish_one(self, name: str) -> None:
        queue, done = f"{BUS.folder}/{name}", f"{BUS.folder}/processed/{name}"
        if not self.disk.is_file(queue):
            source = self.files.source
            sql = "SELECT seq FROM events WHERE acked IS NOT NULL AND us = ? AND name = ?"
            row = source.db.execute(sql, (event_name_us(name), name)).fetchone()
            was_written = row is not None and row[0] < source.ledger.cursors().files
            if self.disk.stands(done) or not was_written:
                self.files.write(done)  # else others moved it, and pruned it: the next look says so
        elif self.files.is_foreign(done, ""):
            self.files.late[done] = None
        elif not self.disk.move(queue, done):
            self.files.write(done)


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


# Git ---------------------------------------------------------------------------------------------

(PATH,) = layout.IGNORED.names
_ALL = "*"


def is_ignored(disk: Disk) -> bool | None:
    """Whether ``.nbs/.gitignore`` keeps the team's files out of git; None: it cannot be read.

    Only that file is ours: a team directory by another name needs none.
    """
    if os.path.basename(os.path.realpath(disk.root)) != FOLDER:
        return True
    old = _ignore_bytes(disk)
    return None if old is None else _ALL in old.decode("utf-8", "replace").splitlines()


def is_emptied(root: str) -> bool:
    """Whether a team directory is gone, or holds only the file that keeps it out of git.

    `git clean` removes all of it. An act that found it so and then was refused leaves that file.
    """
    try:
        return set(os.listdir(root)) <= {PATH}
    except OSError:
        return not os.path.isdir(root)


def ignore_files(context: ActContext) -> None:
    """Keep the team's files out of git; lines that are there already stay as they are."""
    known, old = is_ignored(context.disk), _ignore_bytes(context.disk)
    if known is None or old is None:
        context.warnings.append(f"{PATH}: cannot be read as a file; put the line {_ALL} into it")
    elif not known:
        start = old if not old or old.endswith(b"\n") else old + b"\n"
        stat = context.disk.stat(PATH)
        new = File(start + f"{_ALL}\n".encode(), 0o644 if stat is None else stat.mode)
        context.disk.write(PATH, new)


def _ignore_bytes(disk: Disk) -> bytes | None:
    """The file's bytes, b"" where nothing has its name; None where something else has."""
    try:
        old = disk.read(PATH, layout.IGNORED.limit)
    except UnreadableError:
        return None
    return b"" if old is None and not os.path.lexists(disk.full(PATH)) else old
