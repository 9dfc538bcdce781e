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
from typing import Any, NamedTuple

from tripod.ledger import ARCHIVE, Draft
from tripod.ledger.kinds import chat as kinds
from tripod.ledger.kinds.team import FILE_SEEN
from tripod.projections import pieces
from tripod.projections.chat import format as chat_format
from tripod.projections.chat.format import ChatFile, ChatHeader, ChatLine
from tripod.projections.chat.tables import (
    CHAT,
    chat_position,
    chat_position_index,
    render_chat_line,
)
from tripod.projections.disk import Disk, DiskStat
from tripod.projections.manifest import ManifestReader
from tripod.projections.projection import Source
from tripod.projections.state import older_chat

FOREVER = 2**62
MOST_STATES = 50  # of a file that is behind, besides the oldest and the newest
_CAME = "SELECT seq + 1 FROM lines WHERE channel = ?1 AND seq >= ?2"
_WENT = (
    "SELECT gone + 1 FROM lines WHERE channel = ?1 AND gone >= ?2"
    " UNION SELECT seq + 1 FROM archives WHERE channel = ?1 AND seq >= ?2"
)
_ARCHIVED = "SELECT 1 FROM archives WHERE archive = ?"


def take_chats(reader: ManifestReader) -> None:
    """Compare every chat file with the tables of channels and lines."""
    disk, db = reader.disk, reader.source.db
    fronts = disk.places.chats()
    names = [
        CHAT.stem(f"{folder}/{name}")
        for folder in disk.places.chat_folders()
        for name in disk.names(folder)
        if name.endswith(".chat")
    ]
    known = dict(db.execute("SELECT channel, seq FROM channels").fetchall())
    closed = {name for (name,) in db.execute("SELECT channel FROM channels WHERE closed = 1")}
    archived = dict(db.execute("SELECT archive, seq FROM archives").fetchall())
    names += [stem for stem in archived if _is_apart(stem) and disk.is_file(CHAT.file(stem))]
    fresh_archives: dict[str, list[str]] = {}
    channels = []
    for name in names:
        split = chat_format.parse_chat_archive_name(name)
        if split is not None and (split[0] in names or split[0] in known):
            if name not in archived and not _is_kept(reader, CHAT.file(name)):
                fresh_archives.setdefault(split[0], []).append(name)
        elif name not in archived:
            channels.append(name)
    for channel in sorted({*channels, *(known.keys() & fresh_archives.keys())}):
        if channel in closed:
            _begin_anew(ChannelIntake(reader, channel))
        else:
            stems = fresh_archives.get(channel, [])
            _take_channel(reader, channel, stems, is_new=channel not in known)
    known = {channel: seq for channel, seq in known.items() if channel not in closed}
    for what, files in (("the chat's file is gone", known), ("the archive is gone", archived)):
        for stem in sorted(files.keys() - set(names)):
            front = stem[: stem.rfind("/") + 1]  # of its folder: '', or ``<name>/``
            front = front.removesuffix(f"{ARCHIVE}/") if _is_apart(stem) else front
            if reader.unwritten(files[stem]) or front not in fronts:
                continue
            if files is archived or not _moved_away(ChannelIntake(reader, stem)):
                reader.missing(CHAT.file(stem), files[stem], what)
    for stem in sorted(archived.keys() & set(names)):
        reader.check(CHAT.file(stem), "an archive never changes")


def _is_apart(stem: str) -> bool:
    """Whether an archive is a file that was moved into the folder for those."""
    return f"/{stem}".endswith(f"/{ARCHIVE}/{stem.rpartition('/')[2]}")


def _is_kept(reader: ManifestReader, path: str) -> bool:
    """Whether a file is kept as it is, and as no chat."""
    sql = "SELECT 1 FROM files WHERE path = ?"
    if reader.source.db.execute(sql, (path,)).fetchone() is None:
        return False
    return _read(reader, path, fresh=True) is None or reader.is_kept(path)


def _read(
    reader: ManifestReader, path: str, *, known_size: int = 0, fresh: bool = False
) -> bytes | None:
    """The bytes of a chat file; one that we let grow is read however large it became."""
    return reader.read(path, pieces.FILE_LIMIT + 2 * max(0, known_size), fresh=fresh)


def _keep_apart(reader: ManifestReader, path: str, data: bytes) -> None:
    """Keep a file that stands in a chat's place but is not a chat; once for each state of it."""
    if not reader.is_kept(path):
        reader.keep(FILE_SEEN, path, data, "no chat file: its header is not one")


def _split(data: bytes) -> ChatFile | None:
    """A chat file in pieces; None where its header would not fit an entry."""
    file = chat_format.split_chat_file(data)
    header = None if file is None else file.header
    if header is None or pieces.piece_fits(
        [header.last_writer, header.last_write, *_people_of(header)]
    ):
        return file
    return None


def _people_of(header: ChatHeader) -> list[dict[str, str | int]]:
    """A header's participants as an entry holds them."""
    return [{"count": count, "handle": handle} for handle, count in header.participants]


def _chat_at(reader: ManifestReader, path: str) -> tuple[ChatFile, DiskStat] | None:
    """A chat file in pieces and its stat, or None; a file that is not a chat is kept whole."""
    data, stat = _read(reader, path), reader.disk.stat(path)
    if data is None or stat is None:
        return None
    file = _split(data)
    if file is None:
        _keep_apart(reader, path, data)
        return None
    reader.found.files += 1
    return file, stat


def _body_of(file: ChatFile) -> bytes:
    """What stands behind the header."""
    return chat_format.join_chat_file(file)[len(file.header_raw) :]


def message_of(line: bytes) -> ChatLine | None:
    """The message of a line; None where its handle would break the header in two."""
    message = chat_format.parse_line(line.removesuffix(b"\n"))
    return None if message is not None and "\n" in message.handle else message


def _first_time(lines: list[bytes]) -> int:
    """The first time that a message among these lines claims, in µs; 0 where none does."""
    messages = map(message_of, lines)
    return next((one.time for one in messages if one is not None and one.time), 0) * 1_000_000


class ArchiveIntake(NamedTuple):
    """An archive file that the ledger does not know yet."""

    stem: str
    file: ChatFile
    mode: int

    @property
    def written(self) -> int:
        """When it was split off, in µs: its header's time carries the zone that its name lacks."""
        time = (
            chat_format.parse_chat_time(self.file.header.last_write) if self.file.header else None
        )
        return (time or 0) * 1_000_000


class ChannelIntake:
    """One channel being taken in: keeps what its header would be, as the fold does."""

    def __init__(self, reader: ManifestReader, channel: str) -> None:
        self.reader = reader
        self.channel = channel
        db = reader.source.db
        sql = (
            "SELECT lines, live_from, live_bytes, last_writer, last_time, header FROM channels"
            " WHERE channel = ?"
        )
        row = db.execute(sql, (channel,)).fetchone()
        self.known = row is not None
        """Whether the ledger has it."""
        state: Any = row or (0, 0, 0, "system", 0, None)
        self.next, self.live_from, self.size, *last, header = state
        self.last: tuple[Any, ...] = tuple(last)
        """Handle and time of the last message."""
        self.is_ours = header is None
        """Whether the file's header is the one that follows from the messages."""
        sql = "SELECT count(*) FROM archives WHERE channel = ?"
        self.archives: int = db.execute(sql, (channel,)).fetchone()[0]
        sql = "SELECT handle, count FROM participants WHERE channel = ? ORDER BY place"
        self.people: dict[str, int] = dict(db.execute(sql, (channel,)).fetchall())
        self.when = 0

    @property
    def path(self) -> str:
        """The live file."""
        return CHAT.file(self.channel)

    def _add(self, kind: Any, body: dict[str, Any], data: bytes = b"", **more: Any) -> None:
        path, when = more.pop("path", self.path), more.pop("when", self.when)
        self.reader.add(kind, {"channel": self.channel, **body}, path, data, when, **more)

    def held(self, before: int = FOREVER) -> bytes:
        """The bytes of the lines that the live file shows, as of the entries ``before``."""
        if not self.known:
            return b""
        db = self.reader.source.db
        sql = "SELECT coalesce(max(number) + 1, 0) FROM lines WHERE channel = ? AND seq < ?"
        stop = db.execute(sql, (self.channel, before)).fetchone()[0]
        sql = "SELECT min(first) FROM archives WHERE channel = ? AND seq >= ?"
        first = db.execute(sql, (self.channel, before)).fetchone()[0]
        first = self.live_from if first is None else first
        return CHAT.lines(self.reader.source, self.channel, first, stop, before=before)

    def shown_as_of(self, body: bytes) -> tuple[bytes, int] | None:
        """The lines of the ledger with which a file's body begins, and as of which entries.

        A writer may have died between its commit and the file, or between two of its files: then
        the file shows an earlier state. None where it shows none. What was erased since stands
        there as it was: it is known by who said it when.

        Where lines went since, by a deletion or into an archive, what is left of them may be how an
        older file begins as well, and what stood after would look new: the state that explains most
        of the file holds.
        """
        reader, since = self.reader, (self.channel, self.reader.shown.files)
        db = reader.source.db
        states: Any = (FOREVER,)
        went = False
        if reader.shown.is_behind:
            went = db.execute(f"SELECT 1 FROM ({_WENT}) LIMIT 1", since).fetchone() is not None
            rows = db.execute(f"{_CAME} UNION {_WENT} ORDER BY 1 DESC LIMIT {MOST_STATES}", since)
            likely = (reader.shown.files, FOREVER) if went else (FOREVER, reader.shown.files)
            states = (*likely, *(before for (before,) in rows.fetchall()))
        seqs = reader.erased_since(self.path, ("chat.sent", "chat.unreadable"))
        erased = {render_chat_line(reader.source, body) for body in reader.source.each_body(seqs)}
        found: tuple[bytes, int] | None = None
        for before in states:
            held = _begins(body, self.held(before), erased)
            if (
                held is not None
                and before < reader.shown.noted
                and self._is_edit(body, held, before)
            ):
                continue
            if held is not None and (found is None or len(held) > len(found[0])):
                found = held, before
                if held == body or not went:
                    break
        return found

    def _is_edit(self, body: bytes, held: bytes, before: int) -> bool:
        """Whether what stands behind an earlier state is no addition to it.

        It has lines of the ledger that came later, or another text for one: who said it and when
        tell that, and where they cannot be read, it counts as one.
        """
        sql = "SELECT seq FROM lines WHERE channel = ? AND seq >= ? ORDER BY number"
        bodies = self.reader.source.each_body_of(sql, self.channel, before)
        ours = [render_chat_line(self.reader.source, one).rstrip(b"\n") for one in bodies]
        said = {(message or ())[:2] for message in map(message_of, ours)}
        shown = [line.rstrip(b"\n") for line in chat_format.cut_chat_lines(body[len(held) :])]
        said.add(())
        return any(line in ours or (message_of(line) or ())[:2] in said for line in shown)

    def foreign(self, lines: list[bytes], before: int) -> list[bytes]:
        """The lines that no entry from ``before`` on holds; the entries' order does not matter."""
        sql = "SELECT seq FROM lines WHERE channel = ? AND seq >= ? ORDER BY number"
        source = self.reader.source
        bodies = source.each_body_of(sql, self.channel, before)
        held = Counter(render_chat_line(source, body).rstrip(b"\n") for body in bodies)
        return chat_format.unmatched(lines, held, lambda line: line.rstrip(b"\n"))

    def _behind(self, count: int) -> int:
        """The number of the line after the first ``count`` that the live file shows."""
        where = "channel = ? AND number >= ? AND gone IS NOT NULL"
        sql = f"SELECT number FROM lines WHERE {where} ORDER BY number"
        stop: int = self.live_from + count
        for (number,) in self.reader.source.db.execute(sql, (self.channel, self.live_from)):
            stop += number < stop
        return stop

    def create(self, when: int, mode: int) -> None:
        """The channel's first entry."""
        self.when = when
        self._add(kinds.CREATED, {}, mode=mode)

    def create_anew(self, when: int, mode: int) -> None:
        """The file that the channel had was moved to an archive, and another begun in its place."""
        self.when = max(self.when, when)
        # The ordinal grows with each file that was moved away.
        ordinal = self.next + self.archives + 1
        self._add(kinds.CREATED, {"first": self.next}, ordinal=ordinal, mode=mode)
        self.size, self.last, self.is_ours, self.people = 0, ("system", 0), True, {}

    def take(self, lines: list[bytes], archives: list[ArchiveIntake], torn: bytes = b"") -> None:
        """New lines in order, each rotation after the last line that it found there.

        ``torn`` is what the ledger has of the first: its writer was at work when it was read.
        """
        waiting = list(archives)
        stop = self._behind(len(waiting[0].file.lines)) if waiting else 0
        for line in lines:
            message = _continued(torn, line)
            torn = b""
            time = message.time * 1_000_000 if message is not None else 0
            while waiting and self.next >= stop and time > waiting[0].written:
                self.rotate(waiting.pop(0))
                stop = self._behind(len(waiting[0].file.lines)) if waiting else 0
            self.when = max(self.when, time)
            self.line(line, message)
        for archive in waiting:
            self.rotate(archive)

    def line(self, line: bytes, message: ChatLine | None) -> None:
        """One line, readable or not."""
        body: dict[str, Any] = {"index": self.next}
        if message is None:
            self._add(kinds.UNREADABLE, body, line, ordinal=self.next, raw=True)
        else:
            handle, time, text = message
            try:
                raw = chat_format.format_line(*message) + b"\n" != line
            except ValueError:  # a message that we could not write
                raw = True
            body |= {"handle": handle, "time": time, "text": text.encode()}
            self._add(kinds.SENT, body, line, ordinal=self.next, raw=raw)
            self.people[handle] = self.people.get(handle, 0) + 1
            self.last, self.is_ours = (handle, time), True
        self.size += len(line)
        self.next += 1

    def rotate(self, archive: ArchiveIntake, *, moved: bool = False) -> None:
        """The original split the oldest lines off into an archive, or ``moved`` the file there."""
        blobs: list[bytes] = []
        size = len(_body_of(archive.file))
        header = archive.file.header_raw
        count = len(archive.file.lines)
        stop = self._behind(count)
        body = {"archive": archive.stem, "count": count, "moved": moved or None, "size": size}
        body["header"] = pieces.piece_beside(header, blobs)
        body["stop"] = None if stop == self.live_from + count else stop
        when = max(self.when, archive.written)
        place = {"path": CHAT.file(archive.stem), "when": when, "mode": archive.mode}
        self._add(kinds.ROTATED, body, header, blobs=blobs, **place)
        self.size -= size
        self.live_from, self.is_ours = stop, True
        self.archives += 1

    def check_header(self, file: ChatFile, *, grew: bool) -> None:
        """Keep a header that ours would differ from; refuse one that changed on its own."""
        size = len(_body_of(file))
        writer, time = self.last
        ours = ChatHeader(writer, chat_format.format_time(time), tuple(self.people.items()))
        if self.is_ours and chat_format.format_header(ours, size) == file.header_raw:
            return
        if not grew:
            if self.reader.shown.is_behind:
                return  # ours is to be written yet
            rendered = CHAT.header(self.reader.source, self.channel, size)
            if rendered == file.header_raw:
                return
            older = older_chat(
                self.reader.source, self.reader.past, self.channel, chat_format.join_chat_file(file)
            )
            if older is None:
                self.reader.conflict(self.path, "edited", "its header changed without a message")
            else:
                self.reader.older(self.path, older)
            return
        blobs: list[bytes] = []
        header = file.header or ChatHeader("", "", ())
        body: Any = {"last_write": header.last_write, "last_writer": header.last_writer}
        body |= {
            "participants": _people_of(header),
            "raw": pieces.piece_beside(file.header_raw, blobs),
        }
        when = max(self.when, (chat_format.parse_chat_time(header.last_write) or 0) * 1_000_000)
        more: Any = {"when": when, "ordinal": self.next, "blobs": blobs}
        self._add(kinds.HEADER_SEEN, body, file.header_raw, **more)


def _begins(body: bytes, held: bytes, erased: set[bytes]) -> bytes | None:
    """The bytes with which ``body`` begins, if these are ``held`` but for what was erased."""
    if body.startswith(held):
        return held
    parts, shown = chat_format.cut_chat_lines(held), chat_format.cut_chat_lines(body)
    # Of an erased message, who said it and when.
    if erased and pieces.same_pieces_but(
        erased, parts, shown, lambda line: (message_of(line) or ())[:2]
    ):
        return b"".join(shown[: len(parts)])
    return None


def _continued(torn: bytes, line: bytes) -> ChatLine | None:
    """The message that a line has become, of which ``torn`` was read before it was whole.

    Two messages that nothing parts are two, though the original tool reads neither.
    """
    message = message_of(line)
    parted = message is not None and message.time and message_of(torn) is not None
    if not torn or parted or line == b"\n":
        return message
    return message_of(torn + line) or message


def _take_channel(reader: ManifestReader, name: str, stems: list[str], *, is_new: bool) -> None:
    path = CHAT.file(name)
    stat = reader.disk.stat(path)
    if stat is None or (not stems and not is_new and reader.unchanged(path, stat)):
        return
    channel = ChannelIntake(reader, name)
    data = _read(reader, path, known_size=channel.size, fresh=not stems)
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
    bodies = [_body_of(part) for part in (*(a.file for a in archives), file)]
    shown = b"".join(bodies)
    state = channel.shown_as_of(shown)
    if state is not None and not state[0] and shown and not stems and channel.live_from:
        # All was split off: what was there before begins as the file that is left does.
        size = older_chat(reader.source, reader.past, name, data)
        if size is not None:
            reader.older(path, size)
            return
    if state is None:
        if reader.shown.is_behind:
            _keep_twice_split(channel, archives)
        elif not archives and _moved_away(channel):
            _begin_anew(channel)
            return
        size = older_chat(reader.source, reader.past, name, data)
        if size is None:
            reader.conflict(path, "edited", _difference(channel.held(), shown))
        else:
            reader.older(path, size)
        return
    held, before = state
    lines, left = [], len(held)
    for body in bodies:  # a torn last line of one file ends with that file
        lines += chat_format.cut_chat_lines(body[left:])
        left = max(0, left - len(body))
    torn = held[held.rfind(b"\n") + 1 :]
    behind = before < FOREVER
    if behind:  # a writer died before it wrote the rest
        _keep_twice_split(channel, archives)
        lines = channel.foreign(lines, before)
    if is_new:
        channel.create(_first_time(lines) or stat.mtime_us, stat.mode)
    channel.take(lines, archives, b"" if behind or archives else torn)
    # Behind, the file will be written anew, with the header that is ours.
    if not behind:
        channel.check_header(file, grew=bool(lines) or bool(archives) or is_new)


def _archives(reader: ManifestReader, stems: list[str]) -> list[ArchiveIntake]:
    """Archives in the order in which they were split off; their names hold one clock's time."""
    found = []
    for stem in sorted(stems):
        there = _chat_at(reader, CHAT.file(stem))
        if there is not None:
            found.append(ArchiveIntake(stem, there[0], there[1].mode))
    return found


def _moved_away(channel: ChannelIntake) -> bool:
    """Take in that a chat's file was moved into the folder ``archive`` beside it.

    It is known by its lines: every one that the ledger holds of the live file, in their order, and
    perhaps more after them. A file without some of them is no such archive: then the chat was cut.
    """
    reader = channel.reader
    if reader.shown.is_behind:
        return False
    held = channel.held()
    folder, _, name = channel.path.removesuffix(".chat").rpartition("/")
    folder = f"{folder}/{ARCHIVE}"
    pattern = re.compile(rf"{re.escape(name)}(?:[-_.].*)?\.chat", re.DOTALL)
    for file in reader.disk.names(folder):
        path = f"{folder}/{file}"
        stem = CHAT.stem(path)
        known = reader.source.db.execute(_ARCHIVED, (stem,)).fetchone()
        if known or not pattern.fullmatch(file):
            continue
        data, stat = _read(reader, path, known_size=channel.size), reader.disk.stat(path)
        parts = None if data is None else _split(data)
        if parts is None or stat is None or not _body_of(parts).startswith(held):
            continue
        reader.found.files += 1
        torn = held[held.rfind(b"\n") + 1 :]
        channel.take(chat_format.cut_chat_lines(_body_of(parts)[len(held) :]), [], torn)
        channel.rotate(ArchiveIntake(stem, parts, stat.mode), moved=True)
        return True
    return False


def _begin_anew(channel: ChannelIntake) -> None:
    """A chat's file where the one before was moved away: all its lines are new."""
    there = _chat_at(channel.reader, channel.path)
    if there is None:
        return
    file, stat = there
    lines = chat_format.cut_chat_lines(_body_of(file))
    channel.create_anew(_first_time(lines) or stat.mtime_us, stat.mode)
    channel.take(lines, [])
    channel.check_header(file, grew=True)


def _keep_twice_split(channel: ChannelIntake, archives: list[ArchiveIntake]) -> None:
    """We had split lines off and died; the original, which could not know, did so as well.

    Its archives are kept as they are: their lines will stand in ours.
    """
    reader = channel.reader
    sql = (
        "SELECT count(*) FROM archives a JOIN lines l ON l.channel = a.channel"
        " AND l.number >= a.first AND l.number < a.stop"
        " WHERE a.channel = ? AND a.seq >= ? AND l.gone IS NULL"
    )
    ours = reader.source.db.execute(sql, (channel.channel, reader.shown.files)).fetchone()[0]
    while archives and ours >= len(archives[0].file.lines):
        archive = archives.pop(0)
        ours -= len(archive.file.lines)
        path, data = CHAT.file(archive.stem), chat_format.join_chat_file(archive.file)
        reader.keep(FILE_SEEN, path, data, "its lines had been split off already")


def _difference(held: bytes, shown: bytes) -> str:
    """Say where a file departs from the ledger, in its messages' lines."""
    ours, theirs = chat_format.cut_chat_lines(held), chat_format.cut_chat_lines(shown)
    if held.startswith(shown):
        return f"it shows {len(theirs)} lines of the {len(ours)} that the ledger holds"
    pairs = enumerate(zip(ours, theirs, strict=False), 1)
    at = next((number for number, (one, other) in pairs if one != other), 0)
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


def take_chat_positions(
    source: Source, disk: Disk, channel: str, data: bytes, *, files: int
) -> Draft | None:
    """The entry on a cursors file; None where nothing in it is news to the ledger.

    ``files`` entries of the ledger are known to be shown by the files.

    News is a position beyond what the ledger says: a lower one may be what we wrote before others
    spoke. Two moves of the original do not count: where it splits lines off, positions among those
    stay at its first message; and it puts its sender after the sender's own message, past what
    others said before.
    """
    sql = "SELECT live_from, lines FROM channels WHERE channel = ?"
    row = source.db.execute(sql, (channel,)).fetchone()
    path = f"{CHAT.file(channel)}.cursors"
    stat = disk.stat(path)
    if row is None or stat is None:
        return None
    live_from, lines = row
    pictures, most = _pictures(source, channel, live_from, lines, files)
    moved: list[dict[str, str | int]] = []
    for handle, index in chat_format.parse_chat_cursors(data).items():
        known = chat_position(source, channel, handle)
        ours = chat_position_index(source, channel, handle)
        if index <= (-1 if ours is None else ours) or (known and not index):
            continue
        places = [picture.at(index) for picture in pictures]
        upto = min(most, *(stop for stop, _ in places))
        is_own = handle in [speaker for _, speaker in places]
        if upto if known is None else not is_own and upto > known.upto:
            moved.append({"handle": handle, "upto": upto})
    while not pieces.piece_fits(moved):
        moved = moved[: len(moved) // 2]  # the others are new again at the next look
    if not moved:
        return None
    sql = "SELECT seq FROM read_positions WHERE channel = ?"
    last = source.db.execute(sql, (channel,)).fetchone()
    body = {"channel": channel, "content": data, "lines": lines, "moved": moved}
    body["sha256"] = sha256(data).hexdigest()
    ordinal = 0 if last is None else last[0]
    return pieces.piece_draft(
        kinds.CURSORS_SEEN, body, path, data, ordinal=ordinal, mtime_us=stat.mtime_us
    )


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
