"""Reads rows of an untrusted ledger: what cannot be decoded comes as bytes, and nothing raises.

For the verifier alone; programs that trust their ledger use ``tripod.ledger.sqlite.reader``. Bodies
and blobs come out for renders; the pass over the rows checks them against their commitments.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache, lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

import orjson

from tripod.ledger import (
    EMPTY_ROOT,
    MERGED,
    REDACTED,
    Draft,
    Entry,
    LedgerError,
    RawEntry,
    Tree,
    entry_leaf_hash,
    parse_header,
    redaction_entry_id,
    root_of,
)
from tripod.ledger.kinds.registry import KINDS
from tripod.ledger.sqlite.reader import (
    SYNCED,
    SQLiteReader,
    head_cursors,
    read_block_nodes,
)
from tripod.ledger.sqlite.schema import SCHEMA_VERSION, migrate_schema
from tripod.ledger.store import Cursors
from tripod.projections.engine import create_tables, inner_data
from tripod.projections.projection import Source
from tripod.verify.check import Scanned

ACTOR_AND_TIME = re.compile(
    rb'\{"actor":"([^"\\\x00-\x1f]*+)","at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)",'
).match
"""The beginning of a canonical header with nothing to escape: the actor and the time."""
_MARKS: dict[object, bytes] = {kind.name: b',"kind":"%b",' % kind.name.encode() for kind in KINDS}


_LISTED = 5000  # rows of a schema; ours has fewer than a hundred
_COMPUTED = re.compile(r"\bAS\b|GENERATED", re.IGNORECASE)

Schema = dict[tuple[str, str], tuple[str, str]]
"""By type and name of each row of ``sqlite_schema``: its table, and its SQL."""


def schema_rows(db: sqlite3.Connection) -> Schema:
    """Every row of the schema, with SQLite's own (sqlite3.Error: unreadable, or far too many)."""
    sql = (
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB),"
        " iif('blob' IN (typeof(type), typeof(name), typeof(tbl_name), typeof(sql)), x'00', NULL)"
        f" FROM sqlite_schema LIMIT {_LISTED + 1}"
    )
    rows = [
        [(value or b"").decode("utf-8", "backslashreplace") for value in row]
        for row in db.execute(sql)
    ]
    if len(rows) > _LISTED:
        raise sqlite3.DatabaseError(f"the schema has more than {_LISTED} rows")
    # What is bytes and no text is not as we make it, and commands refuse it.
    return {(type_, name): (table, text + odd) for type_, name, table, text, odd in rows}


@cache
def made_schema_rows(version: int, *, folded: bool) -> Schema:
    """What a version of the ledger's schema is; ``folded``: with the tables of today's folds."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        migrate_schema(ours, version)
        if folded:
            create_tables(ours)
        return schema_rows(ours)


def index_fault(db: sqlite3.Connection, table: str, found: Schema) -> str | None:
    """How the indexes of a table of ours differ from its rows, as SQLite says; None: they do not.

    ``found`` is the database's schema. Checks read tables, and commands find by indexes. Where the
    table's schema is not ours, nothing is asked: it may hold an expression of a stranger's, and
    ``sequence`` names it.
    """
    ours, theirs = (
        {key: row for key, row in rows.items() if row[0] == table}
        for rows in (made_schema_rows(SCHEMA_VERSION, folded=True), found)
    )
    if ours != theirs or all(kind != "index" for kind, _ in ours):
        return None
    said = [str(text) for (text,) in db.execute(f"PRAGMA integrity_check({table})")]
    for text in sorted(said, key=lambda text: " index " not in text):  # what names one comes first
        if text != "ok":
            *_, last = text.split("\n")  # the line before names the file
            return f"its indexes do not hold its rows, or its pages are damaged: {last}"
    return None


def untouchable_rows(found: Schema) -> str | None:
    """Why nothing may be read from a database with this schema, or None.

    A view, a virtual table or a computed column in the place of a table says what it likes, and a
    view need never end. A table that only differs can be read: ``sequence`` names it.
    """
    ours = made_schema_rows(SCHEMA_VERSION, folded=True)
    names = {name.lower() for type_, name in ours if type_ == "table"}
    for (type_, name), (table, text) in found.items():
        if type_ not in ("table", "view") or name.lower() not in names:
            continue
        if ours.get((type_, name)) == (table, text):
            continue
        plain = type_ == "table" and text.startswith("CREATE TABLE ") and table == name
        if not plain or _COMPUTED.search(text):
            return (
                f"the {type_} {name} of the database is not the table that a ledger has there: "
                "nothing is read from it. Keep the file as it is, and judge a copy of the ledger"
            )
    return None


def _lenient(raw: bytes) -> str | bytes:
    """Text where it is UTF-8, else its bytes: then it equals no text of ours."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def row_columns(db: sqlite3.Connection, *names: str) -> str:
    """Columns of the entries, for a SELECT: NULL for one that an older file does not have."""
    there = {row[1] for row in db.execute("PRAGMA table_info(entries)")}
    return ", ".join(name if name in there or name != "auth" else "NULL" for name in names)


def all_rows(
    db: sqlite3.Connection, start: int | None = None, stop: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Rows (seq, id, kind, stream, header, salt, body, auth) in the order of seq, also below 0.

    Raises:
        sqlite3.DatabaseError: the file is damaged from this row on, or has no such table.
    """
    columns = row_columns(db, "seq", "id", "kind", "stream", "header", "salt", "body", "auth")
    sql = f"SELECT {columns} FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq"
    low = -(2**63) if start is None else start
    high = 2**63 - 1 if stop is None else stop - 1
    while True:
        try:
            # One bound of each kind: SQLite walks the table once, whatever it holds.
            for row in db.execute(sql, (low, high)):
                if row[0] < low:  # pages that lead back to each other would never end
                    raise sqlite3.DatabaseError(
                        f"the rows after {low - 1} are not in order: pages are damaged"
                    )
                low = row[0] + 1
                yield row
        except sqlite3.OperationalError as error:
            if "decode" not in str(error) or db.text_factory is _lenient:
                raise
            db.text_factory = _lenient
        else:
            return


def disguised_rows(db: sqlite3.Connection, kinds: Collection[str]) -> list[int]:
    """The numbers of the entries whose headers have one of the kinds, and whose rows have none.

    Raises:
        sqlite3.DatabaseError: the file is damaged, or has no such table.
    """
    marks = ", ".join("?" * len(kinds))
    named = " OR ".join(["instr(header, ?)"] * len(kinds))
    sql = f"SELECT seq FROM entries WHERE kind NOT IN ({marks}) AND ({named}) ORDER BY seq"
    headers = [f'"kind":"{kind}"'.encode() for kind in kinds]
    return [seq for (seq,) in db.execute(sql, [*kinds, *headers])]


def one_row(
    db: sqlite3.Connection, sql: str, values: tuple[Any, ...] = ()
) -> tuple[Any, ...] | None:
    """The first row of a query; None if absent, or where it cannot be asked."""
    try:
        row = db.execute(sql, values).fetchone()
    except (sqlite3.Error, OverflowError):
        return None
    return None if row is None else tuple(row)


class RowReader(SQLiteReader):
    """A ledger that nobody vouches for: what cannot be asked, or read, is not there.

    Values come as they are stored, of any type. ``read`` and ``entry`` trust what they
    decode and are not for evidence; ``raw`` is.
    """

    bodies = True
    """Whether there are bodies: an export may hold headers alone."""
    problem = ""
    """Why the rows that were asked for last ended early; who wants to know empties it first."""

    def _one(self, sql: str, values: Sequence[object] = ()) -> Any:
        return next(self._rows(sql, values), None)

    def _rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        given = 0
        while True:
            try:
                for row in islice(self.db.execute(sql, values), given, None):
                    yield row
                    given += 1
            except (sqlite3.Error, OverflowError) as error:
                if "decode" not in str(error) or self.db.text_factory is _lenient:
                    self.problem = str(error)
                    return
                self.db.text_factory = _lenient
            else:
                return

    @property
    def size(self) -> int:
        """One more than the newest row's number: the head's row is judged, and not believed.

        Rows are not counted: pages of an index that lead back to each other would never end.
        """
        last = self.last_seq()
        return 0 if last is None else last + 1

    def end(self) -> int:
        """``size``, or that of the head's row where the newest rows cannot be read."""
        self.problem = ""
        size = self.size
        head = head_row(self.db) if self.problem else None
        return size if head is None or type(head.size) is not int else head.size

    def bodies_of(self, seqs: Sequence[int]) -> list[tuple[int, Any, Any]]:
        """Number, kind and body of the entries with these numbers that have one."""
        sql = (
            "SELECT seq, kind, body FROM entries"
            " WHERE seq IN (SELECT value FROM json_each(?)) AND body IS NOT NULL"
        )
        return list(self._rows(sql, (orjson.dumps(seqs).decode(),)))

    def unswept(self) -> int:
        """How many erased entries may still lie in the pages of the database's file."""
        row = self._one("SELECT count(*) FROM (SELECT 1 FROM unswept LIMIT 1000000)")
        return 0 if row is None else int(row[0])


_MOST = 2**62  # entries


class HeadRow(NamedTuple):
    """The head's row as it is stored: size, hash and time of the newest entry, three cursors.

    ``boot`` names the start of the host in which the files were written.
    """

    size: Any
    last: Any
    at: Any
    tables: Any
    files: Any
    synced: Any
    boot: Any

    @property
    def cursors(self) -> Cursors:
        """The cursors, as a command has them; of a row that was altered all files are shown."""
        told = (self.size, self.tables, self.files, self.synced)
        if all(type(value) is int for value in told) and type(self.boot) is str:
            return head_cursors(*told, self.boot)
        return Cursors(0, 0, _MOST, _MOST, _MOST)


def head_row(db: sqlite3.Connection) -> HeadRow | None:
    """The head's row, or None; also None where the table cannot be asked."""
    sql = "SELECT size, last, at, tables, files, {} FROM head"
    # An older version waited for the disk in each act.
    row = one_row(db, sql.format(SYNCED)) or one_row(db, sql.format("files, ''"))
    return None if row is None else HeadRow(*row)


def erasing_row(db: sqlite3.Connection, seq: int) -> tuple[int, dict[str, Any]] | None:
    """The entry that says that ``seq`` was erased, and what it says; None where none does."""
    sql = "SELECT seq, body FROM entries WHERE id = ? AND kind = ?"
    row = one_row(db, sql, (redaction_entry_id(seq), REDACTED))
    if row is None:
        return None
    try:
        data: dict[str, Any] = orjson.loads(row[1])
        return (row[0], data) if type(data["keep"]) is dict else None
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return None


def replica_of_peer(db: sqlite3.Connection, origin: str) -> str | None:
    """The name of a peer as the tables have it; None where they do not have it."""
    row = one_row(db, "SELECT replica FROM peers WHERE origin = ?", (origin,))
    return None if row is None or type(row[0]) is not str else row[0]


def entry_of_row(db: sqlite3.Connection, row: tuple[Any, ...]) -> Entry | None:
    """A row as entry, by what its *header* says; None where header or body do not parse.

    An erased one comes with what its redaction keeps.
    """
    seq, _, _, _, header, salt, body, auth = row
    try:
        head = orjson.loads(header)
        said = erasing_row(db, seq) if salt is None and body is None else None
        data = orjson.loads(body) if said is None else said[1]["keep"]
        id_, kind, stream, actor, at = (head[n] for n in ("id", "kind", "stream", "actor", "at"))
        entry = Entry(seq, id_, kind, stream, actor, at, header, salt, body, data, auth)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    texts = all(type(text) is str for text in entry[1:6])
    return entry if texts and type(data) is dict and seq >= 0 else None


def readable_rows(db: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Every row up to where the file can be read, as ``all_rows``; the checks name the rest."""
    try:
        yield from all_rows(db)
    except sqlite3.DatabaseError:
        return


def read_row(db: sqlite3.Connection, row: tuple[Any, ...]) -> Entry | None:
    """What ``entry_of_row`` gives, in half the time.

    Where the header surely names the kind of the column, actor and time are taken from its
    beginning and the rest is not parsed.
    """
    seq, id_, kind, stream, header, salt, body, auth = row
    try:
        front = ACTOR_AND_TIME(header)
        # Within a text of the header the quotes would be escaped: this is the field.
        if front and _MARKS[kind] in header and body[:1] == b"{" and seq >= 0:
            actor, at = front[1].decode(), front[2].decode()
            data = orjson.loads(body)
            return Entry(seq, id_, kind, stream, actor, at, header, salt, body, data, auth)
    except (KeyError, TypeError, ValueError):
        pass
    return entry_of_row(db, row)


RENDER_ERRORS = (LedgerError, LookupError, TypeError, ValueError, AttributeError, sqlite3.Error)


def source_over_rows(
    tables: sqlite3.Connection,
    db: sqlite3.Connection | None,
    drafts: dict[int, Draft],
    blobs: dict[str, bytes],
) -> Source:
    """Serve renders from ``tables``, which need not be those of the ledger ``db``.

    Bodies and blobs come from the ledger and from what was found on disk: ``drafts`` by the seq
    that they would get, ``blobs`` by digest. What is not there is a LookupError.
    """
    ledger = RowReader(tables if db is None else db)
    loads = orjson.loads

    def body(seq: int) -> dict[str, Any]:
        if seq in drafts:
            return drafts[seq].body
        found = None if db is None else next(ledger.raw_of([seq]), None)
        said = erasing_row(ledger.db, seq) if found is not None and found.body is None else None
        if found is None or (found.body is None and said is None):
            raise LookupError(f"entry {seq} has no body")
        return seen(found, orjson.loads(found.body or b"") if said is None else said[1]["keep"])

    def seen(found: RawEntry, data: dict[str, Any]) -> dict[str, Any]:
        return data if found.kind != MERGED else inner_data(found, data, stored)

    def stored(digest: bytes) -> bytes | None:
        try:
            return blob(digest.hex())
        except LookupError:
            return None

    def bodies(seqs: Sequence[int]) -> dict[int, dict[str, Any]]:
        if db is None or not drafts.keys().isdisjoint(seqs):
            return {}
        try:
            rows = ledger.bodies_of(seqs)
            found = {seq: loads(body) for seq, kind, body in rows if kind != MERGED}
            if len(found) < len(rows):
                merged = [seq for seq, kind, _ in rows if kind == MERGED]
                found |= {
                    one.seq: seen(one, loads(one.body or b"")) for one in ledger.raw_of(merged)
                }
        except (orjson.JSONDecodeError, TypeError, LedgerError):
            return {}
        return found

    def blob(digest: str) -> bytes:
        if digest in blobs:
            return blobs[digest]
        found = ledger.blob(bytes.fromhex(digest))
        if type(found) is not bytes or sha256(found).hexdigest() != digest:  # an index may lie
            raise LookupError(f"blob {digest[:12]}… is not there, or other bytes are")
        return found

    return Source(tables, body, blob, bodies, ledger)


def show_first_rows(db: sqlite3.Connection, size: int) -> None:
    """Let a connection see the first ``size`` entries alone: its queries name this view."""
    db.execute("PRAGMA query_only=OFF")  # the view is the connection's own; the file is read-only
    db.execute(
        f"CREATE TEMP VIEW entries AS SELECT * FROM main.entries WHERE seq BETWEEN 0 AND {size - 1}"
    )
    db.execute("PRAGMA query_only=ON")


# Roots ------------------------------------------------------------------------------------------
#
# The stored subtree roots are used, so that a root costs a few hundred rows at most; the check
# ``sequence`` compares those with the entries.

BLOCK = 256
_HEADERS = "SELECT header FROM entries WHERE seq >= ? AND seq < ? ORDER BY seq"
_BLOCKS = "SELECT hash FROM nodes WHERE level = 1 AND number < ? ORDER BY number"


def roots_of_rows(db: sqlite3.Connection, scan: Scanned, sizes: Iterable[int]) -> dict[int, bytes]:
    """Root of the first so many entries, for each of ``sizes`` that the ledger has.

    One walk over the blocks serves all. Empty where rows are missing: there is no tree then.
    """
    found: dict[int, bytes] = {}
    if not scan.whole:
        return found
    tree, done = Tree(), 0
    for size in sorted({size for size in sizes if 0 <= size <= scan.head[0]}):
        while done < size // BLOCK:
            tree.append(scan.blocks[32 * done : 32 * done + 32])
            done += 1
        tree.full.clear()
        root = root_of_rows(db, tree, size)
        if root is not None:
            found[size] = root
    return found


def block_rows_before(db: sqlite3.Connection, size: int) -> bytes:
    """The stored roots of the full blocks below ``size``; they are as good as what they give."""
    rows = db.execute(_BLOCKS, (size // BLOCK,)).fetchall()
    return b"".join(row[0] for row in rows if type(row[0]) is bytes and len(row[0]) == 32)


def root_of_rows(db: sqlite3.Connection, blocks: Tree, size: int) -> bytes | None:
    """Root at ``size`` from the tree over its full blocks; None where an entry is missing."""
    start = blocks.size * BLOCK
    rows = db.execute(_HEADERS, (start, size)).fetchall()
    if len(rows) != size - start or any(type(header) is not bytes for (header,) in rows):
        return None
    rest = Tree()
    for (header,) in rows:
        rest.append(entry_leaf_hash(header))
    if not blocks.size:
        return rest.root() if size else EMPTY_ROOT
    return Tree(size, [*blocks.stack, *rest.stack]).root()


_KEPT = 2**16  # hashes


class RowHeads:
    """Roots and origins of the ledger at any of its entries, from unverified rows."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._nodes = lru_cache(_KEPT)(read_block_nodes(db))

    def root_at(self, size: int) -> bytes | None:
        """The root of the tree over the first entries; None where they cannot all be read."""
        try:
            return root_of(self._nodes, 0, size)
        except (LedgerError, sqlite3.Error, TypeError, LookupError, OverflowError):
            return None

    def line(self, seq: int) -> str:
        """The name that the ledger has at an entry, '' where it cannot be read.

        A restored copy goes on under another, which each of its headers bears.
        """
        row = one_row(self._db, "SELECT header FROM entries WHERE seq = ?", (seq,))
        try:
            return "" if row is None else parse_header(row[0]).ledger
        except (LedgerError, TypeError):
            return ""
