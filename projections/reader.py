"""Reads the team's files for the intake, and makes drafts of what others wrote into them."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger import MAX_BODY, Draft, observed_id
from tripod.ledger.kinds.base import content
from tripod.ledger.progress import EACH, tell
from tripod.projections.disk import RACY_NS, Disk, Stat, UnmergedError
from tripod.projections.manifest import Manifest
from tripod.projections.pieces import (
    BLOB_ABOVE,
    FILE_LIMIT,
    UNMERGED,
    Conflict,
    Found,
    Piece,
    as_blob,
    fits,
    merge_marker,
)
from tripod.projections.projection import Source


class Reader(NamedTuple):
    """What every part of the intake looks at: the tables, the disk, and what was known of it.

    ``full`` also looks at evidence and read positions, which daily commands pass over. The files
    show the first ``files`` of the ledger's ``size`` entries: after those, a writer died between
    its commit and its files, and what they lack is not missing. ``pruned`` are the processed
    events whose files that writer should have deleted, ``restored`` the files and folders that it
    should have written again.
    """

    source: Source
    disk: Disk
    manifest: Manifest
    full: bool
    found: Found
    files: int = 2**62
    size: int = 0
    pruned: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()

    def fresh(self, path: str, limit: int = FILE_LIMIT) -> bytes | None:
        """The bytes of a file if they are not those known to agree with the ledger, else None.

        Raises:
            TooBigError: the file is larger than ``limit``.
            UnmergedError: it holds conflict markers; that is a conflict already.
            UnreadableError: the system refuses.
        """
        stat = self.disk.stat(path)
        if stat is None or self.unchanged(path, stat):
            return None
        data = self.read(path, limit)
        known = self.manifest.get(path)
        if known is not None and known.digest == self.found.digests.get(path):
            return None
        return data

    def read(self, path: str, limit: int = FILE_LIMIT) -> bytes | None:
        """The bytes of a file, read and their digest kept, or None; raises as ``fresh`` does.

        Of an unmerged file no digest is kept: nobody may write over these bytes.
        """
        data = self.disk.read(path, limit)
        if data is not None:
            line = merge_marker(path, data)
            if line is not None and (line := merge_marker(path, data, self._held(path))):
                detail = f"line {line} is a conflict marker of a merge that is not finished"
                self.conflict(path, UNMERGED, detail)
                raise UnmergedError(f"{path}: {detail}")
            self.found.digests[path] = sha256(data).hexdigest()
        return data

    def _held(self, path: str) -> bytes:
        """What the ledger has for a path; nothing where nothing of ours stands."""
        from tripod.projections.engine import desired

        want = desired(self.source, path)
        return b"" if want is None else want.data

    def unwritten(self, seq: int) -> bool:
        """Whether the files are not known to show the entry ``seq`` yet."""
        return self.files < self.size and seq >= self.files

    def unchanged(self, path: str, stat: Stat) -> bool:
        """Whether the stat alone settles that nothing changed (it never does when it is racy)."""
        known = self.manifest.get(path)
        return (
            known is not None
            and known.stat == stat
            and known.noted_ns - known.stat.mtime_ns > RACY_NS
        )

    def conflict(self, path: str, what: str, detail: str) -> None:
        """Report what is not taken in."""
        self.found.conflicts.append(Conflict(path, what, detail))


def erased_since(reader: Reader, place: str, kinds: Sequence[str]) -> list[int]:
    """Entries that were erased, and of which the file at ``place`` may still show the text."""
    if reader.files >= reader.size:
        return []
    sql = "SELECT seq, kind FROM redactions WHERE place = ? AND entry >= ?"
    rows = reader.source.db.execute(sql, (place, reader.files))
    return [seq for seq, kind in rows if kind in kinds]


def make_piece(
    reader: Reader,
    *,
    kind: str,
    stream: str,
    actor: str,
    body: dict[str, Any],
    path: str,
    data: bytes,
    when: int,
    rank: int,
    ordinal: int,
    raw: bool = False,
    blobs: list[bytes] | None = None,
    identity: str | None = None,
    **observed: Any,
) -> None:
    """Add the draft of one observed piece to what was found.

    ``data`` is the piece's bytes, kept in ``observed.raw`` where ``raw`` says that our rendering
    would differ. ``blobs`` are those that the body names. ``identity`` is the path that enters
    the id, where a file may have moved. Fields of ``observed`` that are None are left out.
    """
    blobs = [] if blobs is None else blobs
    seen = {"path": path} | {name: value for name, value in observed.items() if value is not None}
    if raw:
        seen["raw"] = content(data, blobs)
        if len(data) > BLOB_ABOVE and not fits({**body, "observed": seen}, MAX_BODY - 64):
            seen["raw"] = as_blob(data, blobs)
    draft = Draft(
        kind,
        stream,
        actor,
        {**body, "observed": seen, "v": 1},
        observed_id(identity or path, ordinal, kind.encode() + b"\x00" + data),
        blobs=tuple(blobs),
    )
    reader.found.pieces.append(Piece(when, rank, path, ordinal, draft))
    if not len(reader.found.pieces) % EACH:
        tell("reading the team's files", len(reader.found.pieces))
