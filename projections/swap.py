"""Replaces a file that others may be writing at that moment, so that none of their bytes is lost.

The new file is staged and exchanged with the old one in one step (Linux: ``renameat2`` with
``RENAME_EXCHANGE``). The old file then has a name that no other program uses, and is examined: it
holds everything that was written between the last look and the exchange, by any means. It is
removed once no program has it open for writing any more; a lease tells that, and where leases fail,
a grace period. A file that only grows is appended to: the system finds the end in the same step
(``O_APPEND``), and the position shows whether others wrote in between.

Source: spec store-and-projections, 3.2 and 3.3; ADR 0010.
"""

import errno
import fcntl
import os
import re
import stat
import sys
import time
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tripod.projections.disk import KEPT, Disk, DiskStat, discard, disk_stat
from tripod.projections.manifest import ManifestEntry
from tripod.projections.projection import File

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

GRACE_S = 120
"""Seconds that a replaced file is kept where the kernel cannot tell whether it is still open."""
MOST_KEPT = 16
"""Files of one folder that are kept for that reason alone."""
TRIES = 5

_NAME = r"([0-9a-f]{16})-([0-9a-f]{16})-([0-9]{1,19}|x)-([0-9a-f]{16})-([0-9a-f]+)-[0-9a-f]{12}"
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


class SavedName(NamedTuple):
    """What the name of a kept file says; marks are the first 16 hex digits of a SHA-256.

    ``of`` is the mark of the replaced file's name. Of the bytes that were expected to come back,
    ``whole`` is the mark of all; ``size`` and ``body`` are of those after a chat's header.
    ``size`` is None where they contradicted the ledger. ``inode`` is that of the file that
    replaces it: as long as the name has it, the exchange has not come.
    """

    of: str
    whole: str
    size: int | None
    body: str
    inode: int


class Swapped(NamedTuple):
    """A file was replaced: what the new one looks like, and where the old one is kept ('' lost).

    ``sure`` is False where the exchange is not to be had, and something else was done.
    """

    stat: DiskStat
    kept: str
    sure: bool


def swap_mark(data: bytes) -> str:
    """The first 16 hex digits of a SHA-256."""
    return sha256(data).hexdigest()[:16]


def split_for_swap(path: str, data: bytes) -> tuple[bytes, bytes]:
    """A chat's header, which any writer rewrites, and what stands after it; else no header."""
    if path.endswith(".chat"):
        front, mark, body = data.partition(b"\n---\n")
        if mark:
            return front + mark, body
    return b"", data


def parse(path: str) -> SavedName | None:
    """What the name of a kept file says; None for any other name."""
    found = re.fullmatch(re.escape(KEPT) + _NAME, path.rpartition("/")[2])
    if found is None:
        return None
    of, whole, size, body, inode = found.groups()
    return SavedName(of, whole, None if size == "x" else int(size), body, int(inode, 16))


def swap_in(
    disk: Disk, path: str, file: File, base: bytes, *, agreed: bool, durable: bool = True
) -> Swapped | None:
    """Put ``file`` in the place of one that held ``base`` when it was last looked at.

    ``agreed`` says whether those bytes agreed with the ledger. Nothing waits for the folder, and
    where it is not ``durable`` nothing waits for the bytes. None
    where the place is empty by now, or something stands there that is no file: that stays, as does
    all after an OSError.
    """
    temporary, found = disk.stage(path, file, durable=durable)
    folder, _, name = path.rpartition("/")
    body = split_for_swap(path, base)[1]
    size = str(len(body)) if agreed else "x"
    marks = f"{swap_mark(name.encode())}-{swap_mark(base)}-{size}-{swap_mark(body)}-{found.inode:x}"
    kept = f"{folder}/{KEPT}{marks}-{os.urandom(6).hex()}".lstrip("/")
    full, beside = disk.full(path), disk.full(kept)
    try:
        os.rename(temporary, beside)
        if not swap_files(beside, full):
            os.rename(beside, temporary)
            linked = _link_instead(temporary, full, beside)
            return Swapped(found, kept if linked else "", sure=False)
        if not stat.S_ISREG(os.lstat(beside).st_mode):  # it came in this very moment
            swap_files(beside, full)
            os.unlink(beside)
            return None
    except FileNotFoundError:
        discard(temporary, beside)
        return None
    except OSError:
        discard(temporary)
        there = disk.stat(kept)
        if there is not None and there.inode == found.inode:
            discard(beside)
        raise
    return Swapped(found, kept, sure=True)


def swap_files(one: str, other: str) -> bool:
    """Give each of two names the other's file, in one step; False where the system cannot.

    Raises OSError: it refuses; FileNotFoundError: one of the names is gone.
    """
    call = _renameat2()
    if call is None:
        return False
    names = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if call(*names) == 0:
        return True
    import _ctypes

    number = _ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), other)


@cache
def _renameat2() -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        import _ctypes  # what ctypes is made of: all of it is a thirtieth of `chat send`

        class Call(_ctypes.CFuncPtr):
            """A function that gives an integer and says in ``errno`` why it failed."""

            _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO

        libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: what is loaded
        return Call(_ctypes.dlsym(libc, "renameat2"))
    except (ImportError, OSError, AttributeError, TypeError):
        return None  # there is no such call, or the parts of this Python are others


def _link_instead(staged: str, full: str, beside: str) -> bool:
    """Keep the old file by a second name, then rename over it; False where it has none.

    An editor's rename in between the two is lost, an append is not: without a second name both are.
    """
    for last in (*[False] * (TRIES - 1), True):
        try:
            os.link(full, beside, follow_symlinks=False)
            break
        except FileNotFoundError:  # it is being replaced by another at this moment
            if last:
                raise
        except OSError as error:
            if error.errno not in (errno.EPERM, *_CANNOT, errno.EMLINK):
                raise
            os.rename(staged, full)
            return False
    os.rename(staged, full)
    return True


def take_swapped(
    disk: Disk, path: str, limit: int, *, patient: bool = True
) -> tuple[bytes, bool] | None:
    """The bytes of a kept file, and whether somebody may still write into it; None: it is gone.

    Where the kernel does not tell, somebody may for a while, if we are ``patient``. Raises
    UnreadableError: the system refuses, or it holds more than ``limit`` bytes.
    """
    full = disk.full(path)
    try:
        fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        data = disk.read(path, limit)
        return None if data is None else (data, True)
    try:
        is_open = _lease(fd)
        data = disk.read(path, limit)
        if data is None:
            return None
        if is_open is None:
            is_open = patient and time.time() - os.fstat(fd).st_ctime < GRACE_S
        return data, is_open
    finally:
        os.close(fd)  # ends the lease


def _lease(fd: int) -> bool | None:
    """Whether anybody has a file open for writing; None where the kernel does not tell.

    If not, nobody can open it for writing until ``fd`` is closed. Who tries makes the kernel send
    a signal, which by default would end us: it is told to send one that by default does nothing.
    """
    try:
        # It is loaded already; ``signal`` makes enums of all that is in it.
        from _signal import SIGURG  # type: ignore[import-not-found]

        fcntl.fcntl(fd, fcntl.F_SETSIG, SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except (OSError, AttributeError):
        return None
    return False


NOT_AS_KNOWN: Final = "not as known"
OTHERS_CAME: Final = "others came"
Outcome = tuple[DiskStat, str] | Literal["not as known", "others came"]


def append_or_swap(
    disk: Disk,
    path: str,
    known: ManifestEntry,
    new: bytes,
    limit: int,
    *,
    hashed: "tuple[DiskStat, Hash] | None" = None,
    durable: bool = True,
) -> Outcome:
    """Add ``new`` at the end of a file; give its stat and digest.

    ``durable``: wait until the disk has it. ``hashed``: a stat of the file, and the hash of the
    bytes that were read after it; without it, or where the stat is another by now, they are read
    here. ``NOT_AS_KNOWN``: its length or digest is not the one that is known, and nothing was
    written. ``OTHERS_CAME``: something of others stands in front of the new bytes, or another file
    stands in the place by now. UnreadableError: the file cannot be read. OSError: the system
    refuses, or wrote a part: a torn end, which ``tripod.projections.decisions.intake`` knows as
    such.
    """
    if hashed is None or hashed[0] != disk.stat(path):
        found = disk.look(path, limit)
        if found is None:
            return NOT_AS_KNOWN
        hashed = found[1], sha256(found[0])
        if len(found[0]) != found[1].size:  # it grew while it was read
            return NOT_AS_KNOWN
    before, digest = hashed
    if (before.size, before.mode) != (known.stat.size, known.stat.mode):
        return NOT_AS_KNOWN
    if digest.hexdigest() != known.digest:
        return NOT_AS_KNOWN
    full = disk.full(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(full, flags)
    except FileNotFoundError:
        return NOT_AS_KNOWN
    try:
        if os.fstat(fd).st_ino != before.inode:
            return NOT_AS_KNOWN
        if os.write(fd, new) != len(new):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), full)
        end = os.lseek(fd, 0, os.SEEK_CUR)
        if durable:
            os.fdatasync(fd)
        after = disk_stat(os.fstat(fd))
    finally:
        os.close(fd)
    there = disk.stat(path)
    alone = end - len(new) == before.size and after.size == end
    if not alone or there is None or there.inode != after.inode:
        return OTHERS_CAME
    digest.update(new)
    return after, digest.hexdigest()
