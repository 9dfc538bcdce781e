"""Intake of chat files: new channels, new lines, rotations into archives, and read positions.

The ledger's part of a channel must be a prefix of what the files show, archives first; anything
else is a conflict, not an edit to be adopted.

Read positions are those that the original tool moved in ``chat/*.chat.cursors``. They are taken in
under the writer's lock and the chat's lock, with the tables at the head: an index in that file
counts the messages of the live file. If that file is behind the ledger, the index may count what it
shows, or what it is about to show; the reading that leaves more messages unread holds.

Source: spec nbs-compat C1, C2; design, "Foreign writes".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from hashlib import sha256
from typing import NamedTuple

from tripod.ledger import ARCHIVE, Draft
from tripod.ledger.kinds.base import content
from tripod.projections.chat.channel import (
    FOREVER,
    Archive,
    Channel,
    body_of,
    cut_lines,
    people_of,
    readable,
)
from tripod.projections.chat.format import (
    ChatFile,
    join_file,
    parse_archive_name,
    parse_cursors,
    split_file,
)
from tripod.projections.chat.tables import CHAT, index_of, position
from tripod.projections.disk import Disk, UnreadableError
from tripod.projections.pieces import FILE_LIMIT, Found, fits
from tripod.projections.projection import Source
from tripod.projections.reader import Reader, make_piece


def take_chats(reader: Reader) -> None:
    """Compare every chat file with the tables of channels and lines."""
    places = reader.disk.places
    fronts = places.chats()
    names = [
        CHAT.stem(f"{folder}/{name}")
        for folder in places.chat_folders()
        for name in reader.disk.names(folder)
        if name.endswith(".chat")
    ]
    db = reader.source.db
    known = dict(db.execute("SELECT channel, seq FROM channels").fetchall())
    closed = {name for (name,) in db.execute("SELECT channel FROM channels WHERE closed = 1")}
    archived = dict(db.execute("SELECT archive, seq FROM archives").fetchall())
    names += [stem for stem in archived if _is_apart(stem) and reader.disk.is_file(_path(stem))]
    fresh_archives: dict[str, list[str]] = {}
    channels = []
    for name in names:
        split = parse_archive_name(name)
        if split is not None and (split[0] in names or split[0] in known):
            if name not in archived and not _is_kept(reader, f"{CHAT.folder}/{name}.chat"):
                fresh_archives.setdefault(split[0], []).append(name)
        elif name not in archived:
            channels.append(name)
    for channel in sorted({*channels, *(known.keys() & fresh_archives.keys())}):
        if channel in closed:
            _begin_anew(reader, Channel(reader, channel, _path(channel)))
            continue
        _take_channel(reader, channel, fresh_archives.get(channel, []), is_new=channel not in known)
    known = {channel: seq for channel, seq in known.items() if channel not in closed}
    for what, files in (("the chat's file is gone", known), ("the archive is gone", archived)):
        for stem in sorted(files.keys() - set(names)):
            if reader.unwritten(files[stem]) or _front(stem) not in fronts:
                continue
            if files is archived or not _moved_away(reader, Channel(reader, stem, _path(stem))):
                reader.conflict(f"{CHAT.folder}/{stem}.chat", "missing", what)
    for stem in sorted(archived.keys() & set(names)):
        _check_archive(reader, f"{CHAT.folder}/{stem}.chat")


def _path(stem: str) -> str:
    return f"{CHAT.folder}/{stem}.chat"


def _is_apart(stem: str) -> bool:
    """Whether an archive is a file that was moved into the folder for those."""
    return f"/{stem}".endswith(f"/{ARCHIVE}/{stem.rpartition('/')[2]}")


def _front(stem: str) -> str:
    """What the name of a chat begins with: '' in the team's own folder, else ``<name>/``."""
    front = stem[: stem.rfind("/") + 1]
    return front.removesuffix(f"{ARCHIVE}/") if _is_apart(stem) else front


# Begun anew ------------------------------------------------------------------------------------


def _moved_away(reader: Reader, taker: Channel) -> bool:
    """Take in that a chat's file was moved into the folder ``archive`` beside it.

    It is known by its lines: every one that the ledger holds of the live file, in their order, and
    perhaps more after them. Where lines are missing the chat was cut, whatever was put there.
    """
    if reader.files < reader.size:
        return False
    held = taker.held()
    front, _, name = taker.channel.rpartition("/")
    folder = "/".join(filter(None, (CHAT.folder, front, ARCHIVE)))
    pattern = re.compile(rf"{re.escape(name)}(?:[-_.].*)?\.chat", re.DOTALL)
    sql = "SELECT 1 FROM archives WHERE archive = ?"
    for file in reader.disk.names(folder):
        path = f"{folder}/{file}"
        stem = CHAT.stem(path)
        if not pattern.fullmatch(file) or reader.source.db.execute(sql, (stem,)).fetchone():
            continue
        data, stat = _read(reader, path, known_size=taker.size), reader.disk.stat(path)
        parts = None if data is None else _split(data)
        if parts is None or stat is None or not body_of(parts).startswith(held):
            continue
        reader.found.files += 1
        torn = held[held.rfind(b"\n") + 1 :]
        taker.take(cut_lines(body_of(parts)[len(held) :]), [], torn)
        taker.rotate(Archive(stem, path, parts, stat.mode), moved=True)
        return True
    return False


def _begin_anew(reader: Reader, taker: Channel) -> None:
    """A chat's file where the one before was moved away: all its lines are new."""
    data = _read(reader, taker.path)
    stat = reader.disk.stat(taker.path)
    file = None if data is None else _split(data)
    if data is None or stat is None:
        return
    if file is None:
        _keep_apart(reader, taker.path, data)
        return
    reader.found.files += 1
    lines = cut_lines(body_of(file))
    messages = (readable(line) for line in lines)
    first = next((m.time for m in messages if m is not None and m.time), 0)
    taker.create_anew(first * 1_000_000 or stat.mtime_us, stat.mode)
    taker.take(lines, [])
    taker.check_header(file, grew=True)


def _is_kept(reader: Reader, path: str) -> bool:
    """Whether a file is held as it is, and as no chat."""
    sql = "SELECT sha256 FROM files WHERE path = ?"
    held = reader.source.db.execute(sql, (path,)).fetchone()
    if held is None:
        return False
    data = _read(reader, path, fresh=True)
    return data is None or reader.found.digests[path] == held[0]


def _check_archive(reader: Reader, path: str) -> None:
    try:
        data = reader.fresh(path)
    except UnreadableError as error:
        reader.conflict(path, "unreadable", str(error))
        return
    if data is not None:
        rendered = CHAT.render(reader.source, path)
        if rendered is None or rendered.data != data:
            reader.conflict(path, "edited", "an archive never changes")


def _read(reader: Reader, path: str, *, known_size: int = 0, fresh: bool = False) -> bytes | None:
    """The bytes of a chat file; one that we let grow is read however large it became."""
    limit = FILE_LIMIT + 2 * max(0, known_size)
    try:
        return reader.fresh(path, limit) if fresh else reader.read(path, limit)
    except UnreadableError as error:
        reader.conflict(path, "unreadable", str(error))
        return None


def _keep_apart(reader: Reader, path: str, data: bytes) -> None:
    """Keep a file that stands in a chat's place but is not a chat; once for each state of it."""
    from tripod.projections.team.intake import take_unreadable

    sql = "SELECT sha256 FROM files WHERE path = ?"
    held = reader.source.db.execute(sql, (path,)).fetchone()
    if held is None or held[0] != reader.found.digests[path]:
        take_unreadable(reader, path, data, "no chat file: its header is not one")


def _archives(reader: Reader, stems: list[str]) -> list[Archive]:
    """Archives in the order in which they were split off; their names hold one clock's time."""
    found = []
    for stem in sorted(stems):
        path = f"{CHAT.folder}/{stem}.chat"
        data = _read(reader, path)
        stat = reader.disk.stat(path)
        if data is None or stat is None:
            continue
        file = _split(data)
        if file is None:
            _keep_apart(reader, path, data)
            continue
        reader.found.files += 1
        found.append(Archive(stem, path, file, stat.mode))
    return found


def _split(data: bytes) -> ChatFile | None:
    """A chat file in pieces; none where its header would not fit an entry."""
    file = split_file(data)
    header = None if file is None else file.header
    if header is None or fits([header.last_writer, header.last_write, *people_of(header)]):
        return file
    return None


def _take_channel(reader: Reader, channel: str, stems: list[str], *, is_new: bool) -> None:
    path = f"{CHAT.folder}/{channel}.chat"
    stat = reader.disk.stat(path)
    if stat is None or (not stems and not is_new and reader.unchanged(path, stat)):
        return
    taker = Channel(reader, channel, path)
    data = _read(reader, path, known_size=taker.size, fresh=not stems)
    if data is None:
        return
    file = _split(data)
    if file is None:
        if is_new:
            _keep_apart(reader, path, data)
        else:
            reader.conflict(path, "edited", "its header is no chat header any more")
        return
    reader.found.files += 1
    archives = _archives(reader, stems)
    bodies = [body_of(part) for part in (*(a.file for a in archives), file)]
    shown = b"".join(bodies)
    state = taker.shown_as_of(shown)
    if state is None:
        if reader.files < reader.size:
            _keep_twice_split(reader, channel, archives)
        elif not archives and _moved_away(reader, taker):
            _begin_anew(reader, taker)
            return
        reader.conflict(path, "edited", _difference(taker.held(), shown))
        return
    held, before = state
    behind = before < FOREVER
    lines = _new_lines(bodies, len(held))
    if behind:  # a writer died before it wrote the rest
        _keep_twice_split(reader, channel, archives)
        lines = _not_held(lines, taker.unshown(before))
    if is_new:
        messages = (readable(line) for line in lines)
        first = next((m.time for m in messages if m is not None and m.time), 0)
        taker.create(first * 1_000_000 or stat.mtime_us, stat.mode)
    torn = b"" if behind or archives else held[held.rfind(b"\n") + 1 :]
    taker.take(lines, archives, torn)
    # Behind, the file will be written anew, with the header that is ours.
    if not behind:
        taker.check_header(file, grew=bool(lines) or bool(archives) or is_new)


def _new_lines(bodies: list[bytes], held: int) -> list[bytes]:
    """Lines after the first ``held`` bytes; a torn last line of one file ends with that file."""
    lines = []
    for body in bodies:
        lines += cut_lines(body[held:])
        held = max(0, held - len(body))
    return lines


def _not_held(lines: list[bytes], held: list[bytes]) -> list[bytes]:
    """Lines that the ledger does not hold, in whatever order they are shown."""
    waiting = Counter(line.rstrip(b"\n") for line in held)
    new = []
    for line in lines:
        bare = line.rstrip(b"\n")
        if waiting[bare]:
            waiting[bare] -= 1
        else:
            new.append(line)
    return new


def _keep_twice_split(reader: Reader, channel: str, archives: list[Archive]) -> None:
    """We had split lines off and died; the original, which could not know, did so as well.

    Its archives are kept as they are: their lines will stand in ours.
    """
    sql = (
        "SELECT count(*) FROM archives a JOIN lines l ON l.channel = a.channel"
        " AND l.number >= a.first AND l.number < a.stop"
        " WHERE a.channel = ? AND a.seq >= ? AND l.gone IS NULL"
    )
    ours = reader.source.db.execute(sql, (channel, reader.files)).fetchone()[0]
    while archives and ours >= len(archives[0].file.lines):
        archive = archives.pop(0)
        ours -= len(archive.file.lines)
        data = join_file(archive.file)
        from tripod.projections.team.intake import take_unreadable

        take_unreadable(reader, archive.path, data, "its lines had been split off already")


def _difference(held: bytes, shown: bytes) -> str:
    """Say where a file departs from the ledger, in its messages' lines."""
    if held.startswith(shown):
        there, ours = len(cut_lines(shown)), len(cut_lines(held))
        return f"it shows {there} lines of the {ours} that the ledger holds"
    pairs = zip(cut_lines(held), cut_lines(shown), strict=False)
    at = next((n for n, (ours, theirs) in enumerate(pairs, 1) if ours != theirs), 0)
    return f"message line {at} differs from the ledger"


# Positions --------------------------------------------------------------------------------------


_NOW = (
    "SELECT number, handle FROM lines WHERE channel = ?1 AND number >= ?2"
    " AND handle IS NOT NULL AND gone IS NULL ORDER BY number"
)
_BEFORE = (
    "SELECT number, handle FROM lines WHERE channel = ?1 AND number >= ?2"
    " AND handle IS NOT NULL AND (gone IS NULL OR gone >= ?3)"
    " AND seq NOT IN (SELECT value FROM json_each(?4)) ORDER BY number"
)


class _Picture(NamedTuple):
    """The messages of a live file, numbers and handles; ``stop`` is after the last of them."""

    messages: list[tuple[int, str]]
    stop: int

    def at(self, index: int) -> tuple[int, str]:
        """The number after the message of that index, and who said it ('' after them all)."""
        if index < len(self.messages):
            number, speaker = self.messages[index]
            return number + 1, speaker
        return self.stop, ""


def seen_positions(
    source: Source, disk: Disk, channel: str, data: bytes, *, files: int
) -> Draft | None:
    """The entry on a cursors file; None where nothing in it is news to the ledger.

    ``files`` entries of the ledger are known to be shown by the files.

    News is a position beyond what the ledger says: a lower one may be what we wrote before others
    spoke. Two moves of the original do not count: where it splits lines off, positions among those
    stay at its first message; and its sender is put after its own message, over whatever others
    said before.
    """
    row = source.db.execute(
        "SELECT live_from, lines FROM channels WHERE channel = ?", (channel,)
    ).fetchone()
    path = f"{CHAT.folder}/{channel}.chat.cursors"
    stat = disk.stat(path)
    if row is None or stat is None:
        return None
    moved = _moved(source, channel, data, _pictures(source, channel, row[0], row[1], files))
    last = source.db.execute(
        "SELECT sha256, seq FROM read_positions WHERE channel = ?", (channel,)
    ).fetchone()
    digest = sha256(data).hexdigest()
    while not fits(moved):
        moved = moved[: len(moved) // 2]  # the others are new again at the next look
    if not moved:
        return None
    blobs: list[bytes] = []
    found = Found()
    make_piece(
        Reader(source, disk, {}, full=True, found=found),
        kind="chat.cursors-seen",
        stream=f"chat/{channel}",
        actor="unknown",
        body={
            "channel": channel,
            "content": content(data, blobs),
            "lines": row[1],
            "moved": moved,
            "sha256": digest,
        },
        path=path,
        data=data,
        when=stat.mtime_us,
        rank=0,
        ordinal=0 if last is None else last[1],
        blobs=blobs,
        mtime_us=stat.mtime_us,
    )
    return found.pieces[0].draft


def _moved(
    source: Source, channel: str, data: bytes, shown: tuple[list[_Picture], int]
) -> list[dict[str, str | int]]:
    """What is news of a cursors file beside a live file that shows these pictures."""
    pictures, most = shown
    moved: list[dict[str, str | int]] = []
    for handle, index in parse_cursors(data).items():
        known = position(source, channel, handle)
        ours = index_of(source, channel, handle)
        if index <= (-1 if ours is None else ours) or (known and not index):
            continue
        places = [picture.at(index) for picture in pictures]
        upto = min(most, *(stop for stop, _ in places))
        is_own = handle in [speaker for _, speaker in places]
        if upto if known is None else not is_own and upto > known.upto:
            moved.append({"handle": handle, "upto": upto})
    return moved


def _pictures(
    source: Source, channel: str, live_from: int, lines: int, files: int
) -> tuple[list[_Picture], int]:
    """What the live file shows, or is about to; and the number below which it shows all."""
    db = source.db
    now = _Picture(db.execute(_NOW, (channel, live_from)).fetchall(), lines)
    seqs = [entry.seq for entry in source.ledger.raw(files, stream=f"chat/{channel}")]
    ours = [seq for seq, body in source.bodies(seqs).items() if "observed" not in body]
    if not ours:
        return [now], lines
    unwritten = json.dumps(ours)
    among = "seq IN (SELECT value FROM json_each(?))"
    sql = f"SELECT min(first) FROM archives WHERE channel = ? AND {among}"
    first = db.execute(sql, (channel, unwritten)).fetchone()[0]
    first = live_from if first is None else first
    shown = db.execute(_BEFORE, (channel, first, files, unwritten)).fetchall()
    sql = f"SELECT min(number) FROM lines WHERE channel = ? AND {among}"
    most = db.execute(sql, (channel, unwritten)).fetchone()[0]
    stop = shown[-1][0] + 1 if shown else 0
    return [now, _Picture(shown, stop)], lines if most is None else most
