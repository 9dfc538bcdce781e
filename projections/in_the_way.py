"""What stands where a projected file belongs and must not be written over.

A person who puts a symbolic link there (a log that is kept under ``docs/``) means something by it.
Such a place is told and left as it is. A folder is no matter: nothing can be written over it.

A file that holds conflict markers is half of a merge that a person has yet to finish: taken in, its
marker lines would stand in the ledger for ever; written over, the other side's part would be gone.
"""

from __future__ import annotations

import os
import re
from collections import Counter

from projections.disk import Disk

UNMERGED_CURE = (
    "finish the merge: keep this ledger's lines first and the other side's behind them, remove the "
    "marker lines, then `tripod sync`"
)

# As git writes them: seven of a kind (an attribute may ask for more), then a label or nothing.
_MARKER = re.compile(rb"^(?:<{7,}+|\|{7,}+|>{7,}+)(?: [^\n]*)?\r?$|^={7,}+\r?$", re.MULTILINE)
_FENCE = re.compile(rb"^ {0,3}(?:```|~~~)", re.MULTILINE)
_WORDS = (b"<<<<<<<", b">>>>>>>")


def in_the_way(disk: Disk, path: str) -> str | None:
    """Words for what would be replaced at ``path``; None for a file, a folder, and nothing."""
    odd = disk.odd(path)
    if odd is None or odd == "a folder":
        return None
    try:
        return f"{odd} to {os.readlink(disk.full(path))!r}"
    except OSError:  # no link
        return odd


def merge_marker(path: str, data: bytes, held: bytes = b"") -> int | None:
    r"""The number, from 1, of the first line that is a conflict marker; None without a conflict.

    A text that quotes markers is no conflict: in a Markdown file two of a conflict's markers must
    follow each other in their order, outside of a fenced block. In a chat, whose lines are base64,
    one that opens or closes a conflict is enough. Logs of workers are never judged: they only
    grow, and hold what terminals showed.

    Args:
        path: the file's path within the team directory.
        data: its bytes.
        held: what the ledger has for it; a marker that stands there was taken in long ago.

    >>> merge_marker("scribe/log.md", b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\n")
    2
    >>> merge_marker("scribe/log.md", b"a\n=======\nb\n") is None
    True
    """
    if path.endswith(".log") or not any(word in data for word in _WORDS):
        return None
    found = list(_MARKER.finditer(data))
    old = Counter(match[0].rstrip(b"\r") for match in _MARKER.finditer(held)) if held else Counter()
    if found and not Counter(match[0].rstrip(b"\r") for match in found) - old:
        return None
    fences = [] if path.endswith(".chat") else [m.start() for m in _FENCE.finditer(data)]
    before = 0  # fences
    first: tuple[int, int, bytes] | None = None  # where, how many characters, which
    for match in found:
        at, text = match.start(), match[0]
        while before < len(fences) and fences[before] < at:
            before += 1
        if before % 2:
            continue
        kind = text[:1]
        size = len(text) - len(text.lstrip(kind))
        if path.endswith(".chat"):
            if kind in b"<>":
                return data.count(b"\n", 0, at) + 1
        elif first is not None and size == first[1] and _follows(first[2], kind):
            return data.count(b"\n", 0, first[0]) + 1
        elif kind in b"<=":
            first = at, size, kind
    return None


def _follows(first: bytes, kind: bytes) -> bool:
    """Whether a conflict goes on with this marker: ``<<<<<<<``, ``|||||||``, ``=======``, ..."""
    return kind in b"|=>" if first == b"<" else kind == b">"
