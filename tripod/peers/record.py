"""Keeps this replica's record on a git ref.

A ref is a chain of commits, each tree the record under a seal. No branch, index or work tree is
touched, and nothing that the repository's configuration names is run. The order of durability, and
what it means if we die between two steps:

1. git writes blobs, trees and the commit. Dead here: objects that no ref names; ``git gc`` removes
   them.
2. the ref moves from the commit before to the new one, if it still stands there. From here the
   record is the larger one.
3. a small file beside the ledger notes the size. Dead here: the next seal looks at the ref again.

After a redaction the chain begins anew, with a commit without parents: what was erased is in no
commit that the ref leads to, and ``git gc`` removes it.

The ref is written where it is asked for, else at the first seal after 1,000 entries or ten minutes,
so that an act waits for git seldom. Its format is ``docs/formats/record.md``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from tempfile import TemporaryFile
from typing import IO

from tripod.errors import MalformedError, RefusedError
from tripod.ledger import REDACTED, parse_entry_time, root_of
from tripod.ledger.files import hold_file_lock, replace_file
from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.reader import SQLiteReader, read_block_nodes, read_only
from tripod.ledger.tlog.seal import Seal, read_seal
from tripod.ledger.tlog.tiles import BLOBS, SEAL
from tripod.peers.replica import tree_of_team, written_path
from tripod.trust.export import nodes_to_export, stage_export
from tripod.verify.anchors.git import Repository
from tripod.verify.export_file import FileError, RefFiles
from tripod.verify.peers.refs import OWN, own_ref

GIT_S = 30  # seconds that an act waits for git

_PERSON = b"tripod <record@tripod.invalid>"
_NEW = "refs/new"  # in the git directory of ours


def keep_record(root: str, replica: str, note: str) -> str:
    """Bring the record on this replica's ref up to the seal in ``note``; give the ref's name.

    Raises GitError, RefusedError, LedgerDamagedError or OSError where it cannot be written; the
    next seal tries again.
    """
    tree = tree_of_team(root)
    if tree is None:
        raise RefusedError(f"{root}: there is no git repository around it for a ref")
    noted = written_path(tree, replica)
    os.makedirs(os.path.dirname(noted), exist_ok=True)
    with hold_file_lock(f"{noted}.lock"):
        began, written = time.monotonic(), b"%d\n" % read_seal(note.encode()).size
        try:
            with Repository(f"{tree.top}/{replica}", GIT_S) as repository:
                ref = own_ref(repository, replica)
                write_record_ref(repository, ref, database_of(root), note)
                if ref != OWN + replica:
                    _leave_former(repository, OWN + replica, database_of(root), note)
        except BaseException:
            # A git that is slow is not waited for at each seal; one that refuses is asked again.
            is_slow = time.monotonic() - began > GIT_S / 2
            with suppress(OSError):
                replace_file(noted, written, 0o644) if is_slow else os.unlink(noted)
            raise
        replace_file(noted, written, 0o644)
    return ref


def _leave_former(repository: Repository, ref: str, database: str, note: str) -> None:
    """Remove the ref that was written before ``tripod.refs`` named another folder.

    A redaction would not reach it. One that holds something else is left.
    """
    tip = repository.tip(ref)
    if tip is not None:
        with closing(read_only(database)) as db, suppress(RefusedError):
            seal, ledger = read_seal(note.encode()), SQLiteReader(db)
            _sealed_size(ref, RefFiles(repository, tip), seal, ledger)
            repository.lend_refs()
            repository.ask("update-ref", "--no-deref", "-d", ref, tip)


class _Stream:
    """What git is told to write: the files that are new or other than in the commit before."""

    def __init__(self, stream: IO[bytes], old: RefFiles | None) -> None:
        self._stream, self._old = stream, old
        self.present = set() if old is None else set(old.files)

    def put(self, path: str, data: bytes) -> None:
        """Have a file written, unless the commit before has it with these bytes."""
        old = None if self._old is None else self._old.files.get(path)
        if old is not None and old.size == len(data) and self._old is not None:
            try:
                if self._old.read(path, old.size) == data:
                    return
            except FileError:
                pass  # it is written anew
        self._stream.write(b"M 100644 inline %b\ndata %d\n" % (path.encode(), len(data)))
        self._stream.write(data + b"\n")

    def drop(self, path: str) -> None:
        """Have a file left out that the commit before has."""
        self._stream.write(b"D %b\n" % path.encode("utf-8", "surrogateescape"))


def write_record_ref(repository: Repository, ref: str, database: str, note: str) -> str:
    """Make ``ref`` the record of the ledger under the seal in ``note``; give the ref's commit.

    Only what is new is written. The database is read as of one moment.

    Raises RefusedError where the ref holds something else or a longer record, or was moved
    meanwhile; GitError where git refuses; LedgerDamagedError where the ledger is not what its tree
    or a commitment says.
    """
    seal = read_seal(note.encode())
    with closing(read_only(database)) as db, TemporaryFile() as stream:
        db.execute("BEGIN")
        ledger = SQLiteReader(db)
        nodes_to_export(ledger, seal)
        tip = repository.tip(ref)
        old = None if tip is None else RefFiles(repository, tip)
        since = 0 if old is None else _sealed_size(ref, old, seal, ledger)
        if any(ledger.raw(since, kinds=(REDACTED,), limit=1)):
            old, since = None, 0
        elif old is not None and since >= seal.size:
            return old.directory
        at = ledger.entry(seal.size - 1)
        seconds = 0 if at is None else parse_entry_time(at.at) // 1_000_000
        stream.write(b"commit %b\nmark :1\n" % _NEW.encode())
        stream.write(b"committer %b %d +0000\n" % (_PERSON, seconds))
        message = f"Record of {seal.size} entries of {seal.origin}\n".encode()
        stream.write(b"data %d\n%b\n" % (len(message), message))
        if old is not None and tip is not None:
            stream.write(b"from %b\n" % tip.encode())
        staged = _Stream(stream, old)
        wanted = stage_export(ledger, seal.size, since, staged, bodies=True)
        staged.put(SEAL, note.encode())
        for path in _replaced(staged.present, wanted):
            staged.drop(path)
        stream.write(b"\nget-mark :1\ndone\n")
        commit = repository.ask("fast-import", "--quiet", "--done", given=stream).decode().strip()
    repository.lend_refs()
    repository.ask("update-ref", "--no-deref", ref, commit, tip or "0" * len(commit))
    return commit


def _replaced(present: set[str], wanted: set[str]) -> Iterator[str]:
    """What larger files replaced; blobs stay as long as a redaction does not take them."""
    for path in sorted(present - wanted - {SEAL}):
        if not path.startswith(f"{BLOBS}/"):
            yield path


def _sealed_size(ref: str, old: RefFiles, seal: Seal, ledger: SQLiteReader) -> int:
    """How many entries the ref's record holds (RefusedError: it is not the beginning of ours)."""
    try:
        before = read_seal(old.seal_note())
    except (MalformedError, FileError) as error:
        raise RefusedError(
            f"{ref} holds no record of ours ({error}): nothing was written. {_free(ref)}"
        ) from error
    if before.origin != seal.origin:
        what = f"{ref} holds the record of {before.origin!r}, not of {seal.origin!r}"
        raise RefusedError(f"{what}: nothing was written. {_free(ref)}")
    if before.size > ledger.size:
        what = (
            f"{ref} holds {before.size} entries, and the ledger {ledger.size}: an older ledger was "
            "put back, or a copy of this one went on (`tripod restore` takes the longest record)"
        )
    elif root_of(read_block_nodes(ledger.db), 0, before.size) != before.root:
        what = (
            f"{ref} holds another history: at {before.size} entries it has another root. In one of "
            "two copies `tripod restore --as-copy` goes on under a name of its own"
        )
    else:
        return before.size
    raise RefusedError(f"{what}; nothing was written")


def _free(ref: str) -> str:
    """What to do where somebody put something else on our ref: our record is in the ledger."""
    return f"Another program put that there: `git update-ref -d {ref}` takes it away"
