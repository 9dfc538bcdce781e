"""Each chat reference of a decision leads to a message that was there when it was logged.

**What it proves.** ``live.chat:~L342`` means physical line 342 of that file at the time of
recording, approximately: it resolves when a message existed within 50 lines of it then (the
distance can be set). A message that was taken in after the decision was not there, whatever time it
claims; of what was taken in together, the claimed times decide. Lines that were split off into
archives later are counted in. A reference made through ``tripod scribe log`` is bound to its
message by number, entry and leaf hash, and checked exactly: the line that it names must have been
that message's then. A decision logged through us whose references are not bound is a failure.

**Why it matters.** The reference is the only way from a decision back to what was said. References
rot when a chat is rotated, and a made-up one looks like any other.

**What a finding looks like.** Named apart: ``is beyond the end of``, ``names no chat``, ``is
later than the decision``, ``is malformed``, ``is bound to no message``, ``has no chat reference``;
as a warning, ``none of the participants nearby``.

A decision that was logged with ``tripod scribe log --no-ref REASON`` is no finding: the reason
is in its entry, ``tripod scribe show`` prints it, and the report counts it as ``no-ref``. So is
one that ``tripod adopt-log`` took from a file of another form: its entry names that file.

**What to do.** A decision cannot be changed. ``tripod scribe log`` refuses a reference that leads
nowhere; such a one came from another program, or the ledger was altered: find its writer, so that
it is the last. Read the chat around the place (``tripod show chat``) and log the decision anew,
with ``--supersedes`` and the right ``--ref``: who reads the log finds the way then, and the finding
is settled. (It is not where two decisions have the old one's id.) Where there is nothing to refer
to, ``tripod accept`` records who accepts that, and why. What an approximate reference cannot prove:
that the message near it is the one that was meant. What was wrong before adoption is told as a
warning.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from tripod.projections.chat.format import HEADER_LINES, parse_chat_time, parse_header
from tripod.projections.chat.tables import CHAT
from tripod.projections.decisions.format import NONE_YET, parse_decision_refs
from tripod.verify.check import (
    TABLES,
    Evidence,
    Finding,
    Findings,
    Outcome,
    Severity,
    not_applicable,
    outcome,
)

NAME = "chat-refs-resolve"
REQUIRED = True
NEEDS = (TABLES,)
HELP = (
    "the decision cannot be changed: log it anew with --supersedes and the right --ref, which "
    "settles this, or accept it (`tripod accept`)"
)
_REWRITTEN = "its leaf hash is another now"
_NOWHERE = "leads to no message of that time"  # as the chat grows, what is beyond its end is later


class ChatFileSpan(NamedTuple):
    """Where a file's first message stood in its channel, and where the file ended."""

    channel: str
    first: int
    stop: int


class Citing(NamedTuple):
    """A decision as far as its references go; ``time`` is the second in its id."""

    seq: int
    id: str
    time: int
    body: dict[str, Any]

    @property
    def refs(self) -> list[dict[str, Any]]:
        """The references that the entry holds."""
        return [ref for ref in self.body.get("refs", ()) if isinstance(ref, dict)]

    @property
    def ours(self) -> bool:
        """Whether it was logged through us, and not read from a file of other programs."""
        return "observed" not in self.body


class Channels(NamedTuple):
    """What happened to the files of chats: their splits, and the lines that they forgot.

    ``splits`` gives for each channel its archives: the second of the split, its entry, the first
    line left. ``forgotten`` gives the lines that its file was told to forget, each with the entry.
    """

    splits: dict[str, list[tuple[int, int, int]]]
    forgotten: dict[str, list[tuple[int, int]]]


def judge(evidence: Evidence) -> Outcome:
    """Judge the rule that this module's docstring states."""
    found = Findings()
    refs = bound = decisions = settled = excused = 0
    successors: _Successors | None = None
    channels = read_channels(evidence)
    for seq, id_ in evidence.source.db.execute(
        "SELECT seq, id FROM pieces WHERE id IS NOT NULL AND made IS NULL ORDER BY seq"
    ):  # those of peers are judged in their own replicas
        decisions += 1
        decision = Citing(seq, id_, int(id_[2:]), evidence.body(seq))
        excused += _is_excused(decision)
        listed = decision.refs
        refs += len(listed)
        bound += sum("leaf" in ref for ref in listed)
        problems = _problems(evidence, decision, channels)
        if any(one.severity == "failure" for one in problems):
            successors = successors or _Successors(evidence, channels)
            rewritten = any(one.fault is None for one in problems)
            if not rewritten and successors.settle(decision):
                settled += 1
                continue
        found.extend(problems)
    if not decisions:
        return not_applicable(NAME, "no decision was logged")
    seen = {"decisions": decisions, "refs": refs, "bound": bound}
    seen["unresolved"] = found.of("failure")
    if settled:
        seen["settled by a successor"] = settled
    if excused:
        seen["no-ref"] = excused
    return outcome(NAME, found, seen)


def read_channels(evidence: Evidence) -> Channels:
    """The splits of all channels, and what their files were told to forget."""
    forgotten: dict[str, list[tuple[int, int]]] = {}
    for channel, number, seq in evidence.query(
        "SELECT channel, number, gone FROM lines WHERE gone IS NOT NULL ORDER BY channel, number"
    ):
        forgotten.setdefault(channel, []).append((number, seq))
    return Channels(_splits(evidence), forgotten)


def _problems(evidence: Evidence, decision: Citing, channels: Channels) -> list[Finding]:
    """What is wrong with the references of one decision."""
    found = _text(evidence, decision, decision.refs)
    for ref in decision.refs:
        shown = f"{ref.get('file')}:~L{ref.get('line')}"
        if "leaf" in ref or "seq" in ref:
            problem = bound_problem(evidence, decision.seq, ref, channels)
            if problem is not None:
                # An entry that is another now was rewritten: nobody accepts or settles that.
                fault = None if problem.endswith(_REWRITTEN) else ""
                found.append(_finding(evidence, decision, f"{shown} {problem}", fault=fault))
            continue
        if evidence.has_ledger and decision.seq < evidence.size and decision.ours:
            message = f"{shown} is bound to no message, and was made through us"
            found.append(_finding(evidence, decision, message, "failure"))
        found += _approximate(evidence, decision, ref, shown, channels)
    return found


class _Successors:
    """Says of a decision whether the one that superseded it leads to the chat in its place."""

    def __init__(self, evidence: Evidence, channels: Channels) -> None:
        self._evidence, self._channels = evidence, channels
        self._first: dict[str, Citing] = {}  # what superseded an id first
        # Where two decisions have one id, nobody knows which of them was superseded.
        self._twice = {
            id_
            for (id_,) in evidence.query(
                "SELECT id FROM pieces WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"
            )
        }
        for seq, id_, status, target in evidence.query(
            "SELECT seq, id, status, supersedes FROM pieces"
            " WHERE id IS NOT NULL AND supersedes IS NOT NULL ORDER BY seq"
        ):
            if status not in ("reversed", "mitigated"):
                one = Citing(seq, id_, int(id_[2:]), {})
                self._first.setdefault(target, one)

    def settle(self, decision: Citing) -> bool:
        """Whether a later decision supersedes it, and all references of that one are right."""
        evidence, by = self._evidence, self._first.get(decision.id)
        if by is None or by.seq <= decision.seq or decision.id in self._twice:
            return False
        if evidence.has_ledger and by.seq >= evidence.size > decision.seq:
            return False  # no entry holds it yet
        by = by._replace(body=evidence.body(by.seq))
        if "peer" in by.body:  # its references are to messages that are here
            return bool(by.refs)
        problems = _problems(evidence, by, self._channels) if by.refs else None
        return problems is not None and all(one.severity != "failure" for one in problems)


def _splits(evidence: Evidence) -> dict[str, list[tuple[int, int, int]]]:
    splits: dict[str, list[tuple[int, int, int]]] = {}
    for channel, seq, stop in evidence.query(
        "SELECT channel, seq, stop FROM archives ORDER BY seq"
    ):
        try:
            raw = evidence.source.content(evidence.body(seq)["header"])
            header = parse_header(raw)
            time = parse_chat_time(header.last_write) if header is not None else None
        except evidence.unreadable:
            time = None
        splits.setdefault(channel, []).append((time or 0, seq, stop))
    return splits


def _text(evidence: Evidence, decision: Citing, listed: list[dict[str, Any]]) -> list[Finding]:
    """What the field says, against what was read from it."""
    text = str(decision.body.get("chat_ref", ""))
    parsed, malformed = parse_decision_refs(text)
    problems = [f"the chat reference {part!r} is malformed" for part in malformed]
    if [(ref.file, ref.line) for ref in parsed] != [(r.get("file"), r.get("line")) for r in listed]:
        problems.append(f"the entry resolves other references than {text!r}")
    found = [_finding(evidence, decision, problem) for problem in problems]
    if not parsed and not malformed and not _is_excused(decision):
        message = f"it has no chat reference ({text or NONE_YET})"
        severity: Severity = "warning" if evidence.past(decision.seq) else "failure"
        found.append(_finding(evidence, decision, message, severity))
    return found


def _is_excused(decision: Citing) -> bool:
    """Whether who logged the decision gave a reason why it refers to no message."""
    is_told = decision.ours or "source" in decision.body  # an adopted one names its file
    return is_told and bool(decision.body.get("no_ref"))


def _approximate(
    evidence: Evidence, decision: Citing, ref: dict[str, Any], shown: str, channels: Channels
) -> Iterator[Finding]:
    """What is wrong with a reference by line; its message is one near it by a participant."""
    place = _place(evidence, decision, str(ref.get("file")), channels)
    if place is None:
        message = f"{shown} names no chat of this team"  # until somebody begins one of that name
        yield _finding(evidence, decision, message, fault=f"{shown} {_NOWHERE}")
        return
    number = place.first + int(ref["line"]) - HEADER_LINES - 1
    for gone, seq in channels.forgotten.get(place.channel, ()):
        if gone > number:
            break
        number += gone >= place.first and seq < decision.seq
    near = evidence.query(
        "SELECT handle, time, seq FROM lines WHERE channel = ? AND number BETWEEN ? AND ?"
        " AND handle IS NOT NULL ORDER BY number",
        place.channel,
        max(place.first, number - evidence.nearby),
        min(place.stop - 1, number + evidence.nearby),
    )
    # The order of entries decides: a line that was recorded after the decision was not in the file
    # yet, even if it claims an earlier time. Only the claimed times tell the order of lines and
    # decisions from before adoption, and of those that one append took in.
    at = evidence.at(decision.seq)
    then = {
        handle.casefold()
        for handle, time, seq in near
        if time <= decision.time
        and (seq < decision.seq or evidence.past(seq) or evidence.at(seq) == at)
    }
    text = str(decision.body.get("participants", ""))
    people = {name.strip().lstrip("@").casefold() for name in text.split(",")} - {"", NONE_YET}
    if not near:
        last = HEADER_LINES + place.stop - place.first
        message = f"{shown} is beyond the end of the file (line {last})"
        yield _finding(evidence, decision, message, fault=f"{shown} {_NOWHERE}")
    elif not then:
        message = f"{shown} is later than the decision"
        yield _finding(evidence, decision, message, fault=f"{shown} {_NOWHERE}")
    elif people and not people & then:
        message = f"{shown}: none of the participants nearby ({text})"
        yield _finding(evidence, decision, message, "warning")


def _place(
    evidence: Evidence, decision: Citing, file: str, channels: Channels
) -> ChatFileSpan | None:
    """Which lines of a channel the file showed when the decision was logged."""
    stem = file.rpartition("/")[2].removesuffix(".chat")
    folder = file.rpartition("/")[0].rpartition("/")[2]
    if f"{CHAT.folder}/{folder}" in evidence.places:  # a folder that was added
        stem = f"{folder}/{stem}"
    elif folder not in ("", CHAT.folder):
        kept_at = evidence.places.get(CHAT.folder, CHAT.folder)  # wherever the chats are kept
        if folder != kept_at.rpartition("/")[2]:
            return None
    if not file.endswith(".chat"):
        return None
    rows = evidence.query("SELECT channel, first, stop FROM archives WHERE archive = ?", stem)
    if rows:
        return ChatFileSpan(*rows[0])
    rows = evidence.query("SELECT lines FROM channels WHERE channel = ?", stem)
    if not rows:
        return None
    first = 0
    for time, seq, stop in channels.splits.get(stem, ()):
        if seq < decision.seq if decision.ours or not time else time <= decision.time:
            first = max(first, stop)
    return ChatFileSpan(stem, first, rows[0][0])


def bound_problem(
    evidence: Evidence,
    decision: int,
    ref: dict[str, Any],
    channels: Channels,
    *,
    placed: bool = False,
) -> str | None:
    """A reference of entry ``decision`` that names its message exactly: None, or what is wrong.

    One that was ``placed``, in the place of an entry of a peer, holds no leaf hash.
    """
    seq = ref.get("seq")
    if type(seq) is not int:
        return "is bound to no entry"
    if seq >= decision:
        return f"is later than the decision: it is bound to entry {seq}"
    rows = evidence.query(
        "SELECT channel, number FROM lines WHERE channel = ? AND number = ? AND seq = ?"
        " AND handle IS NOT NULL",
        ref.get("channel"),
        ref.get("index"),
        seq,
    )
    if not rows:
        message = f"message {ref.get('index')} of {ref.get('channel')}"
        return f"is bound to entry {seq}, which is not {message}"
    if not placed and evidence.leaf(seq) != ref.get("leaf"):
        return f"is bound to entry {seq} as it was: {_REWRITTEN}"
    channel, index = rows[0]
    file = str(ref.get("file"))
    first: int | None = None  # the first message that the file showed when it was logged
    if file == f"{channel}.chat":
        splits = channels.splits.get(channel, ())
        first = max((stop for _, split, stop in splits if split < decision), default=0)
    elif file.endswith(".chat"):
        rows = evidence.query(
            "SELECT first FROM archives WHERE archive = ? AND channel = ? AND seq < ?"
            " AND first <= ? AND stop > ?",
            file.removesuffix(".chat"),
            channel,
            decision,
            index,
            index,
        )
        first = int(rows[0][0]) if rows else None
    if first is None:
        return f"is bound to a message of {channel}: that is another file"
    gone = channels.forgotten.get(channel, [])
    gone = gone[bisect_left(gone, (first,)) : bisect_left(gone, (index,))]
    before = [number for number, by in gone if by < decision]
    line = index - first - len(before) + HEADER_LINES + 1
    return None if ref.get("line") == line else f"is bound to the message of line {line} then"


def _finding(
    evidence: Evidence,
    decision: Citing,
    message: str,
    severity: Severity | None = None,
    *,
    fault: str | None = "",
) -> Finding:
    said = f"{decision.id}: {message}"
    return evidence.finding(NAME, decision.seq, said, HELP, severity=severity, fault=fault)
