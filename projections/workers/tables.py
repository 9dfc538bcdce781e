"""Workers that tripod runs: tables of their states and runs, and the files ``workers/<name>.md``.

The task file is a projection that its worker may append to. While its state does not change, the
file stays as the worker left it; the next change of state renders it anew: task and state from the
ledger, the findings from what the worker wrote. A state that the file claims is the worker's claim
alone (spec: nbs-compat C10, 10). The table ``agents`` has the runs of agents: a coordinator starts
from it, also one that replaces a killed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tripod.ledger import Entry
from tripod.projections.layout import WORKER
from tripod.projections.projection import File, Op, Projection, Source

FOLDER = WORKER.folder
MODE = WORKER.mode

STEPS = {
    "worker.spawned": "pending",
    "worker.continued": "pending",
    "worker.running": "running",
    "worker.escalated": "escalated",
    "worker.dismissed": "dismissed",
}
"""The state that each kind brings; that of ``worker.ended`` stands in its body."""

_SPAWNED = "INSERT OR IGNORE INTO workers VALUES (?, ?, ?, 'pending', 1, ?, '', '', NULL, NULL)"
_CONTINUED = (
    "UPDATE workers SET state = 'pending', open = 1, changed = ?2, completed = '' WHERE name = ?1"
)
_RUNNING = (
    "UPDATE workers SET state = 'running', changed = ?2,"
    " started = CASE started WHEN '' THEN ?3 ELSE started END WHERE name = ?1"
)
_CHANGED = (
    "UPDATE workers SET state = ?3, changed = ?2,"
    " completed = CASE completed WHEN '' THEN ?4 ELSE completed END WHERE name = ?1"
)
_ENDED = _CHANGED.replace("changed = ?2,", "changed = ?2, open = 0,")
_NOTED = "UPDATE workers SET noted = ?2, mode = ?3 WHERE name = ?1"


class Workers(Projection):
    """The tables of workers that tripod runs and their steps, and their task files."""

    name = "workers"  # as that of ``TeamFiles``: to people it is one
    version = 1
    tables = ("workers", "worker_steps")
    ddl = """
CREATE TABLE workers (
    name TEXT PRIMARY KEY,
    slug TEXT NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    open INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    started TEXT NOT NULL,
    completed TEXT NOT NULL,
    noted INTEGER,
    mode INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX workers_open ON workers (name) WHERE open = 1;
CREATE TABLE worker_steps (
    seq INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    spawn TEXT,
    event TEXT
) STRICT;
CREATE INDEX worker_steps_name ON worker_steps (name);
"""
    kinds = frozenset((*STEPS, "worker.ended", "worker.written"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row a worker, and one row a step of its life."""
        body, seq = entry.data, entry.seq
        if entry.kind == "worker.written":
            name = worker_of_path(body["path"])
            mode = body["observed"].get("mode", MODE)
            return (("workers", _NOTED, (name, seq, mode), name),)
        name = body["name"]
        state = STEPS.get(entry.kind) or body["state"]
        row = (seq, name, entry.kind, state, body.get("spawn"), body.get("event"))
        step: Op = ("worker_steps", "INSERT INTO worker_steps VALUES (?, ?, ?, ?, ?, ?)", row, name)
        time = entry.at[:19].replace("T", " ")
        if entry.kind == "worker.spawned":
            return (("workers", _SPAWNED, (name, body["slug"], seq, seq), name), step)
        if entry.kind == "worker.continued":
            return (("workers", _CONTINUED, (name, seq), name), step)
        if entry.kind == "worker.running":
            return (("workers", _RUNNING, (name, seq, time), name), step)
        sql = _ENDED if entry.kind == "worker.ended" else _CHANGED
        return (("workers", sql, (name, seq, state, time), name), step)

    def touched(self, entry: Entry) -> Iterable[str]:
        """Its task file."""
        if entry.kind == "worker.written":
            return (entry.data["path"],)
        return (f"{FOLDER}/{entry.data['name']}.md",)

    def paths(self, source: Source) -> Iterator[str]:
        """Task files of workers that we run, by name."""
        rows = source.db.execute("SELECT name FROM workers ORDER BY name")
        return (f"{FOLDER}/{name}.md" for (name,) in rows)

    def render(self, source: Source, path: str) -> File | None:
        """A task file: as its worker left it, or anew since its state changed."""
        name = worker_of_path(path)
        columns = "slug, seq, state, changed, started, completed, noted, mode"
        sql = f"SELECT {columns} FROM workers WHERE name = ?"
        row = source.db.execute(sql, (name,)).fetchone() if name else None
        if row is None:
            return None
        from tripod.projections.workers import format as workers_format  # for few commands

        slug, seq, state, changed, started, completed, noted, mode = row
        task = source.content(source.body(seq)["task"]).decode()
        log = workers_format.EMPTY_LOG
        if noted is not None:
            data = source.content(source.body(noted)["content"])
            left = workers_format.parse_worker(data)
            # It may have appended to a file that showed an earlier state than the ledger had.
            sql = "SELECT 1 FROM worker_steps WHERE name = ? AND state = ? AND seq < ? LIMIT 1"
            row = source.db.execute(sql, (worker_of_path(path), left.state, noted)).fetchone()
            if noted > changed and (left.state == state or row is None):
                return File(data, mode)
            log = workers_format.worker_log_below(data, slug, task) or log
        text = workers_format.WorkerText(state, started, completed, task, log, slug)
        return File(workers_format.format_worker(text), MODE if mode is None else mode)

    def log(self, source: Source, path: str, data: bytes) -> str:
        """What stands in a task file's log; ``data`` are its bytes."""
        from tripod.projections.workers import format as workers_format

        sql = "SELECT slug, seq FROM workers WHERE name = ?"
        row = source.db.execute(sql, (worker_of_path(path),)).fetchone()
        if row is None:
            return workers_format.parse_worker(data).log
        task = source.content(source.body(row[1])["task"]).decode()
        return workers_format.worker_log_below(data, row[0], task)


WORKERS = Workers()


def worker_of_path(path: str) -> str:
    """The name of the worker whose task file a path would be; '' for any other path."""
    folder, _, name = path.rpartition("/")
    return name.removesuffix(".md") if folder == FOLDER and name.endswith(".md") else ""


_REQUESTED = "INSERT OR IGNORE INTO agents VALUES (?, ?, ?, ?, ?, 'requested', NULL, NULL)"
_STARTED = (
    "UPDATE agents SET state = 'started', started = ?2 WHERE spawn = ?1 AND state = 'requested'"
)
_AGENT_ENDED = (
    "UPDATE agents SET state = ?3, ended = ?2 WHERE spawn = ?1"
    " AND state IN ('requested', 'started')"
)


_ISOLATED = ("agent.isolated", "pythia.isolated")


class Agents(Projection):
    """The tables of agent runs, from request to end, and of how far each was isolated."""

    name = "agents"
    version = 2
    tables = ("agents", "isolations")
    ddl = """
CREATE TABLE agents (
    spawn TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    subject TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    started INTEGER,
    ended INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_errand ON agents (role, subject, attempt);
CREATE TABLE isolations (
    spawn TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    level TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
    kinds = frozenset(
        ("agent.requested", "agent.started", "agent.ended", "agent.abandoned", *_ISOLATED)
    )

    def fold(self, entry: Entry) -> Iterable[Op]:
        """One row a run; ``state`` is requested, started, ended or abandoned, and then stays."""
        body = entry.data
        spawn = body["spawn"]
        if entry.kind in _ISOLATED:
            isolation = (spawn, entry.seq, body["level"])
            sql = "INSERT OR IGNORE INTO isolations VALUES (?, ?, ?)"
            return (("isolations", sql, isolation, spawn),)
        if entry.kind == "agent.requested":
            row = (spawn, body["role"], body["subject"], body["attempt"], entry.seq)
            return (("agents", _REQUESTED, row, spawn),)
        if entry.kind == "agent.started":
            return (("agents", _STARTED, (spawn, entry.seq), spawn),)
        return (("agents", _AGENT_ENDED, (spawn, entry.seq, entry.kind.partition(".")[2]), spawn),)


AGENTS = Agents()
