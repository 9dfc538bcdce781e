"""Keeps what was erased from coming back: which files show it, and which bytes are not kept.

Files that contradict the ledger are kept as blobs before they are written over. An old copy of a
file that shows a redacted place is such a file; what it says at that place is known by the place
(the event's name, the message's handle and second, the decision's id, the path), and withheld.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from projections.bus_queue import event_bytes
from projections.chat_file import line_bytes
from projections.decision_log import log_of, piece_bytes
from projections.formats.chat import parse_archive_name, parse_line
from projections.formats.decision_log import parse_decision, parse_log_archive_name, split_log
from projections.projection import Source
from projections.standins import MARK

_QUEUE, _DONE, _CHAT, _LOG = "events", "events/processed", "chat", "scribe"
_GONE = f"{MARK}\n".encode()


def places(source: Source, kind: str, body: dict[str, Any]) -> Iterator[str]:
    """Paths whose files may show the text of an entry, wherever the tables say it went since."""
    if kind == "bus.published":
        yield from (f"{_QUEUE}/{body['name']}", f"{_DONE}/{body['name']}")
    elif kind.startswith("chat."):
        rows = source.db.execute("SELECT archive FROM archives WHERE channel = ?", _one(body))
        yield from (f"{_CHAT}/{archive}.chat" for (archive,) in rows.fetchall())
        yield f"{_CHAT}/{body['channel']}.chat"
    elif "path" in body:
        yield body["path"]
    elif kind.startswith("worker."):
        yield f"workers/{body['name']}.md"
    elif "spawn" in body:
        return  # what agents were given and said stands in no file of ours
    else:
        rows = source.db.execute("SELECT file FROM logs WHERE log = ?", (log_of(body),))
        yield from (f"{_LOG}/{name}" for (name,) in rows.fetchall())


def _one(body: dict[str, Any]) -> tuple[str]:
    return (body["channel"],)


def holds_erased(source: Source, path: str) -> bool:
    """Whether an event or a file of this path was erased: its bytes are not taken in again."""
    return bool(_rows(source, _place(path)))


def _place(path: str) -> str:
    """The place that an entry names: that of an event does not change when it is processed."""
    return f"{_QUEUE}/{path.removeprefix(f'{_DONE}/')}" if path.startswith(f"{_DONE}/") else path


def withhold(source: Source, path: str, data: bytes) -> tuple[bytes, int]:
    """The bytes of a file without what stands at redacted places, and at how many it stood."""
    front, _, name = path.partition("/")
    if front == _QUEUE and name.endswith(".event"):
        return _event(source, _place(path), data)
    if front == _CHAT and name.endswith(".chat"):
        return _chat(source, name.removesuffix(".chat"), data)
    if front == _LOG and name.endswith(".md"):
        return _log(source, name, data)
    gone = data != _GONE and bool(_rows(source, path))
    return (_GONE, 1) if gone else (data, 0)


def _rows(source: Source, place: str) -> list[tuple[int, str]]:
    sql = "SELECT seq, kind FROM redactions WHERE place = ? AND kind <> 'file.displaced'"
    return source.db.execute(sql, (place,)).fetchall()


def _event(source: Source, place: str, data: bytes) -> tuple[bytes, int]:
    for seq, kind in _rows(source, place):
        ours = event_bytes(source, source.body(seq)) if kind == "bus.published" else _GONE
        return ours, int(ours != data)
    return data, 0


def _chat(source: Source, stem: str, data: bytes) -> tuple[bytes, int]:
    """Lines of the same handle and second; of unreadable ones, which have neither, any."""
    split = parse_archive_name(stem)
    row = source.db.execute("SELECT channel FROM archives WHERE archive = ?", (stem,)).fetchone()
    channel = row[0] if row is not None else stem
    if row is None and split is not None:
        channel = split[0]
    found = _rows(source, f"{_CHAT}/{channel}.chat")
    bodies = [(kind, source.body(seq)) for seq, kind in found]
    said = {(b["handle"], b["time"]): line_bytes(source, b) for k, b in bodies if k == "chat.sent"}
    unreadable = any(kind == "chat.unreadable" for kind, _ in bodies)
    header, mark, lines = data.partition(b"\n---\n")
    if not mark:
        header, lines = b"", data
    if any(kind in ("chat.header-seen", "chat.rotated") for kind, _ in bodies):
        header = MARK.encode() if mark else header  # a damaged one has no header of its own
    kept, count = [], int(header + mark + lines != data)
    for line in re.findall(rb"[^\n]*\n|[^\n]+", lines):
        message = parse_line(line.removesuffix(b"\n"))
        ours = line
        if message is not None:
            ours = said.get((message.handle, message.time), line)
            if ours != line and line in _spoken(source, channel, message.handle, message.time):
                ours = line
        elif unreadable and line.strip():
            ours = _GONE
        count += ours != line
        kept.append(ours)
    return header + mark + b"".join(kept), count


def _spoken(source: Source, channel: str, handle: str, time: int) -> set[bytes]:
    """Lines of that handle and second which the ledger holds: one of two may be redacted."""
    sql = "SELECT seq FROM lines WHERE channel = ? AND handle = ? AND time = ?"
    rows = source.db.execute(sql, (channel, handle, time)).fetchall()
    return {line_bytes(source, source.body(seq)) for (seq,) in rows}


def _log(source: Source, name: str, data: bytes) -> tuple[bytes, int]:
    """Pieces with the id of a redacted decision; of those that are no decision, any."""
    split = parse_log_archive_name(name)
    row = source.db.execute("SELECT log FROM logs WHERE file = ?", (name,)).fetchone()
    log = row[0] if row is not None else name if split is None else f"{split[0]}.md"
    bodies = [(kind, source.body(seq)) for seq, kind in _rows(source, f"{_LOG}/{log}")]
    decided = {b["id"]: piece_bytes(source, b) for k, b in bodies if k == "decision.logged"}
    kinds = {kind for kind, _ in bodies}
    header, pieces = split_log(data)
    ours = _GONE if kinds & {"log.begun", "log.rotated"} else header
    kept, count = [ours], int(ours != header)
    for piece in pieces:
        decision, _ = parse_decision(piece)
        if decision is not None:
            ours = decided.get(decision.id, piece)
        else:
            ours = _GONE if "log.noted" in kinds else piece
        count += ours != piece
        kept.append(ours)
    return b"".join(kept), count
