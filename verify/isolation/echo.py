"""Finds where Pythia's prompts and answers repeat the chat (n-gram overlap). Pure.

Pythia may see the decision log up to the checkpoint, the event that asked for the review, the
team's settings and this project's instructions. Chat is every message, every line of a chat file
that is no message, the payloads of events that quote them, and the bytes of replaced chat files.
All else is not searched: it quotes the chat, or has nothing to do with it (design, section 8).

A word is a row of letters and digits, without case, accents and invisible characters, as
``tripod.projections.text`` defines it. Two texts overlap where :data:`RUN` consecutive words are
the same (spec: kernel section 3, W = 12). The small side (prompts and answers) is indexed by
hashes, the large side (the chat) streams past it: time is linear in both, memory in the small one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tripod.ledger import LedgerError, parse_header
from tripod.ledger.words import RUN
from tripod.ledger.words import words_of_text as words_of
from tripod.projections.chat.format import QUOTES, parse_line
from tripod.projections.chat.tables import render_chat_line
from tripod.projections.decisions.format import decision_parts
from tripod.projections.decisions.tables import render_decision_piece
from tripod.projections.projection import TOGETHER
from tripod.projections.pythia.format import parse_assessment
from tripod.verify.check import Evidence
from tripod.verify.isolation import phrases
from tripod.verify.isolation.runs import FILE, ReviewRun, ReviewText, assessments_of_runs

_CONTEXT = 2000  # characters around what stands between decisions
_MISSES = 20  # decisions that may be missing in a row where a text is searched for them

_SEEN = frozenset(("ledger.opened", "config.changed", "log.begun", "log.noted", "log.rotated"))
_SEEN_EVENTS = frozenset(("decision-logged", "pythia-checkpoint"))


class DecisionLogPhrases:
    """The decision log, piece by piece, as the text Pythia may see; ``own``: our instructions."""

    def __init__(self, evidence: Evidence, own: Iterable[str]) -> None:
        self.known = phrases.VisiblePhrases()
        self._pieces: dict[int, str] = {}
        for text in own:
            self.known.add(-1, text)
        rows = evidence.query("SELECT seq FROM pieces WHERE id IS NOT NULL ORDER BY seq")
        for start in range(0, len(rows), TOGETHER):
            seqs = [seq for (seq,) in rows[start : start + TOGETHER]]
            bodies = evidence.source.bodies(seqs)
            for seq in seqs:
                try:
                    body = bodies.get(seq) or evidence.body(seq)
                    text = render_decision_piece(evidence.source, body).decode("utf-8", "replace")
                except evidence.unreadable:
                    text = ""  # `bodies-present` and `kinds-known` name it
                self.known.add(seq, text, follows=bool(self._pieces))
                self._pieces[seq] = text.strip()

    def __contains__(self, seq: object) -> bool:
        """Whether an entry is a decision."""
        return seq in self._pieces

    def said(self) -> Iterator[tuple[int, list[str]]]:
        """Each decision's entry with the words of each part of it, be it a field of ours or not."""
        for seq, piece in self._pieces.items():
            for part in decision_parts(piece):
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
            if words_of(text[at:start]):
                yield text[max(0, at - _CONTEXT) : start + _CONTEXT]
            at = start + len(piece)
        yield text[max(0, at - _CONTEXT) :]


def hidden_echo_sources(
    evidence: Evidence, log: DecisionLogPhrases, sources: Iterable[int], before: int
) -> Iterator[tuple[int, str]]:
    """Entries that ``sources`` lead to and Pythia may not see, each with what it is.

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
            said = evidence.body(seq)
            place = f", {said['name']}" if "name" in said else ""
            if "channel" in said and "index" in said:
                place = f", chat {said['channel']}, message {said['index']}"
            yield seq, f"{kind or 'missing'}{place}"
        elif cause is not None and cause not in seen and cause not in log:
            seen.add(cause)
            todo.append(cause)


def _header(evidence: Evidence, seq: int) -> tuple[str, int | None]:
    """The kind of an entry, and the entry that it follows from."""
    ledger = evidence.ledger
    try:
        header = parse_header(ledger.header(seq) or b"") if ledger is not None else None
    except (LedgerError, TypeError):
        header = None
    if header is None or ledger is None:
        return "", None
    return header.kind, None if header.cause is None else ledger.seq_of(header.cause)


class ChatText(NamedTuple):
    """A text of the chat: its entry, its words, how its line stands in the file ('': it has none).

    ``claimed`` is the second that a line of others carries, 0 where the entry's own place counts:
    it may have been there before it was taken in. An event is no line of a chat.
    """

    seq: int
    where: str
    words: list[str]
    code: str = ""
    claimed: int = 0
    is_line: bool = True


def chat_texts_for_echo(evidence: Evidence, *, codes: bool) -> Iterator[ChatText]:
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
            except evidence.unreadable:
                continue  # a body of another shape: `kinds-known` and `bodies-present` name it


def _said(evidence: Evidence, seq: int, body: dict[str, Any], *, codes: bool) -> Iterator[ChatText]:
    if "path" in body:
        if body["path"].startswith("chat/") and "content" in body:
            for line in evidence.source.content(body["content"]).split(b"\n"):
                message = parse_line(line)
                words = [] if message is None else words_of(message.text)
                yield ChatText(seq, f"{body['path']} as it was put aside", words, _text(line))
        return
    claimed = body.get("time", body.get("us", 0) // 1_000_000) if "observed" in body else 0
    claimed = claimed if type(claimed) is int else 0
    if "index" not in body:
        if "payload" in body:
            words = words_of(_text(evidence.source.content(body["payload"])))
            yield ChatText(seq, f"event {body['name']}", words, "", claimed, is_line=False)
        return
    where = f"chat {body['channel']}, message {body['index']}"
    if "text" in body:
        words = words_of(_text(evidence.source.content(body["text"])))
        line = render_chat_line(evidence.source, body) if codes else b""
        yield ChatText(seq, where, words, _text(line), claimed)
    else:
        raw = _text(evidence.source.content(body["observed"]["raw"]))
        yield ChatText(seq, where, words_of(raw), raw, claimed)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


class Echo(NamedTuple):
    """A text of a run, the first text of the chat that it echoes, and the words of both.

    ``line``: it holds a line of a chat file. ``more`` counts further messages that it echoes.
    """

    run: ReviewRun
    text: ReviewText
    said: ChatText
    words: str
    line: bool
    more: int


@dataclass
class Echoed:
    """What was found; ``compared`` counts the texts of the chat.

    ``beside`` is, for each run, the longest row of words that it was given from neither the log nor
    our own words; ``first`` the entry that first holds a file which it was given; ``erased`` the
    messages that nobody can compare; ``quoting`` the decisions that hold words said before.
    """

    found: list[Echo] = field(default_factory=list)
    compared: int = 0
    beside: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    erased: list[int] = field(default_factory=list)
    quoting: set[int] = field(default_factory=set)

    def erased_for(self, run: ReviewRun) -> int:
        """How many messages were erased that the run might echo.

        There is no room for any where it was given nothing but the log and our words, and could
        reach nothing else. A file has room for what was said before it was first given.
        """
        if run.level == "namespace" and self.beside.get(run.spawn, RUN) < RUN:
            files = [self.first[one.text] for one in run.given if one.text in self.first]
            until = max(files, default=-1)
        else:
            until = max((text.seq for text in run.wrote), default=run.seq)
        return sum(seq < until for seq in self.erased)


def echoes(evidence: Evidence, log: DecisionLogPhrases, runs: Sequence[ReviewRun]) -> Echoed:
    """Hold all that the runs were given and wrote against all of the chat.

    A text can repeat only earlier words, so a phrase counts for the first text that has it.
    """
    echoed = Echoed()
    held = phrases.PhraseIndex()
    texts = [(run, text) for run in runs for text in (*run.given, *run.wrote)]
    texts.sort(key=lambda pair: pair[1].seq)
    bounds = {run.spawn: (run.sources, run.until) for run in runs}
    for number, (run, text) in enumerate(texts):
        sources, until = bounds[run.spawn]
        known = log.known.before(until)
        rows = [
            held.add(number, words_of(part), known, phrases.encoded_lines_in(part))
            for part in log.between(text.text, sources, until)
        ]
        if text.what == FILE and max(rows, default=0) >= RUN:
            echoed.first.setdefault(text.text, text.seq)
        if text.sources:
            echoed.beside[run.spawn] = max([echoed.beside.get(run.spawn, 0), *rows])
    first: dict[int, tuple[ChatText, str, bool]] = {}
    others: dict[int, set[int]] = {}
    own, own_words = _own(evidence)
    decisions, holders = _deciding(log)
    for spoken in chat_texts_for_echo(evidence, codes=bool(held.codes)):
        echoed.compared += 1
        hits = [(number, words, False) for number, words in held.find(spoken.words)]
        for _, words in decisions.find(spoken.words):
            # The first message that has the words is the earliest: no later one adds a decision.
            seqs = holders.pop(hash(tuple(words.split(" "))), ())
            echoed.quoting.update(seq for seq in seqs if spoken.seq < seq)
        code = held.find_code(spoken.code) if spoken.code else None
        hits += [] if code is None else [(code, " ".join(spoken.words[:RUN]), True)]
        if not hits:
            continue
        # What the reviewer posted itself is not chat: the message, and an event that quotes it all.
        payload = "" if spoken.is_line else _payload(evidence, spoken.seq)
        whole = (spoken.words, words_of(payload))
        quoted = spoken.seq in own or any(tuple(words) in own_words for words in whole)
        answer = parse_assessment(payload) is not None
        for number, words, line in hits:
            text = texts[number][1]
            early = spoken.seq < text.seq or 0 < spoken.claimed < text.time
            if early and not quoted and not (answer and text.sources is None):
                first.setdefault(number, (spoken, words, line))
                others.setdefault(number, set()).update([spoken.seq] if spoken.is_line else [])
    for number, (spoken, words, line) in sorted(first.items()):
        run, text = texts[number]
        if line or words in " ".join(words_of(text.text)):  # two runs may have one hash
            echoed.found.append(
                Echo(run, text, spoken, words, line, len(others[number] - {spoken.seq}))
            )
    gone = evidence.query(
        "SELECT seq FROM redactions WHERE kind IN ('chat.sent', 'chat.unreadable')"
    )
    echoed.erased = [seq for (seq,) in gone]
    return echoed


def _deciding(log: DecisionLogPhrases) -> tuple[phrases.PhraseIndex, dict[int, list[int]]]:
    """The words of all decisions, and for each run of them the decisions that have it."""
    decisions, holders = phrases.PhraseIndex(), dict[int, list[int]]()
    for seq, words in log.said():
        decisions.add(seq, words)
        for run in phrases.phrase_hashes(words):
            holders.setdefault(run, []).append(seq)
    return decisions, holders


def _own(evidence: Evidence) -> tuple[set[int], set[tuple[str, ...]]]:
    """Messages that are assessments, and their words: they are the reviewer's own, and not chat.

    A chat file that was put aside, and events, hold these words too. An assessment that no run of
    ours wrote leaves the check at *cannot tell* in any case.
    """
    rows = evidence.query("SELECT message FROM assessments")
    seqs = {seq for (seq,) in rows} | {posted.seq for posted in assessments_of_runs(evidence)}
    texts = (evidence.text(seq, "text") for seq in seqs)
    return seqs, {tuple(words_of(text)) for text in texts if text is not None} - {()}


def _payload(evidence: Evidence, seq: int) -> str:
    """What an event quotes, after the handle; '' for any other entry."""
    return (evidence.text(seq, "payload") or "").partition(": ")[2]
