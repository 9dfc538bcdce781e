"""Pushes: gives this replica's record to a remote, and those of peers that were merged.

1. the ledger is sealed, and the record under the seal is written to this replica's ref.
2. git moves the remote's refs, forward only: who pushed meanwhile is not undone. Where the remote
   holds an earlier state of this record on another chain of commits (a redaction began it anew),
   it is replaced, if it still is that state when it is replaced.
3. what the remote holds now is noted below ``refs/tripod-remotes/``.

Where the remote holds more of this replica than the ledger, or another history, nothing is pushed:
an older ledger was put back, or a copy of this disk goes on elsewhere.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tripod.errors import GitError, RefusedError, UnreachableError
from tripod.ledger.tlog.seal import read_seal
from tripod.peers.merge import fetched_teams, merge_record, shown_teams
from tripod.peers.record import keep_record
from tripod.peers.remote import (
    PUSH,
    TIMEOUT_S,
    Remote,
    ask_remote,
    fetch_records,
    find_remote,
    open_repository,
)
from tripod.peers.replica import replica_of
from tripod.peers.roster import has_merged, read_roster, ready_team
from tripod.team.team import Team
from tripod.trust.keys import LockedKeyError, passphrase_from_file
from tripod.trust.seal import newest, seal_now
from tripod.verify.anchors.git import Repository
from tripod.verify.export_file import RefFiles
from tripod.verify.peers.refs import (
    REMOTES,
    REPLICA,
    own_ref,
    record_seal,
    refs_folder,
    replica_refs,
)

_LINE = re.compile(rb"([ +*=!-])\t[^:\t]*:([^\t]+)\t(.*)")
_BEHIND = ("fetch first", "non-fast-forward", "stale info")
_THERE = "the remote has a record there"


class PushedRecord(NamedTuple):
    """A record that the remote was given: its ref there, the replica, entries, and those new there.

    ``before`` is how many the remote held, as far as that is known; ``problem`` says why it did not
    take the ref.
    """

    ref: str
    replica: str
    size: int
    before: int
    problem: str = ""


class Pushed(NamedTuple):
    """What a push did: our own record first, then those of peers that were passed on."""

    remote: str
    records: list[PushedRecord]


class _Offer(NamedTuple):
    """A commit for a ref of the remote; ``lost``: only where the remote has that ref no more."""

    replica: str
    commit: str
    size: int
    before: int
    lost: bool = False


def push(
    team: Team, given: str | None = None, *, seconds: float = TIMEOUT_S, dry_run: bool = False
) -> Pushed:
    """Seal, and give this replica's record and those of merged peers to a remote.

    Args:
        team: the team, in a git repository.
        given: the remote's name, URL or path; ``origin``, or the only one, by default.
        seconds: how long the remote may take.
        dry_run: seal and push nothing; say what would be pushed.

    Raises RefusedError where the private key is not here, the remote holds another history of this
    replica, does not take its ref or holds another team alone, UnreachableError where it gives no
    answer, GitError where the repository cannot be used, NotFoundError or BadArgumentError where
    there is no such remote.
    """
    team.refresh()  # what other programs wrote is given too; an older version folded its tables
    known = replica_of(team.store)
    if dry_run and known is None:
        raise RefusedError("this ledger has no name as a replica yet: `tripod push` gives it one")
    replica = (known or ready_team(team))[1]
    with open_repository(team.root, seconds) as repository:
        remote = find_remote(repository, given)
        if not dry_run:
            _keep(team, repository, replica)
        _refuse_strangers(team, repository, remote, seconds)
        own = _own_offer(team, repository, remote, replica, sealed=not dry_run)
        offers = [own, *_relays(team, repository, remote)]
        if dry_run:
            folder = refs_folder(repository)
            planned = [
                PushedRecord(folder + o.replica, o.replica, o.size, o.before)
                for o in offers
                if not o.lost
            ]
            return Pushed(remote.name, planned)
        done = _push(repository, remote, offers)
        if any(word in done[0].problem for word in _BEHIND):
            done[0] = _replace(team, repository, remote, offers[0])
        for offer, one in zip(offers, done, strict=True):
            if not one.problem:
                name = f"{REMOTES}{remote.folder}/{offer.replica}"
                repository.ask("update-ref", "--no-deref", name, offer.commit)
    if done[0].problem:
        raise RefusedError(_refusal(remote, done[0]))
    taken = [one for one in done[1:] if one.problem != _THERE]
    return Pushed(remote.name, [done[0], *(_left(remote, one) for one in taken)])


def _refuse_strangers(team: Team, repository: Repository, remote: Remote, seconds: float) -> None:
    """Refuse a first push to a remote that holds records of other teams, and none of this one.

    ``tripod init`` before the records of the team were fetched begins such a ledger.
    """
    own, replica = replica_of(team.store) or ("", "")
    ours = {replica, *(peer.replica for peer in read_roster(team.store).values())}
    front, folder = f"{REMOTES}{remote.folder}/", refs_folder(repository)
    if any(f"{front}{name}" in repository.refs.refs for name in ours):
        return
    try:
        said = ask_remote(repository, remote, "ls-remote", "--refs", remote.address, f"{folder}*")
        refs = [line.partition("\t")[2] for line in said.decode("utf-8", "replace").splitlines()]
        names = {name for ref in refs if REPLICA.fullmatch(name := ref.removeprefix(folder))}
        if not names or names & ours:
            return
        with open_repository(team.root, seconds) as apart:  # nothing of them stays in this clone
            apart.stand_apart(front)
            fetch_records(apart, remote._replace(source=remote.address))
            teams = fetched_teams(apart, remote.folder, team.store.origin)
    except GitError as error:
        raise _no_answer(error, remote, folder + replica) from error
    if teams and own not in teams:
        raise RefusedError(
            f"{remote.name} holds records of {shown_teams(teams)}, and none of this team, {own}: "
            f"nothing was pushed. `tripod init --from {remote.name}` takes this ledger into that "
            "team, with all that it holds, if it merged no peer; `tripod push REMOTE` gives it to "
            "another remote. Where both are to share one, git itself pushes: "
            f"`git push {remote.name} {folder}{replica}`"
        )


def _keep(team: Team, repository: Repository, replica: str) -> None:
    """Seal what is not sealed yet, and see that the replica's ref has it."""
    try:
        seal_now(team, passphrase_from_file)
    except LockedKeyError as error:
        team.warnings.append(f"not sealed anew, the newest seal is pushed: {error}")
    made = newest(team.store.db)
    if made is None:
        raise RefusedError("nothing is sealed yet: `tripod seal`")
    repository.forget_refs()
    tip = repository.tip(own_ref(repository, replica))
    known = None if tip is None else record_seal(repository, tip)
    if known != read_seal(made.note.encode()):
        team.warnings[:] = [text for text in team.warnings if "is not up to date" not in text]
        keep_record(team.root, replica, made.note)
        repository.forget_refs()


def _own_offer(
    team: Team, repository: Repository, remote: Remote, replica: str, *, sealed: bool
) -> _Offer:
    """Our own record; not ``sealed``: as it would be once the ledger is."""
    tip = repository.tip(own_ref(repository, replica))
    on_ref = None if tip is None else record_seal(repository, tip)
    size, last = team.store.size, newest(team.store.db)
    if sealed and on_ref is not None:
        size = on_ref.size
    elif last is not None and last.seq + 1 == size:  # nothing came since: no seal is added
        size = last.size
    return _Offer(replica, tip or "", size, _held(repository, remote, replica))


def _held(repository: Repository, remote: Remote, replica: str) -> int:
    """How many entries of a replica the remote had when it was last asked."""
    tip = repository.tip(f"{REMOTES}{remote.folder}/{replica}")
    sealed = None if tip is None else record_seal(repository, tip)
    return 0 if sealed is None else sealed.size


def _relays(team: Team, repository: Repository, remote: Remote) -> list[_Offer]:
    """Records of peers that were merged whole, and of which the remote had less.

    Those that it had are offered, too, in case that it lost them: a `git push --mirror` of another
    clone takes refs away, and the peer may have ended.
    """
    peers = read_roster(team.store)
    found: dict[str, _Offer] = {}
    for one in replica_refs(repository):
        sealed = record_seal(repository, one.commit)
        if sealed is None:
            continue
        peer = peers.get(sealed.origin)
        if peer is None or peer.replica != one.replica or peer.state in ("closed", "forked"):
            continue
        if not has_merged(team.root, peer, sealed):
            continue
        before = _held(repository, remote, one.replica)
        if one.remote == remote.folder:
            found.setdefault(
                one.replica, _Offer(one.replica, one.commit, sealed.size, 0, lost=True)
            )
        elif before < sealed.size:
            found[one.replica] = _Offer(one.replica, one.commit, sealed.size, before)
    return list(found.values())


def _push(
    repository: Repository, remote: Remote, offers: list[_Offer], *leases: str
) -> list[PushedRecord]:
    """Have git move the refs of the remote; what became of each (UnreachableError: no answer)."""
    folder = refs_folder(repository)
    specs = [f"{one.commit}:{folder}{one.replica}" for one in offers]
    leases += tuple(f"--force-with-lease={folder}{one.replica}:" for one in offers if one.lost)
    try:
        said = ask_remote(
            repository, remote, "push", "--porcelain", *PUSH, *leases, remote.address, *specs,
            answers=b"\n!\t",
        )  # fmt: skip
    except GitError as error:
        raise _no_answer(error, remote, folder + offers[0].replica) from error
    told = {
        m[2].decode("utf-8", "replace"): (m[1], m[3])
        for m in map(_LINE.fullmatch, said.split(b"\n"))
        if m
    }
    done = []
    for one in offers:
        ref = folder + one.replica
        mark, text = told.get(ref, (b"!", b"git does not say what became of it"))
        problem = text.decode("utf-8", "replace") if mark == b"!" else ""
        problem = _THERE if one.lost and mark != b"*" else problem
        done.append(PushedRecord(ref, one.replica, one.size, one.before, problem))
    return done


def _no_answer(error: Exception, remote: Remote, ref: str) -> UnreachableError:
    return UnreachableError(
        f"{error}; the record stands on {ref} here. Try again, give it longer (`--timeout S`), or "
        f"push by git itself: `git push {remote.name} {ref}`"
    )


def _replace(team: Team, repository: Repository, remote: Remote, offer: _Offer) -> PushedRecord:
    """Replace the remote's ref, if it is an earlier state of this record; else say what it is."""
    fetch_records(repository, remote, offer.replica)
    ref = refs_folder(repository) + offer.replica
    tip = repository.tip(f"{REMOTES}{remote.folder}/{offer.replica}")
    if tip is None:
        raise RefusedError(f"{remote.name}: {ref} was moved while it was looked at: push again")
    held = merge_record(team, RefFiles(repository, tip), dry_run=True)
    if not held.is_own:
        own = f"{team.store.origin}: "  # as the ref's name says
        why = held.problem.removeprefix(own) or f"it is the record of {held.replica}"
        raise RefusedError(f"{remote.name} holds something else on {ref}, and it was left: {why}")
    (done,) = _push(repository, remote, [offer], f"--force-with-lease={ref}:{tip}")
    return done._replace(before=held.sealed)


def _left(remote: Remote, one: PushedRecord) -> PushedRecord:
    """A record of a peer; where the remote has another commit of it, that is left as it is."""
    if not any(word in one.problem for word in _BEHIND):
        return one
    why = (
        f"{remote.name} has more of it, or another commit: `tripod pull {remote.name}` looks at it"
    )
    return one._replace(problem=why)


def _refusal(remote: Remote, one: PushedRecord) -> str:
    told = f"{remote.name} does not take {one.ref}: {one.problem}"
    if any(word in one.problem for word in _BEHIND):
        return f"{told}. Somebody pushed meanwhile: push again"
    if "failed to update ref" in one.problem:
        return (
            f"{told}. Another push moves it: push again; if that does not help, one that was "
            f"killed left its lock in the remote's repository: remove {one.ref}.lock there"
        )
    if "unpacker error" in one.problem:
        return (
            f"{told}. It could not store it: a full disk, no permission, or a limit on sizes. The "
            "record stands on the ref here: push again once that is mended"
        )
    return (
        f"{told}. If it takes no refs outside of branches, `git config tripod.refs "
        "refs/heads/tripod/` here and in the other clones keeps them among the branches"
    )
