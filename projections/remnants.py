"""What a power cut may leave of files that the disk was not waited for (docs/decisions/0030).

An act writes its files and goes on. As long as the host runs, they are as they were written. After
a power cut the disk may have any of them as before the act, or under its name empty, cut, or with
zeros in place of some sectors. Which files these can be is known: those that the entries touched
since the disk was waited for last. Bytes of others are not among what is lost: they were in the
ledger before a file was replaced.

So such a file is held against what the ledger gave for it since then. Where all of its bytes but
the zeros stand there as they stood in one of those states, it is a *remnant*: nobody edited it, and
it is written again. What others added behind such a state is taken in. Any other change is judged
as at all times.

A cut is before the start of the host. So a remnant is *doubtful* where the file was written after
the start and holds nothing of others, or is gone and its folder was changed after the start:
somebody may have done that. It is written again all the same, since a file that the cut took must
not be taken for a deletion; but that is recorded, and the verifier calls it a failure until then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

from tripod.projections import layout
from tripod.projections.chat.format import split_chat_file
from tripod.projections.chat.tables import CHAT
from tripod.projections.disk import Disk, UnreadableError
from tripod.projections.engine import desired_file, past_file, touched_files
from tripod.projections.pieces import Remnant
from tripod.projections.projection import Source
from tripod.projections.team.tables import COUNTS
from tripod.projections.workers.tables import worker_of_path

DOUBTFUL = "after a start of the host it was gone or cut, and it or its folder was changed since"
_LIMIT = 2**30
_MOST_STATES = 50
_ZEROS = rb"\0+"  # compiled after a power cut alone
_MARK = b"\n---\n"
_BEGINNING = b"=== nbs-chat ===\n"
_WENT = (
    "SELECT gone FROM lines WHERE channel = ?1 AND gone >= ?2"
    " UNION SELECT seq FROM archives WHERE channel = ?1 AND seq >= ?2 ORDER BY 1 DESC LIMIT ?3"
)


def find_remnants(source: Source, disk: Disk, synced: int, noted: int) -> dict[str, Remnant]:
    """What a power cut left of the files that the entries from ``synced`` on touched.

    Those of the entries before ``noted`` had been written.
    """
    found = {}
    written = touched_files(source.ledger.read(synced, noted), source)
    for path in touched_files(source.ledger.read(synced), source):
        want = desired_file(source, path)
        if want is None:
            continue
        try:
            have = disk.read(path, _LIMIT)
        except UnreadableError:
            continue
        if have is None and not disk.stands(path):
            folder = path.rpartition("/")[0]
            done = path.replace(f"{layout.EVENT.folder}/", f"{layout.DONE.folder}/", 1)
            if layout.layout_class_of(path) is layout.EVENT and disk.stands(done):
                continue  # others acknowledged it
            is_changed = (
                disk.is_of_this_start(folder) if disk.stat(folder) else not disk.places.missing()
            )
            doubtful = path in written and is_changed
            found[path] = Remnant("", want.data, alone=True, doubtful=doubtful)
        elif have is not None and have != want.data:
            remnant = remnant_of(source, path, have, want.data, synced)
            if remnant is not None:
                found[path] = remnant._replace(
                    doubtful=remnant.alone and disk.is_of_this_start(path)
                )
    return found


def remnant_of(source: Source, path: str, have: bytes, want: bytes, synced: int) -> Remnant | None:
    """What ``have`` is by the states of a file since; ``want`` is the newest. None: no remnant."""
    digest = sha256(have).hexdigest()
    if path == COUNTS.path:
        is_ours = _is_no_json(have) or COUNTS.older(source, have, source.ledger.size) is not None
        return Remnant(digest, want, alone=True) if is_ours else None
    front, mark, body = b"", b"", have
    states: Iterable[bytes] = (want,)
    kind = layout.layout_class_of(path)
    if kind is layout.CHAT_FILE:
        states = list(_chat_bodies(source, CHAT.stem(path), want, synced))
        if _is_of_chat(have, states):  # its header is gone: what is left of it are lines of ours
            return Remnant(digest, want, alone=True)
        # Of lines that are not there yet another header tells: this one stays.
        front, mark, body = have.partition(_MARK)
        if split_chat_file(have) is None or b"\0" in front:
            return None
    elif kind is layout.WORKER:
        states = _worker_states(source, path, want, synced)
    for state in states:
        whole = over_state(body, state)
        if whole is not None:
            return Remnant(digest, front + mark + whole, alone=whole == state)
    return None


def over_state(have: bytes, state: bytes) -> bytes | None:
    r"""What a file held that was ``state`` and perhaps more; None where it was something else.

    >>> over_state(b"ab", b"abc"), over_state(b"a\0c", b"abc"), over_state(b"a\0cd", b"abc")
    (b'abc', b'abc', b'abcd')
    >>> over_state(b"abd", b"abc"), over_state(b"axc", b"abc")
    (None, None)
    """
    parts = bytearray(have)
    for run in re.finditer(_ZEROS, have):
        start, end = run.span()
        parts[start:end] = state[start:end].ljust(end - start, b"\0")
    whole = bytes(parts)
    if state.startswith(whole):
        return state
    return whole.rstrip(b"\0") if whole.startswith(state) else None


def _is_no_json(data: bytes) -> bool:
    with suppress(ValueError, RecursionError):
        json.loads(data)
        return False
    return True


def _worker_states(source: Source, path: str, want: bytes, synced: int) -> Iterator[bytes]:
    yield want
    stream = f"workers/{worker_of_path(path)}"
    entries = source.ledger.raw(synced, stream=stream, newest_first=True, limit=_MOST_STATES)
    for before in [entry.seq for entry in entries]:
        past = past_file(source, stream, before, path)
        if past is not None:
            yield past.data


def _chat_bodies(source: Source, channel: str, want: bytes, synced: int) -> Iterator[bytes]:
    """The lines of a chat's states. Those of most begin as those of the newest."""
    yield want.partition(_MARK)[2]
    rows = source.db.execute(_WENT, (channel, synced, _MOST_STATES)).fetchall()
    if rows:
        from tripod.projections.chat.intake import ChannelIntake
        from tripod.projections.manifest import FoundPieces, ManifestReader

        reader = ManifestReader(source, Disk(""), FoundPieces(), desired_file, {})
        intake = ChannelIntake(reader, channel)
        yield from map(intake.held, (*(seq for (seq,) in rows), synced))


def _is_of_chat(have: bytes, bodies: Sequence[bytes]) -> bool:
    """Whether what is left of a chat without its whole header is the chat's."""
    if split_chat_file(have) is not None and b"\0" not in have.partition(_MARK)[0]:
        return False
    for run in filter(None, re.split(_ZEROS, have)):
        front, mark, lines = run.partition(_MARK)
        if not mark and have.startswith(run) and _BEGINNING.startswith(run[: len(_BEGINNING)]):
            continue
        if not any((lines if mark else front) in body for body in bodies):
            return False
    return True
