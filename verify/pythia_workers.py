"""Workers that are Pythia by name or task, run by us or by any other tool: what their files show.

A log shows what was printed, not what was done: it can show a breach, never that there was none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from projections import FILES, WORKERS
from projections.formats.worker import parse_worker
from projections.projection import content_bytes
from projections.workers import FOLDER
from verify.chat_reads import as_usual, calls_in, plain, read_of_chat, told_to_read, usually
from verify.evidence import Evidence
from verify.rows import one
from verify.sources import RENDER_ERRORS

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")


class Pythia(NamedTuple):
    """A worker that is Pythia: the path and the entry of its task file.

    ``told`` is what it was told to do, each text with its entry; ``ours``: we ran its program.
    """

    path: str
    seq: int
    name: str
    told: tuple[tuple[int, str], ...]
    ours: bool


class Breach(NamedTuple):
    """A reading of the chat: in words, where it stands, the line, the entry that brought it."""

    message: str
    where: str
    line: str
    seq: int


def pythias(evidence: Evidence) -> Iterator[Pythia]:
    """Workers that are Pythia by their name, or by what they were told to do."""
    ours = dict(evidence.query("SELECT name, seq FROM workers"))
    found = [
        Pythia(f"{FOLDER}/{name}.md", seq, name, tuple(_orders(evidence, name)), ours=True)
        for name, seq in ours.items()
    ]
    for path, seq in evidence.query("SELECT path, seq FROM files WHERE class = 'worker'"):
        name = path.rpartition("/")[2].removesuffix(".md")
        if name not in ours:
            task = parse_worker(_bytes(evidence, path)).task
            found.append(Pythia(path, seq, name, ((seq, task),), ours=False))
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
            data = content_bytes(evidence.source, body["task" if "task" in body else "message"])
        except RENDER_ERRORS:
            continue  # erased, or of another shape: the ledger's checks name that
        yield seq, data.decode("utf-8", "replace")


def _bytes(evidence: Evidence, path: str) -> bytes:
    try:
        file = FILES.render(evidence.source, path)
    except RENDER_ERRORS:
        return b""
    return b"" if file is None else file.data


def logs_of(worker: Pythia) -> tuple[str, ...]:
    """Paths of what its program printed; programs of ours have their error output apart."""
    front = worker.path.removesuffix(".md")
    return (f"{front}.log", f"{front}.err.log") if worker.ours else (f"{front}.log",)


def breaches(evidence: Evidence, worker: Pythia) -> tuple[int, list[Breach]]:
    """How many logs there were, and each reading of the chat that the worker's files show."""
    name, elsewhere = worker.name, usually(evidence.places)
    found = [
        Breach(f"the task of {name} tells her to read the chat", worker.path, sentence, seq)
        for seq, text in worker.told
        for sentence in _SENTENCE.split(text)
        if told_to_read(as_usual(sentence, elsewhere))
    ]
    found += [
        Breach(f"the command line of {name} reads the chat", f"entry {seq}", line, seq)
        for seq, line in _command_lines(evidence, worker)
        if read_of_chat(as_usual(line, elsewhere))
    ]
    found += [
        Breach(f"{name} read the chat", worker.path, line.strip(), seq)
        for seq, text in _noted(evidence, worker)
        for _, line in _shown(text.split("\n"))
        if read_of_chat(as_usual(line, elsewhere))
    ]
    logs = 0
    for path in logs_of(worker):
        data = _log(evidence, worker, path)
        logs += bool(data)
        grown, newest = _growth(evidence, path)
        old = data[:grown].count(b"\n")
        lines = (line.decode("utf-8", "replace") for line in data.split(b"\n"))
        for number, text in _shown(lines):
            if read_of_chat(as_usual(text, elsewhere)):
                at = newest if old < number and newest is not None else worker.seq
                where = f"{path}:{number}"
                found.append(Breach(f"{name} read the chat", where, text.strip(), at))
    return logs, found


def _shown(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines of a log with their numbers; of a stream of JSON lines the calls, as a log has them."""
    for number, line in enumerate(lines, 1):
        calls = calls_in(plain(line))
        for text in [line] if calls is None else calls[1]:
            yield number, text


def _noted(evidence: Evidence, worker: Pythia) -> Iterator[tuple[int, str]]:
    """What it wrote into its task file, and the entry that holds it."""
    if not worker.ours:
        yield worker.seq, parse_worker(_bytes(evidence, worker.path)).log
        return
    sql = "SELECT noted FROM workers WHERE name = ? AND noted IS NOT NULL"
    for (seq,) in evidence.query(sql, worker.name):
        try:
            data = content_bytes(evidence.source, evidence.body(seq)["content"])
            yield seq, WORKERS.log(evidence.source, worker.path, data)
        except RENDER_ERRORS:
            continue


def _command_lines(evidence: Evidence, worker: Pythia) -> Iterator[tuple[int, str]]:
    """The command lines by which we ran it, as a log would show them."""
    if not worker.ours:
        return
    sql = "SELECT seq FROM agents WHERE role = 'worker' AND subject = ? ORDER BY seq"
    for (seq,) in evidence.query(sql, worker.name):
        order: Any = None
        try:
            order = json.loads(content_bytes(evidence.source, evidence.body(seq)["spec"]))
        except (*RENDER_ERRORS, ValueError, RecursionError):
            continue
        argv = order.get("argv") if isinstance(order, dict) else None
        if isinstance(argv, list):
            for line in " ".join(map(str, argv)).split("\n"):
                yield seq, line


def _log(evidence: Evidence, worker: Pythia, path: str) -> bytes:
    """A log: as it was kept, or as it stands there where that is all, or has more of the same."""
    kept = _bytes(evidence, path)
    if not worker.ours:
        return kept
    there = evidence.file(path) or b""  # of one that is at work, and of one too large to be kept
    return there if there.startswith(kept) else kept


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
