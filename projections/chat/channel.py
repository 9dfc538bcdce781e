"""One channel being taken in: the drafts of its new lines, rotations and headers.

Used by ``tripod.projections.chat.intake``, which decides what of a file is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tripod.ledger.kinds.base import content
from tripod.projections.chat.format import (
    ChatFile,
    ChatHeader,
    ChatLine,
    format_header,
    format_line,
    format_time,
    join_file,
    parse_line,
    parse_time,
)
from tripod.projections.chat.tables import CHAT, MODE, line_bytes
from tripod.projections.pieces import beside, same_but
from tripod.projections.reader import Reader, erased_since, make_piece

RANK = 1
FOREVER = 2**62
MOST_STATES = 50  # of a file that is behind, besides the oldest and the newest
_CAME = "SELECT seq + 1 FROM lines WHERE channel = ?1 AND seq >= ?2"
_WENT = (
    "SELECT gone + 1 FROM lines WHERE channel = ?1 AND gone >= ?2"
    " UNION SELECT seq + 1 FROM archives WHERE channel = ?1 AND seq >= ?2"
)


class Archive(NamedTuple):
    """An archive file that the ledger does not know yet."""

    stem: str
    path: str
    file: ChatFile
    mode: int

    @property
    def written(self) -> int:
        """When it was split off, in µs: its header's time carries the zone that its name lacks."""
        time = parse_time(self.file.header.last_write) if self.file.header else None
        return (time or 0) * 1_000_000


def people_of(header: ChatHeader) -> list[dict[str, str | int]]:
    """A header's participants as an entry holds them."""
    return [{"count": count, "handle": handle} for handle, count in header.participants]


def readable(line: bytes) -> ChatLine | None:
    """The message of a line; none where its handle would break the header in two."""
    message = parse_line(line.removesuffix(b"\n"))
    return None if message is not None and "\n" in message.handle else message


def _continued(torn: bytes, line: bytes) -> ChatLine | None:
    """The message that a line has become, of which ``torn`` was read before it was whole.

    Two messages that nothing parts are two, though the original tool reads neither.
    """
    message = readable(line)
    parted = message is not None and message.time and readable(torn) is not None
    if not torn or parted or line == b"\n":
        return message
    return readable(torn + line) or message


def body_of(file: ChatFile) -> bytes:
    """What stands behind the header."""
    return join_file(file)[len(file.header_raw) :]


def cut_lines(data: bytes) -> list[bytes]:
    """Cut into lines with their line breaks; a torn last one stays without."""
    *lines, rest = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


class Channel:
    """One channel being taken in: keeps what its header would be, as the fold does.

    ``known`` says whether the ledger has it, ``size`` how many bytes its live lines take.
    """

    def __init__(self, reader: Reader, channel: str, path: str) -> None:
        self.reader = reader
        self.channel = channel
        self.path = path
        db = reader.source.db
        row: tuple[int, int, str, int, int, int | None] | None = db.execute(
            "SELECT lines, live_from, last_writer, last_time, live_bytes, header FROM channels"
            " WHERE channel = ?",
            (channel,),
        ).fetchone()
        sql = "SELECT count(*) FROM archives WHERE channel = ?"
        self.archives: int = db.execute(sql, (channel,)).fetchone()[0]
        self.known = row is not None
        self.next, self.live_from, self.writer, self.time, self.size, self.header = row or (
            0, 0, "system", 0, 0, None,
        )  # fmt: skip
        sql = (
            "SELECT number FROM lines WHERE channel = ? AND number >= ? AND gone IS NOT NULL"
            " ORDER BY number"
        )
        self.gone = [n for (n,) in db.execute(sql, (channel, self.live_from))]
        sql = "SELECT handle, count FROM participants WHERE channel = ? ORDER BY place"
        self.people: dict[str, int] = dict(db.execute(sql, (channel,)).fetchall())
        self.when = 0
        self.went = False
        self.stream = f"chat/{channel}"

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

        Where lines went since, what is left of them may be how an older file begins as well, and
        what stood after would look new: the state that explains most of the file holds.
        """
        found: tuple[bytes, int] | None = None
        erased = self._erased()
        for before in self._states():
            held = self._begins(body, self.held(before), erased)
            if held is not None and (found is None or len(held) > len(found[0])):
                found = held, before
                if held == body or not self.went:
                    break
        return found

    def _begins(self, body: bytes, held: bytes, erased: set[bytes]) -> bytes | None:
        """The bytes with which ``body`` begins, if these are ``held`` but for what was erased."""
        if body.startswith(held):
            return held
        parts, shown = cut_lines(held), cut_lines(body)
        if erased and same_but(erased, parts, shown, _who_and_when):
            return b"".join(shown[: len(parts)])
        return None

    def _erased(self) -> set[bytes]:
        """The lines that stand for those which were erased, and which the file still shows."""
        source = self.reader.source
        seqs = erased_since(self.reader, self.path, ("chat.sent", "chat.unreadable"))
        return {line_bytes(source, body) for body in source.each_body(seqs)}

    def _states(self) -> Iterator[int]:
        """Entries as of which the file may have been written, the likely ones first.

        Lines ``went`` by a deletion or into an archive.
        """
        reader = self.reader
        db = reader.source.db
        if reader.files >= reader.size:
            yield FOREVER
            return
        since = (self.channel, reader.files)
        self.went = db.execute(f"SELECT 1 FROM ({_WENT}) LIMIT 1", since).fetchone() is not None
        yield from (reader.files, FOREVER) if self.went else (FOREVER, reader.files)
        rows = db.execute(f"{_CAME} UNION {_WENT} ORDER BY 1 DESC LIMIT {MOST_STATES}", since)
        yield from (before for (before,) in rows.fetchall())

    def unshown(self, before: int) -> list[bytes]:
        """The lines of the entries from ``before`` on, as they are rendered."""
        sql = "SELECT seq FROM lines WHERE channel = ? AND seq >= ? ORDER BY number"
        rows = self.reader.source.db.execute(sql, (self.channel, before)).fetchall()
        source = self.reader.source
        return [line_bytes(source, body) for body in source.each_body([seq for (seq,) in rows])]

    def _behind(self, count: int) -> int:
        """The number of the line after the first ``count`` that the live file shows."""
        stop = self.live_from + count
        for number in self.gone:
            stop += self.live_from <= number < stop
        return stop

    def create(self, when: int, mode: int) -> None:
        """The channel's first entry."""
        self.when = when
        make_piece(
            self.reader,
            kind="chat.created",
            stream=self.stream,
            actor="unknown",
            body={"channel": self.channel},
            path=self.path,
            data=b"",
            when=when,
            rank=RANK,
            ordinal=0,
            mode=None if mode == MODE else mode,
        )

    def create_anew(self, when: int, mode: int) -> None:
        """The file that the channel had was moved to an archive, and another begun in its place."""
        self.when = max(self.when, when)
        make_piece(
            self.reader,
            kind="chat.created",
            stream=self.stream,
            actor="unknown",
            body={"channel": self.channel, "first": self.next},
            path=self.path,
            data=b"",
            when=self.when,
            rank=RANK,
            ordinal=self.next + self.archives + 1,  # grows with each that was moved away
            mode=None if mode == MODE else mode,
        )
        self.size, self.writer, self.time, self.header = 0, "system", 0, None
        self.people = {}

    def take(self, lines: list[bytes], archives: list[Archive], torn: bytes = b"") -> None:
        """New lines in order, each rotation after the last line that it found there.

        ``torn`` is what the ledger has of the first: its writer was at work when it was read.
        """
        waiting = list(archives)
        for line in lines:
            message = _continued(torn, line)
            torn = b""
            time = message.time * 1_000_000 if message is not None else 0
            while waiting:
                stop = self._behind(len(waiting[0].file.lines))
                if self.next < stop or not time or time <= waiting[0].written:
                    break
                self.rotate(waiting.pop(0))
            self.when = max(self.when, time)
            self.line(line, message)
        while waiting:
            self.rotate(waiting.pop(0))

    def line(self, line: bytes, message: ChatLine | None) -> None:
        """One line, readable or not."""
        blobs: list[bytes] = []
        self.size += len(line)
        body = {"channel": self.channel, "index": self.next}
        kind, actor, raw = "chat.unreadable", "unknown", True
        if message is not None:
            kind, actor = "chat.sent", message.handle
            body["handle"] = message.handle
            body["time"] = message.time
            body["text"] = content(message.text.encode(), blobs)
            raw = _ours(message) != line
            self.people[message.handle] = self.people.get(message.handle, 0) + 1
            self.writer, self.time, self.header = message.handle, message.time, None
        make_piece(
            self.reader,
            kind=kind,
            stream=self.stream,
            actor=actor,
            body=body,
            path=self.path,
            data=line,
            when=self.when,
            rank=RANK,
            ordinal=self.next,
            raw=raw,
            blobs=blobs,
        )
        self.next += 1

    def rotate(self, archive: Archive, *, moved: bool = False) -> None:
        """The original split the oldest lines off into an archive, or ``moved`` the file there."""
        blobs: list[bytes] = []
        size = len(body_of(archive.file))
        header = archive.file.header_raw
        count = len(archive.file.lines)
        stop = self._behind(count)
        behind_gap = {} if stop == self.live_from + count else {"stop": stop}
        make_piece(
            self.reader,
            kind="chat.rotated",
            stream=self.stream,
            actor="unknown",
            body={
                "archive": archive.stem,
                "channel": self.channel,
                "count": count,
                "header": beside(header, blobs),
                "size": size,
                **behind_gap,
                **({"moved": True} if moved else {}),
            },
            path=archive.path,
            data=header,
            when=max(self.when, archive.written),
            rank=RANK,
            ordinal=0,
            blobs=blobs,
            mode=None if archive.mode == MODE else archive.mode,
        )
        self.size -= size
        self.live_from = stop
        self.header = None
        self.archives += 1

    def check_header(self, file: ChatFile, *, grew: bool) -> None:
        """Keep a header that ours would differ from; refuse one that changed on its own."""
        people = tuple(self.people.items())
        size = len(body_of(file))
        ours = format_header(ChatHeader(self.writer, format_time(self.time), people), size)
        if self.header is None and ours == file.header_raw:
            return
        if not grew:
            if self.reader.files < self.reader.size:
                return  # ours is to be written yet
            rendered = CHAT.header(self.reader.source, self.channel, size)
            if rendered != file.header_raw:
                self.reader.conflict(self.path, "edited", "its header changed without a message")
            return
        blobs: list[bytes] = []
        header = file.header or ChatHeader("", "", ())
        make_piece(
            self.reader,
            kind="chat.header-seen",
            stream=self.stream,
            actor="unknown",
            body={
                "channel": self.channel,
                "last_write": header.last_write,
                "last_writer": header.last_writer,
                "participants": people_of(header),
                "raw": beside(file.header_raw, blobs),
            },
            path=self.path,
            data=file.header_raw,
            when=max(self.when, (parse_time(header.last_write) or 0) * 1_000_000),
            rank=RANK,
            ordinal=self.next,
            blobs=blobs,
        )


def _who_and_when(line: bytes) -> tuple[str, int] | None:
    message = readable(line)
    return None if message is None else (message.handle, message.time)


def _ours(message: ChatLine) -> bytes:
    """The line as we would write the message; empty where we could not."""
    try:
        return format_line(message.handle, message.time, message.text) + b"\n"
    except ValueError:
        return b""
