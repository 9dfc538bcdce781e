"""Random schedules as those in memory, over git: clones, a remote, processes that are killed.

Each run begins with another seed, which is named by the test that fails. TRIPOD_TRIALS says how
many are tried (``make soak``: 60), TRIPOD_SEED which is the first.
"""

import os
import random
from pathlib import Path

import pytest
from children import run_forked
from doors.inside import Done
from dying_exchanges import CHILD, PULL, PUSH, repeated_by
from replicas import Clone, begun_replica, joined_replica
from schedules import BOOKKEEPING, kept_by, states_of

from tripod.ledger.kinds.chat import SENT
from tripod.peers.replica import replica_of

SCHEDULES = int(os.environ.get("TRIPOD_TRIALS", "1"))
LONGEST = 60
LEAST = 2
"""How many die in a schedule, at least."""
FIRST = int(os.environ.get("TRIPOD_SEED", "-1"))
FIRST = random.SystemRandom().randrange(2**32) if FIRST < 0 else FIRST
_ACTS = (
    *("say",) * 3, *("decide",) * 2, *("publish",) * 3, *("ack",) * 3, "ack-all",
    *("push",) * 4, *("pull",) * 4, *("kill",) * 3, "part",
)  # fmt: skip


class World:
    """Clones of one repository, each with a replica; some cannot reach the remote."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.rng, self.killed = rng, 0
        first = begun_replica(folder, "r0")
        first.said("push")
        others = [joined_replica(folder, f"r{number + 1}") for number in range(rng.randint(1, 2))]
        self.clones = [first, *others]
        self.offline: set[str] = set()

    def step(self, number: int) -> None:
        """One act of one of them."""
        clone = self.rng.choice(self.clones)
        match self.rng.choice(_ACTS):
            case "say":
                clone.said("chat", "send", "live", clone.name, f"{clone.name} says {number}")
            case "decide":
                words = ("-p", clone.name, "-r", "So.", "--no-ref", "by chance")
                clone.said("scribe", "log", f"{clone.name} decides {number}", *words)
            case "publish":
                clone.said("bus", "publish", clone.name, self.rng.choice("xy"), "low", f"{number}")
            case "ack":
                names = [line.split()[1] for line in clone.said("bus", "check").splitlines()]
                if names:
                    clone.said("bus", "ack", self.rng.choice(names))
            case "ack-all":
                clone.said("bus", "ack-all")
            case "part":
                self.part(clone)
            case "kill":
                self.kill(clone)
            case command:
                self.exchange(clone, command)

    def part(self, clone: Clone) -> None:
        """It cannot reach the remote any more, or can again."""
        self.offline ^= {clone.name}
        url = "/nowhere/at/all.git" if clone.name in self.offline else str(clone.remote)
        clone.git("remote", "set-url", "origin", url)

    def exchange(self, clone: Clone, command: str) -> Done:
        """A push or a pull; without the remote it says so."""
        done = clone.run(command)
        assert done.code == (3 if clone.name in self.offline else 0), (clone.name, command, done)
        return done

    def kill(self, clone: Clone) -> None:
        """A push or a pull of something new that dies at some step, if it comes there."""
        command, steps = self.rng.choice((("push", PUSH), ("pull", PULL)))
        other = clone if command == "push" else self.rng.choice(self.clones)
        if self.offline & {clone.name, other.name}:
            return
        other.said("chat", "send", "live", other.name, "Are you there?")
        if command == "pull":
            other.said("push")
        env = {"TRIPOD_HOME": str(clone.home), "TRIPOD_AS": clone.name}
        words = (command, self.rng.choice(steps), self.rng.choice("112"))
        child = run_forked(CHILD, str(clone.git.root), *words, env=env)
        assert child.returncode in (0, -9), (words, child.stdout, child.stderr)
        self.killed += child.returncode != 0

    def settle(self) -> None:
        """Everybody is back; some are killed; each says something, and takes what others have."""
        for clone in self.clones:
            if clone.name in self.offline:
                self.part(clone)
        while self.killed < LEAST:
            self.kill(self.rng.choice(self.clones))
        for clone in self.clones:
            clone.said("chat", "send", "live", clone.name, "Good night.")
        for command in ("push", "pull", "push"):
            for clone in self.clones:
                self.exchange(clone, command)

    def check(self) -> None:
        """All have what each recorded, and know the same; verify and git find nothing."""
        kept, own, states = [], [], []
        for clone in self.clones:
            with clone.team() as team:
                named, mine = replica_of(team.store), list(team.store.read())
                assert named is not None
                while mine[-1].kind != SENT.name:  # behind that comes what the next one brings
                    mine.pop()
                origin = team.store.origin
                own.append(
                    {(origin, one.seq): one.header for one in mine if one.kind not in BOOKKEEPING}
                )
                kept.append(kept_by(team.store, origin))
                states.append(states_of(team.store, team.source, origin, named[1]))
        for one in kept:
            for made in own:
                assert one.items() >= made.items()
        assert all(state == states[0] for state in states), states
        for clone in self.clones:
            assert (done := clone.run("verify")).code == 0, done
            assert clone.git("status", "--porcelain", "--untracked-files=all") == ""

    def rest(self) -> int:
        """How often all push and pull until none of them has anything new."""
        rounds = 0
        while any("pulled" in self.exchange(one, "pull").out.decode() for one in self.clones):
            rounds += 1
            assert rounds < 10, "clones that only push and pull record for ever"
            for clone in self.clones:
                self.exchange(clone, "push")
        return rounds


@pytest.mark.drawn("long")
@pytest.mark.parametrize("number", range(SCHEDULES))
def test_all_clones_end_alike(tmp_path: Path, number: int) -> None:
    with repeated_by(FIRST + number, 1):
        play(tmp_path, random.Random(FIRST + number))  # noqa: S311 - schedules, not keys


def play(folder: Path, rng: random.Random) -> None:
    """One schedule, and what must have come of it."""
    world = World(folder, rng)
    for number in range(rng.randint(LONGEST // 2, LONGEST)):
        world.step(number)
    world.settle()
    world.check()
    assert world.rest() <= 3
    world.check()
