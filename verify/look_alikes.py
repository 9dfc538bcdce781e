"""Handles that look like another: by Unicode's table of characters that can be confused.

The table is ``confusables.txt`` beside this module, with its source and licence; it is read where a
team has a handle that is not ASCII, and only then.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache

_TABLE = os.path.join(os.path.dirname(__file__), "confusables.txt")
_ASCII = {ord("I"): "l", ord("1"): "l", ord("|"): "l", ord("0"): "O", ord("m"): "rn"}
"""Rows of the table from ASCII to ASCII."""


@cache
def _table() -> dict[int, str]:
    with open(_TABLE, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {int(point, 16): shown.translate(_ASCII) for point, shown in rows} | _ASCII


def skeleton(text: str) -> str:
    """What a text looks like: two texts with one skeleton can be taken for each other (UTS 39).

    >>> skeleton("\u0430nn") == skeleton("ann"), skeleton("bob") == skeleton("ann")
    (True, False)
    """
    seen = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFD", seen.translate(_table()))


def look_alikes(handles: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of handles that look alike, where one of the two is not ASCII; the plainer one first.

    Handles of ASCII alone (``w1`` and ``wl``) are not compared: every terminal shows them apart.
    """
    names = sorted(set(handles), key=lambda name: (not name.isascii(), name))
    if all(name.isascii() for name in names):
        return
    first: dict[str, str] = {}
    for name in names:
        known = first.setdefault(skeleton(name), name)
        if known != name and not name.isascii():
            yield known, name
