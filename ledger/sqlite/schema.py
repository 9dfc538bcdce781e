"""The tables, triggers and migrations of the database. Only SQL: ``migrate_schema`` runs it.

Triggers refuse UPDATE, DELETE and any INSERT that is not the next entry (``INSERT OR REPLACE``
slips past update and delete triggers, so the insert triggers look at every unique column). They
guard against accident; against intent only the chain, the seals and the anchors help. The one
UPDATE and the one DELETE that pass are those of a redaction (``tripod.ledger.sqlite.store``), while
the newest entry is the ``redacted`` one that names what is erased.

``head.tables`` and ``head.files`` are the cursors of the projections: how many entries the tables
have folded and the files show. ``head.synced`` counts the entries whose files the disk is known to
have; the others' files are there until the host is started anew, and ``head.boot`` names the start
that they were written in (docs/decisions/0030). They are columns of the head's row because a page
of their own would cost every append; body, salt and signature record stand in the row of their
header because a table of their own costs a page of write-ahead log an append and a join an entry
read (docs/decisions/0005). Erasing a body leaves the record, and nothing changes it.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from tripod.ledger.errors import LedgerDamagedError

APPLICATION_ID = 0x74726970  # "trip", in the file's header: tells `file` and us what this is

_ENTRIES = """
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    stream TEXT NOT NULL,
    header BLOB NOT NULL,
    salt BLOB,
    body BLOB
) STRICT;
CREATE TABLE blobs (
    number INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE nodes (
    level INTEGER NOT NULL,
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (level, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE head (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    size INTEGER NOT NULL,
    origin TEXT NOT NULL,
    last TEXT NOT NULL,
    at TEXT NOT NULL,
    stack BLOB NOT NULL,
    tables INTEGER NOT NULL DEFAULT 0,
    files INTEGER NOT NULL DEFAULT 0
) STRICT;
"""

_GUARDS = """
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: entries are never changed'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: entries are never deleted'); END;
CREATE TRIGGER entries_next_only BEFORE INSERT ON entries
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM entries)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: only the next seq can be inserted'); END;
CREATE TRIGGER entries_new_id BEFORE INSERT ON entries
WHEN EXISTS (SELECT 1 FROM entries WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: this id is there already'); END;
CREATE TRIGGER blobs_no_update BEFORE UPDATE ON blobs
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: blobs are never changed'); END;
CREATE TRIGGER blobs_no_delete BEFORE DELETE ON blobs
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: blobs are never deleted'); END;
CREATE TRIGGER blobs_new_only BEFORE INSERT ON blobs
WHEN EXISTS (SELECT 1 FROM blobs WHERE sha256 = NEW.sha256 OR number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: this blob is there already'); END;
CREATE TRIGGER nodes_no_update BEFORE UPDATE ON nodes
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: nodes are never changed'); END;
CREATE TRIGGER nodes_no_delete BEFORE DELETE ON nodes
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: nodes are never deleted'); END;
CREATE TRIGGER nodes_new_only BEFORE INSERT ON nodes
WHEN EXISTS (SELECT 1 FROM nodes WHERE level = NEW.level AND number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: this node is there already'); END;
CREATE TRIGGER head_forward_only BEFORE UPDATE ON head
WHEN NEW.size < OLD.size OR NEW.files > NEW.size OR NEW.tables > NEW.size
    OR NEW.files < OLD.files OR NEW.tables < OLD.tables
    OR (NEW.size = OLD.size
        AND (NEW.last <> OLD.last OR NEW.at <> OLD.at OR NEW.stack <> OLD.stack))
    OR (OLD.size > 0 AND NEW.origin <> OLD.origin)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: its head only moves forward'); END;
CREATE TRIGGER head_no_delete BEFORE DELETE ON head
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: its head is never deleted'); END;
CREATE TRIGGER head_only_one BEFORE INSERT ON head
WHEN EXISTS (SELECT 1 FROM head)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: it has one head'); END;
"""

_ERASING = """
DROP TRIGGER entries_no_update;
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
WHEN NEW.body IS NOT NULL OR NEW.salt IS NOT NULL OR NEW.seq IS NOT OLD.seq
    OR NEW.id IS NOT OLD.id OR NEW.kind IS NOT OLD.kind OR NEW.stream IS NOT OLD.stream
    OR NEW.header IS NOT OLD.header
    OR NOT EXISTS (SELECT 1 FROM entries AS newest
        WHERE newest.seq = (SELECT max(seq) FROM entries)
        AND newest.kind = 'redacted' AND newest.id = 'redacted-' || OLD.seq)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: entries are never changed'); END;
DROP TRIGGER blobs_no_delete;
CREATE TRIGGER blobs_no_delete BEFORE DELETE ON blobs
WHEN NOT EXISTS (SELECT 1 FROM entries AS newest
        WHERE newest.seq = (SELECT max(seq) FROM entries) AND newest.kind = 'redacted')
    OR EXISTS (SELECT 1 FROM entries
        WHERE instr(body, CAST('{"sha256":"' || lower(hex(OLD.sha256)) || '","size":' AS BLOB)))
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: blobs are never deleted'); END;
CREATE TABLE unswept (
    entry INTEGER PRIMARY KEY,
    written INTEGER NOT NULL DEFAULT 0
) STRICT;
"""

_SIGNED = """
ALTER TABLE entries ADD COLUMN auth BLOB;
DROP TRIGGER entries_no_update;
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
WHEN NEW.body IS NOT NULL OR NEW.salt IS NOT NULL OR NEW.seq IS NOT OLD.seq
    OR NEW.id IS NOT OLD.id OR NEW.kind IS NOT OLD.kind OR NEW.stream IS NOT OLD.stream
    OR NEW.header IS NOT OLD.header OR NEW.auth IS NOT OLD.auth
    OR NOT EXISTS (SELECT 1 FROM entries AS newest
        WHERE newest.seq = (SELECT max(seq) FROM entries)
        AND newest.kind = 'redacted' AND newest.id = 'redacted-' || OLD.seq)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: entries are never changed'); END;
"""

_SYNCED = """
ALTER TABLE head ADD COLUMN synced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN boot TEXT NOT NULL DEFAULT '';
DROP TRIGGER head_forward_only;
UPDATE head SET synced = files;
CREATE TRIGGER head_forward_only BEFORE UPDATE ON head
WHEN NEW.size < OLD.size OR NEW.files > NEW.size OR NEW.tables > NEW.size
    OR NEW.files < OLD.files OR NEW.tables < OLD.tables
    OR NEW.synced < OLD.synced OR NEW.synced > NEW.files
    OR (NEW.size = OLD.size
        AND (NEW.last <> OLD.last OR NEW.at <> OLD.at OR NEW.stack <> OLD.stack))
    OR (OLD.size > 0 AND NEW.origin <> OLD.origin)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: its head only moves forward'); END;
"""

MIGRATIONS: tuple[str, ...] = (_ENTRIES + _GUARDS, _ERASING, _SIGNED, _SYNCED)
"""What turns version n of the file into n + 1. A released one is never edited."""

SCHEMA_VERSION = len(MIGRATIONS)

_SOURCE = "".join(MIGRATIONS)
_OWN = ("entries", "blobs", "nodes", "head", "unswept")
_ADDED = (
    ", auth BLOB",
    ", synced INTEGER NOT NULL DEFAULT 0",
    ", boot TEXT NOT NULL DEFAULT ''",
)
"""What migrations put at the end of the texts of ``entries`` and ``head``."""
_FOLDED = (  # compiled where it is asked for: few commands do
    r"CREATE TRIGGER (\w+)_no_delete BEFORE DELETE ON \1 (?:WHEN OLD\.\w+ IS NULL)?"
    r" BEGIN SELECT RAISE\(ABORT, '[^']*'\); END"
)
"""The triggers of projections' tables, of any version: they can refuse a row, and nothing else."""


def check_schema(db: sqlite3.Connection) -> int:
    """Give the schema version of a database (0: an empty file) without changing a byte of it.

    A file of another program or a newer version is a LedgerDamagedError, and so is one with another
    thing in the place of a table: a view may never end, and may give any rows.
    """
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    strangers = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    # Asked last: where another process fills the file meanwhile, this answer is never the older.
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID and (version or strangers):
        raise LedgerDamagedError("this database belongs to another program; it was left as it is")
    if version > SCHEMA_VERSION:
        raise LedgerDamagedError(
            f"this ledger has schema {version}, this version of tripod knows up to "
            f"{SCHEMA_VERSION}: use a newer tripod"
        )
    # A missing table is found later, and an empty file has none.
    marks = ", ".join("?" * len(_OWN))
    sql = f"SELECT name, type, sql FROM sqlite_schema WHERE lower(name) IN ({marks})"
    for name, type_, text in db.execute(sql, _OWN) if version else ():
        made = f"{text};"
        for added in reversed(_ADDED):
            made = made.replace(f"{added}) STRICT;", ") STRICT;")
        if type_ != "table" or made not in _SOURCE:
            raise LedgerDamagedError(
                f"the {type_} {name} in this database is not the table that a ledger has there: "
                "nothing was read from it. Keep the file, and put a copy of the ledger back"
            )
    return version


def _foreign_triggers(db: sqlite3.Connection) -> list[str]:
    """Names of the triggers that neither a version of this schema nor a projection made."""
    foreign = []
    # SQLite runs it as well where these are bytes and no text.
    triggers = db.execute(
        "SELECT CAST(name AS TEXT), CAST(tbl_name AS TEXT), sql FROM sqlite_schema"
        " WHERE CAST(type AS TEXT) = 'trigger'"
    )
    for name, table, sql in triggers:
        front = f"CREATE TRIGGER {name} BEFORE "
        if str(sql).startswith(front) and f"{sql};" in _SOURCE:
            is_ours = sql[len(front) :].split(" ", 3)[2].split("\n", 1)[0] == table
        else:
            folded = re.fullmatch(_FOLDED, str(sql))
            is_ours = folded is not None and (folded[1], f"{folded[1]}_no_delete") == (table, name)
        if not is_ours:
            foreign.append(name)
    return foreign


def check_schema_guards(db: sqlite3.Connection) -> None:
    """Refuse to write where a trigger would run that is not ours (LedgerDamagedError)."""
    foreign = _foreign_triggers(db)
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise LedgerDamagedError(
            f"the database has triggers that are not ours, {', '.join(foreign[:3])}{more}: nothing "
            "was written. Look at them (`sqlite3 ledger.db .schema`) and run `tripod verify`; "
            "`tripod rebuild` removes them"
        )


def migrate_schema(db: sqlite3.Connection, version: int = SCHEMA_VERSION) -> None:
    """Bring a database to a version's schema, a transaction a step; errors as ``check_schema``."""
    for number in range(check_schema(db), version):
        db.executescript(
            f"BEGIN IMMEDIATE; {MIGRATIONS[number]}"
            f"PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {number + 1}; COMMIT;"
        )


_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"


def put_triggers_back(db: sqlite3.Connection) -> list[str]:
    """Make the triggers of the database's own schema version anew where they differ; their names.

    Those that are not ours are removed first: nothing may run them. What ours would have
    refused to the cursors is mended as well. Inside the caller's transaction, if one is open.
    Those of projections are made with their tables. Errors as ``check_schema``.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        migrate_schema(ours, check_schema(db))
        wanted = dict(ours.execute(_TRIGGERS).fetchall())
    foreign = _foreign_triggers(db)
    for name in foreign:
        quoted = name.replace('"', '""')
        db.execute(f'DROP TRIGGER IF EXISTS "{quoted}"')
    have = dict(db.execute(_TRIGGERS).fetchall())
    wrong = {name for name, sql in wanted.items() if have.get(name) != sql}
    anew = set(wrong)
    row = db.execute("SELECT size, tables, files, synced FROM head").fetchone()
    if row is not None and (max(row[1:]) > row[0] or row[3] > row[2]):
        # Cursors that are ahead of the head come back to it; what guards them goes for that.
        db.execute("DROP TRIGGER IF EXISTS head_forward_only")
        db.execute("UPDATE head SET tables = min(tables, size), files = min(files, size)")
        db.execute("UPDATE head SET synced = min(synced, files)")
        anew.add("head_forward_only")
    for name in anew:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
        db.execute(wanted[name])
    return sorted(wrong | set(foreign))
