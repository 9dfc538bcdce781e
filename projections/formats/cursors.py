"""The read positions that the original chat tool keeps beside a chat: ``<channel>.chat.cursors``.

::

    # Read cursors — last-read message index per handle
    alex=663
    claude=664

An index counts the messages of the live file from 0. Pure; source: spec nbs-compat C2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HEADER = "# Read cursors — last-read message index per handle\n"
_LINE = r"([^=\n]+)=([0-9]{1,10})"
_LARGEST = 2**31 - 1


def parse_cursors(data: bytes) -> dict[str, int]:
    r"""Handles with their indexes, in the order of the file; what is no position is passed over.

    >>> parse_cursors(b"# x\nann=3\nbob=often\n")
    {'ann': 3}
    """
    found: dict[str, int] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        match = None if line.startswith("#") else re.fullmatch(_LINE, line)
        if match is not None and int(match[2]) <= _LARGEST:
            found[match[1]] = int(match[2])
    return found


def format_cursors(positions: Mapping[str, int]) -> bytes:
    """The bytes of the file.

    >>> format_cursors({"ann": 3}).splitlines()[1]
    b'ann=3'
    """
    return (HEADER + "".join(f"{name}={index}\n" for name, index in positions.items())).encode()
