"""Kinds of recorded sessions of agents: what was found of one, and what its record says it read.

The bytes of a transcript are in no entry: they hold secrets. An entry has their digest, and where
``tripod import --keep`` kept them, the digests of the parts.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NotRequired, TypedDict

from tripod.ledger.kinds.base import MARK, MARKED, Bytes, Count, Erasure, Kind, Name, Sha256


class SessionImported(TypedDict):
    """A file of a recorded session, as it was; a longer copy of the same file is a new entry.

    ``session`` is the program's own id of the session. ``agent`` is there where the file is one of
    a subagent, ``parent`` where another session started this one, ``role`` where the program says
    what sort of agent it was. ``cwd`` is the folder that it began in. ``ended_us`` is the time that
    the last record claims, in µs since 1970. ``form`` is ``lines`` where the program only appends
    to the file, ``document`` where it writes the file anew, and ``database`` where the session is
    rows of a database: then its records as lines of JSON stand for the file.

    ``custody`` says where the file was: ``hook``, in the folder of the team in which hooks leave
    what they take, or ``disk``, elsewhere. Neither proves who wrote it. ``coverage`` counts what
    was read and what was not understood. ``before`` is the digest of as many bytes of it as the
    entry before of the same file had. ``parts`` are the digests of the parts that were kept, a line
    each.
    """

    session: Name
    agent: NotRequired[Name | None]
    program: Name
    version: NotRequired[Name | None]
    parent: NotRequired[Name | None]
    role: NotRequired[Name | None]
    cwd: NotRequired[Name | None]
    file: Name
    form: Literal["lines", "document", "database"]
    sha256: Sha256
    bytes: Count
    lines: Count
    ended_us: NotRequired[Count | None]
    custody: Literal["disk", "hook"]
    coverage: dict[str, Count]
    before: NotRequired[Sha256 | None]
    parts: NotRequired[Bytes | None]


class SessionRead(TypedDict):
    """What the record of a session says that it read, beyond what earlier entries of it say.

    ``sha256`` is the digest of the file, as in the ``session.imported`` entry. ``exposures`` has a
    JSON object a line: ``line``, ``agent``, ``call``, ``tool``, ``channel``, ``named``, ``path``,
    ``sure`` and ``shown``, as ``tripod exposure --json`` prints them.
    """

    session: Name
    agent: NotRequired[Name | None]
    sha256: Sha256
    exposures: Bytes


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def session_stream(session: str) -> str:
    """What the stream of a session goes on with: its id, or where that has other signs, a digest.

    An id of dots alone would name another folder.

    >>> session_stream("0c6d-1"), session_stream("../x")[:18], session_stream("..")[:10]
    ('0c6d-1', 'sha256-d6b96a97d14', 'sha256-5ec')
    """
    if len(session) <= 128 and _PLAIN.issuperset(session) and session.strip("."):
        return session
    return "sha256-" + sha256(session.encode("utf-8", "surrogatepass")).hexdigest()


def _session(body: Mapping[str, Any]) -> str:
    return session_stream(body["session"])


def _folder(body: Mapping[str, Any]) -> str:
    return f"evidence/{session_stream(body['session'])}"


_STREAM = ("sessions/", _session)
IMPORTED = Kind(
    "session.imported",
    SessionImported,
    *_STREAM,
    erasure=Erasure({"file": MARK, "parts": None}, _folder, texts=("parts",)),
    line="{program} {session}: {bytes} bytes, {file}",
)
READ = Kind(
    "session.read",
    SessionRead,
    *_STREAM,
    erasure=Erasure({"exposures": MARKED}, _folder, is_copy=True),
    line="{session}",
)

KINDS = (IMPORTED, READ)
