"""The team directory on disk: bounded reads, atomic writes, the original tools' locks.

Names in it come from strangers: no symbolic link is followed for a file, nothing outside the
directory is opened, and a file above its limit is refused before it is read.

Some things in the place of a projected file must not be written over. A person puts a symbolic link
there on purpose (a log that is kept under ``docs/``): it is reported and left as it is. A file with
conflict markers is half of a merge that a person has yet to finish: taken in, its marker lines
would stand in the ledger for ever; written over, the other side's part would be gone.
"""

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from tripod.ledger import (
    CHAT,
    EVENTS,
    LOGS,
    PROCESSED,
    WORK_EFFORTS,
    WORKERS,
    PlaceError,
    TripodError,
    tell_over,
)
from tripod.ledger.files import (
    hold_posix_file_lock,
    is_of_this_start,
    name_file,
    open_plain_stat,
    sync_disks,
    sync_path,
)
from tripod.projections.projection import File

RACY_NS = 30_000_000  # a file clock ticks every 1 to 10 ms: within it an equal time proves nothing
TEMPORARY = ".tripod-new-"
KEPT = ".tripod-swap-"  # ``tripod.projections.swap`` says what such a name means
HIDDEN = (TEMPORARY, KEPT)

_ODD = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}  # fmt: skip
STAGED = 0o600
"""The permission bits of a file until it is written."""
ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class UnreadableError(TripodError):
    """The system refuses to give a file's bytes; the message says why."""


class TooBigError(UnreadableError):
    """A file is larger than what its place allows; it was not read."""


class UnmergedError(UnreadableError):
    """A file holds the conflict markers of a merge: nothing of it is taken in, or written over."""


class DiskStat(NamedTuple):
    """What tells cheaply whether a file may have changed. Never proof that it has not."""

    size: int
    mtime_ns: int
    inode: int
    mode: int

    @property
    def mtime_us(self) -> int:
        """The file's time as an entry holds it: a file may be dated anywhere, a count may not."""
        return min(max(0, self.mtime_ns // 1000), 2**53 - 1)


class DiskPlaces:
    """Maps the first parts of paths: ``{"events": "../bus"}``, from ``root`` or absolute.

    A key of two parts, ``chat/talk`` or ``events/bus``, is a folder that was added. Folders of work
    efforts always lie beside the team directory.
    """

    def __init__(self, root: str, places: Mapping[str, str]) -> None:
        """Nothing is looked at yet; what stands at its usual place needs no mention."""
        self._root = root
        self._full: dict[str, str] = {}
        """The paths of these folders for the system."""
        self._ways: dict[str, list[str]] = {}
        """The folders between the team directory and each of them."""
        self._own: set[str] = set()
        for front, place in places.items():
            if front == place and "/" not in front:
                continue
            full = place if place.startswith("/") else f"{root}/{place}"
            self._full[front] = os.path.normpath(full) if place in (".", "..") else full
            if place.startswith("/"):
                continue
            ends = (at for at, character in enumerate(place) if character == "/")
            self._ways[front] = [f"{root}/{place[:at]}" for at in ends if place[:at] != ".."]
            top = place.partition("/")[0]
            if "/" not in front or top not in (EVENTS, CHAT, LOGS, ".", ".."):
                self._own.add(top)
        self.added = [front for front in self._full if "/" in front]
        """The folders that were added, as paths: ``chat/<name>``, and so on."""
        self.hidden = self._full.keys() - set(self.added) | self._own
        """Names in the directory itself that are no files of the team there."""
        self.fronts = self._full.keys()
        """First parts of paths that stand for folders elsewhere."""
        self.met: set[str] = set()
        """Files within ``scribe/`` that a command was told to take for logs, by their names."""
        for front in self.added:
            holds, _, name = front.partition("/")
            if holds == EVENTS:
                self._full[f"{EVENTS}/{PROCESSED}/{name}"] = f"{self._full[front]}/{PROCESSED}"

    def _front(self, path: str) -> str:
        """The first parts of a path about which something is said; '' where nothing is."""
        parts = path.split("/", 3)[: 3 if self.added else 1]
        fronts = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((front for front in fronts if front in self._full), "")

    def full(self, path: str) -> str | None:
        """The path for the system; None where nothing is said about its first parts."""
        if path.startswith(WORK_EFFORTS) and path[len(WORK_EFFORTS) :][:1] in ("", "/"):
            return f"{self._root}/../{path}"
        if not self._full:
            return None
        front = self._front(path)
        return self._full[front] + path[len(front) :] if front else None

    def links(self, folder: str) -> list[str]:
        """The folders that lead to one of the team's: a link may stand in none of their places."""
        parts = folder.split("/") if folder else []
        front = self._front(folder) if parts and self._full else ""
        ways = ("/".join(parts[:n]) for n in range(front.count("/") + 1, len(parts) + 1))
        base = front.replace(f"/{PROCESSED}/", "/")
        above = [self._full[base]] if base != front else []
        own = (self.full(way) or f"{self._root}/{way}" for way in ways)
        return [*self._ways.get(base, []), *above, *own]

    def absent(self) -> dict[str, str]:
        """First parts and paths of the folders that are not there, or have become links."""
        return {
            front: os.path.normpath(full)
            for front, full in self._full.items()
            if not front.startswith(f"{EVENTS}/{PROCESSED}/")
            and (
                not os.path.isdir(full)
                or any(os.path.islink(way) for way in (full, *self._ways.get(front, [])))
            )
        }

    def unused(self) -> list[str]:
        """What stands in the team directory under the name of a folder that is elsewhere."""
        fronts = (front for front in self._full if "/" not in front and front not in self._own)
        return sorted(front for front in fronts if os.path.lexists(f"{self._root}/{front}"))

    def missing(self) -> set[str]:
        """The added folders that cannot be looked at now: nothing in them is taken for lost."""
        gone = self.absent() if self.added else {}
        reads = os.R_OK | os.X_OK
        return {f for f in self.added if f in gone or not os.access(self._full[f], reads)}

    def queues(self) -> list[str]:
        """What the names of events begin with, of each queue that is there: '', ``<name>/``."""
        return self._names(EVENTS)

    def chats(self) -> list[str]:
        """What the names of chats begin with, of each folder that is there: '', ``<name>/``."""
        return self._names(CHAT)

    def logs(self) -> list[str]:
        """What the names of decision logs begin with, of each folder that is there."""
        return self._names(LOGS)

    def _names(self, holds: str) -> list[str]:
        if not self.added:
            return [""]
        gone = self.missing()
        there = (front.partition("/") for front in sorted(self.added) if front not in gone)
        return ["", *(f"{name}/" for folder, _, name in there if folder == holds)]

    def queue_folders(self) -> list[str]:
        """Each queue's folder and that of its processed events, as paths of the team."""
        return [
            f"{front}{name}".rstrip("/")
            for name in self.queues()
            for front in (f"{EVENTS}/", f"{EVENTS}/{PROCESSED}/")
        ]

    def chat_folders(self) -> list[str]:
        """Each folder of chats, as a path of the team."""
        return [f"{CHAT}/{name}".rstrip("/") for name in self.chats()]

    def log_folders(self) -> list[str]:
        """Each folder with decision logs, as a path of the team."""
        return [f"{LOGS}/{name}".rstrip("/") for name in self.logs()]

    def folders(self) -> list[str]:
        """Each folder of the team, those that were added too; '' is the team directory itself."""
        shared = (*self.queue_folders(), *self.chat_folders(), *self.log_folders())
        return ["", *shared, WORKERS]


class FirstLooks:
    """Logs and chats as they were when they were first read, while other programs add to them.

    A log is kept open, so that it may also be replaced; what was added to it since is not read. Of
    a chat the bytes are kept: who says something writes all of the file again, its header too.
    """

    MOST = 100
    """So many logs, or a quarter of what may be open; of others each look is a new one."""
    MOST_BYTES = 2**23
    """So many bytes of chats, as well."""

    def __init__(self) -> None:
        self._logs: dict[str, tuple[int, int, DiskStat]] = {}
        self._chats: dict[str, tuple[bytes, DiskStat]] = {}
        self._most = min(self.MOST, os.sysconf("SC_OPEN_MAX") // 4)
        self._room = self.MOST_BYTES

    def keep_log(self, path: str, fd: int, size: int, found: DiskStat) -> None:
        """Keep a file of which so much was just read, if it is a log."""
        if path.endswith(".md") and path not in self._logs and len(self._logs) < self._most:
            with suppress(OSError):  # no more may be open
                self._logs[path] = os.dup(fd), size, found

    def keep_chat(self, path: str, data: bytes, found: DiskStat) -> None:
        """Keep what was just read of a file, if it is a chat."""
        if path.endswith(".chat") and path not in self._chats and len(data) <= self._room:
            self._chats[path] = data, found
            self._room -= len(data)

    def look(self, path: str, limit: int) -> tuple[bytes, DiskStat] | None:
        """What ``Disk.look`` gave first; None: it is not kept, or holds more than ``limit``."""
        chat, log = self._chats.get(path), self._logs.get(path)
        if log is not None and log[1] <= limit:
            return os.pread(log[0], log[1], 0), log[2]
        return chat if chat is not None and len(chat[0]) <= limit else None

    def close(self) -> None:
        """Keep nothing any longer."""
        self._chats.clear()
        while self._logs:
            os.close(self._logs.popitem()[1][0])


class Disk:
    """One team directory; paths are relative to it, with forward slashes."""

    def __init__(
        self,
        root: str,
        *,
        steady: bool = False,
        places: Mapping[str, str] | None = None,
        first: FirstLooks | None = None,
    ) -> None:
        """Nothing is opened yet. ``steady``: look once at a folder, not at each of its files.

        ``places`` says which first parts of paths stand for folders elsewhere. ``first`` keeps the
        logs and chats as they were when they were first read.
        """
        self.root = root
        self._first = first
        self.places = DiskPlaces(root, places or {})
        self._straight: set[str] | None = set() if steady else None
        self._odd: dict[str, tuple[str, set[str]]] | None = {} if steady else None

    def full(self, path: str) -> str:
        """The path for the system (PlaceError: it would leave the team directory)."""
        if path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise PlaceError(
                f"{path!r} leaves the team directory; which entry names it, `tripod verify` says "
                "(kinds-known)"
            )
        return self.places.full(path) or f"{self.root}/{path}"

    def stat(self, path: str) -> DiskStat | None:
        """Size, time, inode and permission bits of a regular file or folder; None for others."""
        try:
            found = os.lstat(self.full(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        known = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        return disk_stat(found) if known else None

    def is_of_this_start(self, path: str) -> bool:
        """Whether a file or folder was changed since the host was started, by its time."""
        found = self.stat(path)
        return found is not None and is_of_this_start(found.mtime_ns)

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted, our unfinished files left out; [] if it is not one."""
        # A name that is no UTF-8 cannot be written down anywhere; it stays where it is.
        found = (name for name in self.listed(folder) if not name.startswith(HIDDEN))
        return sorted(filter(is_text, found))

    def kept(self, folder: str) -> list[str]:
        """Paths of the replaced files that are kept in a folder (``tripod.projections.swap``)."""
        front = f"{folder}/" if folder else ""
        return sorted(front + name for name in self._beginning(folder, KEPT))

    def walk(self, folder: str) -> Iterator[tuple[str, str]]:
        """Each name in a folder, in no order, and what it is: ``file``, ``folder``, ``other``.

        A name that is ``no text`` (no UTF-8) is given as it can be shown, its bytes in hex. Our
        unfinished files are left out. Nothing is held: a folder may be large.
        """
        if self._leads_away(folder):
            return
        try:
            with os.scandir(self.full(folder) if folder else self.root) as found:
                for item in found:  # the folder itself says what each is: no look at 50,000
                    name = item.name
                    if not folder and name in self.places.hidden:
                        continue
                    if not is_text(name):
                        yield os.fsencode(name).decode("utf-8", "backslashreplace"), "no text"
                    elif item.is_file(follow_symlinks=False):
                        if not name.startswith(HIDDEN):
                            yield name, "file"
                    else:
                        yield name, "folder" if item.is_dir(follow_symlinks=False) else "other"
        except (FileNotFoundError, NotADirectoryError):
            return

    def sorted_out(self, folder: str) -> tuple[list[str], list[str], list[str]]:
        """Names in a folder, in order: files, folders, and the others that ``walk`` tells of."""
        kinds: dict[str, list[str]] = {"file": [], "folder": [], "other": []}
        for name, kind in self.walk(folder):
            kinds[kind if kind in kinds else "other"].append(name)
        return sorted(kinds["file"]), sorted(kinds["folder"]), sorted(kinds["other"])

    def stands(self, path: str) -> bool:
        """Whether anything has this name: a file, a folder, a link or another thing."""
        return os.path.lexists(self.full(path))

    def odd(self, path: str) -> str | None:
        """What has this name and is no regular file, in words; None for a file, and for nothing."""
        try:
            mode = os.lstat(self.full(path)).st_mode
        except OSError:
            return None
        if stat.S_ISREG(mode):
            return None
        return _ODD.get(stat.S_IFMT(mode), "a device")

    def alias(self, path: str) -> str | None:
        """The name in the same folder that a symbolic link leads to; None for any other."""
        try:
            to = os.readlink(self.full(path))
        except OSError:
            return None
        return None if "/" in to else to

    def listed(self, folder: str) -> list[str]:
        """The names of all files, folders and links in a folder, in no order; [] without one."""
        if self._leads_away(folder):
            return []
        try:
            if folder:
                return os.listdir(self.full(folder))
            return [name for name in os.listdir(self.root) if name not in self.places.hidden]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _beginning(self, folder: str, front: str) -> list[str]:
        """The names in a folder that begin so; of all others none is held: it may be large."""
        if self._leads_away(folder):
            return []
        try:
            with os.scandir(self.full(folder) if folder else self.root) as found:
                return [item.name for item in found if item.name.startswith(front)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _leads_away(self, folder: str) -> bool:
        """Whether a part of a path is a symbolic link: it may lead out of the team directory."""
        if self._straight is not None and folder in self._straight:
            return False
        away = any(map(os.path.islink, self.places.links(folder)))
        if self._straight is not None and not away:
            self._straight.add(folder)
        return away

    def count(self, folder: str, suffix: str) -> int:
        """How many names in a folder end so, hidden ones left out; cheaper than ``names``."""
        # A name holds no NUL and no slash: counted in one text, 50,000 names cost a millisecond.
        names = "/".join(["", *self.listed(folder), ""])
        hidden = re.findall(rf"/\.[^/]*{re.escape(suffix)}(?=/)", names) if "/." in names else ()
        return names.count(f"{suffix}/") - len(hidden)

    def is_file(self, path: str) -> bool:
        """Whether a regular file stands there (no symbolic link)."""
        try:
            return stat.S_ISREG(os.lstat(self.full(path)).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, path: str, limit: int) -> bytes | None:
        """The bytes of a regular file, None if absent (UnreadableError; TooBigError: ``limit``)."""
        found = self.look(path, limit)
        if found is None:
            return None
        if self._first is not None:  # who only looks compares all chats, most of them only once
            self._first.keep_chat(path, *found)
        return found[0]

    def look(self, path: str, limit: int) -> tuple[bytes, DiskStat] | None:
        """The bytes of a regular file and its stat, taken together; else as ``read``."""
        kept = None if self._first is None else self._first.look(path, limit)
        if kept is not None:
            return kept
        try:
            full = self._plain(path) if self._odd is None else self._steady(path, self._odd)
            if full is None:
                return None
            fd, found = open_plain_stat(full)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in _NO_FILE or self._leads_away(path.rpartition("/")[0]):
                return None
            raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
        try:
            if found.st_size > limit:
                raise TooBigError(f"{path} holds {found.st_size} bytes; at most {limit} are read")
            data = os.read(fd, found.st_size + 1)
            if len(data) != found.st_size:  # it changed since it was asked
                parts, total = [data], len(data)
                while total <= limit and (part := os.read(fd, 1 << 20)):
                    parts.append(part)
                    total += len(part)
                data = b"".join(parts)
            if len(data) > limit:
                raise TooBigError(f"{path} grew while it was read; at most {limit} bytes are read")
            if self._first is not None:
                self._first.keep_log(path, fd, len(data), disk_stat(found))
            return data, disk_stat(found)
        finally:
            os.close(fd)

    def _plain(self, path: str) -> str | None:
        """The path for the system, None where no regular file stands: a device may do something."""
        full = self.full(path)
        is_file = stat.S_ISREG(os.lstat(full).st_mode)  # asked first: it raises for most paths
        return full if is_file and not self._leads_away(path.rpartition("/")[0]) else None

    def _steady(self, path: str, known: dict[str, tuple[str, set[str]]]) -> str | None:
        """What ``_plain`` gives, by one look at the folder, which may hold very many files."""
        folder, _, name = path.rpartition("/")
        plain = path[:1] != "/" and name != ".." and "\0" not in name
        if folder not in known or not plain or path in self.places.fronts:
            if self._leads_away(folder):
                return None
            full = self.full(path)
            front = full.rpartition("/")[0]
            with os.scandir(front) as found:
                odd = {item.name for item in found if not item.is_file(follow_symlinks=False)}
            if path in self.places.fronts:  # it stands elsewhere than its neighbours
                return None if name in odd else full
            known[folder] = front, odd
        front, odd = known[folder]
        return None if name in odd else f"{front}/{name}"

    def write(
        self,
        path: str,
        file: File,
        *,
        sync: bool = True,
        durable: bool = True,
        anew: bool = False,
        unless: Callable[[], bool] | None = None,
    ) -> DiskStat | None:
        """Put a file in its place, whole or not at all: temporary name, fsync, rename, fsync.

        Gives what the written file looks like. Without ``sync`` the folder's own fsync is left to
        the caller; not ``durable``: nobody waits for the disk, and a power cut may leave it empty.
        ``anew``: only where nothing stands, else None. ``unless`` is asked last of all, when only
        the rename is left to do: if it says yes the place stays as it is, and None is given.
        Raises OSError where the system refuses, or the file's folder is a symbolic link.
        """
        temporary, found = self.stage(path, file, durable=durable)
        full = self.full(path)
        try:
            if unless is not None and unless():
                discard(temporary)
                return None
            if not anew:
                os.rename(temporary, full)
            elif not name_file(temporary, full):
                return None
        except BaseException:
            discard(temporary)
            raise
        if sync and durable:
            self.sync_folder(path.rpartition("/")[0])
        return found

    def stage(self, path: str, file: File, *, durable: bool = True) -> tuple[str, DiskStat]:
        """Write a file beside its place under a temporary name: gives that, and its stat."""
        self.check_way(path.rpartition("/")[0])
        folder = self.full(path).rpartition("/")[0]
        temporary = f"{folder}/{TEMPORARY}{os.getpid()}"
        try:
            fd = os.open(temporary, ANEW, STAGED)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            fd = os.open(temporary, ANEW, STAGED)
        try:
            return temporary, _fill(fd, file, durable=durable)
        except BaseException:
            discard(temporary)
            raise

    def check_way(self, folder: str) -> None:
        """Raise OSError where a folder is a symbolic link: it may lead out of the directory."""
        if self._leads_away(folder):
            reason = "a symbolic link stands where the team's own folder belongs"
            raise OSError(errno.ELOOP, reason, self.full(folder))

    def clear(self, folder: str) -> None:
        """Remove temporary files of writers that died; only the sole writer may call it."""
        for name in self._beginning(folder, TEMPORARY):
            discard(f"{self.full(folder) if folder else self.root}/{name}")

    def move(self, old: str, new: str) -> bool:
        """Move a file within the directory; False if absent."""
        try:
            os.rename(self.full(old), self.full(new))
        except FileNotFoundError:
            return False
        return True

    def set_mode(self, path: str, mode: int) -> None:
        """Give a file its permission bits."""
        os.chmod(self.full(path), mode)

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""
        discard(self.full(path))

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, if they are not there."""
        self.check_way(path)
        os.makedirs(self.full(path), exist_ok=True)

    def sync_folder(self, path: str) -> None:
        """Wait until the disk has the names of a folder."""
        sync_path(self.full(path) if path else self.root)

    def sync(self) -> None:
        """Wait until the disks have all that was written to the team's folders (OSError)."""
        folders = (folder for folder in self.places.folders() if folder)
        sync_disks([self.root, *map(self.full, folders)])

    def foreign_lock(self, path: str, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold the original tools' own lock on ``path`` (a POSIX record lock on ``<path>.lock``).

        Without it their sender, which rewrites the whole file, would overwrite ours, and we would
        call that tampering. Gives whether the lock is held: with ``wait`` it always is. Who has
        the ledger's lock must not wait for it (``Team._transaction``).
        """
        return hold_posix_file_lock(f"{self.full(path)}.lock", wait=wait)


def disk_stat(found: os.stat_result) -> DiskStat:
    """Those fields of a system's stat that are kept."""
    return DiskStat(found.st_size, found.st_mtime_ns, found.st_ino, found.st_mode & 0o7777)


_NO_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EINVAL)
"""A symbolic link, a socket, a folder, a pipe or a device stands there."""


def is_text(name: str) -> bool:
    """Whether a name can be written down (it is UTF-8)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fill(fd: int, file: File, *, durable: bool) -> DiskStat:
    """Write a file that was opened anew, and close it; ``durable``: wait for the disk."""
    try:
        rest = file.data
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fchmod(fd, file.mode)
        if durable:
            os.fsync(fd)
        return disk_stat(os.fstat(fd))
    finally:
        os.close(fd)


def discard(*paths: str) -> None:
    """Remove files, given by their paths for the system, that are there."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)


def in_the_way_on_disk(disk: Disk, path: str) -> str | None:
    """Words for what would be replaced at ``path``; None for a file, a folder, and nothing."""
    odd = disk.odd(path)
    if odd is None or odd == "a folder":
        return None
    try:
        return f"{odd} to {os.readlink(disk.full(path))!r}"
    except OSError:  # no link
        return odd


def odd_config_on_disk(disk: Disk, path: str) -> str | None:
    """Why the configuration at ``path`` is not read though something stands there, or None."""
    odd = disk.odd(path)
    return None if odd is None else f"is {odd}; the defaults hold until it is a regular file"


def move_on_disk(disk: Disk, old: str, new: str, names: Sequence[str]) -> list[str]:
    """Move files, each by one rename; give the names that were not moved (OSError: it refuses).

    These are the ones for which no regular file is there, or whose place in ``new`` is taken: it is
    looked at right before each rename, so that nothing is written over.
    """
    here = {name for name, what in disk.walk(old) if what == "file"}
    disk.make_folder(new)
    before, behind = f"{disk.full(old)}/", f"{disk.full(new)}/"
    left = []
    for name in tell_over(names, "moving files", len(names)):
        if name not in here or os.path.lexists(behind + name):
            left.append(name)
            continue
        try:
            os.rename(before + name, behind + name)
        except FileNotFoundError:  # another program took it meanwhile
            left.append(name)
    return left


def write_missing_to_disk(
    disk: Disk, files: Sequence[tuple[str, File]], *, durable: bool = True
) -> list[DiskStat | None]:
    """Put many files where none stand, and wait for the disk once for all of them.

    The bytes are on the disk before any file has its name, as with ``Disk.write``; not ``durable``:
    nobody waits for it. None for a
    place that somebody else filled meanwhile. The folders' own fsync is left to the caller. After
    an OSError none of the files whose turn had not come is written.
    """
    staged: deque[tuple[str, str, DiskStat]] = deque()
    temporary = ""
    try:
        for folder in {path.rpartition("/")[0] for path, _ in files}:
            disk.check_way(folder)
            disk.make_folder(folder)
        for number, (path, file) in enumerate(files):
            folder = path.rpartition("/")[0]
            temporary = f"{disk.full(folder)}/{TEMPORARY}{os.getpid()}-{number}"
            seen = _fill(os.open(temporary, ANEW, STAGED), file, durable=False)
            staged.append((temporary, disk.full(path), seen))
        if durable:
            os.sync()
        written: list[DiskStat | None] = []
        while staged:
            temporary, full, seen = staged[0]
            written.append(seen if name_file(temporary, full) else None)
            staged.popleft()
    except BaseException:
        discard(temporary, *(name for name, _, _ in staged))
        raise
    return written
