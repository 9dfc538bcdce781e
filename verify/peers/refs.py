"""Which refs of a repository hold the records of replicas: our own, and those that were fetched.

Ours are ``refs/tripod/<replica>``, or below another folder of refs where the repository's
``tripod.refs`` names one, for hosts that refuse refs outside of branches. Fetched ones are
``refs/tripod-remotes/<remote>/<replica>``. The ref of a team's seals (``tripod anchor git``) lies
in the same folder and is no record.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tripod.verify.anchors.git import Repository

OWN = "refs/tripod/"
REMOTES = "refs/tripod-remotes/"
REPLICA = re.compile(r"[A-Za-z0-9_-]{1,111}-[0-9a-f]{16}")
_FOLDER = re.compile(r"refs/(?!tripod-remotes/)[A-Za-z0-9_-]+/([A-Za-z0-9._-]+/)*")


class ReplicaRef(NamedTuple):
    """A ref by its full name, the replica that it names, and its commit.

    ``remote`` is where it was fetched from, None for one of this repository.
    """

    ref: str
    replica: str
    commit: str
    remote: str | None = None


def refs_folder(repository: Repository) -> str:
    """The folder of refs for this repository's own replica, with its slash."""
    named = "".join(repository.settings.get("tripod.refs", ())[-1:])
    return named if _FOLDER.fullmatch(named) else OWN


def own_ref(repository: Repository, replica: str) -> str:
    """The full name of the ref for the record of this repository's own replica."""
    return refs_folder(repository) + replica


def replica_refs(repository: Repository) -> list[ReplicaRef]:
    """Every ref that has the name of a replica's record and leads to a commit, by name."""
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
    return [ReplicaRef(ref, named[ref][0], tip, named[ref][1]) for ref, tip in tips.items()]


def strange_refs(repository: Repository, known: list[ReplicaRef]) -> list[str]:
    """Refs among the fetched records that name no replica, by name."""
    names = {one.ref for one in known}
    refs = sorted(repository.refs.refs)
    return [ref for ref in refs if ref.startswith(REMOTES) and ref not in names]
