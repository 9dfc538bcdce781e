"""Reads a replica's record under its seal, from an entry on; what lies before that is not read.

The tiles above the leaves are combined to the seal's root first, so that every bundle which is read
later is held against a hash that the seal vouches for. By the same hashes the root of the beginning
follows: where it is another than the one that was sealed before, the replica contradicts itself.

A record is a stranger's: reads are bounded, and nothing of it is a path of the disk.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from tripod.ledger import (
    MERGED,
    Header,
    MalformedError,
    Tree,
    TripodError,
    commit_body,
    entry_leaf_hash,
    parse_header,
)
from tripod.ledger.tlog import tiles
from tripod.ledger.tlog.note import ED25519, Note, VerifierKey
from tripod.ledger.tlog.seal import Seal, rotation_problem
from tripod.ledger.tlog.tiles import ENTRIES, WIDTH, LeafContent, Tile
from tripod.ledger.tlog.trailer import key_digits
from tripod.verify.export_file import ExportFiles, FileError
from tripod.verify.peers.refs import ReplicaRef

MAX_RECORD = 2**30  # bytes
_MERGED, _FORKED = (b'"kind":"%b",' % kind.encode() for kind in (MERGED, "ledger.forked-from"))
_FRONT = re.compile(r"[A-Za-z0-9_-]{1,111}")
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, RecursionError, MalformedError)


class RecordProblemError(TripodError):
    """Why nothing, or nothing more, of a replica's record can be taken."""


class BadEntryError(RecordProblemError):
    """What is wrong with entry ``seq`` of a record: it ends there for us."""

    def __init__(self, seq: int, problem: str) -> None:
        super().__init__(f"entry {seq}: {problem}")
        self.seq = seq


class SealedEntry(NamedTuple):
    """An entry of a sealed record: its number, its header's bytes, their hash, what lies beside."""

    seq: int
    header: bytes
    leaf: bytes
    said: LeafContent


class SealedRecord:
    """The entries of a record from ``start`` on, which is at most its seal's size.

    ``bytes`` counts what was read of it, up to ``most``.
    """

    def __init__(
        self, files: ExportFiles, seal: Seal, start: int = 0, most: int = MAX_RECORD
    ) -> None:
        """Combine the tiles (RecordProblemError: they are not those of the seal)."""
        self.files, self.seal, self.start = files, seal, start
        self.bytes, self.most = 0, most
        self._first = max(start - 1, 0) // WIDTH  # its block holds the entry before, too
        full, width = divmod(seal.size, WIDTH)
        try:
            self._before = self._subtrees()
            self._roots = self._block_roots(full)
            last = Tile(ENTRIES, full, width)
            self._last = tiles.parse_bundle(self._read(last), width) if width else []
        except (FileError, MalformedError) as error:
            raise RecordProblemError(f"its record is damaged: {error}") from error
        if self._grown(full, self._last).root() != seal.root:
            raise RecordProblemError("its record is damaged: its tiles are not those of its seal")

    def tree(self) -> Tree:
        """The tree of the first ``start`` entries, by the hashes that the seal vouches for."""
        blocks, rest = divmod(self.start, WIDTH)
        return self._grown(blocks, self._headers(blocks)[:rest] if rest else [])

    def before(self) -> bytes | None:
        """The header of the entry before ``start``; None where it is the first."""
        block, at = divmod(self.start - 1, WIDTH)
        return self._headers(block)[at] if self.start else None

    def __iter__(self) -> Iterator[SealedEntry]:
        """Every entry from ``start`` on (RecordProblemError: a bundle cannot be read)."""
        if not self.files.bodies and self.start < self.seal.size:
            raise RecordProblemError("its record holds headers alone: its bodies were taken away")
        for block in range(self.start // WIDTH, -(-self.seal.size // WIDTH)):
            headers, leaves = self._block(block)
            first = block * WIDTH
            contents = self._contents(block, len(headers))
            for at in range(max(self.start - first, 0), len(headers)):
                yield SealedEntry(first + at, headers[at], leaves[at], contents[at])

    def raw_headers(self) -> Iterator[bytes]:
        """The bytes of every header from ``start`` on, as the seal vouches for them."""
        for block in range(self.start // WIDTH, -(-self.seal.size // WIDTH)):
            yield from self._headers(block)[max(self.start - block * WIDTH, 0) :]

    def headers(self, *marks: bytes) -> Iterator[tuple[Header, bytes]]:
        """The headers from ``start`` on that can be read, with their bytes.

        With ``marks`` only those of which the bytes hold one.
        """
        for block in range(self.start // WIDTH, -(-self.seal.size // WIDTH)):
            for seq, raw in enumerate(self._headers(block), block * WIDTH):
                if seq >= self.start and (not marks or any(mark in raw for mark in marks)):
                    with suppress(MalformedError):  # the judgement of the entry names it
                        header = parse_header(raw)
                        if header.seq == seq:
                            yield header, raw

    def of_kinds(
        self, kinds: Collection[str], but: Collection[int] = ()
    ) -> Iterator[tuple[Header, LeafContent]]:
        """The entries of some kinds from ``start`` on, as far as their headers can be read.

        The bodies of those with the numbers ``but`` are not read, and they are left out.
        """
        for header, _ in self.headers(*(b'"kind":"%b"' % kind.encode() for kind in kinds)):
            block, at = divmod(header.seq, WIDTH)
            if header.kind in kinds and header.seq not in but:
                width = min(WIDTH, self.seal.size - block * WIDTH)
                yield header, self._contents(block, width)[at]

    def read_blob(self, digest: str, size: int) -> bytes:
        """A file of at most ``size`` bytes that is called as the blob (else FileError)."""
        return self._counted(self.files.read(tiles.bundle_blob_path(digest), self._room(size)))

    # Tiles and bundles -------------------------------------------------------------------------

    def _read(self, tile: Tile) -> bytes:
        return self._counted(self.files.tile(tile))

    def _room(self, size: int) -> int:
        """How many bytes may be read of a file of ``size`` (RecordProblemError: not so many)."""
        if self.bytes + size > self.most:
            raise RecordProblemError(
                f"its record takes more than {self.most} bytes, and no more are read in one pull"
            )
        return size

    def _counted(self, data: bytes) -> bytes:
        self._room(len(data))
        self.bytes += len(data)
        return data

    def _tile(self, level: int, number: int) -> bytes:
        """The hashes of a tile above the leaves."""
        width = min(WIDTH, (self.seal.size >> 8 * level) - number * WIDTH)
        data = self._read(Tile(level, number, width))
        if len(data) != 32 * width:
            raise MalformedError(f"a tile of {width} hashes takes {len(data)} bytes")
        return data

    def _subtrees(self) -> list[bytes]:
        """Roots of the perfect subtrees of the blocks that are not read, the largest first."""
        found, done = [], 0
        for height in range(self._first.bit_length() - 1, -1, -1):
            if not self._first >> height & 1:
                continue
            level, small = divmod(height, 8)
            number, at = divmod(done >> height << small, WIDTH)
            hashes = self._tile(level + 1, number)
            tree = Tree()
            for place in range(at, at + (1 << small)):
                tree.append(hashes[32 * place : 32 * place + 32])
            found.append(tree.root())
            done += 1 << height
        return found

    def _block_roots(self, full: int) -> list[bytes]:
        """Roots of the full blocks from the first that is read on."""
        roots: list[bytes] = []
        for number in range(self._first // WIDTH, -(-full // WIDTH)):
            data = self._tile(1, number)
            roots += [data[at : at + 32] for at in range(0, len(data), 32)]
        return roots[self._first % WIDTH :]

    def _grown(self, blocks: int, headers: Sequence[bytes]) -> Tree:
        """The tree of the first ``blocks`` blocks and of the entries with these ``headers``."""
        tree = Tree(self._first, self._before)
        rest = _tree_of(map(entry_leaf_hash, headers))
        for root in self._roots[: blocks - self._first]:
            tree.append(root)
        size = blocks * WIDTH + rest.size
        return Tree(size, [*tree.stack, *rest.stack])

    def _headers(self, block: int) -> list[bytes]:
        return self._block(block)[0]

    def _block(self, block: int) -> tuple[list[bytes], list[bytes]]:
        """Headers of a block, and their leaves (RecordProblemError: they are not the seal's)."""
        if block * WIDTH + WIDTH > self.seal.size:
            return self._last, [entry_leaf_hash(header) for header in self._last]
        tile = Tile(ENTRIES, block, WIDTH)
        try:
            headers = tiles.parse_bundle(self._read(tile), WIDTH)
            leaves = [entry_leaf_hash(header) for header in headers]
            if _tree_of(leaves).root() == self._roots[block - self._first]:
                return headers, leaves
            problem = f"{tiles.format_tile_path(tile)} is not what was sealed"
        except (FileError, MalformedError) as error:
            problem = str(error)
        raise RecordProblemError(f"its record is damaged: {problem}")

    def _contents(self, block: int, width: int) -> list[LeafContent]:
        """What lies beside the leaves of a block; no commitment is checked."""
        path = tiles.body_bundle_path(Tile(ENTRIES, block, width))
        try:
            data = self._counted(self.files.read(path, tiles.MAX_LINES))
            return tiles.parse_body_bundle(data, block * WIDTH, width)
        except (FileError, MalformedError) as error:
            raise RecordProblemError(f"its record is damaged: {error}") from error


def _tree_of(leaves: Iterable[bytes]) -> Tree:
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree


class PeerMemory(NamedTuple):
    """A head of a replica that somebody remembers.

    ``where`` says it in words, ``by`` is the origin of the replica that remembers it, '' where
    none does. ``seq`` is the entry here that holds it, ``proven``: it lies in a tree that the key
    of ``by`` sealed.
    """

    seal: Seal
    note: Note | None
    where: str
    by: str = ""
    seq: int | None = None
    proven: bool = False
    is_trailer: bool = False


@dataclass
class ReplicaTree:
    """The sealed tree of a replica by the record on a ref: its seal, and its leaf hashes."""

    ref: ReplicaRef
    record: SealedRecord
    note: Note
    keys: list[VerifierKey]
    leaves: list[bytes] = field(default_factory=list)
    roots: dict[int, bytes] = field(default_factory=dict)
    own: list[int] = field(default_factory=list)
    """The numbers of the entries that it recorded itself under the name that it has."""
    lines: set[str] = field(default_factory=set)
    """The names that it had, that one included."""

    def holds(self, head: Seal) -> bool:
        """Whether its entries begin with those under a seal of a line that it left."""
        return head.origin in self.lines and self.roots.get(head.size) == head.root

    def fill(self, sizes: set[int]) -> None:
        """Read the leaf hashes, and the roots of so many of them (else RecordProblemError)."""
        tree, wanted = Tree(), {size for size in sizes if size <= self.record.seal.size}
        if 0 in wanted:
            self.roots[0] = tree.root()
        line = b'"ledger":%b,' % orjson.dumps(self.record.seal.origin)
        for raw in self.record.raw_headers():
            if not self.leaves or _FORKED in raw:
                with suppress(*_BROKEN):
                    self.lines.add(parse_header(raw).ledger)
            leaf = entry_leaf_hash(raw)
            if line in raw and _MERGED not in raw:
                self.own.append(len(self.leaves))
            self.leaves.append(leaf)
            tree.append(leaf)
            tree.full.clear()
            if tree.size in wanted:
                self.roots[tree.size] = tree.root()


def sealed_body(header: Header, said: LeafContent) -> dict[str, Any]:
    """The body of a sealed entry; empty where it is not the one that its header commits to."""
    salt, body, _ = said
    if salt is None or body is None or commit_body(salt, header.kind, body) != header.body:
        return {}
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return data if isinstance(data, dict) else {}


class SealedIdentity(NamedTuple):
    """Who a record says that it is of: team id, replica's name, the key it had when it was named.

    ``key`` is the one in force at its end. All are '' or None where the entries do not say it.
    """

    team: str = ""
    replica: str = ""
    named: VerifierKey | None = None
    key: VerifierKey | None = None

    def names_itself(self) -> bool:
        """Whether its name is one that the key gives it which it had when it was named."""
        if self.named is None:
            return False
        front = self.replica.removesuffix(f"-{key_digits(self.named.format())}")
        return front != self.replica and _FRONT.fullmatch(front) is not None


def sealed_identity(record: SealedRecord, key: VerifierKey | None) -> SealedIdentity:
    """What the entries from ``start`` on say; ``key`` was in force before them.

    A key counts that was put in force soundly: the first of a line, or one that the key before it
    vouched for (`seals-open` judges them by the same rule). The key of a line stays its key while
    entries name another one: these may be anybody's, who would come back with a key of their own.
    """
    team = replica = ""
    named: VerifierKey | None = None
    keys = {} if key is None else {key.name: key}
    origin = record.seal.origin
    for header, said in record.of_kinds(("key.set", "team.named")):
        data = sealed_body(header, said)
        try:
            if header.kind == "team.named":
                if header.ledger == origin:
                    team, replica = str(data["team"]), str(data["replica"])
                    named = keys.get(origin)
                continue
            new = VerifierKey.parse(str(data["vkey"]))
        except _BROKEN:
            continue
        if (new.name, new.kind) != (header.ledger, ED25519):
            continue
        held = keys.get(new.name)
        note = data.get("note")
        if held is None or (
            isinstance(note, str) and rotation_problem(note, new.name, held, new) is None
        ):
            keys[new.name] = new
    return SealedIdentity(team, replica, named, keys.get(origin))
