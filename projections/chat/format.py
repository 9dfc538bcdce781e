r"""The files of the original chat tool: chats, the mentions in a message, and read positions. Pure.

A chat file has six header lines, then one base64 line for each message::

    === nbs-chat ===
    last-writer: alex
    last-write: 2026-02-12T14:00:00+0000
    file-length: 148
    participants: alex(1)
    ---
    YWxleHwxNzcwOTA0ODAwOiBoZWxsbw==

- ``file-length`` is the size of the whole file in bytes, its own line included; nothing reads it.
- A message decodes to one of three forms, told apart by ``|`` before the first ``": "``:
  ``handle|EPOCH|SIG: text`` (signed, old), ``handle|EPOCH: text`` (written today) and
  ``handle: text`` (oldest, time unknown). The text may hold line breaks.
- The files are split and joined without losing a byte, torn last line included.

A mention is ``@`` and as many of ``A-Za-z0-9_-`` as follow, at most 63; it does not count if the
character before the ``@`` is one of ``A-Za-z0-9._+-``, as in an address. A ``!`` after it
interrupts, a ``?`` asks (shells write them ``\!`` and ``\?``). Of several for one handle the
strongest counts.

The tool keeps read positions beside a chat, in ``<channel>.chat.cursors``; an index counts the
messages of the live file from 0::

    # Read cursors — last-read message index per handle
    alex=663
    claude=664

Folds, checks and acts use this module; it imports none of them. Source: spec nbs-compat C1 to C3.
"""

import re
from binascii import Error, a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from tripod.projections import text as moments

T = TypeVar("T")
HEADER_LINES = 6
"""Physical line number of the first message, less one: ``live.chat:~L7`` is the first message."""
MAX_HANDLE = 63
MAX_TEXT = 1_048_576
MAX_PLAIN = 786_429
"""Bytes of a message with its handle and time that the original reads from one line.

A longer line it takes for two, and its next send writes them back as two: the message is gone.
"""

_MAGIC = b"=== nbs-chat ===\n"
_END = b"---\n"
# Patterns are texts: re compiles each on its first use and keeps it. Compiled here, they would
# cost every command that imports this module.
_CUT = b"\n[cut for the original tool: `tripod chat read` shows the whole message]"


class ChatLine(NamedTuple):
    """One message; ``time`` in epoch seconds, 0 where the line does not say."""

    handle: str
    time: int
    text: str


class ChatHeader(NamedTuple):
    """The header's facts as the file words them; participants in order, with messages ever sent."""

    last_writer: str
    last_write: str
    participants: tuple[tuple[str, int], ...]


class ChatFile(NamedTuple):
    r"""A chat file in pieces; ``header`` is None where it does not read as UTF-8.

    ``header_raw`` is everything through the line ``---``; ``lines`` are the physical lines after
    it, without their line breaks, blank and damaged ones included; ``complete`` is False where the
    last line lacks its line break (a write that was cut off).
    """

    header_raw: bytes
    header: ChatHeader | None
    lines: tuple[bytes, ...]
    complete: bool


def format_line(handle: str, time: int, text: str) -> bytes:
    """Give the line of a message, without line break; ``time`` in epoch seconds, 0 for unknown.

    >>> format_line("alex", 1770904800, "hello")
    b'YWxleHwxNzcwOTA0ODAwOiBoZWxsbw=='

    Raises ValueError where :func:`parse_line` would not give the same message back.
    """
    line = encode_chat_line(handle, time, text)
    if parse_line(line) != ChatLine(handle, time, text):
        raise ValueError(f"a message of {handle!r} at {time} cannot be written as a chat line")
    return line


def encode_chat_line(handle: str, time: int, text: str) -> bytes:
    """Give the line of a message that was judged before: what a render writes again and again.

    One that the original could not read again is cut, to exactly ``MAX_PLAIN`` bytes.
    """
    plain = f"{handle}|{time}: {text}".encode()
    if len(plain) > MAX_PLAIN:
        room = MAX_PLAIN - len(_CUT)
        plain = plain[:room].decode(errors="ignore").encode().ljust(room) + _CUT
    return b2a_base64(plain, newline=False)


def parse_line(line: bytes) -> ChatLine | None:
    """Read one line; None for what the original skips or drops.

    Those are blank lines, wrong base64, texts without ``": "``, an empty handle or one over 63
    bytes, a NUL, and invalid UTF-8. A time that is no positive number is unknown, as is one beyond
    the integers of the ledger.
    """
    try:
        decoded = a2b_base64(line, strict_mode=True).decode()
    except (Error, UnicodeDecodeError):
        return None
    before, colon, text = decoded.partition(": ")
    fields = before.split("|", 2)
    handle = fields[0]
    if not colon or not handle or moments.text_size(handle) > MAX_HANDLE or "\0" in decoded:
        return None
    time = int(fields[1]) if len(fields) > 1 and re.fullmatch(r"[0-9]{1,19}", fields[1]) else 0
    return ChatLine(handle, time if time <= moments.MAX_EPOCH else 0, text)


def _header(last_writer: str, last_write: str, participants: str, body_size: int) -> bytes:
    before = f"last-writer: {last_writer}\nlast-write: {last_write}\n".encode()
    after = f"participants: {participants}\n".encode()
    if any(part.count(b"\n") != lines for part, lines in ((before, 2), (after, 1))):
        raise ValueError("a line break in a chat header: check the handles before they get here")
    rest = len(_MAGIC) + len(before) + len(after) + len(_END) + body_size + len("file-length: \n")
    length = rest + len(str(rest))
    length = rest + len(str(length))  # the number's own digits may have made it longer
    return b"%bfile-length: %d\n%b%b" % (_MAGIC + before, length, after, _END)


def format_header(header: ChatHeader, body_size: int) -> bytes:
    """Give the six header lines of a file with ``body_size`` bytes after them.

    A new file has the writer ``system`` and nobody in it. ValueError: a line break in a field.
    """
    participants = ", ".join(f"{handle}({count})" for handle, count in header.participants)
    return _header(header.last_writer, header.last_write, participants, body_size)


def chat_archive_header(last_write: str, body_size: int) -> bytes:
    """Give the header of an archive: written by ``system``, nobody in it, and that in words."""
    return _header("system", last_write, "(archived)", body_size)


def parse_header(raw: bytes) -> ChatHeader | None:
    """Read a header, in any order of its fields; None where it is not one or not UTF-8.

    As in the original a wrong ``file-length``, an unknown field and a participant without a number
    are passed over, and a missing field is empty.
    """
    if not raw.startswith(_MAGIC) or not raw.endswith(b"\n" + _END):
        return None
    try:
        lines = raw.decode().split("\n")
    except UnicodeDecodeError:
        return None
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    people = fields.get("participants", "").split(", ")
    matches = filter(None, (re.fullmatch(r"(?s)(.+)\(([0-9]{1,15})\)", one) for one in people))
    participants = tuple((match[1], int(match[2])) for match in matches)
    return ChatHeader(fields.get("last-writer", ""), fields.get("last-write", ""), participants)


def split_chat_file(data: bytes) -> ChatFile | None:
    """Take a file apart; None where it does not begin as a chat file with a whole header."""
    end = data.find(b"\n" + _END)
    if not data.startswith(_MAGIC) or end < 0:
        return None
    start = end + 1 + len(_END)
    *lines, rest = data[start:].split(b"\n")
    shown = (*lines, rest) if rest else tuple(lines)
    return ChatFile(data[:start], parse_header(data[:start]), shown, complete=not rest)


def cut_chat_lines(data: bytes) -> list[bytes]:
    """Cut into lines with their line breaks; a torn last one stays without."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def unmatched(parts: Iterable[T], waiting: Counter[Any], mark: Callable[[T], object]) -> list[T]:
    """The parts whose mark is not ``waiting``; each match is subtracted from ``waiting``."""
    new = []
    for part in parts:
        key = mark(part)
        if waiting[key]:
            waiting[key] -= 1
        else:
            new.append(part)
    return new


def join_chat_file(file: ChatFile) -> bytes:
    """Put a file together again: ``join_chat_file(split_chat_file(data)) == data``."""
    body = b"\n".join(file.lines)
    return file.header_raw + body + (b"\n" if file.lines and file.complete else b"")


def format_time(epoch_s: int) -> str:
    """Give a header's time in UTC: ``2026-02-12T14:00:00+0000``."""
    return moments.format_iso_time_text(epoch_s, "+0000")


def parse_chat_time(text: str) -> int | None:
    """Read a header's time into epoch seconds; None if it is not one.

    Any numeric offset, and the older form with a space and no offset, which is read as UTC.
    """
    return moments.parse(text)


def chat_archive_name(stem: str, epoch_s: int) -> str:
    """Give the stem of an archive, ``live-20260212-140000-archive``, in UTC."""
    return f"{stem}-{moments.format_stamp_text(epoch_s)}-archive"


def parse_chat_archive_name(name: str) -> tuple[str, str] | None:
    """Read an archive's name, with or without ``.chat``, into its stem and its writer's local time.

    >>> parse_chat_archive_name("live-20260212-140000-archive.chat")
    ('live', '20260212-140000')
    """
    match = re.fullmatch(r"(?s)(.+)-([0-9]{8}-[0-9]{6})-archive(?:\.chat)?", name)
    return (match[1], match[2]) if match else None


def valid_chat_handle(handle: str) -> str | None:
    """Judge a handle for a new message: None, or the broken rule.

    What the original lets through and is then broken by (spec: nbs-compat C2 "send") is refused.
    """
    return moments.text_word_problem(handle, "handle", MAX_HANDLE, "[|:,()=/")


def valid_chat_name(name: str) -> str | None:
    """Judge the stem of a new chat or file, as one safe file name: None, or the broken rule."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        return "channel: 1 to 100 of A-Z a-z 0-9 . _ - are allowed, the first a letter or a digit"
    if name.endswith("-archive"):
        return "channel: a name that ends in -archive is kept for archives"
    return None


def valid_chat_text(text: str) -> str | None:
    """Judge the text of a new message: None, or the broken rule."""
    if "\0" in text:
        return "message: holds a NUL byte, which the original tools cannot read"
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        return "message: is not valid Unicode"
    return f"message: longer than {MAX_TEXT} bytes" if length > MAX_TEXT else None


# Mentions ---------------------------------------------------------------------------------------


How: TypeAlias = Literal["mention", "query", "interrupt"]

TEAM = "team"
"""The handle that stands for everybody in the channel."""
MAX_MENTIONS = 256
"""How many handles one message addresses at most: each is an event."""

QUOTES = ("chat-message", "chat-mention", "chat-query", "chat-interrupt", "human-input")
"""Types of events whose payload quotes a message."""

EVENTS: dict[How, tuple[str, str]] = {
    "mention": ("chat-mention", "high"),
    "query": ("chat-query", "high"),
    "interrupt": ("chat-interrupt", "critical"),
}
"""Type and priority of the event for each way to address somebody, the weakest first."""

_MENTION = r"(?<![A-Za-z0-9._+-])@([A-Za-z0-9_-]+)(?:\\?([!?]))?"
_HOW: dict[str, How] = {"": "mention", "?": "query", "!": "interrupt"}


class ParsedMention(NamedTuple):
    """A handle and how it is addressed."""

    handle: str
    how: How


def chat_mentions(text: str) -> tuple[ParsedMention, ...]:
    """The handles that a text addresses, each once, in the order of their first mention.

    >>> [tuple(m) for m in chat_mentions("@alex, (@eve!) and @@fay; not bob@example.org. @alex?")]
    [('alex', 'query'), ('eve', 'interrupt'), ('fay', 'mention')]
    """
    found: dict[str, How] = {}
    for handle, mark in re.findall(_MENTION, text) if "@" in text else ():
        if len(handle) <= MAX_HANDLE:
            found[handle] = max(found.get(handle, "mention"), _HOW[mark], key=tuple(EVENTS).index)
    return tuple(ParsedMention(handle, how) for handle, how in found.items())


# Cursors ----------------------------------------------------------------------------------------


HEADER = "# Read cursors — last-read message index per handle\n"


def parse_chat_cursors(data: bytes) -> dict[str, int]:
    r"""Handles with their indexes, in the order of the file; what is no position is passed over.

    >>> parse_chat_cursors(b"# x\nann=3\nbob=often\n")
    {'ann': 3}
    """
    found: dict[str, int] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        name, _, index = line.partition("=")
        is_number = index.isascii() and index.isdigit() and len(index) <= 10
        if name and is_number and name[0] != "#" and int(index) <= 2**31 - 1:
            found[name] = int(index)
    return found


def format_chat_cursors(positions: Mapping[str, int]) -> bytes:
    """The bytes of the file.

    >>> format_chat_cursors({"ann": 3}).splitlines()[1]
    b'ann=3'
    """
    return (HEADER + "".join(f"{name}={index}\n" for name, index in positions.items())).encode()
