"""Reads OpenCode's database: sessions, messages and parts, and what speaks against them.

Nothing is opened in its place: the file and its write-ahead log are copied to a private folder, and
what SQLite would pass over in silence (a log that is cut, damaged or no file) is a gap. A rollback
journal is never played back: it may name any other file, which SQLite then removes.
"""

from __future__ import annotations

import os
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import orjson

from tripod.ledger.files import open_plain_file, read_plain_file
from tripod.verify.sessions.items import (
    Gap,
    Given,
    SessionRecord,
    fields,
    strange_text,
    text_of,
)
from tripod.verify.sessions.jsonl import DamagedLine, session_records

if TYPE_CHECKING:
    import sqlite3

_BLOCK = 1024 * 1024


def database_records(file: IO[bytes], path: str) -> list[SessionRecord | DamagedLine]:
    """Each session with its messages in order, and gaps; ``file`` is the database at ``path``.

    Where it cannot be read at all: OSError, ValueError, LookupError, TypeError, MemoryError, or an
    Error of sqlite3.
    """
    import sqlite3  # most sessions are files of lines

    path = os.path.realpath(path)  # its log lies beside the file, not beside a link to it
    with TemporaryDirectory(prefix="tripod-session-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        gaps = list(_copied(file, path, copy))
        with closing(sqlite3.connect(copy)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            gaps += _log(db, path, copy)
            db.execute("PRAGMA query_only = ON")
            db.row_factory = sqlite3.Row
            return [*(DamagedLine(gap, None) for gap in gaps), *_rows(db)]


# The copy, and the write-ahead log --------------------------------------------------------------


def _copied(file: IO[bytes], path: str, copy: str) -> Iterator[Gap]:
    """Copy a database and its log, and what the log's index says of it."""
    before = _stamp(os.fstat(file.fileno())), *map(_stamp_at, (f"{path}-wal", f"{path}-journal"))
    file.seek(0)
    _copy(file, copy)
    for end in ("-wal", "-journal", "-shm"):
        try:
            with open(open_plain_file(path + end), "rb") as source:
                if end == "-journal" and source.read(8).strip(b"\0"):
                    what = f"a change that was broken off is in {os.path.basename(copy)}{end}"
                    yield Gap("damaged", 0, what)
                elif end == "-wal":
                    _copy(source, copy + end)
        except FileNotFoundError:
            pass
        except OSError as error:
            what = f"what stands in {os.path.basename(copy)}{end}: {error.strerror}"
            yield Gap("missing", 0, what)
    if before != tuple(_stamp_at(path + end) for end in ("", "-wal", "-journal")):
        yield Gap("missing", 0, "the database was changed while it was read")


def _copy(source: IO[bytes], target: str) -> None:
    with open(target, "xb") as new:
        while block := source.read(_BLOCK):
            new.write(block)


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _stamp_at(path: str) -> tuple[int, int, int] | None:
    try:
        return _stamp(os.lstat(path))
    except FileNotFoundError:
        return None


def _log(db: sqlite3.Connection, path: str, copy: str) -> Iterator[Gap]:
    """What the write-ahead log lacks: SQLite reads it up to the first fault, and says nothing.

    Source: the format of the file, sqlite.org/fileformat2.html section 4, and that of its index,
    sqlite.org/walformat.html section 2.
    """
    name = f"{os.path.basename(copy)}-wal"
    there = os.path.isfile(f"{copy}-wal")
    size, salt, frames = _frames(f"{copy}-wal") if there else (0, b"", 0)
    db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    # How many frames are in the log, up to its last whole change; -1 where there is no log.
    read = max(db.execute("PRAGMA wal_checkpoint").fetchone()[1], 0) if size else 0
    if frames is None:
        yield Gap("damaged", 0, f"the log {name} is cut, or it is no log")
    elif frames != read:
        yield Gap("damaged", 0, f"of {frames} pages in the log {name} {read} are whole")
    index = _index(path)
    if index is None:
        if there and not size:
            yield Gap("missing", 0, f"what stood in the log {name}, which is empty now")
    elif index.frames > max(index.copied, read if index.salt == salt else 0):
        what = f"of {index.frames} pages in the log {name}, which its -shm counts, {read} are there"
        yield Gap("missing", 0, what)


_LOG, _PAGE = struct.Struct(">IIII8sII"), struct.Struct(">II8sII")
"""The header of a log, and of a page in it: it ends with two sums over all that was before."""


def _frames(path: str) -> tuple[int, bytes, int | None]:
    """The size of a log, the mark of its pages, and how many have it; None if it is damaged.

    Pages of an older run of the log may follow, which have another mark.
    """
    with open(path, "rb") as log:
        size = os.fstat(log.fileno()).st_size
        if not size:
            return 0, b"", 0
        header = log.read(_LOG.size)
        if len(header) < _LOG.size:
            return size, b"", None
        magic, _, page, _, salt, *sums = _LOG.unpack(header)
        step = _PAGE.size + page
        if magic & ~1 != _MAGIC or page not in _PAGE_SIZES or (size - _LOG.size) % step:
            return size, salt, None
        found, is_old = 0, False
        for at in range(_LOG.size, size, step):
            log.seek(at)
            number, _, mark, *last = _PAGE.unpack(frame := log.read(_PAGE.size))
            if mark == salt and not is_old:
                found, sums = found + 1, last
                continue
            if not is_old:  # a page of this run, whose mark alone was changed?
                data = frame[:8] + log.read(page)
                if list(_sums(data, sums, ">" if magic & 1 else "<")) == last:
                    return size, salt, None
            is_old = True
            if not number or mark[:4] == salt[:4] or mark[4:] == salt[4:]:
                return size, salt, None
        return size, salt, found


_MAGIC = 0x377F0682  # or one more: then its sums are over big-endian numbers
_PAGE_SIZES = {2**power for power in range(9, 17)}


def _sums(data: bytes, before: Iterable[int], order: str) -> tuple[int, int]:
    one, two = before
    numbers = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


class _Index(NamedTuple):
    """What the index of a log counts: its pages, how many the database has too, and their mark."""

    frames: int
    copied: int
    salt: bytes


def _index(path: str) -> _Index | None:
    """The index of a log, in the byte order of its machine; None if there is no sound one."""
    try:
        data = read_plain_file(f"{path}-shm", 136)
    except OSError:
        return None  # which is a gap, if it is anything
    if len(data) < 136 or data[:48] != data[48:96] or not data[12]:
        return None
    for order in "<>":
        (version,) = struct.unpack_from(f"{order}I", data)
        if version == 3007000:
            frames, copied = (struct.unpack_from(f"{order}I", data, at)[0] for at in (16, 96))
            return _Index(frames, copied, data[32:40])
    return None


# Its rows ---------------------------------------------------------------------------------------

_COLUMNS = {
    "session": fields(
        """id project_id workspace_id parent_id slug directory path title version share_url
        summary_additions summary_deletions summary_files summary_diffs metadata cost tokens_input
        tokens_output tokens_reasoning tokens_cache_read tokens_cache_write revert permission agent
        model time_created time_updated time_compacting time_archived"""
    ),
    "message": fields("id session_id time_created time_updated data"),
    "part": fields("id message_id session_id time_created time_updated data"),
    "event": fields("id aggregate_id seq type data"),
    "event_sequence": fields("aggregate_id seq owner_id"),
}
"""The columns of the tables that are read, as version 1.18 has them."""

_NEEDED = {
    "session": "id parent_id directory version",
    "message": "id session_id time_created data",
    "part": "id message_id session_id data",
}

_OTHERS = fields(
    """workspace data_migration account_state account control_account credential permission
    project_directory project todo session_share migration"""
)
"""Tables without a text that a model was given, but for what stands in those above too."""


def _rows(db: sqlite3.Connection) -> Iterator[SessionRecord | DamagedLine]:
    """Each session, then its messages in order; what another generation holds is a gap."""
    # Not quick_check: an index that lacks a row would have a message or a part pass unseen.
    if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise ValueError("its pages are damaged")
    for table, columns in _NEEDED.items():
        kind = db.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if kind is None or kind[0] != "table" or not set(columns.split()) <= set(_names(db, table)):
            raise ValueError(f"its table {table} is not the one that is known")
    new = {table: [name for name in _names(db, table) if name not in known]
           for table, known in _COLUMNS.items()}  # fmt: skip
    beside = _beside(db, new)
    number = seen = 0
    for session in db.execute("SELECT * FROM session ORDER BY time_created, id"):
        number += 1
        info = {name: session[name] for name in ("id", "parent_id", "directory", "version")}
        named = _name(info["id"])
        strange = [name for name, value in info.items() if not isinstance(value, str | None)]
        info = {name: _name(value) for name, value in info.items()}
        info |= _texts(session, new["session"]) | beside.pop(named, {})
        yield SessionRecord(number, 0, {"info": info})
        if strange or not named:
            what = f"the {', '.join(strange) or 'id'} of session {named:.40} is no text"
            yield DamagedLine(Gap("damaged", 0, what), None)
        messages = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"
        for message in db.execute(messages, (session["id"],)):
            number += 1
            seen += 1
            parts = "SELECT * FROM part WHERE message_id = ? ORDER BY id"
            yield from _message(number, message, db.execute(parts, (message["id"],)), new)
    lost = db.execute("SELECT count(*) FROM message").fetchone()[0] - seen + len(beside)
    lost += db.execute(
        "SELECT count(*) FROM part WHERE message_id NOT IN (SELECT id FROM message)"
    ).fetchone()[0]
    if lost:
        what = f"{lost} messages or parts are of no session that is there"
        yield DamagedLine(Gap("missing", 0, what), None)
    yield from _order(db)


def _names(db: sqlite3.Connection, table: str) -> list[str]:
    return [row["name"].lower() for row in db.execute(f'PRAGMA table_info("{_quoted(table)}")')]


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def _tables(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for name in (row[0] for row in rows) if not name.startswith("sqlite_")]


def _texts(row: sqlite3.Row, names: Iterable[str]) -> dict[str, Any]:
    """The texts of columns that are not known, as fields that are not known."""
    values = {name: row[name] for name in names}
    return {
        f"column {name}": _plain(value)
        for name, value in values.items()
        if isinstance(value, str | bytes) and value
    }


def _plain(value: str | bytes) -> str:
    """A text of a row, or the texts in it where it is JSON."""
    text = _name(value)
    with suppress(orjson.JSONDecodeError):
        inner = orjson.loads(text)
        text = text_of(inner) if isinstance(inner, dict | list) else text
    return text


_OWNERS = ("session_id", "aggregate_id")


def _beside(db: sqlite3.Connection, new: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """For each session what stands of it in tables, columns and events that are not known."""
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    tables = _tables(db)
    for table in tables:
        names = _names(db, table)
        columns = new.get(table, names)
        owner = next((name for name in _OWNERS if name in names), None)
        if table in _OTHERS or table in _NEEDED or owner is None or not columns:
            continue
        for row in db.execute(f'SELECT * FROM "{_quoted(table)}"'):
            texts = _texts(row, columns)
            if texts or table not in _COLUMNS:
                found[_name(row[owner])].setdefault(f"table {table}", []).extend(texts.values())
    kinds = db.execute("SELECT DISTINCT type FROM event") if "event" in tables else ()
    for kind in [row[0] for row in kinds if not _EVENT.fullmatch(_name(row[0]))]:
        for row in db.execute("SELECT aggregate_id, data FROM event WHERE type = ?", (kind,)):
            texts = _texts(row, ("data",))
            name = f"event {_name(kind)}"
            found[_name(row["aggregate_id"])].setdefault(name, []).extend(texts.values())
    return found


_EVENT = re.compile(r"(?:session|message|message\.part)\.(?:created|updated|removed|deleted)\.\d+")
"""Events that say what the rows say."""


def _message(
    number: int, message: sqlite3.Row, parts: Iterable[sqlite3.Row], new: dict[str, list[str]]
) -> Iterator[SessionRecord | DamagedLine]:
    """A message with its parts; each row that is no object is a gap, and its text is searched."""
    named = _name(message["id"])
    info = _object(number, f"message {named:.40}", message["data"])
    if isinstance(info, DamagedLine):
        yield info
    found = list[dict[str, Any]]()
    for part in parts:
        one = _object(number, f"part {_name(part['id']):.40}", part["data"])
        if isinstance(one, DamagedLine):
            yield one
        else:
            found.append({"id": _name(part["id"]), **one, **_texts(part, new["part"])})
    if isinstance(info, DamagedLine):  # nobody knows whose parts they are
        for one in found:
            yield from (DamagedLine(info.gap, text) for text in _text(number, one))
        return
    info = {"id": named, **info, **_texts(message, new["message"])}
    yield SessionRecord(number, 0, {"info": info, "parts": found})


def _object(number: int, what: str, data: object) -> dict[str, Any] | DamagedLine:
    """The JSON object in a row, or why it lacks one: it must be one that can be written again."""
    raw = data if isinstance(data, bytes) else str(data).encode("utf-8", "replace")
    one = next(session_records([raw]), None)
    if isinstance(one, DamagedLine):
        text = one.text and one.text._replace(line=number)
        return DamagedLine(Gap("damaged", number, one.gap.what.replace("line 1", what, 1)), text)
    value = {} if one is None else one.value
    try:
        orjson.dumps(value)
    except TypeError:
        value = {}
    if value:
        return value
    text = None if one is None else next(_text(number, one.value), None)
    return DamagedLine(Gap("damaged", number, f"{what} is empty, or nested too deep"), text)


def _value(data: object) -> dict[str, Any]:
    one = _object(0, "a row", data)
    if isinstance(one, DamagedLine):
        raise ValueError(one.gap.what)  # noqa: TRY004
    return one


def _text(number: int, value: object) -> Iterator[Given]:
    return strange_text(SessionRecord(number, 0, {}), value)


def _name(value: object) -> str:
    """A name in a row: SQLite keeps any value in any column."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


def _order(db: sqlite3.Connection) -> Iterator[DamagedLine]:
    """Each change of a session is an event with the next number; a number that lacks is a gap."""
    tables = _tables(db)
    for table in tables:
        if (
            table not in _OTHERS | _COLUMNS.keys()
            and not set(_OWNERS) & set(_names(db, table))
            and db.execute(f'SELECT 1 FROM "{_quoted(table)}" LIMIT 1').fetchone()
        ):
            what = f"the table {table[:40]} of a newer generation has rows, which nobody read"
            yield DamagedLine(Gap("unknown", 0, what), None)
    for table in ("event", "event_sequence"):
        if table not in tables:
            what = f"the table {table}, which shows whether a row was removed or changed"
            yield DamagedLine(Gap("missing", 0, what), None)
    if "event" in tables:
        yield from _events(db, counted="event_sequence" in tables)


def _events(db: sqlite3.Connection, *, counted: bool) -> Iterator[DamagedLine]:
    """A second witness: the events of each session, without a gap, say what its rows say."""
    last = "SELECT max(seq) FROM event WHERE aggregate_id = session.id"
    if counted:
        last = "SELECT seq FROM event_sequence WHERE aggregate_id = session.id"
    rows = "SELECT id, (SELECT count(*) FROM event WHERE aggregate_id = session.id) AS n,"
    rows += f"(SELECT max(seq) FROM event WHERE aggregate_id = session.id) AS top, ({last}) AS last"
    for row in db.execute(f"{rows} FROM session"):
        if not row["n"] or not row["n"] - 1 == row["top"] == row["last"]:
            what = f"of {row['id']!s:.60} {row['n']} events are there, the last is {row['last']}"
            yield DamagedLine(Gap("order", 0, what), None)
    try:
        hidden = _hidden(db)
    except (LookupError, TypeError, ValueError) as error:
        yield DamagedLine(Gap("damaged", 0, f"an event or a row is no JSON object: {error}"), None)
        return
    # Of what was removed no row is there, as its last event says: nobody can tell which that is.
    removed = "SELECT 1 FROM event WHERE type LIKE '%removed%' OR type LIKE '%deleted%'"
    is_removed = db.execute(removed).fetchone() is not None
    for name, value in hidden.items():
        what = f"{name:.60} is not what its last event says, or is not there"
        gap = Gap("order" if is_removed else "witness", 0, what)
        yield DamagedLine(gap, next(_text(0, value), None))


def _hidden(db: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Messages and parts, by id, that their last event has and no row has as it is there."""
    told: dict[str, dict[str, Any]] = {}
    kinds = {"message.part.updated": "part", "message.updated": "info"}
    for row in db.execute("SELECT type, data FROM event ORDER BY aggregate_id, seq"):
        name = kinds.get(str(row["type"]).rpartition(".")[0])
        if name is not None:
            value = _value(row["data"])[name]
            told[value["id"]] = value
    for row in db.execute(
        "SELECT id, message_id, session_id, data FROM part"
        " UNION ALL SELECT id, NULL, session_id, data FROM message"
    ):
        value = {**_value(row["data"]), "id": row["id"], "sessionID": row["session_id"]}
        value |= {"messageID": row["message_id"]} if row["message_id"] else {}
        if told.get(row["id"]) == value:
            del told[row["id"]]
    return told
