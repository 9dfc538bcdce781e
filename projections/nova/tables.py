"""Tables of Nova runs, and the files of each under ``nova/<run>/``.

The tables say which entries are a run's. Its state is folded from these by ``NovaRun``: no row
operation of one entry could tell what follows on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tripod.ledger import Entry, places
from tripod.projections.projection import File, Op, Projection, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tripod.projections.nova.run import NovaRun

KINDS = (
    "nova.opened", "nova.turn.recorded", "nova.turn.missed", "nova.converged",
    "nova.gate.decided", "nova.critique.decided", "nova.escalated", "human.decided",
    "nova.finalized", "checkpoint.named",
)  # fmt: skip
FOLDER, WORK_EFFORTS = places.NOVA, places.WORK_EFFORTS
TRANSCRIPT, DECISIONS, STATUS, EVENTS = NAMES = (
    "transcript.md", "decisions.md", "status.json", "events.ndjson",
)  # fmt: skip
_MODE = 0o644


class NovaRuns(Projection):
    """Runs, their entries, and named checkpoints; files of each run."""

    name = "nova"
    version = 2
    tables = ("nova_runs", "nova_entries", "checkpoints")
    ddl = """
CREATE TABLE nova_runs (
    run TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    ended INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE nova_entries (
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoints (
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    run TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
    kinds = frozenset(KINDS)

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Note whose entry it is, and that a run began or ended."""
        run, seq = entry.data["run"], entry.seq
        row = (run, seq, entry.kind, entry.actor)
        yield "nova_entries", "INSERT INTO nova_entries VALUES (?, ?, ?, ?)", row, f"{run} {seq}"
        if entry.kind == "nova.opened":
            sql = "INSERT OR IGNORE INTO nova_runs VALUES (?, ?, NULL)"
            yield "nova_runs", sql, (run, seq), run
        elif entry.kind == "nova.finalized":
            sql = "UPDATE nova_runs SET ended = coalesce(ended, ?) WHERE run = ?"
            yield "nova_runs", sql, (seq, run), run
        elif entry.kind == "checkpoint.named":
            sql = "INSERT OR IGNORE INTO checkpoints VALUES (?, ?, ?)"
            name = entry.data["name"]
            yield "checkpoints", sql, (name, entry.data["position"], run), name

    def touched(self, entry: Entry) -> Iterable[str]:
        """The files of its run."""
        return [f"{FOLDER}/{entry.data['run']}/{name}" for name in NAMES]

    def paths(self, source: Source) -> Iterator[str]:
        """The files of all runs; a decision where the run is over."""
        for run, ended in source.db.execute("SELECT run, ended FROM nova_runs ORDER BY run"):
            for name in NAMES:
                if name != DECISIONS or ended is not None:
                    yield f"{FOLDER}/{run}/{name}"

    def render(self, source: Source, path: str) -> File | None:
        """One file of a run."""
        folder, _, rest = path.partition("/")
        name, _, file = rest.partition("/")
        if folder != FOLDER or file not in NAMES:
            return None
        from tripod.projections.nova import files  # for commands that write a run's files

        rows = nova_entries_of(source, name)
        run = fold_nova_run(source, rows)
        if run is None or (file == DECISIONS and run.finalized is None):
            return None
        if file == TRANSCRIPT:
            text = files.render_transcript(run)
        elif file == STATUS:
            text = files.nova_json(files.nova_status(run))
        elif file == EVENTS:
            bodies = source.each_body([row.seq for row in rows])
            lines = zip(rows, bodies, strict=True)
            text = "".join(f"{files.nova_event(row.seq, row.kind, body)}\n" for row, body in lines)
        else:
            text = decision_of_run(source, run, rows)[0]
        return File(text.encode("utf-8", "replace"), _MODE)


NOVA = NovaRuns()


class NovaRow(NamedTuple):
    """An entry of a run: its number, its kind, who appended it."""

    seq: int
    kind: str
    actor: str


def decision_of_run(source: Source, run: "NovaRun", rows: Sequence[NovaRow]) -> tuple[str, int]:
    """The section of ``decisions.md`` of a run that is over, and the entry that ended it."""
    from tripod.projections.nova.files import render_nova_decision

    end = run.finalized or {}
    decision = source.content(end["decision"]) if "decision" in end else b""
    last = next(row.seq for row in rows if row.kind == "nova.finalized")
    return render_nova_decision(run, decision.decode("utf-8", "replace"), last), last


def work_effort_section_of(source: Source, name: str) -> tuple[str, bytes] | None:
    """The path of the decisions of a run's work effort, and its section there.

    None where the run has no work effort, or is not over.
    """
    rows = nova_entries_of(source, name)
    effort = source.body(rows[0].seq).get("config", {}).get("work_effort") if rows else None
    run = None if effort is None else fold_nova_run(source, rows)
    if run is None or run.finalized is None:
        return None
    from tripod.projections.nova.files import work_effort_section

    text, last = decision_of_run(source, run, rows)
    (ended,) = source.ledger.raw(last, last + 1)
    return f"{WORK_EFFORTS}/{effort}/{DECISIONS}", work_effort_section(text, ended.id)


def nova_entries_of(source: Source, run: str) -> list[NovaRow]:
    """The entries of a run."""
    sql = "SELECT seq, kind, actor FROM nova_entries WHERE run = ? ORDER BY seq"
    return [NovaRow(*row) for row in source.db.execute(sql, (run,))]


def fold_nova_run(source: Source, rows: Sequence[NovaRow]) -> "NovaRun | None":
    """Fold a run from its entries; None where the first of them does not begin one."""
    from tripod.projections.nova.run import NovaRun

    run: NovaRun | None = None
    bodies = source.each_body([row.seq for row in rows])
    for (seq, kind, actor), body in zip(rows, bodies, strict=True):
        if run is None:
            if kind != "nova.opened":
                return None
            run = NovaRun.begun(seq, body, source.content)
        else:
            run.apply(seq, kind, body, source.content, actor)
    return run
