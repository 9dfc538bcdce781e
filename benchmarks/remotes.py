"""What a pull of nothing new costs beside git's fetch, and how large a ref of many records is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator

from benchmarks.commands import FLOOR, TRIPOD, command_seconds
from benchmarks.measure import Pair, Row, cost_row, growth_row
from benchmarks.workload import Scale, make_team
from tripod.chat import writer as chat
from tripod.peers.replica import name_team
from tripod.team.team import Team
from tripod.trust.export import export
from tripod.trust.seal import new_sealing_key, newest, seal

__all__ = ["rows"]

FEW = 2_000  # entries of the ledger that is pulled from
SEALS = 100  # entries of the ledger for each seal of the chain


def rows(folder: str, entries: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The row on pulls, ``rounds`` pairs of them, and the one on the size of a ref."""
    os.environ["TRIPOD_HOME"] = os.path.join(folder, "home")
    clone = _clones(folder)
    spec = "+refs/tripod/*:refs/tripod-remotes/origin/*"
    fetch = ("git", "-C", clone, "fetch", "--quiet", "--no-auto-maintenance", "origin", spec)
    pull = (TRIPOD, "pull", "--team", clone)
    command_seconds(pull)
    pairs = [
        Pair(command_seconds(pull), command_seconds(fetch) + command_seconds(FLOOR))
        for _ in range(rounds)
    ]
    yield cost_row("pull-nothing", "pull of nothing new / `git fetch` + a process", pairs, 1.5)
    say(f"{entries // SEALS:,} seals over {entries:,} entries on a ref")
    yield _chain(os.path.join(folder, "chain"), entries)


def _git(*words: str) -> None:
    subprocess.run(("git", "-c", "gc.auto=0", *words), check=True, stdout=subprocess.DEVNULL)


def _repository(top: str) -> None:
    _git("init", "--quiet", top)


def _keyed(root: str) -> None:
    with Team(root) as team:
        new_sealing_key(team)
        name_team(team, "bench")
        seal(team, "asked")


def _clones(folder: str) -> str:
    """A clone that joined a team and merged what there is of it; give its folder."""
    first, bare, clone = (os.path.join(folder, name) for name in ("first", "bare.git", "clone"))
    os.mkdir(first)
    root = make_team(first, Scale(FEW), origin="tripod.invalid/first")
    _repository(first)
    _keyed(root)
    _git("init", "--quiet", "--bare", bare)
    subprocess.run((TRIPOD, "push", bare, "--team", first), check=True, stdout=subprocess.DEVNULL)
    _repository(clone)
    _git("-C", clone, "remote", "add", "origin", bare)
    for words in (("init", "--from", "origin", clone), ("pull", "--team", clone)):
        subprocess.run((TRIPOD, *words), check=True, stdout=subprocess.DEVNULL, cwd=clone)
    return clone


def _chain(top: str, entries: int) -> Row:
    """The objects of a repository with one ref, after ``git gc``, beside the record as files."""
    os.mkdir(top)
    root = make_team(top, Scale(SEALS), origin="tripod.invalid/chain")
    _repository(top)
    _keyed(root)
    with Team(root) as team:
        chat.create(team, "long")
        while team.store.size < entries:
            with team.act():
                for number in range(SEALS - 1):
                    text = f"Message {team.store.size} of the day, number {number}: all is well."
                    chat.send(team, "long", "bench", text)
            seal(team, "asked")
        note = newest(team.store.db)
        assert note is not None
        record = os.path.join(top, "..", "record")
        export(team.store.path, record, note.note, bodies=True)
    _git("-C", top, "gc", "--quiet", "--prune=now")
    what = f"a ref of {entries // SEALS:,} seals over {entries:,} entries / the record as files"
    return growth_row("ref-size", what, [_bytes(f"{top}/.git/objects")], [_bytes(record)], 3.0)


def _bytes(folder: str) -> int:
    found = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return sum(map(os.path.getsize, found))
