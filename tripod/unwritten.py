"""What is to be said of files behind an act: what could not be written, or not surely."""

from __future__ import annotations

from collections.abc import Iterator

from tripod.files import Files

_WEAK = (
    "this file system cannot exchange two files: what an editor saves in the moment in which we "
    "write the same file can be lost (docs/formats/files.md says what cannot)"
)


def unwritten(files: Files, *, full: bool) -> Iterator[str]:
    """What could not be written; it is recorded, and the next command tries again.

    In a ``full`` look also what is true of the file system at all times.
    """
    for path, reason in files.failed.items():
        yield f"{path}: recorded, but the file is not written yet: {reason}"
    if files.is_weak and full:
        yield _WEAK
    for path in files.late:
        yield f"{path}: recorded, but others keep writing the file; try again later"
