"""The chats: tables of channels, lines and read positions, and the files ``chat/*.chat``.

A line's number counts from 0 since the channel began and is never reused. The live file shows the
lines from ``live_from`` on, without those that are ``gone``: an entry of that number removed them
from the file. A reference counts lines from the top of a file (``chat-refs``), an index counts
messages from 0, as the original tool does; lines that are gone have neither.

A read position is absolute: the newest entry on it replaces all earlier ones.
Source: spec nbs-compat C1, C2.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tripod.ledger import Entry
from tripod.projections.chat import format as chat_format
from tripod.projections.layout import CHAT_FILE
from tripod.projections.projection import File, Op, Projection, Source, Tables

MODE = CHAT_FILE.mode
_END = b"\n---\n"

LINE = "INSERT OR IGNORE INTO lines VALUES (?, ?, ?, ?, ?, ?, NULL)"
_MORE = "lines = max(lines, ?2 + 1), live_bytes = live_bytes + ?3"
_GROW = f"UPDATE channels SET {_MORE} WHERE channel = ?1"
WRITER = (
    f"UPDATE channels SET {_MORE}, last_writer = ?4, last_time = ?5, header = NULL"
    " WHERE channel = ?1"
)
# Of a line of a peer: its channel begins, or opens again, where it has no live file here. One
# statement: of several that take turns, the runner makes one call for each line.
_MERGE = (
    "INSERT INTO channels VALUES (?1, ?4, ?2 + 1, 0, ?3, ?5, ?6, NULL, ?7, 0)"
    f" ON CONFLICT (channel) DO UPDATE SET {_MORE}, closed = 0"
)
_MERGE_WRITER = f"{_MERGE}, last_writer = ?5, last_time = ?6, header = NULL"
_CREATE = "INSERT OR IGNORE INTO channels VALUES (?, ?, 0, 0, 0, 'system', ?, NULL, ?, 0)"
_ANEW = (
    "UPDATE channels SET live_bytes = 0, last_writer = 'system', last_time = ?2, header = NULL,"
    " mode = ?3, closed = 0 WHERE channel = ?1"
)
_HEADER = "UPDATE channels SET header = ? WHERE channel = ?"
_NOBODY = "DELETE FROM participants WHERE channel = ?"
_PERSON = "INSERT OR REPLACE INTO participants VALUES (?, ?, ?, ?)"
_ARCHIVE = (
    "INSERT OR REPLACE INTO archives SELECT ?1, ?2, ?3, coalesce(max(stop), 0),"
    " coalesce(?6, coalesce(max(stop), 0) + ?4), ?5 FROM archives WHERE channel = ?2"
)
_ROTATE = (
    "UPDATE channels SET live_from = coalesce(?4, live_from + ?2), live_bytes = live_bytes - ?3,"
    " header = NULL, closed = ?5 WHERE channel = ?1"
)
_FEWER = "UPDATE participants SET count = max(0, count - ?3) WHERE channel = ?1 AND handle = ?2"
_LEFT = "DELETE FROM participants WHERE channel = ? AND count = 0"
_FORGET = "UPDATE lines SET gone = ?1 WHERE channel = ?2 AND number >= ?3 AND gone IS NULL"
_SHRINK = (
    "UPDATE channels SET live_bytes = live_bytes - ?2, last_writer = ?3, last_time = ?4,"
    " header = NULL WHERE channel = ?1"
)
COUNT = (
    "INSERT INTO participants (channel, handle, place, count) VALUES (?1, ?2,"
    " (SELECT coalesce(max(place) + 1, 0) FROM participants WHERE channel = ?1), ?3)"
    " ON CONFLICT (channel, handle) DO UPDATE SET count = count + ?3"
)


class ChatFiles(Projection):
    """The tables of channels and lines, and the files of chats and their archives."""

    name = "chat"
    version = 3
    folder = "chat"
    tables = ("channels", "lines", "participants", "archives")
    ddl = """
CREATE TABLE channels (
    channel TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    live_from INTEGER NOT NULL,
    live_bytes INTEGER NOT NULL,
    last_writer TEXT NOT NULL,
    last_time INTEGER NOT NULL,
    header INTEGER,
    mode INTEGER NOT NULL,
    closed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE lines (
    channel TEXT NOT NULL,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    handle TEXT,
    time INTEGER NOT NULL,
    size INTEGER NOT NULL,
    gone INTEGER,
    PRIMARY KEY (channel, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE participants (
    channel TEXT NOT NULL,
    handle TEXT NOT NULL,
    place INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (channel, handle)
) STRICT, WITHOUT ROWID;
CREATE TABLE archives (
    archive TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    seq INTEGER NOT NULL,
    first INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    mode INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
    kinds = frozenset(
        (
            "chat.created",
            "chat.sent",
            "chat.unreadable",
            "chat.header-seen",
            "chat.rotated",
            "chat.deleted",
        )
    )

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Count lines and writers as the header of the file does."""
        body = entry.data
        channel = body["channel"]
        if "peer" in body and entry.kind != "chat.created":
            return self._merged(entry)
        if entry.kind == "chat.sent":
            handle, number, time = body["handle"], body["index"], body["time"]
            size = chat_line_size(body)
            return (
                ("lines", LINE, (channel, number, entry.seq, handle, time, size), None),
                ("channels", WRITER, (channel, number, size, handle, time), None),
                ("participants", COUNT, (channel, handle, 1), None),
            )
        if entry.kind == "chat.unreadable":
            size, number = _content_size(body["observed"]["raw"]), body["index"]
            return (
                ("lines", LINE, (channel, number, entry.seq, None, 0, size), None),
                ("channels", _GROW, (channel, number, size), None),
            )
        if entry.kind == "chat.header-seen":
            seen: list[Op] = [("channels", _HEADER, (entry.seq, channel), None)]
            seen.append(("participants", _NOBODY, (channel,), None))
            for place, one in enumerate(body["participants"]):
                person = (channel, one["handle"], place, one["count"])
                seen.append(("participants", _PERSON, person, None))
            return seen
        if entry.kind == "chat.deleted":
            said = (channel, body["size"], body["last_writer"], body["last_time"])
            removed = ((channel, one["handle"], one["count"]) for one in body["removed"])
            return [
                ("lines", _FORGET, (entry.seq, channel, body["first"]), None),
                ("channels", _SHRINK, said, None),
                *(("participants", _FEWER, row, None) for row in removed),
                ("participants", _LEFT, (channel,), None),
            ]
        observed = body.get("observed", {})
        mode = observed.get("mode", MODE)
        if entry.kind == "chat.created":
            time = 0 if "path" in observed else chat_format.parse_chat_time(entry.at[:19])
            if time is None:
                raise ValueError(f"{entry.at!r} is not a time")
            if "first" not in body or "peer" in body:  # a peer begins none anew that is here
                return (("channels", _CREATE, (channel, entry.seq, time, mode), None),)
            return (
                ("lines", _FORGET, (entry.seq, channel, body["first"]), None),
                ("channels", _ANEW, (channel, time, mode), None),
                ("participants", _NOBODY, (channel,), None),
            )
        count, stop = body["count"], body.get("stop")
        archive = (body["archive"], channel, entry.seq, count, mode, stop)
        # Each statement reads its own table alone: the size that moved is in the body's words.
        return (
            ("archives", _ARCHIVE, archive, None),
            ("channels", _ROTATE, (channel, count, body["size"], stop, int("moved" in body)), None),
        )

    def _merged(self, entry: Entry) -> Iterable[Op]:
        """A line of a peer."""
        body, channel = entry.data, entry.data["channel"]
        number, size = body["index"], chat_line_size(body)
        if entry.kind == "chat.unreadable":
            line = (channel, number, entry.seq, None, 0, size)
            said = (channel, number, size, entry.seq, "system", 0, MODE)
            return (("lines", LINE, line, None), ("channels", _MERGE, said, None))
        handle, time = body["handle"], body["time"]
        said = (channel, number, size, entry.seq, handle, time, MODE)
        return (
            ("lines", LINE, (channel, number, entry.seq, handle, time, size), None),
            ("channels", _MERGE_WRITER, said, None),
            ("participants", COUNT, (channel, handle, 1), None),
        )

    def stem(self, path: str) -> str:
        """What a file of a chat is called in entries: the channel, or the archive."""
        return path.removeprefix(f"{self.folder}/").removesuffix(".chat")

    def file(self, stem: str) -> str:
        """The path of the file of a channel or an archive."""
        return f"{self.folder}/{stem}.chat"

    def live(self, stream: str) -> str:
        """The live file of a stream ``chat/<channel>``."""
        return self.file(stream.removeprefix("chat/"))

    def touched(self, entry: Entry) -> Iterable[str]:
        """The live file; a rotation also writes its archive."""
        body = entry.data
        live = self.file(body["channel"])
        return (self.file(body["archive"]), live) if entry.kind == "chat.rotated" else (live,)

    def paths(self, source: Source) -> Iterator[str]:
        """Archives, then live files, by name."""
        for stems in ("archive FROM archives", "channel FROM channels WHERE closed = 0"):
            for (stem,) in source.db.execute(f"SELECT {stems} ORDER BY 1"):
                yield self.file(stem)

    def render(self, source: Source, path: str) -> File | None:
        """A whole chat file: its header and its lines."""
        if not path.startswith(f"{self.folder}/") or not path.endswith(".chat"):
            return None
        stem = self.stem(path)
        sql = "SELECT channel, first, stop, mode, seq FROM archives WHERE archive = ?"
        row = source.db.execute(sql, (stem,)).fetchone()
        if row is not None:
            channel, first, stop, mode, seq = row
            header = source.content(source.body(seq)["header"])
            return File(header + self.lines(source, channel, first, stop), mode)
        sql = "SELECT live_from, lines, mode FROM channels WHERE channel = ? AND closed = 0"
        row = source.db.execute(sql, (stem,)).fetchone()
        if row is None:
            return None
        first, stop, mode = row
        body = self.lines(source, stem, first, stop)
        return File(self.header(source, stem, len(body)) + body, mode)

    def header(self, source: Source, channel: str, size: int) -> bytes:
        """The header of a channel's live file as it stands now, in front of ``size`` bytes."""
        sql = "SELECT last_writer, last_time, header FROM channels WHERE channel = ?"
        writer, time, header = source.db.execute(sql, (channel,)).fetchone()
        if header is not None:
            return source.content(source.body(header)["raw"])
        sql = "SELECT handle, count FROM participants WHERE channel = ? ORDER BY place"
        people = source.db.execute(sql, (channel,)).fetchall()
        return chat_format.format_header(
            chat_format.ChatHeader(writer, chat_format.format_time(time), tuple(people)), size
        )

    def lines(
        self, source: Source, channel: str, first: int, stop: int, *, before: int = 2**62
    ) -> bytes:
        """The bytes of the lines [first, stop) of a channel, as the entries ``before`` have it.

        A torn line, which its writer left without a line break, gets one where a message of ours
        follows: else that message could not be read.
        """
        sql = (
            "SELECT seq FROM lines WHERE channel = ? AND number >= ? AND number < ?"
            " AND coalesce(gone, ?4) >= ?4 ORDER BY number"
        )
        whole = bytearray()
        for body in source.each_body_of(sql, channel, first, stop, before):
            if whole and ("observed" not in body or "peer" in body) and not whole.endswith(b"\n"):
                whole += b"\n"
            whole += render_chat_line(source, body)
        return bytes(whole)

    def grown(self, source: Source, path: str, have: bytes, count: int) -> File | None:
        """The live file, made of its bytes before its ``count`` newest lines; None: not so.

        The caller knows that ``have`` is what this ledger rendered, and that nothing but those
        messages changed the channel since. A whole render of a long chat costs 100 times as much.
        """
        channel = self.stem(path)
        sql = "SELECT lines, mode, live_bytes FROM channels WHERE channel = ?"
        row = source.db.execute(sql, (channel,)).fetchone()
        end = have.find(_END) + len(_END)
        if row is None or end < len(_END):
            return None
        stop, mode, size = row
        new = self.lines(source, channel, stop - count, stop)
        if len(have) - end + len(new) != size or not have.endswith(b"\n"):
            return None
        return File(b"".join((self.header(source, channel, size), have[end:], new)), mode)


CHAT = ChatFiles()


def render_chat_line(source: Source, body: dict[str, Any]) -> bytes:
    """One line as it stands in the file, with its line break."""
    if "raw" in (observed := body.get("observed", {})):
        return source.content(observed["raw"]) + b"\n" * _lacks_end(body)
    text = source.content(body["text"]).decode()
    return chat_format.encode_chat_line(body["handle"], body["time"], text) + b"\n"


def _content_size(content: dict[str, Any]) -> int:
    """How many bytes a content field holds, without fetching a blob."""
    if "text" in content:
        return len(content["text"].encode())
    if "base64" in content:
        data: str = content["base64"]
        return len(data) // 4 * 3 - data.count("=")
    return int(content["size"])


def _lacks_end(body: dict[str, Any]) -> bool:
    """Whether a line of a peer is torn: behind it stand others here."""
    raw = body["observed"]["raw"]
    if "peer" not in body:
        return False
    if "base64" in raw:
        from base64 import b64decode

        return not b64decode(raw["base64"]).endswith(b"\n")
    return "text" in raw and not raw["text"].endswith("\n")


def chat_line_size(body: dict[str, Any]) -> int:
    """How many bytes a message's line takes in the file, its line break included."""
    if "raw" in (observed := body.get("observed", {})):
        return _content_size(observed["raw"]) + _lacks_end(body)
    plain = len(f"{body['handle']}|{body['time']}: ".encode()) + _content_size(body["text"])
    return encoded_size(plain)


def encoded_size(plain: int) -> int:
    """How many bytes a line of so many bytes takes in the file, its line break included."""
    return (min(plain, chat_format.MAX_PLAIN) + 2) // 3 * 4 + 1


# Reading ----------------------------------------------------------------------------------------


_POSITION = "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?, ?, ?)"


class ReadPosition(NamedTuple):
    """What a handle has read: numbers below ``upto``, and the ranges [first, stop) of ``beyond``.

    Its own messages from the number ``lines`` on count as read as well.
    """

    upto: int = 0
    beyond: Sequence[tuple[int, int]] = ()
    lines: int = 0


class ChatPositions(Projection):
    """The tables of read positions and of events that address a handle."""

    name = "reading"
    version = 1
    tables = ("cursors", "addressed")
    ddl = """
CREATE TABLE cursors (
    channel TEXT NOT NULL,
    handle TEXT NOT NULL,
    upto INTEGER NOT NULL,
    beyond TEXT NOT NULL,
    lines INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (channel, handle)
) STRICT, WITHOUT ROWID;
CREATE TABLE addressed (
    seq INTEGER PRIMARY KEY,
    handle TEXT NOT NULL
) STRICT;
CREATE INDEX addressed_handle ON addressed (handle);
"""
    kinds = frozenset(("chat.read", "chat.cursors-seen", "bus.published"))

    def fold(self, entry: Entry) -> Iterable[Op]:
        """Store the newest position of each handle, and the addressee of an event."""
        body = entry.data
        if entry.kind == "bus.published":
            to = body.get("to")
            sql = "INSERT INTO addressed VALUES (?, ?)"
            return () if to is None else (("addressed", sql, (entry.seq, to), None),)
        channel = body["channel"]
        if entry.kind == "chat.read":
            beyond = json.dumps([[part["first"], part["stop"]] for part in body["beyond"]])
            row = (channel, body["handle"], body["upto"], beyond, body["lines"], entry.seq)
            return (("cursors", _POSITION, row, None),)
        lines = body["lines"]
        rows = ((channel, at["handle"], at["upto"], "[]", lines, entry.seq) for at in body["moved"])
        return [("cursors", _POSITION, row, None) for row in rows]


READING = ChatPositions()


def chat_position(source: Source, channel: str, handle: str) -> ReadPosition | None:
    """What a handle has read of a channel; None where nothing says so yet."""
    sql = "SELECT upto, beyond, lines FROM cursors WHERE channel = ? AND handle = ?"
    row = source.db.execute(sql, (channel, handle)).fetchone()
    return None if row is None else ReadPosition(row[0], json.loads(row[1]), row[2])


def unread(source: Source, channel: str, handle: str) -> Iterator[tuple[int, int]]:
    """Number and entry of every message that a handle has not read, oldest first.

    Also those that were split off into archives since; not what the files were told to forget,
    and not its own.
    """
    at = chat_position(source, channel, handle) or ReadPosition()
    rows = source.db.execute(
        "SELECT number, seq FROM lines WHERE channel = ?1 AND number >= ?2 AND handle IS NOT NULL"
        " AND gone IS NULL AND NOT (handle = ?3 AND number >= ?4) ORDER BY number",
        (channel, at.upto, handle, at.lines),
    )
    ranges = iter(sorted(map(tuple, at.beyond)))
    first, stop = next(ranges, (2**62, 2**62))
    for number, seq in rows:
        while number >= stop:
            first, stop = next(ranges, (2**62, 2**62))
        if number < first:
            yield number, seq


def chat_position_index(source: Source, channel: str, handle: str) -> int | None:
    """The read position of a handle as the original tool counts it: the last message it has read.

    The index of the last message in the live file before the first that is unread, so that
    nothing is passed over; None where that is the first one there, or none is there at all.
    """
    db = source.db
    start = db.execute("SELECT live_from FROM channels WHERE channel = ?", (channel,)).fetchone()
    if start is None:
        return None
    somebody = db.execute(
        "SELECT 1 FROM participants WHERE channel = ?1 AND handle <> ?2"
        " UNION ALL SELECT 1 FROM cursors WHERE channel = ?1 AND handle = ?2"
        # Another program's line need not be in its header.
        " UNION ALL SELECT 1 FROM lines"
        " WHERE channel = ?1 AND number >= ?3 AND handle <> ?2 LIMIT 1",
        (channel, handle, start[0]),
    ).fetchone()
    stop = 2**62
    if somebody is not None:  # who talks alone has read it all
        rows = unread(source, channel, handle)
        stop = next((number for number, _ in rows), stop)
    (count,) = db.execute(
        "SELECT count(*) FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND handle IS NOT NULL AND gone IS NULL",
        (channel, start[0], stop),
    ).fetchone()
    return count - 1 if count else None


# Live lines -------------------------------------------------------------------------------------


class Span(NamedTuple):
    """The lines of a channel that one file shows: numbers [first, stop) without those gone."""

    channel: str
    first: int
    stop: int


def span_of(db: Tables, stem: str) -> Span | None:
    """What the file of that name shows, a live one or an archive; None if absent."""
    sql = (
        "SELECT channel, live_from, lines FROM channels WHERE channel = ?1 AND closed = 0"
        " UNION ALL SELECT channel, first, stop FROM archives WHERE archive = ?1 LIMIT 1"
    )
    row = db.execute(sql, (stem,)).fetchone()
    return None if row is None else Span(*row)


def count_chat_lines(db: Tables, span: Span) -> int:
    """How many lines a file shows, readable or not."""
    count: int = db.execute(
        "SELECT count(*) FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND gone IS NULL",
        span,
    ).fetchone()[0]
    return count


def last_chat_line(db: Tables, span: Span) -> int:
    """The number of a file's last line, counted from its top as references to chats are."""
    return chat_format.HEADER_LINES + count_chat_lines(db, span)


def chat_line_at(db: Tables, span: Span, line: int) -> tuple[int, int] | None:
    """Number and entry of the message in that line of a file; None where none stands there."""
    at = line - chat_format.HEADER_LINES - 1
    if at < 0:
        return None
    row: tuple[int, int, str | None] | None = db.execute(
        "SELECT number, seq, handle FROM lines WHERE channel = ? AND number >= ? AND number < ?"
        " AND gone IS NULL ORDER BY number LIMIT 1 OFFSET ?",
        (*span, at),
    ).fetchone()
    return None if row is None or row[2] is None else row[:2]


def refs_to_chat_lines(db: Tables, channel: str, numbers: Iterable[int]) -> dict[int, str]:
    """References such as ``live.chat:~L12`` to messages of a channel, by the messages' numbers.

    A message that no file shows any more has none.
    """
    waiting = sorted(numbers, reverse=True)
    files = db.execute(
        "SELECT archive, first, stop FROM archives WHERE channel = ?1 UNION ALL"
        " SELECT channel, live_from, lines FROM channels WHERE channel = ?1 AND closed = 0"
        " ORDER BY 2",
        (channel,),
    ).fetchall()
    found: dict[int, str] = {}
    for stem, first, stop in files:
        inside = []
        while waiting and waiting[-1] < stop:
            number = waiting.pop()
            inside += [number] if number >= first else []
        if inside:
            line = last_chat_line(db, Span(channel, first, inside[0]))
            shown = db.execute(
                "SELECT number FROM lines WHERE channel = ? AND number BETWEEN ? AND ?"
                " AND gone IS NULL ORDER BY number",
                (channel, inside[0], inside[-1]),
            )
            lines = {number: at for at, (number,) in enumerate(shown, line + 1)}
            found |= {n: f"{stem}.chat:~L{lines[n]}" for n in inside if n in lines}
    return found


def ref_to_chat_line(db: Tables, channel: str, number: int) -> str | None:
    """A reference to a message, ``live.chat:~L12``; None where no file shows it any more."""
    return refs_to_chat_lines(db, channel, [number]).get(number)
