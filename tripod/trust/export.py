"""Writes the ledger as plain files: a sealed tlog-tiles folder, with the bodies if requested.

``tripod.ledger.tlog.tiles`` knows the layout. The same seal gives the same files, whether they are
written at once or the folder grows with the ledger; an export adds to it only what is new.

The order of durability, and what it means if we die between two steps:

1. tiles, bundles, bodies and blobs, each under a temporary name, on the disk, then renamed; one
   wait for the disk serves many files. Dead here: files lie there that no seal names yet; the old
   seal is whole, and the next export writes what is missing.
2. ``checkpoint``, the seal, in one rename. From here the folder is the larger one.
3. partial tiles and bundles that larger ones replaced are removed. Dead here: the next export
   removes them; until then they are files that nobody reads.

An export with bodies (the record in ``.nbs/record`` is one) holds them in ``bodies/``, one JSON
line an entry, and long texts in ``blobs/``, by digest. A redaction takes erased bodies out and
leaves headers, tiles and seals: an erased entry's line is its number alone, with its signature
record if it was signed. If we die there, doing it again finishes it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

import orjson

from tripod.errors import LedgerDamagedError, LedgerError, MalformedError, RefusedError
from tripod.ledger import (
    RECORD,
    LedgerReader,
    Nodes,
    RawEntry,
    Tree,
    commit_body,
    entry_leaf_hash,
    header_auth,
    root_of,
    tell_over,
)
from tripod.ledger.files import hold_folder_lock, read_plain_file, sync_path
from tripod.ledger.sqlite.reader import SQLiteReader, read_block_nodes, read_only
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import MAX_NOTE
from tripod.ledger.tlog.seal import Seal, read_seal
from tripod.ledger.tlog.tiles import BLOBS, BODIES, SEAL, TILES, WIDTH, Tile
from tripod.projections.disk import TEMPORARY, Disk, UnreadableError, write_missing_to_disk
from tripod.projections.projection import File

if TYPE_CHECKING:
    from tripod.ledger.sqlite.store import SQLiteStore


WAIT_MS = 10_000  # how long a redaction waits for who reads older pages of the database
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PUBLIC = 0o644
_PRIVATE = 0o600  # what people wrote: as the chat files
_BATCH = 16 * 1024 * 1024  # bytes kept in memory
_FEW = 32  # files: below, each is waited for by itself
_HINT = "nothing of it was sealed; `tripod verify` says what is wrong"
_UNSEALED = "nothing was exported; `tripod verify` judges the ledger"


class Staging(Protocol):
    """Where an export goes; ``present`` are the paths of the files that are there already."""

    present: set[str]

    def put(self, path: str, data: bytes) -> None:
        """Have a file written, unless it is there with these bytes."""


class _FolderStaging:
    """What waits to be written to ``disk``; ``present`` are the paths that are there already."""

    def __init__(self, disk: Disk, present: set[str]) -> None:
        self.disk = disk
        self.present = present
        self.written = 0
        self._files: dict[str, File] = {}
        self._bytes = 0

    def put(self, path: str, data: bytes) -> None:
        """Have a file written, unless it is there with these bytes."""
        if path in self._files:
            return
        there = self.disk.stat(path) if path in self.present else None
        same_size = there is not None and there.size == len(data)
        if same_size and self.disk.read(path, len(data)) == data:
            return
        mode = _PRIVATE if path.startswith((f"{BODIES}/", f"{BLOBS}/")) else _PUBLIC
        self._files[path] = File(data, mode)
        self._bytes += len(data)
        if self._bytes > _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits, and wait until the disk has it, names included."""
        fresh = [(path, file) for path, file in self._files.items() if path not in self.present]
        if len(fresh) < _FEW:
            fresh = []
        placed = write_missing_to_disk(self.disk, fresh) if fresh else []
        # A place that somebody filled meanwhile is written over as one whose bytes differ.
        done = {path for (path, _), stat in zip(fresh, placed, strict=True) if stat is not None}
        for path, file in self._files.items():
            if path not in done:
                self.disk.write(path, file, sync=False)
        # The folders above each file, the outermost ('') too: their names may be new.
        parts = {tuple(path.split("/")[:-1]) for path in self._files}
        for folder in sorted({"/".join(one[:n]) for one in parts for n in range(len(one) + 1)}):
            self.disk.sync_folder(folder)
        self.written += len(self._files)
        self.present.update(self._files)
        self._files, self._bytes = {}, 0


class Exported(NamedTuple):
    """What an export did: entries under the seal, files written, and files removed."""

    size: int
    written: int
    removed: int


def export(database: str, directory: str, note: str, *, bodies: bool) -> Exported:
    """Make ``directory`` the log under the seal in ``note``, with bodies and blobs or without.

    The database is read as of one moment. The directory is made if it is not there; an export of
    the same ledger in it is grown. No signature of the note is checked here.

    Raises RefusedError where the folder holds something else, or the seal is not this ledger's;
    LedgerDamagedError where the ledger is not what its tree or a commitment says; MalformedError
    where the note is no seal; OSError where the disk refuses.
    """
    seal = read_seal(note.encode())
    with closing(read_only(database)) as db:
        ledger = SQLiteReader(db)
        nodes_to_export(ledger, seal)
        os.makedirs(directory, exist_ok=True)
        with hold_folder_lock(directory):
            # Begun here: what was erased since is erased for us, or waits to be forgotten.
            db.execute("BEGIN")
            nodes_to_export(ledger, seal)
            disk = Disk(os.path.realpath(directory), steady=True)
            present = _present(disk, directory, bodies=bodies)
            since = _grown(disk, directory, seal, ledger)
            staging = _FolderStaging(disk, present)
            wanted = stage_export(ledger, seal.size, since, staging, bodies=bodies)
            staging.flush()
            if disk.read(SEAL, MAX_NOTE) != note.encode():
                disk.write(SEAL, File(note.encode(), _PUBLIC))
            removed = 0
            # Files of ours that larger ones replaced, or that no seal came to name; never blobs.
            for path in sorted(present - wanted):
                try:
                    tiles.parse_tile_or_bundle_path(path)
                except MalformedError:
                    continue
                disk.remove(path)
                removed += 1
                folder = path.rpartition("/")[0]
                if folder.endswith(".p"):
                    with suppress(OSError):  # others put something there
                        os.rmdir(disk.full(folder))
    return Exported(seal.size, staging.written, removed)


def update_record(root: str, database: str, note: str) -> Exported:
    """Make the record of the team in ``root`` the ledger under a seal; only what is new is written.

    To be called once the seal's own entry is committed. Raises what ``export`` raises.
    """
    folder = f"{root}/{RECORD}"
    if os.path.islink(folder):
        raise RefusedError(f"{folder} is a symbolic link: put a folder there, or nothing")
    return export(database, folder, note, bodies=True)


def nodes_to_export(ledger: SQLiteReader, seal: Seal, otherwise: str = _UNSEALED) -> Nodes:
    """A ledger's nodes, if the seal is of its tree (else RefusedError, ending in ``otherwise``)."""
    size, origin, nodes = ledger.size, ledger.origin, read_block_nodes(ledger.db)
    if seal.origin != origin:
        what = f"the seal is of {seal.origin!r}, the ledger is {origin!r}"
    elif seal.size > size:
        what = f"the seal is of {seal.size} entries, the ledger holds {size}"
    elif root_of(nodes, 0, seal.size) != seal.root:
        what = f"the ledger has another root at {seal.size} entries than the seal"
    else:
        return nodes
    raise RefusedError(f"{what}: {otherwise}")


def _present(disk: Disk, directory: str, *, bodies: bool) -> set[str]:
    """Paths of the files that are there, if the folder is one for an export."""
    disk.clear("")
    files, folders, strange = disk.sorted_out("")
    foreign = sorted({*files, *folders, *strange} - {SEAL, *tiles.FOLDERS})
    if foreign and SEAL not in files and TILES not in folders:
        raise RefusedError(
            f"{directory} holds {foreign[0]!r}: give a folder of its own for the export"
        )
    if not bodies and (BODIES in folders or BLOBS in folders):
        raise RefusedError(
            f"{directory} holds bodies, and none are asked for: give --bodies, or another folder"
        )
    return {path for top in tiles.FOLDERS if top in folders for path in _files_below(disk, top)}


def _files_below(disk: Disk, folder: str) -> Iterator[str]:
    """Paths of the files below a folder; what a writer left that died is removed on the way."""
    disk.clear(folder)
    files, folders, _ = disk.sorted_out(folder)
    for name in files:
        yield f"{folder}/{name}"
    for name in folders:
        yield from _files_below(disk, f"{folder}/{name}")


def _grown(disk: Disk, directory: str, seal: Seal, ledger: SQLiteReader) -> int:
    """How many entries the folder holds already; 0 where it holds no seal."""
    try:
        note = disk.read(SEAL, MAX_NOTE)
        if note is None:
            if os.path.lexists(disk.full(SEAL)):
                raise RefusedError(f"{directory}/{SEAL} is no file: move it away")
            return 0
        old = read_seal(note)
    except (MalformedError, UnreadableError) as error:
        raise RefusedError(
            f"{directory}/{SEAL} is no seal of ours ({error}): give another folder"
        ) from error
    header = ledger.header(old.size - 1)
    # A restored copy goes on under another name.
    line = "" if header is None else str(orjson.loads(header)["ledger"])
    if old.origin not in (seal.origin, line):
        what = f"it holds another log, {old.origin!r}"
    elif old.size > seal.size:
        what = f"it holds {old.size} entries already, the seal is of {seal.size}: never back"
    elif root_of(read_block_nodes(ledger.db), 0, old.size) != old.root:
        what = f"it holds another history: at {old.size} entries its root is not this ledger's"
    else:
        return old.size
    raise RefusedError(f"{directory}: {what}; nothing was written")


def stage_export(
    ledger: LedgerReader, size: int, since: int, staging: Staging, *, bodies: bool
) -> set[str]:
    """Stage what is new or missing; give the paths of everything that belongs to the size.

    ``since`` entries may be there already: what they fill for good is not read again.
    """
    wanted: set[str] = set()
    every = list(tiles.walk(size))
    for tile in tell_over(every, "exporting bundles of entries", len(every)):
        is_bundle = tile.level < 0
        paths = (
            tiles.bundle_paths(tile, bodies=bodies) if is_bundle else [tiles.format_tile_path(tile)]
        )
        wanted.update(paths)
        full = (tile.number + 1) * WIDTH <= since >> 8 * max(0, tile.level)
        if full and staging.present.issuperset(paths):
            continue
        first = tile.number * WIDTH
        stop = first + tile.width
        if not is_bundle:
            hashes = ledger.hashes(tile.level, first, stop)
            if len(hashes) != tile.width:
                raise LedgerDamagedError(
                    f"a stored root of level {tile.level} from {first} on is missing: {_HINT}"
                )
            _check_stored(ledger, tile, hashes)
            staging.put(paths[0], b"".join(hashes))
            continue
        entries = list(ledger.raw(first, stop))
        if [entry.seq for entry in entries] != list(range(first, stop)):
            raise LedgerDamagedError(f"an entry from {first} to {stop - 1} is missing: {_HINT}")
        _check_stored(
            ledger, tile._replace(level=0), [entry_leaf_hash(one.header) for one in entries]
        )
        for entry in entries if bodies else ():
            _check_content(entry)
            for digest in tiles.bundle_blobs(entry.body):
                path = tiles.bundle_blob_path(digest)
                if path in staging.present:
                    continue
                blob = ledger.blob(bytes.fromhex(digest))
                if blob is None:
                    raise LedgerDamagedError(
                        f"blob {digest[:12]}… that entry {entry.seq} names is not there: {_HINT}"
                    )
                staging.put(path, blob)
        for path, data in tiles.bundle_files(tile, entries, bodies=bodies):
            staging.put(path, data)
    return wanted


def _check_content(entry: RawEntry) -> None:
    """Body and signature record are those committed to, or the body was erased whole."""
    seq, _, kind, _, header, salt, body, auth = entry
    head = orjson.loads(header)
    if (None if auth is None else header_auth(auth)) != head.get("auth"):
        raise LedgerDamagedError(f"entry {seq} lost its signature record, or has another: {_HINT}")
    if (salt is None) != (body is None):
        raise LedgerDamagedError(f"entry {seq} has half of a body and its salt: {_HINT}")
    if salt is None or body is None:
        return
    if commit_body(salt, kind, body) != head["body"] or b"\n" in body:
        raise LedgerDamagedError(f"entry {seq} has a body that it did not commit to: {_HINT}")


def _check_stored(ledger: LedgerReader, tile: Tile, hashes: list[bytes]) -> None:
    """Compare the hashes of a full tile with the root that is stored for them."""
    if tile.width < WIDTH:
        return
    tree = Tree()
    for digest in hashes:
        tree.append(digest)
    if ledger.hashes(tile.level + 1, tile.number, tile.number + 1) != [tree.root()]:
        raise LedgerDamagedError(
            f"the tile {tiles.format_tile_path(tile)} is not that of the sealed tree: {_HINT}"
        )


def forget_exported_bodies(directory: str, seqs: Collection[int]) -> tuple[int, int]:
    """Remove bodies, and blobs that no body names any more, from an export; give how many of each.

    Nothing is done where there is no such folder, or where it holds no bodies. Raises OSError where
    the system refuses; do it again.
    """
    if not os.path.isdir(f"{directory}/{BODIES}"):
        return 0, 0
    with hold_folder_lock(directory):  # who exports meanwhile may still read the ledger as it was
        count, named = 0, set[str]()
        bundles = [
            os.path.join(folder, name)
            for folder, _, names in sorted(os.walk(f"{directory}/{BODIES}"))
            for name in sorted(names)
            if not name.startswith(TEMPORARY)
        ]
        for path in bundles:
            lines = _lines_in(path)
            kept = [tiles.erase_in_bundle_line(line, seqs) for line in lines]
            if kept != lines:
                count += sum(new != old for new, old in zip(kept, lines, strict=True))
                mode = os.stat(path).st_mode & 0o7777
                part = os.path.relpath(path, directory)
                Disk(directory).write(part, File(b"\n".join(kept), mode))
        blobs = f"{directory}/{BLOBS}"
        if not os.path.isdir(blobs):
            return count, 0
        for path in bundles:  # once all are forgotten: a line that cannot be read hinders none
            for line in _lines_in(path):
                named.update(tiles.bundle_blobs(line))
        there = sorted(os.listdir(blobs))
        gone = [name for name in there if _DIGEST.fullmatch(name) and name not in named]
        for name in gone:
            os.unlink(f"{blobs}/{name}")
        if gone:
            sync_path(blobs)
        return count, len(gone)


def _lines_in(path: str) -> list[bytes]:
    data = read_plain_file(path, tiles.MAX_LINES)
    if len(data) > tiles.MAX_LINES:
        what = f"more than {tiles.MAX_LINES} bytes are no bodies that were exported"
        raise OSError(errno.EFBIG, what, path)
    return data.split(b"\n")


def redact_exports(store: SQLiteStore, root: str, *, patient: bool) -> list[str]:
    """Finish a redaction: its copies, and every page in which the erased bytes may still lie.

    Every act tries it until it succeeds; the erasing act is ``patient``. Returns what hinders it.
    """
    from tripod.decisions.index import drop_index

    try:
        forget_exported_bodies(f"{root}/{RECORD}", store.unswept())
        drop_index(store.path)
        swept = store.sweep(WAIT_MS if patient else 0)
    except (LedgerError, OSError) as error:
        return [f"erased, but its bytes may still lie in the files: {error}"]
    if swept:
        return []
    wal = f"{os.path.basename(store.path)}-wal"
    where = f"its bytes lie in {wal} until it ends; the next command that acts removes them"
    return [f"erased, but another program still reads older pages of the ledger: {where}"]
