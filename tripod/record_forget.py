"""Takes erased bodies out of an export: its headers, tiles and seals stay as they are.

An export with bodies (the record in ``.nbs/record`` is one) holds them in ``bodies/``, one JSON
line an entry, and long texts in ``blobs/``, by digest. An erased entry's line is its number alone,
with its signature record where it was signed.
Where we die on the way, doing it again finishes it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

import orjson

from ledger.bodies import MAX_LINES
from ledger.durable import sync_path
from ledger.errors import LedgerError
from ledger.places import RECORD
from ledger.plain import read_plain
from ledger.redaction import named_blobs
from projections.disk import TEMPORARY, Disk
from projections.projection import File
from tripod.staging import alone

if TYPE_CHECKING:
    from ledger.sqlite import SQLiteStore

WAIT_MS = 10_000  # how long a redaction waits for who reads older pages of the database

_SEQ = re.compile(rb'"seq":([0-9]{1,16})\}$')
_AUTH = re.compile(rb'\{"auth":"[0-9a-f]+",')
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Forgotten(NamedTuple):
    """How many bodies and blobs were removed."""

    bodies: int
    blobs: int


def forget(directory: str, seqs: Collection[int]) -> Forgotten:
    """Remove the bodies of ``seqs`` from the export in ``directory``, and blobs none names now.

    Nothing is done where there is no such folder, or where it holds no bodies.

    Raises:
        OSError: the system refuses; do it again.
    """
    if not os.path.isdir(f"{directory}/bodies"):
        return Forgotten(0, 0)
    with alone(directory):  # who exports meanwhile may still read the ledger as it was
        return _forget(directory, seqs)


def forget_copies(root: str, seqs: Collection[int]) -> None:
    """Remove the bodies of ``seqs`` from what the team directory ``root`` holds beside its ledger.

    Raises:
        OSError: the system refuses; do it again.
    """
    from tripod.scribe_search import drop

    forget(f"{root}/{RECORD}", seqs)
    drop(root)


def sweep(store: SQLiteStore, root: str, *, patient: bool) -> list[str]:
    """Finish a redaction: its copies, and every page in which the erased bytes may still lie.

    Whoever acts does it, until it succeeds; who erased is ``patient``. Gives what hinders it.
    """
    try:
        forget_copies(root, store.unswept())
        swept = store.sweep(WAIT_MS if patient else 0)
    except (LedgerError, OSError) as error:
        return [f"erased, but its bytes may still lie in the files: {error}"]
    if swept:
        return []
    wal = f"{os.path.basename(store.path)}-wal"
    where = f"its bytes lie in {wal} until it ends; the next command that acts removes them"
    return [f"erased, but another program still reads older pages of the ledger: {where}"]


def _forget(directory: str, seqs: Collection[int]) -> Forgotten:
    count = 0
    for path in _bundles(f"{directory}/bodies"):
        lines = _read(path).split(b"\n")
        kept = [_without(line, seqs) for line in lines]
        if kept != lines:
            count += sum(new != old for new, old in zip(kept, lines, strict=True))
            mode = os.stat(path).st_mode & 0o7777
            part = os.path.relpath(path, directory)
            Disk(directory).write(part, File(b"\n".join(kept), mode))
    return Forgotten(count, _drop_blobs(directory))


def _read(path: str) -> bytes:
    data = read_plain(path, MAX_LINES)
    if len(data) > MAX_LINES:
        raise OSError(
            errno.EFBIG, f"more than {MAX_LINES} bytes are no bodies that were exported", path
        )
    return data


def _bundles(folder: str) -> Iterator[str]:
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if not name.startswith(TEMPORARY):
                yield os.path.join(path, name)


def _without(line: bytes, seqs: Collection[int]) -> bytes:
    """The line of an entry, or what stands for it once its body is erased."""
    found = _SEQ.search(line)
    if found is None or int(found[1]) not in seqs:
        return line
    signed = _AUTH.match(line)
    return b'%b"seq":%b}' % (b"{" if signed is None else signed[0], found[1])


def _drop_blobs(directory: str) -> int:
    """Remove blobs that no body names any more."""
    folder = f"{directory}/blobs"
    if not os.path.isdir(folder):
        return 0
    named: set[str] = set()
    for path in _bundles(f"{directory}/bodies"):
        for line in _read(path).split(b"\n"):
            if b'"sha256"' in line:
                named.update(digest for digest, _ in named_blobs(orjson.loads(line)))
    gone = [n for n in sorted(os.listdir(folder)) if _DIGEST.fullmatch(n) and n not in named]
    for name in gone:
        os.unlink(f"{folder}/{name}")
    if gone:
        sync_path(folder)
    return len(gone)
