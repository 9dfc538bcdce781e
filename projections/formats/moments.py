"""Times as the original tools write them, by plain arithmetic on UTC; shared by the formats.

``datetime`` ends at the year 9999, where a stranger's file does not, and is one import more. Days
are counted in eras of 400 years (146,097 days), each year beginning in March.
"""

from __future__ import annotations

import re

MAX_EPOCH = 2**53 - 1
"""The largest integer that the ledger holds; a larger number in a file is no time."""

_TIME = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:Z| ?([+-])([0-9]{2}):?([0-9]{2}))?"
)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _civil(epoch_s: int) -> tuple[int, int, int, int, int, int]:
    days, second = divmod(epoch_s, 86_400)
    era, day = divmod(days + 719_468, 146_097)  # days since 0000-03-01
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    march = (5 * day + 2) // 153
    month = march + 3 if march < 10 else march - 9
    day -= (153 * march + 2) // 5
    return (
        year + 400 * era + (month <= 2),
        month,
        day + 1,
        second // 3_600,
        second // 60 % 60,
        second % 60,
    )


def _days(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, year = divmod(year, 400)
    in_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year * 365 + year // 4 - year // 100 + in_year - 719_468


def format_iso(epoch_s: int, zone: str) -> str:
    """Give ``YYYY-MM-DDTHH:MM:SS`` in UTC followed by ``zone``, the caller's word for UTC."""
    year, month, day, hour, minute, second = _civil(epoch_s)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}"


def format_stamp(epoch_s: int) -> str:
    """Give ``YYYYMMDD-HHMMSS`` in UTC, as the names of archives hold it."""
    year, month, day, hour, minute, second = _civil(epoch_s)
    return f"{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}"


def parse(text: str) -> int | None:
    """Read a time into epoch seconds; None where it names no moment.

    Accepted: ``2026-02-12T14:00:00`` with ``Z``, ``+0100`` or ``+01:00``, and the older form with a
    space and no offset. A missing offset is read as UTC: the writer's zone is not in the file.
    """
    match = re.fullmatch(_TIME, text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if (
        not (1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1] + (leap and month == 2))
        or not (year and hour < 24)
        or max(minute, second) > 59
    ):
        return None
    offset = 0
    if match[7] is not None:
        if int(match[8]) > 23 or int(match[9]) > 59:
            return None
        offset = (int(match[8]) * 3_600 + int(match[9]) * 60) * (1 if match[7] == "+" else -1)
    return _days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
