"""Holds a team's record against its ledger: each file has the bytes that the ledger gives."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress

import orjson

from ledger.bodies import BLOBS, BODIES, Said, format_line, line_path
from ledger.entry import leaf_hash
from ledger.errors import LedgerError, MalformedError
from ledger.merkle import root_of
from ledger.places import RECORD
from ledger.progress import over
from ledger.reader import block_nodes
from ledger.redaction import named_blobs
from ledger.seal import Seal, open_seal
from ledger.tiles import WIDTH, Tile, bundles_of, format_bundle, format_path, tiles_of
from verify.evidence import Evidence
from verify.export_files import MAX_BLOB, SEAL, ExportFiles, FileError
from verify.exported import Loaded, own_keys, read_note
from verify.finding import FilesJudged
from verify.heads import Heads
from verify.rows import columns_of

_MARK = b'"sha256"'
_BROKEN = (
    sqlite3.Error,
    LedgerError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
)


def hold_record(evidence: Evidence) -> None:
    """Judge the record of a team that has its ledger; without a record or a ledger, do nothing."""
    db, root = evidence.db, evidence.root
    if db is None or root is None or not os.path.lexists(f"{root}/{RECORD}"):
        return
    found = Loaded()
    files = ExportFiles(f"{root}/{RECORD}")
    if os.path.islink(f"{root}/{RECORD}") or not os.path.isdir(f"{root}/{RECORD}"):
        found.add(f"{RECORD} is no folder (a symbolic link is none)", RECORD)
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
            row = self.db.execute("SELECT size FROM head").fetchone() or (0,)
            line = Heads(self.db).line(max(0, min(self.seal.size, row[0]) - 1))
            if self.seal.origin != line:
                return f"the record is of the log {self.seal.origin!r}, the ledger is {line!r}"
            if self.seal.size > row[0]:
                return (
                    f"the record was sealed at {self.seal.size} entries, and the ledger holds "
                    f"{row[0]}: it was rolled back, or the record is another's"
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
        columns = columns_of(self.db, "header", "salt", "body", "auth")
        rows = self.db.execute(
            f"SELECT {columns} FROM entries WHERE seq >= ? AND seq < ? ORDER BY seq",
            (first, first + tile.width),
        ).fetchall()
        headers = [row[0] for row in rows]
        yield format_path(tile), format_bundle(headers)
        leaves = b"".join(leaf_hash(header) for header in headers)
        yield format_path(tile._replace(level=0)), leaves
        self.to.entries += len(rows)
        if not self.bodies:
            return
        lines = [format_line(seq, Said(*row[1:])) + b"\n" for seq, row in enumerate(rows, first)]
        yield line_path(tile), b"".join(lines)
        for _, _, body, _ in rows:
            if body is not None and _MARK in body:
                yield from self._blobs(body)

    def _blobs(self, body: bytes) -> Iterator[tuple[str, bytes]]:
        for digest, _ in named_blobs(orjson.loads(body)):
            if digest not in self.named:
                self.named.add(digest)
                key = (bytes.fromhex(digest),)
                row = self.db.execute("SELECT bytes FROM blobs WHERE sha256 = ?", key).fetchone()
                if row is not None and len(row[0]) <= MAX_BLOB:
                    self.to.blobs += 1
                    yield f"{BLOBS}/{digest}", row[0]

    def _upper(self, tile: Tile) -> bytes:
        first = tile.number * WIDTH
        rows = self.db.execute(
            "SELECT hash FROM nodes WHERE level = ? AND number >= ? AND number < ? ORDER BY number",
            (tile.level, first, first + tile.width),
        )
        return b"".join(row[0] for row in rows)

    def _compare(self, path: str, want: bytes) -> None:
        where = f"{RECORD}/{path}"
        try:
            same = self.files.read(path, max(len(want), 1)) == want
        except FileError as error:
            self.to.add(f"{RECORD}/{error}", where)
            return
        if not same:
            self.to.add("it is not what the ledger holds", where)
