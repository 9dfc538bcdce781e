"""Reads an export, or a team's record, into a scratch database with the ledger's own schema.

So every check runs on it as on a ledger. Faults of the files themselves (a tile that is not the
tree's, a malformed line, an unsigned seal) are findings of ``record-agrees``. No file is trusted: a
mutated export gives findings and never an exception. Reads are bounded, no link is followed, and
every unknown name is reported. A team's record is compared with its ledger, file by file and byte
by byte.

A proof file is judged by itself: no ledger is needed, only the log's key.

``tripod.trust.export`` writes the folder, ``tripod.ledger.tlog.tiles`` knows its layout.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from tripod.ledger import (
    RECORD,
    LedgerError,
    LedgerReader,
    MalformedError,
    NotVerifiedError,
    Tree,
    check_consistency,
    commit_body,
    entry_leaf_hash,
    header_auth,
    parse_header,
    root_of,
    tell_over,
)
from tripod.ledger.files import read_plain_file
from tripod.ledger.sqlite.reader import SQLiteReader, read_block_nodes
from tripod.ledger.sqlite.repair import add_blob_row, add_entry_rows, add_head_row
from tripod.ledger.sqlite.schema import migrate_schema
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import ED25519, Note, VerifierKey, parse_note
from tripod.ledger.tlog.policy import Policy, TrustedLog
from tripod.ledger.tlog.proof import MAX_PROOF, parse_proof, verify_proof
from tripod.ledger.tlog.receipt import parse_witness_request
from tripod.ledger.tlog.seal import Seal, open_seal, parse_seal
from tripod.ledger.tlog.tiles import WIDTH, Tile, parse_line
from tripod.ledger.tlog.trailer import KEY_DIGITS, key_digits
from tripod.projections import create_tables
from tripod.verify.check import (
    Coverage,
    FilesJudged,
    Finding,
    FindingTally,
    Report,
    Severity,
    Subject,
    cannot_tell,
    outcome,
)
from tripod.verify.checks import record_agrees
from tripod.verify.evidence import OpenEvidence
from tripod.verify.export_file import ExportFiles as ExportFiles  # noqa: PLC0414 - load_export takes one
from tripod.verify.export_file import FileError as FileError  # noqa: PLC0414 - ... and raises the other
from tripod.verify.rows import RowHeads, RowReader

MAX_BLOB = 1024 * 1024 * 1024  # bytes
_DIGEST = re.compile("[0-9a-f]{64}")
_BROKEN = (sqlite3.Error, LedgerError, LookupError, TypeError, ValueError, AttributeError,
           RecursionError)  # fmt: skip
"""What reading a damaged ledger may raise; other checks name it."""


def is_export(path: str) -> bool:
    """Whether a folder looks like an export: a seal, or tiles."""
    return os.path.lexists(f"{path}/{tiles.SEAL}") or os.path.isdir(f"{path}/{tiles.TILES}")


@dataclass
class LoadedExport:
    """An export that was read or compared, and what was wrong with its files.

    ``front`` is the folder that findings name. ``seal`` is None where none could be read: then
    nothing was loaded. ``keys`` are those that the seal was held against.
    """

    front: str = ""
    tally: FindingTally = field(default_factory=FindingTally)
    seal: Seal | None = None
    bodies: bool = False
    entries: int = 0
    blobs: int = 0
    keys: tuple[VerifierKey, ...] = ()

    def add(self, message: str, path: str = "", severity: Severity = "failure") -> None:
        """Add a finding about a file, or about the folder itself."""
        help_ = record_agrees.STRAY if severity == "warning" else record_agrees.HELP
        where = "/".join(part for part in (self.front, path) if part)
        self.tally.add(Finding(record_agrees.NAME, message, where, (), help_, severity))

    def read_seal(self, files: ExportFiles) -> Note | None:
        """Read the seal into ``self.seal``; None, with a finding, where that is impossible."""
        try:
            note = parse_note(files.seal_note())
            self.seal = parse_seal(note.text)
        except (FileError, MalformedError) as error:
            self.add(f"there is no seal to judge the files by: {error}", tiles.SEAL)
            return None
        return note

    def judge_seal(self, note: Note, keys: Sequence[VerifierKey]) -> None:
        """Ask whether one of ``keys``, if there are any, signed the seal."""
        self.keys = tuple(keys)
        if keys:
            try:
                open_seal(note, keys)
            except LedgerError as error:
                self.add(str(error), tiles.SEAL)

    def judge_name(self, replica: str, db: sqlite3.Connection) -> None:
        """Ask whether a replica of this name made the record: by the first key of its line."""
        if not replica or self.seal is None:
            return
        if not self.bodies:
            self.add("its bodies were taken away: the record of a replica has them", tiles.BODIES)
            return
        first = ""
        for entry in RowReader(db).raw(0, self.seal.size, kinds=("key.set", "team.named")):
            with suppress(LedgerError, ValueError, LookupError, TypeError, AttributeError):
                said = orjson.loads(entry.body or b"")
                if entry.kind == "key.set":
                    vkey = str(said["vkey"])
                    first = first or (vkey * (VerifierKey.parse(vkey).name == self.seal.origin))
                elif parse_header(entry.header).ledger == self.seal.origin:
                    named = str(said["replica"])
                    if named != replica:
                        what = f"the record is that of {named}, and the name of its ref {replica}"
                        self.add(f"{what}: this is not its record", tiles.SEAL)
        if not first:
            self.add(f"no key of {self.seal.origin} is known that {replica} may have", tiles.SEAL)
        elif key_digits(first) != replica[-KEY_DIGITS:]:
            what = f"the record is sealed under the key {first}, and the name {replica}"
            self.add(f"{what} is that of another: this is not its record", tiles.SEAL)

    def add_strays(self, files: ExportFiles, size: int, named: set[str], what: str) -> None:
        """Add what stands there and belongs to no entry of ``what``."""
        for path in files.strays(size, named.__contains__):
            message = f"it belongs to no entry of the {what}, and nothing reads it"
            self.add(message, path, "warning")

    def judged(self) -> FilesJudged:
        """What the check ``record-agrees`` answers from."""
        seen: dict[str, int | str] = {"entries": self.entries, "blobs": self.blobs}
        if self.seal is not None:
            seen = {"sealed": self.seal.size, **seen}
        origin = "" if self.seal is None else self.seal.origin
        return FilesJudged(self.tally, origin, bool(self.keys), seen)


def export_own_keys(db: sqlite3.Connection, seal: Seal) -> list[VerifierKey]:
    """The key that the sealed entries set last for this log: good against others alone."""
    entries = RowReader(db).raw(0, seal.size, kinds=("key.set",), newest_first=True)
    for entry in entries:
        with suppress(LedgerError, ValueError, LookupError, TypeError, AttributeError):
            key = VerifierKey.parse(orjson.loads(entry.body or b"")["vkey"])
            if key.name == seal.origin and key.kind == ED25519:
                return [key]
    return []


def load_export(
    files: ExportFiles, database: str, keys: Sequence[VerifierKey] = ()
) -> LoadedExport:
    """Read the export in ``files`` into a new database file.

    ``keys``: any of these may have signed the seal; by default, the key that the entries set.
    sqlite3.Error: the scratch database cannot be written.
    """
    loaded = LoadedExport()
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}")
        migrate_schema(db)
        create_tables(db)
        guards = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("BEGIN")
        note = loaded.read_seal(files)
        if note is not None and loaded.seal is not None:
            _Loading(files, db, loaded, loaded.seal).run()
            loaded.judge_seal(note, keys or export_own_keys(db, loaded.seal))
            loaded.judge_name(files.replica, db)
        for _, sql in guards:
            db.execute(sql)
        db.execute("COMMIT")
    return loaded


@dataclass
class _Loading:
    """One pass over the files of an export."""

    files: ExportFiles
    db: sqlite3.Connection
    to: LoadedExport
    seal: Seal
    tree: Tree = field(default_factory=Tree)
    head: dict[str, Any] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Load everything; stop at the first bundle that cannot be read."""
        size, whole = self.seal.size, True
        self.to.bodies = self.files.bodies
        bundles = tiles.bundles_of(size)
        for tile in tell_over(bundles, "reading bundles of entries", -(-size // WIDTH)):
            try:
                self._bundle(tile)
            except (FileError, MalformedError, sqlite3.IntegrityError) as error:
                message = f"{error}: what follows it cannot be judged"
                self.to.add(message, tiles.format_tile_path(tile))
                whole = False
                break
        self.to.entries = self.tree.size
        add_head_row(self.db, self.tree, self.head.get("ledger", ""), self.head.get("at", ""))
        if whole:
            self._compare_tree()
        self.to.add_strays(self.files, size, self.named, "export")

    def _bundle(self, tile: Tile) -> None:
        first = tile.number * WIDTH
        headers = tiles.parse_bundle(self.files.tile(tile), tile.width)
        contents = [tiles.LeafContent(None, None)] * tile.width
        if self.to.bodies:
            lines = self.files.read(tiles.body_bundle_path(tile), tiles.MAX_LINES)
            contents = tiles.parse_body_bundle(lines, first, tile.width)
        leaves = [entry_leaf_hash(header) for header in headers]
        self._expect(tile._replace(level=0), b"".join(leaves))
        rows = []
        for seq, (header, content) in enumerate(zip(headers, contents, strict=True), first):
            rows.append((seq, *self._columns(seq, header), header, *content))
            self._blobs(content.body)
        add_entry_rows(self.db, rows)
        for leaf in leaves:
            self.tree.append(leaf)

    def _columns(self, seq: int, header: bytes) -> tuple[str, str, str]:
        """Id, kind and stream as the header has them; where it has none, its check names that."""
        with suppress(orjson.JSONDecodeError, LookupError, TypeError):
            head = orjson.loads(header)
            columns = (head["id"], head["kind"], head["stream"])
            if all(type(text) is str for text in (*columns, head["ledger"], head["at"])):
                self.head = head
                return columns
        return (f"unreadable {seq}", "", "")

    def _blobs(self, body: bytes | None) -> None:
        """Load the blobs that a body names; one that is not there is named by its own check."""
        try:
            named = list(tiles.bundle_blobs(body))
        except (orjson.JSONDecodeError, RecursionError):
            return
        for digest in named:
            if digest in self.named:
                continue
            if not _DIGEST.fullmatch(digest):
                self.to.add("a body names a blob by what is no digest", tiles.BLOBS)
                continue
            self.named.add(digest)
            path = tiles.bundle_blob_path(digest)
            try:
                data = self.files.read(path, MAX_BLOB)
            except FileError as error:
                self.to.add(str(error), path)
                continue
            add_blob_row(self.db, bytes.fromhex(digest), data)
            self.to.blobs += 1

    def _expect(self, tile: Tile, want: bytes) -> None:
        try:
            if self.files.tile(tile) == want:
                return
            message = "its hashes are not those of the entries"
        except FileError as error:
            message = str(error)
        self.to.add(message, tiles.format_tile_path(tile))

    def _compare_tree(self) -> None:
        """The tiles above the leaves, and the root, against those that the entries give."""
        above: dict[int, list[bytes]] = {}
        for level, _, digest in self.tree.full:
            above.setdefault(level, []).append(digest)
        for tile in tiles.tiles_of(self.seal.size):
            if tile.level:
                first = tile.number * WIDTH
                self._expect(tile, b"".join(above[tile.level][first : first + tile.width]))
        root = self.tree.root()
        if root != self.seal.root:
            self.to.add(
                f"the entries have the root {root.hex()[:16]}… at {self.seal.size}, the seal says "
                f"{self.seal.root.hex()[:16]}…: they are not those that were sealed",
                tiles.SEAL,
            )
        if self.seal.size and self.head.get("ledger") != self.seal.origin:
            self.to.add(
                f"the seal is of {self.seal.origin!r}, the newest entry is one of "
                f"{self.head.get('ledger', '')!r}",
                tiles.SEAL,
            )


def compare_record_files(evidence: OpenEvidence) -> None:
    """Compare the record of a team with its ledger; without one of them, do nothing."""
    db, root = evidence.db, evidence.root
    if db is None or root is None or not os.path.lexists(f"{root}/{RECORD}"):
        return
    found, files = LoadedExport(RECORD), ExportFiles(f"{root}/{RECORD}")
    if os.path.islink(files.directory) or not os.path.isdir(files.directory):
        found.add(f"{RECORD} is no folder (a symbolic link does not count)")
    else:
        note = found.read_seal(files)
        if note is not None and found.seal is not None:
            keys: Sequence[VerifierKey] = ()
            with suppress(*_BROKEN):  # entries that cannot be read are what other checks name
                keys = evidence.database.keys or export_own_keys(db, found.seal)
            found.judge_seal(note, keys)
            problem = _other_history(db, found.seal)
            if problem is None:
                if not files.bodies:
                    found.add("its bodies were taken away: no ledger can be restored from it")
                _compare(SQLiteReader(db), files, found, found.seal.size)
            else:
                found.add(problem, tiles.SEAL)
    evidence.record = found.judged()


def _other_history(db: sqlite3.Connection, seal: Seal) -> str | None:
    """Why the record is not of this ledger, so that its files say nothing; None: it is."""
    try:
        size = SQLiteReader(db).size
        line = RowHeads(db).line(max(0, min(seal.size, size) - 1))
        if seal.origin != line:
            return f"the record is of the log {seal.origin!r}, the ledger is {line!r}"
        if seal.size > size:
            return (
                f"the record was sealed at {seal.size} entries, and the ledger holds {size}: it "
                "was rolled back, or the record is another's"
            )
        root = root_of(read_block_nodes(db), 0, seal.size)
    except _BROKEN as error:
        return f"the ledger cannot be compared with its record: {error}"
    if root == seal.root:
        return None
    return (
        f"at {seal.size} entries the ledger has another root than the seal of its record: one of "
        "them was rewritten"
    )


def _compare(ledger: LedgerReader, files: ExportFiles, found: LoadedExport, size: int) -> None:
    """Compare every file; a ledger that cannot be read is what other checks name."""
    named: set[str] = set()
    for tile in tell_over(list(tiles.walk(size)), "comparing the record"):
        try:
            for path, want in _expected(ledger, tile, files, found, named):
                try:
                    if files.read(path, max(len(want), 1)) != want:
                        found.add("it is not what the ledger holds", path)
                except FileError as error:
                    found.add(f"{RECORD}/{error}", path)
        except _BROKEN as error:
            found.add(
                f"the ledger cannot be compared with it: {error}", tiles.format_tile_path(tile)
            )
    found.add_strays(files, size, named, "record")


def _expected(
    ledger: LedgerReader, tile: Tile, files: ExportFiles, found: LoadedExport, named: set[str]
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of the files at a tile, and of the blobs that no earlier one ``named``."""
    first = tile.number * WIDTH
    if tile.level >= 0:
        hashes = ledger.hashes(tile.level, first, first + tile.width)
        yield tiles.format_tile_path(tile), b"".join(hashes)
        return
    entries = list(ledger.raw(first, first + tile.width))
    found.entries += len(entries)
    yield from tiles.bundle_files(tile, entries, bodies=files.bodies)
    for entry in entries if files.bodies else ():
        for digest in tiles.bundle_blobs(entry.body):
            if digest not in named:
                named.add(digest)
                blob = ledger.blob(bytes.fromhex(digest))
                if blob is not None and len(blob) <= MAX_BLOB:
                    found.blobs += 1
                    yield tiles.bundle_blob_path(digest), blob


# Proof files -----------------------------------------------------------------------------------


NAME = "proof"
HELP = "ask who gave you the file for another one, and for the log's key by another way"
_FRONTS = (b"c2sp.org/tlog-proof@", b"old ")


def is_proof(path: str) -> bool:
    """Whether a file begins as a proof does."""
    try:
        return read_plain_file(path, 32, named=True).startswith(_FRONTS)
    except OSError:
        return False


def judge_proof(path: str, keys: Sequence[VerifierKey], old: Seal | None = None) -> Report:
    """Judge the proof in a file by the ``keys`` of trusted logs; without one, *cannot tell*.

    A proof of growth is held against the seal ``old``.
    """
    data = read_plain_file(path, MAX_PROOF, named=True)
    subject = Subject("", os.path.realpath(path), None, "")
    reason = ""
    if not keys:
        reason = "no key is known to hold the seal against: give the log's with --key"
    elif data.startswith(b"old ") and old is None:
        reason = "a proof of growth is held against an older seal: `tripod verify --old SEAL`"
    if reason:
        return Report(path, (cannot_tell(NAME, reason, required=True),), subject=subject)
    head, found = None, []
    told: list[str] = []
    try:
        if old is not None and data.startswith(b"old "):
            seal = _growth(data, keys, old, told)
        else:
            seal = _inclusion(data, keys, told)
        head = (seal.size, seal.root.hex())
    except LedgerError as error:
        told, found = [], [Finding(NAME, str(error), path, help=HELP)]
    seen: Coverage = {}
    for word, _, value in (text.partition(" ") for text in told):
        seen[word] = value
    return Report(path, (outcome(NAME, found, seen, required=True),), head, subject=subject)


def _inclusion(data: bytes, keys: Sequence[VerifierKey], told: list[str]) -> Seal:
    proof = parse_proof(data)
    header, _, line = (proof.extra or b"").partition(b"\n")
    if not header:
        raise MalformedError(
            "proof: it holds no entry (the extra line), so there is nothing to show"
        )
    head = parse_header(header)
    policy = Policy(tuple(TrustedLog(key) for key in keys), (), (), None)
    seal = verify_proof(proof, entry_leaf_hash(header), policy).seal
    if head.seq != proof.seq or head.ledger != seal.origin:
        raise NotVerifiedError(f"proof: the entry says that it is {head.seq} of {head.ledger!r}")
    told += [f"entry {proof.seq}", f"kind {head.kind}", f"actor {head.actor}", f"at {head.at}"]
    if line:
        salt, body, auth = parse_line(line, proof.seq)
        if salt is None or body is None or commit_body(salt, head.kind, body) != head.body:
            raise NotVerifiedError("proof: the body is not the one that the entry commits to")
        if (None if auth is None else header_auth(auth)) != head.auth:
            raise NotVerifiedError(
                "proof: the signature record is not the one that the entry names"
            )
        told.append(f"body {orjson.dumps(orjson.loads(body)).decode()}")
    return seal


def _growth(data: bytes, keys: Sequence[VerifierKey], old: Seal, told: list[str]) -> Seal:
    growth = parse_witness_request(data)
    seal = open_seal(growth.note, keys).seal
    if (growth.old, seal.origin) != (old.size, old.origin):
        raise NotVerifiedError(
            f"growth: it is of {seal.origin!r} since {growth.old} entries, the older seal of "
            f"{old.origin!r} at {old.size}"
        )
    if not check_consistency(old.size, old.root, seal.size, seal.root, growth.hashes):
        raise NotVerifiedError(
            "growth: the older log is not the beginning of the newer one: it was rewritten"
        )
    told += [f"from {old.size}", f"to {seal.size}"]
    return seal
