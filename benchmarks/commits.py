"""What heads in commits cost, and judging a clone by the records on its refs.

A commit with the hooks is compared by what it takes more than one without, in floors of a process.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from time import perf_counter

from benchmarks.commands import FLOOR, TRIPOD, command_seconds
from benchmarks.measure import Pair, Row, cost_row, in_turn
from benchmarks.workload import Scale, make_team
from tripod.chat import writer as chat
from tripod.peers.hooks import install_hooks, remove_hooks
from tripod.peers.replica import name_team
from tripod.team.team import Team
from tripod.trust.seal import new_sealing_key, seal

__all__ = ["rows"]

FEW = 2_000  # entries of the ledger beside the commits
JUDGED = 5  # pairs of judgements, at most
_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")


def rows(folder: str, entries: int, rounds: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows on commits and on a clone; ``rounds`` pairs each."""
    os.environ["TRIPOD_HOME"] = os.path.join(folder, "home")
    top, root = _repository(os.path.join(folder, "few"), FEW)
    pairs = [_commits(top, root) for _ in range(rounds)]
    what = 'what the hooks add to a commit / `python -c "import click, sqlite3, hashlib, json"`'
    yield cost_row("commit", what, pairs, 2.5)
    say(f"a team of {entries:,} entries, and a clone with its record")
    top, _ = _repository(os.path.join(folder, "many"), entries)
    clone = os.path.join(folder, "clone")
    _git("clone", "--quiet", top, clone)
    spec = "+refs/tripod/*:refs/tripod-remotes/origin/*"
    _git("-C", clone, "fetch", "--quiet", "origin", spec)
    pairs = in_turn(lambda: _judged(clone), lambda: _judged(top), min(rounds, JUDGED))
    yield cost_row("verify-refs", f"`verify` of a clone by its refs / by the ledger, {entries:,}",
                   pairs, 1.2)  # fmt: skip


def _judged(folder: str) -> float:
    """Seconds that a judgement took; the made-up reviews are from outside, which it cannot tell."""
    start = perf_counter()
    subprocess.run((TRIPOD, "verify", "--quiet", folder), check=False)
    return perf_counter() - start


def _git(*words: str) -> None:
    subprocess.run(("git", *_WHO, *words), check=True, stdout=subprocess.DEVNULL)


def _repository(top: str, entries: int) -> tuple[str, str]:
    """A repository with a team of so many entries, whose record is on its ref."""
    os.mkdir(top)
    # Before there is a repository, so that nothing is sealed on the way.
    root = make_team(top, Scale(entries), origin=f"tripod.invalid/{os.path.basename(top)}")
    _git("init", "--quiet", top)
    _git("-C", top, "commit", "--quiet", "--allow-empty", "--message=begin")
    with Team(root) as team:
        new_sealing_key(team)
        name_team(team, "bench")
        seal(team, "asked")
    return top, root


def _commits(top: str, root: str) -> Pair:
    """A commit without the hooks, one with them after something was said, and a floor."""
    words = ("git", *_WHO, "-C", top, "commit", "--quiet", "--allow-empty", "--message=go on")
    remove_hooks(top)
    without = command_seconds(words)
    install_hooks(top)
    with Team(root) as team:
        channel = team.store.db.execute("SELECT channel FROM channels LIMIT 1").fetchone()[0]
        chat.send(team, channel, "bench", "One more.")
    more = command_seconds(words) - without
    return Pair(more, command_seconds(FLOOR))
