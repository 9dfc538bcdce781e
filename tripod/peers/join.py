"""Joins a team: in a clone whose git refs hold records of replicas, ``init`` begins one more.

Nobody goes on with another's ledger. The new replica has an origin and a key of its own, bears the
team id of its peers, and merges what they recorded.

A clone may hold files of the team, which an earlier version committed, or which a lost ledger
left. What a peer's record explains of them is not taken in as observed: it comes by the merge. The
order, and what it means if we die between two steps:

1. such files are moved aside, beside where the ledger is to be. Dead here: the next ``init`` goes
   on, and what lies aside is looked at in its step 4.
2. the ledger is begun: it takes in what is left of the files, and names itself.
3. peers are merged. Dead here: the next ``init`` or ``pull`` goes on.
4. what was put aside is removed, once all peers are merged. Until then it is kept, and named.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from tripod.errors import (
    BadArgumentError,
    GitError,
    LedgerError,
    MalformedError,
    NotFoundError,
    RefusedError,
    TripodError,
    UnwritableError,
)
from tripod.ledger import CHAT, EVENTS, LOGS, SEAL, WORKERS, Draft, parse_header
from tripod.ledger.files import read_plain_file
from tripod.ledger.kinds.peers import PEER_ENTRY, TEAM_NAMED
from tripod.ledger.locator import database_of
from tripod.ledger.sqlite.reader import SQLiteReader
from tripod.ledger.tlog.note import MAX_NOTE
from tripod.ledger.tlog.seal import open_seal, read_seal
from tripod.peers.merge import fetched_teams, merge_record, shown_teams
from tripod.peers.remote import (
    TIMEOUT_S,
    fetch_records,
    find_remote,
    open_repository,
    records_among_branches,
)
from tripod.peers.replica import name_team, replica_name, replica_of
from tripod.peers.roster import Merged, Peer, missing_peers, read_roster
from tripod.projections import (
    COUNTS,
    Disk,
    Source,
    desired_file,
    fold_batches,
    fold_into,
    source_of,
)
from tripod.projections.erasure import unrecorded_part
from tripod.projections.text import text_line_problem, text_word_problem
from tripod.team import adoption
from tripod.team.adoption import Adoption
from tripod.team.team import Team
from tripod.trust.keys import key_path, sealing_key
from tripod.trust.seal import keep_merged
from tripod.verify.anchors.git import Repository
from tripod.verify.checks import record_agrees
from tripod.verify.export import FileError, load_export
from tripod.verify.export_file import RefFiles
from tripod.verify.peers.refs import (
    ReplicaRef,
    longest_records,
    merge_order,
    record_seal,
    replica_refs,
)
from tripod.verify.peers.seals import RecordProblemError, SealedRecord, sealed_identity

ASIDE = "joining"
"""The folder beside the ledger in which files wait until the merge explains them."""

_FOLDERS = (LOGS, CHAT, EVENTS, f"{EVENTS}/processed", WORKERS)
_MAX_FILE = 2**28
_MISREAD = (LedgerError, TripodError, sqlite3.Error, LookupError, TypeError, ValueError)


class JoinedTeam(NamedTuple):
    """What joining did: what was adopted, the team's id, and what was merged of each peer."""

    adopted: Adoption
    team: str
    merged: tuple[Merged, ...]


class _Neighbour(NamedTuple):
    """A replica whose record stands on a ref: whose it is, and its tables, folded."""

    ref: ReplicaRef
    team: str
    source: Source


def fetch_records_to_join(root: str, given: str, *, seconds: float = TIMEOUT_S) -> None:
    """Fetch the records of a remote for a team directory ``root`` that is to be begun.

    ``seconds`` is how long the remote may take. Raises NotFoundError where it holds none, and what
    ``find_remote`` and ``fetch_records`` raise.
    """
    with open_repository(root, seconds) as repository:
        remote = find_remote(repository, given)
        fetch_records(repository, remote, then="tripod init")
        if not any(one.remote == remote.folder for one in replica_refs(repository)):
            elsewhere = records_among_branches(repository, remote)
            none = f"{remote.name} holds no record of a team: `tripod init` begins one"
            raise NotFoundError(elsewhere or none)


def join_team(
    path: str,
    handle: str,
    names: Mapping[str, str | None] = MappingProxyType({}),
    folders: Mapping[str, str | None] = MappingProxyType({}),
    chosen: str | None = None,
) -> JoinedTeam:
    """Begin a replica of the team whose records the repository around ``path`` holds.

    ``handle`` is who begins it; ``names`` and ``folders`` are as in ``adoption.begin_replica``.
    Project and scribe are the peers' by default. ``chosen`` is the beginning of the team's id.

    Raises RefusedError where the records are of several teams and none or several are chosen, or
    one is of this repository's own replica, whose key is here: that is restored. What
    ``adoption.begin_replica`` raises.
    """
    root = adoption.team_to_adopt(path)
    with (
        _room(),
        Repository(root) as repository,
        TemporaryDirectory(prefix="tripod-join-") as folder,
    ):
        _refuse_own(repository)
        refs, unread = _longest(repository)
        with _neighbours(repository, refs, folder) as (neighbours, problems):
            problems.extend(unread)
            teams: dict[str, list[str]] = {}
            for one in neighbours:
                teams.setdefault(one.team, []).append(one.ref.ref)
            if not teams:
                raise RefusedError(
                    f"no record here can be read: {'; '.join(problems)}. `tripod init --new` "
                    "begins a team of its own"
                )
            team = _one_team(teams, chosen)
            sources = [one.source for one in neighbours if one.team == team]
            said = sources[0].db.execute("SELECT project, scribe FROM team").fetchone()
            _put_aside(root, sources)
            strange = {ref for name in teams.keys() - {team} for ref in teams[name]}
            refs = [ref for ref in refs if ref.ref not in strange]
        given = {name: text for name, text in names.items() if text is not None}
        adopted = adoption.begin_replica(
            path,
            {**_plain_names(*said), **given},
            folders,
            key=True,
            named=lambda vkey: [_named(team, handle, vkey)],
        )
        with Team(adopted.root) as ledger:
            merged = [merge_record(ledger, RefFiles(repository, ref.commit)) for ref in refs]
            keep_merged(ledger)
            problems += [one.problem for one in merged if one.problem]
            at_hand = [ref.replica for ref in refs]
            problems += [one.problem for one in missing_peers(ledger, at_hand)]
            ledger.warnings += [*problems, *settle_aside(ledger)]
            adopted.warnings.extend(ledger.warnings)
    return JoinedTeam(adopted, team, tuple(merged))


def move_to_team(
    root: str, given: str, chosen: str | None = None, *, seconds: float = TIMEOUT_S
) -> tuple[str, list[Merged]]:
    """Have the ledger of ``root``, which was begun apart, go on as a replica of a remote's team.

    Somebody ran ``tripod init`` before the team's records were fetched. No entry of it was merged
    anywhere, so all of them become the team's. ``chosen`` is the beginning of the team's id,
    ``seconds`` how long the remote may take. Gives the whole id, and what was merged.

    Raises RefusedError where the ledger merged peers of its own team, or the remote has records of
    several others and none is chosen; BadArgumentError where there is no other team to join; and
    what ``find_remote`` and ``fetch_records`` raise.
    """
    with open_repository(root, seconds) as repository, Team(root) as team:
        remote = find_remote(repository, given)
        fetch_records(repository, remote, then="tripod pull")
        own, replica = name_team(team)
        teams = fetched_teams(repository, remote.folder, team.store.origin)
        if own in teams or not teams:
            raise BadArgumentError(
                "--from: there is a ledger already; `tripod pull` merges others'"
            )
        if read_roster(team.store):
            raise RefusedError(
                f"this ledger is of the team {own}, and has merged peers; the records of "
                f"{remote.name} are of {shown_teams(teams)}"
            )
        other = _one_team(teams, chosen)
        vkey = sealing_key(team.store) or ""
        named = _named(other, replica.rpartition("-")[0], vkey)
        # The name may be that of before: the id is another.
        team.append_apart(
            lambda: [named._replace(id=f"{named.id}.{sha256(other.encode()).hexdigest()}")]
        )
        refs, _ = _longest(repository)
        merged = [merge_record(team, RefFiles(repository, ref.commit)) for ref in refs]
        keep_merged(team)
        return other, [one for one in merged if not (one.is_own or one.is_stranger)]


@contextmanager
def _room() -> Iterator[None]:
    """Say what to do where the disk refuses a file that is needed meanwhile."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(
            f"{error.filename or 'the disk'}: {error.strerror or error}; make room, then `tripod "
            "init` goes on"
        ) from error


def _plain_names(project: str, scribe: str) -> dict[str, str]:
    """The names that a peer gives, as far as they may stand here."""
    found = {}
    if text_line_problem(project, "project", 200) is None:
        found["project"] = project
    if text_word_problem(scribe, "scribe", 63, "[|:,()=/") is None:
        found["scribe"] = scribe
    return found


def _named(team: str, handle: str, vkey: str) -> Draft:
    return TEAM_NAMED.draft({"team": team, "replica": replica_name(handle, vkey)})


def _refuse_own(repository: Repository) -> None:
    """Refuse where the record of this repository's own replica is to be restored."""
    for ref in replica_refs(repository):
        seal = record_seal(repository, ref.commit) if ref.remote is None else None
        if seal is not None and os.path.exists(key_path(seal.origin)):
            raise RefusedError(
                f"{ref.ref} holds the record of this repository's own replica, and its key is "
                "here: `tripod restore` brings the ledger back"
            )


def _longest(repository: Repository) -> tuple[list[ReplicaRef], list[str]]:
    """Of each replica the ref with the longest record, in the order in which they are merged.

    And why others cannot be read.
    """
    found = longest_records(repository, replica_refs(repository))
    problems = []
    for ref, seal in found:
        if seal is None:
            try:
                read_seal(RefFiles(repository, ref.commit).read(SEAL, MAX_NOTE))
            except (FileError, MalformedError, GitError) as error:
                problems.append(f"{ref.ref}: {error}; nothing of it is taken")
    ordered = sorted(found, key=lambda one: merge_order(one[1]))
    return [ref for ref, seal in ordered if seal is not None], problems


@contextmanager
def _neighbours(
    repository: Repository, refs: Sequence[ReplicaRef], folder: str
) -> Iterator[tuple[list[_Neighbour], list[str]]]:
    """The replicas whose records can be read, and why others cannot."""
    found: list[_Neighbour] = []
    problems: list[str] = []
    databases = []
    seals = [record_seal(repository, ref.commit) for ref in refs]
    origins = {seal.origin for seal in seals if seal is not None}
    try:
        for number, ref in enumerate(refs):
            name, path = ref.replica, f"{folder}/{number}.db"
            try:
                loaded = load_export(RefFiles(repository, ref.commit), path)
                db = sqlite3.connect(path, isolation_level=None)
                databases.append(db)
                ledger = SQLiteReader(db)
                failed = [
                    one for one in loaded.tally.of(record_agrees.NAME) if one.severity == "failure"
                ]
                named = replica_of(ledger)
                if failed or named is None or named[1] != name:
                    why = failed[0].message if failed else f"it does not name the replica {name}"
                    problems.append(f"{ref.ref}: {why}; nothing of it is taken")
                    continue
                # What a third replica recorded comes by that one's own record, if it is here.
                own = (
                    entry
                    for entry in ledger.read()
                    if entry.kind != PEER_ENTRY.name or entry.data.get("origin") in origins
                )
                for batch in fold_batches(own, 1000):
                    fold_into(db, batch, ledger.blob)
                found.append(_Neighbour(ref, named[0], source_of(ledger)))
            except (OSError, sqlite3.OperationalError) as error:
                raise UnwritableError(
                    f"{path}: no room for the record of {name} ({error}), so nothing was begun: "
                    "make room there (TMPDIR names another folder), then `tripod init`"
                ) from error
            except _MISREAD as error:
                problems.append(f"{ref.ref}: {error}; nothing of it is taken")
        yield found, problems
    finally:
        for db in databases:
            db.close()


def _one_team(teams: Mapping[str, Sequence[str]], chosen: str | None) -> str:
    """The team to join, of those that have refs here (RefusedError: none, or several)."""
    found = [team for team in sorted(teams) if team.startswith(chosen or "")]
    if len(found) == 1:
        return found[0]
    raise RefusedError(
        f"the records here are of {shown_teams(teams)}: `tripod init --team-id ID` joins the one "
        "whose id begins so; `tripod init --new` begins a team of its own"
    )


def waiting_peers(root: str, known: Collection[str], team: str = "") -> dict[str, Peer]:
    """Replicas that git holds a record of and that are not among the ``known`` origins.

    ``team`` leaves out those of another team.

    The newest record of each that can be read says who it is, also where it stands on the ref of
    another replica: a person accepts a name with its key. Nothing is merged.
    """
    found: dict[str, Peer] = {}
    with suppress(GitError), Repository(root) as repository:
        for ref in replica_refs(repository):
            with suppress(FileError, MalformedError, RecordProblemError, GitError):
                files = RefFiles(repository, ref.commit)
                note = files.seal_note()
                seal = read_seal(note)
                if seal.origin in known:
                    continue
                who = sealed_identity(SealedRecord(files, seal), None)
                is_other = team not in ("", who.team)
                if who.key is not None and who.names_itself() and not is_other:
                    open_seal(note, [who.key])
                    size = max(seal.size, found.get(seal.origin, Peer("")).size)
                    found[seal.origin] = Peer(seal.origin, who.replica, who.key.format(), size=size)
    return found


# Files that a record explains ------------------------------------------------------------------


def _put_aside(root: str, sources: Sequence[Source]) -> None:
    """Move what peers' records explain of the team's files aside; what they do not, stays."""
    if not os.path.isdir(root):
        return
    aside = _aside(root)
    disk = Disk(root)
    for path in [COUNTS.path, *(f"{at}/{name}" for at in _FOLDERS for name in disk.names(at))]:
        full = f"{root}/{path}"
        if not disk.is_file(path):
            continue
        data = read_plain_file(full, _MAX_FILE)
        left: bytes | None = data
        for source in sources:
            with suppress(*_MISREAD):  # what a peer's entries do not show, they do not explain
                shown = desired_file(source, path) if left is not None else None
                if left is not None:
                    held = b"" if shown is None else shown.data
                    left = unrecorded_part(source, path, left, held)
        if path == COUNTS.path:
            left = None  # it is written anew
        if left == data:
            continue
        os.makedirs(os.path.dirname(f"{aside}/{path}"), exist_ok=True)
        if left is None:
            shutil.move(full, f"{aside}/{path}")
        else:
            shutil.copy2(full, f"{aside}/{path}")
            with open(full, "wb") as file:
                file.write(left)


def go_on_joining(root: str) -> list[Merged]:
    """Merge what git holds of peers, in a ledger that joined its team: it may have been stopped."""
    with Repository(root) as repository, Team(root) as team:
        named = replica_of(team.store)
        if named is None or named[0] == parse_header(team.store.header(0) or b"").ledger:
            return []
        refs, _ = _longest(repository)
        merged = [merge_record(team, RefFiles(repository, ref.commit)) for ref in refs]
        if any(one.taken for one in merged):
            keep_merged(team)
        return [one for one in merged if not (one.is_own or one.is_stranger)]


def settle_aside(team: Team) -> list[str]:
    """Remove what a join put aside, once all records here are merged; say so where they are not."""
    aside = _aside(team.root)
    if not os.path.isdir(aside):
        return []
    known, own = read_roster(team.store), replica_of(team.store) or ("",)
    waits = [
        peer.name
        for peer in waiting_peers(team.root, {team.store.origin}, own[0]).values()
        if known.get(peer.origin, Peer(peer.origin)).size < peer.size
    ]
    if not waits:
        shutil.rmtree(aside)
        return []
    what = f"{aside} holds files that the records of {', '.join(waits)} explain"
    return [f"{what}, and not all is merged: `tripod pull`, then `tripod init` removes it"]


def _aside(root: str) -> str:
    return os.path.join(os.path.dirname(database_of(root)), ASIDE)
