"""Writes decisions into a file of the work tree, where reviewers want them: on purpose, by request.

The file is a copy and never taken in. Its bytes follow from the ledger alone. Its first line holds
a digest of the rest, so that no file is overwritten but one that stands as it was written here.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from typing import NamedTuple

from tripod.decisions.reader import standing
from tripod.errors import NotFoundError, RefusedError
from tripod.ledger.files import place_to_write_problem, read_plain_file, replace_file
from tripod.ledger.ids import format_at
from tripod.output import entry_marks, one_line
from tripod.projections import LOG
from tripod.team.team import Team

NAME = "decisions.md"
"""The file's name in a folder."""

_FIRST = re.compile(rb"<!-- `tripod scribe export` wrote this; sha256 below: ([0-9a-f]{64}) -->\n")
_HEAD = re.compile(rb"\n(Ledger [^\n]*)\n")
_MODE = 0o644
_MAX = 256 * 1024 * 1024  # bytes of a file that is there


class DecisionExport(NamedTuple):
    """What an export made: its path, its decisions, and the head of the ledger that they are of.

    ``is_written``: False where the file holds just these decisions already.
    """

    path: str
    decisions: int
    size: int
    root: str
    is_written: bool


def export_decisions(
    team: Team, path: str, *, since: int | None = None, log: str | None = None
) -> DecisionExport:
    """Write the decisions logged from the second ``since`` on, of one log or of all.

    ``path`` is the file, or a folder for ``decisions.md``. Where only the head of the ledger would
    be another, the file stays as it is.

    Raises:
        NotFoundError: there is no log yet, or none of that name.
        RefusedError: the path is in the team directory, or something else stands there.
        OSError: the disk refuses.
    """
    if os.path.isdir(path):
        path = os.path.join(path, NAME)
    _check_place(team, path)
    head, text = team.store.head(), list[str]()
    if log is not None and log not in LOG.live(team.source):
        raise NotFoundError(f"no decision log {log}")
    found = [
        one
        for one in standing(team, None, None if log is None else [log])
        if since is None or one.decision.second >= since
    ]
    marks = entry_marks(team.store, [one.decision.seq for one in found])
    for one in found:
        decision = one.decision
        mark = marks[decision.seq]
        text.append(f"{one.text}\n- **Entry:** {decision.seq}{f', {mark}' if mark else ''}\n")
        if decision.by is not None:
            text.append(f"- **Today:** {decision.stands} by {decision.by}\n")
        text.append("\n")
    scope = "" if log is None else f" of the log {log}"
    scope += "" if since is None else f" logged since {format_at(since * 1_000_000)[:19]}Z"
    what = "1 decision" if len(found) == 1 else f"{len(found)} decisions"
    said = (
        "# Decisions\n\nA copy, written on purpose: decisions are logged with `tripod scribe log`, "
        f"and a change here is not one.\n\n{what}{scope}.\n"
        f"Ledger {one_line(team.store.origin)}: {head.size} entries, root {head.root.hex()}\n\n"
    )
    data = (said + "".join(text).rstrip("\n") + "\n").encode("utf-8", "surrogateescape")
    old = _written(path)
    is_written = old is None or _HEAD.sub(b"", old, 1) != _HEAD.sub(b"", data, 1)
    if is_written:
        first = f"<!-- `tripod scribe export` wrote this; sha256 below: {_digest(data)} -->\n"
        replace_file(path, first.encode() + data, _MODE, foreign_folder=True)
    return DecisionExport(path, len(found), head.size, head.root.hex(), is_written)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _check_place(team: Team, path: str) -> None:
    if problem := place_to_write_problem(path, team.root):
        raise RefusedError(problem)
    if os.path.islink(path):
        raise RefusedError(f"{path} is a symbolic link: give the file itself")


def _written(path: str) -> bytes | None:
    """What an export wrote there before, without its first line; None where there is nothing."""
    try:
        data = read_plain_file(path, _MAX, named=True)
    except FileNotFoundError:
        return None
    first = _FIRST.match(data)
    if first is None:
        raise RefusedError(f"{path} is there, and no export wrote it: give another name")
    rest = data[first.end() :]
    if _digest(rest) != first[1].decode():
        raise RefusedError(
            f"{path} was changed since an export wrote it: move it away, or take the change back"
        )
    return rest
