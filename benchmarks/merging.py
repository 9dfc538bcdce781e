"""What merging the record of a peer costs, beside appending the same entries in batches.

Both sides write their files. Neither seals meanwhile: the private keys are not there by then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from time import process_time

from benchmarks.measure import Row, cost_row, in_turn
from benchmarks.workload import BATCH, Scale, make_team
from tripod.ledger.entry import Draft, entry_blobs
from tripod.ledger.kinds.peers import TEAM_NAMED
from tripod.ledger.locator import database_of
from tripod.peers.merge import merge_record
from tripod.peers.replica import replica_name
from tripod.team import adoption
from tripod.team.team import Team
from tripod.trust import keys
from tripod.trust.export import export
from tripod.trust.seal import new_sealing_key, seal
from tripod.verify.export import ExportFiles

__all__ = ["rows"]

TEAM = "tripod.invalid/team"
PEERS = 10
OWN = ("ledger.opened", "ledger.adopted", "key.set", "seal.made", "team.named", "place.added")
"""Kinds of entries that a team has once, so that no other can append them."""


def rows(folder: str, entries: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The row on one peer, ``rounds`` pairs; the row on ten peers, once."""
    os.environ["TRIPOD_HOME"] = os.path.join(folder, "home")
    say(f"a peer of {entries:,} entries")
    one = [_peer(os.path.join(folder, "peer"), entries, 0)]
    pairs = in_turn(lambda: _merged(folder, one), lambda: _appended(folder, one), rounds)
    what = f"merging {entries:,} entries of a peer / appending them in acts of {BATCH:,}"
    yield cost_row("merge", what, pairs, 1.5)
    say(f"{PEERS} peers of {entries // PEERS:,} entries")
    many = [
        _peer(os.path.join(folder, f"peer-{number}"), entries // PEERS, number)
        for number in range(1, PEERS + 1)
    ]
    pairs = in_turn(lambda: _merged(folder, many), lambda: _appended(folder, many), 1)
    what = f"merging {PEERS} peers of {entries // PEERS:,} entries / appending those"
    yield cost_row("merge-ten", what, pairs)


def _peer(folder: str, entries: int, number: int) -> str:
    """A replica of the team with so many entries; its record is in ``record`` beside it."""
    os.mkdir(folder)
    root = make_team(
        folder, Scale(entries), files=False, seed=number, origin=f"tripod.invalid/peer-{number}"
    )
    with Team(root) as team:
        new_sealing_key(team)
        _name(team, f"peer-{number}")
        note = seal(team, "asked")
        assert note is not None
        export(database_of(root), os.path.join(folder, "record"), note, bodies=True)
    return folder


def _name(team: Team, handle: str) -> None:
    name = replica_name(handle, keys.sealing_key(team.store) or "")
    team.append_apart(lambda: (TEAM_NAMED.draft({"team": TEAM, "replica": name}),))


def _fresh(folder: str) -> Team:
    """A replica without entries of anybody, which cannot seal."""
    name = f"fresh-{len(os.listdir(folder))}"
    place = os.path.join(folder, name)
    os.mkdir(place)
    team = Team(
        adoption.init(place, project="bench", origin=f"{TEAM}/{name}", key=False, new=True).root
    )
    new_sealing_key(team)
    _name(team, "bench")
    os.remove(keys.key_path(team.store.origin))
    return team


def _merged(folder: str, peers: list[str]) -> float:
    records = [ExportFiles(os.path.join(peer, "record")) for peer in peers]
    with _fresh(folder) as team:
        begin = process_time()
        for record in records:
            done = merge_record(team, record)
            assert not done.problem, done.problem
        return process_time() - begin


def _appended(folder: str, peers: list[str]) -> float:
    """The entries of each of these peers as if they were ours, each in a team of its own."""
    seconds = 0.0
    for peer in peers:
        drafts = _drafts(os.path.join(peer, ".nbs"))
        with _fresh(folder) as team:
            begin = process_time()
            for at in range(0, len(drafts), BATCH):
                with team.act() as act:
                    act.append(drafts[at : at + BATCH])
            seconds += process_time() - begin
    return seconds


def _drafts(root: str) -> list[Draft]:
    drafts = []
    with Team(root) as team:
        for entry in team.store.read():
            digests = [bytes.fromhex(digest) for digest, _ in entry_blobs(entry.data)]
            blobs = tuple(filter(None, map(team.store.blob, digests)))
            if entry.kind not in OWN:
                said = entry.kind, entry.stream, entry.actor, entry.data
                drafts.append(Draft(*said, blobs=blobs))
    return drafts
