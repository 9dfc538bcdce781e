"""Makes views of the entries with readable columns: ``log`` of all, and one for each kind.

They are made from the declarations of the kinds, as plain SQL that any SQLite runs. A database that
is asked through them is only read: nothing that a statement says changes a byte of any file.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, get_args

from sqlite_utils import Database

from tripod.ledger.kinds.base import Content, Kind
from tripod.ledger.kinds.models import body_fields
from tripod.ledger.kinds.registry import KINDS

_LARGEST = 64 * 1024 * 1024  # bytes of a value
_STEPS = 100  # instructions of SQLite between two looks at the clock: each may be slow

_OF_ALL = ("seq", "at", "actor", "mark")
_PLACE = ("agent", "line", "call", "tool", "channel", "named", "path", "sure", "shown")
_SAID = """\
CASE WHEN body IS NULL THEN (SELECT json_extract(CAST(gone.body AS TEXT), '$.keep')
            FROM entries AS gone WHERE gone.id = 'redacted-' || entries.seq)
        WHEN json_valid(CAST(body AS TEXT)) THEN CAST(body AS TEXT) END AS said"""
_LOG = f"""\
SELECT seq, json_extract(head, '$.at') AS at, json_extract(head, '$.actor') AS actor,
    CASE WHEN id GLOB 'obs-*' OR json_extract(said, '$.observed') IS NOT NULL THEN 'observed'
        WHEN auth IS NOT NULL THEN 'signed' ELSE '' END AS mark,
    kind, stream, id, json_extract(head, '$.cause') AS cause, said AS body
FROM (SELECT seq, kind, stream, id, {{auth}} AS auth,
    CASE WHEN json_valid(CAST(header AS TEXT)) THEN CAST(header AS TEXT) END AS head,
    {_SAID}
    FROM entries){{ours}}"""
# Of an entry of a peer what it keeps, as it is called here. A blob is found by the hex of its
# digest: these digits are collected once.
_SHARED = ", ".join(f"'{kind.name}'" for kind in KINDS if kind.merge == "shared")
_OF_PEERS = f"""\

UNION ALL
SELECT seq, json_extract(head, '$.at'), coalesce(shown, json_extract(head, '$.actor')),
    CASE WHEN json_extract(head, '$.id') GLOB 'obs-*' THEN 'peer observed'
        WHEN auth IS NOT NULL THEN 'peer signed' ELSE 'peer' END,
    kind, stream, id, json_extract(head, '$.cause'),
    CASE WHEN kind = 'chat.sent' AND shown IS NOT NULL
        THEN json_set(body, '$.handle', shown) ELSE body END
FROM (SELECT seq, kind, stream, id, json_extract(said, '$.header.text') AS head,
    json_extract(said, '$.auth') AS auth,
    coalesce(json_extract(said, '$.place.actor'),
        CASE WHEN kind NOT IN ({_SHARED}) OR json_extract(said, '$.place.same') IS NOT NULL
        THEN json_extract(json_extract(said, '$.header.text'), '$.actor') || '@'
            || (SELECT replica FROM peers WHERE origin = json_extract(said, '$.origin'))
        END) AS shown,
    json_patch(coalesce(CAST(substr(bytes, 33) AS TEXT), json_extract(said, '$.keep')),
        json_remove(coalesce(json_extract(said, '$.place'), '{{{{}}}}'), '$.actor')) AS body
    FROM (SELECT merged.seq, merged.kind, stream, id, {_SAID}
        FROM merged JOIN entries ON entries.seq = merged.seq)
    LEFT JOIN (SELECT hex(sha256) AS name, number AS place FROM blobs LIMIT -1)
        ON name = upper(json_extract(said, '$.content.sha256'))
    LEFT JOIN blobs ON number = place)"""
_CONTENT = """\
coalesce(json_extract(body, '$.{0}.text'), json_extract(body, '$.{0}.base64'),
        (SELECT CAST(bytes AS TEXT) FROM blobs
            WHERE hex(sha256) = upper(json_extract(body, '$.{0}.sha256')))) AS {1}"""

_LINES = "'[' || replace(trim(exposures, char(10)), char(10), ',') || ']'"
_EXPOSURE = f"""\
SELECT {", ".join(_OF_ALL)}, session,
    {", ".join(f"json_extract(place.value, '$.{name}') AS {name}" for name in _PLACE)}
FROM session_read, json_each(CASE WHEN json_valid({_LINES}) THEN {_LINES} ELSE '[]' END) AS place"""
_PLAIN = ("decision_logged",)
"""Views whose texts are no protected ones: a reviewer reads the log, and not the chat."""

_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_SAVEPOINT,  # sqlite-utils sets one around each query
}
_TELLING = ("table_info", "table_xinfo", "table_list")


def view_queries(*, signed: bool = True, peers: bool = False) -> dict[str, str]:
    """The query of each view by its name.

    ``signed``: the database has signature records; ``peers``: and entries of peers.

    A kind's view has the number, time, actor and mark of each entry, and the fields of the body: a
    text as it is (base64 where it is no UTF-8), lists and objects as JSON. A field with the name
    of one of the first columns is called ``body_...``. ``exposure`` has a row for each place that
    the record of a session says it read.
    """
    ours = " WHERE kind <> 'peer.entry'" if peers else ""
    found = {"log": _LOG.format(auth="auth" if signed else "NULL", ours=ours)}
    found["log"] += _OF_PEERS.format() if peers else ""
    for kind in KINDS:
        columns = [
            *_OF_ALL,
            *(_column(name, hint) for name, (hint, _) in body_fields(kind).items()),
        ]
        found[_view_name(kind)] = (
            f"SELECT {', '.join(columns)}\nFROM log WHERE kind = '{kind.name}'"
        )
    return found | {"exposure": _EXPOSURE}


def _view_name(kind: Kind[Any]) -> str:
    return kind.name.replace(".", "_").replace("-", "_")


def _is_content(hint: Any) -> bool:
    """Whether a field holds bytes or a text, such as a file that was read."""
    return Content in (hint, *get_args(hint))


def _column(name: str, hint: Any) -> str:
    shown = f'"body_{name}"' if name in _OF_ALL else f'"{name}"'
    if _is_content(hint):
        return f"\n    {_CONTENT.format(name, shown)}"
    return f"\n    json_extract(body, '$.{name}') AS {shown}"


def view_statements(*, signed: bool = True, peers: bool = False) -> Iterator[str]:
    """The statements that make the views, for one connection alone."""
    for name, query in view_queries(signed=signed, peers=peers).items():
        yield f"CREATE TEMP VIEW {name} AS {query};"


def open_views(db: sqlite3.Connection, until: float) -> Database:
    """Make the views in a connection that was opened for reading, and let it do nothing else.

    From then on a statement that is no query is a sqlite3.DatabaseError, and so is one that is at
    work at the time ``until`` of the monotonic clock (``interrupted``).
    """
    signed = any(row[1] == "auth" for row in db.execute("PRAGMA table_info(entries)"))
    # Two sources in one view cost a query that wants few rows a look at all of them.
    is_there = any(db.execute("PRAGMA table_info(merged)"))
    peers = is_there and db.execute("SELECT 1 FROM merged LIMIT 1").fetchone() is not None
    db.execute("PRAGMA query_only=OFF")  # the file stays read-only; this is for temporary views
    for statement in view_statements(signed=signed, peers=peers):
        db.execute(statement)
    db.execute("PRAGMA query_only=ON")
    db.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")  # later these could not be made
    db.text_factory = lambda data: data.decode(errors="replace")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
    db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    db.set_authorizer(_judge_action)
    return Database(db, recursive_triggers=False, execute_plugins=False)


def _judge_action(action: int, name: str | None, _value: object, *_: object) -> int:
    told = action == sqlite3.SQLITE_PRAGMA and name in _TELLING
    return sqlite3.SQLITE_OK if told or action in _READING else sqlite3.SQLITE_DENY


def textless_columns(view: str, columns: Sequence[str]) -> list[str]:
    """The columns of a view without the texts of chats, events, agents and files.

    What is left out is what a redaction would erase of a kind, and the bytes of observed files.
    Decisions stay: a reviewer who must not read the chat reads the log of decisions.
    """
    out = {"source", "observed", *(("body",) if view == "log" else ())}
    out |= {"named"} if view == "exposure" else set()
    for kind in KINDS:
        if _view_name(kind) == view and view not in _PLAIN and kind.erasure is not None:
            out |= kind.erasure.marks.keys()
        if _view_name(kind) == view and view not in _PLAIN and kind.observed is not None:
            out |= {name for name, (hint, _) in body_fields(kind).items() if _is_content(hint)}
    out |= {"keep", "content", "header", "place"} if view == "peer_entry" else set()
    return [name for name in columns if name.removeprefix("body_") not in out or name in _OF_ALL]


def save_views(views: Database, path: str, *, texts: bool = True) -> dict[str, list[str]]:
    """Write each view that has rows as a table of a new database, for other programs.

    Gives the names of the tables with their columns. ``texts``: see ``textless_columns``.

    Raises:
        OSError: something is there (FileExistsError), or the disk refuses.
        sqlite3.Error: the views cannot be read, or the disk refuses; nothing is left behind.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(sqlite3.connect(path)) as target:
            saved = Database(target, execute_plugins=False)
            for name in view_queries():
                columns = [row["name"] for row in views.query(f"PRAGMA table_info({name})")]
                shown = columns if texts else textless_columns(name, columns)
                asked = ", ".join(f'"{column}"' for column in shown)
                key = None if name == "exposure" else "seq"  # an entry has many
                saved.table(name).insert_all(views.query(f"SELECT {asked} FROM {name}"), pk=key)
            return {table.name: [one.name for one in table.columns] for table in saved.tables}
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
