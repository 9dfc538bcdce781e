"""Reads the times that commands are given: how long ago, an epoch, or a moment."""

from __future__ import annotations

import re
import time

from tripod.errors import BadArgumentError
from tripod.projections import text as moments

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def moment(text: str, what: str) -> int:
    """Epoch seconds of ``30s 5m 2h 1d`` ago, of an epoch, or of ``2026-02-12T14:00:00``.

    A moment without a zone is one of this host's.

    Raises:
        BadArgumentError: it is none of these.
    """
    ago = re.fullmatch("([0-9]{1,9})([smhd])", text)
    if ago is not None:
        return max(0, time.time_ns() // 1_000_000_000 - int(ago[1]) * _UNITS[ago[2]])
    if re.fullmatch("[0-9]{10,15}", text):
        return int(text)
    found = moments.parse(text) if "T" in text else None
    if found is None:
        raise BadArgumentError(
            f"{what}: {text:.40} is no time; give 30s, 5m, 2h or 1d ago, an epoch of ten digits "
            "or more, or 2026-02-12T14:00:00"
        )
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}", text):
        found = int(time.mktime((*time.gmtime(found)[:6], 0, 0, -1)))
    return found
