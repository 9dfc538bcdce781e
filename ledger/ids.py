"""New ids and the time of this host's clock: what the edges hand to the pure core."""

from __future__ import annotations

import os
import time


def now_us() -> int:
    """This host's clock, in microseconds since 1970 (UTC)."""
    return time.time_ns() // 1000


def format_at(us: int) -> str:
    """Write microseconds since 1970 as ``2026-11-21T20:17:50.123456Z``.

    >>> format_at(1795294675123456)
    '2026-11-21T20:57:55.123456Z'
    """
    moment = time.gmtime(us // 1_000_000)
    return (
        f"{moment.tm_year:04}-{moment.tm_mon:02}-{moment.tm_mday:02}"
        f"T{moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02}.{us % 1_000_000:06}Z"
    )


def now_at() -> str:
    """This host's clock as the ``at`` of a header."""
    return format_at(now_us())


def uuid7(ns: int, entropy: str) -> str:
    """Make a time-ordered id (UUIDv7, RFC 9562) from a time in ns and 15 random hex digits.

    The 12 bits after the milliseconds carry the sub-millisecond fraction, so that ids of one
    process rise with its clock: a random unique index costs more than all the hashing.

    >>> uuid7(1795294675123456789, "0123456789abcde")
    '01a1ffe6-c0b3-774f-8012-3456789abcde'
    """
    return f"{_front(ns)}{entropy[:3]}-{entropy[3:]}"


def _front(ns: int) -> str:
    """The part of an id that its time gives."""
    ms, rest = divmod(ns, 1_000_000)
    time_ = f"{ms:012x}"
    return f"{time_[:8]}-{time_[8:]}-7{(rest << 12) // 1_000_000:03x}-8"


def fresh_ids(count: int) -> list[tuple[str, bytes]]:
    """``count`` pairs of a new id and a new salt of 32 random bytes.

    The ids of one call rise: they count up from a random place (RFC 9562, section 6.2), so that a
    batch is added at the end of the index of ids.
    """
    front = _front(time.time_ns())
    noise = os.urandom(32 * count + 8)
    first = int.from_bytes(noise[-8:], "big") >> 5
    return [
        (f"{front}{number >> 48:03x}-{number & 0xFFFF_FFFF_FFFF:012x}", noise[at : at + 32])
        for at, number in zip(range(0, 32 * count, 32), range(first, first + count), strict=True)
    ]
