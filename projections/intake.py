"""Intake: what other programs wrote into the team's files, as drafts of observed entries.

It is the other side of rendering. It reads the disk and the tables and changes neither: the caller
appends the drafts (``tripod sync``, and every command before it acts), or judges them in memory
(``tripod verify``, so that a legitimate append is not called drift). A place where something else
than a file stands is reported, and never written over.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from tripod.ledger import LedgerError, tell
from tripod.projections.bus.intake import take_events
from tripod.projections.bus.tables import BUS
from tripod.projections.chat.intake import take_chats
from tripod.projections.decisions.intake import take_log
from tripod.projections.disk import Disk, in_the_way
from tripod.projections.engine import PROJECTIONS, desired, own_files
from tripod.projections.manifest import Manifest, Reader
from tripod.projections.pieces import BLOCKED, STAYS, Found
from tripod.projections.projection import Source
from tripod.projections.team.intake import config_of, take_inputs, take_others

Broken: TypeAlias = Callable[[str, Exception], None]
"""Called with the part of the intake that could not be done, and why."""


def take_in(
    source: Source, disk: Disk, manifest: Manifest, *, broken: Broken | None = None, **more: Any
) -> Found:
    """Look at the team directory once.

    Args:
        source: the ledger's tables and its entries.
        disk: the team directory.
        manifest: what files looked like when they last agreed with the ledger; an empty one makes
            every file be read.
        broken: called for a part of the intake that a damaged ledger makes fail; the others go on
            (the verifier). Without it the error is raised (no ledger of ours causes it).
        more: ``full``, ``files``, ``size``, ``pruned`` and ``restored`` of the ``Reader``.
    """
    found = Found()
    own = frozenset(path for path, _ in own_files(source))
    reader = Reader(source, disk, found, desired, manifest, own=own, **more)
    for name, part in _PARTS:
        tell(f"reading {name}")
        try:
            part(reader)
        except _BROKEN as error:
            if broken is None:
                raise
            broken(name, error)
    stays = {conflict.path: conflict for conflict in found.conflicts if conflict.what in STAYS}
    found.conflicts = [c for c in found.conflicts if stays.get(c.path, c) is c]
    return found


def _take_queue(reader: Reader) -> None:
    take_events(reader, partial(_restores, reader.source))


def _take_blocked(reader: Reader) -> None:
    """Look at the place of each file that grows; an event's file is replaced by none of ours."""
    for projection in PROJECTIONS:
        for path in () if projection is BUS else projection.paths(reader.source):
            odd = in_the_way(reader.disk, path)
            if odd is not None:
                reader.conflict(path, BLOCKED, f"it is {odd}, and no file")


_PARTS = (
    ("inputs", take_inputs),
    ("the decision log", take_log),
    ("chats", take_chats),
    ("events", _take_queue),
    ("workers and others", take_others),
    ("places", _take_blocked),
)
_BROKEN = (LedgerError, LookupError, TypeError, ValueError, AttributeError, sqlite3.Error)


def _restores(source: Source, queue: str) -> bool:
    """Whether a queue's configuration has the files of deleted events written again."""
    sql = "SELECT settings FROM inputs WHERE path = ?"
    row = source.db.execute(sql, (config_of(queue),)).fetchone()
    settings = {} if row is None or row[0] is None else json.loads(row[0])
    return bool(settings.get("deleted_events") == "restore")
