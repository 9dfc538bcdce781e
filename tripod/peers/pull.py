"""Pulls: fetches the records of other replicas from a remote, and merges what is new of them.

1. git fetches the refs of records to ``refs/tripod-remotes/<remote>/``; a ref of this replica's own
   is never a destination. Dead here: the next pull, or ``verify``, finds them.
   Records that others pushed into this repository stand among its own refs, and come along.
2. each record is merged by itself (``tripod.peers.merge``): what is wrong with one is told, and the
   others go on.
3. where anything was appended, the ledger is sealed, and its record written to the ref of this
   replica, so that a database that is lost comes back with what the files show of peers. Dead here:
   the next seal or push does it.

A record that was merged already is known by its seal, and nothing else of it is read. The seals of
commits that were read once are noted beside the ledger: where no ref moved, git is not asked for
them again. A note says what a commit holds, never what is merged: that the ledger alone says.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext, suppress
from typing import NamedTuple

import orjson

from tripod.errors import GitError, LedgerError, RefusedError, UnwritableError
from tripod.ledger import root_of
from tripod.ledger.files import read_plain_file, replace_file
from tripod.ledger.locator import APART
from tripod.ledger.tlog.seal import Seal, format_seal, parse_seal
from tripod.peers.remote import (
    TIMEOUT_S,
    FetchedRecords,
    Remote,
    fetch_records,
    find_remote,
    open_repository,
    records_among_branches,
)
from tripod.peers.replica import replica_of
from tripod.peers.roster import Merged, MergeLimits, has_merged, read_roster, ready_team, seen_path
from tripod.team.team import Team
from tripod.verify.anchors.git import Repository
from tripod.verify.peers.refs import OWN, REMOTES, REPLICA, merge_order, record_seal, refs_folder

_NOTED = "pulled-seals.json"
_MAX_NOTED = 32 * 1024 * 1024  # bytes


class PulledRecord(NamedTuple):
    """What became of the record on a ref: the replica that the ref names, and what the merge did.

    ``kinds`` counts the entries that were taken by what they are. It is a stranger's where this
    team needs nothing of it: another team uses the same remote, or pushed into this repository,
    this ledger has peers of its own, and the ref bears the name that the record gives.
    """

    ref: str
    replica: str
    done: Merged
    kinds: dict[str, int] = {}  # noqa: RUF012 - it never changes


class Pulled(NamedTuple):
    """What a pull did; ``strange`` are refs there that are no records, which were left.

    ``asked`` is the checkpoint event that it published over decisions of several replicas, or ''.
    """

    remote: str
    records: list[PulledRecord]
    strange: list[str]
    asked: str = ""


def pull(
    team: Team,
    given: str | None = None,
    *,
    limits: MergeLimits = MergeLimits(),  # noqa: B008 - it never changes
    seconds: float = TIMEOUT_S,
    fetch: bool = True,
    fetched: FetchedRecords | None = None,
    dry_run: bool = False,
) -> Pulled:
    """Fetch the records of a remote, and merge them.

    Args:
        team: the team, in a git repository.
        given: the remote's name, URL or path; ``origin``, or the only one, by default.
        limits: how much is taken of each peer at most.
        seconds: how long the remote may take.
        fetch: whether to fetch; else what was fetched before is merged.
        fetched: the fetch, where ``fetch_ahead`` made it before the team was opened.
        dry_run: only say what would be merged. What is fetched stays out of the repository.

    Raises UnreachableError where the remote gives no answer, GitError where the repository cannot
    be used, NotFoundError or BadArgumentError where there is no such remote, RefusedError where
    nothing can be merged here at all, UnwritableError where the disk refuses.
    """
    team.refresh()  # tables that an older version folded have no peers
    before = team.store.size
    if not dry_run:
        ready_team(team)
    ahead = nullcontext(fetched.repository) if fetched else None
    with ahead or open_repository(team.root, seconds) as repository:
        remote = find_remote(repository, given)
        if dry_run:
            repository.stand_apart(f"{REMOTES}{remote.folder}/")
        front = f"{REMOTES}{remote.folder}/"
        if fetch:
            _fetch(repository, remote, front, seconds, fetched)
        repository.limit(None)
        refs = [ref for ref in sorted(repository.refs.refs) if ref.startswith(front)]
        names = {ref: name for ref in refs if REPLICA.fullmatch(name := ref.removeprefix(front))}
        names |= _pushed_here(team, repository)
        seals = _seals(repository, names, dry_run=dry_run)
        records = [
            _pulled(team, repository, (ref, names[ref]), seal, limits, dry_run=dry_run)
            for ref, seal in sorted(seals.items(), key=lambda one: merge_order(one[1]))
        ]
        # A remote whose name begins with the name of this one, and a slash, has refs of its own.
        strange = [ref for ref in refs if not REPLICA.fullmatch(ref.rpartition("/")[2])]
    is_due = not dry_run and _may_be_due(team, records)
    asked = _ask(team) if is_due else ""
    if team.store.size > before:
        from tripod.trust.seal import keep_merged  # a pull mostly has no use for it

        keep_merged(team)
    return Pulled(remote.name, records, strange, asked)


def _fetch(
    repository: Repository,
    remote: Remote,
    front: str,
    seconds: float,
    fetched: FetchedRecords | None,
) -> None:
    """Fetch, unless that was done (RefusedError: the remote keeps its records elsewhere)."""
    if fetched is None:
        fetch_records(repository, remote)
    elif fetched.problem is not None:
        raise fetched.problem
    if not any(ref.startswith(front) for ref in repository.refs.refs):
        repository.limit(seconds)
        elsewhere = records_among_branches(repository, remote)
        if elsewhere is not None:
            raise RefusedError(elsewhere)


def _pushed_here(team: Team, repository: Repository) -> dict[str, str]:
    """The records of other replicas among this repository's own refs, and whose each is."""
    own = replica_of(team.store)
    fronts = (OWN, refs_folder(repository))
    named = (
        (ref, name)
        for ref in sorted(repository.refs.refs)
        for front in dict.fromkeys(fronts)
        if ref.startswith(front) and REPLICA.fullmatch(name := ref.removeprefix(front))
    )
    return {ref: name for ref, name in named if own is None or name != own[1]}


def _seals(repository: Repository, refs: Iterable[str], *, dry_run: bool) -> dict[str, Seal | None]:
    """The seals of the records on refs, not judged; None where one cannot be read."""
    named = repository.refs.refs
    path = f"{repository.place.common}/{APART}/{_NOTED}"
    seals: dict[str, Seal | None] = {}
    with suppress(OSError, ValueError, TypeError, AttributeError, LedgerError):  # nothing is noted
        noted = orjson.loads(read_plain_file(path, _MAX_NOTED))
        seals = {commit: parse_seal(text) for commit, text in noted.items()}
    new = {named[ref] for ref in refs} - seals.keys()
    seals |= {commit: record_seal(repository, commit) for commit in sorted(new)}
    if not dry_run and any(seals[commit] for commit in new):
        kept = {
            commit: format_seal(seal)
            for commit in set(named.values())
            if (seal := seals.get(commit)) is not None
        }
        with suppress(OSError):
            replace_file(path, orjson.dumps(kept), 0o644)
    return {ref: seals[named[ref]] for ref in refs}


def _may_be_due(team: Team, records: list[PulledRecord]) -> bool:
    """Whether anything was decided since the last pull that took something, here or elsewhere."""
    sql = "SELECT (SELECT max(seq) FROM pieces) > (SELECT max(merged) FROM peers)"
    is_decided = bool(team.store.db.execute(sql).fetchone()[0])
    if is_decided or not any(one.kinds for one in records):
        return is_decided
    from tripod.ledger.kinds.decisions import LOGGED  # seldom anything came

    return any(LOGGED.name in one.kinds for one in records)


def _ask(team: Team) -> str:
    from tripod.pythia.checkpoints import ask_over_team
    from tripod.team.act import settings_of_queue  # seldom needed

    return ask_over_team(team, settings_of_queue(team)["pythia_interval"])


def _pulled(
    team: Team,
    repository: Repository,
    named: tuple[str, str],
    seal: Seal | None,
    limits: MergeLimits,
    *,
    dry_run: bool,
) -> PulledRecord:
    ref, replica = named
    is_here = not ref.startswith(REMOTES)
    if seal is not None and (
        _is_merged(team, replica, seal) or (is_here and _is_behind(team, seal))
    ):
        done = Merged(seal.origin, replica, size=seal.size, sealed=seal.size)
        return PulledRecord(ref, replica, done)
    if seal is not None and (whose := _misnamed(team, replica, seal)) is not None:
        problem = f"the record on this ref is that of {whose}"
        return PulledRecord(ref, replica, Merged(seal.origin, whose, problem=problem))
    commit = repository.tips([ref]).get(ref)
    if not commit:
        problem = f"{ref} leads to no commit, so there is no record on it"
        return PulledRecord(ref, replica, Merged(problem=problem))
    # Dear, and seldom anything is new.
    from tripod.peers.merge import merge_record
    from tripod.verify.export_file import RefFiles

    before = team.store.size
    try:
        files, seen = RefFiles(repository, commit), seen_path(team.root, replica)
        done = merge_record(team, files, limits=limits, dry_run=dry_run, seen=seen)
    except GitError as error:
        return PulledRecord(ref, replica, Merged(problem=str(error)))
    except UnwritableError as error:
        why = str(error).removesuffix("; nothing was recorded")
        merged = team.store.size - before
        raise UnwritableError(
            f"{ref}: {why}; {merged} entries stand, and the next `tripod pull` goes on: make room"
        ) from error
    problem = done.problem  # who is told shows the name already
    for name in (replica, done.origin):
        problem = problem.removeprefix(f"{name}: ")
    if not problem and not done.is_own and done.replica not in ("", replica):
        problem = f"the record on this ref is that of {done.replica}"
    if is_here and seal is None:
        problem += f"; it was pushed into this repository: `git update-ref -d {ref}` removes it"
    kinds = _kinds(team, before) if done.taken and not dry_run else {}
    has_others = is_here or bool(read_roster(team.store))
    is_stranger = done.is_stranger and done.replica == replica and has_others
    done = done._replace(problem=problem, is_stranger=is_stranger)
    return PulledRecord(ref, replica, done, kinds)


def _is_merged(team: Team, replica: str, seal: Seal) -> bool:
    """Whether all entries under a seal are ours, or nothing more is to be taken of their peer."""
    store = team.store
    if seal.origin == store.origin:
        named = replica_of(store)
        is_ours = named is not None and named[1] == replica and seal.size <= store.size
        return is_ours and root_of(store.node, 0, seal.size) == seal.root
    peer = read_roster(store).get(seal.origin)
    if peer is None or peer.state not in ("accepted", "first-use") or peer.replica != replica:
        return False
    return has_merged(team.root, peer, seal)


def _is_behind(team: Team, seal: Seal) -> bool:
    """Whether a record among our own refs is a state of what is here already.

    It is the beginning of our ledger, which had another name then, or an older state of a peer,
    which nobody but that peer can bring up to date. ``verify`` holds both against what is here.
    """
    store = team.store
    peer = read_roster(store).get(seal.origin)
    if peer is not None and seal.size < peer.size:
        return True
    return seal.size <= store.size and root_of(store.node, 0, seal.size) == seal.root


def _misnamed(team: Team, replica: str, seal: Seal) -> str | None:
    """The peer whose merged record bears the name of another replica; None: it has its own.

    Git is not started for it: there may be any number of such refs.
    """
    peer = read_roster(team.store).get(seal.origin)
    if peer is None or peer.replica == replica or not has_merged(team.root, peer, seal):
        return None
    return peer.replica


def _kinds(team: Team, before: int) -> dict[str, int]:
    """How many entries of peers came since, by the kind that they have there."""
    sql = "SELECT kind, count(*) FROM merged WHERE seq >= ? GROUP BY kind ORDER BY min(seq)"
    return dict(team.store.tables.execute(sql, (before,)).fetchall())
