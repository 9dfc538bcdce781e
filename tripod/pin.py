"""Writes the pin that ``tripod verify --update-pin`` keeps: a few lines that CI, or anybody, holds.

It goes forward only, for it is written after a run that held the ledger against the old one and
found nothing. If we die here, the old pin or the new one stands there, whole.
"""

from __future__ import annotations

import os
import tempfile

__all__ = ["write_pin"]


def write_pin(path: str, data: bytes) -> bool:
    """Write a pin by temporary name and rename; whether it is another than before.

    Raises:
        OSError: the disk refused; what stood there stands there still.
    """
    try:
        with open(path, "rb") as file:
            if file.read(len(data) + 1) == data:
                return False
    except FileNotFoundError:
        pass
    folder = os.path.dirname(os.path.abspath(path))
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
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
    return True
