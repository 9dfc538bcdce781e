"""Intake: what other programs wrote into the team's files, as drafts of observed entries.

It is the other side of rendering. It reads the disk and the tables and changes neither: the caller
appends the drafts (``tripod sync``, and every command before it acts), or judges them in memory
(``tripod verify``, so that a legitimate append is not called drift).

``tripod.projections.swap`` keeps a file that came back from an exchange with foreign bytes in it,
or that was left by a crash. What was added after the bytes that we knew is taken in as if it stood
in the file of today; any other change is evidence, kept whole. Each piece has an id made of the
kept file's own name, which is never used twice: however often it is looked at, it is taken in once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tripod.ledger import Draft, LedgerError, observed_entry_id, tell_progress
from tripod.ledger.kinds.team import DISPLACED
from tripod.ledger.kinds.workers import WRITTEN
from tripod.projections.bus.intake import take_events
from tripod.projections.bus.tables import BUS
from tripod.projections.chat.format import cut_chat_lines
from tripod.projections.chat.intake import ChannelIntake, message_of, take_chats
from tripod.projections.chat.tables import CHAT
from tripod.projections.decisions.format import split_decision_log
from tripod.projections.decisions.intake import DecisionLogIntake, take_decision_logs
from tripod.projections.decisions.tables import LOG
from tripod.projections.disk import Disk, UnreadableError, in_the_way_on_disk
from tripod.projections.engine import PROJECTIONS, desired_file, own_files, past_file
from tripod.projections.layout import COUNTS_FILE, WORKER, WORKER_LOG
from tripod.projections.manifest import FoundPieces, Manifest, ManifestReader
from tripod.projections.pieces import BLOCKED, STAYS, merge_marker_in_piece
from tripod.projections.projection import Source
from tripod.projections.swap import SavedName, parse, split_for_swap, swap_mark, take_swapped
from tripod.projections.team.intake import take_others_workers, take_team_inputs
from tripod.projections.team.tables import COUNTS

if TYPE_CHECKING:
    from tripod.projections.erasure import Unrecorded

Broken: TypeAlias = Callable[[str, Exception], None]
"""Called with the part of the intake that could not be done, and why."""


def take_in(
    source: Source, disk: Disk, manifest: Manifest, *, broken: Broken | None = None, **more: Any
) -> FoundPieces:
    """Look at the team directory once; an empty ``manifest`` makes every file be read.

    ``broken`` is called for a part of the intake that a damaged ledger makes fail, and the others
    go on (the verifier). Without it the error is raised: no ledger of ours causes it. ``more`` are
    ``full``, ``shown``, ``pruned``, ``restored`` and ``remnants`` of the ``ManifestReader``.
    """
    found = FoundPieces()
    own = frozenset(path for path, _ in own_files(source))
    reader = ManifestReader(
        source, disk, found, desired_file, manifest, own=own, past=past_file, **more
    )
    for name, part in PARTS:
        tell_progress(f"reading {name}")
        try:
            part(reader)
        except _BROKEN as error:
            if broken is None:
                raise
            broken(name, error)
    stays = {conflict.path: conflict for conflict in found.conflicts if conflict.what in STAYS}
    found.conflicts = [c for c in found.conflicts if stays.get(c.path, c) is c]
    return found


def _take_blocked(reader: ManifestReader) -> None:
    """Look at the place of each file that grows; an event's file is replaced by none of ours."""
    for projection in PROJECTIONS:
        for path in () if projection is BUS else projection.paths(reader.source):
            odd = in_the_way_on_disk(reader.disk, path)
            if odd is not None:
                reader.conflict(path, BLOCKED, f"it is {odd}, and no file")


def _take_counts(reader: ManifestReader) -> None:
    """See whether the file that we alone write shows an older state; nothing is read back."""
    stat = reader.disk.stat(COUNTS.path)
    if stat is None or reader.unchanged(COUNTS.path, stat):
        return
    with suppress(UnreadableError):
        data = reader.disk.read(COUNTS.path, COUNTS_FILE.limit) or b""
        size = COUNTS.older(reader.source, data, min(reader.shown.files, reader.shown.size))
        if size is not None:
            reader.older(COUNTS.path, size)


PARTS = (
    ("counts", _take_counts),
    ("inputs", take_team_inputs),
    ("the decision log", take_decision_logs),
    ("chats", take_chats),
    ("events", take_events),
    ("workers and others", take_others_workers),
    ("places", _take_blocked),
)
"""What the intake reads, one after the other: a name for findings, and the function.

The decision log is read before the chats: other programs write meanwhile, first a message and then
a decision that refers to it. So the message of each decision that is seen is seen as well.
"""
_BROKEN = (LedgerError, LookupError, TypeError, ValueError, AttributeError, sqlite3.Error)


class Stray(NamedTuple):
    """A kept file: its path, that of the file it was ('' where none has such a name), its bytes."""

    kept: str
    path: str
    said: SavedName
    data: bytes
    is_open: bool
    """Others may still write into it."""


class Taken(NamedTuple):
    """What one look at a kept file gives."""

    drafts: list[Draft]
    """To be appended."""
    is_news: bool
    """The file of today lacks what they say."""
    is_done: bool
    """With them all its bytes are in the ledger, and nobody writes into it any more."""


def find_strays(
    source: Source, disk: Disk, folders: Iterable[str], told: Callable[[str], None]
) -> list[Stray]:
    """The kept files of some folders; ``told`` is called with why one of them cannot be read."""
    found = []
    for folder in folders:
        for kept in disk.kept(folder):
            said = parse(kept)
            try:
                back = None if said is None else take_swapped(disk, kept, WORKER_LOG.limit)
            except UnreadableError as error:
                told(f"{error}; another program wrote it while we did, and it stays where it is")
                continue
            if said is not None and back is not None:
                found.append(Stray(kept, _owner(source, disk, folder, said.of), said, *back))
    return found


def _owner(source: Source, disk: Disk, folder: str, mark: str) -> str:
    """The path of the file whose name has that mark."""
    projected = (path for one in PROJECTIONS if one is not BUS for path in one.paths(source))
    for path in (*(f"{folder}/{name}" for name in disk.names(folder)), *projected):
        above, _, name = path.rpartition("/")
        if above == folder and swap_mark(name.encode()) == mark:
            return path
    return ""


def take_stray(source: Source, disk: Disk, stray: Stray) -> Taken:
    """Say what of a kept file is not in the ledger yet; the tables stand at its head."""
    from tripod.projections.erasure import withhold_erased  # strays are rare: it imports all kinds

    said, path = stray.said, stray.path
    kept = disk.stat(stray.kept)
    today = disk.stat(path) if path else None
    inode = -1 if kept is None else kept.inode
    # The exchange never came: it is ours, or (on a system without one) a second name of today's.
    is_none = inode == said.inode or (today is not None and inode == today.inode)
    if is_none or swap_mark(stray.data) == said.whole:
        return Taken([], is_news=False, is_done=is_none or not stray.is_open)
    body = split_for_swap(path, stray.data)[1]
    is_merged = merge_marker_in_piece(path, stray.data) is None  # else it is kept whole
    if is_merged and said.size is not None and swap_mark(body[: said.size]) == said.body and path:
        reader = ManifestReader(source, disk, FoundPieces(), desired_file, {})
        done = _added(reader, stray, body[said.size :]) if body[said.size :] else None
        if done is not None:
            drafts = [piece.draft for piece in reader.found.pieces]
            return Taken(drafts, is_news=bool(drafts), is_done=done and not stray.is_open)
    if stray.is_open:  # its writer may be at it: a state is kept once, whole
        return Taken([], is_news=False, is_done=False)
    entry_id = observed_entry_id(stray.kept, 0, stray.data)
    if source.ledger.seq_of(entry_id) is not None:
        return Taken([], is_news=False, is_done=True)
    shown, places = withhold_erased(source, path, stray.data)
    reason = "another program changed it at the moment when we replaced it"
    if places:
        reason += f" (it showed {places} redacted places, which were not kept)"
    draft = DISPLACED.draft({"path": path or stray.kept, "reason": reason, "content": shown})
    return Taken([draft._replace(id=entry_id)], is_news=False, is_done=True)


def take_unrecorded(
    source: Source, path: str, found: Sequence[Unrecorded], disk: Disk
) -> FoundPieces:
    """Take in pieces of a file that contradicts the ledger otherwise, as if they stood at its end.

    They become pieces of the log or chat that the file belongs to. Nothing is taken in where the
    ledger does not know that, or where its own end is torn.
    """
    reader = ManifestReader(source, disk, FoundPieces(), desired_file, {})
    folder, _, name = path.partition("/")
    if folder == LOG.folder:
        row = source.db.execute("SELECT log FROM logs WHERE file = ?", (name,)).fetchone()
        if row is not None:
            taker = DecisionLogIntake(reader, row[0])
            for piece in found:
                taker.add(piece.data)
    elif folder == CHAT.folder:
        stem = CHAT.stem(path)
        sql = "SELECT channel FROM archives WHERE archive = ?"
        row = source.db.execute(sql, (stem,)).fetchone()
        channel = ChannelIntake(reader, stem if row is None else row[0])
        held = channel.held()
        if channel.known and (not held or held.endswith(b"\n")):
            for piece in found:
                channel.line(piece.data, message_of(piece.data))
    return reader.found


def _added(reader: ManifestReader, stray: Stray, new: bytes) -> bool | None:
    """Take in what was added; whether that was all of it, None where this file takes nothing in."""
    source, path = reader.source, stray.path
    if path.rpartition("/")[0] == WORKER.folder:
        if stray.is_open:
            return None
        # A worker's file is kept a state at a time: the one of today, and what was added to it.
        entry_id = observed_entry_id(stray.kept, 0, new)
        if source.ledger.seq_of(entry_id) is not None:
            return True
        want = desired_file(source, path)
        if want is not None:
            reader.keep(WRITTEN, path, want.data + new)
        if not reader.found.pieces:
            return None
        reader.found.pieces.identify(entry_id)
        return True
    folder, _, log = path.partition("/")
    if folder == LOG.folder and log in LOG.live(source):
        taker = DecisionLogIntake(reader, log)
        text, pieces = split_decision_log(new)
        parts = [text, *pieces] if text else list(pieces)
        _take(reader, stray, parts[:-1] if stray.is_open else parts, taker.add)
        return not stray.is_open
    if folder == CHAT.folder:
        channel = ChannelIntake(reader, CHAT.stem(path))
        if not channel.known:
            return None
        torn = stray.is_open and not new.endswith(b"\n")
        lines = cut_chat_lines(new)[: -1 if torn else None]
        _take(reader, stray, lines, lambda line: channel.line(line, message_of(line)))
        return not torn
    return None


def _take(
    reader: ManifestReader, stray: Stray, parts: list[bytes], add: Callable[[bytes], None]
) -> None:
    """Add each part that the ledger does not hold yet."""
    for number, part in enumerate(parts):
        entry_id = observed_entry_id(stray.kept, number, part)
        if reader.source.ledger.seq_of(entry_id) is None:
            add(part)
            reader.found.pieces.identify(entry_id)
