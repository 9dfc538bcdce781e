r"""Tiles (C2SP tlog-tiles) and bundles of bodies: a log as files that never change. Pure.

A tile of level L holds up to 256 hashes of 32 bytes: of the leaves at level 0, and at each level
above one for each *full* tile below. Beside level 0 lie the entries themselves, in bundles, each
entry with its length before it in two bytes, big-endian.

>>> [format_tile_path(tile) for tile in tiles_of(257)]
['tile/0/000', 'tile/0/001.p/1', 'tile/1/000.p/1']

A bundle of bodies (``bodies/000.jsonl``) has a line for each entry of an entry bundle, canonical
JSON with body and salt as in the commitment. The second here is an erased one, the third one that
was signed: its record comes first (``tripod.ledger.actors``).

>>> format_line(7, LeafContent(b"\x01" * 32, b'{"v":1}'))[:20]
b'{"body":{"v":1},"sal'
>>> format_line(7, LeafContent(None, None))
b'{"seq":7}'
>>> format_line(7, LeafContent(None, None, b"\x01\x02"))
b'{"auth":"0102","seq":7}'

A line is cut by its ends and not parsed: the bytes of a body come out as they went in, canonical or
not; each reader judges them. No program but this module knows the names of these files.

Source: spec: tlog-formats 6; ``docs/formats/record.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

from tripod.ledger import places
from tripod.ledger.actors import MAX_RECORD
from tripod.ledger.entry import MAX_BODY, entry_blobs, entry_leaf_hash
from tripod.ledger.errors import MalformedError, TooLargeError
from tripod.ledger.store import RawEntry
from tripod.ledger.tlog.note import MAX_SIZE

WIDTH = 256  # hashes in a full tile, entries in a full bundle
MAX_ENTRY = 65_535  # bytes
ENTRIES = -1  # the level of a bundle: below the leaves

SEAL = places.SEAL
FOLDERS = TILES, BODIES, BLOBS = "tile", "bodies", "blobs"

_MAX_LEVEL = 63
_PATH = re.compile(
    r"tile/(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/){0,6}[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?"
)


class Tile(NamedTuple):
    """A tile by its place: level 0..63 (-1: a bundle), number from 0, and width 1..256."""

    level: int
    number: int
    width: int


def tiles_of(size: int) -> Iterator[Tile]:
    """The hash tiles of a tree of ``size`` leaves, by level, then by number (or ValueError)."""
    _check_size(size)
    level = 0
    while size:
        yield from _level_tiles(level, size)
        level, size = level + 1, size // WIDTH


def bundles_of(size: int) -> Iterator[Tile]:
    """The bundles of a log of ``size`` entries (ValueError: no log has that size)."""
    _check_size(size)
    yield from _level_tiles(ENTRIES, size)


def _level_tiles(level: int, size: int) -> Iterator[Tile]:
    full, partial = divmod(size, WIDTH)
    for number in range(full):
        yield Tile(level, number, WIDTH)
    if partial:
        yield Tile(level, full, partial)


def _check_size(size: int) -> None:
    if not 0 <= size <= MAX_SIZE:
        raise ValueError(f"no log has {size} entries")


def format_tile_path(tile: Tile) -> str:
    """Where a tile lies, relative to the folder of the log (ValueError: there is no such tile)."""
    level, number, width = tile
    if not (ENTRIES <= level <= _MAX_LEVEL and 0 <= number <= MAX_SIZE and 1 <= width <= WIDTH):
        raise ValueError(f"there is no tile {tile}")
    groups = [f"{number % 1000:03}"]
    while number := number // 1000:
        groups.append(f"x{number % 1000:03}")
    name = "/".join(reversed(groups))
    folder = "entries" if level == ENTRIES else str(level)
    return f"tile/{folder}/{name}" + (f".p/{width}" if width < WIDTH else "")


def parse_tile_path(path: str) -> Tile:
    """Read the path of a tile, as ``format_tile_path`` writes it (else MalformedError)."""
    match = _PATH.fullmatch(path)
    if match is not None:
        folder, name, width = match.groups()
        level = ENTRIES if folder == "entries" else int(folder)
        number = int(name.replace("x", "").replace("/", ""))
        tile = Tile(level, number, int(width) if width else WIDTH)
        # Compared as written: x000/001 and 001.p/256 are of that form, and no paths of ours.
        fits = tile.level <= _MAX_LEVEL and tile.number <= MAX_SIZE and tile.width <= WIDTH
        if fits and format_tile_path(tile) == path:
            return tile
    raise MalformedError(f"not the path of a tile: {path[:200]!r}")


def format_bundle(entries: Sequence[bytes]) -> bytes:
    """Write a bundle of 1 to 256 entries (TooLargeError: one takes more than 65,535 bytes)."""
    if not 1 <= len(entries) <= WIDTH:
        raise ValueError(f"a bundle holds from 1 to {WIDTH} entries, not {len(entries)}")
    parts = []
    for at, entry in enumerate(entries):
        if len(entry) > MAX_ENTRY:
            raise TooLargeError(
                f"entry {at} of the bundle takes {len(entry)} bytes, at most {MAX_ENTRY} fit"
            )
        parts += [len(entry).to_bytes(2, "big"), entry]
    return b"".join(parts)


def parse_bundle(data: bytes, width: int) -> list[bytes]:
    """Read the ``width`` entries of a bundle (MalformedError: there are others, or one is cut)."""
    entries: list[bytes] = []
    at = 0
    while at < len(data):
        start = at + 2
        at = start + int.from_bytes(data[at:start], "big")
        if at > len(data):
            raise MalformedError(f"entry {len(entries)} of the bundle is cut off")
        entries.append(data[start:at])
        if len(entries) > width:
            break
    if len(entries) != width:
        raise MalformedError(
            f"a bundle of {width} entries holds {'more' if entries[width:] else len(entries)}"
        )
    return entries


# Bodies -----------------------------------------------------------------------------------------


MAX_LINES = 256 * (MAX_BODY + 2 * MAX_RECORD + 140)  # bytes in a bundle: 140 for names and salt

_SUFFIX = ".jsonl"
_BUNDLE = "tile/entries/"
_SALT = re.compile(rb"[0-9a-f]{64}")
_AUTH = re.compile(rb'\{"auth":"((?:[0-9a-f]{2})+)",')
_SEQ = re.compile(rb'"seq":([0-9]{1,16})\}$')
_MARK = b'"sha256"'  # only a body that names a blob, or a digest, holds it


class LeafContent(NamedTuple):
    """What lies beside a leaf: salt and body (both None: erased), and the signature record."""

    salt: bytes | None
    body: bytes | None
    auth: bytes | None = None


def body_bundle_path(tile: Tile) -> str:
    """Where the bodies of an entry bundle lie, relative to the folder of the log."""
    return (
        f"{BODIES}/{format_tile_path(tile._replace(level=ENTRIES)).removeprefix(_BUNDLE)}{_SUFFIX}"
    )


def format_line(seq: int, said: LeafContent) -> bytes:
    """Write the line of an entry, without its line break."""
    salt, body, auth = said
    front = b"{" if auth is None else b'{"auth":"%b",' % auth.hex().encode()
    if salt is None or body is None:
        return b'%b"seq":%d}' % (front, seq)
    return b'%b"body":%b,"salt":"%b","seq":%d}' % (front, body, salt.hex().encode(), seq)


def parse_line(line: bytes, seq: int) -> LeafContent:
    """What lies beside the leaf of entry ``seq``, from its line (MalformedError: another form)."""
    signed = _AUTH.match(line)
    auth = None
    if signed is not None:
        auth = bytes.fromhex(signed[1].decode())
        line = b"{" + line[signed.end() :]
    if line == b'{"seq":%d}' % seq:
        return LeafContent(None, None, auth)
    front, end = b'{"body":', b'","seq":%d}' % seq
    middle = len(line) - len(end) - 64
    mark = b',"salt":"'
    if (
        line.startswith(front)
        and line.endswith(end)
        and line[middle - len(mark) : middle] == mark
        and _SALT.fullmatch(line, middle, middle + 64)
        and middle - len(mark) > len(front)
    ):
        salt = bytes.fromhex(line[middle : middle + 64].decode())
        return LeafContent(salt, line[8 : middle - len(mark)], auth)
    raise MalformedError(f"the line of entry {seq} is not of the form of a body with its salt")


def parse_body_bundle(data: bytes, first: int, width: int) -> list[LeafContent]:
    """What lies beside the leaves of ``width`` entries from ``first`` on (else MalformedError)."""
    lines = data.split(b"\n")
    if lines.pop() or len(lines) != width:
        raise MalformedError(f"a bundle of {width} bodies holds {len(lines)} whole lines")
    return [parse_line(line, seq) for seq, line in enumerate(lines, first)]


def erase_in_bundle_line(line: bytes, seqs: Collection[int]) -> bytes:
    """A line of a bundle of bodies, without its body if it is that of an entry of ``seqs``."""
    found = _SEQ.search(line)
    if found is None or int(found[1]) not in seqs:
        return line
    signed = _AUTH.match(line)
    return b'%b"seq":%b}' % (b"{" if signed is None else signed[0], found[1])


# The folder of an export ------------------------------------------------------------------------


def walk(size: int) -> Iterator[Tile]:
    """The bundles of an export (see ``bundle_files``), then its tiles above the leaves."""
    yield from bundles_of(size)
    yield from (tile for tile in tiles_of(size) if tile.level)


def bundle_paths(tile: Tile, *, bodies: bool) -> list[str]:
    """The paths of an entry bundle, of its leaf tile and, if the export has them, of its bodies."""
    paths = [format_tile_path(tile), format_tile_path(tile._replace(level=0))]
    return [*paths, body_bundle_path(tile)] if bodies else paths


def bundle_files(
    tile: Tile, entries: Sequence[RawEntry], *, bodies: bool
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of each file of ``bundle_paths``, from the entries that they hold."""
    headers, leaves, *lines = bundle_paths(tile, bodies=bodies)
    yield headers, format_bundle([entry.header for entry in entries])
    yield leaves, b"".join([entry_leaf_hash(entry.header) for entry in entries])
    for path in lines:
        said = [
            format_line(seq, LeafContent(salt, body, auth)) + b"\n"
            for seq, _, _, _, _, salt, body, auth in entries
        ]
        yield path, b"".join(said)


def bundle_blobs(body: bytes | None) -> Iterable[str]:
    """The digests, in hex, of the blobs that a body or its line names (ValueError: no JSON)."""
    if body is None or _MARK not in body:
        return ()
    return (digest for digest, _ in entry_blobs(orjson.loads(body)))


def bundle_blob_path(digest: str) -> str:
    """Where a blob lies, relative to the folder of the log."""
    return f"{BLOBS}/{digest}"


def parse_tile_or_bundle_path(path: str) -> Tile:
    """Read the path of a tile or of a bundle of bodies (MalformedError: it is neither)."""
    if not path.startswith(f"{BODIES}/"):
        return parse_tile_path(path)
    if not path.endswith(_SUFFIX):
        raise MalformedError(f"not the path of a bundle of bodies: {path[:200]!r}")
    return parse_tile_path(_BUNDLE + path.removeprefix(f"{BODIES}/").removesuffix(_SUFFIX))


def is_tile_or_bundle_of(path: str, size: int, named: Callable[[str], bool]) -> bool:
    """Whether an export of ``size`` entries has this file; ``named``: a body names the blob."""
    if path.startswith(f"{BLOBS}/"):
        return named(path.removeprefix(f"{BLOBS}/"))
    try:
        tile = parse_tile_or_bundle_path(path)
    except MalformedError:
        return path == SEAL
    there = size >> 8 * max(0, tile.level)
    return tile.width == min(WIDTH, there - tile.number * WIDTH)
