"""The task file of a worker: what it is to do, its state, and what it found. Pure.

::

    # Worker: parser

    ## Task

    Parse the grammar.

    ## Status

    State: running
    Started: 2026-02-12 14:00:00
    Completed:

    ## Log

    [Worker appends findings here]

A task may quote such a file, as the skills pasted into tasks do. So the status is the *last*
section of that name which has a state: the first would be the quoted one. The tips that the
original puts under ``## Tooling`` belong neither to the task nor to the log (spec: nbs-compat C5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tripod.projections import text as words

EMPTY_LOG = "[Worker appends findings here]"

_NAME = re.compile(r"[a-z0-9]+-(?:[0-9a-f]{4}|[0-9a-f]{8})")
_SLUG = re.compile(r"[a-z0-9]{1,54}")
_SECTION = re.compile(r"^## (Task|Tooling|Status|Log)[ \t]*\r?$", re.MULTILINE)
_TITLE = re.compile(r"^# Worker:(.*)$", re.MULTILINE)
_LOG = re.compile(r"^## Log[ \t]*\r?$", re.MULTILINE)
_FIELD = re.compile(r"^(State|Started|Completed):(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WorkerText:
    """A task file's parts as texts, ``''`` where one is missing; ``title`` is the worker's slug."""

    state: str
    started: str
    completed: str
    task: str
    log: str
    title: str = ""


def _head(title: str, task: str) -> str:
    return f"# Worker: {title}\n\n## Task\n\n{task}\n\n## Status\n"


def format_worker(worker: WorkerText) -> bytes:
    """Give the bytes of a task file, in the layout above."""
    completed = f"Completed: {worker.completed}" if worker.completed else "Completed:"
    return (
        f"{_head(worker.title, worker.task)}\n"
        f"State: {worker.state}\nStarted: {worker.started}\n{completed}\n\n"
        f"## Log\n\n{worker.log}\n"
    ).encode()


def parse_worker(data: bytes) -> WorkerText:
    """Read a task file; what is not there is ``''``, bytes that are not UTF-8 are replaced.

    The log runs to the end of the file, headings that the worker wrote into it included.
    """
    text = data.decode("utf-8", "replace")
    sections = [(match[1], match.start(), match.end()) for match in _SECTION.finditer(text)]
    ends = [*(start for _, start, _ in sections), len(text)][1:]
    fields: dict[str, str] = {}
    status = None
    for at in range(len(sections) - 1, -1, -1):
        name, _, start = sections[at]
        found = dict(_FIELD.findall(text, start, ends[at])) if name == "Status" else {}
        if "State" in found:
            fields, status = found, at
            break
    tasks = [end for name, _, end in sections[:status] if name == "Task"]
    if status is None:
        stops = [start for name, start, _ in sections if name != "Task"]
        logs = [end for name, _, end in sections if name == "Log"]
    else:
        # The tips stand between task and status; a heading before those is the task's own.
        stops = [start for name, start, _ in sections[:status][-1:] if name == "Tooling"]
        stops.append(sections[status][1])
        logs = [end for name, _, end in sections[status:] if name == "Log"]
    title = _TITLE.search(text, 0, sections[0][1] if sections else len(text))
    return WorkerText(
        state=fields.get("State", "").strip(),
        started=fields.get("Started", "").strip(),
        completed=fields.get("Completed", "").strip(),
        task=text[tasks[0] : (stops or [len(text)])[0]].strip() if tasks else "",
        log=text[logs[0] :].strip() if logs else "",
        title=title[1].strip() if title else "",
    )


def worker_log_below(data: bytes, title: str, task: str) -> str:
    """Give the log of a task file whose title and task are known, to the end of the file.

    It begins with the first heading of that name below the task: what the worker wrote there may
    hold a status of its own, with a state, which is the last in the file and begins nothing.
    """
    head = _head(title, task)
    text = data.decode("utf-8", "replace")
    found = _LOG.search(text, len(head)) if text.startswith(head) else None
    return parse_worker(data).log if found is None else text[found.end() :].strip()


def valid_worker_name(name: str) -> str | None:
    """Judge a worker's name, slug and four hex digits (or eight, as one spawner has it)."""
    good = _NAME.fullmatch(name) and words.text_size(name) <= 63
    return None if good else f"{name!r} is no worker's name such as parser-a3f1"


def valid_worker_slug(slug: str) -> str | None:
    """Judge the first part of a new worker's name: None, or the broken rule."""
    return None if _SLUG.fullmatch(slug) else "slug: 1 to 54 of a-z 0-9 are allowed"
