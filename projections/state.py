"""Earlier states of the team's files, as a checkout, a stash or a backup puts them back.

A file shows an *older state* where its bytes are exactly what the ledger gave for it as of an
earlier entry. That is neither an edit nor a deletion: the ledger holds all that it shows and all
that it lacks, nothing of it is taken in, and the next act writes the newest state.

Most of it is decided by the rows of the tables: which lines or pieces the file would show then. The
header of a chat and a worker's file depend on more: there the few entries of their stream are
folded again. An event's two places are told by its row (``tripod.projections.bus.intake``).

Each function gives how many entries the file shows, the fewest that are possible, or None.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable
from itertools import islice
from operator import itemgetter
from typing import TypeAlias

from tripod.ledger.files import read_plain_file
from tripod.ledger.locator import FOLDER, work_tree_around
from tripod.projections.chat.format import split_chat_file
from tripod.projections.chat.tables import CHAT, render_chat_line
from tripod.projections.decisions.format import split_decision_log
from tripod.projections.decisions.tables import render_decision_piece
from tripod.projections.layout import LIVE
from tripod.projections.projection import File, Source
from tripod.projections.workers.tables import worker_of_path

Past: TypeAlias = Callable[[Source, str, int, str], File | None]
"""The file that the entries of one stream before a number gave for a path, or None."""

_MOST_INDEX = 64 * 1024 * 1024


def older_log(source: Source, log: str, data: bytes) -> int | None:
    """Whether a decision log shows the pieces that stood in it as of an earlier entry."""
    _, shown = split_decision_log(data)
    sql = "SELECT seq FROM pieces WHERE log = ? ORDER BY seq"
    pieces = [seq for (seq,) in source.db.execute(sql, (log,))]
    kinds = ("log.begun", "log.rotated")
    begun = [
        entry
        for entry in source.ledger.read(stream="decisions", kinds=kinds)
        if entry.data.get("file", LIVE) == log
    ]
    heads = [(one.seq, one.data.get("count", 0), one.data["header"]) for one in begun]
    if not heads:  # a peer began it
        rows = source.db.execute("SELECT seq FROM logs WHERE file = ?", (log,))
        heads = [(seq, 0, source.body(seq)["header"]) for (seq,) in rows.fetchall()]
    ends = [*(start for start, *_ in heads[1:]), 2**62]
    first = 0
    found = None
    for (start, count, header), end in zip(heads, ends, strict=True):
        first += count
        those = pieces[first : first + len(shown)]
        if len(those) < len(shown) or any(seq >= end for seq in those):
            continue
        whole = source.content(header)
        whole += b"".join(render_decision_piece(source, body) for body in source.each_body(those))
        if whole == data:
            found = max([start, *those]) + 1
    return found


def older_chat(source: Source, past: Past, channel: str, data: bytes) -> int | None:
    """Whether a chat's file is what it was as of an earlier entry, its header included."""
    file = split_chat_file(data)
    if file is None:
        return None
    size, count = len(data) - len(file.header_raw), len(file.lines)
    db = source.db
    sql = "SELECT number, seq, size, gone FROM lines WHERE channel = ? ORDER BY number"
    lines = db.execute(sql, (channel,)).fetchall()
    moved = db.execute("SELECT seq, stop FROM archives WHERE channel = ?", (channel,)).fetchall()
    # Between two of these entries the file only grows.
    cuts = sorted({seq for seq, _ in moved} | {gone for *_, gone in lines if gone is not None})
    for start, end in reversed([*zip([0, *cuts], [*cuts, 2**62], strict=True)]):
        live_from = max((stop for seq, stop in moved if seq <= start), default=0)
        first = bisect_left(lines, live_from, key=itemgetter(0))
        come = (lines[at] for at in range(first, bisect_left(lines, end, key=itemgetter(1))))
        there = ((seq, length) for _, seq, length, gone in come if gone is None or gone >= end)
        shown = [*islice(there, count + 1)]
        part = shown[:count]
        if len(part) < count or sum(length for _, length in part) != size:
            continue
        bodies = source.each_body([seq for seq, _ in part])
        if b"".join(render_chat_line(source, body) for body in bodies) != data[len(data) - size :]:
            continue  # to fold the header again takes long
        low = max([start, *(seq for seq, _ in part)]) + 1
        high = min([end, *(seq for seq, _ in shown[count:])])
        for before in dict.fromkeys((high, low)):  # another program's header has its own entry
            stream = f"{CHAT.folder}/{channel}"
            want = past(source, stream, before, CHAT.file(channel))
            if want is not None and want.data == data:
                return int(low)
    return None


def older_worker(source: Source, past: Past, path: str, data: bytes) -> int | None:
    """Whether a worker's file is what it was as of an earlier entry."""
    stream = f"workers/{worker_of_path(path)}"
    found = None
    for entry in source.ledger.read(stream=stream):
        want = past(source, stream, entry.seq + 1, path)
        if want is not None and want.data == data:
            found = entry.seq + 1
    return found


def is_checked_out(root: str, since_ns: int) -> bool:
    """Whether git moved HEAD since, in a repository whose index holds files of the team directory.

    Such files may come and go with each commit that is checked out.
    """
    if os.path.basename(root) != FOLDER:
        return False
    tree = work_tree_around(os.path.dirname(os.path.abspath(root)))
    if tree is None:
        return False
    for name in ("HEAD", "logs/HEAD"):
        try:
            moved = os.stat(os.path.join(tree.git, name)).st_mtime_ns > since_ns
        except OSError:
            continue
        if moved:
            break
    else:
        return False
    try:
        index = read_plain_file(os.path.join(tree.git, "index"), _MOST_INDEX)
    except OSError:
        return False
    return b"%b/" % FOLDER.encode() in index
