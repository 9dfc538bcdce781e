"""Keeps the bytes of recorded sessions in ``.nbs/evidence/``, in parts that are named by digest.

The folder has mode 0700 and is in no commit, no record, and no export unless that is asked for:
transcripts hold secrets. The parts of a longer copy are those of the shorter one, but for the last.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from typing import IO

from tripod.errors import RefusedError
from tripod.ledger import EVIDENCE
from tripod.ledger.files import hold_folder_lock, name_file, read_plain_file, sync_path
from tripod.projections.projection import Source
from tripod.verify.isolation.sessions import named_parts, parts_of
from tripod.verify.recorded.evidence import part_path

PART = 4 * 1024 * 1024
"""Bytes of a part; the last one of a file has fewer."""


def keep_parts(root: str, file: IO[bytes], size: int) -> list[str]:
    """Keep the next ``size`` bytes of a file; give the digests of its parts, in their order.

    What is given is on the disk. Raises RefusedError where the folder is a link, or a file.
    """
    folder = os.path.join(root, EVIDENCE)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if os.path.islink(folder) or not os.path.isdir(folder):
        raise RefusedError(f"{folder} is not a folder of the team: put a folder there, or nothing")
    os.chmod(folder, 0o700)
    digests = []
    for start in range(0, size, PART):
        data = file.read(min(PART, size - start))
        digest = sha256(data).hexdigest()
        path = part_path(root, digest)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        if os.path.islink(os.path.dirname(path)):
            raise RefusedError(f"{os.path.dirname(path)} is a link: put a folder there, or nothing")
        if not _is_whole(path, digest):
            with suppress(FileNotFoundError):
                os.unlink(path)  # it is damaged: an honest one has this digest
            _write(path, data)
        digests.append(digest)
    return digests


def _is_whole(path: str, digest: str) -> bool:
    try:
        return sha256(read_plain_file(path, PART)).hexdigest() == digest
    except OSError:
        return False


def _write(path: str, data: bytes) -> None:
    staged = f"{path}.{os.getpid()}"
    with open(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:
        new.write(data)
        new.flush()
        os.fsync(new.fileno())
    name_file(staged, path)  # False: somebody else kept the same bytes meanwhile
    sync_path(os.path.dirname(path))


def export_parts(source: Source, root: str, directory: str, size: int) -> tuple[int, int]:
    """Copy the parts that the first ``size`` entries name to an export of the team in ``root``.

    Gives how many the export has, and how many are not in the team directory as they were.
    """
    lost = 0
    with hold_folder_lock(directory):
        named = named_parts(source, size)
        for digest in sorted(named):
            try:
                data = read_plain_file(part_path(root, digest), PART)
            except OSError:
                data = b""
            if sha256(data).hexdigest() == digest:
                keep_parts(directory, BytesIO(data), len(data))
            else:
                lost += 1
    return len(named) - lost, lost


def remove_unnamed_parts(source: Source, directory: str) -> None:
    """Remove from an export the parts that no entry names any more."""
    if not os.path.isdir(os.path.join(directory, EVIDENCE)):
        return
    with hold_folder_lock(directory):
        named = named_parts(source)
        for _, _, names in os.walk(os.path.join(directory, EVIDENCE)):
            remove_parts(directory, (name for name in names if name not in named))


def parts_named_once(source: Source, seqs: Collection[int]) -> list[str]:
    """The digests of the parts that these entries alone name: with their bodies they go as well."""
    ours, others = set[str](), set[str]()
    for (seq,) in source.db.execute("SELECT seq FROM sessions WHERE kept ORDER BY seq").fetchall():
        (ours if seq in seqs else others).update(parts_of(source, source.body(seq)))
    return sorted(ours - others)


def remove_parts(root: str, digests: Iterable[str]) -> None:
    """Remove parts; what lies behind a link is somebody else's."""
    for digest in digests:
        path = part_path(root, digest)
        if not any(map(os.path.islink, (os.path.join(root, EVIDENCE), os.path.dirname(path)))):
            with suppress(FileNotFoundError):
                os.unlink(path)
