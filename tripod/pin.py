"""Writes the pin that ``tripod verify --update-pin`` keeps: a few lines that CI, or anybody, holds.

It goes forward only, and stays with one ledger: it is written after a run that held the ledger
against the old one and was clean, and what stands there at that moment is asked again, in a lock,
since another run may have moved it meanwhile. If we die here, the old pin or the new one stands
there, whole.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable

from ledger.plain import read_plain
from ledger.seal import Seal
from tripod.errors import RefusedError
from verify.known import parse_head
from verify.outside import read_pin


def write_pin(path: str, data: bytes, agrees: Callable[[Seal], bool]) -> bool:
    """Let the pin at ``path`` remember ``data``; False where it remembers as much or more already.

    ``agrees`` says whether a head is one of the ledger's own, which was judged.

    Raises:
        RefusedError: the pin is of another ledger, or of another history.
        OutsideError: what stands there cannot be read.
        OSError: the disk refused; what stood there stands there still.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        there = read_pin(path)
        if there is not None:
            if not _moves(path, there.seal, parse_head(data)[0], agrees):
                return False
            if read_plain(path, len(data), named=True) == data:
                return False
        _replace(folder, path, data)
        os.fsync(place)
    finally:
        os.close(place)
    return True


def _moves(path: str, old: Seal, new: Seal, agrees: Callable[[Seal], bool]) -> bool:
    """Whether ``new`` is further than ``old``, in the same history."""
    if old.origin != new.origin:
        raise RefusedError(
            f"the pin {path} remembers {old.origin}, and this ledger is {new.origin}: a pin never "
            "moves to another ledger. If you believe this one, remove the pin and make a new one"
        )
    if old.size <= new.size and not agrees(old):
        raise RefusedError(
            f"the pin {path} remembers another history of {old.origin} since this run began: "
            "nothing was written, judge the ledger again"
        )
    return old.size <= new.size


def _replace(folder: str, path: str, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".pin-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
