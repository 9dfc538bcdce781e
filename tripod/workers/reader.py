"""Reading about workers: their states, logs and findings, of those that other tools run too.

What we know of a worker of another tool is its files, and what stands in them is its own word.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from tripod.agents.jobs import newest, recorded, spool_of_job
from tripod.agents.spool import RUNNING, Spool
from tripod.errors import BadArgumentError, NotFoundError
from tripod.projections import FILES, WORKERS, UnreadableError, projected_content
from tripod.projections.workers.format import parse_worker
from tripod.projections.workers.tables import FOLDER, worker_of_path
from tripod.team.team import Team
from tripod.workers.writer import ROLE, judge_worker_name, logs_of, look_after

MAX_READ = 256 * 1024 * 1024
_STYLE = re.compile(
    rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]"
)
_LOOK_S = 1.0  # how often a watch asks for workers that began meanwhile


class About(NamedTuple):
    """A worker: its state, whether its program runs, size of its log (None: it has no log).

    ``ours`` says that we run it; of others the state is what its file says.
    """

    name: str
    state: str
    running: bool
    log: int | None
    ours: bool


def every(team: Team) -> list[About]:
    """All workers, by name."""
    ours = {name for (name,) in team.store.db.execute("SELECT name FROM workers")}
    paths = team.store.db.execute("SELECT path FROM files WHERE class = 'worker'")
    names = ours | {worker_of_path(path) for (path,) in paths}
    return [about(team, name) for name in sorted(names)]


def about(team: Team, name: str) -> About:
    """The state of one worker (NotFoundError: no such name)."""
    judge_worker_name(name)
    stat = team.disk.stat(logs_of(name)[0])
    size = None if stat is None else stat.size
    row = team.store.db.execute("SELECT state, open FROM workers WHERE name = ?", (name,))
    found = row.fetchone()
    if found is None:
        claimed = parse_worker(_task_file(team, name)[1]).state
        return About(name, claimed or "unknown", running=False, log=size, ours=False)
    run = newest(team.store.db, ROLE, name) if found[1] else None
    running = run is not None and spool_of_job(team, run.spawn).look().state == RUNNING
    return About(name, found[0], running, size, ours=True)


def _task_file(team: Team, name: str) -> tuple[str, bytes]:
    judge_worker_name(name)
    path = f"{FOLDER}/{name}.md"
    file = WORKERS.render(team.source, path) or FILES.render(team.source, path)
    if file is None:
        raise NotFoundError(f"no worker {name}: `tripod worker list` shows those that are there")
    return path, file.data


def findings(team: Team, name: str) -> str:
    """The findings that a worker wrote into its task file (NotFoundError: no such name)."""
    return WORKERS.log(team.source, *_task_file(team, name))


def answer(team: Team, name: str) -> str:
    """The answer of a worker's program when it last ended (NotFoundError: it has not)."""
    run = newest(team.store.db, ROLE, name)
    if run is None or run.state != "ended":
        raise NotFoundError(f"{name}: no program of a worker of this name has ended")
    return recorded(team, run).answer.text


def session(team: Team, name: str) -> str:
    """The program's own session (NotFoundError: we run no such worker, or it named no session)."""
    run = newest(team.store.db, ROLE, name)
    found = None if run is None or run.state != "ended" else recorded(team, run).answer.session
    if found is None:
        raise NotFoundError(f"{name}: its program named no session")
    return found


def named(team: Team, handle: str) -> str:
    """The name of a worker from its name or its handle (``parser`` for ``parser-a3f1``).

    A handle stands for the newest worker that has it. What is neither is returned as it is, for
    the caller to refuse.
    """
    row = team.store.db.execute(
        "SELECT name FROM workers WHERE name = ?1"
        " OR (length(name) = length(?1) + 5 AND substr(name, 1, length(?1) + 1) = ?1 || '-')"
        " ORDER BY name = ?1 DESC, seq DESC LIMIT 1",
        (handle,),
    ).fetchone()
    return handle if row is None else str(row[0])


def search(team: Team, name: str, pattern: str, context: int) -> Iterator[str]:
    """Lines of a worker's logs that match, with ``context`` lines around; ``--`` between groups.

    Raises:
        BadArgumentError: the pattern is no regular expression.
        NotFoundError: there is no log.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise BadArgumentError(f"{pattern!r} is no regular expression: {error}") from error
    judge_worker_name(name)
    logs = []
    for path in logs_of(name):
        try:
            log = team.disk.read(path, MAX_READ)
        except UnreadableError as error:
            raise NotFoundError(str(error)) from error
        kept = team.store.db.execute("SELECT seq FROM files WHERE path = ?", (path,)).fetchone()
        if log is None and kept is not None:  # one that is gone is read as it was kept
            log = projected_content(team.source, team.source.body(kept[0])["content"])
        if log is not None:
            logs.append(log)
    if not logs:
        raise NotFoundError(f"{name} has no log: `tripod worker list` shows who has")
    printed = False
    for data in logs:
        text = _STYLE.sub(b"", data).decode("utf-8", "replace")
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
        last = -1
        hits = [number for number, line in enumerate(lines) if wanted.search(line)]
        for hit in hits:
            first = max(last + 1, hit - context)
            if (printed and first > last + 1) or (printed and last < 0):
                yield "--"
            stop = min(len(lines), hit + context + 1)
            yield from lines[max(first, last + 1) : stop]
            printed, last = True, max(last, stop - 1)


def watch(team: Team, timeout_s: float | None = None) -> Iterator[About]:
    """Each worker whose program ends, as soon as it does, until none is at work any more.

    Ends early, with workers still at work, when the time is over.
    """
    until = inf if timeout_s is None else time.monotonic() + timeout_s
    over = threading.Semaphore(0)
    watched: set[str] = set()

    def wait(spool: Spool) -> None:
        spool.wait()
        over.release()

    while at_work := _at_work(team):
        for name in at_work:
            run = newest(team.store.db, ROLE, name)
            if run is not None and run.spawn not in watched:
                watched.add(run.spawn)
                # A thread for each: a lock can be waited for, or polled, but not several at once.
                spool = spool_of_job(team, run.spawn)
                threading.Thread(target=wait, args=(spool,), daemon=True).start()
        left = until - time.monotonic()
        if left <= 0:
            return
        if over.acquire(timeout=min(left, _LOOK_S)):
            look_after(team)
            still = _at_work(team)
            yield from (about(team, name) for name in at_work if name not in still)


def _at_work(team: Team) -> list[str]:
    rows = team.store.db.execute("SELECT name FROM workers WHERE open = 1 ORDER BY name")
    return [name for (name,) in rows]
