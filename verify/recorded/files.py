"""Finds the files of recorded sessions and reads them, without changing a byte.

A session's writer may write these files too: only plain files are opened, no link within a
folder is followed, and a database is looked at as a private copy.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from io import BytesIO
from itertools import chain, islice
from typing import IO, Any, Literal

import orjson

from tripod.ledger.errors import BadArgumentError
from tripod.ledger.files import open_plain_file
from tripod.verify.isolation.batch import Asking, answer
from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.hooks import SNAPSHOT, TRANSCRIPT, is_event_file
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import MAIN, Gap, Item, Reader, Session, SessionRecord
from tripod.verify.sessions.jsonl import MAX_LINE, DamagedLine, json_value, session_records
from tripod.verify.sessions.opencode import OpenCode
from tripod.verify.sessions.readers import (
    DOCUMENTS,
    MAX_DOCUMENT,
    READERS,
    SessionCounts,
    document_records,
    is_of_no_session,
    program_of,
    read_session,
)

_LINES = re.compile(r"\.(?:jsonl|ndjson)\b", re.IGNORECASE)
_SESSION = re.compile(
    r""".*\.(?:jsonl?|ndjson|db|sqlite3?)
    (?:~|\.(?:bak|backup|old|orig|save|copy|tmp|gz|zst|xz|bz2|zip|[\d_-]+))*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Names of files that may be of a session: copies have a second ending."""

_FIRST_YEAR, _LAST_YEAR = 1971, 2250  # an entry holds no larger number of microseconds
_FIRST = 64  # records among which one must tell the program
_BLOCK = 1024 * 1024
_AHEAD = 256 * 1024  # bytes: lines out of so many take half as long as out of 8 KiB
_SELDOM = 50_000
"""Objects after which cycles are looked for: records have none, and each look costs."""

_NEWLINE = ord("\n")
_LARGE = 8 * 1024 * 1024  # bytes: of less, a second process has no time to help
_SQLITE = b"SQLite format 3\0"
_PACKED = {b"\x1f\x8b": "gzip", b"PK\3\4": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz"}
_META = ".meta.json"


@dataclass
class SessionFile:
    """A file of a session as it was read: its program, digest and size, and what was counted.

    ``program`` is None where no reader knows it; ``problem`` says why, in words. It ``is_foreign``
    where it is known to be no session: settings and other documents, lists of prompts, events.
    """

    path: str
    program: str | None = None
    sha256: str = ""
    bytes: int = 0
    lines: int = 0
    problem: str = ""
    is_foreign: bool = False
    form: Literal["lines", "document", "database"] = "lines"
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The records of each session of a database."""
    reader: Reader | None = None
    counts: SessionCounts = field(default_factory=SessionCounts)


@dataclass
class SessionCopy:
    """One session, or one subagent of it, as a file has it.

    ``cwd`` is the folder that it began in, ``role`` what sort of subagent it is, both by the first
    record that says so. ``ids`` are the sessions that the file names, as they were first named.
    """

    session: Session
    judged: SessionExposures
    counts: SessionCounts = field(default_factory=SessionCounts)
    sha256: str = ""
    bytes: int = 0
    lines: int = 0
    rows: list[dict[str, Any]] | None = None
    """The records, where the session is rows of a database."""
    cwd: str = ""
    role: str = ""
    ids: dict[str, Session] = field(default_factory=dict)
    _agent: str = ""

    @property
    def agent(self) -> str:
        """The subagent whose file it is; '' of a session's own thread."""
        return self._agent if self.session.parent == self.session.id else ""

    def add(self, item: Item) -> None:
        """Count and judge an item."""
        self.counts.add(item)
        self.judged.add(item)
        if isinstance(item, Gap):
            return
        self.cwd = self.cwd or item.cwd
        if isinstance(item, Session):
            self.ids.setdefault(item.id, item)
            self.role = self.role or item.role
        elif not (self._agent or item.nested or item.agent == MAIN):
            self._agent = item.agent


def session_time(found: SessionFile) -> int | None:
    """When the last record was made by its own words, in µs since 1970; None where it has no time.

    It is text of ISO 8601, or milliseconds, some levels down in what OpenCode says of a message.
    """
    time = found.reader.time if found.reader is not None else None
    for name in ("time", "completed"):
        if isinstance(time, dict):
            time = time.get(name, time.get("created"))
    if isinstance(time, int) and 0 < time < 2**43:
        return time * 1000
    try:
        told = datetime.fromisoformat(time) if isinstance(time, str) else None
    except ValueError:
        return None
    if told is None or not _FIRST_YEAR <= told.year <= _LAST_YEAR:
        return None
    return int(told.replace(tzinfo=told.tzinfo or UTC).timestamp() * 1_000_000)


def session_files(path: str) -> Iterator[str]:
    """The file itself, or every file in a folder that may be of a session, in order of its path.

    Links within a folder that have such a name, or lead to no file, are given too: reading them
    says that they are links. Of what hooks left of a session the transcript is given that they
    saved, and where they saved none, the folder.
    """
    if not os.path.lexists(path):
        raise BadArgumentError(
            f"{path} does not exist; name a file of a session, or a folder of them"
        )
    if not os.path.isdir(path):
        yield path
        return
    closed: list[OSError] = []
    for folder, inner, names in os.walk(path, onerror=closed.append):
        inner.sort()
        if any(map(is_event_file, names)):
            inner[:] = [name for name in inner if name != SNAPSHOT]
            if TRANSCRIPT not in names:
                yield folder
        files = {name for name in names if _SESSION.fullmatch(name) and not _is_beside(name, names)}
        for name in sorted((*names, *inner)):
            path = os.path.join(folder, name)
            if name in files or (os.path.islink(path) and not os.path.isfile(path)):
                yield path
    yield from (str(error.filename) for error in closed)


def _is_beside(name: str, names: Container[str]) -> bool:
    """Whether a file is no session, but says something of one, whose file is among ``names``."""
    session = name.removesuffix(_META) + ".jsonl"
    return is_event_file(name) or (name.endswith(_META) and session in names)


def read_session_file(
    path: str,
    each: Callable[[Item], None] | None = None,
    *,
    is_named: bool = False,
    size: int | None = None,
) -> SessionFile:
    """Read one file to its end; ``each`` gets every item in the order of the file.

    A file that cannot be read, or whose program is not known, has a ``problem``. ``is_named``: the
    user named it, so that a link is followed. ``size``: read no more bytes of it, if it is lines.
    """
    found = SessionFile(path)
    often = gc.get_threshold()
    gc.set_threshold(_SELDOM, *often[1:])
    try:
        with open(open_plain_file(path, named=is_named), "rb", _AHEAD) as file:
            _read(found, file, each, size)
    except OSError as error:
        found.problem = error.strerror or str(error)
    finally:
        gc.set_threshold(*often)
    return found


@contextmanager
def judged_beside(
    protected: ProtectedText, rule: NeverRule | None, paths: Iterable[str]
) -> Iterator[Asking | None]:
    """A second process that helps to judge large files, where there is a processor for it."""
    size = 0
    for path in paths:
        with suppress(OSError):  # reading says what is wrong with it
            size += os.stat(path).st_size
    if size < _LARGE:
        yield None
        return
    from tripod.verify.child import Helper, child_cores  # few files are large

    if child_cores() < 2:
        yield None
        return
    with closing(Helper(partial(answer, protected, rule))) as helper:
        yield helper


def _read(
    found: SessionFile, file: IO[bytes], each: Callable[[Item], None] | None, size: int | None
) -> None:
    before = os.fstat(file.fileno())
    head = file.read(len(_SQLITE))
    packed = [name for start, name in _PACKED.items() if head.startswith(start)]
    if packed:
        found.problem = f"it is packed ({packed[0]}): unpack it, and name the file that was in it"
        records: Iterable[SessionRecord | DamagedLine] = ()
    elif head == _SQLITE:
        found.bytes, found.sha256 = _digest(file)
        records = _database(found, file)
    else:
        file.seek(0)
        # No more than there is now: another program may write faster than this one reads.
        records = _records(found, file, before.st_size or None if size is None else size)
    if found.program is not None:
        found.reader = READERS[found.program]()
        for item in read_session(found.reader, records):
            found.counts.add(item)
            if each is not None:
                each(item)
            del item  # its text may be long, and the next one comes before the name is another's
    elif not found.problem:
        nobody = "no program is known that writes such records"
        found.problem = nobody if before.st_size else "it is empty"
    after = os.fstat(file.fileno())
    is_copy = found.form == "database"  # was compared as it was copied
    if (
        found.reader
        and not is_copy
        and (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)
    ):
        gap = Gap("missing", found.lines, "the file was changed while it was read")
        found.counts.add(gap)
        if each is not None:
            each(gap)


def _digest(file: IO[bytes]) -> tuple[int, str]:
    file.seek(0)
    digest, size = sha256(), 0
    while block := file.read(_BLOCK):
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()


def _records(
    found: SessionFile, file: IO[bytes], size: int | None
) -> Iterable[SessionRecord | DamagedLine]:
    """The records of a file of text: JSON lines, or one document."""
    digest = sha256()

    def lines() -> Iterator[Iterable[bytes]]:
        left = 2**62 if size is None else size
        begun: list[bytes] = []  # parts of a line whose end was not read yet
        length, is_open = 0, False
        while block := file.read(min(_AHEAD, left)):
            left -= len(block)
            digest.update(block)
            found.bytes += len(block)
            whole = BytesIO(block).readlines()
            is_open = whole[-1][-1] != _NEWLINE
            found.lines += len(whole) - is_open
            begun.append(whole[0])
            length += len(whole[0])
            if len(whole) == 1 and is_open and length <= MAX_LINE:
                continue
            rest = [whole.pop()] if len(whole) > 1 and is_open else []
            whole[0] = b"".join(begun)
            begun, length = rest, sum(map(len, rest))
            yield whole if len(whole[0]) <= _AHEAD else _taken(whole)
        found.lines += is_open
        found.sha256 = digest.hexdigest()
        if begun:
            yield _taken([b"".join(begun)])

    found.program, is_document = _program_in(file)
    file.seek(0)
    records = session_records(chain.from_iterable(lines()))
    if found.program is None or is_document:
        # To the end, for the digest. An empty file may have been a session.
        told = sum(_tells(one, found.path) for one in records)
        found.is_foreign = found.bytes > 0 and not told
        return _document(found, file)
    return records


def _taken(lines: list[bytes]) -> Iterator[bytes]:
    """Lines that nobody holds while they are judged: one may be long."""
    lines.reverse()
    while lines:
        yield lines.pop()


def _program_in(file: IO[bytes]) -> tuple[str | None, bool]:
    """The program that the first records tell, and whether the file is one document of it.

    They are read again to be judged: many may be long, and memory has a limit.
    """
    program, is_document = None, False
    lines = iter(lambda: file.readline(MAX_LINE + 1), b"")
    for number, one in enumerate(islice(session_records(lines), _FIRST)):
        value = one.value if isinstance(one, SessionRecord) else {}
        program = program or program_of(value)
        is_document = number == 0 and _is_document(value)
        if program is not None and not is_document:
            break  # a second record shows that the file has more than a document
    return program, is_document and program in DOCUMENTS


def _tells(one: SessionRecord | DamagedLine, path: str) -> bool:
    """Whether a record may be of a session: it is damaged, or of a program, or of nothing known."""
    if not isinstance(one, SessionRecord) or program_of(one.value) is not None:
        return True
    return _has_lines(path) and not is_of_no_session(one.value)


def _has_lines(path: str) -> bool:
    """Whether a file is one of lines by its name: no other file of a project has such a name."""
    return _LINES.search(os.path.basename(path)) is not None


def _is_document(value: dict[str, Any]) -> bool:
    return isinstance(value.get("messages", value.get("steps")), list)


def _document(found: SessionFile, file: IO[bytes]) -> Iterable[SessionRecord]:
    if found.bytes > MAX_DOCUMENT:
        found.program = None
        found.problem = f"one document of over {MAX_DOCUMENT // 1024 // 1024} MiB is not read"
        return ()
    file.seek(0)
    value = None
    try:
        value = json_value(file.read())
    except ValueError as error:
        if "deep" in str(error):
            found.problem = f"it is {error}"
    found.is_foreign |= value is not None and not _has_lines(found.path)
    if isinstance(value, dict) and _is_document(value):
        found.program, found.form = program_of(value), "document"
        if found.program in DOCUMENTS:
            return document_records(value, found.program)
    found.program = None
    return ()


def read_copies(
    path: str,
    start: Callable[[Session], SessionExposures],
    *,
    is_named: bool = False,
    size: int | None = None,
) -> tuple[SessionFile, list[SessionCopy]]:
    """Read a file, and give each session in it: several only of a database.

    ``start`` gives what judges a session. Of a file of lines only the first ``size`` bytes are
    read, where that is given.
    """
    copies: list[SessionCopy] = []
    whole: list[Item] = []  # what stands before the first session, or is about the file

    def each(item: Item) -> None:
        is_next = isinstance(item, Session) and item.program == OpenCode.program
        if isinstance(item, Session) and (is_next or not copies):
            copies.append(SessionCopy(item, start(item)))
        if copies and item.line:
            copies[-1].add(item)
        else:
            whole.append(item)

    found = read_session_file(path, each, is_named=is_named, size=size)
    if found.reader is None:
        return found, []
    if not copies:
        nobody = Session("", found.reader.program, "", 1)
        copies.append(SessionCopy(nobody, start(nobody)))
    for copy in copies:
        for item in whole:
            copy.add(item)
        copy.judged.end()
        copy.sha256, copy.bytes, copy.lines = found.sha256, found.bytes, found.lines
        if found.form == "database":
            copy.rows = found.rows.get(copy.session.id, [])
            data = b"".join(row_lines(copy.rows))
            copy.sha256, copy.bytes, copy.lines = (
                sha256(data).hexdigest(),
                len(data),
                len(copy.rows),
            )
    if found.form != "database":
        named = (one for name, one in copies[0].ids.items() if name and name in path)
        copies[0].session = next(named, copies[0].session)
    return found, copies


def row_lines(rows: list[dict[str, Any]]) -> Iterator[bytes]:
    """The records of a session of a database as lines of JSON."""
    return (orjson.dumps(row) + b"\n" for row in rows)


def _database(found: SessionFile, file: IO[bytes]) -> Iterable[SessionRecord | DamagedLine]:
    from sqlite3 import Error  # most sessions are files of lines

    found.program, found.form = "opencode", "database"
    try:
        from tripod.verify.recorded.database import database_records  # most are files of lines

        records = database_records(file, found.path)
    except (Error, OSError, LookupError, ValueError, TypeError, MemoryError) as error:
        found.program, found.problem = None, f"the database cannot be read: {error}"
        return ()
    one: list[dict[str, Any]] = []
    for record in records:
        if isinstance(record, SessionRecord):
            info = record.value["info"]
            one = one if "role" in info else found.rows.setdefault(info["id"], [])
            one.append(record.value)
    return records
