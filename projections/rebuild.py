"""Both sides of a file projection at once: what it should be, what it is, and making it so.

``differences`` is drift (the verifier reports it); ``restore`` is what rebuild and recovery do
about it. Both go through the same render, so that rebuilding twice writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from ledger.progress import over
from projections import BUS, CHAT, FILES, OWN, PROJECTIONS
from projections.disk import RACY_NS, Disk, UnreadableError
from projections.manifest import Known, Manifest
from projections.projection import File, Render, Source

READ_LIMIT = 256 * 1024 * 1024


class Difference(NamedTuple):
    """A projected file that is not as the ledger has it; ``have`` is None where it is missing."""

    path: str
    want: File
    have: bytes | None
    mode: int | None


def desired(source: Source, path: str) -> File | None:
    """What stands at ``path`` according to the ledger, None where nothing of ours does."""
    for projection in PROJECTIONS:
        file = projection.render(source, path)
        if file is not None:
            return file
    return None


def renders(source: Source, *, queue: bool = True) -> Iterator[tuple[str, Render]]:
    """Every projected path with what renders it now; without the event files if not ``queue``.

    The queue is tens of thousands of small files: it fetches what it needs for many at once.
    """
    for projection in PROJECTIONS:
        if projection is BUS and queue:
            yield from BUS.renders(source)
        for path in () if projection is BUS else projection.paths(source):
            yield path, partial(desired, source, path)  # an event's file goes before a kept one


def own_files(source: Source) -> Iterator[tuple[str, Render]]:
    """Every path that we alone write, with what renders it."""
    for projection in OWN:
        for path in projection.paths(source):
            yield path, partial(projection.render, source, path)


def compare(disk: Disk, path: str, want: File) -> Difference | None:
    """Hold one file against what it should be."""
    try:
        found = disk.look(path, max(READ_LIMIT, len(want.data)))
    except UnreadableError:
        stat = disk.stat(path)
        return Difference(path, want, b"", None if stat is None else stat.mode)
    if found is None:
        return Difference(path, want, None, None)
    have, stat = found
    if have == want.data and stat.mode == want.mode:
        return None
    return Difference(path, want, have, stat.mode)


def agreed_chats(source: Source, disk: Disk, spared: tuple[type[Exception], ...] = ()) -> Manifest:
    """Chat files that are as the ledger renders them: nothing was added, nothing is to be found.

    They are most of what a team wrote; looked at here, nobody need render them again: neither the
    intake nor who compares the files. One that cannot be rendered for an error of ``spared`` is
    left out.
    """
    known: Manifest = {}
    errors: tuple[type[Exception], ...] = (*spared, UnreadableError)
    for path in CHAT.paths(source):
        try:
            want = CHAT.render(source, path)
            found = None if want is None else disk.look(path, len(want.data))
        except errors:
            continue
        if want is None or found is None:
            continue
        have, stat = found
        if have == want.data and stat.mode == want.mode:
            known[path] = Known(stat, sha256(have).hexdigest(), stat.mtime_ns + RACY_NS + 1)
    return known


def differences(
    source: Source, disk: Disk, *, evidence: bool = False, agreed: Collection[str] = ()
) -> Iterator[Difference]:
    """Every projected file that differs in bytes or mode; kept evidence too, if asked.

    ``agreed`` are paths that are known not to.
    """
    kept = FILES.evidence(source) if evidence else ()
    others: Iterable[tuple[str, Render]] = ((path, partial(desired, source, path)) for path in kept)
    for path, render in over(chain(renders(source), others), "comparing files"):
        want = None if path in agreed else render()
        difference = None if want is None else compare(disk, path, want)
        if difference is not None:
            yield difference


def restore(disk: Disk, found: Iterable[Difference]) -> int:
    """Write what differs; give the number of files written."""
    count = 0
    for difference in found:
        if difference.have == difference.want.data:
            disk.set_mode(difference.path, difference.want.mode)
        else:
            disk.write(difference.path, difference.want)
        count += 1
    return count
