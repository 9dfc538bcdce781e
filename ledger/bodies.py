r"""Bodies beside a log's tiles: bundles of lines, one for each entry. Pure.

A bundle holds the bodies of the entries of one entry bundle (``ledger.tiles``), in their order::

    bodies/000.jsonl            entries 0 to 255
    bodies/001.p/44.jsonl       entries 256 to 299, while there are no more

Each line is the canonical JSON of an object, its body and salt as they were committed to:

>>> format_line(7, Said(b"\x01" * 32, b'{"v":1}'))[:20]
b'{"body":{"v":1},"sal'
>>> format_line(7, Said(None, None))
b'{"seq":7}'
>>> format_line(7, Said(None, None, b"\x01\x02"))
b'{"auth":"0102","seq":7}'

The second is an erased one, the third one that was signed: its record comes first
(``ledger.authorship``). A line is cut by its ends and not parsed: the bytes of a body come out as
they went in, canonical or not, and are judged by whoever reads them.

``blobs/<sha256 in hex>`` holds the exact bytes of each blob that a body of the bundles names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ledger.authorship import MAX_RECORD
from ledger.entry import MAX_BODY
from ledger.errors import MalformedError
from ledger.tiles import ENTRIES, Tile, format_path, parse_path

BODIES = "bodies"  # the folder of the bundles
BLOBS = "blobs"  # the folder of the blobs
MAX_LINES = 256 * (MAX_BODY + 2 * MAX_RECORD + 140)  # bytes in a bundle: 140 for names and salt

_SUFFIX = ".jsonl"
_BUNDLE = "tile/entries/"
_SALT = re.compile(rb"[0-9a-f]{64}")
_AUTH = re.compile(rb'\{"auth":"((?:[0-9a-f]{2})+)",')


class Said(NamedTuple):
    """What lies beside a leaf: salt and body (both None: erased), and the signature record."""

    salt: bytes | None
    body: bytes | None
    auth: bytes | None = None


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
    raise MalformedError(f"not the path of a bundle of bodies: {path[:200]!r}")


def format_line(seq: int, said: Said) -> bytes:
    """Write the line of an entry, without its line break."""
    salt, body, auth = said
    front = b"{" if auth is None else b'{"auth":"%b",' % auth.hex().encode()
    if salt is None or body is None:
        return b'%b"seq":%d}' % (front, seq)
    return b'%b"body":%b,"salt":"%b","seq":%d}' % (front, body, salt.hex().encode(), seq)


def parse_line(line: bytes, seq: int) -> Said:
    """What lies beside the leaf of entry ``seq``, from its line.

    Raises:
        MalformedError: the line is not of the form that ``format_line`` writes for this entry.
    """
    signed = _AUTH.match(line)
    auth = None
    if signed is not None:
        auth = bytes.fromhex(signed[1].decode())
        line = b"{" + line[signed.end() :]
    if line == b'{"seq":%d}' % seq:
        return Said(None, None, auth)
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
        return Said(salt, line[8 : middle - len(mark)], auth)
    raise MalformedError(f"the line of entry {seq} is not of the form of a body with its salt")


def parse_lines(data: bytes, first: int, width: int) -> list[Said]:
    """What lies beside the leaves of the entries ``first`` to ``first + width - 1``.

    Raises:
        MalformedError: there are more lines or fewer, or one is not of its form.
    """
    lines = data.split(b"\n")
    if lines.pop() or len(lines) != width:
        raise MalformedError(f"a bundle of {width} bodies holds {len(lines)} whole lines")
    return [parse_line(line, seq) for seq, line in enumerate(lines, first)]
