"""What the git hooks of ``tripod hooks install`` run: a head in each commit, the record on its ref.

``commit-msg`` signs the head of the ledger and puts it into the message as a trailer
(``tripod.ledger.tlog.trailer``). ``post-commit`` writes the record under that seal to the
replica's ref; the hook does not wait for it, so what goes wrong there is told at the next commit.

Neither writes to the ledger, neither stops a commit, and neither says anything unless something is
wrong. A ledger without a key, or whose key is elsewhere or locked, is passed over without a word;
so is each commit where nothing is to be changed (``TRIPOD_READ_ONLY``).
What is imported here is what each commit waits for.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

from tripod.errors import LedgerError, NoTeamError, TripodError
from tripod.ledger.files import is_read_only
from tripod.ledger.locator import APART, database_of, named, nearest_team, work_tree_around
from tripod.ledger.sqlite.reader import SQLiteReader, read_block_nodes, read_only
from tripod.ledger.tlog.note import parse_note
from tripod.ledger.tlog.seal import parse_seal
from tripod.ledger.tlog.trailer import drop_trailers, format_trailer
from tripod.peers.replica import replica_of
from tripod.trust import keys
from tripod.trust.keys import LockedKeyError, sealing_key
from tripod.trust.seal import check_last_seal, last_seal_note, seal_head

_PROBLEM = "hook-problem"
_MAX_PROBLEM = 4096  # bytes
_SCISSORS = re.compile(rb"^(.) -{8,} >8 -{8,}$", re.MULTILINE)
_COMMENTS = b"#;@!$%^&|:"
_TRAILERS = re.compile(rb"([A-Za-z0-9-]+: [^\n]*|[ \t][^\n]*|\(cherry picked from commit [^\n]*)")


class _Team(NamedTuple):
    """A team that is looked at only: its directory, its ledger, its replica's name and key."""

    root: str
    store: SQLiteReader
    replica: str
    vkey: str


def message_with_trailer(message: bytes, line: bytes) -> bytes:
    """The message of a commit with ``line`` as its only trailer of ours.

    The comments for its author stay behind it. A message with nothing else in it is left as it is:
    git then makes no commit.
    """
    cut = _SCISSORS.search(message)
    head, rest = (message[: cut.start()], message[cut.start() :]) if cut else (message, b"")
    lines = drop_trailers(head).rstrip(b"\n").split(b"\n")
    mark = cut[1] if cut else lines[-1][:1]
    mark = mark if mark and mark in _COMMENTS else b"#"
    comments: list[bytes] = []
    while lines and (lines[-1].startswith(mark) or not lines[-1].strip()):
        comments.insert(0, lines.pop())
    if not any(text.strip() and not text.startswith(mark) for text in lines):
        return message
    while comments and not comments[0].strip():
        comments.pop(0)
    last = len(lines)
    while last and _TRAILERS.fullmatch(lines[last - 1]):
        last -= 1
    is_block = 0 < last < len(lines) and not lines[last - 1].strip()
    parts = [*lines, *([] if is_block else [b""]), line, *([b"", *comments] if comments else [])]
    return b"\n".join(parts) + b"\n" + rest


@contextmanager
def _team(start: str) -> Iterator[_Team | str]:
    """The team of a folder; or why no head of it goes into commits, and what to do."""
    root = named() or nearest_team(start)
    path = None if root is None else database_of(root)
    if root is None or path is None or not os.path.isfile(path):
        yield _why_no_ledger(start)
        return
    with closing(read_only(path)) as db:
        db.execute("BEGIN")
        ledger = SQLiteReader(db)
        vkey = sealing_key(ledger)
        known = replica_of(ledger)
        if vkey is None:
            yield "the ledger has no key: `tripod key new` makes one"
        elif not os.path.exists(keys.key_path(ledger.origin)):
            yield f"the private key of {ledger.origin} is not on this host"
        elif known is None:
            yield "the ledger has no name among replicas: `tripod hooks install` gives it one"
        else:
            yield _Team(root, ledger, known[1], vkey)


def _why_no_ledger(start: str) -> str:
    """Why there is no ledger, and what brings it about."""
    from tripod.team.team import find_team

    try:
        return f"{database_of(find_team(None, start))} cannot be read"
    except NoTeamError as error:
        return str(error)


def why_no_head(start: str) -> str | None:
    """Why commits in the folder ``start`` would get no head of a ledger; None: they would."""
    with _team(start) as team:
        return team if isinstance(team, str) else None


def _signed_head(team: _Team) -> str:
    """The seal of the ledger as it stands: the last one where nothing came after it."""
    ledger, origin = team.store, team.store.origin
    head, nodes, last = ledger.head(), read_block_nodes(ledger.db), last_seal_note(origin)
    if last is not None:
        check_last_seal(origin, head, nodes)
        size = parse_seal(parse_note(last.encode()).text).size
        after = ledger.entry(size) if head.size == size + 1 else None
        if head.size == size or (after is not None and after.kind == "seal.made"):
            return last
    key = keys.load_key_in_force(team.vkey, keys.passphrase_from_file)
    return seal_head(key, head, nodes)


def add_trailer(path: str) -> None:
    """Put the head of the ledger into the message that a commit is about to get."""
    with _team(os.getcwd()) as team:
        if isinstance(team, str):
            return
        note = parse_note(_signed_head(team).encode())
        line = format_trailer(team.replica, parse_seal(note.text), note.signatures[0])
    with open(path, "rb") as file:
        message = file.read()
    told = message_with_trailer(message, line)
    if told != message:
        with open(path, "wb") as file:
            file.write(told)


def write_ref() -> None:
    """Write the record under the last seal that was signed here to the replica's ref."""
    from tripod.peers.record import keep_record

    with _team(os.getcwd()) as team:
        note = None if isinstance(team, str) else last_seal_note(team.store.origin)
        if not isinstance(team, str) and note is not None:
            keep_record(team.root, team.replica, note)


def _problem_path() -> str | None:
    tree = work_tree_around(os.getcwd())
    return None if tree is None else os.path.join(tree.common, APART, _PROBLEM)


def _tell(problem: str) -> None:
    from tripod.output import remark

    remark(problem)


def _tell_earlier() -> None:
    """Say once what went wrong after the commit before."""
    path = _problem_path()
    if path is None or not os.path.exists(path):
        return
    with open(path, "rb") as file:
        said = file.read(_MAX_PROBLEM).decode("utf-8", "replace").strip()
    os.unlink(path)
    _tell(f"after an earlier commit the ref of the record was not written: {said}")


def _keep(problem: str) -> None:
    path = _problem_path()
    if path is not None and os.path.isdir(os.path.dirname(path)):
        with open(path, "wb") as file:
            file.write(problem.encode("utf-8", "replace")[:_MAX_PROBLEM])


def main(arguments: Sequence[str]) -> int:
    """Do what the hook of this name does; the exit code is always 0: no commit is stopped."""
    if is_read_only():
        return 0
    broken = (TripodError, LedgerError, OSError, sqlite3.Error, ValueError, LookupError, TypeError)
    try:
        if arguments[:1] == ["post-commit"]:
            write_ref()
        elif arguments[:1] == ["commit-msg"] and len(arguments) == 2:
            with suppress(LockedKeyError):
                add_trailer(arguments[1])
            _tell_earlier()
    except broken as error:
        if arguments[0] == "post-commit":
            with suppress(OSError):
                _keep(str(error))
        else:
            _tell(f"this commit gets no Tripod-Head: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
