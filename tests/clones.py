"""Repositories whose teams are replicas: begun, worked in, their records on refs, fetched."""

import shutil
from pathlib import Path

from doors.inside import run
from git_repo import Git

from tripod.chat import writer as chat_send
from tripod.ledger.kinds.peers import TEAM_NAMED
from tripod.ledger.locator import database_of
from tripod.ledger.tlog.note import VerifierKey
from tripod.peers.merge import merge_record
from tripod.peers.record import write_record_ref
from tripod.peers.replica import replica_name, replica_of
from tripod.peers.roster import Merged
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust.keys import no_passphrase, sealing_key
from tripod.trust.seal import seal_now, seal_path
from tripod.verify.anchors.git import Repository
from tripod.verify.export_file import RefFiles

__all__ = ["begin", "fetch", "kept", "merge", "put_back", "record", "rewrite", "say"]


def begin(
    folder: Path, origin: str = "example.com/ann", team_id: str = "example.com/ann"
) -> tuple[Git, str, VerifierKey]:
    """A repository whose team has a key and a replica's name; the name, and the key."""
    git = Git(folder)
    git.commit("README", b"cafe\n", "begin")
    names = {"project": "cafe", "origin": origin, "scribe": None}
    root = adoption.begin_replica(
        str(folder),
        names,
        {},
        key=True,
        named=lambda vkey: [
            TEAM_NAMED.draft({"team": team_id, "replica": replica_name(folder.name, vkey)})
        ],
    ).root
    with Team(root) as team:
        vkey, named = sealing_key(team.store), replica_of(team.store)
        assert vkey is not None
        assert named is not None
        replica = named[1]
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


def rewrite(git: Git, name: str, back_to: Path) -> None:
    """Put an older database in place, let it go on, and have its key seal another history."""
    put_back(Path(database_of(f"{git.root}/.nbs")), back_to)
    shutil.rmtree(git.root / ".nbs")
    (git.root / ".nbs").mkdir()
    done = run(git.root, "rebuild")
    assert done.code == 0, done.err
    with Team(f"{git.root}/.nbs") as team:
        Path(seal_path(team.store.origin)).unlink()
    for text in ("Wine!", "More wine!", "Even more wine!"):
        say(git, text)
    git("update-ref", "-d", f"refs/tripod/{name}")
    record(git, name)


def put_back(database: Path, older: Path) -> None:
    """Put a copy of an older ledger in the place of a database."""
    for path in database.parent.glob("ledger.db*"):
        path.unlink()
    shutil.copy(older, database)


def kept(git: Git, to: Path) -> Path:
    """A copy of the ledger as it is."""
    assert run(git.root, "backup", str(to)).code == 0
    return to
