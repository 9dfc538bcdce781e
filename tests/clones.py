"""Repositories whose teams are replicas: begun, worked in, their records on refs, fetched."""

from pathlib import Path

from git_repo import Git

from tripod.chat import writer as chat_send
from tripod.ledger.kinds.peers import TEAM_NAMED
from tripod.ledger.locator import database_of
from tripod.ledger.tlog.note import VerifierKey
from tripod.ledger.tlog.trailer import key_digits
from tripod.peers.merge import Merged, merge_record
from tripod.peers.record import write_record_ref
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust.keys import no_passphrase, sealing_key
from tripod.trust.seal import seal_now
from tripod.verify.anchors.git import Repository
from tripod.verify.peers.record import RefFiles

__all__ = ["begin", "fetch", "merge", "record", "say"]


def begin(
    folder: Path, origin: str = "example.com/ann", team_id: str = "example.com/ann"
) -> tuple[Git, str, VerifierKey]:
    """A repository whose team has a key and a replica's name; the name, and the key."""
    git = Git(folder)
    git.commit("README", b"cafe\n", "begin")
    root = adoption.init(str(folder), project="cafe", origin=origin, key=True).root
    with Team(root) as team:
        vkey = sealing_key(team.store)
        assert vkey is not None
        replica = f"{folder.name}-{key_digits(vkey)}"
        with team.act() as act:
            act.append([TEAM_NAMED.draft({"team": team_id, "replica": replica})])
        chat_send.create(team, "live", actor="ann")
    return git, replica, VerifierKey.parse(vkey)


def say(git: Git, text: str) -> int:
    """One more message; give the ledger's size."""
    with Team(f"{git.root}/.nbs") as team:
        chat_send.send(team, "live", "ann", text)
        return team.store.size


def record(git: Git, replica: str) -> str:
    """Seal the ledger, and write its record to the replica's ref; give the seal."""
    root = f"{git.root}/.nbs"
    with Team(root) as team:
        note = seal_now(team, no_passphrase)
    with Repository(root) as repository:
        write_record_ref(repository, f"refs/tripod/{replica}", database_of(root), note)
    return note


def merge(git: Git, ref: str) -> Merged:
    """Merge the record on a ref."""
    root = f"{git.root}/.nbs"
    with Repository(root) as repository, Team(root) as team:
        tip = repository.tip(ref)
        assert tip is not None
        done = merge_record(team, RefFiles(repository, tip))
    assert not done.problem, done
    return done


def fetch(to: Git, *remotes: Git) -> None:
    """Fetch the records of other repositories, as ``tripod pull`` does."""
    for remote in remotes:
        name = remote.root.name
        spec = f"+refs/tripod/*:refs/tripod-remotes/{name}/*"
        to("fetch", "--quiet", str(remote.root), spec)
