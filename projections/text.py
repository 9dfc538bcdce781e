"""Rules for words, lines and times in the original tools' files; shared by the formats. Pure.

A rule returns None if a text satisfies it, else the broken rule as a text for people that starts
with its subject: ``"handle: longer than 63 bytes"``.

Times are computed by plain arithmetic on UTC: ``datetime`` ends at the year 9999, a stranger's file
does not, and it is one more import. Days are counted in eras of 400 years (146,097 days), each year
beginning in March. The formats import only light modules: the hot commands import them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

# C0, DEL and C1 (with U+0085), the line and paragraph separators, and halves of surrogate pairs,
# which no UTF-8 file can hold.
_CONTROL = "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
# Characters that are not seen, or that turn the direction of the others: a word that looks like
# another word must be that word.
_HIDDEN = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"


def text_meant(text: str, words: Sequence[str], *, aside: bool = False) -> str:
    """A question to put after an unknown word: which similar one was meant; '' if none is similar.

    ``aside``: in parentheses, for the middle of a sentence, and only about the most similar word.

    >>> text_meant("hgih", ["critical", "high"])
    '. Did you mean high?'
    >>> text_meant("hgih", ["critical", "high"], aside=True)
    ' (did you mean high?)'
    """
    from difflib import get_close_matches

    close = get_close_matches(text, words, 3)
    if not close:
        return ""
    return f" (did you mean {close[0]}?)" if aside else f". Did you mean {' or '.join(close)}?"


def text_size(text: str) -> int:
    """Count the bytes of a text in UTF-8; half a surrogate pair counts as it would be written."""
    return len(text.encode("utf-8", "surrogatepass"))


def text_line_problem(text: str, what: str, limit: int) -> str | None:
    """Judge one line of text: not blank, no control characters, at most ``limit`` bytes."""
    if not text.strip():
        return f"{what}: empty"
    if not text.isprintable() and re.search(_CONTROL, text):  # a tab is one, too
        return f"{what}: holds a line break or another control character; write it as one line"
    if text_size(text) > limit:
        return f"{what}: longer than {limit} bytes"
    return None


def text_word_problem(text: str, what: str, limit: int, forbidden: str) -> str | None:
    """Judge one word: a line without white space, hidden characters or any of ``forbidden``."""
    problem = text_line_problem(text, what, limit)
    if problem is not None:
        return problem
    if any(character.isspace() for character in text):
        return f"{what}: holds white space"
    if not text.isprintable() and re.search(_HIDDEN, text):
        return f"{what}: holds a character that is not seen"
    wrong = next((character for character in text if character in forbidden), None)
    return None if wrong is None else f"{what}: holds {wrong!r}"


# Moments ----------------------------------------------------------------------------------------


MAX_EPOCH = 2**53 - 1
"""The largest integer that the ledger holds; a larger number in a file is no time."""

_TIME = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:Z| ?([+-])([0-9]{2}):?([0-9]{2}))?"
)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@lru_cache(maxsize=64)  # what is read or written at once is of few days
def _date(days: int) -> tuple[int, int, int]:
    era, day = divmod(days + 719_468, 146_097)  # days since 0000-03-01
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    march = (5 * day + 2) // 153
    month = march + 3 if march < 10 else march - 9
    day -= (153 * march + 2) // 5
    return year + 400 * era + (month <= 2), month, day + 1


def _civil(epoch_s: int) -> tuple[int, int, int, int, int, int]:
    days, second = divmod(epoch_s, 86_400)
    return *_date(days), second // 3_600, second // 60 % 60, second % 60


def _days(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, year = divmod(year, 400)
    in_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year * 365 + year // 4 - year // 100 + in_year - 719_468


def format_iso_time_text(epoch_s: int, zone: str) -> str:
    """Give ``YYYY-MM-DDTHH:MM:SS`` in UTC followed by ``zone``, the caller's word for UTC."""
    year, month, day, hour, minute, second = _civil(epoch_s)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}"


def format_stamp_text(epoch_s: int) -> str:
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
