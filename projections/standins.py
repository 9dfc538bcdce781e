"""What stands for an erased body: a body of the same kind, with what the rules need. Pure.

A message keeps its channel, number, handle and time; a decision its id, number, status and
references; an event its file name, times and size; a file its path; a run of an agent how it
ended, and its sources; an assessment what it answers and cites; a worker its name and state. Where
texts were stands ``[redacted]``. So every fold, render and check reads it as it reads any body,
projected files stay readable for the original tools, and counts still equal grep.

``stand_in`` of a stand-in is that stand-in again: by this the verifier tells that a ``redacted``
entry keeps nothing else. That what is kept is what the erased body said, nobody can tell once it is
gone, but for what its header says too.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeAlias

from projections.formats import chat as chat_format
from projections.formats.decision_log import (
    NONE_YET,
    STATUSES,
    ChatRef,
    format_ref,
    parse_refs,
    valid_id,
)
from projections.formats.event import Event, format_event, format_time

MARK = "[redacted]"
"""What stands where an erased text stood."""

Body: TypeAlias = "dict[str, Any]"


def is_erasable(kind: str) -> bool:
    """Whether bodies of this kind hold texts that can be erased."""
    return kind in _STAND_INS


def stand_in(kind: str, body: Body) -> Body:
    """What is to stand for the body of an entry of this kind once it is erased.

    Raises:
        KeyError: bodies of this kind are never erased, or this one is none of them.
    """
    keep = _STAND_INS[kind](body)
    keep["v"] = body["v"]
    if "observed" in body:
        seen = body["observed"]
        kept = {name: seen[name] for name in ("claim", "mode", "mtime_us", "path") if name in seen}
        raw = _RAW.get(kind)
        keep["observed"] = kept | ({} if raw is None else {"raw": _text(raw)})
    return keep


def _text(text: str) -> Body:
    return {"text": text}


def _only(body: Body, *names: str) -> Body:
    return {name: body[name] for name in names if name in body}


def _published(body: Body) -> Body:
    keep = _only(body, "name", "priority", "source", "to", "type", "us")
    if "payload" in body:
        keep["payload"] = _text(MARK)
    source, type_ = keep["source"], keep["type"]
    key, time = f"{source}:{type_}", format_time(keep["us"])
    payload = MARK if "payload" in body else ""
    data = format_event(Event(source, type_, keep["priority"], time, key, payload))
    return keep | {"size": len(data)}


def _sent(body: Body) -> Body:
    return _only(body, "channel", "handle", "index", "time") | {"text": _text(MARK)}


def _unreadable(body: Body) -> Body:
    return _only(body, "channel", "index")


def _header_seen(body: Body) -> Body:
    keep = _only(body, "channel", "last_write", "last_writer", "participants")
    people = tuple((person["handle"], person["count"]) for person in keep["participants"])
    header = chat_format.Header(keep["last_writer"], keep["last_write"], people)
    return keep | {"raw": _text(chat_format.format_header(header, 0).decode())}


def _rotated(body: Body) -> Body:
    # Its header tells when the lines were split off, and no more; the archive's name has no zone.
    keep = _only(body, "archive", "channel", "count", "size")
    header = body["header"].get("text", "").encode()
    parsed = chat_format.parse_header(header)
    time = None if parsed is None else chat_format.parse_time(parsed.last_write)
    text = chat_format.archive_header(chat_format.format_time(time or 0), keep["size"])
    return keep | {"header": _text(text.decode())}


_LOG_HEADER = f"# Decision Log\n\n{MARK}\n"


def _begun(body: Body) -> Body:
    return _only(body, "file") | {"header": _text(_LOG_HEADER)}


def _split(body: Body) -> Body:
    headers = {"archive_header": _text(_LOG_HEADER), "header": _text(_LOG_HEADER)}
    return _only(body, "archive", "count", "file") | headers


def _decided(body: Body) -> Body:
    refs = [ref for ref in body["refs"] if _is_plain(ref)]
    text = ", ".join(format_ref(ChatRef(ref["file"], ref["line"])) for ref in refs)
    keep = _only(body, "file", "id", "number") | {
        "artefacts": NONE_YET,
        "chat_ref": text or NONE_YET,
        "participants": NONE_YET,
        "rationale": MARK,
        "refs": refs,
        "risk_tags": "none",
        "status": body["status"] if body["status"] in STATUSES else STATUSES[0],
        "title": MARK,
    }
    replaced = body.get("supersedes")
    if replaced is not None and valid_id(replaced) is None:
        keep["supersedes"] = replaced
    return keep


def _is_plain(ref: Body) -> bool:
    """Whether a reference is written and read as one: a stranger's file may be named anything."""
    one = ChatRef(ref["file"], ref["line"])
    return parse_refs(format_ref(one)) == ([one], [])


def _noted(body: Body) -> Body:
    return _only(body, "file") | {"problem": MARK}


def _config(body: Body) -> Body:
    keep = _only(body, "path", "settings")
    if "content" in body:
        keep["content"] = _text(MARK)
    return keep | {"sha256": sha256(MARK.encode()).hexdigest() if body["sha256"] else ""}


_FILE = f"{MARK}\n"


def _file(body: Body) -> Body:
    data = _FILE.encode()
    content = {"content": _text(_FILE), "sha256": sha256(data).hexdigest(), "size": len(data)}
    keep = _only(body, "path") | content
    return keep | ({"problem": MARK} if "problem" in body else {})


def _displaced(body: Body) -> Body:
    keep = _only(body, "path", "reason")
    return keep | ({"content": _text(_FILE)} if "content" in body else {})


def _spec_of(body: Body) -> Body:
    keep = _only(body, "attempt", "role", "spawn", "subject")
    return keep | {"sha256": sha256(MARK.encode()).hexdigest(), "spec": _text(MARK)}


def _ended(body: Body) -> Body:
    keep = _only(body, "cost", "exit_code", "signal", "spawn", "status", "usage", "wall_ms")
    data = MARK.encode()
    kept = {"bytes": len(data), "content": _text(MARK), "digest": sha256(data).hexdigest()}
    keep |= {"stderr": kept, "stdout": kept, "unsupported": []}
    return keep | ({"problem": MARK} if "problem" in body else {})


def _delivered(body: Body) -> Body:
    keep = _only(body, "channel", "sources", "spawn")
    return keep | {"content": _text(MARK), "sha256": sha256(MARK.encode()).hexdigest()}


def _assessed(body: Body) -> Body:
    keep = _only(
        body, "cited", "confidence", "decisions", "event", "first", "last", "message", "origin",
        "spawn",
    )  # fmt: skip
    return keep | {"content": _text(MARK), "sha256": sha256(MARK.encode()).hexdigest()}


def _failed(body: Body) -> Body:
    return _only(body, "event", "spawns") | {"problems": [MARK]}


def _spawned(body: Body) -> Body:
    return _only(body, "folder", "name", "slug") | {"task": _text(MARK)}


def _continued(body: Body) -> Body:
    return _only(body, "name") | {"message": _text(MARK)}


def _escalated(body: Body) -> Body:
    return _only(body, "event", "name") | {"reason": _text(MARK)}


def _worker_ended(body: Body) -> Body:
    keep = _only(body, "event", "logs", "name", "spawn", "state")
    return keep | ({"problem": MARK} if "problem" in body else {})


_STAND_INS: dict[str, Callable[[Body], Body]] = {
    "bus.published": _published,
    "chat.sent": _sent,
    "chat.unreadable": _unreadable,
    "chat.header-seen": _header_seen,
    "chat.rotated": _rotated,
    "log.begun": _begun,
    "decision.logged": _decided,
    "log.noted": _noted,
    "log.rotated": _split,
    "config.changed": _config,
    "worker.written": _file,
    "evidence.kept": _file,
    "file.seen": _file,
    "file.displaced": _displaced,
    "agent.requested": _spec_of,
    "agent.ended": _ended,
    "delivered": _delivered,
    "pythia.assessed": _assessed,
    "pythia.failed": _failed,
    "worker.spawned": _spawned,
    "worker.continued": _continued,
    "worker.escalated": _escalated,
    "worker.ended": _worker_ended,
}
_RAW = {"chat.unreadable": f"{MARK}\n", "log.noted": f"\n{MARK}\n"}
"""What stands in the file for a piece that has no form of its own."""
