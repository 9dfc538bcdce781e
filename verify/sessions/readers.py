"""Which program wrote a file, and what its reader finds in it, counted. Pure.

A program is told by the form of its records alone: the name and the place of a file are its
owner's to choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tripod.verify.sessions.atif import Atif
from tripod.verify.sessions.claude_code import ClaudeCode
from tripod.verify.sessions.codex import Codex
from tripod.verify.sessions.copilot import Copilot
from tripod.verify.sessions.cursor import Cursor
from tripod.verify.sessions.gemini import Gemini, Qwen
from tripod.verify.sessions.items import (
    Call,
    Gap,
    Given,
    Item,
    Reader,
    SessionRecord,
    fields,
    text_at,
)
from tripod.verify.sessions.jsonl import DamagedLine
from tripod.verify.sessions.opencode import OpenCode

READERS: dict[str, type[Reader]] = {
    reader.program: reader
    for reader in (ClaudeCode, Codex, Copilot, Gemini, Qwen, OpenCode, Cursor, Atif)
}
"""Every reader by the name of its program."""

PLACES = {
    "Claude Code": "~/.claude/projects/<folder>/<session>.jsonl",
    "Codex": "~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl",
    "Copilot CLI": "~/.copilot/session-state/<session>/events.jsonl",
    "Gemini CLI": "~/.gemini/tmp/<project>/chats/session-*.jsonl",
    "Qwen Code": "~/.qwen/projects/<folder>/chats/<session>.jsonl",
    "OpenCode": "~/.local/share/opencode/opencode.db",
    "Cursor": "~/.cursor/projects/<folder>/agent-transcripts/<session>/<session>.jsonl",
}
"""Where each program keeps its sessions."""

MAX_DOCUMENT = 64 * 1024 * 1024
"""Bytes of a file that is one document; a longer one is not read."""

DOCUMENTS = {"gemini": "messages", "opencode": "messages", "atif": "steps"}
"""For each program whose file may be one document, the list that holds what happened."""

_CLAUDE = frozenset(
    ("user", "assistant", "attachment", "progress", "system", "summary", "queue-operation")
)


def program_of(value: dict[str, Any]) -> str | None:
    """The program that wrote a record, or a document; None where its form tells nothing."""
    kind = text_at(value, "type")
    if isinstance(value.get("payload"), dict) and kind and "timestamp" in value:
        return "codex"
    if isinstance(value.get("data"), dict) and "." in kind:
        return "copilot"
    if isinstance(value.get("schema_version"), str) and "steps" in value:
        return "atif"
    info = value.get("info")
    if isinstance(info, dict) and ({"messages", "parts"} & value.keys() or "directory" in info):
        return "opencode"
    if "projectHash" in value or "$set" in value or kind == "gemini":
        return "gemini"
    if "sessionId" in value and ("provenance" in value or "systemPayload" in value):
        return "qwen"
    if "sessionId" in value and "messages" in value:
        return "gemini"
    if "sessionId" in value and kind:
        message = value.get("message")
        parts = isinstance(message, dict) and "parts" in message
        return "qwen" if parts else "claude-code"
    if kind in _CLAUDE or kind == "file-history-snapshot":
        return "claude-code"
    if isinstance(value.get("role"), str) and isinstance(value.get("message"), dict):
        return "cursor"
    return None


_OF_NO_SESSION = (
    fields("display timestamp project"),  # history.jsonl of Claude Code
    fields("session_id ts text"),  # history.jsonl of Codex
    fields("id thread_name updated_at"),  # session_index.jsonl of Codex
    fields("hook_event_name session_id"),  # what a hook was given
)


def is_of_no_session(value: dict[str, Any]) -> bool:
    """Whether a line is of another file that lies among sessions: a list of prompts, or events.

    >>> is_of_no_session({"session_id": "s", "ts": 1, "text": "go"}), is_of_no_session({"a": 1})
    (True, False)
    """
    return any(keys <= value.keys() for keys in _OF_NO_SESSION)


def document_records(value: dict[str, Any], program: str) -> Iterator[SessionRecord]:
    """A document as records: what it says of itself, then each message; the number is its place."""
    name = DOCUMENTS[program]
    listed = value.get(name)
    header = {key: one for key, one in value.items() if key != name}
    yield SessionRecord(1, 0, header)
    for number, one in enumerate(listed if isinstance(listed, list) else (), 1):
        yield SessionRecord(number, 0, one if isinstance(one, dict) else {"": one})


class SessionCounts:
    """What a reader found in one file, counted; ``add`` each of its items in their order.

    ``calls`` has the calls of the session's own thread, by tool; ``nested`` those of subagents that
    stand in the same file. A call is answered by the first answer with its id that comes after it:
    ids may all be one word.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.nested: Counter[str] = Counter()
        self.results = self.failed = 0
        self.unparsed: list[int] = []
        self.gaps = 0
        self._open: dict[str, int] = {}

    def add(self, item: Item) -> None:
        """Count one item."""
        if isinstance(item, Given):
            name = item.call
            waiting = None if name is None or item.nested else self._open.get(name)
            if name is not None and waiting:
                if waiting == 1:
                    del self._open[name]
                else:
                    self._open[name] = waiting - 1
                self.results += 1
                self.failed += item.failed
        elif isinstance(item, Call):
            if item.nested and not item.ran:
                self.nested[item.tool] += 1
            elif not item.ran:
                self.calls[item.tool] += 1
                self._open[item.id] = self._open.get(item.id, 0) + 1
        elif isinstance(item, Gap):
            self.gaps += 1
            if item.cause == "damaged":
                self.unparsed.append(item.line)

    @property
    def unanswered(self) -> list[str]:
        """Ids of calls without an answer, each as often as there are such calls."""
        return list(Counter(self._open).elements())


def read_session(reader: Reader, records: Iterable[SessionRecord | DamagedLine]) -> Iterator[Item]:
    """Everything that the records of one file hold, in their order; damage is a gap among it."""
    read = reader.read
    for record in records:
        if isinstance(record, SessionRecord):
            reader.time = record.value.get("timestamp") or reader.time
            yield from read(record)
        else:
            yield record.gap
            if record.text is not None:
                yield record.text
        del record  # it may be long, and the next one comes before the name is another's
    yield from reader.end()
