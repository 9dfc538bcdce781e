"""Finds readings of the chat in what a reviewer printed, or a worker that is one. Pure.

What is judged are the calls in a log, a task or a stream, each by the paths that it opens, as in a
recorded session. The files of every worker that is Pythia by name or task are searched, whether
tripod or another tool ran it. A log shows what was printed, not what was done: it can show a
breach, and cannot show that there was none.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tripod.ledger import CHAT, EVENTS, LOGS
from tripod.ledger import WORKERS as FOLDER
from tripod.projections.team.tables import FILES
from tripod.projections.workers.format import parse_worker
from tripod.projections.workers.tables import WORKERS
from tripod.verify.check import Evidence
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.terminal import (
    CWD,
    calls_in_line,
    calls_in_stream,
    stream_value,
    without_terminal_codes,
    words_of_call,
)
from tripod.verify.sessions.calls import opened_by_call
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Call, SessionRecord, strings_of
from tripod.verify.sessions.jsonl import session_records
from tripod.verify.sessions.programs import ShellReading
from tripod.verify.sessions.readers import READERS, program_of, read_session
from tripod.verify.sessions.shell import resolved

_WILD = "\ufffd"
"""What stands for the part of a name that a wildcard stands for."""

_SECRET = (
    "*.chat", "*.chat.*", ".nbs/chat", ".nbs/record", ".nbs/events/**", "events/processed",
    "*chat-message*.event", "*chat-mention*.event", "*chat-query*.event", "*chat-interrupt*.event",
    "*human-input*.event", f"events/{_WILD}", f"events/*{_WILD}*.event", "ledger.db*",
    ".git/tripod", "refs/tripod", "refs/tripod-remotes",
)  # fmt: skip
_ALLOWED = (
    "config.yaml",
    "*pythia-checkpoint*",
    "*-decision-logged-*",
    "processed/*pythia-checkpoint*",
)
"""What Pythia may read in a folder of events; of those that were handled, the checkpoints alone."""

_SIGNS = ("chat", "nbs", "record", "events", "ledger", "tripod", "human-input")
"""What a text has where it may name anything of that; a line without it is not looked at."""

_LONG = 4096  # characters from which on nothing is a path
_MAGIC = re.compile(r"[*?\[\]{}]+")
_PARTED = re.compile(r"[;&|\n]")
_UNTOLD = frozenset(("tool", "mcp", "script", "subagent"))
"""Channels of calls whose texts tell what they do, and not their paths."""


class ChatRule:
    """What counts as a reading of the chat in a team that keeps some folders elsewhere.

    ``places`` are those folders, as paths from the team directory by what they hold. ``never`` has
    the globs of what Pythia may not read.

    >>> rule = ChatRule({"chat": "../talk"})
    >>> rule.is_broken_by("$ head talk/a.md"), rule.is_broken_by("> Read(src/talk.py)")
    (True, False)
    """

    def __init__(self, places: Mapping[str, str] | None = None) -> None:
        elsewhere = {
            place.removeprefix("../").strip("/").casefold(): front.partition("/")[0]
            for front, place in (places or {}).items()
            if not front.startswith(f"{LOGS}/")  # what lies beside a log is nobody's secret
        }
        names = [name for name in elsewhere if name not in (CHAT, EVENTS, ".", "..", "")]
        queues = [".nbs/events", EVENTS, *(name for name in names if elsewhere[name] == EVENTS)]
        but = [f"{queue}/{name}" for queue in queues for name in _ALLOWED]
        self.never = NeverRule([*_SECRET, *(f"{name}/**" for name in names)], but)
        self._sign = re.compile("|".join(map(re.escape, (*_SIGNS, *names))), re.IGNORECASE)

    def readings_in(self, line: str) -> Iterator[str]:
        """Each reading that a line of a log or of a stream shows, as people write it."""
        value = stream_value(without_terminal_codes(line))
        if value is not None:
            yield from self.readings_in_stream(value)
        elif self.is_broken_by(line):
            yield line.strip()

    def readings_in_stream(self, value: Any) -> Iterator[str]:
        """Each call in a JSON value that is a reading."""
        for call in filter(self.is_broken_in, calls_in_stream(value)):
            yield f"{call.tool}({' '.join(strings_of(call.input))})"

    def readings_in_session(self, text: str) -> Iterator[str]:
        """Each file that a recorded session shows was put into the context without a call."""
        records = list(session_records(text.encode("utf-8", "replace").splitlines(keepends=True)))
        first = next((one.value for one in records if isinstance(one, SessionRecord)), {})
        program = program_of(first)
        if program is not None:
            session = SessionExposures(self.never, ProtectedText())
            for item in read_session(READERS[program](), records):
                session.add(item)
            for one in session.found:
                if one.call is None and one.sure:
                    yield f"{one.channel}({one.named})"

    def is_broken_by(self, line: str) -> bool:
        """Whether a line of a log shows a call that reads what Pythia may not see."""
        if self._sign.search(line) is None and "\x1b" not in line:
            return False
        return any(map(self.is_broken_in, calls_in_line(without_terminal_codes(line))))

    def is_broken_in(self, call: Call) -> bool:
        """Whether a call reads what Pythia may not see."""
        if call.channel in ("names", "edit"):
            return False  # it shows no text
        if call.channel in _UNTOLD:
            texts = (part for text in strings_of(call.input) for part in _SENTENCES.split(text))
            told = call.channel == "subagent"
            return any(
                self.is_broken_by(one) or (told and tells_to_read_chat(one, self)) for one in texts
            )
        reading = opened_by_call(call)
        if self._is_opened(reading, call.cwd):
            return True
        return bool(reading.opaque) and call.command is not None and self._is_part(call.command)

    def _is_part(self, command: str) -> bool:
        """Whether a part of a command that is not understood as a whole reads what it names."""
        # A script in a text that follows is a part of the command that runs it.
        text = command.replace("\n", " ") if "<<" in command else command
        for part in filter(self._sign.search, _PARTED.split(text)):
            for call in calls_in_line(part):
                reading = opened_by_call(call)
                words = set(words_of_call(call.command or "")) if reading.opaque else ()
                named = (resolved(word, CWD) for word in words if self._sign.search(word))
                if self._is_opened(reading, CWD) or any(map(self._hits, named)):
                    return True
        return False

    def _is_opened(self, reading: ShellReading, cwd: str) -> bool:
        return any(self._hits(one.path, recursive=one.recursive) for one in reading.opened) or any(
            self._hits(resolved(one.named, cwd)) for one in reading.also
        )

    def places_in(self, text: str) -> Iterator[tuple[int, int]]:
        """Where paths that Pythia may not see begin and end in a text."""
        for word in _WORD.finditer(text):
            if self._hits(resolved(word[0].rstrip("."), CWD)):
                yield word.span()

    def _hits(self, path: str, *, recursive: bool = False) -> bool:
        """Whether Pythia may not see a path; a wildcard in it may stand for any name."""
        if len(path) > _LONG or self._sign.search(path) is None:
            return False
        path = _MAGIC.sub(_WILD, path).casefold()
        below = (path, f"{path}/{_WILD}", f"{path}/chat/{_WILD}") if recursive else (path,)
        return any(map(self.never.hits, below))


_USUAL = ChatRule()


def shows_reading_of_chat(line: str) -> bool:
    """Whether a line of a log shows a reading of the chat in a team with the usual folders."""
    return _USUAL.is_broken_by(line)


# Tasks -------------------------------------------------------------------------------------------

_POST = re.compile(r"\b(?:nbs-chat|tripod\s+chat)\s+(?:send|warn|error)\b[^;&|\n]*")
_OURS = re.compile(r"\b(?:nbs-(?:chat|bus)|tripod)\s[^;&|\n]*")
_WORD = re.compile(r"[^\s,:;'\"`()\[\]{}<>|&=]+")
_THE_CHAT = re.compile(r"\bthe\s+(?:whole\s+|entire\s+|raw\s+|live\s+)?chat\b", re.IGNORECASE)
_TOLD = re.compile(
    r"\b(?:read|search|scan|grep|cat|open|review|study|look\s+(?:at|through|into)|check|go\s+through)\b",
    re.IGNORECASE,
)
_OTHER_VERB = re.compile(
    r"\b(?:post|send|write|publish|append|put|report|reply|answer)\b|,\s*then\b", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|never|no|without|avoid|forbidden|nor)\b|n't\b", re.IGNORECASE)

_SENTENCE = 4000  # characters that one word of denial may deny
_OVERLAP = 1000


def tells_to_read_chat(sentence: str, rule: ChatRule = _USUAL) -> bool:
    """Whether a sentence of a task tells the reviewer to read the chat.

    A very long one is judged in parts that overlap: a "not" in it denies what stands near.
    """
    text = _POST.sub("", sentence)
    starts = range(0, max(len(text), 1), _SENTENCE)
    return any(_told(rule, text[max(0, start - _OVERLAP) : start + _SENTENCE]) for start in starts)


def _told(rule: ChatRule, text: str) -> bool:
    if _NOT.search(text):
        return False
    if any(map(rule.is_broken_by, _OURS.findall(text))):
        return True
    mentions = (match.span() for match in _THE_CHAT.finditer(text))
    places = sorted([*rule.places_in(text), *mentions])
    number, stop, at = 0, -1, 0
    while (verb := _TOLD.search(text, at)) is not None:
        end = verb.end()
        while number < len(places) and places[number][0] < end:
            number += 1
        if number == len(places):
            return False
        stop = stop if stop >= end else _find(text, ";", end)
        begin, after = places[number]
        if begin >= stop:
            at = stop
        elif _OTHER_VERB.search(text[end:begin]):
            at = after
        else:
            return True
    return False


def _find(text: str, what: str, at: int) -> int:
    found = text.find(what, at)
    return len(text) if found < 0 else found


# Pythia workers ---------------------------------------------------------------------------------

_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")


class ReviewerWorker(NamedTuple):
    """A worker that is Pythia: the path and the entry of its task file.

    ``told`` is what it was told to do, each text with its entry; ``ours``: we ran its program.
    """

    path: str
    seq: int
    name: str
    told: tuple[tuple[int, str], ...]
    ours: bool


def reviewer_workers(evidence: Evidence) -> Iterator[ReviewerWorker]:
    """Workers that are Pythia by their name, or by what they were told to do."""
    ours = dict(evidence.query("SELECT name, seq FROM workers"))
    found = [
        ReviewerWorker(f"{FOLDER}/{name}.md", seq, name, tuple(_orders(evidence, name)), ours=True)
        for name, seq in ours.items()
    ]
    for path, seq in evidence.query("SELECT path, seq FROM files WHERE class = 'worker'"):
        name = path.rpartition("/")[2].removesuffix(".md")
        if name not in ours:
            task = parse_worker(_bytes(evidence, path)).task
            found.append(ReviewerWorker(path, seq, name, ((seq, task),), ours=False))
    for worker in sorted(found):
        called = [worker.name, *(text for _, text in worker.told)]
        if called[0].lower().startswith("pythia") or any("pythia" in t.lower() for t in called):
            yield worker


def _orders(evidence: Evidence, name: str) -> Iterator[tuple[int, str]]:
    """What a worker that we ran was told: its task, and each message that it went on with."""
    sql = (
        "SELECT seq FROM worker_steps WHERE name = ?"
        " AND kind IN ('worker.spawned', 'worker.continued') ORDER BY seq"
    )
    for (seq,) in evidence.query(sql, name):
        body = evidence.body(seq)
        try:
            data = evidence.source.content(body["task" if "task" in body else "message"])
        except evidence.unreadable:
            continue  # erased, or of another shape: the ledger's checks name that
        yield seq, data.decode("utf-8", "replace")


def _bytes(evidence: Evidence, path: str) -> bytes:
    try:
        file = FILES.render(evidence.source, path)
    except evidence.unreadable:
        return b""
    return b"" if file is None else file.data


def breaches(
    evidence: Evidence, worker: ReviewerWorker
) -> tuple[int, list[tuple[str, str, str, int]]]:
    """How many logs there were, and each reading of the chat that the worker's files show.

    A reading is given in words, with where it stands, the line, and the entry that brought it.
    """
    name, rule = worker.name, ChatRule(evidence.places)
    message = f"the task of {name} tells the reviewer to read the chat"
    found = [
        (message, worker.path, sentence, seq)
        for seq, text in worker.told
        for sentence in _SENTENCES.split(text)
        if tells_to_read_chat(sentence, rule)
    ]
    found += [
        (f"the command line of {name} reads the chat", f"entry {seq}", line, seq)
        for seq, line in _command_lines(evidence, worker)
        if rule.is_broken_by(line)
    ]
    found += [
        (f"{name} read the chat", worker.path, reading, seq)
        for seq, text in _noted(evidence, worker)
        for line in text.split("\n")
        for reading in rule.readings_in(line)
    ]
    logs = 0
    front = worker.path.removesuffix(".md")
    for path in (f"{front}.log", f"{front}.err.log") if worker.ours else (f"{front}.log",):
        data = _bytes(evidence, path)
        # The file may have more of the same: of a worker that runs, or of a log too large to keep.
        there = (evidence.file(path) or b"") if worker.ours else b""
        data = there if there.startswith(data) else data
        logs += bool(data)
        grown, newest = _growth(evidence, path)
        old = data[:grown].count(b"\n")
        for number, line in enumerate(data.split(b"\n"), 1):
            for reading in rule.readings_in(line.decode("utf-8", "replace")):
                at = newest if old < number and newest is not None else worker.seq
                found.append((f"{name} read the chat", f"{path}:{number}", reading, at))
    return logs, found


def _noted(evidence: Evidence, worker: ReviewerWorker) -> Iterator[tuple[int, str]]:
    """What it wrote into its task file, and the entry that holds it."""
    if not worker.ours:
        yield worker.seq, parse_worker(_bytes(evidence, worker.path)).log
        return
    sql = "SELECT noted FROM workers WHERE name = ? AND noted IS NOT NULL"
    for (seq,) in evidence.query(sql, worker.name):
        try:
            data = evidence.source.content(evidence.body(seq)["content"])
            yield seq, WORKERS.log(evidence.source, worker.path, data)
        except evidence.unreadable:
            continue


def _command_lines(evidence: Evidence, worker: ReviewerWorker) -> Iterator[tuple[int, str]]:
    """The command lines by which we ran it, as a log would show them."""
    if not worker.ours:
        return
    sql = "SELECT seq FROM agents WHERE role = 'worker' AND subject = ? ORDER BY seq"
    for (seq,) in evidence.query(sql, worker.name):
        try:
            order = json.loads(evidence.source.content(evidence.body(seq)["spec"]))
        except evidence.unreadable:
            continue
        except RecursionError:
            continue
        argv = order.get("argv") if isinstance(order, dict) else None
        if isinstance(argv, list):
            yield seq, shlex.join(map(str, argv))


def _growth(evidence: Evidence, log: str) -> tuple[int, int | None]:
    """How many bytes a log had at adoption, and the entry that holds what it has now.

    Lines after those bytes were written after adoption.
    """
    rows = evidence.query("SELECT seq FROM files WHERE path = ?", log)
    newest: int | None = rows[0][0] if rows else None
    if newest is None or evidence.adopted(newest):
        return 2**62, newest
    if evidence.ledger is None or evidence.adoption is None:
        return 0, newest
    last = evidence.ledger.last_seq(stream=f"files/{log}", stop=evidence.adoption)
    size = None if last is None else evidence.body(last).get("size")
    return size if type(size) is int else 0, newest
