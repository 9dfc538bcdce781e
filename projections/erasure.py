"""Tombstones for erased bodies, and files held against the entries piece by piece. Pure.

A tombstone keeps the fields that tables and files need (of a message its channel, number, handle
and time); texts become ``[redacted]``. So every fold, render and check reads it like any body,
projected files stay readable for the original tools, and counts still equal grep. ``tombstone`` of
a tombstone is that tombstone again: by this the verifier shows that a ``redacted`` entry keeps
nothing else. That the kept fields are those of the erased body cannot be shown once the body is
gone, except for what the header says too.

Files that contradict the ledger are stored as blobs before they are written over. An old copy of a
file that shows a redacted place is such a file. The text at that place is found by the place (the
event's name, the message's handle and second, the decision's id, the path), and is left out.

Bytes that are written over may hold pieces that are in no entry: the part of another clone, or of
a ledger that a backup replaced. ``unrecorded_pieces`` names them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from tripod.ledger import CHAT, EVENTS, LOGS, MERGED, PROCESSED, WORKERS
from tripod.ledger.kinds.base import MARK, digest_of, text
from tripod.ledger.kinds.bus import PUBLISHED
from tripod.ledger.kinds.chat import HEADER_SEEN, ROTATED
from tripod.ledger.kinds.decisions import LOGGED
from tripod.ledger.kinds.merged import erased_view
from tripod.ledger.kinds.registry import BY_NAME
from tripod.ledger.kinds.team import CONFIG_CHANGED
from tripod.projections.bus import format as bus_format
from tripod.projections.bus.format import Event
from tripod.projections.bus.tables import render_event
from tripod.projections.chat import format as chat_format
from tripod.projections.chat.format import ChatLine
from tripod.projections.chat.tables import render_chat_line
from tripod.projections.decisions import format as log_format
from tripod.projections.decisions.format import NONE_YET, STATUSES, ChatRef, DecisionText
from tripod.projections.decisions.tables import render_decision_piece
from tripod.projections.nova.tables import FOLDER as NOVA
from tripod.projections.nova.tables import NAMES as NOVA_FILES
from tripod.projections.projection import Source
from tripod.projections.team.tables import redacted_rows_at

Body: TypeAlias = "dict[str, Any]"


def is_erasable(kind: str) -> bool:
    """Whether bodies of this kind hold texts that can be erased."""
    known = BY_NAME.get(kind)
    return known is not None and known.erasure is not None


def tombstone(kind: str, body: Body) -> Body:
    """What stands for an erased body, as its kind declares it (KeyError: it is never erased)."""
    declared = BY_NAME[kind]
    if declared.erasure is None:
        raise KeyError(kind)
    marks, required = declared.erasure.marks, declared.body.__required_keys__
    keep: Body = {}
    for name in declared.body.__annotations__:
        mark = marks.get(name)
        if name not in marks:
            if name in body:
                keep[name] = body[name]
        elif mark is not None and (name in body or name in required):
            keep[name] = mark
    if kind in _WRITTEN:
        keep |= _WRITTEN[kind](body, keep)
    keep["v"] = body["v"]
    if "observed" in body:
        seen = body["observed"]
        kept = {name: seen[name] for name in ("claim", "mode", "mtime_us", "path") if name in seen}
        raw = marks.get("observed.raw")
        keep["observed"] = kept | ({} if raw is None else {"raw": raw})
    return keep


# Fields that are written anew, in the format of the file that shows them -------------------------


def _published(body: Body, keep: Body) -> Body:
    source, type_ = keep["source"], keep["type"]
    key, time = f"{source}:{type_}", bus_format.format_time(keep["us"])
    payload = MARK if "payload" in body else ""
    data = bus_format.format_event(Event(source, type_, keep["priority"], time, key, payload))
    return {"size": len(data)}


def _header_seen(_: Body, keep: Body) -> Body:
    people = tuple((person["handle"], person["count"]) for person in keep["participants"])
    header = chat_format.ChatHeader(keep["last_writer"], keep["last_write"], people)
    return {"raw": text(chat_format.format_header(header, 0).decode())}


def _rotated(body: Body, keep: Body) -> Body:
    # Its header tells when the lines were split off, and no more; the archive's name has no zone.
    header = body["header"].get("text", "").encode()
    parsed = chat_format.parse_header(header)
    time = None if parsed is None else chat_format.parse_chat_time(parsed.last_write)
    line = chat_format.chat_archive_header(chat_format.format_time(time or 0), keep["size"])
    return {"header": text(line.decode())}


def _decided(body: Body, _: Body) -> Body:
    refs, places = [], []
    for ref in body["refs"]:
        one = ChatRef(ref["file"], ref["line"])
        shown = log_format.format_decision_ref(one)
        # A stranger's file may be named anything: what stays is read as it is written.
        if log_format.parse_decision_refs(shown) == ([one], []):
            refs.append(ref)
            places.append(shown)
    status = body["status"] if body["status"] in STATUSES else STATUSES[0]
    written: Body = {"artefacts": NONE_YET, "participants": NONE_YET, "risk_tags": "none"}
    written |= {"chat_ref": ", ".join(places) or NONE_YET, "refs": refs, "status": status}
    replaced = body.get("supersedes")
    if replaced is not None and log_format.valid_decision_id(replaced) is None:
        written["supersedes"] = replaced
    return written


def _merged(body: Body, keep: Body) -> Body:
    """What its maker keeps of an erased entry, and no more; the header stays as it is."""
    try:
        head = json.loads(body["header"].get("text", ""))
    except ValueError:  # it is in a blob, or no header
        return {}
    inner = BY_NAME.get(head["kind"]) if isinstance(head, dict) and "kind" in head else None
    if "keep" not in keep or inner is None or inner.erasure is None:
        return {}
    return {"keep": tombstone(inner.name, keep["keep"])}


_WRITTEN: dict[str, Callable[[Body, Body], Body]] = {
    MERGED: _merged,
    PUBLISHED.name: _published,
    HEADER_SEEN.name: _header_seen,
    ROTATED.name: _rotated,
    LOGGED.name: _decided,
    CONFIG_CHANGED.name: lambda body, _: {"sha256": digest_of(MARK) if body["sha256"] else ""},
}
"""By kind: writes the fields that the declaration gives no mark for, and that a tombstone needs.

A function is given the body, and the fields that are kept of it.
"""


# Withheld ---------------------------------------------------------------------------------------


_GONE = f"{MARK}\n".encode()


def erasure_places(source: Source, kind: str, body: dict[str, Any]) -> Iterator[str]:
    """Paths of files that may show the text of an entry, also those into which it was moved.

    Of an entry of a peer ``body`` is what a redaction keeps of it.
    """
    if kind == MERGED:
        kind, body = erased_view(body)
    erasure = BY_NAME[kind].erasure if kind else None
    if erasure is None:
        return
    place = erasure.place(body)
    front, _, name = place.partition("/")
    if "path" in body or front == WORKERS:
        yield place
    elif front == EVENTS:
        yield from (place, f"{EVENTS}/{PROCESSED}/{name}")
    elif front == CHAT:
        sql = "SELECT archive FROM archives WHERE channel = ?"
        rows = source.db.execute(sql, (body["channel"],)).fetchall()
        yield from (f"{CHAT}/{archive}.chat" for (archive,) in rows)
        yield place
    elif front == LOGS:
        rows = source.db.execute("SELECT file FROM logs WHERE log = ?", (name,)).fetchall()
        yield from (f"{LOGS}/{name}" for (name,) in rows)
    elif front == NOVA:
        yield from (f"{place}/{name}" for name in NOVA_FILES)
    # What other agents were given and said stands in no file of ours.


def withhold_erased(source: Source, path: str, data: bytes) -> tuple[bytes, int]:
    """The bytes of a file without what stands at redacted places, and at how many it stood."""
    front, _, name = path.partition("/")
    if front == EVENTS and name.endswith(".event"):
        for seq, kind in redacted_rows_at(source, path):
            ours = render_event(source, source.body(seq)) if kind == "bus.published" else _GONE
            return ours, int(ours != data)
        return data, 0
    if front == CHAT and name.endswith(".chat"):
        return _chat(source, name.removesuffix(".chat"), data)
    if front == LOGS and name.endswith(".md"):
        return _log(source, name, data)
    if front == NOVA:
        path = f"{front}/{name.partition('/')[0]}"  # each file of a run shows its entries
    gone = data != _GONE and bool(redacted_rows_at(source, path))
    return (_GONE, 1) if gone else (data, 0)


def _channel_of(source: Source, stem: str) -> str:
    """The channel of a chat's live file or archive."""
    row = source.db.execute("SELECT channel FROM archives WHERE archive = ?", (stem,)).fetchone()
    split = chat_format.parse_chat_archive_name(stem)
    return row[0] if row is not None else stem if split is None else split[0]


def _chat(source: Source, stem: str, data: bytes) -> tuple[bytes, int]:
    """Lines of the same handle and second; of unreadable ones, which have neither, any."""
    channel = _channel_of(source, stem)
    found = redacted_rows_at(source, f"{CHAT}/{channel}.chat")
    bodies = [(kind, source.body(seq)) for seq, kind in found]
    said = {
        (b["handle"], b["time"]): render_chat_line(source, b) for k, b in bodies if k == "chat.sent"
    }
    unreadable = any(kind == "chat.unreadable" for kind, _ in bodies)
    header, mark, lines = data.partition(b"\n---\n")
    if not mark:
        header, lines = b"", data
    if mark and any(kind in ("chat.header-seen", "chat.rotated") for kind, _ in bodies):
        header = MARK.encode()  # a damaged one has no header of its own
    kept, count = [], int(header + mark + lines != data)
    for line in chat_format.cut_chat_lines(lines):
        message = chat_format.parse_line(line.removesuffix(b"\n"))
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
    return {render_chat_line(source, source.body(seq)) for (seq,) in rows}


def _log(source: Source, name: str, data: bytes) -> tuple[bytes, int]:
    """Pieces with the id of a redacted decision; of those that are no decision, any."""
    row = source.db.execute("SELECT log FROM logs WHERE file = ?", (name,)).fetchone()
    log = row[0] if row is not None else log_format.archived_decision_log(name) or name
    bodies = [(kind, source.body(seq)) for seq, kind in redacted_rows_at(source, f"{LOGS}/{log}")]
    decided = {
        b["id"]: render_decision_piece(source, b) for k, b in bodies if k == "decision.logged"
    }
    kinds = {kind for kind, _ in bodies}
    header, pieces = log_format.split_decision_log(data)
    ours = _GONE if kinds & {"log.begun", "log.rotated"} else header
    kept, count = [ours], int(ours != header)
    for piece in pieces:
        decision, _ = log_format.parse_decision(piece)
        if decision is not None:
            ours = decided.get(decision.id, piece)
        else:
            ours = _GONE if "log.noted" in kinds else piece
        count += ours != piece
        kept.append(ours)
    return b"".join(kept), count


# Unrecorded -------------------------------------------------------------------------------------


class Unrecorded(NamedTuple):
    """A valid piece of a file that no entry holds: what it is, in words, and its bytes."""

    name: str
    data: bytes


def unrecorded(source: Source, path: str, data: bytes) -> list[Unrecorded]:
    """Each valid piece of ``data``, the bytes of a file at ``path``, that no entry holds.

    The tables stand at the head. Only logs, chats and events have pieces.
    """
    front, _, name = path.partition("/")
    if front == LOGS and name.endswith(".md"):
        return [
            Unrecorded(f"decision {one.id} ({one.title})", b"\n---\n\n%b\n" % _bare(piece))
            for piece, one in _decisions(source, data)
        ]
    if front == CHAT and name.endswith(".chat"):
        return [
            Unrecorded(
                f"message of {one.handle} at {chat_format.format_time(one.time)}", line + b"\n"
            )
            for one, line in _messages(source, name.removesuffix(".chat"), data)
        ]
    if front == EVENTS and name.endswith(".event"):
        name = name.removeprefix(f"{PROCESSED}/")
        is_new = bus_format.parse_event(data) is not None and not _was_published(source, name)
        return [Unrecorded(f"event {name}", data)] if is_new else []
    return []


def unrecorded_pieces(source: Source, path: str, data: bytes) -> list[str]:
    """Name the pieces that ``unrecorded`` finds."""
    return [piece.name for piece in unrecorded(source, path, data)]


def unrecorded_part(source: Source, path: str, data: bytes, shown: bytes) -> bytes | None:
    """What is left of a file once the pieces that entries hold are taken out; None: nothing.

    ``shown`` is what the entries give at the path (b'': no file): parts of it that are no pieces
    are taken out as well.
    """
    front, _, name = path.partition("/")
    if data == shown:
        return None
    if front == LOGS and name.endswith(".md"):
        header, pieces = log_format.split_decision_log(data)
        new = {piece for piece, _ in _decisions(source, data)}
        held = {_bare(piece) for piece in log_format.split_decision_log(shown)[1]}
        left = [
            piece
            for piece in pieces
            if piece in new
            or (log_format.parse_decision(piece)[0] is None and _bare(piece) not in held)
        ]
        return header + b"".join(left) if left else None
    if front == CHAT and name.endswith(".chat"):
        return _unrecorded_chat(source, name.removesuffix(".chat"), data, shown)
    if front == EVENTS and name.endswith(".event"):
        return data if unrecorded_pieces(source, path, data) else None
    return data


def _unrecorded_chat(source: Source, stem: str, data: bytes, shown: bytes) -> bytes | None:
    """A chat file of the messages that no entry holds, and of lines that are no messages."""
    file, held = chat_format.split_chat_file(data), chat_format.split_chat_file(shown)
    new = Counter(message for message, _ in _messages(source, stem, data))
    odd = Counter(() if held is None else held.lines)
    lines, people = [], Counter[str]()
    for line in data.split(b"\n") if file is None else file.lines:
        message = chat_format.parse_line(line.strip())
        if message is not None and new[message]:
            new[message] -= 1
            people[message.handle] += 1
        elif message is not None or not line.strip() or odd[line]:
            odd[line] -= message is None
            continue
        lines.append(line)
    if not lines:
        return None
    body = b"".join(line + b"\n" for line in lines)
    if file is None:
        return body
    last = file.header or chat_format.ChatHeader("unknown", chat_format.format_time(0), ())
    return (
        chat_format.format_header(last._replace(participants=tuple(people.items())), len(body))
        + body
    )


def _bare(piece: bytes) -> bytes:
    """A piece without the blank lines and the rule that part it from its neighbours."""
    lines = piece.strip().split(b"\n")
    while lines and lines[-1].strip() in (b"", b"---"):
        lines.pop()
    return b"\n".join(line.rstrip() for line in lines)


def _decisions(source: Source, data: bytes) -> Iterator[tuple[bytes, DecisionText]]:
    """The decisions of a log's bytes that no entry holds, each with its piece."""
    shown: dict[str, list[tuple[bytes, DecisionText]]] = {}
    for piece in log_format.split_decision_log(data)[1]:
        decision = log_format.parse_decision(piece)[0]
        if decision is not None:
            shown.setdefault(decision.id, []).append((piece, decision))
    for id_, pieces in shown.items():
        sql = "SELECT seq FROM pieces WHERE id = ? ORDER BY seq"
        held = [render_decision_piece(source, body) for body in source.each_body_of(sql, id_)]
        ours = [(_bare(piece), log_format.parse_decision(piece)[0]) for piece in held]
        new = []
        for piece, decision in pieces:
            equal = next((one for one in ours if one[0] == _bare(piece)), None)
            if equal is None:
                new.append((piece, decision))
            else:
                ours.remove(equal)
        for piece, decision in new:
            altered = next((one for one in ours if one[1] and _same(one[1], decision)), None)
            if altered is None:
                yield piece, decision
            else:
                ours.remove(altered)


def _same(ours: DecisionText, theirs: DecisionText) -> bool:
    """Whether one is the other, altered: two clones may log different decisions under one id."""
    return ours.title in (theirs.title, MARK) or (
        bool(ours.rationale) and ours.rationale == theirs.rationale
    )


def _messages(source: Source, stem: str, data: bytes) -> list[tuple[ChatLine, bytes]]:
    """The messages of a chat file's bytes that no entry holds, each with its line."""
    sql = "SELECT seq FROM lines WHERE channel = ? ORDER BY number"
    bodies = source.each_body_of(sql, _channel_of(source, stem))
    held = Counter(render_chat_line(source, body).strip() for body in bodies)
    file = chat_format.split_chat_file(data)
    lines = map(bytes.strip, data.split(b"\n") if file is None else file.lines)
    theirs = chat_format.unmatched(lines, held, lambda line: line)
    parsed = ((chat_format.parse_line(line), line) for line in theirs)
    new = ((message, line) for message, line in parsed if message is not None)
    altered = Counter(one[:2] for one in map(chat_format.parse_line, held.elements()) if one)
    return chat_format.unmatched(new, altered, lambda one: one[0][:2])


def _was_published(source: Source, name: str) -> bool:
    """Whether the ledger has, or had, an event of this name; a prune takes it off the table."""
    if source.db.execute("SELECT 1 FROM events WHERE name = ?", (name,)).fetchone():
        return True
    sql = "SELECT 1 FROM redactions WHERE place = ?"
    if source.db.execute(sql, (f"{EVENTS}/{name}",)).fetchone():
        return True
    wanted = f'"name":{json.dumps(name, ensure_ascii=False)}'
    return source.ledger.names_in_body("bus.published", wanted.encode())
