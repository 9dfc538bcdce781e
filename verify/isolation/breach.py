"""Finds commands and tool calls that read the chat, in a log, a task or a stream of events. Pure.

A line of a log shows a command or a tool call as people and agents write them; a line of a stream
is a JSON object that may hold such calls. The files of every worker that is Pythia by name or task
are searched, whether tripod or another tool ran it. A log shows what was printed, not what was
done: it can show a breach, and cannot show that there was none.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from tripod.ledger import LOGS
from tripod.ledger import WORKERS as FOLDER
from tripod.projections.team.tables import FILES
from tripod.projections.workers.format import parse_worker
from tripod.projections.workers.tables import WORKERS
from tripod.verify.check import Evidence
from tripod.verify.sessions.items import strings_of

# A pattern here never begins or ends with a repetition that the text may start at every character,
# and two repetitions never stand around something that may be missing: a stranger writes the lines,
# and one of a megabyte must cost what a megabyte of prose costs (tests/deep/verify/test_linear.py).
_STYLE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]")
_POST = re.compile(r"\b(?:nbs-chat|tripod\s+chat)\s+(?:send|warn|error)\b[^;&|\n]*")
_COMMAND = re.compile(
    r"\b(?:nbs-chat|tripod\s+chat)\s+(?:read|search|poll|export)\b"
    r"|\btripod\s+show\s+(?:chat|events|entries)\b"
    r"|\btripod\s+(?:log|query|diff)\b"
)
_BUS = re.compile(r"\b(?:nbs-bus|tripod\s+bus)\s+read\b")
_QUOTING = re.compile(r"chat-m|chat-q|chat-i|human-input")
_READER = re.compile(
    r"\b(?:Read|Grep|Glob|Search|View|LS|Fetch)\(|\b(?:cat|less|more|head|tail|grep|rg|ag|sed|awk|"
    r"strings|base64|python3?|perl|ruby|node|cp|dd|xxd|od|sqlite3|vim?|nano|bat|cut|sort|tac|nl|"
    r"git\s+(?:show|cat-file|archive|grep|log|diff|checkout|restore|worktree|bundle|clone))\s"
)
_PARTED = re.compile(r"[;&|\n]")
_TOKEN = re.compile(r"\S+")
_PLACE = re.compile(
    r"\.chat\b|\.nbs/(?:chat|record)\b|\bevents/(?P<queue>processed\b|\*)"
    r"|\.git/tripod\b|\brefs/tripod(?:-remotes)?/"
    r"|(?P<event>chat-(?:message|mention))|\bledger\.db\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\w.-]*")
_PATH = re.compile(r"[\w./~*-]*")
_THE_CHAT = re.compile(r"\bthe\s+(?:whole\s+|entire\s+|raw\s+|live\s+)?chat\b", re.IGNORECASE)
_ALLOWED = "pythia-checkpoint"  # an event that Pythia may read
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
_NESTED = 4  # a call within the input of a call is looked at as one, so deep


def without_terminal_codes(text: str) -> str:
    """A text without the sequences that command a terminal."""
    return _STYLE.sub("", text)


def places_elsewhere(places: dict[str, str]) -> list[tuple[re.Pattern[str], str]]:
    """How people write of the folders that a team keeps elsewhere, and their usual names."""
    named = [
        (place.removeprefix("../").strip("/"), front)
        for front, place in places.items()
        if not front.startswith(f"{LOGS}/")  # what lies beside a log is nobody's secret
    ]
    return [
        (re.compile(rf"(?<![\w./~-])(?:[\w.~-]*/)*{re.escape(name)}(?=/)"), f".nbs/{front}")
        for name, front in named
        if name not in (front, ".", "..")
    ]


def with_usual_places(text: str, elsewhere: list[tuple[re.Pattern[str], str]]) -> str:
    """A text as it would stand there if the team's folders were at their usual places."""
    for pattern, usual in elsewhere:
        text = pattern.sub(usual, text)
    return text


def shows_reading_of_chat(line: str) -> bool:
    """Whether a line of a log shows a command or tool call that reads what Pythia may not see."""
    text = _POST.sub("", without_terminal_codes(line))
    return _commands(text) or _reads(text)


def tells_to_read_chat(sentence: str) -> bool:
    """Whether a sentence of a task tells the reviewer to read the chat.

    A very long one is judged in parts that overlap: a "not" in it denies what stands near.
    """
    text = _POST.sub("", sentence)
    starts = range(0, max(len(text), 1), _SENTENCE)
    return any(_told(text[max(0, start - _OVERLAP) : start + _SENTENCE]) for start in starts)


def _told(text: str) -> bool:
    if _NOT.search(text):
        return False
    if _commands(text):
        return True
    mentions = ((*match.span(), match.start()) for match in _THE_CHAT.finditer(text))
    places = sorted([*_places(text), *mentions], key=itemgetter(2))
    number, stop, at = 0, -1, 0
    while (verb := _TOLD.search(text, at)) is not None:
        end = verb.end()
        while number < len(places) and places[number][2] < end:
            number += 1
        if number == len(places):
            return False
        stop = stop if stop >= end else _find(text, ";", end)
        begin, after, start = places[number]
        if start >= stop:
            at = stop
        elif _OTHER_VERB.search(text[end : max(end, begin)]):
            at = after
        else:
            return True
    return False


def _commands(text: str) -> bool:
    """Whether one of our commands stands in a text that reads the chat, or events that quote it."""
    if _COMMAND.search(text):
        return True
    stop = -1
    for match in _BUS.finditer(text):
        if match.end() > stop:  # the first of a line sees all of it
            stop = _find(text, "\n", match.end())
            if _QUOTING.search(text, match.end(), stop):
                return True
    return False


def _reads(text: str) -> bool:
    """Whether, in one command, something that reads stands in front of a place of the chat."""
    readers = [match.end() for match in _READER.finditer(text)]
    parted: list[int] | None = None
    for _, _, start in _places(text) if readers else ():
        number = bisect_right(readers, start)
        if number:
            parted = [m.start() for m in _PARTED.finditer(text)] if parted is None else parted
            nearest = readers[number - 1]
            if bisect_left(parted, nearest) == bisect_left(parted, start):
                return True
    return False


def _places(text: str) -> Iterator[tuple[int, int, int]]:
    """Places of the chat: the beginning of the word, the end of the path, and the place itself."""
    for token in _TOKEN.finditer(text):
        begin, end = token.span()
        allowed = path = name = event = -1
        for match in _PLACE.finditer(text, begin, end):
            after = match.end()
            if match["queue"] is not None:
                allowed = allowed if allowed >= 0 else text.rfind(_ALLOWED, begin, end)
                if allowed >= after:
                    continue
            elif match["event"] is not None:
                if after > name:
                    name = _end(_NAME, text, after)
                    event = text.rfind(".event", after, name)
                if event < after:
                    continue
            path = path if path >= after else _end(_PATH, text, after)
            yield begin, path, match.start()


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _find(text: str, what: str, at: int) -> int:
    found = text.find(what, at)
    return len(text) if found < 0 else found


def logged_objects_in(text: str) -> Any:
    """A JSON object, or a list that holds one, which a text is; None where it is neither.

    >>> logged_objects_in(' [{"a": 1}]'), logged_objects_in("[1]"), logged_objects_in("[a]")
    ([{'a': 1}], None, None)
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = value if isinstance(value, list) else [value]
    return value if any(isinstance(one, dict) for one in listed) else None


def tool_calls_in(line: str) -> tuple[list[str], list[str]] | None:
    """The texts of a line of a stream, and the tool calls in it, as a log would show them.

    None where it is no such line.

    >>> call = {"type": "tool_use", "name": "Read", "input": {"file_path": "a.chat"}}
    >>> tool_calls_in(json.dumps([call]))
    (['tool_use', 'Read', 'a.chat'], ['Read(a.chat)'])
    """
    value = logged_objects_in(line)
    if value is None:
        return None
    calls: list[str] = []
    todo = [(value, 0)]
    while todo:
        one, within = todo.pop()
        if isinstance(one, list):
            todo += ((inner, within) for inner in reversed(one))
        elif isinstance(one, dict):
            if one.get("type") == "tool_use" and isinstance(one.get("name"), str):
                if within == _NESTED:
                    continue  # its texts stand in the call around it
                calls.append(f"{one['name']}({' '.join(strings_of(one.get('input')))})")
                within += 1
            todo += ((inner, within) for inner in reversed(one.values()))
    return list(strings_of(value)), calls


# Pythia workers ---------------------------------------------------------------------------------

_CHAT_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")


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
    name, elsewhere = worker.name, places_elsewhere(evidence.places)

    def reads_chat(line: str) -> bool:
        return shows_reading_of_chat(with_usual_places(line, elsewhere))

    message = f"the task of {name} tells the reviewer to read the chat"
    found = [
        (message, worker.path, sentence, seq)
        for seq, text in worker.told
        for sentence in _CHAT_SENTENCE.split(text)
        if tells_to_read_chat(with_usual_places(sentence, elsewhere))
    ]
    found += [
        (f"the command line of {name} reads the chat", f"entry {seq}", line, seq)
        for seq, line in _command_lines(evidence, worker)
        if reads_chat(line)
    ]
    found += [
        (f"{name} read the chat", worker.path, line.strip(), seq)
        for seq, text in _noted(evidence, worker)
        for _, line in _shown(text.split("\n"))
        if reads_chat(line)
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
        lines = (line.decode("utf-8", "replace") for line in data.split(b"\n"))
        for number, text in _shown(lines):
            if reads_chat(text):
                at = newest if old < number and newest is not None else worker.seq
                found.append((f"{name} read the chat", f"{path}:{number}", text.strip(), at))
    return logs, found


def _shown(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines of a log with their numbers; of a stream of JSON lines the calls, as a log has them."""
    for number, line in enumerate(lines, 1):
        calls = tool_calls_in(without_terminal_codes(line))
        for text in [line] if calls is None else calls[1]:
            yield number, text


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
            for line in " ".join(map(str, argv)).split("\n"):
                yield seq, line


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
