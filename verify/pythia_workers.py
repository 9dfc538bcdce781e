"""Workers that are Pythia by name or task, run by whichever tool: what their files show.

A log shows what was printed, not what was done: it can show a breach, never that there was none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from projections import FILES
from projections.formats.worker import parse_worker
from verify.chat_reads import as_usual, read_of_chat, told_to_read, usually
from verify.evidence import Evidence
from verify.rows import one

__all__ = ["breaches", "pythias"]

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")


def pythias(evidence: Evidence) -> Iterator[tuple[str, int, str]]:
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


def breaches(
    evidence: Evidence, path: str, name: str
) -> tuple[int, list[tuple[str, str, str, int | None]]]:
    """How many logs there were, and (message, where, line, entry) of each reading of the chat.

    The entry is the one that brought the line, where it is another than that of the task file.
    """
    found: list[tuple[str, str, str, int | None]] = []
    elsewhere = usually(evidence.places)
    log = path.removesuffix(".md") + ".log"
    worker = parse_worker(_bytes(evidence, path))
    found += [
        (f"the task of {name} tells her to read the chat", path, sentence, None)
        for sentence in _SENTENCE.split(worker.task)
        if told_to_read(as_usual(sentence, elsewhere))
    ]
    found += [
        (f"{name} read the chat", path, line.strip(), None)
        for line in worker.log.split("\n")
        if read_of_chat(as_usual(line, elsewhere))
    ]
    data = _bytes(evidence, log)
    grown, newest = _growth(evidence, log)
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.decode("utf-8", "replace")
        if len(found) < 20 and read_of_chat(as_usual(text, elsewhere)):
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
