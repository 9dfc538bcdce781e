r"""Bodies beside a log's tiles: bundles of lines, one for each entry. Pure.

A bundle holds the bodies of the entries of one entry bundle (``ledger.tiles``), in their order::

    bodies/000.jsonl            entries 0 to 255
    bodies/001.p/44.jsonl       entries 256 to 299, while there are no more

Each line is the canonical JSON of an object, its body and salt as they were committed to:

>>> format_line(7, b"\x01" * 32, b'{"v":1}')[:20]
b'{"body":{"v":1},"sal'
>>> format_line(7, None, None)
b'{"seq":7}'

The second is an erased one. A line is cut by its ends and not parsed: the bytes of a body come out
as they went in, canonical or not, and are judged by whoever reads them.

``blobs/<sha256 in hex>`` holds the exact bytes of each blob that a body of the bundles names.
"""

from __future__ import annotations

import re

from ledger.entry import MAX_BODY
from ledger.errors import MalformedError
from ledger.tiles import ENTRIES, Tile, format_path, parse_path

__all__ = [
    "BLOBS",
    "BODIES",
    "MAX_LINES",
    "format_line",
    "line_path",
    "parse_line",
    "parse_line_path",
    "parse_lines",
]

BODIES = "bodies"  # the folder of the bundles
BLOBS = "blobs"  # the folder of the blobs
MAX_LINES = 256 * (MAX_BODY + 128)  # bytes in a bundle: a line adds less than 128 to its body

_SUFFIX = ".jsonl"
_BUNDLE = "tile/entries/"
_SALT = re.compile(rb"[0-9a-f]{64}")


def line_path(tile: Tile) -> str:
    """Where the bodies of an entry bundle lie, relative to the folder of the log."""
    return f"{BODIES}/{format_path(tile._replace(level=ENTRIES)).removeprefix(_BUNDLE)}{_SUFFIX}"


def parse_line_path(path: str) -> Tile:
    """Read the path of a bundle of bodies; only what ``line_path`` writes is accepted.

    Raises:
        MalformedError: anything else.
    """
    if path.startswith(f"{BODIES}/") and path.endswith(_SUFFIX):
        middle = path.removeprefix(f"{BODIES}/").removesuffix(_SUFFIX)
        return parse_path(_BUNDLE + middle)
    message = f"not the path of a bundle of bodies: {path[:200]!r}"
    raise MalformedError(message)


def format_line(seq: int, salt: bytes | None, body: bytes | None) -> bytes:
    """Write the line of an entry, without its line break (both None: it was erased)."""
    if salt is None or body is None:
        return b'{"seq":%d}' % seq
    return b'{"body":%b,"salt":"%b","seq":%d}' % (body, salt.hex().encode(), seq)


def parse_line(line: bytes, seq: int) -> tuple[bytes, bytes] | None:
    """Salt and body of entry ``seq`` from its line; None where they were erased.

    Raises:
        MalformedError: the line is not of the form that ``format_line`` writes for this entry.
    """
    if line == b'{"seq":%d}' % seq:
        return None
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
        return bytes.fromhex(line[middle : middle + 64].decode()), line[8 : middle - len(mark)]
    message = f"the line of entry {seq} is not of the form of a body with its salt"
    raise MalformedError(message)


def parse_lines(data: bytes, first: int, width: int) -> list[tuple[bytes, bytes] | None]:
    """Salt and body, or None, of the entries ``first`` to ``first + width - 1``.

    Raises:
        MalformedError: there are more lines or fewer, or one is not of its form.
    """
    lines = data.split(b"\n")
    if lines.pop() or len(lines) != width:
        message = f"a bundle of {width} bodies holds {len(lines)} whole lines"
        raise MalformedError(message)
    return [parse_line(line, seq) for seq, line in enumerate(lines, first)]
