"""Reads an entry of a peer out of the entry that keeps it here. Pure.

Tables, files and listings show the inner entry: its kind, stream, actor, time and body, under the
number that it has here, and with what it is called here (``Place``). Nothing imports this before a
ledger holds a ``peer.entry``.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from tripod.ledger.entry import (
    MERGED,
    OBSERVED_IDS,
    Draft,
    Entry,
    commit_body,
    entry_leaf_hash,
    entry_mark,
)
from tripod.ledger.errors import MalformedError
from tripod.ledger.kinds.base import Content
from tripod.ledger.kinds.bus import PUBLISHED
from tripod.ledger.kinds.chat import SENT
from tripod.ledger.kinds.peers import PEER_ENTRY, PeerEntry, Place
from tripod.ledger.kinds.registry import BY_NAME

PEER = "peer"
"""The member of an inner entry's data that says whose it is.

``origin`` and ``seq``, and as ``said`` what its maker calls that which ``Place`` calls otherwise.
"""
_SALT = 32  # bytes
_FEW = 8192
_NEWEST: dict[int, tuple[Entry, Entry]] = {}
"""Entries that an act appended, with what they keep: tables, files and counts each ask for it."""
_REWRITTEN = (PUBLISHED.name, SENT.name)

BlobReader = Callable[[bytes], bytes | None]


class KeptEntry(NamedTuple):
    """An entry as its maker has it: the parts that its leaf hash and its body follow from.

    ``salt`` and ``body`` are None where the body was erased.
    """

    origin: str
    seq: int
    header: bytes
    auth: bytes | None
    salt: bytes | None
    body: bytes | None

    def leaf(self) -> bytes:
        """The leaf hash of the entry in its maker's ledger."""
        return entry_leaf_hash(self.header)


def peer_entry_draft(
    kept: KeptEntry,
    stream: str,
    *,
    place: Place | None = None,
    blobs: Mapping[bytes, bytes] | None = None,
    keep: dict[str, object] | None = None,
) -> Draft:
    """The draft of the entry that keeps ``kept`` here, in the stream that ``place`` gives it.

    ``blobs`` are those that the inner body names, by digest. ``keep`` stands for an erased body.
    The content is always a blob of its own, so that it can be erased with this entry.
    """
    body: PeerEntry = {
        "origin": kept.origin,
        "seq": kept.seq,
        "header": kept.header,
        "auth": kept.auth,
        "keep": keep,
        "place": place,
    }
    held = list((blobs or {}).values())
    if kept.salt is not None and kept.body is not None:
        data = kept.salt + kept.body
        body["content"] = {"sha256": sha256(data).hexdigest(), "size": len(data)}
        held.append(data)
    if blobs:
        body["blobs"] = [
            {"sha256": digest.hex(), "size": len(blob)} for digest, blob in blobs.items()
        ]
    return PEER_ENTRY.draft(body, blobs=held)._replace(stream=stream)


def read_kept(data: Mapping[str, Any], blob: BlobReader) -> KeptEntry:
    """What the body ``data`` of a ``peer.entry`` keeps.

    Raises MalformedError where a blob is missing or the body is not the one that the header commits
    to; KeyError, TypeError, ValueError for a body of another shape.
    """
    header = _bytes(data["header"], blob)
    return _read(data, blob, header, orjson.loads(header))


def _read(
    data: Mapping[str, Any], blob: BlobReader, header: bytes, head: Mapping[str, Any]
) -> KeptEntry:
    """What a body keeps whose header is decoded: decoding it again would cost each entry."""
    auth = data.get("auth")
    record = None if auth is None else _bytes(auth, blob)
    origin, seq = data["origin"], data["seq"]
    if "content" not in data:
        return KeptEntry(origin, seq, header, record, None, None)
    content = _bytes(data["content"], blob)
    salt, body = content[:_SALT], content[_SALT:]
    if commit_body(salt, head["kind"], body) != head["body"]:
        raise MalformedError(f"entry {seq} of {origin} has a body that it did not commit to")
    return KeptEntry(origin, seq, header, record, salt, body)


def peer_view(entry: Entry, blob: BlobReader) -> Entry:
    """The inner entry of a ``peer.entry``, whatever its kind; any other entry as it is.

    Number and id are those that it has here; header, salt, body and auth are its maker's. Raises as
    ``read_kept`` does.
    """
    if entry.kind != MERGED or not entry.data:
        return entry
    header = _bytes(entry.data["header"], blob)
    return _view(entry, blob, header, orjson.loads(header))


def _view(entry: Entry, blob: BlobReader, header: bytes, head: Mapping[str, Any]) -> Entry:
    kept = _read(entry.data, blob, header, head)
    kind = head["kind"]
    said = entry.data.get("keep") or {} if kept.body is None else orjson.loads(kept.body)
    place = entry.data.get("place") or {}
    data = _placed(kind, said, place, head["actor"])
    data[PEER] |= {"origin": kept.origin, "seq": kept.seq}
    actor, known = place.get("actor", head["actor"]), BY_NAME.get(kind)
    stream = entry.stream if known is None else known.stream_of(data)
    return Entry(
        entry.seq, entry.id, kind, stream, actor, head["at"],
        header, kept.salt, kept.body, data, kept.auth,
    )  # fmt: skip


def peer_mark(data: Mapping[str, Any], blob: BlobReader) -> str:
    """How a ``peer.entry`` with this body is marked in listings; raises as ``read_kept`` does."""
    head = orjson.loads(_bytes(data["header"], blob))
    observed = head["id"].startswith(OBSERVED_IDS)
    return entry_mark(observed=observed, signed=data.get("auth") is not None, peer=True)


def inner_entry(entry: Entry, blob: BlobReader) -> Entry:
    """What tables and files show of an entry: of a shared one of a peer, the inner entry.

    An entry of any other kind is given as it is, and so is one of a peer whose kind counts only in
    its own replica, and an observed piece that another entry here holds as well.
    """
    if entry.kind != MERGED or "same" in (entry.data.get("place") or ()):
        return entry
    held = _NEWEST.get(entry.seq)
    if held is not None and held[0] is entry:
        return held[1]
    if not entry.data:
        return entry
    header = _bytes(entry.data["header"], blob)
    head = orjson.loads(header)
    kind = BY_NAME.get(head["kind"])
    # Most are not shared: their contents need not be fetched.
    is_shared = kind is not None and kind.merge == "shared"
    found = _view(entry, blob, header, head) if is_shared else entry
    if len(_NEWEST) >= _FEW:
        _NEWEST.clear()
    _NEWEST[entry.seq] = entry, found
    return found


def newest_inner(seq: int, header: bytes, body: bytes | None) -> Entry | None:
    """What ``inner_entry`` gave for the entry of these very bytes; None where it is not held."""
    held = _NEWEST.get(seq)
    is_it = held is not None and (held[0].header, held[0].body) == (header, body)
    return held[1] if held is not None and is_it else None


def forget_newest() -> None:
    """Hold none of the entries that were appended any longer."""
    _NEWEST.clear()


def erased_view(body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Kind and data of an inner entry that its maker erased, as tables and files see it.

    The kind is '' where nothing of it is shown. ``body`` is what a redaction keeps of the
    ``peer.entry``.
    """
    head = orjson.loads(_bytes(body["header"], lambda _: None))
    kind = BY_NAME.get(head["kind"])
    place = body.get("place") or {}
    if kind is None or kind.merge != "shared" or "same" in place:
        return "", {}
    return kind.name, _placed(kind.name, body.get("keep") or {}, place, head["actor"])


def _placed(
    name: str, body: Mapping[str, Any], place: Mapping[str, Any], actor: str
) -> dict[str, Any]:
    """A body under the names that it has here; the bytes of a line with another name are not."""
    data = {**body, **place}
    shown = data.pop("actor", None)
    data[PEER] = {"said": {part: body[part] for part in place if part in body}}
    kind = BY_NAME.get(name)
    by = None if kind is None else kind.actor
    if shown is not None and by is not None and "source" not in place and body.get(by) == actor:
        data[by] = shown
    if "observed" in body:
        # Its path is one of its maker's files.
        left = ("path", "raw") if name in _REWRITTEN and _is_text(data) else ("path",)
        seen = body["observed"]
        data["observed"] = {part: seen[part] for part in seen if part not in left}
    return data


def _is_text(data: Mapping[str, Any]) -> bool:
    """Whether what was said is text, so that it can be written under another name."""
    return not any("base64" in data.get(part, ()) for part in ("text", "payload"))


def _bytes(content: Content, blob: BlobReader) -> bytes:
    if "text" in content:
        return str.encode(content["text"])  # a TypeError where it is no text
    if "base64" in content:
        return b64decode(content["base64"])
    found = blob(bytes.fromhex(content["sha256"]))
    if found is None:
        raise MalformedError(f"blob {content['sha256'][:12]}… is missing")
    return found
