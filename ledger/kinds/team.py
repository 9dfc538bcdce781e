"""Typed constructors of drafts: how hot acts build bodies without paying for pydantic.

Each builds exactly what the model of its kind in ``tripod.ledger.kinds`` accepts; a property test
holds the two equal. Texts over 16 KiB become blobs that the body names by digest and size.

Kinds of the ledger itself, of inputs, workers' files, and what was found on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from pydantic import model_validator

from tripod.ledger.canonical import format_value
from tripod.ledger.entry import Draft
from tripod.ledger.ids import change_id
from tripod.ledger.kinds.base import BodyModel, Closed, Content, Count, Name, Observed, Sha256
from tripod.ledger.places import added_problem, place_id, places_problem
from tripod.ledger.sqlite.erase import REDACTED, redaction_id

Body: TypeAlias = "dict[str, Any]"

INLINE_LIMIT = 16 * 1024  # bytes of UTF-8; a longer text is a blob


def content(data: bytes, blobs: list[bytes]) -> Body:
    """Hold bytes exactly: as text, as base64 where they are none, or as a blob if they are long.

    Text that JSON writes at more than twice the limit counts as none: it holds control
    characters, which take six bytes each (16 KiB of zeros would not fit a body). A blob is added
    to ``blobs``, which the caller hands on with the draft.
    """
    if len(data) > INLINE_LIMIT:
        blobs.append(data)
        return {"sha256": sha256(data).hexdigest(), "size": len(data)}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    # A byte takes at most six: a short text need not be written to know.
    if text is not None and (
        6 * len(data) <= 2 * INLINE_LIMIT or len(format_value(text)) - 2 <= 2 * INLINE_LIMIT
    ):
        return {"text": text}
    from base64 import b64encode

    return {"base64": b64encode(data).decode()}


def opened(
    *, project: str, origin: str, created: str, scribe: str, events: str, chat: str
) -> Draft:
    """Open a ledger: the first entry. ``events`` and ``chat`` are paths from the team directory."""
    body: Body = {
        "chat": chat,
        "created": created,
        "events": events,
        "origin": origin,
        "project": project,
        "scribe": scribe,
        "v": 1,
    }
    return Draft("ledger.opened", "ledger", "tripod", body)


def adopted(files: int, left_alone: Sequence[str]) -> Draft:
    """Mark where the past of an adopted team ends."""
    body: Body = {"files": files, "left_alone": list(left_alone), "v": 1}
    return Draft("ledger.adopted", "ledger", "tripod", body)


def place_added(holds: str, name: str, path: str) -> Draft:
    """Add a folder of chats, events or decision logs; a name is given once."""
    body: Body = {"holds": holds, "name": name, "path": path, "v": 1}
    return Draft("place.added", "ledger", "tripod", body, id=place_id(holds, name))


def displaced(path: str, reason: str, data: bytes | None) -> Draft:
    """Keep the bytes that stood at ``path`` before they are written over."""
    blobs: list[bytes] = []
    body: Body = {"path": path, "reason": reason, "v": 1}
    if data is not None:
        body["content"] = content(data, blobs)
    return Draft("file.displaced", f"files/{path}", "tripod", body, blobs=tuple(blobs))


def published(
    *,
    name: str,
    us: int,
    source: str,
    type_: str,
    priority: str,
    payload: str,
    size: int,
    to: str | None = None,
) -> Draft:
    """Publish an event as the file ``name`` of ``size`` bytes, at ``us`` (µs since 1970).

    ``to`` is the handle that it addresses, where it addresses one.
    """
    body: Body = {
        "name": name,
        "priority": priority,
        "size": size,
        "source": source,
        "type": type_,
        "us": us,
        "v": 1,
    }
    blobs: list[bytes] = []
    if payload:
        body["payload"] = content(payload.encode(), blobs)
    if to is not None:
        body["to"] = to
    return Draft("bus.published", "bus", source, body, blobs=tuple(blobs))


def acked(name: str, actor: str) -> Draft:
    """Acknowledge one event."""
    return Draft("bus.acked", "bus", actor, {"name": name, "v": 1})


def acked_all(count: int, actor: str, source: str | None, queue: str = "") -> Draft:
    """Acknowledge all that is pending (of one source, where given): ``count`` events.

    ``queue`` is the name of a queue that was added; '' for the team's own.
    """
    body: Body = {"count": count, "v": 1}
    if queue:
        body["queue"] = queue
    if source is not None:
        body["source"] = source
    return Draft("bus.acked-all", "bus", actor, body)


def pruned(names: Sequence[str], size: int, actor: str) -> Draft:
    """Delete the files of processed events, ``size`` bytes of them."""
    return Draft("bus.pruned", "bus", actor, {"bytes": size, "names": list(names), "v": 1})


def channel_created(channel: str, actor: str, first: int | None = None) -> Draft:
    """Begin a chat; anew, where the lines from ``first`` on are no part of its file any more."""
    body: Body = {"channel": channel, "v": 1}
    if first is not None:
        body["first"] = first
    return Draft("chat.created", f"chat/{channel}", actor, body)


def sent(
    *,
    channel: str,
    index: int,
    handle: str,
    time: int,
    text: str,
    mentions: Sequence[tuple[str, str]] = (),
) -> Draft:
    """Say ``text`` in a chat, as its line ``index`` since the channel began (from 0).

    ``mentions`` are the handles that it addresses, each with how.
    """
    blobs: list[bytes] = []
    body: Body = {
        "channel": channel,
        "handle": handle,
        "index": index,
        "text": content(text.encode(), blobs),
        "time": time,
        "v": 1,
    }
    if mentions:
        body["mentions"] = [{"handle": name, "how": how} for name, how in mentions]
    return Draft("chat.sent", f"chat/{channel}", handle, body, blobs=tuple(blobs))


def rotated(
    *, channel: str, count: int, size: int, archive: str, header: bytes, stop: int | None = None
) -> Draft:
    """Split the first ``count`` lines (``size`` bytes) of a chat off into an archive.

    ``stop`` is the index of the line after them, where deleted ones lie between.
    """
    blobs: list[bytes] = []
    body: Body = {
        "archive": archive,
        "channel": channel,
        "count": count,
        "header": content(header, blobs),
        "size": size,
        "v": 1,
    }
    if stop is not None:
        body["stop"] = stop
    return Draft("chat.rotated", f"chat/{channel}", "tripod", body, blobs=tuple(blobs))


def log_begun(header: str, actor: str, file: str | None = None) -> Draft:
    """Begin a decision log with the header that its file has; ``file`` where it is not log.md."""
    body: Body = {"header": {"text": header}, "v": 1}
    return Draft("log.begun", "decisions", actor, body | ({"file": file} if file else {}))


def decided(body: Body, actor: str) -> Draft:
    """Log a decision; the fields are those of the model ``Decided``."""
    return Draft("decision.logged", "decisions", actor, {**body, "v": 1})


def key_set(vkey: str, note: str | None) -> Draft:
    """Put a key in force; ``note`` has the signatures of the old one and of this one."""
    body: Body = {"v": 1, "vkey": vkey}
    if note is not None:
        body["note"] = note
    return Draft("key.set", "ledger", "tripod", body)


def seal_made(note: str, size: int, reason: str) -> Draft:
    """Keep a seal over the first ``size`` entries."""
    body: Body = {"note": note, "reason": reason, "size": size, "v": 1}
    return Draft("seal.made", "ledger", "tripod", body)


def anchor_received(method: str, size: int, root: bytes, name: str, receipt: bytes) -> Draft:
    """Keep the receipt that an anchor gave for the head ``size``, ``root`` (32 bytes)."""
    blobs: list[bytes] = []
    body: Body = {
        "method": method,
        "name": name,
        "receipt": content(receipt, blobs),
        "root": root.hex(),
        "size": size,
        "v": 1,
    }
    return Draft("anchor.received", "ledger", "tripod", body, blobs=tuple(blobs))


def enrolled(handle: str, number: int, vkey: str, note: str) -> Draft:
    """Put the key of an actor in force: the ``number``-th change of the handle's key."""
    body: Body = {"handle": handle, "note": note, "number": number, "v": 1, "vkey": vkey}
    return Draft("actor.enrolled", "ledger", "tripod", body, change_id(handle, number))


def revoked(handle: str, number: int, vkey: str, reason: str, note: str) -> Draft:
    """End the key of an actor: the ``number``-th change of the handle's key."""
    body: Body = {
        "handle": handle,
        "note": note,
        "number": number,
        "reason": reason,
        "v": 1,
        "vkey": vkey,
    }
    return Draft("actor.revoked", "ledger", "tripod", body, change_id(handle, number))


def forked_from(
    origin: str, size: int, root: bytes, reason: str, seal: str | None, *, note: str | None = None
) -> Draft:
    """Leave the line ``origin`` after its head ``size``, ``root``; ``seal`` is its newest.

    ``note`` is the old key's signature of that (``tripod.ledger.tlog.seal.sign_fork``).
    """
    body: Body = {"origin": origin, "reason": reason, "root": root.hex(), "size": size, "v": 1}
    if seal is not None:
        body["seal"] = seal
    if note is not None:
        body["note"] = note
    return Draft("ledger.forked-from", "ledger", "tripod", body)


def redacted(*, seq: int, kind: str, cause: str, reason: str, by: str, keep: Body) -> Draft:
    """Erase the body of entry ``seq``, whose id is ``cause``; ``keep`` is to stand for it."""
    body: Body = {"by": by, "keep": keep, "kind": kind, "reason": reason, "seq": seq, "v": 1}
    return Draft(REDACTED, "ledger", by, body, redaction_id(seq), cause)


# Team -------------------------------------------------------------------------------------------


class Opened(BodyModel):
    """The first entry: whose ledger this is, and where the team keeps its events and chats.

    ``events`` and ``chat`` are paths from the team directory, which may leave it by one ``..``, or
    absolute ones; in entries and messages the folders are called ``events`` and ``chat`` wherever
    they are.
    """

    origin: Name
    project: str
    created: str
    scribe: str
    events: Name
    chat: Name

    @model_validator(mode="after")
    def _two_places(self) -> Opened:
        problem = places_problem(self.events, self.chat)
        if problem is not None:
            raise ValueError(problem)
        return self


class PlaceAdded(BodyModel):
    """A further folder of chats or events was met: from here on it belongs to the team.

    With ``scribe`` a decision log was met: the log and its archives belong to the team, under the
    names ``<name>/<file>``, and nothing else of that folder does.

    ``path`` is a path as in the first entry; ``.`` is the team directory, ``..`` the folder around
    it. In entries and messages its chats are called ``<name>/<chat>`` and its events
    ``<name>/<file>``, wherever it is.
    """

    holds: Literal["chat", "events", "scribe"]
    name: Name
    path: Name

    @model_validator(mode="after")
    def _one_place(self) -> PlaceAdded:
        problem = added_problem(self.holds, self.name, self.path)
        if problem is not None:
            raise ValueError(problem)
        return self


class Adopted(BodyModel):
    """The past of an existing team directory ends here: entries before were taken in whole."""

    files: Count
    left_alone: list[str]


class ConfigProblem(Closed):
    """A line of the configuration that was not taken, and why."""

    line: Count
    key: str
    message: str


class ConfigChanged(BodyModel):
    """An input that people edit changed; without ``content``, and ``sha256`` empty: it went away.

    For ``events/config.yaml``, ``settings`` holds what was read from it, as decimal text or
    words, and ``problems`` what was not.
    """

    path: Name
    sha256: str
    content: Content | None = None
    settings: dict[str, str | int] | None = None
    problems: list[ConfigProblem] | None = None
    observed: Observed


class WorkerWritten(BodyModel):
    """A worker's task file, whole, as its worker left it."""

    path: Name
    sha256: Sha256
    size: Count
    content: Content
    observed: Observed


class EvidenceKept(BodyModel):
    """A log or transcript, kept by digest so that a later change of the file shows."""

    path: Name
    sha256: Sha256
    size: Count
    content: Content
    observed: Observed


class FileSeen(BodyModel):
    """A file among ours that could not be read as what its place says; kept as it is."""

    path: Name
    problem: str
    sha256: Sha256
    size: Count
    content: Content
    observed: Observed


class Displaced(BodyModel):
    """Bytes that stood where ours belong, kept before they were written over.

    ``content`` is left out where the file was missing: then it was written anew, and ``reason``
    says what was gone. ``path`` is a folder where many of its files were.
    """

    path: Name
    reason: str
    content: Content | None = None
