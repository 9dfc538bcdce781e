r"""Growth: a file that shows that a log only grew since an older seal of it. Pure.

::

    old <size of the older tree>\n
    <base64 hash>\n                   the consistency proof, up to 63
    \n
    <the newer seal: a signed note>

These are the bytes that a tlog-witness is sent. The file does not hold the older root: who checks
it has the older seal. Source: spec: tlog-formats 1 and 5.
"""

from __future__ import annotations

from typing import NamedTuple

from ledger.errors import MalformedError
from ledger.note import MAX_NOTE, Note, format_note, parse_note
from ledger.spelling import format_base64, parse_base64, parse_decimal, parse_text

__all__ = ["Growth", "format_growth", "parse_growth"]

_MAX_HASHES = 63
_MAX = MAX_NOTE + 4096  # bytes
_OLD = "old "


class Growth(NamedTuple):
    """That the log of ``old`` entries is a prefix of the one under the seal in ``note``."""

    old: int
    hashes: tuple[bytes, ...]
    note: Note


def format_growth(growth: Growth) -> bytes:
    """Write a growth.

    Raises:
        MalformedError: more than 63 hashes, or the note is none.
    """
    if len(growth.hashes) > _MAX_HASHES:
        message = f"growth: {len(growth.hashes)} hashes, at most {_MAX_HASHES} are possible"
        raise MalformedError(message)
    lines = [f"{_OLD}{growth.old}", *map(format_base64, growth.hashes)]
    return ("\n".join(lines) + "\n\n").encode() + format_note(growth.note)


def parse_growth(data: bytes) -> Growth:
    """Read a growth without judging it; only what ``format_growth`` writes is accepted.

    Raises:
        MalformedError: anything else, saying which line.
    """
    head, blank, note = parse_text(data, _MAX, "growth").partition("\n\n")
    lines = head.split("\n")
    if not blank or not lines[0].startswith(_OLD) or len(lines) > _MAX_HASHES + 1:
        message = "growth: not `old` and a size, up to 63 hashes, an empty line and a seal"
        raise MalformedError(message)
    old = parse_decimal(lines[0].removeprefix(_OLD), "growth: line 1, the older size")
    hashes = [parse_base64(line, f"growth: line {n}") for n, line in enumerate(lines[1:], 2)]
    if any(len(digest) != 32 for digest in hashes):
        message = "growth: a hash has not 32 bytes"
        raise MalformedError(message)
    return Growth(old, tuple(hashes), parse_note(note.encode()))
