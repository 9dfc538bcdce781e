"""Taking in read positions: what the original tool moved in ``chat/*.chat.cursors``.

Source: spec nbs-compat C1, C2. Only called in the place of the writer and under the chat's lock,
with the tables at the head: an index in that file counts the messages of the live file.
"""

from __future__ import annotations

from hashlib import sha256

from ledger.drafts import content
from ledger.entry import Draft
from projections import CHAT
from projections.disk import Disk
from projections.formats.cursors import parse_cursors
from projections.intake.piece import Found, Reader, fits, make_piece
from projections.projection import Source
from projections.reading import index_of, position

__all__ = ["seen_positions"]


def seen_positions(source: Source, disk: Disk, channel: str, data: bytes) -> Draft | None:
    """The entry on a cursors file; None where nothing in it is news to the ledger.

    News is a position beyond what the ledger says: a lower one may be what we wrote before others
    spoke. Two moves of the original are none: where it splits lines off, positions among those
    stay at its first message; and its sender is put behind its own message, over whatever others
    said before.
    """
    row = source.db.execute(
        "SELECT live_from, lines FROM channels WHERE channel = ?", (channel,)
    ).fetchone()
    path = f"{CHAT.folder}/{channel}.chat.cursors"
    stat = disk.stat(path)
    if row is None or stat is None:
        return None
    moved = []
    for handle, index in parse_cursors(data).items():
        known = position(source, channel, handle)
        ours = index_of(source, channel, handle)
        if index <= (-1 if ours is None else ours) or (known and not index):
            continue
        upto, speaker = _message(source, channel, row[0], index) or (row[1], "")
        if known is None or (speaker != handle and upto > known.upto):
            moved.append({"handle": handle, "upto": upto})
    last = source.db.execute(
        "SELECT sha256, seq FROM read_positions WHERE channel = ?", (channel,)
    ).fetchone()
    digest = sha256(data).hexdigest()
    while not fits(moved):
        moved = moved[: len(moved) // 2]  # the others are new again at the next look
    if not moved:
        return None
    blobs: list[bytes] = []
    found = Found()
    make_piece(
        Reader(source, disk, {}, full=True, found=found),
        kind="chat.cursors-seen",
        stream=f"chat/{channel}",
        actor="unknown",
        body={
            "channel": channel,
            "content": content(data, blobs),
            "lines": row[1],
            "moved": moved,
            "sha256": digest,
        },
        path=path,
        data=data,
        when=stat.mtime_us,
        rank=0,
        ordinal=0 if last is None else last[1],
        blobs=blobs,
        mtime_us=stat.mtime_us,
    )
    return found.pieces[0].draft


def _message(source: Source, channel: str, first: int, index: int) -> tuple[int, str] | None:
    """The number behind the message of that index in the live file, and who said it."""
    row = source.db.execute(
        "SELECT number, handle FROM lines WHERE channel = ? AND number >= ?"
        " AND handle IS NOT NULL AND gone IS NULL ORDER BY number LIMIT 1 OFFSET ?",
        (channel, first, index),
    ).fetchone()
    return None if row is None else (row[0] + 1, row[1])
