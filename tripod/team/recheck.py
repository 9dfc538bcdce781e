"""Looks once more where files were being written while they were looked at.

The original tools, and many editors, write a file over in its place: it is empty, or half there,
for a moment. Who looks just then sees a file that contradicts the ledger, and calls tampering what
is honest work. Neither is it one state that is judged, where others append while ``verify`` reads.
So what contradicts, and was written just now, is looked at again, a few times and no more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from tripod.ledger.errors import LedgerError
from tripod.ledger.sqlite.reader import read_only

if TYPE_CHECKING:
    from tripod.projections.disk import Disk
    from tripod.projections.pieces import Found
    from tripod.verify.evidence import Evidence

TIMES = 5
_PAUSE_S = 0.01  # before the second look; twice as long before each one after it
_JUST_NS = 1_000_000_000
_TICK_NS = 10_000_000  # a file's time is that of the last tick of the kernel's clock
_WRITTEN = ("edited", "unreadable")
_STEPS = 10_000  # instructions of SQLite's machine


def look(disk: Disk, at: Callable[[], Found]) -> Found:
    """What ``at`` finds; again while a file contradicts that was written just now."""
    found, pause = at(), _PAUSE_S
    for _ in range(1, TIMES):
        if not any(c.what in _WRITTEN and _is_just_written(disk, c.path) for c in found.conflicts):
            break
        time.sleep(pause)
        pause *= 2
        found = at()
    return found


def _is_just_written(disk: Disk, path: str) -> bool:
    stat = disk.stat(path)
    return stat is not None and abs(time.time_ns() - stat.mtime_ns) < _JUST_NS


def changed_meanwhile(evidence: Evidence) -> bool:
    """Whether the ledger or a file of the team changed since ``evidence`` was collected."""
    disk = evidence.disk
    if disk is None or evidence.db is None or evidence.loaded or evidence.problem:
        return False  # what could not be read at all is not asked again
    since = evidence.now_us * 1000 - _TICK_NS
    return _grew(evidence) or any(changed >= since for changed in _times(disk))


def _grew(evidence: Evidence) -> bool:
    import sqlite3

    with suppress(LedgerError, sqlite3.Error), closing(read_only(evidence.database)) as db:
        # One step down an index. A view in the table's place may never end: it is cut off.
        db.set_progress_handler(lambda: 1, _STEPS)
        last = db.execute("SELECT max(seq) + 1 FROM entries").fetchone()[0] or 0
        return bool(last != evidence.rows)
    return False


def _times(disk: Disk) -> Iterator[int]:
    """When the team's folders and files were changed last; not those of the database."""
    from tripod.projections import LOG
    from tripod.projections.team.tables import PATH

    places = disk.places
    for folder in (*places.queue_folders(), *places.chat_folders(), LOG.folder, "workers"):
        with suppress(OSError):
            yield os.stat(disk.full(folder)).st_mtime_ns
            with os.scandir(disk.full(folder)) as entries:
                for entry in entries:
                    with suppress(OSError):
                        yield entry.stat(follow_symlinks=False).st_mtime_ns
    with suppress(OSError):
        yield os.lstat(disk.full(PATH)).st_mtime_ns
