"""Takes recorded sessions into the ledger: digests, counts, and what their records say they read.

A state of a file that the ledger has adds nothing. A longer copy is a new entry, with the digest of
as many of its first bytes as the entry before had: by that the verifier tells a file that grew from
one that was changed. The bytes of the file go nowhere, unless they are to be kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import IO

import orjson

from tripod.errors import RefusedError
from tripod.ledger import HOOKS, SPOOL
from tripod.ledger.files import open_plain_file, read_plain_file
from tripod.ledger.kinds.base import MARK
from tripod.ledger.kinds.sessions import IMPORTED, READ, SessionImported, SessionRead
from tripod.projections.projection import Tables
from tripod.sessions.evidence import keep_parts
from tripod.team.act import Act
from tripod.team.team import Team
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.isolation.sessions import CallsSeen
from tripod.verify.recorded.evidence import file_digest, part_path
from tripod.verify.recorded.files import (
    SessionCopy,
    SessionFile,
    read_copies,
    row_lines,
    session_time,
)
from tripod.verify.recorded.spool import add_spool, read_spool, spool_of
from tripod.verify.sessions.exposure import SessionExposures
from tripod.verify.sessions.items import Session, text_at

_LONGEST = 4096  # characters of a name in an entry
_MOST = 4 * 1024 * 1024  # bytes of exposures in one entry


@dataclass
class ImportedSession:
    """What became of one session: the entry that has it, or the one that had it already.

    ``is_new``: something was appended. ``is_changed``: it is not what an earlier entry had, grown.
    """

    file: str
    session: str
    agent: str
    seq: int
    is_new: bool = False
    is_changed: bool = False
    exposures: int = 0
    is_kept: bool = False


def import_session_file(
    team: Team, path: str, *, actor: str, keep: bool = False, is_named: bool = False
) -> tuple[SessionFile, list[ImportedSession]]:
    """Take the sessions of one file into the ledger; ``keep`` their bytes in the team directory.

    A file that cannot be read, or is no session's, gives none: its ``problem`` says why. Raises
    RefusedError where the file is changed meanwhile.
    """
    imported, spool = [], spool_of(path)
    start = partial(_everything, path, is_noted=spool is not None)
    found, copies = read_copies(path, start, is_named=is_named)
    for copy in copies:
        seen = copy.judged
        assert isinstance(seen, CallsSeen)  # by `start`
        copy.judged = seen.judges[0]
        if spool is not None:  # what hooks lack of the session belongs to what was not seen of it
            add_spool(read_spool(spool[0]), copy.judged, seen, copy.session.program, spool[1])
        copy.role = copy.role or _role_beside(path)
        is_erased = any(file == MARK for *_, file in _states(team.store.db, path, copy, same=True))
        parts = _kept(team, path, copy, is_named=is_named) if keep and not is_erased else []
        with team.act(by=actor, joins=True) as act:
            if not all(os.path.exists(part_path(team.root, one)) for one in parts):
                raise RefusedError(f"{path}: another command removed what was kept; try again")
            imported.append(_import(act, found, copy, parts, actor=actor, is_named=is_named))
    return found, imported


def _role_beside(path: str) -> str:
    """What sort of agent a subagent is, as Claude Code says in a file beside its own."""
    try:
        data = read_plain_file(f"{path.removesuffix('.jsonl')}.meta.json", _MOST)
        return text_at(orjson.loads(data), "agentType")
    except (OSError, orjson.JSONDecodeError):
        return ""


def _ids(path: str, copy: SessionCopy) -> tuple[str, str]:
    """The session and the subagent by which a file is known; without an id its place stands."""
    return _name(copy.session.id) or _name(os.path.abspath(path)), _name(copy.agent)


def _states(
    tables: Tables, path: str, copy: SessionCopy, *, same: bool = False
) -> list[tuple[int, str, int, int, str, str]]:
    """The states of a file that the ledger has, the newest first; ``same``: of these bytes."""
    sql = (
        "SELECT seq, sha256, bytes, kept, form, file FROM sessions"
        " WHERE session = ? AND agent = ? ORDER BY seq DESC"
    )
    rows: list[tuple[int, str, int, int, str, str]] = tables.execute(
        sql, _ids(path, copy)
    ).fetchall()
    return [row for row in rows if not same or row[1] == copy.sha256]


def _everything(path: str, _: Session, *, is_noted: bool) -> CallsSeen:
    return CallsSeen([SessionExposures(None, ProtectedText(), path)], is_noted=is_noted)


def _kept(team: Team, path: str, copy: SessionCopy, *, is_named: bool) -> list[str]:
    with _opened(path, copy, is_named=is_named) as file:
        parts = keep_parts(team.root, file, copy.bytes)
        file.seek(0)
        if file_digest(file, copy.bytes) != copy.sha256:
            raise RefusedError(f"{path} was changed while it was read; import it again")
    return parts


def _opened(path: str, copy: SessionCopy, *, is_named: bool) -> IO[bytes]:
    if copy.rows is not None:
        return BytesIO(b"".join(row_lines(copy.rows)))
    return open(open_plain_file(path, named=is_named), "rb")


def _import(
    act: Act, found: SessionFile, copy: SessionCopy, parts: list[str], *, actor: str, is_named: bool
) -> ImportedSession:
    session, agent = _ids(found.path, copy)
    rows = _states(act.transaction.tables, found.path, copy)
    told = ImportedSession(found.path, session, agent, -1, exposures=len(copy.judged.found))
    # Another form of it may have come meanwhile: what grew is held against what had lines.
    last = next((row for row in rows if row[4] == "lines"), None) if found.form == "lines" else None
    for seq, digest, _, kept, _, place in rows:
        is_at_hand = kept or place == MARK or os.path.lexists(place)  # else it was moved
        if digest == copy.sha256 and is_at_hand and (kept or not parts):
            told.seq, told.is_kept = seq, bool(kept)
            return told
    before = ""
    if last is not None and last[2] <= copy.bytes:
        with _opened(found.path, copy, is_named=is_named) as file:
            before = file_digest(file, last[2])
    elif last is not None and _begins(last, copy):
        told.seq, told.is_kept = last[0], bool(last[3])
        return told  # an older copy of what the ledger has
    if last is not None:
        told.is_changed = before != last[1]
    elif rows and rows[0][4] == "lines":
        told.is_changed = rows[0][5] == _name(os.path.abspath(found.path))  # a document replaced it
    body = _body(act, found, copy, session)
    body |= {"before": before or None, "parts": "\n".join(parts).encode() if parts else None}
    drafts = [IMPORTED.draft(body, actor)]
    drafts += (
        READ.draft(
            SessionRead(session=session, agent=agent or None, sha256=copy.sha256, exposures=text),
            actor,
        )
        for text in _new_exposures(act, copy, session, agent)
    )
    told.seq, told.is_new, told.is_kept = act.append(drafts)[0].seq, True, bool(parts)
    return told


def _begins(row: tuple[int, str, int, int, str, str], copy: SessionCopy) -> bool:
    """Whether the file that the ledger has, where that is at hand, begins with this copy."""
    try:
        with open(open_plain_file(row[5]), "rb") as file:
            is_start = file_digest(file, copy.bytes) == copy.sha256
            file.seek(0)
            return is_start and file_digest(file, row[2]) == row[1]
    except (OSError, ValueError):
        return False


def _body(act: Act, found: SessionFile, copy: SessionCopy, session: str) -> SessionImported:
    one, judged = copy.session, copy.judged
    counts = {
        "calls": sum(copy.counts.calls.values()),
        "nested": sum(copy.counts.nested.values()),
        "results": copy.counts.results,
        "unanswered": len(copy.counts.unanswered),
        "failed": copy.counts.failed,
        "unparsed": len(copy.counts.unparsed),
        "exposures": len(judged.found),
    }
    for cause, number in judged.gaps.causes().items():
        counts[cause] = counts.get(cause, 0) + number
    file = os.path.abspath(found.path)
    hooks = os.path.join(os.path.realpath(act.context.root), SPOOL, HOOKS, "")
    return {
        "session": session,
        "agent": _name(copy.agent) or None,
        "program": one.program,
        "version": _name(one.version) or None,
        "parent": _name(one.parent or "") or None,
        "role": _name(copy.role) or None,
        "cwd": _name(copy.cwd) or None,
        "file": _name(file),
        "form": found.form,
        "sha256": copy.sha256,
        "bytes": copy.bytes,
        "lines": copy.lines,
        "ended_us": session_time(found),
        "custody": "hook" if os.path.realpath(file).startswith(hooks) else "disk",
        "coverage": counts,
    }


def _name(text: str) -> str:
    """A name as an entry can hold it: what is no UTF-8 is replaced, what is too long is cut."""
    return text.encode("utf-8", "replace").decode()[:_LONGEST]


def _new_exposures(act: Act, copy: SessionCopy, session: str, agent: str) -> Iterator[bytes]:
    """What no earlier entry of the session says it read, as lines of JSON, in parts."""
    sql = "SELECT seq FROM sessions_read WHERE session = ? AND agent = ? ORDER BY seq"
    known = set[bytes]()
    for body in act.source.each_body_of(sql, session, agent):
        known.update(act.source.content(body["exposures"]).splitlines())
    part = b""
    for each in copy.judged.found:
        if each.channel in ("mcp", "tool"):
            continue  # any word of its input may be a path, and may be a secret
        line = orjson.dumps({name: _plain(value) for name, value in each.told().items()})
        if line not in known:
            part += line + b"\n"
        if len(part) > _MOST:
            yield part
            part = b""
    if part:
        yield part


def _plain(value: object) -> object:
    return _name(value) if isinstance(value, str) else value
