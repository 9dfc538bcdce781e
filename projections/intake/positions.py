"""Taking in read positions: what the original tool moved in ``chat/*.chat.cursors``.

Source: spec nbs-compat C1, C2. Only called in the place of the writer and under the chat's lock,
with the tables at the head: an index in that file counts the messages of the live file. Where that
is behind the ledger, the index may count what it shows, or what it is about to show: of the two,
what leaves more to be read holds.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import NamedTuple

from ledger.drafts import content
from ledger.entry import Draft
from projections import CHAT
from projections.disk import Disk
from projections.formats.cursors import parse_cursors
from projections.intake.piece import Found, Reader, fits, make_piece
from projections.projection import Source
from projections.reading import index_of, position

_NOW = (
    "SELECT number, handle FROM lines WHERE channel = ?1 AND number >= ?2"
    " AND handle IS NOT NULL AND gone IS NULL ORDER BY number"
)
_BEFORE = (
    "SELECT number, handle FROM lines WHERE channel = ?1 AND number >= ?2"
    " AND handle IS NOT NULL AND (gone IS NULL OR gone >= ?3)"
    " AND seq NOT IN (SELECT value FROM json_each(?4)) ORDER BY number"
)


class _Picture(NamedTuple):
    """The messages of a live file, numbers and handles; ``stop`` is behind the last of them."""

    messages: list[tuple[int, str]]
    stop: int

    def at(self, index: int) -> tuple[int, str]:
        """The number behind the message of that index, and who said it ('' behind them all)."""
        if index < len(self.messages):
            number, speaker = self.messages[index]
            return number + 1, speaker
        return self.stop, ""


def seen_positions(
    source: Source, disk: Disk, channel: str, data: bytes, *, files: int
) -> Draft | None:
    """The entry on a cursors file; None where nothing in it is news to the ledger.

    ``files`` entries of the ledger are known to be shown by the files.

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
    moved = _moved(source, channel, data, _pictures(source, channel, row[0], row[1], files))
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


def _moved(
    source: Source, channel: str, data: bytes, shown: tuple[list[_Picture], int]
) -> list[dict[str, str | int]]:
    """What is news of a cursors file beside a live file that shows these pictures."""
    pictures, most = shown
    moved: list[dict[str, str | int]] = []
    for handle, index in parse_cursors(data).items():
        known = position(source, channel, handle)
        ours = index_of(source, channel, handle)
        if index <= (-1 if ours is None else ours) or (known and not index):
            continue
        places = [picture.at(index) for picture in pictures]
        upto = min(most, *(stop for stop, _ in places))
        is_own = handle in [speaker for _, speaker in places]
        if upto if known is None else not is_own and upto > known.upto:
            moved.append({"handle": handle, "upto": upto})
    return moved


def _pictures(
    source: Source, channel: str, live_from: int, lines: int, files: int
) -> tuple[list[_Picture], int]:
    """What the live file shows, or is about to; and the number below which it shows all."""
    db = source.db
    now = _Picture(db.execute(_NOW, (channel, live_from)).fetchall(), lines)
    sql = "SELECT seq FROM entries WHERE stream = ? AND seq >= ?"
    seqs = [seq for (seq,) in db.execute(sql, (f"chat/{channel}", files))]
    ours = [seq for seq, body in source.bodies(seqs).items() if "observed" not in body]
    if not ours:
        return [now], lines
    unwritten = json.dumps(ours)
    among = "seq IN (SELECT value FROM json_each(?))"
    sql = f"SELECT min(first) FROM archives WHERE channel = ? AND {among}"
    first = db.execute(sql, (channel, unwritten)).fetchone()[0]
    first = live_from if first is None else first
    shown = db.execute(_BEFORE, (channel, first, files, unwritten)).fetchall()
    sql = f"SELECT min(number) FROM lines WHERE channel = ? AND {among}"
    most = db.execute(sql, (channel, unwritten)).fetchone()[0]
    stop = shown[-1][0] + 1 if shown else 0
    return [now, _Picture(shown, stop)], lines if most is None else most
