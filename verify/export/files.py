"""Reads an export, or a team's record, into a scratch database with the ledger's own schema.

So every check runs on it as on a ledger. Faults of the files themselves (a tile that is not the
tree's, a malformed line, an unsigned seal) are findings of ``record-agrees``. No file is trusted: a
mutated export gives findings and never an exception. Reads are bounded, no link is followed, and
every unknown name is reported. A team's record is compared with its ledger, file by file and byte
by byte.

For the verifier alone; ``tripod.trust.export`` writes the folder, ``docs/formats/record.md``
specifies it.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from tripod.ledger import RECORD, LedgerError, MalformedError, Tree, TripodError, leaf_hash, root_of
from tripod.ledger.progress import over
from tripod.ledger.sqlite.erase import named_blobs
from tripod.ledger.sqlite.reader import SQLiteReader, block_nodes
from tripod.ledger.sqlite.repair import add_blob, add_entries, add_head
from tripod.ledger.sqlite.schema import migrate
from tripod.ledger.tlog.note import ED25519, MAX_NOTE, Note, VerifierKey, parse_note
from tripod.ledger.tlog.seal import Seal, open_seal, parse_seal
from tripod.ledger.tlog.tiles import (
    BLOBS,
    BODIES,
    ENTRIES,
    MAX_ENTRY,
    MAX_LINES,
    WIDTH,
    LeafContent,
    Tile,
    bundles_of,
    format_bundle,
    format_line,
    format_path,
    line_path,
    parse_bundle,
    parse_line_path,
    parse_lines,
    parse_path,
    tiles_of,
)
from tripod.projections import Disk, UnreadableError, create_tables
from tripod.verify.check import FilesJudged, Finding, Severity, Tally
from tripod.verify.checks import record_agrees
from tripod.verify.evidence import OpenEvidence
from tripod.verify.rows import EvidenceReader
from tripod.verify.scan.roots import Heads

SEAL = "checkpoint"
MAX_BLOB = 1024 * 1024 * 1024  # bytes
_TILES = "tile"
_LIMITS = {ENTRIES: WIDTH * (MAX_ENTRY + 2)}
_DEEP = 64  # folders in each other: ours are never nearly so deep


class FileError(TripodError):
    """A file of the export that is missing, or cannot be read; the message names it."""


def is_export(path: str) -> bool:
    """Whether a folder looks like an export: a seal, or tiles."""
    return os.path.lexists(f"{path}/{SEAL}") or os.path.isdir(f"{path}/{_TILES}")


class ExportFiles:
    """One export, read-only."""

    def __init__(self, directory: str) -> None:
        """Nothing is read yet."""
        self.directory = directory
        self._disk = Disk(directory, steady=True)

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a regular file.

        Raises:
            FileError: it is missing (a link does not count), it is larger, or it cannot be read.
        """
        try:
            data = self._disk.read(path, limit)
        except UnreadableError as error:
            raise FileError(str(error)) from error
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}") from error
        if data is None:
            raise FileError(f"{path} is missing")
        return data

    def tile(self, tile: Tile) -> bytes:
        """The bytes of a tile or an entry bundle (FileError: see ``read``)."""
        return self.read(format_path(tile), _LIMITS.get(tile.level, 32 * tile.width))

    def lines(self, tile: Tile) -> bytes:
        """The bytes of the bodies of an entry bundle (FileError: see ``read``)."""
        return self.read(line_path(tile), MAX_LINES)

    def has(self, folder: str) -> bool:
        """Whether something stands at the path of a folder."""
        return os.path.lexists(f"{self.directory}/{folder}")

    def strays(self, size: int, named: Callable[[str], bool]) -> Iterator[str]:
        """What stands there and belongs to no export of ``size`` entries.

        ``named(digest)`` says whether a body names a blob. Folders that are empty do not count.
        """
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            front = f"{folder}/" if folder else ""
            try:
                files, folders, strange = self._disk.sorted_out(folder)
            except OSError:
                yield f"{front} cannot be read"
                continue
            yield from (front + name for name in strange)
            for name in files:
                if not belongs(front + name, size, named):
                    yield front + name
            inner = [front + name for name in folders]
            if front.count("/") < _DEEP:
                waiting += reversed(inner)
            else:
                yield from inner


def belongs(path: str, size: int, named: Callable[[str], bool]) -> bool:
    """Whether the file ``path`` is one of an export of ``size`` entries."""
    top, _, rest = path.partition("/")
    if top == BLOBS:
        return named(rest)
    if top not in (_TILES, BODIES):
        return path == SEAL
    try:
        tile = parse_line_path(path) if top == BODIES else parse_path(path)
    except MalformedError:
        return False
    there = size >> 8 * max(0, tile.level)
    return tile.width == min(WIDTH, there - tile.number * WIDTH)


# Exported ---------------------------------------------------------------------------------------


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
    """The seal of an export, no matter who signed it.

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
    entries = EvidenceReader(db).raw(0, seal.size, kinds=("key.set",), newest_first=True)
    for entry in entries:
        try:
            key = VerifierKey.parse(orjson.loads(entry.body or b"")["vkey"])
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
        add_head(self.db, self.tree, self.head.get("ledger", ""), self.head.get("at", ""))
        if whole:
            self._compare_tree()
        for path in self.files.strays(size, self.named.__contains__):
            self.to.add("it belongs to no entry of the export, and nothing reads it",
                        path, "warning")  # fmt: skip

    def _bundle(self, tile: Tile) -> None:
        first = tile.number * WIDTH
        headers = parse_bundle(self.files.tile(tile), tile.width)
        bodies = [LeafContent(None, None)] * tile.width
        if self.to.bodies:
            bodies = parse_lines(self.files.lines(tile), first, tile.width)
        leaves = [leaf_hash(header) for header in headers]
        self._expect(tile._replace(level=0), b"".join(leaves))
        rows = []
        for seq, (header, said) in enumerate(zip(headers, bodies, strict=True), first):
            rows.append((seq, *self._columns(seq, header), header, *said))
            if said.body is not None and _MARK in said.body:
                self._blobs(said.body)
        add_entries(self.db, rows)
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
            add_blob(self.db, bytes.fromhex(digest), data)
            self.to.blobs += 1

    def _expect(self, tile: Tile, want: bytes) -> None:
        try:
            have = self.files.tile(tile)
        except FileError as error:
            self.to.add(str(error), format_path(tile))
            return
        if have != want:
            self.to.add("its hashes are not those of the entries", format_path(tile))

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


# Recorded ---------------------------------------------------------------------------------------

_BROKEN = (
    sqlite3.Error,
    LedgerError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
)


def hold_record(evidence: OpenEvidence) -> None:
    """Judge the record of a team that has its ledger; without a record or a ledger, do nothing."""
    db, root = evidence.db, evidence.root
    if db is None or root is None or not os.path.lexists(f"{root}/{RECORD}"):
        return
    found = Loaded()
    files = ExportFiles(f"{root}/{RECORD}")
    if os.path.islink(f"{root}/{RECORD}") or not os.path.isdir(f"{root}/{RECORD}"):
        found.add(f"{RECORD} is no folder (a symbolic link does not count)", RECORD)
    else:
        try:
            note, found.seal = read_note(files)
        except (FileError, MalformedError) as error:
            found.add(f"there is no seal to judge the files by: {error}", f"{RECORD}/{SEAL}")
        else:
            with suppress(*_BROKEN):  # entries that cannot be read are what other checks name
                found.keys = tuple(evidence.keys or own_keys(db, found.seal))
            if found.keys:
                try:
                    open_seal(note, found.keys)
                except LedgerError as error:
                    found.add(str(error), f"{RECORD}/{SEAL}")
            _Holding(db, files, found, found.seal).run()
    evidence.record = judged(found)


def judged(found: Loaded) -> FilesJudged:
    """What the check ``record-agrees`` answers from."""
    seal = found.seal
    seen: dict[str, int | str] = {"entries": found.entries, "blobs": found.blobs}
    if seal is not None:
        seen = {"sealed": seal.size, **seen}
    return FilesJudged(found.tally, "" if seal is None else seal.origin, bool(found.keys), seen)


class _Holding:
    """One pass over the ledger and the files of its record."""

    def __init__(self, db: sqlite3.Connection, files: ExportFiles, to: Loaded, seal: Seal) -> None:
        self.db = db
        self.ledger = SQLiteReader(db)
        self.files = files
        self.to = to
        self.seal = seal
        self.bodies = files.has(BODIES)
        self.named: set[str] = set()

    def run(self) -> None:
        """Compare everything; a ledger that cannot be read is what other checks name."""
        size = self.seal.size
        problem = self._problem()
        if problem is not None:
            self.to.add(problem, f"{RECORD}/{SEAL}")
            return
        for tile in over(bundles_of(size), "comparing the record", -(-size // WIDTH)):
            try:
                for path, want in self._bundle(tile):
                    self._compare(path, want)
            except _BROKEN as error:
                where = f"{RECORD}/{format_path(tile)}"
                self.to.add(f"the ledger cannot be compared with it: {error}", where)
        for tile in tiles_of(size):
            if tile.level:
                try:
                    self._compare(format_path(tile), self._upper(tile))
                except _BROKEN as error:
                    where = f"{RECORD}/{format_path(tile)}"
                    self.to.add(f"the ledger cannot be compared with it: {error}", where)
        for path in self.files.strays(size, self.named.__contains__):
            what = "it belongs to no entry of the record, and nothing reads it"
            self.to.add(what, f"{RECORD}/{path}", "warning")

    def _problem(self) -> str | None:
        try:
            size = self.ledger.size
            line = Heads(self.db).line(max(0, min(self.seal.size, size) - 1))
            if self.seal.origin != line:
                return f"the record is of the log {self.seal.origin!r}, the ledger is {line!r}"
            if self.seal.size > size:
                return (
                    f"the record was sealed at {self.seal.size} entries, and the ledger holds "
                    f"{size}: it was rolled back, or the record is another's"
                )
            root = root_of(block_nodes(self.db), 0, self.seal.size)
        except _BROKEN as error:
            return f"the ledger cannot be compared with its record: {error}"
        if root != self.seal.root:
            return (
                f"at {self.seal.size} entries the ledger has another root than the seal of its "
                "record: one of them was rewritten"
            )
        return None

    def _bundle(self, tile: Tile) -> Iterator[tuple[str, bytes]]:
        first = tile.number * WIDTH
        entries = list(self.ledger.raw(first, first + tile.width))
        headers = [entry.header for entry in entries]
        yield format_path(tile), format_bundle(headers)
        leaves = b"".join(leaf_hash(header) for header in headers)
        yield format_path(tile._replace(level=0)), leaves
        self.to.entries += len(entries)
        if not self.bodies:
            return
        said = [LeafContent(entry.salt, entry.body, entry.auth) for entry in entries]
        lines = [format_line(seq, one) + b"\n" for seq, one in enumerate(said, first)]
        yield line_path(tile), b"".join(lines)
        for entry in entries:
            if entry.body is not None and _MARK in entry.body:
                yield from self._blobs(entry.body)

    def _blobs(self, body: bytes) -> Iterator[tuple[str, bytes]]:
        for digest, _ in named_blobs(orjson.loads(body)):
            if digest not in self.named:
                self.named.add(digest)
                blob = self.ledger.blob(bytes.fromhex(digest))
                if blob is not None and len(blob) <= MAX_BLOB:
                    self.to.blobs += 1
                    yield f"{BLOBS}/{digest}", blob

    def _upper(self, tile: Tile) -> bytes:
        first = tile.number * WIDTH
        return b"".join(self.ledger.hashes(tile.level, first, first + tile.width))

    def _compare(self, path: str, want: bytes) -> None:
        where = f"{RECORD}/{path}"
        try:
            same = self.files.read(path, max(len(want), 1)) == want
        except FileError as error:
            self.to.add(f"{RECORD}/{error}", where)
            return
        if not same:
            self.to.add("it is not what the ledger holds", where)
