"""What taking in yields: drafts of observed entries, and what was found that is not taken in."""

from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from tripod.ledger import MAX_BODY, Draft, format_value, observed_id
from tripod.ledger.kinds.base import Content, content
from tripod.ledger.progress import EACH, tell
from tripod.projections.disk import RACY_NS, Disk, Stat, UnmergedError, merge_marker
from tripod.projections.manifest import Manifest
from tripod.projections.projection import Source

FILE_LIMIT = 64 * 1024 * 1024
BLOB_ABOVE = 2048  # bytes; as text with control characters they take six times as much
UNMERGED = "unmerged"
BODY_ROOM = MAX_BODY // 2
"""Bytes that one field of strangers may take in a body, which also holds raw bytes and a path."""


class Piece(NamedTuple):
    """A draft with where it belongs in time: ``when`` in µs as its writer claims it."""

    when: int
    rank: int
    path: str
    ordinal: int
    draft: Draft


class Conflict(NamedTuple):
    """Something on disk that contradicts the ledger and is therefore not taken in.

    ``what`` is ``edited``, ``missing``, ``moved back``, ``unreadable``, ``blocked`` or
    ``unmerged``; ``detail`` says more to a person. What is missing holds no byte that could be
    lost: the next act writes it again. Where a place is blocked, a link or the like stands in it,
    and stays there. An unmerged file holds conflict markers, and stays as it is.
    """

    path: str
    what: str
    detail: str


class Found:
    """The outcome of one look at the team directory.

    ``digests`` are those of the files that were read, by path: a later write in the same act may
    replace these bytes, and no others. ``odd`` says of inputs that
    are no regular files what they are, and what holds meanwhile. ``malformed`` says of pieces of
    the decision log, by the ids of their drafts, what is wrong with them. ``logs`` are the names of
    the files in the Scribe's folder that are a decision log, or an archive of one.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.conflicts: list[Conflict] = []
        self.left_alone: list[str] = []
        self.files = 0
        self.digests: dict[str, str] = {}
        self.odd: dict[str, str] = {}
        self.malformed: dict[str, str] = {}
        self.logs: set[str] = set()


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


def same_but(
    erased: Collection[bytes],
    held: Sequence[bytes],
    shown: Sequence[bytes],
    mark: Callable[[bytes], object],
) -> bool:
    """Whether a file's parts begin with those that the ledger holds, but for the ``erased``.

    Where one of these belongs, any part will do that has the same ``mark``.
    """
    return len(shown) >= len(held) and all(
        one == other or (one in erased and mark(one) == mark(other))
        for one, other in zip(held, shown, strict=False)
    )


def as_blob(data: bytes, blobs: list[bytes]) -> Content:
    """Hold bytes exactly, outside the body; see ``tripod.ledger.kinds.base.content``."""
    blobs.append(data)
    return {"sha256": sha256(data).hexdigest(), "size": len(data)}


def beside(data: bytes, blobs: list[bytes]) -> Content:
    """Hold bytes that share a body with others of their size (the two headers of a split log)."""
    return content(data, blobs) if len(data) <= BLOB_ABOVE else as_blob(data, blobs)


def fits(value: object, room: int = BODY_ROOM) -> bool:
    """Whether a stranger's value, written as JSON, leaves a body below its limit."""
    return len(format_value(value)) <= room


def names_in_bodies(names: Sequence[str]) -> Iterator[list[str]]:
    """Cut a list of names into lists that each fit a body (a name has up to 255 bytes)."""
    part: list[str] = []
    room = BODY_ROOM
    for name in names:
        size = len(format_value(name)) + 1
        if part and size > room:
            yield part
            part, room = [], BODY_ROOM
        part.append(name)
        room -= size
    if part:
        yield part


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


def sort_pieces(pieces: list[Piece]) -> list[Draft]:
    """Put pieces in time order, each file's own order kept (its clock may have gone back).

    All decision logs are one stream: there, each log keeps its own order.
    """
    latest: dict[str, int] = {}
    dated = []
    for number, piece in enumerate(pieces):
        stream = piece.draft.stream
        if stream == "decisions":
            stream += f"/{piece.draft.body.get('file', '')}"
        when = max(piece.when, latest.get(stream, 0)) if stream != "bus" else piece.when
        latest[stream] = when
        dated.append((when, piece.rank, number, piece.draft))
    dated.sort(key=lambda item: item[:3])
    return [draft for *_, draft in dated]
