"""Where Pythia's prompts and answers echo the chat: one pass over it for all of her runs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from projections.formats.assessment import parse_assessment
from projections.formats.words import RUN
from projections.formats.words import spoken as words_of
from projections.projection import content_bytes
from verify.assessments import assessments
from verify.chat_side import Log, Said, said
from verify.echo import Held, codes_of, runs_of
from verify.evidence import Evidence
from verify.reviews import FILE, Review, Text
from verify.sources import RENDER_ERRORS


class Echo(NamedTuple):
    """A text of a run, the first text of the chat that it echoes, and the words of both.

    ``line``: a line of a chat file stands in it as it is there. ``more`` counts further messages
    that it echoes.
    """

    run: Review
    text: Text
    said: Said
    words: str
    line: bool
    more: int


@dataclass
class Echoed:
    """What was found; ``compared`` counts the texts of the chat.

    ``beside`` is, for each run, the longest row of words that it was given and that stands neither
    in the log nor among our own words; ``first`` is the entry that first holds a file which it was
    given; ``erased`` are the messages that nobody can compare; ``quoting`` are the decisions that
    hold words of what was said before.
    """

    found: list[Echo] = field(default_factory=list)
    compared: int = 0
    beside: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    erased: list[int] = field(default_factory=list)
    quoting: set[int] = field(default_factory=set)

    def erased_for(self, run: Review) -> int:
        """How many messages were erased that the run might echo.

        None, where it was given nothing but the log and our words, and could reach nothing else:
        then there is no room for them. A file has room for what was said before it was first given.
        """
        if run.level == "namespace" and self.beside.get(run.spawn, RUN) < RUN:
            files = [self.first[one.text] for one in run.given if one.text in self.first]
            until = max(files, default=-1)
        else:
            until = max((text.seq for text in run.wrote), default=run.seq)
        return sum(seq < until for seq in self.erased)


def echoes(evidence: Evidence, log: Log, runs: Sequence[Review]) -> Echoed:
    """Hold all that the runs were given and wrote against all of the chat.

    A text can echo only what was said before it: her words, quoted in the chat later, are hers. So
    a row of words counts for the first text that has it.
    """
    echoed = Echoed()
    held = Held()
    texts = [(run, text) for run in runs for text in (*run.given, *run.wrote)]
    texts.sort(key=lambda pair: pair[1].seq)
    bounds = {run.spawn: (run.sources, run.until) for run in runs}
    for number, (run, text) in enumerate(texts):
        sources, until = bounds[run.spawn]
        known = log.known.before(until)
        rows = [
            held.add(number, words_of(part), known, codes_of(part))
            for part in log.between(text.text, sources, until)
        ]
        if text.what == FILE and max(rows, default=0) >= RUN:
            echoed.first.setdefault(text.text, text.seq)
        if text.sources:
            echoed.beside[run.spawn] = max([echoed.beside.get(run.spawn, 0), *rows])
    first: dict[int, tuple[Said, str, bool]] = {}
    others: dict[int, set[int]] = {}
    own = _own(evidence)
    own_words = _own_words(evidence, own)
    decisions, holders = _deciding(log)
    for spoken in said(evidence, codes=held.holds_codes):
        echoed.compared += 1
        hits = [(number, words, False) for number, words in held.find(spoken.words)]
        for _, words in decisions.find(spoken.words):
            # The first message that has the words is the earliest: no later one adds a decision.
            seqs = holders.pop(hash(tuple(words.split(" "))), ())
            echoed.quoting.update(seq for seq in seqs if spoken.seq < seq)
        code = held.find_code(spoken.code) if spoken.code else None
        hits += [] if code is None else [(code, shown(spoken), True)]
        for number, words, line in hits:
            text = texts[number][1]
            early = spoken.seq < text.seq or 0 < spoken.claimed < text.time
            hers = spoken.seq in own or _quotes(evidence, spoken, own_words)
            if early and not hers and not (text.sources is None and _is_hers(evidence, spoken.seq)):
                first.setdefault(number, (spoken, words, line))
                others.setdefault(number, set()).update([spoken.seq] if spoken.is_line else [])
    for number, (spoken, words, line) in sorted(first.items()):
        run, text = texts[number]
        if line or words in " ".join(words_of(text.text)):  # two runs may have one hash
            echoed.found.append(
                Echo(run, text, spoken, words, line, len(others[number] - {spoken.seq}))
            )
    kinds = "SELECT seq FROM redactions WHERE kind IN ('chat.sent', 'chat.unreadable')"
    echoed.erased = [seq for (seq,) in evidence.query(kinds)]
    return echoed


def _deciding(log: Log) -> tuple[Held, dict[int, list[int]]]:
    """The words of all decisions, and for each run of them the decisions that have it."""
    decisions, holders = Held(), dict[int, list[int]]()
    for seq, words in log.said():
        decisions.add(seq, words)
        for run in runs_of(words):
            holders.setdefault(run, []).append(seq)
    return decisions, holders


def shown(one: Said) -> str:
    """The beginning of a text of the chat."""
    return " ".join(one.words[:RUN])


def _own(evidence: Evidence) -> set[int]:
    """Messages that are assessments: they are the reviewer's, and no chat for it.

    One that no run of ours wrote leaves the check at *cannot tell*, whatever stands in it.
    """
    rows = evidence.query("SELECT message FROM assessments")
    return {seq for (seq,) in rows} | {posted.seq for posted in assessments(evidence)}


def _own_words(evidence: Evidence, own: Iterable[int]) -> set[tuple[str, ...]]:
    """The words of those messages: a chat file that was put aside, and events, hold them too."""
    found = set()
    for seq in own:
        try:
            text = content_bytes(evidence.source, evidence.body(seq)["text"]).decode()
        except RENDER_ERRORS:
            continue
        found.add(tuple(words_of(text)))
    return found - {()}


def _quotes(evidence: Evidence, one: Said, own: Container[tuple[str, ...]]) -> bool:
    """Whether a text that is no message is one of those assessments, whole."""
    if tuple(one.words) in own:
        return True
    return not one.is_line and tuple(words_of(_payload(evidence, one.seq))) in own


def _is_hers(evidence: Evidence, seq: int) -> bool:
    """Whether an event quotes what has the form of an assessment."""
    return parse_assessment(_payload(evidence, seq)) is not None


def _payload(evidence: Evidence, seq: int) -> str:
    """What an event quotes, behind the handle; '' of what is no event."""
    try:
        payload = content_bytes(evidence.source, evidence.body(seq)["payload"]).decode()
    except RENDER_ERRORS:
        return ""
    return payload.partition(": ")[2]
