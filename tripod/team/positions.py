"""Keeps ``chat/*.chat.cursors``: there the original tool reads and writes who has read how far.

The ledger holds the read positions; that file is shared with a tool that knows no ledger. In every
act on a chat, under the chat's own lock, what the tool moved is taken in, and after the commit the
file is told as much as it can hold: the last message before the first unread one. It is never
waited for: lost in a power cut, it is written again, in any case with the chat that it belongs to:
an index there means another message after lines that came, or went, since it was written.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

from tripod.projections import (
    CHAT,
    CURSORS,
    RACY_NS,
    UNMERGED_CURE,
    File,
    UnreadableError,
    merge_marker,
)
from tripod.projections.chat.format import format_cursors, parse_cursors
from tripod.projections.chat.tables import index_of
from tripod.team.act import Act


def _path(channel: str) -> str:
    return f"{CHAT.folder}/{channel}.chat.cursors"


def take_positions(act: Act, channel: str, *, locked: bool = True) -> None:
    """Append what the original tool moved since we last looked.

    ``locked``: the act holds the chat's lock, and may tell the file what followed.
    """
    path = _path(channel)
    stat = act.disk.stat(path)
    known = act.writer.known.get(path)
    if stat is None or (
        known is not None and known.stat == stat and known.noted_ns - stat.mtime_ns > RACY_NS
    ):
        return
    data = _read(act, path)
    if data is None:
        return
    digest = sha256(data).hexdigest()
    if known is not None and known.digest == digest:
        return
    from tripod.projections.chat.intake import seen_positions

    if not act.writer.is_accounted(path, digest):  # else another part of this act took it in
        act.writer.account(path, digest)
        files = act.transaction.cursors().files
        draft = seen_positions(act.source, act.disk, channel, data, files=files)
        if draft is not None:
            act.append([draft])
    if locked:
        show_positions(act, channel)


_MOVING = ("chat.sent", "chat.rotated", "chat.deleted")
"""Kinds of entries that move the lines of a live file."""


def behind(act: Act) -> list[str]:
    """Channels whose live files a writer that died, or waits, should have written.

    Which message an index in the file beside such a one means is known until it is written, and
    not behind that.
    """
    stop = act.entries[0].seq if act.entries else act.transaction.size
    unwritten = act.transaction.raw(act.transaction.cursors().files, stop, kinds=_MOVING)
    return sorted({entry.stream.removeprefix("chat/") for entry in unwritten})


def show_positions(act: Act, channel: str, handles: Collection[str] | None = None) -> None:
    """Behind the commit, write where ``handles`` stand now; None: all that the file tells of."""
    key = ("cursors", channel) if handles is None else ("cursors", channel, "", *handles)
    act.later[key] = lambda: _show_locked(act, channel, handles)


def _show_locked(act: Act, channel: str, handles: Collection[str] | None) -> None:
    """Under the chat's lock: what was put off may be done by an act that has not got it.

    It must not wait for it; where others have it, or moved a position since we looked, the file is
    told by who reads or speaks next. All positions cannot wait: then the chat is written again.
    """
    chat = f"{CHAT.folder}/{channel}.chat"
    if chat in act.writer.held:
        is_told = _show(act, channel, handles)
    else:
        try:
            with act.disk.foreign_lock(chat, wait=False) as is_ours:
                is_told = is_ours and _show(act, channel, handles)
        except OSError as error:
            act.warn(f"{_path(channel)}: not written: {error.strerror}")
            return
    if not is_told and handles is None:
        act.writer.late[chat] = None


def _show(act: Act, channel: str, handles: Collection[str] | None) -> bool:
    """False where others moved a position that is not in the ledger."""
    path = _path(channel)
    data = _read(act, path)
    if data is None and act.disk.stands(path):
        return True
    if data is not None and not act.writer.is_accounted(path, sha256(data).hexdigest()):
        return False
    before = parse_cursors(data or b"")
    if handles is None:
        rows = act.source.db.execute("SELECT handle FROM cursors WHERE channel = ?", (channel,))
        handles = [*before, *(handle for (handle,) in rows.fetchall())]
    after = dict(before)
    for handle in handles:
        index = index_of(act.source, channel, handle)
        if index is None:
            after.pop(handle, None)
        elif "=" not in handle and "\n" not in handle and not handle.startswith("#"):
            after[handle] = index
    if after == before:
        stat = act.disk.stat(path)
    else:
        data = format_cursors(after)
        try:
            stat = act.disk.write(path, File(data, CURSORS.mode), durable=False)
        except OSError as error:
            act.warn(f"{path}: not written: {error.strerror}; the original tool shows more as new")
            return True
    if stat is not None and data is not None:
        digest = sha256(data).hexdigest()
        act.writer.account(path, digest)
        act.writer.wrote(path, stat, digest)
    return True


def _read(act: Act, path: str) -> bytes | None:
    try:
        data = act.disk.read(path, CURSORS.limit)
    except UnreadableError as error:
        act.warn(f"{error}; the read positions in it are left alone")
        return None
    line = None if data is None else merge_marker(path, data)
    if line is not None:
        text = f"{path}: line {line} is a conflict marker of a merge that is not finished"
        act.warn(f"{text}; the read positions in it are left alone: {UNMERGED_CURE}")
        return None
    return data
