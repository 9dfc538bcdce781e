"""Which refs of a repository hold the records of replicas.

Ours are ``refs/tripod/<replica>``, or below another folder of refs where the repository's
``tripod.refs`` names one, for hosts that refuse refs outside of branches. Fetched ones are
``refs/tripod-remotes/<remote>/<replica>``. The ref of a team's seals (``tripod anchor git``) lies
in the same folder and is no record.

The files of a record are read by ``tripod.verify.export_file``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from tripod.ledger import SEAL, GitError, LedgerError
from tripod.ledger.locator import (
    FOLDER,
    database_apart,
    database_of,
    repository_setting,
    team_of,
    work_tree_around,
)
from tripod.ledger.tlog.note import Note, parse_note
from tripod.ledger.tlog.seal import Seal, parse_seal
from tripod.verify.anchors.git import Repository
from tripod.verify.anchors.git_folder import find, read_git_refs

OWN = "refs/tripod/"
REMOTES = "refs/tripod-remotes/"
REPLICA = re.compile(r"[A-Za-z0-9_-]{1,111}-[0-9a-f]{16}")
_SETTING = "tripod.refs"
_FOLDER = re.compile(r"refs/(?!tripod-remotes/)[A-Za-z0-9_-]+/([A-Za-z0-9._-]+/)*")


class ReplicaRef(NamedTuple):
    """A ref by its full name, the replica that it names, and its commit, '' if it has none.

    ``remote`` is where it was fetched from, None for one of this repository.
    """

    ref: str
    replica: str
    commit: str
    remote: str | None = None


def refs_folder(repository: Repository) -> str:
    """The folder of refs for this repository's own replica, with its slash."""
    return _folder("".join(repository.settings.get(_SETTING, ())[-1:]))


def _folder(named: str | None) -> str:
    folder = f"{(named or '').removesuffix('/')}/"
    return folder if _FOLDER.fullmatch(folder) else OWN


def own_ref(repository: Repository, replica: str) -> str:
    """The full name of the ref for the record of this repository's own replica."""
    return refs_folder(repository) + replica


def replica_refs(repository: Repository) -> list[ReplicaRef]:
    """Every ref that has the name of a replica's record, by name."""
    named: dict[str, tuple[str, str | None]] = {}
    folders = dict.fromkeys((OWN, refs_folder(repository)))
    for ref in sorted(repository.refs.refs):
        remote = None
        name = next((ref.removeprefix(one) for one in folders if ref.startswith(one)), "")
        if ref.startswith(REMOTES):
            remote, _, name = ref.removeprefix(REMOTES).rpartition("/")
        if REPLICA.fullmatch(name):
            named[ref] = name, remote
    tips = repository.tips(named)
    return [
        ReplicaRef(ref, name, tips.get(ref, ""), remote) for ref, (name, remote) in named.items()
    ]


def named_replicas(path: str) -> list[str]:
    """The refs with a replica's name in the repository around a path.

    Git is run only where the repository's configuration has a word of ours.
    """
    try:
        place = find(path)
        refs = () if place is None else read_git_refs(place).refs
    except (GitError, OSError):
        return []
    named = None if place is None else repository_setting(place.common, _SETTING)
    fronts = (OWN, REMOTES, _folder(named))
    return [
        ref
        for ref in sorted(refs)
        if ref.startswith(fronts) and REPLICA.fullmatch(ref.rpartition("/")[2])
    ]


def strange_refs(repository: Repository, known: list[ReplicaRef]) -> list[str]:
    """Refs among the fetched records that name no replica, by name."""
    names = {one.ref for one in known}
    refs = sorted(repository.refs.refs)
    return [ref for ref in refs if ref.startswith(REMOTES) and ref not in names]


def merge_order(seal: Seal | None) -> str:
    """What records are sorted by before they are merged: a line before the copies that left it.

    What both have is then its own, and not a copy's. The name of a copy begins with that of the
    line which it left, unless a person chose another.
    """
    return "" if seal is None else seal.origin


def record_note(repository: Repository, commit: str) -> Note | None:
    """The note of the seal of the record in an object's tree; None where it cannot be read."""
    with suppress(GitError, LedgerError):
        data = repository.file_at(commit, SEAL) if commit else None
        note = None if data is None else parse_note(data)
        return note if note is not None and parse_seal(note.text) else None
    return None


def record_seal(repository: Repository, commit: str) -> Seal | None:
    """The seal of the record in the tree of an object, not judged; None where it cannot be read."""
    note = record_note(repository, commit)
    return None if note is None else parse_seal(note.text)


def longest_records(
    repository: Repository, refs: Iterable[ReplicaRef]
) -> list[tuple[ReplicaRef, Seal | None]]:
    """Of each replica the ref whose record is the longest, with its seal, by name of the replica.

    Of several the one in this repository comes first. The others are held against it.
    """
    best: dict[str, tuple[tuple[int, bool], ReplicaRef, Seal | None]] = {}
    for one in refs:
        seal = record_seal(repository, one.commit)
        rank = (-1 if seal is None else seal.size, one.remote is None)
        if one.replica not in best or rank > best[one.replica][0]:
            best[one.replica] = (rank, one, seal)
    return [best[name][1:] for name in sorted(best)]


def team_judged_by_refs(path: str) -> str | None:
    """The team directory of a clone whose own directory has no ledger; None: it has one.

    The directory need not be there. What lies in the work tree may have come with the work: a
    ledger or a record there is judged beside the refs, and takes no place of theirs. That there are
    refs with records is not asked.
    """
    tree = work_tree_around(os.path.abspath(path))
    if tree is None:
        return None
    top, given = tree.home or tree.top, team_of(os.path.abspath(path))
    root = f"{top}/{FOLDER}"
    # A project may have a folder `chat` or `events` of its own at its top.
    if given is not None and os.path.realpath(given) not in map(os.path.realpath, (root, top)):
        return None
    return None if os.path.lexists(database_apart(root) or database_of(root)) else root
