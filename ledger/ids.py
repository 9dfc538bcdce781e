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
    ms, rest = divmod(ns, 1_000_000)
    time_ = f"{ms:012x}"
    fraction = (rest << 12) // 1_000_000
    return f"{time_[:8]}-{time_[8:]}-7{fraction:03x}-8{entropy[:3]}-{entropy[3:]}"


def fresh_ids(count: int) -> list[tuple[str, bytes]]:
    """``count`` pairs of a new id and a new salt of 32 random bytes.

    The ids of one call rise: they count up from a random place (RFC 9562, section 6.2), so that a
    batch is added at the end of the index of ids.
    """
    now = time.time_ns()
    salts = os.urandom(32 * count)
    first = int.from_bytes(os.urandom(8), "big") >> 5
    return [(uuid7(now, f"{first + n:015x}"), salts[32 * n : 32 * n + 32]) for n in range(count)]
