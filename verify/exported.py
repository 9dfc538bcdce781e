"""Reads an export, or a team's record, into a scratch database with the ledger's own schema.

So every check runs on it as on a ledger. What the files themselves have wrong (a tile that is not
the tree's, a line of another form, a seal that nobody signed) is told as findings of
``record-agrees``. Nothing is believed: a mutated export gives findings and never an exception.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import orjson

from ledger.bodies import BLOBS, BODIES, Said, parse_lines
from ledger.entry import leaf_hash
from ledger.errors import LedgerError, MalformedError
from ledger.merkle import Tree
from ledger.note import MAX_NOTE, Note, parse_note
from ledger.progress import over
from ledger.redaction import named_blobs
from ledger.schema import migrate
from ledger.seal import Seal, open_seal, parse_seal
from ledger.tiles import WIDTH, Tile, bundles_of, format_path, parse_bundle, tiles_of
from ledger.vkey import ED25519, VerifierKey
from projections.tables import create_tables
from verify.checks import record_agrees
from verify.export_files import MAX_BLOB, SEAL, ExportFiles, FileError
from verify.finding import Finding, Severity, Tally

_INSERT = (
    "INSERT INTO entries (seq, id, kind, stream, header, salt, body, auth)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_MARK = b'"sha256"'
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass
class Loaded:
    """An export in a database, and what was wrong with its files.

    ``seal`` is None where none could be read: then nothing was loaded. ``bodies`` says whether the
    export has any. ``keys`` are those that the seal was held against; without one, nobody vouches.
    """

    tally: Tally = field(default_factory=Tally)
    seal: Seal | None = None
    bodies: bool = False
    entries: int = 0
    blobs: int = 0
    keys: tuple[VerifierKey, ...] = ()

    def add(self, message: str, where: str, severity: Severity = "failure") -> None:
        """Tell what is wrong with the files."""
        help_ = record_agrees.STRAY if severity == "warning" else record_agrees.HELP
        self.tally.add(Finding(record_agrees.NAME, message, where, (), help_, severity))


def read_note(files: ExportFiles) -> tuple[Note, Seal]:
    """The seal of an export, whoever signed it.

    Raises:
        FileError: it is missing or cannot be read.
        MalformedError: it is no seal.
    """
    note = parse_note(files.read(SEAL, MAX_NOTE))
    return note, parse_seal(note.text)


def load(directory: str, database: str, keys: Sequence[VerifierKey] = ()) -> Loaded:
    """Read the export in ``directory`` into a new database file.

    Args:
        directory: the export.
        database: path of a file that is not there.
        keys: who may have signed the seal; where none is given, the key that the entries set.

    Raises:
        sqlite3.Error: the scratch database cannot be written.
    """
    loaded = Loaded()
    files = ExportFiles(directory)
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}")
        migrate(db)
        create_tables(db)
        guards = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("BEGIN")
        try:
            note, loaded.seal = read_note(files)
        except (FileError, MalformedError) as error:
            loaded.add(f"there is no seal to judge the files by: {error}", SEAL)
        else:
            _Loading(files, db, loaded, loaded.seal).run()
            _judge_seal(loaded, note, keys or own_keys(db, loaded.seal))
        for _, sql in guards:
            db.execute(sql)
        db.execute("COMMIT")
    return loaded


def own_keys(db: sqlite3.Connection, seal: Seal) -> list[VerifierKey]:
    """The key that the sealed entries set last for this log: good against others alone."""
    sql = "SELECT body FROM entries WHERE kind = 'key.set' AND seq < ? ORDER BY seq DESC"
    rows = db.execute(sql, (seal.size,))
    for (body,) in rows:
        try:
            key = VerifierKey.parse(orjson.loads(body)["vkey"])
        except (LedgerError, ValueError, LookupError, TypeError, AttributeError):
            continue
        if key.name == seal.origin and key.kind == ED25519:
            return [key]
    return []


def _judge_seal(loaded: Loaded, note: Note, keys: Sequence[VerifierKey]) -> None:
    loaded.keys = tuple(keys)
    if keys:
        try:
            open_seal(note, keys)
        except LedgerError as error:
            loaded.add(str(error), SEAL)


class _Loading:
    """One pass over the files of an export."""

    def __init__(self, files: ExportFiles, db: sqlite3.Connection, to: Loaded, seal: Seal) -> None:
        self.files = files
        self.db = db
        self.to = to
        self.seal = seal
        self.tree = Tree()
        self.head: dict[str, Any] = {}
        self.named: set[str] = set()

    def run(self) -> None:
        """Load everything; stop at the first bundle that cannot be read."""
        size = self.seal.size
        self.to.bodies = self.files.has(BODIES)
        whole = True
        for tile in over(bundles_of(size), "reading bundles of entries", -(-size // WIDTH)):
            try:
                self._bundle(tile)
            except (FileError, MalformedError, sqlite3.IntegrityError) as error:
                self.to.add(f"{error}: what follows it cannot be judged", format_path(tile))
                whole = False
                break
        self.to.entries = self.tree.size
        self._finish()
        if whole:
            self._compare_tree()
        for path in self.files.strays(size, self.named.__contains__):
            self.to.add("it belongs to no entry of the export, and nothing reads it",
                        path, "warning")  # fmt: skip

    def _bundle(self, tile: Tile) -> None:
        first = tile.number * WIDTH
        headers = parse_bundle(self.files.tile(tile), tile.width)
        bodies = [Said(None, None)] * tile.width
        if self.to.bodies:
            bodies = parse_lines(self.files.lines(tile), first, tile.width)
        leaves = [leaf_hash(header) for header in headers]
        self._expect(tile._replace(level=0), b"".join(leaves))
        rows = []
        for seq, (header, said) in enumerate(zip(headers, bodies, strict=True), first):
            rows.append((seq, *self._columns(seq, header), header, *said))
            if said.body is not None and _MARK in said.body:
                self._blobs(said.body)
        self._insert(rows)
        for leaf in leaves:
            self.tree.append(leaf)

    def _columns(self, seq: int, header: bytes) -> tuple[str, str, str]:
        """Id, kind and stream as the header has them; where it has none, its check names that."""
        try:
            head = orjson.loads(header)
            columns = (head["id"], head["kind"], head["stream"])
            if all(type(text) is str for text in (*columns, head["ledger"], head["at"])):
                self.head = head
                return columns
        except (orjson.JSONDecodeError, LookupError, TypeError):
            pass
        return (f"unreadable {seq}", "", "")

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        self.db.execute("SAVEPOINT bundle")
        try:
            self.db.executemany(_INSERT, rows)
        except sqlite3.IntegrityError:
            self.db.execute("ROLLBACK TO bundle")
            for row in rows:
                try:
                    self.db.execute(_INSERT, row)
                except sqlite3.IntegrityError as error:
                    raise sqlite3.IntegrityError(
                        f"entry {row[0]} has an id that stands before it"
                    ) from error
        finally:
            self.db.execute("RELEASE bundle")

    def _blobs(self, body: bytes) -> None:
        """Load the blobs that a body names; one that is not there is named by its own check."""
        try:
            named = [digest for digest, _ in named_blobs(orjson.loads(body))]
        except (orjson.JSONDecodeError, RecursionError):
            return
        for digest in named:
            if digest in self.named:
                continue
            if not _DIGEST.fullmatch(digest):
                self.to.add("a body names a blob by what is no digest", BLOBS)
                continue
            self.named.add(digest)
            try:
                data = self.files.read(f"{BLOBS}/{digest}", MAX_BLOB)
            except FileError as error:
                self.to.add(str(error), f"{BLOBS}/{digest}")
                continue
            sql = "INSERT INTO blobs (sha256, bytes) VALUES (?, ?)"
            self.db.execute(sql, (bytes.fromhex(digest), data))
            self.to.blobs += 1

    def _expect(self, tile: Tile, want: bytes) -> None:
        try:
            have = self.files.tile(tile)
        except FileError as error:
            self.to.add(str(error), format_path(tile))
            return
        if have != want:
            self.to.add("its hashes are not those of the entries", format_path(tile))

    def _finish(self) -> None:
        """What stands beside the rows in a ledger: the stored roots and the head."""
        tree, head = self.tree, self.head
        self.db.executemany("INSERT INTO nodes VALUES (?, ?, ?)", tree.full)
        if not tree.size:
            return
        last = self.db.execute("SELECT header FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        self.db.execute(
            "INSERT INTO head VALUES (0, ?, ?, ?, ?, ?, ?, ?)",
            (
                tree.size, head.get("ledger", ""), leaf_hash(last[0]).hex(), head.get("at", ""),
                b"".join(tree.stack), tree.size, tree.size,
            ),
        )  # fmt: skip

    def _compare_tree(self) -> None:
        """The tiles above the leaves, and the root, against those that the entries give."""
        above: dict[int, list[bytes]] = {}
        for level, _, digest in self.tree.full:
            above.setdefault(level, []).append(digest)
        for tile in tiles_of(self.seal.size):
            if tile.level:
                first = tile.number * WIDTH
                self._expect(tile, b"".join(above[tile.level][first : first + tile.width]))
        root = self.tree.root()
        if root != self.seal.root:
            message = (
                f"the entries have the root {root.hex()[:16]}… at {self.seal.size}, the seal says "
                f"{self.seal.root.hex()[:16]}…: they are not those that were sealed"
            )
            self.to.add(message, SEAL)
        if self.seal.size and self.head.get("ledger") != self.seal.origin:
            message = (
                f"the seal is of {self.seal.origin!r}, the newest entry is one of "
                f"{self.head.get('ledger', '')!r}"
            )
            self.to.add(message, SEAL)
