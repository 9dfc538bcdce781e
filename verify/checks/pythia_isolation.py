"""Pythia judged without having read the chat: shown to be broken, or not to be told.

**What it proves.** Nothing in her favour yet. The task files and logs of workers are read for
commands and tool calls that read a chat, its archives, the events that quote it, or the ledger:
each such line is a breach. A log shows what was printed, not what was done, so it never makes
this check *clean*: without a kept transcript of her session the answer is *cannot tell*.

**Why it matters.** The reviewer is worth as much as her distance. She is given a shell, the chat is
readable, and nothing but a prompt keeps her from it.

**What a finding looks like.** ``pythia-a0d7 read the chat``, with the line of the log; ``the task
of pythia-a0d7 tells her to read the chat``. Posting to a chat is no reading of it.

**What to do.** Treat that assessment as one by an insider. For *cannot tell*: keep her transcripts,
or run her where she can reach nothing. About the time before adoption it changes no exit code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from projections import FILES
from projections.formats.worker import parse_worker
from verify.assessments import assessments
from verify.escape import shorten
from verify.evidence import Evidence
from verify.finding import Finding, Outcome, cannot_tell, not_applicable, outcome
from verify.rows import one

__all__ = ["NAME", "REQUIRED", "judge", "read_of_chat", "told_to_read"]

NAME = "pythia-isolation"
REQUIRED = True
HELP = "treat her assessment as one by an insider; let her see a snapshot of the decision log alone"

_STYLE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]")
_POST = re.compile(r"\b(?:nbs-chat|tripod\s+chat)\s+(?:send|warn|error)\b[^;&|\n]*")
_COMMAND = re.compile(
    r"\b(?:nbs-chat|tripod\s+chat)\s+(?:read|search|poll|export)\b"
    r"|\btripod\s+show\s+(?:chat|events|entries)\b"
    r"|\b(?:nbs-bus|tripod\s+bus)\s+read\b.*(?:chat-m|chat-q|chat-i|human-input)"
)
_PLACE = (
    r"(?:[\w./~*-]*\.chat\b|(?:\.nbs|[\w./~-]*/\.nbs)/(?:chat|record)\b[\w./*-]*"
    r"|[\w./~-]*\bevents/(?:processed\b|\*)(?!\S*pythia-checkpoint)[\w./*-]*"
    r"|[\w./~-]*chat-(?:message|mention)[\w.-]*\.event|[\w./~-]*\bledger\.db\b)"
)
_READER = (
    r"\b(?:Read|Grep|Glob|Search|View|LS|Fetch)\(|\b(?:cat|less|more|head|tail|grep|rg|ag|sed|awk|"
    r"strings|base64|python3?|perl|ruby|node|cp|dd|xxd|od|sqlite3|vim?|nano|bat|cut|sort|tac|nl)\s"
)
_READS = re.compile(rf"(?:{_READER})[^;&|\n]*?{_PLACE}")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")
_TOLD = re.compile(
    r"\b(?:read|search|scan|grep|cat|open|review|study|look\s+(?:at|through|into)|check|go\s+through)\b"
    rf"(?P<between>[^;]*?)(?:{_PLACE}|\bthe\s+(?:whole\s+|entire\s+|raw\s+|live\s+)?chat\b)",
    re.IGNORECASE,
)
_OTHER_VERB = re.compile(
    r"\b(?:post|send|write|publish|append|put|report|reply|answer)\b|,\s*then\b", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|never|no|without|avoid|forbidden|nor)\b|n't\b", re.IGNORECASE)


def judge(evidence: Evidence) -> Outcome:
    """See the module."""
    found: list[Finding] = []
    workers = logs = 0
    posted = past = 0
    for assessment in assessments(evidence):
        posted += 1
        past += evidence.past(assessment.seq)
    for path, seq, name in _pythias(evidence):
        workers += 1
        past += evidence.past(seq)
        has_log, breaches = _breaches(evidence, path, name)
        logs += has_log
        found += [
            Finding(
                NAME,
                message,
                where,
                (shorten(line),),
                HELP,
                evidence.severity(at),
                before_adoption=evidence.adopted(at),
                seq=at,
            )
            for message, where, line, at in (
                (message, where, line, seq if at is None else at)
                for message, where, line, at in breaches
            )
        ]
    if not posted and not workers:
        return not_applicable(
            NAME, "no assessment was posted, no Pythia was run", required=REQUIRED
        )
    seen = {"assessments": posted, "workers": workers, "logs": logs, "transcripts": 0}
    if found:
        return outcome(NAME, found[:40], dict(seen), required=REQUIRED)
    reason = (
        f"{posted} assessment{'s' * (posted != 1)}, no transcript of her sessions was kept; "
        f"{logs} log{'s' * (logs != 1)} and {workers} task file{'s' * (workers != 1)} show no "
        "reading of the chat, which proves nothing"
    )
    told = cannot_tell(NAME, reason, required=REQUIRED, past=past == posted + workers)
    told.coverage.update(seen)
    return told


def _pythias(evidence: Evidence) -> Iterator[tuple[str, int, str]]:
    """Task files of workers that are Pythia by their name, or by what their task says."""
    rows = evidence.query("SELECT path, seq FROM files WHERE class = 'worker' ORDER BY path")
    for path, seq in rows:
        name = path.rpartition("/")[2].removesuffix(".md")
        if name.lower().startswith("pythia") or "pythia" in _task(evidence, path).lower():
            yield path, seq, name


def _task(evidence: Evidence, path: str) -> str:
    return parse_worker(_bytes(evidence, path)).task


def _bytes(evidence: Evidence, path: str) -> bytes:
    try:
        file = FILES.render(evidence.source, path)
    except (LookupError, TypeError, ValueError):
        return b""
    return b"" if file is None else file.data


def _breaches(
    evidence: Evidence, path: str, name: str
) -> tuple[int, list[tuple[str, str, str, int | None]]]:
    """How many logs there were, and (message, where, line, entry) of each reading of the chat.

    The entry is the one that brought the line, where it is another than that of the task file.
    """
    found: list[tuple[str, str, str, int | None]] = []
    elsewhere = _elsewhere(evidence)
    log = path.removesuffix(".md") + ".log"
    worker = parse_worker(_bytes(evidence, path))
    found += [
        (f"the task of {name} tells her to read the chat", path, sentence, None)
        for sentence in _SENTENCE.split(worker.task)
        if told_to_read(_as_usual(sentence, elsewhere))
    ]
    found += [
        (f"{name} read the chat", path, line.strip(), None)
        for line in worker.log.split("\n")
        if read_of_chat(_as_usual(line, elsewhere))
    ]
    data = _bytes(evidence, log)
    grown, newest = _growth(evidence, log)
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.decode("utf-8", "replace")
        if len(found) < 20 and read_of_chat(_as_usual(text, elsewhere)):
            at = newest if data[:grown].count(b"\n") < number else None
            found.append((f"{name} read the chat", f"{log}:{number}", text.strip(), at))
    return int(bool(data)), found[:20]


def _growth(evidence: Evidence, log: str) -> tuple[int, int | None]:
    """How many bytes a log had at adoption, and the entry that holds what it has now.

    Lines behind those bytes were written after adoption, however old the rest is.
    """
    rows = evidence.query("SELECT seq FROM files WHERE path = ?", log)
    newest: int | None = rows[0][0] if rows else None
    if newest is None or evidence.adopted(newest):
        return 2**62, newest
    if evidence.db is None or evidence.team.adopted is None:
        return 0, newest
    sql = "SELECT max(seq) FROM entries WHERE seq < ? AND stream = ?"
    row = one(evidence.db, sql, (evidence.team.adopted, f"files/{log}"))
    size = None if row is None or row[0] is None else evidence.body(row[0]).get("size")
    return size if type(size) is int else 0, newest


def _elsewhere(evidence: Evidence) -> list[tuple[re.Pattern[str], str]]:
    """How people write of the folders that this team keeps elsewhere, and their usual names."""
    named = [(place.removeprefix("../").strip("/"), f) for f, place in evidence.places.items()]
    return [
        (re.compile(rf"(?<![\w./~-])(?:[\w.~-]*/)*{re.escape(name)}(?=/)"), f".nbs/{front}")
        for name, front in named
        if name != front
    ]


def _as_usual(text: str, elsewhere: list[tuple[re.Pattern[str], str]]) -> str:
    """A text as it would stand there if the team's folders were at their usual places."""
    for pattern, usual in elsewhere:
        text = pattern.sub(usual, text[:4000])
    return text


def read_of_chat(line: str) -> bool:
    """Whether a line of a log shows a command or tool call that reads what she may not see."""
    plain = _POST.sub("", _STYLE.sub("", line[:4000]))
    return bool(_COMMAND.search(plain) or _READS.search(plain))


def told_to_read(sentence: str) -> bool:
    """Whether a sentence of a task tells her to read the chat."""
    plain = _POST.sub("", sentence[:4000])
    if _NOT.search(plain):
        return False
    if _COMMAND.search(plain):
        return True
    return any(not _OTHER_VERB.search(match["between"]) for match in _TOLD.finditer(plain))
