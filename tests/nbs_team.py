"""The files of a real team, written by the original tools: ``tests/golden/nbs-team.tar.gz``."""

import functools
import os
import re
import tarfile
import textwrap
from pathlib import Path

ARCHIVE = Path(__file__).parent / "golden" / "nbs-team.tar.gz"


@functools.cache
def files() -> dict[str, bytes]:
    """Give each file's bytes by its path under the team directory, such as ``scribe/log.md``."""
    found = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                found[member.name.removeprefix("./").removeprefix(".nbs/")] = file.read()
    return found


def unpack(archive: Path, folder: Path | str) -> None:
    """Lay out one of the archives of ``tests/golden``, which are our own, as our own files."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        members = tar.getmembers()
        for member in members:
            member.uid, member.gid = os.getuid(), os.getgid()
        tar.extractall(folder, members)  # noqa: S202


def example(docstring: str | None) -> bytes:
    """Give the first indented block of a module's docstring, as the file that it shows."""
    block = re.search(r"::\n\n((?:(?:    .*)?\n)+)", docstring or "")
    assert block is not None
    return (textwrap.dedent(block[1]).strip("\n") + "\n").encode()


def matching(folder: str, suffix: str) -> dict[str, bytes]:
    """Give the files below a folder that end in ``suffix``, in the order of their paths."""
    return {
        path: data
        for path, data in sorted(files().items())
        if path.startswith(f"{folder}/") and path.endswith(suffix)
    }
