"""Files in memory that nobody can change: what a program is given by content, and not by a path.

A file on the disk can be changed until it is read, by any program of the same user. These have no
path, and are sealed (memfd_create(2), fcntl(2) F_ADD_SEALS): not even who made them can write them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

_ABOVE = 20  # lower numbers are the program's own: its input, its outputs
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_PART = 1024 * 1024


@contextmanager
def sealed_files(texts: Sequence[bytes]) -> Iterator[list[int]]:
    """Descriptors of sealed files with these bytes, at their beginning; closed in the end.

    Raises:
        OSError: no such file can be made, or another program changed one before it was sealed.
    """
    made: list[int] = []
    try:
        made.extend(map(_sealed, texts))  # those before one that fails are in it
        yield made
    finally:
        for fd in made:
            with suppress(OSError):
                os.close(fd)


def _sealed(text: bytes) -> int:
    fd = os.memfd_create("sealed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        at = 0
        while at < len(text):
            at += os.pwrite(fd, text[at : at + _PART], at)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        # Until now who may look into this process could open and write it.
        found = b"".join(iter(lambda: os.read(fd, _PART), b""))
        if found != text:
            raise OSError("a file in memory was changed by another program before it was sealed")
        os.lseek(fd, 0, os.SEEK_SET)
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    finally:
        os.close(fd)


def with_numbers(argv: Sequence[str], files: Mapping[int, int]) -> list[str]:
    """A command line with the numbers of descriptors in the places of the words ``files``."""
    return [str(files[at]) if at in files else word for at, word in enumerate(argv)]
