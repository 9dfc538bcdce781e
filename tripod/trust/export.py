"""Writes the ledger as plain files: a sealed tlog-tiles folder, with the bodies if requested.

``docs/formats/record.md`` has the layout. The same seal gives the same files, whether the folder is
written at once or grows with the ledger; so an export adds to a smaller folder only what is new.

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
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import orjson

from tripod.errors import LedgerDamagedError, LedgerError, MalformedError, RefusedError
from tripod.ledger import (
    RECORD,
    LedgerReader,
    Nodes,
    RawEntry,
    Tree,
    auth_of,
    commit,
    leaf_hash,
    root_of,
)
from tripod.ledger.files import hold_folder, read_plain, sync_path
from tripod.ledger.progress import over
from tripod.ledger.sqlite.erase import named_blobs
from tripod.ledger.sqlite.reader import SQLiteReader, block_nodes, read_only
from tripod.ledger.tlog.note import MAX_NOTE, parse_note
from tripod.ledger.tlog.seal import Seal, parse_seal
from tripod.ledger.tlog.tiles import (
    BLOBS,
    BODIES,
    MAX_LINES,
    WIDTH,
    LeafContent,
    Tile,
    bundles_of,
    format_bundle,
    format_line,
    format_path,
    line_path,
    parse_line_path,
    parse_path,
    tiles_of,
)
from tripod.projections import TEMPORARY, Disk, File, UnreadableError, write_missing

if TYPE_CHECKING:
    from tripod.ledger.sqlite.store import SQLiteStore


PUBLIC = 0o644
PRIVATE = 0o600  # what people wrote: as the chat files
_BATCH = 16 * 1024 * 1024  # bytes kept in memory
_FEW = 32  # files: below, each is waited for by itself


class Staging:
    """What waits to be written to ``disk``; ``present`` are the paths that are there already."""

    def __init__(self, disk: Disk, present: set[str]) -> None:
        """Nothing waits yet."""
        self.disk = disk
        self.present = present
        self.written = 0
        self._files: dict[str, File] = {}
        self._bytes = 0

    def put(self, path: str, data: bytes, mode: int) -> None:
        """Have a file written, unless it is there with these bytes.

        Raises:
            OSError: the disk refuses.
        """
        if path in self._files or (path in self.present and self._same(path, data)):
            return
        self._files[path] = File(data, mode)
        self._bytes += len(data)
        if self._bytes > _BATCH:
            self.flush()

    def _same(self, path: str, data: bytes) -> bool:
        found = self.disk.stat(path)
        return (
            found is not None
            and found.size == len(data)
            and self.disk.read(path, len(data)) == data
        )

    def flush(self) -> None:
        """Write what waits, and wait until the disk has it, names included.

        Raises:
            OSError: the disk refuses.
        """
        fresh = [(path, file) for path, file in self._files.items() if path not in self.present]
        if len(fresh) < _FEW:
            fresh = []
        placed = write_missing(self.disk, fresh) if fresh else []
        # A place that somebody filled meanwhile is written over as one whose bytes differ.
        done = {path for (path, _), stat in zip(fresh, placed, strict=True) if stat is not None}
        for path, file in self._files.items():
            if path not in done:
                self.disk.write(path, file, sync=False)
        folders = {path.rpartition("/")[0] for path in self._files}
        for folder in sorted(folders | {up for path in folders for up in _above(path)}):
            self.disk.sync_folder(folder)
        self.written += len(self._files)
        self.present.update(self._files)
        self._files, self._bytes = {}, 0


def _above(folder: str) -> list[str]:
    """The folders that hold a folder, the outermost ('') too: their names may be new."""
    parts = folder.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts))]


# Export -----------------------------------------------------------------------------------------


SEAL = "checkpoint"  # the name that the format gives the seal's file
_MARK = b'"sha256"'  # only a body that names a blob, or a digest, holds it
_HINT = "nothing of it was sealed; `tripod verify` says what is wrong"
_UNSEALED = "nothing was exported; `tripod verify` judges the ledger"


class Exported(NamedTuple):
    """What an export did: entries under the seal, files written, and files removed."""

    size: int
    written: int
    removed: int


def export(database: str, directory: str, note: str, *, bodies: bool) -> Exported:
    """Make ``directory`` the log under the seal in ``note``; see the module.

    Args:
        database: path of the ledger's database, which is read as of one moment.
        directory: made if it is not there; an export of the same ledger in it is grown.
        note: the signed seal, a note. Who signed it is not asked here.
        bodies: whether bodies, salts and blobs are written too.

    Raises:
        RefusedError: the folder holds something else, or the seal is not this ledger's.
        LedgerDamagedError: what the ledger holds is not what its tree or a commitment says.
        MalformedError: the note is no seal.
        OSError: the disk refuses.
    """
    seal = read_seal(note.encode())
    with closing(read_only(database)) as db:
        ledger = SQLiteReader(db)
        nodes_under(ledger, seal)
        os.makedirs(directory, exist_ok=True)
        with hold_folder(directory):
            # Begun here: what was erased since is erased for us, or waits to be forgotten.
            db.execute("BEGIN")
            nodes_under(ledger, seal)
            disk = Disk(os.path.realpath(directory), steady=True)
            present = _present(disk, directory, bodies=bodies)
            since = _grown(disk, directory, seal, ledger)
            staging = Staging(disk, present)
            wanted = _write(_Work(ledger, seal.size, since, bodies, staging))
            staging.flush()
            if held_seal(disk) != note.encode():
                disk.write(SEAL, File(note.encode(), PUBLIC))
            removed = _sweep(disk, present, wanted)
    return Exported(seal.size, staging.written, removed)


def update(root: str, database: str, note: str, *, bodies: bool = True) -> Exported:
    """Make the record of the team in ``root`` the ledger under a seal; only what is new is written.

    To be called once the seal's own entry is committed. ``bodies=False`` is for a team that must
    not publish what was said: its record holds headers alone, and nothing can be restored from it.

    Raises:
        RefusedError: the record's folder holds something else, or another history.
        LedgerDamagedError: the ledger does not hold what was sealed.
        OSError: the disk refuses.
    """
    folder = f"{root}/{RECORD}"
    if os.path.islink(folder):
        raise RefusedError(f"{folder} is a symbolic link: put a folder there, or nothing")
    return export(database, folder, note, bodies=bodies)


def has_record(root: str) -> bool:
    """Whether a team directory holds a record that a ledger may be restored from."""
    return os.path.isfile(f"{root}/{RECORD}/{SEAL}") and not os.path.islink(f"{root}/{RECORD}")


def read_seal(note: bytes) -> Seal:
    """The seal in a note, no matter who signed it.

    Raises:
        MalformedError: it is invalid.
    """
    return parse_seal(parse_note(note).text)


def held_seal(disk: Disk) -> bytes | None:
    """The bytes of the seal that a folder holds; None where it holds none."""
    return disk.read(SEAL, MAX_NOTE)


# What is there ----------------------------------------------------------------------------------


def nodes_under(ledger: SQLiteReader, seal: Seal, otherwise: str = _UNSEALED) -> Nodes:
    """The nodes of the tree of a ledger, which is shown to be the one that was sealed.

    Raises:
        RefusedError: the seal is not one of this ledger; the message ends with ``otherwise``.
    """
    size, origin, nodes = ledger.size, ledger.origin, block_nodes(ledger.db)
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
    foreign = sorted({*files, *folders, *strange} - {SEAL, "tile", BODIES, BLOBS})
    started = SEAL in files or "tile" in folders
    if foreign and not started:
        raise RefusedError(
            f"{directory} holds {foreign[0]!r}: give a folder of its own for the export"
        )
    if not bodies and (BODIES in folders or BLOBS in folders):
        raise RefusedError(
            f"{directory} holds bodies, and none are asked for: give --bodies, or another folder"
        )
    found: set[str] = set()
    for top in ("tile", BODIES, BLOBS):
        if top in folders:
            found.update(_walk(disk, top))
    return found


def _walk(disk: Disk, folder: str) -> Iterator[str]:
    """Paths of the files below a folder; what a writer left that died is removed on the way."""
    disk.clear(folder)
    files, folders, _ = disk.sorted_out(folder)
    for name in files:
        yield f"{folder}/{name}"
    for name in folders:
        yield from _walk(disk, f"{folder}/{name}")


def _grown(disk: Disk, directory: str, seal: Seal, ledger: SQLiteReader) -> int:
    """How many entries the folder holds already; 0 where it holds no seal."""
    try:
        note = held_seal(disk)
        if note is None:
            if os.path.lexists(disk.full(SEAL)):
                raise RefusedError(f"{directory}/{SEAL} is no file: move it away")
            return 0
        old = read_seal(note)
    except (MalformedError, UnreadableError) as error:
        raise RefusedError(
            f"{directory}/{SEAL} is no seal of ours ({error}): give another folder"
        ) from error
    if old.origin not in (seal.origin, _line_at(ledger, old.size)):
        what = f"it holds another log, {old.origin!r}"
    elif old.size > seal.size:
        what = f"it holds {old.size} entries already, the seal is of {seal.size}: never back"
    elif root_of(block_nodes(ledger.db), 0, old.size) != old.root:
        what = f"it holds another history: at {old.size} entries its root is not this ledger's"
    else:
        return old.size
    raise RefusedError(f"{directory}: {what}; nothing was written")


def _line_at(ledger: LedgerReader, size: int) -> str:
    """The name that the ledger had at a size: a restored copy goes on under another."""
    header = ledger.header(size - 1)
    return "" if header is None else str(orjson.loads(header)["ledger"])


# Writing ----------------------------------------------------------------------------------------


class _Work(NamedTuple):
    """What is to be written: ``size`` entries, of which ``since`` may be there."""

    ledger: LedgerReader
    size: int
    since: int
    bodies: bool
    staging: Staging


def _write(work: _Work) -> set[str]:
    """Write what is new or missing; give the paths of everything that belongs to the size."""
    wanted: set[str] = set()
    new = work.since // WIDTH
    bundles = over(bundles_of(work.size), "exporting bundles of entries", -(-work.size // WIDTH))
    for tile in bundles:
        paths = [format_path(tile), format_path(tile._replace(level=0))]
        if work.bodies:
            paths.append(line_path(tile))
        wanted.update(paths)
        if tile.number >= new or not work.staging.present.issuperset(paths):
            _write_bundle(work, tile, paths)
    for tile in tiles_of(work.size):
        if tile.level:
            path = format_path(tile)
            wanted.add(path)
            full = work.since >> 8 * tile.level
            if (tile.number + 1) * WIDTH > full or path not in work.staging.present:
                work.staging.put(path, _upper(work.ledger, tile), PUBLIC)
    return wanted


def _write_bundle(work: _Work, tile: Tile, paths: list[str]) -> None:
    first = tile.number * WIDTH
    entries = list(work.ledger.raw(first, first + tile.width))
    headers = [entry.header for entry in entries]
    leaves = [leaf_hash(header) for header in headers]
    if [entry.seq for entry in entries] != list(range(first, first + tile.width)):
        raise LedgerDamagedError(
            f"an entry from {first} to {first + tile.width - 1} is missing: {_HINT}"
        )
    if tile.width == WIDTH:
        _check_stored(work.ledger, Tile(0, tile.number, WIDTH), leaves)
    put = work.staging.put
    put(paths[0], format_bundle(headers), PUBLIC)
    put(paths[1], b"".join(leaves), PUBLIC)
    if work.bodies:
        lines = [_line(work, entry) for entry in entries]
        put(paths[2], b"".join(lines), PRIVATE)


def _upper(ledger: LedgerReader, tile: Tile) -> bytes:
    """A tile above the leaves, from the stored roots."""
    first = tile.number * WIDTH
    hashes = ledger.hashes(tile.level, first, first + tile.width)
    if len(hashes) != tile.width:
        raise LedgerDamagedError(
            f"a stored root of level {tile.level} from {first} on is missing: {_HINT}"
        )
    if tile.width == WIDTH:
        _check_stored(ledger, tile, hashes)
    return b"".join(hashes)


def _check_stored(ledger: LedgerReader, tile: Tile, hashes: list[bytes]) -> None:
    """Hold the hashes of a full tile against the root that is stored for them."""
    tree = Tree()
    for digest in hashes:
        tree.append(digest)
    if ledger.hashes(tile.level + 1, tile.number, tile.number + 1) != [tree.root()]:
        raise LedgerDamagedError(
            f"the tile {format_path(tile)} is not that of the sealed tree: {_HINT}"
        )


def _line(work: _Work, entry: RawEntry) -> bytes:
    """The line of a body that is the one committed to, or of one that was erased whole."""
    seq, said = entry.seq, LeafContent(entry.salt, entry.body, entry.auth)
    salt, body, auth = said
    head = orjson.loads(entry.header)
    if (None if auth is None else auth_of(auth)) != head.get("auth"):
        raise LedgerDamagedError(f"entry {seq} lost its signature record, or has another: {_HINT}")
    if salt is not None and body is not None:
        if commit(salt, entry.kind, body) != head["body"] or b"\n" in body:
            raise LedgerDamagedError(f"entry {seq} has a body that it did not commit to: {_HINT}")
        if _MARK in body:
            _write_blobs(work, seq, body)
    elif salt is not None or body is not None:
        raise LedgerDamagedError(f"entry {seq} has half of a body and its salt: {_HINT}")
    return format_line(seq, said) + b"\n"


def _write_blobs(work: _Work, seq: int, body: bytes) -> None:
    for digest, _ in named_blobs(orjson.loads(body)):
        path = f"{BLOBS}/{digest}"
        if path in work.staging.present:
            continue
        blob = work.ledger.blob(bytes.fromhex(digest))
        if blob is None:
            raise LedgerDamagedError(
                f"blob {digest[:12]}… that entry {seq} names is not there: {_HINT}"
            )
        work.staging.put(path, blob, PRIVATE)


def _sweep(disk: Disk, present: set[str], wanted: set[str]) -> int:
    """Remove files of ours that larger ones replaced, or that no seal came to name."""
    removed = 0
    for path in sorted(present - wanted):
        if _is_ours(path):
            disk.remove(path)
            removed += 1
            _remove_empty(disk, path.rpartition("/")[0])
    return removed


def _is_ours(path: str) -> bool:
    """Whether a path is one that an export of some size writes, blobs left out."""
    for parse in (parse_path, parse_line_path):
        try:
            parse(path)
        except MalformedError:
            continue
        return True
    return False


def _remove_empty(disk: Disk, folder: str) -> None:
    """Remove a folder of partial tiles once it is empty."""
    if folder.endswith(".p"):
        try:
            os.rmdir(disk.full(folder))
        except OSError:
            return  # somebody else put something there


# Record forget ----------------------------------------------------------------------------------


WAIT_MS = 10_000  # how long a redaction waits for who reads older pages of the database

_SEQ = re.compile(rb'"seq":([0-9]{1,16})\}$')
_AUTH = re.compile(rb'\{"auth":"[0-9a-f]+",')
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Forgotten(NamedTuple):
    """How many bodies and blobs were removed."""

    bodies: int
    blobs: int


def forget(directory: str, seqs: Collection[int]) -> Forgotten:
    """Remove the bodies of ``seqs`` from the export in ``directory``, and blobs none names now.

    Nothing is done where there is no such folder, or where it holds no bodies.

    Raises:
        OSError: the system refuses; do it again.
    """
    if not os.path.isdir(f"{directory}/bodies"):
        return Forgotten(0, 0)
    with hold_folder(directory):  # who exports meanwhile may still read the ledger as it was
        return _forget(directory, seqs)


def forget_copies(root: str, seqs: Collection[int]) -> None:
    """Remove the bodies of ``seqs`` from what the team directory ``root`` holds beside its ledger.

    Raises:
        OSError: the system refuses; do it again.
    """
    from tripod.decisions.index import drop

    forget(f"{root}/{RECORD}", seqs)
    drop(root)


def sweep(store: SQLiteStore, root: str, *, patient: bool) -> list[str]:
    """Finish a redaction: its copies, and every page in which the erased bytes may still lie.

    Every act tries it until it succeeds; the erasing act is ``patient``. Returns what hinders it.
    """
    try:
        forget_copies(root, store.unswept())
        swept = store.sweep(WAIT_MS if patient else 0)
    except (LedgerError, OSError) as error:
        return [f"erased, but its bytes may still lie in the files: {error}"]
    if swept:
        return []
    wal = f"{os.path.basename(store.path)}-wal"
    where = f"its bytes lie in {wal} until it ends; the next command that acts removes them"
    return [f"erased, but another program still reads older pages of the ledger: {where}"]


def _forget(directory: str, seqs: Collection[int]) -> Forgotten:
    count = 0
    for path in _bundles(f"{directory}/bodies"):
        lines = _read(path).split(b"\n")
        kept = [_without(line, seqs) for line in lines]
        if kept != lines:
            count += sum(new != old for new, old in zip(kept, lines, strict=True))
            mode = os.stat(path).st_mode & 0o7777
            part = os.path.relpath(path, directory)
            Disk(directory).write(part, File(b"\n".join(kept), mode))
    return Forgotten(count, _drop_blobs(directory))


def _read(path: str) -> bytes:
    data = read_plain(path, MAX_LINES)
    if len(data) > MAX_LINES:
        raise OSError(
            errno.EFBIG, f"more than {MAX_LINES} bytes are no bodies that were exported", path
        )
    return data


def _bundles(folder: str) -> Iterator[str]:
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if not name.startswith(TEMPORARY):
                yield os.path.join(path, name)


def _without(line: bytes, seqs: Collection[int]) -> bytes:
    """The line of an entry, or what stands for it once its body is erased."""
    found = _SEQ.search(line)
    if found is None or int(found[1]) not in seqs:
        return line
    signed = _AUTH.match(line)
    return b'%b"seq":%b}' % (b"{" if signed is None else signed[0], found[1])


def _drop_blobs(directory: str) -> int:
    """Remove blobs that no body names any more."""
    folder = f"{directory}/blobs"
    if not os.path.isdir(folder):
        return 0
    named: set[str] = set()
    for path in _bundles(f"{directory}/bodies"):
        for line in _read(path).split(b"\n"):
            if b'"sha256"' in line:
                named.update(digest for digest, _ in named_blobs(orjson.loads(line)))
    gone = [n for n in sorted(os.listdir(folder)) if _DIGEST.fullmatch(n) and n not in named]
    for name in gone:
        os.unlink(f"{folder}/{name}")
    if gone:
        sync_path(folder)
    return len(gone)
