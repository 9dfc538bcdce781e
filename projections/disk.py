"""The team directory on disk: bounded reads, atomic writes, the original tools' locks.

Names in it come from strangers: no symbolic link is followed for a file, nothing outside the
directory is opened, and a file above its limit is refused before it is read.

Some things in the place of a projected file must not be written over. A person puts a symbolic link
there on purpose (a log that is kept under ``docs/``): it is reported and left as it is. A folder is
harmless: nothing can be written over it. A file with conflict markers is half of a merge that a
person has yet to finish: taken in, its marker lines would stand in the ledger for ever; written
over, the other side's part would be gone.

Many files are moved and put in place at once, for a fraction of the cost of each by itself.
"""

import errno
import os
import re
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from tripod.ledger import TripodError
from tripod.ledger.files import hold_record_lock, name_file, open_plain, sync_path
from tripod.ledger.progress import over
from tripod.projections.layout import Places
from tripod.projections.projection import File

RACY_NS = 30_000_000  # a file clock ticks every 1 to 10 ms: within it an equal time proves nothing
TEMPORARY = ".tripod-new-"
KEPT = ".tripod-swap-"  # ``tripod.projections.swap`` says what such a name means
HIDDEN = (TEMPORARY, KEPT)

_ODD = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}  # fmt: skip
ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class UnreadableError(TripodError):
    """The system refuses to give a file's bytes; the message says why."""


class TooBigError(UnreadableError):
    """A file is larger than what its place allows; it was not read."""


class UnmergedError(UnreadableError):
    """A file holds the conflict markers of a merge: nothing of it is taken in, or written over."""


class Stat(NamedTuple):
    """What tells cheaply whether a file may have changed. Never proof that it has not."""

    size: int
    mtime_ns: int
    inode: int
    mode: int

    @property
    def mtime_us(self) -> int:
        """The file's time as an entry holds it: a file may be dated anywhere, a count may not."""
        return min(max(0, self.mtime_ns // 1000), 2**53 - 1)


class Disk:
    """One team directory; paths are relative to it, with forward slashes."""

    def __init__(
        self, root: str, *, steady: bool = False, places: Mapping[str, str] | None = None
    ) -> None:
        """Nothing is opened yet. ``steady``: look once at a folder, not at each of its files.

        ``places`` says which first parts of paths stand for folders elsewhere.
        """
        self.root = root
        self.places = Places(root, places or {})
        self._straight: set[str] | None = set() if steady else None
        self._odd: dict[str, set[str]] | None = {} if steady else None

    def full(self, path: str) -> str:
        """The path for the system.

        Raises:
            ValueError: it would leave the team directory.
        """
        if path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise ValueError(f"{path!r} leaves the team directory")
        return self.places.full(path) or f"{self.root}/{path}"

    def stat(self, path: str) -> Stat | None:
        """Size, time, inode and permission bits of a regular file or folder; None for others."""
        try:
            found = os.lstat(self.full(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return None
        return stat_of(found)

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted, our unfinished files left out; [] if it is not one."""
        found = self._listed(folder)
        # A name that is no UTF-8 cannot be written down anywhere; it stays where it is.
        return sorted(name for name in found if not name.startswith(HIDDEN) and _is_text(name))

    def kept(self, folder: str) -> list[str]:
        """Paths of the replaced files that are kept in a folder (``tripod.projections.swap``)."""
        front = f"{folder}/" if folder else ""
        return sorted(front + name for name in self._listed(folder) if name.startswith(KEPT))

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
                    if not _is_text(name):
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
        """Whether anything has this name, whatever it is."""
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

    def _listed(self, folder: str) -> list[str]:
        if self._leads_away(folder):
            return []
        try:
            if folder:
                return os.listdir(self.full(folder))
            return [name for name in os.listdir(self.root) if name not in self.places.hidden]
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
        names = "/".join(["", *self._listed(folder), ""])
        hidden = re.findall(rf"/\.[^/]*{re.escape(suffix)}(?=/)", names) if "/." in names else ()
        return names.count(f"{suffix}/") - len(hidden)

    def is_file(self, path: str) -> bool:
        """Whether a regular file stands there (no symbolic link)."""
        try:
            return stat.S_ISREG(os.lstat(self.full(path)).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, path: str, limit: int) -> bytes | None:
        """The bytes of a regular file, None if absent.

        Raises:
            TooBigError: it holds more than ``limit`` bytes.
            UnreadableError: the system refuses.
        """
        found = self.look(path, limit)
        return None if found is None else found[0]

    def look(self, path: str, limit: int) -> tuple[bytes, Stat] | None:
        """The bytes of a regular file and its stat, taken together; else as ``read``."""
        if self._leads_away(path.rpartition("/")[0]):
            return None
        full = self.full(path)
        try:
            if self._is_odd(path, full):
                return None
            fd = open_plain(full)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in _NO_FILE:
                return None
            raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
        try:
            found = os.fstat(fd)
            if found.st_size > limit:
                raise TooBigError(f"{path} holds {found.st_size} bytes; at most {limit} are read")
            data = _all_of(fd, found.st_size, limit)
            if len(data) > limit:
                raise TooBigError(f"{path} grew while it was read; at most {limit} bytes are read")
            return data, stat_of(found)
        finally:
            os.close(fd)

    def _is_odd(self, path: str, full: str) -> bool:
        """Whether no regular file stands there: to open a device may do something."""
        if self._odd is None:
            return not stat.S_ISREG(os.lstat(full).st_mode)
        folder, _, name = path.rpartition("/")
        if folder not in self._odd:
            with os.scandir(full.rpartition("/")[0]) as found:
                odd = {item.name for item in found if not item.is_file(follow_symlinks=False)}
            self._odd[folder] = odd
        return name in self._odd[folder]

    def write(
        self,
        path: str,
        file: File,
        *,
        sync: bool = True,
        durable: bool = True,
        anew: bool = False,
        unless: Callable[[], bool] | None = None,
    ) -> Stat | None:
        """Put a file in its place, whole or not at all: temporary name, fsync, rename, fsync.

        Without ``sync`` the folder's own fsync is left to the caller, who writes more files;
        not ``durable``: nobody waits for the disk at all, and a power cut may leave it empty.
        ``anew``: only where nothing stands; None is given where something came meanwhile.
        ``unless`` is asked last of all, when only the rename is left to do: if it says yes the
        place stays as it is and None is given, else what the written file looks like.

        Raises:
            OSError: the system refuses, or the file's folder is a symbolic link.
        """
        temporary, found = self.stage(path, file, durable=durable)
        full = self.full(path)
        try:
            if unless is not None and unless():
                _unlink(temporary)
                return None
            if not anew:
                os.rename(temporary, full)
            elif not name_file(temporary, full):
                return None
        except BaseException:
            _unlink(temporary)
            raise
        if sync and durable:
            self.sync_folder(path.rpartition("/")[0])
        return found

    def stage(self, path: str, file: File, *, durable: bool = True) -> tuple[str, Stat]:
        """Write a file beside its place, under a temporary name: gives that, and its stat.

        Raises:
            OSError: the system refuses; nothing is left behind.
        """
        self.check_way(path.rpartition("/")[0])
        folder = self.full(path).rpartition("/")[0]
        temporary = f"{folder}/{TEMPORARY}{os.getpid()}"
        try:
            fd = os.open(temporary, ANEW, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            fd = os.open(temporary, ANEW, 0o600)
        try:
            with os.fdopen(fd, "wb") as out:
                out.write(file.data)
                out.flush()
                os.fchmod(fd, file.mode)
                if durable:
                    os.fsync(fd)
                return temporary, stat_of(os.fstat(fd))
        except BaseException:
            _unlink(temporary)
            raise

    def check_way(self, folder: str) -> None:
        """Raise OSError where a folder is a symbolic link: it may lead out of the directory."""
        if self._leads_away(folder):
            reason = "a symbolic link stands where the team's own folder belongs"
            raise OSError(errno.ELOOP, reason, self.full(folder))

    def clear(self, folder: str) -> None:
        """Remove what writers left that died before their rename; only for who is sole writer."""
        for name in self._listed(folder):
            if name.startswith(TEMPORARY):
                _unlink(f"{self.full(folder) if folder else self.root}/{name}")

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
        _unlink(self.full(path))

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, if they are not there."""
        self.check_way(path)
        os.makedirs(self.full(path), exist_ok=True)

    def sync_folder(self, path: str) -> None:
        """Wait until the disk has the names of a folder."""
        sync_path(self.full(path) if path else self.root)

    def foreign_lock(self, path: str, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold the original tools' own lock on ``path`` (a POSIX record lock on ``<path>.lock``).

        Without it their sender, which rewrites the whole file, would overwrite ours, and we would
        call that tampering. Gives whether the lock is held: with ``wait`` it always is. Who holds
        the ledger's lock must not wait: others take this one first, and both would wait for ever.
        """
        return hold_record_lock(f"{self.full(path)}.lock", wait=wait)


def stat_of(found: os.stat_result) -> Stat:
    """Those fields of a system's stat that are kept."""
    return Stat(found.st_size, found.st_mtime_ns, found.st_ino, found.st_mode & 0o7777)


_NO_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EINVAL)
"""A symbolic link, a socket, a folder, a pipe or a device stands there."""


def _all_of(fd: int, size: int, limit: int) -> bytes:
    """What a file holds, a little over ``limit`` at most; it may have grown since it was asked."""
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    parts, total = [data], len(data)
    while total <= limit and (part := os.read(fd, 1 << 20)):
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


# In the way -------------------------------------------------------------------------------------


UNMERGED_CURE = (
    "finish the merge: keep this ledger's lines first and the other side's behind them, remove the "
    "marker lines, then `tripod sync`"
)

# As git writes them: seven of a kind (an attribute may ask for more), then a label or nothing.
# A pattern as text: hot commands import this module, and few of them meet a marker.
_MARKER = rb"(?m)^(?:<{7,}+|\|{7,}+|>{7,}+)(?: [^\n]*)?\r?$|^={7,}+\r?$"
_FENCES = (b"```", b"~~~")
_WORDS = (b"<<<<<<<", b">>>>>>>")


def in_the_way(disk: Disk, path: str) -> str | None:
    """Words for what would be replaced at ``path``; None for a file, a folder, and nothing."""
    odd = disk.odd(path)
    if odd is None or odd == "a folder":
        return None
    try:
        return f"{odd} to {os.readlink(disk.full(path))!r}"
    except OSError:  # no link
        return odd


def merge_marker(path: str, data: bytes, held: bytes = b"") -> int | None:
    r"""The number, from 1, of the first line that is a conflict marker; None without a conflict.

    A text that quotes markers is no conflict: in a Markdown file two of a conflict's markers must
    follow each other in their order, outside of a fenced block. In a chat, whose lines are base64,
    one that opens or closes a conflict is enough. Logs of workers are never judged: they only
    grow, and hold what terminals showed.

    Args:
        path: the file's path within the team directory.
        data: its bytes.
        held: what the ledger has for it; a marker that stands there was taken in long ago.

    >>> merge_marker("scribe/log.md", b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\n")
    2
    >>> merge_marker("scribe/log.md", b"a\n=======\nb\n") is None
    True
    """
    if path.endswith(".log") or not any(word in data for word in _WORDS):
        return None
    found = list(re.finditer(_MARKER, data))
    old = (
        Counter(match[0].rstrip(b"\r") for match in re.finditer(_MARKER, held))
        if held
        else Counter()
    )
    if found and not Counter(match[0].rstrip(b"\r") for match in found) - old:
        return None
    quoted = frozenset[int]()
    if not path.endswith(".chat") and any(fence in data for fence in _FENCES):
        quoted = _fenced(data)
    first: tuple[int, int, bytes] | None = None  # its line, how many characters, which
    line, before = 1, 0
    for match in found:
        line, before = line + data.count(b"\n", before, match.start()), match.start()
        if line in quoted:
            continue
        text = match[0]
        kind = text[:1]
        size = len(text) - len(text.lstrip(kind))
        if path.endswith(".chat"):
            if kind in b"<>":
                return line
        elif first is not None and size == first[1] and _follows(first[2], kind):
            return first[0]
        elif kind in b"<=":
            first = line, size, kind
    return None


def _fenced(data: bytes) -> frozenset[int]:
    """The numbers, from 1, of the lines of a Markdown file that are in fenced blocks of code."""
    from markdown_it import MarkdownIt

    # One character a byte, and no line break but ours: so the numbers of lines are ours, too.
    text = data.replace(b"\r", b" ").decode("latin-1")
    blocks = MarkdownIt("zero").enable(["fence", "code"]).parse(text)
    spans = [block.map for block in blocks if block.type == "fence" and block.map]
    return frozenset(line + 1 for start, stop in spans for line in range(start, stop))


def _follows(first: bytes, kind: bytes) -> bool:
    """Whether a conflict goes on with this marker: ``<<<<<<<``, ``|||||||``, ``=======``, ..."""
    return kind in b"|=>" if first == b"<" else kind == b">"


# Moving -----------------------------------------------------------------------------------------


def move_all(disk: Disk, old: str, new: str, names: Sequence[str]) -> list[str]:
    """Move files, each by one rename; give the names that were not moved.

    These are the ones for which no regular file is there, or whose place in ``new`` is taken: it is
    looked at right before each rename, so that nothing is written over.

    Raises:
        OSError: the system refuses; a symbolic link stands where a folder belongs.
    """
    here = {name for name, what in disk.walk(old) if what == "file"}
    disk.make_folder(new)
    before, behind = f"{disk.full(old)}/", f"{disk.full(new)}/"
    left = []
    for name in over(names, "moving files", len(names)):
        if name not in here or os.path.lexists(behind + name):
            left.append(name)
            continue
        try:
            os.rename(before + name, behind + name)
        except FileNotFoundError:  # another program took it meanwhile
            left.append(name)
    return left


def write_missing(disk: Disk, files: Sequence[tuple[str, File]]) -> list[Stat | None]:
    """Put many files where none stand, and wait for the disk once for all of them.

    The bytes are on the disk before any file has its name, as with ``Disk.write``. None for a
    place that somebody else filled meanwhile. The folders' own fsync is left to the caller.

    Raises:
        OSError: the system refuses; none of the files whose turn had not come is written.
    """
    staged: deque[tuple[str, str, Stat]] = deque()
    temporary = ""
    try:
        for folder in {path.rpartition("/")[0] for path, _ in files}:
            disk.check_way(folder)
            disk.make_folder(folder)
        for number, (path, file) in enumerate(files):
            folder = path.rpartition("/")[0]
            temporary = f"{disk.full(folder)}/{TEMPORARY}{os.getpid()}-{number}"
            fd = os.open(temporary, ANEW, 0o600)
            try:
                _write_all(fd, file.data)
                os.fchmod(fd, file.mode)
                staged.append((temporary, disk.full(path), stat_of(os.fstat(fd))))
            finally:
                os.close(fd)
        os.sync()
        written: list[Stat | None] = []
        while staged:
            temporary, full, stat = staged[0]
            written.append(stat if name_file(temporary, full) else None)
            staged.popleft()
    except BaseException:
        for left in (temporary, *(name for name, _, _ in staged)):
            with suppress(FileNotFoundError):
                os.unlink(left)
        raise
    return written


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
