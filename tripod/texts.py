"""Finds what a redaction is after: the texts of a body, of a blob, of a file, and copies of them.

A chat file holds its messages in base64, and bytes that were kept of one hold them so as well: its
lines are searched as what they say.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from projections.formats.chat import parse_line
from projections.projection import Source, content_bytes

COPIES = frozenset(
    (
        "agent.ended",
        "agent.requested",
        "bus.published",
        "chat.header-seen",
        "chat.unreadable",
        "delivered",
        "evidence.kept",
        "file.displaced",
        "file.seen",
        "log.noted",
        "worker.ended",
        "worker.written",
    )
)
"""Kinds that hold copies of what was said elsewhere: kept bytes, what agents were given and
printed, and events, which are signals."""

LEAST = 16
"""Bytes from which on a text is known again wherever it stands; a shorter one only as a line."""

_CONTENT = ({"text"}, {"base64"}, {"sha256", "size"})
_DIGESTS = ("argv_sha256", "digest", "leaf", "sha256")
_SAID = {
    "bus.published": ("payload",),
    "chat.sent": ("text",),
    "decision.logged": ("title", "rationale"),
    "agent.ended": ("stdout", "stderr"),
    "agent.requested": ("spec",),
    "worker.spawned": ("task",),
    "worker.continued": ("message",),
    "worker.escalated": ("reason",),
}


def texts_in(data: bytes) -> Iterator[str]:
    """What bytes say: themselves, and their lines where those are messages of a chat."""
    yield data.decode("utf-8", "replace")
    for line in data.split(b"\n"):
        message = parse_line(line) if line else None
        if message is not None:
            yield f"{message.handle}|{message.time}: {message.text}"


def texts_of(source: Source, value: Any) -> Iterator[str]:
    """Every text of a body, what stands in its blobs included, and no digest."""
    if isinstance(value, dict):
        if value.keys() in _CONTENT:
            yield from texts_in(content_bytes(source, value))
            return
        for name, inner in value.items():
            if name not in _DIGESTS:
                yield from texts_of(source, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(source, inner)
    elif isinstance(value, str):
        yield value


def erased_texts(source: Source, kind: str, body: dict[str, Any]) -> list[str]:
    """What is erased with a body of this kind and is looked for elsewhere."""
    fields = _SAID.get(kind, ("content", "header", "archive_header", "raw"))
    seen = body.get("observed", {})
    values = [body[name] for name in fields if name in body]
    values += [seen["raw"]] if "raw" in seen else []
    texts = [_plain(source, value) for value in map(_unwrapped, values) if value is not None]
    if kind == "chat.sent":
        texts.append(f"{body['handle']}|{body['time']}: {texts[0]}")
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _unwrapped(value: Any) -> Any:
    """What a program wrote is kept in a content of its own; None where it was too much to keep."""
    if isinstance(value, dict) and value.keys() not in _CONTENT:
        return value.get("content")
    return value


def _plain(source: Source, value: Any) -> str:
    if isinstance(value, str):
        return value
    if "base64" in value:
        return b64decode(value["base64"]).decode("utf-8", "replace")
    return content_bytes(source, value).decode("utf-8", "replace")


def pattern_for(texts: list[str]) -> re.Pattern[str] | None:
    """What finds copies of texts: long ones anywhere, a message's whole line as a line alone."""
    parts = [re.escape(text.strip("\n")) for text in texts if _is_long(text)]
    parts += [rf"\A{re.escape(t)}\Z" for t in texts if not _is_long(t) and "|" in t and ": " in t]
    return re.compile("|".join(parts)) if parts else None


def _is_long(text: str) -> bool:
    return len(text.strip("\n").encode()) >= LEAST
