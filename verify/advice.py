"""Judges texts by their words: passages that sound like a decision, log entries that do not. Pure.

A text of a stranger costs no more than its length. It is meant to be silent rather than wrong: a
sentence counts only if it commits (``we'll use files, not sockets``), not if it asks, weighs or
proposes; and a decision that was logged near it settles it.

Source: seeds tripod-architecture "What Constitutes a Decision", nbs-scribe "What Scribe Records".
Where the two differ (only one of them logs who does which task) no advice is given.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from tripod.projections.chat.format import HEADER_LINES
from tripod.projections.projection import TOGETHER, Source

BEHIND = 20  # messages of the channel within which the Scribe is expected to have logged it
NEAR = 5  # lines: how far a decision's chat reference may be from the passage
MAX_TEXT = 16 * 1024  # characters of a message that are looked at: a decision is short
MAX_SENTENCE = 400
SHARED = 2  # words that a decision logged soon after must share with the passage

_VERB = r"(?:use|go with|keep|drop|switch|move|adopt|stick|stay|replace|defer|postpone)"
_SIGNS: tuple[tuple[str, bool, re.Pattern[str]], ...] = tuple(
    (name, weighed, re.compile(expression))
    for name, weighed, expression in (
        ("a reversal", True, r"\b(?:revert|revers)(?:e|ed|ing)? (?:the|our|that|this) decision\b"),
        ("a reversal", True, r"\bactually,? let's\b"),
        ("an accepted risk", False, r"\baccept(?:ed|ing)? (?:the|this|that) (?:risk|cost|debt)\b"),
        ("an accepted risk", False, r"\bproceed(?:ing)? anyway\b"),
        ("an accepted risk", True, r"\bwe(?:'ll| will)? accept (?:the|this|that|it)\b"),
        (
            "a change of scope",
            True,
            r"\b(?:dropping|cutting|leaving) (?:\S+ ){1,6}(?:from|out of) (?:the )?(?:mvp|scope)\b",
        ),
        (
            "a change of architecture",
            True,
            r"\bwe(?:'re| are) (?:mov|switch)ing from (?:\S+ ){1,5}to\b",
        ),
        ("a choice", True, r"^(?:decision|decided|agreed)(?:[:,-]| -) ?(?:\S+ ){2,}"),
        ("a choice", True, r"\bwe(?:'ve| have)? (?:decided|agreed) (?:to|on|that|against)\b"),
        ("a choice", True, rf"\bwe(?:'ll| will) {_VERB}\b"),
        ("a choice", True, rf"\blet's (?:do|{_VERB})\b"),
        ("a choice", True, r"\bgo with (?:option|plan|variant|alternative|approach|proposal) \S"),
    )
)
"""What it is a sign of, whether words that weigh undo it, and how it reads in lower case."""

_AGREED = re.compile(r"agreed(?: ?[:,\u2013\u2014-]| (?:to|on|that|against)\b)")

_WEIGHING = re.compile(
    r"\b(?:should|shall|could|would|might|maybe|perhaps|if|whether|unless|until|when|once|suggest"
    r"|propose|proposal|how about|what about|consider|wonder|not|never|nobody|who|he|she|they"
    r"|said|says|wrote)\b|n't\b"
)
_SPLIT = re.compile(r"(?<=[.!?])\s+|\n")
_LOGGED = re.compile(r"\bd-[0-9]{6,16}\b")
_CURLY = str.maketrans({0x2019: "'", 0x2013: "-", 0x2014: "-"})  # apostrophe and dashes
_WORD = re.compile(r"[a-z][a-z0-9_-]{4,40}")
_COMMON = frozenset((
    "about", "actually", "after", "agreed", "anyway", "because", "before", "decided", "decision",
    "instead", "never", "option", "should", "still", "their", "there", "these", "those", "using",
    "where", "which", "would",
))  # fmt: skip

_NOISE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "a status report",
        re.compile(
            r"^(?:all )?(?:[0-9]+(?:/[0-9]+)? )?(?:unit )?tests? (?:now )?(?:are |is )?"
            r"(?:pass|passed|passes|passing|green)\b|^(?:the )?(?:build|ci|pipeline) (?:is |has )?"
            r"(?:now )?(?:complete|completed|done|green|passed|passes|passing)\b"
            r"|^(?:task|work) (?:\S+ )?(?:is )?(?:complete|completed|done|finished)\b"
            r"|^(?:status|progress)(?: update| report)?(?::|$)"
        ),
    ),
    (
        "a greeting",
        re.compile(r"^(?:hello|hi|hey|thanks|thank you|good (?:morning|evening))\b(?! \S+ing\b)"),
    ),
    ("a question", re.compile(r"\?$")),
    (
        "who does what",
        re.compile(r"^(?:i'll|i will|i am|i'm|\S+ (?:takes|will take|picks up|works on)) "),
    ),
    ("debugging", re.compile(r"^(?:still )?(?:investigating|debugging|looking (?:at|into)) ")),
)
_CHOOSES = re.compile(
    r"\b(?:instead of|rather than|not|because|accept\w*|trade-?off|decided|chose)\b"
)


class Passage(NamedTuple):
    """A message that sounds like a decision: which, its author, the sign found, the sentence.

    ``more`` counts others close after it. ``fresh``: fewer than ``BEHIND`` messages followed, so
    the Scribe may still log it.
    """

    seq: int
    channel: str
    number: int
    handle: str
    sign: str
    sentence: str
    more: int = 0
    fresh: bool = False


class Noise(NamedTuple):
    """An entry of the log that reads like no decision, and like what instead."""

    seq: int
    id: str
    title: str
    like: str


def may_need_advice(text: str) -> bool:
    """Whether a message may hold a sign: most do not, and are not looked at again.

    Every sign has one of these texts in it. (Written out: a loop costs three times as much, and
    this is asked of every message; an expression, twice.)
    """
    low = text.lower()
    return (
        "let's" in low
        or "we'll" in low
        or "we will" in low
        or "deci" in low
        or "go with" in low
        or "accept" in low
        or "anyway" in low
        or "scope" in low
        or "mvp" in low
        or "ing from" in low
        or "\u2019" in low  # another apostrophe
        or ("agreed" in low and _AGREED.search(low) is not None)
    )


def sign_for_advice(text: str) -> tuple[str, str] | None:
    """Of what a message is a sign, and its sentence; None where it commits to nothing.

    >>> sign_for_advice("I looked at both. We'll use file-based events, not sockets.")
    ('a choice', "We'll use file-based events, not sockets.")
    >>> sign_for_advice("Should we use sockets? Maybe we'll use files.")
    """
    quoted = False
    for line in _SPLIT.split(text[:MAX_TEXT]):
        sentence = line.strip()[:MAX_SENTENCE]
        if sentence.startswith("```"):
            quoted = not quoted
        if quoted or line[:1] in (">", "|", "$", "\t") or line.rstrip().endswith("?"):
            continue
        low = sentence.lower().translate(_CURLY)
        if _LOGGED.search(low):
            return None  # who names a decision by its id speaks of the log
        for name, weighed, expression in _SIGNS:
            match = expression.search(low)
            if match and not (weighed and _WEIGHING.search(low, 0, match.end())):
                return name, sentence
    return None


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _COMMON


class _Log:
    """What was decided, as far as it settles passages: where it refers to, and when it came."""

    def __init__(self, source: Source) -> None:
        rows = source.db.execute("SELECT seq FROM pieces WHERE id IS NOT NULL ORDER BY seq")
        self.source = source
        self.seqs = [seq for (seq,) in rows]
        self.places: dict[tuple[str, int], int] = {}  # the last decision that refers to a line
        for seq, body in _bodies(source, self.seqs):
            refs = body.get("refs")
            for ref in refs if isinstance(refs, list) else ():
                if not isinstance(ref, dict):
                    continue
                channel, number, line = ref.get("channel"), ref.get("index"), ref.get("line")
                if isinstance(channel, str) and isinstance(number, int):
                    self.places[channel, number] = seq
                elif isinstance(line, int):  # of one by line alone, as the file was
                    name = str(ref.get("file")).rpartition("/")[2].removesuffix(".chat")
                    sql = "SELECT max(stop) FROM archives WHERE channel = ? AND seq < ?"
                    first = source.db.execute(sql, (name, seq)).fetchone()[0] or 0
                    self.places[name, first + line - HEADER_LINES - 1] = seq

    def settles(self, passage: Passage, last: int) -> bool:
        """Whether a later decision refers to it, or was logged soon after of the same words."""
        near = range(passage.number - NEAR, passage.number + NEAR + 1)
        if any(self.places.get((passage.channel, line), -1) > passage.seq for line in near):
            return True
        after = bisect_right(self.seqs, passage.seq)
        soon = self.seqs[after : after + BEHIND]
        words = _words(passage.sentence)
        for seq in soon:
            body = _body(self.source, seq) if seq <= last else {}
            said = _words(f"{body.get('title', '')} {body.get('rationale', '')}")
            if words and len(words & said) >= min(SHARED, len(words)):
                return True
        return False


def _bodies(source: Source, seqs: Iterable[int]) -> Iterator[tuple[int, dict[str, object]]]:
    """Each entry's number and body, many fetched at once."""
    rest = iter(seqs)
    while part := list(islice(rest, TOGETHER)):
        found = source.bodies(part)
        for seq in part:
            yield seq, found[seq] if seq in found else _body(source, seq)


def _body(source: Source, seq: int) -> dict[str, object]:
    try:
        return source.body(seq)
    except (LookupError, ValueError, TypeError):
        return {}


def advise_on_missed(
    source: Source, seqs: Iterable[int], quiet: Iterable[str]
) -> Iterator[Passage]:
    """Passages that sound like a decision and have no entry near them, each channel's in order.

    Those that stand close together in a channel are one. ``seqs`` are the messages to look at, in
    order; messages of the handles ``quiet``, as the Scribe's own, are passed over.
    """
    log: _Log | None = None
    nobody = {handle.casefold() for handle in quiet}
    held: dict[str, Passage] = {}
    for seq, body in _bodies(source, seqs):
        content, handle, number = body.get("text"), str(body.get("handle")), body.get("index")
        text = content.get("text") if isinstance(content, dict) else None
        if not isinstance(text, str) or handle.casefold() in nobody:
            continue  # a longer text is a report
        sign = sign_for_advice(text)
        if sign is None or not isinstance(number, int):
            continue
        passage = Passage(seq, str(body.get("channel")), number, handle, *sign)
        log = log or _Log(source)
        sql = "SELECT seq FROM lines WHERE channel = ? AND number = ?"
        row = source.db.execute(sql, (passage.channel, number + BEHIND)).fetchone()
        last = None if row is None else int(row[0])  # None: the chat is shorter
        if log.settles(passage, 2**62 if last is None else last):
            continue
        before = held.get(passage.channel)
        if before is not None and passage.number - before.number <= NEAR:
            held[passage.channel] = before._replace(more=before.more + 1)
            continue
        if before is not None:
            yield before
        held[passage.channel] = passage._replace(fresh=last is None)
    yield from held.values()


def advised_handles(source: Source) -> set[str]:
    """Handles whose messages decide nothing: the Scribe records, Pythia advises, systems report."""
    scribes = {handle for (handle,) in source.db.execute("SELECT scribe FROM team")}
    return {"scribe", "pythia", "system", *scribes}


def advise_on_noise(source: Source) -> Iterator[Noise]:
    """Entries of the log that read like no decision; a change of a status is always one."""
    rows = source.db.execute(
        "SELECT seq, id, title FROM pieces"
        " WHERE id IS NOT NULL AND status = 'decided' AND supersedes IS NULL AND made IS NULL"
        " ORDER BY seq"
    )
    for seq, id_, title in rows.fetchall():
        low = title[:MAX_SENTENCE].strip().lower().translate(_CURLY)
        like = next((name for name, expression in _NOISE if expression.search(low)), None)
        if like is None:
            continue
        body = _body(source, seq)
        if not _CHOOSES.search(f"{title} {body.get('rationale', '')}"[:MAX_TEXT].lower()):
            yield Noise(seq, id_, title, like)
