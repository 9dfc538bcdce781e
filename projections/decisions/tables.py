"""The decision logs: the table of their pieces, ``scribe/log.md`` and others, and their archives.

A team has one log or several: the seeds name ``log.md``, the original's later tools name a log
after its chat (``live-log.md`` for ``live.chat``). Decisions are numbered from 1 in each log; ids
are unique over all logs of the team.

Source: spec nbs-compat B10, D; seeds: nbs-scribe "Log Format". The file is its header and, one
after the other, its pieces; ``grep -c "^### D-"`` on it equals the decisions that the ledger has in
it, because a title or field with a line break is refused before it gets here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from tripod.ledger import Entry
from tripod.projections.decisions import format as log_format
from tripod.projections.decisions.format import DecisionText
from tripod.projections.layout import LIVE, LOG_FILE
from tripod.projections.projection import File, Op, Projection, Source, Tables

MODE = LOG_FILE.mode

_PIECE = "INSERT INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SPLIT = (
    "UPDATE pieces SET file = ?1 WHERE seq IN"
    " (SELECT seq FROM pieces WHERE file = ?2 ORDER BY seq LIMIT ?3)"
)


class DecisionLog(Projection):
    """The tables of logs and their pieces, and the files of decision logs and archives."""

    name = "decisions"
    version = 3
    tables = ("pieces", "logs")
    ddl = """
CREATE TABLE pieces (
    seq INTEGER PRIMARY KEY,
    file TEXT NOT NULL,
    log TEXT NOT NULL,
    id TEXT,
    number INTEGER,
    title TEXT,
    status TEXT,
    supersedes TEXT,
    made TEXT
) STRICT;
CREATE INDEX pieces_id ON pieces (id);
CREATE INDEX pieces_file ON pieces (file);
CREATE INDEX pieces_log ON pieces (log, number);
CREATE INDEX pieces_made ON pieces (made) WHERE made IS NOT NULL;
CREATE TABLE logs (
    file TEXT PRIMARY KEY,
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    mode INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
    kinds = frozenset(("log.begun", "decision.logged", "log.noted", "log.rotated"))
    folder = "scribe"

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Keep one row a piece; ``id`` and ``number`` are null where it is no decision.

        ``file`` is where the piece stands now, ``log`` the log that it was written into. ``made``
        is null for our own, else the replica and the id by which its maker knows a decision.
        """
        body = entry.data
        log = _log_of(body)
        if entry.kind == "decision.logged":
            row = (entry.seq, log, log, body["id"], body["number"], body["title"], body["status"])
            more = (body.get("supersedes"), body.get("made"))
            return (("pieces", _PIECE, (*row, *more), None),)
        if entry.kind == "log.noted":
            return (("pieces", _PIECE, (entry.seq, log, log, *[None] * 6), None),)
        mode = body.get("observed", {}).get("mode", MODE)
        # A peer begins no log anew that is here.
        put = f"INSERT OR {'IGNORE' if 'peer' in body else 'REPLACE'} INTO logs VALUES (?, ?, ?, ?)"
        if entry.kind == "log.begun":
            return (("logs", put, (log, log, entry.seq, mode), None),)
        return (
            ("pieces", _SPLIT, (body["archive"], log, body["count"]), None),
            ("logs", put, (body["archive"], log, entry.seq, mode), None),
            ("logs", "UPDATE logs SET seq = ? WHERE file = ?", (entry.seq, log), None),
        )

    def touched(self, entry: Entry) -> Iterable[str]:
        """The log; a split also writes the archive."""
        live = f"{self.folder}/{_log_of(entry.data)}"
        if entry.kind == "log.rotated":
            return (f"{self.folder}/{entry.data['archive']}", live)
        return (live,)

    def live(self, source: Source) -> list[str]:
        """The names of the files that are appended to, one a log, in order."""
        rows = source.db.execute("SELECT file FROM logs WHERE file = log ORDER BY file")
        return [name for (name,) in rows]

    def paths(self, source: Source) -> Iterator[str]:
        """All logs and their archives, by name."""
        rows = source.db.execute("SELECT file FROM logs ORDER BY file")
        return (f"{self.folder}/{name}" for (name,) in rows)

    def render(self, source: Source, path: str) -> File | None:
        """A whole log file."""
        if not path.startswith(f"{self.folder}/"):
            return None
        name = path.removeprefix(f"{self.folder}/")
        row = source.db.execute("SELECT mode FROM logs WHERE file = ?", (name,)).fetchone()
        if row is None:
            return None
        return File(self.pieces(source, name, front=self.header(source, name)), row[0])

    def header(self, source: Source, name: str) -> bytes:
        """What stands in front of the first piece of a log file."""
        row = source.db.execute("SELECT seq FROM logs WHERE file = ?", (name,)).fetchone()
        body = source.body(row[0])
        key = "archive_header" if body.get("archive") == name else "header"
        return source.content(body[key])

    def pieces(self, source: Source, name: str, before: int = 2**62, front: bytes = b"") -> bytes:
        """``front``, and the bytes of the pieces of a log file, those of the entries ``before``."""
        sql = "SELECT seq FROM pieces WHERE file = ? AND seq < ? ORDER BY seq"
        whole = BytesIO()  # gives its bytes without another copy: a log may be large
        whole.write(front)
        for body in source.each_body_of(sql, name, before):
            whole.write(render_decision_piece(source, body))
        return whole.getvalue()

    def newest(self, source: Source, name: str, count: int) -> bytes:
        """The bytes of the ``count`` newest pieces of a log file."""
        newest = "SELECT seq FROM pieces WHERE file = ? ORDER BY seq DESC LIMIT ?"
        bodies = source.each_body_of(f"SELECT seq FROM ({newest}) ORDER BY seq", name, count)
        return b"".join(render_decision_piece(source, body) for body in bodies)


LOG = DecisionLog()


class Meaning(NamedTuple):
    """A decision that a text may mean: its id here, and what means it everywhere.

    ``whole`` is the replica and the id by which its maker knows it; None where that is this ledger.
    """

    id: str
    whole: str | None


def decisions_meant(db: Tables, text: str, replica: str | None = None) -> list[Meaning]:
    """The decisions that ``D-...`` or ``REPLICA/D-...`` means; ``replica`` is this ledger's name.

    A bare id means the decision that has it here, and each that has it at its maker. Where no
    decision has the name as it is, REPLICA may be the beginning of a replica's name.
    """
    front, slash, id_ = text.rpartition("/")
    if log_format.valid_decision_id(id_) is not None:
        return []
    if slash and front == replica:
        where, values = "id = ? AND made IS NULL", (id_,)
    elif slash:
        where, values = "made = ?", (text,)
    else:  # each half has an index of its own; an OR of them is looked up in none
        theirs = "SELECT seq FROM pieces WHERE made IS NOT NULL AND made LIKE '%/' || ?1"
        where = f"seq IN (SELECT seq FROM pieces WHERE id = ?1 UNION {theirs})"
        values = (id_,)
    sql = f"SELECT id, made FROM pieces WHERE {where} GROUP BY id ORDER BY min(seq)"
    found = [Meaning(*row) for row in db.execute(sql, values)]
    if found or not front or replica is None:
        return found
    alike = ((one, one.whole or f"{replica}/{one.id}") for one in decisions_meant(db, id_))
    return [one for one, whole in alike if whole.startswith(front) and whole.endswith(f"/{id_}")]


def _log_of(body: dict[str, Any]) -> str:
    """The name of the log that a body is about (ValueError: no file of the folder is named so)."""
    if "file" not in body:
        return LIVE
    name = body["file"]
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not a name")  # noqa: TRY004 - it is the value that is wrong
    problem = log_format.decision_log_name_problem(name)
    if problem is not None:
        raise ValueError(problem)
    return name


def render_decision_piece(source: Source, body: dict[str, Any]) -> bytes:
    """Render one piece from the body of its entry (``raw`` where it was written differently)."""
    if "peer" in body:
        return _merged_piece(source, body)
    if "raw" in (observed := body.get("observed", {})):
        return source.content(observed["raw"])
    return log_format.format_decision(decision_text_of(body)).encode()


def _merged_piece(source: Source, body: dict[str, Any]) -> bytes:
    """A piece of a peer, as it stands behind ours: with a rule in front and a line break behind.

    A decision that bears another id here has its maker's behind the title.
    """
    if "title" in body:
        shown = decision_text_of(body)
        if "id" in body["peer"]["said"]:
            shown = shown._replace(title=f"{shown.title} [{body['made']}]")
        try:
            return log_format.format_decision(shown).encode()
        except ValueError:  # a field that other programs wrote, and that we do not
            pass
    raw = source.content(body["observed"]["raw"]).removeprefix(b"\n---\n\n").rstrip(b"\n")
    if "title" in body and "id" in body["peer"]["said"]:
        said, ours = body["peer"]["said"]["id"], f"### {body['id']}\\1 [{body['made']}]"
        raw = re.sub(f"(?m)^### {said}(.*)$".encode(), ours.encode(), raw, count=1)
    return b"\n---\n\n%b\n" % raw


def decision_text_of(body: Mapping[str, Any]) -> DecisionText:
    """The fields of a decision as they stand in the file, from the body of its entry."""
    fields = {name: body[name] for name in DecisionText._fields if name != "supersedes"}
    return DecisionText(**fields, supersedes=body.get("supersedes"))
