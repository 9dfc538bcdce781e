"""Both sides of Pythia's isolation: what she may see, and what is chat.

She may see the decision log up to her checkpoint, the event that asked for her, the team's settings
and the project's own words to her. Chat is every message, every line of a chat file that is none,
the payloads of events that quote them, and bytes of chat files that were put aside. Everything else
she may not see either, but it is not searched for: it quotes the chat, or has nothing to do with it
(design, section 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ledger.entry import parse_header
from ledger.errors import LedgerError
from projections.chat_file import line_bytes
from projections.decision_log import piece_bytes
from projections.formats.chat import parse_line
from projections.formats.decision_log import parts_of
from projections.formats.words import spoken as words_of
from projections.projection import TOGETHER, content_bytes
from verify.echo import Known, has_word
from verify.evidence import Evidence
from verify.rows import one
from verify.sources import RENDER_ERRORS

QUOTES = ("chat-message", "chat-mention", "chat-query", "chat-interrupt", "human-input")
"""Types of events whose payload quotes a message."""

_CONTEXT = 2000  # characters around what stands between decisions
_MISSES = 20  # decisions that may be missing in a row where a text is searched for them

_SEEN = frozenset(("ledger.opened", "config.changed", "log.begun", "log.noted", "log.rotated"))
_SEEN_EVENTS = frozenset(("decision-logged", "pythia-checkpoint"))


class Log:
    """The decision log, piece by piece, as the text that she may see. ``own``: our words to her."""

    def __init__(self, evidence: Evidence, own: Iterable[str]) -> None:
        self.known = Known()
        self._pieces: dict[int, str] = {}
        for text in own:
            self.known.add(-1, text)
        rows = evidence.query("SELECT seq FROM pieces WHERE id IS NOT NULL ORDER BY seq")
        for start in range(0, len(rows), TOGETHER):
            seqs = [seq for (seq,) in rows[start : start + TOGETHER]]
            bodies = evidence.source.bodies(seqs)
            for seq in seqs:
                text = _piece(evidence, bodies.get(seq) or evidence.body(seq))
                self.known.add(seq, text, follows=bool(self._pieces))
                self._pieces[seq] = text.strip()

    def __contains__(self, seq: object) -> bool:
        """Whether an entry is a decision."""
        return seq in self._pieces

    def said(self) -> Iterator[tuple[int, list[str]]]:
        """Each decision's entry with the words of each part of it, be it a field of ours or not."""
        for seq, piece in self._pieces.items():
            for part in parts_of(piece):
                yield seq, words_of(part)

    def between(self, text: str, sources: Iterable[int], until: int) -> Iterator[str]:
        """What stands in a text beside the decisions that it is made of, with what is around it.

        A text is nearly all of the log, and read once for each checkpoint: this keeps it linear.
        """
        at = misses = 0
        for seq in sources:
            piece = self._pieces.get(seq) if seq < until else None
            if not piece:
                continue
            start = text.find(piece, at)
            if start < 0:
                misses += 1
                if misses == _MISSES:
                    break
                continue
            misses = 0
            if has_word(text, at, start):
                yield text[max(0, at - _CONTEXT) : start + _CONTEXT]
            at = start + len(piece)
        yield text[max(0, at - _CONTEXT) :]


def _piece(evidence: Evidence, body: dict[str, Any]) -> str:
    try:
        return piece_bytes(evidence.source, body).decode("utf-8", "replace")
    except RENDER_ERRORS:
        return ""  # `bodies-present` and `kinds-known` name it


# What she may not see ----------------------------------------------------------------------------


def hidden_among(
    evidence: Evidence, log: Log, sources: Iterable[int], before: int
) -> Iterator[tuple[int, str]]:
    """Entries behind ``sources`` that she may not see, each with what it is.

    The closure stops at a decision, which distils what it came from (spec: kernel section 3).
    """
    todo = [seq for seq in sources if seq not in log or seq >= before]
    seen = set(todo)
    while todo:
        seq = todo.pop()
        if seq >= before:
            yield seq, "no entry that stands before it"
            continue
        kind, cause = _header(evidence, seq)
        body = evidence.body(seq) if kind == "bus.published" else {}
        if kind not in _SEEN and str(body.get("type")) not in _SEEN_EVENTS:
            yield seq, f"{kind or 'missing'}{_place(evidence, seq)}"
        elif cause is not None and cause not in seen and cause not in log:
            seen.add(cause)
            todo.append(cause)


def _header(evidence: Evidence, seq: int) -> tuple[str, int | None]:
    """The kind of an entry, and the entry that it follows from."""
    if evidence.db is None:
        return "", None
    row = one(evidence.db, "SELECT header FROM entries WHERE seq = ?", (seq,))
    try:
        header = parse_header(b"" if row is None else row[0])
    except (LedgerError, TypeError):
        return "", None
    if header.cause is None:
        return header.kind, None
    found = one(evidence.db, "SELECT seq FROM entries WHERE id = ?", (header.cause,))
    return header.kind, None if found is None else found[0]


def _place(evidence: Evidence, seq: int) -> str:
    body = evidence.body(seq)
    if "channel" in body and "index" in body:
        return f", chat {body['channel']}, message {body['index']}"
    return f", {body['name']}" if "name" in body else ""


# The chat ----------------------------------------------------------------------------------------


class Said(NamedTuple):
    """A text of the chat: its entry, its words, how its line stands in the file ('': it has none).

    ``claimed`` is the second that a line which others wrote carries: it may have been there before
    it was taken in. 0 where the entry's own place counts. An event is no line of a chat.
    """

    seq: int
    where: str
    words: list[str]
    code: str = ""
    claimed: int = 0
    is_line: bool = True


def said(evidence: Evidence, *, codes: bool) -> Iterator[Said]:
    """All of the chat, in the order of the entries; ``codes``: with the lines of the files."""
    sql = (
        "SELECT seq FROM lines UNION SELECT seq FROM events WHERE type IN"
        f" ({', '.join('?' * len(QUOTES))}) UNION SELECT seq FROM displaced ORDER BY 1"
    )
    seqs = [seq for (seq,) in evidence.query(sql, *QUOTES)]
    for start in range(0, len(seqs), TOGETHER):
        part = seqs[start : start + TOGETHER]
        bodies = evidence.source.bodies(part)
        for seq in part:
            body = bodies.get(seq) or evidence.body(seq)
            try:
                yield from _said(evidence, seq, body, codes=codes)
            except RENDER_ERRORS:
                continue  # a body of another shape: `kinds-known` and `bodies-present` name it


def _said(evidence: Evidence, seq: int, body: dict[str, Any], *, codes: bool) -> Iterator[Said]:
    if "path" in body:
        if body["path"].startswith("chat/") and "content" in body:
            for line in content_bytes(evidence.source, body["content"]).split(b"\n"):
                message = parse_line(line)
                words = [] if message is None else words_of(message.text)
                yield Said(seq, f"{body['path']} as it was put aside", words, _text(line))
        return
    claimed = body.get("time", body.get("us", 0) // 1_000_000) if "observed" in body else 0
    claimed = claimed if type(claimed) is int else 0
    if "index" not in body:
        if "payload" in body:
            words = words_of(_text(content_bytes(evidence.source, body["payload"])))
            yield Said(seq, f"event {body['name']}", words, "", claimed, is_line=False)
        return
    where = f"chat {body['channel']}, message {body['index']}"
    if "text" in body:
        words = words_of(_text(content_bytes(evidence.source, body["text"])))
        line = line_bytes(evidence.source, body) if codes else b""
        yield Said(seq, where, words, _text(line), claimed)
    else:
        raw = _text(content_bytes(evidence.source, body["observed"]["raw"]))
        yield Said(seq, where, words_of(raw), raw, claimed)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
